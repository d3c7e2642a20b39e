/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* A reader of the topology page across any of its own instructions.

   The program makes libgomp follow a change of the page, and, from the second
   time on that it looks at the page, lets it run one instruction at a time
   (the trap flag of x86).  After N instructions the writer publishes another
   version, whole; for N = 1, 2, ... until the new version is too late for
   that region, and a little longer.  Of the iterations of one instruction,
   such as a copy, each eighth counts.  The two versions differ at both ends
   of the page: what libgomp takes out of it must be one of the two.

     before   GROWING, one CPU usable    one thread, no reset of memory
     after    STABLE, two CPUs usable    two threads, a reset

   Mode "half": the writer begins after N instructions, and goes on only when
   the reader gives up its CPU: the reader has to wait.

   A region that saw neither is printed, and the exit code is 1.  */

#define _GNU_SOURCE 1
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ucontext.h>
#include "fakekernel.h"

#define TRAP_FLAG 0x100
#define TOO_LATE 40	/* steps to go on after the page was read */

static struct xtopo_page *page;
static unsigned long before, after;	/* usable CPUs */
static bool half;
static volatile long steps, change_at;
static volatile bool armed, stepping, changed, writing;
static volatile int looks;
static void *shown;		/* the page as libgomp sees it */
static volatile int resets, acks, yields;
static volatile unsigned long long acked;

/* The writer.  */

static void
begin_change (void)
{
  __atomic_store_n (&page->seq, page->seq + 1, __ATOMIC_RELAXED);
  page->phase = XTOPO_STABLE;
  writing = true;
}

static void
end_change (void)
{
  page->cpus_usable[0] = after;
  __atomic_store_n (&page->seq, page->seq + 1, __ATOMIC_RELEASE);
  __atomic_store_n (&page->version, page->version + 1, __ATOMIC_RELEASE);
  writing = false;
}

static void
protect (bool on)
{
  if (mprotect (shown, XTOPO_PAGE_SIZE, on ? PROT_NONE : PROT_READ) != 0)
    abort ();
}

/* Libgomp looks at the page.  */

static void
fault (int signal, siginfo_t *info, void *context)
{
  ucontext_t *uc = context;

  (void) signal;
  if (!armed || (char *) info->si_addr < (char *) shown
      || (char *) info->si_addr >= (char *) shown + XTOPO_PAGE_SIZE)
    abort ();
  protect (false);
  stepping = ++looks >= 2;
  uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void
trap (int signal, siginfo_t *info, void *context)
{
  static greg_t last;
  static int same;
  ucontext_t *uc = context;
  greg_t here = uc->uc_mcontext.gregs[REG_RIP];

  (void) signal;
  (void) info;
  if (armed && stepping)
    {
      same = here == last ? same + 1 : 0;
      last = here;
      if (same % 8 != 0 || ++steps < change_at)
	return;
      changed = true;
      begin_change ();
      if (!half)
	end_change ();
    }
  else if (armed)
    protect (true);
  stepping = false;
  uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void
watch (bool on)
{
  looks = 0;
  steps = 0;
  stepping = false;
  armed = on;
  protect (on);
}

static void *
find_shown (void)
{
  FILE *maps = fopen ("/proc/self/maps", "re");
  char line[4096];
  void *at = NULL;

  while (maps != NULL && fgets (line, sizeof line, maps) != NULL)
    if (strstr (line, getenv ("GOMP_TOPO_DEV")) && strstr (line, " r--s "))
      sscanf (line, "%p-", &at);
  if (at == NULL)
    abort ();
  fclose (maps);
  return at;
}

/* The kernel.  */

static int
asked (enum request request, int fd, unsigned long long version)
{
  (void) fd;
  resets += request == RESET;
  if (request == ACK)
    {
      acks++;
      acked = version;
      armed = false;	/* what changes now comes too late */
    }
  return 0;
}

int
sched_yield (void)
{
  yields++;
  if (writing)
    end_change ();
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

/* One region that reads the page.  True if it saw the new version.  */

static bool
try (long n)
{
  unsigned long long version = fakepage_set (page, before, XTOPO_GROWING);
  int threads;

  resets = acks = yields = 0;
  change_at = n;
  changed = false;
  watch (true);
  threads = team ();
  watch (false);
  if (writing)
    end_change ();	/* began after the page was read */
  if (acks != 1
      || !((threads == 1 && resets == 0 && acked == version)
	   || (threads == 2 && resets == 1 && changed
	       && (acked == version || acked == version + 1))))
    {
      printf ("step %ld: %d threads, %d resets, %d acknowledgements, version "
	      "%llu of %llu\n", n, threads, resets, acks, acked, version);
      exit (1);
    }
  if (changed && team () != 2)
    {
      printf ("step %ld: the new version was never followed\n", n);
      exit (1);
    }
  return threads == 2;
}

int
main (int argc, char **argv)
{
  struct sigaction on_trap = { .sa_sigaction = trap, .sa_flags = SA_SIGINFO };
  struct sigaction on_fault = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };
  int in_time = 0, too_late = 0, waits = 0;

  if (argc != 4)
    return 2;
  half = strcmp (argv[1], "half") == 0;
  before = strtoul (argv[2], NULL, 16);
  after = strtoul (argv[3], NULL, 16);
  page = fakepage_open (getenv ("GOMP_TOPO_DEV"));
  shown = find_shown ();
  sigaction (SIGTRAP, &on_trap, NULL);
  sigaction (SIGSEGV, &on_fault, NULL);
  team ();
  for (long n = 1; too_late < TOO_LATE; n++)
    {
      if (try (n))
	{
	  in_time++;
	  too_late = 0;
	}
      else
	too_late++;
      waits += yields != 0;
    }
  printf ("{\"in_time\": %d, \"waits\": %d}\n", in_time, waits);
  return 0;
}
