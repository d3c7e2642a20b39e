/* SPDX-License-Identifier: GPL-2.0 */
/*
 * To look again instead of to sleep.
 *
 * A sleep and a wake-up cost more than a page needs to come.  While a request of
 * ours is open the loop looks for its answer for wait_ns before it sleeps, and
 * after anything that came for poll_ns, since more often follows.  Both begin
 * with what came last, so a loop without work sleeps.  A CPU that dsmd does not
 * share is the price: with 0 it always sleeps, as without this.
 *
 * To look is to ask a function, DSM_POLL_LOOKS times in a turn of the loop, which
 * costs several system calls; between two looks the CPU is told that it waits.
 *
 * Context: the loop's thread.
 */
#ifndef DSM_POLLING_H
#define DSM_POLLING_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_POLL_MOST	100000000ull	/* ns */
#define DSM_POLL_LOOKS	16u		/* in a turn of the loop */

/** Take what has come, without waiting.  Return: was there anything? */
typedef bool dsm_poll_look(void *context);

struct dsm_poll_counts {
	uint64_t looks;		/* instead of sleeping */
	uint64_t found;		/* times that something came while looking */
	uint64_t sleeps;
};

struct dsm_poll {
	struct ev_loop *loop;
	ev_idle idle;		/* active: the loop does not sleep */
	dsm_poll_look *look;
	void *context;
	uint64_t wait_ns, poll_ns;
	uint64_t last;		/* when something came, ns; 0: never */
	struct dsm_poll_counts counts;
};

/**
 * @wait_ns, @poll_ns: 0 (off) .. DSM_POLL_MOST.
 * @look: with @context, from the loop.
 */
void dsm_poll_init(struct dsm_poll *poll, struct ev_loop *loop,
		   uint64_t wait_ns, uint64_t poll_ns,
		   dsm_poll_look *look, void *context);
void dsm_poll_stop(struct dsm_poll *poll);

/** Is it in use?  Else the two below need no clock. */
static inline bool dsm_poll_is_on(const struct dsm_poll *poll)
{
	return poll->wait_ns || poll->poll_ns;
}

/** A miss or a message has come. */
void dsm_poll_event(struct dsm_poll *poll, uint64_t now);

/** Before the loop sleeps: shall it?  @asking: a request of ours is open. */
void dsm_poll_before_sleep(struct dsm_poll *poll, uint64_t now, bool asking);

#ifdef __cplusplus
}
#endif

#endif
