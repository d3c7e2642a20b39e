/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * The value of vnuma= in a domain's configuration, parsed and checked.
 *
 * Pure functions: no I/O, no allocation, no locks; strings in, numbers or a
 * message out.  Messages name the vnode, the key and why.
 */
#ifndef XL_VNUMA_SPEC_H
#define XL_VNUMA_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VNUMA_SPEC_NODES 32     /* as many as Xen takes */
#define VNUMA_SPEC_VCPUS 512
#define VNUMA_SPEC_ERROR 160    /* enough for every message */

/* ACPI: distance to oneself; anything else must be larger, 255: unreachable. */
#define VNUMA_LOCAL_DISTANCE 10
#define VNUMA_REMOTE_DISTANCE 20
#define VNUMA_MAX_DISTANCE 254

/* Sizes of elastic vnodes are multiples of Linux' memory block. */
#define VNUMA_ELASTIC_MB 128

/* Name of a host in dsm.toml, with its 0. */
#define VNUMA_HOST_NAME 254

struct vnuma_spec {
    bool has_pnode, has_size, has_vcpus, has_vdistances, has_elastic;
    bool has_host, has_remote_vcpus;
    bool elastic;
    bool remote_vcpus;              /* its vCPUs run on that host, too */
    unsigned int pnode;
    uint64_t size_mb;
    uint8_t vcpus[VNUMA_SPEC_VCPUS / 8];
    unsigned int nr_distances;
    unsigned int distances[VNUMA_SPEC_NODES];
    char host[VNUMA_HOST_NAME];     /* whose memory it is, "": this one's */
};

/*
 * Take one KEY=VALUE of vnode @nr into @spec (zeroed before the first).
 * @error: VNUMA_SPEC_ERROR bytes, set on false only.
 */
bool vnuma_spec_item(struct vnuma_spec *spec, unsigned int nr,
                     const char *item, char *error);

/*
 * Check all @nr_specs vnodes against each other, and fill in what was left
 * out: distances.
 *
 * @nr_pnodes: nodes of the host
 * @nr_vcpus: out: how many vCPUs there are; they are 0 .. *nr_vcpus - 1
 */
bool vnuma_spec_check(struct vnuma_spec *specs, unsigned int nr_specs,
                      unsigned int nr_pnodes, unsigned int *nr_vcpus,
                      char *error);

static inline bool vnuma_spec_has_vcpu(const struct vnuma_spec *spec,
                                       unsigned int v)
{
    return spec->vcpus[v / 8] & (1u << (v % 8));
}

#endif /* XL_VNUMA_SPEC_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
