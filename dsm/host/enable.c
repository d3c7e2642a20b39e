// SPDX-License-Identifier: GPL-2.0
/*
 * "enable": compare each host (probe), choose a number, reserve it there, write the
 * record, start the dsmd here.  A failure ends what was begun, last first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"
#include "places.h"
#include "wire.h"

#define NUMBER_TRIES	8
#define FEATURES_TEXT	300	/* of an answer, HOST_TEXT */

/* ---- What another host is ---- */

struct probed {
	bool used[DSM_VM_NUMBERS];	/* by any of the hosts */
};

static bool is_version(const char *version, const struct host_facts *here)
{
	return !strcmp(version, here->version);
}

/* Features that the guest is shown and that are not there. */
static int compare_features(struct host *host, unsigned int peer, struct json_object *list,
			    unsigned int nr, const uint32_t *guest, struct answer *answer)
{
	char text[FEATURES_TEXT] = "";
	unsigned int i;
	size_t at = 0;

	if (!list || !json_object_is_type(list, json_type_array))
		return answer_error(answer, "internal", "host %s: no list of CPU features",
				    host_name(host, peer));
	for (i = 0; i < nr; i++) {
		struct json_object *word = json_object_array_get_idx(list, i);
		uint32_t missing = guest[i] & ~(uint32_t)json_object_get_uint64(word);

		if (!missing)
			continue;
		if (at && at < sizeof(text))
			at += (size_t)snprintf(text + at, sizeof(text) - at, ", ");
		if (at < sizeof(text))
			at += host->xen->say_features(i, missing, text + at, sizeof(text) - at);
	}
	if (!at)
		return 0;
	return answer_error(answer, "cpu", "host %s: its CPUs lack features that the guest is shown, CPUID %s%s: mask them in the guest's cpuid",
			    host_name(host, peer), text, at < sizeof(text) ? "" : "...");
}

static int compare_memory(struct host *host, unsigned int peer, const struct record *record,
			  uint64_t free_kib, struct answer *answer)
{
	uint64_t need = record_overhead_kib(record, peer);
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

static bool has_name(struct json_object *list, const char *wanted)
{
	const char *name;
	size_t i;

	for (i = 0; i < json_object_array_length(list); i++) {
		name = json_object_get_string(json_object_array_get_idx(list, i));
		if (name && !strcmp(name, wanted))
			return true;
	}
	return false;
}

/* Both files have to have the same hosts, with the same numbers: the dsmds speak in numbers. */
static int compare_hosts(struct host *host, unsigned int peer, const struct record *record,
			 struct json_object *list, struct answer *answer)
{
	unsigned int i, nr = host->config.nr_hosts;
	const char *name;

	if (!list || !json_object_is_type(list, json_type_array))
		return answer_error(answer, "internal", "host %s: no list of hosts", host_name(host, peer));
	for (i = 0; i < nr; i++)
		if (record_has_host(record, i) && i != peer && !has_name(list, host_name(host, i)))
			return answer_error(answer, "unknown-host", "host %s does not know host %s: it is not in its dsm.toml",
					    host_name(host, peer), host_name(host, i));
	if (json_object_array_length(list) != nr)
		return answer_error(answer, "internal", "host %s: its dsm.toml has %zu hosts, the one here %u",
				    host_name(host, peer), json_object_array_length(list), nr);
	for (i = 0; i < nr; i++) {
		name = json_object_get_string(json_object_array_get_idx(list, i));
		if (!name || strcmp(name, host_name(host, i)))
			return answer_error(answer, "internal", "host %s: in its dsm.toml number %u is %.64s, in the one here %s",
					    host_name(host, peer), i, name ? name : "nobody",
					    host_name(host, i));
	}
	return 0;
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
	char text[HOST_TEXT + 1];
	uint64_t abi, free_kib, domid;
	bool hap;
	int rc;

	rc = host->xen->facts(&here);
	if (rc) {
		host_why_not_xen(host, rc, text);
		return answer_error(answer, "internal", "%s", text);
	}
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
	if (compare_hosts(host, peer, record, json_object_object_get(there, "hosts"), answer))
		return -1;
	if (compare_features(host, peer, json_object_object_get(there, "features"), nr, guest, answer))
		return -1;
	if (!hap)
		return answer_error(answer, "page-size", "host %s has no hardware assisted paging: pages of 4 KiB can't be moved there",
				    name);
	if (domid)
		return answer_error(answer, "name-taken", "host %s: domain %llu is called %s, too",
				    name, (unsigned long long)domid, record->guest);
	if (places_compare(host, peer, record, &here, there, answer) ||
	    compare_memory(host, peer, record, free_kib, answer))
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
		answer_pass(answer, &reply);
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

	host->end = 0;		/* libxl may have gone, but this is to be done */
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

struct namesake {
	const struct record *record;
	bool found;
};

static void compare_names(struct host *host, const struct record *record, void *context)
{
	struct namesake *namesake = context;

	(void)host;
	namesake->found |= !strcmp(record->name, namesake->record->name) &&
			   memcmp(record->uuid, namesake->record->uuid, sizeof(record->uuid));
}

/*
 * At home, with the number's lock: nobody else here takes it meanwhile, nor the
 * name, which is that of dsmd's socket.
 */
static int keep_number(struct host *host, struct record *record, struct probed *probed,
		       struct answer *answer)
{
	struct namesake namesake = { .record = record };
	int lock = record_lock_numbers(host), rc;

	if (lock < 0)
		return answer_error(answer, "internal", "the lock of the numbers: %s", strerror(-lock));
	record_each(host, compare_names, &namesake);
	if (namesake.found)
		rc = answer_error(answer, "name-taken", "host %s has another guest called %s, or memory of one; a guest that was renamed keeps its first name here until it ends",
				  host_name(host, host->config.self), record->name);
	else
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

int guest_reserve(struct host *host, unsigned int peer, const struct record *record,
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
			rc = guest_reserve(host, i, record, &reply);
		}
		if (!rc || !reply.word[0])
			return rc;
		release_hosts(host, record, i);
		if (strcmp(reply.word, "number"))
			return answer_pass(answer, &reply);
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
	uint64_t start, size, pool = 0;
	const char *name;

	if (!json_object_is_type(from, json_type_object))
		return answer_error(answer, "internal", "a range is no object");
	if (record_read_vnode(from, &range->vnode, answer) ||
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
			return answer_error(answer, "own-host", "vnode %u: %s is this host; leave host= out",
					    range->vnode, name);
		range->spans = true;
	}
	if (record_is_rings(range) && (start % 4096 || size % KIB_PER_FRAME))
		return answer_error(answer, "sizes", "a range without vnode: byte %llu, %llu KiB: not in units of 4 KiB",
				    (unsigned long long)start, (unsigned long long)size);
	if (!record_is_rings(range) && (start % (UNIT_KIB * 1024) ||
					size % (range->spans ? UNIT_KIB : KIB_PER_FRAME)))
		return answer_error(answer, "sizes", "vnode %u: byte %llu, %llu KiB: not in units of 2 MiB; make size= of each vnode before it a multiple of 2",
				    range->vnode, (unsigned long long)start,
				    (unsigned long long)size);
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

/* Two guests of one UUID: the one that runs keeps its dsmd.  Return: 0; -1. */
static int check_domain_before(struct host *host, const struct record *known,
			       const struct record *record, struct answer *answer)
{
	int rc = known->domid == record->domid ? 0 : record_has_domain(host, known);

	if (!rc)
		return 0;
	if (rc < 0)
		return answer_error(answer, "internal", "whether domain %u is there: %s",
				    known->domid, strerror(-rc));
	return answer_error(answer, "name-taken", "domain %u, %s, has the UUID %s, too; give each guest its own, or leave uuid= out",
			    known->domid, known->guest, known->uuid_text);
}

void guest_enable(struct host *host, const struct record *known, struct record *record,
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
	    places_take(host, request, record, answer) ||
	    places_check_ports(host, record, answer) ||
	    guest_check_domid(host, record->domid, record->uuid, answer))
		return;
	if (known && known->domid == record->domid &&
	    (dsmd_was_started(host, known->uuid_text) || dsmd_lives(host, known->uuid_text))) {
		if (!record_has_same_places(known, record))
			answer_error(answer, "places", "dsmd has other places for vCPUs of this guest, or for other vCPUs");
		else if (!record_is_same(known, record))
			answer_error(answer, "sizes", "dsmd has other ranges for this guest: %u, not %u, or of other places or sizes",
				     known->nr_ranges, record->nr_ranges);
		else if (!dsmd_lives(host, known->uuid_text))
			answer_error(answer, "internal", "dsmd of %s has ended: what it knew of the pages is lost; destroy the guest",
				     known->guest);
		else
			dsmd_start(host, known, answer);
		return;
	}
	if (known) {
		/* What is left of a request that was cut, or of a domain before. */
		if (check_domain_before(host, known, record, answer) ||
		    dsmd_end(host, known, answer))
			return;
		release_hosts(host, known, host->config.nr_hosts);
		record_remove(host, known->uuid_text);
	}
	sweep_name(host, record);
	begin_all(host, record, answer);
}
