// SPDX-License-Identifier: GPL-2.0
/*
 * The hierarchy of timers without isolated CPUs: what hook 0303 puts into it
 * (hook-0303-timer_migration-N.h, the Nth place; test_elastic_numa.py makes them), on
 * masks of a word.
 */
#include <linux/cpumask.h>

#include "case.h"

#define HK_TYPE_DOMAIN		0
#define housekeeping_cpumask(type)	(&housekeeping)
#define housekeeping_cpu(cpu, type)	test_bit(cpu, housekeeping.bits)

struct cpumask cpus_online;
static struct cpumask housekeeping;

static inline unsigned int cpumask_any_and_but(const struct cpumask *a, const struct cpumask *b,
					       unsigned int cpu)
{
	unsigned long bits = a->bits[0] & b->bits[0] & ~(1UL << cpu);

	return bits ? __builtin_ctzl(bits) : nr_cpu_ids;
}

static int goes_offline(bool online)
{
	struct { bool online; } cpu = { online }, *tmc = &cpu;

#include "hook-0303-timer_migration-2.h"
	return 1;
}

/* Who looks after the timers of those that sleep, when the last one that does goes. */
static unsigned int successor_of(unsigned int cpu)
{
	unsigned int migrator;

#include "hook-0303-timer_migration-3.h"
	return migrator;
}

static int comes_online(unsigned int cpu)
{
#include "hook-0303-timer_migration-4.h"
	return 1;
}

static void isolated(const void *argument)
{
	housekeeping.bits[0] = 0x5;
	CHECK(comes_online(0) && comes_online(2), "CPUs that take part");
	CHECK(!comes_online(1) && !comes_online(3), "isolated ones");
	CHECK(goes_offline(true) && !goes_offline(false), "it leaves what it was in");
}

static void successor(const void *argument)
{
	static const struct { unsigned long online, housekeeping; unsigned int goes, successor; } cases[] = {
		{ 0xf, 0xff, 2, 0 },	/* none is isolated */
		{ 0xf, 0xff, 0, 1 },
		{ 0xf, 0x5, 2, 0 },
		{ 0xf, 0xc, 2, 3 },	/* isolcpus=0,1 */
		{ 0xd, 0xe, 3, 2 },	/* ... and CPU 1 is not there */
	};
	unsigned int i, found;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		cpus_online.bits[0] = cases[i].online;
		housekeeping.bits[0] = cases[i].housekeeping;
		found = successor_of(cases[i].goes);
		CHECK(found == cases[i].successor, "case %u: CPU %u", i, found);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "timers: isolated CPUs", isolated },
		{ "timers: a successor", successor },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
