/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FAKE_XENSTORE_H
#define FAKE_XENSTORE_H

#include <stdbool.h>
#include <stdint.h>

#define XBT_NULL	0u
struct xs_handle;

struct xs_handle *xs_open(unsigned long flags);
void xs_close(struct xs_handle *xs);
bool xs_write(struct xs_handle *xs, uint32_t transaction, const char *path, const void *data,
	      unsigned int size);
bool xs_rm(struct xs_handle *xs, uint32_t transaction, const char *path);

#endif
