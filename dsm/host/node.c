// SPDX-License-Identifier: GPL-2.0
/*
 * "node", larger: the other host's dsmd is there (begin), both are connected, memory
 * there, then the vnode here.  Smaller: the vnode here, then memory there.  The
 * last one of a host that goes: the connection ends, and the dsmd there.
 *
 * Hosts where vCPUs are to run do as "here" does, before it, and are connected with the
 * others that have memory (mesh.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"
#include "mesh.h"
#include "wire.h"

struct node {
	struct host *host;
	const struct record *record;
	const struct record_range *range;
	uint64_t size, pool;		/* that are to be; KiB */
	uint64_t before;		/* the size that is */
	bool others;			/* another vnode of that host has memory */
	struct mesh mesh;
};

static int read_sizes(struct node *node, struct answer *answer)
{
	if (mesh_read(&node->mesh, node->host, node->record, answer))
		return -1;
	node->before = node->mesh.kib[node->range - node->record->range];
	node->others = mesh_has(&node->mesh, node->range->host, node->range);
	return 0;
}

static int ask_there(struct node *node, struct json_object *words, double seconds,
		     struct answer *answer)
{
	struct answer reply = { 0 };
	int rc = ask_host(node->host, node->range->host, words, seconds, &reply);

	if (rc)
		answer_pass(answer, &reply);
	answer_free(&reply);
	return rc;
}

static int node_there(struct node *node, uint64_t size, struct answer *answer)
{
	struct json_object *words = question_words("node", node->record->uuid_text);

	json_object_object_add(words, "vnode", json_object_new_int((int)node->range->vnode));
	json_object_object_add(words, "size_kib", json_object_new_uint64(size));
	return ask_there(node, words, HOST_NODE_S, answer);
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
		      host_opening_s(host, !strcmp(op, "leave")), NULL, answer);
	there = question_reply(&question, host, &reply);
	if (!rc && there)
		rc = answer_pass(answer, &reply);
	answer_free(&reply);
	return rc;
}

/* Its dsmd is there.  A host that was booted meanwhile has forgotten our place. */
static int begin_there(struct node *node, struct answer *answer)
{
	const char *uuid = node->record->uuid_text;
	struct answer reply = { 0 }, place = { 0 };
	int rc = ask_there(node, question_words("begin", uuid), HOST_START_S + HOST_ASK_S, &reply);

	if (rc && !strcmp(reply.word, "unknown-vm") && !node->before && !node->others) {
		rc = guest_reserve(node->host, node->range->host, node->record, &place);
		if (rc)
			answer_pass(answer, &place);
		else
			rc = ask_there(node, question_words("begin", uuid),
				       HOST_START_S + HOST_ASK_S, answer);
	} else if (rc) {
		answer_pass(answer, &reply);
	}
	answer_free(&place);
	answer_free(&reply);
	return rc;
}

/* The last vnode of a host has gone: so do the connection, and the dsmd there. */
static int leave_host(struct node *node, struct answer *answer)
{
	if (mesh_part(&node->mesh, node->range->host, answer) ||
	    both_ends(node, "leave", answer))
		return -1;
	return ask_there(node, question_words("stop", node->record->uuid_text),
			 HOST_ASK_S * 2, answer);
}

static int enlarge(struct node *node, struct answer *answer)
{
	struct answer undo = { 0 };
	int rc;

	rc = begin_there(node, answer);
	if (!rc)
		rc = both_ends(node, "connect", answer);
	/* It is leaving still: who wants it back does not wait for that. */
	if (rc && !strcmp(answer->word, "busy"))
		return rc;
	if (!rc)
		rc = mesh_join(&node->mesh, node->range->host, answer);
	if (!rc)
		rc = node_there(node, node->size, answer);
	if (!rc) {
		rc = mesh_tell(&node->mesh, node->range, node->size, answer);
		if (!rc)
			rc = node_here(node, node->size, node->pool, answer);
		if (rc) {
			mesh_tell(&node->mesh, node->range, node->before, &undo);
			answer_free(&undo);
			node_there(node, node->before, &undo);
		}
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
	    mesh_tell(&node->mesh, node->range, node->size, answer) ||
	    node_there(node, node->size, answer))
		return -1;
	return node->size || node->others ? 0 : leave_host(node, answer);
}

void guest_node(struct host *host, const struct record *record,
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
	if (!dsmd_lives(host, record->uuid_text)) {
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

void guest_leaving(struct host *host, const struct record *record,
		   struct json_object *request, struct answer *answer)
{
	const struct record_range *range;
	uint64_t vnode, size;
	char command[96];

	if (read_number(request, "vnode", 0, 63, &vnode, answer) ||
	    read_number(request, "size_kib", 0, MOST_KIB, &size, answer))
		return;
	range = record_vnode(record, (unsigned int)vnode);
	if (!range || size > range->frames * KIB_PER_FRAME) {
		answer_error(answer, "sizes", "vnode %llu: %llu KiB: it is not one of another host, or has less",
			     (unsigned long long)vnode, (unsigned long long)size);
		return;
	}
	snprintf(command, sizeof(command), "leaving %llu %llu", (unsigned long long)vnode,
		 (unsigned long long)size);
	ask_dsmd(host, record->name, command, HOST_STATE_S, NULL, answer);
}
