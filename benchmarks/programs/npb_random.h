/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The pseudorandom numbers of the NAS Parallel Benchmarks ("The NAS Parallel
 * Benchmarks", RNR-94-007, section 2.3): x' = 5^13 x mod 2^46, as a number from
 * 0 to 1 x' 2^-46.  The specification has them in floating point, in halves; in
 * integers modulo 2^64 they are the same, since 2^46 divides that.
 */
#ifndef NPB_RANDOM_H
#define NPB_RANDOM_H

#include <stdint.h>

#define NPB_FACTOR	1220703125ULL		/* 5^13 */
#define NPB_MASK	((1ULL << 46) - 1)

/* The seeds of EP, and of the others. */
#define NPB_SEED_EP	271828183ULL
#define NPB_SEED	314159265ULL

/* The next number of the sequence at *x. */
static inline double npb_random(uint64_t *x)
{
	*x = *x * NPB_FACTOR & NPB_MASK;
	return *x * 0x1p-46;
}

/* Where the sequence is @n numbers after @x. */
static inline uint64_t npb_skip(uint64_t x, uint64_t n)
{
	uint64_t factor = NPB_FACTOR;

	for (; n; n >>= 1) {
		if (n & 1)
			x = x * factor & NPB_MASK;
		factor = factor * factor & NPB_MASK;
	}
	return x;
}

#endif
