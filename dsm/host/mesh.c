// SPDX-License-Identifier: GPL-2.0
/*
 * Two hosts of a VM of which neither is the home (mesh.h).
 *
 *	join HOST		there: its dsmd, with that host's
 *	share VNODE SIZE	so much of another host's vnode may be asked for there
 *	part HOST		the opposite of join
 *
 * Each end of a pair waits for the other one, so both are asked at once.  Memory that
 * comes is there before others may ask for it, and goes when nobody may any more.
 *
 * A host of which the home's dsmd has no memory, but with which it is connected, is left
 * of an attach that was cut: it is told of what goes, as any other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"
#include "mesh.h"
#include "wire.h"

bool mesh_needs(const struct record *record, unsigned int a, unsigned int b)
{
	/* The home is none: what it has does not span. */
	return a != b && record_has_host(record, a) && record_has_host(record, b) &&
	       (record_vcpus_of(record, a) || record_vcpus_of(record, b));
}

bool mesh_is_needed(const struct host *host, const struct record *record, unsigned int peer)
{
	unsigned int i;

	for (i = 0; i < host->config.nr_hosts; i++)
		if (mesh_needs(record, peer, i))
			return true;
	return false;
}

void mesh_tell_probe(struct answer *answer)
{
	answer_add(answer, "joins", json_object_new_boolean(true));
}

/* ---- What there is ---- */

static int take_sizes(struct mesh *mesh, struct json_object *state, struct answer *answer)
{
	const struct record *record = mesh->record;
	bool found[DSM_DESCRIPTION_RANGES] = { false };
	struct json_object *list = NULL, *one;
	const struct record_range *range;
	uint64_t vnode, size;
	unsigned int k;
	size_t i;

	json_object_object_get_ex(state, "vnodes", &list);
	for (i = 0; list && json_object_is_type(list, json_type_array) &&
		    i < json_object_array_length(list); i++) {
		one = json_object_array_get_idx(list, i);
		if (read_number(one, "vnode", 0, 63, &vnode, answer) ||
		    read_number(one, "size_kib", 0, MOST_KIB, &size, answer))
			return -1;
		range = record_vnode(record, (unsigned int)vnode);
		if (!range)
			continue;
		mesh->kib[range - record->range] = size;
		found[range - record->range] = true;
	}
	for (k = 0; k < record->nr_ranges; k++)
		if (record->range[k].spans && !found[k])
			return answer_error(answer, "internal", "the dsmd of %s does not know vnode %u",
					    record->guest, record->range[k].vnode);
	return 0;
}

int mesh_read(struct mesh *mesh, struct host *host, const struct record *record,
	      struct answer *answer)
{
	struct json_object *state;
	char *text;
	int rc;

	*mesh = (struct mesh){ .host = host, .record = record };
	if (ask_dsmd(host, record->name, "state", HOST_ASK_S, &text, answer))
		return -1;
	state = text ? read_line_json(text, strcspn(text, "\n"), answer) : NULL;
	rc = state ? take_sizes(mesh, state, answer) : -1;
	json_object_put(state);
	free(text);
	return rc;
}

bool mesh_has(const struct mesh *mesh, unsigned int peer, const struct record_range *but)
{
	const struct record *record = mesh->record;
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		if (record->range[i].spans && record->range[i].host == peer &&
		    mesh->kib[i] && &record->range[i] != but)
			return true;
	return false;
}

/* Is the home's dsmd connected with a host?  If it can't be known: yes. */
static bool is_connected(struct mesh *mesh, unsigned int peer)
{
	struct json_object *status = NULL, *peers, *one, *up;
	struct answer ignored = { 0 };
	bool connected = true;
	char *text = NULL;

	if (!ask_dsmd(mesh->host, mesh->record->name, "status", HOST_ASK_S, &text, &ignored) && text)
		status = json_tokener_parse(text);
	if (status && json_object_object_get_ex(status, "peers", &peers) &&
	    json_object_object_get_ex(peers, host_name(mesh->host, peer), &one) &&
	    json_object_object_get_ex(one, "up", &up))
		connected = json_object_get_boolean(up);
	json_object_put(status);
	free(text);
	answer_free(&ignored);
	return connected;
}

/* ---- What is asked ---- */

static int pass(struct answer *answer, struct answer *reply, int rc)
{
	if (rc)
		answer_pass(answer, reply);
	answer_free(reply);
	return rc;
}

static int share(struct mesh *mesh, unsigned int at, const struct record_range *range,
		 uint64_t kib, struct answer *answer)
{
	struct json_object *words = question_words("share", mesh->record->uuid_text);
	struct answer reply = { 0 };

	json_object_object_add(words, "vnode", json_object_new_int((int)range->vnode));
	json_object_object_add(words, "size_kib", json_object_new_uint64(kib));
	return pass(answer, &reply, ask_host(mesh->host, at, words, HOST_NODE_S, &reply));
}

static int ask_end(struct mesh *mesh, struct question *question, const char *op,
		   unsigned int at, unsigned int with, struct answer *reply)
{
	struct json_object *words = question_words(op, mesh->record->uuid_text);

	json_object_object_add(words, "host", json_object_new_string(host_name(mesh->host, with)));
	return question_ask(question, mesh->host, at, words,
			    host_opening_s(mesh->host, !strcmp(op, "part")) + HOST_ASK_S, reply);
}

/* "join" or "part": who waits for the other one in vain says less than that one. */
static int both(struct mesh *mesh, const char *op, unsigned int a, unsigned int b,
		struct answer *answer)
{
	struct question question[2] = { { .peer = 0 } };
	struct answer reply[2] = { { .more = NULL } };
	int rc[2], first;

	rc[0] = ask_end(mesh, &question[0], op, a, b, &reply[0]);
	if (rc[0])
		return pass(answer, &reply[0], rc[0]);
	rc[1] = ask_end(mesh, &question[1], op, b, a, &reply[1]);
	if (!rc[1])
		rc[1] = question_reply(&question[1], mesh->host, &reply[1]);
	rc[0] = question_reply(&question[0], mesh->host, &reply[0]);
	first = rc[1] && (!rc[0] || !strcmp(reply[0].word, "unreachable"));
	pass(answer, &reply[first], rc[first]);
	answer_free(&reply[!first]);
	return rc[0] || rc[1] ? -1 : 0;
}

/* All that a host with vCPUs has to know of another one's. */
static int share_all(struct mesh *mesh, unsigned int at, unsigned int of, bool none,
		     struct answer *answer)
{
	const struct record *record = mesh->record;
	unsigned int i;

	if (!record_vcpus_of(record, at))
		return 0;
	for (i = 0; i < record->nr_ranges; i++)
		if (record->range[i].host == of &&
		    share(mesh, at, &record->range[i], none ? 0 : mesh->kib[i], answer))
			return -1;
	return 0;
}

int mesh_join(struct mesh *mesh, unsigned int peer, struct answer *answer)
{
	unsigned int i;

	for (i = 0; i < mesh->host->config.nr_hosts; i++) {
		if (!mesh_needs(mesh->record, peer, i) || !mesh_has(mesh, i, NULL))
			continue;
		if (both(mesh, "join", peer, i, answer) ||
		    share_all(mesh, peer, i, false, answer))
			return -1;
	}
	return 0;
}

int mesh_tell(struct mesh *mesh, const struct record_range *range, uint64_t kib,
	      struct answer *answer)
{
	unsigned int i;

	for (i = 0; i < mesh->host->config.nr_hosts; i++)
		if (mesh_needs(mesh->record, range->host, i) && mesh_has(mesh, i, NULL) &&
		    record_vcpus_of(mesh->record, i) && share(mesh, i, range, kib, answer))
			return -1;
	return 0;
}

int mesh_part(struct mesh *mesh, unsigned int peer, struct answer *answer)
{
	unsigned int i;

	for (i = 0; i < mesh->host->config.nr_hosts; i++) {
		if (!mesh_needs(mesh->record, peer, i) ||
		    (!mesh_has(mesh, i, NULL) && !is_connected(mesh, i)))
			continue;
		if (share_all(mesh, i, peer, true, answer) ||
		    share_all(mesh, peer, i, true, answer) ||
		    both(mesh, "part", peer, i, answer))
			return -1;
	}
	return 0;
}

int mesh_check(struct mesh *mesh, unsigned int peer, struct answer *answer)
{
	unsigned int i;

	if (mesh_join(mesh, peer, answer))
		return -1;
	for (i = 0; i < mesh->record->nr_ranges; i++)
		if (mesh->record->range[i].host == peer &&
		    mesh_tell(mesh, &mesh->record->range[i], mesh->kib[i], answer))
			return -1;
	return 0;
}
