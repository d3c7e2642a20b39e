/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of vCPUs, events and time of a slice begin with: the commands
 * of the daemon and its look at the ring.
 */
#ifndef SLICE_H
#define SLICE_H

#include "cases.h"
#include "fake_hcall.h"
#include <asm/apicdef.h>
#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/dsm_route.h>
#include <asm/hvm/vlapic.h>
#include "world.h"

#define DSM (dom.arch.dsm)

#define expect(what, got, want)                                         \
    do {                                                                \
        long got_ = (got), want_ = (want);                              \
        if ( got_ != want_ )                                            \
            die("%s: %ld, expected %ld", what, got_, want_);            \
    } while ( 0 )

void vlapic_init_sipi_one(struct vcpu *target, uint32_t icr)
{
}

void vlapic_accept_irq(struct vcpu *v, uint32_t icr_low)
{
}

/* As the function of that name does it in its tasklet, to who runs here. */
static void gets_init(struct vcpu *v)
{
    expect("it is here", dsm_forward_icr(v, APIC_DM_INIT | APIC_INT_ASSERT),
           false);
    v->is_initialised = false;
    dsm_cancel_instruction(v);
}

static int memop(struct xen_dsm_op *op)
{
    op->version = XEN_DSM_INTERFACE_VERSION;
    op->domid = dom.domain_id;

    return dsm_memop((XEN_GUEST_HANDLE_PARAM(xen_dsm_op_t)){ op });
}

/* Slice k of nr, with GFN 0 to 47. */
static void enable_slice(unsigned int k, unsigned int nr)
{
    xen_dsm_range_t range = { 0, 48 };

    make_world();
    expect("ENABLE", memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_ENABLE,
        .u.enable = { .nr_ranges = 1, .slice = k, .nr_slices = nr,
                      .ranges.p = &range } }), 0);
}

static int flush(uint32_t flags)
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_FLUSH, .u.flush.flags = flags });
}

/* Type 0: there is none. */
static struct xen_dsm_ring_entry next_entry(void)
{
    struct xen_dsm_ring *ring = DSM->ring;

    if ( ring->cons == ring->prod )
        return (struct xen_dsm_ring_entry){};

    return DSM->entries[ring->cons++ & (DSM->ring_nr - 1)];
}

/* One page operation; what it says. */
static int page(unsigned int what, uint64_t gfn)
{
    static uint8_t bytes[PAGE_SIZE];
    xen_dsm_page_op_t op = { .gfn = gfn, .op = what, .buf.p = bytes };

    expect("PAGE", memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_PAGE, .u.page = { .nr = 1, .ops.p = &op } }), 0);

    return op.rc;
}

#endif
