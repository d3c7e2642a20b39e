/* SPDX-License-Identifier: GPL-2.0 */
/* Of xg_core.h what xg_core_dsm.c needs. */
#ifndef FAKE_XG_CORE_H
#define FAKE_XG_CORE_H

#include "xg_private.h"

struct xc_core_arch_context;

typedef struct xc_core_memory_map {
    uint64_t addr;
    uint64_t size;
} xc_core_memory_map_t;

int xc_core_arch_gpfn_may_present(struct xc_core_arch_context *context,
                                  unsigned long pfn);

#endif
