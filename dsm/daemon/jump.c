// SPDX-License-Identifier: GPL-2.0
/*
 * By how much this slice's time has to jump.
 */
#include <errno.h>
#include <string.h>

#include "jump.h"

#define MILLION	1000000u

_Static_assert(DSM_JUMP_MOST_MS * 1000 / DSM_JUMP_EACH_S == DSM_CLOCK_MENDED_PPM, "what jumps mend");

__extension__ typedef unsigned __int128 u128;

void dsm_jumps_init(struct dsm_jumps *j, uint32_t khz, uint32_t drift_ppm)
{
	memset(j, 0, sizeof(*j));
	j->khz = khz;
	j->drift_ppm = drift_ppm;
}

void dsm_jumps_begin(struct dsm_jumps *j, uint64_t offset, uint64_t now)
{
	j->has = true;
	j->offset = offset;
	j->since = now;
	j->last = now;
	j->credit = 0;
}

int dsm_jumps_heard(struct dsm_jumps *j, unsigned int host, uint64_t offset)
{
	if (j->peer[host].has && (int64_t)(offset - j->peer[host].offset) < 0)
		return -EINVAL;
	j->peer[host].has = true;
	j->peer[host].offset = offset;
	return 0;
}

void dsm_jumps_forget(struct dsm_jumps *j, unsigned int host)
{
	j->peer[host].has = false;
}

bool dsm_jumps_applied(const struct dsm_jumps *j, unsigned int host,
		       const struct dsm_clock *clock, struct dsm_clock_offset *applied)
{
	if (!j->has || !j->peer[host].has)
		return false;
	/* What is known now is judged, whether or not it was otherwise once. */
	*applied = (struct dsm_clock_offset){
		.offset = j->offset - j->peer[host].offset, .generation = clock->generation,
	};
	return true;
}

/* Ticks from then until now; our TSC may be read on CPUs that differ by a tick or two. */
static uint64_t passed(uint64_t then, uint64_t now)
{
	return (int64_t)(now - then) > 0 ? now - then : 0;
}

static uint64_t credit(const struct dsm_jumps *j, uint64_t now)
{
	uint64_t most = (uint64_t)j->khz * DSM_JUMP_MOST_MS;
	u128 all = (u128)passed(j->since, now) * j->drift_ppm / MILLION + j->credit;

	return all < most ? (uint64_t)all : most;
}

uint64_t dsm_jumps_look(struct dsm_jumps *j, unsigned int host,
			const struct dsm_clock *clock, uint64_t now)
{
	uint64_t behind, most, wait = (uint64_t)j->khz * 1000 * DSM_JUMP_EACH_S;
	struct dsm_clock_offset applied;

	if (!dsm_jumps_applied(j, host, clock, &applied))
		return 0;
	behind = dsm_clock_beyond(clock, now, applied.offset);
	if (behind > j->seen)
		j->seen = behind;
	/* Who is ahead by more has this turn, or has gone. */
	if (behind < j->seen / 2)
		wait *= 2;
	if (passed(j->last, now) < wait)
		return 0;
	most = credit(j, now);
	return behind < most ? behind : most;
}

void dsm_jumps_done(struct dsm_jumps *j, uint64_t now, uint64_t ticks, bool could)
{
	j->credit = credit(j, now) - ticks;
	j->since = now;
	j->last = now;
	j->seen = 0;
	if (!could)
		return;
	j->offset += ticks;
	j->jumps++;
	j->ticks += ticks;
}
