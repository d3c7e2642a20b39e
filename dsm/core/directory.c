// SPDX-License-Identifier: GPL-2.0
/*
 * The home of a page: one transaction at a time.
 *
 * A transaction first collects the answers of those who have to give the page
 * up, then works on the home's own frame, which is why the home is the last to
 * lose its copy, and ends when the answer to who asked is posted.  There is no
 * message that says that it arrived: what the home sends later comes later.
 *
 * Each INV_ACK removes that sharer at once.  If a holder can't give the page
 * up, the transaction is called off, but only after all have answered.
 */
#include "internal.h"

static bool is_idle(const struct dsm_directory *d)
{
	return d->phase == DSM_IDLE;
}

/* The page comes to the home itself: it asked, or who asked is gone. */
static bool for_home(const struct step *s)
{
	return s->dir->now.host == s->vm->self ||
	       s->dir->now.host == DSM_NOBODY;
}

static bool home_owns(const struct step *s)
{
	return s->dir->mode == DSM_MODE_PRIVATE ||
	       (s->dir->mode == DSM_MODE_MODIFIED &&
		s->dir->owner == s->vm->self);
}

static void set_owner(struct step *s, unsigned int host, uint32_t grant)
{
	s->dir->mode = DSM_MODE_MODIFIED;
	s->dir->owner = (uint8_t)host;
	s->dir->grant = grant;
	s->dir->copyset = 0;
}

static void set_shared(struct step *s, uint16_t copyset)
{
	s->dir->mode = DSM_MODE_SHARED;
	s->dir->owner = DSM_NOBODY;
	s->dir->grant = 0;
	s->dir->copyset = copyset;
}

static void end(struct step *s)
{
	struct dsm_directory *d = s->dir;

	d->phase = DSM_IDLE;
	d->now = (struct dsm_request){ 0 };
	d->abort = DSM_R_NONE;
	d->bytes = false;
	d->kept = false;
	d->busy = false;
	d->pending = 0;
}

/* The answer to who asked is no, or the result of a DROP or POPULATE. */
static void end_with(struct step *s, enum dsm_reason reason)
{
	struct dsm_request now = s->dir->now;
	bool result = now.type == DSM_DROP || now.type == DSM_POPULATE;

	end(s);
	if (now.host == DSM_NOBODY)
		return;
	if (now.host != s->vm->self) {
		post(s, now.host, result ? DSM_RESULT : DSM_NACK, 0, reason,
		     s->dir->txn);
		return;
	}
	answered(s);
	wake(s, DSM_WAKE_ALL);
	if (result)
		act(s, (struct dsm_action){
			.type = DSM_ACT_FINISHED, .reason = (uint8_t)reason,
		});
}

/* The home's own request is granted; the operation has woken who waits. */
static void end_at_home(struct step *s)
{
	bool asked = s->dir->now.host == s->vm->self;
	unsigned int flags = s->page->request_flags;

	end(s);
	if (!asked)
		return;
	lease_begin(s, flags);
	answered(s);
}

static void local(struct step *s);

/*
 * A writer elsewhere has the page now.  If it is gone, which we are told after
 * this, bytes that are still here come home.
 */
static void end_with_owner(struct step *s, bool without_bytes)
{
	struct dsm_directory *d = s->dir;
	unsigned int host = d->now.host;

	set_owner(s, host, d->txn);
	if (d->bytes && !(s->vm->up & dsm_bit(host))) {
		d->now = (struct dsm_request){
			.host = DSM_NOBODY, .type = DSM_GETM,
		};
		local(s);
		return;
	}
	end(s);
	post(s, host, without_bytes ? DSM_GRANT : DSM_DATA_M, 0, 0, s->dir->txn);
}

/* Does the requester need no bytes?  It zeroes the page, or has a copy. */
static bool needs_no_bytes(const struct step *s)
{
	return s->dir->now.flags & DSM_F_NODATA ||
	       s->dir->copyset & dsm_bit(s->dir->now.host);
}

static void take_away(struct step *s, unsigned int operation,
		      unsigned int bytes)
{
	if (lease_holds(s, s->dir->now.flags))
		return;
	operate(s, FOR_DIRECTORY, operation, bytes, 0);
}

static void local_gets(struct step *s)
{
	if (s->dir->bytes)
		operate(s, FOR_DIRECTORY, DSM_OP_INSTALL_S, DSM_BYTES_IN,
			DSM_WAKE_ALL);
	else if (s->dir->mode == DSM_MODE_SHARED)
		operate(s, FOR_DIRECTORY, DSM_OP_READ, DSM_BYTES_OUT, 0);
	else
		take_away(s, DSM_OP_DOWNGRADE, DSM_BYTES_OUT);
}

static void local_getm(struct step *s)
{
	struct dsm_directory *d = s->dir;

	if (!for_home(s)) {
		if (d->bytes)
			end_with_owner(s, d->now.flags & DSM_F_NODATA);
		else
			take_away(s, DSM_OP_INVALIDATE,
				  needs_no_bytes(s) ? DSM_BYTES_NONE :
						      DSM_BYTES_OUT);
		return;
	}
	if (d->now.flags & DSM_F_NODATA)
		operate(s, FOR_DIRECTORY, DSM_OP_ZERO_M, DSM_BYTES_NONE,
			DSM_WAKE_ALL);
	else if (d->bytes)
		operate(s, FOR_DIRECTORY, DSM_OP_INSTALL_M, DSM_BYTES_IN,
			DSM_WAKE_ALL);
	else
		operate(s, FOR_DIRECTORY, DSM_OP_UPGRADE, DSM_BYTES_NONE,
			DSM_WAKE_ALL);
}

/* All others have answered: the home's own frame. */
static void local(struct step *s)
{
	s->dir->phase = DSM_LOCAL;
	s->dir->busy = false;
	switch (s->dir->now.type) {
	case DSM_GETS:
		local_gets(s);
		break;
	case DSM_GETM:
		local_getm(s);
		break;
	case DSM_DROP:
		take_away(s, DSM_OP_DROP, DSM_BYTES_NONE);
		break;
	case DSM_POPULATE:
		operate(s, FOR_DIRECTORY, DSM_OP_POPULATE, DSM_BYTES_NONE, 0);
		break;
	}
}

static void ask_owner(struct step *s, unsigned int type)
{
	struct dsm_directory *d = s->dir;

	d->phase = DSM_COLLECT;
	d->pending = dsm_bit(d->owner);
	post(s, d->owner, type, d->now.flags & DSM_F_TOKEN, 0, d->txn);
}

static void invalidate(struct step *s, uint16_t sharers)
{
	struct dsm_directory *d = s->dir;
	unsigned int host;

	if (!sharers) {
		local(s);
		return;
	}
	d->phase = DSM_COLLECT;
	d->pending = sharers;
	for (host = 0; host < s->vm->nr_hosts; host++)
		if (sharers & dsm_bit(host))
			post(s, host, DSM_INV, d->now.flags & DSM_F_TOKEN, 0,
			     d->txn);
}

/* What the home asks for may have come meanwhile. */
static bool is_satisfied(const struct step *s)
{
	const struct dsm_request *now = &s->dir->now;

	if (now->host != s->vm->self)
		return false;
	return (now->type == DSM_GETS && s->dir->mode == DSM_MODE_SHARED) ||
	       (now->type <= DSM_GETM && home_owns(s));
}

static void start(struct step *s, struct dsm_request request)
{
	struct dsm_directory *d = s->dir;
	uint16_t sharers = d->copyset & (uint16_t)~dsm_bit(s->vm->self);

	d->now = request;
	if (!++d->txn)
		d->txn = 1;

	if (is_satisfied(s)) {
		end_at_home(s);
		wake(s, DSM_WAKE_ALL);
	} else if (request.type == DSM_POPULATE && !home_owns(s)) {
		end_with(s, DSM_R_EXISTS);
	} else if (d->mode == DSM_MODE_PRIVATE) {
		end_with(s, request.type == DSM_POPULATE ? DSM_R_EXISTS :
							   DSM_R_PRIVATE);
	} else if (home_owns(s)) {
		local(s);
	} else if (d->mode == DSM_MODE_MODIFIED) {
		ask_owner(s, request.type == DSM_GETS ? DSM_RECALL_S :
							DSM_RECALL_I);
	} else if (request.type == DSM_GETS) {
		local(s);
	} else {
		if (request.type == DSM_GETM)
			sharers &= (uint16_t)~dsm_bit(request.host);
		invalidate(s, sharers);
	}
}

/* The next ones, until one has to wait. */
static void pump(struct step *s)
{
	struct dsm_directory *d = s->dir;
	struct dsm_request first;
	unsigned int i;

	while (is_idle(d) && d->nr_queued) {
		first = d->queue[0];
		d->nr_queued--;
		for (i = 0; i < d->nr_queued; i++)
			d->queue[i] = d->queue[i + 1];
		d->queue[d->nr_queued] = (struct dsm_request){ 0 };
		start(s, first);
	}
}

/* Does it take the page from a host other than its home and who asks? */
static bool takes_from_others(const struct step *s, const struct dsm_request *request)
{
	const struct dsm_directory *d = s->dir;
	uint16_t sharers = d->copyset & (uint16_t)~dsm_bit(s->vm->self);

	if (d->mode == DSM_MODE_SHARED)
		return request->type == DSM_GETM && sharers;
	return request->type == DSM_GETM && !home_owns(s);
}

void directory_request(struct step *s, struct dsm_request request)
{
	struct dsm_directory *d = s->dir;
	bool waits = !(request.flags & DSM_F_PREFETCH);

	if (is_idle(d) && (waits || !takes_from_others(s, &request))) {
		start(s, request);
		return;
	}
	if (waits) {
		d->queue[d->nr_queued++] = request;
		/* Our own lease does not hold what is ahead of us up. */
		if (request.host == s->vm->self)
			directory_lease_over(s);
		return;
	}
	if (request.host != s->vm->self) {
		post(s, request.host, DSM_NACK, 0, DSM_R_BUSY, d->txn);
		return;
	}
	answered(s);
	wake(s, DSM_WAKE_ALL);
}

static bool has_open_request(const struct dsm_directory *d, unsigned int host)
{
	unsigned int i;

	if (!is_idle(d) && d->now.host == host)
		return true;
	for (i = 0; i < d->nr_queued; i++)
		if (d->queue[i].host == host)
			return true;
	return false;
}

static int request(struct step *s, unsigned int from, const struct dsm_msg *msg)
{
	const struct dsm_directory *d = s->dir;
	bool owner = d->mode == DSM_MODE_MODIFIED && d->owner == from;

	if (has_open_request(d, from))
		return -DSM_E_SECOND;
	if ((msg->type == DSM_GETS || msg->flags & DSM_F_PREFETCH) &&
	    d->copyset & dsm_bit(from))
		return -DSM_E_HAS_IT;
	if (msg->flags & DSM_F_PREFETCH && msg->flags & DSM_F_NODATA)
		return -DSM_E_FLAGS;
	if (msg->type <= DSM_GETM && owner)
		return -DSM_E_HAS_IT;
	/* Its PUTM has come: the answer to our recall comes before anything else. */
	if (owner && d->bytes)
		return -DSM_E_SECOND;

	directory_request(s, (struct dsm_request){
		.host = (uint8_t)from, .type = msg->type, .flags = msg->flags,
	});
	return 0;
}

static int putm(struct step *s, unsigned int from, const struct dsm_msg *msg)
{
	struct dsm_directory *d = s->dir;

	if (d->mode != DSM_MODE_MODIFIED || d->owner != from)
		return -DSM_E_NOT_OWNER;
	if (msg->txn != d->grant)
		return -DSM_E_TXN;
	if (has_open_request(d, from))
		return -DSM_E_SECOND;

	if (!is_idle(d)) {
		/* Our recall crosses it; its answer will bring nothing new. */
		if (!(d->pending & dsm_bit(from)) || d->bytes)
			return -DSM_E_NOT_OWNER;
		act(s, (struct dsm_action){ .type = DSM_ACT_TAKE });
		d->bytes = true;
		post(s, from, DSM_PUT_ACK, 0, 0, msg->txn);
		return 0;
	}
	d->now = (struct dsm_request){ .host = (uint8_t)from, .type = DSM_PUTM };
	d->phase = DSM_LOCAL;
	act(s, (struct dsm_action){ .type = DSM_ACT_TAKE });
	operate(s, FOR_DIRECTORY, DSM_OP_INSTALL_M, DSM_BYTES_IN, DSM_WAKE_ALL);
	return 0;
}

static int puts_(struct step *s, unsigned int from)
{
	struct dsm_directory *d = s->dir;

	if (!(d->copyset & dsm_bit(from)))
		return -DSM_E_NOT_SHARER;
	if (has_open_request(d, from))
		return -DSM_E_SECOND;
	d->copyset &= (uint16_t)~dsm_bit(from);
	return 0;
}

/* One of those that we wait for has answered. */
static void collected(struct step *s, unsigned int from)
{
	s->dir->pending &= (uint16_t)~dsm_bit(from);
	if (s->dir->pending)
		return;
	if (s->dir->abort)
		end_with(s, s->dir->abort);
	else
		local(s);
	pump(s);
}

static int answer(struct step *s, unsigned int from, const struct dsm_msg *msg)
{
	struct dsm_directory *d = s->dir;

	if (!(d->pending & dsm_bit(from)))
		return -DSM_E_NOT_ASKED;
	if (msg->txn != d->txn)
		return -DSM_E_TXN;
	if (msg->type == DSM_RDATA ? d->mode != DSM_MODE_MODIFIED :
	    msg->type == DSM_INV_ACK && d->mode != DSM_MODE_SHARED)
		return -DSM_E_ANSWER;
	/* Who has written it back has nothing to keep, or to be in use. */
	if (msg->flags & DSM_F_KEPT && (d->now.type != DSM_GETS || d->bytes))
		return -DSM_E_FLAGS;
	if (msg->type == DSM_BUSY_PIN && d->bytes)
		return -DSM_E_ANSWER;
	if (msg->type == DSM_BUSY_PIN && d->mode == DSM_MODE_SHARED &&
	    !(d->copyset & dsm_bit(from)))
		return -DSM_E_ANSWER;
	/* Who has not written it back keeps a copy for readers. */
	if (msg->type == DSM_RDATA && d->now.type == DSM_GETS && !d->bytes &&
	    !(msg->flags & DSM_F_KEPT))
		return -DSM_E_FLAGS;

	switch (msg->type) {
	case DSM_RDATA:
		if (!d->bytes)
			act(s, (struct dsm_action){ .type = DSM_ACT_TAKE });
		d->bytes = true;
		d->kept = msg->flags & DSM_F_KEPT;
		break;
	case DSM_INV_ACK:
		d->copyset &= (uint16_t)~dsm_bit(from);
		break;
	default:
		d->abort = DSM_R_PIN;
	}
	collected(s, from);
	return 0;
}

int directory_message(struct step *s, unsigned int from,
		      const struct dsm_msg *msg)
{
	switch (msg->type) {
	case DSM_GETS:
	case DSM_GETM:
	case DSM_DROP:
	case DSM_POPULATE:
		return request(s, from, msg);
	case DSM_PUTM:
		return putm(s, from, msg);
	case DSM_PUTS:
		return puts_(s, from);
	case DSM_RDATA:
	case DSM_INV_ACK:
	case DSM_BUSY_PIN:
		return answer(s, from, msg);
	}
	return -DSM_E_TYPE;
}

static void gets_done(struct step *s)
{
	struct dsm_directory *d = s->dir;
	unsigned int host = d->now.host;
	uint16_t copyset = dsm_bit(s->vm->self);

	if (d->mode == DSM_MODE_SHARED)
		copyset = d->copyset;
	else if (d->kept)
		copyset |= dsm_bit(d->owner);
	if (s->page->state == DSM_MODIFIED)
		lease_broken(s);
	s->page->state = DSM_SHARED;
	if (for_home(s)) {
		set_shared(s, copyset);
		end_at_home(s);
		return;
	}
	set_shared(s, copyset | dsm_bit(host));
	end(s);
	post(s, host, DSM_DATA_S, 0, 0, d->txn);
}

static void getm_done(struct step *s)
{
	if (for_home(s)) {
		s->page->state = DSM_MODIFIED;
		set_owner(s, s->vm->self, 0);
		end_at_home(s);
		return;
	}
	s->page->state = DSM_INVALID;
	lease_broken(s);
	s->dir->bytes = !needs_no_bytes(s);
	end_with_owner(s, !s->dir->bytes);
}

static void drop_done(struct step *s)
{
	s->page->state = DSM_MODIFIED;
	s->page->lease = DSM_LEASE_NONE;
	set_owner(s, s->vm->self, 0);
	end_with(s, DSM_R_NONE);
}

static void putm_done(struct step *s)
{
	unsigned int host = s->dir->now.host;
	uint32_t grant = s->dir->grant;

	s->page->state = DSM_MODIFIED;
	set_owner(s, s->vm->self, 0);
	end(s);
	post(s, host, DSM_PUT_ACK, 0, 0, grant);
}

static void done(struct step *s)
{
	switch (s->dir->now.type) {
	case DSM_GETS:
		gets_done(s);
		break;
	case DSM_GETM:
		getm_done(s);
		break;
	case DSM_DROP:
		drop_done(s);
		break;
	case DSM_POPULATE:
		end_with(s, DSM_R_NONE);
		break;
	case DSM_PUTM:
		putm_done(s);
		break;
	}
}

int directory_result(struct step *s, unsigned int result)
{
	switch (result) {
	case DSM_OP_DONE:
		done(s);
		break;
	case DSM_OP_BUSY:
		s->dir->busy = true;
		act(s, (struct dsm_action){ .type = DSM_ACT_RETRY });
		return 0;
	case DSM_OP_ABSENT:
		end_with(s, DSM_R_HOLE);
		break;
	case DSM_OP_EXISTS:
		end_with(s, DSM_R_EXISTS);
		break;
	case DSM_OP_NOMEM:
		end_with(s, DSM_R_NOMEM);
		break;
	}
	pump(s);
	return 0;
}

/* The home's own frame, for the transaction that goes on. */
static bool found_in_use(const struct dsm_directory *d)
{
	return d->phase == DSM_LOCAL && d->busy;
}

void directory_retry(struct step *s)
{
	if (found_in_use(s->dir))
		local(s);
}

void directory_pin_timeout(struct step *s)
{
	if (!found_in_use(s->dir))
		return;
	end_with(s, DSM_R_PIN);
	pump(s);
}

/* A lease has ended, or does not count any more. */
void directory_lease_over(struct step *s)
{
	if (s->dir->phase == DSM_LOCAL && !s->dir->busy)
		local(s);
}

int directory_make_private(struct step *s)
{
	struct dsm_directory *d = s->dir;

	if (!home_owns(s) || !(is_idle(d) || found_in_use(d)))
		return -DSM_E_NOT_NOW;
	d->mode = DSM_MODE_PRIVATE;
	/* All who wait hear it at once: who asks anew is none that others wait for. */
	if (!is_idle(d)) {
		end_with(s, DSM_R_PRIVATE);
		pump(s);
	}
	return 0;
}

/* Nobody else has it, so it is as at first. */
int directory_make_public(struct step *s)
{
	if (s->dir->mode != DSM_MODE_PRIVATE || !is_idle(s->dir))
		return -DSM_E_NOT_NOW;
	set_owner(s, s->vm->self, 0);
	return 0;
}

/* Only what the home has alone can be used here. */
int directory_stays(struct step *s)
{
	struct dsm_directory *d = s->dir;

	if (!found_in_use(d) || !home_owns(s) || d->now.type > DSM_GETM)
		return -DSM_E_NOT_NOW;
	end_with(s, DSM_R_STAYS);
	pump(s);
	return 0;
}

static void forget_requests(struct dsm_directory *d, unsigned int host)
{
	unsigned int i, kept = 0;

	for (i = 0; i < d->nr_queued; i++)
		if (d->queue[i].host != host)
			d->queue[kept++] = d->queue[i];
	for (i = kept; i < d->nr_queued; i++)
		d->queue[i] = (struct dsm_request){ 0 };
	d->nr_queued = (uint8_t)kept;
}

/*
 * Who asked is gone.  What others have given up for it comes to the home; what
 * the home would give up stays.
 */
static void forget_requester(struct step *s)
{
	struct dsm_directory *d = s->dir;

	if (d->phase == DSM_LOCAL) {
		end(s);
		return;
	}
	d->now.host = DSM_NOBODY;
	d->now.flags = 0;
	if (d->now.type == DSM_DROP)
		d->now.type = DSM_GETM;
}

void directory_host_lost(struct step *s, unsigned int host)
{
	struct dsm_directory *d = s->dir;

	forget_requests(d, host);
	if (!is_idle(d) && d->now.host == host)
		forget_requester(s);
	d->copyset &= (uint16_t)~dsm_bit(host);
	if (d->mode == DSM_MODE_MODIFIED && d->owner == host && !d->bytes) {
		fail(s, host, DSM_R_LOST);
		return;
	}
	if (d->pending & dsm_bit(host))
		collected(s, host);
	else
		pump(s);
}
