/* SPDX-License-Identifier: GPL-2.0-only */
/* As much of Xen's libraries as test-mem-range.c uses; host.c plays the host. */
#ifndef FAKE_XENCTRL_H
#define FAKE_XENCTRL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct fake_handle xc_interface;
typedef unsigned long xen_pfn_t;
typedef struct { char name[80]; unsigned int nr_vals; } xc_perfc_desc_t;
typedef unsigned int xc_perfc_val_t;
typedef struct { unsigned long tot_pages; } xc_domaininfo_t;
typedef struct { uint64_t free_pages; } xc_physinfo_t;

#define XEN_DOMCTL_CDF_hvm 1U
#define XEN_DOMCTL_CDF_hap 2U
#define XEN_DOMCTL_GRANT_version(v) (v)
#define XEN_X86_EMU_LAPIC 1U
struct xen_domctl_createdomain {
    unsigned int flags, max_vcpus, max_grant_frames, grant_opts;
    struct { unsigned int emulation_flags; } arch;
};

#define DECLARE_HYPERCALL_BUFFER(type, name) type *name = NULL
#define xc_hypercall_buffer_alloc(xch, name, size) calloc(1, size)
#define xc_hypercall_buffer_free(xch, name) free(name)
#define HYPERCALL_BUFFER(name) (name)

xc_interface *xc_interface_open(void *logger, void *dombuild, unsigned int flags);
int xc_perfc_query_number(xc_interface *xch, int *nr_desc, int *nr_val);
int xc_perfc_query(xc_interface *xch, xc_perfc_desc_t *desc, xc_perfc_val_t *val);
int xc_domain_create(xc_interface *xch, uint32_t *domid, struct xen_domctl_createdomain *config);
int xc_domain_destroy(xc_interface *xch, uint32_t domid);
int xc_domain_max_vcpus(xc_interface *xch, uint32_t domid, unsigned int max);
int xc_domain_setmaxmem(xc_interface *xch, uint32_t domid, uint64_t kb);
int xc_set_paging_mempool_size(xc_interface *xch, uint32_t domid, uint64_t size);
int xc_domain_getinfo_single(xc_interface *xch, uint32_t domid, xc_domaininfo_t *info);
int xc_physinfo(xc_interface *xch, xc_physinfo_t *info);
int xc_domain_populate_physmap(xc_interface *xch, uint32_t domid, unsigned long nr, unsigned int order,
                               unsigned int flags, xen_pfn_t *list);
int xc_domain_decrease_reservation(xc_interface *xch, uint32_t domid, unsigned long nr, unsigned int order,
                                   xen_pfn_t *list);

#endif
