// SPDX-License-Identifier: GPL-2.0-only
/*
 * Xen's own counters of a domain with DSM, as one JSON object: dsm.h says what
 * they mean.  Whoever is the daemon of the domain goes on meanwhile.
 *
 * usage: dsm-stats DOMID
 *
 * Exit status: 0; 2 if there is no such domain, or it has no DSM.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <xenctrl.h>
#include <xenctrl_dsm.h>

int main(int argc, char **argv)
{
    xc_interface *xch;
    xen_dsm_stats_t stats;
    unsigned long domid;
    unsigned int i;
    char *end;

    if ( argc != 2 )
        errx(2, "usage: dsm-stats DOMID");
    domid = strtoul(argv[1], &end, 10);
    if ( end == argv[1] || *end || domid >= DOMID_FIRST_RESERVED )
        errx(2, "%s: no number of a domain", argv[1]);

    xch = xc_interface_open(NULL, NULL, 0);
    if ( !xch )
        err(2, "xc_interface_open");
    if ( xc_dsm_stats(xch, domid, &stats) )
        err(2, "domain %lu", domid);

#define FIGURE(name) printf("\"" #name "\": %"PRIu64", ", stats.name)
    printf("{");
    FIGURE(waits); FIGURE(waits_by_xen); FIGURE(foreign); FIGURE(foreign_lost);
    FIGURE(ring_full); FIGURE(busy); FIGURE(invals); FIGURE(downgrades);
    FIGURE(installs_s); FIGURE(installs_m); FIGURE(upgrades); FIGURE(drops);
    FIGURE(recalls); FIGURE(pooled); FIGURE(reserved); FIGURE(added);
    FIGURE(merges);
    FIGURE(uncovered); FIGURE(paused); FIGURE(wait_ns); FIGURE(wait_max_ns);
    FIGURE(traps); FIGURE(trap_ns); FIGURE(wakes); FIGURE(wake_ns);
#undef FIGURE
    printf("\"wait_hist\": [");
    for ( i = 0; i < XEN_DSM_STATS_BUCKETS; i++ )
        printf("%s%"PRIu64, i ? ", " : "", stats.wait_hist[i]);
    printf("]}\n");

    xc_interface_close(xch);

    return 0;
}
