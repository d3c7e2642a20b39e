/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages of a guest that are not here when it sends from them (GNTST_eagain): its
 * packets wait for them in the queue.  See eagain.c.
 */
#ifndef __XEN_NETBACK__EAGAIN_H__
#define __XEN_NETBACK__EAGAIN_H__

#include <linux/hrtimer.h>
#include <linux/types.h>

struct xenvif_queue;

/* Of the poll function, and of who has disabled it. */
struct xenvif_eagain {
	unsigned int nr_cops;	/* of the batch that waits; 0: none does */
	unsigned int nr_mops;
	ktime_t since;
	struct hrtimer timer;	/* polls again */
};

void xenvif_eagain_init(struct xenvif_queue *queue);

/* Whether this batch, which has just been asked for, waits now. */
bool xenvif_eagain_keep(struct xenvif_queue *queue, unsigned int nr_cops,
			unsigned int nr_mops);

/* Ask for it again.  False: it is to be handed on as it is, and waits no more. */
bool xenvif_eagain_waits(struct xenvif_queue *queue);

/* Who has disabled the poll function lets go of what waits: all of it is lost. */
void xenvif_eagain_drop(struct xenvif_queue *queue);

#endif
