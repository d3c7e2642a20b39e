// SPDX-License-Identifier: GPL-2.0
/*
 * NRST_FOLLOW: interleave policies of all mappings and all threads that stand
 * for all nodes take the nodes in use, and so grow back after the cpuset has
 * made them shrink; those of which the user has named some nodes never get
 * others.
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

	set_policy(MPOL_INTERLEAVE, all_nodes());
	pthread_barrier_wait(&other->turn);
	pthread_barrier_wait(&other->turn);
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

	bind_range(spread, LEN, MPOL_INTERLEAVE, all_nodes());
	bind_range(bound, LEN, MPOL_BIND, first);
	set_policy(MPOL_INTERLEAVE, all_nodes());
	pthread_barrier_init(&other.turn, NULL, 2);
	pthread_create(&thread, NULL, other_thread, &other);
	pthread_barrier_wait(&other.turn);

	err = follow(first);
	ok(!err && policy_nodes(spread, NULL) == first &&
	   policy_nodes(NULL, NULL) == first &&
	   pages_on(spread, LEN, mem_node[0]) == LEN / PAGE,
	   "all nodes become one, by the caller's set", "error %d", err);
	pthread_barrier_wait(&other.turn);
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

	bind_range(inside, LEN, MPOL_INTERLEAVE, all_nodes());
	bind_range(outside, LEN, MPOL_INTERLEAVE, all_nodes());
	set_policy(MPOL_INTERLEAVE, all_nodes());
	/* Else the two may be one mapping. */
	mprotect(outside, LEN, PROT_READ);
	follow(first);
	err = reset_range(inside, LEN, 0, NRST_POLICY | NRST_FOLLOW, NULL);
	ok(!err && policy_nodes(inside, NULL) == all_nodes() &&
	   policy_nodes(outside, NULL) == first &&
	   policy_nodes(NULL, NULL) == first,
	   "with a range, only mappings in it follow", "error %d", err);
	set_policy(MPOL_DEFAULT, 0);
	munmap(inside, LEN);
	munmap(outside, LEN);
}

/* --- What the user means -------------------------------------------------------- */

#define KNOB	"/sys/kernel/debug/numa_reset/topology"

/* Node sets; of a relative policy, the named ones are positions. */
struct meaning {
	const char *name;
	unsigned int flags;
	unsigned long named;
	unsigned long without;		/* expected while the last node leaves */
	unsigned long outside;		/* ... is not in the cpuset */
	unsigned long with;		/* ... is back */
};

static void node_list(unsigned long nodes, char *text, size_t size)
{
	int i, len = 0;

	*text = '\0';
	for (i = 0; i < nr_mem_nodes; i++)
		if (nodes & 1UL << mem_node[i])
			len += snprintf(text + len, size - len, "%s%d",
					len ? "," : "", mem_node[i]);
}

static void announce(unsigned long nodes)
{
	char list[64], text[80];

	node_list(nodes, list, sizeof(list));
	snprintf(text, sizeof(text), "1 %s", list);
	write_file(KNOB, text);
}

static unsigned long spread_over(char *mem)
{
	unsigned long nodes = 0;
	int i;

	for (i = 0; i < nr_mem_nodes; i++)
		if (pages_on(mem, LEN, mem_node[i]))
			nodes |= 1UL << mem_node[i];
	return nodes;
}

static void run_meaning(const struct meaning *m, bool of_thread,
			void (*use)(unsigned long), unsigned long without)
{
	unsigned long all = all_nodes(), last = 1UL << mem_node[nr_mem_nodes - 1];
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	unsigned long seen[3];
	char name[120];
	int err;

	if (of_thread)
		err = set_policy(MPOL_INTERLEAVE | m->flags, m->named);
	else
		err = bind_range(mem, LEN, MPOL_INTERLEAVE | m->flags,
				 m->named);
	if (err)
		die("%s: policy refused: %s", m->name, strerror(-err));

	err = follow(0);
	seen[0] = spread_over(mem);
	use(all & ~last);
	err |= follow(0);
	seen[1] = spread_over(mem);
	use(all);
	err |= follow(0);
	seen[2] = spread_over(mem);

	set_policy(MPOL_DEFAULT, 0);
	snprintf(name, sizeof(name), "%s, %s, %s", m->name,
		 of_thread ? "of the thread" : "of a mapping",
		 use == announce ? "a node leaves and comes back" :
				   "the cpuset shrinks and grows");
	ok(!err && seen[0] == m->with && seen[1] == without &&
	   seen[2] == m->with && !count_damaged(mem, LEN), name,
	   "error %d, 0x%lx, 0x%lx of 0x%lx, 0x%lx of 0x%lx", err, seen[0],
	   seen[1], without, seen[2], m->with);
	munmap(mem, LEN);
}

static void run_meanings(void (*use)(unsigned long))
{
	const int n = nr_mem_nodes;
	const unsigned long all = all_nodes(), first = 1UL << mem_node[0];
	const unsigned long last = 1UL << mem_node[n - 1], rest = all & ~last;
	const unsigned int stat = MPOL_F_STATIC_NODES;
	const unsigned int rel = MPOL_F_RELATIVE_NODES;
	const struct meaning meanings[] = {
		{ "all nodes", 0, all, rest, rest, all },
		{ "the first node by name", 0, first, first, first, first },
		{ "first and last by name", 0, first | last, first, first,
		  first | last },
		/* The cpuset itself takes the nearest thing. */
		{ "the last node by name", 0, last, last, first, last },
		{ "static, all", stat, all, rest, rest, all },
		{ "static, first", stat, first, first, first, first },
		{ "static, first and last", stat, first | last, first, first,
		  first | last },
		{ "static, last", stat, last, last, rest, last },
		{ "relative, first place", rel, 1, first, first, first },
		{ "relative, last place", rel, 1UL << (n - 1), first, first,
		  last },
		{ "relative, every place", rel, 0xff, rest, rest, all },
	};
	size_t i;

	for (i = 0; i < COUNT(meanings); i++) {
		unsigned long without = use == announce ? meanings[i].without :
							  meanings[i].outside;

		run_meaning(&meanings[i], false, use, without);
		run_meaning(&meanings[i], true, use, without);
	}
}

/* Merged with its neighbour, a mapping would mean what that one means. */
static void same_nodes_for_another_reason(void)
{
	unsigned long all = all_nodes(), first = 1UL << mem_node[0];
	char *mem = memory_on(mem_node[0], 2 * LEN, SMALL_PAGES);
	int err;

	bind_range(mem, LEN, MPOL_INTERLEAVE, all);
	err = follow(first);
	bind_range(mem + LEN, LEN, MPOL_INTERLEAVE, first);
	err |= follow(0);
	ok(!err && policy_nodes(mem, NULL) == all &&
	   policy_nodes(mem + LEN, NULL) == first,
	   "two mappings of the same nodes, one of which stands for all",
	   "error %d, 0x%lx and 0x%lx", err, policy_nodes(mem, NULL),
	   policy_nodes(mem + LEN, NULL));
	munmap(mem, 2 * LEN);
}

/* --- The cpuset shrinks and grows ---------------------------------------------- */

#define CGROUP	"/sys/fs/cgroup/numa_reset"

static void set_mems(unsigned long nodes)
{
	char text[64];

	node_list(nodes, text, sizeof(text));
	write_file(CGROUP "/cpuset.mems", text);
}

/* All that there is, by name, looks like all that there ever is. */
static void all_of_a_small_cpuset(void)
{
	unsigned long two = 1UL << mem_node[0] | 1UL << mem_node[1];
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	int err;

	set_mems(two);
	bind_range(mem, LEN, MPOL_INTERLEAVE, two);
	set_mems(all_nodes());
	err = follow(0);
	ok(!err && policy_nodes(mem, NULL) == all_nodes(),
	   "all nodes of a small cpuset, by name, grow with it",
	   "error %d, 0x%lx", err, policy_nodes(mem, NULL));
	munmap(mem, LEN);

	mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	set_mems(two);
	bind_range(mem, LEN, MPOL_INTERLEAVE | MPOL_F_STATIC_NODES, two);
	set_mems(all_nodes());
	err = follow(0);
	ok(!err && policy_nodes(mem, NULL) == two,
	   "static, they do not", "error %d, 0x%lx", err,
	   policy_nodes(mem, NULL));
	munmap(mem, LEN);
}

/* Marks can be taken away also where nothing could move. */
static void cancel_without_a_usable_node(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct numa_reset_args args;
	int touch_err, err;

	reset_range(mem, LEN, 0, NRST_TOUCH, &args);
	set_mems(1UL << mem_node[0]);
	announce(1UL << mem_node[1]);
	touch_err = reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	err = reset_range(mem, LEN, 0, NRST_CANCEL, &args);
	ok(touch_err == -EINVAL && !err && args.marked == LEN / PAGE,
	   "marks are taken away without a usable node",
	   "touch %d, cancel %d, %llu unmarked", touch_err, err,
	   (unsigned long long)args.marked);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
	write_file(KNOB, "0 0-7");
	set_mems(all_nodes());
	munmap(mem, LEN);
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

	munmap(mem, LEN);
	run_meanings(set_mems);
	all_of_a_small_cpuset();
	cancel_without_a_usable_node();

	write_file("/sys/fs/cgroup/cgroup.procs", pid);
	rmdir(CGROUP);
}

int main(void)
{
	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");

	mappings_and_threads();
	range_only();
	run_meanings(announce);
	write_file(KNOB, "0 0-7");
	same_nodes_for_another_reason();
	cpuset_comes_and_goes();
	return tap_end();
}
