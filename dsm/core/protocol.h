/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The words of the DSM protocol: hosts, messages, reasons and errors.
 *
 * A spanning VM runs in a slice (a domain) on each of some hosts.  Each guest
 * page, named by its gfn, has one home: the host whose directory knows who
 * holds the page, and through which all its bytes go.  A host has a page in
 * state I (nothing here), S (a copy that nobody may write) or M (the only
 * copy).  At the home, S at anybody means a copy at the home, too.
 *
 * Between two hosts there is one connection that loses nothing and keeps the
 * order of what is sent.  Everything rests on that order: a transport that
 * lets one message overtake another is wrong.
 *
 * What was under way when a connection ended is gone, and neither end can know
 * what that was.  So no connection replaces one that was lost: for the rest of
 * the VM's life a host that was lost stays lost.  It can come back only if it
 * left: if it had no home of pages and not the token's, and no page of others
 * (dsm_vm_peer_left()).
 *
 * Nothing in dsm/core does I/O, allocates, locks or asks for the time.
 */
#ifndef DSM_PROTOCOL_H
#define DSM_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_MAX_HOSTS	16	/* numbers 0 .. 15; a set of hosts is a uint16_t */
#define DSM_MAX_RANGES	64	/* of gfns with one home */
#define DSM_NOBODY	0xff	/* in place of a host's number */
#define DSM_PAGE_BYTES	4096

/*
 * Messages.  "Page": 4096 bytes follow.  txn is the number of the home's
 * transaction on that gfn; what a holder answers has the number of the
 * question, PUTM and PUT_ACK that of the transaction that made the sender
 * owner.  Requests, PUTS and what is about the token have txn 0.
 */
enum dsm_type {
	/* to the home */
	DSM_GETS = 1,		/* wants to read */
	DSM_GETM,		/* wants to write */
	DSM_DROP,		/* the guest gives the page back: leave a hole */
	DSM_POPULATE,		/* the guest wants memory in a hole */
	DSM_PUTM,		/* page: the owner gives it up */
	DSM_PUTS,		/* a sharer gave its copy up */
	/* the home to those who hold the page */
	DSM_RECALL_S,		/* to the owner: keep a copy, send the bytes */
	DSM_RECALL_I,		/* to the owner: keep nothing, send the bytes */
	DSM_INV,		/* to a sharer: keep nothing */
	/* their answers */
	DSM_RDATA,		/* page */
	DSM_INV_ACK,
	DSM_BUSY_PIN,		/* the page has been in use there for too long */
	/* the home to who asked */
	DSM_DATA_S,		/* page */
	DSM_DATA_M,		/* page */
	DSM_GRANT,		/* write; the copy there is good, or not wanted */
	DSM_NACK,		/* no, because of reason; ask again if need be */
	DSM_RESULT,		/* of DROP and POPULATE, in reason */
	DSM_PUT_ACK,		/* to PUTM: forget the bytes */
	/* the progress token; gfn 0 */
	DSM_TOKEN_REQ,
	DSM_TOKEN_GRANT,
	DSM_TOKEN_FREE,
	DSM_NR_TYPES
};

/*
 * Messages about vCPUs (vcpu.h).  Nothing about pages depends on them, nor they
 * on pages, but for the order of the connection.
 */
enum dsm_vcpu_type {
	DSM_VCPU_EVENT = 64,	/* interrupts of a vCPU that runs there */
	DSM_VCPU_PORTS,		/* events to ports that are there */
	DSM_VCPU_CALL,		/* a hypercall that is to be done there */
	DSM_VCPU_REPLY,		/* its result */
	DSM_VCPU_SHUTDOWN,	/* the guest has shut down */
	DSM_VCPU_TIME,		/* the guest's, from its home */
	DSM_VCPU_READY,		/* its answer */
	DSM_VCPU_IDLE,		/* no vCPU is up there, and what was sent until then */
	DSM_VCPU_STOP,		/* the home: the guest is to stand still */
	DSM_VCPU_FENCE,		/* each to each: nothing about vCPUs comes behind it */
	DSM_VCPU_QUIET,		/* to the home: it does, and nothing is on its way */
	DSM_VCPU_PLACE,		/* the home: where a vCPU runs from now on */
	DSM_VCPU_PLACED,	/* its answer */
	DSM_VCPU_GO,		/* the home: the guest goes on */
	DSM_VCPU_POLICY,	/* page: a part of the CPU policy, from the home */
	DSM_VCPU_TABLE,		/* page: the host of each vCPU, from the home */
	DSM_VCPU_ACCESS,	/* to the home of a page that can't leave it: by a vCPU there */
	DSM_VCPU_ACCESSED,	/* its answer */
	DSM_VCPU_PAUSE,		/* the home: the guest is paused by its operator, or is not */
	DSM_VCPU_PAUSED,	/* its answer */
	DSM_VCPU_TSC,		/* each to each: the guest's TSC there */
	DSM_VCPU_END
};

#define DSM_VCPU_BYTES	64	/* that follow, if there is no page */

/* Flags of a message. */
#define DSM_F_PREFETCH	0x01	/* GETS, GETM: nobody waits; refuse if it is not the time */
#define DSM_F_NODATA	0x02	/* GETM: the page will be zeroed, its bytes are not wanted */
#define DSM_F_TOKEN	0x04	/* GETS, GETM, recalls: for the vCPU that has the token */
#define DSM_F_KEPT	0x08	/* RDATA: the sender keeps a copy in state S */

/* Why not (NACK), how it ended (RESULT), or why the VM stops (DSM_ACT_FAIL). */
enum dsm_reason {
	DSM_R_NONE,		/* RESULT: it is done */
	DSM_R_BUSY,		/* NACK of a prefetch: a transaction is going on */
	DSM_R_PIN,		/* the page was in use somewhere for too long */
	DSM_R_HOLE,		/* there is no memory */
	DSM_R_PRIVATE,		/* the page can't leave its home */
	DSM_R_LOST,		/* FAIL: its bytes went with a host */
	DSM_R_EXISTS,		/* POPULATE: there is memory already */
	DSM_R_NOMEM,		/* POPULATE: the home has no frame */
	DSM_R_BROKEN,		/* FAIL: a page operation failed that must not */
	DSM_R_STAYS,		/* NACK: as PIN; it can be used at its home meanwhile */
	DSM_NR_REASONS
};

struct dsm_msg {
	uint8_t type;		/* enum dsm_type */
	uint8_t flags;		/* DSM_F_* */
	uint8_t reason;		/* enum dsm_reason */
	uint32_t epoch;		/* of the connection; 0: none */
	uint32_t txn;
	uint64_t gfn;
};

/*
 * Errors: what was wrong with an event.  Nothing has changed when one of them
 * is returned.  Up to DSM_E_LAST_OF_PEER a peer broke the protocol: the VM
 * can't go on with it.  After that our own caller asked for something that is
 * not possible, or not now.
 */
enum dsm_error {
	DSM_OK,
	DSM_E_VERSION,		/* wire: a version that we do not speak */
	DSM_E_LENGTH,		/* wire: not the length of this type */
	DSM_E_RESERVED,		/* wire: a byte that must be 0 is not */
	DSM_E_TYPE,		/* no such message */
	DSM_E_PEER,		/* from a host that is not there, or from ourselves */
	DSM_E_EPOCH,		/* of another connection */
	DSM_E_GFN,		/* outside of all ranges, or not this page's */
	DSM_E_HOME,		/* its home is not the host that the type needs */
	DSM_E_FLAGS,		/* flags that the type does not have */
	DSM_E_REASON,		/* a reason that the type, or what was asked, does not have */
	DSM_E_TXN,		/* not the number of this transaction, or of this grant */
	DSM_E_SECOND,		/* a request while one of the same host is open */
	DSM_E_HAS_IT,		/* a request for what the sender has */
	DSM_E_NOT_OWNER,	/* PUTM by another than the owner */
	DSM_E_NOT_SHARER,	/* PUTS by another than a sharer */
	DSM_E_NOT_ASKED,	/* an answer that nobody waits for */
	DSM_E_ANSWER,		/* an answer to another question */
	DSM_E_NOT_HELD,		/* a recall of what is not here */
	DSM_E_AGAIN,		/* a recall while one is open */
	DSM_E_NO_REQUEST,	/* a grant, a refusal or a result without a request */
	DSM_E_GRANT,		/* a grant that does not fit the request */
	DSM_E_NO_WRITEBACK,	/* PUT_ACK without PUTM */
	DSM_E_TOKEN,		/* out of turn */
	DSM_E_VCPU,		/* no such vCPU, or not one that is there */
	DSM_E_VECTOR,		/* of no interrupt */
	DSM_E_PORT,		/* no such event channel, or not one that is there */
	DSM_E_CALL,		/* a hypercall that is not done for other hosts */
	DSM_E_RESULT,		/* of no hypercall */
	DSM_E_TIME,		/* numbers that are no clock */
	DSM_E_ACCESS,		/* not one that an instruction makes, or not its result */
	DSM_E_NOT_HOME,		/* what only the home says, or only the home is told */
	DSM_E_LAST_OF_PEER = DSM_E_NOT_HOME,
	DSM_E_EVENT,		/* no such event, or with values that make no sense */
	DSM_E_OPERATION,	/* an event while the result of a page operation is due */
	DSM_E_NO_OPERATION,	/* a result that is not due, or can't be one */
	DSM_E_NOT_NOW,		/* evict, drop, pin ...: not in this state */
	DSM_E_BROKEN,		/* the VM has failed because of this page */
	DSM_E_FULL,		/* more hosts or ranges than there is room for */
	DSM_NR_ERRORS
};

/**
 * Names for logs: "GETS", "pin", "a recall of what is not here".
 * Return: static text; "?" for a number that has no name.
 */
const char *dsm_type_name(unsigned int type);
const char *dsm_reason_name(unsigned int reason);
const char *dsm_error_name(unsigned int error);

/** Does DSM_PAGE_BYTES of page follow a message of this type? */
bool dsm_type_has_page(unsigned int type);

/** Is it an enum dsm_vcpu_type? */
bool dsm_type_is_vcpu(unsigned int type);

/** Return: how many bytes follow: DSM_PAGE_BYTES, DSM_VCPU_BYTES or 0. */
unsigned int dsm_type_bytes(unsigned int type);

/*
 * What a host knows of the VM and its peers.  Filled by the functions below,
 * read by everything else.
 */
struct dsm_vm {
	uint8_t self;		/* this host's number */
	uint8_t nr_hosts;	/* 1 .. DSM_MAX_HOSTS */
	uint8_t token_home;	/* the host that hands out the token */
	uint8_t nr_ranges;
	bool leases;		/* an installed page may stay for an instruction */
	uint8_t max_losses;	/* so many pages lost before a vCPU wants the token */
	uint16_t up;		/* set of peers with a connection */
	uint16_t lost;		/* set of peers that had one, and did not leave */
	uint16_t unbound;	/* set of peers whose pages and token nobody uses here */
	uint16_t used_at_home;	/* set of peers where what can't leave is used: DSM_ACT_STAYS */
	uint32_t epoch[DSM_MAX_HOSTS];	/* of the connection with each peer */
	struct dsm_range {
		uint64_t start, end;	/* gfns, end not included */
		uint8_t home;
	} range[DSM_MAX_RANGES];
};

/**
 * Begin: no peers, no ranges.
 * @self: 0 .. @nr_hosts - 1.  @nr_hosts: 1 .. DSM_MAX_HOSTS.
 * Return: 0, or -DSM_E_PEER for numbers out of these bounds.
 */
int dsm_vm_init(struct dsm_vm *vm, unsigned int self, unsigned int nr_hosts);

/**
 * The pages @start .. @end - 1 have their home at host @home.
 * Return: 0; -DSM_E_PEER for no such host; -DSM_E_GFN for a range that is
 * empty or overlaps another; -DSM_E_FULL.
 */
int dsm_vm_add_range(struct dsm_vm *vm, uint64_t start, uint64_t end,
		     unsigned int home);

/** Return: the home of @gfn, or DSM_NOBODY. */
unsigned int dsm_vm_home(const struct dsm_vm *vm, uint64_t gfn);

/** Return: the place of the range that @gfn is in; DSM_MAX_RANGES: in none. */
unsigned int dsm_vm_range(const struct dsm_vm *vm, uint64_t gfn);

/**
 * Is @epoch later than @before?  Epochs count on beyond UINT32_MAX, so that no
 * peer can use them up: later is what is less than 2^31 ahead.  0 is none.
 */
bool dsm_epoch_is_later(uint32_t epoch, uint32_t before);

/**
 * A connection with @host is there.  Its @epoch is in each message;
 * connections with others keep theirs.
 * Return: 0; -DSM_E_PEER for no such host, ourselves, one that has a connection
 * or one that was lost: end the new connection; -DSM_E_EPOCH for an epoch that
 * is not later than that of this peer's connection before.
 */
int dsm_vm_peer_up(struct dsm_vm *vm, unsigned int host, uint32_t epoch);

/**
 * The connection is gone, and the host is lost.  Then tell each page
 * (DSM_EV_HOST_LOST) and the token (dsm_token_host_lost()).
 */
void dsm_vm_peer_down(struct dsm_vm *vm, unsigned int host);

/**
 * A host whose connection has ended is not lost: it has left, as it was told
 * to, and may come back.  After each page and the token were told that its
 * connection is gone, and none said DSM_ACT_FAIL.
 * Return: 0; -DSM_E_PEER for no such host or one that is not lost; -DSM_E_HOME
 * if pages or the token have their home there, and it is not in `unbound`.
 * That is the caller's to say: that no page whose home is there was anywhere but
 * there or under way, and that its bytes are nobody's any more.
 */
int dsm_vm_peer_left(struct dsm_vm *vm, unsigned int host);

/**
 * What can be said of a message without its page: sender, epoch, type, gfn,
 * home, flags, reason and txn.  For the caller that wants to know before it
 * looks a page up; dsm_step() asks it again.
 * @from: the peer at the other end of the connection that it came from.
 * Return: 0 or -(enum dsm_error).
 */
int dsm_check(const struct dsm_vm *vm, unsigned int from,
	      const struct dsm_msg *msg);

static inline uint16_t dsm_bit(unsigned int host)
{
	return (uint16_t)(1u << host);
}

#ifdef __cplusplus
}
#endif

#endif
