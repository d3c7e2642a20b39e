// SPDX-License-Identifier: GPL-2.0
/*
 * Evacuation: move what is on a node to nodes that stay, by several workers,
 * before its blocks go offline one after the other.  offline_pages() could do
 * it all, but with one thread, and to the nearest node even if that is about
 * to leave, too.
 *
 * Nothing is isolated before: offline_pages() would find it busy.  What lands
 * on the node meanwhile, since the guest has no room elsewhere or asks for this
 * node, it moves itself.
 *
 * Nobody here waits for a folio's lock or for writeback: either may last for
 * as long as a file system's server likes.  A folio that is in use is passed
 * by; what is left after a pass is tried again, after pauses that grow, for
 * some seconds in all.
 *
 * The other nodes are not run down: what the guest allocates next that cannot
 * be on this node, as page tables, must find something there.
 *
 * Locking: the engine starts the workers and waits for them.  They share
 * struct evacuation, of which only the atomic members change meanwhile.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/backing-dev.h>
#include <linux/freezer.h>
#include <linux/hugetlb.h>
#include <linux/memory_hotplug.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/swap.h>
#include <linux/take_free.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>
#include <linux/writeback.h>

#include "elastic.h"

#define MAX_WORKERS	8
#define BATCH_PAGES	512	/* migrate_pages() takes no more at once */
#define CHUNK_EXTENTS	8	/* 16 MiB: what a worker takes at a time */
#define PASSES		3	/* without a pause */
#define PAUSE_MS	50U	/* the first one; each is twice as long */
#define PAUSES		6	/* 3150 ms together */

struct evacuation {
	struct elastic_node *node;
	nodemask_t targets;
	atomic_t next_chunk;
	atomic_long_t moved;
	atomic_long_t failed;
	bool full;		/* a worker found no room elsewhere */
};

struct evac_worker {
	struct work_struct work;
	struct evacuation *evac;
};

struct destination {
	int nid;
	nodemask_t *nodes;
};

static struct workqueue_struct *evac_wq;

/* The node with the most free memory for its distance. */
static int best_target(const struct evacuation *evac)
{
	unsigned long weight, best_weight = 0;
	int nid, best = first_node(evac->targets);

	for_each_node_mask(nid, evac->targets) {
		weight = sum_zone_node_page_state(nid, NR_FREE_PAGES) /
			 node_distance(evac->node->nid, nid);
		if (weight > best_weight) {
			best_weight = weight;
			best = nid;
		}
	}
	return best;
}

static struct folio *alloc_target(struct folio *src, unsigned long private)
{
	struct destination *to = (struct destination *)private;
	gfp_t gfp = GFP_HIGHUSER_MOVABLE | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	unsigned int order = 0;

	if (folio_test_hugetlb(src)) {
		struct hstate *h = folio_hstate(src);

		return alloc_hugetlb_folio_nodemask(h, to->nid, to->nodes,
						    htlb_modify_alloc_mask(h, gfp),
						    true);
	}
	/* A huge page that finds no room is split by migrate_pages(). */
	if (folio_test_large(src)) {
		order = folio_order(src);
		gfp = (gfp & ~__GFP_RECLAIM) | GFP_TRANSHUGE_LIGHT;
	}
	return __folio_alloc(gfp, order, to->nid, to->nodes);
}

static void move_list(struct evacuation *evac, struct list_head *list,
		      unsigned int pages)
{
	struct destination to = {
		.nid = best_target(evac),
		.nodes = &evac->targets,
	};
	unsigned int moved = 0;
	int rc;

	if (list_empty(list))
		return;
	/* The other workers have as much on their way. */
	if (elastic_room_elsewhere(evac->node->nid) < pages * MAX_WORKERS) {
		WRITE_ONCE(evac->full, true);
		atomic_long_add(pages, &evac->failed);
		putback_movable_pages(list);
		return;
	}
	rc = migrate_pages(list, alloc_target, NULL, (unsigned long)&to,
			   MIGRATE_ASYNC, MR_MEMORY_HOTPLUG, &moved);
	atomic_long_add(moved, &evac->moved);
	if (rc) {
		atomic_long_add(rc > 0 ? rc : 1, &evac->failed);
		putback_movable_pages(list);
	}
}

/* Take the folio of a page from its LRU list, if it is one that can move. */
static unsigned long isolate(unsigned long pfn, struct list_head *list,
			     unsigned int *pages)
{
	struct page *page = pfn_to_online_page(pfn);
	struct folio *folio;
	unsigned long next = pfn + 1, free;

	if (!page || PageOffline(page))
		return next;
	free = free_pages_at(page);
	if (free)
		return pfn + free;
	folio = page_folio(page);
	if (!folio_try_get(folio))
		return next;
	if (page_folio(page) == folio &&
	    !folio_contain_hwpoisoned_page(folio)) {
		next = folio_pfn(folio) + folio_nr_pages(folio);
		if (isolate_folio_to_list(folio, list))
			*pages += folio_nr_pages(folio);
	}
	folio_put(folio);
	return max(next, pfn + 1);
}

/* An extent without memory, or of struct pages, holds nothing that can move. */
static bool holds_folios(const struct elastic_node *node, unsigned long pfn)
{
	u32 extent;

	return elastic_find_extent(&node->range, pfn, &extent) &&
	       elastic_has_memory(node, extent) &&
	       !elastic_extent_is_memmap(&node->range, extent);
}

static void evacuate_range(struct evacuation *evac, unsigned long pfn,
			   unsigned long end)
{
	LIST_HEAD(list);
	unsigned int pages = 0;

	while (pfn < end && !elastic_cancel_pending() &&
	       !READ_ONCE(evac->full)) {
		if (IS_ALIGNED(pfn, ELASTIC_EXTENT_PAGES) &&
		    !holds_folios(evac->node, pfn)) {
			pfn += ELASTIC_EXTENT_PAGES;
			continue;
		}
		pfn = isolate(pfn, &list, &pages);
		if (pages >= BATCH_PAGES) {
			move_list(evac, &list, pages);
			pages = 0;
		}
		cond_resched();
	}
	move_list(evac, &list, pages);
}

static void evac_work(struct work_struct *work)
{
	struct evacuation *evac = container_of(work, struct evac_worker,
					       work)->evac;
	const struct elastic_range *r = &evac->node->range;
	u32 chunks = DIV_ROUND_UP(r->nr_extents, CHUNK_EXTENTS);
	unsigned int nofs = memalloc_nofs_save();
	u32 first, end;
	int chunk;

	for (;;) {
		chunk = atomic_inc_return(&evac->next_chunk) - 1;
		if (chunk >= chunks || elastic_cancel_pending() ||
		    READ_ONCE(evac->full))
			break;
		first = chunk * CHUNK_EXTENTS;
		end = min(first + CHUNK_EXTENTS, r->nr_extents);
		evacuate_range(evac, elastic_extent_pfn(r, first),
			       elastic_extent_pfn(r, end));
	}
	memalloc_nofs_restore(nofs);
}

static void run_workers(struct evacuation *evac)
{
	struct evac_worker workers[MAX_WORKERS];
	unsigned int i, n = min(num_online_cpus(), MAX_WORKERS);

	for (i = 0; i < n; i++) {
		workers[i].evac = evac;
		INIT_WORK_ONSTACK(&workers[i].work, evac_work);
		queue_work(evac_wq, &workers[i].work);
	}
	for (i = 0; i < n; i++) {
		flush_work(&workers[i].work);
		destroy_work_on_stack(&workers[i].work);
	}
}

/* Let those who hold pages get on.  Dirty ones may have to be written first. */
static void pause_for(unsigned int ms)
{
	wakeup_flusher_threads(WB_REASON_VMSCAN);
	wait_event_freezable_timeout(elastic_wq, elastic_watch_fired() ||
				     elastic_cancel_pending(),
				     msecs_to_jiffies(ms));
}

/**
 * elastic_evacuate() - move pages off a node
 * @node: the node; in the draining mask, so that it is no destination
 *
 * Pages that do not move within some seconds are left to offline_pages().  When
 * there is no room for the rest, elastic_cancelled() knows.
 *
 * Context: the engine, without locks.
 * Return: 0, or -ECANCELED: there is a new target.
 */
int elastic_evacuate(struct elastic_node *node)
{
	struct evacuation evac = { .node = node };
	nodemask_t draining;
	long failed = 0;
	int pass;

	elastic_draining_nodes(&draining);
	nodes_andnot(evac.targets, node_states[N_MEMORY], draining);
	node_clear(node->nid, evac.targets);

	for (pass = 0; pass < PASSES + PAUSES; pass++) {
		if (elastic_cancelled())
			return -ECANCELED;
		if (pass >= PASSES)
			pause_for(PAUSE_MS << (pass - PASSES));
		atomic_set(&evac.next_chunk, 0);
		atomic_long_set(&evac.failed, 0);
		WRITE_ONCE(evac.full, false);
		lru_add_drain_all();
		run_workers(&evac);

		failed = atomic_long_read(&evac.failed);
		if (!failed)
			break;
	}
	pr_info("vnode %u: %ld pages moved, %ld did not\n", node->vnode,
		atomic_long_read(&evac.moved), failed);
	return elastic_cancelled() ? -ECANCELED : 0;
}

/**
 * elastic_evac_init() - make the workqueue
 *
 * Return: 0 or -ENOMEM.
 */
int elastic_evac_init(void)
{
	evac_wq = alloc_workqueue("elastic-evac", WQ_UNBOUND, MAX_WORKERS);
	return evac_wq ? 0 : -ENOMEM;
}
