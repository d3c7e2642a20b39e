/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: the interface between topo.c and the rest of libgomp.

   The machine may gain and lose CPUs while a program runs.  The kernel says
   so by counting up one word of a shared page (<xen/topology.h>); each
   thread that can start a team, a "root thread", compares that word with the
   one that it has followed last, whenever it starts a parallel region.

   Locking: see topo.c.  Everything in struct gomp_topo_thread belongs to its
   thread.  */

#ifndef GOMP_TOPO_H
#define GOMP_TOPO_H 1

#include <stdbool.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
# pragma GCC visibility push(hidden)
#endif

struct gomp_thread;
struct gomp_topo_root;
struct topo_places;

/* Value of nthreads-var while nobody has set it: the topology, and what the
   program was told of it, decide.  No environment variable and no call can
   set this value.  */
#define GOMP_TOPO_NTHREADS (~0UL)

/* The part of struct gomp_thread that belongs to topo.c.  A target region on
   the host starts with all of it zero, and then has it restored.  */

struct gomp_topo_thread
{
  /* Version of the topology that this root thread has followed; 0: none.  */
  unsigned long long version;

  /* The list of places that the other threads of this root's pool are bound
     to, or NULL while they are not bound.  */
  const struct topo_places *places;

  /* The next team of this root has to bind the threads of the pool anew.  */
  bool rebind;
};

/* Points to the version word of the shared page, or, without a page, to a
   word that is always 0.  */
extern const volatile unsigned long long *gomp_topo_version;

/* A topology page is in use.  Constant after the constructors have run.  */
extern bool gomp_topo_enabled;

/* Called by initialize_env, once before and once after the environment and
   the places in it have been parsed.  */
extern void gomp_topo_init (void);
extern void gomp_topo_init_places (void);

/* gomp_affinity_init_level for OMP_PLACES=<abstract name>: also remembers
   LEVEL and COUNT for later.  Returns what gomp_affinity_init_level does.  */
extern bool gomp_topo_init_level (int level, unsigned long count);

/* Follow the topology.  THR is the calling thread, at level 0.  */
extern void gomp_topo_follow (struct gomp_thread *thr);

/* Bind NTHR, a docked thread of the calling root's pool, to a place.
   PLACE is an index into gomp_places_list.  */
extern void gomp_topo_bind (struct gomp_thread *nthr, unsigned int place);

/* What a root thread shares with all threads of its teams; the calling
   thread's own.  */
extern struct gomp_topo_root *gomp_topo_self (void);

/* Threads of the next team that the calling thread, a root thread, starts
   while nobody has set a number; 0: not known yet.  Not a part of struct
   gomp_thread: what is told inside of a target region on the host counts
   after it.  */
extern __thread unsigned int gomp_topo_nthreads;

/* The same in any team.  */
extern unsigned int gomp_topo_team_threads (void);

/* Number of threads, at least 1, that a team started by the calling thread
   should not exceed if dyn-var is true.  Makes no system call.  */
extern unsigned int gomp_topo_max_threads (void);

/* omp_get_max_threads while nobody has set a number, and omp_get_num_procs.
   SITE is where the program will go on: it tells the one who asks from
   others.  */
extern int gomp_topo_ask (const void *site);
extern int gomp_topo_num_procs (const void *site);

/* gomp_init_affinity: bind the calling thread to its first place.  False if
   there are no places of ours.  */
extern bool gomp_topo_init_affinity (void);

/* The number of places, and the one of that number, or NULL, as the calling
   thread sees them: they change when its root thread follows, and only
   then.  */
extern int gomp_topo_num_places (void);
extern void *gomp_topo_place (int place);

/* True if the topology is not the one that the thread has followed.  This
   is all that a parallel region costs while nothing changes.  */

static inline bool
gomp_topo_changed (const struct gomp_topo_thread *topo)
{
  return __atomic_load_n (gomp_topo_version, __ATOMIC_ACQUIRE)
	 != topo->version;
}

/* Number of threads, at least 1, of a team that the calling thread starts at
   LEVEL while nobody has set a number.  Makes no system call.  */

static inline unsigned int
gomp_topo_num_threads (unsigned int level)
{
  return (level == 0 && gomp_topo_nthreads != 0
	  ? gomp_topo_nthreads : gomp_topo_team_threads ());
}

#ifdef HAVE_ATTRIBUTE_VISIBILITY
# pragma GCC visibility pop
#endif

#endif /* GOMP_TOPO_H */
