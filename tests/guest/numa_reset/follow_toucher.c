// SPDX-License-Identifier: GPL-2.0
/*
 * NRST_TOUCH: pages move to the node of the thread that touches them, with
 * kernel.numa_balancing off, small and huge, with one thread and with many
 * that write all the while.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nrtest.h"

#define LEN		(8UL << 20)
#define WRITERS		4
#define RESETS		40

static void small_pages_follow(void)
{
	struct numa_reset_args res;
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	size_t n;
	int err;

	ok(pages_on(mem, LEN, mem_node[0]) == LEN / PAGE,
	   "first touch puts small pages on the first node");

	err = reset_range(mem, LEN, 0, NRST_TOUCH, &res);
	ok(!err && res.marked == LEN / PAGE,
	   "a single thread's pages on its own node are marked, too",
	   "%llu of %lu", (unsigned long long)res.marked, LEN / PAGE);
	ok(res.moved == 0 && res.failed == 0 && res.ns > 0,
	   "marking moves nothing and says its time");

	run_on_node(mem_node[1]);
	n = pages_on(mem, LEN, mem_node[0]);
	ok(n == LEN / PAGE, "marked pages stay until they are touched",
	   "%zu", n);

	touch(mem, LEN);
	n = pages_on(mem, LEN, mem_node[1]);
	ok(n == LEN / PAGE, "small pages follow the toucher", "%zu of %lu", n,
	   LEN / PAGE);
	ok(!count_damaged(mem, LEN), "small pages keep their content");

	run_on_node(mem_node[0]);
	touch(mem, LEN);
	n = pages_on(mem, LEN, mem_node[1]);
	ok(n == LEN / PAGE, "a second touch without a mark moves nothing",
	   "%zu", n);
	munmap(mem, LEN);
}

static void writes_follow(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	size_t n;

	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	run_on_node(mem_node[1]);
	fill_pattern(mem, LEN);
	n = pages_on(mem, LEN, mem_node[1]);
	ok(n == LEN / PAGE, "a write is a touch", "%zu of %lu", n, LEN / PAGE);
	ok(!count_damaged(mem, LEN), "what was written by the touch is there");
	munmap(mem, LEN);
}

static void half_and_half(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	size_t there, here;

	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	touch(mem, LEN / 2);
	run_on_node(mem_node[1]);
	touch(mem + LEN / 2, LEN / 2);
	here = pages_on(mem, LEN / 2, mem_node[0]);
	there = pages_on(mem + LEN / 2, LEN / 2, mem_node[1]);
	ok(here == LEN / 2 / PAGE && there == LEN / 2 / PAGE,
	   "each half goes to the node of its own toucher", "%zu and %zu",
	   here, there);
	munmap(mem, LEN);
}

/* KiB of huge pages of the mapping at @mem, as smaps says. */
static unsigned long huge_kb(const char *mem)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long start, end, kb = 0;
	bool inside = false;
	char line[256];

	if (!smaps)
		die("no smaps");
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start <= (unsigned long)mem &&
				 (unsigned long)mem < end;
		else if (inside && sscanf(line, "AnonHugePages: %lu", &kb) == 1)
			break;
	}
	fclose(smaps);
	return kb;
}

static void huge_pages_follow(void)
{
	char *mem = memory_on(mem_node[0], LEN, HUGE_PAGES);
	struct numa_reset_args res;
	unsigned long faults, kb;
	size_t n, off;
	int err;

	kb = huge_kb(mem);
	if (kb * 1024 != LEN)
		die("no huge pages: %lu KiB of %lu", kb, LEN / 1024);

	err = reset_range(mem, LEN, 0, NRST_TOUCH, &res);
	ok(!err && res.marked == LEN / PAGE, "huge pages are marked", "%llu",
	   (unsigned long long)res.marked);
	run_on_node(mem_node[1]);
	faults = vmstat("numa_hint_faults");
	for (off = 0; off < LEN; off += HUGE)
		(void)*(volatile char *)(mem + off + 5 * PAGE);
	faults = vmstat("numa_hint_faults") - faults;
	n = pages_on(mem, LEN, mem_node[1]);
	ok(n == LEN / PAGE, "huge pages follow one touch", "%zu of %lu", n,
	   LEN / PAGE);
	ok(faults == LEN / HUGE, "one fault for each huge page", "%lu", faults);
	ok(huge_kb(mem) * 1024 == LEN, "huge pages stay huge");
	ok(!count_damaged(mem, LEN), "huge pages keep their content");
	munmap(mem, LEN);
}

static void half_a_huge_page(void)
{
	char *mem = memory_on(mem_node[0], HUGE, HUGE_PAGES);
	unsigned long before = huge_kb(mem), after;
	struct numa_reset_args res;
	size_t n;

	reset_range(mem, HUGE / 2, 0, NRST_TOUCH, &res);
	after = huge_kb(mem);
	run_on_node(mem_node[1]);
	touch(mem, HUGE);
	n = pages_on(mem, HUGE, mem_node[1]);
	ok(before * 1024 == HUGE && !after && res.marked == HUGE / 2 / PAGE &&
	   !count_damaged(mem, HUGE),
	   "a range that ends within a huge page splits its mapping",
	   "%lu KiB of it left, %llu marked, %zu followed", after,
	   (unsigned long long)res.marked, n);
	munmap(mem, HUGE);
}

/* --- Writers that never stop ------------------------------------------------ */

struct writer {
	pthread_t thread;
	int nid;
	int slot;
	char *mem;
	unsigned long rounds;
};

static volatile bool stop;

/* Adds one to its own word of each page, round after round. */
static void *write_all(void *arg)
{
	struct writer *writer = arg;
	size_t off;

	run_on_node(writer->nid);
	while (!stop) {
		for (off = 0; off < LEN; off += PAGE)
			(*(volatile unsigned long *)(writer->mem + off + 64 *
						     (writer->slot + 1)))++;
		writer->rounds++;
	}
	return NULL;
}

static void concurrent_writers(enum page_kind kind, const char *name)
{
	char *mem = memory_on(mem_node[0], LEN, kind);
	struct writer writers[WRITERS];
	size_t off, lost = 0;
	int i, errors = 0;

	stop = false;
	for (i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer) {
			.nid = mem_node[i % nr_mem_nodes],
			.slot = i,
			.mem = mem,
		};
		pthread_create(&writers[i].thread, NULL, write_all,
			       &writers[i]);
	}
	for (i = 0; i < RESETS; i++) {
		/* The whole process: stacks and heap of the writers as well. */
		errors += numa_reset(-1, NULL, 0, NRST_TOUCH) != 0;
		usleep(10000);
	}
	stop = true;
	for (i = 0; i < WRITERS; i++)
		pthread_join(writers[i].thread, NULL);

	for (i = 0; i < WRITERS; i++)
		for (off = 0; off < LEN; off += PAGE)
			lost += *(unsigned long *)(mem + off + 64 * (i + 1)) !=
				writers[i].rounds;
	ok(!errors && !lost && !count_damaged(mem, LEN), name,
	   "%d resets, %lu rounds, %zu counters wrong", RESETS,
	   writers[0].rounds, lost);
	munmap(mem, LEN);
}

int main(void)
{
	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");

	small_pages_follow();
	writes_follow();
	half_and_half();
	huge_pages_follow();
	half_a_huge_page();
	concurrent_writers(SMALL_PAGES, "no write is lost in small pages");
	concurrent_writers(HUGE_PAGES, "no write is lost in huge pages");
	return tap_end();
}
