// SPDX-License-Identifier: GPL-2.0
/*
 * The names of ends, and what holds for all backends.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"

static const struct {
	const char *word, *name;
} ends[DSM_NR_ENDS] = {
	[DSM_END_CLOSED] = { "closed", "closed by both ends" },
	[DSM_END_UNREACHABLE] = { "unreachable", "could not connect" },
	[DSM_END_CUT] = { "cut", "cut off" },
	[DSM_END_SILENT] = { "silent", "a question was not answered in time" },
	[DSM_END_SLOW] = { "slow", "opening or closing took too long" },
	[DSM_END_FAILED] = { "failed", "the peer says that the VM has failed" },
	[DSM_END_OVER] = { "over", "the peer says that the VM has ended" },
	[DSM_END_STRANGER] = { "stranger", "not the address of a peer" },
	[DSM_END_CROWD] = { "crowd", "too many have not said who they are" },
	[DSM_END_OFTEN] = { "often", "too many attempts from there have failed" },
	[DSM_END_NOT_TLS] = { "not_tls", "no TLS, or changed on the way" },
	[DSM_END_TLS_VERSION] = { "tls_version", "older than TLS 1.3" },
	[DSM_END_NO_CERTIFICATE] = { "no_certificate", "no certificate" },
	[DSM_END_ISSUER] = { "issuer", "a certificate that is not by the CA of the site" },
	[DSM_END_EXPIRED] = { "expired", "a certificate that has expired" },
	[DSM_END_NOT_YET] = { "not_yet", "a certificate that is not valid yet" },
	[DSM_END_NAME] = { "name", "a certificate with other names" },
	[DSM_END_ROLE] = { "role", "a certificate that is not for both ends" },
	[DSM_END_CERTIFICATE] = { "certificate", "a certificate that is not good" },
	[DSM_END_REFUSED] = { "refused", "the peer does not accept us" },
	[DSM_END_HELLO] = { "hello", "no HELLO" },
	[DSM_END_VERSION] = { "version", "no common version of the protocol" },
	[DSM_END_HOST] = { "host", "HELLO of another host than the certificate's" },
	[DSM_END_NR_HOSTS] = { "nr_hosts", "HELLO with another number of hosts" },
	[DSM_END_VM] = { "vm", "HELLO of another VM" },
	[DSM_END_EPOCH] = { "epoch", "an epoch that can't be" },
	[DSM_END_UNEXPECTED] = { "unexpected", "nobody waits for this peer" },
	[DSM_END_BINDING] = { "binding", "RDMA by somebody who has proved nothing" },
	[DSM_END_FRAME] = { "frame", "bytes that are no message" },
	[DSM_END_CREDITS] = { "credits", "a message without a credit" },
	[DSM_END_TURN] = { "turn", "a question, an answer or a credit out of turn" },
	[DSM_END_QUEUE] = { "queue", "more to send than the queue takes" },
	[DSM_END_LOCAL] = { "local", "no socket or no memory here" },
};

const char *dsm_end_name(unsigned int end)
{
	return end && end < DSM_NR_ENDS ? ends[end].name : "?";
}

const char *dsm_end_word(unsigned int end)
{
	return end && end < DSM_NR_ENDS ? ends[end].word : "?";
}

static const char *wrong_numbers(const struct dsm_transport_params *p)
{
	if (p->nr_hosts < 2 || p->nr_hosts > DSM_MAX_HOSTS ||
	    p->self >= p->nr_hosts)
		return "numbers of hosts";
	if (p->credits < DSM_CREDITS_LEAST || p->credits > DSM_CREDITS_MOST)
		return "credits";
	if (!p->queue || p->queue > DSM_QUEUE_MOST)
		return "queue";
	if (!p->strangers || p->strangers > DSM_STRANGERS_MOST)
		return "strangers";
	if (!p->opening_ns || !p->question_ns ||
	    p->deadline_ns <= p->question_ns)
		return "times";
	if (!p->rekey_records || p->rekey_records > 1u << 24)
		return "rekey_records";
	if (p->tsc && (p->tsc_khz < DSM_CLOCK_KHZ_LEAST ||
		       p->tsc_khz > DSM_CLOCK_KHZ_MOST))
		return "tsc_khz";
	return NULL;
}

static const char *wrong_peers(const struct dsm_transport_params *p)
{
	unsigned int host, family;

	for (host = 0; host < DSM_MAX_HOSTS; host++) {
		if (!p->peer[host].used)
			continue;
		family = p->peer[host].address.ss_family;
		if (host >= p->nr_hosts || host == p->self)
			return "a peer that can't be one";
		if (family != AF_INET && family != AF_INET6)
			return "a peer without an address";
		if (!p->peer[host].names[0])
			return "a peer without a name";
	}
	return p->names[0] ? NULL : "no name of our own";
}

/* A write to a connection that is gone must be an error, not a death. */
static bool sigpipe_kills(void)
{
	struct sigaction now;

	return sigaction(SIGPIPE, NULL, &now) || now.sa_handler == SIG_DFL;
}

int dsm_transport_create(const struct dsm_transport_params *params,
			 struct dsm_transport **transport,
			 char text[DSM_TRANSPORT_TEXT])
{
	const char *wrong = wrong_numbers(params);

	if (!wrong)
		wrong = wrong_peers(params);
	if (!wrong && sigpipe_kills())
		wrong = "SIGPIPE is not ignored";
	if (!wrong && params->kind == DSM_TRANSPORT_RDMA &&
	    !params->trusted_fabric)
		wrong = "RDMA needs trusted_fabric: it is not encrypted";
	if (wrong) {
		snprintf(text, DSM_TRANSPORT_TEXT, "parameters: %s", wrong);
		return -EINVAL;
	}
	return (params->kind == DSM_TRANSPORT_RDMA ? &dsm_backend_rdma :
						     &dsm_backend_tcp)
		->create(params, transport, text);
}

void dsm_transport_destroy(struct dsm_transport *transport)
{
	if (transport)
		transport->backend->destroy(transport);
}

unsigned int dsm_transport_port(const struct dsm_transport *transport)
{
	return transport->backend->port(transport);
}

static bool is_peer(const struct dsm_transport *transport, unsigned int host)
{
	return host < DSM_MAX_HOSTS && transport->params->peer[host].used;
}

int dsm_transport_open(struct dsm_transport *transport, unsigned int host,
		       uint32_t epoch)
{
	if (!is_peer(transport, host) || !epoch ||
	    host > transport->params->self)
		return -EINVAL;
	return transport->backend->open(transport, host, epoch);
}

int dsm_transport_expect(struct dsm_transport *transport, unsigned int host,
			 uint32_t epoch)
{
	if (!is_peer(transport, host) || !epoch ||
	    host < transport->params->self)
		return -EINVAL;
	return transport->backend->expect(transport, host, epoch);
}

int dsm_transport_send(struct dsm_transport *transport, unsigned int host,
		       const struct dsm_msg *msg, const uint8_t *page)
{
	unsigned int version = dsm_transport_version(transport, host);

	if (!is_peer(transport, host))
		return -ENOTCONN;
	if (!dsm_type_is_vcpu(msg->type) &&
	    (!msg->type || msg->type >= DSM_NR_TYPES))
		return -EINVAL;
	if (msg->reason >= DSM_NR_REASONS ||
	    (dsm_type_bytes(msg->type) != 0) != (page != NULL))
		return -EINVAL;
	if (dsm_wire_version(msg->type) > version)
		return version ? -EPROTONOSUPPORT : -ENOTCONN;
	return transport->backend->send(transport, host, msg, page);
}

unsigned int dsm_transport_room(const struct dsm_transport *transport,
				unsigned int host)
{
	return is_peer(transport, host) ?
	       transport->backend->room(transport, host) : 0;
}

unsigned int dsm_transport_version(const struct dsm_transport *transport,
				   unsigned int host)
{
	return is_peer(transport, host) ?
	       transport->backend->version(transport, host) : 0;
}

int dsm_transport_hold(struct dsm_transport *transport, unsigned int host,
		       bool hold)
{
	return is_peer(transport, host) ?
	       transport->backend->hold(transport, host, hold) : -ENOTCONN;
}

int dsm_transport_close(struct dsm_transport *transport, unsigned int host)
{
	return is_peer(transport, host) ?
	       transport->backend->close(transport, host) : -ENOTCONN;
}

int dsm_transport_fail(struct dsm_transport *transport, unsigned int host,
		       uint8_t reason)
{
	return is_peer(transport, host) ?
	       transport->backend->fail(transport, host, reason) : -ENOTCONN;
}

void dsm_transport_tick(struct dsm_transport *transport)
{
	transport->backend->tick(transport);
}

unsigned int dsm_transport_poll(struct dsm_transport *transport)
{
	return transport->backend->poll(transport);
}

int dsm_transport_counts(const struct dsm_transport *transport,
			   unsigned int host,
			   struct dsm_transport_counters *counters)
{
	if (!is_peer(transport, host) && host != DSM_NOBODY)
		return -EINVAL;
	transport->backend->counters(transport, host, counters);
	return 0;
}
