// SPDX-License-Identifier: GPL-2.0
/*
 * vCPUs that run on other hosts: what Xen's ring says of them goes there, and
 * what hosts say of ours is done here.  Decision 0111.
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
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"

#define AGAIN	MS		/* ns between two tries of a call whose page is not here */
#define XEN_EINVAL	22	/* Xen's number, for the guest */

/* ---- The table ---- */

bool engine_runs_at(const struct dsm_engine *e, uint32_t vcpu, unsigned int host)
{
	return vcpu < e->p.nr_vcpus && e->vcpus.where[vcpu] == host;
}

/* Return: the host whose a port is; DSM_NOBODY. */
static unsigned int host_of_port(const struct dsm_engine *e, uint32_t port)
{
	unsigned int slice = dsm_port_slice(port, e->vm.nr_hosts);

	return slice < e->vm.nr_hosts ? dsm_slice_number(e->vm.token_home, slice) :
					DSM_NOBODY;
}

bool engine_runs_vcpus(const struct dsm_engine *e, unsigned int host)
{
	return e->vcpus.carried && e->vcpus.at[host];
}

const char *engine_vcpus_of(const struct dsm_engine *e, unsigned int host,
			    char *text, size_t size)
{
	unsigned int first, last;
	size_t at = 0;

	text[0] = 0;
	if (!engine_runs_vcpus(e, host))
		return text;
	for (first = 0; first < e->p.nr_vcpus; first = last + 1) {
		last = first;
		if (e->vcpus.where[first] != host)
			continue;
		while (engine_runs_at(e, last + 1, host))
			last++;
		if (at < size)
			at += (size_t)snprintf(text + at, size - at, last > first ? "%s%u-%u" : "%s%u",
					       at ? ", " : "", first, last);
	}
	return text;
}

void engine_check_done(struct dsm_engine *e, const struct dsm_vcpu_msg *m, int rc)
{
	if (rc)
		engine_fail(e, "Xen does not do %s of vCPU %" PRIu32 ", 0x%" PRIx64 ": %s",
			    dsm_type_name(m->type), m->vcpu, m->number, strerror(-rc));
}

/* ---- What the ring says ---- */

static bool said_event(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	struct letter *letter;

	if (m->vcpu >= e->p.nr_vcpus)
		return false;
	/* What was said before it came here, or went, is read after it: it waits as well. */
	if (engine_runs_at(e, m->vcpu, e->vm.self) && !e->vcpus.stop.on)
		return false;
	letter = &e->vcpus.carried[m->vcpu].event;
	if (letter->queued) {
		dsm_vcpu_merge(&letter->msg, m);
		e->counts.vcpu_merged++;
	} else {
		letter->msg = *m;
	}
	engine_post(e, letter, e->vcpus.where[m->vcpu]);
	e->counts.vcpu_events++;
	return true;
}

static bool said_ports(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	unsigned int host, i;
	struct letter *letter;

	if (m->number >= DSM_PORTS || m->number % DSM_PORTS_AT_ONCE)
		return false;
	host = host_of_port(e, (uint32_t)m->number);
	if (host == DSM_NOBODY || host == e->vm.self || host != m->host)
		return false;
	/* Nobody has bound any there: they are lost, as Xen would lose them. */
	if (!e->vcpus.at[host])
		return true;
	letter = &e->vcpus.ports[m->number / DSM_PORTS_AT_ONCE];
	if (letter->queued) {
		for (i = 0; i < DSM_VCPU_WORDS; i++)
			letter->msg.word[i] |= m->word[i];
		e->counts.vcpu_merged++;
	} else {
		letter->msg = *m;
	}
	engine_post(e, letter, host);
	e->counts.vcpu_ports++;
	return true;
}

/* A call about a port of a host without vCPUs: nobody has bound it. */
static void answer_for_nobody(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	const struct dsm_vcpu_msg reply = {
		.type = DSM_VCPU_REPLY, .vcpu = m->vcpu, .number = m->number, .rc = -XEN_EINVAL,
		.word = { m->word[0], m->word[1], m->word[2] },
	};

	engine_check_done(e, &reply, e->p.xen->calls->reply(e->p.xen, &reply));
}

/*
 * Where the guest has its shared_info, if that is memory of the home; else 0.  It may
 * put it anywhere, and the other host would call it a breach of ours.
 */
uint64_t engine_own_shared_info(struct dsm_engine *e)
{
	uint64_t gfn;

	if (e->vm.self != e->vm.token_home)
		return 0;
	gfn = e->p.xen->calls->shared_info_at(e->p.xen);
	return dsm_vm_home(&e->vm, gfn) == e->vm.self ? gfn : 0;
}

static bool said_call(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	struct carried *c;

	if (!engine_runs_at(e, m->vcpu, e->vm.self) || m->host >= e->vm.nr_hosts ||
	    m->host == e->vm.self)
		return false;
	c = &e->vcpus.carried[m->vcpu];
	if (c->asks)
		return false;
	if (!e->vcpus.at[m->host]) {
		answer_for_nobody(e, m);
		return true;
	}
	c->asks = true;
	c->call.msg = *m;
	/* Where it is to be mapped there, before what it is about is used. */
	c->call.msg.word[3] = engine_own_shared_info(e);
	engine_post(e, &c->call, m->host);
	e->counts.vcpu_calls++;
	return true;
}

void engine_say_shutdown(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts; host++)
		if (host != e->vm.self && e->vm.up & e->vcpus.joined & dsm_bit(host))
			engine_send_vcpu(e, host, m);
}

static bool said_shutdown(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	if (m->flags >= DSM_SHUTDOWNS)
		return false;
	/* Who was told by a peer hears it of Xen again. */
	if (e->vcpus.shut)
		return true;
	e->vcpus.shut = true;
	e->vcpus.shut_code = m->flags;
	/* Tables differ now, and who has no vCPU says nothing. */
	e->vcpus.stop.owes_shutdown = e->vcpus.stop.on;
	e->vcpus.stop.shutdown = *m;
	if (!e->vcpus.stop.on)
		engine_say_shutdown(e, m);
	return true;
}

void engine_vcpu_said(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	/* Of a VM whose vCPUs are all here Xen knows more than we. */
	bool sense = m->type == DSM_VCPU_IDLE && !e->vcpus.carried;

	if (e->vcpus.carried) {
		switch (m->type) {
		case DSM_VCPU_EVENT:
			sense = said_event(e, m);
			break;
		case DSM_VCPU_PORTS:
			sense = said_ports(e, m);
			break;
		case DSM_VCPU_CALL:
			sense = said_call(e, m);
			break;
		case DSM_VCPU_SHUTDOWN:
			sense = said_shutdown(e, m);
			break;
		case DSM_VCPU_IDLE:
			sense = engine_idle_said(e, m);
			break;
		}
	}
	if (!sense)
		engine_fail(e, "Xen's ring: %s of vCPU %" PRIu32 ", 0x%" PRIx64 " for host %u, "
			    "which makes no sense", dsm_type_name(m->type), m->vcpu,
			    m->number, m->host);
}

/* ---- What peers say ---- */

void engine_breach(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m,
		   const char *what)
{
	char why[DSM_ENGINE_TEXT / 2];

	snprintf(why, sizeof(why), "it breaks the protocol: %s of vCPU %" PRIu32 ", 0x%" PRIx64
		 ": %s", dsm_type_name(m->type), m->vcpu, m->number, what);
	engine_lose(e, from, why);
}

/* Return: 0; -EAGAIN; what Xen says.  The guest has it once, and a peer may say anything. */
static int map_shared_info(struct dsm_engine *e, uint64_t gfn)
{
	unsigned int home = dsm_vm_home(&e->vm, gfn);
	int rc;

	if (!gfn || e->vcpus.shared)
		return 0;
	if (home == DSM_NOBODY || home == e->vm.self)
		return -EINVAL;
	rc = e->p.xen->calls->shared_info(e->p.xen, gfn);
	e->vcpus.shared = !rc || rc == -EEXIST;
	return rc == -EBUSY ? -EAGAIN : rc == -EEXIST ? 0 : rc;
}

int engine_do_call(struct dsm_engine *e, struct dsm_vcpu_msg *call)
{
	int rc = map_shared_info(e, call->word[3]);

	call->word[3] = 0;
	return rc ? rc : e->p.xen->calls->call(e->p.xen, call);
}

static void try_call(struct dsm_engine *e, struct carried *c)
{
	struct dsm_vcpu_msg m = c->doing;
	unsigned int from = e->vcpus.where[m.vcpu];
	int rc = engine_do_call(e, &m);

	switch (rc) {
	case -EAGAIN:
		e->counts.vcpu_calls_again++;
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

static void try_calls(struct dsm_engine *e)
{
	struct carried *c;

	e->vcpus.again = false;
	for (c = e->vcpus.carried; c < e->vcpus.carried + e->p.nr_vcpus &&
	     e->vcpus.nr_doing && !e->has_failed; c++)
		if (c->is_doing)
			try_call(e, c);
}

/* What could not be done before: calls, and a PLACE. */
static void try_again(struct dsm_engine *e, uint64_t t)
{
	try_calls(e);
	if (!e->has_failed)
		engine_stop_tick(e, t);
	e->vcpus.due = e->vcpus.nr_doing || e->vcpus.stop.doing.type ? t + AGAIN : DSM_NEVER;
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
		return host_of_port(e, port) == e->vm.self ? 0 : DSM_E_PORT;
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
	e->vcpus.nr_doing++;
	if (e->vcpus.due == DSM_NEVER)
		e->vcpus.due = now(e) + AGAIN;
	try_call(e, c);
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

static int got_ports(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	if (host_of_port(e, (uint32_t)m->number) != e->vm.self)
		return DSM_E_PORT;
	engine_check_done(e, m, e->p.xen->calls->send_ports(e->p.xen, m));
	return 0;
}

void engine_send_here(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	engine_idle_sends(e);
	engine_check_done(e, m, e->p.xen->calls->send_event(e->p.xen, m));
}

static int got_event(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	if (!engine_runs_at(e, m->vcpu, e->vm.self))
		return DSM_E_VCPU;
	engine_idle_received(e, from);
	engine_send_here(e, m);
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
				 m->type == DSM_VCPU_CALL);
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

void engine_vcpus_came(struct dsm_engine *e)
{
	e->vcpus.again = e->vcpus.nr_doing || e->vcpus.stop.placed;
}

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
}

void engine_vcpus_tick(struct dsm_engine *e, uint64_t t)
{
	if (e->vcpus.due <= t)
		try_again(e, t);
	if (!e->has_failed)
		engine_place_tick(e, t);
}

bool engine_vcpus_are_quiet(const struct dsm_engine *e)
{
	unsigned int i;

	if (e->vcpus.nr_letters || e->vcpus.nr_doing)
		return false;
	for (i = 0; e->vcpus.carried && i < e->p.nr_vcpus; i++)
		if (e->vcpus.carried[i].asks)
			return false;
	return true;
}

/* ---- The table changes ---- */

void engine_set_where(struct dsm_engine *e, unsigned int vcpu, unsigned int host)
{
	uint8_t *where = &e->vcpus.where[vcpu];

	if (*where == host)
		return;
	e->vcpus.at[*where]--;
	if (!e->vcpus.at[host]++)
		engine_idle_forget(e, host);
	*where = (uint8_t)host;
}

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
