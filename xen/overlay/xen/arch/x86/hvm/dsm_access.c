/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: accesses to pages that stay where they are.
 *
 * What a vCPU does with a page in state U is done where the page is.  The vCPU
 * is paused, and the access goes into the ring (ACCESS).  The daemon has it
 * made in the slice that has the page in state M (DO_ACCESS), and brings back
 * what was there (ACCESS_DONE).  Then the instruction is emulated once more,
 * and finds it (hvm/dsm_uncached.c).
 *
 * Exactly once.  An instruction may make several accesses, and it begins from
 * its first one each time.  So all that it has made are kept until it ends,
 * with their places in it: the number of the emulator's call, and the linear
 * address.  Each try gets what those before have got, whatever has become of
 * the page and of the guest's tables since, and asks for the next one.  Nothing
 * else of that vCPU runs in between: it takes no interrupt before its
 * instruction has ended, and an INIT, which ends it, throws all of it away, and
 * the result that is still to come.  If a call is another one than before (an
 * address that the instruction reads from memory, and that somebody has changed
 * meanwhile), it begins anew: what it has written then is written twice.
 *
 * An answer names an access that is under way, by a number that was never used
 * before; all others are refused.
 *
 * Where the access is made it is one instruction of Xen's on the page itself,
 * with LOCK if it compares and exchanges: what a vCPU of that slice could have
 * done.  So to all vCPUs there it is as if it came from one of them.  It is
 * done when the answer is here, which is more than the order of x86 needs.
 *
 * Locking: dsm->lock for what is under way.  What an instruction has made is
 * its vCPU's, or who has paused that.  Context: no locks held, but see dsm.c.
 */

#include <xen/errno.h>
#include <xen/sched.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>

/* ---- Where the access is wanted ---- */

/* dsm->lock is held. */
static void put_access(struct dsm_domain *dsm, unsigned int vcpu)
{
    struct dsm_accesses *a = &dsm->vcpu[vcpu].accesses;
    const struct xen_dsm_access *what = &a->done[a->nr - 1].what;
    const struct xen_dsm_ring_entry entry = {
        .type = XEN_DSM_ACCESS,
        .want = what->op,
        .flags = what->offset | (flsl(what->width) - 1) << PAGE_SHIFT,
        .vcpu = vcpu,
        .gfn = what->gfn,
        .rip = a->rip,
        .when_ns = NOW(),
        .vectors = { a->cookie, what->old, what->value },
    };

    a->unsent = !dsm_ring_put(dsm, &entry);
    if ( a->unsent )
        dsm->stats.ring_full++;
}

bool dsm_flush_accesses(struct domain *d, bool all)
{
    struct dsm_domain *dsm = d->arch.dsm;
    bool put = false;
    unsigned int i;

    for ( i = 0; i < d->max_vcpus; i++ )
    {
        const struct dsm_accesses *a = &dsm->vcpu[i].accesses;

        if ( !a->asked || !(all || a->unsent) )
            continue;
        put_access(dsm, i);
        put = true;
    }

    return put;
}

bool dsm_is_accessing(const struct dsm_domain *dsm, unsigned int vcpu)
{
    return dsm->vcpu[vcpu].accesses.asked;
}

const struct dsm_access *dsm_find_access(const struct vcpu *v,
                                         unsigned int call,
                                         unsigned long linear)
{
    const struct dsm_accesses *a =
        &v->domain->arch.dsm->vcpu[v->vcpu_id].accesses;
    unsigned int i;

    for ( i = 0; i < a->nr; i++ )
        if ( a->done[i].call == call && a->done[i].linear == linear )
            return &a->done[i];

    return NULL;
}

bool dsm_access_fits(struct vcpu *v, unsigned int call, unsigned int op,
                     unsigned long linear, unsigned int bytes)
{
    const struct dsm_accesses *a =
        &v->domain->arch.dsm->vcpu[v->vcpu_id].accesses;
    unsigned int i;

    for ( i = 0; i < a->nr; i++ )
    {
        const struct dsm_access *made = &a->done[i];

        if ( made->call != call ||
             (made->what.op == op && made->linear >= linear &&
              made->linear + made->what.width <= linear + bytes) )
            continue;

        if ( dsm_has_changed(v) )
            gprintk(XENLOG_WARNING,
                    "DSM: instruction at %#lx has changed: executed twice\n",
                    a->rip);
        dsm_end_accesses(v);
        return false;
    }

    return true;
}

bool dsm_has_changed(const struct vcpu *v)
{
    const struct dsm_accesses *a =
        &v->domain->arch.dsm->vcpu[v->vcpu_id].accesses;
    unsigned int i;

    for ( i = 0; i < a->nr; i++ )
    {
        const struct dsm_access *made = &a->done[i];

        if ( made->what.op == XEN_DSM_ACCESS_WRITE ||
             (made->what.op == XEN_DSM_ACCESS_CMPXCHG &&
              made->seen == made->what.old) )
            return true;
    }

    return false;
}

void dsm_end_accesses(struct vcpu *v)
{
    struct dsm_accesses *a = &v->domain->arch.dsm->vcpu[v->vcpu_id].accesses;

    ASSERT(!a->asked);
    a->nr = 0;
}

bool dsm_in_instruction(const struct vcpu *v)
{
    const struct dsm_vcpu *w = &v->domain->arch.dsm->vcpu[v->vcpu_id];

    /*
     * Who waits is about to stop, and is asked once more when it goes on: what
     * is put into its next entry now would come before the access, though it
     * may be told by then that there is no memory.
     */
    return w->accesses.nr || ACCESS_ONCE(w->waiting) || dsm_is_at_hole(v);
}

void dsm_cancel_instruction(struct vcpu *v)
{
    struct dsm_domain *dsm = v->domain->arch.dsm;
    struct dsm_accesses *a = &dsm->vcpu[v->vcpu_id].accesses;

    /* By an INIT, for which it was stopped before. */
    if ( !v->is_initialised )
        dsm_forget_calls(dsm, v->vcpu_id);

    spin_lock(&dsm->lock);
    /* It waits for the answer, which is thrown away then. */
    if ( a->asked )
        a->forgotten = true;
    else
        dsm_end_accesses(v);
    dsm_end_hole(dsm, v->vcpu_id);
    spin_unlock(&dsm->lock);
}

int dsm_access_away(struct vcpu *v, const struct xen_dsm_access *access,
                    unsigned int call, unsigned long linear)
{
    struct domain *d = v->domain;
    struct dsm_domain *dsm = d->arch.dsm;
    struct dsm_accesses *a = &dsm->vcpu[v->vcpu_id].accesses;
    int rc = -ERESTART;

    if ( a->nr == DSM_ACCESSES )
        return -E2BIG;

    spin_lock(&dsm->lock);
    if ( dsm->dead )
        rc = -EIO;
    else
    {
        a->done[a->nr] = (struct dsm_access){
            .call = call, .linear = linear, .what = *access };
        a->nr++;
        a->rip = guest_cpu_user_regs()->rip;
        a->cookie = ++dsm->cookie;
        a->asked = true;
        a->forgotten = false;
        dsm->stats.accesses++;
        vcpu_pause_nosync(v);
        put_access(dsm, v->vcpu_id);
    }
    spin_unlock(&dsm->lock);

    if ( rc == -ERESTART )
        dsm_notify(d);

    return rc;
}

void dsm_access_here(struct vcpu *v, unsigned int call, unsigned long linear,
                     unsigned int bytes)
{
    struct dsm_accesses *a = &v->domain->arch.dsm->vcpu[v->vcpu_id].accesses;

    if ( a->nr < DSM_ACCESSES )
        a->done[a->nr++] = (struct dsm_access){
            .call = call,
            .linear = linear,
            .what = { .op = XEN_DSM_ACCESS_WRITE, .width = bytes },
        };
}

static uint64_t beyond(unsigned int width)
{
    return width < 8 ? ~0UL << (8 * width) : 0;
}

/* Can that be the answer to the access? */
static bool may_say(const struct xen_dsm_access *what,
                    const struct xen_dsm_access_done *done)
{
    if ( done->flags & XEN_DSM_ACCESS_AGAIN ||
         what->op == XEN_DSM_ACCESS_WRITE )
        return !done->old;

    return !(done->old & beyond(what->width));
}

int dsm_access_done(struct domain *d, const struct xen_dsm_access_done *done)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct dsm_accesses *a;
    struct vcpu *v;
    int rc = -ESRCH;

    if ( done->flags & ~XEN_DSM_ACCESS_AGAIN )
        return -EINVAL;

    v = domain_vcpu(d, done->vcpu);
    if ( !v )
        return -ENOENT;

    a = &dsm->vcpu[v->vcpu_id].accesses;
    spin_lock(&dsm->lock);
    if ( a->asked && a->cookie == done->cookie )
    {
        struct dsm_access *made = &a->done[a->nr - 1];

        rc = -EINVAL;
        if ( may_say(&made->what, done) )
        {
            made->seen = done->old;
            if ( done->flags & XEN_DSM_ACCESS_AGAIN )
                a->nr--;
            a->asked = false;
            if ( a->forgotten )
                dsm_end_accesses(v);
            vcpu_unpause(v);
            rc = 0;
        }
    }
    spin_unlock(&dsm->lock);

    return rc;
}

/* ---- Where it is made ---- */

int dsm_check_access(const struct xen_dsm_access *access)
{
    bool compares = access->op == XEN_DSM_ACCESS_CMPXCHG;
    bool writes = compares || access->op == XEN_DSM_ACCESS_WRITE;

    if ( !writes && access->op != XEN_DSM_ACCESS_READ )
        return -EINVAL;

    if ( access->width != 1 && access->width != 2 && access->width != 4 &&
         access->width != 8 )
        return -EINVAL;

    /* Within 8 bytes that are aligned it is one access on every CPU. */
    if ( access->offset >= PAGE_SIZE ||
         access->offset % 8 + access->width > 8 || access->in_use )
        return -EINVAL;

    if ( (access->old & (compares ? beyond(access->width) : ~0UL)) ||
         (access->value & (writes ? beyond(access->width) : ~0UL)) )
        return -EINVAL;

    return 0;
}

static uint64_t read_width(const void *p, unsigned int width)
{
    switch ( width )
    {
    case 1:
        return read_atomic((const uint8_t *)p);

    case 2:
        return read_atomic((const uint16_t *)p);

    case 4:
        return read_atomic((const uint32_t *)p);

    default:
        return read_atomic((const uint64_t *)p);
    }
}

static void write_width(void *p, uint64_t value, unsigned int width)
{
    switch ( width )
    {
    case 1:
        write_atomic((uint8_t *)p, (uint8_t)value);
        break;

    case 2:
        write_atomic((uint16_t *)p, (uint16_t)value);
        break;

    case 4:
        write_atomic((uint32_t *)p, (uint32_t)value);
        break;

    default:
        write_atomic((uint64_t *)p, value);
        break;
    }
}

void dsm_make_access(void *page, struct xen_dsm_access *access)
{
    void *p = page + access->offset;

    switch ( access->op )
    {
    case XEN_DSM_ACCESS_READ:
        access->old = read_width(p, access->width);
        break;

    case XEN_DSM_ACCESS_WRITE:
        write_width(p, access->value, access->width);
        break;

    case XEN_DSM_ACCESS_CMPXCHG:
        access->old = __cmpxchg(p, access->old, access->value, access->width);
        break;
    }

    smp_mb(); /* It is done before the daemon says so. */
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
