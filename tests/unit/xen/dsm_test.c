// SPDX-License-Identifier: GPL-2.0-only
/*
 * DSM in the hypervisor: states, page operations, who waits and who is woken.
 *
 *   GFN 0 ── 31 memory ── 32 ── 63 holes;   the range is 0 to 47
 *
 * usage: dsm_test --list | CASE
 */
#include "cases.h"
#include "fake_dsm.h"
#include <asm/apicdef.h>
#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/hvm/vlapic.h>
#include "world.h"

#define I    XEN_DSM_STATE_I
#define S    XEN_DSM_STATE_S
#define M    XEN_DSM_STATE_M
#define HOLE XEN_DSM_STATE_HOLE
#define IN_RANGE 48

static uint8_t buffer[PAGE_SIZE];
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

static int enable_slice(unsigned int slice, unsigned int nr_slices,
                        unsigned int *refused)
{
    xen_dsm_range_t range = { 0, IN_RANGE };
    struct xen_dsm_op op = {
        .cmd = XEN_DSM_ENABLE,
        .u.enable = { .nr_ranges = 1, .slice = slice, .nr_slices = nr_slices,
                      .ranges.p = &range },
    };
    int rc = memop(&op);

    *refused = op.u.enable.refused;

    return rc;
}

static int enable(unsigned int *refused)
{
    return enable_slice(0, 1, refused);
}

static void begin(void)
{
    unsigned int refused;

    make_world();
    expect("ENABLE", enable(&refused), 0);
}

/* The first of two slices; the holes from 32 on are homed on the other. */
#define FAR 32UL
static void begin_slice(void)
{
    struct xen_dsm_op o = {
        .cmd = XEN_DSM_AWAY,
        .u.frames = { .first = FAR, .nr = IN_RANGE - FAR },
    };
    unsigned int refused;

    make_world();
    expect("ENABLE", enable_slice(0, 2, &refused), 0);
    expect("AWAY", memop(&o), 0);
    expect("done", o.u.frames.done, IN_RANGE - FAR);
}

static int frames_op(unsigned int cmd, uint64_t first, uint64_t nr,
                     uint64_t *done)
{
    struct xen_dsm_op o = {
        .cmd = cmd, .u.frames = { .first = first, .nr = nr } };
    int rc = memop(&o);

    *done = o.u.frames.done;

    return rc;
}

static int pool_op(unsigned int cmd, uint64_t nr, uint64_t *done)
{
    struct xen_dsm_op o = { .cmd = cmd, .u.pool.nr = nr };
    int rc = memop(&o);

    *done = o.u.pool.done;

    return rc;
}

#define expect_pool(pooled_, reserved_, added_) \
    do { \
        expect("pooled", DSM->pooled, pooled_); \
        expect("reserved", DSM->reserved, reserved_); \
        expect("added", DSM->added, added_); \
    } while ( 0 )

static int op_buf(unsigned int what, uint64_t gfn, void *buf,
                  unsigned int *state)
{
    xen_dsm_page_op_t page_op = { .gfn = gfn, .op = what, .buf.p = buf };
    struct xen_dsm_op op = {
        .cmd = XEN_DSM_PAGE, .u.page = { .nr = 1, .ops.p = &page_op } };
    struct vcpu *was = current;

    /* The daemon runs in the control domain. */
    current = &(struct vcpu){ .domain = &dom0 };
    expect("PAGE", memop(&op), 0);
    current = was;
    expect("done", op.u.page.done, 1);
    if ( state )
        *state = page_op.state;

    return page_op.rc;
}

static int op(unsigned int what, uint64_t gfn)
{
    return op_buf(what, gfn, buffer, NULL);
}

static unsigned int state_of(uint64_t gfn)
{
    unsigned int state;

    expect("QUERY", op_buf(XEN_DSM_QUERY, gfn, NULL, &state), 0);

    return state;
}

/* What somebody waits for there. */
static unsigned int wanted(uint64_t gfn)
{
    xen_dsm_page_op_t page_op = { .gfn = gfn, .op = XEN_DSM_QUERY };
    struct xen_dsm_op op = {
        .cmd = XEN_DSM_PAGE, .u.page = { .nr = 1, .ops.p = &page_op } };
    struct vcpu *was = current;

    current = &(struct vcpu){ .domain = &dom0 };
    expect("PAGE", memop(&op), 0);
    current = was;
    expect("QUERY", page_op.rc, 0);

    return page_op.wanted;
}

static bool holds(const uint8_t *page, uint8_t value)
{
    return page[0] == value && !memcmp(page, page + 1, PAGE_SIZE - 1);
}

/* A look-up, as p2m_get_gfn_type_access() does it. */
static p2m_type_t look_up(uint64_t gfn, p2m_query_t q)
{
    unsigned int order = 9;
    p2m_access_t a;
    p2m_type_t t;
    mfn_t mfn = dom.p2m.get_entry(&dom.p2m, _gfn(gfn), &t, &a, q, NULL, NULL);

    mfn = dsm_p2m_fixup(&dom.p2m, _gfn(gfn), mfn, &t, q, &order);
    if ( t == p2m_ram_paged && (!mfn_eq(mfn, INVALID_MFN) || order) )
        die("paged, with MFN %#lx and order %u", mfn_x(mfn), order);

    return t;
}

/* Guest's vCPU n uses a page, to read or to write; whether it had to wait. */
static bool use(unsigned int n, uint64_t gfn, bool write)
{
    current = dom.vcpu[n];
    if ( look_up(gfn, P2M_ALLOC | (write ? P2M_UNSHARE : 0)) != p2m_ram_paged )
        return false;
    dsm_populate(&dom, _gfn(gfn));

    return dom.vcpu[n]->paused;
}

/* The same by a nested page fault, from its look-up on so many ns long. */
static bool fault(unsigned int n, uint64_t gfn, bool write, s_time_t ns)
{
    current = dom.vcpu[n];
    if ( look_up(gfn, P2M_ALLOC | (write ? P2M_UNSHARE : 0)) != p2m_ram_paged )
        return false;
    dsm_want_cached(_gfn(gfn));
    fake_now += ns;
    dsm_populate(&dom, _gfn(gfn));

    return dom.vcpu[n]->paused;
}

/* It enters the guest, so many ns later. */
static void runs(unsigned int n, s_time_t ns)
{
    fake_now += ns;
    current = dom.vcpu[n];
    dsm_woken(current);
}

#define expect_times(traps_, trap_ns_, wakes_, wake_ns_) \
    do { \
        expect("traps", DSM->stats.traps, traps_); \
        expect("trap_ns", DSM->stats.trap_ns, trap_ns_); \
        expect("wakes", DSM->stats.wakes, wakes_); \
        expect("wake_ns", DSM->stats.wake_ns, wake_ns_); \
    } while ( 0 )

static struct xen_dsm_ring_entry next_entry(void)
{
    struct xen_dsm_ring_entry e = {};

    if ( DSM->ring->prod != DSM->ring->cons )
        e = DSM->entries[DSM->ring->cons++ & (DSM->ring->nr - 1)];

    return e;
}

/* ---- Cases ---- */

static void fixup(void)
{
    begin();
    expect("M", look_up(1, P2M_ALLOC | P2M_UNSHARE), p2m_ram_rw);
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, 1), 0);
    expect("S, read", look_up(1, P2M_ALLOC), p2m_dsm_shared);
    expect("S, query", look_up(1, 0), p2m_dsm_shared);
    expect("S, write", look_up(1, P2M_ALLOC | P2M_UNSHARE), p2m_ram_paged);
    expect("INVAL", op(XEN_DSM_INVAL, 1), 0);
    expect("I, read", look_up(1, P2M_ALLOC), p2m_ram_paged);
    expect("I, query", look_up(1, 0), p2m_ram_paged);
    expect("hole", look_up(40, P2M_ALLOC), p2m_mmio_dm);
    expect("outside", look_up(50, P2M_ALLOC), p2m_mmio_dm);
    dsm_relinquish(&dom);
    expect("I of a dead domain", look_up(1, P2M_ALLOC), p2m_invalid);
}

static void bytes_and_frames(void)
{
    unsigned long i;

    begin();
    for ( i = 0; i < MEMORY; i++ )
    {
        expect("INVAL", op(XEN_DSM_INVAL, i), 0);
        if ( !holds(buffer, i) )
            die("INVAL of %lu gave other bytes", i);
    }
    expect("pooled", DSM->pooled, MEMORY);
    for ( i = 0; i < MEMORY; i++ )
    {
        memset(buffer, 100 + i, sizeof(buffer));
        expect("INSTALL", op(i & 1 ? XEN_DSM_INSTALL_S : XEN_DSM_INSTALL_M, i),
               0);
        expect("M2P", frames[dom.p2m.e[i].mfn].m2p, i);
        expect("references", frames[dom.p2m.e[i].mfn].count_info,
               PGC_allocated | 1);
    }
    expect("pooled", DSM->pooled, 0);
    for ( i = 0; i < MEMORY; i++ )
        if ( !holds(frames[dom.p2m.e[i].mfn].bytes, 100 + i) )
            die("frame %lu holds other bytes", i);
}

static void in_use(void)
{
    begin();
    frames[65].count_info++;
    expect("INVAL", op(XEN_DSM_INVAL, 1), -EBUSY);
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, 1), -EBUSY);
    expect("state", state_of(1), M);
    frames[65].count_info--;
    frames[65].u.inuse.type_info = PGT_writable_page | 1;
    expect("INVAL", op(XEN_DSM_INVAL, 1), -EBUSY);
    frames[65].u.inuse.type_info = 0;
    frames[65].special = true;
    expect("INVAL", op(XEN_DSM_INVAL, 1), -EPERM);
    frames[65].special = false;
    frames[65].owner = &dom0;
    expect("INVAL", op(XEN_DSM_INVAL, 1), -EPERM);
    frames[65].owner = &dom;
    dom.p2m.e[2].t = p2m_map_foreign;
    expect("INVAL", op(XEN_DSM_INVAL, 2), -EPERM);
    expect("busy", DSM->stats.busy, 3);
    expect("INVAL", op(XEN_DSM_INVAL, 1), 0);
}

static void faults(void)
{
    begin();
    expect("INVAL", op_buf(XEN_DSM_INVAL, 1, FAULTY, NULL), -EFAULT);
    expect("state", state_of(1), M);
    expect("M2P", frames[65].m2p, 1);
    expect("references", frames[65].count_info, PGC_allocated | 1);
    expect("DOWNGRADE", op_buf(XEN_DSM_DOWNGRADE, 1, FAULTY, NULL), -EFAULT);
    expect("state", state_of(1), M);
    expect("INVAL", op(XEN_DSM_INVAL, 1), 0);
    expect("INSTALL", op_buf(XEN_DSM_INSTALL_M, 1, FAULTY, NULL), -EFAULT);
    expect("state", state_of(1), I);
    expect("pooled", DSM->pooled, 1);
    dom.p2m.fails = true;
    expect("INSTALL", op(XEN_DSM_INSTALL_M, 1), -ENOMEM);
    expect("INVAL", op(XEN_DSM_INVAL, 2), -ENOMEM);
    dom.p2m.fails = false;
    expect("state", state_of(1), I);
    expect("state", state_of(2), M);
    expect("pooled", DSM->pooled, 1);
    expect("references", frames[66].count_info, PGC_allocated | 1);
    expect("INSTALL", op(XEN_DSM_INSTALL_M, 1), 0);
}

static void a_miss(void)
{
    struct xen_dsm_ring_entry e;

    begin();
    fake_now = 7000;
    op(XEN_DSM_INVAL, 1);
    expect("waits", use(2, 1, false), true);
    e = next_entry();
    expect("type", e.type, XEN_DSM_PAGE_MISS);
    expect("want", e.want, XEN_DSM_WANT_S);
    expect("flags", e.flags, 0);
    expect("when", e.when_ns, fake_now);
    expect("vCPU", e.vcpu, 2);
    expect("gfn", e.gfn, 1);
    expect("rip", e.rip, 0x1234);
    expect("notified", notified, 1);
    expect("a second vCPU waits", use(3, 1, true), true);
    expect("want", next_entry().want, XEN_DSM_WANT_M);
    expect("another page", use(0, 2, true), false);

    fake_now += 5000;
    expect("INSTALL_S", op(XEN_DSM_INSTALL_S, 1), 0);
    expect("paused", dom.vcpu[2]->paused, 0);
    expect("paused", dom.vcpu[3]->paused, 0);
    expect("reads", use(2, 1, false), false);
    expect("the writer asks again", use(3, 1, true), true);
    e = next_entry();
    expect("want", e.want, XEN_DSM_WANT_M);
    expect("UPGRADE", op(XEN_DSM_UPGRADE, 1), 0);
    expect("writes", use(3, 1, true), false);
    expect("waits", DSM->stats.waits, 3);
    expect("by Xen", DSM->stats.waits_by_xen, 0);
    expect("ns", DSM->stats.wait_max_ns, 5000);
    expect("all of them", DSM->stats.wait_ns, 5000 + 5000 + 1);
    expect("bucket of 4096 to 5120 ns", DSM->stats.wait_hist[48], 2);
}

static void before_and_behind(void)
{
    begin();
    fake_now = 100000;
    op(XEN_DSM_INVAL, 1);
    expect("waits", fault(1, 1, true, 700), true);
    expect("waits", fault(2, 1, false, 300), true);
    expect("waits", use(3, 1, true), true);
    expect("waits", DSM->stats.waits, 3);
    expect_times(2, 1000, 0, 0);

    fake_now += 5000;
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, 1), 0);
    expect("the wait is what is between", DSM->stats.wait_ns,
           5300 + 5000 + 5000);
    expect_times(2, 1000, 0, 0);
    runs(1, 100);
    expect_times(2, 1000, 1, 100);
    runs(2, 50);
    runs(3, 20);
    expect_times(2, 1000, 3, 100 + 150 + 170);
    runs(1, 1000);
    runs(0, 1000);
    expect_times(2, 1000, 3, 420);

    /* The next one is another. */
    op(XEN_DSM_INVAL, 1);
    expect("waits", fault(1, 1, true, 30), true);
    expect("a look-up of its own", DSM->stats.wait_ns, 15300);
    runs(1, 40);
    op(XEN_DSM_INSTALL_M, 1);
    runs(1, 8);
    expect_times(3, 1030, 4, 428);
}

/* Whose fault it is, and of which page. */
static void before_another(void)
{
    begin();
    fake_now = 100000;
    op(XEN_DSM_INVAL, 1);
    op(XEN_DSM_INVAL, 2);
    current = dom.vcpu[1];
    look_up(2, P2M_ALLOC);
    dsm_want_cached(_gfn(1));
    fake_now += 500;
    dsm_populate(&dom, _gfn(2));
    expect("waits", dom.vcpu[1]->paused, 1);
    expect_times(0, 0, 0, 0);

    /* What the fault has found is not what a later look-up finds. */
    current = dom.vcpu[2];
    look_up(1, P2M_ALLOC);
    dsm_want_cached(_gfn(1));
    look_up(1, P2M_ALLOC);
    fake_now += 500;
    dsm_populate(&dom, _gfn(1));
    expect_times(0, 0, 0, 0);
    op(XEN_DSM_WAKE, 1);

    /* One fault, one miss. */
    expect("waits", fault(3, 1, false, 10), true);
    op(XEN_DSM_WAKE, 1);
    fake_now += 500;
    dsm_populate(&dom, _gfn(1));
    expect_times(1, 10, 0, 0);

    /* Nor is a table that Xen writes to, or what the guest frees. */
    op(XEN_DSM_DOWNGRADE, 3);
    op(XEN_DSM_DOWNGRADE, 4);
    op(XEN_DSM_WAKE, 2);
    current = dom.vcpu[1];
    expect("S", dsm_ad_ok(&dom, _mfn(64 + 3)), false);
    expect("waits", dom.vcpu[1]->paused, 1);
    op(XEN_DSM_WAKE, 3);
    current = dom.vcpu[1];
    expect("not M", dsm_recall(&dom, _gfn(4), 0), -ERESTART);
    expect("waits", dom.vcpu[1]->paused, 1);
    expect_times(1, 10, 0, 0);

    /* Nor what can't be done where the page is. */
    begin_slice();
    expect("UNCACHE", op(XEN_DSM_UNCACHE, FAR), 0);
    current = dom.vcpu[1];
    look_up(FAR, P2M_ALLOC);
    fake_now += 500;
    dsm_populate_uncached(_gfn(FAR));
    expect("waits", dom.vcpu[1]->paused, 1);
    expect_times(0, 0, 0, 0);
}

static void clocks_that_differ(void)
{
    begin();
    fake_now = 100000;
    op(XEN_DSM_INVAL, 1);
    expect("waits", fault(1, 1, true, -500), true);
    expect_times(1, 0, 0, 0);
    op(XEN_DSM_INSTALL_M, 1);
    runs(1, -10);
    expect_times(1, 0, 1, 0);
}

/* What keeps a vCPU when its page has come, or before. */
static void kept(void)
{
    static const struct {
        const char *what;
        bool down, paused, domain_paused, init, placed, dies;
        unsigned int offline, runnable;
        unsigned int wakes, wake_ns;
    } t[] = {
        { "nothing", .wakes = 1, .wake_ns = 7 },
        { "a pause that comes later", .offline = 50000, .wakes = 1,
          .wake_ns = 7 },
        { "another vCPU on its CPU", .runnable = 30, .wakes = 1,
          .wake_ns = 37 },
        { "both", .offline = 50000, .runnable = 30, .wakes = 1,
          .wake_ns = 37 },
        { "an INIT that came before", .down = true },
        { "a pause of its own", .paused = true },
        { "a pause of the domain", .domain_paused = true },
        { "an INIT that comes later", .init = true },
        { "it went to another slice", .placed = true },
        { "the domain dies", .dies = true },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(t); i++ )
    {
        struct vcpu *v;

        printf("# %s\n", t[i].what);
        begin_slice();
        fake_now = 100000;
        v = dom.vcpu[1];
        op(XEN_DSM_INVAL, 1);
        expect("waits", fault(1, 1, true, 5), true);
        v->pause_flags = t[i].down || t[i].placed ? 1UL << _VPF_down : 0;
        if ( t[i].paused )
            vcpu_pause_nosync(v);
        if ( t[i].domain_paused || t[i].placed )
            domain_pause_by_systemcontroller_nosync(&dom);
        if ( t[i].placed )
            expect("PLACE", memop(&(struct xen_dsm_op){
                .cmd = XEN_DSM_PLACE,
                .u.place = { .vcpu = 1, .slice = 1 } }), 0);
        if ( t[i].dies )
            dsm_relinquish(&dom);
        else
            op(XEN_DSM_INSTALL_M, 1);
        if ( t[i].domain_paused || t[i].placed )
            domain_unpause_by_systemcontroller(&dom);
        if ( t[i].paused )
            vcpu_unpause(v);
        v->pause_flags = 0;
        if ( t[i].init )
            dsm_cancel_instruction(v);
        v->offline_ns += t[i].offline;
        v->runnable_ns += t[i].runnable;
        runs(1, 7 + t[i].offline + t[i].runnable);
        expect_times(1, 5, t[i].wakes, t[i].wake_ns);
    }
}

/* The page comes between look-up and populate: nobody may wait for ever. */
static void it_came_meanwhile(void)
{
    unsigned int was;

    begin();
    op(XEN_DSM_INVAL, 1);
    current = dom.vcpu[1];
    expect("I", look_up(1, P2M_ALLOC | P2M_UNSHARE), p2m_ram_paged);
    op(XEN_DSM_INSTALL_M, 1);
    was = notified;
    dsm_populate(&dom, _gfn(1));
    expect("paused", dom.vcpu[1]->paused, 0);
    expect("says nothing", notified, was);

    /* Come, but not for one who writes. */
    op(XEN_DSM_INVAL, 1);
    expect("I", look_up(1, P2M_ALLOC | P2M_UNSHARE), p2m_ram_paged);
    op(XEN_DSM_INSTALL_S, 1);
    dsm_populate(&dom, _gfn(1));
    expect("paused", dom.vcpu[1]->paused, 1);
    expect("want", next_entry().want, XEN_DSM_WANT_M);
    expect("WAKE", op(XEN_DSM_WAKE, 1), 0);
    expect("paused", dom.vcpu[1]->paused, 0);
}

/* One who lost what told what it wanted still goes on. */
static void without_a_hint(void)
{
    begin();
    op(XEN_DSM_DOWNGRADE, 1);
    op(XEN_DSM_INVAL, 2);
    current = dom.vcpu[1];
    look_up(1, P2M_ALLOC | P2M_UNSHARE);
    look_up(2, P2M_ALLOC);
    dsm_populate(&dom, _gfn(1));
    expect("S is in a writer's way", next_entry().want, XEN_DSM_WANT_M);
    op(XEN_DSM_UPGRADE, 1);
    dsm_populate(&dom, _gfn(2));
    expect("I is asked for to read", next_entry().want, XEN_DSM_WANT_S);
}

/* An operation that gives up wakes those who missed the page meanwhile. */
static void give_up(void)
{
    begin();
    expect("INVAL", op_buf(XEN_DSM_INVAL, 1, FAULTY, NULL), -EFAULT);
    expect("reads", use(1, 1, true), false);
    expect("paused", dom.vcpu[1]->paused, 0);
}

/* It asks for one page at a time; the other is missed again. */
static void second_miss(void)
{
    begin();
    op(XEN_DSM_INVAL, 1);
    op(XEN_DSM_INVAL, 2);
    expect("waits", use(1, 1, false), true);
    expect("waits", use(1, 2, false), true);
    expect("paused once", dom.vcpu[1]->paused, 1);
    expect("gfn", next_entry().gfn, 1);
    expect("nothing else", next_entry().type, 0);
    expect("another waits for the other", use(2, 2, false), true);
    expect("gfn", next_entry().gfn, 2);
    op(XEN_DSM_INSTALL_M, 1);
    expect("paused", dom.vcpu[1]->paused, 0);
    expect("the other is not woken", dom.vcpu[2]->paused, 1);
    expect("waits", use(1, 2, false), true);
    expect("gfn", next_entry().gfn, 2);
}

static void full_ring(void)
{
    unsigned int i, asked = 0;

    begin();
    op(XEN_DSM_INVAL, 1);
    for ( i = 0; i < DSM->ring_nr + 3; i++ )
    {
        expect("waits", use(i % NR_VCPUS, 1, false), true);
        if ( i + 1 < DSM->ring_nr + 3 )
            op(XEN_DSM_WAKE, 1);
    }
    expect("full", DSM->ring->full, 1);
    while ( next_entry().type )
        asked++;
    expect("entries", asked, DSM->ring_nr);
    expect("FLUSH", memop(&(struct xen_dsm_op){ .cmd = XEN_DSM_FLUSH }), 0);
    expect("who still waits", next_entry().vcpu, (i - 1) % NR_VCPUS);
    expect("nobody else", next_entry().type, 0);
    expect("FLUSH", memop(&(struct xen_dsm_op){ .cmd = XEN_DSM_FLUSH }), 0);
    expect("nobody twice", next_entry().type, 0);

    /* A consumer that lies gets a full ring and nothing else. */
    DSM->ring->cons = DSM->ring->prod + 5;
    op(XEN_DSM_WAKE, 1);
    expect("waits", use(0, 1, false), true);
    DSM->ring->prod = 77;
    DSM->ring->nr = 0;
    op(XEN_DSM_WAKE, 1);
    expect("waits", use(0, 1, false), true);
}

static void foreign(void)
{
    struct xen_dsm_ring_entry e;
    unsigned int i;

    begin();
    fake_now = MILLISECS(1000);
    op(XEN_DSM_INVAL, 1);
    current = &(struct vcpu){ .domain = &dom0 };
    for ( i = 0; i < 5; i++ )
    {
        look_up(1, P2M_ALLOC);
        dsm_populate(&dom, _gfn(1));
    }
    e = next_entry();
    expect("flags", e.flags, XEN_DSM_MISS_FOREIGN);
    expect("wants to read", e.want, XEN_DSM_WANT_S);
    expect("when", e.when_ns, fake_now);
    expect("once", next_entry().type, 0);
    for ( i = 0; i < 2; i++ )
    {
        look_up(1, P2M_ALLOC | P2M_UNSHARE);
        dsm_populate(&dom, _gfn(1));
    }
    expect("more is wanted", next_entry().want, XEN_DSM_WANT_M);
    expect("once", next_entry().type, 0);
    fake_now += MILLISECS(50) - 1;
    look_up(1, P2M_ALLOC);
    dsm_populate(&dom, _gfn(1));
    expect("is under way", next_entry().type, 0);
    fake_now++;
    look_up(1, P2M_ALLOC);
    dsm_populate(&dom, _gfn(1));
    e = next_entry();
    expect("nobody answered", e.type, XEN_DSM_PAGE_MISS);
    expect("he who wants more is still there", e.want, XEN_DSM_WANT_M);
    expect("nobody waits", DSM->nr_waiting, 0);
}

/* The daemon does not read: neither is the ring filled, nor it woken, for that. */
static void foreign_unread(void)
{
    struct vcpu other = { .domain = &dom0 };
    unsigned int i, was, entries = 0;

    begin();
    fake_now = SECONDS(10);
    DSM->prod = DSM->ring->prod = DSM->ring->cons = 0x1fff0;
    op(XEN_DSM_INVAL, 1);
    op(XEN_DSM_INVAL, 2);
    was = notified;
    current = &other;
    for ( i = 0; i < 100; i++ )
    {
        look_up(1, P2M_ALLOC);
        dsm_populate(&dom, _gfn(1));
        fake_now += MILLISECS(40);
    }
    expect("notified", notified, was + 1);
    while ( next_entry().type )
        entries++;
    expect("entries", entries, 1);

    /* It was read, and nobody has answered. */
    look_up(1, P2M_ALLOC);
    dsm_populate(&dom, _gfn(1));
    expect("notified", notified, was + 2);
    expect("again", next_entry().gfn, 1);

    /* A full ring: it is asked for when there is room. */
    DSM->ring->cons = DSM->prod - DSM->ring_nr;
    was = notified;
    look_up(2, P2M_ALLOC);
    dsm_populate(&dom, _gfn(2));
    expect("full", DSM->ring->full, 1);
    expect("lost", DSM->stats.foreign_lost, 1);
    expect("says nothing", notified, was);
    DSM->ring->cons = DSM->prod;
    look_up(2, P2M_ALLOC);
    dsm_populate(&dom, _gfn(2));
    expect("asks", next_entry().gfn, 2);
}

/* Hypercalls and operations that take rights away do not meet. */
static void a_hypercall_ends(void)
{
    dsm_gate_leave(dom.vcpu[1]);
}

static void closes(void)
{
    when_counted = NULL;
    DSM->closed = true;
}

static void the_gate(void)
{
    unsigned int was;

    begin();
    current = dom.vcpu[1];
    expect("enters", dsm_gate_enter(dom.vcpu[1]), true);
    when_waiting = a_hypercall_ends;
    expect("INVAL waits, and is done", op(XEN_DSM_INVAL, 1), 0);
    expect("hypercalls", DSM->hcalls.n, 0);
    DSM->closed = true;
    was = DSM->hcalls.increments;
    expect("closed", dsm_gate_enter(dom.vcpu[2]), false);
    expect("hypercalls", DSM->hcalls.n, 0);
    expect("nor in between", DSM->hcalls.increments, was);
    DSM->closed = false;
    when_counted = closes;
    expect("just now", dsm_gate_enter(dom.vcpu[2]), false);
    expect("hypercalls", DSM->hcalls.n, 0);
    DSM->closed = false;
    /* What adds rights does not wait. */
    when_waiting = NULL;
    expect("enters", dsm_gate_enter(dom.vcpu[1]), true);
    expect("INSTALL_S", op(XEN_DSM_INSTALL_S, 1), 0);
    expect("UPGRADE", op(XEN_DSM_UPGRADE, 1), 0);
    dsm_gate_leave(dom.vcpu[1]);
    dsm_gate_leave(dom.vcpu[1]);
    expect("hypercalls", DSM->hcalls.n, 0);
}

/*
 * A hypercall that uses a page which was not looked up for it, because another
 * vCPU has changed a pointer meanwhile: its copy fails, and that is all.
 */
static void uncovered(void)
{
    begin();
    op(XEN_DSM_INVAL, 1);
    current = dom.vcpu[1];
    dsm_gate_enter(current);
    look_up(1, P2M_ALLOC | P2M_UNSHARE);
    dsm_populate(&dom, _gfn(1));
    expect("crashed", dom.crashed, false);
    expect("paused", dom.vcpu[1]->paused, 0);
    expect("asks nobody", next_entry().type, 0);
    expect("is counted", DSM->stats.uncovered, 1);
    expect("the gate is held", DSM->hcalls.n, 1);
    dsm_gate_leave(current);

    /* What it wanted then is no hint for the next who comes. */
    dsm_populate(&dom, _gfn(1));
    expect("want", next_entry().want, XEN_DSM_WANT_S);
    expect("counted once", DSM->stats.uncovered, 1);

    /* One that is made for this waits. */
    current = dom.vcpu[2];
    dsm_gate_enter(current);
    DSM->vcpu[2].hcall_retries = true;
    expect("waits", use(2, 1, false), true);
    expect("flags", next_entry().flags, XEN_DSM_MISS_BY_XEN);
    expect("by Xen", DSM->stats.waits_by_xen, 1);
    dsm_gate_leave(current);
    expect("counted once", DSM->stats.uncovered, 1);

    /* The next one of that vCPU need not be. */
    op(XEN_DSM_WAKE, 1);
    dsm_gate_enter(current);
    expect("waits", use(2, 1, false), false);
    expect("counted", DSM->stats.uncovered, 2);
    dsm_gate_leave(current);
}

/* The guest's vCPU n is about to overwrite a page. */
static void overwrite(unsigned int n, uint64_t gfn)
{
    current = dom.vcpu[n];
    expect("away", look_up(gfn, P2M_ALLOC | P2M_UNSHARE), p2m_ram_paged);
    dsm_want_nodata(_gfn(gfn));
    dsm_populate(&dom, _gfn(gfn));
}

static void overwritten(void)
{
    xen_dsm_page_op_t reserved = {
        .gfn = 1, .op = XEN_DSM_QUERY, .wanted = XEN_DSM_WANT_M };
    struct xen_dsm_op page = {
        .cmd = XEN_DSM_PAGE, .u.page = { .nr = 1, .ops.p = &reserved } };

    begin();
    op(XEN_DSM_INVAL, 1);
    op(XEN_DSM_INVAL, 2);
    expect("nobody waits", wanted(1), 0);
    overwrite(1, 1);
    expect("want", next_entry().want, XEN_DSM_WANT_M_NODATA);
    expect("waits for it", wanted(1), XEN_DSM_WANT_M_NODATA);
    expect("not there", wanted(2), 0);

    /* Others that wait do not change that, and are not changed by it. */
    use(0, 1, false);
    expect("want", next_entry().want, XEN_DSM_WANT_S);
    use(2, 1, true);
    expect("want", next_entry().want, XEN_DSM_WANT_M);
    expect("all of them", wanted(1), XEN_DSM_WANT_M_NODATA);
    expect("ZERO_M", op(XEN_DSM_ZERO_M, 1), 0);
    expect("nobody waits any more", wanted(1), 0);
    expect("zeros", holds(frames[dom.p2m.e[1].mfn].bytes, 0), true);

    /* One that reads, and one that writes. */
    use(0, 2, false);
    expect("one waits", wanted(2), XEN_DSM_WANT_S);
    expect("not there", wanted(1), 0);
    use(2, 2, true);
    expect("the larger one", wanted(2), XEN_DSM_WANT_M);
    expect("of QUERY only", op_buf(XEN_DSM_WAKE, 2, NULL, NULL), 0);
    expect("none", wanted(2), 0);

    /* A hint for another page, or for a read, is none. */
    next_entry();
    next_entry();
    current = dom.vcpu[1];
    look_up(2, P2M_ALLOC | P2M_UNSHARE);
    dsm_want_nodata(_gfn(1));
    dsm_populate(&dom, _gfn(2));
    expect("want", next_entry().want, XEN_DSM_WANT_M);
    op(XEN_DSM_WAKE, 2);
    look_up(2, P2M_ALLOC);
    dsm_want_nodata(_gfn(2));
    dsm_populate(&dom, _gfn(2));
    expect("want", next_entry().want, XEN_DSM_WANT_S);

    current = &(struct vcpu){ .domain = &dom0 };
    expect("PAGE", memop(&page), 0);
    expect("an argument that must be zero", reserved.rc, -EINVAL);
}

static void comes_meanwhile(unsigned long gfn)
{
    if ( gfn != 5 )
        return;
    when_unlocked = NULL;
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, 5), 0);
}

static void recall(void)
{
    struct xen_dsm_ring_entry e;

    begin();
    current = dom.vcpu[0];
    expect("all M", dsm_recall(&dom, _gfn(0), 3), 0);
    op(XEN_DSM_INVAL, 5);
    op(XEN_DSM_DOWNGRADE, 6);
    expect("not M", dsm_recall(&dom, _gfn(0), 3), -ERESTART);
    e = next_entry();
    expect("want", e.want, XEN_DSM_WANT_M_NODATA);
    expect("flags", e.flags, XEN_DSM_MISS_BY_XEN);
    expect("counted", DSM->stats.recalls, 1);
    op(XEN_DSM_ZERO_M, 5);
    expect("one is left", dsm_recall(&dom, _gfn(0), 3), -ERESTART);
    op(XEN_DSM_UPGRADE, 6);
    expect("all M", dsm_recall(&dom, _gfn(0), 3), 0);
    expect("holes", dsm_recall(&dom, _gfn(40), 3), 0);
    op(XEN_DSM_INVAL, 5);
    when_unlocked = comes_meanwhile;
    expect("it comes meanwhile", dsm_recall(&dom, _gfn(0), 3), 0);
    expect("paused", dom.vcpu[0]->paused, 0);
    op(XEN_DSM_INVAL, 5);
    current = &(struct vcpu){ .domain = &dom0 };
    expect("by another domain", dsm_recall(&dom, _gfn(0), 3), -EBUSY);
}

static void may_change(void)
{
    begin();
    dom.p2m.locked = 1;
    expect("M", dsm_may_change(&dom.p2m, _gfn(0), 5), 0);
    expect("holes", dsm_may_change(&dom.p2m, _gfn(32), 3), 0);
    expect("outside", dsm_may_change(&dom.p2m, _gfn(1UL << 40), 0), 0);
    dom.p2m.locked = 0;
    op(XEN_DSM_INVAL, 31);
    op(XEN_DSM_DOWNGRADE, 0);
    dom.p2m.locked = 1;
    expect("I", dsm_may_change(&dom.p2m, _gfn(31), 0), -EBUSY);
    expect("S", dsm_may_change(&dom.p2m, _gfn(0), 0), -EBUSY);
    expect("the last is I", dsm_may_change(&dom.p2m, _gfn(16), 4), -EBUSY);
    expect("holes behind it", dsm_may_change(&dom.p2m, _gfn(32), 3), 0);
    expect("neither", dsm_may_change(&dom.p2m, _gfn(8), 3), 0);
    /* An empty 2 MiB entry, and one page in it that is elsewhere. */
    dom.p2m.locked = 0;
    op(XEN_DSM_INVAL, 20);
    for ( unsigned int i = 0; i < NR_GFNS; i++ )
        if ( i != 0 )
        {
            dom.p2m.e[i].t = p2m_mmio_dm;
            dom.p2m.e[i].order = 6;
        }
    expect("before it", dsm_may_populate(&dom, _gfn(16), 2), 0);
    expect("it", dsm_may_populate(&dom, _gfn(20), 0), -EBUSY);
    expect("with it", dsm_may_populate(&dom, _gfn(16), 3), -EBUSY);
    expect("nonsense", dsm_may_populate(&dom, _gfn(~0UL - 10), 0), 0);
    expect("nonsense", dsm_may_populate(&dom, _gfn(~0UL), 9), 0);
}

static void table_bits(void)
{
    begin();
    current = dom.vcpu[1];
    expect("M", dsm_ad_ok(&dom, _mfn(65)), true);
    op(XEN_DSM_DOWNGRADE, 1);
    expect("not missed", dsm_ad_missed(), false);
    expect("S", dsm_ad_ok(&dom, _mfn(65)), false);
    expect("missed", dsm_ad_missed(), true);
    expect("once", dsm_ad_missed(), false);
    expect("want", next_entry().want, XEN_DSM_WANT_M);
    frames[65].owner = &dom0;
    expect("a table of another domain", dsm_ad_ok(&dom, _mfn(65)), true);
}

/* A backend maps a page that it has mapped already. */
static void granted(void)
{
    struct xen_dsm_ring_entry e;
    struct page_info *pg;

    begin();
    op(XEN_DSM_DOWNGRADE, 1);
    current = &(struct vcpu){ .domain = &dom0 };
    expect("to read", dsm_map_again(&dom, _mfn(65), false, &pg), 0);
    expect("it", pg == &frames[65], true);
    expect("with a reference", frames[65].count_info, PGC_allocated | 2);
    expect("it stays", op(XEN_DSM_INVAL, 1), -EBUSY);
    expect("to write", dsm_map_again(&dom, _mfn(65), true, &pg), -EAGAIN);
    expect("none", !pg, true);
    expect("without one", frames[65].count_info, PGC_allocated | 2);
    e = next_entry();
    expect("is asked for", e.want, XEN_DSM_WANT_M);
    expect("flags", e.flags, XEN_DSM_MISS_FOREIGN);
    expect("UPGRADE", op(XEN_DSM_UPGRADE, 1), 0);
    expect("to write", dsm_map_again(&dom, _mfn(65), true, &pg), 0);
    expect("it", pg == &frames[65], true);
    expect("with a reference", frames[65].count_info, PGC_allocated | 3);

    frames[67].owner = &dom0;
    expect("not its own", dsm_map_again(&dom, _mfn(67), true, &pg), 0);
    expect("none", !pg, true);
    expect("no memory", dsm_map_again(&dom, _mfn(1UL << 40), true, &pg), 0);
    expect("none", !pg, true);

    /* Nobody answers for a domain that dies. */
    op(XEN_DSM_DOWNGRADE, 2);
    dsm_relinquish(&dom);
    expect("S of a dead domain", dsm_map_again(&dom, _mfn(66), true, &pg), 0);
    expect("it", pg == &frames[66], true);
}

/* It is that time, and the timer's function runs. */
static void expire(void)
{
    fake_now = max(fake_now, DSM->timer.expires);
    DSM->timer.fn(DSM->timer.data);
}

static void dead(void)
{
    xen_dsm_page_op_t page_op = { .gfn = 1, .op = XEN_DSM_INVAL };
    struct xen_dsm_op o = {
        .cmd = XEN_DSM_PAGE, .u.page = { .nr = 1, .ops.p = &page_op } };
    struct xen_dsm_op k = { .cmd = XEN_DSM_KEEPALIVE };

    begin();
    op(XEN_DSM_INVAL, 2);
    k.u.keepalive.timeout_ms = 100;
    expect("KEEPALIVE", memop(&k), 0);
    dsm_relinquish(&dom);
    dsm_relinquish(&dom);
    expect("no timer", DSM->timer.expires, 0);
    fake_now += MILLISECS(200);
    expire();
    expect("which was just expiring", dom.pauses, 0);
    expect("may be removed", dsm_may_populate(&dom, _gfn(2), 0), 0);
    expect("PAGE", memop(&o), -ESRCH);
    o = (struct xen_dsm_op){ .cmd = XEN_DSM_KEEPALIVE };
    expect("KEEPALIVE", memop(&o), -ESRCH);
    current = dom.vcpu[0];
    dsm_populate(&dom, _gfn(2));
    expect("waits", dom.vcpu[0]->paused, 0);
    dsm_destroy(&dom);
    expect("gone", !dom.arch.dsm, 1);
}

static void keepalive(void)
{
    struct xen_dsm_op o = { .cmd = XEN_DSM_KEEPALIVE };

    begin();
    o.u.keepalive.timeout_ms = 100;
    expect("KEEPALIVE", memop(&o), 0);
    expect("timer", DSM->timer.expires, fake_now + MILLISECS(100));
    DSM->timer.fn(DSM->timer.data);
    expect("it lives", dom.pauses, 0);
    expire();
    expire();
    expect("pauses", dom.pauses, 1);
    expect("KEEPALIVE", memop(&o), 0);
    expect("pauses", dom.pauses, 0);
    expect("KEEPALIVE", memop(&o), 0);
    expect("pauses", dom.pauses, 0);

    /* An operator pauses the domain, before the daemon is late or after. */
    domain_pause_by_systemcontroller_nosync(&dom);
    expire();
    expect("both", dom.pauses, 2);
    expect("KEEPALIVE", memop(&o), 0);
    expect("the operator's", dom.pauses, 1);
    expire();
    expect("it unpauses", domain_unpause_by_systemcontroller(&dom), 0);
    expect("still paused", dom.pauses, 1);
    expect("it is not its", domain_unpause_by_systemcontroller(&dom), -EINVAL);
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("KEEPALIVE", memop(&o), 0);
    expect("the operator's", dom.pauses, 1);
    expect("it unpauses", domain_unpause_by_systemcontroller(&dom), 0);
    expect("runs", dom.pauses, 0);

    o.u.keepalive.timeout_ms = 0;
    expect("KEEPALIVE", memop(&o), 0);
    expect("timer", DSM->timer.expires, 0);
    expire();
    expect("nobody has to say it", dom.pauses, 0);
    o.u.keepalive.timeout_ms = 3600 * 1000 + 1;
    expect("KEEPALIVE", memop(&o), -EINVAL);
}

static void continuation(void)
{
    xen_dsm_page_op_t ops[3] = {
        { .gfn = 1, .op = XEN_DSM_INVAL },
        { .gfn = 1, .op = XEN_DSM_INVAL },
        { .gfn = 99, .op = XEN_DSM_INVAL },
    };
    struct xen_dsm_op o = {
        .cmd = XEN_DSM_PAGE, .u.page = { .nr = 3, .ops.p = ops } };

    begin();
    fake_preempt = true;
    expect("continues", memop(&o), 4242);
    expect("done", o.u.page.done, 1);
    expect("continues", memop(&o), 4242);
    expect("done", o.u.page.done, 2);
    expect("ends", memop(&o), 0);
    expect("done", o.u.page.done, 3);
    expect("first", ops[0].rc, 0);
    expect("second", ops[1].rc, -EEXIST);
    expect("third", ops[2].rc, -ERANGE);
    o.u.page.done = 4;
    expect("done is more than there are", memop(&o), -EINVAL);
    o.u.page = (struct xen_dsm_page){ .nr = XEN_DSM_MAX_PAGE_OPS + 1 };
    expect("too many", memop(&o), -EINVAL);
    o.u.page = (struct xen_dsm_page){ .nr = 1, .ops.p = FAULTY };
    expect("nowhere", memop(&o), -EFAULT);
    o.cmd = 99;
    expect("no such command", memop(&o), -EINVAL);
    expect("version", dsm_memop((XEN_GUEST_HANDLE_PARAM(xen_dsm_op_t)){
               &(struct xen_dsm_op){ .version = 99 } }), -EACCES);
}

static void away(void)
{
    uint64_t done;

    begin();
    expect("one slice", frames_op(XEN_DSM_AWAY, FAR, 1, &done), -EINVAL);
    expect("one slice", pool_op(XEN_DSM_POOL_ADD, 1, &done), -EINVAL);

    begin_slice();
    expect("first", state_of(FAR), I);
    expect("last", state_of(IN_RANGE - 1), I);
    expect("below", state_of(FAR - 1), M);
    expect("again", frames_op(XEN_DSM_AWAY, FAR, 1, &done), -EEXIST);
    expect("memory", frames_op(XEN_DSM_AWAY, FAR - 2, 4, &done), -EEXIST);
    expect("done", done, 0);
    expect("outside", frames_op(XEN_DSM_AWAY, IN_RANGE, 1, &done), -ERANGE);
    expect("over the end", frames_op(XEN_DSM_AWAY, IN_RANGE - 1, 2, &done),
           -ERANGE);
    expect("wraps", frames_op(XEN_DSM_AWAY, FAR, ~0ULL, &done), -ERANGE);
    expect("a guest misses it", use(1, FAR, false), true);

    expect("DROP_RANGE of memory", frames_op(XEN_DSM_DROP_RANGE, 0, 40, &done),
           -EBUSY);
    expect("done", done, 0);
    expect("DROP_RANGE", frames_op(XEN_DSM_DROP_RANGE, FAR, 8, &done), 0);
    expect("done", done, 8);
    expect("first", state_of(FAR), HOLE);
    expect("not the rest", state_of(FAR + 8), I);
    expect("DROP_RANGE", frames_op(XEN_DSM_DROP_RANGE, FAR + 12, 4, &done), 0);
    expect("behind what is homed elsewhere",
           dsm_may_populate(&dom, _gfn(FAR + 12), 2), 0);
    expect("woken", dom.vcpu[1]->paused, 0);
    expect("holes stay", frames_op(XEN_DSM_DROP_RANGE, FAR, 8, &done), 0);
    expect_pool(0, 0, 0);
}

/* ---- A hole for one access ---- */

/* What a vCPU finds that reads a frame from there. */
static p2m_type_t from(unsigned int n, uint64_t gfn, unsigned long rip,
                       unsigned long rsp)
{
    current = dom.vcpu[n];
    fake_regs.rip = rip;
    fake_regs.rsp = rsp;

    return look_up(gfn, P2M_ALLOC);
}

/* A vCPU about to enter the guest there: does it take no interrupt? */
static bool enters(unsigned int n, unsigned long rip, unsigned long rsp)
{
    current = dom.vcpu[n];
    fake_regs.rip = rip;
    fake_regs.rsp = rsp;

    return dsm_in_instruction(current);
}

/* It reads a frame from there, and waits. */
static void waits_from(unsigned int n, uint64_t gfn, unsigned long rip,
                       unsigned long rsp)
{
    expect("not here", from(n, gfn, rip, rsp), p2m_ram_paged);
    dsm_populate(&dom, _gfn(gfn));
    expect("waits", dom.vcpu[n]->paused, 1);
}

static struct vcpu of_dom0 = { .domain = &dom0 };

/* The daemon says that there is no memory, to vCPU n or to others. */
static int hole_before_reading(unsigned int n, uint64_t gfn)
{
    xen_dsm_page_op_t page_op = {
        .gfn = gfn, .op = XEN_DSM_HOLE, .wanted = n };
    struct xen_dsm_op o = {
        .cmd = XEN_DSM_PAGE, .u.page = { .nr = 1, .ops.p = &page_op } };

    current = &of_dom0;
    fake_regs.rip = fake_regs.rsp = 4711;
    expect("PAGE", memop(&o), 0);
    expect("nothing is said", page_op.wanted, 0);

    return page_op.rc;
}

/* The same, when it has read who misses what. */
static int hole_for(unsigned int n, uint64_t gfn)
{
    DSM->ring->cons = DSM->ring->prod;

    return hole_before_reading(n, gfn);
}

#define OTHERS XEN_DSM_HOLE_FOREIGN
#define HERE 0x1000, 0x8000
#define NEXT 0x1004, 0x8000
#define DEEP 0x1000, 0x7ff8

/* vCPU 1 is told that there is no memory. */
static void begin_hole(void)
{
    uint64_t done;

    begin_slice();
    spare_frames = 4;
    expect("POOL_ADD", pool_op(XEN_DSM_POOL_ADD, 4, &done), 0);
    waits_from(1, FAR, HERE);
    expect("HOLE", hole_for(1, FAR), 0);
    expect("woken", dom.vcpu[1]->paused, 0);
    expect("stays I", state_of(FAR), I);
    expect_pool(4, 0, 4);
}

static void a_hole(void)
{
    begin_hole();
    expect("enters", enters(1, HERE), true);
    expect("finds none", from(1, FAR, HERE), p2m_mmio_dm);
    expect("nor does Xen for it", from(1, FAR, HERE), p2m_mmio_dm);
    expect("the next frame", from(1, FAR + 1, HERE), p2m_ram_paged);
    expect("another vCPU", from(2, FAR, HERE), p2m_ram_paged);
    expect("it enters as ever", enters(2, HERE), false);
    current = &(struct vcpu){ .domain = &dom0 };
    expect("another domain", look_up(FAR, P2M_ALLOC), p2m_ram_paged);

    /* Its home has memory now, and somebody has told the vCPU. */
    expect("another RIP", from(1, FAR, NEXT), p2m_ram_paged);
    expect("it is over", from(1, FAR, HERE), p2m_ram_paged);
    expect("takes interrupts", enters(1, HERE), false);

    begin_hole();
    expect("another stack", from(1, FAR, DEEP), p2m_ram_paged);
    expect("it is over", from(1, FAR, HERE), p2m_ram_paged);

    /* The access was made, and the next one is made from the same place. */
    begin_hole();
    expect("finds none", from(1, FAR, HERE), p2m_mmio_dm);
    expect("goes on", enters(1, NEXT), false);
    expect("comes again", from(1, FAR, HERE), p2m_ram_paged);

    begin_hole();
    expect("it was called", enters(1, DEEP), false);
    expect("comes again", from(1, FAR, HERE), p2m_ram_paged);

    /*
     * What is pending when it misses a page must not be put into its next
     * entry before it stops: it would come before the access.
     */
    begin_slice();
    waits_from(1, FAR, HERE);
    expect("is about to stop", enters(1, HERE), true);
    expect("HOLE", hole_for(1, FAR), 0);
    expect("is told of it", enters(1, HERE), true);
    waits_from(1, FAR + 1, HERE);
    expect("is about to stop", enters(1, HERE), true);
    expect("WAKE", op(XEN_DSM_WAKE, FAR), 0);
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 1), 0);
    expect("takes interrupts", enters(1, HERE), false);

    /* Its instruction needs another page as well. */
    begin_hole();
    waits_from(1, FAR + 1, HERE);
    expect("INSTALL", op(XEN_DSM_INSTALL_S, FAR + 1), 0);
    expect("enters", enters(1, HERE), true);
    expect("here", from(1, FAR + 1, HERE), p2m_dsm_shared);
    expect("finds none", from(1, FAR, HERE), p2m_mmio_dm);
    expect("goes on", enters(1, NEXT), false);
    expect("nobody has one", DSM->nr_holes, 0);
}

/* An instruction that needs several frames which have no memory. */
static void several_holes(void)
{
    unsigned int i;

    begin_hole();
    for ( i = 1; i < DSM_HOLES; i++ )
    {
        expect("the first one", from(1, FAR, HERE), p2m_mmio_dm);
        waits_from(1, FAR + i, HERE);
        expect("HOLE", hole_for(1, FAR + i), 0);
    }
    for ( i = 0; i < DSM_HOLES; i++ )
        expect("all of them", from(1, FAR + i, HERE), p2m_mmio_dm);
    expect("the next frame", from(1, FAR + DSM_HOLES, HERE), p2m_ram_paged);
    expect("one vCPU has some", DSM->nr_holes, 1);

    /* REP goes from frame to frame: the first one is the furthest behind. */
    waits_from(1, FAR + DSM_HOLES, HERE);
    expect("HOLE", hole_for(1, FAR + DSM_HOLES), 0);
    for ( i = 1; i <= DSM_HOLES; i++ )
        expect("the last ones", from(1, FAR + i, HERE), p2m_mmio_dm);
    expect("the first one", from(1, FAR, HERE), p2m_ram_paged);

    /* One of them comes: the others are what they were. */
    expect("INSTALL", op(XEN_DSM_INSTALL_S, FAR + 3), 0);
    expect("INVAL", op(XEN_DSM_INVAL, FAR + 3), 0);
    expect("no kick", dom.vcpu[1]->kicks, 0);
    expect("asks", from(1, FAR + 3, HERE), p2m_ram_paged);
    for ( i = 1; i <= DSM_HOLES; i++ )
        if ( i != 3 )
            expect("the others", from(1, FAR + i, HERE), p2m_mmio_dm);
    expect("enters", enters(1, HERE), true);
    waits_from(1, FAR + 3, HERE);
    expect("HOLE", hole_for(1, FAR + 3), 0);
    for ( i = 1; i <= DSM_HOLES; i++ )
        expect("all again", from(1, FAR + i, HERE), p2m_mmio_dm);
    for ( i = 1; i <= DSM_HOLES; i++ )
    {
        expect("still", enters(1, HERE), true);
        expect("one after the other", op(XEN_DSM_WAKE, FAR + i), 0);
        expect("the last one", dom.vcpu[1]->kicks, i == DSM_HOLES);
    }
    expect("takes interrupts", enters(1, HERE), false);
    expect("nobody has one", DSM->nr_holes, 0);

    /* Another instruction's are its own. */
    begin_hole();
    waits_from(1, FAR + 1, NEXT);
    expect("HOLE", hole_for(1, FAR + 1), 0);
    expect("its own", from(1, FAR + 1, NEXT), p2m_mmio_dm);
    expect("not those before", from(1, FAR, NEXT), p2m_ram_paged);
    begin_hole();
    waits_from(1, FAR + 1, DEEP);
    expect("HOLE", hole_for(1, FAR + 1), 0);
    expect("its own", from(1, FAR + 1, DEEP), p2m_mmio_dm);
    expect("not those before", from(1, FAR, DEEP), p2m_ram_paged);

    /* Those of two vCPUs are counted. */
    waits_from(0, FAR + 1, HERE);
    expect("HOLE", hole_for(0, FAR + 1), 0);
    expect("two have some", DSM->nr_holes, 2);
    expect("the first one goes on", enters(1, HERE), false);
    expect("one has", DSM->nr_holes, 1);
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 1), 0);
    expect("vCPU 0 asks", from(0, FAR + 1, HERE), p2m_ram_paged);
    expect("nobody has one", DSM->nr_holes, 0);
}

static int flush(uint32_t flags, uint32_t pad)
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_FLUSH, .u.flush = { .flags = flags, .pad = pad } });
}

/*
 * A vCPU was woken, took an interrupt, heard there that there is memory, and
 * misses it.  What the home has said is about its first miss.
 */
static void a_hole_too_late(void)
{
    unsigned int i;

    begin_slice();
    waits_from(1, FAR, HERE);
    DSM->ring->cons = DSM->ring->prod;
    expect("WAKE", op(XEN_DSM_WAKE, FAR), 0);
    waits_from(1, FAR, NEXT);
    expect("HOLE", hole_before_reading(1, FAR), 0);
    expect("waits", dom.vcpu[1]->paused, 1);
    expect("is told of none", from(1, FAR, NEXT), p2m_ram_paged);
    expect("what it wants", next_entry().rip, 0x1004);
    expect("HOLE", hole_before_reading(1, FAR), 0);
    expect("woken", dom.vcpu[1]->paused, 0);
    expect("finds none", from(1, FAR, NEXT), p2m_mmio_dm);

    /* Numbers of entries wrap. */
    begin_slice();
    DSM->prod = DSM->ring->prod = DSM->ring->cons = UINT32_MAX;
    for ( i = 0; i < 2; i++ )
        waits_from(i, FAR, HERE);
    expect("HOLE", hole_before_reading(0, FAR), 0);
    expect("waits", dom.vcpu[0]->paused, 1);
    DSM->ring->cons++;
    expect("HOLE", hole_before_reading(0, FAR), 0);
    expect("woken", dom.vcpu[0]->paused, 0);
    expect("HOLE", hole_before_reading(1, FAR), 0);
    expect("waits", dom.vcpu[1]->paused, 1);
    DSM->ring->cons++;
    expect("HOLE", hole_before_reading(1, FAR), 0);
    expect("woken", dom.vcpu[1]->paused, 0);

    /* One behind the one that is read next; and one that has waited for long. */
    begin_slice();
    for ( i = 0; i < 2; i++ )
        waits_from(i, FAR, HERE);
    expect("HOLE", hole_before_reading(1, FAR), 0);
    expect("waits", dom.vcpu[1]->paused, 1);
    DSM->prod = DSM->ring->prod = DSM->ring->cons = 0x10000;
    expect("HOLE", hole_before_reading(1, FAR), 0);
    expect("woken", dom.vcpu[1]->paused, 0);
    waits_from(1, FAR, NEXT);
    expect("HOLE", hole_before_reading(1, FAR), 0);
    expect("waits", dom.vcpu[1]->paused, 1);

    /* One for which the ring had no room, until it is asked for. */
    begin_slice();
    DSM->ring->cons = DSM->prod - DSM->ring_nr;
    waits_from(1, FAR, HERE);
    DSM->ring->cons = DSM->prod;
    current = &of_dom0;
    expect("others look", look_up(FAR, P2M_ALLOC), p2m_ram_paged);
    dsm_populate(&dom, _gfn(FAR));
    expect("what came instead is read", hole_for(1, FAR), 0);
    expect("waits", dom.vcpu[1]->paused, 1);
    expect("FLUSH", flush(0, 0), 0);
    expect("HOLE", hole_before_reading(1, FAR), 0);
    expect("waits", dom.vcpu[1]->paused, 1);
    DSM->ring->cons++;
    expect("HOLE", hole_before_reading(1, FAR), 0);
    expect("woken", dom.vcpu[1]->paused, 0);

    /* Also one that was in the ring, for another daemon. */
    waits_from(2, FAR, HERE);
    DSM->ring->cons++;
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL, 0), 0);
    expect("HOLE", hole_before_reading(2, FAR), 0);
    expect("waits", dom.vcpu[2]->paused, 1);
    DSM->ring->cons++;
    expect("HOLE", hole_before_reading(2, FAR), 0);
    expect("woken", dom.vcpu[2]->paused, 0);
}

/*
 * A vCPU that has missed a frame looks it up once more before it stops, as the
 * emulator does that fetches an instruction, and is told in between.
 */
static void a_hole_that_is_told_twice(void)
{
    unsigned int i;

    begin_slice();
    spare_frames = 1;
    expect("POOL_ADD", pool_op(XEN_DSM_POOL_ADD, 1, &(uint64_t){ 0 }), 0);
    waits_from(1, FAR, HERE);
    expect("once more", from(1, FAR, HERE), p2m_ram_paged);
    expect("HOLE", hole_for(1, FAR), 0);
    expect("woken", dom.vcpu[1]->paused, 0);
    expect("has not stopped yet", enters(1, HERE), true);
    dsm_populate(&dom, _gfn(FAR));
    expect("waits", dom.vcpu[1]->paused, 1);
    expect("HOLE", hole_for(1, FAR), 0);
    expect("woken", dom.vcpu[1]->paused, 0);
    expect("one vCPU has some", DSM->nr_holes, 1);
    expect("finds none", from(1, FAR, HERE), p2m_mmio_dm);
    expect("INSTALL", op(XEN_DSM_INSTALL_M, FAR), 0);
    expect("leaves the guest", dom.vcpu[1]->kicks, 1);
    expect("takes interrupts", enters(1, HERE), false);
    expect("INVAL", op(XEN_DSM_INVAL, FAR), 0);
    expect("asks", from(1, FAR, HERE), p2m_ram_paged);

    /* A note that is full has it only once, too. */
    for ( i = 0; i < DSM_HOLES; i++ )
    {
        waits_from(1, FAR + i, HERE);
        expect("HOLE", hole_for(1, FAR + i), 0);
    }
    expect("has not stopped yet", enters(1, HERE), true);
    dsm_populate(&dom, _gfn(FAR + 3));
    expect("HOLE", hole_for(1, FAR + 3), 0);
    expect("woken", dom.vcpu[1]->paused, 0);
    for ( i = 0; i < DSM_HOLES; i++ )
        expect("all of them", from(1, FAR + i, HERE), p2m_mmio_dm);
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 3), 0);
    expect("asks", from(1, FAR + 3, HERE), p2m_ram_paged);
}

static p2m_type_t by_dom0(uint64_t gfn)
{
    current = &of_dom0;

    return look_up(gfn, P2M_ALLOC);
}

/* Who has asked is told, and keeps it when others are. */
static void a_hole_for_two(void)
{
    begin_hole();
    waits_from(2, FAR, NEXT);
    waits_from(3, FAR + 1, NEXT);
    expect("HOLE for one that waits for another", hole_for(3, FAR), 0);
    expect("it waits", dom.vcpu[3]->paused, 1);
    expect("is told of none", from(3, FAR, NEXT), p2m_ram_paged);
    expect("HOLE for one that does not wait", hole_for(1, FAR), 0);
    expect("who asked later waits", dom.vcpu[2]->paused, 1);
    expect("HOLE", hole_for(2, FAR), 0);
    expect("woken", dom.vcpu[2]->paused, 0);
    expect("the first one", from(1, FAR, HERE), p2m_mmio_dm);
    expect("the second one", from(2, FAR, NEXT), p2m_mmio_dm);
    expect("the first one goes on", enters(1, NEXT), false);
    expect("the second one", from(2, FAR, NEXT), p2m_mmio_dm);
    expect("HOLE for one that went on", hole_for(1, FAR), 0);
    expect("it asks", from(1, FAR, HERE), p2m_ram_paged);
    expect("waits", DSM->stats.waits, 3);
    expect("waiting", DSM->nr_waiting, 1);

    /* Its end is that of all: two vCPUs, the last one of them, and others. */
    begin_hole();
    waits_from(NR_VCPUS - 1, FAR, NEXT);
    expect("HOLE", hole_for(NR_VCPUS - 1, FAR), 0);
    expect("others look", by_dom0(FAR), p2m_ram_paged);
    dsm_populate(&dom, _gfn(FAR));
    expect("HOLE for others", hole_for(OTHERS, FAR), 0);
    expect("they find none", by_dom0(FAR), p2m_mmio_dm);
    expect("INSTALL", op(XEN_DSM_INSTALL_M, FAR), 0);
    expect("INVAL", op(XEN_DSM_INVAL, FAR), 0);
    expect("leaves the guest", dom.vcpu[1]->kicks, 1);
    expect("and the last one", dom.vcpu[NR_VCPUS - 1]->kicks, 1);
    expect("asks", from(1, FAR, HERE), p2m_ram_paged);
    expect("and the last one", from(NR_VCPUS - 1, FAR, NEXT), p2m_ram_paged);
    expect("and others", by_dom0(FAR), p2m_ram_paged);
    expect("nobody has one", DSM->nr_holes, 0);

    begin_slice();
    expect("nobody waits", hole_for(1, FAR), 0);
    expect("nobody was told", from(1, FAR, HERE), p2m_ram_paged);
}

/* What happens to the page then is not what the home has said. */
static void the_end_of_a_hole(void)
{
    static const struct {
        const char *name;
        unsigned int ops[2];
    } ends[] = {
        { "look again", { XEN_DSM_WAKE } },
        { "it came and went", { XEN_DSM_INSTALL_M, XEN_DSM_INVAL } },
        { "zeroed", { XEN_DSM_ZERO_M, XEN_DSM_INVAL } },
        { "stays there", { XEN_DSM_UNCACHE, XEN_DSM_CACHE } },
    };
    uint64_t done;
    unsigned int i, j;

    for ( i = 0; i < ARRAY_SIZE(ends); i++ )
    {
        begin_hole();
        /* It may be in the guest, and has not come to it yet. */
        expect("enters", enters(1, HERE), true);
        for ( j = 0; j < 2 && ends[i].ops[j]; j++ )
            expect(ends[i].name, op(ends[i].ops[j], FAR), 0);
        expect("leaves the guest", dom.vcpu[1]->kicks, 1);
        expect("takes interrupts", enters(1, HERE), false);
        expect(ends[i].name, from(1, FAR, HERE), p2m_ram_paged);
    }

    begin_hole();
    expect("DROP_RANGE", frames_op(XEN_DSM_DROP_RANGE, FAR, 1, &done), 0);
    expect("AWAY", frames_op(XEN_DSM_AWAY, FAR, 1, &done), 0);
    expect("another slice", from(1, FAR, HERE), p2m_ram_paged);

    /* An INIT, or other registers. */
    begin_hole();
    dsm_cancel_instruction(dom.vcpu[1]);
    expect("other registers", from(1, FAR, HERE), p2m_ram_paged);

    /* The other frame's end is not this one's. */
    begin_hole();
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 1), 0);
    expect("no kick", dom.vcpu[1]->kicks, 0);
    expect("finds none", from(1, FAR, HERE), p2m_mmio_dm);

    dsm_relinquish(&dom);
    expect("a dead domain", from(1, FAR, HERE), p2m_mmio_dm);
}

/* Another domain, which tries again by itself. */
static void a_hole_for_others(void)
{
    begin_slice();
    fake_now = MILLISECS(1000);
    expect("not here", by_dom0(FAR), p2m_ram_paged);
    dsm_populate(&dom, _gfn(FAR));
    expect("asks", next_entry().flags, XEN_DSM_MISS_FOREIGN);
    expect("HOLE", hole_for(OTHERS, FAR), 0);
    /* However long who asked takes to try again, within reason. */
    fake_now += MILLISECS(10);
    expect("no other", by_dom0(FAR + 1), p2m_ram_paged);
    expect("a vCPU asks", from(1, FAR, HERE), p2m_ram_paged);
    fake_now += MILLISECS(40) - 1;
    expect("finds none", by_dom0(FAR), p2m_mmio_dm);
    fake_now++;
    expect("not for longer", by_dom0(FAR), p2m_ram_paged);
    dsm_populate(&dom, _gfn(FAR));
    expect("asks again", next_entry().flags, XEN_DSM_MISS_FOREIGN);
    expect("HOLE", hole_for(OTHERS, FAR), 0);
    expect("finds none", by_dom0(FAR), p2m_mmio_dm);
    fake_now += MILLISECS(1) - 1;
    expect("looks twice", by_dom0(FAR), p2m_mmio_dm);
    fake_now++;
    expect("a moment later", by_dom0(FAR), p2m_ram_paged);
    dsm_populate(&dom, _gfn(FAR));
    expect("asks again", next_entry().flags, XEN_DSM_MISS_FOREIGN);
    expect("HOLE for a vCPU", hole_for(1, FAR), 0);
    expect("not for others", by_dom0(FAR), p2m_ram_paged);
    expect("HOLE", hole_for(OTHERS, FAR), 0);
    expect("WAKE of another", op(XEN_DSM_WAKE, FAR + 1), 0);
    expect("finds none", by_dom0(FAR), p2m_mmio_dm);
    expect("WAKE", op(XEN_DSM_WAKE, FAR), 0);
    expect("looks again", by_dom0(FAR), p2m_ram_paged);

    /* What a vCPU was told is no business of theirs. */
    waits_from(0, FAR, HERE);
    expect("HOLE", hole_for(0, FAR), 0);
    expect("asks", by_dom0(FAR), p2m_ram_paged);
    expect("the vCPU's", from(0, FAR, HERE), p2m_mmio_dm);
}

static void asks_for(uint64_t gfn)
{
    expect("not here", by_dom0(gfn), p2m_ram_paged);
    dsm_populate(&dom, _gfn(gfn));
}

static void asked_for(uint64_t gfn)
{
    asks_for(gfn);
    expect("asks", next_entry().gfn, gfn);
}

/* Each frame has its own note, whatever is asked for or told meanwhile. */
static void holes_for_others(void)
{
    unsigned int i;

    begin_slice();
    fake_now = MILLISECS(1000);
    asked_for(FAR);
    asked_for(FAR + 1);
    expect("HOLE", hole_for(OTHERS, FAR), 0);
    expect("HOLE", hole_for(OTHERS, FAR + 1), 0);
    asked_for(FAR + 2);
    expect("HOLE that nobody asked for", hole_for(OTHERS, FAR + 3), 0);
    expect("is none", by_dom0(FAR + 3), p2m_ram_paged);
    expect("another frame", by_dom0(FAR + 2), p2m_ram_paged);
    expect("the second", by_dom0(FAR + 1), p2m_mmio_dm);
    fake_now += MILLISECS(40);
    expect("the first", by_dom0(FAR), p2m_mmio_dm);
    expect("not the second", by_dom0(FAR + 1), p2m_ram_paged);

    /* The end of one is none of another one. */
    asked_for(FAR + 1);
    expect("HOLE", hole_for(OTHERS, FAR + 1), 0);
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 1), 0);
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 1), 0);
    expect("looks again", by_dom0(FAR + 1), p2m_ram_paged);
    expect("the first", by_dom0(FAR), p2m_mmio_dm);
    fake_now += MILLISECS(1);
    expect("no longer", by_dom0(FAR), p2m_ram_paged);
    expect("no note is left", DSM->nr_foreign_holes, 0);
    expect("HOLE once more", hole_for(OTHERS, FAR), 0);
    expect("nobody asks", by_dom0(FAR), p2m_ram_paged);

    /* Who had looked before the note was there asks nothing. */
    asked_for(FAR);
    by_dom0(FAR);
    expect("HOLE", hole_for(OTHERS, FAR), 0);
    fake_now += MILLISECS(49);
    current = &(struct vcpu){ .domain = &dom0 };
    dsm_populate(&dom, _gfn(FAR));
    expect("asks nothing", next_entry().type, 0);
    fake_now += MILLISECS(1) - 1;
    expect("and finds it", by_dom0(FAR), p2m_mmio_dm);
    fake_now++;
    dsm_populate(&dom, _gfn(FAR));
    expect("asks when it is over", next_entry().gfn, FAR);
    expect("no note is left", DSM->nr_foreign_holes, 0);

    /* Who wants to write has the same answer, and one place. */
    asked_for(FAR + 4);
    asked_for(FAR + 3);
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 4), 0);
    current = &of_dom0;
    look_up(FAR + 3, P2M_ALLOC | P2M_UNSHARE);
    dsm_populate(&dom, _gfn(FAR + 3));
    expect("to write", next_entry().want, XEN_DSM_WANT_M);
    expect("HOLE", hole_for(OTHERS, FAR + 3), 0);
    expect("one note", DSM->nr_foreign_holes, 1);
    current = &of_dom0;
    expect("none to write to", look_up(FAR + 3, P2M_ALLOC | P2M_UNSHARE),
           p2m_mmio_dm);
    /* It has had a place before that is free now. */
    asked_for(FAR + 4);
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 3), 0);
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 4), 0);
    asked_for(FAR + 3);
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 3), 0);
    asked_for(FAR + 3);
    expect("WAKE", op(XEN_DSM_WAKE, FAR + 3), 0);

    /* A miss that was not read has no answer, and is answered later. */
    asks_for(FAR + 3);
    expect("HOLE of an older miss", hole_before_reading(OTHERS, FAR + 3),
           0);
    asks_for(FAR + 3);
    expect("reads it", next_entry().gfn, FAR + 3);
    expect("once", next_entry().type, 0);
    asks_for(FAR + 3);
    expect("has asked", next_entry().type, 0);
    fake_now += MILLISECS(50);
    asks_for(FAR + 3);
    expect("HOLE of the first", hole_before_reading(OTHERS, FAR + 3), 0);
    expect("finds none", by_dom0(FAR + 3), p2m_mmio_dm);
    expect("one note", DSM->nr_foreign_holes, 1);
    expect("reads it", next_entry().gfn, FAR + 3);
    expect("HOLE", hole_for(OTHERS, FAR + 3), 0);
    fake_now += MILLISECS(1);
    expect("nobody has asked since", by_dom0(FAR + 3), p2m_ram_paged);

    /* But not if more is wanted. */
    asks_for(FAR + 3);
    expect("reads it", next_entry().want, XEN_DSM_WANT_S);
    current = &of_dom0;
    look_up(FAR + 3, P2M_ALLOC | P2M_UNSHARE);
    dsm_populate(&dom, _gfn(FAR + 3));
    expect("HOLE of an older miss", hole_before_reading(OTHERS, FAR + 3),
           0);
    expect("not here", by_dom0(FAR + 3), p2m_ram_paged);
    expect("reads it", next_entry().want, XEN_DSM_WANT_M);
    current = &of_dom0;
    look_up(FAR + 3, P2M_ALLOC | P2M_UNSHARE);
    dsm_populate(&dom, _gfn(FAR + 3));
    expect("asks once", next_entry().type, 0);
    expect("HOLE", hole_for(OTHERS, FAR + 3), 0);
    current = &of_dom0;
    look_up(FAR + 3, P2M_ALLOC | P2M_UNSHARE);
    dsm_populate(&dom, _gfn(FAR + 3));
    expect("asks nothing under a note", next_entry().type, 0);
    expect("finds none", by_dom0(FAR + 3), p2m_mmio_dm);
    expect("one note", DSM->nr_foreign_holes, 1);

    /* Another daemon has notes stay, and is told of who asks. */
    asked_for(FAR + 4);
    expect("FLUSH", flush(0, 0), 0);
    asks_for(FAR + 4);
    expect("has asked", next_entry().type, 0);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL, 0), 0);
    while ( next_entry().type )
        ;
    expect("finds none", by_dom0(FAR + 3), p2m_mmio_dm);
    asked_for(FAR + 4);

    /* Those of the whole table, and it is free afterwards. */
    fake_now += MILLISECS(100);
    for ( i = 0; i < 3 * DSM_FOREIGN; i++ )
    {
        asked_for(FAR + i % 5);
        expect("HOLE", hole_for(OTHERS, FAR + i % 5), 0);
        expect("finds none", by_dom0(FAR + i % 5), p2m_mmio_dm);
        fake_now += MILLISECS(1);
    }
    expect("over", by_dom0(FAR + 1), p2m_ram_paged);
    expect("looked at all", by_dom0(FAR + (i - 1) % 5), p2m_ram_paged);
    expect("no note is left", DSM->nr_foreign_holes, 0);
}

static void a_refused_hole(void)
{
    struct xen_dsm_op o;
    xen_dsm_page_op_t flags = { .gfn = FAR, .op = XEN_DSM_HOLE, .flags = 1 };
    uint64_t done;

    begin_slice();
    spare_frames = 1;
    pool_op(XEN_DSM_POOL_ADD, 1, &done);
    expect("M", hole_for(1, 1), -EINVAL);
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, 2), 0);
    expect("S", hole_for(1, 2), -EINVAL);
    expect("INVAL", op(XEN_DSM_INVAL, 3), 0);
    expect("homed here", hole_for(1, 3), -EINVAL);
    expect("INSTALL_S", op(XEN_DSM_INSTALL_S, FAR + 1), 0);
    expect("here", hole_for(1, FAR + 1), -EINVAL);
    expect("DROP", op(XEN_DSM_DROP, FAR + 2), 0);
    expect("none", hole_for(1, FAR + 2), -ENOENT);
    expect("no such vCPU", hole_for(NR_VCPUS, FAR), -EINVAL);
    expect("outside", hole_for(1, IN_RANGE), -ERANGE);
    o = (struct xen_dsm_op){ .cmd = XEN_DSM_PAGE,
                             .u.page = { .nr = 1, .ops.p = &flags } };
    expect("PAGE", memop(&o), 0);
    expect("flags", flags.rc, -EINVAL);
    dom.p2m.e[FAR + 3].t = p2m_map_foreign;
    expect("another's", hole_for(1, FAR + 3), -EINVAL);
}

/* A page that was used at its home has no memory there now. */
static void a_hole_in_u(void)
{
    begin_slice();
    expect("UNCACHE", op(XEN_DSM_UNCACHE, FAR), 0);
    expect("not here", from(1, FAR, HERE), p2m_ram_paged);
    dsm_populate(&dom, _gfn(FAR));
    expect("waits", dom.vcpu[1]->paused, 1);
    expect("of U", next_entry().flags, XEN_DSM_MISS_OF_U);
    expect("HOLE", hole_for(1, FAR), 0);
    expect("stays U", state_of(FAR), XEN_DSM_STATE_U);
    expect("finds none", from(1, FAR, HERE), p2m_mmio_dm);
    expect("nothing to be done there", dsm_is_uncached(&dom, _gfn(FAR)), false);
    current = dom.vcpu[2];
    expect("but for others", dsm_is_uncached(&dom, _gfn(FAR)), true);
    expect("HOLE for others", hole_for(OTHERS, FAR), 0);
    expect("goes on", enters(1, NEXT), false);
    expect("is done there", dsm_is_uncached(&dom, _gfn(FAR)), true);
    expect("comes again", from(1, FAR, HERE), p2m_ram_paged);
}

static void frames_for_others(void)
{
    uint64_t done;

    begin_slice();
    spare_frames = 3;
    expect("none yet", op(XEN_DSM_INSTALL_M, FAR), -ENOSPC);
    expect("the host has three", pool_op(XEN_DSM_POOL_ADD, 4, &done), -ENOMEM);
    expect("done", done, 3);
    expect_pool(3, 0, 3);
    memset(buffer, 77, sizeof(buffer));
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, FAR), 0);
    expect("INSTALL_S", op(XEN_DSM_INSTALL_S, FAR + 1), 0);
    expect("ZERO_M", op(XEN_DSM_ZERO_M, FAR + 2), 0);
    expect("full", op(XEN_DSM_INSTALL_M, FAR + 3), -ENOSPC);
    expect("state", state_of(FAR + 3), I);
    expect_pool(0, 0, 3);

    /* A page that is homed here has its own frame. */
    expect("INVAL", op(XEN_DSM_INVAL, 1), 0);
    expect_pool(1, 1, 3);
    expect("not for others", op(XEN_DSM_INSTALL_M, FAR + 3), -ENOSPC);
    expect("in use", pool_op(XEN_DSM_POOL_DEL, 1, &done), -EBUSY);
    expect("INVAL", op(XEN_DSM_INVAL, FAR + 1), 0);
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, FAR + 3), 0);
    expect_pool(1, 1, 3);
    expect("comes back", op(XEN_DSM_INSTALL_M, 1), 0);
    expect_pool(0, 0, 3);

    /* The page at its home is a hole: no frame of ours goes. */
    expect("DROP", op(XEN_DSM_DROP, FAR + 1), 0);
    expect_pool(0, 0, 3);
    expect("state", state_of(FAR + 1), HOLE);

    expect("DROP_RANGE", frames_op(XEN_DSM_DROP_RANGE, FAR, 4, &done), -EBUSY);
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, FAR), 0);
    expect("S", frames_op(XEN_DSM_DROP_RANGE, FAR, 4, &done), -EBUSY);
    expect("INVAL", op(XEN_DSM_INVAL, FAR), 0);
    expect("DROP_RANGE", frames_op(XEN_DSM_DROP_RANGE, FAR, 4, &done), -EBUSY);
    expect("done", done, 2);
    expect("INVAL", op(XEN_DSM_INVAL, FAR + 2), 0);
    expect("INVAL", op(XEN_DSM_INVAL, FAR + 3), 0);
    expect("POOL_DEL", pool_op(XEN_DSM_POOL_DEL, 4, &done), -EBUSY);
    expect("done", done, 3);
    expect_pool(0, 0, 0);
    expect("frames of the host", !frames[128].owner && !frames[130].owner, 1);

    /* One that is homed here and never comes back gives its frame away. */
    expect("INVAL", op(XEN_DSM_INVAL, 5), 0);
    expect("DROP_RANGE", frames_op(XEN_DSM_DROP_RANGE, 5, 1, &done), 0);
    expect_pool(0, 0, 0);
    expect("the host's", !frames[69].owner, 1);
}

/* The guest's own driver populates and frees a node of another host. */
static void populate_elsewhere(void)
{
    uint64_t done;

    begin_slice();
    spare_frames = 1;
    pool_op(XEN_DSM_POOL_ADD, 1, &done);
    current = dom.vcpu[0];
    expect("I", dsm_may_populate(&dom, _gfn(FAR), 3), 1);
    expect("frees I", dsm_recall(&dom, _gfn(FAR), 3), 1);
    expect("asks nobody", next_entry().type, 0);
    op(XEN_DSM_INSTALL_M, FAR + 1);
    expect("M", dsm_may_populate(&dom, _gfn(FAR), 3), 1);
    expect("frees M", dsm_recall(&dom, _gfn(FAR), 3), 1);
    expect("state", state_of(FAR + 1), M);
    expect("half of it here", dsm_may_populate(&dom, _gfn(FAR - 4), 3),
           -EBUSY);
    expect("frees half of it here", dsm_recall(&dom, _gfn(FAR - 4), 3), -EBUSY);
    expect("asks nobody", next_entry().type, 0);
    op(XEN_DSM_DROP, FAR + 2);
    expect("a hole in it", dsm_may_populate(&dom, _gfn(FAR), 3), -EBUSY);
    expect("all of it here", dsm_may_populate(&dom, _gfn(8), 3), 0);
    dom.p2m.locked = 1;
    expect("nothing is mapped over M",
           dsm_may_change(&dom.p2m, _gfn(FAR + 1), 0), -EBUSY);
    expect("nor in the hole", dsm_may_change(&dom.p2m, _gfn(FAR + 2), 0),
           -EBUSY);
    dom.p2m.locked = 0;
    current = &(struct vcpu){ .domain = &dom0 };
    expect("nobody else", dsm_may_populate(&dom, _gfn(FAR), 3), -EBUSY);
    expect("nobody else", dsm_recall(&dom, _gfn(FAR), 3), -EBUSY);
    current = dom.vcpu[0];
    op(XEN_DSM_INVAL, FAR + 1);
    frames_op(XEN_DSM_DROP_RANGE, FAR, 8, &done);
    expect("homed here again", dsm_may_populate(&dom, _gfn(FAR), 3), 0);
}

/* A large guest costs little before its pages move; and where its parts meet. */
static void bits_as_they_are_used(void)
{
    xen_dsm_range_t range = { 1 << 20, XEN_DSM_MAX_FRAMES };
    struct xen_dsm_op o = {
        .cmd = XEN_DSM_ENABLE,
        .u.enable = { .nr_ranges = 1, .nr_slices = 2, .ranges.p = &range },
    };
    uint64_t first = range.first + 3 * DSM_BITS_PART - 300, done;
    unsigned int i;

    make_world();
    fake_allocated = 0;
    expect("ENABLE", memop(&o), 0);
    expect("less than 256 KiB", fake_allocated < 256 << 10, 1);

    /* Two parts, of both bits. */
    fake_allocated = 0;
    expect("AWAY", frames_op(XEN_DSM_AWAY, first, 600, &done), 0);
    expect("bytes", fake_allocated, 4 * PAGE_SIZE);
    for ( i = 0; i < 600; i++ )
        expect("state", state_of(first + i), I);
    expect("before", state_of(first - 1), HOLE);
    expect("after", state_of(first + 600), HOLE);
    expect("far before", state_of(range.first), HOLE);
    expect("the last", state_of(range.first + range.nr - 1), HOLE);
    current = dom.vcpu[0];
    expect("in all of it", dsm_may_populate(&dom, _gfn(first - 212), 10), -EBUSY);
    expect("homed elsewhere, in two parts",
           dsm_may_populate(&dom, _gfn(first + 300 - 8), 4), 1);
    expect("one of the others", dsm_may_populate(&dom, _gfn(first - 8), 4), -EBUSY);
    expect("nothing of them", dsm_may_populate(&dom, _gfn(first - 16), 4), 0);

    done = range.first + 6 * DSM_BITS_PART;
    expect("AWAY", frames_op(XEN_DSM_AWAY, done, 4, &done), 0);
    expect("behind a part that is clear",
           dsm_may_populate(&dom, _gfn(range.first + 6 * DSM_BITS_PART - 8), 4), -EBUSY);

    /* No memory for them is an error, and nothing has changed. */
    fake_no_memory = true;
    first += 2 * DSM_BITS_PART;
    expect("AWAY", frames_op(XEN_DSM_AWAY, first, 2, &done), -ENOMEM);
    expect("done", done, 0);
    expect("state", state_of(first), HOLE);
    expect("where there is room", frames_op(XEN_DSM_AWAY, first - 2 * DSM_BITS_PART + 600, 1, &done), 0);
    fake_no_memory = false;
    expect("AWAY", frames_op(XEN_DSM_AWAY, first, 2, &done), 0);
    dsm_destroy(&dom);

    begin();
    fake_no_memory = true;
    expect("INVAL", op(XEN_DSM_INVAL, 1), -ENOMEM);
    expect("state", state_of(1), M);
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, 1), 0);
    expect("INVAL", op(XEN_DSM_INVAL, 1), -ENOMEM);
    expect("state", state_of(1), S);
    fake_no_memory = false;
    expect("INVAL", op(XEN_DSM_INVAL, 1), 0);
    fake_no_memory = true;
    expect("once there is room", op(XEN_DSM_INVAL, 2), 0);
    expect("state", state_of(2), I);
    fake_no_memory = false;
    dsm_destroy(&dom);
}

/* A long command lets others run, and knows where it was. */
static void many_frames(void)
{
    xen_dsm_range_t range = { 1 << 20, 2000 };
    struct xen_dsm_op o = {
        .cmd = XEN_DSM_ENABLE,
        .u.enable = { .nr_ranges = 1, .nr_slices = 2, .ranges.p = &range },
    };
    unsigned int calls;

    make_world();
    expect("ENABLE", memop(&o), 0);
    o = (struct xen_dsm_op){ .cmd = XEN_DSM_AWAY,
                             .u.frames = { range.first, range.nr } };
    fake_preempt = true;
    for ( calls = 1; memop(&o) == 4242; calls++ )
        ;
    expect("done", o.u.frames.done, 2000);
    expect("calls", calls, 4);
    expect("last", state_of(range.first + 1999), I);
    o.u.frames.done = 2001;
    expect("done is more than there are", memop(&o), -EINVAL);
    o = (struct xen_dsm_op){ .cmd = XEN_DSM_POOL_DEL, .u.pool = { 1, 2 } };
    expect("done is more than there are", memop(&o), -EINVAL);
}

static void refusals(void)
{
    static const struct { size_t flag; bool value; unsigned int why; } t[] = {
#define WHY(field, value, why) \
        { offsetof(struct domain, field), value, XEN_DSM_REFUSED_##why }
        WHY(hardware, true, HARDWARE_DOMAIN), WHY(hvm, false, NOT_HAP),
        WHY(hap, false, NOT_HAP), WHY(creation_finished, true, RUNNING),
        WHY(pod, true, POD), WHY(iommu, true, PASSTHROUGH),
        WHY(pdevs, true, PASSTHROUGH), WHY(log_dirty, true, LOG_DIRTY),
        WHY(arch.hvm.dirty_vram, true, LOG_DIRTY), WHY(altp2m, true, ALTP2M),
        WHY(nested, true, NESTED), WHY(paging, true, PAGING), WHY(sharing, true, SHARING),
        WHY(viridian, true, VIRIDIAN), WHY(vm_event_monitor, true, MONITOR),
    };
    static const struct { unsigned int slice, of; } slices[] = {
        { 0, 0 }, { 1, 1 }, { 2, 2 }, { 0, XEN_DSM_MAX_SLICES + 1 },
    };
    unsigned int i, refused;

    for ( i = 0; i < ARRAY_SIZE(t); i++ )
    {
        make_world();
        *(bool *)((char *)&dom + t[i].flag) = t[i].value;
        expect("ENABLE", enable(&refused), -EOPNOTSUPP);
        expect("why", refused, t[i].why);
        expect("nothing is there", !dom.arch.dsm, 1);
    }
    make_world();
    dom.p2m.default_access = p2m_access_rx;
    expect("ENABLE", enable(&refused), -EOPNOTSUPP);
    expect("why", refused, XEN_DSM_REFUSED_MONITOR);
    make_world();
    dom.arch.emulation_flags |= X86_EMU_PIC;
    expect("ENABLE", enable(&refused), -EOPNOTSUPP);
    expect("why", refused, XEN_DSM_REFUSED_FIRMWARE);
    make_world();
    dom.arch.incarnation = 2;
    expect("ENABLE", enable(&refused), -EOPNOTSUPP);
    expect("why", refused, XEN_DSM_REFUSED_RESTORED);
    make_world();
    dom.vcpu[0] = NULL;
    expect("ENABLE", enable(&refused), -EOPNOTSUPP);
    expect("why", refused, XEN_DSM_REFUSED_NO_VCPU);
    for ( i = 0; i < ARRAY_SIZE(slices); i++ )
    {
        make_world();
        expect("ENABLE", enable_slice(slices[i].slice, slices[i].of, &refused),
               -EOPNOTSUPP);
        expect("why", refused, XEN_DSM_REFUSED_SLICES);
    }
    make_world();
    expect("the last of the most",
           enable_slice(XEN_DSM_MAX_SLICES - 1, XEN_DSM_MAX_SLICES, &refused),
           0);
    begin();
    expect("twice", enable(&refused), -EEXIST);
}

/* Nothing here is for a device model of the domain. */
static void device_model(void)
{
    static const unsigned int cmds[] = {
        XEN_DSM_ENABLE, XEN_DSM_PAGE, XEN_DSM_FLUSH, XEN_DSM_KEEPALIVE,
        XEN_DSM_STATS, XEN_DSM_POOL_ADD, XEN_DSM_POOL_DEL, XEN_DSM_AWAY,
        XEN_DSM_DROP_RANGE, XEN_DSM_PLACE, XEN_DSM_SEND, XEN_DSM_GET_TSC,
        XEN_DSM_SET_TSC, XEN_DSM_SEND_PORTS, XEN_DSM_SHARED_INFO,
        XEN_DSM_GET_TIME, XEN_DSM_SET_TIME, 99,
    };
    unsigned int i, refused;
    xen_pfn_t frame;

    begin();
    expect("the ring", dsm_acquire_ring(&dom, 0, 1, &frame), 1);
    fake_device_model = true;
    expect("the ring", dsm_acquire_ring(&dom, 0, 1, &frame), -EPERM);
    for ( i = 0; i < ARRAY_SIZE(cmds); i++ )
        expect("a command",
               memop(&(struct xen_dsm_op){ .cmd = cmds[i] }), -EPERM);
    make_world();
    fake_device_model = true;
    expect("ENABLE", enable(&refused), -EPERM);
    expect("nothing is there", !dom.arch.dsm, 1);
}

/* The ring's pages, one by one or all at once, and not one more. */
static void ring_frames(void)
{
    xen_pfn_t list[8] = {};
    unsigned int nr;

    make_world();
    expect("without DSM", dsm_ring_frames(&dom), 0);
    expect("without DSM", dsm_acquire_ring(&dom, 0, 1, list), -ENOENT);
    begin();
    nr = dsm_ring_frames(&dom);
    expect("frames", nr, 1 + DSM->ring_nr / (PAGE_SIZE / 64));
    expect("what the daemon is told", DSM->ring->nr, DSM->ring_nr);
    expect("as many as there can be at a time, and that many unread",
           DSM->ring_nr >= 2 * (NR_VCPUS + DSM_FOREIGN), true);
    expect("nobody else's bytes", holds(DSM->ring_pg->bytes, 0) &&
           holds(DSM->ring_pg[nr - 1].bytes, 0), true);
    expect("all", dsm_acquire_ring(&dom, 0, nr, list), nr);
    expect("the first", list[0], mfn_x(page_to_mfn(DSM->ring_pg)));
    expect("the last", list[nr - 1], list[0] + nr - 1);
    expect("one of them", dsm_acquire_ring(&dom, 1, 1, list + 1), 1);
    expect("it", list[1], list[0] + 1);
    expect("one more", dsm_acquire_ring(&dom, 1, nr, list), -EINVAL);
    dsm_relinquish(&dom);
    expect("of a dead domain", dsm_acquire_ring(&dom, 0, 1, list), -EINVAL);
}

/* A daemon dies with what it has read, and another one starts. */
static void another_daemon(void)
{
    xen_dsm_range_t range = { 0, IN_RANGE };
    struct xen_dsm_op o = {
        .cmd = XEN_DSM_ENABLE,
        .u.enable = { .nr_ranges = 1, .nr_slices = 1, .ranges.p = &range },
    };
    struct xen_dsm_ring_entry e;
    unsigned int i, was;

    begin();
    expect("ENABLE", memop(&o), -EEXIST);
    expect("the port", o.u.enable.port, 3);

    op(XEN_DSM_INVAL, 1);
    op(XEN_DSM_INVAL, 2);
    expect("waits", use(1, 1, true), true);
    expect("waits", use(2, 2, false), true);
    expect("the first daemon reads", next_entry().vcpu, 1);
    expect("the first daemon reads", next_entry().vcpu, 2);
    op(XEN_DSM_INSTALL_M, 2);
    was = notified;
    expect("FLUSH", flush(0, 0), 0);
    expect("what was read is gone", next_entry().type, 0);
    expect("says nothing", notified, was);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL, 0), 0);
    expect("says so", notified, was + 1);
    e = next_entry();
    expect("vCPU", e.vcpu, 1);
    expect("gfn", e.gfn, 1);
    expect("want", e.want, XEN_DSM_WANT_M);
    expect("nobody else waits", next_entry().type, 0);
    expect("unknown flags", flush(2, 0), -EINVAL);
    expect("not zero", flush(0, 1), -EINVAL);

    /* As many as there is room for, and the rest later. */
    for ( i = 0; i < DSM->ring_nr - 1; i++ )
    {
        op(XEN_DSM_WAKE, 1);
        expect("waits", use(i % NR_VCPUS, 1, false), true);
    }
    for ( i = 0; i < NR_VCPUS; i++ )
        use(i, 1, false);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL, 0), 0);
    expect("full", DSM->ring->full, 1);
    for ( i = 0; next_entry().type; i++ )
        ;
    expect("entries", i, DSM->ring_nr);
    expect("FLUSH", flush(0, 0), 0);
    for ( i = 0; next_entry().type; i++ )
        ;
    expect("the rest", i, NR_VCPUS);

    /* A foreign miss is told again when its domain tries again. */
    current = &(struct vcpu){ .domain = &dom0 };
    for ( i = 0; i < 2; i++ )
    {
        look_up(1, P2M_ALLOC);
        dsm_populate(&dom, _gfn(1));
    }
    expect("flags", next_entry().flags, XEN_DSM_MISS_FOREIGN);
    expect("once", next_entry().type, 0);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL, 0), 0);
    while ( next_entry().type )
        ;
    look_up(1, P2M_ALLOC);
    dsm_populate(&dom, _gfn(1));
    expect("flags", next_entry().flags, XEN_DSM_MISS_FOREIGN);
}

/* ---- vCPUs of other slices ---- */

static char delivered[4096];    /* what the local APICs got */

static void deliver(const char *how, const struct vcpu *v, uint32_t icr)
{
    size_t n = strlen(delivered);

    expect("no lock is held", DSM->lock.held || DSM->ops_lock.held, false);
    snprintf(delivered + n, sizeof(delivered) - n, "%s%s%u:%x", n ? " " : "",
             how, v->vcpu_id, icr);
}

void vlapic_init_sipi_one(struct vcpu *target, uint32_t icr)
{
    deliver("start", target, icr);
}

void vlapic_accept_irq(struct vcpu *v, uint32_t icr_low)
{
    deliver("irq", v, icr_low);
}

static int place(uint32_t vcpu, unsigned int slice)
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_PLACE, .u.place = { .vcpu = vcpu, .slice = slice } });
}

/* Slice k of three; vCPU 1 runs in slice 1, vCPU 2 in slice 2. */
static void begin_spread(unsigned int k)
{
    unsigned int refused, i;

    make_world();
    expect("ENABLE", enable_slice(k, 3, &refused), 0);
    domain_pause_by_systemcontroller_nosync(&dom);
    for ( i = 0; i < NR_VCPUS; i++ )
        dom.vcpu[i]->pause_flags = 1UL << _VPF_down;
    expect("PLACE", place(1, 1), 0);
    expect("PLACE", place(2, 2), 0);
    delivered[0] = 0;
}

static void placing(void)
{
    struct xen_dsm_op o = {
        .cmd = XEN_DSM_PLACE, .u.place = { .vcpu = 1, .slice = 1, .pad = 1 } };
    const uint32_t irq = APIC_DM_FIXED | 0x40;
    unsigned int refused;

    begin();
    expect("one slice", place(1, 0), -EINVAL);
    expect("it is here", dsm_forward_icr(dom.vcpu[1], irq), false);

    make_world();
    expect("ENABLE", enable_slice(0, 2, &refused), 0);
    dom.vcpu[1]->pause_flags = 1UL << _VPF_down;
    expect("not paused", place(1, 1), -EBUSY);
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("vCPU 0", place(0, 1), -EINVAL);
    expect("no such slice", place(1, 2), -EINVAL);
    expect("no such vCPU", place(NR_VCPUS, 1), -ENOENT);
    expect("not zero", memop(&o), -EINVAL);
    dom.vcpu[1]->pause_flags = 0;
    expect("it is up", place(1, 1), -EBUSY);
    dom.vcpu[1]->pause_flags = 1UL << _VPF_down;
    dom.vcpu[3]->vlapic.init_sipi.icr = APIC_DM_INIT;
    expect("a SIPI of another is on its way", place(1, 1), -EBUSY);
    dom.vcpu[3]->vlapic.init_sipi.icr = 0;
    expect("it is still here", dsm_forward_icr(dom.vcpu[1], irq), false);
    dsm_shutdown(&dom);
    expect("there is no other slice yet", next_entry().type, 0);

    expect("PLACE", place(1, 1), 0);
    expect("it is there", dsm_forward_icr(dom.vcpu[1], irq), true);
    expect("others are not", dsm_forward_icr(dom.vcpu[2], irq), false);
    expect("back", place(1, 0), 0);
    expect("it is here", dsm_forward_icr(dom.vcpu[1], irq), false);

    /* Before anything is said all run in slice 0. */
    make_world();
    expect("ENABLE", enable_slice(1, 2, &refused), 0);
    expect("slice 0 has it", dsm_forward_icr(dom.vcpu[3], irq), true);
}

static void ghosts(void)
{
    static const struct {
        uint32_t icr;
        unsigned int flags, sipi;
        int vector;
    } t[] = {
        { APIC_DM_FIXED | 0x40, 0, 0, 0x40 },
        { APIC_DM_FIXED | APIC_INT_ASSERT | 0xff, 0, 0, 0xff },
        { APIC_DM_LOWEST | 0x10, 0, 0, 0x10 },
        { APIC_DM_NMI | 0x33, XEN_DSM_EVENT_NMI, 0, -1 },
        { APIC_DM_INIT | APIC_INT_ASSERT, XEN_DSM_EVENT_INIT, 0, -1 },
        { APIC_DM_INIT | APIC_INT_ASSERT | APIC_INT_LEVELTRIG,
          XEN_DSM_EVENT_INIT, 0, -1 },
        { APIC_DM_INIT, XEN_DSM_EVENT_INIT, 0, -1 },
        { APIC_DM_STARTUP | 0x9a, XEN_DSM_EVENT_SIPI, 0x9a, -1 },
    };
    static const uint32_t nothing[] = {
        APIC_DM_INIT | APIC_INT_LEVELTRIG, APIC_DM_SMI, APIC_DM_REMRD,
        /* No APIC takes it, and SEND refuses all that would be with it. */
        APIC_DM_FIXED | 15, APIC_DM_LOWEST,
    };
    struct xen_dsm_ring_entry e;
    unsigned int i, w, was;

    begin_spread(0);
    for ( i = 0; i < ARRAY_SIZE(t); i++ )
    {
        was = notified;
        expect("goes", dsm_forward_icr(dom.vcpu[1 + i % 2], t[i].icr), true);
        expect("notified", notified, was + 1);
        e = next_entry();
        expect("type", e.type, XEN_DSM_VCPU_EVENT);
        expect("vCPU", e.vcpu, 1 + i % 2);
        expect("flags", e.flags, t[i].flags);
        expect("SIPI", e.want, t[i].sipi);
        for ( w = 0; w < 4; w++ )
            expect("vectors", e.vectors[w],
                   t[i].vector / 64 == w && t[i].vector >= 0
                   ? 1UL << t[i].vector % 64 : 0);
        expect("once", next_entry().type, 0);
    }
    was = notified;
    for ( i = 0; i < ARRAY_SIZE(nothing); i++ )
        expect("goes", dsm_forward_icr(dom.vcpu[1], nothing[i]), true);
    expect("says nothing", notified, was);
    expect("nor puts it", next_entry().type, 0);
}

static void crowded(void)
{
    struct xen_dsm_ring_entry e;
    unsigned int i;
    uint64_t full;

    begin_spread(0);
    for ( i = 0; i < DSM->ring_nr; i++ )
        dsm_forward_icr(dom.vcpu[2], APIC_DM_FIXED | 0x20);
    expect("full", DSM->ring->full, 0);
    full = DSM->stats.ring_full;
    dsm_forward_icr(dom.vcpu[1], APIC_DM_FIXED | 0x21);
    expect("full", DSM->ring->full, 1);
    dsm_forward_icr(dom.vcpu[1], APIC_DM_NMI);
    dsm_forward_icr(dom.vcpu[1], APIC_DM_INIT | APIC_INT_ASSERT);
    dsm_forward_icr(dom.vcpu[1], APIC_DM_STARTUP | 8);
    dsm_forward_icr(dom.vcpu[1], APIC_DM_STARTUP | 9);
    dsm_forward_icr(dom.vcpu[1], APIC_DM_FIXED | 0x40);
    dsm_forward_icr(dom.vcpu[1], APIC_DM_FIXED | 0x81);
    dsm_forward_icr(dom.vcpu[1], APIC_DM_FIXED | 0x40);
    expect("counted", DSM->stats.ring_full, full + 7);
    expect("on its way", place(3, 1), -EBUSY);
    for ( i = 0; next_entry().type; i++ )
        ;
    expect("entries", i, DSM->ring_nr);
    expect("FLUSH", memop(&(struct xen_dsm_op){ .cmd = XEN_DSM_FLUSH }), 0);
    e = next_entry();
    expect("vCPU", e.vcpu, 1);
    /* The INIT made the first two void; the first SIPI is heard. */
    expect("flags", e.flags, XEN_DSM_EVENT_INIT | XEN_DSM_EVENT_SIPI);
    expect("SIPI", e.want, 8);
    expect("vectors", e.vectors[0], 0);
    expect("vectors", e.vectors[1], 1);
    expect("vectors", e.vectors[2], 2);
    expect("one entry", next_entry().type, 0);
    expect("FLUSH", memop(&(struct xen_dsm_op){ .cmd = XEN_DSM_FLUSH }), 0);
    expect("not twice", next_entry().type, 0);
    expect("nothing on its way", place(3, 1), 0);

    /* An NMI takes nothing away. */
    for ( i = 0; i < DSM->ring_nr; i++ )
        dsm_forward_icr(dom.vcpu[2], APIC_DM_FIXED | 0x20);
    dsm_forward_icr(dom.vcpu[1], APIC_DM_INIT | APIC_INT_ASSERT);
    dsm_forward_icr(dom.vcpu[1], APIC_DM_NMI);
    while ( next_entry().type )
        ;
    expect("FLUSH", memop(&(struct xen_dsm_op){ .cmd = XEN_DSM_FLUSH }), 0);
    expect("flags", next_entry().flags, XEN_DSM_EVENT_INIT | XEN_DSM_EVENT_NMI);

    /* To the last vCPU; and the daemon hears that there is something. */
    expect("PLACE", place(3, 1), 0);
    for ( i = 0; i < DSM->ring_nr; i++ )
        dsm_forward_icr(dom.vcpu[2], APIC_DM_FIXED | 0x20);
    dsm_forward_icr(dom.vcpu[3], APIC_DM_NMI);
    while ( next_entry().type )
        ;
    notified = 0;
    expect("FLUSH", memop(&(struct xen_dsm_op){ .cmd = XEN_DSM_FLUSH }), 0);
    expect("notified", notified, 1);
    expect("vCPU", next_entry().vcpu, 3);
}

static int send(struct xen_dsm_vcpu_event event)
{
    delivered[0] = 0;

    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_SEND, .u.event = event });
}

static void sent_here(void)
{
    begin_spread(1);
    expect("all at once", send((struct xen_dsm_vcpu_event){
        .vcpu = 1, .flags = XEN_DSM_EVENT_INIT | XEN_DSM_EVENT_SIPI |
                            XEN_DSM_EVENT_NMI,
        .sipi = 8, .vectors = { 1UL << 63 | 1 << 16, 1, 0, 1UL << 63 } }), 0);
    if ( strcmp(delivered,
                "start1:4500 start1:608 irq1:400 irq1:10 irq1:3f irq1:40 "
                "irq1:ff") )
        die("delivered: %s", delivered);
    expect("nothing", send((struct xen_dsm_vcpu_event){ .vcpu = 1 }), 0);
    expect("delivers nothing", delivered[0], 0);

    expect("unknown flags", send((struct xen_dsm_vcpu_event){
        .vcpu = 1, .flags = 8 }), -EINVAL);
    expect("a vector below 16", send((struct xen_dsm_vcpu_event){
        .vcpu = 1, .vectors = { 1 << 15 } }), -EINVAL);
    expect("a SIPI that is none", send((struct xen_dsm_vcpu_event){
        .vcpu = 1, .sipi = 1 }), -EINVAL);
    expect("not zero", send((struct xen_dsm_vcpu_event){
        .vcpu = 1, .pad = 1 }), -EINVAL);
    expect("no such vCPU", send((struct xen_dsm_vcpu_event){
        .vcpu = NR_VCPUS, .flags = XEN_DSM_EVENT_NMI }), -ENOENT);
    expect("a ghost", send((struct xen_dsm_vcpu_event){
        .vcpu = 2, .flags = XEN_DSM_EVENT_NMI }), -EXDEV);
    expect("a ghost", send((struct xen_dsm_vcpu_event){
        .vcpu = 0, .flags = XEN_DSM_EVENT_NMI }), -EXDEV);
    expect("delivers nothing", delivered[0], 0);
}

static int tsc(unsigned int cmd, uint64_t *offset)
{
    struct xen_dsm_op o = { .cmd = cmd, .u.tsc.offset = *offset };
    int rc = memop(&o);

    *offset = o.u.tsc.offset;

    return rc;
}

static void time_stamps(void)
{
    uint64_t offset = 0;

    begin_spread(0);
    dom.vcpu[0]->arch.hvm.cache_tsc_offset = -5;
    expect("GET_TSC", tsc(XEN_DSM_GET_TSC, &offset), 0);
    expect("offset", offset, -5);
    expect("SET_TSC in slice 0", tsc(XEN_DSM_SET_TSC, &offset), -EINVAL);

    begin_spread(1);
    offset = 77;
    expect("SET_TSC", tsc(XEN_DSM_SET_TSC, &offset), 0);
    expect("offset", dom.vcpu[0]->arch.hvm.cache_tsc_offset, 77);
    dom.vcpu[1]->is_initialised = true;
    expect("a vCPU was started", tsc(XEN_DSM_SET_TSC, &offset), -EBUSY);
    dom.vcpu[1]->is_initialised = false;
    dom.arch.vtsc = true;
    expect("emulated", tsc(XEN_DSM_SET_TSC, &offset), -EOPNOTSUPP);
    expect("emulated", tsc(XEN_DSM_GET_TSC, &offset), -EOPNOTSUPP);
    dom.arch.vtsc = false;
    dom.arch.hvm.tsc_scaling_ratio++;
    expect("scaled", tsc(XEN_DSM_GET_TSC, &offset), -EOPNOTSUPP);
}

static void shutting_down(void)
{
    struct xen_dsm_ring_entry e;
    unsigned int i, refused;

    make_world();
    expect("ENABLE", enable_slice(0, 2, &refused), 0);
    dsm_shutdown(&dom);
    expect("nobody elsewhere", next_entry().type, 0);

    begin_spread(0);
    dom.shutdown_code = 3;
    notified = 0;
    dsm_shutdown(&dom);
    expect("notified", notified, 1);
    e = next_entry();
    expect("type", e.type, XEN_DSM_SHUTDOWN);
    expect("reason", e.want, 3);

    begin_spread(0);
    for ( i = 0; i < DSM->ring_nr; i++ )
        dsm_forward_icr(dom.vcpu[2], APIC_DM_NMI);
    dom.shutdown_code = 1;
    dsm_shutdown(&dom);
    while ( (e = next_entry()).type )
        expect("type", e.type, XEN_DSM_VCPU_EVENT);
    notified = 0;
    expect("FLUSH", memop(&(struct xen_dsm_op){ .cmd = XEN_DSM_FLUSH }), 0);
    expect("notified", notified, 1);
    e = next_entry();
    expect("type", e.type, XEN_DSM_SHUTDOWN);
    expect("reason", e.want, 1);
    expect("FLUSH", memop(&(struct xen_dsm_op){ .cmd = XEN_DSM_FLUSH }), 0);
    expect("once", next_entry().type, 0);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL, 0), 0);
    e = next_entry();
    expect("to another daemon", e.type, XEN_DSM_SHUTDOWN);
    expect("reason", e.want, 1);

    /* The other slice is still there when its vCPU has come home. */
    begin_spread(0);
    dom.vcpu[1]->pause_flags = 1UL << _VPF_down;
    expect("back", place(1, 0), 0);
    dsm_shutdown(&dom);
    expect("told", next_entry().type, XEN_DSM_SHUTDOWN);

    begin_spread(0);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL, 0), 0);
    expect("a vCPU is up", next_entry().type, XEN_DSM_ACTIVITY);
    expect("not yet", next_entry().type, 0);

    begin_spread(0);
    dsm_relinquish(&dom);
    notified = 0;
    dsm_shutdown(&dom);
    expect("a dead one sends nothing",
           dsm_forward_icr(dom.vcpu[1], APIC_DM_NMI), true);
    expect("nor notifies", notified, 0);
}

/* A hypercall that is not done soon: the operation gives up, the gate opens. */
static void not_yet(void)
{
}

static void long_hypercall(void)
{
    begin();
    current = dom.vcpu[1];
    expect("enters", dsm_gate_enter(dom.vcpu[1]), true);
    when_waiting = not_yet;
    expect("INVAL", op(XEN_DSM_INVAL, 1), -EBUSY);
    expect("state", state_of(1), M);
    expect("open", DSM->closed, false);
    dsm_gate_leave(dom.vcpu[1]);
    expect("INVAL", op(XEN_DSM_INVAL, 1), 0);
}

static void is_killed(void)
{
    dom.is_dying = true;
}

static void killed_meanwhile(void)
{
    unsigned int refused;

    make_world();
    when_port = is_killed;
    expect("ENABLE", enable(&refused), -ESRCH);
    expect("nothing is left", !dom.arch.dsm, 1);
}

/* The host's heap may not clear what it gets. */
static void cleared(void)
{
    begin();
    memset(frames[65].bytes, 0x5a, PAGE_SIZE);
    expect("INVAL", op(XEN_DSM_INVAL, 1), 0);
    expect("DROP", op(XEN_DSM_DROP, 1), 0);
    expect("freed", !frames[65].owner, 1);
    expect("cleared", holds(frames[65].bytes, 0), true);
}

/* Somebody gets a reference by the frame's number while the entry changes. */
static void gets_it(unsigned long gfn)
{
    expect("away before the entry goes", dsm_bits_test(&DSM->ranges[0].away, gfn), 1);
    when_entry = NULL;
    frames[64 + gfn].count_info++;
}

static void by_number(void)
{
    begin();
    when_entry = gets_it;
    expect("INVAL", op(XEN_DSM_INVAL, 1), -EBUSY);
    expect("state", state_of(1), M);
    frames[65].count_info--;
    expect("INVAL", op(XEN_DSM_INVAL, 1), 0);
}

static void overlapping(void)
{
    static const struct { xen_dsm_range_t r[2]; int rc; } t[] = {
        { { { 0, 16 }, { 16, 8 } }, 0 },
        { { { 0, 16 }, { 15, 8 } }, -EINVAL },
        { { { 0, 16 }, { 4, 4 } }, -EINVAL },
        { { { 16, 8 }, { 0, 8 } }, -EINVAL },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(t); i++ )
    {
        xen_dsm_range_t ranges[2] = { t[i].r[0], t[i].r[1] };
        struct xen_dsm_op o = {
            .cmd = XEN_DSM_ENABLE,
            .u.enable = { .nr_ranges = 2, .nr_slices = 1, .ranges.p = ranges },
        };

        make_world();
        expect("ENABLE", memop(&o), t[i].rc);
        expect("enabled", !!dom.arch.dsm, !t[i].rc);
    }
}

/* ---- Superpages; of 8 frames here ---- */

static int merge_frames(uint64_t first, uint64_t nr, uint64_t done)
{
    struct xen_dsm_op o = {
        .cmd = XEN_DSM_MERGE,
        .u.frames = { .first = first, .nr = nr, .done = done } };
    struct vcpu *was = current;
    int rc;

    current = &(struct vcpu){ .domain = &dom0 };
    rc = memop(&o);
    current = was;
    expect("pauses", dom.pauses, 0);
    expect("p2m lock", dom.p2m.locked, 0);
    expect("the gate", DSM->closed, false);

    return rc;
}

static int merge(uint64_t first)
{
    return merge_frames(first, 8, 0);
}

/* Frames 8 to 15 are as they were: single pages, nobody's but the guest's. */
static void expect_single(void)
{
    unsigned long i;

    for ( i = 8; i < 16; i++ )
    {
        expect("order", dom.p2m.e[i].order, 0);
        expect("MFN", dom.p2m.e[i].mfn, 64 + i);
        expect("type", dom.p2m.e[i].t, p2m_ram_rw);
        expect("M2P", frames[64 + i].m2p, i);
        expect("references", frames[64 + i].count_info, PGC_allocated | 1);
        if ( !holds(frames[64 + i].bytes, i) )
            die("frame %lu has other bytes", i);
    }
    expect("merges", DSM->stats.merges, 0);
    expect("the domain's pages", dom.tot_pages, MEMORY);
}

static void superpage(void)
{
    unsigned long i;

    begin();
    whole_frames = true;
    /* A page that was away has a frame of the pool now, whichever. */
    expect("INVAL", op(XEN_DSM_INVAL, 9), 0);
    expect("INVAL", op(XEN_DSM_INVAL, 20), 0);
    expect("INSTALL", op_buf(XEN_DSM_INSTALL_M, 9, buffer, NULL), 0);
    memset(frames[dom.p2m.e[9].mfn].bytes, 77, PAGE_SIZE);
    flushes = 0;
    expect("MERGE", merge(8), 0);
    expect("flushes", flushes, 1);
    for ( i = 8; i < 16; i++ )
    {
        expect("order", dom.p2m.e[i].order, 3);
        expect("MFN", dom.p2m.e[i].mfn, 240 + i - 8);
        expect("M2P", frames[240 + i - 8].m2p, i);
        expect("references", frames[240 + i - 8].count_info, PGC_allocated | 1);
        if ( !holds(frames[240 + i - 8].bytes, i == 9 ? 77 : i) )
            die("GFN %lu has other bytes", i);
        if ( i == 9 )
            continue;
        expect("the old frame's references", frames[64 + i].count_info, 0);
        expect("its M2P", frames[64 + i].m2p, INVALID_M2P_ENTRY);
        if ( !holds(frames[64 + i].bytes, 0) )
            die("frame %lu is given back with the guest's bytes", i);
    }
    expect("the domain's pages", dom.tot_pages, MEMORY);
    expect("at a time", most_pages, MEMORY + 1);
    expect("merges", DSM->stats.merges, 1);
    expect_pool(1, 1, 0);
    expect("state", state_of(9), M);
    /* It is one, and can be split again. */
    expect("MERGE", merge(8), -EEXIST);
    expect("INVAL", op(XEN_DSM_INVAL, 12), 0);
    if ( !holds(buffer, 12) )
        die("INVAL of a part gave other bytes");
    expect("MERGE", merge(8), -ENODATA);
}

static unsigned long number_taken;

static void take_number(unsigned long gfn)
{
    frames[64 + number_taken].count_info++;
    when_entry = NULL;
}

/* While the vCPUs are waited for others do what they like. */
static void page_leaves(void)
{
    when_paused = NULL;
    expect("INVAL", op(XEN_DSM_INVAL, 10), 0);
}

static void domain_dies(void)
{
    when_paused = NULL;
    dsm_relinquish(&dom);
}

static void no_superpage(void)
{
    struct dsm_range *range;
    unsigned long i;

    begin();
    expect("no memory", merge(8), -ENOMEM);
    expect_single();
    whole_frames = true;
    expect("first", merge_frames(9, 8, 0), -EINVAL);
    expect("nr", merge_frames(8, 16, 0), -EINVAL);
    expect("done", merge_frames(8, 8, 1), -EINVAL);
    expect("outside", merge(48), -ERANGE);
    expect("holes", merge(32), -ENODATA);
    hap_has_2mb = false;
    expect("no such pages", merge(8), -EOPNOTSUPP);
    hap_has_2mb = true;
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, 15), 0);
    expect("one in S", merge(8), -ENODATA);
    expect("UPGRADE", op(XEN_DSM_UPGRADE, 15), 0);
    expect_single();
    /* In use: by reference, pinned. */
    frames[64 + 14].count_info++;
    expect("in use", merge(8), -EBUSY);
    frames[64 + 14].count_info--;
    expect_single();
    frames[64 + 15].u.inuse.type_info = PGT_writable_page | 1;
    expect("pinned", merge(8), -EBUSY);
    frames[64 + 15].u.inuse.type_info = 0;
    expect("busy", DSM->stats.busy, 2);
    frames[64 + 8].special = true;
    expect("special", merge(8), -EPERM);
    frames[64 + 8].special = false;
    dom.p2m.e[8].t = p2m_map_foreign;
    expect("foreign", merge(8), -EPERM);
    dom.p2m.e[8].t = p2m_ram_rw;
    expect_single();
    /* Somebody who knew a frame by its number. */
    for ( i = 8; i < 16; i++ )
    {
        number_taken = i;
        when_entry = take_number;
        expect("known", merge(8), -EBUSY);
        expect("references", frames[64 + i].count_info, PGC_allocated | 2);
        frames[64 + i].count_info--;
        expect_single();
    }
    dom.p2m.fails = true;
    expect("no page table", merge(8), -ENOMEM);
    dom.p2m.fails = false;
    expect_single();
    dies = true;
    expect("dying", merge(8), -ESRCH);
    dies = false;
    expect_single();
    expect("all that was allocated is back", whole_frames, true);
    expect("MERGE", merge(8), 0);
    dsm_relinquish(&dom);
    expect("dead", merge(16), -ESRCH);

    begin();
    whole_frames = true;
    when_paused = page_leaves;
    expect("one leaves meanwhile", merge(8), -ENODATA);
    expect("state", state_of(10), I);
    expect("order", dom.p2m.e[9].order, 0);
    expect("MFN", dom.p2m.e[9].mfn, 64 + 9);
    expect("all that was allocated is back", whole_frames, true);
    when_paused = domain_dies;
    expect("it dies meanwhile", merge(16), -ESRCH);
    expect("order", dom.p2m.e[16].order, 0);
    expect("all that was allocated is back", whole_frames, true);

    begin_slice();
    whole_frames = true;
    expect("homed elsewhere", merge(FAR), -EXDEV);
    range = &DSM->ranges[0];
    dsm_bits_set(&range->elsewhere, FAR - 1 - range->first);
    expect("one is homed elsewhere", merge(FAR - 8), -EXDEV);
    dsm_bits_clear(&range->elsewhere, FAR - 1 - range->first);
    expect("homed here", merge(FAR - 8), 0);
}

/* Of the node that most of its frames are of, not of the first. */
static void superpage_of_a_node(void)
{
    uint64_t done;

    begin_slice();
    whole_frames = true;
    expect("INVAL", op(XEN_DSM_INVAL, FAR - 8), 0);
    spare_frames = 1;
    expect("POOL_ADD", pool_op(XEN_DSM_POOL_ADD, 1, &done), 0);
    expect("INSTALL", op_buf(XEN_DSM_INSTALL_M, FAR - 8, buffer, NULL), 0);
    expect("a frame of another node", dom.p2m.e[FAR - 8].mfn, 128);
    expect("MERGE", merge(FAR - 8), 0);
    spare_frames = 0;
}

/* What the guest asks of Xen uses its pages by their frames. */
static void superpage_and_hypercalls(void)
{
    begin();
    whole_frames = true;
    current = dom.vcpu[1];
    expect("enters", dsm_gate_enter(dom.vcpu[1]), true);
    when_waiting = not_yet;
    expect("a hypercall that does not end", merge(8), -EBUSY);
    when_waiting = NULL;
    expect_single();
    expect("busy", DSM->stats.busy, 1);
    dsm_gate_leave(dom.vcpu[1]);
    expect("MERGE", merge(8), 0);
}

/* ---- All of it once more, by tables ---- */

/* Bring a frame into a state: memory from M, others from a hole. */
static void bring(unsigned long gfn, unsigned int state)
{
    if ( state == I || state == S )
        expect("bring", op(state == I ? XEN_DSM_INVAL : XEN_DSM_DOWNGRADE, gfn),
               0);
    expect("state", state_of(gfn), state);
}

static void each_operation(void)
{
    static const struct { unsigned int from, what; int rc; unsigned int to; } t[] = {
        { M, XEN_DSM_INVAL, 0, I },             { S, XEN_DSM_INVAL, 0, I },
        { I, XEN_DSM_INVAL, -EEXIST, I },       { HOLE, XEN_DSM_INVAL, -ENOENT, HOLE },
        { M, XEN_DSM_DOWNGRADE, 0, S },         { S, XEN_DSM_DOWNGRADE, -EEXIST, S },
        { I, XEN_DSM_DOWNGRADE, -EINVAL, I },   { HOLE, XEN_DSM_DOWNGRADE, -ENOENT, HOLE },
        { M, XEN_DSM_READ, -EINVAL, M },        { S, XEN_DSM_READ, 0, S },
        { I, XEN_DSM_READ, -EINVAL, I },        { HOLE, XEN_DSM_READ, -ENOENT, HOLE },
        { M, XEN_DSM_INSTALL_S, -EEXIST, M },   { S, XEN_DSM_INSTALL_S, -EEXIST, S },
        { I, XEN_DSM_INSTALL_S, 0, S },         { HOLE, XEN_DSM_INSTALL_S, -ENOENT, HOLE },
        { M, XEN_DSM_INSTALL_M, -EEXIST, M },   { S, XEN_DSM_INSTALL_M, -EEXIST, S },
        { I, XEN_DSM_INSTALL_M, 0, M },         { HOLE, XEN_DSM_INSTALL_M, -ENOENT, HOLE },
        { M, XEN_DSM_ZERO_M, -EEXIST, M },      { S, XEN_DSM_ZERO_M, -EEXIST, S },
        { I, XEN_DSM_ZERO_M, 0, M },            { HOLE, XEN_DSM_ZERO_M, -ENOENT, HOLE },
        { M, XEN_DSM_UPGRADE, -EEXIST, M },     { S, XEN_DSM_UPGRADE, 0, M },
        { I, XEN_DSM_UPGRADE, -EINVAL, I },     { HOLE, XEN_DSM_UPGRADE, -ENOENT, HOLE },
        { M, XEN_DSM_DROP, -EINVAL, M },        { S, XEN_DSM_DROP, -EINVAL, S },
        { I, XEN_DSM_DROP, 0, HOLE },           { HOLE, XEN_DSM_DROP, -EEXIST, HOLE },
        { M, XEN_DSM_WAKE, 0, M },              { I, XEN_DSM_WAKE, 0, I },
        { M, 99, -EINVAL, M },
    };
    unsigned int i;

    begin();
    for ( i = 0; i < ARRAY_SIZE(t); i++ )
    {
        /* The first frame of memory, and of the holes. */
        unsigned long gfn = t[i].from == HOLE ? MEMORY : 1;

        make_world();
        begin();
        memset(frames[64 + 1].bytes, 0x5a, PAGE_SIZE);
        bring(gfn, t[i].from);
        memset(buffer, 0x33, sizeof(buffer));
        if ( op(t[i].what, gfn) != t[i].rc || state_of(gfn) != t[i].to )
            die("operation %u from state %u", t[i].what, t[i].from);
        if ( t[i].what == XEN_DSM_READ && !t[i].rc && !holds(buffer, 0x5a) )
            die("READ gave other bytes");
    }

    begin();
    expect("behind the range", op(XEN_DSM_INVAL, IN_RANGE), -ERANGE);
    expect("its last", op(XEN_DSM_INVAL, IN_RANGE - 1), -ENOENT);
    bring(2, I);
    expect("no buffer", op_buf(XEN_DSM_INSTALL_M, 2, NULL, NULL), -EINVAL);
    expect("no buffer", op_buf(XEN_DSM_INSTALL_S, 2, NULL, NULL), -EINVAL);
    expect("none is needed", op_buf(XEN_DSM_ZERO_M, 2, NULL, NULL), 0);
    bring(2, S);
    expect("no buffer", op_buf(XEN_DSM_READ, 2, NULL, NULL), -EINVAL);
    dom.p2m.e[3].mfn = 1UL << 40;
    expect("no frame", op(XEN_DSM_INVAL, 3), -EPERM);
}

/* The guest removes its page: a hole, and not a page that is away. */
static void expect_freed(unsigned long gfn)
{
    unsigned long mfn = dom.p2m.e[gfn].mfn;

    dom.p2m.e[gfn].t = p2m_invalid;
    dom.p2m.e[gfn].mfn = ~0UL;
    expect("what is freed", state_of(gfn), HOLE);
    dom.p2m.e[gfn].t = p2m_ram_rw;
    dom.p2m.e[gfn].mfn = mfn;
}

static void misses_it(void)
{
    when_faulted = NULL;
    expect("waits", use(1, 1, false), true);
}

static void gave_up(void)
{
    begin();
    /* A copy that cannot be read by who wants it, while somebody misses it. */
    when_faulted = misses_it;
    expect("INVAL", op_buf(XEN_DSM_INVAL, 1, FAULTY, NULL), -EFAULT);
    expect("M", state_of(1), M);
    expect("goes on", dom.vcpu[1]->paused, 0);
    expect_freed(1);

    /* S is not M afterwards: others read it. */
    bring(1, S);
    expect("INVAL", op_buf(XEN_DSM_INVAL, 1, FAULTY, NULL), -EFAULT);
    expect("S", state_of(1), S);
    when_entry = gets_it;
    expect("INVAL", op(XEN_DSM_INVAL, 1), -EBUSY);
    expect("S", state_of(1), S);
    frames[65].count_info--;

    /* No page table for it. */
    dom.p2m.fails = true;
    expect("INVAL", op(XEN_DSM_INVAL, 2), -ENOMEM);
    dom.p2m.fails = false;
    expect_freed(2);

    /* What has left is nowhere, and what has come is away no more. */
    bring(3, I);
    expect("M2P", frames[67].m2p, INVALID_M2P_ENTRY);
    dom.p2m.fails = true;
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, 3), -ENOMEM);
    dom.p2m.fails = false;
    expect("M2P", frames[67].m2p, INVALID_M2P_ENTRY);
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, 3), 0);
    expect_freed(3);
}

static void no_more_tables(unsigned long gfn)
{
    frames[64 + gfn].count_info++;
    dom.p2m.fails = true;
    when_entry = NULL;
}

static void not_put_back(void)
{
    begin();
    when_entry = no_more_tables;
    expect("INVAL", op(XEN_DSM_INVAL, 1), -EBUSY);
    expect("the guest cannot go on", dom.crashed, true);
}

/* Frames of another slice, from there on, and a second has passed. */
enum { AWAY = 1 << 20 };

static void begin_away(unsigned int nr)
{
    xen_dsm_range_t range = { AWAY, 2000 };
    struct xen_dsm_op o = {
        .cmd = XEN_DSM_ENABLE,
        .u.enable = { .nr_ranges = 1, .nr_slices = 2, .ranges.p = &range },
    };
    uint64_t done;

    make_world();
    fake_now = MILLISECS(1000);
    expect("ENABLE", memop(&o), 0);
    expect("AWAY", frames_op(XEN_DSM_AWAY, AWAY, nr, &done), 0);
}

static void foreign_misses(uint64_t gfn)
{
    look_up(gfn, P2M_ALLOC);
    dsm_populate(&dom, _gfn(gfn));
}

static void foreign_crowd(void)
{
    struct vcpu other = { .domain = &dom0 };
    unsigned int i, n;

    begin_away(100);
    current = &other;
    for ( i = 0; i < DSM_FOREIGN; i++ )
    {
        foreign_misses(AWAY + i);
        expect("told", next_entry().gfn, AWAY + i);
    }
    foreign_misses(AWAY + i);
    expect("no room", next_entry().type, 0);
    expect("counted", DSM->stats.foreign, DSM_FOREIGN + 1);
    expect("lost", DSM->stats.foreign_lost, 1);

    /* One that was answered makes room, and none of the others. */
    expect("WAKE", op(XEN_DSM_WAKE, AWAY + 3), 0);
    current = &other;
    foreign_misses(AWAY + 4);
    expect("still under way", next_entry().type, 0);
    foreign_misses(AWAY + i);
    expect("told", next_entry().gfn, AWAY + i);
    foreign_misses(AWAY + i);
    expect("once", next_entry().type, 0);
    foreign_misses(AWAY + i + 1);
    expect("no room", next_entry().type, 0);

    /* So does time, much of it. */
    fake_now += MILLISECS(1000) - 1;
    foreign_misses(AWAY + i + 1);
    expect("no room", next_entry().type, 0);
    fake_now++;
    foreign_misses(AWAY + i + 1);
    expect("told", next_entry().gfn, AWAY + i + 1);

    /* But not of another one while there is a place. */
    expect("WAKE", op(XEN_DSM_WAKE, AWAY + i + 1), 0);
    expect("WAKE", op(XEN_DSM_WAKE, AWAY + 30), 0);
    current = &other;
    for ( i = 70; i < 72; i++ )
    {
        foreign_misses(AWAY + i);
        expect("told", next_entry().gfn, AWAY + i);
    }
    for ( i = 0; i < DSM_FOREIGN; i++ )
        expect("HOLE", hole_for(OTHERS, AWAY + i), 0);
    expect("all but 3, 30, and the one that made room", DSM->nr_foreign_holes,
           DSM_FOREIGN - 3);

    /* Another daemon is told of each. */
    for ( i = 0; i < 72; i++ )
        expect("WAKE", op(XEN_DSM_WAKE, AWAY + i), 0);
    for ( n = 0; n < 2; n++ )
    {
        current = &other;
        for ( i = 0; i < DSM_FOREIGN; i++ )
        {
            foreign_misses(AWAY + i);
            expect("told", next_entry().gfn, AWAY + i);
        }
        expect("FLUSH", flush(XEN_DSM_FLUSH_ALL, 0), 0);
    }

    /* A note makes none, as long as it is one. */
    for ( i = 0; i < DSM_FOREIGN; i++ )
    {
        current = &other;
        foreign_misses(AWAY + i);
        expect("told", next_entry().gfn, AWAY + i);
        fake_now += MILLISECS(1000);
        expect("HOLE", hole_for(OTHERS, AWAY + i), 0);
        fake_now -= MILLISECS(1000);
    }
    fake_now += MILLISECS(1001);
    current = &other;
    foreign_misses(AWAY + i);
    expect("no room", next_entry().type, 0);
    for ( n = 0; n < DSM_FOREIGN; n++ )
        expect("found", look_up(AWAY + n, P2M_ALLOC), p2m_mmio_dm);
    expect("WAKE", op(XEN_DSM_WAKE, AWAY + 5), 0);
    current = &other;
    foreign_misses(AWAY + i);
    expect("told", next_entry().gfn, AWAY + i);
    expect("the others are notes", DSM->nr_foreign_holes, DSM_FOREIGN - 1);
    foreign_misses(AWAY + i + 1);
    expect("no room", next_entry().type, 0);
}

/* Those that are looked at all the time make no room, however long it takes. */
static void foreign_polled(void)
{
    struct vcpu other = { .domain = &dom0 };
    unsigned int i, n;

    begin_away(100);
    current = &other;
    for ( n = 0; n < 30; n++ )
    {
        for ( i = 0; i < 64; i++ )
            foreign_misses(AWAY + i);
        fake_now += MILLISECS(40);
    }
    foreign_misses(AWAY + i);
    expect("lost", DSM->stats.foreign_lost, 1);
    for ( i = 0; i < 64; i++ )
        expect("told once", next_entry().gfn, AWAY + i);
    expect("not read, so not told again", next_entry().type, 0);
}

/* Another domain looks at it as a tool does: the look-up, and then it asks. */
static void foreign_looks(uint64_t gfn, unsigned int write)
{
    current = &of_dom0;
    expect("not here", look_up(gfn, P2M_ALLOC | write), p2m_ram_paged);
    dsm_populate(&dom, _gfn(gfn));
}

/* A question that was read and has no answer, and the ring goes on and on. */
static void foreign_for_ages(void)
{
    static const uint32_t further[] = {
        1, 0xfffe, 0xffff, 0x7fffffff, 0x80000000, 0x80000001, 0xfffff000, 0xffffffff,
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(further); i++ )
    {
        begin_away(100);
        foreign_looks(AWAY, 0);
        expect("told", next_entry().gfn, AWAY);
        foreign_looks(AWAY + 1, 0);
        DSM->prod += further[i];
        DSM->ring->prod = DSM->ring->cons = DSM->prod;
        fake_now += MILLISECS(50);
        foreign_looks(AWAY, 0);
        expect("told again", next_entry().gfn, AWAY);
        expect("HOLE", hole_before_reading(OTHERS, AWAY + 1), 0);
        expect("an answer", by_dom0(AWAY + 1), p2m_mmio_dm);
    }

    /* The oldest entry of a full ring, which was not read. */
    begin_away(100);
    foreign_looks(AWAY, 0);
    DSM->ring->prod = DSM->prod = DSM->ring->cons + DSM->ring_nr;
    fake_now += MILLISECS(50);
    foreign_looks(AWAY, 0);
    expect("it is there still", DSM->stats.foreign_lost, 0);
    expect("HOLE", hole_before_reading(OTHERS, AWAY), 0);
    expect("no answer", by_dom0(AWAY), p2m_ram_paged);
}

/* cons is what the daemon says it has read, prod in the ring nothing that it may say. */
static void foreign_lied(void)
{
    uint32_t ahead[] = { 1, 2, 0x7fffffff, 0x80000000 };
    struct xen_dsm_ring *ring;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(ahead); i++ )
    {
        begin_away(100);
        DSM->prod = DSM->ring->prod = DSM->ring->cons = 5000;
        foreign_looks(AWAY, 0);
        DSM->ring->cons = DSM->prod + ahead[i];
        expect("HOLE", hole_before_reading(OTHERS, AWAY), 0);
        expect("what is not there yet was not read", by_dom0(AWAY), p2m_ram_paged);
    }

    begin_away(100);
    foreign_looks(AWAY, 0);
    DSM->ring->cons = DSM->prod;
    DSM->ring->prod = 0;
    expect("HOLE", hole_before_reading(OTHERS, AWAY), 0);
    expect("its prod is nobody's business", by_dom0(AWAY), p2m_mmio_dm);

    begin_away(100);
    foreign_looks(AWAY, 0);
    ring = DSM->ring;
    DSM->ring = NULL;
    expect("HOLE", hole_before_reading(OTHERS, AWAY), 0);
    DSM->ring = ring;
    expect("without a ring nothing was read", by_dom0(AWAY), p2m_ram_paged);
}

/* The daemon has read the first report, and stands still: the next one is the last. */
static void foreign_stalled(void)
{
    unsigned int i;

    begin_away(100);
    DSM->prod = DSM->ring->prod = DSM->ring->cons = 7;
    foreign_looks(AWAY, 0);
    expect("read", next_entry().gfn, AWAY);
    for ( i = 0; i < 40; i++ )
    {
        fake_now += MILLISECS(50);
        foreign_looks(AWAY, 0);
    }
    expect("told once more", DSM->ring->prod - DSM->ring->cons, 1);
}

/* Nothing is left in a place of the frame that had it before. */
static void foreign_place(void)
{
    struct xen_dsm_ring_entry e;
    unsigned int i;

    begin_away(100);
    for ( i = 0; i < DSM_FOREIGN; i++ )
        foreign_looks(AWAY + i, P2M_UNSHARE);
    DSM->ring->cons = DSM->ring->prod;
    fake_now += SECONDS(1);
    foreign_looks(AWAY + i, 0);
    expect("HOLE", hole_before_reading(OTHERS, AWAY + i), 0);
    expect("that was the other one's entry", by_dom0(AWAY + i), p2m_ram_paged);
    e = next_entry();
    expect("told", e.gfn, AWAY + i);
    expect("and to read", e.want, XEN_DSM_WANT_S);
    foreign_looks(AWAY + i, P2M_UNSHARE);
    expect("to write is more", next_entry().want, XEN_DSM_WANT_M);
}

/* What there is no room for changes nothing of a question that is out. */
static void foreign_full(void)
{
    begin_away(100);
    foreign_looks(AWAY, 0);
    foreign_looks(AWAY + 1, 0);
    DSM->ring->cons = DSM->prod - DSM->ring_nr;
    foreign_looks(AWAY, P2M_UNSHARE);
    foreign_looks(AWAY + 1, P2M_UNSHARE);
    expect("lost", DSM->stats.foreign_lost, 2);
    DSM->ring->cons = DSM->prod;
    expect("HOLE", hole_before_reading(OTHERS, AWAY + 1), 0);
    expect("as it was asked", by_dom0(AWAY + 1), p2m_mmio_dm);
    foreign_looks(AWAY, P2M_UNSHARE);
    expect("when there is room", next_entry().want, XEN_DSM_WANT_M);

    /* Nor is it told later for that. */
    fake_now += MILLISECS(50);
    DSM->ring->prod = DSM->prod += DSM->ring_nr;
    foreign_looks(AWAY, 0);
    expect("lost", DSM->stats.foreign_lost, 3);
    DSM->ring->cons = DSM->prod;
    foreign_looks(AWAY, 0);
    expect("at once", next_entry().gfn, AWAY);
}

/* Who writes is answered as who reads, once, and asks as a writer on. */
static void foreign_writer(void)
{
    begin_away(100);
    foreign_looks(AWAY, P2M_UNSHARE);
    expect("HOLE", hole_for(OTHERS, AWAY), 0);
    expect("HOLE", hole_for(OTHERS, AWAY), 0);
    expect("one note", DSM->nr_foreign_holes, 1);

    foreign_looks(AWAY + 1, P2M_UNSHARE);
    expect("to write", next_entry().want, XEN_DSM_WANT_M);
    fake_now += MILLISECS(50);
    foreign_looks(AWAY + 1, 0);
    expect("a reader repeats it", next_entry().want, XEN_DSM_WANT_M);
    foreign_looks(AWAY + 1, P2M_UNSHARE);
    expect("and it is no more than that", next_entry().type, 0);
}

/*
 * More frames without memory than there is room for, and a home that takes
 * longer than Xen waits before it reports a miss again.
 */
static void slow_home(void)
{
    enum { NR = 300, HOME = 60 };
    struct vcpu other = { .domain = &dom0 };
    unsigned int i, found = 0, holes = 0;
    s_time_t end;
    bool has_found[NR] = {};
    s_time_t due[NR] = {};

    begin_away(NR);
    for ( end = fake_now + MILLISECS(3000); found < NR && fake_now < end; )
    {
        struct xen_dsm_ring_entry e;

        current = &other;
        for ( i = 0; i < NR; i++ )
        {
            if ( has_found[i] )
                continue;
            fake_now += 5000;
            has_found[i] = look_up(AWAY + i, P2M_ALLOC) == p2m_mmio_dm;
            found += has_found[i];
            if ( !has_found[i] )
                dsm_populate(&dom, _gfn(AWAY + i));
        }
        while ( (e = next_entry()).type )
            if ( !due[e.gfn - AWAY] )
                due[e.gfn - AWAY] = fake_now + MILLISECS(HOME);
        for ( i = 0; i < NR; i++ )
        {
            if ( !due[i] || fake_now < due[i] )
                continue;
            expect("HOLE", hole_for(OTHERS, AWAY + i), 0);
            due[i] = 0;
            holes++;
        }
        fake_now += 100000;
    }
    expect("all are found", found, NR);
    expect("each was asked for once", holes, NR);
}

/* One wait of so long is counted there. */
static void expect_bucket(uint64_t ns, unsigned int bucket)
{
    uint64_t was = DSM->stats.wait_hist[bucket];

    op(XEN_DSM_INVAL, 1);
    expect("waits", use(1, 1, false), true);
    fake_now += ns;
    op(XEN_DSM_INSTALL_M, 1);
    expect("its bucket", DSM->stats.wait_hist[bucket], was + 1);
}

static void how_long(void)
{
    begin();
    expect_bucket(0, 0);        /* 1 at least */
    expect_bucket(1, 0);
    expect_bucket(2, 4);
    expect_bucket(3, 6);
    expect_bucket(5, 9);
    expect_bucket(7, 11);
    expect_bucket(1UL << 40, XEN_DSM_STATS_BUCKETS - 1);
    expect_bucket(1UL << 61, XEN_DSM_STATS_BUCKETS - 1);
}

static void bad_ranges(void)
{
    static const struct { unsigned int nr; xen_dsm_range_t r[2]; int rc; } t[] = {
        { 0, { { 0, 8 } }, -EINVAL },
        { 1, { { 8, 0 } }, -EINVAL },
        { 1, { { (1UL << 36) - 1, 1 } }, 0 },
        { 1, { { (1UL << 36) - 1, 2 } }, -EINVAL },
        { 1, { { 1UL << 36, 1 } }, -EINVAL },
        { 1, { { ~0UL, 2 } }, -EINVAL },
        { 1, { { 0, XEN_DSM_MAX_FRAMES } }, 0 },
        { 1, { { 0, XEN_DSM_MAX_FRAMES + 1UL } }, -EINVAL },
        { 2, { { 0, XEN_DSM_MAX_FRAMES }, { 1UL << 30, 1 } }, -EINVAL },
    };
    xen_dsm_range_t many[XEN_DSM_MAX_RANGES + 1];
    struct xen_dsm_op o;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(t); i++ )
    {
        xen_dsm_range_t r[2] = { t[i].r[0], t[i].r[1] };

        make_world();
        o = (struct xen_dsm_op){ .cmd = XEN_DSM_ENABLE, .u.enable = {
            .nr_ranges = t[i].nr, .nr_slices = 1, .ranges.p = r } };
        if ( memop(&o) != t[i].rc )
            die("ranges number %u", i);
        if ( dom.arch.dsm )
            dsm_destroy(&dom);
    }
    for ( i = 0; i < ARRAY_SIZE(many); i++ )
        many[i] = (xen_dsm_range_t){ i, 1 };
    make_world();
    o = (struct xen_dsm_op){ .cmd = XEN_DSM_ENABLE, .u.enable = {
        .nr_ranges = ARRAY_SIZE(many), .nr_slices = 1, .ranges.p = many } };
    expect("too many", memop(&o), -EINVAL);
    o.u.enable.nr_ranges--;
    expect("the most", memop(&o), 0);
}

static void statistics(void)
{
    struct xen_dsm_stats stats;
    struct xen_dsm_op o = { .cmd = XEN_DSM_STATS, .u.stats.p = &stats };
    struct xen_dsm_op k = {
        .cmd = XEN_DSM_KEEPALIVE, .u.keepalive.timeout_ms = 100 };
    uint64_t done;
    unsigned int i;

    begin_slice();
    spare_frames = 3;
    expect("POOL_ADD", pool_op(XEN_DSM_POOL_ADD, 3, &done), 0);
    for ( i = 1; i <= 4; i++ )
        expect("INVAL", op(XEN_DSM_INVAL, i), 0);
    expect("INSTALL_S", op(XEN_DSM_INSTALL_S, 1), 0);
    expect("UPGRADE", op(XEN_DSM_UPGRADE, 1), 0);
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, 2), 0);
    expect("ZERO_M", op(XEN_DSM_ZERO_M, 3), 0);
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, 5), 0);
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, 6), 0);
    expect("DROP", op(XEN_DSM_DROP, FAR), 0);
    for ( i = 0; i <= DSM->ring_nr; i++ )
    {
        expect("waits", use(1, 4, false), true);
        op(XEN_DSM_WAKE, 4);
    }
    expect("KEEPALIVE", memop(&k), 0);
    expire();
    expect("STATS", memop(&o), 0);
    expect("invals", stats.invals, 4);
    expect("installs_s", stats.installs_s, 1);
    expect("installs_m", stats.installs_m, 2);
    expect("upgrades", stats.upgrades, 1);
    expect("downgrades", stats.downgrades, 2);
    expect("drops", stats.drops, 1);
    expect("waits", stats.waits, DSM->ring_nr + 1);
    expect("ring_full", stats.ring_full, 1);
    expect("pooled", stats.pooled, 4);
    expect("reserved", stats.reserved, 1);
    expect("added", stats.added, 3);
    expect("paused", stats.paused, 1);
    spare_frames = 0;
}

static const struct test_case cases[] = {
    { "what a look-up reports", fixup },
    { "bytes and frames", bytes_and_frames },
    { "a page in use", in_use },
    { "faults and no memory", faults },
    { "a miss, and who is woken", a_miss },
    { "the times before and behind a wait", before_and_behind },
    { "the time before another wait", before_another },
    { "clocks that differ", clocks_that_differ },
    { "what keeps a vCPU", kept },
    { "the page came meanwhile", it_came_meanwhile },
    { "a miss without a hint", without_a_hint },
    { "an operation that gives up", give_up },
    { "a second miss of one vCPU", second_miss },
    { "a full ring, and one that lies", full_ring },
    { "foreign misses", foreign },
    { "foreign misses that are not read", foreign_unread },
    { "the gate", the_gate },
    { "a hypercall that takes long", long_hypercall },
    { "killed during ENABLE", killed_meanwhile },
    { "the host gets cleared frames", cleared },
    { "a frame known by its number", by_number },
    { "a hypercall that is not covered", uncovered },
    { "a guest that frees", recall },
    { "what may be mapped and removed", may_change },
    { "bits of guest tables", table_bits },
    { "a grant that is mapped twice", granted },
    { "each operation from each state", each_operation },
    { "what gave up is as it was", gave_up },
    { "an entry that cannot be put back", not_put_back },
    { "more foreign misses than there is room for", foreign_crowd },
    { "foreign misses that are looked at all the time", foreign_polled },
    { "foreign misses, and a daemon that lies", foreign_lied },
    { "foreign misses of long ago", foreign_for_ages },
    { "foreign misses, and a daemon that stands still", foreign_stalled },
    { "foreign misses in another one's place", foreign_place },
    { "foreign misses, and a full ring", foreign_full },
    { "foreign misses of a writer", foreign_writer },
    { "a home that is slow", slow_home },
    { "how long it took", how_long },
    { "ranges that make no sense", bad_ranges },
    { "statistics", statistics },
    { "the end", dead },
    { "keepalive", keepalive },
    { "continuations and bad commands", continuation },
    { "frames become homed elsewhere", away },
    { "a hole for one access", a_hole },
    { "several holes", several_holes },
    { "a hole too late", a_hole_too_late },
    { "a hole that is told twice", a_hole_that_is_told_twice },
    { "a hole for two", a_hole_for_two },
    { "the end of a hole", the_end_of_a_hole },
    { "a hole for other domains", a_hole_for_others },
    { "holes for other domains", holes_for_others },
    { "a hole that is refused", a_refused_hole },
    { "a hole in state U", a_hole_in_u },
    { "frames for pages of other slices", frames_for_others },
    { "a guest's memory on another slice", populate_elsewhere },
    { "commands on many frames", many_frames },
    { "a superpage", superpage },
    { "no superpage", no_superpage },
    { "a superpage of a node", superpage_of_a_node },
    { "a superpage and hypercalls", superpage_and_hypercalls },
    { "refusals", refusals },
    { "ranges that overlap", overlapping },
    { "bits as they are used", bits_as_they_are_used },
    { "a device model", device_model },
    { "a page that is overwritten", overwritten },
    { "the ring's pages", ring_frames },
    { "another daemon", another_daemon },
    { "where a vCPU runs", placing },
    { "what is sent to a ghost", ghosts },
    { "more than the ring has room for", crowded },
    { "what another slice has sent", sent_here },
    { "time stamps", time_stamps },
    { "all slices shut down", shutting_down },
};

int main(int argc, char **argv)
{
    return main_of(cases, ARRAY_SIZE(cases), argc, argv);
}
