/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology.  Included from proc.c.

   The kernel shows the topology of the machine as one page, which may change
   at any time (<xen/topology.h>).  This file decides whether there is such a
   page, and, when a root thread finds that its version has moved on, works
   out which CPUs the thread may use now, binds the threads of its pool to a
   new list of places, asks the kernel to let the memory of the process
   follow, and acknowledges the version.

   Three sets of CPUs are told apart:
     usable   what the page offers; nodes that are about to leave excluded
     allowed  what the user (taskset) and the container (cpuset) permit
     ours     usable and allowed; if that is empty, allowed

   Of the ICVs only nthreads-var is changed while the program runs, as long as
   nobody has set it, in the tasks of a root thread that follows; what it
   becomes is in topo-tell.h.

   Locking: topo_lock protects all static variables, here and in the headers
   of this file, that are not constant after initialization, except where they
   say otherwise.  It is taken by root threads at level 0, when they follow
   and when they ask for a number before they have followed; no other lock of
   libgomp is acquired under it.  */

#include "topo-set.h"
#include "topo-page.h"
#include "topo-places.h"
#include "topo-env.h"
#include "topo-user.h"
#include "topo-tell.h"
#include <limits.h>

/* How often to start over when the topology changes while we follow.  */
#define TOPO_FOLLOW_ROUNDS 4

bool gomp_topo_enabled;

/* Value of nthreads-var until the environment has been parsed.  No variable
   can set it.  */
#define TOPO_NOT_SET (~0UL)

static struct xtopo_page *topo_copy;	/* stacks may be small */

/* Following.  */

/* Bind the calling root thread THR and its docked threads to PLACES, and
   have gomp_team_start distribute the latter.  Until then they are bound to
   all the CPUs: none may stay on a CPU that leaves.  */

static void
topo_rebind (struct gomp_thread *thr, struct topo_places *places)
{
  struct gomp_thread_pool *pool = thr->thread_pool;

  topo_publish (places);
  thr->topo.places = places;
  __atomic_store_n (&topo_self.view, places, __ATOMIC_RELEASE);
  gomp_topo_init_affinity ();
  if (pool == NULL || pool->threads_used <= 1)
    return;
  thr->topo.rebind = true;
  for (unsigned i = 1; i < pool->threads_used; i++)
    topo_set_affinity (gomp_thread_to_pthread_t (pool->threads[i]),
		       &places->cpus);
}

/* Find our CPUs, and bind the threads if there are places.  MAY_HAVE_LEFT:
   see struct topo_change.  */

static void
topo_apply (struct gomp_thread *thr, const struct xtopo_page *page,
	    bool may_have_left)
{
  struct topo_set usable, allowed, ours;
  struct topo_change change
    = { .usable = &usable, .may_have_left = may_have_left, .commit = true };
  struct topo_places *places;

  topo_usable (page, &usable);
  topo_allowed (thr, &change, &allowed);
  topo_ours (&ours, &usable, &allowed);
  topo_self.ncpus = topo_set_count (&ours);
  if (topo_self.ncpus == 0)
    topo_self.ncpus = 1;
  __atomic_store_n (&gomp_available_cpus, topo_self.ncpus, __ATOMIC_RELAXED);
  if (!topo_bound)
    return;
  places = topo_get_places (&ours, page);
  if (places == NULL)
    places = topo_lists;
  if (places == NULL)
    gomp_fatal ("Out of memory trying to allocate places list");
  topo_rebind (thr, places);
}

void
gomp_topo_follow (struct gomp_thread *thr)
{
  struct xtopo_page *page = topo_copy;
  unsigned long long version;
  bool first = thr->topo.followed == 0, again;
  unsigned before = first ? 0 : topo_self.ncpus;

  if (topo_in_team (thr))
    {
      thr->topo.version = gomp_topo_now ();
      topo_set_nthreads (thr);
      return;
    }
  topo_use_answers ();
  if (!first && thr->topo.followed == gomp_topo_now ())
    {
      thr->topo.version = thr->topo.followed;
      topo_set_nthreads (thr);
      return;
    }
  gomp_mutex_lock (&topo_lock);
  topo_register ();
  for (int round = 0; round < TOPO_FOLLOW_ROUNDS; round++)
    {
      bool readable = topo_read (page, &version);
      bool may_have_left = topo_may_have_left (thr, version);

      thr->topo.version = thr->topo.followed = version;
      if (!readable)
	break;
      topo_apply (thr, page, may_have_left);
      again = false;
      if (topo_reset_flags != 0 && page->phase != XTOPO_GROWING
	  && (!first || topo_reset_version < version))
	again = !topo_reset (page, version, topo_reset_flags,
			     topo_granule_shift);
      gomp_debug (0, "topology: version %llu, phase %u: %u CPUs\n", version,
		  page->phase, topo_self.ncpus);
      if (!again)
	{
	  topo_acknowledge (version);
	  break;
	}
    }
  gomp_mutex_unlock (&topo_lock);
  topo_promise (before);
  topo_set_nthreads (thr);
}

void
gomp_topo_bind (struct gomp_thread *nthr, unsigned int place)
{
  const struct topo_places *places = gomp_thread ()->topo.places;

  pthread_setaffinity_np (gomp_thread_to_pthread_t (nthr), gomp_cpuset_size,
			  (const cpu_set_t *) places->list[place]);
}

bool
gomp_topo_unbind (pthread_attr_t *attr, int err)
{
  return (err == EINVAL && topo_bound
	  && pthread_attr_setaffinity_np (attr, 0, NULL) == 0);
}

void
gomp_topo_enter_target (struct gomp_thread *thr, struct gomp_thread *outer)
{
  thr->topo = outer->topo;
  thr->topo.version = 0;
  if (topo_in_team (outer))
    thr->topo.root = topo_root (outer);
}

void
gomp_topo_leave_target (struct gomp_thread *thr)
{
  thr->topo.version = 0;
}

/* Start.  */

/* Make libgomp's own set of CPUs large enough for all that may ever come,
   once for all, and fill it with what places may be made of.  */

static void
topo_init_cpuset (unsigned nr_cpus)
{
  struct topo_set set = topo_user;
  unsigned long size = CPU_ALLOC_SIZE (nr_cpus);

  if (gomp_cpuset_size < size)
    gomp_cpuset_size = size;
  gomp_cpusetp = gomp_realloc (gomp_cpusetp, gomp_cpuset_size);
  memset (gomp_cpusetp, 0, gomp_cpuset_size);
  topo_set_and (&set, &topo_possible);
  memcpy (gomp_cpusetp, &set, topo_set_size ());
}

/* In a forked child: the threads of the pools are not there any more, and
   the open file, with the promise to acknowledge, is the parent's.  The one
   thread that is left forgets its pool, and so does not touch the parent's
   threads; its next team is new.  What it was told still counts.  */

static void
topo_forked (void)
{
  struct gomp_thread *thr = gomp_thread ();
  struct gomp_thread_pool *pool = thr->thread_pool;

  gomp_mutex_init (&topo_lock);
  if (topo_fd >= 0 && topo_same_file (topo_fd))
    close (topo_fd);
  topo_fd = -1;
  topo_registered = false;
  if (pool != NULL)
    {
      pool->threads = NULL;
      pool->threads_size = 0;
      pool->threads_used = 0;
      pool->last_team = NULL;
    }
  gomp_managed_threads = 1;
  thr->topo.version = thr->topo.followed = 0;
  thr->topo.rebind = false;
}

/* A program may unload the library.  Nobody would acknowledge any more, so
   the promise ends.  The page stays mapped: at the end of the program other
   threads may still look at it.  */

static void __attribute__((destructor))
topo_fini (void)
{
  if (topo_fd >= 0 && topo_same_file (topo_fd))
    close (topo_fd);
}

void
gomp_topo_init (void)
{
  const char *path;
  struct xtopo_page page;
  struct topo_set usable, allowed, ours;

  if (!GOMP_TOPO_POSSIBLE || !topo_read_env (&path) || gomp_cpusetp == NULL
      || !topo_map (path))
    return;
  if (!topo_check_page (&page) || !topo_init_user ()
      || !topo_get_affinity (pthread_self (), &allowed)
      || pthread_atfork (NULL, NULL, topo_forked) != 0)
    {
      topo_unmap ();
      return;
    }
  gomp_mutex_init (&topo_lock);
  topo_copy = gomp_malloc (sizeof *topo_copy);
  for (unsigned cpu = 0; cpu < page.nr_cpus_possible; cpu++)
    topo_set_add (&topo_possible, cpu);
  topo_usable (&page, &usable);
  topo_ours (&ours, &usable, &allowed);
  gomp_available_cpus = topo_set_count (&ours);
  topo_init_cpuset (page.nr_cpus_possible);

  gomp_global_icv.nthreads_var = TOPO_NOT_SET;
  topo_start_version = gomp_topo_now ();
  gomp_topo_enabled = true;
}

bool
gomp_topo_init_level (int level, unsigned long count)
{
  bool ok = gomp_affinity_init_level (level, count, false);

  if (ok)
    {
      topo_level = level;
      topo_count = count;
    }
  return ok;
}

void
gomp_topo_init_places (void)
{
  struct xtopo_page page;
  unsigned long long version;
  struct topo_set set;

  if (!gomp_topo_enabled)
    return;

  /* What may ever be ours.  */
  memset (&set, 0, sizeof set);
  memcpy (&set, gomp_cpusetp, topo_set_size ());
  topo_max_threads = topo_set_count (&set);
  if (topo_max_threads < gomp_available_cpus)
    topo_max_threads = gomp_available_cpus;
  if (gomp_global_icv.nthreads_var == TOPO_NOT_SET)
    {
      gomp_global_icv.nthreads_topo = topo_procs != TOPO_POSSIBLE;
      gomp_global_icv.nthreads_var = topo_max_threads;
      if (gomp_global_icv.nthreads_topo)
	gomp_global_icv.nthreads_var = gomp_available_cpus;
    }

  if (gomp_places_list == NULL
      && gomp_global_icv.bind_var == omp_proc_bind_false)
    return;
  topo_bound = true;
  if (gomp_places_list == NULL)
    {
      /* OMP_PROC_BIND without places.  */
      topo_level = TOPO_THREADS;
      topo_count = ULONG_MAX;
    }
  else if (topo_level == TOPO_LIST)
    {
      topo_template = gomp_places_list;
      topo_template_len = gomp_places_list_len;
    }
  else
    free (gomp_places_list);
  topo_capacity = 8 * gomp_cpuset_size;
  if (topo_capacity < topo_template_len)
    topo_capacity = topo_template_len;
  if (!topo_read (&page, &version))
    /* The next version, which must follow, will tell.  */
    memset (page.cpus_usable, 0xff, sizeof page.cpus_usable);
  topo_apply (gomp_thread (), &page, false);
}
