// SPDX-License-Identifier: GPL-2.0-only
/*
 * One guest in two slices, which are two domains of this host.
 *
 * This program is the daemon of both, without messages: it knows which slice
 * has which page in which state, and moves pages when one of them misses one.
 * All vCPUs run in slice 0, but with -v vCPU 1 runs in slice 1.  In slice 1 a
 * stub uses pages as vCPUs would, too: it maps a page, which misses it, and
 * reads it or writes to it.
 *
 *   slice 0, DOMID:     frames 0 to HOME - 1 are homed here
 *   slice 1, made here: frames FIRST to FIRST + NR - 1 are
 *
 * What is looked at:
 *
 *   - as long as the stub has a page nobody else writes to it: it reads each
 *     page twice, and when it may write it turns all bits of the page, and
 *     then turns them back.  A guest that sees or loses such a word has to
 *     notice by itself: it runs something that checks its memory;
 *   - two copies in state S hold the same bytes, whenever one goes;
 *   - frames: at the end both slices have what they began with.
 *
 * usage: dsm-slices [-v] [-l MICROSECONDS] [-f FACTOR] [-j TICKS]
 *                   [-r ACCESSES] [-c FRAMES] [-s SEED] [-o FILE] [-w GFN]
 *                   DOMID HOME FIRST NR
 *
 *   -l  with -v: how long a slice keeps a page that a vCPU there waited for, or
 *       up to twice as long; default 500
 *   -f  with -v: the guest's clock is so many times slower than the host's, and
 *       its timers take as much longer; default 1
 *   -j  with -v: each second both slices' time jumps ahead by so many ticks of
 *       the TSC, one after the other; default 0, it does not
 *   -r  accesses of the stub in a second, default 200
 *   -c  frames that each slice has for pages of the other, default 4096
 *   -s  of the random numbers, default: from the clock; it is printed
 *   -o  where the figures go at the end, as JSON
 *   -v  vCPU 1 runs in slice 1
 *   -w  the first words of this frame at the end belong to the figures
 *
 * DOMID has not run yet (xl create -p), and has no memory from FIRST on.  Says
 * "ready" when both slices are there and the guest may be unpaused.  Then:
 *
 *   SIGUSR1  the stub begins
 *   SIGUSR2  the stub stops
 *   SIGTERM  the guest has given back the node at FIRST, or has shut down:
 *            bring everything home, detach slice 1, write the figures, and end
 *
 * Exit status: 0; 1 if something was wrong; 2 if it could not be done.
 *
 * Threads: one serves the rings, and only it knows states; the stub has two,
 * which share the numbers below "The stub", as atomics.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
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
#include <xenguest.h>
#include <xen/arch-x86/cpuid.h>

#define RECENT     1024U        /* frames that the guest missed last */
#define SAMPLES    (1U << 17)   /* of each kind of time that is kept */
#define TIMEOUT_S  60           /* after so long without us slice 0 stops */
#define PENDING    256U         /* misses that wait for a page in use */
#define GIVE_UP_MS 500          /* after so long the stub does not get it */
#define TOLD       32           /* words of -w */
#define VCPUS      64U          /* of a guest that runs in both slices */
#define WORDS      (XC_PAGE_SIZE / sizeof(uint64_t))

#define I    XEN_DSM_STATE_I
#define S    XEN_DSM_STATE_S
#define M    XEN_DSM_STATE_M

static xc_interface *xch;
static xenforeignmemory_handle *fmem;
static xenevtchn_handle *xce;
static void *buffer, *other;    /* pages that Xen copies from and to */
static uint64_t home, first, nr; /* frames of slice 0; and of slice 1 */

struct slice {
    uint32_t domid;
    volatile struct xen_dsm_ring *ring;
    const struct xen_dsm_ring_entry *entries;
    uint32_t *guests;           /* pages of the other slice that are here */
    uint32_t nr_guests, room;   /* room: at most so many */
    uint64_t sends;             /* that were begun here */
    uint64_t heard_sends;       /* as of the last ACTIVITY */
    bool heard_active;
};
static struct slice slices[2] = { { .heard_active = true } };

struct page {
    uint64_t lease;             /* until then this slice keeps it: */
    uint8_t holder;
    uint8_t state[2];           /* XEN_DSM_STATE_*, in each slice */
    uint32_t place;             /* in guests[] of the slice that is not home */
};
static struct page *pages;      /* first those of slice 0, then of slice 1 */

struct pending {
    unsigned int slice, want;
    uint32_t page;
    bool foreign;
    uint64_t since;
};
static struct pending pending[PENDING];
static unsigned int nr_pending;

/* A hypercall of a vCPU about one in the other slice.  It waits for one. */
struct call {
    bool open;
    unsigned int slice;         /* of who waits */
    uint64_t cookie;
    xen_dsm_call_t what;
};
static struct call calls[VCPUS];
static unsigned int nr_calls;   /* that are open */

static volatile sig_atomic_t storming, ending;

static bool spread;             /* vCPU 1 runs in slice 1 */
static uint32_t lease_ns = 500000;
static unsigned int slow = 1;   /* the guest's clock, so many times */
static uint64_t jump;           /* and ahead each second, in ticks */

/* ---- Figures ---- */

static struct {
    uint64_t misses[2], moves, copies, upgrades, wakes, evictions, busy;
    uint64_t compared, pinned, holes, errors, ring_full;
    uint64_t leases, events[2], shutdowns, halts, calls[2], ports[2], jumps;
} count;

/* The stub's. */
static uint64_t reads, writes, failures, unstable, running;
static uint32_t recent[RECENT], nr_recent;

static uint32_t *serve_ns;
static uint64_t nr_serve;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void complain(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
static void complain(const char *fmt, ...)
{
    va_list ap;

    if ( ++count.errors > 20 )
        return;
    va_start(ap, fmt);
    fputs("dsm-slices: ", stdout);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
}

/* ---- Random numbers: xorshift64*, the same for a seed everywhere ---- */

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;

    return ((*state * 2685821657736338717ULL) >> 32) * n >> 32;
}

static uint64_t daemon_random;

/* ---- Pages ---- */

static uint64_t gfn_of(uint32_t page)
{
    return page < home ? page : first + (page - home);
}

/* The slice that a page is homed on. */
static unsigned int home_of(uint32_t page)
{
    return page >= home;
}

/* False if no slice has such a frame. */
static bool page_of(uint64_t gfn, uint32_t *page)
{
    if ( gfn < home )
        *page = gfn;
    else if ( gfn >= first && gfn - first < nr )
        *page = home + (gfn - first);
    else
        return false;

    return true;
}

static int page_op(unsigned int k, unsigned int what, uint32_t page, void *buf)
{
    xen_dsm_page_op_t op = { .gfn = gfn_of(page), .op = what };

    xc_dsm_set_buffer(&op, buf);
    if ( xc_dsm_page(xch, slices[k].domid, &op, 1) )
        err(2, "page operation %u in slice %u", what, k);

    return op.rc;
}

/* The page is in this state in slice k now. */
static void note(unsigned int k, uint32_t page, unsigned int state)
{
    struct slice *s = &slices[k];
    struct page *p = &pages[page];

    if ( home_of(page) != k && (p->state[k] == I) != (state == I) )
    {
        if ( state != I )
        {
            p->place = s->nr_guests;
            s->guests[s->nr_guests++] = page;
        }
        else
        {
            uint32_t last = s->guests[--s->nr_guests];

            s->guests[p->place] = last;
            pages[last].place = p->place;
        }
    }
    p->state[k] = state;
}

/* An operation that must not be refused. */
static bool must(unsigned int k, unsigned int what, const char *name,
                 uint32_t page, void *buf, unsigned int state)
{
    int rc = page_op(k, what, page, buf);

    if ( rc )
    {
        complain("%s of GFN %#"PRIx64" in slice %u, which has it in state %u, "
                 "%u in the other: %s", name, gfn_of(page), k,
                 pages[page].state[k], pages[page].state[!k], strerror(-rc));
        return false;
    }
    note(k, page, state);

    return true;
}

/* Slice k has it in state S, and *copy is what the other slice has had. */
static void compare(unsigned int k, uint32_t page, const uint64_t *copy)
{
    const uint64_t *mine = other;
    unsigned int w;

    if ( !must(k, XEN_DSM_READ, "READ", page, other, S) )
        return;
    count.compared++;
    for ( w = 0; w < WORDS; w++ )
        if ( mine[w] != copy[w] )
        {
            complain("two copies of GFN %#"PRIx64" differ: word %u is "
                     "%#"PRIx64" in slice %u, %#"PRIx64" in the other",
                     gfn_of(page), w, mine[w], k, copy[w]);
            return;
        }
}

/*
 * Take a page, or its rights, from slice k; its bytes are in buffer then.
 * Returns what Xen says: 0, -EBUSY, or -ENOENT and -EPERM for what is no page.
 */
static int take(unsigned int k, unsigned int what, uint32_t page)
{
    int rc = page_op(k, what, page, buffer);

    if ( !rc )
        note(k, page, what == XEN_DSM_INVAL ? I : S);
    else if ( rc == -EBUSY )
        count.busy++;
    else if ( (rc != -ENOENT && rc != -EPERM) || home_of(page) != k )
        complain("operation %u on GFN %#"PRIx64" in slice %u: %s", what,
                 gfn_of(page), k, strerror(-rc));

    return rc;
}

/* Slice k gives back one page of the other's, so that another has room. */
static bool evict(unsigned int k)
{
    const struct slice *s = &slices[k];
    unsigned int tries;

    for ( tries = 0; tries < 32; tries++ )
    {
        uint32_t page = s->guests[random_below(&daemon_random, s->nr_guests)];
        bool shared = pages[page].state[k] == S;

        if ( take(k, XEN_DSM_INVAL, page) )
            continue;
        count.evictions++;
        if ( shared )
            compare(!k, page, buffer);
        else
            must(!k, XEN_DSM_INSTALL_M, "INSTALL_M", page, buffer, M);
        return true;
    }

    return false;
}

/*
 * No page for slice k: who waits there finds a hole, now and later.  Pages that
 * the home slice uses for good are of this kind, too.
 */
static void no_page(unsigned int k, uint32_t page)
{
    int rc = page_op(k, XEN_DSM_DROP, page, NULL);

    if ( rc )
        complain("DROP of GFN %#"PRIx64" in slice %u: %s", gfn_of(page), k,
                 strerror(-rc));
}

/* False: the page is in use, try again. */
static bool serve(unsigned int k, uint32_t page, bool to_m)
{
    struct page *p = &pages[page];
    const struct slice *s = &slices[k];
    unsigned int o = !k, was = p->state[k], theirs = p->state[o];
    int rc = 0;

    if ( was == M || (was == S && !to_m) )
    {
        count.wakes++;
        page_op(k, XEN_DSM_WAKE, page, NULL);
        return true;
    }

    /*
     * Two vCPUs that want the same page would take it from each other before
     * either has executed an instruction.
     */
    if ( spread && p->holder != k && now_ns() < p->lease )
    {
        count.leases++;
        return false;
    }

    if ( was == I && home_of(page) != k && s->nr_guests >= s->room &&
         !evict(k) )
        return false;

    /* Its bytes, in buffer, and its rights. */
    if ( theirs == S && !to_m )
        rc = must(o, XEN_DSM_READ, "READ", page, buffer, S) ? 0 : -EIO;
    else if ( theirs != I )
        rc = take(o, to_m ? XEN_DSM_INVAL : XEN_DSM_DOWNGRADE, page);
    else if ( was == I )
    {
        complain("GFN %#"PRIx64" is in no slice", gfn_of(page));
        return true;
    }

    switch ( rc )
    {
    case 0:
        break;
    case -EBUSY:
        return false;
    case -ENOENT:
    case -EPERM:
        count.holes++;
        no_page(k, page);
        return true;
    default:
        return true;
    }

    if ( was == S )
    {
        if ( theirs == S )
            compare(k, page, buffer);
        must(k, XEN_DSM_UPGRADE, "UPGRADE", page, NULL, M);
        count.upgrades++;
    }
    else if ( to_m )
    {
        must(k, XEN_DSM_INSTALL_M, "INSTALL_M", page, buffer, M);
        count.moves++;
    }
    else
    {
        must(k, XEN_DSM_INSTALL_S, "INSTALL_S", page, buffer, S);
        count.copies++;
    }
    if ( spread )
    {
        p->holder = k;
        p->lease = now_ns() + lease_ns +
                   random_below(&daemon_random, lease_ns);
    }

    return true;
}

/* ---- Misses ---- */

static void served(const struct pending *m)
{
    uint64_t ns = now_ns() - m->since;

    serve_ns[nr_serve++ % SAMPLES] = ns > UINT32_MAX ? UINT32_MAX : ns;
}

static void miss(unsigned int k, const struct xen_dsm_ring_entry *e)
{
    struct pending m = {
        .slice = k,
        .want = e->want,
        .foreign = e->flags & XEN_DSM_MISS_FOREIGN,
        .since = now_ns(),
    };
    unsigned int i;

    if ( !page_of(e->gfn, &m.page) )
    {
        complain("GFN %#"PRIx64" is missed in slice %u", e->gfn, k);
        return;
    }
    count.misses[k]++;
    if ( k == 0 && !m.foreign )
    {
        uint32_t n = __atomic_load_n(&nr_recent, __ATOMIC_RELAXED);

        __atomic_store_n(&recent[n % RECENT], m.page, __ATOMIC_RELAXED);
        __atomic_store_n(&nr_recent, n + 1, __ATOMIC_RELEASE);
    }

    for ( i = 0; i < nr_pending; i++ )
        if ( pending[i].slice == k && pending[i].page == m.page )
        {
            if ( m.want > pending[i].want )
                pending[i].want = m.want;
            pending[i].foreign &= m.foreign;
            return;
        }
    if ( serve(k, m.page, m.want != XEN_DSM_WANT_S) )
        served(&m);
    else if ( nr_pending < PENDING )
        pending[nr_pending++] = m;
    else
        complain("more than %u misses wait", PENDING);
}

/* ---- vCPUs ---- */

/* What was sent in slice k to a vCPU that runs in the other one. */
static void forward(unsigned int k, const struct xen_dsm_ring_entry *e)
{
    xen_dsm_vcpu_event_t event = {
        .vcpu = e->vcpu,
        .flags = e->flags,
        .sipi = e->want,
    };

    count.events[k]++;
    memcpy(event.vectors, e->vectors, sizeof(event.vectors));
    slices[!k].sends++;
    if ( xc_dsm_send(xch, slices[!k].domid, &event) )
    {
        slices[!k].sends--;
        complain("event %#x for vCPU %u of slice %u: %s", e->flags, e->vcpu,
                 !k, strerror(errno));
    }
}

/*
 * Is no vCPU up, in neither slice?  What each has sent before it said so was
 * read before that, and done at once, so nothing is on its way.
 */
static bool all_down(void)
{
    unsigned int k;

    for ( k = 0; k < 2; k++ )
        if ( slices[k].heard_active ||
             slices[k].heard_sends != slices[k].sends )
            return false;

    return true;
}

/* SHUTDOWN of slice 0 has slice 1 shut down, too. */
static void look_at_activity(unsigned int k, const struct xen_dsm_ring_entry *e)
{
    slices[k].heard_active = e->want;
    slices[k].heard_sends = e->gfn;
    if ( count.halts || !all_down() )
        return;
    count.halts++;
    if ( xc_domain_shutdown(xch, slices[0].domid, SHUTDOWN_poweroff) )
        complain("slice 0 does not shut down: %s", strerror(errno));
}

/* One slice has shut down, so does the other, which may have by itself. */
static void shut_down(unsigned int k, unsigned int reason)
{
    count.shutdowns++;
    if ( xc_domain_shutdown(xch, slices[!k].domid, reason) )
        complain("slice %u does not shut down: %s", !k, strerror(errno));
}

/* Events that were sent in slice k to ports of the other one. */
static void forward_ports(unsigned int k, const struct xen_dsm_ring_entry *e)
{
    xen_dsm_ports_t ports = { .first = e->gfn };

    count.ports[k]++;
    memcpy(ports.ports, e->vectors, sizeof(ports.ports));
    if ( e->want != !k || xc_dsm_send_ports(xch, slices[!k].domid, &ports) )
        complain("events to ports from %u of slice %u: %s", ports.first,
                 e->want, strerror(errno));
}

/* Events of slice 1 need a shared_info there, where slice 0 has its own. */
static void share_info(void)
{
    static bool shared;
    xc_domaininfo_t info;

    if ( shared )
        return;
    if ( xc_domain_getinfo_single(xch, slices[0].domid, &info) )
        err(2, "domain %u", slices[0].domid);
    if ( xc_dsm_shared_info(xch, slices[1].domid, info.shared_info_frame) )
        complain("shared_info of slice 1 at GFN %#"PRIx64": %s",
                 (uint64_t)info.shared_info_frame, strerror(errno));
    shared = true;
}

/* False: it needs a page that is on its way there. */
static bool do_call(uint32_t vcpu)
{
    struct call *c = &calls[vcpu];
    uint32_t domid = slices[!c->slice].domid;

    if ( c->slice == 0 )
        share_info();
    if ( xc_dsm_call(xch, domid, &c->what) )
    {
        if ( errno == EAGAIN )
            return false;
        complain("hypercall %u, %u of slice %u about vCPU %u: %s", c->what.op,
                 c->what.cmd, c->slice, c->what.vcpu, strerror(errno));
        c->what.rc = -EIO;
    }
    if ( xc_dsm_reply(xch, slices[c->slice].domid, vcpu, c->cookie,
                      &c->what) )
        complain("a reply to vCPU %u in slice %u: %s", vcpu, c->slice,
                 strerror(errno));
    c->open = false;
    nr_calls--;
    count.calls[c->slice]++;

    return true;
}

static void call_away(unsigned int k, const struct xen_dsm_ring_entry *e)
{
    struct call *c;

    if ( !spread || e->vcpu >= VCPUS || calls[e->vcpu].open || e->want != !k )
    {
        complain("a hypercall of vCPU %u in slice %u", e->vcpu, k);
        return;
    }
    c = &calls[e->vcpu];
    *c = (struct call){
        .open = true,
        .slice = k,
        .cookie = e->gfn,
        .what = {
            .op = e->rip,
            .cmd = e->rip >> 32,
            .vcpu = e->vectors[0],
            .arg = { e->vectors[1], e->vectors[2], e->vectors[3] },
        },
    };
    nr_calls++;
    do_call(e->vcpu);
}

static void heard(unsigned int k, const struct xen_dsm_ring_entry *e)
{
    switch ( e->type )
    {
    case XEN_DSM_PAGE_MISS:
        miss(k, e);
        break;

    case XEN_DSM_VCPU_EVENT:
        forward(k, e);
        break;

    case XEN_DSM_PORT_EVENT:
        forward_ports(k, e);
        break;

    case XEN_DSM_SHUTDOWN:
        shut_down(k, e->want);
        break;

    case XEN_DSM_HCALL:
        call_away(k, e);
        break;

    case XEN_DSM_ACTIVITY:
        look_at_activity(k, e);
        break;

    default:
        complain("entry of type %u in slice %u", e->type, k);
        break;
    }
}

/* Those whose page was in use, or on its way. */
static void try_again(void)
{
    unsigned int i;

    for ( i = 0; nr_calls && i < VCPUS; i++ )
        if ( calls[i].open )
            do_call(i);
    i = 0;

    while ( i < nr_pending )
    {
        struct pending m = pending[i];

        if ( serve(m.slice, m.page, m.want != XEN_DSM_WANT_S) )
            served(&m);
        else if ( m.slice == 1 && home_of(m.page) == 0 &&
                  now_ns() - m.since > GIVE_UP_MS * 1000000ULL )
        {
            /* Slice 0 uses it for good: console, store, rings, vcpu_info. */
            count.pinned++;
            if ( !m.foreign )
                complain("a vCPU in slice 1 needs GFN %#"PRIx64", which slice "
                         "0 cannot give", gfn_of(m.page));
            if ( pages[m.page].state[1] != S ||
                 !take(1, XEN_DSM_INVAL, m.page) )
                no_page(1, m.page);
        }
        else
        {
            i++;
            continue;
        }
        pending[i] = pending[--nr_pending];
    }
}

static bool drain(unsigned int k)
{
    volatile struct xen_dsm_ring *ring = slices[k].ring;
    bool any = false;

    while ( ring->prod != ring->cons )
    {
        struct xen_dsm_ring_entry e;

        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        e = slices[k].entries[ring->cons & (ring->nr - 1)];
        __atomic_thread_fence(__ATOMIC_RELEASE);
        ring->cons++;
        heard(k, &e);
        any = true;
    }

    if ( ring->full )
    {
        count.ring_full++;
        ring->full = 0;
        if ( xc_dsm_flush(xch, slices[k].domid) )
            err(2, "FLUSH");
        any = true;
    }

    return any;
}

/* ---- The stub: what uses pages in slice 1 ---- */

static unsigned long rate = 200;

static uint32_t choose(uint64_t *random)
{
    uint32_t n = __atomic_load_n(&nr_recent, __ATOMIC_ACQUIRE);
    uint32_t dice = random_below(random, 10);

    if ( dice < 6 && n )
        return __atomic_load_n(&recent[random_below(random, n < RECENT
                                                            ? n : RECENT)],
                               __ATOMIC_RELAXED);
    if ( dice < 9 )
        return home + random_below(random, nr);

    return random_below(random, home);
}

static void add(uint64_t *number)
{
    __atomic_fetch_add(number, 1, __ATOMIC_RELAXED);
}

static void use_page(xenforeignmemory_handle *mem, uint32_t page, bool write)
{
    xen_pfn_t gfn = gfn_of(page);
    volatile uint64_t *p;
    uint64_t was[WORDS];
    unsigned int w, bad = 0;
    int error = 0;

    /* Comes back when the page is there, or there is none. */
    p = xenforeignmemory_map(mem, slices[1].domid,
                             PROT_READ | (write ? PROT_WRITE : 0), 1, &gfn,
                             &error);
    if ( !p || error )
    {
        add(&failures);
        if ( p )
            xenforeignmemory_unmap(mem, (void *)p, 1);
        return;
    }

    for ( w = 0; w < WORDS; w++ )
    {
        was[w] = p[w];
        if ( write )
            p[w] = ~was[w];
    }
    for ( w = WORDS; w-- > 0; )
    {
        bad += p[w] != (write ? ~was[w] : was[w]);
        if ( write )
            p[w] = was[w];
    }
    if ( xenforeignmemory_unmap(mem, (void *)p, 1) )
        err(2, "unmap");

    if ( bad )
        add(&unstable);
    add(write ? &writes : &reads);
}

static void *stub(void *arg)
{
    uint64_t random = *(const uint64_t *)arg;
    xenforeignmemory_handle *mem = xenforeignmemory_open(NULL, 0);
    const uint64_t period = 2 * 1000000000ULL / rate; /* there are two of us */

    if ( !mem )
        err(2, "xenforeignmemory_open");
    while ( !ending )
    {
        struct timespec nap = {};
        uint64_t until = now_ns() + period, now;

        if ( storming )
            use_page(mem, choose(&random), random_below(&random, 2));
        now = now_ns();
        if ( now < until )
        {
            nap.tv_sec = (until - now) / 1000000000;
            nap.tv_nsec = (until - now) % 1000000000;
            nanosleep(&nap, NULL);
        }
    }
    xenforeignmemory_close(mem);
    __atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);

    return NULL;
}

/* ---- Begin ---- */

static void create_slice(unsigned int vcpus)
{
    struct xen_domctl_createdomain config = {
        .flags = XEN_DOMCTL_CDF_hvm | XEN_DOMCTL_CDF_hap,
        .max_vcpus = vcpus,
        .max_grant_frames = 1,
        .max_evtchn_port = 4095,
        .grant_opts = XEN_DOMCTL_GRANT_version(1),
        .arch.emulation_flags = XEN_X86_EMU_LAPIC,
    };
    uint64_t gfn;

    slices[1].domid = 0;
    if ( xc_domain_create(xch, &slices[1].domid, &config) )
        err(2, "a domain for slice 1");
    if ( xc_domain_max_vcpus(xch, slices[1].domid, vcpus) ||
         xc_domain_setmaxmem(xch, slices[1].domid, -1) ||
         xc_set_paging_mempool_size(xch, slices[1].domid, 8 << 20) )
        err(2, "the limits of slice 1");
    for ( gfn = first; gfn < first + nr; gfn += 512 )
    {
        xen_pfn_t extent = gfn;

        if ( xc_domain_populate_physmap(xch, slices[1].domid, 1, 9, 0,
                                        &extent) != 1 )
            err(2, "memory of slice 1 at GFN %#"PRIx64, gfn);
    }
}

/* The same processor, and the same time, in slice 1 as in slice 0. */
static void equal_vcpus(void)
{
    xc_cpu_policy_t *policy = xc_cpu_policy_init();

    if ( !policy ||
         xc_cpu_policy_get_domain(xch, slices[0].domid, policy) ||
         xc_cpu_policy_set_domain(xch, slices[1].domid, policy) )
        err(2, "the CPU policy of slice 1");
    xc_cpu_policy_destroy(policy);
    if ( xc_domain_set_tsc_info(xch, slices[1].domid,
                                XEN_CPUID_TSC_MODE_NEVER_EMULATE, 0, 0, 0) )
        err(2, "the TSC of slice 1");
}

static void place_vcpu(uint32_t vcpu)
{
    xen_dsm_time_t time;
    uint64_t offset;
    unsigned int k;

    for ( k = 0; k < 2; k++ )
        if ( xc_dsm_place(xch, slices[k].domid, vcpu, 1, NULL) )
            err(2, "vCPU %u in slice %u", vcpu, k);
    if ( xc_dsm_get_tsc(xch, slices[0].domid, &offset) )
        err(2, "the TSC of slice 0");
    if ( xc_dsm_set_tsc(xch, slices[1].domid, offset) )
        err(2, "the TSC of slice 1");
    if ( xc_dsm_get_time(xch, slices[0].domid, &time) )
        err(2, "the time of slice 0");
    time.mul /= slow;
    time.slow = slow;
    for ( k = 0; k < 2; k++ )
        if ( xc_dsm_set_time(xch, slices[k].domid, &time) )
            err(2, "the time of slice %u", k);
    if ( xc_domain_unpause(xch, slices[1].domid) )
        err(2, "slice 1 stays paused");
}

static void enable_slice(unsigned int k)
{
    xen_dsm_range_t ranges[2] = { { 0, home }, { first, nr } };
    struct slice *s = &slices[k];
    uint64_t done;
    evtchn_port_t port;
    unsigned int refused;
    size_t size;
    void *p = NULL;

    if ( xc_dsm_enable(xch, s->domid, ranges, 2, k, 2, &port, &refused) )
    {
        if ( errno == EOPNOTSUPP && refused )
            errx(2, "slice %u: %s", k, xc_dsm_refusal(refused));
        err(2, "slice %u", k);
    }
    if ( xc_dsm_away(xch, s->domid, ranges[!k].first, ranges[!k].nr, &done) )
        err(2, "AWAY in slice %u, at GFN %#"PRIx64, k, ranges[!k].first + done);
    if ( xc_dsm_pool_add(xch, s->domid, s->room, &done) )
        err(2, "frames of slice %u, after %"PRIu64, k, done);

    if ( xenforeignmemory_resource_size(fmem, s->domid,
                                        XENMEM_resource_dsm_ring, 0, &size) ||
         !xenforeignmemory_map_resource(fmem, s->domid,
                                        XENMEM_resource_dsm_ring, 0, 0,
                                        size / XC_PAGE_SIZE, &p,
                                        PROT_READ | PROT_WRITE, 0) )
        err(2, "the ring of slice %u", k);
    s->ring = p;
    s->entries = p + XC_PAGE_SIZE;
    if ( xenevtchn_bind_interdomain(xce, s->domid, port) < 0 )
        err(2, "port %u of slice %u", port, k);
    if ( !(s->guests = calloc(s->room + 1, sizeof(*s->guests))) )
        err(2, "memory");
}

static void begin(void)
{
    xc_domaininfo_t info;
    uint32_t i;
    unsigned int k;

    if ( !(xch = xc_interface_open(NULL, NULL, 0)) ||
         !(fmem = xenforeignmemory_open(NULL, 0)) ||
         !(xce = xenevtchn_open(NULL, 0)) )
        err(2, "the hypervisor's interfaces");
    if ( !(buffer = xc_dsm_alloc_pages(xch, 1)) ||
         !(other = xc_dsm_alloc_pages(xch, 1)) ||
         !(pages = calloc(home + nr, sizeof(*pages))) ||
         !(serve_ns = calloc(SAMPLES, sizeof(*serve_ns))) )
        err(2, "memory");
    for ( i = 0; i < home + nr; i++ )
    {
        pages[i].state[home_of(i)] = M;
        pages[i].state[!home_of(i)] = I;
    }

    if ( xc_domain_getinfo_single(xch, slices[0].domid, &info) )
        err(2, "domain %u", slices[0].domid);
    if ( xc_domain_setmaxmem(xch, slices[0].domid,
                             (info.max_pages + slices[0].room) * 4) )
        err(2, "the limit of domain %u", slices[0].domid);
    if ( spread && info.max_vcpu_id >= VCPUS )
        errx(2, "a guest in two slices has at most %u vCPUs", VCPUS);
    create_slice(spread ? info.max_vcpu_id + 1 : 1);
    if ( spread )
        equal_vcpus();
    for ( k = 0; k < 2; k++ )
        enable_slice(k);
    if ( spread )
        place_vcpu(1);
    /* While a page is away nobody should wait for our own pages. */
    if ( mlockall(MCL_CURRENT) )
        err(2, "mlockall");
}

/* ---- End ---- */

/* The vCPU of slice 1 has ended, or never begun: it keeps no page there. */
static void unplace_vcpu(uint32_t vcpu)
{
    unsigned int k;

    for ( k = 2; k-- > 0; )
        if ( xc_domain_pause(xch, slices[k].domid) ||
             xc_dsm_place(xch, slices[k].domid, vcpu, 0, NULL) )
            complain("vCPU %u does not leave slice 1, as slice %u says: %s",
                     vcpu, k, strerror(errno));
}

/* All pages are at home, and state M there. */
static void bring_home(void)
{
    unsigned int k;
    uint32_t i;

    for ( k = 0; k < 2; k++ )
        while ( slices[k].nr_guests )
            if ( !evict(k) )
                errx(2, "%u pages of slice %u cannot be taken from slice %u",
                     slices[k].nr_guests, !k, k);
    for ( i = 0; i < home + nr; i++ )
        if ( pages[i].state[home_of(i)] == S )
            must(home_of(i), XEN_DSM_UPGRADE, "UPGRADE", i, NULL, M);
}

/* What slice 0 got for slice 1 goes, and slice 1 itself. */
static void detach(void)
{
    const struct { uint64_t first, nr; } theirs[2] = {
        { first, nr }, { 0, home },
    };
    xen_dsm_stats_t stats;
    uint64_t done;
    unsigned int k;

    for ( k = 0; k < 2; k++ )
    {
        if ( xc_dsm_drop_range(xch, slices[k].domid, theirs[k].first,
                               theirs[k].nr, &done) )
            complain("DROP_RANGE in slice %u, at GFN %#"PRIx64": %s", k,
                     theirs[k].first + done, strerror(errno));
        if ( xc_dsm_pool_del(xch, slices[k].domid, slices[k].room, &done) )
            complain("slice %u gives back %"PRIu64" of %u frames: %s", k, done,
                     slices[k].room, strerror(errno));
        if ( xc_dsm_stats(xch, slices[k].domid, &stats) )
            err(2, "STATS");
        if ( stats.uncovered )
            complain("slice %u: %"PRIu64" hypercalls found a page missing", k,
                     stats.uncovered);
        if ( stats.pooled || stats.reserved || stats.added )
            complain("slice %u: %"PRIu64" frames pooled, %"PRIu64" reserved, "
                     "%"PRIu64" added", k, stats.pooled, stats.reserved,
                     stats.added);
    }
    if ( xc_domain_destroy(xch, slices[1].domid) )
        err(2, "slice 1 cannot be destroyed");
}

static uint64_t told[TOLD];

/* All pages are at home. */
static void read_words(xen_pfn_t gfn)
{
    int error = 0;
    void *p = xenforeignmemory_map(fmem, slices[0].domid, PROT_READ, 1, &gfn,
                                   &error);

    if ( !p || error )
        errx(2, "GFN %#"PRIx64" cannot be read: %s", gfn, strerror(-error));
    memcpy(told, p, sizeof(told));
    xenforeignmemory_unmap(fmem, p, 1);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void write_figures(FILE *f, const xen_dsm_stats_t *stats, uint64_t seed,
                          double seconds)
{
    uint64_t n = nr_serve < SAMPLES ? nr_serve : SAMPLES;
    unsigned int i;

    qsort(serve_ns, n, sizeof(*serve_ns), by_value);
    fprintf(f, "{\n \"seed\": %"PRIu64",\n \"seconds\": %.3f,\n", seed,
            seconds);
    fprintf(f, " \"misses\": [%"PRIu64", %"PRIu64"],\n", count.misses[0],
            count.misses[1]);
#define FIGURE(name, value) fprintf(f, " \"%s\": %"PRIu64",\n", name, value)
    FIGURE("slow", (uint64_t)slow);
    FIGURE("moves", count.moves);
    FIGURE("copies", count.copies);
    FIGURE("upgrades", count.upgrades);
    FIGURE("wakes", count.wakes);
    FIGURE("evictions", count.evictions);
    FIGURE("busy", count.busy);
    FIGURE("compared", count.compared);
    FIGURE("pinned", count.pinned);
    FIGURE("holes", count.holes);
    FIGURE("ring_full", count.ring_full);
    FIGURE("leases", count.leases);
    FIGURE("shutdowns", count.shutdowns);
    FIGURE("halts", count.halts);
    FIGURE("jumps", count.jumps);
    FIGURE("errors", count.errors);
    FIGURE("stub_reads", reads);
    FIGURE("stub_writes", writes);
    FIGURE("stub_failures", failures);
    FIGURE("stub_unstable", unstable);
#undef FIGURE
    fprintf(f, " \"events\": [%"PRIu64", %"PRIu64"],\n", count.events[0],
            count.events[1]);
    fprintf(f, " \"calls\": [%"PRIu64", %"PRIu64"],\n", count.calls[0],
            count.calls[1]);
    fprintf(f, " \"ports\": [%"PRIu64", %"PRIu64"],\n", count.ports[0],
            count.ports[1]);
    fprintf(f, " \"words\": [");
    for ( i = 0; i < TOLD; i++ )
        fprintf(f, "%s%"PRIu64, i ? ", " : "", told[i]);
    fprintf(f, "],\n");
    fprintf(f, " \"serve_ns\": {\"nr\": %"PRIu64", \"p50\": %u, "
            "\"p99\": %u},\n", nr_serve, n ? serve_ns[n / 2] : 0,
            n ? serve_ns[n * 99 / 100] : 0);
    fprintf(f, " \"xen\": {\"waits\": %"PRIu64", \"wait_ns\": %"PRIu64
            ", \"wait_max_ns\": %"PRIu64", \"wait_hist\": [", stats->waits,
            stats->wait_ns, stats->wait_max_ns);
    for ( i = 0; i < XEN_DSM_STATS_BUCKETS; i++ )
        fprintf(f, "%s%"PRIu64, i ? ", " : "", stats->wait_hist[i]);
    fprintf(f, "]}\n}\n");
}

static void on_signal(int sig)
{
    if ( sig == SIGTERM )
        ending = 1;
    storming = sig == SIGUSR1;
}

/* One round: whatever the rings have, and what had to wait. */
static void turn(struct pollfd *fd)
{
    static uint64_t alive, jumped;
    uint64_t now = now_ns();

    if ( !alive || now - alive > TIMEOUT_S / 4 * 1000000000ULL )
    {
        if ( xc_dsm_keepalive(xch, slices[0].domid, TIMEOUT_S * 1000) ||
             (spread &&
              xc_dsm_keepalive(xch, slices[1].domid, TIMEOUT_S * 1000)) )
            err(2, "KEEPALIVE");
        alive = now;
    }
    if ( jump && spread && now - jumped > 1000000000ULL )
    {
        unsigned int k;

        for ( k = 0; k < 2; k++ )
            if ( xc_dsm_jump(xch, slices[k].domid, jump) )
                complain("JUMP in slice %u: %s", k, strerror(errno));
        count.jumps++;
        jumped = now;
    }
    if ( drain(0) | drain(1) )
        return;
    try_again();
    if ( poll(fd, 1, nr_pending || nr_calls ? 1 : 100) > 0 )
    {
        int port = xenevtchn_pending(xce);

        if ( port < 0 || xenevtchn_unmask(xce, port) )
            err(2, "event channel");
    }
}

int main(int argc, char **argv)
{
    static const struct option none[] = { {} };
    static xen_dsm_stats_t stats;
    struct sigaction sa = { .sa_handler = on_signal };
    struct pollfd fd = { .events = POLLIN };
    uint64_t seed = now_ns(), began, seeds[2], lease_us = lease_ns / 1000;
    const char *out = NULL, *words = NULL;
    pthread_t threads[2];
    unsigned int k;
    FILE *f;
    int c;

    slices[0].room = slices[1].room = 4096;
    while ( (c = getopt_long(argc, argv, "vl:f:j:r:c:s:o:w:", none,
                            NULL)) != -1 )
        switch ( c )
        {
        case 'r': rate = strtoul(optarg, NULL, 0); break;
        case 'c': slices[0].room = slices[1].room = strtoul(optarg, NULL, 0);
                  break;
        case 's': seed = strtoull(optarg, NULL, 0); break;
        case 'o': out = optarg; break;
        case 'v': spread = true; break;
        case 'l': lease_us = strtoul(optarg, NULL, 0); break;
        case 'f': slow = strtoul(optarg, NULL, 0); break;
        case 'j': jump = strtoull(optarg, NULL, 0); break;
        case 'w': words = optarg; break;
        default: return 2;
        }
    if ( argc - optind != 4 || !rate || rate > 100000 || !slices[0].room ||
         !lease_us || lease_us > 1000000 || !slow || slow > XEN_DSM_MAX_SLOW )
        errx(2, "usage: dsm-slices [-v] [-l MICROSECONDS] [-f FACTOR] "
             "[-j TICKS] [-r ACCESSES] [-c FRAMES] [-s SEED] [-o FILE] "
             "[-w GFN] DOMID HOME FIRST NR");
    lease_ns = lease_us * 1000;
    slices[0].domid = strtoul(argv[optind], NULL, 0);
    home = strtoull(argv[optind + 1], NULL, 0);
    first = strtoull(argv[optind + 2], NULL, 0);
    nr = strtoull(argv[optind + 3], NULL, 0);
    if ( !home || !nr || nr % 512 || first % 512 || first < home ||
         home > XEN_DSM_MAX_FRAMES || nr > XEN_DSM_MAX_FRAMES - home )
        errx(2, "HOME is at least 1, FIRST at least HOME, NR at least 512, the "
             "last two multiples of 512, and all at most %u",
             XEN_DSM_MAX_FRAMES);
    daemon_random = seed ?: 1;

    setvbuf(stdout, NULL, _IOLBF, 0);
    sigaction(SIGUSR1, &sa, NULL);
    sigaction(SIGUSR2, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    begin();
    fd.fd = xenevtchn_fd(xce);
    running = 2;
    for ( k = 0; k < 2; k++ )
    {
        seeds[k] = (seed ^ (k + 1) * 0x9e3779b97f4a7c15ULL) ?: 1;
        if ( pthread_create(&threads[k], NULL, stub, &seeds[k]) )
            errx(2, "no thread for the stub");
    }
    printf("ready, seed %"PRIu64", slice 1 is domain %u\n", seed,
           slices[1].domid);

    began = now_ns();
    while ( !ending || __atomic_load_n(&running, __ATOMIC_ACQUIRE) )
        turn(&fd);
    for ( k = 0; k < 2; k++ )
        pthread_join(threads[k], NULL);

    if ( spread )
        unplace_vcpu(1);
    bring_home();
    drain(0);
    if ( words )
        read_words(strtoull(words, NULL, 0));
    if ( xc_dsm_keepalive(xch, slices[0].domid, 0) )
        err(2, "KEEPALIVE");
    if ( xc_dsm_stats(xch, slices[0].domid, &stats) )
        err(2, "STATS");
    detach();

    f = out ? fopen(out, "w") : stdout;
    if ( !f )
        err(2, "%s", out);
    write_figures(f, &stats, seed, (now_ns() - began) / 1e9);
    if ( fflush(f) || ferror(f) )
        err(2, "figures");
    printf("end after %.1f s: %"PRIu64" unstable, %"PRIu64" errors\n",
           (now_ns() - began) / 1e9, unstable, count.errors);

    return unstable || count.errors;
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
