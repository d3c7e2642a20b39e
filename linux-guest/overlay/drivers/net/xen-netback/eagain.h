/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages of a guest that are not here when it sends from them, or when packets are
 * copied to them (GNTST_eagain): its packets wait for them.  See eagain.c.
 */
#ifndef __XEN_NETBACK__EAGAIN_H__
#define __XEN_NETBACK__EAGAIN_H__

#include <linux/hrtimer.h>
#include <linux/types.h>

struct gnttab_copy;
struct xenvif;
struct xenvif_queue;

/* Of a thread that copies and can sleep: one round of what it has to do. */
struct xenvif_round {
	bool waited;	/* it takes nothing more */
	bool in_vain;	/* it waits no more */
	bool over;	/* by who ends the thread, for good */
};

/* Of the poll function, and of who has disabled it. */
struct xenvif_eagain {
	unsigned int nr_cops;	/* of the batch that waits; 0: none does */
	unsigned int nr_mops;
	ktime_t since;
	struct hrtimer timer;	/* polls again */
	struct xenvif_round rx;	/* of the thread for the way to the guest */
};

void xenvif_eagain_init(struct xenvif_queue *queue);

/* Whether this batch, which has just been asked for, waits now. */
bool xenvif_eagain_keep(struct xenvif_queue *queue, unsigned int nr_cops,
			unsigned int nr_mops);

/* Ask for it again.  False: it is to be handed on as it is, and waits no more. */
bool xenvif_eagain_waits(struct xenvif_queue *queue);

/* Who has disabled the poll function lets go of what waits: all of it is lost. */
void xenvif_eagain_drop(struct xenvif_queue *queue);

/*
 * Copy, for who can sleep.  What is away is waited for, all of it at once, and is
 * GNTST_bad_page in the end.
 */
void xenvif_eagain_copy(struct xenvif *vif, struct xenvif_round *round,
			struct gnttab_copy *cop, unsigned int nr);

/*
 * The same for what is on its way to the guest, which is heard meanwhile where both
 * ways share an event channel.
 */
void xenvif_eagain_rx(struct xenvif_queue *queue);

#endif
