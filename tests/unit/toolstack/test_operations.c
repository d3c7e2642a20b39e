// SPDX-License-Identifier: GPL-2.0
/*
 * Attach, detach and resize, on a host made of arrays (fakes/): what is the
 * case afterwards, what libxl says, and that a process that dies at any point
 * leaves nothing that the next command does not put in order.
 */
#include <sys/wait.h>

#include "fake_libxl.h"
#include "tap.h"

#define NODE "/local/domain/7/vnuma/node/1/"
#define OURS "/libxl/7/vnuma/node/1/"
#define SAYS "/local/domain/7/vnuma/guest/node/1/"
#define RECORD "/libxl/7/vnuma/op"

#define HALF_KB (NODE_KB / 2)

typedef int start_fn(libxl_ctx *ctx, uint32_t domid,
                     const libxl_vnode_request *req,
                     const libxl_asyncop_how *how,
                     const libxl_asyncprogress_how *progress);

/* A command: an operation on vnode 1, or vnode-list. */
struct command {
    start_fn *start;            /* NULL: vnode-list */
    uint64_t kb;
    bool abort;                 /* the operator interrupts it */
    bool leave;                 /* --no-wait */
    bool only_start;            /* do not wait for its end */
    bool any;                   /* no number of a vnode */
    int vnode;                  /* 0: vnode 1 */
    int pnode;                  /* 0: none in particular */
};

static void do_command(void *arg)
{
    const struct command *c = arg;
    unsigned int left = fake_left();    /* of another process */
    libxl_vnode_request req;

    if (!c->start) {
        world.rc = libxl_vnode_settle(&fake_ctx, DOMID, NULL);
        if (!world.rc && !world.completed)
            fake_loop();
        return;
    }
    libxl_vnode_request_init(&req);
    req.vnode = c->any ? -1 : c->vnode ? c->vnode : 1;
    req.memkb = c->kb;
    req.pnode = c->pnode ? c->pnode : -1;
    req.wait.val = c->leave ? -1 : 0;
    world.rc = c->start(&fake_ctx, DOMID, &req, NULL, NULL);
    if (world.rc)
        return;
    fake_begin();
    if (c->abort)
        fake_abort();
    if (!c->only_start)
        fake_loop();
    assert(!world.completed || fake_left() == left);
}

/* A command that is cancelled before the event loop has run. */
static void do_abort_first(void)
{
    libxl_vnode_request req;

    libxl_vnode_request_init(&req);
    world.effects = 0;
    libxl_vnode_attach(&fake_ctx, DOMID, &req, NULL, NULL);
    fake_abort();
    fake_loop();
}

/* The command's result; 1 if it died. */
static int run(const struct command *c)
{
    world.effects = 0;
    world.log[0] = '\0';
    world.rc = 0;

    return fake_process(do_command, (void *)c) ? world.rc : 1;
}

static int attach(uint64_t kb)
{
    return run(&(struct command) { .start = libxl_vnode_attach, .kb = kb });
}

static int detach(void)
{
    return run(&(struct command) { .start = libxl_vnode_detach });
}

static int set(uint64_t kb)
{
    return run(&(struct command) { .start = libxl_vnode_set, .kb = kb });
}

static int list(void)
{
    return run(&(struct command) { 0 });
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

/* Everything is as vnode 1 with @kb asks for; else says what is not. */
static const char *wrong(uint64_t kb)
{
    const char *cpus = kb ? "online" : "offline";

    if (fake_get(RECORD))
        return "there is a record";
    if (number(NODE "target-kb") != kb)
        return "the target";
    if (world.has_kb[1] != kb)
        return "what the guest has";
    if (number(OURS "allowed-kb") != kb)
        return "the allowance";
    if (world.limit_kb != number("/libxl/7/vnuma/home-limit-kb") + kb)
        return "Xen's limit";
    if (!is(OURS "pnode", kb ? "1" : NULL))
        return "the pnode";
    if (world.to_pnode[1] != (kb ? 1 : 0))
        return "Xen's table";
    if (world.has_kb[2] || number("/local/domain/7/vnuma/node/2/target-kb"))
        return "vnode 2";
    if (kb && world.on_pnode[1] != 1)
        return "where its memory is";
    if (world.affinity[2] != (kb ? 1 : -1) || world.affinity[3] != (kb ? 1 : -1))
        return "the affinity";
    if (world.soft[2] != (kb ? 1 : -1) || world.soft[3] != (kb ? 1 : -1))
        return "the soft affinity";
    if (!is("/local/domain/7/cpu/2/availability", cpus) ||
        !is("/local/domain/7/cpu/3/availability", cpus))
        return "the availability of its CPUs";
    if (!is("/local/domain/7/cpu/0/availability", "online"))
        return "the availability of other CPUs";
    if (list() || world.effects)
        return "vnode-list: there was something left to do";

    return NULL;
}

static bool right(uint64_t kb)
{
    const char *what = wrong(kb);

    if (what)
        note("wrong: %s; log: %s", what, world.log);

    return !what;
}

static void begin_and_die(start_fn *start, uint64_t kb);

static bool said(const char *words)
{
    if (strstr(world.log, words))
        return true;
    note("not said: %s; log: %s", words, world.log);

    return false;
}

/* Has it said anything? */
static bool said_any(void)
{
    return world.log[0];
}

/* A domain whose vnode 1 has @kb, and nothing else has ever happened. */
static void boot_with(uint64_t kb)
{
    fake_boot();
    if (kb)
        attach(kb);
}

/*---------- operations that go well, or not ----------*/

static void test_success(void)
{
    boot_with(0);
    ok_("attach: the declared size", attach(0) == 0 && right(NODE_KB));
    ok_("set: smaller", set(HALF_KB) == 0 && right(HALF_KB));
    ok_("set: larger", set(NODE_KB) == 0 && right(NODE_KB));
    ok_("detach", detach() == 0 && right(0));
    ok_("attach: part of it", attach(HALF_KB) == 0 && right(HALF_KB));
    ok_("attach: there already",
        attach(0) == ERROR_VNODE_REFUSED && right(HALF_KB));
    fake_end();
}

static void test_failures(void)
{
    boot_with(0);
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("attach fails in the guest: undone",
        attach(0) == ERROR_VNODE_UNDONE && said("-12 no memory") &&
        !strstr(world.log, "the guest says") && right(0));

    boot_with(HALF_KB);
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("set fails in the guest: undone",
        set(NODE_KB) == ERROR_VNODE_UNDONE && right(HALF_KB));

    boot_with(HALF_KB);
    world.mood = GUEST_REFUSES_TO_SHRINK;
    ok_("detach refused by the guest",
        detach() == ERROR_VNODE_REFUSED && right(HALF_KB));

    boot_with(0);
    fake_remove("/local/domain/7/vnuma/guest/version");
    ok_("attach without a driver: undone",
        attach(0) == ERROR_VNODE_UNDONE && right(0));

    boot_with(NODE_KB);
    world.mood = GUEST_KEEPS_SOME;
    ok_("detach leaves a residual: said so",
        detach() == ERROR_VNODE_RESIDUAL &&
        number(OURS "allowed-kb") == RESIDUAL_KB &&
        world.limit_kb == HOME_KB + RESIDUAL_KB && !fake_get(RECORD));
    world.mood = GUEST_WORKS;
    ok_("the residual leaves with the next detach", detach() == 0 && right(0));
    fake_end();
}

static void test_undo_that_does_not_work(void)
{
    boot_with(0);
    world.mood = GUEST_GROWS_SLOWLY_AND_KEEPS_SOME;
    ok_("an undone attach that ends residual is not called undone",
        attach(0) == ERROR_VNODE_NOT_UNDONE &&
        said("it was offline with 0 KiB and is residual with 2048 KiB") &&
        world.limit_kb == HOME_KB + RESIDUAL_KB && !fake_get(RECORD));

    boot_with(HALF_KB);
    world.mood = GUEST_GROWS_SLOWLY_AND_KEEPS_SOME;
    ok_("an undone set that ends larger is not called undone",
        set(NODE_KB) == ERROR_VNODE_NOT_UNDONE &&
        said("it was online with 131072 KiB and is online with 133120 KiB: "
             "-12 no room"));

    boot_with(NODE_KB);
    world.mood = GUEST_LOSES_A_CPU;
    ok_("an undone detach after which a vCPU is missing",
        detach() == ERROR_VNODE_UNDONE &&
        said("the guest says: -5 vCPU 2 does not come up") && right(NODE_KB));

    boot_with(NODE_KB);
    world.mood = GUEST_LOSES_A_CPU;
    fake_set(SAYS "error", "-5 vCPU 2 does not come up");
    ok_("... and one before which it was known",
        detach() == ERROR_VNODE_UNDONE &&
        !strstr(world.log, "the guest says"));

    boot_with(NODE_KB);
    world.mood = GUEST_LOSES_A_CPU;
    ok_("a size that is reached without a vCPU", set(HALF_KB) == 0 &&
        said("the guest says: -5 vCPU 2") && right(HALF_KB));

    boot_with(NODE_KB);
    world.mood = GUEST_LOSES_A_CPU;
    fake_set(SAYS "error", "-5 vCPU 2 does not come up");
    ok_("... and once more, with the same words", set(HALF_KB) == 0 &&
        said("the guest says: -5 vCPU 2") && right(HALF_KB));

    boot_with(0);
    world.mood = GUEST_GARBLES;
    ok_("an undone attach that ends faulty is not called undone",
        attach(0) == ERROR_VNODE_NOT_UNDONE && said("is faulty"));

    boot_with(0);
    world.mood = GUEST_GROWS_SLOWLY_AND_KEEPS_SOME;
    begin_and_die(libxl_vnode_attach, 0);
    fake_guest_runs();
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("repeated while the guest is growing, and undone: it is gone again",
        world.has_kb[1] && attach(0) == ERROR_VNODE_UNDONE && right(0));

    boot_with(NODE_KB);
    world.mood = GUEST_KEEPS_SOME;
    detach();
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("an undone attach over a residual that leaves meanwhile",
        attach(0) == ERROR_VNODE_UNDONE && right(0));

    boot_with(NODE_KB);
    world.mood = GUEST_KEEPS_SOME;
    detach();
    world.mood = GUEST_GROWS_SLOWLY_AND_KEEPS_SOME;
    fake_set(SAYS "residual-kb", "0");
    ok_("an undone attach over a residual that is as it was",
        world.has_kb[1] == RESIDUAL_KB && (attach(0), true) &&
        world.has_kb[1] == RESIDUAL_KB && world.rc == ERROR_VNODE_UNDONE);

    boot_with(NODE_KB);
    world.mood = GUEST_KEEPS_SOME;
    detach();
    world.mood = GUEST_GROWS_SLOWLY_AND_KEEPS_SOME;
    world.has_kb[1] -= RESIDUAL_KB / 2;
    world.total_kb -= RESIDUAL_KB / 2;
    fake_set(SAYS "current-kb", "%llu", RESIDUAL_KB / 2);
    fake_set(SAYS "residual-kb", "0");
    ok_("... and over one that ends larger", attach(0) ==
        ERROR_VNODE_NOT_UNDONE && world.has_kb[1] == RESIDUAL_KB);

    boot_with(0);
    world.mood = GUEST_GROWS_SLOWLY_AND_KEEPS_SOME;
    begin_and_die(libxl_vnode_attach, 0);
    fake_guest_runs();
    ok_("repeated while the guest is growing, and a residual remains",
        attach(0) == ERROR_VNODE_NOT_UNDONE &&
        said("it was growing with 2048 KiB and is residual with 2048 KiB"));

    boot_with(HALF_KB);
    world.mood = GUEST_GROWS_SLOWLY_AND_KEEPS_SOME;
    run(&(struct command) {
        .start = libxl_vnode_set, .kb = NODE_KB, .only_start = true,
    });
    fake_kill();
    fake_guest_runs();
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("a set repeated while the guest is growing: undone to what it had",
        set(NODE_KB) == ERROR_VNODE_UNDONE && right(HALF_KB));

    boot_with(0);
    world.mood = GUEST_SILENT;
    ok_("a guest that does not undo either: the record remains",
        attach(0) == ERROR_VNODE_UNSETTLED && fake_get(RECORD));
    world.mood = GUEST_WORKS;
    fake_guest_runs();
    ok_("... and vnode-list settles when it has", list() == 0 && right(0));
    fake_end();
}

/* On a busy host the process comes to look only when the time is over. */
static void test_late_look(void)
{
    boot_with(0);
    run(&(struct command) { .start = libxl_vnode_attach, .only_start = true });
    fake_guest_runs();
    world.no_guest = world.no_release = true;
    fake_loop();
    ok_("time is over, and the guest has finished: done",
        world.rc == 0 && right(NODE_KB));

    boot_with(0);
    run(&(struct command) { .start = libxl_vnode_attach, .only_start = true });
    fake_guest_runs();
    world.no_guest = world.no_release = true;
    world.flags = XEN_DOMINF_shutdown;
    fake_loop();
    ok_("... not in a domain that has stopped",
        world.rc == ERROR_DOMAIN_DESTROYED && fake_get(RECORD));

    boot_with(0);
    world.mood = GUEST_FAILS_TO_GROW;
    run(&(struct command) { .start = libxl_vnode_attach, .only_start = true });
    fake_guest_runs();
    world.no_guest = world.no_release = true;
    fake_loop();
    ok_("... or failed, and has undone it by the end of that time",
        world.rc == ERROR_VNODE_UNDONE && right(0));
    fake_end();
}

#define LARGE_KB ((5ULL << 20) + 2048)

/* A node of 5 GiB and an extent, and memory for it; with @kb of it. */
static void boot_large(uint64_t kb)
{
    boot_with(0);
    fake_set(NODE "max-kb", "%llu", (unsigned long long)LARGE_KB);
    world.free_kb[1] = world.free_kb[2] = world.free_kb[3] = 2 * LARGE_KB;
    if (kb)
        attach(kb);
    world.mood = GUEST_SILENT;
}

/* Without an answer: the time in which that ends, s. */
static uint64_t took(start_fn *start, uint64_t kb, int timeout_ms)
{
    uint64_t began_ms = fake_now_ms();
    libxl_vnode_request req;

    libxl_vnode_request_init(&req);
    req.vnode = 1;
    req.memkb = kb;
    if (timeout_ms)
        req.timeout_ms = timeout_ms;
    start(&fake_ctx, DOMID, &req, NULL, NULL);
    fake_begin();
    fake_loop();

    return (fake_now_ms() - began_ms) / 1000;
}

/* By default it is by what comes or goes, and so is the time of an undo. */
static void test_time_by_size(void)
{
    boot_large(0);
    ok_("a large node has more time: a second for each GiB that is begun",
        took(libxl_vnode_attach, 0, 0) == 126 + 36 && said("within 126000 ms"));
    boot_large(0);
    ok_("... and for one that is whole one", took(libxl_vnode_attach, 5ULL << 20,
        0) == 125 + 35 && said("within 125000 ms"));
    boot_large(0);
    ok_("... any number below 0 is the default",
        took(libxl_vnode_attach, 0, -2) == 126 + 36);
    boot_large(LARGE_KB);
    ok_("... a detach", took(libxl_vnode_detach, 0, 0) == 126 + 36);
    boot_large(LARGE_KB);
    ok_("... another size: what goes",
        took(libxl_vnode_set, 1ULL << 20, 0) == 125 + 35);
    boot_large(1ULL << 20);
    ok_("... what comes", took(libxl_vnode_set, 5ULL << 20, 0) == 124 + 34);
    boot_large(LARGE_KB);
    ok_("... what is asked for is what there is, but for an undo",
        took(libxl_vnode_detach, 0, 5000) == 5 + 36 && said("within 5000 ms"));

    boot_large(0);
    world.mood = GUEST_WORKS;
    run(&(struct command) { .start = libxl_vnode_attach, .only_start = true });
    fake_guest_runs();
    fake_kill();
    fake_set("/local/domain/7/vnuma/guest/done-generation", "0");
    world.mood = GUEST_SILENT;
    ok_("... repeated when most of it has come: the way back is as long",
        took(libxl_vnode_attach, 0, 0) == 126 + 36);
    boot_large(0);
    run(&(struct command) { .start = libxl_vnode_attach, .only_start = true });
    fake_kill();
    ok_("... the opposite before any has come: it may be on its way",
        took(libxl_vnode_detach, 0, 0) == 126 + 36);

    boot_large(LARGE_KB);
    world.mood = GUEST_KEEPS_SOME;
    detach();
    world.mood = GUEST_SILENT;
    world.has_kb[1] += LARGE_KB - RESIDUAL_KB;
    world.total_kb += LARGE_KB - RESIDUAL_KB;
    fake_set(SAYS "current-kb", "%llu", (unsigned long long)LARGE_KB);
    ok_("... what is left of it, by what the guest has",
        took(libxl_vnode_detach, 0, 0) == 126 + 36);

    boot_large(0);
    world.mood = GUEST_FAILS_TO_GROW;
    {
        uint64_t began_ms = fake_now_ms();

        run(&(struct command) { .start = libxl_vnode_attach,
                                .only_start = true });
        fake_guest_runs();
        world.mood = GUEST_SILENT;
        fake_loop();
        ok_("... an undo that comes early has its own time and no more",
            (fake_now_ms() - began_ms) / 1000 == 36);
    }

    boot_large(0);
    fake_set("/local/domain/7/vnuma/guest/version", "2");
    ok_("... without a driver nobody moves anything",
        took(libxl_vnode_attach, 0, 0) == 120 && said("within 120000 ms"));
    boot_large(0);
    fake_set("/local/domain/7/vnuma/guest/version", "2");
    ok_("... nor in the time that is asked for",
        took(libxl_vnode_attach, 0, 5000) == 5 && said("within 5000 ms"));
    boot_large(0);
    fake_set("/local/domain/7/vnuma/guest/version", "2");
    {
        uint64_t began_ms = fake_now_ms();

        run(&(struct command) { .start = libxl_vnode_attach,
                                .only_start = true });
        fake_set("/local/domain/7/vnuma/guest/version", "1");
        fake_loop();
        ok_("... one that comes after the command has all of it",
            fake_now_ms() - began_ms == (126 + 36) * 1000 &&
            said("within 126000 ms"));
    }

    boot_large(0);
    fake_set(NODE "max-kb", "%llu", 1ULL << 37);
    world.free_kb[1] = world.free_kb[2] = world.free_kb[3] = 1ULL << 38;
    ok_("... nobody waits for more than a day for what comes",
        took(libxl_vnode_attach, 0, 0) == 2 * 86400 + 120 + 30);
    fake_end();
}

/*
 * Requests until a guest that does nothing but write, or not even that, is
 * given up, for good.
 */
static unsigned int asked(int timeout_ms, bool writes_on)
{
    unsigned int before;

    boot_large(0);
    fake_set("/local/domain/7/vnuma/guest/version", "2");
    world.writes_on = writes_on;
    before = world.requests;
    took(libxl_vnode_attach, 0, timeout_ms);
    world.writes_on = false;

    return world.requests - before;
}

static void test_looks(void)
{
    const unsigned int look = 6;    /* requests */
    uint64_t began_ms = fake_now_ms();
    unsigned int more;

    boot_with(0);
    ok_("a guest that has finished is not kept waiting",
        attach(0) == 0 && fake_now_ms() == began_ms);

    boot_with(0);
    world.mood = GUEST_SILENT;
    run(&(struct command) { .start = libxl_vnode_attach, .only_start = true });
    fake_fire_once();
    began_ms = fake_now_ms();
    world.mood = GUEST_WORKS;
    fake_loop();
    ok_("... nor one that finishes just behind the first look",
        world.rc == 0 && fake_now_ms() == began_ms + 1);

    boot_with(0);
    began_ms = fake_now_ms();
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("... nor one that has undone it",
        attach(0) == ERROR_VNODE_UNDONE && fake_now_ms() == began_ms + 1);

    /* At 0, 1, 3, 6, 10, 15, 21, 28, 36, 45 and 55 ms; silent: at 0. */
    more = asked(58, true) - asked(58, false);
    ok_("pauses grow by 1 ms", more == look * 10);
    note("%u requests more in 58 ms", more);
    more = asked(600, true) - asked(100, true);
    ok_("one that writes without end is looked at each 10 ms",
        more == look * 500 / 10);
    note("%u requests more in 500 ms more", more);
    ok_("one that does not write is not looked at",
        asked(600, false) == asked(100, false));

    boot_with(0);
    world.mood = GUEST_SILENT;
    run(&(struct command) { .start = libxl_vnode_attach, .only_start = true });
    fake_fire_once();
    world.mood = GUEST_FAILS_TO_GROW;
    fake_abort();
    fake_loop();
    ok_("cancelled between two looks, and the guest has just failed",
        world.rc == ERROR_ABORTED && fake_get(RECORD) &&
        number(NODE "target-kb") == 0 && !fake_left());
    fake_end();
}

#define DONE_KEY "/local/domain/7/vnuma/guest/done-generation"

static unsigned int reads_of_done;

/* The guest has finished when it is asked first, and not any more then. */
static void take_back_done(const char *path)
{
    if (!strcmp(path, DONE_KEY) && reads_of_done++ == 1)
        fake_remove(path);
}

/* Nobody hears of the guest until the time is over: the command's result. */
static int taken_back(void)
{
    world.no_guest = true;
    fake_set(DONE_KEY, "%s", fake_get("/local/domain/7/vnuma/generation"));
    reads_of_done = 0;
    world.on_read = take_back_done;
    fake_loop();
    world.on_read = NULL;

    return world.rc;
}

static void test_takes_back(void)
{
    const struct command start = {
        .start = libxl_vnode_attach, .only_start = true,
    };

    boot_with(0);
    world.mood = GUEST_SILENT;
    run(&start);
    ok_("a guest takes back that it has finished as the time is over: nothing "
        "has come", taken_back() == ERROR_VNODE_UNSETTLED && fake_get(RECORD) &&
        said("could not attach it") && said("has not undone it either") &&
        !fake_left());

    boot_with(0);
    run(&start);
    fake_guest_runs();
    ok_("... all has come",
        taken_back() == ERROR_VNODE_UNSETTLED && fake_get(RECORD) &&
        said("the guest has not finished it") &&
        number(NODE "target-kb") == NODE_KB && !fake_left());

    boot_with(0);
    world.mood = GUEST_FAILS_TO_GROW;
    run(&start);
    fake_guest_runs();
    fake_fire_once();
    world.mood = GUEST_SILENT;
    ok_("... as the undo's time is over",
        taken_back() == ERROR_VNODE_UNSETTLED && fake_get(RECORD) &&
        said("could not attach it") && said("the guest has not finished it") &&
        number(NODE "target-kb") == 0 && !fake_left());
    fake_end();
}

static void test_no_answer_ever(void)
{
    boot_with(0);
    run(&(struct command) { .start = libxl_vnode_attach, .kb = HALF_KB });
    world.mood = GUEST_SILENT;
    ok_("a guest that never answers", detach() == ERROR_VNODE_UNSETTLED);
    ok_("... keeps other vnodes from beginning, and it is said what helps",
        run(&(struct command) { .start = libxl_vnode_attach, .vnode = 2 })
        == ERROR_VNODE_REFUSED && said("only the domain's end ends it"));
    fake_end();
}

static void test_interrupted(void)
{
    boot_with(0);
    world.mood = GUEST_SILENT;
    ok_("interrupted: told so, and not waited for",
        run(&(struct command) { .start = libxl_vnode_attach, .abort = true })
        == ERROR_ABORTED && fake_get(RECORD) &&
        number(NODE "target-kb") == 0);
    world.mood = GUEST_WORKS;
    fake_guest_runs();
    ok_("... and vnode-list settles when the guest has undone it",
        list() == 0 && right(0));

    boot_with(0);
    fake_remove("/local/domain/7/vnuma/guest/version");
    ok_("interrupted, and no driver is there: undone at once",
        run(&(struct command) { .start = libxl_vnode_attach, .abort = true })
        == ERROR_VNODE_UNDONE && right(0));

    boot_with(0);
    ok_("interrupted when the guest has just finished: undone all the same",
        run(&(struct command) { .start = libxl_vnode_attach, .abort = true })
        == ERROR_ABORTED && (fake_guest_runs(), list() == 0) && right(0));

    boot_with(0);
    ok_("--no-wait: vnode-list closes the books",
        run(&(struct command) { .start = libxl_vnode_attach, .leave = true })
        == 0 && fake_get(RECORD) && (fake_guest_runs(), list() == 0) &&
        right(NODE_KB));
    fake_end();
}

/*---------- Xen's count ----------*/

static uint64_t retaken_kb;

/* The guest takes back what it gave, just before it is counted. */
static void retake(void)
{
    if (world.has_kb[1] || world.total_kb + retaken_kb > world.limit_kb)
        return;
    world.total_kb += retaken_kb;
    retaken_kb = 0;
}

/* xl mem-set: the limit falls at once, the guest has not followed. */
static void balloon_lags(uint64_t kb)
{
    fake_set("/libxl/7/vnuma/home-limit-kb", "%llu", HOME_KB - kb);
    world.limit_kb -= kb;
}

static void test_count(void)
{
    boot_with(NODE_KB);
    world.mood = GUEST_LIES_ABOUT_LEAVING;
    ok_("a guest that keeps what it says has left: unsettled, and no more",
        detach() == ERROR_VNODE_UNSETTLED && fake_get(RECORD) &&
        world.limit_kb == HOME_KB &&
        number(OURS "allowed-kb") == NODE_KB && said("Xen counts"));
    ok_("... and so for vnode-list",
        list() && fake_get(RECORD) && world.limit_kb == HOME_KB);
    world.total_kb -= NODE_KB;
    world.has_kb[1] = 0;
    ok_("... until it has left", list() == 0 && right(0));

    boot_with(NODE_KB);
    world.mood = GUEST_KEEPS_SOME;
    detach();
    world.mood = GUEST_WORKS;
    fake_set(SAYS "state", "offline");
    fake_set(SAYS "current-kb", "0");
    fake_set(SAYS "residual-kb", "0");
    ok_("a residual that is said to have left, and is counted",
        !fake_get(RECORD) && list() && said("2048 KiB more") &&
        number(OURS "allowed-kb") == RESIDUAL_KB);
    ok_("... keeps other vnodes from growing",
        run(&(struct command) { .start = libxl_vnode_attach, .vnode = 2 })
        == ERROR_VNODE_REFUSED && said("until memory of vnode 1 has left") &&
        !fake_get(RECORD) && world.limit_kb == HOME_KB);
    ok_("... and is not forgotten", list() && said("2048 KiB more") &&
        number(OURS "allowed-kb") == RESIDUAL_KB);
    ok_("... but not from being attached again itself",
        attach(0) == 0 && right(NODE_KB));
    ok_("... or from being detached again", detach() == 0 && right(0));

    /*
     * The count before the limit falls shows nothing, the one after it does:
     * by then the guest has its memory back.
     */
    boot_with(NODE_KB);
    retaken_kb = NODE_KB;
    world.on_count = retake;
    ok_("a guest that gives and retakes is found out, and it is said",
        detach() == ERROR_VNODE_UNSETTLED && fake_get(RECORD) &&
        world.total_kb > HOME_KB);
    world.on_count = NULL;

    boot_with(NODE_KB);
    balloon_lags(HOME_KB / 8);
    ok_("mem-set before a detach: home memory that lags is not the node's",
        detach() == 0 && right(0) &&
        world.limit_kb == HOME_KB - HOME_KB / 8);

    boot_with(NODE_KB);
    balloon_lags(HOME_KB / 8);
    world.mood = GUEST_KEEPS_SOME;
    ok_("... and a residual is",
        detach() == ERROR_VNODE_RESIDUAL && !fake_get(RECORD) &&
        world.limit_kb == HOME_KB - HOME_KB / 8 + RESIDUAL_KB);

    boot_with(NODE_KB);
    balloon_lags(HOME_KB / 8);
    begin_and_die(libxl_vnode_detach, 0);
    world.has_kb[1] -= HALF_KB;
    world.total_kb -= HALF_KB;
    fake_set(SAYS "state", "draining");
    fake_set(SAYS "current-kb", "%llu", HALF_KB);
    ok_("... nor is it when the detach is repeated half-way",
        detach() == 0 && right(0));

    boot_with(NODE_KB);
    balloon_lags(HOME_KB / 8);
    world.mood = GUEST_LIES_ABOUT_LEAVING;
    ok_("... and a guest that keeps the node has no room to take more",
        detach() == ERROR_VNODE_UNSETTLED && fake_get(RECORD) &&
        world.limit_kb < world.total_kb);

    boot_with(NODE_KB);
    balloon_lags(HOME_KB / 8);
    world.mood = GUEST_KEEPS_A_PAGE;
    ok_("... not even a page of it",
        detach() == ERROR_VNODE_UNSETTLED && fake_get(RECORD) &&
        said("KiB for the domain, 4 KiB more"));

    boot_with(0);
    balloon_lags(HOME_KB / 8);
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("... and an attach that fails leaves it where it was",
        attach(0) == ERROR_VNODE_UNDONE && right(0));
    fake_end();
}

/*---------- one moment ----------*/

static unsigned int changes;

/* The guest finishes growing while its keys are read. */
static void finish_growing(const char *path)
{
    if (!changes || strcmp(path, SAYS "current-kb"))
        return;
    changes--;
    fake_set(SAYS "state", "online");
    fake_set(SAYS "current-kb", "%d", 4096 + 2048 * (changes % 2));
}

static const char *listed_fault(void)
{
    static char fault[96];
    libxl_vnodeinfo *info;
    int nr;

    info = libxl_vnode_list(&fake_ctx, DOMID, &nr);
    snprintf(fault, sizeof(fault), "%s", nr < 0 ? "(failed)" :
             !nr ? "(none listed)" : info[1].fault ? info[1].fault : "");
    if (info)
        libxl_vnodeinfo_list_free(info, nr);

    return fault;
}

#define DONE "/local/domain/7/vnuma/guest/done-generation"

/* Behind a look at what the guest has finished, that turns to garbage. */
static void unsay(const char *path)
{
    if (!strcmp(path, SAYS "state") && !is(DONE, "x"))
        fake_set(DONE, "x");
}

static bool listed_as_done(void)
{
    libxl_vnodeinfo *info;
    bool done;
    int nr;

    info = libxl_vnode_list(&fake_ctx, DOMID, &nr);
    done = nr > 1 && info[1].op && info[1].op_done;
    if (info)
        libxl_vnodeinfo_list_free(info, nr);

    return done;
}

static void test_one_moment(void)
{
    boot_with(0);
    world.total_kb += NODE_KB;
    fake_set(SAYS "state", "offline");
    fake_set(SAYS "current-kb", "0");
    world.on_read = finish_growing;
    changes = 1;
    ok_("keys that change while they are read are read again",
        !listed_fault()[0]);
    changes = 1000;
    ok_("keys that change without end are faulty",
        strstr(listed_fault(), "faster than they can be read"));
    world.on_read = NULL;

    boot_with(0);
    world.mood = GUEST_SILENT;
    begin_and_die(libxl_vnode_attach, 0);
    fake_set(DONE, "1");
    ok_("what the guest has finished is done", listed_as_done());
    world.on_read = unsay;
    ok_("... and not, if it was garbage when all was read again",
        !listed_as_done() && is(DONE, "x"));
    world.on_read = NULL;
    fake_end();
}

/* The domain is destroyed: before this read, xenstore's keys of it go. */
static unsigned int destroyed_at, reads;

static void destroy(const char *path)
{
    (void)path;
    if (++reads != destroyed_at)
        return;
    world.flags |= XEN_DOMINF_dying;
    fake_remove_below("/local/domain/7/");
}

static bool destroyed_while_listed(unsigned int at)
{
    const char *fault;

    boot_with(NODE_KB);
    world.log[0] = '\0';
    reads = 0;
    destroyed_at = at;
    world.on_read = destroy;
    fault = listed_fault();
    world.on_read = NULL;
    if ((!fault[0] || !strcmp(fault, "(none listed)")) && !world.log[0])
        return true;
    note("read %u: %s, log: %s", at, fault, world.log);

    return false;
}

static bool destroyed_while_set(unsigned int at)
{
    int rc;

    boot_with(NODE_KB);
    reads = 0;
    destroyed_at = at;
    world.on_read = destroy;
    rc = set(HALF_KB);
    world.on_read = NULL;
    if (reads < at || (rc == ERROR_DOMAIN_DESTROYED &&
                       !strstr(world.log, "is not a number")))
        return true;
    note("read %u: %d, log: %s", at, rc, world.log);

    return false;
}

/* Half of its keys make no sense: that is no more than that it goes. */
static void test_keys_that_go(void)
{
    bool listed = true, set = true;
    unsigned int n = 0;

    do
        listed &= destroyed_while_listed(++n);
    while (reads >= n);
    ok_("keys that go while a list reads them: it lists none, and is silent",
        listed && n > 30);
    n = 0;
    do
        set &= destroyed_while_set(++n);
    while (reads >= n);
    ok_("keys that go while an operation reads them: the domain is destroyed",
        set && n > 60);

    boot_with(NODE_KB);
    fake_set(OURS "allowed-kb", "x");
    ok_("a key of ours that makes no sense: an error, which says so",
        !strcmp(listed_fault(), "(failed)") &&
        said("allowed-kb is \"x\", which is not a number"));
    fake_set(SAYS "current-kb", "4096");
    world.on_read = finish_growing;
    changes = 1000;
    ok_("... also if others change without end",
        !strcmp(listed_fault(), "(failed)") && said("allowed-kb is \"x\""));
    world.on_read = NULL;
    fake_end();
}

/* A call that fails is never a vnode without that key: nothing, or the truth. */
static void test_a_list_without_an_answer(void)
{
    unsigned int n, bad = 0, refused = 0;
    bool failed = true;

    for (n = 1; failed; n++) {
        libxl_vnodeinfo *info;
        int nr;

        boot_with(NODE_KB);
        world.calls = 0;
        world.fail_at = n;
        info = libxl_vnode_list(&fake_ctx, DOMID, &nr);
        failed = world.calls >= n;
        world.fail_at = 0;
        if (!info) {
            refused++;
        } else if (nr != NR_VNODES || info[1].actual_memkb != NODE_KB ||
                   info[1].target_memkb != NODE_KB || info[1].fault ||
                   info[1].state != LIBXL_VNODE_STATE_ONLINE) {
            if (!bad++)
                note("call %u fails: %d vnodes, log: %s", n, nr, world.log);
        }
        if (info)
            libxl_vnodeinfo_list_free(info, nr);
    }
    ok_("vnode-list says nothing if it cannot tell", !bad && refused > 5);
    fake_end();
}

/*---------- who is at work ----------*/

/* The process that vnode-list shows to wait for the operation. */
static uint32_t listed_pid(void)
{
    libxl_vnodeinfo *info;
    uint32_t pid;
    int nr;

    info = libxl_vnode_list(&fake_ctx, DOMID, &nr);
    pid = info ? info[1].op_pid : 0;
    if (info)
        libxl_vnodeinfo_list_free(info, nr);

    return pid;
}

static void test_lock(void)
{
    struct command waiting = {
        .start = libxl_vnode_attach, .only_start = true,
    };

    boot_with(0);
    run(&waiting);
    fake_guest_runs();
    ok_("vnode-list does not close what somebody waits for",
        list() == 0 && world.effects == 0 && fake_get(RECORD) &&
        listed_pid() == (uint32_t)getpid());
    fake_end();

    boot_with(0);
    world.mood = GUEST_SILENT;
    ok_("busy while somebody waits",
        run(&waiting) == 0 && detach() == ERROR_VNODE_REFUSED &&
        said("is busy with the attach of vnode 1"));
    ok_("vnode-list leaves it alone",
        list() == 0 && world.effects == 0 && fake_get(RECORD));
    fake_end();

    boot_with(0);
    world.mood = GUEST_SILENT;
    ok_("not busy after it has given up, although the process lives",
        attach(0) == ERROR_VNODE_UNSETTLED && listed_pid() == 0 &&
        (world.mood = GUEST_WORKS, detach() == 0) && right(0));
    fake_end();

    /* Process 1 lives for ever: its number says nothing. */
    boot_with(0);
    fake_set(RECORD, "1 attach 1 0 %llu 1 0 0", NODE_KB);
    ok_("a process number that somebody else has now does not matter",
        list() == 0 && right(0));
    fake_end();
}

/* A child for something else, forked by who holds the lock, outlives that. */
static void test_lock_and_fork(void)
{
    libxl__carefd *lock, *again;
    int end[2];
    char c;
    pid_t child;

    boot_with(0);
    if (pipe(end) || libxl__vnode_lock(&fake_gc, DOMID, &lock))
        abort();
    child = fork();
    if (!child) {
        close(end[1]);
        _exit(read(end[0], &c, 1) < 0);     /* until its parent lets it go */
    }
    ok_("the lock is held",
        libxl__vnode_lock(&fake_gc, DOMID, &again) == ERROR_LOCK_FAIL);
    libxl__vnode_unlock(&lock);
    ok_("a lock is given back although a child of its holder lives",
        libxl__vnode_lock(&fake_gc, DOMID, &again) == 0 && again);
    libxl__vnode_unlock(&again);
    close(end[0]);
    close(end[1]);
    waitpid(child, NULL, 0);
    fake_end();
}

/*---------- what others own ----------*/

static void test_limit_of_the_operator(void)
{
    uint64_t sum;

    boot_with(0);
    /* mem-max: the limit, and the note of it */
    world.limit_kb = 2 * HOME_KB;
    libxl__vnode_note_limit(&fake_gc, XBT_NULL, DOMID, world.limit_kb);
    ok_("mem-max survives an attach",
        attach(0) == 0 && world.limit_kb == 2 * HOME_KB + NODE_KB &&
        right(NODE_KB));
    world.limit_kb = 3 * HOME_KB + NODE_KB;
    libxl__vnode_note_limit(&fake_gc, XBT_NULL, DOMID, world.limit_kb);
    ok_("mem-max of a domain with a node survives its detach",
        detach() == 0 && world.limit_kb == 3 * HOME_KB && right(0));

    boot_with(NODE_KB);
    sum = 5;
    ok_("mem-max, mem-set: what elastic vnodes may have is added",
        libxl__vnode_add_allowed_memkb(&fake_gc, DOMID, &sum) == 0 &&
        sum == 5 + NODE_KB);
    fake_set("/libxl/7/vnuma/node/1/allowed-kb", "many");
    sum = 5;
    ok_("... an allowance that is no number is not taken for none",
        libxl__vnode_add_allowed_memkb(&fake_gc, DOMID, &sum) != 0 &&
        sum == 5);
    ok_("... nor for the note of the limit",
        libxl__vnode_note_limit(&fake_gc, XBT_NULL, DOMID, 4 * HOME_KB) != 0 &&
        atoll(fake_get("/libxl/7/vnuma/home-limit-kb")) == HOME_KB);
    fake_end();

    fake_boot();
    fake_set(NODE "elastic", "0");
    fake_set("/local/domain/7/vnuma/node/2/elastic", "0");
    fake_remove("/libxl/7/vnuma/home-limit-kb");
    world.limit_kb += 4096;
    libxl__vnode_note_limit(&fake_gc, XBT_NULL, DOMID, world.limit_kb);
    ok_("vnode-list leaves domains without elastic vnodes alone",
        list() == 0 && !world.effects && world.limit_kb == HOME_KB + 4096 &&
        !fake_get("/libxl/7/vnuma/home-limit-kb"));
    fake_set("/libxl/7/vnuma/home-limit-kb", "%llu", HOME_KB);
    ok_("... whatever the key says",
        list() == 0 && !world.effects && world.limit_kb == HOME_KB + 4096);
    fake_end();
}

static void test_vcpus(void)
{
    libxl_bitmap wanted;
    uint8_t *elastic;

    boot_with(NODE_KB);
    libxl_bitmap_alloc(&fake_ctx, &wanted, NR_VCPUS);
    libxl_bitmap_set(&wanted, 0);
    world.log[0] = '\0';
    ok_("vcpu-set: elastic vnodes keep their vCPUs, and it is said",
        libxl__vnode_elastic_vcpus(&fake_gc, DOMID, NR_VCPUS, &wanted,
                                   &elastic) == 0 && elastic &&
        elastic[0] == 0x1c && said("vCPUs 2-3 stay as they are"));
    libxl_bitmap_dispose(&wanted);

    boot_with(0);
    fake_set("/local/domain/7/cpu/1/availability", "offline");
    ok_("attach and detach leave the operator's vcpu-set alone",
        attach(0) == 0 && right(NODE_KB) && detach() == 0 && right(0) &&
        is("/local/domain/7/cpu/1/availability", "offline"));
    fake_end();
}

static void test_affinity(void)
{
    boot_with(NODE_KB);
    world.affinity[2] = world.affinity[3] = -1;     /* cpupool-migrate */
    ok_("moved to another cpupool: bound again", list() == 0 && right(NODE_KB));

    world.affinity[3] = 2;                          /* vcpu-pin */
    ok_("what the operator pins by hand stays",
        list() == 0 && !world.effects && world.affinity[3] == 2);

    world.affinity[2] = -1;
    ok_("... also when others of the vnode are bound again",
        list() == 0 && world.affinity[2] == 1 && world.affinity[3] == 2 &&
        world.effects == 1);

    boot_with(NODE_KB);
    world.affinity[2] = 2;
    world.affinity[3] = -1;
    ok_("... whichever comes first",
        list() == 0 && world.affinity[2] == 2 && world.affinity[3] == 1);

    boot_with(NODE_KB);
    world.affinity[2] = world.affinity[3] = -1;
    world.pool = 3;
    ok_("moved to where the pnode has no CPU: left alone",
        list() == 0 && !world.effects);
    ok_("... and it can be detached", detach() == 0 && right(0));

    boot_with(NODE_KB);
    world.affinity[2] = world.affinity[3] = -1;
    world.no_pool = true;
    ok_("the cpupool goes meanwhile: it cannot be told, and nothing is done",
        list() == 0 && !world.effects &&
        said("cannot tell where the vCPUs of its vnodes run"));
    ok_("... nor does a vnode grow",
        run(&(struct command) { .start = libxl_vnode_attach, .vnode = 2 })
        == ERROR_FAIL && said("cannot ask for the domain's cpupool") &&
        !fake_get(RECORD));

    boot_with(NODE_KB);
    world.affinity[3] = -1;
    world.no_config = true;
    ok_("the configuration cannot be read: the same",
        list() == 0 && !world.effects &&
        said("cannot tell where the vCPUs of its vnodes run"));

    fake_boot();
    world.cpuless = 2;
    world.affinity[2] = world.soft[2] = 3;
    ok_("on a pnode without CPUs they run anywhere",
        attach(0) == 0 && world.affinity[2] == -1 && world.soft[2] == -1);

    fake_boot();
    world.affinity[2] = 2;
    world.soft[2] = 3;
    world.pinned_hard = world.pinned_soft = 3;
    ok_("vCPUs that the configuration pins stay there",
        attach(0) == 0 && world.affinity[2] == 2 && world.soft[2] == 3 &&
        world.affinity[3] == 1 && world.soft[3] == 1);
    world.affinity[2] = -1;
    ok_("... and are nobody's business later", list() == 0 && !world.effects);

    fake_boot();
    world.affinity[2] = 2;
    world.pinned_hard = 3;
    ok_("pinned hard only: the soft affinity follows",
        attach(0) == 0 && world.affinity[2] == 2 && world.soft[2] == 1);
    world.affinity[2] = -1;
    ok_("... and nobody sets it again, whatever becomes of the other",
        list() == 0 && !world.effects);
    fake_end();
}

/* Between the two counts, the second of which finds less. */
static void give_a_page(void)
{
    static unsigned int counts;

    if (counts++)
        world.total_kb = NODE_KB - 4;
}

static void test_refusals(void)
{
    static const struct {
        const char *name;
        start_fn *start;
        int vnode;
        uint64_t kb, had_kb;
        int rc;
        const char *words;
    } t[] = {
        { "a home vnode", libxl_vnode_detach, 0, 0, 0, ERROR_VNODE_REFUSED,
          "vnode 0 is a home node" },
        { "a vnode that there is not", libxl_vnode_attach, NR_VNODES, 0, 0,
          ERROR_VNODE_REFUSED, "vnode 3 does not exist" },
        { "a set without a number", libxl_vnode_set, -1, NODE_KB, 0,
          ERROR_VNODE_REFUSED, "vnode -1 does not exist" },
        { "a set of an absent vnode", libxl_vnode_set, 1, NODE_KB, 0,
          ERROR_VNODE_REFUSED, "vnode 1 is absent" },
        { "a set to nothing", libxl_vnode_set, 1, 0, NODE_KB, ERROR_INVAL,
          "is a detach" },
        { "more than is declared", libxl_vnode_attach, 1, NODE_KB + 2048, 0,
          ERROR_INVAL, "at most 262144 KiB" },
        { "no multiple of a superpage", libxl_vnode_attach, 1, 4096 + 4, 0,
          ERROR_INVAL, "a multiple of 2048 KiB" },
        { "a detach of an absent vnode", libxl_vnode_detach, 1, 0, 0,
          ERROR_VNODE_REFUSED, "absent already" },
    };
    size_t i;

    for (i = 0; i < NR(t); i++) {
        libxl_vnode_request req;

        boot_with(t[i].had_kb);
        world.effects = 0;
        world.log[0] = '\0';
        libxl_vnode_request_init(&req);
        req.vnode = t[i].vnode;
        req.memkb = t[i].kb;
        t[i].start(&fake_ctx, DOMID, &req, NULL, NULL);
        fake_begin();
        ok_("refused: %s", world.completed && world.rc == t[i].rc &&
            said(t[i].words) && !world.effects, t[i].name);
        fake_end();
    }

    boot_with(0);
    fake_set(OURS "allowed-kb", "2048");
    world.limit_kb += 2048;
    world.total_kb = world.limit_kb;        /* cannot be settled */
    ok_("a vnode that may still have memory is not absent already",
        detach() != ERROR_VNODE_REFUSED);

    boot_with(0);
    fake_set(SAYS "state", "sideways");
    ok_("... nor is one of which the guest talks nonsense",
        detach() == 0 && right(0));

    boot_with(0);
    fake_set(OURS "pnode", "one");
    ok_("garbage in our own keys is an error",
        attach(0) == ERROR_FAIL && said("\"one\", which is not a number"));

    boot_with(0);
    fake_set("/local/domain/7/vnuma/generation", "18446744073709551615");
    ok_("a generation behind which there is none is an error",
        attach(0) == ERROR_FAIL &&
        said("which is not a number up to 18446744073709551614"));
    fake_set("/local/domain/7/vnuma/generation", "18446744073709551614");
    ok_("... and the one before it is not", !listed_fault()[0]);

    boot_with(0);
    fake_set(SAYS "state", "online");
    fake_set(SAYS "current-kb", "%llu", NODE_KB);
    world.total_kb = NODE_KB - 4;
    ok_("more than Xen counts is faulty",
        strstr(listed_fault(), "Xen counts"));
    world.total_kb = NODE_KB;
    ok_("... and as much is not", !listed_fault()[0]);
    world.on_count = give_a_page;
    ok_("... nor what it gives while it is asked", !listed_fault()[0]);
    world.on_count = NULL;

    boot_with(0);
    world.mood = GUEST_SILENT;
    begin_and_die(libxl_vnode_attach, 0);
    fake_set("/local/domain/7/vnuma/guest/done-generation", "99");
    ok_("who has finished what was never announced has finished nothing",
        list() == 0 && !world.effects && fake_get(RECORD));

    boot_with(NODE_KB);
    {
        libxl_vnode_request req;

        libxl_vnode_request_init(&req);
        req.grace_ms = 250;
        libxl_vnode_detach(&fake_ctx, DOMID, &req, NULL, NULL);
        fake_begin();
        ok_("grace-ms is told", is(NODE "grace-ms", "250"));
        fake_loop();
        ok_("... and done", world.rc == 0);
    }
    attach(0);
    ok_("... and for one operation only", is(NODE "grace-ms", NULL));

    boot_with(0);
    world.mood = GUEST_SILENT;
    {
        libxl_vnode_request req;

        libxl_vnode_request_init(&req);
        req.timeout_ms = 0;
        libxl_vnode_attach(&fake_ctx, DOMID, &req, NULL, NULL);
        fake_begin();
        fake_set("/local/domain/7/vnuma/guest/done-generation", "99");
        world.mood = GUEST_SILENT;
        fake_fire_once();
        ok_("a generation from the future is none, and 0 is no time-out",
            !world.completed && number(NODE "target-kb") == NODE_KB);
    }
    fake_end();

    boot_with(0);
    do_abort_first();
    ok_("cancelled before it began: refused, and nothing has changed",
        world.rc == ERROR_VNODE_REFUSED && !world.effects);
    fake_end();

    boot_with(0);
    fake_set("/local/domain/7/vnuma/guest/version", "2");
    world.mood = GUEST_SILENT;
    ok_("a driver of another version is none",
        attach(0) == ERROR_VNODE_UNDONE && said("no driver in the guest"));

    boot_with(NODE_KB);
    fake_remove("/libxl/7/vnuma/home-limit-kb");
    ok_("without its key the home limit is what is not allowed to vnodes",
        detach() == 0 && world.limit_kb == HOME_KB);
    fake_end();
}

/* Each choice of a pnode, by what is asked, configured, free, in the pool. */
static void test_pnodes(void)
{
    static const struct {
        const char *name;
        int vnode, asked;
        uint64_t kb;
        uint64_t free3_kb;      /* on pnode 3 */
        uint8_t pool;           /* CPUs; 0: all */
        unsigned int hole;
        int rc, pnode;
        const char *words;
    } t[] = {
        { "the configured one", 1, -1, .pnode = 1 },
        { "the one that is asked for", 1, 3, .pnode = 3 },
        { "the roomiest", 2, -1, .pnode = 2 },
        { "the roomiest, now another", 2, -1, .free3_kb = 8 * NODE_KB,
          .pnode = 3 },
        { "the roomiest in the pool", 2, -1, .pool = 0xcf, .pnode = 3,
          .free3_kb = 3 * NODE_KB },
        { "just enough", 1, 3, .free3_kb = NODE_KB, .pnode = 3 },
        { "a part finds room", 1, 3, HALF_KB, .free3_kb = HALF_KB, .pnode = 3 },
        { "too full", 1, 3, .free3_kb = NODE_KB - 4,
          .rc = ERROR_VNODE_REFUSED, .words = "4 KiB short" },
        { "none of that number", 1, 4, .rc = ERROR_VNODE_REFUSED,
          .words = "pnode 4 does not exist, the host has pnodes 0-3" },
        { "a hole in the numbers", 1, 3, .hole = 4, .rc = ERROR_VNODE_REFUSED,
          .words = "pnode 3 does not exist" },
        { "outside the pool", 1, -1, .pool = 0x31, .rc = ERROR_VNODE_REFUSED,
          .words = "that pool has CPUs on pnodes 0,2:" },
    };
    size_t i;

    for (i = 0; i < NR(t); i++) {
        libxl_vnode_request req;
        char key[40];

        fake_boot();
        if (t[i].free3_kb)
            world.free_kb[3] = t[i].free3_kb;
        if (t[i].pool)
            world.pool = t[i].pool;
        world.hole = t[i].hole;
        world.log[0] = '\0';
        libxl_vnode_request_init(&req);
        req.vnode = t[i].vnode;
        req.pnode = t[i].asked;
        req.memkb = t[i].kb;
        libxl_vnode_attach(&fake_ctx, DOMID, &req, NULL, NULL);
        fake_begin();
        if (!world.completed)
            fake_loop();
        snprintf(key, sizeof(key), "/libxl/7/vnuma/node/%d/pnode", t[i].vnode);
        ok_("pnode: %s", world.rc == t[i].rc && (world.rc
            ? !world.effects && said(t[i].words)
            : number(key) == (unsigned int)t[i].pnode &&
              world.on_pnode[t[i].vnode] == (unsigned int)t[i].pnode),
            t[i].name);
        fake_end();
    }

    boot_with(HALF_KB);
    world.free_kb[1] = HALF_KB - 4;
    ok_("pnode: a larger size needs room for the difference",
        set(NODE_KB) == ERROR_VNODE_REFUSED && right(HALF_KB));
    world.free_kb[1] = HALF_KB;
    ok_("... and no more", set(NODE_KB) == 0 && right(NODE_KB));

    boot_with(NODE_KB);
    world.mood = GUEST_KEEPS_SOME;
    detach();
    world.mood = GUEST_WORKS;
    ok_("pnode: a residual holds the vnode where it is",
        run(&(struct command) { .start = libxl_vnode_attach, .pnode = 2 }) ==
        ERROR_VNODE_REFUSED && said("still has memory on pnode 1"));
    ok_("... also against the configuration",
        (world.config[1].pnode = 2, attach(0)) == 0 && right(NODE_KB));

    fake_boot();
    world.config[0].pnode = 3;
    fake_set("/libxl/7/vnuma/node/0/pnode", "3");
    attach(0);
    ok_("pnode: an absent vnode leads to the one of vnode 0",
        world.to_pnode[0] == 3 && world.to_pnode[1] == 1 &&
        world.to_pnode[2] == 3 && detach() == 0 && world.to_pnode[1] == 3);
    fake_end();
}

/*---------- domains that stop ----------*/

/* What a command comes to if the domain becomes that while it waits. */
static int overtaken(uint32_t flags, bool destroyed, bool no_release)
{
    boot_with(0);
    run(&(struct command) {
        .start = libxl_vnode_attach, .only_start = true,
    });
    world.flags = flags;
    world.destroyed = destroyed;
    world.no_release = no_release;
    fake_loop();

    return world.rc;
}

static void test_domains_that_stop(void)
{
    static const struct {
        const char *name;
        uint32_t flags;
        bool destroyed;
        int rc;
        const char *words;
    } t[] = {
        { "dying", XEN_DOMINF_dying, false, ERROR_VNODE_REFUSED, "stopped" },
        { "shut down", XEN_DOMINF_shutdown, false, ERROR_VNODE_REFUSED,
          "stopped" },
        { "paused", XEN_DOMINF_paused, false, ERROR_VNODE_REFUSED,
          "is paused" },
        { "not there", 0, true, ERROR_DOMAIN_NOTFOUND, "cannot look" },
    };
    size_t i;

    for (i = 0; i < NR(t); i++) {
        boot_with(0);
        world.flags = t[i].flags;
        world.destroyed = t[i].destroyed;
        ok_("a domain that is %s: refused before anything has changed",
            attach(0) == t[i].rc && said(t[i].words) && !world.effects,
            t[i].name);
    }

    ok_("it is destroyed meanwhile",
        overtaken(XEN_DOMINF_dying, false, false) == ERROR_DOMAIN_DESTROYED &&
        said("stopped during the attach"));
    ok_("... and its keys are none of our business", fake_get(RECORD));
    ok_("it shuts down meanwhile: what it has is kept on record",
        overtaken(XEN_DOMINF_shutdown, false, false) ==
        ERROR_DOMAIN_DESTROYED && fake_get(RECORD) &&
        world.limit_kb == HOME_KB + NODE_KB && is(OURS "pnode", "1"));
    ok_("it is gone meanwhile",
        overtaken(0, true, false) == ERROR_DOMAIN_DESTROYED);
    ok_("it is gone, and the guest had finished",
        overtaken(0, true, true) == ERROR_DOMAIN_DESTROYED);
    ok_("it shuts down, and the guest had finished: nothing is settled",
        overtaken(XEN_DOMINF_shutdown, false, true) ==
        ERROR_DOMAIN_DESTROYED && fake_get(RECORD));
    boot_with(0);
    world.mood = GUEST_SILENT;
    run(&(struct command) { .start = libxl_vnode_attach, .only_start = true });
    fake_fire_once();
    world.no_guest = true;
    world.flags = XEN_DOMINF_dying;
    fake_fire_once();
    ok_("it is destroyed, and only Xen says so",
        world.completed && world.rc == ERROR_DOMAIN_DESTROYED);
    boot_with(0);
    world.mood = GUEST_SILENT;
    run(&(struct command) { .start = libxl_vnode_attach, .only_start = true });
    world.no_guest = world.no_release = world.destroyed = true;
    fake_loop();
    ok_("it is gone when the time is over",
        world.rc == ERROR_DOMAIN_DESTROYED);
    ok_("it is paused meanwhile, and finishes later",
        overtaken(XEN_DOMINF_paused, false, false) == 0);

    boot_with(NODE_KB);
    run(&(struct command) { .start = libxl_vnode_detach, .only_start = true });
    fake_guest_runs();
    fake_remove_below("/local/domain/7/");
    ok_("its keys have gone before it: nothing to be listed",
        !strcmp(listed_fault(), "(none listed)") && !said_any());
    ok_("... nor to be done", list() == 0 && !world.effects);
    ok_("... nor to be begun",
        attach(0) == ERROR_VNODE_REFUSED && !world.effects);
    fake_end();

    boot_with(0);
    world.mood = GUEST_SILENT;
    run(&(struct command) { .start = libxl_vnode_attach, .only_start = true });
    fake_remove_below("/local/domain/7/");
    world.effects = 0;
    fake_loop();
    ok_("its keys go while somebody waits",
        world.rc == ERROR_DOMAIN_DESTROYED && !world.effects);
    fake_end();
}

/*---------- the opposite of a killed operation ----------*/

/* Begin, and die once the guest has been told. */
static void begin_and_die(start_fn *start, uint64_t kb)
{
    run(&(struct command) { .start = start, .kb = kb, .only_start = true });
    fake_kill();
}

static void test_opposites(void)
{
    boot_with(HALF_KB);
    begin_and_die(libxl_vnode_detach, 0);
    ok_("the opposite of a killed detach gives back what that took",
        attach(0) == 0 && right(HALF_KB));

    boot_with(HALF_KB);
    begin_and_die(libxl_vnode_detach, 0);
    fake_guest_runs();
    ok_("... also when the guest has finished it",
        attach(0) == 0 && right(HALF_KB));

    boot_with(HALF_KB);
    begin_and_die(libxl_vnode_detach, 0);
    fake_guest_runs();
    list();
    ok_("... and a detach that has ended is no killed one",
        attach(0) == 0 && right(NODE_KB));

    /* The guest has nothing to do then, and leaves its error as it is. */
    boot_with(HALF_KB);
    world.mood = GUEST_REFUSES_TO_SHRINK;
    begin_and_die(libxl_vnode_detach, 0);
    fake_guest_runs();
    ok_("the opposite of a killed detach that the guest has refused",
        attach(0) == 0 && right(HALF_KB));
    ok_("... and a set to what it has, the old error there",
        fake_get(SAYS "error") && set(HALF_KB) == 0 && right(HALF_KB));

    boot_with(HALF_KB);
    world.mood = GUEST_FAILS_TO_GROW;
    begin_and_die(libxl_vnode_set, NODE_KB);
    fake_guest_runs();
    ok_("the opposite of a killed set that has failed",
        set(HALF_KB) == 0 && right(HALF_KB));

    boot_with(0);
    begin_and_die(libxl_vnode_attach, HALF_KB);
    ok_("a killed attach is repeated with its size",
        attach(0) == 0 && right(HALF_KB));

    boot_with(0);
    world.mood = GUEST_SILENT;
    ok_("an attach that times out, and its undo too, is repeated with its size",
        attach(HALF_KB) == ERROR_VNODE_UNSETTLED &&
        (world.mood = GUEST_WORKS, attach(0) == 0) && right(HALF_KB));

    boot_with(0);
    begin_and_die(libxl_vnode_attach, 0);
    ok_("the opposite of a killed attach", detach() == 0 && right(0));

    boot_with(0);
    run(&(struct command) { .start = libxl_vnode_attach, .leave = true });
    fake_guest_runs();
    ok_("what nobody waited for, and has ended, is not meant any more",
        run(&(struct command) { .start = libxl_vnode_attach, .any = true })
        == 0 && world.has_kb[1] == NODE_KB && world.has_kb[2] == NODE_KB);

    boot_with(NODE_KB);
    world.mood = GUEST_KEEPS_SOME;
    detach();
    world.mood = GUEST_WORKS;
    ok_("a residual can be detached without its number",
        run(&(struct command) { .start = libxl_vnode_detach, .any = true })
        == 0 && right(0));
    ok_("... and then there is none",
        run(&(struct command) { .start = libxl_vnode_detach, .any = true })
        == ERROR_VNODE_REFUSED && said("no elastic vnode is attached"));

    boot_with(HALF_KB);
    begin_and_die(libxl_vnode_set, NODE_KB);
    world.mood = GUEST_SILENT;
    ok_("a killed set is not what a detach without a number means",
        run(&(struct command) { .start = libxl_vnode_attach, .any = true })
        == ERROR_VNODE_REFUSED && said("the set of vnode 1 has not ended"));

    boot_with(0);
    begin_and_die(libxl_vnode_attach, 0);
    ok_("a killed operation on one vnode keeps others from beginning",
        number(NODE "target-kb") == NODE_KB &&
        run(&(struct command) { .start = libxl_vnode_attach }) == 0);
    fake_end();
}

/* What a guest has failed is taken back once, and not to and fro. */
static void test_take_back(void)
{
    unsigned int i;

    boot_with(0);
    world.mood = GUEST_FAILS_TO_GROW;
    begin_and_die(libxl_vnode_attach, 0);
    for (i = 0; i < 3; i++) {
        fake_guest_runs();
        list();
    }
    ok_("a killed attach that fails is taken back", right(0));

    boot_with(NODE_KB);
    world.mood = GUEST_REFUSES_TO_SHRINK;
    begin_and_die(libxl_vnode_detach, 0);
    for (i = 0; i < 3; i++) {
        fake_guest_runs();
        list();
    }
    ok_("a killed detach that fails is taken back", right(NODE_KB));

    boot_with(0);
    world.mood = GUEST_SILENT;
    attach(0);                  /* the undo is announced, and not answered */
    fake_set("/local/domain/7/vnuma/guest/done-generation", "2");
    fake_set(SAYS "state", "online");
    fake_set(SAYS "current-kb", "2048");
    world.total_kb += 2048;
    list();
    ok_("an undo that fails is not undone in its turn",
        !fake_get(RECORD) && number(NODE "target-kb") == 0 &&
        number("/local/domain/7/vnuma/generation") == 2);
    fake_end();
}

/*---------- killed at every point ----------*/

enum next { NEXT_LIST, NEXT_SAME, NEXT_OPPOSITE };

struct scenario {
    const char *name;
    struct command command;
    uint64_t before_kb;
    uint64_t after_kb;          /* if it succeeds */
    enum guest_mood mood;
    uint64_t over_kb;           /* home memory beyond its limit */
};

static const struct scenario scenarios[] = {
    { "attach", { .start = libxl_vnode_attach }, 0, NODE_KB },
    { "attach of a part", { .start = libxl_vnode_attach, .kb = HALF_KB }, 0,
      HALF_KB },
    { "detach", { .start = libxl_vnode_detach }, HALF_KB, 0 },
    { "set to more", { .start = libxl_vnode_set, .kb = NODE_KB }, HALF_KB,
      NODE_KB },
    { "set to less", { .start = libxl_vnode_set, .kb = HALF_KB }, NODE_KB,
      HALF_KB },
    { "attach that fails", { .start = libxl_vnode_attach }, 0, 0,
      GUEST_FAILS_TO_GROW },
    { "detach that is refused", { .start = libxl_vnode_detach }, NODE_KB,
      NODE_KB, GUEST_REFUSES_TO_SHRINK },
    { "set that fails", { .start = libxl_vnode_set, .kb = NODE_KB }, HALF_KB,
      HALF_KB, GUEST_FAILS_TO_GROW },
    /* Killed before its end, it may succeed: nobody takes it back then. */
    { "attach that times out", { .start = libxl_vnode_attach }, 0, NODE_KB,
      GUEST_GROWS_SLOWLY_AND_KEEPS_SOME },
    { "attach that is interrupted",
      { .start = libxl_vnode_attach, .abort = true }, 0, NODE_KB,
      GUEST_SILENT },
    { "attach that nobody waits for",
      { .start = libxl_vnode_attach, .leave = true }, 0, NODE_KB },
    { "attach of any", { .start = libxl_vnode_attach, .any = true }, 0,
      NODE_KB },
    { "attach of any, of a part",
      { .start = libxl_vnode_attach, .any = true, .kb = HALF_KB }, 0, HALF_KB },
    { "detach of any", { .start = libxl_vnode_detach, .any = true }, HALF_KB,
      0 },
    { "detach after mem-set", { .start = libxl_vnode_detach }, HALF_KB, 0,
      .over_kb = HOME_KB / 8 },
};

static void boot_scenario(const struct scenario *s)
{
    boot_with(s->before_kb);
    if (s->over_kb)
        balloon_lags(s->over_kb);
    world.mood = s->mood;
}

/* Let the guest finish, and vnode-list look, until nothing happens. */
static void come_to_rest(void)
{
    unsigned int i;

    for (i = 0; i < 5; i++) {
        fake_guest_runs();
        list();
    }
}

/* The node is whole: as before the operation or as after it. */
static const char *wrong_after_list(const struct scenario *s)
{
    uint64_t kb = number(NODE "target-kb");

    if (kb != s->before_kb && kb != s->after_kb)
        return "a target between before and after";

    return wrong(kb);
}

static const char *try_next(const struct scenario *s, enum next next)
{
    struct command again = {
        .start = s->command.start, .kb = s->command.kb,
        .any = s->command.any && fake_get(RECORD),  /* else it is a new one */
    };
    bool recorded = fake_get(RECORD), attaches;
    uint64_t was_kb = number(NODE "target-kb");
    int rc;

    if (next == NEXT_LIST) {
        come_to_rest();
        return wrong_after_list(s);
    }
    world.mood = GUEST_WORKS;
    if (next == NEXT_SAME) {
        rc = run(&again);
        if (rc && rc != ERROR_VNODE_REFUSED)
            return "the same command fails";
        return wrong(s->command.start == libxl_vnode_attach
                     ? (s->command.kb ? s->command.kb : NODE_KB)
                     : s->command.kb);
    }

    attaches = again.start == libxl_vnode_attach;
    again.start = attaches ? libxl_vnode_detach : libxl_vnode_attach;
    again.kb = 0;
    rc = run(&again);
    if (rc && rc != ERROR_VNODE_REFUSED)
        return "the opposite command fails";
    /* A detach that had ended and been closed has no opposite. */
    return wrong(attaches ? 0 : recorded || was_kb ? s->before_kb : NODE_KB);
}

/*
 * Kill the command before its effect @n, then vnode-list before its effect @m
 * (0: there is none).  *died: which of them did.
 */
static const char *kill_twice(const struct scenario *s, unsigned int n,
                              unsigned int m, bool guest_runs, enum next next,
                              bool died[2])
{
    boot_scenario(s);
    world.kill_at = n;
    died[0] = run(&s->command) == 1;
    if (s->mood == GUEST_SILENT ||
        s->mood == GUEST_GROWS_SLOWLY_AND_KEEPS_SOME) {
        world.mood = GUEST_WORKS;
        world.seen = 0;         /* it goes on */
    }
    if (guest_runs)
        fake_guest_runs();
    if (m) {
        world.kill_at = m;
        died[1] = list() == 1;
    }
    world.kill_at = 0;

    return try_next(s, next);
}

/* The command dies before its effect @n, and the next one before its @m. */
static const char *kill_next(const struct scenario *s, unsigned int n,
                             unsigned int m, bool guest_runs, bool opposite,
                             bool died[2])
{
    struct command next = s->command;
    uint64_t kb;

    boot_scenario(s);
    world.kill_at = n;
    died[0] = run(&s->command) == 1;
    if (guest_runs)
        fake_guest_runs();
    if (opposite)
        next.start = s->command.start == libxl_vnode_attach
                     ? libxl_vnode_detach : libxl_vnode_attach;
    next.any = next.any && fake_get(RECORD);
    world.kill_at = m;
    died[1] = run(&next) == 1;
    world.kill_at = 0;
    come_to_rest();

    kb = number(NODE "target-kb");
    if (kb && kb != s->before_kb && kb != s->after_kb && kb != NODE_KB)
        return "a target that nobody asked for";

    return wrong(kb);
}

/* Both the command and the one that comes after it die, at all their points. */
static void kill_both(const struct scenario *s, bool opposite)
{
    unsigned int n, m, tries = 0, bad = 0;
    bool died[2] = { true, true };
    int guest_runs;

    for (n = 1; died[0]; n++) {
        died[1] = true;
        for (m = 1; died[1]; m++) {
            died[1] = false;
            for (guest_runs = 0; guest_runs < 2; guest_runs++) {
                bool d[2];
                const char *what = kill_next(s, n, m, guest_runs, opposite, d);

                tries++;
                if (what && !bad++)
                    note("%s, killed before effect %u, the next before %u, "
                         "%s: %s; log: %s", s->name, n, m,
                         guest_runs ? "guest done" : "guest not done", what,
                         world.log);
                died[0] = d[0];
                died[1] |= d[1];
            }
        }
    }
    ok_("%s, then %s, both killed at all points: vnode-list repairs",
        !bad && tries > 8, s->name, opposite ? "the opposite" : "the same");
    fake_end();
}

static void kill_everywhere(const struct scenario *s, enum next next)
{
    static const char *const nexts[] = {
        "vnode-list", "the same", "the opposite",
    };
    unsigned int n, m, tries = 0, bad = 0;
    bool died[2] = { true, true };
    int guest_runs;

    for (n = 1; died[0]; n++) {
        died[1] = true;
        /* One sweep over the points of vnode-list is enough. */
        for (m = 0; died[1] && (!m || next == NEXT_LIST); m++) {
            for (guest_runs = 0; guest_runs < 2; guest_runs++) {
                bool d[2] = { false, !m };
                const char *what = kill_twice(s, n, m, guest_runs, next, d);

                tries++;
                if (what && !bad++)
                    note("%s, killed before effect %u, vnode-list before %u, "
                         "%s, then %s: %s; log: %s", s->name, n, m,
                         guest_runs ? "guest done" : "guest not done",
                         nexts[next], what, world.log);
                died[0] = d[0];
                died[1] = guest_runs ? died[1] || d[1] : d[1];
            }
        }
    }
    ok_("%s, killed at each of %u points: %s repairs", !bad && tries > 4,
        s->name, n - 2, nexts[next]);
    fake_end();
}

static void test_kills(void)
{
    size_t i;

    for (i = 0; i < NR(scenarios); i++) {
        bool set = scenarios[i].command.start == libxl_vnode_set;

        kill_everywhere(&scenarios[i], NEXT_LIST);
        kill_everywhere(&scenarios[i], NEXT_SAME);
        /* Beyond its limit nothing can be attached. */
        if (!set && !scenarios[i].over_kb)
            kill_everywhere(&scenarios[i], NEXT_OPPOSITE);
        if (scenarios[i].mood == GUEST_WORKS)
            kill_both(&scenarios[i], false);
        if (scenarios[i].mood == GUEST_WORKS && !set && !scenarios[i].over_kb)
            kill_both(&scenarios[i], true);
    }
}

/*---------- a failure at every point ----------*/

/* What an exit code promises, at once. */
static const char *broken_promise(const struct scenario *s, int rc)
{
    uint64_t kb = number(NODE "target-kb");
    bool recorded = fake_get(RECORD);

    switch (rc) {
    case 0:
        return recorded && !s->command.leave ? "done, and there is a record"
               : kb != s->after_kb ? "done, and another target" : NULL;
    case ERROR_VNODE_UNDONE:
        return world.has_kb[1] != s->before_kb || kb != s->before_kb
               ? "undone, and not as before" : NULL;
    case ERROR_VNODE_REFUSED:
        return kb != s->before_kb || recorded ? "refused, and begun" : NULL;
    case ERROR_VNODE_UNSETTLED:
    case ERROR_VNODE_NOT_UNDONE:
    case ERROR_ABORTED:
        return NULL;
    case ERROR_FAIL:
    case ERROR_LOCK_FAIL:
        return kb != s->before_kb || recorded ? "an internal error, and begun"
                                              : NULL;
    }

    return "another result";
}

/* The call @n of the command fails, then vnode-list's call @m (0: none). */
static const char *fail_twice(const struct scenario *s, unsigned int n,
                              unsigned int m, bool failed[2])
{
    const char *what;
    int rc;

    boot_scenario(s);
    world.calls = 0;
    world.fail_at = n;
    rc = run(&s->command);
    failed[0] = world.calls >= n;
    what = broken_promise(s, rc);
    if (what)
        return what;
    if (s->mood == GUEST_SILENT ||
        s->mood == GUEST_GROWS_SLOWLY_AND_KEEPS_SOME) {
        world.mood = GUEST_WORKS;
        world.seen = 0;
    }
    if (m) {
        fake_guest_runs();
        world.calls = 0;
        world.fail_at = m;
        list();
        failed[1] = world.calls >= m;
    }
    world.fail_at = 0;
    come_to_rest();

    return wrong_after_list(s);
}

static void fail_everywhere(const struct scenario *s)
{
    unsigned int n, m = 1, tries = 0, bad = 0, i;
    bool failed[2] = { true, true };

    for (n = 1; failed[0]; n++) {
        /* Alone, and with one of vnode-list's after it, in turn. */
        for (i = 0; i < 2; i++) {
            const char *what = fail_twice(s, n, i ? m : 0, failed);

            tries++;
            if (what && !bad++)
                note("%s, call %u fails, vnode-list's call %u: %s; log: %s",
                     s->name, n, i ? m : 0, what, world.log);
        }
        m = failed[1] ? m + 1 : 1;
    }
    ok_("%s, each of its calls fails once: true codes, vnode-list repairs",
        !bad && tries > 20, s->name);
    fake_end();
}

static void test_calls_that_fail(void)
{
    size_t i;

    for (i = 0; i < NR(scenarios); i++)
        fail_everywhere(&scenarios[i]);
}

/*
 * The connection to xenstored ends: @n requests have been carried out, the last
 * one without a reply.  Then the guest goes on, or does not before vnode-list.
 */
static const char *break_at(const struct scenario *s, unsigned int n,
                            bool guest_runs, bool *broken)
{
    const char *what;
    int rc;

    boot_scenario(s);
    world.asked = 0;
    world.break_at = n;
    rc = run(&s->command);
    *broken = world.broken;
    world.break_at = 0;
    world.broken = false;
    what = broken_promise(s, rc);
    if (what)
        return what;
    if (s->mood == GUEST_SILENT ||
        s->mood == GUEST_GROWS_SLOWLY_AND_KEEPS_SOME) {
        world.mood = GUEST_WORKS;
        world.seen = 0;
    }
    if (guest_runs)
        fake_guest_runs();
    come_to_rest();

    return wrong_after_list(s);
}

static void break_everywhere(const struct scenario *s)
{
    unsigned int n, tries = 0, bad = 0, i;
    bool broken = true;

    for (n = 1; broken; n++)
        for (i = 0; i < 2; i++) {
            const char *what = break_at(s, n, i, &broken);

            tries++;
            if (what && !bad++)
                note("%s, no reply from request %u on%s: %s, %d; log: %s",
                     s->name, n, i ? ", guest done" : "", what, world.rc,
                     world.log);
        }
    ok_("%s, xenstored's replies end at each: true codes, vnode-list repairs",
        !bad && tries > 20, s->name);
    fake_end();
}

static void test_replies_that_end(void)
{
    size_t i;

    for (i = 0; i < NR(scenarios); i++)
        break_everywhere(&scenarios[i]);
}

/*
 * What a command costs.  Each reply that is waited for is two or three switches
 * between processes: their number is what the fixed part of its time is made
 * of.  It does not depend on how many vnodes there are.
 */
struct cost {
    unsigned int waits, requests, hypercalls, configs;
};

static struct cost so_far(void)
{
    return (struct cost) {
        world.waits, world.requests, world.hypercalls, world.configs,
    };
}

static struct cost less(struct cost a, struct cost b)
{
    return (struct cost) {
        a.waits - b.waits, a.requests - b.requests,
        a.hypercalls - b.hypercalls, a.configs - b.configs,
    };
}

static bool same_cost(const char *what, struct cost is, struct cost wanted)
{
    if (!memcmp(&is, &wanted, sizeof(is)))
        return true;
    note("%s: { %u, %u, %u, %u }", what, is.waits, is.requests, is.hypercalls,
         is.configs);

    return false;
}

struct counted {
    const struct command *command;
    struct cost begun, ended;
};

static void do_counted(void *arg)
{
    struct counted *c = arg;
    const struct command *command = c->command;
    libxl_vnode_request req;

    libxl_vnode_request_init(&req);
    req.vnode = 1;
    req.memkb = command->kb;
    world.rc = command->start(&fake_ctx, DOMID, &req, NULL, NULL);
    fake_begin();
    c->begun = so_far();
    fake_loop();
    c->ended = so_far();
}

static void test_cost(void)
{
    static const struct {
        const char *name;
        unsigned int nr_vnodes;
        start_fn *start;
        uint64_t before_kb, kb;
        struct cost begin, end;
    } t[] = {
        { "attach", 2, libxl_vnode_attach, 0, NODE_KB,
          { 12, 42, 14, 1 }, { 12, 45, 12, 0 } },
        { "attach", 4, libxl_vnode_attach, 0, NODE_KB,
          { 12, 73, 14, 1 }, { 12, 76, 12, 0 } },
        { "set larger", 2, libxl_vnode_set, HALF_KB, NODE_KB,
          { 11, 41, 15, 1 }, { 9, 41, 12, 0 } },
        { "set larger", 4, libxl_vnode_set, HALF_KB, NODE_KB,
          { 11, 72, 15, 1 }, { 9, 72, 12, 0 } },
        { "set smaller", 2, libxl_vnode_set, NODE_KB, HALF_KB,
          { 10, 40, 10, 0 }, { 10, 42, 14, 0 } },
        { "set smaller", 4, libxl_vnode_set, NODE_KB, HALF_KB,
          { 10, 71, 10, 0 }, { 10, 73, 14, 0 } },
        { "detach", 2, libxl_vnode_detach, NODE_KB, 0,
          { 10, 40, 10, 0 }, { 14, 47, 17, 1 } },
        { "detach", 4, libxl_vnode_detach, NODE_KB, 0,
          { 10, 71, 10, 0 }, { 14, 78, 17, 1 } },
    };
    size_t i;

    for (i = 0; i < NR(t); i++) {
        struct command command = { .start = t[i].start, .kb = t[i].kb };
        struct counted c = { .command = &command };
        struct cost before;
        bool all;

        fake_boot_nodes(t[i].nr_vnodes);
        if (t[i].before_kb)
            attach(t[i].before_kb);
        before = so_far();
        fake_process(do_counted, &c);
        all = same_cost("begin", less(c.begun, before), t[i].begin);
        all &= same_cost("end", less(c.ended, c.begun), t[i].end);
        ok_("cost of %s, of %u vnodes", all && !world.rc, t[i].name,
            t[i].nr_vnodes);
        ok_("%s, of %u vnodes: it says what has come of it", world.end &&
            world.end->vnode == 1 && world.end->elastic &&
            world.end->actual_memkb == t[i].kb &&
            world.end->target_memkb == t[i].kb &&
            world.end->max_memkb == NODE_KB && !world.end->op &&
            world.end->state == (t[i].kb ? LIBXL_VNODE_STATE_ONLINE
                                         : LIBXL_VNODE_STATE_OFFLINE) &&
            world.end->pnode == (t[i].kb ? 1 : -1) &&
            !strcmp(world.end->toolstack_phases, fake_get(OURS "phases")),
            t[i].name, t[i].nr_vnodes);
    }
    fake_end();
}

static void test_cost_of_a_list(void)
{
    struct cost before;
    libxl_vnodeinfo *info;
    unsigned int nr_vnodes;
    int nr;

    for (nr_vnodes = 2; nr_vnodes <= MAX_VNODES; nr_vnodes += 2) {
        const struct cost wanted[] = {
            { 4, nr_vnodes == 2 ? 31 : 62, 4, 0 },
            { 5, nr_vnodes == 2 ? 33 : 66, 4, 0 },
        };
        bool all;

        fake_boot_nodes(nr_vnodes);
        before = so_far();
        list();
        all = same_cost("settle", less(so_far(), before), wanted[0]);
        before = so_far();
        info = libxl_vnode_list(&fake_ctx, DOMID, &nr);
        all &= same_cost("list", less(so_far(), before), wanted[1]);
        ok_("cost of a list, of %u vnodes", all && nr == (int)nr_vnodes,
            nr_vnodes);
        libxl_vnodeinfo_list_free(info, nr);
    }
    fake_end();
}

/* What the caller is told in the end, so that it need not read. */
static void test_end(void)
{
    boot_with(NODE_KB);
    world.mood = GUEST_KEEPS_SOME;
    ok_("what has come of it: a residual", detach() == ERROR_VNODE_RESIDUAL &&
        world.end && world.end->state == LIBXL_VNODE_STATE_RESIDUAL &&
        world.end->residual_memkb == RESIDUAL_KB && !world.end->op &&
        world.end->pnode == 1);

    boot_with(HALF_KB);
    world.mood = GUEST_FAILS_TO_GROW;
    ok_("what has come of it: undone", set(NODE_KB) == ERROR_VNODE_UNDONE &&
        world.end && world.end->actual_memkb == HALF_KB &&
        world.end->target_memkb == HALF_KB && strstr(world.end->error, "-12"));

    boot_with(HALF_KB);
    ok_("a request that is refused says nothing of it",
        attach(0) == ERROR_VNODE_REFUSED && !world.end);

    boot_with(0);
    world.mood = GUEST_SILENT;
    ok_("nor does one that has not ended",
        attach(0) == ERROR_VNODE_UNSETTLED && !world.end);

    boot_with(NODE_KB);
    world.mood = GUEST_LIES_ABOUT_LEAVING;
    ok_("nor one whose host is not in order",
        detach() == ERROR_VNODE_UNSETTLED && !world.end);
    fake_end();
}

static void test_phases(void)
{
    static const struct {
        const char *name;
        enum guest_mood mood;
        const char *phases;
    } t[] = {
        { "done", GUEST_WORKS, "prepare guest settle" },
        { "undone", GUEST_FAILS_TO_GROW, "prepare guest undo settle" },
        { "no answer, undone", GUEST_SILENT, NULL },
    };
    size_t i;

    for (i = 0; i < NR(t); i++) {
        char *saved = NULL, *item, names[200] = "";
        const char *found;
        char copy[200];

        fake_boot();
        world.mood = t[i].mood;
        attach(0);
        found = fake_get(OURS "phases");
        snprintf(copy, sizeof(copy), "%s", found ? found : "");
        for (item = strtok_r(copy, ",", &saved); item;
             item = strtok_r(NULL, ",", &saved)) {
            item[strcspn(item, "=")] = '\0';
            snprintf(names + strlen(names), sizeof(names) - strlen(names),
                     "%s%s", names[0] ? " " : "", item);
        }
        ok_("phases of an attach: %s", t[i].phases ? !strcmp(names, t[i].phases)
                                                   : !found, t[i].name);
        if (t[i].phases && strcmp(names, t[i].phases))
            note("they are: %s", names);
        fake_end();
    }
}

int main(void)
{
    test_cost();
    test_cost_of_a_list();
    test_end();
    test_phases();
    test_success();
    test_failures();
    test_undo_that_does_not_work();
    test_interrupted();
    test_late_look();
    test_time_by_size();
    test_looks();
    test_takes_back();
    test_no_answer_ever();
    test_count();
    test_one_moment();
    test_keys_that_go();
    test_a_list_without_an_answer();
    test_lock();
    test_lock_and_fork();
    test_limit_of_the_operator();
    test_vcpus();
    test_affinity();
    test_refusals();
    test_pnodes();
    test_domains_that_stop();
    test_opposites();
    test_take_back();
    test_kills();
    test_calls_that_fail();
    test_replies_that_end();

    return done_testing();
}
