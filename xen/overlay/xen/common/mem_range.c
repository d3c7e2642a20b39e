/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Removal of whole superpages from a guest's physical address space.
 *
 * guest_remove_page() splits a superpage to remove its first frame, and then
 * writes one entry, flushes every TLB and frees one frame 512 times.  When a
 * guest returns 2 MiB (or dom0 takes 1 GiB) that is mapped by one entry and
 * used by nobody else, all of that can be done once.
 *
 * An extent goes through four steps, and up to the third one everything can be
 * taken back exactly, because nothing but reference counts was changed:
 *
 *  1. look up    one p2m entry of plain RAM that covers the extent;
 *  2. take       one more reference to each frame, provided the domain's own
 *                is the only one;
 *  3. unmap      clear the entry, flush, clear the M2P;
 *  4. release    drop both references of each frame, and free the extent.
 *
 * Between 2 and 4 somebody else may take a reference to a frame by its MFN
 * (not by its GFN, the p2m lock keeps those out).  Such a frame leaves the
 * domain when that reference is dropped, as it does in guest_remove_page().
 *
 * Locking: the domain's p2m lock is held over steps 1 to 3, and the paging
 * lock within it by the p2m code.  d->page_alloc_lock and then the heap lock
 * are taken in step 4, after the p2m lock was dropped.  No other order
 * occurs, and no lock is held on return.  The caller may hold the p2m lock
 * (it is recursive): step 3 does not rely on the unlock for the flush.
 *
 * Two removals of the same extent exclude each other by the p2m lock.  The
 * death of the domain is not excluded: relinquish_memory() drops the domain's
 * reference, ours keeps the frame until step 4, which notices.
 */

#include <xen/ioreq.h>
#include <xen/mem_range.h>
#include <xen/mm.h>
#include <xen/param.h>
#include <xen/perfc.h>
#include <xen/sched.h>

#include <asm/altp2m.h>
#include <asm/hvm/hvm.h>
#include <asm/p2m.h>
#include <asm/paging.h>

/*
 * guest-remove-range: take superpages whole.  Changeable at run time, so that
 * both ways can be measured on one host; there is no other reason to clear it.
 */
static bool __read_mostly opt_guest_remove_range = true;
boolean_runtime_param("guest-remove-range", opt_guest_remove_range);

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
 * Step 4.  The frames are unmapped and hold our reference.  Those that are
 * otherwise unused lose both references at once, so that nobody can find them
 * any more, and if that is all of them they are freed in one go.
 *
 * TYPE_BUSY frames were refused and no type reference outlives a reference, so
 * put_page()'s clean up of mappings has nothing to do for them.
 */
static void release_frames(struct page_info *pg, unsigned int order)
{
    unsigned long i, unused, nr = 1UL << order;

    for ( unused = 0; unused < nr; unused++ )
        if ( unlikely(cmpxchg(&pg[unused].count_info, COUNT_TAKEN, 0) !=
                      COUNT_TAKEN) )
            break;

    if ( likely(unused == nr) )
    {
        free_domheap_pages(pg, order);
        return;
    }

    perfc_incr(range_busy_after);

    for ( i = 0; i < unused; i++ )
        free_domheap_page(pg + i);

    for ( ; i < nr; i++ )
    {
        put_page_alloc_ref(pg + i);
        put_page(pg + i);
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
    unsigned long i;

    if ( unlikely(p2m_set_entry(p2m, gfn, INVALID_MFN, order, p2m_invalid,
                                p2m->default_access)) )
    {
        p2m_type_t type;

        /*
         * It can run out of memory to split a larger superpage, before it
         * changes anything.  After any other failure nobody knows which table
         * still leads to the frames: keep them, for the domain to die with.
         */
        if ( !mfn_eq(get_gfn_query_unlocked(d, gfn_x(gfn), &type), mfn) ||
             type != p2m_ram_rw )
        {
            printk(XENLOG_G_ERR
                   "%pd: removal of GFN %#lx (order %u) failed half-way\n",
                   d, gfn_x(gfn), order);
            domain_crash(d);
        }

        return false;
    }

    p2m_tlb_flush_sync(p2m);

    for ( i = 0; i < (1UL << order); i++ )
        set_gpfn_from_mfn(mfn_x(mfn) + i, INVALID_M2P_ENTRY);

    ioreq_request_mapcache_invalidate(d);

    return true;
}

/*
 * Steps 1 to 3, with the p2m lock held.  Returns 0 with *pgp set to the first
 * of the frames, or -EAGAIN.
 */
static int detach_superpage(struct domain *d, gfn_t gfn, unsigned int order,
                            mfn_t mfn, p2m_type_t type, unsigned int cur_order,
                            struct page_info **pgp)
{
    struct page_info *pg;

    /* What is true of a domain may have changed while waiting for the lock. */
    if ( unlikely(!domain_supported(d)) )
        return refuse(domain);

    if ( type != p2m_ram_rw || !mfn_valid(mfn) )
        return refuse(type);

    if ( cur_order < order || (mfn_x(mfn) & ((1UL << order) - 1)) )
        return refuse(split);

    pg = mfn_to_page(mfn);

    if ( !take_frames(pg, 1UL << order, d) )
        return refuse(frame);

    if ( !unmap_superpage(d, gfn, mfn, order) )
    {
        put_frames(pg, 1UL << order);
        return refuse(p2m);
    }

    *pgp = pg;

    return 0;
}

int guest_remove_range(struct domain *d, gfn_t gfn, unsigned int order)
{
    struct page_info *pg;
    p2m_type_t type;
    p2m_access_t access;
    unsigned int cur_order;
    mfn_t mfn;
    int rc;

    if ( unlikely(!ACCESS_ONCE(opt_guest_remove_range)) )
        return refuse(off);

    if ( !domain_supported(d) )
        return refuse(domain);

    if ( !extent_supported(gfn, order) )
        return refuse(extent);

    mfn = get_gfn_type_access(p2m_get_hostp2m(d), gfn_x(gfn), &type, &access,
                              0, &cur_order);
    rc = detach_superpage(d, gfn, order, mfn, type, cur_order, &pg);
    put_gfn(d, gfn_x(gfn));

    if ( rc )
        return rc;

    release_frames(pg, order);
    perfc_incr(range_removed);

    return 0;
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
