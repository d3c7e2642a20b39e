// SPDX-License-Identifier: GPL-2.0
/*
 * xl vnode-attach, vnode-detach and vnode-set: xl_vnode.c, before a libxl that
 * only notes the request and answers as a test says.
 */
#include <sys/wait.h>

#include "tap.h"
#include "xl_vnode.c"

static libxl_ctx the_ctx;
libxl_ctx *ctx = &the_ctx;

/* What libxl answers. */
static struct {
    int start_rc;
    uint32_t vnode;             /* that the operation turns out to be about */
    int rc;
    int poll_rc;                /* not 0: there are no events either */
    libxl_vnodeinfo info[3];
    libxl_vnodeinfo *end;       /* what it says has come of it, NULL: nothing */
} answer;

static libxl_event events[4];
static unsigned int next;
static char request[100];

/*---------- libxl and xl ----------*/

static int begin(const char *name, const libxl_vnode_request *req,
                 const libxl_asyncop_how *how,
                 const libxl_asyncprogress_how *progress)
{
    snprintf(request, sizeof(request), "%s %d %d %"PRIu64" %d %d %d", name,
             req->vnode, req->pnode, req->memkb, req->grace_ms,
             req->timeout_ms, req->wait.val);
    printf("%s\n", request);
    events[0] = (libxl_event) {
        .type = LIBXL_EVENT_TYPE_VNODE_PROGRESS,
        .for_user = progress->for_event,
        .u.vnode_progress = { .vnode = req->vnode,
                              .phase = LIBXL_VNODE_PHASE_PREPARE },
    };
    events[1] = events[0];
    events[1].u.vnode_progress.vnode = answer.vnode;
    events[1].u.vnode_progress.phase = LIBXL_VNODE_PHASE_GUEST;
    events[2] = events[1];
    if (answer.end) {
        events[2].u.vnode_progress.phase = LIBXL_VNODE_PHASE_END;
        events[2].u.vnode_progress.info = *answer.end;
    }
    events[3] = (libxl_event) {
        .type = LIBXL_EVENT_TYPE_OPERATION_COMPLETE,
        .for_user = how->u.for_event,
        .u.operation_complete.rc = answer.rc,
    };

    return answer.start_rc;
}

#define OPERATION(name)                                                 \
    int libxl_vnode_##name(libxl_ctx *c, uint32_t domid,                \
                           const libxl_vnode_request *req,              \
                           const libxl_asyncop_how *how,                \
                           const libxl_asyncprogress_how *progress)     \
    {                                                                   \
        (void)c, (void)domid;                                           \
                                                                        \
        return begin(#name, req, how, progress);                        \
    }
OPERATION(attach)
OPERATION(detach)
OPERATION(set)

int libxl_event_check(libxl_ctx *c, libxl_event **ev, uint64_t mask,
                      void *pred, void *pred_user)
{
    (void)c, (void)mask, (void)pred, (void)pred_user;
    if (next == NR(events) || answer.poll_rc)
        return ERROR_NOT_READY;
    *ev = &events[next++];

    return 0;
}

/* As libxl: what it says is gone. */
void libxl_event_free(libxl_ctx *c, libxl_event *ev)
{
    (void)c;
    memset(ev, 0, sizeof(*ev));
}

int libxl_osevent_beforepoll(libxl_ctx *c, int *nfds, struct pollfd *fds,
                             int *timeout, struct timeval now)
{
    (void)c, (void)fds, (void)now;
    *nfds = *timeout = 0;

    return answer.poll_rc;
}

void libxl_osevent_afterpoll(libxl_ctx *c, int nfds, const struct pollfd *fds,
                             struct timeval now)
{
    (void)c, (void)nfds, (void)fds, (void)now;
}

int libxl_ao_abort(libxl_ctx *c, const libxl_asyncop_how *how)
{
    (void)c, (void)how;

    return 0;
}

const char *libxl_vnode_state_to_string(libxl_vnode_state state)
{
    return state == LIBXL_VNODE_STATE_ONLINE ? "online" : "offline";
}

const char *libxl_vnode_op_to_string(libxl_vnode_op op)
{
    (void)op;

    return "attach";
}

libxl_vnodeinfo *libxl_vnode_list(libxl_ctx *c, uint32_t domid, int *nr)
{
    (void)c, (void)domid;
    printf("listed\n");
    *nr = NR(answer.info);

    return answer.info;
}

void libxl_vnodeinfo_list_free(libxl_vnodeinfo *list, int nr)
{
    (void)list, (void)nr;
}

int libxl_bitmap_test(const libxl_bitmap *map, int bit)
{
    return map->map[bit / 8] & (1 << (bit % 8));
}

void libxl_vnode_request_init(libxl_vnode_request *req)
{
    *req = (libxl_vnode_request) {
        .vnode = -1, .pnode = -1, .grace_ms = -1,
        .timeout_ms = LIBXL_VNODE_TIMEOUT_DEFAULT,
    };
}

void libxl_defbool_set(libxl_defbool *b, bool value)
{
    b->val = value ? 1 : -1;
}

void help(const char *command)
{
    fprintf(stderr, "Usage: xl %s\n", command);
}

uint32_t find_domain(const char *name)
{
    if (strcmp(name, "g"))
        exit(1);

    return 7;
}

void *xmalloc(size_t size)
{
    return malloc(size);
}

void *xcalloc(size_t nr, size_t size)
{
    return calloc(nr, size);
}

void *xrealloc(void *p, size_t size)
{
    return realloc(p, size);
}

char *xstrdup(const char *s)
{
    return strdup(s);
}

int64_t parse_mem_size_kb(const char *s)
{
    return atoll(s) << 10;
}

/*---------- command lines ----------*/

static char said[4000];

/* The exit status of a command line; what it says is in said[]. */
static int xl(const char *line)
{
    char copy[200], *argv[12], *save = NULL, *word;
    int argc = 0, out[2], status;
    size_t len = 0;
    ssize_t n;
    pid_t pid;

    snprintf(copy, sizeof(copy), "%s", line);
    for (word = strtok_r(copy, " ", &save); word;
         word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    argv[argc] = NULL;
    if (pipe(out))
        abort();
    fflush(stdout);             /* or the child says it once more */
    pid = fork();
    if (!pid) {
        dup2(out[1], 1);
        dup2(out[1], 2);
        setbuf(stdout, NULL);
        optind = 1;
        exit(!strcmp(argv[0], "vnode-attach") ? main_vnodeattach(argc, argv)
             : !strcmp(argv[0], "vnode-detach") ? main_vnodedetach(argc, argv)
             : main_vnodeset(argc, argv));
    }
    close(out[1]);
    while ((n = read(out[0], said + len, sizeof(said) - 1 - len)) > 0)
        len += n;
    said[len] = '\0';
    close(out[0]);
    waitpid(pid, &status, 0);

    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_lines(void)
{
    static const struct {
        const char *line;
        int code;
        const char *words;
    } t[] = {
        { "vnode-attach g", 0, "attach -1 -1 0 -1 -1 0\n" },
        { "vnode-attach g 1 pnode=2 size=64", 0,
          "attach 1 2 65536 -1 -1 0\n" },
        { "vnode-attach --no-wait --timeout=5 g 1", 0,
          "attach 1 -1 0 -1 5000 -1\n" },
        { "vnode-attach g 1 --timeout=0", 0, "attach 1 -1 0 -1 0 0\n" },
        { "vnode-attach --timeout 5 g 1", 0, "attach 1 -1 0 -1 5000 0\n" },
        { "vnode-detach g --grace=250", 0, "detach -1 -1 0 250 -1 0\n" },
        { "vnode-set g 1 128", 0, "set 1 -1 131072 -1 -1 0\n" },
        { "vnode-attach --help", 0, "Usage: xl vnode-attach" },
        { "vnode-attach -h", 0, "Usage: xl vnode-attach" },
        { "vnode-attach g 1 --timout=5", 2, "no such option: --timout=5\n" },
        { "vnode-attach --grace=5 g 1", 2, ": --grace=5\n" },
        { "vnode-attach --no-wait=1 g 1", 2,
          "this option has no value: --no-wait=1\n" },
        { "vnode-attach g --timeout", 2,
          "this option needs a value: --timeout\n" },
        { "vnode-detach -x g 1", 2, ": -x\n" },
        { "vnode-detach -xy g 1", 2, ": -x\n" },
        { "vnode-attach", 2, "at least: 1\n" },
        { "vnode-attach --no-wait", 2, "at least: 1\n" },
        { "vnode-set g 1", 2, "at least: 3\n" },
        { "vnode-set g 1 0", 2, "vnode-detach" },
        { "vnode-set g x 64", 2, "not the number of a vnode: x\n" },
        { "vnode-attach g 1 2", 2, "unexpected argument: 2\n" },
        { "vnode-detach g 1 2", 2, "unexpected argument: 2\n" },
        { "vnode-attach g 1 --timeout=x", 2, "from 0 to 86400: x\n" },
        { "vnode-attach g 1 --timeout=-1", 2, "from 0 to 86400: -1\n" },
        { "vnode-attach g 1 --timeout=86401", 2,
          "not a number of seconds from 0 to 86400: 86401\n" },
        { "vnode-attach g 1 size=x", 2, "not a size" },
        { "vnode-attach g 1 size=-5", 2, "not a size" },
        { "vnode-attach g +1", 2, "not the number of a vnode: +1\n" },
        { "vnode-attach g 1 pnode=+0", 2, "not the number of a pnode: +0\n" },
        { "vnode-attach g 1 pnode=", 2, "not the number of a pnode: \n" },
        { "vnode-attach g 1 pnode=2147483648", 2, "pnode: 2147483648\n" },
        { "vnode-attach g 1 size=64 size=128", 2, "size= twice: 64, 128\n" },
        { "vnode-attach g 1 pnode=1 pnode=0", 2, "pnode= twice: 1, 0\n" },
        { "vnode-attach g --timeout=5 1 --timeout=9", 2,
          "--timeout twice: 5, 9\n" },
        { "vnode-set --grace 5 g 1 64 --grace 5", 2, "--grace twice: 5, 5\n" },
        { "vnode-attach g 1 --time=5", 2, "no such option: --time=5\n" },
        { "vnode-attach g 1 --time 5", 2, "no such option: --time\n" },
        { "vnode-attach --no g 1", 2, "no such option: --no\n" },
        { "vnode-detach --hel", 2, "no such option: --hel\n" },
        { "vnode-set g 1 0m", 2, "leaves with 'xl vnode-detach'" },
        { "vnode-set g 1 x", 2, "not a size" },
        { "vnode-attach g 1 size=0", 2, "not a size" },
        { "vnode-attach nobody 1", 1, "" },
    };

    for (size_t i = 0; i < NR(t); i++) {
        int code = xl(t[i].line);

        ok_("xl %s", code == t[i].code && strstr(said, t[i].words), t[i].line);
        if (code != t[i].code || !strstr(said, t[i].words))
            note("not exit status %d and \"%s\", but %d: %s", t[i].code,
                 t[i].words, code, said);
    }
}

static void test_results(void)
{
    static const struct { int rc, code; bool shown, phases; } t[] = {
        { 0, 0, true, true },
        { ERROR_FAIL, 1, true, false },
        { ERROR_DOMAIN_NOTFOUND, 1, false, false },
        { ERROR_DOMAIN_DESTROYED, 1, false, false },
        { ERROR_INVAL, 2, false, false },
        { ERROR_VNODE_REFUSED, 3, true, false },
        { ERROR_VNODE_UNDONE, 4, true, true },
        { ERROR_VNODE_RESIDUAL, 5, true, true },
        { ERROR_VNODE_UNSETTLED, 6, true, false },
        { ERROR_ABORTED, 6, true, false },
        { ERROR_VNODE_NOT_UNDONE, 7, true, true },
    };

    for (size_t i = 0; i < NR(t); i++) {
        int code;

        answer.rc = t[i].rc;
        code = xl("vnode-attach g 1");
        ok_("libxl's %d is exit status %d", code == t[i].code &&
            t[i].shown == !!strstr(said, "vnode 1: ") &&
            t[i].phases == !!strstr(said, "(prepare 0.50 s, guest 2.00 s)") &&
            (t[i].rc == ERROR_ABORTED) == !!strstr(said, "cancelled"),
            t[i].rc, t[i].code);
    }
    answer.rc = 0;
    answer.start_rc = ERROR_NOMEM;
    ok_("an operation that does not start", xl("vnode-attach g 1") == 1);
    answer.start_rc = 0;

    answer.poll_rc = ERROR_NOMEM;
    ok_("an operation that cannot be waited for has not failed",
        xl("vnode-attach g 1") == 6 && strstr(said, "cannot wait any longer"));
    answer.poll_rc = 0;
}

/* Of several, the one that it was about, with its own phases. */
static void test_which(void)
{
    static char beta[] = "beta";

    answer.vnode = 2;
    ok_("without a number: the vnode that libxl has chosen",
        xl("vnode-attach g") == 0 && strstr(said, "vnode 2: ") &&
        !strstr(said, "vnode 1: "));
    answer.vnode = ~0U;
    ok_("refused before one was chosen: all elastic ones",
        xl("vnode-attach g") == 0 && strstr(said, "vnode 1: ") &&
        strstr(said, "vnode 2: ") && !strstr(said, "vnode 0: "));
    answer.vnode = 1;
    answer.info[1].host = beta;
    ok_("of another host's memory: where it is",
        xl("vnode-attach g 1") == 0 && strstr(said, " MiB on host beta, CPUs"));
    answer.info[1].host = NULL;
    ok_("of this host's: not", xl("vnode-attach g 1") == 0 &&
        !strstr(said, " on host "));
}

/* The last line is of what settling has read, if libxl says that. */
static void test_end(void)
{
    static char phases[] = "prepare=100000,settle=200000";
    libxl_vnodeinfo end = {
        .vnode = 1, .elastic = true, .toolstack_phases = phases,
        .state = LIBXL_VNODE_STATE_ONLINE, .pnode = 3,
        .actual_memkb = 64 << 10, .max_memkb = 256 << 10,
    };

    ok_("nothing has been said: the vnodes are read",
        xl("vnode-attach g 1") == 0 && strstr(said, "listed\n"));
    answer.end = &end;
    ok_("what has been said is not read again",
        xl("vnode-set g 1 64") == 0 && !strstr(said, "listed") &&
        strstr(said, "vnode 1: online, 64 of 256 MiB on pnode 3, CPUs - "
                     "(prepare 0.10 s, settle 0.20 s)\n"));
    answer.rc = ERROR_VNODE_REFUSED;
    ok_("... nor after a failure", xl("vnode-detach g") == 3 &&
        !strstr(said, "listed") && strstr(said, "on pnode 3, CPUs -\n"));
    answer.rc = 0;
    answer.end = NULL;
}

int main(void)
{
    static char phases[] = "prepare=500000,guest=2000000";

    answer.vnode = 1;
    for (unsigned int i = 0; i < NR(answer.info); i++)
        answer.info[i] = (libxl_vnodeinfo) {
            .vnode = i, .elastic = i > 0, .toolstack_phases = phases,
            .state = LIBXL_VNODE_STATE_ONLINE, .pnode = -1,
        };
    test_lines();
    test_results();
    test_which();
    test_end();

    return done_testing();
}
