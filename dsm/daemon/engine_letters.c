// SPDX-License-Identifier: GPL-2.0
/*
 * Letters: what is to be sent about vCPUs, in a line for each host.  Decision 0111.
 *
 * There is one for each thing that can be said at a time, so nothing grows: who has
 * more to say puts it into the letter that waits.
 *
 * Context: the engine's thread.
 */
#include <limits.h>

#include "engine_internal.h"

void engine_post(struct dsm_engine *e, struct letter *letter, unsigned int host)
{
	if (letter->queued)
		return;
	letter->queued = true;
	letter->host = (uint8_t)host;
	TAILQ_INSERT_TAIL(&e->vcpus.line[host], letter, link);
	e->vcpus.nr_letters++;
}

void engine_send_vcpu(struct dsm_engine *e, unsigned int host,
		      const struct dsm_vcpu_msg *msg)
{
	struct dsm_msg head = { .type = msg->type, .epoch = e->vm.epoch[host] };
	uint8_t bytes[DSM_VCPU_BYTES];

	dsm_vcpu_put(msg, bytes);
	e->p.calls->send(e->p.context, host, &head, bytes);
}

void engine_take_letter(struct dsm_engine *e, struct letter *letter)
{
	TAILQ_REMOVE(&e->vcpus.line[letter->host], letter, link);
	letter->queued = false;
	e->vcpus.nr_letters--;
}

/* Does it wait until the guest goes on? */
static bool stop_holds(const struct dsm_engine *e, unsigned int host, const struct letter *letter)
{
	return e->vcpus.stop.on && e->vcpus.stop.fenced & dsm_bit(host) &&
	       letter->msg.type != DSM_VCPU_REPLY && letter->msg.type != DSM_VCPU_ACCESSED;
}

/* The first that may go. */
static struct letter *next_letter(const struct dsm_engine *e, unsigned int host)
{
	struct letter *letter;

	TAILQ_FOREACH(letter, &e->vcpus.line[host], link)
		if (!stop_holds(e, host, letter))
			return letter;
	return NULL;
}

/* From now on its answer is owed: engine_answers.c. */
static void access_goes(struct dsm_engine *e, struct carried *c)
{
	c->access_went = now(e);
	TAILQ_INSERT_TAIL(&e->vcpus.away, c, away);
}

/*
 * An interrupt, or events, have gone, which takes time.  To wait for a credit is within.  Those
 * that have waited until the guest goes on do not count: no vCPU has run meanwhile, and that is
 * how long a stop takes.
 */
static void count_out(struct dsm_engine *e, const struct letter *letter)
{
	if ((letter->msg.type != DSM_VCPU_EVENT && letter->msg.type != DSM_VCPU_PORTS) ||
	    letter->since < e->vcpus.goes_since)
		return;
	engine_time_passes(e);
	dsm_histogram_add(&e->counts.ipi_out, now(e) - letter->since);
}

/* All that there are credits for, but no more than @most. */
static void send_letters(struct dsm_engine *e, unsigned int host, unsigned int most)
{
	struct letter *letter;

	if (e->vcpus.held)
		return;
	while ((letter = next_letter(e, host)) && e->vm.up & dsm_bit(host) &&
	       engine_has_room(e, host, e->turns.letter)) {
		if (!most--)
			return;
		engine_take_room(e, host, &e->turns.letter);
		engine_take_letter(e, letter);
		if (letter->msg.type == DSM_VCPU_EVENT)
			e->vcpus.events_sent[host]++;
		else if (letter->msg.type == DSM_VCPU_ACCESS)
			access_goes(e, &e->vcpus.carried[letter->msg.vcpu]);
		engine_send_vcpu(e, host, &letter->msg);
		count_out(e, letter);
	}
}

void engine_send_letters(struct dsm_engine *e)
{
	unsigned int host;

	for (host = 0; host < e->vm.nr_hosts && e->vcpus.nr_letters && !e->has_failed; host++)
		send_letters(e, host, UINT_MAX);
}

/*
 * Those who miss pages may want more than there are credits, and so may those who
 * send: each has half of what has come, and of a single one every second.
 */
void engine_letters_room(struct dsm_engine *e, unsigned int host)
{
	unsigned int room;
	bool *had = &e->vcpus.has_had_turn[host];

	if (!e->vcpus.carried || TAILQ_EMPTY(&e->vcpus.line[host]))
		return;
	room = e->p.calls->room(e->p.context, host);
	*had = room > 1 || !*had;
	if (*had)
		send_letters(e, host, room > 1 ? room / 2 : 1);
}
