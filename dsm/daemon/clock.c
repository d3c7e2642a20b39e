// SPDX-License-Identifier: GPL-2.0
/*
 * Intervals that hold the offset of another host's TSC.
 *
 * TSC values and offsets are numbers modulo 2^64, so differences are taken
 * without a sign and read as the shorter way round.  A width is no such number;
 * it stays below WIDTH_MOST, or nothing is known.
 */
#include <errno.h>
#include <string.h>

#include "clock.h"

#define MILLION		1000000u
#define WIDTH_MOST	(1ull << 60)	/* ticks; ten years of 3 GHz */

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

static const char *const states[DSM_NR_CLOCK_STATES] = {
	[DSM_CLOCK_NONE] = "none",
	[DSM_CLOCK_MEASURING] = "measuring",
	[DSM_CLOCK_ALIGNED] = "aligned",
	[DSM_CLOCK_WIDE] = "wide",
	[DSM_CLOCK_FREQUENCY] = "frequency",
};

const char *dsm_clock_state_name(unsigned int state)
{
	return state < DSM_NR_CLOCK_STATES ? states[state] : "?";
}

uint64_t dsm_clock_ns(uint32_t khz, uint64_t ticks)
{
	u128 ns = ((u128)ticks * MILLION + khz - 1) / khz;

	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

void dsm_clock_init(struct dsm_clock *clock, const struct dsm_clock_params *params)
{
	memset(clock, 0, sizeof(*clock));
	clock->params = *params;
}

/* Without a sign: how far are they apart, the shorter way round? */
static uint64_t distance(uint64_t a, uint64_t b)
{
	return a - b <= b - a ? a - b : b - a;
}

/* By how much can two clocks have moved against each other in @ticks? */
static uint64_t moved(const struct dsm_clock *clock, uint64_t ticks)
{
	return (uint64_t)(((u128)ticks * clock->params.drift_ppm + MILLION - 1) / MILLION);
}

/* The same bounds at another time.  Return: false if nothing is left of them. */
static bool at_time(const struct dsm_clock *clock, const struct dsm_clock_bounds *bounds,
		    uint64_t now, struct dsm_clock_bounds *then)
{
	uint64_t grown = moved(clock, distance(now, bounds->at));

	if (grown >= WIDTH_MOST / 2 || bounds->width + 2 * grown >= WIDTH_MOST)
		return false;
	then->at = now;
	then->least = bounds->least - grown;
	then->width = bounds->width + 2 * grown;
	return true;
}

/*
 * What both say, of the same time.
 * Return: 0, and @into is cut; else how far they are from each other.
 */
static uint64_t cut(struct dsm_clock_bounds *into, const struct dsm_clock_bounds *by)
{
	uint64_t ahead = by->least - into->least, behind = into->least - by->least;

	if (ahead <= behind) {
		if (ahead > into->width)
			return ahead - into->width;
		into->least = by->least;
		into->width -= ahead;
		if (into->width > by->width)
			into->width = by->width;
		return 0;
	}
	if (behind > by->width)
		return behind - by->width;
	if (into->width > by->width - behind)
		into->width = by->width - behind;
	return 0;
}

/* What one answer says; its widths are below WIDTH_MOST. */
static bool read_sample(const struct dsm_clock *clock, const struct dsm_clock_sample *s,
			struct dsm_clock_bounds *bounds)
{
	uint64_t took = s->answered - s->asked, held = s->replied - s->received;
	uint64_t grown, slack;

	if (took >= WIDTH_MOST / 4 || held >= WIDTH_MOST / 4)
		return false;
	/* While it was under way; and a counter is read as a whole number. */
	grown = moved(clock, took);
	slack = 2 * (grown + 1);
	if (held > took + slack)
		return false;
	bounds->at = s->answered;
	bounds->least = s->replied - s->answered - grown - 1;
	bounds->width = took - held + slack;
	return true;
}

static void add_to_windows(struct dsm_clock *clock, const struct dsm_clock_bounds *bounds)
{
	uint64_t length = (uint64_t)clock->params.khz * 1000 * DSM_CLOCK_WINDOW_S;
	struct dsm_clock_bounds *newest = &clock->window[clock->nr_windows ?
							 clock->nr_windows - 1 : 0];

	/* Our TSC may be read on CPUs that differ by a tick or two: with a sign. */
	if (clock->nr_windows &&
	    (int64_t)(bounds->at - clock->window_begin) < (int64_t)length) {
		if (bounds->width < newest->width)
			*newest = *bounds;
		return;
	}
	if (clock->nr_windows == DSM_CLOCK_WINDOWS)
		memmove(clock->window, clock->window + 1,
			--clock->nr_windows * sizeof(clock->window[0]));
	clock->window[clock->nr_windows++] = *bounds;
	clock->window_begin = bounds->at;
}

static void begin(struct dsm_clock *clock, const struct dsm_clock_bounds *bounds)
{
	clock->now = *bounds;
	clock->agreeing = 1;
	clock->nr_windows = 0;
	add_to_windows(clock, bounds);
}

static enum dsm_clock_taken begin_anew(struct dsm_clock *clock, uint64_t jump,
				       const struct dsm_clock_bounds *bounds)
{
	clock->generation++;
	clock->jumps++;
	clock->jump = jump;
	begin(clock, bounds);
	return DSM_CLOCK_JUMP;
}

static bool frequencies_differ(const struct dsm_clock *clock)
{
	return dsm_clock_khz_apart(clock->params.khz, clock->khz) >
	       dsm_clock_khz_ppm(clock->params.drift_ppm);
}

enum dsm_clock_taken dsm_clock_add(struct dsm_clock *clock,
				   const struct dsm_clock_sample *sample)
{
	struct dsm_clock_bounds bounds, known;
	uint64_t apart;

	if (!clock->params.khz || !sample->khz)
		return DSM_CLOCK_IGNORED;
	clock->samples++;
	if (clock->khz != sample->khz) {
		/* Another host's, or another boot's. */
		clock->khz = sample->khz;
		if (clock->agreeing)
			clock->generation++;
		clock->agreeing = 0;
	}
	if (frequencies_differ(clock))
		return DSM_CLOCK_IGNORED;
	if (!read_sample(clock, sample, &bounds)) {
		clock->impossible++;
		return DSM_CLOCK_IMPOSSIBLE;
	}
	if (!clock->agreeing || !at_time(clock, &clock->now, bounds.at, &known)) {
		begin(clock, &bounds);
		return DSM_CLOCK_TAKEN;
	}
	apart = cut(&known, &bounds);
	if (apart)
		return begin_anew(clock, apart, &bounds);
	clock->now = known;
	if (clock->agreeing < DSM_CLOCK_STEADY)
		clock->agreeing++;
	add_to_windows(clock, &bounds);
	return DSM_CLOCK_TAKEN;
}

/* What is known at @now.  Return: 0; -ENODATA; -EAGAIN; -EOPNOTSUPP. */
static int look(const struct dsm_clock *clock, uint64_t now,
		struct dsm_clock_bounds *bounds)
{
	if (!clock->params.khz || !clock->khz)
		return -ENODATA;
	if (frequencies_differ(clock))
		return -EOPNOTSUPP;
	if (clock->agreeing < DSM_CLOCK_STEADY)
		return -EAGAIN;
	return at_time(clock, &clock->now, now, bounds) ? 0 : -ENODATA;
}

static bool is_good(const struct dsm_clock *clock, uint64_t ticks)
{
	return dsm_clock_ns(clock->params.khz, ticks) <= clock->params.error_ns;
}

int dsm_clock_get(const struct dsm_clock *clock, uint64_t now,
		  struct dsm_clock_offset *offset)
{
	struct dsm_clock_bounds bounds;
	int rc = look(clock, now, &bounds);

	if (rc)
		return rc;
	offset->offset = bounds.least + bounds.width / 2;
	offset->error = bounds.width - bounds.width / 2;
	offset->generation = clock->generation;
	return is_good(clock, offset->error) ? 0 : -ERANGE;
}

enum dsm_clock_state dsm_clock_get_state(const struct dsm_clock *clock, uint64_t now)
{
	struct dsm_clock_offset offset;

	switch (-dsm_clock_get(clock, now, &offset)) {
	case 0:
		return DSM_CLOCK_ALIGNED;
	case EAGAIN:
		return DSM_CLOCK_MEASURING;
	case EOPNOTSUPP:
		return DSM_CLOCK_FREQUENCY;
	case ERANGE:
		return DSM_CLOCK_WIDE;
	default:
		return DSM_CLOCK_NONE;
	}
}

bool dsm_clock_is_misaligned(const struct dsm_clock *clock, uint64_t now, bool was)
{
	enum dsm_clock_state state = dsm_clock_get_state(clock, now);
	struct dsm_clock_offset offset;

	if (state == DSM_CLOCK_MEASURING || state == DSM_CLOCK_NONE)
		return was;
	if (state != DSM_CLOCK_ALIGNED || !was)
		return state != DSM_CLOCK_ALIGNED;
	dsm_clock_get(clock, now, &offset);
	return dsm_clock_ns(clock->params.khz, offset.error) > clock->params.error_ns / 4 * 3;
}

int dsm_clock_judge(const struct dsm_clock *clock, uint64_t now,
		    const struct dsm_clock_offset *applied,
		    uint64_t *least, uint64_t *most)
{
	struct dsm_clock_bounds bounds, point = { .least = applied->offset };
	uint64_t low, high;
	int rc = look(clock, now, &bounds);

	/* Before "too few": what was applied is of no use whatever they will say. */
	if (rc != -ENODATA && rc != -EOPNOTSUPP && applied->generation != clock->generation)
		return -ESTALE;
	if (rc)
		return rc;
	low = distance(bounds.least, applied->offset);
	high = distance(bounds.least + bounds.width, applied->offset);
	*most = low > high ? low : high;
	*least = cut(&point, &bounds);
	if (is_good(clock, *most))
		return 0;
	return is_good(clock, *least) ? -EDOM : -ERANGE;
}

uint64_t dsm_clock_beyond(const struct dsm_clock *clock, uint64_t now, uint64_t offset)
{
	struct dsm_clock_bounds bounds;
	uint64_t beyond;

	if (look(clock, now, &bounds))
		return 0;
	beyond = bounds.least - offset;
	return (int64_t)beyond > 0 ? beyond : 0;
}

static int64_t in_ppb(s128 ticks, uint64_t span, bool up)
{
	s128 ppb = ticks * 1000000000;
	s128 rest = ppb % span;

	ppb /= span;	/* towards 0 */
	if (up && rest > 0)
		ppb++;
	if (!up && rest < 0)
		ppb--;
	return (int64_t)ppb;
}

void dsm_clock_get_drift(const struct dsm_clock *clock, struct dsm_clock_drift *drift)
{
	const struct dsm_clock_bounds *from = &clock->window[0], *to;
	int64_t allowed = (int64_t)clock->params.drift_ppm * 1000, least, most;
	s128 change;

	*drift = (struct dsm_clock_drift){ -allowed, allowed, 0 };
	if (clock->nr_windows < 2)
		return;
	to = &clock->window[clock->nr_windows - 1];
	if ((int64_t)(to->at - from->at) <= 0)
		return;
	drift->span = to->at - from->at;
	change = (int64_t)(to->least - from->least);
	least = in_ppb(change - (s128)from->width, drift->span, false);
	most = in_ppb(change + (s128)to->width, drift->span, true);
	if (least > drift->least_ppb)
		drift->least_ppb = least;
	if (most < drift->most_ppb)
		drift->most_ppb = most;
}
