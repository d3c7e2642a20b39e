/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What DSM knows of a domain.  For mm/dsm.c and hvm/dsm_*.c only.
 */
#ifndef __ASM_X86_DSM_DOMAIN_H__
#define __ASM_X86_DSM_DOMAIN_H__

#include <xen/mm-frame.h>
#include <xen/spinlock.h>
#include <xen/time.h>
#include <xen/timer.h>

#include <asm/dsm_bits.h>

#include <public/dsm.h>

/* Misses of other domains that were reported and not answered. */
#define DSM_FOREIGN 64

struct dsm_range {
    unsigned long first, nr;    /* guest frames */
    /* Three bits for each: see mm/dsm.c. */
    struct dsm_bits away;       /* its page is on another host */
    struct dsm_bits elsewhere;  /* it is homed on another slice */
    struct dsm_bits uncached;   /* away, and its page does not come: state U */
};

/*
 * Hypercalls of one vCPU that are done in other slices: one that it waits for,
 * and results for those that interrupts have come before.
 */
#define DSM_CALLS 5

#define DSM_MAX_ERRNO 4095

struct dsm_call {
    enum {
        DSM_CALL_FREE,
        DSM_CALL_ASKED,         /* the vCPU is paused until REPLY */
        DSM_CALL_DONE,          /* what.rc is the result */
    } state;
    bool unsent;                /* the ring had no room for it */
    bool forgotten;             /* by an INIT: nobody takes the result */
    uint64_t cookie;            /* another one for each call */
    unsigned long rip, rsp;     /* who called */
    unsigned int slice;         /* where it is done */
    struct xen_dsm_call what;
};

/*
 * Accesses to pages in state U that one instruction makes: of 64 bytes twice,
 * in parts.
 */
#define DSM_ACCESSES 32

/* What it has made, and where in it: these do not change with page tables. */
struct dsm_access {
    unsigned int call;          /* of the emulator, for memory; from 0 on */
    unsigned long linear;       /* the address of this part */
    struct xen_dsm_access what;
    uint64_t seen;              /* there, before it was made */
};

/* What the instruction of a vCPU has done with pages in state U. */
struct dsm_accesses {
    /* Protected by dsm->lock. */
    bool asked;                 /* the vCPU is paused until ACCESS_DONE */
    bool unsent;                /* the ring had no room for it */
    bool forgotten;             /* by an INIT: nobody takes the result */
    uint64_t cookie;            /* another one for each access */
    /* Of that vCPU only, unless it is paused. */
    unsigned int nr;            /* in done, the last one may be asked for */
    unsigned int calls;         /* that this try has made */
    bool trying;                /* it is emulated now */
    unsigned long gfn;          /* in state U: where it faulted */
    /* In state U, and needed by this try in another way; or INVALID_GFN. */
    unsigned long needed;
    unsigned long rip;
    /* Only if nr is not 0; otherwise they are fetched. */
    unsigned int insn_bytes;
    uint8_t insn[16];
    struct dsm_access done[DSM_ACCESSES];
};

/*
 * Frames that have no memory for one access of a vCPU: see hvm/dsm_hole.c.  An
 * instruction that moves between two places needs four at most, and one that
 * is a hypercall has a few arguments.
 */
#define DSM_HOLES 8

struct dsm_hole {
    unsigned int nr;            /* 0: none */
    unsigned long gfn[DSM_HOLES];       /* the latest is the last */
    unsigned long rip, rsp;     /* where the access is made */
};

struct dsm_vcpu {
    /* Protected by dsm->lock. */
    struct dsm_call calls[DSM_CALLS];
    struct dsm_accesses accesses;
    unsigned long gfn;          /* what it waits for */
    unsigned long rip, rsp;
    s_time_t since;
    struct dsm_hole hole;       /* .nr is read by that vCPU without it */
    uint8_t want;               /* XEN_DSM_WANT_* */
    bool waiting;
    bool unsent;                /* the ring had no room for it */
    uint32_t entry;             /* its number in the ring, otherwise */
    bool by_xen;
    bool of_u;                  /* the page was in state U */
    bool waking;                /* its page has come, and it has not run yet */
    uint64_t could_run_ns;      /* until then */
    bool owing;                 /* owed is not in the ring yet */
    bool ghost;                 /* it does not run here, and is paused */
    uint16_t slice;             /* where it runs; written while all pause */
    struct xen_dsm_vcpu_event owed;
    /* Written and read by that vCPU only. */
    bool in_hcall;              /* it is counted in dsm->hcalls */
    bool hcall_retries;         /* the hypercall may miss: its caller retries */
    unsigned int hcall;
};

/* Ports whose events one entry of the ring has. */
#define DSM_PORTS_AT_ONCE 256

/* Events that were sent to ports of another slice. */
struct dsm_owed_ports {
    bool owing;                 /* they are not in the ring yet */
    uint64_t ports[DSM_PORTS_AT_ONCE / 64];
};

/*
 * A frame that other domains ask for, or that has no memory for them: see
 * hvm/dsm_foreign.c.  Protected by dsm->lock.
 */
struct dsm_foreign {
    unsigned long gfn;
    unsigned int want;          /* XEN_DSM_WANT_*; 0: nobody asks */
    s_time_t asked;             /* when somebody did, last */
    s_time_t since;             /* when the daemon was told, last */
    uint32_t first, last;       /* in those entries of the ring, as wanted */
    s_time_t hole_until;        /* no memory until then; 0: there is no note */
};

struct dsm_domain {
    /* Fixed by ENABLE. */
    unsigned int slice, nr_slices;
    unsigned int nr_ranges;
    struct dsm_range ranges[XEN_DSM_MAX_RANGES];
    evtchn_port_t port;
    unsigned int ring_frames, ring_nr;

    /* The outer lock: one page operation at a time. */
    spinlock_t ops_lock;
    mfn_t pool;                 /* frames without a page */
    unsigned long pooled;
    unsigned long reserved;     /* of these, for pages homed here, state I */
    unsigned long added;        /* by POOL_ADD, less POOL_DEL */

    /* The gate between hypercalls and operations that take rights away. */
    atomic_t hcalls;
    bool closed;

    bool spread;                /* a vCPU was placed in another slice */
    bool dead;                  /* written with both locks */

    /* The guest's time; mul 0: the host's.  Set before the guest runs. */
    struct xen_dsm_time time;

    /* The inner lock: who waits. */
    spinlock_t lock;
    struct dsm_vcpu *vcpu;      /* d->max_vcpus of them */
    uint64_t cookie;            /* of the last call that went away */
    struct dsm_owed_ports owed_ports[XEN_DSM_PORTS / DSM_PORTS_AT_ONCE];
    unsigned int nr_waiting;
    struct dsm_foreign foreign[DSM_FOREIGN];
    unsigned int nr_holes;      /* vCPUs that are told of one */
    unsigned int nr_foreign_holes;      /* notes that foreign[] has */
    struct page_info *ring_pg;
    struct xen_dsm_ring *ring;
    struct xen_dsm_ring_entry *entries;
    uint32_t prod;
    struct timer timer;
    unsigned int timeout_ms;    /* 0: nobody has to say that it lives */
    s_time_t deadline;
    bool paused;                /* by the timer, and nobody else's pause */
    bool ended;                 /* there is a SHUTDOWN to be told */
    bool shut;                  /* and it is not in the ring yet */
    /* Both locks of hvm/dsm_activity.c protect it. */
    bool active;                /* a vCPU that runs here is up */
    bool active_unsent;         /* the ring had no room to tell it */
    uint64_t sends;             /* that were done */

    struct xen_dsm_stats stats;
};

/* ---- hvm/dsm_ring.c ---- */

/* Put an entry into the ring; false if it is full.  dsm->lock is held. */
bool dsm_ring_put(struct dsm_domain *dsm,
                  const struct xen_dsm_ring_entry *entry);

/* Did the daemon read the entry of that number?  dsm->lock is held. */
bool dsm_ring_was_read(const struct dsm_domain *dsm, uint32_t entry);

/* Tell the daemon that it has something to read.  No lock is needed. */
void dsm_notify(struct domain *d);

/* The vCPU waits for no page any more, if it did.  dsm->lock is held. */
void dsm_end_wait(struct domain *d, unsigned int vcpu);

/* The same of one that waits, since its page has come. */
void dsm_wake(struct domain *d, unsigned int vcpu);

/* The current vCPU, whose page had come, is about to enter the guest. */
void dsm_woken(struct vcpu *v);

/* ---- hvm/dsm_foreign.c; dsm->lock is held, but for the last one ---- */

/*
 * A domain that is not this one has looked the frame up, and tries again.
 * Return: is there news in the ring?
 */
bool dsm_foreign_miss(struct dsm_domain *dsm, unsigned long gfn,
                      unsigned int want);

/* Something was done with the frame: who asked for it looks again. */
void dsm_foreign_answered(struct dsm_domain *dsm, unsigned long gfn);

/* The daemon has to be told of everything again. */
void dsm_foreign_again(struct dsm_domain *dsm);

/*
 * There is no memory in that frame, for who looks next.  Does nothing if nobody
 * asks for it, or if the daemon can't have meant that.
 */
void dsm_show_hole_to_others(struct dsm_domain *dsm, unsigned long gfn);

/*
 * Does another domain that looks the frame up now, which is in state I or U,
 * find no memory there?  Context: as a look-up; dsm->lock is not held.
 */
bool dsm_others_find_hole(struct dsm_domain *dsm, unsigned long gfn);

/* ---- hvm/dsm_hole.c ---- */

/*
 * A vCPU that waits for that frame is about to be woken, and finds no memory
 * there, for one access.  False if it does not wait for it, or if the daemon
 * can't have meant that.  dsm->lock is held.
 */
bool dsm_show_hole(struct dsm_domain *dsm, unsigned int vcpu,
                   unsigned long gfn);

/* Something else was done with the frame; or only the vCPU.  The same. */
void dsm_end_holes(struct domain *d, unsigned long gfn);
void dsm_end_hole(struct dsm_domain *dsm, unsigned int vcpu);

/*
 * Does who looks up that frame of d now, which is in state I or U, find no
 * memory there?  Context: as a look-up; dsm->lock is not held.
 */
bool dsm_finds_hole(const struct domain *d, unsigned long gfn);

/* Is the current vCPU about to make that access?  If not it is over. */
bool dsm_is_at_hole(const struct vcpu *v);

/* ---- hvm/dsm_vcpu.c ---- */

/* Does the vCPU run in another slice? */
static inline bool dsm_elsewhere(const struct dsm_domain *dsm,
                                 unsigned int vcpu)
{
    return ACCESS_ONCE(dsm->vcpu[vcpu].slice) != dsm->slice;
}

/*
 * Put into the ring what it had no room for; all: and a shutdown, though it was
 * there before.  True if there was something.  dsm->lock is held.
 */
bool dsm_flush_events(struct domain *d, bool all);

/* vCPUs that do not run here never do; when ENABLE is done. */
void dsm_pause_ghosts(struct domain *d);

/* The commands of these names; d is not the current domain. */
int dsm_place(struct domain *d, struct xen_dsm_place *place);
int dsm_send(struct domain *d, const struct xen_dsm_vcpu_event *event);
int dsm_get_tsc(struct domain *d, struct xen_dsm_tsc *tsc);
int dsm_set_tsc(struct domain *d, const struct xen_dsm_tsc *tsc);

/* ---- hvm/dsm_vcpu_info.c ---- */

/*
 * Unmap the vcpu_info of a vCPU that is paused.  Returns where the guest had
 * it, or 0.  No locks are held.
 */
uint64_t dsm_give_back(struct vcpu *v);

/* ---- hvm/dsm_activity.c ---- */

/* A SEND was done: what was sent is with its vCPU.  No locks are held. */
void dsm_sent(struct domain *d);

/* As dsm_flush_events(), which has to come first. */
bool dsm_flush_activity(struct domain *d, bool all);

/* ---- hvm/dsm_call.c ---- */

struct dsm_rule;

/*
 * The current vCPU makes a hypercall that concerns a vCPU or port of `slice`,
 * which is another one: have it done there.  rule->bytes of arg go with it.
 *
 * Returns -ERESTART if the vCPU was paused, and has to make it again; 1 if the
 * guest is to be told 0, and what has come back is in arg, up to rule->back; or
 * the error that it is to be told.
 */
int dsm_call_away(struct vcpu *v, const struct dsm_rule *rule,
                  unsigned int subject, unsigned int slice, void *arg);

/* As dsm_flush_events(), of calls that nobody has answered. */
bool dsm_flush_calls(struct domain *d, bool all);

/* The vCPU begins anew: it takes no result of what it has asked. */
void dsm_forget_calls(struct dsm_domain *dsm, unsigned int vcpu);

/* Does it wait for a call?  dsm->lock is held. */
bool dsm_is_calling(const struct dsm_domain *dsm, unsigned int vcpu);

/* The commands CALL and REPLY; d is not the current domain. */
int dsm_do_call(struct domain *d, struct xen_dsm_call *call);
int dsm_reply(struct domain *d, const struct xen_dsm_reply *reply);

/* ---- hvm/dsm_access.c ---- */

/* What the vCPU's instruction made by that call at that address, or NULL. */
const struct dsm_access *dsm_find_access(const struct vcpu *v,
                                         unsigned int call,
                                         unsigned long linear);

/*
 * That call is one of op on these bytes.  False if it was another one before:
 * then the instruction begins anew.
 */
bool dsm_access_fits(struct vcpu *v, unsigned int call, unsigned int op,
                     unsigned long linear, unsigned int bytes);

/*
 * The current vCPU's instruction makes this access to a page in state U, by
 * that call at that address.
 *
 * Returns -ERESTART: the vCPU was paused; -E2BIG: there are too many; -EIO: the
 * domain dies.
 */
int dsm_access_away(struct vcpu *v, const struct xen_dsm_access *access,
                    unsigned int call, unsigned long linear);

/* It has written up to 64 bytes to a page that is here. */
void dsm_access_here(struct vcpu *v, unsigned int call, unsigned long linear,
                     unsigned int bytes);

/* Has its instruction changed what must not be changed twice? */
bool dsm_has_changed(const struct vcpu *v);

/* The instruction is done, or begins anew. */
void dsm_end_accesses(struct vcpu *v);

/* As dsm_flush_events(), of accesses that nobody has answered. */
bool dsm_flush_accesses(struct domain *d, bool all);

/* Does the vCPU wait for an access?  dsm->lock is held. */
bool dsm_is_accessing(const struct dsm_domain *dsm, unsigned int vcpu);

/* Is it an access that a vCPU could make?  0 or -EINVAL. */
int dsm_check_access(const struct xen_dsm_access *access);

/* Make one that was checked, to a page that is mapped there. */
void dsm_make_access(void *page, struct xen_dsm_access *access);

/* The command ACCESS_DONE; d is not the current domain. */
int dsm_access_done(struct domain *d, const struct xen_dsm_access_done *done);

/* ---- hvm/dsm_port.c ---- */

/* The guest sends an event to a port of another slice. */
void dsm_forward_port(struct domain *d, unsigned int port);

/* As dsm_flush_events(), of these. */
bool dsm_flush_ports(struct dsm_domain *dsm);

/* The command SEND_PORTS; d is not the current domain. */
int dsm_send_ports(struct domain *d, const struct xen_dsm_ports *ports);

/* ---- hvm/dsm_time.c ---- */

/* The commands of these names; d is not the current domain. */
int dsm_get_time(struct domain *d, struct xen_dsm_time *time);
int dsm_set_time(struct domain *d, const struct xen_dsm_time *time);
int dsm_jump(struct domain *d, const struct xen_dsm_jump *jump);

/* Is the guest's TSC the host's, but for an offset? */
bool dsm_plain_tsc(const struct domain *d);

#endif /* __ASM_X86_DSM_DOMAIN_H__ */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
