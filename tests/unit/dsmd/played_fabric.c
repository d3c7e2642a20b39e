// SPDX-License-Identifier: GPL-2.0
/*
 * An RDMA adapter and its connection manager that are played, between processes: what rdma.c and
 * queue_pair.c call of librdmacm and libibverbs, as a library that is found before those.
 * (played_rdma.c: within one process, where what fails and when can be said.)
 *
 * Each connection is one over TCP, and has a thread that is what an adapter is: it puts what comes
 * into the receives that are posted, and waits until one is (RNR, for ever).  A SEND has arrived when
 * the other end has said so, and its memory must be as it was until then.  A connection that ends, also
 * since its process has, completes all that is posted as flushed, and says DISCONNECTED.
 *
 * What a real one shows and this does not: a receive that comes too late for the retries, messages
 * that are lost and sent anew, memory that was not registered, the access flags, a number that is wrong.
 * played_rdma.c looks at what can be looked at without a device, tests/guest/test_rdma.py at the rest.
 *
 * Addresses are IPv4.  Access flags, time-outs and options are taken, and nothing is done with them.
 *
 * Locking: `lock` is of all that the threads and their callers share.  It is not held while a
 * socket is written to (an id's `writing` is) or a thread is waited for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define PRIVATE		256
#define BYTES		8192	/* of a SEND, at most */

enum kind { REQUEST, ANSWER, ESTABLISH, SEND, ARRIVED };

struct packet {
	uint32_t kind, size;
	uint32_t qp;		/* of the sender */
	uint32_t status;	/* ARRIVED */
	uint64_t number;	/* of the SEND */
	uint8_t bytes[BYTES];
};

#define HEAD	offsetof(struct packet, bytes)

struct cm_event {
	struct rdma_cm_event event;
	struct cm_event *next;
	uint8_t bytes[PRIVATE];
};

struct cm_channel {
	struct rdma_event_channel channel;
	struct cm_event *first;
};

struct cm_id {
	struct rdma_cm_id id;
	int fd;
	pthread_t thread;
	bool runs, listens, accepts, established, gone;
	pthread_mutex_t writing;
	uint32_t their_qp;
};

struct completion_queue {
	struct ibv_cq cq;
	unsigned int first, nr, most;
	bool armed;
	struct ibv_wc ring[];
};

struct completion_channel {
	struct ibv_comp_channel channel;
	struct ibv_cq *cq;
	unsigned int events;
};

struct work {
	uint64_t wr_id;
	uint8_t *bytes;
	uint32_t size;
};

struct queue {
	struct work *work;
	uint8_t (*sent)[BYTES];	/* of SENDs: what each was */
	uint64_t first, next;	/* numbers */
	unsigned int most;
};

struct qp {
	struct ibv_qp qp;
	struct cm_id *id;
	struct queue receives, sends;
	bool broken;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;	/* a receive; or nobody waits for one any more */

static struct cm_id *cm_of(const struct rdma_cm_id *id)
{
	return (struct cm_id *)(uintptr_t)id;
}

static void ring(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void unring(int fd)
{
	uint64_t number;

	if (read(fd, &number, sizeof(number)) != sizeof(number) && errno != EAGAIN)
		abort();
}

/* ---- The wire ---- */

/* Who can't write hears of the end by reading. */
static void write_packet(struct cm_id *id, const struct packet *packet)
{
	size_t size = HEAD + packet->size, done = 0;
	ssize_t n;

	pthread_mutex_lock(&id->writing);
	while (done < size) {
		n = send(id->fd, (const uint8_t *)packet + done, size - done, MSG_NOSIGNAL);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	pthread_mutex_unlock(&id->writing);
}

static void say(struct cm_id *id, enum kind kind, const void *bytes, uint32_t size)
{
	struct packet packet = { .kind = kind, .size = size, .qp = id->id.qp ? id->id.qp->qp_num : 0 };

	if (size)
		memcpy(packet.bytes, bytes, size);
	write_packet(id, &packet);
}

static bool read_packet(int fd, struct packet *packet)
{
	if (recv(fd, packet, HEAD, MSG_WAITALL) != HEAD || packet->size > BYTES)
		return false;
	return !packet->size || recv(fd, packet->bytes, packet->size, MSG_WAITALL) == (ssize_t)packet->size;
}

/* ---- Events of the connection manager ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct cm_channel *channel = calloc(1, sizeof(*channel));

	channel->channel.fd = eventfd(0, EFD_CLOEXEC);
	return &channel->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	close(channel->fd);
	free(channel);
}

/* With the lock, as all that follows but what a caller begins. */
static void tell(struct cm_id *id, enum rdma_cm_event_type type, int status, const struct packet *packet)
{
	struct cm_channel *channel = (struct cm_channel *)id->id.channel;
	struct cm_event *event, **last = &channel->first;

	if (id->gone)
		return;
	event = calloc(1, sizeof(*event));
	event->event = (struct rdma_cm_event){ .id = &id->id, .event = type, .status = status };
	if (packet) {
		memcpy(event->bytes, packet->bytes, packet->size < PRIVATE ? packet->size : PRIVATE);
		event->event.param.conn.private_data = event->bytes;
		event->event.param.conn.private_data_len = type == RDMA_CM_EVENT_CONNECT_REQUEST ? 56 : 196;
		event->event.param.conn.qp_num = packet->qp;
	}
	while (*last)
		last = &(*last)->next;
	*last = event;
	ring(channel->channel.fd);
}

static void establish(struct cm_id *id)
{
	if (!id->established)
		tell(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
	id->established = true;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
	struct cm_channel *own = (struct cm_channel *)channel;
	struct cm_event *event;

	pthread_mutex_lock(&lock);
	event = own->first;
	if (event) {
		own->first = event->next;
		if (!own->first)
			unring(channel->fd);
	}
	pthread_mutex_unlock(&lock);
	if (!event) {
		errno = EAGAIN;
		return -1;
	}
	/* The opener's library brings its queue pair up, and says so (RTU). */
	if (event->event.event == RDMA_CM_EVENT_ESTABLISHED && !cm_of(event->event.id)->accepts)
		say(cm_of(event->event.id), ESTABLISH, NULL, 0);
	*out = &event->event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	free(event);
	return 0;
}

/* ---- Completions ---- */

static void complete(struct ibv_cq *cq, const struct work *work, enum ibv_wc_opcode opcode,
		     enum ibv_wc_status status, uint32_t size, uint32_t qp)
{
	struct completion_queue *queue = (void *)cq;
	struct completion_channel *channel = (void *)cq->channel;

	if (queue->nr == queue->most)
		abort();	/* overrun */
	queue->ring[(queue->first + queue->nr++) % queue->most] = (struct ibv_wc){
		.wr_id = work->wr_id, .status = status, .opcode = opcode, .byte_len = size, .qp_num = qp,
	};
	if (!queue->armed)
		return;
	queue->armed = false;
	channel->cq = cq;
	channel->events++;
	ring(channel->channel.fd);
}

static struct work *take(struct queue *queue)
{
	return &queue->work[queue->first++ % queue->most];
}

static void flush(struct qp *qp)
{
	qp->broken = true;
	while (qp->sends.first != qp->sends.next)
		complete(qp->qp.send_cq, take(&qp->sends), IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR, 0, qp->qp.qp_num);
	while (qp->receives.first != qp->receives.next)
		complete(qp->qp.recv_cq, take(&qp->receives), IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0, qp->qp.qp_num);
}

static struct qp *qp_of(const struct cm_id *id)
{
	return (struct qp *)id->id.qp;
}

/* A SEND has come.  Return: how it went, for who sent it. */
static enum ibv_wc_status arrive(struct cm_id *id, const struct packet *packet)
{
	struct work *work;
	struct qp *qp;

	while ((qp = qp_of(id)) && !id->gone && !qp->broken && qp->receives.first == qp->receives.next)
		pthread_cond_wait(&posted, &lock);
	if (!qp || id->gone || qp->broken)
		return IBV_WC_RETRY_EXC_ERR;
	work = take(&qp->receives);
	if (packet->size > work->size) {
		complete(qp->qp.recv_cq, work, IBV_WC_RECV, IBV_WC_LOC_LEN_ERR, 0, qp->qp.qp_num);
		flush(qp);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	memcpy(work->bytes, packet->bytes, packet->size);
	complete(qp->qp.recv_cq, work, IBV_WC_RECV, IBV_WC_SUCCESS, packet->size, qp->qp.qp_num);
	return IBV_WC_SUCCESS;
}

/* A SEND of ours has come to the other end. */
static void has_arrived(struct cm_id *id, const struct packet *packet)
{
	struct qp *qp = qp_of(id);
	struct work *work;

	if (!qp || qp->broken)
		return;
	work = take(&qp->sends);
	/* An adapter reads it when it likes, and once more if it is lost. */
	if (memcmp(work->bytes, qp->sends.sent[work - qp->sends.work], work->size))
		abort();
	complete(qp->qp.send_cq, work, IBV_WC_SEND, (enum ibv_wc_status)packet->status, 0, qp->qp.qp_num);
	if (packet->status != IBV_WC_SUCCESS)
		flush(qp);
}

/* ---- Threads ---- */

static void *run_connection(void *argument)
{
	struct cm_id *id = argument;
	struct packet packet, answer;

	while (read_packet(id->fd, &packet)) {
		pthread_mutex_lock(&lock);
		switch (packet.kind) {
		case ANSWER:
			id->their_qp = packet.qp;
			tell(id, RDMA_CM_EVENT_ESTABLISHED, 0, &packet);
			id->established = true;
			break;
		case ESTABLISH:
			establish(id);
			break;
		case SEND:
			answer = (struct packet){ .kind = ARRIVED, .number = packet.number };
			answer.status = arrive(id, &packet);
			break;
		case ARRIVED:
			has_arrived(id, &packet);
			break;
		}
		pthread_mutex_unlock(&lock);
		if (packet.kind == SEND)
			write_packet(id, &answer);
	}
	pthread_mutex_lock(&lock);
	if (id->established)
		tell(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	else if (!id->accepts)
		tell(id, RDMA_CM_EVENT_REJECTED, 28, NULL);
	if (qp_of(id))
		flush(qp_of(id));
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Signals are the process's own matter. */
static void begin(struct cm_id *id, void *(*run)(void *))
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (pthread_create(&id->thread, NULL, run, id))
		abort();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	id->runs = true;
}

static int poll_cq(struct ibv_cq *cq, int nr, struct ibv_wc *wc);
static int req_notify_cq(struct ibv_cq *cq, int solicited);
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

static struct ibv_context device = {
	.ops = { .poll_cq = poll_cq, .req_notify_cq = req_notify_cq, .post_send = post_send, .post_recv = post_recv },
};

static struct cm_id *new_id(struct rdma_event_channel *channel, void *context, int fd)
{
	struct cm_id *id = calloc(1, sizeof(*id));
	int on = 1;

	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = RDMA_PS_TCP;
	id->id.verbs = &device;
	pthread_mutex_init(&id->writing, NULL);
	id->fd = fd >= 0 ? fd : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(id->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return id;
}

static void set_addresses(struct cm_id *id, const struct sockaddr_in *own, const struct sockaddr_in *theirs)
{
	struct rdma_addr *address = &id->id.route.addr;

	memcpy(&address->src_addr, own, sizeof(*own));
	memcpy(&address->dst_addr, theirs, sizeof(*theirs));
	memcpy(address->addr.ibaddr.sgid.raw + 12, &own->sin_addr, 4);
	memcpy(address->addr.ibaddr.dgid.raw + 12, &theirs->sin_addr, 4);
}

static void *run_listener(void *argument)
{
	struct cm_id *listener = argument, *id;
	struct sockaddr_in own, theirs;
	struct packet packet;
	socklen_t size;
	int fd;

	while ((fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (!read_packet(fd, &packet) || packet.kind != REQUEST) {
			close(fd);
			continue;
		}
		id = new_id(listener->id.channel, listener->id.context, fd);
		id->accepts = true;
		id->their_qp = packet.qp;
		size = sizeof(own);
		getsockname(fd, (void *)&own, &size);
		size = sizeof(theirs);
		getpeername(fd, (void *)&theirs, &size);
		set_addresses(id, &own, &theirs);
		begin(id, run_connection);
		pthread_mutex_lock(&lock);
		tell(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &packet);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* ---- Identifiers ---- */

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context, enum rdma_port_space ps)
{
	(void)ps;
	*out = &new_id(channel, context, -1)->id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *gone)
{
	struct cm_id *id = cm_of(gone);
	struct cm_channel *channel = (struct cm_channel *)gone->channel;
	struct cm_event *event, **link = &channel->first;

	pthread_mutex_lock(&lock);
	id->gone = true;
	pthread_cond_broadcast(&posted);
	while ((event = *link)) {
		if (event->event.id == gone) {
			*link = event->next;
			free(event);
		} else {
			link = &event->next;
		}
	}
	pthread_mutex_unlock(&lock);
	shutdown(id->fd, SHUT_RDWR);
	if (id->runs)
		pthread_join(id->thread, NULL);
	close(id->fd);
	free(id);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	return bind(cm_of(id)->fd, address, sizeof(struct sockaddr_in));
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	if (listen(cm_of(id)->fd, backlog))
		return -1;
	begin(cm_of(id), run_listener);
	return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	struct sockaddr_in own = { 0 };
	socklen_t size = sizeof(own);

	getsockname(cm_of(id)->fd, (void *)&own, &size);
	return own.sin_port;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *own, struct sockaddr *theirs, int ms)
{
	(void)ms;
	if (!own || bind(cm_of(id)->fd, own, sizeof(struct sockaddr_in)))
		return -1;
	set_addresses(cm_of(id), (void *)own, (void *)theirs);
	pthread_mutex_lock(&lock);
	tell(cm_of(id), RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL);
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	(void)ms;
	pthread_mutex_lock(&lock);
	tell(cm_of(id), RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	if (connect(cm_of(id)->fd, &id->route.addr.dst_addr, sizeof(struct sockaddr_in))) {
		pthread_mutex_lock(&lock);
		tell(cm_of(id), RDMA_CM_EVENT_REJECTED, 8, NULL);
		pthread_mutex_unlock(&lock);
		return 0;
	}
	say(cm_of(id), REQUEST, param->private_data, param->private_data_len);
	begin(cm_of(id), run_connection);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	say(cm_of(id), ANSWER, param->private_data, param->private_data_len);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *bytes, uint8_t size)
{
	(void)bytes;
	(void)size;
	shutdown(cm_of(id)->fd, SHUT_RDWR);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	return shutdown(cm_of(id)->fd, SHUT_RDWR);
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	(void)event;
	pthread_mutex_lock(&lock);
	establish(cm_of(id));
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t size)
{
	(void)id;
	(void)level;
	(void)name;
	(void)value;
	(void)size;
	return 0;
}

/* ---- What a device makes ---- */

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *adapter)
{
	(void)context;
	*adapter = (struct ibv_device_attr){ .max_qp_wr = 16384, .max_cqe = 65536, .max_mr_size = ~0ull };
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t size, int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	(void)access;
	*mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = address, .length = size };
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct completion_channel *channel = calloc(1, sizeof(*channel));

	channel->channel.context = context;
	channel->channel.fd = eventfd(0, EFD_CLOEXEC);
	return &channel->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int nr, void *data, struct ibv_comp_channel *channel, int vector)
{
	struct completion_queue *queue = calloc(1, sizeof(*queue) + (size_t)nr * sizeof(queue->ring[0]));

	(void)vector;
	queue->cq.context = context;
	queue->cq.channel = channel;
	queue->cq.cq_context = data;
	queue->most = (unsigned int)nr;
	return &queue->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	struct completion_channel *own = (void *)channel;
	bool any;

	pthread_mutex_lock(&lock);
	any = own->events;
	if (any && !--own->events)
		unring(channel->fd);
	pthread_mutex_unlock(&lock);
	*cq = own->cq;
	*context = NULL;
	errno = EAGAIN;
	return any ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nr)
{
	(void)cq;
	(void)nr;
}

static int poll_cq(struct ibv_cq *cq, int nr, struct ibv_wc *wc)
{
	struct completion_queue *queue = (void *)cq;
	int got = 0;

	pthread_mutex_lock(&lock);
	for (; got < nr && queue->nr; got++) {
		wc[got] = queue->ring[queue->first];
		queue->first = (queue->first + 1) % queue->most;
		queue->nr--;
	}
	pthread_mutex_unlock(&lock);
	return got;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	pthread_mutex_lock(&lock);
	((struct completion_queue *)cq)->armed = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* ---- Queue pairs ---- */

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *wanted)
{
	static uint32_t number;
	struct qp *qp = calloc(1, sizeof(*qp));

	qp->qp = (struct ibv_qp){
		.context = id->verbs, .pd = pd, .send_cq = wanted->send_cq, .recv_cq = wanted->recv_cq,
		.qp_num = (uint32_t)getpid() % 65536 * 256 + number++ % 256, .qp_type = wanted->qp_type,
	};
	qp->id = cm_of(id);
	qp->receives.most = wanted->cap.max_recv_wr;
	qp->receives.work = calloc(qp->receives.most, sizeof(struct work));
	qp->sends.most = wanted->cap.max_send_wr;
	qp->sends.work = calloc(qp->sends.most, sizeof(struct work));
	qp->sends.sent = calloc(qp->sends.most, BYTES);
	pthread_mutex_lock(&lock);
	id->qp = &qp->qp;
	pthread_mutex_unlock(&lock);
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct qp *qp = qp_of(cm_of(id));

	pthread_mutex_lock(&lock);
	id->qp = NULL;
	pthread_cond_broadcast(&posted);
	pthread_mutex_unlock(&lock);
	free(qp->receives.work);
	free(qp->sends.work);
	free(qp->sends.sent);
	free(qp);
}

/* Return: its number, with the lock. */
static uint64_t put(struct queue *queue, uint64_t wr_id, const struct ibv_sge *sge)
{
	if (queue->next - queue->first == queue->most)
		abort();	/* overrun */
	queue->work[queue->next % queue->most] = (struct work){
		.wr_id = wr_id, .bytes = (void *)(uintptr_t)sge->addr, .size = sge->length,
	};
	return queue->next++;
}

static int post_send(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct packet packet = { .kind = SEND, .size = wr->sg_list->length };
	struct qp *qp = (void *)to;
	bool broken;

	*bad = wr;
	if (packet.size > BYTES)
		return EINVAL;
	memcpy(packet.bytes, (void *)(uintptr_t)wr->sg_list->addr, packet.size);
	pthread_mutex_lock(&lock);
	packet.number = put(&qp->sends, wr->wr_id, wr->sg_list);
	memcpy(qp->sends.sent[packet.number % qp->sends.most], packet.bytes, packet.size);
	broken = qp->broken;
	if (broken)
		flush(qp);
	pthread_mutex_unlock(&lock);
	if (!broken)
		write_packet(qp->id, &packet);
	return 0;
}

static int post_recv(struct ibv_qp *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct qp *qp = (void *)to;

	*bad = wr;
	pthread_mutex_lock(&lock);
	put(&qp->receives, wr->wr_id, wr->sg_list);
	if (qp->broken)
		flush(qp);
	pthread_cond_broadcast(&posted);
	pthread_mutex_unlock(&lock);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *to, struct ibv_qp_attr *attributes, int which)
{
	(void)to;
	(void)attributes;
	(void)which;
	return 0;
}
