// SPDX-License-Identifier: GPL-2.0
/*
 * Connections over TCP with TLS.
 *
 * A peer has at most one connection, which begins when the opening has agreed
 * with it (opening.h).
 *
 * Where the end may be found: everywhere.  Who finds it in the loop calls
 * finish(), which tells the caller; who finds it in a call of the caller
 * writes it down (doom()), and the loop finishes it.  After a callback the
 * generation says whether the connection is still the same; functions that
 * call back return false if it is not.
 *
 * Receiving: the buffers of a peer are a ring; a message is read into the next
 * one and delivered from there.  Sending: messages wait in a ring, too; fill()
 * takes those that have credits into the bytes that go into one TLS record,
 * frames of the connection first.  Nothing is ever taken back from there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>
#include <openssl/err.h>

#include "backend.h"
#include "link.h"
#include "opening.h"

#define RECORD_BYTES	16384	/* the largest TLS record */
#define BUDGET		64	/* frames of one connection before others have a turn */
#define RECORDS		16	/* of TLS that go out at a time, likewise */

enum stage {
	FREE,		/* no connection; the opening may have one */
	UP,
	FAREWELL,	/* our close_notify is out, the peer's is not here */
};

struct frame {
	uint8_t head[DSM_WIRE_BYTES];
	uint8_t page[DSM_PAGE_BYTES];
};

struct ring {
	struct frame *frames;
	uint32_t size, first, nr;
};

struct peer {
	struct tcp *tcp;
	unsigned int host;
	enum stage stage;
	uint32_t generation;	/* of the connection */
	struct dsm_session session;
	ev_io io;
	bool wants_write;	/* the socket is full */
	bool read_wants_write;	/* nothing can be read before something is written */
	bool write_failed;	/* nothing can be sent; what came may say why */
	bool closing;		/* close() was called */
	bool over;		/* the peer's close_notify has come */
	bool held;
	bool full;		/* room() was 0 */
	uint64_t since;		/* began to close */
	int doom;		/* enum dsm_end, found outside of the loop; or 0 */
	char text[DSM_TRANSPORT_TEXT];	/* about doom */
	struct dsm_link link;
	struct ring inbox;	/* the credits */
	struct ring outbox;
	uint32_t have;		/* bytes of the frame that is being read */
	uint32_t want;		/* bytes of page that it has */
	uint8_t head[DSM_WIRE_BYTES];
	uint8_t record[RECORD_BYTES];
	uint32_t record_start, record_end;
	uint32_t records;	/* under this key */
	struct dsm_transport_counters counters;
};

struct tcp {
	struct dsm_transport base;
	struct dsm_opening *opening;
	ev_timer soon;		/* something is left to do without an event */
	uint32_t delivered;	/* messages, ever */
	struct peer *peer[DSM_MAX_HOSTS];
};

static const struct dsm_transport_params *params_of(const struct tcp *tcp)
{
	return tcp->base.params;
}

static uint64_t now(const struct tcp *tcp)
{
	return params_of(tcp)->now(params_of(tcp)->context);
}

static struct frame *ring_at(const struct ring *ring, uint32_t index)
{
	return &ring->frames[(ring->first + index) % ring->size];
}

static void ring_drop(struct ring *ring)
{
	ring->first = (ring->first + 1) % ring->size;
	ring->nr--;
}

static void ring_clear(struct ring *ring)
{
	ring->first = 0;
	ring->nr = 0;
}

/* What was the connection's, before it began or after its end. */
static void clear_peer(struct peer *peer)
{
	peer->stage = FREE;
	peer->doom = 0;
	peer->wants_write = false;
	peer->read_wants_write = false;
	peer->write_failed = false;
	peer->closing = false;
	peer->over = false;
	peer->held = false;
	peer->have = 0;
	peer->want = 0;
	peer->record_start = 0;
	peer->record_end = 0;
	ring_clear(&peer->inbox);
	ring_clear(&peer->outbox);
}

/* The end of a connection. */

static void forget(struct peer *peer)
{
	struct tcp *tcp = peer->tcp;

	ev_io_stop(params_of(tcp)->loop, &peer->io);
	dsm_session_close(&peer->session);
	clear_peer(peer);
	peer->generation++;
	dsm_opening_release(tcp->opening, peer->host);
}

/* Return: false, for "it is gone". */
static bool finish(struct peer *peer, int reason, const char *why)
{
	const struct dsm_transport_params *params = params_of(peer->tcp);
	char text[DSM_TRANSPORT_TEXT];

	snprintf(text, sizeof(text), "%s", why);
	peer->counters.ends[reason]++;
	forget(peer);
	params->calls->end(params->context, peer->host, (enum dsm_end)reason,
			   text);
	return false;
}

static void later(struct tcp *tcp)
{
	if (!ev_is_active(&tcp->soon)) {
		ev_timer_set(&tcp->soon, 0., 0.);
		ev_timer_start(params_of(tcp)->loop, &tcp->soon);
	}
}

static void doom(struct peer *peer, int reason, const char *text)
{
	if (peer->doom)
		return;
	peer->doom = reason;
	snprintf(peer->text, sizeof(peer->text), "%s", text);
	later(peer->tcp);
}

static void watch(struct peer *peer)
{
	struct ev_loop *loop = params_of(peer->tcp)->loop;
	int events = peer->wants_write || peer->read_wants_write ? EV_WRITE : 0;

	if (!peer->over)
		events |= EV_READ;
	if (ev_is_active(&peer->io) && peer->io.events == events)
		return;
	ev_io_stop(loop, &peer->io);
	if (events) {
		ev_io_set(&peer->io, peer->session.fd, events);
		ev_io_start(loop, &peer->io);
	}
}

/* Sending. */

static uint32_t frame_bytes(const struct frame *frame)
{
	return DSM_WIRE_BYTES + dsm_type_bytes(frame->head[1]);
}

/* Take what may go out at @time into the next record.  Return: is there anything? */
static bool fill(struct peer *peer, struct dsm_link_time time)
{
	struct dsm_link *link = &peer->link;
	const struct frame *frame;
	uint32_t bytes;

	peer->record_start = 0;
	peer->record_end = 0;
	if (peer->stage != UP)
		return false;
	while (peer->record_end + DSM_WIRE_BYTES <= RECORD_BYTES &&
	       dsm_link_next(link, time, peer->record + peer->record_end)) {
		peer->counters.questions +=
			peer->record[peer->record_end + 1] == DSM_LINK_QUESTION;
		peer->record_end += DSM_WIRE_BYTES;
	}
	while (peer->outbox.nr && dsm_link_credits(link)) {
		frame = ring_at(&peer->outbox, 0);
		bytes = frame_bytes(frame);
		if (peer->record_end + bytes > RECORD_BYTES)
			break;
		memcpy(peer->record + peer->record_end, frame, bytes);
		peer->record_end += bytes;
		ring_drop(&peer->outbox);
		dsm_link_sent(link);
	}
	return peer->record_end != 0;
}

/* The keys of a TLS 1.3 cipher are good for so many records (RFC 8446, 5.5). */
static void change_key(struct peer *peer)
{
	if (peer->records < params_of(peer->tcp)->rekey_records)
		return;
	if (SSL_in_init(peer->session.ssl))
		return;	/* a change that the peer asked for is under way */
	if (SSL_key_update(peer->session.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
		doom(peer, DSM_END_LOCAL, "no new key");
		return;
	}
	peer->records = 0;
	peer->counters.rekeys++;
}

static void write_failed(struct peer *peer, int result)
{
	char text[DSM_TRANSPORT_TEXT];
	int reason = dsm_tls_end(peer->session.ssl, result, text);

	peer->write_failed = true;
	doom(peer, reason, text);
}

/* As much as the socket takes, and others can wait for.  Does not call back. */
static void flush(struct peer *peer)
{
	unsigned int budget = RECORDS;
	struct dsm_link_time time = dsm_backend_now(&peer->tcp->base);
	int n;

	peer->wants_write = false;
	while (!peer->write_failed && peer->stage != FAREWELL &&
	       (peer->record_start < peer->record_end || fill(peer, time))) {
		if (!budget--) {
			later(peer->tcp);
			return;
		}
		if (!peer->record_start)
			change_key(peer);
		ERR_clear_error();
		errno = 0;
		n = SSL_write(peer->session.ssl, peer->record + peer->record_start,
			      (int)(peer->record_end - peer->record_start));
		if (n > 0) {
			peer->record_start += (uint32_t)n;
			peer->counters.sent_bytes += (uint64_t)n;
			peer->records++;
			continue;
		}
		switch (SSL_get_error(peer->session.ssl, n)) {
		case SSL_ERROR_WANT_WRITE:
			peer->wants_write = true;
			break;
		case SSL_ERROR_WANT_READ:
			break;
		default:
			write_failed(peer, n);
		}
		break;
	}
}

static bool is_flushed(const struct peer *peer)
{
	return peer->record_start == peer->record_end && !peer->outbox.nr;
}

static uint32_t room_of(const struct peer *peer)
{
	return dsm_link_room(&peer->link, peer->outbox.nr);
}

static bool tell_room(struct peer *peer)
{
	const struct dsm_transport_params *params = params_of(peer->tcp);
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

/* Both have said that this is the end. */
static bool ended_well(struct peer *peer)
{
	if (peer->stage != FAREWELL && !is_flushed(peer))
		return finish(peer, DSM_END_CUT,
			      "the peer closes before it has all messages");
	if (peer->stage != FAREWELL)
		SSL_shutdown(peer->session.ssl);
	return finish(peer, DSM_END_CLOSED, "");
}

static bool say_farewell(struct peer *peer)
{
	if (!peer->closing || peer->stage != UP || !is_flushed(peer) ||
	    peer->write_failed)
		return true;
	if (SSL_shutdown(peer->session.ssl) < 0 &&
	    SSL_get_error(peer->session.ssl, -1) == SSL_ERROR_WANT_WRITE) {
		peer->wants_write = true;
		return true;
	}
	peer->stage = FAREWELL;
	return true;
}

/* Receiving. */

static bool deliver(struct peer *peer)
{
	const struct dsm_transport_params *params = params_of(peer->tcp);
	uint32_t generation = peer->generation;
	struct frame *frame;
	struct dsm_msg msg;

	while (peer->inbox.nr && !peer->held) {
		frame = ring_at(&peer->inbox, 0);
		dsm_wire_get(frame->head, &msg);	/* was good when it came */
		peer->tcp->delivered++;
		params->calls->message(params->context, peer->host, &msg,
				       dsm_type_bytes(msg.type) ? frame->page : NULL);
		if (peer->generation != generation)
			return false;
		ring_drop(&peer->inbox);
		dsm_link_consumed(&peer->link);
	}
	return true;
}

static bool got_link_frame(struct peer *peer)
{
	uint32_t generation = peer->generation;
	char text[DSM_TRANSPORT_TEXT];
	int reason = dsm_backend_frame(&peer->tcp->base, peer->host, &peer->link,
				       peer->head, text);

	if (reason)
		return finish(peer, reason, text);
	return peer->generation == generation;
}

/* 32 bytes of a message.  Has it room, and how much follows? */
static bool got_head(struct peer *peer)
{
	struct dsm_msg msg;
	int reason, rc = dsm_wire_get(peer->head, &msg);

	if (rc < 0)
		return finish(peer, DSM_END_FRAME,
			      dsm_error_name((unsigned int)-rc));
	reason = dsm_backend_message(&peer->link, &msg);
	if (reason)
		return finish(peer, reason, dsm_type_name(msg.type));
	peer->want = (uint32_t)rc;
	memcpy(ring_at(&peer->inbox, peer->inbox.nr)->head, peer->head,
	       DSM_WIRE_BYTES);
	return true;
}

static bool got_message(struct peer *peer)
{
	peer->counters.received++;
	peer->counters.received_pages += peer->want == DSM_PAGE_BYTES;
	peer->inbox.nr++;
	peer->want = 0;
	peer->have = 0;
	return deliver(peer);
}

/* Some bytes have been read, and peer->have counts them. */
static bool got_bytes(struct peer *peer)
{
	if (peer->have == DSM_WIRE_BYTES) {
		if (peer->head[0] == DSM_LINK_MARK) {
			peer->have = 0;
			return got_link_frame(peer);
		}
		if (!got_head(peer))
			return false;
	}
	if (peer->have >= DSM_WIRE_BYTES &&
	    peer->have == DSM_WIRE_BYTES + peer->want)
		return got_message(peer);
	return true;
}

static int read_some(struct peer *peer)
{
	uint8_t *to = peer->head + peer->have;
	uint32_t size = DSM_WIRE_BYTES - peer->have;

	if (peer->have >= DSM_WIRE_BYTES) {
		to = ring_at(&peer->inbox, peer->inbox.nr)->page +
		     (peer->have - DSM_WIRE_BYTES);
		size = DSM_WIRE_BYTES + peer->want - peer->have;
	}
	ERR_clear_error();
	errno = 0;
	return SSL_read(peer->session.ssl, to, (int)size);
}

/* The bytes have come to an end, or make no sense. */
static bool read_failed(struct peer *peer, int result)
{
	char text[DSM_TRANSPORT_TEXT];
	int reason = dsm_tls_end(peer->session.ssl, result, text);

	if (reason != DSM_END_CLOSED)
		return finish(peer, reason, text);
	if (peer->have)
		return finish(peer, DSM_END_CUT, "closed within a message");
	peer->over = true;
	if (peer->inbox.nr)
		return true;	/* held: ends after the last of them */
	return ended_well(peer);
}

static bool receive(struct peer *peer)
{
	unsigned int budget;
	int n;

	peer->read_wants_write = false;
	if (!deliver(peer))
		return false;
	if (peer->over)
		return peer->inbox.nr ? true : ended_well(peer);
	for (budget = 2 * BUDGET; budget && !peer->over; budget--) {
		n = read_some(peer);
		if (n > 0) {
			peer->counters.received_bytes += (uint64_t)n;
			peer->have += (uint32_t)n;
			if (!got_bytes(peer))
				return false;
			/* Nothing is read ahead: what is in the socket wakes us. */
			if (!peer->have && !SSL_has_pending(peer->session.ssl))
				return true;
			continue;
		}
		switch (SSL_get_error(peer->session.ssl, n)) {
		case SSL_ERROR_WANT_WRITE:
			peer->read_wants_write = true;
			return true;
		case SSL_ERROR_WANT_READ:
			return true;
		default:
			return read_failed(peer, n);
		}
	}
	if (SSL_pending(peer->session.ssl))
		later(peer->tcp);	/* the socket will not say so */
	return true;
}

/* Has the socket, or TLS, something that was not looked at? */
static bool has_more(const struct peer *peer)
{
	char byte;

	return !peer->over &&
	       (SSL_has_pending(peer->session.ssl) ||
		recv(peer->session.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0);
}

/*
 * Take all that has come: when our own time was over, the late one may be we; and
 * when nothing can be sent any more, the peer may have said why.  That is no more
 * than an honest peer can have under way, with some records that are no data.
 * Return: false if the connection is gone.
 */
static bool catch_up(struct peer *peer)
{
	unsigned int turns = peer->inbox.size / BUDGET + 8;

	do {
		if (!receive(peer))
			return false;
	} while (--turns && has_more(peer));
	return true;
}

/* What can be done now.  The connection may be gone afterwards. */
static void work(struct peer *peer)
{
	if (!receive(peer))
		return;
	flush(peer);
	/* What has come says more than a write that failed. */
	if (peer->write_failed && !catch_up(peer))
		return;
	if (!tell_room(peer) || !say_farewell(peer))
		return;
	if (peer->doom) {
		finish(peer, peer->doom, peer->text);
		return;
	}
	watch(peer);
}

static void on_event(struct ev_loop *loop, ev_io *io, int events)
{
	(void)loop;
	(void)events;
	work(io->data);
}

static void on_soon(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct tcp *tcp = timer->data;
	unsigned int host;

	(void)loop;
	(void)events;
	for (host = 0; host < DSM_MAX_HOSTS; host++)
		if (tcp->peer[host] && tcp->peer[host]->stage != FREE)
			work(tcp->peer[host]);
}

/* Opening. */

static void agreed(void *owner, const struct dsm_session *session)
{
	struct tcp *tcp = owner;
	const struct dsm_transport_params *params = params_of(tcp);
	struct peer *peer = tcp->peer[session->host];
	uint32_t generation = peer->generation;

	dsm_session_take(&peer->session, session);
	dsm_backend_begin(&tcp->base, &peer->link, session->epoch, session->version);
	peer->full = true;	/* no credit yet */
	peer->records = 1;	/* HELLO */
	peer->counters.sent_bytes += DSM_WIRE_BYTES;
	peer->counters.received_bytes += DSM_WIRE_BYTES;
	peer->counters.connections++;
	peer->counters.certificate_expires = session->expires;
	peer->stage = UP;
	params->calls->up(params->context, peer->host, session->epoch);
	if (peer->generation == generation)
		work(peer);
}

static void not_opened(void *owner, unsigned int host, int reason,
		       const char *text)
{
	struct tcp *tcp = owner;
	const struct dsm_transport_params *params = params_of(tcp);

	if (host != DSM_NOBODY)
		tcp->peer[host]->counters.ends[reason]++;
	params->calls->end(params->context, host, (enum dsm_end)reason, text);
}

static const struct dsm_opening_calls opening_calls = {
	.agreed = agreed, .ended = not_opened,
};

static int tcp_open(struct dsm_transport *transport, unsigned int host,
		    uint32_t epoch)
{
	return dsm_opening_connect(((struct tcp *)transport)->opening, host,
				   epoch);
}

static int tcp_expect(struct dsm_transport *transport, unsigned int host,
		      uint32_t epoch)
{
	return dsm_opening_expect(((struct tcp *)transport)->opening, host,
				  epoch);
}

/* What the caller asks for. */

static struct peer *peer_of(const struct dsm_transport *transport,
			    unsigned int host)
{
	return ((const struct tcp *)transport)->peer[host];
}

/* Can it still send? */
static bool is_open(const struct peer *peer)
{
	return peer->stage == UP && !peer->doom && !peer->closing;
}

static int tcp_send(struct dsm_transport *transport, unsigned int host,
		    const struct dsm_msg *msg, const uint8_t *page)
{
	struct peer *peer = peer_of(transport, host);
	struct frame *frame;

	if (!is_open(peer))
		return -ENOTCONN;
	if (msg->epoch != peer->link.epoch)
		return -EINVAL;
	if (peer->outbox.nr == peer->outbox.size) {
		doom(peer, DSM_END_QUEUE, dsm_type_name(msg->type));
		return -ENOBUFS;
	}
	peer->counters.stalls += !dsm_link_spare(&peer->link, peer->outbox.nr);
	frame = ring_at(&peer->outbox, peer->outbox.nr++);
	dsm_wire_put(msg, frame->head);
	if (page)
		memcpy(frame->page, page, dsm_type_bytes(msg->type));
	peer->counters.sent++;
	peer->counters.sent_pages += dsm_type_has_page(msg->type);
	if (!room_of(peer))
		peer->full = true;
	if (!peer->wants_write) {
		flush(peer);
		watch(peer);
	}
	return 0;
}

static unsigned int tcp_room(const struct dsm_transport *transport,
			     unsigned int host)
{
	const struct peer *peer = peer_of(transport, host);

	return is_open(peer) ? room_of(peer) : 0;
}

static unsigned int tcp_version(const struct dsm_transport *transport,
				unsigned int host)
{
	const struct peer *peer = peer_of(transport, host);

	return peer->stage == UP ? peer->link.version : 0;
}

static int tcp_hold(struct dsm_transport *transport, unsigned int host,
		    bool hold)
{
	struct peer *peer = peer_of(transport, host);

	if (peer->stage == FREE)
		return -ENOTCONN;
	peer->held = hold;
	if (!hold)
		later(peer->tcp);
	return 0;
}

static int tcp_close(struct dsm_transport *transport, unsigned int host)
{
	struct peer *peer = peer_of(transport, host);

	if (peer->stage == FREE)
		return dsm_opening_cancel(peer->tcp->opening, host);
	if (peer->closing)
		return -ENOTCONN;
	peer->closing = true;
	peer->since = now(peer->tcp);
	later(peer->tcp);
	return 0;
}

static int tcp_fail(struct dsm_transport *transport, unsigned int host,
		    uint8_t reason)
{
	struct peer *peer = peer_of(transport, host);

	if (peer->stage != UP)
		return -ENOTCONN;
	ring_clear(&peer->outbox);
	flush(peer);	/* a frame that was begun has to end */
	if (peer->record_start == peer->record_end && !peer->write_failed) {
		uint8_t bytes[DSM_WIRE_BYTES];

		dsm_link_put_fail(&peer->link, reason, bytes);
		ERR_clear_error();
		if (SSL_write(peer->session.ssl, bytes, DSM_WIRE_BYTES) > 0)
			SSL_shutdown(peer->session.ssl);
	}
	forget(peer);
	return 0;
}

/* Enum dsm_end: why its time is over; or 0. */
static int end_by_clock(const struct peer *peer, uint64_t time)
{
	if (peer->closing &&
	    time - peer->since >= params_of(peer->tcp)->opening_ns)
		return DSM_END_SLOW;
	/* Who has said that this is the end answers nothing any more. */
	return peer->stage == UP && !peer->over ?
	       dsm_link_tick(&peer->link, time) : 0;
}

static void tick_peer(struct peer *peer)
{
	int reason;

	if (end_by_clock(peer, now(peer->tcp))) {
		if (!catch_up(peer))
			return;
		/* Now: what it does may begin later than the time that it was called at. */
		reason = end_by_clock(peer, now(peer->tcp));
		if (reason) {
			finish(peer, reason, "");
			return;
		}
	}
	work(peer);
}

static void tcp_tick(struct dsm_transport *transport)
{
	struct tcp *tcp = (struct tcp *)transport;
	unsigned int host;

	dsm_opening_tick(tcp->opening);
	for (host = 0; host < DSM_MAX_HOSTS; host++)
		if (tcp->peer[host] && tcp->peer[host]->stage != FREE)
			tick_peer(tcp->peer[host]);
}

static unsigned int tcp_poll(struct dsm_transport *transport)
{
	struct tcp *tcp = (struct tcp *)transport;
	uint32_t before = tcp->delivered;
	unsigned int host;

	for (host = 0; host < DSM_MAX_HOSTS; host++)
		if (tcp->peer[host] && tcp->peer[host]->stage == UP)
			work(tcp->peer[host]);
	return tcp->delivered - before;
}

static void tcp_counters(const struct dsm_transport *transport,
			 unsigned int host,
			 struct dsm_transport_counters *counters)
{
	const struct tcp *tcp = (const struct tcp *)transport;
	const struct peer *peer;

	if (host == DSM_NOBODY) {
		memset(counters, 0, sizeof(*counters));
		memcpy(counters->ends, dsm_opening_stranger_ends(tcp->opening),
		       sizeof(counters->ends));
		return;
	}
	peer = tcp->peer[host];
	*counters = peer->counters;
	if (peer->stage == UP) {
		counters->waiting = peer->outbox.nr;
		counters->credits = dsm_link_credits(&peer->link);
	}
}

static unsigned int tcp_port(const struct dsm_transport *transport)
{
	return dsm_opening_port(((const struct tcp *)transport)->opening);
}

/* All at once. */

static void free_peer(struct peer *peer)
{
	if (!peer)
		return;
	free(peer->inbox.frames);
	free(peer->outbox.frames);
	free(peer);
}

static struct peer *new_peer(struct tcp *tcp, unsigned int host)
{
	const struct dsm_transport_params *params = params_of(tcp);
	struct peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->tcp = tcp;
	peer->host = host;
	peer->session.fd = -1;
	ev_io_init(&peer->io, on_event, -1, 0);
	peer->io.data = peer;
	peer->inbox.size = params->credits;
	peer->outbox.size = params->queue;
	peer->inbox.frames = calloc(params->credits, sizeof(struct frame));
	peer->outbox.frames = calloc(params->queue, sizeof(struct frame));
	if (!peer->inbox.frames || !peer->outbox.frames) {
		free_peer(peer);
		return NULL;
	}
	return peer;
}

static void tcp_destroy(struct dsm_transport *transport)
{
	struct tcp *tcp = (struct tcp *)transport;
	unsigned int host;

	for (host = 0; host < DSM_MAX_HOSTS; host++) {
		if (tcp->peer[host] && tcp->peer[host]->stage != FREE)
			forget(tcp->peer[host]);
		free_peer(tcp->peer[host]);
	}
	dsm_opening_destroy(tcp->opening);
	ev_timer_stop(params_of(tcp)->loop, &tcp->soon);
	free(tcp);
}

static int create_peers(struct tcp *tcp)
{
	unsigned int host;

	for (host = 0; host < DSM_MAX_HOSTS; host++) {
		if (!params_of(tcp)->peer[host].used)
			continue;
		tcp->peer[host] = new_peer(tcp, host);
		if (!tcp->peer[host])
			return -ENOMEM;
	}
	return 0;
}

static int tcp_create(const struct dsm_transport_params *params,
		      struct dsm_transport **transport, char *text)
{
	struct tcp *tcp;
	int rc;

	snprintf(text, DSM_TRANSPORT_TEXT, "no memory");
	tcp = calloc(1, sizeof(*tcp));
	if (!tcp)
		return -ENOMEM;
	tcp->base.backend = &dsm_backend_tcp;
	tcp->base.params = params;
	ev_timer_init(&tcp->soon, on_soon, 0., 0.);
	tcp->soon.data = tcp;

	rc = create_peers(tcp);
	if (!rc)
		rc = dsm_opening_create(params, &opening_calls, tcp,
					&tcp->opening, text);
	if (rc) {
		tcp_destroy(&tcp->base);
		return rc;
	}
	*transport = &tcp->base;
	return 0;
}

const struct dsm_backend dsm_backend_tcp = {
	.create = tcp_create,
	.destroy = tcp_destroy,
	.port = tcp_port,
	.open = tcp_open,
	.expect = tcp_expect,
	.send = tcp_send,
	.room = tcp_room,
	.version = tcp_version,
	.hold = tcp_hold,
	.close = tcp_close,
	.fail = tcp_fail,
	.tick = tcp_tick,
	.poll = tcp_poll,
	.counters = tcp_counters,
};
