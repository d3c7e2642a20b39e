// SPDX-License-Identifier: GPL-2.0
/*
 * Connections over TCP with TLS.
 *
 * A connection goes through the stages below in their order.  One that was
 * accepted belongs to no peer until its certificate has proved one; the opener
 * knows whom it wants.  The acceptor says HELLO first, the opener when it has
 * that: so nobody sends anything to who might still refuse it.
 *
 * Where the end may be found: everywhere.  Who finds it in the loop calls
 * finish(), which tells the caller; who finds it in a call of the caller
 * writes it down (doom()), and the loop finishes it.  A connection's place is
 * used again, so after a callback the generation says whether it is still the
 * same; functions that call back return false if it is not.
 *
 * Receiving: the buffers of a peer are a ring; a message is read into the next
 * one and delivered from there.  Sending: messages wait in a ring, too; fill()
 * takes those that have credits into the bytes that go into one TLS record,
 * frames of the connection first.  Nothing is ever taken back from there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>
#include <openssl/err.h>

#include "backend.h"
#include "link.h"
#include "tls.h"

#define FRAME_BYTES	(DSM_WIRE_BYTES + DSM_PAGE_BYTES)
#define RECORD_BYTES	16384	/* the largest TLS record */
#define BUDGET		64	/* frames of one connection before others have a turn */
#define BACKLOG		32

enum stage {
	FREE,
	CONNECTING,	/* TCP */
	PROVING,	/* TLS handshake */
	GREETING,	/* HELLO */
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

struct conn {
	struct tcp *tcp;
	struct peer *peer;	/* NULL: not proved */
	enum stage stage;
	uint32_t generation;
	bool accepted;
	bool wants_write;	/* the socket is full, or not connected yet */
	bool write_failed;	/* nothing can be sent; what came may say why */
	int doom;		/* enum dsm_end, found outside of the loop; or 0 */
	uint64_t since;		/* opened, or began to close */
	int fd;
	SSL *ssl;
	ev_io io;
	struct dsm_tls_who who;
	char text[DSM_TRANSPORT_TEXT];	/* about doom */
};

struct peer {
	unsigned int host;
	struct conn *conn;	/* NULL: none */
	uint32_t epoch;		/* that we want, or, UP, that there is */
	bool expected;
	bool greeted;		/* our HELLO is out */
	bool closing;		/* close() was called */
	bool over;		/* the peer's close_notify has come */
	bool held;
	bool full;		/* room() was 0 */
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
	SSL_CTX *tls;
	int fd;
	ev_io io;
	ev_timer soon;		/* something is left to do without an event */
	unsigned int nr_strangers;
	unsigned int nr_conns;
	uint32_t delivered;	/* messages, ever */
	uint64_t stranger_ends[DSM_NR_ENDS];
	struct peer *peer[DSM_MAX_HOSTS];
	struct conn conn[];
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
	peer->conn = NULL;
	peer->greeted = false;
	peer->closing = false;
	peer->over = false;
	peer->held = false;
	peer->have = 0;
	peer->want = 0;
	peer->record_start = 0;
	peer->record_end = 0;
	peer->records = 0;
	ring_clear(&peer->inbox);
	ring_clear(&peer->outbox);
}

/* The end of a connection. */

static void forget(struct conn *conn)
{
	struct tcp *tcp = conn->tcp;

	ev_io_stop(params_of(tcp)->loop, &conn->io);
	SSL_free(conn->ssl);
	conn->ssl = NULL;
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
	if (conn->peer)
		clear_peer(conn->peer);
	else
		tcp->nr_strangers--;
	conn->peer = NULL;
	conn->stage = FREE;
	conn->doom = 0;
	conn->generation++;
}

/* Return: false, for "it is gone". */
static bool finish(struct conn *conn, int reason, const char *why)
{
	struct tcp *tcp = conn->tcp;
	const struct dsm_transport_params *params = params_of(tcp);
	unsigned int host = DSM_NOBODY;
	char text[DSM_TRANSPORT_TEXT];

	snprintf(text, sizeof(text), "%s", why);
	if (conn->peer) {
		host = conn->peer->host;
		conn->peer->counters.ends[reason]++;
	} else {
		tcp->stranger_ends[reason]++;
	}
	forget(conn);
	params->calls->end(params->context, host, (enum dsm_end)reason, text);
	return false;
}

static void later(struct tcp *tcp)
{
	if (!ev_is_active(&tcp->soon)) {
		ev_timer_set(&tcp->soon, 0., 0.);
		ev_timer_start(params_of(tcp)->loop, &tcp->soon);
	}
}

static void doom(struct conn *conn, int reason, const char *text)
{
	if (conn->doom)
		return;
	conn->doom = reason;
	snprintf(conn->text, sizeof(conn->text), "%s", text);
	later(conn->tcp);
}

static void watch(struct conn *conn)
{
	struct ev_loop *loop = params_of(conn->tcp)->loop;
	int events = conn->wants_write ? EV_WRITE : 0;

	if (conn->stage != CONNECTING && !(conn->peer && conn->peer->over))
		events |= EV_READ;
	if (ev_is_active(&conn->io) && conn->io.events == events)
		return;
	ev_io_stop(loop, &conn->io);
	if (events) {
		ev_io_set(&conn->io, conn->fd, events);
		ev_io_start(loop, &conn->io);
	}
}

/* Sending. */

static uint32_t frame_bytes(const struct frame *frame)
{
	return dsm_type_has_page(frame->head[1]) ? FRAME_BYTES : DSM_WIRE_BYTES;
}

static void put_hello(struct conn *conn)
{
	const struct dsm_transport_params *params = params_of(conn->tcp);
	struct peer *peer = conn->peer;
	struct dsm_hello hello = {
		.lowest = DSM_WIRE_VERSION,
		.highest = DSM_WIRE_VERSION,
		.host = params->self,
		.nr_hosts = params->nr_hosts,
		.epoch = peer->epoch,
	};

	memcpy(hello.vm, params->vm, sizeof(hello.vm));
	dsm_wire_put_hello(&hello, peer->record + peer->record_end);
	peer->record_end += DSM_WIRE_BYTES;
	peer->greeted = true;
}

/* Take what may go out into the next record.  Return: is there anything? */
static bool fill(struct conn *conn)
{
	struct peer *peer = conn->peer;
	struct dsm_link *link = &peer->link;
	const struct frame *frame;
	uint32_t bytes;

	peer->record_start = 0;
	peer->record_end = 0;
	if (conn->stage != UP)
		return false;
	while (peer->record_end + DSM_WIRE_BYTES <= RECORD_BYTES &&
	       dsm_link_next(link, now(conn->tcp),
			     peer->record + peer->record_end)) {
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
static void change_key(struct conn *conn)
{
	struct peer *peer = conn->peer;

	if (peer->records < params_of(conn->tcp)->rekey_records)
		return;
	if (SSL_in_init(conn->ssl))
		return;	/* a change that the peer asked for is under way */
	if (SSL_key_update(conn->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
		doom(conn, DSM_END_LOCAL, "no new key");
		return;
	}
	peer->records = 0;
	peer->counters.rekeys++;
}

static void write_failed(struct conn *conn, int result)
{
	char text[DSM_TRANSPORT_TEXT];
	int reason = dsm_tls_end(conn->ssl, result, text);

	conn->write_failed = true;
	doom(conn, reason, text);
}

/* As much as the socket takes.  Does not call back. */
static void flush(struct conn *conn)
{
	struct peer *peer = conn->peer;
	int n;

	conn->wants_write = false;
	while (!conn->write_failed && conn->stage != FAREWELL &&
	       (peer->record_start < peer->record_end || fill(conn))) {
		if (!peer->record_start)
			change_key(conn);
		ERR_clear_error();
		errno = 0;
		n = SSL_write(conn->ssl, peer->record + peer->record_start,
			      (int)(peer->record_end - peer->record_start));
		if (n > 0) {
			peer->record_start += (uint32_t)n;
			peer->counters.sent_bytes += (uint64_t)n;
			peer->records++;
			continue;
		}
		switch (SSL_get_error(conn->ssl, n)) {
		case SSL_ERROR_WANT_WRITE:
			conn->wants_write = true;
			break;
		case SSL_ERROR_WANT_READ:
			break;
		default:
			write_failed(conn, n);
		}
		break;
	}
}

static bool is_flushed(const struct peer *peer)
{
	return peer->record_start == peer->record_end && !peer->outbox.nr;
}

/* Messages that can be sent before the credits end, beyond those that wait. */
static uint32_t spare(const struct peer *peer)
{
	uint32_t credits = dsm_link_credits(&peer->link);

	return credits > peer->outbox.nr ? credits - peer->outbox.nr : 0;
}

/* The last one is for an answer. */
static uint32_t room_of(const struct peer *peer)
{
	uint32_t credits = spare(peer);

	return credits > 1 ? credits - 1 : 0;
}

static bool tell_room(struct conn *conn)
{
	const struct dsm_transport_params *params = params_of(conn->tcp);
	struct peer *peer = conn->peer;
	uint32_t generation = conn->generation;

	if (conn->stage != UP || peer->closing)
		return true;
	if (!room_of(peer)) {
		peer->full = true;
	} else if (peer->full) {
		peer->full = false;
		params->calls->room(params->context, peer->host);
	}
	return conn->generation == generation;
}

/* Both have said that this is the end. */
static bool ended_well(struct conn *conn)
{
	struct peer *peer = conn->peer;

	if (conn->stage != FAREWELL && !is_flushed(peer))
		return finish(conn, DSM_END_CUT,
			      "the peer closes before it has all messages");
	if (conn->stage != FAREWELL)
		SSL_shutdown(conn->ssl);
	return finish(conn, DSM_END_CLOSED, "");
}

static bool say_farewell(struct conn *conn)
{
	struct peer *peer = conn->peer;

	if (!peer->closing || conn->stage != UP || !is_flushed(peer) ||
	    conn->write_failed)
		return true;
	if (SSL_shutdown(conn->ssl) < 0 &&
	    SSL_get_error(conn->ssl, -1) == SSL_ERROR_WANT_WRITE) {
		conn->wants_write = true;
		return true;
	}
	conn->stage = FAREWELL;
	return true;
}

/* Receiving. */

static bool deliver(struct conn *conn)
{
	const struct dsm_transport_params *params = params_of(conn->tcp);
	uint32_t generation = conn->generation;
	struct peer *peer = conn->peer;
	struct frame *frame;
	struct dsm_msg msg;

	while (peer->inbox.nr && !peer->held) {
		frame = ring_at(&peer->inbox, 0);
		dsm_wire_get(frame->head, &msg);	/* was good when it came */
		conn->tcp->delivered++;
		params->calls->message(params->context, peer->host, &msg,
				       dsm_type_has_page(msg.type) ?
				       frame->page : NULL);
		if (conn->generation != generation)
			return false;
		ring_drop(&peer->inbox);
		dsm_link_consumed(&peer->link);
	}
	return true;
}

static bool come_up(struct conn *conn, uint32_t epoch)
{
	const struct dsm_transport_params *params = params_of(conn->tcp);
	uint32_t generation = conn->generation;
	struct peer *peer = conn->peer;

	dsm_link_init(&peer->link, epoch, params->credits, params->question_ns,
		      params->deadline_ns);
	peer->epoch = epoch;
	peer->full = true;	/* no credit yet */
	peer->counters.connections++;
	conn->stage = UP;
	params->calls->up(params->context, peer->host, epoch);
	return conn->generation == generation;
}

static bool got_hello(struct conn *conn)
{
	const struct dsm_transport_params *params = params_of(conn->tcp);
	struct peer *peer = conn->peer;
	struct dsm_hello ours = {
		.nr_hosts = params->nr_hosts,
		.epoch = peer->epoch,
	}, theirs = { 0 };
	uint32_t epoch = 0;
	int rc, reason;

	memcpy(ours.vm, params->vm, sizeof(ours.vm));
	if (!peer->greeted)
		put_hello(conn);
	flush(conn);	/* what we said lets the peer find the same mistake */
	rc = dsm_wire_get_hello(peer->head, &theirs);
	reason = rc < 0 ? dsm_link_hello_end(rc) :
		 dsm_link_agree(&ours, &theirs, peer->host, &epoch);
	if (reason) {
		char text[DSM_TRANSPORT_TEXT];

		snprintf(text, sizeof(text),
			 rc < 0 ? "%s" : "%s: host %u of %u",
			 dsm_error_name(rc < 0 ? (unsigned int)-rc : 0),
			 theirs.host, theirs.nr_hosts);
		SSL_shutdown(conn->ssl);
		return finish(conn, reason, text);
	}
	return come_up(conn, epoch);
}

static bool got_link_frame(struct conn *conn)
{
	const struct dsm_transport_params *params = params_of(conn->tcp);
	uint32_t generation = conn->generation;
	struct peer *peer = conn->peer;
	char text[DSM_TRANSPORT_TEXT] = "";
	uint64_t round_trip;
	uint8_t why = 0;
	int reason;

	reason = dsm_link_frame(&peer->link, peer->head, now(conn->tcp),
				&round_trip, &why);
	if (reason == DSM_END_FAILED)
		snprintf(text, sizeof(text), "reason %u", why);
	if (reason)
		return finish(conn, reason, text);
	if (round_trip)
		params->calls->round_trip(params->context, peer->host,
					  round_trip);
	return conn->generation == generation;
}

/* 32 bytes of a message.  Has it room, and how much follows? */
static bool got_head(struct conn *conn)
{
	struct peer *peer = conn->peer;
	struct dsm_msg msg;
	int rc = dsm_wire_get(peer->head, &msg);
	int reason = 0;

	if (rc < 0)
		return finish(conn, DSM_END_FRAME,
			      dsm_error_name((unsigned int)-rc));
	if (msg.epoch != peer->link.epoch)
		reason = DSM_END_EPOCH;
	else
		reason = dsm_link_received(&peer->link);
	if (reason)
		return finish(conn, reason, dsm_type_name(msg.type));
	peer->want = (uint32_t)rc;
	memcpy(ring_at(&peer->inbox, peer->inbox.nr)->head, peer->head,
	       DSM_WIRE_BYTES);
	return true;
}

static bool got_message(struct conn *conn)
{
	struct peer *peer = conn->peer;

	peer->counters.received++;
	peer->counters.received_pages += peer->want != 0;
	peer->inbox.nr++;
	peer->want = 0;
	peer->have = 0;
	return deliver(conn);
}

/* Some bytes have been read, and peer->have counts them. */
static bool got_bytes(struct conn *conn)
{
	struct peer *peer = conn->peer;

	if (peer->have == DSM_WIRE_BYTES) {
		if (conn->stage == GREETING) {
			peer->have = 0;
			return got_hello(conn);
		}
		if (peer->head[0] == DSM_LINK_MARK) {
			peer->have = 0;
			return got_link_frame(conn);
		}
		if (!got_head(conn))
			return false;
	}
	if (peer->have >= DSM_WIRE_BYTES &&
	    peer->have == DSM_WIRE_BYTES + peer->want)
		return got_message(conn);
	return true;
}

static int read_some(struct conn *conn)
{
	struct peer *peer = conn->peer;
	uint8_t *to = peer->head + peer->have;
	uint32_t size = DSM_WIRE_BYTES - peer->have;

	if (peer->have >= DSM_WIRE_BYTES) {
		to = ring_at(&peer->inbox, peer->inbox.nr)->page +
		     (peer->have - DSM_WIRE_BYTES);
		size = DSM_WIRE_BYTES + peer->want - peer->have;
	}
	ERR_clear_error();
	errno = 0;
	return SSL_read(conn->ssl, to, (int)size);
}

/* The bytes have come to an end, or make no sense. */
static bool read_failed(struct conn *conn, int result)
{
	struct peer *peer = conn->peer;
	char text[DSM_TRANSPORT_TEXT];
	int reason = dsm_tls_end(conn->ssl, result, text);

	if (reason != DSM_END_CLOSED)
		return finish(conn, reason, text);
	if (conn->stage == GREETING)
		return finish(conn, DSM_END_REFUSED, "closed before HELLO");
	if (peer->have)
		return finish(conn, DSM_END_CUT, "closed within a message");
	peer->over = true;
	if (peer->inbox.nr)
		return true;	/* held: ends after the last of them */
	return ended_well(conn);
}

static bool receive(struct conn *conn)
{
	struct peer *peer = conn->peer;
	unsigned int budget;
	int n;

	if (!deliver(conn))
		return false;
	if (peer->over)
		return peer->inbox.nr ? true : ended_well(conn);
	for (budget = 2 * BUDGET; budget && !peer->over; budget--) {
		n = read_some(conn);
		if (n > 0) {
			peer->counters.received_bytes += (uint64_t)n;
			peer->have += (uint32_t)n;
			if (!got_bytes(conn))
				return false;
			continue;
		}
		switch (SSL_get_error(conn->ssl, n)) {
		case SSL_ERROR_WANT_WRITE:
			conn->wants_write = true;
			return true;
		case SSL_ERROR_WANT_READ:
			return true;
		default:
			return read_failed(conn, n);
		}
	}
	if (SSL_pending(conn->ssl))
		later(conn->tcp);	/* the socket will not say so */
	return true;
}

/* Opening. */

static bool connected(struct conn *conn)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	if (error)
		return finish(conn, DSM_END_UNREACHABLE, strerror(error));
	conn->stage = PROVING;
	conn->wants_write = false;
	return true;
}

/* The certificate was good: conn->who.host is at the other end. */
static bool proved(struct conn *conn)
{
	struct tcp *tcp = conn->tcp;
	struct peer *peer = tcp->peer[conn->who.host];
	char text[DSM_TRANSPORT_TEXT];

	if (conn->accepted) {
		if (!peer->expected || peer->conn) {
			snprintf(text, sizeof(text), "host %u %s", peer->host,
				 peer->conn ? "is connected" :
				 "is not expected");
			SSL_shutdown(conn->ssl);
			return finish(conn, DSM_END_UNEXPECTED, text);
		}
		peer->expected = false;
		peer->conn = conn;
		conn->peer = peer;
		tcp->nr_strangers--;
	}
	conn->stage = GREETING;
	if (conn->accepted)
		put_hello(conn);
	return true;
}

static bool prove(struct conn *conn)
{
	char text[DSM_TRANSPORT_TEXT];
	int rc;

	ERR_clear_error();
	errno = 0;
	rc = SSL_do_handshake(conn->ssl);
	if (rc == 1)
		return proved(conn);
	conn->wants_write = false;
	switch (SSL_get_error(conn->ssl, rc)) {
	case SSL_ERROR_WANT_WRITE:
		conn->wants_write = true;
		return true;
	case SSL_ERROR_WANT_READ:
		return true;
	default:
		rc = dsm_tls_end(conn->ssl, rc, text);
		return finish(conn, rc == DSM_END_CLOSED ? DSM_END_CUT : rc,
			      text);
	}
}

/* What can be done now.  The connection may be gone afterwards. */
static void work(struct conn *conn)
{
	if (conn->stage == CONNECTING && !conn->doom && !connected(conn))
		return;
	if (conn->stage == PROVING && !conn->doom && !prove(conn))
		return;
	if (conn->stage >= GREETING) {
		/* What has come says more than a write that failed. */
		if (!receive(conn))
			return;
		flush(conn);
		if (!tell_room(conn) || !say_farewell(conn))
			return;
	}
	if (conn->doom) {
		finish(conn, conn->doom, conn->text);
		return;
	}
	watch(conn);
}

static void on_event(struct ev_loop *loop, ev_io *io, int events)
{
	struct conn *conn = io->data;

	(void)loop;
	(void)events;
	work(conn);
}

static void on_soon(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct tcp *tcp = timer->data;
	unsigned int i;

	(void)loop;
	(void)events;
	for (i = 0; i < tcp->nr_conns; i++) {
		struct conn *conn = &tcp->conn[i];

		if (conn->stage != FREE &&
		    (conn->doom || conn->stage >= GREETING))
			work(conn);
	}
}

static struct conn *new_conn(struct tcp *tcp, int fd, bool accepted)
{
	unsigned int i;

	for (i = 0; tcp->conn[i].stage != FREE; i++)
		;	/* there are enough for all strangers and peers */
	tcp->conn[i].fd = fd;
	tcp->conn[i].accepted = accepted;
	tcp->conn[i].wants_write = false;
	tcp->conn[i].write_failed = false;
	tcp->conn[i].doom = 0;
	tcp->conn[i].since = now(tcp);
	tcp->conn[i].who.params = params_of(tcp);
	tcp->conn[i].who.wanted = DSM_NOBODY;
	return &tcp->conn[i];
}

static bool is_same_address(const struct sockaddr_storage *a,
			    const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->ss_family == AF_INET6 &&
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

static bool is_peers_address(const struct tcp *tcp,
			     const struct sockaddr_storage *address)
{
	unsigned int host;

	for (host = 0; host < DSM_MAX_HOSTS; host++)
		if (tcp->peer[host] &&
		    is_same_address(address,
				    &params_of(tcp)->peer[host].address))
			return true;
	return false;
}

static void say_address(const struct sockaddr_storage *address, char *text,
			size_t size)
{
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;
	char name[INET6_ADDRSTRLEN] = "?";

	inet_ntop(address->ss_family, address->ss_family == AF_INET ?
		  (const void *)&four->sin_addr : (const void *)&six->sin6_addr,
		  name, sizeof(name));
	snprintf(text, size, "from %s", name);
}

static void no_delay(int fd)
{
	int one = 1;

	/* Slower without, not wrong. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void turn_away(struct tcp *tcp, int fd, enum dsm_end reason,
		      const struct sockaddr_storage *address)
{
	const struct dsm_transport_params *params = params_of(tcp);
	char text[DSM_TRANSPORT_TEXT];

	close(fd);
	say_address(address, text, sizeof(text));
	tcp->stranger_ends[reason]++;
	params->calls->end(params->context, DSM_NOBODY, reason, text);
}

static void let_in(struct tcp *tcp, int fd,
		   const struct sockaddr_storage *address)
{
	struct conn *conn;

	if (!is_peers_address(tcp, address)) {
		turn_away(tcp, fd, DSM_END_STRANGER, address);
		return;
	}
	if (tcp->nr_strangers == params_of(tcp)->strangers) {
		turn_away(tcp, fd, DSM_END_CROWD, address);
		return;
	}
	conn = new_conn(tcp, fd, true);
	conn->ssl = dsm_tls_session(tcp->tls, fd, true, &conn->who);
	if (!conn->ssl) {
		turn_away(tcp, fd, DSM_END_LOCAL, address);
		return;
	}
	no_delay(fd);
	tcp->nr_strangers++;
	conn->stage = PROVING;
	work(conn);
}

static void on_accept(struct ev_loop *loop, ev_io *io, int events)
{
	struct tcp *tcp = io->data;
	struct sockaddr_storage address;
	unsigned int budget;
	socklen_t size;
	int fd;

	(void)events;
	for (budget = BUDGET; budget; budget--) {
		size = sizeof(address);
		fd = accept4(io->fd, (struct sockaddr *)&address, &size,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			/* Who waits there stays; look again at the next tick. */
			if (errno == EMFILE || errno == ENFILE ||
			    errno == ENOBUFS || errno == ENOMEM)
				ev_io_stop(loop, io);
			return;
		}
		let_in(tcp, fd, &address);
	}
}

static socklen_t address_size(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) :
					       sizeof(struct sockaddr_in6);
}

/* From our own address, so that the peer knows it. */
static int bind_address(int fd, const struct sockaddr_storage *own)
{
	struct sockaddr_storage address = *own;

	if (address.ss_family == AF_INET)
		((struct sockaddr_in *)&address)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&address)->sin6_port = 0;
	return bind(fd, (const struct sockaddr *)&address,
		    address_size(&address)) ? -errno : 0;
}

static int begin_connect(struct conn *conn,
			 const struct dsm_transport_params *params,
			 const struct sockaddr_storage *address)
{
	int rc;

	conn->fd = socket(address->ss_family,
			  SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return -errno;
	if (params->address.ss_family == address->ss_family) {
		rc = bind_address(conn->fd, &params->address);
		if (rc)
			return rc;
	}
	no_delay(conn->fd);
	if (connect(conn->fd, (const struct sockaddr *)address,
		    address_size(address)) && errno != EINPROGRESS)
		return -errno;
	return 0;
}

static int tcp_open(struct dsm_transport *transport, unsigned int host,
		    uint32_t epoch)
{
	struct tcp *tcp = (struct tcp *)transport;
	struct peer *peer = tcp->peer[host];
	struct conn *conn;
	int rc;

	if (peer->conn || peer->expected)
		return -EISCONN;
	conn = new_conn(tcp, -1, false);
	conn->stage = CONNECTING;
	conn->peer = peer;
	conn->who.wanted = host;
	conn->wants_write = true;
	peer->conn = conn;
	peer->epoch = epoch;

	rc = begin_connect(conn, params_of(tcp),
			   &params_of(tcp)->peer[host].address);
	if (rc) {
		doom(conn, DSM_END_UNREACHABLE, strerror(-rc));
		return 0;
	}
	conn->ssl = dsm_tls_session(tcp->tls, conn->fd, false, &conn->who);
	if (!conn->ssl) {
		doom(conn, DSM_END_LOCAL, "no memory");
		return 0;
	}
	watch(conn);
	return 0;
}

static int tcp_expect(struct dsm_transport *transport, unsigned int host,
		      uint32_t epoch)
{
	struct peer *peer = ((struct tcp *)transport)->peer[host];

	if (peer->conn || peer->expected)
		return -EISCONN;
	peer->expected = true;
	peer->epoch = epoch;
	return 0;
}

/* What the caller asks for. */

static struct conn *conn_up(const struct dsm_transport *transport,
			    unsigned int host)
{
	struct conn *conn = ((const struct tcp *)transport)->peer[host]->conn;

	return conn && conn->stage == UP ? conn : NULL;
}

static int tcp_send(struct dsm_transport *transport, unsigned int host,
		    const struct dsm_msg *msg, const uint8_t *page)
{
	struct conn *conn = conn_up(transport, host);
	struct frame *frame;
	struct peer *peer;

	if (!conn || conn->doom || conn->peer->closing)
		return -ENOTCONN;
	peer = conn->peer;
	if (msg->epoch != peer->epoch)
		return -EINVAL;
	if (peer->outbox.nr == peer->outbox.size) {
		doom(conn, DSM_END_QUEUE, dsm_type_name(msg->type));
		return -ENOBUFS;
	}
	peer->counters.stalls += !spare(peer);
	frame = ring_at(&peer->outbox, peer->outbox.nr++);
	dsm_wire_put(msg, frame->head);
	if (page)
		memcpy(frame->page, page, DSM_PAGE_BYTES);
	peer->counters.sent++;
	peer->counters.sent_pages += page != NULL;
	if (!room_of(peer))
		peer->full = true;
	if (!conn->wants_write) {
		flush(conn);
		watch(conn);
	}
	return 0;
}

static unsigned int tcp_room(const struct dsm_transport *transport,
			     unsigned int host)
{
	const struct conn *conn = conn_up(transport, host);

	return conn && !conn->doom && !conn->peer->closing ?
	       room_of(conn->peer) : 0;
}

static int tcp_hold(struct dsm_transport *transport, unsigned int host,
		    bool hold)
{
	struct tcp *tcp = (struct tcp *)transport;
	struct peer *peer = tcp->peer[host];

	if (!peer->conn || peer->conn->stage < UP)
		return -ENOTCONN;
	peer->held = hold;
	if (!hold)
		later(tcp);
	return 0;
}

static int tcp_close(struct dsm_transport *transport, unsigned int host)
{
	struct tcp *tcp = (struct tcp *)transport;
	struct peer *peer = tcp->peer[host];

	if (peer->expected) {
		peer->expected = false;
		return 0;
	}
	if (!peer->conn)
		return -ENOTCONN;
	if (peer->conn->stage < UP) {
		forget(peer->conn);
		return 0;
	}
	if (peer->closing)
		return -ENOTCONN;
	peer->closing = true;
	peer->conn->since = now(tcp);
	later(tcp);
	return 0;
}

static int tcp_fail(struct dsm_transport *transport, unsigned int host,
		    uint8_t reason)
{
	struct conn *conn = conn_up(transport, host);
	struct peer *peer;

	if (!conn)
		return -ENOTCONN;
	peer = conn->peer;
	ring_clear(&peer->outbox);
	flush(conn);	/* a frame that was begun has to end */
	if (peer->record_start == peer->record_end && !conn->write_failed) {
		uint8_t bytes[DSM_WIRE_BYTES];

		dsm_link_put_fail(&peer->link, reason, bytes);
		ERR_clear_error();
		if (SSL_write(conn->ssl, bytes, DSM_WIRE_BYTES) > 0)
			SSL_shutdown(conn->ssl);
	}
	forget(conn);
	return 0;
}

static void tick_conn(struct conn *conn, uint64_t time)
{
	const struct dsm_transport_params *params = params_of(conn->tcp);
	bool waits = conn->stage != UP || conn->peer->closing;
	int reason;

	if (waits && time - conn->since >= params->opening_ns) {
		finish(conn, DSM_END_SLOW, "");
		return;
	}
	if (conn->stage < UP)
		return;
	reason = dsm_link_tick(&conn->peer->link, time);
	if (reason && conn->stage == UP) {
		finish(conn, reason, "");
		return;
	}
	work(conn);
}

static void tcp_tick(struct dsm_transport *transport)
{
	struct tcp *tcp = (struct tcp *)transport;
	uint64_t time = now(tcp);
	unsigned int i;

	ev_io_start(params_of(tcp)->loop, &tcp->io);
	for (i = 0; i < tcp->nr_conns; i++)
		if (tcp->conn[i].stage != FREE)
			tick_conn(&tcp->conn[i], time);
}

static unsigned int tcp_poll(struct dsm_transport *transport)
{
	struct tcp *tcp = (struct tcp *)transport;
	uint32_t before = tcp->delivered;
	unsigned int i;

	for (i = 0; i < tcp->nr_conns; i++)
		if (tcp->conn[i].stage == UP)
			work(&tcp->conn[i]);
	return tcp->delivered - before;
}

static void tcp_counters(const struct dsm_transport *transport,
			 unsigned int host,
			 struct dsm_transport_counters *counters)
{
	const struct tcp *tcp = (const struct tcp *)transport;
	const struct conn *conn;

	if (host == DSM_NOBODY) {
		memset(counters, 0, sizeof(*counters));
		memcpy(counters->ends, tcp->stranger_ends,
		       sizeof(counters->ends));
		return;
	}
	*counters = tcp->peer[host]->counters;
	conn = conn_up(transport, host);
	if (conn) {
		counters->waiting = conn->peer->outbox.nr;
		counters->credits = dsm_link_credits(&conn->peer->link);
	}
}

static unsigned int tcp_port(const struct dsm_transport *transport)
{
	const struct tcp *tcp = (const struct tcp *)transport;
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	if (getsockname(tcp->fd, (struct sockaddr *)&address, &size))
		return 0;
	return ntohs(address.ss_family == AF_INET ?
		     ((const struct sockaddr_in *)&address)->sin_port :
		     ((const struct sockaddr_in6 *)&address)->sin6_port);
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

static struct peer *new_peer(const struct dsm_transport_params *params,
			     unsigned int host)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->host = host;
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
	unsigned int i;

	for (i = 0; i < tcp->nr_conns; i++)
		if (tcp->conn[i].stage != FREE)
			forget(&tcp->conn[i]);
	for (i = 0; i < DSM_MAX_HOSTS; i++)
		free_peer(tcp->peer[i]);
	if (tcp->fd >= 0) {
		ev_io_stop(params_of(tcp)->loop, &tcp->io);
		close(tcp->fd);
	}
	ev_timer_stop(params_of(tcp)->loop, &tcp->soon);
	SSL_CTX_free(tcp->tls);
	free(tcp);
}

static int begin_listen(struct tcp *tcp, char *text)
{
	const struct sockaddr_storage *address = &params_of(tcp)->address;
	const char *what = "socket()";
	int one = 1, rc;

	tcp->fd = socket(address->ss_family,
			 SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (tcp->fd < 0)
		goto failed;
	what = "setsockopt()";
	if (setsockopt(tcp->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		goto failed;
	what = "bind()";
	if (bind(tcp->fd, (const struct sockaddr *)address,
		 address_size(address)))
		goto failed;
	what = "listen()";
	if (listen(tcp->fd, BACKLOG))
		goto failed;
	ev_io_init(&tcp->io, on_accept, tcp->fd, EV_READ);
	tcp->io.data = tcp;
	ev_io_start(params_of(tcp)->loop, &tcp->io);
	return 0;
failed:
	rc = -errno;
	snprintf(text, DSM_TRANSPORT_TEXT, "%s: %s", what, strerror(-rc));
	return rc;
}

static int create_peers(struct tcp *tcp)
{
	unsigned int host;

	for (host = 0; host < DSM_MAX_HOSTS; host++) {
		if (!params_of(tcp)->peer[host].used)
			continue;
		tcp->peer[host] = new_peer(params_of(tcp), host);
		if (!tcp->peer[host])
			return -ENOMEM;
	}
	return 0;
}

static int tcp_create(const struct dsm_transport_params *params,
		      struct dsm_transport **transport, char *text)
{
	unsigned int i, nr_conns = params->strangers + DSM_MAX_HOSTS;
	struct tcp *tcp;
	int rc;

	snprintf(text, DSM_TRANSPORT_TEXT, "no memory");
	tcp = calloc(1, sizeof(*tcp) + nr_conns * sizeof(tcp->conn[0]));
	if (!tcp)
		return -ENOMEM;
	tcp->base.backend = &dsm_backend_tcp;
	tcp->base.params = params;
	tcp->fd = -1;
	tcp->nr_conns = nr_conns;
	ev_timer_init(&tcp->soon, on_soon, 0., 0.);
	tcp->soon.data = tcp;
	for (i = 0; i < nr_conns; i++) {
		tcp->conn[i].tcp = tcp;
		tcp->conn[i].fd = -1;
		ev_io_init(&tcp->conn[i].io, on_event, -1, 0);
		tcp->conn[i].io.data = &tcp->conn[i];
	}

	rc = create_peers(tcp);
	if (!rc)
		rc = dsm_tls_create(params, &tcp->tls, text);
	if (!rc)
		rc = begin_listen(tcp, text);
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
	.hold = tcp_hold,
	.close = tcp_close,
	.fail = tcp_fail,
	.tick = tcp_tick,
	.poll = tcp_poll,
	.counters = tcp_counters,
};
