/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arithmetic of numa_reset(2) without any state: which arguments are valid,
 * and which window of memory a touch moves.  No locks, no allocation, no
 * kernel types beyond the fixed-width ones, so that tests/unit/linux_reset
 * compiles this file in user space.
 */
#ifndef _MM_NUMA_RESET_CHECK_H
#define _MM_NUMA_RESET_CHECK_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/types.h>
#endif
#include <linux/numa_reset.h>

#define NRST_FLAGS	(NRST_TOUCH | NRST_POLICY | NRST_FOLLOW | NRST_CANCEL)

#define NRST_PAGE_SHIFT		12	/* x86-64 */
#define NRST_GRANULE_MIN	12	/* 4 KiB, one page */
#define NRST_GRANULE_MAX	21	/* 2 MiB, one page table */
#define NRST_GRANULE_DEFAULT	16	/* 64 KiB */

/* Bits of a node set that user space may pass: one page of them. */
#define NRST_MAXNODE		(8U << NRST_PAGE_SHIFT)

/* The half-open range [start, end) of addresses. */
struct nrst_range {
	__u64 start;
	__u64 end;
};

/* 0, or -EINVAL for a combination that means nothing. */
static inline int nrst_check_flags(unsigned int flags)
{
	if (flags & ~NRST_FLAGS)
		return -EINVAL;
	if (flags & NRST_CANCEL)
		return flags == NRST_CANCEL ? 0 : -EINVAL;
	return flags & (NRST_TOUCH | NRST_POLICY) ? 0 : -EINVAL;
}

/*
 * The range that @start and @len mean in an address space of @task_size
 * bytes.  A length of 0 means everything, and only with a start of 0: a
 * computed length that came out as 0 must not reset the whole process.
 * 0, or -EINVAL.
 */
static inline int nrst_check_range(__u64 start, __u64 len, __u64 task_size,
				   struct nrst_range *range)
{
	const __u64 in_page = (1ULL << NRST_PAGE_SHIFT) - 1;

	if ((start | len) & in_page)
		return -EINVAL;
	if (!len) {
		range->start = 0;
		range->end = task_size;
		return start ? -EINVAL : 0;
	}
	if (start >= task_size || len > task_size - start)
		return -EINVAL;
	range->start = start;
	range->end = start + len;
	return 0;
}

/* The granule to use, or -EINVAL. */
static inline int nrst_check_granule(__u32 shift)
{
	if (!shift)
		return NRST_GRANULE_DEFAULT;
	if (shift < NRST_GRANULE_MIN || shift > NRST_GRANULE_MAX)
		return -EINVAL;
	return (int)shift;
}

/*
 * A node set comes as pointer and length, both or neither, and only where it
 * has a meaning: as the targets of touches, or as the set to follow.
 * 0, or -EINVAL.
 */
static inline int nrst_check_nodes(__u64 nodes_ptr, __u32 maxnode,
				   unsigned int flags)
{
	if (!nodes_ptr)
		return maxnode ? -EINVAL : 0;
	if (!maxnode || maxnode > NRST_MAXNODE)
		return -EINVAL;
	return flags & (NRST_TOUCH | NRST_FOLLOW) ? 0 : -EINVAL;
}

/*
 * The window that a touch of @addr moves: aligned to the granule, cut to the
 * mapping [@vm_start, @vm_end) that holds @addr.  As the granule is at most
 * 2 MiB, a window never crosses a page table.
 */
static inline struct nrst_range nrst_window(__u64 addr, unsigned int shift,
					    __u64 vm_start, __u64 vm_end)
{
	const __u64 size = 1ULL << shift;
	struct nrst_range window = {
		.start = addr & ~(size - 1),
	};

	/* By length: the last window of the address space may end at 2^64. */
	window.end = vm_end - window.start > size ? window.start + size : vm_end;
	if (window.start < vm_start)
		window.start = vm_start;
	return window;
}

#endif /* _MM_NUMA_RESET_CHECK_H */
