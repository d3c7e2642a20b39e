// SPDX-License-Identifier: GPL-2.0
/*
 * NRST_TOUCH under the user's own policies: the effective policy says where a
 * touched page goes.  A table of policies, touchers and expected nodes.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "nrtest.h"

#define LEN	(1UL << 20)

enum scope { MAPPING, THREAD };

/* Nodes are indices into mem_node[]; a set is a mask of indices. */
struct policy_case {
	const char *name;
	enum scope scope;
	int mode;
	unsigned long set;
	int toucher;
	int expected;
};

static const struct policy_case cases[] = {
	{ "bind to the other node: goes there",
	  MAPPING, MPOL_BIND, 1 << 1, 0, 1 },
	{ "bind to the other node, touched there: goes there",
	  MAPPING, MPOL_BIND, 1 << 1, 1, 1 },
	{ "bind to both, touched on the other: goes there",
	  MAPPING, MPOL_BIND, 1 << 0 | 1 << 1, 1, 1 },
	{ "bind to the first, touched on the other: stays",
	  MAPPING, MPOL_BIND, 1 << 0, 1, 0 },
	{ "preferred: goes to the preferred node, not to the toucher's",
	  MAPPING, MPOL_PREFERRED, 1 << 1, 0, 1 },
	{ "preferred first node: stays though touched elsewhere",
	  MAPPING, MPOL_PREFERRED, 1 << 0, 1, 0 },
	{ "local: goes to the toucher",
	  MAPPING, MPOL_LOCAL, 0, 1, 1 },
	{ "preferred many: the toucher's node is one of them",
	  MAPPING, MPOL_PREFERRED_MANY, 1 << 0 | 1 << 1, 1, 1 },
	{ "interleave over one node: goes there",
	  MAPPING, MPOL_INTERLEAVE, 1 << 1, 0, 1 },
	{ "static bind to the other node: goes there",
	  MAPPING, MPOL_BIND | MPOL_F_STATIC_NODES, 1 << 1, 0, 1 },
	{ "static interleave over one node: goes there",
	  MAPPING, MPOL_INTERLEAVE | MPOL_F_STATIC_NODES, 1 << 1, 0, 1 },
	{ "relative interleave over the second node: goes there",
	  MAPPING, MPOL_INTERLEAVE | MPOL_F_RELATIVE_NODES, 1 << 1, 0, 1 },
	{ "static preferred of the thread: goes to its node",
	  THREAD, MPOL_PREFERRED | MPOL_F_STATIC_NODES, 1 << 1, 0, 1 },
	{ "bind of the thread: goes to its node",
	  THREAD, MPOL_BIND, 1 << 1, 0, 1 },
	{ "preferred of the thread: goes to its node",
	  THREAD, MPOL_PREFERRED, 1 << 1, 0, 1 },
	{ "local of the thread: goes to the toucher",
	  THREAD, MPOL_LOCAL, 0, 1, 1 },
};

static unsigned long node_mask(unsigned long set)
{
	unsigned long mask = 0;
	int i;

	for (i = 0; i < nr_mem_nodes; i++)
		if (set & 1UL << i)
			mask |= 1UL << mem_node[i];
	return mask;
}

static void run_case(const struct policy_case *c)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	int err, expected = mem_node[c->expected];
	size_t n;

	if (c->scope == MAPPING)
		err = bind_range(mem, LEN, c->mode, node_mask(c->set));
	else
		err = set_policy(c->mode, node_mask(c->set));
	if (err)
		die("%s: policy refused: %s", c->name, strerror(-err));

	err = reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	run_on_node(mem_node[c->toucher]);
	touch(mem, LEN);
	set_policy(MPOL_DEFAULT, 0);

	n = pages_on(mem, LEN, expected);
	ok(!err && n == LEN / PAGE && !count_damaged(mem, LEN), c->name,
	   "%zu of %lu pages on node %d", n, LEN / PAGE, expected);
	munmap(mem, LEN);
}

/* Bound to a node that touches may not use: there is no other for it. */
static void bound_to_an_unusable_node(void)
{
	unsigned long first = 1UL << mem_node[0], other = 1UL << mem_node[1];
	char *mem = memory_on(mem_node[1], LEN, SMALL_PAGES);
	struct numa_reset_args args = {
		.start = (uintptr_t)mem,
		.len = LEN,
		.nodes_ptr = (uintptr_t)&first,
		.maxnode = 64,
	};
	int err;
	size_t n;

	numa_reset(-1, NULL, 0, NRST_CANCEL);	/* of another set */
	bind_range(mem, LEN, MPOL_BIND, other);
	err = numa_reset(-1, &args, sizeof(args), NRST_TOUCH);
	run_on_node(mem_node[0]);
	touch(mem, LEN);
	n = pages_on(mem, LEN, mem_node[1]);
	ok(!err && args.marked == LEN / PAGE && n == LEN / PAGE,
	   "bind without a usable node: stays", "error %d, %llu marked, %zu",
	   err, (unsigned long long)args.marked, n);
	munmap(mem, LEN);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
}

/* The node set of the reset itself narrows down where touches may go. */
static void node_set(void)
{
	unsigned long first = 1UL << mem_node[0];
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct numa_reset_args args = {
		.start = (uintptr_t)mem,
		.len = LEN,
		.nodes_ptr = (uintptr_t)&first,
		.maxnode = 64,
	};
	size_t n;

	numa_reset(-1, NULL, 0, NRST_CANCEL);	/* of another set */
	numa_reset(-1, &args, sizeof(args), NRST_TOUCH);
	run_on_node(mem_node[1]);
	touch(mem, LEN);
	n = pages_on(mem, LEN, mem_node[0]);
	ok(n == LEN / PAGE, "a touch from outside the set moves nothing out",
	   "%zu", n);
	munmap(mem, LEN);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
}

/*
 * A thread on a node without memory gets the nearest that has some.  Only one
 * of the machines has such a node, next to the last one with memory.
 */
static void memoryless_toucher(void)
{
	int nid = memoryless_node(), nearest = mem_node[nr_mem_nodes - 1];
	char *mem;
	size_t n;

	if (nid < 0)
		return;
	mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	run_on_node(nid);
	touch(mem, LEN);
	n = pages_on(mem, LEN, nearest);
	ok(n == LEN / PAGE, "touched on a node without memory: to the nearest",
	   "%zu on node %d", n, nearest);
	munmap(mem, LEN);
}

int main(void)
{
	size_t i;

	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");

	for (i = 0; i < COUNT(cases); i++)
		run_case(&cases[i]);
	bound_to_an_unusable_node();
	node_set();
	memoryless_toucher();
	return tap_end();
}
