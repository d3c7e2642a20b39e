// SPDX-License-Identifier: GPL-2.0
/*
 * Re-interleave: after the set of nodes has changed, bring the interleave
 * policies of a process up to date (NRST_FOLLOW), and migrate the pages that
 * are no longer where their policy would put them (NRST_POLICY).
 *
 * mbind(MPOL_MF_MOVE) cannot do the second: it moves only pages outside the
 * set of the policy, while after growth the misplaced pages are inside.
 *
 * Covered are anonymous pages of mappings with an interleave or weighted
 * interleave policy, or without any when the process has such a one.  Shared
 * memory, whose policy belongs to the object, and hugetlb are not.
 *
 * Locking: see mm/numa_reset.c.  Pages are collected under mmap_lock held for
 * reading, and migrated without it, as a migration may wait for writeback.
 */
#include <linux/cpuset.h>
#include <linux/migrate.h>
#include <linux/pagewalk.h>
#include <linux/rmap.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include "internal.h"
#include "numa_reset.h"

/* Isolated at a time, in pages: 16 MiB, and what one page table adds. */
#define NRST_BATCH_PAGES	4096

/**
 * struct nrst_batch - misplaced folios, isolated, by the node they belong on
 * @pol: interleave policy of the mapping under collection
 * @usable: nodes that folios may go to
 * @pages: on the lists
 * @failed: pages that could not be isolated
 * @next: address behind the last page table looked at
 * @last: large folio looked at last, which many entries may map
 * @targets: nodes whose list is not empty
 * @lists: one a node
 */
struct nrst_batch {
	struct mempolicy *pol;
	nodemask_t usable;
	unsigned long pages;
	unsigned long failed;
	unsigned long next;
	struct folio *last;
	nodemask_t targets;
	struct list_head lists[MAX_NUMNODES];
};

/* An empty batch, or %NULL without memory.  May sleep. */
struct nrst_batch *nrst_batch_new(void)
{
	struct nrst_batch *batch = kzalloc(sizeof(*batch), GFP_KERNEL);
	int nid;

	if (!batch)
		return NULL;
	for (nid = 0; nid < MAX_NUMNODES; nid++)
		INIT_LIST_HEAD(&batch->lists[nid]);
	return batch;
}

/* The lists are empty: whoever collects also migrates. */
void nrst_batch_free(struct nrst_batch *batch)
{
	kfree(batch);
}

/* The policy belongs to the object behind the mapping, as of shared memory. */
static bool nrst_policy_is_shared(const struct vm_area_struct *vma)
{
	return vma->vm_ops && vma->vm_ops->get_policy;
}

/* --- Collecting ----------------------------------------------------------- */

/*
 * The interleave policy that rules @vma, or %NULL if there is none, or if the
 * pages cannot be moved by it.
 *
 * Context: mmap_lock is held; the policy is good as long.
 */
struct mempolicy *nrst_interleave_policy(struct nrst_request *req,
					 struct vm_area_struct *vma)
{
	struct mempolicy *pol;

	if (nrst_policy_is_shared(vma) || !vma_migratable(vma) ||
	    is_vm_hugetlb_page(vma))
		return NULL;

	pol = vma->vm_policy ? vma->vm_policy : req->pol;
	return nrst_interleaves(pol) ? pol : NULL;
}

/*
 * The node where a page fault would put the folio that is mapped at @addr:
 * the same index as get_vma_policy() computes, for any process.
 */
static int nrst_policy_node(struct nrst_batch *batch,
			    struct vm_area_struct *vma, unsigned long addr,
			    struct folio *folio)
{
	unsigned int order = folio_order(folio);
	int nid = NUMA_NO_NODE;
	pgoff_t ilx;

	ilx = vma->vm_pgoff >> order;
	ilx += (addr - vma->vm_start) >> (PAGE_SHIFT + order);
	policy_nodemask(GFP_HIGHUSER_MOVABLE, batch->pol, ilx, &nid);
	return nid;
}

/* Context: under the page table lock. */
static void nrst_collect_folio(struct nrst_batch *batch,
			       struct vm_area_struct *vma, unsigned long addr,
			       struct folio *folio)
{
	long nr_pages = folio_nr_pages(folio);
	int nid;

	if (!folio_test_anon(folio) || folio_test_ksm(folio))
		return;
	if (nr_pages > 1) {
		if (folio == batch->last)
			return;
		batch->last = folio;
	}

	nid = nrst_policy_node(batch, vma, addr, folio);
	if (nid == NUMA_NO_NODE || nid == folio_nid(folio))
		return;
	/* Another process has a say in it, too. */
	if (folio_likely_mapped_shared(folio))
		return;
	if (!node_isset(nid, batch->usable) ||
	    !isolate_folio_to_list(folio, &batch->lists[nid])) {
		batch->failed += nr_pages;
		return;
	}
	node_set(nid, batch->targets);
	batch->pages += nr_pages;
}

static void nrst_collect_ptes(struct nrst_batch *batch,
			      struct vm_area_struct *vma, unsigned long addr,
			      unsigned long end, pte_t *ptep)
{
	for (; addr != end; ptep++, addr += PAGE_SIZE) {
		pte_t pte = ptep_get(ptep);
		struct folio *folio;

		if (!pte_present(pte))
			continue;
		folio = vm_normal_folio(vma, addr, pte);
		if (folio && !folio_is_zone_device(folio))
			nrst_collect_folio(batch, vma, addr, folio);
	}
}

static int nrst_collect_entry(pmd_t *pmd, unsigned long addr,
			      unsigned long end, struct mm_walk *walk)
{
	struct nrst_batch *batch = walk->private;
	struct vm_area_struct *vma = walk->vma;
	spinlock_t *ptl;		/* of the page table */
	pte_t *ptep;

	ptl = pmd_trans_huge_lock(pmd, vma);
	if (ptl) {
		nrst_pmd_is_locked(ptl);
		if (pmd_present(*pmd) && !is_huge_zero_pmd(*pmd))
			nrst_collect_folio(batch, vma, addr & HPAGE_PMD_MASK,
					   pmd_folio(*pmd));
		spin_unlock(ptl);
	} else {
		ptep = pte_offset_map_lock(walk->mm, pmd, addr, &ptl);
		if (!ptep) {
			walk->action = ACTION_AGAIN;
			return 0;
		}
		nrst_ptes_are_locked();
		nrst_collect_ptes(batch, vma, addr, end, ptep);
		pte_unmap_unlock(ptep, ptl);
	}

	cond_resched();
	batch->next = end;
	return batch->pages >= NRST_BATCH_PAGES;
}

static const struct mm_walk_ops nrst_collect_ops = {
	.pmd_entry	= nrst_collect_entry,
	.walk_lock	= PGWALK_RDLOCK,
};

/*
 * Put the misplaced folios of [@start, @end) of @vma on the lists, until the
 * batch is full.  Returns the address to go on from.
 *
 * Context: mmap_lock is held for reading; nrst_migrate() must follow.
 */
unsigned long nrst_collect(struct nrst_request *req, struct nrst_batch *batch,
			   struct vm_area_struct *vma, unsigned long start,
			   unsigned long end)
{
	mmap_assert_locked(req->mm);

	batch->pol = nrst_interleave_policy(req, vma);
	batch->usable = req->nodes;
	batch->next = end;
	batch->last = NULL;
	if (walk_page_range(req->mm, start, end, &nrst_collect_ops, batch) <= 0)
		return end;
	return batch->next;
}

/* --- Migrating ------------------------------------------------------------ */

/*
 * On the target or not at all: a page elsewhere would be as misplaced as
 * before.  With __GFP_THISNODE a full node never brings up the OOM killer.
 */
static struct folio *nrst_alloc_folio(struct folio *src, unsigned long nid)
{
	unsigned int order = folio_order(src);
	gfp_t gfp = order ? GFP_TRANSHUGE : GFP_HIGHUSER_MOVABLE;

	gfp |= __GFP_THISNODE | __GFP_NORETRY | __GFP_NOWARN;
	return __folio_alloc_node(gfp, order, (int)nid);
}

/*
 * Migrate what has been collected.  What cannot be moved goes back to where
 * it was, and is counted.
 *
 * Context: may sleep; mmap_lock is not held.
 */
void nrst_migrate(struct nrst_request *req, struct nrst_batch *batch)
{
	unsigned long moved = 0;
	int nid;

	for_each_node_mask(nid, batch->targets) {
		unsigned int succeeded = 0;

		migrate_pages(&batch->lists[nid], nrst_alloc_folio, NULL, nid,
			      MIGRATE_SYNC, MR_MEMPOLICY_MBIND, &succeeded);
		if (!list_empty(&batch->lists[nid]))
			putback_movable_pages(&batch->lists[nid]);
		moved += succeeded;
	}

	req->moved += moved;
	req->failed += batch->failed;
	if (batch->pages > moved)
		req->failed += batch->pages - moved;

	nodes_clear(batch->targets);
	batch->pages = 0;
	batch->failed = 0;
}

/* --- Following the set of nodes ------------------------------------------- */

/**
 * numa_reset_note_policy - remember what the user means by a new policy
 * @pol: the policy
 * @named: the nodes that the user names
 * @all: the nodes that there are at this time, and that the cpuset allows
 *
 * A plain policy is rebound by remapping its nodes when the cpuset changes,
 * after which nobody can tell a shrunk "all nodes" from a small set that
 * somebody has chosen.
 *
 * Context: @pol is not in use yet.
 */
void numa_reset_note_policy(struct mempolicy *pol, const nodemask_t *named,
			    const nodemask_t *all)
{
	pol->named = *named;
	pol->named_all = nodes_equal(*named, *all);
}

/**
 * numa_reset_same_policy - would two policies follow the set of nodes alike?
 * @a: a policy
 * @b: one of the same mode, with the same flags
 *
 * Context: as for __mpol_equal(); mappings with equal policies are merged.
 */
bool numa_reset_same_policy(const struct mempolicy *a,
			    const struct mempolicy *b)
{
	if (!nrst_interleaves(a))
		return true;
	return a->named_all == b->named_all &&
	       (a->named_all || nodes_equal(a->named, b->named));
}

/*
 * The nodes of @usable that @pol stands for.  May be empty: then the policy
 * stays as it is.
 */
static void nrst_meant_nodes(const struct mempolicy *pol,
			     const nodemask_t *usable, nodemask_t *set)
{
	nodemask_t folded;

	if (pol->flags & MPOL_F_RELATIVE_NODES) {
		nodes_fold(folded, pol->w.user_nodemask,
			   nodes_weight(*usable));
		nodes_onto(*set, folded, *usable);
	} else if (pol->flags & MPOL_F_STATIC_NODES) {
		nodes_and(*set, pol->w.user_nodemask, *usable);
	} else if (pol->named_all) {
		*set = *usable;
	} else {
		nodes_and(*set, pol->named, *usable);
	}
}

/*
 * Give @pol what it stands for of @nodes and of those that the cpuset allows,
 * @allowed.  What the user has named is kept for the next time.
 */
static void nrst_follow_policy(struct mempolicy *pol, const nodemask_t *nodes,
			       const nodemask_t *allowed)
{
	nodemask_t usable, set;

	nodes_and(usable, *nodes, *allowed);
	if (nodes_empty(usable))
		return;
	nrst_meant_nodes(pol, &usable, &set);
	if (nodes_empty(set))
		return;

	pol->nodes = set;
	if (!(pol->flags & MPOL_MODE_FLAGS))
		pol->w.cpuset_mems_allowed = *allowed;
}

static int nrst_follow_vmas(struct nrst_request *req,
			    const nodemask_t *allowed)
{
	VMA_ITERATOR(vmi, req->mm, req->start);
	struct vm_area_struct *vma;

	if (mmap_write_lock_killable(req->mm))
		return -EINTR;
	for_each_vma_range(vmi, vma, req->end) {
		if (nrst_policy_is_shared(vma) ||
		    !nrst_interleaves(vma->vm_policy))
			continue;
		vma_start_write(vma);
		nrst_follow_policy(vma->vm_policy, &req->nodes, allowed);
	}
	mmap_write_unlock(req->mm);
	return 0;
}

/*
 * A thread reads its policy without a lock; the sequence count makes it look
 * again, as for a change of its cpuset.
 */
static void nrst_follow_thread(struct nrst_request *req,
			       struct task_struct *thread)
{
	task_lock(thread);
	if (thread->mm == req->mm && nrst_interleaves(thread->mempolicy)) {
		local_irq_disable();
		write_seqcount_begin(&thread->mems_allowed_seq);
		nrst_follow_policy(thread->mempolicy, &req->nodes,
				   &thread->mems_allowed);
		write_seqcount_end(&thread->mems_allowed_seq);
		local_irq_enable();
	}
	task_unlock(thread);
}

/**
 * nrst_follow - the interleave policies of a process follow the set of nodes
 * @req: the request; its nodes are those that the policies may use
 *
 * The policies of mappings that overlap the range, and when the range is
 * everything, those of all threads.  A thread that is just being created may
 * miss it.
 *
 * Context: may sleep.  Takes mmap_lock for writing; task_lock of each thread.
 * Return: 0, or -EINTR by a fatal signal.
 */
int nrst_follow(struct nrst_request *req)
{
	nodemask_t allowed = cpuset_mems_allowed(req->task);
	struct task_struct *thread;
	int err;

	err = nrst_follow_vmas(req, &allowed);
	if (err || !req->whole)
		return err;

	rcu_read_lock();
	for_each_thread(req->task, thread)
		nrst_follow_thread(req, thread);
	rcu_read_unlock();
	return 0;
}
