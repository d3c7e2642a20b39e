/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: is a vCPU up that runs in this slice?
 *
 * A guest that cannot power off halts all its vCPUs with interrupts off, and
 * Xen ends a domain whose last vCPU does that (hvm_vcpu_down()).  With vCPUs in
 * several slices none of them knows which one is the last; and while all slices
 * look as if, an INIT and a SIPI, or an NMI, may be on its way from one to
 * another.  So a slice only says what is so here (ACTIVITY), and how much it
 * has been sent until then; the daemon, through whose hands everything goes,
 * knows when it is true everywhere at once.
 *
 * It knows because of three things, which hold here:
 *
 *   1 A slice in which none is up stays so until a SEND.  Only a SIPI, an NMI
 *     and VCPUOP_up start a vCPU that is down, and they come from a vCPU that
 *     is up: here, or by a SEND.  Interrupts and events do not start one.
 *   2 What its vCPUs have sent is in the ring before "none is up": an INIT or
 *     SIPI that waits for its tasklet counts as a vCPU that is up, and what the
 *     ring had no room for goes into it first.
 *   3 The number of SENDs is that of those which are done.  The daemon counts
 *     those that it begins, so what was true before a SEND has another number
 *     than the daemon from when the SEND begins.
 *
 * What is told is the state, not a change: it may come late, twice, or not at
 * all if the ring is full and it has changed since.  One of two numbers of
 * SENDs that are equal is never "one is up" behind "none is".
 *
 * Locking: the domain's lock, and dsm->lock inside of it.  vCPUs go up with the
 * domain's lock held, so while it is held what was down stays down.  Who goes
 * down does so first and looks then; whoever looks last sees all of it.
 * Context: no locks held, but dsm->lock for dsm_flush_activity().
 */

#include <xen/sched.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/hvm/hvm.h>
#include <asm/hvm/vlapic.h>

static bool any_up(struct domain *d)
{
    const struct vcpu *v;

    ASSERT(rspin_is_locked(&d->domain_lock));

    for_each_vcpu ( d, v )
        if ( !dsm_elsewhere(d->arch.dsm, v->vcpu_id) &&
             (!test_bit(_VPF_down, &v->pause_flags) ||
              ACCESS_ONCE(vcpu_vlapic(v)->init_sipi.icr)) )
            return true;

    return false;
}

/* Is there something to vCPUs elsewhere that the ring had no room for? */
static bool owes(const struct domain *d)
{
    const struct dsm_domain *dsm = d->arch.dsm;
    unsigned int i;

    for ( i = 0; i < d->max_vcpus; i++ )
        if ( dsm->vcpu[i].owing )
            return true;

    return false;
}

/* dsm->lock is held. */
static void put_activity(struct domain *d)
{
    struct dsm_domain *dsm = d->arch.dsm;
    const struct xen_dsm_ring_entry entry = {
        .type = XEN_DSM_ACTIVITY,
        .want = dsm->active,
        .gfn = dsm->sends,
        .when_ns = NOW(),
    };

    /* Who owes something has made the ring full: there will be a FLUSH. */
    dsm->active_unsent = owes(d) || !dsm_ring_put(dsm, &entry);
    if ( dsm->active_unsent )
        dsm->stats.ring_full++;
}

bool dsm_flush_activity(struct domain *d, bool all)
{
    struct dsm_domain *dsm = d->arch.dsm;

    if ( !dsm->active_unsent && !(all && dsm->spread) )
        return false;

    put_activity(d);

    return true;
}

bool dsm_vcpu_down(struct domain *d)
{
    struct dsm_domain *dsm = d->arch.dsm;
    bool put;

    if ( !dsm->spread )
        return false;

    domain_lock(d);
    spin_lock(&dsm->lock);
    put = !dsm->dead && dsm->active && !any_up(d);
    if ( put )
    {
        dsm->active = false;
        put_activity(d);
    }
    spin_unlock(&dsm->lock);
    domain_unlock(d);

    if ( put )
        dsm_notify(d);

    return true;
}

void dsm_sent(struct domain *d)
{
    struct dsm_domain *dsm = d->arch.dsm;
    bool was, put = false;

    domain_lock(d);
    spin_lock(&dsm->lock);
    dsm->sends++;
    if ( dsm->spread && !dsm->dead )
    {
        was = dsm->active;
        dsm->active = any_up(d);
        put = !was || !dsm->active;
        if ( put )
            put_activity(d);
    }
    spin_unlock(&dsm->lock);
    domain_unlock(d);

    if ( put )
        dsm_notify(d);
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
