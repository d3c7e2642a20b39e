/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* An ordinary OpenMP program that does what its standard input says, one
   command a line, and says what it saw, one JSON object a line:

     set MASK PHASE     publish a version of the topology page (hex mask)
     raw OFFSET HEX     overwrite bytes of the page, no protocol
     run KIND [N]       one parallel region of that kind; N: num_threads (N)
     tasks              what each thread of the process may run on
     icv                the ICVs that ask for no number, and the places
     told               what omp_get_max_threads says
     procs              what omp_get_num_procs says
     elsewhere          what another statement is told
     in_team            what a team is told
     dynamic_in_team    what a team is told that has omp_set_dynamic (1)
     in_first           what the first thread of a team is told
     nested_root MASK   a root follows MASK while another one is in a team, in
                        which each thread then starts a team
     deep N             what one statement is told, further down the stack
     ask_thread         what a thread is told that then ends: each has the stack
                        of the one before
     team_told MASK     what each thread of a team is told, and how large the
                        team is that it then starts, after another root has
                        asked with MASK usable
     second LINE        this line, by a second root thread, always the same one
     procs_elsewhere    num_procs, by another statement
     procs_in_team [MASK]   num_procs, by the first thread of a team, with MASK
                        usable from then on
     threads N          omp_set_num_threads (N)
     dynamic N          omp_set_dynamic (N)
     repeat N           N empty parallel regions
     task               a parallel region in a task outside of all regions
     target             a parallel region in a target region
     target_team N      masks of a team of two before, after and in the team that
                        follows one in which thread N runs a target region;
                        how many threads that has
     target_view MASK   what thread 1 of a team sees of the first place, before
                        and after thread 0 runs a target region with MASK usable
     target_told [N [MASK]]   what is told in a target region, by thread N of a
                        team, with MASK usable from then on
     taskset all|self|N MASK   as taskset(1) does, from outside; N: the first
                        N threads
     nested             a team in which each thread starts a team
     nested_wait        the same; waits for a line before the inner ones
     capture MASK       %A before and after another root has followed MASK
     roots N MASK1 MASK2   N threads that start teams of their own, twice;
                        the page changes from MASK1 to MASK2 in between
     fork [roots|waste] fork; the child does "run parallel", in a new thread, or
                        "waste 20 2"
     waste N THREADS    N regions in which one thread is late: what CPU time
                        one needs that waits for it
     places N MASK1 MASK2 [idle]   questions about places, while another root
                        thread runs N regions or more, as long as there were
                        few questions, and the page changes; idle: the one who
                        asks has no regions
     storm MS           regions while another thread changes the page
     secure             does the program run with raised privileges?
     closeall           close all file descriptors above 2, as daemons do

   The page is the file in GOMP_TOPO_DEV.  */

#define _GNU_SOURCE 1
#include <dirent.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "fakepage.h"

#define MAX_TEAM 64
#define ITERATIONS 1000

extern void GOMP_parallel_start (void (*) (void *), void *, unsigned);
extern void GOMP_parallel_end (void);

struct seen
{
  int tid;
  unsigned long cpus;		/* first 64 */
  int kept;			/* from its first region */
  int place;
};

struct region
{
  int team;
  struct seen thread[MAX_TEAM];
  long sum;			/* of the numbers below ITERATIONS, if shared */
};

static struct xtopo_page *page;

/* What the calling thread has kept from its first region.  Not a variable of
   threads: those are a promise of their own.  */
static pthread_key_t mark;

#ifdef WITH_PRIVATE_DATA
/* Except where a test wants them.  */
__thread int private_data;
#endif

static unsigned long
affinity (int tid)
{
  unsigned long set[XTOPO_MAX_CPUS / 64] = { 0 };
  sched_getaffinity (tid, sizeof set, (cpu_set_t *) set);
  return set[0];
}

/* What each thread of a team does first.  */

static void
look (struct region *region)
{
  int n = omp_get_thread_num ();
  struct seen *seen = &region->thread[n % MAX_TEAM];

  seen->tid = syscall (SYS_gettid);
  seen->cpus = affinity (0);
  seen->kept = (intptr_t) pthread_getspecific (mark);
  seen->place = omp_get_place_num ();
  if (seen->kept == 0)
    pthread_setspecific (mark, (void *) (intptr_t) (100 + n));
  __atomic_store_n (&region->team, omp_get_num_threads (), __ATOMIC_RELAXED);
}

/* The same for a loop or sections: once, whoever comes.  */

static void
pass (struct region *region)
{
  if (region->thread[omp_get_thread_num () % MAX_TEAM].tid == 0)
    look (region);
}

#define LOOP(name, type, first, clauses)				\
static void								\
run_##name (struct region *r)						\
{									\
  long sum = 0;								\
  _Pragma (clauses)							\
  for (type i = first; i < (type) (first + ITERATIONS); i++)		\
    {									\
      pass (r);								\
      _Pragma ("omp atomic")						\
      sum += i - first;							\
    }									\
  r->sum = sum;								\
}

typedef unsigned long long ull;

/* Iterations that do not fit into a long.  */
#define ULL_FIRST (1ULL << 63)

LOOP (for_static, int, 0, "omp parallel for schedule(static)")
LOOP (for_static_chunk, int, 0,
      "omp parallel for schedule(static, 3)")
LOOP (for_dynamic, int, 0, "omp parallel for schedule(dynamic)")
LOOP (for_monotonic_dynamic, int, 0,
      "omp parallel for schedule(monotonic: dynamic, 2)")
LOOP (for_guided, int, 0, "omp parallel for schedule(guided)")
LOOP (for_monotonic_guided, int, 0,
      "omp parallel for schedule(monotonic: guided)")
LOOP (for_runtime, int, 0, "omp parallel for schedule(runtime)")
LOOP (for_monotonic_runtime, int, 0,
      "omp parallel for schedule(monotonic: runtime)")
LOOP (for_auto, int, 0, "omp parallel for schedule(auto)")
LOOP (for_ull_static, ull, ULL_FIRST,
      "omp parallel for schedule(static, 1)")
LOOP (for_ull_dynamic, ull, ULL_FIRST,
      "omp parallel for schedule(dynamic)")
LOOP (for_ull_guided, ull, ULL_FIRST,
      "omp parallel for schedule(guided)")
LOOP (for_ull_runtime, ull, ULL_FIRST,
      "omp parallel for schedule(runtime)")
LOOP (for_reduction, int, 0, "omp parallel for reduction(+: sum)")
LOOP (for_task_reduction, int, 0,
      "omp parallel for reduction(task, +: sum)")
LOOP (teams, int, 0,
      "omp teams distribute parallel for num_teams(1)")

static void
run_parallel (struct region *r)
{
  #pragma omp parallel
  look (r);
  r->sum = -1;
}

static void
run_for_ordered (struct region *r)
{
  long sum = 0;
  #pragma omp parallel for ordered schedule(dynamic)
  for (int i = 0; i < ITERATIONS; i++)
    {
      pass (r);
      #pragma omp ordered
      sum += i;
    }
  r->sum = sum;
}

static void
run_sections (struct region *r)
{
  long a = 0, b = 0;
  #pragma omp parallel sections
  {
    #pragma omp section
    {
      pass (r);
      for (int i = 0; i < ITERATIONS / 2; i++)
	a += i;
    }
    #pragma omp section
    {
      pass (r);
      for (int i = ITERATIONS / 2; i < ITERATIONS; i++)
	b += i;
    }
  }
  r->sum = a + b;
}

static void
run_taskloop (struct region *r)
{
  long sum = 0;
  #pragma omp parallel
  {
    look (r);
    #pragma omp single
    #pragma omp taskloop reduction(+: sum)
    for (int i = 0; i < ITERATIONS; i++)
      sum += i;
  }
  r->sum = sum;
}

/* What compilers before gcc 4.9 emit.  */

static void
old_body (void *data)
{
  look (data);
}

static void
run_old_abi (struct region *r)
{
  GOMP_parallel_start (old_body, r, 0);
  old_body (r);
  GOMP_parallel_end ();
  r->sum = -1;
}

static void
run_num_threads (struct region *r, int n)
{
  #pragma omp parallel num_threads(n)
  look (r);
  r->sum = -1;
}

static const struct kind
{
  const char *name;
  void (*run) (struct region *);
} kinds[] =
{
#define KIND(name) { #name, run_##name }
  KIND (parallel), KIND (for_static), KIND (for_static_chunk),
  KIND (for_dynamic), KIND (for_monotonic_dynamic), KIND (for_guided),
  KIND (for_monotonic_guided), KIND (for_runtime),
  KIND (for_monotonic_runtime), KIND (for_auto), KIND (for_ull_static),
  KIND (for_ull_dynamic), KIND (for_ull_guided), KIND (for_ull_runtime),
  KIND (for_reduction), KIND (for_task_reduction), KIND (for_ordered),
  KIND (teams), KIND (sections), KIND (taskloop), KIND (old_abi),
};

static int
count_threads (void)
{
  DIR *dir = opendir ("/proc/self/task");
  int n = 0;

  for (struct dirent *e; dir != NULL && (e = readdir (dir)) != NULL;)
    n += e->d_name[0] != '.';
  if (dir != NULL)
    closedir (dir);
  return n;
}

static void
print_region (const struct region *r)
{
  const char *comma = "";

  printf ("{\"team\": %d, \"sum\": %ld, \"ok\": %s, \"tasks\": %d, "
	  "\"threads\": [", r->team, r->sum,
	  r->sum == -1 || r->sum == ITERATIONS * (ITERATIONS - 1) / 2
	  ? "true" : "false", count_threads ());
  for (int i = 0; i < r->team && i < MAX_TEAM; i++)
    if (r->thread[i].tid != 0)
      {
	printf ("%s{\"n\": %d, \"tid\": %d, \"cpus\": %lu, \"kept\": %d, "
		"\"place\": %d}", comma, i, r->thread[i].tid,
		r->thread[i].cpus, r->thread[i].kept, r->thread[i].place);
	comma = ", ";
      }
  printf ("]}\n");
}

/* A region in a task that is not in a region.  */

static void
run_in_task (void)
{
  struct region r = { 0 };

  #pragma omp task shared(r)
  run_parallel (&r);
  print_region (&r);
}

/* A target region without a device: runs here, with a pool of its own.  */

static void
run_target (void)
{
  struct region r = { .sum = -1 };

  #pragma omp target map(tofrom: r)
  {
    #pragma omp parallel
    {
      struct seen *seen = &r.thread[omp_get_thread_num () % MAX_TEAM];
      seen->tid = 1;
      seen->cpus = affinity (0);
      __atomic_store_n (&r.team, omp_get_num_threads (), __ATOMIC_RELAXED);
    }
  }
  print_region (&r);
}

/* A target region with two regions in it, of one thread and of as many as
   come; CPUS, if not 0, are usable from then on.  How many came.  */

static int
target_region (unsigned long cpus)
{
  int level = 0, n = 0;

  #pragma omp target map(tofrom: level, n)
  {
    #pragma omp parallel num_threads(1)
    level = omp_get_level ();
    if (cpus != 0)
      fakepage_set (page, cpus, XTOPO_STABLE);
    #pragma omp parallel
    #pragma omp single
    n = omp_get_num_threads ();
  }
  if (level != 1)
    abort ();
  return n;
}

static void
print_target_team (int in)
{
  unsigned long mask[3][2] = { { 0 } };
  int n = 0;

  #pragma omp parallel num_threads(2)
  {
    int t = omp_get_thread_num ();

    mask[0][t] = affinity (0);
    if (t == in)
      n = target_region (0);
    mask[1][t] = affinity (0);
  }
  #pragma omp parallel num_threads(2)
  mask[2][omp_get_thread_num ()] = affinity (0);
  for (int i = 0; i < 3; i++)
    printf ("%s[%lu, %lu]", i ? ", " : "{\"masks\": [", mask[i][0], mask[i][1]);
  printf ("], \"target\": %d}\n", n);
}

static void
print_target_view (unsigned long cpus)
{
  int seen[2] = { 0 };

  #pragma omp parallel num_threads(2)
  {
    int t = omp_get_thread_num ();

    if (t == 1)
      seen[0] = omp_get_place_num_procs (0);
    #pragma omp barrier
    if (t == 0)
      target_region (cpus);
    #pragma omp barrier
    if (t == 1)
      seen[1] = omp_get_place_num_procs (0);
  }
  printf ("{\"before\": %d, \"after\": %d}\n", seen[0], seen[1]);
}

static int
told_in_target (void)
{
  int told = 0;

  #pragma omp target map(tofrom: told)
  told = omp_get_max_threads ();
  return told;
}

static void
print_target_told (int in, unsigned long cpus)
{
  int told = 0;

  if (in >= 0)
    {
      #pragma omp parallel num_threads(in + 1) reduction(max: told)
      if (omp_get_thread_num () == in)
	{
	  if (cpus != 0)
	    fakepage_set (page, cpus, XTOPO_STABLE);
	  told = told_in_target ();
	}
    }
  else
    told = told_in_target ();
  printf ("{\"max_threads\": %d}\n", told);
}

static void
run (const char *name, int n)
{
  struct region r = { 0 };

  if (n > 0)
    {
      run_num_threads (&r, n);
      print_region (&r);
      return;
    }
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp (kinds[i].name, name) == 0)
      {
	kinds[i].run (&r);
	print_region (&r);
	return;
      }
  fprintf (stderr, "player: no kind %s\n", name);
  exit (2);
}

/* What a program asks and then counts on; each by a statement of its own.  */

static void
print_told (void)
{
  printf ("{\"max_threads\": %d}\n", omp_get_max_threads ());
}

static void
print_procs (void)
{
  printf ("{\"num_procs\": %d}\n", omp_get_num_procs ());
}

/* Another statement that asks, and one in a team.  */

static void
print_told_elsewhere (bool in_team)
{
  int told = 0;

  if (in_team)
    {
      #pragma omp parallel reduction(max: told)
      told = omp_get_max_threads ();
    }
  else
    told = omp_get_max_threads ();
  printf ("{\"max_threads\": %d}\n", told);
}

static void
print_procs_elsewhere (void)
{
  printf ("{\"num_procs\": %d}\n", omp_get_num_procs ());
}

static void
print_dynamic_in_team (void)
{
  int told = 0;

  #pragma omp parallel reduction(max: told)
  {
    omp_set_dynamic (1);
    told = omp_get_max_threads ();
  }
  printf ("{\"max_threads\": %d}\n", told);
}

static void
print_procs_in_team (unsigned long cpus)
{
  int told = 0;

  #pragma omp parallel
  #pragma omp master
  {
    if (cpus != 0)
      fakepage_set (page, cpus, XTOPO_STABLE);
    told = omp_get_num_procs ();
  }
  printf ("{\"num_procs\": %d}\n", told);
}

static void
print_told_in_first (void)
{
  int told = 0;

  #pragma omp parallel
  #pragma omp master
  told = omp_get_max_threads ();
  printf ("{\"max_threads\": %d}\n", told);
}

/* One statement, N frames further down the stack.  */

static int __attribute__ ((noipa))
ask_deep (int n)
{
  int told = n == 0 ? omp_get_max_threads () : ask_deep (n - 1);

  __asm__ volatile ("" : : "r" (told));	/* not the last thing it does */
  return told;
}

static void *
ask_and_end (void *arg)
{
  int told = omp_get_max_threads (), team = 0;

  #pragma omp parallel
  #pragma omp single
  team = omp_get_num_threads ();
  if (arg != NULL)
    printf ("{\"max_threads\": %d, \"team\": %d, \"frame\": %lu}\n", told,
	    team, (unsigned long) __builtin_frame_address (0));
  return NULL;
}

static void
ask_in_thread (void *arg)
{
  static char stack[1 << 20] __attribute__ ((aligned (4096)));
  pthread_attr_t attr;
  pthread_t thread;

  if (pthread_attr_init (&attr) != 0
      || pthread_attr_setstack (&attr, stack, sizeof stack) != 0
      || pthread_create (&thread, &attr, ask_and_end, arg) != 0)
    abort ();
  pthread_attr_destroy (&attr);
  pthread_join (thread, NULL);
}

static void
print_team_told (unsigned long cpus)
{
  int told[MAX_TEAM] = { 0 }, inner[MAX_TEAM] = { 0 }, n = 0;

  omp_set_max_active_levels (2);
  #pragma omp parallel
  {
    int t = omp_get_thread_num () % MAX_TEAM;

    #pragma omp single
    {
      n = omp_get_num_threads ();
      fakepage_set (page, cpus, XTOPO_STABLE);
      ask_in_thread (NULL);
    }
    told[t] = omp_get_max_threads ();
    #pragma omp parallel
    if (omp_get_thread_num () == 0)
      inner[t] = omp_get_num_threads ();
  }
  omp_set_max_active_levels (1);
  printf ("{\"threads\": [");
  for (int t = 0; t < n; t++)
    printf ("%s[%d, %d]", t ? ", " : "", told[t], inner[t]);
  printf ("]}\n");
}

static void
print_icv (void)
{
  printf ("{\"dynamic\": %d, "
	  "\"limit\": %d, \"bind\": %d, \"cpus\": %lu, \"places\": [",
	  omp_get_dynamic (), omp_get_thread_limit (), omp_get_proc_bind (),
	  affinity (0));
  for (int p = 0; p < omp_get_num_places (); p++)
    {
      int n = omp_get_place_num_procs (p), ids[n > 0 ? n : 1];
      unsigned long mask = 0;
      omp_get_place_proc_ids (p, ids);
      for (int i = 0; i < n; i++)
	mask |= 1UL << ids[i];
      printf ("%s%lu", p ? ", " : "", mask);
    }
  printf ("]}\n");
}

/* Change the mask of the first N threads, as another program does.  */

static void
taskset (int n, unsigned long mask)
{
  DIR *dir = opendir ("/proc/self/task");
  int failed = 0;

  for (struct dirent *e; dir != NULL && (e = readdir (dir)) != NULL;)
    {
      int tid = atoi (e->d_name);
      if (tid > 0 && n-- > 0)
	failed += sched_setaffinity (tid, sizeof mask,
				     (cpu_set_t *) &mask) != 0;
    }
  if (dir != NULL)
    closedir (dir);
  printf ("{\"failed\": %d}\n", failed);
}

static void
print_tasks (void)
{
  DIR *dir = opendir ("/proc/self/task");
  const char *comma = "";

  printf ("{\"cpus\": [");
  for (struct dirent *e; dir != NULL && (e = readdir (dir)) != NULL;)
    if (atoi (e->d_name) > 0)
      {
	printf ("%s%lu", comma, affinity (atoi (e->d_name)));
	comma = ", ";
      }
  if (dir != NULL)
    closedir (dir);
  printf ("]}\n");
}

static void
nested (void)
{
  int outer = 0, inner[MAX_TEAM] = { 0 };
  unsigned long cpus = 0;

  omp_set_max_active_levels (2);
  #pragma omp parallel reduction(|: cpus)
  {
    int n = omp_get_thread_num ();
    if (n == 0)
      outer = omp_get_num_threads ();
    #pragma omp parallel reduction(|: cpus)
    {
      cpus |= affinity (0);
      if (omp_get_thread_num () == 0)
	inner[n % MAX_TEAM] = omp_get_num_threads ();
    }
  }
  omp_set_max_active_levels (1);
  printf ("{\"outer\": %d, \"cpus\": %lu, \"inner\": [", outer, cpus);
  for (int i = 0; i < outer; i++)
    printf ("%s%d", i ? ", " : "", inner[i]);
  printf ("]}\n");
}

static void
nested_wait (void)
{
  char line[64];
  int n = 0;

  omp_set_max_active_levels (2);
  #pragma omp parallel num_threads(2) reduction(+: n)
  {
    #pragma omp single
    {
      puts ("{}");
      fflush (stdout);
      if (fgets (line, sizeof line, stdin) == NULL)
	exit (2);
    }
    #pragma omp parallel num_threads(2) reduction(+: n)
    n++;
  }
  omp_set_max_active_levels (1);
  printf ("{\"inner\": %d}\n", n);
}

/* Several root threads.  */

struct root
{
  pthread_t thread;
  struct region before, after;
};

static pthread_barrier_t root_barrier;

static void *
root_main (void *arg)
{
  struct root *root = arg;

  run_parallel (&root->before);
  pthread_barrier_wait (&root_barrier);
  pthread_barrier_wait (&root_barrier);
  run_parallel (&root->after);
  pthread_barrier_wait (&root_barrier);
  return NULL;
}

static void
roots (int n, unsigned long mask1, unsigned long mask2)
{
  struct root *root = calloc (n, sizeof *root);

  fakepage_set (page, mask1, XTOPO_STABLE);
  pthread_barrier_init (&root_barrier, NULL, n + 1);
  for (int i = 0; i < n; i++)
    pthread_create (&root[i].thread, NULL, root_main, &root[i]);
  pthread_barrier_wait (&root_barrier);
  fakepage_set (page, mask2, XTOPO_STABLE);
  pthread_barrier_wait (&root_barrier);
  pthread_barrier_wait (&root_barrier);
  for (int i = 0; i < n; i++)
    {
      pthread_join (root[i].thread, NULL);
      print_region (&root[i].before);
      print_region (&root[i].after);
    }
  free (root);
}

/* Two root threads run regions while a third changes the page, in the right
   way and now and then in the wrong one.  */

static volatile bool storm_over;
static int storm_limit;		/* CPUs that there can be */
static volatile unsigned long storm_changes;

static void *
storm_writer (void *arg)
{
  unsigned state = 12345;

  (void) arg;
  while (!storm_over)
    {
      state = state * 1103515245 + 12345;
      if ((state >> 16) % 64 == 0)
	{
	  page->seq |= 1;	/* a writer that stops half-way */
	  page->version++;
	}
      else
	{
	  page->seq &= ~1u;
	  fakepage_set (page, (state >> 20) & 7, (state >> 24) % 3);
	}
      storm_changes++;
      if (storm_changes % 16 == 0)
	sched_yield ();
    }
  return NULL;
}

static void *
storm_root (void *arg)
{
  long *regions = arg;

  while (!storm_over)
    {
      struct region r = { 0 };
      kinds[*regions % (sizeof kinds / sizeof *kinds)].run (&r);
      if (r.team < 1 || r.team > storm_limit
	  || (r.sum != -1 && r.sum != ITERATIONS * (ITERATIONS - 1) / 2))
	{
	  fprintf (stderr, "player: team %d, sum %ld\n", r.team, r.sum);
	  exit (3);
	}
      (*regions)++;
    }
  return NULL;
}

static void
storm (int ms)
{
  pthread_t writer, root;
  long regions[2] = { 0, 7 };
  double end = omp_get_wtime () + ms / 1e3;

  storm_limit = page->nr_cpus_possible;

  pthread_create (&writer, NULL, storm_writer, NULL);
  pthread_create (&root, NULL, storm_root, &regions[1]);
  while (omp_get_wtime () < end)
    {
      struct region r = { 0 };
      kinds[regions[0]++ % (sizeof kinds / sizeof *kinds)].run (&r);
      omp_get_num_procs ();
    }
  storm_over = true;
  pthread_join (root, NULL);
  pthread_join (writer, NULL);
  page->seq &= ~1u;
  printf ("{\"regions\": [%ld, %ld], \"changes\": %lu}\n", regions[0],
	  regions[1] - 7, storm_changes);
}

/* The list of places as a program asks for it: for a size, then into an array
   of that size.  Adds to WRONG what was written beyond it, or not written.  */

#define UNTOUCHED (-7)

static void
check_ids (int n, void (*ask) (int, int *), int place, long *wrong)
{
  int ids[XTOPO_MAX_CPUS];

  for (int i = 0; i < XTOPO_MAX_CPUS; i++)
    ids[i] = UNTOUCHED;
  ask (place, ids);
  for (int i = 0; i < XTOPO_MAX_CPUS; i++)
    *wrong += (ids[i] == UNTOUCHED) != (i >= n);
}

static void
ask_partition (int place, int *ids)
{
  (void) place;
  omp_get_partition_place_nums (ids);
}

static unsigned long place_masks[2];
static int place_regions;
static volatile bool places_over;
static volatile long places_asked;

/* Fewer questions meet no change; on a busy machine the regions may be over
   before there were as many.  */
#define QUESTIONS 64

static void *
places_root (void *arg)
{
  for (int i = 0; i < place_regions || places_asked < QUESTIONS; i++)
    {
      struct region r = { 0 };
      fakepage_set (page, place_masks[i % 2], XTOPO_STABLE);
      run_parallel (&r);
    }
  places_over = true;
  return arg;
}

struct questions
{
  bool idle;			/* no regions of the one who asks */
  long wrong, number;
};

static void *
ask_for_places (void *arg)
{
  struct questions *asked = arg;
  struct region r = { 0 };

  for (; !places_over; places_asked = ++asked->number)
    {
      int count = omp_get_num_places ();
      check_ids (omp_get_partition_num_places (), ask_partition, 0,
		 &asked->wrong);
      if (!asked->idle)
	asked->wrong += omp_get_partition_num_places () != count;
      for (int p = 0; p < count; p++)
	{
	  int procs = omp_get_place_num_procs (p);
	  asked->wrong += procs == 0;
	  check_ids (procs, omp_get_place_proc_ids, p, &asked->wrong);
	}
      if (asked->number % 16 == 0 && !asked->idle)
	run_parallel (&r);
    }
  return NULL;
}

static void
places (int n, unsigned long mask1, unsigned long mask2, bool idle)
{
  struct questions asked = { .idle = idle };
  pthread_t root, other;

  place_masks[0] = mask1;
  place_masks[1] = mask2;
  place_regions = n;
  places_over = false;
  places_asked = 0;
  pthread_create (&root, NULL, places_root, NULL);
  if (!idle)
    ask_for_places (&asked);
  else if (pthread_create (&other, NULL, ask_for_places, &asked) == 0)
    pthread_join (other, NULL);
  pthread_join (root, NULL);
  printf ("{\"questions\": %ld, \"wrong\": %ld}\n", asked.number, asked.wrong);
}

static void *
capture_root (void *arg)
{
  struct region r = { 0 };

  run_parallel (&r);
  return arg;
}

static void
follow_elsewhere (unsigned long mask)
{
  pthread_t root;

  fakepage_set (page, mask, XTOPO_STABLE);
  pthread_create (&root, NULL, capture_root, NULL);
  pthread_join (root, NULL);
}

static void
capture (unsigned long mask)
{
  char text[2][256];
  int places[2];

  omp_capture_affinity (text[0], sizeof text[0], "%A");
  places[0] = omp_get_num_places ();
  follow_elsewhere (mask);
  omp_capture_affinity (text[1], sizeof text[1], "%A");
  places[1] = omp_get_num_places ();
  printf ("{\"before\": \"%s\", \"after\": \"%s\", \"places\": [%d, %d]}\n",
	  text[0], text[1], places[0], places[1]);
}

static void
nested_root (unsigned long mask)
{
  unsigned long cpus = 0;
  int n = 0;

  omp_set_max_active_levels (2);
  #pragma omp parallel num_threads(2) reduction(+: n) reduction(|: cpus)
  {
    #pragma omp single
    follow_elsewhere (mask);
    #pragma omp parallel num_threads(2) reduction(+: n) reduction(|: cpus)
    {
      n++;
      if (omp_get_thread_num () != 0)
	cpus |= affinity (0);
    }
  }
  omp_set_max_active_levels (1);
  printf ("{\"inner\": %d, \"cpus\": %lu}\n", n, cpus);
}

static double
own_cpu_time (void)
{
  struct timespec now;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec / 1e9;
}

/* The CPU time of the first thread, which waits, as a part of that of the
   last one, which works.  */

static void
waste (int n, int threads)
{
  double time[MAX_TEAM] = { 0 };

  while (n-- > 0)
    {
      #pragma omp parallel num_threads(threads)
      {
	int t = omp_get_thread_num ();
	double begin = own_cpu_time ();

	if (t == threads - 1)
	  for (volatile int i = 0; i < 8000000; i++)
	    ;
	#pragma omp barrier
	time[t] += own_cpu_time () - begin;
      }
    }
  printf ("{\"waits\": %.3f}\n", time[0] / time[threads - 1]);
}

static void *
fork_root (void *arg)
{
  (void) arg;
  run ("parallel", 0);
  return NULL;
}

static void
fork_and_run (bool in_root, bool wasteful)
{
  pthread_t root;

  int status;

  fflush (stdout);
  pid_t child = fork ();
  if (child == 0)
    {
      alarm (20);
      if (wasteful)
	waste (20, 2);
      else if (!in_root)
	run ("parallel", 0);
      else if (pthread_create (&root, NULL, fork_root, NULL) == 0)
	pthread_join (root, NULL);
      fflush (stdout);
      _exit (0);
    }
  waitpid (child, &status, 0);
  printf ("{\"status\": %d}\n", status);
}

static void
raw (size_t offset, const char *hex)
{
  unsigned byte;

  for (; sscanf (hex, "%2x", &byte) == 1 && offset < XTOPO_PAGE_SIZE; hex += 2)
    ((volatile unsigned char *) page)[offset++] = byte;
  puts ("{}");
}

static void
repeat (int n)
{
  while (n-- > 0)
    {
      #pragma omp parallel
      __asm__ volatile ("" : : : "memory");
    }
  puts ("{}");
}

static void obey (const char *line);

static struct
{
  sem_t go, done;
  const char *line;		/* NULL: there is no second thread yet */
} second;

static void *
second_main (void *arg)
{
  for (;;)
    {
      sem_wait (&second.go);
      obey (second.line);
      sem_post (&second.done);
    }
  return arg;
}

static void
let_second (const char *line)
{
  pthread_t thread;

  if (second.line == NULL)
    {
      sem_init (&second.go, 0, 0);
      sem_init (&second.done, 0, 0);
      if (pthread_create (&thread, NULL, second_main, NULL) != 0)
	abort ();
    }
  second.line = line;
  sem_post (&second.go);
  sem_wait (&second.done);
}

static void
obey (const char *line)
{
  char word[64], text[2048] = "";
  unsigned long a = 0, b = 0;
  int n = 0;

  if (strncmp (line, "second ", 7) == 0)
    let_second (line + 7);
  else if (sscanf (line, "set %lx %d", &a, &n) >= 1)
    printf ("{\"version\": %llu}\n", fakepage_set (page, a, n));
  else if (sscanf (line, "raw %lu %2047s", &a, text) == 2)
    raw (a, text);
  else if (sscanf (line, "run %63s %d", word, &n) >= 1)
    run (word, n);
  else if (sscanf (line, "threads %d", &n) == 1)
    omp_set_num_threads (n), puts ("{}");
  else if (sscanf (line, "dynamic %d", &n) == 1)
    omp_set_dynamic (n), puts ("{}");
  else if (sscanf (line, "taskset %63s %lx", word, &a) == 2)
    taskset (strcmp (word, "all") == 0 ? INT_MAX : atoi (word) ?: 1, a);
  else if (sscanf (line, "roots %d %lx %lx", &n, &a, &b) == 3)
    roots (n, a, b);
  else if (sscanf (line, "places %d %lx %lx", &n, &a, &b) == 3)
    places (n, a, b, strstr (line, "idle") != NULL);
  else if (sscanf (line, "repeat %d", &n) == 1)
    repeat (n);
  else if (sscanf (line, "waste %d %lu", &n, &a) == 2)
    waste (n, a);
  else if (strcmp (line, "procs_in_team\n") == 0
	   || sscanf (line, "procs_in_team %lx", &a) == 1)
    print_procs_in_team (a);
  else if (strcmp (line, "dynamic_in_team\n") == 0)
    print_dynamic_in_team ();
  else if (strcmp (line, "in_first\n") == 0)
    print_told_in_first ();
  else if (sscanf (line, "nested_root %lx", &a) == 1)
    nested_root (a);
  else if (strcmp (line, "ask_thread\n") == 0)
    ask_in_thread (&n);
  else if (sscanf (line, "team_told %lx", &a) == 1)
    print_team_told (a);
  else if (sscanf (line, "deep %d", &n) == 1)
    printf ("{\"max_threads\": %d}\n", ask_deep (n));
  else if (strcmp (line, "procs_elsewhere\n") == 0)
    print_procs_elsewhere ();
  else if (sscanf (line, "storm %d", &n) == 1)
    storm (n);
  else if (strcmp (line, "icv\n") == 0)
    print_icv ();
  else if (strcmp (line, "told\n") == 0)
    print_told ();
  else if (strcmp (line, "procs\n") == 0)
    print_procs ();
  else if (strcmp (line, "elsewhere\n") == 0)
    print_told_elsewhere (false);
  else if (strcmp (line, "in_team\n") == 0)
    print_told_elsewhere (true);
  else if (sscanf (line, "target_team %d", &n) == 1)
    print_target_team (n);
  else if (sscanf (line, "target_view %lx", &a) == 1)
    print_target_view (a);
  else if (sscanf (line, "target_told %d %lx", &n, &a) >= 1)
    print_target_told (n, a);
  else if (strcmp (line, "target_told\n") == 0)
    print_target_told (-1, 0);
  else if (sscanf (line, "capture %lx", &a) == 1)
    capture (a);
  else if (strcmp (line, "nested_wait\n") == 0)
    nested_wait ();
  else if (strcmp (line, "task\n") == 0)
    run_in_task ();
  else if (strcmp (line, "target\n") == 0)
    run_target ();
  else if (strcmp (line, "tasks\n") == 0)
    print_tasks ();
  else if (strcmp (line, "nested\n") == 0)
    nested ();
  else if (strcmp (line, "fork\n") == 0)
    fork_and_run (false, false);
  else if (strcmp (line, "fork waste\n") == 0)
    fork_and_run (false, true);
  else if (strcmp (line, "fork roots\n") == 0)
    fork_and_run (true, false);
  else if (strcmp (line, "secure\n") == 0)
    printf ("{\"secure\": %lu}\n", getauxval (AT_SECURE));
  else if (strcmp (line, "closeall\n") == 0)
    close_range (3, ~0U, 0), puts ("{}");
  else
    {
      fprintf (stderr, "player: what is %s", line);
      exit (2);
    }
}

int
main (void)
{
  char line[4096];

  if (getenv ("GOMP_TOPO_DEV") != NULL && getenv ("PLAYER_NO_PAGE") == NULL)
    page = fakepage_open (getenv ("GOMP_TOPO_DEV"));
  pthread_key_create (&mark, NULL);
  while (fgets (line, sizeof line, stdin) != NULL)
    {
      obey (line);
      fflush (stdout);
    }
  return 0;
}
