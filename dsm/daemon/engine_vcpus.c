// SPDX-License-Identifier: GPL-2.0
/*
 * vCPUs that run on other hosts: what Xen's ring says of them goes there
 * (engine_said.c), and what hosts say of ours is done here.  Decision 0111.
 *
 * A table says where each vCPU runs.  It is the same at all hosts, and changes only
 * while the guest stands still on all of them (engine_stop.c).  What the ring says
 * and the table does not allow is our own mistake; what a peer says is a breach.
 *
 * Nothing grows.  What is to be sent is a letter, and there is one for each
 * thing that can be said at a time: an EVENT to a vCPU, PORTS of 256, a CALL by a
 * vCPU, a REPLY to one.  A letter that can't go yet waits in its host's line, and
 * what comes for the same place is put together with it.
 *
 * Context: the engine's thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine_internal.h"

/*
 * A call whose page is not here is tried again when a page has come that a tool or a
 * call has missed, and, as Xen may have had no room to say which, after so many ns,
 * and twice as many each time.
 */
#define AGAIN		MS
#define AGAIN_MOST	(64 * MS)
#define LONG		(1000 * MS)	/* that it lasts is said */

/* ---- What peers say ---- */

static void later(struct dsm_engine *e, struct carried *c, unsigned int from)
{
	uint64_t t = now(e);

	e->counts.vcpu_calls_again++;
	if (t - c->doing_since >= LONG)
		engine_warn(e, WARN_CALL, "a call by vCPU %u of host %s waits for a page for %llu ms: operation %u.%u",
			    c->doing.vcpu, name_of(e, from), (t - c->doing_since) / MS, c->doing.op,
			    c->doing.cmd);
	/* Not because of its time: that stays. */
	if (c->backoff_ns && t < c->doing_due)
		return;
	c->backoff_ns = !c->backoff_ns ? AGAIN :
			c->backoff_ns < AGAIN_MOST ? 2 * c->backoff_ns : AGAIN_MOST;
	c->doing_due = t + c->backoff_ns;
}

static void try_call(struct dsm_engine *e, struct carried *c)
{
	struct dsm_vcpu_msg m = c->doing;
	unsigned int from = e->vcpus.where[m.vcpu];
	int rc = engine_do_call(e, &m);

	switch (rc) {
	case -EAGAIN:
		later(e, c, from);
		return;
	case -EINVAL:
	case -ENOENT:
	case -EXDEV:
	case -EOPNOTSUPP:
		engine_breach(e, from, &c->doing, "Xen does not do it for another host");
		return;
	case 0:
		break;
	default:
		engine_check_done(e, &c->doing, rc);
		return;
	}
	c->is_doing = false;
	e->vcpus.nr_doing--;
	c->reply.msg = (struct dsm_vcpu_msg){
		.type = DSM_VCPU_REPLY, .vcpu = m.vcpu, .number = m.number, .rc = m.rc,
		.word = { m.word[0], m.word[1], m.word[2] },
	};
	engine_post(e, &c->reply, from);
	e->counts.vcpu_calls_done++;
}

/* Return: when the next one is due. */
static uint64_t try_calls(struct dsm_engine *e, uint64_t t)
{
	bool all = e->vcpus.again;
	uint64_t due = DSM_NEVER;
	struct carried *c;

	e->vcpus.again = false;
	for (c = e->vcpus.carried; c < e->vcpus.carried + e->p.nr_vcpus &&
	     e->vcpus.nr_doing && !e->has_failed; c++) {
		if (c->is_doing && (all || c->doing_due <= t))
			try_call(e, c);
		if (c->is_doing && c->doing_due < due)
			due = c->doing_due;
	}
	return due;
}

/* What could not be done before: calls, and a PLACE. */
static void try_again(struct dsm_engine *e, uint64_t t)
{
	uint64_t due = try_calls(e, t);

	if (!e->has_failed)
		engine_stop_tick(e, t);
	e->vcpus.due = e->vcpus.stop.doing.type && t + AGAIN < due ? t + AGAIN : due;
}

/* Return: 0, or enum dsm_error. */
static int may_call(const struct dsm_engine *e, unsigned int from,
		    const struct dsm_vcpu_msg *m)
{
	const struct carried *c;
	uint32_t port;

	if (!engine_runs_at(e, m->vcpu, from))
		return DSM_E_VCPU;
	if (m->word[3] && from != e->vm.token_home)
		return DSM_E_RESERVED;
	c = &e->vcpus.carried[m->vcpu];
	if (c->is_doing || c->reply.queued)
		return DSM_E_SECOND;
	switch (dsm_call_concern(m, &port)) {
	case DSM_CALL_OF_VCPU:
		return engine_runs_at(e, m->about, e->vm.self) ? 0 : DSM_E_VCPU;
	case DSM_CALL_OF_PORT:
		if (m->about)
			return DSM_E_VCPU;
		return engine_host_of_port(e, port) == e->vm.self ? 0 : DSM_E_PORT;
	default:
		return DSM_E_CALL;
	}
}

static int got_call(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	struct carried *c;
	int rc = may_call(e, from, m);

	if (rc)
		return rc;
	c = &e->vcpus.carried[m->vcpu];
	c->doing = *m;
	c->is_doing = true;
	c->doing_since = now(e);
	c->backoff_ns = 0;
	e->vcpus.nr_doing++;
	try_call(e, c);
	if (c->is_doing && c->doing_due < e->vcpus.due)
		e->vcpus.due = c->doing_due;
	return 0;
}

static int got_reply(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	struct carried *c = &e->vcpus.carried[m->vcpu];
	int rc;

	if (!engine_runs_at(e, m->vcpu, e->vm.self) || !c->asks || c->call.queued ||
	    c->call.host != from || c->call.msg.number != m->number)
		return DSM_E_NOT_ASKED;
	c->asks = false;
	rc = e->p.xen->calls->reply(e->p.xen, m);
	/* All else of it has been looked at. */
	if (rc == -EINVAL)
		return DSM_E_PORT;
	engine_check_done(e, m, rc);
	return 0;
}

/* Xen has what another host's vCPU has sent, and was read at @since.  The hypercall takes time. */
static void count_in(struct dsm_engine *e, uint64_t since)
{
	engine_time_passes(e);
	dsm_histogram_add(&e->counts.ipi_in, now(e) - since);
}

static int got_ports(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	uint64_t since = engine_read_at(e);

	if (engine_host_of_port(e, (uint32_t)m->number) != e->vm.self)
		return DSM_E_PORT;
	engine_check_done(e, m, e->p.xen->calls->send_ports(e->p.xen, m));
	count_in(e, since);
	return 0;
}

static int got_event(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	uint64_t since = engine_read_at(e);

	if (!engine_runs_at(e, m->vcpu, e->vm.self))
		return DSM_E_VCPU;
	engine_idle_received(e, from);
	engine_send_here(e, m);
	count_in(e, since);
	return 0;
}

static int got_shutdown(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	char text[DSM_ENGINE_TEXT];

	if (e->vcpus.shut)
		return 0;
	e->vcpus.shut = true;
	e->vcpus.shut_code = m->flags;
	snprintf(text, sizeof(text), "host %s: the guest has shut down, with code %u",
		 name_of(e, from), m->flags);
	e->p.calls->warn(e->p.context, text);
	engine_check_done(e, m, e->p.xen->calls->shutdown(e->p.xen, m->flags));
	return 0;
}

/* A vCPU elsewhere has said it, and none runs before all hosts are ready. */
static bool is_early(const struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	return e->vcpus.held && (m->type == DSM_VCPU_EVENT || m->type == DSM_VCPU_PORTS ||
				 m->type == DSM_VCPU_CALL || m->type == DSM_VCPU_ACCESS);
}

static int got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	if (!e->vcpus.carried || m->vcpu >= e->p.nr_vcpus)
		return DSM_E_VCPU;
	switch (m->type) {
	case DSM_VCPU_STOP:
	case DSM_VCPU_FENCE:
	case DSM_VCPU_PLACE:
	case DSM_VCPU_GO:
		return engine_stop_got(e, from, m);
	case DSM_VCPU_QUIET:
	case DSM_VCPU_PLACED:
		return engine_place_got(e, from, m);
	case DSM_VCPU_PAUSE:
	case DSM_VCPU_PAUSED:
		return engine_pause_got(e, from, m);
	}
	/* Of its slice, of which it may have been the last one. */
	if (!(m->type == DSM_VCPU_SHUTDOWN ? e->vcpus.joined & dsm_bit(from) :
					     engine_runs_vcpus(e, from)))
		return DSM_E_VCPU;
	if (is_early(e, m))
		return DSM_E_NOT_NOW;
	switch (m->type) {
	case DSM_VCPU_EVENT:
		return got_event(e, from, m);
	case DSM_VCPU_PORTS:
		return got_ports(e, m);
	case DSM_VCPU_CALL:
		return got_call(e, from, m);
	case DSM_VCPU_REPLY:
		return got_reply(e, from, m);
	case DSM_VCPU_ACCESS:
		return engine_access_got(e, from, m);
	case DSM_VCPU_ACCESSED:
		return engine_accessed_got(e, from, m);
	case DSM_VCPU_SHUTDOWN:
		return got_shutdown(e, from, m);
	case DSM_VCPU_IDLE:
		return engine_idle_got(e, from, m);
	}
	return DSM_E_TYPE;
}

void dsm_engine_vcpu_message(struct dsm_engine *e, unsigned int from,
			     const struct dsm_msg *head, const uint8_t *bytes)
{
	struct dsm_vcpu_msg m = { .type = head->type };
	int rc;

	if (e->has_failed)
		return;
	if (from >= e->vm.nr_hosts || !(e->vm.up & dsm_bit(from)))
		rc = DSM_E_PEER;
	else if (head->epoch != e->vm.epoch[from])
		rc = DSM_E_EPOCH;
	else
		rc = -dsm_vcpu_get(bytes, head->type, &m);
	if (!rc)
		rc = got(e, from, &m);
	if (rc && !e->has_failed)
		engine_breach(e, from, &m, dsm_error_name((unsigned int)rc));
}

/* ---- Now and then ---- */

void engine_vcpus_run(struct dsm_engine *e)
{
	if (!e->vcpus.carried || e->has_failed)
		return;
	if (e->vcpus.again)
		try_again(e, now(e));
	do {
		engine_send_letters(e);
		/* What has gone by now is in the report. */
		engine_idle_run(e);
		engine_send_letters(e);
	} while (engine_stop_run(e) || engine_place_run(e));
	engine_pause_run(e);
}

void engine_vcpus_tick(struct dsm_engine *e, uint64_t t)
{
	if (e->vcpus.due <= t)
		try_again(e, t);
	if (!e->has_failed)
		engine_place_tick(e, t);
	engine_pause_tick(e, t);
}

/* ---- The table changes ---- */

unsigned int dsm_engine_where(const struct dsm_engine *e, unsigned int vcpu)
{
	return e->vcpus.where[vcpu];
}

static int place_here(struct dsm_engine *e, unsigned int vcpu, unsigned int host)
{
	int rc = e->p.xen->calls->pause(e->p.xen);

	if (rc)
		return rc;
	rc = e->p.xen->calls->place(e->p.xen, vcpu, host, NULL);
	if (e->p.xen->calls->unpause(e->p.xen) && !rc)
		rc = -EIO;
	if (!rc)
		engine_set_where(e, vcpu, host);
	return rc;
}

int dsm_engine_set_table(struct dsm_engine *e, const uint8_t *where)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < e->p.nr_vcpus; i++)
		if (where[i] != e->vm.token_home &&
		    (where[i] != e->p.places[i] || (where[i] == e->vm.self && !engine_runs_at(e, i, where[i]))))
			return -DSM_E_VCPU;
	for (i = 0; i < e->p.nr_vcpus && !rc; i++)
		if (!engine_runs_at(e, i, where[i]))
			rc = place_here(e, i, where[i]);
	return rc;
}

void dsm_engine_join(struct dsm_engine *e, unsigned int host)
{
	e->vcpus.joined |= (uint16_t)dsm_bit(host);
	engine_settle_class_u(e);
	/* It was not there when it was said. */
	if (e->vcpus.shut && !e->vcpus.stop.owes_shutdown)
		engine_send_vcpu(e, host, &(struct dsm_vcpu_msg){
					 .type = DSM_VCPU_SHUTDOWN, .flags = e->vcpus.shut_code });
	engine_vcpus_run(e);
}

void dsm_engine_ready(struct dsm_engine *e, unsigned int host, unsigned int why)
{
	e->vcpus.not_ready[host] = (uint8_t)why;
	if (!why)
		e->vcpus.ready |= (uint16_t)dsm_bit(host);
	engine_vcpus_run(e);
}

void dsm_engine_hold_vcpus(struct dsm_engine *e, bool hold)
{
	/* Each host that is ready says so again. */
	if (e->vcpus.held)
		e->vcpus.goes_since = now(e);
	e->vcpus.held = hold;
}

bool dsm_engine_runs_vcpus(const struct dsm_engine *e, unsigned int host)
{
	return engine_runs_vcpus(e, host);
}

/* ---- Begin and end ---- */

int engine_begin_vcpus(struct dsm_engine *e)
{
	unsigned int i;

	for (i = 0; i < DSM_MAX_HOSTS; i++)
		TAILQ_INIT(&e->vcpus.line[i]);
	TAILQ_INIT(&e->vcpus.away);
	e->vcpus.due = DSM_NEVER;
	if (!e->p.where)
		return 0;
	e->vcpus.carried = calloc(e->p.nr_vcpus, sizeof(*e->vcpus.carried));
	if (!e->vcpus.carried)
		return -ENOMEM;
	for (i = 0; i < e->p.nr_vcpus; i++) {
		e->vcpus.where[i] = e->p.where[i];
		e->vcpus.at[e->p.where[i]]++;
	}
	engine_begin_idle(e);
	engine_begin_place(e);
	return 0;
}

void engine_end_vcpus(struct dsm_engine *e)
{
	free(e->vcpus.carried);
}
