/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: events to ports of other slices.
 *
 * A port is in the slice that has allocated it, and its number says which one
 * that is.  All there is of it is there: what it is bound to, whether it is
 * pending and masked, the vCPU that it interrupts.  The guest has one
 * shared_info, at one frame, and each slice maps one of its own there; a vCPU
 * looks at the bits of the ports of its slice, and all others are masked.
 *
 * An event to a port of another slice goes into the ring (PORT_EVENT), and is
 * sent there again (SEND_PORTS), as if by a vCPU of that slice.  Who sends does
 * not wait, and is told 0.  Events that were sent to a port before it was
 * looked at are one, so bits are enough for those that the ring has no room
 * for.
 *
 * Nothing orders an event and a page: what the sender wrote before is what the
 * receiver reads when it asks for the page.
 *
 * Locking: dsm->lock for what is owed.  Context: no locks held.
 */

#include <xen/errno.h>
#include <xen/event.h>
#include <xen/nospec.h>
#include <xen/sched.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/dsm_route.h>

unsigned int dsm_first_port(const struct domain *d, unsigned int *last)
{
    const struct dsm_domain *dsm = d->arch.dsm;
    unsigned int nr = dsm_ports(dsm->nr_slices), first = dsm->slice * nr;

    *last = min(*last, first + nr - 1);

    return first;
}

/* dsm->lock is held. */
static void put_ports(struct dsm_domain *dsm, unsigned int group)
{
    struct dsm_owed_ports *owed = &dsm->owed_ports[group];
    struct xen_dsm_ring_entry entry = {
        .type = XEN_DSM_PORT_EVENT,
        .want = dsm_port_slice(group * DSM_PORTS_AT_ONCE, dsm->nr_slices),
        .gfn = group * DSM_PORTS_AT_ONCE,
        .when_ns = NOW(),
    };

    BUILD_BUG_ON(sizeof(entry.vectors) != sizeof(owed->ports));
    memcpy(entry.vectors, owed->ports, sizeof(entry.vectors));

    owed->owing = !dsm_ring_put(dsm, &entry);
    if ( owed->owing )
        dsm->stats.ring_full++;
    else
        memset(owed->ports, 0, sizeof(owed->ports));
}

bool dsm_flush_ports(struct dsm_domain *dsm)
{
    bool put = false;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(dsm->owed_ports); i++ )
        if ( dsm->owed_ports[i].owing )
        {
            put_ports(dsm, i);
            put = true;
        }

    return put;
}

void dsm_forward_port(struct domain *d, unsigned int port)
{
    struct dsm_domain *dsm = d->arch.dsm;
    unsigned int group = array_index_nospec(port / DSM_PORTS_AT_ONCE,
                                            ARRAY_SIZE(dsm->owed_ports));
    unsigned int n = port % DSM_PORTS_AT_ONCE;
    bool put;

    ASSERT(port < XEN_DSM_PORTS);

    spin_lock(&dsm->lock);
    put = !dsm->dead;
    if ( put )
    {
        dsm->owed_ports[group].ports[n / 64] |= 1UL << (n % 64);
        put_ports(dsm, group);
    }
    spin_unlock(&dsm->lock);

    if ( put )
        dsm_notify(d);
}

int dsm_send_ports(struct domain *d, const struct xen_dsm_ports *ports)
{
    const struct dsm_domain *dsm = d->arch.dsm;
    unsigned int n;

    if ( ports->first % DSM_PORTS_AT_ONCE || ports->pad )
        return -EINVAL;

    /* A group of ports is never in two slices. */
    BUILD_BUG_ON(XEN_DSM_PORTS / XEN_DSM_MAX_SLICES < DSM_PORTS_AT_ONCE);
    if ( dsm_port_slice(ports->first, dsm->nr_slices) != dsm->slice )
        return -EXDEV;

    /* One that nobody has bound is lost, as the hypercall's would be. */
    for ( n = 0; n < DSM_PORTS_AT_ONCE; n++ )
        if ( ports->ports[n / 64] & (1UL << (n % 64)) )
            evtchn_send(d, ports->first + n);

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
