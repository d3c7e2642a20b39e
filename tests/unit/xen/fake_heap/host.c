// SPDX-License-Identifier: GPL-2.0-only
/*
 * A host with nodes 0 and 2, of which a look sees what FAKE_LOOKS says: words
 * "FREE" or "FREE/DYING", one a look, free pages of node 2 and a dying domain.
 * The last one stays.  "x" is a hypercall that fails.  FAKE_NODES: the nodes of
 * dom0, a mask.  FAKE_MOVES: its balloon has more at each look.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xenctrl.h"

static const char *next;
static unsigned long pages, dying;

xc_interface *xc_interface_open(void *logger, void *dombuild_logger, unsigned int flags)
{
    next = getenv("FAKE_LOOKS");
    return (xc_interface *)&next;
}

int xc_interface_close(xc_interface *xch)
{
    return 0;
}

int xc_domain_getinfolist(xc_interface *xch, uint32_t first, unsigned int max, xc_domaininfo_t *info)
{
    if ( *next == 'x' )
    {
        errno = EPERM;
        return -1;
    }
    if ( *next )
    {
        char *end;

        pages = strtoul(next, &end, 10);
        dying = *end == '/' ? strtoul(end + 1, &end, 10) : 0;
        next = end + (*end == ' ');
    }
    info[0].flags = 0;
    info[0].domain = 0;
    info[1].flags = XEN_DOMINF_dying | 4;
    info[1].domain = dying;
    return dying ? 2 : 1;
}

int xc_numainfo(xc_interface *xch, unsigned int *max_nodes, xc_meminfo_t *meminfo, uint32_t *distance)
{
    static unsigned int kb;

    if ( getenv("FAKE_MOVES") )
    {
        FILE *f = fopen(BALLOON "/low_kb", "w");

        if ( !f || fprintf(f, "%u\n", kb += 4) < 0 || fclose(f) )
            return -1;
    }
    *max_nodes = 3;
    meminfo[0].memsize = meminfo[2].memsize = 1ULL << 40;
    meminfo[0].memfree = (1ULL << 32) * XC_PAGE_SIZE;
    meminfo[1].memsize = meminfo[1].memfree = XEN_INVALID_MEM_SZ;
    meminfo[2].memfree = pages * XC_PAGE_SIZE;
    return 0;
}

xc_nodemap_t xc_nodemap_alloc(xc_interface *xch)
{
    return calloc(1, 1);
}

int xc_domain_node_getaffinity(xc_interface *xch, uint32_t domid, xc_nodemap_t nodemap)
{
    nodemap[0] = strtoul(getenv("FAKE_NODES"), NULL, 0);
    return 0;
}
