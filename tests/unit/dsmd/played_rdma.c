// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "case.h"
#include "played_rdma.h"

#define PRIVATE_REQUEST		56	/* bytes that come, whatever was said */
#define PRIVATE_ANSWER		196
#define MOST_QPS		256

struct played_rdma played;

struct cm_event {
	struct rdma_cm_event event;
	struct cm_event *next;
	uint8_t bytes[256];
};

struct cm_channel {
	struct rdma_event_channel channel;
	struct cm_event *first;
};

struct qp;

struct cm_id {
	struct rdma_cm_id id;
	struct ibv_context device;	/* its own: what is made with it is counted */
	unsigned int objects;
	uint16_t port;
	bool listens, accepts, established;
	uint8_t ack_timeout;
	struct ibv_mr *region;
	struct cm_id *other, *next;
};

struct region {
	struct ibv_mr mr;
};

struct completion_channel {
	struct ibv_comp_channel channel;
	unsigned int events;
};

struct completion_queue {
	struct ibv_cq cq;
	unsigned int first, nr, most;
	unsigned int told, acknowledged;
	bool armed;
	struct ibv_wc ring[];
};

struct work {
	uint64_t wr_id;
	uint8_t *bytes;
	uint32_t size;
};

struct queue {
	struct work *work;
	unsigned int first, nr, most;
};

struct qp {
	struct ibv_qp qp;
	struct cm_id *id;
	struct queue receives, sends;
	unsigned int unreported;	/* SENDs whose completion was not taken */
	unsigned int access;
	bool broken;
};

static struct cm_id *ids;
static uint16_t next_port = 40000;
static uint32_t next_qp = 17;
static struct qp *qps[MOST_QPS];

void played_begin(void)
{
	played = (struct played_rdma){
		.adapter = { .max_qp_wr = 16384, .max_cqe = 65536, .max_mr_size = ~0ull },
	};
	next_port = 40000;
	next_qp = 17;
	ids = NULL;
	memset(qps, 0, sizeof(qps));
}

static bool fails(const char *name)
{
	if (!played.fails || strcmp(played.fails, name))
		return false;
	if (played.after) {
		played.after--;
		return false;
	}
	played.fails = NULL;
	errno = played.error;
	return true;
}

static void ring(int fd)
{
	uint64_t one = 1;

	CHECK(write(fd, &one, sizeof(one)) == sizeof(one), "eventfd");
}

static void unring(int fd)
{
	uint64_t number;

	(void)!read(fd, &number, sizeof(number));
}

static struct cm_id *cm_of(const struct rdma_cm_id *id)
{
	return (struct cm_id *)(uintptr_t)id;
}

/* ---- Events of the connection manager ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct cm_channel *channel;

	if (fails("rdma_create_event_channel"))
		return NULL;
	channel = calloc(1, sizeof(*channel));
	channel->channel.fd = eventfd(0, EFD_CLOEXEC);
	return &channel->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	CHECK(!((struct cm_channel *)channel)->first, "events of nobody");
	close(channel->fd);
	free(channel);
}

static void tell(struct cm_id *id, enum rdma_cm_event_type type, int status, struct cm_id *from,
		 const void *bytes, unsigned int size, unsigned int most)
{
	struct cm_channel *channel = (struct cm_channel *)id->id.channel;
	struct cm_event *event = calloc(1, sizeof(*event)), **last = &channel->first;

	event->event = (struct rdma_cm_event){ .id = &id->id, .event = type, .status = status };
	if (size)
		memcpy(event->bytes, bytes, size);
	if (most) {
		event->event.param.conn.private_data = event->bytes;
		event->event.param.conn.private_data_len = (uint8_t)most;
	}
	if (from && from->id.qp)
		event->event.param.conn.qp_num = from->id.qp->qp_num;
	while (*last)
		last = &(*last)->next;
	*last = event;
	ring(channel->channel.fd);
}

static void set_write(struct cm_id *id)
{
	if (id->id.qp)
		((struct qp *)id->id.qp)->access = IBV_ACCESS_REMOTE_WRITE;
}

static void establish(struct cm_id *id)
{
	if (id->established)
		return;
	id->established = true;
	tell(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, NULL, 0, 0);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
	struct cm_channel *own = (struct cm_channel *)channel;
	struct cm_event *event = own->first;
	struct cm_id *id;

	CHECK(fcntl(channel->fd, F_GETFL) & O_NONBLOCK, "it would wait");
	if (!event) {
		errno = EAGAIN;
		return -1;
	}
	own->first = event->next;
	if (!own->first)
		unring(channel->fd);
	id = cm_of(event->event.id);
	/* The opener's library brings its queue pair up, and says RTU. */
	if (event->event.event == RDMA_CM_EVENT_ESTABLISHED && !id->accepts) {
		set_write(id);
		id->established = true;
		if (id->other && !played.lose_rtu)
			establish(id->other);
	}
	*out = &event->event;
	played.events++;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	played.events--;
	free(event);
	return 0;
}

/* ---- Identifiers ---- */

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
		   enum rdma_port_space ps)
{
	struct cm_id *id;

	if (fails("rdma_create_id"))
		return -1;
	id = calloc(1, sizeof(*id));
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->next = ids;
	ids = id;
	played.ids++;
	*out = &id->id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *gone)
{
	struct cm_id *id = cm_of(gone), **at = &ids;
	struct cm_channel *channel = (struct cm_channel *)gone->channel;
	struct cm_event *event, **link = &channel->first;

	CHECK(!gone->qp && !id->objects, "an identifier goes with %u objects of its device", id->objects);
	while ((event = *link)) {
		if (event->event.id == gone) {
			*link = event->next;
			free(event);
		} else {
			link = &event->next;
		}
	}
	if (!channel->first)
		unring(channel->channel.fd);
	if (id->other) {
		id->other->other = NULL;
		if (id->accepts && !id->established)
			tell(id->other, RDMA_CM_EVENT_REJECTED, 28, NULL, NULL, 0, 0);
	}
	while (*at != id)
		at = &(*at)->next;
	*at = id->next;
	played.ids--;
	free(id);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int nr, struct ibv_wc *wc);
static int req_notify_cq(struct ibv_cq *cq, int solicited);
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

static void give_device(struct cm_id *id)
{
	id->device.ops.poll_cq = poll_cq;
	id->device.ops.req_notify_cq = req_notify_cq;
	id->device.ops.post_send = post_send;
	id->device.ops.post_recv = post_recv;
	id->id.verbs = &id->device;
}

static bool is_any(const struct sockaddr *address)
{
	return address->sa_family == AF_INET &&
	       !((const struct sockaddr_in *)address)->sin_addr.s_addr;
}

static void set_addresses(struct cm_id *id, const struct sockaddr *own, const struct sockaddr *theirs)
{
	struct rdma_addr *address = &id->id.route.addr;

	if (own)
		memcpy(&address->src_addr, own, sizeof(struct sockaddr_in));
	memcpy(&address->dst_addr, theirs, sizeof(struct sockaddr_in));
	if (own)
		memcpy(address->addr.ibaddr.sgid.raw + 12, &((const struct sockaddr_in *)own)->sin_addr, 4);
	memcpy(address->addr.ibaddr.dgid.raw + 12, &((const struct sockaddr_in *)theirs)->sin_addr, 4);
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	if (fails("rdma_bind_addr"))
		return -1;
	cm_of(id)->port = next_port++;
	if (!is_any(address))
		give_device(cm_of(id));
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	CHECK(backlog > 0, "backlog");
	if (fails("rdma_listen"))
		return -1;
	cm_of(id)->listens = true;
	return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return htons(cm_of(id)->port);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *own, struct sockaddr *theirs, int ms)
{
	CHECK(ms > 0, "no time");
	if (fails("rdma_resolve_addr"))
		return -1;
	CHECK(!own || !((struct sockaddr_in *)own)->sin_port, "a port of ours");
	cm_of(id)->port = ntohs(((struct sockaddr_in *)theirs)->sin_port);
	set_addresses(cm_of(id), own, theirs);
	give_device(cm_of(id));
	tell(cm_of(id), RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, NULL, 0, 0);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	CHECK(ms > 0, "no time");
	if (fails("rdma_resolve_route"))
		return -1;
	tell(cm_of(id), RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, NULL, 0, 0);
	return 0;
}

static struct cm_id *listener_at(uint16_t port)
{
	struct cm_id *id = ids;

	while (id && !(id->listens && id->port == port))
		id = id->next;
	return id;
}

static struct cm_id *request(struct cm_id *listener, const struct sockaddr *from,
			     const struct sockaddr *to, struct cm_id *other, const void *bytes, uint8_t size)
{
	struct rdma_cm_id *made;
	struct cm_id *id;

	CHECK(!rdma_create_id(listener->id.channel, &made, listener->id.context, listener->id.ps), "request");
	id = cm_of(made);
	id->accepts = true;
	id->other = other;
	set_addresses(id, to, from);
	give_device(id);
	played.requests++;
	tell(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, other, bytes, size, PRIVATE_REQUEST);
	return id;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct cm_id *own = cm_of(id), *listener = listener_at(own->port);

	if (fails("rdma_connect"))
		return -1;
	CHECK(param->private_data_len <= PRIVATE_REQUEST && param->retry_count == 7 &&
	      param->rnr_retry_count == 7, "parameters");
	played.connects++;
	if (!listener)
		tell(own, RDMA_CM_EVENT_REJECTED, 8, NULL, NULL, 0, 0);
	else
		own->other = request(listener, &id->route.addr.src_addr, &id->route.addr.dst_addr, own,
				     param->private_data, param->private_data_len);
	return 0;
}

void played_ask(uint16_t port, const struct sockaddr *from, const void *bytes, uint8_t size)
{
	request(listener_at(port), from, from, NULL, bytes, size);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct cm_id *own = cm_of(id);
	uint8_t bytes[256];

	if (fails("rdma_accept"))
		return -1;
	set_write(own);
	played.accepts++;
	memcpy(bytes, param->private_data, param->private_data_len);
	bytes[param->private_data_len - 1] ^= played.answer_lies;
	if (own->other)
		tell(own->other, RDMA_CM_EVENT_ESTABLISHED, 0, own, bytes, param->private_data_len,
		     PRIVATE_ANSWER);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *bytes, uint8_t size)
{
	struct cm_id *own = cm_of(id);

	(void)bytes;
	(void)size;
	played.rejects++;
	if (own->other) {
		tell(own->other, RDMA_CM_EVENT_REJECTED, 28, NULL, NULL, 0, 0);
		own->other->other = NULL;
		own->other = NULL;
	}
	return 0;
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	CHECK(event == IBV_EVENT_COMM_EST, "notify");
	establish(cm_of(id));
	return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t size)
{
	if (fails("rdma_set_option"))
		return -1;
	CHECK(level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_ACK_TIMEOUT && size == 1, "option");
	cm_of(id)->ack_timeout = *(uint8_t *)value;
	return 0;
}

/* ---- What a device makes ---- */

static struct cm_id *cm_with(struct ibv_context *device)
{
	return (void *)((char *)device - offsetof(struct cm_id, device));
}

static void made(struct ibv_context *device, int by)
{
	struct cm_id *id = cm_with(device);

	id->objects += (unsigned int)by;
	played.objects += (unsigned int)by;
}

int ibv_query_device(struct ibv_context *device, struct ibv_device_attr *adapter)
{
	(void)device;
	if (fails("ibv_query_device"))
		return errno;
	*adapter = played.adapter;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *device)
{
	struct ibv_pd *pd;

	if (fails("ibv_alloc_pd"))
		return NULL;
	pd = calloc(1, sizeof(*pd));
	pd->context = device;
	made(device, 1);
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	made(pd->context, -1);
	free(pd);
	return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t size, int access)
{
	struct region *region;

	if (fails("ibv_reg_mr"))
		return NULL;
	CHECK(access == IBV_ACCESS_LOCAL_WRITE, "access %x", access);
	region = calloc(1, sizeof(*region));
	region->mr = (struct ibv_mr){
		.context = pd->context, .pd = pd, .addr = address, .length = size, .lkey = next_qp++,
	};
	made(pd->context, 1);
	cm_with(pd->context)->region = &region->mr;
	return &region->mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	made(mr->context, -1);
	free(mr);
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *device)
{
	struct completion_channel *channel;

	if (fails("ibv_create_comp_channel"))
		return NULL;
	channel = calloc(1, sizeof(*channel));
	channel->channel.context = device;
	channel->channel.fd = eventfd(0, EFD_CLOEXEC);
	made(device, 1);
	return &channel->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	CHECK(!channel->refcnt, "a channel goes before its queue");
	made(channel->context, -1);
	close(channel->fd);
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *device, int nr, void *context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct completion_queue *queue;

	(void)vector;
	if (fails("ibv_create_cq"))
		return NULL;
	queue = calloc(1, sizeof(*queue) + (size_t)nr * sizeof(queue->ring[0]));
	queue->cq.context = device;
	queue->cq.channel = channel;
	queue->cq.cq_context = context;
	queue->most = (unsigned int)nr;
	channel->refcnt++;
	made(device, 1);
	return &queue->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct completion_queue *queue = (void *)cq;

	CHECK(queue->told == queue->acknowledged, "%u events, %u acknowledged: it would wait for ever",
	      queue->told, queue->acknowledged);
	cq->channel->refcnt--;
	((struct completion_channel *)cq->channel)->events = 0;
	made(cq->context, -1);
	free(queue);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	struct completion_channel *own = (void *)channel;
	uint64_t number;

	CHECK(fcntl(channel->fd, F_GETFL) & O_NONBLOCK, "it would wait");
	if (!own->events) {
		errno = EAGAIN;
		return -1;
	}
	if (!--own->events)
		CHECK(read(channel->fd, &number, sizeof(number)) == sizeof(number), "eventfd");
	*cq = (struct ibv_cq *)own->channel.context->abi_compat;
	*context = NULL;
	((struct completion_queue *)*cq)->told++;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nr)
{
	((struct completion_queue *)cq)->acknowledged += nr;
}

static void complete(struct ibv_cq *cq, struct ibv_wc wc)
{
	struct completion_queue *queue = (void *)cq;
	struct completion_channel *channel = (void *)cq->channel;

	CHECK(queue->nr < queue->most, "a completion queue of %u is overrun", queue->most);
	queue->ring[(queue->first + queue->nr++) % queue->most] = wc;
	if (!queue->armed || played.silent)
		return;
	queue->armed = false;
	channel->channel.context->abi_compat = cq;
	channel->events++;
	ring(channel->channel.fd);
}

static struct qp *qp_at(uint32_t number)
{
	unsigned int i;

	for (i = 0; i < MOST_QPS; i++)
		if (qps[i] && qps[i]->qp.qp_num == number)
			return qps[i];
	return NULL;
}

static int poll_cq(struct ibv_cq *cq, int nr, struct ibv_wc *wc)
{
	struct completion_queue *queue = (void *)cq;
	struct qp *qp;

	CHECK(nr == 1, "one at a time");
	if (!queue->nr)
		return 0;
	*wc = queue->ring[queue->first];
	queue->first = (queue->first + 1) % queue->most;
	queue->nr--;
	qp = qp_at(wc->qp_num);
	if (qp && wc->opcode == IBV_WC_SEND)
		qp->unreported--;
	return 1;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	CHECK(!solicited, "each completion");
	if (fails("ibv_req_notify_cq"))
		return errno;
	((struct completion_queue *)cq)->armed = true;
	return 0;
}

/* ---- Queue pairs ---- */

static struct work *put(struct queue *queue, const char *what)
{
	CHECK(queue->nr < queue->most, "%s: %u are posted, and one more", what, queue->nr);
	return &queue->work[(queue->first + queue->nr++) % queue->most];
}

static struct work take(struct queue *queue)
{
	struct work work = queue->work[queue->first];

	queue->first = (queue->first + 1) % queue->most;
	queue->nr--;
	return work;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *wanted)
{
	struct qp *qp;
	unsigned int i;

	if (fails("rdma_create_qp"))
		return -1;
	qp = calloc(1, sizeof(*qp));
	qp->qp = (struct ibv_qp){
		.context = id->verbs, .pd = pd, .send_cq = wanted->send_cq, .recv_cq = wanted->recv_cq,
		.qp_num = next_qp++, .qp_type = wanted->qp_type,
	};
	qp->id = cm_of(id);
	qp->receives.most = wanted->cap.max_recv_wr;
	qp->receives.work = calloc(qp->receives.most, sizeof(struct work));
	qp->sends.most = wanted->cap.max_send_wr;
	qp->sends.work = calloc(qp->sends.most, sizeof(struct work));
	id->qp = &qp->qp;
	for (i = MOST_QPS - 1; i; i--)
		qps[i] = qps[i - 1];
	qps[0] = qp;
	made(id->verbs, 1);
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct qp *qp = (void *)id->qp;
	unsigned int i;

	for (i = 0; i < MOST_QPS; i++)
		if (qps[i] == qp)
			qps[i] = NULL;
	made(id->verbs, -1);
	free(qp->receives.work);
	free(qp->sends.work);
	free(qp);
	id->qp = NULL;
}

static void report(struct qp *qp, const struct work *work, enum ibv_wc_opcode opcode,
		   enum ibv_wc_status status, uint32_t size)
{
	complete(qp->qp.send_cq, (struct ibv_wc){
		.wr_id = work->wr_id, .status = status, .opcode = opcode, .byte_len = size,
		.qp_num = qp->qp.qp_num,
	});
}

static void flush(struct qp *qp)
{
	struct work work;

	qp->broken = true;
	while (qp->sends.nr) {
		work = take(&qp->sends);
		report(qp, &work, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR, 0);
	}
	while (qp->receives.nr) {
		work = take(&qp->receives);
		report(qp, &work, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0);
	}
}

static struct qp *other_of(const struct qp *qp)
{
	return qp->id->other && qp->id->other->id.qp ? (struct qp *)qp->id->other->id.qp : NULL;
}

/* Return: false, and both are at their end. */
static bool arrive(struct qp *to, const void *bytes, uint32_t size)
{
	struct work work = take(&to->receives);

	if (size > work.size) {
		report(to, &work, IBV_WC_RECV, IBV_WC_LOC_LEN_ERR, 0);
		flush(to);
		return false;
	}
	memcpy(work.bytes, bytes, size);
	report(to, &work, IBV_WC_RECV, IBV_WC_SUCCESS, size);
	return true;
}

static void deliver(struct qp *qp)
{
	struct qp *to = other_of(qp);
	struct work work;

	while (!played.stand_still && !qp->broken && to && !to->broken && qp->sends.nr && to->receives.nr) {
		work = take(&qp->sends);
		if (arrive(to, work.bytes, work.size)) {
			report(qp, &work, IBV_WC_SEND, IBV_WC_SUCCESS, 0);
		} else {
			report(qp, &work, IBV_WC_SEND, IBV_WC_REM_INV_REQ_ERR, 0);
			flush(qp);
		}
	}
}

void played_go_on(void)
{
	unsigned int i;

	played.stand_still = false;
	for (i = 0; i < MOST_QPS; i++)
		if (qps[i])
			deliver(qps[i]);
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct cm_id *own = cm_of(id), *other = own->other;

	if (!other || !other->id.qp) {
		errno = EINVAL;
		return -1;
	}
	flush((struct qp *)id->qp);
	if (own->established || other->established) {
		flush((struct qp *)other->id.qp);
		tell(other, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, NULL, 0, 0);
	}
	return 0;
}

static void check_region(const struct qp *qp, const struct ibv_sge *sge)
{
	const struct ibv_mr *region = qp->id->region;

	CHECK(sge->lkey == region->lkey && sge->addr >= (uintptr_t)region->addr &&
	      sge->addr + sge->length <= (uintptr_t)region->addr + region->length, "a buffer");
}

static int post_send(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct qp *qp = (void *)to;
	struct work *work;

	*bad = wr;
	if (fails("ibv_post_send"))
		return errno;
	check_region(qp, wr->sg_list);
	CHECK(wr->num_sge == 1 && wr->opcode == IBV_WR_SEND && wr->send_flags & IBV_SEND_SIGNALED, "a SEND");
	CHECK(qp->unreported++ < qp->sends.most, "%u SENDs", qp->unreported);
	work = put(&qp->sends, "SENDs");
	*work = (struct work){
		.wr_id = wr->wr_id, .bytes = (void *)(uintptr_t)wr->sg_list->addr,
		.size = wr->sg_list->length,
	};
	if (qp->broken)
		flush(qp);
	else
		deliver(qp);
	return 0;
}

static int post_recv(struct ibv_qp *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct qp *qp = (void *)to;
	struct work *work;

	*bad = wr;
	if (fails("ibv_post_recv"))
		return errno;
	check_region(qp, wr->sg_list);
	work = put(&qp->receives, "receives");
	*work = (struct work){
		.wr_id = wr->wr_id, .bytes = (void *)(uintptr_t)wr->sg_list->addr,
		.size = wr->sg_list->length,
	};
	if (qp->broken)
		flush(qp);
	else if (other_of(qp))
		deliver(other_of(qp));
	return 0;
}

int ibv_modify_qp(struct ibv_qp *to, struct ibv_qp_attr *attributes, int which)
{
	if (fails("ibv_modify_qp"))
		return errno;
	if (which & IBV_QP_ACCESS_FLAGS)
		((struct qp *)to)->access = attributes->qp_access_flags;
	return 0;
}

/* ---- For cases ---- */

struct ibv_qp *played_last_qp(unsigned int back)
{
	return qps[back] ? &qps[back]->qp : NULL;
}

void played_say(struct ibv_qp *from, const void *bytes, uint32_t size)
{
	struct qp *to = other_of((struct qp *)from);

	CHECK(to && to->receives.nr, "nobody takes it");
	arrive(to, bytes, size);
}

void played_break(struct ibv_qp *qp, enum ibv_wc_status status)
{
	struct qp *own = (void *)qp;
	struct work work = { 0 };

	report(own, &work, IBV_WC_RDMA_READ, status, 0);
	flush(own);
}

bool played_may_write(const struct ibv_qp *qp)
{
	return ((const struct qp *)qp)->access & IBV_ACCESS_REMOTE_WRITE;
}

unsigned int played_receives(const struct ibv_qp *qp)
{
	return ((const struct qp *)qp)->receives.nr;
}

unsigned int played_ack_timeout(const struct ibv_qp *qp)
{
	return ((const struct qp *)qp)->id->ack_timeout;
}

void played_event(struct ibv_qp *qp, enum rdma_cm_event_type type, int status)
{
	tell(((struct qp *)qp)->id, type, status, NULL, NULL, 0, 0);
}
