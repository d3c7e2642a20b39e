// SPDX-License-Identifier: GPL-2.0
/*
 * Connections over RDMA (librdmacm, RC), each beside the TLS connection that
 * has proved its ends.
 *
 * Opening.  opening.h agrees with a peer over TLS, as for TCP.  Then both say
 * their part of the binding through TLS, the opener first (binding.h), and the
 * opener connects to the port that the acceptor has told.  The TLS connection
 * stays: its end is the end of the RDMA connection, and FAIL goes through it,
 * since a queue pair that is destroyed loses what it was asked to send and a
 * socket does not.
 *
 * Each connection has a queue pair with buffers of its own (queue_pair.h).  A
 * message is one SEND of 32 bytes or of 32 bytes and a page.  The receives that
 * are posted are the credits and DSM_LINK_FRAMES more; one is posted again before
 * its credit is told.  So an honest peer never finds none (RNR), and another one
 * learns with its first message too many that it was seen (DSM_END_CREDITS).
 *
 * Sending.  Messages wait in a ring and stay there until the adapter has
 * reported them: first those that it has, then those that wait for a credit.
 *
 * The end.  Whoever closes sends END behind its last message, when the adapter
 * has reported that all of them have arrived.  Who has both ENDs, and the
 * report of its own, has ended well.  Everything else that ends the RDMA
 * connection is a loss; the TLS connection says why, in a moment (LOST).
 *
 * What is lost.  A frame behind which nothing follows is sent again only when the
 * adapter has waited for its ACK time-out.  That is an eighth of what a question
 * allows (dsm_link_ack_timeout()), so one that is lost costs no connection, and
 * the question decides who is (decision 0100).
 *
 * Where the end may be found, and the generation: as in tcp_tls.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>
#include <openssl/err.h>

#include "backend.h"
#include "binding.h"
#include "link.h"
#include "opening.h"
#include "queue_pair.h"

#define BUDGET		64	/* completions of one connection before others have a turn */
#define BACKLOG		32

/* Kinds of completions besides DSM_QP_RECEIVE. */
#define WR_MESSAGE	0x02000000u
#define WR_LINK		0x03000000u
#define WR_END		0x04000000u	/* END, in a buffer like WR_LINK's */

enum stage {
	FREE,		/* no connection; the opening may have one */
	BINDING,	/* TLS is there, RDMA is not */
	UP,
	FAREWELL,	/* our END is out */
	LOST,		/* there is no RDMA any more; TLS may say why */
};

struct peer {
	struct rdma *rdma;
	unsigned int host;
	enum stage stage;
	uint32_t generation;	/* of the connection */
	bool closing;		/* close() was called */
	bool over;		/* the peer's END has come */
	bool end_arrived;	/* ours is reported */
	bool held;
	bool full;		/* room() was 0 */
	uint64_t since;		/* began to bind, to close or to be lost */
	int doom;		/* enum dsm_end: to be finished from the loop; or 0 */
	int loss;		/* LOST: if TLS has nothing better */
	char text[DSM_TRANSPORT_TEXT];	/* about doom or loss */
	/* TLS */
	struct dsm_session session;
	ev_io io;
	bool tls_over;		/* nothing more comes */
	bool bound;		/* the peer's part of the binding has come */
	struct dsm_binding binding;
	uint32_t have;		/* bytes of what is being read */
	uint8_t head[DSM_BINDING_FRAME];
	uint32_t out_start, out_end;	/* of what is being written */
	uint8_t out[DSM_BINDING_FRAME];
	/* RDMA */
	struct dsm_qp qp;
	ev_io cq_io;
	uint16_t *inbox;	/* a ring of buffers with messages: the credits */
	uint32_t inbox_first, inbox_nr;
	uint32_t out_first, posted, waiting;	/* the ring of messages */
	uint32_t links;		/* a bit for each frame that the adapter has */
	struct dsm_link link;
	struct dsm_transport_counters counters;
};

struct rdma {
	struct dsm_transport base;
	struct dsm_opening *opening;
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;
	uint16_t port;		/* of the listener, host's byte order */
	uint8_t ack_timeout;	/* 4.096 us times 2 to the power of it */
	ev_io io;		/* of events */
	ev_timer soon;		/* something is left to do without an event */
	uint32_t delivered;	/* messages, ever */
	struct peer *peer[DSM_MAX_HOSTS];
};

static const struct dsm_transport_params *params_of(const struct rdma *rdma)
{
	return rdma->base.params;
}

static uint64_t now(const struct rdma *rdma)
{
	return params_of(rdma)->now(params_of(rdma)->context);
}

/* The end of a connection. */

static void destroy_queue(struct peer *peer)
{
	ev_io_stop(params_of(peer->rdma)->loop, &peer->cq_io);
	dsm_qp_destroy(&peer->qp);
}

static void forget(struct peer *peer)
{
	struct rdma *rdma = peer->rdma;

	ev_io_stop(params_of(rdma)->loop, &peer->io);
	dsm_session_close(&peer->session);
	dsm_binding_clear(&peer->binding);
	destroy_queue(peer);
	peer->stage = FREE;
	peer->closing = false;
	peer->over = false;
	peer->end_arrived = false;
	peer->tls_over = false;
	peer->bound = false;
	peer->held = false;
	peer->doom = 0;
	peer->have = 0;
	peer->out_start = 0;
	peer->out_end = 0;
	peer->inbox_first = 0;
	peer->inbox_nr = 0;
	peer->out_first = 0;
	peer->posted = 0;
	peer->waiting = 0;
	peer->links = 0;
	peer->generation++;
	dsm_opening_release(rdma->opening, peer->host);
}

/* Return: false, for "it is gone". */
static bool finish(struct peer *peer, int reason, const char *why)
{
	const struct dsm_transport_params *params = params_of(peer->rdma);
	bool begun = peer->stage == BINDING, accepted = peer->session.accepted;
	char text[DSM_TRANSPORT_TEXT];

	snprintf(text, sizeof(text), "%s", why);
	peer->counters.ends[reason]++;
	if (reason == DSM_END_CLOSED)
		SSL_shutdown(peer->session.ssl);
	forget(peer);
	if (begun)	/* the right one may still come, or we may try again */
		dsm_opening_take_back(peer->rdma->opening, peer->host, accepted);
	params->calls->end(params->context, peer->host, (enum dsm_end)reason,
			   text);
	return false;
}

static void later(struct rdma *rdma)
{
	if (!ev_is_active(&rdma->soon)) {
		ev_timer_set(&rdma->soon, 0., 0.);
		ev_timer_start(params_of(rdma)->loop, &rdma->soon);
	}
}

static void doom(struct peer *peer, int reason, const char *text)
{
	if (peer->doom)
		return;
	peer->doom = reason;
	snprintf(peer->text, sizeof(peer->text), "%s", text);
	later(peer->rdma);
}

static void doom_call(struct peer *peer, int reason, const char *what, int error)
{
	char text[DSM_TRANSPORT_TEXT];

	snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
	doom(peer, reason, text);
}

static void doom_errno(struct peer *peer, const char *what, int error)
{
	doom_call(peer, DSM_END_LOCAL, what, error);
}

/* The peer has said END behind all of ours: nothing is left but the inbox. */
static void all_arrived(struct peer *peer)
{
	peer->stage = FAREWELL;
	peer->end_arrived = true;
	destroy_queue(peer);
	later(peer->rdma);
}

/* After both ENDs nothing is lost; nor after the peer's, if we owe nothing. */
static bool is_over(const struct peer *peer)
{
	return peer->over && (peer->stage == FAREWELL ||
			      (peer->stage == UP && !peer->doom &&
			       !peer->waiting && !peer->posted));
}

/*
 * There is no RDMA any more.  Before it was up TLS has nothing to add.
 * Return: false if the connection is gone.
 */
static bool lose(struct peer *peer, int reason, const char *text)
{
	if (peer->stage == BINDING)
		return finish(peer, reason, text);
	if (peer->stage == LOST)
		return true;
	if (is_over(peer)) {
		all_arrived(peer);
		return true;
	}
	peer->stage = LOST;
	peer->loss = peer->doom ? peer->doom : reason;
	peer->since = now(peer->rdma);
	if (!peer->doom)	/* what doomed it says more */
		snprintf(peer->text, sizeof(peer->text), "%s", text);
	destroy_queue(peer);
	later(peer->rdma);
	return true;
}

static void watch(struct peer *peer)
{
	struct ev_loop *loop = params_of(peer->rdma)->loop;
	int events = peer->tls_over ? 0 : EV_READ;

	if (peer->out_start < peer->out_end)
		events |= EV_WRITE;
	if (ev_is_active(&peer->io) && peer->io.events == events)
		return;
	ev_io_stop(loop, &peer->io);
	if (events) {
		ev_io_set(&peer->io, peer->session.fd, events);
		ev_io_start(loop, &peer->io);
	}
}

/* Sending. */

static struct dsm_qp_frame *out_at(const struct peer *peer, uint32_t index)
{
	return &peer->qp.send[(peer->out_first + index) % peer->qp.nr_sends];
}

static int post(struct peer *peer, const void *bytes, uint32_t size,
		uint32_t wr_id)
{
	int rc = dsm_qp_send(&peer->qp, bytes, size, wr_id);

	if (rc) {
		doom_errno(peer, "ibv_post_send()", -rc);
		return rc;
	}
	peer->counters.sent_bytes += size;
	return 0;
}

static int post_receive(struct peer *peer, uint32_t buffer)
{
	int rc = dsm_qp_receive(&peer->qp, buffer);

	if (rc)
		doom_errno(peer, "ibv_post_recv()", -rc);
	return rc;
}

static uint8_t *free_link(struct peer *peer, uint32_t *number)
{
	for (*number = 0; *number < DSM_QP_LINKS; ++*number)
		if (!(peer->links & 1u << *number))
			return peer->qp.link[*number];
	return NULL;
}

/* As much as the adapter and the credits take.  Does not call back. */
static void flush(struct peer *peer)
{
	const struct dsm_qp_frame *frame;
	uint32_t number, size;
	uint8_t *link;

	while (peer->stage == UP && !peer->doom &&
	       (link = free_link(peer, &number)) &&
	       dsm_link_next(&peer->link, dsm_backend_now(&peer->rdma->base), link)) {
		peer->counters.questions += link[1] == DSM_LINK_QUESTION;
		if (!post(peer, link, DSM_WIRE_BYTES, WR_LINK | number))
			peer->links |= 1u << number;
	}
	while (peer->stage == UP && !peer->doom && peer->waiting &&
	       peer->posted < DSM_QP_SENDS && dsm_link_credits(&peer->link)) {
		frame = out_at(peer, peer->posted);
		size = DSM_WIRE_BYTES + dsm_type_bytes(frame->head[1]);
		if (post(peer, frame, size, WR_MESSAGE))
			return;
		peer->posted++;
		peer->waiting--;
		dsm_link_sent(&peer->link);
	}
}

static uint32_t room_of(const struct peer *peer)
{
	return dsm_link_room(&peer->link, peer->waiting);
}

static bool tell_room(struct peer *peer)
{
	const struct dsm_transport_params *params = params_of(peer->rdma);
	uint32_t generation = peer->generation;

	if (peer->stage != UP || peer->closing)
		return true;
	if (!room_of(peer)) {
		peer->full = true;
	} else if (peer->full) {
		peer->full = false;
		params->calls->room(params->context, peer->host);
	}
	return peer->generation == generation;
}

/* It may take as long as an opening. */
static void begin_to_close(struct peer *peer)
{
	if (peer->closing)
		return;
	peer->closing = true;
	peer->since = now(peer->rdma);
}

/* END, or the end. */
static bool say_farewell(struct peer *peer)
{
	uint32_t number;
	uint8_t *link;

	if (peer->doom)
		return true;
	if (peer->over && !peer->inbox_nr) {
		if (peer->stage == FAREWELL && peer->end_arrived)
			return finish(peer, DSM_END_CLOSED, "");
		if (peer->stage == UP && peer->waiting)
			return finish(peer, DSM_END_CUT,
				      "the peer closes before it has all messages");
		begin_to_close(peer);	/* who has said END may take nothing more */
	} else if (!peer->closing) {
		return true;
	}
	if (peer->stage != UP || peer->waiting || peer->posted)
		return true;
	link = free_link(peer, &number);
	if (!link)
		return true;
	dsm_link_put_end(&peer->link, link);
	if (!post(peer, link, DSM_WIRE_BYTES, WR_END | number)) {
		peer->links |= 1u << number;
		peer->stage = FAREWELL;
	}
	return true;
}

/* Receiving. */

static bool deliver(struct peer *peer)
{
	const struct dsm_transport_params *params = params_of(peer->rdma);
	uint32_t generation = peer->generation;
	const struct dsm_qp_frame *frame;
	struct dsm_msg msg;
	uint16_t buffer;

	while (peer->inbox_nr && !peer->held && peer->stage != LOST) {
		buffer = peer->inbox[peer->inbox_first];
		frame = &peer->qp.receive[buffer];
		dsm_wire_get(frame->head, &msg);	/* was good when it came */
		peer->rdma->delivered++;
		params->calls->message(params->context, peer->host, &msg,
				       dsm_type_bytes(msg.type) ? frame->page : NULL);
		if (peer->generation != generation)
			return false;
		peer->inbox_first = (peer->inbox_first + 1) %
				    params->credits;
		peer->inbox_nr--;
		if (peer->qp.id && post_receive(peer, buffer))
			return true;
		dsm_link_consumed(&peer->link);
	}
	return true;
}

static bool got_link_frame(struct peer *peer, const uint8_t *bytes)
{
	uint32_t generation = peer->generation;
	char text[DSM_TRANSPORT_TEXT];
	int reason;

	if (dsm_link_is_end(&peer->link, bytes)) {
		peer->over = true;
		return true;
	}
	reason = dsm_backend_frame(&peer->rdma->base, peer->host, &peer->link,
				   bytes, text);
	if (reason)
		return finish(peer, reason, text);
	return peer->generation == generation;
}

static bool got_message(struct peer *peer, uint16_t buffer, uint32_t size)
{
	const struct dsm_qp_frame *frame = &peer->qp.receive[buffer];
	uint32_t last;
	struct dsm_msg msg;
	int reason, rc = dsm_wire_get(frame->head, &msg);

	if (rc < 0)
		return finish(peer, DSM_END_FRAME,
			      dsm_error_name((unsigned int)-rc));
	if (size != DSM_WIRE_BYTES + (uint32_t)rc)
		return finish(peer, DSM_END_FRAME,
			      "its length is not that of its SEND");
	reason = dsm_backend_message(&peer->link, &msg);
	if (reason)
		return finish(peer, reason, dsm_type_name(msg.type));
	last = (peer->inbox_first + peer->inbox_nr++) %
	       params_of(peer->rdma)->credits;
	peer->inbox[last] = buffer;
	peer->counters.received++;
	peer->counters.received_pages += rc == DSM_PAGE_BYTES;
	return deliver(peer);
}

static bool got_bytes(struct peer *peer, uint16_t buffer, uint32_t size)
{
	uint8_t bytes[DSM_WIRE_BYTES];

	peer->counters.received_bytes += size;
	if (size < DSM_WIRE_BYTES)
		return finish(peer, DSM_END_FRAME, "too short");
	if (peer->over)
		return finish(peer, DSM_END_FRAME, "something behind the END");
	memcpy(bytes, peer->qp.receive[buffer].head, sizeof(bytes));
	if (bytes[0] != DSM_LINK_MARK)
		return got_message(peer, buffer, size);
	if (size != DSM_WIRE_BYTES)
		return finish(peer, DSM_END_FRAME, "too long");
	post_receive(peer, buffer);
	return got_link_frame(peer, bytes);
}

static bool got_error(struct peer *peer, const struct ibv_wc *wc)
{
	bool receive = (wc->wr_id & DSM_QP_KIND) == DSM_QP_RECEIVE;
	enum dsm_end end = dsm_qp_end(wc->status, receive);
	const char *text = ibv_wc_status_str(wc->status);

	return end == DSM_END_CUT ? lose(peer, end, text) : finish(peer, end, text);
}

/* Return: false if the connection is gone, or there is no queue any more. */
static bool got_completion(struct peer *peer, const struct ibv_wc *wc)
{
	uint32_t number = (uint32_t)wc->wr_id & ~DSM_QP_KIND;

	if (wc->status != IBV_WC_SUCCESS) {
		got_error(peer, wc);
		return false;
	}
	switch (wc->wr_id & DSM_QP_KIND) {
	case DSM_QP_RECEIVE:
		return got_bytes(peer, (uint16_t)number, wc->byte_len);
	case WR_MESSAGE:
		peer->out_first = (peer->out_first + 1) % peer->qp.nr_sends;
		peer->posted--;
		return true;
	case WR_END:
		peer->end_arrived = true;
		/* fall through */
	default:
		peer->links &= ~(1u << number);
		return true;
	}
}

/*
 * Take up to @budget completions.
 * Return: false if the connection is gone, or there is no queue any more.
 */
static bool poll_queue(struct peer *peer, unsigned int budget)
{
	struct ibv_wc wc;

	while ((peer->stage == UP || peer->stage == FAREWELL) && peer->qp.cq) {
		if (!budget--) {
			later(peer->rdma);
			return true;
		}
		if (ibv_poll_cq(peer->qp.cq, 1, &wc) <= 0)
			return true;
		if (!got_completion(peer, &wc))
			return false;
	}
	return true;
}

/* All that can have come: a receive that was posted again may have another message. */
static bool poll_all(struct peer *peer)
{
	return poll_queue(peer, 2 * peer->qp.nr_receives + DSM_QP_SENDS + DSM_QP_LINKS);
}

/* What can be done now.  The connection may be gone afterwards. */
static void work(struct peer *peer)
{
	uint32_t generation = peer->generation;

	if (peer->stage != UP && peer->stage != FAREWELL)
		return;
	if (!deliver(peer) || !poll_queue(peer, BUDGET))
		return;
	flush(peer);
	if (!tell_room(peer) || !say_farewell(peer))
		return;
	if (peer->generation == generation && peer->doom)
		finish(peer, peer->doom, peer->text);
}

static void on_completions(struct ev_loop *loop, ev_io *io, int events)
{
	struct peer *peer = io->data;
	int rc;

	(void)loop;
	(void)events;
	dsm_qp_notified(&peer->qp);
	/* Asked for before the queue is looked at: none is missed. */
	rc = dsm_qp_notify(&peer->qp);
	if (rc)
		doom_errno(peer, "ibv_req_notify_cq()", -rc);
	/*
	 * The peer sends, so it has our answer, and what is to say so (RTU) is late
	 * or lost.  rdmacm is told, and says that the connection is there.
	 */
	if (peer->stage == BINDING)
		rdma_notify(peer->qp.id, IBV_EVENT_COMM_EST);
	work(peer);
}

/* Return: false, and it is doomed. */
static bool watch_queue(struct peer *peer)
{
	int rc = dsm_qp_notify(&peer->qp);

	if (rc) {
		doom_errno(peer, "ibv_req_notify_cq()", -rc);
		return false;
	}
	ev_io_set(&peer->cq_io, peer->qp.channel->fd, EV_READ);
	ev_io_start(params_of(peer->rdma)->loop, &peer->cq_io);
	return true;
}

/* TLS. */

static void write_tls(struct peer *peer)
{
	SSL *ssl = peer->session.ssl;
	char text[DSM_TRANSPORT_TEXT];
	int n;

	while (peer->out_start < peer->out_end) {
		ERR_clear_error();
		errno = 0;
		n = SSL_write(ssl, peer->out + peer->out_start,
			      (int)(peer->out_end - peer->out_start));
		if (n > 0) {
			peer->out_start += (uint32_t)n;
			continue;
		}
		switch (SSL_get_error(ssl, n)) {
		case SSL_ERROR_WANT_WRITE:
		case SSL_ERROR_WANT_READ:
			break;
		default:
			n = dsm_tls_end(ssl, n, text);
			doom(peer, n, text);
		}
		break;
	}
}

static void say_binding(struct peer *peer)
{
	dsm_binding_put(&peer->binding, peer->out);
	peer->out_start = 0;
	peer->out_end = DSM_BINDING_FRAME;
	write_tls(peer);
}

static void resolve(struct peer *peer);

static bool got_binding(struct peer *peer)
{
	peer->have = 0;
	peer->bound = true;
	if (dsm_binding_get(&peer->binding, peer->head))
		return finish(peer, DSM_END_FRAME, "no binding");
	if (peer->session.accepted)
		say_binding(peer);
	else
		resolve(peer);
	return true;
}

static bool come_up(struct peer *peer);

/* Only FAIL comes through TLS after that. */
static bool got_word(struct peer *peer)
{
	char text[DSM_TRANSPORT_TEXT];
	int reason;

	if (peer->head[1] != DSM_LINK_FAIL)
		return finish(peer, DSM_END_FRAME, "not FAIL, through TLS");
	/* Who is up can fail before we hear that it is: so are we. */
	if (peer->stage == BINDING && peer->session.accepted && peer->qp.id &&
	    !come_up(peer))
		return false;
	reason = dsm_backend_frame(&peer->rdma->base, peer->host, &peer->link,
				   peer->head, text);
	return finish(peer, reason, text);
}

/* The bytes of TLS have come to an end, or make no sense. */
static bool tls_ended(struct peer *peer, int result)
{
	char text[DSM_TRANSPORT_TEXT];
	int reason = dsm_tls_end(peer->session.ssl, result, text);

	if (is_over(peer)) {
		peer->tls_over = true;
		all_arrived(peer);
		return true;
	}
	if (peer->stage == LOST && (reason == DSM_END_CLOSED ||
				    reason == DSM_END_CUT))
		return finish(peer, peer->loss, peer->text);
	if (reason == DSM_END_CLOSED)
		return finish(peer, DSM_END_CUT, "closed");
	return finish(peer, reason, text);
}

static bool read_tls(struct peer *peer)
{
	uint32_t generation = peer->generation, want;
	int n;

	/* What has come through RDMA came before. */
	if (!poll_all(peer))
		return peer->generation == generation;
	for (;;) {
		want = peer->bound ? DSM_WIRE_BYTES : DSM_BINDING_FRAME;
		ERR_clear_error();
		errno = 0;
		n = SSL_read(peer->session.ssl, peer->head + peer->have,
			     (int)(want - peer->have));
		if (n <= 0)
			break;
		peer->have += (uint32_t)n;
		if (peer->have == want && !(peer->bound ? got_word(peer) :
							  got_binding(peer)))
			return false;
	}
	switch (SSL_get_error(peer->session.ssl, n)) {
	case SSL_ERROR_WANT_READ:
		return true;
	case SSL_ERROR_WANT_WRITE:
		/* We say some 100 bytes, and the socket is full: of answers that it
		 * has asked for and does not read. */
		return finish(peer, DSM_END_FRAME, "new keys without end");
	default:
		return tls_ended(peer, n);
	}
}

static void work_tls(struct peer *peer)
{
	if (!read_tls(peer))
		return;
	write_tls(peer);
	if (peer->doom) {
		finish(peer, peer->doom, peer->text);
		return;
	}
	watch(peer);
}

static void on_tls(struct ev_loop *loop, ev_io *io, int events)
{
	(void)loop;
	(void)events;
	work_tls(io->data);
}

/* Binding. */

static void fill_ends(const struct peer *peer, uint32_t their_qp,
		      struct dsm_binding_ends *ends)
{
	const struct rdma_ib_addr *address = &peer->qp.id->route.addr.addr.ibaddr;
	const uint8_t *ours = address->sgid.raw, *theirs = address->dgid.raw;
	bool accepted = peer->session.accepted;

	memcpy(ends->opener_gid, accepted ? theirs : ours, 16);
	memcpy(ends->acceptor_gid, accepted ? ours : theirs, 16);
	ends->opener_qp = accepted ? their_qp : peer->qp.id->qp->qp_num;
	ends->acceptor_qp = accepted ? peer->qp.id->qp->qp_num : their_qp;
}

static struct rdma_conn_param conn_param(const uint8_t *private_data)
{
	return (struct rdma_conn_param){
		.private_data = private_data,
		.private_data_len = DSM_BINDING_PRIVATE,
		.retry_count = DSM_LINK_RETRIES,
		.rnr_retry_count = 7,	/* for ever */
	};
}

static socklen_t clear_port(struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET) {
		((struct sockaddr_in *)address)->sin_port = 0;
		return sizeof(struct sockaddr_in);
	}
	((struct sockaddr_in6 *)address)->sin6_port = 0;
	return sizeof(struct sockaddr_in6);
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET)
		((struct sockaddr_in *)address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

static int patience_ms(const struct rdma *rdma)
{
	uint64_t ms = params_of(rdma)->opening_ns / 1000000;

	return ms > 60000 ? 60000 : ms ? (int)ms : 1;
}

/* The opener: where is the port that the acceptor has told? */
static void resolve(struct peer *peer)
{
	struct rdma *rdma = peer->rdma;
	const struct dsm_transport_params *params = params_of(rdma);
	struct sockaddr_storage own = params->address;
	struct sockaddr_storage theirs = params->peer[peer->host].address;
	bool bound = own.ss_family == theirs.ss_family;

	clear_port(&own);
	set_port(&theirs, peer->binding.port);
	if (rdma_create_id(rdma->events, &peer->qp.id, peer, RDMA_PS_TCP)) {
		doom_errno(peer, "rdma_create_id()", errno);
		return;
	}
	if (rdma_resolve_addr(peer->qp.id, bound ? (struct sockaddr *)&own : NULL,
			      (struct sockaddr *)&theirs, patience_ms(rdma)))
		doom_call(peer, DSM_END_UNREACHABLE, "rdma_resolve_addr()", errno);
}

static void found_address(struct peer *peer)
{
	if (rdma_resolve_route(peer->qp.id, patience_ms(peer->rdma)))
		doom_call(peer, DSM_END_UNREACHABLE, "rdma_resolve_route()", errno);
}

/* Return: false, and it is doomed. */
static bool create_queue(struct peer *peer)
{
	char text[DSM_TRANSPORT_TEXT];

	if (!dsm_qp_create(&peer->qp, peer->rdma->ack_timeout, text))
		return true;
	doom(peer, DSM_END_LOCAL, text);
	return false;
}

/* It can send: what rdmacm allows the peer is taken back.  Return: false, and it is doomed. */
static bool forbid_access(struct peer *peer)
{
	int rc = dsm_qp_forbid_access(&peer->qp);

	if (rc)
		doom_errno(peer, "ibv_modify_qp()", -rc);
	return !rc;
}

static void found_route(struct peer *peer)
{
	uint8_t private_data[DSM_BINDING_PRIVATE];
	struct rdma_conn_param param = conn_param(private_data);
	struct dsm_binding_ends ends;

	if (!create_queue(peer))
		return;
	fill_ends(peer, 0, &ends);
	if (dsm_binding_prove(&peer->binding, false, &ends, private_data)) {
		doom(peer, DSM_END_LOCAL, "HMAC");
		return;
	}
	if (rdma_connect(peer->qp.id, &param))
		doom_errno(peer, "rdma_connect()", errno);
}

/* Both can send.  Return: false if the connection is gone. */
static bool come_up(struct peer *peer)
{
	const struct dsm_transport_params *params = params_of(peer->rdma);
	uint32_t generation = peer->generation;

	dsm_binding_clear(&peer->binding);
	peer->full = true;	/* no credit yet */
	peer->counters.connections++;
	peer->stage = UP;
	params->calls->up(params->context, peer->host, peer->session.epoch);
	if (peer->generation == generation)
		work(peer);
	return peer->generation == generation;
}

/* What an event of the connection manager has, without the event. */
struct news {
	enum rdma_cm_event_type event;
	int status;
	struct rdma_cm_id *id;
	uint32_t qp;
	uint8_t private_data[DSM_BINDING_PRIVATE];
	size_t size;
};

/* The opener: both queue pairs can send, and the answer has come. */
static void got_answer(struct peer *peer, const struct news *news)
{
	struct dsm_binding_ends ends;

	fill_ends(peer, news->qp, &ends);
	if (!dsm_binding_holds(&peer->binding, true, &ends, news->private_data,
			       news->size))
		finish(peer, DSM_END_BINDING, "the answer");
	else if (forbid_access(peer) && watch_queue(peer))
		come_up(peer);
}

static struct peer *wanted_by(const struct rdma *rdma, const struct news *news)
{
	struct peer *peer;
	unsigned int host;

	for (host = 0; host < DSM_MAX_HOSTS; host++) {
		peer = rdma->peer[host];
		if (peer && peer->stage == BINDING && peer->session.accepted &&
		    !peer->doom && dsm_binding_is_for(&peer->binding,
						      news->private_data,
						      news->size))
			return peer;
	}
	return NULL;
}

static void accept_request(struct peer *peer, const struct news *news)
{
	uint8_t private_data[DSM_BINDING_PRIVATE];
	struct rdma_conn_param param = conn_param(private_data);
	struct dsm_binding_ends ends;

	if (!create_queue(peer))
		return;
	fill_ends(peer, news->qp, &ends);
	if (dsm_binding_prove(&peer->binding, true, &ends, private_data)) {
		doom(peer, DSM_END_LOCAL, "HMAC");
		return;
	}
	/* What comes now says that the connection is there (on_completions()). */
	if (!watch_queue(peer))
		return;
	if (rdma_accept(peer->qp.id, &param))
		doom_errno(peer, "rdma_accept()", errno);
	else
		forbid_access(peer);
}

/* The acceptor: somebody wants to connect. */
static void got_request(struct rdma *rdma, const struct news *news)
{
	struct sockaddr_storage address = { 0 };
	const struct sockaddr *from = rdma_get_peer_addr(news->id);
	struct peer *peer = wanted_by(rdma, news);
	struct dsm_binding_ends ends = { .opener_qp = news->qp };
	const struct rdma_ib_addr *gids = &news->id->route.addr.addr.ibaddr;
	char text[DSM_TRANSPORT_TEXT];
	bool good;

	memcpy(&address, from, from->sa_family == AF_INET ?
	       sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	memcpy(ends.opener_gid, gids->dgid.raw, 16);
	memcpy(ends.acceptor_gid, gids->sgid.raw, 16);
	good = peer && dsm_binding_holds(&peer->binding, false, &ends,
					 news->private_data, news->size);
	if (!good) {
		dsm_opening_say_address(&address, text, sizeof(text));
		rdma_reject(news->id, NULL, 0);
		rdma_destroy_id(news->id);
		dsm_opening_turned_away(rdma->opening,
					dsm_opening_is_peers(rdma->opening, &address) ?
					DSM_END_BINDING : DSM_END_STRANGER,
					text);
		return;
	}
	peer->qp.id = news->id;
	peer->qp.id->context = peer;
	accept_request(peer, news);
}

/* A status is an error of the system, or a number that the peer's end gives. */
static void say_event(const struct news *news, char text[DSM_TRANSPORT_TEXT])
{
	const char *event = rdma_event_str(news->event);

	if (news->status < 0)
		snprintf(text, DSM_TRANSPORT_TEXT, "%s: %s", event,
			 strerror(-news->status));
	else if (news->status)
		snprintf(text, DSM_TRANSPORT_TEXT, "%s, reason %d", event,
			 news->status);
	else
		snprintf(text, DSM_TRANSPORT_TEXT, "%s", event);
}

static void got_news(struct rdma *rdma, const struct news *news)
{
	struct peer *peer = news->id->context;
	char text[DSM_TRANSPORT_TEXT];

	if (news->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		got_request(rdma, news);
		return;
	}
	if (!peer)
		return;	/* the listener's */
	say_event(news, text);
	switch (news->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		found_address(peer);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		found_route(peer);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (peer->stage != BINDING || peer->doom)
			break;
		if (peer->session.accepted)
			come_up(peer);
		else
			got_answer(peer, news);
		break;
	case RDMA_CM_EVENT_REJECTED:
		lose(peer, DSM_END_REFUSED, text);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		lose(peer, DSM_END_UNREACHABLE, text);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		/* What has come before says more. */
		if (poll_all(peer))
			lose(peer, DSM_END_CUT, text);
		break;
	default:
		break;	/* of multicast, or of no consequence */
	}
}

static void take_news(struct rdma *rdma)
{
	struct rdma_cm_event *event;
	unsigned int budget;
	struct news news;

	for (budget = BUDGET; budget; budget--) {
		if (rdma_get_cm_event(rdma->events, &event))
			return;
		news = (struct news){
			.event = event->event, .status = event->status,
			.id = event->id, .qp = event->param.conn.qp_num,
		};
		if ((event->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
		     event->event == RDMA_CM_EVENT_ESTABLISHED) &&
		    event->param.conn.private_data &&
		    event->param.conn.private_data_len >= DSM_BINDING_PRIVATE) {
			memcpy(news.private_data,
			       event->param.conn.private_data,
			       DSM_BINDING_PRIVATE);
			news.size = DSM_BINDING_PRIVATE;
		}
		/* Before its identifier may be destroyed. */
		rdma_ack_cm_event(event);
		got_news(rdma, &news);
	}
}

static void on_news(struct ev_loop *loop, ev_io *io, int events)
{
	(void)loop;
	(void)events;
	take_news(io->data);
}

static void on_soon(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct rdma *rdma = timer->data;
	unsigned int host;

	(void)loop;
	(void)events;
	for (host = 0; host < DSM_MAX_HOSTS; host++) {
		struct peer *peer = rdma->peer[host];

		if (!peer)
			continue;
		work(peer);
		if (peer->stage == BINDING || peer->stage == LOST)
			work_tls(peer);
	}
}

/* Opening. */

static void agreed(void *owner, const struct dsm_session *session)
{
	struct rdma *rdma = owner;
	const struct dsm_transport_params *params = params_of(rdma);
	struct peer *peer = rdma->peer[session->host];

	dsm_session_take(&peer->session, session);
	dsm_backend_begin(&rdma->base, &peer->link, session->epoch, session->version);
	peer->stage = BINDING;
	peer->since = now(rdma);
	peer->counters.certificate_expires = session->expires;
	peer->counters.sent_bytes += DSM_WIRE_BYTES;
	peer->counters.received_bytes += DSM_WIRE_BYTES;
	if (dsm_binding_init(&peer->binding, session->ssl, session->accepted,
			     params->self, (uint8_t)session->host,
			     session->epoch,
			     session->accepted ? rdma->port : 0)) {
		finish(peer, DSM_END_LOCAL, "no key of the TLS session");
		return;
	}
	if (!session->accepted)
		say_binding(peer);
	work_tls(peer);
}

static void not_opened(void *owner, unsigned int host, int reason,
		       const char *text)
{
	struct rdma *rdma = owner;
	const struct dsm_transport_params *params = params_of(rdma);

	if (host != DSM_NOBODY)
		rdma->peer[host]->counters.ends[reason]++;
	params->calls->end(params->context, host, (enum dsm_end)reason, text);
}

static const struct dsm_opening_calls opening_calls = {
	.agreed = agreed, .ended = not_opened,
};

static int rdma_backend_open(struct dsm_transport *transport, unsigned int host,
			     uint32_t epoch)
{
	return dsm_opening_connect(((struct rdma *)transport)->opening, host,
				   epoch);
}

static int rdma_backend_expect(struct dsm_transport *transport,
			       unsigned int host, uint32_t epoch)
{
	return dsm_opening_expect(((struct rdma *)transport)->opening, host,
				  epoch);
}

/* What the caller asks for. */

static struct peer *peer_of(const struct dsm_transport *transport,
			    unsigned int host)
{
	return ((const struct rdma *)transport)->peer[host];
}

/* Can it still send? */
static bool is_open(const struct peer *peer)
{
	return peer->stage == UP && !peer->doom && !peer->closing;
}

static int rdma_backend_send(struct dsm_transport *transport, unsigned int host,
			     const struct dsm_msg *msg, const uint8_t *page)
{
	struct peer *peer = peer_of(transport, host);
	struct dsm_qp_frame *frame;

	if (!is_open(peer))
		return -ENOTCONN;
	if (msg->epoch != peer->link.epoch)
		return -EINVAL;
	if (peer->waiting == params_of(peer->rdma)->queue) {
		doom(peer, DSM_END_QUEUE, dsm_type_name(msg->type));
		return -ENOBUFS;
	}
	peer->counters.stalls += !dsm_link_spare(&peer->link, peer->waiting);
	frame = out_at(peer, peer->posted + peer->waiting++);
	dsm_wire_put(msg, frame->head);
	if (page)
		memcpy(frame->page, page, dsm_type_bytes(msg->type));
	peer->counters.sent++;
	peer->counters.sent_pages += dsm_type_has_page(msg->type);
	if (!room_of(peer))
		peer->full = true;
	flush(peer);
	return 0;
}

static unsigned int rdma_backend_room(const struct dsm_transport *transport,
				      unsigned int host)
{
	const struct peer *peer = peer_of(transport, host);

	return is_open(peer) ? room_of(peer) : 0;
}

static unsigned int rdma_backend_version(const struct dsm_transport *transport,
					 unsigned int host)
{
	const struct peer *peer = peer_of(transport, host);

	return peer->stage == UP ? peer->link.version : 0;
}

static int rdma_backend_hold(struct dsm_transport *transport, unsigned int host,
			     bool hold)
{
	struct peer *peer = peer_of(transport, host);

	if (peer->stage == FREE || peer->stage == BINDING)
		return -ENOTCONN;
	peer->held = hold;
	if (!hold)
		later(peer->rdma);
	return 0;
}

static int rdma_backend_close(struct dsm_transport *transport,
			      unsigned int host)
{
	struct peer *peer = peer_of(transport, host);

	switch (peer->stage) {
	case FREE:
		return dsm_opening_cancel(peer->rdma->opening, host);
	case BINDING:
		forget(peer);
		/* Nobody is waited for, and its epoch is as good as before. */
		dsm_opening_take_back(peer->rdma->opening, host, false);
		return 0;
	default:
		break;
	}
	if (peer->closing)
		return -ENOTCONN;
	if (peer->stage == LOST)
		peer->closing = true;
	else
		begin_to_close(peer);
	later(peer->rdma);
	return 0;
}

static int rdma_backend_fail(struct dsm_transport *transport, unsigned int host,
			     uint8_t reason)
{
	struct peer *peer = peer_of(transport, host);
	uint8_t bytes[DSM_WIRE_BYTES];

	if (peer->stage != UP)
		return -ENOTCONN;
	dsm_link_put_fail(&peer->link, reason, bytes);
	ERR_clear_error();
	if (SSL_write(peer->session.ssl, bytes, DSM_WIRE_BYTES) > 0)
		SSL_shutdown(peer->session.ssl);
	forget(peer);
	return 0;
}

/* Enum dsm_end: why its time is over; or 0. */
static int end_by_clock(const struct peer *peer, uint64_t time)
{
	bool late = time - peer->since >= params_of(peer->rdma)->opening_ns;

	switch (peer->stage) {
	case LOST:
		return late ? peer->loss : 0;
	case BINDING:
		return late ? DSM_END_SLOW : 0;
	default:
		break;
	}
	if (peer->closing && late)
		return DSM_END_SLOW;
	/* Who has said that this is the end answers nothing any more. */
	return peer->stage == UP && !peer->over ?
	       dsm_link_tick(&peer->link, time) : 0;
}

/*
 * Take what had come when our own time was over: the late one may be we.
 * Return: false if the connection is gone.
 */
static bool catch_up(struct peer *peer)
{
	uint32_t generation = peer->generation;

	if (peer->stage == BINDING)
		take_news(peer->rdma);
	if (peer->generation != generation)
		return false;
	if (peer->stage == BINDING || peer->stage == LOST)
		work_tls(peer);
	else if (deliver(peer) && poll_all(peer))
		say_farewell(peer);	/* both ENDs may be here */
	return peer->generation == generation;
}

static void tick_peer(struct peer *peer)
{
	int reason;

	if (end_by_clock(peer, now(peer->rdma))) {
		if (!catch_up(peer))
			return;
		/* Now: what it does may begin later than the time that it was called at. */
		reason = end_by_clock(peer, now(peer->rdma));
		if (reason) {
			finish(peer, reason, peer->stage == LOST ? peer->text : "");
			return;
		}
	}
	work(peer);
}

static void rdma_backend_tick(struct dsm_transport *transport)
{
	struct rdma *rdma = (struct rdma *)transport;
	unsigned int host;

	dsm_opening_tick(rdma->opening);
	for (host = 0; host < DSM_MAX_HOSTS; host++)
		if (rdma->peer[host] && rdma->peer[host]->stage != FREE)
			tick_peer(rdma->peer[host]);
}

static unsigned int rdma_backend_poll(struct dsm_transport *transport)
{
	struct rdma *rdma = (struct rdma *)transport;
	uint32_t before = rdma->delivered;
	unsigned int host;

	for (host = 0; host < DSM_MAX_HOSTS; host++)
		if (rdma->peer[host] && rdma->peer[host]->stage == UP)
			work(rdma->peer[host]);
	return rdma->delivered - before;
}

static void rdma_backend_counters(const struct dsm_transport *transport,
				  unsigned int host,
				  struct dsm_transport_counters *counters)
{
	const struct rdma *rdma = (const struct rdma *)transport;
	const struct peer *peer;

	if (host == DSM_NOBODY) {
		memset(counters, 0, sizeof(*counters));
		memcpy(counters->ends, dsm_opening_stranger_ends(rdma->opening),
		       sizeof(counters->ends));
		return;
	}
	peer = rdma->peer[host];
	*counters = peer->counters;
	if (peer->stage == UP) {
		counters->waiting = peer->waiting;
		counters->credits = dsm_link_credits(&peer->link);
	}
}

static unsigned int rdma_backend_port(const struct dsm_transport *transport)
{
	return dsm_opening_port(((const struct rdma *)transport)->opening);
}

/* All at once. */

static void free_peer(struct peer *peer)
{
	if (!peer)
		return;
	dsm_qp_free(&peer->qp);
	free(peer->inbox);
	free(peer);
}

static bool create_buffers(struct peer *peer)
{
	const struct dsm_transport_params *params = params_of(peer->rdma);

	peer->inbox = calloc(params->credits, sizeof(peer->inbox[0]));
	return peer->inbox &&
	       !dsm_qp_init(&peer->qp, params->credits + DSM_LINK_FRAMES,
			    params->queue + DSM_QP_SENDS);
}

static struct peer *new_peer(struct rdma *rdma, unsigned int host)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->rdma = rdma;
	peer->host = host;
	peer->session.fd = -1;
	ev_io_init(&peer->io, on_tls, -1, 0);
	peer->io.data = peer;
	ev_io_init(&peer->cq_io, on_completions, -1, 0);
	peer->cq_io.data = peer;
	if (!create_buffers(peer)) {
		free_peer(peer);
		return NULL;
	}
	return peer;
}

static void rdma_backend_destroy(struct dsm_transport *transport)
{
	struct rdma *rdma = (struct rdma *)transport;
	unsigned int host;

	for (host = 0; host < DSM_MAX_HOSTS; host++) {
		if (rdma->peer[host] && rdma->peer[host]->stage != FREE)
			forget(rdma->peer[host]);
		free_peer(rdma->peer[host]);
	}
	dsm_opening_destroy(rdma->opening);
	ev_timer_stop(params_of(rdma)->loop, &rdma->soon);
	if (rdma->listener)
		rdma_destroy_id(rdma->listener);
	if (rdma->events) {
		ev_io_stop(params_of(rdma)->loop, &rdma->io);
		rdma_destroy_event_channel(rdma->events);
	}
	free(rdma);
}

static int create_peers(struct rdma *rdma)
{
	unsigned int host;

	for (host = 0; host < DSM_MAX_HOSTS; host++) {
		if (!params_of(rdma)->peer[host].used)
			continue;
		rdma->peer[host] = new_peer(rdma, host);
		if (!rdma->peer[host])
			return -ENOMEM;
	}
	return 0;
}

/* Listen at any port: the peer is told through TLS. */
static int begin_listen(struct rdma *rdma, char *text)
{
	const struct dsm_transport_params *params = params_of(rdma);
	struct sockaddr_storage address = params->address;
	const uint32_t receives = params->credits + DSM_LINK_FRAMES;
	const uint32_t sends = params->queue + DSM_QP_SENDS;
	struct ibv_device_attr adapter;
	const char *what = "rdma_create_event_channel()";
	int rc;

	clear_port(&address);
	rdma->events = rdma_create_event_channel();
	if (!rdma->events)
		goto failed;
	ev_io_init(&rdma->io, on_news, rdma->events->fd, EV_READ);
	rdma->io.data = rdma;
	what = "fcntl()";
	if (dsm_qp_set_nonblocking(rdma->events->fd))
		goto failed;
	what = "rdma_create_id()";
	if (rdma_create_id(rdma->events, &rdma->listener, NULL, RDMA_PS_TCP))
		goto failed;
	what = "rdma_bind_addr()";
	if (rdma_bind_addr(rdma->listener, (struct sockaddr *)&address))
		goto failed;
	what = "rdma_listen()";
	if (rdma_listen(rdma->listener, BACKLOG))
		goto failed;
	rdma->port = ntohs(rdma_get_src_port(rdma->listener));
	/* Better now than at the first connection.  "Any address" has no adapter yet. */
	if (rdma->listener->verbs && !ibv_query_device(rdma->listener->verbs, &adapter) &&
	    !dsm_qp_fits(&adapter, receives, receives + sends, text))
		return -EOPNOTSUPP;
	ev_io_start(params_of(rdma)->loop, &rdma->io);
	return 0;
failed:
	rc = -errno;
	snprintf(text, DSM_TRANSPORT_TEXT, "%s: %s%s", what, strerror(-rc),
		 rc == -ENODEV || rc == -ENOENT ?
		 "; is there an RDMA device (rdma link)?" : "");
	return rc;
}

static int rdma_backend_create(const struct dsm_transport_params *params,
			       struct dsm_transport **transport, char *text)
{
	struct rdma *rdma;
	int rc;

	snprintf(text, DSM_TRANSPORT_TEXT, "no memory");
	rdma = calloc(1, sizeof(*rdma));
	if (!rdma)
		return -ENOMEM;
	rdma->base.backend = &dsm_backend_rdma;
	rdma->base.params = params;
	rdma->ack_timeout = dsm_link_ack_timeout(params->question_ns,
						 params->deadline_ns);
	ev_timer_init(&rdma->soon, on_soon, 0., 0.);
	rdma->soon.data = rdma;

	rc = create_peers(rdma);
	if (!rc)
		rc = begin_listen(rdma, text);
	if (!rc)
		rc = dsm_opening_create(params, &opening_calls, rdma,
					&rdma->opening, text);
	if (rc) {
		rdma_backend_destroy(&rdma->base);
		return rc;
	}
	*transport = &rdma->base;
	return 0;
}

const struct dsm_backend dsm_backend_rdma = {
	.create = rdma_backend_create,
	.destroy = rdma_backend_destroy,
	.port = rdma_backend_port,
	.open = rdma_backend_open,
	.expect = rdma_backend_expect,
	.send = rdma_backend_send,
	.room = rdma_backend_room,
	.version = rdma_backend_version,
	.hold = rdma_backend_hold,
	.close = rdma_backend_close,
	.fail = rdma_backend_fail,
	.tick = rdma_backend_tick,
	.poll = rdma_backend_poll,
	.counters = rdma_backend_counters,
};
