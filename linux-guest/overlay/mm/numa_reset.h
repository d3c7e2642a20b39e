/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One reset on its way through mm/numa_reset.c (the system call),
 * mm/numa_nexttouch.c (marks and touches), mm/numa_reinterleave.c (migration by
 * policy) and mm/numa_reset_topology.c (nodes).  Locking: see mm/numa_reset.c.
 */
#ifndef _MM_NUMA_RESET_H
#define _MM_NUMA_RESET_H

#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/nodemask.h>

/**
 * struct nrst_request - a checked call of numa_reset(2)
 * @mm: the address space; a reference on mm_users is held
 * @task: leader of the process, or the caller; a reference is held
 * @flags: NRST_*
 * @granule_shift: log2 bytes of a touch's window
 * @whole: the range is the whole address space
 * @start: first address, page-aligned
 * @end: first address behind the range
 * @asked: the nodes that the caller asked for, or all there can be
 * @nodes: those of @asked that are usable now and in the cpuset of the
 *	process; not empty
 * @pol: policy of @task for mappings without their own; a reference is held;
 *	%NULL is the system's default
 * @marked: pages marked, or with NRST_CANCEL unmarked
 * @moved: pages migrated
 * @failed: pages that should have been migrated
 */
struct nrst_request {
	struct mm_struct *mm;
	struct task_struct *task;
	unsigned int flags;
	unsigned int granule_shift;
	bool whole;
	unsigned long start;
	unsigned long end;
	nodemask_t asked;
	nodemask_t nodes;
	struct mempolicy *pol;
	u64 marked;
	u64 moved;
	u64 failed;
};

static inline bool nrst_interleaves(const struct mempolicy *pol)
{
	return pol && (pol->mode == MPOL_INTERLEAVE ||
		       pol->mode == MPOL_WEIGHTED_INTERLEAVE);
}

/*
 * Tell sparse what pmd_trans_huge_lock() and pte_offset_map_lock() don't: that
 * they return with the lock held, the second also within an RCU read section.
 */
#define nrst_pmd_is_locked(ptl)		__acquire(ptl)
#define nrst_ptes_are_locked()		__acquire(RCU)

/* mm/numa_reset_topology.c */
bool nrst_version_is_current(u64 version);
/* Nodes with memory that the topology driver does not take away just now. */
void nrst_usable_nodes(nodemask_t *nodes);

/* mm/numa_nexttouch.c */
struct numa_nt *nrst_nt_get(struct mm_struct *mm);
int nrst_arm(struct nrst_request *req);
void nrst_disarm(struct nrst_request *req);
bool nrst_may_mark(struct vm_area_struct *vma);
void nrst_mark(struct nrst_request *req, struct vm_area_struct *vma,
	       unsigned long start, unsigned long end);
void nrst_unmark(struct nrst_request *req, struct vm_area_struct *vma,
		 unsigned long start, unsigned long end);

/* mm/numa_reinterleave.c */
struct nrst_batch;
struct nrst_batch *nrst_batch_new(void);
void nrst_batch_free(struct nrst_batch *batch);
struct mempolicy *nrst_interleave_policy(struct nrst_request *req,
					 struct vm_area_struct *vma);
unsigned long nrst_collect(struct nrst_request *req, struct nrst_batch *batch,
			   struct vm_area_struct *vma, unsigned long start,
			   unsigned long end);
void nrst_migrate(struct nrst_request *req, struct nrst_batch *batch);
int nrst_follow(struct nrst_request *req);

#endif /* _MM_NUMA_RESET_H */
