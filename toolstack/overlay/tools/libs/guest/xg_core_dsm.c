/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * How many pages a core file of a guest with distributed shared memory has:
 * xg_core_dsm.h.
 */
#include <errno.h>

#include "xg_private.h"
#include "xg_core_dsm.h"

#include <xenctrl_dsm.h>

/* The most that one hypercall answers. */
#define ASKED XEN_DSM_MAX_PAGE_OPS

/* 1: there are *count pages among those asked for; 0: no slice; -1. */
static int count(xc_interface *xch, uint32_t domid, xen_dsm_page_op_t *ops,
                 unsigned int nr, unsigned long *pages)
{
    unsigned int i;

    if ( xc_dsm_page(xch, domid, ops, nr) )
        /* ENOSYS: a hypervisor without DSM.  ENODEV: it is not on. */
        return errno == ENOSYS || errno == ENODEV ? 0 : -1;

    for ( i = 0; i < nr; i++ )
        if ( !ops[i].rc && ops[i].state != XEN_DSM_STATE_HOLE )
            ++*pages;

    return 1;
}

int xc_core_dsm_nr_pages(xc_interface *xch, uint32_t domid,
                         const xc_core_memory_map_t *map, unsigned int nr_map,
                         unsigned long *nr_pages)
{
    xen_dsm_page_op_t ops[ASKED];
    unsigned long pages = 0;
    unsigned int i, nr = 0;
    int rc = 1;

    for ( i = 0; i < nr_map; i++ )
    {
        uint64_t gfn = map[i].addr >> PAGE_SHIFT;
        uint64_t end = gfn + (map[i].size >> PAGE_SHIFT);

        for ( ; gfn < end && rc > 0; gfn++ )
        {
            if ( !xc_core_arch_gpfn_may_present(NULL, gfn) )
                continue;

            ops[nr++] = (xen_dsm_page_op_t){
                .gfn = gfn,
                .op = XEN_DSM_QUERY,
            };
            if ( nr == ASKED )
            {
                rc = count(xch, domid, ops, nr, &pages);
                nr = 0;
            }
        }
    }
    if ( nr && rc > 0 )
        rc = count(xch, domid, ops, nr, &pages);

    if ( rc < 0 )
        PERROR("Could not count the pages of dom%u", domid);
    else if ( rc > 0 && pages > *nr_pages )
        *nr_pages = pages;

    return rc < 0 ? -1 : 0;
}
