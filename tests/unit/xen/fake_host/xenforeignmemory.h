/* SPDX-License-Identifier: GPL-2.0-only */
#include <stddef.h>
#include <stdint.h>

typedef struct fake_handle xenforeignmemory_handle;

xenforeignmemory_handle *xenforeignmemory_open(void *logger, unsigned int flags);
void *xenforeignmemory_map(xenforeignmemory_handle *fmem, uint32_t domid, int prot, size_t pages,
                           const unsigned long *list, int *errors);
int xenforeignmemory_unmap(xenforeignmemory_handle *fmem, void *addr, size_t pages);
