// SPDX-License-Identifier: GPL-2.0
/*
 * What a step does: the actions that it says.  Here they are only noted; who
 * asked for the step does them, in this order.
 */
#include "internal.h"

void act(struct step *s, struct dsm_action action)
{
	s->out->action[s->out->nr++] = action;
}

void post(struct step *s, unsigned int host, unsigned int type,
	  unsigned int flags, unsigned int reason, uint32_t txn)
{
	/* DSM_EV_HOST_LOST comes as soon as no result is due. */
	if (!(s->vm->up & dsm_bit(host)))
		return;
	act(s, (struct dsm_action){
		.type = DSM_ACT_SEND,
		.host = (uint8_t)host,
		.msg = {
			.type = (uint8_t)type,
			.flags = (uint8_t)flags,
			.reason = (uint8_t)reason,
			.epoch = s->vm->epoch[host],
			.txn = txn,
			.gfn = s->page->gfn,
		},
	});
}

void wake(struct step *s, unsigned int whom)
{
	act(s, (struct dsm_action){
		.type = DSM_ACT_WAKE, .wake = (uint8_t)whom,
	});
}

/* The last action: nothing can be done with this page any more. */
void fail(struct step *s, unsigned int host, unsigned int reason)
{
	s->page->broken = true;
	act(s, (struct dsm_action){
		.type = DSM_ACT_FAIL,
		.host = (uint8_t)host,
		.reason = (uint8_t)reason,
	});
}

void operate(struct step *s, enum purpose purpose, unsigned int operation,
	     unsigned int bytes, unsigned int whom)
{
	s->page->operation = (uint8_t)operation;
	s->page->purpose = (uint8_t)purpose;
	act(s, (struct dsm_action){
		.type = DSM_ACT_OPERATION,
		.operation = (uint8_t)operation,
		.bytes = (uint8_t)bytes,
		.wake = (uint8_t)whom,
	});
}
