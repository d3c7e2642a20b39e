// SPDX-License-Identifier: GPL-2.0
/*
 * Prefetch: who reads pages one after the other has the next ones before it
 * asks.
 *
 * Each vCPU has a few streams.  A stream is a page that was missed for reading,
 * and the window behind it: pages that were asked for, [from, to).  Xen does
 * not say when a page is read that is here, so a window is known to be used
 * when the vCPU misses the page behind it; then the next window is asked for,
 * twice as long, up to the limit.  The limit of a vCPU is halved when a page
 * that it had fetched goes without having been used, and grows a little with
 * each window that was.
 *
 * Nobody waits for a prefetch, so none may take what somebody could wait for:
 *  - it is asked for after the misses, and uses no more than PREFETCHES of the
 *    requests and not the last ROOM_LEFT credits;
 *  - it takes a frame only if so many are free that none has to be evicted;
 *  - it only asks for reading, and only for pages whose home is elsewhere.  A
 *    home that is busy with the page says no (DSM_F_PREFETCH).
 * What was fetched and not used is evicted first: it has not been referenced.
 */
#include <errno.h>
#include <stddef.h>

#include "engine_internal.h"

#define WINDOW_FIRST	2u
#define PREFETCHES	64u	/* open, of DSM_ENGINE_REQUESTS */
#define ROOM_LEFT	16u	/* credits that are left to others */

static unsigned int most_of(const struct dsm_engine *e, const struct vcpu *v)
{
	unsigned int limit = v->prefetch_limit;

	return limit && limit < e->p.prefetch ? limit : e->p.prefetch;
}

static unsigned int less(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* It was used: once is enough. */
static void used(struct dsm_engine *e, struct dsm_entry *entry)
{
	if (!entry->fetched)
		return;
	entry->fetched = false;
	entry->fetched_here = false;
	e->counts.prefetch_hits++;
}

/* The vCPU has read all of the window. */
static void window_used(struct dsm_engine *e, const struct stream *s)
{
	struct dsm_entry *entry;
	uint64_t gfn;

	for (gfn = s->from; gfn < s->to; gfn++) {
		entry = dsm_table_find(&e->table, gfn);
		if (entry && entry->page.state != DSM_INVALID)
			used(e, entry);
	}
}

static void next_window(struct dsm_engine *e, struct vcpu *v, struct stream *s,
			uint64_t gfn)
{
	unsigned int most = most_of(e, v);

	if (s->window && s->to > s->from) {
		window_used(e, s);
		v->prefetch_limit = less(most + WINDOW_FIRST, e->p.prefetch);
		most = most_of(e, v);
	}
	s->window = less(s->window ? 2 * s->window : WINDOW_FIRST, most);
	s->from = gfn + 1;
	s->to = gfn + 1;
	s->wanted = s->window;
	v->wants_prefetch = true;
	e->wants_prefetch = true;
}

void engine_prefetch_miss(struct dsm_engine *e, struct vcpu *v, uint64_t gfn,
			  bool write)
{
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn);
	struct stream *s, *oldest = v->stream;

	if (entry)
		used(e, entry);
	if (write || !e->p.prefetch || dsm_vm_home(&e->vm, gfn) == e->vm.self)
		return;
	v->stream_clock++;
	for (s = v->stream; s < v->stream + STREAMS; s++) {
		if (s->last < oldest->last)
			oldest = s;
		if (!s->last)
			continue;
		if (gfn == s->to) {
			s->last = v->stream_clock;
			next_window(e, v, s, gfn);
			return;
		}
		/* One that was not fetched, or went again: the stream goes on. */
		if (gfn + 1 >= s->from && gfn < s->to) {
			s->last = v->stream_clock;
			return;
		}
	}
	*oldest = (struct stream){
		.from = gfn + 1, .to = gfn + 1, .last = v->stream_clock,
	};
}

/* Return: has it been asked for, or need not be? */
static bool fetch(struct dsm_engine *e, unsigned int vcpu, uint64_t gfn)
{
	struct dsm_event event = {
		.type = DSM_EV_MISS, .flags = DSM_F_PREFETCH,
	};
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn);

	if (entry && (entry->page.state != DSM_INVALID || entry->page.request ||
		      entry->page.writeback || entry->page.operation ||
		      entry->away_due != DSM_NEVER))
		return true;
	if (e->draining || e->fetching >= PREFETCHES ||
	    e->requests >= DSM_ENGINE_REQUESTS / 2 ||
	    e->p.calls->room(e->p.context, dsm_vm_home(&e->vm, gfn)) <= ROOM_LEFT ||
	    !engine_has_spare_frame(e))
		return false;
	entry = engine_entry(e, gfn);
	if (!entry)
		return false;
	e->counts.prefetches++;
	entry->fetched = true;
	entry->fetched_here = false;
	entry->fetched_vcpu = vcpu;
	engine_step(e, entry, &event, NULL);
	return !e->has_failed;
}

static void fetch_stream(struct dsm_engine *e, struct vcpu *v, struct stream *s)
{
	unsigned int home = dsm_vm_home(&e->vm, s->from);

	/* What can't be now is left to the next window. */
	for (; s->wanted; s->wanted--, s->to++)
		if (dsm_vm_home(&e->vm, s->to) != home ||
		    home == e->vm.self || home == DSM_NOBODY ||
		    !(e->vm.up & dsm_bit(home)) ||
		    !fetch(e, (unsigned int)(v - e->vcpu), s->to))
			break;
	s->wanted = 0;
}

void engine_prefetch(struct dsm_engine *e)
{
	struct stream *s;
	struct vcpu *v;

	if (!e->wants_prefetch)
		return;
	e->wants_prefetch = false;
	for (v = e->vcpu; v < e->vcpu + e->p.nr_vcpus; v++) {
		if (!v->wants_prefetch)
			continue;
		v->wants_prefetch = false;
		for (s = v->stream; s < v->stream + STREAMS && !e->has_failed; s++)
			if (s->wanted)
				fetch_stream(e, v, s);
	}
}

void engine_prefetch_settle(struct dsm_engine *e, struct dsm_entry *entry)
{
	const struct dsm_page *page = &entry->page;
	struct vcpu *v;

	if (!entry->fetched || page->request || page->operation)
		return;
	if (page->state != DSM_INVALID) {
		entry->fetched_here = true;
		return;
	}
	entry->fetched = false;
	if (!entry->fetched_here) {
		e->counts.prefetch_refused++;
		return;
	}
	entry->fetched_here = false;
	e->counts.prefetch_wasted++;
	v = &e->vcpu[entry->fetched_vcpu];
	v->prefetch_limit = most_of(e, v) / 2;
	if (v->prefetch_limit < WINDOW_FIRST)
		v->prefetch_limit = WINDOW_FIRST;
}

int dsm_engine_set_prefetch(struct dsm_engine *e, unsigned int pages)
{
	if (pages > DSM_ENGINE_PREFETCH)
		return -EINVAL;
	e->p.prefetch = pages;
	return 0;
}
