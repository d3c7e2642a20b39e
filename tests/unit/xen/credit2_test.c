// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the first line of hook 0015 decides: whether a CPU takes over a unit that
 * ran last on another one (runq_candidate() of common/sched/credit2.c).
 *
 * usage: credit2_test --list | CASE
 */
#include <stdbool.h>
#include <stdlib.h>

#define MS(n)   ((n) * 1000000)
#define US(n)   ((n) * 1000)

/* As credit2.c has them. */
#define CSCHED2_CREDIT_INIT     MS(10)
#define CSCHED2_CREDIT_MIN      (-CSCHED2_CREDIT_INIT)
#define CSCHED2_IDLE_CREDIT     (CSCHED2_CREDIT_MIN - 1)
#define CSCHED2_MIGRATE_RESIST  US(500)

struct sched_unit {
    unsigned int master;
    bool idle;
};

struct csched2_unit {
    struct sched_unit *unit;
    int credit;
};

#define sched_unit_master(u)    ((u)->master)
#define is_idle_unit(u)         ((u)->idle)

#define HERE    1
#define THERE   2
#define IDLE    CSCHED2_IDLE_CREDIT

/* What is left running or idling here, and what waits: where it ran, ns of credit. */
static const struct test_case {
    const char *name;
    int running;
    unsigned int ran;
    int waiting;
    bool resists;
} cases[] = {
    { "idle: the least credit", IDLE, THERE, CSCHED2_CREDIT_MIN, false },
    { "idle: little more than that", IDLE, THERE, CSCHED2_CREDIT_MIN + US(499), false },
    { "idle: much more", IDLE, THERE, CSCHED2_CREDIT_INIT, false },
    { "idle: the least credit, its own", IDLE, HERE, CSCHED2_CREDIT_MIN, false },
    { "busy: a little more", MS(2), THERE, MS(2) + US(499), true },
    { "busy: enough more", MS(2), THERE, MS(2) + US(500), false },
    { "busy: a little more, its own", MS(2), HERE, MS(2) + 1, false },
    { "busy with the least: a little more", CSCHED2_CREDIT_MIN, THERE, CSCHED2_CREDIT_MIN + US(499), true },
};

static void run(const struct test_case *t)
{
    struct sched_unit stays = { .master = HERE, .idle = t->running == IDLE };
    struct sched_unit waits = { .master = t->ran };
    const struct csched2_unit next = { &stays, t->running }, *snext = &next;
    const struct csched2_unit queued = { &waits, t->waiting }, *svc = &queued;
    unsigned int cpu = HERE;
    bool resists = sched_unit_master(svc->unit) != cpu
#include "hook-0015-credit2-1.h"
                   && snext->credit + CSCHED2_MIGRATE_RESIST > svc->credit;

    if ( resists != t->resists )
        exit(1);
}

#include "cases_main.h"
