// SPDX-License-Identifier: GPL-2.0
/*
 * libxl's own words with a real dsmd-host: libxl_dsm_json.c and
 * libxl_dsm_socket.c as they are, with a wait in place of libxl's event loop.
 *
 * libxl_client SOCKET UUID DOMID enable HOST | node VNODE HOST KIB POOL | state
 *
 * enable: 2 MiB at home, 2 MiB at HOST, pool 256 KiB.  Prints what libxl makes of
 * the reply: the word and the text, or "ok" and a line for each vnode.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libxl_internal.h"

static libxl_ctx the_ctx;
libxl__gc fake_gc = { &the_ctx };

void fake_log(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
}

/* Not freed: the process ends soon. */
char *libxl__sprintf(libxl__gc *gc, const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    (void)gc;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        abort();
    va_end(ap);

    return s;
}

/* What libxl has of descriptors: one is enough. */
struct libxl__carefd { int fd; };

void libxl__carefd_begin(void)
{
}

libxl__carefd *libxl__carefd_opened(libxl_ctx *ctx, int fd)
{
    static libxl__carefd one;

    (void)ctx;
    one.fd = fd;

    return fd < 0 ? NULL : &one;
}

int libxl__carefd_close(libxl__carefd *cfd)
{
    return cfd ? close(cfd->fd) : 0;
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

static int make_request(char **words, int nr, libxl__dsm_request *req)
{
    static libxl__dsm_range ranges[2] = {
        { 0, 0, 2048, NULL, 0 },
        { 1, 2 << 20, 2048, NULL, 256 },
    };

    static libxl__dsm_place place = { 1, 1, NULL };

    req->uuid = words[2];
    req->domid = atoi(words[3]);
    if ((nr == 6 || nr == 7) && !strcmp(words[4], "enable")) {
        /* A word more: and its vCPU 1. */
        place.host = words[5];
        req->nr_places = nr - 6;
        req->place = &place;
        req->op = LIBXL__DSM_ENABLE;
        req->name = "web";
        req->nr_vcpus = 2;
        req->nr_ranges = 2;
        req->range = ranges;
        ranges[1].host = words[5];
    } else if (nr == 9 && !strcmp(words[4], "node")) {
        req->op = LIBXL__DSM_NODE;
        req->vnode = atoi(words[5]);
        req->host = words[6];
        req->kb = strtoull(words[7], NULL, 10);
        req->pool_kb = strtoull(words[8], NULL, 10);
    } else if (nr == 7 && !strcmp(words[4], "leaving")) {
        req->op = LIBXL__DSM_LEAVING;
        req->vnode = atoi(words[5]);
        req->kb = strtoull(words[6], NULL, 10);
    } else if ((nr == 6 && !strcmp(words[4], "place")) ||
               (nr == 5 && !strcmp(words[4], "home"))) {
        req->op = nr == 6 ? LIBXL__DSM_PLACE : LIBXL__DSM_HOME;
        req->host = words[5];
        req->nr_vcpus = 2;
        req->vcpus = (const uint8_t *)"\x02";
    } else if (nr == 5 && !strcmp(words[4], "follow")) {
        req->op = LIBXL__DSM_FOLLOW;
    } else if (nr == 5 && !strcmp(words[4], "state")) {
        req->op = LIBXL__DSM_STATE;
    } else {
        return 1;
    }

    return 0;
}

/* The reply without its new line; NULL: the connection ended. */
static char *converse(int fd, const char *line)
{
    static char reply[LIBXL__DSM_REPLY_MAX + 2];
    struct pollfd one = { .fd = fd, .events = POLLIN };
    size_t got = 0;
    ssize_t n;

    if (write(fd, line, strlen(line)) != (ssize_t)strlen(line))
        return NULL;
    while (poll(&one, 1, 60000) > 0 && got < sizeof(reply) - 1) {
        n = read(fd, reply + got, sizeof(reply) - 1 - got);
        if (n <= 0)
            return NULL;
        got += n;
        if (reply[got - 1] == '\n') {
            reply[got - 1] = '\0';
            return reply;
        }
    }

    return NULL;
}

int main(int argc, char **argv)
{
    libxl__gc *gc = &fake_gc;
    libxl__dsm_request req = { 0 };
    libxl__dsm_reply reply;
    libxl__carefd *cfd;
    unsigned int i;
    char *line;

    if (argc < 5 || make_request(argv, argc, &req))
        return 2;
    if (libxl__dsm_connect(gc, argv[1], &cfd, &reply)) {
        printf("%s %s\n", libxl__dsm_error_word(reply.error), reply.text);
        return 1;
    }
    line = converse(cfd->fd, libxl__dsm_format(gc, &req));
    if (!line) {
        printf("cut\n");
        return 1;
    }
    libxl__dsm_parse(gc, &req, line, &reply);
    printf("%s%s%s\n", libxl__dsm_error_word(reply.error),
           reply.text[0] ? " " : "", reply.text);
    for (i = 0; i < reply.nr_nodes; i++)
        printf("%u %d %lu %lu %lu %lu\n", reply.node[i].vnode, reply.node[i].link,
               (unsigned long)reply.node[i].there_kb, (unsigned long)reply.node[i].modified,
               (unsigned long)reply.node[i].shared, (unsigned long)reply.node[i].home);
    for (i = 0; i < reply.nr_vcpus; i++)
        printf("vCPU %u %s\n", reply.vcpu[i].vcpu, reply.vcpu[i].host);
    for (i = 0; i < reply.nr_paused; i++)
        printf("paused %s\n", reply.paused[i]);
    libxl__carefd_close(cfd);

    return reply.error != LIBXL__DSM_OK;
}
