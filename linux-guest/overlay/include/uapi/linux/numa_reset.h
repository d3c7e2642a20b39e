/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * numa_reset(2): let the memory of a process follow its threads after the
 * NUMA topology has changed.
 *
 *	long numa_reset(int pidfd, struct numa_reset_args *args, size_t size,
 *			unsigned int flags);
 *
 * @pidfd: the process, or -1 for the caller.  Another process needs
 *	PTRACE_MODE_READ_REALCREDS and CAP_SYS_NICE.
 * @args: may be NULL, with @size 0: the whole address space, every default.
 * @size: sizeof(struct numa_reset_args); extended as clone3(2) is.
 * @flags: NRST_*; either NRST_CANCEL alone, or NRST_TOUCH, NRST_POLICY or
 *	both, with NRST_FOLLOW at will.
 *
 * Returns 0, or -1 with errno:
 *	E2BIG	args has set bytes that this kernel does not know
 *	EBADF	pidfd is no pidfd
 *	EBUSY	NRST_TOUCH of a range while marks with another granule or
 *		node set are in force
 *	EFAULT	args or *nodes_ptr cannot be read, or args not written
 *	EINTR	a fatal signal; what was marked stays marked
 *	EINVAL	unknown flag, unaligned range, bad node set, bad granule
 *	ENOMEM	no kernel memory
 *	EPERM	another process, without the right to move its memory
 *	ESRCH	the process has gone
 *	ESTALE	topo_version is not the current version of the topology page
 *
 * The number of the system call is read from the topology page
 * (<xen/topology.h>, reset_nr), never assumed.
 */
#ifndef _UAPI_LINUX_NUMA_RESET_H
#define _UAPI_LINUX_NUMA_RESET_H

#include <linux/types.h>

/* Next touch: each page moves to the node of the thread that touches it. */
#define NRST_TOUCH	(1U << 0)
/* Re-interleave: pages under an interleave policy move now, without faults. */
#define NRST_POLICY	(1U << 1)
/*
 * Interleave policies follow the nodes in use now (or @nodes_ptr): those set to
 * all nodes that there were take all, others only nodes that the user named.
 */
#define NRST_FOLLOW	(1U << 2)
/* Forget marks that no touch has consumed. */
#define NRST_CANCEL	(1U << 3)

struct numa_reset_args {
	__u64 start;		/* in: page-aligned; with len 0: everything */
	__u64 len;		/* in: bytes, page-aligned */
	__u64 topo_version;	/* in: version expected, 0: any */
	__u32 granule_shift;	/* in: log2 bytes moved by a touch, 12..21; 0: 16 */
	__u32 maxnode;		/* in: bits in *nodes_ptr */
	__u64 nodes_ptr;	/* in: unsigned long *, NULL: all usable nodes */
	__u64 marked;		/* out: pages marked, with NRST_CANCEL unmarked */
	__u64 moved;		/* out: pages moved before the return */
	__u64 failed;		/* out: pages that could not be moved */
	__u64 ns;		/* out: time taken, nanoseconds */
};

#define NUMA_RESET_ARGS_SIZE_VER0	72

#endif /* _UAPI_LINUX_NUMA_RESET_H */
