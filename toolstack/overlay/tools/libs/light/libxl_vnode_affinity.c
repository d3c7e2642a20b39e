/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes of a running domain: where their vCPUs run.
 *
 * What Xen has need not be what was set: moving a domain to another cpupool
 * lets all its vCPUs run anywhere.
 *
 * Locking: callers hold the domain's userdata lock, or only look.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"
#include "libxl_vnode_placement.h"

/* It is a file of JSON: parsed once for all that is done while it is locked. */
int libxl__vnode_know_config(libxl__gc *gc, libxl__vnode_domain *vd)
{
    libxl_domain_config d_config;
    const libxl_domain_build_info *info = &d_config.b_info;
    unsigned int i;
    int rc;

    if (vd->config_pnode) return 0;

    libxl_domain_config_init(&d_config);
    rc = libxl__get_domain_configuration(gc, vd->domid, &d_config);
    if (rc) goto out;

    vd->pinned_hard = info->num_vcpu_hard_affinity;
    vd->pinned_soft = info->num_vcpu_soft_affinity;
    vd->config_pnode = libxl__calloc(gc, vd->nr_vnodes,
                                     sizeof(*vd->config_pnode));
    for (i = 0; i < vd->nr_vnodes; i++)
        vd->config_pnode[i] = i < info->num_vnuma_nodes
                              ? info->vnuma_nodes[i].pnode
                              : LIBXL_VNODE_PNODE_ANY;

 out:
    libxl_domain_config_dispose(&d_config);
    return rc;
}

/*
 * Hard affinity too, because an elastic vnode is about where its CPUs run: a
 * CPU that strays makes all of the vnode's memory remote.  But a vCPU that
 * the configuration pins stays where its owner wanted it.
 */
static int set_affinity(libxl__gc *gc, libxl__vnode_domain *vd,
                        const uint8_t *cpus, unsigned int nr,
                        const libxl_bitmap *cpumap)
{
    unsigned int v;
    int rc;

    rc = libxl__vnode_know_config(gc, vd);
    if (rc) goto out;

    for (v = 0; v < vd->nr_vcpus; v++) {
        const libxl_bitmap *hard, *soft;

        if (!libxl__vnode_has_vcpu(cpus, v))
            continue;
        hard = v < vd->pinned_hard ? NULL : cpumap;
        soft = v < vd->pinned_soft ? NULL : cpumap;
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
    return rc;
}

int libxl__vnode_set_affinity(libxl__gc *gc, libxl__vnode_domain *vd,
                              unsigned int nr, int pnode, bool loose)
{
    libxl__vnode *v = &vd->node[nr];
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
    rc = set_affinity(gc, vd, loose ? v->loose : v->cpus, nr, &cpumap);
    if (rc) goto out;
    v->unbound = false;

 out:
    libxl_bitmap_dispose(&cpumap);
    return rc;
}

/* Not libxl_cpupool_info(): that asks xenstored for the pool's name. */
int libxl__vnode_pool_cpus(libxl__gc *gc, uint32_t domid, libxl_bitmap *cpumap,
                           uint32_t *poolid)
{
    xc_cpupoolinfo_t *pool = NULL;
    xc_domaininfo_t info;
    int rc = ERROR_FAIL;

    if (xc_domain_getinfo_single(CTX->xch, domid, &info) < 0) goto out;
    /* Xen answers with that pool, or the next one that there is. */
    pool = xc_cpupool_getinfo(CTX->xch, info.cpupool);
    if (!pool || pool->cpupool_id != info.cpupool) goto out;
    rc = libxl_cpu_bitmap_alloc(CTX, cpumap, 0);
    if (rc) goto out;
    memcpy(cpumap->map, pool->cpumap, cpumap->size);
    *poolid = info.cpupool;

 out:
    if (rc)
        LOGD(ERROR, domid, "cannot ask for the domain's cpupool");
    if (pool) xc_cpupool_infofree(CTX->xch, pool);
    return rc;
}

/* Which vCPUs of vnode @nr run anywhere? */
static int find_unbound(libxl__gc *gc, libxl__vnode_domain *vd,
                        unsigned int nr, const libxl_bitmap *pool)
{
    libxl__vnode *v = &vd->node[nr];
    libxl_bitmap cpus, hard, soft;
    unsigned int c;
    int rc;

    libxl_bitmap_init(&cpus);
    libxl_bitmap_init(&hard);
    libxl_bitmap_init(&soft);
    rc = libxl_cpu_bitmap_alloc(CTX, &cpus, 0);
    if (rc) goto out;
    rc = libxl_cpu_bitmap_alloc(CTX, &hard, 0);
    if (rc) goto out;
    rc = libxl_cpu_bitmap_alloc(CTX, &soft, 0);
    if (rc) goto out;
    rc = libxl_node_to_cpumap(CTX, v->pnode, &cpus);
    if (rc) goto out;

    v->loose = libxl__zalloc(gc, (vd->nr_vcpus + 7) / 8);
    for (c = 0; c < vd->nr_vcpus; c++) {
        if (!libxl__vnode_has_vcpu(v->cpus, c))
            continue;
        if (xc_vcpu_getaffinity(CTX->xch, vd->domid, c, hard.map, soft.map,
                                XEN_VCPUAFFINITY_HARD) < 0) {
            rc = ERROR_FAIL;
            goto out;
        }
        if (!vnode_is_unbound(hard.map, cpus.map, pool->map, pool->size))
            continue;
        v->loose[c / 8] |= 1 << (c % 8);
        v->unbound = true;
    }

 out:
    libxl_bitmap_dispose(&cpus);
    libxl_bitmap_dispose(&hard);
    libxl_bitmap_dispose(&soft);
    return rc;
}

static bool is_placed(const libxl__vnode *v)
{
    return v->elastic && v->pnode >= 0 && v->availability != VNODE_CPUS_NONE;
}

/* What the configuration pins may run where it says. */
static void leave_pinned(const libxl__vnode_domain *vd, libxl__vnode *v)
{
    unsigned int c;

    v->unbound = false;
    for (c = 0; v->loose && c < vd->nr_vcpus; c++) {
        if (c < vd->pinned_hard)
            v->loose[c / 8] &= ~(1 << (c % 8));
        v->unbound |= libxl__vnode_has_vcpu(v->loose, c);
    }
}

void libxl__vnode_find_unbound(libxl__gc *gc, libxl__vnode_domain *vd)
{
    libxl_bitmap pool;
    bool any = false, unbound = false;
    uint32_t poolid;
    unsigned int i;
    int rc = 0;

    libxl_bitmap_init(&pool);
    for (i = 0; i < vd->nr_vnodes; i++) {
        vd->node[i].unbound = false;
        any |= is_placed(&vd->node[i]);
    }
    if (!any) goto out;

    rc = libxl__vnode_pool_cpus(gc, vd->domid, &pool, &poolid);
    if (rc) goto out;
    for (i = 0; i < vd->nr_vnodes; i++) {
        if (!is_placed(&vd->node[i]))
            continue;
        rc = find_unbound(gc, vd, i, &pool);
        if (rc) goto out;
        unbound |= vd->node[i].unbound;
    }
    /* Seldom: so the configuration is not read before. */
    if (!unbound) goto out;
    rc = libxl__vnode_know_config(gc, vd);
    if (rc) goto out;
    for (i = 0; i < vd->nr_vnodes; i++)
        leave_pinned(vd, &vd->node[i]);

 out:
    if (rc) {
        LOGD(WARN, vd->domid, "cannot tell where the vCPUs of its vnodes run");
        for (i = 0; i < vd->nr_vnodes; i++)
            vd->node[i].unbound = false;
    }
    libxl_bitmap_dispose(&pool);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
