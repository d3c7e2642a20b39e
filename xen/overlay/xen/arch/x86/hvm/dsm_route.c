/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: in which slice a hypercall is done.
 *
 * What a hypercall changes is in one slice.  What the guest has once (memory
 * map, grants, parameters) is in slice 0, and what a vCPU has is where it runs.
 * So a call that names a vCPU which runs in another slice is done there, if it
 * is one of those that Linux makes for a CPU that it brings up; all other calls
 * about such a vCPU are refused, rather than done to its ghost.
 *
 * Event channels are in the slice of the vCPU that they interrupt.  Each slice
 * allocates ports from a part of its own, so a number says where it is.  A port
 * of another domain's (alloc_unbound, bind_interdomain) is slice 0's, and stays
 * there: bind_vcpu to a vCPU elsewhere is refused.
 *
 * A timer is the business of the slice where its vCPU runs.
 *
 * Nothing is looked up, locked or changed here.  Context: any.
 */

#include <xen/lib.h>
#include <xen/types.h>

#include <asm/dsm_route.h>

#include <public/dsm.h>
#include <public/event_channel.h>
#include <public/hvm/hvm_op.h>
#include <public/sched.h>
#include <public/vcpu.h>
#include <public/version.h>
#include <public/xen.h>

#define ANYWHERE false
#define HOME     true

#define NOBODY      DSM_CONCERNS_NOBODY, 0, 0, 0
#define VCPU(at)    DSM_CONCERNS_VCPU, at, 0, 0
#define FORWARD(at, bytes, back) DSM_CONCERNS_VCPU, at, bytes, back
#define PORT(at, bytes, back) DSM_CONCERNS_PORT, at, bytes, back
#define EVENT(at)   DSM_CONCERNS_EVENT, at, 0, 0
#define ALL         DSM_CONCERNS_ALL, DSM_AT_REGISTER, 0, 0

#define REG DSM_AT_REGISTER

/* The first one that fits. */
static const struct dsm_rule rules[] = {
    { __HYPERVISOR_xen_version, DSM_ANY_CMD, ANYWHERE, NOBODY },
    { __HYPERVISOR_console_io, DSM_ANY_CMD, ANYWHERE, NOBODY },

    { __HYPERVISOR_sched_op, SCHEDOP_yield, ANYWHERE, NOBODY },
    { __HYPERVISOR_sched_op, SCHEDOP_block, ANYWHERE, NOBODY },
    { __HYPERVISOR_sched_op, SCHEDOP_shutdown, ANYWHERE, NOBODY },
    /* Linux's spinlocks: of ports of who calls.  Those of others: -EINVAL. */
    { __HYPERVISOR_sched_op, SCHEDOP_poll, ANYWHERE, NOBODY },

    { __HYPERVISOR_vcpu_op, VCPUOP_register_vcpu_info, ANYWHERE,
      FORWARD(REG, 16, 0) },
    /* Answered without being done; see dsm_hypercall.c. */
    { __HYPERVISOR_vcpu_op, VCPUOP_register_runstate_memory_area, ANYWHERE,
      VCPU(REG) },
    { __HYPERVISOR_vcpu_op, VCPUOP_stop_periodic_timer, ANYWHERE, VCPU(REG) },
    { __HYPERVISOR_vcpu_op, VCPUOP_set_singleshot_timer, ANYWHERE, VCPU(REG) },
    { __HYPERVISOR_vcpu_op, VCPUOP_stop_singleshot_timer, ANYWHERE,
      VCPU(REG) },
    /* It looks at the vCPUs of one slice for whether one is up. */
    { __HYPERVISOR_vcpu_op, VCPUOP_down, HOME, ALL },
    { __HYPERVISOR_vcpu_op, DSM_ANY_CMD, HOME, VCPU(REG) },

    { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_ipi, ANYWHERE,
      FORWARD(0, 4, 8) },
    { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_virq, ANYWHERE,
      FORWARD(4, 8, 12) },
    { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_vcpu, HOME, VCPU(4) },
    { __HYPERVISOR_event_channel_op, EVTCHNOP_send, ANYWHERE, EVENT(0) },
    { __HYPERVISOR_event_channel_op, EVTCHNOP_unmask, ANYWHERE,
      PORT(0, 4, 0) },
    { __HYPERVISOR_event_channel_op, EVTCHNOP_close, ANYWHERE, PORT(0, 4, 0) },
    /* It would close the ports of one slice.  What has begun goes on. */
    { __HYPERVISOR_event_channel_op, EVTCHNOP_reset, HOME, ALL },
    { __HYPERVISOR_event_channel_op, EVTCHNOP_status, ANYWHERE,
      PORT(4, 8, 24) },

    { __HYPERVISOR_hvm_op, HVMOP_set_evtchn_upcall_vector, ANYWHERE,
      FORWARD(0, 8, 0) },
    { __HYPERVISOR_hvm_op, HVMOP_flush_tlbs, HOME, ALL },
};

static const struct dsm_rule other = { 0, DSM_ANY_CMD, HOME, NOBODY };

const struct dsm_rule *dsm_rule(unsigned long op, unsigned long cmd)
{
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(rules); i++ )
        if ( rules[i].op == op &&
             (rules[i].cmd == DSM_ANY_CMD || rules[i].cmd == cmd) )
            return &rules[i];

    return &other;
}

unsigned int dsm_rule_subject(const struct dsm_rule *rule, unsigned long reg,
                              const void *arg)
{
    uint32_t subject;

    /* The hypervisor takes 32 bits of it. */
    if ( rule->at == DSM_AT_REGISTER )
        return reg;

    memcpy(&subject, arg + rule->at, sizeof(subject));

    return subject;
}

enum dsm_way dsm_route(const struct dsm_rule *rule, unsigned int here,
                       unsigned int there, bool spread)
{
    if ( here && rule->home_only )
        return DSM_REFUSE;

    switch ( rule->concerns )
    {
    case DSM_CONCERNS_VCPU:
    case DSM_CONCERNS_PORT:
        if ( here == there )
            return DSM_RUN;
        return rule->bytes ? DSM_FORWARD : DSM_REFUSE;

    case DSM_CONCERNS_EVENT:
        return here == there ? DSM_RUN : DSM_SEND;

    case DSM_CONCERNS_ALL:
        return spread ? DSM_REFUSE : DSM_RUN;

    default:
        return DSM_RUN;
    }
}

unsigned int dsm_ports(unsigned int nr_slices)
{
    unsigned int ports = XEN_DSM_PORTS;

    while ( ports * nr_slices > XEN_DSM_PORTS )
        ports /= 2;

    return ports;
}

unsigned int dsm_port_slice(unsigned int port, unsigned int nr_slices)
{
    return min(port / dsm_ports(nr_slices), nr_slices);
}

bool dsm_may_say(const struct dsm_rule *rule, const void *arg,
                 unsigned int slice, unsigned int nr_slices)
{
    uint32_t port;

    if ( rule->concerns != DSM_CONCERNS_VCPU || !rule->back )
        return true;

    memcpy(&port, arg + rule->bytes, sizeof(port));

    return dsm_port_slice(port, nr_slices) == slice;
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
