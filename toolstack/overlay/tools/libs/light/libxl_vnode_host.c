/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes of a running domain: the host's side of an operation.
 *
 * Memory limit, vNUMA table, affinity, CPU availability.  Each function can
 * be repeated: after a crash in between, the next caller does it again.
 *
 * The limit is a sum: the home nodes' target, libxl's constant for the
 * domain, and what each elastic vnode is allowed (allowed-kb).  An allowance
 * rises before the guest is told to grow, and falls only when Xen's own count
 * shows that the memory has left.
 *
 * Locking: callers hold the domain's userdata lock.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"
#include "libxl_arch.h"

/* The domain's memory limit without its elastic vnodes. */
static int home_limit(libxl__gc *gc, uint32_t domid, uint64_t *limit_kb)
{
    libxl_domain_config d_config;
    uint64_t target, extra;
    int rc;

    libxl_domain_config_init(&d_config);

    rc = libxl__get_domain_configuration(gc, domid, &d_config);
    if (rc) goto out;
    rc = libxl__get_memory_target(gc, domid, &target, NULL);
    if (rc) goto out;
    rc = libxl__arch_extra_memory(gc, &d_config.b_info, &extra);
    if (rc) goto out;

    *limit_kb = target + libxl__get_targetmem_fudge(gc, &d_config.b_info) +
                extra;

 out:
    libxl_domain_config_dispose(&d_config);
    return rc;
}

static uint64_t sum_allowances(const libxl__vnode_domain *vd)
{
    unsigned int i;
    uint64_t sum = 0;

    for (i = 0; i < vd->nr_vnodes; i++)
        sum += vd->node[i].allowed_kb;

    return sum;
}

int libxl__vnode_set_allowance(libxl__gc *gc, libxl__vnode_domain *vd,
                               unsigned int nr, uint64_t allowed_kb)
{
    uint64_t before = vd->node[nr].allowed_kb, limit;
    int rc;

    rc = home_limit(gc, vd->domid, &limit);
    if (rc)
        return rc;

    vd->node[nr].allowed_kb = allowed_kb;
    limit += sum_allowances(vd);

    if (allowed_kb < before && vd->total_kb > limit) {
        vd->node[nr].allowed_kb = before;
        LOGD(ERROR, vd->domid, "vnode %u: the guest says that its memory has "
             "left, but Xen counts %"PRIu64" KiB for the domain, %"PRIu64
             " KiB more than it may have then; its limit stays", nr,
             vd->total_kb, vd->total_kb - limit);
        return ERROR_FAIL;
    }

    rc = libxl__xs_printf(gc, XBT_NULL,
                          libxl__vnode_libxl_path(gc, vd->domid, nr,
                                                  "allowed-kb"),
                          "%"PRIu64, allowed_kb);
    if (rc)
        return rc;

    if (xc_domain_setmaxmem(CTX->xch, vd->domid, limit) < 0) {
        LOGED(ERROR, vd->domid, "vnode %u: cannot set the memory limit to "
              "%"PRIu64" KiB", nr, limit);
        return ERROR_FAIL;
    }

    return 0;
}

/*
 * Hard affinity too, because an elastic vnode is about where its CPUs run: a
 * CPU that strays makes all of the vnode's memory remote.  But a vCPU that
 * the configuration pins stays where its owner wanted it.
 */
static int set_affinity(libxl__gc *gc, libxl__vnode_domain *vd,
                        unsigned int nr, const libxl_bitmap *cpumap)
{
    libxl_domain_config d_config;
    unsigned int v;
    int rc;

    libxl_domain_config_init(&d_config);
    rc = libxl__get_domain_configuration(gc, vd->domid, &d_config);
    if (rc) goto out;

    for (v = 0; v < vd->nr_vcpus; v++) {
        const libxl_domain_build_info *info = &d_config.b_info;
        const libxl_bitmap *hard, *soft;

        if (!(vd->node[nr].cpus[v / 8] & (1 << (v % 8))))
            continue;
        hard = v < info->num_vcpu_hard_affinity ? NULL : cpumap;
        soft = v < info->num_vcpu_soft_affinity ? NULL : cpumap;
        if (!hard && !soft)
            continue;
        rc = libxl_set_vcpuaffinity(CTX, vd->domid, v, hard, soft);
        if (rc) {
            LOGD(ERROR, vd->domid, "vnode %u: cannot set the affinity of vCPU "
                 "%u", nr, v);
            goto out;
        }
    }

 out:
    libxl_domain_config_dispose(&d_config);
    return rc;
}

/* Affinity to a pnode's CPUs, or to all of them. */
static int set_node_affinity(libxl__gc *gc, libxl__vnode_domain *vd,
                             unsigned int nr, int pnode)
{
    libxl_bitmap cpumap;
    int rc;

    libxl_bitmap_init(&cpumap);
    rc = libxl_cpu_bitmap_alloc(CTX, &cpumap, 0);
    if (rc) goto out;

    if (pnode < 0) {
        libxl_bitmap_set_any(&cpumap);
    } else {
        rc = libxl_node_to_cpumap(CTX, pnode, &cpumap);
        if (rc) goto out;
        /* A node without CPUs holds memory only: its CPUs run anywhere. */
        if (libxl_bitmap_is_empty(&cpumap))
            libxl_bitmap_set_any(&cpumap);
    }
    rc = set_affinity(gc, vd, nr, &cpumap);

 out:
    libxl_bitmap_dispose(&cpumap);
    return rc;
}

/*
 * Xen uses its table for whatever the guest populates, so that an absent
 * vnode must not lead to a pnode that the guest does not have: it leads to
 * the one of vnode 0.
 */
static int tell_xen(libxl__gc *gc, libxl__vnode_domain *vd)
{
    unsigned int i, *to_pnode;
    int home = vd->node[0].pnode < 0 ? 0 : vd->node[0].pnode;

    to_pnode = libxl__calloc(gc, vd->nr_vnodes, sizeof(*to_pnode));
    for (i = 0; i < vd->nr_vnodes; i++)
        to_pnode[i] = vd->node[i].pnode < 0 ? home : vd->node[i].pnode;

    if (xc_domain_setvnuma(CTX->xch, vd->domid, vd->nr_vnodes,
                           vd->nr_vmemranges, vd->nr_vcpus, vd->vmemrange,
                           vd->vdistance, vd->vcpu_to_vnode, to_pnode) < 0) {
        LOGED(ERROR, vd->domid, "cannot tell Xen which pnodes back the "
              "domain's vnodes");
        return ERROR_FAIL;
    }

    return 0;
}

int libxl__vnode_set_pnode(libxl__gc *gc, libxl__vnode_domain *vd,
                           unsigned int nr, unsigned int pnode)
{
    int rc;

    rc = libxl__xs_printf(gc, XBT_NULL,
                          libxl__vnode_libxl_path(gc, vd->domid, nr, "pnode"),
                          "%u", pnode);
    if (rc)
        return rc;
    vd->node[nr].pnode = pnode;

    rc = tell_xen(gc, vd);
    if (rc)
        return rc;

    return set_node_affinity(gc, vd, nr, pnode);
}

/* An absent vnode is nowhere. */
static int clear_pnode(libxl__gc *gc, libxl__vnode_domain *vd, unsigned int nr)
{
    int rc;

    if (vd->node[nr].pnode < 0)
        return 0;
    vd->node[nr].pnode = -1;

    rc = tell_xen(gc, vd);
    if (rc)
        return rc;
    rc = set_node_affinity(gc, vd, nr, -1);
    if (rc)
        return rc;

    return libxl__xs_rm_checked(gc, XBT_NULL,
                                libxl__vnode_libxl_path(gc, vd->domid, nr,
                                                        "pnode"));
}

static int set_availability(libxl__gc *gc, libxl__vnode_domain *vd,
                            unsigned int nr, bool online)
{
    unsigned int v;
    int rc;

    for (v = 0; v < vd->nr_vcpus; v++) {
        const char *path =
            GCSPRINTF("/local/domain/%"PRIu32"/cpu/%u/availability",
                      vd->domid, v);

        if (!(vd->node[nr].cpus[v / 8] & (1 << (v % 8))))
            continue;
        rc = libxl__xs_write_checked(gc, XBT_NULL, path,
                                     online ? "online" : "offline");
        if (rc)
            return rc;
    }

    return 0;
}

int libxl__vnode_settle_host(libxl__gc *gc, libxl__vnode_domain *vd,
                             unsigned int nr)
{
    libxl__vnode *v = &vd->node[nr];
    uint64_t allowed = vnode_settled_allowance(v->target_kb, v->allowed_kb,
                                               &v->report);
    int rc;

    if (!v->elastic)
        return 0;

    if (allowed != v->allowed_kb) {
        rc = libxl__vnode_set_allowance(gc, vd, nr, allowed);
        if (rc)
            return rc;
    }

    if (v->report.fault[0])
        return 0;

    switch (v->report.state) {
    case VNODE_KEY_ONLINE:
        return set_availability(gc, vd, nr, true);
    case VNODE_KEY_ABSENT:
    case VNODE_KEY_OFFLINE:
        if (v->target_kb)
            return 0;
        rc = set_availability(gc, vd, nr, false);
        if (rc)
            return rc;
        return clear_pnode(gc, vd, nr);
    case VNODE_KEY_GROWING:
    case VNODE_KEY_DRAINING:
    case VNODE_KEY_RESIDUAL:
        return 0;
    }

    return 0;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
