/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* A program that includes this plays the kernel behind its own topology page,
   and is told of each request of libgomp by a call of asked (), which the
   program defines; the request waits until it returns, and fails with the
   error that it returns, if that is not 0.  Link the program with -rdynamic,
   so that the library finds ioctl and syscall here.  */

#ifndef FAKEKERNEL_H
#define FAKEKERNEL_H 1

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <linux/numa_reset.h>
#include "fakepage.h"

#define RESET_NR 600	/* what the test's page says */

enum request { REGISTER, ACK, RESET };

static int asked (enum request request, int fd, unsigned long long version);

static int
answer (int error)
{
  if (error == 0)
    return 0;
  errno = error;
  return -1;
}

int
ioctl (int fd, unsigned long request, ...)
{
  static int (*next) (int, unsigned long, ...);
  va_list args;

  va_start (args, request);
  void *arg = va_arg (args, void *);
  va_end (args);
  if (request == XTOPO_REGISTER_RUNNING || request == XTOPO_REGISTER)
    return answer (asked (REGISTER, fd, 0));
  if (request == XTOPO_ACK)
    return answer (asked (ACK, fd, (unsigned long) arg));
  if (request == XTOPO_RESET)
    return answer (asked (RESET, fd,
			  ((struct numa_reset_args *) arg)->topo_version));
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
    return answer (asked (RESET, -1,
			  ((struct numa_reset_args *) a[1])->topo_version));
  if (next == NULL)
    next = dlsym (RTLD_NEXT, "syscall");
  return next (nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif /* FAKEKERNEL_H */
