// SPDX-License-Identifier: GPL-2.0
/*
 * The clocks of peers: what the answers to our questions say goes to clock.c, and
 * what follows from it to the log.
 *
 * No page rests on a clock, so nothing here ends a connection or the VM.
 */
#include <inttypes.h>

#include "worker_internal.h"

/* A peer may let its clock jump as often as we ask: so much is said at once, and one line more each LINE_NS. */
#define LINES	8
#define LINE_NS	10000000000ull

static uint64_t on_tsc(void *context)
{
	struct dsm_worker *w = context;

	return w->p.xen->calls->tsc(w->p.xen);
}

void dsm_peers_clock_init(struct dsm_worker *w)
{
	const struct dsm_config *config = w->p.config;
	struct dsm_clock_params params = {
		.drift_ppm = config->clock_drift_ppm,
		.error_ns = (uint64_t)config->clock_error_us * 1000,
	};
	const char *text = "";
	unsigned int i;
	int khz = w->p.xen->calls->tsc_khz(w->p.xen, &text);

	if (khz < 0)
		dsm_worker_say(w, 5, "the TSC of this host can't be compared with others: %s", text);
	else if (text[0])
		dsm_worker_say(w, 5, "the TSC of this host: %s", text);
	w->tsc_khz = khz < 0 ? 0 : (uint32_t)khz;
	if (w->tsc_khz) {
		w->transport_params.tsc = on_tsc;
		w->transport_params.tsc_khz = w->tsc_khz;
	}
	params.khz = w->tsc_khz;
	for (i = 0; i < DSM_MAX_HOSTS; i++) {
		dsm_clock_init(&w->peer[i].clock, &params);
		dsm_bucket_init(&w->peer[i].clock_lines, LINES, LINE_NS);
	}
}

bool dsm_peers_clock_may_say(const struct dsm_worker *w, struct dsm_peer *peer)
{
	const struct dsm_transport_params *params = &w->transport_params;

	return dsm_bucket_take(&peer->clock_lines, params->now(params->context));
}

/* Once when it begins, once when it is over. */
static void say_state(struct dsm_worker *w, struct dsm_peer *peer, uint64_t now)
{
	const struct dsm_clock *clock = &peer->clock;
	const char *name = dsm_worker_name(w, peer->host);
	struct dsm_clock_offset offset = { 0 };
	enum dsm_clock_state state = dsm_clock_get_state(clock, now);
	bool bad = dsm_clock_is_misaligned(clock, now, peer->misaligned);

	if (bad == peer->misaligned || !dsm_peers_clock_may_say(w, peer))
		return;
	peer->misaligned = bad;
	dsm_clock_get(clock, now, &offset);
	if (state == DSM_CLOCK_FREQUENCY)
		dsm_worker_say(w, 4, "host %s: its TSC has %" PRIu32 " kHz, ours %" PRIu32
			       ": no vCPUs there, nothing scales them; they may differ by %" PRIu32
			       " ppm, clock_drift_ppm is %" PRIu32, name, clock->khz, w->tsc_khz,
			       dsm_clock_khz_ppm(w->p.config->clock_drift_ppm), w->p.config->clock_drift_ppm);
	else
		dsm_worker_say(w, bad ? 4 : 6, "host %s: the clocks are known to %" PRIu64
			       " ns, clock_error_us is %" PRIu32 "%s", name,
			       dsm_clock_ns(w->tsc_khz, offset.error),
			       w->p.config->clock_error_us, bad ? "" : ": aligned again");
}

void dsm_peers_clock_add(struct dsm_worker *w, struct dsm_peer *peer,
			 const struct dsm_clock_sample *sample)
{
	struct dsm_clock *clock = &peer->clock;
	bool known = clock->agreeing == DSM_CLOCK_STEADY;

	if (!sample)
		return;
	/* One that jumps at each answer is said once; one that waits in between, so often. */
	if (dsm_clock_add(clock, sample) == DSM_CLOCK_JUMP && known && dsm_peers_clock_may_say(w, peer))
		dsm_worker_say(w, 4, "host %s: the clocks have moved against each other by %" PRIu64
			       " ns at least beyond clock_drift_ppm, %" PRIu32
			       ": one was set, was suspended or drifts more, or the host lies",
			       dsm_worker_name(w, peer->host),
			       dsm_clock_ns(w->tsc_khz, clock->jump),
			       w->p.config->clock_drift_ppm);
	say_state(w, peer, sample->answered);
}

void dsm_peers_clock_stats(struct dsm_worker *w, const struct dsm_peer *peer,
			   struct dsm_stats_clock *stats)
{
	const struct dsm_clock *clock = &peer->clock;
	struct dsm_clock_offset offset = { 0 };
	uint64_t now = w->tsc_khz ? on_tsc(w) : 0;

	*stats = (struct dsm_stats_clock){
		.state = dsm_clock_get_state(clock, now),
		.khz = clock->khz,
		.samples = clock->samples,
		.impossible = clock->impossible,
		.jumps = clock->jumps,
		.two_times = peer->time == DSM_TIME_APART,
	};
	dsm_clock_get_drift(clock, &stats->drift);
	if (!w->tsc_khz)
		return;
	dsm_clock_get(clock, now, &offset);
	stats->offset = offset.offset;
	stats->error_ns = dsm_clock_ns(w->tsc_khz, offset.error);
	stats->drift_ms = dsm_clock_ns(w->tsc_khz, stats->drift.span) / 1000000;
}
