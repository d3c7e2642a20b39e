// SPDX-License-Identifier: GPL-2.0-only
/*
 * DSM that begins while superpages leave a guest: mem_range.c and mm/dsm.c in
 * one domain.
 *
 *   GFN 0 ── 31 memory, four superpages of 8 frames ── 32 ── 63 holes
 *
 * ENABLE does not take the p2m lock.  A page operation does, for all that it
 * looks at, so it finds what has left as a hole, and the rest as it is.
 *
 * usage: dsm_range_test --list | CASE
 */
#include "cases.h"
#include "fake_range.h"
#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/hvm/vlapic.h>
#include <xen/mem_range.h>
#include "world.h"

#define EXTENT (1UL << PAGE_ORDER_2M)
#define NR     4U

#define expect(what, got, want)                                         \
    do {                                                                \
        long got_ = (got), want_ = (want);                              \
        if ( got_ != want_ )                                            \
            die("%s: %ld, expected %ld", what, got_, want_);            \
    } while ( 0 )

static xen_pfn_t gfns[NR] = { 0, EXTENT, 2 * EXTENT, 3 * EXTENT };
static unsigned int entries, enabled_at, freed;

mfn_t get_gfn_type_access(struct p2m_domain *p2m, unsigned long gfn,
                          p2m_type_t *t, p2m_access_t *a, p2m_query_t q,
                          unsigned int *order)
{
    mfn_t mfn;

    gfn_lock(p2m, _gfn(gfn), 0);
    mfn = p2m->get_entry(p2m, _gfn(gfn), t, a, q, order, NULL);

    return dsm_enabled(&dom) ? dsm_p2m_fixup(p2m, _gfn(gfn), mfn, t, q, order)
                             : mfn;
}

void put_gfn(struct domain *d, unsigned long gfn)
{
    if ( d->p2m.locked == 1 && d->p2m.need_flush )
        die("a flush is left to others");
    gfn_unlock(&d->p2m, _gfn(gfn), 0);
}

void range_is_free(struct page_info *pg, unsigned int order)
{
    unsigned long i, mfn = mfn_x(page_to_mfn(pg));

    if ( dom.p2m.locked || dom.p2m.need_flush )
        die("MFN %lu is freed before the flush", mfn);
    for ( i = 0; i < 1UL << order; i++ )
    {
        if ( pg[i].owner != &dom || pg[i].count_info ||
             pg[i].m2p != INVALID_M2P_ENTRY )
            die("MFN %lu is freed twice, or in use", mfn + i);
        pg[i].owner = NULL;
    }
    freed += 1U << order;
}

/* vCPUs are no matter here. */
void vlapic_init_sipi_one(struct vcpu *v, uint32_t icr) { die("INIT"); }
void vlapic_accept_irq(struct vcpu *v, uint32_t icr) { die("an interrupt"); }

static int memop(struct xen_dsm_op *op)
{
    struct vcpu *was = current;
    int rc;

    op->version = XEN_DSM_INTERFACE_VERSION;
    op->domid = dom.domain_id;
    current = &(struct vcpu){ .domain = &dom0 };
    rc = dsm_memop((XEN_GUEST_HANDLE_PARAM(xen_dsm_op_t)){ op });
    current = was;

    return rc;
}

static void enable(void)
{
    xen_dsm_range_t range = { 0, 48 };
    struct xen_dsm_op op = {
        .cmd = XEN_DSM_ENABLE,
        .u.enable = { .nr_ranges = 1, .nr_slices = 2, .ranges.p = &range },
    };

    expect("ENABLE", memop(&op), 0);
}

static int page_op(unsigned int what, uint64_t gfn, unsigned int *state)
{
    xen_dsm_page_op_t page = { .gfn = gfn, .op = what };
    struct xen_dsm_op op = {
        .cmd = XEN_DSM_PAGE, .u.page = { .nr = 1, .ops.p = &page } };

    expect("PAGE", memop(&op), 0);
    if ( state )
        *state = page.state;

    return page.rc;
}

static void waits(unsigned long gfn)
{
    die("ENABLE would wait for the batch");
}

/*
 * On another CPU, which does not hold the p2m lock, and copies no page: what has
 * to be flushed is none of its business.
 */
static void enable_at_entry(unsigned long gfn)
{
    unsigned int locked = dom.p2m.locked;
    bool need_flush = dom.p2m.need_flush;

    if ( ++entries != enabled_at )
        return;
    dom.p2m.locked = 0;
    dom.p2m.need_flush = false;
    when_unlocked = waits;
    enable();
    when_unlocked = NULL;
    dom.p2m.locked = locked;
    dom.p2m.need_flush = need_flush;
}

/* The domain; DSM begins as the nth entry is changed. */
static void begin(unsigned int nth)
{
    unsigned long i;

    make_world();
    for ( i = 0; i < NR * EXTENT; i++ )
        dom.p2m.e[i].order = PAGE_ORDER_2M;
    enabled_at = nth;
    when_entry = enable_at_entry;
}

static unsigned int leave(unsigned int nr)
{
    return guest_remove_ranges(&dom, (XEN_GUEST_HANDLE(xen_pfn_t)){ gfns }, 0,
                               nr, PAGE_ORDER_2M);
}

/* Of NR superpages the first nr have left, and for DSM they are holes. */
static void expect_gone(unsigned int nr)
{
    unsigned int state;
    unsigned long i;

    when_entry = NULL;
    expect("frames that are free", freed, nr * EXTENT);
    expect("flushes", flushes, nr ? 1 : 0);
    expect("locks", dom.p2m.locked, 0);
    for ( i = 0; i < NR * EXTENT; i++ )
    {
        expect("QUERY", page_op(XEN_DSM_QUERY, i, &state), 0);
        expect("state", state, i < nr * EXTENT ? XEN_DSM_STATE_HOLE
                                               : XEN_DSM_STATE_M);
    }
}

static void at(unsigned int nth)
{
    begin(nth);
    expect("gone", leave(NR), NR);
    expect_gone(NR);
    expect("a page that has left is taken away", page_op(XEN_DSM_INVAL, 9, NULL),
           -ENOENT);
    expect("and given", page_op(XEN_DSM_ZERO_M, 9, NULL), -ENOENT);
}
static void at_first(void) { at(1); }
static void at_third(void) { at(3); }
static void at_last(void) { at(4); }

static void homed_elsewhere_then(void)
{
    struct xen_dsm_op op = {
        .cmd = XEN_DSM_AWAY, .u.frames = { .first = 0, .nr = NR * EXTENT } };

    at(2);
    expect("AWAY", memop(&op), 0);
    expect("done", op.u.frames.done, NR * EXTENT);
}

static void the_rest_stays(void)
{
    begin(2);
    expect("gone", leave(2), 2);
    expect_gone(2);
    expect("a page leaves", page_op(XEN_DSM_INVAL, 2 * EXTENT + 3, NULL), 0);
    expect("the next batch", leave(NR), 0);
    expect("its superpage", guest_remove_range(&dom, _gfn(2 * EXTENT),
                                               PAGE_ORDER_2M), -EAGAIN);
    expect("it is away", dsm_recall(&dom, _gfn(2 * EXTENT), PAGE_ORDER_2M),
           -EBUSY);
    flushes = 0;
    expect("the one behind it", guest_remove_range(&dom, _gfn(3 * EXTENT),
                                                   PAGE_ORDER_2M), 0);
    expect("frames that are free", freed, 3 * EXTENT);
    expect("flushes", flushes, 1);
}

static void of_one(void)
{
    begin(1);
    expect("gone", guest_remove_range(&dom, _gfn(0), PAGE_ORDER_2M), 0);
    expect_gone(1);
}

/* Before the batch has the lock. */
static void before(void)
{
    begin(0);
    enable();
    expect("gone", leave(NR), 0);
    expect_gone(0);
}

static const struct test_case cases[] = {
    { "DSM begins as the first of a batch leaves", at_first },
    { "DSM begins as the third of a batch leaves", at_third },
    { "DSM begins as the last of a batch leaves", at_last },
    { "DSM begins in a batch: what has left can be homed elsewhere", homed_elsewhere_then },
    { "DSM begins in a batch: what has not left is DSM's", the_rest_stays },
    { "DSM begins as one superpage leaves", of_one },
    { "DSM has begun: no batch", before },
};

int main(int argc, char **argv)
{
    return main_of(cases, ARRAY_SIZE(cases), argc, argv);
}
