/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: lists of places.  Included by topo.c.

   A list of places that has once been published stays valid for ever,
   because other root threads, and teams that are running, may read it at
   any time.  There is one list for each distinct set of CPUs.  All lists
   have the same capacity, and entries beyond the length of a list repeat
   its places: a reader that combines an index of one list with the pointer
   of another gets a valid set of CPUs, and its root thread binds everything
   anew at its next parallel region.

   libgomp's own gomp_affinity_init_level cannot be used for that: it builds
   its list in place, in gomp_places_list.

   Locking: topo_lock.  */

#ifndef GOMP_TOPO_PLACES_H
#define GOMP_TOPO_PLACES_H 1

#include "topo-set.h"

/* Places for one set of CPUs.  Never changed or freed once published.  */

struct topo_places
{
  struct topo_places *next;
  struct topo_set cpus;
  unsigned long len;
  void *list[];		/* topo_capacity entries, of gomp_cpuset_size bytes */
};

/* How OMP_PLACES is written down: the levels of gomp_affinity_init_level.  */

enum topo_level
{
  TOPO_LIST = 0,	/* explicit list: topo_template */
  TOPO_THREADS = 1,
  TOPO_CORES = 2,
  TOPO_SOCKETS = 3,
  TOPO_LL_CACHES = 4,
  TOPO_NUMA_DOMAINS = 5
};

/* Constant after initialization.  */
static enum topo_level topo_level;
static unsigned long topo_count;	/* places wanted, if not TOPO_LIST */
static void **topo_template;		/* TOPO_LIST: places over all CPUs */
static unsigned long topo_template_len;
static unsigned long topo_capacity;	/* entries in every list */

/* All published lists.  Protected by topo_lock.  */
static struct topo_places *topo_lists;

/* The list that was published last, or NULL.  */
static const struct topo_places *topo_current;

/* The caller makes sure that there is room.  */

static void
topo_add_place (struct topo_places *places, const struct topo_set *set)
{
  memcpy (places->list[places->len++], set, topo_set_size ());
}

/* Read the list of CPUs in the file NAME.  */

static bool
topo_read_cpulist (const char *name, struct topo_set *set)
{
  char *line = NULL;
  size_t size = 0;
  bool ok;
  FILE *f = fopen (name, "re");

  if (f == NULL)
    return false;
  ok = getline (&line, &size, f) > 0 && topo_parse_cpulist (line, set);
  free (line);
  fclose (f);
  return ok;
}

/* Partition CPUS into PLACES: with each CPU go those that the file named by
   FORMAT, which contains one %u for the CPU, lists.  A CPU without a file is
   left out.  At most COUNT places.  If SINGLE, each CPU, even one without a
   file, becomes a place of its own, in the order in which they are found.
   The same order as that of gomp_affinity_init_level.  */

static void
topo_partition (struct topo_places *places, const struct topo_set *cpus,
		const char *format, unsigned long count, bool single)
{
  struct topo_set rest = *cpus, group, one;
  char name[128];

  for (unsigned cpu = 0; cpu < XTOPO_MAX_CPUS && places->len < count; cpu++)
    {
      if (!topo_set_has (&rest, cpu))
	continue;
      snprintf (name, sizeof name, format, cpu);
      if (!topo_read_cpulist (name, &group))
	{
	  if (!single)
	    continue;
	  memset (&group, 0, sizeof group);
	}
      topo_set_add (&group, cpu);
      topo_set_and (&group, &rest);
      topo_set_andnot (&rest, &group);
      if (!single)
	{
	  topo_add_place (places, &group);
	  continue;
	}
      for (unsigned c = cpu; c < XTOPO_MAX_CPUS && places->len < count; c++)
	if (topo_set_has (&group, c))
	  {
	    memset (&one, 0, sizeof one);
	    topo_set_add (&one, c);
	    topo_add_place (places, &one);
	  }
    }
}

/* A place for each CPU, or for the CPUs with a common last level cache.
   The index of that cache is taken from the first CPU, as libgomp does.  */

static void
topo_partition_caches (struct topo_places *places, const struct topo_set *cpus,
		       unsigned long count)
{
  char format[96], name[128];
  int last = -1;
  unsigned cpu = 0;

  while (cpu < XTOPO_MAX_CPUS && !topo_set_has (cpus, cpu))
    cpu++;
  for (int i = 0, max = 0, level; i < 128; i++)
    {
      snprintf (name, sizeof name,
		"/sys/devices/system/cpu/cpu%u/cache/index%d/level", cpu, i);
      FILE *f = fopen (name, "re");
      if (f == NULL)
	break;
      if (fscanf (f, "%d", &level) == 1 && level >= max)
	{
	  last = i;
	  max = level;
	}
      fclose (f);
    }
  if (last < 0)
    return;
  snprintf (format, sizeof format,
	    "/sys/devices/system/cpu/cpu%%u/cache/index%d/shared_cpu_list",
	    last);
  topo_partition (places, cpus, format, count, false);
}

/* A place for each node, as the page says.  */

static void
topo_partition_nodes (struct topo_places *places, const struct topo_set *cpus,
		      unsigned long count, const struct xtopo_page *page)
{
  for (unsigned node = 0; node < XTOPO_NO_NODE && places->len < count; node++)
    {
      struct topo_set set;
      bool any = false;

      memset (&set, 0, sizeof set);
      for (unsigned cpu = 0; cpu < XTOPO_MAX_CPU_NODE; cpu++)
	if (page->cpu_node[cpu] == node && topo_set_has (cpus, cpu))
	  {
	    topo_set_add (&set, cpu);
	    any = true;
	  }
      if (any)
	topo_add_place (places, &set);
    }
}

/* What is left of an explicit list of places.  */

static void
topo_filter_template (struct topo_places *places, const struct topo_set *cpus)
{
  for (unsigned long i = 0; i < topo_template_len; i++)
    {
      struct topo_set set;

      topo_set_of_place (&set, topo_template[i]);
      topo_set_and (&set, cpus);
      if (topo_set_count (&set) != 0)
	topo_add_place (places, &set);
    }
}

static void
topo_fill_places (struct topo_places *places, const struct topo_set *cpus,
		  const struct xtopo_page *page)
{
  unsigned long count = topo_set_count (cpus);

  if (topo_count < count)
    count = topo_count;
  switch (topo_level)
    {
    case TOPO_LIST:
      topo_filter_template (places, cpus);
      break;
    case TOPO_THREADS:
    case TOPO_CORES:
      topo_partition (places, cpus, "/sys/devices/system/cpu/cpu%u/topology/"
		      "thread_siblings_list", count,
		      topo_level == TOPO_THREADS);
      break;
    case TOPO_SOCKETS:
      topo_partition (places, cpus, "/sys/devices/system/cpu/cpu%u/topology/"
		      "core_siblings_list", count, false);
      break;
    case TOPO_LL_CACHES:
      topo_partition_caches (places, cpus, count);
      break;
    case TOPO_NUMA_DOMAINS:
      topo_partition_nodes (places, cpus, count, page);
      break;
    }
}

/* The places for the set CPUS, which is not empty; found, or made and
   remembered.  If none of the wanted places can be used, there is one place,
   of all of CPUS.  NULL if there is no memory.  */

static struct topo_places *
topo_get_places (const struct topo_set *cpus, const struct xtopo_page *page)
{
  struct topo_places *places;
  unsigned long n = topo_set_count (cpus);
  char *p;

  for (places = topo_lists; places != NULL; places = places->next)
    if (topo_set_equal (&places->cpus, cpus))
      return places;

  if (n < topo_template_len)
    n = topo_template_len;
  places = malloc (sizeof *places + topo_capacity * sizeof (void *)
		   + n * gomp_cpuset_size);
  if (places == NULL)
    return NULL;
  p = (char *) &places->list[topo_capacity];
  memset (p, 0, n * gomp_cpuset_size);
  for (unsigned long i = 0; i < n; i++, p += gomp_cpuset_size)
    places->list[i] = p;
  places->cpus = *cpus;
  places->len = 0;
  topo_fill_places (places, cpus, page);
  if (places->len == 0)
    topo_add_place (places, cpus);
  for (unsigned long i = places->len; i < topo_capacity; i++)
    places->list[i] = places->list[i % places->len];
  places->next = topo_lists;
  topo_lists = places;
  return places;
}

/* Make PLACES the current list.  The order of the stores does not matter,
   see above.  */

static void
topo_publish (struct topo_places *places)
{
  __atomic_store_n (&topo_current, places, __ATOMIC_RELEASE);
  __atomic_store_n (&gomp_places_list, places->list, __ATOMIC_RELEASE);
  __atomic_store_n (&gomp_places_list_len, places->len, __ATOMIC_RELEASE);
}

#endif /* GOMP_TOPO_PLACES_H */
