/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory, as far as common code meets it.
 */
#ifndef XEN_DSM_H
#define XEN_DSM_H

#include <xen/errno.h>
#include <xen/mm-frame.h>
#include <xen/time.h>

#include <public/dsm.h>

#ifdef CONFIG_DSM

#include <asm/dsm.h>

#else /* !CONFIG_DSM */

struct domain;
struct page_info;

#define dsm_enabled(d) ((void)(d), false)

static inline int dsm_recall(struct domain *d, gfn_t gfn, unsigned int order)
{
    return 0;
}

static inline int dsm_may_populate(struct domain *d, gfn_t gfn,
                                   unsigned int order)
{
    return 0;
}

static inline int dsm_map_again(struct domain *d, mfn_t mfn, bool write,
                                struct page_info **page)
{
    return 0;
}

static inline unsigned int dsm_first_port(const struct domain *d,
                                          unsigned int *last)
{
    return 0;
}

static inline s_time_t dsm_host_time(const struct domain *d, s_time_t guest)
{
    return guest;
}

static inline unsigned int dsm_ring_frames(const struct domain *d)
{
    return 0;
}

static inline int dsm_acquire_ring(struct domain *d, unsigned int frame,
                                   unsigned int nr_frames, xen_pfn_t mfn_list[])
{
    return -EOPNOTSUPP;
}

#endif /* CONFIG_DSM */

#endif /* XEN_DSM_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
