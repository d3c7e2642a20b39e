// SPDX-License-Identifier: GPL-2.0
/*
 * Certificates, and what OpenSSL's errors mean here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "tls.h"

#define CERTIFICATES_BYTES	16384	/* of a peer, at most */
#define DEPTH			4	/* CAs between a certificate and the site's */
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

/* The peer that the certificate names; DSM_NOBODY for none or several. */
static unsigned int named_peer(X509 *certificate,
			       const struct dsm_transport_params *params)
{
	unsigned int host, found = DSM_NOBODY;

	for (host = 0; host < DSM_MAX_HOSTS; host++) {
		if (!params->peer[host].used ||
		    !has_name(certificate, params->peer[host].names))
			continue;
		if (found != DSM_NOBODY)
			return DSM_NOBODY;
		found = host;
	}
	return found;
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

/* After OpenSSL's own checks of each certificate of the chain, the CA first. */
static int verify(int ok, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store,
				SSL_get_ex_data_X509_STORE_CTX_idx());
	struct dsm_tls_who *who = SSL_get_app_data(ssl);
	X509 *certificate = X509_STORE_CTX_get_current_cert(store);
	int depth = X509_STORE_CTX_get_error_depth(store);
	char names[128];

	if (!ok) {
		int error = X509_STORE_CTX_get_error(store);

		who->end = end_of_verification(error);
		snprintf(who->text, sizeof(who->text), "%s, %d above the peer's",
			 X509_verify_cert_error_string(error), depth);
		return 0;
	}
	if (depth)
		return 1;

	say_names(certificate, names, sizeof(names));
	who->host = named_peer(certificate, who->params);
	if (!has_roles(certificate)) {
		who->end = DSM_END_ROLE;
		snprintf(who->text, sizeof(who->text),
			 "the certificate of %s lacks serverAuth or clientAuth",
			 names);
		X509_STORE_CTX_set_error(store, X509_V_ERR_INVALID_PURPOSE);
	} else if (who->host == DSM_NOBODY ||
		   (who->wanted != DSM_NOBODY && who->host != who->wanted)) {
		who->end = DSM_END_NAME;
		snprintf(who->text, sizeof(who->text),
			 "the names of the certificate are: %s", names);
		X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH);
	}
	if (who->end)
		who->host = DSM_NOBODY;
	return !who->end;
}

static const char *openssl_reason(void)
{
	unsigned long error = ERR_peek_last_error();
	const char *reason = error ? ERR_reason_error_string(error) : NULL;

	return reason ? reason : "unknown error";
}

static int wrong(char *text, const char *file, const char *what)
{
	snprintf(text, DSM_TRANSPORT_TEXT, "%s: %s", file, what);
	return -EINVAL;
}

static int check_key_file(const char *file, char *text)
{
	struct stat st;

	if (stat(file, &st))
		return wrong(text, file, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return wrong(text, file, "not a file");
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return wrong(text, file,
			     "others can read or write this key: chmod 600");
	return 0;
}

/* What the peers would say of our own certificate. */
static int check_own(const struct dsm_transport_params *params, SSL_CTX *context,
		     char *text)
{
	X509_STORE_CTX *store = X509_STORE_CTX_new();
	X509 *certificate = SSL_CTX_get0_certificate(context);
	STACK_OF(X509) *chain = NULL;
	int rc = 0;

	SSL_CTX_get0_chain_certs(context, &chain);
	if (!store || !X509_STORE_CTX_init(store,
					   SSL_CTX_get_cert_store(context),
					   certificate, chain))
		rc = -ENOMEM;
	else if (X509_verify_cert(store) != 1)
		rc = wrong(text, params->certificate_file,
			   X509_verify_cert_error_string(
				   X509_STORE_CTX_get_error(store)));
	else if (!has_roles(certificate))
		rc = wrong(text, params->certificate_file,
			   "extendedKeyUsage lacks serverAuth or clientAuth");
	else if (!has_name(certificate, params->names))
		rc = wrong(text, params->certificate_file,
			   "none of this host's names is in subjectAltName");
	X509_STORE_CTX_free(store);
	return rc;
}

static int load_files(const struct dsm_transport_params *params,
		      SSL_CTX *context, char *text)
{
	int rc = check_key_file(params->key_file, text);

	if (rc)
		return rc;
	if (SSL_CTX_load_verify_file(context, params->ca_file) != 1)
		return wrong(text, params->ca_file, openssl_reason());
	if (SSL_CTX_use_certificate_chain_file(context,
					       params->certificate_file) != 1)
		return wrong(text, params->certificate_file, openssl_reason());
	if (SSL_CTX_use_PrivateKey_file(context, params->key_file,
					SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(context) != 1)
		return wrong(text, params->key_file, openssl_reason());
	return check_own(params, context, text);
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
	if (!SSL_set_fd(ssl, fd) || !SSL_set_app_data(ssl, who)) {
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
	if (reason >= SSL_AD_REASON_OFFSET)
		return DSM_END_REFUSED;
	return DSM_END_NOT_TLS;
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
		snprintf(text, DSM_TRANSPORT_TEXT, "%s", openssl_reason());
		return end_of_protocol(ERR_peek_last_error());
	default:
		snprintf(text, DSM_TRANSPORT_TEXT, "%s",
			 saved ? strerror(saved) : "end of the bytes");
		return DSM_END_CUT;
	}
}
