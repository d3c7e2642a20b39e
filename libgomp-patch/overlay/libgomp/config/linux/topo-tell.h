/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: numbers of threads and of CPUs that the program is
   told.  Included by topo.c.

   A program that asks how many threads there will be counts on the answer.
   So the teams of a root that has asked, and for which nobody has set a
   number, get exactly as many threads as it was told, whatever becomes of
   the topology.  The number changes only when it is certain, as far as can
   be seen, that the old answer was given up: when the one statement of the
   process that has ever asked asks again, on the same thread, at the same
   depth of the stack, and has used the answer, for a region, in between.
   And it never becomes more than what was told first: there may be room for
   so many, made once.  In all other cases somebody may still count on the old
   answer, and the number stays: when a second statement asks, or a second
   thread, or a thread of a team, or when one statement asks for several
   objects.  A root that has not asked may have been handed what another
   thread was told: it keeps to the number that was told last when it first
   notices that there is one, and that number stays, too.  A program whose
   threads keep data from one region to the next counts on the number of its
   first region.

   The number of CPUs is such an answer as well: while nobody has set a number
   of threads it is the same one; else it is kept apart, by the same rules.

   Locking: none, except topo_lock for looking at the masks.  */

#ifndef GOMP_TOPO_TELL_H
#define GOMP_TOPO_TELL_H 1

#include <limits.h>
#include "topo-ours.h"
#include "topo-private.h"
#include "topo-user.h"

/* What the process asks.  Accessed with relaxed atomics: who hands a number
   to another thread synchronizes with it.  */

struct topo_question
{
  /* The one statement that has asked, and how deep in the stack; NULL: none
     yet; TOPO_SEVERAL.  */
  const void *site;
  const void *frame;

  /* The root thread that asked there.  One that begins when it has ended may
     have its stack, and this address, but has been told nothing.  */
  const struct gomp_topo_root *asker;

  /* The answers: the first and the last one; 0: none yet.  */
  unsigned first;
  unsigned last;

  /* There was no region of the one who asks since its last question.  */
  bool unused;
};

static struct topo_question topo_threads, topo_processors;

/* Let *WHERE be N.  Threads of a team may ask again and again, all of them:
   nothing that they share is written unless it changes.  */

static void
topo_note (unsigned *where, unsigned n)
{
  if (__atomic_load_n (where, __ATOMIC_RELAXED) != n)
    __atomic_store_n (where, n, __ATOMIC_RELAXED);
}

/* In place of a statement: the number stays.  */
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
    = thr->topo.followed != 0 ? thr->topo.followed : topo_start_version;

  return version - from >= 2;
}

/* Bind the calling root thread as it was, when its mask was MASK.  If that
   comes of our place, to the place, CPUs that the container does not have now
   included; else somebody has changed it.  */

static void
topo_bind_again (const struct topo_set *mask)
{
  struct topo_set place, now;

  if (topo_self.bound != NULL)
    {
      topo_set_of_place (&place, topo_self.bound->list[0]);
      if (topo_set_affinity (pthread_self (), &place)
	  && topo_own_mask (&now) && topo_set_equal (&now, mask))
	return;
    }
  topo_set_affinity (pthread_self (), mask);
}

/* The number of our CPUs for a root thread THR that may have yet to follow:
   what gomp_topo_follow would find, with no effect.  */

static unsigned
topo_count_cpus (struct gomp_thread *thr)
{
  struct xtopo_page page;
  struct topo_set usable, allowed, ours, mask;
  unsigned long long version;
  struct topo_change change = { .usable = &usable, .commit = false };
  unsigned n;

  if ((topo_self.ncpus != 0 && thr->topo.followed == gomp_topo_now ())
      || !topo_read (&page, &version))
    return topo_root_cpus (&topo_self);
  topo_usable (&page, &usable);
  gomp_mutex_lock (&topo_lock);
  change.may_have_left = topo_may_have_left (thr, version);
  bool restore = topo_bound && topo_own_mask (&mask);
  topo_allowed (thr, &change, &allowed);
  if (restore)
    topo_bind_again (&mask);
  gomp_mutex_unlock (&topo_lock);
  topo_ours (&ours, &usable, &allowed);
  n = topo_set_count (&ours);
  return n > 0 ? n : 1;
}

/* Has nobody but the one who asks asked before, and does it ask anew, having
   used the last answer, TOLD?  */

static bool
topo_asks_again (struct topo_question *question, struct gomp_topo_site site,
		 unsigned told)
{
  const void *asked = __atomic_load_n (&question->site, __ATOMIC_RELAXED);

  if (asked == NULL
      && __atomic_compare_exchange_n (&question->site, &asked, site.address,
				      false, __ATOMIC_RELAXED,
				      __ATOMIC_RELAXED))
    {
      __atomic_store_n (&question->frame, site.frame, __ATOMIC_RELAXED);
      __atomic_store_n (&question->asker, &topo_self, __ATOMIC_RELAXED);
      return true;
    }
  return (asked == site.address && told != 0
	  && __atomic_load_n (&question->frame, __ATOMIC_RELAXED) == site.frame
	  && !__atomic_load_n (&question->unused, __ATOMIC_RELAXED));
}

static void
topo_keep (struct topo_question *question)
{
  if (__atomic_load_n (&question->site, __ATOMIC_RELAXED) != TOPO_SEVERAL)
    __atomic_store_n (&question->site, TOPO_SEVERAL, __ATOMIC_RELAXED);
}

/* The number that must not change, or 0.  TOLD is what the root of THR, the
   calling thread, was told last.  */

static unsigned
topo_kept (struct topo_question *question, struct gomp_thread *thr,
	   struct gomp_topo_site site, unsigned told)
{
  if (!topo_in_team (thr) && topo_asks_again (question, site, told))
    return 0;
  topo_keep (question);
  if (topo_procs == TOPO_LATEST && !topo_in_team (thr))
    return 0;
  return told != 0 ? told : __atomic_load_n (&question->last, __ATOMIC_RELAXED);
}

/* Answer a QUESTION of THR, the calling thread, with N.  If it is NEW, it is
   less if less was told first; else it is what the teams of the root already
   have.  TOLD remembers it for the root.  */

static unsigned
topo_answer (struct topo_question *question, struct gomp_thread *thr,
	     unsigned *told, unsigned n, bool new)
{
  unsigned first = __atomic_load_n (&question->first, __ATOMIC_RELAXED);

  if (first == 0)
    __atomic_compare_exchange_n (&question->first, &first, n, false,
				 __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (new && first != 0 && n > first && topo_procs != TOPO_LATEST)
    n = first;
  topo_note (told, n);
  topo_note (&question->last, n);
  if (!__atomic_load_n (&question->unused, __ATOMIC_RELAXED))
    __atomic_store_n (&question->unused, true, __ATOMIC_RELAXED);
  /* The next region tells us that it begins.  */
  thr->topo.version = 0;
  return n;
}

/* The number of threads for the one who asks at SITE.  A new one is not more
   than MOST.  */

static unsigned
topo_ask (struct gomp_topo_site site, unsigned most)
{
  struct gomp_thread *thr = gomp_thread ();
  struct gomp_topo_root *root = topo_root (thr);
  unsigned told = __atomic_load_n (&root->told, __ATOMIC_RELAXED), n;

  if (gomp_icv (false)->dyn_var)
    {
      /* An upper bound.  */
      n = told != 0 ? told : topo_max_threads;
      if (!topo_in_team (thr))
	__atomic_store_n (&root->told, n, __ATOMIC_RELAXED);
      thr->topo.version = 0;
      return n;
    }
  if (topo_in_team (thr))
    {
      /* What the team has inherited, whatever others are told.  */
      topo_keep (&topo_threads);
      n = told != 0 ? told : topo_root_cpus (root);
    }
  else
    n = topo_kept (&topo_threads, thr, site, told);
  if (n != 0)
    return topo_answer (&topo_threads, thr, &root->told, n, false);
  n = topo_count_cpus (thr);
  if (n > most)
    n = most;
  return topo_answer (&topo_threads, thr, &root->told, n, true);
}

int
gomp_topo_ask (struct gomp_topo_site site)
{
  return topo_ask (site, UINT_MAX);
}

/* The CPUs that the calling root thread THR may use now.  */

static unsigned
topo_count_procs (struct gomp_thread *thr)
{
  struct topo_set usable, ours;
  struct xtopo_page page;
  unsigned long long version;

  if (topo_bound)
    return topo_count_cpus (thr);

  /* As libgomp does: what this thread alone may use.  */
  if (!topo_read (&page, &version)
      || !topo_get_affinity (pthread_self (), &ours))
    return topo_root_cpus (&topo_self);
  topo_usable (&page, &usable);
  topo_ours (&usable, &usable, &ours);
  return topo_set_count (&usable) != 0 ? topo_set_count (&usable) : 1;
}

int
gomp_topo_num_procs (struct gomp_topo_site site)
{
  struct gomp_thread *thr = gomp_thread ();
  struct gomp_topo_root *root = topo_root (thr);
  struct gomp_task_icv *icv = gomp_icv (false);
  unsigned told = __atomic_load_n (&root->procs, __ATOMIC_RELAXED), n;
  bool new = false;

  if (topo_procs == TOPO_POSSIBLE)
    return topo_max_threads;
  n = topo_kept (&topo_processors, thr, site, told);
  if (icv->nthreads_topo && !icv->dyn_var)
    {
      unsigned most
	= __atomic_load_n (&topo_processors.first, __ATOMIC_RELAXED);

      if (most == 0 || topo_procs == TOPO_LATEST)
	most = UINT_MAX;
      n = topo_ask (site, most);
    }
  else if (n == 0)
    {
      n = topo_in_team (thr) ? topo_root_cpus (root) : topo_count_procs (thr);
      new = true;
    }
  return topo_answer (&topo_processors, thr, &root->procs, n, new);
}

/* The calling root starts a region: it uses what it was told.  */

static void
topo_use_answer (struct topo_question *question)
{
  if (__atomic_load_n (&question->asker, __ATOMIC_RELAXED) == &topo_self)
    __atomic_store_n (&question->unused, false, __ATOMIC_RELAXED);
}

static void
topo_use_answers (void)
{
  topo_use_answer (&topo_threads);
  topo_use_answer (&topo_processors);
}

/* The calling root has followed.  Until now it had BEFORE CPUs; 0: it had not
   followed.  What number of threads may it not change any more?  */

static void
topo_promise (unsigned before)
{
  bool private = !gomp_icv (false)->dyn_var && topo_has_private ();

  if (private && topo_self.told == 0)
    topo_self.told = before;
  if (topo_self.told == 0)
    {
      topo_self.told = __atomic_load_n (&topo_threads.last, __ATOMIC_RELAXED);
      if (topo_self.told != 0)
	topo_keep (&topo_threads);
    }
  if (private)
    {
      topo_keep (&topo_threads);
      if (topo_self.told == 0)
	topo_self.told = topo_root_cpus (&topo_self);
    }
}

/* Let nthreads-var of THR, the calling thread, be what its root was told, or
   the number of CPUs, in all its tasks in which nobody has set it.  */

static void
topo_set_nthreads (struct gomp_thread *thr)
{
  const struct gomp_topo_root *root = topo_root (thr);
  unsigned told = __atomic_load_n (&root->told, __ATOMIC_RELAXED);
  struct gomp_task *task;

  gomp_icv (true);
  for (task = thr->task;; task = task->parent)
    {
      if (task->icv.nthreads_topo)
	task->icv.nthreads_var = told != 0 ? told : topo_root_cpus (root);
      if (task->parent == NULL)
	break;
    }
  /* A task outside of all regions that is the first to have an ICV takes it
     away when it ends.  */
  if (task->kind != GOMP_TASK_IMPLICIT)
    thr->topo.version = 0;
}

unsigned int
gomp_topo_max_threads (void)
{
  return topo_root_cpus (topo_root (gomp_thread ()));
}

#endif /* GOMP_TOPO_TELL_H */
