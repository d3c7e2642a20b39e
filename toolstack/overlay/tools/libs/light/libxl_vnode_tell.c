/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes on another host: telling dsmd how much memory one is to have
 * there, and where its vCPUs are to run.  See libxl_vnode_internal.h.
 *
 * What dsmd has done last is known while one process attends the operation: at
 * first from the books, if they were settled, then from what dsmd says.  A
 * refusal changes nothing; after a reply that did not come nothing is known,
 * and dsmd has to be asked again, whatever it is asked for.
 *
 * Locking: the domain's operation lock is held throughout; its userdata lock
 * not while dsmd works.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

/* What was only a hint may fail; who was interrupted is. */
static void forget_failure(libxl__vnode_teller *teller)
{
    if (teller->rc != ERROR_ABORTED)
        teller->rc = 0;
}

static void note_told(libxl__vnode_teller *teller, int rc)
{
    bool memory = teller->call.request.op == LIBXL__DSM_NODE;

    if (rc == ERROR_VNODE_REFUSED)
        return;
    if (memory)
        teller->known_kb = rc ? VNODE_UNTOLD : teller->asked_kb;
    else
        teller->known_where = rc ? VNODE_WHERE_UNTOLD : teller->asked_where;
}

static void replied(libxl__egc *egc, libxl__dsm_call *call, int rc)
{
    libxl__vnode_teller *teller = CONTAINER_OF(call, *teller, call);

    teller->rc = rc;
    if (call->request.op == LIBXL__DSM_LEAVING)
        forget_failure(teller);
    else
        note_told(teller, rc);
    teller->callback(egc, teller);
}

static void know_nothing(libxl__vnode_teller *teller, unsigned int nr)
{
    teller->vnode = nr;
    teller->known_kb = VNODE_UNTOLD;
    teller->known_where = VNODE_WHERE_UNTOLD;
}

void libxl__vnode_teller_init(libxl__vnode_teller *teller)
{
    libxl__dsm_init(&teller->call);
    know_nothing(teller, 0);
    teller->rc = 0;
}

void libxl__vnode_teller_know(libxl__vnode_teller *teller,
                              const libxl__vnode_domain *vd, unsigned int nr)
{
    teller->vnode = nr;
    teller->known_kb = vd->node[nr].there_kb;
    teller->known_where = vd->node[nr].placed ? VNODE_WHERE_REMOTE
                                              : VNODE_WHERE_HOME;
}

uint64_t libxl__vnode_told_kb(const libxl__vnode_domain *vd, unsigned int nr)
{
    return vd->teller && vd->teller->vnode == nr ? vd->teller->known_kb
                                                 : VNODE_UNTOLD;
}

enum vnode_where libxl__vnode_told_where(const libxl__vnode_domain *vd,
                                         unsigned int nr)
{
    return vd->teller && vd->teller->vnode == nr ? vd->teller->known_where
                                                 : VNODE_WHERE_UNTOLD;
}

/* May it be asked now, about @nr?  Or the result of what was asked before. */
static int next_to_tell(libxl__vnode_domain *vd, unsigned int nr)
{
    libxl__vnode_teller *teller = vd->teller;
    int rc = ERROR_NOT_READY;

    if (!teller) goto out;
    if (teller->rc) {
        rc = teller->rc;
        teller->rc = 0;
        goto out;
    }
    if (teller->vnode != nr)
        know_nothing(teller, nr);
    teller->call.quiet = false;
    rc = 0;

 out:
    return rc;
}

int libxl__vnode_tell_step(libxl__gc *gc, libxl__vnode_domain *vd,
                           unsigned int nr, uint64_t kb)
{
    libxl__vnode_teller *teller = vd->teller;
    const libxl__vnode *v = &vd->node[nr];
    int rc;

    rc = next_to_tell(vd, nr);
    if (rc) goto out;

    teller->asked_kb = kb;
    teller->call.request = (libxl__dsm_request) {
        .op = LIBXL__DSM_NODE,
        .domid = vd->domid,
        .uuid = vd->uuid,
        .vnode = nr,
        .host = v->host,
        .kb = kb,
        .pool_kb = kb ? v->pool_kb : 0,
    };
    rc = ERROR_NOT_READY;

 out:
    return rc;
}

int libxl__vnode_place_step(libxl__gc *gc, libxl__vnode_domain *vd,
                            unsigned int nr, bool placed)
{
    libxl__vnode_teller *teller = vd->teller;
    const libxl__vnode *v = &vd->node[nr];
    int rc;

    rc = next_to_tell(vd, nr);
    if (rc) goto out;

    teller->asked_where = placed ? VNODE_WHERE_REMOTE : VNODE_WHERE_HOME;
    teller->call.request = (libxl__dsm_request) {
        .op = placed ? LIBXL__DSM_PLACE : LIBXL__DSM_HOME,
        .domid = vd->domid,
        .uuid = vd->uuid,
        .host = v->host,
        .nr_vcpus = vd->nr_vcpus,
        .vcpus = v->cpus,
    };
    rc = ERROR_NOT_READY;

 out:
    return rc;
}

void libxl__vnode_leaving(const libxl__vnode_domain *vd, unsigned int nr,
                          uint64_t kb)
{
    libxl__vnode_teller *teller = vd->teller;

    teller->call.quiet = true;
    teller->call.request = (libxl__dsm_request) {
        .op = LIBXL__DSM_LEAVING,
        .domid = vd->domid,
        .uuid = vd->uuid,
        .vnode = nr,
        .kb = kb,
    };
}

int libxl__vnode_tell(libxl__gc *gc, libxl__vnode_teller *teller)
{
    int rc;

    teller->call.ao = teller->ao;
    teller->call.callback = replied;
    rc = libxl__dsm_start(gc, &teller->call);
    teller->rc = rc;
    if (teller->call.request.op == LIBXL__DSM_LEAVING)
        forget_failure(teller);

    return rc;
}

void libxl__vnode_teller_stop(libxl__gc *gc, libxl__vnode_teller *teller)
{
    libxl__dsm_stop(gc, &teller->call);
}

bool libxl__vnode_owes(const libxl__vnode *v)
{
    uint64_t has_kb = v->host ? v->there_kb : v->allowed_kb;
    uint64_t settled_kb = vnode_settled_allowance(v->target_kb, has_kb,
                                                  &v->report);

    return has_kb > settled_kb || (v->host && !settled_kb && v->allowed_kb);
}

int libxl__vnode_check_span(libxl__gc *gc, const libxl__vnode_domain *vd,
                            const libxl_vnode_request *req, unsigned int nr)
{
    int rc = 0;

    if (req->pnode >= 0) {
        LOGD(ERROR, vd->domid, "vnode %u is on host %s: pnode %d would be a "
             "node of this host; leave it out", nr, vd->node[nr].host,
             req->pnode);
        rc = ERROR_VNODE_REFUSED;
    }

    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
