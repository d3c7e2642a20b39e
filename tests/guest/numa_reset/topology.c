// SPDX-License-Identifier: GPL-2.0
/*
 * The topology driver's word: which version is current (else -ESTALE), and
 * that nothing moves to a node that is about to leave.  A debugfs file plays
 * the driver (CONFIG_NUMA_RESET_SELFTEST).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "nrtest.h"

#define KNOB	"/sys/kernel/debug/numa_reset/topology"
#define LEN	(2UL << 20)

/* Announce @version with the first @n nodes that have memory. */
static void announce(unsigned long long version, int n)
{
	char text[64];
	int i, len = snprintf(text, sizeof(text), "%llu ", version);

	for (i = 0; i < n; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%d",
				i ? "," : "", mem_node[i]);
	write_file(KNOB, text);
}

static int touch_at_version(char *mem, unsigned long long version,
			    unsigned long long *marked)
{
	struct numa_reset_args args = {
		.start = (uintptr_t)mem,
		.len = LEN,
		.topo_version = version,
	};
	int err = numa_reset(-1, &args, sizeof(args), NRST_TOUCH);

	*marked = args.marked;
	return err;
}

static void versions(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	unsigned long long marked;
	int err;

	announce(~0ULL, nr_mem_nodes);
	err = touch_at_version(mem, ~0ULL - 1, &marked);
	ok(err == -ESTALE && !marked, "an old version is refused", "%d", err);
	run_on_node(mem_node[1]);
	touch(mem, LEN);
	ok(pages_on(mem, LEN, mem_node[0]) == LEN / PAGE,
	   "and nothing has been marked");

	err = touch_at_version(mem, ~0ULL, &marked);
	ok(!err && marked == LEN / PAGE, "the current version is accepted",
	   "%d", err);
	announce(1, nr_mem_nodes);
	err = touch_at_version(mem, ~0ULL, &marked);
	ok(err == -ESTALE, "it is not when the next has come", "%d", err);
	err = touch_at_version(mem, 0, &marked);
	ok(!err, "version 0 means any", "%d", err);
	munmap(mem, LEN);
}

static void draining_node_is_no_target(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	int last = nr_mem_nodes - 1;
	size_t n;

	/* All but the last are usable; a thread still runs there. */
	announce(2, last);
	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	run_on_node(mem_node[last]);
	touch(mem, LEN);
	n = pages_on(mem, LEN, mem_node[last]);
	ok(n == 0 && !count_damaged(mem, LEN),
	   "a touch moves nothing to a draining node", "%zu pages", n);
	munmap(mem, LEN);

	/* Memory of the draining node itself leaves with the touch. */
	mem = memory_on(mem_node[last], LEN, SMALL_PAGES);
	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	touch(mem, LEN);
	n = pages_on(mem, LEN, mem_node[last]);
	ok(n == 0 && !count_damaged(mem, LEN),
	   "a touch moves memory away from a draining node", "%zu stay", n);
	munmap(mem, LEN);
}

static void draining_node_leaves_interleave(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	unsigned long all = 0, left, last = 1UL << mem_node[nr_mem_nodes - 1];
	struct numa_reset_args res;
	int i, err;

	for (i = 0; i < nr_mem_nodes; i++)
		all |= 1UL << mem_node[i];
	announce(3, nr_mem_nodes);
	bind_range(mem, LEN, MPOL_INTERLEAVE, all);
	reset_range(mem, LEN, 0, NRST_POLICY, NULL);

	announce(4, nr_mem_nodes - 1);
	err = reset_range(mem, LEN, 0, NRST_POLICY | NRST_FOLLOW, &res);
	left = policy_nodes(mem, NULL);
	ok(!err && !res.failed && left == (all & ~last) &&
	   !pages_on(mem, LEN, mem_node[nr_mem_nodes - 1]) &&
	   !count_damaged(mem, LEN),
	   "following empties the draining node of interleaved memory",
	   "error %d, policy 0x%lx, failed %llu", err, left,
	   (unsigned long long)res.failed);

	announce(5, nr_mem_nodes);
	err = reset_range(mem, LEN, 0, NRST_POLICY | NRST_FOLLOW, &res);
	ok(!err && policy_nodes(mem, NULL) == all &&
	   pages_on(mem, LEN, mem_node[nr_mem_nodes - 1]) >=
		LEN / PAGE / nr_mem_nodes, "and back when it is in use again",
	   "error %d, moved %llu", err, (unsigned long long)res.moved);
	munmap(mem, LEN);
}

/* Unlike under other policies, no other node takes the place of that one. */
static void interleave_has_no_nearest(void)
{
	unsigned long last = 1UL << mem_node[nr_mem_nodes - 1];
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	unsigned long faults;
	size_t n;

	announce(6, nr_mem_nodes - 1);
	bind_range(mem, LEN, MPOL_INTERLEAVE, last);
	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	touch(mem, LEN);
	faults = vmstat("numa_hint_faults");
	touch(mem, LEN);
	faults = vmstat("numa_hint_faults") - faults;
	n = pages_on(mem, LEN, mem_node[0]);
	ok(n == LEN / PAGE && !faults && !count_damaged(mem, LEN),
	   "touched interleaved pages stay if their node is not usable",
	   "%zu stay, %lu more faults", n, faults);
	munmap(mem, LEN);
}

int main(void)
{
	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");

	versions();
	draining_node_is_no_target();
	draining_node_leaves_interleave();
	interleave_has_no_nearest();
	/* As at boot, for whoever comes next. */
	announce(0, nr_mem_nodes);
	return tap_end();
}
