/* SPDX-License-Identifier: GPL-2.0-only */
/* The small hypervisor of fake_dsm.h. */
#include "fake_dsm.h"
#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include "world.h"

struct page_info frames[NR_MFNS];
struct vcpu *current;
struct cpu_user_regs fake_regs = { 0x1234 };
s_time_t fake_now;
uint64_t fake_tsc;
char fake_events[256];
unsigned int fake_port;
int fake_rc;
bool fake_preempt, fake_device_model;
size_t fake_allocated;
bool fake_no_memory;
struct domain dom, dom0;
unsigned int notified, flushes, spare_frames, asserted;
bool deadlock;
int mapped;
void (*when_waiting)(void);
void (*when_port)(void);
void (*when_entry)(unsigned long gfn);
void (*when_paused)(void);
void (*when_faulted)(void);
void (*when_counted)(void);
void (*when_unlocked)(unsigned long gfn);
unsigned long most_pages;
void (*when_locked)(const rwlock_t *l);
void (*when_mapped)(void);

static struct vcpu vcpus[NR_VCPUS], *table[NR_VCPUS], vcpu0;

/* ---- Locks ---- */

static unsigned int rank(const spinlock_t *l)
{
    return l == &dom.arch.dsm->lock ? 3 : l == &dom.page_alloc_lock ? 4 : 1;
}

void spin_lock_init(spinlock_t *l)
{
    l->held = false;
}

void spin_lock(spinlock_t *l)
{
    if ( l->held )
        die("a spinlock is taken twice");
    if ( dom.arch.dsm && rank(l) == 1 &&
         (dom.p2m.locked || dom.arch.dsm->lock.held) )
        die("ops_lock is the outermost");
    l->held = true;
}

void spin_unlock(spinlock_t *l)
{
    if ( !l->held )
        die("unlock of an unlocked spinlock");
    l->held = false;
}

void write_lock(rwlock_t *l)
{
    if ( l->held || dom.arch.dsm->lock.held || dom.arch.dsm->ops_lock.held ||
         (l != &dom.event_lock && !dom.event_lock.held) )
        die("a port's lock is taken inside of event_lock, and of nothing else");
    l->held = true;
    if ( when_locked && l != &dom.event_lock )
        when_locked(l);
}

void gfn_lock(struct p2m_domain *p2m, gfn_t gfn, unsigned int order)
{
    if ( dom.arch.dsm && dom.arch.dsm->lock.held )
        die("the p2m is looked up with dsm->lock held");
    p2m->locked++;
}

void gfn_unlock(struct p2m_domain *p2m, gfn_t gfn, unsigned int order)
{
    if ( !p2m->locked )
        die("unlock of an unlocked p2m");
    p2m->locked--; /* a flush that is still to come is too late */
    if ( !p2m->locked && when_unlocked )
        when_unlocked(gfn_x(gfn));
}

unsigned long __cmpxchg(volatile void *p, unsigned long old, unsigned long new,
                        int size)
{
    switch ( size )
    {
    case 1:
        return cmpxchg((uint8_t *)p, old, new);
    case 2:
        return cmpxchg((uint16_t *)p, old, new);
    case 4:
        return cmpxchg((uint32_t *)p, old, new);
    case 8:
        return cmpxchg((uint64_t *)p, old, new);
    }
    die("an exchange of %d bytes", size);
}

void atomic_inc(atomic_t *a)
{
    a->n++;
    a->increments++;
    if ( when_counted )
        when_counted();
}

/* Hypercalls end while somebody waits for them. */
int atomic_read(atomic_t *a)
{
    if ( a->n && when_waiting )
        when_waiting();
    else if ( a->n )
        die("waits for a hypercall that does not end");

    return a->n;
}

/* A copy may fault: not with a lock that a fault needs. */
void fake_may_copy(void)
{
    if ( dom.p2m.locked || (dom.arch.dsm && dom.arch.dsm->lock.held) )
        die("a copy with a lock held");
    if ( dom.p2m.need_flush )
        die("a copy before the flush");
}

void fake_fault(void)
{
    if ( when_faulted )
        when_faulted();
}

/* ---- Frames ---- */

bool get_page(struct page_info *pg, struct domain *d)
{
    if ( pg->owner != d || !(pg->count_info & ~PGC_allocated) )
        return false;
    pg->count_info++;

    return true;
}

/* 2 MiB of node 5 are MFN 240 to 247, if there are any. */
#define WHOLE 240UL
bool whole_frames, dies, hap_has_2mb = true;

static struct page_info *alloc_whole(struct domain *d, unsigned int order,
                                     unsigned int flags)
{
    unsigned long i;

    if ( dom.p2m.locked || dom.arch.dsm->lock.held || dom.arch.dsm->ops_lock.held )
        die("a superpage is allocated with a lock held");
    if ( d != &dom || order != PAGE_ORDER_2M ||
         flags != (MEMF_no_owner | MEMF_node(5) | MEMF_exact_node) )
        die("order %u with flags %#x", order, flags);
    if ( !whole_frames )
        return NULL;
    for ( i = 0; i < 1UL << order; i++ )
    {
        frames[WHOLE + i] = (struct page_info){ .m2p = INVALID_M2P_ENTRY };
        memset(frames[WHOLE + i].bytes, 0xdd, PAGE_SIZE);
    }
    whole_frames = false;

    return &frames[WHOLE];
}

void free_domheap_pages(struct page_info *pg, unsigned int order)
{
    unsigned long i;

    if ( pg != &frames[WHOLE] || whole_frames )
        die("what is freed is not what was allocated");
    for ( i = 0; i < NR_GFNS; i++ )
        if ( dom.p2m.e[i].mfn >= WHOLE && dom.p2m.e[i].mfn < WHOLE + 8 )
            die("GFN %lu is mapped still", i);
    for ( i = 0; i < 1UL << order; i++ )
        if ( pg[i].owner || pg[i].count_info )
            die("frame %lu is the domain's", i);
    whole_frames = true;
}

int assign_pages(struct page_info *pg, unsigned int nr, struct domain *d,
                 unsigned int flags)
{
    unsigned int i;

    if ( flags != MEMF_no_refcount || !d->p2m.locked )
        die("others can find a frame without an owner");
    if ( dies )
        return -EINVAL;
    for ( i = 0; i < nr; i++ )
    {
        if ( pg[i].owner )
            die("it has an owner");
        pg[i].owner = d;
        pg[i].count_info = PGC_allocated | 1;
    }

    return 0;
}

unsigned long domain_adjust_tot_pages(struct domain *d, long pages)
{
    if ( !d->page_alloc_lock.held )
        die("pages are counted without the lock");

    d->tot_pages += pages;
    if ( d->tot_pages > most_pages )
        most_pages = d->tot_pages;

    return d->tot_pages;
}

void copy_domain_page(mfn_t to, mfn_t from)
{
    if ( dom.p2m.need_flush || !dom.p2m.locked || !dom.pauses )
        die("a copy of what somebody may write to");
    memcpy(frames[to.n].bytes, frames[from.n].bytes, PAGE_SIZE);
}

void domain_pause(struct domain *d)
{
    if ( d->p2m.locked || d->arch.dsm->ops_lock.held ||
         d->arch.dsm->lock.held || d->domain_lock.held )
        die("vCPUs are waited for with a lock held");
    d->pauses++;
    if ( when_paused )
        when_paused();
}

void put_page(struct page_info *pg)
{
    if ( !(pg->count_info & ~PGC_allocated) )
        die("put of a frame without a reference");
    if ( --pg->count_info == 0 )
    {
        pg->owner->tot_pages--;
        pg->owner = NULL;
    }
}

void put_page_alloc_ref(struct page_info *pg)
{
    if ( !(pg->count_info & PGC_allocated) )
        die("a frame is freed twice");
    pg->count_info &= ~PGC_allocated;
    put_page(pg);
}

struct page_info *alloc_domheap_pages(struct domain *d, unsigned int order,
                                      unsigned int flags)
{
    unsigned long i, nr = 1UL << order, first = NR_MFNS - nr;

    if ( flags & MEMF_no_owner )
        return alloc_whole(d, order, flags);
    for ( i = 0; i < nr; i++ )
    {
        frames[first + i].owner = d;
        frames[first + i].count_info = PGC_allocated | 1;
        memset(frames[first + i].bytes, 0xcc, PAGE_SIZE);
    }

    return &frames[first];
}

/* The pages that POOL_ADD gets: MFN 128 and up, spare_frames of them. */
struct page_info *alloc_domheap_page(struct domain *d, unsigned int flags)
{
    unsigned long i;

    if ( d->p2m.locked || d->arch.dsm->lock.held )
        die("a frame is allocated with a lock held");
    for ( i = 128; i < 128 + spare_frames; i++ )
        if ( !frames[i].owner )
        {
            frames[i].owner = d;
            frames[i].count_info = PGC_allocated | 1;
            d->tot_pages++;
            frames[i].m2p = INVALID_M2P_ENTRY;
            memset(frames[i].bytes, 0xee, PAGE_SIZE);

            return &frames[i];
        }

    return NULL;
}

/* ---- The p2m ---- */

static mfn_t get_entry(struct p2m_domain *p2m, gfn_t gfn, p2m_type_t *t,
                       p2m_access_t *a, p2m_query_t q, unsigned int *order,
                       bool *sve)
{
    bool inside = gfn_x(gfn) < NR_GFNS;

    if ( dom.arch.dsm && dom.arch.dsm->lock.held )
        die("the p2m is looked up with dsm->lock held");
    *a = p2m_access_rwx;
    *t = inside ? p2m->e[gfn_x(gfn)].t : p2m_mmio_dm;
    if ( order )
        *order = inside ? p2m->e[gfn_x(gfn)].order : 27;

    return inside ? _mfn(p2m->e[gfn_x(gfn)].mfn) : INVALID_MFN;
}

int p2m_set_entry(struct p2m_domain *p2m, gfn_t gfn, mfn_t mfn,
                  unsigned int order, p2m_type_t t, p2m_access_t a)
{
    unsigned long i, g = gfn_x(gfn);

    if ( !p2m->locked )
        die("the p2m is changed without its lock");
    if ( (order && order != PAGE_ORDER_2M) || g >= NR_GFNS ||
         g % (1UL << order) )
        die("GFN %#lx order %u is changed", g, order);
    if ( p2m->fails )
        return -ENOMEM;
    if ( order )
    {
        for ( i = 0; i < 1UL << order; i++ )
        {
            p2m->e[g + i].t = t;
            p2m->e[g + i].mfn = mfn_eq(mfn, INVALID_MFN) ? ~0UL
                                                         : mfn_x(mfn) + i;
            p2m->e[g + i].order = order;
        }
        p2m->need_flush = true;
        if ( when_entry )
            when_entry(g);
        return 0;
    }
    for ( i = 0; i < NR_GFNS && !mfn_eq(mfn, INVALID_MFN); i++ )
        if ( i != g && p2m->e[i].mfn == mfn_x(mfn) )
            die("MFN %#lx is mapped twice", mfn_x(mfn));
    /* The others of a superpage are split from it. */
    for ( i = g & ~7UL; p2m->e[g].order && i < (g | 7) + 1; i++ )
        if ( i != g )
            p2m->e[i].order = 0;
    p2m->e[g].t = t;
    p2m->e[g].mfn = mfn_x(mfn);
    p2m->e[g].order = 0;
    p2m->need_flush = true;
    if ( when_entry )
        when_entry(g);

    return 0;
}

void p2m_tlb_flush_sync(struct p2m_domain *p2m)
{
    if ( !p2m->locked )
        die("a synchronous flush needs the p2m lock");
    flushes += p2m->need_flush;
    p2m->need_flush = false;
}

mfn_t get_gfn_query_unlocked(struct domain *d, unsigned long gfn, p2m_type_t *t)
{
    p2m_access_t a;
    mfn_t mfn = get_entry(&d->p2m, _gfn(gfn), t, &a, 0, NULL, NULL);

    return dsm_p2m_fixup(&d->p2m, _gfn(gfn), mfn, t, 0, NULL);
}

/* ---- The rest ---- */

void vcpu_pause_nosync(struct vcpu *v)
{
    v->paused++;
}

void vcpu_unpause(struct vcpu *v)
{
    if ( --v->paused < 0 )
        die("vCPU %u is unpaused too often", v->vcpu_id);
}

/* A vCPU of which nothing is said has always run. */
void vcpu_runstate_get(const struct vcpu *v, struct vcpu_runstate_info *state)
{
    *state = (struct vcpu_runstate_info){ .time = {
        [RUNSTATE_running] = fake_now - v->runnable_ns - v->offline_ns,
        [RUNSTATE_runnable] = v->runnable_ns,
        [RUNSTATE_offline] = v->offline_ns } };
}

int rcu_lock_live_remote_domain_by_id(domid_t id, struct domain **d)
{
    *d = &dom;

    return id == dom.domain_id ? 0 : -ESRCH;
}

int alloc_unbound_xen_event_channel(struct domain *d, unsigned int vcpu,
                                    domid_t remote,
                                    void (*fn)(struct vcpu *, unsigned int))
{
    if ( when_port )
        when_port();

    return 3;
}

void notify_via_xen_event_channel(struct domain *d, int port)
{
    if ( port != 3 || dom.arch.dsm->lock.held )
        die("notified through port %d, or with dsm->lock held", port);
    notified++;
}

void vcpu_info_populate(void *map, struct vcpu *v)
{
    memset(map, 0, sizeof(vcpu_info_t));
}

/* As the hypervisor's: what is not here to be written to is asked for. */
int map_guest_area(struct vcpu *v, paddr_t addr, unsigned int size,
                   struct guest_area *area,
                   void (*populate)(void *dst, struct vcpu *v))
{
    p2m_type_t t;
    p2m_access_t a;
    gfn_t gfn = gaddr_to_gfn(addr);
    struct domain *d = v->domain;
    mfn_t mfn = get_entry(&d->p2m, gfn, &t, &a, 0, NULL, NULL);

    if ( d->arch.dsm->lock.held || d->arch.dsm->ops_lock.held )
        die("the domain's lock is taken inside of ours");
    if ( area != &v->vcpu_info_area || populate != vcpu_info_populate ||
         size != sizeof(vcpu_info_t) )
        die("another area");
    mfn = dsm_p2m_fixup(&d->p2m, gfn, mfn, &t, P2M_UNSHARE, NULL);
    if ( t == p2m_ram_paged )
    {
        dsm_populate(d, gfn);
        return -EAGAIN;
    }
    if ( mfn_eq(mfn, INVALID_MFN) )
        return -EINVAL;
    if ( area->pg )
        return -EBUSY;
    if ( deadlock )
        return -ERESTART;
    area->pg = mfn_to_page(mfn);
    area->pg->count_info++;
    area->map = area->pg->bytes + (addr & ~PAGE_MASK);
    mapped++;
    populate(area->map, v);
    if ( when_mapped )
        when_mapped();

    return 0;
}

void vcpu_info_reset(struct vcpu *v)
{
    if ( !v->paused && !v->domain->pauses )
        die("its place changes while it runs");
    v->vcpu_info_area.map = NULL;
}

void unmap_domain_page_global(const void *map)
{
    if ( (unsigned long)map & ~PAGE_MASK )
        die("no page is mapped there");
    if ( !dom.pauses && !dom.is_dying )
        die("unmapped while it may run");
    mapped--;
}

void hvm_assert_evtchn_irq(struct vcpu *v)
{
    if ( !v->arch.hvm.evtchn_upcall_vector )
        die("an event without a vector");
    asserted++;
}

/* ---- Event channels ---- */

static int did(struct domain *d, const char *what, unsigned int a,
               unsigned int b)
{
    size_t n = strlen(fake_events);

    if ( d != &dom )
        die("%s of another domain", what);
    if ( d->arch.dsm->lock.held || d->arch.dsm->ops_lock.held || d->p2m.locked )
        die("%s: the domain's locks are taken inside of ours", what);
    snprintf(fake_events + n, sizeof(fake_events) - n, "%s%s %u %u",
             n ? ", " : "", what, a, b);

    return fake_rc;
}

int evtchn_bind_ipi(struct domain *d, struct evtchn_bind_ipi *bind)
{
    int rc = did(d, "ipi", bind->vcpu, bind->port);

    bind->port = rc ? 0 : fake_port;

    return rc;
}

int evtchn_bind_virq(struct domain *d, struct evtchn_bind_virq *bind,
                     evtchn_port_t port)
{
    int rc = did(d, "virq", bind->virq, bind->vcpu);

    if ( port )
        die("a port of the caller's");
    bind->port = rc ? 0 : fake_port;

    return rc;
}

int evtchn_unmask(struct domain *d, unsigned int port)
{
    return did(d, "unmask", port, 0);
}

/* Whoever closes a port has masked it. */
int evtchn_close(struct domain *d, int port, bool guest)
{
    if ( !guest )
        die("closes ports of the hypervisor");

    return did(d, "close", port,
               test_bit(port, d->shared_info->native.evtchn_mask));
}

int evtchn_status(struct evtchn_status *status)
{
    int rc = did(status->dom == dom.domain_id ? &dom : &dom0, "status",
                 status->port, status->status);

    status->status = 5;
    status->vcpu = 1;
    status->u = 77;

    return rc;
}

int evtchn_send(struct domain *d, unsigned int port)
{
    return did(d, "send", port, 0);
}

/* ---- Time ---- */

unsigned long cpu_khz = 2000000;

static uint64_t guest_tsc(const struct vcpu *v)
{
    return fake_tsc + v->arch.hvm.cache_tsc_offset;
}

void hvm_set_tsc_offset(struct vcpu *v, uint64_t offset, uint64_t at)
{
    if ( !v->domain->pauses || !v->domain->domain_lock.held )
        die("the TSC of a vCPU that may run, or may be started");
    v->tsc_offset = offset;
}

uint64_t vlapic_tdt_msr_get(struct vlapic *vlapic)
{
    return vlapic->deadline;
}

void vlapic_tdt_msr_set(struct vlapic *vlapic, uint64_t value)
{
    const struct vcpu *v = (void *)((char *)vlapic -
                                    offsetof(struct vcpu, vlapic));

    vlapic->deadline = value > guest_tsc(v) ? value : 0;
    vlapic->left = value - guest_tsc(v);
}

void collect_time_info(const struct vcpu *v, struct vcpu_time_info *u)
{
    *u = (struct vcpu_time_info){
        .tsc_timestamp = fake_tsc + v->arch.hvm.cache_tsc_offset,
        .system_time = fake_now,
        .tsc_to_system_mul = 1U << 31,
        .tsc_shift = 1,
    };
}

/* Frames 0..31 of the guest are memory, in MFN 64 and up, and then holes. */
void make_world(void)
{
    unsigned long i;

    dom = (struct domain){
        .hvm = true, .hap = true, .max_vcpus = NR_VCPUS, .domain_id = 7,
        .vcpu = table, .arch.incarnation = 1,
        .arch.emulation_flags = X86_EMU_LAPIC,
        .p2m = { .domain = &dom, .get_entry = get_entry },
    };
    for ( i = 0; i < NR_VCPUS; i++ )
    {
        vcpus[i] = (struct vcpu){ .domain = &dom, .vcpu_id = i };
        dom.vcpu[i] = &vcpus[i];
    }
    frames[SHARED_MFN] = (struct page_info){
        .count_info = PGC_allocated | 1, .owner = &dom, .special = true,
        .m2p = INVALID_M2P_ENTRY };
    dom.shared_info = (void *)frames[SHARED_MFN].bytes;
    fake_events[0] = 0;
    asserted = 0;
    deadlock = false;
    when_locked = NULL;
    when_mapped = NULL;
    when_faulted = when_counted = NULL;
    when_unlocked = NULL;
    fake_rc = fake_port = 0;
    vcpu0 = (struct vcpu){ .domain = &dom0 };
    current = &vcpu0;
    fake_device_model = false;
    for ( i = 128; i < 128 + 64; i++ )
        frames[i].owner = NULL;
    for ( i = 0; i < NR_GFNS; i++ )
    {
        dom.p2m.e[i].t = p2m_mmio_dm;
        dom.p2m.e[i].mfn = ~0UL;
    }
    whole_frames = dies = false;
    hap_has_2mb = true;
    dom.tot_pages = most_pages = MEMORY;
    for ( i = 0; i < MEMORY; i++ )
    {
        dom.p2m.e[i].t = p2m_ram_rw;
        dom.p2m.e[i].mfn = 64 + i;
        frames[64 + i] = (struct page_info){
            .count_info = PGC_allocated | 1, .owner = &dom, .m2p = i };
        memset(frames[64 + i].bytes, i, PAGE_SIZE);
    }
}
