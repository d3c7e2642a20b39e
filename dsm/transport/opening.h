/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From a socket to a peer that has proved who it is and has said HELLO: what
 * all backends begin with.
 *
 * A connection that was accepted belongs to no peer until its certificate has
 * proved one; the opener knows whom it wants.  The acceptor says HELLO first,
 * the opener when it has that: so nobody sends anything to who might still
 * refuse it.
 *
 * A host is idle, expected, on its way, or taken.  An expectation is there until
 * somebody has said a HELLO that is right: who came with a wrong one, or was cut
 * off, changes nothing for the right one.  Once both have agreed it is
 * taken: the session belongs to the backend, until dsm_opening_release().
 *
 * Context: as transport.h.  agreed() and ended() come from the loop or from
 * dsm_opening_tick(), never from within another call here.
 */
#ifndef DSM_OPENING_H
#define DSM_OPENING_H

#include "tls.h"

struct dsm_opening;

/* A TLS connection with a peer, after HELLO.  Nothing behind HELLO was read. */
struct dsm_session {
	int fd;
	SSL *ssl;
	unsigned int host;
	uint32_t epoch;		/* the agreed one */
	unsigned int version;	/* of the connection, likewise */
	bool accepted;
	int64_t expires;	/* the peer's certificate (expiry.h); 0: not known */
	struct dsm_tls_who who;	/* of ssl: what dsm_tls_end() looks at */
};

struct dsm_opening_calls {
	/** Both have said HELLO.  Has to take @session (dsm_session_take()). */
	void (*agreed)(void *owner, const struct dsm_session *session);
	/**
	 * An attempt of @host is over: it is idle again if it was ours, and
	 * still expected if it was the peer's.  Or somebody who was never one
	 * has gone (DSM_NOBODY; counted here).
	 */
	void (*ended)(void *owner, unsigned int host, int reason,
		      const char *text);
};

/**
 * Read the certificates, listen.
 * @params, @calls, @owner: have to stay.
 * @text: what went wrong, if the result is not 0.
 * Return: 0; see dsm_transport_create().
 */
int dsm_opening_create(const struct dsm_transport_params *params,
		       const struct dsm_opening_calls *calls, void *owner,
		       struct dsm_opening **opening, char *text);

/** End all that is under way, without ended().  Takes NULL. */
void dsm_opening_destroy(struct dsm_opening *opening);

/** Return: the port that it listens at. */
unsigned int dsm_opening_port(const struct dsm_opening *opening);

/**
 * See dsm_transport_open(), _expect().
 * Return: 0; -EISCONN if it is not idle; -EINVAL for an epoch that is not later
 * than the last one that was agreed on.
 */
int dsm_opening_connect(struct dsm_opening *opening, unsigned int host,
			uint32_t epoch);
int dsm_opening_expect(struct dsm_opening *opening, unsigned int host,
		       uint32_t epoch);

/** Give up, without ended().  Return: 0; -ENOTCONN if it is idle or taken. */
int dsm_opening_cancel(struct dsm_opening *opening, unsigned int host);

/** What was taken is over: @host is idle. */
void dsm_opening_release(struct dsm_opening *opening, unsigned int host);

/**
 * After dsm_opening_release(): what was begun has not come up here, so its epoch is
 * none that a later one has to be above.
 * @expected: the peer may still come, and it was one of its handshakes that ended
 * without a peer.
 */
void dsm_opening_take_back(struct dsm_opening *opening, unsigned int host,
			   bool expected);

/**
 * Somebody who did not prove to be a peer was turned away: count it, and say so
 * with ended(), but not for each if there are many.
 */
void dsm_opening_turned_away(struct dsm_opening *opening, int reason,
			     const char *why);

/** Look at the clock. */
void dsm_opening_tick(struct dsm_opening *opening);

/** How those ended who did not prove to be a peer, by enum dsm_end. */
const uint64_t *dsm_opening_stranger_ends(const struct dsm_opening *opening);

/** Is it the address of a peer, whatever the port? */
bool dsm_opening_is_peers(const struct dsm_opening *opening,
			  const struct sockaddr_storage *address);

/** "from 192.0.2.7" */
void dsm_opening_say_address(const struct sockaddr_storage *address, char *text,
			     size_t size);

/** Take over what agreed() offers. */
void dsm_session_take(struct dsm_session *to, const struct dsm_session *from);

/** Close it; does not say goodbye. */
void dsm_session_close(struct dsm_session *session);

#endif
