/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: which CPUs are ours, and what all of topo.c's
   headers ask of that.  Included by topo.c.

   Locking: as topo.c has it.  */

#ifndef GOMP_TOPO_OURS_H
#define GOMP_TOPO_OURS_H 1

#include "topo-set.h"

/* Constant after initialization.  */
static struct topo_set topo_possible;	/* CPUs that there may ever be */
static bool topo_bound;			/* there are places */
static unsigned topo_max_threads;	/* our CPUs will never be more */

static gomp_mutex_t topo_lock;

/* What the page offers.  */

static void
topo_usable (const struct xtopo_page *page, struct topo_set *set)
{
  memcpy (set, page->cpus_usable, sizeof *set);
  topo_set_and (set, &topo_possible);
}

/* Ours, out of what is usable and what is allowed.  */

static void
topo_ours (struct topo_set *ours, const struct topo_set *usable,
	   const struct topo_set *allowed)
{
  *ours = *usable;
  topo_set_and (ours, allowed);
  if (topo_set_count (ours) == 0)
    *ours = *allowed;
}

#endif /* GOMP_TOPO_OURS_H */
