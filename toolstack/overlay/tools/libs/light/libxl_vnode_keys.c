/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * What the xenstore keys of elastic vnodes may contain.
 * See libxl_vnode_keys.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libxl_vnode_keys.h"

static const char *const state_names[] = {
    [VNODE_KEY_ABSENT]   = "absent",
    [VNODE_KEY_OFFLINE]  = "offline",
    [VNODE_KEY_GROWING]  = "growing",
    [VNODE_KEY_ONLINE]   = "online",
    [VNODE_KEY_DRAINING] = "draining",
    [VNODE_KEY_RESIDUAL] = "residual",
};

static const char *const op_names[] = {
    [VNODE_OP_NONE]   = "none",
    [VNODE_OP_ATTACH] = "attach",
    [VNODE_OP_DETACH] = "detach",
    [VNODE_OP_SET]    = "set",
};

#define NR(a) (sizeof(a) / sizeof((a)[0]))

const char *vnode_key_state_name(enum vnode_key_state state)
{
    return state_names[state];
}

const char *vnode_op_kind_name(enum vnode_op_kind kind)
{
    return op_names[kind];
}

/* Parse digits up to @stop; returns the position after them or NULL. */
static const char *parse_digits(const char *s, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    const char *p;

    for (p = s; *p >= '0' && *p <= '9'; p++) {
        unsigned int digit = *p - '0';

        if (p > s && *s == '0')
            return NULL;        /* leading zero */
        if (value > (UINT64_MAX - digit) / 10)
            return NULL;
        value = value * 10 + digit;
    }
    if (p == s || value > max)
        return NULL;
    *out = value;

    return p;
}

bool vnode_parse_number(const char *s, uint64_t max, uint64_t *out)
{
    uint64_t value;
    const char *end;

    if (!s)
        return false;
    end = parse_digits(s, max, &value);
    if (!end || *end)
        return false;
    *out = value;

    return true;
}

/*
 * Copy at most @max characters of a text for people, as one line of printable
 * ASCII: what is none becomes '?'.  Names of the guest's programs are in such
 * texts, so nothing may depend on what they say.
 */
static void copy_text(const char *s, size_t max, char *out)
{
    size_t i;

    for (i = 0; s[i] && i < max; i++)
        out[i] = s[i] < 0x20 || s[i] > 0x7e ? '?' : s[i];
    out[i] = '\0';
}

static bool parse_state(const char *s, enum vnode_key_state *out)
{
    unsigned int i;

    for (i = VNODE_KEY_OFFLINE; i < NR(state_names); i++)
        if (!strcmp(s, state_names[i])) {
            *out = i;
            return true;
        }

    return false;
}

/* "-<errno> <text>" */
static bool parse_error(const char *s, struct vnode_report *r)
{
    uint64_t nr;
    const char *end;

    if (s[0] != '-')
        return false;
    end = parse_digits(s + 1, 4095, &nr);
    if (!end || !nr || (*end && *end != ' '))
        return false;
    copy_text(s, VNODE_TEXT_MAX, r->error);
    r->error_nr = nr;

    return true;
}

/*
 * "name=microseconds", separated by commas; there may be none.  They are shown,
 * and decide nothing: what is no such list is not shown.
 */
static void parse_phases(const char *s, struct vnode_report *r)
{
    const char *p = s;
    uint64_t us;

    while (*p) {
        size_t name = strspn(p, "abcdefghijklmnopqrstuvwxyz");

        if (!name || p[name] != '=')
            return;
        p = parse_digits(p + name + 1, UINT64_MAX, &us);
        if (!p || (*p && *p != ','))
            return;
        if (*p == ',' && !*++p)
            return;
    }
    if (p - s <= VNODE_PHASES_MAX)
        copy_text(s, VNODE_PHASES_MAX, r->phases);
}

static void fault(struct vnode_report *r, const char *key, const char *why)
{
    if (!r->fault[0])
        snprintf(r->fault, sizeof(r->fault), "%s %s", key, why);
}

static void parse_kb(struct vnode_report *r, const char *key, const char *s,
                     uint64_t max_kb, uint64_t *out)
{
    if (s && !vnode_parse_number(s, max_kb, out))
        fault(r, key, "is not a number within the size of the vnode");
}

/* What must hold between the values. */
static void check_consistency(struct vnode_report *r)
{
    if (r->residual_kb > r->current_kb)
        fault(r, "residual-kb", "exceeds current-kb");

    switch (r->state) {
    case VNODE_KEY_ABSENT:
    case VNODE_KEY_OFFLINE:
        if (r->current_kb)
            fault(r, "current-kb", "is not 0 although the vnode is offline");
        break;
    case VNODE_KEY_ONLINE:
        if (!r->current_kb)
            fault(r, "current-kb", "is 0 although the vnode is online");
        break;
    case VNODE_KEY_RESIDUAL:    /* without memory: a vCPU has not left */
    case VNODE_KEY_GROWING:
    case VNODE_KEY_DRAINING:
        break;
    }
}

bool vnode_parse_report(const struct vnode_raw *raw, uint64_t max_kb,
                        struct vnode_report *r)
{
    memset(r, 0, sizeof(*r));

    if (raw->state && !parse_state(raw->state, &r->state))
        fault(r, "state", "is not a state of a vnode");
    parse_kb(r, "current-kb", raw->current_kb, max_kb, &r->current_kb);
    parse_kb(r, "residual-kb", raw->residual_kb, max_kb, &r->residual_kb);
    parse_kb(r, "progress-kb", raw->progress_kb, max_kb, &r->progress_kb);
    if (raw->reason)
        copy_text(raw->reason, VNODE_TEXT_MAX, r->reason);
    if (raw->error && !parse_error(raw->error, r))
        fault(r, "error", "is not -<errno> <text>");
    if (raw->phases)
        parse_phases(raw->phases, r);

    if (!r->fault[0])
        check_consistency(r);

    return !r->fault[0];
}

bool vnode_total_plausible(uint64_t sum_kb, uint64_t total_kb)
{
    return sum_kb <= total_kb;
}

/* One field of the record and the blank after it, if @sep. */
static const char *op_number(const char *s, bool sep, uint64_t max,
                             uint64_t *out)
{
    s = s ? parse_digits(s, max, out) : NULL;
    if (!s || *s != (sep ? ' ' : '\0'))
        return NULL;

    return s + sep;
}

static const char *op_kind(const char *s, enum vnode_op_kind *out)
{
    unsigned int i;

    for (i = VNODE_OP_ATTACH; s && i < NR(op_names); i++) {
        size_t len = strlen(op_names[i]);

        if (!strncmp(s, op_names[i], len) && s[len] == ' ') {
            *out = i;
            return s + len + 1;
        }
    }

    return NULL;
}

bool vnode_parse_op(const char *s, unsigned int nr_vnodes,
                    struct vnode_op_record *out)
{
    uint64_t vnode, pid;

    if (!s || !nr_vnodes)
        return false;
    s = op_number(s, true, UINT64_MAX - 1, &out->generation);
    s = op_kind(s, &out->kind);
    s = op_number(s, true, nr_vnodes - 1, &vnode);
    s = op_number(s, true, UINT64_MAX >> 10, &out->old_kb);
    s = op_number(s, true, UINT64_MAX >> 10, &out->new_kb);
    s = op_number(s, true, INT32_MAX, &pid);
    s = op_number(s, true, UINT64_MAX >> 10, &out->rest_kb);
    s = op_number(s, false, UINT64_MAX >> 10, &out->wanted_kb);
    if (!s)
        return false;
    out->vnode = vnode;
    out->pid = pid;

    return true;
}

char *vnode_format_op(const struct vnode_op_record *op, char *buf, size_t len)
{
    snprintf(buf, len, "%"PRIu64" %s %u %"PRIu64" %"PRIu64" %u %"PRIu64
             " %"PRIu64,
             op->generation, op_names[op->kind], op->vnode,
             op->old_kb, op->new_kb, op->pid, op->rest_kb, op->wanted_kb);

    return buf;
}

static bool test_bit(const uint8_t *map, unsigned int nr)
{
    return map[nr / 8] & (1u << (nr % 8));
}

bool vnode_format_cpus(const uint8_t *map, unsigned int nr_vcpus,
                       char *buf, size_t len)
{
    unsigned int v, last;
    size_t used = 0;

    if (!len)
        return false;
    buf[0] = '\0';

    for (v = 0; v < nr_vcpus; v = last + 1) {
        int n;

        last = v;
        if (!test_bit(map, v))
            continue;
        while (last + 1 < nr_vcpus && test_bit(map, last + 1))
            last++;
        n = snprintf(buf + used, len - used, last > v ? "%s%u-%u" : "%s%u",
                     used ? "," : "", v, last);
        if (n < 0 || (size_t)n >= len - used)
            return false;
        used += n;
    }

    return true;
}

bool vnode_parse_cpus(const char *s, unsigned int nr_vcpus, uint8_t *map)
{
    memset(map, 0, (nr_vcpus + 7) / 8);

    if (!s || (*s && !nr_vcpus))
        return false;
    if (!*s)
        return true;

    for (;;) {
        uint64_t first, last;

        s = parse_digits(s, nr_vcpus - 1, &first);
        last = first;
        if (s && *s == '-')
            s = parse_digits(s + 1, nr_vcpus - 1, &last);
        if (!s || last < first)
            return false;
        for (; first <= last; first++)
            map[first / 8] |= 1u << (first % 8);
        if (!*s)
            return true;
        if (*s++ != ',')
            return false;
    }
}

enum vnode_outcome vnode_op_outcome(enum vnode_op_kind kind, uint64_t target_kb,
                                    const struct vnode_report *r)
{
    bool gone = r->state == VNODE_KEY_OFFLINE || r->state == VNODE_KEY_ABSENT;

    if (r->fault[0])
        return VNODE_OUTCOME_FAULTY;

    if (kind == VNODE_OP_DETACH)
        return gone ? VNODE_OUTCOME_DONE
               : r->state == VNODE_KEY_RESIDUAL ? VNODE_OUTCOME_RESIDUAL
               : VNODE_OUTCOME_FAILED;

    return r->state == VNODE_KEY_ONLINE && r->current_kb == target_kb
           ? VNODE_OUTCOME_DONE : VNODE_OUTCOME_FAILED;
}

uint64_t vnode_settled_allowance(uint64_t target_kb, uint64_t allowed_kb,
                                 const struct vnode_report *r)
{
    uint64_t most = allowed_kb > target_kb ? allowed_kb : target_kb;

    if (r->fault[0])
        return most;
    if (r->current_kb <= target_kb)
        return target_kb;

    return r->current_kb < most ? r->current_kb : most;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
