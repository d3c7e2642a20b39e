/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What binds an RDMA connection to the TLS session that proved its ends.
 *
 * RDMA knows no certificates.  So each end says in the private data of its
 * connection request, or of the answer to one, which session it is for, and
 * proves with a key that only the two ends of that session have (the TLS
 * exporter, RFC 8446, 7.5) that exactly these two queue pairs are meant:
 *
 *	 0	16	session: what the acceptor chose
 *	16	32	HMAC-SHA256(key; role, hosts, session, both nonces, both
 *			GIDs, both queue pair numbers)
 *
 * The request comes before the acceptor has a queue pair: its number is 0
 * there.  A session is good for one request: who sees one go by can't use it
 * again, neither for the same session nor, as the key is another one, for the
 * next.
 *
 * Session and nonces go through TLS before, each end's in a frame of 40 bytes,
 * the opener's first:
 *
 *	 0	1	DSM_LINK_MARK
 *	 1	1	DSM_BINDING_KIND: no frame of the connection has this kind
 *	 2	2	acceptor: the port to connect to; opener: 0
 *	 4	4	epoch
 *	 8	16	acceptor: session; opener: 0
 *	24	16	nonce
 *
 * Plain functions: no I/O but for random numbers.
 */
#ifndef DSM_BINDING_H
#define DSM_BINDING_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#define DSM_BINDING_FRAME	40	/* bytes through TLS */
#define DSM_BINDING_PRIVATE	48	/* bytes of private data; rdmacm has 56 */
#define DSM_BINDING_KIND	16
#define DSM_BINDING_KEY		32
#define DSM_BINDING_NONCE	16

struct dsm_binding {
	uint8_t key[DSM_BINDING_KEY];
	bool accepted;		/* this end's role */
	bool usable;		/* no request has used it */
	uint8_t opener, acceptor;	/* hosts */
	uint32_t epoch;
	uint16_t port;
	uint8_t session[DSM_BINDING_NONCE];
	uint8_t ours[DSM_BINDING_NONCE], theirs[DSM_BINDING_NONCE];
};

/* The two ends of an RDMA connection. */
struct dsm_binding_ends {
	uint8_t opener_gid[16], acceptor_gid[16];
	uint32_t opener_qp, acceptor_qp;	/* acceptor_qp: 0 in a request */
};

/**
 * Begin.
 * @self, @host: the numbers of this end and of the other one.
 * @port: of the acceptor, host's byte order; else 0.
 * Return: 0; -EIO without random numbers or a key.
 */
int dsm_binding_init(struct dsm_binding *binding, SSL *ssl, bool accepted,
		     uint8_t self, uint8_t host, uint32_t epoch, uint16_t port);

/** What this end says through TLS. */
void dsm_binding_put(const struct dsm_binding *binding,
		     uint8_t bytes[DSM_BINDING_FRAME]);

/**
 * What the other end has said.
 * Return: 0; -EINVAL if it makes no sense.
 */
int dsm_binding_get(struct dsm_binding *binding,
		    const uint8_t bytes[DSM_BINDING_FRAME]);

/**
 * The private data of a request, or of the answer to one.
 * Return: 0; -EIO if OpenSSL fails.
 */
int dsm_binding_prove(const struct dsm_binding *binding, bool answer,
		      const struct dsm_binding_ends *ends,
		      uint8_t bytes[DSM_BINDING_PRIVATE]);

/** Is it for this session? */
bool dsm_binding_is_for(const struct dsm_binding *binding, const void *bytes,
			size_t size);

/**
 * Is it what the other end must have said?  A request that is uses the session
 * up.
 */
bool dsm_binding_holds(struct dsm_binding *binding, bool answer,
		       const struct dsm_binding_ends *ends, const void *bytes,
		       size_t size);

/** Forget the key. */
void dsm_binding_clear(struct dsm_binding *binding);

#endif
