// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hypercalls that are done in another slice: who waits, which result belongs
 * to which call, and what is done there.
 *
 * usage: dsm_call_test --list | CASE
 */
#include "slice.h"

#define INFO 5UL                /* the frame of a vcpu_info */
#define EVTCHN __HYPERVISOR_event_channel_op

static int place(uint32_t vcpu, unsigned int slice, uint64_t *info)
{
    struct xen_dsm_op op = {
        .cmd = XEN_DSM_PLACE, .u.place = { .vcpu = vcpu, .slice = slice } };
    int rc = memop(&op);

    *info = op.u.place.info;

    return rc;
}

/* Slice k of nr.  vCPU 1 runs in slice 1; the domain runs. */
static void begin_of(unsigned int k, unsigned int nr)
{
    uint64_t info;
    unsigned int i;

    enable_slice(k, nr);
    for ( i = 0; i < NR_VCPUS; i++ )
        dom.vcpu[i]->pause_flags = 1UL << _VPF_down;
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("PLACE", place(1, 1, &info), 0);
    domain_unpause_by_systemcontroller(&dom);
}

static void begin(unsigned int k)
{
    begin_of(k, 2);
}

static const struct vcpu_register_vcpu_info there = { .mfn = INFO };

/* vCPU v makes a call about vCPU 1, at rip, with its stack at rsp. */
static int call(unsigned int v, unsigned long rip, unsigned long rsp,
                const struct vcpu_register_vcpu_info *arg)
{
    struct vcpu_register_vcpu_info copy = *arg;

    fake_regs.rip = rip;
    fake_regs.rsp = rsp;

    return dsm_call_away(dom.vcpu[v], dsm_rule(__HYPERVISOR_vcpu_op,
                                               VCPUOP_register_vcpu_info),
                         1, 1, &copy);
}

static int reply_with(uint32_t vcpu, uint64_t cookie, int rc,
                      const uint64_t arg[3])
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_REPLY,
        .u.reply = { .vcpu = vcpu, .cookie = cookie, .rc = rc,
                     .arg = { arg[0], arg[1], arg[2] } } });
}

static int reply(uint32_t vcpu, uint64_t cookie, int rc)
{
    return reply_with(vcpu, cookie, rc, (uint64_t[3]){});
}

/* The call is in the ring; its cookie. */
static uint64_t asked(unsigned int vcpu)
{
    struct xen_dsm_ring_entry e = next_entry();

    expect("type", e.type, XEN_DSM_HCALL);
    expect("who waits", e.vcpu, vcpu);
    expect("op", e.rip & 0xffffffff, __HYPERVISOR_vcpu_op);
    expect("cmd", e.rip >> 32, VCPUOP_register_vcpu_info);
    expect("about whom", e.vectors[0], 1);
    expect("slice", e.want, 1);
    expect("flags", e.flags, 0);

    return e.gfn;
}

/* ---- Cases ---- */

static void to_and_fro(void)
{
    struct vcpu_register_vcpu_info arg = { .mfn = 77, .offset = 8, .rsvd = 9 };
    struct xen_dsm_ring_entry e;

    begin(0);
    notified = 0;
    expect("waits", call(0, 0x1000, 0x2000, &arg), -ERESTART);
    expect("paused", dom.vcpu[0]->paused, 1);
    expect("notified", notified, 1);
    e = DSM->entries[DSM->ring->cons & (DSM->ring_nr - 1)];
    expect("arg", e.vectors[1], 77);
    expect("arg", e.vectors[2], 8 | 9UL << 32);
    expect("arg", e.vectors[3], 0);
    expect("reply", reply(0, asked(0), -EBUSY), 0);
    expect("goes on", dom.vcpu[0]->paused, 0);
    expect("is told", call(0, 0x1000, 0x2000, &arg), -EBUSY);
    expect("nothing is sent", next_entry().type, 0);

    /* Once only; and 0 is told as 1. */
    expect("asks anew", call(0, 0x1000, 0x2000, &arg), -ERESTART);
    expect("reply", reply(0, asked(0), 0), 0);
    expect("is told", call(0, 0x1000, 0x2000, &arg), 1);
}

/* A kernel with preemption has moved who called to another CPU meanwhile. */
static void moved(void)
{
    begin(0);
    expect("waits", call(0, 0x1000, 0x2000, &there), -ERESTART);
    expect("reply", reply(0, asked(0), -EBUSY), 0);
    expect("another stack", call(2, 0x1000, 0x2008, &there), -ERESTART);
    expect("reply", reply(2, asked(2), -EINVAL), 0);
    expect("is told", call(2, 0x1000, 0x2000, &there), -EBUSY);
    expect("once", call(0, 0x1000, 0x2000, &there), -ERESTART);
    expect("reply", reply(0, asked(0), -ENOENT), 0);
    expect("is told", call(3, 0x1000, 0x2008, &there), -EINVAL);

    /* Its own first. */
    expect("is told", call(0, 0x1000, 0x2000, &there), -ENOENT);
    expect("waits", call(0, 0x1000, 0x2000, &there), -ERESTART);
    expect("waits", call(3, 0x1000, 0x2000, &there), -ERESTART);
    expect("reply", reply(0, asked(0), -EBUSY), 0);
    expect("reply", reply(3, asked(3), -EINVAL), 0);
    expect("is told", call(3, 0x1000, 0x2000, &there), -EINVAL);
    expect("is told", call(0, 0x1000, 0x2000, &there), -EBUSY);

    /* What is under way is no result. */
    expect("waits", call(0, 0x1000, 0x2000, &there), -ERESTART);
    expect("waits", call(3, 0x1000, 0x2000, &there), -ERESTART);
}

/*
 * The CPU that called goes to another slice before who called, who has moved
 * within this one, has taken the result; and back.
 */
static void its_cpu_left(void)
{
    const uint32_t init = APIC_DM_INIT | APIC_INT_ASSERT;
    uint64_t info;

    begin_of(0, 3);
    expect("waits", call(2, 0x1000, 0x2000, &there), -ERESTART);
    expect("reply", reply(2, asked(2), -EBUSY), 0);
    expect("waits", call(2, 0x3000, 0x4000, &there), -ERESTART);
    expect("reply", reply(2, asked(2), -EINVAL), 0);
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("placed", place(2, 2, &info), 0);
    domain_unpause_by_systemcontroller(&dom);
    /* It is started there: who called did not end by that. */
    expect("it is elsewhere", dsm_forward_icr(dom.vcpu[2], init), true);
    expect("INIT", next_entry().type, XEN_DSM_VCPU_EVENT);
    expect("is told", call(0, 0x1000, 0x2000, &there), -EBUSY);
    expect("once", call(0, 0x1000, 0x2000, &there), -ERESTART);
    expect("reply", reply(0, asked(0), 0), 0);

    /* What nobody took is of no call that it makes when it is back. */
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("placed", place(2, 0, &info), 0);
    domain_unpause_by_systemcontroller(&dom);
    gets_init(dom.vcpu[2]);
    expect("asks anew", call(2, 0x3000, 0x4000, &there), -ERESTART);
    expect("reply", reply(2, asked(2), -ENOENT), 0);
    expect("is told", call(2, 0x3000, 0x4000, &there), -ENOENT);
}

/* Each thing that makes a call another one. */
static void whose(void)
{
    struct vcpu_register_vcpu_info arg = there, other = { .mfn = INFO + 1 };
    uint64_t cookie;
    unsigned int i;

    for ( i = 0; i < 3; i++ )
    {
        begin(0);
        call(0, 0x1000, 0x2000, &arg);
        expect("reply", reply(0, asked(0), -EBUSY), 0);
        /* An interrupt's own call, before the first one is made again. */
        expect("another one", call(0, i == 0 ? 0x1001 : 0x1000,
                                   i == 1 ? 0x2001 : 0x2000,
                                   i == 2 ? &other : &arg), -ERESTART);
        cookie = asked(0);
        expect("reply", reply(0, cookie, -EINVAL), 0);
        expect("the first one", call(0, 0x1000, 0x2000, &arg), -EBUSY);
    }

    /* The same place of the kernel, for another call. */
    for ( i = 0; i < 5; i++ )
    {
        struct dsm_rule rule = *dsm_rule(__HYPERVISOR_vcpu_op,
                                         VCPUOP_register_vcpu_info);

        begin(0);
        call(0, 0x1000, 0x2000, &arg);
        expect("reply", reply(0, asked(0), 0), 0);
        rule.op += i == 0;
        rule.cmd += i == 1;
        other = arg;
        other.offset = i == 2;
        other.rsvd = i == 3;
        expect("another call", dsm_call_away(dom.vcpu[0], &rule,
                                             i == 4 ? 2 : 1, 1, &other),
               -ERESTART);
    }
}

/* More results than there is place for: the oldest go. */
static void nested(void)
{
    unsigned int i;

    begin(0);
    for ( i = 0; i < DSM_CALLS + 2; i++ )
    {
        expect("waits", call(0, 0x1000 + i, 0, &there), -ERESTART);
        expect("reply", reply(0, asked(0), -1 - (int)i), 0);
    }
    for ( i = 2; i < DSM_CALLS + 2; i++ )
        expect("is told", call(0, 0x1000 + i, 0, &there), -1 - (int)i);
    for ( i = 0; i < 2; i++ )
    {
        expect("asks anew", call(0, 0x1000 + i, 0, &there), -ERESTART);
        expect("reply", reply(0, asked(0), 0), 0);
        expect("is told", call(0, 0x1000 + i, 0, &there), 1);
    }
    expect("paused", dom.vcpu[0]->paused, 0);
}

/* A vCPU that gets an INIT forgets what it has asked, and what it was told. */
static void forgotten(void)
{
    uint64_t cookie;

    begin(0);
    expect("waits", call(0, 0x1000, 0, &there), -ERESTART);
    expect("reply", reply(0, asked(0), 0), 0);
    expect("waits", call(2, 0x2000, 0, &there), -ERESTART);
    expect("reply", reply(2, asked(2), -EBUSY), 0);
    gets_init(dom.vcpu[0]);
    expect("asks anew", call(0, 0x1000, 0, &there), -ERESTART);
    cookie = asked(0);
    expect("others do not", call(2, 0x2000, 0, &there), -EBUSY);

    /* While it waits: it waits on, and then forgets. */
    gets_init(dom.vcpu[0]);
    expect("paused", dom.vcpu[0]->paused, 1);
    expect("reply", reply(0, cookie, 0), 0);
    expect("goes on", dom.vcpu[0]->paused, 0);
    expect("asks anew", call(0, 0x1000, 0, &there), -ERESTART);
    expect("reply", reply(0, asked(0), -EINVAL), 0);

    /* Nothing else is an INIT. */
    dom.vcpu[0]->is_initialised = true;
    dsm_forward_icr(dom.vcpu[0], APIC_DM_INIT | APIC_INT_LEVELTRIG);
    dsm_forward_icr(dom.vcpu[0], APIC_DM_STARTUP | 8);
    dsm_forward_icr(dom.vcpu[0], APIC_DM_NMI);
    dsm_cancel_instruction(dom.vcpu[0]);
    expect("is told", call(0, 0x1000, 0, &there), -EINVAL);

    /* It runs until it is stopped for the INIT, and may call still. */
    dsm_forward_icr(dom.vcpu[0], APIC_DM_INIT | APIC_INT_ASSERT);
    expect("waits", call(0, 0x1000, 0, &there), -ERESTART);
    dom.vcpu[0]->is_initialised = false;
    dsm_cancel_instruction(dom.vcpu[0]);
    expect("reply", reply(0, asked(0), 0), 0);
    expect("asks anew", call(0, 0x1000, 0, &there), -ERESTART);
}

/* Its vCPU runs all the same, and calls: that is not for the guest to do. */
static void under_way(void)
{
    uint64_t first;
    unsigned int i;

    begin(0);
    expect("waits", call(0, 0x1000, 0, &there), -ERESTART);
    first = asked(0);
    for ( i = 1; i < DSM_CALLS; i++ )
    {
        expect("waits", call(0, 0x1000 + i, 0, &there), -ERESTART);
        asked(0);
    }
    expect("no place", call(0, 0x2000, 0, &there), -EIO);
    expect("paused", dom.vcpu[0]->paused, DSM_CALLS);
    expect("reply", reply(0, first, -EBUSY), 0);
    expect("is told", call(0, 0x1000, 0, &there), -EBUSY);
}

static void bad_replies(void)
{
    uint64_t cookie;

    begin(0);
    expect("nobody waits", reply(0, 1, 0), -ESRCH);
    call(0, 0x1000, 0x2000, &there);
    cookie = asked(0);
    expect("of another call", reply(0, cookie + 1, 0), -ESRCH);
    expect("to another vCPU", reply(1, cookie, 0), -ESRCH);
    expect("to no vCPU", reply(NR_VCPUS, cookie, 0), -ENOENT);
    expect("no error", reply(0, cookie, 1), -EINVAL);
    expect("the last error", reply(0, cookie, -DSM_MAX_ERRNO - 1), -EINVAL);
    expect("again and again", reply(0, cookie, -ERESTART), -EINVAL);
    expect("waits", dom.vcpu[0]->paused, 1);
    expect("reply", reply(0, cookie, -DSM_MAX_ERRNO), 0);
    expect("twice", reply(0, cookie, 0), -ESRCH);
    expect("goes on", dom.vcpu[0]->paused, 0);
    expect("is told", call(0, 0x1000, 0x2000, &there), -DSM_MAX_ERRNO);
}

static void crowded(void)
{
    uint64_t cookie, full = 0;
    unsigned int i;

    begin(0);
    for ( i = 0; i < DSM->ring_nr; i++ )
        dsm_forward_icr(dom.vcpu[1], APIC_DM_NMI);
    full = DSM->stats.ring_full;
    expect("waits", call(0, 0x1000, 0, &there), -ERESTART);
    expect("counted", DSM->stats.ring_full, full + 1);
    for ( i = 0; next_entry().type; i++ )
        ;
    expect("entries", i, DSM->ring_nr);
    expect("FLUSH", flush(0), 0);
    cookie = asked(0);
    expect("FLUSH", flush(0), 0);
    expect("not twice", next_entry().type, 0);

    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL), 0);
    expect("a vCPU is up", next_entry().type, XEN_DSM_ACTIVITY);
    expect("to another daemon", asked(0), cookie);
    expect("reply", reply(0, cookie, 0), 0);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL), 0);
    expect("a vCPU is up", next_entry().type, XEN_DSM_ACTIVITY);
    expect("it does not wait any more", next_entry().type, 0);

    /* Of another vCPU, which has a result that it has not taken; told once. */
    begin(0);
    expect("waits", call(2, 0x1000, 0, &there), -ERESTART);
    expect("reply", reply(2, asked(2), 0), 0);
    expect("waits", call(0, 0x3000, 0, &there), -ERESTART);
    asked(0);
    for ( i = 0; i < DSM->ring_nr; i++ )
        dsm_forward_icr(dom.vcpu[1], APIC_DM_NMI);
    expect("waits", call(2, 0x2000, 0, &there), -ERESTART);
    while ( next_entry().type )
        ;
    notified = 0;
    expect("FLUSH", flush(0), 0);
    expect("notified", notified, 1);
    cookie = asked(2);
    expect("FLUSH", flush(XEN_DSM_FLUSH_ALL), 0);
    expect("a vCPU is up", next_entry().type, XEN_DSM_ACTIVITY);
    expect("another cookie", asked(0) != cookie, true);
    expect("to another daemon", asked(2), cookie);
}

static void the_end(void)
{
    begin(0);
    dsm_relinquish(&dom);
    expect("no call", call(0, 0x1000, 0, &there), -EIO);
    expect("paused", dom.vcpu[0]->paused, 0);
}

/* Where a vCPU runs does not change under a call. */
static void placing(void)
{
    uint64_t info, cookie;

    begin(0);
    call(0, 0x1000, 0x2000, &there);
    cookie = asked(0);
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("under way", place(2, 1, &info), -EBUSY);
    expect("reply", reply(0, cookie, 0), 0);
    /* The result was not taken; then the call is in another place. */
    call(0, 0x3000, 0x2000, &there);
    expect("under way", place(2, 1, &info), -EBUSY);
    expect("reply", reply(0, asked(0), 0), 0);
    expect("placed", place(2, 1, &info), 0);
    expect("no vcpu_info", info, 0);
    dom.vcpu[3]->pause_flags = 0;
    expect("up", place(3, 1, &info), -EBUSY);
    dom.is_shut_down = true;
    expect("it runs no more", place(3, 1, &info), 0);
    expect("not zero", memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_PLACE, .u.place = { .vcpu = 2, .info = 1 } }), -EINVAL);
}

static uint64_t left[3];        /* by the last CALL, in its argument */

static int do_call(struct xen_dsm_call what, int *rc)
{
    struct xen_dsm_op op = { .cmd = XEN_DSM_CALL, .u.call = what };
    int done = memop(&op);

    *rc = op.u.call.rc;
    memcpy(left, op.u.call.arg, sizeof(left));

    return done;
}

/* ---- Events ---- */

static int bind(unsigned long rip, struct evtchn_bind_virq *arg)
{
    fake_regs.rip = rip;
    fake_regs.rsp = 0x2000;

    return dsm_call_away(dom.vcpu[0], dsm_rule(EVTCHN, EVTCHNOP_bind_virq), 1,
                         1, arg);
}

static int bind_ipi(struct evtchn_bind_ipi *arg)
{
    return dsm_call_away(dom.vcpu[0], dsm_rule(EVTCHN, EVTCHNOP_bind_ipi), 1, 1,
                         arg);
}

/* Results that have bytes: who asked gets them, and only what he asked for. */
static void with_result(void)
{
    struct evtchn_bind_virq arg = { 4, 1, 0x5555 };
    struct evtchn_bind_ipi ipi = { 1, 0x5555 };
    struct xen_dsm_ring_entry e;

    begin(0);
    expect("waits", bind(0x1000, &arg), -ERESTART);
    e = next_entry();
    expect("type", e.type, XEN_DSM_HCALL);
    expect("slice", e.want, 1);
    expect("vCPU", e.vectors[0], 1);
    expect("arg", e.vectors[1], 4 | 1UL << 32);
    expect("what is an answer does not go", e.vectors[2], 0);
    expect("reply", reply_with(0, e.gfn, 0, (uint64_t[3]){ 99, 2050 }), 0);
    /* It asks again, with whatever is in the place of the answer. */
    arg.port = 0x6666;
    expect("is told", bind(0x1000, &arg), 1);
    expect("virq", arg.virq, 4);
    expect("vCPU", arg.vcpu, 1);
    expect("port", arg.port, 2050);

    expect("waits", bind(0x1000, &arg), -ERESTART);
    e = next_entry();
    expect("reply", reply_with(0, e.gfn, -EEXIST, (uint64_t[3]){ 9, 9 }), 0);
    arg.port = 0x5555;
    expect("is told", bind(0x1000, &arg), -EEXIST);
    expect("nothing is written", arg.port, 0x5555);

    /* Of fewer bytes. */
    expect("waits", bind_ipi(&ipi), -ERESTART);
    expect("reply", reply_with(0, next_entry().gfn, 0,
                               (uint64_t[3]){ 2051UL << 32 }), 0);
    expect("is told", bind_ipi(&ipi), 1);
    expect("vCPU", ipi.vcpu, 1);
    expect("port", ipi.port, 2051);
}

/* Ports that the slice which says so cannot have allocated. */
static void bad_results(void)
{
    static const uint64_t bad[] = { 0, 5, 2047, 4096, ~0U };
    struct evtchn_bind_virq arg = { 4, 1 };
    struct xen_dsm_ring_entry e;
    unsigned int i;

    begin(0);
    expect("waits", bind(0x1000, &arg), -ERESTART);
    e = next_entry();
    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
        expect("not its own", reply_with(0, e.gfn, 0,
                                         (uint64_t[3]){ 0, bad[i] }), -EINVAL);
    expect("waits", dom.vcpu[0]->paused, 1);
    expect("reply", reply_with(0, e.gfn, 0, (uint64_t[3]){ 0, 4095 }), 0);
    expect("is told", bind(0x1000, &arg), 1);
    expect("port", arg.port, 4095);
    /* An error comes without one. */
    expect("waits", bind(0x1000, &arg), -ERESTART);
    expect("reply", reply(0, next_entry().gfn, -ENOSPC), 0);
    expect("is told", bind(0x1000, &arg), -ENOSPC);

    /* Of three slices the second has 1024 to 2047, and the last part is nobody's. */
    begin_of(0, 3);
    expect("waits", bind(0x1000, &arg), -ERESTART);
    e = next_entry();
    expect("the third one's", reply_with(0, e.gfn, 0,
                                         (uint64_t[3]){ 0, 2048 }), -EINVAL);
    expect("nobody's", reply_with(0, e.gfn, 0, (uint64_t[3]){ 0, 3072 }),
           -EINVAL);
    expect("the first one's", reply_with(0, e.gfn, 0,
                                         (uint64_t[3]){ 0, 1023 }), -EINVAL);
    expect("reply", reply_with(0, e.gfn, 0, (uint64_t[3]){ 0, 2047 }), 0);
    expect("is told", bind(0x1000, &arg), 1);
    expect("port", arg.port, 2047);
    /* Asked of the third one, it is the third one's to say. */
    expect("waits", dsm_call_away(dom.vcpu[0],
                                  dsm_rule(EVTCHN, EVTCHNOP_bind_virq), 1, 2,
                                  &arg), -ERESTART);
    e = next_entry();
    expect("slice", e.want, 2);
    expect("the second one's", reply_with(0, e.gfn, 0,
                                          (uint64_t[3]){ 0, 2047 }), -EINVAL);
    expect("reply", reply_with(0, e.gfn, 0, (uint64_t[3]){ 0, 2048 }), 0);
}

/* A call about a port, which is no vCPU. */
static void of_ports(void)
{
    struct evtchn_close arg = { 2048 };
    struct xen_dsm_ring_entry e;

    begin(0);
    fake_regs.rip = 0x1000;
    expect("waits", dsm_call_away(dom.vcpu[0], dsm_rule(EVTCHN, EVTCHNOP_close),
                                  2048, 1, &arg), -ERESTART);
    e = next_entry();
    expect("slice", e.want, 1);
    expect("no vCPU", e.vectors[0], 0);
    expect("arg", e.vectors[1], 2048);
    expect("reply", reply(0, e.gfn, 0), 0);
    arg.port = 2049;
    expect("another port", dsm_call_away(dom.vcpu[0],
                                         dsm_rule(EVTCHN, EVTCHNOP_close), 2049,
                                         1, &arg), -ERESTART);
    reply(0, next_entry().gfn, -EINVAL);
    arg.port = 2048;
    expect("is told", dsm_call_away(dom.vcpu[0],
                                    dsm_rule(EVTCHN, EVTCHNOP_close), 2048, 1,
                                    &arg), 1);

    begin(1);
    arg.port = 5;
    expect("waits", dsm_call_away(dom.vcpu[1], dsm_rule(EVTCHN, EVTCHNOP_close),
                                  5, 0, &arg), -ERESTART);
    expect("slice", next_entry().want, 0);
}

#define EVENT(name, vcpu, first, second) \
    { EVTCHN, EVTCHNOP_##name, vcpu, 0, { first, second } }

/* In each of several slices, what each other one asks about its ports. */
static void events_of_several(void)
{
    static const unsigned int counts[] = { 3, 4, 16 };
    unsigned int i, here, of;
    int rc;

    for ( i = 0; i < ARRAY_SIZE(counts); i++ )
        for ( here = 0; here < counts[i]; here++ )
        {
            begin_of(here, counts[i]);
            for ( of = 0; of <= counts[i]; of++ )
            {
                /* The last one of its part; behind the last part are others. */
                uint64_t port = (of + 1) * (4096 / (counts[i] == 3 ? 4 :
                                                    counts[i])) - 1;
                const struct xen_dsm_call call = EVENT(unmask, 0, port, 0);

                expect("CALL", do_call(call, &rc), of == here ? 0 : -EXDEV);
            }
        }
}

/* What is done here for another slice. */
static void events_here(void)
{
    static const struct {
        const char *name;
        struct xen_dsm_call call;
        const char *did;
        uint64_t left[3];
    } calls[] = {
        { "an IPI", EVENT(bind_ipi, 1, 1, 0), "ipi 1 0", { 1 | 2060UL << 32 } },
        { "a VIRQ", EVENT(bind_virq, 1, 2 | 1UL << 32, 0), "virq 2 1",
          { 2 | 1UL << 32, 2060 } },
        { "unmask", EVENT(unmask, 0, 2048, 0), "unmask 2048 0", { 2048 } },
        { "close", EVENT(close, 0, 4095, 0), "close 4095 1", { 4095 } },
        { "status", EVENT(status, 0, DOMID_SELF | 2048UL << 32, 0),
          "status 2048 0", { DOMID_SELF | 2048UL << 32, 5 | 1UL << 32, 77 } },
    };
    unsigned int i, w;
    int rc;

    for ( i = 0; i < ARRAY_SIZE(calls); i++ )
    {
        begin(1);
        fake_port = 2060;
        expect(calls[i].name, do_call(calls[i].call, &rc), 0);
        expect(calls[i].name, rc, 0);
        if ( strcmp(fake_events, calls[i].did) )
            die("%s: %s", calls[i].name, fake_events);
        for ( w = 0; w < 3; w++ )
            expect(calls[i].name, left[w], calls[i].left[w]);

        begin(1);
        fake_rc = -ENOENT;
        expect(calls[i].name, do_call(calls[i].call, &rc), 0);
        expect("its error", rc, -ENOENT);
        expect("as it was asked", left[0], calls[i].call.arg[0]);
    }
}

#define REGISTER(mfn, offset) { \
    __HYPERVISOR_vcpu_op, VCPUOP_register_vcpu_info, 1, 0, { mfn, offset } }
#define UPCALL(vcpu, vector) { \
    __HYPERVISOR_hvm_op, HVMOP_set_evtchn_upcall_vector, 1, 0, \
    { (vcpu) | (uint64_t)(vector) << 32 } }

/* What is refused, and nothing is done. */
static void refused(void)
{
    static const struct {
        const char *name;
        struct xen_dsm_call call;
        int done;
    } calls[] = {
        { "another operation", { __HYPERVISOR_vcpu_op, VCPUOP_up, 1 },
          -EOPNOTSUPP },
        { "of no vCPU's", { __HYPERVISOR_xen_version, 0, 1 }, -EOPNOTSUPP },
        { "an event", { EVTCHN, EVTCHNOP_send, 0, 0, { 2048 } },
          -EOPNOTSUPP },
        { "moved", { EVTCHN, EVTCHNOP_bind_vcpu, 1, 0, { 2048 | 1UL << 32 } },
          -EOPNOTSUPP },
        { "of other domains", { EVTCHN, EVTCHNOP_alloc_unbound, 0, 0, { 0 } },
          -EOPNOTSUPP },
        { "an IPI of another", { EVTCHN, EVTCHNOP_bind_ipi, 1, 0, { 2 } },
          -EINVAL },
        { "a VIRQ of another", { EVTCHN, EVTCHNOP_bind_virq, 1, 0,
                                 { 1 | 2UL << 32 } }, -EINVAL },
        { "an IPI of a ghost", { EVTCHN, EVTCHNOP_bind_ipi, 2, 0, { 2 } },
          -EXDEV },
        { "a port of slice 0", { EVTCHN, EVTCHNOP_unmask, 0, 0, { 2047 } },
          -EXDEV },
        { "a port of slice 0", { EVTCHN, EVTCHNOP_close, 0, 0, { 5 } },
          -EXDEV },
        { "a port of nobody", { EVTCHN, EVTCHNOP_close, 0, 0, { 4096 } },
          -EXDEV },
        { "a port and a vCPU", { EVTCHN, EVTCHNOP_close, 1, 0, { 2048 } },
          -EINVAL },
        { "an answer in it", { EVTCHN, EVTCHNOP_bind_ipi, 1, 0,
                               { 1 | 7UL << 32 } }, -EINVAL },
        { "behind a port", { EVTCHN, EVTCHNOP_close, 0, 0,
                             { 2048 | 1UL << 32 } }, -EINVAL },
        { "unknown", { 99, 99, 1 }, -EOPNOTSUPP },
        { "about another", UPCALL(2, 0xf3), -EINVAL },
        { "a result", { __HYPERVISOR_vcpu_op, VCPUOP_register_vcpu_info, 1, 1,
                        { INFO } }, -EINVAL },
        { "bytes behind it", { __HYPERVISOR_vcpu_op, VCPUOP_register_vcpu_info,
                               1, 0, { INFO, 0, 1UL << 63 } }, -EINVAL },
        { "behind a short one", { __HYPERVISOR_hvm_op,
                                  HVMOP_set_evtchn_upcall_vector, 1, 0,
                                  { 1 | 0xf3UL << 32, 1 } }, -EINVAL },
        { "no vCPU", { __HYPERVISOR_vcpu_op, VCPUOP_register_vcpu_info,
                       NR_VCPUS, 0, { INFO } }, -ENOENT },
        { "elsewhere", { __HYPERVISOR_vcpu_op, VCPUOP_register_vcpu_info, 0, 0,
                         { INFO } }, -EXDEV },
    };
    unsigned int i;
    int rc;

    begin(1);
    for ( i = 0; i < ARRAY_SIZE(calls); i++ )
    {
        expect(calls[i].name, do_call(calls[i].call, &rc), calls[i].done);
        expect(calls[i].name, dom.vcpu[1]->arch.hvm.evtchn_upcall_vector, 0);
        expect(calls[i].name, !dom.vcpu[1]->vcpu_info_area.pg, true);
        expect("events", strlen(fake_events), 0);
    }
    /* Of no other domain than this one. */
    expect("status", do_call((struct xen_dsm_call)
                             EVENT(status, 0, 3 | 2048UL << 32, 0), &rc), 0);
    expect("rc", rc, -EINVAL);
    expect("events", strlen(fake_events), 0);
}

static void upcall(void)
{
    int rc;

    begin(1);
    expect("an exception", do_call((struct xen_dsm_call)UPCALL(1, 15), &rc), 0);
    expect("rc", rc, -EINVAL);
    expect("vector", dom.vcpu[1]->arch.hvm.evtchn_upcall_vector, 0);
    expect("done", do_call((struct xen_dsm_call)UPCALL(1, 16), &rc), 0);
    expect("rc", rc, 0);
    expect("vector", dom.vcpu[1]->arch.hvm.evtchn_upcall_vector, 16);
    expect("what is pending comes", asserted, 1);
}

/* From the first call to the day when the vCPU goes elsewhere. */
static void vcpu_info(void)
{
    const struct xen_dsm_call what = REGISTER(INFO, 0);
    struct xen_dsm_ring_entry e;
    uint64_t info;
    int maps, rc;

    begin(1);
    expect("INVAL", page(XEN_DSM_INVAL, INFO), 0);

    expect("its page is away", do_call(what, &rc), -EAGAIN);
    expect("rc", rc, 0);
    e = next_entry();
    expect("asked for", e.type, XEN_DSM_PAGE_MISS);
    expect("frame", e.gfn, INFO);
    expect("to read", e.want, XEN_DSM_WANT_S);
    expect("by nobody here", e.flags, XEN_DSM_MISS_FOREIGN);
    expect("INSTALL_S", page(XEN_DSM_INSTALL_S, INFO), 0);
    expect("it can be read only", do_call(what, &rc), -EAGAIN);
    e = next_entry();
    expect("asked for", e.type, XEN_DSM_PAGE_MISS);
    expect("to write", e.want, XEN_DSM_WANT_M);
    expect("UPGRADE", page(XEN_DSM_UPGRADE, INFO), 0);
    expect("done", do_call(what, &rc), 0);
    expect("rc", rc, 0);
    expect("mapped", !dom.vcpu[1]->vcpu_info_area.pg, false);
    expect("stays", page(XEN_DSM_INVAL, INFO), -EBUSY);
    expect("once more", do_call(what, &rc), 0);
    expect("rc", rc, -EBUSY);
    begin(1);
    deadlock = true;
    expect("a lock is not free", do_call(what, &rc), -EAGAIN);
    expect("rc", rc, 0);
    expect("not mapped", !dom.vcpu[1]->vcpu_info_area.pg, true);
    deadlock = false;
    expect("done", do_call(what, &rc), 0);

    domain_pause_by_systemcontroller_nosync(&dom);
    expect("PLACE here", place(1, 1, &info), 0);
    expect("it stays", info, 0);
    expect("stays", page(XEN_DSM_INVAL, INFO), -EBUSY);
    maps = mapped;
    expect("PLACE", place(1, 0, &info), 0);
    expect("where it was", info, INFO << 12);
    expect("Xen has it mapped no more", mapped, maps - 1);
    expect("goes", page(XEN_DSM_INVAL, INFO), 0);
    expect("PLACE", place(1, 1, &info), 0);
    expect("nothing", info, 0);
}

static void bad_places(void)
{
    static const struct { uint64_t mfn, offset; int rc; } bad[] = {
        { INFO, 64, -EINVAL },          /* with others in its page */
        { INFO, 4095, -EINVAL },
        { INFO, 4096, -EINVAL },        /* the next page */
        { 1UL << 52, 0, -EINVAL },      /* more than an address has */
        { INFO | 1UL << 52, 0, -EINVAL },
        { 60, 0, -EINVAL },             /* a hole */
    };
    unsigned int i;
    int rc;

    begin(1);
    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        expect("done", do_call((struct xen_dsm_call)REGISTER(bad[i].mfn,
                                                             bad[i].offset),
                               &rc), 0);
        expect("rc", rc, bad[i].rc);
        expect("mapped", !dom.vcpu[1]->vcpu_info_area.pg, true);
    }
}

/* vCPUs that do not run here are paused, once. */
static void ghosts(void)
{
    uint64_t info;
    unsigned int i;

    begin(1);
    for ( i = 0; i < NR_VCPUS; i++ )
        expect("a ghost", dom.vcpu[i]->paused, i != 1);
    domain_pause_by_systemcontroller_nosync(&dom);
    for ( i = 0; i < 2; i++ )
    {
        expect("PLACE", place(1, 0, &info), 0);
        expect("a ghost", dom.vcpu[1]->paused, 1);
    }
    for ( i = 0; i < 2; i++ )
    {
        expect("PLACE", place(1, 1, &info), 0);
        expect("no ghost", dom.vcpu[1]->paused, 0);
    }
    expect("no pause is left", dom.pauses, 1);

    begin(0);
    for ( i = 0; i < NR_VCPUS; i++ )
        expect("a ghost", dom.vcpu[i]->paused, i == 1);
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("PLACE", place(1, 0, &info), 0);
    expect("no ghost", dom.vcpu[1]->paused, 0);
}

/* It began to wait for a page before it was placed. */
static void waiting(void)
{
    uint64_t info;

    begin(1);
    expect("INVAL", page(XEN_DSM_INVAL, 7), 0);
    current = dom.vcpu[1];
    dsm_populate(&dom, _gfn(7));
    current = &(struct vcpu){ .domain = &dom0 };
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("PLACE here", place(1, 1, &info), 0);
    expect("waits", dom.vcpu[1]->paused, 1);
    DSM->vcpu[1].hole.nr = DSM->nr_holes = 1;
    expect("PLACE", place(1, 0, &info), 0);
    expect("is told of no hole", DSM->vcpu[1].hole.nr, 0);
    expect("a ghost", dom.vcpu[1]->paused, 1);
    expect("nobody waits", DSM->nr_waiting, 0);
    expect("nor does it", DSM->vcpu[1].waiting, false);
    expect("PLACE", place(1, 1, &info), 0);
    expect("does not wait", dom.vcpu[1]->paused, 0);
    expect("INSTALL_M", page(XEN_DSM_INSTALL_M, 7), 0);
    expect("nobody is woken", dom.vcpu[1]->paused, 0);
}

static char waited[64];         /* for whom, while a vcpu_info goes */

static void sender(const rwlock_t *lock)
{
    const struct evtchn *chn = (const void *)lock;
    bool ours = chn >= dom.evtchn && chn < dom.evtchn + NR_PORTS;
    size_t n = strlen(waited);

    snprintf(waited + n, sizeof(waited) - n, "%s%ld ", ours ? "" : "remote ",
             ours ? chn - dom.evtchn : chn - dom0.evtchn);
    expect("it is elsewhere for who comes", !dom.vcpu[1]->vcpu_info_area.map,
           true);
    expect("its page is there for who was", frames[64 + INFO].count_info,
           PGC_allocated | 2);
    /* Somebody unpauses the domain meanwhile. */
    if ( dom.controller_pause_count )
        domain_unpause_by_systemcontroller(&dom);
}

/* An event that is being sent is written to where its vCPU looked before. */
static void senders(void)
{
    uint64_t info;
    int rc;

    begin(1);
    dom.evtchn[1] = (struct evtchn){ .state = ECS_IPI, .notify_vcpu_id = 2 };
    dom.evtchn[2] = (struct evtchn){ .state = ECS_VIRQ, .notify_vcpu_id = 1 };
    /* A timer of another vCPU would be lost. */
    dom.evtchn[3] = (struct evtchn){ .state = ECS_VIRQ, .notify_vcpu_id = 2 };
    dom.evtchn[4] = (struct evtchn){
        .state = ECS_INTERDOMAIN, .notify_vcpu_id = 3,
        .u.interdomain = { 5, &dom0 } };
    /* So would what the daemon is told. */
    dom.evtchn[5] = (struct evtchn){
        .state = ECS_INTERDOMAIN, .xen_consumer = 1,
        .u.interdomain = { 6, &dom0 } };
    dom.evtchn[6] = (struct evtchn){ .state = ECS_UNBOUND };
    dom.evtchn[7] = (struct evtchn){ .state = ECS_IPI, .notify_vcpu_id = 1 };
    expect("CALL", do_call((struct xen_dsm_call)REGISTER(INFO, 0), &rc), 0);
    expect("not paused", place(1, 0, &info), -EBUSY);
    expect("it stays", page(XEN_DSM_INVAL, INFO), -EBUSY);
    domain_pause_by_systemcontroller_nosync(&dom);
    waited[0] = 0;
    when_locked = sender;
    expect("PLACE", place(1, 0, &info), 0);
    if ( strcmp(waited, "1 2 4 remote 5 7 ") )
        die("waited for: %s", waited);
    expect("it is an ordinary page", page(XEN_DSM_INVAL, INFO), 0);
    expect("no lock is left", dom.event_lock.held | dom.evtchn[1].lock.held |
                              dom0.evtchn[5].lock.held, false);
    expect("no pause is left", dom.pauses, 0);
}

/* Where it was: anywhere in a page; a frame that the guest has freed. */
static void info_places(void)
{
    uint64_t info;
    int rc;

    begin(0);
    frames[64 + INFO].count_info++;
    dom.vcpu[2]->vcpu_info_area = (struct guest_area){
        &frames[64 + INFO], frames[64 + INFO].bytes + 0x540 };
    domain_pause_by_systemcontroller_nosync(&dom);
    /* It could not be registered there. */
    expect("PLACE elsewhere", place(2, 1, &info), -EOPNOTSUPP);
    expect("nothing was done", DSM->vcpu[2].slice || dom.vcpu[2]->paused ||
                               !dom.vcpu[2]->vcpu_info_area.pg, false);
    expect("PLACE here", place(2, 0, &info), 0);
    dom.is_shut_down = true;
    expect("PLACE", place(2, 1, &info), 0);
    expect("where it was", info, INFO << 12 | 0x540);
    dom.is_shut_down = false;

    begin(1);
    expect("CALL", do_call((struct xen_dsm_call)REGISTER(INFO, 0), &rc), 0);
    domain_pause_by_systemcontroller_nosync(&dom);
    frames[64 + INFO].m2p = INVALID_M2P_ENTRY;
    expect("PLACE", place(1, 0, &info), 0);
    expect("nowhere", info, 0);
    expect("given back", frames[64 + INFO].count_info, PGC_allocated | 1);
}

static void went(void)
{
    DSM->vcpu[1].slice = 0;
    dom.vcpu[1]->paused++;
    dom.pauses++;
}

static void died(void)
{
    dom.is_dying = true;
    dom.pauses++;
}

/* The vCPU goes, or the domain dies, while its vcpu_info is registered. */
static void info_too_late(void)
{
    const struct xen_dsm_call what = REGISTER(INFO, 0);
    int rc;

    begin(1);
    when_mapped = went;
    expect("CALL", do_call(what, &rc), -EXDEV);
    expect("rc", rc, 0);
    expect("given back", frames[64 + INFO].count_info, PGC_allocated | 1);

    begin(1);
    when_mapped = died;
    expect("CALL", do_call(what, &rc), -ESRCH);
    expect("given back", frames[64 + INFO].count_info, PGC_allocated | 1);
    expect("not mapped", !dom.vcpu[1]->vcpu_info_area.pg, true);
}

static const struct test_case cases[] = {
    { "a call and its result", to_and_fro },
    { "whose result", whose },
    { "who called has moved", moved },
    { "the CPU that called has left", its_cpu_left },
    { "interrupts in between", nested },
    { "a call that is under way", under_way },
    { "calls before an INIT", forgotten },
    { "replies that are none", bad_replies },
    { "calls and a full ring", crowded },
    { "calls at the end", the_end },
    { "calls and places", placing },
    { "calls that are refused", refused },
    { "an upcall vector", upcall },
    { "results with bytes", with_result },
    { "ports of somebody else", bad_results },
    { "calls about ports", of_ports },
    { "events here", events_here },
    { "events of several slices", events_of_several },
    { "a vcpu_info", vcpu_info },
    { "a vcpu_info at a bad place", bad_places },
    { "ghosts", ghosts },
    { "a page that a ghost waited for", waiting },
    { "a vcpu_info and who sends", senders },
    { "where a vcpu_info was", info_places },
    { "a vcpu_info too late", info_too_late },
};

int main(int argc, char **argv)
{
    return main_of(cases, ARRAY_SIZE(cases), argc, argv);
}
