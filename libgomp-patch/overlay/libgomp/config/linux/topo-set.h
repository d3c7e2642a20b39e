/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: sets of CPUs.  Included by topo.c.

   A set is as large as the one in the topology page and has the layout of
   cpu_set_t.  libgomp's own sets, of gomp_cpuset_size bytes, are converted
   where a place is read or written.  No state, no locks.  */

#ifndef GOMP_TOPO_SET_H
#define GOMP_TOPO_SET_H 1

#include "libgomp.h"
#include "proc.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xen/topology.h>

#define TOPO_WORD_BITS (8 * (unsigned) sizeof (unsigned long))
#define TOPO_WORDS (XTOPO_MAX_CPUS / TOPO_WORD_BITS)

struct topo_set
{
  unsigned long word[TOPO_WORDS];
};

static void
topo_set_and (struct topo_set *to, const struct topo_set *with)
{
  for (unsigned i = 0; i < TOPO_WORDS; i++)
    to->word[i] &= with->word[i];
}

static void
topo_set_andnot (struct topo_set *to, const struct topo_set *with)
{
  for (unsigned i = 0; i < TOPO_WORDS; i++)
    to->word[i] &= ~with->word[i];
}

static void
topo_set_or (struct topo_set *to, const struct topo_set *with)
{
  for (unsigned i = 0; i < TOPO_WORDS; i++)
    to->word[i] |= with->word[i];
}

static bool
topo_set_equal (const struct topo_set *a, const struct topo_set *b)
{
  return memcmp (a, b, sizeof *a) == 0;
}

static unsigned
topo_set_count (const struct topo_set *set)
{
  unsigned n = 0;
  for (unsigned i = 0; i < TOPO_WORDS; i++)
    n += __builtin_popcountl (set->word[i]);
  return n;
}

static bool
topo_set_has (const struct topo_set *set, unsigned cpu)
{
  return (set->word[cpu / TOPO_WORD_BITS] >> cpu % TOPO_WORD_BITS) & 1;
}

static void
topo_set_add (struct topo_set *set, unsigned cpu)
{
  set->word[cpu / TOPO_WORD_BITS] |= 1UL << cpu % TOPO_WORD_BITS;
}

/* Parse a list of CPUs as the kernel writes it, such as "0-3,8".  Return
   false if it is empty.  */

static bool
topo_parse_cpulist (const char *text, struct topo_set *set)
{
  bool any = false;

  memset (set, 0, sizeof *set);
  while (*text != '\0' && *text != '\n')
    {
      char *end;
      unsigned long first = strtoul (text, &end, 10), last = first;

      if (end == text)
	break;
      if (*end == '-')
	last = strtoul (end + 1, &end, 10);
      for (; first <= last && first < XTOPO_MAX_CPUS; first++)
	{
	  topo_set_add (set, first);
	  any = true;
	}
      text = *end == ',' ? end + 1 : end;
    }
  return any;
}

/* Bytes of a set that libgomp's own sets of CPUs hold.  */

static size_t
topo_set_size (void)
{
  return (gomp_cpuset_size < sizeof (struct topo_set)
	  ? gomp_cpuset_size : sizeof (struct topo_set));
}

/* The set of a place of a published or a template list.  */

static void
topo_set_of_place (struct topo_set *set, const void *place)
{
  memset (set, 0, sizeof *set);
  memcpy (set, place, topo_set_size ());
}

/* False, and SET is unchanged, if the thread has gone.  */

static bool
topo_get_affinity (pthread_t thread, struct topo_set *set)
{
  struct topo_set got;
  memset (&got, 0, sizeof got);
  if (pthread_getaffinity_np (thread, sizeof got, (cpu_set_t *) &got) != 0)
    return false;
  *set = got;
  return true;
}

static bool
topo_set_affinity (pthread_t thread, const struct topo_set *set)
{
  return pthread_setaffinity_np (thread, sizeof *set,
				 (const cpu_set_t *) set) == 0;
}

#endif /* GOMP_TOPO_SET_H */
