/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * xl: the vnuma= option of a domain's configuration.
 *
 * Grammar and checks are in xl_vnuma_spec.c; this fetches the strings and
 * fills in libxl's structures.
 *
 * vnuma= decides on memory and vCPUs: the home vnodes' sizes add up to the
 * domain's memory, and all vnodes' vCPUs to maxvcpus=.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <libxl_utils.h>

#include "xl.h"
#include "xl_utils.h"
#include "xl_vnuma.h"
#include "xl_vnuma_spec.h"

static void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "xl: vnuma: ");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    exit(EXIT_FAILURE);
}

static unsigned int host_nodes(void)
{
    libxl_physinfo info;
    unsigned int nr;

    libxl_physinfo_init(&info);
    if (libxl_get_physinfo(ctx, &info))
        fail("cannot learn the host's number of nodes");
    nr = info.nr_nodes;
    libxl_physinfo_dispose(&info);

    return nr;
}

/* vnuma=[ [ "KEY=VALUE", ... ], ... ]; returns how many vnodes, 0: no option */
static unsigned int read_specs(const XLU_Config *config,
                               struct vnuma_spec *specs)
{
    char error[VNUMA_SPEC_ERROR];
    XLU_ConfigList *nodes, *items;
    XLU_ConfigValue *value;
    int nr_nodes, i, j, e;
    char *item;

    e = xlu_cfg_get_list(config, "vnuma", &nodes, &nr_nodes, 1);
    if (e == ESRCH)
        return 0;
    if (e)
        fail("is not a list of vnodes");
    if (nr_nodes > VNUMA_SPEC_NODES)
        fail("there are %d vnodes, at most %d are possible", nr_nodes,
             VNUMA_SPEC_NODES);

    for (i = 0; i < nr_nodes; i++) {
        value = xlu_cfg_get_listitem2(nodes, i);
        if (!value || xlu_cfg_value_get_list(config, value, &items, 1))
            fail("vnode %d is not a list of \"KEY=VALUE\"", i);

        for (j = 0; (value = xlu_cfg_get_listitem2(items, j)); j++) {
            if (xlu_cfg_value_get_string(config, value, &item, 1) || !item)
                fail("vnode %d: item %d is not \"KEY=VALUE\"", i, j);
            if (!vnuma_spec_item(&specs[i], i, item, error))
                fail("%s", error);
        }
    }

    return nr_nodes;
}

static void fill_vnode(libxl_vnode_info *v, const struct vnuma_spec *spec,
                       unsigned int nr_vcpus)
{
    unsigned int i;

    libxl_vnode_info_init(v);
    v->memkb = spec->size_mb << 10;
    v->pnode = spec->has_pnode ? spec->pnode : LIBXL_VNODE_PNODE_ANY;
    v->elastic = spec->elastic;
    v->host = spec->has_host ? xstrdup(spec->host) : NULL;
    v->remote_vcpus = spec->remote_vcpus;
    v->distances = xcalloc(spec->nr_distances, sizeof(*v->distances));
    v->num_distances = spec->nr_distances;
    for (i = 0; i < spec->nr_distances; i++)
        v->distances[i] = spec->distances[i];

    if (libxl_cpu_bitmap_alloc(ctx, &v->vcpus, nr_vcpus))
        fail("out of memory");
    for (i = 0; i < nr_vcpus; i++)
        if (vnuma_spec_has_vcpu(spec, i))
            libxl_bitmap_set(&v->vcpus, i);
}

static void settle_memory(libxl_domain_build_info *b_info, uint64_t home_kb)
{
    if (b_info->max_memkb != LIBXL_MEMKB_DEFAULT &&
        b_info->max_memkb != home_kb)
        fail("size=: the vnodes that are not elastic have %"PRIu64" MiB "
             "together, maxmem= is %"PRIu64" MiB", home_kb >> 10,
             b_info->max_memkb >> 10);
    if (b_info->target_memkb != LIBXL_MEMKB_DEFAULT &&
        b_info->target_memkb != home_kb)
        fail("size=: the vnodes that are not elastic have %"PRIu64" MiB "
             "together, memory= is %"PRIu64" MiB", home_kb >> 10,
             b_info->target_memkb >> 10);
    b_info->max_memkb = home_kb;
}

static void settle_vcpus(libxl_domain_build_info *b_info,
                         unsigned int nr_vcpus)
{
    int host_cpus;

    if (b_info->max_vcpus) {
        if (b_info->max_vcpus != nr_vcpus)
            fail("vcpus=: the vnodes have %u vCPUs together, maxvcpus= is %d",
                 nr_vcpus, b_info->max_vcpus);
        return;
    }

    host_cpus = libxl_get_online_cpus(ctx);
    if (host_cpus < 0)
        fail("cannot learn the host's number of CPUs");
    if (nr_vcpus > host_cpus)
        fail("vcpus=: the vnodes have %u vCPUs together, the host has %d "
             "CPUs; maxvcpus=%u permits it", nr_vcpus, host_cpus, nr_vcpus);
    b_info->max_vcpus = nr_vcpus;
}

/* Without vcpus=, all vCPUs of the home vnodes are online at boot. */
static void settle_online_vcpus(libxl_domain_build_info *b_info,
                                const struct vnuma_spec *specs,
                                unsigned int nr_specs, unsigned int nr_vcpus)
{
    unsigned int i, v;

    if (b_info->avail_vcpus.size)
        return;
    if (libxl_cpu_bitmap_alloc(ctx, &b_info->avail_vcpus, nr_vcpus))
        fail("out of memory");
    for (i = 0; i < nr_specs; i++)
        for (v = 0; !specs[i].elastic && v < nr_vcpus; v++)
            if (vnuma_spec_has_vcpu(&specs[i], v))
                libxl_bitmap_set(&b_info->avail_vcpus, v);
}

void parse_vnuma_option(const XLU_Config *config,
                        libxl_domain_build_info *b_info)
{
    struct vnuma_spec *specs = xcalloc(VNUMA_SPEC_NODES, sizeof(*specs));
    unsigned int i, nr_specs, nr_vcpus;
    char error[VNUMA_SPEC_ERROR];
    uint64_t home_kb = 0;
    bool elastic = false;

    nr_specs = read_specs(config, specs);
    if (!nr_specs)
        goto out;
    if (!vnuma_spec_check(specs, nr_specs, host_nodes(), &nr_vcpus, error))
        fail("%s", error);

    for (i = 0; i < nr_specs; i++) {
        elastic |= specs[i].elastic;
        if (!specs[i].elastic)
            home_kb += specs[i].size_mb << 10;
    }
    settle_memory(b_info, home_kb);
    settle_vcpus(b_info, nr_vcpus);
    if (elastic)
        settle_online_vcpus(b_info, specs, nr_specs, nr_vcpus);

    b_info->num_vnuma_nodes = nr_specs;
    b_info->vnuma_nodes = xcalloc(nr_specs, sizeof(*b_info->vnuma_nodes));
    for (i = 0; i < nr_specs; i++)
        fill_vnode(&b_info->vnuma_nodes[i], &specs[i], nr_vcpus);
    libxl_defbool_set(&b_info->numa_placement, false);

 out:
    free(specs);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
