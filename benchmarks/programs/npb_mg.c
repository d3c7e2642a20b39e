/* SPDX-License-Identifier: GPL-2.0 */
/*
 * npb_mg: multigrid, kernel MG of the NAS Parallel Benchmarks (RNR-94-007,
 * section 2.2.2), written from that specification.
 *
 * V-cycles towards the solution of Poisson's equation on a periodic cube whose
 * right side is 1 at ten points, -1 at ten and 0 elsewhere.  Residual, smoother
 * and restriction are one kind of operator: it has one weight for a point, one
 * for its 6 neighbours by a face, one for the 12 by an edge, one for the 8 by a
 * corner.  Grids have no border: rows wrap around.  An iteration is a V-cycle.
 * What it says: timed_run.h.
 *
 * Locking: none, but a critical section for the extreme points; each row of a
 * grid has one writer.
 */
#define _GNU_SOURCE

#include "npb_random.h"
#include "timed_run.h"

#define MAX_SIZE	256
#define MAX_LEVELS	8
#define POINTS		10	/* of each sign */
#define EPSILON		1e-8

struct operator {
	double point, face, edge, corner;
};

struct problem {
	char class;
	int levels;		/* the grid has 2^levels points a side */
	int iterations;
	struct operator smoother;
	double norm;		/* NPB 3.3, mg.f */
};

#define SMALL_SMOOTHER	{ -3.0 / 8, 1.0 / 32, -1.0 / 64, 0 }
#define LARGE_SMOOTHER	{ -3.0 / 17, 1.0 / 33, -1.0 / 61, 0 }

static const struct problem problems[] = {
	{ 'S', 5, 4, SMALL_SMOOTHER, 0.5307707005734e-4 },
	{ 'W', 7, 4, SMALL_SMOOTHER, 0.6467329375339e-5 },
	{ 'A', 8, 4, SMALL_SMOOTHER, 0.2433365309069e-5 },
	{ 'B', 8, 20, LARGE_SMOOTHER, 0.1800564401355e-5 },
};

static const struct operator laplace = { -8.0 / 3, 0, 1.0 / 6, 1.0 / 12 };
static const struct operator full_weight = { 0.5, 0.25, 0.125, 0.0625 };

/* A cube of n points a side, x fastest. */
struct grid {
	int n;
	double *value;
};

static struct grid make_grid(int level)
{
	size_t n = 1UL << level;

	return (struct grid){ n, timed_memory(n * n * n, sizeof(double)) };
}

/* The row at (y, z), which wrap around once. */
static inline double *row(const struct grid *g, int y, int z)
{
	int mask = g->n - 1;

	return g->value + ((size_t)(z & mask) * g->n + (y & mask)) * g->n;
}

static void clear(const struct grid *g)
{
#pragma omp parallel for schedule(static)
	for (int z = 0; z < g->n; z++)
		memset(row(g, 0, z), 0, sizeof(double) * g->n * g->n);
}

/*
 * A row and the sums of the four rows beside it and of the four across, with a
 * point more at both ends: [i + 1] is point i.
 */
struct lines {
	double own[MAX_SIZE + 2], beside[MAX_SIZE + 2], across[MAX_SIZE + 2];
};

static void gather(struct lines *to, const struct grid *g, int y, int z)
{
	const double *own = row(g, y, z);
	const double *n = row(g, y - 1, z), *s = row(g, y + 1, z);
	const double *u = row(g, y, z + 1), *d = row(g, y, z - 1);
	const double *nu = row(g, y - 1, z + 1), *nd = row(g, y - 1, z - 1);
	const double *su = row(g, y + 1, z + 1), *sd = row(g, y + 1, z - 1);
	int last = g->n;

	for (int i = 0; i < g->n; i++) {
		to->own[i + 1] = own[i];
		to->beside[i + 1] = n[i] + s[i] + u[i] + d[i];
		to->across[i + 1] = nu[i] + nd[i] + su[i] + sd[i];
	}
	to->own[0] = to->own[last];
	to->beside[0] = to->beside[last];
	to->across[0] = to->across[last];
	to->own[last + 1] = to->own[1];
	to->beside[last + 1] = to->beside[1];
	to->across[last + 1] = to->across[1];
}

/* What @op makes of point @i. */
static inline double apply(const struct operator *op, const struct lines *l,
			   int i)
{
	const double *own = l->own + i + 1, *beside = l->beside + i + 1;
	const double *across = l->across + i + 1;

	return op->point * own[0] +
	       op->face * (own[-1] + own[1] + beside[0]) +
	       op->edge * (beside[-1] + beside[1] + across[0]) +
	       op->corner * (across[-1] + across[1]);
}

/* r = v - A u; r and v may be the same. */
static void residual(struct timed_run *run, const struct grid *r,
		     const struct grid *v, const struct grid *u)
{
#pragma omp parallel
	{
		struct lines lines;

		timed_team(run);
#pragma omp for schedule(static)
		for (int z = 0; z < u->n; z++)
			for (int y = 0; y < u->n; y++) {
				double *to = row(r, y, z);
				const double *from = row(v, y, z);

				gather(&lines, u, y, z);
				for (int x = 0; x < u->n; x++)
					to[x] = from[x] - apply(&laplace,
								&lines, x);
			}
	}
}

/* u += S r */
static void smooth(const struct grid *u, const struct grid *r,
		   const struct operator *smoother)
{
#pragma omp parallel
	{
		struct lines lines;

#pragma omp for schedule(static)
		for (int z = 0; z < u->n; z++)
			for (int y = 0; y < u->n; y++) {
				double *to = row(u, y, z);

				gather(&lines, r, y, z);
				for (int x = 0; x < u->n; x++)
					to[x] += apply(smoother, &lines, x);
			}
	}
}

/* Point i of the coarser grid is point 2 i + 1 of the finer one. */
static void coarsen(const struct grid *coarse, const struct grid *fine)
{
#pragma omp parallel
	{
		struct lines lines;

#pragma omp for schedule(static)
		for (int z = 0; z < coarse->n; z++)
			for (int y = 0; y < coarse->n; y++) {
				double *to = row(coarse, y, z);

				gather(&lines, fine, 2 * y + 1, 2 * z + 1);
				for (int x = 0; x < coarse->n; x++)
					to[x] = apply(&full_weight, &lines,
						      2 * x + 1);
			}
	}
}

/* The coarser points on both sides of finer point @i: one, if it is on both. */
static inline void sides(int i, int *low, int *high)
{
	*low = (i - 1) >> 1;
	*high = i >> 1;
}

/* fine += coarse, linear in between */
static void refine(const struct grid *fine, const struct grid *coarse)
{
	int mask = coarse->n - 1;

#pragma omp parallel for schedule(static)
	for (int z = 0; z < fine->n; z++)
		for (int y = 0; y < fine->n; y++) {
			double line[MAX_SIZE / 2], *to = row(fine, y, z);
			const double *ll, *lh, *hl, *hh;
			int y0, y1, z0, z1;

			sides(y, &y0, &y1);
			sides(z, &z0, &z1);
			ll = row(coarse, y0, z0);
			lh = row(coarse, y0, z1);
			hl = row(coarse, y1, z0);
			hh = row(coarse, y1, z1);
			for (int x = 0; x < coarse->n; x++)
				line[x] = (ll[x] + lh[x] + hl[x] + hh[x]) / 4;
			for (int x = 0; x < fine->n; x++) {
				int x0, x1;

				sides(x, &x0, &x1);
				to[x] += (line[x0 & mask] + line[x1]) / 2;
			}
		}
}

/* Root of the mean square. */
static double norm(const struct grid *g)
{
	size_t points = (size_t)g->n * g->n * g->n;
	double sum = 0;

#pragma omp parallel for schedule(static) reduction(+ : sum)
	for (size_t i = 0; i < points; i++)
		sum += g->value[i] * g->value[i];
	return sqrt(sum / points);
}

/* The points with the largest values, the largest first. */
struct extremes {
	double value[POINTS];
	size_t point[POINTS];
};

static void note(struct extremes *e, double value, size_t point)
{
	int i = POINTS - 1;

	if (value <= e->value[i])
		return;
	for (; i && e->value[i - 1] < value; i--) {
		e->value[i] = e->value[i - 1];
		e->point[i] = e->point[i - 1];
	}
	e->value[i] = value;
	e->point[i] = point;
}

static void forget(struct extremes *e)
{
	for (int i = 0; i < POINTS; i++)
		e->value[i] = -INFINITY;
}

/* Where the random numbers of the grid's points are largest and smallest. */
static void find_extremes(int n, struct extremes *largest,
			  struct extremes *smallest)
{
	forget(largest);
	forget(smallest);
#pragma omp parallel
	{
		struct extremes large, small;

		forget(&large);
		forget(&small);
#pragma omp for schedule(static)
		for (size_t r = 0; r < (size_t)n * n; r++) {
			uint64_t seed = npb_skip(NPB_SEED, r * n);

			for (int x = 0; x < n; x++) {
				double value = npb_random(&seed);

				note(&large, value, r * n + x);
				note(&small, -value, r * n + x);
			}
		}
#pragma omp critical
		for (int i = 0; i < POINTS; i++) {
			note(largest, large.value[i], large.point[i]);
			note(smallest, small.value[i], small.point[i]);
		}
	}
}

static void right_side(const struct grid *v, const struct extremes *largest,
		       const struct extremes *smallest)
{
	clear(v);
	for (int i = 0; i < POINTS; i++) {
		v->value[largest->point[i]] = 1;
		v->value[smallest->point[i]] = -1;
	}
}

/* Solution and residual at each level; [1] has two points a side. */
struct pyramid {
	struct grid u[MAX_LEVELS + 1], r[MAX_LEVELS + 1];
};

static void cycle(struct timed_run *run, const struct problem *p,
		  const struct pyramid *m, const struct grid *v)
{
	int top = p->levels;

	for (int k = top; k > 1; k--)
		coarsen(&m->r[k - 1], &m->r[k]);
	clear(&m->u[1]);
	smooth(&m->u[1], &m->r[1], &p->smoother);
	for (int k = 2; k <= top; k++) {
		if (k < top)
			clear(&m->u[k]);
		refine(&m->u[k], &m->u[k - 1]);
		residual(run, &m->r[k], k < top ? &m->r[k] : v, &m->u[k]);
		smooth(&m->u[k], &m->r[k], &p->smoother);
	}
	residual(run, &m->r[top], v, &m->u[top]);
}

int main(int argc, char **argv)
{
	const struct problem *p = problems;
	struct extremes largest, smallest;
	struct timed_run run;
	struct pyramid m;
	struct grid v;
	uint64_t points = 0;

	timed_options(&run, argc, argv, "npb_mg", "SWAB",
		      "Kernel MG of the NAS Parallel Benchmarks, with OpenMP.");
	while (p->class != run.class)
		p++;

	for (int k = 1; k <= p->levels; k++) {
		m.u[k] = make_grid(k);
		m.r[k] = make_grid(k);
		points += 2UL << 3 * k;
	}
	v = make_grid(p->levels);
	points += 1UL << 3 * p->levels;
	find_extremes(v.n, &largest, &smallest);

	timed_start(&run, points * sizeof(double));
	for (unsigned long round = 0; round < run.rounds; round++) {
		const struct grid *r = &m.r[p->levels];

		right_side(&v, &largest, &smallest);
		clear(&m.u[p->levels]);
		clear(r);
		timed_round(&run);
		residual(&run, r, &v, &m.u[p->levels]);
		for (int i = 0; i < p->iterations; i++) {
			cycle(&run, p, &m, &v);
			timed_iteration(&run);
		}
		timed_rest(&run);
		timed_check_near(&run, "norm", norm(r), p->norm, EPSILON);
	}
	return timed_result(&run);
}
