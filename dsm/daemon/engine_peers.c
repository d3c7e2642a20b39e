// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that begin and end, and messages.
 */
#include <inttypes.h>
#include <stdio.h>

#include "engine_internal.h"

int dsm_engine_peer_up(struct dsm_engine *e, unsigned int host, uint32_t epoch)
{
	int rc = dsm_vm_peer_up(&e->vm, host, epoch);

	if (!rc) {
		e->says_lost[host] = 0;
		e->turns.answers[host] = 0;
		e->turns.request &= (uint16_t)~dsm_bit(host);
		e->turns.letter &= (uint16_t)~dsm_bit(host);
	}
	if (!rc && !e->has_failed) {
		engine_next_in_line(e);
		engine_tell_all(e);
		engine_vcpus_run(e);
	}
	return rc;
}

void dsm_engine_room(struct dsm_engine *e, unsigned int host)
{
	if (!e->has_failed) {
		engine_letters_room(e, host);
		engine_tell_all(e);
	}
	engine_vcpus_run(e);
}

void dsm_engine_peer_down(struct dsm_engine *e, unsigned int host, bool orderly,
			  const char *why)
{
	struct dsm_event event = { .type = DSM_EV_HOST_LOST, .from = (uint8_t)host };
	uint64_t modified = 0;
	struct dsm_entry *entry, *next;
	struct dsm_actions actions;
	bool harmless;

	if (host >= e->vm.nr_hosts || !(e->vm.up & dsm_bit(host)) || e->has_failed)
		return;
	engine_flush(e);
	if (e->has_failed)
		return;
	for (entry = dsm_table_next(&e->table, NULL); entry;
	     entry = dsm_table_next(&e->table, entry))
		modified += at_home(e, entry) &&
			    dsm_page_only_at(&entry->page, host);
	harmless = e->vm.unbound & dsm_bit(host) && !engine_pages_of(e, host) &&
		   !engine_accesses_at(e, host) &&
		   !engine_loses_vcpus(e, host);

	dsm_vm_peer_down(&e->vm, host);
	e->peer_requests[host] = 0;
	if (!harmless && (!orderly || modified || engine_open_at(e, host) ||
			  engine_accesses_at(e, host) ||
			  engine_loses_vcpus(e, host))) {
		engine_lose(e, host, why);
		return;
	}

	dsm_token_host_lost(&e->vm, &e->token, host, &actions);
	engine_send_all(e, &actions);
	if (host == e->vm.token_home)
		engine_ask_again(e);
	engine_look_for_token(e);
	e->counting = true;
	for (entry = dsm_table_next(&e->table, NULL); entry && !e->has_failed;
	     entry = next) {
		if (entry->page.operation || e->batch[e->current].nr_slots >= SLOTS) {
			/* Entries may go: begin again; twice does no harm. */
			engine_flush(e);
			next = dsm_table_next(&e->table, NULL);
			continue;
		}
		next = dsm_table_next(&e->table, entry);
		if (dsm_table_lend(&e->table, entry))
			engine_step(e, entry, &event, NULL);
	}
	e->counting = false;
	/* What was on its way to one that leaves, a recall of a copy, has ended by now. */
	if (!e->has_failed && e->vm.unbound & dsm_bit(host) && !engine_pages_of(e, host))
		dsm_vm_peer_left(&e->vm, host);
	if (!e->has_failed)
		engine_place_lost(e, host);
}

static void breach(struct dsm_engine *e, unsigned int from,
		   const struct dsm_msg *msg, const char *what)
{
	char why[DSM_ENGINE_TEXT / 2];

	snprintf(why, sizeof(why), "it breaks the protocol: %s of gfn 0x%" PRIx64 ": %s",
		 dsm_type_name(msg->type), msg->gfn, what);
	engine_lose(e, from, why);
}

static bool is_request(unsigned int type)
{
	return type == DSM_GETS || type == DSM_GETM || type == DSM_DROP ||
	       type == DSM_POPULATE;
}

/* At its home another host wants the page; elsewhere its home wants it, or that it goes. */
static bool takes_away(const struct dsm_msg *msg)
{
	switch (msg->type) {
	case DSM_GETS:
		return !(msg->flags & DSM_F_PREFETCH);
	case DSM_GETM:
	case DSM_RECALL_S:
	case DSM_RECALL_I:
	case DSM_INV:
		return true;
	default:
		return false;
	}
}

void dsm_engine_message(struct dsm_engine *e, unsigned int from,
			const struct dsm_msg *msg, const uint8_t *page)
{
	struct dsm_event event = {
		.type = DSM_EV_MESSAGE, .from = (uint8_t)from, .msg = *msg,
	};
	struct dsm_actions actions;
	struct dsm_entry *entry;
	int rc;

	if (e->has_failed)
		return;
	rc = dsm_check(&e->vm, from, msg);
	if (!rc && !dsm_type_has_page(msg->type) != !page)
		rc = -DSM_E_LENGTH;
	if (rc) {
		breach(e, from, msg, dsm_error_name((unsigned int)-rc));
		return;
	}
	/* So it can't read what it has not, nor have us know ever more pages. */
	if (e->p.lenders & dsm_bit(from) &&
	    (is_request(msg->type) || msg->type == DSM_TOKEN_REQ)) {
		breach(e, from, msg, "it only lends memory, and has nothing to ask for");
		return;
	}
	if (msg->type >= DSM_TOKEN_REQ) {
		rc = dsm_token_message(&e->vm, &e->token, from, msg, &actions);
		if (rc) {
			breach(e, from, msg, dsm_error_name((unsigned int)-rc));
			return;
		}
		engine_send_all(e, &actions);
		engine_look_for_token(e);
		return;
	}
	if (is_request(msg->type)) {
		if (e->peer_requests[from] == DSM_ENGINE_REQUESTS) {
			breach(e, from, msg, "more requests than a host may have open");
			return;
		}
		e->peer_requests[from]++;
	}
	if (takes_away(msg))
		engine_count(e, msg->gfn, DSM_PROFILE_TAKEN, from);
	if ((msg->type == DSM_GETS || msg->type == DSM_GETM) && !(msg->flags & DSM_F_PREFETCH))
		engine_look_at_private(e, msg->gfn);
	entry = engine_entry(e, msg->gfn);
	if (!entry)
		return;
	if (is_request(msg->type) && !entry->served)
		entry->served = engine_read_at(e);
	else if (engine_is_answer(msg->type))
		engine_came(e, entry);
	engine_answered(e, entry, msg->type);
	rc = engine_step(e, entry, &event, page);
	if (e->has_failed)
		return;
	if (rc)
		breach(e, from, msg, dsm_error_name((unsigned int)-rc));
	else if (msg->type == DSM_BUSY_PIN ||
		 (msg->type == DSM_NACK && (msg->reason == DSM_R_PIN ||
					    (msg->reason == DSM_R_STAYS && !(e->vm.used_at_home & dsm_bit(from))))))
		/* Who waits for it here asks again, and may do so for ever. */
		engine_warn(e, WARN_PIN_THERE, "gfn 0x%" PRIx64 " is in use for too long, says host %s",
			    msg->gfn, name_of(e, from));
}
