/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes whose memory is on another host: numbers and names.
 * See libxl_vnode_span.h.
 */
#include <string.h>

#include "libxl_vnode_span.h"

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
}

bool vnode_host_name_valid(const char *name)
{
    unsigned int i;

    if (!name || !is_alphanumeric(name[0]))
        return false;
    for (i = 1; name[i]; i++)
        if (i == VNODE_HOST_NAME - 1 ||
            (!is_alphanumeric(name[i]) && !strchr("-_.", name[i])))
            return false;

    return true;
}

uint64_t vnode_pool_kb(unsigned int nr_vcpus, uint64_t max_kb)
{
    uint64_t least_kb = (uint64_t)nr_vcpus * VNODE_POOL_VCPU_KB;
    uint64_t share_kb = max_kb / VNODE_POOL_SHARE & ~3ULL;

    return share_kb > least_kb ? share_kb : least_kb;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
