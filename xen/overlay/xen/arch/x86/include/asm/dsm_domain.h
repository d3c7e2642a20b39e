/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What DSM knows of a domain.  For mm/dsm.c and hvm/dsm_hypercall.c only.
 */
#ifndef __ASM_X86_DSM_DOMAIN_H__
#define __ASM_X86_DSM_DOMAIN_H__

#include <xen/mm-frame.h>
#include <xen/spinlock.h>
#include <xen/time.h>
#include <xen/timer.h>

#include <public/dsm.h>

/* Misses of other domains that were reported and not answered. */
#define DSM_FOREIGN 64

struct dsm_range {
    unsigned long first, nr;    /* guest frames */
    /* Two bits for each: see mm/dsm.c. */
    unsigned long *away;        /* its page is on another host */
    unsigned long *elsewhere;   /* it is homed on another slice */
};

struct dsm_vcpu {
    /* Protected by dsm->lock. */
    unsigned long gfn;          /* what it waits for */
    unsigned long rip;
    s_time_t since;
    uint8_t want;               /* XEN_DSM_WANT_* */
    bool waiting;
    bool unsent;                /* the ring had no room for it */
    bool by_xen;
    /* Written and read by that vCPU only. */
    bool in_hcall;              /* it is counted in dsm->hcalls */
    bool hcall_retries;         /* the hypercall may miss: its caller retries */
    unsigned int hcall;
};

struct dsm_foreign {
    unsigned long gfn;
    s_time_t since;
    unsigned int want;          /* 0: free */
};

struct dsm_domain {
    /* Fixed by ENABLE. */
    unsigned int slice, nr_slices;
    unsigned int nr_ranges;
    struct dsm_range ranges[XEN_DSM_MAX_RANGES];
    evtchn_port_t port;
    unsigned int ring_frames, ring_nr;

    /* The outer lock: one page operation at a time. */
    spinlock_t ops_lock;
    mfn_t pool;                 /* frames without a page */
    unsigned long pooled;
    unsigned long reserved;     /* of these, for pages homed here, state I */
    unsigned long added;        /* by POOL_ADD, less POOL_DEL */

    /* The gate between hypercalls and operations that take rights away. */
    atomic_t hcalls;
    bool closed;

    bool dead;                  /* written with both locks */

    /* The inner lock: who waits. */
    spinlock_t lock;
    struct dsm_vcpu *vcpu;      /* d->max_vcpus of them */
    unsigned int nr_waiting;
    struct dsm_foreign foreign[DSM_FOREIGN];
    struct page_info *ring_pg;
    struct xen_dsm_ring *ring;
    struct xen_dsm_ring_entry *entries;
    uint32_t prod;
    struct timer timer;
    unsigned int timeout_ms;
    bool paused;                /* by the timer */

    struct xen_dsm_stats stats;
};

#endif /* __ASM_X86_DSM_DOMAIN_H__ */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
