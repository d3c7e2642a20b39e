// SPDX-License-Identifier: GPL-2.0
/*
 * xl: vnuma= as a domain's configuration has it: what libxl is told, or why
 * not.  The grammar of one vnode is test_vnuma_spec.c's.
 */
#include <sys/wait.h>

#include "tap.h"
#include "xl.h"
#include "libxlutil.h"
#include "xl_vnuma.h"

static libxl_ctx the_ctx;
libxl_ctx *ctx = &the_ctx;

/*---------- a configuration ----------*/

#define MAX 40

struct XLU_ConfigValue { char *string; XLU_ConfigList *list; };
struct XLU_ConfigList { int nr; XLU_ConfigValue value[MAX]; };

static XLU_ConfigList vnuma, items[MAX];
static int list_rc;
static unsigned int host_nodes = 2, host_cpus = 8;

/* "pnode=0,size=512 size=128,elastic=1": vnodes and items; "!": no string. */
static void configure(const char *text)
{
    static char copy[2000];
    char *node, *item, *save = NULL, *save2;

    snprintf(copy, sizeof(copy), "%s", text);
    vnuma.nr = 0;
    for (node = strtok_r(copy, " ", &save); node;
         node = strtok_r(NULL, " ", &save)) {
        XLU_ConfigList *list = &items[vnuma.nr];

        list->nr = 0;
        for (item = strtok_r(node, ";", &save2); item;
             item = strtok_r(NULL, ";", &save2))
            list->value[list->nr++] =
                (XLU_ConfigValue) { strcmp(item, "!") ? item : NULL, NULL };
        vnuma.value[vnuma.nr++] = (XLU_ConfigValue) { NULL, list };
    }
}

int xlu_cfg_get_list(const XLU_Config *config, const char *name,
                     XLU_ConfigList **list, int *entries, int dont_warn)
{
    (void)config, (void)name, (void)dont_warn;
    *list = &vnuma;
    *entries = vnuma.nr;

    return list_rc;
}

XLU_ConfigValue *xlu_cfg_get_listitem2(const XLU_ConfigList *list, int entry)
{
    return entry < list->nr ? (XLU_ConfigValue *)&list->value[entry] : NULL;
}

int xlu_cfg_value_get_list(const XLU_Config *config, XLU_ConfigValue *value,
                           XLU_ConfigList **list, int dont_warn)
{
    (void)config, (void)dont_warn;
    *list = value->list;

    return value->list ? 0 : EINVAL;
}

int xlu_cfg_value_get_string(const XLU_Config *config, XLU_ConfigValue *value,
                             char **string, int dont_warn)
{
    (void)config, (void)dont_warn;
    *string = value->string;

    return value->string ? 0 : EINVAL;
}

/*---------- libxl and xl ----------*/

void libxl_physinfo_init(libxl_physinfo *info)
{
    info->nr_nodes = 0;
}

void libxl_physinfo_dispose(libxl_physinfo *info)
{
    info->nr_nodes = 0;
}

int libxl_get_physinfo(libxl_ctx *c, libxl_physinfo *info)
{
    (void)c;
    info->nr_nodes = host_nodes;

    return host_nodes ? 0 : ERROR_FAIL;
}

int libxl_get_online_cpus(libxl_ctx *c)
{
    (void)c;

    return host_cpus ? (int)host_cpus : ERROR_FAIL;
}

void libxl_vnode_info_init(libxl_vnode_info *info)
{
    *info = (libxl_vnode_info) { 0 };
}

int libxl_cpu_bitmap_alloc(libxl_ctx *c, libxl_bitmap *map, int max)
{
    (void)c;
    map->size = (max + 7) / 8;
    map->map = calloc(1, map->size);

    return 0;
}

void libxl_bitmap_set(libxl_bitmap *map, int bit)
{
    map->map[bit / 8] |= 1 << (bit % 8);
}

void libxl_defbool_set(libxl_defbool *b, bool value)
{
    b->val = value ? 1 : -1;
}

void *xcalloc(size_t nr, size_t size)
{
    return calloc(nr, size);
}

char *xstrdup(const char *s)
{
    return strdup(s);
}

/*---------- what libxl is told ----------*/

static libxl_domain_build_info given;
static char said[2000];

static void print_info(const libxl_domain_build_info *b)
{
    unsigned int i, d;

    printf("max %"PRIu64" target %"PRIu64" vcpus %d online %02x placement %d\n",
           b->max_memkb >> 10, b->target_memkb >> 10, b->max_vcpus,
           b->avail_vcpus.size ? b->avail_vcpus.map[0] : 0,
           b->numa_placement.val);
    for (i = 0; i < b->num_vnuma_nodes; i++) {
        const libxl_vnode_info *v = &b->vnuma_nodes[i];

        printf("%u: %"PRIu64" pnode %d%s%s%s%s vcpus %02x distances", i,
               v->memkb >> 10, (int)v->pnode, v->elastic ? " elastic" : "",
               v->host ? " host " : "", v->host ? v->host : "",
               v->remote_vcpus ? " remote" : "", v->vcpus.map[0]);
        for (d = 0; d < (unsigned int)v->num_distances; d++)
            printf(" %u", v->distances[d]);
        printf("\n");
    }
}

/* What xl says, or what libxl is told; the exit status. */
static int parse(const char *text)
{
    int out[2], status;
    size_t len = 0;
    ssize_t n;
    pid_t pid;

    configure(text);
    if (pipe(out))
        abort();
    fflush(stdout);
    pid = fork();
    if (!pid) {
        libxl_domain_build_info b = given;

        dup2(out[1], 1);
        dup2(out[1], 2);
        parse_vnuma_option(NULL, &b);
        print_info(&b);
        fflush(stdout);
        _exit(0);               /* what it has allocated goes to libxl */
    }
    close(out[1]);
    while ((n = read(out[0], said + len, sizeof(said) - 1 - len)) > 0)
        len += n;
    said[len] = '\0';
    close(out[0]);
    waitpid(pid, &status, 0);

    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define HOME "pnode=0;size=512;vcpus=0-1;vdistances=10,21"
#define ELASTIC "pnode=1;size=1024;vcpus=2-3;vdistances=21,10;elastic=1"

static bool tells(const char *text, const char *what)
{
    int code = parse(text);

    if (!code && !strcmp(said, what))
        return true;
    note("exit status %d: %s", code, said);

    return false;
}

static bool refuses(const char *text, const char *words)
{
    int code = parse(text);

    if (code == 1 && strstr(said, "xl: vnuma: ") && strstr(said, words))
        return true;
    note("exit status %d: %s", code, said);

    return false;
}

static void reset(void)
{
    given = (libxl_domain_build_info) {
        .max_memkb = LIBXL_MEMKB_DEFAULT, .target_memkb = LIBXL_MEMKB_DEFAULT,
    };
}

#define NODES "0: 512 pnode 0 vcpus 03 distances 10 21\n" \
              "1: 1024 pnode 1 elastic vcpus 0c distances 21 10\n"
#define DEFAULT "18014398509481983"

static void test_what_libxl_is_told(void)
{
    static uint8_t two[] = { 0x01 };

    reset();
    list_rc = ESRCH;
    ok_("no vnuma=: nothing is changed",
        tells("", "max " DEFAULT " target " DEFAULT " vcpus 0 online 00 "
              "placement 0\n"));
    list_rc = 0;
    ok_("an empty one is none",
        tells("", "max " DEFAULT " target " DEFAULT " vcpus 0 online 00 "
              "placement 0\n"));
    ok_("home's memory is the domain's, its vCPUs are online",
        tells(HOME " " ELASTIC, "max 512 target " DEFAULT " vcpus 4 online 03 "
              "placement -1\n" NODES));
    given.target_memkb = given.max_memkb = 512 << 10;
    given.max_vcpus = 4;
    ok_("... also if it says so itself",
        tells(HOME " " ELASTIC, "max 512 target 512 vcpus 4 online 03 "
              "placement -1\n" NODES));
    given.avail_vcpus = (libxl_bitmap) { 1, two };
    ok_("vcpus= says which are online",
        tells(HOME " " ELASTIC, "max 512 target 512 vcpus 4 online 01 "
              "placement -1\n" NODES));
    reset();
    ok_("an elastic vnode on no pnode in particular, without vCPUs",
        tells("pnode=1;size=512;vcpus=0 size=128;elastic=1",
              "max 512 target " DEFAULT " vcpus 1 online 01 placement -1\n"
              "0: 512 pnode 1 vcpus 01 distances 10 20\n"
              "1: 128 pnode -1 elastic vcpus 00 distances 20 10\n"));
    ok_("an elastic vnode on another host",
        tells("pnode=1;size=512;vcpus=0 size=128;elastic=1;host=b",
              "max 512 target " DEFAULT " vcpus 1 online 01 placement -1\n"
              "0: 512 pnode 1 vcpus 01 distances 10 20\n"
              "1: 128 pnode -1 elastic host b vcpus 00 distances 20 10\n"));
    ok_("... with its vCPUs",
        tells("pnode=1;size=512;vcpus=0 size=128;elastic=1;host=b;vcpus=1;"
              "remote_vcpus=1",
              "max 512 target " DEFAULT " vcpus 2 online 01 placement -1\n"
              "0: 512 pnode 1 vcpus 01 distances 10 20\n"
              "1: 128 pnode -1 elastic host b remote vcpus 02 distances 20 10\n"));
    ok_("two home vnodes: both count, and vcpus= is left as it is",
        tells("pnode=0;size=512;vcpus=0 pnode=1;size=256;vcpus=1",
              "max 768 target " DEFAULT " vcpus 2 online 00 placement -1\n"
              "0: 512 pnode 0 vcpus 01 distances 10 20\n"
              "1: 256 pnode 1 vcpus 02 distances 20 10\n"));
}

static void test_refusals(void)
{
    char many[2000] = "";
    unsigned int i;

    reset();
    list_rc = EINVAL;
    ok_("refused: no list", refuses("", "is not a list of vnodes"));
    list_rc = 0;
    ok_("refused: an item that is no text",
        refuses("pnode=0;!", "vnode 0: item 1 is not"));
    ok_("refused: a key that there is not",
        refuses(HOME ";colour=red", "colour"));
    ok_("refused: what does not fit together",
        refuses(HOME " pnode=1;size=512;vcpus=1;vdistances=21,10", "vnode"));
    for (i = 0; i < 33; i++)
        strcat(many, "size=128;elastic=1 ");
    ok_("refused: more than Xen takes",
        refuses(many, "there are 33 vnodes, at most 32"));
    ok_("refused: a home vnode on another host",
        refuses("pnode=0;size=512;vcpus=0 size=128;vcpus=1;host=b",
                "elastic=1 is missing"));
    ok_("refused: a pnode that there is not",
        refuses("pnode=2;size=512;vcpus=0", "pnode"));

    given.max_memkb = 1536 << 10;
    ok_("refused: maxmem= with the elastic memory in it",
        refuses(HOME " " ELASTIC, "have 512 MiB together, maxmem= is 1536"));
    reset();
    given.target_memkb = 256 << 10;
    ok_("refused: another memory=",
        refuses(HOME " " ELASTIC, "have 512 MiB together, memory= is 256"));
    reset();
    given.max_vcpus = 2;
    ok_("refused: another maxvcpus=",
        refuses(HOME " " ELASTIC, "have 4 vCPUs together, maxvcpus= is 2"));
    reset();
    host_cpus = 3;
    ok_("refused: more vCPUs than CPUs, unless maxvcpus= says so",
        refuses(HOME " " ELASTIC, "the host has 3 CPUs; maxvcpus=4 permits"));
    given.max_vcpus = 4;
    ok_("... and then they are permitted", parse(HOME " " ELASTIC) == 0);
    reset();
    host_cpus = 4;
    ok_("... and as many as CPUs, too", parse(HOME " " ELASTIC) == 0);
    host_cpus = 0;
    ok_("refused: CPUs that cannot be counted",
        refuses(HOME " " ELASTIC, "cannot learn the host's number of CPUs"));
    host_nodes = 0;
    ok_("refused: nodes that cannot be counted",
        refuses(HOME, "cannot learn the host's number of nodes"));
    vnuma = (XLU_ConfigList) { .nr = 1 };
}

int main(void)
{
    test_what_libxl_is_told();
    test_refusals();

    return done_testing();
}
