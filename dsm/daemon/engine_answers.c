// SPDX-License-Identifier: GPL-2.0
/*
 * Hosts that live and do not answer.
 *
 * The transport finds a host that is gone, or silent.  One that answers the
 * transport's questions, and never a recall, a request or a write-back, is found
 * here.  It has its reasons to take its time: the page is leased, or in use there, or
 * has to be recalled from a third host first; and a dsmd that stands still is not
 * lost before the transport says so.  answer_ns is longer than all of these together,
 * and of what is asked of a home it may take twice that, since a home may be waiting
 * itself.  Longer than that means that no answer comes, and the VM fails as if that
 * host were lost.
 *
 * Pages that wait are in a list for each kind of question, in the order in which
 * they began to wait: its first is the first that is due.  An answer about a page
 * begins its time anew: of several hosts one may have answered.  The core takes one
 * answer for each question, so nobody can put this off.
 *
 * An access to a page that stays at its home is owed from when it went, for as long as
 * what else is asked of a home.
 *
 * The progress token is owed, too: by who has it while somebody else wants it, and
 * by its home to who has asked.  A host that does as it should gives it back within
 * answer_ns (engine_token.c), so it has twice that; before we have it each of the
 * others may have it once.
 */
#include <inttypes.h>
#include <stdio.h>

#include "engine_internal.h"

void engine_begin_answers(struct dsm_engine *e)
{
	unsigned int kind;

	for (kind = 0; kind < NR_OWED; kind++)
		TAILQ_INIT(&e->owed[kind]);
	e->token_owed = DSM_NOBODY;
}

/* Return: for what kind of question; NR_OWED: nobody owes an answer. */
static enum owed owed(const struct dsm_engine *e, const struct dsm_entry *entry)
{
	const struct dsm_page *page = &entry->page;

	if (at_home(e, entry))
		return page->dir.phase == DSM_COLLECT && page->dir.pending ?
		       OWED_TO_HOME : NR_OWED;
	return page->request || page->writeback ? OWED_BY_HOME : NR_OWED;
}

static void forget(struct dsm_engine *e, struct dsm_entry *entry)
{
	if (!entry->owed_since)
		return;
	TAILQ_REMOVE(&e->owed[entry->owed], entry, answer);
	entry->owed_since = 0;
}

void engine_answers_settle(struct dsm_engine *e, struct dsm_entry *entry)
{
	enum owed kind = e->p.answer_ns ? owed(e, entry) : NR_OWED;

	if (entry->owed_since && entry->owed == kind)
		return;
	forget(e, entry);
	if (kind == NR_OWED)
		return;
	entry->owed = (uint8_t)kind;
	entry->owed_since = now(e);
	TAILQ_INSERT_TAIL(&e->owed[kind], entry, answer);
}

void engine_answered(struct dsm_engine *e, struct dsm_entry *entry, unsigned int type)
{
	switch (type) {
	case DSM_RDATA:
	case DSM_INV_ACK:
	case DSM_BUSY_PIN:
	case DSM_PUTM:
	case DSM_DATA_S:
	case DSM_DATA_M:
	case DSM_GRANT:
	case DSM_NACK:
	case DSM_RESULT:
	case DSM_PUT_ACK:
		forget(e, entry);
	}
}

static uint64_t due(const struct dsm_engine *e, enum owed kind)
{
	const struct dsm_entry *first = TAILQ_FIRST(&e->owed[kind]);

	if (!first)
		return DSM_NEVER;
	return first->owed_since + (kind == OWED_BY_HOME ? 2 : 1) * e->p.answer_ns;
}

static unsigned int who_owes_the_token(const struct dsm_engine *e)
{
	const struct dsm_token *token = &e->token;

	if (!e->p.answer_ns)
		return DSM_NOBODY;
	if (e->vm.token_home != e->vm.self)
		return token->state == DSM_TOKEN_ASKED ? e->vm.token_home : DSM_NOBODY;
	return token->nr_queued && token->holder != e->vm.self ? token->holder : DSM_NOBODY;
}

void engine_answers_token(struct dsm_engine *e)
{
	unsigned int host = who_owes_the_token(e);

	if (host == e->token_owed)
		return;
	e->token_owed = (uint8_t)host;
	e->token_owed_since = now(e);
}

static uint64_t token_due(const struct dsm_engine *e)
{
	unsigned int times = e->token_owed == e->vm.token_home ? e->vm.nr_hosts : 1;

	return e->token_owed == DSM_NOBODY ? DSM_NEVER :
	       e->token_owed_since + 2 * times * e->p.answer_ns;
}

static uint64_t access_due(const struct dsm_engine *e)
{
	const struct carried *first = TAILQ_FIRST(&e->vcpus.away);

	return first && e->p.answer_ns ? first->access_went + 2 * e->p.answer_ns : DSM_NEVER;
}

uint64_t engine_answers_due(const struct dsm_engine *e)
{
	uint64_t a = due(e, OWED_TO_HOME), b = due(e, OWED_BY_HOME), c = token_due(e);

	if (b < a)
		a = b;
	if (access_due(e) < a)
		a = access_due(e);
	return c < a ? c : a;
}

unsigned int engine_answers_owed(const struct dsm_engine *e)
{
	const struct dsm_entry *entry;
	unsigned int kind, nr = 0;

	for (kind = 0; kind < NR_OWED; kind++)
		TAILQ_FOREACH(entry, &e->owed[kind], answer)
			nr += owed(e, entry) == kind;
	return nr;
}

/* Of several the one with the lowest number. */
static unsigned int who_owes(const struct dsm_entry *entry)
{
	return entry->owed == OWED_BY_HOME ? entry->page.home :
	       (unsigned int)__builtin_ctz(entry->page.dir.pending);
}

static const char *what_is_owed(const struct dsm_entry *entry)
{
	const struct dsm_page *page = &entry->page;

	if (entry->owed == OWED_TO_HOME)
		return "a recall";
	return dsm_type_name(page->request ? page->request : DSM_PUTM);
}

void engine_answers_tick(struct dsm_engine *e, uint64_t t)
{
	char why[128];
	unsigned int kind;

	for (kind = 0; kind < NR_OWED && !e->has_failed; kind++) {
		const struct dsm_entry *entry = TAILQ_FIRST(&e->owed[kind]);

		if (due(e, kind) > t)
			continue;
		snprintf(why, sizeof(why), "it does not answer %s of gfn 0x%" PRIx64 " for %llu ms",
			 what_is_owed(entry), entry->page.gfn, (t - entry->owed_since) / MS);
		engine_lose(e, who_owes(entry), why);
	}
	if (!e->has_failed && access_due(e) <= t) {
		const struct carried *c = TAILQ_FIRST(&e->vcpus.away);

		snprintf(why, sizeof(why), "it does not answer %s of vCPU %" PRIu32 " to gfn 0x%" PRIx64 " for %llu ms",
			 dsm_type_name(c->access.msg.type), c->access.msg.vcpu,
			 c->access.msg.word[0] / DSM_PAGE_BYTES, (t - c->access_went) / MS);
		engine_lose(e, c->access.host, why);
	}
	if (e->has_failed || token_due(e) > t)
		return;
	snprintf(why, sizeof(why), "it %s the progress token for %llu ms",
		 e->token_owed == e->vm.token_home ? "does not give" : "keeps",
		 (t - e->token_owed_since) / MS);
	engine_lose(e, e->token_owed, why);
}
