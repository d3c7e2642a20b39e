/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/xen/topology: the NUMA topology of an elastic Xen guest, as one page.
 *
 * The kernel maps the same read-only page into every process that asks for
 * it.  A runtime compares one 64-bit word, @version, with the value that it
 * saw last; only when they differ does it copy the page, under @seq.
 *
 * This header is contract 2 of the project: the kernel, libgomp, the tests
 * and every tool include this file and no copy of it.
 *
 * Reading a consistent copy:
 *
 *	do {
 *		while ((s = load_acquire(&page->seq)) & 1)
 *			;
 *		copy = *page;
 *		fence(acquire);
 *	} while (load_relaxed(&page->seq) != s);
 *
 * The writer makes @seq odd, writes, makes @seq even, and stores @version
 * last with release semantics: who sees a new @version sees the page that
 * belongs to it, or a newer one.
 */
#ifndef _UAPI_XEN_TOPOLOGY_H
#define _UAPI_XEN_TOPOLOGY_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/ioctl.h>
#else
#include <sys/ioctl.h>
#endif

#define XTOPO_DEVICE		"/dev/xen/topology"
#define XTOPO_MAGIC		0x3130304f504f5458ULL	/* "XTOPO001" */
#define XTOPO_ABI		1
#define XTOPO_PAGE_SIZE		4096

#define XTOPO_MAX_NODES		64
#define XTOPO_MAX_NODES_MASK	128	/* bits in a node mask */
#define XTOPO_MAX_CPUS		4096	/* bits in the CPU mask */
#define XTOPO_MAX_CPU_NODE	2048	/* CPUs whose node is listed */
#define XTOPO_NO_NODE		0xff	/* in cpu_node[]: no such CPU */

enum xtopo_phase {
	XTOPO_STABLE	= 0,	/* no change under way */
	XTOPO_GROWING	= 1,	/* a node is being added: not usable yet */
	XTOPO_DRAINING	= 2,	/* a node is about to leave: stop using it */
};

struct xtopo_page {
	__u64 magic;			/* XTOPO_MAGIC */
	__u64 version;			/* counts changes, from 1; stored last */
	__u32 seq;			/* odd while the page is being written */
	__u32 phase;			/* enum xtopo_phase */
	__u32 nr_cpus_possible;		/* CPU numbers are below this */
	__u32 nr_nodes_possible;	/* node numbers are below this */
	__s32 reset_nr;			/* numa_reset(2); 0: use XTOPO_RESET */
	__u32 abi;			/* XTOPO_ABI */
	__u64 nodes_online[2];		/* nodes that have memory or CPUs */
	__u64 nodes_draining[2];	/* subset of nodes_online */
	__u64 cpus_usable[64];		/* online, and not on a draining node */
	__u32 node_mem_mb[64];		/* memory present on a node, MiB */
	__u16 node_bw[64];		/* relative bandwidth, 0: not known */
	__u8  cpu_node[2048];		/* node of a CPU, or XTOPO_NO_NODE */
};

/*
 * ioctls of /dev/xen/topology.
 *
 * XTOPO_REGISTER: this process promises to acknowledge.  A removal waits for
 *	it, up to the grace period, before memory of the node is taken away.
 *	The promise belongs to the open file and ends when it is closed.
 *	Returns 0.  -EBUSY: registered through this file already.
 * XTOPO_REGISTER_RUNNING: the same promise from a runtime that follows when it
 *	starts work, not when it is told.  A removal does not wait for it while
 *	all threads of the process that registered sleep or are stopped, and
 *	when a removal has waited for it in vain, the promise has ended.
 *	-EBUSY also where the process has made it through another file.
 * XTOPO_ACK: the version, by value, up to which this process has followed.
 *	Returns 0.  -EINVAL: a version that does not exist yet; -ENOTCONN: not
 *	registered.
 * XTOPO_RESET: numa_reset(2) on the calling process, for a libc or a seccomp
 *	filter that cannot pass an unknown system call, with the flags
 *	NRST_TOUCH | NRST_POLICY | NRST_FOLLOW; the argument points to a struct
 *	numa_reset_args of <linux/numa_reset.h>, or is NULL.  Returns what
 *	numa_reset(2) returns.
 *
 * poll() raises POLLPRI when there is a version that the file does not know: a
 * registered one has not acknowledged it, another has not been told of it by
 * poll() before.  epoll_ctl(2) polls, too: who is not registered reads the
 * version after EPOLL_CTL_ADD and is told of what comes then.
 * poll(2) of an epoll instance polls as well, and leaves epoll_wait(2) nothing:
 * wait in epoll_wait(2) itself.
 */
struct numa_reset_args;
#define XTOPO_IOC_TYPE		0xe4
#define XTOPO_REGISTER		_IO(XTOPO_IOC_TYPE, 1)
#define XTOPO_ACK		_IO(XTOPO_IOC_TYPE, 2)
#define XTOPO_RESET		_IO(XTOPO_IOC_TYPE, 3)
#define XTOPO_REGISTER_RUNNING	_IO(XTOPO_IOC_TYPE, 4)

#ifdef __KERNEL__
#define XTOPO_ASSERT(e)		_Static_assert(e, #e)
#elif defined(__cplusplus)
#define XTOPO_ASSERT(e)		static_assert(e, #e)
#else
#define XTOPO_ASSERT(e)		_Static_assert(e, #e)
#endif

#define XTOPO_OFFSET(field, at) \
	XTOPO_ASSERT(__builtin_offsetof(struct xtopo_page, field) == (at))

XTOPO_OFFSET(magic, 0);
XTOPO_OFFSET(version, 8);
XTOPO_OFFSET(seq, 16);
XTOPO_OFFSET(phase, 20);
XTOPO_OFFSET(nr_cpus_possible, 24);
XTOPO_OFFSET(nr_nodes_possible, 28);
XTOPO_OFFSET(reset_nr, 32);
XTOPO_OFFSET(abi, 36);
XTOPO_OFFSET(nodes_online, 40);
XTOPO_OFFSET(nodes_draining, 56);
XTOPO_OFFSET(cpus_usable, 72);
XTOPO_OFFSET(node_mem_mb, 584);
XTOPO_OFFSET(node_bw, 840);
XTOPO_OFFSET(cpu_node, 968);
XTOPO_ASSERT(sizeof(struct xtopo_page) == 3016);
XTOPO_ASSERT(sizeof(struct xtopo_page) <= XTOPO_PAGE_SIZE);

#endif /* _UAPI_XEN_TOPOLOGY_H */
