/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes on architectures that have none.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

bool libxl__vnode_supported(void)
{
    return false;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
