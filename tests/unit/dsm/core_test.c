// SPDX-License-Identifier: GPL-2.0
/*
 * The core by hand: what an honest exchange costs, and what each message that
 * a peer must not send is called.  All interleavings are the explorer's task.
 */
#include "case.h"
#include "page.h"

#define GFN	0x1234

/* Host 0 is at home; self is 0 for the directory, 1 for a holder. */
struct host {
	struct dsm_vm vm;
	struct dsm_page page;
	struct dsm_actions out;
};

static struct host host(unsigned int self, unsigned int nr_hosts)
{
	struct host h;
	unsigned int i;

	CHECK(!dsm_vm_init(&h.vm, self, nr_hosts), "a VM");
	CHECK(!dsm_vm_add_range(&h.vm, 0x1000, 0x2000, 0), "a range");
	CHECK(!dsm_vm_add_range(&h.vm, 0x2000, 0x3000, 1), "another");
	for (i = 0; i < nr_hosts; i++)
		if (i != self)
			CHECK(!dsm_vm_peer_up(&h.vm, i, 100 + i), "a peer");
	CHECK(!dsm_page_init(&h.page, &h.vm, GFN), "a page");
	h.out.nr = 0;
	return h;
}

static void check_rules(const struct host *h)
{
	const char *rule = dsm_page_broken_rule(&h->page, &h->vm);

	CHECK(!rule, "%s", rule);
}

static int give(struct host *h, struct dsm_event event)
{
	struct dsm_page before = h->page;
	int rc = dsm_step(&h->vm, &h->page, &event, &h->out);

	if (rc) {
		CHECK(!memcmp(&before, &h->page, sizeof(before)),
		      "an error changed the page");
		CHECK(!h->out.nr, "an error with actions");
	}
	CHECK(h->out.nr <= DSM_MAX_ACTIONS, "%u actions", h->out.nr);
	check_rules(h);
	return rc;
}

static struct dsm_event event(unsigned int type)
{
	return (struct dsm_event){ .type = (uint8_t)type };
}

static struct dsm_event message(unsigned int from, unsigned int type,
				unsigned int flags, uint32_t txn)
{
	return (struct dsm_event){
		.type = DSM_EV_MESSAGE,
		.from = (uint8_t)from,
		.msg = { .type = (uint8_t)type, .flags = (uint8_t)flags,
			 .epoch = 100 + from, .txn = txn, .gfn = GFN },
	};
}

static void fine(struct host *h, struct dsm_event e)
{
	int rc = give(h, e);

	CHECK(!rc, "%s: %s", dsm_event_name(e.type), dsm_error_name((unsigned int)-rc));
}

static void tell(struct host *h, unsigned int from, unsigned int type,
		 unsigned int flags, uint32_t txn)
{
	fine(h, message(from, type, flags, txn));
}

static void refuse(struct host *h, unsigned int from, unsigned int type,
		   unsigned int flags, uint32_t txn, int error)
{
	int rc = give(h, message(from, type, flags, txn));

	CHECK(rc == -error, "%s is '%s', not '%s'", dsm_type_name(type),
	      dsm_error_name((unsigned int)-rc), dsm_error_name((unsigned int)error));
}

/* The operation that is due has this result. */
static void result(struct host *h, unsigned int operation, unsigned int with)
{
	struct dsm_event e = event(DSM_EV_RESULT);

	CHECK(h->page.operation == operation, "%s is due, not %s",
	      dsm_operation_name(h->page.operation), dsm_operation_name(operation));
	CHECK(!h->out.nr ||
	      h->out.action[h->out.nr - 1].type == DSM_ACT_OPERATION,
	      "the operation is not the last action");
	e.result = (uint8_t)with;
	fine(h, e);
}

static void done(struct host *h, unsigned int operation)
{
	result(h, operation, DSM_OP_DONE);
}

static void miss(struct host *h, bool write, unsigned int flags)
{
	struct dsm_event e = event(DSM_EV_MISS);

	e.write = write;
	e.flags = (uint8_t)flags;
	fine(h, e);
}

static unsigned int count(const struct host *h, unsigned int action)
{
	unsigned int i, n = 0;

	for (i = 0; i < h->out.nr; i++)
		n += h->out.action[i].type == action;
	return n;
}

/* The message of this type that was sent to host @to; fails if there is none. */
static const struct dsm_msg *sent(const struct host *h, unsigned int to,
				  unsigned int type)
{
	unsigned int i;

	for (i = 0; i < h->out.nr; i++)
		if (h->out.action[i].type == DSM_ACT_SEND &&
		    h->out.action[i].host == to &&
		    h->out.action[i].msg.type == type)
			return &h->out.action[i].msg;
	CHECK(false, "no %s to host %u", dsm_type_name(type), to);
	return NULL;
}

static void lose(struct host *h, unsigned int peer)
{
	struct dsm_event e = event(DSM_EV_HOST_LOST);

	dsm_vm_peer_down(&h->vm, peer);
	e.from = (uint8_t)peer;
	fine(h, e);
}

/* The VM has failed, once, and that was all. */
static void check_failed(struct host *h, unsigned int because,
			 enum dsm_reason reason)
{
	unsigned int type;

	CHECK(h->out.nr == 1 && h->out.action[0].type == DSM_ACT_FAIL &&
	      h->out.action[0].host == because &&
	      h->out.action[0].reason == reason,
	      "not just FAIL because of host %u: %s", because,
	      dsm_reason_name(reason));
	CHECK(!dsm_page_is_idle(&h->page, &h->vm), "and is not forgotten");
	for (type = DSM_EV_MESSAGE; type < DSM_NR_EVENTS; type++)
		CHECK(give(h, event(type)) == -DSM_E_BROKEN, "%s after FAIL",
		      dsm_event_name(type));
}

/* A home whose page host @owner has. */
static struct host owned_by(unsigned int owner, unsigned int nr_hosts)
{
	struct host h = host(0, nr_hosts);

	tell(&h, owner, DSM_GETM, 0, 0);
	done(&h, DSM_OP_INVALIDATE);
	CHECK(sent(&h, owner, DSM_DATA_M)->txn == 1, "the first transaction");
	return h;
}

/* A home whose page all other hosts have, too. */
static struct host shared_by_all(unsigned int nr_hosts)
{
	struct host h = host(0, nr_hosts);
	unsigned int i;

	for (i = 1; i < nr_hosts; i++) {
		tell(&h, i, DSM_GETS, 0, 0);
		done(&h, i == 1 ? DSM_OP_DOWNGRADE : DSM_OP_READ);
		sent(&h, i, DSM_DATA_S);
	}
	return h;
}

/* A holder with the page in this state, of transaction 5. */
static struct host holder(enum dsm_state state)
{
	struct host h = host(1, 3);

	if (state == DSM_INVALID)
		return h;
	miss(&h, state == DSM_MODIFIED, 0);
	tell(&h, 0, state == DSM_MODIFIED ? DSM_DATA_M : DSM_DATA_S, 0, 5);
	done(&h, state == DSM_MODIFIED ? DSM_OP_INSTALL_M : DSM_OP_INSTALL_S);
	return h;
}

static void costs(const void *argument)
{
	struct host h = shared_by_all(DSM_MAX_HOSTS);
	unsigned int i, n = 0;

	(void)argument;
	/* GETM, INV and INV_ACK of each other sharer, GRANT. */
	tell(&h, 1, DSM_GETM, 0, 0);
	CHECK(count(&h, DSM_ACT_SEND) == DSM_MAX_HOSTS - 2, "INVs");
	for (i = 2; i < DSM_MAX_HOSTS; i++, n++)
		tell(&h, i, DSM_INV_ACK, 0, h.page.dir.txn);
	done(&h, DSM_OP_INVALIDATE);
	sent(&h, 1, DSM_GRANT);
	CHECK(count(&h, DSM_ACT_SEND) == 1, "nothing but GRANT");
	/* GETS, RECALL_S, RDATA, DATA_S. */
	tell(&h, 2, DSM_GETS, 0, 0);
	sent(&h, 1, DSM_RECALL_S);
	tell(&h, 1, DSM_RDATA, DSM_F_KEPT, h.page.dir.txn);
	done(&h, DSM_OP_INSTALL_S);
	sent(&h, 2, DSM_DATA_S);
	CHECK(h.page.dir.copyset == 7, "home, owner and reader share");
}

static void most_actions(const void *argument)
{
	struct host h = owned_by(1, DSM_MAX_HOSTS);
	unsigned int i;

	(void)argument;
	/* All wait for host 1; who comes first gets the page, the rest is told. */
	tell(&h, 2, DSM_GETM, 0, 0);
	fine(&h, event(DSM_EV_DROP));
	for (i = 3; i < DSM_MAX_HOSTS; i++)
		tell(&h, i, DSM_POPULATE, 0, 0);
	tell(&h, 1, DSM_RDATA, 0, 2);
	CHECK(count(&h, DSM_ACT_SEND) == 2, "DATA_M, RECALL_I");
	tell(&h, 2, DSM_BUSY_PIN, 0, 3);
	CHECK(count(&h, DSM_ACT_SEND) == DSM_MAX_HOSTS - 3, "a RESULT each");

	h = owned_by(1, DSM_MAX_HOSTS);
	tell(&h, 2, DSM_GETM, 0, 0);
	miss(&h, true, 0);
	for (i = 3; i < DSM_MAX_HOSTS; i++)
		tell(&h, i, DSM_GETS, 0, 0);
	lose(&h, 1);
	check_failed(&h, 1, DSM_R_LOST);
}

static void eviction_crosses_recall(const void *argument)
{
	struct host home = owned_by(1, 3), h = holder(DSM_MODIFIED);

	(void)argument;
	fine(&h, event(DSM_EV_EVICT));
	done(&h, DSM_OP_INVALIDATE);
	CHECK(sent(&h, 0, DSM_PUTM)->txn == 5, "the grant's number");
	tell(&h, 0, DSM_RECALL_S, 0, 6);
	CHECK(!sent(&h, 0, DSM_RDATA)->flags, "nothing is kept");
	CHECK(dsm_page_needs_buffer(&h.page), "until PUT_ACK");
	refuse(&h, 0, DSM_RECALL_I, 0, 7, DSM_E_AGAIN);
	refuse(&h, 0, DSM_INV, 0, 6, DSM_E_NOT_HELD);
	refuse(&h, 0, DSM_PUT_ACK, 0, 6, DSM_E_TXN);
	miss(&h, true, 0);
	CHECK(!h.out.nr, "waits for PUT_ACK");
	tell(&h, 0, DSM_PUT_ACK, 0, 5);
	sent(&h, 0, DSM_GETM);

	tell(&home, 2, DSM_GETS, 0, 0);
	refuse(&home, 2, DSM_PUTM, 0, 1, DSM_E_NOT_OWNER);
	refuse(&home, 1, DSM_PUTM, 0, 2, DSM_E_TXN);
	tell(&home, 1, DSM_PUTM, 0, 1);
	sent(&home, 1, DSM_PUT_ACK);
	CHECK(count(&home, DSM_ACT_TAKE) == 1, "the bytes are kept");
	refuse(&home, 1, DSM_PUTM, 0, 1, DSM_E_NOT_OWNER);
	refuse(&home, 1, DSM_RDATA, DSM_F_KEPT, 2, DSM_E_FLAGS);
	refuse(&home, 1, DSM_BUSY_PIN, 0, 2, DSM_E_ANSWER);
	tell(&home, 1, DSM_RDATA, 0, 2);
	CHECK(!count(&home, DSM_ACT_TAKE), "which are the same");
	done(&home, DSM_OP_INSTALL_S);
	CHECK(home.page.dir.copyset == 5, "not host 1");
}

/* What was written back is not lost with who wrote it back. */
static void lost_after_writing_back(const void *argument)
{
	struct host h = owned_by(1, 3);

	(void)argument;
	tell(&h, 2, DSM_GETS, 0, 0);
	tell(&h, 1, DSM_PUTM, 0, 1);
	lose(&h, 1);
	CHECK(!count(&h, DSM_ACT_FAIL), "the bytes are here");
	done(&h, DSM_OP_INSTALL_S);
	sent(&h, 2, DSM_DATA_S);
	CHECK(h.page.dir.copyset == 5, "not host 1");

	h = owned_by(1, 3);
	miss(&h, true, 0);
	tell(&h, 1, DSM_PUTM, 0, 1);
	lose(&h, 1);
	done(&h, DSM_OP_INSTALL_M);
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "at home");

	h = owned_by(1, 3);	/* and who asked for it is gone before */
	tell(&h, 2, DSM_GETM, 0, 0);
	tell(&h, 1, DSM_PUTM, 0, 1);
	lose(&h, 2);
	lose(&h, 1);
	done(&h, DSM_OP_INSTALL_M);
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "at home");
}

static void home_refuses(const void *argument)
{
	struct host h = owned_by(1, 4);

	(void)argument;
	refuse(&h, 1, DSM_GETS, 0, 0, DSM_E_HAS_IT);
	refuse(&h, 1, DSM_GETM, 0, 0, DSM_E_HAS_IT);
	refuse(&h, 2, DSM_PUTM, 0, 1, DSM_E_NOT_OWNER);
	refuse(&h, 1, DSM_PUTM, 0, 7, DSM_E_TXN);
	refuse(&h, 1, DSM_PUTS, 0, 0, DSM_E_NOT_SHARER);
	refuse(&h, 1, DSM_RDATA, 0, 1, DSM_E_NOT_ASKED);
	refuse(&h, 2, DSM_INV_ACK, 0, 1, DSM_E_NOT_ASKED);
	refuse(&h, 2, DSM_INV, 0, 1, DSM_E_HOME);
	refuse(&h, 2, DSM_DATA_S, 0, 1, DSM_E_HOME);

	tell(&h, 2, DSM_GETM, 0, 0);
	refuse(&h, 2, DSM_GETS, 0, 0, DSM_E_SECOND);
	tell(&h, 3, DSM_GETS, 0, 0);
	refuse(&h, 3, DSM_DROP, 0, 0, DSM_E_SECOND);
	refuse(&h, 1, DSM_RDATA, 0, 1, DSM_E_TXN);
	refuse(&h, 1, DSM_INV_ACK, 0, 2, DSM_E_ANSWER);
	refuse(&h, 1, DSM_RDATA, DSM_F_KEPT, 2, DSM_E_FLAGS);
	refuse(&h, 3, DSM_RDATA, 0, 2, DSM_E_NOT_ASKED);

	h = shared_by_all(4);
	refuse(&h, 1, DSM_GETS, 0, 0, DSM_E_HAS_IT);
	refuse(&h, 1, DSM_PUTM, 0, 1, DSM_E_NOT_OWNER);
	tell(&h, 1, DSM_GETM, 0, 0);
	refuse(&h, 1, DSM_PUTS, 0, 0, DSM_E_SECOND);
	refuse(&h, 2, DSM_RDATA, 0, h.page.dir.txn, DSM_E_ANSWER);
	tell(&h, 2, DSM_PUTS, 0, 0);
	refuse(&h, 2, DSM_PUTS, 0, 0, DSM_E_NOT_SHARER);
	tell(&h, 2, DSM_INV_ACK, 0, h.page.dir.txn);
	refuse(&h, 2, DSM_INV_ACK, 0, h.page.dir.txn, DSM_E_NOT_ASKED);
}

static void holder_refuses(const void *argument)
{
	struct dsm_event e;
	struct host h = holder(DSM_INVALID);

	(void)argument;
	refuse(&h, 0, DSM_DATA_S, 0, 1, DSM_E_NO_REQUEST);
	refuse(&h, 0, DSM_GRANT, 0, 1, DSM_E_NO_REQUEST);
	refuse(&h, 0, DSM_PUT_ACK, 0, 1, DSM_E_NO_WRITEBACK);
	refuse(&h, 0, DSM_RECALL_S, 0, 1, DSM_E_NOT_HELD);
	refuse(&h, 0, DSM_RECALL_I, 0, 1, DSM_E_NOT_HELD);
	refuse(&h, 0, DSM_GETS, 0, 0, DSM_E_HOME);
	refuse(&h, 2, DSM_INV, 0, 1, DSM_E_HOME);
	refuse(&h, 2, DSM_DATA_S, 0, 1, DSM_E_HOME);
	e = message(0, DSM_NACK, 0, 1);
	e.msg.reason = DSM_R_PIN;
	CHECK(give(&h, e) == -DSM_E_NO_REQUEST, "NACK without a request");
	e.msg.type = DSM_RESULT;
	CHECK(give(&h, e) == -DSM_E_NO_REQUEST, "RESULT without a request");

	miss(&h, false, 0);
	refuse(&h, 0, DSM_DATA_M, 0, 1, DSM_E_GRANT);
	refuse(&h, 0, DSM_GRANT, 0, 1, DSM_E_GRANT);
	e.msg.type = DSM_NACK;
	e.msg.reason = DSM_R_BUSY;
	CHECK(give(&h, e) == -DSM_E_REASON, "only a prefetch is refused so");
	e.msg.reason = DSM_R_EXISTS;
	CHECK(give(&h, e) == -DSM_E_REASON, "no reason for a NACK");

	h = holder(DSM_INVALID);
	miss(&h, true, 0);
	refuse(&h, 0, DSM_DATA_S, 0, 1, DSM_E_GRANT);
	refuse(&h, 0, DSM_GRANT, 0, 1, DSM_E_GRANT);

	h = holder(DSM_SHARED);
	refuse(&h, 0, DSM_RECALL_I, 0, 6, DSM_E_NOT_HELD);
	tell(&h, 0, DSM_INV, 0, 6);
	result(&h, DSM_OP_INVALIDATE, DSM_OP_BUSY);
	refuse(&h, 0, DSM_INV, 0, 7, DSM_E_AGAIN);

	h = holder(DSM_MODIFIED);
	refuse(&h, 0, DSM_INV, 0, 6, DSM_E_NOT_HELD);
}

static void anybody_refuses(const void *argument)
{
	struct host h = host(0, 3);
	struct dsm_event e = message(1, DSM_GETS, 0, 0);

	(void)argument;
	e.msg.epoch = 100;
	CHECK(give(&h, e) == -DSM_E_EPOCH, "of another connection");
	e = message(1, DSM_GETS, 0, 0);
	e.msg.gfn = 0x1235;
	CHECK(give(&h, e) == -DSM_E_GFN, "of another page");
	e.msg.gfn = 0x999999;
	CHECK(give(&h, e) == -DSM_E_GFN, "of no page");
	CHECK(dsm_check(&h.vm, 1, &e.msg) == -DSM_E_GFN, "of no page");
	e = message(1, DSM_GETS, 0, 0);
	e.msg.reason = DSM_R_PIN;
	CHECK(give(&h, e) == -DSM_E_REASON, "a request has no reason");
	e.msg.reason = 200;
	CHECK(give(&h, e) == -DSM_E_REASON, "no such reason");
	refuse(&h, 0, DSM_GETS, 0, 0, DSM_E_PEER);
	refuse(&h, 3, DSM_GETS, 0, 0, DSM_E_PEER);
	refuse(&h, 200, DSM_GETS, 0, 0, DSM_E_PEER);
	refuse(&h, 1, 0, 0, 0, DSM_E_TYPE);
	refuse(&h, 1, DSM_NR_TYPES, 0, 0, DSM_E_TYPE);
	refuse(&h, 1, 255, 0, 0, DSM_E_TYPE);
	refuse(&h, 1, DSM_GETS, DSM_F_NODATA, 0, DSM_E_FLAGS);
	refuse(&h, 1, DSM_PUTS, DSM_F_PREFETCH, 0, DSM_E_FLAGS);
	refuse(&h, 1, DSM_GETM, 0x80, 0, DSM_E_FLAGS);
	refuse(&h, 1, DSM_GETS, 0, 1, DSM_E_TXN);
	refuse(&h, 1, DSM_PUTM, 0, 0, DSM_E_TXN);
	dsm_vm_peer_down(&h.vm, 1);
	refuse(&h, 1, DSM_GETS, 0, 0, DSM_E_PEER);
	CHECK(h.vm.epoch[2] == 102, "the other peer's connection stays");
}

/* A host that was lost stays lost; one that left may come back, later. */
static void lost_for_ever(const void *argument)
{
	static const struct {
		uint32_t before, epoch;
		bool later;
	} epochs[] = {
		{ 0, 1, true }, { 0, UINT32_MAX, true }, { 5, 6, true },
		{ 5, 5, false }, { 5, 4, false }, { 5, 0, false },
		{ UINT32_MAX, 0, false }, { UINT32_MAX, 1, true },
		{ UINT32_MAX, UINT32_MAX, false }, { 1, UINT32_MAX, false },
		{ 5, 5 + (1u << 31) - 1, true }, { 5, 5 + (1u << 31), false },
	};
	static const uint32_t far[] = { 104, 1u << 31, UINT32_MAX, 1 };
	struct host h = host(2, 4), holds;
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(epochs) / sizeof(epochs[0]); i++)
		CHECK(dsm_epoch_is_later(epochs[i].epoch, epochs[i].before) ==
		      epochs[i].later, "%u after %u", epochs[i].epoch,
		      epochs[i].before);

	CHECK(dsm_vm_peer_up(&h.vm, 3, 104) == -DSM_E_PEER, "it is there");
	CHECK(dsm_vm_peer_left(&h.vm, 3) == -DSM_E_PEER, "it has not left");
	CHECK(dsm_vm_peer_left(&h.vm, 2) == -DSM_E_PEER, "ourselves");
	CHECK(dsm_vm_peer_left(&h.vm, 4) == -DSM_E_PEER, "no such host");
	dsm_vm_peer_down(&h.vm, 3);
	CHECK(dsm_vm_peer_up(&h.vm, 3, 104) == -DSM_E_PEER, "it was lost");
	CHECK(!dsm_vm_peer_left(&h.vm, 3), "it had nothing");
	CHECK(dsm_vm_peer_up(&h.vm, 3, 103) == -DSM_E_EPOCH, "the epoch before");
	CHECK(dsm_vm_peer_up(&h.vm, 3, 50) == -DSM_E_EPOCH, "an older one");
	for (i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		CHECK(!dsm_vm_peer_up(&h.vm, 3, far[i]), "%u", far[i]);
		dsm_vm_peer_down(&h.vm, 3);
		CHECK(!dsm_vm_peer_left(&h.vm, 3), "it had nothing");
	}
	CHECK(!dsm_vm_peer_up(&h.vm, 3, 2), "and on");
	CHECK(h.vm.epoch[0] == 100, "the others keep theirs");

	h.vm.token_home = 3;
	dsm_vm_peer_down(&h.vm, 3);
	CHECK(dsm_vm_peer_left(&h.vm, 3) == -DSM_E_HOME, "the token's home");
	dsm_vm_peer_down(&h.vm, 1);
	CHECK(dsm_vm_peer_left(&h.vm, 1) == -DSM_E_HOME, "a home of pages");
	h.vm.unbound = 1u << 0;
	CHECK(dsm_vm_peer_left(&h.vm, 1) == -DSM_E_HOME, "another is unbound");
	h.vm.unbound = 1u << 1;
	CHECK(dsm_vm_peer_left(&h.vm, 3) == -DSM_E_HOME, "another is unbound");
	CHECK(!dsm_vm_peer_left(&h.vm, 1), "nobody uses its pages");
	CHECK(dsm_vm_peer_left(&h.vm, 1) == -DSM_E_PEER, "it is not lost any more");
	h.vm.unbound = 1u << 3;
	CHECK(!dsm_vm_peer_left(&h.vm, 3), "nobody uses its token");

	/* What a holder has does not meet its home again. */
	holds = holder(DSM_SHARED);
	lose(&holds, 0);
	CHECK(dsm_vm_peer_up(&holds.vm, 0, 200) == -DSM_E_PEER, "lost");
	holds = holder(DSM_MODIFIED);
	lose(&holds, 0);
	CHECK(dsm_vm_peer_up(&holds.vm, 0, 200) == -DSM_E_PEER, "lost");
	dsm_vm_peer_down(&h.vm, 200);
}

static void caller_errs(const void *argument)
{
	struct host h = host(0, 2);
	struct dsm_event e = event(DSM_EV_RESULT);

	(void)argument;
	CHECK(give(&h, e) == -DSM_E_NO_OPERATION, "nothing is due");
	CHECK(give(&h, event(DSM_EV_EVICT)) == -DSM_E_NOT_NOW, "not at home");
	CHECK(give(&h, event(0)) == -DSM_E_EVENT, "no event");
	CHECK(give(&h, event(DSM_NR_EVENTS)) == -DSM_E_EVENT, "no event");
	e = event(DSM_EV_MISS);
	e.flags = DSM_F_NODATA;
	CHECK(give(&h, e) == -DSM_E_EVENT, "a read needs the bytes");
	e.flags = DSM_F_KEPT;
	CHECK(give(&h, e) == -DSM_E_EVENT, "no flag of a miss");
	e = event(DSM_EV_HOST_LOST);
	e.from = 1;
	CHECK(give(&h, e) == -DSM_E_PEER, "its connection is there");
	tell(&h, 1, DSM_GETS, 0, 0);
	CHECK(give(&h, event(DSM_EV_RETRY)) == -DSM_E_OPERATION, "a result is due");
	e = event(DSM_EV_RESULT);
	e.result = DSM_OP_NOMEM;
	CHECK(give(&h, e) == -DSM_E_NO_OPERATION, "not of a downgrade");
	e.result = DSM_NR_RESULTS;
	CHECK(give(&h, e) == -DSM_E_NO_OPERATION, "no result");
	result(&h, DSM_OP_DOWNGRADE, DSM_OP_BROKEN);
	check_failed(&h, 0, DSM_R_BROKEN);

	h = holder(DSM_INVALID);
	CHECK(give(&h, event(DSM_EV_PRIVATE)) == -DSM_E_EVENT, "not at home");
	CHECK(give(&h, event(DSM_EV_EVICT)) == -DSM_E_NOT_NOW, "nothing here");
}

/* The home reads; another write is called off; the home's writer is not lost. */
static void merged_at_home(const void *argument)
{
	struct host h = owned_by(1, 4);

	(void)argument;
	tell(&h, 2, DSM_GETS, 0, 0);
	tell(&h, 3, DSM_GETM, 0, 0);
	miss(&h, false, 0);
	tell(&h, 1, DSM_RDATA, DSM_F_KEPT, 2);
	done(&h, DSM_OP_INSTALL_S);
	sent(&h, 2, DSM_INV);
	miss(&h, true, 0);
	CHECK(!h.out.nr, "waits with the reader");
	tell(&h, 2, DSM_INV_ACK, 0, 3);
	tell(&h, 1, DSM_BUSY_PIN, 0, 3);
	CHECK(sent(&h, 3, DSM_NACK)->reason == DSM_R_PIN, "called off");
	CHECK(count(&h, DSM_ACT_WAKE) == 1, "and the home's vCPUs go on");
}

static void pins(const void *argument)
{
	struct host h = host(0, 3);

	(void)argument;
	tell(&h, 1, DSM_GETM, 0, 0);
	result(&h, DSM_OP_INVALIDATE, DSM_OP_BUSY);
	CHECK(count(&h, DSM_ACT_RETRY) == 1, "again, later");
	fine(&h, event(DSM_EV_RETRY));
	result(&h, DSM_OP_INVALIDATE, DSM_OP_BUSY);
	fine(&h, event(DSM_EV_PIN_TIMEOUT));
	CHECK(sent(&h, 1, DSM_NACK)->reason == DSM_R_PIN, "because of the pin");
	fine(&h, event(DSM_EV_PIN_TIMEOUT));
	fine(&h, event(DSM_EV_RETRY));
	CHECK(!h.out.nr, "too late, no harm");

	fine(&h, event(DSM_EV_PRIVATE));
	tell(&h, 1, DSM_GETS, 0, 0);
	CHECK(sent(&h, 1, DSM_NACK)->reason == DSM_R_PRIVATE, "never leaves");
	tell(&h, 1, DSM_DROP, 0, 0);
	CHECK(sent(&h, 1, DSM_RESULT)->reason == DSM_R_PRIVATE, "never freed");
	miss(&h, true, 0);
	CHECK(count(&h, DSM_ACT_WAKE) == 1, "the home may use it");
	h = shared_by_all(2);
	CHECK(give(&h, event(DSM_EV_PRIVATE)) == -DSM_E_NOT_NOW, "shared");
}

static void holes(const void *argument)
{
	struct host h = host(0, 2);

	(void)argument;
	tell(&h, 1, DSM_GETS, 0, 0);
	result(&h, DSM_OP_DOWNGRADE, DSM_OP_ABSENT);
	CHECK(sent(&h, 1, DSM_NACK)->reason == DSM_R_HOLE, "a hole");
	tell(&h, 1, DSM_POPULATE, 0, 0);
	result(&h, DSM_OP_POPULATE, DSM_OP_NOMEM);
	CHECK(sent(&h, 1, DSM_RESULT)->reason == DSM_R_NOMEM, "no frame");
	tell(&h, 1, DSM_POPULATE, 0, 0);
	result(&h, DSM_OP_POPULATE, DSM_OP_EXISTS);
	CHECK(sent(&h, 1, DSM_RESULT)->reason == DSM_R_EXISTS, "not a hole");
	tell(&h, 1, DSM_GETS, 0, 0);
	done(&h, DSM_OP_DOWNGRADE);
	fine(&h, event(DSM_EV_DROP));
	sent(&h, 1, DSM_INV);
	tell(&h, 1, DSM_INV_ACK, 0, h.page.dir.txn);
	done(&h, DSM_OP_DROP);
	CHECK(count(&h, DSM_ACT_FINISHED) == 1, "dropped");
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "the first state");

	h = holder(DSM_INVALID);
	fine(&h, event(DSM_EV_POPULATE));
	CHECK(give(&h, event(DSM_EV_DROP)) == -DSM_E_NOT_NOW, "one request");
	tell(&h, 0, DSM_RESULT, 0, 1);
	CHECK(count(&h, DSM_ACT_FINISHED) == 1, "populated");
	miss(&h, false, 0);
	{
		struct dsm_event e = message(0, DSM_NACK, 0, 2);

		e.msg.reason = DSM_R_HOLE;
		fine(&h, e);
	}
	CHECK(h.out.action[0].wake & DSM_WAKE_HOLE, "finds no memory");
}

static void leases(const void *argument)
{
	struct host h = host(1, 3);

	(void)argument;
	h.vm.leases = true;
	miss(&h, true, 0);
	tell(&h, 0, DSM_DATA_M, 0, 5);
	done(&h, DSM_OP_INSTALL_M);
	CHECK(give(&h, event(DSM_EV_EVICT)) == -DSM_E_NOT_NOW, "a lease");
	tell(&h, 0, DSM_RECALL_I, 0, 6);
	CHECK(!h.out.nr, "waits for the lease");
	fine(&h, event(DSM_EV_LEASE_OVER));
	done(&h, DSM_OP_INVALIDATE);
	CHECK(h.page.lost, "and counts as lost");

	miss(&h, true, 0);
	tell(&h, 0, DSM_DATA_M, 0, 7);
	done(&h, DSM_OP_INSTALL_M);
	tell(&h, 0, DSM_RECALL_I, DSM_F_TOKEN, 8);
	done(&h, DSM_OP_INVALIDATE);	/* gives way */

	miss(&h, true, DSM_F_TOKEN);
	CHECK(sent(&h, 0, DSM_GETM)->flags == DSM_F_TOKEN, "says so");
	tell(&h, 0, DSM_DATA_M, 0, 9);
	done(&h, DSM_OP_INSTALL_M);
	CHECK(give(&h, event(DSM_EV_EVICT)) == -DSM_E_NOT_NOW, "the token");
	tell(&h, 0, DSM_RECALL_S, 0, 10);
	CHECK(give(&h, event(DSM_EV_LEASE_OVER)) == -DSM_E_NOT_NOW, "never");
	fine(&h, event(DSM_EV_RETIRED));
	done(&h, DSM_OP_DOWNGRADE);
	CHECK(!h.page.lost, "it has retired");

	/* A request for the same page is out: the lease does not count. */
	h.page.lease = DSM_LEASE_TOKEN;
	tell(&h, 0, DSM_INV, 0, 11);
	CHECK(!h.out.nr, "waits");
	miss(&h, true, DSM_F_TOKEN);
	done(&h, DSM_OP_INVALIDATE);
	sent(&h, 0, DSM_INV_ACK);

	h = host(1, 3);
	h.vm.leases = true;
	miss(&h, false, DSM_F_PREFETCH);
	tell(&h, 0, DSM_DATA_S, 0, 5);
	done(&h, DSM_OP_INSTALL_S);
	CHECK(h.page.lease == DSM_LEASE_NONE, "a prefetch has none");
}

static void nack(struct host *h, enum dsm_reason reason, uint32_t txn)
{
	struct dsm_event e = message(0, DSM_NACK, 0, txn);

	e.msg.reason = (uint8_t)reason;
	fine(h, e);
}

/* Whatever becomes of a prefetch, the VM goes on; a vCPU that waits is told. */
static void prefetches(const void *argument)
{
	struct host h = holder(DSM_INVALID);

	(void)argument;
	miss(&h, false, DSM_F_PREFETCH);
	nack(&h, DSM_R_PRIVATE, 1);
	CHECK(!count(&h, DSM_ACT_FAIL), "nobody touched a private page");
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "nothing is left");
	miss(&h, false, DSM_F_PREFETCH);
	nack(&h, DSM_R_HOLE, 2);
	CHECK(h.out.nr == 1 && h.out.action[0].wake == DSM_WAKE_ALL, "nobody met a hole");
	miss(&h, false, DSM_F_PREFETCH);
	miss(&h, false, 0);
	nack(&h, DSM_R_PRIVATE, 3);
	CHECK(h.out.nr == 1 && !sent(&h, 0, DSM_GETS)->flags, "it may leave by now: asked for who waits");
	nack(&h, DSM_R_PRIVATE, 4);
	check_failed(&h, 0, DSM_R_PRIVATE);

	h = holder(DSM_INVALID);
	miss(&h, true, 0);
	nack(&h, DSM_R_PRIVATE, 1);
	check_failed(&h, 0, DSM_R_PRIVATE);
}

static void check_told(const struct host *h, const char *what)
{
	CHECK(!count(h, DSM_ACT_FAIL) && h->out.nr == 1 && h->out.action[0].type == DSM_ACT_WAKE &&
	      h->out.action[0].wake == (DSM_WAKE_ALL | DSM_WAKE_HOLE), "%s: finds no memory", what);
	CHECK(dsm_page_is_idle(&h->page, &h->vm) && !h->page.demand && !h->page.stopped, "%s: nothing is left", what);
}

/* A tool is not stopped by what it misses: it finds none where it can't have the page. */
static void tools(const void *argument)
{
	struct host h = holder(DSM_INVALID);
	unsigned int first, next;

	(void)argument;
	miss(&h, false, DSM_F_TOOL);
	CHECK(h.out.nr == 1 && !h.out.action[0].msg.flags, "no other host hears of that");
	nack(&h, DSM_R_PRIVATE, 1);
	check_told(&h, "private");
	miss(&h, true, DSM_F_TOOL);
	nack(&h, DSM_R_HOLE, 2);
	check_told(&h, "a hole");
	miss(&h, true, DSM_F_TOOL);
	lose(&h, 0);
	check_told(&h, "lost meanwhile");
	miss(&h, true, DSM_F_TOOL);
	check_told(&h, "lost before");
	miss(&h, true, 0);
	check_failed(&h, 0, DSM_R_LOST);

	/* Whoever else waits for it, before or after: the VM can't go on. */
	for (first = 0; first < 2; first++) {
		h = holder(DSM_INVALID);
		for (next = 0; next < 2; next++)
			miss(&h, false, next == first ? DSM_F_TOOL : 0);
		nack(&h, DSM_R_PRIVATE, 1);
		CHECK(h.out.nr == 1 && sent(&h, 0, DSM_GETS) && h.page.stopped, "that may be older than the second one");
		nack(&h, DSM_R_PRIVATE, 2);
		check_failed(&h, 0, DSM_R_PRIVATE);
	}

	/* One that has come before is no vCPU's that comes later. */
	h = holder(DSM_INVALID);
	miss(&h, false, 0);
	nack(&h, DSM_R_HOLE, 1);
	miss(&h, false, DSM_F_TOOL);
	nack(&h, DSM_R_PRIVATE, 2);
	check_told(&h, "after a vCPU's");
	CHECK(give(&h, (struct dsm_event){ .type = DSM_EV_MISS, .flags = DSM_F_TOOL | DSM_F_PREFETCH }) == -DSM_E_EVENT,
	      "a tool asks for nothing ahead");

	h = holder(DSM_INVALID);
	lose(&h, 0);
	miss(&h, false, DSM_F_PREFETCH);
	CHECK(!h.out.nr && dsm_page_is_idle(&h.page, &h.vm), "no home, no prefetch");

	h = host(0, 3);		/* at the home */
	fine(&h, event(DSM_EV_PRIVATE));
	tell(&h, 1, DSM_GETS, DSM_F_PREFETCH, 0);
	CHECK(sent(&h, 1, DSM_NACK)->reason == DSM_R_PRIVATE, "never leaves");
}

/* What is old, and what is not: a pin, or that it stays, is said of now; what is asked for again is the same. */
static void asked_once_more(const void *argument)
{
	static const struct {
		enum dsm_reason reason;
		unsigned int action;
	} said[] = {
		{ DSM_R_PIN, DSM_ACT_WAKE }, { DSM_R_STAYS, DSM_ACT_STAYS },
		{ DSM_R_HOLE, DSM_ACT_SEND }, { DSM_R_PRIVATE, DSM_ACT_SEND },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		struct host h = holder(DSM_INVALID);

		h.vm.used_at_home = dsm_bit(0);
		miss(&h, true, 0);
		miss(&h, true, DSM_F_TOOL);
		nack(&h, said[i].reason, 1);
		CHECK(h.out.nr == 1 && h.out.action[0].type == said[i].action, "%u: what is done", i);
		CHECK(said[i].action != DSM_ACT_SEND || sent(&h, 0, DSM_GETM), "%u: to write, as before", i);
	}
}

/* Who waits, and for what: a struct that no event makes. */
static void who_waits(const void *argument)
{
	struct host h = holder(DSM_INVALID);

	(void)argument;
	h.page.demand = true;
	CHECK(dsm_page_broken_rule(&h.page, &h.vm), "waits for what nobody asks for");
	h.page.request = DSM_GETS;
	CHECK(!dsm_page_broken_rule(&h.page, &h.vm), "it is asked for");
	h.page.stopped = true;
	CHECK(!dsm_page_broken_rule(&h.page, &h.vm), "and stops somebody");
	h.page.demand = false;
	CHECK(dsm_page_broken_rule(&h.page, &h.vm), "stopped, and does not wait");
}

/* A tool that joins others, or is joined: what is whose. */
static void tools_beside(const void *argument)
{
	struct host h = holder(DSM_INVALID);
	unsigned int beside;

	(void)argument;
	miss(&h, false, DSM_F_PREFETCH);
	miss(&h, false, DSM_F_TOOL);
	nack(&h, DSM_R_HOLE, 1);
	CHECK(h.out.nr == 1 && sent(&h, 0, DSM_GETS), "nobody waited when that was asked");
	miss(&h, true, DSM_F_TOOL);
	nack(&h, DSM_R_PRIVATE, 2);
	CHECK(h.out.nr == 1 && sent(&h, 0, DSM_GETS), "nor did the second tool");
	nack(&h, DSM_R_PRIVATE, 3);
	check_told(&h, "tools alone");

	/* Who is stopped is so when it is asked for again. */
	miss(&h, false, 0);
	miss(&h, false, DSM_F_TOOL);
	nack(&h, DSM_R_HOLE, 4);
	nack(&h, DSM_R_PRIVATE, 5);
	check_failed(&h, 0, DSM_R_PRIVATE);

	/* What is asked for when the write-back is answered: for a tool, and for a vCPU too. */
	for (beside = 0; beside < 2; beside++) {
		h = holder(DSM_MODIFIED);
		fine(&h, event(DSM_EV_EVICT));
		done(&h, DSM_OP_INVALIDATE);
		if (beside)
			miss(&h, false, 0);
		miss(&h, false, DSM_F_TOOL);
		tell(&h, 0, DSM_PUT_ACK, 0, h.page.grant);
		CHECK(sent(&h, 0, DSM_GETS) && h.page.stopped == beside, "%u: asked", beside);
		nack(&h, DSM_R_PRIVATE, 20);
		if (beside)
			check_failed(&h, 0, DSM_R_PRIVATE);
		else
			check_told(&h, "after a write-back");
	}

	/* Nobody is stopped by what is here, or any more when it came. */
	h = holder(DSM_SHARED);
	miss(&h, false, 0);
	CHECK(!h.page.stopped, "it is here");
	h = holder(DSM_INVALID);
	miss(&h, false, 0);
	miss(&h, false, DSM_F_TOOL);
	tell(&h, 0, DSM_DATA_S, 0, 5);
	done(&h, DSM_OP_INSTALL_S);
	CHECK(!h.page.stopped, "it came");

	/* With its home goes what is here, and what was asked for nobody. */
	h = holder(DSM_SHARED);
	miss(&h, true, DSM_F_TOOL);
	lose(&h, 0);
	check_failed(&h, 0, DSM_R_LOST);
	h = holder(DSM_INVALID);
	miss(&h, false, DSM_F_PREFETCH);
	lose(&h, 0);
	check_failed(&h, 0, DSM_R_LOST);

	/* What can be used at its home a tool's miss makes so, too. */
	h = holder(DSM_INVALID);
	h.vm.used_at_home = dsm_bit(0);
	miss(&h, false, DSM_F_TOOL);
	nack(&h, DSM_R_STAYS, 1);
	CHECK(count(&h, DSM_ACT_STAYS) == 1 && h.out.nr == 1, "used there");
}

/* In use for ever, while others wait: all of them hear it at once, and who asks behind them. */
static void private_for_all(const void *argument)
{
	struct host h = host(0, 5);
	unsigned int i;

	(void)argument;
	tell(&h, 1, DSM_GETM, 0, 0);
	CHECK(give(&h, event(DSM_EV_PRIVATE)) == -DSM_E_OPERATION, "on its way");
	result(&h, DSM_OP_INVALIDATE, DSM_OP_BUSY);
	tell(&h, 2, DSM_GETS, 0, 0);
	tell(&h, 3, DSM_GETM, DSM_F_NODATA, 0);
	tell(&h, 4, DSM_DROP, 0, 0);
	fine(&h, event(DSM_EV_PRIVATE));
	for (i = 1; i < 4; i++)
		CHECK(sent(&h, i, DSM_NACK)->reason == DSM_R_PRIVATE, "host %u", i);
	CHECK(sent(&h, 4, DSM_RESULT)->reason == DSM_R_PRIVATE && h.out.nr == 4, "never freed");
	CHECK(h.page.dir.mode == DSM_MODE_PRIVATE && h.page.dir.phase == DSM_IDLE && !h.page.dir.nr_queued, "nobody waits");
	tell(&h, 2, DSM_GETM, 0, 0);
	CHECK(sent(&h, 2, DSM_NACK)->reason == DSM_R_PRIVATE, "nor from now on");
	/* By nobody else: what is to be freed, and the home that frees it. */
	h = host(0, 2);
	tell(&h, 1, DSM_DROP, 0, 0);
	result(&h, DSM_OP_DROP, DSM_OP_BUSY);
	fine(&h, event(DSM_EV_PRIVATE));
	CHECK(sent(&h, 1, DSM_RESULT)->reason == DSM_R_PRIVATE, "never freed");
	h = host(0, 2);
	tell(&h, 1, DSM_GETM, 0, 0);
	result(&h, DSM_OP_INVALIDATE, DSM_OP_BUSY);
	fine(&h, event(DSM_EV_DROP));
	fine(&h, event(DSM_EV_PRIVATE));
	CHECK(count(&h, DSM_ACT_FINISHED) == 1 && h.out.action[h.out.nr - 1].reason == DSM_R_PRIVATE && !h.page.request,
	      "nor by the home");
	/* Nobody asks. */
	h = host(0, 2);
	fine(&h, event(DSM_EV_PRIVATE));
	CHECK(!h.out.nr && h.page.dir.mode == DSM_MODE_PRIVATE, "nobody hears it");
	/* Not what others have a copy of, and not what a lease keeps. */
	h = shared_by_all(3);
	tell(&h, 1, DSM_GETM, 0, 0);
	tell(&h, 2, DSM_INV_ACK, 0, h.page.dir.txn);
	result(&h, DSM_OP_INVALIDATE, DSM_OP_BUSY);
	CHECK(give(&h, event(DSM_EV_PRIVATE)) == -DSM_E_NOT_NOW && !h.out.nr, "who asked has a copy");
	h = host(0, 2);
	h.vm.leases = true;
	h.page.lease = DSM_LEASE_ACTIVE;
	tell(&h, 1, DSM_GETM, 0, 0);
	CHECK(give(&h, event(DSM_EV_PRIVATE)) == -DSM_E_NOT_NOW, "somebody waits for it");
}

/* In use for too long, while others wait; and what becomes of it. */
static void stays_at_home(const void *argument)
{
	struct host h = host(0, 4);
	struct dsm_event e;

	(void)argument;
	tell(&h, 1, DSM_GETM, 0, 0);
	result(&h, DSM_OP_INVALIDATE, DSM_OP_BUSY);
	tell(&h, 2, DSM_GETS, 0, 0);
	tell(&h, 3, DSM_DROP, 0, 0);
	fine(&h, event(DSM_EV_STAYS));
	CHECK(sent(&h, 1, DSM_NACK)->reason == DSM_R_STAYS && h.page.dir.mode == DSM_MODE_MODIFIED, "who waits");
	CHECK(h.page.dir.now.host == 2 && h.page.operation == DSM_OP_DOWNGRADE, "then the next one");
	result(&h, DSM_OP_DOWNGRADE, DSM_OP_BUSY);
	fine(&h, event(DSM_EV_STAYS));
	CHECK(sent(&h, 2, DSM_NACK)->reason == DSM_R_STAYS, "a reader as well");
	result(&h, DSM_OP_DROP, DSM_OP_BUSY);
	CHECK(give(&h, event(DSM_EV_STAYS)) == -DSM_E_NOT_NOW, "to be freed is no use");
	fine(&h, event(DSM_EV_PIN_TIMEOUT));
	CHECK(sent(&h, 3, DSM_RESULT)->reason == DSM_R_PIN, "as before");
	CHECK(give(&h, event(DSM_EV_STAYS)) == -DSM_E_NOT_NOW, "nobody waits");
	h = shared_by_all(3);
	tell(&h, 1, DSM_GETM, 0, 0);
	tell(&h, 2, DSM_INV_ACK, 0, h.page.dir.txn);
	result(&h, DSM_OP_INVALIDATE, DSM_OP_BUSY);
	CHECK(give(&h, event(DSM_EV_STAYS)) == -DSM_E_NOT_NOW, "who asked has a copy");

	h = host(0, 4);
	fine(&h, event(DSM_EV_PRIVATE));
	fine(&h, event(DSM_EV_PUBLIC));
	CHECK(!h.out.nr && dsm_page_is_idle(&h.page, &h.vm), "as at first");
	CHECK(give(&h, event(DSM_EV_PUBLIC)) == -DSM_E_NOT_NOW, "once");
	tell(&h, 1, DSM_GETM, 0, 0);
	done(&h, DSM_OP_INVALIDATE);
	CHECK(sent(&h, 1, DSM_DATA_M), "it leaves");
	/* A lease is no use for too long. */
	h = host(0, 2);
	h.vm.leases = true;
	h.page.lease = DSM_LEASE_ACTIVE;
	tell(&h, 1, DSM_GETM, 0, 0);
	CHECK(h.page.dir.phase == DSM_LOCAL && !h.page.operation, "it waits for the lease");
	CHECK(give(&h, event(DSM_EV_STAYS)) == -DSM_E_NOT_NOW, "somebody waits for it");

	/* Elsewhere: who waits uses it there, and a prefetch is nobody. */
	h = holder(DSM_INVALID);
	CHECK(give(&h, event(DSM_EV_PUBLIC)) == -DSM_E_EVENT, "not at home");
	CHECK(give(&h, event(DSM_EV_STAYS)) == -DSM_E_EVENT, "not at home");
	h.vm.used_at_home = dsm_bit(0);
	miss(&h, true, 0);
	nack(&h, DSM_R_PRIVATE, 1);
	CHECK(h.out.nr == 1 && h.out.action[0].type == DSM_ACT_STAYS && !h.page.broken &&
	      h.out.action[0].reason == DSM_R_PRIVATE && dsm_page_is_idle(&h.page, &h.vm), "it stays");
	miss(&h, true, 0);
	nack(&h, DSM_R_STAYS, 1);
	CHECK(h.out.nr == 1 && h.out.action[0].type == DSM_ACT_STAYS && h.out.action[0].reason == DSM_R_STAYS, "for a while");
	miss(&h, false, DSM_F_PREFETCH);
	nack(&h, DSM_R_PRIVATE, 2);
	CHECK(!count(&h, DSM_ACT_STAYS), "nobody waits");
	/* Of this home only. */
	h.vm.used_at_home = dsm_bit(2);
	miss(&h, true, 0);
	nack(&h, DSM_R_STAYS, 3);
	CHECK(h.out.nr == 1 && h.out.action[0].wake == DSM_WAKE_ALL, "it is asked for again");
	h = holder(DSM_SHARED);
	miss(&h, true, 0);
	e = message(0, DSM_NACK, 0, 1);
	e.msg.reason = DSM_R_STAYS;
	CHECK(give(&h, e) == -DSM_E_REASON, "our copy would have been recalled");
	h = holder(DSM_INVALID);
	h.vm.used_at_home = dsm_bit(2);
	miss(&h, true, 0);
	nack(&h, DSM_R_PRIVATE, 3);
	CHECK(count(&h, DSM_ACT_FAIL) == 1, "the end");
}

/* A home of which one other host has a copy. */
static struct host shared_by(unsigned int reader, unsigned int nr_hosts)
{
	struct host h = host(0, nr_hosts);

	tell(&h, reader, DSM_GETS, 0, 0);
	done(&h, DSM_OP_DOWNGRADE);
	sent(&h, reader, DSM_DATA_S);
	return h;
}

/* Whether @type, ahead of time, from host 1 of three is refused since it is not the time. */
static bool not_the_time(struct host *h, unsigned int type)
{
	tell(h, 1, type, DSM_F_PREFETCH, 0);
	return count(h, DSM_ACT_SEND) == 1 && h->out.action[0].msg.type == DSM_NACK &&
	       sent(h, 1, DSM_NACK)->reason == DSM_R_BUSY && !h->page.operation;
}

/* A page that will be written comes ahead of time from its home, if no other host has it. */
static void prefetches_to_write(const void *argument)
{
	struct host h = host(0, 3);

	(void)argument;
	CHECK(!not_the_time(&h, DSM_GETM), "only the home has it");
	done(&h, DSM_OP_INVALIDATE);
	sent(&h, 1, DSM_DATA_M);
	CHECK(dsm_page_only_at(&h.page, 1), "it went");

	h = shared_by(2, 3);
	tell(&h, 2, DSM_PUTS, 0, 0);
	CHECK(!not_the_time(&h, DSM_GETM), "nobody has it any more but the home");
	done(&h, DSM_OP_INVALIDATE);
	sent(&h, 1, DSM_DATA_M);

	h = shared_by(2, 3);
	CHECK(not_the_time(&h, DSM_GETM), "another host reads it");
	CHECK(h.page.dir.copyset & dsm_bit(2), "and has it still");
	h = owned_by(2, 3);
	CHECK(not_the_time(&h, DSM_GETM), "another host writes it");
	h = owned_by(2, 3);
	CHECK(!not_the_time(&h, DSM_GETS), "who reads ahead may ask the owner");
	h = host(0, 3);
	fine(&h, event(DSM_EV_PRIVATE));
	tell(&h, 1, DSM_GETM, DSM_F_PREFETCH, 0);
	CHECK(sent(&h, 1, DSM_NACK)->reason == DSM_R_PRIVATE, "never leaves");

	h = shared_by(1, 3);
	refuse(&h, 1, DSM_GETM, DSM_F_PREFETCH, 0, DSM_E_HAS_IT);
	h = host(0, 3);
	refuse(&h, 1, DSM_GETM, DSM_F_PREFETCH | DSM_F_NODATA, 0, DSM_E_FLAGS);

	/* Who asks has nothing, and wants the bytes. */
	h = holder(DSM_INVALID);
	miss(&h, true, DSM_F_PREFETCH);
	CHECK(sent(&h, 0, DSM_GETM)->flags == DSM_F_PREFETCH, "says so");
	miss(&h, false, 0);
	nack(&h, DSM_R_BUSY, 1);
	CHECK(h.out.nr == 1 && h.out.action[0].wake == DSM_WAKE_ALL, "who waits asks again");
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "nothing is left");
	miss(&h, true, DSM_F_PREFETCH);
	tell(&h, 0, DSM_DATA_M, 0, 7);
	done(&h, DSM_OP_INSTALL_M);
	CHECK(h.page.state == DSM_MODIFIED && h.page.lease == DSM_LEASE_NONE, "it is here");
	h = holder(DSM_SHARED);
	miss(&h, true, DSM_F_PREFETCH);
	CHECK(!h.out.nr && !h.page.request, "a copy is no reason to ask");
	h = holder(DSM_INVALID);
	{
		struct dsm_event e = event(DSM_EV_MISS);

		e.write = true;
		e.flags = DSM_F_PREFETCH | DSM_F_NODATA;
		CHECK(give(&h, e) == -DSM_E_EVENT, "nobody overwrites it");
	}
}

/* A hole that was found before the access began is not the access's. */
static void old_holes(const void *argument)
{
	struct host h = holder(DSM_INVALID);

	(void)argument;
	miss(&h, true, 0);
	nack(&h, DSM_R_HOLE, 1);
	CHECK(h.out.action[0].wake & DSM_WAKE_HOLE, "its own hole");

	miss(&h, false, DSM_F_PREFETCH);
	miss(&h, false, DSM_F_TOKEN);
	nack(&h, DSM_R_HOLE, 2);
	CHECK(h.out.nr == 1 && sent(&h, 0, DSM_GETS)->flags == DSM_F_TOKEN,
	      "asked again, and not as a prefetch");
	miss(&h, true, 0);
	nack(&h, DSM_R_HOLE, 3);
	CHECK(h.out.nr == 1 && sent(&h, 0, DSM_GETS), "again for the writer");
	nack(&h, DSM_R_HOLE, 4);
	CHECK(h.out.action[0].wake == (DSM_WAKE_ALL | DSM_WAKE_HOLE),
	      "a hole for all");
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "nothing is left");

	miss(&h, false, 0);
	miss(&h, true, 0);
	nack(&h, DSM_R_HOLE, 5);
	tell(&h, 0, DSM_DATA_S, 0, 6);	/* it was populated in between */
	done(&h, DSM_OP_INSTALL_S);
	CHECK(h.page.state == DSM_SHARED && !h.page.merged, "it came");
}

static void hosts_lost(const void *argument)
{
	struct host h = owned_by(1, 3);

	(void)argument;
	CHECK(dsm_page_only_at(&h.page, 1), "only there");
	lose(&h, 1);
	check_failed(&h, 1, DSM_R_LOST);

	h = owned_by(1, 3);	/* the same while others wait for it */
	tell(&h, 2, DSM_GETS, 0, 0);
	miss(&h, true, 0);
	lose(&h, 1);
	check_failed(&h, 1, DSM_R_LOST);

	h = owned_by(1, 3);	/* who asked for a hole is gone */
	tell(&h, 2, DSM_DROP, 0, 0);
	lose(&h, 2);
	tell(&h, 1, DSM_RDATA, 0, 2);
	done(&h, DSM_OP_INSTALL_M);
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "the bytes came home");

	h = owned_by(1, 3);	/* who wanted to zero it is gone */
	tell(&h, 2, DSM_GETM, DSM_F_NODATA, 0);
	lose(&h, 2);
	tell(&h, 1, DSM_RDATA, 0, 2);
	done(&h, DSM_OP_INSTALL_M);

	h = host(0, 3);		/* the home keeps what it was about to give */
	tell(&h, 1, DSM_GETM, 0, 0);
	result(&h, DSM_OP_INVALIDATE, DSM_OP_BUSY);
	tell(&h, 2, DSM_GETS, 0, 0);
	lose(&h, 1);
	done(&h, DSM_OP_DOWNGRADE);
	sent(&h, 2, DSM_DATA_S);

	h = holder(DSM_INVALID);
	lose(&h, 0);
	CHECK(!h.out.nr, "nothing was here");
	miss(&h, true, 0);	/* but now it is missed */
	check_failed(&h, 0, DSM_R_LOST);
	h = holder(DSM_MODIFIED);
	lose(&h, 2);
	CHECK(!h.out.nr, "not our home");
	lose(&h, 0);
	check_failed(&h, 0, DSM_R_LOST);
	h = holder(DSM_INVALID);	/* our home, which we have asked */
	miss(&h, false, 0);
	lose(&h, 0);
	check_failed(&h, 0, DSM_R_LOST);
}

/* The connection is gone while Xen works for the host at its other end. */
static void lost_meanwhile(const void *argument)
{
	struct dsm_event e = event(DSM_EV_HOST_LOST);
	struct host h = host(0, 3);

	(void)argument;
	e.from = 1;
	/* The home gives its page away: the only bytes are in its buffer. */
	tell(&h, 1, DSM_GETM, 0, 0);
	dsm_vm_peer_down(&h.vm, 1);
	CHECK(give(&h, e) == -DSM_E_OPERATION, "a result is due");
	done(&h, DSM_OP_INVALIDATE);
	CHECK(!count(&h, DSM_ACT_SEND), "nothing for who is gone");
	CHECK(give(&h, e) == -DSM_E_OPERATION, "another is due");
	done(&h, DSM_OP_INSTALL_M);
	fine(&h, e);
	CHECK(!count(&h, DSM_ACT_FAIL), "nothing is lost");
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "the page is at home");

	h = owned_by(1, 4);	/* what host 1 sent for host 2 */
	tell(&h, 2, DSM_GETM, DSM_F_NODATA, 0);
	dsm_vm_peer_down(&h.vm, 2);
	tell(&h, 1, DSM_RDATA, 0, 2);
	done(&h, DSM_OP_INSTALL_M);
	e.from = 2;
	fine(&h, e);
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "is not thrown away");

	h = owned_by(1, 3);	/* it writes the page back */
	tell(&h, 1, DSM_PUTM, 0, 1);
	dsm_vm_peer_down(&h.vm, 1);
	done(&h, DSM_OP_INSTALL_M);
	e.from = 1;
	fine(&h, e);
	CHECK(!h.out.nr && dsm_page_is_idle(&h.page, &h.vm), "is at home");

	h = shared_by_all(3);	/* the only copy was there: that is a loss */
	tell(&h, 1, DSM_GETM, 0, 0);
	tell(&h, 2, DSM_INV_ACK, 0, h.page.dir.txn);
	dsm_vm_peer_down(&h.vm, 1);
	done(&h, DSM_OP_INVALIDATE);
	fine(&h, e);
	check_failed(&h, 1, DSM_R_LOST);

	h = shared_by_all(4);	/* who waits behind it gets it */
	tell(&h, 3, DSM_PUTS, 0, 0);
	tell(&h, 3, DSM_GETS, 0, 0);
	h.page.dir.queue[h.page.dir.nr_queued++] = (struct dsm_request){
		.host = 1, .type = DSM_GETM,
	};
	dsm_vm_peer_down(&h.vm, 1);
	done(&h, DSM_OP_READ);
	sent(&h, 3, DSM_DATA_S);
	fine(&h, e);
	tell(&h, 2, DSM_INV_ACK, 0, h.page.dir.txn);
	tell(&h, 3, DSM_INV_ACK, 0, h.page.dir.txn);
	done(&h, DSM_OP_UPGRADE);
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "the page is at home");

	h = holder(DSM_MODIFIED);	/* the home is gone during an eviction */
	fine(&h, event(DSM_EV_EVICT));
	dsm_vm_peer_down(&h.vm, 0);
	done(&h, DSM_OP_INVALIDATE);
	CHECK(!h.out.nr, "nobody to send it to");
	e.from = 0;
	fine(&h, e);
	check_failed(&h, 0, DSM_R_LOST);
}

static void ranges(const void *argument)
{
	struct dsm_vm vm;
	struct dsm_page page;
	unsigned int i;

	(void)argument;
	CHECK(dsm_vm_init(&vm, 0, 0) == -DSM_E_PEER, "no hosts");
	CHECK(dsm_vm_init(&vm, 2, 2) == -DSM_E_PEER, "not one of them");
	CHECK(dsm_vm_init(&vm, 0, DSM_MAX_HOSTS + 1) == -DSM_E_PEER, "too many");
	CHECK(!dsm_vm_init(&vm, 0, 2), "a VM");
	CHECK(dsm_vm_add_range(&vm, 0, 1, 2) == -DSM_E_PEER, "no such home");
	CHECK(dsm_vm_add_range(&vm, 1, 1, 0) == -DSM_E_GFN, "empty");
	CHECK(!dsm_vm_add_range(&vm, 10, 20, 0), "a range");
	CHECK(dsm_vm_add_range(&vm, 19, 30, 1) == -DSM_E_GFN, "overlaps");
	CHECK(dsm_vm_add_range(&vm, 5, 11, 1) == -DSM_E_GFN, "in one gfn");
	CHECK(dsm_vm_home(&vm, 9) == DSM_NOBODY && dsm_vm_home(&vm, 10) == 0 &&
	      dsm_vm_home(&vm, 20) == DSM_NOBODY, "its bounds");
	CHECK(dsm_page_init(&page, &vm, 20) == -DSM_E_GFN, "no home");
	for (i = 1; i < DSM_MAX_RANGES; i++)
		CHECK(!dsm_vm_add_range(&vm, 20 * i, 20 * i + 9, 1), "%u", i);
	CHECK(dsm_vm_add_range(&vm, 0, 5, 1) == -DSM_E_FULL, "full");
	CHECK(dsm_vm_peer_up(&vm, 0, 1) == -DSM_E_PEER, "ourselves");
	CHECK(dsm_vm_peer_up(&vm, 2, 1) == -DSM_E_PEER, "not there");
	CHECK(dsm_vm_peer_up(&vm, 1, 0) == -DSM_E_EPOCH, "epoch 0");
	dsm_vm_peer_down(&vm, 200);
}

/* What is asked for the vCPU with the token says so, all the way. */
static void token_flags(const void *argument)
{
	struct host h = owned_by(1, 4);

	(void)argument;
	tell(&h, 2, DSM_GETM, DSM_F_TOKEN, 0);
	CHECK(sent(&h, 1, DSM_RECALL_I)->flags == DSM_F_TOKEN, "RECALL");
	h = shared_by_all(3);
	tell(&h, 2, DSM_GETM, DSM_F_TOKEN, 0);
	CHECK(sent(&h, 1, DSM_INV)->flags == DSM_F_TOKEN, "INV");

	h = holder(DSM_INVALID);	/* a miss that merges */
	h.vm.leases = true;
	miss(&h, true, 0);
	miss(&h, true, DSM_F_TOKEN);
	tell(&h, 0, DSM_DATA_M, 0, 5);
	done(&h, DSM_OP_INSTALL_M);
	CHECK(h.page.lease == DSM_LEASE_TOKEN, "merged");

	h = holder(DSM_MODIFIED);	/* one during a write-back */
	h.vm.leases = true;
	fine(&h, event(DSM_EV_EVICT));
	done(&h, DSM_OP_INVALIDATE);
	miss(&h, true, 0);
	miss(&h, true, DSM_F_TOKEN);
	tell(&h, 0, DSM_PUT_ACK, 0, 5);
	CHECK(sent(&h, 0, DSM_GETM)->flags == DSM_F_TOKEN, "after a write-back");

	h = holder(DSM_MODIFIED);	/* one of a page that is here */
	h.vm.leases = true;
	miss(&h, true, DSM_F_TOKEN);
	CHECK(h.page.lease == DSM_LEASE_TOKEN, "here");
}

static void leases_end(const void *argument)
{
	struct host h = host(0, 3);

	(void)argument;
	h.vm.leases = true;
	h.page.lease = DSM_LEASE_EXPIRED;
	tell(&h, 1, DSM_GETS, 0, 0);
	done(&h, DSM_OP_DOWNGRADE);
	CHECK(h.page.lost && h.page.lease == DSM_LEASE_NONE, "read elsewhere");

	h = host(0, 3);
	h.vm.leases = true;
	h.page.lease = DSM_LEASE_EXPIRED;
	tell(&h, 1, DSM_GETM, 0, 0);
	done(&h, DSM_OP_INVALIDATE);
	CHECK(h.page.lost && h.page.lease == DSM_LEASE_NONE, "written elsewhere");
	CHECK(!dsm_page_is_idle(&h.page, &h.vm), "the loss is remembered");
	fine(&h, event(DSM_EV_RETIRED));
	CHECK(!h.page.lost, "until an instruction has retired");

	h = host(0, 3);
	h.page.lease = DSM_LEASE_EXPIRED;
	CHECK(!dsm_page_is_idle(&h.page, &h.vm), "a lease is remembered");
	fine(&h, event(DSM_EV_DROP));
	done(&h, DSM_OP_DROP);
	CHECK(h.page.lease == DSM_LEASE_NONE, "dropped");

	h = holder(DSM_MODIFIED);
	h.page.lease = DSM_LEASE_EXPIRED;
	fine(&h, event(DSM_EV_EVICT));
	done(&h, DSM_OP_INVALIDATE);
	CHECK(h.page.lease == DSM_LEASE_NONE && !h.page.lost, "evicted");

	h = holder(DSM_MODIFIED);	/* a lease is no pin */
	h.vm.leases = true;
	h.page.lease = DSM_LEASE_ACTIVE;
	tell(&h, 0, DSM_RECALL_I, 0, 6);
	fine(&h, event(DSM_EV_PIN_TIMEOUT));
	CHECK(!h.out.nr && h.page.recall == DSM_RECALL_I, "still waits");

	/* A struct that remembers nothing but a loss can go. */
	h = holder(DSM_INVALID);
	h.page.lost = true;
	CHECK(!dsm_page_is_idle(&h.page, &h.vm), "a loss");
	fine(&h, event(DSM_EV_RETIRED));
	CHECK(dsm_page_is_idle(&h.page, &h.vm), "is over");
}

static void answers_that_do_not_fit(const void *argument)
{
	struct host h = owned_by(1, 3);
	struct dsm_event e;

	(void)argument;
	tell(&h, 1, DSM_DROP, 0, 0);	/* the owner itself */
	refuse(&h, 1, DSM_PUTM, 0, 1, DSM_E_SECOND);

	h = host(0, 3);
	tell(&h, 1, DSM_GETM, DSM_F_NODATA, 0);
	CHECK(h.out.action[0].bytes == DSM_BYTES_NONE, "nobody wants the bytes");
	CHECK(give(&h, event(DSM_EV_PRIVATE)) == -DSM_E_OPERATION, "on its way");
	h = owned_by(1, 3);
	miss(&h, true, 0);
	CHECK(give(&h, event(DSM_EV_PRIVATE)) == -DSM_E_NOT_NOW, "elsewhere");

	h = host(0, 3);
	fine(&h, event(DSM_EV_PRIVATE));
	tell(&h, 1, DSM_POPULATE, 0, 0);
	CHECK(sent(&h, 1, DSM_RESULT)->reason == DSM_R_EXISTS, "there is memory");
	tell(&h, 1, DSM_GETS, 0, 0);

	h = shared_by_all(3);
	fine(&h, event(DSM_EV_POPULATE));
	CHECK(h.out.action[h.out.nr - 1].type == DSM_ACT_FINISHED &&
	      h.out.action[h.out.nr - 1].reason == DSM_R_EXISTS, "says how");

	h = host(0, 3);
	tell(&h, 1, DSM_POPULATE, 0, 0);
	e = event(DSM_EV_RESULT);
	e.result = DSM_OP_BUSY;
	CHECK(give(&h, e) == -DSM_E_NO_OPERATION, "populate is never busy");

	h = holder(DSM_INVALID);
	fine(&h, event(DSM_EV_DROP));
	e = message(0, DSM_RESULT, 0, 1);
	e.msg.reason = DSM_R_EXISTS;
	CHECK(give(&h, e) == -DSM_E_REASON, "not of DROP");
	e.msg.reason = DSM_R_LOST;
	CHECK(give(&h, e) == -DSM_E_REASON, "of nothing");

	h = holder(DSM_INVALID);
	miss(&h, true, DSM_F_NODATA);
	refuse(&h, 0, DSM_DATA_M, 0, 5, DSM_E_GRANT);
	e = message(0, DSM_NACK, 0, 1);
	CHECK(give(&h, e) == -DSM_E_REASON, "why not?");

	h = holder(DSM_SHARED);
	tell(&h, 0, DSM_INV, 0, 6);
	result(&h, DSM_OP_INVALIDATE, DSM_OP_BUSY);
	miss(&h, true, 0);
	refuse(&h, 0, DSM_GRANT, 0, 7, DSM_E_GRANT);

	h = holder(DSM_MODIFIED);
	dsm_vm_peer_down(&h.vm, 0);
	CHECK(give(&h, event(DSM_EV_EVICT)) == -DSM_E_NOT_NOW, "no home");
}

static void only_there(const void *argument)
{
	struct host h = owned_by(1, 3);
	unsigned int i;

	(void)argument;
	for (i = 0; i < 3; i++)
		CHECK(dsm_page_only_at(&h.page, i) == (i == 1), "host 1's: %u", i);
	h = host(0, 3);
	for (i = 0; i < 3; i++)
		CHECK(dsm_page_only_at(&h.page, i) == (i == 0), "ours: %u", i);
	h = shared_by_all(3);
	for (i = 0; i < 3; i++)
		CHECK(!dsm_page_only_at(&h.page, i), "shared: %u", i);
	h.page.dir.owner = 1;
	h.page.dir.grant = 3;
	CHECK(!dsm_page_only_at(&h.page, 1), "an owner of before");
	h = host(2, 3);
	CHECK(!dsm_page_init(&h.page, &h.vm, 0x2000), "a page of host 1");
	for (i = 0; i < 3; i++)
		CHECK(!dsm_page_only_at(&h.page, i), "not at home: %u", i);
	h = holder(DSM_MODIFIED);
	for (i = 0; i < 3; i++)
		CHECK(!dsm_page_only_at(&h.page, i), "not at home: %u", i);
	h = holder(DSM_INVALID);
	for (i = 0; i < 3; i++)
		CHECK(!dsm_page_only_at(&h.page, i), "not at home: %u", i);
}

/* What a host has, or has to answer; what it only asks for is nothing. */
static void whom_a_page_concerns(const void *argument)
{
	struct host h = owned_by(1, 4);
	unsigned int i;

	(void)argument;
	for (i = 1; i < 4; i++)
		CHECK(dsm_page_concerns(&h.page, &h.vm, i) == (i == 1), "owned by 1: %u", i);
	tell(&h, 2, DSM_GETS, 0, 0);
	for (i = 1; i < 4; i++)
		CHECK(dsm_page_concerns(&h.page, &h.vm, i) == (i == 1), "asked by 2: %u", i);
	h = shared_by_all(4);
	for (i = 1; i < 4; i++)
		CHECK(dsm_page_concerns(&h.page, &h.vm, i), "shared: %u", i);
	tell(&h, 2, DSM_PUTS, 0, 0);
	CHECK(!dsm_page_concerns(&h.page, &h.vm, 2) && dsm_page_concerns(&h.page, &h.vm, 3), "2 gave it up");
	/* It gave up what it is asked about: an answer is due. */
	h = shared_by_all(4);
	miss(&h, true, 0);
	tell(&h, 2, DSM_PUTS, 0, 0);
	CHECK(dsm_page_concerns(&h.page, &h.vm, 2), "2 has to answer");

	/* At a holder it concerns the home, and nobody else. */
	h = holder(DSM_INVALID);
	CHECK(!dsm_page_concerns(&h.page, &h.vm, 0), "nothing is here");
	h = holder(DSM_SHARED);
	CHECK(dsm_page_concerns(&h.page, &h.vm, 0) && !dsm_page_concerns(&h.page, &h.vm, 1), "a copy");
	h = holder(DSM_INVALID);
	miss(&h, true, 0);
	CHECK(dsm_page_concerns(&h.page, &h.vm, 0), "asked for");
}

static void names(const void *argument)
{
	unsigned int i;

	(void)argument;
	for (i = 0; i < DSM_NR_ERRORS; i++)
		CHECK(strcmp(dsm_error_name(i), "?"), "error %u", i);
	for (i = 0; i < DSM_NR_REASONS; i++)
		CHECK(strcmp(dsm_reason_name(i), "?"), "reason %u", i);
	for (i = 1; i < DSM_NR_TYPES; i++)
		CHECK(strcmp(dsm_type_name(i), "?"), "type %u", i);
	for (i = 1; i < DSM_NR_EVENTS; i++)
		CHECK(strcmp(dsm_event_name(i), "?"), "event %u", i);
	for (i = 1; i < DSM_NR_OPERATIONS; i++)
		CHECK(strcmp(dsm_operation_name(i), "?"), "operation %u", i);
	CHECK(!strcmp(dsm_type_name(1000), "?"), "no type");
}

static void numbers_wrap(const void *argument)
{
	struct host h = host(0, 2);

	(void)argument;
	h.page.dir.txn = UINT32_MAX;
	tell(&h, 1, DSM_GETM, 0, 0);
	done(&h, DSM_OP_INVALIDATE);
	CHECK(sent(&h, 1, DSM_DATA_M)->txn == 1, "0 is no transaction");
}

/* What no honest peer sends, and the explorer's lies found to be taken. */
static void told_from_the_truth(const void *argument)
{
	struct host h = owned_by(1, 3);
	struct dsm_event e;
	uint32_t txn;

	(void)argument;
	/* It answers our recall before it asks again. */
	tell(&h, 2, DSM_GETM, 0, 0);
	txn = h.page.dir.txn;
	tell(&h, 1, DSM_PUTM, 0, h.page.dir.grant);
	refuse(&h, 1, DSM_DROP, 0, 0, DSM_E_SECOND);
	refuse(&h, 1, DSM_POPULATE, 0, 0, DSM_E_SECOND);
	tell(&h, 1, DSM_RDATA, 0, txn);

	/* It may ask, though, if our recall crosses that. */
	h = owned_by(1, 3);
	tell(&h, 2, DSM_GETM, 0, 0);
	tell(&h, 1, DSM_DROP, 0, 0);

	/* Who has given its copy up has nothing that is in use. */
	h = shared_by_all(3);
	tell(&h, 1, DSM_GETM, 0, 0);
	txn = h.page.dir.txn;
	tell(&h, 2, DSM_PUTS, 0, 0);
	refuse(&h, 2, DSM_BUSY_PIN, 0, txn, DSM_E_ANSWER);
	tell(&h, 2, DSM_INV_ACK, 0, txn);
	h = shared_by_all(3);
	tell(&h, 1, DSM_GETM, 0, 0);
	tell(&h, 2, DSM_BUSY_PIN, 0, h.page.dir.txn);

	/* Who gives bytes for a reader keeps a copy, or has written it back. */
	h = owned_by(1, 3);
	tell(&h, 2, DSM_GETS, 0, 0);
	refuse(&h, 1, DSM_RDATA, 0, h.page.dir.txn, DSM_E_FLAGS);
	tell(&h, 1, DSM_RDATA, DSM_F_KEPT, h.page.dir.txn);

	/* A transaction does not recall what it has granted. */
	h = holder(DSM_MODIFIED);
	refuse(&h, 0, DSM_RECALL_S, 0, h.page.grant, DSM_E_TXN);
	refuse(&h, 0, DSM_RECALL_I, 0, h.page.grant, DSM_E_TXN);
	fine(&h, event(DSM_EV_EVICT));
	done(&h, DSM_OP_INVALIDATE);
	refuse(&h, 0, DSM_RECALL_I, 0, h.page.grant, DSM_E_TXN);
	tell(&h, 0, DSM_RECALL_I, 0, h.page.grant + 1);

	/* Nothing is a hole or private while we have a copy. */
	h = holder(DSM_SHARED);
	miss(&h, true, 0);
	e = message(0, DSM_NACK, 0, 9);
	e.msg.reason = DSM_R_HOLE;
	CHECK(give(&h, e) == -DSM_E_REASON, "no hole");
	e.msg.reason = DSM_R_PRIVATE;
	CHECK(give(&h, e) == -DSM_E_REASON, "not private");
	e.msg.reason = DSM_R_PIN;
	fine(&h, e);
}

static const struct test_case cases[] = {
	{ "what a read and a write cost", costs, NULL },
	{ "the most actions of one event", most_actions, NULL },
	{ "an eviction crosses a recall", eviction_crosses_recall, NULL },
	{ "a host is lost after it has written back", lost_after_writing_back,
	  NULL },
	{ "what a home refuses", home_refuses, NULL },
	{ "a page that stays at home", stays_at_home, NULL },
	{ "in use for ever", private_for_all, NULL },
	{ "what a holder refuses", holder_refuses, NULL },
	{ "what anybody refuses", anybody_refuses, NULL },
	{ "what a caller must not do", caller_errs, NULL },
	{ "misses that merge at home", merged_at_home, NULL },
	{ "pins and private pages", pins, NULL },
	{ "holes", holes, NULL },
	{ "leases", leases, NULL },
	{ "prefetches that get nothing", prefetches, NULL },
	{ "tools that get nothing", tools, NULL },
	{ "tools beside others", tools_beside, NULL },
	{ "what is asked for once more", asked_once_more, NULL },
	{ "who waits, and for what", who_waits, NULL },
	{ "prefetches of pages that will be written", prefetches_to_write, NULL },
	{ "holes that are older than the access", old_holes, NULL },
	{ "lost hosts", hosts_lost, NULL },
	{ "a host is lost while an operation is due", lost_meanwhile, NULL },
	{ "a host that was lost stays lost", lost_for_ever, NULL },
	{ "the token's flag", token_flags, NULL },
	{ "how leases end", leases_end, NULL },
	{ "answers that do not fit", answers_that_do_not_fit, NULL },
	{ "who has a page alone", only_there, NULL },
	{ "whom a page concerns", whom_a_page_concerns, NULL },
	{ "hosts and ranges", ranges, NULL },
	{ "everything has a name", names, NULL },
	{ "transaction numbers wrap", numbers_wrap, NULL },
	{ "what can be told from the truth", told_from_the_truth, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
