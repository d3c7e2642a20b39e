/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of dsm/core share.  Each stands on those below it:
 *
 *	step.c		who is meant
 *	holder.c	the host that has or wants the page
 *	directory.c	its home
 *	lease.c		this host's request and its lease, of both of them
 *	act.c		the actions that a step says
 */
#ifndef DSM_INTERNAL_H
#define DSM_INTERNAL_H

#include "page.h"

/* Whose operation it is. */
enum purpose {
	FOR_NOTHING,
	FOR_DIRECTORY,
	FOR_ANSWER,		/* of the home, to our request */
	FOR_RECALL,
	FOR_EVICTION,
};

/* One event being handled. */
struct step {
	const struct dsm_vm *vm;
	struct dsm_page *page;
	struct dsm_directory *dir;
	struct dsm_actions *out;
};

static inline bool at_home(const struct step *s)
{
	return s->page->home == s->vm->self;
}

/* act.c */
void act(struct step *s, struct dsm_action action);
void post(struct step *s, unsigned int host, unsigned int type,
	  unsigned int flags, unsigned int reason, uint32_t txn);
void wake(struct step *s, unsigned int whom);
void fail(struct step *s, unsigned int host, unsigned int reason);
void operate(struct step *s, enum purpose purpose, unsigned int operation,
	     unsigned int bytes, unsigned int whom);

/* lease.c */
/* May a recall with these flags not have the page yet, because of a lease? */
bool lease_holds(const struct step *s, unsigned int recall_flags);
/* The page has come for a vCPU that missed. */
void lease_begin(struct step *s, unsigned int request_flags);
/* Our request has its answer. */
void answered(struct step *s);
/* The page goes. */
void lease_broken(struct step *s);

int holder_message(struct step *s, const struct dsm_msg *msg);
int holder_miss(struct step *s, bool write, unsigned int flags);
int holder_request(struct step *s, unsigned int type);
int holder_evict(struct step *s);
int holder_result(struct step *s, enum purpose purpose, unsigned int result);
void holder_retry(struct step *s);
void holder_pin_timeout(struct step *s);
void holder_lease_over(struct step *s);
void holder_home_lost(struct step *s);

int directory_message(struct step *s, unsigned int from,
		      const struct dsm_msg *msg);
void directory_request(struct step *s, struct dsm_request request);
int directory_make_private(struct step *s);
int directory_make_public(struct step *s);
int directory_stays(struct step *s);
int directory_result(struct step *s, unsigned int result);
void directory_retry(struct step *s);
void directory_pin_timeout(struct step *s);
void directory_lease_over(struct step *s);
void directory_host_lost(struct step *s, unsigned int host);

#endif
