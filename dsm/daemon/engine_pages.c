// SPDX-License-Identifier: GPL-2.0
/*
 * One event: engine_step() asks the core, does the actions, and engine_settle()
 * brings what the engine knows of the page (frame, request, times, buffer) in
 * line with what the core made of it.  Operations that result from it wait in
 * the batch; engine_flush() has Xen do them and gives the core their results,
 * from which more can result, until none is left.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine_internal.h"

#define LOST_NS		(1000 * MS)	/* a page lost that long ago is no loss any more */

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

/* One operation now, on a page that has none in the batch. */
static int operate_for(struct dsm_engine *e, const struct dsm_entry *entry, unsigned int type,
		       uint32_t vcpu)
{
	struct dsm_xen_op op = {
		.gfn = entry->page.gfn, .type = (uint8_t)type, .vcpu = vcpu,
	};
	int rc = e->p.xen->calls->page(e->p.xen, &op, 1);

	e->counts.operations++;
	e->counts.batches++;
	return rc ? rc : op.rc;
}

static int operate(struct dsm_engine *e, const struct dsm_entry *entry, unsigned int type)
{
	return operate_for(e, entry, type, 0);
}

static void show_hole_to(struct dsm_engine *e, struct dsm_entry *entry, uint32_t vcpu)
{
	int rc = operate_for(e, entry, DSM_XEN_HOLE, vcpu);

	/* It may be a hole for good by now: then that is what he finds. */
	if (rc && rc != -ENOENT)
		engine_fail(e, "Xen does not take gfn 0x%" PRIx64 " as a hole: %s",
			    entry->page.gfn, strerror(-rc));
	e->counts.holes += !rc;
}

/*
 * There is no memory, says the home: those who have asked find that out, each with
 * the access that it waits with.  The page stays as it is, and whoever else needs
 * it asks for it, also if that miss is in Xen's ring already: it may be later than
 * the memory that has come there since.
 */
void engine_show_hole(struct dsm_engine *e, struct dsm_entry *entry)
{
	engine_told(e, entry, show_hole_to);
}

static void wake(struct dsm_engine *e, struct dsm_entry *entry, unsigned int whom);

void engine_uncache(struct dsm_engine *e, struct dsm_entry *entry)
{
	int rc = operate(e, entry, DSM_XEN_UNCACHE);

	/* It is so; who has missed it before looks again. */
	if (rc == -EEXIST) {
		engine_look_again(e, entry->page.gfn);
		rc = 0;
	}
	/* Whoever waits asks again: a round trip, and Xen may have some then. */
	if (rc == -ENOMEM) {
		engine_warn(e, WARN_NO_MEMORY, "gfn 0x%" PRIx64 " stays at %s, and Xen has no memory to have it used there: that waits",
			    entry->page.gfn, name_of(e, entry->page.home));
		entry->uncached = false;
		wake(e, entry, DSM_WAKE_ALL);
		return;
	}
	if (rc) {
		engine_fail(e, "Xen does not have gfn 0x%" PRIx64 " used at its home: %s",
			    entry->page.gfn, strerror(-rc));
		return;
	}
	e->counts.uncached += !entry->uncached;
	entry->uncached = true;
	engine_woken(e, entry);
}

/* From U to I, which wakes who waits: he asks for it as for any page. */
static void make_ordinary(struct dsm_engine *e, struct dsm_entry *entry)
{
	int rc = operate(e, entry, DSM_XEN_CACHE);

	/* It may be here by now, or a hole. */
	if (rc && rc != -EEXIST && rc != -EINVAL && rc != -ENOENT) {
		engine_fail(e, "Xen does not take gfn 0x%" PRIx64 " as an ordinary page: %s",
			    entry->page.gfn, strerror(-rc));
		return;
	}
	entry->uncached = false;
	entry->needed = false;
	engine_woken(e, entry);
}

void engine_cache(struct dsm_engine *e, struct dsm_entry *entry)
{
	make_ordinary(e, entry);
	if (!e->has_failed)
		engine_settle(e, entry);
}

void engine_look_again(struct dsm_engine *e, uint64_t gfn)
{
	struct batch *b;

	if (e->batch[e->current].nr_ops >= 2 * SLOTS)
		engine_flush(e);
	b = &e->batch[e->current];
	b->op[b->nr_ops++] = (struct dsm_xen_op){ .gfn = gfn, .type = DSM_XEN_WAKE };
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
		if (at_home(e, entry) && entry->page.state == DSM_MODIFIED) {
			entry->used_here = false;
			return DSM_OP_ABSENT;
		}
		break;
	}
	return broken(e, entry, rc);
}

static unsigned int populated(struct dsm_engine *e, const struct dsm_entry *entry)
{
	int rc;

	/* What nobody has given the VM is this host's, whoever asks for it. */
	if (engine_is_behind(e, entry))
		return DSM_OP_NOMEM;
	rc = e->p.xen->calls->populate(e->p.xen, entry->page.gfn);
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
		engine_woken(e, entry);
	rc = dsm_step(&e->vm, &entry->page, &event, &actions);
	if (rc) {
		engine_fail(e, "gfn 0x%" PRIx64 ": %s", entry->page.gfn,
			    dsm_error_name((unsigned int)-rc));
		return;
	}
	after(e, entry, &actions, NULL);
}

void engine_flush(struct dsm_engine *e)
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
		engine_time_passes(e);
		e->counts.operations += b->nr_ops;
		e->counts.batches += b->nr_ops != 0;
		if (rc)
			engine_fail(e, "Xen does not do page operations: %s",
				    strerror(-rc));
		for (i = 0; i < b->nr_slots && !e->has_failed; i++)
			finish(e, b, &b->slot[i]);
		b->nr_slots = 0;
		b->nr_ops = 0;
	}
	e->flushing = false;
}

/* ---- What the core decides ---- */

bool engine_is_answer(unsigned int type)
{
	return type == DSM_DATA_S || type == DSM_DATA_M || type == DSM_GRANT ||
	       type == DSM_NACK || type == DSM_RESULT;
}

/* An answer has gone. */
static void count_turn(struct dsm_engine *e, unsigned int host)
{
	uint8_t *answers = &e->turns.answers[host];

	if (e->p.calls->room(e->p.context, host)) {
		*answers = 0;
	} else if (++*answers == TURN) {
		*answers = 0;
		e->turns.request |= (uint16_t)dsm_bit(host);
		e->turns.letter |= (uint16_t)dsm_bit(host);
	}
}

void engine_send(struct dsm_engine *e, const struct dsm_action *action,
		 const uint8_t *page)
{
	const struct dsm_msg *msg = &action->msg;

	if (msg->type == DSM_GETS || msg->type == DSM_GETM)
		engine_take_room(e, action->host, &e->turns.request);

	if (engine_is_answer(msg->type) && e->peer_requests[action->host])
		e->peer_requests[action->host]--;
	if (msg->type == DSM_PUTM)
		e->counts.evicted_modified++;
	else if (msg->type == DSM_PUTS)
		e->counts.evicted_shared++;
	e->p.calls->send(e->p.context, action->host, msg,
			 dsm_type_has_page(msg->type) ? page : NULL);
	if (engine_is_answer(msg->type))
		count_turn(e, action->host);
}

/* A request of ours is out, or what another one asked for.  To send takes time. */
static void sent(struct dsm_engine *e, struct dsm_entry *entry, unsigned int type)
{
	if (type == DSM_GETS || type == DSM_GETM) {
		engine_time_passes(e);
		entry->asked = now(e);
		entry->answered = 0;
		engine_queued(e, entry);
	} else if (engine_is_answer(type) && entry->served) {
		engine_time_passes(e);
		dsm_histogram_add(&e->counts.serve, now(e) - entry->served);
		entry->served = 0;
	}
}

void engine_came(struct dsm_engine *e, struct dsm_entry *entry)
{
	if (!entry->asked)
		return;
	entry->answered = engine_read_at(e);
	dsm_histogram_add(&e->counts.wire, entry->answered - entry->asked);
	entry->asked = 0;
}

static void wake(struct dsm_engine *e, struct dsm_entry *entry,
		 unsigned int whom)
{
	/* It was used at its home, which has no memory for it any more. */
	if (whom & DSM_WAKE_HOLE && entry->uncached) {
		make_ordinary(e, entry);
		return;
	}
	if (whom & DSM_WAKE_HOLE) {
		engine_warn(e, WARN_HOLE, "gfn 0x%" PRIx64 " was touched, and there is no memory for that at %s",
			    entry->page.gfn, name_of(e, entry->page.home));
		engine_show_hole(e, entry);
		return;
	}
	add_op(e, entry, DSM_XEN_WAKE, NULL);
	engine_woken(e, entry);
}

static void fail_page(struct dsm_engine *e, const struct dsm_entry *entry,
		      const struct dsm_action *action)
{
	bool is_off = e->vcpus.carried && !e->p.class_u;
	uint64_t gfn = entry->page.gfn;
	char who[DSM_WAITS_SIZE];

	if (e->counting)
		return;
	engine_who_waits(e, gfn, who, sizeof(who));
	switch (action->reason) {
	case DSM_R_BROKEN:
		engine_fail(e, "%s", e->broken);
		break;
	case DSM_R_PRIVATE:
		engine_fail(e, "gfn 0x%" PRIx64 " is needed here%s, and it can't leave %s: it is in use there for ever%s%s",
			    gfn, who, name_of(e, action->host), is_off ? "; class_u of dsmd(8) is off at " : "",
			    is_off ? name_of(e, e->vm.self) : "");
		break;
	case DSM_R_LOST:
		engine_fail(e, "gfn 0x%" PRIx64 " is needed here%s, and its bytes are lost with %s",
			    gfn, who, name_of(e, action->host));
		break;
	default:
		engine_fail(e, "gfn 0x%" PRIx64 ": %s", gfn,
			    dsm_reason_name(action->reason));
	}
}

/* The home says that the page can't leave it, and can be used there. */
static void stays(struct dsm_engine *e, struct dsm_entry *entry, unsigned int reason)
{
	char who[DSM_WAITS_SIZE];

	if (!entry->needed) {
		engine_uncache(e, entry);
		return;
	}
	engine_who_waits(e, entry->page.gfn, who, sizeof(who));
	/* It is let go of some day, and asked for until then. */
	if (reason != DSM_R_PRIVATE) {
		engine_warn(e, WARN_PIN_THERE, "gfn 0x%" PRIx64 " is needed here%s for what can't be done elsewhere (Xen's log says what), and is in use at %s: that waits",
			    entry->page.gfn, who, name_of(e, entry->page.home));
		wake(e, entry, DSM_WAKE_ALL);
		return;
	}
	engine_fail(e, "gfn 0x%" PRIx64 " is needed here%s for what can't be done elsewhere (Xen's log says what), and it can't leave %s: it is in use there for ever",
		    entry->page.gfn, who, name_of(e, entry->page.home));
}

static void act(struct dsm_engine *e, struct dsm_entry *entry,
		const struct dsm_action *action, const uint8_t *page)
{
	switch (action->type) {
	case DSM_ACT_TAKE:
		memcpy(entry->buffer, page, DSM_PAGE_BYTES);
		break;
	case DSM_ACT_SEND:
		engine_send(e, action, entry->buffer);
		sent(e, entry, action->msg.type);
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
		if (entry->backoff_ns < DSM_ENGINE_BACKOFF)
			entry->backoff_ns *= 2;
		break;
	case DSM_ACT_FINISHED:
		e->p.calls->finished(e->p.context, entry->page.gfn,
				     action->reason);
		break;
	case DSM_ACT_FAIL:
		fail_page(e, entry, action);
		break;
	case DSM_ACT_STAYS:
		stays(e, entry, action->reason);
		break;
	case DSM_ACT_OPERATION:
		add_operation(e, entry, action);
		break;
	}
}

/* A number by chance. */
static uint64_t dice(struct dsm_engine *e)
{
	uint64_t z = e->dice += 0x9e3779b97f4a7c15u;	/* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
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
		/* It may be seen late. */
		entry->lease_due = entry->lease_end + e->p.token_ns;
		return;
	}
	entry->lease_due = now(e) + e->p.token_ns;
}

/*
 * Whose page somebody waits for ends when it is due.  The others end as soon as
 * something happens to their page, or together with others: a wake-up for each
 * would cost more than the page did.
 */
static void settle_lease_look(struct dsm_entry *entry)
{
	const struct dsm_page *page = &entry->page;

	entry->lease_look = entry->lease_due;
	if (entry->lease_due == DSM_NEVER || page->recall ||
	    page->dir.phase == DSM_LOCAL || page->lease == DSM_LEASE_TOKEN)
		return;
	entry->lease_look += LEASES_TOGETHER - entry->lease_due % LEASES_TOGETHER;
}

void engine_lease_due(struct dsm_engine *e, struct dsm_entry *entry, uint64_t t)
{
	uint64_t gfn = entry->page.gfn;
	const struct vcpu *v = e->token_vcpu;

	entry->lease_end = entry->lease_due;
	entry->lease_due = DSM_NEVER;
	switch (entry->page.lease) {
	case DSM_LEASE_NONE:
		/* Its loss is so long ago that it says nothing of the next miss. */
		entry->page.lost = false;
		engine_settle(e, entry);
		return;
	case DSM_LEASE_ACTIVE:
		engine_simple_step(e, gfn, DSM_EV_LEASE_OVER);
		return;
	case DSM_LEASE_TOKEN:
		if (v && v->waiting && engine_has_token(e, v) && t < e->token_end) {
			entry->lease_due = t + e->p.token_ns;
			engine_settle(e, entry);
			return;
		}
	}
	engine_simple_step(e, gfn, DSM_EV_RETIRED);
}

/* Leases that are over, and were not looked at: before anything else happens to the page. */
struct dsm_entry *engine_look_at_lease(struct dsm_engine *e, struct dsm_entry *entry)
{
	uint64_t gfn = entry->page.gfn;

	while (!e->has_failed && entry && !entry->page.operation &&
	       entry->lease_due != DSM_NEVER && entry->lease_due <= now(e)) {
		engine_lease_due(e, entry, now(e));
		entry = dsm_table_find(&e->table, gfn);
	}
	return e->has_failed ? NULL : entry;
}

static void settle_clock(struct dsm_engine *e, struct dsm_entry *entry)
{
	bool is = !at_home(e, entry) && entry->page.state != DSM_INVALID;

	if (is == entry->evictable)
		return;
	if (is)
		TAILQ_INSERT_TAIL(&e->clock, entry, clock);
	else
		TAILQ_REMOVE(&e->clock, entry, clock);
	engine_follow(&entry->evictable, is, &e->guests);
}

void engine_settle(struct dsm_engine *e, struct dsm_entry *entry)
{
	struct dsm_page *page = &entry->page;
	bool requested = page->request == DSM_GETS || page->request == DSM_GETM;

	engine_follow(&entry->counted, !at_home(e, entry) &&
	       (page->state != DSM_INVALID || requested || page->wanted), &e->used);
	/* What is asked for once a write-back is answered is a request, too. */
	engine_follow(&entry->asking, page->request || page->wanted, &e->requests);
	engine_follow(&entry->writing, page->writeback, &e->writebacks);
	engine_follow(&entry->fetching, page->request &&
		      page->request_flags & DSM_F_PREFETCH, &e->fetching);
	e->above->settled(e, entry);
	engine_answers_settle(e, entry);
	settle_clock(e, entry);
	settle_lease(e, entry);
	settle_lease_look(entry);
	if (!page->operation && !page->recall_busy && !page->dir.busy) {
		entry->busy_since = 0;
		entry->retry_due = DSM_NEVER;
	}
	dsm_table_reschedule(&e->table, entry);
	if (!dsm_page_needs_buffer(page))
		dsm_table_take_back(&e->table, entry);
	engine_settle_range(e, entry);
	if (page->state != DSM_INVALID) {
		entry->uncached = false;
		entry->needed = false;
	}
	if (page->state != DSM_MODIFIED)
		entry->used_here = false;
	if (dsm_page_is_idle(page, &e->vm) && entry->due == DSM_NEVER && !entry->uncached &&
	    !entry->used_here)
		dsm_table_forget(&e->table, entry);
}

static void after(struct dsm_engine *e, struct dsm_entry *entry,
		  const struct dsm_actions *actions, const uint8_t *page)
{
	unsigned int i;

	for (i = 0; i < actions->nr && !e->has_failed; i++)
		act(e, entry, &actions->action[i], page);
	if (!e->has_failed)
		engine_settle(e, entry);
}

struct dsm_entry *engine_entry(struct dsm_engine *e, uint64_t gfn)
{
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn);

	if (entry)
		engine_look_at_lease(e, entry);
	return e->has_failed ? NULL : engine_leased_entry(e, gfn);
}

struct dsm_entry *engine_leased_entry(struct dsm_engine *e, uint64_t gfn)
{
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn);

	if (e->batch[e->current].nr_slots >= SLOTS ||
	    e->batch[e->current].nr_ops >= 2 * SLOTS ||
	    (entry && entry->page.operation)) {
		engine_flush(e);
		if (e->has_failed)
			return NULL;
	}
	entry = dsm_table_get(&e->table, &e->vm, gfn);
	if (!entry)
		engine_fail(e, "no memory for gfn 0x%" PRIx64, gfn);
	else if (!dsm_table_lend(&e->table, entry))
		engine_fail(e, "more than %u pages are under way", e->nr_buffers);
	return e->has_failed ? NULL : entry;
}

/* Return: what dsm_step() says; 0 after a failure, too. */
int engine_step(struct dsm_engine *e, struct dsm_entry *entry,
		const struct dsm_event *event, const uint8_t *page)
{
	struct dsm_actions actions = { 0 };
	int rc = dsm_step(&e->vm, &entry->page, event, &actions);

	after(e, entry, &actions, page);
	return rc;
}

int engine_simple_step(struct dsm_engine *e, uint64_t gfn, unsigned int type)
{
	struct dsm_event event = { .type = (uint8_t)type };
	struct dsm_entry *entry = engine_entry(e, gfn);

	return entry ? engine_step(e, entry, &event, NULL) : 0;
}
