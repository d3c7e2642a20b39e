// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits for a page: what is known of them, and that they run again when it
 * comes.  What is done for them is above (engine_misses.c, engine_pages.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine_internal.h"

void engine_queue_waiter(struct dsm_engine *e, struct waiter *w)
{
	if (w->queued)
		return;
	TAILQ_INSERT_TAIL(&e->waiting, w, link);
	w->queued = true;
	w->counted = false;
	e->nr_waiting++;
}

void engine_unqueue_waiter(struct dsm_engine *e, struct waiter *w)
{
	if (!w->queued)
		return;
	TAILQ_REMOVE(&e->waiting, w, link);
	w->queued = false;
	e->nr_waiting--;
}

void engine_who_waits(const struct dsm_engine *e, uint64_t gfn, char *words, size_t size)
{
	const struct vcpu *v;
	unsigned int others = 0;

	words[0] = '\0';
	for (v = e->vcpu; v < e->vcpu + e->p.nr_vcpus; v++) {
		if (!v->waiting || v->waiter.gfn != gfn)
			continue;
		if (words[0])
			others++;
		else
			snprintf(words, size, " by vCPU %u at RIP 0x%" PRIx64,
				 (unsigned int)(v - e->vcpu), v->rip);
	}
	if (others)
		snprintf(words + strlen(words), size - strlen(words), " and %u more",
			 others);
}

void engine_queued(struct dsm_engine *e, const struct dsm_entry *entry)
{
	const struct vcpu *v;

	for (v = e->vcpu; v < e->vcpu + e->p.nr_vcpus; v++)
		if (v->waiting && v->waiter.gfn == entry->page.gfn)
			dsm_histogram_add(&e->counts.queue, entry->asked - v->since);
}

/* A page that not only vCPUs have missed has come: a call that waited for it may be done. */
static void vcpus_came(struct dsm_engine *e)
{
	e->vcpus.again |= e->vcpus.nr_doing || e->vcpus.stop.placed;
}

static void vcpu_woken(struct dsm_engine *e, struct dsm_entry *entry, struct vcpu *v)
{
	uint64_t t = now(e);

	v->waiting = false;
	dsm_histogram_add(&e->range[entry->range].counts.fault, t - v->since);
	dsm_histogram_add(v->waiter.want == DSM_XEN_WANT_S ?
			  &e->counts.read_fault : &e->counts.write_fault,
			  t - v->since);
	if (entry->answered)
		dsm_histogram_add(&e->counts.install, t - entry->answered);
	entry->lease_vcpu = (uint32_t)(v - e->vcpu);
	if (e->vm.leases) {
		v->leased[v->nr_leased % LEASED] = entry->page.gfn;
		v->nr_leased++;
	}
}

void engine_told(struct dsm_engine *e, struct dsm_entry *entry,
		 void (*tell)(struct dsm_engine *e, struct dsm_entry *entry, uint32_t vcpu))
{
	struct vcpu *v;

	for (v = e->vcpu; v < e->vcpu + e->p.nr_vcpus && !e->has_failed; v++) {
		if (!v->waiting || v->waiter.gfn != entry->page.gfn || v->waiter.queued)
			continue;
		tell(e, entry, (uint32_t)(v - e->vcpu));
		vcpu_woken(e, entry, v);
	}
	entry->answered = 0;
	if (!entry->foreign || e->has_failed)
		return;
	tell(e, entry, DSM_XEN_FOREIGN);
	vcpus_came(e);
	entry->foreign = false;
}

/* All who wait for the page run again, and ask again if they have to. */
void engine_woken(struct dsm_engine *e, struct dsm_entry *entry)
{
	uint64_t gfn = entry->page.gfn;
	struct waiter *w, *next;
	struct vcpu *v;

	for (v = e->vcpu; v < e->vcpu + e->p.nr_vcpus; v++)
		if (v->waiting && v->waiter.gfn == gfn)
			vcpu_woken(e, entry, v);
	entry->answered = 0;
	for (w = TAILQ_FIRST(&e->waiting); w; w = next) {
		next = TAILQ_NEXT(w, link);
		if (w->gfn != gfn)
			continue;
		entry->foreign |= !w->vcpu;
		engine_unqueue_waiter(e, w);
	}
	if (entry->foreign)
		vcpus_came(e);
	entry->foreign = false;
}
