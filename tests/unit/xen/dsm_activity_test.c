// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is a vCPU up in this slice: what is told of it, when, and behind what.
 *
 * The slice is one of three: vCPUs 0 and 3 run in slice 0, vCPU 1 in slice 1,
 * vCPU 2 in slice 2.
 *
 * usage: dsm_activity_test --list | CASE
 */
#include "cases.h"
#include "fake_hcall.h"
#include <asm/apicdef.h>
#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/hvm/vlapic.h>
#include "world.h"

#define DSM (dom.arch.dsm)

#define expect(what, got, want)                                         \
    do {                                                                \
        long got_ = (got), want_ = (want);                              \
        if ( got_ != want_ )                                            \
            die("%s: %ld, expected %ld", what, got_, want_);            \
    } while ( 0 )

static int memop(struct xen_dsm_op *op)
{
    op->version = XEN_DSM_INTERFACE_VERSION;
    op->domid = dom.domain_id;

    return dsm_memop((XEN_GUEST_HANDLE_PARAM(xen_dsm_op_t)){ op });
}

static struct xen_dsm_ring_entry next_entry(void)
{
    struct xen_dsm_ring *ring = DSM->ring;

    if ( ring->cons == ring->prod )
        return (struct xen_dsm_ring_entry){};

    return DSM->entries[ring->cons++ & (DSM->ring_nr - 1)];
}

static void expect_activity(bool up, uint64_t sends)
{
    struct xen_dsm_ring_entry e = next_entry();

    expect("type", e.type, XEN_DSM_ACTIVITY);
    expect("one is up", e.want, up);
    expect("SENDs", e.gfn, sends);
    expect("zero", e.flags | e.vcpu | e.rip | e.vectors[0] | e.vectors[1] |
                   e.vectors[2] | e.vectors[3], 0);
}

static void expect_nothing(void)
{
    expect("nothing to be told", next_entry().type, 0);
}

/* ---- vCPUs ---- */

static bool down(unsigned int vcpu)
{
    set_bit(_VPF_down, &dom.vcpu[vcpu]->pause_flags);

    return dsm_vcpu_down(&dom);
}

static void start(struct vcpu *v)
{
    domain_lock(&dom);
    clear_bit(_VPF_down, &v->pause_flags);
    v->is_initialised = true;
    domain_unlock(&dom);
}

static bool ends_at_once;       /* who is started */

void vlapic_init_sipi_one(struct vcpu *target, uint32_t icr)
{
    if ( (icr & APIC_DM_MASK) == APIC_DM_STARTUP )
        start(target);
    else if ( target->is_initialised )
    {
        down(target->vcpu_id);
        target->is_initialised = false;
    }
    if ( (icr & APIC_DM_MASK) == APIC_DM_STARTUP && ends_at_once )
        down(target->vcpu_id);
}

void vlapic_accept_irq(struct vcpu *v, uint32_t icr)
{
    if ( (icr & APIC_DM_MASK) == APIC_DM_NMI && v->is_initialised )
        start(v);
}

#define START (XEN_DSM_EVENT_INIT | XEN_DSM_EVENT_SIPI)

static int send(unsigned int vcpu, unsigned int flags)
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_SEND,
        .u.event = { .vcpu = vcpu, .flags = flags, .vectors = { 1 << 16 } } });
}

static int flush(uint32_t flags)
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_FLUSH, .u.flush.flags = flags });
}

static void place(void)
{
    unsigned int vcpu;

    dom.controller_pause_count = dom.pauses = 1;
    for ( vcpu = 1; vcpu <= 2; vcpu++ )
        expect("PLACE", memop(&(struct xen_dsm_op){
            .cmd = XEN_DSM_PLACE,
            .u.place = { .vcpu = vcpu, .slice = vcpu } }), 0);
}

/* Slice k; in slice 0 vCPU 0 has begun. */
static void enable(unsigned int k)
{
    xen_dsm_range_t range = { 0, 48 };
    unsigned int i;

    make_world();
    expect("ENABLE", memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_ENABLE,
        .u.enable = { .nr_ranges = 1, .slice = k, .nr_slices = 3,
                      .ranges.p = &range } }), 0);
    for ( i = 0; i < NR_VCPUS; i++ )
        set_bit(_VPF_down, &dom.vcpu[i]->pause_flags);
    if ( !k )
        start(dom.vcpu[0]);
    ends_at_once = false;
    notified = 0;
}

static void begin(unsigned int k)
{
    enable(k);
    place();
}

static void fill_ring(void)
{
    unsigned int i;

    for ( i = 0; i < DSM->ring_nr; i++ )
        dsm_forward_icr(dom.vcpu[2], APIC_DM_FIXED | 0x20);
    expect("full", DSM->ring->full, 0);
}

static void drain_events(void)
{
    DSM->ring->full = 0;
    while ( DSM->ring->cons != DSM->ring->prod )
        expect("type", next_entry().type, XEN_DSM_VCPU_EVENT);
}

/* ---- Cases ---- */

static void last_of_slice_0(void)
{
    enable(0);
    expect("one slice: Xen ends it", down(0), false);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL), 0);
    expect_nothing();

    begin(0);
    start(dom.vcpu[3]);
    expect("others live", down(0), true);
    expect_nothing();
    expect("says nothing", notified, 0);
    expect("others live elsewhere", down(3), true);
    expect("notified", notified, 1);
    expect_activity(false, 0);
    expect("once more", down(0), true);
    expect_nothing();
    expect("notified once", notified, 1);
}

static void starts_and_ends(void)
{
    begin(1);
    expect_nothing();
    expect("a vector for nobody", send(1, 0), 0);
    expect("notified", notified, 1);
    expect_activity(false, 1);
    expect("SIPI", send(1, START), 0);
    expect("notified", notified, 2);
    expect_activity(true, 2);
    expect("a vector", send(1, 0), 0);
    expect_nothing();
    expect("says nothing", notified, 2);
    down(1);
    expect_activity(false, 3);
    expect("an NMI", send(1, XEN_DSM_EVENT_NMI), 0);
    expect_activity(true, 4);
    expect("a ghost", send(2, 0), -EXDEV);
    down(1);
    expect_activity(false, 4);
    expect_nothing();
}

/* An INIT takes it down before the SEND is over: with the old number. */
static void starts_anew(void)
{
    begin(1);
    expect("SIPI", send(1, START), 0);
    expect_activity(true, 1);
    expect("SIPI", send(1, START), 0);
    expect_activity(false, 1);
    expect_activity(true, 2);
    expect("INIT", send(1, XEN_DSM_EVENT_INIT), 0);
    expect_activity(false, 2);
    expect_activity(false, 3);
    expect_nothing();

    /* What it tells while the SEND goes on has the old number, too. */
    ends_at_once = true;
    expect("SIPI", send(1, START), 0);
    expect_activity(false, 4);
    expect_nothing();
}

static void on_its_way(void)
{
    begin(0);
    start(dom.vcpu[3]);
    dom.vcpu[3]->vlapic.init_sipi.icr = APIC_DM_STARTUP | 8;
    down(3);
    down(0);
    expect_nothing();
    dsm_forward_icr(dom.vcpu[1], APIC_DM_STARTUP | 8);
    dom.vcpu[3]->vlapic.init_sipi.icr = 0;
    dsm_vcpu_down(&dom);
    expect("first", next_entry().type, XEN_DSM_VCPU_EVENT);
    expect_activity(false, 0);
}

/* A ghost is never up, whatever a domain builder has made of it. */
static void ghosts(void)
{
    begin(2);
    clear_bit(_VPF_down, &dom.vcpu[0]->pause_flags);
    expect("SIPI", send(2, START), 0);
    expect_activity(true, 1);
    down(2);
    expect_activity(false, 1);
}

static void full_ring(void)
{
    begin(0);
    fill_ring();
    down(0);
    expect("full", DSM->ring->full, 1);
    drain_events();
    expect("FLUSH", flush(0), 0);
    expect("notified", notified, DSM->ring_nr + 2);
    expect_activity(false, 0);
    expect("FLUSH", flush(0), 0);
    expect_nothing();

    /* There is room, but not for what was sent before. */
    begin(0);
    fill_ring();
    dsm_forward_icr(dom.vcpu[1], APIC_DM_STARTUP | 8);
    drain_events();
    down(0);
    expect_nothing();
    fill_ring();
    expect("FLUSH", flush(0), 0);
    expect("full", DSM->ring->full, 1);
    drain_events();
    expect("FLUSH", flush(0), 0);
    expect("first", next_entry().vcpu, 1);
    expect_activity(false, 0);
    expect_nothing();

    /* It was not told in time. */
    begin(2);
    send(2, START);
    expect_activity(true, 1);
    while ( !DSM->ring->full )
        dsm_forward_icr(dom.vcpu[1], APIC_DM_FIXED | 0x20);
    down(2);
    send(2, START);
    drain_events();
    expect("FLUSH", flush(0), 0);
    expect("first", next_entry().type, XEN_DSM_VCPU_EVENT);
    expect_activity(true, 2);
    expect_nothing();
}

static void another_daemon(void)
{
    unsigned int k;

    for ( k = 0; k < 3; k++ )
    {
        begin(k);
        expect("FLUSH", flush(0), 0);
        expect_nothing();
        expect("FLUSH", flush(XEN_DSM_FLUSH_ALL), 0);
        expect("notified", notified, 1);
        expect_activity(!k, 0);
    }
    send(2, START);
    send(2, 0);
    expect_activity(true, 1);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL), 0);
    expect_activity(true, 2);
    down(2);
    expect_activity(false, 2);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL), 0);
    expect_activity(false, 2);
    expect_nothing();
}

/* What it was sent before vCPUs were in several slices is counted, too. */
static void before_place(void)
{
    enable(0);
    expect("SEND", send(3, START), 0);
    expect("SEND", send(3, XEN_DSM_EVENT_INIT), 0);
    clear_bit(_VPF_down, &dom.vcpu[0]->pause_flags);
    expect_nothing();
    place();
    down(0);
    expect_activity(false, 2);

    /* Nobody has begun: it is one that is up, as the daemon has it. */
    enable(0);
    set_bit(_VPF_down, &dom.vcpu[0]->pause_flags);
    expect("SEND", send(3, 0), 0);
    expect_nothing();
    place();
    start(dom.vcpu[0]);
    down(0);
    expect_activity(false, 1);
}

static void the_end(void)
{
    begin(0);
    dsm_relinquish(&dom);
    expect("others live elsewhere", down(0), true);
    expect("SEND", send(3, 0), 0);
    expect("tells nobody", notified, 0);
}

static const struct test_case cases[] = {
    { "the last vCPU of slice 0", last_of_slice_0 },
    { "a vCPU starts and ends", starts_and_ends },
    { "a vCPU starts anew", starts_anew },
    { "a SIPI on its way", on_its_way },
    { "ghosts are down", ghosts },
    { "activity and a full ring", full_ring },
    { "activity for another daemon", another_daemon },
    { "activity before PLACE", before_place },
    { "activity at the end", the_end },
};

int main(int argc, char **argv)
{
    return main_of(cases, ARRAY_SIZE(cases), argc, argv);
}
