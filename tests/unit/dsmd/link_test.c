// SPDX-License-Identifier: GPL-2.0
/*
 * Credits, questions and answers without a network: two ends and the frames
 * between them, in any order that a network with two directions has.
 */
#include "case.h"
#include "dice.h"
#include "link.h"

#define ROUNDS	200000
#define NS	1000000000ull
/* The clock for time-outs only. */
#define AT(time)	(struct dsm_link_time){ .ns = (time) }

static void known_bytes(const void *argument)
{
	static const uint8_t question[DSM_WIRE_BYTES] = {
		0xff, 1, 0, 0, 0x04, 0x03, 0x02, 0x01, 1, 0, 0, 0, 0, 0, 0, 0, 8,
	}, fail[DSM_WIRE_BYTES] = { 0xff, 3, 0, 42, 0x04, 0x03, 0x02, 0x01 };
	uint8_t bytes[DSM_WIRE_BYTES];
	struct dsm_link link;

	(void)argument;
	dsm_link_init(&link, 0x01020304, 8, NS, 3 * NS);
	CHECK(!dsm_link_credits(&link), "credits of nobody");
	CHECK(dsm_link_next(&link, AT(0), bytes), "the first question");
	CHECK(!memcmp(bytes, question, sizeof(bytes)), "a question has changed");
	dsm_link_put_fail(&link, 42, bytes);
	CHECK(!memcmp(bytes, fail, sizeof(bytes)), "FAIL has changed");
	CHECK(!dsm_link_next(&link, AT(100 * NS), bytes), "two questions");
}

static void agreement(const void *argument)
{
	struct dsm_hello ours = { 1, 1, 0, 3, 5, "fifteen letters" };
	struct dsm_hello right = { 1, 1, 2, 3, 9, "fifteen letters" }, h;
	uint32_t epoch = 0;

	(void)argument;
	CHECK(!dsm_link_agree(&ours, &right, 2, &epoch) && epoch == 9, "%u", epoch);
	ours.epoch = 11;
	CHECK(!dsm_link_agree(&ours, &right, 2, &epoch) && epoch == 11, "%u", epoch);
	CHECK(dsm_link_agree(&ours, &right, 1, &epoch) == DSM_END_HOST, "host");
	h = right;
	h.epoch = 11 + DSM_LINK_EPOCHS;
	CHECK(!dsm_link_agree(&ours, &h, 2, &epoch) && epoch == h.epoch, "%u", epoch);
	h.epoch++;
	CHECK(dsm_link_agree(&ours, &h, 2, &epoch) == DSM_END_EPOCH, "far ahead");
	h.epoch = 0x7fffffff;
	CHECK(dsm_link_agree(&ours, &h, 2, &epoch) == DSM_END_EPOCH, "the last");
	/* Epochs are compared modulo 2^32; 0 is none. */
	ours.epoch = 0xffffffff;
	h.epoch = 3;
	CHECK(!dsm_link_agree(&ours, &h, 2, &epoch) && epoch == 3, "%u", epoch);
	ours.epoch = 3;
	h.epoch = 0xffffffff;
	CHECK(!dsm_link_agree(&ours, &h, 2, &epoch) && epoch == 3, "%u", epoch);
	h.epoch = 3u - DSM_LINK_EPOCHS;
	CHECK(!dsm_link_agree(&ours, &h, 2, &epoch) && epoch == 3, "%u", epoch);
	h.epoch--;
	CHECK(dsm_link_agree(&ours, &h, 2, &epoch) == DSM_END_EPOCH, "far behind");
	ours.epoch = 11;
	h = right;
	h.nr_hosts = 4;
	CHECK(dsm_link_agree(&ours, &h, 2, &epoch) == DSM_END_NR_HOSTS, "hosts");
	h = right;
	h.vm[15] = 1;
	CHECK(dsm_link_agree(&ours, &h, 2, &epoch) == DSM_END_VM, "VM");
	CHECK(dsm_link_hello_end(-DSM_E_VERSION) == DSM_END_VERSION &&
	      dsm_link_hello_end(-DSM_E_EPOCH) == DSM_END_EPOCH &&
	      dsm_link_hello_end(-DSM_E_TYPE) == DSM_END_HELLO &&
	      dsm_link_hello_end(-DSM_E_PEER) == DSM_END_HELLO &&
	      dsm_link_hello_end(-DSM_E_RESERVED) == DSM_END_HELLO, "errors");
}

/* Time: when is it asked, and when is it too late? */
static void times(const void *argument)
{
	struct dsm_link a, b;
	uint8_t bytes[DSM_WIRE_BYTES];
	struct dsm_link_said said;
	uint64_t at = 10 * NS, pause;
	unsigned int i;

	(void)argument;
	dsm_link_init(&a, 1, 8, NS, 3 * NS);
	dsm_link_init(&b, 1, 8, NS, 3 * NS);
	CHECK(dsm_link_next(&a, AT(10 * NS), bytes), "a question");
	CHECK(!dsm_link_tick(&a, 13 * NS - 1), "too early");
	CHECK(!dsm_link_tick(&a, 1), "before it was asked");
	CHECK(dsm_link_tick(&a, 13 * NS) == DSM_END_SILENT, "too late");
	CHECK(!dsm_link_frame(&b, bytes, AT(10 * NS), &said) && !said.round_trip, "taken");
	CHECK(dsm_link_next(&b, AT(10 * NS), bytes) && bytes[1] == DSM_LINK_ANSWER,
	      "the answer comes first");
	CHECK(!dsm_link_frame(&a, bytes, AT(10 * NS + 77), &said) &&
	      said.round_trip == 77 && !said.clock.khz, "%llu ns",
	      (unsigned long long)said.round_trip);
	CHECK(!dsm_link_tick(&a, 1000 * NS), "no question is open");
	/* The first ones are quicker. */
	for (i = 2; i < 20; i++) {
		pause = i <= DSM_LINK_EARLY ? NS / 4 : NS;
		CHECK(!dsm_link_next(&a, AT(at + pause - 1), bytes), "question %u too early", i);
		at += pause;
		CHECK(dsm_link_next(&a, AT(at), bytes) && bytes[1] == DSM_LINK_QUESTION &&
		      bytes[8] == i, "question %u", i);
		bytes[1] = DSM_LINK_ANSWER;
		CHECK(!dsm_link_frame(&a, bytes, AT(at), &said), "answer %u", i);
	}
}

/* Clocks go with answers, if both ends speak the version that has them. */
static void clocks(const void *argument)
{
	static const struct {
		const char *name;
		unsigned int version;
		uint32_t khz;		/* of who answers */
		uint32_t ours;
		uint64_t held;
		bool told, taken;
	} rows[] = {
		{ "told", DSM_WIRE_CLOCK, 2000000, 3000000, 500, true, true },
		{ "held for long", DSM_WIRE_CLOCK, 2000000, 3000000, 1ull << 40, true, true },
		{ "no TSC there", DSM_WIRE_CLOCK, 0, 3000000, 500, false, false },
		{ "none here", DSM_WIRE_CLOCK, 2000000, 0, 500, true, false },
		{ "a version without", DSM_WIRE_LOWEST, 2000000, 3000000, 500, false, false },
	};
	uint8_t bytes[DSM_WIRE_BYTES], wrong[DSM_WIRE_BYTES];
	struct dsm_link a, b, before;
	struct dsm_link_said said;
	unsigned int i, at;

	(void)argument;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dsm_link_time asked = { NS, 1000 }, came = { 7, 90000 };
		struct dsm_link_time replied = { 8, 90000 + rows[i].held }, back = { NS + 77, 1300 };
		uint64_t held = rows[i].held < UINT32_MAX ? rows[i].held : UINT32_MAX;

		dsm_link_init(&a, 1, 8, NS, 3 * NS);
		dsm_link_init(&b, 1, 8, NS, 3 * NS);
		dsm_link_speak(&a, rows[i].version, rows[i].ours);
		dsm_link_speak(&b, rows[i].version, rows[i].khz);
		CHECK(dsm_link_next(&a, asked, bytes), "a question");
		CHECK(!dsm_link_frame(&b, bytes, came, &said) && !said.clock.khz, "it has none");
		CHECK(dsm_link_next(&b, replied, bytes), "an answer");
		CHECK((bytes[12] || bytes[20] || bytes[24]) == rows[i].told, "%s: told", rows[i].name);
		/* A frequency that no TSC has, and a clock without one. */
		for (at = 12; at < DSM_WIRE_BYTES && rows[i].told; at += at == 12 ? 8 : 4) {
			memcpy(wrong, bytes, sizeof(wrong));
			memset(wrong + 20, at == 20 ? 0xff : 0, 4);
			before = a;
			CHECK(dsm_link_frame(&a, wrong, back, &said) == DSM_END_FRAME &&
			      !memcmp(&before, &a, sizeof(a)), "%s: byte %u", rows[i].name, at);
		}
		CHECK(!dsm_link_frame(&a, bytes, back, &said) && said.round_trip == 77, "%s", rows[i].name);
		CHECK(!!said.clock.khz == rows[i].taken, "%s: taken", rows[i].name);
		if (rows[i].taken)
			CHECK(said.clock.khz == rows[i].khz && said.clock.asked == 1000 &&
			      said.clock.answered == 1300 && said.clock.replied == replied.tsc &&
			      said.clock.received == replied.tsc - held, "%s", rows[i].name);
	}
}

/* Half of the credits are told at once, less waits for a question. */
static void grants(const void *argument)
{
	struct dsm_link a;
	uint8_t bytes[DSM_WIRE_BYTES], answer[DSM_WIRE_BYTES];
	struct dsm_link_said said;
	unsigned int i;

	(void)argument;
	dsm_link_init(&a, 1, 8, NS, 3 * NS);
	CHECK(dsm_link_received(&a) == DSM_END_CREDITS, "none was granted");
	CHECK(dsm_link_next(&a, AT(0), bytes), "a question");
	memcpy(answer, bytes, sizeof(bytes));
	answer[1] = DSM_LINK_ANSWER;
	CHECK(!dsm_link_frame(&a, answer, AT(1), &said), "an answer");
	CHECK(dsm_link_credits(&a) == 8, "%u", dsm_link_credits(&a));
	for (i = 0; i < 8; i++)
		CHECK(!dsm_link_received(&a), "message %u", i);
	CHECK(dsm_link_received(&a) == DSM_END_CREDITS, "one more");
	for (i = 0; i < 3; i++)
		dsm_link_consumed(&a);
	CHECK(!dsm_link_next(&a, AT(2), bytes), "three are not half");
	dsm_link_consumed(&a);
	CHECK(dsm_link_next(&a, AT(2), bytes) && bytes[16] == 12, "a grant of %u",
	      bytes[16]);
	for (i = 0; i < 4; i++)
		CHECK(!dsm_link_received(&a), "message %u", i);
	CHECK(dsm_link_received(&a) == DSM_END_CREDITS, "one more");
}

/* Grants that follow each other, and what a frame may not have. */
static void more_grants(const void *argument)
{
	uint8_t bytes[DSM_WIRE_BYTES], fail[DSM_WIRE_BYTES];
	struct dsm_link_said said;
	struct dsm_link a, b;

	(void)argument;
	dsm_link_init(&a, 1, 8, NS, 3 * NS);
	dsm_link_init(&b, 1, 8, NS, 3 * NS);
	CHECK(dsm_link_next(&b, AT(0), bytes), "a question");
	bytes[16] = 0;
	bytes[17] = 3;		/* 768 of DSM_CREDITS_MOST */
	CHECK(!dsm_link_frame(&a, bytes, AT(0), &said), "a grant");
	CHECK(dsm_link_credits(&a) == 768, "%u", dsm_link_credits(&a));
	bytes[1] = DSM_LINK_QUESTION;
	CHECK(dsm_link_next(&a, AT(0), fail) && fail[1] == DSM_LINK_ANSWER, "an answer");
	bytes[16] = 0xff;
	bytes[17] = 2;		/* one less, and nothing was sent yet */
	CHECK(dsm_link_frame(&a, bytes, AT(0), &said) == DSM_END_TURN &&
	      dsm_link_credits(&a) == 768, "credit is taken back: %u", dsm_link_credits(&a));
	bytes[16] = 0;
	bytes[17] = 6;		/* and 768 more: no peer has 1536 buffers */
	CHECK(dsm_link_frame(&a, bytes, AT(0), &said) == DSM_END_TURN,
	      "%u credits", dsm_link_credits(&a));

	dsm_link_put_fail(&b, 42, fail);
	fail[16] = 1;
	CHECK(dsm_link_frame(&a, fail, AT(0), &said) == DSM_END_FRAME,
	      "FAIL with a grant");
	fail[16] = 0;
	CHECK(dsm_link_frame(&a, fail, AT(0), &said) == DSM_END_FAILED &&
	      said.reason == 42,
	      "FAIL");

	/* 0 says that nothing was ever asked. */
	dsm_link_init(&a, 1, 8, NS, 3 * NS);
	a.number = 0xffffffff;
	CHECK(dsm_link_next(&a, AT(NS), bytes) && bytes[1] == DSM_LINK_QUESTION &&
	      a.number == 1 && bytes[8] == 1 && !bytes[9], "question %u", a.number);
}

/*
 * Two ends and two directions.  No order of events loses a credit, gives one
 * twice or needs more than DSM_LINK_FRAMES buffers besides the credits.
 */
struct direction {
	uint8_t frame[64][DSM_WIRE_BYTES];	/* frame 0: a message */
	unsigned int nr, messages;
};

static void put(struct direction *d, const uint8_t *bytes)
{
	CHECK(d->nr < 64, "more than the buffers on the way");
	if (bytes)
		memcpy(d->frame[d->nr++], bytes, DSM_WIRE_BYTES);
	else
		d->frame[d->nr++][0] = 0;
	d->messages += !bytes;
	CHECK(d->nr - d->messages <= DSM_LINK_FRAMES - 1, "%u frames on the way",
	      d->nr - d->messages);
}

static void take(struct direction *d, struct dsm_link *to, uint64_t now)
{
	struct dsm_link_said said;
	int rc;

	if (d->frame[0][0]) {
		rc = dsm_link_frame(to, d->frame[0], AT(now), &said);
	} else {
		rc = dsm_link_received(to);
		d->messages--;
	}
	CHECK(!rc, "%s", dsm_end_name((unsigned int)rc));
	memmove(d->frame[0], d->frame[1], sizeof(d->frame) - DSM_WIRE_BYTES);
	d->nr--;
}

static void any_order(const void *argument)
{
	uint8_t bytes[DSM_WIRE_BYTES];
	struct direction way[2] = { 0 };
	struct dsm_link end[2];
	uint64_t now = 0;
	unsigned int i, side, consumed[2] = { 0 };

	(void)argument;
	dice_begin();
	dsm_link_init(&end[0], 1, 4, NS, ~0ull);
	dsm_link_init(&end[1], 1, 9, NS, ~0ull);
	/* Numbers of messages wrap. */
	for (side = 0; side < 2; side++) {
		end[side].sent = end[side].limit = 0xffffffff - 1000;
		end[side].received = end[side].consumed = 0xffffffff - 1000;
		end[side].granted = 0xffffffff - 1000;
	}
	for (i = 0; i < ROUNDS; i++) {
		now += dice_below(2) ? 0 : dice_below((uint32_t)NS);
		side = dice_below(2);
		switch (dice_below(4)) {
		case 0:
			if (dsm_link_credits(&end[side])) {
				dsm_link_sent(&end[side]);
				put(&way[side], NULL);
			}
			break;
		case 1:
			if (way[side].nr)
				take(&way[side], &end[!side], now);
			break;
		case 2:
			if (end[side].received != end[side].consumed) {
				dsm_link_consumed(&end[side]);
				consumed[side]++;
			}
			break;
		default:
			if (dsm_link_next(&end[side], AT(now), bytes))
				put(&way[side], bytes);
		}
		CHECK(end[side].received - end[side].consumed <= end[side].credits,
		      "more than the buffers");
		CHECK(way[side].messages + (end[!side].received - end[!side].consumed) <=
		      end[!side].credits, "more on the way than buffers");
	}
	printf("%u and %u messages\n", consumed[0], consumed[1]);
	CHECK(consumed[0] > 5000 && consumed[1] > 5000, "it came to a halt");
}

/* What can be read is what can be written: no bit is ignored. */
static void fuzz(const void *argument)
{
	struct dsm_link link, before;
	uint8_t bytes[DSM_WIRE_BYTES];
	unsigned int i, n, taken = 0;
	struct dsm_link_said said;
	int rc;

	(void)argument;
	dice_begin();
	dsm_link_init(&link, 1, 8, NS, 3 * NS);
	for (i = 0; i < ROUNDS; i++) {
		memset(bytes, 0, sizeof(bytes));
		bytes[0] = DSM_LINK_MARK;
		bytes[1] = (uint8_t)dice_below(5);
		bytes[4] = 1;
		bytes[8] = (uint8_t)link.number;
		bytes[9] = (uint8_t)(link.number >> 8);
		bytes[16] = (uint8_t)(link.limit + dice_below(3));
		bytes[17] = (uint8_t)(link.limit >> 8);
		bytes[18] = (uint8_t)(link.limit >> 16);
		for (n = dice_below(3); n--;)
			bytes[dice_below(DSM_WIRE_BYTES)] ^= (uint8_t)(1u << dice_below(8));
		before = link;
		rc = dsm_link_frame(&link, bytes, AT(5), &said);
		if (rc) {
			CHECK(!memcmp(&before, &link, sizeof(link)),
			      "'%s' had an effect", dsm_end_name((unsigned int)rc));
			CHECK(rc == DSM_END_FRAME || rc == DSM_END_EPOCH ||
			      rc == DSM_END_TURN || rc == DSM_END_FAILED, "%d", rc);
		} else {
			taken++;
			CHECK(bytes[0] == DSM_LINK_MARK && bytes[4] == 1 &&
			      !(bytes[2] | bytes[3] | bytes[12] | bytes[31]),
			      "a wrong byte was taken");
			CHECK(dsm_link_credits(&link) <= DSM_CREDITS_MOST, "credits");
		}
		if (!dice_below(4))
			dsm_link_next(&link, AT(5 + i * NS), bytes);
		while (dsm_link_credits(&link) && dice_below(2))
			dsm_link_sent(&link);
	}
	CHECK(taken > ROUNDS / 50, "%u taken", taken);
}

/* END is a word of RDMA: each of its bytes counts, and it is no frame. */
static void end_frame(const void *argument)
{
	struct dsm_link link, before;
	uint8_t bytes[DSM_WIRE_BYTES];
	struct dsm_link_said said;
	unsigned int bit;

	(void)argument;
	dsm_link_init(&link, 0x01020304, 8, NS, 3 * NS);
	dsm_link_put_end(&link, bytes);
	CHECK(bytes[0] == DSM_LINK_MARK && bytes[1] == DSM_LINK_END &&
	      bytes[4] == 4 && bytes[7] == 1, "its bytes");
	CHECK(dsm_link_is_end(&link, bytes), "it is one");
	for (bit = 0; bit < 8 * DSM_WIRE_BYTES; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK(!dsm_link_is_end(&link, bytes), "bit %u", bit);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	before = link;
	CHECK(dsm_link_frame(&link, bytes, AT(5), &said) == DSM_END_FRAME &&
	      !memcmp(&before, &link, sizeof(link)), "a frame");
	dsm_link_put_fail(&link, 0, bytes);
	CHECK(!dsm_link_is_end(&link, bytes), "FAIL");
}

static void names(const void *argument)
{
	unsigned int i, k;

	(void)argument;
	for (i = 1; i < DSM_NR_ENDS; i++) {
		CHECK(strcmp(dsm_end_name(i), "?") && strcmp(dsm_end_word(i), "?"),
		      "end %u has no name", i);
		for (k = 1; k < i; k++)
			CHECK(strcmp(dsm_end_word(i), dsm_end_word(k)), "%s twice",
			      dsm_end_word(i));
	}
	CHECK(!strcmp(dsm_end_name(0), "?") && !strcmp(dsm_end_word(DSM_NR_ENDS), "?"),
	      "no end");
}

/* An answer with a clock, its bytes as they are; and where a clock may be. */
static void bytes_of_clocks(const void *argument)
{
	static const uint8_t answer[DSM_WIRE_BYTES] = {
		0xff, DSM_LINK_ANSWER, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0x2c, 1, 0, 0,
		8, 0, 0, 0, 0xc0, 0xc6, 0x2d, 0, 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
	};
	static const struct {
		uint8_t kind;
		unsigned int version;
		uint32_t khz;
		int result;
	} rows[] = {
		{ DSM_LINK_ANSWER, DSM_WIRE_CLOCK, DSM_CLOCK_KHZ_LEAST, 0 },
		{ DSM_LINK_ANSWER, DSM_WIRE_CLOCK, DSM_CLOCK_KHZ_LEAST - 1, DSM_END_FRAME },
		{ DSM_LINK_ANSWER, DSM_WIRE_CLOCK, DSM_CLOCK_KHZ_MOST, 0 },
		{ DSM_LINK_ANSWER, DSM_WIRE_CLOCK, DSM_CLOCK_KHZ_MOST + 1, DSM_END_FRAME },
		{ DSM_LINK_ANSWER, DSM_WIRE_CLOCK, 0, DSM_END_FRAME },
		{ DSM_LINK_ANSWER, DSM_WIRE_LOWEST, 3000000, DSM_END_FRAME },
		{ DSM_LINK_QUESTION, DSM_WIRE_CLOCK, 3000000, DSM_END_FRAME },
		{ DSM_LINK_FAIL, DSM_WIRE_CLOCK, 3000000, DSM_END_FRAME },
	};
	const uint64_t tsc = 0x0123456789abcdef;
	struct dsm_link a, b, before;
	uint8_t bytes[DSM_WIRE_BYTES];
	struct dsm_link_said said;
	unsigned int i, n;
	int rc;

	(void)argument;
	dsm_link_init(&a, 1, 8, NS, 3 * NS);
	dsm_link_init(&b, 1, 8, NS, 3 * NS);
	dsm_link_speak(&b, DSM_WIRE_CLOCK, 3000000);
	CHECK(dsm_link_next(&a, AT(5), bytes), "a question");
	CHECK(!dsm_link_frame(&b, bytes, (struct dsm_link_time){ 6, tsc - 300 }, &said), "asked");
	CHECK(dsm_link_next(&b, ((struct dsm_link_time){ 7, tsc }), bytes), "an answer");
	CHECK(!memcmp(bytes, answer, sizeof(bytes)), "an answer has changed");

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		dsm_link_init(&a, 1, 8, NS, 3 * NS);
		dsm_link_speak(&a, rows[i].version, 3000000);
		CHECK(dsm_link_next(&a, AT(0), bytes), "a question");
		memcpy(bytes, answer, sizeof(bytes));
		bytes[1] = rows[i].kind;
		for (n = 0; n < 4; n++)
			bytes[20 + n] = (uint8_t)(rows[i].khz >> 8 * n);
		if (rows[i].kind == DSM_LINK_FAIL)
			bytes[8] = bytes[16] = 0;
		before = a;
		rc = dsm_link_frame(&a, bytes, AT(1), &said);
		CHECK(rc == rows[i].result, "%u: %d", i, rc);
		CHECK(!rc || !memcmp(&before, &a, sizeof(a)), "%u: had an effect", i);
	}
}

/* Credits, less what waits for one, less one for an answer. */
static void room(const void *argument)
{
	static const uint32_t spare[] = { 3, 2, 1, 0, 0 }, rooms[] = { 2, 1, 0, 0, 0 };
	struct dsm_link link = { .limit = 1, .sent = UINT32_MAX - 1 };
	uint32_t waiting;

	(void)argument;
	for (waiting = 0; waiting < 5; waiting++)
		CHECK(dsm_link_spare(&link, waiting) == spare[waiting] &&
		      dsm_link_room(&link, waiting) == rooms[waiting], "%u wait: %u, %u",
		      waiting, dsm_link_spare(&link, waiting),
		      dsm_link_room(&link, waiting));
}

/* The longest of which eight are over when the question is; never 0, which is "for ever". */
static void ack_timeouts(const void *argument)
{
	static const struct {
		uint64_t question_ns, deadline_ns;
		uint8_t power;
	} right[] = {
		{ NS / 2, 3 * NS, 16 },		/* 0.27 of 0.44 s: the defaults of dsm.toml */
		{ 2 * NS, 20 * NS, 19 },	/* 2.1 of 2.75 s */
		{ 10 * NS / 1000, 11 * NS / 1000, 9 },	/* the least: 2.1 of 2.6 ms */
		{ 4 * 8192, 4 * 8192, 1 }, { 4 * 16384, 4 * 16384, 2 },
		{ 4 * 16384, 4 * 16384 - 8, 1 }, { 4 * 16384 - 8, 4 * 16384, 1 },
		{ 1, 2, 1 },			/* there is no shorter one */
		{ ~0ull - 1, ~0ull, 31 },
	};
	uint64_t all, total;
	uint8_t power;
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		power = dsm_link_ack_timeout(right[i].question_ns, right[i].deadline_ns);
		CHECK(power == right[i].power, "%u: %u", i, power);
	}
	for (i = 0; i < 1000; i++) {
		all = 100000 + dice() % (1000 * NS);
		power = dsm_link_ack_timeout(all / 5, all - all / 5);
		total = (1 + DSM_LINK_RETRIES) * (4096ull << power);
		CHECK(total <= all && 2 * total > all - 16, "%llu ns: %u",
		      (unsigned long long)all, power);
	}
}

static const struct test_case cases[] = {
	{ "link: known bytes", known_bytes, NULL },
	{ "link: HELLO", agreement, NULL },
	{ "link: times", times, NULL },
	{ "link: clocks", clocks, NULL },
	{ "link: bytes of clocks", bytes_of_clocks, NULL },
	{ "link: grants", grants, NULL },
	{ "link: more grants", more_grants, NULL },
	{ "link: any order", any_order, NULL },
	{ "link: fuzz", fuzz, NULL },
	{ "link: END", end_frame, NULL },
	{ "link: ACK time-outs", ack_timeouts, NULL },
	{ "link: room", room, NULL },
	{ "link: names of ends", names, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
