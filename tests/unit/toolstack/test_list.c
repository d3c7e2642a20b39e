// SPDX-License-Identifier: GPL-2.0
/*
 * xl vnode-list: xl_vnode_list.c, before a libxl with three domains.  5 has
 * vnodes, 6 has none, and 7 cannot be read.
 */
#include <sys/wait.h>

#include "tap.h"
#include "xl_vnode_list.c"

static libxl_ctx the_ctx;
libxl_ctx *ctx = &the_ctx;

static libxl_vnodeinfo info[3];
static bool no_list, no_name;
static libxl_dominfo domains[4];

/*---------- libxl and xl ----------*/

int libxl_vnode_settle(libxl_ctx *c, uint32_t domid,
                       const libxl_asyncop_how *how)
{
    (void)c, (void)how;
    fprintf(stderr, "settled %u\n", domid);

    return ERROR_FAIL;          /* which is no reason not to list */
}

libxl_vnodeinfo *libxl_vnode_list(libxl_ctx *c, uint32_t domid, int *nr)
{
    (void)c;
    *nr = domid == 5 ? (int)NR(info) : domid == 6 ? 0 : -1;

    return domid == 5 ? info : NULL;
}

static int ask_rc;

int libxl_vnode_ask(libxl_ctx *c, uint32_t domid, libxl_vnodeinfo *list, int nr,
                    const libxl_asyncop_how *how)
{
    (void)c, (void)list, (void)how;
    if (domid != 5 || nr != (int)NR(info))
        abort();

    return ask_rc;
}

const char *libxl_vnode_link_to_string(libxl_vnode_link link)
{
    return link == LIBXL_VNODE_LINK_UP ? "up" : "unknown";
}

void libxl_vnodeinfo_list_free(libxl_vnodeinfo *list, int nr)
{
    (void)list, (void)nr;
}

char *libxl_domid_to_name(libxl_ctx *c, uint32_t domid)
{
    (void)c, (void)domid;

    return no_name ? NULL : strdup("guest");
}

libxl_dominfo *libxl_list_domain(libxl_ctx *c, int *nr)
{
    (void)c;
    *nr = NR(domains);

    return no_list ? NULL : domains;
}

static bool gone;       /* 7, which cannot be read, since it has ended */

int libxl_domain_info(libxl_ctx *c, libxl_dominfo *domain, uint32_t domid)
{
    (void)c;
    if (domain || domid != 7)
        abort();

    return gone ? ERROR_DOMAIN_NOTFOUND : 0;
}

void libxl_dominfo_list_free(libxl_dominfo *list, int nr)
{
    (void)list, (void)nr;
}

const char *libxl_vnode_state_to_string(libxl_vnode_state state)
{
    return state == LIBXL_VNODE_STATE_HOME ? "home"
           : state == LIBXL_VNODE_STATE_RESIDUAL ? "residual" : "online";
}

const char *libxl_vnode_op_to_string(libxl_vnode_op op)
{
    return op == LIBXL_VNODE_OP_DETACH ? "detach" : "attach";
}

int libxl_bitmap_test(const libxl_bitmap *map, int bit)
{
    return map->map[bit / 8] & (1 << (bit % 8));
}

uint32_t find_domain(const char *name)
{
    return atoi(name);
}

void help(const char *command)
{
    fprintf(stderr, "Usage: xl %s\n", command);
}

void *xcalloc(size_t nr, size_t size)
{
    return calloc(nr, size);
}

char *xstrdup(const char *s)
{
    return strdup(s);
}

/*---------- what it says ----------*/

static char out[8000], err[2000];

static void take(FILE *file, char *buf, size_t room)
{
    size_t len;

    rewind(file);
    len = fread(buf, 1, room - 1, file);
    buf[len] = '\0';
    fclose(file);
}

/* The exit status of "vnode-list WORD WORD". */
static int list(const char *one, const char *two)
{
    char *argv[] = { "vnode-list", (char *)one, (char *)two, NULL };
    FILE *to[2] = { tmpfile(), tmpfile() };
    int status;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (!pid) {
        dup2(fileno(to[0]), 1);
        dup2(fileno(to[1]), 2);
        optind = 1;
        exit(main_vnodelist(1 + !!one + !!two, argv));
    }
    waitpid(pid, &status, 0);
    take(to[0], out, sizeof(out));
    take(to[1], err, sizeof(err));

    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool has(const char *where, const char *words)
{
    if (strstr(where, words))
        return true;
    note("not said: %s; but: %s", words, where);

    return false;
}

static void set_info(void)
{
    static const uint8_t all[3][2] = { { 0x03 }, { 0x2c }, { 0x00, 0x80 } };
    static uint8_t cpus[3][2];
    unsigned int i;

    memcpy(cpus, all, sizeof(cpus));
    for (i = 0; i < NR(info); i++)
        info[i] = (libxl_vnodeinfo) {
            .vnode = i, .state = LIBXL_VNODE_STATE_ONLINE, .elastic = i > 0,
            .driver = true, .pnode = i, .target_memkb = 1 << 20,
            .actual_memkb = 1 << 19, .max_memkb = 1 << 21,
            .progress_memkb = 4, .cpus = { 2, cpus[i] },
        };
    info[0].state = LIBXL_VNODE_STATE_HOME;
}

static void test_table(void)
{
    set_info();
    info[2].pnode = -1;
    info[2].target_memkb = 0;
    info[2].actual_memkb = 2560;
    info[2].residual_memkb = 12;
    ok_("the table: a line for each vnode, after it has been settled",
        list("5", NULL) == 0 && has(err, "settled 5\n") &&
        has(out, "guest                    5     0 home          0  1024 MiB "
            "  512 MiB  2048 MiB         -  0-1\n") &&
        has(out, "     1 online        1  1024 MiB   512 MiB  2048 MiB       "
            "  -  2-3,5\n") &&
        has(out, "     2 online        -         -   2.5 MiB  2048 MiB    12 "
            "KiB  15\n"));
    ok_("... and nothing below it", !strstr(out, "    vnode ") &&
        !strstr(out, "driver"));

    info[1].reason = "pinned: 3 pages";
    info[1].error = "-16 busy";
    info[2].fault = "current-kb is";
    info[2].op = LIBXL_VNODE_OP_DETACH;
    info[2].op_pid = 42;
    info[0].driver = false;
    ok_("reasons, errors, faults, operations, and no driver",
        list("5", NULL) == 0 &&
        has(out, "\n    vnode 1: residual: pinned: 3 pages\n") &&
        has(out, "\n    vnode 1: last operation: -16 busy\n") &&
        has(out, "\n    vnode 2: the guest's report is faulty: current-kb is") &&
        has(out, "\n    vnode 2: detach under way, process 42\n") &&
        has(out, "\n    no driver for elastic vnodes in the guest\n"));
    info[2].op_pid = 0;
    ok_("... that nobody waits for", list("5", NULL) == 0 &&
        has(out, "vnode 2: detach under way, nobody waits for it\n"));
    info[1].elastic = info[2].elastic = false;
    ok_("a guest without elastic vnodes needs no driver",
        list("5", NULL) == 0 && !strstr(out, "driver"));
    set_info();
    info[1].cpus.map[0] = 0;
    ok_("no CPUs", list("5", NULL) == 0 && has(out, "         -  -\n"));
}

static void test_domains(void)
{
    set_info();
    domains[0] = (libxl_dominfo) { .domid = 0 };
    domains[1] = (libxl_dominfo) { .domid = 5 };
    domains[2] = (libxl_dominfo) { .domid = 7, .dying = true };
    domains[3] = (libxl_dominfo) { .domid = 6 };
    ok_("all domains but domain 0 and those that die",
        list(NULL, NULL) == 0 && !strcmp(err, "settled 5\nsettled 6\n"));
    ok_("those that are named", list("6", "5") == 0 &&
        !strcmp(err, "settled 6\nsettled 5\n"));
    ok_("one that cannot be read", list("7", "5") == 1 && has(out, " home "));
    ok_("... wherever it stands", list("5", "7") == 1 && has(out, " home "));
    domains[2].dying = false;
    ok_("... or among all", list(NULL, NULL) == 1 && has(out, " home "));
    gone = true;
    ok_("... unless it ended meanwhile",
        list(NULL, NULL) == 0 && has(out, " home "));
    ok_("... but not one that is named", list("7", NULL) == 1);
    gone = false;
    no_list = true;
    ok_("domains that cannot be listed", list(NULL, NULL) == 1);
    no_list = false;
}

static void test_json(void)
{
    set_info();
    ok_("JSON: nothing but it", list("-j", "6") == 0 &&
        !strcmp(out, "[{\"domid\":6,\"name\":\"guest\",\"vnodes\":[]}]\n"));
    ok_("JSON: the option behind the domain", list("6", "-j") == 0 &&
        !strcmp(out, "[{\"domid\":6,\"name\":\"guest\",\"vnodes\":[]}]\n"));
    ok_("JSON: all keys, always", list("--json", "5") == 0 &&
        has(out, "{\"vnode\":1,\"state\":\"online\",\"elastic\":true,"
            "\"driver\":true,\"pnode\":1,\"target_kib\":1048576,"
            "\"actual_kib\":524288,\"max_kib\":2097152,\"residual_kib\":0,"
            "\"progress_kib\":4,\"cpus\":[2,3,5],\"reason\":null,"
            "\"error\":null,\"fault\":null,\"phases_us\":{},"
            "\"toolstack_us\":{},\"operation\":null,\"host\":null},{"));
    info[1].pnode = -1;
    info[1].reason = "a \"reason\"";
    info[1].error = "-5 x";
    info[1].fault = "why";
    info[1].phases = "populate=120,add=x,=3,online=-1,notify=7";
    info[1].toolstack_phases = "prepare=1";
    info[1].op = LIBXL_VNODE_OP_DETACH;
    info[1].op_pid = 42;
    info[1].op_done = true;
    info[1].residual_memkb = 8;
    ok_("JSON: what they can be", list("-j", "5") == 0 &&
        has(out, "\"pnode\":null,") && has(out, "\"residual_kib\":8,") &&
        has(out, "\"reason\":\"a \\\"reason\\\"\",\"error\":\"-5 x\","
            "\"fault\":\"why\",\"phases_us\":{\"populate\":120,\"notify\":7},"
            "\"toolstack_us\":{\"prepare\":1},\"operation\":{\"kind\":"
            "\"detach\",\"pid\":42,\"done\":true},\"host\":null}"));
    no_name = true;
    ok_("JSON: a domain that has lost its name", list("-j", "6") == 0 &&
        has(out, "\"name\":\"\""));
    no_name = false;
    ok_("JSON: of one that cannot be read, and of others",
        list("-j", "7") == 1 && !strcmp(out, "[]\n"));
}

static void test_host(void)
{
    static uint8_t there[2];

    set_info();
    info[1].host = "b";
    info[1].link = LIBXL_VNODE_LINK_UP;
    info[1].there_memkb = 1 << 20;
    info[1].modified_pages = 11;
    info[1].shared_pages = 12;
    info[1].home_pages = 13;
    info[1].faults_per_s = 14;
    info[1].median_ns = 15160;
    info[1].p99_ns = 170;
    info[1].there_cpus_known = true;
    info[1].there_cpus = (libxl_bitmap) { 2, there };
    ok_("on another host: which, link, pages, faults",
        list("5", NULL) == 0 && has(out, "\n    vnode 1: on host b, link up, "
            "pages: 11 modified, 12 shared, 13 there; 14 faults/s, median "
            "15.2 us, 99 % 0.2 us\n") && !strstr(out, "vnode 2: on"));
    ok_("on another host, as JSON", list("-j", "5") == 0 &&
        has(out, "\"host\":{\"name\":\"b\",\"link\":\"up\",\"error\":null,"
            "\"size_kib\":1048576,\"pages_modified\":11,"
            "\"pages_shared\":12,\"pages_home\":13,"
            "\"faults_per_second\":14,\"median_ns\":15160,"
            "\"p99_ns\":170,\"remote_vcpus\":false,\"cpus\":[],"
            "\"paused\":false}}"));
    info[1].remote_vcpus = true;
    ok_("its CPUs, which could run there", list("5", NULL) == 0 &&
        has(out, "on host b, link up, no CPU runs there, pages: "));
    there[0] = 0x0c;
    ok_("its CPUs, which run there", list("5", NULL) == 0 &&
        has(out, "on host b, link up, CPUs 2-3 run there, pages: 11"));
    ok_("... as JSON", list("-j", "5") == 0 &&
        has(out, "\"remote_vcpus\":true,\"cpus\":[2,3],\"paused\":false}}"));
    info[1].there_paused = true;
    ok_("... and stand still there", list("5", NULL) == 0 &&
        has(out, "link up, CPUs 2-3 run there, paused there, pages: 11") &&
        list("-j", "5") == 0 && has(out, "\"cpus\":[2,3],\"paused\":true}}"));
    info[1].there_paused = false;
    info[1].there_cpus_known = false;
    ok_("... nobody says where", list("5", NULL) == 0 &&
        has(out, "link up, where its CPUs run is not known, pages: ") &&
        list("-j", "5") == 0 &&
        has(out, "\"remote_vcpus\":true,\"cpus\":null,\"paused\":false}}"));
    info[1].remote_vcpus = false;
    info[1].link = LIBXL_VNODE_LINK_UNKNOWN;
    info[1].link_error = "no reply";
    ask_rc = ERROR_FAIL;
    ok_("dsmd does not answer: said, and a failure", list("5", NULL) == 1 &&
        has(out, "vnode 1: on host b, link unknown: no reply\n"));
    ok_("dsmd does not answer, as JSON", list("-j", "5") == 1 &&
        has(out, "\"host\":{\"name\":\"b\",\"link\":\"unknown\","
            "\"error\":\"no reply\",\"size_kib\":null,"
            "\"pages_modified\":null,"));
    ask_rc = 0;
}

int main(void)
{
    test_table();
    test_host();
    test_domains();
    test_json();

    return done_testing();
}
