/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two hosts of a VM of which neither is the home.  A host where vCPUs run needs the pages
 * of all the others, and its vCPUs are sent to by those of the others; so where one of
 * both has a place of a vCPU their dsmds are connected, and it knows how much memory the
 * vnodes of the other have.  The home asks both (peer.c); decision 0123.
 *
 * Context: the process of a request at the home, with the VM's lock (record_lock()).
 */
#ifndef HOST_MESH_H
#define HOST_MESH_H

#include "record.h"

struct mesh {
	struct host *host;
	const struct record *record;
	uint64_t kib[DSM_DESCRIPTION_RANGES];	/* of each range that spans, says the home's dsmd */
};

/** Have these two to be connected when both have memory of the VM? */
bool mesh_needs(const struct record *record, unsigned int a, unsigned int b);

/** Has a host to be connected with another one that is not the home? */
bool mesh_is_needed(const struct host *host, const struct record *record, unsigned int peer);

/** What "probe" says for it. */
void mesh_tell_probe(struct answer *answer);

/** Ask the home's dsmd.  Return: 0; -1. */
int mesh_read(struct mesh *mesh, struct host *host, const struct record *record,
	      struct answer *answer);

/** Has a vnode of a host memory, but for @but, which may be NULL? */
bool mesh_has(const struct mesh *mesh, unsigned int peer, const struct record_range *but);

/**
 * Connect a host with those that have memory, and tell it of that.
 * Return: 0; -1, and some of it may be done.
 */
int mesh_join(struct mesh *mesh, unsigned int peer, struct answer *answer);

/** Tell the others with vCPUs how much memory a vnode has.  Return: 0; -1. */
int mesh_tell(struct mesh *mesh, const struct record_range *range, uint64_t kib,
	      struct answer *answer);

/** The opposite of mesh_join(): its own vnodes have no memory any more.  Return: 0; -1. */
int mesh_part(struct mesh *mesh, unsigned int peer, struct answer *answer);

/** Both of mesh_join() and mesh_tell() for a host that is there: what is, stays. */
int mesh_check(struct mesh *mesh, unsigned int peer, struct answer *answer);

#endif
