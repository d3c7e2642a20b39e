/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Says whether libgomp has mapped the file of the first argument, and whether
   the program runs with raised privileges.

   With "raise" as the second argument, runs itself as if it had been raised:
   what the kernel tells a new program about its privileges, the entry
   AT_SECURE of the auxiliary vector, is set while the program has not run
   yet.  No privilege is needed for that.  */

#define _GNU_SOURCE 1
#include <elf.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static bool
mapped (const char *path)
{
  FILE *maps = fopen ("/proc/self/maps", "re");
  char line[4096];
  bool found = false;

  while (maps != NULL && fgets (line, sizeof line, maps) != NULL)
    found |= strstr (line, path) != NULL;
  if (maps == NULL)
    abort ();
  fclose (maps);
  return found;
}

/* Set AT_SECURE of CHILD, which has just been loaded: above the stack pointer
   are the number of arguments, these, the environment, each with a zero at
   its end, and the vector.  */

static void
set_secure (pid_t child)
{
  struct user_regs_struct regs;
  unsigned long at;

  if (ptrace (PTRACE_GETREGS, child, NULL, &regs) != 0)
    abort ();
  at = regs.rsp + 8;
  for (int zeros = 0; zeros < 2; at += 8)
    zeros += ptrace (PTRACE_PEEKDATA, child, at, NULL) == 0;
  while (ptrace (PTRACE_PEEKDATA, child, at, NULL) != AT_SECURE)
    at += 16;
  if (ptrace (PTRACE_POKEDATA, child, at + 8, 1L) != 0)
    abort ();
}

static int
run_raised (char **argv)
{
  int status;
  pid_t child = fork ();

  if (child == 0)
    {
      argv[2] = NULL;
      ptrace (PTRACE_TRACEME, 0, NULL, NULL);
      execv ("/proc/self/exe", argv);
      _exit (2);
    }
  if (waitpid (child, &status, 0) != child || !WIFSTOPPED (status))
    abort ();
  set_secure (child);
  ptrace (PTRACE_DETACH, child, NULL, NULL);
  waitpid (child, &status, 0);
  return WIFEXITED (status) ? WEXITSTATUS (status) : 1;
}

int
main (int argc, char **argv)
{
  int n = 0;

  if (argc == 3)
    return run_raised (argv);
  if (argc != 2)
    return 2;
  #pragma omp parallel reduction(+: n)
  n++;
  printf ("{\"raised\": %s, \"mapped\": %s, \"threads\": %d}\n",
	  getauxval (AT_SECURE) ? "true" : "false",
	  mapped (argv[1]) ? "true" : "false", n);
  return 0;
}
