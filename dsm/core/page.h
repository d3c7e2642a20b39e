/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One gfn at one host: what the host has of it, and, at its home, the
 * directory.  A plain function of (state, event) to (state, actions).
 *
 * The caller keeps one struct dsm_page for each gfn that is not in its first
 * state (dsm_page_is_idle()), and one buffer of DSM_PAGE_BYTES for each that
 * dsm_page_needs_buffer(); it finds both before it calls, so that nothing can
 * fail half-way.  No locks: one thread handles all events of a page.
 *
 * Rules for the caller:
 *  - Actions are done in their order.  DSM_ACT_OPERATION is always the last:
 *    the next event of this page is its result.
 *  - What is sent to one host arrives there in the order in which it was sent,
 *    whatever page it is about.
 *  - After dsm_vm_peer_down() a page gets DSM_EV_HOST_LOST before anything else
 *    but the result of an operation that is due, and before dsm_vm_peer_up() of
 *    that host.  A host without a connection is sent nothing.
 *  - A page's bytes are in its buffer: DSM_ACT_TAKE moves those that came with
 *    the message there, an operation with DSM_BYTES_OUT fills it, one with
 *    DSM_BYTES_IN or a message that has a page takes them from there.
 *
 * DSM_ACT_FAIL is the end of the VM, at every host.  A page whose bytes are gone
 * has no other state, and nobody is told that he waits in vain: the caller stops
 * the vCPUs and tells the peers that the VM has failed.  Every later event of
 * that page is -DSM_E_BROKEN.
 */
#ifndef DSM_PAGE_H
#define DSM_PAGE_H

#include "protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

enum dsm_state {
	DSM_INVALID,		/* not here: any access faults */
	DSM_SHARED,		/* here, read-only, the bytes that all others have */
	DSM_MODIFIED,		/* here and nowhere else, writable; at home also a hole */
};

/* The directory's view of a page. */
enum dsm_mode {
	DSM_MODE_MODIFIED,	/* owner has it alone; owner = home at first */
	DSM_MODE_SHARED,	/* copyset have it, the home among them */
	DSM_MODE_PRIVATE,	/* the home has it and can't give it away */
};

enum dsm_phase {
	DSM_IDLE,
	DSM_COLLECT,		/* recalls are out: waits for the hosts in pending */
	DSM_LOCAL,		/* the home's own frame: an operation, a pin, a lease */
};

enum dsm_lease {
	DSM_LEASE_NONE,
	DSM_LEASE_ACTIVE,	/* recalls wait until an instruction has retired */
	DSM_LEASE_EXPIRED,	/* none has retired, recalls do not wait any more */
	DSM_LEASE_TOKEN,	/* for the vCPU with the token: until it has retired */
};

struct dsm_request {
	uint8_t host;
	uint8_t type;		/* GETS, GETM, DROP, POPULATE; PUTM while it is installed */
	uint8_t flags;		/* DSM_F_* */
};

struct dsm_directory {
	uint8_t mode;		/* enum dsm_mode */
	uint8_t owner;		/* MODIFIED: who has it */
	uint8_t phase;		/* enum dsm_phase */
	uint8_t abort;		/* enum dsm_reason: ends so, once pending is empty */
	struct dsm_request now;	/* not IDLE: for whom; host NOBODY: who asked is gone */
	bool bytes;		/* RDATA or PUTM came: the bytes are in the buffer */
	bool kept;		/* and its sender keeps a copy */
	bool busy;		/* LOCAL: the frame was in use; tried again later */
	uint8_t nr_queued;
	struct dsm_request queue[DSM_MAX_HOSTS];	/* one a host at most */
	uint16_t copyset;	/* SHARED: who has a copy */
	uint16_t pending;	/* COLLECT: who has not answered */
	uint32_t txn;		/* of this transaction, or the last one */
	uint32_t grant;		/* MODIFIED elsewhere: the one that made the owner */
};

struct dsm_page {
	uint64_t gfn;
	uint8_t home;
	uint8_t state;		/* enum dsm_state: what Xen has */
	uint8_t request;	/* enum dsm_type that is out, or 0 */
	uint8_t request_flags;
	bool demand;		/* somebody waits for it */
	bool stopped;		/* and is stopped by that: a vCPU, not a tool alone */
	bool merged;		/* and began to wait after it was sent */
	uint8_t operation;	/* enum dsm_operation whose result is due, or 0 */
	uint8_t purpose;	/* private to dsm/core: what the result decides */
	bool broken;		/* DSM_ACT_FAIL was said: nothing follows */
	bool writeback;		/* PUTM is out: the buffer stays until PUT_ACK */
	uint8_t wanted;		/* GETS or GETM: to be asked for after PUT_ACK; or 0 */
	uint8_t wanted_flags;
	uint8_t lease;		/* enum dsm_lease */
	bool lost;		/* taken away before an instruction had retired */
	uint8_t recall;		/* RECALL_S, RECALL_I or INV, not answered yet; or 0 */
	uint8_t recall_flags;
	bool recall_busy;	/* the page was in use; tried again later */
	uint32_t recall_txn;	/* of recall; in a write-back: of the one answered */
	uint32_t grant;		/* MODIFIED and not home: the transaction that gave it */
	struct dsm_directory dir;	/* at home only */
};

/*
 * Page operations of Xen.  Each changes the entry, flushes, then copies.
 * An operation that takes something away fails with DSM_OP_BUSY while Xen, a
 * hypercall or another domain uses the page.
 */
enum dsm_operation {
	DSM_OP_INSTALL_S = 1,	/* I to S, bytes in */
	DSM_OP_INSTALL_M,	/* I to M, bytes in */
	DSM_OP_ZERO_M,		/* I or S to M, zeroed */
	DSM_OP_UPGRADE,		/* S to M */
	DSM_OP_DOWNGRADE,	/* M to S, bytes out; may be BUSY; at home ABSENT in a hole */
	DSM_OP_INVALIDATE,	/* S or M to I; may be BUSY; at home ABSENT in a hole */
	DSM_OP_READ,		/* S stays, bytes out */
	DSM_OP_DROP,		/* home: whatever is here becomes a hole; BUSY, ABSENT */
	DSM_OP_POPULATE,	/* home: a hole becomes zeroed memory; EXISTS, NOMEM */
	DSM_NR_OPERATIONS
};

enum dsm_bytes {
	DSM_BYTES_NONE,
	DSM_BYTES_IN,		/* from the buffer to the page */
	DSM_BYTES_OUT,		/* from the page to the buffer */
};

enum dsm_result {
	DSM_OP_DONE,
	DSM_OP_BUSY,		/* -EBUSY */
	DSM_OP_ABSENT,		/* -ENOENT: a hole */
	DSM_OP_EXISTS,		/* -EEXIST */
	DSM_OP_NOMEM,		/* -ENOMEM */
	DSM_OP_BROKEN,		/* anything else: the VM fails */
	DSM_NR_RESULTS
};

/*
 * Which vCPUs that wait for the page wake up, and meet the page again.  There
 * was no memory at some time while those waited that the core has been told of
 * (DSM_EV_MISS).  Others, whose miss is in Xen's ring still, may have met the
 * page after it was populated: to these HOLE must not apply.
 */
#define DSM_WAKE_READERS	0x01
#define DSM_WAKE_WRITERS	0x02
#define DSM_WAKE_ALL		(DSM_WAKE_READERS | DSM_WAKE_WRITERS)
#define DSM_WAKE_HOLE		0x04	/* and their access finds no memory, this once */

enum dsm_action_type {
	DSM_ACT_TAKE = 1,	/* the message's page to the buffer */
	DSM_ACT_SEND,		/* msg to host; with the buffer if the type has a page */
	DSM_ACT_WAKE,		/* wake */
	DSM_ACT_RETRY,		/* give DSM_EV_RETRY in a while (50 us) */
	DSM_ACT_FINISHED,	/* our DROP or POPULATE, with reason */
	DSM_ACT_FAIL,		/* stop the VM: reason, because of host; the last */
	DSM_ACT_STAYS,		/* the page can't leave its home, for reason: who waits uses it there */
	DSM_ACT_OPERATION,	/* operation, bytes; if it is DONE, wake in the same call */
};

struct dsm_action {
	uint8_t type;		/* enum dsm_action_type */
	uint8_t host;
	uint8_t operation;	/* enum dsm_operation */
	uint8_t bytes;		/* enum dsm_bytes */
	uint8_t wake;		/* DSM_WAKE_* */
	uint8_t reason;		/* enum dsm_reason */
	struct dsm_msg msg;	/* complete, with epoch */
};

/*
 * One event sends at most a message to each host for the transaction that it
 * ends, one to each for those behind it, and does five things of its own.
 */
#define DSM_MAX_ACTIONS	(2 * DSM_MAX_HOSTS + 5)

struct dsm_actions {
	unsigned int nr;
	struct dsm_action action[DSM_MAX_ACTIONS];
};

enum dsm_event_type {
	DSM_EV_MESSAGE = 1,	/* msg, from */
	DSM_EV_RESULT,		/* result, of the operation that is due */
	DSM_EV_MISS,		/* a vCPU or the domain's tools: write, flags */
	DSM_EV_EVICT,		/* this host wants its frame back; not at home */
	DSM_EV_DROP,		/* the guest gives the page back, and it is not M at home */
	DSM_EV_POPULATE,	/* the guest wants memory here, and its home is elsewhere */
	DSM_EV_PRIVATE,		/* home: the page has users that never let go; all who wait hear it */
	DSM_EV_PUBLIC,		/* home: they have, it may leave again */
	DSM_EV_STAYS,		/* home: as PIN_TIMEOUT; who asked may use it here */
	DSM_EV_RETRY,		/* after DSM_ACT_RETRY; too many do no harm */
	DSM_EV_PIN_TIMEOUT,	/* the page has been in use for too long */
	DSM_EV_LEASE_OVER,	/* time is up */
	DSM_EV_RETIRED,		/* the vCPU that missed has retired an instruction: no lease, no loss */
	DSM_EV_HOST_LOST,	/* from: whose connection is gone; more than once does no harm */
	DSM_NR_EVENTS
};

/* MISS, never in a message: by one whom nobody stops, and who tries again by himself. */
#define DSM_F_TOOL	0x80

struct dsm_event {
	uint8_t type;		/* enum dsm_event_type */
	uint8_t from;
	uint8_t result;		/* enum dsm_result */
	uint8_t flags;		/* MISS: DSM_F_PREFETCH, _NODATA, _TOKEN; or _TOOL */
	bool write;		/* MISS */
	struct dsm_msg msg;
};

/**
 * The first state of a page: all of it at home.
 * Return: 0, or -DSM_E_GFN if the gfn has no home.
 */
int dsm_page_init(struct dsm_page *page, const struct dsm_vm *vm, uint64_t gfn);

/**
 * One event.
 * @out: what to do about it, in this order.  Empty after an error.
 * Return: 0; a negative enum dsm_error, and then nothing has changed.  From a
 * peer that is a breach of the protocol: stop the VM, name the error.
 * -DSM_E_OPERATION: the result of an operation is due first.
 * -DSM_E_BROKEN: DSM_ACT_FAIL was said for this page: the VM is to be stopped.
 * -DSM_E_NOT_NOW for EVICT, DROP, POPULATE, PRIVATE, PUBLIC, STAYS and LEASE_OVER:
 * try again later, or do without.
 */
int dsm_step(const struct dsm_vm *vm, struct dsm_page *page,
	     const struct dsm_event *event, struct dsm_actions *out);

/** Is it in its first state?  Its struct can be forgotten. */
bool dsm_page_is_idle(const struct dsm_page *page, const struct dsm_vm *vm);

/** Is anything in its buffer that is still needed? */
bool dsm_page_needs_buffer(const struct dsm_page *page);

/**
 * Would this page be lost with the host?  For the text that says how many.
 * Only its home knows: false elsewhere.
 */
bool dsm_page_only_at(const struct dsm_page *page, unsigned int host);

/**
 * Has @host anything of this page, is it to answer something, or is it the home,
 * and the page is here or under way?  That it asks for it is nothing.
 */
bool dsm_page_concerns(const struct dsm_page *page, const struct dsm_vm *vm,
		       unsigned int host);

/**
 * The rules that one struct alone can break.  For tests and debug builds.
 * Return: NULL, or the rule that does not hold.
 */
const char *dsm_page_broken_rule(const struct dsm_page *page,
				 const struct dsm_vm *vm);

const char *dsm_operation_name(unsigned int operation);
const char *dsm_event_name(unsigned int event);

#ifdef __cplusplus
}
#endif

#endif
