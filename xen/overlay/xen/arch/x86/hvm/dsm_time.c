/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: one time for a guest that is on several hosts.
 *
 * What a guest is told about its time is otherwise the host's: a line through
 * the last point at which this CPU was compared with a clock, and another one
 * each second.  Hosts have different ones.  So a guest whose vCPUs are to run
 * on several hosts gets one line for its life, the same in all slices: its
 * system time is a function of its TSC, which hosts agree about (SET_TSC).
 * Nobody has to tell anybody anything afterwards.
 *
 * The guest is told that its TSC is stable, since the function is one: else
 * Linux compares each time that it reads with the last one that any CPU has
 * read, which is in one cache line, and so in one page.
 *
 * A timer is set to a time of the guest, and Xen has those of the host.  What
 * is left until then is the same in both, but for how far the line is off in
 * that time; so it is computed anew each time that a timer is set.
 *
 * The line may be n times slower than the host's clock.  Then a fault of n
 * times 1 us is to the guest what one of 1 us is without that: ticks, time
 * slices and time-outs are of its time.  A timer takes n times as long.
 *
 * Hosts' TSCs are not equally quick, and the line is the same everywhere.  So a
 * slice that is behind jumps (JUMP): its vCPUs' TSC, and with it their time, is
 * ahead of what it was.  The line has no part in it: moved as well, it would
 * say the old time for the new TSC.
 *
 * Locking: the line is set before the guest runs, and stays.  The TSC's offset
 * of a slice changes while none of its vCPUs runs (domain_pause()), so whoever
 * asks for a time on a vCPU's behalf, which is in that vCPU's context, has one
 * time from beginning to end, and its timers are set by the same.  A vCPU that
 * is started gets the offset of vCPU 0, with the domain's lock held, by others
 * than itself: so that lock is held, too, but not while vCPUs are waited for,
 * who may want it.  Timers have locks of their own, which come after it, as
 * they do when a vCPU is reset.  dsm->lock is not held.
 */

#include <xen/errno.h>
#include <xen/sched.h>
#include <xen/time.h>
#include <xen/timer.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/hvm/hvm.h>
#include <asm/hvm/vlapic.h>
#include <asm/msr.h>
#include <asm/time.h>

/* A year, which does not overflow with XEN_DSM_MAX_SLOW. */
#define LEFT_MAX ((s_time_t)365 * 86400 * 1000000000L)

bool dsm_plain_tsc(const struct domain *d)
{
    return !d->arch.vtsc &&
           (!hvm_tsc_scaling_supported ||
            d->arch.hvm.tsc_scaling_ratio == hvm_default_tsc_scaling_ratio);
}

bool dsm_time_info(const struct domain *d, struct vcpu_time_info *u)
{
    const struct xen_dsm_time *line = &d->arch.dsm->time;

    if ( !line->mul )
        return false;

    *u = (struct vcpu_time_info){
        .tsc_timestamp = line->tsc,
        .system_time = line->ns,
        .tsc_to_system_mul = line->mul,
        .tsc_shift = line->shift,
        .flags = XEN_PVCLOCK_TSC_STABLE_BIT,
    };

    return true;
}

/* Of the guest's time. */
static uint64_t ns_of(const struct xen_dsm_time *line, uint64_t ticks)
{
    const struct time_scale scale = {
        .shift = line->shift, .mul_frac = line->mul };

    return scale_delta(ticks, &scale);
}

s_time_t dsm_host_time(const struct domain *d, s_time_t guest)
{
    const struct xen_dsm_time *line = &d->arch.dsm->time;
    uint64_t tsc;
    s_time_t left;

    if ( !line->mul )
        return guest;

    /* All vCPUs of a slice have the same offset, and 0 has it before. */
    tsc = rdtsc_ordered() + d->vcpu[0]->arch.hvm.cache_tsc_offset;

    left = (uint64_t)guest - (line->ns + ns_of(line, tsc - line->tsc));

    /* Nobody waits for longer than that, however slow the clock is. */
    left = max(min(left, LEFT_MAX), -LEFT_MAX);

    return NOW() + left * line->slow;
}

int dsm_get_time(struct domain *d, struct xen_dsm_time *time)
{
    struct vcpu_time_info now;

    if ( !dsm_plain_tsc(d) )
        return -EOPNOTSUPP;

    collect_time_info(d->vcpu[0], &now);
    *time = (struct xen_dsm_time){
        .tsc = now.tsc_timestamp,
        .ns = now.system_time,
        .mul = now.tsc_to_system_mul,
        .shift = now.tsc_shift,
        .slow = d->arch.dsm->time.slow ?: 1,
    };

    return 0;
}

int dsm_set_time(struct domain *d, const struct xen_dsm_time *time)
{
    if ( !dsm_plain_tsc(d) )
        return -EOPNOTSUPP;

    if ( !time->mul || time->shift < -31 || time->shift > 31 ||
         !time->slow || time->slow > XEN_DSM_MAX_SLOW || time->pad[0] ||
         time->pad[1] )
        return -EINVAL;

    if ( d->creation_finished )
        return -EBUSY;

    d->arch.dsm->time = *time;

    return 0;
}

/* One that fires just now may fire twice: an event more than need be. */
static void bring_forward(struct timer *timer, s_time_t by)
{
    if ( timer_is_active(timer) )
        set_timer(timer, timer->expires - by);
}

int dsm_jump(struct domain *d, const struct xen_dsm_jump *jump)
{
    const struct xen_dsm_time *line = &d->arch.dsm->time;
    struct vcpu *v;
    s_time_t by;

    if ( !dsm_plain_tsc(d) )
        return -EOPNOTSUPP;

    if ( !line->mul || !jump->ticks || jump->ticks > cpu_khz )
        return -EINVAL;

    /* Of the host's time, as dsm_host_time(). */
    by = ns_of(line, jump->ticks) * line->slow;

    domain_pause(d);
    domain_lock(d);
    for_each_vcpu ( d, v )
    {
        uint64_t deadline = vlapic_tdt_msr_get(vcpu_vlapic(v));

        v->arch.hvm.cache_tsc_offset += jump->ticks;
        hvm_set_tsc_offset(v, v->arch.hvm.cache_tsc_offset, 0);

        bring_forward(&v->singleshot_timer, by);
        bring_forward(&v->poll_timer, by);
        if ( deadline )
            vlapic_tdt_msr_set(vcpu_vlapic(v), deadline);
    }
    domain_unlock(d);
    domain_unpause(d);

    return 0;
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
