/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Statistics of a dsmd, as JSON and as the text that node_exporter's textfile
 * collector and Prometheus read.
 *
 * Histograms have fixed buckets, so that those of several hosts can be added:
 * four to each power of two from 256 ns, so that a value is known within 25 %;
 * the last bucket has everything from 34 s on.  Adding is O(1), without
 * allocation.  One thread writes and reads.
 */
#ifndef DSM_STATS_H
#define DSM_STATS_H

#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_HISTOGRAM_BUCKETS	110
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

struct dsm_stats_peer {
	bool used, up;
	const char *name;	/* of the host */
	struct dsm_transport_counters transport;
	struct dsm_histogram round_trip;
};

struct dsm_stats {
	const char *host;	/* this one's name */
	uint8_t vm[16];
	uint64_t read_faults, write_faults;	/* misses of vCPUs here */
	struct dsm_histogram read_fault, write_fault;	/* from miss to wake-up */
	uint64_t strangers[DSM_NR_ENDS];	/* ends of who was no peer */
	struct dsm_stats_peer peer[DSM_MAX_HOSTS];
};

/**
 * All as one JSON object, with a new line at its end.
 * Return: text for free(), or NULL without memory.
 */
char *dsm_stats_json(const struct dsm_stats *stats);

/** The same for node_exporter: seconds and bytes, names with dsmd_ first. */
char *dsm_stats_node_exporter(const struct dsm_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
