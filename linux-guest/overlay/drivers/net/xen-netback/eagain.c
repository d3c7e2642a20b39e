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
 *
 * Threads copy what is on its way to the guest, and what the control ring is asked
 * for.  They can sleep, but not as gnttab_batch_copy() does, which waits for each
 * page by itself, up to 32 s, whoever wants the thread to end and whosever packets
 * it has meanwhile.  They ask again in the same way as above, for all of a batch.
 */

#include "common.h"

#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>

#include <xen/events.h>

#include <asm/xen/hypercall.h>

/* That there is such a parameter says that this netback can wait. */
static unsigned int page_wait_msecs = 1000;
module_param(page_wait_msecs, uint, 0644);
MODULE_PARM_DESC(page_wait_msecs,
		 "How long packets of and for a guest wait for a page that is paged out, or at another host");

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

/*
 * An event channel for both ways has no EOI while a batch of one of them waits.
 * The guest is to be heard for the other one, and no more often than this one is
 * tried.
 */
static void hear_other_way(struct xenvif_queue *queue)
{
	if (atomic_fetch_andnot(NETBK_COMMON_EOI, &queue->eoi_pending) &
	    NETBK_COMMON_EOI)
		xen_irq_lateeoi(queue->tx_irq, 0);
}

static enum hrtimer_restart poll_again(struct hrtimer *timer)
{
	struct xenvif_queue *queue =
		container_of(timer, struct xenvif_queue, eagain.timer);

	hear_other_way(queue);
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

static bool copies_away(const struct gnttab_copy *cop, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (cop[i].status == GNTST_eagain)
			return true;
	return false;
}

static bool some_away(const struct xenvif_queue *queue, unsigned int nr_cops,
		      unsigned int nr_mops)
{
	unsigned int i;

	if (copies_away(queue->tx_copy_ops, nr_cops))
		return true;
	for (i = 0; i < nr_mops; i++)
		if (queue->tx_map_ops[i].status == GNTST_eagain)
			return true;
	return false;
}

/* What is away stays GNTST_eagain. */
static void try_copy(struct gnttab_copy *cop, unsigned int nr)
{
	unsigned int i;
	int ret = HYPERVISOR_grant_table_op(GNTTABOP_copy, cop, nr);

	if (likely(!ret))
		return;
	if (net_ratelimit())
		pr_err("Copy fail: nr %u ret %d\n", nr, ret);
	for (i = 0; i < nr; i++)
		cop[i].status = GNTST_general_error;
}

/* What is copied is not copied again: its packet may have been changed by now. */
static void copy_again(struct gnttab_copy *cop, unsigned int nr)
{
	struct gnttab_copy *end = cop + nr;
	unsigned int n;

	for (; cop < end; cop += n ? n : 1) {
		n = run_of_away(cop, end);
		if (n)
			try_copy(cop, n);
	}
}

/* What is here is not asked for again: it would be mapped twice. */
static void ask_again(struct xenvif_queue *queue)
{
	struct gnttab_map_grant_ref *mop = queue->tx_map_ops;
	struct gnttab_map_grant_ref *last_mop = mop + queue->eagain.nr_mops;
	unsigned int n;
	int ret;

	copy_again(queue->tx_copy_ops, queue->eagain.nr_cops);
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

/* The longer it has waited, the longer it waits. */
static s64 next_wait(s64 waited_us)
{
	return clamp_t(s64, waited_us / 4, FIRST_WAIT_US, LONGEST_WAIT_US);
}

static s64 longest_us(void)
{
	return READ_ONCE(page_wait_msecs) * (s64)USEC_PER_MSEC;
}

static void poll_later(struct xenvif_queue *queue, s64 waited_us)
{
	hrtimer_start(&queue->eagain.timer,
		      ns_to_ktime(next_wait(waited_us) * NSEC_PER_USEC),
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
		if (waited_us < longest_us()) {
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

static bool is_over(const struct xenvif *vif, const struct xenvif_round *round)
{
	return kthread_should_stop() || READ_ONCE(vif->disabled) ||
	       READ_ONCE(round->over);
}

/* The queue is NULL for the control ring, which is of none.  True: it has waited. */
static bool copy_or_wait(struct xenvif *vif, struct xenvif_queue *queue,
			 struct xenvif_round *round, struct gnttab_copy *cop,
			 unsigned int nr)
{
	ktime_t since = ktime_get();
	s64 us, waited_us = 0;
	unsigned int i;

	try_copy(cop, nr);
	while (copies_away(cop, nr) && !round->in_vain && !is_over(vif, round)) {
		if (waited_us >= longest_us()) {
			round->in_vain = true;
			if (waited_us && net_ratelimit())
				netdev_warn(vif->dev,
					    "pages of the guest are still away after %lld ms, copies to or from them are lost\n",
					    waited_us / USEC_PER_MSEC);
			break;
		}
		if (queue)
			hear_other_way(queue);
		us = next_wait(waited_us);
		usleep_range(us, us + FIRST_WAIT_US);
		waited_us = ktime_us_delta(ktime_get(), since);
		copy_again(cop, nr);
	}
	for (i = 0; i < nr; i++)
		if (cop[i].status == GNTST_eagain)
			cop[i].status = GNTST_bad_page;
	return waited_us > 0;
}

void xenvif_eagain_copy(struct xenvif *vif, struct xenvif_round *round,
			struct gnttab_copy *cop, unsigned int nr)
{
	copy_or_wait(vif, NULL, round, cop, nr);
}

void xenvif_eagain_rx(struct xenvif_queue *queue)
{
	struct xenvif_round *round = &queue->eagain.rx;

	if (!copy_or_wait(queue->vif, queue, round, queue->rx_copy.op,
			  queue->rx_copy.num))
		return;
	round->waited = true;
	queue->stats.rx_page_waits++;
	if (round->in_vain)	/* It has not waited after that. */
		queue->stats.rx_page_wait_fails++;
	/* A guest gives no room before it has what was sent: it has not stalled. */
	queue->last_rx_time = jiffies;
}
