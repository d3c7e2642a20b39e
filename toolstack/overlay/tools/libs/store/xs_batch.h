/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Requests that are sent at once.  See xenstore_batch.h.
 *
 * A part of xs.c, whose locks and messages it uses: included there.
 *
 * Locking: request_mutex is held for a whole batch; in_batch is changed with
 * reply_mutex held, too, since the read thread looks at it.
 */

/*
 * So many are under way at once: the parts of all fit into one sendmsg(), and
 * a daemon that was written for one at a time has not much to keep for us.
 */
#define BATCH_MAX 64

/* Header, path, and what is written. */
#define BATCH_PARTS 3

/*
 * A kernel's device need not have room for more than one reply that is not read
 * yet: FreeBSD's has a page, and overwrites what is in it.
 */
static unsigned int batch_max(const struct xs_handle *h)
{
    return h->is_socket ? BATCH_MAX : 1;
}

static const enum xsd_sockmsg_type batch_types[] = {
    [XS_BATCH_READ]  = XS_READ,
    [XS_BATCH_WRITE] = XS_WRITE,
    [XS_BATCH_RM]    = XS_RM,
};

static size_t batch_len(const struct xs_batch_request *r)
{
    return strlen(r->path) + 1 +
           (r->kind == XS_BATCH_WRITE ? strlen(r->data) : 0);
}

/* The parts of one request; returns how many. */
static unsigned int batch_parts(const struct xs_batch_request *r,
                                struct xsd_sockmsg *msg, struct iovec *iov)
{
    unsigned int nr = 2;

    iov[0] = (struct iovec) { msg, sizeof(*msg) };
    iov[1] = (struct iovec) { (void *)r->path, strlen(r->path) + 1 };
    if (r->kind == XS_BATCH_WRITE)
        iov[nr++] = (struct iovec) { (void *)r->data, strlen(r->data) };

    return nr;
}

/* @number: of the first of them, by which their replies are known. */
static bool batch_send(struct xs_handle *h, xs_transaction_t t,
                       const struct xs_batch_request *requests,
                       unsigned int nr, unsigned int number)
{
    struct xsd_sockmsg msg[BATCH_MAX];
    struct iovec iov[BATCH_MAX * BATCH_PARTS];
    unsigned int i, parts = 0;

    for (i = 0; i < nr; i++) {
        msg[i] = (struct xsd_sockmsg) {
            .type = batch_types[requests[i].kind],
            .req_id = number + i,
            .tx_id = t,
            .len = batch_len(&requests[i]),
        };
        parts += batch_parts(&requests[i], &msg[i], iov + parts);
    }

    return write_request(h, iov, parts);
}

/* As read_reply(), for which there is one reply only. */
static struct xs_stored_msg *batch_reply(struct xs_handle *h)
{
    bool from_thread = read_thread_exists(h);
    struct xs_stored_msg *msg;

    if (!from_thread && read_message(h, 0) == -1)
        return NULL;

    mutex_lock(&h->reply_mutex);
#ifdef USE_PTHREAD
    while (XEN_TAILQ_EMPTY(&h->reply_list) && from_thread && h->fd != -1)
        condvar_wait(&h->reply_condvar, &h->reply_mutex);
#endif
    msg = XEN_TAILQ_FIRST(&h->reply_list);
    if (msg)
        XEN_TAILQ_REMOVE(&h->reply_list, msg, list);
    mutex_unlock(&h->reply_mutex);
    if (!msg)
        errno = EINVAL;

    return msg;
}

/* Whose reply it is, its number says; each is answered once. */
static bool batch_take(const struct xs_stored_msg *msg,
                       struct xs_batch_request *requests, unsigned int nr,
                       unsigned int number, bool *answered)
{
    unsigned int i = msg->hdr.req_id - number;
    enum xsd_sockmsg_type type = msg->hdr.type;

    if (i >= nr || answered[i] ||
        (type != XS_ERROR && type != batch_types[requests[i].kind])) {
        free(msg->body);
        errno = EBADF;
        return false;
    }
    answered[i] = true;
    if (type == XS_ERROR)
        requests[i].error = get_error(msg->body);
    if (type == XS_READ)
        requests[i].value = msg->body;
    else
        free(msg->body);

    return true;
}

/* What is left when all are answered would be the next request's. */
static bool batch_all_taken(struct xs_handle *h)
{
    bool all;

    mutex_lock(&h->reply_mutex);
    all = XEN_TAILQ_EMPTY(&h->reply_list);
    mutex_unlock(&h->reply_mutex);
    if (!all)
        errno = EBADF;

    return all;
}

static bool batch_receive(struct xs_handle *h,
                          struct xs_batch_request *requests, unsigned int nr,
                          unsigned int number)
{
    bool answered[BATCH_MAX] = { false };
    unsigned int i;

    for (i = 0; i < nr; i++) {
        struct xs_stored_msg *msg = batch_reply(h);
        bool taken = msg && batch_take(msg, requests, nr, number,
                                       answered);

        free_no_errno(msg);
        if (!taken)
            return false;
    }

    return batch_all_taken(h);
}

static void batch_mark(struct xs_handle *h, bool in_batch)
{
    mutex_lock(&h->reply_mutex);
    h->in_batch = in_batch;
    mutex_unlock(&h->reply_mutex);
}

bool xs_batch(struct xs_handle *h, xs_transaction_t t,
              struct xs_batch_request *requests, unsigned int nr)
{
    const unsigned int max = batch_max(h);
    unsigned int first, i;
    int saved_errno, fd;

    for (i = 0; i < nr; i++) {
        requests[i].value = NULL;
        requests[i].error = 0;
    }
    for (i = 0; i < nr; i++)
        if (batch_len(&requests[i]) > XENSTORE_PAYLOAD_MAX) {
            errno = E2BIG;
            return false;
        }

    mutex_lock(&h->request_mutex);
    batch_mark(h, true);
    for (first = 0; first < nr; first += max) {
        unsigned int some = min(nr - first, max);
        unsigned int number = first + 1; /* 0 is that of all that is no batch */

        if (!batch_send(h, t, &requests[first], some, number) ||
            !batch_receive(h, &requests[first], some, number))
            goto fail;
    }
    batch_mark(h, false);
    mutex_unlock(&h->request_mutex);

    return true;

 fail:
    /* As xs_talkv(): nobody knows what comes next, so nothing may. */
    saved_errno = errno;
    /* As read_thread(), which may end, too: so that one of us closes it. */
    fd = h->fd;
    h->fd = -1;
    close(fd);
    batch_mark(h, false);
    mutex_unlock(&h->request_mutex);
    for (i = 0; i < nr; i++) {
        free(requests[i].value);
        requests[i].value = NULL;
    }
    errno = saved_errno;

    return false;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
