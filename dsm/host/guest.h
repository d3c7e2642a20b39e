/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two requests of the toolstack that change something, at the home of a VM.
 *
 * Context: the process of a request, with the VM's lock (record_lock()).
 */
#ifndef HOST_GUEST_H
#define HOST_GUEST_H

#include "record.h"

#define KIB_PER_FRAME	4u
#define UNIT_KIB	2048u
#define MOST_KIB	(1ull << 30)	/* 1 TiB: of all ranges */

/**
 * Make a domain that has not run one of dsmd's.
 * @known: its record, or that of an earlier domain; NULL.
 * @record: its UUID and domid; the rest is filled in from @request.
 */
void guest_enable(struct host *host, const struct record *known, struct record *record,
		  struct json_object *request, struct answer *answer);

/** A place for a VM at another host, which may have one.  Return: 0; -1. */
int guest_reserve(struct host *host, unsigned int peer, const struct record *record,
		  struct answer *answer);

/** So much memory for a vnode, there and here. */
void guest_node(struct host *host, const struct record *record,
		struct json_object *request, struct answer *answer);

/** The guest is about to empty a vnode but for so much. */
void guest_leaving(struct host *host, const struct record *record,
		   struct json_object *request, struct answer *answer);

#endif
