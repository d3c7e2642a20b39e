/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The toy of the page protocol (lab/bounce/protocol.h): who waits for what, of
 * programs for up to four hosts. Prints TAP.
 *
 * A program is words HOST, what, PAGE, each by an instruction of its own: r
 * reads, w writes, m does both, as a LOCKed instruction. vCPU n is host n's.
 */

#include <stdio.h>
#include <stdlib.h>

#include "protocol.h"

enum { PAGES = 4 };

static const struct row {
	const char *name, *program;
	const char *want;	/* HOST, kind (r, w, u) and count, of all that are not 0, in this order */
} table[] = {
	{ "the first touch is free", "0r0 1w1 2m2", "" },
	{ "who has touched it first may write", "0r0 0w0 0r0 0m0", "" },
	{ "a reader takes a copy, once", "0w0 1r0 1r0 0r0", "1r1" },
	{ "a writer with a copy waits", "0w0 1r0 0w0 0w0", "0u1 1r1" },
	{ "and so does a reader that wants to write", "0w0 1r0 1w0 1w0", "1r1 1u1" },
	{ "a writer takes the page", "0w0 1w0 1r0 1w0", "1w1" },
	{ "and it is taken back", "0w0 1w0 0r0 0w0 1r0", "0r1 0u1 1r1 1w1" },
	{ "readers are many", "0w0 1r0 2r0 3r0 0r0 1r0 2r0 3r0", "1r1 2r1 3r1" },
	{ "a writer ends all their copies", "0w0 1r0 2r0 1w0 0r0 2r0", "0r1 1r1 1u1 2r2" },
	{ "a writer without a copy among readers", "0w0 1r0 2w0 0r0 1r0", "0r1 1r2 2w1" },
	{ "what reads and writes waits once", "0w0 1m0 1m0 0m0", "0w1 1w1" },
	{ "also of a page that is read by others", "0w0 1r0 2m0", "1r1 2w1" },
	{ "and with a copy", "0w0 1r0 1m0", "1r1 1u1" },
	{ "another instruction that writes waits anew", "0w0 1r0 1w0", "1r1 1u1" },
	{ "each page is by itself", "0w0 1r1 1w0 0r1 0w1", "0r1 0u1 1w1" },
	{ "ping-pong", "0w0 1w0 0w0 1w0 0w0 1w0", "0w2 1w3" },
};

static struct bounce bounce;
static int tests, failures;

static void ok(int good, const char *name, const char *got)
{
	printf("%sok %d - %s%s%s\n", good ? "" : "not ", ++tests, name, good ? "" : ": ", good ? "" : got);
	failures += !good;
}

static void begin(void)
{
	static uint8_t state[PAGES];

	memset(state, 0, sizeof(state));
	bounce_clear(&bounce);
	bounce.state = state;
	bounce.pages = PAGES;
}

/* Return: how often somebody had to wait. */
static uint64_t play(const char *program)
{
	uint64_t pc = 0x1000, waits = 0;

	for (; *program; program += program[3] ? 4 : 3, pc += 8) {
		unsigned int host = program[0] - '0', page = program[2] - '0';

		if (program[1] != 'w')
			waits += bounce_access(&bounce, host, host, page, pc, page << 12, false);
		if (program[1] != 'r')
			waits += bounce_access(&bounce, host, host, page, pc, page << 12, true);
	}
	return waits;
}

static uint64_t faults(void)
{
	unsigned int host, kind;
	uint64_t sum = 0;

	for (host = 0; host < BOUNCE_MAX_HOSTS; host++)
		for (kind = 0; kind < BOUNCE_KINDS; kind++)
			sum += bounce.faults[host][kind];
	return sum;
}

/* The counters, and whether rows add up to them. */
static const char *seen(void)
{
	static const char kinds[BOUNCE_KINDS] = "rwu";
	uint64_t sums[BOUNCE_MAX_HOSTS][BOUNCE_KINDS] = { 0 };
	static char text[512];
	char *at = text;
	unsigned int host, kind;
	size_t i;

	*at = '\0';
	for (i = 0; i < bounce.rows; i++)
		sums[bounce.row[i].host][bounce.row[i].kind] += bounce.row[i].count;
	for (host = 0; host < BOUNCE_MAX_HOSTS; host++)
		for (kind = 0; kind < BOUNCE_KINDS; kind++) {
			uint64_t count = bounce.faults[host][kind];

			if (count)
				at += sprintf(at, "%s%u%c%u", at == text ? "" : " ", host, kinds[kind],
					      (unsigned int)count);
			if (count != sums[host][kind])
				at += sprintf(at, " (rows: %u)", (unsigned int)sums[host][kind]);
		}
	return text;
}

static void count_is_by_instruction_and_address(void)
{
	int i;

	begin();
	for (i = 0; i < 3; i++) {
		bounce_access(&bounce, 0, 0, 1, 0x100, 0x1008, true);
		bounce_access(&bounce, 1, 1, 1, 0x200, 0x1010, true);
	}
	bounce_access(&bounce, 0, 0, 1, 0x108, 0x1008, true);
	bounce_access(&bounce, 1, 1, 1, 0x200, 0x1018, true);
	ok(bounce.rows == 4 && bounce.row[3].va == 0x1018 && bounce.row[3].count == 1 && bounce.row[0].pc == 0x200 && bounce.row[0].va == 0x1010 && bounce.row[0].page == 1 &&
	   bounce.row[0].host == 1 && bounce.row[0].kind == BOUNCE_WRITE && bounce.row[0].count == 3 &&
	   bounce.row[1].pc == 0x100 && bounce.row[1].count == 2 && bounce.row[2].pc == 0x108 && bounce.row[2].count == 1,
	   "a row for each host, instruction, address and kind", "other rows");
}

/* Another vCPU comes between the read and the write of an instruction that is not LOCKed. */
static void taken_in_between(void)
{
	begin();
	bounce_access(&bounce, 0, 0, 0, 0x100, 0, true);
	bounce_access(&bounce, 1, 1, 0, 0x200, 0, false);
	bounce_access(&bounce, 0, 0, 0, 0x108, 0, true);
	bounce_access(&bounce, 1, 1, 0, 0x200, 0, true);
	ok(!strcmp(seen(), "0u1 1w1"), "what is taken between an instruction's read and its write is one fault", seen());
	begin();
	bounce_access(&bounce, 0, 0, 0, 0x100, 0, true);
	bounce_access(&bounce, 1, 1, 0, 0x200, 0, false);
	bounce_access(&bounce, 2, 2, 0, 0x200, 0, true);
	ok(!strcmp(seen(), "1r1 2w1"), "the read of another vCPU is not part of it", seen());
	begin();
	bounce_access(&bounce, 0, 0, 0, 0x100, 0, true);
	bounce_access(&bounce, 1, 1, 0, 0x200, 0, false);
	bounce_access(&bounce, 1, 1, 0, 0x200, 8, true);
	ok(!strcmp(seen(), "1r1 1u1"), "nor is one of another address", seen());
}

static void counts_begin_anew(void)
{
	begin();
	play("0w0 1w0 0r0");
	bounce_clear(&bounce);
	ok(!strcmp(seen(), "") && !bounce.rows, "counts begin anew", seen());
	play("1r0 1w0");
	ok(!strcmp(seen(), "1u1") && bounce.rows == 1, "and pages are where they were", seen());
}

static void no_room(void)
{
	uint64_t i;

	begin();
	for (i = 0; i < BOUNCE_MAX_ROWS + 10; i++) {
		bounce_access(&bounce, 0, 0, 0, 0, 0, true);
		bounce_access(&bounce, 1, 1, 0, i * 8, 0, true);
	}
	/* One row is that of host 0. */
	ok(bounce.rows == BOUNCE_MAX_ROWS && bounce.lost == 11 && bounce.faults[1][BOUNCE_WRITE] == BOUNCE_MAX_ROWS + 10,
	   "what has no room is counted, and said", "other counts");
	ok(bounce.faults[0][BOUNCE_WRITE] == BOUNCE_MAX_ROWS + 9, "what has a row still has it", "other counts");
}

int main(void)
{
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
		uint64_t waits;

		begin();
		waits = play(table[i].program);
		ok(!strcmp(seen(), table[i].want) && waits == faults(), table[i].name, seen());
	}
	count_is_by_instruction_and_address();
	taken_in_between();
	counts_begin_anew();
	no_room();
	printf("1..%d\n", tests);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
