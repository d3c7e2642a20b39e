// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that leaves a domain in whole superpages, on a live hypervisor.
 *
 * Run as root in dom0, with no other domain and CONFIG_PERF_COUNTERS=y.  Each
 * case gets an empty HVM domain that never runs, does to its memory what a
 * balloon or an attacker would, and looks at the hypervisor's own counters:
 *
 *   - one p2m write for each 2 MiB or 1 GiB, one free, and less than a flush;
 *   - everything unusual goes page by page, and nothing is left behind;
 *   - no frame keeps what the domain wrote into it;
 *   - after all of that the host has as much free memory as before.
 *
 * usage: test-mem-range [CASE]...
 * Output is TAP, exit code 0 if nothing failed.  A case that this host cannot
 * run is "ok N - name # SKIP why": whoever needs it has to look for that.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <xenctrl.h>
#include <xenforeignmemory.h>
#include <xenhypfs.h>

#define ORDER_2M 9
#define ORDER_1G 18
#define EXTENT   512UL          /* frames in 2 MiB */
#define NR       8U             /* extents that most cases use */
#define GFN      (1UL << 20)    /* 4 GiB */

static xc_interface *xch;
static xenforeignmemory_handle *fmem;
static xenhypfs_handle *hypfs;
static uint32_t domid;
static unsigned long pattern;   /* no earlier case or run has used it */

/* ---- Reporting ---- */

static bool failed;
static const char *skipped;     /* why, NULL: the case was run */
#define fail(fmt, ...)                                                      \
    do {                                                                    \
        failed = true;                                                      \
        printf("#   line %d: " fmt "\n", __LINE__, ##__VA_ARGS__);          \
    } while ( 0 )
#define expect(what, got, want)                                             \
    do {                                                                    \
        unsigned long got_ = (got), want_ = (want);                         \
        if ( got_ != want_ )                                                \
            fail("%s: %lu, expected %lu", what, got_, want_);               \
    } while ( 0 )

/* ---- The hypervisor's counters ---- */

enum counter {
    WRITES, FLUSHES, FREES, FRAMES, DIRTIED, REMOVED, BATCHES, BUSY_AFTER, OFF,
    BAD_EXTENT, DOMAIN, TYPE, SPLIT, FRAME, P2M, NR_COUNTERS
};
static const char *const counter_name[NR_COUNTERS] = {
    [WRITES]     = "p2m: entries written",
    [FLUSHES]    = "p2m: TLB flushes",
    [FREES]      = "domheap: calls to free",
    [FRAMES]     = "domheap: frames freed",
    [DIRTIED]    = "heap: frames freed to be scrubbed",
    [REMOVED]    = "guest_remove_range: extents removed",
    [BATCHES]    = "guest_remove_range: several at once, with one flush",
    [BUSY_AFTER] = "guest_remove_range: removed, some frames still referenced",
    [OFF]        = "guest_remove_range: refused, switched off",
    [BAD_EXTENT] = "guest_remove_range: refused, order or alignment",
    [DOMAIN]     = "guest_remove_range: refused, state of the domain",
    [TYPE]       = "guest_remove_range: refused, not plain RAM",
    [SPLIT]      = "guest_remove_range: refused, not one superpage",
    [FRAME]      = "guest_remove_range: refused, frame in use",
    [P2M]        = "guest_remove_range: refused, p2m update failed",
};

struct counters { unsigned long v[NR_COUNTERS]; };

static struct counters counters(void)
{
    DECLARE_HYPERCALL_BUFFER(xc_perfc_desc_t, desc);
    DECLARE_HYPERCALL_BUFFER(xc_perfc_val_t, val);
    struct counters c = {};
    unsigned int i, j, found = 0;
    xc_perfc_val_t *v;
    int nr_desc, nr_val;

    if ( xc_perfc_query_number(xch, &nr_desc, &nr_val) )
        err(2, "the hypervisor has no performance counters");
    desc = xc_hypercall_buffer_alloc(xch, desc, sizeof(*desc) * nr_desc);
    val = xc_hypercall_buffer_alloc(xch, val, sizeof(*val) * nr_val);
    if ( !desc || !val )
        err(2, "hypercall buffers");
    if ( xc_perfc_query(xch, HYPERCALL_BUFFER(desc), HYPERCALL_BUFFER(val)) )
        err(2, "xc_perfc_query");

    for ( v = val, i = 0; i < nr_desc; v += desc[i].nr_vals, i++ )
        for ( j = 0; j < NR_COUNTERS; j++ )
            if ( !strncmp(desc[i].name, counter_name[j], sizeof(desc[i].name)) )
            {
                unsigned int k;

                for ( k = 0; k < desc[i].nr_vals; k++ )
                    c.v[j] += v[k];
                found++;
            }
    if ( found != NR_COUNTERS )
        errx(2, "the hypervisor has %u of %u counters", found, NR_COUNTERS);

    xc_hypercall_buffer_free(xch, desc);
    xc_hypercall_buffer_free(xch, val);

    return c;
}

static struct counters since(const struct counters *before)
{
    struct counters c = counters();
    unsigned int i;

    for ( i = 0; i < NR_COUNTERS; i++ )
        c.v[i] -= before->v[i];
    printf("#   p2m writes %lu, flushes %lu, frees %lu (%lu frames), "
           "removed whole %lu\n",
           c.v[WRITES], c.v[FLUSHES], c.v[FREES], c.v[FRAMES], c.v[REMOVED]);

    return c;
}

/* ---- A domain ---- */

static void set_parameter(const char *path, bool on)
{
    if ( xenhypfs_write(hypfs, path, on ? "true" : "false") )
        err(2, "%s", path);
}
#define superpages(on) set_parameter("/params/guest-remove-range", on)
#define scrubbing(on) set_parameter("/params/scrub-domheap", on)

static void create(void)
{
    struct xen_domctl_createdomain config = {
        .flags = XEN_DOMCTL_CDF_hvm | XEN_DOMCTL_CDF_hap,
        .max_vcpus = 1,
        .max_grant_frames = 1,
        .grant_opts = XEN_DOMCTL_GRANT_version(1),
        .arch.emulation_flags = XEN_X86_EMU_LAPIC,
    };

    domid = 0;
    if ( xc_domain_create(xch, &domid, &config) )
        err(2, "xc_domain_create");
    /* Without a vCPU nothing is in a TLB, and Xen does not ask for flushes. */
    if ( xc_domain_max_vcpus(xch, domid, 1) )
        err(2, "xc_domain_max_vcpus");
    if ( xc_domain_setmaxmem(xch, domid, -1) )
        err(2, "xc_domain_setmaxmem");
    if ( xc_set_paging_mempool_size(xch, domid, 16 << 20) )
        err(2, "xc_set_paging_mempool_size");
}

static unsigned long tot_pages(void)
{
    xc_domaininfo_t info;

    if ( xc_domain_getinfo_single(xch, domid, &info) )
        err(2, "xc_domain_getinfo_single");

    return info.tot_pages;
}

static uint64_t free_pages(void)
{
    xc_physinfo_t info;

    if ( xc_physinfo(xch, &info) )
        err(2, "xc_physinfo");

    return info.free_pages;
}

/* Extents i = 0, 1, ... of an order, one after the other. */
static int populate(unsigned long gfn, unsigned int order, unsigned int nr)
{
    xen_pfn_t list[NR * EXTENT];
    unsigned int i;

    for ( i = 0; i < nr; i++ )
        list[i] = gfn + ((unsigned long)i << order);

    return xc_domain_populate_physmap(xch, domid, nr, order, 0, list);
}

static int decrease(unsigned long gfn, unsigned int order, unsigned int nr)
{
    xen_pfn_t list[NR * EXTENT];
    unsigned int i;

    for ( i = 0; i < nr; i++ )
        list[i] = gfn + ((unsigned long)i << order);

    return xc_domain_decrease_reservation(xch, domid, nr, order, list);
}

/* Map nr frames, stride apart, of one extent; NULL if that is not possible. */
static unsigned long *map_every(unsigned long gfn, unsigned long nr,
                                unsigned long stride)
{
    xen_pfn_t list[EXTENT];
    unsigned long i;

    for ( i = 0; i < nr; i++ )
        list[i] = gfn + i * stride;

    return xenforeignmemory_map(fmem, domid, PROT_READ | PROT_WRITE, nr, list,
                                NULL);
}

static unsigned long *map(unsigned long gfn, unsigned long nr)
{
    return map_every(gfn, nr, 1);
}

static void unmap(void *p, unsigned long nr)
{
    if ( p && xenforeignmemory_unmap(fmem, p, nr) )
        err(2, "xenforeignmemory_unmap");
}

/* ---- Cases ---- */

/*
 * A batch ends early when dom0 has something urgent.  So how many there are is
 * not exact, but each has one flush, and so has an extent that is left alone.
 */
static void few_flushes(const struct counters *c)
{
    printf("#   batches %lu\n", c->v[BATCHES]);
    if ( !c->v[BATCHES] || c->v[FLUSHES] < c->v[BATCHES] ||
         c->v[FLUSHES] > NR / 2 )
        fail("flushes %lu, batches %lu, extents %u", c->v[FLUSHES],
             c->v[BATCHES], NR);
}

static void whole(void)
{
    struct counters before, c;

    expect("populated", populate(GFN, ORDER_2M, NR), NR);
    expect("tot_pages", tot_pages(), NR * EXTENT);
    before = counters();
    expect("removed", decrease(GFN, ORDER_2M, NR), NR);
    c = since(&before);
    expect("p2m writes", c.v[WRITES], NR);
    few_flushes(&c);
    if ( !c.v[FREES] || c.v[FREES] > NR )       /* neighbours share one */
        fail("frees: %lu, extents %u", c.v[FREES], NR);
    expect("frames", c.v[FRAMES], NR * EXTENT);
    expect("frames to scrub", c.v[DIRTIED], NR * EXTENT);
    expect("removed whole", c.v[REMOVED], NR);
    expect("tot_pages", tot_pages(), 0);
}

static void gib(void)
{
    struct counters before, c;

    if ( populate(GFN, ORDER_1G, 1) != 1 )
    {
        skipped = "no free block of 1 GiB";
        return;
    }
    before = counters();
    expect("removed", decrease(GFN, ORDER_1G, 1), 1);
    c = since(&before);
    expect("p2m writes", c.v[WRITES], 1);
    expect("flushes", c.v[FLUSHES], 1);
    expect("frees", c.v[FREES], 1);
    expect("frames", c.v[FRAMES], 1UL << ORDER_1G);
    expect("tot_pages", tot_pages(), 0);
}

/*
 * One by one they cost a flush each.  And so does an extent that is refused
 * amidst others: those before and behind it leave in batches.
 */
static void one_by_one(void)
{
    struct counters before, c;
    unsigned long *p;
    unsigned int i;

    expect("populated", populate(GFN, ORDER_2M, NR), NR);
    before = counters();
    for ( i = 0; i < NR; i++ )
        expect("removed", decrease(GFN + i * EXTENT, ORDER_2M, 1), 1);
    c = since(&before);
    expect("flushes", c.v[FLUSHES], NR);
    expect("batches", c.v[BATCHES], 0);

    expect("populated", populate(GFN, ORDER_2M, NR), NR);
    p = map(GFN + 3 * EXTENT + 200, 1);
    if ( !p )
    {
        fail("cannot map: %s", strerror(errno));
        return;
    }
    *p = pattern;
    before = counters();
    expect("removed", decrease(GFN, ORDER_2M, NR), NR);
    c = since(&before);
    expect("removed whole", c.v[REMOVED], NR - 1);
    expect("refused: frame in use", c.v[FRAME], 1);
    if ( !c.v[BATCHES] )
        fail("no batch");
    expect("tot_pages", tot_pages(), 1);
    if ( *p != pattern )
        fail("the mapped frame changed under its user: %#lx", *p);
    unmap(p, 1);
    expect("tot_pages when unmapped", tot_pages(), 0);
}

/* The first removal splits the 1 GiB entry: 512 entries, one points to them. */
static void out_of_gib(void)
{
    struct counters before, c;

    if ( populate(GFN, ORDER_1G, 1) != 1 )
    {
        skipped = "no free block of 1 GiB";
        return;
    }
    before = counters();
    expect("removed", decrease(GFN + 3 * EXTENT, ORDER_2M, NR), NR);
    c = since(&before);
    expect("p2m writes", c.v[WRITES], 512 + 1 + NR);
    few_flushes(&c);
    expect("removed whole", c.v[REMOVED], NR);
    expect("tot_pages", tot_pages(), (1UL << ORDER_1G) - NR * EXTENT);
}

/* What stock Xen does: split, then 512 of each. */
static void stock(void)
{
    struct counters before, c;

    superpages(false);
    expect("populated", populate(GFN, ORDER_2M, NR), NR);
    before = counters();
    expect("removed", decrease(GFN, ORDER_2M, NR), NR);
    c = since(&before);
    superpages(true);
    expect("p2m writes", c.v[WRITES], NR * (512 + 1 + EXTENT));
    expect("flushes", c.v[FLUSHES], NR * (1 + EXTENT));
    expect("frees", c.v[FREES], NR * EXTENT);
    expect("switched off", c.v[OFF], NR);
    expect("removed whole", c.v[REMOVED], 0);
    expect("tot_pages", tot_pages(), 0);
}

static void by_frame(void)
{
    struct counters before, c;

    expect("populated", populate(GFN, ORDER_2M, NR), NR);
    before = counters();
    expect("removed", decrease(GFN, 0, NR * EXTENT), NR * EXTENT);
    c = since(&before);
    expect("frees", c.v[FREES], NR * EXTENT);
    expect("removed whole", c.v[REMOVED], 0);
    expect("tot_pages", tot_pages(), 0);
}

static void split(void)
{
    struct counters before, c;

    expect("populated", populate(GFN, ORDER_2M, 1), 1);
    expect("removed", decrease(GFN + EXTENT - 1, 0, 1), 1);
    before = counters();
    expect("removed", decrease(GFN, ORDER_2M, 1), 0);   /* stops at the hole */
    c = since(&before);
    expect("refused: split", c.v[SPLIT], 1);
    expect("tot_pages", tot_pages(), 0);
    expect("populated again", populate(GFN, ORDER_2M, 1), 1);
    expect("removed whole", decrease(GFN, ORDER_2M, 1), 1);
    expect("tot_pages", tot_pages(), 0);
}

static void mapped(void)
{
    struct counters before, c;
    unsigned long *p;

    expect("populated", populate(GFN, ORDER_2M, 1), 1);
    p = map(GFN + 200, 1);
    if ( !p )
    {
        fail("cannot map: %s", strerror(errno));
        return;
    }
    *p = pattern;
    before = counters();
    expect("removed", decrease(GFN, ORDER_2M, 1), 1);
    c = since(&before);
    expect("refused: frame in use", c.v[FRAME], 1);
    expect("frames", c.v[FRAMES], EXTENT - 1);
    expect("tot_pages", tot_pages(), 1);
    if ( *p != pattern )
        fail("the mapped frame changed under its user: %#lx", *p);
    unmap(p, 1);
    expect("tot_pages when unmapped", tot_pages(), 0);
}

static void misaligned(void)
{
    struct counters before, c;

    expect("populated", populate(GFN, ORDER_2M, 2), 2);
    before = counters();
    expect("removed", decrease(GFN + EXTENT / 2, ORDER_2M, 1), 1);
    c = since(&before);
    expect("refused: alignment", c.v[BAD_EXTENT], 1);
    expect("tot_pages", tot_pages(), EXTENT);
}

static void nonsense(void)
{
    static const unsigned long gfns[] = {
        0, 1, GFN - 1, GFN + EXTENT, 1UL << 32, 1UL << 36, 1UL << 40, 1UL << 51,
        1UL << 52, 1UL << 63, ~0UL, ~511UL, ~((1UL << ORDER_1G) - 1),
    };
    static const unsigned int orders[] = {
        0, 1, 8, 9, 10, 17, 18, 19, 20, 63, 64, ~0U,
    };
    unsigned int i, j;

    expect("populated", populate(GFN, ORDER_2M, 1), 1);
    for ( i = 0; i < sizeof(gfns) / sizeof(gfns[0]); i++ )
        for ( j = 0; j < sizeof(orders) / sizeof(orders[0]); j++ )
        {
            xen_pfn_t gfn = gfns[i];
            int rc = xc_domain_decrease_reservation(xch, domid, 1, orders[j],
                                                    &gfn);

            if ( rc > 0 )
                fail("GFN %#lx order %u: %d extents removed", gfns[i],
                     orders[j], rc);
        }
    expect("tot_pages", tot_pages(), EXTENT);
    expect("removed", decrease(GFN, ORDER_2M, 1), 1);
}

/* Fill what the domain has, give it back, take all free memory: is it there? */
#define STRIDE 8UL              /* one frame in 8 is looked at */

static unsigned long find_pattern(unsigned long nr_extents)
{
    unsigned long e, i, found = 0;

    for ( e = 0; e < nr_extents; e++ )
    {
        unsigned long *p = map_every(GFN + e * EXTENT, EXTENT / STRIDE, STRIDE);

        if ( !p )
        {
            fail("cannot map extent %lu: %s", e, strerror(errno));
            return found;
        }
        for ( i = 0; i < EXTENT / STRIDE; i++ )
            found += p[i * 512 + 300] == pattern;
        unmap(p, EXTENT / STRIDE);
    }

    return found;
}

static unsigned long left_behind(unsigned int order)
{
    unsigned long nr = 0, i, j;

    expect("populated", populate(GFN, ORDER_2M, NR), NR);
    for ( i = 0; i < NR; i++ )
    {
        unsigned long *p = map(GFN + i * EXTENT, EXTENT);

        if ( !p )
        {
            fail("cannot map: %s", strerror(errno));
            return 0;
        }
        for ( j = 0; j < EXTENT * 512; j++ )
            p[j] = pattern;
        unmap(p, EXTENT);
    }
    expect("written", find_pattern(NR), NR * EXTENT / STRIDE);
    expect("removed", decrease(GFN, order, (NR * EXTENT) >> order),
           (NR * EXTENT) >> order);
    while ( populate(GFN + nr * EXTENT, ORDER_2M, 1) == 1 )
        nr++;
    printf("#   looked at %lu extents of 2 MiB\n", nr);
    if ( nr < NR )
        fail("only %lu extents could be taken back", nr);
    i = find_pattern(nr);

    /* What was found to be clean need not be scrubbed, which takes minutes. */
    if ( !i )
        scrubbing(false);
    while ( nr )
        decrease(GFN + --nr * EXTENT, ORDER_2M, 1);
    scrubbing(true);

    return i;
}

static void scrubbed(void)
{
    expect("frames with old content", left_behind(ORDER_2M), 0);
}

static void scrubbed_by_frame(void)
{
    expect("frames with old content", left_behind(0), 0);
}

/* What the two cases above look for can be found. */
static void unscrubbed(void)
{
    unsigned long found;

    scrubbing(false);
    found = left_behind(ORDER_2M);
    scrubbing(true);
    printf("#   %lu frames with old content\n", found);
    if ( !found )
        fail("without scrubbing the old content must be visible");
}

/*
 * Hypercall time alone, without a guest and so without CPUs to interrupt for a
 * flush: what the whole path gains is at least this.  Not judged, since an
 * emulator's clock says little.
 */
typedef int operation(unsigned long gfn, unsigned int order, unsigned int nr);

static double ns_per_extent(operation *op, unsigned int order, unsigned int nr)
{
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    expect("extents", op(GFN, order, nr), nr);
    clock_gettime(CLOCK_MONOTONIC, &to);

    return ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) /
           nr * (EXTENT >> order);
}

static void timing(void)
{
    double give[2], take[4];

    ns_per_extent(populate, ORDER_2M, 8 * NR);
    scrubbing(false);
    take[3] = ns_per_extent(decrease, ORDER_2M, 8 * NR);
    scrubbing(true);
    give[0] = ns_per_extent(populate, ORDER_2M, 8 * NR);
    take[0] = ns_per_extent(decrease, ORDER_2M, 8 * NR);
    superpages(false);
    ns_per_extent(populate, ORDER_2M, 8 * NR);
    take[1] = ns_per_extent(decrease, ORDER_2M, 8 * NR);
    superpages(true);
    give[1] = ns_per_extent(populate, 0, NR * EXTENT);
    take[2] = ns_per_extent(decrease, 0, NR * EXTENT);
    printf("#   ns per 2 MiB: take whole %.0f (without scrubbing %.0f), "
           "by page %.0f, in 4 KiB %.0f; give whole %.0f, in 4 KiB %.0f\n",
           take[0], take[3], take[1], take[2], give[0], give[1]);
}

/*
 * Others look at the memory while it comes and goes, and take it, too.
 *
 * All must have met: a removal a frame that a mapper held, a removal an extent
 * of which another removal had taken some, a removal of several at once, and
 * each thread its own success.
 */
#define RACE_MIN_S 5
#define RACE_MAX_S 60

static volatile bool stop;

struct racer {
    pthread_t thread;
    unsigned int seed;
    volatile unsigned long done;        /* mapped, or extents removed */
    volatile unsigned long wrong;
};

/* Each mapper has a word of its own in each frame. */
static void *mapper(void *arg)
{
    struct racer *r = arg;
    unsigned int s = r->seed;

    while ( !stop )
    {
        volatile unsigned long *p = map(GFN + rand_r(&s) % (NR * EXTENT), 1);

        if ( !p )
            continue;
        p[r->seed] = pattern + r->done;
        sched_yield();
        /* Whoever got the frame meanwhile has cleared or written it. */
        if ( p[r->seed] != pattern + r->done )
            r->wrong++;
        unmap((void *)p, 1);
        r->done++;
    }

    return NULL;
}

static void *remover(void *arg)
{
    struct racer *r = arg;
    unsigned int s = r->seed;

    while ( !stop )
    {
        unsigned int order = rand_r(&s) % 3 ? ORDER_2M : rand_r(&s) % 11;
        unsigned long gfn = GFN + rand_r(&s) % (NR * EXTENT);

        if ( decrease(gfn >> order << order, order, 1) == 1 )
            r->done++;
    }

    return NULL;
}

static bool race_happened(const struct racer *r, const struct counters *before)
{
    struct counters now = counters();

    return r[0].done && r[1].done && r[2].done &&
           now.v[REMOVED] > before->v[REMOVED] &&
           now.v[BATCHES] > before->v[BATCHES] &&
           now.v[FRAME] > before->v[FRAME] && now.v[SPLIT] > before->v[SPLIT];
}

static void race(void)
{
    struct racer r[3] = { { .seed = 1 }, { .seed = 2 }, { .seed = 3 } };
    struct counters before = counters(), c;
    unsigned int i, rounds = 0;
    struct timespec from, now;
    bool happened = false;
    long seconds;

    stop = false;
    for ( i = 0; i < 3; i++ )
        if ( pthread_create(&r[i].thread, NULL, i < 2 ? mapper : remover,
                            &r[i]) )
            err(2, "pthread_create");
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        for ( i = 0; i < NR; i++ )
            populate(GFN + i * EXTENT, ORDER_2M, 1);
        /* Several at once, and what a hole has left of them one by one. */
        if ( rounds % 4 == 3 )
            decrease(GFN, ORDER_2M, NR);
        for ( i = 0; i < NR; i++ )
            decrease(GFN + i * EXTENT, ORDER_2M, 1);
        rounds++;
        clock_gettime(CLOCK_MONOTONIC, &now);
        seconds = now.tv_sec - from.tv_sec;
        if ( seconds >= RACE_MIN_S )
            happened = race_happened(r, &before);
    } while ( seconds < RACE_MAX_S && !happened );
    stop = true;
    for ( i = 0; i < 3; i++ )
        pthread_join(r[i].thread, NULL);
    c = since(&before);
    printf("#   %u rounds in %ld s; mapped %lu and %lu times, the other "
           "remover removed %lu; refused: frame in use %lu, split %lu, hole "
           "%lu; batches %lu; busy after %lu\n",
           rounds, seconds, r[0].done, r[1].done, r[2].done, c.v[FRAME],
           c.v[SPLIT], c.v[TYPE], c.v[BATCHES], c.v[BUSY_AFTER]);
    expect("mapped frames that changed under their user",
           r[0].wrong + r[1].wrong, 0);
    if ( !happened )
        fail("the race did not happen: each of these must be more than 0");
}

static void rounds(void)
{
    unsigned int i;

    for ( i = 0; i < 20; i++ )
    {
        superpages(i & 1);
        expect("populated", populate(GFN, ORDER_2M, NR), NR);
        expect("removed", decrease(GFN, ORDER_2M, NR), NR);
        expect("tot_pages", tot_pages(), 0);
    }
    superpages(true);
}

static const struct { const char *name; void (*run)(void); } cases[] = {
    { "2 MiB leave whole", whole },
    { "2 MiB leave one by one, and around one in use", one_by_one },
    { "1 GiB leaves whole", gib },
    { "2 MiB leave 1 GiB whole", out_of_gib },
    { "switched off, each frame is removed on its own", stock },
    { "frame by frame", by_frame },
    { "a split superpage goes page by page", split },
    { "a mapped frame stays until unmapped", mapped },
    { "a misaligned extent goes page by page", misaligned },
    { "nonsense is refused", nonsense },
    { "20 rounds both ways", rounds },
    { "time", timing },
    { "frames of superpages are scrubbed", scrubbed },
    { "single frames are scrubbed", scrubbed_by_frame },
    { "without scrubbing content is left behind", unscrubbed },
    { "mapping and removing at once", race },
};

/* A domain's last frames are freed after a grace period, without an event. */
static const struct timespec nap = { .tv_nsec = 10000000 };

static void all_free_again(uint64_t want)
{
    uint64_t got = 0;
    unsigned int i;

    for ( i = 0; i < 500; i++ )
    {
        /* More: what was left of a domain of an earlier case. */
        if ( (got = free_pages()) >= want )
            return;
        nanosleep(&nap, NULL);
    }
    fail("%"PRIu64" frames are free, %"PRIu64" were before", got, want);
}

/* Have Xen allocate what it allocates once: first domain, first query. */
static void warm_up(void)
{
    uint64_t last = 0;
    unsigned int still;

    create();
    counters();
    if ( xc_domain_destroy(xch, domid) )
        err(2, "xc_domain_destroy");
    for ( still = 0; still < 200; nanosleep(&nap, NULL) )
    {
        still = free_pages() == last ? still + 1 : 0;
        last = free_pages();
    }
}

static bool wanted(const char *name, int argc, char **argv)
{
    int i;

    for ( i = 1; i < argc; i++ )
        if ( !strcmp(argv[i], name) )
            return true;

    return argc == 1;
}

int main(int argc, char **argv)
{
    unsigned int i, n = 0, nr_failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if ( !(xch = xc_interface_open(NULL, NULL, 0)) )
        err(2, "xc_interface_open");
    if ( !(fmem = xenforeignmemory_open(NULL, 0)) )
        err(2, "xenforeignmemory_open");
    if ( !(hypfs = xenhypfs_open(NULL, 0)) )
        err(2, "xenhypfs_open");
    superpages(true);
    scrubbing(true);

    warm_up();

    for ( i = 0; i < sizeof(cases) / sizeof(cases[0]); i++ )
    {
        uint64_t before;

        if ( !wanted(cases[i].name, argc, argv) )
            continue;
        before = free_pages();
        failed = false;
        skipped = NULL;
        pattern = time(NULL) * 1000 + i;
        create();
        cases[i].run();
        if ( xc_domain_destroy(xch, domid) )
            err(2, "xc_domain_destroy");
        all_free_again(before);
        printf("%sok %u - %s%s%s\n", failed ? "not " : "", ++n, cases[i].name,
               skipped ? " # SKIP " : "", skipped ? : "");
        nr_failed += failed;
    }
    printf("1..%u\n", n);

    return nr_failed || !n;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
