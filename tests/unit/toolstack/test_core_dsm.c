// SPDX-License-Identifier: GPL-2.0
/*
 * Which pages a core file has: xg_core_dsm.c, with a hypervisor that is
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

/* What Xen says of its vNUMA; errno of a call, from which one on. */
static struct {
    xen_vmemrange_t ranges[3];
    unsigned int nr;            /* 0: it has none */
    int error;
    unsigned int from, calls;
} vnuma;

int xc_domain_getvnuma(xc_interface *xch, uint32_t domid, uint32_t *nr_vnodes,
                       uint32_t *nr_vmemranges, uint32_t *nr_vcpus,
                       xen_vmemrange_t *vmemrange, unsigned int *vdistance,
                       unsigned int *vcpu_to_vnode)
{
    bool room = *nr_vnodes >= 2 && *nr_vmemranges >= vnuma.nr && *nr_vcpus >= 3;

    wrong |= xch || domid != 7;
    errno = !vnuma.nr ? EOPNOTSUPP : ENOBUFS;
    if ( vnuma.error && vnuma.calls++ >= vnuma.from )
        errno = vnuma.error;
    else if ( vnuma.nr && room )
    {
        memcpy(vmemrange, vnuma.ranges, vnuma.nr * sizeof(*vmemrange));
        memset(vdistance, 0, 4 * sizeof(*vdistance));
        memset(vcpu_to_vnode, 0, 3 * sizeof(*vcpu_to_vnode));
        errno = 0;
    }
    *nr_vnodes = 2;
    *nr_vmemranges = vnuma.nr;
    *nr_vcpus = 3;

    return errno ? -1 : 0;
}

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
    memset(&vnuma, 0, sizeof(vnuma));
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

static xc_core_memory_map_t *copy_of(const xc_core_memory_map_t *map,
                                     unsigned int nr)
{
    xc_core_memory_map_t *copy = malloc((nr + !nr) * sizeof(*copy));

    if ( copy && nr )
        memcpy(copy, map, nr * sizeof(*copy));

    return copy;
}

/* Is each page in one area, and nothing else; and are areas as few as can be? */
static bool is_map_of(const xc_core_memory_map_t *found, unsigned int nr,
                      const xc_core_memory_map_t *map, unsigned int nr_map)
{
    static uint8_t in[GFNS + 1];
    unsigned int i, gfn, first, last = 0, areas = 0;

    memset(in, 0, sizeof(in));
    for ( i = 0; i < nr; i++ )
    {
        first = found[i].addr >> PAGE_SHIFT;
        if ( !found[i].size || (i && first <= last) )
            return false;
        last = first + (found[i].size >> PAGE_SHIFT);
        if ( last > GFNS )
            return false;
        for ( gfn = first; gfn < last; gfn++ )
            in[gfn]++;
    }

    for ( i = 0; i < nr_map; i++ )
        for ( gfn = map[i].addr >> PAGE_SHIFT;
              gfn < (map[i].addr + map[i].size) >> PAGE_SHIFT; gfn++ )
        {
            if ( in[gfn] != wanted(gfn, gfn + 1) )
                return false;
            areas += in[gfn] && (!gfn || !(in[gfn - 1] & 1));
            in[gfn] |= 2;
        }
    for ( gfn = 0; gfn < GFNS; gfn++ )
        if ( in[gfn] == 1 )
            return false;

    return areas == nr;
}

/* Given one area, there is memory in those of a map. */
static void counts_in(const char *name, const xc_core_memory_map_t *given,
                      unsigned int nr_given, const xc_core_memory_map_t *map,
                      unsigned int nr_map, unsigned long frames,
                      unsigned long pages)
{
    xc_core_memory_map_t *found = copy_of(given, nr_given);
    unsigned int nr_found = nr_given;
    unsigned long nr = frames;
    int rc = xc_core_dsm_map(NULL, 7, &found, &nr_found, &nr);
    bool twice = false, right;
    unsigned int gfn;

    for ( gfn = 0; gfn < GFNS; gfn++ )
        twice |= asked[gfn] > 1;
    right = is_map_of(found, nr_found, map, nr_map);
    if ( rc || nr != pages || !right )
        note("%d, %lu pages, not %lu, in %u areas", rc, nr, pages, nr_found);
    ok_(name, !rc && nr == pages && right && !wrong && !twice &&
              largest <= XEN_DSM_MAX_PAGE_OPS);
    free(found);
}

static void counts(const char *name, const xc_core_memory_map_t *map,
                   unsigned int nr_map, unsigned long frames,
                   unsigned long pages)
{
    counts_in(name, map, nr_map, map, nr_map, frames, pages);
}

/* Where memory is says vNUMA: the highest frame that is mapped is another one. */
static void test_vnuma(void)
{
    const xc_core_memory_map_t memory[] = {
        { 0, 64ULL << PAGE_SHIFT },
        { 1000ULL << PAGE_SHIFT, 2000ULL << PAGE_SHIFT },
        { 4000ULL << PAGE_SHIFT, 0 },
    };
    const xc_core_memory_map_t mapped[] = {
        { 0, 40ULL << PAGE_SHIFT }, { 0, (uint64_t)GFNS << PAGE_SHIFT },
    };
    static const int errors[] = { ESRCH, EPERM };
    static const char *const names[] = {
        "vNUMA: no domain", "vNUMA: the domain has gone meanwhile",
        "vNUMA: who asks may not", "vNUMA: who asks may no more",
    };
    unsigned int i;

    for ( i = 0; i < 6; i++ )
    {
        const xc_core_memory_map_t *given = &mapped[i % 2];
        xc_core_memory_map_t *was = copy_of(given, 1), *now = was;
        unsigned int k, nr_now = 1;
        unsigned long nr = 5;

        guest();
        vnuma.nr = NR(memory);
        for ( k = 0; k < vnuma.nr; k++ )
            vnuma.ranges[k] = (xen_vmemrange_t){
                .start = memory[k].addr,
                .end = memory[k].addr + memory[k].size,
            };
        if ( i < 2 )
            counts_in(i ? "less memory than frames" : "more memory than frames",
                      given, 1, memory, NR(memory), 0,
                      wanted(0, 64) + wanted(1000, 3000));
        else
        {
            vnuma.error = errors[i / 2 - 1];
            vnuma.from = i % 2;
            ok_(names[i - 2],
                xc_core_dsm_map(NULL, 7, &now, &nr_now, &nr) == -1 &&
                errno == vnuma.error && nr == 5 && now == was && nr_now == 1);
        }
        free(now);
    }
}

static void test_counts(void)
{
    static const unsigned int ends[] = {
        2, VGA_FIRST, VGA_END, VGA_END + 1, XEN_DSM_MAX_PAGE_OPS - 1,
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
    ranges_end = 1500;
    counts("what is in no range", two, 2, 0, wanted(0, 64) + wanted(1000, 1500));
    guest();
    counts("more frames than pages: those of a pool are none", two, 2, GFNS,
           wanted(0, 64) + wanted(1000, 3000));
}

/* What was asked for is as it was: the same memory, too. */
static bool is_unchanged(const xc_core_memory_map_t *now, unsigned int nr_now,
                         const xc_core_memory_map_t *was,
                         const xc_core_memory_map_t *map, unsigned int nr_map)
{
    return now == was && nr_now == nr_map &&
           !memcmp(now, map, nr_map * sizeof(*map));
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
        xc_core_memory_map_t *was = copy_of(&map, 1), *now = was;
        unsigned int nr_now = 1;
        unsigned long nr = 17;
        int rc, error;

        guest();
        fails_with = t[i].error;
        fails_from = t[i].from;
        rc = xc_core_dsm_map(NULL, 7, &now, &nr_now, &nr);
        error = errno;
        ok_(t[i].name, rc == t[i].rc && nr == 17 && calls == t[i].from + 1 &&
                       (!rc || error == t[i].error) &&
                       is_unchanged(now, nr_now, was, &map, 1));
        free(now);
    }
}

/* Nothing that is a page: as stock has it. */
static void test_nothing(void)
{
    const xc_core_memory_map_t maps[] = {
        { 0, 1ULL << PAGE_SHIFT }, { 0, 0 },
    };
    unsigned int i;

    for ( i = 0; i < NR(maps); i++ )
    {
        xc_core_memory_map_t *was = copy_of(&maps[i], 1), *now = was;
        unsigned int nr_now = 1;
        unsigned long nr = 5;
        int rc;

        guest();
        rc = xc_core_dsm_map(NULL, 7, &now, &nr_now, &nr);
        ok_(i ? "no frame" : "no page", !rc && nr == 5 && !wrong &&
                                        is_unchanged(now, nr_now, was, &maps[i], 1));
        free(now);
    }
}

int main(void)
{
    test_counts();
    test_vnuma();
    test_errors();
    test_nothing();

    return done_testing();
}
