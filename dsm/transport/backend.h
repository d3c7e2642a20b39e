/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a kind of transport does behind transport.h.  transport.c has checked
 * the parameters, that the host is a peer and that a message fits the wire.
 */
#ifndef DSM_BACKEND_H
#define DSM_BACKEND_H

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

#endif
