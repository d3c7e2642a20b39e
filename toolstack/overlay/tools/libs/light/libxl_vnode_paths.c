/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes: where the toolstack's keys are in xenstore.
 *
 * Locking: none needed.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

char *libxl__vnode_path(libxl__gc *gc, uint32_t domid, unsigned int nr,
                        const char *key)
{
    return GCSPRINTF("/local/domain/%"PRIu32"/vnuma/node/%u/%s", domid, nr,
                     key);
}

char *libxl__vnode_libxl_path(libxl__gc *gc, uint32_t domid, unsigned int nr,
                              const char *key)
{
    return GCSPRINTF("/libxl/%"PRIu32"/vnuma/node/%u/%s", domid, nr, key);
}

/* Of a vCPU, whichever vnode it belongs to. */
char *libxl__vnode_cpu_path(libxl__gc *gc, uint32_t domid, unsigned int vcpu)
{
    return GCSPRINTF("/local/domain/%"PRIu32"/cpu/%u/availability", domid,
                     vcpu);
}

char *libxl__vnode_op_path(libxl__gc *gc, uint32_t domid)
{
    return GCSPRINTF("/libxl/%"PRIu32"/vnuma/op", domid);
}

char *libxl__vnode_home_limit_path(libxl__gc *gc, uint32_t domid)
{
    return GCSPRINTF("/libxl/%"PRIu32"/vnuma/home-limit-kb", domid);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
