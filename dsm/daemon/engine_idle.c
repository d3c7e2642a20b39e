// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a guest that cannot power off: all its vCPUs are halted with
 * interrupts off, which no slice can see by itself.  Decision 0113.
 *
 * A host is idle when Xen has said that no vCPU that runs there is up, after as
 * many SENDs as were begun, and nothing waits to be sent to others' vCPUs.  Then
 * it reports to the home how many EVENTs it has sent to each host with vCPUs,
 * and had from it: a message for each of them, with the number of the report.
 * Only EVENTs count, since nothing else starts a vCPU, and no vCPU that waits for
 * a call or a page is down.
 *
 * The home ends the guest when there is a whole report of each host with vCPUs,
 * its own as it is now, and for each pair what one has sent is what the other
 * has had.  That reports are of different times does not matter: the first host
 * that did something after its report did it because of an EVENT that came after
 * the report, from a host that had sent it after its own, and so had done
 * something before.
 *
 * When a vCPU is placed elsewhere hosts send each other FENCE (engine_stop.c), and both counts
 * of a channel go on from the number of that round, in the upper half of it.  So they never go
 * back, and those of a host that was there before, or is there anew, are not taken for each
 * other's.  A vCPU that moves is down, and nothing to any vCPU is on its way then: Xen
 * refuses else.  So no host becomes idle, or busy, by it.
 *
 * A peer that lies ends the guest, of which it has a part, and nothing else.
 *
 * Context: the engine's thread.
 */
#include <string.h>

#include "engine_internal.h"

static bool has_vcpus(const struct dsm_engine *e, unsigned int host)
{
	return host < e->vm.nr_hosts && e->vcpus.at[host];
}

static bool is_home(const struct dsm_engine *e)
{
	return e->vm.self == e->vm.token_home;
}

/* What vCPUs have sent is in letters before Xen says that they are down. */
static bool owes_events(const struct dsm_engine *e)
{
	unsigned int i;

	for (i = 0; i < e->p.nr_vcpus; i++)
		if (e->vcpus.carried[i].event.queued)
			return true;
	return false;
}

static bool is_idle(const struct dsm_engine *e)
{
	const struct idle *idle = &e->vcpus.idle;

	return has_vcpus(e, e->vm.self) && !idle->up && idle->done == idle->begun &&
	       !owes_events(e);
}

/* ---- What happens here ---- */

void engine_begin_idle(struct dsm_engine *e)
{
	/* Until Xen says something; vCPU 0 boots at the home. */
	e->vcpus.idle.up = is_home(e);
	e->vcpus.idle.due = true;
}

#define OF_A_ROUND	32	/* bits for the EVENTs of one round */

void engine_idle_fenced(struct dsm_engine *e, unsigned int host, uint64_t round)
{
	e->vcpus.events_sent[host] = round << OF_A_ROUND;
	e->vcpus.idle.due = true;
}

void engine_idle_fence_came(struct dsm_engine *e, unsigned int from, uint64_t round)
{
	e->vcpus.idle.received[from] = round << OF_A_ROUND;
	e->vcpus.idle.due = true;
}

void engine_idle_forget(struct dsm_engine *e, unsigned int host)
{
	memset(&e->vcpus.idle.report[host], 0, sizeof(e->vcpus.idle.report[host]));
}

void engine_idle_received(struct dsm_engine *e, unsigned int from)
{
	e->vcpus.idle.received[from]++;
	e->vcpus.idle.due = true;
}

void engine_idle_sends(struct dsm_engine *e)
{
	e->vcpus.idle.begun++;
	e->vcpus.idle.due = true;
}

bool engine_idle_said(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	struct idle *idle = &e->vcpus.idle;

	if (m->flags > 1 || m->number > idle->begun)
		return false;
	idle->up = m->flags;
	idle->done = m->number;
	idle->due = true;
	return true;
}

static void report(struct dsm_engine *e)
{
	struct idle *idle = &e->vcpus.idle;
	unsigned int host;

	idle->number++;
	for (host = 0; host < e->vm.nr_hosts; host++) {
		if (host == e->vm.self || !has_vcpus(e, host))
			continue;
		idle->row[host].msg = (struct dsm_vcpu_msg){
			.type = DSM_VCPU_IDLE, .number = idle->number,
			.word = { host, e->vcpus.events_sent[host], idle->received[host] },
		};
		engine_post(e, &idle->row[host], e->vm.token_home);
	}
}

/* ---- The home ---- */

int engine_idle_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	struct idle_report *r = &e->vcpus.idle.report[from];
	unsigned int host;

	if (!is_home(e))
		return DSM_E_NOT_ASKED;
	if (m->word[0] >= e->vm.nr_hosts || m->word[0] == from ||
	    !has_vcpus(e, (unsigned int)m->word[0]))
		return DSM_E_VCPU;
	/* A newer one may have taken the place of one that waited to be sent. */
	if (!m->number || m->number < r->number)
		return DSM_E_NOT_ASKED;
	if (m->number != r->number)
		r->rows = 0;
	host = (unsigned int)m->word[0];
	r->number = m->number;
	r->rows |= (uint16_t)dsm_bit(host);
	r->sent[host] = m->word[1];
	r->received[host] = m->word[2];
	e->vcpus.idle.due = true;
	return 0;
}

static bool is_whole(const struct dsm_engine *e, unsigned int from)
{
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts; host++)
		if (host != from && has_vcpus(e, host) &&
		    !(e->vcpus.idle.report[from].rows & dsm_bit(host)))
			return false;
	return true;
}

/* Nothing is on its way from @a to @b. */
static bool is_settled(const struct dsm_engine *e, unsigned int a, unsigned int b)
{
	const struct idle *idle = &e->vcpus.idle;
	uint64_t sent = a == e->vm.self ? e->vcpus.events_sent[b] : idle->report[a].sent[b];
	uint64_t received = b == e->vm.self ? idle->received[a] : idle->report[b].received[a];

	return sent == received;
}

static bool all_are_idle(const struct dsm_engine *e)
{
	unsigned int a, b;

	for (a = 0; a < e->vm.nr_hosts; a++) {
		if (!has_vcpus(e, a))
			continue;
		if (a != e->vm.self && !is_whole(e, a))
			return false;
		for (b = 0; b < e->vm.nr_hosts; b++)
			if (b != a && has_vcpus(e, b) && !is_settled(e, a, b))
				return false;
	}
	return true;
}

void engine_idle_run(struct dsm_engine *e)
{
	struct idle *idle = &e->vcpus.idle;
	int rc;

	if (!idle->due || idle->ended || e->vcpus.shut || e->vcpus.stop.on || !is_idle(e))
		return;
	idle->due = false;
	if (!is_home(e)) {
		report(e);
		return;
	}
	if (!all_are_idle(e))
		return;
	idle->ended = true;
	e->p.calls->warn(e->p.context, "all vCPUs of the guest are halted: it is ended");
	/* Xen's ring says so, and that goes to all. */
	rc = e->p.xen->calls->shutdown(e->p.xen, DSM_SHUTDOWN_POWEROFF);
	if (rc)
		engine_fail(e, "Xen does not shut the guest down: %s", strerror(-rc));
}
