// SPDX-License-Identifier: GPL-2.0-only
/*
 * XENMEM_decrease_reservation: which way each extent of a list leaves, and where
 * the hypercall goes on that was ended in between.
 *
 * What hooks 0003 and 0030 put into decrease_reservation() (hook-HOOK-memory-N.h,
 * the Nth place; test_mem_range.py makes them), within what upstream has around
 * it, on mem_range.c and fake.c.
 *
 * usage: decrease_test --list | CASE
 */
#include "mem_range_cases.h"

#define NR 40U

static xen_pfn_t gfns[NR];
static unsigned int pages[NR];  /* of each extent, that left one by one */
static unsigned int recalls[NR];
static unsigned int pod;        /* the extent that is populated on demand; 0: none */
static unsigned int stuck;      /* the extent of which a page cannot leave; 0: none */
static int recalled;            /* dsm_recall() of extent 5, the first time */

static unsigned int nth(unsigned long gfn)
{
    return (gfn - GFN0) / EXTENT;
}

/* Each page once, and in order. */
static int guest_remove_page(struct domain *d, unsigned long gfn)
{
    unsigned int n = nth(gfn);

    if ( d != &dom || n >= NR )
        die("page %#lx is removed", gfn);
    if ( n && (n == stuck || n == pod) )
        return n == pod ? -ENOENT : -EINVAL;
    if ( fake.p2m[gfn].type == p2m_invalid )
        die("page %#lx has left already", gfn);
    fake.p2m[gfn].type = p2m_invalid;
    pages[n]++;

    return 0;
}

static unsigned long p2m_pod_decrease_reservation(struct domain *d, gfn_t gfn,
                                                  unsigned int order)
{
    return pod && nth(gfn_x(gfn)) == pod ? 1UL << order : 0;
}

static int dsm_recall(struct domain *d, gfn_t gfn, unsigned int order)
{
    unsigned int n = nth(gfn_x(gfn));

    if ( !d->dsm )
        return 0;

    return n != 5 || recalls[n]++ ? 0 : recalled;
}

struct memop_args {
    struct domain *domain;
    XEN_GUEST_HANDLE(xen_pfn_t) extent_list;
    unsigned int nr_extents, extent_order, nr_done;
    int preempted;
};

static void decrease_reservation(struct memop_args *a)
{
    unsigned long i, j;
    xen_pfn_t gmfn;

    for ( i = a->nr_done; i < a->nr_extents; i++ )
    {
        unsigned long pod_done;
#include "hook-0003-memory-2.h"

        if ( i != a->nr_done && hypercall_preempt_check() )
        {
            a->preempted = 1;
            goto out;
        }

#include "hook-0003-memory-3.h"

        if ( unlikely(__copy_from_guest_offset(&gmfn, a->extent_list, i, 1)) )
            goto out;

#include "hook-0030-memory-3.h"

        pod_done = is_hvm_domain(a->domain) ?
                   p2m_pod_decrease_reservation(a->domain, _gfn(gmfn),
                                                a->extent_order) : 0;

#include "hook-0003-memory-4.h"

        for ( j = 0; j + pod_done < (1UL << a->extent_order); j++ )
        {
            switch ( guest_remove_page(a->domain, gmfn + j) )
            {
            case 0:
                break;
            case -ENOENT:
                if ( !pod_done )
                    goto out;
                --pod_done;
                break;
            default:
                goto out;
            }
        }
    }

 out:
    a->nr_done = i;
}

struct test_case {
    const char *name;
    void (*arrange)(void);
    unsigned int from, order;
    unsigned int done;                  /* what the hypercall says */
    unsigned int whole;                 /* extents that left as such */
    unsigned int by_page;               /* the one that did not; 0: none */
    unsigned int batches, calls;
};

static void plain(void)
{
    unsigned int n;

    for ( n = 0; n < NR; n++ )
        map(gfns[n], MFN0 + n * EXTENT, 9);
}

static void small(void)
{
    unsigned int n;

    for ( n = 0; n < NR; n++ )
        map(gfns[n], MFN0 + n * EXTENT, 0);
}

#define WITH(name, action) static void name(void) { plain(); action; }
WITH(fifth_in_use, fake.frames[MFN0 + 5 * EXTENT + 9].count_info++)
WITH(fifth_stuck, fifth_in_use(); stuck = 5)
WITH(fifth_on_demand, dom.p2m.pod.entry_count = 1; pod = 5)
WITH(dsm, dom.dsm = true)
WITH(dsm_elsewhere, dom.dsm = true; recalled = 1)
WITH(dsm_waits, dom.dsm = true; recalled = -ERESTART)
WITH(dsm_refuses, dom.dsm = true; recalled = -EBUSY)
WITH(urgent_always, fake.urgent_from = 1)
WITH(urgent_sometimes, fake.urgent_from = 7)
WITH(urgent_between, fake.urgent_from = 32)
static void unreadable(void) { plain(); }

static const struct test_case cases[] = {
    { "40 extents: two batches", plain, 0, 9, NR, NR, 0, 2, 1 },
    { "the last ones of a list", plain, 30, 9, NR, 10, 0, 1, 1 },
    { "the last one", plain, 39, 9, NR, 1, 0, 0, 1 },
    { "4 KiB: page by page", small, 0, 0, NR, 0, 0, 0, 1 },
    { "one is in use: it goes page by page", fifth_in_use, 0, 9, NR, NR - 1, 5, 3, 1 },
    { "a page of one cannot leave: it ends there", fifth_stuck, 0, 9, 5, 5, 0, 1, 1 },
    { "one is populated on demand", fifth_on_demand, 0, 9, NR, NR - 1, 0, 0, 1 },
    { "DSM: each by itself", dsm, 0, 9, NR, NR, 0, 0, 1 },
    { "DSM: one is homed elsewhere", dsm_elsewhere, 0, 9, NR, NR - 1, 0, 0, 1 },
    { "DSM: one is waited for", dsm_waits, 0, 9, NR, NR, 0, 0, 2 },
    { "DSM: one does not come", dsm_refuses, 0, 9, 5, 5, 0, 0, 1 },
    { "something is always urgent: one for each call", urgent_always, 0, 9, NR, NR, 0, 0, NR },
    { "something is urgent now and then", urgent_sometimes, 0, 9, NR, NR, 0, 6, 6 },
    { "something is urgent between two batches", urgent_between, 0, 9, NR, NR, 0, 2, 2 },
    { "the list ends before its end", unreadable, 0, 9, 36, 36, 0, 1, 1 },
};

/*
 * As hypercall_create_continuation(): with what is done in the place of 0.  What
 * was urgent is done before.
 */
static unsigned int hypercall(struct memop_args *a)
{
    unsigned int calls = 0;

    do {
        unsigned int before = a->nr_done;

        a->preempted = 0;
        fake.asked = 0;
        decrease_reservation(a);
        if ( ++calls > 2 * NR )
            die("it does not end");
        if ( a->nr_done < before || a->nr_done > a->nr_extents )
            die("%u are done, %u were", a->nr_done, before);
    } while ( a->preempted );

    return calls;
}

/* Whether an extent is one that the case has leave as a whole. */
static bool leaves(const struct test_case *t, unsigned int n)
{
    if ( !t->order || n < t->from || n >= t->done )
        return false;
    if ( t->by_page && n == t->by_page )
        return false;

    return n != 5 || !(pod || recalled == 1);
}

static void check_extent(const struct test_case *t, unsigned int n)
{
    bool gone = leaves(t, n);
    unsigned long i;

    for ( i = 0; gone && i < EXTENT; i++ )
        if ( !fake.frames[MFN0 + n * EXTENT + i].free )
            die("extent %u: frame %lu is there", n, i);
    if ( !gone && fake.frames[MFN0 + n * EXTENT].free )
        die("extent %u has left", n);
    if ( pages[n] != (!t->order ? 1 : t->by_page && n == t->by_page ? EXTENT : 0) )
        die("extent %u: %u pages one by one", n, pages[n]);
}

static void run(const struct test_case *t)
{
    struct memop_args a = {
        .domain = &dom, .extent_list = { gfns, NR },
        .nr_extents = NR, .extent_order = t->order, .nr_done = t->from,
    };
    unsigned int n, calls;

    arrange_domain();
    for ( n = 0; n < NR; n++ )
        gfns[n] = GFN0 + n * EXTENT;
    t->arrange();
    if ( t->arrange == unreadable )
        a.extent_list.readable = t->done;
    calls = hypercall(&a);

    if ( a.nr_done != t->done )
        die("%u are done, expected %u", a.nr_done, t->done);
    if ( calls != t->calls )
        die("%u calls, expected %u", calls, t->calls);
    if ( fake.perfc[PERFC_range_removed] != t->whole )
        die("%u left as a whole, expected %u", fake.perfc[PERFC_range_removed],
            t->whole);
    if ( fake.perfc[PERFC_range_batches] != t->batches )
        die("%u batches, expected %u", fake.perfc[PERFC_range_batches],
            t->batches);
    if ( fake.perfc[PERFC_range_refused_extent] )
        die("4 KiB are no superpage");
    for ( n = 0; n < NR; n++ )
        check_extent(t, n);
    check_flushes();
}

#include "cases_main.h"
