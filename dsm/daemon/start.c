// SPDX-License-Identifier: GPL-2.0
/*
 * A VM with places, before it runs for the first time (decision 0111): its vCPUs
 * are placed in the slice of this host, and all slices have the CPU policy and
 * the time of the home's.
 *
 * The home says POLICY, in parts, and TIME to each host with places, as soon as
 * it is connected.  That one waits until it knows well enough how far its TSC is
 * from the home's (clock.h), does all of it, unpauses its slice and says READY.
 *
 * A vCPU that has begun can't be given another TSC.  So the home sends nothing to
 * vCPUs before all are ready, whoever has unpaused its domain, and nobody else has a
 * vCPU that could.
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

/* Does anything about vCPUs go between this host and another? */
static bool concerns(const struct dsm_worker *w, unsigned int host)
{
	unsigned int self = w->p.config->self;

	return (is_home(w, self) || dsm_start_has_places(w, self)) &&
	       (is_home(w, host) || dsm_start_has_places(w, host));
}

static void send_message(struct dsm_worker *w, struct dsm_peer *peer,
			 const struct dsm_vcpu_msg *m)
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

static void breach(struct dsm_worker *w, unsigned int host, unsigned int type,
		   const char *what)
{
	fail(w, host, "it breaks the protocol: %s: %s", dsm_type_name(type), what);
}

static void look(struct dsm_worker *w)
{
	if (dsm_start_is_done(w))
		dsm_engine_hold_vcpus(w->engine, false);
	dsm_peers_look(w);
}

/* ---- At home ---- */

static void tell(struct dsm_worker *w, struct dsm_peer *peer)
{
	struct dsm_msg head = { .type = DSM_VCPU_POLICY, .epoch = peer->epoch };

	for (head.gfn = 0; head.gfn < DSM_POLICY_PARTS; head.gfn++)
		dsm_transport_send(w->transport, peer->host, &head,
				   w->start.policy + head.gfn * DSM_PAGE_BYTES);
	send_message(w, peer, &w->start.time);
	peer->told = true;
}

static void got_ready(struct dsm_worker *w, struct dsm_peer *peer)
{
	if (!peer->told || peer->ready) {
		breach(w, peer->host, DSM_VCPU_READY, "nobody waits for it");
		return;
	}
	peer->ready = true;
	dsm_worker_say(w, 6, "host %s: ready for vCPUs", dsm_worker_name(w, peer->host));
	look(w);
}

/* ---- At the others ---- */

/* All is said: is all known? */
static void go_on(struct dsm_worker *w)
{
	unsigned int home = w->p.description->token_home;
	struct dsm_peer *peer = &w->peer[home];
	const struct dsm_xen_calls *xen = w->p.xen->calls;
	struct dsm_vcpu_msg time = w->start.time;
	struct dsm_clock_offset offset;
	int rc;

	if (!w->start.is_told || w->start.is_done || dsm_engine_failure(w->engine))
		return;
	rc = w->tsc_khz ? dsm_clock_get(&peer->clock, xen->tsc(w->p.xen), &offset) : -EOPNOTSUPP;
	if (rc == -EOPNOTSUPP)
		fail(w, home, "its TSC and ours can't be one guest's: see the log");
	if (rc)
		return;		/* with one of the next answers */
	rc = xen->set_policy(w->p.xen, w->start.policy, sizeof(w->start.policy));
	if (rc) {
		fail(w, home, "its CPU policy can't be that of this host: %s", strerror(-rc));
		return;
	}
	time.number += offset.offset;
	rc = xen->set_time(w->p.xen, &time);
	if (!rc)
		rc = xen->start(w->p.xen);
	if (rc) {
		fail(w, home, "Xen does not take its time: %s", strerror(-rc));
		return;
	}
	w->start.is_done = true;
	w->start.applied = offset;
	dsm_worker_say(w, 6, "host %s: its time is ours, to %" PRIu64 " ns", dsm_worker_name(w, home),
		       dsm_clock_ns(w->tsc_khz, offset.error));
	send_message(w, peer, &(struct dsm_vcpu_msg){ .type = DSM_VCPU_READY });
	look(w);
}

static void got_policy(struct dsm_worker *w, const struct dsm_msg *msg, const uint8_t *page)
{
	if (w->start.is_told || msg->gfn != w->start.parts) {
		breach(w, w->p.description->token_home, msg->type, "not its turn");
		return;
	}
	memcpy(w->start.policy + msg->gfn * DSM_PAGE_BYTES, page, DSM_PAGE_BYTES);
	w->start.parts++;
}

static void got_time(struct dsm_worker *w, const uint8_t *bytes)
{
	unsigned int home = w->p.description->token_home;
	struct dsm_vcpu_msg time;
	int rc = dsm_vcpu_get(bytes, DSM_VCPU_TIME, &time);

	if (rc || w->start.is_told || w->start.parts != DSM_POLICY_PARTS) {
		breach(w, home, DSM_VCPU_TIME, rc ? dsm_error_name((unsigned int)-rc) : "not its turn");
		return;
	}
	w->start.is_told = true;
	/* The home is connected again: what it said before holds. */
	if (w->start.is_done) {
		send_message(w, &w->peer[home], &(struct dsm_vcpu_msg){ .type = DSM_VCPU_READY });
		return;
	}
	w->start.time = time;
	go_on(w);
}

/*
 * The guest has one time as long as both TSCs are apart as they were.  If they
 * are not it may see time go back, and pages do not rest on it: an operator has to
 * know.
 */
static void judge(struct dsm_worker *w, const struct dsm_peer *home)
{
	uint64_t least = 0, most = 0;
	int rc = dsm_clock_judge(&home->clock, w->p.xen->calls->tsc(w->p.xen), &w->start.applied,
				 &least, &most);
	bool wrong = rc == -ERANGE || rc == -ESTALE;

	if (wrong == w->start.is_wrong || (!wrong && rc))
		return;
	w->start.is_wrong = wrong;
	if (rc == -ESTALE)
		dsm_worker_say(w, 3, "host %s: the clocks have jumped: the guest has two times",
			       dsm_worker_name(w, home->host));
	else
		dsm_worker_say(w, wrong ? 3 : 6, "host %s: the guest's time here is wrong by %" PRIu64
			       " to %" PRIu64 " ns", dsm_worker_name(w, home->host),
			       dsm_clock_ns(w->tsc_khz, least), dsm_clock_ns(w->tsc_khz, most));
}

void dsm_start_clock(struct dsm_worker *w, unsigned int host, bool has_clock)
{
	if (!dsm_start_has_places(w, w->p.config->self) || !is_home(w, host))
		return;
	if (w->start.is_done) {
		judge(w, &w->peer[host]);
		return;
	}
	if (!has_clock)
		fail(w, host, "it has no TSC to compare, or we have none: see the log");
	go_on(w);
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
	dsm_engine_hold_vcpus(w->engine, true);
	for (vcpu = 0; vcpu < d->nr_vcpus; vcpu++) {
		if (is_home(w, d->where[vcpu]))
			continue;
		rc = xen->place(w->p.xen, vcpu, d->where[vcpu]);
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
	return rc;
}

bool dsm_start_up(struct dsm_worker *w, unsigned int host)
{
	unsigned int version = dsm_transport_version(w->transport, host);

	w->peer[host].told = false;
	w->peer[host].ready = false;
	if (!w->p.description->nr_places || !concerns(w, host))
		return true;
	if (version < DSM_WIRE_VCPUS) {
		fail(w, host, "it speaks version %u of the protocol, and vCPUs need %u", version,
		     DSM_WIRE_VCPUS);
		return false;
	}
	if (is_home(w, w->p.config->self)) {
		if (dsm_start_has_places(w, host))
			tell(w, &w->peer[host]);
	} else if (is_home(w, host)) {
		w->start.parts = 0;
		w->start.is_told = false;
	}
	return true;
}

bool dsm_start_message(struct dsm_worker *w, unsigned int host, const struct dsm_msg *msg,
		       const uint8_t *bytes)
{
	bool ready = msg->type == DSM_VCPU_READY;

	if (!ready && msg->type != DSM_VCPU_POLICY && msg->type != DSM_VCPU_TIME)
		return false;
	if (dsm_engine_failure(w->engine))
		return true;
	if (ready ? !is_home(w, w->p.config->self) :
		    !is_home(w, host) || !dsm_start_has_places(w, w->p.config->self)) {
		breach(w, host, msg->type, "it has nothing to say here");
		return true;
	}
	if (ready)
		got_ready(w, &w->peer[host]);
	else if (msg->type == DSM_VCPU_POLICY)
		got_policy(w, msg, bytes);
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
		return w->start.is_done || !dsm_start_has_places(w, w->p.config->self);
	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (dsm_start_has_places(w, i) && !w->peer[i].ready)
			return false;
	return true;
}

bool dsm_start_keeps(const struct dsm_worker *w, unsigned int host)
{
	unsigned int self = w->p.config->self;

	return w->p.description->nr_places &&
	       dsm_engine_runs_vcpus(w->engine, is_home(w, self) ? host : self);
}
