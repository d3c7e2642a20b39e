// SPDX-License-Identifier: GPL-2.0
/*
 * The balloon of a node: extents of online blocks that have no memory.
 *
 * A page of such an extent is PageOffline with one reference, exactly as the
 * memory hotplug code leaves a page that its online callback does not take.
 * So an extent that was never populated and one that was taken later are the
 * same, and go to the page allocator by the same call.
 *
 * When a block goes offline, the reference is dropped for the time: the
 * hotplug code then skips the page.
 *
 * Extents that are free as a whole are taken first, as they lie; only for the
 * rest is memory moved.
 *
 * Locking: device_hotplug_lock is held wherever the populated bits of a
 * plugged block change, and wherever the callback and the notifier below read
 * them.  It keeps onlining and offlining away from alloc_contig_range(), too.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/page_ref.h>
#include <linux/take_free.h>

#include <xen/elastic-numa.h>

#include "elastic.h"

/* A run of so many extents is tried at once: each try drains all CPUs. */
#define RUN		32
#define TRIES		5	/* for pages that are in use for a moment */

static struct page *extent_page(const struct elastic_node *node, u32 extent)
{
	return pfn_to_page(elastic_extent_pfn(&node->range, extent));
}

static bool extent_is_online(const struct elastic_node *node, u32 extent)
{
	return pfn_to_online_page(elastic_extent_pfn(&node->range, extent));
}

bool xen_elastic_online_page(struct page *page, unsigned int order)
{
	unsigned long pfn = page_to_pfn(page), end = pfn + (1UL << order);
	unsigned int step = min_t(unsigned int, order, ELASTIC_EXTENT_ORDER);
	struct elastic_node *node;
	u32 extent;

	if (!elastic_nr_nodes)
		return false;
	node = elastic_node_of_pfn(pfn, &extent);
	if (!node || !node->usable)
		return false;

	for (; pfn < end; pfn += 1UL << step) {
		if (elastic_find_extent(&node->range, pfn, &extent) &&
		    elastic_has_memory(node, extent))
			generic_online_page(pfn_to_page(pfn), step);
	}
	return true;
}

static void online_page(struct page *page, unsigned int order)
{
	if (!xen_elastic_online_page(page, order))
		generic_online_page(page, order);
}

/* The references of the pages that have no memory, within [pfn, end). */
static void adjust_references(const struct elastic_node *node,
			      unsigned long pfn, unsigned long end, int by)
{
	unsigned long next;
	u32 extent;

	for (; pfn < end; pfn = next) {
		next = min(ALIGN(pfn + 1, ELASTIC_EXTENT_PAGES), end);
		if (!elastic_find_extent(&node->range, pfn, &extent) ||
		    elastic_has_memory(node, extent))
			continue;
		for (; pfn < next; pfn++)
			page_ref_add(pfn_to_page(pfn), by);
	}
}

static int elastic_memory_notify(struct notifier_block *nb,
				 unsigned long action, void *arg)
{
	/* The block that is going offline; the hotplug lock guards it. */
	static unsigned long going_offline;
	const struct memory_notify *mn = arg;
	struct elastic_node *node;
	unsigned long end;
	u32 extent;

	node = elastic_node_of_pfn(mn->start_pfn, &extent);
	if (!node || !node->usable)
		return NOTIFY_DONE;
	end = mn->start_pfn + mn->nr_pages;

	switch (action) {
	case MEM_GOING_ONLINE:
		/* A kernel page on this node would keep it here for ever. */
		if (zone_idx(page_zone(pfn_to_page(mn->start_pfn))) !=
		    ZONE_MOVABLE) {
			pr_warn_ratelimited("vnode %u: refused: its memory is for online_movable only\n",
					    node->vnode);
			return notifier_from_errno(-EPERM);
		}
		break;
	case MEM_GOING_OFFLINE:
		adjust_references(node, mn->start_pfn, end, -1);
		going_offline = mn->start_pfn;
		break;
	case MEM_CANCEL_OFFLINE:
		/* Also sent to those that never heard of the attempt. */
		if (going_offline == mn->start_pfn)
			adjust_references(node, mn->start_pfn, end, 1);
		going_offline = 0;
		break;
	case MEM_OFFLINE:
		going_offline = 0;
		fallthrough;
	case MEM_ONLINE:
		elastic_topo_refresh();
		break;
	default:
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block memory_nb = {
	.notifier_call = elastic_memory_notify,
};

/* Extents of an online block that have memory, to the page allocator. */
static void hand_out(const struct elastic_node *node, u32 first, u32 count)
{
	for (; count--; first++) {
		generic_online_page(extent_page(node, first),
				    ELASTIC_EXTENT_ORDER);
		cond_resched();
	}
}

/*
 * Pages that are ours alone: out of the allocator's books, and marked.  @frozen:
 * they have no reference yet, so that nobody else can have got one.
 */
static void take_over(const struct elastic_node *node, u32 first, u32 count,
		      bool frozen)
{
	struct page *page = extent_page(node, first);
	unsigned long nr = count * ELASTIC_EXTENT_PAGES, i;

	adjust_managed_page_count(page, -(long)nr);
	page_offline_begin();
	for (i = 0; i < nr; i++) {
		__SetPageOffline(page + i);
		if (frozen)
			set_page_count(page + i, 1);
		if (IS_ALIGNED(i, ELASTIC_EXTENT_PAGES))
			cond_resched();
	}
	page_offline_end();
}

/*
 * Under device_hotplug_lock.  Returns the extents that Xen took: none once nobody
 * wants it any more.
 */
static u32 deflate(struct elastic_node *node, u32 first, u32 count, bool frozen)
{
	u32 kept, extent;

	if (!count)
		return 0;
	take_over(node, first, count, frozen);
	if (elastic_cancel_pending()) {
		hand_out(node, first, count);
		return 0;
	}
	kept = elastic_release(node, first, count);
	for (extent = first; kept && extent < first + count; extent++) {
		if (elastic_has_memory(node, extent))
			hand_out(node, extent, 1);
	}
	*(frozen ? &node->nr_taken_free : &node->nr_taken_used) += count - kept;
	return count - kept;
}

/*
 * What is free as a whole, from the end of the block down, and at once: nobody is
 * asked for anything.  Returns how many were taken.
 */
static u32 take_free(struct elastic_node *node, u32 first, u32 end, u32 count)
{
	u32 run = 0, taken = 0;

	while (end > first && taken + run < count &&
	       !elastic_cancel_pending()) {
		end--;
		cond_resched();
		if (elastic_has_memory(node, end) &&
		    take_free_pages(extent_page(node, end),
				    ELASTIC_EXTENT_ORDER)) {
			run++;
			continue;
		}
		taken += deflate(node, end + 1, run, true);
		run = 0;
	}
	return taken + deflate(node, end, run, true);
}

/* What Xen has a part of already: nobody uses the rest. */
static u32 take_torn(struct elastic_node *node, u32 first, u32 end, u32 count)
{
	u32 taken = 0;

	for_each_set_bit_from(first, node->torn, end) {
		if (taken == count || elastic_cancel_pending())
			break;
		taken += !elastic_release(node, first, 1);
	}
	return taken;
}

/* What is free or can be compacted, wherever it is in the block. */
static u32 take_run(struct elastic_node *node, u32 first, u32 count,
		    unsigned int tries, unsigned int *budget_ms)
{
	unsigned long pfn = elastic_extent_pfn(&node->range, first);
	ktime_t began = ktime_get();
	unsigned int spent;
	int rc;

	do {
		rc = alloc_contig_range(pfn, pfn + count * ELASTIC_EXTENT_PAGES,
					MIGRATE_MOVABLE,
					GFP_KERNEL | __GFP_NOWARN);
		if (!rc)
			return deflate(node, first, count, false);
		spent = ktime_ms_delta(ktime_get(), began);
	} while (rc == -EBUSY && --tries && spent < *budget_ms);
	*budget_ms -= min(*budget_ms, spent);
	return 0;
}

/*
 * A run of extents that hold something else than struct pages, from the end of
 * the block down.  Returns its length and moves @end to its start.
 */
static u32 run_below(const struct elastic_node *node, u32 first, u32 *end,
		     u32 max)
{
	u32 run = 0;

	while (*end > first && !elastic_has_memory(node, *end - 1))
		(*end)--;
	while (*end > first && run < max &&
	       elastic_has_memory(node, *end - 1)) {
		(*end)--;
		run++;
	}
	return run;
}

/**
 * elastic_balloon_take() - take extents from an online block: those that are
 *	torn, then, highest first, those that are free and those in use
 * @node: the node
 * @block: a block that is present
 * @count: how many at most
 * @persistent: try again when pages are in use for the moment
 * @budget_ms: how long attempts may last that fail; what they took is
 *	subtracted, and at 0 nothing is tried any more
 *
 * Return: how many were taken.
 */
u32 elastic_balloon_take(struct elastic_node *node, u32 block, u32 count,
			 bool persistent, unsigned int *budget_ms)
{
	u32 first = elastic_block_usable(&node->range, block);
	u32 end = elastic_block_end(&node->range, block);
	unsigned int tries = persistent ? TRIES : 1;
	u32 run, got, i, taken = 0;

	/* Under zone->lock nobody should have to wait for a struct page. */
	if (*budget_ms)
		elastic_block_look(node, block);
	lock_device_hotplug();
	if (*budget_ms && extent_is_online(node, first)) {
		taken = take_torn(node, first, end, count);
		taken += take_free(node, first, end, count - taken);
	}
	while (taken < count && *budget_ms && !elastic_cancel_pending() &&
	       extent_is_online(node, first)) {
		run = run_below(node, first, &end,
				min(count - taken, (u32)RUN));
		if (!run)
			break;
		got = take_run(node, end, run, 1, budget_ms);
		/* Something in the run is in the way: one by one then. */
		for (i = run; !got && taken < count && *budget_ms && i-- > 0; ) {
			if (elastic_cancel_pending())
				break;
			taken += take_run(node, end + i, 1, tries, budget_ms);
		}
		taken += got;
	}
	unlock_device_hotplug();
	return taken;
}

/* They count already, so that they come before those without any memory. */
static int mend(struct elastic_node *node, u32 first, u32 end)
{
	int rc;

	for_each_set_bit_from(first, node->torn, end) {
		if (elastic_cancel_pending())
			return -ECANCELED;
		rc = elastic_mend(node, first);
		if (rc)
			return rc;
		hand_out(node, first, 1);
	}
	return 0;
}

/**
 * elastic_balloon_holes() - what can be filled
 * @node: the node
 * @but: a block that is not meant
 *
 * Return: how many extents of other blocks that are online have no memory.
 */
u32 elastic_balloon_holes(const struct elastic_node *node, u32 but)
{
	const struct elastic_range *range = &node->range;
	u32 block, holes = 0;

	for_each_set_bit(block, node->present, range->nr_blocks) {
		if (block != but &&
		    extent_is_online(node, elastic_block_usable(range, block)))
			holes += elastic_block_end(range, block) -
				 elastic_block_first(range, block) -
				 elastic_block_populated(node, block);
	}
	return holes;
}

/**
 * elastic_balloon_fill() - give extents of online blocks their memory back
 * @node: the node
 * @count: how many at most, lowest address first
 *
 * Return: 0, also when there were fewer to fill; or an error, after which what
 *	was filled stays.
 */
int elastic_balloon_fill(struct elastic_node *node, u32 count)
{
	u32 block, extent, end, run, got;
	int rc = 0;

	lock_device_hotplug();
	for_each_set_bit(block, node->present, node->range.nr_blocks) {
		extent = elastic_block_usable(&node->range, block);
		end = elastic_block_end(&node->range, block);
		if (!extent_is_online(node, extent))
			continue;
		rc = rc ?: mend(node, extent, end);
		while (count && !rc) {
			extent = find_next_zero_bit(node->populated, end, extent);
			if (extent >= end)
				break;
			run = find_next_bit(node->populated, end, extent) - extent;
			run = min(run, count);
			rc = elastic_populate_some(node, extent, run, &got);
			hand_out(node, extent, got);
			extent += run;
			count -= got;
		}
	}
	unlock_device_hotplug();
	return rc;
}

/**
 * elastic_balloon_init() - hear of blocks that come and go
 *
 * Return: 0, or why not.
 */
int elastic_balloon_init(void)
{
	int rc = 0;

	/* Only one may have the callback; the stock balloon asks us then. */
	if (!IS_ENABLED(CONFIG_XEN_BALLOON_MEMORY_HOTPLUG))
		rc = set_online_page_callback(&online_page);
	return rc ?: register_memory_notifier(&memory_nb);
}
