// SPDX-License-Identifier: GPL-2.0
/*
 * A VM with places, before vCPUs run at a host for the first time (decision 0111):
 * they are placed in the slice of this host, and all slices have the CPU policy and
 * the time of the home's.
 *
 * The home says POLICY, in parts, TABLE and TIME to each host with places, as soon as
 * it is connected.  That one waits until it knows well enough how far its TSC is
 * from the home's (clock.h), does all of it, unpauses its slice and says READY.
 *
 * A vCPU that has begun can't be given another TSC.  So the home sends nothing to
 * vCPUs before all are ready that have some, whoever has unpaused its domain, and nobody
 * else has a vCPU that could.
 *
 * A VM that can't run without those that are elsewhere waits for its hosts as long as
 * it takes, and says for whom; one that is connected, and does not become ready, ends it.
 *
 * If a host can't have vCPUs, that ends a VM which has some there from the start.  Else it
 * says so, and has memory only: engine_place.c refuses.
 *
 * Context: the protocol thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire.h"
#include "worker_internal.h"

/* Messages to one host that wait for no credit: before the start, and while it stands still. */
#define LEAST_QUEUE	16u
/* A host that is connected has so many s to be ready, and in so many parts those that are missing are named. */
#define PATIENCE	300.
#define PARTS		10u

static bool is_home(const struct dsm_worker *w, unsigned int host)
{
	return host == w->p.description->token_home;
}

bool dsm_start_has_places(const struct dsm_worker *w, unsigned int host)
{
	const struct dsm_description *d = w->p.description;
	unsigned int i;

	for (i = 0; i < d->nr_places; i++)
		if (d->place[i].host == host)
			return true;
	return false;
}

/* vCPUs that run at a host from the start on. */
static bool has_first(const struct dsm_worker *w, unsigned int host)
{
	const struct dsm_description *d = w->p.description;
	unsigned int i;

	for (i = 0; i < d->nr_places; i++)
		if (d->place[i].host == host && d->place[i].attached)
			return true;
	return false;
}

/* Is the VM nothing without those that are elsewhere? */
static bool is_needed(const struct dsm_worker *w)
{
	unsigned int i;

	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (has_first(w, i))
			return true;
	return false;
}

/* Does anything about vCPUs go between this host and another? */
bool dsm_start_concerns(const struct dsm_worker *w, unsigned int host)
{
	unsigned int self = w->p.config->self;

	return (is_home(w, self) || dsm_start_has_places(w, self)) &&
	       (is_home(w, host) || dsm_start_has_places(w, host));
}

void dsm_start_send(struct dsm_worker *w, struct dsm_peer *peer, const struct dsm_vcpu_msg *m)
{
	struct dsm_msg head = { .type = m->type, .epoch = peer->epoch };
	uint8_t bytes[DSM_VCPU_BYTES];

	dsm_vcpu_put(m, bytes);
	dsm_transport_send(w->transport, peer->host, &head, bytes);
}

__attribute__((format(printf, 3, 4)))
static void fail(struct dsm_worker *w, unsigned int host, const char *format, ...)
{
	char text[DSM_ENGINE_TEXT / 2], all[DSM_ENGINE_TEXT];
	va_list words;

	va_start(words, format);
	vsnprintf(text, sizeof(text), format, words);
	va_end(words);
	snprintf(all, sizeof(all), "host %s: %s", dsm_worker_name(w, host), text);
	dsm_engine_fail(w->engine, all);
}

void dsm_start_breach(struct dsm_worker *w, unsigned int host, unsigned int type, const char *what)
{
	fail(w, host, "it breaks the protocol: %s: %s", dsm_type_name(type), what);
}

/* This slice has the guest's; from now on drift.c has it keep up. */
static void begin_time(struct dsm_worker *w, uint64_t offset)
{
	if (w->tsc_khz)
		dsm_jumps_begin(&w->jumps, offset, w->p.xen->calls->tsc(w->p.xen));
}

void dsm_start_look(struct dsm_worker *w)
{
	unsigned int i;

	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (i != w->p.config->self && !w->peer[i].was_up)
			return;
	if (w->state == DSM_WORKER_CONNECTING && dsm_start_is_done(w))
		dsm_worker_enter(w, DSM_WORKER_RUNNING, "");
}

static void look(struct dsm_worker *w)
{
	if (dsm_start_is_done(w) && (is_home(w, w->p.config->self) || w->start.is_done))
		dsm_engine_hold_vcpus(w->engine, false);
	dsm_start_look(w);
}

/* ---- At home ---- */

static void tell(struct dsm_worker *w, struct dsm_peer *peer)
{
	struct dsm_msg head = { .type = DSM_VCPU_POLICY, .epoch = peer->epoch };
	uint8_t table[DSM_PAGE_BYTES] = { 0 };
	unsigned int i;

	for (head.gfn = 0; head.gfn < DSM_POLICY_PARTS; head.gfn++)
		dsm_transport_send(w->transport, peer->host, &head,
				   w->start.policy + head.gfn * DSM_PAGE_BYTES);
	head = (struct dsm_msg){ .type = DSM_VCPU_TABLE, .epoch = peer->epoch };
	for (i = 0; i < w->p.description->nr_vcpus; i++)
		table[i] = (uint8_t)dsm_engine_where(w->engine, i);
	dsm_transport_send(w->transport, peer->host, &head, table);
	dsm_start_send(w, peer, &w->start.time);
	peer->told = true;
	dsm_engine_join(w->engine, peer->host);
}

/* Those that were connected while vCPUs were placed: the table was about to change. */
void dsm_start_tell(struct dsm_worker *w)
{
	unsigned int i;

	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (w->peer[i].to_tell && w->peer[i].link == DSM_LINK_UP) {
			w->peer[i].to_tell = false;
			tell(w, &w->peer[i]);
		}
}

static void got_ready(struct dsm_worker *w, struct dsm_peer *peer, const uint8_t *bytes)
{
	struct dsm_vcpu_msg m;
	int rc = dsm_vcpu_get(bytes, DSM_VCPU_READY, &m);

	if (rc || !peer->told || peer->ready) {
		dsm_start_breach(w, peer->host, DSM_VCPU_READY, rc ? dsm_error_name((unsigned int)-rc) :
		       "nobody waits for it");
		return;
	}
	if (m.flags && is_needed(w)) {
		fail(w, peer->host, "its vCPUs can't run there: its log says why");
		return;
	}
	peer->ready = true;
	dsm_worker_say(w, m.flags ? 4 : 6, "host %s: %s", dsm_worker_name(w, peer->host),
		       m.flags ? "it can't have vCPUs; its log says why" : "ready for vCPUs");
	dsm_engine_ready(w->engine, peer->host, m.flags);
	look(w);
}

/* ---- At the others ---- */

/* It can't be: of a VM that needs it that is the end. */
__attribute__((format(printf, 3, 4)))
static void refuse(struct dsm_worker *w, enum dsm_not_ready why, const char *format, ...)
{
	unsigned int home = w->p.description->token_home;
	char text[DSM_ENGINE_TEXT / 2];
	va_list words;

	va_start(words, format);
	vsnprintf(text, sizeof(text), format, words);
	va_end(words);
	if (is_needed(w)) {
		fail(w, home, "%s", text);
		return;
	}
	dsm_worker_say(w, 4, "host %s: %s: no vCPUs here", dsm_worker_name(w, home), text);
	w->start.is_refused = true;
	dsm_start_send(w, &w->peer[home], &(struct dsm_vcpu_msg){
			     .type = DSM_VCPU_READY, .flags = (uint8_t)why });
}

/* All is said: is all known? */
static void go_on(struct dsm_worker *w)
{
	unsigned int home = w->p.description->token_home;
	struct dsm_peer *peer = &w->peer[home];
	const struct dsm_xen_calls *xen = w->p.xen->calls;
	struct dsm_vcpu_msg time = w->start.time;
	struct dsm_clock_offset offset;
	char more[DSM_ENGINE_TEXT] = "";
	int rc;

	if (!w->start.is_told || w->start.is_done || w->start.is_refused ||
	    dsm_engine_failure(w->engine))
		return;
	rc = w->tsc_khz ? dsm_clock_get(&peer->clock, xen->tsc(w->p.xen), &offset) : -EOPNOTSUPP;
	if (rc == -EOPNOTSUPP)
		refuse(w, DSM_NOT_TSC, "its TSC and ours can't be one guest's: see the log");
	if (rc)
		return;		/* with one of the next answers */
	rc = xen->set_policy(w->p.xen, w->start.policy, sizeof(w->start.policy), more);
	if (rc) {
		refuse(w, DSM_NOT_POLICY, "its CPU policy can't be that of this host: %s%s%.300s",
		       strerror(-rc), more[0] ? "; no guest here can have these CPU features: CPUID " : "", more);
		return;
	}
	/* Its operator's choice, or a lie; this host's operator has to know. */
	if (more[0])
		dsm_worker_say(w, 4, "host %s: the guest has CPU features here that guests of this host don't have by default: CPUID %.300s",
			       dsm_worker_name(w, home), more);
	/* It may have jumped since it said TIME. */
	time.number = w->jumps.peer[home].offset + offset.offset;
	rc = xen->set_time(w->p.xen, &time);
	if (!rc)
		rc = xen->start(w->p.xen);
	if (rc) {
		refuse(w, DSM_NOT_TIME, "Xen does not take its time: %s", strerror(-rc));
		return;
	}
	w->start.is_done = true;
	begin_time(w, time.number);
	dsm_worker_say(w, 6, "host %s: its time is ours, to %" PRIu64 " ns", dsm_worker_name(w, home),
		       dsm_clock_ns(w->tsc_khz, offset.error));
	dsm_start_send(w, peer, &(struct dsm_vcpu_msg){ .type = DSM_VCPU_READY });
	look(w);
}

static void got_policy(struct dsm_worker *w, const struct dsm_msg *msg, const uint8_t *page)
{
	if (w->start.is_told || msg->gfn != w->start.parts) {
		dsm_start_breach(w, w->p.description->token_home, msg->type, "not its turn");
		return;
	}
	memcpy(w->start.policy + msg->gfn * DSM_PAGE_BYTES, page, DSM_PAGE_BYTES);
	w->start.parts++;
}

static void got_table(struct dsm_worker *w, const uint8_t *page)
{
	unsigned int home = w->p.description->token_home, i;
	bool zero = true;
	int rc;

	for (i = w->p.description->nr_vcpus; i < DSM_PAGE_BYTES; i++)
		zero &= !page[i];
	if (w->start.is_told || w->start.has_table || w->start.parts != DSM_POLICY_PARTS || !zero) {
		dsm_start_breach(w, home, DSM_VCPU_TABLE, zero ? "not its turn" :
		       dsm_error_name(DSM_E_RESERVED));
		return;
	}
	rc = dsm_engine_set_table(w->engine, page);
	if (rc == -DSM_E_VCPU)
		dsm_start_breach(w, home, DSM_VCPU_TABLE, dsm_error_name(DSM_E_VCPU));
	else if (rc)
		refuse(w, DSM_NOT_TABLE, "Xen does not take where vCPUs run: %s", strerror(-rc));
	w->start.has_table = true;
}

static void got_time(struct dsm_worker *w, const uint8_t *bytes)
{
	unsigned int home = w->p.description->token_home;
	struct dsm_vcpu_msg time;
	int rc = dsm_vcpu_get(bytes, DSM_VCPU_TIME, &time);

	if (rc || w->start.is_told || !w->start.has_table) {
		dsm_start_breach(w, home, DSM_VCPU_TIME, rc ? dsm_error_name((unsigned int)-rc) : "not its turn");
		return;
	}
	if (dsm_jumps_heard(&w->jumps, home, time.number)) {
		dsm_start_breach(w, home, DSM_VCPU_TIME, "it goes back");
		return;
	}
	w->start.is_told = true;
	dsm_engine_join(w->engine, home);
	/* The home is connected again: what it said before holds, unless its table was refused. */
	if (w->start.is_done && !w->start.is_refused) {
		dsm_start_send(w, &w->peer[home], &(struct dsm_vcpu_msg){ .type = DSM_VCPU_READY });
		return;
	}
	w->start.time = time;
	go_on(w);
}

void dsm_start_clock(struct dsm_worker *w, unsigned int host, bool has_clock)
{
	if (!dsm_start_has_places(w, w->p.config->self) || !is_home(w, host))
		return;
	if (w->start.is_done)
		return;
	if (!has_clock && w->start.is_told && !w->start.is_refused)
		refuse(w, DSM_NOT_TSC, "it has no TSC to compare, or we have none: see the log");
	else if (!has_clock && is_needed(w))
		fail(w, host, "it has no TSC to compare, or we have none: see the log");
	go_on(w);
}

/* ---- Who is missing ---- */

static void look_for(struct dsm_worker *w, struct dsm_peer *peer)
{
	double all = w->p.patience > 0. ? w->p.patience : PATIENCE;

	if (!peer->told) {
		/* It may be for days: after 1, 2, 4, 8 parts and so on. */
		if (!(w->start.looks & (w->start.looks - 1)))
			dsm_worker_say(w, 5, "host %s: the guest waits for its vCPUs, and it is not connected",
				       dsm_worker_name(w, peer->host));
		return;
	}
	if (++peer->looks >= PARTS) {
		fail(w, peer->host, "connected, and after %.0f s not ready for the guest's vCPUs: its log says why",
		     all);
		return;
	}
	dsm_worker_say(w, 5, "host %s: the guest waits for its vCPUs; it is connected, and not ready yet",
		       dsm_worker_name(w, peer->host));
}

static void on_missing(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_worker *w = timer->data;
	unsigned int i;

	(void)events;
	w->start.looks++;
	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (has_first(w, i) && !w->peer[i].ready && !dsm_engine_failure(w->engine))
			look_for(w, &w->peer[i]);
	if (dsm_start_is_done(w) || dsm_engine_failure(w->engine))
		ev_timer_stop(loop, timer);
}

void dsm_start_wait(struct dsm_worker *w)
{
	double all = w->p.patience > 0. ? w->p.patience : PATIENCE;

	ev_timer_init(&w->start.missing, on_missing, all / PARTS, all / PARTS);
	w->start.missing.data = w;
	if (is_home(w, w->p.config->self) && !dsm_start_is_done(w))
		ev_timer_start(w->p.loop, &w->start.missing);
}

void dsm_start_end(struct dsm_worker *w)
{
	ev_timer_stop(w->p.loop, &w->start.missing);
}

/* ---- Both ---- */

int dsm_start_begin(struct dsm_worker *w, char text[DSM_ENGINE_TEXT])
{
	const struct dsm_description *d = w->p.description;
	const struct dsm_xen_calls *xen = w->p.xen->calls;
	unsigned int vcpu;
	int rc;

	if (!d->nr_places)
		return 0;
	if (w->p.config->queue < LEAST_QUEUE) {
		snprintf(text, DSM_ENGINE_TEXT, "\"queue\" of dsm.toml is %u: vCPUs on several hosts need %u",
			 w->p.config->queue, LEAST_QUEUE);
		return -EINVAL;
	}
	dsm_engine_hold_vcpus(w->engine, true);
	for (vcpu = 0; vcpu < d->nr_vcpus; vcpu++) {
		if (is_home(w, d->where[vcpu]))
			continue;
		rc = xen->place(w->p.xen, vcpu, d->where[vcpu], NULL);
		if (rc) {
			snprintf(text, DSM_ENGINE_TEXT, "vCPU %u is to run at host %s: %s", vcpu,
				 dsm_worker_name(w, d->where[vcpu]), strerror(-rc));
			return rc;
		}
	}
	if (!is_home(w, w->p.config->self))
		return 0;
	w->start.time = (struct dsm_vcpu_msg){
		.type = DSM_VCPU_TIME, .flags = (uint8_t)d->slow,
	};
	rc = xen->get_time(w->p.xen, &w->start.time);
	if (!rc)
		rc = xen->get_policy(w->p.xen, w->start.policy, sizeof(w->start.policy));
	if (rc)
		snprintf(text, DSM_ENGINE_TEXT, "the guest's time and CPU policy: %s", strerror(-rc));
	else
		begin_time(w, w->start.time.number);
	if (dsm_start_is_done(w))
		dsm_engine_hold_vcpus(w->engine, false);
	return rc;
}

bool dsm_start_up(struct dsm_worker *w, unsigned int host)
{
	unsigned int version = dsm_transport_version(w->transport, host);

	w->peer[host].told = false;
	w->peer[host].ready = false;
	w->peer[host].to_tell = false;
	w->peer[host].looks = 0;
	if (!w->p.description->nr_places || !dsm_start_concerns(w, host))
		return true;
	if (version < DSM_WIRE_VCPUS && !is_needed(w)) {
		dsm_engine_ready(w->engine, host, DSM_NOT_VERSION);
		dsm_worker_say(w, 4, "host %s: it speaks version %u of the protocol, and vCPUs need %u",
			       dsm_worker_name(w, host), version, DSM_WIRE_VCPUS);
		return true;
	}
	if (version < DSM_WIRE_VCPUS) {
		fail(w, host, "it speaks version %u of the protocol, and vCPUs need %u", version,
		     DSM_WIRE_VCPUS);
		return false;
	}
	if (is_home(w, w->p.config->self)) {
		w->peer[host].to_tell = dsm_start_has_places(w, host);
		if (!dsm_engine_is_placing(w->engine))
			dsm_start_tell(w);
	} else if (is_home(w, host)) {
		w->start.parts = 0;
		w->start.has_table = false;
		w->start.is_told = false;
		w->start.is_refused = false;
	} else {
		dsm_engine_join(w->engine, host);
	}
	return true;
}

bool dsm_start_message(struct dsm_worker *w, unsigned int host, const struct dsm_msg *msg,
		       const uint8_t *bytes)
{
	bool ready = msg->type == DSM_VCPU_READY;

	if (!ready && msg->type != DSM_VCPU_POLICY && msg->type != DSM_VCPU_TIME &&
	    msg->type != DSM_VCPU_TABLE)
		return false;
	if (dsm_engine_failure(w->engine))
		return true;
	if (ready ? !is_home(w, w->p.config->self) :
		    !is_home(w, host) || !dsm_start_has_places(w, w->p.config->self)) {
		dsm_start_breach(w, host, msg->type, "it has nothing to say here");
		return true;
	}
	if (ready)
		got_ready(w, &w->peer[host], bytes);
	else if (msg->type == DSM_VCPU_POLICY)
		got_policy(w, msg, bytes);
	else if (msg->type == DSM_VCPU_TABLE)
		got_table(w, bytes);
	else
		got_time(w, bytes);
	return true;
}

bool dsm_start_is_done(const struct dsm_worker *w)
{
	unsigned int i;

	if (!w->p.description->nr_places)
		return true;
	if (!is_home(w, w->p.config->self))
		return w->start.is_done || !has_first(w, w->p.config->self);
	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (has_first(w, i) && !w->peer[i].ready)
			return false;
	return true;
}

bool dsm_start_keeps(const struct dsm_worker *w, unsigned int host)
{
	unsigned int self = w->p.config->self;

	if (!w->p.description->nr_places)
		return false;
	/* The home has one always. */
	return (is_home(w, self) || dsm_engine_runs_vcpus(w->engine, self)) &&
	       (is_home(w, host) || dsm_engine_runs_vcpus(w->engine, host));
}
