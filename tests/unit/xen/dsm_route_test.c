// SPDX-License-Identifier: GPL-2.0-only
/*
 * In which slice a hypercall is done: each rule, for each place of who calls
 * and of the vCPU that it concerns.
 *
 * Four letters a call.  The first two are for a caller in slice 0, about a vCPU
 * that runs here, and about one elsewhere; the last two for a caller in slice
 * 1.  r: it runs; f: it is forwarded; -: it is refused.
 *
 * usage: dsm_route_test --list | CASE
 */
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
    { CALL(sched_op, SCHEDOP_poll), "rr--" },
    { CALL(sched_op, SCHEDOP_remote_shutdown), "rr--" },
    { CALL(sched_op, SCHEDOP_shutdown_code), "rr--" },
    { CALL(sched_op, SCHEDOP_watchdog), "rr--" },
    { CALL(sched_op, SCHEDOP_pin_override), "rr--" },
    { CALL(vcpu_op, VCPUOP_initialise), "r---" },
    { CALL(vcpu_op, VCPUOP_up), "r---" },
    { CALL(vcpu_op, VCPUOP_down), "r---" },
    { CALL(vcpu_op, VCPUOP_is_up), "r---" },
    { CALL(vcpu_op, VCPUOP_get_runstate_info), "r---" },
    { CALL(vcpu_op, VCPUOP_register_runstate_memory_area), "r-r-" },
    { CALL(vcpu_op, VCPUOP_set_periodic_timer), "r---" },
    { CALL(vcpu_op, VCPUOP_stop_periodic_timer), "r-r-" },
    { CALL(vcpu_op, VCPUOP_set_singleshot_timer), "r---" },
    { CALL(vcpu_op, VCPUOP_stop_singleshot_timer), "r-r-" },
    { CALL(vcpu_op, VCPUOP_register_vcpu_info), "rfrf" },
    { CALL(vcpu_op, VCPUOP_send_nmi), "r---" },
    { CALL(vcpu_op, VCPUOP_get_physid), "r---" },
    { CALL(vcpu_op, VCPUOP_register_vcpu_time_memory_area), "r---" },
    { CALL(vcpu_op, VCPUOP_register_runstate_phys_area), "r---" },
    { CALL(vcpu_op, VCPUOP_register_vcpu_time_phys_area), "r---" },
    { CALL(event_channel_op, EVTCHNOP_bind_interdomain), "rr--" },
    { CALL(event_channel_op, EVTCHNOP_bind_virq), "r---" },
    { CALL(event_channel_op, EVTCHNOP_close), "rr--" },
    { CALL(event_channel_op, EVTCHNOP_send), "rr--" },
    { CALL(event_channel_op, EVTCHNOP_status), "rr--" },
    { CALL(event_channel_op, EVTCHNOP_alloc_unbound), "rr--" },
    { CALL(event_channel_op, EVTCHNOP_bind_ipi), "r---" },
    { CALL(event_channel_op, EVTCHNOP_bind_vcpu), "r---" },
    { CALL(event_channel_op, EVTCHNOP_unmask), "rr--" },
    { CALL(event_channel_op, EVTCHNOP_reset), "rr--" },
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
        [DSM_RUN] = 'r', [DSM_FORWARD] = 'f', [DSM_REFUSE] = '-' };
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

/* Which vCPU a call concerns. */
static void subjects(void)
{
    static const uint32_t words[] = { 11, 22, 33, 44, 55, 66 };
    const struct {
        unsigned long op, cmd;
        unsigned int vcpu;
    } want[] = {
        { __HYPERVISOR_vcpu_op, VCPUOP_up, 7 },
        { __HYPERVISOR_vcpu_op, VCPUOP_register_vcpu_info, 7 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_ipi, 11 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_virq, 22 },
        { __HYPERVISOR_event_channel_op, EVTCHNOP_bind_vcpu, 22 },
        { __HYPERVISOR_hvm_op, HVMOP_set_evtchn_upcall_vector, 11 },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(want); i++ )
        expect("vCPU", dsm_rule_vcpu(dsm_rule(want[i].op, want[i].cmd),
                                     7 | 3UL << 32, words), want[i].vcpu);
    expect("no structure", dsm_rule_vcpu(dsm_rule(__HYPERVISOR_vcpu_op,
                                                  VCPUOP_up), 5, NULL), 5);
}

/* What goes with those that are forwarded, and nothing with others. */
static void sizes(void)
{
    unsigned int i, forwarded = 0;

    for ( i = 0; i < ARRAY_SIZE(calls); i++ )
    {
        const struct dsm_rule *rule = dsm_rule(calls[i].op, calls[i].cmd);

        expect(calls[i].name, !!rule->bytes, strchr(calls[i].ways, 'f') != NULL);
        forwarded += !!rule->bytes;
        if ( rule->bytes )
            expect("of one call only", rule->cmd, calls[i].cmd);
    }
    expect("forwarded", forwarded, 2);
    expect("vcpu_info", dsm_rule(__HYPERVISOR_vcpu_op,
                                 VCPUOP_register_vcpu_info)->bytes,
           sizeof(struct vcpu_register_vcpu_info));
    expect("upcall", dsm_rule(__HYPERVISOR_hvm_op,
                              HVMOP_set_evtchn_upcall_vector)->bytes,
           sizeof(struct xen_hvm_evtchn_upcall_vector));
}

static const struct { const char *name; void (*run)(void); } cases[] = {
    { "vCPUs in several slices", spread },
    { "vCPUs in one slice", together },
    { "whom a call concerns", subjects },
    { "what goes with a call", sizes },
};

int main(int argc, char **argv)
{
    unsigned int i;

    for ( i = 0; argc == 2 && i < ARRAY_SIZE(cases); i++ )
        if ( !strcmp(argv[1], "--list") )
            puts(cases[i].name);
        else if ( !strcmp(argv[1], cases[i].name) )
        {
            cases[i].run();
            return 0;
        }

    return argc != 2 || strcmp(argv[1], "--list");
}
