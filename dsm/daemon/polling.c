// SPDX-License-Identifier: GPL-2.0
/*
 * With an idle watcher that is active, libev looks at its descriptors and does not
 * wait; the watcher is called if there was nothing.
 */
#include "polling.h"
#include "relax.h"

static void on_idle(struct ev_loop *loop, ev_idle *idle, int events)
{
	struct dsm_poll *poll = idle->data;
	unsigned int i;

	(void)loop;
	(void)events;
	for (i = 0; i < DSM_POLL_LOOKS && !poll->look(poll->context); i++)
		dsm_relax();
}

void dsm_poll_init(struct dsm_poll *poll, struct ev_loop *loop,
		   uint64_t wait_ns, uint64_t poll_ns,
		   dsm_poll_look *look, void *context)
{
	*poll = (struct dsm_poll){
		.loop = loop, .wait_ns = wait_ns, .poll_ns = poll_ns,
		.look = look, .context = context,
	};
	ev_idle_init(&poll->idle, on_idle);
	poll->idle.data = poll;
}

void dsm_poll_stop(struct dsm_poll *poll)
{
	if (poll->loop)
		ev_idle_stop(poll->loop, &poll->idle);
}

void dsm_poll_event(struct dsm_poll *poll, uint64_t now)
{
	poll->last = now;
	if (!ev_is_active(&poll->idle))
		return;
	poll->counts.found++;
	/* The next look is one for what comes after this. */
	ev_idle_stop(poll->loop, &poll->idle);
}

void dsm_poll_before_sleep(struct dsm_poll *poll, uint64_t now, bool asking)
{
	uint64_t length = poll->poll_ns;

	if (asking && poll->wait_ns > length)
		length = poll->wait_ns;
	if (poll->last && length && now - poll->last < length) {
		poll->counts.looks++;
		ev_idle_start(poll->loop, &poll->idle);
		return;
	}
	poll->counts.sleeps++;
	ev_idle_stop(poll->loop, &poll->idle);
}
