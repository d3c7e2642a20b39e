// SPDX-License-Identifier: GPL-2.0
/*
 * A host that has a page, or wants it.
 *
 * A page is requested once; misses that come meanwhile wait for the same
 * answer, whatever they want, and every answer wakes all of them.  So a vCPU
 * that wanted more than what came misses again, and none is forgotten.
 *
 * But "there is a hole" may be older than a miss that came meanwhile: the page
 * may have been populated in between, and the guest may know that by way of
 * another host.  So it is asked for once more.  So is what was private, which may
 * be plain memory by now.  Who waits does not miss again: that ends when all vCPUs
 * wait.
 *
 * Who is no vCPU (a tool of the control domain) is not stopped by his miss.  What he
 * can't have, as it is private at its home or lost with that, is no memory for him;
 * it ends the VM if a vCPU waits for it.
 *
 * A recall waits for a pin (the operation says BUSY) or for a lease.  It never
 * waits for a lease while a request for the same page is out: the answer to
 * that may be behind it in the home's queue.
 */
#include "internal.h"

/* A page that can't be had.  Return: was it only tools that wanted it?  They find none. */
static bool told_tools(struct step *s)
{
	if (!s->page->demand || s->page->stopped)
		return false;
	answered(s);
	wake(s, DSM_WAKE_ALL | DSM_WAKE_HOLE);
	return true;
}

/* Ask the home, which may be ourselves. */
static void ask(struct step *s, unsigned int type, unsigned int flags)
{
	struct dsm_page *page = s->page;

	if (!at_home(s) && !(s->vm->up & dsm_bit(page->home))) {
		/* Nobody waits for a prefetch. */
		if (!(flags & DSM_F_PREFETCH) && !told_tools(s))
			fail(s, page->home, DSM_R_LOST);
		return;
	}
	page->request = (uint8_t)type;
	page->request_flags = (uint8_t)flags;
	if (at_home(s)) {
		directory_request(s, (struct dsm_request){
			.host = s->vm->self, .type = page->request,
			.flags = page->request_flags,
		});
		return;
	}
	post(s, page->home, type, flags, 0, 0);
	holder_lease_over(s);
}

int holder_miss(struct step *s, bool write, unsigned int flags)
{
	struct dsm_page *page = s->page;
	unsigned int type = write ? DSM_GETM : DSM_GETS;
	bool here = page->state >= (write ? DSM_MODIFIED : DSM_SHARED);
	bool stops = flags != DSM_F_TOOL;

	if (!stops)
		flags = 0;
	if (flags & ~(unsigned int)(DSM_F_PREFETCH | DSM_F_NODATA | DSM_F_TOKEN))
		return -DSM_E_EVENT;
	/* Nobody overwrites a page that nobody waits for. */
	if (flags & DSM_F_NODATA && (!write || flags & DSM_F_PREFETCH))
		return -DSM_E_EVENT;

	if (flags & DSM_F_PREFETCH) {
		if (page->state == DSM_INVALID && !page->request && !page->writeback)
			ask(s, type, flags);
		return 0;
	}

	page->lost = false;
	if (!here) {
		page->demand = true;
		page->stopped |= stops;
	}
	if (here) {
		if (flags & DSM_F_TOKEN && s->vm->leases)
			page->lease = DSM_LEASE_TOKEN;
		wake(s, DSM_WAKE_ALL);
	} else if (page->request) {
		page->merged = true;
		page->request_flags |= flags & DSM_F_TOKEN;
	} else if (page->writeback) {
		if (page->wanted < type) {
			page->wanted = (uint8_t)type;
			page->wanted_flags &= DSM_F_TOKEN;
			page->wanted_flags |= (uint8_t)flags;
		}
		page->wanted_flags |= flags & DSM_F_TOKEN;
	} else {
		ask(s, type, flags);
	}
	return 0;
}

int holder_request(struct step *s, unsigned int type)
{
	if (s->page->request || s->page->writeback)
		return -DSM_E_NOT_NOW;
	ask(s, type, 0);
	return 0;
}

int holder_evict(struct step *s)
{
	struct dsm_page *page = s->page;

	if (at_home(s) || page->state == DSM_INVALID || page->request ||
	    page->recall || page->lease == DSM_LEASE_ACTIVE ||
	    page->lease == DSM_LEASE_TOKEN)
		return -DSM_E_NOT_NOW;
	if (!(s->vm->up & dsm_bit(page->home)))
		return -DSM_E_NOT_NOW;

	operate(s, FOR_EVICTION, DSM_OP_INVALIDATE,
		page->state == DSM_MODIFIED ? DSM_BYTES_OUT : DSM_BYTES_NONE, 0);
	return 0;
}

static void evicted(struct step *s)
{
	struct dsm_page *page = s->page;

	if (page->state == DSM_MODIFIED) {
		page->writeback = true;
		post(s, page->home, DSM_PUTM, 0, 0, page->grant);
	} else {
		post(s, page->home, DSM_PUTS, 0, 0, 0);
	}
	page->state = DSM_INVALID;
	page->lease = DSM_LEASE_NONE;
}

/* Give the home what it wants back, unless the page has to stay a little. */
static void answer_recall(struct step *s)
{
	struct dsm_page *page = s->page;

	page->recall_busy = false;
	if (lease_holds(s, page->recall_flags))
		return;
	switch (page->recall) {
	case DSM_RECALL_S:
		operate(s, FOR_RECALL, DSM_OP_DOWNGRADE, DSM_BYTES_OUT, 0);
		break;
	case DSM_RECALL_I:
		operate(s, FOR_RECALL, DSM_OP_INVALIDATE, DSM_BYTES_OUT, 0);
		break;
	default:
		operate(s, FOR_RECALL, DSM_OP_INVALIDATE, DSM_BYTES_NONE, 0);
	}
}

static void recalled(struct step *s)
{
	struct dsm_page *page = s->page;
	unsigned int recall = page->recall;
	uint32_t txn = page->recall_txn;

	page->recall = 0;
	page->recall_flags = 0;
	page->recall_txn = 0;
	page->grant = 0;
	lease_broken(s);
	if (recall == DSM_RECALL_S) {
		page->state = DSM_SHARED;
		post(s, page->home, DSM_RDATA, DSM_F_KEPT, 0, txn);
		return;
	}
	page->state = DSM_INVALID;
	post(s, page->home, recall == DSM_INV ? DSM_INV_ACK : DSM_RDATA, 0, 0,
	     txn);
}

static int recall(struct step *s, const struct dsm_msg *msg)
{
	struct dsm_page *page = s->page;
	bool inv = msg->type == DSM_INV;

	if (page->recall)
		return -DSM_E_AGAIN;
	if (page->writeback && !inv) {
		/* PUTM is on its way; the home can't know, so it gets both, once. */
		if (page->recall_txn)
			return -DSM_E_AGAIN;
		if (msg->txn == page->grant)
			return -DSM_E_TXN;
		page->recall_txn = msg->txn;
		post(s, page->home, DSM_RDATA, 0, 0, msg->txn);
		return 0;
	}
	if (inv ? page->state == DSM_MODIFIED || page->writeback :
		  page->state != DSM_MODIFIED)
		return -DSM_E_NOT_HELD;
	if (!inv && msg->txn == page->grant)
		return -DSM_E_TXN;
	if (page->state == DSM_INVALID) {
		/* PUTS is on its way. */
		post(s, page->home, DSM_INV_ACK, 0, 0, msg->txn);
		return 0;
	}

	page->recall = msg->type;
	page->recall_flags = msg->flags;
	page->recall_txn = msg->txn;
	answer_recall(s);
	return 0;
}

/* DATA_S, DATA_M or GRANT: is it what was requested, and can it be done? */
static int granted(struct step *s, const struct dsm_msg *msg)
{
	struct dsm_page *page = s->page;
	bool zero = page->request_flags & DSM_F_NODATA;
	unsigned int request = msg->type == DSM_DATA_S ? DSM_GETS : DSM_GETM;
	unsigned int operation;

	if (!page->request)
		return -DSM_E_NO_REQUEST;
	if (page->request != request || page->recall)
		return -DSM_E_GRANT;

	if (msg->type == DSM_GRANT) {
		if (!zero && page->state != DSM_SHARED)
			return -DSM_E_GRANT;
		operation = zero ? DSM_OP_ZERO_M : DSM_OP_UPGRADE;
	} else {
		if (zero || page->state != DSM_INVALID)
			return -DSM_E_GRANT;
		operation = msg->type == DSM_DATA_S ? DSM_OP_INSTALL_S :
						      DSM_OP_INSTALL_M;
		act(s, (struct dsm_action){ .type = DSM_ACT_TAKE });
	}
	page->grant = request == DSM_GETM ? msg->txn : 0;
	operate(s, FOR_ANSWER, operation,
		msg->type == DSM_GRANT ? DSM_BYTES_NONE : DSM_BYTES_IN,
		DSM_WAKE_ALL);
	return 0;
}

static int refused(struct step *s, const struct dsm_msg *msg)
{
	struct dsm_page *page = s->page;
	unsigned int whom = DSM_WAKE_ALL;
	bool demand = page->demand, stopped = page->stopped;
	unsigned int again = page->request;
	unsigned int flags = page->request_flags & ~(unsigned int)DSM_F_PREFETCH;

	if (page->request != DSM_GETS && page->request != DSM_GETM)
		return -DSM_E_NO_REQUEST;
	if (msg->reason == DSM_R_BUSY && !(page->request_flags & DSM_F_PREFETCH))
		return -DSM_E_REASON;
	/* Our copy would have been recalled before. */
	if (page->state != DSM_INVALID &&
	    (msg->reason == DSM_R_HOLE || msg->reason == DSM_R_PRIVATE ||
	     msg->reason == DSM_R_STAYS))
		return -DSM_E_REASON;

	if ((msg->reason == DSM_R_HOLE || msg->reason == DSM_R_PRIVATE) && page->merged) {
		page->merged = false;
		ask(s, again, flags);
		return 0;
	}
	answered(s);
	/* A prefetch that nobody waits for is no access. */
	if ((msg->reason == DSM_R_PRIVATE || msg->reason == DSM_R_STAYS) && demand &&
	    s->vm->used_at_home & dsm_bit(page->home)) {
		act(s, (struct dsm_action){ .type = DSM_ACT_STAYS, .reason = msg->reason });
		return 0;
	}
	if (msg->reason == DSM_R_PRIVATE && stopped) {
		fail(s, page->home, msg->reason);
		return 0;
	}
	if ((msg->reason == DSM_R_HOLE || msg->reason == DSM_R_PRIVATE) && demand)
		whom |= DSM_WAKE_HOLE;
	wake(s, whom);
	return 0;
}

static int finished(struct step *s, const struct dsm_msg *msg)
{
	struct dsm_page *page = s->page;
	bool only_populate = msg->reason == DSM_R_EXISTS ||
			     msg->reason == DSM_R_NOMEM;

	if (page->request != DSM_DROP && page->request != DSM_POPULATE)
		return -DSM_E_NO_REQUEST;
	if (page->request == DSM_DROP ? only_populate :
	    !only_populate && msg->reason != DSM_R_NONE)
		return -DSM_E_REASON;

	answered(s);
	wake(s, DSM_WAKE_ALL);
	act(s, (struct dsm_action){
		.type = DSM_ACT_FINISHED, .reason = msg->reason,
	});
	return 0;
}

static int written_back(struct step *s, const struct dsm_msg *msg)
{
	struct dsm_page *page = s->page;
	unsigned int wanted = page->wanted, flags = page->wanted_flags;

	if (!page->writeback)
		return -DSM_E_NO_WRITEBACK;
	if (msg->txn != page->grant)
		return -DSM_E_TXN;

	page->writeback = false;
	page->recall_txn = 0;
	page->grant = 0;
	page->wanted = 0;
	page->wanted_flags = 0;
	if (wanted)
		ask(s, wanted, flags);
	return 0;
}

int holder_message(struct step *s, const struct dsm_msg *msg)
{
	switch (msg->type) {
	case DSM_RECALL_S:
	case DSM_RECALL_I:
	case DSM_INV:
		return recall(s, msg);
	case DSM_DATA_S:
	case DSM_DATA_M:
	case DSM_GRANT:
		return granted(s, msg);
	case DSM_NACK:
		return refused(s, msg);
	case DSM_RESULT:
		return finished(s, msg);
	case DSM_PUT_ACK:
		return written_back(s, msg);
	}
	return -DSM_E_TYPE;
}

static void installed(struct step *s)
{
	struct dsm_page *page = s->page;

	page->state = page->request == DSM_GETS ? DSM_SHARED : DSM_MODIFIED;
	lease_begin(s, page->request_flags);
	answered(s);
}

int holder_result(struct step *s, enum purpose purpose, unsigned int result)
{
	switch (purpose) {
	case FOR_ANSWER:
		installed(s);
		return 0;
	case FOR_EVICTION:
		if (result == DSM_OP_DONE)
			evicted(s);
		return 0;
	case FOR_RECALL:
		if (result == DSM_OP_DONE) {
			recalled(s);
			return 0;
		}
		s->page->recall_busy = true;
		act(s, (struct dsm_action){ .type = DSM_ACT_RETRY });
		return 0;
	default:
		return -DSM_E_NO_OPERATION;
	}
}

void holder_retry(struct step *s)
{
	if (s->page->recall && s->page->recall_busy)
		answer_recall(s);
}

void holder_pin_timeout(struct step *s)
{
	struct dsm_page *page = s->page;

	if (!page->recall || !page->recall_busy)
		return;
	post(s, page->home, DSM_BUSY_PIN, 0, 0, page->recall_txn);
	page->recall = 0;
	page->recall_flags = 0;
	page->recall_busy = false;
	page->recall_txn = 0;
}

/* A lease has ended, or does not count any more. */
void holder_lease_over(struct step *s)
{
	if (s->page->recall && !s->page->recall_busy)
		answer_recall(s);
}

void holder_home_lost(struct step *s)
{
	struct dsm_page *page = s->page;

	if (page->state == DSM_INVALID && page->request && !page->writeback &&
	    told_tools(s))
		return;
	if (page->state != DSM_INVALID || page->request || page->writeback)
		fail(s, page->home, DSM_R_LOST);
}
