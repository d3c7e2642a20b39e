/* SPDX-License-Identifier: GPL-2.0 */
/* See fake_dsmd.h. */
#include <sys/socket.h>

#include "fake_dsmd.h"

struct dsmd dsmd;

static int ours;                /* our end of the connection; 0: none */
static size_t got;
static char answer[80000];
static size_t answer_len, said;

static void hang_up(void)
{
    if (ours)
        close(ours);
    ours = 0;
    got = answer_len = said = 0;
}

static void boot(void)
{
    hang_up();
    dsmd = (struct dsmd) { 0 };
}

int libxl__dsm_connect(libxl__gc *gc, const char *path, libxl__carefd **cfd,
                       libxl__dsm_reply *reply)
{
    int fds[2];

    *cfd = NULL;
    memset(reply, 0, sizeof(*reply));
    if (dsmd.absent || fake_fails()) {
        reply->error = LIBXL__DSM_ABSENT;
        snprintf(reply->text, sizeof(reply->text), "%s: nobody", path);
        return ERROR_VNODE_REFUSED;
    }
    hang_up();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
        abort();
    ours = fds[0];
    if (dsmd.narrow &&
        setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &(int){ 1 }, sizeof(int)))
        abort();
    *cfd = libxl__carefd_opened(&fake_ctx, fds[1]);
    dsmd.connections++;

    return 0;
}

static void say(const char *text)
{
    snprintf(answer, sizeof(answer), "%s\n", text);
    answer_len = strlen(answer);
}

static uint64_t number(const char *key)
{
    char quoted[40];
    const char *s;

    snprintf(quoted, sizeof(quoted), "\"%s\":", key);
    s = strstr(dsmd.request, quoted);
    if (!s)
        dsmd.bad = true;

    return s ? strtoull(s + strlen(quoted), NULL, 10) : 0;
}

/* All or nothing: memory there, the pool here within Xen's limit. */
static void node(void)
{
    uint64_t nr = number("vnode"), kb = number("size_kib");
    uint64_t pool_kb = number("pool_kib"), rest_kb;

    if (nr >= NR_VNODES || !!kb != !!pool_kb) {
        dsmd.bad = true;
        return;
    }
    rest_kb = world.total_kb - dsmd.pool_kb[nr];
    if (kb < world.has_kb[nr] || (!kb && nr == 2 && dsmd.placed) ||
        (!kb && nr == 1 && dsmd.placed_1)) {
        say("{\"version\":1,\"ok\":false,\"error\":\"in-use\","
            "\"text\":\"the guest has more\"}");
        return;
    }
    if (rest_kb + pool_kb > world.limit_kb) {
        say("{\"version\":1,\"ok\":false,\"error\":\"memory-here\","
            "\"text\":\"the pool is above the limit\"}");
        return;
    }
    fake_effect();
    world.total_kb = rest_kb + pool_kb;
    dsmd.pool_kb[nr] = pool_kb;
    dsmd.there_kb[nr] = kb;
    say("{\"version\":1,\"ok\":true}");
}

/*
 * vCPU 4, or 2 and 3, to there or home.  The guest has not been told yet that
 * it may have it, or not any more, and there is memory there.
 */
static void where(bool placed)
{
    bool is_1 = strstr(dsmd.request, "\"vcpus\":[2,3]");
    const char *s = fake_get(is_1 ? "/local/domain/7/cpu/3/availability"
                                  : "/local/domain/7/cpu/4/availability");
    bool *is_placed = is_1 ? &dsmd.placed_1 : &dsmd.placed;

    if ((!is_1 && !strstr(dsmd.request, "\"vcpus\":[4]")) ||
        !dsmd.there_kb[is_1 ? 1 : 2] ||
        !strstr(dsmd.request, "\"host\":\"b\"") != !placed) {
        dsmd.bad = true;
        return;
    }
    if (*is_placed != placed) {
        if (s && !strcmp(s, "online"))
            dsmd.bad = true;
        if (dsmd.vcpu_up) {
            say("{\"version\":1,\"ok\":false,\"error\":\"vcpu-up\","
                "\"text\":\"vCPU 4 is up\"}");
            return;
        }
    }
    fake_effect();
    *is_placed = placed;
    say("{\"version\":1,\"ok\":true}");
}

/* The other host does as Xen here. */
static void follow(void)
{
    if (!strstr(dsmd.request, "00010203-0405-0607-0809-0a0b0c0d0e0f"))
        dsmd.bad = true;
    fake_effect();
    dsmd.paused = world.pauses;
    say("{\"version\":1,\"ok\":true}");
}

static void state(void)
{
    char text[2048];

    snprintf(text, sizeof(text), "{\"version\":1,\"ok\":true,%s\"vnodes\":["
             "{\"vnode\":2,\"link\":\"%s\",\"size_kib\":%"PRIu64","
             "\"pages_modified\":11,\"pages_shared\":12,\"pages_home\":13,"
             "\"faults_per_second\":14,\"median_ns\":15,\"p99_ns\":16}]}",
             fake_get("/libxl/7/vnuma/node/2/remote-vcpus")
             ? dsmd.paused ? "\"vcpus\":[{\"vcpu\":4,\"host\":\"b\"}],"
                             "\"paused\":[\"c\",\"b\"],"
             : dsmd.placed ? "\"vcpus\":[{\"vcpu\":4,\"host\":\"b\"},"
                             "{\"vcpu\":3,\"host\":\"b\"}],\"paused\":[\"c\"],"
                           : "\"vcpus\":[]," : "",
             dsmd.there_kb[2] ? "up" : "down", dsmd.there_kb[2]);
    say(text);
}

static void refuse(void)
{
    char text[2048];

    snprintf(text, sizeof(text), "{\"version\":1,\"ok\":false,\"error\":"
             "\"%s\",\"text\":\"%s\"}", dsmd.word, dsmd.text);
    say(text);
}

static void leaving(void)
{
    char path[80];

    snprintf(path, sizeof(path), "/local/domain/7/vnuma/node/%"PRIu64
             "/target-kb", number("vnode"));
    snprintf(dsmd.hint_target, sizeof(dsmd.hint_target), "%s",
             fake_get(path) ? : "");
    dsmd.hint_kb = number("size_kib");
    dsmd.hints++;
}

/* A request is there. */
static void act(void)
{
    enum dsmd_mood mood = dsmd.mood;

    if (strstr(dsmd.request, "\"op\":\"leaving\"")) {
        leaving();
        if (dsmd.hint_mood == DSMD_WORKS)
            say("{\"version\":1,\"ok\":true}");
        else if (dsmd.hint_mood == DSMD_REFUSES)
            refuse();
        else if (dsmd.hint_mood != DSMD_SILENT)
            hang_up();
        return;
    }
    dsmd.requests++;
    if (dsmd.on_request)
        dsmd.on_request();
    if (dsmd.requests <= dsmd.spared ||
        (dsmd.moody && dsmd.requests > dsmd.spared + dsmd.moody))
        mood = DSMD_WORKS;
    switch (mood) {
    case DSMD_SILENT:
        break;
    case DSMD_CUTS_FIRST:
        hang_up();
        break;
    case DSMD_REFUSES:
        refuse();
        break;
    case DSMD_SAYS:
        say(dsmd.raw);
        break;
    case DSMD_CUTS:
    case DSMD_WORKS:
        if (strstr(dsmd.request, "\"op\":\"node\""))
            node();
        else if (strstr(dsmd.request, "\"op\":\"place\""))
            where(true);
        else if (strstr(dsmd.request, "\"op\":\"home\""))
            where(false);
        else if (strstr(dsmd.request, "\"op\":\"follow\""))
            follow();
        else if (strstr(dsmd.request, "\"op\":\"state\""))
            state();
        else
            say("{\"version\":1,\"ok\":true}");
        if (mood == DSMD_CUTS)
            hang_up();
        break;
    }
}

bool fake_dsmd_has(int fd)
{
    return fd == ours;
}

static uint64_t there_kb(unsigned int nr)
{
    return dsmd.there_kb[nr];
}

static void run(void)
{
    ssize_t n;

    if (ours && !answer_len) {
        n = recv(ours, dsmd.request + got, sizeof(dsmd.request) - 1 - got, 0);
        if (!n) {
            hang_up();
        } else if (n > 0) {
            got += n;
            dsmd.request[got] = '\0';
            if (dsmd.request[got - 1] == '\n') {
                dsmd.request[got - 1] = '\0';
                act();
            }
        }
    }
    if (ours && said < answer_len) {
        size_t len = answer_len - said;

        if (dsmd.chunk && len > dsmd.chunk)
            len = dsmd.chunk;
        n = send(ours, answer + said, len, MSG_NOSIGNAL);
        if (n > 0)
            said += n;
    }
}

static const struct fake_neighbour neighbour = {
    .boot = boot,
    .forget = hang_up,
    .run = run,
    .there_kb = there_kb,
};

static void __attribute__((constructor)) meet(void)
{
    fake_meet(&neighbour);
}
