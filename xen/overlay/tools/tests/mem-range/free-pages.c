// SPDX-License-Identifier: GPL-2.0-only
/*
 * Free memory of each physical node, to the page, and domains that are dying.
 *
 * `xl info -n` rounds to MiB, and the debug key 'u' goes by way of the log.
 *
 * Pages that a back end of dom0 has let go of are free, and in the balloon of
 * its Linux, which takes them back when something else makes it look: at once,
 * or with the next guest (drivers/xen/balloon.c, a thread that waits for its
 * credit to change).  So they are told as well: who compares two counts counts
 * them as dom0's.
 *
 * usage: free-pages [REST TIMEOUT]
 *   REST, TIMEOUT: milliseconds.  Waits until for REST no domain was dying and
 *   no number has changed, for TIMEOUT at most: what is left of a domain goes
 *   some time after it, and of an RCU grace period nobody is told.
 *
 * Output: a line "node N: P pages free" for each node, then "balloon: P pages
 * of node N" if dom0 has its memory from one node and its balloon has pages,
 * then one "dying: D" for each domain that is.  Exit code 0; 1 for an error; 2
 * for wrong usage; 3 if the host did not come to rest, after the same output.
 */
#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xenctrl.h>

#define LOOK_MS   50            /* between two looks */
#define DOMAINS   1024          /* of a question; more are not expected */

/* What Linux says of its balloon. */
#ifndef BALLOON
#define BALLOON   "/sys/devices/system/xen_memory/xen_memory0/info"
#endif

struct view {
    unsigned int nr_nodes, nr_dying;
    xc_meminfo_t node[64];
    uint64_t balloon_kb;
    uint32_t dying[DOMAINS];
};

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

/* 0 if there is no balloon. */
static uint64_t kb_of(const char *path)
{
    FILE *f = fopen(path, "r");
    uint64_t kb = 0;

    if ( !f )
        return 0;
    if ( fscanf(f, "%"SCNu64, &kb) != 1 )
        errx(1, "%s: no number", path);
    fclose(f);

    return kb;
}

/* The only node that dom0 has memory from, or -1. */
static int dom0_node(xc_interface *xch, unsigned int nr_nodes)
{
    xc_nodemap_t map = xc_nodemap_alloc(xch);
    unsigned int i;
    int node = -1;

    if ( !map || xc_domain_node_getaffinity(xch, 0, map) )
        err(1, "the nodes of dom0");
    for ( i = 0; i < nr_nodes; i++ )
    {
        if ( !(map[i / 8] & (1 << i % 8)) )
            continue;
        if ( node >= 0 )
        {
            node = -1;
            break;
        }
        node = i;
    }
    free(map);

    return node;
}

static void look(xc_interface *xch, struct view *view)
{
    static xc_domaininfo_t info[DOMAINS];
    int i, nr = xc_domain_getinfolist(xch, 0, DOMAINS, info);

    memset(view, 0, sizeof(*view));
    if ( nr < 0 )
        err(1, "the list of domains");
    if ( nr == DOMAINS )
        errx(1, "%d domains or more", DOMAINS);
    for ( i = 0; i < nr; i++ )
        if ( info[i].flags & XEN_DOMINF_dying )
            view->dying[view->nr_dying++] = info[i].domain;

    view->nr_nodes = sizeof(view->node) / sizeof(view->node[0]);
    if ( xc_numainfo(xch, &view->nr_nodes, view->node, NULL) )
        err(1, "memory of the physical nodes");
    if ( view->nr_nodes > sizeof(view->node) / sizeof(view->node[0]) )
        errx(1, "%u physical nodes", view->nr_nodes);

    view->balloon_kb = kb_of(BALLOON "/low_kb") + kb_of(BALLOON "/high_kb");
}

static bool parse(const char *text, uint64_t *ms)
{
    char *end;

    *ms = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && *ms <= 3600000;
}

int main(int argc, char **argv)
{
    static struct view view, next;
    uint64_t rest = 0, timeout = 0, begun = now_ms(), since = begun;
    const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
    bool at_rest;
    xc_interface *xch;
    unsigned int i;
    int node;

    if ( argc != 1 && (argc != 3 || !parse(argv[1], &rest) ||
                       !parse(argv[2], &timeout)) )
    {
        fprintf(stderr, "usage: free-pages [REST TIMEOUT], milliseconds\n");
        return 2;
    }

    xch = xc_interface_open(NULL, NULL, 0);
    if ( !xch )
        err(1, "the hypervisor");

    look(xch, &view);
    while ( !(at_rest = !rest || now_ms() - since >= rest) &&
            now_ms() - begun < timeout )
    {
        nanosleep(&pause, NULL);
        look(xch, &next);
        if ( next.nr_dying || memcmp(&view, &next, sizeof(view)) )
            since = now_ms();
        view = next;
    }

    for ( i = 0; i < view.nr_nodes; i++ )
        if ( view.node[i].memsize != XEN_INVALID_MEM_SZ )
            printf("node %u: %"PRIu64" pages free\n", i,
                   (uint64_t)(view.node[i].memfree / XC_PAGE_SIZE));
    node = dom0_node(xch, view.nr_nodes);
    if ( node >= 0 && view.balloon_kb )
        printf("balloon: %"PRIu64" pages of node %d\n",
               view.balloon_kb * 1024 / XC_PAGE_SIZE, node);
    for ( i = 0; i < view.nr_dying; i++ )
        printf("dying: %"PRIu32"\n", view.dying[i]);

    xc_interface_close(xch);
    return at_rest ? 0 : 3;
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
