// SPDX-License-Identifier: GPL-2.0
/*
 * What the toolstack asks: docs/dsm-control.md, at the home of a VM.
 *
 * enable: compare each host (probe), choose a number, reserve it there, write the
 * record, start the dsmd here.  A failure ends what was begun, last first.
 *
 * node, larger: the other host's dsmd is there (begin), both are connected, memory
 * there, then the vnode here.  Smaller: the vnode here, then memory there.  The
 * last one of a host that goes: the connection ends, and the dsmd there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"
#include "wire.h"

#define KIB_PER_FRAME	4u
#define UNIT_KIB	2048u
#define MOST_KIB	(1ull << 30)	/* 1 TiB: of all ranges */
#define NUMBER_TRIES	8

/* ---- What another host is ---- */

struct probed {
	bool used[DSM_VM_NUMBERS];	/* by any of the hosts */
};

static bool is_version(const char *version, const struct host_facts *here)
{
	return !strcmp(version, here->version);
}

/* A feature that the guest is shown and that is not there. */
static int compare_features(struct host *host, unsigned int peer, struct json_object *list,
			    unsigned int nr, const uint32_t *guest, struct answer *answer)
{
	char name[48];
	unsigned int i;

	if (!list || !json_object_is_type(list, json_type_array))
		return answer_error(answer, "internal", "host %s: no list of CPU features",
				    host_name(host, peer));
	for (i = 0; i < nr; i++) {
		struct json_object *word = json_object_array_get_idx(list, i);
		uint32_t missing = guest[i] & ~(uint32_t)json_object_get_uint64(word);

		if (!missing)
			continue;
		host->xen->feature_name(i, (unsigned int)__builtin_ctz(missing), name, sizeof(name));
		return answer_error(answer, "cpu", "host %s: its CPU lacks %s, which the guest is shown; mask it in the guest's cpuid",
				    host_name(host, peer), name);
	}
	return 0;
}

/* The slice's page tables, and its pool; as dsm/daemon/slice.c reckons. */
static uint64_t overhead_kib(const struct record *record)
{
	uint64_t frames = 0;
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		frames += record->range[i].frames;
	return (frames / 512 + 256 * (record->nr_vcpus + 1ull) +
		(uint64_t)DSM_FRAMES_PER_VCPU * record->nr_vcpus) * KIB_PER_FRAME;
}

static int compare_memory(struct host *host, unsigned int peer, const struct record *record,
			  uint64_t free_kib, struct answer *answer)
{
	uint64_t need = overhead_kib(record);
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		if (record->range[i].host == peer)
			need += record->range[i].frames * KIB_PER_FRAME;
	if (need <= free_kib)
		return 0;
	return answer_error(answer, "memory-there", "host %s: %llu KiB are free, %llu KiB are needed, short by %llu KiB",
			    host_name(host, peer), (unsigned long long)free_kib,
			    (unsigned long long)need, (unsigned long long)(need - free_kib));
}

static int note_numbers(struct probed *probed, struct json_object *list)
{
	size_t i;
	uint64_t number;

	if (!list || !json_object_is_type(list, json_type_array))
		return -1;
	for (i = 0; i < json_object_array_length(list) && i < DSM_VM_NUMBERS; i++) {
		number = json_object_get_uint64(json_object_array_get_idx(list, i));
		if (number < DSM_VM_NUMBERS)
			probed->used[number] = true;
	}
	return 0;
}

/* Can a slice of this guest be there?  Each difference has its word. */
static int compare_host(struct host *host, unsigned int peer, const struct record *record,
			struct json_object *there, struct probed *probed, struct answer *answer)
{
	struct host_facts here = { 0 };
	uint32_t guest[HOST_XEN_FEATURES] = { 0 };
	const char *version, *name = host_name(host, peer);
	unsigned int nr = 0;
	uint64_t abi, free_kib, domid;
	bool hap;
	int rc;

	rc = host->xen->facts(&here);
	if (!rc)
		rc = host->xen->features(record->domid, &nr, guest);
	if (rc)
		return answer_error(answer, "internal", "host %s: what Xen is: %s",
				    host_name(host, host->config.self), strerror(-rc));
	version = read_text(there, "xen", HOST_XEN_VERSION - 1, answer);
	if (!version || read_number(there, "abi", 0, UINT32_MAX, &abi, answer) ||
	    read_number(there, "free_kib", 0, INT64_MAX, &free_kib, answer) ||
	    read_number(there, "name_domid", 0, 0x7fff, &domid, answer))
		return -1;
	hap = json_object_get_boolean(json_object_object_get(there, "hap"));
	if (!is_version(version, &here) || abi != here.abi)
		return answer_error(answer, "xen-version", "host %s has Xen %s (DSM %llu), this host %s (DSM %u)",
				    name, version, (unsigned long long)abi, here.version, here.abi);
	if (compare_features(host, peer, json_object_object_get(there, "features"), nr, guest, answer))
		return -1;
	if (!hap)
		return answer_error(answer, "page-size", "host %s has no hardware assisted paging: pages of 4 KiB can't be moved there",
				    name);
	if (domid)
		return answer_error(answer, "name-taken", "host %s: domain %llu is called %s, too",
				    name, (unsigned long long)domid, record->guest);
	if (compare_memory(host, peer, record, free_kib, answer))
		return -1;
	if (note_numbers(probed, json_object_object_get(there, "numbers")))
		return answer_error(answer, "internal", "host %s: no list of numbers", name);
	return 0;
}

static int probe_host(struct host *host, unsigned int peer, const struct record *record,
		      struct probed *probed, struct answer *answer)
{
	struct json_object *words = question_words("probe", record->uuid_text);
	struct answer reply = { 0 };
	int rc;

	json_object_object_add(words, "guest", json_object_new_string(record->guest));
	rc = ask_host(host, peer, words, HOST_ASK_S, &reply);
	if (rc)
		answer_error(answer, reply.word, "%s", reply.text);
	else
		rc = compare_host(host, peer, record, reply.more, probed, answer);
	answer_free(&reply);
	return rc;
}

/* ---- Undo, and the end ---- */

/* "end" and "stop": an error is no matter, the other host asks for us (sweep.c). */
static void tell_host(struct host *host, unsigned int peer, const char *op,
		      const struct record *record)
{
	struct answer ignored = { 0 };

	ask_host(host, peer, question_words(op, record->uuid_text), HOST_ASK_S, &ignored);
	answer_free(&ignored);
}

static void release_hosts(struct host *host, const struct record *record, unsigned int below)
{
	unsigned int i;

	for (i = below; i-- > 0; )
		if (i != host->config.self && record_has_host(record, i))
			tell_host(host, i, "end", record);
}

/* ---- enable ---- */

static void note_own(struct host *host, const struct record *record, void *context)
{
	struct probed *probed = context;

	(void)host;
	probed->used[record->number] = true;
}

static int choose_number(struct host *host, struct record *record, struct probed *probed,
			 struct answer *answer)
{
	unsigned int i;

	record_each(host, note_own, probed);
	for (i = 1; i < DSM_VM_NUMBERS; i++)
		if (!probed->used[i])
			break;
	if (i == DSM_VM_NUMBERS)
		return answer_error(answer, "internal", "all %u numbers of VMs are taken", DSM_VM_NUMBERS - 1);
	record->number = i;
	return 0;
}

/* At home, with the number's lock: nobody else here takes it meanwhile. */
static int keep_number(struct host *host, struct record *record, struct probed *probed,
		       struct answer *answer)
{
	int lock = record_lock_numbers(host), rc;

	if (lock < 0)
		return answer_error(answer, "internal", "the lock of the numbers: %s", strerror(-lock));
	rc = choose_number(host, record, probed, answer);
	if (!rc) {
		rc = record_write(host, record);
		if (rc)
			rc = answer_error(answer, "internal", "record of %s: %s", record->guest,
					  strerror(-rc));
	}
	close(lock);
	return rc;
}

static int reserve_there(struct host *host, unsigned int peer, const struct record *record,
			 struct answer *answer)
{
	struct json_object *words = question_words("reserve", record->uuid_text);

	json_object_object_add(words, "vm", record_to_json(host, record));
	return ask_host(host, peer, words, HOST_ASK_S, answer);
}

/*
 * A number that is free everywhere, kept here and at each host.  Another home can
 * take it between two questions: then it is tried again.
 */
static int reserve_all(struct host *host, struct record *record, struct probed *probed,
		       struct answer *answer)
{
	struct answer reply = { 0 };
	unsigned int i, tries;
	int rc;

	for (tries = 0; tries < NUMBER_TRIES; tries++) {
		rc = keep_number(host, record, probed, answer);
		for (i = 0; !rc && i < host->config.nr_hosts; i++) {
			if (i == host->config.self || !record_has_host(record, i))
				continue;
			answer_free(&reply);
			rc = reserve_there(host, i, record, &reply);
		}
		if (!rc || !reply.word[0])
			return rc;
		release_hosts(host, record, i);
		if (strcmp(reply.word, "number"))
			return answer_error(answer, reply.word, "%s", reply.text);
		probed->used[record->number] = true;
		answer_free(&reply);
	}
	return answer_error(answer, "internal", "no number of a VM was free on all hosts, %u times", NUMBER_TRIES);
}

static int begin_all(struct host *host, struct record *record, struct answer *answer)
{
	struct probed probed = { { false } };
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < host->config.nr_hosts; i++)
		if (record_has_host(record, i))
			rc = probe_host(host, i, record, &probed, answer);
	if (rc)
		return rc;
	rc = reserve_all(host, record, &probed, answer);
	if (!rc) {
		record->begun = true;
		if (record_write(host, record))
			rc = answer_error(answer, "internal", "record of %s can't be written", record->guest);
		if (!rc)
			rc = dsmd_start(host, record, answer);
		if (rc)
			release_hosts(host, record, host->config.nr_hosts);
	}
	if (rc)
		record_remove(host, record->uuid_text);
	return rc;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct record_range *one = a, *two = b;

	return one->first < two->first ? -1 : one->first > two->first;
}

/* A range of "enable"; in KiB and bytes. */
static int take_range(struct host *host, struct json_object *from, struct record *record,
		      struct answer *answer)
{
	struct record_range *range = &record->range[record->nr_ranges++];
	uint64_t vnode, start, size, pool = 0;
	const char *name;

	if (!json_object_is_type(from, json_type_object))
		return answer_error(answer, "internal", "a range is no object");
	if (read_number(from, "vnode", 0, 63, &vnode, answer) ||
	    read_number(from, "start", 0, MOST_KIB * 1024 * 1024, &start, answer) ||
	    read_number(from, "size_kib", 1, MOST_KIB, &size, answer))
		return -1;
	range->host = host->config.self;
	if (json_object_object_get_ex(from, "host", NULL)) {
		name = read_text(from, "host", DSM_CONFIG_NAME - 1, answer);
		if (!name || read_number(from, "pool_kib", KIB_PER_FRAME, MOST_KIB, &pool, answer))
			return -1;
		range->host = host_find(host, name, answer);
		if (range->host == DSM_NOBODY)
			return -1;
		if (range->host == host->config.self)
			return answer_error(answer, "own-host", "vnode %llu: %s is this host; leave host= out",
					    (unsigned long long)vnode, name);
		range->spans = true;
	}
	if (start % (UNIT_KIB * 1024) || size % (range->spans ? UNIT_KIB : KIB_PER_FRAME))
		return answer_error(answer, "sizes", "vnode %llu: byte %llu, %llu KiB: not in units of 2 MiB",
				    (unsigned long long)vnode, (unsigned long long)start,
				    (unsigned long long)size);
	range->vnode = (unsigned int)vnode;
	range->first = start / 4096;
	range->frames = size / KIB_PER_FRAME;
	range->pool_kib = pool;
	return 0;
}

/* Its dsmd's name for it: its own, unless it can't be that of a file. */
static void choose_name(struct record *record)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	if (record->guest[0] != '.' && strlen(record->guest) < sizeof(record->name) &&
	    !record->guest[strspn(record->guest, letters)])
		strcpy(record->name, record->guest);
	else
		strcpy(record->name, record->uuid_text);
}

static int take_ranges(struct host *host, struct json_object *request, struct record *record,
		       struct answer *answer)
{
	struct json_object *list, *check;
	struct record parsed;
	bool spans = false;
	size_t i;
	int rc;

	if (!json_object_object_get_ex(request, "ranges", &list) ||
	    !json_object_is_type(list, json_type_array) || !json_object_array_length(list) ||
	    json_object_array_length(list) > DSM_DESCRIPTION_RANGES)
		return answer_error(answer, "internal", "ranges: want a list of 1 to %u",
				    DSM_DESCRIPTION_RANGES);
	for (i = 0; i < json_object_array_length(list); i++) {
		if (take_range(host, json_object_array_get_idx(list, i), record, answer))
			return -1;
		spans |= record->range[i].spans;
	}
	if (!spans)
		return answer_error(answer, "internal", "no range has a host: nobody has to ask dsmd");
	qsort(record->range, record->nr_ranges, sizeof(record->range[0]), compare_ranges);
	/* The rules are those of a record. */
	check = record_to_json(host, record);
	json_object_object_add(check, "number", json_object_new_int(1));
	rc = record_from_json(host, check, &parsed, answer);
	json_object_put(check);
	return rc;
}

/* Return: 0; -1: no domain has this number and UUID. */
static int check_domid(struct host *host, uint32_t domid, const uint8_t uuid[16],
		       struct answer *answer)
{
	uint8_t theirs[16];

	if (!host->xen->uuid(domid, theirs) && !memcmp(uuid, theirs, sizeof(theirs)))
		return 0;
	return answer_error(answer, "unknown-vm", "domain %u is not the guest of this UUID", domid);
}

static void enable(struct host *host, const struct record *known, struct record *record,
		   struct json_object *request, struct answer *answer)
{
	const char *name = read_text(request, "name", sizeof(record->guest) - 1, answer);
	uint64_t vcpus;

	if (!name || read_number(request, "vcpus", 1, DSM_ENGINE_VCPUS, &vcpus, answer))
		return;
	strcpy(record->guest, name);
	choose_name(record);
	record->home = host->config.self;
	record->nr_vcpus = (unsigned int)vcpus;
	if (take_ranges(host, request, record, answer) ||
	    check_domid(host, record->domid, record->uuid, answer))
		return;
	if (known && known->domid == record->domid &&
	    dsmd_was_started(host, known->uuid_text)) {
		if (!record_is_same(known, record))
			answer_error(answer, "sizes", "dsmd has other ranges for this guest: %u, not %u, or of other places or sizes",
				     known->nr_ranges, record->nr_ranges);
		else if (!dsmd_pid(host, known->uuid_text))
			answer_error(answer, "internal", "dsmd of %s has ended: what it knew of the pages is lost; destroy the guest",
				     known->guest);
		else
			dsmd_start(host, known, answer);
		return;
	}
	if (known) {
		/* What is left of a request that was cut, or of a domain before. */
		if (dsmd_end(host, known, answer))
			return;
		release_hosts(host, known, host->config.nr_hosts);
		record_remove(host, known->uuid_text);
	}
	begin_all(host, record, answer);
}

/* ---- node ---- */

struct node {
	struct host *host;
	const struct record *record;
	const struct record_range *range;
	uint64_t size, pool;		/* that are to be; KiB */
	uint64_t before;		/* the size that is */
	bool others;			/* another vnode of that host has memory */
};

static int find_vnode(struct json_object *state, struct node *node, struct answer *answer)
{
	struct json_object *list = NULL, *one;
	bool found = false;
	uint64_t vnode, size;
	size_t i;

	json_object_object_get_ex(state, "vnodes", &list);
	for (i = 0; list && json_object_is_type(list, json_type_array) &&
		    i < json_object_array_length(list); i++) {
		const struct record_range *range;

		one = json_object_array_get_idx(list, i);
		if (read_number(one, "vnode", 0, 63, &vnode, answer) ||
		    read_number(one, "size_kib", 0, MOST_KIB, &size, answer))
			return -1;
		range = record_vnode(node->record, (unsigned int)vnode);
		if (range == node->range) {
			node->before = size;
			found = true;
		} else if (range && range->host == node->range->host && size) {
			node->others = true;
		}
	}
	return found ? 0 : answer_error(answer, "internal", "the dsmd of %s does not know vnode %u",
					node->record->guest, node->range->vnode);
}

static int read_sizes(struct node *node, struct answer *answer)
{
	struct json_object *state;
	char *text;
	int rc;

	if (ask_dsmd(node->host, node->record->name, "state", HOST_ASK_S, &text, answer))
		return -1;
	state = text ? read_line_json(text, strcspn(text, "\n"), answer) : NULL;
	rc = state ? find_vnode(state, node, answer) : -1;
	json_object_put(state);
	free(text);
	return rc;
}

static int node_there(struct node *node, uint64_t size, struct answer *answer)
{
	struct json_object *words = question_words("node", node->record->uuid_text);

	json_object_object_add(words, "vnode", json_object_new_int((int)node->range->vnode));
	json_object_object_add(words, "size_kib", json_object_new_uint64(size));
	return ask_host(node->host, node->range->host, words, HOST_NODE_S, answer);
}

static int node_here(struct node *node, uint64_t size, uint64_t pool, struct answer *answer)
{
	char command[96];

	snprintf(command, sizeof(command), "node %u %llu %llu", node->range->vnode,
		 (unsigned long long)size, (unsigned long long)pool);
	return ask_dsmd(node->host, node->record->name, command, HOST_NODE_S, NULL, answer);
}

/* "connect" or "leave", at both ends at once: each waits for the other. */
static int both_ends(struct node *node, const char *op, struct answer *answer)
{
	struct host *host = node->host;
	struct question question = { 0 };
	struct answer reply = { 0 };
	char command[DSM_CONFIG_NAME + 16];
	int rc, there;

	if (question_ask(&question, host, node->range->host,
			 question_words(op, node->record->uuid_text), HOST_NODE_S, answer))
		return -1;
	snprintf(command, sizeof(command), "%s %s", op, host_name(host, node->range->host));
	rc = ask_dsmd(host, node->record->name, command,
		      host->config.opening_ms / 1000. + HOST_ASK_S, NULL, answer);
	there = question_reply(&question, host, &reply);
	if (!rc && there)
		rc = answer_error(answer, reply.word, "%s", reply.text);
	answer_free(&reply);
	return rc;
}

/* The last vnode of a host has gone: so do the connection, and the dsmd there. */
static int leave_host(struct node *node, struct answer *answer)
{
	if (both_ends(node, "leave", answer))
		return -1;
	return ask_host(node->host, node->range->host,
			question_words("stop", node->record->uuid_text), HOST_ASK_S * 2, answer);
}

static int enlarge(struct node *node, struct answer *answer)
{
	struct answer undo = { 0 };
	int rc;

	rc = ask_host(node->host, node->range->host,
		      question_words("begin", node->record->uuid_text),
		      HOST_START_S + HOST_ASK_S, answer);
	if (!rc)
		rc = both_ends(node, "connect", answer);
	if (!rc)
		rc = node_there(node, node->size, answer);
	if (!rc) {
		rc = node_here(node, node->size, node->pool, answer);
		if (rc)
			node_there(node, node->before, &undo);
	}
	if (rc && !node->before && !node->others) {
		answer_free(&undo);
		leave_host(node, &undo);
	}
	answer_free(&undo);
	return rc;
}

static int reduce(struct node *node, struct answer *answer)
{
	if (node_here(node, node->size, node->pool, answer) ||
	    node_there(node, node->size, answer))
		return -1;
	return node->size || node->others ? 0 : leave_host(node, answer);
}

static void do_node(struct host *host, const struct record *record,
		    struct json_object *request, struct answer *answer)
{
	struct node node = { .host = host, .record = record };
	const char *name = read_text(request, "host", DSM_CONFIG_NAME - 1, answer);
	unsigned int number;
	uint64_t vnode;

	if (!name || read_number(request, "vnode", 0, 63, &vnode, answer) ||
	    read_number(request, "size_kib", 0, MOST_KIB, &node.size, answer) ||
	    read_number(request, "pool_kib", 0, MOST_KIB, &node.pool, answer))
		return;
	number = host_find(host, name, answer);
	if (number == DSM_NOBODY)
		return;
	if (number == host->config.self) {
		answer_error(answer, "own-host", "%s is this host", name);
		return;
	}
	node.range = record_vnode(record, (unsigned int)vnode);
	if (!node.range || node.range->host != number) {
		answer_error(answer, "sizes", "vnode %llu of this guest has no memory of host %s",
			     (unsigned long long)vnode, name);
		return;
	}
	if (node.size % UNIT_KIB || node.size > node.range->frames * KIB_PER_FRAME ||
	    !node.size != !node.pool || (node.pool && node.pool != node.range->pool_kib)) {
		answer_error(answer, "sizes", "vnode %llu: %llu KiB with a pool of %llu KiB; it has at most %llu KiB, in units of %u, and a pool of %llu KiB",
			     (unsigned long long)vnode, (unsigned long long)node.size,
			     (unsigned long long)node.pool,
			     (unsigned long long)node.range->frames * KIB_PER_FRAME, UNIT_KIB,
			     (unsigned long long)node.range->pool_kib);
		return;
	}
	if (!dsmd_pid(host, record->uuid_text)) {
		answer_error(answer, "internal", "dsmd of %s has ended: what it knew of the pages is lost; destroy the guest",
			     record->guest);
		return;
	}
	if (read_sizes(&node, answer))
		return;
	/* Also if it is so here: what a request that was cut has left there is put right. */
	if (node.size && node.size >= node.before)
		enlarge(&node, answer);
	else
		reduce(&node, answer);
}

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

static void state(struct host *host, const struct record *record, struct answer *answer)
{
	struct json_object *said, *list;
	char *text;

	if (!dsmd_pid(host, record->uuid_text)) {
		lost(record, answer);
		return;
	}
	if (ask_dsmd(host, record->name, "state", HOST_STATE_S, &text, answer))
		return;
	said = text ? read_line_json(text, strcspn(text, "\n"), answer) : NULL;
	if (said && json_object_object_get_ex(said, "vnodes", &list) &&
	    json_object_is_type(list, json_type_array))
		answer_add(answer, "vnodes", json_object_get(list));
	else
		answer_error(answer, "internal", "what the dsmd of %s says is no state", record->guest);
	json_object_put(said);
	free(text);
}

/* ---- hosts: for dsmctl ---- */

static void count(struct host *host, const struct record *record, void *context)
{
	(void)host;
	(void)record;
	++*(int *)context;
}

/* What a peer says of itself, if it is what it should be. */
static void add_peer(struct json_object *one, struct answer *reply)
{
	struct json_object *numbers = NULL;
	struct answer wrong = { 0 };
	const char *version = read_text(reply->more, "xen", HOST_XEN_VERSION - 1, &wrong);
	uint64_t free_kib;

	if (!version || read_number(reply->more, "free_kib", 0, INT64_MAX, &free_kib, &wrong) ||
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
}

static void hosts(struct host *host, struct answer *answer)
{
	struct json_object *list = json_object_new_array();
	unsigned int i;

	for (i = 0; i < host->config.nr_hosts; i++) {
		struct json_object *one = json_object_new_object();
		struct answer reply = { 0 };
		struct host_facts facts;
		int vms = 0;

		json_object_object_add(one, "host", json_object_new_string(host_name(host, i)));
		if (i == host->config.self) {
			record_each(host, count, &vms);
			json_object_object_add(one, "state", json_object_new_string("here"));
			json_object_object_add(one, "vms", json_object_new_int(vms));
			if (!host->xen->facts(&facts)) {
				json_object_object_add(one, "xen", json_object_new_string(facts.version));
				json_object_object_add(one, "free_kib", json_object_new_uint64(facts.free_kib));
			}
		} else if (ask_host(host, i, question_words("probe", NULL), 3., &reply)) {
			json_object_object_add(one, "state", json_object_new_string(reply.word));
			json_object_object_add(one, "text", json_object_new_string(reply.text));
		} else {
			add_peer(one, &reply);
		}
		answer_free(&reply);
		json_object_array_add(list, one);
	}
	answer_add(answer, "hosts", list);
}

/* ---- Which ---- */

static void change(struct host *host, const char *op, struct record *asked,
		   struct json_object *request, struct answer *answer)
{
	struct record known;
	int lock = record_lock(host, asked->uuid_text, HOST_BUSY_S), rc;

	if (lock < 0) {
		answer_error(answer, lock == -EBUSY ? "busy" : "internal",
			     lock == -EBUSY ? "another request of this guest is at work" :
			     "the lock of the guest: %s", strerror(-lock));
		return;
	}
	rc = record_read(host, asked->uuid_text, &known);
	if (!rc && !record_is_home(host, &known))
		answer_error(answer, "not-possible", "this host has memory for the guest of this UUID, whose home is %s",
			     host_name(host, known.home));
	else if (!strcmp(op, "enable"))
		enable(host, rc ? NULL : &known, asked, request, answer);
	else if (rc || known.domid != asked->domid)
		answer_error(answer, "unknown-vm", "domain %u was not made with a vnode of another host",
			     asked->domid);
	else if (!check_domid(host, asked->domid, asked->uuid, answer))
		do_node(host, &known, request, answer);
	record_unlock(host, asked->uuid_text, lock);
}

static void look(struct host *host, const struct record *asked, struct answer *answer)
{
	struct record known;

	if (record_read(host, asked->uuid_text, &known) || !record_is_home(host, &known) ||
	    known.domid != asked->domid)
		answer_error(answer, "unknown-vm", "domain %u was not made with a vnode of another host",
			     asked->domid);
	else
		state(host, &known, answer);
}

void guest_request(struct host *host, struct json_object *request, struct answer *answer)
{
	const char *op = read_text(request, "op", 16, answer);
	struct record asked = { .nr_ranges = 0 };
	uint64_t domid;

	if (!op)
		return;
	if (!strcmp(op, "hosts")) {
		hosts(host, answer);
		return;
	}
	if (read_uuid(request, asked.uuid, asked.uuid_text, answer) ||
	    read_number(request, "domid", 1, 0x7fef, &domid, answer))
		return;
	asked.domid = (uint32_t)domid;
	if (!strcmp(op, "enable") || !strcmp(op, "node"))
		change(host, op, &asked, request, answer);
	else if (!strcmp(op, "state"))
		look(host, &asked, answer);
	else
		answer_error(answer, "internal", "op: there are enable, node, state and hosts");
}
