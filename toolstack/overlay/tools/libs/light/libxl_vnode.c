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

/* What xenstore has of a domain's vnodes, as read: NULL is an absent key. */
struct texts {
    const char *nodes, *generation, *done, *version, *op, *home_limit;
    struct node_texts {
        const char *elastic, *max_kb, *target_kb, *cpus;
        const char *allowed_kb, *pnode, *host;
        /* of elastic ones */
        struct vnode_raw report;
        const char **availability;      /* of each vCPU that is its own */
        /* of those on another host */
        const char *there_kb, *remote_vcpus, *placed;
    } *node;
};

static void read_guest(libxl__gc *gc, libxl__vnode_batch *batch, uint32_t domid,
                       const char *key, const char **out)
{
    libxl__vnode_read(gc, batch,
                      GCSPRINTF("/local/domain/%"PRIu32"/vnuma/guest/%s", domid,
                                key), out);
}

/*
 * One of the toolstack's numbers; @dflt if the key is absent.  ERROR_FAIL (not
 * logged): *nonsense says why.
 */
static int parse_number(libxl__gc *gc, const char *path, const char *s,
                        uint64_t max, uint64_t dflt, uint64_t *out,
                        const char **nonsense)
{
    int rc = 0;

    *out = dflt;
    if (s && !vnode_parse_number(s, max, out)) {
        *nonsense = GCSPRINTF("%s is \"%s\", which is not a number up to "
                              "%"PRIu64, path, s, max);
        rc = ERROR_FAIL;
    }

    return rc;
}

static int own_number(libxl__gc *gc, xs_transaction_t t, uint32_t domid,
                      const char *path, uint64_t max, uint64_t dflt,
                      uint64_t *out)
{
    const char *s, *nonsense;
    int rc;

    rc = libxl__xs_read_checked(gc, t, path, &s);
    if (rc) goto out;
    rc = parse_number(gc, path, s, max, dflt, out, &nonsense);
    if (rc)
        LOGD(ERROR, domid, "%s", nonsense);

 out:
    return rc;
}

/* A bitmap of the vCPUs that belong to a vnode.  Fails as above. */
static int parse_cpus(libxl__gc *gc, unsigned int nr, const char *cpus,
                      unsigned int nr_vcpus, uint8_t *map,
                      const char **nonsense)
{
    int rc = 0;

    if (cpus && !vnode_parse_cpus(cpus, nr_vcpus, map)) {
        *nonsense = GCSPRINTF("vnode %u: \"%s\" is not a list of vCPUs", nr,
                              cpus);
        rc = ERROR_FAIL;
    }

    return rc;
}

/* @all: also what is only for people, and decides nothing. */
static void read_report(libxl__gc *gc, libxl__vnode_batch *batch,
                        uint32_t domid, unsigned int nr, bool all,
                        struct vnode_raw *raw)
{
    const struct {
        const char *key, **value;
        bool for_people;
    } keys[] = {
        { "state",       &raw->state },
        { "current-kb",  &raw->current_kb },
        { "residual-kb", &raw->residual_kb },
        { "progress-kb", &raw->progress_kb },
        { "error",       &raw->error },
        { "reason",      &raw->reason, true },
        { "phases",      &raw->phases, true },
    };
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(keys); i++)
        if (all || !keys[i].for_people)
            read_guest(gc, batch, domid,
                       GCSPRINTF("node/%u/%s", nr, keys[i].key),
                       keys[i].value);
}

/* What is not "online" is offline: so the guest takes it. */
static enum vnode_cpus parse_availability(const libxl__vnode_domain *vd,
                                          const uint8_t *cpus,
                                          const char *const *texts)
{
    enum vnode_cpus result = VNODE_CPUS_NONE;
    unsigned int v;

    for (v = 0; v < vd->nr_vcpus; v++) {
        enum vnode_cpus one = VNODE_CPUS_OFFLINE;

        if (!libxl__vnode_has_vcpu(cpus, v))
            continue;
        if (texts[v] && !strcmp(texts[v], "online"))
            one = VNODE_CPUS_ONLINE;
        result = result == VNODE_CPUS_NONE || result == one
                 ? one : VNODE_CPUS_MIXED;
    }

    return result;
}

/* What is known of each vnode; the rest depends on it. */
static void read_node(libxl__gc *gc, libxl__vnode_batch *batch,
                      const libxl__vnode_domain *vd, unsigned int nr,
                      struct node_texts *s)
{
    const struct {
        const char *key, **value;
        bool private;
    } keys[] = {
        { "elastic",    &s->elastic },
        { "max-kb",     &s->max_kb },
        { "target-kb",  &s->target_kb },
        { "cpus",       &s->cpus },
        { "allowed-kb", &s->allowed_kb, true },
        { "pnode",      &s->pnode, true },
        { "host",       &s->host, true },
    };
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(keys); i++)
        libxl__vnode_read(gc, batch,
                          (keys[i].private ? libxl__vnode_libxl_path
                                           : libxl__vnode_path)
                          (gc, vd->domid, nr, keys[i].key), keys[i].value);
}

/* The toolstack's numbers of a vnode, below @path. */
#define NUMBER(path, key, s, max, dflt, out)                            \
    parse_number(gc, path(gc, vd->domid, nr, key), s, max, dflt, out,   \
                 &vd->nonsense)

static int parse_node(libxl__gc *gc, libxl__vnode_domain *vd, unsigned int nr,
                      const struct node_texts *s)
{
    libxl__vnode *v = &vd->node[nr];
    const uint64_t max = UINT64_MAX >> 20;
    uint64_t n, pnode;
    int rc;

    rc = NUMBER(libxl__vnode_path, "elastic", s->elastic, 1, 0, &n);
    if (rc) goto out;
    v->elastic = n;
    rc = NUMBER(libxl__vnode_path, "max-kb", s->max_kb, max, 0, &v->max_kb);
    if (rc) goto out;
    rc = NUMBER(libxl__vnode_path, "target-kb", s->target_kb, v->max_kb, 0,
                &v->target_kb);
    if (rc) goto out;
    rc = NUMBER(libxl__vnode_libxl_path, "allowed-kb", s->allowed_kb,
                v->max_kb, 0, &v->allowed_kb);
    if (rc) goto out;
    rc = NUMBER(libxl__vnode_libxl_path, "pnode", s->pnode, INT_MAX - 1,
                INT_MAX, &pnode);
    if (rc) goto out;
    v->pnode = pnode == INT_MAX ? -1 : pnode;
    v->table_pnode = v->pnode;

    v->cpus = libxl__zalloc(gc, (vd->nr_vcpus + 7) / 8);
    rc = parse_cpus(gc, nr, s->cpus, vd->nr_vcpus, v->cpus, &vd->nonsense);
    if (rc) goto out;

    if (!v->elastic || !s->host) goto out;
    if (!vnode_host_name_valid(s->host)) {
        vd->nonsense = GCSPRINTF("vnode %u: its key \"host\" is not the name "
                                 "of a host", nr);
        rc = ERROR_FAIL;
        goto out;
    }
    v->host = s->host;

 out:
    return rc;
}

/* Of an elastic vnode: how its CPUs and the guest do, and another host. */
static void read_rest(libxl__gc *gc, libxl__vnode_batch *batch,
                      const libxl__vnode_domain *vd, unsigned int nr,
                      struct node_texts *s)
{
    const libxl__vnode *v = &vd->node[nr];
    unsigned int c;

    if (!v->elastic)
        return;

    if (v->host) {
        libxl__vnode_read(gc, batch,
                          libxl__vnode_libxl_path(gc, vd->domid, nr,
                                                  "there-kb"), &s->there_kb);
        libxl__vnode_read(gc, batch,
                          libxl__vnode_libxl_path(gc, vd->domid, nr,
                                                  "remote-vcpus"),
                          &s->remote_vcpus);
        libxl__vnode_read(gc, batch,
                          libxl__vnode_libxl_path(gc, vd->domid, nr,
                                                  "placed"), &s->placed);
    }
    s->availability = libxl__calloc(gc, vd->nr_vcpus,
                                    sizeof(*s->availability));
    for (c = 0; c < vd->nr_vcpus; c++)
        if (libxl__vnode_has_vcpu(v->cpus, c))
            libxl__vnode_read(gc, batch,
                              libxl__vnode_cpu_path(gc, vd->domid, c),
                              &s->availability[c]);
    read_report(gc, batch, vd->domid, nr, true, &s->report);
}

static int parse_rest(libxl__gc *gc, libxl__vnode_domain *vd, unsigned int nr,
                      const struct node_texts *s)
{
    libxl__vnode *v = &vd->node[nr];
    uint64_t remote, placed;
    int rc = 0;

    if (!v->elastic) goto out;

    if (v->host) {
        v->pool_kb = vnode_pool_kb(vd->nr_vcpus, v->max_kb);
        rc = NUMBER(libxl__vnode_libxl_path, "there-kb", s->there_kb,
                    v->max_kb, 0, &v->there_kb);
        if (rc) goto out;
        rc = NUMBER(libxl__vnode_libxl_path, "remote-vcpus", s->remote_vcpus,
                    1, 0, &remote);
        if (rc) goto out;
        v->remote_vcpus = remote;
        rc = NUMBER(libxl__vnode_libxl_path, "placed", s->placed, 1, 0,
                    &placed);
        if (rc) goto out;
        v->placed = placed;
    }
    v->availability = parse_availability(vd, v->cpus, s->availability);
    vnode_parse_report(&s->report, v->max_kb, &v->report);

 out:
    return rc;
}
#undef NUMBER

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

int libxl__vnode_look(libxl__gc *gc, uint32_t domid, unsigned int nr,
                      uint64_t max_kb, uint64_t announced,
                      libxl__vnode_progress *out)
{
    libxl__vnode v = { .elastic = true, .max_kb = max_kb };
    libxl__vnode_batch batch = { 0 };
    struct vnode_raw raw = { 0 };
    const char *done;
    int rc;

    *out = (libxl__vnode_progress) { 0 };
    read_guest(gc, &batch, domid, "done-generation", &done);
    read_report(gc, &batch, domid, nr, false, &raw);
    rc = libxl__vnode_send(gc, &batch, XBT_NULL);
    if (rc) goto out;

    vnode_parse_number(done, announced, &out->done);
    vnode_parse_report(&raw, v.max_kb, &v.report);
    out->faulty = v.report.fault[0];
    out->state = libxl__vnode_public_state(&v);
    out->progress_kb = v.report.progress_kb;

 out:
    return rc;
}

static int parse_op(libxl__gc *gc, libxl__vnode_domain *vd, const char *s)
{
    int rc = 0;

    vd->op.kind = VNODE_OP_NONE;
    if (s && !vnode_parse_op(s, vd->nr_vnodes, &vd->op)) {
        vd->nonsense = GCSPRINTF("\"%s\" is not the record of an operation",
                                 s);
        rc = ERROR_FAIL;
    }

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

/* What depends on nothing that has to be read. */
static void read_keys(libxl__gc *gc, libxl__vnode_batch *batch,
                      const libxl__vnode_domain *vd, struct texts *s)
{
    unsigned int i;

    libxl__vnode_read(gc, batch,
                      GCSPRINTF("/local/domain/%"PRIu32"/vnuma/nodes",
                                vd->domid), &s->nodes);
    libxl__vnode_read(gc, batch,
                      GCSPRINTF("/local/domain/%"PRIu32"/vnuma/generation",
                                vd->domid), &s->generation);
    read_guest(gc, batch, vd->domid, "done-generation", &s->done);
    read_guest(gc, batch, vd->domid, "version", &s->version);
    libxl__vnode_read(gc, batch, libxl__vnode_op_path(gc, vd->domid), &s->op);
    libxl__vnode_read(gc, batch, libxl__vnode_home_limit_path(gc, vd->domid),
                      &s->home_limit);
    for (i = 0; i < vd->nr_vnodes; i++)
        read_node(gc, batch, vd, i, &s->node[i]);
}

static int parse_keys(libxl__gc *gc, libxl__vnode_domain *vd,
                      const struct texts *s)
{
    uint64_t sum, nr_vnodes;
    unsigned int i;
    int rc;

    /*
     * A domain that is being destroyed loses its keys first, and those of the
     * guest before ours: what is left of them makes no sense.
     */
    rc = parse_number(gc, "vnuma/nodes", s->nodes, VNODE_MAX, 0, &nr_vnodes,
                      &vd->nonsense);
    if (rc) goto out;
    if (!nr_vnodes) {
        vd->nr_vnodes = 0;
        vd->op.kind = VNODE_OP_NONE;
        goto out;
    }

    rc = parse_number(gc, "vnuma/generation", s->generation, UINT64_MAX - 1, 0,
                      &vd->generation, &vd->nonsense);
    if (rc) goto out;
    vd->done = 0;
    vnode_parse_number(s->done, vd->generation, &vd->done);
    vd->driver = s->version && !strcmp(s->version, "1");
    rc = parse_op(gc, vd, s->op);
    if (rc) goto out;

    memset(vd->node, 0, vd->nr_vnodes * sizeof(*vd->node));
    for (i = 0; i < vd->nr_vnodes; i++) {
        rc = parse_node(gc, vd, i, &s->node[i]);
        if (rc) goto out;
    }

    /* Nobody has set it: the limit is as it should be. */
    sum = sum_allowances(vd);
    rc = parse_number(gc, libxl__vnode_home_limit_path(gc, vd->domid),
                      s->home_limit, UINT64_MAX >> 20,
                      vd->limit_kb > sum ? vd->limit_kb - sum : 0,
                      &vd->home_kb, &vd->nonsense);

 out:
    return rc;
}

/* What depends on nothing, and then what depends on that. */
static int read_and_parse(libxl__gc *gc, xs_transaction_t t,
                          libxl__vnode_domain *vd)
{
    libxl__vnode_batch batch = { 0 };
    struct texts s = {
        .node = libxl__calloc(gc, vd->nr_vnodes, sizeof(*s.node)),
    };
    unsigned int i;
    int rc;

    read_keys(gc, &batch, vd, &s);
    rc = libxl__vnode_send(gc, &batch, t);
    if (rc) goto out;
    rc = parse_keys(gc, vd, &s);
    if (rc) goto out;

    for (i = 0; i < vd->nr_vnodes; i++)
        read_rest(gc, &batch, vd, i, &s.node[i]);
    rc = libxl__vnode_send(gc, &batch, t);
    if (rc) goto out;
    for (i = 0; i < vd->nr_vnodes; i++) {
        rc = parse_rest(gc, vd, i, &s.node[i]);
        if (rc) goto out;
    }

 out:
    return rc;
}

/*
 * All keys, in four waits however many there are: what can be asked for at once
 * and what depends on that, and the transaction's begin and end.  +1: they are
 * not of one moment.  That can be why they make no sense (vd->nonsense), which
 * is no error here.
 */
static int load_keys(libxl__gc *gc, xs_transaction_t *t,
                     libxl__vnode_domain *vd)
{
    int rc;

    vd->nonsense = NULL;
    rc = libxl__xs_transaction_start(gc, t);
    if (rc) goto out;
    rc = read_and_parse(gc, *t, vd);
    if (rc && !vd->nonsense) goto out;
    /* Not aborted: only a commit says whether the reads fit together. */
    rc = libxl__xs_transaction_commit(gc, t);

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
        rc = load_keys(gc, &t, out);
        if (rc < 0) goto out;
        if (!rc || tries == LOAD_TRIES) break;
    }
    if (out->nonsense) {
        LOGD(ERROR, domid, "%s", out->nonsense);
        rc = ERROR_FAIL;
        goto out;
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
        s = libxl__xs_read(gc, XBT_NULL, libxl__vnode_cpu_path(gc, domid, v));
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
    const char *nonsense;
    unsigned int i, b;
    bool any = false;
    int rc;

    *out = NULL;
    rc = own_number(gc, XBT_NULL, domid,
                    GCSPRINTF("/local/domain/%"PRIu32"/vnuma/nodes", domid),
                    VNODE_MAX, 0, &nr_vnodes);
    if (rc) goto out;

    for (i = 0; i < nr_vnodes; i++) {
        const char *cpus;

        rc = own_number(gc, XBT_NULL, domid,
                        libxl__vnode_path(gc, domid, i, "elastic"), 1, 0,
                        &elastic);
        if (rc) goto out;
        if (!elastic)
            continue;
        rc = libxl__xs_read_checked(gc, XBT_NULL,
                                    libxl__vnode_path(gc, domid, i, "cpus"),
                                    &cpus);
        if (rc) goto out;
        rc = parse_cpus(gc, i, cpus, nr_vcpus, map, &nonsense);
        if (rc) {
            LOGD(ERROR, domid, "%s", nonsense);
            goto out;
        }
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

int libxl__vnode_fill_info(libxl__gc *gc, const libxl__vnode_domain *vd,
                           bool attended, unsigned int nr, const char *phases,
                           libxl_vnodeinfo *info)
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
    info->toolstack_phases = libxl__strdup(NOGC, phases);
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

/* What the toolstack's phases took, by vnode; NULL where nothing is noted. */
static int load_phases(libxl__gc *gc, const libxl__vnode_domain *vd,
                       const char ***out)
{
    libxl__vnode_batch batch = { 0 };
    unsigned int i;

    *out = libxl__calloc(gc, vd->nr_vnodes, sizeof(**out));
    for (i = 0; i < vd->nr_vnodes; i++)
        libxl__vnode_read(gc, &batch,
                          libxl__vnode_libxl_path(gc, vd->domid, i, "phases"),
                          &(*out)[i]);

    return libxl__vnode_send(gc, &batch, XBT_NULL);
}

libxl_vnodeinfo *libxl_vnode_list(libxl_ctx *ctx, uint32_t domid, int *nr)
{
    GC_INIT(ctx);
    libxl__vnode_domain vd;
    libxl_vnodeinfo *list = NULL, *result = NULL;
    const char **phases;
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
    rc = load_phases(gc, &vd, &phases);
    if (rc) goto out;

    list = libxl__calloc(NOGC, vd.nr_vnodes, sizeof(*list));
    for (i = 0; i < vd.nr_vnodes; i++)
        libxl_vnodeinfo_init(&list[i]);
    for (i = 0; i < vd.nr_vnodes; i++) {
        rc = libxl__vnode_fill_info(gc, &vd, attended, i, phases[i], &list[i]);
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
