/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Which open file libgomp makes its promise with, seen by a program that
   loads the library at run time.

     fork     after a region, fork; the child runs a region, too
     stolen   the program closes libgomp's descriptor, and opens another file
	      under that number; then a change, a fork, and the end
     replaced the same, and the name of the page is another file's now
     busy     the kernel says that the process has promised already
     plain    the file has no device behind it
     forgotten
	      the kernel does not know of the promise any more
     dlclose  the library is unloaded, and loaded again

   Regions have one thread: what becomes of others that sleep in a library
   that is not there any more is not asked here.  */

#define _GNU_SOURCE 1
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "fakekernel.h"

static struct xtopo_page *page;
static struct stat page_file;
static int registered, acked, foreign;
static int error_of[3];		/* what the kernel answers, by request */

/* Is FD open, as the page?  */

static bool
is_page (int fd)
{
  struct stat st;
  return (fstat (fd, &st) == 0 && st.st_dev == page_file.st_dev
	  && st.st_ino == page_file.st_ino);
}

static int
asked (enum request request, int fd, unsigned long long version)
{
  (void) version;
  registered += request == REGISTER;
  acked += request == ACK && error_of[ACK] == 0;
  if (request != RESET && !is_page (fd))
    foreign++;
  return error_of[request];
}

/* How many descriptors are open as the page; LAST receives one of them.  */

static int
count (int *last)
{
  DIR *dir = opendir ("/proc/self/fd");
  int n = 0;

  for (struct dirent *e; dir != NULL && (e = readdir (dir)) != NULL;)
    if (e->d_name[0] != '.' && is_page (atoi (e->d_name)))
      {
	*last = atoi (e->d_name);
	n++;
      }
  if (dir == NULL)
    abort ();
  closedir (dir);
  return n;
}

static void *
load (void)
{
  void *library = dlopen ("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);

  if (library == NULL)
    {
      fprintf (stderr, "%s\n", dlerror ());
      exit (2);
    }
  return library;
}

static void
body (void *ran)
{
  ++*(int *) ran;
}

static void
region (void *library)
{
  void (*parallel) (void (*) (void *), void *, unsigned, unsigned)
    = dlsym (library, "GOMP_parallel");
  int ran = 0;

  parallel (body, &ran, 1, 0);
  if (ran != 1)
    abort ();
}

static int
wait_for (pid_t child)
{
  int status;

  waitpid (child, &status, 0);
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void
try_fork (void *library)
{
  int before = registered, at_fork, fd;
  pid_t child = fork ();

  if (child == 0)
    {
      at_fork = count (&fd);
      region (library);
      printf ("{\"parent\": %d, \"inherited\": %d, \"own\": %d, "
	      "\"registered\": %d, \"foreign\": %d", before, at_fork,
	      count (&fd), registered - before, foreign);
      fflush (stdout);
      _exit (0);
    }
  wait_for (child);
  printf (", \"kept\": %d}\n", count (&fd));
}

/* A file beside the page.  */

static const char *
other_name (void)
{
  static char name[4096];
  snprintf (name, sizeof name, "%s.other", getenv ("GOMP_TOPO_DEV"));
  return name;
}

static int
open_other (void)
{
  return open (other_name (), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static bool
is_other (int fd)
{
  struct stat st, other;
  return (fstat (fd, &st) == 0 && stat (other_name (), &other) == 0
	  && st.st_dev == other.st_dev && st.st_ino == other.st_ino);
}

/* Put another file where libgomp has the page.  Returns the descriptor.  */

static int
steal (void)
{
  int other = open_other (), fd = -1;

  if (count (&fd) != 1 || dup2 (other, fd) != fd)
    abort ();
  close (other);
  return fd;
}

/* A change, and a region that follows.  */

static void
change (void *library)
{
  fakepage_set (page, page->cpus_usable[0], XTOPO_STABLE);
  region (library);
}

static void
try_stolen (void *library)
{
  int fd = steal (), own;
  bool child_keeps;
  pid_t child;

  registered = 0;
  change (library);
  printf ("{\"registered\": %d, \"foreign\": %d, \"own\": %d, \"kept\": %s",
	  registered, foreign, count (&own), is_other (fd) ? "true" : "false");
  fflush (stdout);
  fd = steal ();
  child = fork ();
  if (child == 0)
    _exit (is_other (fd));
  child_keeps = wait_for (child) == 1;
  dlclose (library);
  printf (", \"child\": %s, \"end\": %s}\n", child_keeps ? "true" : "false",
	  is_other (fd) ? "true" : "false");
}

static void
try_replaced (void *library)
{
  int fd;

  steal ();
  if (rename (other_name (), getenv ("GOMP_TOPO_DEV")) != 0)
    abort ();
  registered = 0;
  change (library);
  change (library);
  printf ("{\"registered\": %d, \"foreign\": %d, \"own\": %d}\n",
	  registered, foreign, count (&fd));
}

/* What comes of an ERROR as the answer to REQUEST.  */

static void
try_error (void *library, enum request request, int error)
{
  int fd, now = registered;

  error_of[request] = error;
  acked = 0;
  change (library);
  change (library);
  now = registered - now;
  error_of[request] = 0;
  change (library);
  printf ("{\"registered\": %d, \"acked\": %d, \"open\": %d}\n", now, acked,
	  count (&fd));
}

static bool
is_loaded (void)
{
  void *library = dlopen ("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);

  if (library != NULL)
    dlclose (library);
  return library != NULL;
}

static void
try_dlclose (void *library)
{
  int fd, open_before = count (&fd), open_after, again, status;
  pid_t child;

  dlclose (library);
  open_after = count (&fd);
  printf ("{\"before\": %d, \"after\": %d, \"loaded\": %s", open_before,
	  open_after, is_loaded () ? "true" : "false");
  fflush (stdout);
  child = fork ();
  if (child == 0)
    _exit (0);
  status = wait_for (child);
  registered = 0;
  library = load ();
  region (library);
  again = registered;
  printf (", \"fork\": %d, \"again\": %d, \"open\": %d}\n", status, again,
	  count (&fd));
}

int
main (int argc, char **argv)
{
  void *library;

  if (argc != 4)
    return 2;
  page = fakepage_open (getenv ("GOMP_TOPO_DEV"));
  if (stat (getenv ("GOMP_TOPO_DEV"), &page_file) != 0)
    return 2;
  library = load ();
  if (strcmp (argv[1], "busy") == 0)
    try_error (library, REGISTER, EBUSY);
  else if (strcmp (argv[1], "plain") == 0)
    try_error (library, REGISTER, ENOTTY);
  else
    region (library);
  if (strcmp (argv[1], "fork") == 0)
    try_fork (library);
  else if (strcmp (argv[1], "stolen") == 0)
    try_stolen (library);
  else if (strcmp (argv[1], "replaced") == 0)
    try_replaced (library);
  else if (strcmp (argv[1], "forgotten") == 0)
    try_error (library, ACK, ENOTCONN);
  else if (strcmp (argv[1], "dlclose") == 0)
    try_dlclose (library);
  return 0;
}
