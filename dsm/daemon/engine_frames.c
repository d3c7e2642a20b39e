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

/* Windows of pages that leave are long, and each page of them goes soon; other readers say what they want. */
static unsigned int ahead(struct dsm_engine *e)
{
	unsigned int part = e->frames / 4;
	unsigned int room = engine_prefetch_room(e);

	if (engine_is_leaving(e, now(e)))
		room = DSM_ENGINE_PREFETCH;
	return part < room ? part : room;
}

bool engine_has_spare_frame(const struct dsm_engine *e)
{
	return !e->hungry && e->frames > e->used + spare(e);
}

static void evict_one(struct dsm_engine *e, struct dsm_entry *entry)
{
	struct dsm_event event = { .type = DSM_EV_EVICT };

	/* What is here of others is not forgotten as its lease ends. */
	if (!engine_look_at_lease(e, entry) || !dsm_table_lend(&e->table, entry))
		return;
	/* "Not now" changes nothing. */
	engine_step(e, entry, &event, NULL);
}

/* So many should go now. */
static unsigned int too_many(struct dsm_engine *e)
{
	unsigned int unused = e->frames > e->used ? e->frames - e->used : 0;
	unsigned int free = spare(e) + ahead(e);

	if (e->draining)
		return e->guests;
	if (e->used > e->frames)
		return e->used - e->frames + free;
	if (unused < free || e->hungry)
		return free + 1 > unused ? free + 1 - unused : 1;
	return 0;
}

void engine_evict_first(struct dsm_engine *e, struct dsm_entry *entry)
{
	/* One that was written to has to wait for its answer: it can stay. */
	if (!entry->evictable || entry->page.state != DSM_SHARED)
		return;
	entry->referenced = false;
	TAILQ_REMOVE(&e->clock, entry, clock);
	TAILQ_INSERT_HEAD(&e->clock, entry, clock);
}

/*
 * Second chance: who was missed since the hand came by stays for a round.  S
 * pages cost a message, M pages one with a page and a buffer until its answer.
 * What is leased stays till then, and no longer if somebody waits for a frame.
 */
void engine_evict(struct dsm_engine *e)
{
	bool urgent = e->hungry || e->draining || e->used > e->frames;
	unsigned int want = too_many(e), looked = 0, begun = 0;
	unsigned int all = 2 * e->guests;
	struct dsm_entry *entry;

	e->evict_due = DSM_NEVER;
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
		/*
		 * It may be in use now, any hypercall is enough: nobody else would
		 * look again, nor when a lease is over.
		 */
		if (urgent && entry->page.operation &&
		    now(e) + DSM_ENGINE_BACKOFF < e->evict_due)
			e->evict_due = now(e) + DSM_ENGINE_BACKOFF;
		if (urgent && !entry->page.operation && entry->lease_due < e->evict_due)
			e->evict_due = entry->lease_due;
	}
}
