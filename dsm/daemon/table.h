/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The pages of a VM that are not in their first state, by gfn, each with its
 * buffer and the time at which something is due.
 *
 * Memory comes in blocks and is never given back before the end: entries that
 * are free are used again.  Buffers are a fixed number, since the engine
 * bounds how many pages are under way.  Looking up is O(1), the next time
 * that is due is O(1), changing one is O(log n).
 *
 * Context: one thread, no locks.
 */
#ifndef DSM_TABLE_H
#define DSM_TABLE_H

#include <stddef.h>
#include <sys/queue.h>

#include "page.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_NEVER	UINT64_MAX

struct dsm_entry {
	struct dsm_page page;
	struct dsm_entry *next;		/* of the same hash, or free */
	uint8_t *buffer;		/* DSM_PAGE_BYTES, or NULL */
	size_t place;			/* in the heap; 0: nothing is due */
	uint64_t due;			/* ns; the earlier of lease_look and retry_due */
	uint64_t lease_due;		/* the lease ends, or counts no more */
	uint64_t lease_end;		/* lease_due when it was seen to be over */
	uint64_t lease_look;		/* when that is looked at: then, or later if nobody waits */
	uint64_t retry_due;		/* the page was in use */
	uint64_t busy_since;		/* ns; 0: not in use */
	uint32_t backoff_ns;
	uint32_t lease_vcpu;		/* for whom it came */
	uint64_t asked, answered;	/* ns: our request went out, its answer came; 0: none */
	uint64_t served;		/* ns: a request of another host came; 0: none */
	uint8_t lease;			/* enum dsm_lease for which lease_due is */
	bool counted;			/* it uses a frame of the pool */
	bool asking;			/* our request is out */
	bool writing;			/* our PUTM is out */
	uint8_t range;			/* that it is in: its place in struct dsm_vm */
	bool evictable;			/* it is in the ring of the clock */
	bool left, shared, moved;	/* as counted for its range */
	bool apart;			/* at home, and not in M: its 2 MiB are in pieces */
	bool referenced;		/* missed since the clock's hand came by */
	bool evacuating;		/* under way, to its home */
	bool fetching;			/* our request is out, and a prefetch */
	bool fetched : 1, fetched_here : 1;	/* by prefetch, and not used yet; it came */
	bool foreign : 1;		/* a tool, or a call for another host, has missed it */
	bool uncached : 1;		/* not at home: Xen has it in U */
	bool needed : 1;		/* and somebody can't do with that */
	bool used_here : 1;		/* at home, and in use: others were told to use it here */
	bool special;			/* Xen says that it is no plain memory */
	uint8_t owed;			/* enum owed: whose answer is waited for */
	uint32_t fetched_for;		/* not at home: a vCPU, or none of them: who empties a range */
	uint32_t free_since;		/* ms; used here, or private: nobody refers to it; 0: somebody does */
	uint64_t owed_since;		/* ns; 0: nobody's */
	TAILQ_ENTRY(dsm_entry) answer;
	TAILQ_ENTRY(dsm_entry) clock;
};

struct dsm_table {
	struct dsm_entry **bucket;
	size_t nr_buckets;		/* a power of two */
	size_t nr;			/* entries in use */
	struct dsm_entry *free;
	size_t nr_free;
	struct dsm_block *blocks;
	struct dsm_entry **heap;	/* from 1 on */
	size_t nr_heap, heap_size;
	uint8_t **buffers;		/* free ones */
	size_t nr_buffers, all_buffers;
};

/**
 * @buffers: @nr_buffers pages; the caller's.
 * Return: 0 or -ENOMEM.
 */
int dsm_table_init(struct dsm_table *table, uint8_t *buffers, size_t nr_buffers);
void dsm_table_exit(struct dsm_table *table);

/** Return: the entry of a page, or NULL: it is in its first state. */
struct dsm_entry *dsm_table_find(const struct dsm_table *table, uint64_t gfn);

/**
 * The entry of a page, made if there is none.
 * Return: NULL without memory, or for a gfn that has no home.
 */
struct dsm_entry *dsm_table_get(struct dsm_table *table, const struct dsm_vm *vm,
				uint64_t gfn);

/** The page is in its first state again: no buffer, nothing due, not evictable. */
void dsm_table_forget(struct dsm_table *table, struct dsm_entry *entry);

/** Give it a buffer.  Return: is there one? */
bool dsm_table_lend(struct dsm_table *table, struct dsm_entry *entry);
void dsm_table_take_back(struct dsm_table *table, struct dsm_entry *entry);

/** One of the times of @entry has changed. */
void dsm_table_reschedule(struct dsm_table *table, struct dsm_entry *entry);

/** Return: what is due first, or NULL. */
struct dsm_entry *dsm_table_first_due(const struct dsm_table *table);

/**
 * All entries, in no order: begin with NULL, until NULL comes.  None may be made
 * meanwhile; one may be forgotten after the next one has been asked for.
 */
struct dsm_entry *dsm_table_next(const struct dsm_table *table,
				 struct dsm_entry *before);

#ifdef __cplusplus
}
#endif

#endif
