// SPDX-License-Identifier: GPL-2.0
/*
 * The residue: what keeps pages on a node that should leave, and whose they are.
 *
 * Every folio of the node is looked at in passing, with a reference but without
 * its lock: what is counted may change while it is counted.
 *
 * Locking: the engine only.  A folio's lock is tried, never waited for.
 */
#include <linux/hugetlb.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/swap.h>
#include <linux/take_free.h>

#include "elastic.h"

#define OWNER_TRIES	8	/* pinned pages whose owner is looked for */

/* rmap_walk() calls it for each mapping of a pinned folio. */
static bool find_owner(struct folio *folio, struct vm_area_struct *vma,
		       unsigned long addr, void *arg)
{
	struct elastic_residue *residue = arg;
	struct task_struct *p;

	rcu_read_lock();
	/* A thread that has not exited, which the first one may have. */
	p = rcu_dereference(vma->vm_mm->owner);
	if (p) {
		residue->pid = task_tgid_nr(p);
		get_task_comm(residue->comm, p->group_leader);
	}
	rcu_read_unlock();
	return !residue->pid;	/* one is enough */
}

/* @tries: walks of the reverse mappings that may still be made. */
static void note_owner(struct folio *folio, struct elastic_residue *residue,
		       unsigned int *tries)
{
	struct rmap_walk_control rwc = {
		.rmap_one = find_owner,
		.arg = residue,
		.anon_lock = folio_lock_anon_vma_read,
		.try_lock = true,
	};

	if (residue->pid || !*tries || !folio_mapped(folio) ||
	    !folio->mapping || !folio_trylock(folio))
		return;
	--*tries;
	if (folio_mapped(folio))
		rmap_walk(folio, &rwc);
	folio_unlock(folio);
}

/* References that the page tables, the page cache and we account for. */
static int explained_references(struct folio *folio)
{
	int refs = 1 + folio_mapcount(folio);

	if (folio_test_swapcache(folio) ||
	    (!folio_test_anon(folio) && folio_mapping(folio)))
		refs += folio_nr_pages(folio);
	if (folio_test_private(folio))
		refs++;
	return refs;
}

/* Where the pages of a folio belong in the account. */
static unsigned long *kind_of(struct folio *folio,
			      struct elastic_residue *residue)
{
	if (folio_contain_hwpoisoned_page(folio))
		return &residue->poisoned;
	if (!folio_test_lru(folio) && !folio_test_hugetlb(folio) &&
	    !__folio_test_movable(folio))
		return &residue->unmovable;
	/* Before the references: who waits for the lock holds one, too. */
	if (folio_test_locked(folio))
		return &residue->locked;
	if (folio_test_writeback(folio))
		return &residue->writeback;
	if (folio_ref_count(folio) > explained_references(folio))
		return &residue->pinned;
	return &residue->busy;
}

/* What a look is for. */
struct look {
	unsigned int tries;	/* pinned pages whose owner may yet be looked for */
	bool pool_stays;	/* free huge pages of a pool are in use */
};

/*
 * A free huge page belongs to a pool that offline_pages() makes smaller, but
 * not below what is reserved.  The balloon has it replaced.
 */
static bool is_huge_page_in_use(struct folio *folio, bool pool_stays)
{
	struct hstate *h;

	if (folio_ref_count(folio) || !folio_test_hugetlb(folio))
		return false;
	if (pool_stays)
		return true;
	/* Not folio_hstate(): it may be freed at any moment. */
	h = size_to_hstate(folio_size(folio));
	return h && READ_ONCE(h->free_huge_pages) <=
		    READ_ONCE(h->resv_huge_pages);
}

/* A folio, from @pfn on and below @stop: one of 1 GiB is in many extents. */
static unsigned long note_page(unsigned long pfn, unsigned long stop,
			       struct elastic_residue *residue,
			       struct look *look)
{
	struct page *page = pfn_to_online_page(pfn);
	unsigned long nr = 1, free, *kind;
	struct folio *folio;

	if (!page || PageOffline(page))
		return 1;
	free = free_pages_at(page);
	if (free)
		return free;
	folio = page_folio(page);
	if (!folio_try_get(folio)) {
		residue->reserved += is_huge_page_in_use(folio,
							 look->pool_stays);
		return 1;
	}
	if (page_folio(page) == folio) {
		nr = min(folio_pfn(folio) + folio_nr_pages(folio), stop) - pfn;
		kind = kind_of(folio, residue);
		*kind += nr;
		if (kind == &residue->pinned)
			note_owner(folio, residue, &look->tries);
	}
	folio_put(folio);
	return max(nr, 1UL);
}

/* Extents @first to @end, but for those that hold struct pages. */
static void note_extents(const struct elastic_node *node, u32 first, u32 end,
			 struct elastic_residue *residue, struct look look)
{
	unsigned long pfn = 0, stop;

	for_each_set_bit_from(first, node->populated, end) {
		if (elastic_extent_is_memmap(&node->range, first))
			continue;
		/* A free block may end behind the extent that it begins in. */
		stop = elastic_extent_pfn(&node->range, first + 1);
		pfn = max_t(unsigned long, pfn, stop - ELASTIC_EXTENT_PAGES);
		while (pfn < stop)
			pfn += note_page(pfn, stop, residue, &look);
		cond_resched();
	}
}

/**
 * elastic_residue_reason() - find out why memory of a node does not leave
 * @node: the node; its reason is set
 *
 * A look without locks: what it counts may change while it counts.
 */
void elastic_residue_reason(struct elastic_node *node)
{
	struct elastic_residue residue = {};

	lru_add_drain_all();
	note_extents(node, 0, node->range.nr_extents, &residue,
		     (struct look){ .tries = OWNER_TRIES });
	elastic_residue_text(&residue, node->reason);
}

/**
 * elastic_block_in_use() - whether something is in the way of a block's end
 * @node: the node
 * @block: a block that is present
 * @pool_stays: also whether it has free huge pages of a pool, which would not be
 *	replaced when it goes offline
 *
 * A look without locks.
 *
 * Return: true when a page of it was in use just now.
 */
bool elastic_block_in_use(const struct elastic_node *node, u32 block,
			  bool pool_stays)
{
	struct elastic_residue residue = {};

	note_extents(node, elastic_block_first(&node->range, block),
		     elastic_block_end(&node->range, block), &residue,
		     (struct look){ .pool_stays = pool_stays });
	return elastic_residue_pages(&residue);
}
