/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes when a domain is built: configuration, address space layout,
 * first xenstore keys.
 *
 * Locking: the domain is not known to anyone else yet.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"
#include "libxl_arch.h"
#include "libxl_vnode_layout.h"

unsigned int libxl__vnode_nr_elastic(const libxl_domain_build_info *info)
{
    unsigned int i, nr = 0;

    for (i = 0; i < info->num_vnuma_nodes; i++)
        nr += info->vnuma_nodes[i].elastic;

    return nr;
}

uint64_t libxl__vnode_elastic_memkb(const libxl_domain_build_info *info)
{
    unsigned int i;
    uint64_t memkb = 0;

    for (i = 0; i < info->num_vnuma_nodes; i++)
        if (info->vnuma_nodes[i].elastic)
            memkb += info->vnuma_nodes[i].memkb;

    return memkb;
}

/* Lowest vCPU of any elastic vnode and highest of any home one, or -1. */
static void vcpu_borders(const libxl_domain_build_info *info,
                         int *first_elastic, int *last_home)
{
    unsigned int i;
    int j;

    *first_elastic = *last_home = -1;
    for (i = 0; i < info->num_vnuma_nodes; i++) {
        const libxl_vnode_info *v = &info->vnuma_nodes[i];

        libxl_for_each_set_bit(j, v->vcpus) {
            if (v->elastic && (*first_elastic < 0 || j < *first_elastic))
                *first_elastic = j;
            if (!v->elastic && j > *last_home)
                *last_home = j;
        }
    }
}

static int check_elastic(libxl__gc *gc, uint32_t domid,
                         const libxl_domain_build_info *info)
{
    int first_elastic, last_home, rc = ERROR_VNUMA_CONFIG_INVALID;
    unsigned int i;

    if (!libxl__vnode_supported()) {
        LOGD(ERROR, domid, "elastic vnodes exist on x86 only");
        goto out;
    }
    if (info->type != LIBXL_DOMAIN_TYPE_PVH) {
        LOGD(ERROR, domid, "elastic vnodes need a PVH guest (type=\"pvh\"), "
             "this one is %s", libxl_domain_type_to_string(info->type));
        goto out;
    }
    if (info->vnuma_nodes[0].elastic) {
        LOGD(ERROR, domid, "vnode 0 must not be elastic: the guest boots "
             "on it");
        goto out;
    }
    for (i = 1; i < info->num_vnuma_nodes; i++) {
        const libxl_vnode_info *v = &info->vnuma_nodes[i];

        if (v->elastic && (!v->memkb || v->memkb % VNODE_BLOCK_KB)) {
            LOGD(ERROR, domid, "vnode %u is elastic: its size, %"PRIu64" KiB, "
                 "must be a multiple of %llu MiB", i, v->memkb,
                 VNODE_BLOCK_KB >> 10);
            goto out;
        }
    }

    /*
     * Linux numbers CPUs that are enabled at boot first.  Only with elastic
     * ones behind them is CPU number n in the guest vCPU n.
     */
    vcpu_borders(info, &first_elastic, &last_home);
    if (first_elastic >= 0 && first_elastic < last_home) {
        LOGD(ERROR, domid, "vCPU %d of an elastic vnode comes before vCPU %d "
             "of a home vnode; elastic vnodes must have the highest vCPUs",
             first_elastic, last_home);
        goto out;
    }
    rc = 0;

 out:
    return rc;
}

int libxl__vnode_setdefault(libxl__gc *gc, libxl_domain_config *d_config,
                            uint32_t domid)
{
    libxl_domain_build_info *info = &d_config->b_info;
    unsigned int i;
    int j, rc = 0;

    rc = libxl__vnode_check_hosts(gc, domid, d_config);
    if (rc || !libxl__vnode_nr_elastic(info)) goto out;

    rc = check_elastic(gc, domid, info);
    if (rc) goto out;

    for (i = 0; i < info->num_vnuma_nodes; i++)
        if (info->vnuma_nodes[i].elastic)
            libxl_for_each_set_bit(j, info->vnuma_nodes[i].vcpus)
                libxl_bitmap_reset(&info->avail_vcpus, j);

    if (libxl_bitmap_is_empty(&info->avail_vcpus)) {
        LOGD(ERROR, domid, "no vCPU of a home vnode is online at boot");
        rc = ERROR_VNUMA_CONFIG_INVALID;
    }

 out:
    return rc;
}

int libxl__vnode_check_pnode(libxl__gc *gc,
                             const libxl_domain_build_info *info,
                             unsigned int nr, unsigned int nr_pnodes)
{
    uint32_t pnode = info->vnuma_nodes[nr].pnode;
    int rc = 0;

    if (pnode != LIBXL_VNODE_PNODE_ANY && pnode >= nr_pnodes) {
        LOG(ERROR, "vnode %u: pnode %"PRIu32" does not exist, the host has "
            "%u", nr, pnode, nr_pnodes);
        rc = ERROR_VNUMA_CONFIG_INVALID;
    }

    return rc;
}

unsigned int libxl__vnode_boot_pnode(const libxl_domain_build_info *info,
                                     unsigned int nr)
{
    /* Until it is attached: see libxl__vnode_set_table(). */
    return info->vnuma_nodes[info->vnuma_nodes[nr].elastic ? 0 : nr].pnode;
}

int libxl__vnode_place(libxl__gc *gc, uint32_t domid,
                       const libxl_domain_build_info *info,
                       xen_vmemrange_t **ranges, int *nr_ranges)
{
    uint64_t end = 0;
    unsigned int i;
    int j, rc = 0;

    for (j = 0; j < *nr_ranges; j++)
        if ((*ranges)[j].end > end)
            end = (*ranges)[j].end;

    for (i = 0; i < info->num_vnuma_nodes; i++) {
        xen_vmemrange_t *r;

        if (!info->vnuma_nodes[i].elastic)
            continue;
        GCREALLOC_ARRAY(*ranges, *nr_ranges + 1);
        r = &(*ranges)[(*nr_ranges)++];
        r->flags = 0;
        r->nid = i;
        if (!vnode_layout_place(end, info->vnuma_nodes[i].memkb,
                                &r->start, &r->end)) {
            LOGD(ERROR, domid, "no room for vnode %u, %"PRIu64" KiB, above "
                 "0x%"PRIx64, i, info->vnuma_nodes[i].memkb, end);
            rc = ERROR_VNUMA_CONFIG_INVALID;
            goto out;
        }
        end = r->end;
    }

 out:
    return rc;
}

/* The keys of one vnode that never change, and its first target. */
static int setup_vnode(libxl__gc *gc, xs_transaction_t t, uint32_t domid,
                       const libxl_domain_build_info *info, unsigned int nr,
                       uint64_t start)
{
    const libxl_vnode_info *v = &info->vnuma_nodes[nr];
    uint8_t *cpus = libxl__zalloc(gc, (info->max_vcpus + 7) / 8);
    size_t len = info->max_vcpus * 6 + 1;
    char *list = libxl__zalloc(gc, len);
    struct {
        const char *key, *value;
    } keys[] = {
        { "elastic", v->elastic ? "1" : "0" },
        { "max-kb", GCSPRINTF("%"PRIu64, v->memkb) },
        { "target-kb", GCSPRINTF("%"PRIu64, v->elastic ? 0 : v->memkb) },
        { "cpus", list },
        { "start", v->elastic ? GCSPRINTF("0x%"PRIx64, start) : NULL },
    };
    const char *host_path = libxl__vnode_libxl_path(gc, domid, nr, "host");
    const char *remote_path = libxl__vnode_libxl_path(gc, domid, nr,
                                                      "remote-vcpus");
    unsigned int i;
    int j, rc;

    libxl_for_each_set_bit(j, v->vcpus)
        if (j < info->max_vcpus)
            cpus[j / 8] |= 1 << (j % 8);
    if (!vnode_format_cpus(cpus, info->max_vcpus, list, len)) {
        rc = ERROR_FAIL;
        goto out;
    }

    for (i = 0; i < ARRAY_SIZE(keys); i++) {
        if (!keys[i].value)
            continue;
        rc = libxl__xs_write_checked(gc, t,
                                     libxl__vnode_path(gc, domid, nr,
                                                       keys[i].key),
                                     keys[i].value);
        if (rc) goto out;
    }
    rc = !v->host ? 0 : libxl__xs_write_checked(gc, t, host_path, v->host);
    if (rc) goto out;
    rc = !v->remote_vcpus ? 0 : libxl__xs_write_checked(gc, t, remote_path,
                                                        "1");
    if (rc || v->elastic) goto out;

    rc = libxl__xs_printf(gc, t,
                          libxl__vnode_libxl_path(gc, domid, nr, "pnode"),
                          "%u", v->pnode);

 out:
    return rc;
}

static int make_dirs(libxl__gc *gc, xs_transaction_t t, uint32_t domid)
{
    const char *dom_path = libxl__xs_get_dompath(gc, domid);
    struct xs_permissions roperm[2] = {
        { .id = 0, .perms = XS_PERM_NONE },
        { .id = domid, .perms = XS_PERM_READ },
    };
    struct xs_permissions rwperm[1] = {
        { .id = domid, .perms = XS_PERM_NONE },
    };
    int rc;

    if (!dom_path) {
        rc = ERROR_FAIL;
        goto out;
    }

    rc = libxl__xs_mknod(gc, t, GCSPRINTF("%s/vnuma", dom_path),
                         roperm, ARRAY_SIZE(roperm));
    if (rc) goto out;
    rc = libxl__xs_mknod(gc, t, GCSPRINTF("%s/vnuma/guest", dom_path),
                         rwperm, ARRAY_SIZE(rwperm));

 out:
    return rc;
}

/* Start of each vnode's highest range, from Xen's own table. */
static int vnode_starts(libxl__gc *gc, uint32_t domid, unsigned int nr_vnodes,
                        uint64_t **starts)
{
    uint32_t nodes = 0, ranges = 0, vcpus = 0;
    xen_vmemrange_t *range;
    unsigned int i, *distance, *to_vnode;
    int rc;

    /* Fails with ENOBUFS, and says how much is needed. */
    xc_domain_getvnuma(CTX->xch, domid, &nodes, &ranges, &vcpus,
                       NULL, NULL, NULL);
    range = libxl__calloc(gc, ranges, sizeof(*range));
    distance = libxl__calloc(gc, nodes * nodes, sizeof(*distance));
    to_vnode = libxl__calloc(gc, vcpus, sizeof(*to_vnode));
    if (!nodes || xc_domain_getvnuma(CTX->xch, domid, &nodes, &ranges, &vcpus,
                                     range, distance, to_vnode)) {
        LOGED(ERROR, domid, "cannot read the domain's vNUMA table");
        rc = ERROR_FAIL;
        goto out;
    }

    *starts = libxl__calloc(gc, nr_vnodes, sizeof(**starts));
    for (i = 0; i < ranges; i++)
        if (range[i].nid < nr_vnodes)
            (*starts)[range[i].nid] = range[i].start;
    rc = 0;

 out:
    return rc;
}

int libxl__vnode_xenstore_setup(libxl__gc *gc, uint32_t domid,
                                const libxl_domain_build_info *info)
{
    xs_transaction_t t = 0;
    uint64_t *starts, extra_kb;
    unsigned int i;
    int rc;

    if (!info->num_vnuma_nodes) {
        rc = 0;
        goto out;
    }

    rc = vnode_starts(gc, domid, info->num_vnuma_nodes, &starts);
    if (rc) goto out;
    /* The limit that libxl__build_pre() has set. */
    rc = libxl__arch_extra_memory(gc, info, &extra_kb);
    if (rc) goto out;

    for (;;) {
        rc = libxl__xs_transaction_start(gc, &t);
        if (rc) goto out;

        rc = make_dirs(gc, t, domid);
        if (rc) goto out;

        for (i = 0; i < info->num_vnuma_nodes; i++) {
            rc = setup_vnode(gc, t, domid, info, i, starts[i]);
            if (rc) goto out;
        }

        rc = libxl__xs_printf(gc, t,
                              GCSPRINTF("/local/domain/%"PRIu32"/vnuma/nodes",
                                        domid),
                              "%d", info->num_vnuma_nodes);
        if (rc) goto out;
        if (libxl__vnode_nr_elastic(info)) {
            rc = libxl__xs_printf(gc, t,
                                  libxl__vnode_home_limit_path(gc, domid),
                                  "%"PRIu64, info->target_memkb + extra_kb);
            if (rc) goto out;
        }

        rc = libxl__xs_transaction_commit(gc, &t);
        if (!rc) break;
        if (rc < 0) goto out;
    }

 out:
    if (rc)
        LOGD(ERROR, domid, "cannot write the keys of the domain's vnodes");
    libxl__xs_transaction_abort(gc, &t);
    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
