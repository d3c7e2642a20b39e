// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits for a page: what is known of them, and that they run again when it
 * comes.  What is done for them is above (engine_misses.c, engine_pages.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine_internal.h"

/*
 * For how long an access is shown a hole: at first, and each time twice as long
 * if the same access misses again, for it has not run in that time.  Another
 * domain tries every 100 us.
 */
#define HOLE_FIRST	(MS / 10)
#define HOLE_MOST	(10 * MS)
#define HOLE_FOREIGN	MS

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

uint64_t engine_hole_for(struct dsm_engine *e, uint64_t gfn)
{
	uint64_t longest = 0;
	struct vcpu *v;

	for (v = e->vcpu; v < e->vcpu + e->p.nr_vcpus; v++) {
		if (!v->waiting || v->waiter.gfn != gfn)
			continue;
		if (!v->hole_ns || v->hole_gfn != gfn || v->hole_rip != v->rip)
			v->hole_ns = HOLE_FIRST;
		else if (v->hole_ns < HOLE_MOST)
			v->hole_ns = 2 * v->hole_ns < HOLE_MOST ?
				     2 * v->hole_ns : HOLE_MOST;
		v->hole_gfn = gfn;
		v->hole_rip = v->rip;
		v->in_hole = true;
		if (longest < v->hole_ns)
			longest = v->hole_ns;
	}
	return longest ? longest : HOLE_FOREIGN;
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

/* All who wait for the page run again, and ask again if they have to. */
void engine_woken(struct dsm_engine *e, struct dsm_entry *entry)
{
	uint64_t gfn = entry->page.gfn, t = now(e);
	struct waiter *w, *next;
	unsigned int i;

	for (i = 0; i < e->p.nr_vcpus; i++) {
		struct vcpu *v = &e->vcpu[i];

		if (!v->waiting || v->waiter.gfn != gfn)
			continue;
		v->waiting = false;
		dsm_histogram_add(&e->range[entry->range].counts.fault, t - v->since);
		dsm_histogram_add(v->waiter.want == DSM_XEN_WANT_S ?
				  &e->counts.read_fault : &e->counts.write_fault,
				  t - v->since);
		if (entry->answered)
			dsm_histogram_add(&e->counts.install, t - entry->answered);
		entry->lease_vcpu = i;
		if (e->vm.leases) {
			v->leased[v->nr_leased % LEASED] = gfn;
			v->nr_leased++;
		}
	}
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
