/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * libxl_vnode_settle(): whatever has been left half done is put in order, by
 * somebody who asks for nothing else.
 *
 *   look -> bring -> callback
 *    ^        |
 *    +- told <+  dsmd is told how much memory a vnode on another host has
 *
 * Locking: the operation lock is held from the first bring to the end, so that
 * nobody else begins meanwhile; the userdata lock not while dsmd works.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

/* Whoever lists vnodes does not want to wait: the next one asks again. */
#define TELL_MS 10000

typedef struct {
    libxl__ao *ao;
    uint32_t domid;
    libxl__carefd *op_lock;
    libxl__vnode_teller teller;
} settling;

/* ERROR_NOT_READY: dsmd is to be told, and the operation lock is held. */
static int bring(libxl__gc *gc, settling *s)
{
    libxl__vnode_domain vd;
    libxl__flock *lock;
    int rc;

    lock = libxl__lock_domain_userdata(gc, s->domid);
    if (!lock) {
        rc = ERROR_LOCK_FAIL;
        goto out;
    }
    if (!s->op_lock) {
        rc = libxl__vnode_lock(gc, s->domid, &s->op_lock);
        if (rc == ERROR_LOCK_FAIL) {
            rc = 0;         /* somebody is at it */
            goto out;
        }
        if (rc) goto out;
    }
    rc = libxl__vnode_load(gc, s->domid, &vd);
    if (rc) goto out;
    vd.teller = &s->teller;
    rc = libxl__vnode_bring(gc, &vd, NULL, false);

 out:
    /* Before the other lock: nobody finds it held and no record. */
    if (rc != ERROR_NOT_READY)
        libxl__vnode_unlock(&s->op_lock);
    if (lock) libxl__unlock_file(lock);
    return rc;
}

/* ERROR_NOT_READY: told() will be called. */
static int look(libxl__gc *gc, settling *s)
{
    int rc;

    do {
        rc = bring(gc, s);
    } while (rc == ERROR_NOT_READY && libxl__vnode_tell(gc, &s->teller));

    return rc;
}

static void told(libxl__egc *egc, libxl__vnode_teller *teller)
{
    settling *s = CONTAINER_OF(teller, settling, teller);
    STATE_AO_GC(s->ao);
    int rc = look(gc, s);

    if (rc != ERROR_NOT_READY)
        libxl__ao_complete(egc, ao, rc);
}

int libxl_vnode_settle(libxl_ctx *ctx, uint32_t domid,
                       const libxl_asyncop_how *ao_how)
{
    AO_CREATE(ctx, domid, ao_how);
    libxl__vnode_domain vd;
    settling *s;
    int rc;

    rc = libxl__vnode_load(gc, domid, &vd);
    if (rc) goto out;
    if (vd.nr_vnodes && !libxl__vnode_is_settled(gc, &vd)) {
        GCNEW(s);
        s->ao = ao;
        s->domid = domid;
        libxl__vnode_teller_init(&s->teller);
        s->teller.ao = ao;
        s->teller.callback = told;
        s->teller.call.within_ms = TELL_MS;
        rc = look(gc, s);
    }
    if (!rc)
        libxl__ao_complete(egc, ao, 0);

 out:
    return rc && rc != ERROR_NOT_READY ? AO_CREATE_FAIL(rc) : AO_INPROGRESS;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
