// SPDX-License-Identifier: GPL-2.0
/*
 * Prefetch: who reads pages one after the other has the next ones before it
 * asks.
 *
 * Each vCPU has a few streams.  A stream is a page that was missed for reading,
 * and the window behind it: pages that were asked for, from @from up to @to, or
 * down to it.  Xen does
 * not say when a page is read that is here, so a window is known to be used
 * when the vCPU misses the page behind it; then the next window is asked for,
 * twice as long, up to the limit.  The limit of a vCPU is halved when a page
 * that it had fetched goes without having been used, and grows a little with
 * each window that was.
 *
 * Nobody waits for a prefetch, so none may take what somebody could wait for:
 *  - it is asked for after the misses, and uses no more than PREFETCHES of the
 *    requests and not the last ROOM_LEFT credits;
 *  - it takes a frame only if so many are free that none has to be evicted.  In a
 *    full pool that would be never, so a window that found none has as many kept
 *    free from then on (e->room); each miss that is in no sequence halves that;
 *  - it only asks for pages whose home is elsewhere.  A home that is busy with the
 *    page says no (DSM_F_PREFETCH), and so it does if the page will be written and
 *    a third host has it.
 * What was fetched and not used is evicted first: it has not been referenced.
 *
 * A range that leaves.  Before its memory goes the guest reads each page that
 * is in use, once, and writes it elsewhere.  So this range has streams of its
 * own, for whichever vCPUs do that, with long windows whether prefetch is
 * switched on or not.  Who waits for a page of a window that is on its way has
 * read all before it: the window goes on from there, and the link has something
 * to do all the time.  What was read goes first (engine_frames.c), which also
 * keeps frames for a window free.  Pages that are free are not read, so the next
 * miss may be a few pages behind the window.  Linux reads downwards: it collects up to 512
 * pages, each before those it has.  Below is what it has read before, so a
 * stream ends where another one has been.  What is fetched for nothing is less
 * than what the stream has read, and the first window: no limit is learnt.
 *
 * Nobody may say that the guest has given it up: it is over, too, when nobody
 * has missed a page of the range for LEAVING_NS.
 */
#include <errno.h>
#include <stddef.h>

#include "engine_internal.h"

#define WINDOW_FIRST	2u
#define WINDOW_LEAVING	8u	/* the first of a range that leaves */
#define GAP		8	/* free pages in such a range, that nobody reads */
#define PREFETCHES	64u	/* open, of DSM_ENGINE_REQUESTS */
#define ROOM_LEFT	16u	/* credits that are left to others */
#define LEAVING_NS	(60 * 1000 * MS)

static bool is_leaver(const struct dsm_engine *e, const struct reader *r)
{
	return r == &e->leaving.reader;
}

static struct stream *end_of(const struct dsm_engine *e, struct reader *r)
{
	return r->stream + (is_leaver(e, r) ? STREAMS_LEAVING : STREAMS);
}

static unsigned int limit_of_all(const struct dsm_engine *e, const struct reader *r)
{
	return is_leaver(e, r) ? DSM_ENGINE_PREFETCH : e->p.prefetch;
}

static unsigned int most_of(const struct dsm_engine *e, const struct reader *r)
{
	unsigned int all = limit_of_all(e, r);

	return r->limit && r->limit < all ? r->limit : all;
}

static unsigned int less(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* How far it is, in the direction of the stream. */
static int64_t way(const struct stream *s, uint64_t from, uint64_t to)
{
	return (int64_t)(to - from) * s->step;
}

static int64_t place(const struct stream *s, uint64_t gfn)
{
	return way(s, s->from, gfn);
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

/* It has been read. */
static void passed(struct dsm_engine *e, const struct reader *r, uint64_t gfn)
{
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn);

	if (!entry || entry->page.state == DSM_INVALID)
		return;
	used(e, entry);
	if (is_leaver(e, r))
		engine_evict_first(e, entry);
}

/*
 * It misses @gfn: it has read all of the window before that.  Whether the next one
 * will be written is what it did with the pages that it missed since it asked for
 * the last one: those came as it asked for them, so a write after a read is a
 * second miss.  Who stops writing has one window more to write.
 */
static void next_window(struct dsm_engine *e, struct reader *r, struct stream *s,
			uint64_t gfn)
{
	unsigned int most = most_of(e, r), first = WINDOW_FIRST;
	uint64_t page;

	if (is_leaver(e, r)) {
		first = WINDOW_LEAVING;
		passed(e, r, s->from - (uint64_t)s->step);
	}
	if (s->window && gfn != s->from) {
		for (page = s->from; page != gfn; page += (uint64_t)s->step)
			passed(e, r, page);
		r->limit = less(most + WINDOW_FIRST, limit_of_all(e, r));
		most = most_of(e, r);
	}
	s->window = less(s->window ? 2 * s->window : first, most);
	s->from = gfn + (uint64_t)s->step;
	if (place(s, s->to) < 0)
		s->to = s->from;
	s->wanted = s->window - less(s->window, (unsigned int)place(s, s->to));
	r->wants = true;
	e->wants_prefetch = true;
}

/* Return: is @gfn what comes next in this stream, or comes again? */
static bool goes_on(struct dsm_engine *e, struct reader *r, struct stream *s,
		    uint64_t gfn, bool write)
{
	int64_t at, length;

	/* Where it goes is not known before the second page. */
	if (!s->window && gfn + 1 == s->first) {
		s->step = -1;
		s->from = gfn;
		s->to = gfn;
	}
	at = place(s, gfn);
	length = place(s, s->to);
	if (is_leaver(e, r) && s->window && at > length && at <= length + GAP)
		length = at;
	if (at < -1 || at > length)
		return false;
	s->last = r->clock;
	s->writes |= write;
	/* One within was not fetched, or went again; or it is on its way. */
	if (at == length || (at >= 0 && is_leaver(e, r)))
		next_window(e, r, s, gfn);
	return true;
}

static void missed(struct dsm_engine *e, struct reader *r, uint64_t gfn, bool write)
{
	struct stream *s, *oldest = r->stream;

	r->clock++;
	for (s = r->stream; s < end_of(e, r); s++) {
		if (s->last < oldest->last)
			oldest = s;
		if (s->last && goes_on(e, r, s, gfn, write))
			return;
	}
	if (!is_leaver(e, r))
		e->room /= 2;
	*oldest = (struct stream){
		.first = gfn, .from = gfn + 1, .to = gfn + 1, .step = 1,
		.last = r->clock, .writes = write,
	};
}

void engine_prefetch_miss(struct dsm_engine *e, struct vcpu *v, uint64_t gfn,
			  bool write)
{
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn);
	struct leaving *l = &e->leaving;
	bool leaves = engine_is_leaving(e, now(e)) && gfn >= l->first && gfn < l->end;

	if (entry)
		used(e, entry);
	if (leaves)
		l->until = now(e) + LEAVING_NS;
	if (dsm_vm_home(&e->vm, gfn) == e->vm.self)
		return;
	if (leaves && !write)
		missed(e, &l->reader, gfn, false);
	else if (!leaves && e->p.prefetch)
		missed(e, &v->reader, gfn, write);
}

/* Return: has it been asked for, or need not be? */
static bool fetch(struct dsm_engine *e, unsigned int reader, uint64_t gfn, bool write)
{
	struct dsm_event event = {
		.type = DSM_EV_MISS, .flags = DSM_F_PREFETCH, .write = write,
	};
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn);

	if (entry && (entry->page.state != DSM_INVALID || entry->page.request ||
		      entry->page.writeback || entry->page.operation))
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
	entry->fetched_for = reader;
	engine_step(e, entry, &event, NULL);
	return !e->has_failed;
}

/* Does the range leave, and another stream has not been there? */
static bool leaves(const struct dsm_engine *e, const struct stream *s, uint64_t gfn)
{
	const struct leaving *l = &e->leaving;
	const struct stream *other;

	if (gfn < l->first || gfn >= l->end)
		return false;
	for (other = l->reader.stream; other < l->reader.stream + STREAMS_LEAVING; other++)
		if (other != s && other->window && way(other, other->first, gfn) >= 0 &&
		    way(other, gfn, other->to) > 0)
			return false;
	return true;
}

static void fetch_stream(struct dsm_engine *e, struct reader *r, unsigned int number,
			 struct stream *s)
{
	unsigned int home = dsm_vm_home(&e->vm, s->from);
	bool write = s->writes;

	if (write && home != DSM_NOBODY && !(e->ahead & dsm_bit(home)))
		s->wanted = 0;
	/* What can't be now is left to the next window. */
	for (; s->wanted; s->wanted--, s->to += (uint64_t)s->step)
		if (dsm_vm_home(&e->vm, s->to) != home ||
		    home == e->vm.self || home == DSM_NOBODY ||
		    engine_is_closed(e, s->to) || !(e->vm.up & dsm_bit(home)) ||
		    (is_leaver(e, r) && !leaves(e, s, s->to)) ||
		    !fetch(e, number, s->to, write))
			break;
	if (s->wanted && !is_leaver(e, r) && !engine_has_spare_frame(e) &&
	    e->room < s->window)
		e->room = s->window;
	s->wanted = 0;
	s->writes = false;
}

static struct reader *reader(struct dsm_engine *e, unsigned int number)
{
	return number < e->p.nr_vcpus ? &e->vcpu[number].reader : &e->leaving.reader;
}

void engine_prefetch(struct dsm_engine *e)
{
	struct stream *s;
	struct reader *r;
	unsigned int i;

	if (!e->wants_prefetch)
		return;
	e->wants_prefetch = false;
	for (i = 0; i <= e->p.nr_vcpus; i++) {
		r = reader(e, i);
		if (!r->wants)
			continue;
		r->wants = false;
		for (s = r->stream; s < end_of(e, r) && !e->has_failed; s++)
			if (s->wanted)
				fetch_stream(e, r, i, s);
	}
}

void engine_prefetch_settle(struct dsm_engine *e, struct dsm_entry *entry)
{
	const struct dsm_page *page = &entry->page;
	struct reader *r;

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
	r = reader(e, entry->fetched_for);
	/* Each of its streams has an end, and a window there that says nothing. */
	if (is_leaver(e, r))
		return;
	r->limit = most_of(e, r) / 2;
	if (r->limit < WINDOW_FIRST)
		r->limit = WINDOW_FIRST;
}

int dsm_engine_set_prefetch(struct dsm_engine *e, unsigned int pages)
{
	unsigned int i;

	if (pages > DSM_ENGINE_PREFETCH)
		return -EINVAL;
	/*
	 * From nothing: what was learnt is of another time, and while it was off
	 * each page that was left over said that it had come for nothing.
	 */
	if (!e->p.prefetch)
		for (i = 0; i < e->p.nr_vcpus; i++)
			e->vcpu[i].reader = (struct reader){ 0 };
	e->p.prefetch = pages;
	return 0;
}

void dsm_engine_takes_ahead(struct dsm_engine *e, unsigned int host, bool takes)
{
	uint16_t bit = dsm_bit(host);

	e->ahead = takes ? e->ahead | bit : e->ahead & (uint16_t)~bit;
}

int dsm_engine_leaving(struct dsm_engine *e, uint64_t first, uint64_t end)
{
	if (first > end || e->has_failed)
		return -EINVAL;
	e->leaving = (struct leaving){
		.first = first, .end = end, .until = now(e) + LEAVING_NS,
	};
	return 0;
}
