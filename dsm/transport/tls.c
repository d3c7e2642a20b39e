// SPDX-License-Identifier: GPL-2.0
/*
 * Certificates, and what OpenSSL's errors mean here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tls.h"

#define CERTIFICATES_BYTES	16384	/* of a peer, at most */
#define DEPTH			4	/* CAs between a certificate and the site's */
#define HANDSHAKE_ROUNDS	64	/* with ourselves; a few are needed */
#define ROLES			(XKU_SSL_SERVER | XKU_SSL_CLIENT)

static bool has_name(X509 *certificate, const char *const *names)
{
	unsigned int flags = X509_CHECK_FLAG_NO_WILDCARDS |
			     X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
	unsigned int i;

	for (i = 0; i < DSM_TRANSPORT_NAMES && names[i]; i++)
		if (X509_check_host(certificate, names[i], 0, flags, NULL) == 1)
			return true;
	return false;
}

static bool has_roles(X509 *certificate)
{
	return X509_get_extension_flags(certificate) & EXFLAG_XKUSAGE &&
	       (X509_get_extended_key_usage(certificate) & ROLES) == ROLES;
}

static const char *const *names_of(const struct dsm_transport_params *params, unsigned int host)
{
	return host == params->self ? params->names : params->peer[host].names;
}

/* The host that the certificate names, us too; DSM_NOBODY: none or several. */
static unsigned int named_host(X509 *certificate,
			       const struct dsm_transport_params *params)
{
	unsigned int host, found = DSM_NOBODY;

	for (host = 0; host < DSM_MAX_HOSTS; host++) {
		if (host != params->self && !params->peer[host].used)
			continue;
		if (!has_name(certificate, names_of(params, host)))
			continue;
		if (found != DSM_NOBODY)
			return DSM_NOBODY;
		found = host;
	}
	return found;
}

/* Is it who may be there?  We ourselves only if that is what is wanted. */
static bool is_wanted(const struct dsm_tls_who *who)
{
	if (who->wanted != DSM_NOBODY)
		return who->host == who->wanted;
	return who->host != DSM_NOBODY && who->host != who->params->self;
}

static int end_of_verification(int error)
{
	switch (error) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return DSM_END_EXPIRED;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return DSM_END_NOT_YET;
	case X509_V_ERR_INVALID_PURPOSE:
		return DSM_END_ROLE;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
	case X509_V_ERR_INVALID_CA:
		return DSM_END_ISSUER;
	default:
		return DSM_END_CERTIFICATE;
	}
}

/* The names of a certificate for a log: what a stranger wrote, so no odd bytes. */
static void say_names(X509 *certificate, char *text, size_t size)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name,
						NULL, NULL);
	size_t length = 0;
	int i, k;

	text[0] = 0;
	for (i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
		const unsigned char *bytes;

		if (name->type != GEN_DNS)
			continue;
		bytes = ASN1_STRING_get0_data(name->d.dNSName);
		if (length && length + 2 < size)
			text[length++] = ' ';
		for (k = 0; k < ASN1_STRING_length(name->d.dNSName) &&
			    length + 1 < size; k++)
			text[length++] = bytes[k] > ' ' && bytes[k] < 0x7f ?
					 (char)bytes[k] : '?';
		text[length] = 0;
	}
	GENERAL_NAMES_free(names);
	if (!length)
		snprintf(text, size, "none");
}

/* What certificate_names has of who has to be there, as far as it fits; "": it may be any host. */
static void say_wanted(const struct dsm_tls_who *who, char *text, size_t size)
{
	const char *const *names;
	unsigned int i;
	size_t length;

	text[0] = 0;
	if (who->wanted == DSM_NOBODY)
		return;
	names = names_of(who->params, who->wanted);
	length = (size_t)snprintf(text, size, "; certificate_names:");
	for (i = 0; i < DSM_TRANSPORT_NAMES && names[i] && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, " %s", names[i]);
}

/* After OpenSSL's own checks of each certificate of the chain, the CA first. */
static int verify(int ok, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store,
				SSL_get_ex_data_X509_STORE_CTX_idx());
	struct dsm_tls_who *who = SSL_get_app_data(ssl);
	X509 *certificate = X509_STORE_CTX_get_current_cert(store);
	int depth = X509_STORE_CTX_get_error_depth(store);
	char names[100], wanted[100];

	if (!ok) {
		int error = X509_STORE_CTX_get_error(store);

		who->end = end_of_verification(error);
		snprintf(who->text, sizeof(who->text), "%s, %d above the peer's%s",
			 X509_verify_cert_error_string(error), depth,
			 who->end == DSM_END_ISSUER ? ": no CA of ours (ca of dsm.toml) has signed it" : "");
		return 0;
	}
	if (depth)
		return 1;

	say_names(certificate, names, sizeof(names));
	who->host = named_host(certificate, who->params);
	if (!has_roles(certificate)) {
		who->end = DSM_END_ROLE;
		snprintf(who->text, sizeof(who->text),
			 "extendedKeyUsage lacks serverAuth or clientAuth; subjectAltName: %s",
			 names);
		X509_STORE_CTX_set_error(store, X509_V_ERR_INVALID_PURPOSE);
	} else if (!is_wanted(who)) {
		who->end = DSM_END_NAME;
		say_wanted(who, wanted, sizeof(wanted));
		snprintf(who->text, sizeof(who->text),
			 "not the names of that host alone in subjectAltName: %s%s",
			 names, wanted);
		X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH);
	}
	if (who->end)
		who->host = DSM_NOBODY;
	return !who->end;
}

/* The first error: those after it say no more than who was told of it. */
static const char *openssl_reason(void)
{
	unsigned long error = ERR_peek_error();
	const char *reason = error ? ERR_reason_error_string(error) : NULL;

	if (ERR_SYSTEM_ERROR(error))
		return strerror(ERR_GET_REASON(error));
	return reason ? reason : "unknown error";
}

static int wrong(char *text, const char *file, const char *what)
{
	snprintf(text, DSM_TRANSPORT_TEXT, "%s: %s", file, what);
	return -EINVAL;
}

/* A file of PEM without what it is for; @none: words for that, instead of the library's. */
static int wrong_pem(char *text, const char *file, const char *none)
{
	unsigned long error = ERR_peek_error();
	bool empty = ERR_GET_LIB(error) == ERR_LIB_PEM || ERR_GET_LIB(error) == ERR_LIB_X509 ||
		     ERR_GET_LIB(error) == ERR_LIB_OSSL_DECODER;

	return wrong(text, file, empty && !ERR_SYSTEM_ERROR(error) ? none : openssl_reason());
}

/* There is nobody to ask: a dsmd that waits at a terminal serves no fault. */
static int no_password(char *to, int size, int writes, void *asked)
{
	(void)to;
	(void)size;
	(void)writes;
	if (asked)
		*(bool *)asked = true;
	return -1;
}

/* Who can write it decides who is a peer.  What it says is no secret. */
static const char *wrong_ca_file(const char *file)
{
	struct stat st;

	if (stat(file, &st))
		return strerror(errno);
	if (st.st_uid && st.st_uid != geteuid())
		return "another user's, who can say by it who is a peer: chown root";
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return "others can write it, and so say who is a peer: chmod 644";
	return NULL;
}

static const char *wrong_key_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "not a file";
	if (st.st_uid && st.st_uid != geteuid())
		return "this key is another user's, who can read and write it: chown root";
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return "others can read or write this key: chmod 600";
	return NULL;
}

/* Of another certificate, or of another kind. */
static int wrong_key(char *text, const char *file, const char *certificate)
{
	if (ERR_GET_REASON(ERR_peek_error()) != X509_R_KEY_VALUES_MISMATCH)
		return wrong(text, file, openssl_reason());
	snprintf(text, DSM_TRANSPORT_TEXT, "%.110s: it is not the key of %.110s", file, certificate);
	return -EINVAL;
}

/* What is looked at is what is read: the file is opened once. */
static int load_key(const char *file, const char *certificate, SSL_CTX *context, char *text)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *why = fd < 0 ? strerror(errno) : wrong_key_file(fd);
	FILE *stream = why ? NULL : fdopen(fd, "r");
	bool asked = false;
	EVP_PKEY *key;
	int rc = 0;

	if (!stream) {
		rc = wrong(text, file, why ? why : strerror(errno));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	ERR_clear_error();
	key = PEM_read_PrivateKey(stream, NULL, no_password, &asked);
	if (asked)
		rc = wrong(text, file, "encrypted, and nobody can be asked for a password");
	else if (!key)
		rc = wrong_pem(text, file, "no private key of PEM is in it");
	else if (SSL_CTX_use_PrivateKey(context, key) != 1 ||
		 SSL_CTX_check_private_key(context) != 1)
		rc = wrong_key(text, file, certificate);
	EVP_PKEY_free(key);
	fclose(stream);
	return rc;
}

/* Two ends of ours, which have only each other; NULL without memory. */
static SSL *end_of(const struct dsm_transport_params *params, SSL_CTX *context,
		   BIO *bio, bool accept, struct dsm_tls_who *who)
{
	SSL *ssl = bio ? dsm_tls_session(context, -1, accept, who) : NULL;

	who->params = params;
	who->wanted = params->self;
	if (ssl)
		SSL_set_bio(ssl, bio, bio);
	else
		BIO_free(bio);
	return ssl;
}

/*
 * Return: -EAGAIN: it will be valid, or the clock is not set yet; -EINVAL: any other reason.
 */
static int wrong_own(char *text, const char *file, const struct dsm_tls_who *who)
{
	char what[224], date[32] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (who->end != DSM_END_EXPIRED && who->end != DSM_END_NOT_YET)
		return wrong(text, file, who->end ? who->text : openssl_reason());
	if (gmtime_r(&now, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm);
	snprintf(what, sizeof(what), "%.150s; the clock here says %s", who->text, date);
	wrong(text, file, what);
	return who->end == DSM_END_NOT_YET ? -EAGAIN : -EINVAL;
}

/*
 * What the peers would say of our own certificate, as a server's and as a
 * client's: the handshake is done with ourselves, so nothing is left out of
 * what is looked at.
 */
static int check_own(const struct dsm_transport_params *params, SSL_CTX *context,
		     char *text)
{
	struct dsm_tls_who who[2];
	BIO *bio[2] = { NULL, NULL };
	SSL *end[2];
	bool done[2] = { false, false };
	unsigned int i, rounds;
	int rc = 0, result;

	ERR_clear_error();
	if (BIO_new_bio_pair(&bio[0], 0, &bio[1], 0) != 1)
		return -ENOMEM;
	for (i = 0; i < 2; i++)
		end[i] = end_of(params, context, bio[i], i, &who[i]);
	if (!end[0] || !end[1])
		rc = -ENOMEM;
	for (rounds = HANDSHAKE_ROUNDS; !rc && !(done[0] && done[1]); rounds--) {
		for (i = 0; i < 2 && !rc; i++) {
			if (done[i])
				continue;
			ERR_clear_error();
			result = SSL_do_handshake(end[i]);
			done[i] = result == 1;
			if (done[i])
				continue;
			result = SSL_get_error(end[i], result);
			if ((result != SSL_ERROR_WANT_READ &&
			     result != SSL_ERROR_WANT_WRITE) || !rounds)
				rc = wrong_own(text, params->certificate_file, &who[i]);
		}
	}
	SSL_free(end[0]);
	SSL_free(end[1]);
	return rc;
}

static int load_files(const struct dsm_transport_params *params,
		      SSL_CTX *context, char *text)
{
	const char *why = wrong_ca_file(params->ca_file);
	int rc;

	if (why)
		return wrong(text, params->ca_file, why);
	ERR_clear_error();
	if (SSL_CTX_load_verify_file(context, params->ca_file) != 1)
		return wrong_pem(text, params->ca_file, "no certificate of PEM is in it");
	ERR_clear_error();
	SSL_CTX_set_default_passwd_cb(context, no_password);
	if (SSL_CTX_use_certificate_chain_file(context,
					       params->certificate_file) != 1)
		return wrong_pem(text, params->certificate_file, "no certificate of PEM is in it");
	rc = load_key(params->key_file, params->certificate_file, context, text);
	return rc ? rc : check_own(params, context, text);
}

int dsm_tls_create(const struct dsm_transport_params *params, SSL_CTX **context,
		   char text[DSM_TRANSPORT_TEXT])
{
	SSL_CTX *ctx;
	int rc;

	ERR_clear_error();
	ctx = SSL_CTX_new(TLS_method());
	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_num_tickets(ctx, 0)) {
		SSL_CTX_free(ctx);
		return -ENOMEM;
	}
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
			   verify);
	SSL_CTX_set_verify_depth(ctx, DEPTH);
	SSL_CTX_set_max_cert_list(ctx, CERTIFICATES_BYTES);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
			      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* A flood of what is no data ends with each record, in our budget. */
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);

	rc = load_files(params, ctx, text);
	if (rc) {
		SSL_CTX_free(ctx);
		return rc;
	}
	*context = ctx;
	return 0;
}

SSL *dsm_tls_session(SSL_CTX *context, int fd, bool accept,
		     struct dsm_tls_who *who)
{
	SSL *ssl = SSL_new(context);

	if (!ssl)
		return NULL;
	if ((fd >= 0 && !SSL_set_fd(ssl, fd)) || !SSL_set_app_data(ssl, who)) {
		SSL_free(ssl);
		return NULL;
	}
	who->host = DSM_NOBODY;
	who->end = 0;
	who->text[0] = 0;
	if (accept)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
	return ssl;
}

/* The peer's word: does it mean us, or what has become of our bytes? */
static int end_of_alert(int alert)
{
	switch (alert) {
	case SSL_AD_UNEXPECTED_MESSAGE:
	case SSL_AD_BAD_RECORD_MAC:
	case SSL_AD_RECORD_OVERFLOW:
	case SSL_AD_DECODE_ERROR:
		return DSM_END_NOT_TLS;
	default:
		return DSM_END_REFUSED;
	}
}

static int end_of_protocol(unsigned long error)
{
	int reason = ERR_GET_REASON(error);

	if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		return DSM_END_CUT;
	if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		return DSM_END_NO_CERTIFICATE;
	if (reason == SSL_R_UNSUPPORTED_PROTOCOL ||
	    reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION)
		return DSM_END_TLS_VERSION;
	return reason >= SSL_AD_REASON_OFFSET ?
	       end_of_alert(reason - SSL_AD_REASON_OFFSET) : DSM_END_NOT_TLS;
}

/* OpenSSL has no words for a system's error, nor for each of its own. */
static int say_error(unsigned long error, char *text)
{
	const char *reason = ERR_reason_error_string(error);

	if (ERR_SYSTEM_ERROR(error)) {
		snprintf(text, DSM_TRANSPORT_TEXT, "%s", strerror(ERR_GET_REASON(error)));
		return DSM_END_CUT;
	}
	if (reason)
		snprintf(text, DSM_TRANSPORT_TEXT, "%s", reason);
	else
		snprintf(text, DSM_TRANSPORT_TEXT, "OpenSSL's error %08lX", error);
	return end_of_protocol(error);
}

int dsm_tls_end(SSL *ssl, int result, char text[DSM_TRANSPORT_TEXT])
{
	const struct dsm_tls_who *who = SSL_get_app_data(ssl);
	int saved = errno;

	switch (SSL_get_error(ssl, result)) {
	case SSL_ERROR_ZERO_RETURN:
		text[0] = 0;
		return DSM_END_CLOSED;
	case SSL_ERROR_SSL:
		if (who->end) {
			snprintf(text, DSM_TRANSPORT_TEXT, "%s", who->text);
			return who->end;
		}
		if (!ERR_peek_last_error()) {
			/* a write has failed before: the same again */
			snprintf(text, DSM_TRANSPORT_TEXT, "nothing can be sent");
			return DSM_END_CUT;
		}
		return say_error(ERR_peek_last_error(), text);
	default:
		snprintf(text, DSM_TRANSPORT_TEXT, "%s",
			 saved ? strerror(saved) : "end of the bytes");
		return DSM_END_CUT;
	}
}
