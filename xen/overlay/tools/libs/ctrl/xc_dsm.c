/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * xc_dsm.c
 *
 * Distributed shared memory: pages of a guest that are on several hosts.
 * What each command does is in xen/dsm.h.
 */

#include "xc_private.h"
#include <xenctrl_dsm.h>

static int dsm_memop(xc_interface *xch, uint32_t domid, unsigned int cmd,
                     struct xen_dsm_op *op)
{
    op->version = XEN_DSM_INTERFACE_VERSION;
    op->domid = domid;
    op->cmd = cmd;

    return xc_memory_op(xch, XENMEM_dsm_op, op, sizeof(*op)) ? -1 : 0;
}

int xc_dsm_enable(xc_interface *xch, uint32_t domid, xen_dsm_range_t *ranges,
                  unsigned int nr_ranges, unsigned int slice,
                  unsigned int nr_slices, evtchn_port_t *port,
                  unsigned int *refused)
{
    DECLARE_HYPERCALL_BOUNCE(ranges, nr_ranges * sizeof(*ranges),
                             XC_HYPERCALL_BUFFER_BOUNCE_IN);
    struct xen_dsm_op op = {
        .u.enable = {
            .nr_ranges = nr_ranges,
            .slice = slice,
            .nr_slices = nr_slices,
        },
    };
    int rc;

    *refused = 0;
    if ( slice > UINT16_MAX || nr_slices > UINT16_MAX )
    {
        errno = EINVAL;
        return -1;
    }
    if ( xc_hypercall_bounce_pre(xch, ranges) )
    {
        PERROR("Could not bounce memory for XEN_DSM_ENABLE");
        return -1;
    }
    set_xen_guest_handle(op.u.enable.ranges, ranges);

    rc = dsm_memop(xch, domid, XEN_DSM_ENABLE, &op);

    xc_hypercall_bounce_post(xch, ranges);
    *refused = op.u.enable.refused;
    *port = op.u.enable.port;

    return rc;
}

const char *xc_dsm_refusal(unsigned int refused)
{
    static const char *const why[] = {
        [XEN_DSM_REFUSED_NOT_HAP] =
            "the domain does not use hardware assisted paging",
        [XEN_DSM_REFUSED_RUNNING] =
            "the domain has run already: switch DSM on while it is created",
        [XEN_DSM_REFUSED_NO_VCPU] = "the domain has no vCPU yet",
        [XEN_DSM_REFUSED_POD] =
            "the domain is populated on demand: maxmem must equal memory",
        [XEN_DSM_REFUSED_PASSTHROUGH] =
            "the domain uses an IOMMU: no passthrough with DSM",
        [XEN_DSM_REFUSED_LOG_DIRTY] = "the domain is in log-dirty mode",
        [XEN_DSM_REFUSED_ALTP2M] = "the domain uses altp2m",
        [XEN_DSM_REFUSED_NESTED] =
            "the domain may use nested virtualisation",
        [XEN_DSM_REFUSED_PAGING] = "a pager is connected to the domain",
        [XEN_DSM_REFUSED_SHARING] = "the domain uses memory sharing",
        [XEN_DSM_REFUSED_VIRIDIAN] =
            "the domain has viridian enlightenments",
        [XEN_DSM_REFUSED_HARDWARE_DOMAIN] = "it is the hardware domain",
        [XEN_DSM_REFUSED_SLICES] =
            "the number of slices, or of this one, is none",
        [XEN_DSM_REFUSED_RESTORED] = "the domain was migrated or restored",
        [XEN_DSM_REFUSED_FIRMWARE] =
            "the domain has emulated devices, so firmware of 32 bits: only PVH",
        [XEN_DSM_REFUSED_MONITOR] =
            "the domain's memory accesses are monitored, or restricted",
    };

    if ( refused >= sizeof(why) / sizeof(why[0]) || !why[refused] )
        return "for a reason that this library does not know";

    return why[refused];
}

int xc_dsm_page(xc_interface *xch, uint32_t domid, xen_dsm_page_op_t *ops,
                unsigned int nr)
{
    DECLARE_HYPERCALL_BOUNCE(ops, nr * sizeof(*ops),
                             XC_HYPERCALL_BUFFER_BOUNCE_BOTH);
    struct xen_dsm_op op = { .u.page.nr = nr };
    int rc;

    if ( xc_hypercall_bounce_pre(xch, ops) )
    {
        PERROR("Could not bounce memory for XEN_DSM_PAGE");
        return -1;
    }
    set_xen_guest_handle(op.u.page.ops, ops);

    rc = dsm_memop(xch, domid, XEN_DSM_PAGE, &op);

    xc_hypercall_bounce_post(xch, ops);

    return rc;
}

void *xc_dsm_alloc_pages(xc_interface *xch, unsigned int nr)
{
    return xencall_alloc_buffer_pages(xch->xcall, nr);
}

void xc_dsm_free_pages(xc_interface *xch, void *pages, unsigned int nr)
{
    xencall_free_buffer_pages(xch->xcall, pages, nr);
}

void xc_dsm_set_buffer(xen_dsm_page_op_t *op, void *page)
{
    set_xen_guest_handle_raw(op->buf, page);
}

static int dsm_pool(xc_interface *xch, uint32_t domid, unsigned int cmd,
                    uint64_t nr, uint64_t *done)
{
    struct xen_dsm_op op = { .u.pool.nr = nr };
    int rc = dsm_memop(xch, domid, cmd, &op);

    *done = op.u.pool.done;

    return rc;
}

int xc_dsm_pool_add(xc_interface *xch, uint32_t domid, uint64_t nr,
                    uint64_t *done)
{
    return dsm_pool(xch, domid, XEN_DSM_POOL_ADD, nr, done);
}

int xc_dsm_pool_del(xc_interface *xch, uint32_t domid, uint64_t nr,
                    uint64_t *done)
{
    return dsm_pool(xch, domid, XEN_DSM_POOL_DEL, nr, done);
}

static int dsm_frames(xc_interface *xch, uint32_t domid, unsigned int cmd,
                      uint64_t first, uint64_t nr, uint64_t *done)
{
    struct xen_dsm_op op = { .u.frames = { .first = first, .nr = nr } };
    int rc = dsm_memop(xch, domid, cmd, &op);

    *done = op.u.frames.done;

    return rc;
}

int xc_dsm_away(xc_interface *xch, uint32_t domid, uint64_t first, uint64_t nr,
                uint64_t *done)
{
    return dsm_frames(xch, domid, XEN_DSM_AWAY, first, nr, done);
}

int xc_dsm_drop_range(xc_interface *xch, uint32_t domid, uint64_t first,
                      uint64_t nr, uint64_t *done)
{
    return dsm_frames(xch, domid, XEN_DSM_DROP_RANGE, first, nr, done);
}

int xc_dsm_merge(xc_interface *xch, uint32_t domid, uint64_t first)
{
    uint64_t done;

    return dsm_frames(xch, domid, XEN_DSM_MERGE, first, XEN_DSM_MERGE_FRAMES,
                      &done);
}

int xc_dsm_place(xc_interface *xch, uint32_t domid, uint32_t vcpu,
                 unsigned int slice, uint64_t *info)
{
    struct xen_dsm_op op = { .u.place = { .vcpu = vcpu, .slice = slice } };
    int rc;

    if ( slice >= XEN_DSM_MAX_SLICES )
    {
        errno = EINVAL;
        return -1;
    }

    rc = dsm_memop(xch, domid, XEN_DSM_PLACE, &op);
    if ( info )
        *info = op.u.place.info;

    return rc;
}

int xc_dsm_send(xc_interface *xch, uint32_t domid,
                const xen_dsm_vcpu_event_t *event)
{
    struct xen_dsm_op op = { .u.event = *event };

    return dsm_memop(xch, domid, XEN_DSM_SEND, &op);
}

int xc_dsm_call(xc_interface *xch, uint32_t domid, xen_dsm_call_t *call)
{
    struct xen_dsm_op op = { .u.call = *call };
    int rc = dsm_memop(xch, domid, XEN_DSM_CALL, &op);

    *call = op.u.call;

    return rc;
}

int xc_dsm_reply(xc_interface *xch, uint32_t domid, uint32_t vcpu,
                 uint64_t cookie, const xen_dsm_call_t *call)
{
    struct xen_dsm_op op = {
        .u.reply = { .vcpu = vcpu, .rc = call->rc, .cookie = cookie },
    };

    memcpy(op.u.reply.arg, call->arg, sizeof(op.u.reply.arg));

    return dsm_memop(xch, domid, XEN_DSM_REPLY, &op);
}

int xc_dsm_send_ports(xc_interface *xch, uint32_t domid,
                      const xen_dsm_ports_t *ports)
{
    struct xen_dsm_op op = { .u.ports = *ports };

    return dsm_memop(xch, domid, XEN_DSM_SEND_PORTS, &op);
}

int xc_dsm_do_access(xc_interface *xch, uint32_t domid,
                     xen_dsm_access_t *access)
{
    struct xen_dsm_op op = { .u.access = *access };
    int rc = dsm_memop(xch, domid, XEN_DSM_DO_ACCESS, &op);

    *access = op.u.access;

    return rc;
}

int xc_dsm_access_done(xc_interface *xch, uint32_t domid,
                       const xen_dsm_access_done_t *done)
{
    struct xen_dsm_op op = { .u.access_done = *done };

    return dsm_memop(xch, domid, XEN_DSM_ACCESS_DONE, &op);
}

int xc_dsm_shared_info(xc_interface *xch, uint32_t domid, uint64_t gfn)
{
    struct xen_dsm_op op = { .u.shared_info.gfn = gfn };

    return dsm_memop(xch, domid, XEN_DSM_SHARED_INFO, &op);
}

int xc_dsm_get_time(xc_interface *xch, uint32_t domid, xen_dsm_time_t *time)
{
    struct xen_dsm_op op = {};
    int rc = dsm_memop(xch, domid, XEN_DSM_GET_TIME, &op);

    *time = op.u.time;

    return rc;
}

int xc_dsm_set_time(xc_interface *xch, uint32_t domid,
                    const xen_dsm_time_t *time)
{
    struct xen_dsm_op op = { .u.time = *time };

    return dsm_memop(xch, domid, XEN_DSM_SET_TIME, &op);
}

int xc_dsm_get_tsc(xc_interface *xch, uint32_t domid, uint64_t *offset)
{
    struct xen_dsm_op op = {};
    int rc = dsm_memop(xch, domid, XEN_DSM_GET_TSC, &op);

    *offset = op.u.tsc.offset;

    return rc;
}

int xc_dsm_set_tsc(xc_interface *xch, uint32_t domid, uint64_t offset)
{
    struct xen_dsm_op op = { .u.tsc.offset = offset };

    return dsm_memop(xch, domid, XEN_DSM_SET_TSC, &op);
}

int xc_dsm_jump(xc_interface *xch, uint32_t domid, uint64_t ticks)
{
    struct xen_dsm_op op = { .u.jump.ticks = ticks };

    return dsm_memop(xch, domid, XEN_DSM_JUMP, &op);
}

int xc_dsm_flush(xc_interface *xch, uint32_t domid)
{
    struct xen_dsm_op op = {};

    return dsm_memop(xch, domid, XEN_DSM_FLUSH, &op);
}

int xc_dsm_flush_all(xc_interface *xch, uint32_t domid)
{
    struct xen_dsm_op op = { .u.flush.flags = XEN_DSM_FLUSH_ALL };

    return dsm_memop(xch, domid, XEN_DSM_FLUSH, &op);
}

int xc_dsm_keepalive(xc_interface *xch, uint32_t domid, unsigned int timeout_ms)
{
    struct xen_dsm_op op = { .u.keepalive.timeout_ms = timeout_ms };

    return dsm_memop(xch, domid, XEN_DSM_KEEPALIVE, &op);
}

int xc_dsm_stats(xc_interface *xch, uint32_t domid, xen_dsm_stats_t *stats)
{
    DECLARE_HYPERCALL_BOUNCE(stats, sizeof(*stats),
                             XC_HYPERCALL_BUFFER_BOUNCE_OUT);
    struct xen_dsm_op op = {};
    int rc;

    if ( xc_hypercall_bounce_pre(xch, stats) )
    {
        PERROR("Could not bounce memory for XEN_DSM_STATS");
        return -1;
    }
    set_xen_guest_handle(op.u.stats, stats);

    rc = dsm_memop(xch, domid, XEN_DSM_STATS, &op);

    xc_hypercall_bounce_post(xch, stats);

    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
