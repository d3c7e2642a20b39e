/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections between the dsmd of one VM on different hosts.
 *
 * A pair of hosts has at most one connection.  What is sent to a host arrives
 * there once, in the order in which it was sent, or the connection ends with a
 * reason: there is no third case, and no second try within a connection.  The
 * protocol of dsm/core rests on that order.
 *
 * Credits.  Each end has a fixed number of receive buffers; only a message for
 * which there is a free one is put on the wire, the others wait here, in
 * order.  A buffer is free again when the message() callback has returned.  The
 * last buffer is kept for answers: dsm_transport_room() does not offer it.
 * Three more buffers, which no message can take, are for what the connection
 * says by itself: a question (keepalive, and credits come back with it), the
 * answer to one, and FAIL (link.h).
 *
 * Order of a connection: dsm_transport_open() at one end and _expect() at the
 * other (the host with the higher number opens); both have proved who they are;
 * HELLO both ways; up(); message(); end(), after which nothing more comes.
 *
 * Backends.  TCP with mutual TLS 1.3; or RDMA, beside a TLS connection that has
 * proved the ends and is bound to it (binding.h).  RDMA is not encrypted: it
 * needs a fabric that is trusted.
 *
 * Context: one thread, that of the event loop.  Nothing blocks or sleeps;
 * nothing is allocated after dsm_transport_create() but what OpenSSL allocates
 * for itself, which is bounded (TLS records, certificates up to 16 KiB), and
 * the queues of an RDMA connection, when it begins.
 * Callbacks may call anything below but dsm_transport_destroy(), _tick() and
 * _poll().
 */
#ifndef DSM_TRANSPORT_H
#define DSM_TRANSPORT_H

#include <stddef.h>
#include <sys/socket.h>

#include "protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ev_loop;
struct dsm_transport;

#define DSM_TRANSPORT_TEXT	256	/* bytes of a text about an error, with its 0 */
#define DSM_TRANSPORT_NAMES	8	/* names that a peer's certificate may have */

/* Limits of the numbers in struct dsm_transport_params. */
#define DSM_CREDITS_LEAST	4
#define DSM_CREDITS_MOST	1024
#define DSM_QUEUE_MOST		4096
#define DSM_STRANGERS_MOST	64

/* Why a connection ended, or never came to be. */
/* Reasons of dsm_transport_fail() that are no enum dsm_reason. */
#define DSM_FAIL_LOST	0x80	/* and the number of a host: that one is lost, says who fails */
#define DSM_FAIL_OVER	0xff

enum dsm_end {
	DSM_END_CLOSED = 1,	/* both ends said so; see dsm_transport_close() */
	/* the network, or a host */
	DSM_END_UNREACHABLE,	/* could not connect */
	DSM_END_CUT,		/* the end of the bytes, without "this is the end" */
	DSM_END_SILENT,		/* a question was not answered in time */
	DSM_END_SLOW,		/* opening or closing took too long */
	DSM_END_FAILED,		/* the peer says that the VM can't go on */
	DSM_END_OVER,		/* the peer says that the VM has ended */
	/* who is there? */
	DSM_END_STRANGER,	/* not the address of a peer */
	DSM_END_CROWD,		/* more who have not said who they are than fit */
	DSM_END_OFTEN,		/* an address whose attempts fail too often */
	DSM_END_NOT_TLS,	/* bytes that are no TLS, or were changed on the way */
	DSM_END_TLS_VERSION,	/* older than TLS 1.3 */
	DSM_END_NO_CERTIFICATE,
	DSM_END_ISSUER,		/* not by the site's CA */
	DSM_END_EXPIRED,
	DSM_END_NOT_YET,	/* valid later */
	DSM_END_NAME,		/* not the names of the peer, or of any */
	DSM_END_ROLE,		/* not for both ends of a connection (extendedKeyUsage) */
	DSM_END_CERTIFICATE,	/* anything else that is wrong with one */
	DSM_END_REFUSED,	/* the peer does not accept us: its alert is in the text */
	/* HELLO */
	DSM_END_HELLO,		/* it is none */
	DSM_END_VERSION,	/* no common version */
	DSM_END_HOST,		/* not the number of the host that the certificate names */
	DSM_END_NR_HOSTS,	/* another number of hosts */
	DSM_END_VM,		/* another VM */
	DSM_END_EPOCH,
	DSM_END_UNEXPECTED,	/* nobody waits for this peer, or it is connected */
	DSM_END_BINDING,	/* an RDMA connection of nobody who has proved himself */
	/* a breach by the peer */
	DSM_END_FRAME,		/* bytes that are no message */
	DSM_END_CREDITS,	/* a message without a credit */
	DSM_END_TURN,		/* a question, answer or credit out of turn */
	/* here */
	DSM_END_QUEUE,		/* more to send than the queue takes */
	DSM_END_LOCAL,		/* no socket, no memory */
	DSM_NR_ENDS
};

/** Return: "a question was not answered in time"; "?" if there is no such end. */
const char *dsm_end_name(unsigned int end);

/** Return: a word for statistics, "silent"; "?" if there is no such end. */
const char *dsm_end_word(unsigned int end);

enum dsm_transport_kind {
	DSM_TRANSPORT_TCP,	/* with TLS */
	DSM_TRANSPORT_RDMA,
};

/*
 * A question and its answer, by the TSCs of both hosts, ticks modulo 2^64: ours
 * when it was asked and when it was answered, the peer's when the question had come
 * and when the answer went.  Each of ours is read outside, each of the peer's inside
 * of the way that the frames took (clock.h).
 */
struct dsm_clock_sample {
	uint64_t asked, answered;	/* ours */
	uint64_t received, replied;	/* the peer's, less than 2^32 apart */
	uint32_t khz;		/* of the peer's; 0: there is no sample */
};

struct dsm_transport_calls {
	/**
	 * The connection with @host is there; @epoch is what both have agreed
	 * on, the higher of what both wanted.
	 */
	void (*up)(void *context, unsigned int host, uint32_t epoch);
	/**
	 * A message.  Its type, length and epoch are right, nothing else has
	 * been looked at.  @page: what follows, dsm_type_bytes(): a page or what
	 * vcpu.h says; NULL if that is 0.  Not valid after the return.
	 */
	void (*message)(void *context, unsigned int host,
			const struct dsm_msg *msg, const uint8_t *page);
	/** dsm_transport_room() was 0, and is not any more. */
	void (*room)(void *context, unsigned int host);
	/**
	 * The connection with @host has ended, or could not be made.
	 * DSM_NOBODY: somebody who did not prove to be a peer; for logs, and
	 * so not more than eight at once and one a second; the text says how
	 * many were left out, and the counters have all.
	 * @text: what the names of @reason do not say.
	 */
	void (*end)(void *context, unsigned int host, enum dsm_end reason,
		    const char *text);
	/**
	 * @host says that the VM has failed, because it has lost @lost, which is
	 * another one of the VM; its end() comes next.  May be NULL.
	 */
	void (*lost)(void *context, unsigned int host, unsigned int lost);
	/**
	 * How long a question to @host took, in ns.
	 * @clock: the clocks of both hosts; NULL if one of them tells none.
	 */
	void (*round_trip)(void *context, unsigned int host, uint64_t ns,
			   const struct dsm_clock_sample *clock);
};

struct dsm_transport_peer {
	bool used;		/* there is such a host; not for ourselves */
	struct sockaddr_storage address;	/* with port; AF_INET or AF_INET6 */
	const char *names[DSM_TRANSPORT_NAMES];	/* DNS names; NULL: no more */
	const char *name;	/* of the host, for texts; NULL: the first of those */
};

struct dsm_transport_params {
	struct ev_loop *loop;
	enum dsm_transport_kind kind;
	bool trusted_fabric;	/* nobody else can read or write on its wires: for RDMA */
	uint8_t self, nr_hosts;
	uint8_t vm[16];			/* its UUID */
	struct sockaddr_storage address;	/* to listen at; port 0: any */
	const char *ca_file;		/* PEM: the site's CA, and nobody else's */
	const char *certificate_file;	/* PEM: our certificate, then others up to the CA */
	const char *key_file;		/* PEM, not encrypted; nobody else may read it */
	const char *names[DSM_TRANSPORT_NAMES];	/* of our own certificate */
	struct dsm_transport_peer peer[DSM_MAX_HOSTS];
	uint16_t credits;	/* receive buffers a peer: DSM_CREDITS_LEAST .. _MOST */
	uint16_t queue;		/* messages that may wait to be sent to a peer: 1 .. _MOST */
	uint16_t strangers;	/* connections that may be open and unproved: 1 .. _MOST */
	uint64_t opening_ns;	/* time for opening, and for closing; not 0 */
	uint64_t question_ns;	/* a question at least so often; not 0 */
	uint64_t deadline_ns;	/* for the answer; longer than question_ns */
	uint32_t rekey_records;	/* TLS records under one key: 1 .. 2^24 */
	uint64_t (*now)(void *context);	/* ns of a clock that is never set back */
	uint64_t (*tsc)(void *context);	/* this host's TSC; NULL: none to be told */
	uint32_t tsc_khz;	/* its frequency, DSM_CLOCK_KHZ_LEAST .. _MOST */
	const struct dsm_transport_calls *calls;
	void *context;		/* for now(), tsc() and calls */
};

/* What has happened on the connections with a host since create(). */
struct dsm_transport_counters {
	uint64_t sent, received;	/* messages */
	uint64_t sent_pages, received_pages;
	uint64_t sent_bytes, received_bytes;	/* before encryption */
	uint64_t questions;		/* asked */
	uint64_t stalls;		/* times that a message had no credit */
	uint64_t rekeys;		/* keys that we have changed */
	uint64_t connections;		/* that came up */
	uint64_t ends[DSM_NR_ENDS];
	int64_t certificate_expires;	/* the peer's, of the last one that was begun (expiry.h) */
	uint32_t waiting;		/* messages in the queue now */
	uint32_t credits;		/* messages that could be sent now */
};

/**
 * Read the certificates, listen.
 * @params: what it points to has to stay.
 * @text: what went wrong, in words, if the result is not 0.
 * Return: 0; -EINVAL for parameters out of their ranges, a certificate that
 * does not hold (a peer would refuse it: tls.h), a key that is not its own,
 * encrypted, another user's (root's is good) or that others can read, a CA's
 * certificate that others can write, or a SIGPIPE that would end the process, or RDMA without a trusted fabric; -ENOMEM; what socket(), bind() and
 * listen() say, for RDMA too: -ENODEV without a device.
 */
int dsm_transport_create(const struct dsm_transport_params *params,
			 struct dsm_transport **transport,
			 char text[DSM_TRANSPORT_TEXT]);

/** End all connections at once, without end(). */
void dsm_transport_destroy(struct dsm_transport *transport);

/** Return: the port that it listens at. */
unsigned int dsm_transport_port(const struct dsm_transport *transport);

/**
 * Connect to @host, or wait until it connects.
 * @epoch: not 0, later than that of the connection before, modulo 2^32.
 * Return: 0, then up() or end() comes, not before the return.  _expect() has no
 * time-out: it ends with up(), or with dsm_transport_close(); an end() before
 * up() tells of an attempt of that host that failed, and the right one may still
 * come.
 * -EINVAL for no such peer, for the end that the other one is to be (the higher
 * number opens: of two that both open none would come up), and for such an epoch;
 * -EISCONN if there is a connection or an attempt.
 */
int dsm_transport_open(struct dsm_transport *transport, unsigned int host,
		       uint32_t epoch);
int dsm_transport_expect(struct dsm_transport *transport, unsigned int host,
			 uint32_t epoch);

/**
 * Send a message, after all others.  Everything is copied before the return.
 * @msg: its epoch has to be the connection's.
 * @page: what follows, dsm_type_bytes(); NULL if that is 0.
 * Return: 0; -ENOTCONN if the connection is not up; -EINVAL for a message that
 * the wire does not have, or with another epoch; -EPROTONOSUPPORT for one that the
 * connection's version does not have; -ENOBUFS if the queue is full:
 * the order would have a gap, so the connection ends (DSM_END_QUEUE), from the
 * loop, not from within this call.
 */
int dsm_transport_send(struct dsm_transport *transport, unsigned int host,
		       const struct dsm_msg *msg, const uint8_t *page);

/**
 * Return: how many requests may be begun now such that each has its credit at
 * once, and an answer after them has one, too.  0: wait for room().
 */
unsigned int dsm_transport_room(const struct dsm_transport *transport,
				unsigned int host);

/** Return: the version of the connection with @host, which is up; or 0. */
unsigned int dsm_transport_version(const struct dsm_transport *transport,
				   unsigned int host);

/**
 * Hold back message() for @host, or go on.  What comes in the meantime stays in
 * the receive buffers, the peer runs out of credits; questions are answered.
 * What is held stays if the peer closes meanwhile, and is delivered before end().
 * Return: 0; -ENOTCONN.
 */
int dsm_transport_hold(struct dsm_transport *transport, unsigned int host,
		       bool hold);

/**
 * Say that this is the end, once everything is sent, and wait for the peer's
 * word: end(DSM_END_CLOSED) if it has come.  Then all that the peer sent has
 * arrived here, at either end.  Who closed first knows the same of what it sent;
 * who closed second (or did not close) knows it over RDMA only: over TCP it was
 * given to the network, before the peer's word that it wants no more came.  An
 * expectation or an attempt is given up, without end().
 * Return: 0; -ENOTCONN.
 */
int dsm_transport_close(struct dsm_transport *transport, unsigned int host);

/**
 * The VM can't go on, or has ended: say so to @host as far as its network takes it
 * at once, and end, without end() here.  What was sent before may or may not arrive.
 * @reason: a number that the peer's text has; DSM_FAIL_LOST and more: it has the name
 * of that host; DSM_FAIL_OVER: the VM has ended, which is no failure, and DSM_END_OVER
 * there.
 * Return: 0; -ENOTCONN.
 */
int dsm_transport_fail(struct dsm_transport *transport, unsigned int host,
		       uint8_t reason);

/**
 * Look at the clock: questions and deadlines.  To be called at least four
 * times in question_ns.
 */
void dsm_transport_tick(struct dsm_transport *transport);

/**
 * Look for what has come, without sleeping; for a caller that spins instead of
 * waiting in the loop.
 * Return: number of messages that were delivered.
 */
unsigned int dsm_transport_poll(struct dsm_transport *transport);

/**
 * @host: a peer, or DSM_NOBODY: only the ends of those who did not prove to be
 * one.
 * Return: 0; -EINVAL for no such peer.
 */
int dsm_transport_counts(const struct dsm_transport *transport,
			   unsigned int host,
			   struct dsm_transport_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
