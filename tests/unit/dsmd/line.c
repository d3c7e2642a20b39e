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

/* The next event, without its data. */
static struct rdma_cm_id *next_event(struct line *line,
				     enum rdma_cm_event_type *type)
{
	struct pollfd fd = { .fd = line->events->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(poll(&fd, 1, WAIT_S * 1000) == 1, "no event");
	CHECK(!rdma_get_cm_event(line->events, &event), "%s", strerror(errno));
	*type = event->event;
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void expect_event(struct line *line, enum rdma_cm_event_type wanted)
{
	enum rdma_cm_event_type type;

	next_event(line, &type);
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

	CHECK(!ibv_post_recv(line->id->qp, &work, &bad), "a receive");
}

static void create_queue(struct line *line)
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
	CHECK(!rdma_create_qp(line->id, line->pd, &wanted), "%s",
	      strerror(errno));
	for (i = 0; i < LINE_RECEIVES; i++)
		post_receive(line, i);
}

void line_prepare(struct line *line, unsigned int port)
{
	struct sockaddr_storage address = { 0 }, own = { 0 };

	set_address(&address, port);
	set_address(&own, 0);
	*line = (struct line){ .events = rdma_create_event_channel() };
	CHECK(line->events && !rdma_create_id(line->events, &line->id, line,
					      RDMA_PS_TCP), "%s", strerror(errno));
	CHECK(!rdma_resolve_addr(line->id, (struct sockaddr *)&own,
				 (struct sockaddr *)&address, 10000), "resolve");
	expect_event(line, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!rdma_resolve_route(line->id, 10000), "route");
	expect_event(line, RDMA_CM_EVENT_ROUTE_RESOLVED);
	create_queue(line);
}

enum rdma_cm_event_type line_connect(struct line *line, const void *data,
				     size_t size)
{
	struct rdma_conn_param param = parameters(data, size);
	enum rdma_cm_event_type type;

	CHECK(!rdma_connect(line->id, &param), "%s", strerror(errno));
	next_event(line, &type);
	return type;
}

void line_pair(struct line *a, struct line *b)
{
	struct rdma_conn_param param = parameters(NULL, 0);
	struct sockaddr_storage address = { 0 };
	enum rdma_cm_event_type type;
	struct rdma_cm_id *listener;

	set_address(&address, 0);
	*b = (struct line){ .events = rdma_create_event_channel() };
	CHECK(b->events &&
	      !rdma_create_id(b->events, &listener, NULL, RDMA_PS_TCP) &&
	      !rdma_bind_addr(listener, (struct sockaddr *)&address) &&
	      !rdma_listen(listener, 1), "%s", strerror(errno));
	line_prepare(a, ntohs(rdma_get_src_port(listener)));
	CHECK(!rdma_connect(a->id, &param), "%s", strerror(errno));
	b->id = next_event(b, &type);
	CHECK(type == RDMA_CM_EVENT_CONNECT_REQUEST, "%s", rdma_event_str(type));
	create_queue(b);
	CHECK(!rdma_accept(b->id, &param), "%s", strerror(errno));
	expect_event(a, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(b, RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_id(listener);
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

static void post(struct line *line, size_t size, enum ibv_wr_opcode opcode,
		 uint64_t address, uint32_t key)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)outgoing(line), .length = (uint32_t)size,
		.lkey = line->mr->lkey,
	};
	struct ibv_send_wr *bad, work = {
		.sg_list = &sge, .num_sge = size != 0, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = address, .rkey = key },
	};
	int rc = ibv_post_send(line->id->qp, &work, &bad);

	CHECK(!rc, "%s", strerror(rc));
	line->next = (line->next + 1) % LINE_SENDS;
}

void line_post(struct line *line, const void *bytes, size_t size)
{
	memcpy(outgoing(line), bytes, size);
	post(line, size, IBV_WR_SEND, 0, 0);
}

enum ibv_wc_status line_send(struct line *line, const void *bytes, size_t size)
{
	line_post(line, bytes, size);
	return wait_for_it(line);
}

enum ibv_wc_status line_write(struct line *line, uint64_t address, uint32_t key)
{
	post(line, 64, IBV_WR_RDMA_WRITE, address, key);
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
	post_receive(line, buffer);
	return (int)wc.byte_len;
}

void line_close(struct line *line)
{
	rdma_disconnect(line->id);
	rdma_destroy_qp(line->id);
	rdma_destroy_id(line->id);
	ibv_destroy_cq(line->receives);
	ibv_destroy_cq(line->sends);
	ibv_dereg_mr(line->mr);
	ibv_dealloc_pd(line->pd);
	rdma_destroy_event_channel(line->events);
	free(line->memory);
}
