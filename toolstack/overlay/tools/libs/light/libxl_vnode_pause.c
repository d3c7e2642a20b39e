/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * A domain that is paused, or unpaused, while vCPUs of it run on other hosts.
 *
 * Xen pauses what runs on this host, and what it says of that counts: dsmd has
 * the other hosts do the same, by itself within a second, and at once when it
 * is asked.  So who is killed in between leaves nothing that would have to be
 * put in order.  What is for a domain that runs here only is refused then.
 *
 * Locking: none.  An operation on a vnode of the domain may be under way.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

typedef struct {
    libxl__dsm_call call;
    bool paused;
} following;

/* A pause that is not one of the whole guest is taken back. */
static void end(libxl__egc *egc, libxl__ao *ao_outer, uint32_t domid,
                bool paused, int rc)
{
    STATE_AO_GC(ao_outer);

    if (rc && !paused)
        LOGD(ERROR, domid, "the domain goes on here; its vCPUs on other hosts "
             "do so as soon as dsmd can have them");
    else if (rc && xc_domain_unpause(CTX->xch, domid))
        LOGED(ERROR, domid, "Unpausing domain");
    else if (rc)
        LOGD(ERROR, domid, "not paused, as vCPUs on other hosts cannot be");
    libxl__ao_complete(egc, ao, rc);
}

static void replied(libxl__egc *egc, libxl__dsm_call *call, int rc)
{
    following *f = CONTAINER_OF(call, following, call);

    end(egc, call->ao, call->request.domid, f->paused, rc);
}

void libxl__vnode_follow(libxl__egc *egc, libxl__ao *ao_outer, uint32_t domid,
                         bool paused)
{
    STATE_AO_GC(ao_outer);
    xc_domaininfo_t info;
    following *f;
    bool placed;
    int rc;

    rc = libxl__vnode_any_placed(gc, domid, &placed);
    if (rc || !placed) goto out;

    if (xc_domain_getinfo_single(CTX->xch, domid, &info)) {
        LOGED(ERROR, domid, "getting domain info");
        rc = ERROR_FAIL;
        goto out;
    }
    GCNEW(f);
    libxl__dsm_init(&f->call);
    f->paused = paused;
    f->call.ao = ao;
    f->call.callback = replied;
    f->call.request = (libxl__dsm_request) {
        .op = LIBXL__DSM_FOLLOW,
        .domid = domid,
        .uuid = GCSPRINTF(LIBXL_UUID_FMT, LIBXL__UUID_BYTES(info.handle)),
    };
    rc = libxl__dsm_start(gc, &f->call);
    if (!rc)
        return;

 out:
    end(egc, ao, domid, paused, rc);
}

int libxl__vnode_all_here(libxl__gc *gc, uint32_t domid, const char *what)
{
    bool placed;
    int rc;

    rc = libxl__vnode_any_placed(gc, domid, &placed);
    if (rc || !placed)
        return rc;
    LOGD(ERROR, domid, "%s: vCPUs of this domain run on another host; bring "
         "them home first (xl vnode-detach)", what);
    return ERROR_INVAL;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
