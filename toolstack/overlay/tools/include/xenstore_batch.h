/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * libxenstore: requests that are sent at once.
 *
 * xs_read() and the others wait for the reply to one request before the next
 * is sent, and each such wait is two or three switches between processes.  The
 * protocol lets a client send many, in whatever order they are answered
 * (docs/misc/xenstore.txt).
 */
#ifndef XENSTORE_BATCH_H
#define XENSTORE_BATCH_H

#include <xenstore.h>

enum xs_batch_kind {
    XS_BATCH_READ,
    XS_BATCH_WRITE,
    XS_BATCH_RM,
};

struct xs_batch_request {
    /* Filled in by the caller. */
    enum xs_batch_kind kind;
    const char *path;
    const char *data;           /* of WRITE: a string, its end is not written */
    /* By xs_batch(). */
    char *value;                /* of READ: malloc()ed string, or NULL */
    int error;                  /* 0, or errno of this request */
};

/*
 * Have the daemon carry out @nr requests, in any order and whatever becomes of
 * the others.  So what must come after them, as the end of their transaction,
 * is sent when they have been answered.
 *
 * @t: the transaction of all of them, XBT_NULL: each is by itself, and others'
 *   requests may be carried out in between
 *
 * Returns true if all have been answered: see their error and value.  false,
 * errno: one was too long (E2BIG), and none has been sent; or the connection is
 * not usable any more, and nobody knows which have been carried out.  No value
 * is left to be freed then.
 *
 * Context: may block; any thread.  Requests of other threads wait.
 */
bool xs_batch(struct xs_handle *h, xs_transaction_t t,
              struct xs_batch_request *requests, unsigned int nr);

#endif /* XENSTORE_BATCH_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
