/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A hypervisor that is played: the states and bytes of one slice's pages, the
 * refusals of xen/include/public/dsm.h, a ring that can be full, a pool that
 * can be empty, -EBUSY by chance and for as long as a page is pinned, and vCPUs
 * that wait until the page they miss is woken.
 */
#ifndef PLAYED_XEN_H
#define PLAYED_XEN_H

#include "page.h"
#include "xen_calls.h"

#define PLAYED_PAGES	2048
#define PLAYED_VCPUS	4
#define PLAYED_LOG	64
#define PLAYED_WORDS	(DSM_PAGE_BYTES / 8)
#define PLAYED_HOLES	8

struct played_page {
	uint8_t state;			/* enum dsm_xen_state */
	bool pinned;			/* in use: -EBUSY to who takes it away */
	bool elsewhere;			/* its home is: freeing it does nothing */
	bool special;			/* no plain memory: -EPERM */
	bool own;			/* not even for an access of another slice */
	uint8_t foreign_want;		/* another domain has missed it, and has no answer yet; 0: none has */
	uint64_t foreign_first, foreign_last;	/* in these entries of the ring, as wanted */
	bool foreign_hole;		/* it finds no memory, once */
	uint64_t word[PLAYED_WORDS];
};

struct played_vcpu {
	bool waits, unsent, of_u;
	bool at_hole;			/* it finds no memory at these, with the access at hole_rip */
	unsigned int nr_holes;		/* ever; the last ones count */
	uint64_t hole_gfn[PLAYED_HOLES], hole_rip;
	uint64_t gfn, rip;
	uint8_t want;
};

struct played_xen {
	struct dsm_xen xen;
	unsigned int nr_pages, nr_vcpus;
	struct played_page page[PLAYED_PAGES];
	struct played_vcpu vcpu[PLAYED_VCPUS];
	struct dsm_xen_entry ring[128];
	unsigned int ring_size, in_ring;
	uint64_t nr_read;		/* entries, ever */
	bool full;
	unsigned int pool, host_frames;	/* frames here; that the host could give */
	unsigned int busy_permille, nomem_permille;
	unsigned int nomem_uncaches;	/* so many UNCACHEs are -ENOMEM */
	unsigned int merges;		/* tried */
	uint64_t merged;		/* the last that was done */
	int break_merge;
	unsigned int crashes, wakes, operations, calls, keepalives, keepalive_ms;
	unsigned int refused[134];	/* by errno, of page operations */
	int break_page, break_misses, break_keepalive;	/* -errno of these calls */
	bool ended;		/* the domain is being destroyed: they all are -EINVAL then */
	struct dsm_xen_waits told;	/* by Xen's counters: only what the test says */
	int break_waits;
	int break_pool_del, break_away, break_drop, break_fill, break_empty, break_limit, break_memory;
	uint64_t part;			/* most frames that fill() and empty() do; 0: all */
	uint64_t limit_kib;		/* of the domain, which has 1000; 0: none */
	uint64_t limit;			/* of frames that are populated, as dsmd says; 0: none */
	int64_t populated;		/* less those that were freed */
	/* vCPUs that run in several slices: this one's number, how many there are. */
	unsigned int slice, nr_slices;
	bool elsewhere[PLAYED_VCPUS];	/* the vCPU is a ghost here */
	struct dsm_vcpu_msg log[PLAYED_LOG];	/* what was done for other slices, in its order */
	unsigned int nr_log, sent;	/* sent: events and ports, whether there was room or not */
	void (*on_send)(void);		/* while one is sent for another slice */
	struct dsm_vcpu_msg asks[PLAYED_VCPUS];	/* calls that wait; type 0: none */
	struct dsm_vcpu_msg accesses[PLAYED_VCPUS];	/* and accesses */
	bool access_unsent[PLAYED_VCPUS];	/* there was no room in the ring */
	struct dsm_vcpu_msg accessed[PLAYED_VCPUS];	/* the last answer */
	unsigned int made;		/* accesses, for other slices */
	int break_access;
	uint64_t cookie;
	unsigned int next_port, call_tries;
	uint64_t info_gfn;		/* where shared_info is; 0: nowhere */
	unsigned int info_calls;	/* SHARED_INFO */
	bool shut;
	int break_send, break_call, break_reply, break_shutdown, break_info;
	bool no_foreign;		/* there is no room for foreign misses */
	unsigned int self;		/* this host */
	unsigned int pauses;		/* more than unpauses */
	unsigned int others;		/* the same, of somebody else */
	bool up[PLAYED_VCPUS];		/* the vCPU is, which runs here */
	uint64_t info[PLAYED_VCPUS];	/* where its vcpu_info is; 0: nowhere */
	struct dsm_vcpu_msg at_place;	/* this comes into the ring with the next PLACE; type 0: nothing */
	unsigned int busy_places;	/* so many PLACEs are -EBUSY */
	int break_pause;
	bool endless;			/* the ring is full of what other domains miss, always */
	unsigned int endless_reads;
	/* Before the first start. */
	unsigned int places;		/* PLACEs */
	uint8_t place[PLAYED_VCPUS];	/* the host of the last one; 0xff: none */
	struct dsm_vcpu_msg time;	/* in slice 0: what it is; in others: what was set */
	uint8_t policy[64];		/* at the beginning of that; the rest is zeros */
	bool time_is_set, policy_is_set, started;
	char more_features[32];		/* that set_policy() finds */
	bool has_begun;			/* a vCPU, by SIPI */
	int break_place, break_time, break_policy;
	uint32_t tsc_khz;		/* 0: none */
	uint64_t tsc_offset;
	unsigned int jumps;		/* JUMPs, those that are refused, too */
	uint64_t jumped;		/* ticks, in all */
	int break_jump;
	bool must_not_refuse;		/* but by chance, pins and specials */
	/* before a page that was not here is zeros; @wanted: what vCPUs wait for, 0: none does */
	void (*on_zero)(struct played_xen *played, uint64_t gfn, uint8_t wanted);
};

enum played_access {
	PLAYED_MISS,			/* the vCPU waits */
	PLAYED_DONE,
	PLAYED_HOLE,
	PLAYED_ACCESS,			/* the page is in U: the vCPU has to make an access of it */
};

/** All pages are holes, the pool has @pool frames. */
void played_init(struct played_xen *played, unsigned int nr_pages,
		 unsigned int nr_vcpus, unsigned int ring_size,
		 unsigned int pool);

/** A vCPU, or NO_VCPU for another domain, uses a page. */
#define NO_VCPU	UINT32_MAX
enum played_access played_use(struct played_xen *played, unsigned int vcpu,
			      uint64_t gfn, unsigned int want, uint64_t rip);

/** A vCPU's instruction has been executed: it is told of no hole any more. */
void played_goes_on(struct played_xen *played, unsigned int vcpu);

/**
 * A vCPU makes one access to a page in U, which waits: DSM_ACCESS_*, of 8 bytes, or with
 * the width in it.  Return: there was room in the ring; else it comes there with the rest.
 */
bool played_access(struct played_xen *played, unsigned int vcpu, unsigned int what,
		   uint64_t address, uint64_t old, uint64_t value);

/** A vCPU needs a page in U for what is no access. */
void played_need(struct played_xen *played, unsigned int vcpu, uint64_t gfn, uint64_t rip);

/** The guest frees what it has in M, or populates a hole. */
bool played_guest_frees(struct played_xen *played, uint64_t gfn);
bool played_guest_populates(struct played_xen *played, uint64_t gfn);

/**
 * The guest sends an EVENT or PORTS, or makes a CALL: into the ring as Xen does.
 * Return: there was room.
 */
bool played_says(struct played_xen *played, const struct dsm_vcpu_msg *msg);

/** Return: does any vCPU wait? */
bool played_waits(const struct played_xen *played);

#endif
