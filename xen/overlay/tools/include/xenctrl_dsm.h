/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Distributed shared memory, for its daemon and for tests.
 *
 * What a command means, and each error of it, is in xen/dsm.h.  All functions
 * here return 0, or -1 with errno.  None is cancelled, and none blocks for
 * longer than a hypercall takes; those on many frames let others run meanwhile.
 * One handle may be used by one thread at a time.
 */
#ifndef XENCTRL_DSM_H
#define XENCTRL_DSM_H

#include <xenctrl.h>
#include <xen/dsm.h>

/*
 * Switch DSM on for a domain that has not run yet.
 *
 * nr_ranges: 1..XEN_DSM_MAX_RANGES, sorted, without overlap.
 * *port:     an unbound event channel of the domain, for the caller's domain;
 *            with EEXIST that of the daemon that did this before.
 * *refused:  with EOPNOTSUPP, XEN_DSM_REFUSED_*; see xc_dsm_refusal().
 */
int xc_dsm_enable(xc_interface *xch, uint32_t domid, xen_dsm_range_t *ranges,
                  unsigned int nr_ranges, unsigned int slice,
                  unsigned int nr_slices, evtchn_port_t *port,
                  unsigned int *refused);

/* Why, in words. */
const char *xc_dsm_refusal(unsigned int refused);

/*
 * Up to XEN_DSM_MAX_PAGE_OPS page operations, in order.
 *
 * Each has its own result in ops[i].rc.  Data is in pages of
 * xc_dsm_alloc_pages(): other memory can be moved by the kernel meanwhile, and
 * gives -EFAULT then.
 */
int xc_dsm_page(xc_interface *xch, uint32_t domid, xen_dsm_page_op_t *ops,
                unsigned int nr);
void xc_dsm_set_buffer(xen_dsm_page_op_t *op, void *page);
void *xc_dsm_alloc_pages(xc_interface *xch, unsigned int nr);
void xc_dsm_free_pages(xc_interface *xch, void *pages, unsigned int nr);

/*
 * nr frames more, or fewer, for pages that are homed on another slice.
 *
 * *done: how many it were, with an error, too.  Not NULL.
 */
int xc_dsm_pool_add(xc_interface *xch, uint32_t domid, uint64_t nr,
                    uint64_t *done);
int xc_dsm_pool_del(xc_interface *xch, uint32_t domid, uint64_t nr,
                    uint64_t *done);

/*
 * Holes become pages that are homed on another slice, state I; and back.
 *
 * *done: how many frames from first on are finished, with an error, too: then
 *        first + *done is the one that is in the way.  Not NULL.
 */
int xc_dsm_away(xc_interface *xch, uint32_t domid, uint64_t first, uint64_t nr,
                uint64_t *done);
int xc_dsm_drop_range(xc_interface *xch, uint32_t domid, uint64_t first,
                      uint64_t nr, uint64_t *done);

/*
 * XEN_DSM_MERGE_FRAMES pages from first on, a multiple of that, which are all
 * here and homed here, become one of 2 MiB.  The domain is paused for a moment.
 */
int xc_dsm_merge(xc_interface *xch, uint32_t domid, uint64_t first);

/*
 * A vCPU runs in this slice from now on; said to each slice.  *info is where
 * its vcpu_info was here, or 0; NULL if nobody asks.
 */
int xc_dsm_place(xc_interface *xch, uint32_t domid, uint32_t vcpu,
                 unsigned int slice, uint64_t *info);

/*
 * What another slice's vCPU sent to one that runs here: what an entry
 * XEN_DSM_VCPU_EVENT of that slice's ring says.
 */
int xc_dsm_send(xc_interface *xch, uint32_t domid,
                const xen_dsm_vcpu_event_t *event);

/*
 * A hypercall about a vCPU that runs here, or a port of this slice: what an
 * entry XEN_DSM_HCALL of another slice's ring says.  call->rc is its result,
 * and call->arg what it has left there.  Then, there, the same to who waits for
 * it, with the cookie of the entry.
 */
int xc_dsm_call(xc_interface *xch, uint32_t domid, xen_dsm_call_t *call);
int xc_dsm_reply(xc_interface *xch, uint32_t domid, uint32_t vcpu,
                 uint64_t cookie, const xen_dsm_call_t *call);

/* Events to ports: what an entry XEN_DSM_PORT_EVENT of another ring says. */
int xc_dsm_send_ports(xc_interface *xch, uint32_t domid,
                      const xen_dsm_ports_t *ports);

/*
 * What another slice's vCPU does with a page that is in state M here: what an
 * entry XEN_DSM_ACCESS of that slice's ring says.  Then, there, what was found
 * to who waits for it, with the cookie of the entry, or that it has to try
 * again.
 */
int xc_dsm_do_access(xc_interface *xch, uint32_t domid,
                     xen_dsm_access_t *access);
int xc_dsm_access_done(xc_interface *xch, uint32_t domid,
                       const xen_dsm_access_done_t *done);

/* Where the guest has its shared_info; not for slice 0, who knows it. */
int xc_dsm_shared_info(xc_interface *xch, uint32_t domid, uint64_t gfn);

/* The guest's time, in all slices, before the domain is unpaused. */
int xc_dsm_get_time(xc_interface *xch, uint32_t domid, xen_dsm_time_t *time);
int xc_dsm_set_time(xc_interface *xch, uint32_t domid,
                    const xen_dsm_time_t *time);

/* The guest's TSC less the host's, modulo 2^64. */
int xc_dsm_get_tsc(xc_interface *xch, uint32_t domid, uint64_t *offset);
int xc_dsm_set_tsc(xc_interface *xch, uint32_t domid, uint64_t offset);

/*
 * Ahead with the guest's TSC in this slice, by a millisecond at most.  The
 * domain is paused for a moment.
 */
int xc_dsm_jump(xc_interface *xch, uint32_t domid, uint64_t ticks);

/* After a full ring was drained. */
int xc_dsm_flush(xc_interface *xch, uint32_t domid);
/* For a daemon that starts again: what another one has read as well. */
int xc_dsm_flush_all(xc_interface *xch, uint32_t domid);

/* Alive, and again within timeout_ms, 0: never again. */
int xc_dsm_keepalive(xc_interface *xch, uint32_t domid,
                     unsigned int timeout_ms);

int xc_dsm_stats(xc_interface *xch, uint32_t domid, xen_dsm_stats_t *stats);

#endif /* XENCTRL_DSM_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
