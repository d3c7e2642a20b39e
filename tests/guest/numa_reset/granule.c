// SPDX-License-Identifier: GPL-2.0
/*
 * The granule: one touch moves the aligned window of marked pages around it.
 * The faults are counted exactly, for every size of window.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "nrtest.h"

#define LEN	(4UL << 20)

struct seen {
	unsigned long faults;
	unsigned long migrated;
};

static struct seen touch_from(int nid, char *mem, size_t len)
{
	struct seen seen;

	run_on_node(nid);
	seen.faults = vmstat("numa_hint_faults");
	seen.migrated = vmstat("numa_pages_migrated");
	touch(mem, len);
	seen.faults = vmstat("numa_hint_faults") - seen.faults;
	seen.migrated = vmstat("numa_pages_migrated") - seen.migrated;
	return seen;
}

/* The granule is one for the whole process until next touch ends. */
static void cancel(void)
{
	numa_reset(-1, NULL, 0, NRST_CANCEL);
}

static void each_size(void)
{
	unsigned int shift;

	for (shift = 12; shift <= 21; shift++) {
		char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
		unsigned long windows = LEN >> shift;
		struct seen seen;
		char name[80];

		reset_range(mem, LEN, shift, NRST_TOUCH, NULL);
		seen = touch_from(mem_node[1], mem, LEN);
		snprintf(name, sizeof(name),
			 "granule of %lu KiB: one fault a window, all moved",
			 1UL << (shift - 10));
		ok(seen.faults == windows && seen.migrated == LEN / PAGE &&
		   pages_on(mem, LEN, mem_node[1]) == LEN / PAGE,
		   name, "%lu faults for %lu windows, %lu pages", seen.faults,
		   windows, seen.migrated);

		reset_range(mem, LEN, shift, NRST_TOUCH, NULL);
		seen = touch_from(mem_node[1], mem, LEN);
		snprintf(name, sizeof(name),
			 "granule of %lu KiB: local pages open with one fault, too",
			 1UL << (shift - 10));
		ok(seen.faults == windows && seen.migrated == 0, name,
		   "%lu faults for %lu windows, %lu pages", seen.faults,
		   windows, seen.migrated);
		munmap(mem, LEN);
		cancel();
	}
}

static void default_size(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct seen seen;

	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	seen = touch_from(mem_node[1], mem, LEN);
	ok(seen.faults == LEN >> 16, "the default granule is 64 KiB", "%lu",
	   seen.faults);
	munmap(mem, LEN);
	cancel();
}

/* A window ends where its mapping, or the marked range, does. */
static void edges(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	size_t moved;

	/* 5 pages marked in the midst of a window of 16. */
	reset_range(mem + 3 * PAGE, 5 * PAGE, 16, NRST_TOUCH, NULL);
	touch_from(mem_node[1], mem + 4 * PAGE, PAGE);
	moved = pages_on(mem, LEN, mem_node[1]);
	ok(moved == 5 && pages_on(mem + 3 * PAGE, 5 * PAGE, mem_node[1]) == 5,
	   "pages of the window without a mark stay", "%zu moved", moved);

	/* The window reaches across the end of the mapping. */
	run_on_node(mem_node[0]);
	munmap(mem + 2 * HUGE - 9 * PAGE, 9 * PAGE);
	cancel();
	reset_range(mem + HUGE, HUGE - 9 * PAGE, 21, NRST_TOUCH, NULL);
	touch_from(mem_node[1], mem + HUGE + PAGE, PAGE);
	moved = pages_on(mem + HUGE, HUGE - 9 * PAGE, mem_node[1]);
	ok(moved == 512 - 9, "a window ends with its mapping", "%zu", moved);

	munmap(mem, LEN);
	cancel();
}

/* Pages of one window that belong on different nodes part company. */
static void interleaved_window(void)
{
	unsigned long nodes = 1UL << mem_node[0] | 1UL << mem_node[1];
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	size_t i, wrong = 0, n = LEN / PAGE;
	static int where[LEN / PAGE];
	struct seen seen;

	bind_range(mem, LEN, MPOL_INTERLEAVE, nodes);
	reset_range(mem, LEN, 16, NRST_TOUCH, NULL);
	seen = touch_from(mem_node[0], mem, LEN);
	nodes_of(mem, LEN, where);
	for (i = 0; i < n; i++)
		wrong += where[i] != mem_node[((uintptr_t)mem / PAGE + i) % 2];
	ok(!wrong, "touched interleaved pages go where the policy puts them",
	   "%zu wrong, %lu faults", wrong, seen.faults);
	ok(seen.migrated == n / 2 && seen.faults <= 2 * (LEN >> 16),
	   "at most two faults a window for two nodes", "%lu faults, %lu moved",
	   seen.faults, seen.migrated);
	munmap(mem, LEN);
	cancel();
}

/* A range may not change what marks elsewhere mean; everything may. */
static void one_granule_for_all(void)
{
	unsigned long nodes = 1UL << mem_node[0];
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct numa_reset_args args = {
		.start = (uintptr_t)mem + LEN / 2,
		.len = LEN / 2,
		.granule_shift = 16,
	};
	struct seen seen;
	int other, same, set, whole;

	reset_range(mem, LEN / 2, 16, NRST_TOUCH, NULL);
	other = reset_range(mem + LEN / 2, LEN / 2, 12, NRST_TOUCH, &args);
	ok(other == -EBUSY && !args.marked,
	   "a range with another granule is refused", "%d, %llu marked", other,
	   (unsigned long long)args.marked);
	args.granule_shift = 16;
	args.nodes_ptr = (uintptr_t)&nodes;
	args.maxnode = 64;
	set = numa_reset(-1, &args, sizeof(args), NRST_TOUCH);
	ok(set == -EBUSY, "a range with another node set is refused", "%d",
	   set);
	seen = touch_from(mem_node[1], mem, LEN);
	ok(seen.faults == LEN / 2 >> 16,
	   "what had been marked keeps its granule", "%lu faults",
	   seen.faults);
	same = reset_range(mem + LEN / 2, LEN / 2, 16, NRST_TOUCH, NULL);
	ok(!same, "a range with the same granule is marked", "%d", same);

	args = (struct numa_reset_args) { .granule_shift = 12 };
	whole = numa_reset(-1, &args, sizeof(args), NRST_TOUCH);
	seen = touch_from(mem_node[0], mem + LEN / 2, LEN / 2);
	/* Pages of the program itself are among them. */
	ok(!whole && seen.faults >= LEN / 2 / PAGE &&
	   seen.faults < LEN / 2 / PAGE + 64,
	   "a reset of everything changes the granule of all marks",
	   "error %d, %lu faults", whole, seen.faults);
	cancel();
	ok(!reset_range(mem, LEN, 21, NRST_TOUCH, NULL),
	   "after a cancel any granule will do");
	munmap(mem, LEN);
}

/* A range within a huge page: what is marked, and what unmarked, differs. */
static void part_of_a_huge_page(void)
{
	char *mem = memory_on(mem_node[0], HUGE, HUGE_PAGES);
	struct numa_reset_args args;
	struct seen seen;
	int err;

	cancel();	/* the granule of the case before */
	reset_range(mem, HUGE, 0, NRST_TOUCH, &args);
	ok(args.marked == HUGE / PAGE, "a huge page is marked", "%llu",
	   (unsigned long long)args.marked);
	err = reset_range(mem + PAGE, PAGE, 0, NRST_CANCEL, &args);
	seen = touch_from(mem_node[1], mem, HUGE);
	ok(!err && args.marked == HUGE / PAGE && !seen.faults,
	   "a cancel of one of its pages unmarks all of it",
	   "error %d, %llu unmarked, %lu faults", err,
	   (unsigned long long)args.marked, seen.faults);

	reset_range(mem + PAGE, PAGE, 0, NRST_TOUCH, &args);
	ok(args.marked == 1, "a mark of one of its pages splits it", "%llu",
	   (unsigned long long)args.marked);
	munmap(mem, HUGE);
	cancel();
}

int main(void)
{
	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");

	each_size();
	default_size();
	edges();
	interleaved_window();
	one_granule_for_all();
	part_of_a_huge_page();
	return tap_end();
}
