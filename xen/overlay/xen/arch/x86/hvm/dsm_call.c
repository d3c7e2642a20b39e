/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: hypercalls that are done in another slice.
 *
 * The vCPU that calls is paused, and the call goes into the ring with what it
 * says (HCALL).  The daemon has it done in the slice of the vCPU or port that
 * it concerns (CALL), and brings the result back (REPLY).  Then the vCPU makes
 * the same hypercall once more, and gets the result.
 *
 * Once more, and not at once: an interrupt may come first, with hypercalls of
 * its own.  So a result is kept together with what was asked, and where: the
 * instruction, the stack pointer, the call and its argument.  A call that does
 * not have all of these in common takes no result of another one.  It need not
 * be the vCPU that waited: a kernel with preemption may have moved who called,
 * and his stack.  A vCPU waits for one call at a time, but an interrupt may
 * come before each second try, so there are several results; the oldest goes
 * when there is no place, and its call is done once more.  An INIT ends what
 * the vCPU did, so all its results go.
 *
 * A reply names a call that is under way, by a number that was never used
 * before; all others are refused.
 *
 * Locking: dsm->lock for what is under way.  Who does a call in its slice takes
 * the domain's own locks, as the hypercall would.  Context: no locks held.
 */

#include <xen/domain.h>
#include <xen/domain_page.h>
#include <xen/errno.h>
#include <xen/event.h>
#include <xen/sched.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/dsm_route.h>
#include <asm/hvm/irq.h>

#include <public/event_channel.h>
#include <public/hvm/hvm_op.h>
#include <public/vcpu.h>

/* ---- Where the call is made ---- */

/* dsm->lock is held. */
static void put_call(struct dsm_domain *dsm, unsigned int vcpu,
                     struct dsm_call *c)
{
    const struct xen_dsm_ring_entry entry = {
        .type = XEN_DSM_HCALL,
        .want = c->slice,
        .vcpu = vcpu,
        .gfn = c->cookie,
        .rip = c->what.op | (uint64_t)c->what.cmd << 32,
        .when_ns = NOW(),
        .vectors = { c->what.vcpu, c->what.arg[0], c->what.arg[1],
                     c->what.arg[2] },
    };

    c->unsent = !dsm_ring_put(dsm, &entry);
    if ( c->unsent )
        dsm->stats.ring_full++;
}

bool dsm_flush_calls(struct domain *d, bool all)
{
    struct dsm_domain *dsm = d->arch.dsm;
    bool put = false;
    unsigned int i, j;

    for ( i = 0; i < d->max_vcpus; i++ )
        for ( j = 0; j < DSM_CALLS; j++ )
        {
            struct dsm_call *c = &dsm->vcpu[i].calls[j];

            if ( c->state != DSM_CALL_ASKED || !(all || c->unsent) )
                continue;
            put_call(dsm, i, c);
            put = true;
        }

    return put;
}

bool dsm_is_calling(const struct dsm_domain *dsm, unsigned int vcpu)
{
    unsigned int i;

    for ( i = 0; i < DSM_CALLS; i++ )
        if ( dsm->vcpu[vcpu].calls[i].state == DSM_CALL_ASKED )
            return true;

    return false;
}

void dsm_forget_calls(struct dsm_domain *dsm, unsigned int vcpu)
{
    unsigned int i;

    spin_lock(&dsm->lock);
    for ( i = 0; i < DSM_CALLS; i++ )
    {
        struct dsm_call *c = &dsm->vcpu[vcpu].calls[i];

        if ( c->state == DSM_CALL_DONE )
            c->state = DSM_CALL_FREE;
        /* It waits for the reply, which is thrown away then. */
        c->forgotten = true;
    }
    dsm->vcpu[vcpu].waking = false;
    spin_unlock(&dsm->lock);
}

/* b is new, c may have a result; arg is what was asked, not what came back. */
static bool same_call(const struct dsm_call *c, const struct dsm_call *b,
                      unsigned int bytes)
{
    return c->rip == b->rip && c->rsp == b->rsp &&
           c->what.op == b->what.op && c->what.cmd == b->what.cmd &&
           c->what.vcpu == b->what.vcpu &&
           !memcmp(c->what.arg, b->what.arg, bytes);
}

/* A result for a call that is made by v, its own first. */
static struct dsm_call *find_result(const struct vcpu *v,
                                    const struct dsm_call *call,
                                    unsigned int bytes)
{
    const struct domain *d = v->domain;
    unsigned int n, i;

    for ( n = 0; n < d->max_vcpus; n++ )
        for ( i = 0; i < DSM_CALLS; i++ )
        {
            unsigned int vcpu = (v->vcpu_id + n) % d->max_vcpus;
            struct dsm_call *c = &d->arch.dsm->vcpu[vcpu].calls[i];

            if ( c->state == DSM_CALL_DONE && same_call(c, call, bytes) )
                return c;
        }

    return NULL;
}

/* A place that is free, or that of the oldest result. */
static struct dsm_call *free_place(struct dsm_vcpu *w)
{
    struct dsm_call *found = NULL;
    unsigned int i;

    for ( i = 0; i < DSM_CALLS; i++ )
    {
        struct dsm_call *c = &w->calls[i];

        if ( c->state == DSM_CALL_FREE )
            return c;
        if ( c->state == DSM_CALL_DONE &&
             (!found || c->cookie < found->cookie) )
            found = c;
    }

    return found;
}

int dsm_call_away(struct vcpu *v, const struct dsm_rule *rule,
                  unsigned int subject, unsigned int slice, void *arg)
{
    struct domain *d = v->domain;
    struct dsm_domain *dsm = d->arch.dsm;
    struct dsm_vcpu *w = &dsm->vcpu[v->vcpu_id];
    struct dsm_call call = {
        .state = DSM_CALL_ASKED,
        .rip = guest_cpu_user_regs()->rip,
        .rsp = guest_cpu_user_regs()->rsp,
        .slice = slice,
        .what = { .op = rule->op, .cmd = rule->cmd },
    };
    struct dsm_call *c;
    int rc = -ERESTART;

    ASSERT(rule->bytes <= sizeof(call.what.arg) &&
           rule->back <= sizeof(call.what.arg));
    memcpy(call.what.arg, arg, rule->bytes);
    if ( rule->concerns == DSM_CONCERNS_VCPU )
        call.what.vcpu = subject;

    spin_lock(&dsm->lock);

    c = find_result(v, &call, rule->bytes);
    if ( c )
    {
        c->state = DSM_CALL_FREE;
        rc = c->what.rc ?: 1;
        if ( rc == 1 && rule->back )
            memcpy(arg + rule->bytes,
                   (const uint8_t *)c->what.arg + rule->bytes,
                   rule->back - rule->bytes);
        spin_unlock(&dsm->lock);
        return rc;
    }

    /* Who waits for a call does not run, so there is a place. */
    c = free_place(w);
    if ( !c || dsm->dead )
    {
        spin_unlock(&dsm->lock);
        return -EIO;
    }

    call.cookie = ++dsm->cookie;
    *c = call;
    vcpu_pause_nosync(v);
    put_call(dsm, v->vcpu_id, c);

    spin_unlock(&dsm->lock);
    dsm_notify(d);

    return rc;
}

int dsm_reply(struct domain *d, const struct xen_dsm_reply *reply)
{
    struct dsm_domain *dsm = d->arch.dsm;
    const struct dsm_rule *rule;
    struct vcpu *v;
    unsigned int i;
    int rc = -ESRCH;

    /* No call that goes away says more than "done" or an error. */
    if ( reply->rc > 0 || reply->rc < -DSM_MAX_ERRNO ||
         reply->rc == -ERESTART )
        return -EINVAL;

    v = domain_vcpu(d, reply->vcpu);
    if ( !v )
        return -ENOENT;

    spin_lock(&dsm->lock);
    for ( i = 0; i < DSM_CALLS; i++ )
    {
        struct dsm_call *c = &dsm->vcpu[v->vcpu_id].calls[i];

        if ( c->state != DSM_CALL_ASKED || c->cookie != reply->cookie )
            continue;
        rule = dsm_rule(c->what.op, c->what.cmd);
        rc = -EINVAL;
        if ( !reply->rc && !dsm_may_say(rule, reply->arg, c->slice,
                                        dsm->nr_slices) )
            break;
        c->what.rc = reply->rc;
        if ( rule->back )
            memcpy((uint8_t *)c->what.arg + rule->bytes,
                   (const uint8_t *)reply->arg + rule->bytes,
                   rule->back - rule->bytes);
        c->state = c->forgotten ? DSM_CALL_FREE : DSM_CALL_DONE;
        vcpu_unpause(v);
        rc = 0;
        break;
    }
    spin_unlock(&dsm->lock);

    return rc;
}

/* ---- Where it is done ---- */

/* Its page stays here until PLACE says that the vCPU runs elsewhere. */
static int register_vcpu_info(struct vcpu *v, const uint64_t arg[3])
{
    const struct vcpu_register_vcpu_info *info = (const void *)arg;
    paddr_t addr = gfn_to_gaddr(_gfn(info->mfn)) + info->offset;

    if ( gfn_x(gaddr_to_gfn(addr)) != info->mfn )
        return -EINVAL;

    /*
     * What else is in that page would be here for good as well, and all other
     * slices would wait for it for ever.
     */
    if ( info->offset )
    {
        printk(XENLOG_G_ERR
               "%pv: vcpu_info at offset %#x of a page: kernel for one host\n",
               v, info->offset);
        return -EINVAL;
    }

    if ( v->vcpu_info_area.pg )
        return -EBUSY;

    return map_guest_area(v, addr, sizeof(vcpu_info_t), &v->vcpu_info_area,
                          vcpu_info_populate);
}

static int set_upcall_vector(struct vcpu *v, const uint64_t arg[3])
{
    const struct xen_hvm_evtchn_upcall_vector *upcall = (const void *)arg;

    if ( upcall->vector < 16 )
        return -EINVAL;

    v->arch.hvm.evtchn_upcall_vector = upcall->vector;
    hvm_assert_evtchn_irq(v);

    return 0;
}

/* As do_event_channel_op(), of a domain that is not the current one. */
static int event_channel_op(struct domain *d, unsigned int cmd, uint64_t arg[3])
{
    union {
        struct evtchn_bind_ipi ipi;
        struct evtchn_bind_virq virq;
        struct evtchn_unmask unmask;
        struct evtchn_close close;
        struct evtchn_status status;
    } *u = (void *)arg;
    int rc;

    switch ( cmd )
    {
    case EVTCHNOP_bind_ipi:
        return evtchn_bind_ipi(d, &u->ipi);

    case EVTCHNOP_bind_virq:
        return evtchn_bind_virq(d, &u->virq, 0);

    case EVTCHNOP_unmask:
        return evtchn_unmask(d, u->unmask.port);

    case EVTCHNOP_close:
        /* Who closes it has masked it before: in its own shared_info. */
        set_bit(u->close.port, d->shared_info->native.evtchn_mask);

        return evtchn_close(d, u->close.port, 1);

    case EVTCHNOP_status:
        if ( u->status.dom != DOMID_SELF )
            return -EINVAL;
        u->status.dom = d->domain_id;
        rc = evtchn_status(&u->status);
        u->status.dom = DOMID_SELF;

        return rc;
    }

    return -ENOSYS;
}

int dsm_do_call(struct domain *d, struct xen_dsm_call *call)
{
    const struct dsm_domain *dsm = d->arch.dsm;
    const struct dsm_rule *rule = dsm_rule(call->op, call->cmd);
    const uint8_t *arg = (const void *)call->arg;
    struct vcpu *v = NULL;
    unsigned int i, subject;

    if ( !rule->bytes )
        return -EOPNOTSUPP;

    subject = dsm_rule_subject(rule, call->vcpu, arg);
    if ( call->vcpu != (rule->concerns == DSM_CONCERNS_VCPU ? subject : 0) ||
         call->rc )
        return -EINVAL;
    for ( i = rule->bytes; i < sizeof(call->arg); i++ )
        if ( arg[i] )
            return -EINVAL;

    if ( rule->concerns == DSM_CONCERNS_VCPU )
    {
        v = domain_vcpu(d, subject);
        if ( !v )
            return -ENOENT;
    }

    if ( v ? dsm_elsewhere(dsm, v->vcpu_id)
           : dsm_port_slice(subject, dsm->nr_slices) != dsm->slice )
        return -EXDEV;

    switch ( call->op )
    {
    case __HYPERVISOR_vcpu_op:
        call->rc = register_vcpu_info(v, call->arg);
        break;

    case __HYPERVISOR_hvm_op:
        call->rc = set_upcall_vector(v, call->arg);
        break;

    case __HYPERVISOR_event_channel_op:
        call->rc = event_channel_op(d, call->cmd, call->arg);
        break;
    }

    /*
     * The vCPU has gone meanwhile, or the domain, and what was there of it was
     * given back, perhaps before this was done.
     */
    smp_mb(); /* vcpu_info_area before slice and is_dying */
    if ( v && (d->is_dying || dsm_elsewhere(dsm, v->vcpu_id)) )
    {
        dsm_give_back(v);
        call->rc = 0;
        return d->is_dying ? -ESRCH : -EXDEV;
    }

    /* A page is not here, and was asked for; or a lock is not free. */
    if ( call->rc == -EAGAIN || call->rc == -ERESTART )
    {
        call->rc = 0;
        return -EAGAIN;
    }

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
