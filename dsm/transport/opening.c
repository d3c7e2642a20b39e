// SPDX-License-Identifier: GPL-2.0
/*
 * Accept, connect, TLS, HELLO.
 *
 * An attempt goes through the stages below in their order.  Its end is found in
 * the loop (finish()), or in dsm_opening_connect(), which writes it down
 * (doom()) for the loop.  The place of an attempt is used again: functions that
 * return false say that the attempt is gone.
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

#include "bucket.h"
#include "expiry.h"
#include "link.h"
#include "opening.h"

#define BUDGET	64	/* connections that are accepted before others have a turn */
#define BACKLOG	32

/*
 * Handshakes that end without a peer: an address may have so many at once, and
 * one more each HANDSHAKE_NS.  One costs this thread about 2 ms, and it is the
 * thread that serves faults.
 */
#define HANDSHAKES	16
#define HANDSHAKE_NS	100000000ull
/* Likewise for what is said of those who were turned away. */
#define LINES		8
#define LINE_NS		1000000000ull

enum stage {
	FREE,
	CONNECTING,	/* TCP */
	PROVING,	/* TLS handshake */
	GREETING,	/* HELLO */
};

enum state {
	IDLE,
	EXPECTED,
	ON_ITS_WAY,
	TAKEN,
};

struct attempt {
	struct dsm_opening *opening;
	enum stage stage;
	bool wants_write;	/* the socket is full, or not connected yet */
	int doom;		/* enum dsm_end, found outside of the loop; or 0 */
	uint64_t since;
	struct sockaddr_storage from;	/* if it was accepted */
	ev_io io;
	struct dsm_session session;	/* host: DSM_NOBODY until it is proved */
	uint32_t have, sent;	/* bytes of HELLO: theirs, ours */
	bool greets;		/* ours is there */
	uint8_t theirs[DSM_WIRE_BYTES], ours[DSM_WIRE_BYTES];
	char text[DSM_TRANSPORT_TEXT];	/* about doom */
};

struct dsm_opening {
	const struct dsm_transport_params *params;
	const struct dsm_opening_calls *calls;
	void *owner;
	SSL_CTX *tls;
	int fd;
	ev_io io;
	ev_timer soon;		/* somebody is doomed */
	unsigned int nr_strangers;
	uint64_t stranger_ends[DSM_NR_ENDS];
	struct dsm_bucket lines;
	uint64_t untold;	/* ends of strangers, since the last that was told */
	struct {
		enum state state;
		uint32_t epoch;		/* that we want */
		uint32_t last, before;	/* that were agreed on; 0: none */
		struct dsm_bucket handshakes;	/* from its address */
		struct dsm_bucket *paid;	/* who came took his token from it */
	} host[DSM_MAX_HOSTS];
	unsigned int nr_attempts;
	struct attempt attempt[];
};

static uint64_t now(const struct dsm_opening *opening)
{
	return opening->params->now(opening->params->context);
}

static void init_attempt(struct attempt *attempt)
{
	attempt->stage = FREE;
	attempt->doom = 0;
	attempt->session.fd = -1;
	attempt->session.ssl = NULL;
	attempt->session.host = DSM_NOBODY;
}

/* The place is free, and the host idle; what the session has is not touched. */
static void leave(struct attempt *attempt)
{
	struct dsm_opening *opening = attempt->opening;
	unsigned int host = attempt->session.host;

	ev_io_stop(opening->params->loop, &attempt->io);
	if (attempt->session.accepted)
		opening->nr_strangers--;
	else
		opening->host[host].state = IDLE;
	init_attempt(attempt);
}

static void forget(struct attempt *attempt)
{
	struct dsm_session session = attempt->session;

	leave(attempt);
	dsm_session_close(&session);
}

void dsm_opening_turned_away(struct dsm_opening *opening, int reason,
			     const char *why)
{
	char text[DSM_TRANSPORT_TEXT];

	opening->stranger_ends[reason]++;
	if (!dsm_bucket_take(&opening->lines, now(opening))) {
		opening->untold++;
		return;
	}
	if (opening->untold)
		snprintf(text, sizeof(text), "%.160s; and %llu more before",
			 why, (unsigned long long)opening->untold);
	else
		snprintf(text, sizeof(text), "%s", why);
	opening->untold = 0;
	opening->calls->ended(opening->owner, DSM_NOBODY, reason, text);
}

/* Return: false, for "it is gone". */
static bool finish(struct attempt *attempt, int reason, const char *why)
{
	struct dsm_opening *opening = attempt->opening;
	unsigned int host = attempt->session.host;
	char text[DSM_TRANSPORT_TEXT];

	snprintf(text, sizeof(text), "%s", why);
	forget(attempt);
	if (host == DSM_NOBODY)
		dsm_opening_turned_away(opening, reason, text);
	else
		opening->calls->ended(opening->owner, host, reason, text);
	return false;
}

static void doom(struct attempt *attempt, int reason, const char *text)
{
	struct dsm_opening *opening = attempt->opening;

	attempt->doom = reason;
	snprintf(attempt->text, sizeof(attempt->text), "%s", text);
	if (!ev_is_active(&opening->soon)) {
		ev_timer_set(&opening->soon, 0., 0.);
		ev_timer_start(opening->params->loop, &opening->soon);
	}
}

static void watch(struct attempt *attempt)
{
	struct ev_loop *loop = attempt->opening->params->loop;
	int events = attempt->wants_write ? EV_WRITE : 0;

	if (attempt->stage != CONNECTING)
		events |= EV_READ;
	if (ev_is_active(&attempt->io) && attempt->io.events == events)
		return;
	ev_io_stop(loop, &attempt->io);
	if (events) {
		ev_io_set(&attempt->io, attempt->session.fd, events);
		ev_io_start(loop, &attempt->io);
	}
}

/* TCP. */

static bool connected(struct attempt *attempt)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (getsockopt(attempt->session.fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	if (error)
		return finish(attempt, DSM_END_UNREACHABLE, strerror(error));
	attempt->stage = PROVING;
	attempt->wants_write = false;
	return true;
}

/* TLS. */

static void put_hello(struct attempt *attempt)
{
	const struct dsm_opening *opening = attempt->opening;
	const struct dsm_transport_params *params = opening->params;
	struct dsm_hello hello = {
		.lowest = DSM_WIRE_LOWEST,
		.highest = DSM_WIRE_HIGHEST,
		.host = params->self,
		.nr_hosts = params->nr_hosts,
		.epoch = opening->host[attempt->session.host].epoch,
	};

	memcpy(hello.vm, params->vm, sizeof(hello.vm));
	dsm_wire_put_hello(&hello, attempt->ours);
	attempt->greets = true;
}

static const char *why_not(enum state state)
{
	switch (state) {
	case EXPECTED:
		return NULL;
	case IDLE:
		return "is not expected";
	default:
		return "is connected";
	}
}

/* The certificate was good: who.host is at the other end. */
static bool proved(struct attempt *attempt)
{
	struct dsm_opening *opening = attempt->opening;
	struct dsm_session *session = &attempt->session;
	unsigned int host = session->who.host;
	char text[DSM_TRANSPORT_TEXT];
	const char *why;

	if (host >= DSM_MAX_HOSTS)	/* never without verify(): no resumption */
		return finish(attempt, DSM_END_NO_CERTIFICATE, "nobody is proved");
	if (session->accepted) {
		why = why_not(opening->host[host].state);
		if (why) {
			snprintf(text, sizeof(text), "host %u %s", host, why);
			SSL_shutdown(session->ssl);
			return finish(attempt, DSM_END_UNEXPECTED, text);
		}
		session->host = host;
	}
	session->expires = dsm_expiry_of_peer(session->ssl);
	attempt->stage = GREETING;
	if (session->accepted)
		put_hello(attempt);
	return true;
}

static bool prove(struct attempt *attempt)
{
	SSL *ssl = attempt->session.ssl;
	char text[DSM_TRANSPORT_TEXT];
	int rc;

	ERR_clear_error();
	errno = 0;
	rc = SSL_do_handshake(ssl);
	if (rc == 1)
		return proved(attempt);
	attempt->wants_write = false;
	switch (SSL_get_error(ssl, rc)) {
	case SSL_ERROR_WANT_WRITE:
		attempt->wants_write = true;
		return true;
	case SSL_ERROR_WANT_READ:
		return true;
	default:
		rc = dsm_tls_end(ssl, rc, text);
		return finish(attempt, rc == DSM_END_CLOSED ? DSM_END_CUT : rc,
			      text);
	}
}

/* HELLO. */

static bool read_hello(struct attempt *attempt)
{
	SSL *ssl = attempt->session.ssl;
	char text[DSM_TRANSPORT_TEXT];
	int n;

	while (attempt->have < DSM_WIRE_BYTES) {
		ERR_clear_error();
		errno = 0;
		n = SSL_read(ssl, attempt->theirs + attempt->have,
			     (int)(DSM_WIRE_BYTES - attempt->have));
		if (n > 0) {
			attempt->have += (uint32_t)n;
			continue;
		}
		switch (SSL_get_error(ssl, n)) {
		case SSL_ERROR_WANT_WRITE:
			attempt->wants_write = true;
			return true;
		case SSL_ERROR_WANT_READ:
			return true;
		default:
			n = dsm_tls_end(ssl, n, text);
			if (n == DSM_END_CLOSED)
				return finish(attempt, DSM_END_REFUSED,
					      "closed before HELLO");
			return finish(attempt, n, text);
		}
	}
	if (!attempt->greets)
		put_hello(attempt);
	return true;
}

static bool write_hello(struct attempt *attempt)
{
	SSL *ssl = attempt->session.ssl;
	char text[DSM_TRANSPORT_TEXT];
	int n;

	while (attempt->greets && attempt->sent < DSM_WIRE_BYTES) {
		ERR_clear_error();
		errno = 0;
		n = SSL_write(ssl, attempt->ours + attempt->sent,
			      (int)(DSM_WIRE_BYTES - attempt->sent));
		if (n > 0) {
			attempt->sent += (uint32_t)n;
			continue;
		}
		switch (SSL_get_error(ssl, n)) {
		case SSL_ERROR_WANT_WRITE:
			attempt->wants_write = true;
			return true;
		case SSL_ERROR_WANT_READ:
			return true;
		default:
			n = dsm_tls_end(ssl, n, text);
			return finish(attempt, n, text);
		}
	}
	return true;
}

/* Addresses. */

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

/* The first host with that address, whatever the port; or DSM_NOBODY. */
static unsigned int host_at(const struct dsm_opening *opening,
			    const struct sockaddr_storage *address)
{
	unsigned int host;

	for (host = 0; host < DSM_MAX_HOSTS; host++)
		if (opening->params->peer[host].used &&
		    is_same_address(address,
				    &opening->params->peer[host].address))
			return host;
	return DSM_NOBODY;
}

bool dsm_opening_is_peers(const struct dsm_opening *opening,
			  const struct sockaddr_storage *address)
{
	return host_at(opening, address) != DSM_NOBODY;
}

/* Return: NULL if no peer has that address. */
static struct dsm_bucket *handshakes_of(struct dsm_opening *opening,
					const struct sockaddr_storage *address)
{
	unsigned int host = host_at(opening, address);

	return host == DSM_NOBODY ? NULL : &opening->host[host].handshakes;
}

void dsm_opening_say_address(const struct sockaddr_storage *address, char *text,
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

/* Others who came as this host, and have not said all: one has, and is it. */
static void send_away_others(struct attempt *attempt)
{
	struct dsm_opening *opening = attempt->opening;
	struct attempt *other;
	unsigned int i;

	for (i = 0; i < opening->nr_attempts; i++) {
		other = &opening->attempt[i];
		if (other == attempt || other->stage == FREE || other->doom ||
		    other->session.host != attempt->session.host)
			continue;
		/* An end of the host is one of its connection from now on. */
		other->session.host = DSM_NOBODY;
		doom(other, DSM_END_UNEXPECTED, "another one is connected");
	}
}

static bool hand_over(struct attempt *attempt, uint32_t epoch)
{
	struct dsm_opening *opening = attempt->opening;
	struct dsm_session session = attempt->session;

	session.epoch = epoch;
	send_away_others(attempt);
	if (session.accepted) {
		opening->host[session.host].paid = handshakes_of(opening, &attempt->from);
		dsm_bucket_put_back(opening->host[session.host].paid);
	}
	leave(attempt);
	opening->host[session.host].state = TAKEN;
	opening->host[session.host].before = opening->host[session.host].last;
	opening->host[session.host].last = epoch;
	opening->calls->agreed(opening->owner, &session);
	return false;
}

static bool agree(struct attempt *attempt)
{
	const struct dsm_opening *opening = attempt->opening;
	const struct dsm_transport_params *params = opening->params;
	unsigned int host = attempt->session.host;
	struct dsm_hello theirs = { 0 }, ours = {
		.nr_hosts = params->nr_hosts,
		.epoch = opening->host[host].epoch,
	};
	char text[DSM_TRANSPORT_TEXT];
	uint32_t epoch = 0;
	int rc, reason;

	memcpy(ours.vm, params->vm, sizeof(ours.vm));
	rc = dsm_wire_get_hello(attempt->theirs, &theirs);
	attempt->session.version = rc < 0 ? 0 : (unsigned int)rc;
	reason = rc < 0 ? dsm_link_hello_end(rc) :
		 dsm_link_agree(&ours, &theirs, host, &epoch);
	if (reason) {
		if (rc < 0)
			snprintf(text, sizeof(text), "%s", dsm_error_name((unsigned int)-rc));
		else
			snprintf(text, sizeof(text), "host %u of %u", theirs.host,
				 theirs.nr_hosts);
		SSL_shutdown(attempt->session.ssl);
		return finish(attempt, reason, text);
	}
	/* Not before ours is out: it would be lost with the attempt. */
	return attempt->sent == DSM_WIRE_BYTES ? hand_over(attempt, epoch) :
						 true;
}

static bool greet(struct attempt *attempt)
{
	attempt->wants_write = false;
	/* What has come says more than a write that failed, and what we say
	 * lets the peer find the same mistake. */
	if (!read_hello(attempt) || !write_hello(attempt))
		return false;
	return attempt->have < DSM_WIRE_BYTES || agree(attempt);
}

/* What can be done now.  The attempt may be gone afterwards. */
static void work(struct attempt *attempt)
{
	if (attempt->doom) {
		finish(attempt, attempt->doom, attempt->text);
		return;
	}
	if (attempt->stage == CONNECTING && !connected(attempt))
		return;
	if (attempt->stage == PROVING && !prove(attempt))
		return;
	if (attempt->stage == GREETING && !greet(attempt))
		return;
	watch(attempt);
}

static void on_event(struct ev_loop *loop, ev_io *io, int events)
{
	(void)loop;
	(void)events;
	work(io->data);
}

static void on_soon(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_opening *opening = timer->data;
	unsigned int i;

	(void)loop;
	(void)events;
	for (i = 0; i < opening->nr_attempts; i++)
		if (opening->attempt[i].stage != FREE &&
		    opening->attempt[i].doom)
			work(&opening->attempt[i]);
}

static struct attempt *new_attempt(struct dsm_opening *opening, int fd,
				   bool accepted)
{
	struct attempt *attempt = opening->attempt;

	while (attempt->stage != FREE)
		attempt++;	/* there are enough for all strangers and peers */
	attempt->wants_write = false;
	attempt->doom = 0;
	attempt->since = now(opening);
	attempt->have = 0;
	attempt->sent = 0;
	attempt->greets = false;
	attempt->session.fd = fd;
	attempt->session.accepted = accepted;
	attempt->session.who.params = opening->params;
	attempt->session.who.wanted = DSM_NOBODY;
	return attempt;
}

static void no_delay(int fd)
{
	int one = 1;

	/* Slower without, not wrong. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Accepting. */

static void turn_away(struct dsm_opening *opening, int fd, enum dsm_end reason,
		      const struct sockaddr_storage *address)
{
	char text[DSM_TRANSPORT_TEXT];

	close(fd);
	dsm_opening_say_address(address, text, sizeof(text));
	dsm_opening_turned_away(opening, reason, text);
}

/* How many places has that address?  And the oldest of them. */
static unsigned int places_of(struct dsm_opening *opening,
			      const struct sockaddr_storage *address,
			      struct attempt **oldest)
{
	struct attempt *attempt;
	unsigned int i, nr = 0;

	*oldest = NULL;
	for (i = 0; i < opening->nr_attempts; i++) {
		attempt = &opening->attempt[i];
		if (attempt->stage == FREE || !attempt->session.accepted ||
		    !is_same_address(&attempt->from, address))
			continue;
		nr++;
		if (!*oldest || attempt->since < (*oldest)->since)
			*oldest = attempt;
	}
	return nr;
}

/*
 * All places are taken.  If an address has at least two more than the one that
 * comes, its oldest attempt goes: so nobody's silence keeps others out.
 */
static bool make_place(struct dsm_opening *opening,
		       const struct sockaddr_storage *address)
{
	struct attempt *oldest, *most_oldest = NULL;
	unsigned int i, nr, most = 0;
	unsigned int own = places_of(opening, address, &oldest);
	char text[DSM_TRANSPORT_TEXT];

	for (i = 0; i < DSM_MAX_HOSTS; i++) {
		if (!opening->params->peer[i].used)
			continue;
		nr = places_of(opening, &opening->params->peer[i].address,
			       &oldest);
		if (nr > most) {
			most = nr;
			most_oldest = oldest;
		}
	}
	if (most < own + 2)
		return false;
	dsm_opening_say_address(&most_oldest->from, text, sizeof(text));
	finish(most_oldest, DSM_END_CROWD, text);
	return opening->nr_strangers < opening->params->strangers;
}

static void let_in(struct dsm_opening *opening, int fd,
		   const struct sockaddr_storage *address)
{
	struct dsm_bucket *handshakes = handshakes_of(opening, address);
	struct attempt *attempt;

	if (!handshakes) {
		turn_away(opening, fd, DSM_END_STRANGER, address);
		return;
	}
	if (!dsm_bucket_take(handshakes, now(opening))) {
		turn_away(opening, fd, DSM_END_OFTEN, address);
		return;
	}
	if (opening->nr_strangers == opening->params->strangers &&
	    !make_place(opening, address)) {
		dsm_bucket_put_back(handshakes);
		turn_away(opening, fd, DSM_END_CROWD, address);
		return;
	}
	attempt = new_attempt(opening, fd, true);
	attempt->from = *address;
	attempt->session.ssl = dsm_tls_session(opening->tls, fd, true,
					       &attempt->session.who);
	if (!attempt->session.ssl) {
		init_attempt(attempt);
		turn_away(opening, fd, DSM_END_LOCAL, address);
		return;
	}
	no_delay(fd);
	opening->nr_strangers++;
	attempt->stage = PROVING;
	work(attempt);
}

static void on_accept(struct ev_loop *loop, ev_io *io, int events)
{
	struct dsm_opening *opening = io->data;
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
		let_in(opening, fd, &address);
	}
}

static socklen_t address_size(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) :
					       sizeof(struct sockaddr_in6);
}

/* Connecting, from our own address, so that the peer knows it. */
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

static int begin_connect(struct attempt *attempt,
			 const struct dsm_transport_params *params,
			 const struct sockaddr_storage *address)
{
	int rc, fd;

	fd = socket(address->ss_family,
		    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	attempt->session.fd = fd;
	if (params->address.ss_family == address->ss_family) {
		rc = bind_address(fd, &params->address);
		if (rc)
			return rc;
	}
	no_delay(fd);
	if (connect(fd, (const struct sockaddr *)address,
		    address_size(address)) && errno != EINPROGRESS)
		return -errno;
	return 0;
}

int dsm_opening_connect(struct dsm_opening *opening, unsigned int host,
			uint32_t epoch)
{
	struct attempt *attempt;
	int rc;

	if (opening->host[host].state != IDLE)
		return -EISCONN;
	if (!dsm_epoch_is_later(epoch, opening->host[host].last))
		return -EINVAL;
	opening->host[host].state = ON_ITS_WAY;
	opening->host[host].epoch = epoch;
	attempt = new_attempt(opening, -1, false);
	attempt->stage = CONNECTING;
	attempt->wants_write = true;
	attempt->session.host = host;
	attempt->session.who.wanted = host;

	rc = begin_connect(attempt, opening->params,
			   &opening->params->peer[host].address);
	if (rc) {
		doom(attempt, DSM_END_UNREACHABLE, strerror(-rc));
		return 0;
	}
	attempt->session.ssl = dsm_tls_session(opening->tls, attempt->session.fd,
					       false, &attempt->session.who);
	if (!attempt->session.ssl) {
		doom(attempt, DSM_END_LOCAL, "no memory");
		return 0;
	}
	watch(attempt);
	return 0;
}

int dsm_opening_expect(struct dsm_opening *opening, unsigned int host,
		       uint32_t epoch)
{
	if (opening->host[host].state != IDLE)
		return -EISCONN;
	if (!dsm_epoch_is_later(epoch, opening->host[host].last))
		return -EINVAL;
	opening->host[host].state = EXPECTED;
	opening->host[host].epoch = epoch;
	return 0;
}

int dsm_opening_cancel(struct dsm_opening *opening, unsigned int host)
{
	unsigned int i;

	switch (opening->host[host].state) {
	case EXPECTED:
	case ON_ITS_WAY:
		opening->host[host].state = IDLE;
		for (i = 0; i < opening->nr_attempts; i++)
			if (opening->attempt[i].stage != FREE &&
			    opening->attempt[i].session.host == host)
				forget(&opening->attempt[i]);
		return 0;
	default:
		return -ENOTCONN;
	}
}

void dsm_opening_release(struct dsm_opening *opening, unsigned int host)
{
	opening->host[host].state = IDLE;
}

void dsm_opening_take_back(struct dsm_opening *opening, unsigned int host,
			   bool expected)
{
	/* So it was one that ended without a peer. */
	if (expected)
		dsm_bucket_take(opening->host[host].paid, now(opening));
	opening->host[host].state = expected ? EXPECTED : IDLE;
	opening->host[host].last = opening->host[host].before;
}

static bool is_late(const struct attempt *attempt, uint64_t time)
{
	return attempt->stage != FREE &&
	       time - attempt->since >= attempt->opening->params->opening_ns;
}

void dsm_opening_tick(struct dsm_opening *opening)
{
	uint64_t time = now(opening);
	struct attempt *attempt;
	unsigned int i;

	ev_io_start(opening->params->loop, &opening->io);
	for (i = 0; i < opening->nr_attempts; i++) {
		attempt = &opening->attempt[i];
		/* What has come may be all that was missing: the late one may be we. */
		if (is_late(attempt, time))
			work(attempt);
		if (is_late(attempt, time))
			finish(attempt, DSM_END_SLOW, "");
	}
}

const uint64_t *dsm_opening_stranger_ends(const struct dsm_opening *opening)
{
	return opening->stranger_ends;
}

unsigned int dsm_opening_port(const struct dsm_opening *opening)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	if (getsockname(opening->fd, (struct sockaddr *)&address, &size))
		return 0;
	return ntohs(address.ss_family == AF_INET ?
		     ((const struct sockaddr_in *)&address)->sin_port :
		     ((const struct sockaddr_in6 *)&address)->sin6_port);
}

/* What is handed over. */

void dsm_session_take(struct dsm_session *to, const struct dsm_session *from)
{
	*to = *from;
	SSL_set_app_data(to->ssl, &to->who);
}

void dsm_session_close(struct dsm_session *session)
{
	SSL_free(session->ssl);
	session->ssl = NULL;
	if (session->fd >= 0)
		close(session->fd);
	session->fd = -1;
}

/* All at once. */

static int begin_listen(struct dsm_opening *opening, char *text)
{
	const struct sockaddr_storage *address = &opening->params->address;
	const char *what = "socket()";
	int one = 1, rc;

	opening->fd = socket(address->ss_family,
			     SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (opening->fd < 0)
		goto failed;
	what = "setsockopt()";
	if (setsockopt(opening->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		goto failed;
	what = "bind()";
	if (bind(opening->fd, (const struct sockaddr *)address,
		 address_size(address)))
		goto failed;
	what = "listen()";
	if (listen(opening->fd, BACKLOG))
		goto failed;
	ev_io_init(&opening->io, on_accept, opening->fd, EV_READ);
	opening->io.data = opening;
	ev_io_start(opening->params->loop, &opening->io);
	return 0;
failed:
	rc = -errno;
	snprintf(text, DSM_TRANSPORT_TEXT, "%s: %s", what, strerror(-rc));
	return rc;
}

void dsm_opening_destroy(struct dsm_opening *opening)
{
	unsigned int i;

	if (!opening)
		return;
	for (i = 0; i < opening->nr_attempts; i++)
		if (opening->attempt[i].stage != FREE)
			forget(&opening->attempt[i]);
	if (opening->fd >= 0) {
		ev_io_stop(opening->params->loop, &opening->io);
		close(opening->fd);
	}
	ev_timer_stop(opening->params->loop, &opening->soon);
	SSL_CTX_free(opening->tls);
	free(opening);
}

int dsm_opening_create(const struct dsm_transport_params *params,
		       const struct dsm_opening_calls *calls, void *owner,
		       struct dsm_opening **opening, char *text)
{
	unsigned int i, nr = params->strangers + DSM_MAX_HOSTS;
	struct dsm_opening *made;
	int rc;

	snprintf(text, DSM_TRANSPORT_TEXT, "no memory");
	made = calloc(1, sizeof(*made) + nr * sizeof(made->attempt[0]));
	if (!made)
		return -ENOMEM;
	made->params = params;
	made->calls = calls;
	made->owner = owner;
	made->fd = -1;
	made->nr_attempts = nr;
	ev_timer_init(&made->soon, on_soon, 0., 0.);
	made->soon.data = made;
	dsm_bucket_init(&made->lines, LINES, LINE_NS);
	for (i = 0; i < DSM_MAX_HOSTS; i++)
		dsm_bucket_init(&made->host[i].handshakes, HANDSHAKES,
				HANDSHAKE_NS);
	for (i = 0; i < nr; i++) {
		made->attempt[i].opening = made;
		init_attempt(&made->attempt[i]);
		ev_io_init(&made->attempt[i].io, on_event, -1, 0);
		made->attempt[i].io.data = &made->attempt[i];
	}
	rc = dsm_tls_create(params, &made->tls, text);
	if (!rc)
		rc = begin_listen(made, text);
	if (rc) {
		dsm_opening_destroy(made);
		return rc;
	}
	*opening = made;
	return 0;
}
