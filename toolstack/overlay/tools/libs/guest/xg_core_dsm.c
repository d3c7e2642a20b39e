/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Which pages a core file of a guest with distributed shared memory has:
 * xg_core_dsm.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "xg_private.h"
#include "xg_core_dsm.h"

#include <xenctrl_dsm.h>

/* The most that one hypercall answers. */
#define ASKED XEN_DSM_MAX_PAGE_OPS

/* Areas of pages, in order, of which none touches another. */
struct areas {
    xc_core_memory_map_t *map;
    unsigned int nr, room;
    unsigned long pages;
};

static int add_page(struct areas *areas, uint64_t gfn)
{
    uint64_t addr = gfn << PAGE_SHIFT;
    xc_core_memory_map_t *last = areas->nr ? &areas->map[areas->nr - 1] : NULL;

    if ( last && last->addr + last->size == addr )
        last->size += PAGE_SIZE;
    else
    {
        if ( areas->nr == areas->room )
        {
            unsigned int room = areas->room ? 2 * areas->room : 16;
            xc_core_memory_map_t *map = realloc(areas->map,
                                                room * sizeof(*map));

            if ( !map )
                return -1;
            areas->map = map;
            areas->room = room;
        }
        areas->map[areas->nr++] = (xc_core_memory_map_t){
            .addr = addr,
            .size = PAGE_SIZE,
        };
    }
    areas->pages++;

    return 0;
}

/* 1: the pages among those asked for are added; 0: no slice; -1. */
static int add_pages(xc_interface *xch, uint32_t domid, xen_dsm_page_op_t *ops,
                     unsigned int nr, struct areas *areas)
{
    unsigned int i;

    if ( xc_dsm_page(xch, domid, ops, nr) )
        /* ENOSYS: a hypervisor without DSM.  ENODEV: it is not on. */
        return errno == ENOSYS || errno == ENODEV ? 0 : -1;

    for ( i = 0; i < nr; i++ )
        if ( !ops[i].rc && ops[i].state != XEN_DSM_STATE_HOLE &&
             add_page(areas, ops[i].gfn) )
            return -1;

    return 1;
}

/*
 * Where the guest can have memory: 1, with areas in *map from malloc(); 0: it
 * is not known; -1.  What is not mapped here has no place in Xen's own number
 * of frames, and memory of other hosts is not mapped here until it is used.
 */
static int memory_of(xc_interface *xch, uint32_t domid,
                     xc_core_memory_map_t **map, unsigned int *nr_map)
{
    uint32_t nr_vnodes = 0, nr_ranges = 0, nr_vcpus = 0, i;
    xen_vmemrange_t *ranges;
    unsigned int *distances, *vnodes;
    int rc;

    if ( !xc_domain_getvnuma(xch, domid, &nr_vnodes, &nr_ranges, &nr_vcpus,
                             NULL, NULL, NULL) )
        return 0;
    if ( errno != ENOBUFS )
        return errno == EOPNOTSUPP ? 0 : -1;

    ranges = calloc(nr_ranges, sizeof(*ranges));
    distances = calloc((size_t)nr_vnodes * nr_vnodes, sizeof(*distances));
    vnodes = calloc(nr_vcpus, sizeof(*vnodes));
    *map = calloc(nr_ranges, sizeof(**map));
    rc = ranges && distances && vnodes && *map ? 1 : -1;

    if ( rc > 0 && xc_domain_getvnuma(xch, domid, &nr_vnodes, &nr_ranges,
                                      &nr_vcpus, ranges, distances, vnodes) )
        rc = -1;
    for ( i = 0; rc > 0 && i < nr_ranges; i++ )
        (*map)[i] = (xc_core_memory_map_t){
            .addr = ranges[i].start,
            .size = ranges[i].end - ranges[i].start,
        };
    *nr_map = nr_ranges;

    free(vnodes);
    free(distances);
    free(ranges);
    if ( rc < 0 )
    {
        free(*map);
        *map = NULL;
    }

    return rc;
}

/* 1: all pages in these areas are added; 0: no slice; -1. */
static int find_pages(xc_interface *xch, uint32_t domid,
                      const xc_core_memory_map_t *map, unsigned int nr_map,
                      struct areas *areas)
{
    xen_dsm_page_op_t ops[ASKED];
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
                rc = add_pages(xch, domid, ops, nr, areas);
                nr = 0;
            }
        }
    }
    if ( nr && rc > 0 )
        rc = add_pages(xch, domid, ops, nr, areas);

    return rc;
}

int xc_core_dsm_map(xc_interface *xch, uint32_t domid,
                    xc_core_memory_map_t **map, unsigned int *nr_map,
                    unsigned long *nr_pages)
{
    xc_core_memory_map_t *memory = NULL;
    struct areas areas = { 0 };
    unsigned int nr = 0;
    int rc = memory_of(xch, domid, &memory, &nr);

    if ( rc > 0 )
        rc = find_pages(xch, domid, memory, nr, &areas);
    else if ( !rc )
        rc = find_pages(xch, domid, *map, *nr_map, &areas);
    free(memory);

    if ( rc > 0 && areas.pages )
    {
        free(*map);
        *map = areas.map;
        *nr_map = areas.nr;
        *nr_pages = areas.pages;

        return 0;
    }

    if ( rc < 0 )
        PERROR("Could not find the pages of dom%u", domid);
    free(areas.map);

    return rc < 0 ? -1 : 0;
}
