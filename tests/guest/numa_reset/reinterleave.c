// SPDX-License-Identifier: GPL-2.0
/*
 * NRST_POLICY: interleaved memory is redistributed at once, without a touch,
 * to exactly the node that the policy names for each page.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "nrtest.h"

#define LEN	(8UL << 20)
#define PAGES	(LEN / PAGE)

static int where[PAGES];

static unsigned long first_nodes(int n)
{
	unsigned long mask = 0;
	int i;

	for (i = 0; i < n; i++)
		mask |= 1UL << mem_node[i];
	return mask;
}

/* Pages that are not where an interleave over the first @n nodes puts them. */
static size_t misplaced(char *mem, size_t unit, int n)
{
	size_t i, wrong = 0;

	nodes_of(mem, LEN, where);
	for (i = 0; i < PAGES; i++)
		wrong += where[i] !=
			 mem_node[((uintptr_t)mem + i * PAGE) / unit % n];
	return wrong;
}

/* From the first @from nodes to the first @to. */
static void change(char *mem, int from, int to, enum page_kind kind,
		   const char *what)
{
	size_t unit = kind == HUGE_PAGES ? HUGE : PAGE;
	size_t expected = misplaced(mem, unit, to);
	struct numa_reset_args res;
	unsigned long faults;
	char name[120];
	size_t wrong;
	int err;

	bind_range(mem, LEN, MPOL_INTERLEAVE, first_nodes(to));
	faults = vmstat("numa_hint_faults");
	err = reset_range(mem, LEN, 0, NRST_POLICY, &res);
	wrong = misplaced(mem, unit, to);

	snprintf(name, sizeof(name), "%s: %d to %d nodes: exact distribution",
		 what, from, to);
	ok(!err && !wrong && !count_damaged(mem, LEN), name,
	   "error %d, %zu of %lu wrong", err, wrong, PAGES);

	snprintf(name, sizeof(name),
		 "%s: %d to %d nodes: only misplaced pages moved, and counted",
		 what, from, to);
	ok(res.moved == expected && !res.failed && !res.marked &&
	   faults == vmstat("numa_hint_faults"), name,
	   "moved %llu of %zu, failed %llu, marked %llu",
	   (unsigned long long)res.moved, expected,
	   (unsigned long long)res.failed, (unsigned long long)res.marked);
}

static void mapping(enum page_kind kind, const char *what)
{
	char *mem = memory_on(mem_node[0], LEN, kind);

	change(mem, 1, 2, kind, what);
	change(mem, 2, 1, kind, what);
	if (nr_mem_nodes >= 3) {
		change(mem, 1, 3, kind, what);
		change(mem, 3, 2, kind, what);
		change(mem, 2, 1, kind, what);
	}
	munmap(mem, LEN);
}

static void thread_policy(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	size_t wrong;

	set_policy(MPOL_INTERLEAVE, first_nodes(2));
	reset_range(mem, LEN, 0, NRST_POLICY, NULL);
	set_policy(MPOL_DEFAULT, 0);
	wrong = misplaced(mem, PAGE, 2);
	ok(!wrong, "the policy of the thread counts where a mapping has none",
	   "%zu wrong", wrong);
	munmap(mem, LEN);
}

/* The flags of a policy change nothing for a reset without NRST_FOLLOW. */
static void flags_of_policies(void)
{
	static const struct {
		const char *name;
		unsigned int flag;
	} flags[] = {
		{ "static interleave: exact distribution",
		  MPOL_F_STATIC_NODES },
		{ "relative interleave: exact distribution",
		  MPOL_F_RELATIVE_NODES },
	};
	struct numa_reset_args res;
	size_t i, wrong;

	for (i = 0; i < COUNT(flags); i++) {
		char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);

		/* The first two nodes with memory are 0 and 1: also places. */
		bind_range(mem, LEN, MPOL_INTERLEAVE | flags[i].flag,
			   first_nodes(2));
		reset_range(mem, LEN, 0, NRST_POLICY, &res);
		wrong = misplaced(mem, PAGE, 2);
		ok(!wrong && res.moved == PAGES / 2 && !res.failed,
		   flags[i].name, "%zu wrong, %llu moved", wrong,
		   (unsigned long long)res.moved);
		munmap(mem, LEN);
	}
}

static void weighted(void)
{
	const char *name = "weighted interleave: 3 to 1";
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	char path[96];
	int i, found = 0;
	size_t wrong = 0;

	snprintf(path, sizeof(path),
		 "/sys/kernel/mm/mempolicy/weighted_interleave/node%d",
		 mem_node[0]);
	write_file(path, "3");
	bind_range(mem, LEN, MPOL_WEIGHTED_INTERLEAVE, first_nodes(2));
	reset_range(mem, LEN, 0, NRST_POLICY, NULL);
	nodes_of(mem, LEN, where);
	for (i = 0; i < (int)PAGES; i++) {
		int turn = ((uintptr_t)mem / PAGE + i) % 4;

		wrong += where[i] != mem_node[turn == 3];
		found += where[i] == mem_node[1];
	}
	write_file(path, "0");
	ok(!wrong && found == PAGES / 4, name, "%zu wrong, %d on the second",
	   wrong, found);
	munmap(mem, LEN);
}

/* Without an interleave policy there is nothing to redistribute. */
static void other_policies_untouched(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct numa_reset_args res;
	int err;

	bind_range(mem, LEN, MPOL_BIND, 1UL << mem_node[1]);
	err = reset_range(mem, LEN, 0, NRST_POLICY, &res);
	ok(!err && !res.moved && !res.failed && !res.marked &&
	   pages_on(mem, LEN, mem_node[0]) == PAGES,
	   "memory without an interleave policy is left alone");
	munmap(mem, LEN);
}

/* Both at once: interleaved memory moves now, the rest with its touch. */
static void with_touch(void)
{
	char *spread = memory_on(mem_node[0], LEN, SMALL_PAGES);
	char *plain = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct numa_reset_args res = { 0 };
	size_t wrong, followed;
	int err;

	bind_range(spread, LEN, MPOL_INTERLEAVE, first_nodes(2));
	err = numa_reset(-1, &res, sizeof(res), NRST_TOUCH | NRST_POLICY);
	wrong = misplaced(spread, PAGE, 2);
	run_on_node(mem_node[1]);
	touch(plain, LEN);
	followed = pages_on(plain, LEN, mem_node[1]);
	ok(!err && !wrong && followed == PAGES && res.moved == PAGES / 2,
	   "touch and policy together",
	   "%zu wrong, %zu followed, %llu moved, %llu marked", wrong, followed,
	   (unsigned long long)res.moved, (unsigned long long)res.marked);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
	munmap(spread, LEN);
	munmap(plain, LEN);
}

int main(void)
{
	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");

	mapping(SMALL_PAGES, "small pages");
	mapping(HUGE_PAGES, "huge pages");
	thread_policy();
	flags_of_policies();
	weighted();
	other_policies_untouched();
	with_touch();
	return tap_end();
}
