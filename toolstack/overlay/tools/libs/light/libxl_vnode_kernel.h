/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * What a kernel's image says of itself: an ELF note of type 1, by the name of
 * Xenuma, with one number of 32 bits, the sum of what the kernel can do.
 *
 * Notes with another name than "Xen" are passed over by everybody who loads
 * kernels for Xen, and the number of a note of "Xen" would be upstream's to
 * give.  What is not set may be anything else: an old kernel, another one, a
 * boot loader.
 *
 * The image is untrusted: every number in it is checked before it is used.
 *
 * Pure: no I/O, no allocation, no locks.
 */
#ifndef LIBXL_VNODE_KERNEL_H
#define LIBXL_VNODE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VNODE_KERNEL_NOTE "Xenuma"
#define VNODE_KERNEL_NOTE_TYPE 1

/* The vcpu_info of each vCPU has a page of its own. */
#define VNODE_KERNEL_VCPU_INFO_PAGES 1u
/*
 * Its tables of grants are in its memory.  Elsewhere
 * (CONFIG_XEN_UNPOPULATED_ALLOC) they are in no range that a host has, so a
 * vCPU of another host reads ones there, and what it writes is lost.
 */
#define VNODE_KERNEL_GRANTS_IN_MEMORY 2u
/*
 * Who makes a hypercall stays on his vCPU (no CONFIG_PREEMPTION).  Some are
 * done on another host, and made again by the vCPU to have the result.  A
 * kernel that is preempted meanwhile may make the call from another vCPU, as
 * a new one: it would be done twice.
 */
#define VNODE_KERNEL_STAYS_IN_HYPERCALLS 4u

/*
 * @image: ELF, 64 bits, little endian, of @size bytes; anything else has no
 * note
 *
 * Returns whether there is such a note; only then *abilities is set.
 */
bool vnode_kernel_abilities(const void *image, size_t size,
                            uint32_t *abilities);

#endif /* LIBXL_VNODE_KERNEL_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
