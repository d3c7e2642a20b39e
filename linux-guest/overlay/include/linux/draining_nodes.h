/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Nodes that are being emptied: the page allocator avoids them, but does not
 * refuse them.
 *
 * get_page_from_freelist() passes their zones by, and scans once more at the
 * same watermark, with them, when it has found nothing.  So as long as another
 * node has memory above the watermark nothing new lands on a node that leaves,
 * and when none has, its memory is used as if nobody drained it: other nodes
 * are not run down below what they would be without a drain, and nobody is
 * killed beside free memory.  Policies, mems_allowed and cpusets are as ever.
 *
 * Who asks for what:
 *
 * - A policy that allows such nodes only (MPOL_BIND) is met elsewhere, as it
 *   will be when they have gone: otherwise whoever is bound finds nothing
 *   between the end of the last block and the kernel's rebinding.
 * - A nodemask of such nodes only that is not a policy's, a cpuset's mems, and
 *   __GFP_THISNODE: the second scan meets the wish.
 * - The opportunistic, who ask for one node only and have a plan without it (a
 *   huge page for a fault, the target of NUMA balancing): they get none.
 * - The driver's thread itself moves pages out, also within offline_pages() and
 *   alloc_contig_range(): it never gets any of such nodes, in whatever mask.
 * - Huge pages of a pool are not the allocator's: what is reserved is there,
 *   and a pool grows where its owner wants it to.
 * - alloc_pages_bulk() takes from the first node only and is not hooked: all
 *   its callers want kernel memory, and what leaves is ZONE_MOVABLE.
 * - ALLOC_NOFRAGMENT has its retry first, without such nodes.
 * - Page cache that will be dirty: nodes at their dirty limit are passed by as
 *   such nodes are; the second scan takes the first of both in its zonelist.
 *   Otherwise a writer, whom the limit of the guest lets go on, would fill the
 *   node that leaves with pages that are written back, and do not move then.
 * - The lists per CPU belong to a zone, and so are avoided with it.
 * - kswapd, reclaim and compaction work on a node that leaves as on any other:
 *   what can be dropped there need not be moved.
 *
 * A guest whose page cache fills the other nodes puts new pages on the node
 * that leaves.  They go to blocks that are not isolated yet and are moved once
 * more, with their block: that is bounded by what is free on the node, which
 * becomes less with each block.  Whoever drains looks whether the rest still
 * has room elsewhere, and calls the drain off if not.
 *
 * The mask has no lock, and a bit changes at any time: an allocation that was
 * decided a moment before lands on the node, and is moved away with the rest.
 */
#ifndef _LINUX_DRAINING_NODES_H
#define _LINUX_DRAINING_NODES_H

#include <linux/gfp.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <xen/elastic-numa.h>

#ifdef CONFIG_XEN_ELASTIC_NUMA

#include <linux/jump_label.h>

/* Live in drivers/xen/elastic-numa/node.c; the key counts the bits. */
DECLARE_STATIC_KEY_FALSE(draining_key);
extern nodemask_t draining_nodes;

/**
 * zone_is_draining() - is the zone of a node that is being emptied?
 * @zone: the zone
 *
 * Context: any.
 */
static inline bool zone_is_draining(const struct zone *zone)
{
	return static_branch_unlikely(&draining_key) &&
	       node_isset(zone->node, draining_nodes);
}

/**
 * nodes_are_draining() - are all of these nodes being emptied?
 * @nodes: at least one
 *
 * Context: any.
 */
static inline bool nodes_are_draining(const nodemask_t *nodes)
{
	return static_branch_unlikely(&draining_key) &&
	       nodes_subset(*nodes, draining_nodes);
}

/**
 * may_use_draining() - may the caller have what is left, on such nodes?
 * @gfp: of the allocation that has found nothing elsewhere
 *
 * Context: any.
 */
static inline bool may_use_draining(gfp_t gfp)
{
	if ((gfp & __GFP_THISNODE) &&
	    ((gfp & __GFP_NORETRY) || !(gfp & __GFP_DIRECT_RECLAIM)))
		return false;
	return !xen_elastic_never_waits();
}

#else

static inline bool zone_is_draining(const struct zone *zone)
{
	return false;
}

static inline bool nodes_are_draining(const nodemask_t *nodes)
{
	return false;
}

static inline bool may_use_draining(gfp_t gfp)
{
	return false;
}

#endif /* CONFIG_XEN_ELASTIC_NUMA */

#endif /* _LINUX_DRAINING_NODES_H */
