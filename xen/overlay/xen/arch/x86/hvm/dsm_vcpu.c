/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: vCPUs that run in another slice.
 *
 * Each slice has all vCPUs of the guest, and each vCPU runs in one of them
 * (PLACE).  In the others it is a ghost: it is down, and paused for as long as
 * it is one, whatever the control domain does to it; and what is sent to it is
 * put into the ring, for the daemon to have it done where the vCPU runs (SEND).
 * A ghost is complete otherwise: destinations of interrupts
 * are compared with its local APIC, which nobody has changed since it was made,
 * and so has its identifier.
 *
 * What is sent to a vCPU: INIT, SIPI, NMI and vectors.  All of it goes through
 * two functions of hvm/vlapic.c, vlapic_init_sipi_one() and
 * vlapic_accept_irq(), for each vCPU that a destination means; that is where
 * it leaves its way (dsm_forward_icr()), and where it comes back to it in the
 * other slice.  A vCPU begins with a SIPI, so there is no state to be moved.
 *
 * A vCPU that does not take its interrupts loses none: they are bits, as in a
 * local APIC.  They are a bit in the ring, then in the daemon's hands, then in
 * the APIC, where they meet those that were sent before.  An INIT makes void
 * what was sent before, here as there.
 *
 * Order.  What one vCPU sends to another is in the ring in its order, as long
 * as there is room.  What has been put together afterwards can only be what
 * an APIC puts together, too.  Nothing is said of the order of an interrupt
 * and of pages: a page is asked for when it is needed, so whatever the sender
 * wrote before it sent is what the receiver reads.
 *
 * Locking: dsm->lock, a leaf, for what is owed and for the ring.  Where a vCPU
 * runs changes only while the domain is paused and nothing is on its way, so
 * it is read without a lock by whoever runs, or works for one who does.  What a
 * CALL does for a vCPU that goes meanwhile is undone (dsm_give_back()).
 * Context: no lock of the domain is held, but see dsm_shutdown().
 */

#include <xen/errno.h>
#include <xen/mm.h>
#include <xen/sched.h>

#include <asm/apicdef.h>
#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/hvm/hvm.h>
#include <asm/hvm/vlapic.h>

/* ---- What is sent away ---- */

/* dsm->lock is held. */
static void put_owed(struct dsm_domain *dsm, unsigned int vcpu)
{
    struct dsm_vcpu *w = &dsm->vcpu[vcpu];
    struct xen_dsm_ring_entry entry = {
        .type = XEN_DSM_VCPU_EVENT,
        .want = w->owed.sipi,
        .flags = w->owed.flags,
        .vcpu = vcpu,
        .when_ns = NOW(),
    };

    memcpy(entry.vectors, w->owed.vectors, sizeof(entry.vectors));

    w->owing = !dsm_ring_put(dsm, &entry);
    if ( w->owing )
        dsm->stats.ring_full++;
    else
        memset(&w->owed, 0, sizeof(w->owed));
}

/* dsm->lock is held. */
static void put_shutdown(struct domain *d)
{
    struct dsm_domain *dsm = d->arch.dsm;
    const struct xen_dsm_ring_entry entry = {
        .type = XEN_DSM_SHUTDOWN,
        .want = d->shutdown_code,
        .when_ns = NOW(),
    };

    dsm->ended = true;
    dsm->shut = !dsm_ring_put(dsm, &entry);
}

bool dsm_flush_events(struct domain *d, bool all)
{
    struct dsm_domain *dsm = d->arch.dsm;
    bool put = false;
    unsigned int i;

    for ( i = 0; i < d->max_vcpus; i++ )
        if ( dsm->vcpu[i].owing )
        {
            put_owed(dsm, i);
            put = true;
        }

    if ( dsm->shut || (all && dsm->ended) )
    {
        put_shutdown(d);
        put = true;
    }

    return put;
}

/* As in vlapic_init_sipi_one(): nothing is done for a de-assert. */
static bool is_init(uint32_t icr)
{
    return (icr & APIC_DM_MASK) == APIC_DM_INIT &&
           (icr & (APIC_INT_LEVELTRIG | APIC_INT_ASSERT)) != APIC_INT_LEVELTRIG;
}

/* Add to what a ghost is owed.  False if that means nothing to a vCPU. */
static bool owe(struct xen_dsm_vcpu_event *owed, uint32_t icr)
{
    switch ( icr & APIC_DM_MASK )
    {
    case APIC_DM_FIXED:
    case APIC_DM_LOWEST:
        /* A local APIC takes none of these; SEND would refuse all of it. */
        if ( (icr & APIC_VECTOR_MASK) < 16 )
            return false;
        owed->vectors[(icr & APIC_VECTOR_MASK) / 64] |=
            1UL << ((icr & APIC_VECTOR_MASK) % 64);
        return true;

    case APIC_DM_NMI:
        owed->flags |= XEN_DSM_EVENT_NMI;
        return true;

    case APIC_DM_INIT:
        if ( !is_init(icr) )
            return false;
        *owed = (struct xen_dsm_vcpu_event){ .flags = XEN_DSM_EVENT_INIT };
        return true;

    case APIC_DM_STARTUP:
        /* Only the first one after an INIT is heard. */
        if ( owed->flags & XEN_DSM_EVENT_SIPI )
            return false;
        owed->flags |= XEN_DSM_EVENT_SIPI;
        owed->sipi = icr & APIC_VECTOR_MASK;
        return true;

    default:
        /* SMI, remote read: vlapic_accept_irq() knows neither. */
        return false;
    }
}

/*
 * A local APIC that does not wait for a SIPI does not hear it, nor any one a
 * de-assert.  vlapic_init_sipi_one() does nothing for these, either, but end
 * the instruction that the vCPU is in: what it has done to pages in state U
 * would be done twice.  Linux sends each SIPI twice.
 */
static bool is_not_heard(const struct vcpu *v, uint32_t icr)
{
    switch ( icr & APIC_DM_MASK )
    {
    case APIC_DM_STARTUP:
        return v->is_initialised;

    case APIC_DM_INIT:
        return !is_init(icr);

    default:
        return false;
    }
}

bool dsm_forward_icr(struct vcpu *v, uint32_t icr)
{
    struct domain *d = v->domain;
    struct dsm_domain *dsm = d->arch.dsm;
    bool put;

    if ( !dsm_elsewhere(dsm, v->vcpu_id) )
        return is_not_heard(v, icr);

    spin_lock(&dsm->lock);
    put = !dsm->dead && owe(&dsm->vcpu[v->vcpu_id].owed, icr);
    if ( put )
        put_owed(dsm, v->vcpu_id);
    spin_unlock(&dsm->lock);

    if ( put )
        dsm_notify(d);

    return true;
}

void dsm_shutdown(struct domain *d)
{
    struct dsm_domain *dsm = d->arch.dsm;
    bool put;

    if ( !dsm->spread )
        return;

    spin_lock(&dsm->lock);
    put = !dsm->dead;
    if ( put )
        put_shutdown(d);
    spin_unlock(&dsm->lock);

    if ( put )
        dsm_notify(d);
}

/* ---- The commands ---- */

/* Does anything that is on its way depend on where a vCPU runs? */
static bool under_way(const struct domain *d)
{
    const struct dsm_domain *dsm = d->arch.dsm;
    const struct vcpu *v;

    for_each_vcpu ( d, v )
        if ( dsm->vcpu[v->vcpu_id].owing ||
             dsm_is_calling(dsm, v->vcpu_id) ||
             dsm_is_accessing(dsm, v->vcpu_id) ||
             ACCESS_ONCE(vcpu_vlapic(v)->init_sipi.icr) )
            return true;

    return false;
}

/* Ghosts are paused.  dsm->lock is held. */
static void pause_ghost(struct dsm_domain *dsm, struct vcpu *v)
{
    struct dsm_vcpu *w = &dsm->vcpu[v->vcpu_id];
    bool ghost = w->slice != dsm->slice;

    if ( ghost == w->ghost )
        return;

    w->ghost = ghost;
    if ( ghost )
        vcpu_pause_nosync(v);
    else
        vcpu_unpause(v);
}

void dsm_pause_ghosts(struct domain *d)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct vcpu *v;

    spin_lock(&dsm->lock);
    for_each_vcpu ( d, v )
        pause_ghost(dsm, v);
    spin_unlock(&dsm->lock);
}

/*
 * Is something else in the page of its vcpu_info?  Then it can be registered
 * in no other slice (dsm_do_call()).  Who registers one runs, or waits for it.
 */
static bool shares_info(const struct vcpu *v)
{
    return v->vcpu_info_area.pg &&
           ((unsigned long)v->vcpu_info_area.map & ~PAGE_MASK);
}

int dsm_place(struct domain *d, struct xen_dsm_place *place)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct vcpu *v;
    int rc = 0;

    if ( dsm->nr_slices == 1 || place->slice >= dsm->nr_slices ||
         !place->vcpu || place->pad || place->info )
        return -EINVAL;

    v = domain_vcpu(d, place->vcpu);
    if ( !v )
        return -ENOENT;

    /* Who does not run sends nothing new, whoever unpauses it meanwhile. */
    domain_pause(d);

    spin_lock(&dsm->lock);
    if ( !d->controller_pause_count || under_way(d) ||
         !(test_bit(_VPF_down, &v->pause_flags) || d->is_shut_down) )
        rc = -EBUSY;
    else if ( place->slice != dsm->slice && shares_info(v) &&
              !d->is_shut_down )
        rc = -EOPNOTSUPP;
    else
    {
        ACCESS_ONCE(dsm->vcpu[v->vcpu_id].slice) = place->slice;
        /* It stays so: another slice may have started the vCPU already. */
        dsm->spread = true;
        pause_ghost(dsm, v);
        /* A page that it needs it will miss where it runs. */
        if ( place->slice != dsm->slice )
        {
            dsm_end_wait(d, v->vcpu_id);
            dsm_end_hole(dsm, v->vcpu_id);
            dsm_end_accesses(v);
        }
    }
    spin_unlock(&dsm->lock);

    if ( !rc && place->slice != dsm->slice )
        place->info = dsm_give_back(v);

    domain_unpause(d);

    return rc;
}

int dsm_send(struct domain *d, const struct xen_dsm_vcpu_event *event)
{
    struct vcpu *v;
    unsigned int vector;

    if ( (event->flags & ~(XEN_DSM_EVENT_INIT | XEN_DSM_EVENT_SIPI |
                           XEN_DSM_EVENT_NMI)) ||
         (event->sipi && !(event->flags & XEN_DSM_EVENT_SIPI)) ||
         (event->vectors[0] & 0xffff) || event->pad )
        return -EINVAL;

    v = domain_vcpu(d, event->vcpu);
    if ( !v )
        return -ENOENT;

    if ( dsm_elsewhere(d->arch.dsm, v->vcpu_id) )
        return -EXDEV;

    if ( event->flags & XEN_DSM_EVENT_INIT )
        vlapic_init_sipi_one(v, APIC_DM_INIT | APIC_INT_ASSERT);
    if ( event->flags & XEN_DSM_EVENT_SIPI )
        vlapic_init_sipi_one(v, APIC_DM_STARTUP | event->sipi);
    if ( event->flags & XEN_DSM_EVENT_NMI )
        vlapic_accept_irq(v, APIC_DM_NMI);
    for ( vector = 16; vector < 256; vector++ )
        if ( event->vectors[vector / 64] & (1UL << (vector % 64)) )
            vlapic_accept_irq(v, APIC_DM_FIXED | vector);
    dsm_sent(d);

    return 0;
}

int dsm_get_tsc(struct domain *d, struct xen_dsm_tsc *tsc)
{
    if ( !dsm_plain_tsc(d) )
        return -EOPNOTSUPP;

    tsc->offset = d->vcpu[0]->arch.hvm.cache_tsc_offset;

    return 0;
}

int dsm_set_tsc(struct domain *d, const struct xen_dsm_tsc *tsc)
{
    const struct vcpu *v;

    if ( !dsm_plain_tsc(d) )
        return -EOPNOTSUPP;

    if ( !d->arch.dsm->slice )
        return -EINVAL;

    for_each_vcpu ( d, v )
        if ( v->is_initialised )
            return -EBUSY;

    /* The ghost of vCPU 0 never runs; hvm_vcpu_reset_state() takes it here. */
    d->vcpu[0]->arch.hvm.cache_tsc_offset = tsc->offset;

    return 0;
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
