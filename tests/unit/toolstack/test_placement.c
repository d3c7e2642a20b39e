// SPDX-License-Identifier: GPL-2.0
/* Which physical nodes can back a vnode: libxl_vnode_placement.c. */
#include "tap.h"
#include "libxl_vnode_placement.h"

#define MB 1024ULL

/* Two nodes in the pool, one outside, one without CPUs, a hole, one partly in the pool. */
static const struct vnode_pnode host[] = {
    { .exists = true, .free_kb = 100 * MB, .cpus = 4, .pool_cpus = 4 },
    { .exists = true, .free_kb = 300 * MB, .cpus = 4, .pool_cpus = 4 },
    { .exists = true, .free_kb = 900 * MB, .cpus = 4, .pool_cpus = 0 },
    { .exists = true, .free_kb = 200 * MB, .cpus = 0, .pool_cpus = 0 },
    { .exists = false, .free_kb = 0 },
    { .exists = true, .free_kb = 50 * MB, .cpus = 4, .pool_cpus = 1 },
};

static void test_judge(void)
{
    static const struct {
        const char *name;
        unsigned int nr;
        uint64_t need_kb;
        bool binds_cpus;
        enum vnode_verdict verdict;
    } t[] = {
        { "in the pool, with room", 1, 256 * MB, true, VNODE_PNODE_GOOD },
        { "in the pool, just enough", 0, 100 * MB, true, VNODE_PNODE_GOOD },
        { "in the pool, one KiB short", 0, 100 * MB + 1, true, VNODE_PNODE_FULL },
        { "partly in the pool", 5, 50 * MB, true, VNODE_PNODE_GOOD },
        { "outside the pool", 2, 256 * MB, true, VNODE_PNODE_OUTSIDE },
        { "outside the pool and too full: the pool comes first", 2, 2000 * MB, true, VNODE_PNODE_OUTSIDE },
        { "outside the pool, for memory only", 2, 256 * MB, false, VNODE_PNODE_GOOD },
        { "without CPUs", 3, 200 * MB, true, VNODE_PNODE_GOOD },
        { "without CPUs, too full", 3, 201 * MB, true, VNODE_PNODE_FULL },
        { "a hole in the numbers", 4, 0, true, VNODE_PNODE_NONE },
        { "beyond the last", NR(host), 0, true, VNODE_PNODE_NONE },
        { "far beyond the last", ~0U, 0, false, VNODE_PNODE_NONE },
    };

    for (size_t i = 0; i < NR(t); i++)
        ok_("judge: %s", vnode_judge_pnode(host, NR(host), t[i].nr, t[i].need_kb, t[i].binds_cpus) == t[i].verdict,
            t[i].name);
}

static void test_roomiest(void)
{
    struct vnode_pnode same[3] = { host[2], host[0], host[0] };

    ok_("roomiest: of those in the pool", vnode_roomiest_pnode(host, NR(host), true) == 1);
    ok_("roomiest: of all, if no CPU follows", vnode_roomiest_pnode(host, NR(host), false) == 2);
    ok_("roomiest: one without CPUs", vnode_roomiest_pnode(&host[2], 2, true) == 1);
    ok_("roomiest: none in the pool", vnode_roomiest_pnode(&host[2], 1, true) == -1);
    ok_("roomiest: a hole is none", vnode_roomiest_pnode(&host[4], 1, false) == -1);
    ok_("roomiest: no nodes", vnode_roomiest_pnode(host, 0, true) == -1);
    ok_("roomiest: the lowest of several", vnode_roomiest_pnode(same, 3, true) == 1);
    same[1].free_kb = same[2].free_kb = 0;
    ok_("roomiest: full ones, too: the error names one", vnode_roomiest_pnode(same, 3, true) == 1);
}

static void test_unbound(void)
{
    static const struct {
        const char *name;
        uint8_t hard[2], cpus[2], pool[2];
        bool unbound;
    } t[] = {
        { "bound to its pnode", { 0x0c }, { 0x0c }, { 0x0f }, false },
        { "anywhere", { 0xff, 0xff }, { 0x0c }, { 0x0f }, true },
        { "on all of its pool", { 0x0f }, { 0x0c }, { 0x0f }, true },
        { "on all of its pool, beyond eight CPUs", { 0xff, 0x01 }, { 0, 0x01 }, { 0xff, 0x01 }, true },
        { "bound, beyond eight CPUs", { 0, 0x01 }, { 0, 0x01 }, { 0xff, 0x01 }, false },
        { "by hand, on some others", { 0x07 }, { 0x0c }, { 0x0f }, false },
        { "the pool has no CPU of the pnode", { 0xff, 0xff }, { 0x0c }, { 0x03 }, false },
        { "the pool is the pnode", { 0xff, 0xff }, { 0x0c }, { 0x0c }, false },
        { "the pnode is all of a larger one", { 0xff, 0xff }, { 0x1c }, { 0x0c }, false },
        { "a pnode without CPUs", { 0xff, 0xff }, { 0 }, { 0x0f }, false },
    };

    for (size_t i = 0; i < NR(t); i++)
        ok_("affinity: %s", vnode_is_unbound(t[i].hard, t[i].cpus, t[i].pool, 2) == t[i].unbound, t[i].name);
}

int main(void)
{
    test_unbound();
    test_judge();
    test_roomiest();

    return done_testing();
}
