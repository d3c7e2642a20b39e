/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * CPUID topology of a guest with virtual NUMA: the arithmetic.
 *
 * A guest derives from CPUID which CPUs share a package and a last-level
 * cache.  Stock policies describe the host, so that CPUs of different vnodes
 * look like siblings, which contradicts SRAT.  Here one package, with one
 * last-level cache, stands for one vnode.
 *
 * CPUID can express only groups of APIC IDs that are equal above some bit.
 * Xen gives vCPU v the APIC ID 2*v.  When the vnodes are not such groups
 * (three vCPUs a vnode, or interleaved ones), the largest group that never
 * crosses a vnode is used: less sharing than there could be, never a false one.
 *
 * Pure functions: no I/O, no allocation, no locks; any context.
 */
#ifndef XG_VNUMA_TOPOLOGY_H
#define XG_VNUMA_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

/* APIC ID of vCPU v is v << VNUMA_APIC_STRIDE_SHIFT (fixed in Xen 4.20). */
#define VNUMA_APIC_STRIDE_SHIFT 1

/*
 * Largest package, as a number of APIC ID bits: 128 IDs.  Leaf 1 EBX[23:16]
 * cannot hold 256, and ApicIdCoreSize above 7 is known to upset some guests.
 */
#define VNUMA_MAX_PACKAGE_SHIFT 7

/*
 * Number of low APIC ID bits that vary within a package.
 *
 * @vcpu_to_vnode: vnode of each vCPU
 * @nr_vcpus: entries in @vcpu_to_vnode, may be 0
 *
 * Returns VNUMA_APIC_STRIDE_SHIFT (every vCPU is a package of its own) ..
 * VNUMA_MAX_PACKAGE_SHIFT.  No two vCPUs with equal APIC ID >> result belong
 * to different vnodes.
 */
unsigned int vnuma_package_shift(const unsigned int *vcpu_to_vnode,
                                 unsigned int nr_vcpus);

/* Leaf 1: Maximum Logical Processors per Package, EBX[23:16]. */
uint32_t vnuma_leaf1_ebx(uint32_t ebx, unsigned int shift);

/*
 * Leaf 4: cores per package, EAX[31:26], and logical processors that share
 * this cache, EAX[25:14]: a whole package if @llc, one otherwise.
 */
uint32_t vnuma_leaf4_eax(uint32_t eax, unsigned int shift, bool llc);

/*
 * Level (EAX[7:5]) of the last-level cache among leaf 4's @nr subleaves.
 * The first with type (EAX[4:0]) 0 ends the list.  0: there is no cache.
 */
unsigned int vnuma_leaf4_llc_level(const uint32_t *eax, unsigned int nr);

/* Leaf 0x80000008: NumberOfCores - 1, ECX[7:0]; ApicIdCoreSize, ECX[15:12]. */
uint32_t vnuma_leaf80000008_ecx(uint32_t ecx, unsigned int shift);

#endif /* XG_VNUMA_TOPOLOGY_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
