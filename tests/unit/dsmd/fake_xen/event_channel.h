/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FAKE_EVENT_CHANNEL_H
#define FAKE_EVENT_CHANNEL_H

#include <stdint.h>

typedef uint32_t evtchn_port_t;

#endif
