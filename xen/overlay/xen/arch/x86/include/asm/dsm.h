/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: pages of a guest that are on several hosts.
 *
 * See arch/x86/mm/dsm.c for states, locks and contexts, and public/dsm.h for
 * what the control domain may ask for.
 *
 * Everything here costs a domain without DSM one test of a pointer, and
 * nothing at all if Xen was built without CONFIG_DSM.
 */
#ifndef __ASM_X86_DSM_H__
#define __ASM_X86_DSM_H__

#include <xen/mm-frame.h>
#include <xen/time.h>
#include <xen/types.h>

#include <asm/p2m.h>

struct cpu_user_regs;
struct domain;
struct npfec;
struct page_info;
struct vcpu;
struct vcpu_time_info;

/* What dsm_hcall_begin() says. */
enum dsm_hcall {
    DSM_HCALL_RUN,      /* go on; dsm_hcall_end() when it is done */
    DSM_HCALL_ANSWERED, /* RAX has the answer */
    DSM_HCALL_RETRY,    /* enter the guest at the same instruction */
};

#ifdef CONFIG_DSM

#include <xen/guest_access.h>
#include <public/dsm.h>

#define dsm_enabled(d) unlikely((d)->arch.dsm)

/* Who looks such a page up to write gets it by the slow path. */
#define p2m_is_dsm_shared(t) ((t) == p2m_dsm_shared)

/* The rights a walk of the guest's tables needs: it reads. */
#define dsm_walk_query(d) \
    (P2M_ALLOC | (dsm_enabled(d) ? 0 : P2M_UNSHARE))

/* The same for a copy, which may be one that writes. */
#define dsm_copy_query(d, reads) \
    (dsm_enabled(d) && (reads) ? P2M_ALLOC : P2M_UNSHARE)

/*
 * What a look-up of the host's p2m found, as the rest of Xen should see it.
 *
 * State I is a page that was paged out, and so is state S if the caller means
 * to write (P2M_UNSHARE).  Context: any that may look up.
 */
mfn_t dsm_p2m_fixup(struct p2m_domain *p2m, gfn_t gfn, mfn_t mfn,
                    p2m_type_t *t, p2m_query_t q, unsigned int *page_order);

/*
 * Ask the daemon for a page that a look-up reported as paged out.
 *
 * If the current vCPU belongs to d it is paused, and has to do again what it
 * did.  Context: the p2m lock may be held, dsm->lock must not be.
 */
void dsm_populate(struct domain *d, gfn_t gfn);

/*
 * The current vCPU's write to that address faulted.  Does its instruction
 * overwrite the whole page with zeros, in the guest's kernel?
 *
 * Context: the fault, no locks held.  May pause the vCPU, as dsm_populate().
 */
bool dsm_clears_page(paddr_t gpa, struct npfec npfec);
/* Then this, between the look-up that failed and dsm_populate(). */
void dsm_want_nodata(gfn_t gfn);

/* Is the frame in state U here?  Context: any that may look up. */
bool dsm_is_uncached(const struct domain *d, gfn_t gfn);

/*
 * A walk of the guest's tables has ended at that frame, whose page is paged
 * out.  In state U the walk has found it all the same: it is used where it is.
 */
#define dsm_walk_ends(d, gfn) (dsm_enabled(d) && dsm_is_uncached(d, gfn))

/* The current vCPU needs a page in state U here: as dsm_populate(). */
void dsm_populate_uncached(gfn_t gfn);
/*
 * The look-up of a nested page fault found the page missing, and it is not in
 * state U, or not any more: dsm_populate(), which follows, is to know.
 */
void dsm_want_cached(gfn_t gfn);

/*
 * The current vCPU faulted at that address.  If the page is in state U, have
 * its instruction emulated, and what it does with the page done where that is;
 * if it can't be, the page is asked for.  Returns false if the page is in
 * another state: then it is to be asked for.
 *
 * Context: the fault, no locks held.  May pause the vCPU.
 */
bool dsm_use_elsewhere(paddr_t gpa, struct npfec npfec);

/*
 * The current vCPU is about to go on.  Returns false if its instruction waits
 * for such an access still: it must not enter the guest.
 */
bool dsm_resume(struct vcpu *v);

/*
 * The current vCPU is about to enter the guest.  Has its instruction begun, and
 * not ended, or is it told of no memory next, or does it wait for a page?  Then
 * it takes no interrupt.
 */
bool dsm_in_instruction(const struct vcpu *v);

/*
 * The vCPU, which does not run, gets other registers: its instruction ends.  If
 * that is an INIT, so do its calls.
 */
void dsm_cancel_instruction(struct vcpu *v);

/* May the accessed and dirty bits be set in a table which is mapped here? */
bool dsm_ad_ok(struct domain *d, mfn_t mfn);
/* Was that refused since the last call on this CPU? */
bool dsm_ad_missed(void);

/*
 * May 2^order frames be mapped or unmapped, from the viewpoint of DSM?
 *
 * Returns 0, or -EBUSY if one of them is in state S or I, or homed on another
 * slice.  The p2m lock is held, and the answer is true for as long as it is.
 */
int dsm_may_change(struct p2m_domain *p2m, gfn_t gfn, unsigned int order);

/*
 * The same, before memory is taken for them.  The p2m lock is free.
 *
 * Returns 1 if the current domain means frames of its own that are homed on
 * another slice: they are populated there.
 */
int dsm_may_populate(struct domain *d, gfn_t gfn, unsigned int order);

/*
 * The current guest wants to free 2^order frames: have them come home first.
 *
 * Returns 0 if all are in state M or holes, -ERESTART if the vCPU was paused
 * and has to repeat the hypercall, -EBUSY if d is not the current domain, and 1
 * if all are homed on another slice, which has the memory to be freed.
 */
int dsm_recall(struct domain *d, gfn_t gfn, unsigned int order);

/*
 * A frame of d's is mapped by its grant once more, and `write` says how.
 *
 * Returns 0 with a reference in *page, which keeps page operations away, or
 * with NULL there if it is not memory of d's; or -EAGAIN: it was asked for.
 * Somebody else's reference keeps the frame meanwhile.
 */
int dsm_map_again(struct domain *d, mfn_t mfn, bool write,
                  struct page_info **page);

/* Around each hypercall of a guest with DSM. */
enum dsm_hcall dsm_hcall_begin(struct cpu_user_regs *regs, unsigned int mode);
void dsm_hcall_end(void);

/* The ring as a resource. */
unsigned int dsm_ring_frames(const struct domain *d);
int dsm_acquire_ring(struct domain *d, unsigned int frame,
                     unsigned int nr_frames, xen_pfn_t mfn_list[]);

/*
 * The guest sends what an interrupt command register says (INIT, SIPI, NMI or
 * a vector) to v.  Returns true if nothing else is to be done: v runs in
 * another slice, and the daemon has it now; or v does not hear it.
 *
 * Context: none of the domain's locks is held.
 */
bool dsm_forward_icr(struct vcpu *v, uint32_t icr);

/*
 * A vCPU has gone down, perhaps the last one that runs here.  Returns true if
 * vCPUs run in other slices, too: then the daemon ends the domain, not Xen.
 *
 * Context: none of the domain's locks is held.
 */
bool dsm_vcpu_down(struct domain *d);

/* The domain has shut down.  Its shutdown_lock is held. */
void dsm_shutdown(struct domain *d);

/*
 * The ports that this slice allocates: from the result on, to *last at most,
 * which is what the domain may have.
 */
unsigned int dsm_first_port(const struct domain *d, unsigned int *last);

/*
 * What the guest is told about its time, if that is not the host's.  True:
 * *u is complete but for its version.
 */
bool dsm_time_info(const struct domain *d, struct vcpu_time_info *u);

/* When it is that time of the guest, in the host's time, as of now. */
s_time_t dsm_host_time(const struct domain *d, s_time_t guest);

int dsm_memop(XEN_GUEST_HANDLE_PARAM(xen_dsm_op_t) arg);

/* The domain dies: no operation afterwards.  Idempotent. */
void dsm_relinquish(struct domain *d);
/* The last reference to the domain is gone. */
void dsm_destroy(struct domain *d);

/* ---- Between mm/dsm.c and hvm/dsm_hypercall.c ---- */

/* Hold off INVAL and DOWNGRADE; false if one is going on. */
bool dsm_gate_enter(struct vcpu *v);
void dsm_gate_leave(struct vcpu *v);

#else /* !CONFIG_DSM */

#define dsm_enabled(d) ((void)(d), false)
#define p2m_is_dsm_shared(t) ((void)(t), false)
#define dsm_walk_query(d) ((void)(d), P2M_ALLOC | P2M_UNSHARE)
#define dsm_copy_query(d, reads) ((void)(d), (void)(reads), P2M_UNSHARE)

static inline mfn_t dsm_p2m_fixup(struct p2m_domain *p2m, gfn_t gfn, mfn_t mfn,
                                  p2m_type_t *t, p2m_query_t q,
                                  unsigned int *page_order)
{
    return mfn;
}

static inline void dsm_populate(struct domain *d, gfn_t gfn) {}

#define dsm_clears_page(gpa, npfec) ((void)(gpa), (void)(npfec), false)

static inline void dsm_want_nodata(gfn_t gfn) {}

#define dsm_walk_ends(d, gfn) ((void)(d), (void)(gfn), false)

#define dsm_use_elsewhere(gpa, npfec) ((void)(gpa), (void)(npfec), false)

static inline bool dsm_resume(struct vcpu *v)
{
    return true;
}

static inline bool dsm_in_instruction(const struct vcpu *v)
{
    return false;
}

static inline void dsm_cancel_instruction(struct vcpu *v) {}

static inline bool dsm_ad_ok(struct domain *d, mfn_t mfn)
{
    return true;
}

static inline bool dsm_ad_missed(void)
{
    return false;
}

static inline int dsm_may_change(struct p2m_domain *p2m, gfn_t gfn,
                                 unsigned int order)
{
    return 0;
}

static inline enum dsm_hcall dsm_hcall_begin(struct cpu_user_regs *regs,
                                             unsigned int mode)
{
    return DSM_HCALL_RUN;
}

static inline void dsm_hcall_end(void) {}

static inline bool dsm_forward_icr(struct vcpu *v, uint32_t icr)
{
    return false;
}

static inline bool dsm_vcpu_down(struct domain *d)
{
    return false;
}

static inline void dsm_shutdown(struct domain *d) {}

static inline bool dsm_time_info(const struct domain *d,
                                 struct vcpu_time_info *u)
{
    return false;
}

static inline void dsm_relinquish(struct domain *d) {}
static inline void dsm_destroy(struct domain *d) {}

#endif /* CONFIG_DSM */

#endif /* __ASM_X86_DSM_H__ */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
