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

void dsm_engine_range_done(struct dsm_engine *e, unsigned int range)
{
	e->range[range].changing = false;
	if (!e->has_failed)
		engine_tell_all(e);
}
