// SPDX-License-Identifier: GPL-2.0
/*
 * Marks and the emptying of a node: what another process moves off a node that
 * is about to leave is for the next touch to place.  migrate_pages(2) by a
 * child plays the evacuation, a debugfs file the topology driver.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nrtest.h"

#define KNOB	"/sys/kernel/debug/numa_reset/topology"
#define LEN	(4UL << 20)
#define PAGES	(LEN / PAGE)

static int last;		/* the node that leaves, for a while */

static void announce(bool without_last)
{
	char text[64];
	int i, n = nr_mem_nodes - without_last;
	int len = snprintf(text, sizeof(text), "1 ");

	for (i = 0; i < n; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%d",
				i ? "," : "", mem_node[i]);
	write_file(KNOB, text);
}

/* All memory of the calling process, from the last node to the first. */
static void evacuate(void)
{
	unsigned long from = 1UL << last, to = 1UL << mem_node[0];
	pid_t self = getpid(), pid;
	int status;

	pid = fork();
	if (!pid)
		_exit(syscall(SYS_migrate_pages, self, 64, &from, &to) < 0);
	waitpid(pid, &status, 0);
	if (status)
		die("migrate_pages: status 0x%x", status);
}

/* Fork without copying the memory under test, which would then be shared. */
static char *private_memory(enum page_kind kind)
{
	char *mem = memory_on(last, LEN, kind);

	madvise(mem, LEN, MADV_DONTFORK);
	return mem;
}

static void untouched(enum page_kind kind, const char *name)
{
	char *mem = private_memory(kind);
	size_t moved, back;

	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	announce(true);
	evacuate();
	moved = pages_on(mem, LEN, mem_node[0]);
	announce(false);
	run_on_node(last);
	touch(mem, LEN);
	back = pages_on(mem, LEN, last);
	ok(moved == PAGES && back == PAGES && !count_damaged(mem, LEN), name,
	   "%zu of %lu evacuated, %zu followed", moved, PAGES, back);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
	munmap(mem, LEN);
}

/* A touch had placed it well; that the node leaves is no touch. */
static void touched_before(void)
{
	char *mem = private_memory(SMALL_PAGES);
	size_t back;

	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	touch(mem, LEN);
	announce(true);
	evacuate();
	announce(false);
	touch(mem, LEN);
	back = pages_on(mem, LEN, last);
	ok(back == PAGES && !count_damaged(mem, LEN),
	   "a page that had been touched before finds its user again",
	   "%zu of %lu", back, PAGES);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
	munmap(mem, LEN);
}

static unsigned long faults_of_touch(char *mem)
{
	unsigned long before = vmstat("numa_hint_faults");

	touch(mem, LEN);
	return vmstat("numa_hint_faults") - before;
}

/* What a touch itself moves away from the leaving node is not marked again. */
static void touch_is_final(void)
{
	char *mem = private_memory(SMALL_PAGES);
	unsigned long first, second;

	announce(true);
	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	run_on_node(mem_node[0]);
	first = faults_of_touch(mem);
	second = faults_of_touch(mem);
	announce(false);
	ok(first == LEN >> 16 && !second &&
	   pages_on(mem, LEN, mem_node[0]) == PAGES,
	   "a touch off the leaving node takes one fault a window",
	   "%lu faults, then %lu", first, second);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
	munmap(mem, LEN);
}

/* Not under next touch, or from a node that stays: nobody marks anything. */
static void others_are_not_marked(void)
{
	char *mem = private_memory(SMALL_PAGES);
	unsigned long idle, staying;

	announce(true);
	evacuate();
	idle = faults_of_touch(mem);
	announce(false);
	munmap(mem, LEN);

	mem = private_memory(SMALL_PAGES);
	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	touch(mem, LEN);
	evacuate();
	staying = faults_of_touch(mem);
	ok(!idle && !staying, "without next touch, or without a leaving node, "
	   "a migration marks nothing", "%lu and %lu faults", idle, staying);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
	munmap(mem, LEN);
}

int main(void)
{
	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");
	last = mem_node[nr_mem_nodes - 1];

	untouched(SMALL_PAGES, "small pages evacuated before their touch");
	untouched(HUGE_PAGES, "huge pages evacuated before their touch");
	touched_before();
	touch_is_final();
	others_are_not_marked();
	announce(false);
	write_file(KNOB, "0 0-7");
	return tap_end();
}
