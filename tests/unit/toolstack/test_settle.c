// SPDX-License-Identifier: GPL-2.0
/*
 * What the host must be for a domain's elastic vnodes: libxl_vnode_settle.c.
 *
 * A table of what can be found, by how it came about, and the steps that are
 * missing then, as one line: "limit 768 count, allowed 1=0".  Then all that can
 * be found, by the thousand, and what must hold whatever it is.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tap.h"
#include "libxl_vnode_settle.h"

#define HOME 512
#define MAX 1024
#define POOL 32

/* Two elastic vnodes behind a home one; of the second only what is said. */
struct state {
    const char *name;
    /* vnode 1 */
    uint64_t target, allowed;
    int pnode;
    enum vnode_cpus cpus;
    struct vnode_raw raw;
    /* the domain */
    uint64_t limit;
    struct vnode_op_record op;
    uint64_t generation, done;
    bool no_driver, attended;
    struct vnode_wish wish;     /* of vnode 1; kb 0: none */
    bool stock;                 /* no vnode is elastic */
    bool unbound;
    uint64_t allowed2, target2; /* of vnode 2; target2 0: the same */
    bool spans;                 /* vnode 1 is on another host */
    uint64_t there;
    bool knows;                 /* what dsmd has done last: told */
    uint64_t told;
    bool remote, placed;        /* its vCPUs run there; are said to */
    enum vnode_where where;     /* by dsmd */
    const char *steps;
};

#define OFF VNODE_CPUS_OFFLINE
#define ON VNODE_CPUS_ONLINE
#define OFFLINE { .state = "offline", .current_kb = "0" }
#define ONLINE(kb) { .state = "online", .current_kb = kb }
#define OP(kind, gen, old, new) { gen, VNODE_OP_##kind, 1, old, new, 99 }
#define OP_REST(kind, gen, old, new, rest) \
    { gen, VNODE_OP_##kind, 1, old, new, 99, rest }
#define PUT_BACK "table 1=-1, affinity 1=-1, pnode 1=-1"

static const struct state states[] = {
    /* nothing to do */
    { "absent", 0, 0, -1, OFF, { 0 }, 512, .steps = "" },
    { "there", 256, 256, 1, ON, ONLINE("256"), 768, .steps = "" },
    { "on its way there", 256, 256, 1, OFF,
      { .state = "growing", .current_kb = "64" }, 768, OP(ATTACH, 3, 0, 256),
      3, 2, .steps = "" },
    { "on its way out", 0, 256, 1, ON,
      { .state = "draining", .current_kb = "64" }, 768, OP(DETACH, 3, 256, 0),
      3, 2, .steps = "" },
    { "told, and no driver yet", 256, 256, 1, OFF, { 0 }, 768,
      OP(ATTACH, 3, 0, 256), 3, 2, .no_driver = true, .steps = "" },

    { "without elastic vnodes, a limit that somebody else has set", 0, 0, 1,
      OFF, { 0 }, 768, .stock = true, .steps = "" },

    /* before an announcement */
    { "to be attached", 0, 0, -1, OFF, { 0 }, 512, OP(ATTACH, 1, 0, 256),
      .wish = { 1, 256, 2 },
      .steps = "pnode 1=2, table 1=2, affinity 1=2, allowed 1=256, limit 768" },
    { "to be attached, died after the pnode", 0, 0, 2, OFF, { 0 }, 512,
      OP(ATTACH, 1, 0, 256), .wish = { 1, 256, 2 },
      .steps = "table 1=2, affinity 1=2, allowed 1=256, limit 768" },
    { "to be attached, died after the allowance", 0, 256, 2, OFF, { 0 }, 512,
      OP(ATTACH, 1, 0, 256), .wish = { 1, 256, 2 },
      .steps = "table 1=2, affinity 1=2, limit 768" },
    { "to grow", 128, 128, 1, ON, ONLINE("128"), 640, OP(SET, 4, 128, 256), 3,
      3, .wish = { 1, 256, 1 }, .steps = "allowed 1=256, limit 768" },
    { "to grow into what it is allowed", 0, 256, 1, ON,
      { .state = "draining", .current_kb = "128" }, 768,
      OP(DETACH, 3, 256, 0), 3, 2, .wish = { 1, 256, 1 }, .steps = "" },

    { "to be attached with less than it is allowed", 0, 256, 1, ON,
      { .state = "draining", .current_kb = "64" }, 768,
      OP(DETACH, 3, 256, 0), 3, 2, .wish = { 1, 128, 1 }, .steps = "" },

    /* never announced */
    { "died after the record", 0, 0, -1, OFF, { 0 }, 512,
      OP(ATTACH, 1, 0, 256), .steps = "forget 1" },
    { "died after the pnode", 0, 0, 1, OFF, { 0 }, 512, OP(ATTACH, 1, 0, 256),
      .steps = PUT_BACK ", forget 1" },
    { "died after the allowance", 0, 256, 1, OFF, { 0 }, 512,
      OP(ATTACH, 1, 0, 256),
      .steps = "limit 512 count, allowed 1=0, " PUT_BACK ", forget 1" },
    { "died after the limit", 0, 256, 1, OFF, { 0 }, 768,
      OP(ATTACH, 1, 0, 256),
      .steps = "limit 512 count, allowed 1=0, " PUT_BACK ", forget 1" },
    { "died before a larger size was announced", 128, 256, 1, ON,
      ONLINE("128"), 768, OP(SET, 4, 128, 256), 3, 3,
      .steps = "limit 640 count, allowed 1=128, forget 1" },

    /* finished */
    { "attached", 256, 256, 1, OFF, ONLINE("256"), 768, OP(ATTACH, 1, 0, 256),
      1, 1, .steps = "cpus 1=online, forget 1" },
    { "attached, some CPUs available", 256, 256, 1, VNODE_CPUS_MIXED,
      ONLINE("256"), 768, OP(ATTACH, 1, 0, 256), 1, 1,
      .steps = "cpus 1=online, forget 1" },
    { "attached, it has no CPUs", 256, 256, 1, VNODE_CPUS_NONE, ONLINE("256"),
      768, OP(ATTACH, 1, 0, 256), 1, 1, .steps = "forget 1" },
    { "detached", 0, 256, 1, ON, OFFLINE, 768, OP(DETACH, 2, 256, 0), 2, 2,
      .steps = "limit 512 count, allowed 1=0, cpus 1=offline, " PUT_BACK
               ", forget 1" },
    { "detached, died after the limit", 0, 256, 1, ON, OFFLINE, 512,
      OP(DETACH, 2, 256, 0), 2, 2,
      .steps = "limit 512 count, allowed 1=0, cpus 1=offline, " PUT_BACK
               ", forget 1" },
    { "detached, died after the allowance", 0, 0, 1, ON, OFFLINE, 512,
      OP(DETACH, 2, 256, 0), 2, 2,
      .steps = "cpus 1=offline, " PUT_BACK ", forget 1" },
    { "detached, died after the table", 0, 0, 1, OFF, OFFLINE, 512,
      OP(DETACH, 2, 256, 0), 2, 2, .steps = PUT_BACK ", forget 1" },
    { "detached beside another", 0, 256, 1, OFF, OFFLINE, 896,
      OP(DETACH, 2, 256, 0), 2, 2, .allowed2 = 128,
      .steps = "limit 640 count, allowed 1=0, " PUT_BACK ", forget 1" },
    { "residual", 0, 256, 1, ON,
      { .state = "residual", .current_kb = "8", .residual_kb = "8" }, 768,
      OP(DETACH, 2, 256, 0), 2, 2,
      .steps = "limit 520 count, allowed 1=8, forget 1" },
    { "smaller", 128, 256, 1, ON, ONLINE("128"), 768, OP(SET, 2, 256, 128), 2,
      2, .steps = "limit 640 count, allowed 1=128, forget 1" },
    { "garbage lowers nothing", 0, 256, 1, ON, { .state = "sideways" }, 768,
      OP(DETACH, 2, 256, 0), 2, 2, .steps = "forget 1" },
    { "undone without a driver", 0, 256, 1, OFF, { 0 }, 768,
      OP(DETACH, 2, 0, 0), 2, 0, .no_driver = true,
      .steps = "limit 512 count, allowed 1=0, " PUT_BACK ", forget 1" },
    { "a driver that has gone leaves a node that is there", 0, 256, 1, ON,
      ONLINE("256"), 768, OP(DETACH, 2, 256, 0), 2, 1, .no_driver = true,
      .steps = "" },

    /* home nodes that had more than they may, as it began */
    { "detached, the rest as it was", 0, 256, 1, OFF, OFFLINE, 768,
      OP_REST(DETACH, 2, 256, 0, 600), 2, 2,
      .steps = "limit 512 count 600, allowed 1=0, " PUT_BACK ", forget 1" },
    { "detached, the rest had less than it may", 0, 256, 1, OFF, OFFLINE, 768,
      OP_REST(DETACH, 2, 256, 0, 400), 2, 2,
      .steps = "limit 512 count, allowed 1=0, " PUT_BACK ", forget 1" },
    { "residual, beside the rest as it was", 0, 256, 1, OFF,
      { .state = "residual", .current_kb = "8", .residual_kb = "8" }, 768,
      OP_REST(DETACH, 2, 256, 0, 600), 2, 2,
      .steps = "limit 520 count 608, allowed 1=8, forget 1" },
    { "detached, and the rest has another that shrank", 0, 256, 1, OFF,
      OFFLINE, 960, OP_REST(DETACH, 2, 256, 0, 800), 2, 2, .allowed2 = 192,
      .target2 = 128,
      .steps = "limit 640 count 736, allowed 1=0, allowed 2=128, " PUT_BACK
               ", forget 1" },
    { "what the rest was says nothing later", 0, 8, 1, OFF, OFFLINE, 520,
      .op = { .rest_kb = 600 },
      .steps = "limit 512 count, allowed 1=0, " PUT_BACK },

    /* failed */
    { "attach failed", 256, 256, 1, OFF,
      { .state = "offline", .error = "-12 x" }, 768, OP(ATTACH, 1, 0, 256), 1,
      1, .steps = "take back 1" },
    { "attach failed, who asks decides", 256, 256, 1, OFF,
      { .state = "offline", .error = "-12 x" }, 768, OP(ATTACH, 1, 0, 256), 1,
      1, .attended = true, .steps = "forget 1" },
    { "detach refused", 0, 256, 1, ON,
      { .state = "online", .current_kb = "256", .error = "-12 x" }, 768,
      OP(DETACH, 2, 256, 0), 2, 2, .steps = "take back 1" },
    { "a way back that failed has none of its own", 0, 256, 1, OFF,
      { .state = "online", .current_kb = "64", .error = "-5 x" }, 768,
      OP(DETACH, 2, 0, 0), 2, 2,
      .steps = "limit 576 count, allowed 1=64, forget 1" },

    /* without a record */
    { "the residual has left by itself", 0, 8, 1, ON, OFFLINE, 520,
      .steps = "limit 512 count, allowed 1=0, cpus 1=offline, " PUT_BACK },
    { "limit below what is allowed", 256, 256, 1, ON, ONLINE("256"), 512,
      .steps = "limit 768" },
    { "limit above what is allowed", 0, 0, -1, OFF, OFFLINE, 768,
      .steps = "limit 512" },
    { "a limit within the same page", 0, 0, -1, OFF, OFFLINE, 515,
      .steps = "" },
    { "available although absent", 0, 0, -1, ON, OFFLINE, 512,
      .steps = "cpus 1=offline" },
    { "moved to another cpupool", 256, 256, 1, ON, ONLINE("256"), 768,
      .unbound = true, .steps = "affinity 1=1 loose" },
    { "moved while it is on its way there", 256, 256, 1, OFF,
      { .state = "growing", .current_kb = "64" }, 768, OP(ATTACH, 3, 0, 256),
      3, 2, .unbound = true, .steps = "affinity 1=1 loose" },
    { "moved, and absent", 0, 0, -1, OFF, OFFLINE, 512, .unbound = true,
      .steps = "" },
    { "moved before an attach", 0, 0, -1, OFF, { 0 }, 512,
      OP(ATTACH, 1, 0, 256), .wish = { 1, 256, 2 }, .unbound = true,
      .steps = "pnode 1=2, table 1=2, affinity 1=2, allowed 1=256, limit 768" },
    { "moved before it leaves", 0, 256, 1, ON, OFFLINE, 768,
      OP(DETACH, 2, 256, 0), 2, 2, .unbound = true,
      .steps = "limit 512 count, allowed 1=0, cpus 1=offline, " PUT_BACK
               ", forget 1" },

    /* on another host */
#define SPANS .spans = true
#define TOLD(kb) .knows = true, .told = kb
    { "spans: absent", 0, 0, -1, OFF, { 0 }, 512, SPANS, .steps = "" },
    { "spans: there", 256, 32, -1, ON, ONLINE("256"), 544, SPANS, .there = 256,
      .steps = "" },
    { "spans: to be attached", 0, 0, -1, OFF, { 0 }, 512,
      OP(ATTACH, 1, 0, 256), .wish = { 1, 256, -1 }, SPANS, TOLD(0),
      .steps = "allowed 1=32, limit 544, there 1=256, dsmd 1=256" },
    { "spans: died before dsmd was told, or after", 0, 32, -1, OFF, { 0 }, 544,
      OP(ATTACH, 1, 0, 256), .wish = { 1, 256, -1 }, SPANS, .there = 256,
      .steps = "dsmd 1=256" },
    { "spans: dsmd has done it", 0, 32, -1, OFF, { 0 }, 544,
      OP(ATTACH, 1, 0, 256), .wish = { 1, 256, -1 }, SPANS, .there = 256,
      TOLD(256), .steps = "" },
    { "spans: never announced, and dsmd may have done it", 0, 32, -1, OFF,
      { 0 }, 544, OP(ATTACH, 1, 0, 256), SPANS, .there = 256,
      .steps = "dsmd 1=0, there 1=0, limit 512 count, allowed 1=0, forget 1" },
    { "spans: never announced, and dsmd has refused", 0, 32, -1, OFF, { 0 },
      544, OP(ATTACH, 1, 0, 256), SPANS, .there = 256, TOLD(0),
      .steps = "there 1=0, limit 512 count, allowed 1=0, forget 1" },
    { "spans: never announced, died before it was recorded", 0, 32, -1, OFF,
      { 0 }, 544, OP(ATTACH, 1, 0, 256), SPANS,
      .steps = "limit 512 count, allowed 1=0, forget 1" },
    { "spans: on its way there", 256, 32, -1, OFF,
      { .state = "growing", .current_kb = "64" }, 544, OP(ATTACH, 3, 0, 256),
      3, 2, SPANS, .there = 256, .steps = "" },
    { "spans: attached", 256, 32, -1, OFF, ONLINE("256"), 544,
      OP(ATTACH, 1, 0, 256), 1, 1, SPANS, .there = 256,
      .steps = "cpus 1=online, forget 1" },
    { "spans: attach failed", 256, 32, -1, OFF,
      { .state = "offline", .error = "-12 x" }, 544, OP(ATTACH, 1, 0, 256), 1,
      1, SPANS, .there = 256, .steps = "take back 1" },
    { "spans: on its way out", 0, 32, -1, ON,
      { .state = "draining", .current_kb = "64" }, 544, OP(DETACH, 3, 256, 0),
      3, 2, SPANS, .there = 256, .steps = "" },
    { "spans: detached", 0, 32, -1, ON, OFFLINE, 544, OP(DETACH, 2, 256, 0), 2,
      2, SPANS, .there = 256, TOLD(256),
      .steps = "dsmd 1=0, there 1=0, limit 512 count, allowed 1=0, "
               "cpus 1=offline, forget 1" },
    { "spans: detached, dsmd has done it", 0, 32, -1, ON, OFFLINE, 544,
      OP(DETACH, 2, 256, 0), 2, 2, SPANS, .there = 256, TOLD(0),
      .steps = "there 1=0, limit 512 count, allowed 1=0, cpus 1=offline, "
               "forget 1" },
    { "spans: detached, died after it was recorded", 0, 32, -1, OFF, OFFLINE,
      544, OP(DETACH, 2, 256, 0), 2, 2, SPANS,
      .steps = "limit 512 count, allowed 1=0, forget 1" },
    { "spans: residual", 0, 32, -1, ON,
      { .state = "residual", .current_kb = "8", .residual_kb = "8" }, 544,
      OP(DETACH, 2, 256, 0), 2, 2, SPANS, .there = 256,
      .steps = "dsmd 1=8, there 1=8, forget 1" },
    { "spans: to grow", 128, 32, -1, ON, ONLINE("128"), 544,
      OP(SET, 4, 128, 256), 3, 3, .wish = { 1, 256, -1 }, SPANS, .there = 128,
      TOLD(128), .steps = "there 1=256, dsmd 1=256" },
    { "spans: to grow into what is there", 0, 32, -1, ON,
      { .state = "draining", .current_kb = "128" }, 544,
      OP(DETACH, 3, 256, 0), 3, 2, .wish = { 1, 256, -1 }, SPANS, .there = 256,
      .steps = "dsmd 1=256" },
    { "spans: smaller", 128, 32, -1, ON, ONLINE("128"), 544,
      OP(SET, 2, 256, 128), 2, 2, SPANS, .there = 256,
      .steps = "dsmd 1=128, there 1=128, forget 1" },
    { "spans: garbage lowers nothing", 0, 32, -1, ON, { .state = "sideways" },
      544, OP(DETACH, 2, 256, 0), 2, 2, SPANS, .there = 256,
      .steps = "forget 1" },
    { "spans: detached beside one of this host", 0, 32, -1, OFF, OFFLINE, 672,
      OP_REST(DETACH, 2, 256, 0, 640), 2, 2, .allowed2 = 128, SPANS,
      .there = 256, .steps = "dsmd 1=0, there 1=0, limit 640 count, "
                             "allowed 1=0, forget 1" },

    /* and its vCPUs run there */
#define REMOTE SPANS, .remote = true
#define AT(place) .where = VNODE_WHERE_##place
    { "remote: absent", 0, 0, -1, OFF, { 0 }, 512, REMOTE, .steps = "" },
    { "remote: there", 256, 32, -1, ON, ONLINE("256"), 544, REMOTE,
      .there = 256, .placed = true, .steps = "" },
    { "remote: to be attached", 0, 0, -1, OFF, { 0 }, 512,
      OP(ATTACH, 1, 0, 256), .wish = { 1, 256, -1 }, REMOTE, TOLD(0), AT(HOME),
      .steps = "allowed 1=32, limit 544, there 1=256, dsmd 1=256, placed 1=1, "
               "place 1=1" },
    { "remote: dsmd has the memory", 0, 32, -1, OFF, { 0 }, 544,
      OP(ATTACH, 1, 0, 256), .wish = { 1, 256, -1 }, REMOTE, .there = 256,
      TOLD(256), AT(HOME), .steps = "placed 1=1, place 1=1" },
    { "remote: died before dsmd has placed them, or after", 0, 32, -1, OFF,
      { 0 }, 544, OP(ATTACH, 1, 0, 256), .wish = { 1, 256, -1 }, REMOTE,
      .there = 256, .placed = true, TOLD(256), .steps = "place 1=1" },
    { "remote: dsmd has placed them", 0, 32, -1, OFF, { 0 }, 544,
      OP(ATTACH, 1, 0, 256), .wish = { 1, 256, -1 }, REMOTE, .there = 256,
      .placed = true, TOLD(256), AT(REMOTE), .steps = "" },
    { "remote: never announced, and dsmd may have placed them", 0, 32, -1, OFF,
      { 0 }, 544, OP(ATTACH, 1, 0, 256), REMOTE, .there = 256, .placed = true,
      .steps = "place 1=0, placed 1=0, dsmd 1=0, there 1=0, limit 512 count, "
               "allowed 1=0, forget 1" },
    { "remote: never announced, and dsmd has not placed them", 0, 32, -1, OFF,
      { 0 }, 544, OP(ATTACH, 1, 0, 256), REMOTE, .there = 256, .placed = true,
      TOLD(256), AT(HOME),
      .steps = "placed 1=0, dsmd 1=0, there 1=0, limit 512 count, "
               "allowed 1=0, forget 1" },
    { "remote: on its way there", 256, 32, -1, OFF,
      { .state = "growing", .current_kb = "64" }, 544, OP(ATTACH, 3, 0, 256),
      3, 2, REMOTE, .there = 256, .placed = true, .steps = "" },
    { "remote: attached", 256, 32, -1, OFF, ONLINE("256"), 544,
      OP(ATTACH, 1, 0, 256), 1, 1, REMOTE, .there = 256, .placed = true,
      .steps = "cpus 1=online, forget 1" },
    { "remote: attach failed", 256, 32, -1, OFF,
      { .state = "offline", .error = "-12 x" }, 544, OP(ATTACH, 1, 0, 256), 1,
      1, REMOTE, .there = 256, .placed = true, .steps = "take back 1" },
    { "remote: on its way out", 0, 32, -1, ON,
      { .state = "draining", .current_kb = "64" }, 544, OP(DETACH, 3, 256, 0),
      3, 2, REMOTE, .there = 256, .placed = true, .steps = "" },
    { "remote: detached", 0, 32, -1, ON, OFFLINE, 544, OP(DETACH, 2, 256, 0),
      2, 2, REMOTE, .there = 256, .placed = true, TOLD(256), AT(REMOTE),
      .steps = "cpus 1=offline, place 1=0, placed 1=0, dsmd 1=0, there 1=0, "
               "limit 512 count, allowed 1=0, forget 1" },
    { "remote: detached, dsmd has them home", 0, 32, -1, OFF, OFFLINE, 544,
      OP(DETACH, 2, 256, 0), 2, 2, REMOTE, .there = 256, .placed = true,
      TOLD(256), AT(HOME),
      .steps = "placed 1=0, dsmd 1=0, there 1=0, limit 512 count, "
               "allowed 1=0, forget 1" },
    { "remote: detached, died after it was recorded", 0, 32, -1, OFF, OFFLINE,
      544, OP(DETACH, 2, 256, 0), 2, 2, REMOTE, .there = 256,
      .steps = "dsmd 1=0, there 1=0, limit 512 count, allowed 1=0, forget 1" },
    { "remote: residual", 0, 32, -1, ON,
      { .state = "residual", .current_kb = "8", .residual_kb = "8" }, 544,
      OP(DETACH, 2, 256, 0), 2, 2, REMOTE, .there = 256, .placed = true,
      .steps = "dsmd 1=8, there 1=8, forget 1" },
    { "remote: residual, of nothing", 0, 32, -1, ON,
      { .state = "residual", .current_kb = "0" }, 544,
      OP(DETACH, 2, 256, 0), 2, 2, REMOTE, .there = 256, .placed = true,
      .steps = "cpus 1=offline, place 1=0, placed 1=0, dsmd 1=0, there 1=0, "
               "limit 512 count, allowed 1=0, forget 1" },
    { "remote: to grow", 128, 32, -1, ON, ONLINE("128"), 544,
      OP(SET, 4, 128, 256), 3, 3, .wish = { 1, 256, -1 }, REMOTE, .there = 128,
      .placed = true, TOLD(128), AT(REMOTE),
      .steps = "there 1=256, dsmd 1=256" },
    { "remote: attached while it leaves", 0, 32, -1, ON,
      { .state = "draining", .current_kb = "128" }, 544,
      OP(DETACH, 3, 256, 0), 3, 2, .wish = { 1, 256, -1 }, REMOTE,
      .there = 256, .placed = true, .steps = "dsmd 1=256, place 1=1" },
    { "remote: garbage brings nothing home", 0, 32, -1, ON,
      { .state = "sideways" }, 544, OP(DETACH, 2, 256, 0), 2, 2, REMOTE,
      .there = 256, .placed = true, .steps = "forget 1" },
    { "spans: its vCPUs are never placed", 0, 0, -1, OFF, { 0 }, 512,
      OP(ATTACH, 1, 0, 256), .wish = { 1, 256, -1 }, SPANS, TOLD(0), AT(HOME),
      .steps = "allowed 1=32, limit 544, there 1=256, dsmd 1=256" },

    { "allowed less than its target", 256, 128, 1, ON, ONLINE("128"), 640,
      .steps = "allowed 1=256, limit 768" },
};

static struct vnode_report reports[3];

static struct vnode_facts facts_of(const struct state *s,
                                   struct vnode_node_facts node[3])
{
    struct vnode_raw raw2 = ONLINE("128"), none = { 0 };

    vnode_parse_report(&none, MAX, &reports[0]);
    vnode_parse_report(&s->raw, MAX, &reports[1]);
    vnode_parse_report(s->allowed2 ? &raw2 : &none, MAX, &reports[2]);
    node[0] = (struct vnode_node_facts) {
        .target_kb = HOME, .report = &reports[0],
    };
    node[1] = (struct vnode_node_facts) {
        .elastic = !s->stock, .target_kb = s->target,
        .allowed_kb = s->allowed, .spans = s->spans, .there_kb = s->there,
        .pool_kb = POOL, .told_kb = s->knows ? s->told : VNODE_UNTOLD,
        .remote_vcpus = s->remote, .placed = s->placed, .told_where = s->where,
        .pnode = s->pnode, .cpus = s->cpus, .unbound = s->unbound,
        .report = &reports[1],
    };
    node[2] = (struct vnode_node_facts) {
        .elastic = !s->stock,
        .target_kb = s->target2 ? s->target2 : s->allowed2,
        .allowed_kb = s->allowed2, .pnode = s->allowed2 ? 3 : -1,
        .cpus = VNODE_CPUS_NONE, .report = &reports[2],
    };

    return (struct vnode_facts) {
        .nr_vnodes = 3,
        .node = node,
        .generation = s->generation,
        .done = s->done,
        .driver = !s->no_driver,
        .home_kb = HOME,
        .limit_kb = s->limit,
        .op = s->op,
        .attended = s->attended,
    };
}

static size_t print_step(const struct vnode_step *s, char *buf, size_t len)
{
    const char *name = vnode_step_name(s->kind);

    switch (s->kind) {
    case VNODE_STEP_PNODE:
    case VNODE_STEP_TABLE:
    case VNODE_STEP_AFFINITY:
        return snprintf(buf, len, "%s %u=%d%s", name, s->vnode, s->pnode,
                        s->loose ? " loose" : "");
    case VNODE_STEP_ALLOWED:
    case VNODE_STEP_THERE:
    case VNODE_STEP_DSMD:
        return snprintf(buf, len, "%s %u=%"PRIu64, name, s->vnode, s->kb);
    case VNODE_STEP_LIMIT:
        if (s->count && s->most_kb != s->kb)
            return snprintf(buf, len, "%s %"PRIu64" count %"PRIu64, name,
                            s->kb, s->most_kb);
        return snprintf(buf, len, "%s %"PRIu64"%s", name, s->kb,
                        s->count ? " count" : "");
    case VNODE_STEP_CPUS:
        return snprintf(buf, len, "%s %u=%s", name, s->vnode,
                        s->online ? "online" : "offline");
    case VNODE_STEP_PLACED:
    case VNODE_STEP_PLACE:
        return snprintf(buf, len, "%s %u=%d", name, s->vnode, s->placed);
    case VNODE_STEP_TAKE_BACK:
    case VNODE_STEP_FORGET:
        break;
    }

    return snprintf(buf, len, "%s %u", name, s->vnode);
}

static void test_table(void)
{
    size_t i, used;

    for (i = 0; i < NR(states); i++) {
        const struct state *s = &states[i];
        struct vnode_node_facts node[3];
        struct vnode_facts f = facts_of(s, node);
        struct vnode_step step[VNODE_STEPS_MAX];
        char line[400] = "";
        unsigned int j, nr;

        nr = vnode_missing_steps(&f, s->wish.kb ? &s->wish : NULL, step);
        for (j = 0, used = 0; j < nr; j++) {
            used += snprintf(line + used, sizeof(line) - used, "%s",
                             j ? ", " : "");
            used += print_step(&step[j], line + used, sizeof(line) - used);
        }
        ok_("%s", !strcmp(line, s->steps), s->name);
        if (strcmp(line, s->steps))
            note("\"%s\" instead of \"%s\"", line, s->steps);
    }
}

/*---------- whatever is found ----------*/

static int pick(int nr)
{
    return rand() % nr;
}

static void random_state(struct state *s)
{
    static const char *const names[] = {
        NULL, "offline", "growing", "online", "draining", "residual", "x",
    };
    static const char *const sizes[] = { "0", "64", "128", "256" };

    *s = (struct state) {
        .target = 128 * pick(3), .allowed = 128 * pick(3),
        .pnode = pick(3) - 1, .cpus = (enum vnode_cpus)pick(4),
        .raw = { .state = names[pick(7)], .current_kb = sizes[pick(4)],
                 .error = pick(2) ? "-12 x" : NULL },
        .limit = HOME + 64 * pick(6),
        .generation = 1 + pick(3), .done = pick(4),
        .no_driver = !pick(4), .attended = pick(2),
        .allowed2 = 128 * pick(2), .unbound = !pick(4),
    };
    if (!pick(3)) {
        s->spans = true;
        s->pnode = -1;
        s->allowed = POOL * pick(2);
        s->there = s->allowed ? 128 * pick(3) : 0;
        s->knows = pick(2);
        s->told = 128 * pick(3);
        s->remote = pick(2);
        s->placed = s->remote && s->there && pick(2);
        s->where = (enum vnode_where)pick(3);
    }
    if (pick(2))
        s->op = (struct vnode_op_record) {
            1 + pick(4), (enum vnode_op_kind)(1 + pick(3)), 1, 128 * pick(3),
            128 * pick(3), 99,
        };
}

/* As if the step had been done, but for what the guest does. */
static void do_step(const struct vnode_step *s, struct vnode_facts *f,
                    struct vnode_node_facts *node)
{
    switch (s->kind) {
    case VNODE_STEP_PNODE:
        node[s->vnode].pnode = s->pnode;
        break;
    case VNODE_STEP_ALLOWED:
        node[s->vnode].allowed_kb = s->kb;
        break;
    case VNODE_STEP_THERE:
        node[s->vnode].there_kb = s->kb;
        break;
    case VNODE_STEP_DSMD:
        node[s->vnode].told_kb = s->kb;
        break;
    case VNODE_STEP_PLACED:
        node[s->vnode].placed = s->placed;
        break;
    case VNODE_STEP_PLACE:
        node[s->vnode].told_where = s->placed ? VNODE_WHERE_REMOTE
                                              : VNODE_WHERE_HOME;
        break;
    case VNODE_STEP_LIMIT:
        f->limit_kb = s->kb;
        break;
    case VNODE_STEP_CPUS:
        node[s->vnode].cpus = s->online ? ON : OFF;
        break;
    case VNODE_STEP_TAKE_BACK:
        node[s->vnode].target_kb = f->op.old_kb;
        f->op.generation = ++f->generation;
        f->op.new_kb = f->op.old_kb;
        break;
    case VNODE_STEP_FORGET:
        f->op.kind = VNODE_OP_NONE;
        break;
    case VNODE_STEP_AFFINITY:
        node[s->vnode].unbound = false;
        break;
    case VNODE_STEP_TABLE:
        break;
    }
}

static uint64_t all_allowed(const struct vnode_facts *f)
{
    return f->home_kb + f->node[1].allowed_kb + f->node[2].allowed_kb;
}

static void test_random(void)
{
    bool ends = true, covered = true, counted = true, last = true;
    bool recorded = true, left = true;
    int i;

    srand(4712);
    for (i = 0; i < 200000; i++) {
        struct state s;
        struct vnode_node_facts node[3];
        struct vnode_facts f;
        struct vnode_step step[VNODE_STEPS_MAX];
        unsigned int j, nr, stop;

        /* A process that dies before any step, and its successor. */
        random_state(&s);
        f = facts_of(&s, node);
        nr = vnode_missing_steps(&f, NULL, step);
        stop = pick(nr + 1);
        for (j = 0; j < stop; j++) {
            uint64_t before = f.limit_kb;
            bool lowers = step[j].kind == VNODE_STEP_ALLOWED &&
                          step[j].kb < node[step[j].vnode].allowed_kb;

            last &= step[j].kind != VNODE_STEP_FORGET || j == nr - 1;
            /* dsmd is never told of more than the books say, nor without a pool. */
            recorded &= step[j].kind != VNODE_STEP_DSMD ||
                        (step[j].kb <= node[step[j].vnode].there_kb &&
                         (!step[j].kb || node[step[j].vnode].allowed_kb));
            /* A host that may have vCPUs keeps its memory. */
            left &= step[j].kind != VNODE_STEP_DSMD || step[j].kb ||
                    !node[step[j].vnode].placed;
            /* Nobody is told that it may run before it is where it runs. */
            left &= step[j].kind != VNODE_STEP_PLACE || step[j].placed ||
                    node[step[j].vnode].cpus == OFF ||
                    node[step[j].vnode].cpus == VNODE_CPUS_NONE;
            do_step(&step[j], &f, node);
            /* Xen is never told of more than the records say. */
            covered &= f.limit_kb <= before || f.limit_kb <= all_allowed(&f);
            /* A record never falls but after a count under that limit. */
            counted &= !lowers || f.limit_kb / 4 <= all_allowed(&f) / 4;
        }
        nr = vnode_missing_steps(&f, NULL, step);
        for (j = 0; j < nr; j++) {
            if (step[j].kind == VNODE_STEP_ALLOWED &&
                step[j].kb < node[step[j].vnode].allowed_kb)
                counted &= j > 0 && (step[j - 1].kind == VNODE_STEP_ALLOWED ||
                                     step[j - 1].count);
            do_step(&step[j], &f, node);
        }
        /* Taken back, and nobody there to do it: the next one closes it. */
        if (nr && step[nr - 1].kind == VNODE_STEP_TAKE_BACK)
            for (j = 0, nr = vnode_missing_steps(&f, NULL, step); j < nr; j++)
                do_step(&step[j], &f, node);
        ends &= !vnode_missing_steps(&f, NULL, step);
    }
    ok_("whatever is found: after the steps there are none", ends);
    ok_("whatever is found: the limit never exceeds the records", covered);
    ok_("whatever is found: a record falls after limit and count", counted);
    ok_("whatever is found: dsmd has no more than the records say", recorded);
    ok_("whatever is found: CPUs are told, come home, and then memory goes",
        left);
    ok_("whatever is found: the record of the operation goes last", last);
}

int main(void)
{
    test_table();
    test_random();

    return done_testing();
}
