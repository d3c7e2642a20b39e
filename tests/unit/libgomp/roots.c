/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* One thread is kept in the middle of following a change, in its request to
   the kernel, while another one comes along.

     lock   the other thread starts a region, too: it has to wait until the
	    first one is through
     fork   the other thread forks: the child, in which the first thread does
	    not exist, runs a region

   Or, with nobody kept:

     late   a thread begins after another one has followed

   Whether a thread waits is asked of the kernel: nothing here takes time.  */

#define _GNU_SOURCE 1
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/wait.h>
#include "fakekernel.h"

static struct xtopo_page *page;
static sem_t inside, go_on;
static bool hold;		/* the next request waits for go_on */
static volatile int requests;	/* of these, how many are being served */
static volatile bool overlap;
static volatile int other_tid, resets;

static int
asked (enum request request, int fd, unsigned long long version)
{
  (void) fd;
  (void) version;
  resets += request == RESET;
  if (__atomic_add_fetch (&requests, 1, __ATOMIC_SEQ_CST) > 1)
    overlap = true;
  if (request == RESET && __atomic_exchange_n (&hold, false, __ATOMIC_SEQ_CST))
    {
      sem_post (&inside);
      while (sem_wait (&go_on) != 0)
	continue;
    }
  __atomic_sub_fetch (&requests, 1, __ATOMIC_SEQ_CST);
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

static void *
run_first (void *result)
{
  *(int *) result = team ();
  return NULL;
}

static void *
run_other (void *result)
{
  other_tid = syscall (SYS_gettid);
  *(int *) result = team ();
  other_tid = -1;
  return NULL;
}

/* Is the thread TID asleep in futex(2)?  */

static bool
waits (int tid)
{
  char name[64], text[64] = "";
  FILE *f;

  snprintf (name, sizeof name, "/proc/self/task/%d/syscall", tid);
  f = fopen (name, "re");
  if (f == NULL)
    return false;
  if (fgets (text, sizeof text, f) == NULL)
    text[0] = '\0';
  fclose (f);
  return atoi (text) == SYS_futex;
}

static void
try_lock (pthread_t first, int *teams)
{
  pthread_t other;
  bool waited = false;

  pthread_create (&other, NULL, run_other, &teams[1]);
  while (!overlap && other_tid >= 0 && !waited)
    {
      waited = other_tid > 0 && waits (other_tid);
      sched_yield ();
    }
  sem_post (&go_on);
  pthread_join (first, NULL);
  pthread_join (other, NULL);
  printf ("{\"waited\": %s, \"overlap\": %s, \"teams\": [%d, %d]}\n",
	  waited ? "true" : "false", overlap ? "true" : "false",
	  teams[0], teams[1]);
}

static void
try_fork (pthread_t first, int *teams)
{
  int status;
  pid_t child = fork ();

  if (child == 0)
    {
      alarm (10);
      _exit (team ());
    }
  waitpid (child, &status, 0);
  sem_post (&go_on);
  pthread_join (first, NULL);
  printf ("{\"child\": %d, \"teams\": [%d, %d]}\n",
	  WIFEXITED (status) ? WEXITSTATUS (status) : -1, teams[0], team ());
}

static void
start_late (int *teams)
{
  pthread_t other;
  int before;

  teams[0] = team ();
  before = resets;
  pthread_create (&other, NULL, run_other, &teams[1]);
  pthread_join (other, NULL);
  printf ("{\"resets\": [%d, %d], \"teams\": [%d, %d]}\n", before,
	  resets - before, teams[0], teams[1]);
}

int
main (int argc, char **argv)
{
  int teams[2] = { 0, 0 };
  pthread_t first;

  if (argc != 4)
    return 2;
  page = fakepage_open (getenv ("GOMP_TOPO_DEV"));
  sem_init (&inside, 0, 0);
  sem_init (&go_on, 0, 0);
  fakepage_set (page, strtoul (argv[3], NULL, 16), XTOPO_STABLE);
  if (strcmp (argv[1], "late") == 0)
    {
      start_late (teams);
      return 0;
    }
  hold = true;
  pthread_create (&first, NULL, run_first, &teams[0]);
  while (sem_wait (&inside) != 0)
    continue;
  (strcmp (argv[1], "lock") == 0 ? try_lock : try_fork) (first, teams);
  return 0;
}
