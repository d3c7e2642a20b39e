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

   ICVs are not changed while the program runs.  dyn-var starts as true, and
   nthreads-var as the number of CPUs that there can ever be, so that
   omp_get_max_threads () is a constant upper bound.  The size of each team
   is then bounded by the number of our CPUs (gomp_topo_max_threads).

   Locking: topo_lock protects all static variables, here and in the headers
   of this file, that are not constant after initialization.  It is taken by
   root threads at level 0, and by omp_get_num_procs if the caller is bound
   and has yet to follow; no other lock of libgomp is acquired under it.  */

#include "topo-set.h"
#include "topo-page.h"
#include "topo-places.h"
#include "topo-env.h"
#include <limits.h>

/* How often to start over when the topology changes while we follow.  */
#define TOPO_FOLLOW_ROUNDS 4

bool gomp_topo_enabled;
static unsigned long long topo_final_version;	/* of a forked child */

/* Constant after initialization.  */
static struct topo_set topo_possible;	/* CPUs that there may ever be */
static bool topo_bound;			/* there are places */
static unsigned topo_max_threads;	/* our CPUs will never be more */

/* The calling thread is bound to the first of these places.  Not a part of
   struct gomp_thread, which a target region on the host saves and restores
   while the binding stays.  */
static __thread const struct topo_places *topo_self_places;

static gomp_mutex_t topo_lock;
static struct topo_set topo_user;	/* what the user allows */
static struct xtopo_page *topo_copy;	/* stacks may be small */

/* Which CPUs.  */

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

/* What the user and the container allow.  */

/* The CPUs that the calling thread may use, CPUs that are not there
   included, which sched_getaffinity does not show.  */

static bool
topo_read_status (struct topo_set *set)
{
  static const char key[] = "Cpus_allowed_list:";
  char *line = NULL;
  size_t size = 0;
  bool found = false;
  FILE *f = fopen ("/proc/thread-self/status", "re");

  if (f == NULL)
    return false;
  while (!found && getline (&line, &size, f) > 0)
    if (strncmp (line, key, sizeof key - 1) == 0)
      found = topo_parse_cpulist (line + sizeof key - 1, set);
  free (line);
  fclose (f);
  return found;
}

/* At the start, find out whether the user has confined the process to some
   CPUs.  The kernel intersects every mask with the container's set, and
   keeps doing so when the set changes; so asking for all CPUs shows the
   container's set alone, and if that is what we had, nobody but the
   container confines us and our own mask may grow with it.  */

static bool
topo_init_user (void)
{
  struct topo_set before, after, online, all;

  memset (&all, 0xff, sizeof all);
  if (!topo_get_affinity (pthread_self (), &online))
    return false;
  if (!topo_read_status (&before))
    before = online;
  if (topo_set_affinity (pthread_self (), &all))
    {
      if (!topo_read_status (&after)
	  && !topo_get_affinity (pthread_self (), &after))
	after = before;
      if (topo_set_equal (&before, &after))
	{
	  topo_user = all;
	  return true;
	}
      topo_set_affinity (pthread_self (), &before);
    }
  topo_user = before;
  return true;
}

/* The set that we have bound a docked thread of ROOT's pool, or ROOT, the
   calling thread, itself to.  False if it is not bound by us.  */

static bool
topo_bound_set (struct gomp_thread *root, struct gomp_thread *thr,
		struct topo_set *set)
{
  const struct topo_places *places
    = thr == root ? topo_self_places : root->topo.places;

  if (places == NULL)
    return false;
  if (thr == root)
    topo_set_of_place (set, places->list[0]);
  else if (root->topo.rebind || thr->place == 0
	   || thr->place > topo_capacity)
    *set = places->cpus;
  else
    topo_set_of_place (set, places->list[thr->place - 1]);
  return true;
}

/* What is allowed to the pool of ROOT, the calling thread, which is not
   bound by us: the union over its threads.  A program may bind each of its
   threads by itself, and then no single one tells what it may use.  */

static void
topo_allowed_unbound (struct gomp_thread *root, struct topo_set *allowed)
{
  struct gomp_thread_pool *pool = root->thread_pool;
  struct topo_set cur;

  if (!topo_get_affinity (pthread_self (), allowed))
    *allowed = topo_user;
  for (unsigned i = 1; pool != NULL && i < pool->threads_used; i++)
    if (topo_get_affinity (gomp_thread_to_pthread_t (pool->threads[i]), &cur))
      topo_set_or (allowed, &cur);
}

/* The same if we bind the threads.  What ROOT gets when it asks for all that
   the user allows is allowed, unless somebody else has changed the masks of
   our threads since we set them (taskset -a), so that all of them are now
   inside of the union of what was changed.  A thread whose CPUs have all
   gone was moved by the kernel; that tells nothing.

   Leaves ROOT unbound.  */

static void
topo_allowed_bound (struct gomp_thread *root, struct topo_set *allowed)
{
  struct gomp_thread_pool *pool = root->thread_pool;
  unsigned n = pool != NULL && pool->threads_used > 1 ? pool->threads_used : 1;
  struct topo_set before, cur, own, changed, unchanged;

  memset (&changed, 0, sizeof changed);
  memset (&unchanged, 0, sizeof unchanged);
  if (!topo_get_affinity (pthread_self (), &before))
    before = topo_user;
  if (!topo_set_affinity (pthread_self (), &topo_user)
      || !topo_get_affinity (pthread_self (), allowed))
    *allowed = before;

  for (unsigned i = 0; i < n; i++)
    {
      struct gomp_thread *thr = i == 0 ? root : pool->threads[i];

      if (!topo_bound_set (root, thr, &own))
	return;
      if (i == 0)
	cur = before;
      else if (!topo_get_affinity (gomp_thread_to_pthread_t (thr), &cur))
	continue;
      topo_set_and (&own, allowed);
      if (topo_set_equal (&own, &cur))
	topo_set_or (&unchanged, &own);
      else if (topo_set_count (&own) != 0)
	topo_set_or (&changed, &cur);
    }
  topo_set_andnot (&unchanged, &changed);
  if (topo_set_count (&changed) != 0 && topo_set_count (&unchanged) == 0
      && !topo_set_equal (&changed, allowed))
    {
      topo_user = *allowed = changed;
      topo_set_affinity (pthread_self (), allowed);
    }
}

static void
topo_allowed (struct gomp_thread *root, struct topo_set *allowed)
{
  if (topo_bound)
    topo_allowed_bound (root, allowed);
  else
    topo_allowed_unbound (root, allowed);
}

/* Following.  */

/* Bind the calling root thread THR and its docked threads to PLACES, and
   have gomp_team_start distribute the latter.  Until then they are bound to
   all the CPUs: none may stay on a CPU that leaves.  */

static void
topo_rebind (struct gomp_thread *thr, struct topo_places *places)
{
  struct gomp_thread_pool *pool = thr->thread_pool;

  topo_publish (places);
  thr->topo.places = topo_self_places = places;
  gomp_init_affinity ();
  if (pool == NULL || pool->threads_used <= 1)
    return;
  thr->topo.rebind = true;
  for (unsigned i = 1; i < pool->threads_used; i++)
    topo_set_affinity (gomp_thread_to_pthread_t (pool->threads[i]),
		       &places->cpus);
}

/* Find our CPUs, and bind the threads if there are places.  */

static void
topo_apply (struct gomp_thread *thr, const struct xtopo_page *page)
{
  struct topo_set usable, allowed, ours;
  struct topo_places *places;

  topo_usable (page, &usable);
  topo_allowed (thr, &allowed);
  topo_ours (&ours, &usable, &allowed);
  thr->topo.ncpus = topo_set_count (&ours);
  if (thr->topo.ncpus == 0)
    thr->topo.ncpus = 1;
  gomp_available_cpus = thr->topo.ncpus;
  memcpy (gomp_cpusetp, &ours, topo_set_size ());
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
  bool first = thr->topo.version == 0, again;

  if (!gomp_topo_enabled)
    {
      /* In a forked child that cannot follow.  */
      thr->topo.version = *gomp_topo_version;
      return;
    }
  gomp_mutex_lock (&topo_lock);
  topo_register ();
  for (int round = 0; round < TOPO_FOLLOW_ROUNDS; round++)
    {
      bool readable = topo_read (page, &version);

      thr->topo.version = version;
      if (!readable)
	break;
      topo_apply (thr, page);
      again = false;
      if (topo_reset_flags != 0 && page->phase != XTOPO_GROWING
	  && (!first || topo_reset_version < version))
	again = !topo_reset (page, version, topo_reset_flags,
			     topo_granule_shift);
      gomp_debug (0, "topology: version %llu, phase %u: %u CPUs\n", version,
		  page->phase, thr->topo.ncpus);
      if (!again)
	{
	  topo_acknowledge (version);
	  break;
	}
    }
  gomp_mutex_unlock (&topo_lock);
}

void
gomp_topo_bind (struct gomp_thread *nthr, unsigned int place)
{
  const struct topo_places *places = gomp_thread ()->topo.places;

  pthread_setaffinity_np (gomp_thread_to_pthread_t (nthr), gomp_cpuset_size,
			  (const cpu_set_t *) places->list[place]);
}

unsigned int
gomp_topo_max_threads (void)
{
  struct gomp_thread *thr = gomp_thread ();
  struct gomp_thread_pool *pool = thr->thread_pool;

  if (thr->ts.level != 0 && pool != NULL && pool->threads != NULL)
    thr = pool->threads[0];
  return thr->topo.ncpus != 0 ? thr->topo.ncpus : gomp_available_cpus;
}

/* The number of our CPUs for a bound root thread THR that has not followed
   yet: what gomp_topo_follow would find, with no effect.  */

static int
topo_preview (struct gomp_thread *thr, const struct topo_set *usable)
{
  struct topo_set allowed, ours, bound;

  gomp_mutex_lock (&topo_lock);
  bool restore = topo_get_affinity (pthread_self (), &bound);
  topo_allowed (thr, &allowed);
  if (restore)
    topo_set_affinity (pthread_self (), &bound);
  gomp_mutex_unlock (&topo_lock);
  topo_ours (&ours, usable, &allowed);
  return topo_set_count (&ours);
}

int
gomp_topo_num_procs (void)
{
  struct gomp_thread *thr = gomp_thread ();
  struct xtopo_page page;
  struct topo_set usable, allowed, ours;
  unsigned long long version;
  int n;

  if (topo_procs_possible)
    return topo_max_threads;
  if (topo_bound
      && (thr->ts.level != 0 || thr->topo.version == *gomp_topo_version))
    return gomp_available_cpus;
  if (!topo_read (&page, &version))
    return gomp_available_cpus;
  topo_usable (&page, &usable);
  if (topo_bound)
    n = topo_preview (thr, &usable);
  else
    {
      if (!topo_get_affinity (pthread_self (), &allowed))
	return gomp_available_cpus;
      topo_ours (&ours, &usable, &allowed);
      n = topo_set_count (&ours);
    }
  return n > 0 ? n : 1;
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
   the open file, with the promise to acknowledge, is the parent's.  A child
   of a program that has run a team cannot run another one (this is so with
   any libgomp), and must not touch the parent's threads.  */

static void
topo_forked (void)
{
  struct gomp_thread *thr = gomp_thread ();

  gomp_mutex_init (&topo_lock);
  if (topo_fd >= 0 && topo_same_file (topo_fd))
    close (topo_fd);
  topo_fd = -1;
  topo_registered = false;
  if (thr->thread_pool != NULL && thr->thread_pool->threads_used > 1)
    {
      gomp_topo_enabled = false;
      topo_final_version = thr->topo.version;
      gomp_topo_version = &topo_final_version;
    }
  else
    thr->topo.version = 0;
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

  if (!topo_read_env (&path) || gomp_cpusetp == NULL || !topo_map (path))
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

  /* Initial values; the environment may change them.  */
  gomp_global_icv.nthreads_var = ULONG_MAX;
  gomp_global_icv.dyn_var = true;
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
  if (gomp_global_icv.nthreads_var == ULONG_MAX)
    gomp_global_icv.nthreads_var
      = gomp_global_icv.dyn_var ? topo_max_threads : gomp_available_cpus;

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
  topo_apply (gomp_thread (), &page);
}
