/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * xl vnode-attach, vnode-detach, vnode-set: NUMA nodes of a guest that come
 * and go.  (vnode-list is in xl_vnode_list.c, and what they share is in
 * xl_vnode_common.c.)
 *
 * The commands run libxl's asynchronous operation in a loop of their own, so
 * that progress can be shown and SIGINT or SIGTERM cancel it: the guest is told
 * to undo it, and what is the case is said before xl ends.
 *
 * Single-threaded; no locking.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <libxl.h>
#include <libxl_utils.h>
#include <libxlutil.h>

#include "xl.h"
#include "xl_utils.h"
#include "xl_parse.h"
#include "xl_vnode.h"

/* Marks of our events. */
#define FOR_OPERATION 1
#define FOR_PROGRESS 2

/* A day, which its message tells. */
#define MAX_TIMEOUT_S 86400
#define NO_TIMEOUT "not a number of seconds from 0 to 86400"

typedef int start_fn(libxl_ctx *ctx, uint32_t domid,
                     const libxl_vnode_request *req,
                     const libxl_asyncop_how *ao_how,
                     const libxl_asyncprogress_how *progress);

struct run {
    uint32_t domid;
    libxl_asyncop_how how;
    int sigfd;
    bool tty, line_open;    /* progress on stderr; an unfinished line there */
    bool aborted;
    bool ended;
    int vnode;              /* that it is about; -1: not known yet */
    libxl_event *end;       /* says what has come of it; NULL: not said */
    int rc;
};

int vnode_exit_code(int rc)
{
    switch (rc) {
    case 0:                       return VNODE_EXIT_DONE;
    case ERROR_INVAL:             return VNODE_EXIT_USAGE;
    case ERROR_VNODE_REFUSED:     return VNODE_EXIT_REFUSED;
    case ERROR_VNODE_UNDONE:      return VNODE_EXIT_UNDONE;
    case ERROR_VNODE_RESIDUAL:    return VNODE_EXIT_RESIDUAL;
    case ERROR_ABORTED:
    case ERROR_VNODE_UNSETTLED:   return VNODE_EXIT_UNSETTLED;
    case ERROR_VNODE_NOT_UNDONE:  return VNODE_EXIT_NOT_UNDONE;
    default:                      return VNODE_EXIT_FAILED;
    }
}

/*---------- the loop ----------*/

static void close_line(struct run *run)
{
    if (run->line_open)
        fprintf(stderr, "\n");
    run->line_open = false;
}

static void show_progress(struct run *run, const libxl_event *ev)
{
    if (!run->tty)
        return;
    fprintf(stderr, "\r\033[K");
    if (ev->u.vnode_progress.vnode != ~0U)
        fprintf(stderr, "vnode %"PRIu32": ", ev->u.vnode_progress.vnode);
    switch (ev->u.vnode_progress.phase) {
    case LIBXL_VNODE_PHASE_PREPARE:
        fprintf(stderr, "preparing");
        break;
    case LIBXL_VNODE_PHASE_GUEST:
        if (!ev->u.vnode_progress.state) {
            fprintf(stderr, "waiting for the guest");
            break;
        }
        fprintf(stderr, "%s%s, %"PRIu64" of %"PRIu64" MiB",
                ev->u.vnode_progress.undoing ? "undoing: " : "",
                libxl_vnode_state_to_string(ev->u.vnode_progress.state),
                ev->u.vnode_progress.progress_memkb >> 10,
                ev->u.vnode_progress.target_memkb >> 10);
        break;
    case LIBXL_VNODE_PHASE_SETTLE:
    case LIBXL_VNODE_PHASE_END:
        fprintf(stderr, "settling");
        break;
    }
    fflush(stderr);
    run->line_open = true;
}

static void take_events(struct run *run)
{
    libxl_event *ev;

    while (!libxl_event_check(ctx, &ev, LIBXL_EVENTMASK_ALL, 0, 0)) {
        if (ev->type == LIBXL_EVENT_TYPE_VNODE_PROGRESS &&
            ev->for_user == FOR_PROGRESS) {
            if (ev->u.vnode_progress.vnode != ~0U)
                run->vnode = ev->u.vnode_progress.vnode;
            show_progress(run, ev);
            if (ev->u.vnode_progress.phase == LIBXL_VNODE_PHASE_END &&
                !run->end) {
                run->end = ev;
                continue;
            }
        }
        if (ev->type == LIBXL_EVENT_TYPE_OPERATION_COMPLETE &&
            ev->for_user == FOR_OPERATION) {
            run->rc = ev->u.operation_complete.rc;
            run->ended = true;
        }
        libxl_event_free(ctx, ev);
    }
}

/* First signal: cancel.  Second: leave at once. */
static void take_signal(struct run *run)
{
    struct signalfd_siginfo info;
    int rc;

    if (read(run->sigfd, &info, sizeof(info)) != sizeof(info))
        return;
    close_line(run);
    if (run->aborted) {
        fprintf(stderr, "interrupted again: the guest may still be at work, "
                "see xl vnode-list\n");
        exit(VNODE_EXIT_UNSETTLED);
    }
    run->aborted = true;
    rc = libxl_ao_abort(ctx, &run->how);
    if (rc && rc != ERROR_NOTFOUND)
        fprintf(stderr, "cannot cancel the operation (%d)\n", rc);
}

/* libxl's descriptors and, in front of them, ours. */
static int wait_once(struct run *run, struct pollfd **fds, int *room)
{
    struct timeval now;
    int nfds, timeout, rc;

    for (;;) {
        nfds = *room - 1;
        timeout = -1;
        gettimeofday(&now, NULL);
        rc = libxl_osevent_beforepoll(ctx, &nfds, *fds + 1, &timeout, now);
        if (!rc)
            break;
        if (rc != ERROR_BUFFERFULL)
            return rc;
        *room = nfds + 1;
        *fds = xrealloc(*fds, *room * sizeof(**fds));
    }

    (*fds)[0] = (struct pollfd) { .fd = run->sigfd, .events = POLLIN };
    if (poll(*fds, nfds + 1, timeout) < 0 && errno != EINTR)
        return ERROR_FAIL;

    gettimeofday(&now, NULL);
    libxl_osevent_afterpoll(ctx, nfds, *fds + 1, now);
    if ((*fds)[0].revents & POLLIN)
        take_signal(run);

    return 0;
}

static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL))
        return -1;

    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * *vnode: in what the request says, out which one it was about.  *end: what has
 * come of it, or NULL.
 */
static int run_operation(uint32_t domid, start_fn *start,
                         const libxl_vnode_request *req, int *vnode,
                         libxl_event **end)
{
    libxl_asyncprogress_how progress = {
        .callback = NULL,
        .for_event = FOR_PROGRESS,
    };
    struct run run = {
        .domid = domid,
        .how = { .callback = NULL, .u.for_event = FOR_OPERATION },
        .sigfd = open_signals(),
        .tty = isatty(STDERR_FILENO),
        .vnode = *vnode,
    };
    int room = 8;
    struct pollfd *fds;

    if (run.sigfd < 0) {
        fprintf(stderr, "cannot take signals: %s\n", strerror(errno));
        return ERROR_FAIL;
    }

    run.rc = start(ctx, domid, req, &run.how, &progress);
    if (run.rc) {
        close(run.sigfd);
        return run.rc;
    }

    fds = xmalloc(room * sizeof(*fds));
    while (take_events(&run), !run.ended) {
        int rc = wait_once(&run, &fds, &room);

        if (rc) {
            close_line(&run);
            fprintf(stderr, "cannot wait any longer (%d): the guest may still "
                    "be at work, see xl vnode-list\n", rc);
            run.rc = ERROR_VNODE_UNSETTLED;
            break;
        }
    }
    *vnode = run.vnode;
    *end = run.end;
    close_line(&run);
    free(fds);
    close(run.sigfd);

    return run.rc;
}

/*---------- what has come of it ----------*/

/* " (prepare 0.12 s, guest 3.21 s, settle 0.08 s)" */
static void print_phases(const char *phases)
{
    char *copy = xstrdup(phases), *name, *save = NULL;
    const char *before = " (";

    for (name = strtok_r(copy, ",", &save); name;
         name = strtok_r(NULL, ",", &save)) {
        char *us = strchr(name, '=');

        if (!us)
            continue;
        *us++ = '\0';
        printf("%s%s %.2f s", before, name, strtoull(us, NULL, 10) / 1e6);
        before = ", ";
    }
    if (before[0] == ',')
        printf(")");
    free(copy);
}

/* @ran: the operation got as far as the guest, so its phases are known */
static void print_state(const libxl_vnodeinfo *info, bool ran)
{
    char *cpus = vnode_cpus_string(&info->cpus);

    printf("vnode %"PRIu32": %s, %"PRIu64" of %"PRIu64" MiB", info->vnode,
           libxl_vnode_state_to_string(info->state),
           info->actual_memkb >> 10, info->max_memkb >> 10);
    if (info->pnode >= 0)
        printf(" on pnode %d", info->pnode);
    if (info->host)
        printf(" on host %s", info->host);
    printf(", CPUs %s", cpus[0] ? cpus : "-");
    if (info->residual_memkb)
        printf(", residual %"PRIu64" KiB", info->residual_memkb);
    if (info->op)
        printf(", %s not ended", libxl_vnode_op_to_string(info->op));
    if (ran && info->toolstack_phases)
        print_phases(info->toolstack_phases);
    printf("\n");
    free(cpus);
}

/* Where libxl has not said it: the vnodes' state, if there is the domain. */
static void print_list(uint32_t domid, int vnode, bool ran)
{
    libxl_vnodeinfo *list;
    int i, nr;

    list = libxl_vnode_list(ctx, domid, &nr);
    for (i = 0; list && i < nr; i++)
        if (list[i].elastic && (vnode < 0 || list[i].vnode == vnode))
            print_state(&list[i], ran);
    libxl_vnodeinfo_list_free(list, nr > 0 ? nr : 0);
}

static int operate(uint32_t domid, start_fn *start, libxl_vnode_request *req)
{
    int vnode = req->vnode;
    libxl_event *end = NULL;
    int rc = run_operation(domid, start, req, &vnode, &end);
    bool ran = !rc || rc == ERROR_VNODE_UNDONE || rc == ERROR_VNODE_RESIDUAL ||
               rc == ERROR_VNODE_NOT_UNDONE;

    if (end) {
        print_state(&end->u.vnode_progress.info, ran);
        libxl_event_free(ctx, end);
    } else if (rc != ERROR_INVAL && rc != ERROR_DOMAIN_DESTROYED &&
               rc != ERROR_DOMAIN_NOTFOUND) {
        print_list(domid, vnode, ran);
    }
    if (rc == ERROR_ABORTED)
        fprintf(stderr, "cancelled: the guest has been told to undo it; "
                "xl vnode-list shows when it has\n");

    return vnode_exit_code(rc);
}

/*---------- command lines ----------*/

static int number_arg(const char *command, const char *what, const char *arg,
                      long max)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(arg, &end, 10);
    if (errno || arg[0] < '0' || arg[0] > '9' || *end || n > max)
        vnode_usage(command, what, arg);

    return n;
}

/* @if_zero: what there is to say then; NULL: that it is none */
static uint64_t size_arg(const char *command, const char *arg,
                         const char *if_zero)
{
    int64_t kb = -1;

    if (arg[0] >= '0' && arg[0] <= '9' && strlen(arg) <= 12)
        kb = parse_mem_size_kb(arg);
    if (!kb && if_zero)
        vnode_usage(command, if_zero, arg);
    if (kb <= 0)
        vnode_usage(command, "not a size (number, then k, m or g; default m)",
                    arg);

    return kb;
}

/* Refuses what is there once more; *before: what was there. */
static void once(const char *command, const char *twice, const char **before,
                 const char *arg)
{
    if (*before) {
        char *both = xmalloc(strlen(*before) + strlen(arg) + 3);

        sprintf(both, "%s, %s", *before, arg);
        vnode_usage(command, twice, both);
    }
    *before = arg;
}

enum {
    OPT_NO_WAIT = CHAR_MAX + 1,
    OPT_TIMEOUT,
    OPT_GRACE,
};

static const struct option attach_options[] = {
    { "no-wait", no_argument, NULL, OPT_NO_WAIT },
    { "timeout", required_argument, NULL, OPT_TIMEOUT },
    COMMON_LONG_OPTS
};

static const struct option detach_options[] = {
    { "no-wait", no_argument, NULL, OPT_NO_WAIT },
    { "timeout", required_argument, NULL, OPT_TIMEOUT },
    { "grace", required_argument, NULL, OPT_GRACE },
    COMMON_LONG_OPTS
};

static void parse_options(int argc, char **argv, const char *command,
                          const struct option *options, int required,
                          libxl_vnode_request *req)
{
    const char *timeout = NULL, *grace = NULL;
    int opt;

    /* Start getopt() anew: main() made it stop at the first argument. */
    optind = 0;

    while ((opt = vnode_getopt(argc, argv, "", options, command,
                               required)) != -1) {
        switch (opt) {
        case OPT_NO_WAIT:
            libxl_defbool_set(&req->wait, false);
            break;
        case OPT_TIMEOUT:
            once(command, "--timeout twice", &timeout, optarg);
            req->timeout_ms = number_arg(command, NO_TIMEOUT, optarg,
                                         MAX_TIMEOUT_S) * 1000;
            break;
        case OPT_GRACE:
            once(command, "--grace twice", &grace, optarg);
            req->grace_ms = number_arg(command, "not a number of milliseconds",
                                       optarg, INT_MAX);
            break;
        }
    }
}

static void vnode_arg(const char *command, const char *arg,
                      libxl_vnode_request *req)
{
    req->vnode = number_arg(command, "not the number of a vnode", arg,
                            INT_MAX);
}

int main_vnodeattach(int argc, char **argv)
{
    static const char command[] = "vnode-attach";
    const char *pnode = NULL, *size = NULL;
    libxl_vnode_request req;
    uint32_t domid;
    int i;

    libxl_vnode_request_init(&req);
    parse_options(argc, argv, command, attach_options, 1, &req);
    domid = find_domain(argv[optind]);
    for (i = optind + 1; i < argc; i++) {
        if (!strncmp(argv[i], "pnode=", 6)) {
            once(command, "pnode= twice", &pnode, argv[i] + 6);
            req.pnode = number_arg(command, "not the number of a pnode", pnode,
                                   INT_MAX);
        } else if (!strncmp(argv[i], "size=", 5)) {
            once(command, "size= twice", &size, argv[i] + 5);
            req.memkb = size_arg(command, size, NULL);
        } else if (req.vnode < 0) {
            vnode_arg(command, argv[i], &req);
        } else {
            vnode_usage(command, "unexpected argument", argv[i]);
        }
    }

    return operate(domid, libxl_vnode_attach, &req);
}

int main_vnodedetach(int argc, char **argv)
{
    static const char command[] = "vnode-detach";
    libxl_vnode_request req;
    uint32_t domid;

    libxl_vnode_request_init(&req);
    parse_options(argc, argv, command, detach_options, 1, &req);
    domid = find_domain(argv[optind]);
    if (argc > optind + 1)
        vnode_arg(command, argv[optind + 1], &req);
    if (argc > optind + 2)
        vnode_usage(command, "unexpected argument", argv[optind + 2]);

    return operate(domid, libxl_vnode_detach, &req);
}

int main_vnodeset(int argc, char **argv)
{
    static const char command[] = "vnode-set";
    libxl_vnode_request req;
    uint32_t domid;

    libxl_vnode_request_init(&req);
    parse_options(argc, argv, command, detach_options, 3, &req);
    domid = find_domain(argv[optind]);
    vnode_arg(command, argv[optind + 1], &req);
    req.memkb = size_arg(command, argv[optind + 2],
                         "a node leaves with 'xl vnode-detach', not with size");
    if (argc > optind + 3)
        vnode_usage(command, "unexpected argument", argv[optind + 3]);

    return operate(domid, libxl_vnode_set, &req);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
