/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The progress token of a VM, and who wants it.
 *
 * An instruction may need several pages at once, and two hosts can each hold
 * what the other needs, for ever.  A lease keeps a page for one instruction,
 * most of the time.  A vCPU that has lost too many pages without retiring an
 * instruction takes the token, of which there is one: its leases can't be
 * broken, and all others give way to it.  Its host doesn't tell the protocol
 * of further misses of that vCPU before the token has come.
 *
 * The token is at its home, at one host, or under way.  If its home is lost
 * there is none any more, and none will be: such a VM is to be stopped, as for a
 * home of pages.
 */
#ifndef DSM_TOKEN_H
#define DSM_TOKEN_H

#include "page.h"

#ifdef __cplusplus
extern "C" {
#endif

enum dsm_token_state {
	DSM_TOKEN_ELSEWHERE,
	DSM_TOKEN_ASKED,
	DSM_TOKEN_HERE,
	DSM_TOKEN_UNWANTED,	/* asked for, and then not needed: goes on as it comes */
};

/* One for each host; the queue is used at the token's home only. */
struct dsm_token {
	uint8_t state;		/* enum dsm_token_state, of this host */
	uint8_t holder;		/* DSM_NOBODY: here, at the token's home */
	uint8_t nr_queued;
	uint8_t queue[DSM_MAX_HOSTS];
};

void dsm_token_init(struct dsm_token *token);

/**
 * A vCPU of this host wants the token.
 * @out: as for dsm_step(); only DSM_ACT_SEND.
 * Return: 0; -DSM_E_NOT_NOW if a vCPU of this host has it or has asked: one at
 * a time; -DSM_E_PEER if there is no connection with its home.
 */
int dsm_token_want(const struct dsm_vm *vm, struct dsm_token *token,
		   struct dsm_actions *out);

/**
 * The vCPU that wanted the token has retired its instruction, with or without.
 * Return: 0; -DSM_E_NOT_NOW if nobody here wanted it.
 */
int dsm_token_free(const struct dsm_vm *vm, struct dsm_token *token,
		   struct dsm_actions *out);

/** A TOKEN_ message of peer @from. Return: 0 or -(enum dsm_error). */
int dsm_token_message(const struct dsm_vm *vm, struct dsm_token *token,
		      unsigned int from, const struct dsm_msg *msg,
		      struct dsm_actions *out);

/**
 * The connection with @host is gone; what it had or wanted is free.  If the token
 * has its home there, nobody here has it or has asked for it any more.
 */
void dsm_token_host_lost(const struct dsm_vm *vm, struct dsm_token *token,
			 unsigned int host, struct dsm_actions *out);

/*
 * What a vCPU has lost since it last retired an instruction.
 */
struct dsm_losses {
	uint8_t count;
};

/**
 * The vCPU misses @page.  Call it before dsm_step(DSM_EV_MISS).
 * Return: does it need the token?
 */
static inline bool dsm_losses_miss(struct dsm_losses *losses,
				   const struct dsm_vm *vm,
				   const struct dsm_page *page)
{
	if (page->lost && losses->count < vm->max_losses)
		losses->count++;
	return losses->count >= vm->max_losses;
}

static inline void dsm_losses_retired(struct dsm_losses *losses)
{
	losses->count = 0;
}

#ifdef __cplusplus
}
#endif

#endif
