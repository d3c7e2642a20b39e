/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Statistics of a dsmd, as JSON and as the text that node_exporter's textfile
 * collector and Prometheus read.
 * One thread writes and reads.
 */
#ifndef DSM_STATS_H
#define DSM_STATS_H

#include "clock.h"
#include "engine.h"
#include "polling.h"
#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a peer's clock stands to ours; clock.h has the words. */
struct dsm_stats_clock {
	unsigned int state;	/* enum dsm_clock_state */
	uint64_t offset;	/* ticks, modulo 2^64; of "aligned" and "wide" */
	uint64_t error_ns;	/* likewise */
	uint32_t khz;		/* of the peer's TSC; 0: it told none */
	struct dsm_clock_drift drift;
	uint64_t drift_ms;	/* that the drift was measured over; 0: it was not */
	uint64_t samples, impossible, jumps;
	bool two_times;		/* of the guest, there and here; or nobody can know */
};

struct dsm_stats_peer {
	bool used, up;
	const char *name;	/* of the host */
	struct dsm_transport_counters transport;
	struct dsm_histogram round_trip;
	struct dsm_stats_clock clock;
};

struct dsm_stats {
	const char *host;	/* this one's name */
	uint32_t tsc_khz;	/* of our TSC; 0: it can't be compared */
	uint64_t time_jumps, time_jumped_ns;	/* the guest's time here: so often, by so much together */
	int64_t certificate_expires, ca_expires;	/* ours: expiry.h */
	uint8_t vm[16];
	uint64_t read_faults, write_faults;	/* misses of vCPUs here */
	struct dsm_histogram read_fault, write_fault;	/* from miss to wake-up */
	const struct dsm_engine_counts *engine;	/* NULL: none of its numbers */
	struct dsm_poll_counts poll;
	const struct dsm_xen_waits *xen;	/* NULL: not known */
	uint64_t strangers[DSM_NR_ENDS];	/* ends of who was no peer */
	struct dsm_stats_peer peer[DSM_MAX_HOSTS];
};

/**
 * All as one JSON object, with a new line at its end.
 * Return: text for free(), or NULL without memory.
 */
char *dsm_stats_json(const struct dsm_stats *stats);

/**
 * What was counted by page, most first: for dsmctl top; docs/dsm-control.md.
 * @ns: for how long.  @stats: for names.
 */
char *dsm_stats_profile_json(const struct dsm_stats *stats,
			     const struct dsm_profile *profile, uint64_t ns);

/** The same for node_exporter: seconds and bytes, names with dsmd_ first. */
char *dsm_stats_node_exporter(const struct dsm_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
