// SPDX-License-Identifier: GPL-2.0
/*
 * One event of one page: who is meant, and is it possible at all?
 */
#include <string.h>

#include "internal.h"

#define RESULT(r)	(1u << DSM_OP_##r)
#define ALWAYS		(RESULT(DONE) | RESULT(BROKEN))

static const struct {
	const char *name;
	unsigned int results;		/* anywhere */
	unsigned int results_of_owner;	/* more, at home where the page may be a hole */
} operations[DSM_NR_OPERATIONS] = {
	[DSM_OP_INSTALL_S]  = { "INSTALL_S", ALWAYS, 0 },
	[DSM_OP_INSTALL_M]  = { "INSTALL_M", ALWAYS, 0 },
	[DSM_OP_ZERO_M]	    = { "ZERO_M", ALWAYS, 0 },
	[DSM_OP_UPGRADE]    = { "UPGRADE", ALWAYS, 0 },
	[DSM_OP_DOWNGRADE]  = { "DOWNGRADE", ALWAYS | RESULT(BUSY),
				RESULT(ABSENT) },
	[DSM_OP_INVALIDATE] = { "INVALIDATE", ALWAYS | RESULT(BUSY),
				RESULT(ABSENT) },
	[DSM_OP_READ]	    = { "READ", ALWAYS, 0 },
	[DSM_OP_DROP]	    = { "DROP", ALWAYS | RESULT(BUSY), RESULT(ABSENT) },
	[DSM_OP_POPULATE]   = { "POPULATE", ALWAYS,
				RESULT(EXISTS) | RESULT(NOMEM) },
};

static const char *const events[DSM_NR_EVENTS] = {
	[DSM_EV_MESSAGE]     = "message",
	[DSM_EV_RESULT]	     = "result",
	[DSM_EV_MISS]	     = "miss",
	[DSM_EV_EVICT]	     = "evict",
	[DSM_EV_DROP]	     = "drop",
	[DSM_EV_POPULATE]    = "populate",
	[DSM_EV_PRIVATE]     = "private",
	[DSM_EV_PUBLIC]	     = "public",
	[DSM_EV_STAYS]	     = "stays",
	[DSM_EV_RETRY]	     = "retry",
	[DSM_EV_PIN_TIMEOUT] = "pin timeout",
	[DSM_EV_LEASE_OVER]  = "lease over",
	[DSM_EV_RETIRED]     = "retired",
	[DSM_EV_HOST_LOST]   = "host lost",
};

const char *dsm_operation_name(unsigned int operation)
{
	return operation < DSM_NR_OPERATIONS && operations[operation].name ?
		operations[operation].name : "?";
}

const char *dsm_event_name(unsigned int event)
{
	return event < DSM_NR_EVENTS && events[event] ? events[event] : "?";
}

int dsm_page_init(struct dsm_page *page, const struct dsm_vm *vm, uint64_t gfn)
{
	unsigned int home = dsm_vm_home(vm, gfn);

	if (home == DSM_NOBODY)
		return -DSM_E_GFN;
	memset(page, 0, sizeof(*page));
	page->gfn = gfn;
	page->home = (uint8_t)home;
	if (home == vm->self) {
		page->state = DSM_MODIFIED;
		page->dir.mode = DSM_MODE_MODIFIED;
		page->dir.owner = vm->self;
	}
	return 0;
}

static int message(struct step *s, unsigned int from, const struct dsm_msg *msg)
{
	int rc = dsm_check(s->vm, from, msg);

	if (rc)
		return rc;
	if (msg->gfn != s->page->gfn)
		return -DSM_E_GFN;
	return at_home(s) ? directory_message(s, from, msg) :
			    holder_message(s, msg);
}

static int result(struct step *s, unsigned int result)
{
	struct dsm_page *page = s->page;
	unsigned int operation = page->operation;
	enum purpose purpose = page->purpose;
	unsigned int possible = operations[operation].results;

	if (at_home(s) && s->dir->mode == DSM_MODE_MODIFIED &&
	    s->dir->owner == s->vm->self)
		possible |= operations[operation].results_of_owner;
	if (!operation || result >= DSM_NR_RESULTS || !(possible >> result & 1))
		return -DSM_E_NO_OPERATION;

	page->operation = 0;
	page->purpose = FOR_NOTHING;
	if (result == DSM_OP_BROKEN) {
		fail(s, s->vm->self, DSM_R_BROKEN);
		return 0;
	}
	if (purpose == FOR_DIRECTORY)
		return directory_result(s, result);
	return holder_result(s, purpose, result);
}

static int lease_over(struct step *s, bool retired)
{
	struct dsm_page *page = s->page;

	if (page->lease == DSM_LEASE_TOKEN && !retired)
		return -DSM_E_NOT_NOW;
	if (retired) {
		page->lease = DSM_LEASE_NONE;
		page->lost = false;
	} else if (page->lease == DSM_LEASE_ACTIVE) {
		page->lease = DSM_LEASE_EXPIRED;
	}
	directory_lease_over(s);
	holder_lease_over(s);
	return 0;
}

static int host_lost(struct step *s, unsigned int host)
{
	if (host >= s->vm->nr_hosts || host == s->vm->self ||
	    s->vm->up & dsm_bit(host))
		return -DSM_E_PEER;
	if (at_home(s))
		directory_host_lost(s, host);
	else if (host == s->page->home)
		holder_home_lost(s);
	return 0;
}

static int handle(struct step *s, const struct dsm_event *event)
{
	switch (event->type) {
	case DSM_EV_MESSAGE:
		return message(s, event->from, &event->msg);
	case DSM_EV_MISS:
		return holder_miss(s, event->write, event->flags);
	case DSM_EV_EVICT:
		return holder_evict(s);
	case DSM_EV_DROP:
		return holder_request(s, DSM_DROP);
	case DSM_EV_POPULATE:
		return holder_request(s, DSM_POPULATE);
	case DSM_EV_PRIVATE:
		return at_home(s) ? directory_make_private(s) : -DSM_E_EVENT;
	case DSM_EV_PUBLIC:
		return at_home(s) ? directory_make_public(s) : -DSM_E_EVENT;
	case DSM_EV_STAYS:
		return at_home(s) ? directory_stays(s) : -DSM_E_EVENT;
	case DSM_EV_RETRY:
		directory_retry(s);
		holder_retry(s);
		return 0;
	case DSM_EV_PIN_TIMEOUT:
		directory_pin_timeout(s);
		holder_pin_timeout(s);
		return 0;
	case DSM_EV_LEASE_OVER:
		return lease_over(s, false);
	case DSM_EV_RETIRED:
		return lease_over(s, true);
	case DSM_EV_HOST_LOST:
		return host_lost(s, event->from);
	}
	return -DSM_E_EVENT;
}

int dsm_step(const struct dsm_vm *vm, struct dsm_page *page,
	     const struct dsm_event *event, struct dsm_actions *out)
{
	struct step s = { .vm = vm, .page = page, .dir = &page->dir, .out = out };

	out->nr = 0;
	if (page->broken)
		return -DSM_E_BROKEN;
	if (event->type == DSM_EV_RESULT)
		return result(&s, event->result);
	if (page->operation)
		return -DSM_E_OPERATION;
	return handle(&s, event);
}

bool dsm_page_is_idle(const struct dsm_page *page, const struct dsm_vm *vm)
{
	bool home = page->home == vm->self;

	if (page->broken || page->operation || page->request ||
	    page->writeback || page->recall || page->lost || page->lease != DSM_LEASE_NONE)
		return false;
	if (!home)
		return page->state == DSM_INVALID;
	return page->dir.phase == DSM_IDLE &&
	       page->dir.mode == DSM_MODE_MODIFIED &&
	       page->dir.owner == vm->self;
}

bool dsm_page_needs_buffer(const struct dsm_page *page)
{
	return page->operation || page->writeback || page->dir.phase != DSM_IDLE;
}

bool dsm_page_only_at(const struct dsm_page *page, unsigned int host)
{
	const struct dsm_directory *d = &page->dir;

	if (d->mode != DSM_MODE_MODIFIED || d->owner != host)
		return false;
	/* Elsewhere than at home there is no directory: all 0. */
	return host == page->home ? page->state == DSM_MODIFIED && !page->grant :
				    d->grant != 0;
}

bool dsm_page_concerns(const struct dsm_page *page, const struct dsm_vm *vm,
		       unsigned int host)
{
	const struct dsm_directory *d = &page->dir;

	if (page->home == host)
		return page->state != DSM_INVALID || page->request ||
		       page->writeback || page->recall;
	if (page->home != vm->self)
		return false;
	return (d->phase == DSM_COLLECT && d->pending & dsm_bit(host)) ||
	       (d->mode == DSM_MODE_SHARED ? d->copyset & dsm_bit(host) :
					     d->owner == host);
}
