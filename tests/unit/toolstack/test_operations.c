// SPDX-License-Identifier: GPL-2.0
/*
 * Attach, detach and resize, on a host made of arrays (fakes/): what is the
 * case afterwards, what libxl says, and that a process that dies at any point
 * leaves nothing that the next command does not put in order.
 */
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
};

static void do_command(void *arg)
{
    const struct command *c = arg;
    libxl_vnode_request req;

    if (!c->start) {
        world.rc = libxl_vnode_settle(&fake_ctx, DOMID);
        return;
    }
    libxl_vnode_request_init(&req);
    req.vnode = 1;
    req.memkb = c->kb;
    req.wait.val = c->leave ? -1 : 0;
    world.rc = c->start(&fake_ctx, DOMID, &req, NULL, NULL);
    if (world.rc)
        return;
    fake_begin();
    if (c->abort)
        fake_abort();
    if (!c->only_start)
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
    if (kb && world.on_pnode[1] != 1)
        return "where its memory is";
    if (world.affinity[2] != (kb ? 1 : -1) || world.affinity[3] != (kb ? 1 : -1))
        return "the affinity";
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

static bool said(const char *words)
{
    if (strstr(world.log, words))
        return true;
    note("not said: %s; log: %s", words, world.log);

    return false;
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
        attach(0) == ERROR_VNODE_UNDONE && right(0));

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
        said("it was online with 131072 KiB and is online with 133120 KiB"));

    boot_with(0);
    world.mood = GUEST_GARBLES;
    ok_("an undone attach that ends faulty is not called undone",
        attach(0) == ERROR_VNODE_NOT_UNDONE && said("is faulty"));

    boot_with(0);
    world.mood = GUEST_SILENT;
    ok_("a guest that does not undo either: the record remains",
        attach(0) == ERROR_VNODE_UNSETTLED && fake_get(RECORD));
    world.mood = GUEST_WORKS;
    fake_guest_runs();
    ok_("... and vnode-list settles when it has", list() == 0 && right(0));
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

static void test_count(void)
{
    boot_with(NODE_KB);
    world.mood = GUEST_LIES_ABOUT_LEAVING;
    ok_("a guest that keeps what it says has left: unsettled, limit restored",
        detach() == ERROR_VNODE_UNSETTLED && fake_get(RECORD) &&
        world.limit_kb == HOME_KB + NODE_KB &&
        number(OURS "allowed-kb") == NODE_KB && said("Xen counts"));
    ok_("... and so for vnode-list",
        list() && fake_get(RECORD) && world.limit_kb == HOME_KB + NODE_KB);
    world.total_kb -= NODE_KB;
    world.has_kb[1] = 0;
    ok_("... until it has left", list() == 0 && right(0));

    /*
     * The count before the limit falls shows nothing, the one after it does:
     * by then the guest has its memory back.
     */
    boot_with(NODE_KB);
    retaken_kb = NODE_KB;
    world.on_count = retake;
    ok_("a guest that gives and retakes keeps its limit, and it is said",
        detach() == ERROR_VNODE_UNSETTLED &&
        world.limit_kb == HOME_KB + NODE_KB && world.total_kb > HOME_KB);
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
    snprintf(fault, sizeof(fault), "%s", !info ? "(none listed)" :
             info[1].fault ? info[1].fault : "");
    if (info)
        libxl_vnodeinfo_list_free(info, nr);

    return fault;
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
    fake_set(RECORD, "1 attach 1 0 %llu 1", NODE_KB);
    ok_("a process number that somebody else has now does not matter",
        list() == 0 && right(0));
    fake_end();
}

/*---------- what others own ----------*/

static void test_limit_of_the_operator(void)
{
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

    boot_with(0);
    begin_and_die(libxl_vnode_attach, HALF_KB);
    ok_("a killed attach is repeated with its size",
        attach(0) == 0 && right(HALF_KB));

    boot_with(0);
    begin_and_die(libxl_vnode_attach, 0);
    ok_("the opposite of a killed attach", detach() == 0 && right(0));

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
};

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
    struct command again = { .start = s->command.start, .kb = s->command.kb };
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
    rc = attaches ? detach() : attach(0);
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
    boot_with(s->before_kb);
    world.mood = s->mood;
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

    boot_with(s->before_kb);
    world.mood = GUEST_WORKS;
    world.kill_at = n;
    died[0] = run(&s->command) == 1;
    if (guest_runs)
        fake_guest_runs();
    if (opposite)
        next.start = s->command.start == libxl_vnode_attach
                     ? libxl_vnode_detach : libxl_vnode_attach;
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
        if (!set)
            kill_everywhere(&scenarios[i], NEXT_OPPOSITE);
        if (scenarios[i].mood == GUEST_WORKS)
            kill_both(&scenarios[i], false);
        if (scenarios[i].mood == GUEST_WORKS && !set)
            kill_both(&scenarios[i], true);
    }
}

/*
 * On a busy host each request to xenstored waits twice for a CPU: their number
 * is what prepare and settle cost.  One reading of everything for each.
 */
static void do_attach(void *arg)
{
    unsigned int *requests = arg;
    libxl_vnode_request req;

    libxl_vnode_request_init(&req);
    req.vnode = 1;
    world.requests = 0;
    libxl_vnode_attach(&fake_ctx, DOMID, &req, NULL, NULL);
    fake_begin();
    requests[0] = world.requests;
    fake_loop();
    requests[1] = world.requests - requests[0];
}

static void test_requests(void)
{
    unsigned int look, of[2];

    fake_boot();
    world.requests = 0;
    list();
    look = world.requests;
    fake_process(do_attach, of);
    note("requests to xenstored: %u to look, %u to prepare, %u afterwards",
         look, of[0], of[1]);
    ok_("prepare reads everything once", of[0] < look + 12);
    ok_("settle reads everything once", of[1] < look + 12);
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
    test_requests();
    test_phases();
    test_success();
    test_failures();
    test_undo_that_does_not_work();
    test_interrupted();
    test_count();
    test_one_moment();
    test_lock();
    test_limit_of_the_operator();
    test_vcpus();
    test_opposites();
    test_take_back();
    test_kills();

    return done_testing();
}
