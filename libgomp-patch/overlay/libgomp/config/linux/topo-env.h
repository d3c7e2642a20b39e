/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: the environment variables GOMP_TOPO*, described in
   xenuma-libgomp(7).  Included by topo.c.  Read once, by the constructor,
   while there is one thread.  */

#ifndef GOMP_TOPO_ENV_H
#define GOMP_TOPO_ENV_H 1

#include "libgomp.h"
#include "secure_getenv.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/numa_reset.h>

static unsigned topo_reset_flags;	/* NRST_*, 0: no reset */
static unsigned topo_granule_shift;	/* 0: the kernel's default */

/* GOMP_TOPO_PROCS.  */
static enum topo_procs
{
  TOPO_USABLE = 0,
  TOPO_POSSIBLE = 1,
  TOPO_LATEST = 2
} topo_procs;

static const char *
topo_skip_space (const char *p)
{
  while (isspace ((unsigned char) *p))
    ++p;
  return p;
}

static void
topo_env_error (const char *name, const char *value)
{
  gomp_error ("Invalid value for environment variable %s: %s", name, value);
}

/* The index of the word that the environment variable NAME holds in the N
   WORDS, or DEFAULT_INDEX.  */

static int
topo_env_word (const char *name, const char *const *words, int n,
	       int default_index)
{
  const char *value = secure_getenv (name), *p;

  if (value == NULL)
    return default_index;
  p = topo_skip_space (value);
  for (int i = 0; i < n; i++)
    {
      size_t len = strlen (words[i]);
      if (strncasecmp (p, words[i], len) == 0
	  && *topo_skip_space (p + len) == '\0')
	return i;
    }
  topo_env_error (name, value);
  return default_index;
}

/* GOMP_TOPO_GRANULE: bytes, with an optional suffix k or m; a power of two
   from 4k to 2m.  Returns its logarithm, 0 for the kernel's default.  */

static unsigned
topo_env_granule (void)
{
  static const char name[] = "GOMP_TOPO_GRANULE";
  const char *value = secure_getenv (name);
  unsigned long bytes;
  char *end;

  if (value == NULL)
    return 0;
  errno = 0;
  bytes = strtoul (value, &end, 10);
  unsigned shift = *end == 'k' || *end == 'K' ? 10
		   : *end == 'm' || *end == 'M' ? 20 : 0;
  if (errno == 0 && end != value && isdigit ((unsigned char) *value)
      && *topo_skip_space (end + (shift != 0)) == '\0'
      && bytes != 0 && (bytes & (bytes - 1)) == 0 && bytes <= 2UL << 20)
    {
      shift += __builtin_ctzl (bytes);
      if (shift >= 12 && shift <= 21)
	return shift;
    }
  topo_env_error (name, value);
  return 0;
}

/* Read all variables.  PATH receives the file to use instead of XTOPO_DEVICE,
   or NULL.  Return false if we are switched off.  */

static bool
topo_read_env (const char **path)
{
  static const char *const on_off[] = { "off", "on" };
  static const char *const resets[] = { "none", "touch", "policy" };
  static const char *const procs[] = { "usable", "possible", "latest" };
  static const unsigned flags[]
    = { 0, NRST_TOUCH | NRST_FOLLOW, NRST_TOUCH | NRST_POLICY | NRST_FOLLOW };

  bool on = topo_env_word ("GOMP_TOPO", on_off, 2, 1);
  topo_reset_flags = flags[topo_env_word ("GOMP_TOPO_RESET", resets, 3, 1)];
  topo_procs = topo_env_word ("GOMP_TOPO_PROCS", procs, 3, TOPO_USABLE);
  topo_granule_shift = topo_env_granule ();
  *path = secure_getenv ("GOMP_TOPO_DEV");
  return on;
}

#endif /* GOMP_TOPO_ENV_H */
