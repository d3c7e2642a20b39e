/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A queue pair, and all that it needs of an adapter: a protection domain, a
 * completion queue with its channel, and one memory region with the buffers.
 *
 * The adapter may touch that region only, and the peer nothing: it is ours to write,
 * no remote access, so there is no key that a peer could use.
 *
 * Context: as transport.h.  Errors are errno's, negative.
 */
#ifndef DSM_QUEUE_PAIR_H
#define DSM_QUEUE_PAIR_H

#include <rdma/rdma_cma.h>

#include "transport.h"
#include "wire.h"

#define DSM_QP_SENDS	64	/* messages that the adapter has at a time */
#define DSM_QP_LINKS	4	/* frames of the connection, likewise */

/* What a completion is of: wr_id is the kind and the number of the buffer. */
#define DSM_QP_KIND	0xff000000u
#define DSM_QP_RECEIVE	0x01000000u	/* the other kinds are the caller's */

struct dsm_qp_frame {
	uint8_t head[DSM_WIRE_BYTES];
	uint8_t page[DSM_PAGE_BYTES];
};

struct dsm_qp {
	/* the buffers, as long as there is a peer */
	struct dsm_qp_frame *receive;	/* nr_receives */
	struct dsm_qp_frame *send;	/* nr_sends */
	uint8_t (*link)[DSM_WIRE_BYTES];	/* DSM_QP_LINKS */
	uint32_t nr_receives, nr_sends;
	void *all;
	size_t size;
	/* the adapter's, as long as there is a connection */
	struct rdma_cm_id *id;	/* of the caller; dsm_qp_destroy() destroys it, too */
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
};

/**
 * What a completion that is no success says of the connection.
 * @receive: it is of a buffer for what the peer sends.
 * Return: DSM_END_FRAME: the peer's fault; DSM_END_LOCAL: this host's; DSM_END_CUT.
 */
enum dsm_end dsm_qp_end(enum ibv_wc_status status, bool receive);

/**
 * Can an adapter have a queue pair with so many receives?
 * A number that it does not tell (0) is enough.
 * @frames: receives, and messages that are sent or wait.
 * @text: what it has too little of, and what would help.
 */
bool dsm_qp_fits(const struct ibv_device_attr *adapter, uint32_t receives, uint32_t frames,
		 char text[DSM_TRANSPORT_TEXT]);

/** The buffers.  Return: 0; -ENOMEM. */
int dsm_qp_init(struct dsm_qp *qp, uint32_t receives, uint32_t sends);

void dsm_qp_free(struct dsm_qp *qp);

/**
 * Make a queue pair for qp->id, with all receives posted.
 * @ack_timeout: 4.096 us times 2 to the power of it.
 * @text: which call has failed, with what.
 * Return: 0; else dsm_qp_destroy() is the caller's.
 */
int dsm_qp_create(struct dsm_qp *qp, uint8_t ack_timeout, char text[DSM_TRANSPORT_TEXT]);

/** The end of it, and of qp->id; what it has not sent is lost.  Takes what there is. */
void dsm_qp_destroy(struct dsm_qp *qp);

/**
 * The peer must not write, not even nothing at all, for which it needs no key.
 * rdmacm lets it each time that it brings the queue pair into a state, so this comes
 * when it is in the last one.
 */
int dsm_qp_forbid_access(struct dsm_qp *qp);

/** Post a receive buffer (again). */
int dsm_qp_receive(struct dsm_qp *qp, uint32_t buffer);

/** Send from a buffer, which stays until that is reported. */
int dsm_qp_send(struct dsm_qp *qp, const void *bytes, uint32_t size, uint32_t wr_id);

/** The channel's descriptor gets readable with the next completion. */
int dsm_qp_notify(struct dsm_qp *qp);

/** It was readable: it is not any more. */
void dsm_qp_notified(struct dsm_qp *qp);

/** Return: 0 for a descriptor that does not block from now on. */
int dsm_qp_set_nonblocking(int fd);

#endif
