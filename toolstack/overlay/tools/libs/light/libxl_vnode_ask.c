/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Vnodes on another host: how they do, by dsmd's word.
 *
 * Locking: none; nothing is changed.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

typedef struct {
    libxl__dsm_call call;
    libxl_vnodeinfo *list;
    int nr;
} asking;

/* Those of the vnode: nobody else's are this one's to run. */
static void fill_vcpus(libxl_vnodeinfo *info, const libxl__dsm_reply *r)
{
    unsigned int i;
    int v;

    libxl_for_each_set_bit(v, info->there_cpus)
        libxl_bitmap_reset(&info->there_cpus, v);
    for (i = 0; i < r->nr_vcpus; i++)
        if (libxl_bitmap_test(&info->cpus, r->vcpu[i].vcpu) &&
            !strcmp(r->vcpu[i].host, info->host))
            libxl_bitmap_set(&info->there_cpus, r->vcpu[i].vcpu);
    info->there_cpus_known = r->says_vcpus || !info->remote_vcpus;
    for (i = 0; i < r->nr_paused; i++)
        info->there_paused |= !strcmp(r->paused[i], info->host);
}

static void fill_info(libxl_vnodeinfo *info, const libxl__dsm_node *node)
{
    free(info->link_error);
    info->link_error = NULL;
    info->link = node->link;
    info->there_memkb = node->there_kb;
    info->modified_pages = node->modified;
    info->shared_pages = node->shared;
    info->home_pages = node->home;
    info->faults_per_s = node->faults_per_s;
    info->median_ns = node->median_ns;
    info->p99_ns = node->p99_ns;
}

/* What dsmd says of vnodes that are here, or not its own, is not looked at. */
static void note_reply(libxl__gc *gc, const asking *a)
{
    const libxl__dsm_reply *r = &a->call.reply;
    unsigned int n;
    int i;

    for (i = 0; i < a->nr; i++) {
        libxl_vnodeinfo *info = &a->list[i];
        const char *why = r->error ? r->text : "dsmd does not name the vnode";

        if (!info->host)
            continue;
        info->there_paused = false;
        for (n = 0; n < r->nr_nodes && r->node[n].vnode != info->vnode; n++)
            ;
        if (!r->error && n < r->nr_nodes) {
            fill_info(info, &r->node[n]);
            fill_vcpus(info, r);
        } else {
            free(info->link_error);
            info->link_error = libxl__strdup(NOGC, why);
            info->link = LIBXL_VNODE_LINK_UNKNOWN;
            info->there_cpus_known = false;
        }
    }
}

static void replied(libxl__egc *egc, libxl__dsm_call *call, int rc)
{
    asking *a = CONTAINER_OF(call, asking, call);
    STATE_AO_GC(call->ao);

    if (rc == ERROR_ABORTED)
        snprintf(call->reply.text, sizeof(call->reply.text), "cancelled");
    note_reply(gc, a);
    libxl__ao_complete(egc, ao, rc);
}

int libxl_vnode_ask(libxl_ctx *ctx, uint32_t domid, libxl_vnodeinfo *list,
                    int nr, const libxl_asyncop_how *ao_how)
{
    AO_CREATE(ctx, domid, ao_how);
    libxl__vnode_domain vd;
    bool spans = false;
    asking *a;
    int i, rc;

    for (i = 0; i < nr; i++)
        spans |= list[i].host != NULL;
    if (!spans) {
        libxl__ao_complete(egc, ao, 0);
        return AO_INPROGRESS;
    }

    rc = libxl__vnode_load(gc, domid, &vd);
    if (rc) goto out;

    GCNEW(a);
    libxl__dsm_init(&a->call);
    a->list = list;
    a->nr = nr;
    a->call.ao = ao;
    a->call.callback = replied;
    a->call.quiet = true;       /* each vnode says it */
    a->call.request = (libxl__dsm_request) {
        .op = LIBXL__DSM_STATE,
        .domid = domid,
        .uuid = vd.uuid,
    };
    rc = libxl__dsm_start(gc, &a->call);
    if (rc == ERROR_VNODE_REFUSED)
        note_reply(gc, a);
    if (rc) goto out;

    return AO_INPROGRESS;

 out:
    return AO_CREATE_FAIL(rc);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
