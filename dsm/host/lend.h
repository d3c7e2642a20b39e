/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much of this host's memory the VMs of other homes have.
 *
 * Context: the process of a request of another host, with the VM's lock.
 */
#ifndef HOST_LEND_H
#define HOST_LEND_H

#include "record.h"

/** In the record at hand, not in the file.  @range: that has @kib; NULL: each. */
void lend_set(struct record *record, const struct record_range *range, uint64_t kib);

/**
 * Write the record.
 * @more: it has more than before: only if that can be lent.
 * Return: 0; -1, and *answer says why: "memory-there" if it can't.
 */
int lend_write(struct host *host, const struct record *record, bool more,
	       struct answer *answer);

#endif
