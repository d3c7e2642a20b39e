/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Where the rings of a PVH guest's console and xenstore are: behind its memory,
 * among the frames that the builder (xg_dom_x86.c) has populated for what Xen
 * and backends have in common with the guest.  A vCPU on another host needs
 * them as a range of DSM, or it finds nothing there.
 *
 * Locking: the domain does not run yet.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

int libxl__vnode_find_rings(libxl__gc *gc, uint32_t domid,
                            libxl__dsm_range *range)
{
    static const struct {
        int param;
        const char *name;
    } rings[] = {
        { HVM_PARAM_CONSOLE_PFN, "console" },
        { HVM_PARAM_STORE_PFN, "xenstore" },
    };
    const uint64_t end = X86_HVM_END_SPECIAL_REGION;
    const uint64_t first = end - X86_HVM_NR_SPECIAL_PAGES;
    unsigned int i;
    uint64_t pfn;

    for (i = 0; i < ARRAY_SIZE(rings); i++) {
        if (xc_hvm_param_get(CTX->xch, domid, rings[i].param, &pfn)) {
            LOGED(ERROR, domid, "cannot read where the ring of the %s is",
                  rings[i].name);
            return ERROR_FAIL;
        }
        if (pfn < first || pfn >= end) {
            LOGD(ERROR, domid, "the ring of the %s is at gfn 0x%"PRIx64", not "
                 "in 0x%"PRIx64" to 0x%"PRIx64": vCPUs on another host would "
                 "not reach it", rings[i].name, pfn, first, end - 1);
            return ERROR_FAIL;
        }
    }
    *range = (libxl__dsm_range) {
        .vnode = LIBXL__DSM_NO_VNODE,
        .start = first << XC_PAGE_SHIFT,
        .kb = (end - first) << (XC_PAGE_SHIFT - 10),
    };

    return 0;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
