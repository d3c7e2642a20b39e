// SPDX-License-Identifier: GPL-2.0
/*
 * Events in, actions out; page operations in batches.
 *
 * One event: step() finishes the operation that is due on that page, lends the
 * page a buffer, asks the core, does the actions, and settle() brings what the
 * engine knows of the page (frame, request, times, buffer) in line with what
 * the core made of it.  Operations that result from it wait in the batch;
 * flush() has Xen do them and gives the core their results, from which more can
 * result, until none is left.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "table.h"

#define MS		1000000ull
#define FOREIGN		64		/* misses of other domains; Xen has as many */
#define LEASED		8		/* pages whose lease ends as a vCPU goes on */
#define BACKOFF_MOST	MS		/* ns between two tries of a page in use */
#define HOLE_NS		(10 * MS)	/* for an access to find that there is no memory */
#define LOST_NS		(1000 * MS)	/* a page lost that long ago is no loss any more */
#define WARN_NS		(1000 * MS)	/* between two warnings of one kind */
#define RING		64		/* misses taken at a time */

/*
 * A result makes one operation (two of Xen's) and two wake-ups at most, so
 * what results from a batch fits into one.
 */
#define SLOTS		128u		/* operations in a batch before it is flushed */
#define OPS		(4 * (SLOTS + 8))

_Static_assert(OPS <= DSM_XEN_MAX_OPS, "a batch is one call");

enum warning {
	WARN_PIN, WARN_HOLE, NR_WARNINGS
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

struct vcpu {
	struct waiter waiter;
	bool known;		/* it has missed before */
	bool waiting;		/* in Xen, for waiter.gfn */
	bool needs_token, in_line;
	uint64_t rip, since;
	struct dsm_losses losses;
	unsigned int nr_leased;
	uint64_t leased[LEASED];
	TAILQ_ENTRY(vcpu) line;	/* for the token */
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

struct dsm_engine {
	struct dsm_engine_params p;
	struct dsm_vm vm;
	struct dsm_token token;
	struct dsm_table table;
	uint8_t *buffers;
	unsigned int nr_buffers;
	uint64_t dice;

	struct batch batch[2];
	unsigned int current;		/* the batch that is being filled */
	bool flushing;

	struct vcpu *vcpu;
	struct waiter foreign[FOREIGN];
	TAILQ_HEAD(, waiter) waiting;
	unsigned int nr_waiting;

	struct vcpu *token_vcpu;	/* who has asked for the token, or has it */
	uint64_t token_due;		/* token_vcpu has it until then; or DSM_NEVER */
	TAILQ_HEAD(, vcpu) line;

	unsigned int frames, used;
	unsigned int guests;		/* of others, here */
	unsigned int requests, writebacks;
	unsigned int peer_requests[DSM_MAX_HOSTS];
	bool hungry;			/* somebody waits for a frame */
	bool draining;
	TAILQ_HEAD(, dsm_entry) clock;

	uint64_t keepalive_due;
	uint64_t warned[NR_WARNINGS];
	bool counting;			/* a host is being forgotten: FAIL is counted */
	bool has_failed;
	char failure[DSM_ENGINE_TEXT];
	char broken[DSM_ENGINE_TEXT];	/* of the operation that failed */
	struct dsm_engine_counts counts;
};

static uint64_t now(const struct dsm_engine *e)
{
	return e->p.calls->now(e->p.context);
}

static const char *name_of(const struct dsm_engine *e, unsigned int host)
{
	return host < DSM_MAX_HOSTS && e->p.name[host] ? e->p.name[host] : "?";
}

static uint64_t dice(struct dsm_engine *e)
{
	uint64_t z = e->dice += 0x9e3779b97f4a7c15u;	/* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

__attribute__((format(printf, 2, 3)))
static void fail_vm(struct dsm_engine *e, const char *format, ...)
{
	va_list words;

	if (e->has_failed)
		return;
	e->has_failed = true;
	va_start(words, format);
	vsnprintf(e->failure, sizeof(e->failure), format, words);
	va_end(words);
	if (e->p.xen->calls->crash(e->p.xen))
		e->p.calls->warn(e->p.context,
				 "Xen did not crash the domain; without keepalive it stops");
	e->p.calls->failed(e->p.context, e->failure);
}

__attribute__((format(printf, 3, 4)))
static void warn(struct dsm_engine *e, enum warning kind,
		 const char *format, ...)
{
	char text[DSM_ENGINE_TEXT];
	uint64_t t = now(e);
	va_list words;

	if (e->warned[kind] && t - e->warned[kind] < WARN_NS)
		return;
	e->warned[kind] = t;
	va_start(words, format);
	vsnprintf(text, sizeof(text), format, words);
	va_end(words);
	e->p.calls->warn(e->p.context, text);
}

static bool at_home(const struct dsm_engine *e, const struct dsm_entry *entry)
{
	return entry->page.home == e->vm.self;
}

/* ---- Who waits ---- */

static void queue_waiter(struct dsm_engine *e, struct waiter *w)
{
	if (w->queued)
		return;
	TAILQ_INSERT_TAIL(&e->waiting, w, link);
	w->queued = true;
	w->counted = false;
	e->nr_waiting++;
}

static void unqueue_waiter(struct dsm_engine *e, struct waiter *w)
{
	if (!w->queued)
		return;
	TAILQ_REMOVE(&e->waiting, w, link);
	w->queued = false;
	e->nr_waiting--;
}

/* All who wait for the page run again, and ask again if they have to. */
static void woken(struct dsm_engine *e, struct dsm_entry *entry)
{
	uint64_t gfn = entry->page.gfn, t = now(e);
	struct waiter *w, *next;
	unsigned int i;

	for (i = 0; i < e->p.nr_vcpus; i++) {
		struct vcpu *v = &e->vcpu[i];

		if (!v->waiting || v->waiter.gfn != gfn)
			continue;
		v->waiting = false;
		dsm_histogram_add(v->waiter.want == DSM_XEN_WANT_S ?
				  &e->counts.read_fault : &e->counts.write_fault,
				  t - v->since);
		entry->lease_vcpu = i;
		if (e->vm.leases) {
			v->leased[v->nr_leased % LEASED] = gfn;
			v->nr_leased++;
		}
	}
	for (w = TAILQ_FIRST(&e->waiting); w; w = next) {
		next = TAILQ_NEXT(w, link);
		if (w->gfn == gfn)
			unqueue_waiter(e, w);
	}
}

/* ---- Page operations ---- */

static struct dsm_xen_op *add_op(struct dsm_engine *e, struct dsm_entry *entry,
				 unsigned int type, uint8_t *buffer)
{
	struct batch *b = &e->batch[e->current];
	struct dsm_xen_op *op = &b->op[b->nr_ops++];

	*op = (struct dsm_xen_op){
		.gfn = entry->page.gfn, .buffer = buffer, .type = (uint8_t)type,
	};
	return op;
}

/* A vCPU has been shown that there is no memory; from now on it asks again. */
static void end_hole(struct dsm_engine *e, struct dsm_entry *entry)
{
	int rc = e->p.xen->calls->away(e->p.xen, entry->page.gfn, 1);

	entry->away_due = DSM_NEVER;
	if (rc)
		fail_vm(e, "Xen does not take gfn 0x%" PRIx64 " back as absent: %s",
			entry->page.gfn, strerror(-rc));
}

static void add_operation(struct dsm_engine *e, struct dsm_entry *entry,
			  const struct dsm_action *action)
{
	struct batch *b = &e->batch[e->current];
	struct slot *slot = &b->slot[b->nr_slots++];
	uint8_t *buffer = action->bytes == DSM_BYTES_NONE ? NULL : entry->buffer;
	bool shared = entry->page.state == DSM_SHARED;

	*slot = (struct slot){
		.entry = entry, .op = (uint16_t)b->nr_ops, .wake = action->wake,
	};
	switch (action->operation) {
	case DSM_OP_INSTALL_S:
		add_op(e, entry, DSM_XEN_INSTALL_S, buffer);
		break;
	case DSM_OP_INSTALL_M:
		add_op(e, entry, DSM_XEN_INSTALL_M, buffer);
		break;
	case DSM_OP_ZERO_M:
		/* Who asks without data does not look at what there is. */
		add_op(e, entry, shared ? DSM_XEN_UPGRADE : DSM_XEN_ZERO_M, NULL);
		break;
	case DSM_OP_UPGRADE:
		add_op(e, entry, DSM_XEN_UPGRADE, NULL);
		break;
	case DSM_OP_DOWNGRADE:
		add_op(e, entry, DSM_XEN_DOWNGRADE, buffer);
		break;
	case DSM_OP_INVALIDATE:
		add_op(e, entry, DSM_XEN_INVAL, buffer);
		break;
	case DSM_OP_READ:
		add_op(e, entry, DSM_XEN_READ, buffer);
		break;
	case DSM_OP_DROP:
		if (entry->page.state != DSM_INVALID)
			add_op(e, entry, DSM_XEN_INVAL, NULL);
		add_op(e, entry, DSM_XEN_DROP, NULL);
		break;
	case DSM_OP_POPULATE:
		break;	/* no page operation of Xen's */
	}
	slot->nr_ops = (uint8_t)(b->nr_ops - slot->op);
}

static unsigned int broken(struct dsm_engine *e, const struct dsm_entry *entry,
			   int rc)
{
	snprintf(e->broken, sizeof(e->broken),
		 "Xen refuses %s of gfn 0x%" PRIx64 ": %s",
		 dsm_operation_name(entry->page.operation), entry->page.gfn,
		 strerror(-rc));
	return DSM_OP_BROKEN;
}

/* Of INVAL and DOWNGRADE. */
static unsigned int taken(struct dsm_engine *e, struct dsm_entry *entry, int rc)
{
	switch (rc) {
	case 0:
		return DSM_OP_DONE;
	case -EPERM:
		entry->special = true;
		return DSM_OP_BUSY;
	case -EBUSY:
	case -ENOMEM:	/* for a page table; nothing was changed */
		return DSM_OP_BUSY;
	case -ENOENT:
		/* What is homed elsewhere is no hole when the guest frees it. */
		if (at_home(e, entry) && entry->page.state == DSM_MODIFIED)
			return DSM_OP_ABSENT;
		break;
	}
	return broken(e, entry, rc);
}

static unsigned int populated(struct dsm_engine *e, const struct dsm_entry *entry)
{
	int rc = e->p.xen->calls->populate(e->p.xen, entry->page.gfn);

	switch (rc) {
	case 0:
		return DSM_OP_DONE;
	case -EEXIST:
		return DSM_OP_EXISTS;
	case -ENOMEM:
		return DSM_OP_NOMEM;
	}
	return broken(e, entry, rc);
}

static unsigned int result_of(struct dsm_engine *e, const struct batch *b,
			      const struct slot *slot)
{
	const struct dsm_xen_op *op = &b->op[slot->op];
	struct dsm_entry *entry = slot->entry;

	switch (entry->page.operation) {
	case DSM_OP_POPULATE:
		return populated(e, entry);
	case DSM_OP_DROP:
		if (slot->nr_ops == 2 && op[0].rc)
			return taken(e, entry, op[0].rc);
		op += slot->nr_ops - 1;
		break;
	case DSM_OP_DOWNGRADE:
	case DSM_OP_INVALIDATE:
		return taken(e, entry, op->rc);
	}
	return op->rc ? broken(e, entry, op->rc) : DSM_OP_DONE;
}

static void after(struct dsm_engine *e, struct dsm_entry *entry,
		  const struct dsm_actions *actions, const uint8_t *page);

static void finish(struct dsm_engine *e, const struct batch *b,
		   const struct slot *slot)
{
	struct dsm_entry *entry = slot->entry;
	struct dsm_event event = { .type = DSM_EV_RESULT };
	struct dsm_actions actions;
	int rc;

	event.result = (uint8_t)result_of(e, b, slot);
	if (e->has_failed)
		return;
	if (event.result == DSM_OP_DONE && slot->wake)
		woken(e, entry);
	rc = dsm_step(&e->vm, &entry->page, &event, &actions);
	if (rc) {
		fail_vm(e, "gfn 0x%" PRIx64 ": %s", entry->page.gfn,
			dsm_error_name((unsigned int)-rc));
		return;
	}
	after(e, entry, &actions, NULL);
}

static void flush(struct dsm_engine *e)
{
	struct batch *b;
	unsigned int i;
	int rc;

	if (e->flushing)
		return;
	e->flushing = true;
	while (!e->has_failed && (b = &e->batch[e->current],
				  b->nr_slots || b->nr_ops)) {
		e->current = !e->current;
		rc = b->nr_ops ? e->p.xen->calls->page(e->p.xen, b->op,
						       b->nr_ops) : 0;
		e->counts.operations += b->nr_ops;
		e->counts.batches += b->nr_ops != 0;
		if (rc)
			fail_vm(e, "Xen does not do page operations: %s",
				strerror(-rc));
		for (i = 0; i < b->nr_slots && !e->has_failed; i++)
			finish(e, b, &b->slot[i]);
		b->nr_slots = 0;
		b->nr_ops = 0;
	}
	e->flushing = false;
}

/* ---- What the core decides ---- */

static bool is_answer(unsigned int type)
{
	return type == DSM_DATA_S || type == DSM_DATA_M || type == DSM_GRANT ||
	       type == DSM_NACK || type == DSM_RESULT;
}

static void send_message(struct dsm_engine *e, const struct dsm_action *action,
		 const uint8_t *page)
{
	const struct dsm_msg *msg = &action->msg;

	if (is_answer(msg->type) && e->peer_requests[action->host])
		e->peer_requests[action->host]--;
	if (msg->type == DSM_PUTM)
		e->counts.evicted_modified++;
	else if (msg->type == DSM_PUTS)
		e->counts.evicted_shared++;
	e->p.calls->send(e->p.context, action->host, msg,
			 dsm_type_has_page(msg->type) ? page : NULL);
}

static void wake(struct dsm_engine *e, struct dsm_entry *entry,
		 unsigned int whom)
{
	if (whom & DSM_WAKE_HOLE && entry->away_due == DSM_NEVER) {
		warn(e, WARN_HOLE, "gfn 0x%" PRIx64 " was touched, and there is no memory at %s",
		     entry->page.gfn, name_of(e, entry->page.home));
		add_op(e, entry, DSM_XEN_DROP, NULL);
		entry->away_due = now(e) + HOLE_NS;
	} else {
		add_op(e, entry, DSM_XEN_WAKE, NULL);
	}
	woken(e, entry);
}

static void fail_page(struct dsm_engine *e, const struct dsm_entry *entry,
		      const struct dsm_action *action)
{
	uint64_t gfn = entry->page.gfn;

	if (e->counting)
		return;
	switch (action->reason) {
	case DSM_R_BROKEN:
		fail_vm(e, "%s", e->broken);
		break;
	case DSM_R_PRIVATE:
		fail_vm(e, "gfn 0x%" PRIx64 " is needed here, and it can't leave %s: it is in use there for ever",
			gfn, name_of(e, action->host));
		break;
	case DSM_R_LOST:
		fail_vm(e, "gfn 0x%" PRIx64 " is needed here, and its bytes are lost with %s",
			gfn, name_of(e, action->host));
		break;
	default:
		fail_vm(e, "gfn 0x%" PRIx64 ": %s", gfn,
			dsm_reason_name(action->reason));
	}
}

static void act(struct dsm_engine *e, struct dsm_entry *entry,
		const struct dsm_action *action, const uint8_t *page)
{
	switch (action->type) {
	case DSM_ACT_TAKE:
		memcpy(entry->buffer, page, DSM_PAGE_BYTES);
		break;
	case DSM_ACT_SEND:
		send_message(e, action, entry->buffer);
		break;
	case DSM_ACT_WAKE:
		wake(e, entry, action->wake);
		break;
	case DSM_ACT_RETRY:
		e->counts.retries++;
		if (!entry->busy_since) {
			entry->busy_since = now(e);
			entry->backoff_ns = (uint32_t)e->p.retry_ns;
		}
		entry->retry_due = entry->special ? now(e) :
				   now(e) + entry->backoff_ns;
		if (entry->backoff_ns < BACKOFF_MOST)
			entry->backoff_ns *= 2;
		break;
	case DSM_ACT_FINISHED:
		e->p.calls->finished(e->p.context, entry->page.gfn,
				     action->reason);
		break;
	case DSM_ACT_FAIL:
		fail_page(e, entry, action);
		break;
	case DSM_ACT_OPERATION:
		if (entry->away_due != DSM_NEVER)
			end_hole(e, entry);
		add_operation(e, entry, action);
		break;
	}
}

/* A number that follows a condition of each page. */
static void follow(bool *was, bool is, unsigned int *number)
{
	if (*was != is)
		*number += is ? 1u : -1u;
	*was = is;
}

static void settle_lease(struct dsm_engine *e, struct dsm_entry *entry)
{
	const struct dsm_page *page = &entry->page;
	uint64_t length = e->p.lease_ns;

	if (page->lease == entry->lease &&
	    (page->lease != DSM_LEASE_NONE || page->lost == (entry->lease_due != DSM_NEVER)))
		return;
	entry->lease = page->lease;
	switch (page->lease) {
	case DSM_LEASE_NONE:
		entry->lease_due = page->lost ? now(e) + LOST_NS : DSM_NEVER;
		return;
	case DSM_LEASE_ACTIVE:
		/* Who has lost pages keeps them longer, up to 16 times. */
		if (entry->lease_vcpu < e->p.nr_vcpus) {
			unsigned int losses = e->vcpu[entry->lease_vcpu].losses.count;

			length <<= losses < 4 ? losses : 4;
		}
		entry->lease_due = now(e) + length / 2 + dice(e) % length;
		return;
	case DSM_LEASE_EXPIRED:
		e->counts.leases_over++;
		break;
	}
	entry->lease_due = now(e) + e->p.token_ns;
}

static void settle_clock(struct dsm_engine *e, struct dsm_entry *entry)
{
	bool is = !at_home(e, entry) && entry->page.state != DSM_INVALID;

	if (is == entry->evictable)
		return;
	entry->evictable = is;
	if (is)
		TAILQ_INSERT_TAIL(&e->clock, entry, clock);
	else
		TAILQ_REMOVE(&e->clock, entry, clock);
	e->guests += is ? 1u : -1u;
}

static void settle(struct dsm_engine *e, struct dsm_entry *entry)
{
	struct dsm_page *page = &entry->page;
	bool requested = page->request == DSM_GETS || page->request == DSM_GETM;

	follow(&entry->counted, !at_home(e, entry) &&
	       (page->state != DSM_INVALID || requested || page->wanted), &e->used);
	follow(&entry->asking, page->request != 0, &e->requests);
	follow(&entry->writing, page->writeback, &e->writebacks);
	settle_clock(e, entry);
	settle_lease(e, entry);
	if (!page->operation && !page->recall_busy && !page->dir.busy) {
		entry->busy_since = 0;
		entry->retry_due = DSM_NEVER;
	}
	dsm_table_reschedule(&e->table, entry);
	if (!dsm_page_needs_buffer(page))
		dsm_table_take_back(&e->table, entry);
	if (dsm_page_is_idle(page, &e->vm) && entry->due == DSM_NEVER)
		dsm_table_forget(&e->table, entry);
}

static void after(struct dsm_engine *e, struct dsm_entry *entry,
		  const struct dsm_actions *actions, const uint8_t *page)
{
	unsigned int i;

	for (i = 0; i < actions->nr && !e->has_failed; i++)
		act(e, entry, &actions->action[i], page);
	if (!e->has_failed)
		settle(e, entry);
}

/* The entry of a page whose operation, if one was due, is done. */
static struct dsm_entry *entry_for(struct dsm_engine *e, uint64_t gfn)
{
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn);

	if (e->batch[e->current].nr_slots >= SLOTS ||
	    e->batch[e->current].nr_ops >= 2 * SLOTS ||
	    (entry && entry->page.operation)) {
		flush(e);
		if (e->has_failed)
			return NULL;
	}
	entry = dsm_table_get(&e->table, &e->vm, gfn);
	if (!entry)
		fail_vm(e, "no memory for gfn 0x%" PRIx64, gfn);
	else if (!dsm_table_lend(&e->table, entry))
		fail_vm(e, "more than %u pages are under way", e->nr_buffers);
	return e->has_failed ? NULL : entry;
}

/* Return: what dsm_step() says; 0 after a failure, too. */
static int step(struct dsm_engine *e, struct dsm_entry *entry,
		const struct dsm_event *event, const uint8_t *page)
{
	struct dsm_actions actions = { 0 };
	int rc = dsm_step(&e->vm, &entry->page, event, &actions);

	after(e, entry, &actions, page);
	return rc;
}

static int simple_step(struct dsm_engine *e, uint64_t gfn, unsigned int type)
{
	struct dsm_event event = { .type = (uint8_t)type };
	struct dsm_entry *entry = entry_for(e, gfn);

	return entry ? step(e, entry, &event, NULL) : 0;
}

/* ---- The token ---- */

static void send_all(struct dsm_engine *e, const struct dsm_actions *actions)
{
	unsigned int i;

	for (i = 0; i < actions->nr; i++)
		send_message(e, &actions->action[i], NULL);
}

static void look_for_token(struct dsm_engine *e)
{
	if (!e->token_vcpu || e->token_due != DSM_NEVER ||
	    e->token.state != DSM_TOKEN_HERE)
		return;
	e->counts.tokens++;
	e->token_due = now(e) + e->p.token_ns;
}

static void next_in_line(struct dsm_engine *e)
{
	struct vcpu *v = TAILQ_FIRST(&e->line);
	struct dsm_actions actions;

	if (!v || e->token_vcpu)
		return;
	TAILQ_REMOVE(&e->line, v, line);
	v->in_line = false;
	e->token_vcpu = v;
	e->token_due = DSM_NEVER;
	if (dsm_token_want(&e->vm, &e->token, &actions)) {
		/* no connection with its home: dsm_engine_peer_up() goes on */
		e->token_vcpu = NULL;
		TAILQ_INSERT_HEAD(&e->line, v, line);
		v->in_line = true;
		return;
	}
	send_all(e, &actions);
	look_for_token(e);
}

static void want_token(struct dsm_engine *e, struct vcpu *v)
{
	v->needs_token = true;
	if (v->in_line || e->token_vcpu == v)
		return;
	TAILQ_INSERT_TAIL(&e->line, v, line);
	v->in_line = true;
	next_in_line(e);
}

static void give_token_up(struct dsm_engine *e, struct vcpu *v)
{
	struct dsm_actions actions;

	v->needs_token = false;
	if (v->in_line) {
		TAILQ_REMOVE(&e->line, v, line);
		v->in_line = false;
	}
	if (e->token_vcpu != v)
		return;
	e->token_vcpu = NULL;
	e->token_due = DSM_NEVER;
	dsm_token_free(&e->vm, &e->token, &actions);
	send_all(e, &actions);
	next_in_line(e);
}

static bool has_token(const struct dsm_engine *e, const struct vcpu *v)
{
	return e->token_vcpu == v && e->token_due != DSM_NEVER;
}

/* It has retired an instruction since it missed these pages. */
static void retired(struct dsm_engine *e, struct vcpu *v)
{
	unsigned int i, nr = v->nr_leased < LEASED ? v->nr_leased : LEASED;
	struct dsm_entry *entry;

	for (i = 0; i < nr && !e->has_failed; i++) {
		entry = dsm_table_find(&e->table, v->leased[i]);
		if (entry && entry->page.lease != DSM_LEASE_NONE &&
		    entry->lease_vcpu == (unsigned int)(v - e->vcpu))
			simple_step(e, v->leased[i], DSM_EV_RETIRED);
	}
	v->nr_leased = 0;
	dsm_losses_retired(&v->losses);
	if (!e->has_failed)
		give_token_up(e, v);
}

/* ---- Misses ---- */

static bool is_here(const struct dsm_page *page, bool write)
{
	return page->state >= (write ? DSM_MODIFIED : DSM_SHARED);
}

/* May the core be told of a miss that it makes a request of? */
static bool may_ask(struct dsm_engine *e, const struct dsm_entry *entry,
		    uint64_t gfn)
{
	unsigned int home = dsm_vm_home(&e->vm, gfn);

	if (e->requests >= DSM_ENGINE_REQUESTS)
		return false;
	if (home == e->vm.self)
		return true;
	if (!(e->vm.up & dsm_bit(home)) ||
	    !e->p.calls->room(e->p.context, home))
		return false;
	if ((!entry || !entry->counted) && e->used >= e->frames) {
		e->hungry = true;
		return false;
	}
	return true;
}

/* Return: was the core told, or is it not necessary any more? */
static bool tell(struct dsm_engine *e, struct waiter *w)
{
	bool write = w->want != DSM_XEN_WANT_S;
	struct dsm_event event = { .type = DSM_EV_MISS, .write = write };
	struct dsm_entry *entry;
	int rc;

	if (w->vcpu && w->vcpu->needs_token && !has_token(e, w->vcpu))
		return false;
	entry = dsm_table_find(&e->table, w->gfn);
	if (entry && entry->page.operation) {
		flush(e);
		if (e->has_failed || !w->queued)
			return true;
		entry = dsm_table_find(&e->table, w->gfn);
	}
	if (!(entry && (is_here(&entry->page, write) || entry->page.request)) &&
	    !may_ask(e, entry, w->gfn))
		return false;

	entry = entry_for(e, w->gfn);
	if (!entry || !w->queued)
		return true;
	unqueue_waiter(e, w);
	/*
	 * M_NODATA is asked for with its bytes: the miss may be late.  Its vCPU
	 * has gone on then, another host has written to the page since, and a
	 * request without data would zero that.
	 */
	if (w->vcpu && w->vcpu->needs_token)
		event.flags |= DSM_F_TOKEN;
	entry->referenced = true;
	rc = step(e, entry, &event, NULL);
	if (rc)
		fail_vm(e, "a miss of gfn 0x%" PRIx64 ": %s", w->gfn,
			dsm_error_name((unsigned int)-rc));
	return true;
}

static void tell_all(struct dsm_engine *e)
{
	struct waiter *w = TAILQ_FIRST(&e->waiting);
	bool hungry = false;

	while (w && !e->has_failed) {
		e->hungry = false;
		if (tell(e, w)) {
			/* It may have woken others: begin again. */
			w = TAILQ_FIRST(&e->waiting);
			continue;
		}
		if (!w->counted) {
			w->counted = true;
			*(e->hungry ? &e->counts.waited_frames :
				      &e->counts.waited_others) += 1;
		}
		hungry |= e->hungry;
		w = TAILQ_NEXT(w, link);
	}
	e->hungry = hungry;
}

static void vcpu_missed(struct dsm_engine *e, const struct dsm_xen_miss *miss)
{
	struct vcpu *v = &e->vcpu[miss->vcpu];
	const struct dsm_entry *entry;
	struct dsm_page none = { 0 };

	if (v->known && v->rip != miss->rip)
		retired(e, v);
	v->known = true;
	v->rip = miss->rip;
	if (!v->waiting)
		v->since = now(e);
	v->waiting = true;
	if (v->waiter.queued && v->waiter.gfn != miss->gfn)
		unqueue_waiter(e, &v->waiter);
	v->waiter.gfn = miss->gfn;
	v->waiter.want = miss->want;
	*(miss->want == DSM_XEN_WANT_S ? &e->counts.read_faults :
					 &e->counts.write_faults) += 1;
	entry = dsm_table_find(&e->table, miss->gfn);
	if (e->vm.leases &&
	    dsm_losses_miss(&v->losses, &e->vm, entry ? &entry->page : &none))
		want_token(e, v);
	queue_waiter(e, &v->waiter);
}

/* Another domain tries again by itself: one that finds no place is forgotten. */
static void foreign_missed(struct dsm_engine *e, const struct dsm_xen_miss *miss)
{
	struct waiter *w, *place = NULL;

	e->counts.foreign_faults++;
	for (w = e->foreign; w < e->foreign + FOREIGN; w++) {
		if (w->queued && w->gfn == miss->gfn) {
			if (w->want < miss->want)
				w->want = miss->want;
			return;
		}
		if (!w->queued)
			place = w;
	}
	if (!place)
		return;
	place->gfn = miss->gfn;
	place->want = miss->want;
	queue_waiter(e, place);
}

void dsm_engine_misses(struct dsm_engine *e)
{
	struct dsm_xen_miss miss[RING];
	int i, nr;

	do {
		if (e->has_failed)
			return;
		nr = e->p.xen->calls->misses(e->p.xen, miss, RING);
		if (nr < 0) {
			fail_vm(e, "Xen's ring: %s", strerror(-nr));
			return;
		}
		for (i = 0; i < nr; i++) {
			if (!miss[i].want || miss[i].want > DSM_XEN_WANT_M_NODATA ||
			    (!miss[i].foreign && miss[i].vcpu >= e->p.nr_vcpus) ||
			    dsm_vm_home(&e->vm, miss[i].gfn) == DSM_NOBODY) {
				fail_vm(e, "Xen's ring: vCPU %u wants %u of gfn 0x%" PRIx64
					", which makes no sense", miss[i].vcpu,
					miss[i].want, miss[i].gfn);
				return;
			}
			if (miss[i].foreign)
				foreign_missed(e, &miss[i]);
			else
				vcpu_missed(e, &miss[i]);
		}
	} while (nr == RING);
}

void dsm_engine_room(struct dsm_engine *e, unsigned int host)
{
	(void)host;
	if (!e->has_failed)
		tell_all(e);
}

/* ---- Frames ---- */

/* So many should be free, that a miss need not wait. */
static unsigned int spare(const struct dsm_engine *e)
{
	unsigned int part = e->frames / 16;

	return part < DSM_ENGINE_WRITEBACKS ? part : DSM_ENGINE_WRITEBACKS;
}

static void evict_one(struct dsm_engine *e, struct dsm_entry *entry)
{
	struct dsm_event event = { .type = DSM_EV_EVICT };

	if (!dsm_table_lend(&e->table, entry))
		return;
	/* "Not now" changes nothing. */
	step(e, entry, &event, NULL);
}

/*
 * Second chance: who was missed since the hand came by stays for a round.  S
 * pages cost a message, M pages one with a page and a buffer until its answer.
 */
static void evict(struct dsm_engine *e)
{
	unsigned int want = e->draining ? e->guests : 0, looked = 0, begun = 0;
	unsigned int all = 2 * e->guests;
	unsigned int unused = e->frames > e->used ? e->frames - e->used : 0;
	struct dsm_entry *entry;

	if (!e->draining && (unused < spare(e) || e->hungry))
		want = spare(e) + 1 > unused ? spare(e) + 1 - unused : 1;
	while (begun < want && looked++ < all && !e->has_failed &&
	       e->writebacks + begun < DSM_ENGINE_WRITEBACKS &&
	       e->batch[e->current].nr_slots < SLOTS) {
		entry = TAILQ_FIRST(&e->clock);
		TAILQ_REMOVE(&e->clock, entry, clock);
		TAILQ_INSERT_TAIL(&e->clock, entry, clock);
		if (entry->page.operation)
			continue;
		if (entry->referenced && !e->draining) {
			entry->referenced = false;
			continue;
		}
		evict_one(e, entry);
		begun += entry->page.operation != 0;
	}
}

/* ---- Time ---- */

void dsm_engine_run(struct dsm_engine *e)
{
	if (e->has_failed)
		return;
	tell_all(e);
	flush(e);
	if (e->has_failed)
		return;
	evict(e);
	flush(e);
	if (!e->has_failed)
		tell_all(e);
	flush(e);
}

uint64_t dsm_engine_next(const struct dsm_engine *e)
{
	const struct dsm_entry *entry = dsm_table_first_due(&e->table);
	uint64_t next = e->keepalive_due;

	if (e->has_failed)
		return DSM_NEVER;
	if (entry && entry->due < next)
		next = entry->due;
	return e->token_due < next ? e->token_due : next;
}

static void retry_due(struct dsm_engine *e, struct dsm_entry *entry, uint64_t t)
{
	bool long_enough = t - entry->busy_since >= e->p.pin_ns;
	bool special = entry->special, home = at_home(e, entry);
	uint64_t gfn = entry->page.gfn;

	entry->retry_due = DSM_NEVER;
	if (!special && !long_enough) {
		simple_step(e, gfn, DSM_EV_RETRY);
		return;
	}
	e->counts.pins++;
	warn(e, WARN_PIN, special ?
	     "gfn 0x%" PRIx64 " is no plain memory and can't leave this host" :
	     "gfn 0x%" PRIx64 " is in use for too long and can't leave this host now",
	     gfn);
	simple_step(e, gfn, DSM_EV_PIN_TIMEOUT);
	/* "Not now" if another transaction has begun: it ends like this one. */
	if (special && home && !e->has_failed)
		simple_step(e, gfn, DSM_EV_PRIVATE);
}

static void lease_due(struct dsm_engine *e, struct dsm_entry *entry, uint64_t t)
{
	uint64_t gfn = entry->page.gfn;
	const struct vcpu *v = e->token_vcpu;

	entry->lease_due = DSM_NEVER;
	switch (entry->page.lease) {
	case DSM_LEASE_NONE:
		/* Its loss is so long ago that it says nothing of the next miss. */
		entry->page.lost = false;
		settle(e, entry);
		return;
	case DSM_LEASE_ACTIVE:
		simple_step(e, gfn, DSM_EV_LEASE_OVER);
		return;
	case DSM_LEASE_TOKEN:
		if (v && v->waiting && has_token(e, v)) {
			entry->lease_due = t + e->p.token_ns;
			dsm_table_reschedule(&e->table, entry);
			return;
		}
	}
	simple_step(e, gfn, DSM_EV_RETIRED);
}

static void entry_due(struct dsm_engine *e, struct dsm_entry *entry, uint64_t t)
{
	if (entry->page.operation) {
		flush(e);
	} else if (entry->away_due <= t) {
		end_hole(e, entry);
		if (!e->has_failed)
			settle(e, entry);
	} else if (entry->retry_due <= t) {
		retry_due(e, entry, t);
	} else {
		lease_due(e, entry, t);
	}
}

void dsm_engine_tick(struct dsm_engine *e)
{
	struct dsm_entry *entry;
	uint64_t t = now(e);
	int rc;

	while (!e->has_failed && (entry = dsm_table_first_due(&e->table)) &&
	       entry->due <= t)
		entry_due(e, entry, t);
	if (!e->has_failed && e->token_due <= t) {
		if (e->token_vcpu->waiting)
			e->token_due = t + e->p.token_ns;
		else
			retired(e, e->token_vcpu);
	}
	if (!e->has_failed && e->keepalive_due <= t) {
		rc = e->p.xen->calls->keepalive(e->p.xen, e->p.keepalive_ms);
		e->keepalive_due = t + e->p.keepalive_ms * MS / 4;
		if (rc)
			fail_vm(e, "Xen does not take a sign of life: %s",
				strerror(-rc));
	}
	dsm_engine_run(e);
}

/* ---- Peers ---- */

int dsm_engine_peer_up(struct dsm_engine *e, unsigned int host, uint32_t epoch)
{
	int rc = dsm_vm_peer_up(&e->vm, host, epoch);

	if (!rc && !e->has_failed) {
		next_in_line(e);
		tell_all(e);
	}
	return rc;
}

void dsm_engine_peer_down(struct dsm_engine *e, unsigned int host, bool orderly,
			  const char *why)
{
	struct dsm_event event = { .type = DSM_EV_HOST_LOST, .from = (uint8_t)host };
	uint64_t modified = 0, own = 0, kept = 0;
	struct dsm_entry *entry, *next;
	struct dsm_actions actions;
	const struct dsm_range *r;

	if (host >= e->vm.nr_hosts || !(e->vm.up & dsm_bit(host)) || e->has_failed)
		return;
	flush(e);
	if (e->has_failed)
		return;
	for (entry = dsm_table_next(&e->table, NULL); entry;
	     entry = dsm_table_next(&e->table, entry)) {
		modified += at_home(e, entry) &&
			    dsm_page_only_at(&entry->page, host);
		kept += entry->page.home == host &&
			entry->page.state != DSM_INVALID;
	}
	for (r = e->vm.range; r < e->vm.range + e->vm.nr_ranges; r++)
		if (r->home == host)
			own += r->end - r->start;

	dsm_vm_peer_down(&e->vm, host);
	e->peer_requests[host] = 0;
	if (!orderly || modified || own) {
		fail_vm(e, "host %s is lost (%s): %" PRIu64 " pages of %s were modified there; of its own %"
			PRIu64 " pages %" PRIu64 " are here", name_of(e, host),
			why, modified, name_of(e, e->vm.self), own, kept);
		return;
	}

	dsm_token_host_lost(&e->vm, &e->token, host, &actions);
	send_all(e, &actions);
	look_for_token(e);
	e->counting = true;
	for (entry = dsm_table_next(&e->table, NULL); entry && !e->has_failed;
	     entry = next) {
		if (entry->page.operation || e->batch[e->current].nr_slots >= SLOTS) {
			/* Entries may go: begin again; twice does no harm. */
			flush(e);
			next = dsm_table_next(&e->table, NULL);
			continue;
		}
		next = dsm_table_next(&e->table, entry);
		if (dsm_table_lend(&e->table, entry))
			step(e, entry, &event, NULL);
	}
	e->counting = false;
}

static void breach(struct dsm_engine *e, unsigned int from,
		   const struct dsm_msg *msg, const char *what)
{
	fail_vm(e, "host %s breaks the protocol: %s of gfn 0x%" PRIx64 ": %s",
		name_of(e, from), dsm_type_name(msg->type), msg->gfn, what);
}

static bool is_request(unsigned int type)
{
	return type == DSM_GETS || type == DSM_GETM || type == DSM_DROP ||
	       type == DSM_POPULATE;
}

void dsm_engine_message(struct dsm_engine *e, unsigned int from,
			const struct dsm_msg *msg, const uint8_t *page)
{
	struct dsm_event event = {
		.type = DSM_EV_MESSAGE, .from = (uint8_t)from, .msg = *msg,
	};
	struct dsm_actions actions;
	struct dsm_entry *entry;
	int rc;

	if (e->has_failed)
		return;
	rc = dsm_check(&e->vm, from, msg);
	if (!rc && !dsm_type_has_page(msg->type) != !page)
		rc = -DSM_E_LENGTH;
	if (rc) {
		breach(e, from, msg, dsm_error_name((unsigned int)-rc));
		return;
	}
	if (msg->type >= DSM_TOKEN_REQ) {
		rc = dsm_token_message(&e->vm, &e->token, from, msg, &actions);
		if (rc) {
			breach(e, from, msg, dsm_error_name((unsigned int)-rc));
			return;
		}
		send_all(e, &actions);
		look_for_token(e);
		return;
	}
	if (is_request(msg->type)) {
		if (e->peer_requests[from] == DSM_ENGINE_REQUESTS) {
			breach(e, from, msg, "more requests than a host may have open");
			return;
		}
		e->peer_requests[from]++;
	}
	entry = entry_for(e, msg->gfn);
	if (!entry)
		return;
	rc = step(e, entry, &event, page);
	if (rc && !e->has_failed)
		breach(e, from, msg, dsm_error_name((unsigned int)-rc));
}

/* ---- The rest ---- */

static int own_request(struct dsm_engine *e, uint64_t gfn, unsigned int type)
{
	if (e->has_failed || dsm_vm_home(&e->vm, gfn) == DSM_NOBODY)
		return -EINVAL;
	if (!may_ask(e, NULL, gfn))
		return -EAGAIN;
	return simple_step(e, gfn, type) ? -EAGAIN : 0;
}

int dsm_engine_drop(struct dsm_engine *e, uint64_t gfn)
{
	return own_request(e, gfn, DSM_EV_DROP);
}

int dsm_engine_populate(struct dsm_engine *e, uint64_t gfn)
{
	return own_request(e, gfn, DSM_EV_POPULATE);
}

void dsm_engine_drain(struct dsm_engine *e)
{
	e->draining = true;
}

bool dsm_engine_is_quiet(const struct dsm_engine *e)
{
	unsigned int host, open = e->requests + e->writebacks + e->nr_waiting;

	for (host = 0; host < e->vm.nr_hosts; host++)
		open += e->peer_requests[host];
	return !open && !e->batch[e->current].nr_slots &&
	       !e->batch[e->current].nr_ops;
}

unsigned int dsm_engine_guests(const struct dsm_engine *e)
{
	return e->guests;
}

const char *dsm_engine_failure(const struct dsm_engine *e)
{
	return e->has_failed ? e->failure : NULL;
}

void dsm_engine_fail(struct dsm_engine *e, const char *text)
{
	fail_vm(e, "%s", text);
}

void dsm_engine_get_counts(const struct dsm_engine *e,
			   struct dsm_engine_counts *counts)
{
	const struct dsm_entry *entry;

	*counts = e->counts;
	counts->frames = e->frames;
	counts->frames_used = e->used;
	counts->requests = e->requests;
	counts->waiting = e->nr_waiting;
	counts->pages = e->table.nr;
	for (entry = dsm_table_next(&e->table, NULL); entry;
	     entry = dsm_table_next(&e->table, (struct dsm_entry *)entry))
		counts->elsewhere += at_home(e, entry) &&
				     entry->page.state == DSM_INVALID;
}

const char *dsm_engine_broken_rule(const struct dsm_engine *e)
{
	const struct dsm_entry *entry;
	unsigned int used = 0, asking = 0;
	const char *rule;

	for (entry = dsm_table_next(&e->table, NULL); entry;
	     entry = dsm_table_next(&e->table, (struct dsm_entry *)entry)) {
		rule = dsm_page_broken_rule(&entry->page, &e->vm);
		if (rule)
			return rule;
		if (!entry->buffer && dsm_page_needs_buffer(&entry->page))
			return "a page without its buffer";
		if (entry->place ? e->table.heap[entry->place] != entry :
				   entry->due != DSM_NEVER)
			return "a page that is not in its place in the heap";
		used += entry->counted;
		asking += entry->page.request != 0;
	}
	if (used != e->used || asking != e->requests)
		return "frames or requests are counted wrongly";
	if (e->used > e->frames)
		return "more frames used than there are";
	return NULL;
}

static int check_params(const struct dsm_engine_params *p, struct dsm_vm *vm,
			char *text)
{
	bool others = false;
	unsigned int i;

	if (dsm_vm_init(vm, p->self, p->nr_hosts) || p->token_home >= p->nr_hosts) {
		snprintf(text, DSM_ENGINE_TEXT, "host %u of %u, token at %u: no such hosts",
			 p->self, p->nr_hosts, p->token_home);
		return -EINVAL;
	}
	for (i = 0; i < p->nr_ranges; i++) {
		const struct dsm_range *r = &p->range[i];
		int rc = i < DSM_MAX_RANGES ?
			 dsm_vm_add_range(vm, r->start, r->end, r->home) : -DSM_E_FULL;

		if (rc) {
			snprintf(text, DSM_ENGINE_TEXT, "range %u, gfns 0x%" PRIx64 " to 0x%"
				 PRIx64 " of host %u: %s", i, r->start, r->end,
				 r->home, dsm_error_name((unsigned int)-rc));
			return -EINVAL;
		}
		others |= r->home != p->self;
	}
	if (!p->nr_ranges || !p->nr_vcpus || p->nr_vcpus > DSM_ENGINE_VCPUS) {
		snprintf(text, DSM_ENGINE_TEXT, "%u ranges, %u vCPUs: want 1 to %u, 1 to %u",
			 p->nr_ranges, p->nr_vcpus, DSM_MAX_RANGES, DSM_ENGINE_VCPUS);
		return -EINVAL;
	}
	if (others && p->frames < DSM_FRAMES_PER_VCPU * p->nr_vcpus) {
		snprintf(text, DSM_ENGINE_TEXT, "%u frames in the pool: want %u, %u for each of %u vCPUs",
			 p->frames, DSM_FRAMES_PER_VCPU * p->nr_vcpus,
			 DSM_FRAMES_PER_VCPU, p->nr_vcpus);
		return -EINVAL;
	}
	if (!p->token_ns || !p->retry_ns || p->retry_ns > BACKOFF_MOST || !p->pin_ns) {
		snprintf(text, DSM_ENGINE_TEXT, "a time is 0, or retry_ns above %llu", BACKOFF_MOST);
		return -EINVAL;
	}
	return 0;
}

int dsm_engine_create(const struct dsm_engine_params *params,
		      struct dsm_engine **engine, char text[DSM_ENGINE_TEXT])
{
	struct dsm_engine *e = calloc(1, sizeof(*e));
	unsigned int i;
	int rc = -ENOMEM;

	snprintf(text, DSM_ENGINE_TEXT, "no memory");
	if (!e)
		return -ENOMEM;
	e->p = *params;
	rc = check_params(params, &e->vm, text);
	if (rc)
		goto fail;
	e->vm.token_home = params->token_home;
	e->vm.leases = params->lease_ns != 0;
	if (params->max_losses)
		e->vm.max_losses = params->max_losses;
	dsm_token_init(&e->token);
	TAILQ_INIT(&e->waiting);
	TAILQ_INIT(&e->line);
	TAILQ_INIT(&e->clock);
	e->dice = params->seed;
	e->frames = params->frames;
	e->token_due = DSM_NEVER;
	e->keepalive_due = params->keepalive_ms ? 0 : DSM_NEVER;

	rc = -ENOMEM;
	e->nr_buffers = DSM_ENGINE_REQUESTS * params->nr_hosts +
			DSM_ENGINE_WRITEBACKS + 2 * SLOTS;
	e->buffers = params->xen->calls->alloc_pages(params->xen, e->nr_buffers);
	e->vcpu = calloc(params->nr_vcpus, sizeof(*e->vcpu));
	if (!e->buffers || !e->vcpu ||
	    dsm_table_init(&e->table, e->buffers, e->nr_buffers))
		goto fail;
	for (i = 0; i < params->nr_vcpus; i++)
		e->vcpu[i].waiter.vcpu = &e->vcpu[i];
	*engine = e;
	text[0] = 0;
	return 0;

fail:
	if (e->buffers)
		params->xen->calls->free_pages(params->xen, e->buffers, e->nr_buffers);
	free(e->vcpu);
	free(e);
	return rc;
}

void dsm_engine_destroy(struct dsm_engine *e)
{
	if (!e)
		return;
	e->p.xen->calls->free_pages(e->p.xen, e->buffers, e->nr_buffers);
	dsm_table_exit(&e->table);
	free(e->vcpu);
	free(e);
}
