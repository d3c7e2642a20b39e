// SPDX-License-Identifier: GPL-2.0
/*
 * How old a count of TCP's orphans can be: hook 0311 (hook-0311-tcp-1.h;
 * test_elastic_numa.py makes it), with time and other CPUs that are played.
 */
#include <linux/jiffies.h>

#include "case.h"

#define MAX_ORPHANS	100

static unsigned long time_now;
static int orphans, counted;
static void (*meanwhile)(void), (*then)(void);

#undef jiffies
#define jiffies			time_now
#define time_in_range_open(a, b, c)	(time_after_eq(a, b) && time_before(a, c))
#define smp_load_acquire(p)	(*(p))
#define smp_store_release(p, value)	(*(p) = (value), others(&then))

/* What another CPU does at this moment, once. */
static void others(void (**do_it)(void))
{
	void (*other)(void) = *do_it;

	*do_it = NULL;
	if (other)
		other();
}

static int tcp_orphan_count_sum(void)
{
	counted++;
	others(&meanwhile);
	return orphans;
}

static int tcp_orphan_cache;
#include "hook-0311-tcp-1.h"
	return READ_ONCE(tcp_orphan_cache) << shift > MAX_ORPHANS;
}

static void how_old(const void *argument)
{
	/* As on a machine that has just begun, and where jiffies come round. */
	static const unsigned long begins[] = { 4294667296UL, -30000UL, -50UL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(begins); i++) {
		tcp_orphan_cache = tcp_orphan_counted = counted = 0;
		time_now = begins[i];
		orphans = MAX_ORPHANS + 1;
		CHECK(tcp_too_many_orphans(0) && counted == 1, "the first time");
		orphans = 50;
		time_now += 99;
		CHECK(tcp_too_many_orphans(0) && counted == 1, "what was counted just now");
		time_now++;
		CHECK(!tcp_too_many_orphans(0) && counted == 2, "and is old");
		CHECK(!tcp_too_many_orphans(1) && tcp_too_many_orphans(2) && counted == 2, "who is penalized");
		time_now -= 10;
		CHECK(!tcp_too_many_orphans(0) && counted == 3, "counted by who saw a later time");
	}
}

static void another_asks(void)
{
	CHECK(!tcp_too_many_orphans(0), "what was counted an hour ago");
}

/* Many were, and are gone; nobody has asked since.  Two CPUs close a socket each. */
static void two_ask(const void *argument)
{
	time_now = 4294667296UL;
	orphans = MAX_ORPHANS + 1;
	CHECK(tcp_too_many_orphans(0), "many");
	orphans = 2;
	time_now += 3600 * HZ;
	meanwhile = then = another_asks;
	CHECK(!tcp_too_many_orphans(0), "few");
	CHECK(!meanwhile && !then, "others have asked while it counted, and just behind it");
}

static void time_passes(void)
{
	time_now += 60;
}

/* Adding up takes time where pages are on other hosts: what was seen first is that old. */
static void counting_takes_time(const void *argument)
{
	time_now = 4294667296UL;
	orphans = MAX_ORPHANS + 1;
	meanwhile = time_passes;
	CHECK(tcp_too_many_orphans(0) && !meanwhile, "many");
	orphans = 2;
	time_now += 39;
	CHECK(tcp_too_many_orphans(0), "99 ms old");
	time_now++;
	CHECK(!tcp_too_many_orphans(0), "taken for younger than it is");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "orphans: how old a count is", how_old },
		{ "orphans: two ask at once", two_ask },
		{ "orphans: counting takes time", counting_takes_time },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
