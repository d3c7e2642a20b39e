/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of a worker know of each other.  Each stands on those below it:
 *
 *	worker.c	begins, ends and answers
 *	resize.c	the sizes of vnodes
 *	place.c		vCPUs that go and come back
 *	pause.c		the operator's pause
 *	peers.c		the connections
 *	drift.c		one time for all slices, from then on
 *	start.c		what is done before the guest runs
 *	peers_clock.c	the clocks of peers
 *	worker_state.c	its state, and what is said
 *
 * Context: the protocol thread.
 */
#ifndef DSM_WORKER_INTERNAL_H
#define DSM_WORKER_INTERNAL_H

#include <time.h>

#include <ev.h>

#include "bucket.h"
#include "clock.h"
#include "expiry.h"
#include "jump.h"
#include "worker.h"

#define DSM_NS		1000000000ull
#define DSM_FRAME_KIB	(DSM_PAGE_BYTES / 1024)

enum dsm_link {
	DSM_LINK_DOWN,		/* nobody wants one, or it ended as it should */
	DSM_LINK_OPENING,
	DSM_LINK_UP,
	DSM_LINK_LOST,
};

struct json_object;

/* The guest's time at another host, since that one is connected: is it that of this host? */
enum dsm_peer_time {
	DSM_TIME_UNKNOWN,
	DSM_TIME_ONE,
	DSM_TIME_APART,			/* or nobody can know, since clocks contradict each other */
};

struct dsm_peer {
	struct dsm_worker *worker;
	unsigned int host;
	enum dsm_link link;
	bool was_up, closing;
	uint32_t epoch;
	ev_timer again;			/* the next attempt */
	/* "connect", "leave": who waits for the end of it. */
	uint64_t connecting, leaving;	/* clients; 0: nobody */
	ev_timer patience;		/* of either */
	double waited;			/* s of "patience", or about to be */
	double leaves_by;		/* by dsm_worker_now(), s: who waits waits no more */
	uint64_t shared;		/* leave: pages at the last look */
	char why[DSM_ENGINE_TEXT];	/* the last attempt that failed */
	bool refused;			/* in it the host was there, and nobody listened */
	struct dsm_bucket attempt_lines;	/* how often one is told, */
	uint64_t untold;		/* and how many were not, since the last one that was */
	struct dsm_histogram round_trip;
	struct dsm_clock clock;
	bool misaligned;		/* it was said, and is so still */
	struct dsm_bucket clock_lines;	/* how often something is said of its clock */
	bool to_tell, told, ready;	/* of the guest's time; it has said READY.  At home: start.c */
	unsigned int looks;		/* so often it was told, and not ready */
	bool knows_tsc;			/* drift.c: what was said to it, */
	uint64_t known_tsc;
	bool answered;			/* with a clock, since it is connected */
	enum dsm_peer_time time;
	bool said_apart;		/* in the log */
	uint32_t judged;		/* the generation of its clock that was believed last */
};

/* Before the guest runs for the first time: start.c. */
struct dsm_start {
	struct dsm_vcpu_msg time;	/* the guest's at home, TIME */
	uint8_t policy[DSM_POLICY_PARTS * DSM_PAGE_BYTES] __attribute__((aligned(8)));
	unsigned int parts;		/* of it that have come */
	bool has_table;			/* not at home: TABLE has come */
	bool is_told, is_done;		/* TIME has come; it is so */
	bool is_refused;		/* it can't be */
	ev_timer missing;		/* at home: hosts without which the VM does not run */
	unsigned int looks;		/* at them */
};

/* A vnode with memory of another host, here or there. */
struct dsm_vnode {
	unsigned int number, range;	/* in the description and the engine */
	uint8_t home;
	uint64_t start, most;		/* gfn; frames */
	uint64_t size;			/* frames that are set up, now */
	uint64_t pool;			/* frames of ours for it, now */
	uint64_t open;			/* frames that the engine may ask for, or gives */
	uint64_t allowed;		/* here: frames of it that Xen's limit has room for */
	uint64_t faults, faults_per_second;
};

/* One "node" at work; resize.c. */
struct dsm_resize {
	struct dsm_vnode *vnode;	/* NULL: none */
	uint64_t client;
	uint64_t size, pool;		/* what is to be, frames */
	uint64_t old_size, old_pool;	/* and if it fails */
	bool undoing;
	char error[DSM_ENGINE_TEXT];	/* why it is being undone */
	ev_timer step, patience;
	unsigned int tenths;		/* of the way, for the log */
};

/* Who waits until all hosts do as the domain does; pause.c. */
struct dsm_pause {
	struct {
		uint64_t number;
		uint64_t until;		/* dsm_worker_now() */
	} client[DSM_CONTROL_CLIENTS];	/* as they came */
	unsigned int nr;
	bool said;			/* in the log: it is paused */
	ev_timer patience;
};

struct dsm_worker {
	struct dsm_worker_params p;
	struct dsm_engine *engine;
	struct dsm_transport_params transport_params;	/* it reads them there */
	struct dsm_transport *transport;
	struct dsm_control *control;
	enum dsm_worker_state state;
	struct dsm_peer peer[DSM_MAX_HOSTS];
	struct dsm_vnode vnode[DSM_DESCRIPTION_RANGES];
	unsigned int nr_vnodes;
	struct dsm_resize resize;
	struct dsm_start start;
	uint64_t placing;		/* client whose vCPUs are being placed; 0: none */
	struct dsm_pause pause;
	struct dsm_expiry expiry;
	ev_io ring;
	ev_prepare before_sleep;
	ev_timer due, questions, second;
	uint64_t due_at;		/* of the engine's clock, for which `due` is set; UINT64_MAX: not */
	struct dsm_poll poll;
	struct dsm_stats stats;
	struct dsm_engine_counts counts;
	struct dsm_xen_waits waits;
	uint32_t tsc_khz;		/* of this host's TSC; 0: not to be compared */
	struct dsm_jumps jumps;
	struct dsm_bucket jump_lines;	/* how often one is told */
	time_t since;
};

/* ---- worker_state.c ---- */

/** Nanoseconds of the clock that all parts go by.  @context: is not looked at. */
uint64_t dsm_worker_now(void *context);
/** A miss or a message has come: more may follow soon. */
void dsm_worker_came(struct dsm_worker *w);
__attribute__((format(printf, 3, 4)))
void dsm_worker_say(struct dsm_worker *w, int level, const char *format, ...);
void dsm_worker_enter(struct dsm_worker *w, enum dsm_worker_state state,
		      const char *text);
/** Return: the name of a host; "?". */
const char *dsm_worker_name(const struct dsm_worker *w, unsigned int host);
/** Return: NULL, or why nothing can be changed any more: "internal TEXT" in @text. */
const char *dsm_worker_ended(const struct dsm_worker *w,
			     char text[DSM_ENGINE_TEXT]);
/**
 * An answer, "WORD TEXT".
 * @text: where it goes, for free(); what was there is lost.
 * Return: DSM_CONTROL_ERROR.
 */
__attribute__((format(printf, 2, 3)))
enum dsm_control_answer dsm_worker_error(char **text, const char *format, ...);

/**
 * May this host say where vCPUs run, and have them stand still?
 * Return: 0; or -EINVAL, and @text is the answer: it has ended, has no places, or is not the home.
 */
int dsm_worker_has_vcpus(const struct dsm_worker *w, char **text);

/* ---- peers.c ---- */

extern const struct dsm_transport_calls dsm_peers_calls;

void dsm_peers_init(struct dsm_worker *w);
/** Those that have to be there, or to begin with. */
void dsm_peers_begin(struct dsm_worker *w);
void dsm_peers_end(struct dsm_worker *w);
/**
 * Tell those that are connected that the VM has failed, or ended, and who waits here.
 * @reason: enum dsm_reason, or DSM_FAIL_OVER.
 */
void dsm_peers_fail(struct dsm_worker *w, uint8_t reason, const char *text);
/** Close all.  Return: how many are still open. */
unsigned int dsm_peers_close(struct dsm_worker *w);
/** Before the loop sleeps: "leave". */
void dsm_peers_run(struct dsm_worker *w);
/** Return: a host of which "leave HOST" is at work; DSM_NOBODY. */
unsigned int dsm_peers_leaving(const struct dsm_worker *w);
/** Nothing else can be done until that host has left.  Return: DSM_CONTROL_ERROR. */
enum dsm_control_answer dsm_peers_busy(const struct dsm_worker *w, char **text);
/** Nothing is attached with @host, or something is: tell the engine. */
void dsm_peers_bind(struct dsm_worker *w, unsigned int host);
/** Return: another host of that name; DSM_NOBODY: none, and *text says why. */
unsigned int dsm_peers_find(struct dsm_worker *w, const char *name, char **text);
/** "connect HOST", "leave HOST". */
enum dsm_control_answer dsm_peers_connect(struct dsm_worker *w, const char *name,
					  uint64_t client, char **text);
enum dsm_control_answer dsm_peers_leave(struct dsm_worker *w, const char *name,
					uint64_t client, char **text);
const char *dsm_link_name(unsigned int link);

/* ---- peers_clock.c ---- */

/** This host's TSC, into the transport's parameters if it can be compared. */
void dsm_peers_clock_init(struct dsm_worker *w);
/** What an answer has said.  @sample: may be NULL. */
void dsm_peers_clock_add(struct dsm_worker *w, struct dsm_peer *peer,
			 const struct dsm_clock_sample *sample);
void dsm_peers_clock_stats(struct dsm_worker *w, const struct dsm_peer *peer,
			   struct dsm_stats_clock *stats);
/** Return: a line of the log may be about @peer's clock. */
bool dsm_peers_clock_may_say(const struct dsm_worker *w, struct dsm_peer *peer);

/* ---- drift.c ---- */

/** Behind dsm_peers_clock_init(), before there is a transport. */
void dsm_drift_init(struct dsm_worker *w);
/** Connected; before dsm_start_up(). */
void dsm_drift_up(struct dsm_worker *w, unsigned int host);
/** Return: it was TSC. */
bool dsm_drift_message(struct dsm_worker *w, unsigned int host, const struct dsm_msg *msg,
		       const uint8_t *bytes);
/** A question to @host was answered, and both hosts have clocks. */
void dsm_drift_clock(struct dsm_worker *w, unsigned int host);
/** For struct dsm_engine_calls: has_our_time(). */
int dsm_drift_ask(const struct dsm_worker *w, unsigned int host, char text[DSM_ENGINE_TEXT]);

/* ---- start.c ---- */

/**
 * Place vCPUs; at home, know time and policy.
 * @text: what went wrong.
 * Return: 0; -errno.
 */
int dsm_start_begin(struct dsm_worker *w, char text[DSM_ENGINE_TEXT]);
/** At home: say for whom the VM waits, and end it if one that is connected does not become ready. */
void dsm_start_wait(struct dsm_worker *w);
void dsm_start_end(struct dsm_worker *w);
/** Connected.  Return: false: the VM has failed by it. */
bool dsm_start_up(struct dsm_worker *w, unsigned int host);
/** Return: it was one of POLICY, TIME, READY. */
bool dsm_start_message(struct dsm_worker *w, unsigned int host, const struct dsm_msg *msg,
		       const uint8_t *bytes);
/** A question to @host was answered. */
void dsm_start_clock(struct dsm_worker *w, unsigned int host, bool has_clock);
/** Return: all that is to be done before it runs is done, as far as this host knows. */
bool dsm_start_is_done(const struct dsm_worker *w);
/** All may be there now that the VM needs to run. */
void dsm_start_look(struct dsm_worker *w);
bool dsm_start_has_places(const struct dsm_worker *w, unsigned int host);
/** Return: something about vCPUs goes between this host and @host. */
bool dsm_start_concerns(const struct dsm_worker *w, unsigned int host);
/** A message that waits for no credit. */
void dsm_start_send(struct dsm_worker *w, struct dsm_peer *peer, const struct dsm_vcpu_msg *m);
/** @host breaks the protocol: the VM fails. */
void dsm_start_breach(struct dsm_worker *w, unsigned int host, unsigned int type, const char *what);
/** At home: tell those who were not told yet. */
void dsm_start_tell(struct dsm_worker *w);
/** Return: because of vCPUs this host and @host can't part. */
bool dsm_start_keeps(const struct dsm_worker *w, unsigned int host);

/* ---- place.c ---- */

/** "place HOST VCPUS", "home VCPUS". */
enum dsm_control_answer dsm_place_command(struct dsm_worker *w, const char *words,
					  uint64_t client, char **text);
enum dsm_control_answer dsm_place_home(struct dsm_worker *w, const char *words,
				       uint64_t client, char **text);
/** It is done, or not: @error is "WORD TEXT", or NULL. */
void dsm_place_done(struct dsm_worker *w, const char *error);
/** "state": the vCPUs that are not at home.  Return: was there memory for it? */
bool dsm_place_state(const struct dsm_worker *w, struct json_object *all);

/* ---- pause.c ---- */

void dsm_pause_init(struct dsm_worker *w);
void dsm_pause_end(struct dsm_worker *w);
/** "follow". */
enum dsm_control_answer dsm_pause_follow(struct dsm_worker *w, uint64_t client, char **text);
/** Before the loop sleeps: answer, if all hosts do as the domain does. */
void dsm_pause_run(struct dsm_worker *w);
/** "state": the hosts where the guest stands still.  Return: was there memory for it? */
bool dsm_pause_state(const struct dsm_worker *w, struct json_object *all);

/* ---- resize.c ---- */

void dsm_resize_init(struct dsm_worker *w);
void dsm_resize_end(struct dsm_worker *w);
/** "node VNODE SIZE_KIB POOL_KIB". */
enum dsm_control_answer dsm_resize_command(struct dsm_worker *w, const char *words,
					   uint64_t client, char **text);
/** "leaving VNODE SIZE_KIB". */
enum dsm_control_answer dsm_resize_leaving(struct dsm_worker *w, const char *words,
					   char **text);
/** Before the loop sleeps: go on if what it waits for has come. */
void dsm_resize_run(struct dsm_worker *w);
/** The VM has failed, or ended (@how): nothing can be undone. */
void dsm_resize_fail(struct dsm_worker *w, const char *how, const char *text);
/** "state".  Return: was there memory for it? */
bool dsm_resize_state(struct dsm_worker *w, char **text);

#endif
