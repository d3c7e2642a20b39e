/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: the vcpu_info of a vCPU that leaves this slice.
 *
 * It is the guest's page, and Xen writes events there for as long as the vCPU
 * runs here.  When it does not any more the page is an ordinary one again, and
 * can go to other slices.
 *
 * Locking: the domain's lock for what the vCPU has; then, one after the other,
 * event_lock and, inside of it, the locks of ports, as the hypercalls do.
 * Context: no locks held.
 */

#include <xen/domain.h>
#include <xen/domain_page.h>
#include <xen/event.h>
#include <xen/mm.h>
#include <xen/sched.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>

/* Who has locked it for an event is done with that. */
static void wait_for(struct evtchn *chn)
{
    write_lock(&chn->lock);
    write_unlock(&chn->lock);
}

/*
 * Where an event is pending is written under the lock of its port, or that of
 * the port from which another domain sends it.
 */
static void wait_for_senders(const struct vcpu *v)
{
    struct domain *d = v->domain;
    evtchn_port_t port;

    write_lock(&d->event_lock);
    for ( port = 0; port_is_valid(d, port); port++ )
    {
        struct evtchn *chn = evtchn_from_port(d, port);

        /*
         * What Xen sends, by a VIRQ or to the daemon, is lost if the port is
         * locked: only those of that vCPU.
         */
        if ( chn->xen_consumer ||
             (chn->state == ECS_VIRQ && chn->notify_vcpu_id != v->vcpu_id) )
            continue;

        if ( chn->state == ECS_VIRQ || chn->state == ECS_IPI ||
             chn->state == ECS_INTERDOMAIN )
            wait_for(chn);
        if ( chn->state == ECS_INTERDOMAIN )
            wait_for(evtchn_from_port(chn->u.interdomain.remote_dom,
                                      chn->u.interdomain.remote_port));
    }
    write_unlock(&d->event_lock);
}

/*
 * The page of its vcpu_info is an ordinary one again.  Returns where it was in
 * the guest, or 0.
 *
 * Not unmap_guest_area(): whoever sends an event to the vCPU just now may have
 * looked up where the vcpu_info is already, and writes to it then.
 */
uint64_t dsm_give_back(struct vcpu *v)
{
    struct domain *d = v->domain;
    struct guest_area *area = &v->vcpu_info_area;
    struct page_info *pg;
    unsigned long gfn;
    void *map;

    domain_lock(d);
    pg = area->pg;
    map = area->map;
    if ( pg )
    {
        vcpu_info_reset(v);
        area->pg = NULL;
    }
    domain_unlock(d);

    if ( !pg )
        return 0;

    gfn = get_gpfn_from_mfn(mfn_x(page_to_mfn(pg)));

    wait_for_senders(v);
    unmap_domain_page_global((void *)((unsigned long)map & PAGE_MASK));
    put_page_and_type(pg);

    /* The guest may have freed the frame. */
    return gfn == INVALID_M2P_ENTRY
           ? 0 : pfn_to_paddr(gfn) + ((unsigned long)map & ~PAGE_MASK);
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
