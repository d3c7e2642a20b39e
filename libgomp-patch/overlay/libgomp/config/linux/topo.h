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

#include <pthread.h>
#include <stdbool.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
# pragma GCC visibility push(hidden)
#endif

struct gomp_thread;
struct gomp_topo_root;
struct topo_places;

/* The part of struct gomp_thread that belongs to topo.c.  A target region on
   the host starts with a copy of it, and then has it restored.  */

struct gomp_topo_thread
{
  /* The version of the topology with which this root thread can start a
     region without more ado: the one that it has followed.  0: the next
     region has to look.  */
  unsigned long long version;

  /* Version of the topology that this root thread has followed; 0: none.  */
  unsigned long long followed;

  /* The list of places that the other threads of this root's pool are bound
     to, or NULL while they are not bound.  */
  const struct topo_places *places;

  /* In a target region on the host, in which the thread is at level 0 again,
     the root of the team that it really is in; else NULL.  */
  struct gomp_topo_root *root;

  /* The next team of this root has to bind the threads of the pool anew.  */
  bool rebind;
};

/* Can there be a page?  Its words of 64 bits are read with one load, and its
   sets of CPUs have the layout of cpu_set_t.  */
#define GOMP_TOPO_POSSIBLE (sizeof (long) >= sizeof (long long))

/* Points to the version word of the shared page, or, without a page, to a
   word that is always 0.  */
extern const unsigned long long *gomp_topo_version;

/* A topology page is in use.  Constant after the constructors have run.  */
extern bool gomp_topo_enabled;

/* Called by initialize_env, once before and once after the environment and
   the places in it have been parsed.  */
extern void gomp_topo_init (void);
extern void gomp_topo_init_places (void);

/* gomp_affinity_init_level for OMP_PLACES=<abstract name>: also remembers
   LEVEL and COUNT for later.  Returns what gomp_affinity_init_level does.  */
extern bool gomp_topo_init_level (int level, unsigned long count);

/* A region begins of THR, the calling thread, at level 0: follow the topology
   if it has changed, and THR is a root thread.  */
extern void gomp_topo_follow (struct gomp_thread *thr);

/* Bind NTHR, a docked thread of the calling root's pool, to a place.
   PLACE is an index into gomp_places_list.  */
extern void gomp_topo_bind (struct gomp_thread *nthr, unsigned int place);

/* A thread could not be started with ATTR, because of ERR.  If its CPUs are
   not there any more, ask for none and return true.  */
extern bool gomp_topo_unbind (pthread_attr_t *attr, int err);

/* A target region begins on the host: THR, the calling thread, which was as
   OUTER is, starts anew; and ends, when THR is as it was.  */
extern void gomp_topo_enter_target (struct gomp_thread *thr,
				    struct gomp_thread *outer);
extern void gomp_topo_leave_target (struct gomp_thread *thr);

/* What a root thread shares with all threads of its teams; that of the root
   of THR, the calling thread.  */
extern struct gomp_topo_root *gomp_topo_root (struct gomp_thread *thr);

/* Number of threads, at least 1, that a team started by the calling thread
   should not exceed if dyn-var is true.  Makes no system call.  */
extern unsigned int gomp_topo_max_threads (void);

/* Who asks: where the program will go on, and how deep in the stack.  For
   use in a function that the program calls.  */

struct gomp_topo_site
{
  const void *address;
  const void *frame;
};

#define GOMP_TOPO_SITE							\
  ((struct gomp_topo_site) { __builtin_return_address (0),		\
			     __builtin_frame_address (0) })

/* omp_get_max_threads while nobody has set a number, and omp_get_num_procs,
   for the one who asks at SITE.  */
extern int gomp_topo_ask (struct gomp_topo_site site);
extern int gomp_topo_num_procs (struct gomp_topo_site site);

/* gomp_init_affinity: bind the calling thread to its first place.  False if
   there are no places of ours.  */
extern bool gomp_topo_init_affinity (void);

/* The number of places, and the one of that number, or NULL, as the calling
   thread sees them: they change when its root thread follows, and only
   then.  */
extern int gomp_topo_num_places (void);
extern void *gomp_topo_place (int place);

/* The version of the topology now, 0 if there is no page.  */

static inline unsigned long long
gomp_topo_now (void)
{
  return (GOMP_TOPO_POSSIBLE
	  ? __atomic_load_n (gomp_topo_version, __ATOMIC_ACQUIRE) : 0);
}

/* True if the topology is not the one that the thread has followed, or if it
   has to look for another reason.  This is all that a parallel region costs
   while nothing changes.  */

static inline bool
gomp_topo_changed (const struct gomp_topo_thread *topo)
{
  return gomp_topo_now () != topo->version;
}

#ifdef HAVE_ATTRIBUTE_VISIBILITY
# pragma GCC visibility pop
#endif

#endif /* GOMP_TOPO_H */
