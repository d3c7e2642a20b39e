/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * What the host must be for a domain's elastic vnodes.
 * See libxl_vnode_settle.h.
 */
#include "libxl_vnode_settle.h"

/* What must be, of one vnode. */
struct want {
    uint64_t allowed_kb, there_kb;
    int pnode;
    bool placed;
    enum vnode_cpus cpus;
    bool back;                  /* set table and affinity in any case */
};

static const char *const step_names[] = {
    [VNODE_STEP_PNODE]     = "pnode",
    [VNODE_STEP_TABLE]     = "table",
    [VNODE_STEP_AFFINITY]  = "affinity",
    [VNODE_STEP_ALLOWED]   = "allowed",
    [VNODE_STEP_LIMIT]     = "limit",
    [VNODE_STEP_THERE]     = "there",
    [VNODE_STEP_DSMD]      = "dsmd",
    [VNODE_STEP_PLACED]    = "placed",
    [VNODE_STEP_PLACE]     = "place",
    [VNODE_STEP_CPUS]      = "cpus",
    [VNODE_STEP_TAKE_BACK] = "take back",
    [VNODE_STEP_FORGET]    = "forget",
};

const char *vnode_step_name(enum vnode_step_kind kind)
{
    return step_names[kind];
}

static bool is_sane(const struct vnode_node_facts *v)
{
    return !v->report->fault[0];
}

static bool is_gone(const struct vnode_node_facts *v)
{
    return is_sane(v) && (v->report->state == VNODE_KEY_ABSENT ||
                          v->report->state == VNODE_KEY_OFFLINE);
}

static bool announced(const struct vnode_facts *f)
{
    return f->op.kind != VNODE_OP_NONE && f->op.generation <= f->generation;
}

bool vnode_in_flight(const struct vnode_facts *f)
{
    const struct vnode_node_facts *v;

    if (!announced(f) || f->done >= f->op.generation)
        return false;

    /* A driver that comes later finds an absent vnode that is to be absent. */
    v = &f->node[f->op.vnode];
    return f->driver || v->target_kb || !is_gone(v);
}

/* Has the guest failed, so that its operation is to be taken back? */
static bool failed(const struct vnode_facts *f)
{
    return announced(f) && !vnode_in_flight(f) && !f->attended &&
           f->op.old_kb != f->op.new_kb &&
           vnode_op_outcome(f->op.kind, f->op.new_kb,
                            f->node[f->op.vnode].report) ==
           VNODE_OUTCOME_FAILED;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What is recorded as the vnode's memory, wherever it is. */
static uint64_t recorded_kb(const struct vnode_node_facts *v)
{
    return v->spans ? v->there_kb : v->allowed_kb;
}

/* It is to be @kb. */
static void give(struct want *w, const struct vnode_node_facts *v, uint64_t kb)
{
    if (v->spans)
        w->there_kb = kb;
    w->allowed_kb = !v->spans ? kb : kb ? v->pool_kb : 0;
}

static struct want want_as_is(const struct vnode_node_facts *v)
{
    return (struct want) {
        .allowed_kb = v->allowed_kb,
        .there_kb = v->there_kb,
        .pnode = v->pnode,
        .placed = v->placed,
        .cpus = v->cpus,
    };
}

/* What a vnode must have that no operation works on. */
static struct want want_settled(const struct vnode_node_facts *v)
{
    struct want w = want_as_is(v);

    give(&w, v, vnode_settled_allowance(v->target_kb, recorded_kb(v),
                                        v->report));
    if (!v->target_kb && is_gone(v)) {
        w.pnode = -1;
        w.cpus = VNODE_CPUS_OFFLINE;
    } else if (v->target_kb && is_sane(v) &&
               v->report->state == VNODE_KEY_ONLINE) {
        w.cpus = VNODE_CPUS_ONLINE;
    }
    /* Nothing of it is left there, whatever the guest calls that. */
    if (v->placed && !w.there_kb) {
        w.placed = false;
        w.cpus = VNODE_CPUS_OFFLINE;
    }

    return w;
}

static struct want want_of(const struct vnode_facts *f,
                           const struct vnode_wish *wish, unsigned int nr)
{
    const struct vnode_node_facts *v = &f->node[nr];
    bool ours = f->op.kind != VNODE_OP_NONE && f->op.vnode == nr;
    struct want w = want_as_is(v);

    if (!v->elastic)
        return w;

    if (wish && wish->vnode == nr) {
        give(&w, v, larger(recorded_kb(v), wish->kb));
        w.pnode = wish->pnode;
        w.placed = v->remote_vcpus;
        /* Somebody got this far before, and nobody knows how far. */
        w.back = ours && f->op.kind == VNODE_OP_ATTACH && !announced(f);
        return w;
    }

    /* Nothing falls while the guest is, or will be, at work. */
    if (ours && vnode_in_flight(f)) {
        give(&w, v, larger(recorded_kb(v), v->target_kb));
        return w;
    }
    if (ours && failed(f)) {
        give(&w, v, larger(recorded_kb(v), f->op.old_kb));
        return w;
    }

    return want_settled(v);
}

/* A list of steps that grows. */
struct list {
    struct vnode_step *step;
    unsigned int nr;
};

static struct vnode_step *add(struct list *l, enum vnode_step_kind kind,
                              unsigned int vnode)
{
    l->step[l->nr] = (struct vnode_step) { .kind = kind, .vnode = vnode };

    return &l->step[l->nr++];
}

static void add_backing(struct list *l, unsigned int nr, int pnode)
{
    add(l, VNODE_STEP_TABLE, nr)->pnode = pnode;
    add(l, VNODE_STEP_AFFINITY, nr)->pnode = pnode;
}

/* What the operator has pinned by hand stays. */
static void add_rebinding(struct list *l, unsigned int nr, int pnode)
{
    struct vnode_step *s = add(l, VNODE_STEP_AFFINITY, nr);

    s->pnode = pnode;
    s->loose = true;
}

/* Where it is, before it may have memory there. */
static void add_pnode(struct list *l, unsigned int nr,
                      const struct vnode_node_facts *v, const struct want *w)
{
    if (w->pnode < 0)
        return;
    if (w->pnode != v->pnode)
        add(l, VNODE_STEP_PNODE, nr)->pnode = w->pnode;
    if (w->pnode != v->pnode || w->back)
        add_backing(l, nr, w->pnode);
    else if (v->unbound)
        add_rebinding(l, nr, w->pnode);
}

static void add_absence(struct list *l, unsigned int nr,
                        const struct vnode_node_facts *v, const struct want *w)
{
    if (w->pnode >= 0 || v->pnode < 0)
        return;
    add_backing(l, nr, -1);
    add(l, VNODE_STEP_PNODE, nr)->pnode = -1;
}

static void add_dsmd(struct list *l, unsigned int nr,
                     const struct vnode_node_facts *v, uint64_t kb)
{
    if (v->told_kb != kb)
        add(l, VNODE_STEP_DSMD, nr)->kb = kb;
}

static void add_fall_there(struct list *l, unsigned int nr,
                           const struct vnode_node_facts *v,
                           const struct want *w)
{
    if (w->there_kb >= v->there_kb)
        return;
    add_dsmd(l, nr, v, w->there_kb);
    add(l, VNODE_STEP_THERE, nr)->kb = w->there_kb;
}

/* @wished: it is needed now, and somebody may have got this far before. */
static void add_rise_there(struct list *l, unsigned int nr,
                           const struct vnode_node_facts *v,
                           const struct want *w, bool wished)
{
    if (w->there_kb > v->there_kb)
        add(l, VNODE_STEP_THERE, nr)->kb = w->there_kb;
    if (w->there_kb > v->there_kb || (wished && w->there_kb == v->there_kb))
        add_dsmd(l, nr, v, w->there_kb);
}

/*
 * @wished: as for add_rise_there().  A vCPU that is placed must be down, and
 * the guest has not been told of those of a vnode that comes.
 */
static void add_placing(struct list *l, unsigned int nr,
                        const struct vnode_node_facts *v,
                        const struct want *w, bool wished)
{
    if (!w->placed)
        return;
    if (!v->placed)
        add(l, VNODE_STEP_PLACED, nr)->placed = true;
    if ((!v->placed || wished) && v->told_where != VNODE_WHERE_REMOTE)
        add(l, VNODE_STEP_PLACE, nr)->placed = true;
}

static void add_cpus(struct list *l, unsigned int nr,
                     const struct vnode_node_facts *v, const struct want *w)
{
    if (w->cpus != v->cpus && v->cpus != VNODE_CPUS_NONE)
        add(l, VNODE_STEP_CPUS, nr)->online = w->cpus == VNODE_CPUS_ONLINE;
}

static bool comes_home(const struct vnode_node_facts *v, const struct want *w)
{
    return v->placed && !w->placed;
}

/* Before its memory goes: the other host is left with that. */
static void add_coming_home(struct list *l, unsigned int nr,
                            const struct vnode_node_facts *v,
                            const struct want *w)
{
    if (!comes_home(v, w))
        return;
    add_cpus(l, nr, v, w);
    if (v->told_where != VNODE_WHERE_HOME)
        add(l, VNODE_STEP_PLACE, nr);
    add(l, VNODE_STEP_PLACED, nr);
}

/* Xen's limit is in pages. */
static bool same_limit(uint64_t a_kb, uint64_t b_kb)
{
    return a_kb / 4 == b_kb / 4;
}

/*
 * What the domain may have once recorded shares have fallen: the limit, or
 * more if the home nodes had more than they may before the operation began.
 */
static uint64_t most_after(const struct vnode_facts *f,
                           const struct want *want, uint64_t limit_kb)
{
    uint64_t most_kb = f->op.rest_kb;
    unsigned int i;

    if (f->op.kind == VNODE_OP_NONE)
        return limit_kb;
    for (i = 0; i < f->nr_vnodes; i++) {
        uint64_t fallen_kb = f->node[i].allowed_kb - want[i].allowed_kb;

        if (i == f->op.vnode)
            most_kb += want[i].allowed_kb;
        else if (want[i].allowed_kb < f->node[i].allowed_kb)
            most_kb -= fallen_kb < most_kb ? fallen_kb : most_kb;
    }

    return larger(most_kb, limit_kb);
}

static void add_memory(struct list *l, const struct vnode_facts *f,
                       const struct want *want)
{
    uint64_t limit_kb = f->home_kb;
    bool falls = false;
    unsigned int i;

    for (i = 0; i < f->nr_vnodes; i++) {
        limit_kb += want[i].allowed_kb;
        falls |= want[i].allowed_kb < f->node[i].allowed_kb;
        if (want[i].allowed_kb > f->node[i].allowed_kb)
            add(l, VNODE_STEP_ALLOWED, i)->kb = want[i].allowed_kb;
    }
    if (falls || !same_limit(limit_kb, f->limit_kb)) {
        struct vnode_step *s = add(l, VNODE_STEP_LIMIT, 0);

        s->kb = limit_kb;
        s->count = falls;
        s->most_kb = most_after(f, want, limit_kb);
    }
    for (i = 0; i < f->nr_vnodes; i++)
        if (want[i].allowed_kb < f->node[i].allowed_kb)
            add(l, VNODE_STEP_ALLOWED, i)->kb = want[i].allowed_kb;
}

unsigned int vnode_missing_steps(const struct vnode_facts *f,
                                 const struct vnode_wish *wish,
                                 struct vnode_step *steps)
{
    struct want want[VNODE_MAX];
    struct list l = { .step = steps };
    bool elastic = false;
    unsigned int i;

    for (i = 0; i < f->nr_vnodes; i++) {
        want[i] = want_of(f, wish, i);
        elastic |= f->node[i].elastic;
    }
    if (!elastic)
        return 0;       /* what such a domain has is none of our business */

    for (i = 0; i < f->nr_vnodes; i++)
        add_pnode(&l, i, &f->node[i], &want[i]);
    for (i = 0; i < f->nr_vnodes; i++)
        if (f->node[i].spans) {
            add_coming_home(&l, i, &f->node[i], &want[i]);
            add_fall_there(&l, i, &f->node[i], &want[i]);
        }
    add_memory(&l, f, want);
    for (i = 0; i < f->nr_vnodes; i++) {
        bool wished = wish && wish->vnode == i;

        if (!f->node[i].spans)
            continue;
        add_rise_there(&l, i, &f->node[i], &want[i], wished);
        add_placing(&l, i, &f->node[i], &want[i], wished);
    }
    for (i = 0; i < f->nr_vnodes; i++) {
        if (!f->node[i].elastic)
            continue;
        if (!comes_home(&f->node[i], &want[i]))
            add_cpus(&l, i, &f->node[i], &want[i]);
        add_absence(&l, i, &f->node[i], &want[i]);
    }

    if (f->op.kind == VNODE_OP_NONE || wish || vnode_in_flight(f))
        return l.nr;
    add(&l, failed(f) ? VNODE_STEP_TAKE_BACK : VNODE_STEP_FORGET, f->op.vnode);

    return l.nr;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
