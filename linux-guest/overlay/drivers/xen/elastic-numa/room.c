// SPDX-License-Identifier: GPL-2.0
/*
 * Room: what of a node must find a place elsewhere, and what place there is.
 *
 * Counters of zones, read without locks.  Nothing here changes anything.
 *
 * Locking: none.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "elastic.h"

/*
 * Pages of blocks that are being taken offline.  Those that are free count as
 * free nowhere, so that all of them do here.
 */
static unsigned long isolated_pages(const struct zone *zone)
{
	return zone->nr_isolate_pageblock << pageblock_order;
}

/**
 * elastic_isolated_pages() - what comes back if an offlining is given up
 * @node: a node
 *
 * Context: any.
 * Return: pages of its isolated blocks, free or not.
 */
unsigned long elastic_isolated_pages(const struct elastic_node *node)
{
	unsigned long pages = 0;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++)
		pages += isolated_pages(&NODE_DATA(node->nid)->node_zones[i]);
	return pages;
}

/* Pages of the page cache that need not be moved: they can be read again. */
static unsigned long cache_pages(int nid)
{
	return node_page_state(NODE_DATA(nid), NR_ACTIVE_FILE) +
	       node_page_state(NODE_DATA(nid), NR_INACTIVE_FILE);
}

/**
 * elastic_pages_to_move() - what of a node must find a place elsewhere
 * @nid: the node
 *
 * Context: any; a look without locks.
 * Return: pages in use, but for cache, which can be read again.
 */
unsigned long elastic_pages_to_move(int nid)
{
	unsigned long used = 0, free, managed;
	struct zone *zone;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++) {
		zone = &NODE_DATA(nid)->node_zones[i];
		if (!populated_zone(zone))
			continue;
		managed = zone_managed_pages(zone);
		free = zone_page_state(zone, NR_FREE_PAGES) +
		       isolated_pages(zone);
		used += managed - min(managed, free);
	}
	return used - min(used, cache_pages(nid));
}

/* What a node has above its watermarks. */
static unsigned long free_pages_of(int nid)
{
	unsigned long pages = 0, free;
	struct zone *zone;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++) {
		zone = &NODE_DATA(nid)->node_zones[i];
		if (!populated_zone(zone))
			continue;
		free = zone_page_state(zone, NR_FREE_PAGES);
		pages += free - min(free, high_wmark_pages(zone) +
				    zone->lowmem_reserve[ZONE_MOVABLE]);
	}
	return pages;
}

/* What other nodes than @nid have, those left out that are being drained. */
static unsigned long pages_elsewhere(int nid, bool cache)
{
	unsigned long pages = 0;
	nodemask_t draining;
	int other;

	elastic_draining_nodes(&draining);
	for_each_node_state(other, N_MEMORY) {
		if (other == nid || node_isset(other, draining))
			continue;
		pages += free_pages_of(other);
		/* Half of the cache must be left to work with. */
		if (cache)
			pages += cache_pages(other) / 2;
	}
	return pages;
}

/**
 * elastic_room_elsewhere() - what other nodes can take
 * @nid: the node that is not meant
 *
 * Without coming near their watermarks, and none that is being drained.
 *
 * Context: any.
 * Return: pages.
 */
unsigned long elastic_room_elsewhere(int nid)
{
	return pages_elsewhere(nid, true);
}

/* What a node that is made smaller has still to lose, also what is isolated. */
static unsigned long pages_to_take(const struct elastic_node *node)
{
	u32 populated = elastic_populated(node), goal = READ_ONCE(node->goal);

	if (!goal || populated <= goal)
		return 0;
	return (populated - goal) * ELASTIC_EXTENT_PAGES;
}

/**
 * elastic_short_of_room() - has the guest grown until a node is needed?
 * @node: a node that is drained or made smaller
 *
 * What had room when the operation began may have none now.
 *
 * Context: any; a look without locks.
 * Return: true when what is still to leave does not fit elsewhere.
 */
bool elastic_short_of_room(const struct elastic_node *node)
{
	unsigned long take;

	if (READ_ONCE(node->draining))
		return elastic_pages_to_move(node->nid) >
		       elastic_room_elsewhere(node->nid);
	/* What is isolated is being taken, and counts as available nowhere. */
	take = pages_to_take(node);
	take -= min(take, elastic_isolated_pages(node));
	return take > si_mem_available();
}

/**
 * elastic_is_to_blame() - has an operation what the allocator cannot find?
 * @node: the node at work
 *
 * The allocator has found nothing and dropped what it could, so that cache, of
 * which there always is some, is no room.  A block that is isolated just now is
 * what the operation has of it.
 *
 * Context: any; a look without locks.
 * Return: true when there would be memory without the operation.
 */
bool elastic_is_to_blame(const struct elastic_node *node)
{
	unsigned long take;

	if (READ_ONCE(node->draining))
		return elastic_pages_to_move(node->nid) >=
		       pages_elsewhere(node->nid, false);
	take = pages_to_take(node);
	return take && take >= pages_elsewhere(NUMA_NO_NODE, false);
}

/* The lists per CPU hold pages that look as if they were in use. */
bool elastic_no_room(const struct elastic_node *node)
{
	if (!elastic_short_of_room(node))
		return false;
	lru_add_drain_all();
	drain_all_pages(NULL);
	return elastic_short_of_room(node);
}
