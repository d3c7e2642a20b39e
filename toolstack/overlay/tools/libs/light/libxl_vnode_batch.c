/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes: requests to xenstored that are sent at once, since each that
 * is waited for is two or three switches between processes.
 *
 * What a batch is for is said in libxl_vnode_internal.h.  Reads of one batch
 * are of one moment only within a transaction that commits.
 *
 * Locking: none needed.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

struct libxl__vnode_request {
    struct libxl__vnode_request *next;
    struct xs_batch_request what;
    const char **out;           /* of a read: where its value goes */
};

static void add(libxl__gc *gc, libxl__vnode_batch *batch,
                struct xs_batch_request what, const char **out)
{
    struct libxl__vnode_request *r;

    GCNEW(r);
    r->what = what;
    r->out = out;
    *(batch->last ? &batch->last->next : &batch->first) = r;
    batch->last = r;
    batch->nr++;
}

void libxl__vnode_read(libxl__gc *gc, libxl__vnode_batch *batch,
                       const char *path, const char **out)
{
    *out = NULL;
    add(gc, batch, (struct xs_batch_request) {
        .kind = XS_BATCH_READ, .path = path,
    }, out);
}

void libxl__vnode_write(libxl__gc *gc, libxl__vnode_batch *batch,
                        const char *path, const char *value)
{
    add(gc, batch, (struct xs_batch_request) {
        .kind = XS_BATCH_WRITE, .path = path, .data = value,
    }, NULL);
}

void libxl__vnode_rm(libxl__gc *gc, libxl__vnode_batch *batch,
                     const char *path)
{
    add(gc, batch, (struct xs_batch_request) {
        .kind = XS_BATCH_RM, .path = path,
    }, NULL);
}

/* What has become of one: as libxl__xs_read_checked() and its like have it. */
static int take(libxl__gc *gc, const struct xs_batch_request *r,
                const char **out)
{
    static const char *const names[] = {
        [XS_BATCH_READ]  = "read",
        [XS_BATCH_WRITE] = "write",
        [XS_BATCH_RM]    = "rm",
    };

    if (out) {
        libxl__ptr_add(gc, r->value);
        *out = r->value;
    }
    if (!r->error || (r->error == ENOENT && r->kind != XS_BATCH_WRITE))
        return 0;

    LOGEV(ERROR, r->error, "xenstore %s failed: `%s'", names[r->kind],
          r->path);

    return ERROR_FAIL;
}

int libxl__vnode_send(libxl__gc *gc, libxl__vnode_batch *batch,
                      xs_transaction_t t)
{
    unsigned int i, nr = batch->nr;
    struct xs_batch_request *all;
    const struct libxl__vnode_request *r;
    int rc = 0, rc2;

    if (!nr) goto out;

    all = libxl__calloc(gc, nr, sizeof(*all));
    for (i = 0, r = batch->first; r; r = r->next)
        all[i++] = r->what;
    if (!xs_batch(CTX->xsh, t, all, nr)) {
        LOGE(ERROR, "%u xenstore requests failed", nr);
        rc = ERROR_FAIL;
        goto out;
    }
    for (i = 0, r = batch->first; r; i++, r = r->next) {
        rc2 = take(gc, &all[i], r->out);
        rc = rc ? rc : rc2;
    }

 out:
    *batch = (libxl__vnode_batch) { 0 };
    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
