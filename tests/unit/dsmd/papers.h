/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Certificates for tests, made on the spot: a CA, another one with the same
 * name, and whatever they sign.
 */
#ifndef PAPERS_H
#define PAPERS_H

#include <stdbool.h>

#include <openssl/x509.h>

struct papers {
	X509 *certificate;
	EVP_PKEY *key;
};

/* What a certificate says.  Times are in days from now. */
struct wanted {
	const char *names;	/* subjectAltName as OpenSSL writes it; NULL: none */
	const char *usage;	/* extendedKeyUsage; NULL: none */
	const char *subject;
	int from, to;
	bool ca;
};

#define BOTH_ROLES	"serverAuth,clientAuth"

/* Signed by @issuer; NULL: by itself. */
struct papers papers_make(const struct wanted *wanted,
			  const struct papers *issuer);
void papers_free(struct papers *papers);

/* One more extension, signed anew. */
void papers_add(struct papers *papers, const struct papers *issuer, int nid,
		const char *value);

/* Into PEM files; NULL: not that one.  The key's has @mode. */
void papers_write(const struct papers *papers, const char *certificate,
		  const char *key, unsigned int mode);

/* More behind the certificate of a file. */
void papers_append(const struct papers *papers, const char *certificate);

/* A key that asks for a password, for its owner only. */
void papers_encrypt_key(const struct papers *papers, const char *key);

#endif
