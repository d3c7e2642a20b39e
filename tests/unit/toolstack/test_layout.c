// SPDX-License-Identifier: GPL-2.0
/* Where elastic vnodes lie, and which sizes they can have: libxl_vnode_layout.c. */
#include "tap.h"
#include "libxl_vnode_layout.h"

#define GIB (1ULL << 30)
#define MB 1024ULL

static void test_place(void)
{
    static const struct {
        const char *name;
        uint64_t ram_end, size_kb;
        uint64_t start;         /* 0: refused */
    } t[] = {
        { "little memory: at 4 GiB", GIB / 2, 512 * MB, 4 * GIB },
        { "nothing below: at 4 GiB", 0, 128 * MB, 4 * GIB },
        { "memory up to 4 GiB", 4 * GIB, 128 * MB, 4 * GIB },
        { "one byte more: next 2 GiB", 4 * GIB + 1, 128 * MB, 6 * GIB },
        { "behind another one", 4 * GIB + 512 * MB * 1024, 128 * MB, 6 * GIB },
        { "large memory", 1000 * GIB + 5, 4096 * MB, 1002 * GIB },
        { "no size", 0, 0, 0 },
        { "not a block", 0, 100 * MB, 0 },
        { "a page more than a block", 0, 128 * MB + 4, 0 },
        { "larger than any address", 0, VNODE_LAYOUT_CEILING >> 9, 0 },
        { "no room left", VNODE_LAYOUT_CEILING - 1, 128 * MB, 0 },
        { "no address at all", UINT64_MAX, 128 * MB, 0 },
        { "just too large", 4 * GIB, (VNODE_LAYOUT_CEILING >> 10) - 4 * GIB / 1024 + 128 * MB, 0 },
        { "just fits", 4 * GIB, (VNODE_LAYOUT_CEILING >> 10) - 4 * GIB / 1024, 4 * GIB },
    };

    for (size_t i = 0; i < NR(t); i++) {
        uint64_t start = 1, end = 2;
        bool ok = vnode_layout_place(t[i].ram_end, t[i].size_kb, &start, &end);

        ok_("place: %s", ok == !!t[i].start &&
            (ok ? start == t[i].start && end - start == t[i].size_kb << 10
                : start == 1 && end == 2), t[i].name);
    }
}

/* Any sequence: ascending, aligned, not overlapping. */
static void test_sequence(void)
{
    uint64_t last = 3 * GIB;
    bool right = true;

    for (unsigned int i = 1; i <= 31; i++) {
        uint64_t start, end;

        right &= vnode_layout_place(last, i * VNODE_BLOCK_KB, &start, &end) &&
                 start >= last && start >= VNODE_LAYOUT_FLOOR &&
                 !(start % VNODE_LAYOUT_ALIGN) && end > start;
        last = end;
    }
    ok_("place: 31 ranges are aligned, ascending and apart", right);
}

static void test_targets(void)
{
    ok_("target: nothing", vnode_target_valid(0, 512 * MB));
    ok_("target: all", vnode_target_valid(512 * MB, 512 * MB));
    ok_("target: one superpage", vnode_target_valid(2 * MB, 512 * MB));
    ok_("target: half a superpage", !vnode_target_valid(MB, 512 * MB));
    ok_("target: a superpage too much", !vnode_target_valid(514 * MB, 512 * MB));
    ok_("target: a number with all bits", !vnode_target_valid(UINT64_MAX, 512 * MB));
}

int main(void)
{
    test_place();
    test_sequence();
    test_targets();

    return done_testing();
}
