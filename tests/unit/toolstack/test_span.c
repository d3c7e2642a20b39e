// SPDX-License-Identifier: GPL-2.0
/*
 * Vnodes on another host: attach, detach and resize with a dsmd that works, that
 * refuses, that says nothing or nonsense, or that is not there; and a process
 * that dies at any point.
 *
 * Vnode 2 is on host b.
 */
#include <sys/wait.h>

#include "fake_dsmd.h"
#include "tap.h"

#define NODE "/local/domain/7/vnuma/node/2/"
#define GUEST "/local/domain/7/vnuma/guest/node/"
#define OURS "/libxl/7/vnuma/node/2/"
#define RECORD "/libxl/7/vnuma/op"
#define HALF_KB (NODE_KB / 2)
#define POOL_KB FAKE_DSMD_POOL_KB

/* The vCPU of vnode 2 runs there, too. */
static bool remote;

typedef int start_fn(libxl_ctx *ctx, uint32_t domid,
                     const libxl_vnode_request *req,
                     const libxl_asyncop_how *how,
                     const libxl_asyncprogress_how *progress);

struct command {
    start_fn *start;            /* NULL: vnode-list */
    uint64_t kb;
    int vnode;                  /* 0: vnode 2 */
    int pnode;                  /* 0: none in particular */
    bool abort, no_wait;
};

/* Timers and descriptors that an operation which has ended still waits for. */
static unsigned int left;

static void begin_and_end(const struct command *c)
{
    libxl_vnode_request req;

    if (!c->start) {
        world.rc = libxl_vnode_settle(&fake_ctx, DOMID, NULL);
        if (!world.rc && !world.completed)
            fake_loop();
        return;
    }
    libxl_vnode_request_init(&req);
    req.vnode = c->vnode ? c->vnode : 2;
    req.memkb = c->kb;
    req.pnode = c->pnode ? c->pnode : -1;
    if (c->no_wait)
        req.wait.val = -1;
    world.rc = c->start(&fake_ctx, DOMID, &req, NULL, NULL);
    if (world.rc)
        return;
    fake_begin();
    if (c->abort)
        fake_abort();
    fake_loop();
}

static void do_command(void *arg)
{
    begin_and_end(arg);
    left += fake_left();
}

/* Its result; 1 if it died. */
static int run(struct command c)
{
    world.effects = 0;
    world.log[0] = '\0';
    world.rc = 0;

    return fake_process(do_command, &c) ? world.rc : 1;
}

static int attach(uint64_t kb)
{
    return run((struct command) { .start = libxl_vnode_attach, .kb = kb });
}

static int detach(void)
{
    return run((struct command) { .start = libxl_vnode_detach });
}

static int set(uint64_t kb)
{
    return run((struct command) { .start = libxl_vnode_set, .kb = kb });
}

static uint64_t number(const char *path)
{
    const char *s = fake_get(path);

    return s ? strtoull(s, NULL, 10) : 0;
}

static bool is(const char *path, const char *value)
{
    const char *s = fake_get(path);

    return s && value ? !strcmp(s, value) : !s && !value;
}

/* Everything is as vnode 2 with @kb asks for; else says what is not. */
static const char *wrong(uint64_t kb)
{
    uint64_t pool_kb = kb ? POOL_KB : 0;

    if (fake_get(RECORD))
        return "there is a record";
    if (number(NODE "target-kb") != kb)
        return "the target";
    if (world.has_kb[2] != kb)
        return "what the guest has";
    if (number(OURS "there-kb") != kb || dsmd.there_kb[2] != kb)
        return "what is there";
    if (number(OURS "allowed-kb") != pool_kb || dsmd.pool_kb[2] != pool_kb)
        return "the pool";
    if (world.limit_kb != HOME_KB + number("/libxl/7/vnuma/node/1/allowed-kb")
                          + pool_kb)
        return "Xen's limit";
    if (world.total_kb != HOME_KB + world.has_kb[1] + pool_kb)
        return "the memory here";
    if (fake_get(OURS "pnode") || world.to_pnode[2] || world.affinity[4] != -1)
        return "it has something of a pnode";
    if (!is("/local/domain/7/cpu/4/availability", kb ? "online" : "offline"))
        return "the availability of its CPUs";
    if (number(OURS "placed") != (remote && kb) || dsmd.placed != (remote && kb))
        return "where its CPU runs";
    if (dsmd.bad)
        return "dsmd was asked for nonsense";

    return NULL;
}

static bool right(uint64_t kb)
{
    const char *what = wrong(kb);

    if (what)
        note("wrong: %s; rc %d, log: %s", what, world.rc, world.log);

    return !what;
}

static bool said(const char *words)
{
    if (strstr(world.log, words))
        return true;
    note("not said: %s; log: %s", words, world.log);

    return false;
}

static void boot_with(uint64_t kb)
{
    fake_boot();
    fake_set(OURS "host", "b");
    if (remote)
        fake_set(OURS "remote-vcpus", "1");
    if (kb)
        attach(kb);
    dsmd.requests = 0;
}

/*---------- a dsmd that works ----------*/

static void test_success(void)
{
    boot_with(0);
    ok_("attach", attach(0) == 0 && right(NODE_KB) && dsmd.requests == 1);
    ok_("... dsmd was told where, and how much",
        strstr(dsmd.request, "\"op\":\"node\"") &&
        strstr(dsmd.request, "\"host\":\"b\"") &&
        strstr(dsmd.request, "\"vnode\":2") &&
        strstr(dsmd.request, "\"size_kib\":262144") &&
        strstr(dsmd.request, "\"pool_kib\":16384") &&
        strstr(dsmd.request, "00010203-0405-0607-0809-0a0b0c0d0e0f"));
    ok_("set: smaller", set(HALF_KB) == 0 && right(HALF_KB));
    ok_("set: larger", set(NODE_KB) == 0 && right(NODE_KB));
    ok_("detach", detach() == 0 && right(0));
    ok_("attach: part of it", attach(HALF_KB) == 0 && right(HALF_KB));
    ok_("nobody is asked who need not be", dsmd.requests == 5);

    boot_with(NODE_KB);
    ok_("beside a vnode of this host",
        run((struct command) { .start = libxl_vnode_attach, .vnode = 1 }) == 0 &&
        right(NODE_KB) && world.has_kb[1] == NODE_KB && !dsmd.requests);
    ok_("... which leaves", run((struct command) {
            .start = libxl_vnode_detach, .vnode = 1 }) == 0 && right(NODE_KB));
    ok_("... and then this one", detach() == 0 && right(0));

    boot_with(0);
    dsmd.chunk = 1;
    ok_("a reply that comes byte by byte", attach(0) == 0 && right(NODE_KB));

    fake_boot();
    dsmd.absent = true;
    ok_("a guest without host= does not ask",
        run((struct command) { .start = libxl_vnode_attach }) == 0 &&
        dsmd.connections == 0);
    fake_end();
}

/* Each call of a socket is interrupted by a signal, once. */
static bool signals;

static bool is_interrupted(int fd)
{
    static bool again;

    if (fake_dsmd_has(fd))
        return false;
    again = signals && !again;
    if (again)
        errno = EINTR;

    return again;
}

ssize_t __real_recv(int fd, void *to, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t size, int flags)
{
    return is_interrupted(fd) ? -1 : __real_recv(fd, to, size, flags);
}

ssize_t __real_send(int fd, const void *from, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *from, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *from, size_t size, int flags)
{
    return is_interrupted(fd) ? -1 : __real_send(fd, from, size, flags);
}

static void test_signals(void)
{
    boot_with(0);
    signals = true;
    ok_("signals while dsmd is asked: attach", attach(0) == 0 &&
        right(NODE_KB));
    ok_("... and detach", detach() == 0 && right(0) && dsmd.requests == 2);
    signals = false;
    fake_end();
}

static void test_guest(void)
{
    boot_with(0);
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("attach fails in the guest: undone",
        attach(0) == ERROR_VNODE_UNDONE && right(0));
    boot_with(HALF_KB);
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("set fails in the guest: undone",
        set(NODE_KB) == ERROR_VNODE_UNDONE && right(HALF_KB));
    boot_with(NODE_KB);
    world.mood = GUEST_REFUSES_TO_SHRINK;
    ok_("detach refused by the guest",
        detach() == ERROR_VNODE_REFUSED && right(NODE_KB));
    boot_with(0);
    world.mood = GUEST_SILENT;
    ok_("no answer: undone, and that neither", attach(0) ==
        ERROR_VNODE_UNSETTLED && fake_get(RECORD));
    world.mood = GUEST_WORKS;
    ok_("... and the next one puts it right", detach() == 0 && right(0));
    boot_with(NODE_KB);
    world.mood = GUEST_KEEPS_SOME;
    ok_("a residual: as much stays there", detach() == ERROR_VNODE_RESIDUAL &&
        dsmd.there_kb[2] == RESIDUAL_KB && dsmd.pool_kb[2] == POOL_KB);
    world.mood = GUEST_WORKS;
    ok_("... which leaves later", detach() == 0 && right(0));
    boot_with(NODE_KB);
    world.mood = GUEST_LIES_ABOUT_LEAVING;
    ok_("a guest that says it has left, and has not: dsmd says so",
        detach() == ERROR_VNODE_UNSETTLED && said("in-use") &&
        dsmd.there_kb[2] == NODE_KB && world.limit_kb == HOME_KB + POOL_KB &&
        fake_get(RECORD));
    fake_end();
}

/* dsmd hears of what the guest is to empty before the guest does. */
static void test_leaving(void)
{
    static const enum dsmd_mood moods[] = {
        DSMD_SILENT, DSMD_CUTS_FIRST, DSMD_REFUSES,
    };
    size_t i;

    boot_with(0);
    ok_("attach, larger: nothing leaves", attach(HALF_KB) == 0 &&
        set(NODE_KB) == 0 && !dsmd.hints);
    ok_("smaller: dsmd is told first", set(HALF_KB) == 0 && dsmd.hints == 1 &&
        dsmd.hint_kb == HALF_KB && !strcmp(dsmd.hint_target, "262144"));
    ok_("detach: dsmd is told first", detach() == 0 && right(0) &&
        dsmd.hints == 2 && !dsmd.hint_kb &&
        !strcmp(dsmd.hint_target, "131072"));
    boot_with(NODE_KB);
    world.mood = GUEST_REFUSES_TO_SHRINK;
    ok_("what stays is said, too", detach() == ERROR_VNODE_REFUSED &&
        right(NODE_KB) && dsmd.hints == 2 && dsmd.hint_kb == NODE_KB);
    for (i = 0; i < NR(moods); i++) {
        boot_with(NODE_KB);
        dsmd.hint_mood = moods[i];
        dsmd.word = "internal";
        dsmd.text = "op: there are enable, node, state and hosts";
        ok_("a dsmd that does not know of it, %u", detach() == 0 && right(0) &&
            dsmd.hints == 1 && !strstr(world.log, "dsmd"), moods[i]);
    }
    boot_with(NODE_KB);
    ok_("cancelled meanwhile: as before",
        run((struct command) { .start = libxl_vnode_detach, .abort = true }) ==
        ERROR_ABORTED && !fake_get(RECORD) && right(NODE_KB));
    boot_with(NODE_KB);
    run((struct command) { .start = libxl_vnode_attach, .vnode = 1 });
    ok_("a vnode of this host: nobody is told", run((struct command) {
            .start = libxl_vnode_detach, .vnode = 1 }) == 0 && !dsmd.hints);
    fake_end();
}

/* Vnode @nr leaves what it kept, while no command is at work. */
static void leave(unsigned int nr)
{
    char path[80];

    world.has_kb[nr] = 0;
    snprintf(path, sizeof(path), GUEST "%u/current-kb", nr);
    fake_set(path, "0");
    snprintf(path, sizeof(path), GUEST "%u/residual-kb", nr);
    fake_set(path, "0");
    snprintf(path, sizeof(path), GUEST "%u/state", nr);
    fake_set(path, "offline");
}

/* Two vnodes on another host: neither is taken for the other. */
static void test_two(void)
{
    const char *how = remote ? ", with a CPU there" : "";
    static const struct command one = {
        .start = libxl_vnode_attach, .vnode = 1,
    }, gone = {
        .start = libxl_vnode_detach, .vnode = 1,
    }, list = { 0 };

    boot_with(0);
    fake_set("/libxl/7/vnuma/node/1/host", "b");
    /* There is more of the guest than here. */
    world.total_kb = HOME_KB / 4;
    ok_("two vnodes there%s", run(one) == 0 && attach(0) == 0 &&
        dsmd.there_kb[1] == NODE_KB && dsmd.there_kb[2] == NODE_KB &&
        world.total_kb == HOME_KB / 4 + 2 * POOL_KB, how);
    world.mood = GUEST_KEEPS_SOME;
    ok_("... keep some memory each%s", run(gone) == ERROR_VNODE_RESIDUAL &&
        detach() == ERROR_VNODE_RESIDUAL &&
        dsmd.there_kb[1] == RESIDUAL_KB && dsmd.there_kb[2] == RESIDUAL_KB, how);
    world.mood = GUEST_WORKS;
    leave(1);
    leave(2);
    ok_("... and leave it later: dsmd is told of both%s",
        run(list) == 0 && !dsmd.there_kb[1] && !dsmd.there_kb[2] &&
        !world.has_kb[1] && !world.has_kb[2] && !dsmd.bad &&
        !dsmd.placed &&
        world.total_kb == HOME_KB / 4 && world.limit_kb == HOME_KB, how);

    /* An operation on one tells of the other, too, and then of itself. */
    run(one);
    attach(0);
    world.mood = GUEST_KEEPS_SOME;
    detach();
    world.mood = GUEST_WORKS;
    leave(2);
    dsmd.requests = 0;
    ok_("... an operation on one tells what the other has left%s", run(gone) == 0 &&
        !dsmd.there_kb[1] && !dsmd.there_kb[2] && !dsmd.bad &&
        !dsmd.placed &&
        dsmd.requests == (remote ? 3 : 2) && world.limit_kb == HOME_KB, how);
    fake_end();
}

/*---------- one that does not ----------*/

static char endless[LIBXL__DSM_REPLY_MAX + 2];   /* as long as it gets */

/* Before the guest has been told: refused, and all is as before. */
static const struct {
    const char *name;
    bool absent;
    enum dsmd_mood mood;
    const char *word, *text, *raw;
    int rc;
    const char *says;
} failures[] = {
    { "no dsmd here", .absent = true, .rc = ERROR_VNODE_REFUSED,
      .says = "does not run here" },
    { "an unknown host", .mood = DSMD_REFUSES, .word = "unknown-host",
      .text = "no host b; there are a, c", .rc = ERROR_VNODE_REFUSED,
      .says = "(unknown-host): no host b; there are a, c" },
    { "this host", .mood = DSMD_REFUSES, .word = "own-host",
      .text = "b is this host", .rc = ERROR_VNODE_REFUSED,
      .says = "(own-host): b is this host" },
    { "a host that does not answer", .mood = DSMD_REFUSES,
      .word = "unreachable", .text = "b at 192.0.2.2", .says = "192.0.2.2",
      .rc = ERROR_VNODE_REFUSED },
    { "no dsmd there", .mood = DSMD_REFUSES, .word = "no-dsmd-there",
      .text = "nobody at 7100", .says = "(no-dsmd-there): nobody at 7100",
      .rc = ERROR_VNODE_REFUSED },
    { "not enough memory there", .mood = DSMD_REFUSES, .word = "memory-there",
      .text = "262144 KiB needed, 4 free", .says = "262144 KiB needed, 4 free",
      .rc = ERROR_VNODE_REFUSED },
    { "not enough memory here", .mood = DSMD_REFUSES, .word = "memory-here",
      .text = "16384 KiB needed", .says = "(memory-here)",
      .rc = ERROR_VNODE_REFUSED },
    { "unequal sizes", .mood = DSMD_REFUSES, .word = "sizes",
      .text = "262144 KiB here, 131072 there", .says = "131072 there",
      .rc = ERROR_VNODE_REFUSED },
    { "a guest that dsmd does not know", .mood = DSMD_REFUSES,
      .word = "unknown-vm", .text = "not enabled", .says = "(unknown-vm)",
      .rc = ERROR_VNODE_REFUSED },
    { "another request at work", .mood = DSMD_REFUSES, .word = "busy",
      .text = "later", .says = "(busy): later", .rc = ERROR_VNODE_REFUSED },
    { "something that broke", .mood = DSMD_REFUSES, .word = "internal",
      .text = "oops", .says = "(internal): oops", .rc = ERROR_VNODE_REFUSED },
    { "no reply", .mood = DSMD_SILENT, .rc = ERROR_VNODE_UNSETTLED,
      .says = "(timeout): nothing within 120000 ms" },
    { "done, and the connection ends", .mood = DSMD_CUTS,
      .rc = ERROR_VNODE_UNSETTLED, .says = "(cut)" },
    { "the connection ends", .mood = DSMD_CUTS_FIRST,
      .rc = ERROR_VNODE_UNSETTLED, .says = "(cut): the connection ended" },
    { "garbage", .mood = DSMD_SAYS, .raw = "ok", .says = "(garbage)",
      .rc = ERROR_VNODE_UNSETTLED },
    { "a reply without end", .mood = DSMD_SAYS, .raw = endless,
      .says = "(garbage): it is too long", .rc = ERROR_VNODE_UNSETTLED },
    { "two lines", .mood = DSMD_SAYS,
      .raw = "{\"version\":1,\"ok\":true}\n{\"version\":1,\"ok\":true}",
      .rc = ERROR_VNODE_UNSETTLED, .says = "it is not one line" },
};

static void play(size_t i)
{
    dsmd.absent = failures[i].absent;
    dsmd.mood = failures[i].mood;
    dsmd.word = failures[i].word;
    dsmd.text = failures[i].text;
    dsmd.raw = failures[i].raw;
    dsmd.moody = 0;
    dsmd.requests = 0;
}

static void test_failures(void)
{
    size_t i;

    for (i = 0; i < NR(failures); i++) {
        bool known = failures[i].rc == ERROR_VNODE_REFUSED;

        boot_with(0);
        play(i);
        dsmd.moody = 1;
        ok_("attach, %s: as before", attach(0) == (known ? ERROR_VNODE_REFUSED
                                        : ERROR_VNODE_UNSETTLED) &&
            said(failures[i].says) && right(0), failures[i].name);

        boot_with(HALF_KB);
        play(i);
        dsmd.moody = 1;
        ok_("set, %s: as before", set(NODE_KB) && said(failures[i].says) &&
            right(HALF_KB), failures[i].name);

        boot_with(0);
        play(i);
        ok_("attach, %s for ever", attach(0) == failures[i].rc &&
            (known ? right(0) : !!fake_get(RECORD)), failures[i].name);
        dsmd.absent = false;
        dsmd.mood = DSMD_WORKS;
        ok_("attach, %s for ever: the next one does it",
            attach(0) == 0 && right(NODE_KB), failures[i].name);

        boot_with(NODE_KB);
        play(i);
        ok_("detach, %s: not ended", detach() == ERROR_VNODE_UNSETTLED &&
            said(failures[i].says) && fake_get(RECORD), failures[i].name);
        dsmd.absent = false;
        dsmd.mood = DSMD_WORKS;
        /* It ends what it finds, and then there is nothing left to detach. */
        ok_("detach, %s: the next one ends it",
            detach() == ERROR_VNODE_REFUSED && said("absent already") &&
            right(0), failures[i].name);
    }
    fake_end();
}

static void test_refusals(void)
{
    boot_with(0);
    ok_("refused: a pnode for it",
        run((struct command) { .start = libxl_vnode_attach, .pnode = 1 }) ==
        ERROR_VNODE_REFUSED && said("vnode 2 is on host b: pnode 1") &&
        right(0) && !dsmd.connections);
    fake_set(OURS "host", "a b");
    ok_("a key that names no host", attach(0) && said("not the name of a host"));
    boot_with(0);
    fake_set(OURS "remote-vcpus", "2");
    ok_("where its vCPUs run is one of two", attach(0) == ERROR_FAIL &&
        said("remote-vcpus is \"2\", which is not a number up to 1"));
    boot_with(0);
    ok_("cancelled while dsmd is asked: the record tells the next one",
        run((struct command) { .start = libxl_vnode_attach, .abort = true }) &&
        fake_get(RECORD) && detach() == ERROR_VNODE_REFUSED && right(0));
    boot_with(NODE_KB);
    detach();
    fake_set(OURS "allowed-kb", "%llu", POOL_KB);
    world.limit_kb = world.total_kb = HOME_KB + POOL_KB;
    ok_("a pool that Xen still counts keeps others from growing",
        run((struct command) { .start = libxl_vnode_attach, .vnode = 1 }) ==
        ERROR_VNODE_REFUSED && said("until memory of vnode 2 has left") &&
        !world.has_kb[1]);
    boot_with(NODE_KB);
    dsmd.absent = true;
    detach();
    dsmd.absent = false;
    ok_("what dsmd has not taken back keeps others from growing",
        run((struct command) { .start = libxl_vnode_attach, .vnode = 1 }) == 0 ||
        !world.has_kb[1]);
    fake_end();
}

/*---------- a domain that ends while dsmd works ----------*/

static void lose_keys(void)
{
    fake_remove_below("/local/domain/7/");
    world.flags = XEN_DOMINF_dying;
}

static void lose_domain(void)
{
    lose_keys();
    world.destroyed = true;
}

static void test_ends(void)
{
    static const struct {
        const char *name;
        void (*how)(void);
    } t[] = {
        { "loses its keys", lose_keys }, { "is gone", lose_domain },
    };
    size_t i;

    for (i = 0; i < NR(t); i++) {
        boot_with(0);
        dsmd.on_request = t[i].how;
        ok_("a domain that %s while dsmd is asked for memory", attach(0) ==
            ERROR_DOMAIN_DESTROYED && said("stopped during the attach") &&
            !number(NODE "target-kb") && dsmd.requests == 1, t[i].name);
        boot_with(NODE_KB);
        dsmd.on_request = t[i].how;
        ok_("... while dsmd takes memory back", detach() ==
            ERROR_DOMAIN_DESTROYED && said("stopped during the detach"));
        boot_with(NODE_KB);
        world.kill_at = 3;
        run((struct command) { .start = libxl_vnode_detach });
        world.kill_at = 0;
        fake_guest_runs();
        dsmd.on_request = t[i].how;
        ok_("... before it is known what the command comes to",
            run((struct command) { .start = libxl_vnode_attach }) ==
            ERROR_DOMAIN_DESTROYED && said("stopped during the attach"));
    }
    fake_end();
}

/*---------- create ----------*/

static void enabled(libxl__egc *egc, void *user, int rc)
{
    libxl__ao_complete(egc, user, rc);
}

static const char *guest_name = "guest";

/* What becomes of a domain that is built with @rc, vnode 2 on @host. */
static int create(const char *host, int rc)
{
    libxl_vnode_info nodes[NR_VNODES] = { { 0 }, { 0 }, { .host = (char *)host } };
    libxl_domain_build_info info = {
        .num_vnuma_nodes = NR_VNODES, .vnuma_nodes = nodes,
    };

    world.log[0] = '\0';
    libxl__vnode_enable(NULL, fake_ao(), DOMID, &info, guest_name, enabled,
                        &world, rc);
    fake_loop();

    return world.rc;
}

static void test_create(void)
{
    static char long_name[12000];
    size_t i;

    boot_with(0);
    ok_("create: dsmd is told what the guest is", create("b", 0) == 0 &&
        dsmd.requests == 1 && !strcmp(dsmd.request,
        "{\"version\":1,\"op\":\"enable\","
        "\"uuid\":\"00010203-0405-0607-0809-0a0b0c0d0e0f\",\"domid\":7,"
        "\"name\":\"guest\",\"vcpus\":5,\"ranges\":["
        "{\"vnode\":0,\"start\":0,\"size_kib\":262144},"
        "{\"vnode\":0,\"start\":4294967296,\"size_kib\":1048576},"
        "{\"vnode\":1,\"start\":6442450944,\"size_kib\":1048576},"
        "{\"vnode\":2,\"start\":8589934592,\"size_kib\":1048576,"
        "\"host\":\"b\",\"pool_kib\":16384}]}"));
    ok_("create: what has failed before fails", create("b", ERROR_FAIL) ==
        ERROR_FAIL && dsmd.requests == 1);
    ok_("create: without host= nobody is asked", create(NULL, 0) == 0 &&
        dsmd.connections == 1);

    boot_with(0);
    world.more_ranges = VNODE_DSM_RANGES_MAX - NR_RANGES;
    ok_("create: 16 ranges", create("b", 0) == 0 && dsmd.requests == 1);
    world.more_ranges++;
    ok_("create: 17 ranges are refused, and nobody is asked",
        create("b", 0) == ERROR_VNUMA_CONFIG_INVALID &&
        said("17 ranges") && said("a vnode on another host at most 16") && dsmd.requests == 1);
    world.more_ranges = 0;
    world.range[1].nid = NR_VNODES;
    ok_("create: a range of no vnode", create("b", 0) ==
        ERROR_VNUMA_CONFIG_INVALID && said("range 1 belongs to vnode 3"));

    boot_with(0);
    dsmd.narrow = true;
    memset(long_name, 'x', sizeof(long_name) - 1);
    guest_name = long_name;
    ok_("create: a request that is sent in parts", create("b", 0) == 0 &&
        strstr(dsmd.request, "xxx\",\"vcpus\":5") && !world.log[0]);
    guest_name = "guest";

    for (i = 0; i < NR(failures); i++) {
        if (failures[i].mood == DSMD_SILENT || failures[i].mood == DSMD_CUTS)
            continue;           /* done, and other limits of time */
        boot_with(0);
        play(i);
        ok_("create, %s: refused", create("b", 0) == failures[i].rc &&
            said(failures[i].says), failures[i].name);
    }
    boot_with(0);
    dsmd.mood = DSMD_SILENT;
    ok_("create, no reply: refused", create("b", 0) == ERROR_VNODE_UNSETTLED &&
        said("(timeout): nothing within 30000 ms"));

    for (i = 0; i < 5; i++) {
        static const char *const words[][2] = {
            { "xen-version", "4.20 here, 4.19 there" }, { "cpu", "avx512f" },
            { "page-size", "no 1 GiB pages there" }, { "sizes", "2 and 3" },
            { "name-taken", "domain 12 there is called guest" },
        };

        boot_with(0);
        dsmd.mood = DSMD_REFUSES;
        dsmd.word = words[i][0];
        dsmd.text = words[i][1];
        ok_("create, %s: refused, with what differs", create("b", 0) ==
            ERROR_VNODE_REFUSED && said(words[i][1]), words[i][0]);
    }
    fake_end();
}

/*---------- vnode-list ----------*/

static libxl_vnodeinfo *seen;
static int nr_seen;

/* The same list once more. */
static int ask_again(bool abort)
{
    world.log[0] = '\0';
    world.completed = false;
    world.rc = libxl_vnode_ask(&fake_ctx, DOMID, seen, nr_seen, NULL);
    if (!world.rc && abort)
        fake_abort();
    if (!world.rc && !world.completed)
        fake_loop();

    return world.rc;
}

/* The result of asking; seen[2] is what it says then. */
static int look(void)
{
    if (seen)
        libxl_vnodeinfo_list_free(seen, nr_seen);
    seen = libxl_vnode_list(&fake_ctx, DOMID, &nr_seen);

    return ask_again(false);
}

/* The vnode that spans need not be the last of the list. */
static bool ask_for_the_first(void)
{
    libxl_vnodeinfo two[] = { seen[2], seen[0] };

    two[0].median_ns = 0;
    world.completed = false;
    world.rc = libxl_vnode_ask(&fake_ctx, DOMID, two, 2, NULL);
    if (!world.rc && !world.completed)
        fake_loop();
    seen[2] = two[0];

    return !world.rc && seen[2].median_ns == 15;
}

static void test_list(void)
{
    boot_with(NODE_KB);
    ok_("list: what dsmd says of the vnode", look() == 0 && nr_seen == 3 &&
        !strcmp(seen[2].host, "b") && seen[2].link == LIBXL_VNODE_LINK_UP &&
        seen[2].there_memkb == NODE_KB && seen[2].modified_pages == 11 &&
        seen[2].shared_pages == 12 && seen[2].home_pages == 13 &&
        seen[2].faults_per_s == 14 && seen[2].median_ns == 15 &&
        seen[2].p99_ns == 16 && !seen[2].link_error && !world.log[0]);
    ok_("... and of no other", !seen[1].host && !seen[1].link &&
        !seen[1].modified_pages && !seen[0].host && ask_for_the_first());
    ok_("... which has changed nothing", right(NODE_KB));
    dsmd.absent = true;
    ok_("... nor is it up when the same list is asked for in vain",
        ask_again(false) == ERROR_VNODE_REFUSED && seen[2].link_error &&
        seen[2].link == LIBXL_VNODE_LINK_UNKNOWN);
    dsmd.absent = false;
    detach();
    ok_("list: absent", look() == 0 && seen[2].link == LIBXL_VNODE_LINK_DOWN);
    dsmd.absent = true;
    ok_("list: no dsmd", look() == ERROR_VNODE_REFUSED &&
        seen[2].link == LIBXL_VNODE_LINK_UNKNOWN && seen[2].link_error &&
        strstr(seen[2].link_error, "nobody") && !seen[1].link_error);
    dsmd.absent = false;
    ok_("list: the same list again, and dsmd answers", ask_again(false) == 0 &&
        seen[2].link == LIBXL_VNODE_LINK_DOWN && !seen[2].link_error);
    dsmd.mood = DSMD_SILENT;
    ok_("list: cancelled", ask_again(true) == ERROR_ABORTED &&
        seen[2].link == LIBXL_VNODE_LINK_UNKNOWN &&
        !strcmp(seen[2].link_error, "cancelled"));
    ok_("list: no reply", look() == ERROR_VNODE_UNSETTLED &&
        strstr(seen[2].link_error, "nothing within 2000 ms") && !world.log[0]);
    dsmd.mood = DSMD_SAYS;
    dsmd.raw = "{\"version\":1,\"ok\":true,\"vnodes\":[]}";
    ok_("list: a reply without the vnode", look() == 0 &&
        seen[2].link == LIBXL_VNODE_LINK_UNKNOWN &&
        strstr(seen[2].link_error, "does not name"));
    dsmd.raw = "{\"version\":1,\"ok\":true,\"vnodes\":["
        "{\"vnode\":2,\"link\":\"up\",\"size_kib\":4,\"pages_modified\":0,"
        "\"pages_shared\":0,\"pages_home\":0,\"faults_per_second\":0,"
        "\"median_ns\":0,\"p99_ns\":0}]}";
    ok_("list: no CPU is to run there, and none does", look() == 0 &&
        seen[2].there_cpus_known && libxl_bitmap_is_empty(&seen[2].there_cpus));
    dsmd.raw = "{}";
    ok_("list: garbage", look() == ERROR_VNODE_UNSETTLED &&
        seen[2].link_error && !seen[2].modified_pages);

    fake_boot();
    dsmd.absent = true;
    ok_("list: without host= nobody is asked", look() == 0 &&
        !seen[2].link_error && dsmd.connections == 0);
    libxl_vnodeinfo_list_free(seen, nr_seen);
    seen = NULL;
    fake_end();
}

/*---------- a process that dies ----------*/

static const struct {
    const char *name;
    uint64_t before_kb;
    struct command command;
} scenarios[] = {
    { "attach", 0, { .start = libxl_vnode_attach } },
    { "detach", NODE_KB, { .start = libxl_vnode_detach } },
    { "set larger", HALF_KB, { .start = libxl_vnode_set, .kb = NODE_KB } },
    { "set smaller", NODE_KB, { .start = libxl_vnode_set, .kb = HALF_KB } },
};

static bool kill_one(size_t i, unsigned int n, bool guest_runs, bool opposite,
                     bool *died)
{
    start_fn *next;
    uint64_t kb;

    boot_with(scenarios[i].before_kb);
    world.kill_at = n;
    *died = run(scenarios[i].command) == 1;
    world.kill_at = 0;
    if (guest_runs)
        fake_guest_runs();
    run((struct command) { 0 });        /* vnode-list may look at any time */
    kb = number(NODE "target-kb");
    next = opposite ? kb ? libxl_vnode_detach : libxl_vnode_attach
                    : scenarios[i].command.start;
    run((struct command) { .start = next, .kb = scenarios[i].command.kb });
    /* Refused if it had ended by itself. */
    if (wrong(number(NODE "target-kb"))) {
        note("%s, killed before %u, guest %d, opposite %d: %s; log: %s",
             scenarios[i].name, n, guest_runs, opposite,
             wrong(number(NODE "target-kb")), world.log);
        return false;
    }

    return true;
}

/* After a process that died, and a guest that went on. */
static bool list_repairs(size_t i, unsigned int n, bool *died)
{
    boot_with(scenarios[i].before_kb);
    world.kill_at = n;
    *died = run(scenarios[i].command) == 1;
    world.kill_at = 0;
    fake_guest_runs();
    if (run((struct command) { 0 }) || wrong(number(NODE "target-kb"))) {
        note("%s, killed before %u: %s; rc %d, log: %s", scenarios[i].name, n,
             wrong(number(NODE "target-kb")), world.rc, world.log);
        return false;
    }

    return true;
}

static void test_list_settles(void)
{
    bool died;
    size_t i;
    unsigned int n;

    for (i = 0; i < NR(scenarios); i++) {
        bool good = true;

        died = true;
        for (n = 1; died; n++)
            good &= list_repairs(i, n, &died);
        ok_("%s%s, killed at all points: vnode-list tells dsmd", good && n > 6,
            scenarios[i].name, remote ? " with a CPU there" : "");
    }
    if (remote)
        return;

    /* It dies as soon as the guest has been told. */
    for (n = 1, died = true; died; n++) {
        boot_with(NODE_KB);
        world.kill_at = n;
        died = run((struct command) { .start = libxl_vnode_detach }) == 1;
        if (!number(NODE "target-kb"))
            break;
    }
    world.kill_at = 0;
    fake_guest_runs();
    dsmd.mood = DSMD_SILENT;
    ok_("vnode-list before a silent dsmd waits ten seconds, and gives up",
        died && run((struct command) { 0 }) == ERROR_VNODE_UNSETTLED &&
        said("nothing within 10000 ms") && fake_get(RECORD) &&
        dsmd.there_kb[2] == NODE_KB);
    dsmd.mood = DSMD_REFUSES;
    dsmd.word = "busy";
    dsmd.text = "wait";
    ok_("... and one that refuses is heard",
        run((struct command) { 0 }) == ERROR_VNODE_REFUSED && said("wait"));
    dsmd.absent = true;
    ok_("... or one that is not there",
        run((struct command) { 0 }) == ERROR_VNODE_REFUSED);
    dsmd.absent = false;
    dsmd.mood = DSMD_CUTS;
    n = dsmd.requests;
    ok_("... one that does it and ends the connection is asked once",
        run((struct command) { 0 }) == ERROR_VNODE_UNSETTLED &&
        dsmd.requests == n + 1 && fake_get(RECORD));
    dsmd.mood = DSMD_WORKS;
    ok_("... and later it works", run((struct command) { 0 }) == 0 && right(0));
    fake_end();
}

static void test_kills(void)
{
    size_t i;
    int how;

    for (i = 0; i < NR(scenarios); i++)
        for (how = 0; how < 4; how++) {
            bool died = true, good = true;
            unsigned int n;

            for (n = 1; died; n++)
                good &= kill_one(i, n, how & 1, how & 2, &died);
            ok_("%s%s, killed at all points, the guest %s, then %s",
                good && n > 6, scenarios[i].name,
                remote ? " with a CPU there" : "", how & 1 ? "has done it" : "has not",
                how & 2 ? "the opposite" : "the same");
        }
    fake_end();
}

/* Does a result that says that nothing was done leave something behind? */
static bool begun_in_silence(int rc, uint64_t before_kb)
{
    return (rc == ERROR_FAIL || rc == ERROR_LOCK_FAIL ||
            rc == ERROR_VNODE_REFUSED) &&
           (fake_get(RECORD) || number(NODE "target-kb") != before_kb);
}

/* Whatever fails in libxl, the next one puts it right. */
static void test_calls_that_fail(void)
{
    unsigned int n, bad = 0;
    bool failed = true;

    for (n = 1; failed; n++) {
        int rc;

        boot_with(0);
        world.calls = 0;
        world.fail_at = n;
        rc = attach(0);
        failed = rc || world.calls >= n;
        world.fail_at = 0;
        if (begun_in_silence(rc, 0) && !bad++)
            note("call %u: %d; log: %s", n, rc, world.log);
        if (number(NODE "target-kb") && !fake_get(RECORD))
            detach();
        detach();
        if (wrong(0) && !bad++)
            note("call %u: %s; log: %s", n, wrong(0), world.log);
    }
    ok_("each call that can fail, and then a detach: all is right%s",
        !bad && n > 60, remote ? ", with a CPU there" : "");
    fake_end();
}

/* The connection to xenstored ends: request @n is done, and has no reply. */
static bool replies_end(size_t i, unsigned int n, bool *broken)
{
    int rc;

    boot_with(scenarios[i].before_kb);
    world.asked = 0;
    world.break_at = n;
    rc = run(scenarios[i].command);
    *broken = world.broken;
    world.break_at = 0;
    world.broken = false;
    if (begun_in_silence(rc, scenarios[i].before_kb)) {
        note("%s, no reply from request %u on: %d; log: %s", scenarios[i].name,
             n, rc, world.log);
        return false;
    }
    fake_guest_runs();
    if (run((struct command) { 0 }) || wrong(number(NODE "target-kb"))) {
        note("%s, no reply from request %u on, then vnode-list: %s; rc %d, "
             "log: %s", scenarios[i].name, n, wrong(number(NODE "target-kb")),
             world.rc, world.log);
        return false;
    }

    return true;
}

/*
 * The same of an attach of vnode 1 that first settles what a detach of vnode 2
 * has left: before it has begun itself, it is not one that has not ended.
 */
static bool settling_ends(unsigned int n, bool *broken)
{
    char before[200];
    int rc;

    boot_with(NODE_KB);
    run((struct command) { .start = libxl_vnode_detach, .no_wait = true });
    fake_guest_runs();
    snprintf(before, sizeof(before), "%s", fake_get(RECORD));
    world.asked = 0;
    world.break_at = n;
    rc = run((struct command) { .start = libxl_vnode_attach, .vnode = 1 });
    *broken = world.broken;
    world.break_at = 0;
    world.broken = false;
    if (!fake_get(RECORD) || strcmp(fake_get(RECORD), before) ||
        rc == ERROR_FAIL || rc == ERROR_VNODE_REFUSED)
        return true;
    note("no reply from request %u on: %d; log: %s", n, rc, world.log);

    return false;
}

static void test_replies_that_end(void)
{
    bool broken_too = true, none = true;
    unsigned int k;
    size_t i;

    for (i = 0; i < NR(scenarios); i++) {
        bool broken = true, good = true;
        unsigned int n;

        for (n = 1; broken; n++)
            good &= replies_end(i, n, &broken);
        ok_("%s%s, xenstored's replies end at each: vnode-list repairs",
            good && n > 20, scenarios[i].name,
            remote ? " with a CPU there" : "");
    }
    for (k = 1; broken_too; k++)
        none &= settling_ends(k, &broken_too);
    ok_("attach%s, replies end as it settles a detach: it has not begun",
        none && k > 20, remote ? " with a CPU there" : "");
    fake_end();
}

/*---------- a vCPU that runs there ----------*/

static void refuse_second(const char *word)
{
    dsmd.mood = DSMD_REFUSES;
    dsmd.word = word;
    dsmd.text = "vCPU 4: because";
    dsmd.spared = 1;
    dsmd.moody = 1;
}

static void test_place(void)
{
    static const char *const words[] = {
        "places", "vcpu-up", "not-ready", "one-host", "busy", "unreachable",
    };
    size_t i;

    boot_with(0);
    ok_("a CPU there: attach, memory first", attach(0) == 0 && right(NODE_KB) &&
        dsmd.requests == 2 && strstr(dsmd.request, "\"op\":\"place\""));
    ok_("... set: where it runs is not asked for again",
        set(HALF_KB) == 0 && set(NODE_KB) == 0 && right(NODE_KB) &&
        dsmd.requests == 4 && strstr(dsmd.request, "\"op\":\"node\""));
    dsmd.requests = 0;
    ok_("... detach: it comes home first", detach() == 0 && right(0) &&
        dsmd.requests == 2 && strstr(dsmd.request, "\"op\":\"node\""));
    ok_("... attach again", attach(0) == 0 && right(NODE_KB));

    boot_with(0);
    ok_("a CPU there: the guest hears of it when it is placed",
        run((struct command) { .start = libxl_vnode_attach, .no_wait = true })
        == 0 && dsmd.placed && is("/local/domain/7/cpu/4/availability",
                                  "offline"));
    fake_guest_runs();
    ok_("... and the list makes it available", run((struct command) { 0 }) == 0
        && right(NODE_KB) && dsmd.requests == 2);

    for (i = 0; i < NR(words); i++) {
        boot_with(0);
        refuse_second(words[i]);
        ok_("a CPU there, %s: refused, as before",
            attach(0) == ERROR_VNODE_REFUSED && said("vCPU 4: because") &&
            said(words[i]) && right(0) && dsmd.requests == 3, words[i]);
    }
    for (i = 0; i < 2; i++) {
        static const char *const half[] = { "vcpu-info", "internal" };

        boot_with(0);
        refuse_second(half[i]);
        ok_("a CPU there, %s: nobody knows, so it is asked home",
            attach(0) == ERROR_VNODE_UNSETTLED && said(half[i]) && right(0) &&
            dsmd.requests == 4, half[i]);
    }
    boot_with(0);
    dsmd.mood = DSMD_SILENT;
    dsmd.spared = dsmd.moody = 1;
    ok_("a CPU there, no reply: it is asked home",
        attach(0) == ERROR_VNODE_UNSETTLED && right(0) && dsmd.requests == 4 &&
        said("nothing within 90000 ms"));
    boot_with(0);
    dsmd.mood = DSMD_CUTS;
    dsmd.spared = dsmd.moody = 1;
    ok_("a CPU there, done and the connection ends: it is asked home",
        attach(0) == ERROR_VNODE_UNSETTLED && right(0) && dsmd.requests == 4);

    boot_with(NODE_KB);
    dsmd.vcpu_up = true;
    ok_("a guest that keeps its CPU: not ended, and its memory stays there",
        detach() == ERROR_VNODE_UNSETTLED && said("vcpu-up") &&
        dsmd.there_kb[2] == NODE_KB && dsmd.placed && !dsmd.bad &&
        number(OURS "placed") == 1 && fake_get(RECORD));
    dsmd.vcpu_up = false;
    ok_("... and when it is down the list ends it",
        run((struct command) { 0 }) == 0 && right(0));
    boot_with(NODE_KB);
    dsmd.vcpu_up = true;
    detach();
    ok_("... or it is attached again", attach(0) == 0 && right(NODE_KB));

    boot_with(NODE_KB);
    dsmd.mood = DSMD_SILENT;
    dsmd.moody = 1;
    ok_("a CPU that does not come home in time: not ended",
        detach() == ERROR_VNODE_UNSETTLED && fake_get(RECORD) &&
        said("nothing within 60000 ms") && dsmd.there_kb[2] == NODE_KB);
    ok_("... and the next one ends it", detach() == ERROR_VNODE_REFUSED &&
        right(0));

    boot_with(0);
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("a CPU there, and the guest fails: it comes home",
        attach(0) == ERROR_VNODE_UNDONE && right(0));
    boot_with(NODE_KB);
    world.mood = GUEST_REFUSES_TO_SHRINK;
    ok_("a CPU there, and the guest refuses: it stays",
        detach() == ERROR_VNODE_REFUSED && right(NODE_KB));
    boot_with(NODE_KB);
    world.mood = GUEST_KEEPS_SOME;
    ok_("a residual: its CPU stays until the rest has left",
        detach() == ERROR_VNODE_RESIDUAL && dsmd.placed);
    world.mood = GUEST_WORKS;
    ok_("... and comes home then", detach() == 0 && right(0));
    fake_end();
}

/* vCPUs of two vnodes: where those of one are says nothing of the other's. */
static void test_places_of_two(void)
{
    static const struct command one = {
        .start = libxl_vnode_attach, .vnode = 1,
    }, gone = {
        .start = libxl_vnode_detach, .vnode = 1,
    }, list = { 0 };

    boot_with(0);
    fake_set("/libxl/7/vnuma/node/1/host", "b");
    fake_set("/libxl/7/vnuma/node/1/remote-vcpus", "1");
    world.total_kb = HOME_KB / 4;
    ok_("CPUs of two vnodes there", run(one) == 0 && attach(0) == 0 &&
        dsmd.placed_1 && dsmd.placed && dsmd.requests == 4);
    world.mood = GUEST_KEEPS_SOME;
    ok_("... stay with what both keep", run(gone) == ERROR_VNODE_RESIDUAL &&
        detach() == ERROR_VNODE_RESIDUAL && dsmd.placed_1 && dsmd.placed);
    world.mood = GUEST_WORKS;
    leave(1);
    leave(2);
    dsmd.requests = 0;
    ok_("... and come home when it has left, each by itself",
        run(list) == 0 && !dsmd.placed_1 && !dsmd.placed && !dsmd.there_kb[1] &&
        !dsmd.there_kb[2] && !dsmd.bad && dsmd.requests == 4 &&
        world.limit_kb == HOME_KB);
    ok_("... one of them comes again, and the other one does not",
        attach(0) == 0 && dsmd.placed && !dsmd.placed_1 && !dsmd.there_kb[1]);
    ok_("... until that comes home, too", detach() == 0 && !dsmd.placed &&
        !dsmd.placed_1 && !dsmd.there_kb[2] && !dsmd.bad);
    fake_end();
}

struct pausing {
    bool paused, abort;
};

/* As libxl_domain_pause() and libxl_domain_unpause() do it, after Xen. */
static void do_follow(void *arg)
{
    const struct pausing *p = arg;

    libxl__vnode_follow(NULL, fake_ao(), DOMID, p->paused);
    if (p->abort)
        fake_abort();
    if (!world.completed)
        fake_loop();
    left += fake_left();
}

/* Its result; 1 if it died. */
static int follow(struct pausing p)
{
    world.completed = false;
    world.effects = 0;
    world.log[0] = '\0';
    world.rc = 0;
    if (p.paused)
        world.pauses++;
    else
        world.pauses--;

    return fake_process(do_follow, &p) ? world.rc : 1;
}

static int pause_it(void)
{
    return follow((struct pausing) { .paused = true });
}

static int unpause_it(void)
{
    return follow((struct pausing) { 0 });
}

/* A CPU runs there. */
static void boot_far(void)
{
    boot_with(NODE_KB);
    dsmd.requests = 0;
}

static void test_pause(void)
{
    static const struct {
        enum dsmd_mood mood;
        int rc;
        const char *words;
    } rows[] = {
        { DSMD_REFUSES, ERROR_VNODE_REFUSED, "host b: why" },
        { DSMD_SILENT, ERROR_VNODE_UNSETTLED, "nothing within 15000 ms" },
        { DSMD_CUTS, ERROR_VNODE_UNSETTLED, "no reply" },
        { DSMD_CUTS_FIRST, ERROR_VNODE_UNSETTLED, "no reply" },
    };
    size_t i;
    unsigned int n;

    boot_with(0);
    ok_("pause: all CPUs are at home, and nobody is asked", pause_it() == 0 &&
        world.completed && world.pauses == 1 && unpause_it() == 0 &&
        !world.pauses && !dsmd.connections && !world.log[0]);
    boot_far();
    ok_("pause: one runs there, and stands still", pause_it() == 0 &&
        world.pauses == 1 && dsmd.paused && dsmd.requests == 1 &&
        strstr(dsmd.request, "\"op\":\"follow\"") && !dsmd.bad &&
        !world.log[0]);
    ok_("pause: twice", pause_it() == 0 && world.pauses == 2 && dsmd.paused);
    ok_("unpause: once, and it stands still", unpause_it() == 0 &&
        world.pauses == 1 && dsmd.paused);
    ok_("unpause: twice, and it goes on", unpause_it() == 0 && !world.pauses &&
        !dsmd.paused && dsmd.requests == 4 && !world.log[0]);
    ok_("... and leaves as before", detach() == 0 && right(0));
    boot_far();
    fake_set("/libxl/7/vnuma/node/9/placed", "0");
    ok_("pause: one runs there, and none at a host after it",
        pause_it() == 0 && dsmd.paused && dsmd.requests == 1);

    for (i = 0; i < NR(rows); i++) {
        boot_far();
        dsmd.mood = rows[i].mood;
        dsmd.word = "busy";
        dsmd.text = rows[i].words;
        ok_("pause: no answer that it stands still, %zu: taken back",
            pause_it() == rows[i].rc && !world.pauses &&
            said(rows[i].words) && said("not paused"), i);
        world.pauses = 1;
        ok_("unpause: no answer that it goes on, %zu: it goes on here",
            unpause_it() == rows[i].rc && !world.pauses &&
            said(rows[i].words) && said("goes on here"), i);
    }
    boot_far();
    dsmd.absent = true;
    ok_("pause: no dsmd: taken back", pause_it() == ERROR_VNODE_REFUSED &&
        !world.pauses && said("not paused") && said("does not run here"));
    boot_far();
    ok_("pause: cancelled: taken back",
        follow((struct pausing) { .paused = true, .abort = true }) ==
        ERROR_ABORTED && !world.pauses && said("not paused"));
    boot_far();
    world.pauses = 1;
    dsmd.mood = DSMD_REFUSES;
    dsmd.word = "busy";
    dsmd.text = "why";
    ok_("pause: paused before: that stays", pause_it() == ERROR_VNODE_REFUSED &&
        world.pauses == 1);

    boot_far();
    world.kill_at = 1;
    ok_("pause: xl dies before dsmd has done it: dsmd does it by itself",
        pause_it() == 1 && world.pauses == 1 && !dsmd.paused);
    world.kill_at = 0;
    ok_("... and unpause is as ever", unpause_it() == 0 && !world.pauses &&
        !dsmd.paused);

    for (n = 1; n < 20; n++) {
        boot_far();
        world.calls = 0;
        world.fail_at = n;
        if (!pause_it())
            break;
        world.fail_at = 0;
        if (world.pauses || dsmd.paused || !world.log[0])
            break;
    }
    ok_("pause: each call that fails: not paused, and why", world.rc == 0 &&
        n > 3 && n < 20 && world.pauses == 1 && dsmd.paused);
    world.fail_at = 0;

    boot_far();
    fake_remove_below("/libxl/7/");
    ok_("pause: a domain without vnodes", pause_it() == 0 && !dsmd.requests);
    fake_set(OURS "placed", "x");
    ok_("pause: a record that is none: taken back", pause_it() == ERROR_FAIL &&
        world.pauses == 1);
    fake_end();
}

/* mem-set and suspend, of a domain of which a part runs elsewhere. */
static void test_all_here(void)
{
    boot_with(0);
    ok_("mem-set, suspend: all CPUs are at home",
        libxl__vnode_all_here(&fake_gc, DOMID, "mem-set") == 0 &&
        !world.log[0]);
    boot_far();
    ok_("mem-set, suspend: one runs there: refused, and why",
        libxl__vnode_all_here(&fake_gc, DOMID, "mem-set") == ERROR_INVAL &&
        said("mem-set: vCPUs of this domain run on another host") &&
        said("xl vnode-detach") && !dsmd.requests);
    ok_("mem-set, suspend: it has come home", detach() == 0 &&
        libxl__vnode_all_here(&fake_gc, DOMID, "mem-set") == 0);
    fake_set(OURS "placed", "x");
    ok_("mem-set, suspend: a record that is none",
        libxl__vnode_all_here(&fake_gc, DOMID, "mem-set") == ERROR_FAIL);
    fake_remove_below("/libxl/7/");
    ok_("mem-set, suspend: a domain without vnodes",
        libxl__vnode_all_here(&fake_gc, DOMID, "mem-set") == 0);
    fake_end();
}

static void test_remote_list(void)
{
    static const char raw[] = "{\"version\":1,\"ok\":true,\"vnodes\":["
        "{\"vnode\":2,\"link\":\"up\",\"size_kib\":4,\"pages_modified\":0,"
        "\"pages_shared\":0,\"pages_home\":0,\"faults_per_second\":0,"
        "\"median_ns\":0,\"p99_ns\":0}]%s}";
    char text[1000];

    boot_with(NODE_KB);
    ok_("list: the CPUs that run there, of those of the vnode", look() == 0 &&
        seen[2].remote_vcpus && seen[2].there_cpus_known &&
        libxl_bitmap_test(&seen[2].there_cpus, 4) &&
        !libxl_bitmap_test(&seen[2].there_cpus, 3) && !seen[1].remote_vcpus &&
        !seen[1].there_cpus_known && !seen[2].there_paused);
    dsmd.paused = true;
    ok_("list: it stands still there", look() == 0 && seen[2].there_paused &&
        seen[2].there_cpus_known && !seen[1].there_paused);
    dsmd.paused = false;
    ok_("list: and another one does", ask_again(false) == 0 &&
        !seen[2].there_paused);
    snprintf(text, sizeof(text), raw, ",\"vcpus\":[{\"vcpu\":4,\"host\":"
             "\"c\"}]");
    dsmd.mood = DSMD_SAYS;
    dsmd.raw = text;
    ok_("list: of a host that is not the vnode's", ask_again(false) == 0 &&
        seen[2].there_cpus_known && !libxl_bitmap_test(&seen[2].there_cpus, 4));
    snprintf(text, sizeof(text), raw, "");
    ok_("list: a dsmd that does not say", ask_again(false) == 0 &&
        !seen[2].there_cpus_known && seen[2].link == LIBXL_VNODE_LINK_UP);
    dsmd.mood = DSMD_WORKS;
    ask_again(false);
    dsmd.absent = true;
    ok_("list: no dsmd, and nobody knows", ask_again(false) &&
        !seen[2].there_cpus_known);
    dsmd.absent = false;
    detach();
    ok_("list: at home", look() == 0 && seen[2].there_cpus_known &&
        !libxl_bitmap_test(&seen[2].there_cpus, 4));
    libxl_vnodeinfo_list_free(seen, nr_seen);
    seen = NULL;
    fake_end();
}

static void test_rings(void)
{
    static const struct {
        uint64_t console, store;
        bool right;
    } t[] = {
        { 0xfefff, 0xfeff8, true }, { 0xfeff8, 0xfefff, true },
        { 0xff000, 0xfeffc, false }, { 0xfefff, 0xff000, false },
        { 0xfeff7, 0xfeffc, false }, { 0xfefff, 0xfeff7, false },
        { 0, 0xfeffc, false }, { 0xfefff, 0, false },
    };
    unsigned int n, calls;
    bool right;
    size_t i;

    boot_with(0);
    ok_("create: the rings of console and xenstore are a range, of no vnode",
        create("b", 0) == 0 &&
        strstr(dsmd.request, "\"pool_kib\":16384},{\"start\":4278157312,"
               "\"size_kib\":32}],\"places\":["));
    for (i = 0; i < NR(t); i++) {
        boot_with(0);
        world.console = t[i].console;
        world.store = t[i].store;
        ok_("create: rings at 0x%x and 0x%x", create("b", 0) ==
            (t[i].right ? 0 : ERROR_FAIL) && dsmd.requests == t[i].right &&
            (t[i].right || said("not in 0xfeff8 to 0xfefff")),
            (unsigned int)t[i].console, (unsigned int)t[i].store);
    }
    for (n = 0; n < 2; n++) {
        /* Each call in its turn, until it is that one. */
        for (calls = 1, right = false; calls < 500 && !right; calls++) {
            boot_with(0);
            world.calls = 0;
            world.fail_at = calls;
            right = create("b", 0) == ERROR_FAIL && !dsmd.requests &&
                said(n ? "ring of the xenstore is" : "ring of the console is");
            world.fail_at = 0;
        }
        ok_("create: Xen doesn't say where ring %u is", right, n);
    }
    boot_with(0);
    world.more_ranges = VNODE_DSM_RANGES_MAX - NR_RANGES - 1;
    ok_("create: 15 ranges, and that one", create("b", 0) == 0 &&
        dsmd.requests == 1);
    world.more_ranges++;
    ok_("create: 16 ranges are refused with vCPUs there, and nobody is asked",
        create("b", 0) == ERROR_VNUMA_CONFIG_INVALID && said("16 ranges") &&
        said("vCPUs on another host at most 15") && dsmd.requests == 1);
    fake_end();
}

static void test_remote_create(void)
{
    boot_with(0);
    ok_("create: where its vCPUs are to run", create("b", 0) == 0 &&
        strstr(dsmd.request, "\"places\":[{\"first\":4,\"vcpus\":1,"
               "\"host\":\"b\"}]}"));
    fake_set("/libxl/7/vnuma/node/1/host", "c");
    fake_set("/libxl/7/vnuma/node/1/remote-vcpus", "1");
    ok_("create: of two hosts", create("b", 0) == 0 &&
        strstr(dsmd.request, "\"places\":[{\"first\":2,\"vcpus\":2,"
               "\"host\":\"c\"},{\"first\":4,\"vcpus\":1,\"host\":\"b\"}]}"));
    fake_set("/libxl/7/vnuma/node/1/host", "b");
    ok_("create: neighbours of one host", create("b", 0) == 0 &&
        strstr(dsmd.request, "\"places\":[{\"first\":2,\"vcpus\":3,"
               "\"host\":\"b\"}]}"));
    fake_set("/local/domain/7/vnuma/node/1/cpus", "2");
    ok_("create: with one between them that stays", create("b", 0) == 0 &&
        strstr(dsmd.request, "\"places\":[{\"first\":2,\"vcpus\":1,"
               "\"host\":\"b\"},{\"first\":4,\"vcpus\":1,\"host\":\"b\"}]}"));
    fake_end();
}

int main(void)
{
    memset(endless, ' ', sizeof(endless) - 1);
    fake_boot();
    test_success();
    test_signals();
    test_guest();
    test_leaving();
    test_two();
    test_failures();
    test_refusals();
    test_ends();
    test_create();
    test_list();
    test_list_settles();
    test_kills();
    test_calls_that_fail();
    test_replies_that_end();
    remote = true;
    test_two();
    test_place();
    test_places_of_two();
    test_pause();
    test_all_here();
    test_remote_list();
    test_remote_create();
    test_rings();
    test_list_settles();
    test_kills();
    test_calls_that_fail();
    test_replies_that_end();
    ok_("who has ended waits for nothing", !left);

    return done_testing();
}
