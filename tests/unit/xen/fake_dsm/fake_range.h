/* SPDX-License-Identifier: GPL-2.0-only */
/* What common/mem_range.c calls besides, for one guest of fake_dsm.h. */
#ifndef FAKE_RANGE_H
#define FAKE_RANGE_H

#include "fake_dsm.h"
#include "fake_hcall.h"

#define __read_mostly
#define boolean_runtime_param(name, var)
#define perfc_incr(name) ((void)0)
#define perfc_add(name, nr) ((void)(nr))
#define PAGE_ORDER_1G 6         /* 8 of 8 frames: all of the guest */
#define hap_has_1gb true
#undef XEN_GUEST_HANDLE
#define XEN_GUEST_HANDLE(type) handle_##type
DEFINE_XEN_GUEST_HANDLE(xen_pfn_t);
#define __copy_from_guest_offset copy_from_guest_offset
#define tb_init_done false
#define page_to_nid(pg) 0
#define ioreq_request_mapcache_invalidate(d) ((void)(d))

mfn_t get_gfn_type_access(struct p2m_domain *p2m, unsigned long gfn,
                          p2m_type_t *t, p2m_access_t *a, p2m_query_t q,
                          unsigned int *order);
void put_gfn(struct domain *d, unsigned long gfn);
/* Not what fake_dsm.c has of that name, which is for MERGE. */
#define free_domheap_pages range_is_free
void range_is_free(struct page_info *pg, unsigned int order);
#define free_domheap_page(pg) free_domheap_pages(pg, 0)

#endif /* FAKE_RANGE_H */
