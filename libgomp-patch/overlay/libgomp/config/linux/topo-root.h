/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: what a root thread knows, and shares with the
   threads of its teams.  Included by topo.c.  */

#ifndef GOMP_TOPO_ROOT_H
#define GOMP_TOPO_ROOT_H 1

#include "libgomp.h"
#include <stdbool.h>
#include "topo-places.h"

/* A set of CPUs that a pool was seen to be allowed.  Never changed or freed
   once made; there are few.  */

struct topo_mask
{
  struct topo_mask *next;
  struct topo_set cpus;
};

/* Every thread has one, and uses its own while it is a root thread, at
   level 0; in a team it uses that of its root, which gomp_thread_pool points
   to.  Written by its thread at level 0, when no team runs, except where it
   says otherwise.  Small: a library that is loaded late finds little room for
   data of threads.  */

struct gomp_topo_root
{
  /* Our CPUs, as followed last; 0: none yet.  */
  unsigned int ncpus;

  /* The number of threads that the program has been told and may count on;
     0: none.  Any thread of a team may write it, relaxed.  */
  unsigned int told;

  /* The same for the number of processors.  */
  unsigned int procs;

  /* The places that API calls describe, or NULL: not known yet.  */
  const struct topo_places *view;

  /* This thread is bound to the first of these places; NULL: not by us.  */
  const struct topo_places *bound;

  /* What the pool was allowed, as seen last, if we do not bind it.  */
  const struct topo_mask *seen;

  /* SEEN was all that the container permitted of the CPUs there were.  */
  bool seen_full;

  /* The kernel has let go of SEEN because none of its CPUs were there.  */
  bool fallen;
};

static __thread struct gomp_topo_root topo_self;

/* Is THR a thread of a team, perhaps in a target region on the host, and not
   a root thread that may follow?  */

static bool
topo_in_team (const struct gomp_thread *thr)
{
  return thr->ts.level != 0 || thr->topo.root != NULL;
}

/* That of the root thread of THR, the calling thread.  */

static struct gomp_topo_root *
topo_root (struct gomp_thread *thr)
{
  if (thr->topo.root != NULL)
    return thr->topo.root;
  if (thr->ts.level != 0 && thr->thread_pool != NULL)
    return thr->thread_pool->topo;
  return &topo_self;
}

struct gomp_topo_root *
gomp_topo_root (struct gomp_thread *thr)
{
  return topo_root (thr);
}

static unsigned
topo_root_cpus (const struct gomp_topo_root *root)
{
  return (root->ncpus != 0 ? root->ncpus
	  : __atomic_load_n (&gomp_available_cpus, __ATOMIC_RELAXED));
}

/* The list of places that the calling thread sees, or NULL.  */

static const struct topo_places *
topo_view (void)
{
  struct gomp_topo_root *root = topo_root (gomp_thread ());
  const struct topo_places *view
    = __atomic_load_n (&root->view, __ATOMIC_ACQUIRE);

  if (view == NULL)
    {
      view = __atomic_load_n (&topo_current, __ATOMIC_ACQUIRE);
      __atomic_store_n (&root->view, view, __ATOMIC_RELEASE);
    }
  return view;
}

int
gomp_topo_num_places (void)
{
  const struct topo_places *view = gomp_topo_enabled ? topo_view () : NULL;

  return view != NULL ? view->len : gomp_places_list_len;
}

void *
gomp_topo_place (int place)
{
  const struct topo_places *view = gomp_topo_enabled ? topo_view () : NULL;

  if (place < 0
      || place >= (int) (view != NULL ? view->len : gomp_places_list_len))
    return NULL;
  return view != NULL ? view->list[place] : gomp_places_list[place];
}

bool
gomp_topo_init_affinity (void)
{
  struct gomp_thread *thr = gomp_thread ();
  const struct topo_places *view = gomp_topo_enabled ? topo_view () : NULL;

  if (view == NULL)
    return false;
  pthread_setaffinity_np (pthread_self (), gomp_cpuset_size,
			  (const cpu_set_t *) view->list[0]);
  topo_self.bound = view;
  thr->place = 1;
  thr->ts.place_partition_off = 0;
  thr->ts.place_partition_len = view->len;
  return true;
}

#endif /* GOMP_TOPO_ROOT_H */
