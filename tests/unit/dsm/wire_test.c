// SPDX-License-Identifier: GPL-2.0
/*
 * Messages as bytes: there and back, fixed bytes for a known message, and
 * whatever else may come over the wire.
 */
#include "case.h"
#include "dice.h"
#include "vcpu.h"
#include "wire.h"

#define ROUNDS	200000

static struct dsm_msg any_message(void)
{
	if (!dice_below(4)) {
		struct dsm_msg msg = {
			.type = (uint8_t)(DSM_VCPU_EVENT +
					  dice_below(DSM_VCPU_END - DSM_VCPU_EVENT)),
			.epoch = (uint32_t)dice(),
		};

		if (msg.type == DSM_VCPU_POLICY)
			msg.gfn = dice_below(DSM_POLICY_PARTS);
		return msg;
	}
	return (struct dsm_msg){
		.type = (uint8_t)(1 + dice_below(DSM_NR_TYPES - 1)),
		.flags = (uint8_t)dice(),
		.reason = (uint8_t)dice_below(DSM_NR_REASONS),
		.epoch = (uint32_t)dice(),
		.txn = (uint32_t)dice(),
		.gfn = dice(),
	};
}

static bool same(const struct dsm_msg *a, const struct dsm_msg *b)
{
	return a->type == b->type && a->flags == b->flags &&
	       a->reason == b->reason && a->epoch == b->epoch &&
	       a->txn == b->txn && a->gfn == b->gfn;
}

static void round_trip(const void *argument)
{
	uint8_t bytes[DSM_WIRE_BYTES];
	struct dsm_msg msg, back;
	unsigned int i;
	int rc;

	(void)argument;
	dice_begin();
	for (i = 0; i < ROUNDS; i++) {
		msg = any_message();
		dsm_wire_put(&msg, bytes);
		rc = dsm_wire_get(bytes, &back);
		CHECK(rc == (int)dsm_type_bytes(msg.type),
		      "%s: %d", dsm_type_name(msg.type), rc);
		CHECK(same(&msg, &back), "%s", dsm_type_name(msg.type));
	}
}

static void known_bytes(const void *argument)
{
	static const uint8_t expected[DSM_WIRE_BYTES] = {
		1, 10, 8, 0,				/* RDATA, kept */
		0x04, 0x03, 0x02, 0x01,			/* epoch */
		0x14, 0x13, 0x12, 0x11,			/* transaction */
		0x00, 0x10, 0x00, 0x00,			/* 4096 */
		0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,
	};
	struct dsm_msg msg = {
		.type = DSM_RDATA, .flags = DSM_F_KEPT, .epoch = 0x01020304,
		.txn = 0x11121314, .gfn = 0x2122232425262728,
	};
	uint8_t bytes[DSM_WIRE_BYTES];

	(void)argument;
	dsm_wire_put(&msg, bytes);
	CHECK(!memcmp(bytes, expected, sizeof(bytes)), "version 1 has changed");
}

static void errors(const void *argument)
{
	static const struct {
		unsigned int at;
		uint8_t value;
		int error;
	} wrong[] = {
		{ 0, 0, DSM_E_VERSION },
		{ 0, 2, DSM_E_VERSION },
		{ 1, 0, DSM_E_TYPE },
		{ 1, DSM_NR_TYPES, DSM_E_TYPE },
		{ 1, 255, DSM_E_TYPE },
		{ 1, DSM_PUTM, DSM_E_LENGTH },
		{ 3, DSM_NR_REASONS, DSM_E_REASON },
		{ 12, 1, DSM_E_LENGTH },
		{ 13, 0x10, DSM_E_LENGTH },
		{ 15, 0x80, DSM_E_LENGTH },
		{ 1, DSM_VCPU_EVENT, DSM_E_LENGTH },
		{ 1, DSM_VCPU_EVENT - 1, DSM_E_TYPE },
		{ 1, DSM_VCPU_END, DSM_E_TYPE },
		{ 24, 1, DSM_E_RESERVED },
		{ 31, 1, DSM_E_RESERVED },
	};
	struct dsm_msg msg = { .type = DSM_GETS, .epoch = 1, .gfn = 2 }, back;
	uint8_t bytes[DSM_WIRE_BYTES];
	unsigned int i;
	int rc;

	(void)argument;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		dsm_wire_put(&msg, bytes);
		bytes[wrong[i].at] = wrong[i].value;
		back = msg;
		rc = dsm_wire_get(bytes, &back);
		CHECK(rc == -wrong[i].error, "byte %u = %u: %d", wrong[i].at,
		      wrong[i].value, rc);
		CHECK(same(&msg, &back), "an error wrote a message");
	}
}

/* The head of a message about vCPUs says only what it is. */
static void heads_of_vcpus(const void *argument)
{
	static const struct {
		uint8_t type;
		unsigned int at;
		uint8_t value;
		int error;
	} wrong[] = {
		{ DSM_VCPU_EVENT, 2, 1, DSM_E_RESERVED }, { DSM_VCPU_EVENT, 3, 1, DSM_E_RESERVED },
		{ DSM_VCPU_EVENT, 8, 1, DSM_E_RESERVED }, { DSM_VCPU_CALL, 11, 1, DSM_E_RESERVED },
		{ DSM_VCPU_CALL, 16, 1, DSM_E_RESERVED }, { DSM_VCPU_CALL, 23, 1, DSM_E_RESERVED },
		{ DSM_VCPU_POLICY, 16, 4, DSM_E_RESERVED }, { DSM_VCPU_POLICY, 17, 1, DSM_E_RESERVED },
		{ DSM_VCPU_TABLE, 16, 1, DSM_E_RESERVED }, { DSM_VCPU_GO, 16, 1, DSM_E_RESERVED },
		{ DSM_VCPU_READY, 12, 0, DSM_E_LENGTH }, { DSM_VCPU_POLICY, 13, 0, DSM_E_LENGTH },
		{ DSM_VCPU_REPLY, 24, 1, DSM_E_RESERVED },
	};
	uint8_t bytes[DSM_WIRE_BYTES];
	struct dsm_msg back;
	unsigned int i;
	int rc;

	(void)argument;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct dsm_msg msg = { .type = wrong[i].type, .epoch = 1 };

		dsm_wire_put(&msg, bytes);
		CHECK(dsm_wire_get(bytes, &back) == (int)dsm_type_bytes(msg.type), "good");
		bytes[wrong[i].at] = wrong[i].value;
		rc = dsm_wire_get(bytes, &back);
		CHECK(rc == -wrong[i].error, "%s, byte %u = %u: %d", dsm_type_name(msg.type),
		      wrong[i].at, wrong[i].value, rc);
	}
	CHECK(dsm_wire_version(DSM_GETS) == DSM_WIRE_LOWEST &&
	      dsm_wire_version(DSM_TOKEN_FREE) == DSM_WIRE_LOWEST &&
	      dsm_wire_version(DSM_VCPU_EVENT) == DSM_WIRE_VCPUS &&
	      dsm_wire_version(DSM_VCPU_POLICY) == DSM_WIRE_VCPUS &&
	      dsm_wire_version(DSM_VCPU_ACCESS) == DSM_WIRE_ACCESS &&
	      dsm_wire_version(DSM_VCPU_ACCESSED) == DSM_WIRE_ACCESS &&
	      dsm_wire_version(DSM_VCPU_PAUSE) == DSM_WIRE_PAUSE &&
	      dsm_wire_version(DSM_VCPU_PAUSED) == DSM_WIRE_PAUSE &&
	      dsm_wire_version(DSM_VCPU_TSC) == DSM_WIRE_TSC, "versions");
}

/* What can be read can be written, and is what came: no bit is ignored. */
static void fuzz(const void *argument)
{
	uint8_t bytes[DSM_WIRE_BYTES], back[DSM_WIRE_BYTES];
	struct dsm_msg msg;
	unsigned int i, n, read = 0;

	(void)argument;
	dice_begin();
	for (i = 0; i < ROUNDS; i++) {
		msg = any_message();
		dsm_wire_put(&msg, bytes);
		for (n = dice_below(4); n--;)
			bytes[dice_below(DSM_WIRE_BYTES)] ^=
				(uint8_t)(1u << dice_below(8));
		if (dsm_wire_get(bytes, &msg) < 0)
			continue;
		read++;
		dsm_wire_put(&msg, back);
		CHECK(!memcmp(bytes, back, sizeof(bytes)), "round %u", i);
	}
	CHECK(read > ROUNDS / 10 && read < ROUNDS, "%u of %u", read, ROUNDS);
}

static void hello(const void *argument)
{
	static const struct {
		unsigned int at;
		uint8_t value;
		int error;
	} wrong[] = {
		{ 0, 1, DSM_E_TYPE }, { 1, 1, DSM_E_TYPE },
		{ 4, 'x', DSM_E_TYPE },
		{ 2, DSM_WIRE_HIGHEST + 1, DSM_E_VERSION }, { 2, 2, DSM_E_VERSION }, { 3, 0, DSM_E_VERSION },
		{ 8, 3, DSM_E_PEER }, { 9, 0, DSM_E_PEER },
		{ 9, DSM_MAX_HOSTS + 1, DSM_E_PEER },
		{ 10, 1, DSM_E_RESERVED }, { 11, 1, DSM_E_RESERVED },
		{ 12, 0, DSM_E_EPOCH },
	};
	struct dsm_hello first = {
		.lowest = 1, .highest = 1, .host = 2, .nr_hosts = 3, .epoch = 4,
		.vm = "fifteen letters",
	}, back;
	uint8_t bytes[DSM_WIRE_BYTES];
	unsigned int i;
	int rc;

	(void)argument;
	dsm_wire_put_hello(&first, bytes);
	CHECK(dsm_wire_get_hello(bytes, &back) == DSM_WIRE_VERSION, "a HELLO");
	CHECK(back.lowest == 1 && back.highest == 1 && back.host == 2 &&
	      back.nr_hosts == 3 && back.epoch == 4 &&
	      !memcmp(back.vm, first.vm, sizeof(back.vm)), "the same");
	bytes[3] = 9;
	CHECK(dsm_wire_get_hello(bytes, &back) == DSM_WIRE_HIGHEST,
	      "a newer peer speaks our version");
	bytes[2] = bytes[3] = DSM_WIRE_HIGHEST;
	CHECK(dsm_wire_get_hello(bytes, &back) == DSM_WIRE_HIGHEST, "the highest only");
	CHECK(dsm_wire_get(bytes, &(struct dsm_msg){ 0 }) == -DSM_E_VERSION,
	      "not a message");
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		dsm_wire_put_hello(&first, bytes);
		bytes[wrong[i].at] = wrong[i].value;
		rc = dsm_wire_get_hello(bytes, &back);
		CHECK(rc == -wrong[i].error, "byte %u = %u: %d", wrong[i].at,
		      wrong[i].value, rc);
	}
}

/* The highest version that both ends speak. */
static void versions(const void *argument)
{
	static const struct {
		uint8_t lowest, highest;
		int result;
	} cases[] = {
		{ 0, 0, -DSM_E_VERSION }, { 0, 1, 1 }, { 1, 1, 1 }, { 1, 2, 2 },
		{ 2, 2, 2 }, { 1, 3, 3 }, { 3, 3, 3 }, { 1, 4, 4 }, { 4, 4, 4 }, { 1, 5, 5 }, { 5, 5, 5 },
		{ 1, 6, 6 }, { 6, 6, 6 }, { 1, 7, 7 }, { 7, 7, 7 }, { 1, 8, 7 }, { 2, 255, 7 }, { 8, 8, -DSM_E_VERSION },
		{ 255, 255, -DSM_E_VERSION }, { 2, 1, -DSM_E_VERSION },
	};
	struct dsm_hello hello = { .host = 2, .nr_hosts = 3, .epoch = 4 }, back;
	uint8_t bytes[DSM_WIRE_BYTES];
	unsigned int i;
	int rc;

	(void)argument;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hello.lowest = cases[i].lowest;
		hello.highest = cases[i].highest;
		dsm_wire_put_hello(&hello, bytes);
		rc = dsm_wire_get_hello(bytes, &back);
		CHECK(rc == cases[i].result, "%u to %u: %d", cases[i].lowest,
		      cases[i].highest, rc);
	}
}

static const struct test_case cases[] = {
	{ "wire: there and back", round_trip, NULL },
	{ "wire: known bytes", known_bytes, NULL },
	{ "wire: each error", errors, NULL },
	{ "wire: heads of messages about vCPUs", heads_of_vcpus, NULL },
	{ "wire: fuzz", fuzz, NULL },
	{ "wire: HELLO", hello, NULL },
	{ "wire: versions", versions, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
