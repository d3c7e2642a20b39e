/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* A program without data of threads loads a library that has some, while it
   runs.

     late MODULE MASK1 MASK2 MASK3

   Prints the sizes of the teams with each of these CPUs usable, the last one
   before and after the library is loaded, and then with each of them again;
   and how many items the library has lost.

   With MODULE defined this is the library.  */

#include <dlfcn.h>
#include <omp.h>

#ifdef MODULE

static long *own;
#pragma omp threadprivate (own)

extern void fill (void);
extern int lost (void);

void
fill (void)
{
  static long room[64];

  #pragma omp parallel
  own = &room[omp_get_thread_num () % 64];
}

int
lost (void)
{
  int n = 0;

  #pragma omp parallel reduction(+: n)
  n += own == 0;
  return n;
}

#else

#include "fakepage.h"

static int
team (void)
{
  int n = 0;

  #pragma omp parallel
  #pragma omp single
  n = omp_get_num_threads ();
  return n;
}

int
main (int argc, char **argv)
{
  struct xtopo_page *page = fakepage_open (getenv ("GOMP_TOPO_DEV"));
  void (*fill) (void) = NULL;
  int (*lost) (void) = NULL;
  int n = 0;

  if (argc != 5)
    return 2;
  printf ("{\"teams\": [");
  for (int round = 0; round < 2; round++)
    {
      for (int i = 2; i < argc; i++)
	{
	  fakepage_set (page, strtoul (argv[i], NULL, 16), XTOPO_STABLE);
	  if (lost != NULL)
	    n += lost ();
	  printf ("%d, ", team ());
	}
      if (round == 0)
	{
	  void *module = dlopen (argv[1], RTLD_NOW);
	  fill = module ? (void (*) (void)) dlsym (module, "fill") : NULL;
	  lost = module ? (int (*) (void)) dlsym (module, "lost") : NULL;
	  if (fill == NULL || lost == NULL)
	    {
	      fprintf (stderr, "%s\n", dlerror ());
	      return 2;
	    }
	  fill ();
	}
    }
  printf ("%d], \"lost\": %d}\n", team (), n);
  return 0;
}

#endif
