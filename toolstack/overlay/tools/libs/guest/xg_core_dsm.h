/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Which pages a core file of a guest with distributed shared memory has.
 *
 * A core file has a table of its pages, which is made before the pages are
 * written, by the number of frames that the domain has (xg_core.c).  A slice
 * of a guest has frames for what is homed on its host, and a few more: pages
 * that other hosts have come here when they are mapped.  So the frames of the
 * domain are fewer than the guest's pages, and the pages at its end would be
 * missing, without a word.
 *
 * Nor does Xen's highest frame number have pages of other hosts that were not
 * used here.  And each frame that has no page would be tried, one by one, up to
 * those above 4 GiB.  So Xen is asked where the guest can have memory (vNUMA),
 * and which of its frames are pages, many at a time.
 *
 * No locks, no state; blocks as long as its hypercalls take.
 */
#ifndef XG_CORE_DSM_H
#define XG_CORE_DSM_H

#include "xg_core.h"

#if defined(__i386__) || defined(__x86_64__)
/*
 * The pages of the guest, if the domain is a slice of one; else it changes
 * nothing.
 *
 * @map, @nr_map: where it may have memory; afterwards where it has some, in
 *                order.  From malloc(), before and after.  A guest decides how
 *                many areas that is: at most one for each second page.
 * @nr_pages: pages of the whole guest, wherever they are.  What is no memory of
 *            the guest's is none: shared_info, tables of grants.  Of a slice
 *            that lends memory these are pages of others, too, which it can't
 *            get: the file has zeroes for them, and no frame number.
 *
 * 0, or -1 with errno, and a line in the log; then nothing has changed.
 */
int xc_core_dsm_map(xc_interface *xch, uint32_t domid,
                    xc_core_memory_map_t **map, unsigned int *nr_map,
                    unsigned long *nr_pages);
#else
static inline int
xc_core_dsm_map(xc_interface *xch, uint32_t domid, xc_core_memory_map_t **map,
                unsigned int *nr_map, unsigned long *nr_pages)
{
    return 0;
}
#endif

#endif /* XG_CORE_DSM_H */
