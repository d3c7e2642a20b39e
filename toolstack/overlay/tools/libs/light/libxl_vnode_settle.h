/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * What the host must be for a domain's elastic vnodes, and which steps are
 * missing until it is.
 *
 * There is one answer for everybody: who begins an operation, who has waited
 * for its end, who comes after one that was killed at any point, and who only
 * looks.  It depends on what is, not on what has been tried before:
 *
 * - what xenstore says: targets, allowances, pnodes, CPU availability, the
 *   record of the operation under way;
 * - what Xen says: the memory limit;
 * - what the guest says, as far as it can be true.
 *
 * Steps that give the guest something write xenstore first and Xen then; steps
 * that take something away do it the other way round.  So, wherever a process
 * dies, xenstore names at least all that the guest may have, and the difference
 * between the two is found by the next one.  What cannot be read back, which
 * pnodes Xen's vNUMA table has, is set while the key pnode differs from what it
 * must be, and that key is changed before (attach) or after (detach); and so is
 * affinity.  vCPUs of a vnode that is there which may run anywhere have lost
 * theirs, by a move to another cpupool.
 *
 * dsmd is as Xen is: told after xenstore of what is given, and before it of
 * what is taken away.  A slice can only give up its memory after the guest has,
 * and the pool only after that; the pool comes before the memory.
 *
 * vCPUs that run on the host of their vnode are placed there after its memory
 * has come and before the guest is told, and come home before the memory goes,
 * when the guest has been told that they are not available.
 *
 * Pure: no I/O, no allocation, no locks.
 */
#ifndef LIBXL_VNODE_SETTLE_H
#define LIBXL_VNODE_SETTLE_H

#include "libxl_vnode_keys.h"
#include "libxl_vnode_layout.h"

/* What cpu/<v>/availability says of the vCPUs of a vnode. */
enum vnode_cpus {
    VNODE_CPUS_NONE,            /* it has no vCPUs */
    VNODE_CPUS_OFFLINE,
    VNODE_CPUS_ONLINE,
    VNODE_CPUS_MIXED,
};

/* Nobody knows what dsmd has done last. */
#define VNODE_UNTOLD UINT64_MAX

/* Where dsmd has the vCPUs of a vnode that spans. */
enum vnode_where {
    VNODE_WHERE_UNTOLD,         /* nobody knows what it has done last */
    VNODE_WHERE_HOME,
    VNODE_WHERE_REMOTE,         /* on the vnode's host */
};

struct vnode_node_facts {
    bool elastic;
    uint64_t target_kb;         /* what the guest has been told */
    uint64_t allowed_kb;        /* its recorded share of the limit */
    /*
     * It spans: its memory is another host's.  Then there_kb, what is recorded
     * as being there, rises and falls as allowed_kb does else, and allowed_kb
     * is that of the pool here, or 0.
     */
    bool spans;
    uint64_t there_kb, pool_kb;
    uint64_t told_kb;           /* what dsmd has done last, VNODE_UNTOLD */
    bool remote_vcpus;          /* its vCPUs are to run there, too */
    bool placed;                /* recorded: they may be there */
    enum vnode_where told_where;    /* what dsmd has done last with them */
    int pnode;                  /* recorded physical node, -1: none */
    enum vnode_cpus cpus;
    bool unbound;               /* they may run anywhere, by Xen */
    const struct vnode_report *report;  /* the guest's word, checked */
};

struct vnode_facts {
    unsigned int nr_vnodes;
    const struct vnode_node_facts *node;
    uint64_t generation;        /* newest announced, 0: none */
    uint64_t done;              /* newest that the guest has finished */
    bool driver;                /* the guest has a driver */
    uint64_t home_kb;           /* limit without elastic vnodes */
    uint64_t limit_kb;          /* limit, by Xen */
    struct vnode_op_record op;  /* kind NONE: no record */
    bool attended;              /* who asks decides himself on a failed op */
};

/* An operation that is about to be announced: what it needs on the host. */
struct vnode_wish {
    unsigned int vnode;
    uint64_t kb;
    int pnode;                  /* backs it from now on */
};

enum vnode_step_kind {
    VNODE_STEP_PNODE,           /* record the vnode's pnode, -1: remove it */
    VNODE_STEP_TABLE,           /* back it by pnode in Xen's table, -1: home */
    VNODE_STEP_AFFINITY,        /* let its vCPUs run on pnode, -1: anywhere */
    VNODE_STEP_ALLOWED,         /* record kb as its share of the limit */
    VNODE_STEP_LIMIT,           /* set the domain's limit to kb */
    VNODE_STEP_THERE,           /* record kb as its memory on another host */
    VNODE_STEP_DSMD,            /* tell dsmd to have kb of it there */
    VNODE_STEP_PLACED,          /* record its vCPUs as placed there, or not */
    VNODE_STEP_PLACE,           /* tell dsmd to place them there, or home */
    VNODE_STEP_CPUS,            /* make its vCPUs available, or not */
    VNODE_STEP_TAKE_BACK,       /* announce the opposite of the record */
    VNODE_STEP_FORGET,          /* remove the record */
};

struct vnode_step {
    enum vnode_step_kind kind;
    unsigned int vnode;         /* of LIMIT, FORGET: 0 */
    int pnode;
    uint64_t kb;
    bool online;
    bool placed;
    bool loose;                 /* AFFINITY: only of those that run anywhere */
    /*
     * LIMIT: a recorded share is to fall.  After lowering the limit, count,
     * and fail if the domain has more than most_kb.  The limit stays low: what
     * has left cannot come back, and what has not does no harm.
     */
    bool count;
    uint64_t most_kb;
};

/*
 * Four keys, table, affinity, dsmd twice, CPUs of each vnode; limit; the
 * record.
 */
#define VNODE_STEPS_MAX (VNODE_MAX * 10 + 2)

/* Is the operation on record one that the guest has still to finish? */
bool vnode_in_flight(const struct vnode_facts *f);

/*
 * The steps that are missing, in the order in which they must be done.
 *
 * @wish: of an operation that is about to be announced; NULL: none
 * @steps: room for VNODE_STEPS_MAX
 *
 * Returns their number; 0: the host is as it must be.  After all of them have
 * been done, the answer for the new facts is 0, unless TAKE_BACK was the last:
 * then there is an operation in flight, or without a driver one to be closed.
 */
unsigned int vnode_missing_steps(const struct vnode_facts *f,
                                 const struct vnode_wish *wish,
                                 struct vnode_step *steps);

/* "limit", "allowed" ...; for messages. */
const char *vnode_step_name(enum vnode_step_kind kind);

#endif /* LIBXL_VNODE_SETTLE_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
