// SPDX-License-Identifier: GPL-2.0
/*
 * The granule: one touch moves the aligned window of marked pages around it.
 * The faults are counted exactly, for every size of window.
 */
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
	reset_range(mem + HUGE, HUGE - 9 * PAGE, 21, NRST_TOUCH, NULL);
	touch_from(mem_node[1], mem + HUGE + PAGE, PAGE);
	moved = pages_on(mem + HUGE, HUGE - 9 * PAGE, mem_node[1]);
	ok(moved == 512 - 9, "a window ends with its mapping", "%zu", moved);

	munmap(mem, LEN);
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
}

int main(void)
{
	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");

	each_size();
	default_size();
	edges();
	interleaved_window();
	return tap_end();
}
