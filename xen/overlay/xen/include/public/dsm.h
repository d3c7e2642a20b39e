/* SPDX-License-Identifier: MIT */
/*
 * dsm.h
 *
 * Distributed shared memory: the pages of one guest, spread over several
 * hosts.  Each host runs a slice of the guest (a domain), and a daemon in its
 * control domain moves pages between the slices.  Xen does what only Xen can:
 * it takes a page away from the vCPUs, gives one, makes one read-only, and
 * tells the daemon which page a vCPU waits for.
 *
 * A guest frame in one of the ranges that were named at ENABLE has a state:
 *
 *   M     this slice may read and write it, no other has it
 *   S     this slice may read it, and others may, too
 *   I     this slice does not have it
 *   U     as I, and the page does not come: what a vCPU does with it is done
 *         where the page is, one access at a time
 *   hole  there is no memory
 *
 * Each frame has a home, which is one of the slices: the host of that slice
 * owns the memory for it.  A frame is homed here unless AWAY said that it is
 * homed on another slice.
 *
 * Each vCPU runs in one slice.  The others have it, too, as a ghost: it never
 * runs there, and what is sent to it goes to the daemon, for the slice where
 * it runs.
 *
 * This interface is for the control domain only, not for a device model of
 * the domain, and not stable: the version is compared for equality.
 */

#ifndef __XEN_PUBLIC_DSM_H__
#define __XEN_PUBLIC_DSM_H__

#include "xen.h"
#include "event_channel.h"

#if defined(__XEN__) || defined(__XEN_TOOLS__)

#define XEN_DSM_INTERFACE_VERSION 0x0000000a

/* XENMEM_dsm_op, a sub-operation of memory_op, takes a struct xen_dsm_op. */
#define XENMEM_dsm_op 29

/* XENMEM_acquire_resource: the ring, id 0.  See struct xen_dsm_ring. */
#define XENMEM_resource_dsm_ring 3

/* ---- The ring: what Xen tells the daemon ---- */

/*
 * PAGE_MISS: somebody needs a page, or a page in a more powerful state.
 *
 * Answered by a page operation on that frame which wakes (see below), or by
 * WAKE if the frame is in that state already.
 */
#define XEN_DSM_PAGE_MISS       1

/*
 * VCPU_EVENT: something was sent to a vCPU that runs in another slice.
 *
 * Answered by nothing.  The daemon has it done there, by XEN_DSM_SEND, in the
 * order of the entries.  What is sent to a vCPU while the ring is full is put
 * together in one entry, by the rules of struct xen_dsm_vcpu_event.
 */
#define XEN_DSM_VCPU_EVENT      2

/*
 * SHUTDOWN: the domain has shut down, with SHUTDOWN_* in want; so must the
 * other slices.  Said once, and only if vCPUs run in other slices, too.
 */
#define XEN_DSM_SHUTDOWN        3

/*
 * HCALL: a vCPU makes a hypercall about a vCPU that runs in another slice, or
 * about a port of one, and waits.
 *
 * Answered by REPLY, with what CALL has said in that slice.  An entry may come
 * twice, after FLUSH with ALL: with the same cookie.
 */
#define XEN_DSM_HCALL           4

/*
 * PORT_EVENT: the guest sent events to ports of another slice.
 *
 * Answered by nothing.  The daemon has them sent there, by XEN_DSM_SEND_PORTS.
 * What is sent while the ring is full is put together: an event is a bit.
 */
#define XEN_DSM_PORT_EVENT      5

/*
 * ACTIVITY: none of the vCPUs that run in this slice is up (want is 0), or one
 * is (1), after as many SENDs as gfn says.
 *
 * What ends a guest on one host, all vCPUs halted with interrupts off, no slice
 * can see.  The daemon ends it when no slice has a vCPU up and nothing that was
 * sent to one is on its way: it has slice 0 shut down with SHUTDOWN_poweroff.
 *
 * A slice in which none is up stays so until the next SEND, and what its vCPUs
 * have sent is in the ring before this entry.  So it holds for as long as gfn
 * is the number of SENDs that were begun in this slice since ENABLE; those that
 * fail do not count.  A SEND that leaves none up is followed by another entry,
 * and so is one that starts the first.  Until the first entry one is up in
 * slice 0, and none in the others.  FLUSH with ALL tells it anew, whatever it
 * is.
 */
#define XEN_DSM_ACTIVITY        6

/*
 * ACCESS: a vCPU means a page in state U, and waits.
 *
 * Answered by ACCESS_DONE, with what DO_ACCESS has said in the slice that has
 * the page in state M.  An entry may come twice, after FLUSH with ALL: with the
 * same cookie.
 */
#define XEN_DSM_ACCESS          7

/* What is needed. */
#define XEN_DSM_WANT_S          1       /* to read: S or M */
#define XEN_DSM_WANT_M          2       /* to write: M */
/*
 * M; the bytes do not matter: the guest frees the page, or its kernel is about
 * to overwrite all of it.  The daemon may answer by ZERO_M, as long as this is
 * what somebody waits for: QUERY says whether that is so.  Later the vCPU may
 * have gone on, and others may have written to the page since.
 */
#define XEN_DSM_WANT_M_NODATA   3

/* No vCPU of the guest waits: a domain maps the page, and will try again. */
#define XEN_DSM_MISS_FOREIGN    (1u << 0)
/* A hypercall needs the page: for its arguments, or to free it. */
#define XEN_DSM_MISS_BY_XEN     (1u << 1)
/*
 * Who asks has found the frame in state U, and what is to be done with it can't
 * be done elsewhere: a table of the guest, code, the stack of an interrupt, or
 * an instruction that Xen does not emulate, which its log says.
 */
#define XEN_DSM_MISS_OF_U       (1u << 2)

/*
 *           PAGE_MISS                VCPU_EVENT       SHUTDOWN    HCALL
 * want      XEN_DSM_WANT_*           sipi             SHUTDOWN_*  slice
 * flags     XEN_DSM_MISS_*           XEN_DSM_EVENT_*
 * vcpu      who waits; 0 if FOREIGN  to whom                      who waits
 * gfn       the frame                                             cookie
 * rip       of it; 0 if FOREIGN                                   op, cmd
 * vectors                            vectors                      vcpu, arg
 *
 *           PORT_EVENT               ACTIVITY         ACCESS
 * want      slice                    1: one is up     XEN_DSM_ACCESS_*
 * flags                                               offset, width
 * vcpu                                                who waits
 * gfn       first                    SENDs            the frame
 * rip                                                 of it
 * vectors   ports                                     cookie, old, value
 *
 * All others are zero.  VCPU_EVENT: see struct xen_dsm_vcpu_event.  HCALL: see
 * struct xen_dsm_call; slice is where it is to be done, op is the lower half of
 * rip, cmd the upper one, and vcpu is vectors[0].  PORT_EVENT: see struct
 * xen_dsm_ports; slice is whose ports they are.  ACCESS: see struct
 * xen_dsm_access; offset is bits 0 to 11 of flags, and the width is 1 << the
 * number in bits 12 and 13.
 */
struct xen_dsm_ring_entry {
    uint8_t type;               /* XEN_DSM_PAGE_MISS, ... */
    uint8_t want;
    uint16_t flags;
    uint32_t vcpu;
    uint64_t gfn;
    uint64_t rip;
    uint64_t when_ns;           /* Xen's system time when it was put here */
    uint64_t vectors[4];
};

/*
 * The first page of the resource is this header, the others are entries.
 *
 * Xen writes entry prod % nr and then increments prod; the daemon increments
 * cons behind what it has read.  Both count from 0 and wrap at 2^32; nr is a
 * power of two.  Xen trusts nothing here: a cons that makes no sense is a full
 * ring.  When there is no room Xen keeps the entry and sets full; the daemon
 * clears full, drains the ring, and asks for the rest by XEN_DSM_FLUSH.
 */
struct xen_dsm_ring {
    uint32_t prod;
    uint32_t nr;
    uint32_t full;
    uint32_t pad[13];
    uint32_t cons;              /* on a cache line of its own */
};

/* ---- Page operations ---- */

/*
 * op            from  to     data            frees or needs a pooled frame
 * INVAL         M, S  I      out, optional   frees
 * DOWNGRADE     M     S      out, optional
 * READ          S     S      out
 * INSTALL_S     I, U  S      in              needs
 * INSTALL_M     I, U  M      in              needs
 * ZERO_M        I, U  M                      needs
 * UPGRADE       S     M
 * DROP          I, U  hole                   if homed here: gives one back
 * UNCACHE       I     U
 * CACHE         U     I
 * HOLE          I, U  same
 * WAKE          any   same
 * QUERY         any   same
 *
 * INSTALL_*, ZERO_M, UPGRADE, DROP, UNCACHE, CACHE and WAKE wake everybody who
 * waits for that frame; who still lacks what it needs asks again.  They do not
 * wake who waits for an ACCESS.
 *
 * HOLE is for frames that are homed on another slice, -EINVAL otherwise: their
 * home has no memory there, it said after the vCPU in `wanted` had asked.  If
 * that vCPU waits for the frame it goes on, and finds no memory, for the access
 * that it waits with and for no other, whatever its instruction needs besides.
 * But not if its PAGE_MISS was not read yet (cons): then it has asked since.
 * It takes no interrupt before that access is made.  An operation that wakes
 * everybody ends what was not found yet: then the vCPU asks again.  With
 * XEN_DSM_HOLE_FOREIGN it is other domains that have asked: whoever looks next,
 * within 50 ms, finds no memory there, and so do others for a millisecond from
 * then on, but not for longer than these 50 ms.  Each frame of the 64 that Xen
 * keeps in mind for other domains has such a time of its own.  It does nothing
 * if the frame is none of these, or if none of those PAGE_MISSes with FOREIGN
 * that want as much as the last one was read yet: then they ask again.
 *
 * UNCACHE is for frames that are homed on another slice, -EINVAL otherwise.  A
 * domain that maps a frame in state U finds no memory there, and a hypercall
 * whose argument is in one fails with -EFAULT.
 *
 * QUERY says in `wanted` what vCPUs of the guest wait for there: the largest of
 * their XEN_DSM_WANT_*, 0 if none waits.
 *
 * INVAL and DOWNGRADE copy the page after no CPU can write to it any more.
 *
 * rc of an operation:
 *   0          done
 *   -EEXIST    the frame is in that state already, or, INSTALL_* and ZERO_M,
 *              not in state I: nothing was changed
 *   -EINVAL    the operation is not possible from the state the frame is in,
 *              an unknown op, unknown flags, or a buffer is missing
 *   -ENOENT    the frame is a hole
 *   -ERANGE    outside all ranges
 *   -EBUSY     somebody else uses the page (a grant, a foreign mapping, a
 *              copy that is going on): try again, or never
 *   -EPERM     not plain memory of the guest: shared info, grant table, ...
 *   -ENOSPC    no pooled frame is left: never for a frame that is homed
 *              here, for others see POOL_ADD
 *   -EFAULT    the buffer cannot be read or written: nothing was changed
 *   -ENOMEM    no memory for a page table or for notes: nothing was changed
 */
#define XEN_DSM_INVAL           1
#define XEN_DSM_DOWNGRADE       2
#define XEN_DSM_READ            3
#define XEN_DSM_INSTALL_S       4
#define XEN_DSM_INSTALL_M       5
#define XEN_DSM_ZERO_M          6
#define XEN_DSM_UPGRADE         7
#define XEN_DSM_DROP            8
#define XEN_DSM_WAKE            9
#define XEN_DSM_QUERY           10
#define XEN_DSM_UNCACHE         11
#define XEN_DSM_CACHE           12
#define XEN_DSM_HOLE            13

#define XEN_DSM_HOLE_FOREIGN    (~0u)

#define XEN_DSM_STATE_HOLE      0
#define XEN_DSM_STATE_I         1
#define XEN_DSM_STATE_S         2
#define XEN_DSM_STATE_M         3
#define XEN_DSM_STATE_OTHER     4       /* mapped, and not by DSM */
#define XEN_DSM_STATE_U         5

struct xen_dsm_page_op {
    /* IN */
    uint64_aligned_t gfn;
    XEN_GUEST_HANDLE_64(uint8) buf;     /* 4096 bytes, or NULL */
    uint16_t op;                        /* XEN_DSM_INVAL, ... */
    uint16_t flags;                     /* zero */
    /* OUT */
    int32_t rc;
    uint32_t state;                     /* XEN_DSM_STATE_*, afterwards */
    uint32_t wanted;                    /* IN: see HOLE; or zero.  See QUERY. */
};
typedef struct xen_dsm_page_op xen_dsm_page_op_t;
DEFINE_XEN_GUEST_HANDLE(xen_dsm_page_op_t);

/* ---- Commands ---- */

/*
 * ENABLE: once, before the domain is unpaused for the first time.
 *
 * Everything that is mapped in the ranges is in state M, everything else is a
 * hole.  Ranges are sorted and do not overlap.
 *
 * Each slice is a domain, with the ranges of the whole guest, and as many vCPUs
 * as the guest has.  Slice 0 boots the guest, and all vCPUs run there unless
 * PLACE says otherwise.
 *
 * -EOPNOTSUPP with u.enable.refused says what is in the way.  -EEXIST: it was
 * done before, and u.enable.port is the event channel, for a daemon that starts
 * again.
 */
#define XEN_DSM_ENABLE          1

#define XEN_DSM_MAX_RANGES      16
#define XEN_DSM_MAX_FRAMES      (1u << 28)      /* 1 TiB in all ranges */
#define XEN_DSM_MAX_SLICES      16

/*
 * Event channel ports, of all slices.  Each slice allocates from a part of its
 * own: all parts have the same size, the largest power of two that is enough
 * for nr_slices of them, and slice 0 has the first.
 */
#define XEN_DSM_PORTS           4096

#define XEN_DSM_REFUSED_NOT_HAP         1  /* no hardware assisted paging */
#define XEN_DSM_REFUSED_RUNNING         2  /* was unpaused already */
#define XEN_DSM_REFUSED_NO_VCPU         3  /* create the vCPUs first */
#define XEN_DSM_REFUSED_POD             4  /* populate on demand */
#define XEN_DSM_REFUSED_PASSTHROUGH     5  /* devices, or an IOMMU */
#define XEN_DSM_REFUSED_LOG_DIRTY       6  /* log-dirty mode */
#define XEN_DSM_REFUSED_ALTP2M          7
#define XEN_DSM_REFUSED_NESTED          8  /* nested virtualisation */
#define XEN_DSM_REFUSED_PAGING          9  /* a pager is connected */
#define XEN_DSM_REFUSED_SHARING         10 /* memory sharing, or a fork */
#define XEN_DSM_REFUSED_VIRIDIAN        11 /* enlightenments with own pages */
#define XEN_DSM_REFUSED_HARDWARE_DOMAIN 12
#define XEN_DSM_REFUSED_SLICES          13 /* 0, too many, or no such slice */
#define XEN_DSM_REFUSED_RESTORED        14 /* was migrated or restored */
#define XEN_DSM_REFUSED_FIRMWARE        15 /* HVM: firmware of 32 bits; PVH */
#define XEN_DSM_REFUSED_MONITOR         16 /* memory access is monitored */

struct xen_dsm_range {
    uint64_aligned_t first;             /* frame number */
    uint64_aligned_t nr;                /* frames, not 0 */
};
typedef struct xen_dsm_range xen_dsm_range_t;
DEFINE_XEN_GUEST_HANDLE(xen_dsm_range_t);

struct xen_dsm_enable {
    /* IN */
    uint32_t nr_ranges;
    uint16_t slice;                     /* 0..nr_slices - 1 */
    uint16_t nr_slices;                 /* 1..XEN_DSM_MAX_SLICES */
    XEN_GUEST_HANDLE_64(xen_dsm_range_t) ranges;
    /* OUT */
    evtchn_port_t port;                 /* unbound, for the caller's domain */
    uint32_t refused;                   /* XEN_DSM_REFUSED_* */
};

/*
 * PAGE: nr operations, in their order.
 *
 * Each one has its own result; the command fails only if it cannot go on.
 * done is 0 on input; it is the number of operations that were tried.
 */
#define XEN_DSM_PAGE            2

#define XEN_DSM_MAX_PAGE_OPS    1024

struct xen_dsm_page {
    uint32_t nr;
    uint32_t done;
    XEN_GUEST_HANDLE_64(xen_dsm_page_op_t) ops;
};

/*
 * FLUSH: put into the ring what it had no room for.
 *
 * ALL, for a daemon that does not know what another one has read: who waits
 * now, ACTIVITY, and a shutdown, are told again whether they were read or not.
 * Foreign misses are, when those who need the page try again.  A VCPU_EVENT
 * that was read is not kept.
 *
 *   -EINVAL    unknown flags, or not zero what has to be
 */
#define XEN_DSM_FLUSH           3

#define XEN_DSM_FLUSH_ALL       (1u << 0)

struct xen_dsm_flush {
    uint32_t flags;                     /* XEN_DSM_FLUSH_* */
    uint32_t pad;                       /* zero */
};

/*
 * KEEPALIVE: the daemon lives, and will say so again within timeout_ms, 0 for
 * never.  If it does not, the domain is paused until it does.  That pause is
 * not the control domain's: who unpauses the domain does not end it, and this
 * command ends no other.
 */
#define XEN_DSM_KEEPALIVE       4

struct xen_dsm_keepalive {
    uint32_t timeout_ms;                /* at most 1 h */
};

/*
 * STATS: counters since ENABLE.  None goes down but those that say "now", and
 * `added`.  Times are in nanoseconds of Xen's system time.
 *
 * A wait for a page, as Xen sees it, is three times in a row:
 *
 *   trap   from when the look-up of a nested page fault found that the page
 *          is not here, until the vCPU is stopped and the miss is in the ring
 *   wait   from there until a page operation wakes
 *   wake   from there until the vCPU is about to enter the guest.  Time for
 *          which it is paused meanwhile is not counted
 *
 * A wait that did not begin with a nested page fault (a hypercall, a table of
 * the guest) has no trap.  A vCPU that something else keeps from running when
 * its page comes (a pause, an INIT), or that PLACE lets go, has no wake.
 */
#define XEN_DSM_STATS           5

#define XEN_DSM_STATS_BUCKETS   160

struct xen_dsm_stats {
    /* OUT */
    uint64_aligned_t waits;             /* a vCPU was stopped by a miss */
    uint64_aligned_t waits_by_xen;      /* of these: in a hypercall */
    uint64_aligned_t foreign;           /* misses of other domains */
    uint64_aligned_t foreign_lost;      /* of these: no room, caller retries */
    uint64_aligned_t ring_full;         /* misses that waited for FLUSH */
    uint64_aligned_t busy;              /* -EBUSY of page operations */
    uint64_aligned_t invals;
    uint64_aligned_t downgrades;
    uint64_aligned_t installs_s;
    uint64_aligned_t installs_m;        /* with ZERO_M */
    uint64_aligned_t upgrades;
    uint64_aligned_t drops;
    uint64_aligned_t recalls;           /* misses by a guest that frees */
    uint64_aligned_t uncovered;         /* failed copies of hypercalls */
    uint64_aligned_t paused;            /* now, for want of a KEEPALIVE: 1 */
    uint64_aligned_t pooled;            /* frames in the pool now */
    uint64_aligned_t reserved;          /* of these: for pages homed here */
    uint64_aligned_t added;             /* by POOL_ADD, less POOL_DEL */
    uint64_aligned_t wait_ns;           /* sum, from stop to wake */
    uint64_aligned_t wait_max_ns;
    /* Waits of [4 + i % 4, 5 + i % 4) * 2^(i / 4 - 2) ns. */
    uint64_aligned_t wait_hist[XEN_DSM_STATS_BUCKETS];
    uint64_aligned_t merges;            /* pages of 2 MiB that were made */
    uint64_aligned_t accesses;          /* ACCESS that vCPUs waited for */
    uint64_aligned_t accesses_done;     /* by DO_ACCESS */
    uint64_aligned_t traps;             /* waits that have a trap */
    uint64_aligned_t trap_ns;           /* sum */
    uint64_aligned_t wakes;             /* waits that have a wake */
    uint64_aligned_t wake_ns;           /* sum */
};
typedef struct xen_dsm_stats xen_dsm_stats_t;
DEFINE_XEN_GUEST_HANDLE(xen_dsm_stats_t);

/*
 * POOL_ADD: nr more frames, for pages that are homed on another slice.
 * POOL_DEL: nr of them, which are not in use, go back to the host.
 *
 * INVAL of a page leaves its frame in the pool.  If the page is homed here the
 * frame stays reserved for it, until it comes back or is dropped.  All other
 * frames of the pool are there for pages that are homed elsewhere: as many as
 * were added can be here at a time.
 *
 * Frames of the pool count as memory of the domain, and its limit holds.
 *
 *   -EINVAL    the domain has one slice only
 *   -ENOMEM    POOL_ADD: the host has no more, or the domain may not
 *   -EBUSY     POOL_DEL: the others are in use; have pages invalidated first
 *
 * done is 0 on input; it is the number of frames that were added or given
 * back, with an error, too.
 */
#define XEN_DSM_POOL_ADD        6
#define XEN_DSM_POOL_DEL        7

struct xen_dsm_pool {
    uint64_aligned_t nr;
    uint64_aligned_t done;
};

/*
 * AWAY: nr frames from first on are homed on another slice now, and are in
 * state I here.  They were holes.  For slice 0 this has to be done before the
 * guest is told that it has memory there: what it populates in holes is its
 * own.  When it populates frames that are homed elsewhere it gets them without
 * memory of this host, and when it frees them nothing happens here.
 *
 * DROP_RANGE: the opposite.  Frames in state I become holes, holes stay, and
 * all are homed here again.
 *
 *   -EINVAL    AWAY: the domain has one slice only
 *   -ERANGE    they are not all in one range of ENABLE
 *   -EEXIST    AWAY: the frame first + done is no hole
 *   -ENOMEM    AWAY: the host has none for notes about frame first + done
 *   -EBUSY     DROP_RANGE: the frame first + done is here: invalidate it first
 *
 * done is 0 on input; it is the number of frames that are finished, with an
 * error, too.
 */
#define XEN_DSM_AWAY            8
#define XEN_DSM_DROP_RANGE      9

struct xen_dsm_frames {
    uint64_aligned_t first;
    uint64_aligned_t nr;
    uint64_aligned_t done;
};

/*
 * MERGE: 512 frames from first on, a multiple of 512, all homed here and in
 * state M with memory in single pages, get one page of 2 MiB with the same
 * bytes.  Nobody sees anything of it: the domain is paused meanwhile, for as
 * long as it takes to copy 2 MiB.  nr is 512, done is 0.
 *
 *   -EINVAL      another nr, done or first
 *   -ERANGE      they are not all in one range of ENABLE
 *   -EXDEV       one is homed on another slice
 *   -ENODATA     one is not in state M
 *   -EEXIST      it is one page already
 *   -EPERM       one is not plain memory of the guest
 *   -EBUSY       somebody else uses one: try again, or never
 *   -ENOMEM      the node that has most of them has no 2 MiB in one piece
 *   -EOPNOTSUPP  the processor has no such pages
 *
 * With an error nothing was changed.
 */
#define XEN_DSM_MERGE           20

#define XEN_DSM_MERGE_FRAMES    512

/*
 * PLACE: a vCPU runs in this slice from now on.  Said to every slice of the
 * guest, to that where it ran first.
 *
 * No state goes with it: the guest starts it, by INIT and SIPI.  But the page
 * of its vcpu_info, which no operation takes away, is an ordinary page again in
 * the slice where it ran, and was at info (frame << 12); 0 if it had none.  A
 * guest registers it once only, so the daemon has that done where the vCPU
 * comes to, by CALL, before it starts.  A page that the vCPU waited for it does
 * not wait for any more.
 *
 *   -EINVAL    the domain has one slice only, or no such slice; vCPU 0, which
 *              stays in slice 0
 *   -ENOENT    no such vCPU
 *   -EBUSY     the control domain has not paused the domain, the vCPU is up
 *              though the domain has not shut down, INIT, SIPI or anything
 *              else for a vCPU is on its way, or one waits for a hypercall or
 *              an access
 *   -EOPNOTSUPP  the page of its vcpu_info, here, has something else in it:
 *              the kernel is one for one host
 */
#define XEN_DSM_PLACE           10

struct xen_dsm_place {
    /* IN */
    uint32_t vcpu;
    uint16_t slice;
    uint16_t pad;                       /* zero */
    /* OUT */
    uint64_aligned_t info;              /* IN: zero */
};

/*
 * SEND: what another slice's vCPU sent to one that runs here.
 *
 * It is done in this order: INIT, SIPI, NMI, vectors.  An INIT makes void what
 * was sent before it.  So several of these can become one, as long as what
 * was sent before an INIT is dropped.  ACTIVITY has the number of those that
 * were done.
 *
 *   -EINVAL    unknown flags, a vector below 16, or not zero what has to be
 *   -ENOENT    no such vCPU
 *   -EXDEV     the vCPU does not run in this slice
 */
#define XEN_DSM_SEND            11

#define XEN_DSM_EVENT_INIT      (1u << 0)
#define XEN_DSM_EVENT_SIPI      (1u << 1)
#define XEN_DSM_EVENT_NMI       (1u << 2)

struct xen_dsm_vcpu_event {
    uint32_t vcpu;
    uint16_t flags;                     /* XEN_DSM_EVENT_* */
    uint8_t sipi;                       /* with SIPI: its vector; or 0 */
    uint8_t pad;                        /* zero */
    uint64_aligned_t vectors[4];        /* bit n % 64 of n / 64: vector n */
};
typedef struct xen_dsm_vcpu_event xen_dsm_vcpu_event_t;

/*
 * GET_TSC, SET_TSC: what the guest's vCPUs read as TSC is the host's plus an
 * offset.  A vCPU gets that of its slice at each SIPI.
 *
 * The daemon has it from slice 0, adds by how much this host's TSC is behind
 * that of slice 0, and sets it before the first vCPU starts here.
 *
 *   -EOPNOTSUPP  RDTSC is emulated, or scaled: then the TSC is not the host's
 *   -EINVAL      SET_TSC: in slice 0
 *   -EBUSY       SET_TSC: a vCPU has been started here
 */
#define XEN_DSM_GET_TSC         12
#define XEN_DSM_SET_TSC         13

struct xen_dsm_tsc {
    uint64_aligned_t offset;            /* modulo 2^64 */
};

/*
 * CALL: a hypercall that another slice's vCPU makes about one which runs here,
 * or about a port of this slice.  rc is what the hypercall returns, and arg
 * the structure as it leaves it.
 *
 *   op                             cmd                             arg, bytes
 *   __HYPERVISOR_vcpu_op           VCPUOP_register_vcpu_info       16
 *   __HYPERVISOR_hvm_op            HVMOP_set_evtchn_upcall_vector  8
 *   __HYPERVISOR_event_channel_op  EVTCHNOP_bind_ipi               4, 8 then
 *                                  EVTCHNOP_bind_virq              8, 12 then
 *                                  EVTCHNOP_unmask                 4
 *                                  EVTCHNOP_close                  4
 *                                  EVTCHNOP_status                 8, 24 then
 *
 * The last three are about a port, and vcpu is 0.  A port that is closed is
 * masked, too: who closes it has masked it in its own slice.  status: of
 * DOMID_SELF.
 *
 * A vcpu_info has to be at the beginning of a page that has nothing else in it.
 *
 *   -EOPNOTSUPP  no other call is done for another slice
 *   -EINVAL      arg is about another vCPU, or not zero what has to be
 *   -ENOENT      no such vCPU
 *   -EXDEV       the vCPU does not run in this slice, or the port is not in it
 *   -ESRCH       the domain dies
 *   -EAGAIN      a page is not here, and a foreign miss of it may be in the
 *                ring: try again, after that was answered
 */
#define XEN_DSM_CALL            14

struct xen_dsm_call {
    /* IN */
    uint32_t op;                        /* __HYPERVISOR_* */
    uint32_t cmd;
    uint32_t vcpu;                      /* that it is about, or 0 */
    /* OUT */
    int32_t rc;                         /* IN: zero */
    /* IN, OUT */
    uint64_aligned_t arg[3];            /* the structure; zeros behind it */
};
typedef struct xen_dsm_call xen_dsm_call_t;

/*
 * REPLY: the result of a hypercall that was done in another slice, to who waits
 * for it.
 *
 *   -EINVAL    rc is no result of such a call, or the port in arg is not one
 *              of that slice
 *   -ENOENT    no such vCPU
 *   -ESRCH     the vCPU does not wait for a call with that cookie
 */
#define XEN_DSM_REPLY           15

struct xen_dsm_reply {
    uint32_t vcpu;                      /* who waits */
    int32_t rc;                         /* 0, or -1 to -4095; not -ERESTART */
    uint64_aligned_t cookie;
    uint64_aligned_t arg[3];            /* what CALL has left there */
};
typedef struct xen_dsm_reply xen_dsm_reply_t;

/*
 * SEND_PORTS: events that another slice's vCPUs sent to ports of this one.  As
 * with the hypercall, one to a port that nobody has bound is lost; here nobody
 * is told.
 *
 *   -EINVAL    first is not a multiple of 256, or not zero what has to be
 *   -EXDEV     the ports are not in this slice
 */
#define XEN_DSM_SEND_PORTS      16

struct xen_dsm_ports {
    uint32_t first;
    uint32_t pad;                       /* zero */
    uint64_aligned_t ports[4];          /* bit n % 64 of n / 64: first + n */
};
typedef struct xen_dsm_ports xen_dsm_ports_t;

/*
 * SHARED_INFO: the guest's shared_info is at that frame.  In slice 0 the guest
 * maps it, and XEN_DOMCTL_getdomaininfo says where; each of the others has one
 * of its own, which the daemon maps at the same frame before a CALL about a
 * port, or a vCPU of that slice, is done.  All ports are masked in it.
 * DROP_RANGE takes it away.
 *
 *   -EINVAL    in slice 0; or the frame is not homed on another slice
 *   -EEXIST    it is mapped
 *   -EBUSY     the frame is here
 */
#define XEN_DSM_SHARED_INFO     17

struct xen_dsm_shared_info {
    uint64_aligned_t gfn;
};

/*
 * GET_TIME, SET_TIME: the guest's system time, as a function of its TSC:
 *
 *   ns + (((tsc' - tsc) << shift) * mul >> 32), >> -shift if it is negative
 *
 * GET_TIME: what this host would tell vCPU 0 now.  SET_TIME: it is this one,
 * for ever, and no longer the host's.  The daemon sets the same in all slices.
 *
 * A line with mul / n makes the guest's clock n times slower than the host's,
 * and slow is n: the guest's timers take that much longer.  Otherwise it is 1.
 *
 *   -EOPNOTSUPP  as GET_TSC
 *   -EINVAL      SET_TIME: mul is 0, shift not from -31 to 31, slow not from 1
 *                to XEN_DSM_MAX_SLOW, or not zero what has to be
 *   -EBUSY       SET_TIME: the domain was unpaused before
 */
#define XEN_DSM_GET_TIME        18
#define XEN_DSM_SET_TIME        19

#define XEN_DSM_MAX_SLOW        100

struct xen_dsm_time {
    uint64_aligned_t tsc;
    uint64_aligned_t ns;
    uint32_t mul;
    int8_t shift;
    uint8_t slow;
    uint8_t pad[2];                     /* zero */
};
typedef struct xen_dsm_time xen_dsm_time_t;

/*
 * JUMP: the TSC of this slice's vCPUs is ahead of what it was, by ticks, and so
 * is the guest's time here, which is a function of it.  All of them at once:
 * none runs meanwhile.  What waits for a time of the guest does not wait for
 * what was left out.
 *
 * Hosts' clocks are not equally quick.  A daemon whose slice is behind others
 * has it jump, so time never goes back for a vCPU.
 *
 *   -EOPNOTSUPP  as GET_TSC
 *   -EINVAL      ticks is 0, or more than a millisecond; or the guest has the
 *                host's time (no SET_TIME)
 */
#define XEN_DSM_JUMP            23

struct xen_dsm_jump {
    uint64_aligned_t ticks;
};

/*
 * DO_ACCESS: what another slice's vCPU does with a page that is homed here and
 * in state M, as one access of width bytes: READ and WRITE as a MOV does,
 * CMPXCHG with LOCK.  So it is what a vCPU of this slice could have done, and
 * no less atomic.
 *
 *            old                          value
 * READ       OUT: what was there
 * WRITE                                   what is there now
 * CMPXCHG    IN: only if that is there;   is there then
 *            OUT: what was there
 *
 * All others are zero, and so are bits beyond the width.  in_use says whether
 * somebody else refers to the page, so that it can't leave (INVAL, -EBUSY or
 * -EPERM).
 *
 *   -EINVAL    another op, a width that is not 1, 2, 4 or 8, bytes that
 *              are not within 8 aligned ones of the page, or not zero what has
 *              to be
 *   -ERANGE    outside all ranges
 *   -EXDEV     the frame is homed on another slice
 *   -ENOENT    the frame is a hole
 *   -ENODATA   the frame is not in state M
 *   -EPERM     it is no memory of the guest that all its vCPUs have in common
 *   -EBUSY     the domain gives the page back just now
 *   -ESRCH     the domain dies
 */
#define XEN_DSM_DO_ACCESS       21

#define XEN_DSM_ACCESS_READ     1
#define XEN_DSM_ACCESS_WRITE    2
#define XEN_DSM_ACCESS_CMPXCHG  3

struct xen_dsm_access {
    /* IN */
    uint64_aligned_t gfn;
    uint16_t offset;                    /* in the page */
    uint8_t width;                      /* bytes: 1, 2, 4 or 8 */
    uint8_t op;                         /* XEN_DSM_ACCESS_* */
    /* OUT */
    uint32_t in_use;                    /* IN: zero */
    /* IN, OUT */
    uint64_aligned_t old;
    uint64_aligned_t value;
};
typedef struct xen_dsm_access xen_dsm_access_t;

/*
 * ACCESS_DONE: the result of an access that was done in another slice, to who
 * waits for it.
 *
 * With AGAIN it was not done, since the page may leave where it is now, or is
 * no longer there: the vCPU executes its instruction again, and finds the page
 * in the state that it has here then.
 *
 *   -EINVAL    unknown flags, old has bits beyond the width, or is not zero
 *              after a WRITE or with AGAIN
 *   -ENOENT    no such vCPU
 *   -ESRCH     the vCPU does not wait for an access with that cookie
 */
#define XEN_DSM_ACCESS_DONE     22

#define XEN_DSM_ACCESS_AGAIN    (1u << 0)

struct xen_dsm_access_done {
    uint32_t vcpu;                      /* who waits */
    uint32_t flags;                     /* XEN_DSM_ACCESS_AGAIN */
    uint64_aligned_t cookie;
    uint64_aligned_t old;               /* what DO_ACCESS has left there */
};
typedef struct xen_dsm_access_done xen_dsm_access_done_t;

struct xen_dsm_op {
    uint32_t version;                   /* XEN_DSM_INTERFACE_VERSION */
    domid_t domid;
    uint16_t cmd;                       /* XEN_DSM_ENABLE, ... */
    union {
        struct xen_dsm_enable enable;
        struct xen_dsm_page page;
        struct xen_dsm_flush flush;
        struct xen_dsm_keepalive keepalive;
        struct xen_dsm_pool pool;
        struct xen_dsm_frames frames;
        struct xen_dsm_place place;
        struct xen_dsm_vcpu_event event;
        struct xen_dsm_tsc tsc;
        struct xen_dsm_call call;
        struct xen_dsm_reply reply;
        struct xen_dsm_ports ports;
        struct xen_dsm_shared_info shared_info;
        struct xen_dsm_time time;
        struct xen_dsm_jump jump;
        struct xen_dsm_access access;
        struct xen_dsm_access_done access_done;
        XEN_GUEST_HANDLE_64(xen_dsm_stats_t) stats;
        uint8_t pad[48];
    } u;
};
typedef struct xen_dsm_op xen_dsm_op_t;
DEFINE_XEN_GUEST_HANDLE(xen_dsm_op_t);

#endif /* __XEN__ || __XEN_TOOLS__ */

#endif /* __XEN_PUBLIC_DSM_H__ */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
