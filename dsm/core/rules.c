// SPDX-License-Identifier: GPL-2.0
/*
 * What must hold of one struct dsm_page between two events.  What must hold
 * between hosts is checked where all of them are seen: dsm/explorer.
 */
#include <string.h>

#include "internal.h"

static const char *queue_rule(const struct dsm_directory *d, uint16_t hosts)
{
	uint16_t seen = 0;
	unsigned int i;

	if (d->nr_queued > DSM_MAX_HOSTS)
		return "the queue is longer than there are hosts";
	if (d->phase != DSM_IDLE && d->now.host != DSM_NOBODY)
		seen |= dsm_bit(d->now.host);
	for (i = 0; i < d->nr_queued; i++) {
		if (d->queue[i].host >= DSM_MAX_HOSTS ||
		    !(hosts & dsm_bit(d->queue[i].host)))
			return "a request of a host that is not there";
		if (seen & dsm_bit(d->queue[i].host))
			return "two requests of one host";
		seen |= dsm_bit(d->queue[i].host);
	}
	if (d->phase == DSM_IDLE && d->nr_queued)
		return "a request waits for nothing";
	return NULL;
}

static const char *mode_rule(const struct dsm_page *page,
			     const struct dsm_vm *vm)
{
	const struct dsm_directory *d = &page->dir;
	bool at_home = d->owner == vm->self;

	switch (d->mode) {
	case DSM_MODE_SHARED:
		if (!(d->copyset & dsm_bit(vm->self)) ||
		    page->state != DSM_SHARED)
			return "shared, and the home has no copy";
		return NULL;
	case DSM_MODE_PRIVATE:
		return page->state == DSM_MODIFIED ? NULL :
						     "private, and not at home";
	case DSM_MODE_MODIFIED:
		if (d->owner >= vm->nr_hosts)
			return "an owner that is not there";
		if (d->copyset)
			return "an owner beside sharers";
		if (page->state != (at_home ? DSM_MODIFIED : DSM_INVALID))
			return "the home's state is not the directory's";
		if (!at_home == !d->grant)
			return "an owner without a grant, or a grant at home";
		return NULL;
	}
	return "no such mode";
}

static const char *phase_rule(const struct dsm_page *page, uint16_t hosts,
			      const struct step *s)
{
	const struct dsm_directory *d = &page->dir;

	switch (d->phase) {
	case DSM_IDLE:
		if (d->pending || d->abort || d->bytes || d->kept || d->busy ||
		    d->now.type)
			return "something is left of a transaction";
		return NULL;
	case DSM_COLLECT:
		if (!d->pending || d->pending & ~hosts || page->operation)
			return "waits for answers of nobody";
		return NULL;
	case DSM_LOCAL:
		if (d->pending)
			return "works on its own frame before all have answered";
		if (!page->operation && !d->busy && !lease_holds(s, d->now.flags))
			return "the home waits for nothing";
		return NULL;
	}
	return "no such phase";
}

static const char *holder_rule(const struct dsm_page *page,
			       const struct step *s)
{
	static const struct dsm_directory none;

	if (page->state > DSM_MODIFIED || page->lease > DSM_LEASE_TOKEN)
		return "no such state";
	if (page->writeback &&
	    (page->state != DSM_INVALID || page->request || page->recall))
		return "a write-back beside something else";
	if (page->wanted && !page->writeback)
		return "a miss waits for no write-back";
	if (page->demand && !page->request && !page->wanted)
		return "somebody waits for what nobody asks for";
	if (page->stopped && !page->demand)
		return "somebody is stopped who does not wait";
	if (!at_home(s) && (page->state == DSM_MODIFIED || page->writeback) &&
	    !page->grant)
		return "modified without a grant";
	if (page->recall) {
		if (page->state != (page->recall == DSM_INV ? DSM_SHARED :
							      DSM_MODIFIED))
			return "a recall of what is not here waits";
		if (!page->operation && !page->recall_busy &&
		    !lease_holds(s, page->recall_flags))
			return "a recall waits for nothing";
	}
	if (!at_home(s) && memcmp(&page->dir, &none, sizeof(none)))
		return "a directory elsewhere than at home";
	return NULL;
}

const char *dsm_page_broken_rule(const struct dsm_page *page,
				 const struct dsm_vm *vm)
{
	uint16_t hosts = (uint16_t)((1u << vm->nr_hosts) - 1);
	struct dsm_page copy = *page;
	struct step s = { .vm = vm, .page = &copy, .dir = &copy.dir };
	const char *rule = holder_rule(page, &s);

	if (page->broken)
		return NULL;
	if (rule || !at_home(&s))
		return rule;
	rule = queue_rule(&page->dir, hosts);
	if (!rule)
		rule = mode_rule(page, vm);
	if (!rule)
		rule = phase_rule(page, (uint16_t)(hosts & ~dsm_bit(vm->self)),
				  &s);
	return rule;
}
