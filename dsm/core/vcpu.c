// SPDX-License-Identifier: GPL-2.0
/*
 * Messages about vCPUs: as bytes, put together, and what a call is about.
 */
#include <string.h>

#include "vcpu.h"

#define FIRST_VECTOR	16
#define MOST_ERRNO	4095
#define ERRNO_RESTART	85	/* Xen's: no result, but "not yet" */
#define MOST_SHIFT	31

/* What a type has. */
#define VCPU	0x01
#define FLAGS	0x02
#define SIPI	0x04
#define NUMBER	0x08
#define THE_CALL 0x10
#define RC	0x20

static const struct shape {
	uint8_t has, words;
} shapes[DSM_VCPU_END - DSM_VCPU_EVENT] = {
	[DSM_VCPU_EVENT - DSM_VCPU_EVENT] = { VCPU | FLAGS | SIPI, 4 },
	[DSM_VCPU_PORTS - DSM_VCPU_EVENT] = { NUMBER, 4 },
	[DSM_VCPU_CALL - DSM_VCPU_EVENT] = { VCPU | NUMBER | THE_CALL, 4 },
	[DSM_VCPU_REPLY - DSM_VCPU_EVENT] = { VCPU | NUMBER | RC, 3 },
	[DSM_VCPU_SHUTDOWN - DSM_VCPU_EVENT] = { FLAGS, 0 },
	[DSM_VCPU_TIME - DSM_VCPU_EVENT] = { FLAGS | SIPI | NUMBER, 3 },
	[DSM_VCPU_READY - DSM_VCPU_EVENT] = { FLAGS, 0 },
	[DSM_VCPU_IDLE - DSM_VCPU_EVENT] = { NUMBER, 3 },
	[DSM_VCPU_STOP - DSM_VCPU_EVENT] = { NUMBER, 1 },
	[DSM_VCPU_FENCE - DSM_VCPU_EVENT] = { NUMBER, 0 },
	[DSM_VCPU_QUIET - DSM_VCPU_EVENT] = { VCPU | FLAGS | NUMBER, 1 },
	[DSM_VCPU_PLACE - DSM_VCPU_EVENT] = { VCPU | NUMBER, 3 },
	[DSM_VCPU_PLACED - DSM_VCPU_EVENT] = { VCPU | FLAGS | NUMBER, 1 },
	[DSM_VCPU_GO - DSM_VCPU_EVENT] = { NUMBER, 0 },
	[DSM_VCPU_ACCESS - DSM_VCPU_EVENT] = { VCPU | FLAGS | NUMBER, 3 },
	[DSM_VCPU_ACCESSED - DSM_VCPU_EVENT] = { VCPU | FLAGS | NUMBER, 1 },
	[DSM_VCPU_PAUSE - DSM_VCPU_EVENT] = { FLAGS, 0 },
	[DSM_VCPU_PAUSED - DSM_VCPU_EVENT] = { FLAGS, 0 },
	[DSM_VCPU_TSC - DSM_VCPU_EVENT] = { NUMBER, 0 },
};

static void put(uint8_t *bytes, uint64_t value, unsigned int size)
{
	unsigned int i;

	for (i = 0; i < size; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *bytes, unsigned int size)
{
	uint64_t value = 0;

	while (size--)
		value = value << 8 | bytes[size];
	return value;
}

void dsm_vcpu_put(const struct dsm_vcpu_msg *msg, uint8_t bytes[DSM_VCPU_BYTES])
{
	unsigned int i;

	put(bytes, msg->vcpu, 4);
	bytes[4] = msg->flags;
	bytes[5] = msg->sipi;
	put(bytes + 6, 0, 2);
	put(bytes + 8, msg->number, 8);
	put(bytes + 16, msg->op, 4);
	put(bytes + 20, msg->cmd, 4);
	put(bytes + 24, msg->about, 4);
	put(bytes + 28, (uint32_t)msg->rc, 4);
	for (i = 0; i < DSM_VCPU_WORDS; i++)
		put(bytes + 32 + 8 * i, msg->word[i], 8);
}

static bool has_only(const struct dsm_vcpu_msg *m, const struct shape *s)
{
	unsigned int i;

	for (i = s->words; i < DSM_VCPU_WORDS; i++)
		if (m->word[i])
			return false;
	return (s->has & VCPU || !m->vcpu) && (s->has & FLAGS || !m->flags) &&
	       (s->has & SIPI || !m->sipi) && (s->has & NUMBER || !m->number) &&
	       (s->has & THE_CALL || !(m->op | m->cmd | m->about)) &&
	       (s->has & RC || !m->rc);
}

static int check_event(const struct dsm_vcpu_msg *m)
{
	if (m->flags & ~(DSM_EVENT_INIT | DSM_EVENT_SIPI | DSM_EVENT_NMI))
		return -DSM_E_FLAGS;
	if (m->sipi && !(m->flags & DSM_EVENT_SIPI))
		return -DSM_E_FLAGS;
	return m->word[0] & ((1u << FIRST_VECTOR) - 1) ? -DSM_E_VECTOR : 0;
}

static int check_time(const struct dsm_vcpu_msg *m)
{
	int shift = (int8_t)m->sipi;

	return !m->word[2] || m->word[2] > UINT32_MAX || shift < -MOST_SHIFT ||
	       shift > MOST_SHIFT || !m->flags || m->flags > DSM_MOST_SLOW ?
	       -DSM_E_TIME : 0;
}

static bool is_wider(uint64_t value, unsigned int width)
{
	return width < 8 && value >> 8 * width;
}

static int check_access(const struct dsm_vcpu_msg *m)
{
	unsigned int what = m->flags & DSM_ACCESS_WHAT, width = DSM_ACCESS_WIDTH(m->flags);

	if (!what || what > DSM_ACCESS_CMPXCHG || m->flags >> 6)
		return -DSM_E_FLAGS;
	/* Within 8 bytes that are aligned. */
	if (m->word[0] % 8 + width > 8 || is_wider(m->word[1], width) ||
	    is_wider(m->word[2], width) ||
	    (what != DSM_ACCESS_CMPXCHG && m->word[1]) || (what == DSM_ACCESS_READ && m->word[2]))
		return -DSM_E_ACCESS;
	return 0;
}

static int check(const struct dsm_vcpu_msg *m)
{
	switch (m->type) {
	case DSM_VCPU_EVENT:
		return check_event(m);
	case DSM_VCPU_PORTS:
		return m->number % DSM_PORTS_AT_ONCE || m->number >= DSM_PORTS ?
		       -DSM_E_PORT : 0;
	case DSM_VCPU_REPLY:
		return m->rc > 0 || m->rc < -MOST_ERRNO || m->rc == -ERRNO_RESTART ?
		       -DSM_E_RESULT : 0;
	case DSM_VCPU_SHUTDOWN:
		return m->flags >= DSM_SHUTDOWNS ? -DSM_E_REASON : 0;
	case DSM_VCPU_TIME:
		return check_time(m);
	case DSM_VCPU_READY:
		return m->flags >= DSM_NOT_VERSION ? -DSM_E_REASON : 0;
	case DSM_VCPU_QUIET:
		return m->flags & ~DSM_QUIET_CALLING ? -DSM_E_FLAGS : 0;
	case DSM_VCPU_ACCESS:
		return check_access(m);
	case DSM_VCPU_ACCESSED:
		if (m->flags & ~DSM_ACCESS_AGAIN)
			return -DSM_E_FLAGS;
		return m->flags && m->word[0] ? -DSM_E_ACCESS : 0;
	case DSM_VCPU_PAUSE:
	case DSM_VCPU_PAUSED:
		return m->flags & ~DSM_PAUSE_ON ? -DSM_E_FLAGS : 0;
	case DSM_VCPU_PLACED:
		return m->flags >= DSM_PLACEDS ? -DSM_E_REASON : 0;
	}
	return 0;
}

int dsm_vcpu_get(const uint8_t bytes[DSM_VCPU_BYTES], unsigned int type,
		 struct dsm_vcpu_msg *msg)
{
	struct dsm_vcpu_msg m = {
		.type = (uint8_t)type,
		.vcpu = (uint32_t)get(bytes, 4),
		.flags = bytes[4],
		.sipi = bytes[5],
		.number = get(bytes + 8, 8),
		.op = (uint32_t)get(bytes + 16, 4),
		.cmd = (uint32_t)get(bytes + 20, 4),
		.about = (uint32_t)get(bytes + 24, 4),
		.rc = (int32_t)(uint32_t)get(bytes + 28, 4),
	};
	unsigned int i;
	int rc;

	if (dsm_type_bytes(type) != DSM_VCPU_BYTES)
		return -DSM_E_TYPE;
	for (i = 0; i < DSM_VCPU_WORDS; i++)
		m.word[i] = get(bytes + 32 + 8 * i, 8);
	if (get(bytes + 6, 2) || !has_only(&m, &shapes[type - DSM_VCPU_EVENT]))
		return -DSM_E_RESERVED;
	rc = check(&m);
	if (!rc)
		*msg = m;
	return rc;
}

void dsm_vcpu_merge(struct dsm_vcpu_msg *owed, const struct dsm_vcpu_msg *next)
{
	unsigned int i;

	if (next->flags & DSM_EVENT_INIT) {
		*owed = *next;
		return;
	}
	/* Of several SIPIs the first one after an INIT is heard. */
	if (next->flags & DSM_EVENT_SIPI && !(owed->flags & DSM_EVENT_SIPI))
		owed->sipi = next->sipi;
	owed->flags |= next->flags;
	for (i = 0; i < DSM_VCPU_WORDS; i++)
		owed->word[i] |= next->word[i];
}

/* Xen's numbers; its table is that of hvm/dsm_route.c. */
#define VCPU_OP			24
#define EVENT_CHANNEL_OP	32
#define HVM_OP			34

static const struct {
	uint32_t op, cmd;
	uint8_t concern, port_at;	/* the byte of arg */
} calls[] = {
	{ VCPU_OP, 10, DSM_CALL_OF_VCPU, 0 },		/* register_vcpu_info */
	{ HVM_OP, 23, DSM_CALL_OF_VCPU, 0 },		/* set_evtchn_upcall_vector */
	{ EVENT_CHANNEL_OP, 7, DSM_CALL_OF_VCPU, 0 },	/* bind_ipi */
	{ EVENT_CHANNEL_OP, 1, DSM_CALL_OF_VCPU, 0 },	/* bind_virq */
	{ EVENT_CHANNEL_OP, 9, DSM_CALL_OF_PORT, 0 },	/* unmask */
	{ EVENT_CHANNEL_OP, 3, DSM_CALL_OF_PORT, 0 },	/* close */
	{ EVENT_CHANNEL_OP, 5, DSM_CALL_OF_PORT, 4 },	/* status */
};

enum dsm_call_concern dsm_call_concern(const struct dsm_vcpu_msg *call, uint32_t *port)
{
	unsigned int i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].op != call->op || calls[i].cmd != call->cmd)
			continue;
		*port = (uint32_t)(call->word[0] >> 8 * calls[i].port_at);
		return (enum dsm_call_concern)calls[i].concern;
	}
	return DSM_CALL_NOT_DONE;
}

unsigned int dsm_ports(unsigned int nr_slices)
{
	unsigned int ports = DSM_PORTS;

	while (ports * nr_slices > DSM_PORTS)
		ports /= 2;
	return ports;
}

unsigned int dsm_port_slice(uint32_t port, unsigned int nr_slices)
{
	unsigned int ports = dsm_ports(nr_slices);

	return port < ports * nr_slices ? port / ports : nr_slices;
}
