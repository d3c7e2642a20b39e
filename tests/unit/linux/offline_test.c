// SPDX-License-Identifier: GPL-2.0
/*
 * What Linux does for each block that goes offline, and does not for one that is
 * free: hooks 0113 to 0115 (hook-NUMBER-FILE-N.h; test_elastic_numa.py makes them).
 */
#include <stdbool.h>

#include "case.h"

/* 0113: who drains what is on its way to an LRU list */

enum { ZONE_DMA32, ZONE_NORMAL, ZONE_MOVABLE };
enum { NOWHERE, ISOLATING, NOTIFYING, CALLED_OFF, MOVING };

/* Pages of the block: on an LRU list, and on their way to one on some CPU. */
static int on_lru, on_their_way;
static bool let_go, late, isolated;
static unsigned int drained, enabled, pcps_off, looks;
static int failing;

static void lru_cache_disable(void)
{
	drained++;
	on_lru += on_their_way;
	on_their_way = 0;
}

static void lru_cache_enable(void) { enabled++; }
static void zone_pcp_disable(void) { pcps_off++; }
static void zone_pcp_enable(void) { pcps_off--; }

static int start_isolate_page_range(int zone)
{
	isolated = zone == ZONE_MOVABLE || !on_their_way;
	return isolated && failing != ISOLATING ? 0 : -16;
}

/* Somebody who held a page of it back puts it onto its CPU's list. */
static int scan_movable_pages(void)
{
	if (on_lru)
		return 0;
	on_their_way += late;
	late = false;
	return -2;
}

static void do_migrate_range(void)
{
	CHECK(drained == 1 && !on_their_way, "moved, and not drained");
	on_lru--;
}

static int test_pages_isolated(void)
{
	CHECK(isolated && pcps_off == 1, "what is free could be taken again");
	CHECK(looks++ < 8, "asked for ever");
	return on_lru || on_their_way ? -16 : 0;
}

#define zone_idx(zone)	(zone)
#include "hook-0113-memory_hotplug-1.h"

static int offline_pages(int zone)
{
	int ret;
#include "hook-0113-memory_hotplug-2.h"

	zone_pcp_disable();
#include "hook-0113-memory_hotplug-3.h"
	ret = start_isolate_page_range(zone);
	if (ret)
		goto failed_removal_pcplists_disabled;
	ret = failing == NOTIFYING ? -12 : 0;
	if (ret)
		goto failed_removal_isolated;
	if (let_go)
		on_lru = on_their_way = 0;
	do {
		do {
			ret = failing == MOVING && drained ? -4 :
				scan_movable_pages();
			if (failing == CALLED_OFF)
				ret = -4;
			if (!ret) {
#include "hook-0113-memory_hotplug-4.h"
				do_migrate_range();
			}
		} while (!ret);
		if (ret != -2)
			goto failed_removal_isolated;
		ret = test_pages_isolated();
#include "hook-0113-memory_hotplug-5.h"
	} while (ret);
#include "hook-0113-memory_hotplug-6.h"
	zone_pcp_enable();
	return 0;

failed_removal_isolated:
	isolated = false;
failed_removal_pcplists_disabled:
#include "hook-0113-memory_hotplug-7.h"
	zone_pcp_enable();
	return ret;
}

struct block {
	int on_lru, on_their_way, failing, zone;
	bool let_go, late;
	unsigned int drained;
};

static void block_goes(const void *argument)
{
	const struct block *block = argument;

	on_lru = block->on_lru;
	on_their_way = block->on_their_way;
	let_go = block->let_go;
	late = block->late;
	failing = block->failing;
	CHECK(!offline_pages(block->zone) == !failing, "of %d", block->zone);
	CHECK(failing || !(on_lru + on_their_way), "gone with pages in use");
	CHECK(drained == block->drained && enabled == drained,
	      "drained %u times, and %u times as before", drained, enabled);
	CHECK(!pcps_off, "lists per CPU are off");
}

/* Of two that need it, each has it done. */
static void two_blocks(const void *argument)
{
	const struct block *block = argument;

	block_goes(block);
	drained = enabled = looks = 0;
	block_goes(block);
}

/* 0114: who has caches shrunk */

enum { MEM_GOING_ONLINE, MEM_GOING_OFFLINE };
struct page { bool movable; };
struct memory_notify { unsigned long start_pfn; };

static struct page pages[2] = { { false }, { true } };
static unsigned int shrunk;

#define pfn_to_page(pfn)	(&pages[pfn])
#define is_zone_movable_page(page)	((page)->movable)

static int slab_mem_going_offline_callback(void *arg)
{
	shrunk++;
	return -12;
}

static int slab_memory_callback(unsigned long action, void *arg)
{
#include "hook-0114-slub-1.h"
	int ret = 0;

	switch (action) {
	case MEM_GOING_OFFLINE:
#include "hook-0114-slub-2.h"
		break;
	}
	return ret;
}

static void caches(const void *argument)
{
	struct memory_notify normal = { 0 }, movable = { 1 };

	CHECK(!slab_memory_callback(MEM_GOING_OFFLINE, &movable) && !shrunk,
	      "of a zone without slabs");
	CHECK(slab_memory_callback(MEM_GOING_OFFLINE, &normal) == -12 &&
	      shrunk == 1, "of one with slabs");
}

/* 0115: who walks a zone.  Its page blocks, and which are online. */

#define BLOCKS	8
#define A_BLOCK	4	/* memory block: its struct pages in the first one */

struct zone { unsigned long zone_start_pfn, spanned; bool contiguous; };

static bool online[BLOCKS];
static unsigned int walks;
static bool straddling;		/* zones that do not become smaller */

static unsigned long zone_end_pfn(const struct zone *zone)
{
	return zone->zone_start_pfn + zone->spanned;
}

static bool without_holes(const struct zone *zone)
{
	unsigned long pfn;

	for (pfn = zone->zone_start_pfn; pfn < zone_end_pfn(zone); pfn++)
		if (!online[pfn])
			return false;
	return true;
}

static void set_zone_contiguous(struct zone *zone)
{
	walks++;
	zone->contiguous = without_holes(zone);
}

static void span(struct zone *zone)
{
	unsigned long from = 0, to = BLOCKS;

	while (from < to && !online[from])
		from++;
	while (to > from && !online[to - 1])
		to--;
	zone->zone_start_pfn = from < to ? from : 0;
	zone->spanned = to - from;
}

static void remove_pfn_range_from_zone(struct zone *zone,
				       unsigned long start_pfn,
				       unsigned long nr_pages)
{
	const unsigned long end_pfn = start_pfn + nr_pages;
#include "hook-0115-memory_hotplug-1.h"

#include "hook-0115-memory_hotplug-2.h"
	zone->contiguous = false;
	if (!straddling)
		span(zone);
#include "hook-0115-memory_hotplug-3.h"
	(void)end_pfn;
}

static void move_pfn_range_to_zone(struct zone *zone, unsigned long start_pfn,
				   unsigned long nr_pages)
{
	zone->contiguous = false;
	zone->spanned = start_pfn + nr_pages - zone->zone_start_pfn;
#include "hook-0115-memory_hotplug-4.h"
}

/* Whatever is online and whichever of it goes, the answer is a walk's. */
static void zone_as_a_walk_finds_it(const void *argument)
{
	unsigned int map, gone, nr, n;

	for (map = 1; map < 1 << BLOCKS; map++)
		for (gone = 0; gone < BLOCKS; gone++)
			for (nr = 1; gone + nr <= BLOCKS; nr++) {
				struct zone zone = { 0 };

				for (n = 0; n < BLOCKS; n++)
					online[n] = map & 1 << n;
				span(&zone);
				zone.contiguous = without_holes(&zone);
				for (n = gone; n < gone + nr; n++)
					online[n] = false;
				remove_pfn_range_from_zone(&zone, gone, nr);
				CHECK(zone.contiguous == without_holes(&zone),
				      "of %#x %u from %u on", map, nr, gone);
			}
}

/* The highest block first, of which the struct pages go last. */
static void zone_not_walked(const void *argument)
{
	struct zone zone = { 0, BLOCKS, true };
	unsigned long block;

	memset(online, true, sizeof(online));
	for (block = BLOCKS; block; block -= A_BLOCK) {
		memset(&online[block - A_BLOCK], false, A_BLOCK);
		remove_pfn_range_from_zone(&zone, block - A_BLOCK + 1,
					   A_BLOCK - 1);
		remove_pfn_range_from_zone(&zone, block - A_BLOCK, 1);
		CHECK(zone.contiguous && !walks, "%lu: %u walks", block, walks);
	}
}

/* Of a zone that stays as large there is a hole at its end. */
static void zone_that_stays(const void *argument)
{
	struct zone zone = { 0, BLOCKS, true };

	memset(online, true, sizeof(online));
	memset(&online[A_BLOCK], false, BLOCKS - A_BLOCK);
	straddling = true;
	remove_pfn_range_from_zone(&zone, A_BLOCK, BLOCKS - A_BLOCK);
	CHECK(!zone.contiguous, "a hole at the end");
}

/* What comes is online later: the zone has a hole, and nobody looks for it. */
static void zone_that_grows(const void *argument)
{
	struct zone zone = { 0, A_BLOCK, true };

	memset(online, true, A_BLOCK);
	move_pfn_range_to_zone(&zone, A_BLOCK, A_BLOCK);
	CHECK(!zone.contiguous && !walks, "%u walks", walks);
}

int main(int argc, char **argv)
{
	static const struct block
		is_free = { .zone = ZONE_MOVABLE },
		in_use = { 2, 1, .zone = ZONE_MOVABLE, .drained = 1 },
		on_its_way = { 0, 1, .zone = ZONE_MOVABLE, .drained = 1 },
		held_back = { .zone = ZONE_MOVABLE, .late = true, .drained = 1 },
		ballooned = { 2, 1, .zone = ZONE_MOVABLE, .let_go = true },
		no_isolation = { 2, 1, ISOLATING, ZONE_MOVABLE },
		refused = { 2, 1, NOTIFYING, ZONE_MOVABLE },
		called_off = { .failing = CALLED_OFF, .zone = ZONE_MOVABLE },
		stays = { 2, 1, MOVING, ZONE_MOVABLE, .drained = 1 },
		normal = { 0, 1, .zone = ZONE_NORMAL, .drained = 1 },
		below = { 0, 1, .zone = ZONE_DMA32, .drained = 1 },
		not_there = { 0, 1, ISOLATING, ZONE_NORMAL, .drained = 1 };
	static const struct test_case cases[] = {
		{ "offline: a block that is free", block_goes, &is_free },
		{ "offline: a block in use", block_goes, &in_use },
		{ "offline: two blocks in use", two_blocks, &in_use },
		{ "offline: a page on its way", block_goes, &on_its_way },
		{ "offline: a page that was held back", block_goes, &held_back },
		{ "offline: a block whose owner lets go", block_goes,
		  &ballooned },
		{ "offline: a block that cannot be isolated", block_goes,
		  &no_isolation },
		{ "offline: a block that somebody refuses", block_goes,
		  &refused },
		{ "offline: a free block, called off", block_goes,
		  &called_off },
		{ "offline: a block whose pages stay", block_goes, &stays },
		{ "offline: a block of another zone", block_goes, &normal },
		{ "offline: a block of the zone below", block_goes, &below },
		{ "offline: one of another zone that fails", block_goes,
		  &not_there },
		{ "offline: caches", caches },
		{ "offline: a zone is as a walk finds it",
		  zone_as_a_walk_finds_it },
		{ "offline: a zone whose end goes is not walked",
		  zone_not_walked },
		{ "offline: a zone that stays as large", zone_that_stays },
		{ "offline: a zone that grows", zone_that_grows },
	};

	return run_cases(argc, argv, cases,
			 sizeof(cases) / sizeof(*cases));
}
