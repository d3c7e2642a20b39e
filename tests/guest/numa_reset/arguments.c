// SPDX-License-Identifier: GPL-2.0
/*
 * What numa_reset(2) refuses, and with which error: a table of calls, and the
 * rights it needs on another process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nrtest.h"

#define NONE	0		/* no args: NULL */
#define FULL	sizeof(struct numa_reset_args)
#define TOP	(1ULL << 47)	/* user addresses end a page below */

static const unsigned long no_node;
static const unsigned long high_node[2] = { 1, 1 };
static const unsigned long absent_node = 1UL << 63;

struct call {
	const char *name;
	unsigned int flags;
	size_t size;
	int expected;
	struct numa_reset_args args;
};

#define ARGS(...)	{ __VA_ARGS__ }

static const struct call calls[] = {
	{ "no flag", 0, NONE, -EINVAL },
	{ "unknown flag", NRST_TOUCH | 1U << 4, NONE, -EINVAL },
	{ "highest flag", NRST_TOUCH | 1U << 31, NONE, -EINVAL },
	{ "follow alone", NRST_FOLLOW, NONE, -EINVAL },
	{ "cancel and touch", NRST_CANCEL | NRST_TOUCH, NONE, -EINVAL },
	{ "cancel and policy", NRST_CANCEL | NRST_POLICY, NONE, -EINVAL },
	{ "cancel and follow", NRST_CANCEL | NRST_FOLLOW, NONE, -EINVAL },
	{ "touch, no args", NRST_TOUCH, NONE, 0 },
	{ "policy, no args", NRST_POLICY, NONE, 0 },
	{ "all that go together", NRST_TOUCH | NRST_POLICY | NRST_FOLLOW, NONE,
	  0 },
	{ "cancel, no args", NRST_CANCEL, NONE, 0 },
	{ "zero args", NRST_TOUCH, FULL, 0 },
	{ "args too short", NRST_TOUCH, FULL - 1, -EINVAL },
	{ "start not aligned", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.start = 1, .len = PAGE) },
	{ "length not aligned", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.start = PAGE, .len = PAGE + 8) },
	{ "start without length", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.start = PAGE) },
	{ "range wraps around", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.start = PAGE, .len = -PAGE) },
	{ "range ends in the kernel", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.start = PAGE, .len = TOP) },
	{ "range starts in the kernel", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.start = 0xffff888000000000, .len = PAGE) },
	{ "range up to the end", NRST_TOUCH, FULL, 0,
	  ARGS(.start = PAGE, .len = TOP - 2 * PAGE) },
	{ "range of holes", NRST_TOUCH, FULL, 0,
	  ARGS(.start = PAGE, .len = PAGE) },
	{ "granule below a page", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.granule_shift = 11) },
	{ "granule above 2 MiB", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.granule_shift = 22) },
	{ "granule beyond any shift", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.granule_shift = 1U << 31) },
	{ "smallest granule", NRST_TOUCH, FULL, 0, ARGS(.granule_shift = 12) },
	{ "largest granule", NRST_TOUCH, FULL, 0, ARGS(.granule_shift = 21) },
	{ "version without a topology", NRST_TOUCH, FULL, -ESTALE,
	  ARGS(.topo_version = 7) },
	{ "node bits without a set", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.maxnode = 64) },
	{ "node set without bits", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.nodes_ptr = (uintptr_t)&high_node) },
	{ "node set of a gigabit", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.nodes_ptr = (uintptr_t)&high_node, .maxnode = 1U << 30) },
	{ "empty node set", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.nodes_ptr = (uintptr_t)&no_node, .maxnode = 64) },
	{ "node set with an impossible node", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.nodes_ptr = (uintptr_t)&high_node, .maxnode = 128) },
	{ "the same, cut before that node", NRST_TOUCH, FULL, 0,
	  ARGS(.nodes_ptr = (uintptr_t)&high_node, .maxnode = 64) },
	{ "node set of absent nodes", NRST_TOUCH, FULL, -EINVAL,
	  ARGS(.nodes_ptr = (uintptr_t)&absent_node, .maxnode = 64) },
	{ "node set with policy alone", NRST_POLICY, FULL, -EINVAL,
	  ARGS(.nodes_ptr = (uintptr_t)&high_node, .maxnode = 64) },
	{ "node set with cancel", NRST_CANCEL, FULL, -EINVAL,
	  ARGS(.nodes_ptr = (uintptr_t)&high_node, .maxnode = 64) },
	{ "node set in the kernel", NRST_TOUCH, FULL, -EFAULT,
	  ARGS(.nodes_ptr = 0xffff888000000000, .maxnode = 64) },
	{ "node set nowhere", NRST_TOUCH, FULL, -EFAULT,
	  ARGS(.nodes_ptr = 8, .maxnode = 64) },
};

static void table(void)
{
	size_t i;

	for (i = 0; i < COUNT(calls); i++) {
		struct numa_reset_args args = calls[i].args;
		int err = numa_reset(-1, calls[i].size ? &args : NULL,
				     calls[i].size, calls[i].flags);

		ok(err == calls[i].expected, calls[i].name, "%d, expected %d",
		   err, calls[i].expected);
	}
	numa_reset(-1, NULL, 0, NRST_CANCEL);
}

/* Sizes and addresses of the structure itself, as for clone3(2). */
static void structure(void)
{
	struct {
		struct numa_reset_args args;
		char later[64];
	} grown = { 0 };
	void *readonly = mmap(NULL, PAGE, PROT_READ,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char large[PAGE + 8];

	ok(!numa_reset(-1, &grown.args, sizeof(grown), NRST_POLICY),
	   "a later, longer structure with zeros");
	grown.later[60] = 1;
	ok(numa_reset(-1, &grown.args, sizeof(grown), NRST_POLICY) == -E2BIG,
	   "a later, longer structure with something unknown");
	ok(numa_reset(-1, (void *)large, sizeof(large), NRST_POLICY) == -E2BIG,
	   "a structure of more than a page");
	ok(numa_reset(-1, NULL, FULL, NRST_POLICY) == -EINVAL,
	   "a size without a structure");
	ok(numa_reset(-1, (void *)8, FULL, NRST_POLICY) == -EFAULT,
	   "a structure nowhere");
	ok(numa_reset(-1, (void *)0xffff888000000000, FULL, NRST_POLICY) ==
	   -EFAULT, "a structure in the kernel");
	ok(numa_reset(-1, readonly, FULL, NRST_POLICY) == -EFAULT,
	   "a structure that cannot be written");
	munmap(readonly, PAGE);
}

/* The results come last: what they are about has been done. */
static void results_nowhere(void)
{
	struct numa_reset_args *args = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *mem = memory_on(mem_node[0], HUGE, SMALL_PAGES);
	int err;

	args->start = (uintptr_t)mem;
	args->len = HUGE;
	mprotect(args, PAGE, PROT_READ);
	err = numa_reset(-1, args, FULL, NRST_TOUCH);
	run_on_node(mem_node[1]);
	touch(mem, HUGE);
	ok(err == -EFAULT &&
	   pages_on(mem, HUGE, mem_node[1]) == HUGE / PAGE,
	   "results that cannot be written: the reset has been done", "%d",
	   err);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
	munmap(mem, HUGE);
	munmap(args, PAGE);
}

static int pidfd_open(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

/* In a child that has given up what @give_up says; its errno comes back. */
static int refused_to(void (*give_up)(void), int pidfd)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		give_up();
		_exit(-numa_reset(pidfd, NULL, 0, NRST_TOUCH));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -1000;
}

static void become_nobody(void)
{
	if (setgid(65534) || setuid(65534))
		_exit(200);
}

static void keep_everything(void)
{
}

static void other_processes(void)
{
	int self = pidfd_open(getpid()), file = open("/proc/self/stat", 0);
	int pidfd, gone, err;
	pid_t pid;

	ok(!numa_reset(self, NULL, 0, NRST_TOUCH), "own process by pidfd");
	ok(numa_reset(file, NULL, 0, NRST_TOUCH) == -EBADF,
	   "a descriptor that is no pidfd");
	ok(numa_reset(-2, NULL, 0, NRST_TOUCH) == -EBADF, "descriptor -2");
	ok(numa_reset(1 << 20, NULL, 0, NRST_TOUCH) == -EBADF,
	   "a descriptor that is not open");

	err = refused_to(keep_everything, self);
	ok(err == 0, "another process, by root", "%d", err);
	err = refused_to(become_nobody, self);
	ok(err == -EPERM, "another user's process", "%d", err);

	/* Of the same user, but without CAP_SYS_NICE. */
	pid = fork();
	if (!pid) {
		become_nobody();
		prctl(PR_SET_DUMPABLE, 1);
		pause();
		_exit(0);
	}
	pidfd = pidfd_open(pid);
	usleep(200000);
	err = refused_to(become_nobody, pidfd);
	ok(err == -EPERM, "own other process, without CAP_SYS_NICE", "%d", err);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	gone = numa_reset(pidfd, NULL, 0, NRST_TOUCH);
	ok(gone == -ESRCH, "a process that has gone", "%d", gone);

	err = refused_to(become_nobody, -1);
	ok(err == 0, "oneself, without any right", "%d", err);

	/* Kernel threads have no memory. */
	pidfd = pidfd_open(2);
	err = numa_reset(pidfd, NULL, 0, NRST_TOUCH);
	ok(err == -ESRCH, "a kernel thread", "%d", err);
}

int main(void)
{
	machine_init();
	table();
	structure();
	results_nowhere();
	other_processes();
	return tap_end();
}
