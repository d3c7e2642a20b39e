/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: what the user and the container allow.  Included by
   topo.c.

   The kernel tells one mask for each thread, and there are four who write it:
   the user (taskset), the program, we, and the kernel, which opens the mask
   of a thread to all that the container permits when the last of its CPUs
   goes away, and does not close it when they come back.  So a mask that is
   suddenly as wide as it can be, after a time in which the CPUs of the old
   one may all have been away, is the kernel's doing, and what the user said
   before still counts.  Unless the old mask was as wide as it could be, too:
   then it has only grown with the machine.

   Locking: topo_lock.  */

#ifndef GOMP_TOPO_USER_H
#define GOMP_TOPO_USER_H 1

#include "topo-ours.h"
#include "topo-root.h"

static struct topo_set topo_user;	/* what the user allows */
static struct topo_mask *topo_masks;	/* all that were made */

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

/* The same, or without /proc those that are there.  */

static bool
topo_own_mask (struct topo_set *set)
{
  return topo_read_status (set) || topo_get_affinity (pthread_self (), set);
}

/* At the start, find out whether the user has confined the process to some
   CPUs.  The kernel intersects every mask with the container's set, and
   keeps doing so when the set changes; so asking for all CPUs shows the
   container's set alone, and if that is what we had, nobody but the
   container confines us and our own mask may grow with it.  */

static bool
topo_init_user (void)
{
  struct topo_set before, after, all;

  memset (&all, 0xff, sizeof all);
  if (!topo_own_mask (&before))
    return false;
  if (topo_set_affinity (pthread_self (), &all))
    {
      if (!topo_own_mask (&after) || topo_set_equal (&before, &after))
	{
	  topo_user = all;
	  return true;
	}
      topo_set_affinity (pthread_self (), &before);
    }
  topo_user = before;
  return true;
}

/* Is SET all that the container permits, of the CPUs that are there?  The
   calling thread has its mask again afterwards, with the CPUs in it that are
   not there.  A mask that is all there can be is left so: the container cuts
   it, and written anew it would not grow with the container.  */

static bool
topo_is_full (const struct topo_set *set)
{
  struct topo_set before, after, all;
  bool full;

  memset (&all, 0xff, sizeof all);
  if (!topo_own_mask (&before) || !topo_set_affinity (pthread_self (), &all))
    return false;
  full = (topo_get_affinity (pthread_self (), &all)
	  && topo_set_equal (set, &all));
  if (!topo_own_mask (&after) || !topo_set_equal (&before, &after))
    topo_set_affinity (pthread_self (), &before);
  return full;
}

/* The one mask of these CPUs, or NULL if there is no memory.  */

static const struct topo_mask *
topo_get_mask (const struct topo_set *cpus)
{
  struct topo_mask *mask;

  for (mask = topo_masks; mask != NULL; mask = mask->next)
    if (topo_set_equal (&mask->cpus, cpus))
      return mask;
  mask = malloc (sizeof *mask);
  if (mask != NULL)
    {
      mask->cpus = *cpus;
      mask->next = topo_masks;
      topo_masks = mask;
    }
  return mask;
}

/* How the topology has changed since ROOT looked last: may CPUs that it knew
   have been away since?  Each coming and each going is a version.  */

struct topo_change
{
  const struct topo_set *usable;	/* now */
  bool may_have_left;
  bool commit;			/* we follow; else somebody only asks */
};

/* Give the threads of ROOT's pool, and ROOT, the calling thread, that have
   the mask FULL the mask SET again.  */

static void
topo_restore (struct gomp_thread *root, const struct topo_set *full,
	      const struct topo_set *set)
{
  struct gomp_thread_pool *pool = root->thread_pool;
  struct topo_set cur;

  if (topo_get_affinity (pthread_self (), &cur)
      && topo_set_equal (&cur, full))
    topo_set_affinity (pthread_self (), set);
  for (unsigned i = 1; pool != NULL && i < pool->threads_used; i++)
    {
      pthread_t thread = gomp_thread_to_pthread_t (pool->threads[i]);

      if (topo_get_affinity (thread, &cur) && topo_set_equal (&cur, full))
	topo_set_affinity (thread, set);
    }
}

/* What is allowed to the pool of ROOT, the calling thread, which is not
   bound by us: the union over its threads.  A program may bind each of its
   threads by itself, and then no single one tells what it may use.  */

static void
topo_allowed_unbound (struct gomp_thread *root,
		      const struct topo_change *change,
		      struct topo_set *allowed)
{
  struct gomp_thread_pool *pool = root->thread_pool;
  const struct topo_set *seen
    = topo_self.seen != NULL ? &topo_self.seen->cpus : &topo_user;
  struct topo_set before, cur, there = *seen;
  bool fallen = false;

  if (!topo_get_affinity (pthread_self (), &before))
    before = topo_user;
  *allowed = before;
  for (unsigned i = 1; pool != NULL && i < pool->threads_used; i++)
    if (topo_get_affinity (gomp_thread_to_pthread_t (pool->threads[i]), &cur))
      topo_set_or (allowed, &cur);

  topo_set_and (&there, change->usable);
  cur = *allowed;
  topo_set_andnot (&cur, seen);
  if (topo_set_count (&cur) != 0
      && (topo_self.fallen || change->may_have_left
	  || topo_set_count (&there) == 0)
      && !topo_self.seen_full && topo_is_full (allowed))
    {
      fallen = topo_set_count (&there) == 0;
      if (change->commit && !fallen)
	topo_restore (root, allowed, seen);
      if (!fallen)
	*allowed = *seen;
    }
  else if (change->commit)
    {
      if (topo_set_count (&cur) != 0)
	topo_set_or (&topo_user, allowed);
      topo_self.seen = topo_get_mask (allowed);
      topo_self.seen_full = topo_is_full (allowed);
    }
  if (change->commit)
    topo_self.fallen = fallen;
}

/* The set that we have bound a docked thread of ROOT's pool, or ROOT, the
   calling thread, itself to.  False if it is not bound by us.  */

static bool
topo_bound_set (struct gomp_thread *root, struct gomp_thread *thr,
		struct topo_set *set)
{
  const struct topo_places *places
    = thr == root ? topo_self.bound : root->topo.places;

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

/* The same if we bind the threads.  What ROOT gets when it asks for all that
   the user allows is allowed, unless somebody else has changed the masks of
   our threads since we set them (taskset -a), so that all of them are now
   inside of the union of what was changed.  A thread whose CPUs have all
   gone was moved by the kernel; that tells nothing.

   Leaves ROOT unbound.  */

static void
topo_allowed_bound (struct gomp_thread *root,
		    const struct topo_change *change,
		    struct topo_set *allowed)
{
  struct gomp_thread_pool *pool = root->thread_pool;
  unsigned n = pool != NULL && pool->threads_used > 1 ? pool->threads_used : 1;
  struct topo_set before, cur, own, changed, unchanged;
  bool left = change->may_have_left;

  memset (&changed, 0, sizeof changed);
  memset (&unchanged, 0, sizeof unchanged);
  if (!topo_get_affinity (pthread_self (), &before))
    before = topo_user;
  if (!topo_set_affinity (pthread_self (), &topo_user))
    {
      /* None of these CPUs is there: whatever the container permits.  */
      memset (&own, 0xff, sizeof own);
      topo_set_affinity (pthread_self (), &own);
    }
  if (!topo_get_affinity (pthread_self (), allowed))
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
	{
	  topo_set_or (&changed, &cur);
	  topo_set_and (&own, change->usable);
	  if (topo_set_count (&own) == 0)
	    left = true;
	}
    }
  topo_set_andnot (&unchanged, &changed);
  if (topo_set_count (&changed) != 0 && topo_set_count (&unchanged) == 0
      && !topo_set_equal (&changed, allowed)
      && !(left && topo_is_full (&changed)))
    {
      *allowed = changed;
      topo_set_affinity (pthread_self (), allowed);
      if (change->commit)
	topo_user = changed;
    }
}

static void
topo_allowed (struct gomp_thread *root, const struct topo_change *change,
	      struct topo_set *allowed)
{
  if (topo_bound)
    topo_allowed_bound (root, change, allowed);
  else
    topo_allowed_unbound (root, change, allowed);
}

#endif /* GOMP_TOPO_USER_H */
