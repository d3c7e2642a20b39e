/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Which physical nodes can back an elastic vnode.
 *
 * A domain's CPUs run on the CPUs of its cpupool and nowhere else.  A pnode
 * with CPUs, but none in the pool, would leave the vnode's CPUs without a
 * place next to their memory: Xen refuses such an affinity.  A pnode without
 * any CPU holds memory only; CPUs run anywhere then.
 *
 * Pure functions: no I/O, no allocation, no locks.
 */
#ifndef LIBXL_VNODE_PLACEMENT_H
#define LIBXL_VNODE_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

/* A physical node, as far as placement asks. */
struct vnode_pnode {
    bool exists;
    uint64_t free_kb;
    unsigned int cpus;          /* online CPUs */
    unsigned int pool_cpus;     /* those of them in the domain's cpupool */
};

enum vnode_verdict {
    VNODE_PNODE_GOOD,
    VNODE_PNODE_NONE,           /* there is no such pnode */
    VNODE_PNODE_OUTSIDE,        /* its CPUs are outside the domain's cpupool */
    VNODE_PNODE_FULL,           /* it has less than @need_kb free */
};

/*
 * Can pnode @nr back a vnode that needs @need_kb KiB more?
 * @pnodes: all @nr_pnodes of the host; @binds_cpus: the vnode has CPUs whose
 * affinity is to follow.
 */
enum vnode_verdict vnode_judge_pnode(const struct vnode_pnode *pnodes,
                                     unsigned int nr_pnodes, unsigned int nr,
                                     uint64_t need_kb, bool binds_cpus);

/*
 * May a vCPU run on every CPU of its pool although it belongs to a vnode whose
 * pnode has the CPUs @cpus, some in the pool and not all of it?  What an
 * operator has set by hand names fewer.  Bitmaps of @size bytes.
 */
bool vnode_is_unbound(const uint8_t *hard, const uint8_t *cpus,
                      const uint8_t *pool, unsigned int size);

/*
 * The pnode with the most free memory of those that are not outside the pool,
 * the lowest of several; it may be too full all the same.  -1: there is none.
 */
int vnode_roomiest_pnode(const struct vnode_pnode *pnodes,
                         unsigned int nr_pnodes, bool binds_cpus);

#endif /* LIBXL_VNODE_PLACEMENT_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
