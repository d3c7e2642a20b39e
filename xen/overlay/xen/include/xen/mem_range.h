/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Removal of whole superpages from a guest's physical address space.
 *
 * A balloon that returns memory in 2 MiB or 1 GiB extents should cost the
 * hypervisor one p2m update and one heap operation an extent, and not one of
 * each for every 4 KiB frame in it.  Several extents of 2 MiB share one TLB
 * flush, and neighbours one heap operation.
 */
#ifndef XEN_MEM_RANGE_H
#define XEN_MEM_RANGE_H

#include <xen/errno.h>
#include <xen/mm-frame.h>

#include <public/xen.h>

struct domain;

#ifdef CONFIG_GUEST_REMOVE_RANGE

/*
 * Take the 2^order frames at gfn from d and return them to the heap, all of
 * them or none.
 *
 * d:     any domain which the caller may change and holds a reference to, or
 *        the current one.
 * gfn:   first guest frame, untrusted: any 64-bit value.
 * order: log2 of the number of frames, untrusted.  Only PAGE_ORDER_2M (9) and
 *        PAGE_ORDER_1G (18) can succeed; deciding who may pass which order is
 *        the caller's business.
 *
 * Returns 0 when the extent is gone: the p2m entry is empty, no CPU or device
 * can reach the frames through it any more, the M2P is clear, d->tot_pages is
 * lower by 2^order, and the frames are free, or will be as soon as someone who
 * took a reference in the meantime (a grant, a foreign mapping) drops it.
 *
 * Returns -EAGAIN when nothing was changed and the caller should remove the
 * extent page by page.  This is the answer to everything unusual; performance
 * counters (xen/perfc_mem_range.h) tell what, and how often.
 *
 * Context: hypercall, interrupts enabled, no spin lock held but possibly d's
 * p2m lock.  Takes d's p2m lock, then without it d->page_alloc_lock and the
 * heap lock.  Does not sleep and does not preempt: the work is bounded by the
 * extent, and less than the page by page removal that it stands in for.
 */
int guest_remove_range(struct domain *d, gfn_t gfn, unsigned int order);

/*
 * The same for the first ones of several extents, with one TLB flush.
 *
 * list:  where the guest has their GFNs; the caller has checked that from to
 *        to - 1 of it may be read.
 *
 * Returns how many extents, from `from` on, are gone: 0 to 32.  The next one
 * was left as it was, for the caller to see to in its own way: it was refused
 * (which is not counted here), or a softirq or an event waits, or 32 are
 * enough.  0 with less than two extents to remove, with any order but
 * PAGE_ORDER_2M, with an unreadable list, for a domain with DSM, nested
 * virtualisation or populate-on-demand entries, and while tracing.
 *
 * Context: as above.  The p2m lock is held over one flush and at most 32
 * extents.
 */
unsigned int guest_remove_ranges(struct domain *d,
                                 XEN_GUEST_HANDLE(xen_pfn_t) list,
                                 unsigned int from, unsigned int to,
                                 unsigned int order);

#else /* !CONFIG_GUEST_REMOVE_RANGE */

static inline int guest_remove_range(struct domain *d, gfn_t gfn,
                                     unsigned int order)
{
    return -EAGAIN;
}

static inline unsigned int guest_remove_ranges(
    struct domain *d, XEN_GUEST_HANDLE(xen_pfn_t) list, unsigned int from,
    unsigned int to, unsigned int order)
{
    return 0;
}

#endif /* CONFIG_GUEST_REMOVE_RANGE */

#endif /* XEN_MEM_RANGE_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
