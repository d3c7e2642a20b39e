/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Where elastic vnodes lie in the guest's physical address space.
 * See libxl_vnode_layout.h.
 */
#include "libxl_vnode_layout.h"

bool vnode_layout_place(uint64_t ram_end, uint64_t size_kb,
                        uint64_t *start, uint64_t *end)
{
    uint64_t base = ram_end;

    if (!size_kb || size_kb % VNODE_BLOCK_KB ||
        size_kb > VNODE_LAYOUT_CEILING >> 10)
        return false;

    if (base < VNODE_LAYOUT_FLOOR)
        base = VNODE_LAYOUT_FLOOR;
    if (base > VNODE_LAYOUT_CEILING - VNODE_LAYOUT_ALIGN)
        return false;
    base = (base + VNODE_LAYOUT_ALIGN - 1) & ~(VNODE_LAYOUT_ALIGN - 1);

    if (size_kb << 10 > VNODE_LAYOUT_CEILING - base)
        return false;

    *start = base;
    *end = base + (size_kb << 10);

    return true;
}

bool vnode_target_valid(uint64_t kb, uint64_t max_kb)
{
    return kb <= max_kb && !(kb % VNODE_TARGET_KB);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
