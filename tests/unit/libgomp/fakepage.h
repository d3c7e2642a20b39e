/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* A topology page in a file: what /dev/xen/topology shows, written by a test.
   One writer at a time; the writer follows the protocol of <xen/topology.h>. */

#ifndef FAKEPAGE_H
#define FAKEPAGE_H 1

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xen/topology.h>

/* Map the page in the file PATH for writing.  Exits if that fails.  */

static inline struct xtopo_page *
fakepage_open (const char *path)
{
  int fd = path ? open (path, O_RDWR | O_CLOEXEC) : -1;
  void *p = MAP_FAILED;

  if (fd >= 0)
    p = mmap (NULL, XTOPO_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED)
    {
      perror (path ? path : "no topology page");
      exit (2);
    }
  close (fd);
  return p;
}

/* Publish a new version: CPUS usable (the first 64), in PHASE.  Returns the
   new version.  */

static inline unsigned long long
fakepage_set (struct xtopo_page *page, unsigned long long cpus, unsigned phase)
{
  unsigned long long version = page->version + 1;

  __atomic_store_n (&page->seq, page->seq + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence (__ATOMIC_RELEASE);
  page->cpus_usable[0] = cpus;
  page->phase = phase;
  __atomic_store_n (&page->seq, page->seq + 1, __ATOMIC_RELEASE);
  __atomic_store_n (&page->version, version, __ATOMIC_RELEASE);
  return version;
}

#endif /* FAKEPAGE_H */
