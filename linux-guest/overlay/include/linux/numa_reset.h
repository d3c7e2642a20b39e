/* SPDX-License-Identifier: GPL-2.0 */
/*
 * numa_reset(2) inside the kernel: what the fault path, the scheduler, the
 * topology driver and the life of an mm need to know of it.
 *
 * The system call is described in <uapi/linux/numa_reset.h>, the locking in
 * mm/numa_reset.c.
 */
#ifndef _LINUX_NUMA_RESET_H
#define _LINUX_NUMA_RESET_H

#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <uapi/linux/numa_reset.h>

struct mempolicy;
struct vm_fault;

#ifdef CONFIG_NUMA
/* Lives in mm/mempolicy.c. */
nodemask_t *policy_nodemask(gfp_t gfp, struct mempolicy *pol, pgoff_t ilx,
			    int *nid);
#endif

#ifdef CONFIG_NUMA_RESET

#include <asm/unistd.h>

/* For the topology page, which tells user space. */
#define NUMA_RESET_NR	__NR_numa_reset

/*
 * Next touch of one address space.  Made by the first NRST_TOUCH, freed with
 * the mm, never inherited by fork.
 *
 * @lock: serialises the resets of the mm; outside mmap_lock
 * @armed: a NUMA hinting fault means "move to the toucher"; automatic
 *	balancing keeps away from the mm.  Written under @lock, read anywhere.
 * @since: when the last NRST_TOUCH began, in jiffies.  Under @lock.
 * @granule_shift: log2 of the aligned window that one touch moves, in bytes
 * @nodes: where a touch may move pages to.  Written under @lock, read
 *	bit by bit without.
 */
struct numa_nt {
	struct mutex lock;	/* one reset at a time */
	bool armed;
	u8 granule_shift;
	unsigned long since;
	nodemask_t nodes;
};

/**
 * numa_nt_active - is the mm under next touch?
 * @mm: any mm that cannot go away
 *
 * Context: any.
 */
static inline bool numa_nt_active(const struct mm_struct *mm)
{
	const struct numa_nt *nt = READ_ONCE(mm->nt);

	return nt && READ_ONCE(nt->armed);
}

static inline void numa_nt_init(struct mm_struct *mm)
{
	mm->nt = NULL;
}

void numa_nt_free(struct mm_struct *mm);
bool numa_nt_expire(struct mm_struct *mm, unsigned int ms);
bool numa_nt_displaced(struct vm_area_struct *vma, struct folio *from);
int numa_nt_target(struct folio *folio, struct vm_fault *vmf,
		   unsigned long addr);
void numa_nt_gather(struct vm_area_struct *vma, struct folio *folio, int nid,
		    struct list_head *list);

void numa_reset_note_policy(struct mempolicy *pol, const nodemask_t *named,
			    const nodemask_t *all);
bool numa_reset_same_policy(const struct mempolicy *a,
			    const struct mempolicy *b);

long numa_reset_ioctl(void __user *uargs);
void numa_reset_set_topology(u64 version, const nodemask_t *usable);

#else /* !CONFIG_NUMA_RESET */

#define NUMA_RESET_NR	0

static inline bool numa_nt_active(const struct mm_struct *mm)
{
	return false;
}

static inline void numa_nt_init(struct mm_struct *mm) { }
static inline void numa_nt_free(struct mm_struct *mm) { }

static inline bool numa_nt_expire(struct mm_struct *mm, unsigned int ms)
{
	return true;
}

static inline bool numa_nt_displaced(struct vm_area_struct *vma,
				     struct folio *from)
{
	return false;
}

static inline int numa_nt_target(struct folio *folio, struct vm_fault *vmf,
				 unsigned long addr)
{
	return NUMA_NO_NODE;
}

static inline void numa_nt_gather(struct vm_area_struct *vma,
				  struct folio *folio, int nid,
				  struct list_head *list) { }

static inline void numa_reset_note_policy(struct mempolicy *pol,
					  const nodemask_t *named,
					  const nodemask_t *all) { }

static inline bool numa_reset_same_policy(const struct mempolicy *a,
					  const struct mempolicy *b)
{
	return true;
}

static inline long numa_reset_ioctl(void __user *uargs)
{
	return -EOPNOTSUPP;
}

static inline void numa_reset_set_topology(u64 version,
					   const nodemask_t *usable) { }

#endif /* CONFIG_NUMA_RESET */

#endif /* _LINUX_NUMA_RESET_H */
