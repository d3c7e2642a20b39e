/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes of a running domain: the books of the operations.
 *
 * What may begin, what is recorded and announced, and how an operation is
 * closed: by who waits for it, or by whoever comes after a caller that died.
 * Nothing here waits.
 *
 * Locking: callers hold the domain's userdata lock, libxl_vnode_settle()
 * takes it.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include <signal.h>

#include "libxl_internal.h"
#include "libxl_vnode_layout.h"

bool libxl__vnode_op_attended(const struct vnode_op_record *rec)
{
    return rec->pid && (!kill(rec->pid, 0) || errno == EPERM);
}

/*---------- records and announcements ----------*/

int libxl__vnode_write_record(libxl__gc *gc, xs_transaction_t t, uint32_t domid,
                        const struct vnode_op_record *rec)
{
    char buf[96];

    return libxl__xs_write_checked(gc, t, libxl__vnode_op_path(gc, domid),
                                   vnode_format_op(rec, buf, sizeof(buf)));
}

int libxl__vnode_drop_record(libxl__gc *gc, uint32_t domid)
{
    return libxl__xs_rm_checked(gc, XBT_NULL, libxl__vnode_op_path(gc, domid));
}

/*
 * Tell the guest: record, target, grace and, last, the generation, in one
 * transaction.  @grace_ms < 0: the guest's default.
 */
int libxl__vnode_announce(libxl__gc *gc, libxl__vnode_domain *vd,
                    const struct vnode_op_record *rec, int grace_ms)
{
    const char *grace = libxl__vnode_path(gc, vd->domid, rec->vnode,
                                          "grace-ms");
    xs_transaction_t t = 0;
    int rc;

    for (;;) {
        rc = libxl__xs_transaction_start(gc, &t);
        if (rc) goto out;

        rc = libxl__vnode_write_record(gc, t, vd->domid, rec);
        if (rc) goto out;
        rc = libxl__xs_printf(gc, t,
                              libxl__vnode_path(gc, vd->domid, rec->vnode,
                                                "target-kb"),
                              "%"PRIu64, rec->new_kb);
        if (rc) goto out;
        rc = grace_ms < 0 ? libxl__xs_rm_checked(gc, t, grace)
                          : libxl__xs_printf(gc, t, grace, "%d", grace_ms);
        if (rc) goto out;
        rc = libxl__xs_printf(gc, t,
                              GCSPRINTF("/local/domain/%"PRIu32
                                        "/vnuma/generation", vd->domid),
                              "%"PRIu64, rec->generation);
        if (rc) goto out;

        rc = libxl__xs_transaction_commit(gc, &t);
        if (!rc) break;
        if (rc < 0) goto out;
    }

    vd->generation = rec->generation;
    vd->node[rec->vnode].target_kb = rec->new_kb;
    vd->op = *rec;

    return 0;

 out:
    libxl__xs_transaction_abort(gc, &t);
    LOGD(ERROR, vd->domid, "vnode %u: cannot announce the %s", rec->vnode,
         libxl__vnode_op_name(rec));
    return rc;
}

/* The operation that takes @rec back. */
struct vnode_op_record libxl__vnode_inverse(const libxl__vnode_domain *vd,
                                      const struct vnode_op_record *rec,
                                      unsigned int pid)
{
    return (struct vnode_op_record) {
        .generation = vd->generation + 1,
        .kind = !rec->old_kb ? VNODE_OP_DETACH
                : !rec->new_kb ? VNODE_OP_ATTACH : VNODE_OP_SET,
        .vnode = rec->vnode,
        .old_kb = rec->new_kb,
        .new_kb = rec->old_kb,
        .pid = pid,
    };
}

/*---------- settling ----------*/

static int settle_all(libxl__gc *gc, libxl__vnode_domain *vd)
{
    unsigned int i;
    int rc, result = 0;

    for (i = 0; i < vd->nr_vnodes; i++) {
        rc = libxl__vnode_settle_host(gc, vd, i);
        if (rc)
            result = rc;
    }

    return result;
}

/* End the operation on the books. */
int libxl__vnode_close_op(libxl__gc *gc, libxl__vnode_domain *vd)
{
    int rc = settle_all(gc, vd), rc2;

    rc2 = libxl__vnode_drop_record(gc, vd->domid);
    vd->op.kind = VNODE_OP_NONE;

    return rc ? rc : rc2;
}

/*
 * An operation that nobody waits for: close it if the guest has finished it,
 * or if the guest has never been told.  What failed is taken back.
 */
static int settle_orphan(libxl__gc *gc, libxl__vnode_domain *vd)
{
    const struct vnode_op_record rec = vd->op;
    struct vnode_op_record undo;
    enum vnode_outcome outcome;

    if (rec.kind == VNODE_OP_NONE || libxl__vnode_op_attended(&rec))
        return 0;
    if (rec.generation > vd->generation)
        return libxl__vnode_close_op(gc, vd);
    if (vd->done < rec.generation)
        return 0;

    outcome = vnode_op_outcome(rec.kind, &vd->node[rec.vnode].report);
    if (outcome != VNODE_OUTCOME_FAILED || rec.old_kb == rec.new_kb)
        return libxl__vnode_close_op(gc, vd);

    LOGD(WARN, vd->domid, "vnode %u: the guest could not %s it: %s; taken back",
         rec.vnode, libxl__vnode_op_name(&rec),
         vd->node[rec.vnode].report.error);
    undo = libxl__vnode_inverse(vd, &rec, 0);

    return libxl__vnode_announce(gc, vd, &undo, -1);
}

/* Not waited for and not asked for: a failure is logged, no more. */
void libxl__vnode_settle_quietly(libxl__gc *gc, libxl__vnode_domain *vd)
{
    if (settle_orphan(gc, vd))
        LOGD(WARN, vd->domid, "the last operation on vnode %u could not be "
             "settled", vd->op.vnode);
}

int libxl_vnode_settle(libxl_ctx *ctx, uint32_t domid)
{
    GC_INIT(ctx);
    libxl__vnode_domain vd;
    libxl__flock *lock = NULL;
    int rc;

    CTX_LOCK;

    rc = libxl__vnode_load(gc, domid, &vd);
    if (rc || vd.op.kind == VNODE_OP_NONE)
        goto out;

    lock = libxl__lock_domain_userdata(gc, domid);
    if (!lock) {
        rc = ERROR_LOCK_FAIL;
        goto out;
    }
    rc = libxl__vnode_load(gc, domid, &vd);
    if (rc) goto out;
    rc = settle_orphan(gc, &vd);

 out:
    if (lock) libxl__unlock_file(lock);
    CTX_UNLOCK;
    GC_FREE;
    return rc;
}

/*---------- requests: what is refused ----------*/

/* Which vnode, if the request leaves it open. */
static int choose_vnode(libxl__gc *gc, const libxl__vnode_domain *vd,
                        enum vnode_op_kind kind, unsigned int *nr)
{
    int i, best = -1;

    for (i = 0; i < vd->nr_vnodes; i++) {
        if (!vd->node[i].elastic)
            continue;
        if (kind == VNODE_OP_ATTACH && !vd->node[i].target_kb && best < 0)
            best = i;
        if (kind == VNODE_OP_DETACH && vd->node[i].target_kb)
            best = i;
    }
    if (best < 0) {
        LOGD(ERROR, vd->domid, "there is no vnode to %s: %s",
             vnode_op_kind_name(kind),
             kind == VNODE_OP_ATTACH ? "all elastic vnodes are attached"
                                     : "no elastic vnode is attached");
        return ERROR_VNODE_REFUSED;
    }
    *nr = best;

    return 0;
}

static int find_vnode(libxl__gc *gc, const libxl__vnode_domain *vd,
                      const libxl_vnode_request *req, enum vnode_op_kind kind,
                      unsigned int *nr)
{
    if (!vd->nr_vnodes) {
        LOGD(ERROR, vd->domid, "the domain has no virtual NUMA (vnuma=)");
        return ERROR_VNODE_REFUSED;
    }
    if (req->vnode < 0 && kind != VNODE_OP_SET)
        return choose_vnode(gc, vd, kind, nr);
    if (req->vnode < 0 || req->vnode >= vd->nr_vnodes) {
        LOGD(ERROR, vd->domid, "vnode %d does not exist: the domain has vnodes "
             "0-%"PRIu32, req->vnode, vd->nr_vnodes - 1);
        return ERROR_VNODE_REFUSED;
    }
    if (!vd->node[req->vnode].elastic) {
        LOGD(ERROR, vd->domid, "vnode %d is a home node: it is always there "
             "(only elastic vnodes come and go)", req->vnode);
        return ERROR_VNODE_REFUSED;
    }
    *nr = req->vnode;

    return 0;
}

/* May a new operation on vnode @nr begin, given the one on the books? */
static int check_op_free(libxl__gc *gc, const libxl__vnode_domain *vd,
                         unsigned int nr)
{
    const struct vnode_op_record *rec = &vd->op;

    if (rec->kind == VNODE_OP_NONE)
        return 0;
    if (libxl__vnode_op_attended(rec)) {
        LOGD(ERROR, vd->domid, "vnode %u: process %u is busy with the %s of "
             "vnode %u", nr, rec->pid, libxl__vnode_op_name(rec), rec->vnode);
        return ERROR_VNODE_REFUSED;
    }
    if (rec->vnode != nr) {
        LOGD(ERROR, vd->domid, "vnode %u: the %s of vnode %u has not ended; "
             "repeat it to finish it, or do the opposite to undo it", nr,
             libxl__vnode_op_name(rec), rec->vnode);
        return ERROR_VNODE_REFUSED;
    }

    return 0;
}

static int check_attach(libxl__gc *gc, const libxl__vnode_domain *vd,
                        const libxl__vnode *v, struct vnode_op_record *rec)
{
    if (v->target_kb && vd->op.kind == VNODE_OP_NONE) {
        LOGD(ERROR, vd->domid, "vnode %u is attached already, with %"PRIu64
             " KiB (vnode-set resizes it)", rec->vnode, v->target_kb);
        return ERROR_VNODE_REFUSED;
    }
    if (!rec->new_kb)
        rec->new_kb = v->max_kb;

    return 0;
}

static int check_detach(libxl__gc *gc, const libxl__vnode_domain *vd,
                        const libxl__vnode *v, struct vnode_op_record *rec)
{
    bool gone = v->report.state == VNODE_KEY_ABSENT ||
                v->report.state == VNODE_KEY_OFFLINE;

    if (!v->target_kb && gone && !v->report.fault[0] && !v->allowed_kb &&
        vd->op.kind == VNODE_OP_NONE) {
        LOGD(ERROR, vd->domid, "vnode %u is absent already", rec->vnode);
        return ERROR_VNODE_REFUSED;
    }
    rec->new_kb = 0;

    return 0;
}

static int check_set(libxl__gc *gc, const libxl__vnode_domain *vd,
                     const libxl__vnode *v, struct vnode_op_record *rec)
{
    if (!v->target_kb) {
        LOGD(ERROR, vd->domid, "vnode %u is absent: attach it, with the size "
             "that it shall have", rec->vnode);
        return ERROR_VNODE_REFUSED;
    }
    if (!rec->new_kb) {
        LOGD(ERROR, vd->domid, "vnode %u: a size of 0 is a detach", rec->vnode);
        return ERROR_INVAL;
    }

    return 0;
}

/* Fill in @rec from the request and the domain's state, or refuse. */
int libxl__vnode_check_request(libxl__gc *gc, const libxl__vnode_domain *vd,
                         const libxl_vnode_request *req,
                         struct vnode_op_record *rec)
{
    const libxl__vnode *v;
    int rc;

    rc = find_vnode(gc, vd, req, rec->kind, &rec->vnode);
    if (rc)
        return rc;
    rc = check_op_free(gc, vd, rec->vnode);
    if (rc)
        return rc;

    v = &vd->node[rec->vnode];
    rec->generation = vd->generation + 1;
    /* Repeated or reversed: what it all began with stays the way back. */
    rec->old_kb = vd->op.kind == rec->kind ? vd->op.old_kb : v->target_kb;
    rec->new_kb = req->memkb;
    rec->pid = libxl_defbool_val(req->wait) ? getpid() : 0;

    rc = rec->kind == VNODE_OP_ATTACH ? check_attach(gc, vd, v, rec)
         : rec->kind == VNODE_OP_DETACH ? check_detach(gc, vd, v, rec)
         : check_set(gc, vd, v, rec);
    if (rc)
        return rc;

    if (!vnode_target_valid(rec->new_kb, v->max_kb)) {
        LOGD(ERROR, vd->domid, "vnode %u cannot have %"PRIu64" KiB: it must be "
             "a multiple of %llu KiB and at most %"PRIu64" KiB", rec->vnode,
             rec->new_kb, VNODE_TARGET_KB, v->max_kb);
        return ERROR_INVAL;
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
