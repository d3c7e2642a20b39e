/* SPDX-License-Identifier: GPL-2.0 */
/*
 * npb_cg: conjugate gradient, kernel CG of the NAS Parallel Benchmarks
 * (RNR-94-007, section 2.2.3), written from that specification.
 *
 * The smallest eigenvalue of a sparse, symmetric, positive definite matrix, by
 * inverse iteration: in each iteration 25 steps of conjugate gradient solve
 * A z = x.  The matrix is a weighted sum of outer products w w' of random sparse
 * vectors; here, row by row, the product W' D W.  What it says: timed_run.h.
 *
 * The iteration mends a vector that was wrong for a while, so zeta tells of a
 * wrong matrix rather than of a wrong vector.
 *
 * Locking: none; sums are reductions, and each row has one writer.
 */
#define _GNU_SOURCE

#include "npb_random.h"
#include "timed_run.h"

#define STEPS		25
#define CONDITION	0.1
#define MIDDLE		0.5	/* of vector i, at i */
#define EPSILON		1e-10

struct problem {
	char class;
	int size;
	int nonzero;		/* of a vector, without its middle */
	int iterations;
	double shift;
	double zeta;		/* NPB 3.3, cg.f */
};

static const struct problem problems[] = {
	{ 'S', 1400, 7, 15, 10, 8.5971775078648 },
	{ 'W', 7000, 8, 15, 12, 10.362595087124 },
	{ 'A', 14000, 11, 15, 20, 17.130235054029 },
	{ 'B', 75000, 13, 75, 60, 22.712745482631 },
};

/* Rows of (column, value): those of row i begin at start[i]. */
struct sparse {
	int rows;
	uint64_t *start;
	uint32_t *column;
	double *value;
};

static struct sparse make_sparse(int rows, uint64_t entries)
{
	struct sparse m = {
		.rows = rows,
		.start = timed_memory(rows + 1, sizeof(*m.start)),
		.column = timed_memory(entries, sizeof(*m.column)),
		.value = timed_memory(entries, sizeof(*m.value)),
	};

	return m;
}

static void free_sparse(struct sparse *m)
{
	timed_free(m->start);
	timed_free(m->column);
	timed_free(m->value);
}

/* The place of @column in the row that began at @from, or where it would go. */
static uint64_t place(const struct sparse *m, uint64_t from, uint64_t to,
		      uint32_t column)
{
	while (from < to && m->column[from] != column)
		from++;
	return from;
}

/* The random vectors, as rows: W of the specification. */
static struct sparse make_vectors(const struct problem *p)
{
	struct sparse w = make_sparse(p->size,
				      (uint64_t)p->size * (p->nonzero + 1));
	uint64_t seed = NPB_SEED, end = 0;
	unsigned int power = 1;

	while (power < (unsigned int)p->size)
		power *= 2;
	npb_random(&seed);	/* the specification's zeta has taken one */
	for (int i = 0; i < p->size; i++) {
		w.start[i] = end;
		while (end - w.start[i] < (uint64_t)p->nonzero) {
			double value = npb_random(&seed);
			uint32_t column = power * npb_random(&seed);

			if (column >= (uint32_t)p->size ||
			    place(&w, w.start[i], end, column) != end)
				continue;
			w.column[end] = column;
			w.value[end++] = value;
		}
		uint64_t middle = place(&w, w.start[i], end, i);

		w.column[middle] = i;
		w.value[middle] = MIDDLE;
		end += middle == end;
	}
	w.start[p->size] = end;
	return w;
}

static struct sparse transposed(const struct sparse *m)
{
	struct sparse t = make_sparse(m->rows, m->start[m->rows]);

	memset(t.start, 0, (m->rows + 1) * sizeof(*t.start));
	for (uint64_t e = 0; e < m->start[m->rows]; e++)
		t.start[m->column[e] + 1]++;
	for (int i = 0; i < m->rows; i++)
		t.start[i + 1] += t.start[i];
	for (int i = 0; i < m->rows; i++)
		for (uint64_t e = m->start[i]; e < m->start[i + 1]; e++) {
			uint64_t to = t.start[m->column[e]]++;

			t.column[to] = i;
			t.value[to] = m->value[e];
		}
	memmove(t.start + 1, t.start, m->rows * sizeof(*t.start));
	t.start[0] = 0;
	return t;
}

/* A row of the matrix under way: a sum for each column that it has. */
struct row {
	double *sum;
	bool *there;
	uint32_t *column;	/* those that are there */
	int count;
};

static void add_to_row(struct row *row, uint32_t column, double value)
{
	if (!row->there[column]) {
		row->there[column] = true;
		row->sum[column] = 0;
		row->column[row->count++] = column;
	}
	row->sum[column] += value;
}

/* Row @i: each vector that has an i-th part, by that part and its weight. */
static void make_row(struct row *row, int i, const struct problem *p,
		     const struct sparse *w, const struct sparse *t,
		     const double *weight)
{
	row->count = 0;
	for (uint64_t e = t->start[i]; e < t->start[i + 1]; e++) {
		uint32_t v = t->column[e];
		double part = t->value[e] * weight[v];

		for (uint64_t f = w->start[v]; f < w->start[v + 1]; f++)
			add_to_row(row, w->column[f], part * w->value[f]);
	}
	add_to_row(row, i, CONDITION - p->shift);
	for (int c = 0; c < row->count; c++)
		row->there[row->column[c]] = false;
}

static struct row row_room(int size)
{
	struct row row = {
		.sum = calloc(size, sizeof(*row.sum)),
		.there = calloc(size, sizeof(*row.there)),
		.column = calloc(size, sizeof(*row.column)),
	};

	if (!row.sum || !row.there || !row.column)
		die("no memory for a row of %d", size);
	return row;
}

static void free_row(struct row *row)
{
	free(row->sum);
	free(row->there);
	free(row->column);
}

static struct sparse make_matrix(const struct problem *p)
{
	double *weight = timed_memory(p->size, sizeof(*weight));
	double ratio = pow(CONDITION, 1.0 / p->size), now = 1;
	struct sparse w = make_vectors(p), t = transposed(&w), a;
	uint64_t *count = timed_memory(p->size, sizeof(*count)), entries = 0;

	for (int i = 0; i < p->size; i++, now *= ratio)
		weight[i] = now;
#pragma omp parallel reduction(+ : entries)
	{
		struct row row = row_room(p->size);

#pragma omp for schedule(static)
		for (int i = 0; i < p->size; i++) {
			make_row(&row, i, p, &w, &t, weight);
			count[i] = row.count;
			entries += row.count;
		}
		free_row(&row);
	}
	a = make_sparse(p->size, entries);
	a.start[0] = 0;
	for (int i = 0; i < p->size; i++)
		a.start[i + 1] = a.start[i] + count[i];
#pragma omp parallel
	{
		struct row row = row_room(p->size);

#pragma omp for schedule(static)
		for (int i = 0; i < p->size; i++) {
			make_row(&row, i, p, &w, &t, weight);
			for (int c = 0; c < row.count; c++) {
				uint64_t e = a.start[i] + c;

				a.column[e] = row.column[c];
				a.value[e] = row.sum[row.column[c]];
			}
		}
		free_row(&row);
	}
	timed_free(weight);
	timed_free(count);
	free_sparse(&w);
	free_sparse(&t);
	return a;
}

struct vectors {
	double *x, *z, *p, *q, *r;
};

static inline double row_times(const struct sparse *a, int i, const double *v)
{
	double sum = 0;

	for (uint64_t e = a->start[i]; e < a->start[i + 1]; e++)
		sum += a->value[e] * v[a->column[e]];
	return sum;
}

/* q = A p; p's product with it. */
static double multiply(struct timed_run *run, const struct sparse *a,
		       const struct vectors *v)
{
	double sum = 0;

#pragma omp parallel reduction(+ : sum)
	{
		timed_team(run);
#pragma omp for schedule(static)
		for (int i = 0; i < a->rows; i++) {
			v->q[i] = row_times(a, i, v->p);
			sum += v->p[i] * v->q[i];
		}
	}
	return sum;
}

/* Solves A z = x, nearly. */
static void solve(struct timed_run *run, const struct sparse *a,
		  const struct vectors *v)
{
	double rho = 0;

#pragma omp parallel for schedule(static) reduction(+ : rho)
	for (int i = 0; i < a->rows; i++) {
		v->z[i] = 0;
		v->r[i] = v->p[i] = v->x[i];
		rho += v->x[i] * v->x[i];
	}
	for (int step = 0; step < STEPS; step++) {
		double alpha = rho / multiply(run, a, v), before = rho, beta;

		rho = 0;
#pragma omp parallel for schedule(static) reduction(+ : rho)
		for (int i = 0; i < a->rows; i++) {
			v->z[i] += alpha * v->p[i];
			v->r[i] -= alpha * v->q[i];
			rho += v->r[i] * v->r[i];
		}
		beta = rho / before;
#pragma omp parallel for schedule(static)
		for (int i = 0; i < a->rows; i++)
			v->p[i] = v->r[i] + beta * v->p[i];
		timed_mark(run);
	}
}

/* One step of the inverse iteration: x becomes z of length 1.  Return: zeta. */
static double iterate(struct timed_run *run, const struct problem *p,
		      const struct sparse *a, const struct vectors *v)
{
	double xz = 0, zz = 0, scale;

	solve(run, a, v);
#pragma omp parallel for schedule(static) reduction(+ : xz, zz)
	for (int i = 0; i < a->rows; i++) {
		xz += v->x[i] * v->z[i];
		zz += v->z[i] * v->z[i];
	}
	scale = 1 / sqrt(zz);
#pragma omp parallel for schedule(static)
	for (int i = 0; i < a->rows; i++)
		v->x[i] = scale * v->z[i];
	return p->shift + 1 / xz;
}

int main(int argc, char **argv)
{
	const struct problem *p = problems;
	struct timed_run run;
	struct sparse a;
	struct vectors v;

	timed_options(&run, argc, argv, "npb_cg", "SWAB",
		      "Kernel CG of the NAS Parallel Benchmarks, with OpenMP.");
	while (p->class != run.class)
		p++;

	v = (struct vectors){
		.x = timed_memory(p->size, sizeof(double)),
		.z = timed_memory(p->size, sizeof(double)),
		.p = timed_memory(p->size, sizeof(double)),
		.q = timed_memory(p->size, sizeof(double)),
		.r = timed_memory(p->size, sizeof(double)),
	};
	a = make_matrix(p);
	timed_start(&run, (a.rows + 1) * sizeof(*a.start) +
			  a.start[a.rows] * (sizeof(*a.column) +
					     sizeof(*a.value)) +
			  5 * p->size * sizeof(double));
	for (unsigned long round = 0; round < run.rounds; round++) {
		double zeta = NAN;

		for (int i = 0; i < p->size; i++)
			v.x[i] = 1;
		timed_round(&run);
		for (int i = 0; i < p->iterations; i++) {
			zeta = iterate(&run, p, &a, &v);
			timed_iteration(&run);
		}
		timed_rest(&run);
		timed_check_near(&run, "zeta", zeta, p->zeta, EPSILON);
	}
	return timed_result(&run);
}
