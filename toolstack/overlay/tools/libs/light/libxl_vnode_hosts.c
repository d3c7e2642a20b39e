/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Vnodes with host= when a domain is built: what is refused.
 *
 * Only what can be known here and now.  What the other hosts are, dsmd knows
 * (libxl_dsm.h), and Xen refuses what nobody has thought of.  Populate on
 * demand, save and migrate are refused for each domain with vNUMA, a device
 * model's features (viridian) for each with elastic vnodes.
 *
 * Locking: the domain is not known to anyone else yet.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"
#include "libxl_vnode_kernel.h"
#include "libxl_vnode_span.h"

/* Ports of an event channel that Linux can do without FIFO event channels. */
#define TWO_LEVEL_PORTS 4096

unsigned int libxl__vnode_nr_spanning(const libxl_domain_build_info *info)
{
    unsigned int i, nr = 0;

    for (i = 0; i < info->num_vnuma_nodes; i++)
        nr += !!info->vnuma_nodes[i].host;

    return nr;
}

bool libxl__vnode_has_remote_vcpus(const libxl_domain_build_info *info)
{
    unsigned int i;

    for (i = 0; i < info->num_vnuma_nodes; i++)
        if (info->vnuma_nodes[i].remote_vcpus)
            return true;

    return false;
}

/* One whose vCPUs are to run on its host. */
static int check_remote_vcpus(libxl__gc *gc, uint32_t domid,
                              const libxl_vnode_info *v, unsigned int nr)
{
    int rc = ERROR_VNUMA_CONFIG_INVALID;

    if (!v->host) {
        LOGD(ERROR, domid, "vnode %u: its vCPUs are to run on another host, "
             "and it has none (host)", nr);
        goto out;
    }
    if (libxl_bitmap_is_empty(&v->vcpus)) {
        LOGD(ERROR, domid, "vnode %u has no vCPUs that could run on host %s",
             nr, v->host);
        goto out;
    }
    if (libxl_bitmap_test(&v->vcpus, 0)) {
        LOGD(ERROR, domid, "vnode %u: vCPU 0 cannot run on host %s: the guest "
             "boots on it, at home", nr, v->host);
        goto out;
    }
    rc = 0;

 out:
    return rc;
}

/* One vnode by itself. */
static int check_vnode(libxl__gc *gc, uint32_t domid,
                       const libxl_vnode_info *v, unsigned int nr)
{
    int rc = ERROR_VNUMA_CONFIG_INVALID;

    if (!vnode_host_name_valid(v->host)) {
        LOGD(ERROR, domid, "vnode %u: host is not the name of a host in "
             "dsm.toml (letters, digits, - _ ., at most %d)", nr,
             VNODE_HOST_NAME - 1);
        goto out;
    }
    if (!v->elastic) {
        LOGD(ERROR, domid, "vnode %u is on host %s: a vnode on another host "
             "comes and goes, it must be elastic", nr, v->host);
        goto out;
    }
    if (v->pnode != LIBXL_VNODE_PNODE_ANY) {
        LOGD(ERROR, domid, "vnode %u is on host %s: pnode %"PRIu32" would be a "
             "node of this host", nr, v->host, v->pnode);
        goto out;
    }
    rc = 0;

 out:
    return rc;
}

/* How many hosts, this one included, and how much memory in all vnodes. */
static int check_sums(libxl__gc *gc, uint32_t domid,
                      const libxl_domain_build_info *info)
{
    unsigned int i, j, hosts = 1;
    uint64_t kb = 0;
    int rc = ERROR_VNUMA_CONFIG_INVALID;

    for (i = 0; i < info->num_vnuma_nodes; i++) {
        const char *host = info->vnuma_nodes[i].host;

        kb += info->vnuma_nodes[i].memkb;
        for (j = 0; host && j < i; j++)
            if (info->vnuma_nodes[j].host &&
                !strcmp(info->vnuma_nodes[j].host, host))
                break;
        hosts += host && j == i;
    }
    if (hosts > VNODE_HOSTS_MAX) {
        LOGD(ERROR, domid, "the vnodes are on %u hosts, this one included; at "
             "most %d are possible", hosts, VNODE_HOSTS_MAX);
        goto out;
    }
    if (kb > VNODE_DSM_KB_MAX) {
        LOGD(ERROR, domid, "the vnodes have %"PRIu64" MiB together; with one "
             "on another host at most %llu MiB are possible", kb >> 10,
             VNODE_DSM_KB_MAX >> 10);
        goto out;
    }
    rc = 0;

 out:
    return rc;
}

/* What a page that may be elsewhere does not go with. */
static int check_features(libxl__gc *gc, uint32_t domid,
                          const libxl_domain_config *d_config)
{
    const libxl_domain_create_info *c_info = &d_config->c_info;
    const libxl_domain_build_info *b_info = &d_config->b_info;
    const struct {
        bool given;
        const char *what, *why;
    } t[] = {
        { d_config->num_pcidevs || d_config->num_dtdevs ||
          c_info->passthrough != LIBXL_PASSTHROUGH_DISABLED,
          "passthrough of devices",
          "a device cannot wait for a page that is elsewhere" },
        { libxl_defbool_val(b_info->nested_hvm), "nested virtualisation",
          "Xen would use pages of the guest behind its back" },
        { b_info->altp2m != LIBXL_ALTP2M_MODE_DISABLED, "altp2m",
          "a page would have several mappings to take away" },
        { !libxl_defbool_val(c_info->hap), "hap=0",
          "the hardware must say which page a vCPU needs" },
    };
    unsigned int i;
    int rc = 0;

    for (i = 0; i < ARRAY_SIZE(t); i++) {
        if (!t[i].given)
            continue;
        LOGD(ERROR, domid, "a vnode on another host is not possible with %s: "
             "%s", t[i].what, t[i].why);
        rc = ERROR_VNUMA_CONFIG_INVALID;
        goto out;
    }

 out:
    return rc;
}

/*
 * What vCPUs on several hosts do not go with.  The TSC is read there as the
 * hardware has it: the mode that decides by itself may come to emulation.
 */
static int check_remote_features(libxl__gc *gc, uint32_t domid,
                                 libxl_domain_build_info *info)
{
    int rc = ERROR_VNUMA_CONFIG_INVALID;

    if (info->tsc_mode == LIBXL_TSC_MODE_DEFAULT)
        info->tsc_mode = LIBXL_TSC_MODE_NATIVE;
    if (info->tsc_mode != LIBXL_TSC_MODE_NATIVE) {
        LOGD(ERROR, domid, "vCPUs on another host are not possible with "
             "tsc_mode=%s: all of them read the TSC of their host; \"native\" "
             "is needed", libxl_tsc_mode_to_string(info->tsc_mode));
        goto out;
    }
    if (info->event_channels > TWO_LEVEL_PORTS) {
        LOGD(ERROR, domid, "vCPUs on another host are not possible with %"PRIu32
             " event channels: more than %d need FIFO event channels, which "
             "are one host's", info->event_channels, TWO_LEVEL_PORTS);
        goto out;
    }
    rc = 0;

 out:
    return rc;
}

int libxl__vnode_check_kernel(libxl__gc *gc, uint32_t domid,
                              const libxl_domain_build_info *info,
                              const void *image, size_t size)
{
    uint32_t abilities = 0;
    int rc = 0;

    if (!libxl__vnode_has_remote_vcpus(info)) goto out;
    if (!vnode_kernel_abilities(image, size, &abilities) ||
        !(abilities & VNODE_KERNEL_VCPU_INFO_PAGES)) {
        LOGD(ERROR, domid, "vCPUs on another host need a kernel that has a "
             "page for each vcpu_info, and this image does not say so (no ELF "
             "note "VNODE_KERNEL_NOTE"): give Xenuma's Linux as kernel=, not a "
             "boot loader, or leave remote_vcpus= out");
        rc = ERROR_VNUMA_CONFIG_INVALID;
        goto out;
    }
    if (!(abilities & VNODE_KERNEL_GRANTS_IN_MEMORY)) {
        LOGD(ERROR, domid, "vCPUs on another host need a kernel that has its "
             "tables of grants in its memory, and this image does not say so "
             "(bit 1 of its ELF note "VNODE_KERNEL_NOTE"): give Xenuma's Linux "
             "as kernel=, as new as this xl and built without "
             "CONFIG_XEN_UNPOPULATED_ALLOC, or leave remote_vcpus= out");
        rc = ERROR_VNUMA_CONFIG_INVALID;
        goto out;
    }
    if (!(abilities & VNODE_KERNEL_STAYS_IN_HYPERCALLS)) {
        LOGD(ERROR, domid, "vCPUs on another host need a kernel that is not "
             "preempted in a hypercall, and this image does not say so (bit 2 "
             "of its ELF note "VNODE_KERNEL_NOTE"): give Xenuma's Linux as "
             "kernel=, as new as this xl and built with CONFIG_PREEMPT_NONE or "
             "CONFIG_PREEMPT_VOLUNTARY and without CONFIG_PREEMPT_DYNAMIC, or "
             "leave remote_vcpus= out");
        rc = ERROR_VNUMA_CONFIG_INVALID;
    }

 out:
    return rc;
}

int libxl__vnode_check_hosts(libxl__gc *gc, uint32_t domid,
                             libxl_domain_config *d_config)
{
    libxl_domain_build_info *info = &d_config->b_info;
    unsigned int i;
    int rc = 0;

    for (i = 0; i < info->num_vnuma_nodes; i++) {
        if (!info->vnuma_nodes[i].remote_vcpus)
            continue;
        rc = check_remote_vcpus(gc, domid, &info->vnuma_nodes[i], i);
        if (rc) goto out;
    }
    if (!libxl__vnode_nr_spanning(info)) goto out;

    for (i = 0; i < info->num_vnuma_nodes; i++) {
        if (!info->vnuma_nodes[i].host)
            continue;
        rc = check_vnode(gc, domid, &info->vnuma_nodes[i], i);
        if (rc) goto out;
    }
    rc = check_sums(gc, domid, info);
    if (rc) goto out;
    rc = check_features(gc, domid, d_config);
    if (rc || !libxl__vnode_has_remote_vcpus(info)) goto out;
    rc = check_remote_features(gc, domid, info);

 out:
    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
