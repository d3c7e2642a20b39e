// SPDX-License-Identifier: GPL-2.0
/*
 * The socket of dsmd, as libxl finds it: libxl_dsm_socket.c, on real sockets.
 */
#include <sys/socket.h>
#include <sys/stat.h>

#include "libxl_internal.h"
#include "tap.h"

static libxl_ctx the_ctx;
static libxl__gc the_gc = { &the_ctx };
static char folder[] = "/tmp/test-dsm-socket.XXXXXX";
static uid_t user;              /* who is said to listen; 0: as it is */
static bool no_word;

char *libxl__sprintf(libxl__gc *gc, const char *fmt, ...)
{
    static char text[4][500];
    static unsigned int turn;
    char *s = text[turn++ % 4];
    va_list ap;

    (void)gc;
    va_start(ap, fmt);
    vsnprintf(s, sizeof(text[0]), fmt, ap);
    va_end(ap);

    return s;
}

void libxl__carefd_begin(void)
{
}

libxl__carefd *libxl__carefd_opened(libxl_ctx *ctx, int fd)
{
    static int kept;

    (void)ctx;
    kept = fd;

    return fd < 0 ? NULL : (libxl__carefd *)&kept;
}

int libxl__carefd_close(libxl__carefd *cfd)
{
    return cfd ? close(*(int *)cfd) : 0;
}

int libxl__prepare_sockaddr_un(libxl__gc *gc, struct sockaddr_un *un,
                               const char *path, const char *what)
{
    (void)gc, (void)what;
    if (strlen(path) >= sizeof(un->sun_path))
        return ERROR_INVAL;
    memset(un, 0, sizeof(*un));
    un->sun_family = AF_UNIX;
    strcpy(un->sun_path, path);

    return 0;
}

/* As if somebody else listened. */
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    int r = no_word ? -1 : __real_getsockopt(fd, level, name, value, len);

    if (!r && user && name == SO_PEERCRED)
        ((struct ucred *)value)->uid = user;

    return r;
}

static const char *path_of(const char *name)
{
    return libxl__sprintf(&the_gc, "%s/%s", folder, name);
}

static int listen_at(const char *path, int backlog)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un un;

    libxl__prepare_sockaddr_un(&the_gc, &un, path, "");
    if (bind(fd, (struct sockaddr *)&un, sizeof(un)) || listen(fd, backlog))
        abort();

    return fd;
}

static bool finds(const char *path, libxl__dsm_error error, const char *text)
{
    libxl__dsm_reply reply;
    libxl__carefd *cfd;
    int rc = libxl__dsm_connect(&the_gc, path, &cfd, &reply);
    bool good = error ? rc == ERROR_VNODE_REFUSED && !cfd : !rc && cfd;

    good &= reply.error == error && strstr(reply.text, text);
    if (!good)
        note("rc %d, error %d, \"%s\"", rc, reply.error, reply.text);
    if (!rc)
        libxl__carefd_close(cfd);

    return good;
}

/* How many descriptors are open. */
static int open_fds(void)
{
    int fd, nr = 0;

    for (fd = 0; fd < 100; fd++)
        nr += fcntl(fd, F_GETFD) >= 0;

    return nr;
}

int main(void)
{
    const char *path;
    libxl__dsm_reply reply;
    libxl__carefd *cfd;
    char name[200] = "";
    int fd, flags, i, before;

    if (!mkdtemp(folder))
        abort();
    path = strdup(path_of("sock"));
    before = open_fds();

    ok_("no socket", finds(path, LIBXL__DSM_ABSENT, "No such file"));
    memset(name, 'x', sizeof(name) - 1);
    ok_("a path that is too long", finds(name, LIBXL__DSM_ABSENT, "too long"));
    fd = listen_at(path, 10);
    ok_("somebody listens", finds(path, LIBXL__DSM_OK, ""));
    user = 65533;
    ok_("a stranger listens",
        finds(path, LIBXL__DSM_STRANGER, "user 65533 listens"));
    user = 0;
    no_word = true;
    ok_("nobody knows who listens",
        finds(path, LIBXL__DSM_STRANGER, "cannot be asked"));
    no_word = false;
    close(fd);
    ok_("nobody listens any more",
        finds(path, LIBXL__DSM_ABSENT, "Connection refused"));
    ok_("nothing is left open", open_fds() == before);

    unlink(path);
    fd = listen_at(path, 0);
    if (libxl__dsm_connect(&the_gc, path, &cfd, &reply))
        abort();
    flags = fcntl(*(int *)cfd, F_GETFL);
    ok_("it neither blocks nor is it inherited", flags & O_NONBLOCK &&
        fcntl(*(int *)cfd, F_GETFD) & FD_CLOEXEC);
    for (i = 0; i < 20; i++)
        if (libxl__dsm_connect(&the_gc, path, &cfd, &reply))
            break;
    ok_("too many callers: busy, not stuck", i < 20 &&
        reply.error == LIBXL__DSM_BUSY);
    close(fd);
    unlink(path);
    rmdir(folder);
    free((void *)path);

    return done_testing();
}
