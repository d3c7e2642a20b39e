// SPDX-License-Identifier: GPL-2.0
/*
 * What both kinds of transport do alike (backend.h).
 */
#include <stdio.h>

#include "backend.h"

struct dsm_link_time dsm_backend_now(const struct dsm_transport *transport)
{
	const struct dsm_transport_params *params = transport->params;

	return (struct dsm_link_time){
		.ns = params->now(params->context),
		.tsc = params->tsc ? params->tsc(params->context) : 0,
	};
}

void dsm_backend_begin(const struct dsm_transport *transport, struct dsm_link *link,
		       uint32_t epoch, unsigned int version)
{
	const struct dsm_transport_params *params = transport->params;

	dsm_link_init(link, epoch, params->credits, params->question_ns,
		      params->deadline_ns);
	dsm_link_speak(link, version, params->tsc ? params->tsc_khz : 0);
}

int dsm_backend_message(struct dsm_link *link, const struct dsm_msg *msg)
{
	if (msg->epoch != link->epoch)
		return DSM_END_EPOCH;
	if (dsm_wire_version(msg->type) > link->version)
		return DSM_END_FRAME;
	return dsm_link_received(link);
}

/* A peer's word: any number. */
static void say_why(const struct dsm_transport_params *params, unsigned int host,
		    unsigned int reason, char text[DSM_TRANSPORT_TEXT])
{
	unsigned int lost = reason - DSM_FAIL_LOST;
	const struct dsm_transport_peer *peer = &params->peer[lost % DSM_MAX_HOSTS];

	if (lost >= DSM_MAX_HOSTS || (lost != params->self && !peer->used)) {
		snprintf(text, DSM_TRANSPORT_TEXT, "reason %u (%s)", reason,
			 dsm_reason_name(reason));
	} else if (lost == params->self) {
		snprintf(text, DSM_TRANSPORT_TEXT, "it has lost this host");
	} else {
		snprintf(text, DSM_TRANSPORT_TEXT, "it has lost host %s",
			 peer->name ? peer->name : peer->names[0]);
		if (lost != host && params->calls->lost)
			params->calls->lost(params->context, host, lost);
	}
}

int dsm_backend_frame(const struct dsm_transport *transport, unsigned int host,
		      struct dsm_link *link, const uint8_t bytes[DSM_WIRE_BYTES],
		      char text[DSM_TRANSPORT_TEXT])
{
	const struct dsm_transport_params *params = transport->params;
	struct dsm_link_said said;
	int reason = dsm_link_frame(link, bytes, dsm_backend_now(transport), &said);

	text[0] = 0;
	if (reason == DSM_END_FAILED && said.reason == DSM_FAIL_OVER)
		reason = DSM_END_OVER;
	else if (reason == DSM_END_FAILED)
		say_why(params, host, said.reason, text);
	if (!reason && said.round_trip)
		params->calls->round_trip(params->context, host, said.round_trip,
					  said.clock.khz ? &said.clock : NULL);
	return reason;
}
