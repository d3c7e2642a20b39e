/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Elastic vnodes of a running domain: what they are and how they do.
 *
 * Reading, and the two hooks of libxl into what they are.  The toolstack's own
 * keys are parsed as strictly as the
 * guest's, but a wrong one is an error and not a faulty guest.
 *
 * Locking: none needed for reading.  Who acts on what libxl__vnode_load()
 * returned holds the domain's userdata lock around both.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"
#include "libxl_vnode_layout.h"

/*
 * How often the keys are read until they fit together.  Several processes at
 * work cost a few; only a guest that writes on purpose costs them all.
 */
#define LOAD_TRIES 20

/* NULL if the key is absent: that is an answer, a failure to read is none. */
static int guest_key(libxl__gc *gc, xs_transaction_t t, uint32_t domid,
                     const char *key, const char **out)
{
    return libxl__xs_read_checked(gc, t,
                                  GCSPRINTF("/local/domain/%"PRIu32
                                            "/vnuma/guest/%s", domid, key),
                                  out);
}

/* One of the toolstack's numbers; @dflt if the key is absent. */
static int own_number(libxl__gc *gc, xs_transaction_t t, uint32_t domid,
                      const char *path, uint64_t max, uint64_t dflt,
                      uint64_t *out)
{
    const char *s;
    int rc;

    rc = libxl__xs_read_checked(gc, t, path, &s);
    if (rc) goto out;

    *out = dflt;
    if (s && !vnode_parse_number(s, max, out)) {
        LOGD(ERROR, domid, "%s is \"%s\", which is not a number up to %"PRIu64,
             path, s, max);
        rc = ERROR_FAIL;
    }

 out:
    return rc;
}

/* A bitmap of the vCPUs that belong to a vnode. */
static int own_cpus(libxl__gc *gc, xs_transaction_t t, uint32_t domid,
                    unsigned int nr, unsigned int nr_vcpus, uint8_t *map)
{
    const char *cpus;
    int rc;

    rc = libxl__xs_read_checked(gc, t,
                                libxl__vnode_path(gc, domid, nr, "cpus"),
                                &cpus);
    if (rc) goto out;
    if (cpus && !vnode_parse_cpus(cpus, nr_vcpus, map)) {
        LOGD(ERROR, domid, "vnode %u: \"%s\" is not a list of vCPUs", nr, cpus);
        rc = ERROR_FAIL;
    }

 out:
    return rc;
}

static int load_report(libxl__gc *gc, xs_transaction_t t, uint32_t domid,
                       unsigned int nr, libxl__vnode *v)
{
    struct vnode_raw raw = { 0 };
    const struct {
        const char *key, **value;
    } keys[] = {
        { "state",       &raw.state },
        { "current-kb",  &raw.current_kb },
        { "residual-kb", &raw.residual_kb },
        { "progress-kb", &raw.progress_kb },
        { "reason",      &raw.reason },
        { "error",       &raw.error },
        { "phases",      &raw.phases },
    };
    unsigned int i;
    int rc;

    for (i = 0; i < ARRAY_SIZE(keys); i++) {
        rc = guest_key(gc, t, domid, GCSPRINTF("node/%u/%s", nr, keys[i].key),
                       keys[i].value);
        if (rc) goto out;
    }
    vnode_parse_report(&raw, v->max_kb, &v->report);
    rc = 0;

 out:
    return rc;
}

/* What is not "online" is offline: so the guest takes it. */
static int load_availability(libxl__gc *gc, xs_transaction_t t,
                             const libxl__vnode_domain *vd,
                             const uint8_t *cpus, enum vnode_cpus *out)
{
    enum vnode_cpus result = VNODE_CPUS_NONE;
    unsigned int v;
    int rc;

    for (v = 0; v < vd->nr_vcpus; v++) {
        enum vnode_cpus one = VNODE_CPUS_OFFLINE;
        const char *s;

        if (!libxl__vnode_has_vcpu(cpus, v))
            continue;
        rc = libxl__xs_read_checked(gc, t,
                                    GCSPRINTF("/local/domain/%"PRIu32
                                              "/cpu/%u/availability",
                                              vd->domid, v), &s);
        if (rc) goto out;
        if (s && !strcmp(s, "online"))
            one = VNODE_CPUS_ONLINE;
        result = result == VNODE_CPUS_NONE || result == one
                 ? one : VNODE_CPUS_MIXED;
    }
    *out = result;
    rc = 0;

 out:
    return rc;
}

/* One of the toolstack's own yes or no about a vnode; no if it is absent. */
static int own_flag(libxl__gc *gc, xs_transaction_t t,
                    const libxl__vnode_domain *vd, unsigned int nr,
                    const char *key, bool *out)
{
    uint64_t n;
    int rc;

    rc = own_number(gc, t, vd->domid,
                    libxl__vnode_libxl_path(gc, vd->domid, nr, key), 1, 0, &n);
    if (!rc)
        *out = n;

    return rc;
}

/* Of a vnode on another host: which, and what is recorded there. */
static int load_span(libxl__gc *gc, xs_transaction_t t,
                     const libxl__vnode_domain *vd, unsigned int nr,
                     libxl__vnode *v)
{
    int rc;

    rc = libxl__xs_read_checked(gc, t,
                                libxl__vnode_libxl_path(gc, vd->domid, nr,
                                                        "host"), &v->host);
    if (rc || !v->host) goto out;
    if (!vnode_host_name_valid(v->host)) {
        LOGD(ERROR, vd->domid, "vnode %u: its key \"host\" is not the name of "
             "a host", nr);
        rc = ERROR_FAIL;
        goto out;
    }
    v->pool_kb = vnode_pool_kb(vd->nr_vcpus, v->max_kb);
    rc = own_number(gc, t, vd->domid,
                    libxl__vnode_libxl_path(gc, vd->domid, nr, "there-kb"),
                    v->max_kb, 0, &v->there_kb);
    if (rc) goto out;
    rc = own_flag(gc, t, vd, nr, "remote-vcpus", &v->remote_vcpus);
    if (rc) goto out;
    rc = own_flag(gc, t, vd, nr, "placed", &v->placed);

 out:
    return rc;
}

static int load_vnode(libxl__gc *gc, xs_transaction_t t,
                      libxl__vnode_domain *vd, unsigned int nr)
{
    libxl__vnode *v = &vd->node[nr];
    const uint64_t max = UINT64_MAX >> 20;
    uint64_t n, pnode;
    int rc;

#define OWN(key, max, dflt, out)                                        \
    own_number(gc, t, vd->domid,                                        \
               libxl__vnode_path(gc, vd->domid, nr, key), max, dflt, out)
#define PRIVATE(key, max, dflt, out)                                    \
    own_number(gc, t, vd->domid,                                        \
               libxl__vnode_libxl_path(gc, vd->domid, nr, key),         \
               max, dflt, out)

    rc = OWN("elastic", 1, 0, &n);
    if (rc) goto out;
    v->elastic = n;
    rc = OWN("max-kb", max, 0, &v->max_kb);
    if (rc) goto out;
    rc = OWN("target-kb", v->max_kb, 0, &v->target_kb);
    if (rc) goto out;
    rc = PRIVATE("allowed-kb", v->max_kb, 0, &v->allowed_kb);
    if (rc) goto out;
    rc = PRIVATE("pnode", INT_MAX - 1, INT_MAX, &pnode);
    if (rc) goto out;
    v->pnode = pnode == INT_MAX ? -1 : pnode;
    v->table_pnode = v->pnode;
#undef OWN
#undef PRIVATE

    v->cpus = libxl__zalloc(gc, (vd->nr_vcpus + 7) / 8);
    rc = own_cpus(gc, t, vd->domid, nr, vd->nr_vcpus, v->cpus);
    if (rc) goto out;

    if (v->elastic) {
        rc = load_span(gc, t, vd, nr, v);
        if (rc) goto out;
        rc = load_availability(gc, t, vd, v->cpus, &v->availability);
        if (rc) goto out;
        rc = load_report(gc, t, vd->domid, nr, v);
    }

 out:
    return rc;
}

/* Xen's table; nr_vnodes stays 0 if there is none. */
static int load_vnuma(libxl__gc *gc, libxl__vnode_domain *vd)
{
    int r, rc;

    r = xc_domain_getvnuma(CTX->xch, vd->domid, &vd->nr_vnodes,
                           &vd->nr_vmemranges, &vd->nr_vcpus,
                           NULL, NULL, NULL);
    if (r && errno == EOPNOTSUPP)
        vd->nr_vnodes = 0;
    if (!r || errno == EOPNOTSUPP) {
        rc = 0;
        goto out;
    }
    rc = ERROR_FAIL;
    if (errno != ENOBUFS || vd->nr_vnodes > VNODE_MAX) {
        LOGED(ERROR, vd->domid, "cannot read the size of the domain's vNUMA "
              "table");
        goto out;
    }

    vd->vmemrange = libxl__calloc(gc, vd->nr_vmemranges,
                                  sizeof(*vd->vmemrange));
    vd->vdistance = libxl__calloc(gc, vd->nr_vnodes * vd->nr_vnodes,
                                  sizeof(*vd->vdistance));
    vd->vcpu_to_vnode = libxl__calloc(gc, vd->nr_vcpus,
                                      sizeof(*vd->vcpu_to_vnode));
    r = xc_domain_getvnuma(CTX->xch, vd->domid, &vd->nr_vnodes,
                           &vd->nr_vmemranges, &vd->nr_vcpus, vd->vmemrange,
                           vd->vdistance, vd->vcpu_to_vnode);
    if (r) {
        LOGED(ERROR, vd->domid, "cannot read the domain's vNUMA table");
        goto out;
    }
    rc = 0;

 out:
    return rc;
}

/* Make elastic vnodes faulty: all, or those that are said to have memory. */
static void blame_guest(libxl__vnode_domain *vd, bool all, const char *why)
{
    unsigned int i;

    for (i = 0; i < vd->nr_vnodes; i++) {
        struct vnode_report *r = &vd->node[i].report;

        if (vd->node[i].elastic && (all || r->current_kb) && !r->fault[0])
            snprintf(r->fault, sizeof(r->fault), "%s", why);
    }
}

/* Claims that no guest can honestly make make all its vnodes faulty. */
static void check_totals(libxl__gc *gc, libxl__vnode_domain *vd)
{
    uint64_t sum = 0;
    unsigned int i;

    /* Xen does not count here what is on another host. */
    for (i = 0; i < vd->nr_vnodes; i++)
        if (!vd->node[i].host)
            sum += vd->node[i].report.current_kb;

    if (!vnode_total_plausible(sum, vd->total_kb))
        blame_guest(vd, false,
                    GCSPRINTF("current-kb adds up to %"PRIu64" KiB, Xen counts "
                              "%"PRIu64, sum, vd->total_kb));
}

static int read_done(libxl__gc *gc, xs_transaction_t t, uint32_t domid,
                     uint64_t announced, uint64_t *done)
{
    const char *s;
    int rc;

    *done = 0;
    rc = guest_key(gc, t, domid, "done-generation", &s);
    if (rc) goto out;
    vnode_parse_number(s, announced, done);

 out:
    return rc;
}

int libxl__vnode_done_generation(libxl__gc *gc, uint32_t domid,
                                 uint64_t announced, uint64_t *done)
{
    return read_done(gc, XBT_NULL, domid, announced, done);
}

bool libxl__vnode_progress(libxl__gc *gc, uint32_t domid, unsigned int nr,
                           uint64_t max_kb, libxl_vnode_state *state,
                           uint64_t *progress_kb)
{
    libxl__vnode v = { .elastic = true, .max_kb = max_kb };

    if (load_report(gc, XBT_NULL, domid, nr, &v) || v.report.fault[0])
        return false;
    *state = libxl__vnode_public_state(&v);
    *progress_kb = v.report.progress_kb;

    return true;
}

static int load_op(libxl__gc *gc, xs_transaction_t t, libxl__vnode_domain *vd)
{
    const char *s;
    int rc;

    vd->op.kind = VNODE_OP_NONE;
    rc = libxl__xs_read_checked(gc, t, libxl__vnode_op_path(gc, vd->domid), &s);
    if (rc || !s) goto out;

    if (!vnode_parse_op(s, vd->nr_vnodes, &vd->op)) {
        LOGD(ERROR, vd->domid, "\"%s\" is not the record of an operation", s);
        rc = ERROR_FAIL;
    }

 out:
    return rc;
}

static uint64_t sum_allowances(const libxl__vnode_domain *vd)
{
    unsigned int i;
    uint64_t sum = 0;

    for (i = 0; i < vd->nr_vnodes; i++)
        sum += vd->node[i].allowed_kb;

    return sum;
}

static int load_keys(libxl__gc *gc, xs_transaction_t t,
                     libxl__vnode_domain *vd)
{
    const char *version;
    uint64_t sum, nr_vnodes;
    unsigned int i;
    int rc;

    /*
     * A domain that is being destroyed loses its keys first, and those of the
     * guest before ours: what is left of them makes no sense.
     */
    rc = own_number(gc, t, vd->domid,
                    GCSPRINTF("/local/domain/%"PRIu32"/vnuma/nodes", vd->domid),
                    VNODE_MAX, 0, &nr_vnodes);
    if (rc) goto out;
    if (!nr_vnodes) {
        vd->nr_vnodes = 0;
        vd->op.kind = VNODE_OP_NONE;
        goto out;
    }

    rc = own_number(gc, t, vd->domid,
                    GCSPRINTF("/local/domain/%"PRIu32"/vnuma/generation",
                              vd->domid),
                    UINT64_MAX - 1, 0, &vd->generation);
    if (rc) goto out;
    rc = read_done(gc, t, vd->domid, vd->generation, &vd->done);
    if (rc) goto out;
    rc = guest_key(gc, t, vd->domid, "version", &version);
    if (rc) goto out;
    vd->driver = version && !strcmp(version, "1");

    rc = load_op(gc, t, vd);
    if (rc) goto out;

    memset(vd->node, 0, vd->nr_vnodes * sizeof(*vd->node));
    for (i = 0; i < vd->nr_vnodes; i++) {
        rc = load_vnode(gc, t, vd, i);
        if (rc) goto out;
    }

    /* Nobody has set it: the limit is as it should be. */
    sum = sum_allowances(vd);
    rc = own_number(gc, t, vd->domid,
                    libxl__vnode_home_limit_path(gc, vd->domid),
                    UINT64_MAX >> 20,
                    vd->limit_kb > sum ? vd->limit_kb - sum : 0, &vd->home_kb);

 out:
    return rc;
}

static int load_counts(libxl__gc *gc, libxl__vnode_domain *vd)
{
    xc_domaininfo_t info;
    uint64_t total_kb;
    int rc = 0;

    if (xc_domain_getinfo_single(CTX->xch, vd->domid, &info) < 0) {
        rc = errno == ESRCH ? ERROR_DOMAIN_NOTFOUND : ERROR_FAIL;
        goto out;
    }
    total_kb = info.tot_pages << (XC_PAGE_SHIFT - 10);
    if (total_kb > vd->total_kb)
        vd->total_kb = total_kb;
    vd->limit_kb = info.max_pages << (XC_PAGE_SHIFT - 10);
    vd->uuid = GCSPRINTF(LIBXL_UUID_FMT, LIBXL__UUID_BYTES(info.handle));

 out:
    return rc;
}

int libxl__vnode_load(libxl__gc *gc, uint32_t domid, libxl__vnode_domain *out)
{
    xs_transaction_t t = 0;
    unsigned int tries;
    int rc;

    memset(out, 0, sizeof(*out));
    out->domid = domid;

    rc = load_counts(gc, out);
    if (rc) goto out;
    rc = load_vnuma(gc, out);
    if (rc || !out->nr_vnodes) goto out;

    out->node = libxl__calloc(gc, out->nr_vnodes, sizeof(*out->node));
    for (tries = 1;; tries++) {
        rc = libxl__xs_transaction_start(gc, &t);
        if (rc) goto out;
        rc = load_keys(gc, t, out);
        if (rc) goto out;
        /* Not aborted: only a commit says whether the reads fit together. */
        rc = libxl__xs_transaction_commit(gc, &t);
        if (rc < 0) goto out;
        if (!rc || tries == LOAD_TRIES) break;
    }
    if (rc)
        blame_guest(out, true, "its keys change faster than they can be read");

    /* Counted before and after: the guest gives, takes and says in between. */
    rc = load_counts(gc, out);
    if (rc) goto out;
    check_totals(gc, out);

 out:
    libxl__xs_transaction_abort(gc, &t);
    return rc;
}

int libxl__vnode_add_allowed_memkb(libxl__gc *gc, uint32_t domid,
                                   uint64_t *memkb)
{
    const char *path = GCSPRINTF("/libxl/%"PRIu32"/vnuma/node", domid);
    char **nodes;
    unsigned int i, nr = 0;
    uint64_t sum = 0, kb;
    int rc;

    nodes = libxl__xs_directory(gc, XBT_NULL, path, &nr);
    if (!nodes && errno != ENOENT) {
        LOGED(ERROR, domid, "cannot read %s", path);
        rc = ERROR_FAIL;
        goto out;
    }
    for (i = 0; nodes && i < nr; i++) {
        rc = own_number(gc, XBT_NULL, domid,
                        GCSPRINTF("%s/%s/allowed-kb", path, nodes[i]),
                        UINT64_MAX >> 20, 0, &kb);
        if (rc) goto out;
        sum += kb;
    }
    *memkb += sum;
    rc = 0;

 out:
    return rc;
}

int libxl__vnode_any_placed(libxl__gc *gc, uint32_t domid, bool *out)
{
    const char *path = GCSPRINTF("/libxl/%"PRIu32"/vnuma/node", domid);
    char **nodes;
    unsigned int i, nr = 0;
    uint64_t placed;
    int rc;

    *out = false;
    nodes = libxl__xs_directory(gc, XBT_NULL, path, &nr);
    if (!nodes && errno != ENOENT) {
        LOGED(ERROR, domid, "cannot read %s", path);
        rc = ERROR_FAIL;
        goto out;
    }
    for (i = 0; nodes && i < nr; i++) {
        rc = own_number(gc, XBT_NULL, domid,
                        GCSPRINTF("%s/%s/placed", path, nodes[i]), 1, 0,
                        &placed);
        if (rc) goto out;
        *out |= placed;
    }
    rc = 0;

 out:
    return rc;
}

int libxl__vnode_note_limit(libxl__gc *gc, xs_transaction_t t, uint32_t domid,
                            uint64_t limit_kb)
{
    const char *path = libxl__vnode_home_limit_path(gc, domid), *s;
    uint64_t allowed_kb = 0;
    int rc;

    rc = libxl__xs_read_checked(gc, t, path, &s);
    if (rc || !s) goto out;
    rc = libxl__vnode_add_allowed_memkb(gc, domid, &allowed_kb);
    if (rc) goto out;
    rc = libxl__xs_printf(gc, t, path, "%"PRIu64, limit_kb - allowed_kb);

 out:
    return rc;
}

/* Say which vCPUs stay as they are although the operator asks for others. */
static void explain_vcpus(libxl__gc *gc, uint32_t domid,
                          unsigned int nr_vcpus, const libxl_bitmap *wanted,
                          const uint8_t *elastic)
{
    uint8_t *differ = libxl__zalloc(gc, (nr_vcpus + 7) / 8);
    size_t len = nr_vcpus * 6 + 1;
    char *list = libxl__zalloc(gc, len);
    unsigned int v;

    for (v = 0; v < nr_vcpus; v++) {
        const char *s;

        if (!libxl__vnode_has_vcpu(elastic, v))
            continue;
        s = libxl__xs_read(gc, XBT_NULL,
                           GCSPRINTF("/local/domain/%"PRIu32
                                     "/cpu/%u/availability", domid, v));
        if ((s && !strcmp(s, "online")) != !!libxl_bitmap_test(wanted, v))
            differ[v / 8] |= 1 << (v % 8);
    }
    if (vnode_format_cpus(differ, nr_vcpus, list, len) && list[0])
        LOGD(WARN, domid, "vCPUs %s stay as they are: they belong to elastic "
             "vnodes, and come and go with vnode-attach and vnode-detach",
             list);
}

int libxl__vnode_elastic_vcpus(libxl__gc *gc, uint32_t domid,
                               unsigned int nr_vcpus,
                               const libxl_bitmap *wanted, uint8_t **out)
{
    uint8_t *all = libxl__zalloc(gc, (nr_vcpus + 7) / 8);
    uint8_t *map = libxl__zalloc(gc, (nr_vcpus + 7) / 8);
    uint64_t nr_vnodes, elastic;
    unsigned int i, b;
    bool any = false;
    int rc;

    *out = NULL;
    rc = own_number(gc, XBT_NULL, domid,
                    GCSPRINTF("/local/domain/%"PRIu32"/vnuma/nodes", domid),
                    VNODE_MAX, 0, &nr_vnodes);
    if (rc) goto out;

    for (i = 0; i < nr_vnodes; i++) {
        rc = own_number(gc, XBT_NULL, domid,
                        libxl__vnode_path(gc, domid, i, "elastic"), 1, 0,
                        &elastic);
        if (rc) goto out;
        if (!elastic)
            continue;
        rc = own_cpus(gc, XBT_NULL, domid, i, nr_vcpus, map);
        if (rc) goto out;
        for (b = 0; b < (nr_vcpus + 7) / 8; b++)
            all[b] |= map[b];
        any = true;
    }
    if (!any) goto out;

    explain_vcpus(gc, domid, nr_vcpus, wanted, all);
    *out = all;

 out:
    return rc;
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
                     bool attended, unsigned int nr, libxl_vnodeinfo *info)
{
    const libxl__vnode *v = &vd->node[nr];
    const struct vnode_report *r = &v->report;
    unsigned int c;
    int rc;

    rc = libxl_bitmap_alloc(CTX, &info->cpus, vd->nr_vcpus);
    if (rc) goto out;
    rc = libxl_bitmap_alloc(CTX, &info->there_cpus, vd->nr_vcpus);
    if (rc) goto out;
    for (c = 0; c < vd->nr_vcpus; c++)
        if (libxl__vnode_has_vcpu(v->cpus, c))
            libxl_bitmap_set(&info->cpus, c);

    info->vnode = nr;
    info->elastic = v->elastic;
    info->driver = vd->driver;
    info->state = libxl__vnode_public_state(v);
    info->pnode = v->pnode;
    info->host = libxl__strdup(NOGC, v->host);
    info->remote_vcpus = v->remote_vcpus;
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
        info->op_pid = attended ? vd->op.pid : 0;
        info->op_done = vd->done >= vd->op.generation;
    }

 out:
    return rc;
}

/* Does somebody attend the operation on record? */
static int is_attended(libxl__gc *gc, const libxl__vnode_domain *vd,
                       bool *attended)
{
    libxl__flock *lock = NULL;
    libxl__carefd *op_lock = NULL;
    int rc = 0;

    *attended = false;
    if (vd->op.kind == VNODE_OP_NONE) goto out;

    lock = libxl__lock_domain_userdata(gc, vd->domid);
    if (!lock) {
        rc = ERROR_LOCK_FAIL;
        goto out;
    }
    rc = libxl__vnode_lock(gc, vd->domid, &op_lock);
    if (rc == ERROR_LOCK_FAIL) {
        *attended = true;
        rc = 0;
    }

 out:
    libxl__vnode_unlock(&op_lock);
    if (lock) libxl__unlock_file(lock);
    return rc;
}

libxl_vnodeinfo *libxl_vnode_list(libxl_ctx *ctx, uint32_t domid, int *nr)
{
    GC_INIT(ctx);
    libxl__vnode_domain vd;
    libxl_vnodeinfo *list = NULL, *result = NULL;
    bool attended;
    unsigned int i;
    int rc;

    *nr = -1;
    rc = libxl__vnode_load(gc, domid, &vd);
    if (rc == ERROR_DOMAIN_NOTFOUND)
        LOGD(ERROR, domid, "there is no such domain");
    if (rc) goto out;
    if (!vd.nr_vnodes) {
        *nr = 0;
        goto out;
    }
    rc = is_attended(gc, &vd, &attended);
    if (rc) goto out;

    list = libxl__calloc(NOGC, vd.nr_vnodes, sizeof(*list));
    for (i = 0; i < vd.nr_vnodes; i++)
        libxl_vnodeinfo_init(&list[i]);
    for (i = 0; i < vd.nr_vnodes; i++) {
        rc = fill_info(gc, &vd, attended, i, &list[i]);
        if (rc) goto out;
    }
    *nr = vd.nr_vnodes;
    result = list;
    list = NULL;

 out:
    if (list) libxl_vnodeinfo_list_free(list, vd.nr_vnodes);
    GC_FREE;
    return result;
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
