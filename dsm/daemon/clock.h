/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the clocks (TSCs) of two hosts stand to each other.
 *
 * The offset of a peer is what its TSC says less what ours says at the same
 * moment, in ticks modulo 2^64.  One question and its answer bound it from both
 * sides, however long each way took: the peer's TSC, read when the question had
 * come, is not less than at the moment when it was sent; read before the answer
 * went, it is not more than at the moment when that came.  Nothing is assumed of
 * the two ways, so what is said here is an interval that holds the true offset,
 * not an estimate with an error that is likely.
 *
 * From one answer to the next the interval grows at both ends with the greatest
 * drift that is allowed (`clock_drift_ppm` in dsm.toml), and is cut with what the
 * next answer says.  So a slow answer does no harm, and a quick one is used for as
 * long as it is the best one: the filter by the least round trip, with its error.
 *
 * This holds under three assumptions, which can be checked in part:
 *  - TSCs of one host are in step (Xen's "reliable TSC") and are not scaled;
 *  - the rates of two hosts differ by no more than clock_drift_ppm;
 *  - the peer tells the truth.
 * Answers that contradict each other are seen (a TSC that was set, a host that was
 * suspended, clocks that drift more than allowed, a peer that lies without a plan):
 * DSM_CLOCK_JUMP.  A peer that adds the same number to all that it says is not
 * seen, and cannot be.
 *
 * For vCPUs in another slice: guest time is a function of one TSC.  A slice gets
 * dsm_clock_get()'s offset once, before its first vCPU starts (XEN_DSM_SET_TSC: the
 * offset of slice 0 and our peer's, its home's, in sum).  From then on it jumps ahead
 * when it is behind (jump.h), and dsm_clock_judge() says how wrong it is.
 *
 * Plain functions of a state and of numbers: no I/O, no clock of its own, no
 * allocation.  Context: one thread writes; all times are TSC values of this host.
 */
#ifndef DSM_CLOCK_H
#define DSM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_CLOCK_STEADY	8	/* answers in agreement before one is believed */
#define DSM_CLOCK_WINDOWS	8	/* that the drift is measured over */
#define DSM_CLOCK_WINDOW_S	64
#define DSM_CLOCK_DRIFT_MOST	10000	/* ppm */
#define DSM_CLOCK_MENDED_PPM	1000	/* most that jumps can make up for (jump.h) */
/*
 * Xen measures the frequency at boot, for 50 ms, by a timer that has a crystal of its
 * own: two that are the same may be told this much apart.
 */
#define DSM_CLOCK_KHZ_ERROR_PPM	200

enum dsm_clock_state {
	DSM_CLOCK_NONE,		/* no answer with a clock, or none of our own */
	DSM_CLOCK_MEASURING,	/* too few answers since the beginning or a jump */
	DSM_CLOCK_ALIGNED,
	DSM_CLOCK_WIDE,		/* known, and not as well as clock_error_us wants */
	DSM_CLOCK_FREQUENCY,	/* frequencies that differ: refused, nothing scales */
	DSM_NR_CLOCK_STATES
};

/** Return: two frequencies may be told so many ppm apart, with this clock_drift_ppm. */
static inline uint32_t dsm_clock_khz_ppm(uint32_t drift_ppm)
{
	return (drift_ppm < DSM_CLOCK_MENDED_PPM ? drift_ppm : DSM_CLOCK_MENDED_PPM) +
	       DSM_CLOCK_KHZ_ERROR_PPM;
}

/** Return: by so many ppm two frequencies, which are not both 0, differ; rounded up. */
static inline uint32_t dsm_clock_khz_apart(uint32_t one, uint32_t other)
{
	uint64_t more = one > other ? one : other, less = one > other ? other : one;

	return (uint32_t)(((more - less) * 1000000 + more - 1) / more);
}

/** Return: a word for statistics, "aligned"; "?" if there is no such state. */
const char *dsm_clock_state_name(unsigned int state);

struct dsm_clock_params {
	uint32_t khz;		/* of our TSC; 0: it can't be used */
	uint32_t drift_ppm;	/* 1 .. DSM_CLOCK_DRIFT_MOST */
	uint64_t error_ns;	/* that is good enough; not 0 */
};

/* The offset is least .. least + width (modulo 2^64) at our TSC `at`. */
struct dsm_clock_bounds {
	uint64_t at, least, width;
};

struct dsm_clock {
	struct dsm_clock_params params;
	uint32_t khz;			/* the peer's; 0: nothing was heard */
	uint32_t generation;		/* changes with each jump */
	uint32_t agreeing;		/* answers in this generation, up to DSM_CLOCK_STEADY */
	struct dsm_clock_bounds now;	/* all answers of this generation */
	struct dsm_clock_bounds window[DSM_CLOCK_WINDOWS];	/* the best of each */
	uint64_t window_begin;		/* of the newest */
	unsigned int nr_windows;
	uint64_t samples, impossible, jumps;	/* ever */
	uint64_t jump;			/* the last: by so many ticks at least */
};

enum dsm_clock_taken {
	DSM_CLOCK_TAKEN,
	DSM_CLOCK_IGNORED,	/* a frequency that is refused; no clock at one end */
	DSM_CLOCK_IMPOSSIBLE,	/* it was answered for longer than it took */
	DSM_CLOCK_JUMP,		/* contradicts what was known: begun anew */
};

/** Nothing is known.  @params: in their ranges. */
void dsm_clock_init(struct dsm_clock *clock, const struct dsm_clock_params *params);

/**
 * A question has been answered.
 * @sample: any numbers; of one that is not DSM_CLOCK_TAKEN or _JUMP nothing stays
 * but its count and the peer's frequency.
 */
enum dsm_clock_taken dsm_clock_add(struct dsm_clock *clock,
				   const struct dsm_clock_sample *sample);

/** How it stands at our TSC @now. */
enum dsm_clock_state dsm_clock_get_state(const struct dsm_clock *clock, uint64_t now);

/**
 * For who tells people: is it WIDE or FREQUENCY?  @was: what was told last.  What
 * was WIDE is so until it is known to three quarters of error_ns, so that an error
 * of about error_ns is not told again and again; without a new answer it stays.
 */
bool dsm_clock_is_misaligned(const struct dsm_clock *clock, uint64_t now, bool was);

struct dsm_clock_offset {
	uint64_t offset;	/* ticks, modulo 2^64: the peer's TSC less ours */
	uint64_t error;		/* ticks: the true one is not farther away, at either side */
	uint32_t generation;
};

/**
 * The offset at our TSC @now, which may be some time before the last answer.
 * @offset: the middle of what is possible; set with 0 and -ERANGE.
 * Return: 0; -ENODATA: no answer yet, or no clock; -EAGAIN: DSM_CLOCK_MEASURING;
 * -EOPNOTSUPP: the frequencies differ; -ERANGE: the error is more than error_ns.
 */
int dsm_clock_get(const struct dsm_clock *clock, uint64_t now,
		  struct dsm_clock_offset *offset);

/**
 * How wrong is an offset that was taken once?
 * @applied: of dsm_clock_get(), with its generation.
 * @least, @most: ticks between it and the true one: surely not less, not more;
 * set with 0, -EDOM and -ERANGE.
 * Return: 0: surely not more than error_ns; -EDOM: perhaps more; -ERANGE: surely
 * more; -ESTALE: the clock has jumped since; -ENODATA, -EAGAIN, -EOPNOTSUPP as
 * above.
 */
int dsm_clock_judge(const struct dsm_clock *clock, uint64_t now,
		    const struct dsm_clock_offset *applied,
		    uint64_t *least, uint64_t *most);

/**
 * Return: by so many ticks the offset at our TSC @now is surely more than @offset; 0 if
 * that is not sure, or nothing is known.
 */
uint64_t dsm_clock_beyond(const struct dsm_clock *clock, uint64_t now, uint64_t offset);

struct dsm_clock_drift {
	int64_t least_ppb, most_ppb;	/* > 0: the peer's TSC is the faster one */
	uint64_t span;			/* ticks that it is the mean of; 0: not measured */
};

/**
 * The mean drift over the last minutes, DSM_CLOCK_WINDOWS * DSM_CLOCK_WINDOW_S at
 * most: surely in these bounds, which are those that are allowed as long as nothing
 * better is known.  For people: no bound of the offset rests on it.
 */
void dsm_clock_get_drift(const struct dsm_clock *clock, struct dsm_clock_drift *drift);

/** Return: ns, rounded up; UINT64_MAX if they are more. @khz: not 0. */
uint64_t dsm_clock_ns(uint32_t khz, uint64_t ticks);

#ifdef __cplusplus
}
#endif

#endif
