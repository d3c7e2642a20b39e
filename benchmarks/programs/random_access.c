/* SPDX-License-Identifier: GPL-2.0 */
/*
 * random_access: RandomAccess of the HPC Challenge benchmarks, by its rules.
 *
 * A table of 2^n words, word i being i; four times as many updates as words, each
 * of the word that a pseudorandom number of 64 bits names by its low bits, by an
 * exclusive or with that number.  Threads do not take turns, so an update may be
 * lost.  Afterwards the same updates are made again, each whole: at most 1 % of
 * the words may then differ from their numbers.
 *
 * By the rules a thread may look ahead by 1024 updates at most; it looks ahead
 * by none.  The rules want half of the memory as the table; the classes are this
 * project's, as large as the lab can have.  An iteration is a sixteenth of the
 * updates.  What it says: timed_run.h.
 *
 * Locking: none; words are read and written whole, and in the verification
 * changed by one atomic operation.
 */
#define _GNU_SOURCE

#include "timed_run.h"

#define POLYNOMIAL	7ULL	/* x^64 = x^2 + x + 1 */
#define UPDATES		4	/* for each word */
#define ITERATIONS	16
#define BLOCK		4096UL	/* updates in a row by one thread */
#define WRONG		0.01

struct problem {
	char class;
	int log_words;
};

static const struct problem problems[] = {
	{ 'S', 16 }, { 'W', 20 }, { 'A', 23 }, { 'B', 26 },
};

/* The number after @x: times the polynomial x. */
static inline uint64_t next(uint64_t x)
{
	return x << 1 ^ (x >> 63 ? POLYNOMIAL : 0);
}

static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t sum = 0;

	for (; b; b >>= 1) {
		if (b & 1)
			sum ^= a;
		a = next(a);
	}
	return sum;
}

/* The number after @n others; the first is 1. */
static uint64_t number_at(uint64_t n)
{
	uint64_t result = 1, factor = 2;

	for (; n; n >>= 1) {
		if (n & 1)
			result = product(result, factor);
		factor = product(factor, factor);
	}
	return result;
}

static void fill(uint64_t *table, size_t words)
{
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < words; i++)
		table[i] = i;
}

/* Updates first to first + count - 1, as quickly as can be. */
static void update(struct timed_run *run, uint64_t *table, size_t words,
		   uint64_t first, uint64_t count)
{
#pragma omp parallel
	{
		timed_team(run);
#pragma omp for schedule(static)
		for (uint64_t b = first; b < first + count; b += BLOCK) {
			uint64_t x = number_at(b);

			for (unsigned long i = 0; i < BLOCK; i++) {
				uint64_t *word, old;

				x = next(x);
				word = table + (x & (words - 1));
				old = __atomic_load_n(word, __ATOMIC_RELAXED);
				__atomic_store_n(word, old ^ x,
						 __ATOMIC_RELAXED);
			}
		}
	}
}

/* All updates again, each whole.  Return: how many words are not as at first. */
static size_t wrong_words(uint64_t *table, size_t words)
{
	size_t wrong = 0;

#pragma omp parallel for schedule(static)
	for (uint64_t b = 0; b < UPDATES * words; b += BLOCK) {
		uint64_t x = number_at(b);

		for (unsigned long i = 0; i < BLOCK; i++) {
			x = next(x);
			__atomic_fetch_xor(table + (x & (words - 1)), x,
					   __ATOMIC_RELAXED);
		}
	}
#pragma omp parallel for schedule(static) reduction(+ : wrong)
	for (size_t i = 0; i < words; i++)
		wrong += table[i] != i;
	return wrong;
}

int main(int argc, char **argv)
{
	const struct problem *p = problems;
	struct timed_run run;
	uint64_t *table;
	size_t words;

	timed_options(&run, argc, argv, "random_access", "SWAB",
		      "RandomAccess of the HPC Challenge, with OpenMP.");
	while (p->class != run.class)
		p++;

	words = 1UL << p->log_words;
	table = timed_memory(words, sizeof(*table));
	timed_start(&run, words * sizeof(*table));
	for (unsigned long round = 0; round < run.rounds; round++) {
		uint64_t part = UPDATES * words / ITERATIONS;
		size_t wrong;

		fill(table, words);
		timed_round(&run);
		for (int i = 0; i < ITERATIONS; i++) {
			update(&run, table, words, i * part, part);
			timed_iteration(&run);
		}
		timed_rest(&run);
		wrong = wrong_words(table, words);
		timed_check(&run, "wrong words", wrong, 0,
			    wrong <= words * WRONG);
	}
	return timed_result(&run);
}
