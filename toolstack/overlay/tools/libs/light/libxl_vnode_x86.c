/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Virtual NUMA when an x86 domain is built: ACPI and CPUID.
 *
 * Locking: the domain is not known to anyone else yet.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"
#include "libacpi.h"

bool libxl__vnode_supported(void)
{
    return true;
}

void libxl__vnode_mark_hotplug(const libxl_domain_build_info *info,
                               xen_vmemrange_t *ranges,
                               unsigned int nr_ranges)
{
    unsigned int i;

    for (i = 0; i < nr_ranges; i++)
        if (ranges[i].nid < info->num_vnuma_nodes &&
            info->vnuma_nodes[ranges[i].nid].elastic)
            ranges[i].flags |= LIBACPI_VMEMRANGE_HOTPLUG;
}

int libxl__vnode_cpuid(libxl__gc *gc, uint32_t domid,
                       const libxl_domain_build_info *info)
{
    unsigned int i, *vcpu_to_vnode;
    int j, r;

    if (!info->num_vnuma_nodes || info->type == LIBXL_DOMAIN_TYPE_PV)
        return 0;

    vcpu_to_vnode = libxl__calloc(gc, info->max_vcpus, sizeof(*vcpu_to_vnode));
    for (i = 0; i < info->num_vnuma_nodes; i++)
        libxl_for_each_set_bit(j, info->vnuma_nodes[i].vcpus)
            if (j < info->max_vcpus)
                vcpu_to_vnode[j] = i;

    r = xc_cpuid_apply_vnuma(CTX->xch, domid, vcpu_to_vnode, info->max_vcpus);
    if (r) {
        LOGEVD(ERROR, -r, domid, "cannot make CPUID agree with vnuma");
        return ERROR_FAIL;
    }

    return 0;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
