// SPDX-License-Identifier: GPL-2.0
#include <stdbool.h>
#include <sys/stat.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "case.h"
#include "papers.h"

#define DAY	86400

static void add_extension(X509 *certificate, X509V3_CTX *context, int nid,
			  const char *value)
{
	X509_EXTENSION *extension;

	if (!value)
		return;
	extension = X509V3_EXT_conf_nid(NULL, context, nid, value);
	CHECK(extension && X509_add_ext(certificate, extension, -1), "%s", value);
	X509_EXTENSION_free(extension);
}

struct papers papers_make(const struct wanted *wanted,
			  const struct papers *issuer)
{
	struct papers made = { X509_new(), EVP_EC_gen("P-256") };
	const struct papers *by = issuer ? issuer : &made;
	X509 *c = made.certificate;
	static long serial;
	X509V3_CTX context;
	X509_NAME *name;

	CHECK(c && made.key, "a certificate");
	name = X509_get_subject_name(c);
	CHECK(X509_set_version(c, X509_VERSION_3) &&
	      ASN1_INTEGER_set(X509_get_serialNumber(c), ++serial) &&
	      X509_gmtime_adj(X509_getm_notBefore(c), (long)wanted->from * DAY) &&
	      X509_gmtime_adj(X509_getm_notAfter(c), (long)wanted->to * DAY) &&
	      X509_set_pubkey(c, made.key) &&
	      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
			(const unsigned char *)wanted->subject, -1, -1, 0) &&
	      X509_set_issuer_name(c, X509_get_subject_name(by->certificate)),
	      "its fields");
	X509V3_set_ctx(&context, by->certificate, c, NULL, NULL, 0);
	add_extension(c, &context, NID_basic_constraints,
		      wanted->ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
	add_extension(c, &context, NID_subject_alt_name, wanted->names);
	add_extension(c, &context, NID_ext_key_usage, wanted->usage);
	CHECK(X509_sign(c, by->key, EVP_sha256()), "its signature");
	return made;
}

void papers_add(struct papers *papers, const struct papers *issuer, int nid,
		const char *value)
{
	X509V3_CTX context;

	X509V3_set_ctx(&context, issuer->certificate, papers->certificate, NULL,
		       NULL, 0);
	add_extension(papers->certificate, &context, nid, value);
	CHECK(X509_sign(papers->certificate, issuer->key, EVP_sha256()),
	      "its signature");
}

void papers_free(struct papers *papers)
{
	X509_free(papers->certificate);
	EVP_PKEY_free(papers->key);
	papers->certificate = NULL;
	papers->key = NULL;
}

void papers_write(const struct papers *papers, const char *certificate,
		  const char *key, unsigned int mode)
{
	FILE *file;

	if (certificate) {
		file = fopen(certificate, "w");
		CHECK(file && PEM_write_X509(file, papers->certificate) &&
		      !fclose(file), "%s", certificate);
	}
	if (key) {
		file = fopen(key, "w");
		CHECK(file && PEM_write_PrivateKey(file, papers->key, NULL, NULL,
						   0, NULL, NULL) &&
		      !fclose(file) && !chmod(key, mode), "%s", key);
	}
}

void papers_append(const struct papers *papers, const char *certificate)
{
	FILE *file = fopen(certificate, "a");

	CHECK(file && PEM_write_X509(file, papers->certificate) && !fclose(file),
	      "%s", certificate);
}

void papers_encrypt_key(const struct papers *papers, const char *key)
{
	FILE *file = fopen(key, "w");

	CHECK(file && PEM_write_PKCS8PrivateKey(file, papers->key,
						EVP_aes_256_cbc(), NULL, 0, NULL,
						(void *)"secret") &&
	      !fclose(file) && !chmod(key, 0600), "%s", key);
}
