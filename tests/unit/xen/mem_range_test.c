// SPDX-License-Identifier: GPL-2.0-only
/*
 * guest_remove_range(): an extent leaves whole and is counted, or nothing
 * changed at all.
 *
 *   GFN0 ─┬─ 2 MiB ─┬─ 2 MiB ─┬─ 2 MiB ─┬─ 2 MiB ─┐   (or one 1 GiB entry)
 *   MFN0 ─┴─────────┴─ tested ┴─────────┴─────────┘
 *
 * Each case arranges the domain, calls once, and compares the whole hypervisor
 * of fake.h with what it was before.
 *
 * usage: mem_range_test --list | CASE
 */
#include "mem_range_cases.h"

extern const char *const fake_param_name;

#define TESTED  (GFN0 + EXTENT)         /* the extent that the cases remove */
#define TESTED_MFN (MFN0 + EXTENT)
#define MIDDLE  (TESTED_MFN + 200)      /* a frame in the middle of it */
#define LAST    (TESTED_MFN + EXTENT - 1)

static struct domain other;

struct test_case {
    const char *name;
    void (*arrange)(void);
    unsigned long gfn;
    unsigned int order;
    enum fake_perfc counter;            /* PERFC_range_removed: success */
    void (*check)(void);                /* beyond the rules below */
};

static void map_2m(void)
{
    unsigned int i;

    for ( i = 0; i < 4; i++ )
        map(GFN0 + i * EXTENT, MFN0 + i * EXTENT, 9);
}

/* Variations of the extent under test.  Default: four 2 MiB superpages. */
static void plain(void) { map_2m(); }
static void gib(void) { map(GFN0, MFN0, 18); }
static void ept(void) { map_2m(); fake.defer_flush = true; }
static void ept_nested_lock(void) { ept(); dom.p2m.locked = fake.callers_lock = 1; }
static void switched_off(void) { map_2m(); *fake_param = false; }
static void pv(void) { map_2m(); dom.hvm = false; }
static void shadow(void) { map_2m(); dom.hap = false; }
static void iommu(void) { map_2m(); dom.iommu = true; }
static void log_dirty(void) { map_2m(); dom.log_dirty = true; }
static void altp2m(void) { map_2m(); dom.altp2m = true; }
static void dying(void) { map_2m(); dom.is_dying = true; }
static void no_2mb(void) { gib(); fake.has_2mb = false; }
static void no_1gb(void) { gib(); fake.has_1gb = false; }
static void no_memory_to_split(void) { gib(); fake.set_entry = SET_FAILS_UNCHANGED; }

/* What only a batch refuses. */
static void dsm(void) { map_2m(); dom.dsm = true; }
static void nested(void) { map_2m(); dom.nested = true; }
static void pod(void) { map_2m(); dom.p2m.pod.entry_count = 1; }
static void other_access(void) { map_2m(); dom.p2m.default_access = p2m_access_rx; }

static void log_dirty_comes(void) { dom.log_dirty = true; }
static void log_dirty_meanwhile(void) { map_2m(); fake.while_locking = log_dirty_comes; }

static void set_type(p2m_type_t t)
{
    unsigned long i;

    map_2m();
    for ( i = 0; i < EXTENT; i++ )
        fake.p2m[TESTED + i].type = t;
}
#define TYPE(t) static void type_##t(void) { set_type(p2m_##t); }
TYPE(invalid) TYPE(ram_logdirty) TYPE(ram_ro) TYPE(mmio_dm) TYPE(mmio_direct)
TYPE(populate_on_demand) TYPE(grant_map_rw) TYPE(map_foreign) TYPE(ram_shared)
TYPE(ram_paged) TYPE(ram_broken) TYPE(ioreq_server)

static void no_frame(void)
{
    map_2m();
    fake.p2m[TESTED].mfn = NR_MFNS + TESTED_MFN;
}

static void split(void)
{
    unsigned long i;

    map_2m();
    for ( i = 0; i < EXTENT; i++ )
        fake.p2m[TESTED + i].order = 0;
}

static void misaligned_frames(void)
{
    unsigned long i;

    map_2m();
    for ( i = 0; i < EXTENT; i++ )
        fake.p2m[TESTED + i].mfn = TESTED_MFN + 1 + i;
}

/* One odd frame, at the first, a middle and the last place. */
#define FRAME(name, action)                                              \
    static void name##_first(void) { struct page_info *pg = &fake.frames[TESTED_MFN]; map_2m(); action; } \
    static void name##_middle(void) { struct page_info *pg = &fake.frames[MIDDLE]; map_2m(); action; } \
    static void name##_last(void) { struct page_info *pg = &fake.frames[LAST]; map_2m(); action; }
FRAME(referenced, pg->count_info++)
FRAME(unallocated, pg->count_info = 1)
FRAME(foreign, pg->owner = &other)
FRAME(xen_heap, pg->count_info |= PGC_xen_heap)
FRAME(extra, pg->count_info |= PGC_extra)
FRAME(offlining, pg->count_info |= PGC_state_offlining)
FRAME(broken, pg->count_info |= PGC_broken)
FRAME(typed, pg->u.inuse.type_info = PGT_writable_page | 1)
FRAME(pinned, pg->u.inuse.type_info = PGT_writable_page | PGT_pinned)
FRAME(non_coherent, pg->u.inuse.type_info = PGT_non_coherent)
static void once_writable(void)
{
    map_2m();
    fake.frames[MIDDLE].u.inuse.type_info = PGT_writable_page;
}

/* Somebody finds a frame by its MFN, before we let go of it. */
static void reference_middle(void) { fake.frames[MIDDLE].count_info++; fake.after_unlock = NULL; }
static void reference_first(void) { fake.frames[TESTED_MFN].count_info++; fake.after_unlock = NULL; }
static void reference_last(void) { fake.frames[LAST].count_info++; fake.after_unlock = NULL; }
static void referenced_meanwhile(void) { map_2m(); fake.after_unlock = reference_middle; }
static void referenced_meanwhile_first(void) { map_2m(); fake.after_unlock = reference_first; }
static void referenced_meanwhile_last(void) { map_2m(); fake.after_unlock = reference_last; }
static void referenced_while_unmapping(void) { map_2m(); fake.while_unmapping = reference_middle; }

/* Somebody else drops the domain's own reference: relinquish_memory(). */
static void relinquish(void)
{
    put_page_alloc_ref(&fake.frames[MIDDLE]);
    put_page_alloc_ref(&fake.frames[MIDDLE + 1]);
    fake.after_unlock = NULL;
}
static void dies_meanwhile(void) { map_2m(); fake.after_unlock = relinquish; }

static void fails_type(void) { map_2m(); fake.set_entry = SET_FAILS_TYPE; }
static void fails_changed(void) { map_2m(); fake.set_entry = SET_FAILS_CHANGED; }

/* Checks. */
static void one_of_each(void)
{
    if ( fake.set_entries != 1 || fake.flushes != 1 || fake.heap_frees != 1 ||
         fake.mapcache_invalidations != 1 )
        die("p2m writes %u, flushes %u, frees %u, mapcache invalidations %u: one of each expected",
            fake.set_entries, fake.flushes, fake.heap_frees,
            fake.mapcache_invalidations);
    if ( fake.perfc[PERFC_range_busy_after] )
        die("no frame was busy, but it was counted");
}

static void busy_frame_leaves_last(unsigned long mfn)
{
    if ( fake.set_entries != 1 || fake.flushes != 1 )
        die("p2m writes %u, flushes %u", fake.set_entries, fake.flushes);
    if ( fake.perfc[PERFC_range_busy_after] != 1 )
        die("the busy frame was not counted");
    if ( fake.frames[mfn].free || fake.frames[mfn].count_info != 1 )
        die("the busy frame: free %d count %#lx", fake.frames[mfn].free,
            fake.frames[mfn].count_info);
    put_page(&fake.frames[mfn]);        /* its user lets go */
}
static void busy_middle(void) { busy_frame_leaves_last(MIDDLE); }
static void busy_first(void) { busy_frame_leaves_last(TESTED_MFN); }
static void busy_last(void) { busy_frame_leaves_last(LAST); }

static void all_free_once(void)
{
    if ( fake.set_entries != 1 || fake.flushes != 1 ||
         fake.perfc[PERFC_range_busy_after] != 1 )
        die("p2m writes %u, flushes %u", fake.set_entries, fake.flushes);
}

static void untouched_p2m(void)
{
    if ( fake.set_entries )
        die("the p2m was written %u times", fake.set_entries);
}

static void lock_still_held(void)
{
    one_of_each();
    if ( dom.p2m.locked != 1 )
        die("the caller's lock count is %u", dom.p2m.locked);
}

static void crashed_and_kept(void)
{
    unsigned long i;

    if ( !dom.crashed )
        die("the domain must not go on");
    for ( i = 0; i < EXTENT; i++ )
        if ( fake.frames[TESTED_MFN + i].free ||
             fake.frames[TESTED_MFN + i].count_info != (PGC_allocated | 1) )
            die("frame %lu: free %d count %#lx", i, fake.frames[TESTED_MFN + i].free,
                fake.frames[TESTED_MFN + i].count_info);
}

#define OK(n, a, c) { n, a, TESTED, 9, PERFC_range_removed, c }
#define NO(n, a, why) { n, a, TESTED, 9, PERFC_range_refused_##why, untouched_p2m }
#define NO_FRAME(f) NO(#f " frame, first", f##_first, frame), \
    NO(#f " frame, middle", f##_middle, frame), NO(#f " frame, last", f##_last, frame)
#define AT(n, a, g, o, why) { n, a, g, o, PERFC_range_refused_##why, untouched_p2m }

static const struct test_case cases[] = {
    OK("2 MiB", plain, one_of_each),
    OK("2 MiB, flush deferred to the unlock", ept, one_of_each),
    OK("2 MiB, caller holds the p2m lock", ept_nested_lock, lock_still_held),
    OK("2 MiB out of a 1 GiB entry", gib, one_of_each),
    { "1 GiB", gib, GFN0, 18, PERFC_range_removed, one_of_each },
    OK("2 MiB, DSM", dsm, one_of_each),
    OK("2 MiB, nested virtualisation", nested, one_of_each),
    OK("2 MiB, populate on demand", pod, one_of_each),
    OK("2 MiB, another default access", other_access, one_of_each),
    OK("type writable without references", once_writable, one_of_each),

    NO("switched off", switched_off, off),
    NO("not translated", pv, domain),
    NO("shadow paging", shadow, domain),
    NO("IOMMU", iommu, domain),
    NO("log-dirty", log_dirty, domain),
    NO("log-dirty begins while waiting for the lock", log_dirty_meanwhile, domain),
    NO("altp2m", altp2m, domain),
    NO("dying", dying, domain),

    AT("order 0", plain, TESTED, 0, extent),
    AT("order 8", plain, TESTED, 8, extent),
    AT("order 10", plain, GFN0, 10, extent),
    AT("order 17", gib, GFN0, 17, extent),
    AT("order 27", gib, 0, 27, extent),
    AT("order 63", gib, 0, 63, extent),
    AT("order 64", gib, 0, 64, extent),
    AT("largest order", gib, 0, ~0U, extent),
    AT("misaligned by 1", plain, TESTED + 1, 9, extent),
    AT("misaligned by half", plain, TESTED + 256, 9, extent),
    AT("1 GiB at a 2 MiB boundary", gib, GFN0 + 512, 18, extent),
    AT("last GFN", plain, ~0UL, 9, extent),
    AT("last extent of all", plain, ~511UL, 9, type),
    AT("beyond the p2m", plain, NR_GFNS, 9, type),
    { "2 MiB superpages unsupported", no_2mb, TESTED, 9, PERFC_range_refused_extent, untouched_p2m },
    { "1 GiB superpages unsupported", no_1gb, GFN0, 18, PERFC_range_refused_extent, untouched_p2m },

    NO("hole", type_invalid, type),
    NO("log-dirty entry", type_ram_logdirty, type),
    NO("read-only", type_ram_ro, type),
    NO("emulated", type_mmio_dm, type),
    NO("device", type_mmio_direct, type),
    NO("populate on demand", type_populate_on_demand, type),
    NO("grant", type_grant_map_rw, type),
    NO("foreign", type_map_foreign, type),
    NO("shared", type_ram_shared, type),
    NO("paged out", type_ram_paged, type),
    NO("broken", type_ram_broken, type),
    NO("ioreq server", type_ioreq_server, type),
    NO("frame that is no RAM", no_frame, type),

    NO("split", split, split),
    NO("frames not aligned", misaligned_frames, split),
    AT("1 GiB of 2 MiB entries", plain, GFN0, 18, split),

    NO_FRAME(referenced), NO_FRAME(unallocated), NO_FRAME(foreign),
    NO_FRAME(xen_heap), NO_FRAME(extra), NO_FRAME(offlining),
    NO_FRAME(broken), NO_FRAME(typed), NO_FRAME(pinned),
    NO_FRAME(non_coherent),

    { "no memory to split 1 GiB", no_memory_to_split, TESTED, 9, PERFC_range_refused_p2m, NULL },
    { "p2m update fails half-way", fails_changed, TESTED, 9, PERFC_range_refused_p2m, crashed_and_kept },
    { "p2m update leaves another type", fails_type, TESTED, 9, PERFC_range_refused_p2m, crashed_and_kept },

    OK("referenced meanwhile, first", referenced_meanwhile_first, busy_first),
    OK("referenced meanwhile, middle", referenced_meanwhile, busy_middle),
    OK("referenced meanwhile, last", referenced_meanwhile_last, busy_last),
    OK("referenced while unmapping", referenced_while_unmapping, busy_middle),
    OK("domain dies meanwhile", dies_meanwhile, all_free_once),
};

static struct {
    struct slot p2m[1UL << 18];
    struct page_info frames[1UL << 18];
    unsigned long m2p[1UL << 18];
    struct domain dom;
} before;

#define SAVE(member, first)    \
    memcpy(before.member, &fake.member[first], fake.used * sizeof(fake.member[0]))
#define CHANGED(member, first) \
    memcmp(before.member, &fake.member[first], fake.used * sizeof(fake.member[0]))
#define RESTORE(member, first, from, nr) \
    memcpy(&fake.member[from], &before.member[(from) - (first)], \
           (nr) * sizeof(fake.member[0]))

static void check_one_counter(const struct test_case *t)
{
    unsigned int i;

    for ( i = 0; i < NR_PERFC; i++ )
        if ( i != PERFC_range_busy_after && fake.perfc[i] != (i == t->counter) )
            die("counter %u is %u, expected %u", i, fake.perfc[i], i == t->counter);
}

static void check_unchanged(void)
{
    if ( CHANGED(p2m, GFN0) )
        die("the p2m was changed");
    if ( CHANGED(frames, MFN0) )
        die("a frame was changed");
    if ( CHANGED(m2p, MFN0) )
        die("the M2P was changed");
    if ( dom.tot_pages != before.dom.tot_pages )
        die("tot_pages %u, was %u", dom.tot_pages, before.dom.tot_pages);
    if ( dom.crashed || fake.flushes || fake.heap_frees )
        die("crashed %d, flushes %u, frees %u", dom.crashed, fake.flushes,
            fake.heap_frees);
}

static void check_removed(unsigned long gfn, unsigned int order)
{
    unsigned long i, nr = 1UL << order, mfn = before.p2m[gfn - GFN0].mfn;

    for ( i = 0; i < nr; i++ )
        if ( fake.p2m[gfn + i].type != p2m_invalid ||
             fake.m2p[mfn + i] != INVALID_M2P_ENTRY + 1 || !fake.frames[mfn + i].free )
            die("frame %lu: type %d, M2P %#lx, free %d", i, fake.p2m[gfn + i].type,
                fake.m2p[mfn + i], fake.frames[mfn + i].free);
    if ( dom.tot_pages != before.dom.tot_pages - nr )
        die("tot_pages %u, was %u", dom.tot_pages, before.dom.tot_pages);

    /* Everything else is as it was. */
    RESTORE(p2m, GFN0, gfn, nr);
    RESTORE(frames, MFN0, mfn, nr);
    RESTORE(m2p, MFN0, mfn, nr);
    dom.tot_pages += nr;
    fake.flushes = fake.heap_frees = 0;
    check_unchanged();
}

static void run(const struct test_case *t)
{
    bool success = t->counter == PERFC_range_removed;
    int rc;

    if ( strcmp(fake_param_name, "guest-remove-range") )
        die("the parameter is called %s", fake_param_name);
    arrange_domain();
    t->arrange();
    SAVE(p2m, GFN0);
    SAVE(frames, MFN0);
    SAVE(m2p, MFN0);
    before.dom = dom;

    rc = guest_remove_range(&dom, _gfn(t->gfn), t->order);

    if ( rc != (success ? 0 : -EAGAIN) )
        die("returned %d", rc);
    if ( dom.p2m.locked != before.dom.p2m.locked )
        die("p2m lock count %u, was %u", dom.p2m.locked, before.dom.p2m.locked);
    check_flushes();
    check_one_counter(t);
    if ( t->check )
        t->check();
    if ( success )
        check_removed(t->gfn, t->order);
    else if ( t->check != crashed_and_kept )
        check_unchanged();
}

#include "cases_main.h"
