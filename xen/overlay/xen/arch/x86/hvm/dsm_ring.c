/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: the ring, through which the daemon hears.
 *
 * Each file of DSM that has something to tell writes its own entries, and sees
 * to it that what there was no room for is told later (FLUSH).  Here is what
 * all of them need for that, and the end of a wait for a page, which comes with
 * an operation or with a vCPU that leaves.  This file calls none of the others.
 *
 * Locking: the caller holds dsm->lock, but for dsm_notify(), which is called
 * without it and needs none.  Context: any.
 */

#include <xen/event.h>
#include <xen/sched.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>

bool dsm_ring_put(struct dsm_domain *dsm,
                  const struct xen_dsm_ring_entry *entry)
{
    struct xen_dsm_ring *ring = dsm->ring;

    if ( !ring )
        return false;

    /* Neither prod nor nr is read back: the daemon can write there. */
    if ( dsm->prod - ACCESS_ONCE(ring->cons) >= dsm->ring_nr )
    {
        write_atomic(&ring->full, 1);
        return false;
    }

    dsm->entries[dsm->prod & (dsm->ring_nr - 1)] = *entry;
    smp_wmb(); /* The entry before the index that says it is there. */
    write_atomic(&ring->prod, ++dsm->prod);

    return true;
}

bool dsm_ring_was_read(const struct dsm_domain *dsm, uint32_t entry)
{
    /*
     * Numbers are modulo 2^32; the daemon may say what it likes.  What was
     * read is further back than what was not, however long ago that was.
     */
    return dsm->ring &&
           dsm->prod - entry > dsm->prod - ACCESS_ONCE(dsm->ring->cons);
}

void dsm_end_wait(struct domain *d, unsigned int vcpu)
{
    struct dsm_domain *dsm = d->arch.dsm;

    if ( !dsm->vcpu[vcpu].waiting )
        return;

    dsm->vcpu[vcpu].waiting = false;
    dsm->nr_waiting--;
    vcpu_unpause(d->vcpu[vcpu]);
}

/* How long it has run, or only a CPU was missing for that: never in a pause. */
static uint64_t could_run_ns(const struct vcpu *v)
{
    struct vcpu_runstate_info state;

    vcpu_runstate_get(v, &state);

    return state.time[RUNSTATE_running] + state.time[RUNSTATE_runnable];
}

void dsm_wake(struct domain *d, unsigned int vcpu)
{
    struct vcpu *v = d->vcpu[vcpu];
    struct dsm_vcpu *w = &d->arch.dsm->vcpu[vcpu];

    /* Before it can run: then it looks at waking, and waits for our lock. */
    w->could_run_ns = could_run_ns(v);
    smp_wmb();
    w->waking = true;
    dsm_end_wait(d, vcpu);

    /* Whatever keeps it now, it is not the page that it runs for later. */
    if ( !vcpu_runnable(v) )
        w->waking = false;
}

void dsm_woken(struct vcpu *v)
{
    struct dsm_domain *dsm = v->domain->arch.dsm;
    struct dsm_vcpu *w = &dsm->vcpu[v->vcpu_id];
    int64_t ns = could_run_ns(v);

    spin_lock(&dsm->lock);
    if ( w->waking )
    {
        w->waking = false;
        ns -= w->could_run_ns;
        dsm->stats.wakes++;
        /* The clocks of two CPUs. */
        dsm->stats.wake_ns += max_t(int64_t, ns, 0);
    }
    spin_unlock(&dsm->lock);
}

void dsm_notify(struct domain *d)
{
    notify_via_xen_event_channel(d, d->arch.dsm->port);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
