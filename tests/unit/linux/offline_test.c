// SPDX-License-Identifier: GPL-2.0
/*
 * What Linux does for each block that goes offline, and does not for one that is
 * free: hooks 0113 to 0115 (hook-NUMBER-FILE-N.h; test_elastic_numa.py makes them).
 */
#include <stdbool.h>

#include "case.h"

/* 0113: who drains what is on its way to an LRU list */

enum { NOWHERE, ISOLATING, NOTIFYING, MOVING };

static bool in_use, let_go, isolated;
static unsigned int disabled, enabled, pcps_off;
static int failing;

static void lru_cache_disable(void) { disabled++; }
static void lru_cache_enable(void) { enabled++; }
static void zone_pcp_disable(void *zone) { pcps_off++; }
static void zone_pcp_enable(void *zone) { pcps_off--; }

#define MEMORY_OFFLINE	1
static int test_pages_isolated(unsigned long start_pfn, unsigned long end_pfn,
			       int flags)
{
	CHECK(isolated && pcps_off == 1, "what is free could be taken again");
	CHECK(start_pfn == 512 && end_pfn == 1024 && flags == MEMORY_OFFLINE,
	      "%lu to %lu, %d", start_pfn, end_pfn, flags);
	return in_use ? -16 : 0;
}

static int offline_pages(unsigned long start_pfn, unsigned long end_pfn)
{
	void *zone = NULL;
	int ret = -1;
#include "hook-0113-memory_hotplug-1.h"

	zone_pcp_disable(zone);
	if (failing == ISOLATING)
		goto failed_removal_pcplists_disabled;
	isolated = true;
	if (failing == NOTIFYING)
		goto failed_removal_isolated;
	if (let_go)
		in_use = false;
#include "hook-0113-memory_hotplug-3.h"
	do {
		CHECK(!in_use || disabled == 1, "moved, and not drained");
		if (failing == MOVING)
			goto failed_removal_isolated;
		in_use = false;
	} while (test_pages_isolated(start_pfn, end_pfn, MEMORY_OFFLINE));
#include "hook-0113-memory_hotplug-4.h"
	zone_pcp_enable(zone);
	return 0;

failed_removal_isolated:
	isolated = false;
failed_removal_pcplists_disabled:
#include "hook-0113-memory_hotplug-5.h"
	zone_pcp_enable(zone);
	return ret;
}

struct block { bool in_use, let_go; int failing; unsigned int drained; };

static void block_goes(const void *argument)
{
	const struct block *block = argument;

	in_use = block->in_use;
	let_go = block->let_go;
	failing = block->failing;
	CHECK(offline_pages(512, 1024) == (failing ? -1 : 0), "failed");
	CHECK(disabled == block->drained && enabled == disabled,
	      "drained %u times, and %u times as before", disabled, enabled);
	CHECK(!pcps_off, "lists per CPU are off");
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
	span(zone);
#include "hook-0115-memory_hotplug-3.h"
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

int main(int argc, char **argv)
{
	static const struct block
		is_free = { .drained = 0 },
		has_pages = { .in_use = true, .drained = 1 },
		ballooned = { .in_use = true, .let_go = true },
		cannot_isolate = { .in_use = true, .failing = ISOLATING },
		refused = { .in_use = true, .failing = NOTIFYING },
		stays = { .in_use = true, .failing = MOVING, .drained = 1 },
		called_off = { .failing = MOVING };
	static const struct test_case cases[] = {
		{ "offline: a block that is free", block_goes, &is_free },
		{ "offline: a block in use", block_goes, &has_pages },
		{ "offline: a block whose owner lets go", block_goes,
		  &ballooned },
		{ "offline: a block that cannot be isolated", block_goes,
		  &cannot_isolate },
		{ "offline: a block that somebody refuses", block_goes,
		  &refused },
		{ "offline: a block whose pages stay", block_goes, &stays },
		{ "offline: a free block, called off", block_goes,
		  &called_off },
		{ "offline: caches", caches },
		{ "offline: a zone is as a walk finds it",
		  zone_as_a_walk_finds_it },
		{ "offline: a zone whose end goes is not walked",
		  zone_not_walked },
	};

	return run_cases(argc, argv, cases,
			 sizeof(cases) / sizeof(*cases));
}
