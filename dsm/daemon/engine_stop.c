// SPDX-License-Identifier: GPL-2.0
/*
 * The guest stands still on all hosts, so that vCPUs which are down can be placed
 * elsewhere: the part of each host.  The home's, which says when, is engine_place.c.
 * Decision 0114.
 *
 *	home to each	STOP	the slice is paused, its ring is read until it is empty,
 *				letters go
 *	each to each	FENCE	of those that have vCPUs, or are to have some: no EVENT,
 *				PORTS, CALL or IDLE comes behind it, of before
 *	each to home	QUIET	all FENCEs have come, and no vCPU here waits for a call
 *	home to each	PLACE	a vCPU: Xen is told, and then the table; its vcpu_info is
 *				registered where it comes to
 *	each to home	PLACED
 *	home to each	GO	the slice goes on
 *
 * What of a slice comes into the ring though it is paused (a tasklet that was late, an operator
 * who unpauses it, or sends an NMI) is a letter that waits until GO, and goes where the vCPU is
 * then, which may be here.
 *
 * A connection keeps its order, so behind FENCE nothing of before is on its way from there; and
 * a call that was made before has its answer when who made it says QUIET.  All tables change
 * between the last QUIET and the first GO; so whatever is sent about a vCPU is received with
 * the table that it was sent with.  A host may have GO before another one: what it sends then
 * finds a slice that stands still, and the new table.
 *
 * Two hosts without a connection have nothing on its way: each says so with QUIET, and the home
 * gives up.  If they are connected while the guest stands still, both say FENCE.  What was said on
 * a connection that has ended is said again on the next one.  If both have vCPUs when the guest
 * goes on, and no connection, it is lost.
 *
 * A host that has lost the home has no vCPU, and hears no STOP: who waits for its FENCE has it as
 * soon as it has said its own.
 *
 * Untrusted: what a peer says.  It can keep the guest standing still (only the home waits, and
 * not for ever), and harm the guest whose vCPU it has.
 *
 * Context: the engine's thread.  The hypercalls are those of before: a pause waits for the vCPUs
 * that run.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine_internal.h"

#define BUSY_NS		(1000 * MS)	/* what is on its way here ends in that time */
#define INFO_NS		(5000 * MS)	/* for the page of a vcpu_info */
#define AGAIN		MS

static bool is_home(const struct dsm_engine *e)
{
	return e->vm.self == e->vm.token_home;
}

static uint16_t connected(const struct dsm_engine *e)
{
	return (uint16_t)(e->vm.up & e->vcpus.joined);
}

/* To the home, which may be this host. */
static void answer(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	if (is_home(e))
		e->above->answered(e, e->vm.self, m);
	else
		engine_send_vcpu(e, e->vm.token_home, m);
}

/* A vCPU that was placed in this round is down, and nothing of it is anywhere. */
static bool has_more_than_moved(const struct dsm_engine *e, unsigned int host)
{
	unsigned int i;

	for (i = 0; i < e->p.nr_vcpus; i++)
		if (engine_runs_at(e, i, host) && !(e->vcpus.stop.on && e->vcpus.stop.moved[i]))
			return true;
	return false;
}

/* Who has none misses those of another host no more than its own. */
bool engine_loses_vcpus(const struct dsm_engine *e, unsigned int host)
{
	return e->vcpus.carried && has_more_than_moved(e, host) &&
	       has_more_than_moved(e, e->vm.self);
}

/* ---- STOP, FENCE, QUIET ---- */

/* Return: hosts with which FENCE is exchanged. */
static uint16_t partners(const struct dsm_engine *e)
{
	const struct stop *s = &e->vcpus.stop;

	return s->fencers & dsm_bit(e->vm.self) ? s->fencers & (uint16_t)~dsm_bit(e->vm.self) : 0;
}

static int got_stop(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	struct stop *s = &e->vcpus.stop;
	unsigned int host;
	int rc;

	if (s->on || m->number <= s->round || m->number > UINT32_MAX)
		return DSM_E_NOT_NOW;
	if (m->word[0] >> e->vm.nr_hosts || !(m->word[0] & dsm_bit(e->vm.token_home)))
		return DSM_E_VCPU;
	s->round = m->number;
	s->on = true;
	s->drained = false;
	s->fencers = (uint16_t)m->word[0];
	s->fenced = 0;
	s->came = 0;
	s->quiet = false;
	s->calling = false;
	s->owes_shutdown = false;
	memset(s->moved, 0, sizeof(s->moved));
	for (host = 0; host < e->vm.nr_hosts; host++) {
		if (s->heard[host] < s->round)
			continue;
		s->came |= (uint16_t)dsm_bit(host);
		if (s->heard[host] == s->round && partners(e) & dsm_bit(host))
			continue;
		engine_breach(e, host, &(struct dsm_vcpu_msg){
				      .type = DSM_VCPU_FENCE, .number = s->heard[host] },
			      dsm_error_name(DSM_E_NOT_ASKED));
		return 0;
	}
	rc = e->p.xen->calls->pause(e->p.xen);
	if (rc)
		engine_fail(e, "Xen does not pause the guest: %s", strerror(-rc));
	return 0;
}

static void say_fence(struct dsm_engine *e, unsigned int host, uint64_t round)
{
	e->vcpus.stop.said[host] = round;
	engine_idle_fenced(e, host, round);
	engine_send_vcpu(e, host, &(struct dsm_vcpu_msg){
				  .type = DSM_VCPU_FENCE, .number = round });
}

/* Of a round that this host will not hear of: its home is lost, and nothing of it is on its way. */
static void say_fence_without_home(struct dsm_engine *e, unsigned int host)
{
	const struct stop *s = &e->vcpus.stop;

	if (!is_home(e) && !(connected(e) & dsm_bit(e->vm.token_home)) &&
	    connected(e) & dsm_bit(host) && s->heard[host] > s->said[host])
		say_fence(e, host, s->heard[host]);
}

static int got_fence(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	struct stop *s = &e->vcpus.stop;

	/*
	 * The next STOP may reach a host before the last GO reaches another one, but none does
	 * before all were quiet; and the home says STOP itself.
	 */
	if (m->number <= s->heard[from] || m->number > UINT32_MAX ||
	    (m->number > s->round && (is_home(e) || (s->on && !s->quiet))))
		return DSM_E_NOT_NOW;
	if (s->on && m->number == s->round && !(partners(e) & dsm_bit(from)))
		return DSM_E_NOT_ASKED;
	s->heard[from] = m->number;
	engine_idle_fence_came(e, from, m->number);
	if (s->on && m->number == s->round)
		s->came |= (uint16_t)dsm_bit(from);
	say_fence_without_home(e, from);
	return 0;
}

static bool send_fences(struct dsm_engine *e)
{
	struct stop *s = &e->vcpus.stop;
	uint16_t left = (uint16_t)(partners(e) & connected(e) & ~s->fenced);
	bool changed = false;
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts; host++) {
		if (!(left & dsm_bit(host)) || !TAILQ_EMPTY(&e->vcpus.line[host]))
			continue;
		s->fenced |= (uint16_t)dsm_bit(host);
		say_fence(e, host, s->round);
		changed = true;
	}
	return changed;
}

/* Return: a vCPU of this host that waits for a call, or an access; nr_vcpus: none. */
static unsigned int caller(const struct dsm_engine *e)
{
	const struct carried *c = e->vcpus.carried;
	unsigned int i;

	for (i = 0; i < e->p.nr_vcpus && !c[i].asks && !c[i].accesses; i++)
		;
	return i;
}

static bool say_quiet(struct dsm_engine *e)
{
	struct stop *s = &e->vcpus.stop;
	uint16_t with = partners(e) & connected(e);
	struct dsm_vcpu_msg m = {
		.type = DSM_VCPU_QUIET, .number = s->round,
		.word = { partners(e) & (uint16_t)~connected(e) },
	};
	bool calling;

	if ((s->fenced & s->came & with) != with)
		return false;
	m.vcpu = caller(e);
	calling = m.vcpu < e->p.nr_vcpus;
	if (s->quiet && (!s->calling || calling))
		return false;
	s->quiet = true;
	s->calling = calling;
	if (calling)
		m.flags = DSM_QUIET_CALLING;
	else
		m.vcpu = 0;
	answer(e, &m);
	return true;
}

/* ---- PLACE ---- */

/* Who runs it has said that nothing of it is under way: if something is here, it was a lie. */
static bool is_at_work(const struct dsm_engine *e, unsigned int vcpu)
{
	const struct carried *c = &e->vcpus.carried[vcpu];

	return c->is_doing || c->reply.queued || c->accessed.queued;
}

static int got_place(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	struct stop *s = &e->vcpus.stop;
	uint64_t host = m->word[0];

	if (!s->on || m->number != s->round || !s->quiet || s->calling || s->doing.type)
		return DSM_E_NOT_NOW;
	if (!m->vcpu || (host != e->vm.token_home && host != e->p.places[m->vcpu]))
		return DSM_E_VCPU;
	if ((m->word[1] || m->word[2]) && host != e->vm.self)
		return DSM_E_RESERVED;
	if (is_at_work(e, m->vcpu)) {
		engine_breach(e, e->vcpus.where[m->vcpu], &(struct dsm_vcpu_msg){
				      .type = DSM_VCPU_CALL, .vcpu = m->vcpu, .number = m->number },
			      "it said QUIET, and has no answer yet");
		return 0;
	}
	s->doing = *m;
	s->tried = false;
	s->placed = false;
	s->until = now(e) + BUSY_NS;
	if (e->vcpus.due == DSM_NEVER)
		e->vcpus.due = now(e) + AGAIN;
	return 0;
}

static void placed(struct dsm_engine *e, enum dsm_placed how, uint64_t info)
{
	struct stop *s = &e->vcpus.stop;
	const struct dsm_vcpu_msg m = {
		.type = DSM_VCPU_PLACED, .number = s->round, .vcpu = s->doing.vcpu,
		.flags = (uint8_t)how, .word = { info },
	};

	s->doing.type = 0;
	s->placed = false;
	answer(e, &m);
}

/* Return: whether it is done, or will never be. */
static bool register_info(struct dsm_engine *e, uint64_t t)
{
	struct stop *s = &e->vcpus.stop;
	struct dsm_vcpu_msg call = {
		.type = DSM_VCPU_CALL, .vcpu = s->doing.vcpu, .op = XEN_VCPU_OP,
		.cmd = XEN_REGISTER_VCPU_INFO, .about = s->doing.vcpu,
		.word = { s->doing.word[1] / DSM_PAGE_BYTES, s->doing.word[1] % DSM_PAGE_BYTES, 0,
			  s->doing.word[2] },
	};
	int rc;

	if (!s->doing.word[1])
		return true;
	rc = engine_do_call(e, &call);
	if (rc == -EAGAIN)
		return t >= s->until;
	s->doing.word[1] = 0;
	/* It has one there already, or the guest has done something to that page. */
	if (rc || (call.rc && call.rc != -EBUSY))
		engine_warn(e, WARN_INFO, "vCPU %u: its vcpu_info can't be registered here: %s",
			    s->doing.vcpu, strerror(-(rc ? rc : call.rc)));
	return true;
}

/* Return: has Xen been told?  Else it was answered, or is tried again. */
static bool tell_xen(struct dsm_engine *e, uint64_t t, uint64_t *info)
{
	struct stop *s = &e->vcpus.stop;
	unsigned int vcpu = s->doing.vcpu, host = (unsigned int)s->doing.word[0];
	int rc;

	if (engine_runs_at(e, vcpu, host))
		return true;
	if (engine_runs_at(e, vcpu, e->vm.self) &&
	    e->p.xen->calls->is_up(e->p.xen, vcpu)) {
		placed(e, DSM_PLACED_UP, 0);
		return false;
	}
	rc = e->p.xen->calls->place(e->p.xen, vcpu, host, info);
	if (rc == -EBUSY && t < s->until)
		return false;
	if (rc) {
		if (rc != -EBUSY && rc != -EOPNOTSUPP)
			engine_warn(e, WARN_PLACE, "vCPU %u: Xen does not place it: %s", vcpu, strerror(-rc));
		placed(e, rc == -EBUSY ? DSM_PLACED_BUSY : rc == -EOPNOTSUPP ? DSM_PLACED_SHARED :
		       DSM_PLACED_FAILED, 0);
		return false;
	}
	/* What the ring has by now was said with the old table. */
	do
		engine_read_ring(e);
	while (e->ring_left && !e->has_failed);
	return !e->has_failed;
}

static void go_on_placing(struct dsm_engine *e, uint64_t t)
{
	struct stop *s = &e->vcpus.stop;
	unsigned int vcpu = s->doing.vcpu, host = (unsigned int)s->doing.word[0];
	uint64_t info = 0;

	if (!s->placed) {
		if (!tell_xen(e, t, &info))
			return;
		s->moved[vcpu] |= !engine_runs_at(e, vcpu, host);
		engine_set_where(e, vcpu, host);
		if (host != e->vm.self) {
			placed(e, DSM_PLACED_DONE, info);
			return;
		}
		s->placed = true;
		s->until = t + INFO_NS;
	}
	if (register_info(e, t))
		placed(e, DSM_PLACED_DONE, s->doing.word[1]);
}

/* ---- GO ---- */

/* Letters to vCPUs go where these are now. */
static void route_letters(struct dsm_engine *e)
{
	unsigned int i;

	for (i = 0; i < e->p.nr_vcpus && !e->has_failed; i++) {
		struct letter *letter = &e->vcpus.carried[i].event;

		if (!letter->queued || letter->host == e->vcpus.where[i])
			continue;
		engine_take_letter(e, letter);
		if (!engine_runs_at(e, i, e->vm.self))
			engine_post(e, letter, e->vcpus.where[i]);
		else
			engine_send_here(e, &letter->msg);
	}
	/* Those that were said of vCPUs which run here, and ran here before. */
	while (!TAILQ_EMPTY(&e->vcpus.line[e->vm.self]) && !e->has_failed) {
		struct letter *letter = TAILQ_FIRST(&e->vcpus.line[e->vm.self]);

		engine_take_letter(e, letter);
		engine_send_here(e, &letter->msg);
	}
}

/* When one of both had no vCPU it was no loss that their connection ended. */
static void look_for_lost(struct dsm_engine *e)
{
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts && !e->has_failed; host++)
		if (host != e->vm.self && e->vcpus.at[host] && e->vcpus.at[e->vm.self] &&
		    !(connected(e) & dsm_bit(host)))
			engine_lose(e, host, "the connection with it ended while a vCPU was placed");
}

static void go_on(struct dsm_engine *e)
{
	struct stop *s = &e->vcpus.stop;
	int rc;

	s->on = false;
	s->doing.type = 0;
	s->placed = false;
	e->vcpus.goes_since = now(e);
	look_for_lost(e);
	if (!e->has_failed)
		route_letters(e);
	if (e->has_failed)
		return;
	if (s->owes_shutdown)
		engine_say_shutdown(e, &s->shutdown);
	s->owes_shutdown = false;
	rc = e->p.xen->calls->unpause(e->p.xen);
	/* An operator has done so before. */
	if (rc)
		e->p.calls->warn(e->p.context, "somebody has unpaused the guest while a vCPU was placed");
}

static int got_go(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	struct stop *s = &e->vcpus.stop;

	if (!s->on || m->number != s->round || s->doing.type)
		return DSM_E_NOT_NOW;
	go_on(e);
	return 0;
}

/* The home is gone, and no vCPU runs here: nobody will say GO. */
static void end_round(struct dsm_engine *e)
{
	struct stop *s = &e->vcpus.stop;
	unsigned int i;
	int rc = 0;

	if (!s->on)
		return;
	/* Whatever was about to come here: it is down, and the home has it. */
	for (i = 0; i < e->p.nr_vcpus && !rc; i++) {
		uint64_t info;

		if (!engine_runs_at(e, i, e->vm.self))
			continue;
		rc = e->p.xen->calls->place(e->p.xen, i, e->vm.token_home, &info);
		if (!rc)
			engine_set_where(e, i, e->vm.token_home);
	}
	if (rc)
		engine_fail(e, "vCPU %u was about to run here, and its home is lost: %s", i - 1,
			    strerror(-rc));
	else
		go_on(e);
}

void engine_stop_lost(struct dsm_engine *e, unsigned int host)
{
	struct stop *s = &e->vcpus.stop;
	unsigned int i;

	s->fenced &= (uint16_t)~dsm_bit(host);
	s->came &= (uint16_t)~dsm_bit(host);
	s->said[host] = 0;
	s->heard[host] = 0;
	if (!e->vcpus.carried || host != e->vm.token_home)
		return;
	end_round(e);
	for (i = 0; i < e->vm.nr_hosts && !e->has_failed; i++)
		say_fence_without_home(e, i);
}

/* ---- What comes, and when ---- */

int engine_stop_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	if (m->type == DSM_VCPU_FENCE)
		return got_fence(e, from, m);
	if (from != e->vm.token_home)
		return DSM_E_NOT_HOME;
	switch (m->type) {
	case DSM_VCPU_STOP:
		return got_stop(e, m);
	case DSM_VCPU_PLACE:
		return got_place(e, m);
	}
	return got_go(e, m);
}

bool engine_stop_run(struct dsm_engine *e)
{
	struct stop *s = &e->vcpus.stop;
	bool changed = false;

	if (!e->vcpus.carried || !s->on || e->has_failed)
		return false;
	if (!s->drained) {
		engine_read_ring(e);
		if (e->ring_left || e->has_failed)
			return false;
		s->drained = true;
		/* What it had goes first. */
		return true;
	}
	changed = send_fences(e);
	changed |= say_quiet(e);
	if (s->doing.type && !s->tried && !e->has_failed) {
		s->tried = true;
		go_on_placing(e, now(e));
		changed |= !s->doing.type;
	}
	return changed && !e->has_failed;
}

void engine_stop_tick(struct dsm_engine *e, uint64_t t)
{
	if (e->vcpus.stop.doing.type)
		go_on_placing(e, t);
}

void engine_begin_stop(struct dsm_engine *e)
{
	e->vcpus.joined = (uint16_t)dsm_bit(e->vm.self);
}
