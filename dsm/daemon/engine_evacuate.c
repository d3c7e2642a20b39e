// SPDX-License-Identifier: GPL-2.0
/*
 * Evacuation: pages of a range come to where their home is, many at a time.
 *
 * Before a node goes, its pages have to be at home.  Left to themselves they
 * come one by one, each when a vCPU misses it: a round trip for each.  Here the
 * range is gone through in the order of its gfns: pages whose home is here and
 * that are elsewhere are asked for, as if somebody wrote to them, and pages of
 * others that are here are given up.  WINDOW of them are under way at a time,
 * so the link is kept busy and half of the requests is left to misses.  A clean
 * page of another host is only told of (PUTS has no answer): of those a pass
 * sends no more than the link has room for.
 *
 * A page that can't go now (a lease, in use, a request that is out) is left to
 * the next pass.  When a pass has found nothing the evacuation is over.  While
 * the VM's vCPUs take pages away again it may not end: the caller has them stop
 * first, or ends it.
 *
 * Of a host that leaves only what concerns it is looked for: what the others do with
 * the rest would be called home again and again, as long as that takes.
 *
 * A pass looks at LOOKS frames at a time, and goes on as soon as the caller has
 * looked at what else has come.
 */
#include <errno.h>

#include "engine_internal.h"

#define WINDOW	64u
#define LOOKS	4096u
#define AGAIN	MS		/* ns between two passes if nothing is under way */
#define ALL	UINT16_MAX	/* hosts */

/* Is it where it belongs? */
static bool is_home(const struct dsm_engine *e, const struct dsm_entry *entry)
{
	if (at_home(e, entry))
		return entry->page.state == DSM_MODIFIED;
	return entry->page.state == DSM_INVALID && !entry->page.writeback;
}

static bool may_begin(const struct dsm_engine *e, unsigned int begun)
{
	return e->evacuation.out < WINDOW &&
	       e->requests < DSM_ENGINE_REQUESTS / 2 &&
	       e->writebacks + begun < DSM_ENGINE_WRITEBACKS &&
	       e->batch[e->current].nr_slots < SLOTS;
}

/*
 * Is it on its way, or about to go?  What was asked for before the pass came by
 * comes here after it, and what somebody asks a home for is there no longer.
 */
static bool is_under_way(const struct dsm_entry *entry)
{
	const struct dsm_page *page = &entry->page;

	return page->operation || page->request || page->writeback ||
	       page->dir.phase != DSM_IDLE;
}

/* "Not now" changes nothing. */
static void begin(struct dsm_engine *e, struct dsm_entry *entry)
{
	struct dsm_event event = { .type = DSM_EV_EVICT };

	if (at_home(e, entry))
		event = (struct dsm_event){ .type = DSM_EV_MISS, .write = true };
	/* What is not at home is not forgotten as its lease ends. */
	if (!engine_look_at_lease(e, entry) || entry->page.operation ||
	    !dsm_table_lend(&e->table, entry))
		return;
	entry->evacuating = true;
	e->evacuation.out++;
	engine_step(e, entry, &event, NULL);
}

void engine_evacuate_settle(struct dsm_engine *e, struct dsm_entry *entry)
{
	const struct dsm_page *page = &entry->page;

	if (!entry->evacuating || page->operation || page->request ||
	    page->writeback)
		return;
	entry->evacuating = false;
	e->evacuation.out--;
	e->counts.evacuated += is_home(e, entry);
}

/* Is it looked for?  What is under way may be about to go to a host that has asked for it. */
static bool is_meant(const struct dsm_engine *e, const struct dsm_entry *entry)
{
	unsigned int host;

	if (e->evacuation.hosts == ALL)
		return true;
	for (host = 0; host < e->vm.nr_hosts; host++)
		if (e->evacuation.hosts & dsm_bit(host) &&
		    (dsm_page_concerns(&entry->page, &e->vm, host) ||
		     (e->peer_requests[host] && is_under_way(entry))))
			return true;
	return false;
}

enum passed { PASS_ALL, PASS_MORE, PASS_NO_ROOM };

static enum passed pass(struct dsm_engine *e)
{
	unsigned int most = e->p.looks ? e->p.looks : LOOKS, looks = 0, begun = 0, sent[DSM_MAX_HOSTS] = { 0 };
	struct evacuation *v = &e->evacuation;
	struct dsm_entry *entry;

	for (; v->at < v->end; v->at++) {
		unsigned int home;

		if (looks++ == most || e->has_failed || !may_begin(e, begun))
			return PASS_MORE;
		entry = dsm_table_find(&e->table, v->at);
		if (!entry || (is_home(e, entry) && !is_under_way(entry)))
			continue;
		if (!is_meant(e, entry))
			continue;
		v->found++;
		if (is_under_way(entry))
			continue;
		home = dsm_vm_home(&e->vm, v->at);
		if (home != e->p.self &&
		    sent[home]++ >= e->p.calls->room(e->p.context, home))
			return PASS_NO_ROOM;
		begin(e, entry);
		begun++;
	}
	return PASS_ALL;
}

void engine_evacuate(struct dsm_engine *e)
{
	struct evacuation *v = &e->evacuation;
	enum passed passed;
	uint64_t wait;

	if (v->first == v->end)
		return;
	/* Between two passes; not one that others under way have held up. */
	if (v->at == v->first && v->due != DSM_NEVER && v->due > now(e))
		return;
	v->due = DSM_NEVER;
	passed = pass(e);
	engine_flush(e);
	if (e->has_failed)
		return;
	if (passed != PASS_ALL) {
		/* What is under way makes room; else it goes on at once. */
		wait = passed == PASS_NO_ROOM ? AGAIN : 0;
		if (wait || v->out < WINDOW)
			v->due = now(e) + wait;
		return;
	}
	if (v->out)
		return;
	if (!v->found) {
		v->first = v->end = v->at = 0;
		return;
	}
	v->at = v->first;
	v->found = 0;
	v->due = now(e) + AGAIN;
}

int dsm_engine_evacuate_of(struct dsm_engine *e, uint16_t hosts, uint64_t first, uint64_t end)
{
	if (first > end || e->has_failed)
		return -EINVAL;
	e->evacuation.hosts = hosts;
	e->evacuation.first = first;
	e->evacuation.at = first;
	e->evacuation.end = end;
	e->evacuation.found = 0;
	e->evacuation.due = first < end ? 0 : DSM_NEVER;
	return 0;
}

int dsm_engine_evacuate(struct dsm_engine *e, uint64_t first, uint64_t end)
{
	return dsm_engine_evacuate_of(e, ALL, first, end);
}

bool dsm_engine_is_evacuating(const struct dsm_engine *e)
{
	return e->evacuation.first != e->evacuation.end;
}
