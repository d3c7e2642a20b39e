/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Where elastic vnodes lie in the guest's physical address space.
 *
 * Pure functions: no I/O, no allocation, no locks.
 */
#ifndef LIBXL_VNODE_LAYOUT_H
#define LIBXL_VNODE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* No elastic range starts below: the 32-bit space has holes for devices. */
#define VNODE_LAYOUT_FLOOR (4ULL << 30)

/*
 * Ranges start at multiples of this: a Linux memory block is at most 2 GiB
 * (probe_memory_block_size()) and must not be shared by two vnodes.
 */
#define VNODE_LAYOUT_ALIGN (2ULL << 30)

/*
 * Declared sizes are multiples of this: Linux' smallest memory block on
 * x86-64, the unit in which memory is plugged.
 */
#define VNODE_BLOCK_KB (128ULL << 10)

/* Targets are multiples of this: one superpage. */
#define VNODE_TARGET_KB 2048ULL

/* Most vnodes that Xen takes: vdistance must fit in a page (XSA-77). */
#define VNODE_MAX 32

/* Guest physical addresses are kept below this (architectural maximum). */
#define VNODE_LAYOUT_CEILING (1ULL << 52)

/*
 * Place the next elastic range.
 *
 * @ram_end: first byte after everything that has been placed so far
 * @size_kb: declared size, a multiple of VNODE_BLOCK_KB, not 0
 * @start, @end: out: the range, end exclusive; only set on success
 *
 * Returns false if the size is wrong or the address space is exhausted.
 */
bool vnode_layout_place(uint64_t ram_end, uint64_t size_kb,
                        uint64_t *start, uint64_t *end);

/* Is @kb a target that an elastic vnode of at most @max_kb can have? */
bool vnode_target_valid(uint64_t kb, uint64_t max_kb);

#endif /* LIBXL_VNODE_LAYOUT_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
