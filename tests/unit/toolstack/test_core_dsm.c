// SPDX-License-Identifier: GPL-2.0
/*
 * How many pages a core file has: xg_core_dsm.c, with a hypervisor that is
 * played.
 */
#include <errno.h>
#include <stdlib.h>

#include "tap.h"
#include "xenctrl_dsm.h"
#include "xg_core_dsm.h"

#define GFNS (5 * XEN_DSM_MAX_PAGE_OPS)
#define VGA_FIRST 0xa0
#define VGA_END 0xc0

/* The guest: XEN_DSM_STATE_* of each frame, and what is in no range. */
static uint8_t states[GFNS];
static unsigned int ranges_end;
static int fails_with;          /* errno of a call, */
static unsigned int fails_from; /* from this one on */

static unsigned int calls, largest;
static uint8_t asked[GFNS];
static bool wrong;

int xc_core_arch_gpfn_may_present(struct xc_core_arch_context *context,
                                  unsigned long pfn)
{
    (void)context;

    return pfn < VGA_FIRST || pfn >= VGA_END;
}

int xc_dsm_page(xc_interface *xch, uint32_t domid, xen_dsm_page_op_t *ops,
                unsigned int nr)
{
    unsigned int i;

    wrong |= xch || domid != 7 || !nr;
    largest = nr > largest ? nr : largest;
    if ( fails_with && calls++ >= fails_from )
    {
        errno = fails_with;
        return -1;
    }

    for ( i = 0; i < nr; i++ )
    {
        uint64_t gfn = ops[i].gfn;

        wrong |= gfn >= GFNS || ops[i].op != XEN_DSM_QUERY || ops[i].flags ||
                 ops[i].wanted || ops[i].buf.p;
        if ( wrong )
            return 0;
        asked[gfn]++;
        ops[i].rc = gfn < ranges_end ? 0 : -ERANGE;
        /* As Xen: the state is told with an error, too. */
        ops[i].state = states[gfn];
    }

    return 0;
}

static void guest(void)
{
    unsigned int gfn;

    /* 0: a hole, 1 to 5: each other state. */
    for ( gfn = 0; gfn < GFNS; gfn++ )
        states[gfn] = gfn % 6;
    ranges_end = GFNS;
    fails_with = 0;
    fails_from = calls = largest = 0;
    memset(asked, 0, sizeof(asked));
    wrong = false;
}

/* What is there, by counting otherwise. */
static unsigned long wanted(unsigned int first, unsigned int end)
{
    unsigned long pages = 0;
    unsigned int gfn;

    for ( gfn = first; gfn < end && gfn < ranges_end; gfn++ )
        pages += (gfn < VGA_FIRST || gfn >= VGA_END) && gfn % 6;

    return pages;
}

static void counts(const char *name, const xc_core_memory_map_t *map,
                   unsigned int nr_map, unsigned long frames,
                   unsigned long pages)
{
    unsigned long nr = frames;
    int rc = xc_core_dsm_nr_pages(NULL, 7, map, nr_map, &nr);
    bool twice = false;
    unsigned int gfn;

    for ( gfn = 0; gfn < GFNS; gfn++ )
        twice |= asked[gfn] > 1;
    if ( rc || nr != pages )
        note("%d, %lu pages, not %lu", rc, nr, pages);
    ok_(name, !rc && nr == pages && !wrong && !twice &&
              largest <= XEN_DSM_MAX_PAGE_OPS);
}

static void test_counts(void)
{
    static const unsigned int ends[] = {
        1, 2, VGA_FIRST, VGA_END, VGA_END + 1, XEN_DSM_MAX_PAGE_OPS - 1,
        XEN_DSM_MAX_PAGE_OPS + VGA_END - VGA_FIRST,
        XEN_DSM_MAX_PAGE_OPS + VGA_END - VGA_FIRST + 1, GFNS,
    };
    const xc_core_memory_map_t two[] = {
        { 0, 64ULL << PAGE_SHIFT },
        { 1000ULL << PAGE_SHIFT, 2000ULL << PAGE_SHIFT },
    };
    unsigned int i;

    for ( i = 0; i < NR(ends); i++ )
    {
        const xc_core_memory_map_t map = { 0, (uint64_t)ends[i] << PAGE_SHIFT };
        char name[64];

        guest();
        snprintf(name, sizeof(name), "each state but holes, of %u frames", ends[i]);
        counts(name, &map, 1, 0, wanted(0, ends[i]));
    }

    guest();
    counts("two areas", two, 2, 0, wanted(0, 64) + wanted(1000, 3000));
    guest();
    counts("no area", two, 0, 5, 5);
    guest();
    ranges_end = 1500;
    counts("what is in no range", two, 2, 0, wanted(0, 64) + wanted(1000, 1500));
    guest();
    counts("more frames than pages: as many as ever", two, 2, GFNS, GFNS);
}

static void test_errors(void)
{
    const xc_core_memory_map_t map = { 0, (uint64_t)GFNS << PAGE_SHIFT };
    static const struct {
        const char *name;
        int error;
        unsigned int from;
        int rc;
    } t[] = {
        { "a domain without DSM", ENODEV, 0, 0 },
        { "a hypervisor without DSM", ENOSYS, 0, 0 },
        { "who asks may not", EPERM, 0, -1 },
        { "no memory", ENOMEM, 0, -1 },
        { "the domain has gone meanwhile", ESRCH, 2, -1 },
        { "the last question fails", ESRCH, 4, -1 },
    };
    unsigned int i;

    for ( i = 0; i < NR(t); i++ )
    {
        unsigned long nr = 17;
        int rc;

        guest();
        fails_with = t[i].error;
        fails_from = t[i].from;
        rc = xc_core_dsm_nr_pages(NULL, 7, &map, 1, &nr);
        ok_(t[i].name, rc == t[i].rc && nr == 17 && calls == t[i].from + 1 &&
                       (!rc || errno == t[i].error));
    }
}

int main(void)
{
    test_counts();
    test_errors();

    return done_testing();
}
