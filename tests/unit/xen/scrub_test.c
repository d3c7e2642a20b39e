// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several CPUs scrub one buddy: each frame once, none that is clean, and who
 * lets go of the buddy is alone in it.
 *
 * Most cases have one thread: a CPU that comes in between is played from
 * within the scrubbing of a frame.  Two have threads.
 *
 * usage: scrub_test --list | CASE
 */
#include <stdlib.h>

#include "fake_scrub/fake_scrub.h"
#include "fake_dsm/cases.h"
#include <xen/scrub.h>

#define ORDER 9
#define FRAMES (1U << ORDER)
#define CHUNK 8

__thread unsigned int this_cpu_number;
static __thread unsigned int locks_held;
nodeid_t node_of[NR_CPUS] = { 0, 0, 0, 0, 1, 1, NUMA_NO_NODE, 0 };
cpumask_t cpus_of[MAX_NUMNODES] = { { 0x8f }, { 0x30 } };
bool online[NR_CPUS] = { 1, 1, 1, 1, 1, 1, 1, 0 }, pending[NR_CPUS];
unsigned int counted_helped;

static struct page_info buddy[FRAMES];
static unsigned int scrubbed[FRAMES], raised[NR_CPUS], relaxed;
static void (*on_scrub)(unsigned int frame), (*on_relax)(void);

#define die(...)                                                        \
    do {                                                                \
        fprintf(stderr, __VA_ARGS__);                                   \
        fputc('\n', stderr);                                            \
        exit(1);                                                        \
    } while ( 0 )

#define expect(what, got, want)                                         \
    do {                                                                \
        long got_ = (got), want_ = (want);                              \
        if ( got_ != want_ )                                            \
            die("%s: %ld, expected %ld", what, got_, want_);            \
    } while ( 0 )

void spin_lock(spinlock_t *lock)
{
    expect("locks held before another one", locks_held, 0);
    locks_held++;
    pthread_mutex_lock(&lock->mutex);
}

void spin_unlock(spinlock_t *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    locks_held--;
}

void cpu_relax(void)
{
    expect("locks held while waiting", locks_held, 0);
    relaxed++;
    if ( on_relax )
        on_relax();
}

void cpu_raise_softirq(unsigned int cpu, unsigned int nr)
{
    expect("softirq", nr, SCHEDULE_SOFTIRQ);
    expect("locks held while waking", locks_held, 0);
    raised[cpu]++;
}

void scrub_one_page(const struct page_info *pg)
{
    unsigned int frame = pg - buddy;

    expect("locks held while scrubbing", locks_held, 0);
    scrubbed[frame]++;
    if ( on_scrub )
        on_scrub(frame);
}

/* ---- a buddy, and what becomes of it ---- */

static unsigned int result, cnt, dirty;
static bool preempt;

static void make_dirty(unsigned int from, unsigned int to)
{
    for ( ; from < to; from++ )
        buddy[from].count_info |= PGC_need_scrub;
}

static void scrub_order(unsigned int order)
{
    buddy->u.free.scrub_state = BUDDY_SCRUBBING;
    result = scrub_buddy(0, buddy, order, &cnt, &dirty, &preempt);
}

static void scrub(void)
{
    scrub_order(ORDER);
}

/* Frames below are clean, of which so many were not; the others are as before. */
static void expect_clean_below(unsigned int end, unsigned int were_dirty)
{
    unsigned int i, nr = 0;

    expect("first that may be dirty", result, end);
    for ( i = 0; i < FRAMES; i++ )
    {
        bool is_dirty = buddy[i].count_info & PGC_need_scrub;

        if ( scrubbed[i] > 1 || (i < end && is_dirty) ||
             (i >= end && scrubbed[i]) || (scrubbed[i] && is_dirty) )
            die("frame %u: scrubbed %u times, dirty: %d", i, scrubbed[i],
                is_dirty);
        nr += scrubbed[i];
    }
    expect("frames scrubbed", nr, were_dirty);
    expect("frames said to be scrubbed", dirty, were_dirty);
}

static void as_cpu(unsigned int cpu, bool helps)
{
    unsigned int before = this_cpu_number;

    this_cpu_number = cpu;
    expect("helps", scrub_help(), helps);
    this_cpu_number = before;
}

/* ---- cases ---- */

static void alone(void)
{
    make_dirty(0, FRAMES);
    scrub();
    expect_clean_below(FRAMES, FRAMES);
    expect("count", cnt, FRAMES * 100);
    expect("preempted", preempt, false);
    expect("waited", relaxed, 0);
}

static void one_looks(unsigned int frame)
{
    if ( frame == 3 )
        as_cpu(1, false);
}

static void by_default_nobody_helps(void)
{
    on_scrub = one_looks;
    alone();
    expect("helped", counted_helped, 0);
    scrub();
    expect("woken", raised[1], 0);
}

static void clean_frames(void)
{
    make_dirty(100, 110);
    make_dirty(300, 301);
    scrub();
    expect_clean_below(FRAMES, 11);
    expect("count", cnt, FRAMES - 11 + 1100);
}

static void first_dirty(void)
{
    make_dirty(0, FRAMES);
    buddy->u.free.first_dirty = 500;
    result = 0;
    scrub();
    expect("end", result, FRAMES);
    expect("below", scrubbed[499], 0);
    expect("first", scrubbed[500], 1);
    expect("frames said to be scrubbed", dirty, 12);
}

static void one_frame(void)
{
    make_dirty(0, FRAMES);
    scrub_order(0);
    expect_clean_below(1, 1);
}

static void abort_at_20(unsigned int frame)
{
    if ( frame == 20 )
        buddy->u.free.scrub_state = BUDDY_SCRUB_ABORT;
}

static void somebody_wants_it(void)
{
    make_dirty(0, FRAMES);
    on_scrub = abort_at_20;
    scrub();
    expect_clean_below(3 * CHUNK, 3 * CHUNK);
    expect("preempted", preempt, false);
    expect("state", buddy->u.free.scrub_state, BUDDY_SCRUB_ABORT);
}

static void other_work(void)
{
    make_dirty(0, FRAMES);
    pending[0] = true;
    scrub();
    expect_clean_below(2 * CHUNK, 2 * CHUNK);
    expect("preempted", preempt, true);
}

/* Not stuck in a heap that is almost clean. */
static void other_work_among_clean_frames(void)
{
    pending[0] = true;
    cnt = 600;
    scrub();
    expect("first that may be dirty", result, 208);
    expect("preempted", preempt, true);
}

static void going_offline(void)
{
    make_dirty(0, FRAMES);
    online[0] = false;
    scrub();
    expect_clean_below(CHUNK, CHUNK);
    expect("preempted", preempt, true);
}

static void one_helps(unsigned int frame)
{
    if ( frame == 3 )
        as_cpu(1, true);
}

static void helper(void)
{
    set_scrub_cpus(2);
    make_dirty(0, FRAMES - 4);
    on_scrub = one_helps;
    scrub();
    expect_clean_below(FRAMES, FRAMES - 4);
    expect("helped", counted_helped, FRAMES - 4 - CHUNK);
    expect("count of the scrubber", cnt, CHUNK * 100);
    on_scrub = NULL;
    as_cpu(1, false);
}

static void begins_work(unsigned int frame)
{
    if ( frame == 3 )
        as_cpu(1, true);
    if ( frame == 10 )
        pending[1] = true;
}

static void helper_with_other_work(void)
{
    set_scrub_cpus(2);
    make_dirty(0, FRAMES);
    on_scrub = begins_work;
    scrub();
    expect_clean_below(FRAMES, FRAMES);
    expect("helped", counted_helped, CHUNK);
    pending[1] = false;
    online[1] = false;
    on_scrub = one_looks;
    memset(scrubbed, 0, sizeof(scrubbed));
    make_dirty(0, FRAMES);
    scrub();
    expect_clean_below(FRAMES, FRAMES);
}

static bool third_helps;

static void two_more_look(unsigned int frame)
{
    if ( frame == 3 )
        as_cpu(1, true);
    if ( frame == 10 )
        as_cpu(2, third_helps);
}

static void as_many_as_allowed(void)
{
    set_scrub_cpus(2);
    make_dirty(0, FRAMES);
    on_scrub = two_more_look;
    scrub();
    expect_clean_below(FRAMES, FRAMES);
}

static void all_of_them(void)
{
    set_scrub_cpus(0);
    third_helps = true;
    make_dirty(0, FRAMES);
    on_scrub = two_more_look;
    scrub();
    expect_clean_below(FRAMES, FRAMES);
    expect("helped", counted_helped, FRAMES - CHUNK);
}

static void strangers_look(unsigned int frame)
{
    if ( frame != 3 )
        return;
    as_cpu(4, false);
    as_cpu(6, true);            /* of no node: as one of node 0 */
}

static void of_the_same_node(void)
{
    set_scrub_cpus(0);
    make_dirty(0, FRAMES);
    on_scrub = strangers_look;
    scrub();
    expect_clean_below(FRAMES, FRAMES);
}

static void abort_of_helper(unsigned int frame)
{
    if ( frame == 3 )
    {
        pending[1] = true;
        buddy->u.free.scrub_state = BUDDY_SCRUB_ABORT;
    }
    if ( frame == 1 )
    {
        pending[1] = false;
        as_cpu(2, true);
    }
    if ( frame == CHUNK + 2 )
        pending[2] = true;
}

static void wanted_while_helped(void)
{
    set_scrub_cpus(2);
    make_dirty(0, FRAMES);
    on_scrub = abort_of_helper;
    scrub();
    expect_clean_below(2 * CHUNK, 2 * CHUNK);
}

static void sleepers(void)
{
    set_scrub_cpus(3);
    as_cpu(1, false);
    as_cpu(2, false);
    as_cpu(3, false);
    as_cpu(4, false);
    as_cpu(0, false);
    scrub_order(ORDER - 1);
    expect("woken for little", raised[1] + raised[2] + raised[3], 0);
    scrub();
    expect("woken", raised[1] + raised[2] + raised[3], 2);
    scrub();
    expect("woken", raised[1] + raised[2] + raised[3], 3);
    scrub();
    expect("woken", raised[1] + raised[2] + raised[3], 3);
    expect("itself", raised[0], 0);
    expect("of another node", raised[4] + raised[5], 0);
}

static void offline_sleepers(void)
{
    set_scrub_cpus(0);
    as_cpu(1, false);
    online[1] = false;
    scrub();
    expect("woken", raised[1], 0);
}

static void who_helps_does_not_sleep(void)
{
    set_scrub_cpus(0);
    make_dirty(0, FRAMES);
    on_scrub = one_helps;
    scrub();
    expect("frames said to be scrubbed", dirty, FRAMES);
    scrub();
    expect("frames said to be scrubbed", dirty, 0);
    expect("woken", raised[1], 0);
}

/* ---- with threads ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool helper_is_in, may_finish, wanted;

static void set(bool *flag)
{
    pthread_mutex_lock(&mutex);
    *flag = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void await(bool *flag)
{
    pthread_mutex_lock(&mutex);
    while ( !*flag )
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void *slow_helper(void *unused)
{
    this_cpu_number = 1;
    expect("helps", scrub_help(), true);
    return NULL;
}

static pthread_t thread;

static void slowly(unsigned int frame)
{
    if ( this_cpu_number == 0 && frame == 3 )
    {
        pthread_create(&thread, NULL, slow_helper, NULL);
        await(&helper_is_in);
        if ( wanted )
            buddy->u.free.scrub_state = BUDDY_SCRUB_ABORT;
    }
    if ( this_cpu_number == 1 )
    {
        set(&helper_is_in);
        await(&may_finish);
    }
}

/* The scrubber waits by now: nobody else joins, and the helper may go on. */
static void let_it_finish(void)
{
    as_cpu(2, false);
    set(&may_finish);
}

static void waits_for_a_helper(void)
{
    set_scrub_cpus(0);
    make_dirty(0, FRAMES);
    on_scrub = slowly;
    on_relax = let_it_finish;
    scrub();
    expect_clean_below(FRAMES, FRAMES);
    if ( !relaxed )
        die("the scrubber has not waited");
    pthread_join(thread, NULL);
    expect("helped", counted_helped, CHUNK);
}

/* It leaves before the end, and has to wait all the same. */
static void leaves_with_a_helper(void)
{
    set_scrub_cpus(0);
    make_dirty(0, FRAMES);
    wanted = true;
    on_scrub = slowly;
    on_relax = let_it_finish;
    scrub();
    pthread_join(thread, NULL);
    expect_clean_below(2 * CHUNK, 2 * CHUNK);
}

static bool ends;

static void *helps_until_the_end(void *cpu)
{
    this_cpu_number = (unsigned long)cpu;
    while ( !__atomic_load_n(&ends, __ATOMIC_ACQUIRE) )
        scrub_help();
    return NULL;
}

static void many_at_once(void)
{
    pthread_t threads[3];
    unsigned int i, round;

    set_scrub_cpus(0);
    for ( i = 0; i < 3; i++ )
        pthread_create(&threads[i], NULL, helps_until_the_end,
                       (void *)(i + 1UL));
    for ( round = 0; round < 200; round++ )
    {
        memset(scrubbed, 0, sizeof(scrubbed));
        make_dirty(round, FRAMES);
        cnt = 0;
        scrub();
        expect_clean_below(FRAMES, FRAMES - round);
    }
    __atomic_store_n(&ends, true, __ATOMIC_RELEASE);
    for ( i = 0; i < 3; i++ )
        pthread_join(threads[i], NULL);
}

static const struct test_case cases[] = {
    { "one CPU, all dirty", alone },
    { "by default nobody helps", by_default_nobody_helps },
    { "clean frames are passed by", clean_frames },
    { "it begins at the first that may be dirty", first_dirty },
    { "a buddy of one frame", one_frame },
    { "somebody wants the buddy", somebody_wants_it },
    { "other work, after more than 8 frames", other_work },
    { "other work, among clean frames", other_work_among_clean_frames },
    { "a CPU that goes offline", going_offline },
    { "a helper takes what is left", helper },
    { "a helper with other work", helper_with_other_work },
    { "as many as allowed", as_many_as_allowed },
    { "all of them", all_of_them },
    { "of the same node", of_the_same_node },
    { "somebody wants the buddy while it is helped", wanted_while_helped },
    { "who sleeps is woken", sleepers },
    { "who is offline is not woken", offline_sleepers },
    { "who helps does not sleep", who_helps_does_not_sleep },
    { "the scrubber waits for a helper", waits_for_a_helper },
    { "nobody joins a scrubber that leaves", leaves_with_a_helper },
    { "many at once", many_at_once },
};

int main(int argc, char **argv)
{
    return main_of(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
