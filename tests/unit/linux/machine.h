/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated machine for the driver's operations: a hypervisor that counts
 * extents, memory blocks and extents that may be stuck, vCPUs, xenstore, and a
 * clock that moves only when something takes time.  The ticker and the timer of
 * op.c run when their time has come.
 *
 * The machine checks what must hold at any moment: no extent is populated that
 * has memory, none is given back while Linux uses it, no block leaves Linux
 * while pages are stuck in it.
 */
#ifndef MACHINE_H
#define MACHINE_H

#include "case.h"
#include "elastic.h"

#define BLOCK_EXTENTS	64U
#define BLOCK_BYTES	(BLOCK_EXTENTS * ELASTIC_EXTENT_BYTES)
#define START		(4ULL << 30)
#define MAX_BLOCKS	512U
#define MAX_EXTENTS	(MAX_BLOCKS * BLOCK_EXTENTS)
#define CPUS_MS		3	/* for those of a node to come up */
#define CONTIG_MS	1	/* for extents that nothing keeps */

/* What can fail, in the order in which an attach needs it. */
enum part {
	PART_POPULATE, PART_ADD, PART_ONLINE, PART_CPUS_UP, PART_CPUS_DOWN,
	PART_REMOVE, NR_PARTS
};

struct machine {
	/* Xen */
	unsigned char has_memory[MAX_EXTENTS];
	unsigned short pages[MAX_EXTENTS];	/* of an extent, that are there */
	bool there[MAX_EXTENTS][ELASTIC_EXTENT_PAGES];
	bool refuses[MAX_EXTENTS];
	unsigned short refuses_page[MAX_EXTENTS];	/* + 1: it stops there; 0: nowhere */
	bool no_types;			/* it does not say what is there */
	unsigned int memory;		/* extents, whole or in part */
	u64 left_behind;		/* KiB, by a kernel before */
	int room;			/* extents that it can still give */
	bool others_take;		/* what comes back is somebody else's at once */
	bool in_pieces;			/* it has single pages only */
	int pages_left;			/* single pages, -1: no limit */
	unsigned int address_bits;	/* of the last populate */
	unsigned int extent_ms;		/* for each of a call */
	unsigned int publish_ms;	/* until programs are told */
	unsigned int refreshes;		/* of their page, for what others have changed */
	bool elsewhere;			/* the CPU runs on another host */
	/* Linux */
	bool plugged[MAX_BLOCKS], online[MAX_BLOCKS], stuck[MAX_BLOCKS];
	bool unseen;			/* nobody sees what keeps a block */
	long long stuck_until;		/* ms; 0: for ever */
	unsigned int offline_ms;	/* for a block that nothing keeps */
	unsigned int look_ms;		/* at a page of struct pages */
	unsigned int looked_at, looks;	/* the last block, and how many pages of them */
	bool udev;			/* somebody onlines what fails to */
	bool in_balloon[MAX_EXTENTS];
	unsigned int frozen[MAX_EXTENTS];	/* pages that were free, and have no reference yet */
	int references[MAX_EXTENTS];	/* of pages that the balloon has, or never had memory */
	bool busy[MAX_EXTENTS];		/* cannot be taken by the balloon */
	bool in_use[MAX_EXTENTS];	/* can be moved */
	bool pool[MAX_EXTENTS];		/* a free huge page of a pool */
	unsigned int pool_lost;		/* that the pool has not any more */
	unsigned int marked[MAX_EXTENTS];	/* pages that are PageOffline */
	bool marking;			/* page_offline_begin() */
	long managed;			/* pages of the node that are the allocator's */
	unsigned int unbroken;		/* pages, since somebody else could have the CPU */
	unsigned int taken;		/* extents that were free, for the balloon */
	unsigned int moved, hypercalls;	/* extents, for the balloon; calls of Xen */
	struct notifier_block *memory_notifier;
	unsigned int busy_ms;		/* how long an attempt on one takes */
	struct memory_block blocks[MAX_BLOCKS];
	int add_flags;
	int last_removed;		/* block */
	bool lowest_first;
	int hotplug_locked;
	int expedited;		/* calls of rcu_expedite_gp() that are not undone */
	bool cpus_up, cpu_comes_back, cpu_stays_down;
	u32 cpus_with;		/* extents that the node had as they came up */
	bool guest_is_full;		/* nothing is free but on the node */
	unsigned long used, cache;	/* pages of the node; 0: half of it */
	unsigned long on_lists;		/* of those that look used: until all CPUs empty their lists */
	unsigned int drains;		/* how often they had to */
	unsigned long cache_elsewhere;	/* pages */
	unsigned long home_free;	/* pages; 0: plenty */
	int fails[NR_PARTS];		/* the next but N - 1 fails; 0: none */
	/* The kernel around the driver */
	long long clock;		/* ms */
	long long timer_at, tick_at;	/* 0: not set */
	bool late_tick;			/* the ticker has begun when it is ended */
	bool signal;
	bool xenstore_stalls;
	bool no_watch;			/* it cannot be registered */
	unsigned int by_xenwatch;	/* events for which another thread was woken */
	bool nofs;			/* reclaim waits for no file system */
	bool heeds_sigint, heeds_freezer;	/* the engine's thread */
	struct notifier_block *oom_notifier;
	/* xenstore */
	u32 target;
	u64 generation;
	int acked;
	int versions;			/* that programs are told of */
	int published;			/* the phase last published */
	bool saw_growing;
	bool told_of_drain;		/* by a new version */
	u64 wait_for;			/* version that was waited for */
	unsigned int grace_ms;
	/* When something happens to an operation */
	int steps, cancel_at;
	u32 new_target;
	int later_at;			/* so many steps after that has been read, ... */
	u32 later_target;		/* ... this is the target */
	long long target_at;		/* ms: it comes then; 0: at a step */
	unsigned int target_at_take;	/* ... as this extent but N - 1 is taken as it lies */
	bool grows_then, oom_then, oom_is_not_ours, happened;
	unsigned long left_free;	/* pages elsewhere of a guest that is full */
	unsigned long relief;		/* pages that can be had otherwise */
	unsigned long freed;		/* what the OOM notifier has said */
	char log[8192];
};

extern struct machine machine;
extern struct elastic_node node;

/* Start with a node of so many blocks, absent. */
void boot(unsigned int blocks);

/* What a kernel before has had, and what somebody else takes. */
void give_extents(unsigned int first, unsigned int count);
void lose_pages(unsigned int extent, unsigned int first, unsigned int end);

/* The kernel runs out of memory: what it is told was freed. */
unsigned long out_of_memory(void);

/* Something takes time: the ticker and the timer run. */
void pass(unsigned int ms);

/* The watch fires, after a change in xenstore, and wakes the engine: one round, or as many as it takes. */
void fire_watch(void);
void wake_engine(void);
/* Another round, for what has fired since. */
void engine_goes_on(void);

#endif
