// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "line.h"
#include "rig.h"

#define WAIT_S	120

static struct rdma_conn_param parameters(const void *data, size_t size)
{
	return (struct rdma_conn_param){
		.private_data = data, .private_data_len = (uint8_t)size,
		.retry_count = 7, .rnr_retry_count = 7,
	};
}

/* The next event; of its data, whose it is. */
static enum rdma_cm_event_type next_event(struct line *line, struct rdma_cm_id **id,
					  uint32_t *qp)
{
	struct pollfd fd = { .fd = line->events->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	CHECK(poll(&fd, 1, WAIT_S * 1000) == 1, "no event");
	CHECK(!rdma_get_cm_event(line->events, &event), "%s", strerror(errno));
	type = event->event;
	if (id)
		*id = event->id;
	if (qp)
		*qp = event->param.conn.qp_num;
	rdma_ack_cm_event(event);
	return type;
}

static void expect_event(struct line *line, enum rdma_cm_event_type wanted)
{
	enum rdma_cm_event_type type = next_event(line, NULL, NULL);

	CHECK(type == wanted, "%s, not %s", rdma_event_str(type),
	      rdma_event_str(wanted));
}

static void post_receive(struct line *line, unsigned int buffer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(line->memory + buffer * LINE_BYTES),
		.length = LINE_BYTES, .lkey = line->mr->lkey,
	};
	struct ibv_recv_wr *bad, work = {
		.wr_id = buffer, .sg_list = &sge, .num_sge = 1,
	};

	CHECK(!ibv_post_recv(line->qp, &work, &bad), "a receive");
}

/* What rdmacm would do with its own, up to this state. */
static void move(struct line *line, enum ibv_qp_state state)
{
	struct ibv_qp_attr attributes = { .qp_state = state };
	int mask;

	CHECK(!rdma_init_qp_attr(line->id, &attributes, &mask) &&
	      !ibv_modify_qp(line->qp, &attributes, mask), "state %d: %s",
	      (int)state, strerror(errno));
}

static void create_queue(struct line *line, unsigned int receives)
{
	size_t size = (LINE_RECEIVES + LINE_SENDS) * LINE_BYTES;
	struct ibv_qp_init_attr wanted = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = LINE_SENDS,
			.max_recv_wr = LINE_RECEIVES,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	unsigned int i;

	line->memory = aligned_alloc(4096, size);
	CHECK(line->memory, "memory");
	memset(line->memory, 0, size);
	line->pd = ibv_alloc_pd(line->id->verbs);
	CHECK(line->pd, "a domain");
	line->mr = ibv_reg_mr(line->pd, line->memory, size,
			      IBV_ACCESS_LOCAL_WRITE);
	line->receives = ibv_create_cq(line->id->verbs, LINE_RECEIVES, NULL,
				       NULL, 0);
	line->sends = ibv_create_cq(line->id->verbs, LINE_SENDS, NULL, NULL, 0);
	CHECK(line->mr && line->receives && line->sends, "queues");
	wanted.send_cq = line->sends;
	wanted.recv_cq = line->receives;
	if (line->by_hand) {
		line->qp = ibv_create_qp(line->pd, &wanted);
		CHECK(line->qp, "%s", strerror(errno));
		move(line, IBV_QPS_INIT);
	} else {
		CHECK(!rdma_create_qp(line->id, line->pd, &wanted), "%s",
		      strerror(errno));
		line->qp = line->id->qp;
	}
	for (i = 0; i < receives; i++)
		post_receive(line, i);
}

static void prepare(struct line *line, unsigned int port, bool by_hand,
		    unsigned int receives)
{
	struct sockaddr_storage address = { 0 }, own = { 0 };

	set_address(&address, port);
	set_address(&own, 0);
	*line = (struct line){
		.events = rdma_create_event_channel(), .by_hand = by_hand,
		.keeps = by_hand,
	};
	CHECK(line->events && !rdma_create_id(line->events, &line->id, line,
					      RDMA_PS_TCP), "%s", strerror(errno));
	CHECK(!rdma_resolve_addr(line->id, (struct sockaddr *)&own,
				 (struct sockaddr *)&address, 10000), "resolve");
	expect_event(line, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!rdma_resolve_route(line->id, 10000), "route");
	expect_event(line, RDMA_CM_EVENT_ROUTE_RESOLVED);
	create_queue(line, receives);
}

void line_prepare(struct line *line, unsigned int port)
{
	prepare(line, port, false, LINE_RECEIVES);
}

void line_prepare_by_hand(struct line *line, unsigned int port,
			  unsigned int receives)
{
	prepare(line, port, true, receives);
}

void line_ready(struct line *line)
{
	move(line, IBV_QPS_INIT);
	move(line, IBV_QPS_RTR);
	move(line, IBV_QPS_RTS);
}

void line_establish(struct line *line)
{
	CHECK(!rdma_establish(line->id), "%s", strerror(errno));
}

void line_receives(struct line *line, unsigned int nr)
{
	while (nr--)
		post_receive(line, nr);
}

enum rdma_cm_event_type line_connect(struct line *line, const void *data,
				     size_t size)
{
	struct rdma_conn_param param = parameters(data, size);

	param.qp_num = line->qp->qp_num;
	CHECK(!rdma_connect(line->id, &param), "%s", strerror(errno));
	return next_event(line, NULL, NULL);
}

unsigned int line_listen(struct line *line)
{
	struct sockaddr_storage address = { 0 };

	set_address(&address, 0);
	*line = (struct line){ .events = rdma_create_event_channel() };
	CHECK(line->events &&
	      !rdma_create_id(line->events, &line->listener, NULL, RDMA_PS_TCP) &&
	      !rdma_bind_addr(line->listener, (struct sockaddr *)&address) &&
	      !rdma_listen(line->listener, 1), "%s", strerror(errno));
	return ntohs(rdma_get_src_port(line->listener));
}

uint32_t line_request(struct line *line)
{
	enum rdma_cm_event_type type;
	uint32_t qp;

	type = next_event(line, &line->id, &qp);
	CHECK(type == RDMA_CM_EVENT_CONNECT_REQUEST, "%s", rdma_event_str(type));
	create_queue(line, LINE_RECEIVES);
	return qp;
}

static void accept_it(struct line *line, const void *data, size_t size)
{
	struct rdma_conn_param param = parameters(data, size);

	CHECK(!rdma_accept(line->id, &param), "%s", strerror(errno));
}

enum rdma_cm_event_type line_accept(struct line *line, const void *data, size_t size)
{
	accept_it(line, data, size);
	return next_event(line, NULL, NULL);
}

void line_pair(struct line *a, struct line *b)
{
	struct rdma_conn_param param = parameters(NULL, 0);

	line_prepare(a, line_listen(b));
	CHECK(!rdma_connect(a->id, &param), "%s", strerror(errno));
	line_request(b);
	accept_it(b, NULL, 0);
	expect_event(a, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(b, RDMA_CM_EVENT_ESTABLISHED);
}

static bool next_completion(struct ibv_cq *cq, struct ibv_wc *wc)
{
	time_t end = time(NULL) + WAIT_S;

	while (time(NULL) < end)
		if (ibv_poll_cq(cq, 1, wc) > 0)
			return true;
	return false;
}

static enum ibv_wc_status wait_for_it(struct line *line)
{
	struct ibv_wc wc;

	CHECK(next_completion(line->sends, &wc), "it never ends");
	return wc.status;
}

/* Who posts waits before he has posted LINE_SENDS more. */
static uint8_t *outgoing(struct line *line)
{
	return line->memory + (LINE_RECEIVES + line->next) * LINE_BYTES;
}

static void post_work(struct line *line, size_t size, struct ibv_send_wr work)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)outgoing(line), .length = (uint32_t)size,
		.lkey = line->mr->lkey,
	};
	struct ibv_send_wr *bad;
	int rc;

	work.sg_list = &sge;
	work.num_sge = size != 0;
	work.send_flags = IBV_SEND_SIGNALED;
	rc = ibv_post_send(line->qp, &work, &bad);
	CHECK(!rc, "%s", strerror(rc));
	line->next = (line->next + 1) % LINE_SENDS;
}

void line_post(struct line *line, const void *bytes, size_t size)
{
	memcpy(outgoing(line), bytes, size);
	post_work(line, size, (struct ibv_send_wr){ .opcode = IBV_WR_SEND });
}

enum ibv_wc_status line_send_as(struct line *line, enum ibv_wr_opcode opcode,
				const void *bytes, size_t size, uint32_t key)
{
	memcpy(outgoing(line), bytes, size);
	/* One word for both: what is sent along, or the key that is to be void. */
	post_work(line, size, (struct ibv_send_wr){ .opcode = opcode,
						    .invalidate_rkey = key });
	return wait_for_it(line);
}

enum ibv_wc_status line_send(struct line *line, const void *bytes, size_t size)
{
	line_post(line, bytes, size);
	return wait_for_it(line);
}

enum ibv_wc_status line_write(struct line *line, uint64_t address, uint32_t key)
{
	post_work(line, 64, (struct ibv_send_wr){
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = address, .rkey = key },
	});
	return wait_for_it(line);
}

enum ibv_wc_status line_write_nothing(struct line *line)
{
	post_work(line, 0, (struct ibv_send_wr){ .opcode = IBV_WR_RDMA_WRITE });
	return wait_for_it(line);
}

int line_receive(struct line *line, void *bytes)
{
	struct ibv_wc wc;
	unsigned int buffer;

	if (!next_completion(line->receives, &wc) ||
	    wc.status != IBV_WC_SUCCESS)
		return -1;
	buffer = (unsigned int)wc.wr_id;
	memcpy(bytes, line->memory + buffer * LINE_BYTES, wc.byte_len);
	if (!line->keeps)
		post_receive(line, buffer);
	return (int)wc.byte_len;
}

void line_close(struct line *line)
{
	rdma_disconnect(line->id);
	if (line->by_hand)
		ibv_destroy_qp(line->qp);
	else
		rdma_destroy_qp(line->id);
	rdma_destroy_id(line->id);
	if (line->listener)
		rdma_destroy_id(line->listener);
	ibv_destroy_cq(line->receives);
	ibv_destroy_cq(line->sends);
	ibv_dereg_mr(line->mr);
	ibv_dealloc_pd(line->pd);
	rdma_destroy_event_channel(line->events);
	free(line->memory);
}
