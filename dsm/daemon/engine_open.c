// SPDX-License-Identifier: GPL-2.0
/*
 * A range opens and closes: engine_ranges.c says what that is, and counts.
 */
#include "engine_internal.h"

void dsm_engine_open_range(struct dsm_engine *e, unsigned int range, uint64_t frames)
{
	struct engine_range *r = &e->range[range];
	struct dsm_entry *entry;
	bool fewer = frames < r->counts.open;

	if (e->has_failed)
		return;
	r->changing = true;
	r->counts.open = frames;
	if (!fewer && !r->counts.left)
		return;
	for (entry = dsm_table_next(&e->table, NULL); entry;
	     entry = dsm_table_next(&e->table, entry))
		if (entry->range == range)
			engine_settle_range(e, entry);
	dsm_engine_evacuate(e, e->vm.range[range].start + frames,
			    e->vm.range[range].end);
}

/*
 * What is behind the end has no memory now, for Xen as well: what comes there some day
 * is plain memory, and nobody has been told that it stays.
 */
static void forget_behind(struct dsm_engine *e, unsigned int range)
{
	struct dsm_entry *entry, *next;

	engine_flush(e);
	for (entry = dsm_table_next(&e->table, NULL); entry && !e->has_failed; entry = next) {
		next = dsm_table_next(&e->table, entry);
		if (entry->range != range || !engine_is_behind(e, entry))
			continue;
		entry->uncached = false;
		entry->needed = false;
		entry->used_here = false;
		entry->special = false;
		entry->free_since = 0;
		if (at_home(e, entry) && entry->page.dir.mode == DSM_MODE_PRIVATE)
			engine_simple_step(e, entry->page.gfn, DSM_EV_PUBLIC);
		else
			engine_settle(e, entry);
	}
}

void dsm_engine_range_done(struct dsm_engine *e, unsigned int range)
{
	e->range[range].changing = false;
	if (!e->has_failed)
		forget_behind(e, range);
	if (!e->has_failed)
		engine_tell_all(e);
}
