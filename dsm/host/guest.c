// SPDX-License-Identifier: GPL-2.0
/*
 * What the toolstack asks: docs/dsm-control.md, at the home of a VM.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compare.h"
#include "guest.h"
#include "places.h"
#include "wire.h"

/* ---- state ---- */

static void lost(const struct record *record, struct answer *answer)
{
	static const char *const numbers[] = {
		"size_kib", "pages_modified", "pages_shared", "pages_home",
		"faults_per_second", "median_ns", "p99_ns",
	};
	struct json_object *list = json_object_new_array();
	unsigned int i, k;

	for (i = 0; i < record->nr_ranges; i++) {
		struct json_object *one;

		if (!record->range[i].spans)
			continue;
		one = json_object_new_object();
		json_object_object_add(one, "vnode", json_object_new_int((int)record->range[i].vnode));
		json_object_object_add(one, "link", json_object_new_string("lost"));
		for (k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
			json_object_object_add(one, numbers[k], json_object_new_int(0));
		json_object_array_add(list, one);
	}
	answer_add(answer, "vnodes", list);
}

static void pass_state(struct json_object *said, struct json_object *vnodes,
		       struct answer *answer)
{
	static const char *const of_places[] = { "vcpus", "paused" };
	struct json_object *list;
	unsigned int i;

	answer_add(answer, "vnodes", json_object_get(vnodes));
	for (i = 0; i < sizeof(of_places) / sizeof(of_places[0]); i++)
		if (json_object_object_get_ex(said, of_places[i], &list))
			answer_add(answer, of_places[i], json_object_get(list));
}

static void state(struct host *host, const struct record *record, struct answer *answer)
{
	struct json_object *said, *list;
	char *text;

	if (!dsmd_lives(host, record->uuid_text)) {
		lost(record, answer);
		return;
	}
	if (ask_dsmd(host, record->name, "state", HOST_STATE_S, &text, answer))
		return;
	said = text ? read_line_json(text, strcspn(text, "\n"), answer) : NULL;
	if (said && json_object_object_get_ex(said, "vnodes", &list) &&
	    json_object_is_type(list, json_type_array))
		pass_state(said, list, answer);
	else
		answer_error(answer, "internal", "what the dsmd of %s says is no state", record->guest);
	json_object_put(said);
	free(text);
}

/* ---- follow ---- */

static void follow(struct host *host, const struct record *record, struct answer *answer)
{
	if (!dsmd_lives(host, record->uuid_text))
		answer_error(answer, "internal", "dsmd of %s has ended: what it knew of the pages is lost; destroy the guest",
			     record->guest);
	else
		ask_dsmd(host, record->name, "follow", HOST_FOLLOW_S, NULL, answer);
}

/* ---- hosts: for dsmctl ---- */

static void count(struct host *host, const struct record *record, void *context)
{
	(void)host;
	(void)record;
	++*(int *)context;
}

/* Printable ASCII: anything else may be a command for a terminal. */
static bool is_plain(const char *text)
{
	while (*text > 0x20 && *text < 0x7f)
		text++;
	return !*text;
}

/* A guest is refused then ("xen-version").  An older dsmd-host does not say its DSM. */
static void compare_xen(struct host *host, struct json_object *said, const char *version,
			struct json_object *one)
{
	char text[2 * HOST_XEN_VERSION + 64];
	struct answer unsaid = { 0 };
	struct host_facts here;
	uint64_t abi;

	if (host->xen->facts(&here) || read_number(said, "abi", 0, UINT32_MAX, &abi, &unsaid) ||
	    (!strcmp(version, here.version) && abi == here.abi))
		return;
	snprintf(text, sizeof(text), "%s (DSM %u) there, %s (DSM %u) here", version, (unsigned int)abi,
		 here.version, here.abi);
	json_object_object_add(one, "xen_differs", json_object_new_string(text));
}

/* What a peer says of itself, if it is what it should be. */
static void add_peer(struct host *host, struct json_object *one, struct answer *reply)
{
	struct json_object *numbers = NULL;
	struct answer wrong = { 0 };
	const char *version = read_text(reply->more, "xen", HOST_XEN_VERSION - 1, &wrong);
	uint64_t free_kib;

	if (!version || !is_plain(version) || read_number(reply->more, "free_kib", 0, INT64_MAX, &free_kib, &wrong) ||
	    !json_object_object_get_ex(reply->more, "numbers", &numbers) ||
	    !json_object_is_type(numbers, json_type_array)) {
		json_object_object_add(one, "state", json_object_new_string("internal"));
		json_object_object_add(one, "text", json_object_new_string("what it says of itself makes no sense"));
		return;
	}
	json_object_object_add(one, "state", json_object_new_string("up"));
	json_object_object_add(one, "xen", json_object_new_string(version));
	json_object_object_add(one, "free_kib", json_object_new_uint64(free_kib));
	json_object_object_add(one, "vms", json_object_new_int64((int64_t)json_object_array_length(numbers)));
	compare_xen(host, reply->more, version, one);
}

/* Seconds since 1970; and what is to be said now, if it is soon. */
static void add_expiry(struct json_object *one, const char *key, const char *what, int64_t expires)
{
	char text[DSM_EXPIRY_TEXT], soon[32];

	if (!expires)
		return;
	json_object_object_add(one, key, json_object_new_int64(expires));
	snprintf(soon, sizeof(soon), "%s_soon", key);
	if (dsm_expiry_is_soon(expires, time(NULL), what, text))
		json_object_object_add(one, soon, json_object_new_string(text));
}

static void add_here(struct host *host, struct json_object *one)
{
	struct host_facts facts;
	char text[HOST_TEXT + 1];
	int vms = 0, rc;

	record_each(host, count, &vms);
	json_object_object_add(one, "state", json_object_new_string("here"));
	json_object_object_add(one, "vms", json_object_new_int(vms));
	add_expiry(one, "certificate_expires", "its certificate", host->expiry.certificate);
	add_expiry(one, "ca_expires", "the CA's certificate", host->expiry.ca);
	rc = host->xen->facts(&facts);
	if (rc) {
		host_why_not_xen(host, rc, text);
		json_object_object_add(one, "text", json_object_new_string(text));
	} else {
		json_object_object_add(one, "xen", json_object_new_string(facts.version));
		json_object_object_add(one, "free_kib", json_object_new_uint64(facts.free_kib));
	}
}

static void add_there(struct host *host, unsigned int peer, struct json_object *one)
{
	struct json_object *words = question_words("probe", NULL);
	struct question question = { 0 };
	struct answer reply = { 0 };

	json_object_object_add(words, "file", json_object_new_boolean(true));
	if (question_ask(&question, host, peer, words, 3., &reply) ||
	    question_reply(&question, host, &reply)) {
		json_object_object_add(one, "state", json_object_new_string(reply.word));
		json_object_object_add(one, "text", json_object_new_string(reply.text));
	} else {
		add_peer(host, one, &reply);
		compare_add(host, reply.more, one);
	}
	/* What it has proved, whatever it says. */
	add_expiry(one, "certificate_expires", "its certificate", question.wire.expires);
	answer_free(&reply);
}

static void hosts(struct host *host, struct answer *answer)
{
	struct json_object *list = json_object_new_array();
	unsigned int i;

	for (i = 0; i < host->config.nr_hosts; i++) {
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "host", json_object_new_string(host_name(host, i)));
		if (i == host->config.self)
			add_here(host, one);
		else
			add_there(host, i, one);
		json_object_array_add(list, one);
	}
	answer_add(answer, "hosts", list);
}

/* ---- Which ---- */

static void change_known(struct host *host, const char *op, const struct record *known,
			 struct json_object *request, struct answer *answer)
{
	if (!strcmp(op, "node"))
		guest_node(host, known, request, answer);
	else
		guest_place(host, known, !strcmp(op, "home"), request, answer);
}

static void change(struct host *host, const char *op, struct record *asked,
		   struct json_object *request, struct answer *answer)
{
	/* Of a guest that reboots: what its domain before had is being removed. */
	bool waits = !strcmp(op, "enable");
	int lock = record_lock(host, asked->uuid_text, waits ? HOST_BEFORE_S : HOST_BUSY_S);
	struct record known;
	int found;

	if (lock < 0) {
		answer_error(answer, lock == -EBUSY ? "busy" : "internal",
			     lock == -EBUSY ? "another request of this guest is at work" :
			     "the lock of the guest: %s", strerror(-lock));
		return;
	}
	found = record_find(host, asked->uuid_text, &known, answer);
	if (found < 0)
		;
	else if (found && !record_is_home(host, &known))
		answer_error(answer, "not-possible", "this host has memory for the guest of this UUID, whose home is %s",
			     host_name(host, known.home));
	else if (!strcmp(op, "enable"))
		guest_enable(host, found ? &known : NULL, asked, request, answer);
	else if (!found || known.domid != asked->domid)
		answer_error(answer, "unknown-vm", "domain %u was not made with a vnode of another host",
			     asked->domid);
	else if (!guest_check_domid(host, asked->domid, asked->uuid, answer))
		change_known(host, op, &known, request, answer);
	record_unlock(host, asked->uuid_text, lock);
}

/* "state", "follow" and "leaving", which need no lock: nothing that is recorded changes. */
static void look(struct host *host, const char *op, const struct record *asked,
		 struct json_object *request, struct answer *answer)
{
	struct record known;
	int found = record_find(host, asked->uuid_text, &known, answer);

	if (found < 0)
		return;
	if (!found || !record_is_home(host, &known) || known.domid != asked->domid)
		answer_error(answer, "unknown-vm", "domain %u was not made with a vnode of another host",
			     asked->domid);
	else if (!strcmp(op, "state"))
		state(host, &known, answer);
	else if (!strcmp(op, "follow"))
		follow(host, &known, answer);
	else
		guest_leaving(host, &known, request, answer);
}

void guest_request(struct host *host, struct json_object *request, struct answer *answer)
{
	const char *op = read_text(request, "op", 16, answer);
	struct record asked = { .nr_ranges = 0 };
	uint64_t domid;

	if (!op)
		return;
	if (!strcmp(op, "enable"))
		host->end = wire_now() + HOST_ENABLE_S;
	if (!strcmp(op, "hosts")) {
		hosts(host, answer);
		return;
	}
	if (read_uuid(request, asked.uuid, asked.uuid_text, answer) ||
	    read_number(request, "domid", 1, 0x7fef, &domid, answer))
		return;
	asked.domid = (uint32_t)domid;
	if (!strcmp(op, "enable") || !strcmp(op, "node") || !strcmp(op, "place") ||
	    !strcmp(op, "home"))
		change(host, op, &asked, request, answer);
	else if (!strcmp(op, "state") || !strcmp(op, "follow") || !strcmp(op, "leaving"))
		look(host, op, &asked, request, answer);
	else
		answer_error(answer, "internal", "op: there are enable, node, place, home, follow, leaving, state and hosts");
}
