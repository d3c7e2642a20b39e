// SPDX-License-Identifier: GPL-2.0
/*
 * The progress token: first come, first served.
 */
#include <string.h>

#include "token.h"

void dsm_token_init(struct dsm_token *token)
{
	memset(token, 0, sizeof(*token));
	token->holder = DSM_NOBODY;
}

static void send_token(const struct dsm_vm *vm, unsigned int host,
		       unsigned int type, struct dsm_actions *out)
{
	/* dsm_token_host_lost() is still to come. */
	if (!(vm->up & dsm_bit(host)))
		return;
	out->action[out->nr++] = (struct dsm_action){
		.type = DSM_ACT_SEND,
		.host = (uint8_t)host,
		.msg = { .type = (uint8_t)type, .epoch = vm->epoch[host] },
	};
}

static void arrived(const struct dsm_vm *vm, struct dsm_token *token,
		    struct dsm_actions *out);

static void hand_out(const struct dsm_vm *vm, struct dsm_token *token,
		     struct dsm_actions *out)
{
	if (token->holder != DSM_NOBODY || !token->nr_queued)
		return;
	token->holder = token->queue[0];
	token->nr_queued--;
	memmove(token->queue, token->queue + 1, token->nr_queued);
	token->queue[token->nr_queued] = 0;
	if (token->holder == vm->self)
		arrived(vm, token, out);
	else
		send_token(vm, token->holder, DSM_TOKEN_GRANT, out);
}

static bool is_known(const struct dsm_token *token, unsigned int host)
{
	return token->holder == host ||
	       memchr(token->queue, (int)host, token->nr_queued);
}

int dsm_token_want(const struct dsm_vm *vm, struct dsm_token *token,
		   struct dsm_actions *out)
{
	bool asked = token->state == DSM_TOKEN_UNWANTED;

	out->nr = 0;
	if (token->state == DSM_TOKEN_ASKED || token->state == DSM_TOKEN_HERE)
		return -DSM_E_NOT_NOW;
	if (vm->token_home != vm->self && !(vm->up & dsm_bit(vm->token_home)))
		return -DSM_E_PEER;
	token->state = DSM_TOKEN_ASKED;
	if (asked)
		return 0;
	if (vm->token_home == vm->self) {
		token->queue[token->nr_queued++] = vm->self;
		hand_out(vm, token, out);
	} else {
		send_token(vm, vm->token_home, DSM_TOKEN_REQ, out);
	}
	return 0;
}

static void give_back(const struct dsm_vm *vm, struct dsm_token *token,
		      struct dsm_actions *out)
{
	token->state = DSM_TOKEN_ELSEWHERE;
	if (vm->token_home == vm->self) {
		token->holder = DSM_NOBODY;
		hand_out(vm, token, out);
	} else {
		send_token(vm, vm->token_home, DSM_TOKEN_FREE, out);
	}
}

int dsm_token_free(const struct dsm_vm *vm, struct dsm_token *token,
		   struct dsm_actions *out)
{
	out->nr = 0;
	if (token->state == DSM_TOKEN_HERE)
		give_back(vm, token, out);
	else if (token->state == DSM_TOKEN_ASKED)
		token->state = DSM_TOKEN_UNWANTED;
	else
		return -DSM_E_NOT_NOW;
	return 0;
}

/* It has come. */
static void arrived(const struct dsm_vm *vm, struct dsm_token *token,
		    struct dsm_actions *out)
{
	if (token->state == DSM_TOKEN_UNWANTED)
		give_back(vm, token, out);
	else
		token->state = DSM_TOKEN_HERE;
}

int dsm_token_message(const struct dsm_vm *vm, struct dsm_token *token,
		      unsigned int from, const struct dsm_msg *msg,
		      struct dsm_actions *out)
{
	int rc = dsm_check(vm, from, msg);

	out->nr = 0;
	if (rc)
		return rc;
	switch (msg->type) {
	case DSM_TOKEN_REQ:
		if (is_known(token, from))
			return -DSM_E_TOKEN;
		token->queue[token->nr_queued++] = (uint8_t)from;
		break;
	case DSM_TOKEN_FREE:
		if (token->holder != from)
			return -DSM_E_TOKEN;
		token->holder = DSM_NOBODY;
		break;
	case DSM_TOKEN_GRANT:
		if (token->state != DSM_TOKEN_ASKED &&
		    token->state != DSM_TOKEN_UNWANTED)
			return -DSM_E_TOKEN;
		arrived(vm, token, out);
		return 0;
	default:
		return -DSM_E_TYPE;
	}
	hand_out(vm, token, out);
	return 0;
}

void dsm_token_host_lost(const struct dsm_vm *vm, struct dsm_token *token,
			 unsigned int host, struct dsm_actions *out)
{
	unsigned int i, kept = 0;

	out->nr = 0;
	if (host == vm->token_home && host != vm->self)
		token->state = DSM_TOKEN_ELSEWHERE;
	for (i = 0; i < token->nr_queued; i++)
		if (token->queue[i] != host)
			token->queue[kept++] = token->queue[i];
	for (i = kept; i < token->nr_queued; i++)
		token->queue[i] = 0;
	token->nr_queued = (uint8_t)kept;
	if (token->holder == host)
		token->holder = DSM_NOBODY;
	hand_out(vm, token, out);
}
