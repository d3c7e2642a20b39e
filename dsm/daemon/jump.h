/* SPDX-License-Identifier: GPL-2.0 */
/*
 * By how much this slice's time has to jump, so that the guest has one.
 *
 * A slice's TSC, as its vCPUs read it, is the host's and an offset.  Hosts' TSCs are
 * not equally quick, so slices that were together go apart.  Each host says what its
 * slice's offset is now (TSC, of vcpu.h), and clock.h bounds how far the hosts' TSCs
 * are apart; so each knows of each other slice how far it is ahead at least.  Who is
 * certainly behind goes ahead by that, and nobody ever goes back: all keep up with
 * the quickest.
 *
 * An offset only grows, so one that is not the newest says less than is so: who
 * follows it is not too far ahead.
 *
 * A jump is certain when an answer has just come, if rates differ by no more than is
 * assumed: so nobody gets ahead of the quickest by following somebody who follows him.
 * If they do, answers contradict each other, and such a clock is followed seldom or not.
 *
 * A peer can lie.  So a slice has a credit, which grows with its own host's time by
 * clock_drift_ppm, the most that an honest peer's needs, up to what one jump may be
 * (DSM_JUMP_MOST_MS).  A liar can make the guest's time so much faster, and no more.
 * For the same reason a slice that is behind by seconds does not come up at once:
 * nobody can tell a host that was set from one that lies.  Nor does one that is ahead
 * by next to nothing take the only jump of each second from those who are farther.
 *
 * Plain functions of a state and of numbers, as clock.h.  Context: one thread; `now`
 * is this host's TSC, of which the jumps are no part.
 */
#ifndef DSM_JUMP_H
#define DSM_JUMP_H

#include "clock.h"
#include "protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_JUMP_MOST_MS	1u	/* in one jump; Xen refuses more */
#define DSM_JUMP_EACH_S		1u	/* one in this time */

struct dsm_jumps {
	uint32_t khz, drift_ppm;
	bool has;			/* the slice has the guest's time */
	uint64_t offset;		/* its TSC less the host's, modulo 2^64 */
	uint64_t credit, since;		/* ticks that it had then */
	uint64_t last;			/* the last jump, or when it got its time */
	uint64_t seen;			/* since then: the most that it was behind anybody */
	uint64_t jumps, ticks;		/* ever */
	struct {
		bool has;
		uint64_t offset;
	} peer[DSM_MAX_HOSTS];
};

/** Nothing is known.  @khz: of our TSC; 0: it can't be compared. */
void dsm_jumps_init(struct dsm_jumps *j, uint32_t khz, uint32_t drift_ppm);

/** This slice has its time. */
void dsm_jumps_begin(struct dsm_jumps *j, uint64_t offset, uint64_t now);

/**
 * @host says what its slice's offset is.
 * Return: 0; -EINVAL: it goes back, which no slice does.
 */
int dsm_jumps_heard(struct dsm_jumps *j, unsigned int host, uint64_t offset);

/** The connection is another one. */
void dsm_jumps_forget(struct dsm_jumps *j, unsigned int host);

/**
 * For dsm_clock_judge(): where the hosts' TSCs would have to be for one time.
 * Return: false: it is not known, and *applied is unchanged.
 */
bool dsm_jumps_applied(const struct dsm_jumps *j, unsigned int host,
		       const struct dsm_clock *clock, struct dsm_clock_offset *applied);

/**
 * By how much is this slice to jump, now that @host has answered?
 * Return: ticks, at most DSM_JUMP_MOST_MS of them; 0: it is not to.
 */
uint64_t dsm_jumps_look(struct dsm_jumps *j, unsigned int host,
			const struct dsm_clock *clock, uint64_t now);

/** It was to, and has, or could not.  @ticks: of dsm_jumps_look(), at the same time. */
void dsm_jumps_done(struct dsm_jumps *j, uint64_t now, uint64_t ticks, bool could);

#ifdef __cplusplus
}
#endif

#endif
