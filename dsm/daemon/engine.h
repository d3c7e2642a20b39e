/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One VM on one host: between Xen, which has the pages and the vCPUs that wait,
 * the peers, and dsm/core, which decides.
 *
 * What comes in are misses from Xen's ring and what it says of vCPUs, messages,
 * connections that begin and end, and the time.  What goes out are page operations, messages, and the
 * end of the VM with a reason.  There is no I/O here but through the tables of
 * functions that the caller gives, and no clock but the caller's.
 *
 * Page operations are collected and done at once: before the next event of the
 * same page, when there are many, and in dsm_engine_run(), which the caller
 * calls before it sleeps.
 *
 * Bounds.  A host has DSM_ENGINE_REQUESTS requests open at most, and
 * DSM_ENGINE_WRITEBACKS pages on their way home; more of a peer is a breach.  So
 * the number of pages under way, each of which has a buffer, is bounded, too.
 * A miss that can't be a request yet (no frame in the pool, no credit, no
 * connection, too many open) waits in the order in which it came.
 *
 * Frames.  A page whose home is elsewhere takes one from the slice's pool, from
 * the request until it is gone.  Pages whose home is here left theirs in the
 * pool when they went: these are not counted.
 *
 * Progress.  A page that came stays for its lease, of random length, or until
 * its vCPU has retired an instruction.  Xen does not say when that is.  A miss
 * with another instruction pointer says that it was before; else it is taken
 * for granted after token_ns in which the vCPU missed nothing.  Both only decide
 * how long others wait, never what anybody reads.
 *
 * Context: one thread.  Nothing blocks.  Nothing is allocated after create()
 * but entries of pages, in blocks; without memory the VM fails.
 */
#ifndef DSM_ENGINE_H
#define DSM_ENGINE_H

#include "histogram.h"
#include "profile.h"
#include "token.h"
#include "vcpu.h"
#include "xen_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_ENGINE_REQUESTS	256u	/* that a host may have open */
#define DSM_ENGINE_WRITEBACKS	64u	/* pages that a host may be giving up */
#define DSM_ENGINE_VCPUS	512	/* most of a VM */
#define DSM_FRAMES_PER_VCPU	32u	/* least in the pool, and the same for the host */
#define DSM_ENGINE_PREFETCH	64u	/* most of a window, pages */
#define DSM_ENGINE_TEXT		512

struct dsm_engine;

struct dsm_engine_calls {
	/** ns of a clock that is never set back, and not 0. */
	uint64_t (*now)(void *context);
	/** Send, after all others; everything is copied.  A failure ends the connection. */
	void (*send)(void *context, unsigned int host, const struct dsm_msg *msg,
		     const uint8_t *page);
	/** Return: how many requests may be begun; 0: wait for dsm_engine_room(). */
	unsigned int (*room)(void *context, unsigned int host);
	/** The VM has failed; nothing happens here any more.  @text: why.  Don't destroy the engine in it. */
	void (*failed)(void *context, const char *text);
	/** The VM has ended, which is no failure; else as failed(). */
	void (*over)(void *context, const char *text);
	/** Something that an operator should know. */
	void (*warn)(void *context, const char *text);
	/** The end of dsm_engine_drop() or _populate(). */
	void (*finished)(void *context, uint64_t gfn, enum dsm_reason reason);
	/** The end of a dsm_engine_place().  @error: "WORD TEXT"; NULL: it is done. */
	void (*placed)(void *context, const char *error);
	/**
	 * At home: is the guest's time at @host the one that it is here?
	 * @text: if not, why.
	 * Return: 0; -EAGAIN: that is not known yet; -ERANGE: it is not.
	 */
	int (*has_our_time)(void *context, unsigned int host, char text[DSM_ENGINE_TEXT]);
};

struct dsm_engine_params {
	uint8_t self, nr_hosts, token_home;
	const char *name[DSM_MAX_HOSTS];	/* of the hosts, for texts */
	unsigned int nr_ranges;
	struct dsm_range range[DSM_MAX_RANGES];
	bool detached[DSM_MAX_RANGES];	/* no memory at first: dsm_engine_open_range() */
	bool rings[DSM_MAX_RANGES];	/* what is in use in it for pin_ns is so for ever */
	unsigned int nr_vcpus;		/* of the VM: 1 .. DSM_ENGINE_VCPUS */
	unsigned int frames;		/* in the pool for pages of others */
	uint64_t lease_ns;		/* mean length; 0: no leases, no token */
	uint64_t token_ns;		/* an instruction has retired in this time */
	uint64_t retry_ns;		/* of a page in use, at first */
	uint64_t pin_ns;		/* in use for too long */
	uint64_t answer_ns;		/* a host that lives answers a recall in this; 0: never mind */
	uint32_t keepalive_ms;		/* 0: none */
	uint64_t merge_ns;		/* 2 MiB are one page again after so long at home; 0: never */
	unsigned int prefetch;		/* pages ahead of a reader, at most; 0: none */
	bool clear_hint;		/* who overwrites a page gets it without its bytes */
	unsigned int looks;		/* frames that an evacuation looks at at a time; 0: 4096 */
	bool class_u;			/* what can't leave its home is used there */
	const uint8_t *where;		/* host of each vCPU; NULL: no host carries vCPUs */
	uint16_t lenders;		/* set of hosts that only have memory: they ask for nothing */
	const uint8_t *places;		/* where each may be, but at home; with where */
	uint8_t max_losses;		/* before a vCPU wants the token; 0: the core's */
	uint64_t seed;			/* of the lengths of leases */
	struct dsm_xen *xen;
	const struct dsm_engine_calls *calls;
	void *context;
};

struct dsm_engine_counts {
	uint64_t read_faults, write_faults;	/* misses of vCPUs */
	uint64_t foreign_faults;		/* of other domains */
	uint64_t waited_frames, waited_others;	/* misses that waited: for a frame; else */
	uint64_t evicted_shared, evicted_modified;
	uint64_t retries, pins;			/* a page was in use; for too long, or private */
	uint64_t leases_over;			/* that ended by time */
	uint64_t prefetches;			/* pages asked for before they were missed */
	uint64_t prefetch_hits, prefetch_wasted;	/* used; gone before they were */
	uint64_t prefetch_refused;		/* not the time for them */
	uint64_t cleared, clears_late;		/* asked for without bytes; not: nobody waits, or others first */
	uint64_t accesses, accesses_again;	/* to pages that stay at their home; not done there */
	uint64_t accesses_done;			/* here, of other hosts' vCPUs */
	uint64_t uncached;			/* times that a page began to be used at its home */
	uint64_t holes;				/* that were shown to who waited for memory */
	uint64_t tokens;			/* that came */
	uint64_t operations, batches;		/* page operations; calls of Xen for them */
	uint64_t evacuated;			/* pages that came home so */
	uint64_t vcpu_events, vcpu_ports, vcpu_calls;	/* that the ring had for other hosts */
	uint64_t vcpu_merged;			/* of the first two: with what was to be sent still */
	uint64_t vcpu_calls_done, vcpu_calls_again;	/* for other hosts; tried in vain */
	uint64_t merged, merges_refused;	/* pages of 2 MiB that were made; could not be */
	uint32_t evacuating;			/* 1: a range is coming home, now */
	uint32_t leaving;			/* 1: the guest empties a range, now */
	uint32_t frames, frames_used;		/* of the pool, now */
	uint32_t requests;			/* open, now */
	uint32_t waiting;			/* misses that can't be requests yet, now */
	uint64_t pages;				/* known, now */
	uint64_t elsewhere;			/* whose home is here, and which are not, now */
	struct dsm_histogram read_fault, write_fault;	/* from the ring to the wake-up */
	/*
	 * Where their time goes, of requests to other hosts: from the ring until
	 * the request is with the transport; until its answer is read there;
	 * until who waits is woken.
	 */
	struct dsm_histogram queue, wire, install;
	/* From another host's request until its answer is with the transport. */
	struct dsm_histogram serve;
	/* Of an access to a page that stays at its home, from the ring to its answer. */
	struct dsm_histogram access;
	/*
	 * Of what is sent to vCPUs that run elsewhere by the local APIC (EVENT: INIT, SIPI and NMI,
	 * too), and to ports (PORTS: of devices, too), a message each: from the turn that reads the
	 * ring, the first of what is put together, until it is with the transport; there, from when
	 * it is read until Xen has it.
	 */
	struct dsm_histogram ipi_out, ipi_in;
};

/* Of one range, in pages. */
struct dsm_engine_range {
	uint64_t open;		/* from its start on: these have memory */
	unsigned int left;	/* behind that, of which anything is known still */
	unsigned int shared;	/* here, in state S */
	unsigned int moved;	/* here in M and not at home, or home here and elsewhere in M */
	uint64_t faults;	/* misses of vCPUs */
	struct dsm_histogram fault;	/* from the ring to the wake-up */
};

/**
 * @text: what is wrong with the parameters.
 * Return: 0; -EINVAL for parameters out of their ranges, fewer frames than
 * DSM_FRAMES_PER_VCPU for each vCPU while there is a page whose home is
 * elsewhere, and that has memory; -ENOMEM.
 */
int dsm_engine_create(const struct dsm_engine_params *params,
		      struct dsm_engine **engine, char text[DSM_ENGINE_TEXT]);

/** The VM's pages stay as they are; nobody is told. */
void dsm_engine_destroy(struct dsm_engine *engine);

/** A connection is there.  Return: 0; what dsm_vm_peer_up() says. */
int dsm_engine_peer_up(struct dsm_engine *engine, unsigned int host,
		       uint32_t epoch);

/**
 * @host says that it has lost @lost, and its connection ends: if the VM fails by that,
 * dsm_engine_peer_down() tells what both had of it.  Anything that a peer may say.
 */
void dsm_engine_peer_lost(struct dsm_engine *engine, unsigned int host,
			  unsigned int lost);

/**
 * A connection is gone.  The VM fails, unless @orderly and neither pages nor
 * homes were there, or nothing is bound to that host (dsm_engine_bind()) and no
 * page concerns it, and no vCPU runs there: then it has left, and may come back with a later epoch.
 * @why: for the text.
 */
void dsm_engine_peer_down(struct dsm_engine *engine, unsigned int host,
			  bool orderly, const char *why);

/** A message, and its page if it has one.  What a peer must not say fails the VM. */
void dsm_engine_message(struct dsm_engine *engine, unsigned int from,
			const struct dsm_msg *msg, const uint8_t *page);

/**
 * A message about vCPUs, but none of before the first start (TIME, READY, POLICY).
 * @bytes: DSM_VCPU_BYTES.
 */
void dsm_engine_vcpu_message(struct dsm_engine *engine, unsigned int from,
			     const struct dsm_msg *head, const uint8_t *bytes);

/** Return: do vCPUs run at that host, while others run elsewhere? */
bool dsm_engine_runs_vcpus(const struct dsm_engine *engine, unsigned int host);

/**
 * Before the first start: what is to be sent about vCPUs waits, and nothing is done
 * for those of others; what says so is a breach.  Not held at first.
 */
void dsm_engine_hold_vcpus(struct dsm_engine *engine, bool hold);

/**
 * That host, which is connected, knows where vCPUs run, or is told (at home), or speaks of
 * vCPUs at all (elsewhere): until the end of the connection.
 */
void dsm_engine_join(struct dsm_engine *engine, unsigned int host);

/**
 * At home: that host can have vCPUs, or can't.
 * @why: 0; or enum dsm_not_ready.
 */
void dsm_engine_ready(struct dsm_engine *engine, unsigned int host, unsigned int why);

/** Return: the host where a vCPU runs.  Only if there is a table. */
unsigned int dsm_engine_where(const struct dsm_engine *engine, unsigned int vcpu);

/**
 * Not at home, and no vCPU runs here: where they run, as the home says.
 * @where: of all vCPUs.
 * Return: 0; -DSM_E_VCPU: it can't be so; -errno of Xen.
 */
int dsm_engine_set_table(struct dsm_engine *engine, const uint8_t *where);

/**
 * At home: these vCPUs, which are down, run at @host from now on, which is their place or
 * home.  Those that do so already are left alone.  placed() says how it ended.  An error
 * changes nothing.
 * @vcpus: ascending.
 * @text: of an error, "WORD TEXT", as docs/dsm-control.md has them.
 * Return: 0: so it is; -EINPROGRESS: placed() will say; -EINVAL.
 */
int dsm_engine_place(struct dsm_engine *engine, unsigned int host, const uint16_t *vcpus,
		     unsigned int nr, char text[DSM_ENGINE_TEXT]);

/** Return: that goes on; or, elsewhere, the guest stands still for it. */
bool dsm_engine_is_placing(const struct dsm_engine *engine);

/**
 * At home: somebody has paused the domain, or unpaused it, and asks that vCPUs at other hosts
 * do so; dsm_engine_follows() says when they have.  It is looked for now and then anyway.
 */
void dsm_engine_follow(struct dsm_engine *engine);

/**
 * Do all hosts stand still, or none, as the domain does?
 * @text: what is in the way, "WORD TEXT"; unchanged if nothing is.
 * Return: 0; -EINPROGRESS: not yet; -EINVAL: they can't.
 */
int dsm_engine_follows(const struct dsm_engine *engine, char text[DSM_ENGINE_TEXT]);

/** Return: at home: the domain is paused, as was last seen; elsewhere: the home has said so. */
bool dsm_engine_is_paused(const struct dsm_engine *engine);

/** Return: at home: set of hosts that have said that the guest stands still there. */
uint16_t dsm_engine_paused_hosts(const struct dsm_engine *engine);

/**
 * @takes: the connection with @host, 0 .. DSM_MAX_HOSTS - 1, knows a pause of the guest
 * (DSM_WIRE_PAUSE).  Not, before this is called.
 */
void dsm_engine_takes_pause(struct dsm_engine *engine, unsigned int host, bool takes);

/** There may be something in the ring. */
void dsm_engine_misses(struct dsm_engine *engine);

/** room() is not 0 any more. */
void dsm_engine_room(struct dsm_engine *engine, unsigned int host);

/** Do what has been collected.  Before the caller sleeps. */
void dsm_engine_run(struct dsm_engine *engine);

/** Return: when dsm_engine_tick() is due, ns; UINT64_MAX: never. */
uint64_t dsm_engine_next(const struct dsm_engine *engine);

/** Look at the clock. */
void dsm_engine_tick(struct dsm_engine *engine);

/**
 * The guest gives a page back, or wants memory in a hole whose home is
 * elsewhere.  finished() says how it ended.
 * Return: 0; -EAGAIN if there is something else with this page now; -EINVAL.
 */
int dsm_engine_drop(struct dsm_engine *engine, uint64_t gfn);
int dsm_engine_populate(struct dsm_engine *engine, uint64_t gfn);

/**
 * @pages: ahead of a vCPU that reads one after the other, 0 (none) ..
 * DSM_ENGINE_PREFETCH.  Switched on, it begins without what it knew of readers.
 * Return: 0; -EINVAL.
 */
int dsm_engine_set_prefetch(struct dsm_engine *engine, unsigned int pages);

/**
 * @takes: the connection with @host, 0 .. DSM_MAX_HOSTS - 1, knows requests for
 * pages that will be written and nobody waits for (DSM_WIRE_AHEAD).  Not, before
 * this is called.
 */
void dsm_engine_takes_ahead(struct dsm_engine *engine, unsigned int host, bool takes);

/**
 * @takes: the connection with @host, 0 .. DSM_MAX_HOSTS - 1, knows accesses to pages that
 * stay at their home (DSM_WIRE_ACCESS).  Not, before this is called, nor before @host has
 * joined: one that only lends memory does not know which vCPU runs where.
 */
void dsm_engine_takes_access(struct dsm_engine *engine, unsigned int host, bool takes);

/**
 * Whether what can't leave its home is used there.  Pages that are, at another host, stay
 * so when it is switched off, until they may leave.
 */
void dsm_engine_set_class_u(struct dsm_engine *engine, bool on);
bool dsm_engine_has_class_u(const struct dsm_engine *engine);

/**
 * The guest is about to read what it has in the pages @first .. @end - 1, once,
 * since their memory is to go: who reads them has the next ones before it asks.
 * A hint, which replaces the one before; an empty range ends it.
 * Return: 0; -EINVAL.
 */
int dsm_engine_leaving(struct dsm_engine *engine, uint64_t first, uint64_t end);

/**
 * Whether a page that will be overwritten as a whole is asked for without its
 * bytes (DSM_XEN_WANT_M_NODATA).
 */
void dsm_engine_set_clear_hint(struct dsm_engine *engine, bool on);

/** Count by page (profile.h), from now on and from nothing; or no more.  Off at first. */
void dsm_engine_set_profile(struct dsm_engine *engine, bool on);

/**
 * @ns: for how long it has been counted.
 * Return: what was counted; NULL: nothing is.
 */
const struct dsm_profile *dsm_engine_profile(struct dsm_engine *engine, uint64_t *ns);

/**
 * The pages @first .. @end - 1 come home, many at a time, and the VM goes on:
 * what has its home here is called, what has it elsewhere goes.  It replaces
 * one that has not ended; an empty range ends it.
 * Return: 0; -EINVAL.
 */
int dsm_engine_evacuate(struct dsm_engine *engine, uint64_t first, uint64_t end);

/**
 * The same, of what concerns one of @hosts, a set: what is between this host and others
 * stays as it is.
 */
int dsm_engine_evacuate_of(struct dsm_engine *engine, uint16_t hosts, uint64_t first,
			   uint64_t end);

/** Return: not all of that range has been seen to be at home. */
bool dsm_engine_is_evacuating(const struct dsm_engine *engine);

/** From now on give up every page whose home is elsewhere. */
void dsm_engine_drain(struct dsm_engine *engine);

/**
 * The first @frames pages of a range have memory, the others have none.  Of a
 * range whose home is elsewhere: until dsm_engine_range_done() misses of the
 * others wait, and what is here of them is given up.  Xen has to know of the
 * pages before (AWAY), and of what is no memory any more (DROP_RANGE) after
 * `left` is 0 and before dsm_engine_range_done().  Of one whose home is here:
 * the others come home, and `left` says when.  Either is an evacuation, which
 * replaces one that has not ended.
 */
void dsm_engine_open_range(struct dsm_engine *engine, unsigned int range,
			   uint64_t frames);

/** Those without memory are holes: who missed them is woken. */
void dsm_engine_range_done(struct dsm_engine *engine, unsigned int range);

/** Return: what is known of a range.  Valid until the end of the engine. */
const struct dsm_engine_range *dsm_engine_range(const struct dsm_engine *engine,
						unsigned int range);

/**
 * The pool has, or will have, so many frames: if it is fewer, pages are given up
 * until no more are used.
 * Return: how many are used.
 */
unsigned int dsm_engine_set_frames(struct dsm_engine *engine, unsigned int frames);

/**
 * Is anything bound to this host, memory for the VM there, or here if that is
 * where it is used?  All hosts are bound at first.  A host that is not may be
 * lost.
 */
void dsm_engine_bind(struct dsm_engine *engine, unsigned int host, bool bound);

/**
 * Return: pages of this host that another one has, or asks for, and of that one
 * that are here or asked for.  O(pages that are known).
 */
uint64_t dsm_engine_shared_with(const struct dsm_engine *engine, unsigned int host);
/** Return: is that not 0?  Quick to ask again: the page that was found is looked at first. */
bool dsm_engine_shares_with(struct dsm_engine *engine, unsigned int host);

/** Return: nothing is under way, nobody waits. */
bool dsm_engine_is_quiet(const struct dsm_engine *engine);

/** Return: is a request of this host open? */
bool dsm_engine_is_asking(const struct dsm_engine *engine);

/** Return: pages of others that are here. */
unsigned int dsm_engine_guests(const struct dsm_engine *engine);

/** Return: why the VM has failed, or how it has ended; NULL: neither. */
const char *dsm_engine_failure(const struct dsm_engine *engine);

/** Return: the host by whose loss the VM has failed; DSM_NOBODY. */
unsigned int dsm_engine_lost(const struct dsm_engine *engine);

/** The VM can't go on, for a reason that the caller knows. */
void dsm_engine_fail(struct dsm_engine *engine, const char *text);

/** The VM has ended, somewhere else. */
void dsm_engine_end(struct dsm_engine *engine, const char *text);

void dsm_engine_get_counts(const struct dsm_engine *engine,
			   struct dsm_engine_counts *counts);

/** Return: NULL, or the rule that a page here breaks.  For tests: O(pages). */
const char *dsm_engine_broken_rule(const struct dsm_engine *engine);

#ifdef __cplusplus
}
#endif

#endif
