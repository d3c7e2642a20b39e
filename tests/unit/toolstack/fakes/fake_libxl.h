/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A host with one domain, made of arrays, for the toolstack's unit tests.
 *
 * The domain has vnode 0 at home (pnode 0, vCPUs 0-1) and two elastic ones: 1
 * (vCPUs 2-3) and 2 (vCPU 4).  The process under test dies where a test says:
 * just before its nth effect on xenstore or Xen.  What it had written stays,
 * its locks are gone.
 */
#ifndef FAKE_LIBXL_H
#define FAKE_LIBXL_H

#include "libxl_internal.h"

#define DOMID 7
#define NR_VNODES 3
#define NR_VCPUS 5
#define MAX_VNODES 4            /* fake_boot_nodes(): 3 has vCPUs 5-6 */
#define MAX_VCPUS 7
#define NR_RANGES 4             /* of memory: home has two */
#define NR_PNODES 4             /* two CPUs each */
#define HOME_KB (512ULL << 10)
#define NODE_KB (256ULL << 10)

/* How the guest answers. */
enum guest_mood {
    GUEST_WORKS,
    GUEST_SILENT,               /* does nothing */
    GUEST_FAILS_TO_GROW,        /* -12, everything as it was */
    GUEST_REFUSES_TO_SHRINK,    /* -12, everything as it was */
    GUEST_KEEPS_SOME,           /* a removal leaves a residual */
    GUEST_GROWS_SLOWLY_AND_KEEPS_SOME,  /* never ends growing; as above */
    GUEST_LOSES_A_CPU,          /* never ends leaving; what stays lacks one */
    GUEST_LIES_ABOUT_LEAVING,   /* says offline, keeps everything */
    GUEST_KEEPS_A_PAGE,         /* says offline, keeps 4 KiB */
    GUEST_GARBLES,              /* does it, and its report is garbage */
};

#define RESIDUAL_KB 2048ULL

struct world {
    /* the process under test */
    unsigned int effects;       /* on xenstore or Xen, so far */
    unsigned int kill_at;       /* die before this one; 0: live */
    unsigned int calls;         /* of what can fail, so far */
    unsigned int fail_at;       /* the one that fails; 0: none */
    unsigned int break_at;      /* xenstored's answer that is the first not to come; 0: all do */
    unsigned int asked;         /* so far, if one does not come */
    bool broken;                /* none comes any more */
    unsigned int requests;      /* to xenstored, so far */
    unsigned int waits;         /* for a reply, or those of a batch */
    unsigned int hypercalls;
    unsigned int configs;       /* read and parsed */
    bool completed;
    int rc;
    libxl_vnodeinfo *end;       /* what it says has come of it, NULL: nothing */
    char log[4096];             /* what it has said */
    /* Xen */
    unsigned int nr_vnodes, nr_vcpus;
    bool destroyed;
    uint32_t flags;             /* XEN_DOMINF_* */
    uint64_t total_kb, limit_kb;
    unsigned int pauses;        /* as Xen counts */
    uint64_t lowest_limit_kb;   /* since the test has last set it */
    unsigned int to_pnode[MAX_VNODES];
    xen_vmemrange_t range[NR_RANGES];
    unsigned int more_ranges;   /* as the last one */
    uint64_t console, store;    /* gfns of the rings */
    int affinity[MAX_VCPUS];     /* hard; pnode, -1: anywhere */
    int soft[MAX_VCPUS];         /* the same, soft */
    uint64_t free_kb[NR_PNODES];
    unsigned int cpuless;       /* pnode without CPUs, plus 1 */
    unsigned int hole;          /* pnode that there is not, plus 1 */
    libxl_vnode_info config[MAX_VNODES];
    uint8_t pool;               /* CPUs of the domain's cpupool */
    bool no_pool;               /* it has just gone */
    bool no_config;             /* cannot be read */
    unsigned int pinned_hard, pinned_soft;  /* vCPUs that the config pins */
    /* the guest */
    enum guest_mood mood;
    uint64_t seen;              /* generation */
    uint64_t has_kb[MAX_VNODES];
    unsigned int on_pnode[MAX_VNODES];
    void (*on_read)(const char *path);  /* called before each read */
    bool no_release;            /* @releaseDomain does not fire */
    bool no_guest;              /* nor does the guest's folder */
    bool writes_on;             /* the guest writes there without end */
    void (*on_count)(void);     /* called when the domain's memory is counted */
};

extern struct world world;

/* What else is outside the process under test, and stands on this file. */
struct fake_neighbour {
    void (*boot)(void);
    void (*forget)(void);       /* the process under test has died */
    void (*run)(void);          /* the event loop turns */
    /* What a vnode whose memory is not this host's can have. */
    uint64_t (*there_kb)(unsigned int nr);
};

/* Before main(): there is one. */
void fake_meet(const struct fake_neighbour *neighbour);

/* A domain that has just booted, its elastic vnodes absent. */
void fake_boot(void);
/* The same with another number of vnodes, 1 .. MAX_VNODES. */
void fake_boot_nodes(unsigned int nr);
/* Forget everything that was allocated. */
void fake_end(void);

const char *fake_get(const char *path);     /* NULL: no such key */
void fake_set(const char *path, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void fake_remove(const char *path);
/* All below a path that ends in a slash. */
void fake_remove_below(const char *path);

/* The guest looks at what it has been told, and does it. */
void fake_guest_runs(void);

/*
 * Run @f; false: it has died at world.kill_at.  Then its locks and events are
 * gone too.
 */
bool fake_process(void (*f)(void *arg), void *arg);

/* Something outside the process changes, unless it dies before. */
void fake_effect(void);
/* Is this the call that fails? */
bool fake_fails(void);

/* The process that runs dies, between two effects. */
void fake_kill(void);

/* Deliver the event in which an operation begins. */
void fake_begin(void);
/* Deliver events until the operation ends. */
void fake_loop(void);

/* The event loop's clock, which goes on as timers end. */
uint64_t fake_now_ms(void);

/* How many timers and descriptors libxl waits for still. */
unsigned int fake_left(void);
/* Deliver the watches' events, and what is due at once. */
void fake_fire_once(void);
/* As libxl_ao_abort(): the next event is that. */
void fake_abort(void);

#endif /* FAKE_LIBXL_H */
