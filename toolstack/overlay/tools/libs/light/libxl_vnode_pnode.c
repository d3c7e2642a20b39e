/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes of a running domain: the physical node that backs one.
 *
 * Reading only: everything that can be refused is refused before anything has
 * changed.
 *
 * Locking: callers hold the domain's userdata lock.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"
#include "libxl_vnode_placement.h"

/* The host's pnodes as a domain sees them. */
typedef struct {
    unsigned int nr_pnodes;
    struct vnode_pnode *pnode;
    char *pool;                 /* name of the domain's cpupool */
} host_nodes;

/* Memory of each pnode. */
static int load_memory(libxl__gc *gc, host_nodes *host)
{
    int i, nr;
    libxl_numainfo *info = libxl_get_numainfo(CTX, &nr);

    if (!info)
        return ERROR_FAIL;

    host->nr_pnodes = nr;
    host->pnode = libxl__calloc(gc, nr, sizeof(*host->pnode));
    for (i = 0; i < nr; i++) {
        host->pnode[i].exists = info[i].size != LIBXL_NUMAINFO_INVALID_ENTRY;
        host->pnode[i].free_kb = info[i].free == LIBXL_NUMAINFO_INVALID_ENTRY
                                 ? 0 : info[i].free >> 10;
    }
    libxl_numainfo_list_free(info, nr);

    return 0;
}

/* CPUs of each pnode, and those of them in the domain's cpupool. */
static int load_cpus(libxl__gc *gc, uint32_t domid, host_nodes *host)
{
    libxl_cpupoolinfo pool;
    libxl_cputopology *cpus = NULL;
    xc_domaininfo_t info;
    int i, nr = 0, rc;

    libxl_cpupoolinfo_init(&pool);

    if (xc_domain_getinfo_single(CTX->xch, domid, &info) < 0) {
        LOGED(ERROR, domid, "cannot ask for the domain's cpupool");
        rc = ERROR_FAIL;
        goto out;
    }
    rc = libxl_cpupool_info(CTX, &pool, info.cpupool);
    if (rc) goto out;
    cpus = libxl_get_cpu_topology(CTX, &nr);
    if (!cpus) {
        rc = ERROR_FAIL;
        goto out;
    }

    host->pool = libxl__strdup(gc, pool.pool_name);
    for (i = 0; i < nr; i++) {
        if (cpus[i].node >= host->nr_pnodes) /* no such CPU, or offline */
            continue;
        host->pnode[cpus[i].node].cpus++;
        if (libxl_bitmap_test(&pool.cpumap, i))
            host->pnode[cpus[i].node].pool_cpus++;
    }
    rc = 0;

 out:
    libxl_cputopology_list_free(cpus, nr);
    libxl_cpupoolinfo_dispose(&pool);
    return rc;
}

/*
 * What the domain's configuration says of a vnode: @pnode that it names, or
 * LIBXL_VNODE_PNODE_ANY, and whether there are CPUs that it does not pin.
 */
static int load_config(libxl__gc *gc, const libxl__vnode_domain *vd,
                       unsigned int nr, unsigned int *pnode, bool *binds_cpus)
{
    libxl_domain_config d_config;
    unsigned int v;
    int rc;

    libxl_domain_config_init(&d_config);
    rc = libxl__get_domain_configuration(gc, vd->domid, &d_config);
    if (rc) goto out;

    *pnode = nr < d_config.b_info.num_vnuma_nodes
             ? d_config.b_info.vnuma_nodes[nr].pnode : LIBXL_VNODE_PNODE_ANY;
    *binds_cpus = false;
    for (v = d_config.b_info.num_vcpu_hard_affinity; v < vd->nr_vcpus; v++)
        *binds_cpus |= vd->node[nr].cpus[v / 8] & (1 << (v % 8));

 out:
    libxl_domain_config_dispose(&d_config);
    return rc;
}

static const char *pnodes_of_pool(libxl__gc *gc, const host_nodes *host)
{
    uint8_t *map = libxl__zalloc(gc, (host->nr_pnodes + 7) / 8);
    size_t room = host->nr_pnodes * 8 + 1;
    char *list = libxl__zalloc(gc, room);
    unsigned int i;

    for (i = 0; i < host->nr_pnodes; i++)
        if (host->pnode[i].pool_cpus)
            map[i / 8] |= 1 << (i % 8);
    vnode_format_cpus(map, host->nr_pnodes, list, room);

    return list;
}

/* 0, or ERROR_VNODE_REFUSED with the reason logged. */
static int judge(libxl__gc *gc, uint32_t domid, const host_nodes *host,
                 unsigned int nr, unsigned int pnode, uint64_t need_kb,
                 bool binds_cpus)
{
    switch (vnode_judge_pnode(host->pnode, host->nr_pnodes, pnode, need_kb,
                              binds_cpus)) {
    case VNODE_PNODE_GOOD:
        return 0;
    case VNODE_PNODE_NONE:
        LOGD(ERROR, domid, "vnode %u: pnode %u does not exist, the host has "
             "pnodes 0-%u", nr, pnode, host->nr_pnodes - 1);
        break;
    case VNODE_PNODE_OUTSIDE:
        LOGD(ERROR, domid, "vnode %u: pnode %u has no CPU in %s, the domain's "
             "cpupool, so that the vnode's CPUs could not run there; that pool "
             "has CPUs on pnodes %s: choose one of those, or give the pool "
             "CPUs of pnode %u (xl cpupool-cpu-add), or move the domain to "
             "another pool (xl cpupool-migrate)", nr, pnode, host->pool,
             pnodes_of_pool(gc, host), pnode);
        break;
    case VNODE_PNODE_FULL:
        LOGD(ERROR, domid, "vnode %u: pnode %u has %"PRIu64" KiB free, "
             "%"PRIu64" KiB are needed, %"PRIu64" KiB short", nr, pnode,
             host->pnode[pnode].free_kb, need_kb,
             need_kb - host->pnode[pnode].free_kb);
        break;
    }

    return ERROR_VNODE_REFUSED;
}

int libxl__vnode_choose_pnode(libxl__gc *gc, const libxl__vnode_domain *vd,
                              const libxl_vnode_request *req, unsigned int nr,
                              uint64_t need_kb, unsigned int *pnode)
{
    const libxl__vnode *v = &vd->node[nr];
    unsigned int configured;
    host_nodes host = { .nr_pnodes = 0 };
    bool binds_cpus;
    int rc;

    rc = load_memory(gc, &host);
    if (rc) goto out;
    rc = load_cpus(gc, vd->domid, &host);
    if (rc) goto out;
    rc = load_config(gc, vd, nr, &configured, &binds_cpus);
    if (rc) goto out;

    if (v->pnode >= 0 && v->allowed_kb) {
        /* Its frames are where they are. */
        *pnode = v->pnode;
        if (req->pnode >= 0 && req->pnode != v->pnode) {
            LOGD(ERROR, vd->domid, "vnode %u still has memory on pnode %d: "
                 "detach it first to move it to pnode %d", nr, v->pnode,
                 req->pnode);
            rc = ERROR_VNODE_REFUSED;
            goto out;
        }
    } else if (req->pnode >= 0) {
        *pnode = req->pnode;
    } else if (configured != LIBXL_VNODE_PNODE_ANY) {
        *pnode = configured;
    } else {
        int best = vnode_roomiest_pnode(host.pnode, host.nr_pnodes,
                                        binds_cpus);

        /* A pool without CPUs has no running domain. */
        *pnode = best < 0 ? 0 : best;
    }

    rc = judge(gc, vd->domid, &host, nr, *pnode, need_kb, binds_cpus);

 out:
    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
