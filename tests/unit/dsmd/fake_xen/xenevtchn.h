/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FAKE_XENEVTCHN_H
#define FAKE_XENEVTCHN_H

#include "event_channel.h"

typedef struct fake_handle xenevtchn_handle;
typedef int xenevtchn_port_or_error_t;

xenevtchn_handle *xenevtchn_open(void *logger, unsigned int flags);
int xenevtchn_close(xenevtchn_handle *xce);
int xenevtchn_fd(xenevtchn_handle *xce);
xenevtchn_port_or_error_t xenevtchn_bind_interdomain(xenevtchn_handle *xce, uint32_t domid,
						     evtchn_port_t port);
xenevtchn_port_or_error_t xenevtchn_pending(xenevtchn_handle *xce);
int xenevtchn_unmask(xenevtchn_handle *xce, evtchn_port_t port);

#endif
