/* SPDX-License-Identifier: GPL-2.0 */
/*
 * npb_ep: "embarrassingly parallel", kernel EP of the NAS Parallel Benchmarks
 * (RNR-94-007, section 2.2.1), written from that specification.
 *
 * 2^m pairs of uniform numbers become pairs of normal ones where they are within
 * the unit circle; these are summed, and counted by the square ring that they
 * are in.  An iteration is 16 blocks of 2^16 pairs.  What it says: timed_run.h.
 *
 * Locking: none; sums are reductions.
 */
#define _GNU_SOURCE

#include "npb_random.h"
#include "timed_run.h"

#define PAIRS		(1UL << 16)	/* of a block */
#define BLOCKS		16UL		/* of an iteration */
#define RINGS		10
#define EPSILON		1e-8

struct problem {
	char class;
	int log_pairs;
	double sum_x, sum_y;	/* NPB 3.3, verify() of EP */
	double count;
};

static const struct problem problems[] = {
	{ 'S', 24, -3.247834652034740e3, -6.958407078382297e3, 13176389 },
	{ 'W', 25, -2.863319731645753e3, -6.320053679109499e3, 26354769 },
	{ 'A', 28, -4.295875165629892e3, -1.580732573678431e4, 210832767 },
	{ 'B', 30, 4.033815542441498e4, -2.660669192809235e4, 843345606 },
};

struct sums {
	double x, y;
	uint64_t ring[RINGS];
};

/* Adds the pairs of block @block to @to. */
static void block(struct sums *to, unsigned long block)
{
	uint64_t seed = npb_skip(NPB_SEED_EP, 2 * PAIRS * block);

	for (unsigned long i = 0; i < PAIRS; i++) {
		double x = 2 * npb_random(&seed) - 1;
		double y = 2 * npb_random(&seed) - 1;
		double t = x * x + y * y;

		if (t <= 1) {
			double factor = sqrt(-2 * log(t) / t);

			x *= factor;
			y *= factor;
			to->x += x;
			to->y += y;
			to->ring[(int)fmax(fabs(x), fabs(y))]++;
		}
	}
}

static void add(struct sums *to, const struct sums *more)
{
	to->x += more->x;
	to->y += more->y;
	for (int i = 0; i < RINGS; i++)
		to->ring[i] += more->ring[i];
}

#pragma omp declare reduction(add : struct sums : add(&omp_out, &omp_in)) \
	initializer(omp_priv = (struct sums){ 0 })

static void iterate(struct timed_run *run, struct sums *all,
		    unsigned long first)
{
	struct sums sums = { 0 };

#pragma omp parallel reduction(add : sums)
	{
		timed_team(run);
#pragma omp for schedule(static)
		for (unsigned long b = first; b < first + BLOCKS; b++)
			block(&sums, b);
	}
	add(all, &sums);
}

static void verify(struct timed_run *run, const struct problem *p,
		   const struct sums *sums)
{
	uint64_t count = 0;

	for (int i = 0; i < RINGS; i++)
		count += sums->ring[i];
	timed_check_near(run, "sum of x", sums->x, p->sum_x, EPSILON);
	timed_check_near(run, "sum of y", sums->y, p->sum_y, EPSILON);
	timed_check(run, "pairs", count, p->count, count == p->count);
}

int main(int argc, char **argv)
{
	const struct problem *p = problems;
	struct timed_run run;

	timed_options(&run, argc, argv, "npb_ep", "SWAB",
		      "Kernel EP of the NAS Parallel Benchmarks, with OpenMP.");
	while (p->class != run.class)
		p++;

	timed_start(&run, sizeof(struct sums));
	for (unsigned long round = 0; round < run.rounds; round++) {
		struct sums sums = { 0 };

		timed_round(&run);
		for (unsigned long first = 0; first < 1UL << p->log_pairs >> 16;
		     first += BLOCKS) {
			iterate(&run, &sums, first);
			timed_iteration(&run);
		}
		timed_rest(&run);
		verify(&run, p, &sums);
	}
	return timed_result(&run);
}
