/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How often may it happen?  A bucket has so many tokens at most, and gets one
 * more each so many ns.
 *
 * Context: as transport.h.  Times are ns of a clock that is never set back.
 */
#ifndef DSM_BUCKET_H
#define DSM_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct dsm_bucket {
	uint32_t most;		/* tokens that it holds; not 0 */
	uint64_t each_ns;	/* a token comes so often; not 0 */
	uint32_t taken;		/* of most */
	uint64_t since;		/* the time up to which tokens have come */
};

static inline void dsm_bucket_init(struct dsm_bucket *bucket, uint32_t most,
				   uint64_t each_ns)
{
	*bucket = (struct dsm_bucket){ .most = most, .each_ns = each_ns };
}

static inline void dsm_bucket_put_back(struct dsm_bucket *bucket)
{
	if (bucket->taken)
		bucket->taken--;
}

/** Return: false if there is no token. */
static inline bool dsm_bucket_take(struct dsm_bucket *bucket, uint64_t now)
{
	uint64_t come = (now - bucket->since) / bucket->each_ns;

	if (!bucket->taken || come >= bucket->taken) {
		bucket->taken = 0;	/* it is full: time starts with this one */
		bucket->since = now;
	} else {
		bucket->taken -= (uint32_t)come;
		bucket->since += come * bucket->each_ns;
	}
	if (bucket->taken == bucket->most)
		return false;
	bucket->taken++;
	return true;
}

#endif
