// SPDX-License-Identifier: GPL-2.0
/*
 * The vCPUs that want the progress token, one after the other, and what a vCPU
 * that goes on gives up.
 *
 * A vCPU whose page does not come, because it is in use elsewhere, say, asks for it
 * again and again, and would have the token for as long as that.  All others that
 * want it would wait for who uses that page.  So it has it for TOKEN_MOST at most,
 * and for no longer than an answer may take, and is the last in line then, if it
 * loses pages again.
 */
#include <stddef.h>

#include "engine_internal.h"

void engine_send_all(struct dsm_engine *e, const struct dsm_actions *actions)
{
	unsigned int i;

	for (i = 0; i < actions->nr; i++)
		engine_send(e, &actions->action[i], NULL);
	engine_answers_token(e);
}

void engine_look_for_token(struct dsm_engine *e)
{
	if (!e->token_vcpu || e->token_due != DSM_NEVER ||
	    e->token.state != DSM_TOKEN_HERE)
		return;
	e->counts.tokens++;
	e->token_due = now(e) + e->p.token_ns;
	e->token_end = TOKEN_MOST * e->p.token_ns;
	if (e->p.answer_ns && e->p.answer_ns < e->token_end)
		e->token_end = e->p.answer_ns;
	e->token_end += now(e);
}

void engine_next_in_line(struct dsm_engine *e)
{
	struct vcpu *v = TAILQ_FIRST(&e->line);
	struct dsm_actions actions;

	if (!v || e->token_vcpu)
		return;
	TAILQ_REMOVE(&e->line, v, line);
	v->in_line = false;
	e->token_vcpu = v;
	e->token_due = DSM_NEVER;
	if (dsm_token_want(&e->vm, &e->token, &actions)) {
		/* no connection with its home: dsm_engine_peer_up() goes on */
		e->token_vcpu = NULL;
		TAILQ_INSERT_HEAD(&e->line, v, line);
		v->in_line = true;
		return;
	}
	engine_send_all(e, &actions);
	engine_look_for_token(e);
}

void engine_ask_again(struct dsm_engine *e)
{
	struct vcpu *v = e->token_vcpu;

	if (!v)
		return;
	e->token_vcpu = NULL;
	e->token_due = DSM_NEVER;
	TAILQ_INSERT_HEAD(&e->line, v, line);
	v->in_line = true;
}

void engine_want_token(struct dsm_engine *e, struct vcpu *v)
{
	v->needs_token = true;
	if (v->in_line || e->token_vcpu == v)
		return;
	TAILQ_INSERT_TAIL(&e->line, v, line);
	v->in_line = true;
	engine_next_in_line(e);
}

static void give_token_up(struct dsm_engine *e, struct vcpu *v)
{
	struct dsm_actions actions;

	v->needs_token = false;
	if (v->in_line) {
		TAILQ_REMOVE(&e->line, v, line);
		v->in_line = false;
	}
	if (e->token_vcpu != v)
		return;
	e->token_vcpu = NULL;
	e->token_due = DSM_NEVER;
	dsm_token_free(&e->vm, &e->token, &actions);
	engine_send_all(e, &actions);
	engine_next_in_line(e);
}

/* It has retired an instruction since it missed these pages. */
void engine_retired(struct dsm_engine *e, struct vcpu *v)
{
	unsigned int i, nr = v->nr_leased < LEASED ? v->nr_leased : LEASED;
	struct dsm_entry *entry;

	for (i = 0; i < nr && !e->has_failed; i++) {
		entry = dsm_table_find(&e->table, v->leased[i]);
		if (entry && entry->page.lease != DSM_LEASE_NONE &&
		    entry->lease_vcpu == (unsigned int)(v - e->vcpu))
			engine_simple_step(e, v->leased[i], DSM_EV_RETIRED);
	}
	v->nr_leased = 0;
	dsm_losses_retired(&v->losses);
	if (!e->has_failed)
		give_token_up(e, v);
}
