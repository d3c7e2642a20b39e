/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * What the xenstore keys of elastic vnodes may contain.
 *
 * The protocol is docs/xenstore-paths.md.  Everything below vnuma/guest is
 * written by the guest and may be garbage on purpose: it is parsed here,
 * strictly, and nowhere else.  A value that cannot be makes the vnode faulty,
 * with a text that says which key and why; a faulty report is shown, never
 * acted upon.
 *
 * Pure functions: no I/O, no allocation, no locks.  All strings in are
 * NUL-terminated or NULL (key absent).
 */
#ifndef LIBXL_VNODE_KEYS_H
#define LIBXL_VNODE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest reason or error that a guest may give, in characters. */
#define VNODE_TEXT_MAX 200
/* Longest list of phases. */
#define VNODE_PHASES_MAX 400

enum vnode_key_state {
    VNODE_KEY_ABSENT,   /* the guest has said nothing about the vnode */
    VNODE_KEY_OFFLINE,
    VNODE_KEY_GROWING,
    VNODE_KEY_ONLINE,
    VNODE_KEY_DRAINING,
    VNODE_KEY_RESIDUAL,
};

/* The keys of one vnode as read. */
struct vnode_raw {
    const char *state, *current_kb, *residual_kb, *progress_kb;
    const char *reason, *error, *phases;
};

/* The same, checked. */
struct vnode_report {
    enum vnode_key_state state;
    uint64_t current_kb, residual_kb, progress_kb;
    char reason[VNODE_TEXT_MAX + 1];
    char error[VNODE_TEXT_MAX + 1];
    char phases[VNODE_PHASES_MAX + 1];
    int error_nr;               /* errno at the head of error, 0: no error */
    char fault[96];             /* why the report cannot be; "": it can */
};

enum vnode_op_kind {
    VNODE_OP_NONE,
    VNODE_OP_ATTACH,
    VNODE_OP_DETACH,
    VNODE_OP_SET,
};

/* /libxl/<domid>/vnuma/op */
struct vnode_op_record {
    uint64_t generation;
    enum vnode_op_kind kind;
    unsigned int vnode;
    uint64_t old_kb, new_kb;
    unsigned int pid;           /* who waits; 0: nobody (--no-wait) */
    /*
     * Xen's count of the domain as it began, less what the vnode was allowed.
     * That can be above the limit of the home nodes: the balloon comes after
     * the limit that mem-set lowers.
     */
    uint64_t rest_kb;
    uint64_t wanted_kb;         /* way back: the size that was asked for */
};

/*
 * Decimal number without sign, blanks or leading zeros, 0 .. @max.
 * @out is only set on success.
 */
bool vnode_parse_number(const char *s, uint64_t max, uint64_t *out);

/*
 * Check one vnode's report.  @max_kb: size of its range.  Always fills *@r;
 * returns true iff r->fault is empty.
 */
bool vnode_parse_report(const struct vnode_raw *raw, uint64_t max_kb,
                        struct vnode_report *r);

/*
 * Check what the guest says about all its vnodes against what Xen counts.
 * @sum_kb: sum of current_kb over the elastic vnodes; @total_kb: the domain's
 * memory by Xen's count.  false: the guest claims memory that it has not.
 */
bool vnode_total_plausible(uint64_t sum_kb, uint64_t total_kb);

/* "offline", "growing" ...; "absent" for VNODE_KEY_ABSENT. */
const char *vnode_key_state_name(enum vnode_key_state state);

/* "attach", "detach", "set"; "none". */
const char *vnode_op_kind_name(enum vnode_op_kind kind);

/*
 * Parse an operation's record.  false: not a record (*@out undefined).
 * @nr_vnodes: vnodes of the domain.
 */
bool vnode_parse_op(const char *s, unsigned int nr_vnodes,
                    struct vnode_op_record *out);

/* Room for a record: seven numbers, a kind, blanks and the end. */
#define VNODE_OP_TEXT 160

/* The inverse; @buf of at least VNODE_OP_TEXT bytes.  Returns @buf. */
char *vnode_format_op(const struct vnode_op_record *op, char *buf, size_t len);

/*
 * vCPU list in the form "2-3,6" from a bitmap (bit v of byte v/8).  "" if
 * empty.  false if it does not fit in @len.
 */
bool vnode_format_cpus(const uint8_t *map, unsigned int nr_vcpus,
                       char *buf, size_t len);

/* The inverse; bits beyond @nr_vcpus are an error.  @map has nr_vcpus bits. */
bool vnode_parse_cpus(const char *s, unsigned int nr_vcpus, uint8_t *map);

/* How an operation ended that the guest says it has finished. */
enum vnode_outcome {
    VNODE_OUTCOME_DONE,
    VNODE_OUTCOME_RESIDUAL,     /* detach: some memory could not leave */
    VNODE_OUTCOME_FAILED,       /* report->error may say why */
    VNODE_OUTCOME_FAULTY,       /* the report cannot be true */
};

/*
 * @kind: not VNODE_OP_NONE; @target_kb: what was asked for; @r: the vnode's
 * checked report.
 *
 * A vnode that is online with what was asked for is done, whatever its error:
 * that stays until the guest has something to do, and this may have been
 * nothing.
 */
enum vnode_outcome vnode_op_outcome(enum vnode_op_kind kind, uint64_t target_kb,
                                    const struct vnode_report *r);

/*
 * How much memory Xen must allow a vnode when no operation is under way.
 *
 * @target_kb: its target; @allowed_kb: what it is allowed now; @r: its
 * checked report.  Never more than the larger of target and allowance, and
 * what a faulty report says does not lower it.
 */
uint64_t vnode_settled_allowance(uint64_t target_kb, uint64_t allowed_kb,
                                 const struct vnode_report *r);

#endif /* LIBXL_VNODE_KEYS_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
