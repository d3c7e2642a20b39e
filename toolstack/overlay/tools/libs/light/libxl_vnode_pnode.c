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
    uint32_t pool;              /* the domain's cpupool */
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
    libxl_bitmap pool;
    libxl_cputopology *cpus = NULL;
    int i, nr = 0, rc;

    libxl_bitmap_init(&pool);
    rc = libxl__vnode_pool_cpus(gc, domid, &pool, &host->pool);
    if (rc) goto out;
    cpus = libxl_get_cpu_topology(CTX, &nr);
    if (!cpus) {
        rc = ERROR_FAIL;
        goto out;
    }

    for (i = 0; i < nr; i++) {
        if (cpus[i].node >= host->nr_pnodes) /* no such CPU, or offline */
            continue;
        host->pnode[cpus[i].node].cpus++;
        if (libxl_bitmap_test(&pool, i))
            host->pnode[cpus[i].node].pool_cpus++;
    }
    rc = 0;

 out:
    libxl_cputopology_list_free(cpus, nr);
    libxl_bitmap_dispose(&pool);
    return rc;
}

/* Are there CPUs of the vnode that the domain's configuration does not pin? */
static bool binds_cpus(const libxl__vnode_domain *vd, unsigned int nr)
{
    unsigned int v;

    for (v = vd->pinned_hard; v < vd->nr_vcpus; v++)
        if (libxl__vnode_has_vcpu(vd->node[nr].cpus, v))
            return true;

    return false;
}

static const char *pool_name(libxl__gc *gc, uint32_t pool)
{
    const char *name = libxl__cpupoolid_to_name(gc, pool);

    return name ? name : GCSPRINTF("pool %"PRIu32, pool);
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
                 bool binds)
{
    switch (vnode_judge_pnode(host->pnode, host->nr_pnodes, pnode, need_kb,
                              binds)) {
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
             "another pool (xl cpupool-migrate)", nr, pnode,
             pool_name(gc, host->pool), pnodes_of_pool(gc, host), pnode);
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

int libxl__vnode_choose_pnode(libxl__gc *gc, libxl__vnode_domain *vd,
                              const libxl_vnode_request *req, unsigned int nr,
                              uint64_t need_kb, unsigned int *pnode)
{
    const libxl__vnode *v = &vd->node[nr];
    unsigned int configured;
    host_nodes host = { .nr_pnodes = 0 };
    bool binds;
    int rc;

    rc = load_memory(gc, &host);
    if (rc) goto out;
    rc = load_cpus(gc, vd->domid, &host);
    if (rc) goto out;
    rc = libxl__vnode_know_config(gc, vd);
    if (rc) goto out;
    configured = vd->config_pnode[nr];
    binds = binds_cpus(vd, nr);

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
        int best = vnode_roomiest_pnode(host.pnode, host.nr_pnodes, binds);

        /* A pool without CPUs has no running domain. */
        *pnode = best < 0 ? 0 : best;
    }

    rc = judge(gc, vd->domid, &host, nr, *pnode, need_kb, binds);

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
