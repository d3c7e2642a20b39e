// SPDX-License-Identifier: GPL-2.0
/*
 * The liar (liar.c) itself: where a frame ends, and what it is.
 */
#include "liar.c"

#include "case.h"
#include "vcpu.h"

static const struct {
	struct dsm_msg msg;
	uint32_t more;		/* bytes behind the head */
	unsigned int frames;
} table[] = {
	{ { .type = DSM_GETS }, 0, REQUEST },
	{ { .type = DSM_VCPU_EVENT }, DSM_VCPU_BYTES, LETTER },
	{ { .type = DSM_DATA_S }, DSM_PAGE_BYTES, GIVEN | WITH_PAGE },
	{ { .type = DSM_VCPU_POLICY }, DSM_PAGE_BYTES, LETTER },
	{ { .type = DSM_VCPU_READY }, DSM_VCPU_BYTES, LETTER },
	{ { .type = DSM_RECALL_S }, 0, RECALL },
	{ { .type = DSM_RDATA }, DSM_PAGE_BYTES, REPLY | WITH_PAGE },
	{ { .type = DSM_TOKEN_REQ }, 0, REQUEST },
};

/* A stream in parts of each size: each frame ends where it does, and is what it is. */
static void framing(const void *argument)
{
	static uint8_t stream[sizeof(table) / sizeof(table[0]) * FRAME_BYTES];
	size_t size = 0, at, part, taken, left;
	struct parser parser;
	unsigned int i;
	bool whole;

	(void)argument;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		dsm_wire_put(&table[i].msg, stream + size);
		CHECK(get32(stream + size + 12) == table[i].more, "%u: %u bytes", i, get32(stream + size + 12));
		size += DSM_WIRE_BYTES;
		memset(stream + size, 0xa0 + (int)i, table[i].more);
		size += table[i].more;
	}
	for (part = 1; part < 5000; part += part < 100 ? 1 : 333) {
		memset(&parser, 0, sizeof(parser));
		for (at = 0, i = 0; at < size; at += part) {
			left = at + part < size ? part : size - at;
			for (taken = 0; taken < left;) {
				taken += take(&parser, stream + at + taken, left - taken, &whole);
				if (!whole)
					continue;
				CHECK(i < sizeof(table) / sizeof(table[0]) &&
				      parser.have == DSM_WIRE_BYTES + table[i].more &&
				      parser.bytes[1] == table[i].msg.type &&
				      frames_of(parser.bytes) == table[i].frames,
				      "frame %u, in parts of %zu: %u bytes, type %u, %x", i, part,
				      parser.have, parser.bytes[1], frames_of(parser.bytes));
				parser.have = 0;
				i++;
			}
		}
		CHECK(i == sizeof(table) / sizeof(table[0]), "%u frames in parts of %zu", i, part);
	}
}

/* A lie about vCPUs changes one bit of what is said, and nothing of the head. */
static void letters(const void *argument)
{
	struct dsm_msg msg = { .type = DSM_VCPU_EVENT };
	uint8_t frame[FRAME_BYTES] = { 0 }, before[FRAME_BYTES];
	unsigned int i, k, changed;

	(void)argument;
	dsm_wire_put(&msg, frame);
	for (i = 0; i < 1000; i++) {
		memcpy(before, frame, sizeof(frame));
		CHECK(letter_bit(NULL, frame), "it goes out");
		CHECK(!memcmp(frame, before, DSM_WIRE_BYTES), "the head");
		for (k = 0, changed = 0; k < FRAME_BYTES; k++)
			changed += (unsigned int)__builtin_popcount(frame[k] ^ before[k]);
		CHECK(changed == 1 && !memcmp(frame + DSM_WIRE_BYTES + DSM_VCPU_BYTES,
					      before + DSM_WIRE_BYTES + DSM_VCPU_BYTES,
					      DSM_PAGE_BYTES - DSM_VCPU_BYTES), "%u bits", changed);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "liar: where a frame ends", framing, NULL },
		{ "liar: letters", letters, NULL },
	};

	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
