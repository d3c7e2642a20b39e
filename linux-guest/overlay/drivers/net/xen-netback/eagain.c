// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of a guest that are not here when it sends from them (GNTST_eagain): they
 * are paged out, or another host has them.  Xen has asked for them by then.  The
 * poll function can't sleep, so the batch stays in the queue as it is, with its
 * skbs in tx_queue, and a timer polls again.  Then only what is away is asked for
 * again: a page that is mapped stays here, so each try can only have more.  When
 * nothing is away, or the time is up, all of the batch is handed on in its order,
 * and what is away then is an error of its packet, as any other.
 *
 * What waits is the poll function's, which runs once at a time, and that of who has
 * disabled it.  Only the timer's end is asynchronous, and it only schedules NAPI.
 */

#include "common.h"

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>

#include <xen/events.h>

/* That there is such a parameter says that this netback can wait. */
static unsigned int page_wait_msecs = 1000;
module_param(page_wait_msecs, uint, 0644);
MODULE_PARM_DESC(page_wait_msecs,
		 "How long packets of a guest wait for a page that is paged out, or at another host");

/* A page of another host takes some 50 us at best, and may leave again soon. */
#define FIRST_WAIT_US	100
#define LONGEST_WAIT_US	1000

/* How many of the ops from this one on are away, up to the first that is not. */
#define run_of_away(op, end)						\
	({								\
		unsigned int _n = 0;					\
									\
		while ((op) + _n < (end) && (op)[_n].status == GNTST_eagain) \
			_n++;						\
		_n;							\
	})

static enum hrtimer_restart poll_again(struct hrtimer *timer)
{
	struct xenvif_queue *queue =
		container_of(timer, struct xenvif_queue, eagain.timer);

	/*
	 * An event channel for both ways has no EOI while a batch waits.  The
	 * guest is to be heard when it makes room for what is sent to it, and
	 * no more often than this timer runs.
	 */
	if (atomic_fetch_andnot(NETBK_COMMON_EOI, &queue->eoi_pending) &
	    NETBK_COMMON_EOI)
		xen_irq_lateeoi(queue->tx_irq, 0);

	/*
	 * The poll function that has started this timer may not have come to
	 * its end: NAPI takes note then, and polls once more.
	 */
	napi_schedule(&queue->napi);
	return HRTIMER_NORESTART;
}

void xenvif_eagain_init(struct xenvif_queue *queue)
{
	queue->eagain.nr_cops = 0;
	hrtimer_init(&queue->eagain.timer, CLOCK_MONOTONIC,
		     HRTIMER_MODE_REL_PINNED);
	queue->eagain.timer.function = poll_again;
}

static bool some_away(const struct xenvif_queue *queue, unsigned int nr_cops,
		      unsigned int nr_mops)
{
	unsigned int i;

	for (i = 0; i < nr_cops; i++)
		if (queue->tx_copy_ops[i].status == GNTST_eagain)
			return true;
	for (i = 0; i < nr_mops; i++)
		if (queue->tx_map_ops[i].status == GNTST_eagain)
			return true;
	return false;
}

/* What is here is not asked for again: it would be mapped twice. */
static void ask_again(struct xenvif_queue *queue)
{
	struct gnttab_copy *cop = queue->tx_copy_ops;
	struct gnttab_copy *last_cop = cop + queue->eagain.nr_cops;
	struct gnttab_map_grant_ref *mop = queue->tx_map_ops;
	struct gnttab_map_grant_ref *last_mop = mop + queue->eagain.nr_mops;
	unsigned int n;
	int ret;

	for (; cop < last_cop; cop += n ? n : 1) {
		n = run_of_away(cop, last_cop);
		if (n)
			gnttab_batch_copy(cop, n);
	}
	for (; mop < last_mop; mop += n ? n : 1) {
		n = run_of_away(mop, last_mop);
		if (!n)
			continue;
		ret = gnttab_map_refs(mop, NULL, queue->pages_to_map +
				      (mop - queue->tx_map_ops), n);
		if (ret && net_ratelimit())
			netdev_err(queue->vif->dev,
				   "Map fail: nr %u ret %d, asked for again\n",
				   n, ret);
	}
}

static void poll_later(struct xenvif_queue *queue, s64 waited_us)
{
	s64 us = clamp_t(s64, waited_us / 4, FIRST_WAIT_US, LONGEST_WAIT_US);

	hrtimer_start(&queue->eagain.timer, ns_to_ktime(us * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED);
}

bool xenvif_eagain_keep(struct xenvif_queue *queue, unsigned int nr_cops,
			unsigned int nr_mops)
{
	if (likely(!some_away(queue, nr_cops, nr_mops)) ||
	    !READ_ONCE(page_wait_msecs))
		return false;

	queue->stats.tx_page_waits++;
	queue->eagain.nr_cops = nr_cops;
	queue->eagain.nr_mops = nr_mops;
	queue->eagain.since = ktime_get();
	poll_later(queue, 0);
	return true;
}

bool xenvif_eagain_waits(struct xenvif_queue *queue)
{
	s64 waited_us = ktime_us_delta(ktime_get(), queue->eagain.since);

	ask_again(queue);
	if (some_away(queue, queue->eagain.nr_cops, queue->eagain.nr_mops)) {
		if (waited_us < READ_ONCE(page_wait_msecs) * (s64)USEC_PER_MSEC) {
			poll_later(queue, waited_us);
			return true;
		}
		queue->stats.tx_page_wait_fails++;
		if (net_ratelimit())
			netdev_warn(queue->vif->dev,
				    "pages of the guest are still away after %lld ms, packets are lost\n",
				    waited_us / USEC_PER_MSEC);
	}
	queue->eagain.nr_cops = 0;
	return false;
}

void xenvif_eagain_drop(struct xenvif_queue *queue)
{
	unsigned int i;

	hrtimer_cancel(&queue->eagain.timer);
	/*
	 * An error of its header takes all of a packet back: what is mapped
	 * is unmapped, and the guest is told.
	 */
	for (i = 0; i < queue->eagain.nr_cops; i++)
		queue->tx_copy_ops[i].status = GNTST_general_error;
	queue->eagain.nr_cops = 0;
	xenvif_tx_submit(queue);
}
