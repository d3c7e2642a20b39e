/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Removal of whole superpages from a guest's physical address space.
 *
 * guest_remove_page() splits a superpage to remove its first frame, and then
 * writes one entry, flushes every TLB and frees one frame 512 times.  When a
 * guest returns 2 MiB (or dom0 takes 1 GiB) that is mapped by one entry and
 * used by nobody else, all of that can be done once.
 *
 * An extent goes through five steps, and up to the third one everything can be
 * taken back exactly, because nothing but reference counts was changed:
 *
 *  1. look up    one p2m entry of plain RAM that covers the extent;
 *  2. take       one more reference to each frame, provided the domain's own
 *                is the only one;
 *  3. unmap      clear the entry;
 *  4. flush      until no CPU has it in its TLB, and clear the M2P;
 *  5. release    drop both references of each frame, and free the extent.
 *
 * A flush interrupts every CPU that the domain runs on, and waits for them all.
 * So several extents, a batch, go through steps 1 to 3 one after the other, and
 * one flush serves all of them.  EPT puts off its flushes while the p2m lock is
 * held; with NPT put_off_flush has it do the same, and only here.
 *
 * No frame is freed, and so none is handed out, before a flush has ended that
 * began after its entry was cleared.  What a stale TLB entry leads to until
 * then is a frame of the domain, which the reference of step 2 keeps, whoever
 * drops the others.  It holds because step 5 follows step 4 for the batch as a
 * whole, and because the p2m lock is held from the first entry that is cleared
 * until the flush: nobody else sees an entry that is clear, but not flushed.
 *
 * Between 2 and 5 somebody else may take a reference to a frame by its MFN
 * (not by its GFN, the p2m lock keeps those out).  Such a frame leaves the
 * domain when that reference is dropped, as it does in guest_remove_page().
 *
 * Locking: the domain's p2m lock is held over steps 1 to 4 of a batch, and the
 * paging lock within it by the p2m code.  d->page_alloc_lock and then the heap
 * lock are taken in step 5, after the p2m lock was dropped.  No other order
 * occurs, and no lock is held on return.  The caller may hold the p2m lock
 * (it is recursive): step 4 does not rely on the unlock for the flush.
 *
 * Two removals of the same extent exclude each other by the p2m lock.  The
 * death of the domain is not excluded: relinquish_memory() drops the domain's
 * reference, ours keeps the frame until step 5, which notices.
 */

#include <xen/dsm.h>
#include <xen/event.h>
#include <xen/guest_access.h>
#include <xen/ioreq.h>
#include <xen/mem_range.h>
#include <xen/mm.h>
#include <xen/numa.h>
#include <xen/param.h>
#include <xen/perfc.h>
#include <xen/sched.h>
#include <xen/trace.h>

#include <asm/altp2m.h>
#include <asm/hvm/hvm.h>
#include <asm/hvm/nestedhvm.h>
#include <asm/p2m.h>
#include <asm/paging.h>

/*
 * guest-remove-range: take superpages whole.  Changeable at run time, so that
 * both ways can be measured on one host; there is no other reason to clear it.
 */
static bool __read_mostly opt_guest_remove_range = true;
boolean_runtime_param("guest-remove-range", opt_guest_remove_range);

/*
 * Extents of 2 MiB that one flush serves.  It bounds how long the p2m lock is
 * held, and how much is released when something urgent has ended a batch.
 */
#define BATCH 32U

/*
 * Neighbours that are freed as one block: up to 16 MiB, for which the heap lock
 * is held then, as it is for dom0's largest extents (CONFIG_HWDOM_MAX_ORDER).
 */
#define MAX_BLOCK 12U

#define refuse(why) ({ perfc_incr(range_refused_##why); -EAGAIN; })

/* A frame that only its owner refers to, and then only the owner and us. */
#define COUNT_OWNED (PGC_allocated | 1)
#define COUNT_TAKEN (PGC_allocated | 2)

/*
 * States of the type that need more than a free: references as a special type,
 * a pinned type, mappings with other cache attributes.
 */
#define TYPE_BUSY (PGT_count_mask | PGT_pinned | PGT_non_coherent)

static bool extent_supported(gfn_t gfn, unsigned int order)
{
    if ( order == PAGE_ORDER_2M ? !hap_has_2mb
                                : order != PAGE_ORDER_1G || !hap_has_1gb )
        return false;

    return !(gfn_x(gfn) & ((1UL << order) - 1));
}

/*
 * Modes in which more than the host p2m must follow a removal, or in which its
 * update can fail half-way (IOMMU), go page by page.
 */
static bool domain_supported(const struct domain *d)
{
    return is_hvm_domain(d) && hap_enabled(d) && !is_iommu_enabled(d) &&
           !paging_mode_log_dirty(d) && !altp2m_active(d) && !d->is_dying;
}

/*
 * What each extent has to be asked about before it is removed (DSM, populate on
 * demand), or what has to follow each entry that is cleared (nested p2ms).
 */
static bool batch_supported(struct domain *d)
{
    return !dsm_enabled(d) && !p2m_get_hostp2m(d)->pod.entry_count &&
           !nestedhvm_enabled(d);
}

/*
 * Take a reference to a frame of d which nobody else uses.
 *
 * The count is compared as a whole: an extra reference, a Xen heap or extra
 * page, a coloured, static, broken or offlining one are all refused by it.
 */
static bool take_frame(struct page_info *pg, const struct domain *d)
{
    if ( cmpxchg(&pg->count_info, COUNT_OWNED, COUNT_TAKEN) != COUNT_OWNED )
        return false;

    /* A holder drops its type reference first, so this is its final value. */
    if ( likely(page_get_owner(pg) == d) &&
         likely(!(pg->u.inuse.type_info & TYPE_BUSY)) )
        return true;

    put_page(pg);

    return false;
}

static void put_frames(struct page_info *pg, unsigned long nr)
{
    while ( nr-- )
        put_page(pg++);
}

/* All nr frames or none. */
static bool take_frames(struct page_info *pg, unsigned long nr,
                        const struct domain *d)
{
    unsigned long i;

    for ( i = 0; i < nr; i++ )
        if ( unlikely(!take_frame(pg + i, d)) )
        {
            put_frames(pg, i);
            return false;
        }

    return true;
}

/*
 * Step 5 of one extent.  The frames are unreachable and hold our reference.
 * Those that are otherwise unused lose both references at once, so that nobody
 * can find them any more.  Returns whether that is all of them: the caller
 * frees them, in one go.
 *
 * TYPE_BUSY frames were refused and no type reference outlives a reference, so
 * put_page()'s clean up of mappings has nothing to do for them.
 */
static bool let_go(struct page_info *pg, unsigned int order)
{
    unsigned long i, unused, nr = 1UL << order;

    for ( unused = 0; unused < nr; unused++ )
        if ( unlikely(cmpxchg(&pg[unused].count_info, COUNT_TAKEN, 0) !=
                      COUNT_TAKEN) )
            break;

    if ( likely(unused == nr) )
        return true;

    perfc_incr(range_busy_after);

    for ( i = 0; i < unused; i++ )
        free_domheap_page(pg + i);

    for ( ; i < nr; i++ )
    {
        put_page_alloc_ref(pg + i);
        put_page(pg + i);
    }

    return false;
}

/*
 * Whether the first of nr extents, in the order of their frames, are a block of
 * the heap: together, aligned and so of one zone, and all of one node.
 */
static bool is_block(struct page_info *const *pgs, unsigned int nr,
                     unsigned int order, unsigned int block)
{
    const unsigned int n = 1U << (block - order);
    unsigned int i;

    if ( n > nr || (mfn_x(page_to_mfn(pgs[0])) & ((1UL << block) - 1)) ||
         pgs[n - 1] != pgs[0] + ((n - 1UL) << order) )
        return false;

    for ( i = 1; i < n; i++ )
        if ( page_to_nid(pgs[i]) != page_to_nid(pgs[0]) )
            return false;

    return true;
}

/*
 * Step 5.  What is freed merges with what a CPU of its node scrubs just now:
 * with the heap lock held that has to be waited for, each time.  So neighbours
 * are freed together, in whatever order they came.
 */
static void release_superpages(struct page_info **pgs, unsigned int nr,
                               unsigned int order)
{
    unsigned int i, at, unused = 0;

    for ( i = 0; i < nr; i++ )
    {
        struct page_info *pg = pgs[i];

        if ( unlikely(!let_go(pg, order)) )
            continue;
        for ( at = unused++; at && pgs[at - 1] > pg; at-- )
            pgs[at] = pgs[at - 1];
        pgs[at] = pg;
    }

    for ( i = 0; i < unused; )
    {
        unsigned int block = order;

        while ( block < MAX_BLOCK &&
                is_block(&pgs[i], unused - i, order, block + 1) )
            block++;
        free_domheap_pages(pgs[i], block);
        i += 1U << (block - order);
    }
}

/*
 * Step 3, with the p2m lock held.  Returns false when the frames must stay:
 * the entry is as it was, or the domain was crashed.
 */
static bool unmap_superpage(struct domain *d, gfn_t gfn, mfn_t mfn,
                            unsigned int order)
{
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    p2m_type_t type;

    if ( likely(!p2m_set_entry(p2m, gfn, INVALID_MFN, order, p2m_invalid,
                               p2m->default_access)) )
        return true;

    /*
     * It can run out of memory to split a larger superpage, before it changes
     * anything.  After any other failure nobody knows which table still leads
     * to the frames: keep them, for the domain to die with.
     */
    if ( !mfn_eq(get_gfn_query_unlocked(d, gfn_x(gfn), &type), mfn) ||
         type != p2m_ram_rw )
    {
        printk(XENLOG_G_ERR
               "%pd: removal of GFN %#lx (order %u) failed half-way\n",
               d, gfn_x(gfn), order);
        domain_crash(d);
        /* Before our reference goes, whoever else drops his. */
        p2m_tlb_flush_sync(p2m);
    }

    return false;
}

/*
 * Step 4, with the p2m lock held, for all that steps 1 to 3 have unmapped; also
 * if that is nothing, since an entry may have been split for it.
 */
static void flush_superpages(struct domain *d, struct page_info *const *pgs,
                             unsigned int nr, unsigned int order)
{
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    unsigned long i, mfn;
    unsigned int n;

    p2m->put_off_flush = false;
    p2m_tlb_flush_sync(p2m);

    for ( n = 0; n < nr; n++ )
    {
        mfn = mfn_x(page_to_mfn(pgs[n]));
        for ( i = 0; i < (1UL << order); i++ )
            set_gpfn_from_mfn(mfn + i, INVALID_M2P_ENTRY);
    }

    if ( nr )
        ioreq_request_mapcache_invalidate(d);
}

/*
 * Steps 1 to 3, with the p2m lock held.  Returns 0 with *pgp set to the first
 * of the frames, or -EAGAIN.  What is refused in a batch is asked for again,
 * alone, and is counted then.
 */
static int detach_superpage(struct domain *d, gfn_t gfn, unsigned int order,
                            bool alone, struct page_info **pgp)
{
#define refuse_extent(why) \
    ({ perfc_add(range_refused_##why, alone); -EAGAIN; })
    struct page_info *pg;
    p2m_type_t type;
    p2m_access_t access;
    unsigned int cur_order;
    mfn_t mfn = get_gfn_type_access(p2m_get_hostp2m(d), gfn_x(gfn), &type,
                                    &access, 0, &cur_order);

    /* It is recursive, and the caller's. */
    put_gfn(d, gfn_x(gfn));

    /* What is true of a domain may have changed while waiting for the lock. */
    if ( unlikely(!domain_supported(d)) )
        return refuse_extent(domain);

    if ( type != p2m_ram_rw || !mfn_valid(mfn) )
        return refuse_extent(type);

    if ( cur_order < order || (mfn_x(mfn) & ((1UL << order) - 1)) )
        return refuse_extent(split);

    pg = mfn_to_page(mfn);

    if ( !take_frames(pg, 1UL << order, d) )
        return refuse_extent(frame);

    if ( !unmap_superpage(d, gfn, mfn, order) )
    {
        put_frames(pg, 1UL << order);
        return refuse_extent(p2m);
    }

    *pgp = pg;

    return 0;
#undef refuse_extent
}

/* All steps for nr extents, until one is refused, or something is urgent. */
static unsigned int remove_superpages(struct domain *d, const xen_pfn_t *gfns,
                                      unsigned int nr, unsigned int order)
{
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    struct page_info *pgs[BATCH];
    const bool alone = nr == 1;
    unsigned int done;
    p2m_type_t type;
    p2m_access_t access;

    /* For the lock. */
    get_gfn_type_access(p2m, gfns[0], &type, &access, 0, NULL);

    if ( !alone && !batch_supported(d) )
        nr = 0;
    p2m->put_off_flush = nr > 1;

    for ( done = 0; done < nr; done++ )
        if ( (done && hypercall_preempt_check()) ||
             detach_superpage(d, _gfn(gfns[done]), order, alone, &pgs[done]) )
            break;

    flush_superpages(d, pgs, done, order);
    put_gfn(d, gfns[0]);

    release_superpages(pgs, done, order);

    perfc_add(range_removed, done);
    perfc_add(range_batches, done > 1);

    return done;
}

int guest_remove_range(struct domain *d, gfn_t gfn, unsigned int order)
{
    const xen_pfn_t gfns[] = { gfn_x(gfn) };

    if ( unlikely(!ACCESS_ONCE(opt_guest_remove_range)) )
        return refuse(off);

    if ( !domain_supported(d) )
        return refuse(domain);

    if ( !extent_supported(gfn, order) )
        return refuse(extent);

    return remove_superpages(d, gfns, 1, order) ? 0 : -EAGAIN;
}

unsigned int guest_remove_ranges(struct domain *d,
                                 XEN_GUEST_HANDLE(xen_pfn_t) list,
                                 unsigned int from, unsigned int to,
                                 unsigned int order)
{
    xen_pfn_t gfns[BATCH];
    unsigned int i, nr;

    /* 1 GiB is a batch by itself; who traces gets a record of each extent. */
    if ( order != PAGE_ORDER_2M || tb_init_done ||
         !ACCESS_ONCE(opt_guest_remove_range) || !domain_supported(d) )
        return 0;

    nr = min(to - from, BATCH);
    if ( __copy_from_guest_offset(gfns, list, from, nr) )
        return 0;

    for ( i = 0; i < nr; i++ )
        if ( !extent_supported(_gfn(gfns[i]), order) )
            break;

    return i < 2 ? 0 : remove_superpages(d, gfns, i, order);
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
