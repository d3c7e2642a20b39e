/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which pages bounce: misses of vCPUs here, and what other hosts take, counted by
 * gfn in bounded memory.
 *
 * Space-Saving with its stream summary (Metwally, Agrawal, El Abbadi, "Efficient
 * Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005).  There
 * are DSM_PROFILE_PLACES places.  A page that has none takes that of the one with
 * the fewest events, and inherits their number, of which it knows nothing: its error.
 *
 * Of N events and m places:
 *  - no page has more events than its count, nor fewer than its count less its error;
 *  - no error is larger than the least count, which is N / m at most;
 *  - so each page with more than N / m events has a place, and each that has none
 *    has had at most the least count.
 * Reads, writes and takings are exact since the page has its place: together they are
 * its count less its error.
 *
 * Cost of an event: a hash, a chain of half a place in the mean, and a few pointers;
 * DSM_PROFILE_PLACES steps at most, if all pages had one hash, which a guest cannot
 * bring about since it does not know the seed.  None is allocated.
 *
 * Context: one thread; no locks.
 */
#ifndef DSM_PROFILE_H
#define DSM_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_PROFILE_PLACES	1024u

enum dsm_profile_event {
	DSM_PROFILE_READ,	/* a vCPU here missed it */
	DSM_PROFILE_WRITE,
	DSM_PROFILE_TAKEN,	/* another host wants it, or its home takes it for one */
	DSM_PROFILE_ACCESS,	/* a vCPU here used it at its home, where it stays */
	DSM_PROFILE_EVENTS
};

struct dsm_profile_page {
	uint64_t gfn, count, error;
	uint64_t events[DSM_PROFILE_EVENTS];
	uint16_t hosts;		/* bits of those from which a taking came */
};

struct dsm_profile;

/** @seed: of the hash.  It counts nothing.  Return: NULL without memory. */
struct dsm_profile *dsm_profile_create(uint64_t seed);
void dsm_profile_destroy(struct dsm_profile *profile);

/** From now on, and from nothing. */
void dsm_profile_clear(struct dsm_profile *profile);

/** @host: of DSM_PROFILE_TAKEN, below 16; else not looked at. */
void dsm_profile_add(struct dsm_profile *profile, uint64_t gfn,
		     enum dsm_profile_event event, unsigned int host);

/** Return: all events since it was cleared. */
uint64_t dsm_profile_total(const struct dsm_profile *profile);

/** Return: what a page without a place has had at most; 0 while places are free. */
uint64_t dsm_profile_least(const struct dsm_profile *profile);

/**
 * The pages with the most events, most first.
 * Return: how many, at most @most.
 */
unsigned int dsm_profile_top(const struct dsm_profile *profile,
			     struct dsm_profile_page *pages, unsigned int most);

/** NULL, or the rule that is broken.  For tests: O(places). */
const char *dsm_profile_broken_rule(const struct dsm_profile *profile);

#ifdef __cplusplus
}
#endif

#endif
