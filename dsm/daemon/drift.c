// SPDX-License-Identifier: GPL-2.0
/*
 * One time for a guest on several hosts, after it has begun: this host's slice jumps
 * ahead when it is behind another one (jump.h; decision 0149).
 *
 *	each to each	TSC	my slice's TSC is ahead of my host's by so much now
 *
 * between hosts of which each has places or is the home, once both know that of their
 * slice, and after each jump.  TIME says the same of the home's.  It is said when that
 * host has answered a question and has a credit: nobody waits for it, and what was not
 * said yet is said with the next answer, so nothing piles up at one that does not read.
 *
 * To jump is done with an answer that has just come, when its host's TSC is known best;
 * clocks say the rest of the time that they may be apart.  Xen stops this slice's vCPUs
 * for it, for a moment, and nobody else waits: pages and events go on, so does a round
 * in which vCPUs are placed (engine_stop.c) or a pause, of which Xen counts each.  A
 * vCPU that begins here gets the slice's TSC, whatever it was a moment before.
 *
 * Where the guest is known to have another time than at home, no vCPU is placed; nor
 * where nothing is known of it yet (decision 0147).
 *
 * A peer that does not speak of it (before DSM_WIRE_TSC) is not followed; its slice
 * does not jump, so what its TIME has said holds, if it is the home.  vCPUs go there.
 *
 * Context: the protocol thread; no locks.  Xen has its own (hvm/dsm_time.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wire.h"
#include "worker_internal.h"

/* One line of jumps at first, and then one in this time. */
#define LINE_NS	(600 * DSM_NS)
/* An answer comes at least so often, if vCPUs may be elsewhere. */
#define QUESTION_NS	(DSM_JUMP_EACH_S * DSM_NS / 2)
/* A clock that contradicts itself so often in a row, and is not believed in between, drifts by more than is allowed. */
#define NOT_BELIEVED	8u

void dsm_drift_init(struct dsm_worker *w)
{
	dsm_jumps_init(&w->jumps, w->tsc_khz, w->p.config->clock_drift_ppm);
	dsm_bucket_init(&w->jump_lines, 1, LINE_NS);
	/* With rarer answers there would be too few jumps, of a millisecond at most. */
	if (w->p.description->nr_places && w->transport_params.question_ns > QUESTION_NS)
		w->transport_params.question_ns = QUESTION_NS;
}

void dsm_drift_up(struct dsm_worker *w, unsigned int host)
{
	dsm_jumps_forget(&w->jumps, host);
	w->peer[host].knows_tsc = false;
	w->peer[host].answered = false;
	w->peer[host].time = DSM_TIME_UNKNOWN;
	w->peer[host].said_apart = false;
	w->peer[host].judged = w->peer[host].clock.generation;
}

/* Of one whose time is not ours: why, for people. */
static void describe(const struct dsm_worker *w, const struct dsm_peer *peer, char text[DSM_ENGINE_TEXT])
{
	struct dsm_clock_offset applied;
	uint64_t least = 0, most = 0;
	int rc = -EAGAIN;

	if (dsm_jumps_applied(&w->jumps, peer->host, &peer->clock, &applied))
		rc = dsm_clock_judge(&peer->clock, w->p.xen->calls->tsc(w->p.xen), &applied, &least, &most);
	if (rc == -EOPNOTSUPP)
		snprintf(text, DSM_ENGINE_TEXT, "the guest may have two times: the TSC there has %" PRIu32
			 " kHz now, the one here %" PRIu32, peer->clock.khz, w->tsc_khz);
	else if (!rc || rc == -EDOM || rc == -ERANGE)
		snprintf(text, DSM_ENGINE_TEXT, "the guest has two times: there and here they are apart by %" PRIu64
			 " to %" PRIu64 " ns; clock_error_us is %" PRIu32, dsm_clock_ns(w->tsc_khz, least),
			 dsm_clock_ns(w->tsc_khz, most), w->p.config->clock_error_us);
	else
		snprintf(text, DSM_ENGINE_TEXT, "the guest may have two times: the clocks contradict each other again and again, and nobody can follow; clock_drift_ppm is %" PRIu32,
			 w->p.config->clock_drift_ppm);
}

/* The guest may see time go back, and pages do not rest on it: an operator has to know. */
static void say(struct dsm_worker *w, struct dsm_peer *peer, uint64_t most)
{
	bool apart = peer->time == DSM_TIME_APART;
	char text[DSM_ENGINE_TEXT];

	if (apart == peer->said_apart || !dsm_peers_clock_may_say(w, peer))
		return;
	peer->said_apart = apart;
	if (apart) {
		describe(w, peer, text);
		dsm_worker_say(w, 3, "host %s: %s", dsm_worker_name(w, peer->host), text);
	} else {
		dsm_worker_say(w, 6, "host %s: the guest has one time again, to %" PRIu64 " ns",
			       dsm_worker_name(w, peer->host), dsm_clock_ns(w->tsc_khz, most));
	}
}

/* It has answered, or said something. */
static void judge(struct dsm_worker *w, struct dsm_peer *peer, uint64_t now)
{
	struct dsm_clock_offset applied;
	uint64_t least = 0, most = 0;
	bool unknown;
	int rc;

	if (dsm_clock_get_state(&peer->clock, now) != DSM_CLOCK_MEASURING)
		peer->judged = peer->clock.generation;
	unknown = peer->clock.generation - peer->judged >= NOT_BELIEVED;
	if (!peer->answered || !dsm_jumps_applied(&w->jumps, peer->host, &peer->clock, &applied)) {
		peer->time = unknown ? DSM_TIME_APART : DSM_TIME_UNKNOWN;
		return;
	}
	rc = dsm_clock_judge(&peer->clock, now, &applied, &least, &most);
	/* Who was apart is so until it is known that he is not; of others nothing bad is known. */
	if (unknown || rc == -ERANGE || rc == -EOPNOTSUPP)
		peer->time = DSM_TIME_APART;
	else if (!rc || (rc == -EDOM && peer->time == DSM_TIME_UNKNOWN))
		peer->time = DSM_TIME_ONE;
	say(w, peer, most);
}

int dsm_drift_ask(const struct dsm_worker *w, unsigned int host, char text[DSM_ENGINE_TEXT])
{
	const struct dsm_peer *peer = &w->peer[host];

	/* It never says what its time is. */
	if (dsm_transport_version(w->transport, host) < DSM_WIRE_TSC)
		return 0;
	if (peer->time == DSM_TIME_APART) {
		describe(w, peer, text);
		return -ERANGE;
	}
	return peer->time == DSM_TIME_ONE ? 0 : -EAGAIN;
}

bool dsm_drift_message(struct dsm_worker *w, unsigned int host, const struct dsm_msg *msg,
		       const uint8_t *bytes)
{
	struct dsm_vcpu_msg m;
	const char *why = NULL;
	int rc;

	if (msg->type != DSM_VCPU_TSC)
		return false;
	if (dsm_engine_failure(w->engine))
		return true;
	rc = dsm_vcpu_get(bytes, DSM_VCPU_TSC, &m);
	if (!w->p.description->nr_places || !dsm_start_concerns(w, host))
		why = "it has nothing to say here";
	else if (rc)
		why = dsm_error_name((unsigned int)-rc);
	else if (dsm_jumps_heard(&w->jumps, host, m.number))
		why = "its time goes back";
	if (why)
		dsm_start_breach(w, host, DSM_VCPU_TSC, why);
	else if (w->jumps.has)
		judge(w, &w->peer[host], w->p.xen->calls->tsc(w->p.xen));
	return true;
}

static void tell(struct dsm_worker *w, struct dsm_peer *peer)
{
	if ((peer->knows_tsc && peer->known_tsc == w->jumps.offset) ||
	    dsm_transport_version(w->transport, peer->host) < DSM_WIRE_TSC ||
	    !dsm_transport_room(w->transport, peer->host))
		return;
	dsm_start_send(w, peer, &(struct dsm_vcpu_msg){
			       .type = DSM_VCPU_TSC, .number = w->jumps.offset });
	peer->knows_tsc = true;
	peer->known_tsc = w->jumps.offset;
}

static void jump(struct dsm_worker *w, struct dsm_peer *peer, uint64_t now)
{
	const struct dsm_transport_params *params = &w->transport_params;
	struct dsm_jumps *j = &w->jumps;
	uint64_t ticks = dsm_jumps_look(j, peer->host, &peer->clock, now);
	int rc;

	if (!ticks)
		return;
	rc = w->p.xen->calls->jump(w->p.xen, ticks);
	dsm_jumps_done(j, now, ticks, !rc);
	/* Who is connected later is told by TIME. */
	if (!rc)
		w->start.time.number += ticks;
	if (!dsm_bucket_take(&w->jump_lines, params->now(params->context)))
		return;
	if (rc)
		dsm_worker_say(w, 4, "host %s: the guest's time is behind there, and Xen does not have it jump: %s",
			       dsm_worker_name(w, peer->host), strerror(-rc));
	else
		dsm_worker_say(w, 6, "host %s: the guest's time was behind that there and has jumped by %" PRIu64
			       " ns; %" PRIu64 " jumps until now, %" PRIu64 " ns together",
			       dsm_worker_name(w, peer->host), dsm_clock_ns(w->tsc_khz, ticks),
			       j->jumps, dsm_clock_ns(w->tsc_khz, j->ticks));
}

void dsm_drift_clock(struct dsm_worker *w, unsigned int host)
{
	struct dsm_peer *peer = &w->peer[host];
	uint64_t now;

	if (!w->jumps.has || !dsm_start_concerns(w, host) || dsm_engine_failure(w->engine))
		return;
	now = w->p.xen->calls->tsc(w->p.xen);
	peer->answered = true;
	jump(w, peer, now);
	judge(w, peer, now);
	tell(w, peer);
}
