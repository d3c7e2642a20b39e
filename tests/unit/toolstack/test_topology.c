// SPDX-License-Identifier: GPL-2.0
/*
 * CPUID topology from the vNUMA map: xg_vnuma_topology.c.
 *
 * What must hold is checked as a guest would: by APIC ID, for every pair of
 * vCPUs, in tables and for random maps.
 */
#include <stdlib.h>

#include "tap.h"
#include "xg_vnuma_topology.h"

#define MAX 128

/* Do two vCPUs look like one package, to a guest that shifts APIC IDs? */
static bool siblings(unsigned int a, unsigned int b, unsigned int shift)
{
    return (a << VNUMA_APIC_STRIDE_SHIFT) >> shift ==
           (b << VNUMA_APIC_STRIDE_SHIFT) >> shift;
}

static bool truthful(const unsigned int *map, unsigned int nr,
                     unsigned int shift)
{
    for (unsigned int a = 0; a < nr; a++)
        for (unsigned int b = 0; b < a; b++)
            if (map[a] != map[b] && siblings(a, b, shift))
                return false;

    return true;
}

/* Could the packages be larger and still truthful, and would that matter? */
static bool largest(const unsigned int *map, unsigned int nr,
                    unsigned int shift)
{
    return shift == VNUMA_MAX_PACKAGE_SHIFT ||
           nr <= 1u << (shift - VNUMA_APIC_STRIDE_SHIFT) ||
           !truthful(map, nr, shift + 1);
}

static void test_shift_table(void)
{
    static const struct {
        const char *name;
        unsigned int nr;
        unsigned int map[16];
        unsigned int shift;
    } t[] = {
        { "one vCPU", 1, { 0 }, 1 },
        { "one node of two", 2, { 0, 0 }, 2 },
        { "one node of four", 4, { 0, 0, 0, 0 }, 3 },
        { "one node of three", 3, { 0, 0, 0 }, 3 },
        { "two nodes of two", 4, { 0, 0, 1, 1 }, 2 },
        { "four nodes of two", 8, { 0, 0, 1, 1, 2, 2, 3, 3 }, 2 },
        { "two nodes of four", 8, { 0, 0, 0, 0, 1, 1, 1, 1 }, 3 },
        { "two nodes of one", 2, { 0, 1 }, 1 },
        { "two nodes of three", 6, { 0, 0, 0, 1, 1, 1 }, 1 },
        { "interleaved", 4, { 0, 1, 0, 1 }, 1 },
        { "two, then three of one", 5, { 0, 0, 1, 2, 3 }, 1 },
        { "four, then two and two", 8, { 0, 0, 0, 0, 1, 1, 2, 2 }, 2 },
        { "four, then one", 5, { 0, 0, 0, 0, 1 }, 3 },
        { "one, then three", 4, { 0, 1, 1, 1 }, 1 },
    };

    for (size_t i = 0; i < NR(t); i++)
        ok_("shift: %s",
            vnuma_package_shift(t[i].map, t[i].nr) == t[i].shift &&
            truthful(t[i].map, t[i].nr, t[i].shift), t[i].name);
}

static void test_shift_limits(void)
{
    unsigned int map[MAX] = { 0 };

    ok_("shift: no vCPU at all",
        vnuma_package_shift(map, 0) == VNUMA_APIC_STRIDE_SHIFT);
    ok_("shift: 128 vCPUs in one node are capped",
        vnuma_package_shift(map, MAX) == VNUMA_MAX_PACKAGE_SHIFT);
    for (unsigned int i = MAX / 2; i < MAX; i++)
        map[i] = 1;
    ok_("shift: two nodes of 64",
        vnuma_package_shift(map, MAX) == VNUMA_MAX_PACKAGE_SHIFT);
}

static void test_shift_random(void)
{
    bool never_lies = true, as_large_as_can_be = true;

    srand(1);
    for (int i = 0; i < 4000; i++) {
        unsigned int map[MAX], nr = 1 + rand() % MAX, node = 0;
        int longest = 1 + rand() % 20;

        for (unsigned int v = 0; v < nr; v++) {
            if (rand() % longest == 0)
                node = rand() % 8;
            map[v] = node;
        }
        never_lies &= truthful(map, nr, vnuma_package_shift(map, nr));
        as_large_as_can_be &= largest(map, nr, vnuma_package_shift(map, nr));
    }
    ok_("random maps: no package crosses a vnode", never_lies);
    ok_("random maps: packages are as large as they can be",
        as_large_as_can_be);
}

static void test_leaf1(void)
{
    ok_("leaf 1: two vCPUs a package are four APIC IDs",
        vnuma_leaf1_ebx(0x12ff0800, 2) == 0x12040800);
    ok_("leaf 1: the largest package fits",
        vnuma_leaf1_ebx(0, VNUMA_MAX_PACKAGE_SHIFT) == 0x00800000);
}

static void test_leaf4(void)
{
    /* type 3, level 3, fully of ones above */
    const uint32_t l3 = 0xfffffc63, l2 = 0xfffffc43, l1 = 0xfffffc21;
    const uint32_t none[] = { 0 }, upto3[] = { l1, l2, l3, 0, 0x83 };
    const uint32_t upto2[] = { l1, l2, 0 }, all[] = { l1, l1, l1 };

    ok_("leaf 4: no caches", vnuma_leaf4_llc_level(none, 1) == 0);
    ok_("leaf 4: nothing at all", vnuma_leaf4_llc_level(NULL, 0) == 0);
    ok_("leaf 4: level 3 is the last", vnuma_leaf4_llc_level(upto3, 5) == 3);
    ok_("leaf 4: level 2 is the last", vnuma_leaf4_llc_level(upto2, 3) == 2);
    ok_("leaf 4: no end mark", vnuma_leaf4_llc_level(all, 3) == 1);

    ok_("leaf 4: last level shared by the package",
        vnuma_leaf4_eax(l3, 2, true) == (0x3c63u | 3u << 14 | 3u << 26));
    ok_("leaf 4: other levels private",
        vnuma_leaf4_eax(l2, 2, false) == (0x3c43u | 3u << 26));
    ok_("leaf 4: cores are capped at 64, sharing is not",
        vnuma_leaf4_eax(l3, 7, true) == (0x3c63u | 127u << 14 | 63u << 26));
}

static void test_leaf80000008(void)
{
    ok_("leaf 0x80000008: size and number",
        vnuma_leaf80000008_ecx(0xffffffff, 2) == 0xffff2f03);
    ok_("leaf 0x80000008: the largest package",
        vnuma_leaf80000008_ecx(0, 7) == 0x707f);
}

int main(void)
{
    test_shift_table();
    test_shift_limits();
    test_shift_random();
    test_leaf1();
    test_leaf4();
    test_leaf80000008();

    return done_testing();
}
