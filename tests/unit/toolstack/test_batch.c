// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to xenstored that are sent at once: xs_batch.h, a part of
 * libxenstore's xs.c, of which there is here what it uses.  A daemon plays that
 * answers as a test says: in any order, falsely, or no more.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "tap.h"
#include "xenstore_batch.h"

/*---------- what xs.c has ----------*/

#define USE_PTHREAD
#define XENSTORE_PAYLOAD_MAX 4096
#define XEN_TAILQ_EMPTY TAILQ_EMPTY
#define XEN_TAILQ_FIRST TAILQ_FIRST
#define XEN_TAILQ_REMOVE TAILQ_REMOVE
#define min(a, b) ((a) < (b) ? (a) : (b))

enum xsd_sockmsg_type {
    XS_READ = 2, XS_WRITE = 11, XS_RM = 13, XS_ERROR = 16,
};

struct xsd_sockmsg {
    uint32_t type, req_id, tx_id, len;
};

struct xs_stored_msg {
    TAILQ_ENTRY(xs_stored_msg) list;
    struct xsd_sockmsg hdr;
    char *body;
};

struct xs_handle {
    int fd;
    bool is_socket, read_thr_exists, in_batch;
    TAILQ_HEAD(, xs_stored_msg) reply_list;
    int reply_mutex, request_mutex, reply_condvar;
};

static int closed;
static struct xs_handle handle;

static void lock(int *mutex)
{
    assert(!*mutex);
    *mutex = 1;
}

static void unlock(int *mutex)
{
    assert(*mutex);
    *mutex = 0;
}

static void wait_for_thread(struct xs_handle *h);

#define mutex_lock lock
#define mutex_unlock unlock
#define condvar_wait(c, m) wait_for_thread(h)
#define read_thread_exists(h) ((h)->read_thr_exists)
#define close(fd) close_connection(fd)

/*
 * The thread closes its connection, too, when it reads what it does not expect:
 * so it must find none, and must expect replies until then.
 */
static int close_connection(int fd)
{
    assert(handle.fd == -1 && handle.in_batch && !handle.reply_mutex);
    closed = fd;
    errno = EIO;

    return 0;
}

static int get_error(const char *text)
{
    return !strcmp(text, "ENOENT") ? ENOENT : EINVAL;
}

static void free_no_errno(void *p)
{
    int saved_errno = errno;

    free(p);
    errno = saved_errno;
}

/*---------- the daemon ----------*/

#define MAX_ASKED 200

static struct {
    /* what it has been asked, by message */
    struct { struct xsd_sockmsg hdr; char body[5000]; } asked[MAX_ASKED];
    unsigned int nr_asked, writes, answered, most_waiting;
    /* how it answers */
    bool backwards;
    unsigned int last_write, last_reply;    /* with that it is gone; 0: no */
    const char *lie;            /* what is false, of this reply */
    unsigned int lie_at;
    unsigned int more;          /* replies that nobody has asked for */
} daemon;

/* As if read from a socket: each message whole, one behind the other. */
static bool write_request(struct xs_handle *h, struct iovec *iov,
                          unsigned int nr)
{
    unsigned int i;

    assert(h->request_mutex && h->in_batch);
    if (h->fd == -1) {
        errno = EBADF;
        return false;
    }
    if (++daemon.writes == daemon.last_write) {
        errno = EPIPE;
        return false;
    }
    for (i = 0; i < nr;) {
        struct xsd_sockmsg *hdr = iov[i].iov_base;
        size_t len = 0;

        assert(iov[i].iov_len == sizeof(*hdr) && daemon.nr_asked < MAX_ASKED);
        daemon.asked[daemon.nr_asked].hdr = *hdr;
        for (i++; i < nr && len < hdr->len; i++) {
            memcpy(daemon.asked[daemon.nr_asked].body + len, iov[i].iov_base,
                   iov[i].iov_len);
            len += iov[i].iov_len;
        }
        assert(len == hdr->len);
        daemon.nr_asked++;
    }
    if (daemon.nr_asked - daemon.answered > daemon.most_waiting)
        daemon.most_waiting = daemon.nr_asked - daemon.answered;

    return true;
}

/* The next reply; what is below /not is not there. */
static struct xs_stored_msg *reply(void)
{
    unsigned int first = daemon.answered / 64 * 64;
    unsigned int end = min(first + 64, daemon.nr_asked);
    unsigned int i = daemon.backwards ? first + end - 1 - daemon.answered
                                      : daemon.answered;
    const char *body = daemon.asked[i].body;
    struct xs_stored_msg *msg = calloc(1, sizeof(*msg));

    assert(daemon.answered++ < daemon.nr_asked);
    msg->hdr = daemon.asked[i].hdr;
    if (!strncmp(body, "/not", 4)) {
        msg->hdr.type = XS_ERROR;
        msg->body = strdup("ENOENT");
    } else if (msg->hdr.type == XS_READ) {
        msg->body = strdup(body + 1);
    } else {
        msg->body = strdup("OK");
    }
    if (daemon.lie && daemon.answered == daemon.lie_at) {
        if (!strcmp(daemon.lie, "type"))
            msg->hdr.type = XS_RM;
        else if (!strcmp(daemon.lie, "again"))
            msg->hdr.req_id = daemon.asked[0].hdr.req_id;
        else if (!strcmp(daemon.lie, "other"))
            msg->hdr.req_id = 0;        /* as of all that is no batch */
        else
            msg->hdr.req_id = daemon.nr_asked + 1;
    }

    return msg;
}

static int read_message(struct xs_handle *h, int nonblocking)
{
    struct xs_stored_msg *msg;

    assert(!nonblocking && !h->reply_mutex && h->in_batch);
    if (daemon.answered + 1 == daemon.last_reply) {
        errno = ECONNRESET;
        return -1;
    }
    msg = reply();
    TAILQ_INSERT_TAIL(&h->reply_list, msg, list);

    return 0;
}

/* The thread reads all that there is, or ends. */
static void wait_for_thread(struct xs_handle *h)
{
    assert(h->reply_mutex);
    if (daemon.last_reply) {
        h->fd = -1;
        return;
    }
    while (daemon.answered < daemon.nr_asked) {
        struct xs_stored_msg *msg = reply();

        TAILQ_INSERT_TAIL(&h->reply_list, msg, list);
    }
    for (; daemon.more; daemon.more--) {
        struct xs_stored_msg *msg;

        daemon.answered--;
        msg = reply();
        TAILQ_INSERT_TAIL(&h->reply_list, msg, list);
    }
}

#include "xs_batch.h"

/*---------- cases ----------*/

static struct xs_handle *connection(bool is_socket, bool thread)
{
    memset(&daemon, 0, sizeof(daemon));
    closed = 0;
    handle = (struct xs_handle) {
        .fd = 5, .is_socket = is_socket, .read_thr_exists = thread,
    };
    TAILQ_INIT(&handle.reply_list);

    return &handle;
}

#define MANY 150

/* @nr keys, of which each seventh is not there: the first one is. */
static void ask(struct xs_batch_request *r, unsigned int nr)
{
    static char path[MANY][20];
    unsigned int i;

    memset(r, 0xff, nr * sizeof(*r));
    for (i = 0; i < nr; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/%u", i % 7 == 3 ? "/not" : "", i);
        r[i].kind = XS_BATCH_READ;
        r[i].path = path[i];
    }
}

/* Each has its own value, or ENOENT; values are freed. */
static bool answered(struct xs_batch_request *r, unsigned int nr)
{
    bool all = true;
    unsigned int i;

    for (i = 0; i < nr; i++) {
        all &= i % 7 == 3 ? !r[i].value && r[i].error == ENOENT
                          : r[i].value && !r[i].error &&
                            !strcmp(r[i].value, r[i].path + 1);
        free(r[i].value);
    }

    return all;
}

static bool unlocked(void)
{
    return !handle.request_mutex && !handle.reply_mutex && !handle.in_batch;
}

/* As it was before: nobody holds a lock, nothing is left of a reply. */
static bool at_rest(void)
{
    return unlocked() && TAILQ_EMPTY(&handle.reply_list);
}

/* As xs_close(). */
static void forget(struct xs_handle *h)
{
    struct xs_stored_msg *msg;

    while ((msg = TAILQ_FIRST(&h->reply_list))) {
        TAILQ_REMOVE(&h->reply_list, msg, list);
        free(msg->body);
        free(msg);
    }
}

static void test_answers(void)
{
    static const struct {
        const char *name;
        bool is_socket, thread, backwards;
        unsigned int nr, writes, waiting;
    } t[] = {
        { "a socket: one write for all", true, false, false, 45, 1, 45 },
        { "a socket, with a thread that reads", true, true, false, 45, 1, 45 },
        { "answered backwards: each has its own", true, false, true, 45, 1, 45 },
        { "... also from the thread", true, true, true, 45, 1, 45 },
        { "a device: one after the other", false, false, false, 45, 45, 1 },
        { "... from the thread", false, true, false, 45, 45, 1 },
        { "more than fit at once", true, false, false, MANY, 3, 64 },
        { "... backwards, from the thread", true, true, true, MANY, 3, 64 },
        { "exactly as many as fit", true, false, false, 64, 1, 64 },
        { "none: nothing is sent", true, false, false, 0, 0, 0 },
    };
    struct xs_batch_request r[MANY];
    size_t i;

    for (i = 0; i < NR(t); i++) {
        struct xs_handle *h = connection(t[i].is_socket, t[i].thread);

        daemon.backwards = t[i].backwards;
        ask(r, t[i].nr);
        ok_("%s", xs_batch(h, 0, r, t[i].nr) && answered(r, t[i].nr) &&
            daemon.writes == t[i].writes &&
            daemon.most_waiting == t[i].waiting && at_rest() && h->fd == 5,
            t[i].name);
    }
}

static void test_messages(void)
{
    struct xs_batch_request r[3] = {
        { .kind = XS_BATCH_WRITE, .path = "/a", .data = "17" },
        { .kind = XS_BATCH_RM, .path = "/not/b" },
        { .kind = XS_BATCH_READ, .path = "/c" },
    };
    struct xs_handle *h = connection(true, false);

    ok_("a write, a removal and a read: each its result",
        xs_batch(h, 9, r, 3) && !r[0].error && !r[0].value &&
        r[1].error == ENOENT && !r[1].value && !strcmp(r[2].value, "c"));
    ok_("... the messages are xenstore's, all of the transaction",
        daemon.asked[0].hdr.type == XS_WRITE && daemon.asked[0].hdr.len == 5 &&
        !memcmp(daemon.asked[0].body, "/a\0" "17", 5) &&
        daemon.asked[1].hdr.type == XS_RM && daemon.asked[1].hdr.len == 7 &&
        daemon.asked[2].hdr.type == XS_READ && daemon.asked[0].hdr.tx_id == 9 &&
        daemon.asked[1].hdr.tx_id == 9 && daemon.asked[2].hdr.tx_id == 9);
    free(r[2].value);
}

static void test_too_long(void)
{
    static char data[XENSTORE_PAYLOAD_MAX];
    struct xs_batch_request r[2] = {
        { .kind = XS_BATCH_READ, .path = "/c" },
        { .kind = XS_BATCH_WRITE, .path = "/a", .data = data },
    };
    struct xs_handle *h = connection(true, false);

    memset(data, 'x', sizeof(data) - 3);
    ok_("as long as a message may be", xs_batch(h, 0, r, 2));
    free(r[0].value);
    data[sizeof(data) - 3] = 'x';
    h = connection(true, false);
    ok_("longer: nothing is sent, and the connection stays",
        !xs_batch(h, 0, r, 2) && errno == E2BIG && !daemon.writes &&
        at_rest() && !r[0].value && !closed && h->fd == 5);
    ok_("... nor if it is the first",
        !xs_batch(h, 0, &r[1], 1) && errno == E2BIG && !daemon.writes);
}

/* After that nobody knows what comes next. */
static void test_broken(void)
{
    static const struct {
        const char *name;
        bool thread;
        unsigned int nr, last_write, last_reply;
        const char *lie;
        int error;
        unsigned int lie_at, more;
    } t[] = {
        { "it cannot be sent", false, 45, 1, 0, NULL, EPIPE },
        { "nor the second part of it", false, MANY, 2, 0, NULL, EPIPE },
        { "a reply does not come", false, 45, 0, 20, NULL, ECONNRESET },
        { "the thread has ended", true, 45, 0, 1, NULL, EINVAL },
        { "a reply of another kind", false, 45, 0, 0, "type", EBADF, 2 },
        { "a second reply to one", false, 45, 0, 0, "again", EBADF, 2 },
        { "a reply to none", false, 45, 0, 0, "none", EBADF, 2 },
        { "a reply that is not of a batch", false, 45, 0, 0, "other", EBADF, 1 },
        { "... in the place of the second one", false, 45, 0, 0, "other", EBADF,
          2 },
        { "a second reply to the first part", false, MANY, 0, 0, "again", EBADF,
          65 },
        { "half of the replies are left", true, 45, 0, 0, "none", EBADF, 20 },
        { "one more than was asked for", true, 45, 0, 0, NULL, EBADF, 0, 1 },
        { "two more", true, 45, 0, 0, NULL, EBADF, 0, 2 },
    };
    struct xs_batch_request r[MANY];
    size_t i;

    for (i = 0; i < NR(t); i++) {
        struct xs_handle *h = connection(true, t[i].thread);
        bool ended, again, none = true;
        unsigned int n;

        daemon.last_write = t[i].last_write;
        daemon.last_reply = t[i].last_reply;
        daemon.lie = t[i].lie;
        daemon.lie_at = t[i].lie_at;
        daemon.more = t[i].more;
        ask(r, t[i].nr);
        errno = 0;
        ended = !xs_batch(h, 0, r, t[i].nr) && errno == t[i].error;
        for (n = 0; n < t[i].nr; n++)
            none &= !r[n].value;
        ok_("%s: the connection is closed, no value is left", ended && none &&
            h->fd == -1 && (t[i].last_reply == 1 || closed == 5) && unlocked(),
            t[i].name);
        /* Nobody takes what the thread has read, until xs_close() frees it. */
        errno = 0;
        again = xs_batch(h, 0, r, t[i].nr);
        ok_("%s: ... and so it stays", !again && errno == EBADF && !r[1].value &&
            unlocked(), t[i].name);
        forget(h);
    }
}

int main(void)
{
    test_answers();
    test_messages();
    test_too_long();
    test_broken();

    return done_testing();
}
