/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes of a running domain: the books of the operations.
 *
 * What may begin, what is recorded and announced, and how an operation is
 * closed: by who waits for it, or by whoever comes after a caller that died.
 * Nothing here waits.
 *
 * Locking: callers hold the domain's userdata lock and its operation lock.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include <sys/file.h>

#include "libxl_internal.h"
#include "libxl_vnode_layout.h"

/*---------- who works on the domain's vnodes ----------*/

int libxl__vnode_lock(libxl__gc *gc, uint32_t domid, libxl__carefd **lock)
{
    libxl__carefd *opened = NULL;
    const char *path;
    int fd, r, rc;

    *lock = NULL;
    /*
     * No look whether the file is still the one of that name, as
     * libxl__lock_file() does it: only a domain's end removes it, with the
     * userdata lock held, and so do we hold that.
     */
    path = libxl__userdata_path(gc, domid, "vnode-op", "l");
    if (!path) {
        rc = ERROR_FAIL;
        goto out;
    }

    libxl__carefd_begin();
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    opened = libxl__carefd_opened(CTX, fd);
    if (fd < 0) {
        LOGED(ERROR, domid, "cannot open %s", path);
        rc = ERROR_FAIL;
        goto out;
    }

    do {
        r = flock(fd, LOCK_EX | LOCK_NB);
    } while (r && errno == EINTR);
    if (r && errno == EWOULDBLOCK) {
        rc = ERROR_LOCK_FAIL;
        goto out;
    }
    if (r) {
        LOGED(ERROR, domid, "cannot lock %s", path);
        rc = ERROR_FAIL;
        goto out;
    }
    *lock = opened;
    opened = NULL;
    rc = 0;

 out:
    libxl__vnode_unlock(&opened);
    return rc;
}

/*
 * Unlocked before it is closed: a child that libxl has forked for something
 * else has the same open file, and would hold the lock on.
 */
void libxl__vnode_unlock(libxl__carefd **lock)
{
    if (*lock) {
        flock(libxl__carefd_fd(*lock), LOCK_UN);
        libxl__carefd_close(*lock);
    }
    *lock = NULL;
}

/*---------- records and announcements ----------*/

static char *format_record(libxl__gc *gc, const struct vnode_op_record *rec)
{
    return vnode_format_op(rec, libxl__zalloc(gc, VNODE_OP_TEXT),
                           VNODE_OP_TEXT);
}

int libxl__vnode_write_record(libxl__gc *gc, uint32_t domid,
                              const struct vnode_op_record *rec)
{
    return libxl__xs_write_checked(gc, XBT_NULL,
                                   libxl__vnode_op_path(gc, domid),
                                   format_record(gc, rec));
}

int libxl__vnode_drop_record(libxl__gc *gc, uint32_t domid)
{
    return libxl__xs_rm_checked(gc, XBT_NULL, libxl__vnode_op_path(gc, domid));
}

/* The generation comes last: the guest watches it. */
static void add_announcement(libxl__gc *gc, libxl__vnode_batch *batch,
                             uint32_t domid, const struct vnode_op_record *rec,
                             int grace_ms)
{
    const char *grace = libxl__vnode_path(gc, domid, rec->vnode, "grace-ms");

    libxl__vnode_write(gc, batch, libxl__vnode_op_path(gc, domid),
                       format_record(gc, rec));
    libxl__vnode_write(gc, batch,
                       libxl__vnode_path(gc, domid, rec->vnode, "target-kb"),
                       GCSPRINTF("%"PRIu64, rec->new_kb));
    if (grace_ms < 0)
        libxl__vnode_rm(gc, batch, grace);
    else
        libxl__vnode_write(gc, batch, grace, GCSPRINTF("%d", grace_ms));
    libxl__vnode_write(gc, batch, GCSPRINTF("/local/domain/%"PRIu32
                                            "/vnuma/generation", domid),
                       GCSPRINTF("%"PRIu64, rec->generation));
}

int libxl__vnode_announce(libxl__gc *gc, libxl__vnode_domain *vd,
                          const struct vnode_op_record *rec, int grace_ms)
{
    xs_transaction_t t = 0;
    int rc;

    for (;;) {
        libxl__vnode_batch batch = { 0 };

        rc = libxl__xs_transaction_start(gc, &t);
        if (rc) goto out;
        add_announcement(gc, &batch, vd->domid, rec, grace_ms);
        rc = libxl__vnode_send(gc, &batch, t);
        if (rc) goto out;
        rc = libxl__xs_transaction_commit(gc, &t);
        if (!rc) break;
        if (rc < 0) goto out;
    }

    vd->generation = rec->generation;
    vd->node[rec->vnode].target_kb = rec->new_kb;
    vd->op = *rec;

 out:
    if (rc)
        LOGD(ERROR, vd->domid, "vnode %u: cannot announce the %s", rec->vnode,
             libxl__vnode_op_name(rec));
    libxl__xs_transaction_abort(gc, &t);
    return rc;
}

/* Old and new size are the same: a way back has none of its own. */
struct vnode_op_record libxl__vnode_inverse(const libxl__vnode_domain *vd,
                                            const struct vnode_op_record *rec,
                                            unsigned int pid)
{
    return (struct vnode_op_record) {
        .generation = vd->generation + 1,
        .kind = !rec->old_kb ? VNODE_OP_DETACH
                : !rec->new_kb ? VNODE_OP_ATTACH : VNODE_OP_SET,
        .vnode = rec->vnode,
        .old_kb = rec->old_kb,
        .new_kb = rec->old_kb,
        .pid = pid,
        .rest_kb = rec->rest_kb,
        .wanted_kb = rec->new_kb,
    };
}

/*---------- settling ----------*/

static void gather_facts(libxl__gc *gc, const libxl__vnode_domain *vd,
                         bool attended, struct vnode_facts *f)
{
    struct vnode_node_facts *node = libxl__calloc(gc, vd->nr_vnodes,
                                                  sizeof(*node));
    unsigned int i;

    for (i = 0; i < vd->nr_vnodes; i++) {
        const libxl__vnode *v = &vd->node[i];

        node[i] = (struct vnode_node_facts) {
            .elastic = v->elastic,
            .target_kb = v->target_kb,
            .allowed_kb = v->allowed_kb,
            .spans = v->host,
            .there_kb = v->there_kb,
            .pool_kb = v->pool_kb,
            .told_kb = libxl__vnode_told_kb(vd, i),
            .remote_vcpus = v->remote_vcpus,
            .placed = v->placed,
            .told_where = libxl__vnode_told_where(vd, i),
            .pnode = v->pnode,
            .cpus = v->availability,
            .unbound = v->unbound,
            .report = &v->report,
        };
    }
    *f = (struct vnode_facts) {
        .nr_vnodes = vd->nr_vnodes,
        .node = node,
        .generation = vd->generation,
        .done = vd->done,
        .driver = vd->driver,
        .home_kb = vd->home_kb,
        .limit_kb = vd->limit_kb,
        .op = vd->op,
        .attended = attended,
    };
}

static int write_allowance(libxl__gc *gc, libxl__vnode_domain *vd,
                           unsigned int nr, uint64_t kb)
{
    int rc;

    rc = libxl__xs_printf(gc, XBT_NULL,
                          libxl__vnode_libxl_path(gc, vd->domid, nr,
                                                  "allowed-kb"),
                          "%"PRIu64, kb);
    if (rc) goto out;
    vd->node[nr].allowed_kb = kb;

 out:
    return rc;
}

static int write_there(libxl__gc *gc, libxl__vnode_domain *vd,
                       unsigned int nr, uint64_t kb)
{
    int rc;

    rc = libxl__xs_printf(gc, XBT_NULL,
                          libxl__vnode_libxl_path(gc, vd->domid, nr,
                                                  "there-kb"),
                          "%"PRIu64, kb);
    if (rc) goto out;
    vd->node[nr].there_kb = kb;

 out:
    return rc;
}

static int write_placed(libxl__gc *gc, libxl__vnode_domain *vd,
                        unsigned int nr, bool placed)
{
    int rc;

    rc = libxl__xs_printf(gc, XBT_NULL,
                          libxl__vnode_libxl_path(gc, vd->domid, nr, "placed"),
                          "%d", placed);
    /* Also after a failure: only the reply may have been lost. */
    if (!rc || placed)
        vd->node[nr].placed = placed;

    return rc;
}

static int write_pnode(libxl__gc *gc, libxl__vnode_domain *vd,
                       unsigned int nr, int pnode)
{
    const char *path = libxl__vnode_libxl_path(gc, vd->domid, nr, "pnode");
    int rc;

    rc = pnode < 0 ? libxl__xs_rm_checked(gc, XBT_NULL, path)
                   : libxl__xs_printf(gc, XBT_NULL, path, "%d", pnode);
    if (rc) goto out;
    vd->node[nr].pnode = pnode;

 out:
    return rc;
}

static int take_back(libxl__gc *gc, libxl__vnode_domain *vd)
{
    const struct vnode_op_record rec = vd->op;
    struct vnode_op_record undo = libxl__vnode_inverse(vd, &rec, 0);
    const char *error = vd->node[rec.vnode].report.error;

    LOGD(WARN, vd->domid, "vnode %u: the guest could not %s it: %s; taken back",
         rec.vnode, libxl__vnode_op_name(&rec),
         error[0] ? error : "it gives no reason");

    return libxl__vnode_announce(gc, vd, &undo, -1);
}

static int forget(libxl__gc *gc, libxl__vnode_domain *vd)
{
    int rc;

    rc = libxl__vnode_drop_record(gc, vd->domid);
    if (rc) goto out;
    vd->op.kind = VNODE_OP_NONE;

 out:
    return rc;
}

static int do_step(libxl__gc *gc, libxl__vnode_domain *vd,
                   const struct vnode_step *s)
{
    switch (s->kind) {
    case VNODE_STEP_PNODE:
        return write_pnode(gc, vd, s->vnode, s->pnode);
    case VNODE_STEP_TABLE:
        return libxl__vnode_set_table(gc, vd, s->vnode, s->pnode);
    case VNODE_STEP_AFFINITY:
        return libxl__vnode_set_affinity(gc, vd, s->vnode, s->pnode, s->loose);
    case VNODE_STEP_ALLOWED:
        return write_allowance(gc, vd, s->vnode, s->kb);
    case VNODE_STEP_LIMIT:
        return libxl__vnode_set_limit(gc, vd, s->kb, s->count, s->most_kb);
    case VNODE_STEP_THERE:
        return write_there(gc, vd, s->vnode, s->kb);
    case VNODE_STEP_DSMD:
        return libxl__vnode_tell_step(gc, vd, s->vnode, s->kb);
    case VNODE_STEP_PLACED:
        return write_placed(gc, vd, s->vnode, s->placed);
    case VNODE_STEP_PLACE:
        return libxl__vnode_place_step(gc, vd, s->vnode, s->placed);
    case VNODE_STEP_CPUS:
        return libxl__vnode_set_cpus(gc, vd, s->vnode, s->online);
    case VNODE_STEP_TAKE_BACK:
        return take_back(gc, vd);
    case VNODE_STEP_FORGET:
        return forget(gc, vd);
    }

    return ERROR_FAIL;
}

int libxl__vnode_bring(libxl__gc *gc, libxl__vnode_domain *vd,
                       const struct vnode_wish *wish, bool attended)
{
    struct vnode_step step[VNODE_STEPS_MAX];
    struct vnode_facts facts;
    unsigned int i, nr;
    int rc = 0;

    if (!wish)
        libxl__vnode_find_unbound(gc, vd);
    gather_facts(gc, vd, attended, &facts);
    nr = vnode_missing_steps(&facts, wish, step);
    for (i = 0; i < nr; i++) {
        rc = do_step(gc, vd, &step[i]);
        if (rc == ERROR_NOT_READY) goto out;    /* dsmd is to be told */
        if (rc) {
            LOGD(WARN, vd->domid, "vnode %u: the host's side is not in order "
                 "yet, step \"%s\" failed; the next vnode command goes on from "
                 "there", step[i].vnode, vnode_step_name(step[i].kind));
            goto out;
        }
    }

 out:
    return rc;
}

bool libxl__vnode_is_settled(libxl__gc *gc, libxl__vnode_domain *vd)
{
    struct vnode_step step[VNODE_STEPS_MAX];
    struct vnode_facts facts;

    libxl__vnode_find_unbound(gc, vd);
    gather_facts(gc, vd, false, &facts);

    return !vnode_missing_steps(&facts, NULL, step);
}

/*---------- requests: what is refused ----------*/

/* Nothing of it is there, and nothing is to be. */
static bool is_absent(const libxl__vnode *v)
{
    return !v->target_kb && !v->allowed_kb && !v->report.fault[0] &&
           (v->report.state == VNODE_KEY_ABSENT ||
            v->report.state == VNODE_KEY_OFFLINE);
}

/*
 * Does a request without a number mean the vnode of a record?  It repeats the
 * operation that has not ended, or reverses it; also if the guest has finished
 * in the meantime what a caller that died had waited for.
 */
static bool means_record(const libxl__vnode_domain *vd,
                         const struct vnode_op_record *found)
{
    return found->kind != VNODE_OP_NONE && found->kind != VNODE_OP_SET &&
           (found->pid || vd->op.kind != VNODE_OP_NONE);
}

/* Which vnode, if the request leaves it open. */
static int choose_vnode(libxl__gc *gc, const libxl__vnode_domain *vd,
                        enum vnode_op_kind kind,
                        const struct vnode_op_record *found, unsigned int *nr)
{
    int i, best = -1, rc;

    for (i = 0; i < vd->nr_vnodes; i++) {
        const libxl__vnode *v = &vd->node[i];

        if (!v->elastic)
            continue;
        if (kind == VNODE_OP_ATTACH && !v->target_kb && best < 0)
            best = i;
        if (kind == VNODE_OP_DETACH && !is_absent(v))
            best = i;
    }
    if (means_record(vd, found))
        best = found->vnode;
    if (best < 0) {
        LOGD(ERROR, vd->domid, "there is no vnode to %s: %s",
             vnode_op_kind_name(kind),
             kind == VNODE_OP_ATTACH ? "all elastic vnodes are attached"
                                     : "no elastic vnode is attached");
        rc = ERROR_VNODE_REFUSED;
        goto out;
    }
    *nr = best;
    rc = 0;

 out:
    return rc;
}

static int find_vnode(libxl__gc *gc, const libxl__vnode_domain *vd,
                      const libxl_vnode_request *req, enum vnode_op_kind kind,
                      const struct vnode_op_record *found, unsigned int *nr)
{
    int rc = ERROR_VNODE_REFUSED;

    if (!vd->nr_vnodes) {
        LOGD(ERROR, vd->domid, "the domain has no virtual NUMA (vnuma=)");
        goto out;
    }
    if (req->vnode < 0 && kind != VNODE_OP_SET) {
        rc = choose_vnode(gc, vd, kind, found, nr);
        goto out;
    }
    if (req->vnode < 0 || req->vnode >= vd->nr_vnodes) {
        LOGD(ERROR, vd->domid, "vnode %d does not exist: the domain has vnodes "
             "0-%"PRIu32, req->vnode, vd->nr_vnodes - 1);
        goto out;
    }
    if (!vd->node[req->vnode].elastic) {
        LOGD(ERROR, vd->domid, "vnode %d is a home node: it is always there "
             "(only elastic vnodes come and go)", req->vnode);
        goto out;
    }
    *nr = req->vnode;
    rc = 0;

 out:
    return rc;
}

/* May a new operation on vnode @nr begin, given the one on the books? */
static int check_op_free(libxl__gc *gc, const libxl__vnode_domain *vd,
                         unsigned int nr)
{
    const struct vnode_op_record *rec = &vd->op;
    int rc = 0;

    if (rec->kind != VNODE_OP_NONE && rec->vnode != nr) {
        LOGD(ERROR, vd->domid, "vnode %u: the %s of vnode %u has not ended; "
             "repeat it to finish it, or do the opposite to undo it; if the "
             "guest never answers, only the domain's end ends it", nr,
             libxl__vnode_op_name(rec), rec->vnode);
        rc = ERROR_VNODE_REFUSED;
    }

    return rc;
}

/*
 * The size that an attach without one means.  To repeat an attach is to go on
 * with it, also while it is taken back, and the opposite of a detach gives back
 * what that took.
 */
static uint64_t attach_kb(const libxl__vnode *v,
                          const struct vnode_op_record *found,
                          unsigned int vnode)
{
    uint64_t kb = 0;

    if (found->kind == VNODE_OP_ATTACH && found->vnode == vnode)
        kb = found->new_kb;
    else if (found->kind == VNODE_OP_DETACH && found->vnode == vnode)
        kb = found->old_kb ? found->old_kb : found->wanted_kb;

    return kb ? kb : v->max_kb;
}

static int check_attach(libxl__gc *gc, const libxl__vnode_domain *vd,
                        const struct vnode_op_record *found,
                        const libxl__vnode *v, struct vnode_op_record *rec)
{
    int rc = 0;

    if (v->target_kb && vd->op.kind != VNODE_OP_ATTACH) {
        LOGD(ERROR, vd->domid, "vnode %u is attached already, with %"PRIu64
             " KiB (vnode-set resizes it)", rec->vnode, v->target_kb);
        rc = ERROR_VNODE_REFUSED;
        goto out;
    }
    if (!rec->new_kb)
        rec->new_kb = attach_kb(v, found, rec->vnode);

 out:
    return rc;
}

static int check_detach(libxl__gc *gc, const libxl__vnode_domain *vd,
                        const libxl__vnode *v, struct vnode_op_record *rec)
{
    int rc;

    if (is_absent(v) && vd->op.kind == VNODE_OP_NONE) {
        LOGD(ERROR, vd->domid, "vnode %u is absent already", rec->vnode);
        rc = ERROR_VNODE_REFUSED;
        goto out;
    }
    rec->new_kb = 0;
    rc = 0;

 out:
    return rc;
}

static int check_set(libxl__gc *gc, const libxl__vnode_domain *vd,
                     const libxl__vnode *v, struct vnode_op_record *rec)
{
    int rc;

    if (!v->target_kb) {
        LOGD(ERROR, vd->domid, "vnode %u is absent: attach it, with the size "
             "that it shall have", rec->vnode);
        rc = ERROR_VNODE_REFUSED;
        goto out;
    }
    if (!rec->new_kb) {
        LOGD(ERROR, vd->domid, "vnode %u: a size of 0 is a detach", rec->vnode);
        rc = ERROR_INVAL;
        goto out;
    }
    rc = 0;

 out:
    return rc;
}

/* Fill in @rec from the request and the domain's state, or refuse. */
int libxl__vnode_check_request(libxl__gc *gc, const libxl__vnode_domain *vd,
                               const libxl_vnode_request *req,
                               const struct vnode_op_record *found,
                               struct vnode_op_record *rec)
{
    const libxl__vnode *v;
    int rc;

    rc = find_vnode(gc, vd, req, rec->kind, found, &rec->vnode);
    if (rc) goto out;
    rc = check_op_free(gc, vd, rec->vnode);
    if (rc) goto out;

    v = &vd->node[rec->vnode];
    rec->generation = vd->generation + 1;
    /* Repeated or reversed: what it all began with stays the way back. */
    rec->old_kb = vd->op.kind == rec->kind ? vd->op.old_kb : v->target_kb;
    rec->new_kb = req->memkb;
    rec->pid = libxl_defbool_val(req->wait) ? getpid() : 0;
    rec->rest_kb = vd->op.kind != VNODE_OP_NONE ? vd->op.rest_kb
                   : vd->total_kb > v->allowed_kb
                   ? vd->total_kb - v->allowed_kb : 0;

    rc = rec->kind == VNODE_OP_ATTACH ? check_attach(gc, vd, found, v, rec)
         : rec->kind == VNODE_OP_DETACH ? check_detach(gc, vd, v, rec)
         : check_set(gc, vd, v, rec);
    if (rc) goto out;

    if (!vnode_target_valid(rec->new_kb, v->max_kb)) {
        LOGD(ERROR, vd->domid, "vnode %u cannot have %"PRIu64" KiB: it must be "
             "a multiple of %llu KiB and at most %"PRIu64" KiB", rec->vnode,
             rec->new_kb, VNODE_TARGET_KB, v->max_kb);
        rc = ERROR_INVAL;
    }

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
