// SPDX-License-Identifier: GPL-2.0-only
/*
 * Event channels of a guest in several slices: which ports a slice allocates,
 * events that leave, those that come, and the shared_info of each slice.
 *
 * The range is GFN 0 to 47; 32 to 47 are homed on another slice.
 *
 * usage: dsm_port_test --list | CASE
 */
#include "slice.h"

#define FAR 32UL

/* Slice k of nr. */
static void begin(unsigned int k, unsigned int nr)
{
    enable_slice(k, nr);
    if ( nr > 1 )
        expect("AWAY", memop(&(struct xen_dsm_op){
            .cmd = XEN_DSM_AWAY, .u.frames = { .first = FAR, .nr = 16 } }), 0);
}

static int send_ports(const struct xen_dsm_ports *ports)
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_SEND_PORTS, .u.ports = *ports });
}

static int shared_info(uint64_t gfn)
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_SHARED_INFO, .u.shared_info.gfn = gfn });
}

static int drop_range(uint64_t first, uint64_t nr)
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_DROP_RANGE, .u.frames = { .first = first, .nr = nr } });
}

/* ---- Cases ---- */

static void allocated(void)
{
    static const struct {
        unsigned int slice, nr, had, first, last;
    } parts[] = {
        { 0, 1, 4095, 0, 4095 }, { 0, 2, 4095, 0, 2047 },
        { 1, 2, 4095, 2048, 4095 }, { 2, 3, 4095, 2048, 3071 },
        { 15, 16, 4095, 3840, 4095 },
        /* What the domain may have is less. */
        { 0, 2, 1023, 0, 1023 }, { 1, 2, 1023, 2048, 1023 },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(parts); i++ )
    {
        unsigned int last = parts[i].had;

        begin(parts[i].slice, parts[i].nr);
        expect("first", dsm_first_port(&dom, &last), parts[i].first);
        expect("last", last, parts[i].last);
    }
}

static void sent_away(void)
{
    struct xen_dsm_ring_entry e;

    begin(0, 2);
    notified = 0;
    dsm_forward_port(&dom, 2048 + 256 + 65);
    expect("notified", notified, 1);
    e = next_entry();
    expect("type", e.type, XEN_DSM_PORT_EVENT);
    expect("slice", e.want, 1);
    expect("first", e.gfn, 2048 + 256);
    expect("port", e.vectors[1], 2);
    expect("no other", e.vectors[0] | e.vectors[2] | e.vectors[3], 0);
    expect("flags, vcpu", e.flags | e.vcpu, 0);

    /* It is in the ring, and not kept. */
    dsm_forward_port(&dom, 2048 + 256 + 66);
    expect("the second one only", next_entry().vectors[1], 4);
    dsm_forward_port(&dom, 4095);
    e = next_entry();
    expect("first", e.gfn, 4096 - 256);
    expect("port", e.vectors[3], 1UL << 63);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL), 0);
    expect("not again", next_entry().type, 0);

    /* From the second of three to the third. */
    begin(1, 3);
    dsm_forward_port(&dom, 2048 + 5);
    e = next_entry();
    expect("slice", e.want, 2);
    expect("first", e.gfn, 2048);
    expect("port", e.vectors[0], 1 << 5);

    begin(1, 16);
    dsm_forward_port(&dom, 0);
    e = next_entry();
    expect("slice", e.want, 0);
    expect("first", e.gfn, 0);
    expect("port", e.vectors[0], 1);
    dsm_forward_port(&dom, 3 * 256 + 7);
    e = next_entry();
    expect("slice", e.want, 3);
    expect("first", e.gfn, 3 * 256);
    expect("port", e.vectors[0], 1 << 7);
}

/* Events that the ring has no room for are one for each port. */
static void crowded(void)
{
    struct xen_dsm_ring_entry e;
    unsigned int i;
    uint64_t full;

    begin(0, 2);
    for ( i = 0; i < DSM->ring_nr; i++ )
        dsm_forward_port(&dom, 2048);
    full = DSM->stats.ring_full;
    dsm_forward_port(&dom, 2048);
    dsm_forward_port(&dom, 2049);
    dsm_forward_port(&dom, 2049);
    dsm_forward_port(&dom, 3000);
    expect("counted", DSM->stats.ring_full, full + 4);
    for ( i = 0; next_entry().type; i++ )
        ;
    expect("entries", i, DSM->ring_nr);
    expect("FLUSH", flush(0), 0);
    e = next_entry();
    expect("first", e.gfn, 2048);
    expect("both", e.vectors[0], 3);
    e = next_entry();
    expect("first", e.gfn, 3000 - 3000 % 256);
    expect("it", e.vectors[3000 % 256 / 64], 1UL << 3000 % 64);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL), 0);
    expect("once", next_entry().type, 0);

    /* The first of all ports, and the last one. */
    begin(1, 2);
    for ( i = 0; i < DSM->ring_nr; i++ )
        dsm_forward_port(&dom, 256);
    dsm_forward_port(&dom, 0);
    dsm_forward_port(&dom, 4095);
    while ( next_entry().type )
        ;
    notified = 0;
    expect("FLUSH", flush(0), 0);
    expect("notified", notified, 1);
    e = next_entry();
    expect("first", e.gfn, 0);
    expect("it", e.vectors[0], 1);
    e = next_entry();
    expect("first", e.gfn, 4096 - 256);
    expect("it", e.vectors[3], 1UL << 63);

    /* One that comes when there is room again takes those before with it. */
    begin(0, 2);
    for ( i = 0; i <= DSM->ring_nr; i++ )
        dsm_forward_port(&dom, 2048);
    while ( next_entry().type )
        ;
    dsm_forward_port(&dom, 2050);
    expect("both", next_entry().vectors[0], 5);
    expect("FLUSH", flush(0), 0);
    expect("nothing is owed", next_entry().type, 0);
}

static void the_end(void)
{
    begin(0, 2);
    dsm_relinquish(&dom);
    notified = 0;
    dsm_forward_port(&dom, 2048);
    expect("not notified", notified, 0);
}

static void sent_here(void)
{
    begin(1, 2);
    expect("SEND_PORTS", send_ports(&(struct xen_dsm_ports){
        .first = 2048, .ports = { 1, 1UL << 63, 0, 1UL << 63 } }), 0);
    if ( strcmp(fake_events, "send 2048 0, send 2175 0, send 2303 0") )
        die("sent: %s", fake_events);

    /* One that is not bound keeps no other from being sent. */
    begin(1, 2);
    fake_rc = -EINVAL;
    expect("SEND_PORTS", send_ports(&(struct xen_dsm_ports){
        .first = 2304, .ports = { 6 } }), 0);
    if ( strcmp(fake_events, "send 2305 0, send 2306 0") )
        die("sent: %s", fake_events);

    begin(1, 2);
    expect("no group", send_ports(&(struct xen_dsm_ports){
        .first = 2049, .ports = { 1 } }), -EINVAL);
    expect("a part of one", send_ports(&(struct xen_dsm_ports){
        .first = 4096 - 64, .ports = { 1 } }), -EINVAL);
    expect("not zero", send_ports(&(struct xen_dsm_ports){
        .first = 2048, .pad = 1, .ports = { 1 } }), -EINVAL);
    expect("slice 0's", send_ports(&(struct xen_dsm_ports){
        .first = 2048 - 256, .ports = { 1 } }), -EXDEV);
    expect("nobody's", send_ports(&(struct xen_dsm_ports){
        .first = 4096, .ports = { 1 } }), -EXDEV);
    expect("nothing is sent", strlen(fake_events), 0);

    /* The second of three slices has 1024 to 2047, and nobody the last part. */
    begin(1, 3);
    expect("SEND_PORTS", send_ports(&(struct xen_dsm_ports){
        .first = 1024, .ports = { 1 } }), 0);
    expect("SEND_PORTS", send_ports(&(struct xen_dsm_ports){
        .first = 2048 - 256, .ports = { 0, 0, 0, 1UL << 63 } }), 0);
    expect("the first one's", send_ports(&(struct xen_dsm_ports){
        .first = 1024 - 256, .ports = { 1 } }), -EXDEV);
    expect("the third one's", send_ports(&(struct xen_dsm_ports){
        .first = 2048, .ports = { 1 } }), -EXDEV);
    if ( strcmp(fake_events, "send 1024 0, send 2047 0") )
        die("sent: %s", fake_events);
    begin(2, 3);
    expect("nobody's", send_ports(&(struct xen_dsm_ports){
        .first = 3072, .ports = { 1 } }), -EXDEV);
}

static void infos(void)
{
    const unsigned long *mask = (void *)frames[SHARED_MFN].bytes;
    unsigned int i;

    begin(0, 2);
    expect("slice 0", shared_info(FAR), -EINVAL);

    begin(1, 2);
    expect("homed here", shared_info(5), -EINVAL);
    expect("in no range", shared_info(50), -EINVAL);
    expect("no memory", memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_POOL_ADD, .u.pool.nr = 1 }), -ENOMEM);
    spare_frames = 1;
    expect("POOL_ADD", memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_POOL_ADD, .u.pool.nr = 1 }), 0);
    expect("INSTALL_M", page(XEN_DSM_INSTALL_M, FAR), 0);
    expect("it is here", shared_info(FAR), -EBUSY);
    expect("not mapped", frames[SHARED_MFN].m2p == INVALID_M2P_ENTRY, true);
    for ( i = 0; i < 64; i++ )
        expect("mask", mask[i], 0);

    dom.p2m.fails = true;
    expect("no page table", shared_info(FAR + 1), -ENOMEM);
    dom.p2m.fails = false;

    /* vCPU 1 waits for it already; it is a ghost besides. */
    current = dom.vcpu[1];
    dsm_populate(&dom, _gfn(FAR + 1));
    current = &(struct vcpu){ .domain = &dom0 };
    expect("waits", dom.vcpu[1]->paused, 2);
    expect("SHARED_INFO", shared_info(FAR + 1), 0);
    expect("woken", dom.vcpu[1]->paused, 1);
    expect("mapped", dom.p2m.e[FAR + 1].mfn, SHARED_MFN);
    expect("its number", frames[SHARED_MFN].m2p, FAR + 1);
    for ( i = 0; i < 64; i++ )
        expect("masked", mask[i], ~0UL);
    expect("again", shared_info(FAR + 1), -EEXIST);
    expect("elsewhere, too", shared_info(FAR + 2), -EEXIST);
    expect("it stays", page(XEN_DSM_INVAL, FAR + 1), -EPERM);
    expect("it is there", page(XEN_DSM_INSTALL_M, FAR + 1), -EEXIST);
    expect("no memory of others", DSM->pooled, 0);

    expect("DROP_RANGE of a page", drop_range(FAR, 1), -EBUSY);
    dom.p2m.fails = true;
    expect("no page table", drop_range(FAR + 1, 3), -ENOMEM);
    dom.p2m.fails = false;
    expect("its number", frames[SHARED_MFN].m2p, FAR + 1);
    expect("DROP_RANGE", drop_range(FAR + 1, 3), 0);
    expect("a hole", dom.p2m.e[FAR + 1].t, p2m_invalid);
    expect("no number", frames[SHARED_MFN].m2p == INVALID_M2P_ENTRY, true);
    expect("homed here", shared_info(FAR + 1), -EINVAL);
    expect("no page is away", page(XEN_DSM_INSTALL_M, FAR + 1), -ENOENT);

    /* The guest's own, in slice 0. */
    begin(0, 2);
    dom.p2m.e[5].mfn = SHARED_MFN;
    expect("DROP_RANGE", drop_range(5, 1), -EBUSY);
    expect("it stays", dom.p2m.e[5].mfn, SHARED_MFN);

    /* Slice 0 has said that there is nothing, before it was asked. */
    begin(1, 2);
    expect("DROP", page(XEN_DSM_DROP, FAR + 1), 0);
    expect("SHARED_INFO", shared_info(FAR + 1), 0);

    begin(1, 2);
    dsm_relinquish(&dom);
    expect("the end", shared_info(FAR + 1), -ESRCH);
}

static const struct test_case cases[] = {
    { "ports that a slice allocates", allocated },
    { "events that leave", sent_away },
    { "events and a full ring", crowded },
    { "events at the end", the_end },
    { "events that come", sent_here },
    { "shared_info of a slice", infos },
};

int main(int argc, char **argv)
{
    return main_of(cases, ARRAY_SIZE(cases), argc, argv);
}
