/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who is at the other end: mutual TLS 1.3 by OpenSSL 3, and nothing older.
 *
 * A certificate is a peer's if the site's CA signed it, it is valid now, it is
 * for both ends of a connection (extendedKeyUsage has serverAuth and
 * clientAuth: each host is server to some and client to others), and it has a
 * DNS name (subjectAltName, no wildcards, the subject does not count) of
 * exactly one host, which is not ours.  There are no sessions to resume, no tickets and no early
 * data: each connection proves everything anew.
 */
#ifndef DSM_TLS_H
#define DSM_TLS_H

#include <openssl/ssl.h>

#include "transport.h"

/* What is known of the other end of a session. */
struct dsm_tls_who {
	const struct dsm_transport_params *params;
	unsigned int wanted;	/* the host that it has to be; DSM_NOBODY: any */
	unsigned int host;	/* that it is; DSM_NOBODY: not proved */
	int end;		/* enum dsm_end: why it is not; or 0 */
	char text[DSM_TRANSPORT_TEXT];
};

/**
 * Read the files, and do a handshake with ourselves: what a peer would say of
 * our own certificate, at either end.
 * Return: 0; -EINVAL, with the reason in @text; -ENOMEM.
 */
int dsm_tls_create(const struct dsm_transport_params *params, SSL_CTX **context,
		   char text[DSM_TRANSPORT_TEXT]);

/**
 * A session over the connected socket @fd, which stays the caller's; -1: the
 * caller says what it is over.
 * @who: has to stay as long as the session; params and wanted are set.
 * Return: the session, or NULL without memory.
 */
SSL *dsm_tls_session(SSL_CTX *context, int fd, bool accept,
		     struct dsm_tls_who *who);

/**
 * Why an operation of @ssl failed that does not just have to wait.
 * @result: what it returned, with errno and OpenSSL's errors as it left them.
 * @text: the reason in words.
 * Return: enum dsm_end; DSM_END_CLOSED for a close_notify.
 */
int dsm_tls_end(SSL *ssl, int result, char text[DSM_TRANSPORT_TEXT]);

#endif
