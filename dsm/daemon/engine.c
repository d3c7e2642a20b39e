// SPDX-License-Identifier: GPL-2.0
/*
 * What an engine begins and ends with, its turn and its clock, and what it is asked.
 * It stands on all other parts: engine_internal.h has the floors, and struct above,
 * through which those below tell those above them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"

/* ---- What lower parts tell higher ones ---- */

static void settled(struct dsm_engine *e, struct dsm_entry *entry)
{
	engine_prefetch_settle(e, entry);
	engine_evacuate_settle(e, entry);
	engine_merge_settle(e, entry);
}

static const struct above above = {
	.settled = settled,
	.ended = engine_place_end,
	.answered = engine_place_got,
};

/* ---- Time ---- */

void dsm_engine_run(struct dsm_engine *e)
{
	if (e->has_failed)
		return;
	engine_tell_all(e);
	engine_flush(e);
	if (e->has_failed)
		return;
	engine_prefetch(e);
	engine_evacuate(e);
	if (e->has_failed)
		return;
	engine_evict(e);
	engine_flush(e);
	if (!e->has_failed)
		engine_tell_all(e);
	engine_flush(e);
	engine_vcpus_run(e);
	if (!e->has_failed)
		engine_merge(e);
	engine_time_passes(e);
}

uint64_t dsm_engine_next(const struct dsm_engine *e)
{
	const struct dsm_entry *entry = dsm_table_first_due(&e->table);
	uint64_t next = e->keepalive_due, late = engine_answers_due(e);

	if (e->has_failed)
		return DSM_NEVER;
	if (late < next)
		next = late;
	if (entry && entry->due < next)
		next = entry->due;
	if (e->evacuation.due < next)
		next = e->evacuation.due;
	if (e->evict_due < next)
		next = e->evict_due;
	if (e->merge_due < next)
		next = e->merge_due;
	if (e->vcpus.due < next)
		next = e->vcpus.due;
	if (engine_place_due(e) < next)
		next = engine_place_due(e);
	if (engine_pause_due(e) < next)
		next = engine_pause_due(e);
	if (e->ring_left)
		return 0;
	return e->token_due < next ? e->token_due : next;
}

static void retry_due(struct dsm_engine *e, struct dsm_entry *entry, uint64_t t)
{
	bool long_enough = t - entry->busy_since >= e->p.pin_ns;
	bool special = entry->special, home = at_home(e, entry);
	/*
	 * A backend has it, and does not let it go as it does a buffer; or it is no plain
	 * memory.  What others have copies of has to come home first, as any page in use.
	 */
	bool for_ever = (special || e->p.rings[entry->range]) && entry->page.state == DSM_MODIFIED;
	uint64_t gfn = entry->page.gfn;

	entry->retry_due = DSM_NEVER;
	if (!special && !long_enough) {
		engine_simple_step(e, gfn, DSM_EV_RETRY);
		return;
	}
	e->counts.pins++;
	engine_warn(e, WARN_PIN, special ?
		    "gfn 0x%" PRIx64 " is no plain memory and can't leave this host" :
		    "gfn 0x%" PRIx64 " is in use for too long and can't leave this host now",
		    gfn);
	if (!for_ever && home && engine_keep_at_home(e, entry, engine_may_ask(e, entry, gfn)))
		return;
	/* Not what has changed meanwhile. */
	if (for_ever && home && engine_make_private(e, gfn))
		return;
	engine_simple_step(e, gfn, DSM_EV_PIN_TIMEOUT);
}

static void entry_due(struct dsm_engine *e, struct dsm_entry *entry, uint64_t t)
{
	if (entry->page.operation) {
		engine_flush(e);
	} else if (entry->retry_due <= t) {
		retry_due(e, entry, t);
	} else {
		engine_lease_due(e, entry, t);
	}
}

void dsm_engine_tick(struct dsm_engine *e)
{
	struct dsm_entry *entry;
	uint64_t t;
	int rc;

	engine_time_passes(e);
	t = now(e);

	while (!e->has_failed && (entry = dsm_table_first_due(&e->table)) &&
	       entry->due <= t)
		entry_due(e, entry, t);
	if (!e->has_failed && e->token_due <= t) {
		if (e->token_vcpu->waiting && t < e->token_end)
			e->token_due = t + e->p.token_ns;
		else
			engine_retired(e, e->token_vcpu);
	}
	if (!e->has_failed && e->ring_left)
		engine_read_ring(e);
	if (!e->has_failed)
		engine_vcpus_tick(e, t);
	if (!e->has_failed && engine_answers_due(e) <= t)
		engine_answers_tick(e, t);
	if (!e->has_failed && e->keepalive_due <= t) {
		rc = e->p.xen->calls->keepalive(e->p.xen, e->p.keepalive_ms);
		e->keepalive_due = t + e->p.keepalive_ms * MS / 4;
		if (rc)
			engine_fail(e, "Xen does not take a sign of life: %s",
				    strerror(-rc));
	}
	dsm_engine_run(e);
}

/* ---- The rest ---- */

static int own_request(struct dsm_engine *e, uint64_t gfn, unsigned int type)
{
	if (e->has_failed || dsm_vm_home(&e->vm, gfn) == DSM_NOBODY)
		return -EINVAL;
	if (!engine_may_ask(e, NULL, gfn))
		return -EAGAIN;
	return engine_simple_step(e, gfn, type) ? -EAGAIN : 0;
}

int dsm_engine_drop(struct dsm_engine *e, uint64_t gfn)
{
	return own_request(e, gfn, DSM_EV_DROP);
}

int dsm_engine_populate(struct dsm_engine *e, uint64_t gfn)
{
	return own_request(e, gfn, DSM_EV_POPULATE);
}

void dsm_engine_drain(struct dsm_engine *e)
{
	e->draining = true;
}

bool dsm_engine_is_asking(const struct dsm_engine *e)
{
	return e->requests || !TAILQ_EMPTY(&e->vcpus.away);
}

unsigned int dsm_engine_guests(const struct dsm_engine *e)
{
	return e->guests;
}

const char *dsm_engine_failure(const struct dsm_engine *e)
{
	return e->has_failed ? e->failure : NULL;
}

unsigned int dsm_engine_lost(const struct dsm_engine *e)
{
	return e->lost;
}

void dsm_engine_fail(struct dsm_engine *e, const char *text)
{
	engine_fail(e, "%s", text);
}

void dsm_engine_end(struct dsm_engine *e, const char *text)
{
	if (!e->has_failed)
		engine_end(e, text);
}

void dsm_engine_get_counts(const struct dsm_engine *e,
			   struct dsm_engine_counts *counts)
{
	unsigned int i;

	*counts = e->counts;
	counts->frames = e->frames;
	counts->frames_used = e->used;
	counts->requests = e->requests;
	counts->waiting = e->nr_waiting;
	counts->evacuating = dsm_engine_is_evacuating(e);
	counts->leaving = engine_is_leaving(e, e->p.calls->now(e->p.context));
	counts->pages = e->table.nr;
	/* Not the table: millions of pages, and misses wait while they are counted. */
	for (i = 0; i < e->vm.nr_ranges; i++)
		if (e->vm.range[i].home == e->vm.self)
			counts->elsewhere += e->range[i].counts.moved;
}

const char *dsm_engine_broken_rule(const struct dsm_engine *e)
{
	const struct dsm_entry *entry;
	unsigned int used = 0, asking = 0, fetching = 0, evacuating = 0, owed = 0;
	const char *rule;

	for (entry = dsm_table_next(&e->table, NULL); entry;
	     entry = dsm_table_next(&e->table, (struct dsm_entry *)entry)) {
		rule = dsm_page_broken_rule(&entry->page, &e->vm);
		if (rule)
			return rule;
		if (!entry->buffer && dsm_page_needs_buffer(&entry->page))
			return "a page without its buffer";
		if (entry->place ? e->table.heap[entry->place] != entry :
				   entry->due != DSM_NEVER)
			return "a page that is not in its place in the heap";
		used += entry->counted;
		asking += entry->page.request || entry->page.wanted;
		fetching += entry->fetching;
		evacuating += entry->evacuating;
		owed += entry->owed_since != 0;
	}
	if (owed != engine_answers_owed(e))
		return "a page that waits for an answer is not in its list";
	if (used != e->used || asking != e->requests ||
	    fetching != e->fetching || evacuating != e->evacuation.out)
		return "frames or requests are counted wrongly";
	if (e->used > e->frames && e->used > e->used_most)
		return "more frames used than there are";
	return NULL;
}

static int check_params(const struct dsm_engine_params *p, struct dsm_vm *vm,
			char *text)
{
	bool others = false;
	unsigned int i;

	if (dsm_vm_init(vm, p->self, p->nr_hosts) || p->token_home >= p->nr_hosts) {
		snprintf(text, DSM_ENGINE_TEXT, "host %u of %u, token at %u: no such hosts",
			 p->self, p->nr_hosts, p->token_home);
		return -EINVAL;
	}
	for (i = 0; i < p->nr_ranges; i++) {
		const struct dsm_range *r = &p->range[i];
		int rc = i < DSM_MAX_RANGES ?
			 dsm_vm_add_range(vm, r->start, r->end, r->home) : -DSM_E_FULL;

		if (rc) {
			snprintf(text, DSM_ENGINE_TEXT, "range %u, gfns 0x%" PRIx64 " to 0x%"
				 PRIx64 " of host %u: %s", i, r->start, r->end,
				 r->home, dsm_error_name((unsigned int)-rc));
			return -EINVAL;
		}
		others |= r->home != p->self && !p->detached[i];
	}
	if (!p->nr_ranges || !p->nr_vcpus || p->nr_vcpus > DSM_ENGINE_VCPUS) {
		snprintf(text, DSM_ENGINE_TEXT, "%u ranges, %u vCPUs: want 1 to %u, 1 to %u",
			 p->nr_ranges, p->nr_vcpus, DSM_MAX_RANGES, DSM_ENGINE_VCPUS);
		return -EINVAL;
	}
	if (others && p->frames < DSM_FRAMES_PER_VCPU * p->nr_vcpus) {
		snprintf(text, DSM_ENGINE_TEXT, "%u frames in the pool: want %u, %u for each of %u vCPUs",
			 p->frames, DSM_FRAMES_PER_VCPU * p->nr_vcpus,
			 DSM_FRAMES_PER_VCPU, p->nr_vcpus);
		return -EINVAL;
	}
	if (p->prefetch > DSM_ENGINE_PREFETCH) {
		snprintf(text, DSM_ENGINE_TEXT, "a window of %u pages: want at most %u",
			 p->prefetch, DSM_ENGINE_PREFETCH);
		return -EINVAL;
	}
	if (p->answer_ns && p->answer_ns <= p->pin_ns + LEASE_MOST * p->lease_ns) {
		snprintf(text, DSM_ENGINE_TEXT, "an answer within %llu ms: want more than a page may be in use (%llu ms) "
			 "and leased (%llu ms)", p->answer_ns / MS, p->pin_ns / MS,
			 LEASE_MOST * p->lease_ns / MS);
		return -EINVAL;
	}
	for (i = 0; p->where && i < p->nr_vcpus; i++) {
		if (i ? p->where[i] < p->nr_hosts : p->where[0] == p->token_home)
			continue;
		snprintf(text, DSM_ENGINE_TEXT, "vCPU %u at host %u: want one of %u, and vCPU 0 at %u",
			 i, p->where[i], p->nr_hosts, p->token_home);
		return -EINVAL;
	}
	for (i = 0; p->where && i < p->nr_vcpus; i++) {
		if (p->places && p->places[i] < p->nr_hosts)
			continue;
		snprintf(text, DSM_ENGINE_TEXT, "a place of vCPU %u: want one of %u hosts", i, p->nr_hosts);
		return -EINVAL;
	}
	if (!p->token_ns || !p->retry_ns || p->retry_ns > DSM_ENGINE_BACKOFF || !p->pin_ns) {
		snprintf(text, DSM_ENGINE_TEXT, "a time is 0, or retry_ns above %llu", DSM_ENGINE_BACKOFF);
		return -EINVAL;
	}
	return 0;
}

int dsm_engine_create(const struct dsm_engine_params *params,
		      struct dsm_engine **engine, char text[DSM_ENGINE_TEXT])
{
	struct dsm_engine *e = calloc(1, sizeof(*e));
	unsigned int i;
	int rc = -ENOMEM;

	snprintf(text, DSM_ENGINE_TEXT, "no memory");
	if (!e)
		return -ENOMEM;
	e->p = *params;
	e->above = &above;
	rc = check_params(params, &e->vm, text);
	if (rc)
		goto fail;
	e->lost = DSM_NOBODY;
	e->vm.token_home = params->token_home;
	e->vm.leases = params->lease_ns != 0;
	if (params->max_losses)
		e->vm.max_losses = params->max_losses;
	dsm_token_init(&e->token);
	TAILQ_INIT(&e->waiting);
	TAILQ_INIT(&e->line);
	TAILQ_INIT(&e->clock);
	engine_begin_ranges(e);
	engine_begin_answers(e);
	e->dice = params->seed;
	e->frames = params->frames;
	e->token_due = DSM_NEVER;
	e->evacuation.due = DSM_NEVER;
	e->evict_due = DSM_NEVER;
	e->merge_due = DSM_NEVER;
	e->keepalive_due = params->keepalive_ms ? 0 : DSM_NEVER;

	rc = -ENOMEM;
	e->nr_buffers = DSM_ENGINE_REQUESTS * params->nr_hosts +
			DSM_ENGINE_WRITEBACKS + 2 * SLOTS;
	e->buffers = params->xen->calls->alloc_pages(params->xen, e->nr_buffers);
	e->vcpu = calloc(params->nr_vcpus, sizeof(*e->vcpu));
	e->profile = dsm_profile_create(params->seed);
	if (!e->buffers || !e->profile || !e->vcpu || engine_begin_vcpus(e) || engine_begin_merging(e) ||
	    dsm_table_init(&e->table, e->buffers, e->nr_buffers))
		goto fail;
	for (i = 0; i < params->nr_vcpus; i++)
		e->vcpu[i].waiter.vcpu = &e->vcpu[i];
	*engine = e;
	text[0] = 0;
	return 0;

fail:
	if (e->buffers)
		params->xen->calls->free_pages(params->xen, e->buffers, e->nr_buffers);
	engine_end_merging(e);
	engine_end_vcpus(e);
	dsm_profile_destroy(e->profile);
	free(e->vcpu);
	free(e);
	return rc;
}

void dsm_engine_set_profile(struct dsm_engine *e, bool on)
{
	dsm_profile_clear(e->profile);
	e->profile_since = on ? now(e) : 0;
}

const struct dsm_profile *dsm_engine_profile(struct dsm_engine *e, uint64_t *ns)
{
	*ns = e->profile_since ? now(e) - e->profile_since : 0;
	return e->profile_since ? e->profile : NULL;
}

void dsm_engine_destroy(struct dsm_engine *e)
{
	if (!e)
		return;
	e->p.xen->calls->free_pages(e->p.xen, e->buffers, e->nr_buffers);
	dsm_table_exit(&e->table);
	engine_end_merging(e);
	engine_end_vcpus(e);
	dsm_profile_destroy(e->profile);
	free(e->vcpu);
	free(e);
}
