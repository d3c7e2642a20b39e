/* SPDX-License-Identifier: GPL-2.0 */
/* What xg_core_dsm.c needs of libxenguest; test_core_dsm.c has the functions. */
#ifndef FAKE_XG_PRIVATE_H
#define FAKE_XG_PRIVATE_H

#include <stdint.h>
#include <stdio.h>

#define PAGE_SHIFT 12
#define PAGE_SIZE (1UL << PAGE_SHIFT)
#define PERROR(words, ...) fprintf(stderr, "# " words "\n", __VA_ARGS__)

typedef struct xc_interface_core xc_interface;

typedef struct vmemrange {
    uint64_t start, end;
    unsigned int flags;
    unsigned int nid;
} xen_vmemrange_t;

int xc_domain_getvnuma(xc_interface *xch, uint32_t domid, uint32_t *nr_vnodes,
                       uint32_t *nr_vmemranges, uint32_t *nr_vcpus,
                       xen_vmemrange_t *vmemrange, unsigned int *vdistance,
                       unsigned int *vcpu_to_vnode);

#endif
