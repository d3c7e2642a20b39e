/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a kind of transport does behind transport.h.  transport.c has checked
 * the parameters, that the host is a peer and that a message fits the wire.
 * And what both kinds do alike (backend.c).
 */
#ifndef DSM_BACKEND_H
#define DSM_BACKEND_H

#include "link.h"
#include "transport.h"

struct dsm_backend {
	int (*create)(const struct dsm_transport_params *params,
		      struct dsm_transport **transport, char *text);
	void (*destroy)(struct dsm_transport *transport);
	unsigned int (*port)(const struct dsm_transport *transport);
	int (*open)(struct dsm_transport *transport, unsigned int host,
		    uint32_t epoch);
	int (*expect)(struct dsm_transport *transport, unsigned int host,
		      uint32_t epoch);
	int (*send)(struct dsm_transport *transport, unsigned int host,
		    const struct dsm_msg *msg, const uint8_t *page);
	unsigned int (*room)(const struct dsm_transport *transport,
			     unsigned int host);
	unsigned int (*version)(const struct dsm_transport *transport,
				unsigned int host);
	int (*hold)(struct dsm_transport *transport, unsigned int host,
		    bool hold);
	int (*close)(struct dsm_transport *transport, unsigned int host);
	int (*fail)(struct dsm_transport *transport, unsigned int host,
		    uint8_t reason);
	void (*tick)(struct dsm_transport *transport);
	unsigned int (*poll)(struct dsm_transport *transport);
	/* @host: DSM_NOBODY for those who did not prove to be a peer. */
	void (*counters)(const struct dsm_transport *transport,
			 unsigned int host,
			 struct dsm_transport_counters *counters);
};

/* The first member of each backend's own struct. */
struct dsm_transport {
	const struct dsm_backend *backend;
	const struct dsm_transport_params *params;
};

extern const struct dsm_backend dsm_backend_tcp, dsm_backend_rdma;

/**
 * A message has come, and its length is right.
 * Return: 0, and it has taken its credit; DSM_END_FRAME for one that the
 * connection's version does not have; DSM_END_EPOCH, _CREDITS.
 */
int dsm_backend_message(struct dsm_link *link, const struct dsm_msg *msg);

/** Return: the time, by both clocks. */
struct dsm_link_time dsm_backend_now(const struct dsm_transport *transport);

/** A connection with this epoch and version begins. */
void dsm_backend_begin(const struct dsm_transport *transport, struct dsm_link *link,
		       uint32_t epoch, unsigned int version);

/**
 * A frame of the connection itself has come.  Calls round_trip(): who calls looks
 * afterwards whether the connection is still there.
 * @text: about the end.
 * Return: as dsm_link_frame().
 */
int dsm_backend_frame(const struct dsm_transport *transport, unsigned int host,
		      struct dsm_link *link, const uint8_t bytes[DSM_WIRE_BYTES],
		      char text[DSM_TRANSPORT_TEXT]);

#endif
