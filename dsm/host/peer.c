// SPDX-License-Identifier: GPL-2.0
/*
 * What other hosts ask: of this one as a host, and of VMs whose home they are.
 *
 *	probe		what is here, and which hosts are known; with "guest", who is called so;
 *			with "file", what dsm.toml says of all hosts
 *	known		is this host the home of the VM?
 *	reserve		a record of the VM, "vm", with its number
 *	begin		its dsmd, which makes the slice
 *	connect, leave	that dsmd, with the home's
 *	node		so much memory for a vnode
 *	join, part	that dsmd, with that of another host which is not the home
 *	share		so much memory of a vnode of another host may be asked for here
 *	stop		the end of that dsmd; the record stays
 *	end		and of the record
 *
 * Each says what is to be, and can be asked again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "lend.h"
#include "mesh.h"
#include "places.h"
#include "wire.h"

/* ---- Of the host ---- */

static void add_number(struct host *host, const struct record *record, void *context)
{
	(void)host;
	json_object_array_add(context, json_object_new_uint64(record->number));
}

static void probe(struct host *host, struct json_object *request, struct answer *answer)
{
	struct json_object *numbers, *features, *hosts;
	struct host_facts facts = { 0 };
	const char *guest = NULL;
	uint8_t uuid[16], theirs[16];
	uint32_t domid = 0;
	char uuid_text[37], text[HOST_TEXT + 1];
	unsigned int i;
	int rc = host->xen->facts(&facts);

	if (rc) {
		host_why_not_xen(host, rc, text);
		answer_error(answer, "internal", "%s", text);
		return;
	}
	if (json_object_object_get_ex(request, "guest", NULL)) {
		guest = read_text(request, "guest", 255, answer);
		if (!guest || read_uuid(request, uuid, uuid_text, answer))
			return;
		rc = host->xen->find_name(guest, &domid);
		if (!rc)
			rc = host->xen->uuid(domid, theirs);
		if (rc && rc != -ESRCH) {
			answer_error(answer, "internal", "host %s: which names there are: %s",
				     host_name(host, host->config.self), strerror(-rc));
			return;
		}
		if (rc || !memcmp(uuid, theirs, sizeof(uuid)))
			domid = 0;
	}
	numbers = json_object_new_array();
	features = json_object_new_array();
	hosts = json_object_new_array();
	for (i = 0; i < host->config.nr_hosts; i++)
		json_object_array_add(hosts, json_object_new_string(host_name(host, i)));
	record_each(host, add_number, numbers);
	for (i = 0; i < facts.nr_features; i++)
		json_object_array_add(features, json_object_new_uint64(facts.feature[i]));
	answer_add(answer, "xen", json_object_new_string(facts.version));
	answer_add(answer, "abi", json_object_new_uint64(facts.abi));
	answer_add(answer, "hap", json_object_new_boolean(facts.hap));
	places_tell(&facts, answer);
	mesh_tell_probe(answer);
	answer_add(answer, "free_kib", json_object_new_uint64(facts.free_kib));
	answer_add(answer, "features", features);
	answer_add(answer, "numbers", numbers);
	answer_add(answer, "hosts", hosts);
	answer_add(answer, "name_domid", json_object_new_uint64(domid));
	if (json_object_object_get_ex(request, "file", NULL))
		compare_tell(host, answer);
}

/* Who hears "no" destroys what he has: only if it is known. */
static void known(struct host *host, const char *uuid, struct answer *answer)
{
	struct record record;
	int found = record_find(host, uuid, &record, answer);

	if (found >= 0)
		answer_add(answer, "known",
			   json_object_new_boolean(found && record_is_home(host, &record)));
}

/* ---- Of a VM ---- */

struct wanted {
	const struct record *record;
	bool number, name;
	unsigned int nr;	/* that this home has already */
};

static void compare(struct host *host, const struct record *record, void *context)
{
	struct wanted *wanted = context;

	(void)host;
	if (!memcmp(record->uuid, wanted->record->uuid, sizeof(record->uuid)))
		return;
	wanted->nr += record->home == wanted->record->home;
	wanted->number |= record->number == wanted->record->number;
	wanted->name |= !strcmp(record->name, wanted->record->name);
}

static void write_new(struct host *host, const struct record *record, struct answer *answer)
{
	/* A home that takes more would leave none to the others. */
	unsigned int most = (DSM_VM_NUMBERS - 1u) / host->config.nr_hosts;
	struct wanted wanted = { .record = record };
	int lock = record_lock_numbers(host), rc;

	if (lock < 0) {
		answer_error(answer, "internal", "the lock of the numbers: %s", strerror(-lock));
		return;
	}
	record_each(host, compare, &wanted);
	if (wanted.number) {
		answer_error(answer, "number", "host %s: number %u is another VM's",
			     host_name(host, host->config.self), record->number);
	} else if (wanted.name) {
		answer_error(answer, "name-taken", "host %s has memory for another guest called %s",
			     host_name(host, host->config.self), record->name);
	} else if (wanted.nr >= most) {
		answer_error(answer, "internal", "host %s has places for %u guests of host %s, no more",
			     host_name(host, host->config.self), most,
			     host_name(host, record->home));
	} else {
		rc = record_write(host, record);
		if (rc)
			answer_error(answer, "internal", "host %s: record of %s: %s",
				     host_name(host, host->config.self), record->guest, strerror(-rc));
	}
	close(lock);
}

/* No domain has it but a slice of ours.  Return: 0; -1: *answer says who has it. */
static int check_uuid_free(struct host *host, const struct record *record, struct answer *answer)
{
	uint32_t domid = 0;
	int rc = host->xen->find_uuid(record->uuid, &domid);

	if (rc == -ESRCH)
		return 0;
	if (rc)
		return answer_error(answer, "internal", "host %s: which domains there are: %s",
				    host_name(host, host->config.self), strerror(-rc));
	return answer_error(answer, "name-taken", "host %s: domain %u has the UUID %s",
			    host_name(host, host->config.self), domid, record->uuid_text);
}

/* @uuid: of which the lock is held, and @there the record. */
static void reserve(struct host *host, unsigned int from, const char *uuid,
		    const struct record *there, struct json_object *request,
		    struct answer *answer)
{
	struct record record;

	if (record_from_json(host, json_object_object_get(request, "vm"), &record, answer))
		return;
	if (strcmp(record.uuid_text, uuid)) {
		answer_error(answer, "internal", "host %s reserves %s in the name of %s",
			     host_name(host, from), record.uuid_text, uuid);
		return;
	}
	if (record.home != from || !record_has_host(&record, host->config.self) || !record.domid) {
		answer_error(answer, "internal", "host %s reserves what is not its own, or not for %s",
			     host_name(host, from), host_name(host, host->config.self));
		return;
	}
	record.domid = 0;
	record.begun = false;
	lend_set(&record, NULL, 0);
	if (there && record_is_same(there, &record) && there->number == record.number && !there->begun)
		return;
	if (there && there->begun && dsmd_end(host, there, answer))
		return;
	if (check_uuid_free(host, &record, answer))
		return;
	if (there)
		record_remove(host, there->uuid_text);
	write_new(host, &record, answer);
}

/* ---- Its dsmd ---- */

static void begin(struct host *host, struct record *record, struct answer *answer)
{
	struct answer ignored = { 0 };

	if (dsmd_lives(host, record->uuid_text)) {
		dsmd_start(host, record, answer);
		return;
	}
	/* It died: what is left is a slice that nobody serves. */
	if (record->begun && dsmd_end(host, record, answer))
		return;
	if (check_uuid_free(host, record, answer))
		return;
	record->begun = true;
	lend_set(record, NULL, 0);
	if (lend_write(host, record, true, answer))
		return;
	if (dsmd_start(host, record, answer)) {
		if (!dsmd_end(host, record, &ignored)) {
			record->begun = false;
			record_write(host, record);
		}
		answer_free(&ignored);
	}
}

/* Memory for a vnode; of it as much is lent as it may have come to. */
static void node(struct host *host, struct record *record, unsigned int vnode,
		 uint64_t size, struct answer *answer)
{
	const struct record_range *range = record_vnode(record, vnode);
	uint64_t before = range ? range->lent_kib : 0;
	char line[96];
	int rc;

	if (!range || range->host != host->config.self || size > range->frames * 4) {
		answer_error(answer, "sizes", "host %s: vnode %u has no %llu KiB here",
			     host_name(host, host->config.self), vnode, (unsigned long long)size);
		return;
	}
	if (size > before) {
		lend_set(record, range, size);
		if (lend_write(host, record, true, answer))
			return;
	}
	snprintf(line, sizeof(line), "node %u %llu 0", vnode, (unsigned long long)size);
	rc = ask_dsmd(host, record->name, line, HOST_NODE_S, NULL, answer);
	/* A refusal says that nothing has changed; without an answer it may have. */
	if (rc ? size > before && strcmp(answer->word, "internal") : size < before) {
		lend_set(record, range, rc ? before : size);
		record_write(host, record);
	}
}

/*
 * "connect", "leave".  Who waits for a leave has the lock of the VM for long: not for a home
 * whose request has ended, which is to find the lock free when it asks again.
 */
static void ask_end(struct host *host, const struct record *record, bool leaves,
		    unsigned int other, struct answer *answer)
{
	double seconds = host_opening_s(host, leaves);
	char line[DSM_CONFIG_NAME + 16];

	snprintf(line, sizeof(line), "%s %s", leaves ? "leave" : "connect", host_name(host, other));
	if (leaves)
		ask_dsmd_for_asker(host, record->name, line, seconds, answer);
	else
		ask_dsmd(host, record->name, line, seconds, NULL, answer);
}

/* ---- With hosts that are not the home ---- */

/* What its dsmd says is of two hosts, and the home has not asked only this one. */
static void say_with(struct host *host, unsigned int other, struct answer *said,
		     struct answer *answer)
{
	if (said->word[0])
		answer_error(answer, said->word, "host %s, with host %s: %s",
			     host_name(host, host->config.self), host_name(host, other), said->text);
	answer_free(said);
}

/* May the home have us deal with that host? */
static int check_other(struct host *host, const struct record *record, unsigned int other,
		       struct answer *answer)
{
	if (mesh_needs(record, host->config.self, other))
		return 0;
	return answer_error(answer, "internal", "host %s has nothing to do with host %s for this guest",
			    host_name(host, host->config.self), host_name(host, other));
}

static void join(struct host *host, const struct record *record, bool part,
		 struct json_object *request, struct answer *answer)
{
	const char *name = read_text(request, "host", DSM_CONFIG_NAME - 1, answer);
	struct answer unknown = { 0 }, said = { 0 };
	unsigned int other;

	if (!name)
		return;
	other = host_find(host, name, &unknown);
	if (other == DSM_NOBODY)
		answer_error(answer, unknown.word, "host %s does not know host %s",
			     host_name(host, host->config.self), unknown.text);
	answer_free(&unknown);
	if (other == DSM_NOBODY || check_other(host, record, other, answer))
		return;
	if (!dsmd_lives(host, record->uuid_text)) {
		if (!part)
			answer_error(answer, "internal", "host %s: the dsmd of %s is not there",
				     host_name(host, host->config.self), record->guest);
		return;
	}
	ask_end(host, record, part, other, &said);
	say_with(host, other, &said, answer);
}

static void share(struct host *host, const struct record *record,
		  struct json_object *request, struct answer *answer)
{
	const struct record_range *range;
	struct answer said = { 0 };
	uint64_t vnode, size;
	char line[96];

	if (read_number(request, "vnode", 0, 63, &vnode, answer) ||
	    read_number(request, "size_kib", 0, 1ull << 30, &size, answer))
		return;
	range = record_vnode(record, (unsigned int)vnode);
	if (!range || size > range->frames * 4) {
		answer_error(answer, "sizes", "host %s: vnode %llu has no %llu KiB anywhere",
			     host_name(host, host->config.self), (unsigned long long)vnode,
			     (unsigned long long)size);
		return;
	}
	if (check_other(host, record, range->host, answer))
		return;
	if (!record_vcpus_of(record, host->config.self)) {
		answer_error(answer, "internal", "host %s only lends memory to this guest",
			     host_name(host, host->config.self));
		return;
	}
	if (!dsmd_lives(host, record->uuid_text)) {
		if (size)
			answer_error(answer, "internal", "host %s: the dsmd of %s is not there",
				     host_name(host, host->config.self), record->guest);
		return;
	}
	snprintf(line, sizeof(line), "node %llu %llu 0", (unsigned long long)vnode,
		 (unsigned long long)size);
	ask_dsmd(host, record->name, line, HOST_NODE_S, NULL, &said);
	say_with(host, range->host, &said, answer);
}

static void command(struct host *host, struct record *record, const char *op,
		    struct json_object *request, struct answer *answer)
{
	uint64_t vnode = 0, size = 0;
	bool is_node = !strcmp(op, "node");

	if (is_node && (read_number(request, "vnode", 0, 63, &vnode, answer) ||
			read_number(request, "size_kib", 0, 1ull << 30, &size, answer)))
		return;
	if (!dsmd_lives(host, record->uuid_text)) {
		/* What ended has nothing, and no connection. */
		if (strcmp(op, "leave") && (!is_node || size))
			answer_error(answer, "internal", "host %s: the dsmd of %s is not there",
				     host_name(host, host->config.self), record->guest);
		return;
	}
	if (is_node)
		node(host, record, (unsigned int)vnode, size, answer);
	else
		ask_end(host, record, !strcmp(op, "leave"), record->home, answer);
}

static void of_vm(struct host *host, struct record *record, const char *op,
		  struct json_object *request, struct answer *answer)
{
	if (!strcmp(op, "begin")) {
		begin(host, record, answer);
	} else if (!strcmp(op, "connect") || !strcmp(op, "leave") || !strcmp(op, "node")) {
		command(host, record, op, request, answer);
	} else if (!strcmp(op, "join") || !strcmp(op, "part")) {
		join(host, record, !strcmp(op, "part"), request, answer);
	} else if (!strcmp(op, "share")) {
		share(host, record, request, answer);
	} else if (!strcmp(op, "stop") || !strcmp(op, "end")) {
		if (dsmd_end(host, record, answer))
			return;
		if (!strcmp(op, "end")) {
			record_remove(host, record->uuid_text);
		} else {
			record->begun = false;
			lend_set(record, NULL, 0);
			record_write(host, record);
		}
	} else {
		answer_error(answer, "internal", "op: there is no such one between hosts");
	}
}

/* What a host has that knows nothing of the VM: it was booted. */
static bool is_nothing(const char *op, struct json_object *request)
{
	struct json_object *size;

	if (!strcmp(op, "end") || !strcmp(op, "stop") || !strcmp(op, "leave") || !strcmp(op, "part"))
		return true;
	return (!strcmp(op, "node") || !strcmp(op, "share")) && json_object_object_get_ex(request, "size_kib", &size) &&
	       json_object_is_type(size, json_type_int) && !json_object_get_int64(size);
}

void peer_request(struct host *host, unsigned int from, struct json_object *request,
		  struct answer *answer)
{
	const char *op = read_text(request, "op", 16, answer);
	struct record record;
	uint8_t uuid[16];
	char text[37];
	int lock, found;

	if (!op)
		return;
	if (!strcmp(op, "probe")) {
		probe(host, request, answer);
		return;
	}
	if (read_uuid(request, uuid, text, answer))
		return;
	if (!strcmp(op, "known")) {
		known(host, text, answer);
		return;
	}
	lock = record_lock(host, text, HOST_BUSY_S);
	if (lock < 0) {
		answer_error(answer, "busy", "host %s: another request of this guest is at work",
			     host_name(host, host->config.self));
		return;
	}
	found = record_find(host, text, &record, answer);
	if (found < 0)
		;
	else if (found && record.home != from)
		answer_error(answer, "unknown-vm", "host %s is not the home of this guest, in the eyes of %s",
			     host_name(host, from), host_name(host, host->config.self));
	else if (!strcmp(op, "reserve"))
		reserve(host, from, text, found ? &record : NULL, request, answer);
	else if (found)
		of_vm(host, &record, op, request, answer);
	else if (!is_nothing(op, request))
		answer_error(answer, "unknown-vm", "host %s has no place for a guest of this UUID",
			     host_name(host, host->config.self));
	record_unlock(host, text, lock);
}
