// SPDX-License-Identifier: GPL-2.0-only
/*
 * In which slice a hypercall is done: each rule, for each place of who calls
 * and of the vCPU that it concerns.
 *
 * Four letters a call.  The first two are for a caller in slice 0, about a vCPU
 * that runs here, and about one elsewhere; the last two for a caller in slice
 * 1.  r: it runs; f: it is forwarded; s: it is sent, and nobody waits for it;
 * -: it is refused.
 *
 * usage: dsm_route_test --list | CASE
 */
#include "cases.h"
#include "fake_hcall.h"
#include <asm/dsm_route.h>

struct vcpu *current;
struct domain dom;

#define expect(what, got, want)                                         \
    do {                                                                \
        long got_ = (got), want_ = (want);                              \
        if ( got_ != want_ )                                            \
            die("%s: %ld, expected %ld", what, got_, want_);            \
    } while ( 0 )

#define CALL(call, cmd) #call " " #cmd, __HYPERVISOR_##call, cmd

static const struct {
    const char *name;
    unsigned long op, cmd;
    const char *ways;           /* while vCPUs are in several slices */
    const char *together;       /* while they are in one: if it differs */
} calls[] = {
    { CALL(memory_op, XENMEM_populate_physmap), "rr--" },
    { CALL(memory_op, XENMEM_memory_map), "rr--" },
    { CALL(set_timer_op, 0), "rr--" },
    { CALL(xen_version, XENVER_version), "rrrr" },
    { CALL(xen_version, XENVER_commandline), "rrrr" },
    { CALL(console_io, 0), "rrrr" },
    { CALL(grant_table_op, GNTTABOP_setup_table), "rr--" },
    { CALL(sched_op, SCHEDOP_yield), "rrrr" },
    { CALL(sched_op, SCHEDOP_block), "rrrr" },
    { CALL(sched_op, SCHEDOP_shutdown), "rrrr" },
    { CALL(sched_op, SCHEDOP_poll), "rrrr" },
    { CALL(sched_op, SCHEDOP_remote_shutdown), "rr--" },
    { CALL(sched_op, SCHEDOP_shutdown_code), "rr--" },
    { CALL(sched_op, SCHEDOP_watchdog), "rr--" },
    { CALL(sched_op, SCHEDOP_pin_override), "rr--" },
    { CALL(vcpu_op, VCPUOP_initialise), "r---" },
    { CALL(vcpu_op, VCPUOP_up), "r---" },
    { CALL(vcpu_op, VCPUOP_down), "----", "rr--" },
    { CALL(vcpu_op, VCPUOP_is_up), "r---" },
    { CALL(vcpu_op, VCPUOP_get_runstate_info), "r---" },
    { CALL(vcpu_op, VCPUOP_register_runstate_memory_area), "r-r-" },
    { CALL(vcpu_op, VCPUOP_set_periodic_timer), "r---" },
    { CALL(vcpu_op, VCPUOP_stop_periodic_timer), "r-r-" },
    { CALL(vcpu_op, VCPUOP_set_singleshot_timer), "r-r-" },
    { CALL(vcpu_op, VCPUOP_stop_singleshot_timer), "r-r-" },
    { CALL(vcpu_op, VCPUOP_register_vcpu_info), "rfrf" },
    { CALL(vcpu_op, VCPUOP_send_nmi), "r---" },
    { CALL(vcpu_op, VCPUOP_get_physid), "r---" },
    { CALL(vcpu_op, VCPUOP_register_vcpu_time_memory_area), "r---" },
    { CALL(vcpu_op, VCPUOP_register_runstate_phys_area), "r---" },
    { CALL(vcpu_op, VCPUOP_register_vcpu_time_phys_area), "r---" },
    { CALL(event_channel_op, EVTCHNOP_bind_interdomain), "rr--" },
    { CALL(event_channel_op, EVTCHNOP_bind_virq), "rfrf" },
    { CALL(event_channel_op, EVTCHNOP_close), "rfrf" },
    { CALL(event_channel_op, EVTCHNOP_send), "rsrs" },
    { CALL(event_channel_op, EVTCHNOP_status), "rfrf" },
    { CALL(event_channel_op, EVTCHNOP_alloc_unbound), "rr--" },
    { CALL(event_channel_op, EVTCHNOP_bind_ipi), "rfrf" },
    { CALL(event_channel_op, EVTCHNOP_bind_vcpu), "r---" },
    { CALL(event_channel_op, EVTCHNOP_unmask), "rfrf" },
    { CALL(event_channel_op, EVTCHNOP_reset), "----", "rr--" },
    { CALL(event_channel_op, EVTCHNOP_init_control), "rr--" },
    { CALL(physdev_op, PHYSDEVOP_map_pirq), "rr--" },
    { CALL(hvm_op, HVMOP_set_param), "rr--" },
    { CALL(hvm_op, HVMOP_get_param), "rr--" },
    { CALL(hvm_op, HVMOP_get_time), "rr--" },
    { CALL(hvm_op, HVMOP_flush_tlbs), "----", "rr--" },
    { CALL(hvm_op, HVMOP_set_evtchn_upcall_vector), "rfrf" },
    { "a call that nobody has heard of", 99, 0, "rr--" },
};

static void all(bool spread)
{
    static const char letter[] = {
        [DSM_RUN] = 'r', [DSM_FORWARD] = 'f', [DSM_SEND] = 's',
        [DSM_REFUSE] = '-' };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(calls); i++ )
    {
        const struct dsm_rule *rule = dsm_rule(calls[i].op, calls[i].cmd);
        const char *ways = spread ? calls[i].ways
                                  : calls[i].together ?: calls[i].ways;
        char got[5] = {};

        got[0] = letter[dsm_route(rule, 0, 0, spread)];
        got[1] = letter[dsm_route(rule, 0, 1, spread)];
        got[2] = letter[dsm_route(rule, 1, 1, spread)];
        got[3] = letter[dsm_route(rule, 1, 2, spread)];
        if ( strcmp(got, ways) )
            die("%s: %s, expected %s", calls[i].name, got, ways);
        /* Slice 0 is another one, too. */
        expect(calls[i].name, letter[dsm_route(rule, 1, 0, spread)], ways[3]);
    }
}

static void spread(void)
{
    all(true);
}

static void together(void)
{
    all(false);
}

/* Which vCPU or port a call concerns. */
static void subjects(void)
{
    static const uint32_t words[] = { 11, 22, 33, 44, 55, 66 };
    const struct {
        unsigned long op, cmd;
        unsigned int subject;
    } want[] = {
        { __HYPERVISOR_vcpu_op, VCPUOP_up, 7 },
        { __HYPERVISOR_vcpu_op, VCPUOP_register_vcpu_info, 7 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_ipi, 11 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_virq, 22 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_vcpu, 22 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_send, 11 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_unmask, 11 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_close, 11 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_status, 22 },
        { __HYPERVISOR_hvm_op, HVMOP_set_evtchn_upcall_vector, 11 },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(want); i++ )
        expect("subject", dsm_rule_subject(dsm_rule(want[i].op, want[i].cmd),
                                           7 | 3UL << 32, words),
               want[i].subject);
    expect("no structure", dsm_rule_subject(dsm_rule(__HYPERVISOR_vcpu_op,
                                                     VCPUOP_up), 5, NULL), 5);
}

/* What goes with those that are forwarded, and comes back; nothing of others. */
static void sizes(void)
{
    static const struct {
        unsigned long op, cmd;
        unsigned int bytes, back;
    } want[] = {
        { __HYPERVISOR_vcpu_op, VCPUOP_register_vcpu_info,
          sizeof(struct vcpu_register_vcpu_info), 0 },
        { __HYPERVISOR_hvm_op, HVMOP_set_evtchn_upcall_vector,
          sizeof(struct xen_hvm_evtchn_upcall_vector), 0 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_ipi,
          offsetof(struct evtchn_bind_ipi, port),
          sizeof(struct evtchn_bind_ipi) },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_virq,
          offsetof(struct evtchn_bind_virq, port),
          sizeof(struct evtchn_bind_virq) },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_unmask,
          sizeof(struct evtchn_unmask), 0 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_close,
          sizeof(struct evtchn_close), 0 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_status,
          offsetof(struct evtchn_status, status),
          sizeof(struct evtchn_status) },
    };
    unsigned int i, forwarded = 0;

    for ( i = 0; i < ARRAY_SIZE(calls); i++ )
    {
        const struct dsm_rule *rule = dsm_rule(calls[i].op, calls[i].cmd);

        expect(calls[i].name, !!rule->bytes, strchr(calls[i].ways, 'f') != NULL);
        forwarded += !!rule->bytes;
        if ( rule->bytes )
            expect("of one call only", rule->cmd, calls[i].cmd);
    }
    expect("forwarded", forwarded, ARRAY_SIZE(want));
    for ( i = 0; i < ARRAY_SIZE(want); i++ )
    {
        const struct dsm_rule *rule = dsm_rule(want[i].op, want[i].cmd);

        expect("there", rule->bytes, want[i].bytes);
        expect("back", rule->back, want[i].back);
    }
}

/* Whose a port is: parts of one size, a power of two, and some may be left. */
static void ports(void)
{
    static const struct { unsigned int slices, ports; } sizes[] = {
        { 1, 4096 }, { 2, 2048 }, { 3, 1024 }, { 4, 1024 }, { 5, 512 },
        { 8, 512 }, { 9, 256 }, { 16, 256 },
    };
    unsigned int i, port;

    for ( i = 0; i < ARRAY_SIZE(sizes); i++ )
    {
        unsigned int n = sizes[i].slices, each = sizes[i].ports;

        expect("ports", dsm_ports(n), each);
        for ( port = 0; port < 5000; port++ )
            expect("slice", dsm_port_slice(port, n),
                   port < n * each ? port / each : n);
        expect("the last one", dsm_port_slice(~0U, n), n);
        expect("all bits of it", dsm_port_slice(1 << 16 | 5, n), n);
    }
}

/* What a slice says that it has allocated. */
static void may_say(void)
{
    const struct dsm_rule *ipi = dsm_rule(__HYPERVISOR_event_channel_op,
                                          EVTCHNOP_bind_ipi);
    const struct dsm_rule *virq = dsm_rule(__HYPERVISOR_event_channel_op,
                                           EVTCHNOP_bind_virq);
    const struct dsm_rule *status = dsm_rule(__HYPERVISOR_event_channel_op,
                                             EVTCHNOP_status);
    const struct dsm_rule *info = dsm_rule(__HYPERVISOR_vcpu_op,
                                           VCPUOP_register_vcpu_info);
    static const uint32_t first[] = { 9, 2048, 2047, 0, 0, 0 };
    static const uint32_t second[] = { 9, 2047, 4095, 0, 0, 0 };
    static const uint32_t none[] = { 9, 4096, 4096, 0, 0, 0 };

    expect("its own", dsm_may_say(ipi, first, 1, 2), true);
    expect("its own", dsm_may_say(ipi, second, 0, 2), true);
    expect("its own", dsm_may_say(virq, second, 1, 2), true);
    expect("of slice 1", dsm_may_say(ipi, first, 0, 2), false);
    expect("of slice 0", dsm_may_say(ipi, second, 1, 2), false);
    expect("of slice 0", dsm_may_say(virq, first, 1, 2), false);
    expect("of nobody", dsm_may_say(ipi, none, 1, 2), false);
    expect("of nobody", dsm_may_say(virq, none, 1, 2), false);
    /* Of three, each has 1024, and the last ones are nobody's. */
    expect("of slice 2", dsm_may_say(ipi, first, 2, 3), true);
    expect("of slice 2", dsm_may_say(ipi, first, 1, 3), false);
    expect("of slice 1", dsm_may_say(virq, first, 1, 3), true);
    expect("of slice 1", dsm_may_say(virq, first, 2, 3), false);
    expect("of nobody", dsm_may_say(virq, second, 2, 3), false);
    expect("not of ports", dsm_may_say(status, none, 1, 2), true);
    expect("nothing", dsm_may_say(info, none, 1, 2), true);
}

static const struct test_case cases[] = {
    { "vCPUs in several slices", spread },
    { "vCPUs in one slice", together },
    { "whom a call concerns", subjects },
    { "what goes with a call", sizes },
    { "ports of slices", ports },
    { "what a slice may say", may_say },
};

int main(int argc, char **argv)
{
    return main_of(cases, ARRAY_SIZE(cases), argc, argv);
}
