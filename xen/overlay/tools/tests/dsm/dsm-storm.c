// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest under whose feet pages disappear, and come back when it misses them.
 *
 * One slice and no protocol: this program is the daemon, and keeps what it
 * took in its own memory.  It takes pages at random, often those that the guest
 * has just used, and looks at the bytes each time it can:
 *
 *   - a page in state S must still hold what it held when it was downgraded,
 *     or somebody wrote to it who had no right to;
 *   - whether a page in state I came back right only the guest can tell: it
 *     has to run something that checks its memory.
 *
 * usage: dsm-storm [-r TAKES] [-c PAGES] [-s SEED] [-o FILE] DOMID FIRST NR
 *
 *   -r  pages to take in a second, default 200
 *   -c  pages that are away at most, default 2048
 *   -s  of the random numbers, default: from the clock; it is printed
 *   -o  where the figures go at the end, as JSON
 *
 * DOMID has not run yet (xl create -p); its memory is NR frames from FIRST on.
 * Says "ready" when DSM is on and the domain may be unpaused.  Then:
 *
 *   SIGUSR1  begin to take pages
 *   SIGUSR2  stop to take, and go on answering
 *   SIGTERM  bring everything back, write the figures, and end
 *
 * Exit status: 0; 1 if a byte was wrong or Xen refused what it must not; 2 if
 * it could not be done.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <xenctrl.h>
#include <xenctrl_dsm.h>
#include <xenevtchn.h>
#include <xenforeignmemory.h>

#define RECENT    512U          /* frames that were missed last */
#define SAMPLES   (1U << 17)    /* of each kind of time that is kept */
#define TIMEOUT_S 60            /* after so long without us the domain stops */

static xc_interface *xch;
static xenforeignmemory_handle *fmem;
static xenevtchn_handle *xce;
static uint32_t domid;
static uint64_t first, nr;

static volatile struct xen_dsm_ring *ring;
static const struct xen_dsm_ring_entry *entries;
static void *buffer;            /* one page that Xen copies from and to */

static volatile sig_atomic_t storming, ending;

/* ---- What we know of each frame ---- */

struct frame {
    uint64_t *bytes;            /* NULL: state M, or not our business */
    uint32_t place;             /* in away[], if state I */
    bool is_away;               /* I; else S if there are bytes */
    bool skip;                  /* not plain memory */
};

static struct frame *frames;
static uint32_t *away;          /* frames in state I, in no order */
static uint32_t nr_away, max_away = 2048, nr_shared;
static uint32_t recent[RECENT], nr_recent;

/* ---- Figures ---- */

static struct {
    uint64_t takes, invals, downgrades, busy, misses, foreign, nodata;
    uint64_t installs_s, installs_m, upgrades, wakes, returned, compared;
    uint64_t wrong, errors, ring_full;
} count;

enum { T_INVAL, T_DOWNGRADE, T_INSTALL, T_UPGRADE, T_ANSWER, NR_TIMES };
static const char *const time_name[NR_TIMES] = {
    "inval", "downgrade", "install", "upgrade", "answer",
};
static struct {
    uint32_t *ns;
    uint64_t nr;
} times[NR_TIMES];

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void took(unsigned int what, uint64_t since)
{
    uint64_t ns = now_ns() - since;

    times[what].ns[times[what].nr++ % SAMPLES] = ns > UINT32_MAX ? UINT32_MAX
                                                                 : ns;
}

static void complain(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
static void complain(const char *fmt, ...)
{
    va_list ap;

    if ( ++count.errors > 20 )
        return;
    va_start(ap, fmt);
    fputs("dsm-storm: ", stdout);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
}

/* ---- Random numbers: xorshift64*, the same for a seed everywhere ---- */

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;

    return ((random_state * 2685821657736338717ULL) >> 32) * n >> 32;
}

/* ---- Pages ---- */

static int page_op(unsigned int what, uint32_t i, unsigned int *state)
{
    xen_dsm_page_op_t op = { .gfn = first + i, .op = what };

    if ( what != XEN_DSM_UPGRADE && what != XEN_DSM_WAKE &&
         what != XEN_DSM_ZERO_M && what != XEN_DSM_QUERY )
        xc_dsm_set_buffer(&op, buffer);
    if ( xc_dsm_page(xch, domid, &op, 1) )
        err(2, "page operation %u", what);
    if ( state )
        *state = op.state;

    return op.rc;
}

static void note_away(uint32_t i)
{
    frames[i].is_away = true;
    frames[i].place = nr_away;
    away[nr_away++] = i;
}

static void note_back(uint32_t i)
{
    uint32_t last = away[--nr_away];

    away[frames[i].place] = last;
    frames[last].place = frames[i].place;
    frames[i].is_away = false;
}

static void forget_bytes(uint32_t i)
{
    free(frames[i].bytes);
    frames[i].bytes = NULL;
}

/* A shared page, as Xen has just given it: nobody may have written to it. */
static void compare(uint32_t i, const char *when)
{
    const uint64_t *got = buffer, *want = frames[i].bytes;
    unsigned int w;

    count.compared++;
    for ( w = 0; w < XC_PAGE_SIZE / sizeof(*got); w++ )
        if ( got[w] != want[w] )
        {
            count.wrong++;
            complain("GFN %#"PRIx64" was written while shared, seen at %s: "
                     "word %u is %#"PRIx64", was %#"PRIx64, first + i, when, w,
                     got[w], want[w]);
            return;
        }
}

static void take(uint32_t i)
{
    bool shared = frames[i].bytes && !frames[i].is_away;
    bool inval = shared || random_below(3);
    uint64_t since = now_ns();
    int rc;

    if ( frames[i].skip || frames[i].is_away )
        return;

    count.takes++;
    rc = page_op(inval ? XEN_DSM_INVAL : XEN_DSM_DOWNGRADE, i, NULL);
    switch ( rc )
    {
    case 0:
        break;
    case -EBUSY:
        count.busy++;
        return;
    case -ENOENT:
    case -EPERM:
        /* A hole may be filled some day; what is special stays so. */
        frames[i].skip = rc == -EPERM;
        return;
    default:
        complain("%s of GFN %#"PRIx64": %s", inval ? "INVAL" : "DOWNGRADE",
                 first + i, strerror(-rc));
        return;
    }
    took(inval ? T_INVAL : T_DOWNGRADE, since);

    if ( shared )
    {
        compare(i, "INVAL");
        nr_shared--;
    }
    else if ( !(frames[i].bytes = malloc(XC_PAGE_SIZE)) )
        err(2, "no memory for a page");
    memcpy(frames[i].bytes, buffer, XC_PAGE_SIZE);
    if ( inval )
    {
        note_away(i);
        count.invals++;
    }
    else
    {
        nr_shared++;
        count.downgrades++;
    }
}

/* From I to S or M. */
static void install(uint32_t i, bool to_m, bool nodata)
{
    uint64_t since = now_ns();
    int rc;

    memcpy(buffer, frames[i].bytes, XC_PAGE_SIZE);
    rc = page_op(nodata ? XEN_DSM_ZERO_M
                        : to_m ? XEN_DSM_INSTALL_M : XEN_DSM_INSTALL_S,
                 i, NULL);
    if ( rc )
    {
        complain("GFN %#"PRIx64" cannot be installed: %s", first + i,
                 strerror(-rc));
        return;
    }
    took(T_INSTALL, since);
    note_back(i);
    if ( to_m )
    {
        forget_bytes(i);
        count.installs_m++;
    }
    else
    {
        nr_shared++;
        count.installs_s++;
    }
}

/* From S to M. */
static void upgrade(uint32_t i)
{
    uint64_t since;
    int rc;

    rc = page_op(XEN_DSM_READ, i, NULL);
    if ( rc )
        complain("READ of GFN %#"PRIx64": %s", first + i, strerror(-rc));
    else
        compare(i, "READ");

    since = now_ns();
    rc = page_op(XEN_DSM_UPGRADE, i, NULL);
    if ( rc )
    {
        complain("UPGRADE of GFN %#"PRIx64": %s", first + i, strerror(-rc));
        return;
    }
    took(T_UPGRADE, since);
    forget_bytes(i);
    nr_shared--;
    count.upgrades++;
}

static void answer(const struct xen_dsm_ring_entry *e)
{
    uint64_t since = now_ns();
    bool to_m = e->want != XEN_DSM_WANT_S;
    uint32_t i = e->gfn - first;

    if ( e->type != XEN_DSM_PAGE_MISS || e->gfn < first ||
         e->gfn - first >= nr )
    {
        complain("entry of type %u, GFN %#"PRIx64, e->type, e->gfn);
        return;
    }

    count.misses++;
    count.foreign += !!(e->flags & XEN_DSM_MISS_FOREIGN);
    count.nodata += e->want == XEN_DSM_WANT_M_NODATA;
    recent[nr_recent++ % RECENT] = i;

    if ( frames[i].is_away )
        install(i, to_m || random_below(2), e->want == XEN_DSM_WANT_M_NODATA);
    else if ( frames[i].bytes && to_m )
        upgrade(i);
    else
    {
        /* Somebody else's miss brought it already. */
        count.wakes++;
        if ( page_op(XEN_DSM_WAKE, i, NULL) )
            complain("WAKE of GFN %#"PRIx64" was refused", e->gfn);
    }
    took(T_ANSWER, since);
}

static bool drain(void)
{
    bool any = false;

    while ( ring->prod != ring->cons )
    {
        struct xen_dsm_ring_entry e;

        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        e = entries[ring->cons & (ring->nr - 1)];
        __atomic_thread_fence(__ATOMIC_RELEASE);
        ring->cons++;
        answer(&e);
        any = true;
    }

    if ( ring->full )
    {
        count.ring_full++;
        ring->full = 0;
        if ( xc_dsm_flush(xch, domid) )
            err(2, "FLUSH");
        any = true;
    }

    return any;
}

/* One step of the storm. */
static void blow(void)
{
    uint32_t i;

    if ( nr_away >= max_away )
    {
        install(away[random_below(nr_away)], random_below(2), false);
        count.returned++;
    }

    if ( nr_recent >= RECENT && random_below(10) < 7 )
        i = recent[random_below(RECENT)];
    else
        i = random_below(nr);
    take(i);
}

static void bring_back(void)
{
    uint32_t i;

    while ( nr_away )
    {
        uint32_t before = nr_away;

        install(away[nr_away - 1], true, false);
        if ( nr_away == before )
            errx(2, "%u pages cannot be brought back", nr_away);
    }
    for ( i = 0; i < nr; i++ )
        if ( frames[i].bytes )
            upgrade(i);
    drain();
}

/* ---- Figures, at the end ---- */

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void write_figures(FILE *f, uint64_t seed, double seconds)
{
    static xen_dsm_stats_t stats;
    unsigned int i;

    if ( xc_dsm_stats(xch, domid, &stats) )
        err(2, "STATS");

#define FIGURE(name) fprintf(f, " \"" #name "\": %"PRIu64",\n", count.name)
    fprintf(f, "{\n \"seed\": %"PRIu64",\n \"seconds\": %.3f,\n", seed,
            seconds);
    FIGURE(takes); FIGURE(invals); FIGURE(downgrades); FIGURE(busy);
    FIGURE(misses); FIGURE(foreign); FIGURE(nodata); FIGURE(installs_s);
    FIGURE(installs_m); FIGURE(upgrades); FIGURE(wakes); FIGURE(returned);
    FIGURE(compared); FIGURE(wrong); FIGURE(errors); FIGURE(ring_full);
#undef FIGURE
    for ( i = 0; i < NR_TIMES; i++ )
    {
        uint64_t n = times[i].nr < SAMPLES ? times[i].nr : SAMPLES;

        qsort(times[i].ns, n, sizeof(*times[i].ns), by_value);
        fprintf(f, " \"%s_ns\": {\"nr\": %"PRIu64", \"p50\": %u, \"p99\": %u, "
                "\"max\": %u},\n", time_name[i], times[i].nr,
                n ? times[i].ns[n / 2] : 0, n ? times[i].ns[n * 99 / 100] : 0,
                n ? times[i].ns[n - 1] : 0);
    }
#define FIGURE(name) fprintf(f, "  \"" #name "\": %"PRIu64",\n", stats.name)
    fprintf(f, " \"xen\": {\n");
    FIGURE(waits); FIGURE(waits_by_xen); FIGURE(foreign); FIGURE(foreign_lost);
    FIGURE(ring_full); FIGURE(busy); FIGURE(invals); FIGURE(downgrades);
    FIGURE(installs_s); FIGURE(installs_m); FIGURE(upgrades); FIGURE(drops);
    FIGURE(recalls); FIGURE(uncovered); FIGURE(pooled); FIGURE(reserved);
    FIGURE(wait_ns); FIGURE(wait_max_ns);
    FIGURE(traps); FIGURE(trap_ns); FIGURE(wakes); FIGURE(wake_ns);
#undef FIGURE
    fprintf(f, "  \"wait_hist\": [");
    for ( i = 0; i < XEN_DSM_STATS_BUCKETS; i++ )
        fprintf(f, "%s%"PRIu64, i ? ", " : "", stats.wait_hist[i]);
    fprintf(f, "]\n }\n}\n");
}

/* ---- Begin and end ---- */

static void on_signal(int sig)
{
    if ( sig == SIGTERM )
        ending = 1;
    storming = sig == SIGUSR1;
}

static void begin(void)
{
    xen_dsm_range_t range = { .first = first, .nr = nr };
    evtchn_port_t port;
    unsigned int refused, i;
    size_t size;
    void *p = NULL;

    if ( !(xch = xc_interface_open(NULL, NULL, 0)) ||
         !(fmem = xenforeignmemory_open(NULL, 0)) ||
         !(xce = xenevtchn_open(NULL, 0)) )
        err(2, "the hypervisor's interfaces");
    if ( !(buffer = xc_dsm_alloc_pages(xch, 1)) ||
         !(frames = calloc(nr, sizeof(*frames))) ||
         !(away = calloc(max_away + 1, sizeof(*away))) )
        err(2, "memory");
    for ( i = 0; i < NR_TIMES; i++ )
        if ( !(times[i].ns = calloc(SAMPLES, sizeof(*times[i].ns))) )
            err(2, "memory");
    /* While a page is away nobody should wait for our own pages. */
    if ( mlockall(MCL_CURRENT) )
        err(2, "mlockall");

    if ( xc_dsm_enable(xch, domid, &range, 1, 0, 1, &port, &refused) )
    {
        if ( errno == EOPNOTSUPP && refused )
            errx(2, "domain %u: %s", domid, xc_dsm_refusal(refused));
        err(2, "domain %u", domid);
    }
    if ( xenforeignmemory_resource_size(fmem, domid, XENMEM_resource_dsm_ring,
                                        0, &size) ||
         !xenforeignmemory_map_resource(fmem, domid, XENMEM_resource_dsm_ring,
                                        0, 0, size / XC_PAGE_SIZE, &p,
                                        PROT_READ | PROT_WRITE, 0) )
        err(2, "the ring");
    ring = p;
    entries = p + XC_PAGE_SIZE;
    if ( xenevtchn_bind_interdomain(xce, domid, port) < 0 )
        err(2, "port %u of domain %u", port, domid);
}

int main(int argc, char **argv)
{
    static const struct option none[] = { {} };
    uint64_t seed = now_ns(), began, next, alive = 0, storm_ns = 0, last;
    struct sigaction sa = { .sa_handler = on_signal };
    struct pollfd fd = { .events = POLLIN };
    unsigned long rate = 200;
    const char *out = NULL;
    FILE *f;
    int c;

    while ( (c = getopt_long(argc, argv, "r:c:s:o:", none, NULL)) != -1 )
        switch ( c )
        {
        case 'r': rate = strtoul(optarg, NULL, 0); break;
        case 'c': max_away = strtoul(optarg, NULL, 0); break;
        case 's': seed = strtoull(optarg, NULL, 0); break;
        case 'o': out = optarg; break;
        default: return 2;
        }
    if ( argc - optind != 3 || !rate || rate > 1000000 || !max_away )
        errx(2, "usage: dsm-storm [-r TAKES] [-c PAGES] [-s SEED] [-o FILE] "
             "DOMID FIRST NR");
    domid = strtoul(argv[optind], NULL, 0);
    first = strtoull(argv[optind + 1], NULL, 0);
    nr = strtoull(argv[optind + 2], NULL, 0);
    if ( !nr || nr > XEN_DSM_MAX_FRAMES )
        errx(2, "NR is 1 to %u", XEN_DSM_MAX_FRAMES);
    random_state = seed ?: 1;

    setvbuf(stdout, NULL, _IOLBF, 0);
    sigaction(SIGUSR1, &sa, NULL);
    sigaction(SIGUSR2, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    begin();
    fd.fd = xenevtchn_fd(xce);
    printf("ready, seed %"PRIu64"\n", seed);

    began = last = next = now_ns();
    while ( !ending )
    {
        uint64_t now = now_ns();
        int wait_ms = 1000;

        if ( now - alive > TIMEOUT_S / 4 * 1000000000ULL || !alive )
        {
            if ( xc_dsm_keepalive(xch, domid, TIMEOUT_S * 1000) )
                err(2, "KEEPALIVE");
            alive = now;
        }
        if ( drain() )
            continue;
        if ( storming )
        {
            storm_ns += now - last;
            if ( now >= next )
            {
                blow();
                /* Behind by more than a second: the host is busy. */
                next = now - next > 1000000000ULL ? now
                                                  : next + 1000000000ULL / rate;
                last = now;
                continue;
            }
            wait_ms = (next - now) / 1000000;
        }
        else
            next = now;
        last = now;
        if ( poll(&fd, 1, wait_ms) > 0 )
        {
            int port = xenevtchn_pending(xce);

            if ( port < 0 || xenevtchn_unmask(xce, port) )
                err(2, "event channel");
        }
    }

    bring_back();
    if ( xc_dsm_keepalive(xch, domid, 0) )
        err(2, "KEEPALIVE");
    f = out ? fopen(out, "w") : stdout;
    if ( !f )
        err(2, "%s", out);
    write_figures(f, seed, storm_ns / 1e9);
    if ( fflush(f) || ferror(f) )
        err(2, "figures");
    printf("end after %.1f s: %"PRIu64" wrong, %"PRIu64" errors\n",
           (now_ns() - began) / 1e9, count.wrong, count.errors);

    return count.wrong || count.errors;
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
