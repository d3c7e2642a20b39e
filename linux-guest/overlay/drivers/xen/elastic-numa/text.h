/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the driver says in words: texts that the toolstack shows to people.
 *
 * Pure: no locks, no I/O.  Compiled into the driver and into the unit test.
 */
#ifndef _XEN_ELASTIC_TEXT_H
#define _XEN_ELASTIC_TEXT_H

#include <linux/types.h>

#define ELASTIC_TEXT_LEN	201	/* contract: at most 200 characters */
#define ELASTIC_COMM_LEN	16	/* TASK_COMM_LEN */

/**
 * struct elastic_residue - what keeps pages on a node
 * @pinned: pages with references that no mapping explains
 * @locked: pages that somebody holds locked, as a file system does that waits
 *	for its server
 * @writeback: pages on their way to a device
 * @busy: pages that could move, and did not
 * @unmovable: pages that belong to nobody who could move them
 * @reserved: free huge pages that a pool has promised to somebody, in pages of
 *	4 KiB
 * @poisoned: pages with memory errors
 * @pid: a process that maps a pinned page, or 0
 * @comm: its name, which may hold any byte
 */
struct elastic_residue {
	unsigned long pinned;
	unsigned long locked;
	unsigned long writeback;
	unsigned long busy;
	unsigned long unmovable;
	unsigned long reserved;
	unsigned long poisoned;
	int pid;
	char comm[ELASTIC_COMM_LEN];
};

/**
 * elastic_text_clean() - make a text one line of printable ASCII
 * @text: changed in place; what is not allowed becomes '?'
 *
 * Names of programs and keys of xenstore hold any byte, the contract with the
 * toolstack allows 0x20 to 0x7e.
 */
void elastic_text_clean(char *text);

/**
 * elastic_residue_text() - a residue in words
 * @residue: what was found
 * @text: the result, at most ELASTIC_TEXT_LEN - 1 printable characters
 */
void elastic_residue_text(const struct elastic_residue *residue,
			  char text[ELASTIC_TEXT_LEN]);

/* Pages of a residue, all kinds together. */
static inline unsigned long
elastic_residue_pages(const struct elastic_residue *residue)
{
	return residue->pinned + residue->locked + residue->writeback +
	       residue->busy + residue->unmovable + residue->reserved +
	       residue->poisoned;
}

#endif /* _XEN_ELASTIC_TEXT_H */
