/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stream: STREAM's four kernels (McCalpin, "Memory bandwidth and machine balance
 * in current high performance computers", 1995) over three arrays: copy, scale,
 * add, triad, ten times.
 *
 * What the arrays must hold follows from the same operations on three numbers;
 * here each element is compared, where STREAM compares means.  The classes are
 * this project's.  An iteration is all four kernels.  stream_check is another
 * program: its result is exact for each word.  What it says: timed_run.h.
 *
 * Locking: none; each element has one writer.
 */
#define _GNU_SOURCE

#include "timed_run.h"

#define TIMES		10
#define SCALAR		3.0
#define EPSILON		1e-13	/* STREAM's, for 64-bit numbers */

struct problem {
	char class;
	int log_elements;	/* of an array */
};

static const struct problem problems[] = {
	{ 'S', 16 }, { 'W', 21 }, { 'A', 23 }, { 'B', 25 },
};

struct arrays {
	double *a, *b, *c;
	size_t n;
};

static void fill(const struct arrays *s)
{
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < s->n; i++) {
		s->a[i] = 1;
		s->b[i] = 2;
		s->c[i] = 0;
	}
}

static void copy(struct timed_run *run, const struct arrays *s)
{
#pragma omp parallel
	{
		timed_team(run);
#pragma omp for schedule(static)
		for (size_t i = 0; i < s->n; i++)
			s->c[i] = s->a[i];
	}
}

static void scale(const struct arrays *s)
{
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < s->n; i++)
		s->b[i] = SCALAR * s->c[i];
}

static void add(const struct arrays *s)
{
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < s->n; i++)
		s->c[i] = s->a[i] + s->b[i];
}

static void triad(const struct arrays *s)
{
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < s->n; i++)
		s->a[i] = s->b[i] + SCALAR * s->c[i];
}

static size_t wrong_elements(const double *array, size_t n, double wanted)
{
	size_t wrong = 0;

#pragma omp parallel for schedule(static) reduction(+ : wrong)
	for (size_t i = 0; i < n; i++)
		wrong += !(fabs(array[i] / wanted - 1) <= EPSILON);
	return wrong;
}

static void verify(struct timed_run *run, const struct arrays *s)
{
	double a = 1, b = 2, c = 0;
	size_t wrong;

	for (int i = 0; i < TIMES; i++) {
		c = a;
		b = SCALAR * c;
		c = a + b;
		a = b + SCALAR * c;
	}
	wrong = wrong_elements(s->a, s->n, a) + wrong_elements(s->b, s->n, b) +
		wrong_elements(s->c, s->n, c);
	timed_check(run, "wrong elements", wrong, 0, !wrong);
}

int main(int argc, char **argv)
{
	const struct problem *p = problems;
	struct timed_run run;
	struct arrays s;

	timed_options(&run, argc, argv, "stream", "SWAB",
		      "STREAM's copy, scale, add and triad, with OpenMP.");
	while (p->class != run.class)
		p++;

	s.n = 1UL << p->log_elements;
	s.a = timed_memory(s.n, sizeof(double));
	s.b = timed_memory(s.n, sizeof(double));
	s.c = timed_memory(s.n, sizeof(double));
	timed_start(&run, 3 * s.n * sizeof(double));
	for (unsigned long round = 0; round < run.rounds; round++) {
		fill(&s);
		timed_round(&run);
		for (int i = 0; i < TIMES; i++) {
			copy(&run, &s);
			scale(&s);
			add(&s);
			triad(&s);
			timed_iteration(&run);
		}
		timed_rest(&run);
		verify(&run, &s);
	}
	return timed_result(&run);
}
