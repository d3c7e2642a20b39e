/* SPDX-License-Identifier: GPL-2.0-only */
/* As much of libxenctrl as free-pages.c uses; host.c plays the host. */
#ifndef FAKE_HEAP_XENCTRL_H
#define FAKE_HEAP_XENCTRL_H

#include <stdint.h>

#define XC_PAGE_SIZE 4096
#define XEN_INVALID_MEM_SZ (~0ULL)
#define XEN_DOMINF_dying 1U

typedef struct fake_handle xc_interface;
typedef struct { uint64_t memsize, memfree; } xc_meminfo_t;
typedef struct { uint32_t flags, domain; } xc_domaininfo_t;
typedef uint8_t *xc_nodemap_t;

xc_interface *xc_interface_open(void *logger, void *dombuild_logger, unsigned int flags);
int xc_interface_close(xc_interface *xch);
int xc_domain_getinfolist(xc_interface *xch, uint32_t first, unsigned int max, xc_domaininfo_t *info);
int xc_numainfo(xc_interface *xch, unsigned int *max_nodes, xc_meminfo_t *meminfo, uint32_t *distance);
xc_nodemap_t xc_nodemap_alloc(xc_interface *xch);
int xc_domain_node_getaffinity(xc_interface *xch, uint32_t domid, xc_nodemap_t nodemap);

#endif
