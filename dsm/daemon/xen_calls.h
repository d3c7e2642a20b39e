/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hypervisor, as dsmd sees it: one slice of one VM on this host.
 *
 * The words and numbers are those of xen/include/public/dsm.h, which says what
 * each operation does and each error means; xen_libxc.c checks at compile time
 * that they are the same.  Everything here is a table of functions, so that
 * unit tests play the hypervisor (tests/unit/dsmd/played_xen.c).
 *
 * Context: the protocol thread.  Nothing blocks for longer than a hypercall.
 */
#ifndef DSM_XEN_CALLS_H
#define DSM_XEN_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "vcpu.h"

#ifdef __cplusplus
extern "C" {
#endif

enum dsm_xen_op_type {
	DSM_XEN_INVAL = 1,	/* M, S to I; bytes out if there is a buffer */
	DSM_XEN_DOWNGRADE,	/* M to S; bytes out if there is a buffer */
	DSM_XEN_READ,		/* S; bytes out */
	DSM_XEN_INSTALL_S,	/* I to S; bytes in */
	DSM_XEN_INSTALL_M,	/* I to M; bytes in */
	DSM_XEN_ZERO_M,		/* I to M, zeroed */
	DSM_XEN_UPGRADE,	/* S to M */
	DSM_XEN_DROP,		/* I to hole; a pooled frame goes to the host */
	DSM_XEN_WAKE,
	DSM_XEN_QUERY,
	DSM_XEN_UNCACHE,	/* I to U, of what has its home elsewhere */
	DSM_XEN_CACHE,		/* U to I */
	DSM_XEN_HOLE,		/* I, U: one who waits finds no memory, once */
};

enum dsm_xen_state {
	DSM_XEN_STATE_HOLE,
	DSM_XEN_STATE_I,
	DSM_XEN_STATE_S,
	DSM_XEN_STATE_M,
	DSM_XEN_STATE_OTHER,	/* mapped, and not by DSM */
	DSM_XEN_STATE_U,	/* as I; what a vCPU does with it is an ACCESS */
};

#define DSM_XEN_FOREIGN	UINT32_MAX
#define DSM_XEN_MAX_OPS	1024	/* in one call of page() */

struct dsm_xen_op {
	uint64_t gfn;
	uint8_t *buffer;	/* a page of alloc_pages(), or NULL */
	uint8_t type;		/* enum dsm_xen_op_type */
	uint8_t state;		/* afterwards: enum dsm_xen_state */
	uint32_t vcpu;		/* HOLE: who; DSM_XEN_FOREIGN: other domains */
	uint8_t wanted;		/* QUERY: the most that a vCPU waits for, enum dsm_xen_want; 0 */
	int rc;			/* 0 or -errno, as public/dsm.h says */
};

enum dsm_xen_want {
	DSM_XEN_WANT_S = 1,
	DSM_XEN_WANT_M,
	DSM_XEN_WANT_M_NODATA,	/* M; the bytes do not matter */
};

/* Somebody waits for a page. */
struct dsm_xen_miss {
	uint64_t gfn;
	uint64_t rip;		/* of the vCPU */
	uint32_t vcpu;
	uint8_t want;		/* enum dsm_xen_want */
	bool foreign;		/* no vCPU: another domain, which tries again */
	bool by_xen;		/* on behalf of Xen */
	bool of_u;		/* the page is in U, and this can't be an ACCESS */
};

/* What Xen's ring has: somebody waits for a page, or something about vCPUs. */
struct dsm_xen_entry {
	struct dsm_xen_miss miss;
	/*
	 * Its type is 0: a miss; else EVENT, PORTS, CALL, ACCESS, SHUTDOWN, or IDLE: flags: is one
	 * of the vCPUs up that run here; number: SENDs that were done until then.
	 */
	struct dsm_vcpu_msg vcpu;
};

/* KiB */
struct dsm_xen_memory {
	uint64_t free;		/* of the host */
	uint64_t limit, used;	/* of the domain */
};

/*
 * What vCPUs here waited for pages since the beginning, as Xen counts it: public/dsm.h,
 * STATS.  A wait goes from when the vCPU stops until it is woken; traps come before some
 * of them, wakes behind.
 */
struct dsm_xen_waits {
	uint64_t waits, wait_ns, traps, trap_ns, wakes, wake_ns;
};

struct dsm_xen;

struct dsm_xen_calls {
	/**
	 * Page operations, in their order, each with a result of its own.
	 * @nr: 1 .. DSM_XEN_MAX_OPS.
	 * Return: 0, or -errno if they could not all be tried.
	 */
	int (*page)(struct dsm_xen *xen, struct dsm_xen_op *ops, unsigned int nr);
	/**
	 * Take entries from the ring, and from behind it if it was full.
	 * Return: how many; less than @most if there are no more; -errno.
	 */
	int (*misses)(struct dsm_xen *xen, struct dsm_xen_entry *entries,
		      unsigned int most);
	/** Would misses() find any?  No system call. */
	bool (*has_misses)(struct dsm_xen *xen);
	/**
	 * What a vCPU of another host has sent: an EVENT to a vCPU that runs here,
	 * PORTS of this slice.  Return: 0 or -errno.
	 */
	int (*send_event)(struct dsm_xen *xen, const struct dsm_vcpu_msg *event);
	int (*send_ports)(struct dsm_xen *xen, const struct dsm_vcpu_msg *ports);
	/**
	 * A hypercall for a vCPU of another host: into rc its result, into word
	 * what it leaves of its argument.
	 * Return: 0; -EAGAIN: a page is not here, and is asked for as by another
	 * domain; -EINVAL, -ENOENT, -EXDEV, -EOPNOTSUPP: not one that is done for
	 * others; -errno.
	 */
	int (*call)(struct dsm_xen *xen, struct dsm_vcpu_msg *call);
	/**
	 * Its result, to the vCPU that waits.
	 * Return: 0; -EINVAL: a port that is not that host's; -ESRCH; -errno.
	 */
	int (*reply)(struct dsm_xen *xen, const struct dsm_vcpu_msg *reply);
	/**
	 * An ACCESS of a vCPU of another host, to a page that is homed here and in M:
	 * word[1] is what was there afterwards.
	 * @in_use: does anybody but the guest refer to the page?
	 * Return: 0; -ENOENT: a hole; -ENODATA: it is not in M; -EBUSY: the guest gives it
	 * back just now; -EPERM: no memory that vCPUs of several hosts have in common; -errno.
	 */
	int (*access)(struct dsm_xen *xen, struct dsm_vcpu_msg *access, bool *in_use);
	/**
	 * Its ACCESSED, to the vCPU that waits.
	 * Return: 0; -EINVAL: more bits than were asked for; -ESRCH; -errno.
	 */
	int (*accessed)(struct dsm_xen *xen, const struct dsm_vcpu_msg *accessed);
	/** The guest has shut down elsewhere, with that code.  Return: 0 or -errno. */
	int (*shutdown)(struct dsm_xen *xen, unsigned int code);
	/**
	 * The guest has its shared_info at that frame, in slice 0.
	 * Return: 0; -EEXIST: it is there; -EBUSY: the frame is here; -errno.
	 */
	int (*shared_info)(struct dsm_xen *xen, uint64_t gfn);
	/** In slice 0.  Return: that frame; 0 if there is none yet. */
	uint64_t (*shared_info_at)(struct dsm_xen *xen);
	/**
	 * A vCPU, which is down, runs at that host from now on.  The domain is paused.
	 * @info: where the page of its vcpu_info was that it had here, the address of
	 * which is in the guest; 0: it had none, or it stays.  May be NULL.
	 * Return: 0; -EBUSY: it is up, or something for a vCPU is on its way here;
	 * -EOPNOTSUPP: its vcpu_info is not alone in its page; -errno.
	 */
	int (*place)(struct dsm_xen *xen, unsigned int vcpu, unsigned int host, uint64_t *info);
	/** Is a vCPU up that runs here?  Return: false, too, if Xen does not say. */
	bool (*is_up)(struct dsm_xen *xen, unsigned int vcpu);
	/** The domain stands still, and goes on: as often.  Return: 0 or -errno. */
	int (*pause)(struct dsm_xen *xen);
	int (*unpause)(struct dsm_xen *xen);
	/**
	 * Has anybody paused the domain, by such a call, more often than unpaused it?
	 * Return: false, too, if Xen does not say.
	 */
	bool (*is_paused)(struct dsm_xen *xen);
	/*
	 * Before the domain runs for the first time.  In slice 0: what its TSC is
	 * less the host's, and its time, which stays that line for good, and so
	 * many times slower as @time says.  In others: the same.  Return: 0 or -errno.
	 */
	int (*get_time)(struct dsm_xen *xen, struct dsm_vcpu_msg *time);
	int (*set_time)(struct dsm_xen *xen, const struct dsm_vcpu_msg *time);
	/** Then: the guest's TSC here is ahead by @ticks, a ms at most.  Return: 0 or -errno. */
	int (*jump)(struct dsm_xen *xen, uint64_t ticks);
	/**
	 * Its CPU policy, in bytes that only the same function elsewhere reads.
	 * @text: features in it that guests of this host don't have by themselves, or, after
	 * an error, can't have; "": none, or not known.  DSM_ENGINE_TEXT bytes.
	 * Return: 0; -E2BIG; -EINVAL: these are none; -errno: not on this host.
	 */
	int (*get_policy)(struct dsm_xen *xen, uint8_t *bytes, unsigned int size);
	int (*set_policy)(struct dsm_xen *xen, const uint8_t *bytes, unsigned int size,
			  char *text);
	/** A slice that was built here may run: whatever is placed there.  Return: 0 or -errno. */
	int (*start)(struct dsm_xen *xen);
	/**
	 * A hole becomes zeroed memory.
	 * Return: 0; -EEXIST if it is none; -ENOMEM; -errno.
	 */
	int (*populate)(struct dsm_xen *xen, uint64_t gfn);
	/**
	 * @nr frames more for the pool, or that are not in use back to the host:
	 * all of them or none.
	 * Return: 0; -ENOMEM: the host or the domain's limit has no more; -EBUSY:
	 * those that are left are in use; -errno.
	 */
	int (*pool_add)(struct dsm_xen *xen, unsigned int nr);
	int (*pool_del)(struct dsm_xen *xen, unsigned int nr);
	/**
	 * These frames, which are holes, become I: all of them or none.
	 * Return: 0; -EEXIST: one is no hole; -errno.
	 */
	int (*away)(struct dsm_xen *xen, uint64_t first, uint64_t nr);
	/** Those in I become holes.  Return: 0; -EBUSY: one is here; -errno. */
	int (*drop)(struct dsm_xen *xen, uint64_t first, uint64_t nr);
	/**
	 * 512 pages from @first on, a multiple of 512, which are all here and at
	 * home, become a page of 2 MiB.
	 * Return: 0; -EBUSY: one is in use; -ENOMEM: no memory in one piece;
	 * -EOPNOTSUPP: there are no such pages; -errno.
	 */
	int (*merge)(struct dsm_xen *xen, uint64_t first);
	/**
	 * Memory of this host for frames that are holes, from @first on, in the
	 * largest pages that fit and are free; and back to the host, up to
	 * @first + @nr.  As many as one hypercall or two do in a short time.
	 * Return: how many, 1 .. @nr; -ENOMEM: the host or the limit has no more;
	 * -errno.
	 */
	int64_t (*fill)(struct dsm_xen *xen, uint64_t first, uint64_t nr);
	int64_t (*empty)(struct dsm_xen *xen, uint64_t first, uint64_t nr);
	/**
	 * The domain, which was built here, may have so many frames at most, from now on.
	 * One that has more keeps them, and gets none.  Return: 0 or -errno.
	 */
	int (*limit)(struct dsm_xen *xen, uint64_t frames);
	/** Return: 0 or -errno. */
	int (*memory)(struct dsm_xen *xen, struct dsm_xen_memory *memory);
	/** Return: 0 or -errno: Xen does not say. */
	int (*waits)(struct dsm_xen *xen, struct dsm_xen_waits *waits);
	/** dsmd lives, and says so again within @ms; 0: never.  Return: 0 or -errno. */
	int (*keepalive)(struct dsm_xen *xen, unsigned int ms);
	/**
	 * Has the domain been destroyed, or does that go on?  One that has shut down is
	 * there still.  Return: false, too, if Xen does not say.
	 */
	bool (*has_ended)(struct dsm_xen *xen);
	/** The VM can't go on: it crashes, with what it has.  Return: 0 or -errno. */
	int (*crash)(struct dsm_xen *xen);
	/** Memory that Xen can copy from and to, zeroed.  Return: NULL without memory. */
	void *(*alloc_pages)(struct dsm_xen *xen, unsigned int nr);
	void (*free_pages)(struct dsm_xen *xen, void *pages, unsigned int nr);
	/** Return: readable when the ring may have something; -1 if there is no such thing. */
	int (*descriptor)(struct dsm_xen *xen);
	/**
	 * Can this host's TSC be compared with another's?
	 * @text: why not, or a warning; "" if there is nothing to say.
	 * Return: its frequency, kHz; -EOPNOTSUPP.
	 */
	int (*tsc_khz)(struct dsm_xen *xen, const char **text);
	/** Return: it, now; only if tsc_khz() has told a frequency. */
	uint64_t (*tsc)(struct dsm_xen *xen);
	void (*close)(struct dsm_xen *xen);
};

/* What every hypervisor begins with. */
struct dsm_xen {
	const struct dsm_xen_calls *calls;
};

#ifdef __cplusplus
}
#endif

#endif
