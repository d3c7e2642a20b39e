// SPDX-License-Identifier: GPL-2.0
/*
 * Misses: what Xen's ring says, and when the core is told.  A miss that can't be a
 * request yet waits here in the order in which it came.
 */
#include <inttypes.h>
#include <string.h>

#include "engine_internal.h"

#define RING		64		/* misses taken at a time */
#define ROUNDS		16		/* times, before others have their turn */

static bool is_here(const struct dsm_page *page, bool write)
{
	return page->state >= (write ? DSM_MODIFIED : DSM_SHARED);
}

/* May the core be told of a miss that it makes a request of? */
bool engine_may_ask(struct dsm_engine *e, const struct dsm_entry *entry,
		    uint64_t gfn)
{
	unsigned int home = dsm_vm_home(&e->vm, gfn);

	if (e->requests >= DSM_ENGINE_REQUESTS || engine_is_closed(e, gfn))
		return false;
	if (home == e->vm.self)
		return true;
	if (!(e->vm.up & dsm_bit(home)) || !engine_has_room(e, home, e->turns.request))
		return false;
	if ((!entry || !entry->counted) && e->used >= e->frames) {
		e->hungry = true;
		return false;
	}
	return true;
}

/*
 * There is no memory.  A vCPU finds that out by itself, once the pages are holes
 * in Xen; another domain tries again anyway.
 */
static bool turn_away(struct dsm_engine *e, struct waiter *w)
{
	if (w->vcpu && engine_is_changing(e, w->gfn))
		return false;
	engine_unqueue_waiter(e, w);
	if (w->vcpu) {
		w->vcpu->waiting = false;
		engine_look_again(e, w->gfn);
	}
	return true;
}

/*
 * Can the page come without its bytes?
 *
 * The miss may be late: its vCPU has gone on then, another host has written to
 * the page since, and a request without data would zero that.  So Xen is asked
 * whether somebody waits for it.  If so he does until we wake him: nothing else
 * of ours is done with this page before its request has been answered.  But at a
 * home: there others may be ahead of us, and what comes for them wakes him.
 */
static bool will_be_cleared(struct dsm_engine *e, const struct waiter *w,
			    const struct dsm_page *page)
{
	struct dsm_xen_op op = { .gfn = w->gfn, .type = DSM_XEN_QUERY };
	int rc;

	if (!e->p.clear_hint || !w->vcpu || w->want != DSM_XEN_WANT_M_NODATA ||
	    page->state != DSM_INVALID || page->request)
		return false;
	if (page->dir.phase != DSM_IDLE) {
		e->counts.clears_late++;
		return false;
	}
	rc = e->p.xen->calls->page(e->p.xen, &op, 1);
	if (rc) {
		engine_fail(e, "a question about gfn 0x%" PRIx64 ": %s", w->gfn,
			    strerror(-rc));
		return false;
	}
	if (op.rc || op.state != DSM_XEN_STATE_I || op.wanted != DSM_XEN_WANT_M_NODATA) {
		e->counts.clears_late++;
		return false;
	}
	e->counts.cleared++;
	return true;
}

void dsm_engine_set_clear_hint(struct dsm_engine *e, bool on)
{
	e->p.clear_hint = on;
}

/* Return: was the core told, or is it not necessary any more? */
static bool tell(struct dsm_engine *e, struct waiter *w)
{
	bool write = w->want != DSM_XEN_WANT_S;
	struct dsm_event event = { .type = DSM_EV_MISS, .write = write };
	struct dsm_entry *entry;
	int rc;

	if (engine_is_closed(e, w->gfn))
		return turn_away(e, w);
	if (w->vcpu && w->vcpu->needs_token && !engine_has_token(e, w->vcpu))
		return false;
	entry = dsm_table_find(&e->table, w->gfn);
	/* Before room is looked for, since requests may come of it. */
	if (entry)
		entry = engine_look_at_lease(e, entry);
	if (e->has_failed || !w->queued)
		return true;
	if (entry && entry->page.operation) {
		engine_flush(e);
		if (e->has_failed || !w->queued)
			return true;
		entry = dsm_table_find(&e->table, w->gfn);
	}
	/*
	 * Xen reports the miss of another domain again if its answer takes long, and can't
	 * tell who asks.  The core would take it for one that came later than what is asked:
	 * a home that says "there is none" would be asked again for ever, and who waits for it
	 * on a vCPU would wait for ever.
	 */
	if (!w->vcpu && entry && entry->foreign && entry->page.request) {
		engine_unqueue_waiter(e, w);
		return true;
	}
	if (!(entry && (is_here(&entry->page, write) || entry->page.request)) &&
	    !engine_may_ask(e, entry, w->gfn))
		return false;

	entry = engine_leased_entry(e, w->gfn);
	if (!entry || !w->queued)
		return true;
	engine_unqueue_waiter(e, w);
	entry->foreign |= !w->vcpu;
	/* A call that is done here for a vCPU elsewhere must not find what is not so. */
	if (!w->vcpu && !engine_call_needs(e, w->gfn))
		event.flags |= DSM_F_TOOL;
	if (w->vcpu && w->vcpu->needs_token)
		event.flags |= DSM_F_TOKEN;
	if (will_be_cleared(e, w, &entry->page))
		event.flags |= DSM_F_NODATA;
	if (e->has_failed)
		return true;
	entry->referenced = true;
	rc = engine_step(e, entry, &event, NULL);
	if (rc)
		engine_fail(e, "a miss of gfn 0x%" PRIx64 ": %s", w->gfn,
			    dsm_error_name((unsigned int)-rc));
	return true;
}

void engine_tell_all(struct dsm_engine *e)
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

/*
 * A page that is used at its home.  Who missed it before it was so has been woken, or is
 * now; who can't use it there asks for it.  Return: it is dealt with.
 */
static bool is_used_elsewhere(struct dsm_engine *e, const struct dsm_xen_miss *miss)
{
	struct dsm_entry *entry = dsm_table_find(&e->table, miss->gfn);

	if (!entry || !entry->uncached)
		return false;
	/* Not any more: it is asked for as any other. */
	if (!(e->vm.used_at_home & dsm_bit(entry->page.home))) {
		engine_cache(e, entry);
		return true;
	}
	if (miss->of_u) {
		entry->needed = true;
		return false;
	}
	engine_uncache(e, entry);
	return true;
}

static void vcpu_missed(struct dsm_engine *e, const struct dsm_xen_miss *miss)
{
	struct vcpu *v = &e->vcpu[miss->vcpu];
	const struct dsm_entry *entry;
	struct dsm_page none = { 0 };

	if (v->known && v->rip != miss->rip)
		engine_retired(e, v);
	if (e->has_failed)
		return;
	v->known = true;
	v->rip = miss->rip;
	if (!v->waiting)
		v->since = now(e);
	v->waiting = true;
	if (v->waiter.queued && v->waiter.gfn != miss->gfn)
		engine_unqueue_waiter(e, &v->waiter);
	v->waiter.gfn = miss->gfn;
	v->waiter.want = miss->want;
	*(miss->want == DSM_XEN_WANT_S ? &e->counts.read_faults :
					 &e->counts.write_faults) += 1;
	entry = dsm_table_find(&e->table, miss->gfn);
	if (e->vm.leases &&
	    dsm_losses_miss(&v->losses, &e->vm, entry ? &entry->page : &none))
		engine_want_token(e, v);
	e->range[dsm_vm_range(&e->vm, miss->gfn)].counts.faults++;
	engine_count(e, miss->gfn, miss->want == DSM_XEN_WANT_S ? DSM_PROFILE_READ : DSM_PROFILE_WRITE, 0);
	engine_prefetch_miss(e, v, miss->gfn, miss->want != DSM_XEN_WANT_S);
	engine_queue_waiter(e, &v->waiter);
}

/*
 * This host only lends memory.  A tool of the control domain that looks into the
 * slice sees what has its home here; the rest is nobody's but the VM's.
 */
static void turn_tool_away(struct dsm_engine *e, uint64_t gfn)
{
	struct dsm_entry *entry = engine_leased_entry(e, gfn);

	if (!entry)
		return;
	e->counts.foreign_faults++;
	engine_warn(e, WARN_FOREIGN, "gfn 0x%" PRIx64 " was mapped here, and its memory is at %s: this host only lends memory",
		    gfn, name_of(e, entry->page.home));
	entry->foreign = true;
	engine_show_hole(e, entry);
	if (!e->has_failed)
		engine_settle(e, entry);
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
	engine_queue_waiter(e, place);
}

static void missed(struct dsm_engine *e, const struct dsm_xen_miss *miss)
{
	unsigned int home = dsm_vm_home(&e->vm, miss->gfn);
	bool never = e->p.lenders & dsm_bit(e->vm.self) && home != e->vm.self;

	if (!miss->want || miss->want > DSM_XEN_WANT_M_NODATA || home == DSM_NOBODY ||
	    (!miss->foreign && (never || miss->vcpu >= e->p.nr_vcpus))) {
		engine_fail(e, "Xen's ring: vCPU %u wants %u of gfn 0x%" PRIx64
			    ", which makes no sense", miss->vcpu, miss->want, miss->gfn);
		return;
	}
	if (miss->foreign && never)
		turn_tool_away(e, miss->gfn);
	else if (miss->foreign)
		foreign_missed(e, miss);
	else if (!is_used_elsewhere(e, miss))
		vcpu_missed(e, miss);
}

/*
 * A guest may fill the ring as fast as it is read, and all else waits for the end of
 * this: so many rounds, and the rest in the next turn.
 */
void engine_read_ring(struct dsm_engine *e)
{
	struct dsm_xen_entry entry[RING];
	unsigned int rounds = ROUNDS;
	int i, nr;

	do {
		if (e->has_failed)
			return;
		nr = e->p.xen->calls->misses(e->p.xen, entry, RING);
		if (nr < 0) {
			engine_fail(e, "Xen's ring: %s", strerror(-nr));
			return;
		}
		for (i = 0; i < nr; i++) {
			if (entry[i].vcpu.type)
				engine_vcpu_said(e, &entry[i].vcpu);
			else
				missed(e, &entry[i].miss);
			if (e->has_failed)
				return;
		}
		e->ring_left = nr == RING;
	} while (e->ring_left && --rounds);
}

void dsm_engine_misses(struct dsm_engine *e)
{
	engine_read_ring(e);
}
