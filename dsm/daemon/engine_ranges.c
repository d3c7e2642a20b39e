// SPDX-License-Identifier: GPL-2.0
/*
 * Ranges whose memory comes and goes while the VM runs: what is open, and what is
 * counted.  engine_open.c opens and closes them.
 *
 * A range is open up to some page: what is behind that has no memory.  The core
 * knows all ranges from the start and until the end, so that a message that
 * crosses a change on its way is no breach; what is asked for where there is no
 * memory finds a hole.
 *
 * Closing: misses of what is behind the end wait, pages behind it come to their
 * home (engine_evacuate.c), and `left` counts those of which anything is known
 * still: something that is not at home, or under way, or a time that is due.  At
 * 0 Xen can make them holes; then who waits is woken, and finds one.
 */
#include "engine_internal.h"

bool engine_is_behind(const struct dsm_engine *e, const struct dsm_entry *entry)
{
	const struct dsm_range *r = &e->vm.range[entry->range];

	return entry->page.gfn - r->start >= e->range[entry->range].counts.open;
}

static struct engine_range *range_of(struct dsm_engine *e, uint64_t gfn,
				     bool *behind)
{
	unsigned int i;

	for (i = 0; i < e->vm.nr_ranges; i++) {
		const struct dsm_range *r = &e->vm.range[i];

		if (gfn < r->start || gfn >= r->end)
			continue;
		*behind = gfn - r->start >= e->range[i].counts.open;
		return &e->range[i];
	}
	return NULL;
}

bool engine_is_closed(struct dsm_engine *e, uint64_t gfn)
{
	bool behind = false;

	return dsm_vm_home(&e->vm, gfn) != e->vm.self &&
	       range_of(e, gfn, &behind) && behind;
}

bool engine_is_changing(struct dsm_engine *e, uint64_t gfn)
{
	bool behind = false;
	const struct engine_range *range = range_of(e, gfn, &behind);

	return range && range->changing;
}

void engine_settle_range(struct dsm_engine *e, struct dsm_entry *entry)
{
	struct engine_range *range = &e->range[entry->range];
	const struct dsm_page *page = &entry->page;
	unsigned int state = page->state;
	/* What is private is at home. */
	bool private = at_home(e, entry) && page->dir.mode == DSM_MODE_PRIVATE &&
		       page->dir.phase == DSM_IDLE;
	bool known = (!private && !dsm_page_is_idle(page, &e->vm)) ||
		     entry->due != DSM_NEVER;

	engine_follow(&entry->left, known && engine_is_behind(e, entry),
		      &range->counts.left);
	engine_follow(&entry->shared, state == DSM_SHARED, &range->counts.shared);
	engine_follow(&entry->moved,
		      state == (at_home(e, entry) ? DSM_INVALID : DSM_MODIFIED),
		      &range->counts.moved);
}

void engine_begin_ranges(struct dsm_engine *e)
{
	unsigned int i;

	for (i = 0; i < e->vm.nr_ranges; i++)
		e->range[i].counts.open = e->p.detached[i] ? 0 :
			e->vm.range[i].end - e->vm.range[i].start;
}

uint64_t engine_open_at(const struct dsm_engine *e, unsigned int host)
{
	uint64_t frames = 0;
	unsigned int i;

	for (i = 0; i < e->vm.nr_ranges; i++)
		if (e->vm.range[i].home == host)
			frames += e->range[i].counts.open;
	return frames;
}

const struct dsm_engine_range *dsm_engine_range(const struct dsm_engine *e,
						unsigned int range)
{
	return &e->range[range].counts;
}

unsigned int dsm_engine_set_frames(struct dsm_engine *e, unsigned int frames)
{
	e->frames = frames;
	if (e->used > frames)
		e->used_most = e->used;
	return e->used;
}

void dsm_engine_bind(struct dsm_engine *e, unsigned int host, bool bound)
{
	if (bound)
		e->vm.unbound &= (uint16_t)~dsm_bit(host);
	else
		e->vm.unbound |= dsm_bit(host);
}

uint64_t engine_pages_of(const struct dsm_engine *e, unsigned int host)
{
	const struct dsm_entry *entry;
	uint64_t nr = 0;

	for (entry = dsm_table_next(&e->table, NULL); entry;
	     entry = dsm_table_next(&e->table, (struct dsm_entry *)entry))
		nr += dsm_page_concerns(&entry->page, &e->vm, host);
	return nr;
}

uint64_t dsm_engine_shared_with(const struct dsm_engine *e, unsigned int host)
{
	return engine_pages_of(e, host) + engine_accesses_at(e, host) + e->peer_requests[host];
}

bool dsm_engine_shares_with(struct dsm_engine *e, unsigned int host)
{
	struct dsm_entry *entry = dsm_table_find(&e->table, e->shares[host]);

	if (e->peer_requests[host] || engine_accesses_at(e, host) ||
	    (entry && dsm_page_concerns(&entry->page, &e->vm, host)))
		return true;
	for (entry = dsm_table_next(&e->table, NULL); entry;
	     entry = dsm_table_next(&e->table, entry))
		if (dsm_page_concerns(&entry->page, &e->vm, host)) {
			e->shares[host] = entry->page.gfn;
			return true;
		}
	return false;
}
