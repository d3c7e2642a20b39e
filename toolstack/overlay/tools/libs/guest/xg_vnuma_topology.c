/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * CPUID topology of a guest with virtual NUMA: the arithmetic.
 * See xg_vnuma_topology.h.  Register layouts: Intel SDM vol. 2A "CPUID",
 * AMD APM vol. 3 appendix E.
 */
#include "xg_vnuma_topology.h"

/* Is every aligned group of @group vCPUs within one vnode? */
static bool groups_within_vnodes(const unsigned int *vcpu_to_vnode,
                                 unsigned int nr_vcpus, unsigned int group)
{
    unsigned int v;

    for ( v = 0; v < nr_vcpus; v++ )
        if ( vcpu_to_vnode[v] != vcpu_to_vnode[v - v % group] )
            return false;

    return true;
}

unsigned int vnuma_package_shift(const unsigned int *vcpu_to_vnode,
                                 unsigned int nr_vcpus)
{
    unsigned int shift = VNUMA_APIC_STRIDE_SHIFT;

    while ( shift < VNUMA_MAX_PACKAGE_SHIFT )
    {
        unsigned int group = 1u << (shift - VNUMA_APIC_STRIDE_SHIFT);

        /* A package larger than the guest would say nothing more. */
        if ( group >= nr_vcpus ||
             !groups_within_vnodes(vcpu_to_vnode, nr_vcpus, group * 2) )
            break;
        shift++;
    }

    return shift;
}

static uint32_t set_field(uint32_t reg, unsigned int lsb, unsigned int width,
                          uint32_t value)
{
    uint32_t max = (1u << width) - 1;

    if ( value > max )
        value = max;

    return (reg & ~(max << lsb)) | (value << lsb);
}

uint32_t vnuma_leaf1_ebx(uint32_t ebx, unsigned int shift)
{
    return set_field(ebx, 16, 8, 1u << shift);
}

uint32_t vnuma_leaf4_eax(uint32_t eax, unsigned int shift, bool llc)
{
    eax = set_field(eax, 26, 6, (1u << shift) - 1);

    return set_field(eax, 14, 12, llc ? (1u << shift) - 1 : 0);
}

unsigned int vnuma_leaf4_llc_level(const uint32_t *eax, unsigned int nr)
{
    unsigned int i, level = 0;

    for ( i = 0; i < nr && (eax[i] & 0x1f); i++ )
        if ( ((eax[i] >> 5) & 7) > level )
            level = (eax[i] >> 5) & 7;

    return level;
}

uint32_t vnuma_leaf80000008_ecx(uint32_t ecx, unsigned int shift)
{
    ecx = set_field(ecx, 0, 8, (1u << shift) - 1);

    return set_field(ecx, 12, 4, shift);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
