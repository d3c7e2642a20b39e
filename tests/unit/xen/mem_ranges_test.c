// SPDX-License-Identifier: GPL-2.0-only
/*
 * guest_remove_ranges(): the first extents of a list leave, all with one flush,
 * and of the others nothing was changed.
 *
 *   list ─ 0 ─ 1 ─ 2 ─ ... ─ 39 ─┐     GFN0 + 512 * n, of one 2 MiB entry each
 *               └─ from      to ─┘
 *
 * That no frame is freed which a TLB may still have is seen to by fake.c: each
 * case would end there.
 *
 * usage: mem_ranges_test --list | CASE
 */
#include "mem_range_cases.h"

#define NR     40U
#define LIMIT  32U              /* extents of a batch */

static xen_pfn_t gfns[NR];

struct test_case {
    const char *name;
    void (*arrange)(void);
    unsigned int from, to, order;
    unsigned int gone;                  /* how many are expected to leave */
    void (*check)(void);                /* beyond the rules below */
};

static unsigned long mfn_of(unsigned int n) { return MFN0 + n * EXTENT; }
static struct page_info *frame(unsigned int n, unsigned long i)
{
    return &fake.frames[mfn_of(n) + i];
}

static void arrange_default(void)
{
    unsigned int n;

    arrange_domain();
    for ( n = 0; n < NR; n++ )
        gfns[n] = GFN0 + n * EXTENT;
}

static void plain(void)
{
    unsigned int n;

    for ( n = 0; n < NR; n++ )
        map(gfns[n], mfn_of(n), 9);
}

/* What is unusual with the domain or the hypervisor. */
#define WITH(name, action) static void name(void) { plain(); action; }
WITH(ept, fake.defer_flush = true)
WITH(callers_lock, dom.p2m.locked = fake.callers_lock = 1)
WITH(ept_callers_lock, fake.defer_flush = true; dom.p2m.locked = fake.callers_lock = 1)
WITH(switched_off, *fake_param = false)
WITH(pv, dom.hvm = false)
WITH(shadow, dom.hap = false)
WITH(iommu, dom.iommu = true)
WITH(log_dirty, dom.log_dirty = true)
WITH(altp2m, dom.altp2m = true)
WITH(dying, dom.is_dying = true)
WITH(dsm, dom.dsm = true)
WITH(nested, dom.nested = true)
WITH(pod, dom.p2m.pod.entry_count = 1)
WITH(traced, fake.traced = true)
WITH(no_2mb, fake.has_2mb = false)
WITH(urgent, fake.urgent_from = 3)
WITH(urgent_at_once, fake.urgent_from = 1)

/* What is unusual with the third of them, n = 2. */
WITH(third_in_use, frame(2, 200)->count_info++)
WITH(third_in_use_at_end, frame(2, 511)->count_info++)
WITH(third_misaligned, gfns[2]++)
WITH(third_twice, gfns[2] = gfns[1])
WITH(third_beyond, gfns[2] = ~511UL)
WITH(third_fails, fake.fails_after = 2; fake.set_entry = SET_FAILS_UNCHANGED)
WITH(third_fails_half_way, fake.fails_after = 2; fake.set_entry = SET_FAILS_CHANGED)
WITH(third_far_away, gfns[2] = gfns[9])
WITH(two_nodes, fake.second_node = mfn_of(6))
WITH(node_in_between, fake.second_node = mfn_of(2); fake.first_again = mfn_of(3))
WITH(first_fails_split, dom.p2m.locked = fake.callers_lock = 1; fake.set_entry = SET_FAILS_SPLIT)
WITH(first_in_use, frame(0, 0)->count_info++)
WITH(second_misaligned, gfns[1]++)

static void gib(void)
{
    map(GFN0, MFN0, 18);
}
static void backwards(void)
{
    unsigned int n;

    plain();
    for ( n = 0; n < 8; n++ )
        gfns[n] = GFN0 + (7 - n) * EXTENT;
}
static void gib_twice(void) { gib(); gfns[1] = gfns[0]; }

/* Another CPU, as the third entry is cleared: two are clear, and not flushed. */
static void at_third(void (*action)(void))
{
    if ( fake.set_entries == 3 )
    {
        fake.while_unmapping = NULL;
        action();
    }
}
#define AT_THIRD(name, what) \
    static void name##_now(void) { what; } \
    static void name##_at_third(void) { at_third(name##_now); } \
    static void name(void) { plain(); fake.while_unmapping = name##_at_third; }
AT_THIRD(log_dirty_begins, dom.log_dirty = true)
AT_THIRD(dies, dom.is_dying = true; put_page_alloc_ref(frame(0, 7)))
AT_THIRD(referenced, frame(0, 300)->count_info++)

static void reference_last(void) { frame(3, 511)->count_info++; fake.after_unlock = NULL; }
WITH(referenced_after, fake.after_unlock = reference_last)

/* Checks. */
static void flushed_once(void)
{
    if ( fake.flushes != 1 || fake.mapcache_invalidations != 1 )
        die("flushes %u, mapcache invalidations %u: one of each expected",
            fake.flushes, fake.mapcache_invalidations);
}

/* Neighbours share one, up to eight. */
static void freed(unsigned int times)
{
    flushed_once();
    if ( fake.heap_frees != times )
        die("frees %u, expected %u", fake.heap_frees, times);
}
static void freed_at_once(void) { freed(1); }
static void freed_thrice(void) { freed(3); }
static void freed_four_times(void) { freed(4); }

static void flushed_only(void)
{
    if ( fake.flushes != 1 || fake.mapcache_invalidations )
        die("flushes %u, mapcache invalidations %u", fake.flushes,
            fake.mapcache_invalidations);
}

static void untouched(void)
{
    if ( fake.set_entries || fake.flushes || fake.mapcache_invalidations )
        die("p2m writes %u, flushes %u", fake.set_entries, fake.flushes);
}

static void busy(struct page_info *pg)
{
    flushed_once();
    if ( fake.perfc[PERFC_range_busy_after] != 1 )
        die("the busy frame was not counted");
    if ( pg->free || pg->count_info != 1 )
        die("the busy frame: free %d count %#lx", pg->free, pg->count_info);
    put_page(pg);                       /* its user lets go */
}
static void first_is_busy(void) { busy(frame(0, 300)); }
static void last_is_busy(void) { busy(frame(3, 511)); }

static void third_is_lost(void)
{
    unsigned long i;

    flushed_once();
    if ( !dom.crashed )
        die("the domain must not go on");
    for ( i = 0; i < EXTENT; i++ )
        if ( frame(2, i)->free || frame(2, i)->count_info != (PGC_allocated | 1) )
            die("frame %lu: free %d count %#lx", i, frame(2, i)->free,
                frame(2, i)->count_info);
}

/* name, arrange, how many leave of the first eight */
#define SOME(n, a, gone, c) { n, a, 0, 8, 9, gone, c }
#define NONE(n, a) { n, a, 0, 8, 9, 0, untouched }

static const struct test_case cases[] = {
    SOME("several: 8 extents, one flush", plain, 8, freed_at_once),
    SOME("several: from the last to the first", backwards, 8, freed_at_once),
    SOME("several: one is far away from the others", third_far_away, 8, freed_four_times),
    SOME("several: of two nodes", two_nodes, 8, freed_thrice),
    SOME("several: a frame of another node in between", node_in_between, 8, freed_four_times),
    SOME("several: with EPT", ept, 8, flushed_once),
    SOME("several: the caller holds the p2m lock", callers_lock, 8, flushed_once),
    SOME("several: the caller holds it with EPT", ept_callers_lock, 8, flushed_once),
    SOME("several: out of a 1 GiB entry", gib, 8, flushed_once),
    { "several: two", plain, 0, 2, 9, 2, flushed_once },
    { "several: in the middle of the list", plain, 3, 7, 9, 4, freed_thrice },
    { "several: 32 are enough", plain, 0, NR, 9, LIMIT, freed_four_times },
    { "several: the rest of the list", plain, LIMIT, NR, 9, NR - LIMIT, flushed_once },

    { "several: one is none", plain, 4, 5, 9, 0, untouched },
    { "several: 1 GiB", gib_twice, 0, 2, 18, 0, untouched },
    { "several: 4 KiB", plain, 0, 8, 0, 0, untouched },
    { "several: largest order", plain, 0, 8, ~0U, 0, untouched },
    { "several: unreadable list", plain, NR - 4, NR + 4, 9, 0, untouched },

    NONE("several: switched off", switched_off),
    NONE("several: not translated", pv),
    NONE("several: shadow paging", shadow),
    NONE("several: IOMMU", iommu),
    NONE("several: log-dirty", log_dirty),
    NONE("several: altp2m", altp2m),
    NONE("several: dying", dying),
    NONE("several: DSM", dsm),
    NONE("several: nested virtualisation", nested),
    NONE("several: populate on demand", pod),
    NONE("several: traced", traced),
    NONE("several: 2 MiB superpages unsupported", no_2mb),
    NONE("several: the first is in use", first_in_use),
    NONE("several: the second is misaligned", second_misaligned),

    SOME("several: the first fails after a split, caller's lock", first_fails_split, 0, flushed_only),
    SOME("several: the third is in use", third_in_use, 2, flushed_once),
    SOME("several: the third is in use at its end", third_in_use_at_end, 2, flushed_once),
    SOME("several: the third is misaligned", third_misaligned, 2, flushed_once),
    SOME("several: the third is the second", third_twice, 2, flushed_once),
    SOME("several: the third is beyond the p2m", third_beyond, 2, flushed_once),
    SOME("several: the update of the third fails", third_fails, 2, flushed_once),
    SOME("several: the update of the third fails half-way", third_fails_half_way, 2, third_is_lost),
    SOME("several: something is urgent before the fourth", urgent, 3, flushed_once),
    SOME("several: something is urgent, but one leaves", urgent_at_once, 1, flushed_once),

    SOME("several: log-dirty begins as the third leaves", log_dirty_begins, 3, flushed_once),
    SOME("several: the domain dies as the third leaves", dies, 3, flushed_once),
    SOME("several: referenced before the flush", referenced, 8, first_is_busy),
    SOME("several: referenced after the flush", referenced_after, 8, last_is_busy),
    { "several: the last is referenced after the flush", referenced_after, 0, 4, 9, 4, last_is_busy },
};

static struct {
    struct slot p2m[1UL << 18];
    struct page_info frames[1UL << 18];
    unsigned long m2p[1UL << 18];
    struct domain dom;
} before;

#define SAVE(member, first)    \
    memcpy(before.member, &fake.member[first], fake.used * sizeof(fake.member[0]))
#define CHANGED(member, first, i) \
    memcmp(&before.member[i], &fake.member[(first) + (i)], sizeof(fake.member[0]))

/* Frame number i of the domain has left with its extent, or is as it was. */
static void check_frame(unsigned long i, bool gone)
{
    const struct page_info *pg = &fake.frames[MFN0 + i];

    if ( !gone && (CHANGED(p2m, GFN0, i) || CHANGED(frames, MFN0, i) ||
                   CHANGED(m2p, MFN0, i)) )
        die("frame %lu was changed", i);
    if ( gone && (fake.p2m[GFN0 + i].type != p2m_invalid || !pg->free ||
                  fake.m2p[MFN0 + i] != INVALID_M2P_ENTRY + 1) )
        die("frame %lu: type %d, M2P %#lx, free %d", i,
            fake.p2m[GFN0 + i].type, fake.m2p[MFN0 + i], pg->free);
}

static void check_counters(const struct test_case *t)
{
    unsigned int i;

    for ( i = 0; i < NR_PERFC; i++ )
    {
        unsigned int want = i == PERFC_range_removed ? t->gone :
                            i == PERFC_range_batches ? t->gone > 1 : 0;

        if ( i != PERFC_range_busy_after && fake.perfc[i] != want )
            die("counter %u is %u, expected %u", i, fake.perfc[i], want);
    }
}

/* Whether it is one of the extents that have left. */
static bool has_left(unsigned int n, const struct test_case *t)
{
    unsigned int k;

    for ( k = t->from; k < t->from + t->gone; k++ )
        if ( gfns[k] == GFN0 + n * EXTENT )
            return true;

    return false;
}

static void run(const struct test_case *t)
{
    unsigned long i, left = 0;
    unsigned int gone;

    arrange_default();
    t->arrange();
    SAVE(p2m, GFN0);
    SAVE(frames, MFN0);
    SAVE(m2p, MFN0);
    before.dom = dom;

    gone = guest_remove_ranges(&dom, (XEN_GUEST_HANDLE(xen_pfn_t)){ gfns, NR },
                               t->from, t->to, t->order);

    if ( gone != t->gone )
        die("%u are gone, expected %u", gone, t->gone);
    if ( dom.p2m.locked != before.dom.p2m.locked )
        die("p2m lock count %u, was %u", dom.p2m.locked, before.dom.p2m.locked);
    if ( dom.p2m.need_flush || dom.p2m.put_off_flush )
        die("a flush is left to others");
    check_flushes();
    check_counters(t);
    t->check();
    for ( i = 0; i < fake.used; i++ )
    {
        unsigned int n = i / EXTENT;
        bool left_now = has_left(n, t);

        left += left_now;
        if ( t->check != third_is_lost || n != 2 )
            check_frame(i, left_now);
    }
    if ( dom.tot_pages != before.dom.tot_pages - left )
        die("tot_pages %u, was %u", dom.tot_pages, before.dom.tot_pages);
    if ( dom.crashed != (t->check == third_is_lost) )
        die("crashed: %d", dom.crashed);
}

#include "cases_main.h"
