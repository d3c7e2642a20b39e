// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of a worker with those of other hosts.
 *
 * Of a VM whose memory is all there from the start all hosts are needed: an
 * attempt that fails is made again until it does not.  Of one whose memory comes
 * later (description.h, `elastic`) nobody is connected with before somebody says
 * "connect HOST"; that has a limit of time.  "leave HOST" is its end: nothing may
 * be attached, and nothing that concerns the other host be left.  It is said at both
 * ends; the home goes second, or when the other end has not gone in time.  Two hosts that
 * are no home part when neither has anything of the other: who has closed first has had
 * all that the other one said before.
 *
 * An end that nobody asked for is the end of the VM, unless nothing is attached:
 * the engine says which.
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire.h"
#include "worker_internal.h"

#define SOON	.2		/* s until an attempt that somebody waits for is repeated */
#define LEAVE_S		100.	/* for all pages that a host has; libxl waits for 120 */
#define CLOSE_S		3.	/* and then until it says that this is the end */

/* A host that is expected may say false HELLOs for ever: so much is said at once, and one line more each LINE_NS. */
#define LINES	8
#define LINE_NS	10000000000ull

static const char *const links[] = {
	[DSM_LINK_DOWN] = "down",
	[DSM_LINK_OPENING] = "opening",
	[DSM_LINK_UP] = "up",
	[DSM_LINK_LOST] = "lost",
};

const char *dsm_link_name(unsigned int link)
{
	return link < sizeof(links) / sizeof(links[0]) ? links[link] : "?";
}

/*
 * The epoch after the last connection's, however often it is tried: two ends that
 * are far apart refuse each other (DSM_LINK_EPOCHS), and one may wait for days.
 */
static void connect_to(struct dsm_worker *w, struct dsm_peer *peer)
{
	int rc;

	peer->link = DSM_LINK_OPENING;
	rc = w->p.config->self > peer->host ?
	     dsm_transport_open(w->transport, peer->host, peer->epoch + 1) :
	     dsm_transport_expect(w->transport, peer->host, peer->epoch + 1);
	/* Who is expected may still come, after somebody else did. */
	if (!rc || rc == -EISCONN)
		return;
	snprintf(peer->why, sizeof(peer->why), "%s", strerror(-rc));
	dsm_worker_say(w, 4, "host %s: can't connect: %s",
		       dsm_worker_name(w, peer->host), peer->why);
}

/* Is it to be tried for as long as it takes? */
static bool is_needed(const struct dsm_worker *w)
{
	return !w->p.description->elastic && w->state == DSM_WORKER_CONNECTING;
}

static void answer(struct dsm_worker *w, uint64_t *client, const char *error)
{
	uint64_t whom = *client;

	*client = 0;
	if (whom && w->control)
		dsm_control_answer(w->control, whom, error ? DSM_CONTROL_ERROR :
				   DSM_CONTROL_OK, error);
}

static void on_again(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_peer *peer = timer->data;

	(void)events;
	ev_timer_stop(loop, timer);
	if (peer->link != DSM_LINK_UP && (peer->connecting || is_needed(peer->worker)))
		connect_to(peer->worker, peer);
}

static void close_peer(struct dsm_peer *peer)
{
	if (peer->closing || peer->link != DSM_LINK_UP)
		return;
	peer->closing = true;
	dsm_transport_close(peer->worker->transport, peer->host);
}

/* Neither it nor this host is the home. */
static bool is_third(const struct dsm_worker *w, unsigned int host)
{
	unsigned int home = w->p.description->token_home;

	return w->p.config->self != home && host != home;
}

/*
 * What another host had from the start, while this one leaves it: nothing of it is
 * asked for any more, and what is here goes.  A third host has nothing from the start.
 */
static void open_ranges(struct dsm_worker *w, unsigned int host, bool open)
{
	const struct dsm_description *d = w->p.description;
	unsigned int i;

	for (i = 0; i < d->nr_ranges; i++) {
		if (d->range[i].home != host || d->detached[i])
			continue;
		dsm_engine_open_range(w->engine, i, open ?
				      d->range[i].end - d->range[i].start : 0);
		if (open)
			dsm_engine_range_done(w->engine, i);
	}
}

/*
 * What concerns hosts that leave comes, or goes: all ranges, and one evacuation.  Without one
 * that leaves it ends.
 */
static void look_for_pages(struct dsm_worker *w)
{
	const struct dsm_description *d = w->p.description;
	uint64_t first = d->range[0].start, end = d->range[d->nr_ranges - 1].end;
	uint16_t hosts = 0;
	unsigned int i;

	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (w->peer[i].leaving && !is_third(w, i))
			hosts |= dsm_bit(i);
	dsm_engine_evacuate_of(w->engine, hosts, first, hosts ? end : first);
}

/* ---- What the transport says ---- */

/* Of the certificate by which it has proved who it is. */
static void warn_of_expiry(struct dsm_worker *w, unsigned int host)
{
	char what[DSM_CONFIG_NAME + 32], text[DSM_EXPIRY_TEXT];
	struct dsm_transport_counters counters;

	snprintf(what, sizeof(what), "host %s: its certificate", dsm_worker_name(w, host));
	if (!dsm_transport_counts(w->transport, host, &counters) &&
	    dsm_expiry_is_soon(counters.certificate_expires, time(NULL), what, text))
		dsm_worker_say(w, 4, "%s", text);
}

static void on_up(void *context, unsigned int host, uint32_t epoch)
{
	struct dsm_worker *w = context;
	struct dsm_peer *peer = &w->peer[host];
	char text[DSM_ENGINE_TEXT];
	int rc;

	peer->epoch = epoch;
	peer->closing = false;
	rc = dsm_engine_peer_up(w->engine, host, epoch);
	dsm_engine_takes_ahead(w->engine, host, dsm_transport_version(w->transport, host) >=
			       DSM_WIRE_AHEAD);
	dsm_engine_takes_access(w->engine, host, dsm_transport_version(w->transport, host) >=
				DSM_WIRE_ACCESS);
	dsm_engine_takes_pause(w->engine, host, dsm_transport_version(w->transport, host) >=
			       DSM_WIRE_PAUSE);
	if (rc) {
		dsm_worker_say(w, 4, "host %s: connected again; who was lost or has left does not come back",
			       dsm_worker_name(w, host));
		peer->link = DSM_LINK_LOST;
		snprintf(text, sizeof(text), "internal host %s: it was lost, and does not come back",
			 dsm_worker_name(w, host));
		dsm_transport_close(w->transport, host);
		answer(w, &peer->connecting, text);
		return;
	}
	/* Those that were there when the VM failed were told then. */
	if (dsm_engine_failure(w->engine)) {
		peer->link = DSM_LINK_LOST;
		dsm_transport_fail(w->transport, host, w->state == DSM_WORKER_ENDED ?
				   DSM_FAIL_OVER : DSM_R_BROKEN);
		return;
	}
	peer->link = DSM_LINK_UP;
	peer->was_up = true;
	ev_timer_stop(w->p.loop, &peer->again);
	dsm_worker_say(w, 6, "host %s: connected", dsm_worker_name(w, host));
	warn_of_expiry(w, host);
	dsm_peers_bind(w, host);
	if (w->p.description->elastic)
		open_ranges(w, host, true);
	dsm_drift_up(w, host);
	if (!dsm_start_up(w, host))
		return;
	answer(w, &peer->connecting, NULL);
	dsm_start_look(w);
}

static void on_message(void *context, unsigned int host,
		       const struct dsm_msg *msg, const uint8_t *page)
{
	struct dsm_worker *w = context;

	dsm_worker_came(w);
	if (!dsm_type_is_vcpu(msg->type))
		dsm_engine_message(w->engine, host, msg, page);
	else if (!dsm_start_message(w, host, msg, page) && !dsm_drift_message(w, host, msg, page))
		dsm_engine_vcpu_message(w->engine, host, msg, page);
}

static void on_room(void *context, unsigned int host)
{
	struct dsm_worker *w = context;

	dsm_engine_room(w->engine, host);
}

static void say_attempt(struct dsm_worker *w, struct dsm_peer *peer, const char *why)
{
	const struct dsm_transport_params *params = &w->transport_params;
	char more[64] = "";

	if (!dsm_bucket_take(&peer->attempt_lines, params->now(params->context))) {
		peer->untold++;
		return;
	}
	if (peer->untold)
		snprintf(more, sizeof(more), "; and %" PRIu64 " more before", peer->untold);
	peer->untold = 0;
	dsm_worker_say(w, 5, "host %s: no connection: %s%s",
		       dsm_worker_name(w, peer->host), why, more);
}

/* An attempt, ours or of somebody who is expected, came to nothing. */
static void attempt_failed(struct dsm_worker *w, struct dsm_peer *peer,
			   enum dsm_end reason, const char *text, const char *why)
{
	bool waits = peer->connecting;

	say_attempt(w, peer, why);
	snprintf(peer->why, sizeof(peer->why), "%s", why);
	peer->refused = reason == DSM_END_UNREACHABLE &&
			!strcmp(text, strerror(ECONNREFUSED));
	if (!waits && !is_needed(w))
		return;
	peer->again.repeat = waits ? SOON : DSM_WORKER_AGAIN;
	ev_timer_again(w->p.loop, &peer->again);
}

/* Of the VM: who else says that it has ended is a host that is lost. */
static bool is_home(const struct dsm_worker *w, unsigned int host)
{
	return w->p.description->build && host == w->p.description->token_home;
}

/* This host leaves, and has nothing of others any more: nobody misses anything. */
static bool has_left(const struct dsm_worker *w)
{
	return w->state == DSM_WORKER_LEAVING && !dsm_engine_guests(w->engine) &&
	       dsm_engine_is_quiet(w->engine);
}

static void on_end(void *context, unsigned int host, enum dsm_end reason,
		   const char *text)
{
	struct dsm_worker *w = context;
	bool orderly = reason == DSM_END_CLOSED;
	bool over = reason == DSM_END_OVER && is_home(w, host);
	struct dsm_peer *peer;
	char why[DSM_ENGINE_TEXT], error[2 * DSM_ENGINE_TEXT];

	snprintf(why, sizeof(why), "%s%s%s", dsm_end_name(reason),
		 text[0] ? ": " : "", text);
	if (host == DSM_NOBODY) {
		dsm_worker_say(w, 4, "a stranger was turned away: %s", why);
		return;
	}
	peer = &w->peer[host];
	if (peer->link != DSM_LINK_UP) {
		attempt_failed(w, peer, reason, text, why);
		return;
	}
	dsm_worker_say(w, orderly || over ? 6 : 3, "host %s: %s", dsm_worker_name(w, host), why);
	peer->link = orderly ? DSM_LINK_DOWN : DSM_LINK_LOST;
	peer->closing = false;
	if (over) {
		snprintf(error, sizeof(error), "host %s says so", dsm_worker_name(w, host));
		dsm_engine_end(w->engine, error);
	} else if (!has_left(w)) {
		dsm_engine_peer_down(w->engine, host, orderly, why);
	}
	if (!peer->leaving)
		return;
	ev_timer_stop(w->p.loop, &peer->patience);
	snprintf(error, sizeof(error), "unreachable host %s: %s", dsm_worker_name(w, host), why);
	answer(w, &peer->leaving, orderly ? NULL : error);
	/* Those of hosts that stay do. */
	look_for_pages(w);
}

static void on_lost(void *context, unsigned int host, unsigned int lost)
{
	struct dsm_worker *w = context;

	if (w->peer[host].link == DSM_LINK_UP)
		dsm_engine_peer_lost(w->engine, host, lost);
}

static void on_round_trip(void *context, unsigned int host, uint64_t ns,
			  const struct dsm_clock_sample *clock)
{
	struct dsm_worker *w = context;

	dsm_histogram_add(&w->peer[host].round_trip, ns);
	dsm_peers_clock_add(w, &w->peer[host], clock);
	dsm_start_clock(w, host, clock);
	if (clock)
		dsm_drift_clock(w, host);
}

const struct dsm_transport_calls dsm_peers_calls = {
	.up = on_up, .message = on_message, .room = on_room, .end = on_end,
	.lost = on_lost, .round_trip = on_round_trip,
};

/* ---- connect, leave ---- */

/* Return: a peer; NULL: none, *text says why. */
static struct dsm_peer *find_peer(struct dsm_worker *w, const char *name, char **text)
{
	const struct dsm_config *config = w->p.config;
	char names[DSM_ENGINE_TEXT] = "";
	size_t at = 0;
	unsigned int i;

	for (i = 0; i < config->nr_hosts; i++) {
		if (!strcmp(config->host[i].name, name) && i != config->self)
			return &w->peer[i];
		if (i != config->self && at < sizeof(names))
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
					       at ? ", " : "", config->host[i].name);
	}
	if (!strcmp(config->host[config->self].name, name))
		dsm_worker_error(text, "own-host %s is this host", name);
	else
		dsm_worker_error(text, "unknown-host no host \"%s\" in dsm.toml; others than this one are: %s",
				 name, at ? names : "none");
	return NULL;
}

unsigned int dsm_peers_find(struct dsm_worker *w, const char *name, char **text)
{
	const struct dsm_peer *peer = find_peer(w, name, text);

	return peer ? peer->host : DSM_NOBODY;
}

static void give_up_connecting(struct dsm_peer *peer)
{
	struct dsm_worker *w = peer->worker;
	const char *name = dsm_worker_name(w, peer->host);
	const struct sockaddr_storage *at = &w->transport_params.peer[peer->host].address;
	char number[64], port[8], text[2 * DSM_ENGINE_TEXT];

	if (getnameinfo((const struct sockaddr *)at, sizeof(*at), number, sizeof(number),
			port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV)) {
		strcpy(number, "?");
		strcpy(port, "?");
	}
	if (w->p.config->self < peer->host)
		snprintf(text, sizeof(text), "unreachable host %s did not connect to this one within %u ms%s%s",
			 name, w->p.config->opening_ms, peer->why[0] ? ": " : "", peer->why);
	else
		snprintf(text, sizeof(text), "%s host %s at %s, port %s: no connection within %u ms: %s",
			 peer->refused ? "no-dsmd-there" : "unreachable", name, number,
			 port, w->p.config->opening_ms, peer->why[0] ? peer->why : "no answer");
	ev_timer_stop(w->p.loop, &peer->again);
	dsm_transport_close(w->transport, peer->host);
	peer->link = DSM_LINK_DOWN;
	dsm_worker_say(w, 4, "connect: %s", text);
	answer(w, &peer->connecting, text);
}

static void give_up_leaving(struct dsm_peer *peer)
{
	struct dsm_worker *w = peer->worker;
	char text[DSM_ENGINE_TEXT];

	snprintf(text, sizeof(text), "in-use host %s: %llu pages are shared with it or asked for still, after %.0f ms",
		 dsm_worker_name(w, peer->host), (unsigned long long)peer->shared, 1000. * peer->waited);
	/* Who asked may have gone. */
	dsm_worker_say(w, 4, "leave: %s", text);
	answer(w, &peer->leaving, text);
	open_ranges(w, peer->host, true);
	look_for_pages(w);
}

static double opening_s(const struct dsm_worker *w)
{
	return w->p.config->opening_ms / 1000.;
}

static double now_s(void)
{
	return (double)dsm_worker_now(NULL) / (double)DSM_NS;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static void start_patience(struct dsm_peer *peer, double s)
{
	struct ev_loop *loop = peer->worker->p.loop;

	peer->waited += s;
	ev_timer_stop(loop, &peer->patience);
	ev_timer_set(&peer->patience, s, 0.);
	ev_timer_start(loop, &peer->patience);
}

/* Return: is there time left? */
static bool wait_on(struct dsm_peer *peer, double until)
{
	double left = until - now_s();

	if (left > 0.)
		start_patience(peer, least(opening_s(peer->worker), left));
	return left > 0.;
}

/*
 * A host may have any number of pages, and a slow one or a busy network takes its time: as long
 * as they become fewer there is no reason to keep it.
 */
static bool become_fewer(struct dsm_peer *peer)
{
	uint64_t before = peer->shared;

	peer->shared = dsm_engine_shared_with(peer->worker->engine, peer->host);
	return peer->shared < before;
}

/* It has nothing, and need not say so: the connection ends by itself some day. */
static void wait_for_end(struct dsm_peer *peer)
{
	struct dsm_worker *w = peer->worker;
	char text[DSM_ENGINE_TEXT];

	close_peer(peer);
	if (wait_on(peer, peer->leaves_by + CLOSE_S))
		return;
	snprintf(text, sizeof(text), "unreachable host %s: its end of the connection has not come, after %.0f ms",
		 dsm_worker_name(w, peer->host), 1000. * peer->waited);
	dsm_worker_say(w, 4, "leave: %s", text);
	answer(w, &peer->leaving, text);
	look_for_pages(w);
}

static void on_patience(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_peer *peer = timer->data;

	(void)events;
	ev_timer_stop(loop, timer);
	if (peer->connecting && peer->link != DSM_LINK_UP)
		give_up_connecting(peer);
	else if (!peer->leaving)
		return;
	else if (peer->closing || !dsm_engine_shares_with(peer->worker->engine, peer->host))
		wait_for_end(peer);
	else if (!become_fewer(peer) || !wait_on(peer, peer->leaves_by))
		give_up_leaving(peer);
}

static void begin_to_wait(struct dsm_peer *peer, uint64_t *whom, uint64_t client, double most)
{
	*whom = client;
	peer->shared = dsm_engine_shared_with(peer->worker->engine, peer->host);
	peer->leaves_by = now_s() + most;
	peer->waited = 0.;
	start_patience(peer, least(opening_s(peer->worker), most));
}

enum dsm_control_answer dsm_peers_connect(struct dsm_worker *w, const char *name,
					  uint64_t client, char **text)
{
	struct dsm_peer *peer = find_peer(w, name, text);
	char ended[DSM_ENGINE_TEXT];

	if (!peer)
		return DSM_CONTROL_ERROR;
	if (dsm_worker_ended(w, ended))
		return dsm_worker_error(text, "%s", ended);
	if (peer->connecting || peer->leaving || peer->closing)
		return dsm_worker_error(text, "busy a %s of host %s is at work",
					peer->connecting ? "connect" : "leave", name);
	if (peer->link == DSM_LINK_UP)
		return DSM_CONTROL_OK;
	peer->why[0] = 0;
	peer->refused = false;
	begin_to_wait(peer, &peer->connecting, client, opening_s(w));
	if (peer->link != DSM_LINK_OPENING)
		connect_to(w, peer);
	return DSM_CONTROL_LATER;
}

/*
 * What is here of that host's goes home; of ours nothing may be attached there: that the
 * home has some is known here, of a third host its pages say it (shared_with).
 */
static uint64_t attached_with(const struct dsm_worker *w, unsigned int host)
{
	bool third = is_third(w, host);
	const struct dsm_vnode *v;
	uint64_t frames = 0;

	for (v = w->vnode; v < w->vnode + w->nr_vnodes; v++)
		if (v->home == host || (v->home == w->p.config->self && !third))
			frames += v->size;
	return frames;
}

enum dsm_control_answer dsm_peers_leave(struct dsm_worker *w, const char *name,
					uint64_t client, char **text)
{
	struct dsm_peer *peer = find_peer(w, name, text);
	char ended[DSM_ENGINE_TEXT];
	uint64_t frames;

	if (!peer)
		return DSM_CONTROL_ERROR;
	if (dsm_worker_ended(w, ended))
		return dsm_worker_error(text, "%s", ended);
	/* Who asked for it has gone: it goes on, and who asks again hears of its end. */
	if (peer->leaving && !dsm_control_waits(w->control, peer->leaving)) {
		peer->leaving = client;
		return DSM_CONTROL_LATER;
	}
	if (peer->connecting || peer->leaving)
		return dsm_worker_error(text, "busy a %s of host %s is at work",
					peer->connecting ? "connect" : "leave", name);
	if (w->resize.vnode)
		return dsm_worker_error(text, "busy vnode %u is on its way to another size",
					w->resize.vnode->number);
	if (!w->p.description->elastic)
		return dsm_worker_error(text, "in-use the memory of this VM is attached from its start to its end");
	frames = attached_with(w, peer->host);
	if (frames)
		return dsm_worker_error(text, "in-use host %s: %llu KiB are attached", name,
					(unsigned long long)frames * DSM_FRAME_KIB);
	if (peer->link != DSM_LINK_UP) {
		peer->link = DSM_LINK_DOWN;
		return DSM_CONTROL_OK;
	}
	if (dsm_start_keeps(w, peer->host))
		return dsm_worker_error(text, "in-use host %s: vCPUs run there, or here", name);
	if (dsm_engine_is_placing(w->engine))
		return dsm_worker_error(text, "busy vCPUs are on their way");
	begin_to_wait(peer, &peer->leaving, client, w->p.patience > 0. ? w->p.patience : LEAVE_S);
	open_ranges(w, peer->host, false);
	look_for_pages(w);
	return DSM_CONTROL_LATER;
}

void dsm_peers_run(struct dsm_worker *w)
{
	struct dsm_peer *peer;

	/*
	 * At home the other end has the first word: who has said that it is the
	 * end can't answer any more, and somebody there may still ask for pages.
	 */
	if (w->p.config->self == w->p.description->token_home)
		return;
	for (peer = w->peer; peer < w->peer + w->p.config->nr_hosts; peer++)
		if (peer->leaving && !peer->closing &&
		    !dsm_engine_shares_with(w->engine, peer->host))
			close_peer(peer);
}

unsigned int dsm_peers_leaving(const struct dsm_worker *w)
{
	unsigned int i;

	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (w->peer[i].leaving)
			return i;
	return DSM_NOBODY;
}

enum dsm_control_answer dsm_peers_busy(const struct dsm_worker *w, char **text)
{
	unsigned int host = dsm_peers_leaving(w);

	return dsm_worker_error(text, "busy host %s is leaving: %llu pages are shared with it or asked for still",
				dsm_worker_name(w, host), (unsigned long long)
				dsm_engine_shared_with(w->engine, host));
}

void dsm_peers_bind(struct dsm_worker *w, unsigned int host)
{
	if (w->p.description->elastic)
		dsm_engine_bind(w->engine, host, attached_with(w, host));
}

/* ---- Begin and end ---- */

void dsm_peers_init(struct dsm_worker *w)
{
	unsigned int i;

	for (i = 0; i < w->p.config->nr_hosts; i++) {
		struct dsm_peer *peer = &w->peer[i];

		peer->worker = w;
		peer->host = i;
		dsm_bucket_init(&peer->attempt_lines, LINES, LINE_NS);
		ev_timer_init(&peer->again, on_again, 0., DSM_WORKER_AGAIN);
		peer->again.data = peer;
		ev_timer_init(&peer->patience, on_patience, 0., 0.);
		peer->patience.data = peer;
	}
}

void dsm_peers_begin(struct dsm_worker *w)
{
	unsigned int i;

	if (w->p.config->nr_hosts == 1 || w->p.description->elastic)
		dsm_worker_enter(w, DSM_WORKER_RUNNING, "");
	for (i = 0; i < w->p.config->nr_hosts; i++) {
		if (i == w->p.config->self)
			continue;
		dsm_peers_bind(w, i);
		if (!w->p.description->elastic)
			connect_to(w, &w->peer[i]);
	}
}

void dsm_peers_end(struct dsm_worker *w)
{
	unsigned int i;

	for (i = 0; i < w->p.config->nr_hosts; i++) {
		ev_timer_stop(w->p.loop, &w->peer[i].again);
		ev_timer_stop(w->p.loop, &w->peer[i].patience);
	}
}

void dsm_peers_fail(struct dsm_worker *w, uint8_t reason, const char *text)
{
	struct dsm_peer *peer;
	char error[DSM_ENGINE_TEXT + 32];

	snprintf(error, sizeof(error), "internal the VM has %s: %s",
		 reason == DSM_FAIL_OVER ? "ended" : "failed", text);
	for (peer = w->peer; peer < w->peer + w->p.config->nr_hosts; peer++) {
		if (peer->link == DSM_LINK_UP) {
			peer->link = DSM_LINK_LOST;
			dsm_transport_fail(w->transport, peer->host, reason);
		}
		answer(w, &peer->connecting, error);
		answer(w, &peer->leaving, error);
	}
}

unsigned int dsm_peers_close(struct dsm_worker *w)
{
	unsigned int i, open = 0;

	for (i = 0; i < w->p.config->nr_hosts; i++) {
		close_peer(&w->peer[i]);
		open += w->peer[i].link == DSM_LINK_UP;
	}
	return open;
}
