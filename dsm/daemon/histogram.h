/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long things take.  Histograms have fixed buckets, so that those of several
 * hosts can be added: four to each power of two from 256 ns, so that a value is
 * known within 25 %; the last bucket has everything from 34 s on.  Adding is
 * O(1), without allocation.
 */
#ifndef DSM_HISTOGRAM_H
#define DSM_HISTOGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_HISTOGRAM_BUCKETS	110
#define DSM_HISTOGRAM_STEPS	4	/* buckets to a power of two */
#define DSM_HISTOGRAM_FIRST	256	/* ns: all below are in bucket 0 */

struct dsm_histogram {
	uint64_t count;
	uint64_t sum;		/* ns; stays at its highest value */
	uint64_t most;		/* ns */
	uint64_t bucket[DSM_HISTOGRAM_BUCKETS];
};

void dsm_histogram_add(struct dsm_histogram *histogram, uint64_t ns);

/** Return: the bucket that a time belongs to. */
unsigned int dsm_histogram_bucket(uint64_t ns);

/** Return: the first time, in ns, that is too long for a bucket; UINT64_MAX for the last. */
uint64_t dsm_histogram_end(unsigned int bucket);

/**
 * A time, in ns, that @permille of those added did not exceed: the end of the
 * bucket, or the longest time if that is less.  500: the median.
 * @permille: 1 .. 1000.
 * Return: 0 if nothing was added.
 */
uint64_t dsm_histogram_quantile(const struct dsm_histogram *histogram,
				unsigned int permille);

#ifdef __cplusplus
}
#endif

#endif
