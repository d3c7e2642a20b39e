// SPDX-License-Identifier: GPL-2.0
/*
 * What a message may look like, as one table, and who is there to send it.
 */
#include <string.h>

#include "protocol.h"

enum way {
	TO_HOME,		/* of the gfn */
	FROM_HOME,
	TO_TOKEN_HOME,
	FROM_TOKEN_HOME,
};

#define REASON(r)	(1u << DSM_R_##r)
#define NO_REASON	REASON(NONE)

static const struct shape {
	const char *name;
	enum way way;
	bool page, txn;
	uint8_t flags;
	unsigned int reasons;
} shapes[DSM_NR_TYPES] = {
	[DSM_GETS]	  = { "GETS", TO_HOME, false, false,
			      DSM_F_PREFETCH | DSM_F_TOKEN, NO_REASON },
	[DSM_GETM]	  = { "GETM", TO_HOME, false, false,
			      DSM_F_PREFETCH | DSM_F_NODATA | DSM_F_TOKEN,
			      NO_REASON },
	[DSM_DROP]	  = { "DROP", TO_HOME, false, false, 0, NO_REASON },
	[DSM_POPULATE]	  = { "POPULATE", TO_HOME, false, false, 0, NO_REASON },
	[DSM_PUTM]	  = { "PUTM", TO_HOME, true, true, 0, NO_REASON },
	[DSM_PUTS]	  = { "PUTS", TO_HOME, false, false, 0, NO_REASON },
	[DSM_RECALL_S]	  = { "RECALL_S", FROM_HOME, false, true,
			      DSM_F_TOKEN, NO_REASON },
	[DSM_RECALL_I]	  = { "RECALL_I", FROM_HOME, false, true,
			      DSM_F_TOKEN, NO_REASON },
	[DSM_INV]	  = { "INV", FROM_HOME, false, true,
			      DSM_F_TOKEN, NO_REASON },
	[DSM_RDATA]	  = { "RDATA", TO_HOME, true, true,
			      DSM_F_KEPT, NO_REASON },
	[DSM_INV_ACK]	  = { "INV_ACK", TO_HOME, false, true, 0, NO_REASON },
	[DSM_BUSY_PIN]	  = { "BUSY_PIN", TO_HOME, false, true, 0, NO_REASON },
	[DSM_DATA_S]	  = { "DATA_S", FROM_HOME, true, true, 0, NO_REASON },
	[DSM_DATA_M]	  = { "DATA_M", FROM_HOME, true, true, 0, NO_REASON },
	[DSM_GRANT]	  = { "GRANT", FROM_HOME, false, true, 0, NO_REASON },
	[DSM_NACK]	  = { "NACK", FROM_HOME, false, true, 0,
			      REASON(BUSY) | REASON(PIN) | REASON(HOLE) |
			      REASON(PRIVATE) | REASON(STAYS) },
	[DSM_RESULT]	  = { "RESULT", FROM_HOME, false, true, 0,
			      REASON(NONE) | REASON(PIN) | REASON(HOLE) |
			      REASON(PRIVATE) | REASON(EXISTS) |
			      REASON(NOMEM) },
	[DSM_PUT_ACK]	  = { "PUT_ACK", FROM_HOME, false, true, 0, NO_REASON },
	[DSM_TOKEN_REQ]	  = { "TOKEN_REQ", TO_TOKEN_HOME, false, false,
			      0, NO_REASON },
	[DSM_TOKEN_GRANT] = { "TOKEN_GRANT", FROM_TOKEN_HOME, false, false,
			      0, NO_REASON },
	[DSM_TOKEN_FREE]  = { "TOKEN_FREE", TO_TOKEN_HOME, false, false,
			      0, NO_REASON },
};

static const char *const reasons[DSM_NR_REASONS] = {
	[DSM_R_NONE]	= "none",
	[DSM_R_BUSY]	= "busy",
	[DSM_R_PIN]	= "pin",
	[DSM_R_HOLE]	= "hole",
	[DSM_R_PRIVATE]	= "private",
	[DSM_R_LOST]	= "lost",
	[DSM_R_EXISTS]	= "exists",
	[DSM_R_NOMEM]	= "no memory",
	[DSM_R_BROKEN]	= "broken",
	[DSM_R_STAYS]	= "stays",
};

static const char *const errors[DSM_NR_ERRORS] = {
	[DSM_OK]		= "no error",
	[DSM_E_VERSION]		= "a version that we do not speak",
	[DSM_E_LENGTH]		= "a length that the type does not have",
	[DSM_E_RESERVED]	= "a reserved byte is not 0",
	[DSM_E_TYPE]		= "no such message",
	[DSM_E_PEER]		= "from a host that is not there",
	[DSM_E_EPOCH]		= "of another connection",
	[DSM_E_GFN]		= "no such page",
	[DSM_E_HOME]		= "the page's home is another host",
	[DSM_E_FLAGS]		= "flags that the type does not have",
	[DSM_E_REASON]		= "a reason that makes no sense here",
	[DSM_E_TXN]		= "the number of another transaction",
	[DSM_E_SECOND]		= "a second request",
	[DSM_E_HAS_IT]		= "a request for what the sender has",
	[DSM_E_NOT_OWNER]	= "written back by another than the owner",
	[DSM_E_NOT_SHARER]	= "given up by another than a sharer",
	[DSM_E_NOT_ASKED]	= "an answer that nobody waits for",
	[DSM_E_ANSWER]		= "an answer to another question",
	[DSM_E_NOT_HELD]	= "a recall of what is not here",
	[DSM_E_AGAIN]		= "a recall while one is open",
	[DSM_E_NO_REQUEST]	= "nothing was requested",
	[DSM_E_GRANT]		= "a grant that does not fit the request",
	[DSM_E_NO_WRITEBACK]	= "nothing was written back",
	[DSM_E_TOKEN]		= "the token is elsewhere",
	[DSM_E_VCPU]		= "no vCPU that is there",
	[DSM_E_VECTOR]		= "a vector that no interrupt has",
	[DSM_E_PORT]		= "no event channel that is there",
	[DSM_E_CALL]		= "a hypercall that is not done for other hosts",
	[DSM_E_RESULT]		= "the result of no hypercall",
	[DSM_E_TIME]		= "numbers that are no clock",
	[DSM_E_ACCESS]		= "an access that no instruction makes",
	[DSM_E_NOT_HOME]	= "only the home says so, or is told",
	[DSM_E_EVENT]		= "no such event",
	[DSM_E_OPERATION]	= "the result of a page operation is due",
	[DSM_E_NO_OPERATION]	= "no such result is due",
	[DSM_E_NOT_NOW]		= "not in this state",
	[DSM_E_BROKEN]		= "the VM has failed",
	[DSM_E_FULL]		= "there is no room",
};

static const char *const vcpu_types[DSM_VCPU_END - DSM_VCPU_EVENT] = {
	[DSM_VCPU_EVENT - DSM_VCPU_EVENT]    = "EVENT",
	[DSM_VCPU_PORTS - DSM_VCPU_EVENT]    = "PORTS",
	[DSM_VCPU_CALL - DSM_VCPU_EVENT]     = "CALL",
	[DSM_VCPU_REPLY - DSM_VCPU_EVENT]    = "REPLY",
	[DSM_VCPU_SHUTDOWN - DSM_VCPU_EVENT] = "SHUTDOWN",
	[DSM_VCPU_TIME - DSM_VCPU_EVENT]     = "TIME",
	[DSM_VCPU_READY - DSM_VCPU_EVENT]    = "READY",
	[DSM_VCPU_IDLE - DSM_VCPU_EVENT]     = "IDLE",
	[DSM_VCPU_STOP - DSM_VCPU_EVENT]     = "STOP",
	[DSM_VCPU_FENCE - DSM_VCPU_EVENT]    = "FENCE",
	[DSM_VCPU_QUIET - DSM_VCPU_EVENT]    = "QUIET",
	[DSM_VCPU_PLACE - DSM_VCPU_EVENT]    = "PLACE",
	[DSM_VCPU_PLACED - DSM_VCPU_EVENT]   = "PLACED",
	[DSM_VCPU_GO - DSM_VCPU_EVENT]	     = "GO",
	[DSM_VCPU_POLICY - DSM_VCPU_EVENT]   = "POLICY",
	[DSM_VCPU_TABLE - DSM_VCPU_EVENT]    = "TABLE",
	[DSM_VCPU_ACCESS - DSM_VCPU_EVENT]   = "ACCESS",
	[DSM_VCPU_ACCESSED - DSM_VCPU_EVENT] = "ACCESSED",
	[DSM_VCPU_PAUSE - DSM_VCPU_EVENT]    = "PAUSE",
	[DSM_VCPU_PAUSED - DSM_VCPU_EVENT]   = "PAUSED",
	[DSM_VCPU_TSC - DSM_VCPU_EVENT]	     = "TSC",
};

const char *dsm_type_name(unsigned int type)
{
	if (dsm_type_is_vcpu(type))
		return vcpu_types[type - DSM_VCPU_EVENT];
	return type < DSM_NR_TYPES && shapes[type].name ? shapes[type].name : "?";
}

const char *dsm_reason_name(unsigned int reason)
{
	return reason < DSM_NR_REASONS ? reasons[reason] : "?";
}

const char *dsm_error_name(unsigned int error)
{
	return error < DSM_NR_ERRORS ? errors[error] : "?";
}

bool dsm_type_has_page(unsigned int type)
{
	return type == DSM_VCPU_POLICY || type == DSM_VCPU_TABLE ||
	       (type < DSM_NR_TYPES && shapes[type].page);
}

bool dsm_type_is_vcpu(unsigned int type)
{
	return type >= DSM_VCPU_EVENT && type < DSM_VCPU_END;
}

unsigned int dsm_type_bytes(unsigned int type)
{
	if (dsm_type_has_page(type))
		return DSM_PAGE_BYTES;
	return dsm_type_is_vcpu(type) ? DSM_VCPU_BYTES : 0;
}

int dsm_vm_init(struct dsm_vm *vm, unsigned int self, unsigned int nr_hosts)
{
	if (!nr_hosts || nr_hosts > DSM_MAX_HOSTS || self >= nr_hosts)
		return -DSM_E_PEER;

	memset(vm, 0, sizeof(*vm));
	vm->self = (uint8_t)self;
	vm->nr_hosts = (uint8_t)nr_hosts;
	vm->max_losses = 8;
	return 0;
}

int dsm_vm_add_range(struct dsm_vm *vm, uint64_t start, uint64_t end,
		     unsigned int home)
{
	const struct dsm_range *r;

	if (home >= vm->nr_hosts)
		return -DSM_E_PEER;
	if (start >= end)
		return -DSM_E_GFN;
	for (r = vm->range; r < vm->range + vm->nr_ranges; r++)
		if (start < r->end && r->start < end)
			return -DSM_E_GFN;
	if (vm->nr_ranges == DSM_MAX_RANGES)
		return -DSM_E_FULL;

	vm->range[vm->nr_ranges++] = (struct dsm_range){
		.start = start, .end = end, .home = (uint8_t)home,
	};
	return 0;
}

unsigned int dsm_vm_range(const struct dsm_vm *vm, uint64_t gfn)
{
	unsigned int i;

	for (i = 0; i < vm->nr_ranges; i++)
		if (gfn >= vm->range[i].start && gfn < vm->range[i].end)
			return i;
	return DSM_MAX_RANGES;
}

unsigned int dsm_vm_home(const struct dsm_vm *vm, uint64_t gfn)
{
	unsigned int i = dsm_vm_range(vm, gfn);

	return i < DSM_MAX_RANGES ? vm->range[i].home : DSM_NOBODY;
}

bool dsm_epoch_is_later(uint32_t epoch, uint32_t before)
{
	uint32_t ahead = epoch - before;

	return epoch && (!before || (ahead && ahead < 1u << 31));
}

int dsm_vm_peer_up(struct dsm_vm *vm, unsigned int host, uint32_t epoch)
{
	if (host >= vm->nr_hosts || host == vm->self ||
	    (vm->up | vm->lost) & dsm_bit(host))
		return -DSM_E_PEER;
	if (!dsm_epoch_is_later(epoch, vm->epoch[host]))
		return -DSM_E_EPOCH;

	vm->epoch[host] = epoch;
	vm->up |= dsm_bit(host);
	return 0;
}

void dsm_vm_peer_down(struct dsm_vm *vm, unsigned int host)
{
	if (host >= vm->nr_hosts || !(vm->up & dsm_bit(host)))
		return;
	vm->up &= (uint16_t)~dsm_bit(host);
	vm->lost |= dsm_bit(host);
}

int dsm_vm_peer_left(struct dsm_vm *vm, unsigned int host)
{
	const struct dsm_range *r;

	if (host >= vm->nr_hosts || !(vm->lost & dsm_bit(host)))
		return -DSM_E_PEER;
	if (!(vm->unbound & dsm_bit(host))) {
		if (host == vm->token_home)
			return -DSM_E_HOME;
		for (r = vm->range; r < vm->range + vm->nr_ranges; r++)
			if (r->home == host)
				return -DSM_E_HOME;
	}
	vm->lost &= (uint16_t)~dsm_bit(host);
	return 0;
}

static bool goes_the_right_way(const struct dsm_vm *vm, unsigned int from,
			       enum way way, unsigned int home)
{
	switch (way) {
	case TO_HOME:
		return home == vm->self;
	case FROM_HOME:
		return home == from;
	case TO_TOKEN_HOME:
		return vm->token_home == vm->self;
	case FROM_TOKEN_HOME:
		return vm->token_home == from;
	}
	return false;
}

int dsm_check(const struct dsm_vm *vm, unsigned int from,
	      const struct dsm_msg *msg)
{
	const struct shape *s;
	bool about_page;

	if (from >= vm->nr_hosts || from == vm->self ||
	    !(vm->up & dsm_bit(from)))
		return -DSM_E_PEER;
	if (msg->epoch != vm->epoch[from])
		return -DSM_E_EPOCH;
	if (msg->type >= DSM_NR_TYPES || !shapes[msg->type].name)
		return -DSM_E_TYPE;

	s = &shapes[msg->type];
	about_page = s->way == TO_HOME || s->way == FROM_HOME;
	if (about_page ? dsm_vm_home(vm, msg->gfn) == DSM_NOBODY : msg->gfn)
		return -DSM_E_GFN;
	if (!goes_the_right_way(vm, from, s->way, dsm_vm_home(vm, msg->gfn)))
		return -DSM_E_HOME;
	if (msg->flags & ~s->flags)
		return -DSM_E_FLAGS;
	if (msg->reason >= DSM_NR_REASONS || !(s->reasons >> msg->reason & 1))
		return -DSM_E_REASON;
	if (s->txn != (msg->txn != 0))
		return -DSM_E_TXN;
	return 0;
}
