/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: accesses that find no memory.
 *
 * The home of a page says that there is none, to who asked.  Somebody may
 * populate it there a moment later, and tell another vCPU of this slice, which
 * must not find a hole then.  So the frame stays in state I or U, and a vCPU
 * that had asked gets a note (struct dsm_hole): this frame is a hole for the
 * instruction at that RIP and RSP, which all look-ups of that vCPU follow
 * (dsm_p2m_fixup()), those of Xen for its instruction or hypercall as well.  An
 * instruction that misses other pages, too, comes again, and has its note; if
 * they have no memory, either, all of them are in it.  Otherwise one that moves
 * from such a frame to another would be told of the one when it asks for the
 * other, for ever.  Of more than DSM_HOLES the first goes: REP is done with it.
 *
 * Who waits as well, and asked too late for that answer, waits on.  So does who
 * asked again, since he was woken meanwhile: a miss that the daemon has not
 * read is none that the home has answered.  Who has the frame in its note, and
 * asks all the same, had looked before it was told: it is in there once.
 *
 * A note is over when
 *
 *   - the vCPU is about to enter the guest at another RIP or RSP: its access
 *     was made, or it does something else now;
 *   - it looks the frame up from there;
 *   - anything else is done with the frame that wakes who waits for it: an
 *     instruction that finds its page does not come here;
 *   - it gets other registers, or runs in another slice.
 *
 * Until then it takes no interrupt (dsm_in_instruction()): the handler could
 * hear that there is memory, and the access comes after it.  With a tick on its
 * way each time that it goes on, it would never get there otherwise.  If its
 * instruction misses nothing any more, as somebody has changed the guest's
 * tables, interrupts wait until the vCPU leaves the guest for another reason.
 * An exception of that instruction is not seen here: if its handler leaves the
 * guest at no other place, and returns, the note is still there.
 *
 * Another domain has no instruction, and a note of its own (hvm/dsm_foreign.c).
 *
 * Locking: dsm->lock, for all of it.  .nr is looked at without it first: who
 * was told has been paused, and was unpaused after it.  Only the vCPU itself
 * can see its note, whatever another one is doing.
 */

#include <xen/event.h>
#include <xen/sched.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>

static bool is_there(const struct dsm_hole *hole)
{
    const struct cpu_user_regs *regs = guest_cpu_user_regs();

    return hole->rip == regs->rip && hole->rsp == regs->rsp;
}

/* Where in the note; .nr if it is not there. */
static unsigned int find(const struct dsm_hole *hole, unsigned long gfn)
{
    unsigned int i = 0;

    while ( i < hole->nr && hole->gfn[i] != gfn )
        i++;

    return i;
}

static void forget(struct dsm_domain *dsm, struct dsm_hole *hole,
                   unsigned int i)
{
    hole->nr--;
    memmove(&hole->gfn[i], &hole->gfn[i + 1],
            (hole->nr - i) * sizeof(hole->gfn[0]));
    dsm->nr_holes -= !hole->nr;
}

static void forget_all(struct dsm_domain *dsm, struct dsm_hole *hole)
{
    dsm->nr_holes -= !!hole->nr;
    hole->nr = 0;
}

static bool was_read(const struct dsm_domain *dsm, const struct dsm_vcpu *w)
{
    return !w->unsent && dsm_ring_was_read(dsm, w->entry);
}

bool dsm_show_hole(struct dsm_domain *dsm, unsigned int vcpu, unsigned long gfn)
{
    struct dsm_vcpu *w = &dsm->vcpu[vcpu];
    struct dsm_hole *hole = &w->hole;

    if ( !w->waiting || w->gfn != gfn || !was_read(dsm, w) )
        return false;

    if ( hole->rip != w->rip || hole->rsp != w->rsp )
        forget_all(dsm, hole);
    /* It had looked once more before it was told.  Its end forgets one. */
    if ( find(hole, gfn) < hole->nr )
        return true;
    if ( hole->nr == DSM_HOLES )
        forget(dsm, hole, 0);

    hole->rip = w->rip;
    hole->rsp = w->rsp;
    hole->gfn[hole->nr] = gfn;
    dsm->nr_holes += !hole->nr;
    hole->nr++;

    return true;
}

void dsm_end_hole(struct dsm_domain *dsm, unsigned int vcpu)
{
    forget_all(dsm, &dsm->vcpu[vcpu].hole);
}

void dsm_end_holes(struct domain *d, unsigned long gfn)
{
    struct dsm_domain *dsm = d->arch.dsm;
    unsigned int i;

    for ( i = 0; dsm->nr_holes && i < d->max_vcpus; i++ )
    {
        struct dsm_hole *hole = &dsm->vcpu[i].hole;
        unsigned int at = find(hole, gfn);

        if ( at == hole->nr )
            continue;
        forget(dsm, hole, at);
        /* It may be in the guest, with interrupts that it did not take. */
        if ( !hole->nr )
            vcpu_kick(d->vcpu[i]);
    }
}

bool dsm_finds_hole(const struct domain *d, unsigned long gfn)
{
    struct dsm_domain *dsm = d->arch.dsm;
    struct dsm_hole *hole;
    bool found;

    if ( current->domain != d )
        return dsm_others_find_hole(dsm, gfn);

    hole = &dsm->vcpu[current->vcpu_id].hole;
    if ( likely(!ACCESS_ONCE(hole->nr)) )
        return false;

    spin_lock(&dsm->lock);
    found = find(hole, gfn) < hole->nr;
    if ( found && !is_there(hole) )
    {
        forget_all(dsm, hole);
        found = false;
    }
    spin_unlock(&dsm->lock);

    return found;
}

bool dsm_is_at_hole(const struct vcpu *v)
{
    struct dsm_domain *dsm = v->domain->arch.dsm;
    struct dsm_hole *hole = &dsm->vcpu[v->vcpu_id].hole;
    bool at;

    if ( likely(!ACCESS_ONCE(hole->nr)) )
        return false;

    spin_lock(&dsm->lock);
    at = hole->nr && is_there(hole);
    if ( !at )
        forget_all(dsm, hole);
    spin_unlock(&dsm->lock);

    return at;
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
