/* SPDX-License-Identifier: GPL-2.0 */
/*
 * npb_is: integer sort, kernel IS of the NAS Parallel Benchmarks (RNR-94-007,
 * section 2.2.5), written from that specification.
 *
 * In each of ten iterations two keys change, and all are ranked: how many keys
 * are at most as large.  Each thread counts its part of the keys; then each
 * takes a part of the values, and adds up what all have counted.  Five ranks of
 * each iteration are known; at the end, the keys are sorted by their ranks, as
 * the specification wants, and compared with what they were made, since neither
 * of the two notices each key that is lost.  What it says: timed_run.h.
 *
 * Locking: none; barriers part the steps of a ranking.
 */
#define _GNU_SOURCE

#include "npb_random.h"
#include "timed_run.h"

#define ITERATIONS	10
#define PROBES		5

struct problem {
	char class;
	int log_keys, log_values;
	uint32_t index[PROBES];		/* NPB 3.3, is.c */
	int64_t rank[PROBES];
	/*
	 * In iteration i a probe's rank is rank + i - up_late if its bit is in
	 * @up, and rank - i + down_late if not.
	 */
	unsigned int up;
	int up_late, down_late;
};

static const struct problem problems[] = {
	{ 'S', 16, 11, { 48427, 17148, 23627, 62548, 4431 },
	  { 0, 18, 346, 64917, 65463 }, 0x07, 0, 0 },
	{ 'W', 20, 16, { 357773, 934767, 875723, 898999, 404505 },
	  { 1249, 11698, 1039987, 1043896, 1048018 }, 0x03, 2, 0 },
	{ 'A', 23, 19, { 2112377, 662041, 5336171, 3642833, 4250760 },
	  { 104, 17523, 123928, 8288932, 8388264 }, 0x07, 1, 1 },
	{ 'B', 25, 21, { 41869, 812306, 5102857, 18232239, 26860214 },
	  { 33422937, 10244, 59149, 33135281, 99 }, 0x16, 0, 0 },
};

/* A team's counts: one array a thread, made when a team first needs it. */
struct counts {
	uint32_t **of;
	uint64_t *sum;		/* of the values of each thread's part */
	int threads;
	size_t values;
};

static void make_room(struct counts *counts, int threads)
{
	if (threads <= counts->threads)
		return;
	counts->of = realloc(counts->of, threads * sizeof(*counts->of));
	counts->sum = realloc(counts->sum, threads * sizeof(*counts->sum));
	if (!counts->of || !counts->sum)
		die("no memory for %d threads", threads);
	for (; counts->threads < threads; counts->threads++)
		counts->of[counts->threads] =
			timed_memory(counts->values, sizeof(uint32_t));
}

/* The keys of the specification: sums of four numbers, so they have a middle. */
static void make_keys(uint32_t *keys, size_t n, size_t values)
{
#pragma omp parallel
	{
		uint64_t seed = 0;
		size_t next = n;	/* whose seed that is */

#pragma omp for schedule(static)
		for (size_t i = 0; i < n; i++) {
			double sum = 0;

			if (i != next)
				seed = npb_skip(NPB_SEED, 4 * i);
			for (int j = 0; j < 4; j++)
				sum += npb_random(&seed);
			keys[i] = values / 4 * sum;
			next = i + 1;
		}
	}
}

/* upto[v] becomes the number of keys that are v or less. */
static void rank(struct timed_run *run, const uint32_t *keys, size_t n,
		 uint32_t *upto, struct counts *counts)
{
	size_t values = counts->values;

#pragma omp parallel
	{
		int me = omp_get_thread_num(), team = omp_get_num_threads();
		uint64_t below = 0, sum = 0;
		uint32_t *mine;

		timed_team(run);
#pragma omp single
		make_room(counts, team);

		mine = counts->of[me];
		memset(mine, 0, values * sizeof(*mine));
#pragma omp for schedule(static)
		for (size_t i = 0; i < n; i++)
			mine[keys[i]]++;
		/* Both loops give a thread the same values: schedule(static). */
#pragma omp for schedule(static)
		for (size_t v = 0; v < values; v++) {
			for (int t = 0; t < team; t++)
				sum += counts->of[t][v];
			upto[v] = sum;
		}
		counts->sum[me] = sum;
#pragma omp barrier
		for (int t = 0; t < me; t++)
			below += counts->sum[t];
#pragma omp for schedule(static)
		for (size_t v = 0; v < values; v++)
			upto[v] += below;
	}
}

/* How many of the probes have another rank than they should in iteration @i. */
static int wrong_probes(const struct problem *p, const uint32_t *probes,
			const uint32_t *upto, int i)
{
	int wrong = 0;

	for (int j = 0; j < PROBES; j++) {
		int64_t rank = probes[j] ? upto[probes[j] - 1] : 0;
		int64_t wanted = p->up >> j & 1 ?
			p->rank[j] + i - p->up_late :
			p->rank[j] - i + p->down_late;

		wrong += rank != wanted;
	}
	return wrong;
}

/* Sorts by the ranks, which are used up.  Return: how many keys are out of order. */
static size_t out_of_order(const uint32_t *keys, uint32_t *sorted, size_t n,
			   uint32_t *upto)
{
	size_t wrong = 0;

	memset(sorted, 0xff, n * sizeof(*sorted));
	for (size_t i = 0; i < n; i++) {
		uint32_t place = --upto[keys[i]];

		if (place < n)
			sorted[place] = keys[i];
	}
	for (size_t i = 1; i < n; i++)
		wrong += sorted[i - 1] > sorted[i];
	/* A place that nobody took is as large as can be: the last one, too. */
	return wrong + (sorted[n - 1] == UINT32_MAX);
}

/* How many keys are not what they were made, or set to, by the last iteration. */
static size_t changed_keys(const uint32_t *keys, uint32_t *again, size_t n,
			   size_t values)
{
	size_t changed = 0;

	make_keys(again, n, values);
	for (int i = 1; i <= ITERATIONS; i++) {
		again[i] = i;
		again[i + ITERATIONS] = values - i;
	}
	for (size_t i = 0; i < n; i++)
		changed += keys[i] != again[i];
	return changed;
}

static void play(struct timed_run *run, const struct problem *p,
		 struct counts *counts, uint32_t *keys, uint32_t *upto,
		 uint32_t *sorted)
{
	size_t n = 1UL << p->log_keys, values = counts->values;
	size_t disorder, changed;
	int wrong = 0;

	make_keys(keys, n, values);
	timed_round(run);
	for (int i = 1; i <= ITERATIONS; i++) {
		uint32_t probes[PROBES];

		keys[i] = i;
		keys[i + ITERATIONS] = values - i;
		for (int j = 0; j < PROBES; j++)
			probes[j] = keys[p->index[j]];
		rank(run, keys, n, upto, counts);
		wrong += wrong_probes(p, probes, upto, i);
		timed_iteration(run);
	}
	timed_rest(run);
	disorder = out_of_order(keys, sorted, n, upto);
	changed = changed_keys(keys, sorted, n, values);
	timed_check(run, "wrong ranks", wrong, 0, !wrong);
	timed_check(run, "keys out of order", disorder, 0, !disorder);
	timed_check(run, "keys that changed", changed, 0, !changed);
}

int main(int argc, char **argv)
{
	const struct problem *p = problems;
	struct counts counts = { 0 };
	uint32_t *keys, *upto, *sorted;
	struct timed_run run;
	size_t n;

	timed_options(&run, argc, argv, "npb_is", "SWAB",
		      "Kernel IS of the NAS Parallel Benchmarks, with OpenMP.");
	while (p->class != run.class)
		p++;

	n = 1UL << p->log_keys;
	counts.values = 1UL << p->log_values;
	keys = timed_memory(n, sizeof(*keys));
	sorted = timed_memory(n, sizeof(*sorted));
	upto = timed_memory(counts.values, sizeof(*upto));

	/* To that come the counts, as many as a team has threads. */
	timed_start(&run, (n + counts.values) * sizeof(uint32_t));
	for (unsigned long round = 0; round < run.rounds; round++)
		play(&run, p, &counts, keys, upto, sorted);
	return timed_result(&run);
}
