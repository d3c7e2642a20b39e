/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes of a running domain: what they are and how they do.
 *
 * Reading only.  The toolstack's own keys are parsed as strictly as the
 * guest's, but a wrong one is an error and not a faulty guest.
 *
 * Locking: none needed for reading.  Who acts on what libxl__vnode_load()
 * returned holds the domain's userdata lock around both.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"
#include "libxl_vnode_layout.h"

char *libxl__vnode_path(libxl__gc *gc, uint32_t domid, unsigned int nr,
                        const char *key)
{
    return GCSPRINTF("/local/domain/%"PRIu32"/vnuma/node/%u/%s", domid, nr,
                     key);
}

char *libxl__vnode_libxl_path(libxl__gc *gc, uint32_t domid, unsigned int nr,
                              const char *key)
{
    return GCSPRINTF("/libxl/%"PRIu32"/vnuma/node/%u/%s", domid, nr, key);
}

char *libxl__vnode_op_path(libxl__gc *gc, uint32_t domid)
{
    return GCSPRINTF("/libxl/%"PRIu32"/vnuma/op", domid);
}

static const char *guest_key(libxl__gc *gc, uint32_t domid, const char *key)
{
    return libxl__xs_read(gc, XBT_NULL,
                          GCSPRINTF("/local/domain/%"PRIu32"/vnuma/guest/%s",
                                    domid, key));
}

static const char *guest_node_key(libxl__gc *gc, uint32_t domid,
                                  unsigned int nr, const char *key)
{
    return guest_key(gc, domid, GCSPRINTF("node/%u/%s", nr, key));
}

/* One of the toolstack's numbers; @dflt if the key is absent. */
static int own_number(libxl__gc *gc, uint32_t domid, const char *path,
                      uint64_t max, uint64_t dflt, uint64_t *out)
{
    const char *s;
    int rc;

    rc = libxl__xs_read_checked(gc, XBT_NULL, path, &s);
    if (rc)
        return rc;

    *out = dflt;
    if (s && !vnode_parse_number(s, max, out)) {
        LOGD(ERROR, domid, "%s is \"%s\", which is not a number up to %"PRIu64,
             path, s, max);
        return ERROR_FAIL;
    }

    return 0;
}

static void load_report(libxl__gc *gc, uint32_t domid, unsigned int nr,
                        libxl__vnode *v)
{
    struct vnode_raw raw = {
        .state       = guest_node_key(gc, domid, nr, "state"),
        .current_kb  = guest_node_key(gc, domid, nr, "current-kb"),
        .residual_kb = guest_node_key(gc, domid, nr, "residual-kb"),
        .progress_kb = guest_node_key(gc, domid, nr, "progress-kb"),
        .reason      = guest_node_key(gc, domid, nr, "reason"),
        .error       = guest_node_key(gc, domid, nr, "error"),
        .phases      = guest_node_key(gc, domid, nr, "phases"),
    };

    vnode_parse_report(&raw, v->max_kb, &v->report);
}

static int load_vnode(libxl__gc *gc, libxl__vnode_domain *vd, unsigned int nr)
{
    libxl__vnode *v = &vd->node[nr];
    const uint64_t max = UINT64_MAX >> 10;
    uint64_t n, pnode;
    const char *cpus;
    int rc;

#define OWN(key, max, dflt, out)                                        \
    own_number(gc, vd->domid, libxl__vnode_path(gc, vd->domid, nr, key), \
               max, dflt, out)
#define PRIVATE(key, max, dflt, out)                                    \
    own_number(gc, vd->domid,                                           \
               libxl__vnode_libxl_path(gc, vd->domid, nr, key),         \
               max, dflt, out)

    rc = OWN("elastic", 1, 0, &n);
    if (rc) return rc;
    v->elastic = n;
    rc = OWN("max-kb", max, 0, &v->max_kb);
    if (rc) return rc;
    rc = OWN("target-kb", v->max_kb, 0, &v->target_kb);
    if (rc) return rc;
    rc = PRIVATE("allowed-kb", v->max_kb, 0, &v->allowed_kb);
    if (rc) return rc;
    rc = PRIVATE("pnode", INT_MAX - 1, INT_MAX, &pnode);
    if (rc) return rc;
    v->pnode = pnode == INT_MAX ? -1 : pnode;
#undef OWN
#undef PRIVATE

    rc = libxl__xs_read_checked(gc, XBT_NULL,
                                libxl__vnode_path(gc, vd->domid, nr, "cpus"),
                                &cpus);
    if (rc) return rc;
    v->cpus = libxl__zalloc(gc, (vd->nr_vcpus + 7) / 8);
    if (cpus && !vnode_parse_cpus(cpus, vd->nr_vcpus, v->cpus)) {
        LOGD(ERROR, vd->domid, "vnode %u: \"%s\" is not a list of vCPUs", nr,
             cpus);
        return ERROR_FAIL;
    }

    if (v->elastic)
        load_report(gc, vd->domid, nr, v);

    return 0;
}

/* Xen's table; nr_vnodes stays 0 if there is none. */
static int load_vnuma(libxl__gc *gc, libxl__vnode_domain *vd)
{
    if (!xc_domain_getvnuma(CTX->xch, vd->domid, &vd->nr_vnodes,
                            &vd->nr_vmemranges, &vd->nr_vcpus,
                            NULL, NULL, NULL))
        return 0;
    if (errno == EOPNOTSUPP) {
        vd->nr_vnodes = 0;
        return 0;
    }
    if (errno != ENOBUFS || vd->nr_vnodes > VNODE_MAX)
        goto fail;

    vd->vmemrange = libxl__calloc(gc, vd->nr_vmemranges,
                                  sizeof(*vd->vmemrange));
    vd->vdistance = libxl__calloc(gc, vd->nr_vnodes * vd->nr_vnodes,
                                  sizeof(*vd->vdistance));
    vd->vcpu_to_vnode = libxl__calloc(gc, vd->nr_vcpus,
                                      sizeof(*vd->vcpu_to_vnode));
    if (!xc_domain_getvnuma(CTX->xch, vd->domid, &vd->nr_vnodes,
                            &vd->nr_vmemranges, &vd->nr_vcpus, vd->vmemrange,
                            vd->vdistance, vd->vcpu_to_vnode))
        return 0;

 fail:
    LOGED(ERROR, vd->domid, "cannot read the domain's vNUMA table");
    return ERROR_FAIL;
}

/* Claims that no guest can honestly make make all its vnodes faulty. */
static void check_totals(libxl__vnode_domain *vd)
{
    uint64_t sum = 0;
    unsigned int i;

    for (i = 0; i < vd->nr_vnodes; i++)
        sum += vd->node[i].report.current_kb;

    if (vnode_total_plausible(sum, vd->total_kb))
        return;

    for (i = 0; i < vd->nr_vnodes; i++) {
        struct vnode_report *r = &vd->node[i].report;

        if (r->current_kb && !r->fault[0])
            snprintf(r->fault, sizeof(r->fault),
                     "current-kb adds up to %"PRIu64" KiB, Xen counts %"PRIu64,
                     sum, vd->total_kb);
    }
}

uint64_t libxl__vnode_done_generation(libxl__gc *gc, uint32_t domid,
                                      uint64_t announced)
{
    uint64_t done;

    if (!vnode_parse_number(guest_key(gc, domid, "done-generation"),
                            announced, &done))
        return 0;

    return done;
}

bool libxl__vnode_progress(libxl__gc *gc, uint32_t domid, unsigned int nr,
                           uint64_t max_kb, libxl_vnode_state *state,
                           uint64_t *progress_kb)
{
    struct vnode_raw raw = {
        .state       = guest_node_key(gc, domid, nr, "state"),
        .current_kb  = guest_node_key(gc, domid, nr, "current-kb"),
        .progress_kb = guest_node_key(gc, domid, nr, "progress-kb"),
    };
    libxl__vnode v = { .elastic = true };

    if (!vnode_parse_report(&raw, max_kb, &v.report))
        return false;
    *state = libxl__vnode_public_state(&v);
    *progress_kb = v.report.progress_kb;

    return true;
}

static int load_op(libxl__gc *gc, libxl__vnode_domain *vd)
{
    const char *s;
    int rc;

    vd->op.kind = VNODE_OP_NONE;
    rc = libxl__xs_read_checked(gc, XBT_NULL,
                                libxl__vnode_op_path(gc, vd->domid), &s);
    if (rc || !s)
        return rc;

    if (!vnode_parse_op(s, vd->nr_vnodes, &vd->op)) {
        LOGD(ERROR, vd->domid, "\"%s\" is not the record of an operation", s);
        return ERROR_FAIL;
    }

    return 0;
}

int libxl__vnode_load(libxl__gc *gc, uint32_t domid, libxl__vnode_domain *out)
{
    xc_domaininfo_t info;
    const char *version;
    unsigned int i;
    int rc;

    memset(out, 0, sizeof(*out));
    out->domid = domid;

    if (xc_domain_getinfo_single(CTX->xch, domid, &info) < 0)
        return errno == ESRCH ? ERROR_DOMAIN_NOTFOUND : ERROR_FAIL;
    out->total_kb = info.tot_pages << (XC_PAGE_SHIFT - 10);

    rc = load_vnuma(gc, out);
    if (rc || !out->nr_vnodes)
        return rc;

    rc = own_number(gc, domid,
                    GCSPRINTF("/local/domain/%"PRIu32"/vnuma/generation",
                              domid),
                    UINT64_MAX - 1, 0, &out->generation);
    if (rc)
        return rc;

    /*
     * Before the vnodes' keys: those belong at least to the generation that
     * is read here.
     */
    out->done = libxl__vnode_done_generation(gc, domid, out->generation);
    version = guest_key(gc, domid, "version");
    out->driver = version && !strcmp(version, "1");

    rc = load_op(gc, out);
    if (rc)
        return rc;

    out->node = libxl__calloc(gc, out->nr_vnodes, sizeof(*out->node));
    for (i = 0; i < out->nr_vnodes; i++) {
        rc = load_vnode(gc, out, i);
        if (rc)
            return rc;
    }
    check_totals(out);

    return 0;
}

uint64_t libxl__vnode_allowed_memkb(libxl__gc *gc, uint32_t domid)
{
    char **nodes;
    unsigned int i, nr = 0;
    uint64_t sum = 0;

    nodes = libxl__xs_directory(gc, XBT_NULL,
                                GCSPRINTF("/libxl/%"PRIu32"/vnuma/node", domid),
                                &nr);
    for (i = 0; nodes && i < nr; i++) {
        const char *path =
            GCSPRINTF("/libxl/%"PRIu32"/vnuma/node/%s/allowed-kb", domid,
                      nodes[i]);
        uint64_t kb;

        if (vnode_parse_number(libxl__xs_read(gc, XBT_NULL, path),
                               UINT64_MAX >> 20, &kb))
            sum += kb;
    }

    return sum;
}

/*---------- phases ----------*/

uint64_t libxl__vnode_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);

    return now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
}

void libxl__vnode_write_phases(libxl__gc *gc, uint32_t domid, unsigned int nr,
                               const struct vnode_phases *phases)
{
    if (libxl__xs_printf(gc, XBT_NULL,
                         libxl__vnode_libxl_path(gc, domid, nr, "phases"),
                         "%s", phases->text))
        LOGD(WARN, domid, "vnode %u: cannot note the phases of the operation",
             nr);
}

/*---------- libxl_vnode_list() ----------*/

libxl_vnode_state libxl__vnode_public_state(const libxl__vnode *v)
{
    static const libxl_vnode_state states[] = {
        [VNODE_KEY_ABSENT]   = LIBXL_VNODE_STATE_OFFLINE,
        [VNODE_KEY_OFFLINE]  = LIBXL_VNODE_STATE_OFFLINE,
        [VNODE_KEY_GROWING]  = LIBXL_VNODE_STATE_GROWING,
        [VNODE_KEY_ONLINE]   = LIBXL_VNODE_STATE_ONLINE,
        [VNODE_KEY_DRAINING] = LIBXL_VNODE_STATE_DRAINING,
        [VNODE_KEY_RESIDUAL] = LIBXL_VNODE_STATE_RESIDUAL,
    };

    if (!v->elastic)
        return LIBXL_VNODE_STATE_HOME;
    if (v->report.fault[0])
        return LIBXL_VNODE_STATE_FAULTY;

    return states[v->report.state];
}

static char *public_text(libxl__gc *gc, const char *s)
{
    return s[0] ? libxl__strdup(NOGC, s) : NULL;
}

static int fill_info(libxl__gc *gc, const libxl__vnode_domain *vd,
                     unsigned int nr, libxl_vnodeinfo *info)
{
    const libxl__vnode *v = &vd->node[nr];
    const struct vnode_report *r = &v->report;
    unsigned int c;
    int rc;

    rc = libxl_bitmap_alloc(CTX, &info->cpus, vd->nr_vcpus);
    if (rc)
        return rc;
    for (c = 0; c < vd->nr_vcpus; c++)
        if (v->cpus[c / 8] & (1 << (c % 8)))
            libxl_bitmap_set(&info->cpus, c);

    info->vnode = nr;
    info->elastic = v->elastic;
    info->driver = vd->driver;
    info->state = libxl__vnode_public_state(v);
    info->pnode = v->pnode;
    info->target_memkb = v->target_kb;
    info->max_memkb = v->max_kb;
    /* Xen does not count by node; a home node has its memory for good. */
    info->actual_memkb = v->elastic ? r->current_kb : v->max_kb;
    info->residual_memkb = r->residual_kb;
    info->progress_memkb = r->progress_kb;
    info->reason = public_text(gc, r->reason);
    info->error = public_text(gc, r->error);
    info->fault = public_text(gc, r->fault);
    info->phases = public_text(gc, r->phases);
    info->toolstack_phases =
        libxl__strdup(NOGC, libxl__xs_read(gc, XBT_NULL,
                                           libxl__vnode_libxl_path(gc,
                                               vd->domid, nr, "phases")));
    if (vd->op.kind != VNODE_OP_NONE && vd->op.vnode == nr) {
        info->op = (libxl_vnode_op)vd->op.kind;
        info->op_pid = libxl__vnode_op_attended(&vd->op) ? vd->op.pid : 0;
        info->op_done = vd->done >= vd->op.generation;
    }

    return 0;
}

libxl_vnodeinfo *libxl_vnode_list(libxl_ctx *ctx, uint32_t domid, int *nr)
{
    GC_INIT(ctx);
    libxl__vnode_domain vd;
    libxl_vnodeinfo *list = NULL;
    unsigned int i;
    int rc;

    *nr = 0;
    rc = libxl__vnode_load(gc, domid, &vd);
    if (rc == ERROR_DOMAIN_NOTFOUND)
        LOGD(ERROR, domid, "there is no such domain");
    if (rc) {
        *nr = -1;
        goto out;
    }
    if (!vd.nr_vnodes)
        goto out;

    list = libxl__calloc(NOGC, vd.nr_vnodes, sizeof(*list));
    for (i = 0; i < vd.nr_vnodes; i++)
        libxl_vnodeinfo_init(&list[i]);
    for (i = 0; i < vd.nr_vnodes; i++)
        if (fill_info(gc, &vd, i, &list[i])) {
            libxl_vnodeinfo_list_free(list, vd.nr_vnodes);
            list = NULL;
            *nr = -1;
            goto out;
        }
    *nr = vd.nr_vnodes;

 out:
    GC_FREE;
    return list;
}

void libxl_vnodeinfo_list_free(libxl_vnodeinfo *list, int nr)
{
    int i;

    for (i = 0; i < nr; i++)
        libxl_vnodeinfo_dispose(&list[i]);
    free(list);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
