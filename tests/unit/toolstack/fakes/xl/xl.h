/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests of xl's commands: as much of xl as they use. */
#ifndef XL_H
#define XL_H

#include "libxl.h"

extern libxl_ctx *ctx;

#define COMMON_LONG_OPTS { "help", 0, 0, 'h' }, { 0, 0, 0, 0 }

void help(const char *command);
uint32_t find_domain(const char *name);
void *xmalloc(size_t size);
void *xcalloc(size_t nr, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
int64_t parse_mem_size_kb(const char *s);

#endif /* XL_H */
