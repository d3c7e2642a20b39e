/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The small hypervisor of fake.h.  When NPT flushes is the text of the hook
 * (hook-0014-hap-N.h, the Nth place; test_mem_range.py makes them).
 */
#include "fake.h"

struct fake fake;

static void lock(struct p2m_domain *p2m)
{
    if ( !p2m->domain->hvm || !p2m->domain->hap )
        die("a domain without this p2m");
    if ( !p2m->locked && fake.while_locking )
        fake.while_locking();
    p2m->locked++;
}

static void guest_flush_tlb_mask(struct domain *d, int mask)
{
    if ( mask != d->dirty_cpumask )
        die("not the CPUs that the domain runs on");
    fake.flushes++;
    memset(&fake.stale[MFN0], 0, fake.used);
}

#include "hook-0014-hap-1.h"

static void hap_write_p2m_entry_post(struct p2m_domain *p2m,
                                     unsigned int oflags)
{
    struct domain *d = p2m->domain;

#include "hook-0014-hap-2.h"
    {
        perfc_incr(p2m_flushes);
        guest_flush_tlb_mask(d, d->dirty_cpumask);
    }
    if ( !p2m->put_off_flush && p2m->need_flush )
        die("who writes an entry relies on its flush");
    if ( p2m->put_off_flush && (d->dsm || d->nested || p2m->pod.entry_count) )
        die("somebody follows each entry");
}

void hap_p2m_init(struct p2m_domain *p2m)
{
#include "hook-0014-hap-3.h"
}

static void flush(struct p2m_domain *p2m)
{
    p2m->need_flush = false;
    if ( fake.defer_flush )
        guest_flush_tlb_mask(p2m->domain, p2m->domain->dirty_cpumask);
    else
        p2m->tlb_flush(p2m);
}

bool hypercall_preempt_check(void)
{
    return fake.urgent_from && ++fake.asked >= fake.urgent_from;
}

static void unlock(struct p2m_domain *p2m)
{
    if ( !p2m->locked )
        die("unlock of an unlocked p2m");
    if ( --p2m->locked )
        return;
    if ( p2m->put_off_flush )
        die("whoever has the lock next relies on flushes that are put off");
    if ( p2m->need_flush )
        flush(p2m);
    if ( fake.after_unlock )
        fake.after_unlock();
}

static mfn_t lookup(unsigned long gfn, p2m_type_t *t, unsigned int *order)
{
    const struct slot *s = gfn < NR_GFNS ? &fake.p2m[gfn] : NULL;

    *t = s ? s->type : p2m_mmio_dm;
    if ( order )
        *order = s ? s->order : 27;

    return s && s->mfn ? _mfn(s->mfn) : INVALID_MFN;
}

mfn_t get_gfn_type_access(struct p2m_domain *p2m, unsigned long gfn,
                          p2m_type_t *t, p2m_access_t *a, int q,
                          unsigned int *order)
{
    if ( q )
        die("a query must not populate or unshare");
    lock(p2m);
    *a = p2m_access_rwx;

    return lookup(gfn, t, order);
}

mfn_t get_gfn_query_unlocked(struct domain *d, unsigned long gfn, p2m_type_t *t)
{
    return lookup(gfn, t, NULL);
}

void put_gfn(struct domain *d, unsigned long gfn)
{
    unlock(&d->p2m);
}

int p2m_set_entry(struct p2m_domain *p2m, gfn_t gfn, mfn_t mfn,
                  unsigned int order, p2m_type_t t, p2m_access_t a)
{
    unsigned long i;
    bool fails;

    if ( !p2m->locked )
        die("p2m changed without its lock");
    if ( gfn_x(gfn) < GFN0 || gfn_x(gfn) + (1UL << order) > GFN0 + fake.used )
        die("p2m entry of GFN %#lx order %u changed", gfn_x(gfn), order);
    fake.set_entries++;
    if ( fake.while_unmapping )
        fake.while_unmapping();
    fails = fake.set_entries > fake.fails_after;
    if ( fails && fake.set_entry == SET_FAILS_SPLIT )
        p2m->need_flush = true;
    if ( fails && (fake.set_entry == SET_FAILS_UNCHANGED ||
                   fake.set_entry == SET_FAILS_SPLIT) )
        return -ENOMEM;
    if ( fails && fake.set_entry == SET_FAILS_TYPE )
    {
        fake.p2m[gfn_x(gfn)].type = p2m_ram_ro;
        return -EIO;
    }
    if ( a != p2m->default_access )
        die("access %d for GFN %#lx", a, gfn_x(gfn));
    for ( i = 0; i < (1UL << order); i++ )
    {
        unsigned long old = fake.p2m[gfn_x(gfn) + i].mfn;

        if ( old < NR_MFNS )
        {
            fake.stale[old] |= fake.mapped[old];
            fake.mapped[old] = false;
        }
        fake.p2m[gfn_x(gfn) + i] = (struct slot){ mfn_x(mfn), t, order };
    }
    if ( fake.defer_flush )
        p2m->need_flush = true;
    else
        hap_write_p2m_entry_post(p2m, _PAGE_PRESENT);

    return fails && fake.set_entry == SET_FAILS_CHANGED ? -EIO : 0;
}

void p2m_tlb_flush_sync(struct p2m_domain *p2m)
{
    if ( !p2m->locked )
        die("p2m_tlb_flush_sync() needs the p2m lock");
    if ( p2m->need_flush )
        flush(p2m);
}

void set_gpfn_from_mfn(unsigned long mfn, unsigned long pfn)
{
    if ( mfn < MFN0 || mfn >= MFN0 + fake.used )
        die("M2P of MFN %#lx changed", mfn);
    fake.m2p[mfn] = pfn + 1;
}

void ioreq_request_mapcache_invalidate(const struct domain *d)
{
    fake.mapcache_invalidations++;
}

static void free_frame(struct page_info *pg)
{
    unsigned long mfn = pg - fake.frames;
    struct domain *d = pg->owner;

    if ( pg->free || !d )
        die("MFN %#lx freed twice", mfn);
    if ( pg->count_info )
        die("MFN %#lx freed with count %#lx", mfn, pg->count_info);
    if ( pg->u.inuse.type_info & PGT_count_mask )
        die("MFN %#lx freed with type %#lx", mfn, pg->u.inuse.type_info);
    if ( d->p2m.locked != fake.callers_lock )
        die("MFN %#lx freed with the p2m lock held", mfn);
    if ( d->p2m.need_flush || fake.stale[mfn] )
        die("MFN %#lx freed before the flush", mfn);
    if ( fake.m2p[mfn] != INVALID_M2P_ENTRY + 1 )
        die("MFN %#lx freed with M2P %#lx", mfn, fake.m2p[mfn] - 1);
    if ( fake.mapped[mfn] )
        die("MFN %#lx freed while the p2m maps it", mfn);
    pg->free = true;
    pg->owner = NULL;
    d->tot_pages--;
}

void free_domheap_pages(struct page_info *pg, unsigned int order)
{
    unsigned long i, mfn = pg - fake.frames;

    if ( mfn & ((1UL << order) - 1) )
        die("MFN %#lx is not aligned to order %u", mfn, order);
    fake.heap_frees++;
    for ( i = 0; i < (1UL << order); i++ )
    {
        if ( page_to_nid(pg + i) != page_to_nid(pg) )
            die("MFN %#lx order %u is of two nodes", mfn, order);
        free_frame(pg + i);
    }
}

static void drop(struct page_info *pg)
{
    if ( !(pg->count_info & PGC_count_mask) )
        die("put of MFN %#lx without a reference", (unsigned long)(pg - fake.frames));
    if ( !(--pg->count_info & PGC_count_mask) )
        free_domheap_page(pg);
}

void put_page(struct page_info *pg)
{
    if ( fake.stale[pg - fake.frames] )
        die("MFN %#lx is let go before the flush", (unsigned long)(pg - fake.frames));
    drop(pg);
}

/* Also by another CPU, at any time. */
void put_page_alloc_ref(struct page_info *pg)
{
    if ( !(pg->count_info & PGC_allocated) )
        return;
    pg->count_info &= ~PGC_allocated;
    if ( (pg->count_info & PGC_count_mask) <= 1 )
        die("allocation reference of MFN %#lx is the last one",
            (unsigned long)(pg - fake.frames));
    drop(pg);
}
