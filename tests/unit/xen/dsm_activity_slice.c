// SPDX-License-Identifier: GPL-2.0-only
/*
 * One slice of two as a library, for dsm_activity_guest.c, which loads two of
 * them: the code of the hypervisor, and vCPUs that do what they are told to.
 *
 * The ring has two entries, so it is full most of the time.
 */
#include "fake_hcall.h"
#include <asm/apicdef.h>
#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/hvm/vlapic.h>
#include "world.h"
#include "dsm_activity.h"

#define DSM (dom.arch.dsm)

static int memop(struct xen_dsm_op *op)
{
    op->version = XEN_DSM_INTERFACE_VERSION;
    op->domid = dom.domain_id;

    return dsm_memop((XEN_GUEST_HANDLE_PARAM(xen_dsm_op_t)){ op });
}

static void must(const char *what, struct xen_dsm_op op)
{
    int rc = memop(&op);

    if ( rc )
        die("%s: %d", what, rc);
}

static void start(struct vcpu *v)
{
    domain_lock(&dom);
    clear_bit(_VPF_down, &v->pause_flags);
    v->is_initialised = true;
    domain_unlock(&dom);
}

static bool ends_at_once;       /* who is started */

void vlapic_init_sipi_one(struct vcpu *v, uint32_t icr)
{
    if ( (icr & APIC_DM_MASK) == APIC_DM_INIT )
    {
        if ( v->is_initialised )
            slice_halts(v->vcpu_id);
        v->is_initialised = false;
        return;
    }
    if ( v->is_initialised )
        return;
    start(v);
    if ( ends_at_once )
        slice_halts(v->vcpu_id);
}

void vlapic_accept_irq(struct vcpu *v, uint32_t icr)
{
    if ( (icr & APIC_DM_MASK) == APIC_DM_NMI && v->is_initialised )
        start(v);
}

void slice_begin(unsigned int k)
{
    xen_dsm_range_t range = { 0, 48 };
    unsigned int vcpu;

    make_world();
    must("ENABLE", (struct xen_dsm_op){
        .cmd = XEN_DSM_ENABLE,
        .u.enable = { .nr_ranges = 1, .slice = k, .nr_slices = 2,
                      .ranges.p = &range } });
    DSM->ring_nr = DSM->ring->nr = 2;
    for ( vcpu = 0; vcpu < VCPUS; vcpu++ )
        set_bit(_VPF_down, &dom.vcpu[vcpu]->pause_flags);
    if ( !k )
        start(dom.vcpu[0]);
    dom.controller_pause_count = dom.pauses = 1;
    for ( vcpu = 0; vcpu < VCPUS; vcpu++ )
        if ( SLICE_OF(vcpu) )
            must("PLACE", (struct xen_dsm_op){
                .cmd = XEN_DSM_PLACE,
                .u.place = { .vcpu = vcpu, .slice = SLICE_OF(vcpu) } });
}

bool slice_is_up(unsigned int vcpu)
{
    return !test_bit(_VPF_down, &dom.vcpu[vcpu]->pause_flags);
}

void slice_halts(unsigned int vcpu)
{
    set_bit(_VPF_down, &dom.vcpu[vcpu]->pause_flags);
    if ( !dsm_vcpu_down(&dom) )
        die("Xen ends it");
}

static void deliver(struct vcpu *v, uint32_t icr)
{
    if ( dsm_forward_icr(v, icr) )
        return;
    if ( icr == APIC_DM_INIT || (icr & APIC_DM_MASK) == APIC_DM_STARTUP )
        vlapic_init_sipi_one(v, icr);
    else
        vlapic_accept_irq(v, icr);
}

static const uint32_t icrs[] = {
    [SENDS_INIT] = APIC_DM_INIT,
    [SENDS_SIPI] = APIC_DM_STARTUP | 8,
    [SENDS_NMI] = APIC_DM_NMI,
    [SENDS_VECTOR] = APIC_DM_FIXED | 0x40,
};

/* An INIT or SIPI waits for its tasklet; who sends is paused until then. */
void slice_sends(unsigned int from, unsigned int to, enum sends what)
{
    struct vcpu *v = dom.vcpu[from];

    if ( what == SENDS_NMI || what == SENDS_VECTOR )
    {
        deliver(dom.vcpu[to], icrs[what]);
        return;
    }
    v->vlapic.init_sipi.icr = icrs[what];
    v->arch.hvm.cache_tsc_offset = to;
}

bool slice_has_tasklet(unsigned int vcpu)
{
    return dom.vcpu[vcpu]->vlapic.init_sipi.icr;
}

void slice_tasklet(unsigned int vcpu)
{
    struct vcpu *v = dom.vcpu[vcpu];

    deliver(dom.vcpu[v->arch.hvm.cache_tsc_offset], v->vlapic.init_sipi.icr);
    v->vlapic.init_sipi.icr = 0;
    dsm_vcpu_down(&dom);
}

bool slice_next(struct xen_dsm_ring_entry *e)
{
    struct xen_dsm_ring *ring = DSM->ring;

    if ( ring->cons == ring->prod )
        return false;
    *e = DSM->entries[ring->cons++ & (DSM->ring_nr - 1)];

    return true;
}

bool slice_is_full(void)
{
    return DSM->ring->full;
}

void slice_flush(bool all)
{
    DSM->ring->full = 0;
    must("FLUSH", (struct xen_dsm_op){
        .cmd = XEN_DSM_FLUSH, .u.flush.flags = all ? XEN_DSM_FLUSH_ALL : 0 });
}

void slice_gets(const struct xen_dsm_ring_entry *e, bool at_once)
{
    struct xen_dsm_op op = {
        .cmd = XEN_DSM_SEND,
        .u.event = { .vcpu = e->vcpu, .flags = e->flags, .sipi = e->want } };

    memcpy(op.u.event.vectors, e->vectors, sizeof(e->vectors));
    ends_at_once = at_once;
    must("SEND", op);
    ends_at_once = false;
}
