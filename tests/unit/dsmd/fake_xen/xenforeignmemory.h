/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FAKE_XENFOREIGNMEMORY_H
#define FAKE_XENFOREIGNMEMORY_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_handle xenforeignmemory_handle;
typedef struct fake_resource xenforeignmemory_resource_handle;

xenforeignmemory_handle *xenforeignmemory_open(void *logger, unsigned int flags);
int xenforeignmemory_close(xenforeignmemory_handle *fmem);
int xenforeignmemory_resource_size(xenforeignmemory_handle *fmem, uint32_t domid,
				   unsigned int type, unsigned int id, size_t *size);
xenforeignmemory_resource_handle *xenforeignmemory_map_resource(
	xenforeignmemory_handle *fmem, uint32_t domid, unsigned int type, unsigned int id,
	unsigned long frame, unsigned long nr, void **address, int prot, int flags);
int xenforeignmemory_unmap_resource(xenforeignmemory_handle *fmem,
				    xenforeignmemory_resource_handle *resource);

#endif
