// SPDX-License-Identifier: GPL-2.0
/*
 * What nobody needs any more.
 *
 * At home: a VM whose domain has ended.  The other hosts are told; who can't be
 * reached asks by himself later.
 *
 * Anywhere: a VM whose dsmd has died has failed, and stays until it is removed.
 *
 * Elsewhere: a VM of which its home says that it does not know it.  If the home
 * does not answer, only one whose dsmd says that the VM has failed: a home that is
 * started again, or a network that is cut for a moment, is no reason to give up
 * memory in which a guest's pages are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"
#include "wire.h"

/* Hosts that did not answer in this sweep: each is waited for once. */
static bool silent[DSM_MAX_HOSTS];

/* Return: as ask_host(). */
static int ask(struct host *host, unsigned int peer, const char *op, const char *uuid,
	       struct answer *answer)
{
	int rc;

	if (silent[peer])
		return answer_error(answer, "unreachable", "host %s did not answer a moment ago",
				    host_name(host, peer));
	rc = ask_host(host, peer, question_words(op, uuid), HOST_ASK_S, answer);
	silent[peer] = rc && (!strcmp(answer->word, "unreachable") ||
			      !strcmp(answer->word, "no-dsmd-there"));
	return rc;
}

static void say(const char *what, const struct record *record, const char *why)
{
	host_say(SAY_NOTICE, record->name, "%s: %s", what, why);
}

static void remove_all(struct host *host, const struct record *record, const char *why)
{
	struct answer answer = { 0 };
	unsigned int i;

	if (dsmd_end(host, record, &answer)) {
		say("can't be removed", record, answer.text);
		answer_free(&answer);
		return;
	}
	say("removed", record, why);
	for (i = 0; record_is_home(host, record) && i < host->config.nr_hosts; i++) {
		answer_free(&answer);
		if (record_has_host(record, i) &&
		    ask(host, i, "end", record->uuid_text, &answer))
			say("not removed there now", record, answer.text);
	}
	answer_free(&answer);
	record_remove(host, record->uuid_text);
}

/* Does its dsmd say that the VM has failed, or ended? */
static bool has_failed(struct host *host, const struct record *record, char why[HOST_TEXT])
{
	struct answer answer = { 0 };
	struct json_object *status = NULL, *state, *failure;
	bool failed = false, over = false;
	char *text = NULL;

	if (!ask_dsmd(host, record->name, "status", HOST_ASK_S, &text, &answer) && text)
		status = json_tokener_parse(text);
	if (status && json_object_object_get_ex(status, "state", &state) &&
	    json_object_is_type(state, json_type_string)) {
		failed = !strcmp(json_object_get_string(state), "failed");
		over = !strcmp(json_object_get_string(state), "over");
	}
	if ((failed || over) && json_object_object_get_ex(status, "failure", &failure))
		snprintf(why, HOST_TEXT, "%s: %s", over ? "it has ended" : "its home is lost",
			 json_object_get_string(failure));
	json_object_put(status);
	free(text);
	answer_free(&answer);
	return failed || over;
}

/* It is still needed: does its dsmd live? */
static void look_at_dsmd(struct host *host, const struct record *record)
{
	if (record->begun && dsmd_has_ended(host, record->uuid_text))
		dsmd_died(host, record);
}

static void look_at_slice(struct host *host, const struct record *record)
{
	struct answer answer = { 0 };
	char why[HOST_TEXT] = "its home is lost";
	bool answers = !ask(host, record->home, "known", record->uuid_text, &answer);
	struct json_object *known = json_object_object_get(answer.more, "known");

	if (answers && json_object_is_type(known, json_type_boolean) &&
	    !json_object_get_boolean(known)) {
		remove_all(host, record, "its home does not know it");
	} else if (!answers && record->begun &&
		   (!dsmd_lives(host, record->uuid_text) || has_failed(host, record, why))) {
		remove_all(host, record, why);
	} else {
		look_at_dsmd(host, record);
	}
	answer_free(&answer);
}

static void look_at_guest(struct host *host, const struct record *record)
{
	int rc = record_has_domain(host, record);

	if (rc < 0)
		say("left as it is", record, strerror(-rc));
	if (rc > 0)
		look_at_dsmd(host, record);
	if (rc)
		return;
	remove_all(host, record, "its domain has ended");
}

/* @seconds: that a lock is waited for. */
static void look(struct host *host, const char *uuid, double seconds)
{
	struct record record;
	int lock = record_lock(host, uuid, seconds);

	if (lock < 0)
		return;		/* Who has it comes back to it, or the next sweep does. */
	if (!record_read(host, uuid, &record)) {
		if (record_is_home(host, &record))
			look_at_guest(host, &record);
		else
			look_at_slice(host, &record);
	}
	record_unlock(host, uuid, lock);
}

/* All that there are, or all of a name. */
struct list {
	const struct record *wants;	/* it, but not this one; or NULL */
	unsigned int nr;
	char uuid[DSM_VM_NUMBERS][37];
};

static void note(struct host *host, const struct record *record, void *context)
{
	struct list *list = context;

	(void)host;
	if (list->wants && (strcmp(record->name, list->wants->name) ||
			    !memcmp(record->uuid, list->wants->uuid, sizeof(record->uuid))))
		return;
	if (list->nr < DSM_VM_NUMBERS)
		strcpy(list->uuid[list->nr++], record->uuid_text);
}

/* Each time from another one on: it has no time for many that are slow to answer. */
void sweep(struct host *host)
{
	struct list list = { .nr = 0 };
	const char *unread = record_each(host, note, &list);
	unsigned int i;

	if (unread)
		host_say(SAY_WARNING, NULL, "%s/vm/%s/record.json can't be read: its guest is left as it is",
			 host->folder, unread);
	for (i = 0; i < list.nr; i++)
		look(host, list.uuid[(i + host->turn) % list.nr], 0.);
}

void sweep_name(struct host *host, const struct record *record)
{
	struct list list = { .wants = record };
	unsigned int i;

	record_each(host, note, &list);
	for (i = 0; i < list.nr; i++)
		look(host, list.uuid[i], HOST_BUSY_S);
}
