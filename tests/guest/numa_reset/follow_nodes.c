// SPDX-License-Identifier: GPL-2.0
/*
 * NRST_FOLLOW: interleave policies of all mappings and all threads take the
 * nodes in use, and so grow back after the cpuset has made them shrink.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nrtest.h"

#define LEN	(2UL << 20)

static unsigned long all_nodes(void)
{
	unsigned long mask = 0;
	int i;

	for (i = 0; i < nr_mem_nodes; i++)
		mask |= 1UL << mem_node[i];
	return mask;
}

static int follow(unsigned long nodes)
{
	struct numa_reset_args args = {
		.nodes_ptr = nodes ? (uintptr_t)&nodes : 0,
		.maxnode = nodes ? 64 : 0,
	};

	return numa_reset(-1, &args, sizeof(args), NRST_POLICY | NRST_FOLLOW);
}

/* --- Another thread, with a policy of its own -------------------------------- */

struct other {
	pthread_barrier_t turn;
	unsigned long before;
	unsigned long after;
};

static void *other_thread(void *arg)
{
	struct other *other = arg;

	set_policy(MPOL_INTERLEAVE, 1UL << mem_node[0]);
	other->before = policy_nodes(NULL, NULL);
	pthread_barrier_wait(&other->turn);
	pthread_barrier_wait(&other->turn);
	other->after = policy_nodes(NULL, NULL);
	return NULL;
}

static void mappings_and_threads(void)
{
	unsigned long first = 1UL << mem_node[0];
	char *spread = memory_on(mem_node[0], LEN, SMALL_PAGES);
	char *bound = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct other other;
	pthread_t thread;
	size_t n;
	int err;

	bind_range(spread, LEN, MPOL_INTERLEAVE, first);
	bind_range(bound, LEN, MPOL_BIND, first);
	set_policy(MPOL_INTERLEAVE, first);
	pthread_barrier_init(&other.turn, NULL, 2);
	pthread_create(&thread, NULL, other_thread, &other);
	pthread_barrier_wait(&other.turn);

	err = follow(0);
	pthread_barrier_wait(&other.turn);
	pthread_join(thread, NULL);

	ok(!err && policy_nodes(spread, NULL) == all_nodes(),
	   "the policy of a mapping takes all nodes", "error %d, 0x%lx", err,
	   policy_nodes(spread, NULL));
	ok(policy_nodes(NULL, NULL) == all_nodes(),
	   "the policy of the caller takes all nodes");
	ok(other.before == first && other.after == all_nodes(),
	   "the policy of another thread takes all nodes", "0x%lx, 0x%lx",
	   other.before, other.after);
	ok(policy_nodes(bound, NULL) == first,
	   "a bind policy does not follow");
	n = pages_on(spread, LEN, mem_node[1]);
	ok(n >= LEN / PAGE / nr_mem_nodes &&
	   n <= LEN / PAGE / nr_mem_nodes + 1,
	   "and the pages follow the policy", "%zu of %lu", n, LEN / PAGE);

	err = follow(first);
	ok(!err && policy_nodes(spread, NULL) == first &&
	   policy_nodes(NULL, NULL) == first &&
	   pages_on(spread, LEN, mem_node[0]) == LEN / PAGE,
	   "back to one node, by the caller's set", "error %d", err);
	set_policy(MPOL_DEFAULT, 0);
	munmap(spread, LEN);
	munmap(bound, LEN);
}

/* A range: its mappings follow, others and the threads do not. */
static void range_only(void)
{
	unsigned long first = 1UL << mem_node[0];
	char *inside = memory_on(mem_node[0], LEN, SMALL_PAGES);
	char *outside = memory_on(mem_node[0], LEN, SMALL_PAGES);
	int err;

	bind_range(inside, LEN, MPOL_INTERLEAVE, first);
	bind_range(outside, LEN, MPOL_INTERLEAVE, first);
	set_policy(MPOL_INTERLEAVE, first);
	/* Else the two may be one mapping. */
	mprotect(outside, LEN, PROT_READ);
	err = reset_range(inside, LEN, 0, NRST_POLICY | NRST_FOLLOW, NULL);
	ok(!err && policy_nodes(inside, NULL) == all_nodes() &&
	   policy_nodes(outside, NULL) == first &&
	   policy_nodes(NULL, NULL) == first,
	   "with a range, only mappings in it follow", "error %d", err);
	set_policy(MPOL_DEFAULT, 0);
	munmap(inside, LEN);
	munmap(outside, LEN);
}

/* --- The cpuset shrinks and grows ---------------------------------------------- */

#define CGROUP	"/sys/fs/cgroup/numa_reset"

static void set_mems(unsigned long nodes)
{
	char text[64] = "";
	int i;

	for (i = 0; i < nr_mem_nodes; i++)
		if (nodes & 1UL << mem_node[i])
			snprintf(text + strlen(text),
				 sizeof(text) - strlen(text), "%s%d",
				 *text ? "," : "", mem_node[i]);
	write_file(CGROUP "/cpuset.mems", text);
}

static void cpuset_comes_and_goes(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	unsigned long shrunk, stock, outside = 1UL << mem_node[1];
	char pid[16];
	int err;

	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
	mkdir(CGROUP, 0755);
	set_mems(all_nodes());
	snprintf(pid, sizeof(pid), "%d", getpid());
	write_file(CGROUP "/cgroup.procs", pid);
	bind_range(mem, LEN, MPOL_INTERLEAVE, all_nodes());

	set_mems(1UL << mem_node[0]);
	shrunk = policy_nodes(mem, NULL);
	ok(follow(outside) == -EINVAL, "nodes outside the cpuset are refused");
	ok(!follow(0) && policy_nodes(mem, NULL) == 1UL << mem_node[0],
	   "following stays inside the cpuset");

	set_mems(all_nodes());
	stock = policy_nodes(mem, NULL);
	err = follow(0);
	ok(!err && shrunk == 1UL << mem_node[0] && stock == shrunk &&
	   policy_nodes(mem, NULL) == all_nodes(),
	   "the policy grows back, which it does not by itself",
	   "shrunk 0x%lx, grown cpuset 0x%lx, followed 0x%lx", shrunk, stock,
	   policy_nodes(mem, NULL));

	write_file("/sys/fs/cgroup/cgroup.procs", pid);
	rmdir(CGROUP);
	munmap(mem, LEN);
}

int main(void)
{
	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");

	mappings_and_threads();
	range_only();
	cpuset_comes_and_goes();
	return tap_end();
}
