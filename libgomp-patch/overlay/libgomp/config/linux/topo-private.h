/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: does the program keep data in its threads?  Included
   by topo.c.

   What a thread of a team has left in its threadprivate data is there in the
   next region only if the team has as many threads then.  Such data are a TLS
   segment of the object that has the regions.  Data of threads in objects
   that start no teams, such as the C library, tell nothing, and neither do
   arrays that the program fills by the number of the thread: those cannot be
   seen.  */

#ifndef GOMP_TOPO_PRIVATE_H
#define GOMP_TOPO_PRIVATE_H 1

#include <link.h>
#include <stdbool.h>
#include <string.h>

/* Callback of dl_iterate_phdr: has this object data of threads, and uses
   libgomp?  */

static int
topo_is_private (struct dl_phdr_info *info, size_t size, void *data)
{
  const ElfW(Dyn) *dynamic = NULL, *d;
  const char *names = NULL;
  bool tls = false;

  (void) size;
  (void) data;
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS)
      tls = true;
    else if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = (const void *) (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  if (!tls || dynamic == NULL)
    return 0;
  for (d = dynamic; d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_STRTAB)
      /* Where that section is read-only, the loader has not added the
	 address.  */
      names = (const char *) (d->d_un.d_ptr >= info->dlpi_addr
			      ? d->d_un.d_ptr
			      : d->d_un.d_ptr + info->dlpi_addr);
  for (d = dynamic; names != NULL && d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_NEEDED
	&& strcmp (names + d->d_un.d_val, "libgomp.so.1") == 0)
      return 1;
  return 0;
}

/* Do threads of teams keep data from one region to the next, as far as can be
   seen?  Without topo_lock: takes a lock of the dynamic linker.  */

static bool
topo_has_private (void)
{
  return dl_iterate_phdr (topo_is_private, NULL) != 0;
}

#endif /* GOMP_TOPO_PRIVATE_H */
