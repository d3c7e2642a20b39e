// SPDX-License-Identifier: GPL-2.0
/*
 * A guest that its operator has paused stands still on all hosts.  Decision 0134.
 *
 * Xen at the home says whether it is paused, and nothing else does: the home looks now and
 * then, and when somebody asks (dsm_engine_follow()), and tells the hosts that are ready for
 * vCPUs, with one PAUSE at a time for each, which is answered.  So it comes true, whoever has
 * paused or unpaused the domain, and whoever was killed meanwhile.
 *
 *	home to each	PAUSE	1: the slice is paused; 0: it is unpaused
 *	each to home	PAUSED	so it is
 *
 * Each pause of ours is one of its own: that of a round (engine_stop.c), this one, an
 * operator's of that host.  In a round the home's slice has ours, so it does not look.
 *
 * Before the guest runs for the first time its domain is paused since nobody has started it;
 * nobody is told of that.
 *
 * A host that does not answer is not lost by it: nobody but who asked waits.
 *
 * Context: the engine's thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine_internal.h"

#define AGAIN_RUNS	(1000 * MS)	/* until the next look */
#define AGAIN_PAUSED	(100 * MS)

static bool is_home(const struct dsm_engine *e)
{
	return e->vm.self == e->vm.token_home;
}

/* Whose slices may have vCPUs that run. */
static uint16_t ready(const struct dsm_engine *e)
{
	return (uint16_t)(e->vcpus.joined & e->vm.up & e->vcpus.ready & ~dsm_bit(e->vm.self));
}

/* ---- At home ---- */

/* Return: the first host whose vCPUs can't stand still, since it does not know of it; nr_hosts: none. */
static unsigned int first_older(const struct dsm_engine *e)
{
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts; host++)
		if (ready(e) & ~e->take_pause & dsm_bit(host) && e->vcpus.at[host])
			break;
	return host;
}

/* Who has paused the guest and does not ask (an xl that was killed, gdbsx) hears of it here only. */
static void warn_of_older(struct dsm_engine *e)
{
	unsigned int host = first_older(e);
	char text[DSM_ENGINE_TEXT];

	if (host == e->vm.nr_hosts)
		return;
	snprintf(text, sizeof(text), "the guest is paused, and its vCPUs at host %s are not: its dsmd is older and can't have them stand still",
		 name_of(e, host));
	e->p.calls->warn(e->p.context, text);
}

static void look(struct dsm_engine *e)
{
	struct pausing *p = &e->vcpus.pausing;
	bool paused, was = p->wanted;

	/* It is paused by us. */
	if (e->vcpus.stop.on)
		return;
	paused = e->p.xen->calls->is_paused(e->p.xen);
	p->has_run |= !paused;
	p->wanted = paused && p->has_run;
	if (p->wanted && !was)
		warn_of_older(e);
	p->look = false;
	p->due = now(e) + (p->wanted ? AGAIN_PAUSED : AGAIN_RUNS);
}

/* Those who have not been told what is to be, and owe no answer. */
static uint16_t untold(const struct dsm_engine *e)
{
	const struct pausing *p = &e->vcpus.pausing;
	uint16_t differ = p->wanted ? (uint16_t)~p->told : p->told;

	return (uint16_t)(ready(e) & e->take_pause & differ & ~p->asked);
}

static void tell(struct dsm_engine *e)
{
	struct pausing *p = &e->vcpus.pausing;
	const struct dsm_vcpu_msg m = {
		.type = DSM_VCPU_PAUSE, .flags = p->wanted ? DSM_PAUSE_ON : 0,
	};
	uint16_t hosts = untold(e);
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts; host++) {
		if (!(hosts & dsm_bit(host)))
			continue;
		p->told ^= (uint16_t)dsm_bit(host);
		p->asked |= (uint16_t)dsm_bit(host);
		engine_send_vcpu(e, host, &m);
	}
}

void engine_pause_run(struct dsm_engine *e)
{
	if (!e->vcpus.carried || e->has_failed || !is_home(e))
		return;
	if (e->vcpus.pausing.look)
		look(e);
	tell(e);
}

uint64_t engine_pause_due(const struct dsm_engine *e)
{
	return e->vcpus.carried && is_home(e) ? e->vcpus.pausing.due : DSM_NEVER;
}

void engine_pause_tick(struct dsm_engine *e, uint64_t t)
{
	struct pausing *p = &e->vcpus.pausing;

	if (engine_pause_due(e) > t)
		return;
	p->look = true;
	/* Of a round, in which it does not look. */
	p->due = t + AGAIN_PAUSED;
}

static int got_paused(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	struct pausing *p = &e->vcpus.pausing;
	uint16_t bit = (uint16_t)dsm_bit(from);

	if (!(p->asked & bit) || !(p->told & bit) != !m->flags)
		return DSM_E_NOT_ASKED;
	p->asked &= (uint16_t)~bit;
	return 0;
}

void dsm_engine_follow(struct dsm_engine *e)
{
	struct pausing *p = &e->vcpus.pausing;

	/* Who asks has started it. */
	p->has_run = true;
	p->look = true;
}

/* Return: the first of these hosts. */
static unsigned int first_of(unsigned int hosts)
{
	unsigned int host = 0;

	while (!(hosts & dsm_bit(host)))
		host++;
	return host;
}

int dsm_engine_follows(const struct dsm_engine *e, char text[DSM_ENGINE_TEXT])
{
	const struct pausing *p = &e->vcpus.pausing;
	unsigned int host;

	if (!e->vcpus.carried || !is_home(e))
		return 0;
	if (p->look) {
		snprintf(text, DSM_ENGINE_TEXT, "busy vCPUs are on their way");
		return -EINPROGRESS;
	}
	host = first_older(e);
	if (p->wanted && host < e->vm.nr_hosts) {
		snprintf(text, DSM_ENGINE_TEXT, "version host %s: vCPUs run there, and its dsmd is older and can't have them stand still",
			 name_of(e, host));
		return -EINVAL;
	}
	if (!untold(e) && !p->asked)
		return 0;
	snprintf(text, DSM_ENGINE_TEXT, "busy host %s has not said that the guest %s there",
		 name_of(e, first_of(p->asked | untold(e))), p->wanted ? "stands still" : "goes on");
	return -EINPROGRESS;
}

uint16_t dsm_engine_paused_hosts(const struct dsm_engine *e)
{
	return (uint16_t)(e->vcpus.pausing.told & ~e->vcpus.pausing.asked);
}

/* ---- At the others ---- */

static int got_pause(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	struct pausing *p = &e->vcpus.pausing;
	int rc;

	if (from != e->vm.token_home)
		return DSM_E_NOT_HOME;
	if (e->vcpus.held || p->here == (m->flags != 0))
		return DSM_E_NOT_NOW;
	rc = m->flags ? e->p.xen->calls->pause(e->p.xen) : e->p.xen->calls->unpause(e->p.xen);
	if (rc && m->flags) {
		engine_fail(e, "Xen does not pause the guest: %s", strerror(-rc));
		return 0;
	}
	if (rc)
		e->p.calls->warn(e->p.context, "somebody has unpaused the guest here while it was paused at its home");
	p->here = m->flags;
	engine_send_vcpu(e, from, &(struct dsm_vcpu_msg){
				  .type = DSM_VCPU_PAUSED, .flags = m->flags });
	return 0;
}

/* ---- Both ---- */

int engine_pause_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	return m->type == DSM_VCPU_PAUSE ? got_pause(e, from, m) : got_paused(e, from, m);
}

bool dsm_engine_is_paused(const struct dsm_engine *e)
{
	return e->vcpus.pausing.wanted || e->vcpus.pausing.here;
}

void engine_pause_lost(struct dsm_engine *e, unsigned int host)
{
	struct pausing *p = &e->vcpus.pausing;

	p->told &= (uint16_t)~dsm_bit(host);
	p->asked &= (uint16_t)~dsm_bit(host);
	/* No vCPU runs here; a home that comes back says it anew. */
	if (host != e->vm.token_home || !p->here)
		return;
	p->here = false;
	if (e->p.xen->calls->unpause(e->p.xen))
		e->p.calls->warn(e->p.context, "somebody has unpaused the guest here while it was paused at its home");
}

void dsm_engine_takes_pause(struct dsm_engine *e, unsigned int host, bool takes)
{
	uint16_t bit = (uint16_t)dsm_bit(host);

	e->take_pause = takes ? e->take_pause | bit : e->take_pause & (uint16_t)~bit;
}
