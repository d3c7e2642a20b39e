/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * What libxl asks of dsmd: the socket.  See libxl_dsm.h.
 *
 * connect() to a UNIX socket that does not block is done at once or has failed.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include <sys/socket.h>
#include <sys/un.h>

#include "libxl_internal.h"

static int fail(libxl__dsm_reply *reply, libxl__dsm_error error,
                const char *text)
{
    reply->error = error;
    snprintf(reply->text, sizeof(reply->text), "%s", text);

    return ERROR_VNODE_REFUSED;
}

/* Root's, or of who runs this. */
static int check_peer(libxl__gc *gc, int fd, libxl__dsm_reply *reply)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    int rc = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
        len != sizeof(cred))
        rc = fail(reply, LIBXL__DSM_STRANGER,
                  "who listens there cannot be asked for");
    else if (cred.uid && cred.uid != geteuid())
        rc = fail(reply, LIBXL__DSM_STRANGER,
                  GCSPRINTF("user %lu listens there, who is not root",
                            (unsigned long)cred.uid));

    return rc;
}

int libxl__dsm_connect(libxl__gc *gc, const char *path, libxl__carefd **cfd,
                       libxl__dsm_reply *reply)
{
    libxl__carefd *opened = NULL;
    struct sockaddr_un un;
    int fd, rc;

    *cfd = NULL;
    memset(reply, 0, sizeof(*reply));
    rc = libxl__prepare_sockaddr_un(gc, &un, path, "dsmd");
    if (rc) {
        rc = fail(reply, LIBXL__DSM_ABSENT, "its path is too long");
        goto out;
    }

    libxl__carefd_begin();
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    opened = libxl__carefd_opened(CTX, fd);
    if (!opened) {
        rc = fail(reply, LIBXL__DSM_ABSENT,
                  GCSPRINTF("no socket: %s", strerror(errno)));
        goto out;
    }
    if (connect(fd, (struct sockaddr *)&un, sizeof(un))) {
        bool busy = errno == EAGAIN;

        rc = fail(reply, busy ? LIBXL__DSM_BUSY : LIBXL__DSM_ABSENT,
                  busy ? "it has too many callers just now"
                       : GCSPRINTF("%s: %s", path, strerror(errno)));
        goto out;
    }
    rc = check_peer(gc, fd, reply);
    if (rc) goto out;
    *cfd = opened;
    opened = NULL;

 out:
    libxl__carefd_close(opened);
    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
