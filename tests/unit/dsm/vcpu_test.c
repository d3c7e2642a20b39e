// SPDX-License-Identifier: GPL-2.0
/*
 * Messages about vCPUs: there and back, fixed bytes, whatever else may come, how
 * events are put together, and what a call is about.
 */
#include "case.h"
#include "dice.h"
#include "vcpu.h"

#define ROUNDS	100000
#define NR(a)	(sizeof(a) / sizeof((a)[0]))

static uint64_t number(void)
{
	return dice() >> dice_below(64);
}

/* One of the right form. */
static struct dsm_vcpu_msg any_message(void)
{
	unsigned int i, type = DSM_VCPU_EVENT + dice_below(DSM_VCPU_POLICY + 2 - DSM_VCPU_EVENT);
	struct dsm_vcpu_msg m = {
		.type = (uint8_t)(type < DSM_VCPU_POLICY ? type : type + DSM_VCPU_ACCESS - DSM_VCPU_POLICY),
	};
	uint64_t all;

	switch (m.type) {
	case DSM_VCPU_EVENT:
		m.vcpu = (uint32_t)number();
		m.flags = (uint8_t)dice_below(8);
		if (m.flags & DSM_EVENT_SIPI)
			m.sipi = (uint8_t)dice();
		for (i = 0; i < 4; i++)
			m.word[i] = number();
		m.word[0] &= ~0xffffull;
		break;
	case DSM_VCPU_PORTS:
		m.number = 256 * dice_below(16);
		for (i = 0; i < 4; i++)
			m.word[i] = number();
		break;
	case DSM_VCPU_CALL:
		m.op = (uint32_t)number();
		m.cmd = (uint32_t)number();
		m.about = (uint32_t)number();
		m.word[3] = number();
		/* fall through */
	case DSM_VCPU_REPLY:
		m.vcpu = (uint32_t)number();
		m.number = number();
		for (i = 0; i < 3; i++)
			m.word[i] = number();
		if (m.type == DSM_VCPU_REPLY && dice_below(2))
			m.rc = -1 - (int)dice_below(84);
		break;
	case DSM_VCPU_SHUTDOWN:
		m.flags = (uint8_t)dice_below(6);
		break;
	case DSM_VCPU_IDLE:
		m.number = number();
		for (i = 0; i < 3; i++)
			m.word[i] = number();
		break;
	case DSM_VCPU_TSC:
		m.number = number();
		break;
	case DSM_VCPU_PAUSE:
	case DSM_VCPU_PAUSED:
		m.flags = (uint8_t)dice_below(2);
		break;
	case DSM_VCPU_READY:
		m.flags = (uint8_t)dice_below(DSM_NOT_VERSION);
		break;
	case DSM_VCPU_QUIET:
	case DSM_VCPU_PLACED:
		m.flags = (uint8_t)dice_below(m.type == DSM_VCPU_QUIET ? 2 : DSM_PLACEDS);
		m.vcpu = (uint32_t)number();
		/* fall through */
	case DSM_VCPU_STOP:
		m.word[0] = number();
		/* fall through */
	case DSM_VCPU_FENCE:
	case DSM_VCPU_GO:
		m.number = number();
		break;
	case DSM_VCPU_PLACE:
		m.vcpu = (uint32_t)number();
		m.number = number();
		for (i = 0; i < 3; i++)
			m.word[i] = number();
		break;
	case DSM_VCPU_ACCESS:
		m.flags = (uint8_t)(1 + dice_below(3) + 16 * dice_below(4));
		all = UINT64_MAX >> (64 - 8 * DSM_ACCESS_WIDTH(m.flags));
		m.word[0] = number() / 8 * 8 + dice_below(9 - DSM_ACCESS_WIDTH(m.flags));
		m.word[1] = (m.flags & 15) == DSM_ACCESS_CMPXCHG ? number() & all : 0;
		m.word[2] = (m.flags & 15) == DSM_ACCESS_READ ? 0 : number() & all;
		m.vcpu = (uint32_t)number();
		m.number = number();
		break;
	case DSM_VCPU_ACCESSED:
		m.flags = (uint8_t)dice_below(2);
		m.word[0] = m.flags ? 0 : number();
		m.vcpu = (uint32_t)number();
		m.number = number();
		break;
	case DSM_VCPU_TIME:
		m.number = number();
		m.word[0] = number();
		m.word[1] = number();
		m.word[2] = 1 + dice() % UINT32_MAX;
		m.sipi = (uint8_t)((int)dice_below(63) - 31);
		m.flags = (uint8_t)(1 + dice_below(100));
		break;
	}
	return m;
}

static bool same(const struct dsm_vcpu_msg *a, const struct dsm_vcpu_msg *b)
{
	return a->type == b->type && a->flags == b->flags && a->sipi == b->sipi &&
	       a->vcpu == b->vcpu && a->number == b->number && a->op == b->op &&
	       a->cmd == b->cmd && a->about == b->about && a->rc == b->rc &&
	       !memcmp(a->word, b->word, sizeof(a->word));
}

static void round_trip(const void *argument)
{
	uint8_t bytes[DSM_VCPU_BYTES];
	struct dsm_vcpu_msg msg, back;
	unsigned int i;
	int rc;

	(void)argument;
	dice_begin();
	for (i = 0; i < ROUNDS; i++) {
		msg = any_message();
		dsm_vcpu_put(&msg, bytes);
		rc = dsm_vcpu_get(bytes, msg.type, &back);
		CHECK(!rc && same(&msg, &back), "%s: %d", dsm_type_name(msg.type), rc);
	}
}

static void known_bytes(const void *argument)
{
	static const uint8_t expected[DSM_VCPU_BYTES] = {
		0x04, 0x03, 0x02, 0x01,				/* vcpu */
		7, 0x9a, 0, 0,					/* flags, sipi */
		0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,	/* number */
		0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31,	/* op, cmd */
		0x44, 0x43, 0x42, 0x41, 0xea, 0xff, 0xff, 0xff,	/* about, rc */
		0x51, 0, 0, 0, 0, 0, 0, 0, 0x52, 0, 0, 0, 0, 0, 0, 0,
		0x53, 0, 0, 0, 0, 0, 0, 0, 0x54, 0, 0, 0, 0, 0, 0, 0x80,
	};
	struct dsm_vcpu_msg msg = {
		.vcpu = 0x01020304, .flags = 7, .sipi = 0x9a, .number = 0x1112131415161718,
		.op = 0x21222324, .cmd = 0x31323334, .about = 0x41424344, .rc = -22,
		.word = { 0x51, 0x52, 0x53, 0x8000000000000054 },
	};
	uint8_t bytes[DSM_VCPU_BYTES];

	(void)argument;
	dsm_vcpu_put(&msg, bytes);
	CHECK(!memcmp(bytes, expected, sizeof(bytes)), "version 4 has changed");
}

/* One byte of a good message is another one. */
static void errors(const void *argument)
{
	static const struct {
		struct dsm_vcpu_msg msg;
		unsigned int at;
		uint8_t value;
		int error;
	} wrong[] = {
		{ { .type = DSM_VCPU_EVENT }, 4, 8, DSM_E_FLAGS },
		{ { .type = DSM_VCPU_EVENT }, 5, 1, DSM_E_FLAGS },
		{ { .type = DSM_VCPU_EVENT }, 6, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_EVENT }, 7, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_EVENT }, 8, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_EVENT }, 16, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_EVENT }, 20, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_EVENT }, 24, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_EVENT }, 28, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_EVENT }, 32, 1, DSM_E_VECTOR },
		{ { .type = DSM_VCPU_EVENT }, 33, 0x80, DSM_E_VECTOR },
		{ { .type = DSM_VCPU_EVENT }, 34, 1, 0 },
		{ { .type = DSM_VCPU_PORTS }, 0, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_PORTS }, 4, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_PORTS }, 8, 1, DSM_E_PORT },
		{ { .type = DSM_VCPU_PORTS }, 9, 15, 0 },
		{ { .type = DSM_VCPU_PORTS }, 9, 16, DSM_E_PORT },
		{ { .type = DSM_VCPU_PORTS }, 15, 1, DSM_E_PORT },
		{ { .type = DSM_VCPU_CALL }, 28, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_CALL }, 5, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_REPLY }, 28, 1, DSM_E_RESULT },
		{ { .type = DSM_VCPU_REPLY, .rc = -1 }, 28, 0xab, DSM_E_RESULT },	/* -85 */
		{ { .type = DSM_VCPU_REPLY, .rc = -1 }, 28, 0xac, 0 },
		{ { .type = DSM_VCPU_REPLY, .rc = -1 }, 29, 0xef, DSM_E_RESULT },	/* -4097 */
		{ { .type = DSM_VCPU_REPLY, .rc = -4095 }, 28, 0x02, 0 },
		{ { .type = DSM_VCPU_REPLY, .rc = -4095 }, 28, 0x00, DSM_E_RESULT },	/* -4096 */
		{ { .type = DSM_VCPU_REPLY }, 56, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_REPLY }, 24, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_SHUTDOWN }, 4, 5, 0 },
		{ { .type = DSM_VCPU_SHUTDOWN }, 4, 6, DSM_E_REASON },
		{ { .type = DSM_VCPU_SHUTDOWN }, 32, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_TIME, .flags = 1, .word = { 0, 0, 1 } }, 4, 0, DSM_E_TIME },
		{ { .type = DSM_VCPU_TIME, .flags = 1, .word = { 0, 0, 1 } }, 4, 100, 0 },
		{ { .type = DSM_VCPU_TIME, .flags = 1, .word = { 0, 0, 1 } }, 4, 101, DSM_E_TIME },
		{ { .type = DSM_VCPU_TIME, .flags = 1, .word = { 0, 0, 1 } }, 5, 31, 0 },
		{ { .type = DSM_VCPU_TIME, .flags = 1, .word = { 0, 0, 1 } }, 5, 32, DSM_E_TIME },
		{ { .type = DSM_VCPU_TIME, .flags = 1, .word = { 0, 0, 1 } }, 5, 0xe1, 0 },	/* -31 */
		{ { .type = DSM_VCPU_TIME, .flags = 1, .word = { 0, 0, 1 } }, 5, 0xe0, DSM_E_TIME },
		{ { .type = DSM_VCPU_TIME, .flags = 1, .word = { 0, 0, 1 } }, 48, 0, DSM_E_TIME },
		{ { .type = DSM_VCPU_TIME, .flags = 1, .word = { 0, 0, 1 } }, 52, 1, DSM_E_TIME },
		{ { .type = DSM_VCPU_TIME, .flags = 1, .word = { 0, 0, 1 } }, 56, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_READY }, 0, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_READY }, 63, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_IDLE }, 55, 1, 0 },
		{ { .type = DSM_VCPU_IDLE }, 56, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_IDLE }, 4, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_READY }, 4, 4, 0 },
		{ { .type = DSM_VCPU_READY }, 4, 5, DSM_E_REASON },
		{ { .type = DSM_VCPU_STOP }, 32, 1, 0 },
		{ { .type = DSM_VCPU_STOP }, 40, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_STOP }, 0, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_FENCE }, 8, 1, 0 },
		{ { .type = DSM_VCPU_FENCE }, 32, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_FENCE }, 0, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_QUIET }, 4, 1, 0 },
		{ { .type = DSM_VCPU_QUIET }, 4, 2, DSM_E_FLAGS },
		{ { .type = DSM_VCPU_QUIET }, 40, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_PLACE }, 48, 1, 0 },
		{ { .type = DSM_VCPU_PLACE }, 56, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_PLACE }, 4, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_PLACED }, 4, 4, 0 },
		{ { .type = DSM_VCPU_PLACED }, 4, 5, DSM_E_REASON },
		{ { .type = DSM_VCPU_PLACED }, 28, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 4, 0x20, DSM_E_FLAGS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 4, 0x24, DSM_E_FLAGS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 4, 0x61, DSM_E_FLAGS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 4, 0x33, 0 },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 32, 4, 0 },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 32, 3, 0 },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 32, 5, DSM_E_ACCESS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x11 }, 32, 7, DSM_E_ACCESS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x31 }, 32, 4, DSM_E_ACCESS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 40, 1, DSM_E_ACCESS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 48, 1, DSM_E_ACCESS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 56, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 5, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x21 }, 16, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x02 }, 48, 0xff, 0 },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x02 }, 49, 1, DSM_E_ACCESS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x02 }, 40, 1, DSM_E_ACCESS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x13 }, 41, 0xff, 0 },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x13 }, 42, 1, DSM_E_ACCESS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x13 }, 50, 1, DSM_E_ACCESS },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x33 }, 47, 0xff, 0 },
		{ { .type = DSM_VCPU_ACCESS, .flags = 0x33 }, 55, 0xff, 0 },
		{ { .type = DSM_VCPU_ACCESSED }, 4, 1, 0 },
		{ { .type = DSM_VCPU_ACCESSED }, 4, 2, DSM_E_FLAGS },
		{ { .type = DSM_VCPU_ACCESSED }, 39, 1, 0 },
		{ { .type = DSM_VCPU_ACCESSED, .flags = 1 }, 32, 1, DSM_E_ACCESS },
		{ { .type = DSM_VCPU_ACCESSED }, 40, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_PAUSE }, 4, 1, 0 },
		{ { .type = DSM_VCPU_PAUSE }, 4, 2, DSM_E_FLAGS },
		{ { .type = DSM_VCPU_PAUSE }, 0, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_PAUSE }, 8, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_PAUSED, .flags = 1 }, 4, 3, DSM_E_FLAGS },
		{ { .type = DSM_VCPU_PAUSED }, 32, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_PLACED }, 40, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_TSC, .number = 1 }, 15, 0xff, 0 },
		{ { .type = DSM_VCPU_TSC }, 0, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_TSC }, 4, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_TSC }, 28, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_TSC }, 32, 1, DSM_E_RESERVED },
		{ { .type = DSM_VCPU_GO }, 32, 1, DSM_E_RESERVED },
	};
	uint8_t bytes[DSM_VCPU_BYTES];
	unsigned int i;
	int rc;

	(void)argument;
	for (i = 0; i < NR(wrong); i++) {
		struct dsm_vcpu_msg back = { .vcpu = 4711 };

		dsm_vcpu_put(&wrong[i].msg, bytes);
		CHECK(!dsm_vcpu_get(bytes, wrong[i].msg.type, &back), "%u is good", i);
		back = (struct dsm_vcpu_msg){ .vcpu = 4711 };
		bytes[wrong[i].at] = wrong[i].value;
		rc = dsm_vcpu_get(bytes, wrong[i].msg.type, &back);
		CHECK(rc == -wrong[i].error, "%s, byte %u = %u: %d", dsm_type_name(wrong[i].msg.type),
		      wrong[i].at, wrong[i].value, rc);
		CHECK(!rc || back.vcpu == 4711, "an error wrote a message");
	}
	memset(bytes, 0, sizeof(bytes));
	CHECK(dsm_vcpu_get(bytes, DSM_GETS, NULL) == -DSM_E_TYPE &&
	      dsm_vcpu_get(bytes, DSM_VCPU_POLICY, NULL) == -DSM_E_TYPE &&
	      dsm_vcpu_get(bytes, DSM_VCPU_TABLE, NULL) == -DSM_E_TYPE &&
	      dsm_vcpu_get(bytes, DSM_VCPU_END, NULL) == -DSM_E_TYPE, "types");
}

/* What can be read can be written, and is what came. */
static void fuzz(const void *argument)
{
	uint8_t bytes[DSM_VCPU_BYTES], back[DSM_VCPU_BYTES];
	struct dsm_vcpu_msg msg;
	unsigned int i, n, type, read = 0;

	(void)argument;
	dice_begin();
	for (i = 0; i < ROUNDS; i++) {
		msg = any_message();
		type = dice_below(20) ? msg.type : (unsigned int)dice_below(256);
		dsm_vcpu_put(&msg, bytes);
		for (n = dice_below(3); n--;)
			bytes[dice_below(DSM_VCPU_BYTES)] ^= (uint8_t)(1u << dice_below(8));
		if (dsm_vcpu_get(bytes, type, &msg))
			continue;
		read++;
		CHECK(msg.type == type && !msg.host, "type %u", type);
		dsm_vcpu_put(&msg, back);
		CHECK(!memcmp(bytes, back, sizeof(bytes)), "round %u", i);
	}
	CHECK(read > ROUNDS / 10 && read < ROUNDS, "%u of %u", read, ROUNDS);
}

/*
 * A local APIC as far as it matters: what is done one by one, and what is done
 * at once, are the same.
 */
struct apic {
	bool on, waits;		/* it was started; it waits for a SIPI */
	uint8_t at;
	uint64_t vectors[4];
	bool nmi;
};

static void deliver(struct apic *a, const struct dsm_vcpu_msg *e)
{
	unsigned int i;

	if (e->flags & DSM_EVENT_INIT)
		*a = (struct apic){ .waits = true };
	if (e->flags & DSM_EVENT_SIPI && a->waits) {
		a->waits = false;
		a->on = true;
		a->at = e->sipi;
	}
	if (e->flags & DSM_EVENT_NMI)
		a->nmi = true;
	for (i = 0; i < 4; i++)
		a->vectors[i] |= e->word[i];
}

static void merge(const void *argument)
{
	unsigned int round, i, nr;

	(void)argument;
	dice_begin();
	for (round = 0; round < 20000; round++) {
		struct apic one = { .on = dice_below(2) }, other = one;
		struct dsm_vcpu_msg owed = { 0 }, next;

		nr = 1 + dice_below(5);
		for (i = 0; i < nr; i++) {
			do {
				next = any_message();
			} while (next.type != DSM_VCPU_EVENT);
			deliver(&one, &next);
			if (i)
				dsm_vcpu_merge(&owed, &next);
			else
				owed = next;
		}
		deliver(&other, &owed);
		/* What an APIC that is off drops is not looked at: it has been reset. */
		CHECK(one.on == other.on && one.waits == other.waits && one.at == other.at &&
		      one.nmi == other.nmi && !memcmp(one.vectors, other.vectors, 32),
		      "round %u, of %u", round, nr);
		CHECK(owed.type == DSM_VCPU_EVENT && owed.vcpu == (nr == 1 ? next.vcpu : owed.vcpu),
		      "what it is");
	}
}

static void concerns(const void *argument)
{
	static const struct {
		uint32_t op, cmd;
		enum dsm_call_concern concern;
		uint32_t port;
	} table[] = {
		{ 24, 10, DSM_CALL_OF_VCPU, 0 }, { 34, 23, DSM_CALL_OF_VCPU, 0 },
		{ 32, 7, DSM_CALL_OF_VCPU, 0 }, { 32, 1, DSM_CALL_OF_VCPU, 0 },
		{ 32, 9, DSM_CALL_OF_PORT, 0x55667788 }, { 32, 3, DSM_CALL_OF_PORT, 0x55667788 },
		{ 32, 5, DSM_CALL_OF_PORT, 0x11223344 },
		{ 32, 4, DSM_CALL_NOT_DONE, 0 }, { 32, 0, DSM_CALL_NOT_DONE, 0 },
		{ 32, 8, DSM_CALL_NOT_DONE, 0 }, { 24, 0, DSM_CALL_NOT_DONE, 0 },
		{ 24, 7, DSM_CALL_NOT_DONE, 0 }, { 34, 10, DSM_CALL_NOT_DONE, 0 },
		{ 12, 6, DSM_CALL_NOT_DONE, 0 }, { 0, 0, DSM_CALL_NOT_DONE, 0 },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < NR(table); i++) {
		struct dsm_vcpu_msg call = {
			.op = table[i].op, .cmd = table[i].cmd, .word = { 0x1122334455667788 },
		};
		uint32_t port = 0;

		CHECK(dsm_call_concern(&call, &port) == table[i].concern, "%u, %u",
		      table[i].op, table[i].cmd);
		CHECK(table[i].concern != DSM_CALL_OF_PORT || port == table[i].port, "port %x", port);
	}
}

static void slices(const void *argument)
{
	static const struct {
		uint32_t port;
		unsigned int nr, slice;
	} ports[] = {
		{ 0, 2, 0 }, { 2047, 2, 0 }, { 2048, 2, 1 }, { 4095, 2, 1 }, { 4096, 2, 2 },
		{ 1023, 3, 0 }, { 1024, 3, 1 }, { 3071, 3, 2 }, { 3072, 3, 3 }, { UINT32_MAX, 3, 3 },
		{ 255, 16, 0 }, { 256, 16, 1 }, { 4095, 16, 15 }, { 4095, 1, 0 },
	};
	unsigned int i, home, host;

	(void)argument;
	for (i = 0; i < NR(ports); i++)
		CHECK(dsm_port_slice(ports[i].port, ports[i].nr) == ports[i].slice,
		      "port %u of %u slices", ports[i].port, ports[i].nr);
	for (home = 0; home < 4; home++) {
		unsigned int seen = 0;

		CHECK(!dsm_slice_number(home, home), "home %u", home);
		for (host = 0; host < 4; host++) {
			seen |= 1u << dsm_slice_number(home, host);
			CHECK(dsm_slice_number(home, dsm_slice_number(home, host)) == host, "and back");
		}
		CHECK(seen == 15, "home %u: %x", home, seen);
	}
}

static const struct test_case cases[] = {
	{ "vcpu: there and back", round_trip, NULL },
	{ "vcpu: known bytes", known_bytes, NULL },
	{ "vcpu: each error", errors, NULL },
	{ "vcpu: fuzz", fuzz, NULL },
	{ "vcpu: events put together", merge, NULL },
	{ "vcpu: what a call is about", concerns, NULL },
	{ "vcpu: slices and their ports", slices, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
