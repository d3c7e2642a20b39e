/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The page protocol of DSM as a toy: one writer or many readers, and counts of
 * those who had to wait. Plain C without QEMU, so that it is tested alone.
 *
 * State of a page, a byte:
 *	0			nobody has touched it since the play began
 *	set of hosts		these have a copy (S)
 *	BOUNCE_OWNED | host	only this one has it, and may write (M)
 *
 *	state		read here	write here	then
 *	0		free		free		M here
 *	M here		hit		hit		as before
 *	M elsewhere	READ		WRITE		S {there, here}, M here
 *	S with here	hit		UPGRADE		as before, M here
 *	S without here	READ		WRITE		S and here, M here
 *
 * The first touch is free, or each page of the guest would count once for the
 * host that it is not at: what is of interest is what goes to and fro.
 *
 * An instruction that reads and writes (LOCKed, or `inc` of memory) faults once
 * on a CPU, for writing, since it looks its page up as a writer. QEMU tells of
 * its read and of its write, in this order. So what the instruction that has
 * just had a READ of the same address misses for writing is no fault of its own:
 * that READ becomes a WRITE.
 *
 * Locking: bounce_hits() needs no lock if `state` is read atomically; an answer
 * may be as old as the access is quick. All the rest is the caller's to lock.
 */
#ifndef BOUNCE_PROTOCOL_H
#define BOUNCE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	BOUNCE_MAX_CPUS = 64,
	BOUNCE_MAX_HOSTS = 4,
	BOUNCE_OWNED = 0x80,
	BOUNCE_MAX_PAGES = 1 << 22,	/* 16 GiB */
	BOUNCE_MAX_ROWS = 1 << 16,	/* what comes later is counted as `lost` */
	BOUNCE_SLOTS = 2 * BOUNCE_MAX_ROWS,
};

_Static_assert((1 << BOUNCE_MAX_HOSTS) <= BOUNCE_OWNED, "a bit for each host, beside BOUNCE_OWNED");
_Static_assert((BOUNCE_SLOTS & (BOUNCE_SLOTS - 1)) == 0, "slots are found by a mask");

enum bounce_kind { BOUNCE_READ, BOUNCE_WRITE, BOUNCE_UPGRADE, BOUNCE_KINDS };

/* Who waited for what, and how often. */
struct bounce_row {
	uint64_t page, pc, va;
	uint8_t host, kind;
	uint64_t count;
};

struct bounce_read {			/* a vCPU's last fault, if that was a READ */
	uint64_t pc, va;
	bool pending;
};

struct bounce {
	uint8_t *state;			/* by page */
	uint64_t pages;
	uint64_t faults[BOUNCE_MAX_HOSTS][BOUNCE_KINDS];
	uint64_t lost;			/* faults for which there was no row */
	struct bounce_read last[BOUNCE_MAX_CPUS];
	size_t rows;
	struct bounce_row row[BOUNCE_MAX_ROWS];
	uint32_t slot[BOUNCE_SLOTS];	/* number of a row and 1; 0: free */
};

/* Whether a host may do so without waiting. */
static inline bool bounce_hits(uint8_t state, unsigned int host, bool write)
{
	uint8_t here = 1u << host;

	return write ? state == (BOUNCE_OWNED | here) : (state & here) != 0;
}

/* The state after it. */
static inline uint8_t bounce_after(uint8_t state, unsigned int host, bool write)
{
	uint8_t here = 1u << host;

	if (write || !state)
		return BOUNCE_OWNED | here;
	if (state == (BOUNCE_OWNED | here))
		return state;
	return (state & ~BOUNCE_OWNED) | here;
}

/* What is waited for by who does not hit; `state` is not 0. */
static inline enum bounce_kind bounce_kind_of(uint8_t state, unsigned int host, bool write)
{
	if (!write)
		return BOUNCE_READ;
	return state & 1u << host ? BOUNCE_UPGRADE : BOUNCE_WRITE;
}

/* The row of these, made if need be; NULL if there is no room. */
static inline struct bounce_row *bounce_row_of(struct bounce *bounce, uint64_t page, uint64_t pc, uint64_t va,
					       unsigned int host, enum bounce_kind kind)
{
	uint64_t hash = (page * 0x9e3779b97f4a7c15ull ^ pc) * 0xff51afd7ed558ccdull ^ va * 0xc4ceb9fe1a85ec53ull;
	size_t at = (hash ^ hash >> 32 ^ (host * BOUNCE_KINDS + kind) * 0x85ebca6bull) & (BOUNCE_SLOTS - 1);

	for (; bounce->slot[at]; at = (at + 1) & (BOUNCE_SLOTS - 1)) {
		struct bounce_row *row = &bounce->row[bounce->slot[at] - 1];

		if (row->page == page && row->pc == pc && row->va == va && row->host == host && row->kind == kind)
			return row;
	}
	if (bounce->rows == BOUNCE_MAX_ROWS)
		return NULL;
	bounce->row[bounce->rows] = (struct bounce_row){ page, pc, va, host, kind, 0 };
	bounce->slot[at] = ++bounce->rows;
	return &bounce->row[bounce->rows - 1];
}

static inline void bounce_count(struct bounce *bounce, uint64_t page, uint64_t pc, uint64_t va, unsigned int host,
				enum bounce_kind kind, int by)
{
	struct bounce_row *row = bounce_row_of(bounce, page, pc, va, host, kind);

	bounce->faults[host][kind] += by;
	if (row)
		row->count += by;
	else
		bounce->lost += by;
}

/*
 * vCPU `cpu` of `host` reads or writes `va`, in `page` (below `pages`), by the instruction at `pc`.
 * Return: it waits, and not because its read has done so already.
 */
static inline bool bounce_access(struct bounce *bounce, unsigned int cpu, unsigned int host, uint64_t page, uint64_t pc,
				 uint64_t va, bool write)
{
	struct bounce_read *last = &bounce->last[cpu];
	uint8_t state = bounce->state[page];
	bool was_read = last->pending && last->pc == pc && last->va == va, again;
	enum bounce_kind kind;

	if (bounce_hits(state, host, write))
		return false;
	__atomic_store_n(&bounce->state[page], bounce_after(state, host, write), __ATOMIC_RELAXED);
	if (!state)
		return false;
	kind = bounce_kind_of(state, host, write);
	last->pending = kind == BOUNCE_READ;
	if (kind == BOUNCE_READ) {
		last->pc = pc;
		last->va = va;
	}
	again = kind != BOUNCE_READ && was_read;
	if (again) {
		bounce_count(bounce, page, pc, va, host, BOUNCE_READ, -1);
		kind = BOUNCE_WRITE;
	}
	bounce_count(bounce, page, pc, va, host, kind, 1);
	return !again;
}

/* From 0 again; pages stay where they are. */
static inline void bounce_clear(struct bounce *bounce)
{
	memset(bounce->faults, 0, sizeof(bounce->faults));
	memset(bounce->last, 0, sizeof(bounce->last));
	memset(bounce->slot, 0, sizeof(bounce->slot));
	bounce->rows = 0;
	bounce->lost = 0;
}

#endif
