/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes whose memory is on another host: numbers and names.
 *
 * Such a vnode spans: it is attached and detached as any other, but the
 * memory is that of a slice of the guest there, and dsmd (libxl_dsm.h) moves
 * its pages.  This host gives a pool of frames for the pages that are here.
 *
 * Pure: no I/O, no allocation, no locks.
 */
#ifndef LIBXL_VNODE_SPAN_H
#define LIBXL_VNODE_SPAN_H

#include <stdbool.h>
#include <stdint.h>

/* Name of a host in dsm.toml, with its 0. */
#define VNODE_HOST_NAME 254

/* Hosts of a guest, this one included; dsmd has no more. */
#define VNODE_HOSTS_MAX 16

/* Xen has no more: XEN_DSM_MAX_RANGES, and XEN_DSM_MAX_FRAMES in KiB. */
#define VNODE_DSM_RANGES_MAX 16
#define VNODE_DSM_KB_MAX (1ULL << 30)

/* Least of the pool for each vCPU of the guest, in KiB: 32 frames. */
#define VNODE_POOL_VCPU_KB 128U

/* And for the memory of the vnode: one frame for so many. */
#define VNODE_POOL_SHARE 16U

/*
 * Is it a name for a host?  1 .. 253 letters, digits, "-", "_", ".", the first
 * one a letter or a digit.
 */
bool vnode_host_name_valid(const char *name);

/*
 * Size of the pool in this host's memory, in KiB, that a vnode has while it is
 * attached.  Of the size of its range, so that a resize does not change it.
 * @max_kb: at most UINT64_MAX >> 20.  Never more than @max_kb for what an
 * elastic vnode can be (128 MiB or more, 512 vCPUs or fewer).
 */
uint64_t vnode_pool_kb(unsigned int nr_vcpus, uint64_t max_kb);

#endif /* LIBXL_VNODE_SPAN_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
