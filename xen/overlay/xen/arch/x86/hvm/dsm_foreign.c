/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: what other domains ask for.
 *
 * Who maps or copies a page of the domain that is not here, and is no vCPU of
 * it, can't be stopped: the look-up says that the page is not there yet, the
 * daemon is told, and he tries again, each 100 us (xenforeignmemory_map()), if
 * he gets a CPU.  DSM_FOREIGN frames are kept in mind, of each of which the
 * daemon is told once, and again if it has read that and has not answered after
 * a while.  One that nobody has looked at since makes room for another frame;
 * but not as soon as that, as a home may take longer, and an answer that finds
 * nobody who has asked is for nobody.
 *
 * He has no instruction that an answer could be for (hvm/dsm_hole.c).  "There
 * is no memory" is a note of that frame, then: who looks next finds a hole,
 * whoever that is, and for a moment from then on, since one call may look
 * twice.  How soon he looks is nobody's to say, as he needs a CPU for that; who
 * has gone never does.  So the note ends by itself, as it does with whatever
 * else is done with the frame that wakes who waits.  Who had looked before the
 * note was there, and comes to ask when it is, asks nothing, and finds it.
 *
 * As for a vCPU, the answer is none to a miss that the daemon has not read: it
 * is asked for again, since memory may have come there meanwhile.  But who asks
 * for a frame that is asked for already is not told apart from who did before,
 * and gets that one's answer, if it is a little older than his question; so one
 * to the first report is an answer, whether the last one was read or not, as
 * long as no more is wanted.
 *
 * A frame is asked for, or has a note, or neither; never both.
 *
 * Locking: dsm->lock, for all of it.  nr_foreign_holes is looked at without it
 * first: who misses a note in that way comes to ask, and that takes the lock.
 * Context: any but a hard interrupt.
 */

#include <xen/sched.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>

/* A miss that nobody answered is reported again after this time. */
#define FOREIGN_AGAIN MILLISECS(50)

/* Nobody has looked for so long: he has gone, or can ask again. */
#define FOREIGN_GONE SECONDS(1)

/* Another domain finds no memory, if it looks so soon. */
#define FOREIGN_HOLE MILLISECS(50)
/* And for so long from then on. */
#define FOREIGN_FOUND MILLISECS(1)

static void end_note(struct dsm_domain *dsm, struct dsm_foreign *f)
{
    dsm->nr_foreign_holes -= !!f->hole_until;
    f->hole_until = 0;
}

static void end_old_note(struct dsm_domain *dsm, struct dsm_foreign *f,
                         s_time_t now)
{
    if ( now >= f->hole_until )
        end_note(dsm, f);
}

bool dsm_foreign_miss(struct dsm_domain *dsm, unsigned long gfn,
                      unsigned int want)
{
    s_time_t now = NOW();
    struct xen_dsm_ring_entry entry = {
        .type = XEN_DSM_PAGE_MISS,
        .want = want,
        .flags = XEN_DSM_MISS_FOREIGN,
        .gfn = gfn,
        .when_ns = now,
    };
    struct dsm_foreign *slot = NULL;
    bool is_known = false;
    uint32_t nr = dsm->prod;
    unsigned int i;

    dsm->stats.foreign++;

    for ( i = 0; i < ARRAY_SIZE(dsm->foreign); i++ )
    {
        struct dsm_foreign *f = &dsm->foreign[i];
        bool is_free;

        end_old_note(dsm, f, now);
        is_free = !f->want && !f->hole_until;

        if ( !is_free && f->gfn == gfn )
        {
            f->asked = now;
            if ( f->hole_until ||
                 (f->want >= want && (now - f->since < FOREIGN_AGAIN ||
                                      !dsm_ring_was_read(dsm, f->last))) )
                return false;
            slot = f;
            is_known = true;
            break;
        }
        if ( is_free ||
             (!slot && f->want && now - f->asked >= FOREIGN_GONE) )
            slot = f;
    }

    if ( is_known )
        entry.want = max(slot->want, want);
    if ( !slot || !dsm_ring_put(dsm, &entry) )
    {
        dsm->stats.foreign_lost++;
        return false;
    }

    if ( !is_known || slot->want < want )
        slot->first = nr;
    slot->last = nr;
    slot->gfn = gfn;
    slot->want = entry.want;
    slot->since = slot->asked = now;

    return true;
}

void dsm_foreign_answered(struct dsm_domain *dsm, unsigned long gfn)
{
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(dsm->foreign); i++ )
        if ( dsm->foreign[i].gfn == gfn )
        {
            dsm->foreign[i].want = 0;
            end_note(dsm, &dsm->foreign[i]);
        }
}

void dsm_foreign_again(struct dsm_domain *dsm)
{
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(dsm->foreign); i++ )
        dsm->foreign[i].want = 0;
}

void dsm_show_hole_to_others(struct dsm_domain *dsm, unsigned long gfn)
{
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(dsm->foreign); i++ )
    {
        struct dsm_foreign *f = &dsm->foreign[i];

        if ( !f->want || f->gfn != gfn || !dsm_ring_was_read(dsm, f->first) )
            continue;
        f->want = 0;
        f->hole_until = NOW() + FOREIGN_HOLE;
        dsm->nr_foreign_holes++;
    }
}

bool dsm_others_find_hole(struct dsm_domain *dsm, unsigned long gfn)
{
    bool found = false;
    s_time_t now;
    unsigned int i;

    if ( likely(!ACCESS_ONCE(dsm->nr_foreign_holes)) )
        return false;

    spin_lock(&dsm->lock);
    now = NOW();
    for ( i = 0; i < ARRAY_SIZE(dsm->foreign); i++ )
    {
        struct dsm_foreign *f = &dsm->foreign[i];

        end_old_note(dsm, f, now);
        if ( !f->hole_until || f->gfn != gfn )
            continue;
        f->hole_until = min(f->hole_until, now + FOREIGN_FOUND);
        found = true;
    }
    spin_unlock(&dsm->lock);

    return found;
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
