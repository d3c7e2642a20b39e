/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Which physical nodes can back an elastic vnode.  See the header.
 */
#include "libxl_vnode_placement.h"

enum vnode_verdict vnode_judge_pnode(const struct vnode_pnode *pnodes,
                                     unsigned int nr_pnodes, unsigned int nr,
                                     uint64_t need_kb, bool binds_cpus)
{
    if (nr >= nr_pnodes || !pnodes[nr].exists)
        return VNODE_PNODE_NONE;
    if (binds_cpus && pnodes[nr].cpus && !pnodes[nr].pool_cpus)
        return VNODE_PNODE_OUTSIDE;
    if (pnodes[nr].free_kb < need_kb)
        return VNODE_PNODE_FULL;

    return VNODE_PNODE_GOOD;
}

bool vnode_is_unbound(const uint8_t *hard, const uint8_t *cpus,
                      const uint8_t *pool, unsigned int size)
{
    bool everywhere = true, some = false, all = true;
    unsigned int i;

    for (i = 0; i < size; i++) {
        everywhere &= !(pool[i] & ~hard[i]);
        some |= pool[i] & cpus[i];
        all &= !(pool[i] & ~cpus[i]);
    }

    return everywhere && some && !all;
}

int vnode_roomiest_pnode(const struct vnode_pnode *pnodes,
                         unsigned int nr_pnodes, bool binds_cpus)
{
    unsigned int i;
    int best = -1;

    for (i = 0; i < nr_pnodes; i++)
        if (vnode_judge_pnode(pnodes, nr_pnodes, i, 0, binds_cpus) ==
                VNODE_PNODE_GOOD &&
            (best < 0 || pnodes[i].free_kb > pnodes[best].free_kb))
            best = i;

    return best;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
