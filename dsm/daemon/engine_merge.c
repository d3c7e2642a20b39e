// SPDX-License-Identifier: GPL-2.0
/*
 * Superpages at home.
 *
 * A page that leaves, or that others read, splits the 2 MiB that it is in, and
 * comes back by itself.  When all 512 have been at home for merge_ns, in M, Xen is
 * asked to make them one page again, which costs the VM a pause for a copy of
 * 2 MiB, and spares it the split at each access.  Pages that go back and forth never
 * rest that long.
 *
 * It comes after everything else: one at a time, PAUSE apart, and while nobody
 * waits for anything.  One that is in use is tried again, TRIES times; what
 * can't be otherwise is left until a page of it leaves and comes again.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine_internal.h"

#define FRAMES	512u
#define PAUSE	(10 * MS)
#define TRIES	8u

int engine_begin_merging(struct dsm_engine *e)
{
	unsigned int i, k;

	TAILQ_INIT(&e->whole);
	for (i = 0; i < e->vm.nr_ranges && e->p.merge_ns; i++) {
		const struct dsm_range *r = &e->vm.range[i];
		struct engine_range *range = &e->range[i];
		uint64_t first = (r->start + FRAMES - 1) / FRAMES * FRAMES;

		if (r->home != e->vm.self || first + FRAMES > r->end)
			continue;
		range->first_extent = first;
		range->nr_extents = (unsigned int)((r->end - first) / FRAMES);
		range->extent = calloc(range->nr_extents, sizeof(*range->extent));
		if (!range->extent)
			return -ENOMEM;
		for (k = 0; k < range->nr_extents; k++)
			range->extent[k].first = first + (uint64_t)k * FRAMES;
	}
	return 0;
}

void engine_end_merging(struct dsm_engine *e)
{
	unsigned int i;

	for (i = 0; i < DSM_MAX_RANGES; i++)
		free(e->range[i].extent);
}

static struct extent *extent_of(struct dsm_engine *e, const struct dsm_entry *entry)
{
	const struct engine_range *range = &e->range[entry->range];
	uint64_t gfn = entry->page.gfn;

	if (gfn < range->first_extent ||
	    (gfn - range->first_extent) / FRAMES >= range->nr_extents)
		return NULL;
	return &range->extent[(gfn - range->first_extent) / FRAMES];
}

static void unqueue(struct dsm_engine *e, struct extent *x)
{
	if (x->queued)
		TAILQ_REMOVE(&e->whole, x, link);
	x->queued = false;
}

/* The last: none of those before it came home later. */
static void queue(struct dsm_engine *e, struct extent *x)
{
	x->since = now(e);
	x->queued = true;
	TAILQ_INSERT_TAIL(&e->whole, x, link);
	if (e->merge_due == DSM_NEVER)
		e->merge_due = x->since + e->p.merge_ns;
}

void engine_merge_settle(struct dsm_engine *e, struct dsm_entry *entry)
{
	struct extent *x = extent_of(e, entry);
	bool is = entry->page.state != DSM_MODIFIED;

	if (!x || is == entry->apart || e->cannot_merge)
		return;
	entry->apart = is;
	x->apart = (uint16_t)(is ? x->apart + 1 : x->apart - 1);
	unqueue(e, x);
	x->tries = 0;
	if (!x->apart)
		queue(e, x);
}

static bool has_time(const struct dsm_engine *e)
{
	return !dsm_engine_is_evacuating(e) && dsm_engine_is_quiet(e);
}

static void merge(struct dsm_engine *e, struct extent *x)
{
	int rc = e->p.xen->calls->merge(e->p.xen, x->first);

	engine_time_passes(e);
	unqueue(e, x);
	if (!rc) {
		e->counts.merged++;
		return;
	}
	if (rc == -EBUSY && ++x->tries < TRIES) {
		queue(e, x);
		return;
	}
	e->counts.merges_refused++;
	/* No such pages, or a Xen that does not know of them. */
	if (rc == -EOPNOTSUPP || rc == -EINVAL)
		e->cannot_merge = true;
}

void engine_merge(struct dsm_engine *e)
{
	struct extent *first = TAILQ_FIRST(&e->whole);
	uint64_t t = now(e);

	if (e->merge_due > t)
		return;
	if (first && !e->cannot_merge && t - first->since >= e->p.merge_ns) {
		if (has_time(e))
			merge(e, first);
		e->merge_due = now(e) + PAUSE;
		first = TAILQ_FIRST(&e->whole);
	} else if (first) {
		e->merge_due = first->since + e->p.merge_ns;
	}
	if (!first || e->cannot_merge)
		e->merge_due = DSM_NEVER;
}
