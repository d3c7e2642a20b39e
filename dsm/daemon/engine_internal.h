/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the engine share.  Each needs only those below its own floor:
 *
 *	engine.c		begins and ends, its turn and its clock, what it is asked
 *	engine_peers.c		connections and messages
 *	engine_vcpus.c		vCPUs that run on several hosts: what peers say
 *	engine_place.c		they are placed elsewhere: what the home does
 *	engine_stop.c		and what each host does, while the guest stands still
 *	engine_pause.c		its operator's pause is that of all slices
 *	engine_open.c		a range opens and closes
 *	engine_misses.c		Xen's ring; misses, and when the core is told
 *	engine_said.c		what the ring says of vCPUs
 *	engine_uncached.c	accesses to pages that can't leave their home
 *	engine_here.c		what is done here for vCPUs; the table of where they run
 *	engine_idle.c		whether a vCPU is up anywhere
 *	engine_letters.c	what is to be sent about vCPUs
 *	engine_token.c		the progress token
 *	engine_merge.c		pages of 2 MiB, of those that have come home
 *	engine_evacuate.c	pages that come home, many at a time
 *	engine_prefetch.c	pages ahead of who reads
 *	engine_frames.c		frames, and which pages leave
 *	engine_pages.c		events in, actions out; page operations in batches
 *	engine_waits.c		who waits for a page
 *	engine_answers.c	hosts that live and do not answer
 *	engine_fail.c		how a VM ends, and what an operator is told
 *	engine_ranges.c		what is open, and what is counted of it
 *	engine_state.c		what all ask
 *
 * What a lower one has to tell a higher one goes through struct above.
 *
 * Context: the engine's one thread.  After a failure (has_failed) nothing is
 * done any more: whoever calls what can fail looks before it goes on.
 */
#ifndef DSM_ENGINE_INTERNAL_H
#define DSM_ENGINE_INTERNAL_H

#include "engine.h"
#include "table.h"

#define MS		1000000ull
/* ns: leases that nobody waits for end together, at multiples of it. */
#define LEASES_TOGETHER	(32 * MS)
#define FOREIGN		64		/* misses of other domains; Xen has as many */
#define STREAMS		4		/* sequences of pages that a vCPU reads */
#define STREAMS_LEAVING	16		/* and whoever empties a range */
#define LEASE_MOST	24u		/* of lease_ns: engine_pages.c, settle_lease() */
#define LEASED		8		/* pages whose lease ends as a vCPU goes on */
#define TOKEN_MOST	50u		/* of token_ns: as long as a vCPU that waits has the token */
#define DSM_ENGINE_BACKOFF	MS	/* ns, most between two tries of a page in use */

/*
 * A result makes one operation (two of Xen's) and two wake-ups at most, so
 * what results from a batch fits into one.
 */
#define SLOTS		128u		/* operations in a batch before it is flushed */
#define OPS		(4 * (SLOTS + 8))

_Static_assert(OPS <= DSM_XEN_MAX_OPS, "a batch is one call");

/* Who is waited for: engine_answers.c. */
enum owed {
	OWED_TO_HOME,	/* this is the home, and recalls a page */
	OWED_BY_HOME,	/* another is, and was asked, or was sent a page */
	NR_OWED
};

enum warning {
	WARN_PIN, WARN_PIN_THERE, WARN_HOLE, WARN_FOREIGN, WARN_CALL, WARN_NO_MEMORY, WARN_PLACE,
	WARN_INFO, NR_WARNINGS
};

/* Somebody whose miss the core has not been told yet. */
struct waiter {
	uint64_t gfn;
	uint8_t want;		/* enum dsm_xen_want */
	bool queued;
	bool counted;		/* among those that had to wait */
	struct vcpu *vcpu;	/* NULL: another domain */
	TAILQ_ENTRY(waiter) link;
};

/* Pages that are read one after the other, upwards or downwards: engine_prefetch.c. */
struct stream {
	uint64_t first;		/* the page that was missed first */
	uint64_t from, to;	/* the window that was asked for; the next miss is @to */
	int64_t step;		/* from a page to the next one: 1, or -1 */
	unsigned int window, wanted;	/* length; of these not asked for yet */
	uint64_t last;		/* of the reader's clock; 0: unused */
	bool writes;		/* since the last window was asked for, it has written */
};

/* Who reads: a vCPU, or whoever empties a range. */
struct reader {
	struct stream stream[STREAMS_LEAVING];	/* a vCPU: STREAMS */
	uint64_t clock;
	unsigned int limit;	/* of a window; 0: that of all */
	bool wants;		/* one of its streams does */
};

/* A range that the guest empties: engine_prefetch.c. */
struct leaving {
	uint64_t first, end;	/* gfns; none: first = end */
	uint64_t until;		/* if nobody misses a page of it before */
	struct reader reader;
};

struct vcpu {
	struct waiter waiter;
	bool known;		/* it has missed before */
	bool waiting;		/* in Xen, for waiter.gfn */
	bool needs_token, in_line;
	uint64_t rip, since;
	struct reader reader;
	struct dsm_losses losses;
	unsigned int nr_leased;
	uint64_t leased[LEASED];
	TAILQ_ENTRY(vcpu) line;	/* for the token */
};

/* A range that comes home: engine_evacuate.c. */
struct evacuation {
	uint64_t first, at, end;	/* gfns; none: first = end */
	uint16_t hosts;		/* what concerns one of them, a set */
	uint64_t found;		/* in this pass: pages that were not home */
	unsigned int out;	/* under way */
	uint64_t due;		/* it goes on then; or DSM_NEVER: with what comes */
};

struct slot {
	struct dsm_entry *entry;
	uint16_t op;		/* its first in the batch */
	uint8_t nr_ops;
	uint8_t wake;
};

struct batch {
	unsigned int nr_slots, nr_ops;
	struct slot slot[OPS];
	struct dsm_xen_op op[OPS];
};

/* 512 pages of this host's that could be one: engine_merge.c. */
struct extent {
	uint64_t first;		/* gfn */
	uint64_t since;		/* ns; when its last page came home */
	uint16_t apart;		/* pages of it that are not at home, in M */
	uint8_t tries;
	bool queued;
	TAILQ_ENTRY(extent) link;
};

/* Something that is to be sent about vCPUs: engine_vcpus.c. */
struct letter {
	struct dsm_vcpu_msg msg;
	uint8_t host;			/* to which it goes, or went last */
	bool queued;
	uint64_t since;			/* of EVENT and PORTS, ns: the first of it was said */
	TAILQ_ENTRY(letter) link;
};

/* Of a vCPU of a VM whose vCPUs run on several hosts. */
struct carried {
	struct letter event;		/* to it: it runs elsewhere, or the guest stands still */
	struct letter call;		/* by it: it runs here */
	bool asks;			/* and waits for that call's result */
	struct letter reply;		/* to it: its call was done here */
	struct letter access;		/* by it, to a page that stays at its home: it runs here */
	bool accesses;			/* and waits for what that finds */
	uint64_t access_since, access_went;	/* ns; the latter: if it is in vcpus.away */
	TAILQ_ENTRY(carried) away;
	struct letter accessed;		/* to it: its access was made here */
	bool is_doing;			/* a call by it is to be done here: */
	struct dsm_vcpu_msg doing;
	uint64_t doing_since, doing_due;	/* ns: when it came; when it is tried again */
	uint32_t backoff_ns;		/* before that; 0: not tried in vain */
};

/*
 * Is a vCPU up anywhere?  engine_idle.c.  Counts of EVENTs, modulo 2^64: to and
 * from each host.
 */
struct idle_report {
	uint64_t number;		/* of the report; 0: none has come */
	uint16_t rows;			/* hosts that it has counts of */
	uint64_t sent[DSM_MAX_HOSTS], received[DSM_MAX_HOSTS];
};

struct idle {
	bool up;			/* one is that runs here, Xen has said */
	uint64_t done;			/* SENDs until then */
	uint64_t begun;			/* SENDs */
	uint64_t received[DSM_MAX_HOSTS];
	bool due;			/* the home has to hear of it when none is up */
	uint64_t number;		/* of the last report from here */
	struct letter row[DSM_MAX_HOSTS];	/* of it */
	struct idle_report report[DSM_MAX_HOSTS];	/* at the home */
	bool ended;			/* the guest, by us */
};

/*
 * The guest stands still on all hosts, and nothing about vCPUs is on its way:
 * engine_stop.c.
 */
struct stop {
	uint64_t round;			/* of the last STOP */
	bool on;
	bool drained;			/* what the ring had is in letters, or has gone */
	uint16_t fencers;		/* hosts that send each other FENCE */
	uint16_t fenced, came;		/* FENCE has gone there; has come */
	uint64_t heard[DSM_MAX_HOSTS];	/* the round of the last FENCE that came on this connection */
	uint64_t said[DSM_MAX_HOSTS];	/* and of the last one that went */
	bool quiet, calling;		/* QUIET was said; and that a vCPU waits */
	bool moved[DSM_ENGINE_VCPUS];	/* in this round: it is down */
	struct dsm_vcpu_msg doing;	/* PLACE; its type is 0: none */
	bool tried;			/* once; then each ms */
	bool placed;			/* Xen has done it, and its page is to be registered */
	uint64_t until;			/* it is tried again */
	bool owes_shutdown;
	struct dsm_vcpu_msg shutdown;
};

/* At home: vCPUs that go to another host, or come back.  engine_place.c. */
enum placing_step {
	PLACING_NONE,
	PLACING_WAITS,			/* until the host is ready */
	PLACING_STOPS,			/* until all are quiet */
	PLACING_ONE,			/* where a vCPU runs is asked to give it away */
	PLACING_OTHERS,			/* the other hosts are told */
	PLACING_SELF,			/* and this one */
};

struct placing {
	enum placing_step step;
	uint8_t host;			/* where they go to */
	unsigned int nr, at;		/* vCPUs; the one that is being placed */
	uint16_t vcpu[DSM_ENGINE_VCPUS];
	uint8_t from[DSM_ENGINE_VCPUS];	/* of each of these: where it ran */
	bool back;			/* what was done is taken back, from `at` on */
	uint16_t members;		/* hosts that have been stopped; not this one */
	uint16_t quiet;			/* of these, and this one: who is */
	uint16_t calling;		/* and has a vCPU that waits */
	uint32_t caller[DSM_MAX_HOSTS];	/* that vCPU */
	uint8_t has[DSM_MAX_HOSTS];	/* where each has been told that the vCPU runs */
	uint16_t asked;			/* who has not answered */
	bool refused;			/* by one who has, or it is lost */
	uint64_t due, late;		/* or DSM_NEVER */
	char error[DSM_ENGINE_TEXT];	/* "" : none */
};

/* The operator's pause: engine_pause.c. */
struct pausing {
	bool has_run;			/* at home: it was not paused, or somebody has asked */
	bool look;			/* at home: whether it is paused now */
	bool wanted;			/* at home: all are to stand still */
	bool here;			/* elsewhere: the slice is paused for it */
	uint16_t told;			/* hosts whose last PAUSE was 1 */
	uint16_t asked;			/* and those that have not answered it */
	uint64_t due;			/* the next look */
};

struct vcpus {
	struct carried *carried;	/* NULL: all stay where they are */
	uint8_t where[DSM_ENGINE_VCPUS];	/* host */
	unsigned int at[DSM_MAX_HOSTS];	/* how many run there */
	struct letter ports[DSM_PORTS / DSM_PORTS_AT_ONCE];
	TAILQ_HEAD(, letter) line[DSM_MAX_HOSTS];
	bool has_had_turn[DSM_MAX_HOSTS];	/* of two credits, the last one was a letter's */
	unsigned int nr_letters;	/* in all lines */
	TAILQ_HEAD(, carried) away;	/* whose access has gone, in that order */
	uint64_t events_sent[DSM_MAX_HOSTS];	/* EVENTs that have gone to a host */
	unsigned int nr_doing;
	uint64_t due;			/* they are tried again; or DSM_NEVER */
	bool again;			/* or at once */
	bool held;			/* before the first start: letters wait */
	uint64_t goes_since;		/* ns: until then they last waited, for that or a stop */
	bool shut, shared;		/* the guest has shut down; its shared_info is mapped */
	uint8_t shut_code;
	uint16_t joined, ready;		/* hosts that know the table; that can have vCPUs */
	uint8_t not_ready[DSM_MAX_HOSTS];	/* enum dsm_not_ready: why not */
	uint64_t info[DSM_ENGINE_VCPUS];	/* at home: a vcpu_info that is nowhere; or 0 */
	struct idle idle;
	struct stop stop;
	struct placing placing;
	struct pausing pausing;
};

struct engine_range {
	struct dsm_engine_range counts;
	struct extent *extent;		/* of whole 2 MiB; NULL: none */
	uint64_t first_extent;		/* its gfn */
	unsigned int nr_extents;
	bool changing;			/* misses behind its end wait */
};

/* What a lower part tells higher ones.  engine.c has it. */
struct above {
	/** engine_pages.c: the page has changed.  None of its times may change now. */
	void (*settled)(struct dsm_engine *e, struct dsm_entry *entry);
	/** engine_fail.c: the VM has failed, or ended; e->failure says how. */
	void (*ended)(struct dsm_engine *e);
	/** engine_stop.c: QUIET or PLACED, of this host, which is the home. */
	int (*answered)(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m);
};

/*
 * Answers need no room: who asks for enough pages has all the credits that come
 * back.  So each TURN answers that went without room let one request and one
 * letter go without: no more of these wait than an eighth of the answers each.
 */
#define TURN	8u

struct turns {
	uint8_t answers[DSM_MAX_HOSTS];
	uint16_t request, letter;	/* hosts to which one may go */
};

struct dsm_engine {
	struct dsm_engine_params p;
	const struct above *above;
	struct dsm_vm vm;
	struct dsm_token token;
	struct dsm_table table;
	uint8_t *buffers;
	unsigned int nr_buffers;
	uint64_t dice;
	uint64_t time;			/* of this turn; 0: look at the clock */

	struct batch batch[2];
	unsigned int current;		/* the batch that is being filled */
	bool flushing;

	struct vcpu *vcpu;
	struct waiter foreign[FOREIGN];
	TAILQ_HEAD(, waiter) waiting;
	unsigned int nr_waiting;

	struct vcpu *token_vcpu;	/* who has asked for the token, or has it */
	uint64_t token_due;		/* token_vcpu has it until then; or DSM_NEVER */
	uint64_t token_end;		/* and no longer, though it waits still */
	TAILQ_HEAD(, vcpu) line;

	unsigned int frames, used;
	unsigned int guests;		/* of others, here */
	unsigned int requests, writebacks;
	unsigned int peer_requests[DSM_MAX_HOSTS];
	struct turns turns;
	uint64_t shares[DSM_MAX_HOSTS];	/* a page that was shared with a host, when that was asked */
	struct evacuation evacuation;
	struct leaving leaving;
	unsigned int fetching;		/* prefetches that are out */
	bool wants_prefetch;		/* a reader does */
	uint16_t ahead;			/* hosts that take GETM ahead of time */
	uint16_t take_access;		/* hosts that know ACCESS */
	uint16_t take_pause;		/* and PAUSE */
	unsigned int room;		/* frames that windows have missed */
	bool hungry;			/* somebody waits for a frame */
	uint64_t evict_due;		/* a lease ends, and its frame is wanted; or DSM_NEVER */
	bool draining;
	TAILQ_HEAD(, dsm_entry) clock;
	TAILQ_HEAD(, extent) whole;	/* that are in pieces, and at home again */
	uint64_t merge_due;		/* or DSM_NEVER */
	bool cannot_merge;
	unsigned int used_most;		/* used when there were to be fewer frames */
	struct engine_range range[DSM_MAX_RANGES];

	struct vcpus vcpus;

	struct dsm_profile *profile;
	uint64_t profile_since;		/* ns; 0: nothing is counted */

	TAILQ_HEAD(, dsm_entry) owed[NR_OWED];
	uint8_t token_owed;		/* host that owes us the token; DSM_NOBODY */
	uint64_t token_owed_since;
	uint64_t keepalive_due;
	uint64_t warned[NR_WARNINGS];
	bool counting;			/* a host is being forgotten: FAIL is counted */
	bool has_failed;
	uint8_t lost;			/* the host by whose loss it failed; DSM_NOBODY */
	uint8_t says_lost[DSM_MAX_HOSTS]; /* whom each one says that it has lost, and 1; 0: nobody */
	char failure[DSM_ENGINE_TEXT];
	char broken[DSM_ENGINE_TEXT];	/* of the operation that failed */
	bool ring_left;			/* the ring may have more */
	struct dsm_engine_counts counts;
};

/*
 * A clock costs a system call in many a control domain, so what happens in one
 * turn of the loop happens at one time, unless it says that time has passed.
 */
static inline uint64_t now(struct dsm_engine *e)
{
	if (!e->time)
		e->time = e->p.calls->now(e->p.context);
	return e->time;
}

/* A switch, then what profile.h says. */
static inline void engine_count(struct dsm_engine *e, uint64_t gfn,
				enum dsm_profile_event event, unsigned int host)
{
	if (e->profile_since)
		dsm_profile_add(e->profile, gfn, event, host);
}

static inline void engine_time_passes(struct dsm_engine *e)
{
	e->time = 0;
}

/* When a message is read: other work of this turn, before it, is none of what is done with it. */
static inline uint64_t engine_read_at(struct dsm_engine *e)
{
	engine_time_passes(e);
	return now(e);
}

static inline const char *name_of(const struct dsm_engine *e, unsigned int host)
{
	return host < DSM_MAX_HOSTS && e->p.name[host] ? e->p.name[host] : "?";
}

static inline bool at_home(const struct dsm_engine *e, const struct dsm_entry *entry)
{
	return entry->page.home == e->vm.self;
}

/* A number that follows a condition of each page. */
static inline void engine_follow(bool *was, bool is, unsigned int *number)
{
	if (*was != is)
		*number += is ? 1u : -1u;
	*was = is;
}

/* ---- engine_state.c ---- */

/** Return: does it run there? */
bool engine_runs_at(const struct dsm_engine *e, uint32_t vcpu, unsigned int host);

/** Return: the host whose a port is; DSM_NOBODY. */
unsigned int engine_host_of_port(const struct dsm_engine *e, uint32_t port);

/** Return: do vCPUs run at a host, of a VM whose vCPUs do so at several? */
bool engine_runs_vcpus(const struct dsm_engine *e, unsigned int host);

/** Return: @text, "1, 4-7", those that run there; "" if none does. */
const char *engine_vcpus_of(const struct dsm_engine *e, unsigned int host,
			    char *text, size_t size);

/** Return: accesses that are for a host, or have gone there, and are not answered. */
unsigned int engine_accesses_at(const struct dsm_engine *e, unsigned int host);

/** Return: nothing about vCPUs is under way. */
bool engine_vcpus_are_quiet(const struct dsm_engine *e);

/** Return: does this vCPU have the token now? */
bool engine_has_token(const struct dsm_engine *e, const struct vcpu *v);

/** Is a range being emptied, as far as anybody can tell? */
bool engine_is_leaving(const struct dsm_engine *e, uint64_t t);

/** Frames to keep free for readers whose windows found none; 0 if prefetch is off. */
unsigned int engine_prefetch_room(const struct dsm_engine *e);

/* ---- engine_ranges.c ---- */

void engine_begin_ranges(struct dsm_engine *e);

/** Return: a page of another host that has no memory, or will have none. */
bool engine_is_closed(struct dsm_engine *e, uint64_t gfn);

/** Return: a page, of whatever host, behind the end of what has memory. */
bool engine_is_behind(const struct dsm_engine *e, const struct dsm_entry *entry);

/** Return: between dsm_engine_open_range() and _range_done(). */
bool engine_is_changing(struct dsm_engine *e, uint64_t gfn);

/** The page has changed: what of it is counted for its range? */
void engine_settle_range(struct dsm_engine *e, struct dsm_entry *entry);

/** Return: how many pages dsm_page_concerns() a host. */
uint64_t engine_pages_of(const struct dsm_engine *e, unsigned int host);

/** Return: pages of @host that have memory. */
uint64_t engine_open_at(const struct dsm_engine *e, unsigned int host);

/* ---- engine_fail.c ---- */

/**
 * The VM has failed: crash it, and say why.  Only the first reason counts.  If its
 * domain is being destroyed it has not failed, but ended.
 */
__attribute__((format(printf, 2, 3)))
void engine_fail(struct dsm_engine *e, const char *format, ...);

/** The VM has ended, which is no failure. */
void engine_end(struct dsm_engine *e, const char *text);

/** For the operator; not more often than once a second for each kind. */
__attribute__((format(printf, 3, 4)))
void engine_warn(struct dsm_engine *e, enum warning kind,
		 const char *format, ...);

/** The VM can't go on without @host: say what is lost with it. */
void engine_lose(struct dsm_engine *e, unsigned int host, const char *why);

/* ---- engine_answers.c ---- */

void engine_begin_answers(struct dsm_engine *e);

/** The page has changed: is an answer waited for? */
void engine_answers_settle(struct dsm_engine *e, struct dsm_entry *entry);

/** A message of this type has come, which the core has not seen yet. */
void engine_answered(struct dsm_engine *e, struct dsm_entry *entry, unsigned int type);

/** Something has happened to the token: who owes it? */
void engine_answers_token(struct dsm_engine *e);

/** Return: pages that wait for an answer, as their lists have it.  O(pages). */
unsigned int engine_answers_owed(const struct dsm_engine *e);

/** Return: when engine_answers_tick() has something to do, ns; DSM_NEVER. */
uint64_t engine_answers_due(const struct dsm_engine *e);

/** Is it too late for an answer?  Then the VM fails. */
void engine_answers_tick(struct dsm_engine *e, uint64_t t);

/* ---- engine_waits.c ---- */

/** Those whose miss is to be told to the core, in a line. */
/** May a request, or a letter, go to a host?  @turns: of that kind. */
static inline bool engine_has_room(const struct dsm_engine *e, unsigned int host, uint16_t turns)
{
	return e->p.calls->room(e->p.context, host) || turns & dsm_bit(host);
}

/** It goes now. */
static inline void engine_take_room(const struct dsm_engine *e, unsigned int host, uint16_t *turns)
{
	if (*turns & dsm_bit(host) && !e->p.calls->room(e->p.context, host))
		*turns &= (uint16_t)~dsm_bit(host);
}

void engine_queue_waiter(struct dsm_engine *e, struct waiter *w);
void engine_unqueue_waiter(struct dsm_engine *e, struct waiter *w);

/** Our request for a page is out: who waits for it? */
void engine_queued(struct dsm_engine *e, const struct dsm_entry *entry);

#define DSM_WAITS_SIZE 64
/**
 * Which vCPUs of this host wait for a page.
 * @words: " by vCPU 1 at RIP 0x...", that of the first one and how many more; "" if none does
 * @size: of @words, DSM_WAITS_SIZE bytes are enough
 */
void engine_who_waits(const struct dsm_engine *e, uint64_t gfn, char *words, size_t size);

/**
 * Those run again of whose misses the core has heard.  Who waits in line, or has not
 * been heard of, waits on.
 * @tell: has Xen wake that vCPU; DSM_XEN_FOREIGN: other domains
 */
void engine_told(struct dsm_engine *e, struct dsm_entry *entry,
		 void (*tell)(struct dsm_engine *e, struct dsm_entry *entry, uint32_t vcpu));

/** All who wait for the page run again, and ask again if they have to. */
void engine_woken(struct dsm_engine *e, struct dsm_entry *entry);

/* ---- engine_pages.c ---- */

/**
 * The entry of a page whose operation, if one was due, is done, and whose lease
 * has ended if it is over, with a buffer.
 * Return: NULL after a failure.
 */
struct dsm_entry *engine_entry(struct dsm_engine *e, uint64_t gfn);

/** The same, if engine_look_at_lease() was called. */
struct dsm_entry *engine_leased_entry(struct dsm_engine *e, uint64_t gfn);

/**
 * One event of a page that has no operation due.
 * @page: that came with a message, or NULL.
 * Return: what dsm_step() says; 0 after a failure, too.
 */
int engine_step(struct dsm_engine *e, struct dsm_entry *entry,
		const struct dsm_event *event, const uint8_t *page);

/**
 * The lease of a page, if it is over, ends now.  Before anything else happens to
 * the page; engine_entry() does it.
 * Return: the entry; NULL if it has been forgotten, or after a failure.
 */
struct dsm_entry *engine_look_at_lease(struct dsm_engine *e, struct dsm_entry *entry);

/** One event without parameters, of a page that engine_entry() finds. */
int engine_simple_step(struct dsm_engine *e, uint64_t gfn, unsigned int type);

/**
 * What the engine knows of a page follows what the core made of it.  The entry
 * may be gone after it.
 */
void engine_settle(struct dsm_engine *e, struct dsm_entry *entry);

/** Have Xen do what has been collected, and what results from it. */
void engine_flush(struct dsm_engine *e);

/** Xen is to have who misses a page look again. */
void engine_look_again(struct dsm_engine *e, uint64_t gfn);

/** Who has asked for the page finds no memory, with the access that he waits with. */
void engine_show_hole(struct dsm_engine *e, struct dsm_entry *entry);

/** From now on what vCPUs do with the page is done at its home; and no more. */
void engine_uncache(struct dsm_engine *e, struct dsm_entry *entry);
void engine_cache(struct dsm_engine *e, struct dsm_entry *entry);

/** Send, and count what that ends. */
void engine_send(struct dsm_engine *e, const struct dsm_action *action,
		 const uint8_t *page);

/** Return: does this type of message end a request? */
bool engine_is_answer(unsigned int type);

/** The answer to our request has come. */
void engine_came(struct dsm_engine *e, struct dsm_entry *entry);

/** The lease of a page is over at @t, or what it counted for. */
void engine_lease_due(struct dsm_engine *e, struct dsm_entry *entry, uint64_t t);

/* ---- engine_token.c ---- */

void engine_send_all(struct dsm_engine *e, const struct dsm_actions *actions);

/** Has the token come for who asked? */
void engine_look_for_token(struct dsm_engine *e);
void engine_next_in_line(struct dsm_engine *e);
/** The token's home is gone, and with it what was asked there. */
void engine_ask_again(struct dsm_engine *e);
void engine_want_token(struct dsm_engine *e, struct vcpu *v);

/** It has retired an instruction since it missed the pages that it leased. */
void engine_retired(struct dsm_engine *e, struct vcpu *v);

/* ---- engine_frames.c ---- */

/** Can a page have a frame, so that still none has to be evicted? */
bool engine_has_spare_frame(const struct dsm_engine *e);

/** A page of others was read, and will not be again: it goes first. */
void engine_evict_first(struct dsm_engine *e, struct dsm_entry *entry);

/** Begin to give pages of others up, as many as are to be free. */
void engine_evict(struct dsm_engine *e);

/* ---- engine_prefetch.c ---- */

/** A vCPU misses a page: is it the next of a stream? */
void engine_prefetch_miss(struct dsm_engine *e, struct vcpu *v, uint64_t gfn,
			  bool write);

/** Ask for what streams want, after all misses. */
void engine_prefetch(struct dsm_engine *e);

/** The page has changed: was it fetched for nothing? */
void engine_prefetch_settle(struct dsm_engine *e, struct dsm_entry *entry);

/* ---- engine_evacuate.c ---- */

/** Go on with it, if there is one. */
void engine_evacuate(struct dsm_engine *e);

/** The page has changed: has its way ended? */
void engine_evacuate_settle(struct dsm_engine *e, struct dsm_entry *entry);

/* ---- engine_merge.c ---- */

/** Return: 0 or -ENOMEM. */
int engine_begin_merging(struct dsm_engine *e);
void engine_end_merging(struct dsm_engine *e);

/** The page has changed: are all of its 2 MiB at home again, or not any more? */
void engine_merge_settle(struct dsm_engine *e, struct dsm_entry *entry);

/** Make a page of 2 MiB, if one is due and there is nothing else to do. */
void engine_merge(struct dsm_engine *e);

/* ---- engine_letters.c ---- */

/* Put a letter into its host's line, if it is in none. */
void engine_post(struct dsm_engine *e, struct letter *letter, unsigned int host);

/** Without a letter, and whether or not there is a credit. */
void engine_send_vcpu(struct dsm_engine *e, unsigned int host,
		      const struct dsm_vcpu_msg *msg);

/** Send what there are credits for. */
void engine_send_letters(struct dsm_engine *e);

/** Take a letter out of its line. */
void engine_take_letter(struct dsm_engine *e, struct letter *letter);

/** There is room again: what of it misses must not have. */
void engine_letters_room(struct dsm_engine *e, unsigned int host);

/* ---- engine_idle.c ---- */

void engine_begin_idle(struct dsm_engine *e);

/* A FENCE goes to a host, or has come from it: counts go on from the number of its round. */
void engine_idle_fenced(struct dsm_engine *e, unsigned int host, uint64_t round);
void engine_idle_fence_came(struct dsm_engine *e, unsigned int from, uint64_t round);

/* No vCPU ran there: what it reported before is of no use. */
void engine_idle_forget(struct dsm_engine *e, unsigned int host);

/* An EVENT has come from it. */
void engine_idle_received(struct dsm_engine *e, unsigned int from);

/* A SEND begins. */
void engine_idle_sends(struct dsm_engine *e);

/* Xen's ring: IDLE as in xen_calls.h.  Return: whether it makes sense. */
bool engine_idle_said(struct dsm_engine *e, const struct dsm_vcpu_msg *m);

/* IDLE of a peer.  Return: 0, or enum dsm_error. */
int engine_idle_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m);

/* Reports it if no vCPU is up here, and ends the guest if none is up anywhere. */
void engine_idle_run(struct dsm_engine *e);

/* ---- engine_here.c ---- */

/** From now on it runs there: here, and in the table. */
void engine_set_where(struct dsm_engine *e, unsigned int vcpu, unsigned int host);

/** Return: where the guest has its shared_info, if that is at home and this is; or 0. */
uint64_t engine_own_shared_info(struct dsm_engine *e);

/* Xen's numbers: the one call that needs a frame, which is word[0]. */
#define XEN_VCPU_OP		24u
#define XEN_REGISTER_VCPU_INFO	10u

/** Is something done here for a vCPU elsewhere that needs the frame? */
bool engine_call_needs(const struct dsm_engine *e, uint64_t gfn);

/**
 * A call that is to be done here, or was: its rc.  word[3]: shared_info, or 0.
 * Return: 0; -EAGAIN: a page is asked for; what Xen says.
 */
int engine_do_call(struct dsm_engine *e, struct dsm_vcpu_msg *call);

/** An EVENT to a vCPU that runs here: Xen has it. */
void engine_send_here(struct dsm_engine *e, const struct dsm_vcpu_msg *m);

/** The host has broken the protocol with this: the VM fails. */
void engine_breach(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m,
		   const char *what);

/** What Xen says of something that was checked: our mistake, if it is an error. */
void engine_check_done(struct dsm_engine *e, const struct dsm_vcpu_msg *m, int rc);

/* ---- engine_uncached.c ---- */

/** Xen's ring: ACCESS.  Return: whether it makes sense. */
bool engine_access_said(struct dsm_engine *e, const struct dsm_vcpu_msg *m);

/**
 * A page was in use here for too long: may who asked use it here?  @may_ask: for others'
 * copies of it.  Return: so it is, or will be.
 */
bool engine_keep_at_home(struct dsm_engine *e, struct dsm_entry *entry, bool may_ask);

/**
 * It is no plain memory, or somebody has it for ever: it does not leave, and all who wait
 * hear that at once.  Return: so it is; or it is not at home alone, or not in use any more.
 */
bool engine_make_private(struct dsm_engine *e, uint64_t gfn);

/**
 * Somebody asks for a page of this home.  One that was said to be private may be plain memory
 * by now, and is asked for as any other: Xen says so again if it is not.  However soon: who
 * asks may be a vCPU that ends with the answer, and the last one who asked a tool.
 */
void engine_look_at_private(struct dsm_engine *e, uint64_t gfn);

/** Hosts may have joined, or be lost: which of them are told that a page stays? */
void engine_settle_class_u(struct dsm_engine *e);

/** ACCESS, ACCESSED of a peer, about a vCPU that there is.  Return: 0, or enum dsm_error. */
int engine_access_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m);
int engine_accessed_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m);

/* ---- engine_said.c ---- */

/** An entry of the ring that is no miss. */
void engine_vcpu_said(struct dsm_engine *e, const struct dsm_vcpu_msg *m);

/** The guest has shut down here: say so. */
void engine_say_shutdown(struct dsm_engine *e, const struct dsm_vcpu_msg *m);

/* ---- engine_misses.c ---- */

/**
 * May the core be told of a miss that it makes a request of?
 * @entry: of @gfn, or NULL.
 */
bool engine_may_ask(struct dsm_engine *e, const struct dsm_entry *entry,
		    uint64_t gfn);

/** Tell the core of all misses that can be requests now. */
void engine_tell_all(struct dsm_engine *e);

/** Read the ring.  e->ring_left says whether it may have more. */
void engine_read_ring(struct dsm_engine *e);

/* ---- engine_stop.c ---- */

void engine_begin_stop(struct dsm_engine *e);

/** STOP, FENCE, PLACE, GO, of a peer or of this host.  Return: 0, or enum dsm_error. */
int engine_stop_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m);

/** Go on with it.  Return: something has changed. */
bool engine_stop_run(struct dsm_engine *e);
void engine_stop_tick(struct dsm_engine *e, uint64_t t);

/** The connection with a host is gone, and the VM goes on. */
void engine_stop_lost(struct dsm_engine *e, unsigned int host);

/** Return: do vCPUs run at that host that may be up? */
bool engine_loses_vcpus(const struct dsm_engine *e, unsigned int host);

/* ---- engine_pause.c ---- */

/** PAUSE, PAUSED of a peer.  Return: 0, or enum dsm_error. */
int engine_pause_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m);

/** At home: look, if that is due, and tell those who do not know. */
void engine_pause_run(struct dsm_engine *e);
uint64_t engine_pause_due(const struct dsm_engine *e);
void engine_pause_tick(struct dsm_engine *e, uint64_t t);

/** The connection with a host is gone, and the VM goes on. */
void engine_pause_lost(struct dsm_engine *e, unsigned int host);

/* ---- engine_place.c ---- */

void engine_begin_place(struct dsm_engine *e);

/** QUIET, PLACED, of a peer or of this host.  Return: 0, or enum dsm_error. */
int engine_place_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m);

/** Go on with it.  Return: something has changed. */
bool engine_place_run(struct dsm_engine *e);
uint64_t engine_place_due(const struct dsm_engine *e);
void engine_place_tick(struct dsm_engine *e, uint64_t t);

/** The connection with a host is gone, and the VM goes on. */
void engine_place_lost(struct dsm_engine *e, unsigned int host);

/** The VM has failed, or ended: whoever waits has to know. */
void engine_place_end(struct dsm_engine *e);

/* ---- engine_vcpus.c ---- */

/** Return: 0 or -ENOMEM. */
int engine_begin_vcpus(struct dsm_engine *e);
void engine_end_vcpus(struct dsm_engine *e);

/** Send what can be sent, and try again what can be done now. */
void engine_vcpus_run(struct dsm_engine *e);
void engine_vcpus_tick(struct dsm_engine *e, uint64_t t);

#endif
