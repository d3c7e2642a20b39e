// SPDX-License-Identifier: GPL-2.0
/*
 * Frames of the pool, for pages whose home is elsewhere: which of them go.
 */
#include <stddef.h>

#include "engine_internal.h"

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
	engine_step(e, entry, &event, NULL);
}

/* What has to go because its range is closed: in its order, whoever uses it. */
static void evict_leaving(struct dsm_engine *e)
{
	unsigned int looked = 0, begun = 0, all = e->nr_leaving;
	struct dsm_entry *entry;

	while (looked++ < all && e->nr_leaving && !e->has_failed &&
	       e->writebacks + begun < DSM_ENGINE_WRITEBACKS &&
	       e->batch[e->current].nr_slots < SLOTS) {
		entry = TAILQ_FIRST(&e->leaving);
		TAILQ_REMOVE(&e->leaving, entry, clock);
		TAILQ_INSERT_TAIL(&e->leaving, entry, clock);
		if (entry->page.operation)
			continue;
		evict_one(e, entry);
		begun += entry->page.operation != 0;
	}
}

/* So many that are used by choice should go now. */
static unsigned int too_many(const struct dsm_engine *e)
{
	unsigned int unused = e->frames > e->used ? e->frames - e->used : 0;

	if (e->draining)
		return e->guests - e->nr_leaving;
	if (e->used > e->frames)
		return e->used - e->frames + spare(e);
	if (unused < spare(e) || e->hungry)
		return spare(e) + 1 > unused ? spare(e) + 1 - unused : 1;
	return 0;
}

/*
 * Second chance: who was missed since the hand came by stays for a round.  S
 * pages cost a message, M pages one with a page and a buffer until its answer.
 */
void engine_evict(struct dsm_engine *e)
{
	unsigned int want, all, looked = 0, begun = 0;
	struct dsm_entry *entry;

	evict_leaving(e);
	want = too_many(e);
	all = 2 * (e->guests - e->nr_leaving);
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
