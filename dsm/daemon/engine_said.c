// SPDX-License-Identifier: GPL-2.0
/*
 * What Xen's ring says of vCPUs that run on other hosts: a letter to there.
 * engine_vcpus.c has the rest, and says what a letter is.
 *
 * What the table does not allow is our own mistake.
 *
 * Context: the engine's thread.
 */
#include <inttypes.h>

#include "engine_internal.h"

#define XEN_EINVAL	22	/* Xen's number, for the guest */

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
		letter->since = now(e);
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
	host = engine_host_of_port(e, (uint32_t)m->number);
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
		letter->since = now(e);
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
		case DSM_VCPU_ACCESS:
			sense = engine_access_said(e, m);
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
