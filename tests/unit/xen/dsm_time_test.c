// SPDX-License-Identifier: GPL-2.0-only
/*
 * One time for a guest in several slices.
 *
 * usage: dsm_time_test --list | CASE
 */
#include "slice.h"

static void begin(unsigned int k)
{
    enable_slice(k, 2);
}

static int get_time(struct xen_dsm_time *time)
{
    struct xen_dsm_op op = { .cmd = XEN_DSM_GET_TIME };
    int rc = memop(&op);

    *time = op.u.time;

    return rc;
}

static int set_time(const struct xen_dsm_time *time)
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_SET_TIME, .u.time = *time });
}

/* A tick of the TSC is half a nanosecond. */
#define HALF { .tsc = 1000, .ns = 500000, .mul = 1U << 31, .slow = 1 }

/* ---- Cases ---- */

static void told(void)
{
    struct xen_dsm_time time = {};
    struct vcpu_time_info u = { .pad0 = 7, .pad1 = { 7 } };

    begin(0);
    expect("the host's", dsm_time_info(&dom, &u), false);
    expect("and nothing is said", u.pad0, 7);

    fake_tsc = 5000;
    fake_now = 123456;
    dom.vcpu[0]->arch.hvm.cache_tsc_offset = -4000;
    expect("GET_TIME", get_time(&time), 0);
    expect("tsc", time.tsc, 1000);
    expect("ns", time.ns, 123456);
    expect("mul", time.mul, 1U << 31);
    expect("shift", time.shift, 1);
    expect("slow", time.slow, 1);
    time.slow = 10;
    expect("SET_TIME", set_time(&time), 0);
    expect("GET_TIME", get_time(&time), 0);
    expect("slow", time.slow, 10);
    expect("pad", time.pad[0] | time.pad[1], 0);

    time.shift = -3;
    expect("SET_TIME", set_time(&time), 0);
    fake_tsc = fake_now = 99999999;
    expect("its own", dsm_time_info(&dom, &u), true);
    expect("tsc", u.tsc_timestamp, 1000);
    expect("ns", u.system_time, 123456);
    expect("mul", u.tsc_to_system_mul, 1U << 31);
    expect("shift", u.tsc_shift, -3);
    expect("flags", u.flags, XEN_PVCLOCK_TSC_STABLE_BIT);
    expect("pads", u.pad0 | u.pad1[0] | u.pad1[1], 0);
}

static void refused(void)
{
    static const struct { const char *name; struct xen_dsm_time time; } bad[] = {
        { "it stands still", { .tsc = 1, .shift = 1, .slow = 1 } },
        { "too far to the left", { .mul = 1, .shift = 32, .slow = 1 } },
        { "too far to the right", { .mul = 1, .shift = -32, .slow = 1 } },
        { "its timers do not wait", { .mul = 1 } },
        { "too slow", { .mul = 1, .slow = XEN_DSM_MAX_SLOW + 1 } },
        { "not zero", { .mul = 1, .slow = 1, .pad = { 1 } } },
        { "not zero", { .mul = 1, .slow = 1, .pad = { 0, 1 } } },
    };
    struct xen_dsm_time good = HALF, time;
    unsigned int i;

    begin(1);
    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
        expect(bad[i].name, set_time(&bad[i].time), -EINVAL);
    dom.creation_finished = true;
    expect("it ran", set_time(&good), -EBUSY);
    dom.creation_finished = false;
    dom.arch.vtsc = true;
    expect("emulated", set_time(&good), -EOPNOTSUPP);
    expect("emulated", get_time(&time), -EOPNOTSUPP);
    dom.arch.vtsc = false;
    dom.arch.hvm.tsc_scaling_ratio++;
    expect("scaled", set_time(&good), -EOPNOTSUPP);
    expect("scaled", get_time(&time), -EOPNOTSUPP);
    dom.arch.hvm.tsc_scaling_ratio--;
    expect("it is the host's", dom.arch.dsm->time.mul, 0);
    good.slow = XEN_DSM_MAX_SLOW;
    expect("as slow as may be", set_time(&good), 0);
    good.shift = 31;
    expect("to the left", set_time(&good), 0);
    good.shift = -31;
    expect("to the right", set_time(&good), 0);
}

/* Timers: what is left is the same in the guest's time and in the host's. */
static void timers(void)
{
    const struct xen_dsm_time time = HALF;

    begin(1);
    fake_now = 777;
    expect("the host's", dsm_host_time(&dom, 12345), 12345);

    expect("SET_TIME", set_time(&time), 0);
    dom.vcpu[0]->arch.hvm.cache_tsc_offset = 600;
    fake_tsc = 2400;            /* so the guest's is 3000, its time 501000 */
    expect("now", dsm_host_time(&dom, 501000), 777);
    expect("soon", dsm_host_time(&dom, 501300), 1077);
    expect("long ago", dsm_host_time(&dom, 1000), 777 - 500000);
    fake_tsc += 200;
    expect("nearer", dsm_host_time(&dom, 501300), 977);
    fake_now += 1000000;        /* whatever the host takes for the time */
    expect("in its time", dsm_host_time(&dom, 501300), 1000977);

    /* The same line, with other numbers. */
    expect("SET_TIME", set_time(&(struct xen_dsm_time){
        .tsc = 1000, .ns = 500000, .mul = 1U << 30, .shift = 1, .slow = 1 }), 0);
    expect("in its time", dsm_host_time(&dom, 501300), 1000977);
}

/* A clock that is slower than the host's: what is left takes longer. */
static void slow(void)
{
    const struct xen_dsm_time time = {
        .tsc = 1000, .ns = 500000, .mul = (1U << 31) / 8, .slow = 8 };

    begin(1);
    fake_now = 1000000;
    expect("SET_TIME", set_time(&time), 0);
    fake_tsc = 1000 + 1600;     /* 800 ns for the host, 100 for the guest */
    expect("now", dsm_host_time(&dom, 500100), 1000000);
    expect("soon", dsm_host_time(&dom, 500110), 1000080);
    expect("late", dsm_host_time(&dom, 500090), 1000000 - 80);
    expect("never", dsm_host_time(&dom, INT64_MAX),
           1000000 + 8L * 365 * 86400 * 1000000000);
    expect("always", dsm_host_time(&dom, INT64_MIN + 500100) < 0, true);
}

static int jump(uint64_t ticks)
{
    return memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_JUMP, .u.jump.ticks = ticks });
}

/* What vCPU v reads by the line. */
static uint64_t time_of(const struct vcpu *v)
{
    struct vcpu_time_info u;
    struct time_scale scale;

    expect("its own", dsm_time_info(&dom, &u), true);
    scale = (struct time_scale){ u.tsc_shift, u.tsc_to_system_mul };

    return u.system_time + scale_delta(
        fake_tsc + v->arch.hvm.cache_tsc_offset - u.tsc_timestamp, &scale);
}

/* All are ahead, those that are elsewhere, too; the line says so. */
static void jumps(void)
{
    const struct xen_dsm_time time = HALF;
    unsigned int i;

    begin(1);
    /* One runs here: the others are ghosts. */
    domain_pause_by_systemcontroller_nosync(&dom);
    dom.vcpu[3]->pause_flags |= 1UL << _VPF_down;
    expect("PLACE", memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_PLACE, .u.place = { .vcpu = 3, .slice = 1 } }), 0);
    dom.vcpu[3]->pause_flags = 0;
    domain_unpause_by_systemcontroller(&dom);
    expect("SET_TIME", set_time(&time), 0);
    for ( i = 0; i < NR_VCPUS; i++ )
        dom.vcpu[i]->arch.hvm.cache_tsc_offset = 600;
    dom.vcpu[1]->arch.hvm.cache_tsc_offset = -7000; /* the guest has set it */
    fake_tsc = 100000;
    expect("its time", time_of(dom.vcpu[0]), 500000 + (100600 - 1000) / 2);
    expect("JUMP", jump(2000), 0);
    expect("its time", time_of(dom.vcpu[0]), 500000 + (102600 - 1000) / 2);
    for ( i = 0; i < NR_VCPUS; i++ )
    {
        expect("ahead", dom.vcpu[i]->arch.hvm.cache_tsc_offset,
               i == 1 ? -5000 : 2600);
        expect("as the CPU has it", dom.vcpu[i]->tsc_offset,
               i == 1 ? -5000 : 2600);
    }
    expect("the line", dom.arch.dsm->time.tsc, 1000);
    expect("it goes on", dom.pauses, 0);
    expect("and is free", dom.domain_lock.held, false);
    expect("as far as may be", jump(cpu_khz), 0);
    expect("ahead", dom.vcpu[3]->arch.hvm.cache_tsc_offset, 2002600);
}

static void no_jump(void)
{
    const struct xen_dsm_time time = HALF;

    begin(1);
    expect("it has the host's", jump(1), -EINVAL);
    expect("SET_TIME", set_time(&time), 0);
    expect("nowhere", jump(0), -EINVAL);
    expect("too far", jump(cpu_khz + 1), -EINVAL);
    expect("back", jump(-1), -EINVAL);
    expect("too far, by 32 bits", jump((1ULL << 32) + 1), -EINVAL);
    dom.arch.vtsc = true;
    expect("emulated", jump(1), -EOPNOTSUPP);
    dom.arch.vtsc = false;
    dom.arch.hvm.tsc_scaling_ratio++;
    expect("scaled", jump(1), -EOPNOTSUPP);
    dom.arch.hvm.tsc_scaling_ratio--;
    expect("nobody waits", dom.pauses, 0);
    expect("it is where it was", dom.vcpu[0]->arch.hvm.cache_tsc_offset, 0);
    dom.creation_finished = true;
    expect("while it runs", jump(1), 0);
    expect("all of it", dom.vcpu[0]->arch.hvm.cache_tsc_offset, 1);
}

/* What is waited for comes when it is time for the guest, and not later. */
static void timers_after_a_jump(void)
{
    const struct xen_dsm_time time = {
        .tsc = 1000, .ns = 500000, .mul = (1U << 31) / 8, .slow = 8 };
    struct vcpu *v;

    begin(1);
    v = dom.vcpu[2];
    expect("SET_TIME", set_time(&time), 0);
    fake_now = 1000000;
    fake_tsc = 1000 + 1600;
    set_timer(&v->singleshot_timer, dsm_host_time(&dom, 500110));
    set_timer(&v->poll_timer, dsm_host_time(&dom, 500120));
    set_timer(&v->periodic_timer, 1000500);
    vlapic_tdt_msr_set(&v->vlapic, 3000);
    expect("a deadline", v->vlapic.left, 400);
    expect("JUMP", jump(80), 0);        /* 5 ns for the guest, 40 for the host */
    expect("soon", v->singleshot_timer.expires, 1000040);
    expect("as if it were set now", dsm_host_time(&dom, 500110), 1000040);
    expect("and later", v->poll_timer.expires, 1000120);
    expect("of the host", v->periodic_timer.expires, 1000500);
    expect("the deadline", v->vlapic.deadline, 3000);
    expect("is nearer", v->vlapic.left, 320);
    expect("who waits for nothing", dom.vcpu[1]->singleshot_timer.expires, 0);
    expect("who waits for nothing", dom.vcpu[1]->poll_timer.expires, 0);
    expect("who waits for nothing", dom.vcpu[1]->vlapic.left, 0);
    expect("JUMP", jump(1600), 0);
    expect("at once", v->singleshot_timer.expires, 1000040 - 800);
    expect("over", v->vlapic.deadline, 0);
    set_timer(&v->singleshot_timer, 5000000);
    expect("JUMP", jump(cpu_khz), 0);
    expect("by all that", v->singleshot_timer.expires, 4000000);

    /* The quickest line that another host may say: it is not later for that. */
    expect("SET_TIME", set_time(&(struct xen_dsm_time){
        .mul = -1U, .shift = 31, .slow = XEN_DSM_MAX_SLOW }), 0);
    cpu_khz = 20000000;
    set_timer(&v->singleshot_timer, -100L * 365 * 86400 * 1000000000);
    expect("JUMP", jump(cpu_khz), 0);
    expect("long ago", v->singleshot_timer.expires < 0, true);
}

static const struct test_case cases[] = {
    { "what a guest is told", told },
    { "times that are refused", refused },
    { "timers", timers },
    { "a slow clock", slow },
    { "a jump", jumps },
    { "jumps that are refused", no_jump },
    { "timers after a jump", timers_after_a_jump },
};

int main(int argc, char **argv)
{
    return main_of(cases, ARRAY_SIZE(cases), argc, argv);
}
