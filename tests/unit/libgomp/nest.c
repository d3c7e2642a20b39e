/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* The topology changes while a team is at work.  The team has two threads,
   and one CPU is left by the change.

     levels N   OMP_MAX_ACTIVE_LEVELS=N: both threads start teams, whose
		threads start teams, and so on, four levels deep
     serial     in a region of one thread
     loop       in the middle of a loop
     tasks      between two tasks
     cancel parallel|for|taskgroup
		and the team is then cancelled

   What libgomp asks of the kernel is counted until the team has ended, and
   again after the region that follows.  */

#define _GNU_SOURCE 1
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include "fakekernel.h"

#define DEPTH 4
#define ITERATIONS 1000

static struct xtopo_page *page;
static unsigned long one, both;	/* usable CPUs */
static volatile int requests;
static volatile unsigned long long acked;
static pthread_key_t mark;	/* what a thread keeps */

static int
asked (enum request request, int fd, unsigned long long version)
{
  (void) fd;
  requests++;
  if (request == ACK)
    acked = version;
  return 0;
}

static int
team (void)
{
  int n = 0;

  #pragma omp parallel
  #pragma omp single
  n = omp_get_num_threads ();
  return n;
}

/* Threads that have come to the last level.  */

static int
descend (int level)
{
  int n = 0;

  if (level == DEPTH)
    return 1;
  #pragma omp parallel num_threads(2) reduction(+: n)
  n += descend (level + 1);
  return n;
}

static long
try_levels (int active)
{
  long n = 0;

  omp_set_max_active_levels (active);
  #pragma omp parallel reduction(+: n)
  {
    #pragma omp single
    fakepage_set (page, one, XTOPO_STABLE);
    n += descend (1);
  }
  omp_set_max_active_levels (1);
  return n;
}

static long
try_serial (void)
{
  long n = 0;

  #pragma omp parallel num_threads(1)
  {
    fakepage_set (page, one, XTOPO_STABLE);
    n = team ();
  }
  return n;
}

static long
try_loop (void)
{
  long sum = 0;

  #pragma omp parallel for schedule(dynamic) reduction(+: sum)
  for (int i = 0; i < ITERATIONS; i++)
    {
      if (i == ITERATIONS / 2)
	fakepage_set (page, one, XTOPO_STABLE);
      sum += i;
    }
  return sum;
}

static long
try_tasks (void)
{
  long sum = 0;

  #pragma omp parallel
  #pragma omp single
  #pragma omp taskgroup task_reduction(+: sum)
  for (int i = 0; i < ITERATIONS; i++)
    {
      if (i == ITERATIONS / 2)
	fakepage_set (page, one, XTOPO_STABLE);
      #pragma omp task in_reduction(+: sum)
      sum += i;
    }
  return sum;
}

/* Threads that went on after the point at which they were cancelled.  */

static long
try_cancel (const char *what)
{
  long n = 0;

  if (!omp_get_cancellation ())
    exit (2);
  if (strcmp (what, "parallel") == 0)
    {
      #pragma omp parallel reduction(+: n)
      {
	#pragma omp single
	fakepage_set (page, one, XTOPO_STABLE);
	#pragma omp cancel parallel
	n++;
      }
    }
  else if (strcmp (what, "for") == 0)
    {
      #pragma omp parallel
      {
	#pragma omp single
	fakepage_set (page, one, XTOPO_STABLE);
	#pragma omp for reduction(+: n)
	for (int i = 0; i < ITERATIONS; i++)
	  {
	    #pragma omp cancel for
	    n++;
	  }
      }
    }
  else
    {
      #pragma omp parallel
      #pragma omp single
      #pragma omp taskgroup
      {
	#pragma omp task shared(n)
	{
	  fakepage_set (page, one, XTOPO_STABLE);
	  #pragma omp cancel taskgroup
	  n++;
	}
      }
    }
  return n;
}

int
main (int argc, char **argv)
{
  const char *what = argv[1];
  long result;
  int first, asked_inside, after, again, kept = 0;

  if (argc < 4)
    return 2;
  one = strtoul (argv[argc - 2], NULL, 16);
  both = strtoul (argv[argc - 1], NULL, 16);
  page = fakepage_open (getenv ("GOMP_TOPO_DEV"));
  fakepage_set (page, both, XTOPO_STABLE);
  first = team ();
  pthread_key_create (&mark, NULL);
  #pragma omp parallel
  pthread_setspecific (mark, (void *) (intptr_t) (100 + omp_get_thread_num ()));
  requests = 0;
  result = (strcmp (what, "levels") == 0 ? try_levels (atoi (argv[2]))
	    : strcmp (what, "serial") == 0 ? try_serial ()
	    : strcmp (what, "loop") == 0 ? try_loop ()
	    : strcmp (what, "tasks") == 0 ? try_tasks ()
	    : try_cancel (argv[2]));
  asked_inside = requests;
  after = team ();
  printf ("{\"first\": %d, \"result\": %ld, \"inside\": %d, \"after\": %d, "
	  "\"followed\": %s", first, result, asked_inside, after,
	  acked == page->version ? "true" : "false");
  fakepage_set (page, both, XTOPO_STABLE);
  again = team ();
  #pragma omp parallel reduction(+: kept)
  kept += (intptr_t) pthread_getspecific (mark) == 100 + omp_get_thread_num ();
  printf (", \"again\": %d, \"kept\": %d}\n", again, kept);
  return 0;
}
