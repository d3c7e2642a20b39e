// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest in two slices whose vCPUs start and halt each other at random, and a
 * daemon of both: it ends the guest when all vCPUs are down for good, not
 * before, and then always.
 *
 * Steps of vCPUs, of tasklets and of the daemon come in any order.  Now and
 * then the daemon is another one, which begins with FLUSH and ALL.
 *
 * usage: dsm_activity_guest LIBRARY LIBRARY SEED STEPS
 *
 * The libraries are two copies of dsm_activity_slice.c.  Prints how many guests
 * have ended.
 */
#include <dlfcn.h>

#include "fake_hcall.h"
#include <asm/dsm.h>
#include "dsm_activity.h"

static struct {
    typeof(slice_begin) *begin;
    typeof(slice_is_up) *is_up;
    typeof(slice_halts) *halts;
    typeof(slice_sends) *sends;
    typeof(slice_has_tasklet) *has_tasklet;
    typeof(slice_tasklet) *tasklet;
    typeof(slice_next) *next;
    typeof(slice_is_full) *is_full;
    typeof(slice_flush) *flush;
    typeof(slice_gets) *gets;
} slice[2];

static void load(unsigned int k, const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if ( !handle )
        die("%s", dlerror());
#define LOAD(name) \
    if ( !(slice[k].name = dlsym(handle, "slice_" #name)) ) \
        die("%s", dlerror())
    LOAD(begin);
    LOAD(is_up);
    LOAD(halts);
    LOAD(sends);
    LOAD(has_tasklet);
    LOAD(tasklet);
    LOAD(next);
    LOAD(is_full);
    LOAD(flush);
    LOAD(gets);
}

static uint64_t random_state;

static unsigned int random_below(unsigned int n)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;

    return ((random_state * 2685821657736338717ULL) >> 32) * n >> 32;
}

/* ---- The guest ---- */

static bool acts(unsigned int vcpu)
{
    return slice[SLICE_OF(vcpu)].is_up(vcpu) ||
           slice[SLICE_OF(vcpu)].has_tasklet(vcpu);
}

static bool anybody_acts(void)
{
    unsigned int vcpu;

    for ( vcpu = 0; vcpu < VCPUS; vcpu++ )
        if ( acts(vcpu) )
            return true;

    return false;
}

static void step_of_guest(unsigned int halts)
{
    unsigned int vcpu = random_below(VCPUS), k = SLICE_OF(vcpu);

    if ( slice[k].has_tasklet(vcpu) )
        slice[k].tasklet(vcpu);
    else if ( !slice[k].is_up(vcpu) )
        return;
    else if ( random_below(100) < halts )
        slice[k].halts(vcpu);
    else
        slice[k].sends(vcpu, random_below(VCPUS), random_below(NR_SENDS));
}

/* ---- The daemon ---- */

static struct {
    uint64_t sends, heard_sends;
    bool heard_active;
} knows[2];

/* What another daemon has found in the rings; at most so much is new there. */
static struct {
    unsigned int nr, read;
    struct xen_dsm_ring_entry e[64];
} found[2];

static bool next_entry(unsigned int k, struct xen_dsm_ring_entry *e)
{
    if ( found[k].read == found[k].nr )
        return slice[k].next(e);
    *e = found[k].e[found[k].read++];

    return true;
}

/* False: there was nothing to be done. */
static bool step_of_daemon(unsigned int k)
{
    struct xen_dsm_ring_entry e;

    if ( !next_entry(k, &e) )
    {
        if ( !slice[k].is_full() )
            return false;
        slice[k].flush(false);
    }
    else if ( e.type == XEN_DSM_VCPU_EVENT )
    {
        knows[!k].sends++;
        slice[!k].gets(&e, random_below(4) == 0);
    }
    else if ( e.type == XEN_DSM_ACTIVITY )
    {
        knows[k].heard_active = e.want;
        knows[k].heard_sends = e.gfn;
    }
    else
        die("an entry of type %u", e.type);

    return true;
}

static bool all_down(void)
{
    unsigned int k;

    for ( k = 0; k < 2; k++ )
        if ( knows[k].heard_active || knows[k].heard_sends != knows[k].sends )
            return false;

    return true;
}

/* It knows nothing, and sends nothing before it has heard from both. */
static void another_daemon(void)
{
    unsigned int k;

    for ( k = 0; k < 2; k++ )
    {
        bool heard = false;

        if ( found[k].read != found[k].nr )
            return;
        found[k].nr = found[k].read = 0;
        slice[k].flush(true);
        do
            while ( slice[k].next(&found[k].e[found[k].nr]) )
            {
                const struct xen_dsm_ring_entry *e = &found[k].e[found[k].nr++];

                if ( found[k].nr == ARRAY_SIZE(found[k].e) )
                    die("more than there can be");
                if ( e->type != XEN_DSM_ACTIVITY )
                    continue;
                heard = true;
                knows[k].sends = knows[k].heard_sends = e->gfn;
                knows[k].heard_active = true; /* until its turn comes */
            }
        while ( slice[k].is_full() && (slice[k].flush(false), true) );
        if ( !heard )
            die("slice %u says nothing to another daemon", k);
    }
}

static void begin(void)
{
    unsigned int k;

    for ( k = 0; k < 2; k++ )
    {
        slice[k].begin(k);
        knows[k].sends = knows[k].heard_sends = 0;
        knows[k].heard_active = !k;
        found[k].nr = found[k].read = 0;
    }
}

int main(int argc, char **argv)
{
    unsigned long steps, ended = 0;
    unsigned int halts;

    if ( argc != 5 )
        return 2;
    load(0, argv[1]);
    load(1, argv[2]);
    random_state = strtoull(argv[3], NULL, 0) ?: 1;
    begin();
    halts = 30;
    for ( steps = strtoul(argv[4], NULL, 0); steps; steps-- )
    {
        switch ( random_below(8) )
        {
        case 0 ... 3:
            step_of_guest(halts);
            break;

        case 4 ... 6:
            step_of_daemon(random_below(2));
            break;

        case 7:
            if ( random_below(16) == 0 )
                another_daemon();
            break;
        }

        /* Sometimes it hears of all that there is. */
        if ( random_below(32) == 0 )
        {
            while ( step_of_daemon(0) | step_of_daemon(1) )
                if ( all_down() )
                    break;
            if ( !anybody_acts() && !all_down() )
                die("%lu steps before the end: all are down, and it waits",
                    steps);
        }

        if ( !all_down() )
            continue;
        while ( !anybody_acts() && (step_of_daemon(0) | step_of_daemon(1)) )
            ;
        if ( anybody_acts() )
            die("%lu steps before the end: it ends a guest that lives", steps);
        ended++;
        begin();
        halts = 5 + random_below(60);
    }
    printf("%lu\n", ended);

    return 0;
}
