/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes of a running domain: the host's side of an operation.
 *
 * Memory limit, vNUMA table, CPU availability.  Each function can
 * be repeated: after a crash in between, the next caller does it again.  Which
 * are to be called, and in which order, libxl_vnode_settle.h tells.
 *
 * The limit is a sum: what the operator has set for the home nodes
 * (home-limit-kb), and what each elastic vnode is allowed (allowed-kb).
 *
 * Locking: callers hold the domain's userdata lock.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

/*
 * The count comes after the limit: what has left by then cannot come back, and
 * what has not left is still counted.
 */
int libxl__vnode_set_limit(libxl__gc *gc, libxl__vnode_domain *vd,
                           uint64_t limit_kb, bool count, uint64_t most_kb)
{
    xc_domaininfo_t info;
    int rc;

    if (xc_domain_setmaxmem(CTX->xch, vd->domid, limit_kb) < 0) {
        LOGED(ERROR, vd->domid, "cannot set the memory limit to %"PRIu64" KiB",
              limit_kb);
        rc = ERROR_FAIL;
        goto out;
    }
    vd->limit_kb = limit_kb;
    rc = 0;
    if (!count) goto out;

    if (xc_domain_getinfo_single(CTX->xch, vd->domid, &info) < 0) {
        LOGED(ERROR, vd->domid, "cannot count the domain's memory");
        rc = ERROR_FAIL;
        goto out;
    }
    vd->total_kb = info.tot_pages << (XC_PAGE_SHIFT - 10);
    if (vd->total_kb <= most_kb) goto out;

    rc = ERROR_FAIL;
    LOGD(ERROR, vd->domid, "the guest says that memory of its vnodes has left, "
         "but Xen counts %"PRIu64" KiB for the domain, %"PRIu64" KiB more than "
         "it may have then; until it has left, the domain gets no more",
         vd->total_kb, vd->total_kb - most_kb);

 out:
    return rc;
}

/*
 * Xen uses its table for whatever the guest populates, so that an absent
 * vnode must not lead to a pnode that the guest does not have: it leads to
 * the one of vnode 0.
 */
int libxl__vnode_set_table(libxl__gc *gc, libxl__vnode_domain *vd,
                           unsigned int nr, int pnode)
{
    unsigned int i, *to_pnode;
    int home = vd->node[0].pnode < 0 ? 0 : vd->node[0].pnode;
    int rc = 0;

    vd->node[nr].table_pnode = pnode;
    to_pnode = libxl__calloc(gc, vd->nr_vnodes, sizeof(*to_pnode));
    for (i = 0; i < vd->nr_vnodes; i++)
        to_pnode[i] = vd->node[i].table_pnode < 0 ? home
                                                  : vd->node[i].table_pnode;

    if (xc_domain_setvnuma(CTX->xch, vd->domid, vd->nr_vnodes,
                           vd->nr_vmemranges, vd->nr_vcpus, vd->vmemrange,
                           vd->vdistance, vd->vcpu_to_vnode, to_pnode) < 0) {
        LOGED(ERROR, vd->domid, "cannot tell Xen which pnodes back the "
              "domain's vnodes");
        rc = ERROR_FAIL;
    }

    return rc;
}

int libxl__vnode_set_cpus(libxl__gc *gc, libxl__vnode_domain *vd,
                          unsigned int nr, bool online)
{
    xs_transaction_t t = 0;
    unsigned int v;
    int rc;

    for (;;) {
        libxl__vnode_batch batch = { 0 };

        rc = libxl__xs_transaction_start(gc, &t);
        if (rc) goto out;

        for (v = 0; v < vd->nr_vcpus; v++)
            if (libxl__vnode_has_vcpu(vd->node[nr].cpus, v))
                libxl__vnode_write(gc, &batch,
                                   libxl__vnode_cpu_path(gc, vd->domid, v),
                                   online ? "online" : "offline");
        rc = libxl__vnode_send(gc, &batch, t);
        if (rc) goto out;

        rc = libxl__xs_transaction_commit(gc, &t);
        if (!rc) break;
        if (rc < 0) goto out;
    }
    vd->node[nr].availability = online ? VNODE_CPUS_ONLINE : VNODE_CPUS_OFFLINE;

 out:
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
