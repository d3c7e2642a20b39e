/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * xl vnode-list: the vnodes of one or all domains, as a table or as JSON.
 *
 * JSON has all keys always (null if there is no value) so that scripts need no
 * special cases; sizes are KiB.
 *
 * Texts come from the guest; libxl has checked that they are printable.
 *
 * Single-threaded; no locking.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>

#include <libxl.h>
#include <libxl_json.h>
#include <libxl_utils.h>

#include "xl.h"
#include "xl_utils.h"
#include "xl_vnode.h"

/*---------- table ----------*/

/* "1024 MiB", "2.5 MiB", "12 KiB", "-" for nothing; @buf of 24 bytes */
static const char *size_string(uint64_t kb, char *buf)
{
    if (!kb)
        return "-";
    if (kb % 1024 == 0)
        snprintf(buf, 24, "%"PRIu64" MiB", kb / 1024);
    else if (kb > 1024)
        snprintf(buf, 24, "%.1f MiB", kb / 1024.0);
    else
        snprintf(buf, 24, "%"PRIu64" KiB", kb);

    return buf;
}

static void print_header(void)
{
    printf("%-20s %5s %5s %-9s %5s %9s %9s %9s %9s  %s\n", "Name", "ID",
           "Vnode", "State", "Pnode", "Target", "Actual", "Max", "Residual",
           "CPUs");
}

static void print_row(const char *name, uint32_t domid,
                      const libxl_vnodeinfo *v)
{
    char target[24], actual[24], max[24], residual[24], pnode[16] = "-";
    char *cpus = vnode_cpus_string(&v->cpus);

    if (v->pnode >= 0)
        snprintf(pnode, sizeof(pnode), "%d", v->pnode);
    printf("%-20s %5u %5"PRIu32" %-9s %5s %9s %9s %9s %9s  %s\n", name, domid,
           v->vnode, libxl_vnode_state_to_string(v->state), pnode,
           size_string(v->target_memkb, target),
           size_string(v->actual_memkb, actual),
           size_string(v->max_memkb, max),
           size_string(v->residual_memkb, residual), cpus[0] ? cpus : "-");
    free(cpus);
}

static void print_notes(const libxl_vnodeinfo *v)
{
    if (v->reason)
        printf("    vnode %"PRIu32": residual: %s\n", v->vnode, v->reason);
    if (v->error)
        printf("    vnode %"PRIu32": last operation: %s\n", v->vnode, v->error);
    if (v->fault)
        printf("    vnode %"PRIu32": the guest's report is faulty: %s\n",
               v->vnode, v->fault);
    if (v->op && v->op_pid)
        printf("    vnode %"PRIu32": %s under way, process %"PRIu32"\n",
               v->vnode, libxl_vnode_op_to_string(v->op), v->op_pid);
    else if (v->op)
        printf("    vnode %"PRIu32": %s under way, nobody waits for it\n",
               v->vnode, libxl_vnode_op_to_string(v->op));
}

/* ", CPUs 2-3 run there", of a vnode whose CPUs can. */
static void print_there(const libxl_vnodeinfo *v)
{
    char *cpus = vnode_cpus_string(&v->there_cpus);

    if (v->remote_vcpus && v->there_cpus_known && cpus[0])
        printf(", CPUs %s run there", cpus);
    else if (v->remote_vcpus && v->there_cpus_known)
        printf(", no CPU runs there");
    else if (v->remote_vcpus)
        printf(", where its CPUs run is not known");
    if (v->there_paused)
        printf(", paused there");
    free(cpus);
}

/* Of a vnode on another host. */
static void print_host(const libxl_vnodeinfo *v)
{
    printf("    vnode %"PRIu32": on host %s, link %s", v->vnode, v->host,
           libxl_vnode_link_to_string(v->link));
    print_there(v);
    if (v->link == LIBXL_VNODE_LINK_UNKNOWN)
        printf(": %s\n", v->link_error ? v->link_error : "dsmd was not asked");
    else
        printf(", pages: %"PRIu64" modified, %"PRIu64" shared, %"PRIu64
               " there; %"PRIu64" faults/s, median %.1f us, 99 %% %.1f us\n",
               v->modified_pages, v->shared_pages, v->home_pages,
               v->faults_per_s, v->median_ns / 1000.0, v->p99_ns / 1000.0);
}

static void print_domain(const char *name, uint32_t domid,
                         const libxl_vnodeinfo *list, int nr)
{
    bool elastic = false;
    int i;

    for (i = 0; i < nr; i++) {
        print_row(name, domid, &list[i]);
        elastic |= list[i].elastic;
    }
    for (i = 0; i < nr; i++) {
        if (list[i].host)
            print_host(&list[i]);
        print_notes(&list[i]);
    }
    if (elastic && !list[0].driver)
        printf("    no driver for elastic vnodes in the guest\n");
}

/*---------- JSON ----------*/

static void gen_string(yajl_gen hand, const char *s)
{
    if (s)
        yajl_gen_string(hand, (const unsigned char *)s, strlen(s));
    else
        yajl_gen_null(hand);
}

static void gen_text(yajl_gen hand, const char *key, const char *value)
{
    gen_string(hand, key);
    gen_string(hand, value);
}

static void gen_number(yajl_gen hand, const char *key, long long value)
{
    gen_string(hand, key);
    yajl_gen_integer(hand, value);
}

static void gen_flag(yajl_gen hand, const char *key, bool value)
{
    gen_string(hand, key);
    yajl_gen_bool(hand, value);
}

static void gen_cpus(yajl_gen hand, const char *key, const libxl_bitmap *cpus)
{
    int c;

    gen_string(hand, key);
    yajl_gen_array_open(hand);
    libxl_for_each_set_bit(c, *cpus)
        yajl_gen_integer(hand, c);
    yajl_gen_array_close(hand);
}

/* "populate=120,add=30" as an object; what is not name=number is left out */
static void gen_phases(yajl_gen hand, const char *key, const char *phases)
{
    char *copy = xstrdup(phases ? phases : ""), *item, *save = NULL;

    gen_string(hand, key);
    yajl_gen_map_open(hand);
    for (item = strtok_r(copy, ",", &save); item;
         item = strtok_r(NULL, ",", &save)) {
        char *value = strchr(item, '='), *end;
        long long us;

        if (!value || value == item)
            continue;
        *value++ = '\0';
        us = strtoll(value, &end, 10);
        if (end != value && !*end && us >= 0)
            gen_number(hand, item, us);
    }
    yajl_gen_map_close(hand);
    free(copy);
}

static void gen_op(yajl_gen hand, const libxl_vnodeinfo *v)
{
    gen_string(hand, "operation");
    if (!v->op) {
        yajl_gen_null(hand);
        return;
    }
    yajl_gen_map_open(hand);
    gen_text(hand, "kind", libxl_vnode_op_to_string(v->op));
    gen_number(hand, "pid", v->op_pid);
    gen_flag(hand, "done", v->op_done);
    yajl_gen_map_close(hand);
}

/* null: this host.  What dsmd has not said is null, too. */
static void gen_host(yajl_gen hand, const libxl_vnodeinfo *v)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        { "size_kib", v->there_memkb },
        { "pages_modified", v->modified_pages },
        { "pages_shared", v->shared_pages },
        { "pages_home", v->home_pages },
        { "faults_per_second", v->faults_per_s },
        { "median_ns", v->median_ns },
        { "p99_ns", v->p99_ns },
    };
    unsigned int i;

    gen_string(hand, "host");
    if (!v->host) {
        yajl_gen_null(hand);
        return;
    }
    yajl_gen_map_open(hand);
    gen_text(hand, "name", v->host);
    gen_text(hand, "link", libxl_vnode_link_to_string(v->link));
    gen_text(hand, "error", v->link_error);
    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (v->link != LIBXL_VNODE_LINK_UNKNOWN)
            gen_number(hand, numbers[i].key, numbers[i].value);
        else
            gen_text(hand, numbers[i].key, NULL);
    }
    gen_flag(hand, "remote_vcpus", v->remote_vcpus);
    if (v->there_cpus_known)
        gen_cpus(hand, "cpus", &v->there_cpus);
    else
        gen_text(hand, "cpus", NULL);
    gen_flag(hand, "paused", v->there_paused);
    yajl_gen_map_close(hand);
}

static void gen_vnode(yajl_gen hand, const libxl_vnodeinfo *v)
{
    yajl_gen_map_open(hand);
    gen_number(hand, "vnode", v->vnode);
    gen_text(hand, "state", libxl_vnode_state_to_string(v->state));
    gen_flag(hand, "elastic", v->elastic);
    gen_flag(hand, "driver", v->driver);
    gen_string(hand, "pnode");
    if (v->pnode >= 0)
        yajl_gen_integer(hand, v->pnode);
    else
        yajl_gen_null(hand);
    gen_number(hand, "target_kib", v->target_memkb);
    gen_number(hand, "actual_kib", v->actual_memkb);
    gen_number(hand, "max_kib", v->max_memkb);
    gen_number(hand, "residual_kib", v->residual_memkb);
    gen_number(hand, "progress_kib", v->progress_memkb);
    gen_cpus(hand, "cpus", &v->cpus);
    gen_text(hand, "reason", v->reason);
    gen_text(hand, "error", v->error);
    gen_text(hand, "fault", v->fault);
    gen_phases(hand, "phases_us", v->phases);
    gen_phases(hand, "toolstack_us", v->toolstack_phases);
    gen_op(hand, v);
    gen_host(hand, v);
    yajl_gen_map_close(hand);
}

static void gen_domain(yajl_gen hand, const char *name, uint32_t domid,
                       const libxl_vnodeinfo *list, int nr)
{
    int i;

    yajl_gen_map_open(hand);
    gen_number(hand, "domid", domid);
    gen_text(hand, "name", name);
    gen_string(hand, "vnodes");
    yajl_gen_array_open(hand);
    for (i = 0; i < nr; i++)
        gen_vnode(hand, &list[i]);
    yajl_gen_array_close(hand);
    yajl_gen_map_close(hand);
}

static int print_json(yajl_gen hand)
{
    const unsigned char *buf;
    libxl_yajl_length len;

    if (yajl_gen_get_buf(hand, &buf, &len) != yajl_gen_status_ok) {
        fprintf(stderr, "cannot make JSON\n");
        return VNODE_EXIT_FAILED;
    }
    printf("%s\n", buf);

    return VNODE_EXIT_DONE;
}

/*---------- the command ----------*/

/* @hand: NULL for a table */
static int list_domain(uint32_t domid, yajl_gen hand)
{
    libxl_vnodeinfo *list;
    char *name;
    int nr, rc;

    /* What ended unobserved is put in order before it is shown. */
    libxl_vnode_settle(ctx, domid, NULL);

    list = libxl_vnode_list(ctx, domid, &nr);
    if (nr < 0)
        return VNODE_EXIT_FAILED;
    rc = nr ? libxl_vnode_ask(ctx, domid, list, nr, NULL) : 0;
    name = libxl_domid_to_name(ctx, domid);
    if (hand)
        gen_domain(hand, name ? name : "", domid, list, nr);
    else
        print_domain(name ? name : "", domid, list, nr);
    free(name);
    libxl_vnodeinfo_list_free(list, nr);

    return rc ? VNODE_EXIT_FAILED : VNODE_EXIT_DONE;
}

static int list_all(yajl_gen hand)
{
    int i, nr, code = VNODE_EXIT_DONE;
    libxl_dominfo *info = libxl_list_domain(ctx, &nr);

    if (!info) {
        fprintf(stderr, "libxl_list_domain failed.\n");
        return VNODE_EXIT_FAILED;
    }
    /* Domain 0 has no virtual NUMA; one that vanishes meanwhile is no error. */
    for (i = 0; i < nr; i++)
        if (info[i].domid && !info[i].dying &&
            list_domain(info[i].domid, hand) &&
            libxl_domain_info(ctx, NULL, info[i].domid) !=
            ERROR_DOMAIN_NOTFOUND)
            code = VNODE_EXIT_FAILED;
    libxl_dominfo_list_free(info, nr);

    return code;
}

int main_vnodelist(int argc, char **argv)
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },
        COMMON_LONG_OPTS
    };
    yajl_gen hand = NULL;
    bool json = false;
    int opt, code = VNODE_EXIT_DONE;

    while ((opt = vnode_getopt(argc, argv, "j", options, "vnode-list",
                               0)) != -1)
        json = opt == 'j';

    if (json) {
        hand = libxl_yajl_gen_alloc(NULL);
        if (!hand) {
            fprintf(stderr, "cannot allocate JSON generator\n");
            return VNODE_EXIT_FAILED;
        }
        yajl_gen_array_open(hand);
    } else {
        print_header();
    }

    if (optind >= argc)
        code = list_all(hand);
    for (; optind < argc; optind++)
        if (list_domain(find_domain(argv[optind]), hand))
            code = VNODE_EXIT_FAILED;

    if (json) {
        yajl_gen_array_close(hand);
        if (print_json(hand))
            code = VNODE_EXIT_FAILED;
        yajl_gen_free(hand);
    }

    return code;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
