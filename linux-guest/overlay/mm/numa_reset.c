// SPDX-License-Identifier: GPL-2.0
/*
 * numa_reset(2): let the memory of a process follow its threads after the
 * NUMA topology has changed.
 *
 * This file checks the call, finds the process and walks its mappings; what
 * happens to a mapping is in mm/numa_nexttouch.c and mm/numa_reinterleave.c,
 * and which nodes there are in mm/numa_reset_topology.c, below all three.
 *
 * Locking, outermost first:
 *
 *	mm->nt->lock (mutex)	one reset of an mm at a time
 *	  lru_cache_disable()	NRST_POLICY only, around the whole walk
 *	    mmap_lock, write	NRST_FOLLOW: policies of mappings
 *	      VMA lock, write
 *	    mmap_lock, read	marking, unmarking, collecting; dropped at the
 *				latest every GiB of a mapping, and always
 *				before pages are migrated
 *	      page table lock
 *		lruvec lock	isolating folios
 *	    task_lock		NRST_FOLLOW: policies of threads, under RCU
 *	      mems_allowed_seq
 *
 * A touch comes through a page fault with mmap_lock or the VMA's lock held for
 * reading and takes the page table lock; it never takes mm->nt->lock, so a
 * reset may run while the process does.  nrst_topology_lock, of
 * mm/numa_reset_topology.c, is innermost and nests in nothing.
 */
#include <linux/cpuset.h>
#include <linux/ktime.h>
#include <linux/mmap_lock.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/security.h>
#include <linux/sizes.h>
#include <linux/swap.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>

#include "internal.h"
#include "numa_reset.h"
#include "numa_reset_check.h"

/* Of a mapping that is looked at without letting go of mmap_lock, in bytes. */
#define NRST_CHUNK	SZ_1G

static_assert(NRST_PAGE_SHIFT == PAGE_SHIFT);
static_assert(NRST_GRANULE_MAX <= PMD_SHIFT);
static_assert(sizeof(struct numa_reset_args) == NUMA_RESET_ARGS_SIZE_VER0);

/* --- Arguments -------------------------------------------------------------- */

/*
 * The node set of the caller: @args->maxnode bits, of which those behind
 * MAX_NUMNODES must be clear.
 */
static int nrst_copy_nodes(const struct numa_reset_args *args,
			   nodemask_t *nodes)
{
	const unsigned long __user *from = u64_to_user_ptr(args->nodes_ptr);
	unsigned int base;

	if (!args->nodes_ptr) {
		nodes_setall(*nodes);
		return 0;
	}

	nodes_clear(*nodes);
	for (base = 0; base < args->maxnode; base += BITS_PER_LONG) {
		unsigned int bits = min_t(unsigned int, BITS_PER_LONG,
					  args->maxnode - base);
		unsigned long word;
		unsigned int bit;

		if (get_user(word, from + base / BITS_PER_LONG))
			return -EFAULT;
		for_each_set_bit(bit, &word, bits) {
			if (base + bit >= MAX_NUMNODES)
				return -EINVAL;
			node_set(base + bit, *nodes);
		}
	}
	return 0;
}

/* Everything about the arguments that needs no look at the process. */
static int nrst_check_args(const struct numa_reset_args *args,
			   struct nrst_request *req)
{
	int granule = nrst_check_granule(args->granule_shift);
	int err;

	if (granule < 0)
		return granule;
	req->granule_shift = granule;

	err = nrst_check_nodes(args->nodes_ptr, args->maxnode, req->flags);
	if (err)
		return err;
	err = nrst_copy_nodes(args, &req->asked);
	if (err)
		return err;

	if (args->topo_version && !nrst_version_is_current(args->topo_version))
		return -ESTALE;
	return 0;
}

/* What of the arguments depends on the process. */
static int nrst_check_target(const struct numa_reset_args *args,
			     struct nrst_request *req)
{
	nodemask_t allowed = cpuset_mems_allowed(req->task);
	struct nrst_range range;
	int err;

	err = nrst_check_range(args->start, args->len, req->mm->task_size,
			       &range);
	if (err)
		return err;
	req->whole = !args->len;
	req->start = range.start;
	req->end = range.end;

	nrst_usable_nodes(&req->nodes);
	nodes_and(req->nodes, req->nodes, req->asked);
	nodes_and(req->nodes, req->nodes, allowed);
	/* A mark is taken away wherever its page is. */
	if (nodes_empty(req->nodes) && !(req->flags & NRST_CANCEL))
		return -EINVAL;
	return 0;
}

/* --- The process ------------------------------------------------------------ */

/* Moving the memory of others needs the rights of move_pages(2). */
static int nrst_may_move(struct task_struct *task, struct mm_struct *mm)
{
	if (mm == current->mm)
		return 0;
	if (!capable(CAP_SYS_NICE))
		return -EPERM;
	return security_task_movememory(task);
}

/*
 * Find the process and take the references that nrst_put_target() drops.
 * 0, -EBADF, -ESRCH, -EPERM or -EINTR.
 */
static int nrst_get_target(int pidfd, struct nrst_request *req)
{
	unsigned int pidfd_flags;
	int err;

	if (pidfd == -1) {
		req->task = get_task_struct(current);
		req->mm = current->mm;
		mmget(req->mm);
		return 0;
	}

	req->task = pidfd_get_task(pidfd, &pidfd_flags);
	if (IS_ERR(req->task))
		return PTR_ERR(req->task);

	req->mm = mm_access(req->task, PTRACE_MODE_READ_REALCREDS);
	if (IS_ERR(req->mm)) {
		err = PTR_ERR(req->mm);
		if (err == -EACCES)
			err = -EPERM;
		goto put_task;
	}

	err = nrst_may_move(req->task, req->mm);
	if (!err)
		return 0;

	mmput(req->mm);
put_task:
	put_task_struct(req->task);
	return err;
}

static void nrst_put_target(struct nrst_request *req)
{
	mmput(req->mm);
	put_task_struct(req->task);
}

/* --- The walk ---------------------------------------------------------------- */

/*
 * Is it still worth it?  When the process has exited, the reference of this
 * call is what keeps its memory.
 */
static int nrst_go_on(struct nrst_request *req)
{
	if (fatal_signal_pending(current))
		return -EINTR;
	if (req->mm != current->mm && atomic_read(&req->mm->mm_users) == 1)
		return -ESRCH;
	return 0;
}

/*
 * One piece of one mapping; returns the address to go on from.
 *
 * Context: mmap_lock is held for reading.
 */
static unsigned long nrst_step(struct nrst_request *req,
			       struct nrst_batch *batch, unsigned long addr)
{
	struct vm_area_struct *vma = find_vma(req->mm, addr);
	unsigned long end;

	if (!vma || vma->vm_start >= req->end)
		return req->end;

	addr = max(addr, vma->vm_start);
	end = min3(vma->vm_end, req->end, ALIGN(addr + 1, NRST_CHUNK));

	if (req->flags & NRST_CANCEL)
		nrst_unmark(req, vma, addr, end);
	else if (batch && nrst_interleave_policy(req, vma))
		return nrst_collect(req, batch, vma, addr, end);
	else if ((req->flags & NRST_TOUCH) && nrst_may_mark(vma))
		nrst_mark(req, vma, addr, end);
	return end;
}

static int nrst_walk(struct nrst_request *req, struct nrst_batch *batch)
{
	unsigned long addr = req->start;

	while (addr < req->end) {
		int err = nrst_go_on(req);

		if (err)
			return err;
		if (mmap_read_lock_killable(req->mm))
			return -EINTR;
		addr = nrst_step(req, batch, addr);
		mmap_read_unlock(req->mm);

		if (batch)
			nrst_migrate(req, batch);
		cond_resched();
	}
	return 0;
}

/*
 * Pages in the per-CPU queues before the LRU lists cannot be isolated: a
 * touch would find them unmovable and use up their mark.
 */
static int nrst_walk_drained(struct nrst_request *req)
{
	struct nrst_batch *batch;
	int err;

	if (!(req->flags & NRST_POLICY)) {
		if (req->flags & NRST_TOUCH)
			lru_add_drain_all();
		return nrst_walk(req, NULL);
	}

	batch = nrst_batch_new();
	if (!batch)
		return -ENOMEM;
	lru_cache_disable();
	err = nrst_walk(req, batch);
	lru_cache_enable();
	nrst_batch_free(batch);
	return err;
}

static int nrst_run_locked(struct nrst_request *req)
{
	int err;

	if (req->flags & NRST_TOUCH) {
		err = nrst_arm(req);
		if (err)
			return err;
	}
	if (req->flags & NRST_FOLLOW) {
		err = nrst_follow(req);
		if (err)
			return err;
	}

	err = nrst_walk_drained(req);

	if (!err && (req->flags & NRST_CANCEL) && req->whole)
		nrst_disarm(req);
	return err;
}

static int nrst_run(struct nrst_request *req)
{
	struct numa_nt *nt = nrst_nt_get(req->mm);
	int err;

	if (!nt)
		return -ENOMEM;
	if (mutex_lock_killable(&nt->lock))
		return -EINTR;

	task_lock(req->task);
	req->pol = req->task->mempolicy;
	mpol_get(req->pol);
	task_unlock(req->task);

	err = nrst_run_locked(req);

	mpol_put(req->pol);
	mutex_unlock(&nt->lock);
	return err;
}

/* --- The call ----------------------------------------------------------------- */

static int nrst_copy_results(struct numa_reset_args __user *uargs,
			     const struct nrst_request *req, u64 ns)
{
	if (put_user(req->marked, &uargs->marked) ||
	    put_user(req->moved, &uargs->moved) ||
	    put_user(req->failed, &uargs->failed) ||
	    put_user(ns, &uargs->ns))
		return -EFAULT;
	return 0;
}

static int nrst_copy_args(struct numa_reset_args *args,
			  struct numa_reset_args __user *uargs, size_t size)
{
	memset(args, 0, sizeof(*args));
	if (!uargs)
		return size ? -EINVAL : 0;
	if (size < NUMA_RESET_ARGS_SIZE_VER0)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(args, sizeof(*args), uargs, size);
}

static long nrst_call(int pidfd, struct numa_reset_args __user *uargs,
		      size_t size, unsigned int flags)
{
	struct nrst_request req = { .flags = flags };
	u64 begin = ktime_get_ns();
	struct numa_reset_args args;
	int err;

	err = nrst_check_flags(flags);
	if (!err)
		err = nrst_copy_args(&args, uargs, size);
	if (!err)
		err = nrst_check_args(&args, &req);
	if (!err)
		err = nrst_get_target(pidfd, &req);
	if (err)
		return err;

	err = nrst_check_target(&args, &req);
	if (!err)
		err = nrst_run(&req);
	nrst_put_target(&req);

	if (!err && uargs)
		err = nrst_copy_results(uargs, &req, ktime_get_ns() - begin);
	return err;
}

SYSCALL_DEFINE4(numa_reset, int, pidfd, struct numa_reset_args __user *, uargs,
		size_t, size, unsigned int, flags)
{
	return nrst_call(pidfd, uargs, size, flags);
}

/**
 * numa_reset_ioctl - XTOPO_RESET of the topology device
 * @uargs: a struct numa_reset_args of the calling process, or %NULL
 *
 * What a runtime wants after a change: interleave policies take the nodes in
 * use, their pages move now, all others with the next touch.
 *
 * Context: process, in a system call; may sleep; no lock held.
 * Return: 0, or an error of numa_reset(2).
 */
long numa_reset_ioctl(void __user *uargs)
{
	return nrst_call(-1, uargs, uargs ? NUMA_RESET_ARGS_SIZE_VER0 : 0,
			 NRST_TOUCH | NRST_POLICY | NRST_FOLLOW);
}
EXPORT_SYMBOL_GPL(numa_reset_ioctl);
