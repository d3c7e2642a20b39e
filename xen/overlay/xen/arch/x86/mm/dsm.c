/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: pages of a guest that are on several hosts.
 *
 * This file knows one slice: which pages it has, how one is taken away or
 * given, and who waits for which.  Its vCPUs are in hvm/dsm_vcpu.c, and the
 * ring is in hvm/dsm_ring.c.  What the other slices have, and in which order
 * pages move, is the business of a daemon in the control domain.
 *
 *
 * States of a guest frame, and where each is kept:
 *
 *   M     p2m_ram_rw, any order.  What every guest has.
 *   S     p2m_dsm_shared, 4 KiB: present, read-only, executable.
 *   I     no p2m entry, and its bit in dsm_range.away is set.
 *   U     as I, and its bit in dsm_range.uncached is set as well.
 *   hole  no p2m entry, and its bit in away is clear.
 *
 * Only an operation sets or clears a bit, so what the guest removes by
 * itself becomes a hole without further ado.  A bit that is set beside an
 * entry means nothing: writers set it before they remove the entry and clear
 * it after they made one, so that a look-up without the lock sees either the
 * old or the new state.
 *
 * Code that looks a frame up sees none of that.  dsm_p2m_fixup() reports I,
 * and S to those who mean to write (P2M_UNSHARE), as p2m_ram_paged, and
 * p2m_mem_paging_populate(), which all of them call then, comes here.  So a
 * nested page fault, an emulated instruction, a walk of guest tables, a grant
 * and a foreign mapping wait or try again where they would for a pager.
 *
 * What does not try again is a hypercall that copies its arguments.  There
 * hvm/dsm_hypercall.c has the pages come before the hypercall begins, and the
 * gate (below) has them stay until it is over.  A page that it needs all the
 * same is no reason to stop the guest: its programs can bring that about, by
 * changing a pointer or a page table meanwhile.  The copy fails then, as for
 * every guest that does so, and stats.uncovered counts.
 *
 *
 * What is refused to a page operation that takes rights away: a frame that
 * anybody but the domain holds a reference to (-EBUSY), which covers foreign
 * mappings, grants, copies and walks that are going on; and a frame that is
 * no plain memory (-EPERM).  A reference can only be taken through the p2m
 * with its lock held, and rights are taken away with that lock held, so one
 * of the two comes first.
 *
 *
 * A frame without memory at its home is a hole for the accesses that asked for
 * it, and stays as it is: see hvm/dsm_hole.c, and hvm/dsm_foreign.c for those
 * of other domains.
 *
 *
 * U is for a page of another slice that can't leave it.  Faults on it come to
 * hvm/dsm_uncached.c first.  Who looks it up otherwise sees what he sees of I,
 * and asks for it; but not another domain, which finds a hole.  Only who saw U
 * asks for a page in state U: one that became so since is looked up again.
 *
 *
 * Homes.  A frame whose bit in dsm_range.elsewhere is set is homed on another
 * slice: no memory of this host is meant for it, whatever its state here.  It
 * changes by page operations only, also if its home has no memory for it.
 *
 *
 * Frames.  Those of pages in state I stay with the domain, in a pool: a list
 * through their own first bytes, since nobody needs what is in them.  As many
 * as there are pages in state I that are homed here are reserved for these, so
 * a page that is homed here can always come back.  What is more than that was
 * added by the daemon, or left by pages that are homed elsewhere:
 *
 *   pooled - reserved + pages here that are homed elsewhere = added
 *
 *
 * Superpages.  A page that leaves splits the superpage that it is in.  When all
 * 512 are back MERGE copies them into one again, with the domain paused, and
 * gives their frames to the host.
 *
 *
 * Locking, outermost first:
 *
 *   ops_lock      one page operation at a time; the pool; homes; dead.  Held
 *                 while a page is copied from or to the caller, which may
 *                 fault, but does not sleep.  Never taken by a guest.  MERGE
 *                 waits for the domain's vCPUs before it takes it.
 *   the gate      see below; waited for with ops_lock held.
 *   p2m lock      the p2m and the away bits.  Taken by guests, who hold it in
 *                 the emulator and recursively in dsm_populate().
 *   dsm->lock     who waits, the ring.  A leaf but for the scheduler's locks,
 *                 which vcpu_pause_nosync() and vcpu_unpause() take.  The p2m
 *                 is not looked up with it held.
 *
 * A miss is recorded with the p2m lock and then dsm->lock held, after looking
 * at the state again; an operation changes the state with the p2m lock and
 * wakes with dsm->lock within it.  So nobody waits for a page that came.
 *
 * The gate holds hypercalls of the guest and operations that take rights away
 * apart.  It is a counter of hypercalls and a flag: a hypercall increments
 * the counter and then looks at the flag, an operation sets the flag and then
 * waits for the counter, but not for long: then it opens the gate and is
 * -EBUSY.  Hypercalls never wait for an operation while they are counted.  One
 * that meets the flag enters the guest again at the same instruction.
 *
 *
 * Flush before copy.  On NPT p2m_set_entry() has flushed when it returns; on
 * EPT p2m_tlb_flush_sync() does.  Flushing interrupts the CPUs that run the
 * guest, and waits for them.  An interrupt, and the LOCKed operation with
 * which its handler answers, drain the store buffer of the CPU that had the
 * old entry, non-temporal stores as well: what is copied then is complete.
 */

#include <xen/event.h>
#include <xen/guest_access.h>
#include <xen/hypercall.h>
#include <xen/mem_access.h>
#include <xen/sched.h>
#include <xen/timer.h>
#include <xen/vm_event.h>
#include <xen/vmap.h>

#include <asm/altp2m.h>
#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/hvm/hvm.h>
#include <asm/hvm/nestedhvm.h>
#include <asm/mem_sharing.h>
#include <asm/p2m.h>
#include <asm/paging.h>

#include <xsm/xsm.h>

#include "mm-locks.h"

/* A frame that only its owner refers to, and then only the owner and us. */
#define COUNT_OWNED (PGC_allocated | 1)
#define COUNT_TAKEN (PGC_allocated | 2)

#define TYPE_BUSY (PGT_count_mask | PGT_pinned | PGT_non_coherent)

/* How often gate_close() looks before the operation is -EBUSY. */
#define GATE_SPINS 1000

/*
 * What the last look-up on this CPU that was fixed up wanted.  A hint, which
 * is right as long as dsm_populate() follows for the same frame: without it a
 * write to a page in state I would fault twice.
 */
struct dsm_want {
    unsigned long gfn;
    unsigned int want;          /* XEN_DSM_WANT_*, 0: none */
    bool uncached;              /* it was in state U */
    bool fault;                 /* of a nested page fault: dsm_want_cached() */
    s_time_t when;              /* it was looked up */
};
static DEFINE_PER_CPU(struct dsm_want, dsm_want);
static DEFINE_PER_CPU(bool, dsm_ad_missed);

/* ---- Frames and their states ---- */

static struct dsm_range *find_range(struct dsm_domain *dsm, unsigned long gfn)
{
    unsigned int i;

    for ( i = 0; i < dsm->nr_ranges; i++ )
        if ( gfn >= dsm->ranges[i].first &&
             gfn - dsm->ranges[i].first < dsm->ranges[i].nr )
            return &dsm->ranges[i];

    return NULL;
}

static bool is_away(struct dsm_domain *dsm, unsigned long gfn)
{
    const struct dsm_range *r = find_range(dsm, gfn);

    return r && dsm_bits_test(&r->away, gfn - r->first);
}

/* It stays so with ops_lock held, or the p2m lock. */
static bool is_elsewhere(struct dsm_domain *dsm, unsigned long gfn)
{
    const struct dsm_range *r = find_range(dsm, gfn);

    return r && dsm_bits_test(&r->elsewhere, gfn - r->first);
}

/* Room for a bit that is about to be set.  ops_lock is held, gfn in a range. */
static int may_leave(struct dsm_domain *dsm, unsigned long gfn)
{
    struct dsm_range *r = find_range(dsm, gfn);

    return dsm_bits_make_room(&r->away, gfn - r->first);
}

static int may_be_elsewhere(struct dsm_domain *dsm, unsigned long gfn)
{
    struct dsm_range *r = find_range(dsm, gfn);

    return dsm_bits_make_room(&r->elsewhere, gfn - r->first);
}

static int may_be_uncached(struct dsm_domain *dsm, unsigned long gfn)
{
    struct dsm_range *r = find_range(dsm, gfn);

    return dsm_bits_make_room(&r->uncached, gfn - r->first);
}

static bool is_uncached(struct dsm_domain *dsm, unsigned long gfn)
{
    const struct dsm_range *r = find_range(dsm, gfn);

    return r && dsm_bits_test(&r->uncached, gfn - r->first) &&
           dsm_bits_test(&r->away, gfn - r->first);
}

bool dsm_is_uncached(const struct domain *d, gfn_t gfn)
{
    return !d->arch.dsm->dead && is_uncached(d->arch.dsm, gfn_x(gfn)) &&
           !dsm_finds_hole(d, gfn_x(gfn));
}

/* The caller holds the p2m lock, and gfn is in a range. */
static void set_uncached(struct dsm_domain *dsm, unsigned long gfn,
                         bool uncached)
{
    struct dsm_range *r = find_range(dsm, gfn);

    if ( uncached )
        dsm_bits_set(&r->uncached, gfn - r->first);
    else
        dsm_bits_clear(&r->uncached, gfn - r->first);
}

/* The caller holds the p2m lock, and gfn is in a range. */
static void set_away(struct dsm_domain *dsm, unsigned long gfn, bool away)
{
    struct dsm_range *r = find_range(dsm, gfn);

    if ( away )
        dsm_bits_set(&r->away, gfn - r->first);
    else
    {
        dsm_bits_clear(&r->away, gfn - r->first);
        set_uncached(dsm, gfn, false);
    }
}

/* The caller holds ops_lock and the p2m lock, and gfn is in a range. */
static void set_elsewhere(struct dsm_domain *dsm, unsigned long gfn,
                          bool elsewhere)
{
    struct dsm_range *r = find_range(dsm, gfn);

    if ( elsewhere )
        dsm_bits_set(&r->elsewhere, gfn - r->first);
    else
        dsm_bits_clear(&r->elsewhere, gfn - r->first);
}

static unsigned int state_of(struct dsm_domain *dsm, unsigned long gfn,
                             p2m_type_t t)
{
    switch ( t )
    {
    case p2m_ram_rw:
        return XEN_DSM_STATE_M;

    case p2m_dsm_shared:
        return XEN_DSM_STATE_S;

    case p2m_invalid:
    case p2m_mmio_dm:
        if ( !is_away(dsm, gfn) )
            return XEN_DSM_STATE_HOLE;
        return is_uncached(dsm, gfn) ? XEN_DSM_STATE_U : XEN_DSM_STATE_I;

    default:
        return XEN_DSM_STATE_OTHER;
    }
}

/* The p2m lock is held. */
static unsigned int get_state(struct dsm_domain *dsm, struct p2m_domain *p2m,
                              unsigned long gfn, mfn_t *mfn)
{
    p2m_type_t t;
    p2m_access_t a;

    *mfn = p2m->get_entry(p2m, _gfn(gfn), &t, &a, 0, NULL, NULL);

    return state_of(dsm, gfn, t);
}

mfn_t dsm_p2m_fixup(struct p2m_domain *p2m, gfn_t gfn, mfn_t mfn,
                    p2m_type_t *t, p2m_query_t q, unsigned int *page_order)
{
    struct dsm_domain *dsm = p2m->domain->arch.dsm;
    bool uncached = false, hole = false;

    if ( !p2m_is_hostp2m(p2m) || dsm->dead )
        return mfn;

    switch ( state_of(dsm, gfn_x(gfn), *t) )
    {
    case XEN_DSM_STATE_I:
        hole = dsm_finds_hole(p2m->domain, gfn_x(gfn));
        break;

    case XEN_DSM_STATE_U:
        uncached = true;
        /* Another domain would wait for ever. */
        hole = current->domain != p2m->domain ||
               dsm_finds_hole(p2m->domain, gfn_x(gfn));
        break;

    case XEN_DSM_STATE_S:
        if ( q & P2M_UNSHARE )
            break;
        return mfn;

    default:
        return mfn;
    }

    if ( (q & P2M_ALLOC) && !hole )
        this_cpu(dsm_want) = (struct dsm_want){
            .gfn = gfn_x(gfn),
            .want = q & P2M_UNSHARE ? XEN_DSM_WANT_M : XEN_DSM_WANT_S,
            .uncached = uncached,
            .when = NOW(),
        };

    *t = hole ? p2m_mmio_dm : p2m_ram_paged;
    if ( page_order )
        *page_order = PAGE_ORDER_4K;

    return INVALID_MFN;
}

/* The first frame in [gfn, end) whose page is away, or end. */
static unsigned long next_away(const struct dsm_domain *dsm, unsigned long gfn,
                               unsigned long end)
{
    unsigned int i;

    for ( i = 0; i < dsm->nr_ranges; i++ )
    {
        const struct dsm_range *r = &dsm->ranges[i];
        unsigned long from, to, found;

        if ( r->first >= end || gfn >= r->first + r->nr )
            continue;

        from = max(gfn, r->first) - r->first;
        to = min(end - r->first, r->nr);
        found = dsm_bits_next(&r->away, to, from);
        if ( found < to )
            return r->first + found;
    }

    return end;
}

enum homes { HOMES_HERE, HOMES_ELSEWHERE, HOMES_MIXED };

/* Where [gfn, end) is homed.  What is in no range is homed here. */
static enum homes homes_of(const struct dsm_domain *dsm, unsigned long gfn,
                           unsigned long end)
{
    unsigned long elsewhere = 0;
    unsigned int i;

    for ( i = 0; i < dsm->nr_ranges; i++ )
    {
        const struct dsm_range *r = &dsm->ranges[i];
        unsigned long to, bit;

        if ( r->first >= end || gfn >= r->first + r->nr )
            continue;

        to = min(end - r->first, r->nr);
        for ( bit = dsm_bits_next(&r->elsewhere, to,
                                  max(gfn, r->first) - r->first);
              bit < to; bit = dsm_bits_next(&r->elsewhere, to, bit + 1) )
            elsewhere++;
    }

    return !elsewhere ? HOMES_HERE
                      : elsewhere == end - gfn ? HOMES_ELSEWHERE : HOMES_MIXED;
}

int dsm_may_change(struct p2m_domain *p2m, gfn_t gfn, unsigned int order)
{
    struct dsm_domain *dsm = p2m->domain->arch.dsm;
    unsigned long i, next, end = gfn_x(gfn) + (1UL << order);

    if ( !p2m_is_hostp2m(p2m) || dsm->dead )
        return 0;

    ASSERT(p2m_locked_by_me(p2m));

    /* Homed elsewhere: page operations only, whatever the state is. */
    if ( homes_of(dsm, gfn_x(gfn), end) != HOMES_HERE )
        return -EBUSY;

    /* Nonsense may wrap around: it ends here, or at the end of an entry. */
    for ( i = gfn_x(gfn); i < end; i = next )
    {
        p2m_type_t t;
        p2m_access_t a;
        unsigned int cur_order;

        p2m->get_entry(p2m, _gfn(i), &t, &a, 0, &cur_order, NULL);
        next = (i | ((1UL << cur_order) - 1)) + 1;
        if ( next <= i || next > end )
            next = end;

        switch ( state_of(dsm, i, t) )
        {
        case XEN_DSM_STATE_I:
        case XEN_DSM_STATE_U:
        case XEN_DSM_STATE_S:
            return -EBUSY;

        case XEN_DSM_STATE_HOLE:
            /* One entry that is empty may cover frames of both kinds. */
            if ( next_away(dsm, i, next) != next )
                return -EBUSY;
            break;

        default:
            break;
        }
    }

    return 0;
}

/* Does the current domain mean memory of its own that another slice has? */
static bool homed_elsewhere(const struct domain *d, gfn_t gfn,
                            unsigned int order)
{
    const struct dsm_domain *dsm = d->arch.dsm;

    return d == current->domain && !dsm->dead &&
           homes_of(dsm, gfn_x(gfn), gfn_x(gfn) + (1UL << order)) ==
           HOMES_ELSEWHERE;
}

int dsm_may_populate(struct domain *d, gfn_t gfn, unsigned int order)
{
    struct p2m_domain *p2m;
    mfn_t mfn;
    int rc;

    if ( !dsm_enabled(d) )
        return 0;

    p2m = p2m_get_hostp2m(d);
    gfn_lock(p2m, gfn, order);
    if ( !homed_elsewhere(d, gfn, order) )
        rc = dsm_may_change(p2m, gfn, order);
    else
    {
        unsigned long i, end = gfn_x(gfn) + (1UL << order);

        /* A slice that is not attached yet has no memory for anybody. */
        for ( i = gfn_x(gfn), rc = 1; i < end && rc > 0; i++ )
            if ( get_state(d->arch.dsm, p2m, i, &mfn) == XEN_DSM_STATE_HOLE )
                rc = -EBUSY;
    }
    gfn_unlock(p2m, gfn, order);

    return rc;
}

/* ---- The pool; ops_lock is held ---- */

static void pool_push(struct dsm_domain *dsm, struct page_info *pg)
{
    mfn_t *next = __map_domain_page(pg);

    *next = dsm->pool;
    unmap_domain_page(next);
    dsm->pool = page_to_mfn(pg);
    dsm->pooled++;
}

static struct page_info *pool_pop(struct dsm_domain *dsm)
{
    struct page_info *pg;
    mfn_t *next;

    if ( mfn_eq(dsm->pool, INVALID_MFN) )
        return NULL;

    pg = mfn_to_page(dsm->pool);
    next = __map_domain_page(pg);
    dsm->pool = *next;
    unmap_domain_page(next);
    dsm->pooled--;

    return pg;
}

/*
 * Give a frame that was in the pool back to the host.  It holds what the guest
 * had there, which the guest cannot clear any more: we do, whatever
 * scrub-domheap says.
 */
static void pool_free(struct domain *d, struct page_info *pg)
{
    if ( !pg || !get_page(pg, d) )
    {
        ASSERT_UNREACHABLE();
        return;
    }

    clear_domain_page(page_to_mfn(pg));
    put_page_alloc_ref(pg);
    put_page(pg);
}

/* One frame more, or -ENOMEM. */
static int pool_grow(struct domain *d, struct dsm_domain *dsm)
{
    struct page_info *pg = alloc_domheap_page(d, 0);

    if ( !pg )
        return -ENOMEM;

    pool_push(dsm, pg);
    dsm->added++;

    return 0;
}

/* One frame less, or -EBUSY. */
static int pool_shrink(struct domain *d, struct dsm_domain *dsm)
{
    struct page_info *pg = NULL;

    if ( dsm->pooled > dsm->reserved )
        pg = pool_pop(dsm);
    if ( !pg )
        return -EBUSY;

    dsm->added--;
    pool_free(d, pg);

    return 0;
}

/* ---- Who waits; dsm->lock is held ---- */

static void put_wait(struct dsm_domain *dsm, unsigned int vcpu)
{
    struct dsm_vcpu *w = &dsm->vcpu[vcpu];
    const struct xen_dsm_ring_entry entry = {
        .type = XEN_DSM_PAGE_MISS,
        .want = w->want,
        .flags = (w->by_xen ? XEN_DSM_MISS_BY_XEN : 0) |
                 (w->of_u ? XEN_DSM_MISS_OF_U : 0),
        .vcpu = vcpu,
        .gfn = w->gfn,
        .rip = w->rip,
        .when_ns = NOW(),
    };

    w->entry = dsm->prod;
    w->unsent = !dsm_ring_put(dsm, &entry);
    if ( w->unsent )
        dsm->stats.ring_full++;
}

/*
 * Stop the current vCPU until a page comes.  fault: when the look-up of its
 * nested page fault found it missing; 0 if it is no such fault.
 */
static void wait_for(struct dsm_domain *dsm, struct vcpu *v, unsigned long gfn,
                     unsigned int want, bool by_xen, bool of_u, s_time_t fault)
{
    struct dsm_vcpu *w = &dsm->vcpu[v->vcpu_id];

    /* One at a time; the other will be missed again when it goes on. */
    if ( w->waiting )
        return;

    w->gfn = gfn;
    w->want = want;
    w->by_xen = by_xen;
    w->of_u = of_u;
    w->rip = guest_cpu_user_regs()->rip;
    w->rsp = guest_cpu_user_regs()->rsp;
    w->since = NOW();
    w->waiting = true;
    dsm->nr_waiting++;
    dsm->stats.waits++;
    dsm->stats.waits_by_xen += by_xen;
    if ( fault )
    {
        dsm->stats.traps++;
        dsm->stats.trap_ns += max_t(s_time_t, w->since - fault, 0);
    }

    vcpu_pause_nosync(v);
    put_wait(dsm, v->vcpu_id);
}

/* Four buckets between powers of two, see wait_hist. */
static unsigned int bucket(uint64_t ns)
{
    unsigned int power = flsl(ns) - 1;
    unsigned int quarter = (power < 2 ? ns << (2 - power)
                                      : ns >> (power - 2)) & 3;

    return min(4 * power + quarter, XEN_DSM_STATS_BUCKETS - 1U);
}

/* A vCPU that waits goes on. */
static void wake_vcpu(struct domain *d, struct dsm_domain *dsm,
                      unsigned int vcpu)
{
    uint64_t ns = max_t(s_time_t, NOW() - dsm->vcpu[vcpu].since, 1);

    dsm->stats.wait_ns += ns;
    dsm->stats.wait_max_ns = max(dsm->stats.wait_max_ns, ns);
    dsm->stats.wait_hist[bucket(ns)]++;
    dsm_wake(d, vcpu);
}

static void wake(struct domain *d, struct dsm_domain *dsm, unsigned long gfn)
{
    unsigned int i;

    dsm_end_holes(d, gfn);
    dsm_foreign_answered(dsm, gfn);

    for ( i = 0; dsm->nr_waiting && i < d->max_vcpus; i++ )
    {
        const struct dsm_vcpu *w = &dsm->vcpu[i];

        if ( !w->waiting || w->gfn != gfn )
            continue;
        wake_vcpu(d, dsm, i);
    }
}

/*
 * Look at the state once more and ask for the page; uncached: in state U, too.
 * fault: as for wait_for().  Returns false if that is not necessary any more.
 */
static bool miss(struct domain *d, unsigned long gfn, unsigned int want,
                 bool by_xen, bool uncached, s_time_t fault)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    unsigned int state;
    bool missing, is_news = true;
    mfn_t mfn;

    gfn_lock(p2m, _gfn(gfn), 0);

    state = get_state(dsm, p2m, gfn, &mfn);
    /* Without a hint: I is in everybody's way, and S in a writer's only. */
    if ( !want )
        want = state == XEN_DSM_STATE_S ? XEN_DSM_WANT_M : XEN_DSM_WANT_S;
    missing = state == XEN_DSM_STATE_I ||
              (state == XEN_DSM_STATE_U && uncached) ||
              (state == XEN_DSM_STATE_S && want != XEN_DSM_WANT_S);
    if ( missing )
    {
        spin_lock(&dsm->lock);
        if ( dsm->dead )
            missing = false;
        else if ( current->domain == d )
            wait_for(dsm, current, gfn, want, by_xen,
                     state == XEN_DSM_STATE_U, fault);
        else
            is_news = dsm_foreign_miss(dsm, gfn, want);
        spin_unlock(&dsm->lock);
    }

    gfn_unlock(p2m, _gfn(gfn), 0);

    /* Who tries again each 100 us must not wake the daemon for nothing. */
    if ( missing && is_news )
        dsm_notify(d);

    return missing;
}

void dsm_want_nodata(gfn_t gfn)
{
    struct dsm_want *hint = &this_cpu(dsm_want);

    if ( hint->gfn == gfn_x(gfn) && hint->want == XEN_DSM_WANT_M )
        hint->want = XEN_DSM_WANT_M_NODATA;
}

void dsm_want_cached(gfn_t gfn)
{
    struct dsm_want *hint = &this_cpu(dsm_want);

    if ( hint->gfn == gfn_x(gfn) )
    {
        hint->uncached = false;
        hint->fault = true;
    }
}

void dsm_populate_uncached(gfn_t gfn)
{
    struct dsm_want *hint = &this_cpu(dsm_want);
    unsigned int want = hint->gfn == gfn_x(gfn) ? hint->want : 0;

    hint->want = 0;
    miss(current->domain, gfn_x(gfn), want, false, true, 0);
}

void dsm_populate(struct domain *d, gfn_t gfn)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct dsm_want *hint = &this_cpu(dsm_want);
    unsigned int want = hint->gfn == gfn_x(gfn) ? hint->want : 0;
    bool uncached = want ? hint->uncached : dsm_is_uncached(d, gfn);
    s_time_t fault = want && hint->fault ? hint->when : 0;
    const struct vcpu *curr = current;

    hint->want = 0;

    if ( curr->domain == d && dsm->vcpu[curr->vcpu_id].in_hcall &&
         !dsm->vcpu[curr->vcpu_id].hcall_retries )
    {
        /* Ours to mend if the guest has changed nothing meanwhile. */
        gprintk(XENLOG_WARNING,
                "DSM: hypercall %u uses GFN %#"PRI_gfn", which is not here\n",
                dsm->vcpu[curr->vcpu_id].hcall, gfn_x(gfn));
        spin_lock(&dsm->lock);
        dsm->stats.uncovered++;
        spin_unlock(&dsm->lock);
        return;
    }

    /* Not asked for before it is known that it is needed so. */
    if ( curr->domain == d && uncached &&
         dsm->vcpu[curr->vcpu_id].accesses.trying )
    {
        dsm->vcpu[curr->vcpu_id].accesses.needed = gfn_x(gfn);
        return;
    }

    miss(d, gfn_x(gfn), want,
         curr->domain == d && dsm->vcpu[curr->vcpu_id].in_hcall, uncached,
         fault);
}

int dsm_recall(struct domain *d, gfn_t gfn, unsigned int order)
{
    struct dsm_domain *dsm;
    struct p2m_domain *p2m;
    unsigned long i, end = gfn_x(gfn) + (1UL << order);

    if ( !dsm_enabled(d) )
        return 0;

    dsm = d->arch.dsm;
    p2m = p2m_get_hostp2m(d);

    if ( homed_elsewhere(d, gfn, order) )
        return 1;
    /* It would not be removed: nothing of it need come. */
    if ( homes_of(dsm, gfn_x(gfn), end) == HOMES_MIXED )
        return -EBUSY;

    for ( i = gfn_x(gfn); i < end; i++ )
    {
        unsigned int state;
        mfn_t mfn;

        /* What is M stays so: the gate is held. */
        gfn_lock(p2m, _gfn(i), 0);
        state = get_state(dsm, p2m, i, &mfn);
        gfn_unlock(p2m, _gfn(i), 0);

        if ( state != XEN_DSM_STATE_I && state != XEN_DSM_STATE_S )
            continue;
        if ( current->domain != d )
            return -EBUSY;
        if ( !miss(d, i, XEN_DSM_WANT_M_NODATA, true, false, 0) )
            continue;

        spin_lock(&dsm->lock);
        dsm->stats.recalls++;
        spin_unlock(&dsm->lock);

        return -ERESTART;
    }

    return 0;
}

/* A frame that a reference keeps.  If it is not ours alone it is asked for. */
static bool may_write(struct domain *d, mfn_t mfn)
{
    unsigned long gfn = get_gpfn_from_mfn(mfn_x(mfn));
    p2m_type_t t;

    get_gfn_query_unlocked(d, gfn, &t);
    if ( t != p2m_dsm_shared || d->arch.dsm->dead )
        return true;

    this_cpu(dsm_want) = (struct dsm_want){ gfn, XEN_DSM_WANT_M };
    dsm_populate(d, _gfn(gfn));

    return false;
}

bool dsm_ad_ok(struct domain *d, mfn_t mfn)
{
    /* Our reference to the table keeps it from being downgraded now. */
    if ( page_get_owner(mfn_to_page(mfn)) != d || may_write(d, mfn) )
        return true;

    this_cpu(dsm_ad_missed) = true;

    return false;
}

bool dsm_ad_missed(void)
{
    bool missed = this_cpu(dsm_ad_missed);

    this_cpu(dsm_ad_missed) = false;

    return missed;
}

int dsm_map_again(struct domain *d, mfn_t mfn, bool write,
                  struct page_info **page)
{
    struct page_info *pg = mfn_valid(mfn) ? mfn_to_page(mfn) : NULL;

    *page = NULL;

    /* Not memory of the guest's: none of our business. */
    if ( !pg || !get_page(pg, d) )
        return 0;

    if ( write && !may_write(d, mfn) )
    {
        put_page(pg);
        return -EAGAIN;
    }
    *page = pg;

    return 0;
}

/* ---- The gate ---- */

bool dsm_gate_enter(struct vcpu *v)
{
    struct dsm_domain *dsm = v->domain->arch.dsm;
    unsigned int i;

    for ( i = 0; i < 1000; i++ )
    {
        /* Many who count themselves in turn are never none together. */
        if ( unlikely(ACCESS_ONCE(dsm->closed)) )
        {
            cpu_relax();
            continue;
        }
        atomic_inc(&dsm->hcalls);
        smp_mb(); /* The counter before the flag, see gate_close(). */
        if ( likely(!ACCESS_ONCE(dsm->closed)) )
        {
            dsm->vcpu[v->vcpu_id].in_hcall = true;
            return true;
        }
        atomic_dec(&dsm->hcalls);
    }

    return false;
}

void dsm_gate_leave(struct vcpu *v)
{
    struct dsm_domain *dsm = v->domain->arch.dsm;

    if ( !dsm->vcpu[v->vcpu_id].in_hcall )
        return;

    dsm->vcpu[v->vcpu_id].in_hcall = false;
    dsm->vcpu[v->vcpu_id].hcall_retries = false;
    smp_mb(); /* What the hypercall did before the counter. */
    atomic_dec(&dsm->hcalls);
}

static void gate_open(struct dsm_domain *dsm)
{
    smp_mb();
    dsm->closed = false;
}

/* False, and open again: a hypercall is not done within some 10 us. */
static bool gate_close(struct dsm_domain *dsm)
{
    unsigned int i;

    dsm->closed = true;
    smp_mb(); /* The flag before the counter. */
    for ( i = 0; i < GATE_SPINS; i++ )
    {
        if ( !atomic_read(&dsm->hcalls) )
            return true;
        cpu_relax();
    }
    gate_open(dsm);

    return false;
}

/* ---- Page operations; ops_lock is held ---- */

/* Take a reference to a frame that nobody else uses. */
static int take_frame(struct domain *d, mfn_t mfn)
{
    struct page_info *pg;

    if ( !mfn_valid(mfn) )
        return -EPERM;

    pg = mfn_to_page(mfn);
    if ( is_special_page(pg) || page_get_owner(pg) != d )
        return -EPERM;

    if ( cmpxchg(&pg->count_info, COUNT_OWNED, COUNT_TAKEN) != COUNT_OWNED )
        return -EBUSY;

    if ( page_get_owner(pg) == d && !(pg->u.inuse.type_info & TYPE_BUSY) )
        return 0;

    put_page(pg);

    return -EBUSY;
}

/*
 * The entry of a frame which is mapped there already: from type to type.
 * Complete when it returns, on all CPUs.
 */
static int change_entry(struct p2m_domain *p2m, unsigned long gfn, mfn_t mfn,
                        p2m_type_t t)
{
    int rc = p2m_set_entry(p2m, _gfn(gfn), mfn, PAGE_ORDER_4K, t,
                           p2m->default_access);

    p2m_tlb_flush_sync(p2m);

    return rc;
}

/* Put back what an operation changed that has to be given up. */
static void restore_entry(struct domain *d, struct p2m_domain *p2m,
                          unsigned long gfn, mfn_t mfn, p2m_type_t t)
{
    struct dsm_domain *dsm = d->arch.dsm;

    ASSERT(p2m_locked_by_me(p2m));

    if ( change_entry(p2m, gfn, mfn, t) )
    {
        /* The page table is there, it was used just now. */
        printk(XENLOG_G_ERR "%pd: DSM: GFN %#lx cannot be put back\n", d, gfn);
        domain_crash(d);
        return;
    }
    set_away(dsm, gfn, false);

    /* Somebody may have missed it meanwhile. */
    spin_lock(&dsm->lock);
    wake(d, dsm, gfn);
    spin_unlock(&dsm->lock);
}

static int copy_out(XEN_GUEST_HANDLE_64(uint8) buf, mfn_t mfn)
{
    const void *p = map_domain_page(mfn);
    int rc = copy_to_guest(buf, p, PAGE_SIZE) ? -EFAULT : 0;

    unmap_domain_page(p);

    return rc;
}

static int copy_in(mfn_t mfn, XEN_GUEST_HANDLE_64(uint8) buf)
{
    void *p = map_domain_page(mfn);
    int rc = copy_from_guest(p, buf, PAGE_SIZE) ? -EFAULT : 0;

    unmap_domain_page(p);

    return rc;
}

/* INVAL and DOWNGRADE. */
static int take_rights(struct domain *d, struct xen_dsm_page_op *op)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    bool inval = op->op == XEN_DSM_INVAL;
    unsigned int state;
    p2m_type_t was;
    mfn_t mfn;
    int rc;

    if ( inval && may_leave(dsm, op->gfn) )
        return -ENOMEM;

    if ( !gate_close(dsm) )
        return -EBUSY;
    gfn_lock(p2m, _gfn(op->gfn), 0);

    state = get_state(dsm, p2m, op->gfn, &mfn);
    was = state == XEN_DSM_STATE_S ? p2m_dsm_shared : p2m_ram_rw;

    switch ( state )
    {
    case XEN_DSM_STATE_M:
        rc = 0;
        break;
    case XEN_DSM_STATE_S:
        rc = inval ? 0 : -EEXIST;
        break;
    case XEN_DSM_STATE_I:
    case XEN_DSM_STATE_U:
        rc = inval ? -EEXIST : -EINVAL;
        break;
    case XEN_DSM_STATE_HOLE:
        rc = -ENOENT;
        break;
    default:
        rc = -EPERM;
        break;
    }

    if ( !rc )
        rc = take_frame(d, mfn);
    if ( rc )
        goto unlock;

    if ( inval )
        set_away(dsm, op->gfn, true);
    rc = change_entry(p2m, op->gfn, inval ? INVALID_MFN : mfn,
                      inval ? p2m_invalid : p2m_dsm_shared);
    if ( rc )
    {
        if ( inval )
            set_away(dsm, op->gfn, false);
        put_page(mfn_to_page(mfn));
        goto unlock;
    }

    /* Somebody who knew the frame by its number. */
    if ( mfn_to_page(mfn)->count_info != COUNT_TAKEN )
    {
        restore_entry(d, p2m, op->gfn, mfn, was);
        put_page(mfn_to_page(mfn));
        rc = -EBUSY;
        goto unlock;
    }

    if ( inval )
        set_gpfn_from_mfn(mfn_x(mfn), INVALID_M2P_ENTRY);

 unlock:
    gfn_unlock(p2m, _gfn(op->gfn), 0);
    gate_open(dsm);

    if ( rc )
        return rc;

    /* Nobody can write any more, and only page operations change the state. */
    if ( !guest_handle_is_null(op->buf) )
        rc = copy_out(op->buf, mfn);
    if ( rc )
    {
        gfn_lock(p2m, _gfn(op->gfn), 0);
        if ( inval )
            set_gpfn_from_mfn(mfn_x(mfn), op->gfn);
        restore_entry(d, p2m, op->gfn, mfn, was);
        gfn_unlock(p2m, _gfn(op->gfn), 0);
        put_page(mfn_to_page(mfn));
        return rc;
    }

    put_page(mfn_to_page(mfn));
    if ( inval )
    {
        pool_push(dsm, mfn_to_page(mfn));
        dsm->reserved += !is_elsewhere(dsm, op->gfn);
        dsm->stats.invals++;
    }
    else
        dsm->stats.downgrades++;

    return 0;
}

static int wanted_missing(unsigned int state)
{
    switch ( state )
    {
    case XEN_DSM_STATE_I:
    case XEN_DSM_STATE_U:
        return 0;
    case XEN_DSM_STATE_HOLE:
        return -ENOENT;
    default:
        return -EEXIST;
    }
}

/* INSTALL_S, INSTALL_M and ZERO_M. */
static int install(struct domain *d, struct xen_dsm_page_op *op)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    p2m_type_t t = op->op == XEN_DSM_INSTALL_S ? p2m_dsm_shared : p2m_ram_rw;
    struct page_info *pg;
    bool here;
    mfn_t mfn;
    int rc;

    if ( op->op != XEN_DSM_ZERO_M && guest_handle_is_null(op->buf) )
        return -EINVAL;

    /* Nobody but a page operation ends state I: it lasts when it is found. */
    gfn_lock(p2m, _gfn(op->gfn), 0);
    rc = wanted_missing(get_state(dsm, p2m, op->gfn, &mfn));
    gfn_unlock(p2m, _gfn(op->gfn), 0);
    if ( rc )
        return rc;

    here = !is_elsewhere(dsm, op->gfn);
    pg = here || dsm->pooled > dsm->reserved ? pool_pop(dsm) : NULL;
    if ( !pg )
        return -ENOSPC;
    mfn = page_to_mfn(pg);

    if ( op->op == XEN_DSM_ZERO_M )
        clear_domain_page(mfn);
    else
        rc = copy_in(mfn, op->buf);
    if ( rc )
        goto fail;

    gfn_lock(p2m, _gfn(op->gfn), 0);
    /* Before anybody can find the frame, see dsm_ad_ok(). */
    set_gpfn_from_mfn(mfn_x(mfn), op->gfn);
    rc = change_entry(p2m, op->gfn, mfn, t);
    if ( !rc )
    {
        set_away(dsm, op->gfn, false);
        spin_lock(&dsm->lock);
        wake(d, dsm, op->gfn);
        spin_unlock(&dsm->lock);
    }
    else
        set_gpfn_from_mfn(mfn_x(mfn), INVALID_M2P_ENTRY);
    gfn_unlock(p2m, _gfn(op->gfn), 0);

    if ( rc )
        goto fail;

    dsm->reserved -= here;
    if ( t == p2m_dsm_shared )
        dsm->stats.installs_s++;
    else
        dsm->stats.installs_m++;

    return 0;

 fail:
    pool_push(dsm, pg);

    return rc;
}

static int upgrade(struct domain *d, struct xen_dsm_page_op *op)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    mfn_t mfn;
    int rc;

    gfn_lock(p2m, _gfn(op->gfn), 0);

    switch ( get_state(dsm, p2m, op->gfn, &mfn) )
    {
    case XEN_DSM_STATE_S:
        rc = change_entry(p2m, op->gfn, mfn, p2m_ram_rw);
        break;
    case XEN_DSM_STATE_M:
        rc = -EEXIST;
        break;
    case XEN_DSM_STATE_HOLE:
        rc = -ENOENT;
        break;
    default:
        rc = -EINVAL;
        break;
    }
    if ( !rc )
    {
        spin_lock(&dsm->lock);
        wake(d, dsm, op->gfn);
        spin_unlock(&dsm->lock);
        dsm->stats.upgrades++;
    }

    gfn_unlock(p2m, _gfn(op->gfn), 0);

    return rc;
}

/*
 * A frame in state I becomes a hole.  Its page will not come back: if there is
 * memory here for it, that is the host's.  The p2m lock is held.
 */
static void make_hole(struct domain *d, unsigned long gfn)
{
    struct dsm_domain *dsm = d->arch.dsm;

    set_away(dsm, gfn, false);
    spin_lock(&dsm->lock);
    wake(d, dsm, gfn);
    spin_unlock(&dsm->lock);
    dsm->stats.drops++;

    if ( !is_elsewhere(dsm, gfn) )
    {
        dsm->reserved--;
        pool_free(d, pool_pop(dsm));
    }
}

static int drop(struct domain *d, struct xen_dsm_page_op *op)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    mfn_t mfn;
    int rc;

    gfn_lock(p2m, _gfn(op->gfn), 0);

    switch ( get_state(dsm, p2m, op->gfn, &mfn) )
    {
    case XEN_DSM_STATE_I:
    case XEN_DSM_STATE_U:
        make_hole(d, op->gfn);
        rc = 0;
        break;
    case XEN_DSM_STATE_HOLE:
        rc = -EEXIST;
        break;
    default:
        rc = -EINVAL;
        break;
    }

    gfn_unlock(p2m, _gfn(op->gfn), 0);

    return rc;
}

/* HOLE: the frame stays as it is, for who looks it up later. */
static int show_hole(struct domain *d, struct xen_dsm_page_op *op)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    bool foreign = op->wanted == XEN_DSM_HOLE_FOREIGN;
    unsigned int state;
    mfn_t mfn;
    int rc = 0;

    if ( !foreign && op->wanted >= d->max_vcpus )
        return -EINVAL;

    gfn_lock(p2m, _gfn(op->gfn), 0);

    state = get_state(dsm, p2m, op->gfn, &mfn);
    if ( state == XEN_DSM_STATE_HOLE )
        rc = -ENOENT;
    else if ( (state != XEN_DSM_STATE_I && state != XEN_DSM_STATE_U) ||
              !is_elsewhere(dsm, op->gfn) )
        rc = -EINVAL;
    else
    {
        spin_lock(&dsm->lock);
        if ( foreign )
            dsm_show_hole_to_others(dsm, op->gfn);
        else if ( dsm_show_hole(dsm, op->wanted, op->gfn) )
            wake_vcpu(d, dsm, op->wanted);
        spin_unlock(&dsm->lock);
    }

    gfn_unlock(p2m, _gfn(op->gfn), 0);

    return rc;
}

/* UNCACHE and CACHE. */
static int change_uncached(struct domain *d, struct xen_dsm_page_op *op)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    bool uncached = op->op == XEN_DSM_UNCACHE;
    unsigned int state;
    mfn_t mfn;
    int rc;

    if ( uncached && may_be_uncached(dsm, op->gfn) )
        return -ENOMEM;

    gfn_lock(p2m, _gfn(op->gfn), 0);

    state = get_state(dsm, p2m, op->gfn, &mfn);
    if ( state == (uncached ? XEN_DSM_STATE_U : XEN_DSM_STATE_I) )
        rc = -EEXIST;
    else if ( state == XEN_DSM_STATE_HOLE )
        rc = -ENOENT;
    else if ( state != (uncached ? XEN_DSM_STATE_I : XEN_DSM_STATE_U) ||
              !is_elsewhere(dsm, op->gfn) )
        rc = -EINVAL;
    else
    {
        set_uncached(dsm, op->gfn, uncached);
        spin_lock(&dsm->lock);
        wake(d, dsm, op->gfn);
        spin_unlock(&dsm->lock);
        rc = 0;
    }

    gfn_unlock(p2m, _gfn(op->gfn), 0);

    return rc;
}

/* READ, of what nobody writes. */
static int read_page(struct domain *d, struct xen_dsm_page_op *op)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    unsigned int state;
    mfn_t mfn;

    if ( guest_handle_is_null(op->buf) )
        return -EINVAL;

    gfn_lock(p2m, _gfn(op->gfn), 0);
    state = get_state(dsm, p2m, op->gfn, &mfn);
    gfn_unlock(p2m, _gfn(op->gfn), 0);

    if ( state != XEN_DSM_STATE_S )
        return state == XEN_DSM_STATE_HOLE ? -ENOENT : -EINVAL;

    /* Only a page operation, or the end of the domain, ends state S. */
    return copy_out(op->buf, mfn);
}

static int page_op(struct domain *d, struct xen_dsm_page_op *op)
{
    struct dsm_domain *dsm = d->arch.dsm;

    if ( op->flags || (op->wanted && op->op != XEN_DSM_HOLE) )
        return -EINVAL;

    if ( !find_range(dsm, op->gfn) )
        return -ERANGE;

    switch ( op->op )
    {
    case XEN_DSM_INVAL:
    case XEN_DSM_DOWNGRADE:
        return take_rights(d, op);

    case XEN_DSM_READ:
        return read_page(d, op);

    case XEN_DSM_INSTALL_S:
    case XEN_DSM_INSTALL_M:
    case XEN_DSM_ZERO_M:
        return install(d, op);

    case XEN_DSM_UPGRADE:
        return upgrade(d, op);

    case XEN_DSM_DROP:
        return drop(d, op);

    case XEN_DSM_UNCACHE:
    case XEN_DSM_CACHE:
        return change_uncached(d, op);

    case XEN_DSM_HOLE:
        return show_hole(d, op);

    case XEN_DSM_WAKE:
        spin_lock(&dsm->lock);
        wake(d, dsm, op->gfn);
        spin_unlock(&dsm->lock);
        return 0;

    case XEN_DSM_QUERY:
        return 0;

    default:
        return -EINVAL;
    }
}

static unsigned int query(struct domain *d, unsigned long gfn)
{
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    unsigned int state;
    mfn_t mfn;

    gfn_lock(p2m, _gfn(gfn), 0);
    state = get_state(d->arch.dsm, p2m, gfn, &mfn);
    gfn_unlock(p2m, _gfn(gfn), 0);

    return state;
}

/* The most that a vCPU waits for: without the bytes is more than with them. */
static unsigned int wanted(struct domain *d, unsigned long gfn)
{
    struct dsm_domain *dsm = d->arch.dsm;
    unsigned int i, want = 0;

    spin_lock(&dsm->lock);
    for ( i = 0; dsm->nr_waiting && i < d->max_vcpus; i++ )
        if ( dsm->vcpu[i].waiting && dsm->vcpu[i].gfn == gfn )
            want = max(want, dsm->vcpu[i].want + 0U);
    spin_unlock(&dsm->lock);

    return want;
}

/* One after the other; positive: more to do, but somebody else first. */
static int page_ops(struct domain *d, struct xen_dsm_page *page)
{
    struct dsm_domain *dsm = d->arch.dsm;

    if ( page->nr > XEN_DSM_MAX_PAGE_OPS || page->done > page->nr )
        return -EINVAL;

    while ( page->done < page->nr )
    {
        struct xen_dsm_page_op op;

        if ( copy_from_guest_offset(&op, page->ops, page->done, 1) )
            return -EFAULT;

        spin_lock(&dsm->ops_lock);
        if ( dsm->dead )
        {
            spin_unlock(&dsm->ops_lock);
            return -ESRCH;
        }
        op.rc = page_op(d, &op);
        if ( op.rc == -EBUSY )
            dsm->stats.busy++;
        op.state = query(d, op.gfn);
        op.wanted = op.op == XEN_DSM_QUERY ? wanted(d, op.gfn) : 0;
        spin_unlock(&dsm->ops_lock);

        if ( __copy_to_guest_offset(page->ops, page->done, &op, 1) )
            return -EFAULT;

        if ( ++page->done < page->nr && hypercall_preempt_check() )
            return 1;
    }

    return 0;
}

/* ---- Frames that are homed elsewhere; ops_lock is held ---- */

/* A hole is homed elsewhere now, and I. */
static int away(struct domain *d, unsigned long gfn)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    int rc = -EEXIST;
    mfn_t mfn;

    if ( may_leave(dsm, gfn) || may_be_elsewhere(dsm, gfn) )
        return -ENOMEM;

    gfn_lock(p2m, _gfn(gfn), 0);
    if ( get_state(dsm, p2m, gfn, &mfn) == XEN_DSM_STATE_HOLE )
    {
        set_elsewhere(dsm, gfn, true);
        set_away(dsm, gfn, true);
        rc = 0;
    }
    gfn_unlock(p2m, _gfn(gfn), 0);

    return rc;
}

/* What is I, or a hole, is a hole now, and homed here.  So is shared_info. */
static int drop_frame(struct domain *d, unsigned long gfn)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    unsigned int state;
    mfn_t mfn;
    int rc = 0;

    gfn_lock(p2m, _gfn(gfn), 0);
    state = get_state(dsm, p2m, gfn, &mfn);
    if ( state == XEN_DSM_STATE_I || state == XEN_DSM_STATE_U )
        make_hole(d, gfn);
    else if ( is_elsewhere(dsm, gfn) &&
              mfn_eq(mfn, _mfn(virt_to_mfn(d->shared_info))) )
    {
        rc = change_entry(p2m, gfn, INVALID_MFN, p2m_invalid);
        if ( !rc )
            set_gpfn_from_mfn(mfn_x(mfn), INVALID_M2P_ENTRY);
    }
    else if ( state != XEN_DSM_STATE_HOLE )
        rc = -EBUSY;
    if ( !rc )
        set_elsewhere(dsm, gfn, false);
    gfn_unlock(p2m, _gfn(gfn), 0);

    return rc;
}

/* Between two looks at whether somebody else has to run. */
#define FRAMES_AT_ONCE 512UL

/*
 * One of these commands for frames number *done to nr - 1, from first on.
 * Returns 0, an error at which it ended, or positive: more to do, but somebody
 * else first.
 */
static int frame_ops(struct domain *d, unsigned int cmd, unsigned long first,
                     unsigned long nr, uint64_aligned_t *done)
{
    struct dsm_domain *dsm = d->arch.dsm;
    int rc = 0;

    if ( *done > nr )
        return -EINVAL;

    while ( *done < nr )
    {
        unsigned long stop = *done + min(nr - (unsigned long)*done,
                                         FRAMES_AT_ONCE);

        spin_lock(&dsm->ops_lock);
        while ( !rc && *done < stop )
        {
            if ( dsm->dead )
                rc = -ESRCH;
            else if ( cmd == XEN_DSM_POOL_ADD )
                rc = pool_grow(d, dsm);
            else if ( cmd == XEN_DSM_POOL_DEL )
                rc = pool_shrink(d, dsm);
            else if ( cmd == XEN_DSM_AWAY )
                rc = away(d, first + *done);
            else
                rc = drop_frame(d, first + *done);
            *done += !rc;
        }
        spin_unlock(&dsm->ops_lock);

        if ( rc )
            return rc;
        if ( *done < nr && hypercall_preempt_check() )
            return 1;
    }

    return 0;
}

/* This slice's shared_info, in the place of a page that is homed elsewhere. */
static int map_shared_info(struct domain *d, unsigned long gfn)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    mfn_t mfn = _mfn(virt_to_mfn(d->shared_info)), old;
    unsigned int state;
    int rc = -EBUSY;

    if ( !dsm->slice )
        return -EINVAL;

    spin_lock(&dsm->ops_lock);
    gfn_lock(p2m, _gfn(gfn), 0);
    state = get_state(dsm, p2m, gfn, &old);
    if ( dsm->dead )
        rc = -ESRCH;
    else if ( !is_elsewhere(dsm, gfn) )
        rc = -EINVAL;
    else if ( get_gpfn_from_mfn(mfn_x(mfn)) != INVALID_M2P_ENTRY )
        rc = -EEXIST;
    else if ( state == XEN_DSM_STATE_I || state == XEN_DSM_STATE_U ||
              state == XEN_DSM_STATE_HOLE )
    {
        /* As a kernel begins.  Nobody unmasks ports of other slices here. */
        memset(d->shared_info->native.evtchn_mask, 0xff,
               sizeof(d->shared_info->native.evtchn_mask));
        rc = change_entry(p2m, gfn, mfn, p2m_ram_rw);
        if ( !rc )
        {
            set_gpfn_from_mfn(mfn_x(mfn), gfn);
            set_away(dsm, gfn, false);
            spin_lock(&dsm->lock);
            wake(d, dsm, gfn);
            spin_unlock(&dsm->lock);
        }
    }
    gfn_unlock(p2m, _gfn(gfn), 0);
    spin_unlock(&dsm->ops_lock);

    return rc;
}

/* ---- Accesses of other slices ---- */

/*
 * A reference to the frame of a page that is homed here and in state M.  Any
 * frame will do that the guest's vCPUs have in common, a grant table as well,
 * but shared_info: each slice has its own.  ops_lock is held.
 */
static int get_own(struct domain *d, unsigned long gfn, struct page_info **page,
                   bool *in_use)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    struct page_info *pg;
    unsigned int state;
    int rc = 0;
    mfn_t mfn;

    if ( !find_range(dsm, gfn) )
        return -ERANGE;
    if ( is_elsewhere(dsm, gfn) )
        return -EXDEV;

    gfn_lock(p2m, _gfn(gfn), 0);
    state = get_state(dsm, p2m, gfn, &mfn);
    if ( state != XEN_DSM_STATE_M )
        rc = state == XEN_DSM_STATE_HOLE ? -ENOENT : -ENODATA;
    else if ( !mfn_valid(mfn) ||
              mfn_eq(mfn, _mfn(virt_to_mfn(d->shared_info))) ||
              page_get_owner(mfn_to_page(mfn)) != d )
        rc = -EPERM;
    else
    {
        pg = mfn_to_page(mfn);
        *in_use = is_special_page(pg) || pg->count_info != COUNT_OWNED ||
                  (pg->u.inuse.type_info & TYPE_BUSY);
        *page = pg;
        rc = get_page(pg, d) ? 0 : -EBUSY;
    }
    gfn_unlock(p2m, _gfn(gfn), 0);

    return rc;
}

static int do_access(struct domain *d, struct xen_dsm_access *access)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct page_info *page;
    bool in_use;
    void *p;
    int rc = dsm_check_access(access);

    if ( rc )
        return rc;

    /* It stays in state M. */
    spin_lock(&dsm->ops_lock);
    rc = dsm->dead ? -ESRCH : get_own(d, access->gfn, &page, &in_use);
    if ( !rc )
    {
        p = __map_domain_page(page);
        dsm_make_access(p, access);
        unmap_domain_page(p);
        put_page(page);
        access->in_use = in_use;
        dsm->stats.accesses_done++;
    }
    spin_unlock(&dsm->ops_lock);

    return rc;
}

/* ---- Pools and homes ---- */

static int change_pool(struct domain *d, unsigned int cmd,
                       struct xen_dsm_pool *pool)
{
    return d->arch.dsm->nr_slices == 1
           ? -EINVAL : frame_ops(d, cmd, 0, pool->nr, &pool->done);
}

static int change_homes(struct domain *d, unsigned int cmd,
                        struct xen_dsm_frames *f)
{
    struct dsm_domain *dsm = d->arch.dsm;
    const struct dsm_range *r = find_range(dsm, f->first);

    if ( cmd == XEN_DSM_AWAY && dsm->nr_slices == 1 )
        return -EINVAL;

    if ( !r || f->nr > r->first + r->nr - f->first )
        return -ERANGE;

    return frame_ops(d, cmd, f->first, f->nr, &f->done);
}

/* ---- Superpages ---- */

#define MERGE_FRAMES (1U << PAGE_ORDER_2M)

/*
 * Can these frames be one page?  Which frames of the host they are, if so.  The
 * p2m lock is held.
 */
static int look_at_parts(struct domain *d, unsigned long first, mfn_t *parts)
{
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    unsigned int i, order;

    if ( homes_of(d->arch.dsm, first, first + MERGE_FRAMES) != HOMES_HERE )
        return -EXDEV;

    for ( i = 0; i < MERGE_FRAMES; i++ )
    {
        p2m_type_t t;
        p2m_access_t a;

        parts[i] = p2m->get_entry(p2m, _gfn(first + i), &t, &a, 0, &order,
                                  NULL);
        switch ( state_of(d->arch.dsm, first + i, t) )
        {
        case XEN_DSM_STATE_M:
            break;
        case XEN_DSM_STATE_OTHER:
            return -EPERM;
        default:
            return -ENODATA;
        }
        if ( order )
            return -EEXIST;
    }

    return 0;
}

static void put_parts(const mfn_t *parts, unsigned int nr)
{
    while ( nr-- )
        put_page(mfn_to_page(parts[nr]));
}

/* Somebody knew one of them by its number: all are as they were. */
static void restore_parts(struct domain *d, struct p2m_domain *p2m,
                          unsigned long first, const mfn_t *parts)
{
    unsigned int i;

    for ( i = 0; i < MERGE_FRAMES; i++ )
        restore_entry(d, p2m, first + i, parts[i], p2m_ram_rw);
}

/*
 * The domain is paused, so none of its vCPUs sees an entry or writes to a page;
 * others would need the p2m lock, or hold a reference.
 */
static int replace_parts(struct domain *d, unsigned long first,
                         struct page_info *pg, mfn_t *parts)
{
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    mfn_t whole = page_to_mfn(pg);
    unsigned int i;
    int rc;

    rc = look_at_parts(d, first, parts);
    if ( rc )
        return rc;

    for ( i = 0; i < MERGE_FRAMES; i++ )
    {
        rc = take_frame(d, parts[i]);
        if ( rc )
        {
            put_parts(parts, i);
            return rc;
        }
    }

    rc = p2m_set_entry(p2m, _gfn(first), whole, PAGE_ORDER_2M, p2m_ram_rw,
                       p2m->default_access);
    p2m_tlb_flush_sync(p2m);
    if ( rc )
        goto fail;

    for ( i = 0; i < MERGE_FRAMES; i++ )
        if ( mfn_to_page(parts[i])->count_info != COUNT_TAKEN )
        {
            restore_parts(d, p2m, first, parts);
            rc = -EBUSY;
            goto fail;
        }

    /* It has as many pages as before: the limit is not looked at. */
    if ( assign_pages(pg, MERGE_FRAMES, d, MEMF_no_refcount) )
    {
        /* It is dying, with all its memory. */
        restore_parts(d, p2m, first, parts);
        rc = -ESRCH;
        goto fail;
    }

    for ( i = 0; i < MERGE_FRAMES; i++ )
    {
        copy_domain_page(mfn_add(whole, i), parts[i]);
        set_gpfn_from_mfn(mfn_x(whole) + i, first + i);
        set_gpfn_from_mfn(mfn_x(parts[i]), INVALID_M2P_ENTRY);
    }

    return 0;

 fail:
    put_parts(parts, MERGE_FRAMES);

    return rc;
}

/*
 * The frames that the page had before; ops_lock is held.  They are counted, and
 * those that it has now are not: one for the other, as the guest, which runs
 * again, may take memory up to its limit.
 */
static void free_parts(struct domain *d, const mfn_t *parts)
{
    unsigned int i;

    for ( i = 0; i < MERGE_FRAMES; i++ )
    {
        nrspin_lock(&d->page_alloc_lock);
        if ( domain_adjust_tot_pages(d, 1) == 1 )
            ASSERT_UNREACHABLE();
        nrspin_unlock(&d->page_alloc_lock);

        put_page(mfn_to_page(parts[i]));
        pool_free(d, mfn_to_page(parts[i]));
    }
}

/* Pages that came back have frames of the pool, which are of any node. */
static nodeid_t node_of_most(const mfn_t *parts)
{
    uint16_t nr[MAX_NUMNODES] = {};
    unsigned int i;
    nodeid_t most = mfn_to_nid(parts[0]);

    for ( i = 0; i < MERGE_FRAMES; i++ )
    {
        nodeid_t node = mfn_to_nid(parts[i]);

        if ( ++nr[node] > nr[most] )
            most = node;
    }

    return most;
}

static int look_first(struct domain *d, unsigned long first, mfn_t *parts)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    int rc = -ESRCH;

    spin_lock(&dsm->ops_lock);
    if ( !dsm->dead )
    {
        gfn_lock(p2m, _gfn(first), PAGE_ORDER_2M);
        rc = look_at_parts(d, first, parts);
        gfn_unlock(p2m, _gfn(first), PAGE_ORDER_2M);
    }
    spin_unlock(&dsm->ops_lock);

    return rc;
}

/*
 * To write-protect the pages instead, and to let the vCPUs run, would have each
 * that writes wait for longer than the copy takes, and the daemon hear of
 * misses of pages that are here.  A CPU has flushed what it knew of a vCPU when
 * it has switched away from it.
 */
static int merge_paused(struct domain *d, unsigned long first,
                        struct page_info *pg, mfn_t *parts)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    int rc = -ESRCH;

    domain_pause(d);
    spin_lock(&dsm->ops_lock);
    if ( !dsm->dead )
    {
        rc = -EBUSY;
        if ( gate_close(dsm) )
        {
            gfn_lock(p2m, _gfn(first), PAGE_ORDER_2M);
            rc = replace_parts(d, first, pg, parts);
            gfn_unlock(p2m, _gfn(first), PAGE_ORDER_2M);
            gate_open(dsm);
        }
    }
    domain_unpause(d);

    if ( !rc )
    {
        free_parts(d, parts);
        dsm->stats.merges++;
    }
    else if ( rc == -EBUSY )
        dsm->stats.busy++;
    spin_unlock(&dsm->ops_lock);

    return rc;
}

static int merge(struct domain *d, const struct xen_dsm_frames *f)
{
    const struct dsm_range *r = find_range(d->arch.dsm, f->first);
    struct page_info *pg = NULL;
    mfn_t *parts;
    int rc;

    if ( f->nr != MERGE_FRAMES || f->first % MERGE_FRAMES || f->done )
        return -EINVAL;
    if ( !r || f->nr > r->first + r->nr - f->first )
        return -ERANGE;
    if ( !hap_has_2mb )
        return -EOPNOTSUPP;

    parts = xzalloc_array(mfn_t, MERGE_FRAMES);
    if ( !parts )
        return -ENOMEM;

    rc = look_first(d, f->first, parts);
    if ( !rc )
    {
        pg = alloc_domheap_pages(d, PAGE_ORDER_2M, MEMF_no_owner |
                                 MEMF_node(node_of_most(parts)) |
                                 MEMF_exact_node);
        rc = pg ? merge_paused(d, f->first, pg, parts) : -ENOMEM;
    }
    if ( rc && pg )
        free_domheap_pages(pg, PAGE_ORDER_2M);
    xfree(parts);

    return rc;
}

/* ---- ENABLE, and the end ---- */

static unsigned int refused(const struct domain *d,
                            const struct xen_dsm_enable *enable)
{
    if ( is_hardware_domain(d) )
        return XEN_DSM_REFUSED_HARDWARE_DOMAIN;
    if ( !is_hvm_domain(d) || !hap_enabled(d) )
        return XEN_DSM_REFUSED_NOT_HAP;
    if ( d->creation_finished )
        return XEN_DSM_REFUSED_RUNNING;
    /* Without vCPU 0 the p2m code asks for no flush. */
    if ( !d->vcpu || !d->vcpu[0] )
        return XEN_DSM_REFUSED_NO_VCPU;
    if ( p2m_pod_active(d) )
        return XEN_DSM_REFUSED_POD;
    if ( is_iommu_enabled(d) || has_arch_pdevs(d) )
        return XEN_DSM_REFUSED_PASSTHROUGH;
    if ( paging_mode_log_dirty(d) || d->arch.hvm.dirty_vram )
        return XEN_DSM_REFUSED_LOG_DIRTY;
    if ( altp2m_active(d) )
        return XEN_DSM_REFUSED_ALTP2M;
    if ( nestedhvm_enabled(d) )
        return XEN_DSM_REFUSED_NESTED;
    if ( mem_paging_enabled(d) )
        return XEN_DSM_REFUSED_PAGING;
    if ( mem_sharing_enabled(d) )
        return XEN_DSM_REFUSED_SHARING;
    if ( is_viridian_domain(d) )
        return XEN_DSM_REFUSED_VIRIDIAN;
    /* What it restricts is forgotten when a page goes. */
    if ( vm_event_check_ring(d->vm_event_monitor) ||
         p2m_get_hostp2m(d)->default_access != p2m_access_rwx )
        return XEN_DSM_REFUSED_MONITOR;
    /* A guest with devices has firmware, whose hypercalls are -ENOSYS. */
    if ( d->arch.emulation_flags & ~X86_EMU_LAPIC )
        return XEN_DSM_REFUSED_FIRMWARE;
    /* 1 for a domain that was created here. */
    if ( d->arch.incarnation > 1 )
        return XEN_DSM_REFUSED_RESTORED;
    if ( enable->nr_slices > XEN_DSM_MAX_SLICES ||
         enable->slice >= enable->nr_slices )
        return XEN_DSM_REFUSED_SLICES;

    return 0;
}

static int add_ranges(struct domain *d, struct dsm_domain *dsm,
                      const struct xen_dsm_enable *enable)
{
    unsigned long end = 0, total = 0;
    unsigned int i;

    if ( !enable->nr_ranges || enable->nr_ranges > XEN_DSM_MAX_RANGES )
        return -EINVAL;

    for ( i = 0; i < enable->nr_ranges; i++ )
    {
        struct dsm_range *r = &dsm->ranges[i];
        xen_dsm_range_t range;

        if ( copy_from_guest_offset(&range, enable->ranges, i, 1) )
            return -EFAULT;

        if ( !range.nr || range.nr > XEN_DSM_MAX_FRAMES - total ||
             range.first < end || !gfn_valid(d, _gfn(range.first)) ||
             !gfn_valid(d, _gfn(range.first + range.nr - 1)) )
            return -EINVAL;

        end = range.first + range.nr;
        total += range.nr;

        r->first = range.first;
        r->nr = range.nr;
        if ( dsm_bits_init(&r->away, range.nr) ||
             dsm_bits_init(&r->elsewhere, range.nr) ||
             dsm_bits_init(&r->uncached, range.nr) )
            return -ENOMEM;
        dsm->nr_ranges++;
    }

    return 0;
}

/* Each vCPU and each foreign frame has one entry, and some can be unread. */
static int alloc_ring(struct domain *d, struct dsm_domain *dsm)
{
    unsigned int per_page = PAGE_SIZE / sizeof(*dsm->entries);
    unsigned int i, pages = 1;
    struct page_info *pg;

    BUILD_BUG_ON(sizeof(*dsm->entries) != 64);
    BUILD_BUG_ON(sizeof(struct xen_dsm_ring) > PAGE_SIZE);

    while ( pages * per_page < 2 * (d->max_vcpus + DSM_FOREIGN) )
        pages *= 2;

    dsm->ring_frames = 1 + pages;
    dsm->ring_nr = pages * per_page;

    pg = alloc_domheap_pages(d, get_order_from_pages(dsm->ring_frames),
                             MEMF_no_refcount);
    if ( !pg )
        return -ENOMEM;

    for ( i = 0; i < 1U << get_order_from_pages(dsm->ring_frames); i++ )
    {
        clear_domain_page(page_to_mfn(pg + i));
        if ( !get_page_and_type(pg + i, d, PGT_writable_page) )
        {
            /* Only with 2^43 references: leak what cannot be freed. */
            while ( i-- )
            {
                put_page_alloc_ref(pg + i);
                put_page_and_type(pg + i);
            }
            return -ENODATA;
        }
    }
    dsm->ring_pg = pg;

    dsm->ring = vmap_contig(page_to_mfn(pg), dsm->ring_frames);
    if ( !dsm->ring )
        return -ENOMEM;
    dsm->entries = (void *)dsm->ring + PAGE_SIZE;
    dsm->ring->nr = dsm->ring_nr;

    return 0;
}

static void free_ring(struct dsm_domain *dsm)
{
    struct page_info *pg = dsm->ring_pg;
    struct xen_dsm_ring *ring = dsm->ring;
    unsigned int i;

    spin_lock(&dsm->lock);
    dsm->ring = NULL;
    dsm->entries = NULL;
    dsm->ring_pg = NULL;
    spin_unlock(&dsm->lock);

    if ( ring )
        vunmap(ring);

    for ( i = 0; pg && i < 1U << get_order_from_pages(dsm->ring_frames); i++ )
    {
        put_page_alloc_ref(pg + i);
        put_page_and_type(pg + i);
    }
}

static void free_dsm(struct dsm_domain *dsm)
{
    unsigned int i;

    free_ring(dsm);
    for ( i = 0; i < ARRAY_SIZE(dsm->ranges); i++ )
    {
        dsm_bits_free(&dsm->ranges[i].away);
        dsm_bits_free(&dsm->ranges[i].elsewhere);
        dsm_bits_free(&dsm->ranges[i].uncached);
    }
    xfree(dsm->vcpu);
    xfree(dsm);
}

unsigned int dsm_ring_frames(const struct domain *d)
{
    return dsm_enabled(d) ? d->arch.dsm->ring_frames : 0;
}

int dsm_acquire_ring(struct domain *d, unsigned int frame,
                     unsigned int nr_frames, xen_pfn_t mfn_list[])
{
    struct dsm_domain *dsm = d->arch.dsm;
    unsigned int i;
    int rc;

    if ( !dsm_enabled(d) )
        return -ENOENT;

    /* The ring is written to: a device model must not. */
    rc = xsm_dsm_op(XSM_PRIV, d);
    if ( rc )
        return rc;

    rc = -EINVAL;
    spin_lock(&dsm->lock);
    if ( dsm->ring_pg && frame + nr_frames <= dsm->ring_frames )
    {
        for ( i = 0; i < nr_frames; i++ )
            mfn_list[i] = mfn_x(page_to_mfn(dsm->ring_pg)) + frame + i;
        rc = nr_frames;
    }
    spin_unlock(&dsm->lock);

    return rc;
}

/* The daemon did not say in time that it lives. */
static void cf_check keepalive_expired(void *data)
{
    struct domain *d = data;
    struct dsm_domain *dsm = d->arch.dsm;
    unsigned int late_ms = 0;

    /*
     * A pause of our own: who counts in another's takes it away one day.  The
     * daemon may just have said that it lives.
     */
    spin_lock(&dsm->lock);
    if ( !dsm->dead && !dsm->paused && dsm->timeout_ms &&
         NOW() >= dsm->deadline )
    {
        domain_pause_nosync(d);
        dsm->paused = true;
        late_ms = dsm->timeout_ms;
    }
    spin_unlock(&dsm->lock);

    if ( late_ms )
        printk(XENLOG_G_ERR "%pd: DSM: no daemon for %u ms, paused\n", d,
               late_ms);
}

static int keepalive(struct domain *d, const struct xen_dsm_keepalive *ka)
{
    struct dsm_domain *dsm = d->arch.dsm;
    bool unpause;

    if ( ka->timeout_ms > 3600 * 1000 )
        return -EINVAL;

    spin_lock(&dsm->lock);
    if ( dsm->dead )
    {
        spin_unlock(&dsm->lock);
        return -ESRCH;
    }
    unpause = dsm->paused;
    dsm->paused = false;
    dsm->timeout_ms = ka->timeout_ms;
    dsm->deadline = NOW() + MILLISECS((s_time_t)ka->timeout_ms);
    if ( ka->timeout_ms )
        set_timer(&dsm->timer, dsm->deadline);
    else
        stop_timer(&dsm->timer);
    spin_unlock(&dsm->lock);

    if ( unpause )
        domain_unpause(d);

    return 0;
}

/* Somebody in the control domain sends to the port: nothing to do. */
static void cf_check port_notified(struct vcpu *v, unsigned int port)
{
}

static int enable(struct domain *d, struct xen_dsm_enable *enable)
{
    struct dsm_domain *dsm;
    int rc;

    if ( dsm_enabled(d) )
    {
        enable->port = d->arch.dsm->port;
        return -EEXIST;
    }

    enable->refused = refused(d, enable);
    if ( enable->refused )
        return -EOPNOTSUPP;

    dsm = xzalloc(struct dsm_domain);
    if ( !dsm )
        return -ENOMEM;

    spin_lock_init(&dsm->ops_lock);
    spin_lock_init(&dsm->lock);
    dsm->pool = INVALID_MFN;
    dsm->slice = enable->slice;
    dsm->nr_slices = enable->nr_slices;
    dsm->active = !enable->slice;
    init_timer(&dsm->timer, keepalive_expired, d, smp_processor_id());

    rc = -ENOMEM;
    dsm->vcpu = xzalloc_array(struct dsm_vcpu, d->max_vcpus); /* slice 0 */
    if ( !dsm->vcpu )
        goto fail;

    rc = add_ranges(d, dsm, enable);
    if ( !rc )
        rc = alloc_ring(d, dsm);
    if ( rc )
        goto fail;

    rc = alloc_unbound_xen_event_channel(d, 0, current->domain->domain_id,
                                         port_notified);
    if ( rc < 0 )
        goto fail;
    enable->port = dsm->port = rc;

    /* domain_kill() passes this lock before it lets dsm_relinquish() look. */
    domain_lock(d);
    if ( d->is_dying )
        rc = -ESRCH;
    else
        rc = cmpxchgptr(&d->arch.dsm, NULL, dsm) ? -EEXIST : 0;
    domain_unlock(d);
    if ( rc )
    {
        free_xen_event_channel(d, dsm->port);
        goto fail;
    }

    dsm_pause_ghosts(d);

    return 0;

 fail:
    kill_timer(&dsm->timer);
    free_dsm(dsm);

    return rc;
}

void dsm_relinquish(struct domain *d)
{
    struct dsm_domain *dsm = d->arch.dsm;

    if ( !dsm || dsm->dead )
        return;

    spin_lock(&dsm->ops_lock);
    spin_lock(&dsm->lock);
    dsm->dead = true;
    spin_unlock(&dsm->lock);
    spin_unlock(&dsm->ops_lock);

    kill_timer(&dsm->timer);
    free_ring(dsm);
}

void dsm_destroy(struct domain *d)
{
    struct dsm_domain *dsm = d->arch.dsm;

    if ( !dsm )
        return;

    dsm_relinquish(d);
    d->arch.dsm = NULL;
    free_dsm(dsm);
}

/* ---- The hypercall ---- */

static int flush_ring(struct domain *d, const struct xen_dsm_flush *flush)
{
    struct dsm_domain *dsm = d->arch.dsm;
    bool all = flush->flags & XEN_DSM_FLUSH_ALL, put = false;
    unsigned int i;

    if ( (flush->flags & ~XEN_DSM_FLUSH_ALL) || flush->pad )
        return -EINVAL;

    spin_lock(&dsm->lock);
    for ( i = 0; i < d->max_vcpus; i++ )
        if ( dsm->vcpu[i].waiting && (all || dsm->vcpu[i].unsent) )
        {
            put_wait(dsm, i);
            put = true;
        }
    if ( all )
        dsm_foreign_again(dsm);
    put |= dsm_flush_events(d, all);
    put |= dsm_flush_activity(d, all);
    put |= dsm_flush_calls(d, all);
    put |= dsm_flush_accesses(d, all);
    put |= dsm_flush_ports(dsm);
    spin_unlock(&dsm->lock);

    if ( put )
        dsm_notify(d);

    return 0;
}

static int get_stats(struct domain *d, XEN_GUEST_HANDLE_64(xen_dsm_stats_t) to)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct xen_dsm_stats *stats = xmalloc(struct xen_dsm_stats);
    int rc;

    if ( !stats )
        return -ENOMEM;

    spin_lock(&dsm->ops_lock);
    spin_lock(&dsm->lock);
    *stats = dsm->stats;
    stats->pooled = dsm->pooled;
    stats->reserved = dsm->reserved;
    stats->added = dsm->added;
    stats->paused = dsm->paused;
    spin_unlock(&dsm->lock);
    spin_unlock(&dsm->ops_lock);

    rc = copy_to_guest(to, stats, 1) ? -EFAULT : 0;
    xfree(stats);

    return rc;
}

int dsm_memop(XEN_GUEST_HANDLE_PARAM(xen_dsm_op_t) arg)
{
    struct xen_dsm_op op;
    struct domain *d;
    int rc;

    if ( copy_from_guest(&op, arg, 1) )
        return -EFAULT;

    if ( op.version != XEN_DSM_INTERFACE_VERSION )
        return -EACCES;

    rc = rcu_lock_live_remote_domain_by_id(op.domid, &d);
    if ( rc )
        return rc;

    rc = xsm_dsm_op(XSM_PRIV, d);
    if ( rc )
        goto out;

    rc = -ENODEV;
    if ( op.cmd != XEN_DSM_ENABLE && !dsm_enabled(d) )
        goto out;

    switch ( op.cmd )
    {
    case XEN_DSM_ENABLE:
        rc = enable(d, &op.u.enable);
        break;

    case XEN_DSM_PAGE:
        rc = page_ops(d, &op.u.page);
        break;

    case XEN_DSM_POOL_ADD:
    case XEN_DSM_POOL_DEL:
        rc = change_pool(d, op.cmd, &op.u.pool);
        break;

    case XEN_DSM_AWAY:
    case XEN_DSM_DROP_RANGE:
        rc = change_homes(d, op.cmd, &op.u.frames);
        break;

    case XEN_DSM_MERGE:
        rc = merge(d, &op.u.frames);
        break;

    case XEN_DSM_FLUSH:
        rc = flush_ring(d, &op.u.flush);
        break;

    case XEN_DSM_KEEPALIVE:
        rc = keepalive(d, &op.u.keepalive);
        break;

    case XEN_DSM_PLACE:
        rc = dsm_place(d, &op.u.place);
        break;

    case XEN_DSM_SEND:
        rc = dsm_send(d, &op.u.event);
        break;

    case XEN_DSM_GET_TSC:
        rc = dsm_get_tsc(d, &op.u.tsc);
        break;

    case XEN_DSM_SET_TSC:
        rc = dsm_set_tsc(d, &op.u.tsc);
        break;

    case XEN_DSM_CALL:
        rc = dsm_do_call(d, &op.u.call);
        break;

    case XEN_DSM_REPLY:
        rc = dsm_reply(d, &op.u.reply);
        break;

    case XEN_DSM_SEND_PORTS:
        rc = dsm_send_ports(d, &op.u.ports);
        break;

    case XEN_DSM_SHARED_INFO:
        rc = map_shared_info(d, op.u.shared_info.gfn);
        break;

    case XEN_DSM_GET_TIME:
        rc = dsm_get_time(d, &op.u.time);
        break;

    case XEN_DSM_SET_TIME:
        rc = dsm_set_time(d, &op.u.time);
        break;

    case XEN_DSM_JUMP:
        rc = dsm_jump(d, &op.u.jump);
        break;

    case XEN_DSM_DO_ACCESS:
        rc = do_access(d, &op.u.access);
        break;

    case XEN_DSM_ACCESS_DONE:
        rc = dsm_access_done(d, &op.u.access_done);
        break;

    case XEN_DSM_STATS:
        rc = get_stats(d, op.u.stats);
        break;

    default:
        rc = -EINVAL;
        break;
    }

    if ( __copy_to_guest(arg, &op, 1) )
        rc = -EFAULT;
    else if ( rc > 0 )
        rc = hypercall_create_continuation(__HYPERVISOR_memory_op, "lh",
                                           XENMEM_dsm_op, arg);

 out:
    rcu_unlock_domain(d);

    return rc;
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
