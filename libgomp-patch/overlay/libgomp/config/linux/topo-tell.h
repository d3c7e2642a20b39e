/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: numbers of threads and of CPUs that the program is
   told.  Included by topo.c.

   A program that asks how many threads there will be counts on the answer.
   So the teams of a root that has asked, and for which nobody has set a
   number, get exactly as many threads as it was told, whatever becomes of
   the topology.  The number changes only when the one statement of this root
   that has ever asked asks again: then it has given up the old answer.  Once
   a second statement has asked, of the program or of another library, one of
   them may still count on the old answer while the other asks, and the number
   stays.  A root that has not asked may have been handed what another thread
   was told: it keeps to the number that was told last when it first notices
   that there is one.

   Locking: none, except topo_lock for looking at the masks.  */

#ifndef GOMP_TOPO_TELL_H
#define GOMP_TOPO_TELL_H 1

#include "topo-user.h"

/* What any thread was told last, 0: nothing.  */
static unsigned topo_told;

/* In place of a statement: more than one has asked, or a thread of a team.  */
static const char topo_several;
#define TOPO_SEVERAL ((const void *) &topo_several)

/* The version that the process began with.  */
static unsigned long long topo_start_version;

/* May CPUs have left and come back between the version that the calling root
   THR has followed and VERSION?  */

static bool
topo_may_have_left (struct gomp_thread *thr, unsigned long long version)
{
  unsigned long long from
    = thr->topo.version != 0 ? thr->topo.version : topo_start_version;

  return version - from >= 2;
}

/* The number of our CPUs for a root thread THR that may have yet to follow:
   what gomp_topo_follow would find, with no effect.  */

static unsigned
topo_count_cpus (struct gomp_thread *thr)
{
  struct xtopo_page page;
  struct topo_set usable, allowed, ours, bound;
  unsigned long long version;
  struct topo_change change = { .usable = &usable, .commit = false };
  unsigned n;

  if ((topo_self.ncpus != 0 && thr->topo.version == *gomp_topo_version)
      || !topo_read (&page, &version))
    return topo_root_cpus (&topo_self);
  topo_usable (&page, &usable);
  gomp_mutex_lock (&topo_lock);
  change.may_have_left = topo_may_have_left (thr, version);
  bool restore = topo_bound && topo_get_affinity (pthread_self (), &bound);
  topo_allowed (thr, &change, &allowed);
  if (restore)
    topo_set_affinity (pthread_self (), &bound);
  gomp_mutex_unlock (&topo_lock);
  topo_ours (&ours, &usable, &allowed);
  n = topo_set_count (&ours);
  return n > 0 ? n : 1;
}

int
gomp_topo_ask (const void *site)
{
  struct gomp_thread *thr = gomp_thread ();
  struct gomp_topo_root *root = topo_root (thr);
  unsigned told = __atomic_load_n (&root->told, __ATOMIC_RELAXED), n;
  const void *before = __atomic_load_n (&root->site, __ATOMIC_RELAXED);
  bool dynamic = gomp_icv (false)->dyn_var;

  if (thr->ts.level != 0)
    site = TOPO_SEVERAL;
  else if (before != NULL && before != site)
    site = TOPO_SEVERAL;

  if (dynamic || topo_procs == TOPO_POSSIBLE)
    /* An upper bound, or a number for ever.  */
    n = told != 0 ? told : topo_max_threads;
  else if (thr->ts.level != 0)
    n = told != 0 ? told : topo_root_cpus (root);
  else if (told != 0 && site == TOPO_SEVERAL && topo_procs != TOPO_LATEST)
    n = told;
  else
    n = topo_count_cpus (thr);

  __atomic_store_n (&root->site, site, __ATOMIC_RELAXED);
  __atomic_store_n (&root->told, n, __ATOMIC_RELAXED);
  if (!dynamic)
    __atomic_store_n (&topo_told, n, __ATOMIC_RELAXED);
  if (thr->ts.level == 0)
    gomp_topo_nthreads = n;
  return n;
}

int
gomp_topo_num_procs (const void *site)
{
  struct gomp_thread *thr = gomp_thread ();
  struct gomp_task_icv *icv = gomp_icv (false);
  struct topo_set usable, ours;
  struct xtopo_page page;
  unsigned long long version;

  if (icv->nthreads_var == GOMP_TOPO_NTHREADS && !icv->dyn_var)
    return gomp_topo_ask (site);
  if (topo_procs == TOPO_POSSIBLE)
    return topo_max_threads;
  if (thr->ts.level != 0)
    return topo_root_cpus (topo_root (thr));
  if (topo_bound)
    return topo_count_cpus (thr);

  /* As libgomp does: what this thread may use now.  */
  if (!topo_read (&page, &version)
      || !topo_get_affinity (pthread_self (), &ours))
    return topo_root_cpus (&topo_self);
  topo_usable (&page, &usable);
  topo_ours (&usable, &usable, &ours);
  return topo_set_count (&usable) != 0 ? topo_set_count (&usable) : 1;
}

/* After the calling root has followed.  */

static void
topo_set_nthreads (void)
{
  if (topo_self.told == 0)
    topo_self.told = __atomic_load_n (&topo_told, __ATOMIC_RELAXED);
  gomp_topo_nthreads
    = topo_self.told != 0 ? topo_self.told : topo_root_cpus (&topo_self);
}

unsigned int
gomp_topo_team_threads (void)
{
  const struct gomp_topo_root *root = topo_root (gomp_thread ());
  unsigned told = __atomic_load_n (&root->told, __ATOMIC_RELAXED);

  return told != 0 ? told : topo_root_cpus (root);
}

unsigned int
gomp_topo_max_threads (void)
{
  return topo_root_cpus (topo_root (gomp_thread ()));
}

#endif /* GOMP_TOPO_TELL_H */
