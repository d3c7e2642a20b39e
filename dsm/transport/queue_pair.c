// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs (queue_pair.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue_pair.h"

#define ALIGNMENT	4096

enum dsm_end dsm_qp_end(enum ibv_wc_status status, bool receive)
{
	switch (status) {
	/* Of the adapter, and of no message. */
	case IBV_WC_FATAL_ERR:
	case IBV_WC_GENERAL_ERR:
		return DSM_END_LOCAL;
	/* A queue that is at its end anyway. */
	case IBV_WC_WR_FLUSH_ERR:
		return DSM_END_CUT;
	/* Our buffers are good: it does not fit into one.  Adapters have several
	 * names for that. */
	default:
		return receive ? DSM_END_FRAME : DSM_END_CUT;
	}
}

static size_t region_size(uint32_t frames)
{
	size_t size = frames * sizeof(struct dsm_qp_frame) + DSM_QP_LINKS * DSM_WIRE_BYTES;

	return size + (ALIGNMENT - size % ALIGNMENT) % ALIGNMENT;
}

bool dsm_qp_fits(const struct ibv_device_attr *adapter, uint32_t receives, uint32_t frames,
		 char text[DSM_TRANSPORT_TEXT])
{
	const uint32_t sends = DSM_QP_SENDS + DSM_QP_LINKS;
	uint32_t work = receives > sends ? receives : sends;

	if (adapter->max_qp_wr > 0 && work > (uint32_t)adapter->max_qp_wr)
		snprintf(text, DSM_TRANSPORT_TEXT, "the RDMA adapter takes %d messages at a time, %u are needed: fewer \"credits\"",
			 adapter->max_qp_wr, work);
	else if (adapter->max_cqe > 0 && receives + sends > (uint32_t)adapter->max_cqe)
		snprintf(text, DSM_TRANSPORT_TEXT, "the RDMA adapter has queues of %d completions, %u are needed: fewer \"credits\"",
			 adapter->max_cqe, receives + sends);
	else if (adapter->max_mr_size && region_size(frames) > adapter->max_mr_size)
		snprintf(text, DSM_TRANSPORT_TEXT, "the RDMA adapter has memory regions of %llu bytes, %zu are needed: fewer \"credits\" or a shorter \"queue\"",
			 (unsigned long long)adapter->max_mr_size, region_size(frames));
	else
		return true;
	return false;
}

int dsm_qp_init(struct dsm_qp *qp, uint32_t receives, uint32_t sends)
{
	*qp = (struct dsm_qp){ .nr_receives = receives, .nr_sends = sends };
	qp->size = region_size(receives + sends);
	qp->all = aligned_alloc(ALIGNMENT, qp->size);
	if (!qp->all)
		return -ENOMEM;
	memset(qp->all, 0, qp->size);
	qp->receive = qp->all;
	qp->send = qp->receive + receives;
	qp->link = (void *)(qp->send + sends);
	return 0;
}

void dsm_qp_free(struct dsm_qp *qp)
{
	free(qp->all);
	qp->all = NULL;
}

int dsm_qp_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

static int failed(char text[DSM_TRANSPORT_TEXT], const char *what, int error)
{
	snprintf(text, DSM_TRANSPORT_TEXT, "%s: %s", what, strerror(error));
	return -error;
}

static int post_receives(struct dsm_qp *qp, char text[DSM_TRANSPORT_TEXT])
{
	uint32_t i;
	int rc;

	for (i = 0; i < qp->nr_receives; i++) {
		rc = dsm_qp_receive(qp, i);
		if (rc)
			return failed(text, "ibv_post_recv()", -rc);
	}
	return 0;
}

/* Memory that the adapter may use is locked. */
static int register_buffers(struct dsm_qp *qp, char text[DSM_TRANSPORT_TEXT])
{
	int error;

	qp->mr = ibv_reg_mr(qp->pd, qp->all, qp->size, IBV_ACCESS_LOCAL_WRITE);
	if (qp->mr)
		return 0;
	error = errno;
	snprintf(text, DSM_TRANSPORT_TEXT, "ibv_reg_mr() of %zu bytes: %s%s", qp->size, strerror(error),
		 error == ENOMEM ? "; may so much be locked (LimitMEMLOCK=)?" : "");
	return -error;
}

int dsm_qp_create(struct dsm_qp *qp, uint8_t ack_timeout, char text[DSM_TRANSPORT_TEXT])
{
	const uint32_t sends = DSM_QP_SENDS + DSM_QP_LINKS;
	struct ibv_qp_init_attr wanted = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = sends, .max_recv_wr = qp->nr_receives,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	char what[64];
	int rc;

	qp->pd = ibv_alloc_pd(qp->id->verbs);
	if (!qp->pd)
		return failed(text, "ibv_alloc_pd()", errno);
	rc = register_buffers(qp, text);
	if (rc)
		return rc;
	qp->channel = ibv_create_comp_channel(qp->id->verbs);
	if (!qp->channel)
		return failed(text, "ibv_create_comp_channel()", errno);
	if (dsm_qp_set_nonblocking(qp->channel->fd))
		return failed(text, "fcntl()", errno);
	/* A completion for each that is posted: there is always room. */
	qp->cq = ibv_create_cq(qp->id->verbs, (int)(qp->nr_receives + sends), NULL,
			       qp->channel, 0);
	if (!qp->cq) {
		rc = errno;
		snprintf(what, sizeof(what), "ibv_create_cq() for %u completions", qp->nr_receives + sends);
		return failed(text, what, rc);
	}
	wanted.send_cq = qp->cq;
	wanted.recv_cq = qp->cq;
	if (rdma_set_option(qp->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			    &ack_timeout, sizeof(ack_timeout)))
		return failed(text, "rdma_set_option()", errno);
	if (rdma_create_qp(qp->id, qp->pd, &wanted)) {
		rc = errno;
		snprintf(what, sizeof(what), "rdma_create_qp() with %u SENDs and %u receives", sends,
			 qp->nr_receives);
		return failed(text, what, rc);
	}
	return post_receives(qp, text);
}

/* The identifier goes last: with it goes an adapter that was taken away, and what it made. */
void dsm_qp_destroy(struct dsm_qp *qp)
{
	if (qp->id && qp->id->qp) {
		rdma_disconnect(qp->id);
		rdma_destroy_qp(qp->id);
	}
	if (qp->cq)
		ibv_destroy_cq(qp->cq);
	qp->cq = NULL;
	if (qp->channel)
		ibv_destroy_comp_channel(qp->channel);
	qp->channel = NULL;
	if (qp->mr)
		ibv_dereg_mr(qp->mr);
	qp->mr = NULL;
	if (qp->pd)
		ibv_dealloc_pd(qp->pd);
	qp->pd = NULL;
	if (qp->id)
		rdma_destroy_id(qp->id);
	qp->id = NULL;
}

int dsm_qp_forbid_access(struct dsm_qp *qp)
{
	struct ibv_qp_attr attributes = {
		.qp_state = IBV_QPS_RTS, .qp_access_flags = 0,
	};

	return -ibv_modify_qp(qp->id->qp, &attributes,
			      IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
}

int dsm_qp_receive(struct dsm_qp *qp, uint32_t buffer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&qp->receive[buffer],
		.length = sizeof(struct dsm_qp_frame), .lkey = qp->mr->lkey,
	};
	struct ibv_recv_wr *bad, work = {
		.wr_id = DSM_QP_RECEIVE | buffer, .sg_list = &sge, .num_sge = 1,
	};

	return -ibv_post_recv(qp->id->qp, &work, &bad);
}

int dsm_qp_send(struct dsm_qp *qp, const void *bytes, uint32_t size, uint32_t wr_id)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)bytes, .length = size, .lkey = qp->mr->lkey,
	};
	struct ibv_send_wr *bad, work = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};

	return -ibv_post_send(qp->id->qp, &work, &bad);
}

int dsm_qp_notify(struct dsm_qp *qp)
{
	return -ibv_req_notify_cq(qp->cq, 0);
}

void dsm_qp_notified(struct dsm_qp *qp)
{
	unsigned int nr = 0;
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(qp->channel, &cq, &context))
		nr++;
	if (nr)
		ibv_ack_cq_events(qp->cq, nr);
}
