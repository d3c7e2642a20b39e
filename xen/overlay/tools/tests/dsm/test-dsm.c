// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages that come and go: each page operation, and each way to refuse one.
 *
 * Run as root in dom0.  Each case gets an HVM domain of its own that never
 * runs, but for a few instructions in two cases.  What a running guest sees is
 * the business of dsm-storm.
 *
 * usage: test-dsm [CASE]...
 * Output is TAP, exit code 0 if nothing failed.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define XC_WANT_COMPAT_DEVICEMODEL_API
#include <xenctrl.h>
#include <xenctrl_dsm.h>
#include <xenevtchn.h>
#include <xenforeignmemory.h>
#include <xen/arch-x86/cpuid.h>
#include <xen/event_channel.h>
#include <xen/hvm/save.h>
#include <xen/hvm/params.h>
#include <xen/sys/privcmd.h>

#define GFN    0x1000UL         /* the range begins here */
#define FRAMES 2048UL
#define TPM_MFN 0xfed40UL       /* registers that Xen does not use */
#define NR     1024UL           /* frames that are populated, then holes */
#define WORDS  (XC_PAGE_SIZE / sizeof(uint64_t))

static xc_interface *xch;
static xenforeignmemory_handle *fmem;
static xenevtchn_handle *xce;
static int privcmd;
static uint32_t domid;
static evtchn_port_t port;      /* of the domain */
static uint64_t *buffer;        /* one page */

/* ---- Reporting ---- */

static bool failed;
#define fail(fmt, ...)                                                      \
    do {                                                                    \
        failed = true;                                                      \
        printf("#   line %d: " fmt "\n", __LINE__, ##__VA_ARGS__);          \
    } while ( 0 )
#define expect(what, got, want)                                             \
    do {                                                                    \
        long got_ = (got), want_ = (want);                                  \
        if ( got_ != want_ )                                                \
            fail("%s: %ld, expected %ld", what, got_, want_);               \
    } while ( 0 )

/* ---- A domain ---- */

static void create_with(uint32_t flags, unsigned int vcpus, uint32_t emulated)
{
    struct xen_domctl_createdomain config = {
        .flags = flags,
        .max_vcpus = vcpus ?: 1,
        .max_grant_frames = 1,
        .max_evtchn_port = 4095,
        .grant_opts = XEN_DOMCTL_GRANT_version(1),
        .arch.emulation_flags = emulated,
    };

    domid = 0;
    if ( xc_domain_create(xch, &domid, &config) )
        err(2, "xc_domain_create");
    if ( vcpus && xc_domain_max_vcpus(xch, domid, vcpus) )
        err(2, "xc_domain_max_vcpus");
    if ( xc_domain_setmaxmem(xch, domid, -1) )
        err(2, "xc_domain_setmaxmem");
    if ( (flags & XEN_DOMCTL_CDF_hap) &&
         xc_set_paging_mempool_size(xch, domid, 4 << 20) )
        err(2, "xc_set_paging_mempool_size");
}

static void create_as(uint32_t flags, unsigned int vcpus)
{
    create_with(flags, vcpus,
                flags & XEN_DOMCTL_CDF_hvm ? XEN_X86_EMU_LAPIC : 0);
}

static void create(void)
{
    create_as(XEN_DOMCTL_CDF_hvm | XEN_DOMCTL_CDF_hap, 1);
}

static void destroy(void)
{
    if ( xc_domain_destroy(xch, domid) )
        err(2, "xc_domain_destroy");
}

/* 0, or -1 if the extent could not be populated. */
static int populate(unsigned long gfn, unsigned int order, unsigned int flags)
{
    xen_pfn_t first = gfn;

    return xc_domain_populate_physmap(xch, domid, 1, order, flags,
                                      &first) == 1 ? 0 : -1;
}

static int decrease(unsigned long gfn, unsigned int order)
{
    xen_pfn_t first = gfn;

    return xc_domain_decrease_reservation(xch, domid, 1, order, &first);
}

static unsigned long tot_pages(void)
{
    xc_domaininfo_t info;

    if ( xc_domain_getinfo_single(xch, domid, &info) )
        err(2, "xc_domain_getinfo_single");

    return info.tot_pages;
}

/* By the control domain. */
static bool is_paused(void)
{
    xc_domaininfo_t info;

    if ( xc_domain_getinfo_single(xch, domid, &info) )
        err(2, "xc_domain_getinfo_single");

    return info.flags & XEN_DOMINF_paused;
}

/* For want of a daemon. */
static bool is_alone(void)
{
    xen_dsm_stats_t stats;

    if ( xc_dsm_stats(xch, domid, &stats) )
        err(2, "xc_dsm_stats");

    return stats.paused;
}

/* 0, or errno with the reason in *refused. */
static int enable_slice(unsigned int slice, unsigned int nr_slices,
                        unsigned int *refused)
{
    xen_dsm_range_t range = { .first = GFN, .nr = FRAMES };

    return xc_dsm_enable(xch, domid, &range, 1, slice, nr_slices, &port,
                         refused) ? errno : 0;
}

static int enable_ranges(xen_dsm_range_t *ranges, unsigned int nr,
                         unsigned int *refused)
{
    return xc_dsm_enable(xch, domid, ranges, nr, 0, 1, &port, refused) ? errno
                                                                       : 0;
}

static int enable(unsigned int *refused)
{
    xen_dsm_range_t range = { .first = GFN, .nr = FRAMES };

    return enable_ranges(&range, 1, refused);
}

/* What most cases begin with: two superpages, and as many holes. */
static void prepare(void)
{
    unsigned int refused;
    int rc;

    expect("populated", populate(GFN, 9, 0), 0);
    expect("populated", populate(GFN + 512, 9, 0), 0);
    rc = enable(&refused);
    if ( rc )
        fail("ENABLE: %s (%s)", strerror(rc), xc_dsm_refusal(refused));
}

/* ---- Page operations ---- */

static int op_with(unsigned int what, uint64_t gfn, void *buf,
                   unsigned int *state)
{
    xen_dsm_page_op_t op = { .gfn = gfn, .op = what };

    xc_dsm_set_buffer(&op, buf);
    if ( xc_dsm_page(xch, domid, &op, 1) )
    {
        fail("xc_dsm_page: %s", strerror(errno));
        return -EIO;
    }
    if ( state )
        *state = op.state;

    return op.rc;
}

static bool moves_data(unsigned int what)
{
    return what == XEN_DSM_INVAL || what == XEN_DSM_DOWNGRADE ||
           what == XEN_DSM_READ || what == XEN_DSM_INSTALL_S ||
           what == XEN_DSM_INSTALL_M;
}

static int op(unsigned int what, uint64_t gfn)
{
    return op_with(what, gfn, moves_data(what) ? buffer : NULL, NULL);
}

static unsigned int state_of(uint64_t gfn)
{
    unsigned int state = -1;

    expect("QUERY", op_with(XEN_DSM_QUERY, gfn, NULL, &state), 0);

    return state;
}

/* Bring a frame that is in state M, or a hole from NR on, into a state. */
static uint64_t frame_in(unsigned int state, uint64_t gfn)
{
    switch ( state )
    {
    case XEN_DSM_STATE_HOLE:
        return gfn + NR;
    case XEN_DSM_STATE_I:
        expect("INVAL", op(XEN_DSM_INVAL, gfn), 0);
        break;
    case XEN_DSM_STATE_S:
        expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, gfn), 0);
        break;
    }
    expect("state", state_of(gfn), state);

    return gfn;
}

static void fill(uint64_t *page, uint64_t value)
{
    unsigned int i;

    for ( i = 0; i < WORDS; i++ )
        page[i] = value + i;
}

static bool is_filled(const uint64_t *page, uint64_t value)
{
    unsigned int i;

    for ( i = 0; i < WORDS; i++ )
        if ( page[i] != value + i )
            return false;

    return true;
}

static uint64_t *map(uint64_t gfn, int prot)
{
    xen_pfn_t pfn = gfn;
    int error;
    void *p = xenforeignmemory_map(fmem, domid, prot, 1, &pfn, &error);

    return p && !error ? p : NULL;
}

/* Look a frame up for reading, once: 0, or what Xen says of it, negative. */
static int look(uint64_t gfn)
{
    void *p = mmap(NULL, XC_PAGE_SIZE, PROT_READ, MAP_SHARED, privcmd, 0);
    xen_pfn_t pfn = gfn;
    int error = 0;
    privcmd_mmapbatch_v2_t batch = {
        .num = 1, .dom = domid, .addr = (uintptr_t)p,
        .arr = &pfn, .err = &error,
    };

    if ( p == MAP_FAILED )
        err(2, "mmap");
    if ( ioctl(privcmd, IOCTL_PRIVCMD_MMAPBATCH_V2, &batch) && errno != ENOENT )
        err(2, "IOCTL_PRIVCMD_MMAPBATCH_V2");
    if ( munmap(p, XC_PAGE_SIZE) )
        err(2, "munmap");

    return error;
}

static void unmap(void *p)
{
    if ( p && xenforeignmemory_unmap(fmem, p, 1) )
        err(2, "xenforeignmemory_unmap");
}

static void write_frame(uint64_t gfn, uint64_t value)
{
    uint64_t *p = map(gfn, PROT_READ | PROT_WRITE);

    if ( !p )
    {
        fail("GFN %#"PRIx64" cannot be mapped: %s", gfn, strerror(errno));
        return;
    }
    fill(p, value);
    unmap(p);
}

static bool frame_holds(uint64_t gfn, uint64_t value)
{
    uint64_t *p = map(gfn, PROT_READ);
    bool holds;

    if ( !p )
    {
        fail("GFN %#"PRIx64" cannot be mapped: %s", gfn, strerror(errno));
        return false;
    }
    holds = is_filled(p, value);
    unmap(p);

    return holds;
}

/* ---- The ring ---- */

static xenforeignmemory_resource_handle *ring_handle;
static volatile struct xen_dsm_ring *ring;
static const struct xen_dsm_ring_entry *entries;
static evtchn_port_t local_port;

static void open_ring(void)
{
    size_t size = 0;
    void *p = NULL;

    if ( xenforeignmemory_resource_size(fmem, domid, XENMEM_resource_dsm_ring,
                                        0, &size) )
        err(2, "size of the ring");
    ring_handle = xenforeignmemory_map_resource(
        fmem, domid, XENMEM_resource_dsm_ring, 0, 0, size / XC_PAGE_SIZE, &p,
        PROT_READ | PROT_WRITE, 0);
    if ( !ring_handle )
        err(2, "map the ring");
    ring = p;
    entries = p + XC_PAGE_SIZE;
    expect("entries", ring->nr * sizeof(*entries) + XC_PAGE_SIZE, size);

    local_port = xenevtchn_bind_interdomain(xce, domid, port);
    if ( (int)local_port < 0 )
        err(2, "bind to the domain's port");
}

static void close_ring(void)
{
    xenevtchn_unbind(xce, local_port);
    xenforeignmemory_unmap_resource(fmem, ring_handle);
}

/* The next entry, or none after a while.  It is consumed. */
static bool next_entry(struct xen_dsm_ring_entry *entry, int timeout_ms)
{
    struct pollfd fd = { .fd = xenevtchn_fd(xce), .events = POLLIN };

    while ( ring->prod == ring->cons )
    {
        int p;

        if ( poll(&fd, 1, timeout_ms) <= 0 )
            return false;
        p = xenevtchn_pending(xce);
        if ( p < 0 || xenevtchn_unmask(xce, p) )
            err(2, "event channel");
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    *entry = entries[ring->cons & (ring->nr - 1)];
    ring->cons++;

    return true;
}

/* ---- Cases ---- */

/* from, operation, result, state afterwards */
static const struct {
    unsigned int from, what;
    int rc;
    unsigned int to;
} steps[] = {
#define HOLE XEN_DSM_STATE_HOLE
#define I XEN_DSM_STATE_I
#define S XEN_DSM_STATE_S
#define M XEN_DSM_STATE_M
    { M,    XEN_DSM_INVAL,      0,        I },
    { S,    XEN_DSM_INVAL,      0,        I },
    { I,    XEN_DSM_INVAL,      -EEXIST,  I },
    { HOLE, XEN_DSM_INVAL,      -ENOENT,  HOLE },
    { M,    XEN_DSM_DOWNGRADE,  0,        S },
    { S,    XEN_DSM_DOWNGRADE,  -EEXIST,  S },
    { I,    XEN_DSM_DOWNGRADE,  -EINVAL,  I },
    { HOLE, XEN_DSM_DOWNGRADE,  -ENOENT,  HOLE },
    { M,    XEN_DSM_READ,       -EINVAL,  M },
    { S,    XEN_DSM_READ,       0,        S },
    { I,    XEN_DSM_READ,       -EINVAL,  I },
    { HOLE, XEN_DSM_READ,       -ENOENT,  HOLE },
    { M,    XEN_DSM_INSTALL_S,  -EEXIST,  M },
    { S,    XEN_DSM_INSTALL_S,  -EEXIST,  S },
    { I,    XEN_DSM_INSTALL_S,  0,        S },
    { HOLE, XEN_DSM_INSTALL_S,  -ENOENT,  HOLE },
    { M,    XEN_DSM_INSTALL_M,  -EEXIST,  M },
    { S,    XEN_DSM_INSTALL_M,  -EEXIST,  S },
    { I,    XEN_DSM_INSTALL_M,  0,        M },
    { HOLE, XEN_DSM_INSTALL_M,  -ENOENT,  HOLE },
    { M,    XEN_DSM_ZERO_M,     -EEXIST,  M },
    { S,    XEN_DSM_ZERO_M,     -EEXIST,  S },
    { I,    XEN_DSM_ZERO_M,     0,        M },
    { HOLE, XEN_DSM_ZERO_M,     -ENOENT,  HOLE },
    { M,    XEN_DSM_UPGRADE,    -EEXIST,  M },
    { S,    XEN_DSM_UPGRADE,    0,        M },
    { I,    XEN_DSM_UPGRADE,    -EINVAL,  I },
    { HOLE, XEN_DSM_UPGRADE,    -ENOENT,  HOLE },
    { M,    XEN_DSM_DROP,       -EINVAL,  M },
    { S,    XEN_DSM_DROP,       -EINVAL,  S },
    { I,    XEN_DSM_DROP,       0,        HOLE },
    { HOLE, XEN_DSM_DROP,       -EEXIST,  HOLE },
    /* These are homed here: their home is asked by nobody. */
    { M,    XEN_DSM_HOLE,       -EINVAL,  M },
    { S,    XEN_DSM_HOLE,       -EINVAL,  S },
    { I,    XEN_DSM_HOLE,       -EINVAL,  I },
    { HOLE, XEN_DSM_HOLE,       -ENOENT,  HOLE },
    { M,    XEN_DSM_WAKE,       0,        M },
    { S,    XEN_DSM_WAKE,       0,        S },
    { I,    XEN_DSM_WAKE,       0,        I },
    { HOLE, XEN_DSM_WAKE,       0,        HOLE },
};

static void every_step(void)
{
    unsigned int i;

    prepare();
    for ( i = 0; i < sizeof(steps) / sizeof(steps[0]); i++ )
    {
        uint64_t gfn = frame_in(steps[i].from, GFN + 10 + i);
        unsigned int state = -1;
        int rc = op_with(steps[i].what, gfn,
                         moves_data(steps[i].what) ? buffer : NULL, &state);

        if ( rc != steps[i].rc || state != steps[i].to )
            fail("op %u from state %u: %d, state %u; expected %d, state %u",
                 steps[i].what, steps[i].from, rc, state, steps[i].rc,
                 steps[i].to);
        expect("QUERY says the same", state_of(gfn), state);
    }
}

static void the_bytes(void)
{
    prepare();
    write_frame(GFN + 3, 1000);

    memset(buffer, 0, XC_PAGE_SIZE);
    expect("INVAL", op(XEN_DSM_INVAL, GFN + 3), 0);
    if ( !is_filled(buffer, 1000) )
        fail("INVAL gave other bytes");

    fill(buffer, 2000);
    expect("INSTALL_S", op(XEN_DSM_INSTALL_S, GFN + 3), 0);
    if ( !frame_holds(GFN + 3, 2000) )
        fail("after INSTALL_S the frame holds other bytes");

    memset(buffer, 0, XC_PAGE_SIZE);
    expect("READ", op(XEN_DSM_READ, GFN + 3), 0);
    if ( !is_filled(buffer, 2000) )
        fail("READ gave other bytes");

    expect("UPGRADE", op(XEN_DSM_UPGRADE, GFN + 3), 0);
    write_frame(GFN + 3, 3000);
    memset(buffer, 0, XC_PAGE_SIZE);
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, GFN + 3), 0);
    if ( !is_filled(buffer, 3000) )
        fail("DOWNGRADE gave other bytes");

    /* Without a buffer the bytes are lost, and nothing else. */
    expect("INVAL", op_with(XEN_DSM_INVAL, GFN + 3, NULL, NULL), 0);
    expect("ZERO_M", op(XEN_DSM_ZERO_M, GFN + 3), 0);
    memset(buffer, 1, XC_PAGE_SIZE);
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, GFN + 3), 0);
    if ( buffer[0] || memcmp(buffer, buffer + 1, XC_PAGE_SIZE - 8) )
        fail("ZERO_M left something");

    if ( !frame_holds(GFN + 4, 0) && state_of(GFN + 4) != M )
        fail("the neighbour changed");
}

/* Frames go round: whose is what? */
static void many_frames(void)
{
    uint64_t i;

    prepare();
    for ( i = 0; i < NR; i++ )
        write_frame(GFN + i, i * 10000);
    for ( i = 0; i < NR; i++ )
    {
        expect("INVAL", op(XEN_DSM_INVAL, GFN + i), 0);
        if ( !is_filled(buffer, i * 10000) )
            fail("INVAL of frame %"PRIu64" gave other bytes", i);
    }
    expect("tot_pages", tot_pages(), NR);
    for ( i = NR; i-- > 0; )
    {
        fill(buffer, i * 20000);
        expect("INSTALL", op(i & 1 ? XEN_DSM_INSTALL_S : XEN_DSM_INSTALL_M,
                             GFN + i), 0);
    }
    for ( i = 0; i < NR; i++ )
        if ( !frame_holds(GFN + i, i * 20000) )
            fail("frame %"PRIu64" holds other bytes", i);
}

static void refused_operations(void)
{
    void *const nowhere = (void *)8192;
    xen_dsm_page_op_t bad = { .gfn = GFN, .op = XEN_DSM_QUERY, .flags = 1 };
    static xen_dsm_page_op_t many[XEN_DSM_MAX_PAGE_OPS + 1];
    unsigned int i;

    prepare();
    write_frame(GFN + 1, 500);

    expect("below the range", op(XEN_DSM_QUERY, GFN - 1), -ERANGE);
    expect("above the range", op(XEN_DSM_INVAL, GFN + FRAMES), -ERANGE);
    expect("far away", op(XEN_DSM_WAKE, ~0ULL), -ERANGE);
    expect("far away", op(XEN_DSM_INVAL, 1ULL << 52), -ERANGE);
    expect("operation 0", op(0, GFN), -EINVAL);
    expect("operation 11", op(11, GFN), -EINVAL);
    expect("operation 65535", op(65535, GFN), -EINVAL);
    expect("flags", xc_dsm_page(xch, domid, &bad, 1), 0);
    expect("flags", bad.rc, -EINVAL);

    expect("INVAL to nowhere",
           op_with(XEN_DSM_INVAL, GFN + 1, nowhere, NULL), -EFAULT);
    expect("state", state_of(GFN + 1), M);
    expect("DOWNGRADE to nowhere",
           op_with(XEN_DSM_DOWNGRADE, GFN + 1, nowhere, NULL), -EFAULT);
    expect("state", state_of(GFN + 1), M);
    if ( !frame_holds(GFN + 1, 500) )
        fail("an operation that failed changed the page");
    expect("INVAL", op(XEN_DSM_INVAL, GFN + 1), 0);
    expect("INSTALL_M from nowhere",
           op_with(XEN_DSM_INSTALL_M, GFN + 1, nowhere, NULL), -EFAULT);
    expect("state", state_of(GFN + 1), I);
    expect("INSTALL_S from NULL",
           op_with(XEN_DSM_INSTALL_S, GFN + 1, NULL, NULL), -EINVAL);
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, GFN + 1), 0);
    if ( !frame_holds(GFN + 1, 500) )
        fail("the page was lost");
    expect("READ to NULL", op_with(XEN_DSM_READ, GFN + 1, NULL, NULL), -EINVAL);

    for ( i = 0; i <= XEN_DSM_MAX_PAGE_OPS; i++ )
        many[i] = (xen_dsm_page_op_t){ .gfn = GFN + i, .op = XEN_DSM_QUERY };
    if ( !xc_dsm_page(xch, domid, many, XEN_DSM_MAX_PAGE_OPS + 1) ||
         errno != EINVAL )
        fail("too many operations were accepted");
    expect("as many as may be",
           xc_dsm_page(xch, domid, many, XEN_DSM_MAX_PAGE_OPS), 0);
    for ( i = 0; i < XEN_DSM_MAX_PAGE_OPS; i++ )
        if ( many[i].rc || many[i].state != (i < NR ? M : HOLE) )
            fail("operation %u: %d, state %u", i, many[i].rc, many[i].state);
}

static void busy(void)
{
    uint64_t *p;

    prepare();
    p = map(GFN + 7, PROT_READ | PROT_WRITE);
    if ( !p )
    {
        fail("cannot map: %s", strerror(errno));
        return;
    }
    fill(p, 70);
    expect("INVAL of a mapped page", op(XEN_DSM_INVAL, GFN + 7), -EBUSY);
    expect("DOWNGRADE of one", op(XEN_DSM_DOWNGRADE, GFN + 7), -EBUSY);
    expect("state", state_of(GFN + 7), M);
    if ( !is_filled(p, 70) )
        fail("the mapped page changed");
    unmap(p);
    expect("INVAL afterwards", op(XEN_DSM_INVAL, GFN + 7), 0);

    /* Readers may map what is shared, and keep it from being taken. */
    fill(buffer, 71);
    expect("INSTALL_S", op(XEN_DSM_INSTALL_S, GFN + 7), 0);
    p = map(GFN + 7, PROT_READ);
    if ( !p || !is_filled(p, 71) )
        fail("a shared page cannot be read");
    expect("INVAL, shared and mapped", op(XEN_DSM_INVAL, GFN + 7), -EBUSY);
    expect("UPGRADE of one", op(XEN_DSM_UPGRADE, GFN + 7), 0);
    unmap(p);
    expect("INVAL afterwards", op(XEN_DSM_INVAL, GFN + 7), 0);
}

/* Somebody maps what is not there: it is told, and succeeds when it comes. */
struct mapper {
    pthread_t thread;
    uint64_t gfn;
    int prot;
    uint64_t found;
    bool done;
};

static void *mapping(void *arg)
{
    struct mapper *m = arg;
    uint64_t *p = map(m->gfn, m->prot);

    if ( p )
    {
        m->found = p[0];
        if ( m->prot & PROT_WRITE )
            p[0]++;
    }
    unmap(p);
    __atomic_store_n(&m->done, true, __ATOMIC_RELEASE);

    return NULL;
}

static void foreign_miss(void)
{
    static const struct { unsigned int from; int prot; unsigned int want; }
    cases[] = {
        { I, PROT_READ, XEN_DSM_WANT_S },
        { I, PROT_READ | PROT_WRITE, XEN_DSM_WANT_M },
        { S, PROT_READ | PROT_WRITE, XEN_DSM_WANT_M },
    };
    unsigned int i;

    prepare();
    open_ring();
    for ( i = 0; i < sizeof(cases) / sizeof(cases[0]); i++ )
    {
        struct mapper m = { .gfn = GFN + 20 + i, .prot = cases[i].prot };
        struct xen_dsm_ring_entry entry = {};
        unsigned int answer;

        write_frame(m.gfn, 100 * i);
        frame_in(cases[i].from, m.gfn);
        if ( pthread_create(&m.thread, NULL, mapping, &m) )
            err(2, "pthread_create");
        if ( !next_entry(&entry, 10000) )
            fail("case %u: no miss was reported", i);
        expect("type", entry.type, XEN_DSM_PAGE_MISS);
        expect("gfn", entry.gfn, m.gfn);
        expect("flags", entry.flags, XEN_DSM_MISS_FOREIGN);
        /* A writer from I may first be taken for a reader. */
        if ( entry.want != cases[i].want && cases[i].from != I )
            fail("case %u: wants %u", i, entry.want);
        if ( __atomic_load_n(&m.done, __ATOMIC_ACQUIRE) )
            fail("case %u: mapped before the page was there", i);
        fill(buffer, 100 * i);
        answer = cases[i].from == S ? XEN_DSM_UPGRADE
                 : cases[i].prot & PROT_WRITE ? XEN_DSM_INSTALL_M
                                              : XEN_DSM_INSTALL_S;
        expect("answer", op(answer, m.gfn), 0);
        pthread_join(m.thread, NULL);
        expect("what the mapper found", m.found, 100 * i);
        if ( cases[i].prot & PROT_WRITE )
        {
            expect("INVAL", op(XEN_DSM_INVAL, m.gfn), 0);
            expect("what the mapper wrote", buffer[0], 100 * i + 1);
        }
    }
    close_ring();
}

/* ---- A vCPU that waits ---- */

/*
 * vCPU 0 begins at that address, in protected mode without paging: as it does
 * in a PVH guest, see vcpu_hvm() in libxenguest.
 */
static void start_at(uint32_t address)
{
    struct {
        struct hvm_save_descriptor header_d;
        HVM_SAVE_TYPE(HEADER) header;
        struct hvm_save_descriptor cpu_d;
        HVM_SAVE_TYPE(CPU) cpu;
        struct hvm_save_descriptor end_d;
        HVM_SAVE_TYPE(END) end;
    } context = {
        .cpu_d = { .typecode = HVM_SAVE_CODE(CPU),
                   .length = HVM_SAVE_LENGTH(CPU) },
        .cpu = {
            .rip = address,
            .cr0 = 0x11,                /* PE, ET */
            .dr6 = 0xffff0ff0, .dr7 = 0x400,
            .cs_limit = ~0U, .ds_limit = ~0U, .es_limit = ~0U,
            .ss_limit = ~0U, .tr_limit = 0x67,
            .cs_arbytes = 0xc9b, .ds_arbytes = 0xc93, .es_arbytes = 0xc93,
            .ss_arbytes = 0xc93, .tr_arbytes = 0x8b,
        },
        .end_d = { .typecode = HVM_SAVE_CODE(END),
                   .length = HVM_SAVE_LENGTH(END) },
    };
    int size = xc_domain_hvm_getcontext(xch, domid, NULL, 0);
    uint8_t *all = size > 0 ? calloc(1, size) : NULL;

    /* The header comes first, and has what Xen checks. */
    if ( !all || xc_domain_hvm_getcontext(xch, domid, all, size) <= 0 )
        err(2, "xc_domain_hvm_getcontext");
    memcpy(&context, all, sizeof(context.header_d) + HVM_SAVE_LENGTH(HEADER));
    free(all);
    if ( xc_domain_hvm_setcontext(xch, domid, (uint8_t *)&context,
                                  sizeof(context)) )
        err(2, "xc_domain_hvm_setcontext");
}

/* vCPU 0 begins with that code, in GFN. */
static void start_with(const uint8_t *code, size_t size)
{
    uint8_t *p;

    expect("populated", populate(GFN, 0, 0), 0);
    p = (uint8_t *)map(GFN, PROT_READ | PROT_WRITE);
    if ( !p )
        err(2, "GFN %#lx cannot be mapped", GFN);
    memcpy(p, code, size);
    unmap(p);
    start_at(GFN * XC_PAGE_SIZE);
}

/* The miss of the next page that the vCPU writes to. */
static void expect_miss(uint64_t gfn)
{
    struct xen_dsm_ring_entry entry = {};

    if ( !next_entry(&entry, 10000) )
        fail("no miss of GFN %#"PRIx64" was reported", gfn);
    expect("type", entry.type, XEN_DSM_PAGE_MISS);
    expect("gfn", entry.gfn, gfn);
    expect("flags", entry.flags, 0);
    expect("vcpu", entry.vcpu, 0);
}

static void expect_waits(const char *when, uint64_t waits, uint64_t wakes,
                         xen_dsm_stats_t *stats)
{
    xen_dsm_stats_t was = *stats;

    expect("xc_dsm_stats", xc_dsm_stats(xch, domid, stats), 0);
    if ( stats->waits != waits || stats->traps != waits ||
         stats->wakes != wakes )
        fail("%s: %"PRIu64" waits, %"PRIu64" traps, %"PRIu64" wakes; expected "
             "%"PRIu64", %"PRIu64", %"PRIu64, when, stats->waits, stats->traps,
             stats->wakes, waits, waits, wakes);
    /*
     * A sum moves with its count only, and not by more than the case takes.
     * Wake-ups may count as 0 ns: clocks of two CPUs may differ.
     */
    if ( (stats->trap_ns > was.trap_ns) != (stats->traps > was.traps) ||
         (stats->wake_ns != was.wake_ns && stats->wakes == was.wakes) ||
         stats->trap_ns - was.trap_ns > 60000000000ULL ||
         stats->wake_ns - was.wake_ns > 60000000000ULL )
        fail("%s: traps of %"PRIu64" ns, wakes of %"PRIu64" ns; before %"PRIu64
             ", %"PRIu64, when, stats->trap_ns, stats->wake_ns, was.trap_ns,
             was.wake_ns);
}

/*
 * Two pages that are away, and a vCPU that writes to both in turn.  A miss of
 * one says that it has run since it waited for the other.
 */
static void a_vcpu_waits(void)
{
    enum { ROUNDS = 32 };               /* even: it waits for the second page */
    static const uint8_t code[] = {
        0xff, 0x05, 0x00, 0x10, 0x00, 0x01,     /* 1: incl GFN + 1 */
        0xff, 0x05, 0x00, 0x20, 0x00, 0x01,     /*    incl GFN + 2 */
        0xeb, 0xf2,                             /*    jmp 1b */
    };
    xen_dsm_stats_t stats = {};
    unsigned int i;

    expect("populated", populate(GFN + 1, 0, 0), 0);
    expect("populated", populate(GFN + 2, 0, 0), 0);
    start_with(code, sizeof(code));
    {
        unsigned int refused;
        int rc = enable(&refused);

        if ( rc )
            fail("ENABLE: %s (%s)", strerror(rc), xc_dsm_refusal(refused));
    }
    open_ring();
    expect("INVAL", op(XEN_DSM_INVAL, GFN + 1), 0);
    expect("INVAL", op(XEN_DSM_INVAL, GFN + 2), 0);
    fill(buffer, 0);

    expect("unpause", xc_domain_unpause(xch, domid), 0);
    expect_miss(GFN + 1);
    expect_waits("it waits", 1, 0, &stats);
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, GFN + 1), 0);
    expect_miss(GFN + 2);
    expect_waits("it has run", 2, 1, &stats);

    for ( i = 0; i < ROUNDS; i++ )
    {
        uint64_t here = GFN + 1 + i % 2, away = GFN + 2 - i % 2;

        expect("INVAL", op(XEN_DSM_INVAL, here), 0);
        expect("INSTALL_M", op(XEN_DSM_INSTALL_M, away), 0);
        expect_miss(here);
        expect_waits("to and fro", 3 + i, 2 + i, &stats);
    }

    /* It is paused when its page comes. */
    expect("pause", xc_domain_pause(xch, domid), 0);
    expect("INVAL", op(XEN_DSM_INVAL, GFN + 1), 0);
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, GFN + 2), 0);
    expect("unpause", xc_domain_unpause(xch, domid), 0);
    expect_miss(GFN + 1);
    expect_waits("it was paused", 3 + ROUNDS, 1 + ROUNDS, &stats);

    /* It dies while it waits. */
    close_ring();
}

static void holes(void)
{
    prepare();

    /* What goes by itself leaves a hole, and what comes is M. */
    expect("removed", decrease(GFN + 5, 0), 1);
    expect("state", state_of(GFN + 5), HOLE);
    expect("populated", populate(GFN + 5, 0, 0), 0);
    expect("state", state_of(GFN + 5), M);
    expect("populated", populate(GFN + NR, 9, 0), 0);
    expect("state", state_of(GFN + NR + 511), M);
    expect("removed whole", decrease(GFN + NR, 9), 1);
    expect("state", state_of(GFN + NR + 511), HOLE);

    /* What somebody else may have does neither. */
    frame_in(S, GFN + 6);
    frame_in(I, GFN + 7);
    expect("tot_pages", tot_pages(), NR);
    expect("removed, shared", decrease(GFN + 6, 0), 0);
    expect("removed, away", decrease(GFN + 7, 0), 0);
    expect("removed, with such in it", decrease(GFN, 9), 0);
    if ( !populate(GFN + 6, 0, 0) )
        fail("populated over a shared page");
    if ( !populate(GFN + 7, 0, 0) )
        fail("populated over a page that is elsewhere");
    expect("state", state_of(GFN + 6), S);
    expect("state", state_of(GFN + 7), I);
    expect("tot_pages", tot_pages(), NR);

    /* A page that will not come back gives its frame away. */
    expect("DROP", op(XEN_DSM_DROP, GFN + 7), 0);
    expect("tot_pages", tot_pages(), NR - 1);
    expect("populated", populate(GFN + 7, 0, 0), 0);
    expect("state", state_of(GFN + 7), M);

    /* Away within a superpage of holes. */
    expect("populated", populate(GFN + NR, 0, 0), 0);
    frame_in(I, GFN + NR);
    if ( !populate(GFN + NR, 9, 0) )
        fail("populated 2 MiB over a page that is elsewhere");
    expect("state", state_of(GFN + NR), I);
    expect("state", state_of(GFN + NR + 1), HOLE);
}

static void pool(void)
{
    xen_dsm_stats_t stats;

    prepare();
    frame_in(I, GFN + 1);
    frame_in(I, GFN + 2);
    expect("xc_dsm_stats", xc_dsm_stats(xch, domid, &stats), 0);
    expect("pooled", stats.pooled, 2);
    expect("invals", stats.invals, 2);
    expect("INSTALL_S", op(XEN_DSM_INSTALL_S, GFN + 1), 0);
    expect("DROP", op(XEN_DSM_DROP, GFN + 2), 0);
    expect("xc_dsm_stats", xc_dsm_stats(xch, domid, &stats), 0);
    expect("pooled", stats.pooled, 0);
    expect("installs", stats.installs_s, 1);
    expect("drops", stats.drops, 1);
    /* The domain ends with pages in each state. */
    frame_in(I, GFN + 3);
    frame_in(S, GFN + 4);
}

/* ---- Frames that are homed on another slice ---- */

/* 0, or the negative errno; *done: how far it came. */
static int away(uint64_t first, uint64_t nr, uint64_t *done)
{
    return xc_dsm_away(xch, domid, first, nr, done) ? -errno : 0;
}

static int drop_range(uint64_t first, uint64_t nr, uint64_t *done)
{
    return xc_dsm_drop_range(xch, domid, first, nr, done) ? -errno : 0;
}

static int pool_add(uint64_t nr, uint64_t *done)
{
    return xc_dsm_pool_add(xch, domid, nr, done) ? -errno : 0;
}

static int pool_del(uint64_t nr, uint64_t *done)
{
    return xc_dsm_pool_del(xch, domid, nr, done) ? -errno : 0;
}

static void expect_pool(unsigned int line, uint64_t pooled, uint64_t reserved,
                        uint64_t added)
{
    xen_dsm_stats_t stats;

    expect("xc_dsm_stats", xc_dsm_stats(xch, domid, &stats), 0);
    if ( stats.pooled != pooled || stats.reserved != reserved ||
         stats.added != added )
        fail("at line %u: %"PRIu64" pooled, %"PRIu64" reserved, %"PRIu64
             " added; expected %"PRIu64", %"PRIu64", %"PRIu64, line,
             stats.pooled, stats.reserved, stats.added, pooled, reserved,
             added);
}
#define expect_pool(pooled, reserved, added) \
    expect_pool(__LINE__, pooled, reserved, added)

static void one_slice(void)
{
    uint64_t done;

    prepare();
    expect("AWAY", away(GFN + NR, 1, &done), -EINVAL);
    expect("POOL_ADD", pool_add(1, &done), -EINVAL);
    expect("POOL_DEL", pool_del(1, &done), -EINVAL);
    expect("state", state_of(GFN + NR), HOLE);
    expect("tot_pages", tot_pages(), NR);
    expect("DROP_RANGE", drop_range(GFN + NR, 10, &done), 0);
    frame_in(I, GFN + 1);
    expect("DROP_RANGE of a page homed here", drop_range(GFN + 1, 1, &done), 0);
    expect("state", state_of(GFN + 1), HOLE);
    expect("tot_pages", tot_pages(), NR - 1);
    expect_pool(0, 0, 0);
}

static void prepare_slice(unsigned int slice, unsigned long populated)
{
    unsigned int refused;
    int rc;

    expect("populated", populate(populated, 9, 0), 0);
    rc = enable_slice(slice, 2, &refused);
    if ( rc )
        fail("ENABLE: %s (%s)", strerror(rc), xc_dsm_refusal(refused));
}

/* ---- Superpages ---- */

static int merge(uint64_t first)
{
    return xc_dsm_merge(xch, domid, first) ? -errno : 0;
}

static uint64_t merges(void)
{
    xen_dsm_stats_t stats;

    expect("xc_dsm_stats", xc_dsm_stats(xch, domid, &stats), 0);

    return stats.merges;
}

static void superpage(void)
{
    uint64_t done, *mapped;
    unsigned int i;

    expect("populated", populate(GFN + 512, 9, 0), 0);
    prepare_slice(0, GFN);
    expect("AWAY", away(GFN + NR, 512, &done), 0);
    expect("POOL_ADD", pool_add(512, &done), 0);
    for ( i = 0; i < 512; i++ )
        write_frame(GFN + i, 1000 * i);
    expect("MERGE of what is one page", merge(GFN), -EEXIST);
    for ( i = 0; i < 512; i += 8 )
        expect("INVAL", op(XEN_DSM_INVAL, GFN + i), 0);
    expect("MERGE of pages that are away", merge(GFN), -ENODATA);
    /* Frames of the pool, of which none is the one that it had. */
    for ( i = 0; i < 512; i += 8 )
    {
        fill(buffer, 1000 * i);
        expect("INSTALL_M", op(XEN_DSM_INSTALL_M, GFN + i), 0);
    }
    expect("MERGE elsewhere", merge(GFN + 1), -EINVAL);
    expect("MERGE behind the range", merge(GFN + FRAMES), -ERANGE);
    expect("MERGE of holes", merge(GFN + NR + 512), -ENODATA);
    expect("MERGE of what is homed elsewhere", merge(GFN + NR), -EXDEV);
    mapped = map(GFN + 511, PROT_READ);
    expect("MERGE of what is mapped", merge(GFN), -EBUSY);
    unmap(mapped);
    expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, GFN + 5), 0);
    expect("MERGE of copies", merge(GFN), -ENODATA);
    expect("UPGRADE", op(XEN_DSM_UPGRADE, GFN + 5), 0);
    expect("merges", merges(), 0);

    expect("MERGE", merge(GFN), 0);
    expect("merges", merges(), 1);
    expect("tot_pages", tot_pages(), NR + 512);
    expect_pool(512, 0, 512);
    for ( i = 0; i < 512; i++ )
        if ( !frame_holds(GFN + i, 1000 * i) )
            fail("frame %u holds other bytes", i);
    expect("MERGE again", merge(GFN), -EEXIST);
    /* It is like any other. */
    expect("INVAL", op(XEN_DSM_INVAL, GFN + 77), 0);
    if ( !is_filled(buffer, 77000) )
        fail("INVAL of a part gave other bytes");
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, GFN + 77), 0);
    expect("MERGE", merge(GFN), 0);
    write_frame(GFN + 77, 5);
    if ( !frame_holds(GFN + 77, 5) || !frame_holds(GFN + 78, 78000) )
        fail("a frame of it holds other bytes");
    /* Within the limit that the domain has reached. */
    expect("INVAL", op(XEN_DSM_INVAL, GFN + 600), 0);
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, GFN + 600), 0);
    expect("xc_domain_setmaxmem", xc_domain_setmaxmem(xch, domid,
           tot_pages() * (XC_PAGE_SIZE / 1024)), 0);
    expect("MERGE without room for more", merge(GFN + 512), 0);
    expect("tot_pages", tot_pages(), NR + 512);
}

static void elsewhere(void)
{
    const uint64_t far = GFN + 512;
    uint64_t done = 0;
    unsigned int i;

    prepare_slice(1, GFN);
    expect("AWAY below the range", away(GFN - 1, 1, &done), -ERANGE);
    expect("AWAY above it", away(GFN + FRAMES, 1, &done), -ERANGE);
    expect("AWAY beyond its end", away(GFN + FRAMES - 1, 2, &done), -ERANGE);
    expect("AWAY of all there is", away(far, ~0ULL, &done), -ERANGE);
    expect("AWAY of nothing", away(far, 0, &done), 0);
    expect("AWAY of memory", away(GFN + 510, 4, &done), -EEXIST);
    expect("done", done, 0);
    expect("AWAY, then memory", away(far, 600, &done), 0);
    expect("done", done, 600);
    expect("AWAY again", away(far + 599, 2, &done), -EEXIST);
    expect("done", done, 0);
    expect("AWAY until there", away(far + 600, 424, &done), 0);
    expect("first", state_of(far), I);
    expect("last", state_of(far + 1023), I);
    expect("behind", state_of(far + 1024), HOLE);
    expect("tot_pages", tot_pages(), 512);

    /* Frames for them. */
    expect("INSTALL_M without frames", op(XEN_DSM_INSTALL_M, far), -ENOSPC);
    expect("POOL_ADD", pool_add(3, &done), 0);
    expect("done", done, 3);
    expect("tot_pages", tot_pages(), 515);
    expect_pool(3, 0, 3);
    for ( i = 0; i < 3; i++ )
    {
        fill(buffer, 1000 * i);
        expect("INSTALL", op(i & 1 ? XEN_DSM_INSTALL_S : XEN_DSM_INSTALL_M,
                             far + i), 0);
    }
    expect("ZERO_M of a fourth", op(XEN_DSM_ZERO_M, far + 3), -ENOSPC);
    expect_pool(0, 0, 3);
    for ( i = 0; i < 3; i++ )
        if ( !frame_holds(far + i, 1000 * i) )
            fail("frame %u holds other bytes", i);

    /* What is homed here has its frame, and nobody else gets it. */
    expect("INVAL of one homed here", op(XEN_DSM_INVAL, GFN), 0);
    expect_pool(1, 1, 3);
    expect("its frame is not for others", op(XEN_DSM_ZERO_M, far + 3),
           -ENOSPC);
    expect("POOL_DEL", pool_del(1, &done), -EBUSY);
    expect("INVAL of one homed elsewhere", op(XEN_DSM_INVAL, far + 1), 0);
    expect_pool(2, 1, 3);
    expect("now there is one", op(XEN_DSM_ZERO_M, far + 3), 0);
    expect("and its own for the other", op(XEN_DSM_INSTALL_M, GFN), 0);
    expect_pool(0, 0, 3);

    /* Nobody populates and removes there but page operations. */
    for ( i = 0; i < 4; i++ )
    {
        if ( !populate(far + i, 0, 0) )
            fail("populated frame %u, which is homed elsewhere", i);
        expect("removed", decrease(far + i, 0), 0);
    }
    if ( !populate(far + 512, 9, 0) )
        fail("populated 2 MiB that are homed elsewhere");
    expect("tot_pages", tot_pages(), 515);

    /* A hole at its home is one here, and still not ours to fill. */
    expect("DROP", op(XEN_DSM_DROP, far + 1), 0);
    expect("state", state_of(far + 1), HOLE);
    expect_pool(0, 0, 3);
    if ( !populate(far + 1, 0, 0) )
        fail("populated a hole that is homed elsewhere");
    expect("AWAY of a hole", away(far + 1, 1, &done), 0);

    /* The node goes. */
    expect("DROP_RANGE of what is here", drop_range(far, 1024, &done), -EBUSY);
    expect("done", done, 0);
    expect("INVAL", op(XEN_DSM_INVAL, far), 0);
    expect("DROP_RANGE", drop_range(far, 1024, &done), -EBUSY);
    expect("until the next that is here", done, 2);
    expect("INVAL", op(XEN_DSM_INVAL, far + 2), 0);
    expect("INVAL", op(XEN_DSM_INVAL, far + 3), 0);
    expect("DROP_RANGE", drop_range(far, 1024, &done), 0);
    expect("done", done, 1024);
    expect("state", state_of(far + 5), HOLE);
    expect_pool(3, 0, 3);
    expect("POOL_DEL of more than there are", pool_del(4, &done), -EBUSY);
    expect("done", done, 3);
    expect("tot_pages", tot_pages(), 512);
    expect("populated", populate(far, 9, 0), 0);
    expect("state", state_of(far + 511), M);

    /* More than the domain may have. */
    expect("limit", xc_domain_setmaxmem(xch, domid, (1024 + 2) * 4), 0);
    expect("POOL_ADD", pool_add(5, &done), -ENOMEM);
    expect("done", done, 2);
}

static int hole_for(uint32_t whom, uint64_t gfn)
{
    xen_dsm_page_op_t op = { .gfn = gfn, .op = XEN_DSM_HOLE, .wanted = whom };

    return xc_dsm_page(xch, domid, &op, 1) ? -errno : op.rc;
}

static uint64_t now_us(void)
{
    struct timespec t;

    if ( clock_gettime(CLOCK_MONOTONIC, &t) )
        err(2, "clock_gettime");

    return t.tv_sec * 1000000UL + t.tv_nsec / 1000;
}

/* Has another domain asked for that frame?  For others, meanwhile, it may. */
static bool asked(uint64_t gfn)
{
    struct xen_dsm_ring_entry entry;

    while ( next_entry(&entry, 1000) )
        if ( entry.gfn == gfn )
            return entry.flags == XEN_DSM_MISS_FOREIGN;

    return false;
}

/*
 * Two frames without memory at their home, looked at so many us after HOLE.
 * Within 50 ms that finds none, in each of them, and later it asks.  Who is
 * kept from looking in time has shown nothing, and tries again.
 */
static void look_at_holes(uint64_t gfn, unsigned int pause_us)
{
    unsigned int tries = 0, i;
    int rc[2];

    do {
        uint64_t since, took;

        for ( i = 0; i < 2; i++ )
        {
            expect("a look", look(gfn + i), -ENOENT);
            expect("asks", asked(gfn + i), true);
        }
        since = now_us();
        for ( i = 0; i < 2; i++ )
            expect("HOLE", hole_for(XEN_DSM_HOLE_FOREIGN, gfn + i), 0);
        usleep(pause_us);
        for ( i = 0; i < 2; i++ )
            rc[i] = look(gfn + i);
        took = now_us() - since;
        for ( i = 0; i < 2; i++ )
            if ( rc[i] == -ENOENT )
                expect("asks", asked(gfn + i), true);
            else
                expect("finds", rc[i], -EINVAL);
        if ( (rc[0] == -ENOENT || rc[1] == -ENOENT) && took < 50000 )
            fail("not found %"PRIu64" us after HOLE", took);
        /* Who has found one finds it for a millisecond more. */
        usleep(2000);
        for ( i = 0; i < 2; i++ )
        {
            expect("looks again", look(gfn + i), -ENOENT);
            expect("asks once", rc[i] == -ENOENT || asked(gfn + i), true);
            expect("state", state_of(gfn + i), I);
            expect("WAKE", op(XEN_DSM_WAKE, gfn + i), 0);
        }
        /* What a slow machine has asked once more. */
        ring->cons = ring->prod;
    } while ( (rc[0] != -EINVAL || rc[1] != -EINVAL) && pause_us < 50000 &&
              ++tries < 100 );

    for ( i = 0; i < 2; i++ )
        expect("finds", rc[i], pause_us < 50000 ? -EINVAL : -ENOENT);
}

/* Its home has no memory there: who asked finds none, and the next one asks. */
static void hole_elsewhere(void)
{
    static const unsigned int pauses[] = { 0, 5000, 20000, 60000 };
    struct mapper m = { .gfn = GFN + 512, .prot = PROT_READ };
    struct xen_dsm_ring_entry entry;
    unsigned int told = 0, waited = 0, i;
    uint64_t done;

    prepare_slice(1, GFN);
    expect("AWAY", away(m.gfn, 4, &done), 0);
    expect("POOL_ADD", pool_add(1, &done), 0);
    expect("HOLE that nobody asked for", hole_for(0, m.gfn), 0);
    expect("state", state_of(m.gfn), I);
    expect("UNCACHE", op(XEN_DSM_UNCACHE, m.gfn + 3), 0);
    expect("HOLE in state U", hole_for(0, m.gfn + 3), 0);
    expect("state", state_of(m.gfn + 3), XEN_DSM_STATE_U);
    expect("no such vCPU", hole_for(4096, m.gfn), -EINVAL);

    open_ring();
    for ( i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++ )
        look_at_holes(m.gfn, pauses[i]);
    expect("HOLE that nobody asked for",
           hole_for(XEN_DSM_HOLE_FOREIGN, m.gfn + 2), 0);
    expect("is none", look(m.gfn + 2), -ENOENT);
    expect("asks", asked(m.gfn + 2), true);

    /* As tools do. */
    if ( pthread_create(&m.thread, NULL, mapping, &m) )
        err(2, "pthread_create");
    while ( !__atomic_load_n(&m.done, __ATOMIC_ACQUIRE) && told < 100 &&
            waited < 10 )
    {
        if ( !next_entry(&entry, 1000) )
        {
            waited++;
            continue;
        }
        expect("gfn", entry.gfn, m.gfn);
        expect("flags", entry.flags, XEN_DSM_MISS_FOREIGN);
        expect("HOLE", hole_for(XEN_DSM_HOLE_FOREIGN, m.gfn), 0);
        told++;
    }
    if ( !told )
        fail("nobody asked");
    if ( !__atomic_load_n(&m.done, __ATOMIC_ACQUIRE) )
    {
        fail("asked %u times, and found no hole", told);
        expect("DROP", op(XEN_DSM_DROP, m.gfn), 0);
    }
    pthread_join(m.thread, NULL);
    expect("what the mapper found", m.found, 0);
    if ( state_of(m.gfn) == HOLE )
        return;

    /* Memory came there, and its page comes here. */
    expect("WAKE", op(XEN_DSM_WAKE, m.gfn), 0);
    m.done = false;
    if ( pthread_create(&m.thread, NULL, mapping, &m) )
        err(2, "pthread_create");
    if ( !next_entry(&entry, 10000) )
        fail("nobody asked for the page");
    fill(buffer, 4000);
    expect("INSTALL_S", op(XEN_DSM_INSTALL_S, m.gfn), 0);
    pthread_join(m.thread, NULL);
    expect("what the mapper found", m.found, 4000);
    close_ring();
}

/*
 * A vCPU that moves from a frame without memory to another one is told of both,
 * and goes on: each round of it adds one.
 */
static void between_two_holes(void)
{
    enum { ROUNDS = 8 };
    static const uint8_t code[] = {
        0xbe, 0x00, 0x00, 0x20, 0x01,           /* 1: movl $(GFN + 512), %esi */
        0xbf, 0x00, 0x10, 0x20, 0x01,           /*    movl $(GFN + 513), %edi */
        0xa5,                                   /*    movsl */
        0xff, 0x05, 0x00, 0x10, 0x00, 0x01,     /*    incl GFN + 1 */
        0xeb, 0xed,                             /*    jmp 1b */
    };
    volatile uint32_t *count;
    unsigned int i, refused;
    uint64_t *page, done;
    int rc;

    expect("populated", populate(GFN + 1, 0, 0), 0);
    start_with(code, sizeof(code));
    rc = enable_slice(0, 2, &refused);
    if ( rc )
        fail("ENABLE: %s (%s)", strerror(rc), xc_dsm_refusal(refused));
    expect("AWAY", away(GFN + 512, 2, &done), 0);
    page = map(GFN + 1, PROT_READ);
    if ( !page )
        err(2, "GFN %#lx cannot be mapped", GFN + 1);
    count = (void *)page;
    open_ring();

    expect("unpause", xc_domain_unpause(xch, domid), 0);
    for ( i = 0; i < ROUNDS && !failed; i++ )
    {
        expect_miss(GFN + 512);
        expect("rounds", *count, i);
        expect("HOLE", hole_for(0, GFN + 512), 0);
        expect_miss(GFN + 513);
        expect("HOLE", hole_for(0, GFN + 513), 0);
    }
    expect_miss(GFN + 512);
    expect("rounds", *count, ROUNDS);

    /* Memory comes to both. */
    expect("POOL_ADD", pool_add(2, &done), 0);
    fill(buffer, 4000);
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, GFN + 512), 0);
    expect_miss(GFN + 513);
    fill(buffer, 5000);
    expect("INSTALL_M", op(XEN_DSM_INSTALL_M, GFN + 513), 0);
    for ( i = 0; *count < 2 * ROUNDS && i < 10000; i++ )
        usleep(1000);
    expect("it moves what is there", *count >= 2 * ROUNDS, true);
    expect("no miss", ring->prod, ring->cons);

    unmap(page);
    close_ring();
}

/* So many frames that others run meanwhile. */
static void a_large_node(void)
{
    xen_dsm_range_t range = { .first = 1UL << 20, .nr = 1UL << 17 };
    unsigned int refused;
    uint64_t done;

    expect("ENABLE", xc_dsm_enable(xch, domid, &range, 1, 0, 2, &port,
                                   &refused), 0);
    expect("AWAY", away(range.first, range.nr, &done), 0);
    expect("done", done, range.nr);
    expect("state", state_of(range.first + range.nr - 1), I);
    expect("DROP_RANGE", drop_range(range.first, range.nr, &done), 0);
    expect("done", done, range.nr);
    expect("state", state_of(range.first + range.nr - 1), HOLE);
}

/* Pages of two domains, which are the slices of one guest. */
static void two_slices(void)
{
    uint32_t slices[2];
    uint64_t done, i;
    unsigned int k;

    for ( k = 0; k < 2; k++ )
    {
        if ( k )
            create();
        slices[k] = domid;
        prepare_slice(k, GFN + 512 * k);
        expect("AWAY", away(GFN + 512 * !k, 512, &done), 0);
        expect("POOL_ADD", pool_add(200, &done), 0);
    }

    /* Home has it, the other gets it, changes it, and home has it back. */
    for ( k = 0; k < 2; k++ )
        for ( i = 0; i < 200; i++ )
        {
            uint64_t gfn = GFN + 512 * k + i;

            domid = slices[k];
            write_frame(gfn, 5000 * i + k);
            expect("INVAL at home", op(XEN_DSM_INVAL, gfn), 0);
            domid = slices[!k];
            expect("INSTALL_M elsewhere", op(XEN_DSM_INSTALL_M, gfn), 0);
            if ( !frame_holds(gfn, 5000 * i + k) )
                fail("GFN %#"PRIx64" of slice %u came with other bytes", gfn,
                     k);
            write_frame(gfn, 7000 * i + k);
        }
    for ( k = 0; k < 2; k++ )
        for ( i = 0; i < 200; i++ )
        {
            uint64_t gfn = GFN + 512 * k + i;

            domid = slices[!k];
            expect("DOWNGRADE", op(XEN_DSM_DOWNGRADE, gfn), 0);
            domid = slices[k];
            expect("INSTALL_S", op(XEN_DSM_INSTALL_S, gfn), 0);
            if ( !frame_holds(gfn, 7000 * i + k) )
                fail("GFN %#"PRIx64" of slice %u came back with other bytes",
                     gfn, k);
            domid = slices[!k];
            expect("INVAL", op(XEN_DSM_INVAL, gfn), 0);
            domid = slices[k];
            expect("UPGRADE", op(XEN_DSM_UPGRADE, gfn), 0);
        }
    for ( k = 0; k < 2; k++ )
    {
        domid = slices[k];
        expect_pool(200, 0, 200);
        expect("tot_pages", tot_pages(), 712);
    }

    destroy();
    domid = slices[0];
}

static uint64_t shared_info_frame(void)
{
    xc_domaininfo_t info;

    if ( xc_domain_getinfo_single(xch, domid, &info) )
        err(2, "xc_domain_getinfo_single");

    return info.shared_info_frame;
}

static int shared_info(uint64_t gfn)
{
    return xc_dsm_shared_info(xch, domid, gfn) ? errno : 0;
}

static int port_call(unsigned int cmd, unsigned int of, int32_t *rc)
{
    xen_dsm_call_t call = {
        .op = __HYPERVISOR_event_channel_op, .cmd = cmd, .arg = { of },
    };
    int done = xc_dsm_call(xch, domid, &call) ? errno : 0;

    *rc = call.rc;

    return done;
}

/* What there is without a vCPU: shared_info, ports that nobody has, time. */
static void events_and_time(void)
{
    xen_dsm_ports_t ports = { .first = 2048, .ports = { 7 } };
    uint64_t done, nowhere = shared_info_frame(), tsc, jumped;
    xen_dsm_time_t line;
    int32_t rc;

    prepare_slice(1, GFN);
    expect("AWAY", away(GFN + 512, 512, &done), 0);
    expect("a frame that is homed here", shared_info(GFN), EINVAL);
    expect("a frame in no range", shared_info(GFN + FRAMES), EINVAL);
    expect("SHARED_INFO", shared_info(GFN + 517), 0);
    expect("it is there", shared_info_frame(), GFN + 517);
    expect("again", shared_info(GFN + 518), EEXIST);
    expect("it stays", op(XEN_DSM_INVAL, GFN + 517), -EPERM);

    expect("its own port", port_call(EVTCHNOP_unmask, 2048, &rc), 0);
    expect("that nobody has", rc, -EINVAL);
    expect("a port of slice 0", port_call(EVTCHNOP_close, 2047, &rc), EXDEV);
    expect("a port of nobody", port_call(EVTCHNOP_close, 4096, &rc), EXDEV);
    expect("no such call", port_call(EVTCHNOP_send, 2048, &rc), EOPNOTSUPP);
    expect("SEND_PORTS", xc_dsm_send_ports(xch, domid, &ports), 0);
    ports.first = 0;
    expect("those of slice 0",
           xc_dsm_send_ports(xch, domid, &ports) ? errno : 0, EXDEV);

    expect("the TSC", xc_domain_set_tsc_info(xch, domid,
                                             XEN_CPUID_TSC_MODE_NEVER_EMULATE,
                                             0, 0, 0), 0);
    expect("a jump of the host's time",
           xc_dsm_jump(xch, domid, 1) ? errno : 0, EINVAL);
    expect("GET_TIME", xc_dsm_get_time(xch, domid, &line), 0);
    if ( !line.mul || !line.ns )
        fail("the time is %u, %"PRIu64, line.mul, line.ns);
    expect("SET_TIME", xc_dsm_set_time(xch, domid, &line), 0);
    line.mul = 0;
    expect("no time", xc_dsm_set_time(xch, domid, &line) ? errno : 0, EINVAL);

    expect("GET_TSC", xc_dsm_get_tsc(xch, domid, &tsc), 0);
    expect("JUMP", xc_dsm_jump(xch, domid, 4711), 0);
    expect("GET_TSC", xc_dsm_get_tsc(xch, domid, &jumped), 0);
    expect("it is ahead", jumped - tsc, 4711);
    expect("no jump", xc_dsm_jump(xch, domid, 0) ? errno : 0, EINVAL);
    expect("back", xc_dsm_jump(xch, domid, -1) ? errno : 0, EINVAL);
    expect("it stays", xc_dsm_get_tsc(xch, domid, &tsc), 0);
    expect("it is where it was", tsc, jumped);

    expect("DROP_RANGE", xc_dsm_drop_range(xch, domid, GFN + 512, 512, &done),
           0);
    expect("all of it", done, 512);
    expect("it is nowhere", shared_info_frame() == nowhere, true);
}

static void expect_activity(const char *what, bool up, uint64_t sends)
{
    struct xen_dsm_ring_entry e = {};

    if ( !next_entry(&e, 1000) )
        fail("%s: nothing is told", what);
    expect(what, e.type, XEN_DSM_ACTIVITY);
    expect(what, e.want, up);
    expect(what, e.gfn, sends);
}

static int send_to(uint32_t vcpu, unsigned int flags)
{
    xen_dsm_vcpu_event_t event = { .vcpu = vcpu, .flags = flags };

    return xc_dsm_send(xch, domid, &event) ? errno : 0;
}

/* A vCPU of slice 1 that is started, and never runs: the domain is paused. */
static void activity(void)
{
    const unsigned int start = XEN_DSM_EVENT_INIT | XEN_DSM_EVENT_SIPI;

    destroy();
    create_as(XEN_DOMCTL_CDF_hvm | XEN_DOMCTL_CDF_hap, 2);
    prepare_slice(1, GFN);
    open_ring();
    expect("FLUSH", xc_dsm_flush_all(xch, domid), 0);
    expect("PLACE", xc_dsm_place(xch, domid, 1, 1, NULL), 0);
    expect("nothing is told", ring->prod, 0);
    expect("FLUSH", xc_dsm_flush_all(xch, domid), 0);
    expect_activity("none is up", false, 0);
    expect("NMI", send_to(1, XEN_DSM_EVENT_NMI), 0);
    expect_activity("an NMI starts nobody", false, 1);
    expect("SIPI", send_to(1, start), 0);
    expect_activity("it is up", true, 2);
    expect("NMI", send_to(1, XEN_DSM_EVENT_NMI), 0);
    expect("a ghost", send_to(0, XEN_DSM_EVENT_NMI), EXDEV);
    expect("INIT", send_to(1, XEN_DSM_EVENT_INIT), 0);
    expect_activity("it is down", false, 3);
    expect_activity("and so it stays", false, 4);
    expect("nothing else is told", ring->prod, ring->cons);
    close_ring();
}

static void refuse(const char *what, unsigned int want)
{
    unsigned int refused = 0;
    int rc = enable(&refused);

    if ( rc != EOPNOTSUPP || refused != want )
        fail("%s: %s, refused %u (%s); expected %u (%s)", what,
             rc ? strerror(rc) : "accepted", refused, xc_dsm_refusal(refused),
             want, xc_dsm_refusal(want));
}

/*
 * What this hypervisor can't have is not among them: nested virtualisation (its
 * processors lack what Xen wants for it), altp2m (Intel), devices (no IOMMU),
 * sharing (CONFIG_MEM_SHARING).  tests/unit/xen has each.
 */
static void refused_domains(void)
{
    static const struct { unsigned int slice, of; } slices[] = {
        { 0, 0 }, { 1, 1 }, { 2, 2 }, { 65535, 2 },
        { 0, XEN_DSM_MAX_SLICES + 1 }, { 0, 65535 },
    };
    const uint32_t hvm = XEN_DOMCTL_CDF_hvm | XEN_DOMCTL_CDF_hap;
    unsigned int refused, i;
    evtchn_port_t ring_port;
    void *monitor;

    destroy();

    /* Whose memory this program is in: not even looked at. */
    domid = 0;
    expect("the control domain itself", enable(&refused), EPERM);

    create_as(0, 1);
    refuse("a PV domain", XEN_DSM_REFUSED_NOT_HAP);
    destroy();

    create_as(hvm, 0);
    refuse("no vCPU", XEN_DSM_REFUSED_NO_VCPU);
    destroy();

    create();
    expect("unpause", xc_domain_unpause(xch, domid), 0);
    refuse("it has run", XEN_DSM_REFUSED_RUNNING);
    destroy();

    create();
    expect("populated on demand", populate(GFN, 9, XENMEMF_populate_on_demand),
           0);
    refuse("on demand", XEN_DSM_REFUSED_POD);
    destroy();

    create();
    expect("log-dirty", xc_shadow_control(xch, domid,
                                          XEN_DOMCTL_SHADOW_OP_ENABLE_LOGDIRTY,
                                          NULL, 0) < 0, 0);
    refuse("log-dirty", XEN_DSM_REFUSED_LOG_DIRTY);
    destroy();

    create();
    expect("populated", populate(GFN, 0, 0), 0);
    expect("ring", xc_hvm_param_set(xch, domid, HVM_PARAM_PAGING_RING_PFN, GFN),
           0);
    expect("pager", xc_mem_paging_enable(xch, domid, &ring_port), 0);
    refuse("a pager", XEN_DSM_REFUSED_PAGING);
    destroy();

    create();
    expect("populated", populate(GFN, 0, 0), 0);
    expect("ring", xc_hvm_param_set(xch, domid, HVM_PARAM_MONITOR_RING_PFN,
                                    GFN), 0);
    monitor = xc_monitor_enable(xch, domid, &ring_port);
    if ( !monitor )
        fail("a monitor: %s", strerror(errno));
    refuse("a monitor", XEN_DSM_REFUSED_MONITOR);
    if ( monitor )
        munmap(monitor, XC_PAGE_SIZE);
    /* Xen keeps two frames of a domain that ends with its monitor on. */
    expect("no monitor", xc_monitor_disable(xch, domid), 0);
    destroy();

    create();
    expect("viridian", xc_hvm_param_set(xch, domid, HVM_PARAM_VIRIDIAN,
                                        HVMPV_base_freq), 0);
    refuse("viridian", XEN_DSM_REFUSED_VIRIDIAN);
    destroy();

    create_with(hvm, 1, XEN_X86_EMU_LAPIC | XEN_X86_EMU_IOAPIC |
                        XEN_X86_EMU_PIC | XEN_X86_EMU_PIT | XEN_X86_EMU_PM |
                        XEN_X86_EMU_RTC | XEN_X86_EMU_HPET | XEN_X86_EMU_VGA |
                        XEN_X86_EMU_IOMMU);
    refuse("firmware", XEN_DSM_REFUSED_FIRMWARE);
    destroy();

    create();
    expect("restored", xc_domain_set_tsc_info(xch, domid, 2, 0, 0, 1), 0);
    refuse("restored", XEN_DSM_REFUSED_RESTORED);
    destroy();

    create();
    for ( i = 0; i < sizeof(slices) / sizeof(slices[0]); i++ )
        if ( enable_slice(slices[i].slice, slices[i].of, &refused) !=
             EOPNOTSUPP || refused != XEN_DSM_REFUSED_SLICES )
            fail("slice %u of %u: refused %u", slices[i].slice, slices[i].of,
                 refused);
    if ( !xc_dsm_page(xch, domid, NULL, 0) || errno != ENODEV )
        fail("a page operation without DSM was accepted");
    if ( !xc_dsm_flush(xch, domid) || errno != ENODEV )
        fail("FLUSH without DSM was accepted");
    expect("at last", enable(&refused), 0);
    expect("twice", enable(&refused), EEXIST);
}

/* What must not come later, either. */
static void refused_afterwards(void)
{
    unsigned long dirty[NR / 8 / sizeof(unsigned long)];
    evtchn_port_t ring_port;
    void *ring;

    prepare();
    if ( xc_shadow_control(xch, domid, XEN_DOMCTL_SHADOW_OP_ENABLE_LOGDIRTY,
                           NULL, 0) >= 0 )
        fail("log-dirty mode was accepted");
    if ( !xc_hvm_track_dirty_vram(xch, domid, GFN, NR, dirty) )
        fail("log-dirty mode of some frames was accepted");
    if ( !populate(GFN + NR, 9, XENMEMF_populate_on_demand) )
        fail("populate on demand was accepted");
    expect("ring", xc_hvm_param_set(xch, domid, HVM_PARAM_PAGING_RING_PFN, GFN),
           0);
    if ( !xc_mem_paging_enable(xch, domid, &ring_port) )
        fail("a pager was accepted");
    expect("ring", xc_hvm_param_set(xch, domid, HVM_PARAM_MONITOR_RING_PFN,
                                    GFN + 1), 0);
    ring = xc_monitor_enable(xch, domid, &ring_port);
    if ( ring || errno != EXDEV )
        fail("a monitor: %s", ring ? "accepted" : strerror(errno));
    if ( !xc_hvm_param_set(xch, domid, HVM_PARAM_VIRIDIAN, HVMPV_base_freq) )
        fail("viridian enlightenments were accepted");

    /* A device's registers over pages that are shared, or elsewhere. */
    frame_in(S, GFN + 6);
    frame_in(I, GFN + 7);
    expect("iomem", xc_domain_iomem_permission(xch, domid, TPM_MFN, 2, 1), 0);
    if ( !xc_domain_memory_mapping(xch, domid, GFN + 6, TPM_MFN, 1, 1) )
        fail("mapped over a page that is shared");
    if ( !xc_domain_memory_mapping(xch, domid, GFN + 7, TPM_MFN, 1, 1) )
        fail("mapped over a page that is elsewhere");
    expect("state", state_of(GFN + 6), S);
    expect("state", state_of(GFN + 7), I);
    /* And where DSM has nothing, as ever. */
    expect("mapped in a hole", xc_domain_memory_mapping(xch, domid, GFN + NR,
                                                        TPM_MFN, 1, 1), 0);
    expect("mapped outside", xc_domain_memory_mapping(xch, domid, GFN + 8 * NR,
                                                      TPM_MFN, 1, 1), 0);
}

/* 0, or errno; what the domain has shut down for then in *why. */
static int soft_reset(unsigned int *why)
{
    xc_domaininfo_t info;
    int rc;

    expect("shutdown", xc_domain_shutdown(xch, domid, SHUTDOWN_soft_reset), 0);
    rc = xc_domain_soft_reset(xch, domid) ? errno : 0;
    if ( xc_domain_getinfo_single(xch, domid, &info) )
        err(2, "xc_domain_getinfo_single");
    *why = info.flags & XEN_DOMINF_shutdown ? dominfo_shutdown_reason(&info)
                                            : ~0U;

    return rc;
}

/*
 * A kernel that begins anew would find pages that are elsewhere, and a slice is
 * one of several.  Who may not be reset never runs again, and keeps its pages.
 */
static void refused_soft_reset(void)
{
    unsigned int why;

    prepare();
    frame_in(M, GFN + 6);
    frame_in(S, GFN + 7);
    frame_in(I, GFN + 8);
    write_frame(GFN + 6, 6);
    expect("of a domain with DSM", soft_reset(&why), EINVAL);
    expect("and then it has shut down for", why, SHUTDOWN_soft_reset);
    expect("state", state_of(GFN + 6), M);
    expect("state", state_of(GFN + 7), S);
    expect("state", state_of(GFN + 8), I);
    if ( !frame_holds(GFN + 6, 6) )
        fail("a page has something else in it");

    /* Without it, as ever. */
    destroy();
    create();
    expect("populated", populate(GFN, 9, 0), 0);
    expect("of a domain without DSM", soft_reset(&why), 0);
    expect("and then it is not shut down", why, ~0U);
}

/* A daemon dies with what it has read; another finds ring, port and miss. */
static void another_daemon(void)
{
    struct mapper m = { .gfn = GFN + 20, .prot = PROT_READ };
    struct xen_dsm_ring_entry entry = {};
    unsigned int refused;

    prepare();
    write_frame(m.gfn, 100);
    frame_in(I, m.gfn);
    open_ring();
    if ( pthread_create(&m.thread, NULL, mapping, &m) )
        err(2, "pthread_create");
    if ( !next_entry(&entry, 10000) )
        fail("no miss was reported");
    expect("gfn", entry.gfn, m.gfn);
    close_ring();

    port = 0;
    expect("twice", enable(&refused), EEXIST);
    open_ring();
    expect("FLUSH of all", xc_dsm_flush_all(xch, domid), 0);
    entry.gfn = 0;
    if ( !next_entry(&entry, 10000) )
        fail("the miss was not reported again");
    expect("gfn", entry.gfn, m.gfn);
    fill(buffer, 100);
    expect("answer", op(XEN_DSM_INSTALL_S, m.gfn), 0);
    pthread_join(m.thread, NULL);
    expect("what the mapper found", m.found, 100);
    close_ring();
}

static void bad_ranges(void)
{
    static const struct {
        const char *what;
        unsigned int nr;
        xen_dsm_range_t ranges[2];
    } cases[] = {
        { "none", 0, {} },
        { "17", 17, {} },
        { "2^32 - 1", ~0U, {} },
        { "an empty one", 1, { { GFN, 0 } } },
        { "overlap", 2, { { GFN, 10 }, { GFN + 9, 10 } } },
        { "not sorted", 2, { { GFN + 100, 10 }, { GFN, 10 } } },
        { "too large", 1, { { 0, XEN_DSM_MAX_FRAMES + 1UL } } },
        { "too large together", 2,
          { { 0, XEN_DSM_MAX_FRAMES - 1UL },
            { XEN_DSM_MAX_FRAMES, 2 } } },
        { "beyond what is addressable", 1, { { 1UL << 51, 10 } } },
        { "wraps around", 1, { { ~0UL - 5, 10 } } },
    };
    xen_dsm_range_t good[2] = { { GFN, 10 }, { GFN + 20, 10 } };
    unsigned int i, refused;

    for ( i = 0; i < sizeof(cases) / sizeof(cases[0]); i++ )
    {
        static xen_dsm_range_t ranges[XEN_DSM_MAX_RANGES + 1];
        unsigned int nr = cases[i].nr;
        int rc;

        memcpy(ranges, cases[i].ranges, sizeof(cases[i].ranges));
        if ( nr > XEN_DSM_MAX_RANGES + 1 )
            nr = XEN_DSM_MAX_RANGES + 1;
        rc = enable_ranges(ranges, nr, &refused);
        if ( rc != EINVAL )
            fail("%s: %s", cases[i].what, rc ? strerror(rc) : "accepted");
    }
    expect("two good ones", enable_ranges(good, 2, &refused), 0);
    expect("in the first", op(XEN_DSM_QUERY, GFN + 9), 0);
    expect("between", op(XEN_DSM_QUERY, GFN + 10), -ERANGE);
    expect("in the second", op(XEN_DSM_QUERY, GFN + 20), 0);
    expect("behind", op(XEN_DSM_QUERY, GFN + 30), -ERANGE);
}

/* A daemon that dies stops its domain; one that comes back starts it again. */
static void daemon_dies(void)
{
    static const struct timespec nap = { .tv_nsec = 10000000 };
    unsigned int i;

    prepare();
    expect("unpause", xc_domain_unpause(xch, domid), 0);
    if ( !xc_dsm_keepalive(xch, domid, 3600 * 1000 + 1) || errno != EINVAL )
        fail("a time of more than an hour was accepted");
    expect("keepalive", xc_dsm_keepalive(xch, domid, 50), 0);
    for ( i = 0; i < 1000 && !is_alone(); i++ )
        nanosleep(&nap, NULL);
    expect("paused when the time was over", is_alone(), 1);
    expect("not by us", is_paused(), 0);
    if ( !xc_domain_unpause(xch, domid) )
        fail("we have ended a pause that is not ours");
    expect("pause", xc_domain_pause(xch, domid), 0);
    expect("keepalive", xc_dsm_keepalive(xch, domid, 0), 0);
    expect("paused after it came back", is_alone(), 0);
    expect("our own pause", is_paused(), 1);
    expect("unpause", xc_domain_unpause(xch, domid), 0);
}

static void no_such_domain(void)
{
    destroy();
    if ( !xc_dsm_flush(xch, domid) || errno != ESRCH )
        fail("a domain that does not exist: %s", strerror(errno));
    if ( !xc_dsm_flush(xch, 0) || errno != EPERM )
        fail("our own domain: %s", strerror(errno));
    create();
}

#undef HOLE
#undef I
#undef S
#undef M

static const struct { const char *name; void (*run)(void); } cases[] = {
    { "each operation from each state", every_step },
    { "the bytes are the page's", the_bytes },
    { "a thousand frames go round", many_frames },
    { "operations that are refused", refused_operations },
    { "a page that somebody uses", busy },
    { "a page that somebody maps", foreign_miss },
    { "a vCPU that waits", a_vcpu_waits },
    { "holes, populate and decrease", holes },
    { "the pool", pool },
    { "one slice has nothing elsewhere", one_slice },
    { "frames that are homed elsewhere", elsewhere },
    { "a hole at its home", hole_elsewhere },
    { "a vCPU between two holes", between_two_holes },
    { "a superpage", superpage },
    { "a large node comes and goes", a_large_node },
    { "pages of two slices", two_slices },
    { "events and time of a slice", events_and_time },
    { "is a vCPU up in a slice", activity },
    { "domains that are refused", refused_domains },
    { "what is refused afterwards", refused_afterwards },
    { "a soft reset is refused", refused_soft_reset },
    { "ranges", bad_ranges },
    { "the daemon dies", daemon_dies },
    { "another daemon", another_daemon },
    { "domains that are none", no_such_domain },
};

static uint64_t free_pages(void)
{
    xc_physinfo_t info;

    if ( xc_physinfo(xch, &info) )
        err(2, "xc_physinfo");

    return info.free_pages;
}

/* A domain's last frames are freed after a grace period, without an event. */
static void all_free_again(uint64_t want)
{
    static const struct timespec nap = { .tv_nsec = 10000000 };
    uint64_t got = 0;
    unsigned int i;

    for ( i = 0; i < 500; i++ )
    {
        if ( (got = free_pages()) >= want )
            return;
        nanosleep(&nap, NULL);
    }
    fail("%"PRIu64" frames are free, %"PRIu64" were before", got, want);
}

/* Have a vCPU run on that CPU, for whose first one Xen may allocate. */
static void run_on(unsigned int cpu, xc_cpumap_t map_of_cpus)
{
    static const struct timespec nap = { .tv_nsec = 10000000 };
    static const uint8_t code[] = { 0xeb, 0xfe };               /* 1: jmp 1b */
    xc_vcpuinfo_t info = {};
    unsigned int i;

    create();
    start_with(code, sizeof(code));
    memset(map_of_cpus, 0, xc_get_cpumap_size(xch));
    map_of_cpus[cpu / 8] = 1 << (cpu % 8);
    if ( xc_vcpu_setaffinity(xch, domid, 0, map_of_cpus, NULL,
                             XEN_VCPUAFFINITY_HARD) )
        err(2, "xc_vcpu_setaffinity: CPU %u", cpu);
    expect("unpause", xc_domain_unpause(xch, domid), 0);
    for ( i = 0; i < 1000 && !info.cpu_time; i++, nanosleep(&nap, NULL) )
        if ( xc_vcpu_getinfo(xch, domid, 0, &info) )
            err(2, "xc_vcpu_getinfo");
    if ( !info.cpu_time )
        fail("no vCPU has run on CPU %u", cpu);
    destroy();
}

/* Have Xen allocate what it allocates once, its map of large areas included. */
static void warm_up(void)
{
    xc_cpumap_t map_of_cpus = xc_cpumap_alloc(xch);
    unsigned int cpu, nr = xc_get_max_cpus(xch);
    static const struct timespec nap = { .tv_nsec = 10000000 };
    xen_dsm_range_t large = { .nr = XEN_DSM_MAX_FRAMES };
    uint64_t last = 0;
    unsigned int still, refused;

    create();
    prepare();
    destroy();
    create();
    expect("1 TiB", enable_ranges(&large, 1, &refused), 0);
    destroy();
    if ( !map_of_cpus )
        err(2, "xc_cpumap_alloc");
    for ( cpu = 0; cpu < nr; cpu++ )
        run_on(cpu, map_of_cpus);
    free(map_of_cpus);
    for ( still = 0; still < 100; nanosleep(&nap, NULL) )
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
    if ( (privcmd = open("/dev/xen/privcmd", O_RDWR | O_CLOEXEC)) < 0 )
        err(2, "/dev/xen/privcmd");
    if ( !(xce = xenevtchn_open(NULL, 0)) )
        err(2, "xenevtchn_open");
    if ( !(buffer = xc_dsm_alloc_pages(xch, 1)) )
        err(2, "a page to copy to");

    warm_up();

    for ( i = 0; i < sizeof(cases) / sizeof(cases[0]); i++ )
    {
        uint64_t before;

        if ( !wanted(cases[i].name, argc, argv) )
            continue;
        before = free_pages();
        failed = false;
        create();
        cases[i].run();
        destroy();
        all_free_again(before);
        printf("%sok %u - %s\n", failed ? "not " : "", ++n, cases[i].name);
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
