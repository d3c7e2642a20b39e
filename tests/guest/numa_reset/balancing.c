// SPDX-License-Identifier: GPL-2.0
/*
 * With kernel.numa_balancing on: next touch still decides alone, its faults do
 * not count for the placement of tasks, the scanner keeps away from the process
 * meanwhile, and comes back after its longest period, or a cancel.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "nrtest.h"

#define LEN	(16UL << 20)

/*
 * Seconds that the scanner gets to show itself.  It takes 2 or 3, but the
 * emulated machine may get a small share of a busy host.
 */
#define LONG_ENOUGH	120.0

/* How long next touch keeps the scanner away, in milliseconds. */
#define LIMIT		"/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms"

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Keep touching until the scanner has marked something, @limit s at most. */
static unsigned long scanned_within(const char *mem, double limit)
{
	unsigned long before = vmstat("numa_pte_updates"), marked;
	double end = seconds() + limit;

	do {
		touch(mem, LEN);
		marked = vmstat("numa_pte_updates") - before;
	} while (!marked && seconds() < end);
	return marked;
}

/* Pages that the balancer has booked as moved for this thread. */
static long booked(void)
{
	FILE *sched = fopen("/proc/self/sched", "r");
	char line[256];
	long pages = -1;

	if (!sched)
		die("no /proc/self/sched");
	while (pages < 0 && fgets(line, sizeof(line), sched))
		if (!strncmp(line, "numa_pages_migrated", 19))
			sscanf(strchr(line, ':') + 1, "%ld", &pages);
	fclose(sched);
	if (pages < 0)
		die("no numa_pages_migrated in /proc/self/sched");
	return pages;
}

int main(void)
{
	double scan_time, quiet;
	unsigned long marked;
	long before, after;
	char *other, *mem;
	size_t n;

	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "1");
	write_file(LIMIT, "600000");
	other = memory_on(mem_node[0], LEN, SMALL_PAGES);
	mem = memory_on(mem_node[0], LEN, SMALL_PAGES);

	/*
	 * What is on the node that a process of one thread runs on is of no
	 * interest to the scanner: run on the other one.
	 */
	run_on_node(mem_node[1]);
	scan_time = seconds();
	marked = scanned_within(other, LONG_ENOUGH);
	scan_time = seconds() - scan_time;
	ok(marked > 0, "control: the scanner is at work",
	   "%lu marked, after %.1f s", marked, scan_time);

	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	/* Marks that the scanner has left elsewhere are faults of its own. */
	touch(other, LEN);
	booked();
	before = booked();
	touch(mem, LEN);
	after = booked();
	n = pages_on(mem, LEN, mem_node[1]);
	ok(n == LEN / PAGE, "pages follow the first touch, with balancing on",
	   "%zu of %lu", n, LEN / PAGE);

	ok(before == after, "its faults are none of the balancer's",
	   "%ld pages booked", after - before);

	/* Away from the memory, several times as long as it has just needed. */
	run_on_node(mem_node[0]);
	quiet = scan_time < 2 ? 6 : 3 * scan_time;
	marked = scanned_within(mem, quiet < 120 ? quiet : 120);
	ok(!marked, "the scanner leaves a process under next touch alone",
	   "%lu marked in %.1f s", marked, quiet);

	/* It began before the quiet time, which was longer than this. */
	write_file(LIMIT, "2000");
	marked = scanned_within(mem, LONG_ENOUGH);
	ok(marked > 0, "after its longest period the scanner is back", "%lu",
	   marked);

	write_file(LIMIT, "600000");
	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
	marked = scanned_within(mem, LONG_ENOUGH);
	ok(marked > 0, "after a cancel the scanner is back", "%lu", marked);

	write_file(LIMIT, "60000");
	write_file("/proc/sys/kernel/numa_balancing", "0");
	munmap(mem, LEN);
	munmap(other, LEN);
	return tap_end();
}
