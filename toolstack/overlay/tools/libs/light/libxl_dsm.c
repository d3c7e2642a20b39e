/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * What libxl asks of dsmd: a call, in libxl's event loop.  See libxl_dsm.h.
 *
 *   start -> sending -> receiving -> callback
 *               |           |
 *               +-----------+--> time-out, abort, end of connection: callback
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include <sys/socket.h>

#include "libxl_internal.h"

static int limit_ms(const libxl__dsm_call *call)
{
    libxl__dsm_op op = call->request.op;

    return call->within_ms ? call->within_ms
           : op == LIBXL__DSM_ENABLE ? LIBXL__DSM_ENABLE_MS
           : op == LIBXL__DSM_NODE ? LIBXL__DSM_NODE_MS
           : op == LIBXL__DSM_PLACE ? LIBXL__DSM_PLACE_MS
           : op == LIBXL__DSM_HOME ? LIBXL__DSM_HOME_MS
           : op == LIBXL__DSM_FOLLOW ? LIBXL__DSM_FOLLOW_MS
           : LIBXL__DSM_STATE_MS;
}

/*
 * Is it not known what has become of the request, or is it done in part?
 * dsmd-host says "internal" of a dsmd that has not answered: it may have moved
 * vCPUs by now, and nobody would ask for them otherwise.
 */
static bool is_unknown(const libxl__dsm_call *call)
{
    libxl__dsm_op op = call->request.op;

    switch (call->reply.error) {
    case LIBXL__DSM_TIMEOUT:
    case LIBXL__DSM_CUT:
    case LIBXL__DSM_GARBAGE:
    case LIBXL__DSM_VCPU_INFO:
        return true;
    case LIBXL__DSM_INTERNAL:
        return op == LIBXL__DSM_PLACE || op == LIBXL__DSM_HOME;
    default:
        return false;
    }
}

void libxl__dsm_init(libxl__dsm_call *call)
{
    memset(call, 0, sizeof(*call));
    libxl__ev_fd_init(&call->efd);
    libxl__ev_time_init(&call->timer);
}

void libxl__dsm_stop(libxl__gc *gc, libxl__dsm_call *call)
{
    libxl__ev_fd_deregister(gc, &call->efd);
    libxl__ev_time_deregister(gc, &call->timer);
    libxl__carefd_close(call->cfd);
    call->cfd = NULL;
}

static void complain(libxl__gc *gc, const libxl__dsm_call *call)
{
    const libxl__dsm_reply *r = &call->reply;

    if (call->quiet)
        return;
    switch (r->error) {
    case LIBXL__DSM_ABSENT:
        LOGD(ERROR, call->request.domid, "dsmd-host, which a vnode on another "
             "host needs, does not run here (%s); start it", r->text);
        break;
    case LIBXL__DSM_STRANGER:
        LOGD(ERROR, call->request.domid, "dsmd-host is not asked: %s", r->text);
        break;
    case LIBXL__DSM_TIMEOUT:
    case LIBXL__DSM_CUT:
    case LIBXL__DSM_GARBAGE:
        LOGD(ERROR, call->request.domid,
             "no reply from dsmd-host (%s): %s; see its log",
             libxl__dsm_error_word(r->error), r->text);
        break;
    default:
        LOGD(ERROR, call->request.domid, "dsmd-host refuses (%s): %s",
             libxl__dsm_error_word(r->error), r->text);
        break;
    }
}

/* The last that is done to a call. */
static void end(libxl__egc *egc, libxl__dsm_call *call, int rc)
{
    STATE_AO_GC(call->ao);

    libxl__dsm_stop(gc, call);
    call->callback(egc, call, rc);
}

static void end_by_reply(libxl__egc *egc, libxl__dsm_call *call)
{
    STATE_AO_GC(call->ao);
    libxl__dsm_error error = call->reply.error;

    if (error)
        complain(gc, call);
    end(egc, call, !error ? 0 : is_unknown(call) ? ERROR_VNODE_UNSETTLED
                                                 : ERROR_VNODE_REFUSED);
}

static void end_unknown(libxl__egc *egc, libxl__dsm_call *call,
                        libxl__dsm_error error, const char *text)
{
    call->reply.error = error;
    snprintf(call->reply.text, sizeof(call->reply.text), "%s", text);
    end_by_reply(egc, call);
}

static void time_out(libxl__egc *egc, libxl__ev_time *ev,
                     const struct timeval *requested_abs, int rc)
{
    libxl__dsm_call *call = CONTAINER_OF(ev, *call, timer);
    STATE_AO_GC(call->ao);

    libxl__ev_time_init(&call->timer);  /* whichever rc, it is over */
    call->reply.error = LIBXL__DSM_TIMEOUT;
    if (rc == ERROR_ABORTED)
        end(egc, call, rc);
    else
        end_unknown(egc, call, LIBXL__DSM_TIMEOUT,
                    GCSPRINTF("nothing within %d ms",
                              limit_ms(call)));
}

/* The line is there: nothing may follow it. */
static void understand(libxl__egc *egc, libxl__dsm_call *call, char *new_line)
{
    STATE_AO_GC(call->ao);
    size_t len = new_line - call->in;

    *new_line = '\0';
    if (strlen(call->in) != len || len + 1 != call->got) {
        end_unknown(egc, call, LIBXL__DSM_GARBAGE, "it is not one line");
        return;
    }
    libxl__dsm_parse(gc, &call->request, call->in, &call->reply);
    end_by_reply(egc, call);
}

/* Is there nothing more to read: not yet, or because it has ended? */
static bool receive(libxl__egc *egc, libxl__dsm_call *call)
{
    ssize_t n = recv(call->efd.fd, call->in + call->got,
                     LIBXL__DSM_REPLY_MAX + 1 - call->got, 0);
    char *new_line;

    if (n < 0 && errno == EINTR)
        return false;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return true;                    /* more will come */
    if (n <= 0) {
        end_unknown(egc, call, LIBXL__DSM_CUT,
                    n ? strerror(errno) : "the connection ended");
        return true;
    }
    new_line = memchr(call->in + call->got, '\n', n);
    call->got += n;
    if (new_line)
        understand(egc, call, new_line);
    else if (call->got > LIBXL__DSM_REPLY_MAX)
        end_unknown(egc, call, LIBXL__DSM_GARBAGE, "it is too long");
    else
        return false;

    return true;
}

/* Has it ended, or is there no room for more? */
static bool transmit(libxl__egc *egc, libxl__dsm_call *call)
{
    STATE_AO_GC(call->ao);
    ssize_t n = send(call->efd.fd, call->out + call->sent,
                     call->out_len - call->sent, MSG_NOSIGNAL);
    int rc;

    if (n < 0 && errno == EINTR)
        return false;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return true;
    if (n < 0) {
        end_unknown(egc, call, LIBXL__DSM_CUT, strerror(errno));
        return true;
    }
    call->sent += n;
    if (call->sent < call->out_len)
        return false;

    rc = libxl__ev_fd_modify(gc, &call->efd, POLLIN);
    if (rc)
        end(egc, call, ERROR_VNODE_UNSETTLED);

    return rc;
}

static void fd_callback(libxl__egc *egc, libxl__ev_fd *ev, int fd,
                        short events, short revents)
{
    libxl__dsm_call *call = CONTAINER_OF(ev, *call, efd);
    bool over = false;

    while (!over)
        over = call->sent < call->out_len ? transmit(egc, call)
                                          : receive(egc, call);
}

int libxl__dsm_start(libxl__gc *gc, libxl__dsm_call *call)
{
    int rc;

    call->sent = call->got = 0;
    call->out = libxl__dsm_format(gc, &call->request);
    if (!call->out) {
        rc = ERROR_FAIL;
        goto out;
    }
    call->out_len = strlen(call->out);
    if (!call->in)
        call->in = libxl__zalloc(gc, LIBXL__DSM_REPLY_MAX + 1);

    rc = libxl__dsm_connect(gc, LIBXL__DSM_SOCKET, &call->cfd, &call->reply);
    if (rc) {
        complain(gc, call);
        goto out;
    }
    rc = libxl__ev_time_register_rel(call->ao, &call->timer, time_out,
                                     limit_ms(call));
    if (rc) goto out;
    rc = libxl__ev_fd_register(gc, &call->efd, fd_callback,
                               libxl__carefd_fd(call->cfd), POLLOUT);

 out:
    if (rc)
        libxl__dsm_stop(gc, call);
    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
