/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Certificates have a last day, after which no connection can be made.  Whoever uses
 * some says so before: when he begins, and once a day.
 *
 * Times are seconds since 1970 by the clock of the machine, as OpenSSL goes by it.
 *
 * Context: one thread, that of the loop.
 */
#ifndef DSM_EXPIRY_H
#define DSM_EXPIRY_H

#include <ev.h>
#include <openssl/ssl.h>

#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_EXPIRY_SOON		(30 * 86400)	/* s before the last moment */
#define DSM_EXPIRY_PERIOD	86400.		/* s between two warnings */
#define DSM_EXPIRY_TEXT		400		/* bytes of one, with its 0 */

/* Our own: of each file the certificate that expires first; 0: not known. */
struct dsm_expiry {
	int64_t certificate, ca;
	const struct dsm_transport_params *params;
	ev_periodic daily;
	void (*warn)(void *context, const char *text);
	void *context;
};

/** Return: when it expires; 0: it does not say. */
int64_t dsm_expiry_of(const X509 *certificate);

/** Of the first certificate of a file of PEM that expires.  Return: when; 0: not known. */
int64_t dsm_expiry_of_file(const char *file);

/**
 * Of the peer's certificate and those between it and the CA.
 * Return: when the first one expires; 0: not known.
 */
int64_t dsm_expiry_of_peer(const SSL *ssl);

/**
 * Is it time to say so?
 * @what: whose certificate it is.
 * @text: a warning, if it is.
 */
bool dsm_expiry_is_soon(int64_t expires, int64_t now, const char *what,
			char text[DSM_EXPIRY_TEXT]);

/**
 * Read when ours expire; warn now, and again each @period seconds.
 * @params: has the names of the files, which a transport or dsm_tls_create() has taken;
 * has to stay.
 */
void dsm_expiry_begin(struct dsm_expiry *expiry, const struct dsm_transport_params *params,
		      struct ev_loop *loop, double period,
		      void (*warn)(void *context, const char *text), void *context);
void dsm_expiry_end(struct dsm_expiry *expiry, struct ev_loop *loop);

#ifdef __cplusplus
}
#endif

#endif
