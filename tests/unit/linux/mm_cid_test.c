// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers of threads that are not used any more: at which CPUs task_mm_cid_work() looks,
 * with what hook 0310 puts into it (hook-0310-core-N.h, the Nth place;
 * test_elastic_numa.py makes them).
 */
#include <linux/cpumask.h>

#include "case.h"

/* include/linux/mm_types.h */
#define MM_CID_UNSET		(-1)
#define MM_CID_LAZY_PUT		(1U << 31)
#define mm_cid_is_valid(cid)	(!((cid) & MM_CID_LAZY_PUT))
#define mm_cidmask(mm)		(&(mm)->cidmask)
#define per_cpu_ptr(array, cpu)	(&(array)[cpu])
#define cpumask_equal(a, b)	((a)->bits[0] == (b)->bits[0])
#define cpumask_of(cpu)		(&(const struct cpumask){ { 1UL << (cpu) } })

struct mm_cid { int cid; };
struct mm_struct {
	struct mm_cid pcpu_cid[8];
	struct cpumask cidmask;
};

static bool looks_at_run_queue, looks_at_cpus;

static void remote_clear_old(struct mm_struct *mm, int cpu)
{
	struct mm_cid *pcpu_cid;

	looks_at_run_queue = false;
#include "hook-0310-core-1.h"
	looks_at_run_queue = true;
}

static void work(struct mm_struct *mm)
{
	struct cpumask *cidmask;

	looks_at_cpus = false;
	cidmask = mm_cidmask(mm);
#include "hook-0310-core-3.h"
	looks_at_cpus = true;
}

/* A number that nobody uses is found at the CPU that has it; who clears it has to look. */
static void each_cpu(const void *argument)
{
	struct mm_struct mm = { .pcpu_cid = {
		{ 0 }, { MM_CID_UNSET }, { 3 }, { 3 | MM_CID_LAZY_PUT }, { 0 | MM_CID_LAZY_PUT },
	} };
	static const bool has_one[] = { true, false, true, false, false };
	unsigned int cpu;

	for (cpu = 0; cpu < ARRAY_SIZE(has_one); cpu++) {
		remote_clear_old(&mm, cpu);
		CHECK(looks_at_run_queue == has_one[cpu], "CPU %u", cpu);
	}
}

static void all_cpus(const void *argument)
{
	/* Numbers that are taken.  One alone that is not 0 could be lower. */
	static const struct { unsigned long taken; bool looks; } cases[] = {
		{ 0x1, false }, { 0x2, true }, { 0x3, true }, { 0x81, true }, { 0x80, true },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mm_struct mm = { .cidmask = { { cases[i].taken } } };

		work(&mm);
		CHECK(looks_at_cpus == cases[i].looks, "numbers %lx", cases[i].taken);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "numbers of threads: at each CPU", each_cpu },
		{ "numbers of threads: at all CPUs", all_cpus },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
