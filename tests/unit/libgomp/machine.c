/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Preloaded into a program: plays a machine with up to 64 CPUs, whatever the
   real one has.  Which CPU a thread may run on is only a number here, so that
   a test sees what a library asks for, and how it takes what it is told.

     MACHINE_STATE     a file of two numbers of 64 bits that the test changes
		       at any time: the CPUs that are online, and those of the
		       container's cpuset (all ones: there is no container)
     MACHINE_SHAPE     SOCKETS,CORES,THREADS: cores in a socket, threads in a
		       core.  CPUs are numbered as Linux does on most x86
		       machines: first thread of each core, then second ones
     MACHINE_TASKSET   hexadecimal: the mask that the program inherits

   The masks follow kernel/sched/core.c and kernel/cgroup/cpuset.c of Linux
   6.12: what a thread asked for is remembered and cut with the cpuset; in the
   root cpuset CPUs that are offline may be asked for; a thread that has lost
   its last CPU may run anywhere afterwards, and what it asked for is
   forgotten.  */

#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_TASKS 1024
#define NOT_ASKED (~0UL)
#define SYS_CPU "/sys/devices/system/cpu/cpu"

struct task
{
  int tid;		/* 0: free */
  pthread_t thread;
  unsigned long asked;	/* sched_setaffinity */
  unsigned long mask;	/* what came of it */
};

static struct
{
  unsigned long online, cpuset;
} *now, seen;

static unsigned sockets, cores, threads;
static unsigned long possible;
static struct task tasks[MAX_TASKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t task_key;		/* its destructor ends a task */

/* The mask that pthread_attr_setaffinity_np has put into an attribute.  */
static __thread const pthread_attr_t *attr_bound;
static __thread unsigned long attr_mask;

static void
die (const char *why)
{
  fprintf (stderr, "machine: %s\n", why);
  abort ();
}

static void *
next (const char *name)
{
  void *symbol = dlsym (RTLD_NEXT, name);
  if (symbol == NULL)
    die (name);
  return symbol;
}

static int
self_tid (void)
{
  return syscall (SYS_gettid);
}

/* The kernel.  Everything here needs LOCK.  */

/* The CPUs of the cpuset.  Never empty.  */

static unsigned long
allowed (void)
{
  unsigned long cpus = seen.cpuset & seen.online & possible;

  if (~seen.cpuset == 0)
    return possible;
  return cpus != 0 ? cpus : seen.online;
}

static void
cut (struct task *task)
{
  unsigned long cpus = allowed ();
  task->mask = task->asked & cpus ? task->asked & cpus : cpus;
}

/* What has happened to the machine since the last call.  */

static void
catch_up (void)
{
  int update = seen.cpuset != now->cpuset
	       || (~now->cpuset != 0 && seen.online != now->online);

  seen = *now;
  for (struct task *task = tasks; task < tasks + MAX_TASKS; task++)
    if (task->tid != 0)
      {
	if (update)
	  cut (task);
	if ((task->mask & seen.online) == 0)
	  {
	    task->asked = NOT_ASKED;
	    cut (task);
	  }
      }
}

static struct task *
find_tid (int tid)
{
  for (struct task *task = tasks; task < tasks + MAX_TASKS; task++)
    if (task->tid == (tid != 0 ? tid : self_tid ()))
      return task;
  return NULL;
}

static struct task *
find_thread (pthread_t thread)
{
  for (struct task *task = tasks; task < tasks + MAX_TASKS; task++)
    if (task->tid != 0 && pthread_equal (task->thread, thread))
      return task;
  return NULL;
}

static struct task *
new_task (void)
{
  for (struct task *task = tasks; task < tasks + MAX_TASKS; task++)
    if (task->tid == 0)
      return task;
  die ("too many threads");
  return NULL;
}

static int
set (struct task *task, size_t size, const cpu_set_t *cpus)
{
  unsigned long asked = 0;

  if (task == NULL)
    return ESRCH;
  memcpy (&asked, cpus, size < sizeof asked ? size : sizeof asked);
  if ((asked & allowed () & seen.online) == 0)
    return EINVAL;
  task->asked = asked;
  cut (task);
  return 0;
}

static int
get (const struct task *task, size_t size, cpu_set_t *cpus)
{
  unsigned long mask;

  if (task == NULL)
    return ESRCH;
  mask = task->mask & seen.online;
  if (size < sizeof mask)
    return EINVAL;
  memset (cpus, 0, size);
  memcpy (cpus, &mask, sizeof mask);
  return 0;
}

static void ended (void *);

static void
forked (void)
{
  struct task *me = find_thread (pthread_self ());

  pthread_mutex_init (&lock, NULL);
  if (me == NULL)
    die ("who am I?");
  for (struct task *task = tasks; task < tasks + MAX_TASKS; task++)
    if (task != me)
      task->tid = 0;
  me->tid = self_tid ();
}

static void
start_machine (void)
{
  const char *shape = getenv ("MACHINE_SHAPE");
  const char *mask = getenv ("MACHINE_TASKSET");
  const char *state = getenv ("MACHINE_STATE");
  int fd = state != NULL ? open (state, O_RDONLY | O_CLOEXEC) : -1;

  if (shape == NULL
      || sscanf (shape, "%u,%u,%u", &sockets, &cores, &threads) != 3
      || sockets * cores * threads < 1 || sockets * cores * threads > 64)
    die ("MACHINE_SHAPE");
  possible = ~0UL >> (64 - sockets * cores * threads);
  if (fd >= 0)
    now = mmap (NULL, sizeof *now, PROT_READ, MAP_SHARED, fd, 0);
  if (fd < 0 || now == MAP_FAILED || pthread_atfork (NULL, NULL, forked) != 0
      || pthread_key_create (&task_key, ended) != 0)
    die ("MACHINE_STATE");
  close (fd);
  seen = *now;
  tasks[0].tid = self_tid ();
  tasks[0].thread = pthread_self ();
  tasks[0].asked = mask != NULL ? strtoul (mask, NULL, 16) : NOT_ASKED;
  cut (&tasks[0]);
}

/* Libraries that use this one are initialized before it.  */

static void
enter (void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once (&once, start_machine);
  pthread_mutex_lock (&lock);
  catch_up ();
}

static int
leave (int error)
{
  pthread_mutex_unlock (&lock);
  return error;
}

/* The C library.  */

int
pthread_setaffinity_np (pthread_t thread, size_t size, const cpu_set_t *cpus)
{
  enter ();
  return leave (set (find_thread (thread), size, cpus));
}

int
pthread_getaffinity_np (pthread_t thread, size_t size, cpu_set_t *cpus)
{
  enter ();
  return leave (get (find_thread (thread), size, cpus));
}

static int
fail (int error)
{
  if (error == 0)
    return 0;
  errno = error;
  return -1;
}

int
sched_setaffinity (pid_t tid, size_t size, const cpu_set_t *cpus)
{
  enter ();
  return fail (leave (set (find_tid (tid), size, cpus)));
}

int
sched_getaffinity (pid_t tid, size_t size, cpu_set_t *cpus)
{
  enter ();
  return fail (leave (get (find_tid (tid), size, cpus)));
}

int
pthread_attr_setaffinity_np (pthread_attr_t *attr, size_t size,
			     const cpu_set_t *cpus)
{
  attr_bound = size != 0 ? attr : NULL;
  attr_mask = 0;
  memcpy (&attr_mask, cpus, size < sizeof attr_mask ? size : sizeof attr_mask);
  return 0;
}

int
pthread_attr_destroy (pthread_attr_t *attr)
{
  static int (*real) (pthread_attr_t *);

  if (real == NULL)
    real = next ("pthread_attr_destroy");
  if (attr == attr_bound)
    attr_bound = NULL;
  return real (attr);
}

struct start
{
  void *(*routine) (void *);
  void *arg;
  struct task task;
  sem_t begun;
};

static void
ended (void *arg)
{
  struct task *task = arg;

  enter ();
  task->tid = 0;
  leave (0);
}

static void *
begin (void *arg)
{
  struct start *start = arg;
  void *(*routine) (void *) = start->routine;
  struct task *task;

  arg = start->arg;
  enter ();
  task = new_task ();
  *task = start->task;
  task->tid = self_tid ();
  task->thread = pthread_self ();
  cut (task);
  leave (0);
  pthread_setspecific (task_key, task);
  sem_post (&start->begun);
  return routine (arg);
}

int
pthread_create (pthread_t *thread, const pthread_attr_t *attr,
		void *(*routine) (void *), void *arg)
{
  static int (*real) (pthread_t *, const pthread_attr_t *,
		      void *(*) (void *), void *);
  struct start start = { .routine = routine, .arg = arg };
  int error;

  if (real == NULL)
    real = next ("pthread_create");
  enter ();
  start.task = *find_tid (0);
  if (attr != NULL && attr == attr_bound)
    {
      start.task.asked = attr_mask;
      if ((attr_mask & allowed () & seen.online) == 0)
	return leave (EINVAL);
    }
  leave (0);
  sem_init (&start.begun, 0, 0);
  error = real (thread, attr, begin, &start);
  if (error == 0)
    sem_wait (&start.begun);
  return error;
}

/* Files of the kernel.  */

static void
print_list (FILE *f, unsigned long cpus)
{
  const char *comma = "";

  for (int cpu = 0; cpu < 64; cpu++)
    if (cpus >> cpu & 1)
      {
	int last = cpu;
	while (last < 63 && cpus >> (last + 1) & 1)
	  last++;
	fprintf (f, last > cpu ? "%s%d-%d" : "%s%d", comma, cpu, last);
	comma = ",";
	cpu = last;
      }
  fputc ('\n', f);
}

/* The CPUs that are online, and for which the number of their core, divided
   by N, is the same as for CPU.  */

static unsigned long
cores_like (unsigned cpu, unsigned n)
{
  unsigned all = sockets * cores;
  unsigned long cpus = 0;

  for (unsigned other = 0; other < all * threads; other++)
    if (other % all / n == cpu % all / n)
      cpus |= 1UL << other;
  return cpus & seen.online;
}

/* NAME below the folder of a CPU.  Caches: two levels for each core, one for
   each two cores.  Return false if there is no such file.  */

static int
print_cpu_file (FILE *f, unsigned cpu, const char *name)
{
  unsigned index;
  char end[64];

  if (cpu >= 64 || (seen.online >> cpu & 1) == 0)
    return 0;
  if (strcmp (name, "topology/thread_siblings_list") == 0)
    print_list (f, cores_like (cpu, 1));
  else if (strcmp (name, "topology/core_siblings_list") == 0)
    print_list (f, cores_like (cpu, cores));
  else if (sscanf (name, "cache/index%u/%63s", &index, end) == 2 && index < 3)
    {
      if (strcmp (end, "level") == 0)
	fprintf (f, "%u\n", index + 1);
      else if (strcmp (end, "shared_cpu_list") == 0)
	print_list (f, cores_like (cpu, index < 2 ? 1 : 2));
      else
	return 0;
    }
  else
    return 0;
  return 1;
}

static int
print_file (FILE *f, const char *path)
{
  unsigned cpu;
  int tid = 0, end = 0;
  struct task *task;

  if (sscanf (path, SYS_CPU "%u/%n", &cpu, &end) == 1 && end > 0)
    return print_cpu_file (f, cpu, path + end);
  if (strcmp (path, "/proc/self/status") == 0)
    tid = getpid ();
  else if (sscanf (path, "/proc/self/task/%d/status", &tid) != 1
	   && strcmp (path, "/proc/thread-self/status") != 0)
    return 0;
  task = find_tid (tid);
  if (task == NULL)
    return 0;
  fputs ("Name:\tplayer\nCpus_allowed_list:\t", f);
  print_list (f, task->mask);
  return 1;
}

FILE *
fopen (const char *path, const char *mode)
{
  static FILE *(*real) (const char *, const char *);
  int found;
  FILE *f;

  if (real == NULL)
    real = next ("fopen");
  if (strncmp (path, SYS_CPU, sizeof SYS_CPU - 1) != 0
      && (strncmp (path, "/proc/", 6) != 0 || strstr (path, "/status") == NULL))
    return real (path, mode);
  f = tmpfile ();
  if (f == NULL)
    die ("no temporary file");
  enter ();
  found = print_file (f, path);
  leave (0);
  if (found)
    {
      rewind (f);
      return f;
    }
  fclose (f);
  errno = ENOENT;
  return NULL;
}
