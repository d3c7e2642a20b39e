// SPDX-License-Identifier: GPL-2.0
/*
 * Buckets by powers of two, four to each.
 */
#include "histogram.h"

#define FIRST_BIT	8	/* of DSM_HISTOGRAM_FIRST */
#define STEPS		DSM_HISTOGRAM_STEPS
#define LAST_BUCKET	(DSM_HISTOGRAM_BUCKETS - 1)

_Static_assert(DSM_HISTOGRAM_FIRST == 1 << FIRST_BIT, "the first bucket");

unsigned int dsm_histogram_bucket(uint64_t ns)
{
	unsigned int bit, bucket;

	if (ns < DSM_HISTOGRAM_FIRST)
		return 0;
	bit = 63u - (unsigned int)__builtin_clzll(ns);
	bucket = 1 + (bit - FIRST_BIT) * STEPS + (ns >> (bit - 2) & 3);
	return bucket < LAST_BUCKET ? bucket : LAST_BUCKET;
}

uint64_t dsm_histogram_end(unsigned int bucket)
{
	unsigned int power = bucket / STEPS, step = bucket % STEPS;

	if (bucket >= LAST_BUCKET)
		return UINT64_MAX;
	return (uint64_t)(STEPS + step) << (power + FIRST_BIT - 2);
}

void dsm_histogram_add(struct dsm_histogram *histogram, uint64_t ns)
{
	histogram->count++;
	histogram->bucket[dsm_histogram_bucket(ns)]++;
	if (ns > histogram->most)
		histogram->most = ns;
	histogram->sum = ns > UINT64_MAX - histogram->sum ?
			 UINT64_MAX : histogram->sum + ns;
}

uint64_t dsm_histogram_quantile(const struct dsm_histogram *histogram,
				unsigned int permille)
{
	/* The rank, rounded up, without an overflow. */
	uint64_t rank = histogram->count / 1000 * permille +
			(histogram->count % 1000 * permille + 999) / 1000;
	uint64_t seen = 0, end;
	unsigned int i;

	if (!histogram->count)
		return 0;
	for (i = 0; i < LAST_BUCKET; i++) {
		seen += histogram->bucket[i];
		if (seen >= rank)
			break;
	}
	end = dsm_histogram_end(i);
	return end < histogram->most ? end : histogram->most;
}
