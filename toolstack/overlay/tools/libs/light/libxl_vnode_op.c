/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Attach, detach and resize elastic vnodes of a running domain.
 *
 *             refused                        guest failed, time-out, abort
 *   request ----------> end       announced ------------------------> undoing
 *      |                            ^   |                                |
 *      | recorded, host prepared    |   | guest finished                 |
 *      +----------------------------+   v                                v
 *                                    settled <------------ guest finished, or
 *                                                          it has no driver
 *
 * An operation is recorded before anything changes and forgotten after
 * everything has been settled, so that whoever comes next can tell what is
 * left to do.  Undoing is an operation like any other: announced, recorded.
 * What is to be done on the host, before and after, libxl_vnode_settle.h says.
 *
 * Waiting is by watches: vnuma/guest, written by the guest, and @releaseDomain,
 * for a guest that dies.  No polling.
 *
 * Locking: the domain's userdata lock is held while the books are written,
 * never while waiting for the guest; its operation lock from before the record
 * is written until this process leaves the operation, whatever has become of
 * it.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

/*
 * What the guest has written is looked at as soon as the event loop has heard
 * all that is there, but no sooner after the look before, counted from where
 * that began, than 1 ms after the first (the watch's own event, for which
 * nobody has written anything), 2 after the second, CHECK_PAUSE_MS at most.  So
 * a guest that writes without end cannot keep this process from its time-out
 * and signals: in a pause an event costs next to nothing.
 */
#define CHECK_PAUSE_MS 10

/*
 * How long a guest may take to undo, and more for each GiB: it has shown that
 * it is slow, and the caller has waited once already.
 */
#define UNDO_TIMEOUT_MS 30000

/* More than Linux' driver takes, and its milliseconds fit into an int. */
#define TIMED_GIB_MAX 86400

/* How far it has come before the announcement; dsmd may have to be told. */
enum begin_stage {
    BEGIN_NEW,
    BEGIN_ALONE,                    /* the lock is ours */
    BEGIN_RECORDED,                 /* checked: recorded, being prepared */
    BEGIN_TAKING_BACK,              /* it has failed */
};

typedef struct {
    libxl__ao *ao;
    libxl_domid domid;
    libxl__carefd *lock;            /* operation lock */
    struct vnode_op_record rec;     /* what is announced now */
    struct vnode_op_record found;   /* what was on record at first */
    enum begin_stage stage;
    bool grows;
    struct vnode_wish wish;         /* if it grows */
    libxl__vnode_teller teller;     /* of dsmd, for a vnode on another host */
    bool settling;                  /* after it has been told, settle */
    bool leaving;                   /* dsmd thinks that the guest empties it */
    int end_rc;                     /* result once all is settled */
    libxl_vnode_request req;
    libxl_asyncprogress_how progress;
    libxl__ev_xswatch guest_watch, release_watch;
    libxl__ev_time timer;           /* time-out */
    libxl__ev_time check;           /* a look is due, or was; at first: begin */
    bool wrote;                     /* the guest, since the last look */
    int pause_ms;                   /* after that look */
    struct vnode_phases phases;
    int limit_ms;                   /* for the guest; 0: none */
    int more_ms;                    /* then, if it has a driver */
    int gib_ms;                     /* for what comes or goes, or comes back */
    bool undoing;
    int undone_rc;                  /* result once it is undone */
    uint64_t old_kb;                /* target to which an undo goes back */
    enum vnode_key_state before_state;  /* of the vnode, by the guest */
    uint64_t before_kb;
    const char *heard;              /* of the guest's errors, the last known */
    uint64_t max_kb;                /* declared size of the vnode */
    uint64_t seen_progress;
    libxl_vnode_state seen_state;
} vnode_op;

/*---------- steps that do not wait ----------*/

/* A vnode that has never been there is as absent as one that has left. */
static enum vnode_key_state comparable(enum vnode_key_state state)
{
    return state == VNODE_KEY_ABSENT ? VNODE_KEY_OFFLINE : state;
}

static void note_before(libxl__gc *gc, vnode_op *op, const libxl__vnode *v)
{
    op->heard = libxl__strdup(gc, v->report.error);
    op->old_kb = op->rec.old_kb;
    op->before_state = comparable(v->report.state);
    op->before_kb = v->report.current_kb;
    op->max_kb = v->max_kb;
}

/*
 * By what the vnode was to have.  What the guest had just then says less: it
 * may have been on its way, after a caller that died.  Of a residual, more may
 * have left.
 */
static bool is_as_before(const vnode_op *op, const struct vnode_report *r)
{
    if (r->fault[0])
        return false;
    if (op->old_kb)
        return r->state == VNODE_KEY_ONLINE && r->current_kb == op->old_kb;

    return comparable(r->state) == VNODE_KEY_OFFLINE ||
           (r->state == op->before_state && r->current_kb <= op->before_kb);
}

/* Alone on this domain, or the reason why not. */
static int take_lock(libxl__gc *gc, vnode_op *op, const libxl__vnode_domain *vd)
{
    int rc;

    rc = libxl__vnode_lock(gc, op->domid, &op->lock);
    if (rc != ERROR_LOCK_FAIL) goto out;

    rc = ERROR_VNODE_REFUSED;
    if (vd->op.kind != VNODE_OP_NONE)
        LOGD(ERROR, op->domid, "process %u is busy with the %s of vnode %u; "
             "wait for it, or end it", vd->op.pid,
             libxl__vnode_op_name(&vd->op), vd->op.vnode);
    else
        LOGD(ERROR, op->domid, "another process is busy with the domain's "
             "vnodes; wait for it, or end it");

 out:
    return rc;
}

/*
 * Settling has not struck out another vnode's share that is to fall: by Xen's
 * count its memory has not left.  A limit that rises would hide that.
 */
static int check_debts(libxl__gc *gc, const libxl__vnode_domain *vd,
                       unsigned int nr)
{
    unsigned int i;
    int rc = 0;

    for (i = 0; i < vd->nr_vnodes && !rc; i++) {
        const libxl__vnode *v = &vd->node[i];

        if (i == nr || !libxl__vnode_owes(v))
            continue;
        LOGD(ERROR, vd->domid, "vnode %u: the domain gets no more until memory "
             "of vnode %u has left that is said to have (above); detach that "
             "vnode again", nr, i);
        rc = ERROR_VNODE_REFUSED;
    }

    return rc;
}

/* What the host needs for an operation that makes its vnode larger. */
static int find_room(libxl__gc *gc, vnode_op *op, libxl__vnode_domain *vd,
                     uint64_t has_kb, struct vnode_wish *wish)
{
    const struct vnode_op_record *rec = &op->rec;
    bool spans = vd->node[rec->vnode].host;
    unsigned int pnode = -1;
    int rc;

    rc = check_debts(gc, vd, rec->vnode);
    if (rc) goto out;
    rc = spans ? libxl__vnode_check_span(gc, vd, &op->req, rec->vnode)
               : libxl__vnode_choose_pnode(gc, vd, &op->req, rec->vnode,
                                           rec->new_kb - has_kb, &pnode);
    if (rc) goto out;

    *wish = (struct vnode_wish) {
        .vnode = rec->vnode,
        .kb = rec->new_kb,
        .pnode = spans ? -1 : (int)pnode,
    };

 out:
    return rc;
}

/* Read everything; a domain without vnodes is one whose keys are gone. */
static int load(libxl__gc *gc, vnode_op *op, libxl__vnode_domain *vd)
{
    int rc;

    rc = libxl__vnode_load(gc, op->domid, vd);
    if (rc) goto out;
    vd->teller = &op->teller;
    if (!vd->nr_vnodes)
        rc = ERROR_DOMAIN_DESTROYED;

 out:
    return rc;
}

static void say_not_ended(libxl__gc *gc, const vnode_op *op)
{
    LOGD(ERROR, op->domid, "vnode %u: the %s has not ended; the next vnode "
         "command goes on from there", op->rec.vnode,
         libxl__vnode_op_name(&op->rec));
}

/*
 * It cannot be looked at (@rc).  If its record has been written, and dsmd told
 * in between, that is no failure before anything was done.
 */
static int cannot_look(libxl__gc *gc, const vnode_op *op, int rc)
{
    if (op->stage >= BEGIN_RECORDED) {
        say_not_ended(gc, op);
        rc = ERROR_VNODE_UNSETTLED;
    }

    return rc;
}

/*
 * If it fails only the reply may have been lost: then the guest has been told,
 * and nothing is to be taken back behind its back.  As long as xenstored
 * answers a failure is its word.  ERROR_VNODE_UNSETTLED: nobody knows (logged).
 */
static int announce(libxl__gc *gc, vnode_op *op, libxl__vnode_domain *vd)
{
    int rc, rc2;

    rc = libxl__vnode_announce(gc, vd, &op->rec, op->req.grace_ms);
    if (!rc) goto out;
    rc2 = load(gc, op, vd);
    if (rc2)
        rc = cannot_look(gc, op, rc2);

 out:
    return rc;
}

/*
 * Record, prepare, announce; or take back what was prepared.  A record that is
 * there already stays until the announcement: what the guest does now is by
 * that one.
 */
static int announce_prepared(libxl__gc *gc, vnode_op *op,
                             libxl__vnode_domain *vd)
{
    int rc = 0;

    if (op->stage == BEGIN_TAKING_BACK) goto back;

    if (vd->op.kind == VNODE_OP_NONE) {
        rc = libxl__vnode_write_record(gc, op->domid, &op->rec);
        /* Also after a failure: only the reply may have been lost. */
        vd->op = op->rec;
        if (rc) goto fail;
    }
    if (op->grows) {
        rc = libxl__vnode_bring(gc, vd, &op->wish, true);
        if (rc == ERROR_NOT_READY) goto out;
        if (rc) goto fail;
    } else if (vd->node[op->rec.vnode].host && !op->leaving) {
        /* The pages that the guest is to move can come by the dozen. */
        op->leaving = true;
        libxl__vnode_leaving(vd, op->rec.vnode, op->rec.new_kb);
        rc = ERROR_NOT_READY;
        goto out;
    }
    if (op->teller.rc) {
        rc = op->teller.rc;         /* interrupted */
        op->teller.rc = 0;
        goto fail;
    }
    rc = announce(gc, op, vd);
    if (!rc || rc == ERROR_VNODE_UNSETTLED) goto out;

 fail:
    op->end_rc = rc;
    op->stage = BEGIN_TAKING_BACK;
 back:
    rc = libxl__vnode_bring(gc, vd, NULL, true);
    if (rc != ERROR_NOT_READY)
        rc = rc ? ERROR_VNODE_UNSETTLED : op->end_rc;
 out:
    return rc;
}

/*
 * By the longest of the ways between what the guest has, what it is to have and
 * what it goes back to: it may be on one of them already, and an undo takes
 * another one.
 */
static void limit_time(vnode_op *op, uint64_t has_kb)
{
    const uint64_t kb[] = { has_kb, op->rec.new_kb, op->rec.old_kb };
    uint64_t least = kb[0], most = kb[0], gib;
    unsigned int i;

    for (i = 1; i < ARRAY_SIZE(kb); i++) {
        least = kb[i] < least ? kb[i] : least;
        most = kb[i] > most ? kb[i] : most;
    }
    gib = (most - least + (1 << 20) - 1) >> 20;
    if (gib > TIMED_GIB_MAX)
        gib = TIMED_GIB_MAX;
    op->gib_ms = gib * LIBXL_VNODE_TIMEOUT_MS_PER_GIB;
    op->limit_ms = op->req.timeout_ms;
    if (op->req.timeout_ms < 0) {
        op->limit_ms = LIBXL_VNODE_TIMEOUT_MS;
        op->more_ms = op->gib_ms;
    }
}

/* What the request comes to.  Changes nothing. */
static int check(libxl__gc *gc, vnode_op *op, libxl__vnode_domain *vd)
{
    struct vnode_op_record *rec = &op->rec;
    const struct vnode_report *r;
    uint64_t has_kb;
    int rc;

    rc = libxl__vnode_check_request(gc, vd, &op->req, &op->found, rec);
    if (rc) goto out;

    note_before(gc, op, &vd->node[rec->vnode]);
    r = &vd->node[rec->vnode].report;
    has_kb = r->fault[0] ? 0 : r->current_kb;
    op->grows = rec->new_kb > has_kb;
    limit_time(op, has_kb);
    if (op->grows)
        rc = find_room(gc, op, vd, has_kb, &op->wish);
    if (!rc && vd->op.kind == VNODE_OP_NONE)
        libxl__vnode_teller_know(&op->teller, vd, rec->vnode);

 out:
    return rc;
}

/*
 * Everything up to the announcement.  With the userdata lock held.
 * ERROR_NOT_READY: once more, after dsmd has been told.
 */
static int begin_locked(libxl__gc *gc, vnode_op *op)
{
    libxl__vnode_domain vd;
    int rc;

    rc = libxl__vnode_load(gc, op->domid, &vd);
    if (rc) {
        rc = cannot_look(gc, op, rc);
        goto out;
    }
    vd.teller = &op->teller;
    if (op->stage == BEGIN_NEW) {
        rc = take_lock(gc, op, &vd);
        if (rc) goto out;
        op->found = vd.op;
        op->stage = BEGIN_ALONE;
    } else if (!vd.nr_vnodes) {
        rc = ERROR_DOMAIN_DESTROYED;
        goto out;
    }
    if (op->stage == BEGIN_ALONE) {
        /* Not what was asked for: a failure is logged, no more. */
        rc = libxl__vnode_bring(gc, &vd, NULL, false);
        if (rc == ERROR_NOT_READY) goto out;
        rc = check(gc, op, &vd);
        if (rc) goto out;
        op->stage = BEGIN_RECORDED;
    }
    rc = announce_prepared(gc, op, &vd);

 out:
    return rc;
}

/* Can the guest answer? */
static int check_runs(libxl__gc *gc, vnode_op *op)
{
    xc_domaininfo_t info;
    int rc = 0;

    if (xc_domain_getinfo_single(CTX->xch, op->domid, &info) < 0) {
        rc = errno == ESRCH ? ERROR_DOMAIN_NOTFOUND : ERROR_FAIL;
        LOGED(ERROR, op->domid, "cannot look at the domain");
        goto out;
    }
    if (info.flags & (XEN_DOMINF_dying | XEN_DOMINF_shutdown)) {
        LOGD(ERROR, op->domid, "the domain has stopped");
        rc = ERROR_VNODE_REFUSED;
        goto out;
    }
    if (info.flags & XEN_DOMINF_paused) {
        LOGD(ERROR, op->domid, "the domain is paused, its guest could not "
             "answer; unpause it first");
        rc = ERROR_VNODE_REFUSED;
    }

 out:
    return rc;
}

static int begin(libxl__gc *gc, vnode_op *op)
{
    libxl__flock *lock = NULL;
    int rc;

    if (op->stage == BEGIN_NEW) {
        rc = check_runs(gc, op);
        if (rc) goto out;
    }

    lock = libxl__lock_domain_userdata(gc, op->domid);
    if (!lock) {
        rc = cannot_look(gc, op, ERROR_LOCK_FAIL);
        goto out;
    }
    rc = begin_locked(gc, op);

 out:
    if (lock) libxl__unlock_file(lock);
    return rc;
}

/*
 * The flags that Xen has of a domain; those of a dying one if there is none,
 * and of one that runs if Xen cannot be asked.
 */
static uint32_t domain_flags(libxl__gc *gc, uint32_t domid)
{
    xc_domaininfo_t info;

    if (xc_domain_getinfo_single(CTX->xch, domid, &info) < 0)
        return errno == ESRCH ? XEN_DOMINF_dying : 0;

    return info.flags;
}

static bool domain_gone(libxl__gc *gc, uint32_t domid)
{
    return domain_flags(gc, domid) & XEN_DOMINF_dying;
}

/* Gone or stopped: nothing to undo in it. */
static bool domain_stopped(libxl__gc *gc, uint32_t domid)
{
    return domain_flags(gc, domid) & (XEN_DOMINF_dying | XEN_DOMINF_shutdown);
}

/*
 * Lock the books and read everything, once for all that follows.  *lock is to
 * be given back, also after a failure; NULL: not taken.
 */
static int lock_and_load(libxl__gc *gc, vnode_op *op, libxl__flock **lock,
                         libxl__vnode_domain *vd)
{
    int rc;

    *lock = libxl__lock_domain_userdata(gc, op->domid);
    if (!*lock) {
        rc = ERROR_LOCK_FAIL;
        goto out;
    }
    rc = load(gc, op, vd);

 out:
    return rc;
}

/*
 * Sizes and states are right; what the guest has to say of it all the same.  An
 * operation begins without an error: what is there after one that has changed
 * something is of that one, also if it is the same as before.
 */
static void say_error(libxl__gc *gc, const vnode_op *op,
                      const struct vnode_report *r)
{
    if (r->error[0] &&
        (strcmp(r->error, op->heard) || r->current_kb != op->before_kb ||
         comparable(r->state) != op->before_state))
        LOGD(WARN, op->domid, "vnode %u: the guest says: %s", op->rec.vnode,
             r->error);
}

/* What an undo that has ended has left behind; @rc if all is as before. */
static int look_after_undo(libxl__gc *gc, vnode_op *op,
                           const libxl__vnode_domain *vd, int rc)
{
    const struct vnode_report *r = &vd->node[op->rec.vnode].report;
    const char *why = r->fault[0] ? r->fault
                      : r->reason[0] ? r->reason : r->error;

    if (is_as_before(op, r)) {
        say_error(gc, op, r);
        goto out;
    }

    rc = ERROR_VNODE_NOT_UNDONE;
    LOGD(ERROR, op->domid, "vnode %u: undoing it has not worked either: it was "
         "%s with %"PRIu64" KiB and is %s with %"PRIu64" KiB%s%s",
         op->rec.vnode, vnode_key_state_name(op->before_state), op->before_kb,
         r->fault[0] ? "faulty" : vnode_key_state_name(comparable(r->state)),
         r->current_kb, why[0] ? ": " : "", why);

 out:
    return rc;
}

/* Announce the opposite.  Without @wait nobody attends it. */
static int announce_undo(libxl__gc *gc, vnode_op *op, libxl__vnode_domain *vd,
                         bool wait)
{
    struct vnode_op_record undo =
        libxl__vnode_inverse(vd, &op->rec, wait ? getpid() : 0);
    libxl__flock *lock;
    int rc;

    lock = libxl__lock_domain_userdata(gc, op->domid);
    if (!lock) {
        rc = ERROR_LOCK_FAIL;
        goto out;
    }
    rc = libxl__vnode_announce(gc, vd, &undo, -1);
    if (rc) goto out;
    op->rec = undo;
    op->undoing = true;

 out:
    if (lock) libxl__unlock_file(lock);
    return rc;
}

static void phase_ends(libxl__gc *gc, vnode_op *op, const char *name)
{
    vnode_phases_end(&op->phases, name, libxl__vnode_now_us());
}

/* Tell who asked for progress. */
static void report(libxl__egc *egc, vnode_op *op, libxl_vnode_phase phase)
{
    STATE_AO_GC(op->ao);
    libxl_event *ev = NEW_EVENT(egc, VNODE_PROGRESS, op->domid,
                                op->progress.for_event);

    /* Before it is prepared: what the request leaves open is not known yet. */
    ev->u.vnode_progress.vnode = phase == LIBXL_VNODE_PHASE_PREPARE
                                 ? op->req.vnode : op->rec.vnode;
    ev->u.vnode_progress.phase = phase;
    ev->u.vnode_progress.undoing = op->undoing;
    ev->u.vnode_progress.state = op->seen_state;
    ev->u.vnode_progress.progress_memkb = op->seen_progress;
    ev->u.vnode_progress.target_memkb = op->rec.new_kb;
    libxl__ao_progress_report(egc, ao, &op->progress, ev);
}

/*
 * What has come of it, out of what settling has read: the caller need not read
 * it all again.
 */
static void report_end(libxl__egc *egc, vnode_op *op,
                       const libxl__vnode_domain *vd)
{
    STATE_AO_GC(op->ao);
    libxl_vnodeinfo info;
    libxl_event *ev;

    libxl_vnodeinfo_init(&info);
    if (libxl__vnode_fill_info(gc, vd, false, op->rec.vnode, op->phases.text,
                               &info)) {
        libxl_vnodeinfo_dispose(&info);
        return;
    }
    ev = NEW_EVENT(egc, VNODE_PROGRESS, op->domid, op->progress.for_event);
    ev->u.vnode_progress.vnode = op->rec.vnode;
    ev->u.vnode_progress.phase = LIBXL_VNODE_PHASE_END;
    ev->u.vnode_progress.undoing = op->undoing;
    ev->u.vnode_progress.state = info.state;
    ev->u.vnode_progress.progress_memkb = info.progress_memkb;
    ev->u.vnode_progress.target_memkb = info.target_memkb;
    ev->u.vnode_progress.info = info;
    libxl__ao_progress_report(egc, ao, &op->progress, ev);
}

static void report_progress(libxl__egc *egc, vnode_op *op,
                            const libxl__vnode_progress *now)
{
    if (now->faulty || (now->progress_kb == op->seen_progress &&
                        now->state == op->seen_state))
        return;
    op->seen_progress = now->progress_kb;
    op->seen_state = now->state;
    report(egc, op, LIBXL_VNODE_PHASE_GUEST);
}

/*---------- the callback chain, in order of time ----------*/

static int vnode_op_start(libxl_ctx *ctx, uint32_t domid,
                          enum vnode_op_kind kind,
                          const libxl_vnode_request *req,
                          const libxl_asyncop_how *ao_how,
                          const libxl_asyncprogress_how *progress);
static void begin_due(libxl__egc *egc, libxl__ev_time *ev,
                      const struct timeval *requested_abs, int rc);
static void try_to_begin(libxl__egc *egc, vnode_op *op);
static void begun(libxl__egc *egc, vnode_op *op);
static int wait_for_guest(libxl__gc *gc, vnode_op *op);
static void told(libxl__egc *egc, libxl__vnode_teller *teller);
static void guest_watch_callback(libxl__egc *egc, libxl__ev_xswatch *w,
                                 const char *watch_path,
                                 const char *event_path);
static void check_due(libxl__egc *egc, libxl__ev_time *ev,
                      const struct timeval *requested_abs, int rc);
static void op_check(libxl__egc *egc, vnode_op *op);
static void guest_finished(libxl__egc *egc, vnode_op *op);
static void op_timeout(libxl__egc *egc, libxl__ev_time *ev,
                       const struct timeval *requested_abs, int rc);
static void undo(libxl__egc *egc, vnode_op *op, libxl__vnode_domain *vd,
                 int rc);
static void settle_and_end(libxl__egc *egc, vnode_op *op, int rc);
static void settle_loaded(libxl__egc *egc, vnode_op *op, libxl__flock *lock,
                          libxl__vnode_domain *vd, int settled, int rc);
static void settle_locked(libxl__egc *egc, vnode_op *op, libxl__flock *lock,
                          libxl__vnode_domain *vd, int settled);
static void release_watch_callback(libxl__egc *egc, libxl__ev_xswatch *w,
                                   const char *watch_path,
                                   const char *event_path);
static void end_stopped(libxl__egc *egc, vnode_op *op);
static void end_in_the_dark(libxl__egc *egc, vnode_op *op, int rc);
static void end(libxl__egc *egc, vnode_op *op, int rc);

int libxl_vnode_attach(libxl_ctx *ctx, uint32_t domid,
                       const libxl_vnode_request *req,
                       const libxl_asyncop_how *ao_how,
                       const libxl_asyncprogress_how *progress)
{
    return vnode_op_start(ctx, domid, VNODE_OP_ATTACH, req, ao_how, progress);
}

int libxl_vnode_detach(libxl_ctx *ctx, uint32_t domid,
                       const libxl_vnode_request *req,
                       const libxl_asyncop_how *ao_how,
                       const libxl_asyncprogress_how *progress)
{
    return vnode_op_start(ctx, domid, VNODE_OP_DETACH, req, ao_how, progress);
}

int libxl_vnode_set(libxl_ctx *ctx, uint32_t domid,
                    const libxl_vnode_request *req,
                    const libxl_asyncop_how *ao_how,
                    const libxl_asyncprogress_how *progress)
{
    return vnode_op_start(ctx, domid, VNODE_OP_SET, req, ao_how, progress);
}

static int vnode_op_start(libxl_ctx *ctx, uint32_t domid,
                          enum vnode_op_kind kind,
                          const libxl_vnode_request *req,
                          const libxl_asyncop_how *ao_how,
                          const libxl_asyncprogress_how *progress)
{
    AO_CREATE(ctx, domid, ao_how);
    vnode_op *op;
    int rc;

    GCNEW(op);
    op->ao = ao;
    op->domid = domid;
    op->rec.kind = kind;
    vnode_phases_begin(&op->phases, libxl__vnode_now_us());
    libxl__ev_xswatch_init(&op->guest_watch);
    libxl__ev_xswatch_init(&op->release_watch);
    libxl__ev_time_init(&op->timer);
    libxl__ev_time_init(&op->check);
    libxl__vnode_teller_init(&op->teller);
    op->teller.ao = ao;
    op->teller.callback = told;
    libxl__ao_progress_gethow(&op->progress, progress);
    libxl_vnode_request_init(&op->req);
    libxl_vnode_request_copy(ctx, &op->req, req);
    libxl_defbool_setdefault(&op->req.wait, true);

    rc = libxl__ev_time_register_rel(ao, &op->check, begin_due, 0);
    if (rc) goto out;
    report(egc, op, LIBXL_VNODE_PHASE_PREPARE);

    return AO_INPROGRESS;

 out:
    libxl_vnode_request_dispose(&op->req);
    return AO_CREATE_FAIL(rc);
}

/* In the event loop, so that the caller hears of it before it takes time. */
static void begin_due(libxl__egc *egc, libxl__ev_time *ev,
                      const struct timeval *requested_abs, int rc)
{
    vnode_op *op = CONTAINER_OF(ev, vnode_op, check);
    STATE_AO_GC(op->ao);

    libxl__ev_time_init(&op->check);    /* whichever rc, it is over */
    if (rc == ERROR_ABORTED) {
        LOGD(ERROR, op->domid, "cancelled before it began");
        rc = ERROR_VNODE_REFUSED;
    }
    if (rc != ERROR_TIMEDOUT) {
        end(egc, op, rc);
        return;
    }

    try_to_begin(egc, op);
}

/* And once more each time that dsmd has been told. */
static void try_to_begin(libxl__egc *egc, vnode_op *op)
{
    STATE_AO_GC(op->ao);
    int rc;

    do {
        rc = begin(gc, op);
    } while (rc == ERROR_NOT_READY && libxl__vnode_tell(gc, &op->teller));

    if (!rc)
        begun(egc, op);
    else if (rc != ERROR_NOT_READY && op->stage != BEGIN_NEW &&
             domain_gone(gc, op->domid))
        end_stopped(egc, op);
    else if (rc != ERROR_NOT_READY)
        end(egc, op, rc);
}

/* The guest has been told. */
static void begun(libxl__egc *egc, vnode_op *op)
{
    STATE_AO_GC(op->ao);
    int rc;

    phase_ends(gc, op, "prepare");
    report(egc, op, LIBXL_VNODE_PHASE_GUEST);
    if (!libxl_defbool_val(op->req.wait)) {
        libxl__vnode_write_phases(gc, op->domid, op->rec.vnode, &op->phases);
        end(egc, op, 0);
        return;
    }
    rc = wait_for_guest(gc, op);
    if (rc) {
        /* Announced all the same: end it here, the record tells the rest. */
        end(egc, op, ERROR_VNODE_UNSETTLED);
    }
}

static int wait_for_guest(libxl__gc *gc, vnode_op *op)
{
    int rc;

    rc = libxl__ev_time_register_rel(op->ao, &op->timer, op_timeout,
                                     op->limit_ms ? : -1);
    if (rc) goto out;
    rc = libxl__ev_xswatch_register(gc, &op->release_watch,
                                    release_watch_callback, "@releaseDomain");
    if (rc) goto out;
    rc = libxl__ev_xswatch_register(gc, &op->guest_watch, guest_watch_callback,
                                    GCSPRINTF("/local/domain/%"PRIu32
                                              "/vnuma/guest", op->domid));

 out:
    return rc;
}

/* dsmd has done it, or not. */
static void told(libxl__egc *egc, libxl__vnode_teller *teller)
{
    vnode_op *op = CONTAINER_OF(teller, vnode_op, teller);
    STATE_AO_GC(op->ao);
    libxl__vnode_domain vd;
    libxl__flock *lock;
    int settled;

    if (!op->settling) {
        try_to_begin(egc, op);
        return;
    }
    settled = lock_and_load(gc, op, &lock, &vd);
    settle_locked(egc, op, lock, &vd, settled);
}

static void guest_watch_callback(libxl__egc *egc, libxl__ev_xswatch *w,
                                 const char *watch_path,
                                 const char *event_path)
{
    vnode_op *op = CONTAINER_OF(w, vnode_op, guest_watch);
    STATE_AO_GC(op->ao);
    int rc;

    op->wrote = true;
    if (libxl__ev_time_isregistered(&op->check))
        return;
    rc = libxl__ev_time_register_rel(ao, &op->check, check_due, 0);
    if (rc && rc != ERROR_ABORTED)
        end_in_the_dark(egc, op, rc);
}

static void check_due(libxl__egc *egc, libxl__ev_time *ev,
                      const struct timeval *requested_abs, int rc)
{
    vnode_op *op = CONTAINER_OF(ev, vnode_op, check);
    STATE_AO_GC(op->ao);

    libxl__ev_time_init(&op->check);    /* whichever rc, it is over */
    /* What is aborted is the time-out's callback's. */
    if (rc == ERROR_ABORTED || !op->wrote)
        return;
    op->wrote = false;
    op->pause_ms += op->pause_ms < CHECK_PAUSE_MS;
    rc = libxl__ev_time_register_rel(ao, &op->check, check_due, op->pause_ms);
    if (rc && rc != ERROR_ABORTED)
        end_in_the_dark(egc, op, rc);
    else
        op_check(egc, op);
}

/* Something has changed: look. */
static void op_check(libxl__egc *egc, vnode_op *op)
{
    STATE_AO_GC(op->ao);
    libxl__vnode_progress now;
    libxl__ao *nested;
    int rc;

    if (domain_stopped(gc, op->domid)) {
        end_stopped(egc, op);
        return;
    }

    /* A chatty guest must not make this operation's memory grow. */
    nested = libxl__nested_ao_create(ao);
    rc = libxl__vnode_look(libxl__ao_inprogress_gc(nested), op->domid,
                           op->rec.vnode, op->max_kb, op->rec.generation,
                           &now);
    libxl__nested_ao_free(nested);
    if (rc)
        end_in_the_dark(egc, op, rc);
    else if (now.done == op->rec.generation)
        guest_finished(egc, op);
    else
        report_progress(egc, op, &now);
}

/* The guest has finished what was asked of it. */
static void guest_finished(libxl__egc *egc, vnode_op *op)
{
    STATE_AO_GC(op->ao);
    libxl__vnode_domain vd;
    libxl__flock *lock;
    const struct vnode_report *r;
    int rc;

    phase_ends(gc, op, op->undoing ? "undo" : "guest");
    rc = lock_and_load(gc, op, &lock, &vd);
    if (rc || op->undoing) {
        settle_loaded(egc, op, lock, &vd, rc, op->undone_rc);
        return;
    }

    r = &vd.node[op->rec.vnode].report;
    switch (vnode_op_outcome(op->rec.kind, op->rec.new_kb, r)) {
    case VNODE_OUTCOME_DONE:
        say_error(gc, op, r);
        settle_loaded(egc, op, lock, &vd, 0, 0);
        return;
    case VNODE_OUTCOME_RESIDUAL:
        LOGD(ERROR, op->domid, "vnode %u: %"PRIu64" KiB could not leave: %s",
             op->rec.vnode, r->residual_kb,
             r->reason[0] ? r->reason : "the guest gives no reason");
        settle_loaded(egc, op, lock, &vd, 0, ERROR_VNODE_RESIDUAL);
        return;
    case VNODE_OUTCOME_FAILED:
        LOGD(ERROR, op->domid, "vnode %u: the guest could not %s it: %s (%s, "
             "%"PRIu64" of %"PRIu64" KiB)", op->rec.vnode,
             libxl__vnode_op_name(&op->rec),
             r->error[0] ? r->error : "it gives no reason",
             vnode_key_state_name(r->state), r->current_kb, op->rec.new_kb);
        op->heard = libxl__strdup(gc, r->error);
        /* Refused up front by the guest: nothing has changed in it. */
        rc = op->rec.kind == VNODE_OP_DETACH && r->error_nr == ENOMEM &&
             r->state == VNODE_KEY_ONLINE
             ? ERROR_VNODE_REFUSED : ERROR_VNODE_UNDONE;
        break;
    case VNODE_OUTCOME_FAULTY:
        LOGD(ERROR, op->domid, "vnode %u: the guest's report is faulty: %s",
             op->rec.vnode, r->fault);
        rc = ERROR_VNODE_UNDONE;
        break;
    }
    libxl__unlock_file(lock);
    undo(egc, op, &vd, rc);
}

static void op_timeout(libxl__egc *egc, libxl__ev_time *ev,
                       const struct timeval *requested_abs, int rc)
{
    vnode_op *op = CONTAINER_OF(ev, vnode_op, timer);
    STATE_AO_GC(op->ao);
    libxl__vnode_domain vd;
    const libxl__vnode *v;
    int rc2;

    libxl__ev_time_init(&op->timer);    /* whichever rc, it is over */
    rc2 = load(gc, op, &vd);
    if (rc2) {
        end_in_the_dark(egc, op, rc2);
        return;
    }
    /*
     * This process had no CPU when the guest had finished.  That it has is
     * taken from this one read, as nobody would wait any more, should another
     * one say no.  The books go by what is read with them.
     */
    if (rc != ERROR_ABORTED && vd.done == op->rec.generation) {
        if (domain_stopped(gc, op->domid))
            end_stopped(egc, op);
        else
            guest_finished(egc, op);
        return;
    }
    if (rc != ERROR_ABORTED && !op->undoing && vd.driver && op->more_ms) {
        rc2 = libxl__ev_time_register_rel(ao, &op->timer, op_timeout,
                                          op->more_ms);
        op->limit_ms += op->more_ms;
        op->more_ms = 0;
        if (!rc2)
            return;
    }
    phase_ends(gc, op, op->undoing ? "undo" : "guest");
    v = &vd.node[op->rec.vnode];

    if (rc == ERROR_ABORTED)
        LOGD(ERROR, op->domid, "vnode %u: %s interrupted", op->rec.vnode,
             libxl__vnode_op_name(&op->rec));
    else if (!vd.driver)
        LOGD(ERROR, op->domid, "vnode %u: no driver in the guest answered the "
             "%s within %d ms; taken back", op->rec.vnode,
             libxl__vnode_op_name(&op->rec), op->limit_ms);
    else if (!op->undoing)
        LOGD(ERROR, op->domid, "vnode %u: the guest did not finish the %s "
             "within %d ms (%s, %"PRIu64" of %"PRIu64" KiB%s%s); taking it "
             "back", op->rec.vnode, libxl__vnode_op_name(&op->rec),
             op->limit_ms,
             vnode_key_state_name(v->report.state), v->report.progress_kb,
             v->target_kb, v->report.fault[0] ? ", faulty: " : "",
             v->report.fault);

    undo(egc, op, &vd, rc == ERROR_ABORTED ? rc : ERROR_VNODE_UNDONE);
}

/*
 * Undo, then end with @rc.  A guest without a driver has done nothing that
 * could be undone and is not waited for.
 */
static void undo(libxl__egc *egc, vnode_op *op, libxl__vnode_domain *vd, int rc)
{
    STATE_AO_GC(op->ao);
    bool wait = vd->driver && rc != ERROR_ABORTED;
    int rc2;

    if (op->undoing) {
        LOGD(ERROR, op->domid, "vnode %u: the guest has not undone it either; "
             "repeat the command to finish it, or do the opposite",
             op->rec.vnode);
        end(egc, op, ERROR_VNODE_UNSETTLED);
        return;
    }

    op->undone_rc = rc;
    rc2 = announce_undo(gc, op, vd, wait);
    if (rc2) {
        /* The record is there, and tells the next one what to do. */
        end(egc, op, ERROR_VNODE_UNSETTLED);
        return;
    }
    if (!vd->driver) {
        settle_and_end(egc, op, ERROR_VNODE_UNDONE);
        return;
    }
    if (!wait) {
        end(egc, op, rc);
        return;
    }

    libxl__ev_time_deregister(gc, &op->timer);
    rc2 = libxl__ev_time_register_rel(ao, &op->timer, op_timeout,
                                      UNDO_TIMEOUT_MS + op->gib_ms);
    if (rc2)
        end(egc, op, ERROR_VNODE_UNSETTLED);
}

/* After an undo that nobody has to answer. */
static void settle_and_end(libxl__egc *egc, vnode_op *op, int rc)
{
    STATE_AO_GC(op->ao);
    libxl__vnode_domain vd;
    libxl__flock *lock;
    int settled;

    phase_ends(gc, op, "undo");
    settled = lock_and_load(gc, op, &lock, &vd);
    settle_loaded(egc, op, lock, &vd, settled, rc);
}

/*
 * The guest has done what it could: make the host agree, and end with @rc if
 * that is so.  @lock, @vd, @settled: from lock_and_load() and its result.
 */
static void settle_loaded(libxl__egc *egc, vnode_op *op, libxl__flock *lock,
                          libxl__vnode_domain *vd, int settled, int rc)
{
    STATE_AO_GC(op->ao);

    report(egc, op, LIBXL_VNODE_PHASE_SETTLE);
    if (!settled && op->undoing)
        rc = look_after_undo(gc, op, vd, rc);
    op->end_rc = rc;
    settle_locked(egc, op, lock, vd, settled);
}

/* The guest has nothing to say any more. */
static void stop_listening(libxl__gc *gc, vnode_op *op)
{
    libxl__ev_xswatch_deregister(gc, &op->guest_watch);
    libxl__ev_xswatch_deregister(gc, &op->release_watch);
    libxl__ev_time_deregister(gc, &op->timer);
    libxl__ev_time_deregister(gc, &op->check);
}

/* And once more each time that dsmd has been told. */
static void settle_locked(libxl__egc *egc, vnode_op *op, libxl__flock *lock,
                          libxl__vnode_domain *vd, int settled)
{
    STATE_AO_GC(op->ao);

    if (settled) goto out;
    if (op->leaving && op->end_rc) {
        /* It stays, or a part of it. */
        op->leaving = false;
        libxl__vnode_leaving(vd, op->rec.vnode,
                             vd->node[op->rec.vnode].there_kb);
        settled = ERROR_NOT_READY;
    } else {
        settled = libxl__vnode_bring(gc, vd, NULL, true);
    }
    if (settled == ERROR_NOT_READY) {
        libxl__unlock_file(lock);
        stop_listening(gc, op);
        op->settling = true;
        if (libxl__vnode_tell(gc, &op->teller))
            told(egc, &op->teller);     /* once: the failure is taken there */
        return;
    }
    if (!settled && vd->op.kind != VNODE_OP_NONE) {
        LOGD(ERROR, op->domid, "vnode %u: the guest has not finished it; "
             "repeat the command to finish it, or do the opposite",
             op->rec.vnode);
        settled = ERROR_VNODE_UNSETTLED;
    }
    phase_ends(gc, op, "settle");
    libxl__vnode_write_phases(gc, op->domid, op->rec.vnode, &op->phases);
    if (!settled)
        report_end(egc, op, vd);

 out:
    /* Before the other lock: nobody finds it held and no record. */
    libxl__vnode_unlock(&op->lock);
    if (lock) libxl__unlock_file(lock);
    if (settled)
        end_in_the_dark(egc, op, settled);
    else
        end(egc, op, op->end_rc);
}

static void release_watch_callback(libxl__egc *egc, libxl__ev_xswatch *w,
                                   const char *watch_path,
                                   const char *event_path)
{
    vnode_op *op = CONTAINER_OF(w, vnode_op, release_watch);
    STATE_AO_GC(op->ao);

    if (domain_stopped(gc, op->domid))
        end_stopped(egc, op);
}

/*
 * The record stays: it goes with the domain.  One that has only shut down may
 * be preserved, with its memory and limit as they are.
 */
static void end_stopped(libxl__egc *egc, vnode_op *op)
{
    STATE_AO_GC(op->ao);

    LOGD(ERROR, op->domid, "the domain stopped during the %s; what it has of "
         "its vnodes ends with it", libxl__vnode_op_name(&op->rec));
    end(egc, op, ERROR_DOMAIN_DESTROYED);
}

/* What has become of it cannot be told, or not waited for: the record can. */
static void end_in_the_dark(libxl__egc *egc, vnode_op *op, int rc)
{
    STATE_AO_GC(op->ao);

    if (rc == ERROR_DOMAIN_DESTROYED || domain_gone(gc, op->domid)) {
        end_stopped(egc, op);
        return;
    }
    say_not_ended(gc, op);
    end(egc, op, ERROR_VNODE_UNSETTLED);
}

static void end(libxl__egc *egc, vnode_op *op, int rc)
{
    STATE_AO_GC(op->ao);

    libxl__vnode_unlock(&op->lock);
    libxl__vnode_teller_stop(gc, &op->teller);
    stop_listening(gc, op);
    libxl_vnode_request_dispose(&op->req);
    libxl__ao_complete(egc, ao, rc);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
