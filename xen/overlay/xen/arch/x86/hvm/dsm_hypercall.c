/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hypercalls of a guest with DSM: the pages they use are brought first.
 *
 * A hypercall copies its arguments, and what they point to, when it needs
 * them.  If such a page is not here the copy fails, and the guest sees
 * -EFAULT, or finds that half of the work was done.  So before a hypercall
 * runs, each page that it can reach through its arguments is looked up, with
 * the rights that it needs.  When one is missing, the vCPU waits for it and
 * executes the same instruction again.  When all are there, they stay: the
 * gate (mm/dsm.c) keeps INVAL and DOWNGRADE out until the hypercall is over.
 *
 * Every call has been looked at, and each sub-operation: what is not listed
 * below is -ENOSYS, so that a new one that keeps an address is not let in
 * unseen.
 *
 * Another vCPU can change a pointer, or a page table, between our look and
 * that of the hypercall.  Without DSM the hypercall uses the new page, or fails
 * if there is none; here it fails as well if the new page is not here: -EFAULT,
 * or -EAGAIN where it looks a frame up by number.  A guest that changes
 * nothing meanwhile never sees that, but by a mistake in this file:
 * stats.uncovered counts both (dsm_populate()).
 *
 * Sizes are upper bounds, cut at what is mapped: a page too many costs time
 * and nothing else.  A bad pointer is not our business, the hypercall fails
 * as it would without DSM.
 *
 * Some calls are answered here, because Xen would write to the area that they
 * register whenever it likes, and from contexts that cannot wait:
 *
 *   runstate areas             0, and the area is never written: it says
 *                              "running" and no time stolen.  Linux stops if
 *                              this fails.
 *   time areas, areas by       -ENOSYS, which guests have to handle: older
 *   physical address           Xen says so, too.
 *   FIFO event channels        -ENOSYS: the guest uses 2 levels, whose words
 *                              are in shared_info.
 *
 * In which slice a call is done is dsm_route.c's to say.  One that is done in
 * another slice (dsm_call.c) has its structure read here, written if anything
 * comes back in it, and nothing else brought.  What no slice can do alone is
 * -ENOSYS, too: HVMOP_flush_tlbs if vCPUs run in several of them.
 *
 * Context: the vCPU that calls, no locks held.
 */

#include <xen/event.h>
#include <xen/guest_access.h>
#include <xen/hypercall.h>
#include <xen/init.h>
#include <xen/nospec.h>
#include <xen/sched.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/dsm_route.h>
#include <asm/hvm/emulate.h>
#include <asm/hvm/hvm.h>
#include <asm/hvm/support.h>
#include <asm/p2m.h>
#include <asm/paging.h>

#include <public/event_channel.h>
#include <public/grant_table.h>
#include <public/hvm/hvm_op.h>
#include <public/memory.h>
#include <public/physdev.h>
#include <public/sched.h>
#include <public/vcpu.h>
#include <public/version.h>

/* Bytes that one argument of one call may have; more is -E2BIG. */
#define MAX_BYTES (16UL << PAGE_SHIFT)

/* What a resident_*() function says beside 0: the vCPU waits. */
#define WAITING (-ERESTART)
/* And resident() is told: there is no memory. */
#define NOWHERE (-ENXIO)
/* A structure can't be read.  No error of another slice is that (REPLY). */
#define UNREADABLE (-DSM_MAX_ERRNO - 1)

static int find_gfn(struct vcpu *v, unsigned long gfn, bool write)
{
    struct page_info *page;
    p2m_type_t t;

    page = get_page_from_gfn(v->domain, gfn, &t,
                             write ? P2M_UNSHARE : P2M_ALLOC);
    if ( page )
        put_page(page);

    if ( !p2m_is_paging(t) )
        return page ? 0 : NOWHERE;

    /* It does not come, and a copy can't be made where it is. */
    if ( dsm_is_uncached(v->domain, _gfn(gfn)) )
    {
        gprintk(XENLOG_WARNING,
                "DSM: hypercall %lu: GFN %#"PRI_gfn" stays on another host\n",
                guest_cpu_user_regs()->rax, gfn);
        return -EFAULT;
    }

    dsm_populate(v->domain, _gfn(gfn));

    return WAITING;
}

/* A frame that the call names.  If it has no memory the call says so. */
static int resident_gfn(struct vcpu *v, unsigned long gfn, bool write)
{
    int rc = find_gfn(v, gfn, write);

    return rc == NOWHERE ? 0 : rc;
}

/*
 * One page at a linear address.  The walk finds its page tables here, sets
 * accessed and dirty bits as the copy would, and has missing ones come.
 */
static int resident_page(struct vcpu *v, unsigned long addr, bool write)
{
    uint32_t pfec = PFEC_page_present | (write ? PFEC_write_access : 0);
    unsigned long gfn = paging_gva_to_gfn(v, addr, &pfec);

    if ( gfn != gfn_x(INVALID_GFN) )
        return find_gfn(v, gfn, write);

    return pfec & PFEC_page_paged ? WAITING : 0;
}

static int resident(struct vcpu *v, unsigned long addr, unsigned long bytes,
                    bool write)
{
    unsigned long last;

    if ( !addr || !bytes )
        return 0;
    if ( bytes > MAX_BYTES )
        return -E2BIG;

    last = addr + bytes - 1;
    if ( last < addr )
        return 0;

    for ( addr &= PAGE_MASK; ; addr += PAGE_SIZE )
    {
        /* What may be written can also be read-only, if it is only input. */
        int rc = resident_page(v, addr, false);

        if ( !rc && write )
            rc = resident_page(v, addr, true);
        /*
         * The copy ends there.  Each frame that was asked for in vain is kept
         * in mind until the call is made, and there is room for DSM_HOLES.
         */
        if ( rc == NOWHERE )
            return 0;
        if ( rc )
            return rc;
        if ( addr == (last & PAGE_MASK) )
            return 0;
    }
}

/* An array of nr entries.  Neither overflows: nr has 32 bits at most. */
static int resident_array(struct vcpu *v, unsigned long addr, unsigned long nr,
                          unsigned int size, bool write)
{
    if ( nr > UINT32_MAX )
        return -E2BIG;

    return resident(v, addr, nr * size, write);
}

/*
 * Look at a structure that was found resident.  False if it cannot be read:
 * then the hypercall will say so.
 */
static bool peek(void *to, unsigned long addr, unsigned int size)
{
    return hvm_copy_from_guest_linear(to, addr, size, 0, NULL) == HVMTRANS_okay;
}

#define peek_struct(v, to, addr, write) ({                              \
    int rc_ = resident(v, addr, sizeof(*(to)), write);                  \
    rc_ ?: peek(to, addr, sizeof(*(to))) ? 0 : UNREADABLE;              \
})

/* In which slice is what a call concerns?  A number of nothing: here. */
static unsigned int slice_of(const struct vcpu *v, const struct dsm_rule *rule,
                             unsigned int subject)
{
    const struct dsm_domain *dsm = v->domain->arch.dsm;
    unsigned int there;

    if ( rule->concerns == DSM_CONCERNS_VCPU )
        return subject < v->domain->max_vcpus
               ? ACCESS_ONCE(dsm->vcpu[array_index_nospec(
                     subject, v->domain->max_vcpus)].slice)
               : dsm->slice;

    /* Nobody in another slice has asked for a port yet. */
    if ( !dsm->spread )
        return dsm->slice;

    there = dsm_port_slice(subject, dsm->nr_slices);

    return there < dsm->nr_slices ? there : dsm->slice;
}

/*
 * Where is it done: here (0), or in another slice?  arg is a copy of the
 * structure at addr, which names the vCPU or the port that it concerns.  What
 * comes back of the structure is written to addr.
 */
static int route(struct vcpu *v, const struct dsm_rule *rule, unsigned long reg,
                 void *arg, unsigned long addr)
{
    const struct dsm_domain *dsm = v->domain->arch.dsm;
    unsigned int subject = dsm_rule_subject(rule, reg, arg);
    unsigned int there = slice_of(v, rule, subject);
    int rc;

    switch ( dsm_route(rule, dsm->slice, there, dsm->spread) )
    {
    case DSM_RUN:
        return 0;

    case DSM_SEND:
        dsm_forward_port(v->domain, subject);
        return 1;

    case DSM_FORWARD:
        rc = dsm_call_away(v, rule, subject, there, arg);
        if ( rc == 1 && rule->back &&
             hvm_copy_to_guest_linear(addr, arg, rule->back, 0,
                                      NULL) != HVMTRANS_okay )
            rc = -EFAULT;
        return rc;

    default:
        return -ENOSYS;
    }
}

/* ---- The calls: 0 to run, WAITING, or what to answer ---- */

/*
 * Each slice has a shared_info of its own at the frame where the guest has put
 * it: it can't move once there are several slices with vCPUs.
 */
static bool would_move_shared_info(const struct vcpu *v, unsigned long gfn,
                                   bool to)
{
    const struct domain *d = v->domain;
    unsigned long at;

    if ( !d->arch.dsm->spread )
        return false;
    at = get_gpfn_from_mfn(virt_to_mfn(d->shared_info));

    return at != INVALID_M2P_ENTRY && (at == gfn) != to;
}

static int memory_op(struct vcpu *v, unsigned long cmd, unsigned long arg)
{
    unsigned long start = cmd >> MEMOP_EXTENT_SHIFT;
    int rc;

    switch ( cmd & MEMOP_CMD_MASK )
    {
    case XENMEM_increase_reservation:
    case XENMEM_decrease_reservation:
    case XENMEM_populate_physmap:
    {
        struct xen_memory_reservation r;

        rc = peek_struct(v, &r, arg, true);
        if ( rc || r.nr_extents <= start )
            return rc;

        return resident_array(v, (unsigned long)(r.extent_start.p + start),
                              r.nr_extents - start, sizeof(*r.extent_start.p),
                              true);
    }

    case XENMEM_add_to_physmap:
    {
        struct xen_add_to_physmap a;

        /* Looked up by number: what moves, and what was at its new place. */
        rc = peek_struct(v, &a, arg, true);
        if ( !rc && would_move_shared_info(v, a.gpfn,
                                           a.space ==
                                           XENMAPSPACE_shared_info) )
            return -EBUSY;
        if ( !rc && a.space == XENMAPSPACE_gmfn )
            rc = resident_gfn(v, a.idx, true);

        return rc ?: resident_gfn(v, a.gpfn, true);
    }

    case XENMEM_add_to_physmap_batch:
    {
        struct xen_add_to_physmap_batch b;

        rc = peek_struct(v, &b, arg, true);
        if ( !rc && b.space == XENMAPSPACE_shared_info &&
             would_move_shared_info(v, gfn_x(INVALID_GFN), true) )
            return -EBUSY;
        rc = rc ?: resident_array(v, (unsigned long)b.idxs.p, b.size,
                                  sizeof(*b.idxs.p), false);
        rc = rc ?: resident_array(v, (unsigned long)b.gpfns.p, b.size,
                                  sizeof(*b.gpfns.p), false);

        return rc ?: resident_array(v, (unsigned long)b.errs.p, b.size,
                                    sizeof(*b.errs.p), true);
    }

    case XENMEM_remove_from_physmap:
    {
        struct xen_remove_from_physmap r;

        rc = peek_struct(v, &r, arg, false);
        if ( !rc && would_move_shared_info(v, r.gpfn, false) )
            return -EBUSY;

        return rc ?: resident_gfn(v, r.gpfn, true);
    }

    case XENMEM_current_reservation:
    case XENMEM_maximum_reservation:
    case XENMEM_maximum_gpfn:
        return resident(v, arg, sizeof(domid_t), false);

    case XENMEM_maximum_ram_page:
        return 0;

    case XENMEM_memory_map:
    {
        struct xen_memory_map map;

        rc = peek_struct(v, &map, arg, true);

        return rc ?: resident_array(v, (unsigned long)map.buffer.p,
                                    min(map.nr_entries, 256U),
                                    sizeof(struct e820entry), true);
    }

    case XENMEM_get_vnumainfo:
    {
        struct xen_vnuma_topology_info t;

        rc = peek_struct(v, &t, arg, true);
        rc = rc ?: resident_array(v, (unsigned long)t.vdistance.h.p,
                                  (unsigned long)min(t.nr_vnodes, 65535U) *
                                  min(t.nr_vnodes, 65535U),
                                  sizeof(*t.vdistance.h.p), true);
        rc = rc ?: resident_array(v, (unsigned long)t.vcpu_to_vnode.h.p,
                                  t.nr_vcpus, sizeof(*t.vcpu_to_vnode.h.p),
                                  true);

        return rc ?: resident_array(v, (unsigned long)t.vmemrange.h.p,
                                    t.nr_vmemranges, sizeof(*t.vmemrange.h.p),
                                    true);
    }

    default:
        return -ENOSYS;
    }
}

static int xen_version(struct vcpu *v, unsigned long cmd, unsigned long arg)
{
    switch ( (int)cmd )
    {
    case XENVER_version:
    case XENVER_pagesize:
        return 0;

    case XENVER_build_id:
    case XENVER_extraversion2:
    case XENVER_capabilities2:
    case XENVER_changeset2:
    case XENVER_commandline2:
    {
        struct xen_varbuf buf;
        int rc;

        if ( !arg )
            return 0;
        rc = peek_struct(v, &buf, arg, false);

        return rc ?: resident(v, arg, sizeof(buf) + min(buf.len, 65000U), true);
    }

    case XENVER_extraversion:
    case XENVER_compile_info:
    case XENVER_capabilities:
    case XENVER_changeset:
    case XENVER_platform_parameters:
    case XENVER_get_features:
    case XENVER_guest_handle:
    case XENVER_commandline:
        return resident(v, arg, 1024, true);

    default:
        return -ENOSYS;
    }
}

static bool any_elsewhere(const struct domain *d)
{
    unsigned int i;

    for ( i = 0; i < d->max_vcpus; i++ )
        if ( dsm_elsewhere(d->arch.dsm, i) )
            return true;

    return false;
}

static int sched_op(struct vcpu *v, unsigned long cmd, unsigned long arg)
{
    struct sched_shutdown shutdown;
    struct sched_poll poll;
    int rc;

    switch ( (int)cmd )
    {
    case SCHEDOP_yield:
    case SCHEDOP_block:
        return 0;

    case SCHEDOP_poll:
        rc = peek_struct(v, &poll, arg, false);

        return rc ?: resident_array(v, (unsigned long)poll.ports.p,
                                    min(poll.nr_ports, 128U),
                                    sizeof(*poll.ports.p), false);

    case SCHEDOP_shutdown:
        rc = peek_struct(v, &shutdown, arg, false);
        /* All slices stand still then, and only that at home is resumed. */
        if ( !rc && shutdown.reason == SHUTDOWN_suspend &&
             any_elsewhere(v->domain) )
            return -ENOSYS;
        return rc;

    case SCHEDOP_shutdown_code:
    case SCHEDOP_remote_shutdown:
    case SCHEDOP_watchdog:
        return resident(v, arg, 16, false);

    default:
        return -ENOSYS;
    }
}

static int vcpu_op(struct vcpu *v, const struct dsm_rule *rule,
                   unsigned long cmd, unsigned long vcpu, unsigned long arg)
{
    struct vcpu_register_vcpu_info info;
    int rc;

    if ( cmd == VCPUOP_register_vcpu_info )
    {
        rc = peek_struct(v, &info, arg, false);
        if ( rc == UNREADABLE )
            return -EFAULT;

        rc = rc ?: route(v, rule, vcpu, &info, arg);
        /* As of another slice, see dsm_call.c: nothing else is in its page. */
        if ( !rc && v->domain->arch.dsm->slice && info.offset )
            return -EINVAL;

        /* Mapped for good: it will be refused to the daemon. */
        return rc ?: resident_gfn(v, info.mfn, true);
    }

    rc = route(v, rule, vcpu, NULL, 0);
    if ( rc )
        return rc;

    switch ( (int)cmd )
    {

    case VCPUOP_register_runstate_memory_area:
        /* The answer is 0, but the call does not run. */
        return 1;

    case VCPUOP_register_vcpu_time_memory_area:
    case VCPUOP_register_runstate_phys_area:
    case VCPUOP_register_vcpu_time_phys_area:
        return -ENOSYS;

    case VCPUOP_initialise:
        return resident(v, arg, sizeof(struct vcpu_guest_context), false);

    case VCPUOP_up:
    case VCPUOP_down:
    case VCPUOP_is_up:
    case VCPUOP_stop_periodic_timer:
    case VCPUOP_stop_singleshot_timer:
    case VCPUOP_send_nmi:
        return 0;

    case VCPUOP_get_runstate_info:
    case VCPUOP_set_periodic_timer:
    case VCPUOP_set_singleshot_timer:
    case VCPUOP_get_physid:
        return resident(v, arg, 64, true);

    default:
        return -ENOSYS;
    }
}

static int event_channel_op(struct vcpu *v, const struct dsm_rule *rule,
                            unsigned long cmd, unsigned long arg)
{
    union {
        struct evtchn_bind_ipi ipi;
        struct evtchn_bind_virq virq;
        struct evtchn_bind_vcpu vcpu;
        struct evtchn_send send;
        struct evtchn_unmask unmask;
        struct evtchn_close close;
        struct evtchn_status status;
    } u;
    int rc;

    switch ( (int)cmd )
    {
    case EVTCHNOP_bind_ipi:
        rc = peek_struct(v, &u.ipi, arg, true);
        break;

    case EVTCHNOP_bind_virq:
        rc = peek_struct(v, &u.virq, arg, true);
        break;

    case EVTCHNOP_bind_vcpu:
        rc = peek_struct(v, &u.vcpu, arg, false);
        break;

    case EVTCHNOP_send:
        rc = peek_struct(v, &u.send, arg, false);
        break;

    case EVTCHNOP_unmask:
        rc = peek_struct(v, &u.unmask, arg, false);
        break;

    case EVTCHNOP_close:
        rc = peek_struct(v, &u.close, arg, false);
        break;

    case EVTCHNOP_status:
        rc = peek_struct(v, &u.status, arg, true);
        /* Of another domain: Xen says what is to be said to that. */
        if ( !rc && u.status.dom != DOMID_SELF )
            return 0;
        break;

    case EVTCHNOP_alloc_unbound:
    case EVTCHNOP_bind_interdomain:
    case EVTCHNOP_reset:
    case EVTCHNOP_reset_cont:
        /* The longest of the structures. */
        return resident(v, arg, 24, true);

    default:
        return -ENOSYS;
    }

    return rc ?: route(v, rule, 0, &u, arg);
}

/* Of interrupts that a guest without devices has not: Xen says so. */
static int physdev_op(struct vcpu *v, unsigned long cmd, unsigned long arg)
{
    switch ( (int)cmd )
    {
    case PHYSDEVOP_eoi:
    case PHYSDEVOP_irq_status_query:
    case PHYSDEVOP_map_pirq:
    case PHYSDEVOP_unmap_pirq:
    case PHYSDEVOP_get_free_pirq:
        return resident(v, arg, 64, true);

    default:
        return -ENOSYS;
    }
}

static int grant_table_op(struct vcpu *v, unsigned long cmd,
                          unsigned long arg, unsigned long count)
{
    struct gnttab_setup_table setup;
    unsigned int size;
    int rc;

    count = (unsigned int)count;
    switch ( (unsigned int)cmd )
    {
    case GNTTABOP_setup_table:
        if ( count != 1 )
            return -EINVAL;
        rc = peek_struct(v, &setup, arg, true);

        return rc ?: resident_array(v, (unsigned long)setup.frame_list.p,
                                    setup.nr_frames,
                                    sizeof(*setup.frame_list.p), true);

    case GNTTABOP_map_grant_ref:
        size = sizeof(struct gnttab_map_grant_ref);
        break;
    case GNTTABOP_unmap_grant_ref:
        size = sizeof(struct gnttab_unmap_grant_ref);
        break;
    case GNTTABOP_copy:
        size = sizeof(struct gnttab_copy);
        break;
    case GNTTABOP_query_size:
        size = sizeof(struct gnttab_query_size);
        break;
    case GNTTABOP_set_version:
        size = sizeof(struct gnttab_set_version);
        break;
    case GNTTABOP_get_version:
        size = sizeof(struct gnttab_get_version);
        break;
    case GNTTABOP_swap_grant_ref:
        size = sizeof(struct gnttab_swap_grant_ref);
        break;
    default:
        return -ENOSYS;
    }

    return resident_array(v, arg, count, size, true);
}

static int hvm_op(struct vcpu *v, const struct dsm_rule *rule,
                  unsigned long cmd, unsigned long arg)
{
    struct xen_hvm_evtchn_upcall_vector upcall;
    int rc;

    switch ( cmd )
    {
    case HVMOP_set_param:
    case HVMOP_get_param:
    case HVMOP_get_time:
    case HVMOP_get_mem_type:
    case HVMOP_pagetable_dying:
        return resident(v, arg, 32, true);

    case HVMOP_set_evtchn_upcall_vector:
        rc = peek_struct(v, &upcall, arg, true);

        return rc ?: route(v, rule, 0, &upcall, arg);

    case HVMOP_flush_tlbs:
        return 0;

    default:
        return -ENOSYS;
    }
}

/* The bounds above that are written as numbers. */
static void __init __maybe_unused build_assertions(void)
{
    BUILD_BUG_ON(sizeof(struct evtchn_alloc_unbound) > 24);
    BUILD_BUG_ON(sizeof(struct evtchn_bind_interdomain) > 24);
    BUILD_BUG_ON(sizeof(struct sched_watchdog) > 16);
    BUILD_BUG_ON(sizeof(struct sched_remote_shutdown) > 16);
    BUILD_BUG_ON(sizeof(struct vcpu_runstate_info) > 64);
    BUILD_BUG_ON(sizeof(struct vcpu_set_singleshot_timer) > 64);
    BUILD_BUG_ON(sizeof(struct physdev_map_pirq) > 64);
    BUILD_BUG_ON(sizeof(struct xen_hvm_param) > 32);
    BUILD_BUG_ON(sizeof(struct xen_hvm_get_mem_type) > 32);
    BUILD_BUG_ON(sizeof(xen_capabilities_info_t) > 1024);
    BUILD_BUG_ON(sizeof(xen_commandline_t) > 1024);
    /* The rules of dsm_route.c. */
    BUILD_BUG_ON(sizeof(struct vcpu_register_vcpu_info) != 16);
    BUILD_BUG_ON(sizeof(struct xen_hvm_evtchn_upcall_vector) != 8);
    BUILD_BUG_ON(offsetof(struct xen_hvm_evtchn_upcall_vector, vcpu) != 0);
    BUILD_BUG_ON(offsetof(struct evtchn_bind_ipi, vcpu) != 0);
    BUILD_BUG_ON(offsetof(struct evtchn_bind_virq, vcpu) != 4);
    BUILD_BUG_ON(offsetof(struct evtchn_bind_vcpu, vcpu) != 4);
    BUILD_BUG_ON(offsetof(struct evtchn_bind_ipi, port) != 4);
    BUILD_BUG_ON(offsetof(struct evtchn_bind_virq, port) != 8);
    BUILD_BUG_ON(offsetof(struct evtchn_send, port) != 0);
    BUILD_BUG_ON(offsetof(struct evtchn_unmask, port) != 0);
    BUILD_BUG_ON(offsetof(struct evtchn_close, port) != 0);
    BUILD_BUG_ON(offsetof(struct evtchn_status, port) != 4);
    BUILD_BUG_ON(offsetof(struct evtchn_status, status) != 8);
    BUILD_BUG_ON(sizeof(struct evtchn_bind_ipi) != 8);
    BUILD_BUG_ON(sizeof(struct evtchn_bind_virq) != 12);
    BUILD_BUG_ON(sizeof(struct evtchn_status) != 24);
}

static int prepare(struct vcpu *v, const struct cpu_user_regs *regs)
{
    unsigned long a1 = regs->rdi, a2 = regs->rsi, a3 = regs->rdx;
    const struct dsm_domain *dsm = v->domain->arch.dsm;
    const struct dsm_rule *rule = dsm_rule(regs->rax, (unsigned int)a1);

    /* About whom is asked when that is known. */
    if ( dsm_route(rule, dsm->slice, dsm->slice, dsm->spread) == DSM_REFUSE )
        return -ENOSYS;

    switch ( regs->rax )
    {
    case __HYPERVISOR_memory_op:
        return memory_op(v, a1, a2);

    case __HYPERVISOR_xen_version:
        return xen_version(v, a1, a2);

    case __HYPERVISOR_console_io:
        return resident(v, a3, (unsigned int)a2, true);

    case __HYPERVISOR_grant_table_op:
        return grant_table_op(v, a1, a2, a3);

    case __HYPERVISOR_vcpu_op:
        return vcpu_op(v, rule, a1, a2, a3);

    case __HYPERVISOR_sched_op:
        return sched_op(v, a1, a2);

    case __HYPERVISOR_event_channel_op:
        return event_channel_op(v, rule, a1, a2);

    case __HYPERVISOR_physdev_op:
        return physdev_op(v, a1, a2);

    case __HYPERVISOR_hvm_op:
        return hvm_op(v, rule, a1, a2);

    case __HYPERVISOR_set_timer_op:
        return 0;

    default:
        return -ENOSYS;
    }
}

/*
 * A vCPU of another host than the guest's home: its kernel does what nobody
 * does there.  The log's limit for what guests cause holds.
 */
static void say_refused(const struct vcpu *v, const struct cpu_user_regs *regs)
{
    if ( v->domain->arch.dsm->slice )
        gprintk(XENLOG_WARNING,
                "DSM: hypercall %lu, operation %lu, is refused on this host\n",
                regs->rax, regs->rdi);
}

enum dsm_hcall dsm_hcall_begin(struct cpu_user_regs *regs, unsigned int mode)
{
    struct vcpu *curr = current;
    struct dsm_vcpu *w = &curr->domain->arch.dsm->vcpu[curr->vcpu_id];
    unsigned int token;
    int rc;

    if ( mode != X86_MODE_64BIT )
    {
        say_refused(curr, regs);
        regs->rax = -ENOSYS;
        return DSM_HCALL_ANSWERED;
    }

    if ( !dsm_gate_enter(curr) )
        return DSM_HCALL_RETRY;

    /* We do miss here, and wait. */
    w->hcall_retries = true;
    token = hvmemul_cache_disable(curr);
    rc = prepare(curr, regs);
    hvmemul_cache_restore(curr, token);

    /* A structure that cannot be read: the hypercall has its own answer. */
    if ( !rc || rc == UNREADABLE )
    {
        w->hcall = regs->rax;
        /* Its copies of pages, and mappings, say "again" one by one. */
        w->hcall_retries = w->hcall == __HYPERVISOR_grant_table_op;
        return DSM_HCALL_RUN;
    }

    dsm_gate_leave(curr);

    if ( rc == WAITING )
        return DSM_HCALL_RETRY;

    if ( rc == -ENOSYS )
        say_refused(curr, regs);

    regs->rax = rc > 0 ? 0 : rc;

    return DSM_HCALL_ANSWERED;
}

void dsm_hcall_end(void)
{
    dsm_gate_leave(current);
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
