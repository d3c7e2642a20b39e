/* SPDX-License-Identifier: GPL-2.0 */
/* What xg_core_dsm.c needs of libxenguest; test_core_dsm.c has the functions. */
#ifndef FAKE_XG_PRIVATE_H
#define FAKE_XG_PRIVATE_H

#include <stdint.h>
#include <stdio.h>

#define PAGE_SHIFT 12
#define PAGE_SIZE (1UL << PAGE_SHIFT)
#define PERROR(words, ...) fprintf(stderr, "# " words "\n", __VA_ARGS__)

typedef struct xc_interface_core xc_interface;

#endif
