// SPDX-License-Identifier: GPL-2.0
/*
 * Next touch: a marked page moves to the node of the thread that touches it.
 *
 * A mark is the page table entry of a NUMA hinting fault (PROT_NONE in an
 * accessible mapping), set also on pages that automatic balancing would leave
 * alone.  While mm->nt is armed, the fault does not ask the balancer's filters
 * whether a page should move: the effective policy names the node, and the
 * touch moves a whole window (the granule) of marked pages in one batch.
 *
 * What is not marked: hugetlb, KSM and zero pages, anonymous pages that are
 * pinned or shared by copy-on-write, dirty page cache, read-only mappings of
 * files.  A page that cannot be moved, or whose target is full, is made
 * accessible where it is.
 *
 * Locking: see mm/numa_reset.c.  The functions of the fault path run under
 * the page table lock where they say so, and hold mmap_lock or the VMA's lock
 * for reading in any case; they read mm->nt without a lock.
 */
#include <linux/cpuset.h>
#include <linux/jiffies.h>
#include <linux/migrate.h>
#include <linux/pagewalk.h>
#include <linux/rmap.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>

#include "internal.h"
#include "numa_reset.h"
#include "numa_reset_check.h"

/* --- State ------------------------------------------------------------- */

/**
 * nrst_nt_get - the next-touch state of an address space
 * @mm: a reference on mm_users is held
 *
 * Makes the state when there is none; it stays until the mm goes.
 *
 * Context: may sleep.  Takes no lock.
 * Return: the state, or %NULL without memory.
 */
struct numa_nt *nrst_nt_get(struct mm_struct *mm)
{
	struct numa_nt *nt = READ_ONCE(mm->nt);
	struct numa_nt *old;

	if (nt)
		return nt;

	nt = kzalloc(sizeof(*nt), GFP_KERNEL_ACCOUNT);
	if (!nt)
		return NULL;
	mutex_init(&nt->lock);

	old = cmpxchg(&mm->nt, NULL, nt);
	if (!old)
		return nt;
	kfree(nt);
	return old;
}

/* Context: from __mmdrop(), nobody can fault any more. */
void numa_nt_free(struct mm_struct *mm)
{
	kfree(mm->nt);
	mm->nt = NULL;
}

/*
 * From here on hinting faults obey the request.  Before the first mark.
 *
 * All marks of an mm share one granule and one set of nodes.  A reset of
 * everything may change them; one of a range must not, as it would change what
 * earlier marks elsewhere mean.
 *
 * Return: 0 or -EBUSY.
 */
int nrst_arm(struct nrst_request *req)
{
	struct numa_nt *nt = req->mm->nt;

	lockdep_assert_held(&nt->lock);
	if (nt->armed && !req->whole &&
	    (nt->granule_shift != req->granule_shift ||
	     !nodes_equal(nt->nodes, req->asked)))
		return -EBUSY;

	nt->since = jiffies;
	nt->nodes = req->asked;
	WRITE_ONCE(nt->granule_shift, req->granule_shift);
	WRITE_ONCE(nt->armed, true);
	return 0;
}

/* Hinting faults belong to automatic balancing again.  After the last mark. */
void nrst_disarm(struct nrst_request *req)
{
	struct numa_nt *nt = req->mm->nt;

	lockdep_assert_held(&nt->lock);
	WRITE_ONCE(nt->armed, false);
}

/**
 * numa_nt_expire - does automatic balancing get an mm back by now?
 * @mm: the mm of the current process; under next touch a moment ago
 * @ms: how long next touch may keep the balancer out, in milliseconds
 *
 * Marks that nobody has used up in that time are the balancer's hints from
 * then on.
 *
 * Context: the scanner of automatic balancing; may sleep, but does not wait:
 *	a reset that is under way starts the time anew.
 * Return: true if next touch is over.
 */
bool numa_nt_expire(struct mm_struct *mm, unsigned int ms)
{
	struct numa_nt *nt = mm->nt;
	bool over;

	if (!mutex_trylock(&nt->lock))
		return false;
	over = !nt->armed ||
	       time_after(jiffies, nt->since + msecs_to_jiffies(ms));
	if (over)
		WRITE_ONCE(nt->armed, false);
	mutex_unlock(&nt->lock);
	return over;
}

/* --- Which node ---------------------------------------------------------- */

/* Where a touch by the current thread may move pages to. */
static void nt_candidates(struct mm_struct *mm, nodemask_t *candidates)
{
	nrst_usable_nodes(candidates);
	nodes_and(*candidates, *candidates, mm->nt->nodes);
	nodes_and(*candidates, *candidates, cpuset_current_mems_allowed);
}

/*
 * The node of @nodes that is nearest to @from; among equals @cur, then the
 * lowest.  NUMA_NO_NODE when @nodes is empty.
 */
static int nt_nearest(int from, int cur, const nodemask_t *nodes)
{
	int best = NUMA_NO_NODE;
	int best_distance = INT_MAX;
	int nid;

	if (node_isset(from, *nodes))
		return from;

	for_each_node_mask(nid, *nodes) {
		int distance = node_distance(from, nid);

		if (distance < best_distance ||
		    (distance == best_distance && nid == cur)) {
			best_distance = distance;
			best = nid;
		}
	}
	return best;
}

/*
 * The node that the effective policy names for @folio at @addr when a thread
 * on node @toucher touches it; NUMA_NO_NODE when none will do.  Interleave
 * policies don't care who touches.  The flag MPOL_F_MORON tells the kernel's
 * own "prefer this node" from one that the user has set.
 */
static int nt_policy_node(struct vm_area_struct *vma, unsigned long addr,
			  struct folio *folio, int toucher,
			  const nodemask_t *candidates)
{
	int cur = folio_nid(folio);
	int nid = NUMA_NO_NODE;
	struct mempolicy *pol;
	nodemask_t nodes;
	pgoff_t ilx;

	pol = get_vma_policy(vma, addr, folio_order(folio), &ilx);
	switch (pol->mode) {
	case MPOL_INTERLEAVE:
	case MPOL_WEIGHTED_INTERLEAVE:
		policy_nodemask(GFP_HIGHUSER_MOVABLE, pol, ilx, &nid);
		if (nid != NUMA_NO_NODE && !node_isset(nid, *candidates))
			nid = NUMA_NO_NODE;
		break;

	case MPOL_BIND:
		nodes_and(nodes, *candidates, pol->nodes);
		nid = nt_nearest(toucher, cur, &nodes);
		break;

	case MPOL_PREFERRED_MANY:
		nodes_and(nodes, *candidates, pol->nodes);
		nid = nt_nearest(toucher, cur,
				 nodes_empty(nodes) ? candidates : &nodes);
		break;

	case MPOL_PREFERRED:
		if (!(pol->flags & MPOL_F_MORON))
			toucher = first_node(pol->nodes);
		fallthrough;
	default:
		nid = nt_nearest(toucher, cur, candidates);
		break;
	}
	mpol_cond_put(pol);

	return nid;
}

/* --- The window of a touch ----------------------------------------------- */

/* What a touch does with its window; one page table, under its lock. */
struct nt_sweep {
	struct vm_area_struct *vma;
	struct folio *touched;		/* left to the fault itself */
	int toucher;			/* node */
	int target;			/* node of the batch */
	const nodemask_t *candidates;
	struct list_head *list;		/* of the batch, NULL: collect none */
};

/* Make a marked page accessible, with the rights that a fault would give. */
static void nt_unmark_pte(struct vm_area_struct *vma, unsigned long addr,
			  pte_t *ptep)
{
	pte_t old = ptep_modify_prot_start(vma, addr, ptep);
	pte_t pte = pte_modify(old, vma->vm_page_prot);

	if (!pte_write(pte) && vma_wants_manual_pte_write_upgrade(vma) &&
	    can_change_pte_writable(vma, addr, pte))
		pte = pte_mkwrite(pte, vma);
	ptep_modify_prot_commit(vma, addr, ptep, old, pte);
}

/*
 * The neighbours of a touched page: who is where the touch would put it
 * becomes accessible, who has the same way to go joins the batch.  The others
 * keep their mark and wait for their own touch.
 */
static void nt_sweep_window(struct nt_sweep *sweep, pte_t *ptep,
			    struct nrst_range window)
{
	struct vm_area_struct *vma = sweep->vma;
	unsigned long addr;

	arch_enter_lazy_mmu_mode();
	for (addr = window.start; addr != window.end;
	     addr += PAGE_SIZE, ptep++) {
		pte_t pte = ptep_get(ptep);
		struct folio *folio;
		int nid;

		if (!pte_present(pte) || !pte_protnone(pte))
			continue;
		folio = vm_normal_folio(vma, addr, pte);
		if (!folio || folio_is_zone_device(folio) ||
		    folio == sweep->touched)
			continue;

		nid = nt_policy_node(vma, addr, folio, sweep->toucher,
				     sweep->candidates);
		if (nid == folio_nid(folio))
			nt_unmark_pte(vma, addr, ptep);
		else if (sweep->list && nid == sweep->target &&
			 !migrate_misplaced_folio_prepare(folio, vma, nid))
			list_add_tail(&folio->lru, sweep->list);
	}
	arch_leave_lazy_mmu_mode();
}

/**
 * numa_nt_target - where a marked page that is touched should go
 * @folio: the page, mapped at @addr
 * @vmf: the fault, of a page table entry or of a huge one
 * @addr: the address touched, aligned to the page
 *
 * When the page is well placed, its neighbours in the window that are so, too,
 * become accessible with it.
 *
 * Context: NUMA hinting fault; @vmf->ptl is held.
 * Return: the node, or %NUMA_NO_NODE when the page should stay.
 */
int numa_nt_target(struct folio *folio, struct vm_fault *vmf,
		   unsigned long addr)
{
	struct vm_area_struct *vma = vmf->vma;
	struct mm_struct *mm = vma->vm_mm;
	struct nrst_range window;
	struct nt_sweep sweep;
	nodemask_t candidates;
	int nid;

	lockdep_assert_held(vmf->ptl);

	/* A debugger's access is not a touch. */
	if (current->mm != mm)
		return NUMA_NO_NODE;

	nt_candidates(mm, &candidates);
	nid = nt_policy_node(vma, addr, folio, numa_node_id(), &candidates);
	if (nid != folio_nid(folio))
		return nid;

	if (!vmf->pte)
		return NUMA_NO_NODE;

	sweep = (struct nt_sweep) {
		.vma = vma,
		.touched = folio,
		.toucher = numa_node_id(),
		.target = nid,
		.candidates = &candidates,
	};
	window = nrst_window(addr, READ_ONCE(mm->nt->granule_shift),
			     vma->vm_start, vma->vm_end);
	nt_sweep_window(&sweep,
			vmf->pte - ((addr - window.start) >> PAGE_SHIFT),
			window);
	return NUMA_NO_NODE;
}

/**
 * numa_nt_gather - let the marked neighbours of a touched page go with it
 * @vma: the mapping
 * @folio: the page touched; isolated, about to be migrated
 * @nid: where to
 * @list: of folios to migrate; gets the neighbours, isolated
 *
 * Context: NUMA hinting fault; mmap_lock or the VMA's lock is held for
 *	reading.  Takes the page table lock.
 */
void numa_nt_gather(struct vm_area_struct *vma, struct folio *folio, int nid,
		    struct list_head *list)
{
	struct mm_struct *mm = vma->vm_mm;
	struct nrst_range window;
	struct nt_sweep sweep;
	nodemask_t candidates;
	unsigned long addr;
	spinlock_t *ptl;		/* of the page table */
	pte_t *ptep;
	pmd_t *pmd;

	addr = page_address_in_vma(folio_page(folio, 0), vma);
	if (addr == -EFAULT)
		return;
	window = nrst_window(addr, READ_ONCE(mm->nt->granule_shift),
			     vma->vm_start, vma->vm_end);
	if (window.end - window.start <= folio_size(folio))
		return;

	pmd = mm_find_pmd(mm, addr);
	if (!pmd)
		return;
	ptep = pte_offset_map_lock(mm, pmd, window.start, &ptl);
	if (!ptep)
		return;		/* a huge page is its own window */
	nrst_ptes_are_locked();

	/*
	 * The thread may run elsewhere by now; the node that has been chosen
	 * is the toucher's, or the nearest to it, and stays the choice.
	 */
	nt_candidates(mm, &candidates);
	sweep = (struct nt_sweep) {
		.vma = vma,
		.touched = folio,
		.toucher = nid,
		.target = nid,
		.candidates = &candidates,
		.list = list,
	};
	nt_sweep_window(&sweep, ptep, window);
	pte_unmap_unlock(ptep, ptl);
}

/* --- Marking and unmarking ------------------------------------------------ */

/*
 * May the pages of @vma be marked?  The mappings that automatic balancing
 * takes, too, and for the same reasons; but any policy will do.
 */
bool nrst_may_mark(struct vm_area_struct *vma)
{
	if (!vma_migratable(vma) || is_vm_hugetlb_page(vma) ||
	    (vma->vm_flags & VM_MIXEDMAP))
		return false;

	/* Shared libraries, and mappings of the kernel's own, as the vDSO. */
	if (vma->vm_file ? (vma->vm_flags & (VM_READ | VM_WRITE)) == VM_READ :
			   !!vma->vm_ops)
		return false;

	/* PROT_NONE by the user's wish: a hinting fault would not be one. */
	return vma_is_accessible(vma);
}

/**
 * numa_nt_displaced - has a page been put anywhere, for the next touch to mend?
 * @vma: a mapping of the page
 * @from: the page before its migration
 *
 * A migration replaces the page's entries, marks and all.  Whoever empties a
 * node that is about to leave doesn't know which thread will use the page, so
 * that its mark must come back, also where a touch had used it up.  A touch
 * itself runs in the process, and what it has moved is not marked again.
 *
 * Context: under the page table lock and the locks of a walk of the reverse
 *	mappings; the mm is under next touch.
 */
bool numa_nt_displaced(struct vm_area_struct *vma, struct folio *from)
{
	nodemask_t usable;

	if (current->mm == vma->vm_mm || !nrst_may_mark(vma))
		return false;
	nrst_usable_nodes(&usable);
	return !node_isset(folio_nid(from), usable);
}

/* Context: mmap_lock is held for reading, the mm is armed. */
void nrst_mark(struct nrst_request *req, struct vm_area_struct *vma,
	       unsigned long start, unsigned long end)
{
	struct mmu_gather tlb;
	long marked;

	mmap_assert_locked(req->mm);

	tlb_gather_mmu(&tlb, req->mm);
	marked = change_protection(&tlb, vma, start, end,
				   MM_CP_PROT_NUMA | MM_CP_NUMA_FORCE);
	tlb_finish_mmu(&tlb);

	if (marked > 0) {
		count_vm_numa_events(NUMA_PTE_UPDATES, marked);
		req->marked += marked;
	}
}

/* Under the page table lock.  Write access comes back with the first write. */
static unsigned long nt_unmark_pmd(struct vm_area_struct *vma,
				   unsigned long addr, pmd_t *pmdp)
{
	pmd_t pmd = pmdp_get(pmdp);

	if (!pmd_present(pmd) || !pmd_protnone(pmd))
		return 0;

	pmd = pmd_modify(pmd, vma->vm_page_prot);
	set_pmd_at(vma->vm_mm, addr, pmdp, pmd);
	return HPAGE_PMD_NR;
}

static int nt_unmark_entry(pmd_t *pmd, unsigned long addr, unsigned long end,
			   struct mm_walk *walk)
{
	struct nrst_request *req = walk->private;
	struct vm_area_struct *vma = walk->vma;
	pte_t *start_ptep, *ptep;
	spinlock_t *ptl;		/* of the page table */

	ptl = pmd_trans_huge_lock(pmd, vma);
	if (ptl) {
		nrst_pmd_is_locked(ptl);
		req->marked += nt_unmark_pmd(vma, addr & HPAGE_PMD_MASK, pmd);
		spin_unlock(ptl);
		return 0;
	}

	start_ptep = pte_offset_map_lock(walk->mm, pmd, addr, &ptl);
	if (!start_ptep) {
		walk->action = ACTION_AGAIN;
		return 0;
	}
	nrst_ptes_are_locked();
	arch_enter_lazy_mmu_mode();
	for (ptep = start_ptep; addr != end; ptep++, addr += PAGE_SIZE) {
		pte_t pte = ptep_get(ptep);

		if (!pte_present(pte) || !pte_protnone(pte))
			continue;
		nt_unmark_pte(vma, addr, ptep);
		req->marked++;
	}
	arch_leave_lazy_mmu_mode();
	pte_unmap_unlock(start_ptep, ptl);
	cond_resched();
	return 0;
}

static const struct mm_walk_ops nt_unmark_ops = {
	.pmd_entry	= nt_unmark_entry,
	.walk_lock	= PGWALK_RDLOCK,
};

/*
 * The TLB need not be flushed: a processor does not remember an entry without
 * access, and if it did, it would fault and look again.  A mapping that the
 * user has made inaccessible meanwhile has no marks any more.
 *
 * Context: mmap_lock is held for reading.
 */
void nrst_unmark(struct nrst_request *req, struct vm_area_struct *vma,
		 unsigned long start, unsigned long end)
{
	mmap_assert_locked(req->mm);
	if (vma_migratable(vma) && vma_is_accessible(vma))
		walk_page_range(req->mm, start, end, &nt_unmark_ops, req);
}
