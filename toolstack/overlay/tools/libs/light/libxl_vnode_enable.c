/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Vnodes on another host: the guest becomes one of dsmd's.
 *
 * When the domain is built and has never run: Xen takes ENABLE only then.  dsmd
 * reaches the other hosts and compares them with this one, so that what is
 * refused is refused now and not at the first attach.
 *
 * Locking: the domain does not run, and nobody works on its vnodes yet.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

typedef struct {
    libxl__dsm_call call;
    libxl__vnode_enabled_callback *callback;
    void *user;
} enabling;

static void replied(libxl__egc *egc, libxl__dsm_call *call, int rc)
{
    enabling *e = CONTAINER_OF(call, enabling, call);

    e->callback(egc, e->user, rc);
}

/*
 * All of the guest's memory, as Xen has it, sorted as there.  With vCPUs
 * elsewhere, which can touch them, the rings of console and xenstore, too.
 */
static int make_ranges(libxl__gc *gc, const libxl__vnode_domain *vd,
                       libxl__dsm_request *req)
{
    unsigned int rings = req->nr_places ? 1 : 0;
    libxl__dsm_range *range;
    unsigned int i;
    int rc = ERROR_VNUMA_CONFIG_INVALID;

    if (vd->nr_vmemranges > VNODE_DSM_RANGES_MAX - rings) {
        LOGD(ERROR, vd->domid, "the guest has %"PRIu32" ranges of memory; with "
             "%s on another host at most %u are possible", vd->nr_vmemranges,
             rings ? "vCPUs" : "a vnode", VNODE_DSM_RANGES_MAX - rings);
        goto out;
    }
    range = libxl__calloc(gc, vd->nr_vmemranges + rings, sizeof(*range));
    for (i = 0; i < vd->nr_vmemranges; i++) {
        const xen_vmemrange_t *r = &vd->vmemrange[i];

        if (r->nid >= vd->nr_vnodes) {
            LOGD(ERROR, vd->domid, "range %u belongs to vnode %u, which there "
                 "is not", i, r->nid);
            goto out;
        }
        range[i] = (libxl__dsm_range) {
            .vnode = r->nid,
            .start = r->start,
            .kb = (r->end - r->start) >> 10,
            .host = vd->node[r->nid].host,
            .pool_kb = vd->node[r->nid].pool_kb,
        };
    }
    req->range = range;
    req->nr_ranges = vd->nr_vmemranges + rings;
    rc = rings ? libxl__vnode_find_rings(gc, vd->domid, &range[i]) : 0;

 out:
    return rc;
}

/* vCPUs that are to run elsewhere: so many from one on, each at its host. */
static void make_places(libxl__gc *gc, const libxl__vnode_domain *vd,
                        libxl__dsm_request *req)
{
    libxl__dsm_place *place = libxl__calloc(gc, vd->nr_vcpus, sizeof(*place));
    unsigned int v, i, nr = 0;

    for (v = 0; v < vd->nr_vcpus; v++) {
        for (i = 0; i < vd->nr_vnodes; i++)
            if (vd->node[i].remote_vcpus &&
                libxl__vnode_has_vcpu(vd->node[i].cpus, v))
                break;
        if (i == vd->nr_vnodes)
            continue;
        if (nr && place[nr - 1].first + place[nr - 1].nr == v &&
            !strcmp(place[nr - 1].host, vd->node[i].host))
            place[nr - 1].nr++;
        else
            place[nr++] = (libxl__dsm_place) {
                .first = v, .nr = 1, .host = vd->node[i].host,
            };
    }
    req->place = place;
    req->nr_places = nr;
}

void libxl__vnode_enable(libxl__egc *egc, libxl__ao *ao_outer, uint32_t domid,
                         const libxl_domain_build_info *info, const char *name,
                         libxl__vnode_enabled_callback *callback, void *user,
                         int rc)
{
    STATE_AO_GC(ao_outer);
    libxl__vnode_domain vd;
    enabling *e;

    if (rc || !libxl__vnode_nr_spanning(info)) goto out;

    rc = libxl__vnode_load(gc, domid, &vd);
    if (rc) goto out;

    GCNEW(e);
    libxl__dsm_init(&e->call);
    e->callback = callback;
    e->user = user;
    e->call.ao = ao;
    e->call.callback = replied;
    e->call.request = (libxl__dsm_request) {
        .op = LIBXL__DSM_ENABLE,
        .domid = domid,
        .uuid = vd.uuid,
        .name = name,
        .nr_vcpus = vd.nr_vcpus,
    };
    make_places(gc, &vd, &e->call.request);
    rc = make_ranges(gc, &vd, &e->call.request);
    if (rc) goto out;
    rc = libxl__dsm_start(gc, &e->call);
    if (!rc)
        return;

 out:
    callback(egc, user, rc);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
