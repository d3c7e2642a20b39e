/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Preloaded into a program: plays the kernel behind a topology page that is
   only a file.  The requests of libgomp are answered, and appended to the
   file RECORDER_LOG, one line each:

     register           XTOPO_REGISTER_RUNNING
     register always    XTOPO_REGISTER
     ack VERSION        XTOPO_ACK
     reset syscall|ioctl VERSION FLAGS GRANULE

   RECORDER_ESTALE=N: the first N resets fail with ESTALE.
   RECORDER_NOSYS: the system call fails with ENOSYS, or, if the value is
     EPERM, with that; only the ioctl works.
   RECORDER_NODEV: the ioctls fail with ENOTTY.
   RECORDER_OLD: a kernel that does not know XTOPO_REGISTER_RUNNING.
   RECORDER_FORGET=N: the promise has ended before the Nth acknowledgement.  */

#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/numa_reset.h>
#include <xen/topology.h>

#define RESET_NR 600	/* what the test's page says */

static void
record (const char *format, ...)
{
  char line[256];
  const char *name = getenv ("RECORDER_LOG");
  va_list args;

  va_start (args, format);
  int n = vsnprintf (line, sizeof line, format, args);
  va_end (args);
  int fd = name ? open (name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)
		: -1;
  if (fd < 0 || write (fd, line, n) != n)
    abort ();
  close (fd);
}

static long
reset (const char *how, const struct numa_reset_args *args, unsigned flags)
{
  static int stale = -1;

  if (stale < 0)
    stale = getenv ("RECORDER_ESTALE") ? atoi (getenv ("RECORDER_ESTALE")) : 0;
  record ("reset %s %llu %u %u\n", how,
	  (unsigned long long) args->topo_version, flags,
	  (unsigned) args->granule_shift);
  if (stale > 0)
    {
      stale--;
      errno = ESTALE;
      return -1;
    }
  return 0;
}

static int
acknowledge (unsigned long version)
{
  static int acks;
  const char *forget = getenv ("RECORDER_FORGET");

  if (forget != NULL && ++acks == atoi (forget))
    {
      record ("ack %lu fails\n", version);
      errno = ENOTCONN;
      return -1;
    }
  record ("ack %lu\n", version);
  return 0;
}

int
ioctl (int fd, unsigned long request, ...)
{
  static int (*next) (int, unsigned long, ...);
  va_list args;

  va_start (args, request);
  void *arg = va_arg (args, void *);
  va_end (args);
  if (request == XTOPO_REGISTER || request == XTOPO_ACK
      || request == XTOPO_RESET || request == XTOPO_REGISTER_RUNNING)
    {
      if (getenv ("RECORDER_NODEV"))
	{
	  errno = ENOTTY;
	  return -1;
	}
      if (request == XTOPO_RESET)
	return reset ("ioctl", arg, 0);
      if (request == XTOPO_REGISTER_RUNNING && getenv ("RECORDER_OLD"))
	{
	  errno = ENOTTY;
	  return -1;
	}
      if (request == XTOPO_ACK)
	return acknowledge ((unsigned long) arg);
      record (request == XTOPO_REGISTER ? "register always\n" : "register\n");
      return 0;
    }
  if (next == NULL)
    next = dlsym (RTLD_NEXT, "ioctl");
  return next (fd, request, arg);
}

long
syscall (long nr, ...)
{
  static long (*next) (long, ...);
  long a[6];
  va_list args;

  va_start (args, nr);
  for (int i = 0; i < 6; i++)
    a[i] = va_arg (args, long);
  va_end (args);
  if (nr == RESET_NR)
    {
      const char *nosys = getenv ("RECORDER_NOSYS");
      if (nosys != NULL)
	{
	  errno = strcmp (nosys, "EPERM") == 0 ? EPERM : ENOSYS;
	  return -1;
	}
      if (a[0] != -1 || (unsigned long) a[2] != sizeof (struct numa_reset_args))
	abort ();
      return reset ("syscall", (struct numa_reset_args *) a[1], a[3]);
    }
  if (next == NULL)
    next = dlsym (RTLD_NEXT, "syscall");
  return next (nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
