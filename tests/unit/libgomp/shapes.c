/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Ordinary OpenMP programs, each with its own way to learn how many threads
   there are and to share out its work by hand.

     shapes NAME random MS MASK...   rounds of that program, while a thread
                             makes these CPUs usable, at random and at random
                             moments; prints how many rounds were wrong, and
                             how many there were
     shapes NAME MASK...     one round with each of these CPUs usable; prints
                             the sizes of the teams

   With WITH_PRIVATE_DATA some of them keep data in their threads; data of
   threads anywhere in a program are a promise of all of it.

   GOMP_TOPO_DEV is the page; without it nothing changes: stock libgomp.  The
   first mask is that of the page at the start.  */

#define _GNU_SOURCE 1
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/wait.h>
#include "fakepage.h"

#define ITEMS 240
#define MAX_TEAM 256

/* The right result: each item once.  */
#define WANTED (ITEMS * (ITEMS + 1L) / 2)

/* As gfortran calls them.  */
extern int omp_get_max_threads_ (void);
extern int omp_get_num_procs_ (void);

static struct xtopo_page *page;
static int first;		/* what was asked or set at the start */
static int size;		/* of the team */

/* The part of the items that thread T of N computes, and so leaves out all
   that a thread which is not there should have computed.  */

static long
part (int t, int n)
{
  long sum = 0;

  for (int i = t; i < ITEMS; i += n)
    sum += i + 1;
  return sum;
}

static void
saw_team (void)
{
  if (omp_get_thread_num () == 0)
    size = omp_get_num_threads ();
}

/* A region without a number, shared out by N.  */

static long
region (int n)
{
  long sum = 0;

  #pragma omp parallel reduction(+: sum)
  {
    saw_team ();
    sum += part (omp_get_thread_num (), n);
  }
  return sum;
}

static void
no_start (void)
{
}

static void
ask_start (void)
{
  first = omp_get_max_threads ();
}

static void
procs_start (void)
{
  first = omp_get_num_procs ();
}

static void
fortran_start (void)
{
  first = omp_get_max_threads_ ();
  region (first);
}

static void
fortran_procs_start (void)
{
  first = omp_get_num_procs_ ();
  region (first);
}

static void
set_start (void)
{
  first = 3;
  omp_set_num_threads (3);
}

static void
env_start (void)
{
  first = atoi (getenv ("OMP_NUM_THREADS"));
}

static void
dynamic_start (void)
{
  omp_set_dynamic (1);
}

static void
nested_start (void)
{
  omp_set_max_active_levels (2);
}

static long
by_first (void)
{
  return region (first);
}

static long
by_clause (void)
{
  long sum = 0;

  #pragma omp parallel num_threads(3) reduction(+: sum)
  {
    saw_team ();
    sum += part (omp_get_thread_num (), 3);
  }
  return sum;
}

static long
by_procs_in_clause (void)
{
  int n = omp_get_num_procs ();
  long sum = 0;

  #pragma omp parallel num_threads(n) reduction(+: sum)
  {
    saw_team ();
    sum += part (omp_get_thread_num (), n);
  }
  return sum;
}

static long
ask_each_time (void)
{
  return region (omp_get_max_threads ());
}

/* Asked once for a few regions, as a time step of a simulation does.  */

static long
ask_each_step (void)
{
  int n = omp_get_max_threads ();

  return (region (n) + region (n) + region (n)) / 3;
}

static long
num_threads_inside (void)
{
  long sum = 0;

  #pragma omp parallel reduction(+: sum)
  {
    saw_team ();
    sum += part (omp_get_thread_num (), omp_get_num_threads ());
  }
  return sum;
}

static long
loop (void)
{
  long sum = 0;

  #pragma omp parallel for reduction(+: sum) schedule(static)
  for (int i = 0; i < ITEMS; i++)
    {
      saw_team ();
      sum += i + 1;
    }
  return sum;
}

static long
max_threads_inside (void)
{
  long sum = 0;

  #pragma omp parallel reduction(+: sum)
  {
    saw_team ();
    sum += part (omp_get_thread_num (), omp_get_max_threads ());
  }
  return sum;
}

/* A place for each thread, made at the start, and a question before each
   region: a team that has grown would write beyond its end.  */

static long slots[MAX_TEAM];

static long
slots_by_first (void)
{
  int n = omp_get_max_threads ();
  long sum = 0;

  memset (slots, 0, sizeof slots);
  #pragma omp parallel
  {
    saw_team ();
    slots[omp_get_thread_num ()] = part (omp_get_thread_num (), n);
  }
  for (int i = 0; i < first; i++)
    sum += slots[i];
  return sum;
}

/* Two statements of Fortran.  */

static long
fortran_slots (void)
{
  int n = omp_get_max_threads_ ();
  long sum = region (first);

  return region (n) == WANTED ? sum : -1;
}

static long
fortran_procs (void)
{
  int n = omp_get_num_procs_ ();
  long sum = region (first);

  return region (n) == WANTED ? sum : -1;
}

/* A library that asks for itself, in between.  */

static long
with_library (void)
{
  int n = omp_get_max_threads ();
  long sum = region (first);

  return region (n) == WANTED ? sum : -1;
}

#ifdef WITH_PRIVATE_DATA

/* Each thread counts what it has done in all regions.  */

static long counted;
#pragma omp threadprivate (counted)

static long
private_sums (void)
{
  long sum = 0;

  #pragma omp parallel
  counted = 0;
  #pragma omp parallel
  {
    saw_team ();
    counted += part (omp_get_thread_num (), first);
  }
  #pragma omp parallel sections
  {
    #pragma omp section
    ;
    #pragma omp section
    ;
  }
  #pragma omp parallel reduction(+: sum)
  sum += counted;
  return sum;
}

/* The same for who has never asked.  */

static long
private_loop (void)
{
  long sum = 0;

  #pragma omp parallel
  counted = 0;
  #pragma omp parallel for schedule(static)
  for (int i = 0; i < ITEMS; i++)
    {
      saw_team ();
      counted += i + 1;
    }
  #pragma omp parallel reduction(+: sum)
  sum += counted;
  return sum;
}

/* Each thread makes room in one region, and uses it in another.  */

static long *own;
#pragma omp threadprivate (own)

static long
private_pointer (void)
{
  long sum = 0;

  #pragma omp parallel
  own = calloc (1, sizeof *own);
  #pragma omp parallel for schedule(static)
  for (int i = 0; i < ITEMS; i++)
    {
      saw_team ();
      if (own != NULL)
	*own += i + 1;
    }
  #pragma omp parallel reduction(+: sum)
  if (own != NULL)
    {
      sum += *own;
      free (own);
      own = NULL;
    }
  return sum;
}

#endif /* WITH_PRIVATE_DATA */

static long
nested (void)
{
  long sum = 0;

  #pragma omp parallel num_threads(2) reduction(+: sum)
  {
    int n = omp_get_max_threads (), t = omp_get_thread_num ();
    #pragma omp parallel reduction(+: sum)
    {
      if (t == 0)
	saw_team ();
      if (omp_get_thread_num () == 0 && omp_get_num_threads () != n)
	sum -= WANTED;
      sum += part (omp_get_thread_num (), omp_get_num_threads ());
    }
  }
  return sum / 2;
}

/* Told inside of a target region that runs here, and counted on outside.  */

static long
told_in_target (void)
{
  int n = 0;

  #pragma omp target map(from: n)
  n = omp_get_max_threads ();
  return region (n);
}

static long
tasks (void)
{
  long sum = 0;

  #pragma omp parallel
  {
    saw_team ();
    #pragma omp single
    for (int t = 0; t < first; t++)
      {
	#pragma omp task firstprivate(t)
	{
	  long mine = part (t, first);
	  #pragma omp atomic
	  sum += mine;
	}
      }
  }
  return sum;
}

/* Threads of its own, each of which starts teams, by the number that the main
   thread was told.  */

static void *
worker (void *sum)
{
  long mine = 0;

  #pragma omp parallel reduction(+: mine)
  {
    size = omp_get_num_threads ();
    mine += part (omp_get_thread_num (), first);
  }
  *(long *) sum = mine;
  return NULL;
}

static long
workers (void)
{
  pthread_t thread[2];
  long sum[2] = { 0, 0 };

  for (int i = 0; i < 2; i++)
    if (pthread_create (&thread[i], NULL, worker, &sum[i]) != 0)
      abort ();
  for (int i = 0; i < 2; i++)
    pthread_join (thread[i], NULL);
  return sum[0] == sum[1] ? sum[0] : -1;
}

/* The same, but the threads ask themselves, and use room of the main thread,
   which it has made by what it was told.  */

static void *
asking_worker (void *sum)
{
  int n = omp_get_max_threads ();
  long *room = sum, mine = 0;

  #pragma omp parallel
  {
    int t = omp_get_thread_num ();

    if (t == 0)
      size = omp_get_num_threads ();
    if (t < first)
      room[t] = part (t, n);
  }
  for (int i = 0; i < first; i++)
    mine += room[i];
  room[0] = mine;
  return NULL;
}

static long
asking_workers (void)
{
  pthread_t thread[2];
  long sum[2], *room[2];

  for (int i = 0; i < 2; i++)
    {
      room[i] = calloc (first, sizeof *room[i]);
      if (pthread_create (&thread[i], NULL, asking_worker, room[i]) != 0)
	abort ();
    }
  for (int i = 0; i < 2; i++)
    {
      pthread_join (thread[i], NULL);
      sum[i] = room[i][0];
      free (room[i]);
    }
  return sum[0] == sum[1] ? sum[0] : -1;
}

/* Room for the threads, made by the first answer, and one question before
   each region.  */

static long
lazy (void)
{
  static long *room;
  static int nroom;
  int n = omp_get_max_threads ();
  long sum = 0;

  if (room == NULL)
    {
      room = calloc (n, sizeof *room);
      nroom = n;
    }
  memset (room, 0, nroom * sizeof *room);
  #pragma omp parallel
  {
    saw_team ();
    if (omp_get_thread_num () < nroom)
      room[omp_get_thread_num ()] = part (omp_get_thread_num (), n);
  }
  for (int i = 0; i < nroom; i++)
    sum += room[i];
  return sum;
}

/* One function that asks, for callers that know nothing of each other.  */

static int __attribute__ ((noipa))
helper (void)
{
  int n = omp_get_max_threads ();

  __asm__ volatile ("" : : "r" (n));	/* not the last thing it does */
  return n;
}

static void __attribute__ ((noipa))
helper_start (void)
{
  char deep[256];

  __asm__ volatile ("" : : "r" (deep) : "memory");
  first = helper ();
  __asm__ volatile ("" : : "r" (deep) : "memory");
}

static long
helper_round (void)
{
  int n = helper ();
  long sum = region (first);

  return region (n) == WANTED ? sum : -1;
}

/* Objects, each of which asks when it is made.  */

static int object[3];

static void __attribute__ ((noipa))
make_object (int *n)
{
  *n = omp_get_max_threads ();
  __asm__ volatile ("" : : "r" (*n));
}

static long
objects (void)
{
  long sum = 0;

  if (object[0] == 0)
    for (int i = 0; i < 3; i++)
      {
	make_object (&object[i]);
	usleep (1000);
      }
  for (int i = 0; i < 3; i++)
    sum += region (object[i]);
  return sum / 3;
}

/* Habits that cannot be seen.  Counting the threads of one region, and
   sharing out another by it.  */

static long
count_single (void)
{
  int n = 0;

  #pragma omp parallel
  #pragma omp single
  n = omp_get_num_threads ();
  return region (n);
}

static long
count_each (void)
{
  int n = 0;

  #pragma omp parallel
  {
    #pragma omp atomic
    n++;
  }
  return region (n);
}

/* What a thread leaves in one region under its number, it looks for in
   another.  */

static long
by_number (void)
{
  static long *room[MAX_TEAM];
  long sum = 0;

  #pragma omp parallel
  room[omp_get_thread_num ()] = calloc (1, sizeof *room[0]);
  #pragma omp parallel for schedule(static)
  for (int i = 0; i < ITEMS; i++)
    {
      saw_team ();
      if (room[omp_get_thread_num ()] != NULL)
	*room[omp_get_thread_num ()] += i + 1;
    }
  for (int i = 0; i < MAX_TEAM && room[i] != NULL; i++)
    {
      sum += *room[i];
      free (room[i]);
      room[i] = NULL;
    }
  return sum;
}

/* Objects that ask by one statement at one depth, each after the last one has
   had its region: what an interpreter's calls look like.  */

static long
interpreter (void)
{
  static int told[3], calls;
  int i = calls++ % 3;

  make_object (&told[i]);
  if (region (told[i]) != WANTED)
    return -1;
  return region (told[told[(i + 1) % 3] != 0 ? (i + 1) % 3 : i]);
}

/* Room for as many threads as somebody else says that there are CPUs.  */

static void
elsewhere_start (void)
{
  cpu_set_t set;

  if (sched_getaffinity (0, sizeof set, &set) != 0)
    abort ();
  first = CPU_COUNT (&set);
}

static long
elsewhere (void)
{
  long sum = 0;

  memset (slots, 0, sizeof slots);
  #pragma omp parallel
  {
    saw_team ();
    slots[omp_get_thread_num ()]
      = part (omp_get_thread_num (), omp_get_num_threads ());
  }
  for (int i = 0; i < first; i++)
    sum += slots[i];
  return sum;
}

static const struct shape
{
  const char *name;
  void (*start) (void);
  long (*round) (void);
} shapes[] =
{
  { "max_threads", ask_start, by_first },
  { "num_procs", procs_start, by_first },
  { "fortran", fortran_start, by_first },
  { "fortran_slots", fortran_start, fortran_slots },
  { "fortran_procs", fortran_procs_start, fortran_procs },
  { "clause", no_start, by_clause },
  { "environment", env_start, by_first },
  { "set", set_start, by_first },
  { "clause_procs", no_start, by_procs_in_clause },
  { "each_time", no_start, ask_each_time },
  { "each_step", no_start, ask_each_step },
  { "inside", no_start, num_threads_inside },
  { "loop", no_start, loop },
  { "max_inside", no_start, max_threads_inside },
  { "slots", ask_start, slots_by_first },
  { "library", ask_start, with_library },
#ifdef WITH_PRIVATE_DATA
  { "private", ask_start, private_sums },
  { "private_loop", no_start, private_loop },
  { "private_pointer", no_start, private_pointer },
#endif
  { "nested", nested_start, nested },
  { "target", no_start, told_in_target },
  { "tasks", ask_start, tasks },
  { "workers", ask_start, workers },
  { "asking_workers", ask_start, asking_workers },
  { "lazy", no_start, lazy },
  { "helper", helper_start, helper_round },
  { "objects", no_start, objects },
  { "dynamic_inside", dynamic_start, num_threads_inside },
  { "count_single", no_start, count_single },
  { "count_each", no_start, count_each },
  { "by_number", no_start, by_number },
  { "interpreter", no_start, interpreter },
  { "elsewhere", elsewhere_start, elsewhere },
};

static volatile bool over;
static char **masks;
static int nmasks;

static void *
change (void *state)
{
  unsigned r = *(unsigned *) state;

  while (!over)
    {
      r = r * 1103515245 + 12345;
      fakepage_set (page, strtoul (masks[r / 65536 % nmasks], NULL, 16),
		    r / 1048576 % 3);
      usleep (r / 65536 % 512);
    }
  return NULL;
}

static void
at_random (const struct shape *shape, double ms)
{
  double end = omp_get_wtime () + ms / 1e3;
  long rounds = 0, wrong = 0;
  pthread_t changer;
  unsigned seed = 1;

  if (page != NULL && pthread_create (&changer, NULL, change, &seed) != 0)
    abort ();
  for (; rounds < 20 || omp_get_wtime () < end; rounds++)
    wrong += shape->round () != WANTED;
  over = true;
  if (page != NULL)
    pthread_join (changer, NULL);
  printf ("%ld %ld\n", wrong, rounds);
}

int
main (int argc, char **argv)
{
  const char *name = getenv ("GOMP_TOPO_DEV");

  if (argc < 3)
    return 2;
  if (name != NULL)
    page = fakepage_open (name);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (strcmp (shapes[i].name, argv[1]) == 0)
      {
	shapes[i].start ();
	if (argc > 4 && strcmp (argv[2], "random") == 0)
	  {
	    masks = argv + 4;
	    nmasks = argc - 4;
	    at_random (&shapes[i], atof (argv[3]));
	    return 0;
	  }
	for (int j = 2; j < argc; j++)
	  {
	    if (j > 2)
	      fakepage_set (page, strtoul (argv[j], NULL, 16), XTOPO_STABLE);
	    if (shapes[i].round () != WANTED)
	      return 3;
	    printf ("%d ", size);
	  }
	puts ("");
	return 0;
      }
  return 2;
}
