// SPDX-License-Identifier: GPL-2.0
/*
 * The proof in the private data of an RDMA connection.
 */
#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "binding.h"
#include "link.h"

#define HMAC_BYTES	32
#define ENDS_BYTES	(2 * 16 + 2 * 4)
#define INPUT_BYTES	(4 + 3 * DSM_BINDING_NONCE + ENDS_BYTES)

static const char label[] = "EXPORTER-xenuma-dsm-rdma-binding";

static void put16(uint8_t *bytes, uint16_t value)
{
	bytes[0] = (uint8_t)value;
	bytes[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *bytes, uint32_t value)
{
	put16(bytes, (uint16_t)value);
	put16(bytes + 2, (uint16_t)(value >> 16));
}

static uint32_t get32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
	       (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	uint8_t any = 0;

	while (size--)
		any |= bytes[size];
	return !any;
}

int dsm_binding_init(struct dsm_binding *binding, SSL *ssl, bool accepted,
		     uint8_t self, uint8_t host, uint32_t epoch, uint16_t port)
{
	*binding = (struct dsm_binding){
		.accepted = accepted,
		.opener = accepted ? host : self,
		.acceptor = accepted ? self : host,
		.epoch = epoch,
		.port = port,
	};
	if (SSL_export_keying_material(ssl, binding->key, sizeof(binding->key),
				       label, sizeof(label) - 1, NULL, 0,
				       0) != 1 ||
	    RAND_bytes(binding->ours, sizeof(binding->ours)) != 1 ||
	    (accepted && RAND_bytes(binding->session,
				    sizeof(binding->session)) != 1))
		return -EIO;
	return 0;
}

void dsm_binding_put(const struct dsm_binding *binding,
		     uint8_t bytes[DSM_BINDING_FRAME])
{
	memset(bytes, 0, DSM_BINDING_FRAME);
	bytes[0] = DSM_LINK_MARK;
	bytes[1] = DSM_BINDING_KIND;
	put32(bytes + 4, binding->epoch);
	if (binding->accepted) {
		put16(bytes + 2, binding->port);
		memcpy(bytes + 8, binding->session, sizeof(binding->session));
	}
	memcpy(bytes + 24, binding->ours, sizeof(binding->ours));
}

int dsm_binding_get(struct dsm_binding *binding,
		    const uint8_t bytes[DSM_BINDING_FRAME])
{
	const uint8_t *session = bytes + 8;
	uint16_t port = (uint16_t)(bytes[2] | bytes[3] << 8);

	if (bytes[0] != DSM_LINK_MARK || bytes[1] != DSM_BINDING_KIND ||
	    get32(bytes + 4) != binding->epoch)
		return -EINVAL;
	/* Only the acceptor has a port and a session. */
	if ((port != 0) == binding->accepted ||
	    is_zero(session, DSM_BINDING_NONCE) != binding->accepted)
		return -EINVAL;
	if (!binding->accepted) {
		binding->port = port;
		memcpy(binding->session, session, sizeof(binding->session));
	}
	memcpy(binding->theirs, bytes + 24, sizeof(binding->theirs));
	binding->usable = true;
	return 0;
}

static int authenticate(const struct dsm_binding *binding, bool answer,
			const struct dsm_binding_ends *ends,
			uint8_t hmac[HMAC_BYTES])
{
	const uint8_t *opener = binding->accepted ? binding->theirs :
						    binding->ours;
	const uint8_t *acceptor = binding->accepted ? binding->ours :
						      binding->theirs;
	uint8_t input[INPUT_BYTES], *at = input;
	unsigned int size = HMAC_BYTES;

	*at++ = answer ? 2 : 1;
	*at++ = binding->opener;
	*at++ = binding->acceptor;
	*at++ = 0;
	memcpy(at, binding->session, DSM_BINDING_NONCE);
	memcpy(at + 16, opener, DSM_BINDING_NONCE);
	memcpy(at + 32, acceptor, DSM_BINDING_NONCE);
	memcpy(at + 48, ends->opener_gid, 16);
	memcpy(at + 64, ends->acceptor_gid, 16);
	put32(at + 80, ends->opener_qp);
	put32(at + 84, answer ? ends->acceptor_qp : 0);
	return HMAC(EVP_sha256(), binding->key, sizeof(binding->key), input,
		    sizeof(input), hmac, &size) && size == HMAC_BYTES ? 0 :
								       -EIO;
}

int dsm_binding_prove(const struct dsm_binding *binding, bool answer,
		      const struct dsm_binding_ends *ends,
		      uint8_t bytes[DSM_BINDING_PRIVATE])
{
	memcpy(bytes, binding->session, DSM_BINDING_NONCE);
	return authenticate(binding, answer, ends, bytes + DSM_BINDING_NONCE);
}

bool dsm_binding_is_for(const struct dsm_binding *binding, const void *bytes,
			size_t size)
{
	return binding->usable && size >= DSM_BINDING_PRIVATE &&
	       !CRYPTO_memcmp(bytes, binding->session, DSM_BINDING_NONCE);
}

bool dsm_binding_holds(struct dsm_binding *binding, bool answer,
		       const struct dsm_binding_ends *ends, const void *bytes,
		       size_t size)
{
	const uint8_t *theirs = bytes;
	uint8_t right[HMAC_BYTES];

	if (!dsm_binding_is_for(binding, bytes, size) ||
	    authenticate(binding, answer, ends, right) ||
	    CRYPTO_memcmp(theirs + DSM_BINDING_NONCE, right, HMAC_BYTES))
		return false;
	binding->usable = false;
	return true;
}

void dsm_binding_clear(struct dsm_binding *binding)
{
	OPENSSL_cleanse(binding, sizeof(*binding));
}
