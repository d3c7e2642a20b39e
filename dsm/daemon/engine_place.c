// SPDX-License-Identifier: GPL-2.0
/*
 * vCPUs that are down go to another host, or come home, while the guest runs: what the
 * home does.  What each host does is in engine_stop.c; decision 0114.
 *
 *	WAITS	the host is ready: it has policy and time (start.c), which is that of the home
 *		(drift.c; decision 0147).  Home is where they may go whatever the time is there
 *	STOPS	STOP to all who know the table; until all are quiet
 *	ONE	one vCPU after the other: who runs it is told first, and says where its
 *		vcpu_info was
 *	OTHERS	then who is to run it, with that, and the rest
 *	SELF	then this host, if it is none of them: so its table is that of all
 *	GO	when all are placed, or all are back
 *
 * What of it fails is taken back, the last one first, in the same steps; what can't be taken
 * back ends the VM, since the tables differ then.  The home's table is the one that counts: it
 * tells the others, and a host that is connected later gets it (TABLE).
 *
 * A host that is lost meanwhile and has no vCPU but those that are being placed is no loss of
 * any: these are down, and have no state; they come back.
 *
 * A host that is connected and does not answer is one that does not answer a recall
 * (engine_answers.c): the VM fails after 2 * answer_ns, but not before a host has had the time
 * that it may try for (engine_stop.c).
 *
 * Context: the engine's thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine_internal.h"

#define READY_NS	(30000 * MS)	/* most until a host is ready */
#define CALL_NS		(10000 * MS)	/* until a call ends that is under way */
#define TRIES_NS	(12000 * MS)	/* twice as long as a host may try to place one */

static uint16_t self_bit(const struct dsm_engine *e)
{
	return (uint16_t)dsm_bit(e->vm.self);
}

/* The first error counts. */
__attribute__((format(printf, 2, 3)))
static void note(struct placing *p, const char *format, ...)
{
	va_list words;

	if (p->error[0])
		return;
	va_start(words, format);
	vsnprintf(p->error, sizeof(p->error), format, words);
	va_end(words);
}

/* To a host, or to this one. */
static void tell(struct dsm_engine *e, unsigned int host, const struct dsm_vcpu_msg *m)
{
	int rc;

	if (host != e->vm.self) {
		engine_send_vcpu(e, host, m);
		return;
	}
	rc = engine_stop_got(e, host, m);
	if (rc && !e->has_failed)
		engine_fail(e, "%s of vCPU %" PRIu32 ": %s", dsm_type_name(m->type), m->vcpu,
			    dsm_error_name((unsigned int)rc));
}

static void tell_all(struct dsm_engine *e, uint16_t hosts, const struct dsm_vcpu_msg *m)
{
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts && !e->has_failed; host++)
		if (hosts & dsm_bit(host))
			tell(e, host, m);
}

/* Until when all have to have answered. */
static uint64_t late(struct dsm_engine *e)
{
	uint64_t ns = 2 * e->p.answer_ns;

	if (!ns)
		return DSM_NEVER;
	return now(e) + (ns > TRIES_NS ? ns : TRIES_NS);
}

static void finish(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;

	p->step = PLACING_NONE;
	p->due = DSM_NEVER;
	e->p.calls->placed(e->p.context, p->error[0] ? p->error : NULL);
}

/* ---- All stand still ---- */

static void stop_all(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;
	struct dsm_vcpu_msg m = { .type = DSM_VCPU_STOP, .number = e->vcpus.stop.round + 1 };
	unsigned int host;

	p->step = PLACING_STOPS;
	p->members = (uint16_t)(e->vcpus.joined & e->vm.up);
	p->quiet = 0;
	p->calling = 0;
	p->asked = 0;
	p->due = now(e) + CALL_NS;
	p->late = late(e);
	m.word[0] = dsm_bit(p->host);
	for (host = 0; host < e->vm.nr_hosts; host++)
		if (e->vcpus.at[host])
			m.word[0] |= dsm_bit(host);
	tell_all(e, p->members | self_bit(e), &m);
}

/* Those whose vcpu_info is nowhere: what is done stays. */
static void note_infos(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;
	unsigned int i;

	for (i = 0; i < p->nr; i++)
		if (e->vcpus.info[p->vcpu[i]])
			note(p, "vcpu-info vCPU %u runs at host %s, and the page of its vcpu_info, gfn 0x%" PRIx64
			     ", does not come: somebody uses it", p->vcpu[i],
			     name_of(e, e->vcpus.where[p->vcpu[i]]),
			     e->vcpus.info[p->vcpu[i]] / DSM_PAGE_BYTES);
}

static void go_on_all(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;
	const struct dsm_vcpu_msg m = { .type = DSM_VCPU_GO, .number = e->vcpus.stop.round };

	tell_all(e, p->members | self_bit(e), &m);
	if (e->has_failed)
		return;
	if (!p->back)
		note_infos(e);
	finish(e);
}

static int got_quiet(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	struct placing *p = &e->vcpus.placing;
	uint16_t bit = (uint16_t)dsm_bit(from);

	if (p->step != PLACING_STOPS || m->number != e->vcpus.stop.round ||
	    !((p->members | self_bit(e)) & bit) || (p->quiet & bit && !(p->calling & bit)))
		return DSM_E_NOT_ASKED;
	if (m->flags & DSM_QUIET_CALLING && !engine_runs_at(e, m->vcpu, from))
		return DSM_E_VCPU;
	if (m->word[0] >> e->vm.nr_hosts)
		return DSM_E_PEER;
	p->quiet |= bit;
	p->calling &= (uint16_t)~bit;
	if (m->flags & DSM_QUIET_CALLING)
		p->calling |= bit;
	p->caller[from] = m->vcpu;
	if (m->word[0]) {
		unsigned int other = 0;

		while (!(m->word[0] & dsm_bit(other)))
			other++;
		note(p, "not-ready host %s is not connected with host %s", name_of(e, from),
		     name_of(e, other));
	}
	return 0;
}

/* ---- One vCPU ---- */

static unsigned int target(const struct placing *p)
{
	return p->back ? p->from[p->at] : p->host;
}

/* Return: the host that runs it, as far as it knows; DSM_NOBODY. */
static unsigned int runner(const struct dsm_engine *e, const struct placing *p)
{
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts; host++)
		if ((p->members | self_bit(e)) & dsm_bit(host) && p->has[host] == host)
			return host;
	return DSM_NOBODY;
}

static void ask(struct dsm_engine *e, uint16_t hosts)
{
	struct placing *p = &e->vcpus.placing;
	struct dsm_vcpu_msg m = {
		.type = DSM_VCPU_PLACE, .number = e->vcpus.stop.round, .vcpu = p->vcpu[p->at],
		.word = { target(p) },
	};
	unsigned int host;

	p->asked = hosts;
	p->due = late(e);
	for (host = 0; host < e->vm.nr_hosts && !e->has_failed; host++) {
		if (!(hosts & dsm_bit(host)))
			continue;
		m.word[1] = host == target(p) ? e->vcpus.info[m.vcpu] : 0;
		m.word[2] = m.word[1] && host != e->vm.self ? engine_own_shared_info(e) : 0;
		tell(e, host, &m);
	}
}

/* Return: who has to be told still. */
static uint16_t those_left(const struct dsm_engine *e)
{
	const struct placing *p = &e->vcpus.placing;
	uint16_t hosts = 0;
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts; host++)
		if ((p->members | self_bit(e)) & dsm_bit(host) &&
		    (p->has[host] != target(p) ||
		     (host == target(p) && e->vcpus.info[p->vcpu[p->at]])))
			hosts |= (uint16_t)dsm_bit(host);
	return hosts;
}

static void begin_one(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;
	unsigned int from = runner(e, p);

	p->step = PLACING_ONE;
	if (!((p->members | self_bit(e)) & dsm_bit(target(p)))) {
		engine_fail(e, "vCPU %u can't be brought back to host %s: %s", p->vcpu[p->at],
			    name_of(e, target(p)), p->error);
		return;
	}
	if (from != DSM_NOBODY && from != target(p))
		ask(e, (uint16_t)dsm_bit(from));
}

/* Where all think that the one at @at runs. */
static void look_at(struct dsm_engine *e, unsigned int at)
{
	struct placing *p = &e->vcpus.placing;

	p->at = at;
	memset(p->has, (int)e->vcpus.where[p->vcpu[at]], sizeof(p->has));
	begin_one(e);
}

static void next_one(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;

	if (p->back ? !p->at : p->at + 1 == p->nr)
		go_on_all(e);
	else
		look_at(e, p->back ? p->at - 1 : p->at + 1);
}

/* The steps of one vCPU, when all who were asked have answered. */
static void go_on_with_one(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;
	uint16_t left = those_left(e), others = left & (uint16_t)~self_bit(e);

	switch (p->step) {
	case PLACING_ONE:
		p->step = PLACING_OTHERS;
		if (others) {
			ask(e, others);
			return;
		}
		/* fall through */
	case PLACING_OTHERS:
		p->step = PLACING_SELF;
		if (left & self_bit(e)) {
			ask(e, self_bit(e));
			return;
		}
		/* fall through */
	default:
		next_one(e);
	}
}

/* What was done is taken back, beginning with this one. */
static void take_back(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;

	if (p->back) {
		engine_fail(e, "vCPU %u can't be brought back to host %s: %s", p->vcpu[p->at],
			    name_of(e, target(p)), p->error);
		return;
	}
	p->back = true;
	p->refused = false;
	begin_one(e);
}

static void note_refusal(struct dsm_engine *e, unsigned int from, unsigned int how)
{
	struct placing *p = &e->vcpus.placing;
	unsigned int vcpu = p->vcpu[p->at];

	switch (how) {
	case DSM_PLACED_UP:
		note(p, "vcpu-up vCPU %u is up, at host %s: the guest has to take it offline", vcpu,
		     name_of(e, from));
		break;
	case DSM_PLACED_BUSY:
		note(p, "busy vCPU %u: at host %s something is sent to a vCPU, or somebody has unpaused the guest",
		     vcpu, name_of(e, from));
		break;
	case DSM_PLACED_SHARED:
		note(p, "one-host vCPU %u: the guest's kernel is none for several hosts: its vcpu_info is not alone in its page",
		     vcpu);
		break;
	default:
		note(p, "internal vCPU %u: Xen of host %s does not place it; its log says why", vcpu,
		     name_of(e, from));
	}
}

static int got_placed(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	struct placing *p = &e->vcpus.placing;
	bool gave = p->has[from] == from && target(p) != from;
	uint64_t *info;

	if (p->step < PLACING_ONE || !(p->asked & dsm_bit(from)) ||
	    m->number != e->vcpus.stop.round || m->vcpu != p->vcpu[p->at])
		return DSM_E_NOT_ASKED;
	info = &e->vcpus.info[m->vcpu];
	if (m->word[0] && (m->flags || (!gave && (from != target(p) || m->word[0] != *info))))
		return DSM_E_RESERVED;
	p->asked &= (uint16_t)~dsm_bit(from);
	if (m->flags) {
		/* Others may be asked still: first their answers. */
		p->refused = true;
		note_refusal(e, from, m->flags);
		return 0;
	}
	p->has[from] = (uint8_t)target(p);
	if (gave && m->word[0])
		*info = m->word[0];
	if (from != target(p))
		return 0;
	*info = m->word[0];
	return 0;
}

/* ---- What comes, and when ---- */

int engine_place_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	if (e->vm.self != e->vm.token_home)
		return DSM_E_NOT_HOME;
	return m->type == DSM_VCPU_QUIET ? got_quiet(e, from, m) : got_placed(e, from, m);
}

static void name_callers(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts; host++)
		if (p->calling & dsm_bit(host))
			note(p, "busy vCPU %u, at host %s, waits for a hypercall, or an access to memory, that does not end",
			     p->caller[host], name_of(e, host));
}

static bool is_ready(const struct dsm_engine *e, unsigned int host)
{
	return !e->vcpus.held && (host == e->vm.self || e->vcpus.ready & dsm_bit(host));
}

static const char *const lacks[DSM_NOTS] = {
	[DSM_NOT_TSC] = "its TSC and ours can't be one guest's",
	[DSM_NOT_POLICY] = "the guest's CPU policy can't be that of that host",
	[DSM_NOT_TIME] = "its Xen does not take the guest's time",
	[DSM_NOT_TABLE] = "its Xen does not take where vCPUs run",
	[DSM_NOT_VERSION] = "it speaks another version of the protocol",
};

/* What goes there would see time go back, or be far ahead.  Return: has_our_time(). */
static int look_at_time(const struct dsm_engine *e, unsigned int host, char text[DSM_ENGINE_TEXT])
{
	if (host == e->vm.self)
		return 0;
	return e->p.calls->has_our_time(e->p.context, host, text);
}

bool engine_place_run(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;
	uint16_t all = p->members | self_bit(e);
	char text[DSM_ENGINE_TEXT];
	int rc;

	if (!e->vcpus.carried || e->has_failed)
		return false;
	switch (p->step) {
	case PLACING_NONE:
		return false;
	case PLACING_WAITS:
		if (e->vcpus.not_ready[p->host]) {
			note(p, "not-ready host %s: %s", name_of(e, p->host),
			     lacks[e->vcpus.not_ready[p->host]]);
			finish(e);
			break;
		}
		rc = look_at_time(e, p->host, text);
		if (rc == -ERANGE) {
			note(p, "not-ready host %s: %.400s", name_of(e, p->host), text);
			finish(e);
			break;
		}
		if (rc || !is_ready(e, p->host))
			return false;
		stop_all(e);
		break;
	case PLACING_STOPS:
		if ((p->quiet & all) != all || (p->calling && !p->error[0]))
			return false;
		if (p->error[0])
			go_on_all(e);
		else
			look_at(e, 0);
		break;
	default:
		if (p->asked)
			return false;
		if (p->refused)
			take_back(e);
		else
			go_on_with_one(e);
	}
	return !e->has_failed;
}

uint64_t engine_place_due(const struct dsm_engine *e)
{
	return e->vcpus.placing.step == PLACING_NONE ? DSM_NEVER : e->vcpus.placing.due;
}

/* The first of these hosts has not answered. */
static void lose_one(struct dsm_engine *e, uint16_t hosts)
{
	unsigned int host = 0;

	while (!(hosts & dsm_bit(host)))
		host++;
	engine_lose(e, host, e->vcpus.placing.step == PLACING_STOPS ?
		    "it lives, and does not say that the guest stands still there" :
		    "it lives, and does not say that it has placed a vCPU");
}

void engine_place_tick(struct dsm_engine *e, uint64_t t)
{
	struct placing *p = &e->vcpus.placing;
	uint16_t all = p->members | self_bit(e);

	if (engine_place_due(e) > t)
		return;
	switch (p->step) {
	case PLACING_WAITS:
		note(p, "not-ready host %s: it is not known well enough how far its TSC is from ours, or another host with vCPUs is not ready",
		     name_of(e, p->host));
		finish(e);
		return;
	case PLACING_STOPS:
		if ((p->quiet & all) == all) {
			p->due = DSM_NEVER;
			name_callers(e);
			return;
		}
		if (p->late > t) {
			p->due = p->late;
			return;
		}
		lose_one(e, all & (uint16_t)~p->quiet);
		return;
	default:
		lose_one(e, p->asked);
	}
}

void engine_place_lost(struct dsm_engine *e, unsigned int host)
{
	struct placing *p = &e->vcpus.placing;
	uint16_t others = (uint16_t)~dsm_bit(host);

	e->vcpus.joined &= others;
	engine_settle_class_u(e);
	e->vcpus.ready &= others;
	e->vcpus.not_ready[host] = 0;
	engine_stop_lost(e, host);
	engine_pause_lost(e, host);
	if (p->step == PLACING_NONE)
		return;
	p->members &= others;
	p->calling &= others;
	p->asked &= others;
	if (host != p->host) {
		p->refused |= p->back && host == target(p);
		return;
	}
	note(p, "unreachable host %s was lost meanwhile, or has left", name_of(e, host));
	if (p->step == PLACING_WAITS)
		finish(e);
	else if (p->step > PLACING_STOPS && !p->back)
		p->refused = true;
}

void engine_place_end(struct dsm_engine *e)
{
	struct placing *p = &e->vcpus.placing;

	if (p->step == PLACING_NONE)
		return;
	p->error[0] = 0;
	note(p, "internal the VM has failed, or ended: %.*s", DSM_ENGINE_TEXT - 64, e->failure);
	finish(e);
}

void engine_begin_place(struct dsm_engine *e)
{
	e->vcpus.placing.due = DSM_NEVER;
	engine_begin_stop(e);
}

/* ---- The request ---- */

/* Return: 0, or -EINVAL with @text. */
static int look_at_request(struct dsm_engine *e, const uint16_t *vcpus, unsigned int nr,
			   char text[DSM_ENGINE_TEXT])
{
	struct placing *p = &e->vcpus.placing;
	unsigned int i, v;

	for (i = 0; i < nr; i++) {
		v = vcpus[i];
		if (!v || v >= e->p.nr_vcpus || (i && v <= vcpus[i - 1]) ||
		    (p->host != e->vm.self && e->p.places[v] != p->host)) {
			snprintf(text, DSM_ENGINE_TEXT, "places vCPU %u has no place at host %s", v,
				 name_of(e, p->host));
			return -EINVAL;
		}
		if (engine_runs_at(e, v, p->host) && !e->vcpus.info[v])
			continue;
		if (engine_runs_at(e, v, e->vm.self) && p->host != e->vm.self &&
		    e->p.xen->calls->is_up(e->p.xen, v)) {
			snprintf(text, DSM_ENGINE_TEXT, "vcpu-up vCPU %u is up, at host %s: the guest has to take it offline",
				 v, name_of(e, e->vm.self));
			return -EINVAL;
		}
		p->vcpu[p->nr] = (uint16_t)v;
		p->from[p->nr++] = e->vcpus.where[v];
	}
	return 0;
}

int dsm_engine_place(struct dsm_engine *e, unsigned int host, const uint16_t *vcpus,
		     unsigned int nr, char text[DSM_ENGINE_TEXT])
{
	struct placing *p = &e->vcpus.placing;
	const char *why = NULL;
	int rc;

	if (e->has_failed || !e->vcpus.carried || e->vm.self != e->vm.token_home)
		why = "internal this is no home of a machine with places";
	else if (e->vcpus.shut)
		why = "internal the guest has shut down";
	else if (p->step != PLACING_NONE)
		why = "busy vCPUs are on their way";
	if (why) {
		snprintf(text, DSM_ENGINE_TEXT, "%s", why);
		return -EINVAL;
	}
	*p = (struct placing){ .host = (uint8_t)host, .due = DSM_NEVER };
	rc = look_at_request(e, vcpus, nr, text);
	if (rc || !p->nr)
		return rc;
	if (host != e->vm.self && e->vcpus.not_ready[host]) {
		snprintf(text, DSM_ENGINE_TEXT, "not-ready host %s: %s", name_of(e, host),
			 lacks[e->vcpus.not_ready[host]]);
		return -EINVAL;
	}
	if (host != e->vm.self && !(e->vcpus.joined & e->vm.up & dsm_bit(host))) {
		snprintf(text, DSM_ENGINE_TEXT, "unreachable host %s is not connected", name_of(e, host));
		return -EINVAL;
	}
	p->step = PLACING_WAITS;
	p->due = now(e) + READY_NS;
	return -EINPROGRESS;
}

bool dsm_engine_is_placing(const struct dsm_engine *e)
{
	return e->vcpus.placing.step != PLACING_NONE || e->vcpus.stop.on;
}
