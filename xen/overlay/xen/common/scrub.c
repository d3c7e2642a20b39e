/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scrubbing of one free buddy by several CPUs.
 *
 * scrub_free_pages() lets one CPU of a node scrub at a time.  Memory that a
 * node gets back at once merges into few buddies, of up to gigabytes: to have
 * more CPUs at work they must share one.  So the scrubber stays one, and alone
 * changes the buddy's state and its place in the heap.  Others help it: all
 * take chunks of frames from one cursor, upwards, and the scrubber does not
 * let go of the buddy before the last helper has finished its chunk.  Then all
 * frames below the cursor are clean.
 *
 * A chunk is small: who wants the buddy (check_and_stop_scrub(), with the heap
 * lock held) waits for the scrubber's chunk and the helpers', which are
 * scrubbed at the same time.
 *
 * Idle CPUs sleep.  One that finds nothing to help with says so before it looks
 * (asleep), and a scrubber with a lot to do wakes as many as may help.  A bit
 * may be of a CPU that has work meanwhile: it is interrupted once for nothing.
 *
 * Locking: team->lock, one for each node, is below all others: nothing is
 * taken while it is held, and it is never held while a frame is scrubbed.  The
 * heap lock is not taken here, and must not be held: helpers would keep who
 * waits for it waiting.  What a frame's count_info says of scrubbing belongs
 * to whoever has taken the chunk, as it belonged to the scrubber (scrub_state
 * keeps everybody else out).
 */

#include <xen/bitops.h>
#include <xen/cpumask.h>
#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/numa.h>
#include <xen/param.h>
#include <xen/perfc.h>
#include <xen/scrub.h>
#include <xen/smp.h>
#include <xen/softirq.h>
#include <xen/spinlock.h>

/*
 * scrub-cpus: how many CPUs of a node scrub at a time, 0: all.  Changeable at
 * run time, so that both ways can be measured on one host.
 */
static unsigned int __read_mostly opt_scrub_cpus = 1;
integer_runtime_param("scrub-cpus", opt_scrub_cpus);

#define CHUNK   8U      /* frames */
#define ENOUGH  512U    /* frames for which others are woken: 2 MiB */
#define PATIENT 800U    /* scrub_free_pages(): 8 frames before other work */

/* Who scrubs a buddy of a node; all of it under the lock. */
struct team {
    spinlock_t lock;
    struct page_info *pg;       /* NULL: nothing to help with */
    unsigned int next, end;     /* frames that nobody has taken yet */
    unsigned int helpers;       /* with a chunk under way, but the scrubber */
    unsigned int scrubbed;      /* frames, by all */
};

static struct team teams[MAX_NUMNODES] = {
    [0 ... MAX_NUMNODES - 1] = { .lock = SPIN_LOCK_UNLOCKED },
};

static cpumask_t asleep;

/* How many may help a scrubber. */
static unsigned int max_helpers(void)
{
    unsigned int cpus = ACCESS_ONCE(opt_scrub_cpus);

    return cpus ? cpus - 1 : NR_CPUS;
}

/* The next frames for the caller, which are now its own.  Lock held. */
static unsigned int take_chunk(struct team *team, unsigned int *from)
{
    unsigned int nr = min(CHUNK, team->end - team->next);

    *from = team->next;
    team->next += nr;

    return nr;
}

/* How many of them were dirty. */
static unsigned int scrub_chunk(struct page_info *pg, unsigned int nr)
{
    unsigned int i, dirty = 0;

    for ( i = 0; i < nr; i++ )
    {
        if ( !test_bit(_PGC_need_scrub, &pg[i].count_info) )
            continue;
        scrub_one_page(&pg[i]);
        pg[i].count_info &= ~PGC_need_scrub;
        dirty++;
    }

    return dirty;
}

static void wake_helpers(nodeid_t node)
{
    unsigned int cpu, nr = max_helpers();

    for_each_cpu ( cpu, &node_to_cpumask(node) )
    {
        if ( !nr )
            break;
        if ( cpu == smp_processor_id() || !cpu_online(cpu) ||
             !cpumask_test_and_clear_cpu(cpu, &asleep) )
            continue;
        /* A bare interrupt may come just before it goes to sleep. */
        cpu_raise_softirq(cpu, SCHEDULE_SOFTIRQ);
        nr--;
    }
}

static bool has_other_work(unsigned int cnt)
{
    unsigned int cpu = smp_processor_id();

    /* Going offline must not be delayed. */
    return !cpu_online(cpu) || (cnt > PATIENT && softirq_pending(cpu));
}

/* Nobody may join any more, and those who have leave. */
static unsigned int disband(struct team *team, unsigned int *scrubbed)
{
    unsigned int next;

    spin_lock(&team->lock);
    team->pg = NULL;
    while ( team->helpers )
    {
        spin_unlock(&team->lock);
        cpu_relax();
        spin_lock(&team->lock);
    }
    *scrubbed = team->scrubbed;
    next = team->next;
    spin_unlock(&team->lock);

    return next;
}

unsigned int scrub_buddy(nodeid_t node, struct page_info *pg,
                         unsigned int order, unsigned int *cnt,
                         unsigned int *dirty, bool *preempt)
{
    struct team *team = &teams[node];
    const unsigned int end = 1U << order;
    unsigned int from = pg->u.free.first_dirty;
    unsigned int nr, mine, all;

    spin_lock(&team->lock);
    team->pg = pg;
    team->next = from;
    team->end = end;
    team->scrubbed = 0;
    spin_unlock(&team->lock);

    if ( max_helpers() && end - from >= ENOUGH )
        wake_helpers(node);

    *dirty = 0;
    *preempt = false;
    do {
        spin_lock(&team->lock);
        nr = take_chunk(team, &from);
        spin_unlock(&team->lock);

        mine = scrub_chunk(&pg[from], nr);
        *dirty += mine;
        *cnt += nr + mine * 99;
        if ( has_other_work(*cnt) )
            *preempt = true;
    } while ( nr && from + nr < end && !*preempt &&
              pg->u.free.scrub_state != BUDDY_SCRUB_ABORT );

    from = disband(team, &all);
    *dirty += all;

    return from;
}

bool scrub_help(void)
{
    unsigned int cpu = smp_processor_id();
    nodeid_t node = cpu_to_node(cpu);
    struct team *team = &teams[node == NUMA_NO_NODE ? 0 : node];
    struct page_info *pg;
    unsigned int from, nr, dirty;
    bool helped = false;

    if ( !max_helpers() )
        return false;

    cpumask_set_cpu(cpu, &asleep);
    spin_lock(&team->lock);
    while ( team->pg && team->next < team->end &&
            team->helpers < max_helpers() && !has_other_work(PATIENT + 1) )
    {
        pg = team->pg;
        nr = take_chunk(team, &from);
        team->helpers++;
        spin_unlock(&team->lock);

        if ( !helped )
            cpumask_clear_cpu(cpu, &asleep);
        helped = true;
        dirty = scrub_chunk(&pg[from], nr);
        perfc_add(heap_frames_helped, dirty);

        spin_lock(&team->lock);
        team->scrubbed += dirty;
        team->helpers--;
    }
    spin_unlock(&team->lock);

    return helped;
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
