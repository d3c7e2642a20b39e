// SPDX-License-Identifier: GPL-2.0
/*
 * Room on the other nodes for what an elastic node cannot hold.
 *
 * Memory of an elastic node is ZONE_MOVABLE: what maps it, page tables above
 * all, is on the nodes that stay.  Programs may fill those with movable memory
 * down to the low watermark, and a page table then finds nothing: somebody is
 * killed beside gigabytes of free memory.  Within a node lowmem_reserve keeps
 * movable memory from using up the lower zones; it does not look at the
 * zones of other nodes.  So each of their zones below ZONE_MOVABLE gets its
 * part of a reserve for the elastic nodes, which they may use for all but
 * movable memory.
 *
 * What a guest without swap keeps from itself when it is out of memory it gets
 * back at once: pages on the lists per CPU, which upstream gives back only after
 * some page was reclaimed, and a boost of the watermarks, which waits for kswapd
 * for ever when there is nothing to reclaim.
 *
 * Locking: none for the reserve.  A change of the memory that comes meanwhile has
 * its own call, as for the watermarks, which are set with it.  A boost is changed
 * under zone->lock.
 */
#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/spinlock.h>
#include <linux/vmstat.h>

#include <xen/elastic-numa.h>

#include "elastic.h"

/*
 * A page table maps 512 pages; as much again for what else grows with the
 * memory in use.  As much as lowmem_reserve keeps in ZONE_DMA32.
 */
#define RESERVE_RATIO	256
/* So much of a zone at most: a small home must be able to hold programs. */
#define ZONE_PART	4

/**
 * elastic_reserve() - the part of a zone in the reserve for elastic nodes
 * @elastic: pages that elastic nodes may hold
 * @home: pages of all zones that are not movable, on all other nodes
 * @zone: pages of this one of them
 *
 * Context: any.
 * Return: pages.
 */
unsigned long elastic_reserve(unsigned long elastic, unsigned long home,
			      unsigned long zone)
{
	if (!home)
		return 0;
	return min(elastic / RESERVE_RATIO * zone / home, zone / ZONE_PART);
}

/* Elastic nodes have none of those (balloon.c). */
static bool is_for_the_kernel(struct zone *zone)
{
	return zone_idx(zone) < ZONE_MOVABLE;
}

void xen_elastic_reserve(void)
{
	unsigned long elastic = 0, home = 0;
	const struct elastic_node *node;
	struct zone *zone;

	for_each_elastic_node(node) {
		if (node->usable && node_online(node->nid))
			elastic += node_present_pages(node->nid);
	}
	if (!elastic)
		return;

	for_each_populated_zone(zone) {
		if (is_for_the_kernel(zone))
			home += zone_managed_pages(zone);
	}
	for_each_populated_zone(zone) {
		if (is_for_the_kernel(zone))
			zone->lowmem_reserve[ZONE_MOVABLE] +=
				elastic_reserve(elastic, home,
						zone_managed_pages(zone));
	}
}

/**
 * elastic_reserve_relief() - what can be had before anybody is killed
 *
 * Context: the OOM notifier, with its lock held; may sleep.  Who holds the mutex
 *	of drain_all_pages() waits for no memory.
 * Return: pages for the kernel that are free now and were not, or may be used
 *	now.  What movable zones gain helps nobody who lacks those, and while
 *	others work there it never ends: the killer would be held for ever.
 */
unsigned long elastic_reserve_relief(void)
{
	unsigned long before = 0, after = 0, boost = 0;
	struct zone *zone;

	for_each_populated_zone(zone) {
		if (is_for_the_kernel(zone))
			before += zone_page_state(zone, NR_FREE_PAGES);
	}
	drain_all_pages(NULL);
	for_each_populated_zone(zone) {
		if (!is_for_the_kernel(zone))
			continue;
		after += zone_page_state(zone, NR_FREE_PAGES);
		spin_lock_irq(&zone->lock);
		boost += zone->watermark_boost;
		zone->watermark_boost = 0;
		spin_unlock_irq(&zone->lock);
	}
	return after - min(before, after) + boost;
}
