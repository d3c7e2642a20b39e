// SPDX-License-Identifier: GPL-2.0
/*
 * Messages: order, credits, time, the ends; over TCP with TLS, or over RDMA
 * with DSMD_TRANSPORT=rdma.  Over TCP only: a network that cuts, changes and
 * repeats, and peers that lie.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "rig.h"

#define MANY	100000
#define MANY_RDMA	20000	/* Soft-RoCE in an emulated machine has 3000 a second */

static void two_hosts(struct host *a, struct host *b)
{
	rig_begin();
	host_prepare(a, 1);
	host_prepare(b, 0);
}

/* @a opens to @b. */
static void two_up(struct host *a, struct host *b)
{
	host_start(b);
	point_to(a, 0, dsm_transport_port(b->transport));
	host_start(a);
	connect_hosts(a, b);
	UNTIL(dsm_transport_room(a->transport, 0) &&
	      dsm_transport_room(b->transport, 1));
	run_pending();
}

static void two_down(struct host *a, struct host *b)
{
	host_stop(a);
	host_stop(b);
	rig_end();
}

static void fill_page(uint8_t *page, uint64_t seed)
{
	unsigned int i;

	for (i = 0; i < DSM_PAGE_BYTES; i++)
		page[i] = (uint8_t)((seed * 0x9e3779b97f4a7c15u + i * 7919u) >> 24);
}

static unsigned int ends_of(const struct host *h, unsigned int host)
{
	struct dsm_transport_counters counters;
	unsigned int i, n = 0;

	CHECK(!dsm_transport_counts(h->transport, host, &counters), "counters");
	for (i = 0; i < DSM_NR_ENDS; i++)
		n += (unsigned int)counters.ends[i];
	return n;
}

static void both_ways(const void *argument)
{
	uint8_t page[DSM_PAGE_BYTES];
	struct dsm_transport_counters counters;
	struct dsm_msg msg;
	struct host a, b;

	(void)argument;
	two_hosts(&a, &b);
	two_up(&a, &b);
	CHECK(a.epoch == 7 && b.epoch == 7, "the higher epoch: %u %u", a.epoch,
	      b.epoch);
	CHECK(a.from == 0 && b.from == 1, "who is there");

	msg = (struct dsm_msg){ .type = DSM_GETM, .flags = DSM_F_NODATA,
				.epoch = 7, .gfn = 0x123456789a };
	CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	UNTIL(b.messages == 1);
	CHECK(b.last.type == DSM_GETM && b.last.flags == DSM_F_NODATA &&
	      b.last.gfn == 0x123456789a && !b.pages, "the same");

	fill_page(page, 99);
	msg = (struct dsm_msg){ .type = DSM_DATA_M, .epoch = 7, .txn = 3, .gfn = 5 };
	CHECK(!dsm_transport_send(b.transport, 1, &msg, page), "send");
	memset(page, 0, sizeof(page));	/* it was copied */
	UNTIL(a.messages == 1);
	fill_page(page, 99);
	CHECK(a.pages == 1 && a.last.txn == 3 &&
	      !memcmp(a.page, page, sizeof(page)), "the page");

	CHECK(!dsm_transport_counts(a.transport, 0, &counters), "counters");
	CHECK(counters.sent == 1 && counters.received == 1 &&
	      counters.received_pages == 1 && !counters.sent_pages &&
	      counters.connections == 1 && counters.questions >= 1, "counted");
	CHECK(counters.received_bytes >= 2 * 32 + 4096 + 32, "%llu bytes",
	      (unsigned long long)counters.received_bytes);
	CHECK(a.round_trips >= 1, "a round trip");
	two_down(&a, &b);
}

/* Both tell their TSC, one of them does not, or none does. */
static void clocks(const void *argument)
{
	struct host a, b;
	unsigned int i, asked;
	bool ours, theirs;

	(void)argument;
	for (i = 0; i < 4; i++) {
		ours = i & 1;
		theirs = i & 2;
		two_hosts(&a, &b);
		a.tsc_offset = 1000;
		b.tsc_offset = 1ull << 40;
		a.params.tsc_khz = b.params.tsc_khz = 1000000;
		a.params.tsc = ours ? rig_tsc : NULL;
		b.params.tsc = theirs ? rig_tsc : NULL;
		two_up(&a, &b);
		UNTIL(a.round_trips && b.round_trips);
		asked = a.round_trips;
		clock_ns += QUESTION;
		dsm_transport_tick(a.transport);
		UNTIL(a.round_trips > asked);
		CHECK(a.clocks == (ours && theirs ? a.round_trips : 0) &&
		      b.clocks == (ours && theirs ? b.round_trips : 0), "%u: %u and %u samples",
		      i, a.clocks, b.clocks);
		/* No time has passed under way. */
		CHECK(!a.clocks || (a.last_clock.asked == clock_ns + 1000 &&
				    a.last_clock.answered == a.last_clock.asked &&
				    a.last_clock.received == clock_ns + (1ull << 40) &&
				    a.last_clock.replied == a.last_clock.received &&
				    a.last_clock.khz == 1000000), "%u: the sample", i);
		two_down(&a, &b);
	}
}

static void calls_that_make_no_sense(const void *argument)
{
	static const uint8_t page[DSM_PAGE_BYTES];
	struct dsm_msg msg = message(7, DSM_GETS, 1);
	struct dsm_transport_counters counters;
	struct host a, b;

	(void)argument;
	two_hosts(&a, &b);
	host_start(&b);
	CHECK(dsm_transport_send(b.transport, 1, &msg, NULL) == -ENOTCONN, "early");
	CHECK(dsm_transport_close(b.transport, 1) == -ENOTCONN, "close");
	CHECK(dsm_transport_fail(b.transport, 1, 1) == -ENOTCONN, "fail");
	CHECK(dsm_transport_hold(b.transport, 1, true) == -ENOTCONN, "hold");
	CHECK(!dsm_transport_room(b.transport, 1), "room");
	CHECK(dsm_transport_open(b.transport, 0, 1) == -EINVAL, "to ourselves");
	CHECK(dsm_transport_open(b.transport, 9, 1) == -EINVAL, "no host");
	CHECK(dsm_transport_open(b.transport, 1, 0) == -EINVAL, "epoch 0");
	CHECK(dsm_transport_expect(b.transport, 99, 1) == -EINVAL, "no host");
	CHECK(dsm_transport_expect(b.transport, 1, 0) == -EINVAL, "epoch 0");
	CHECK(!dsm_transport_expect(b.transport, 1, 1), "expect");
	CHECK(dsm_transport_expect(b.transport, 1, 1) == -EISCONN, "twice");
	CHECK(dsm_transport_open(b.transport, 1, 1) == -EINVAL,
	      "the higher number opens");
	CHECK(!dsm_transport_close(b.transport, 1), "given up");
	point_to(&a, 0, dsm_transport_port(b.transport));
	host_start(&a);
	connect_hosts(&a, &b);
	CHECK(dsm_transport_expect(a.transport, 0, 9) == -EINVAL,
	      "the lower number waits");
	CHECK(dsm_transport_open(a.transport, 0, 9) == -EISCONN, "twice");
	CHECK(dsm_transport_send(a.transport, 0, &msg, page) == -EINVAL, "a page");
	msg.type = DSM_PUTM;
	CHECK(dsm_transport_send(a.transport, 0, &msg, NULL) == -EINVAL, "no page");
	msg.type = 0;
	CHECK(dsm_transport_send(a.transport, 0, &msg, NULL) == -EINVAL, "type");
	msg.type = DSM_NR_TYPES;
	CHECK(dsm_transport_send(a.transport, 0, &msg, NULL) == -EINVAL, "type");
	msg = message(6, DSM_GETS, 1);
	CHECK(dsm_transport_send(a.transport, 0, &msg, NULL) == -EINVAL, "epoch");
	msg = message(7, DSM_GETS, 1);
	msg.reason = DSM_NR_REASONS;
	CHECK(dsm_transport_send(a.transport, 0, &msg, NULL) == -EINVAL, "reason");
	CHECK(dsm_transport_send(a.transport, 2, &msg, NULL) == -EINVAL, "reason");
	CHECK(dsm_transport_counts(a.transport, 1, &counters) == -EINVAL, "us");
	CHECK(!b.messages && !a.nr_ends && !b.nr_ends, "nothing has happened");
	two_down(&a, &b);
}

static void wrong_parameters(const void *argument)
{
	struct dsm_transport_params right;
	struct host h, other;
	unsigned int i;

	(void)argument;
	two_hosts(&h, &other);
	right = h.params;
	for (i = 0; i < 17; i++) {
		h.params = right;
		switch (i) {
		case 0: h.params.nr_hosts = 1; break;
		case 1: h.params.nr_hosts = DSM_MAX_HOSTS + 1; break;
		case 2: h.params.self = HOSTS; break;
		case 3: h.params.credits = DSM_CREDITS_LEAST - 1; break;
		case 4: h.params.credits = DSM_CREDITS_MOST + 1; break;
		case 5: h.params.queue = 0; break;
		case 6: h.params.strangers = DSM_STRANGERS_MOST + 1; break;
		case 7: h.params.deadline_ns = h.params.question_ns; break;
		case 8: h.params.opening_ns = 0; break;
		case 9: h.params.rekey_records = 0; break;
		case 10: h.params.peer[2].names[0] = NULL; break;
		case 11: h.params.peer[1] = h.params.peer[0]; break;
		case 12: h.params.peer[2].address.ss_family = AF_UNIX; break;
		case 13: h.params.rekey_records = (1u << 24) + 1; break;
		case 14: h.params.tsc = rig_tsc; break;
		case 15:
			h.params.kind = DSM_TRANSPORT_RDMA;
			h.params.trusted_fabric = false;
			break;
		default: h.params.names[0] = NULL;
		}
		CHECK(dsm_transport_create(&h.params, &h.transport, h.text) == -EINVAL &&
		      strstr(h.text, "parameters"), "case %u: %s", i, h.text);
	}
	rig_end();
}

/* Order and credits under back-pressure, both ways at once. */

struct flow {
	struct host *to;
	unsigned int sent, got, most_waiting, holds;
	bool held;
};

static unsigned int many(void)
{
	return rig_is_rdma() ? MANY_RDMA : MANY;
}

static void check_flow(struct host *h, const struct dsm_msg *msg,
		       const uint8_t *page)
{
	struct flow *flow = h->more;
	uint8_t right[DSM_PAGE_BYTES];

	CHECK(msg->gfn == flow->got, "message %u after %u",
	      (unsigned int)msg->gfn, flow->got);
	CHECK(dsm_type_has_page(msg->type) == !(flow->got % 16), "the type");
	if (page) {
		fill_page(right, flow->got);
		CHECK(!memcmp(page, right, sizeof(right)), "page %u", flow->got);
	}
	CHECK(!flow->held, "delivered while it is held");
	flow->got++;
}

static void send_some(struct host *from, unsigned int peer, struct flow *flow)
{
	struct dsm_transport_counters counters;
	uint8_t page[DSM_PAGE_BYTES];
	struct dsm_msg msg;
	unsigned int n;

	for (n = dice_below(200); n && flow->sent < many(); n--) {
		dsm_transport_counts(from->transport, peer, &counters);
		if (counters.waiting == from->params.queue)
			return;
		msg = message(7, flow->sent % 16 ? DSM_INV : DSM_RDATA,
			      flow->sent);
		if (!(flow->sent % 16))
			fill_page(page, flow->sent);
		CHECK(!dsm_transport_send(from->transport, peer, &msg,
					  flow->sent % 16 ? NULL : page), "send");
		flow->sent++;
		dsm_transport_counts(from->transport, peer, &counters);
		if (counters.waiting > flow->most_waiting)
			flow->most_waiting = counters.waiting;
	}
}

static void order(const void *argument)
{
	struct dsm_transport_counters counters;
	struct flow there = { 0 }, back = { 0 };
	struct host a, b;

	(void)argument;
	two_hosts(&a, &b);
	a.params.credits = 8;
	a.params.rekey_records = 500;
	two_up(&a, &b);
	a.on_message = b.on_message = check_flow;
	a.more = &back;
	b.more = &there;
	patience_begin("all have come");
	while (there.got < many() || back.got < many()) {
		send_some(&a, 0, &there);
		send_some(&b, 1, &back);
		if (!dice_below(8)) {
			there.held = !there.held;
			there.holds++;
			CHECK(!dsm_transport_hold(b.transport, 1, there.held), "hold");
		}
		if (!dice_below(8)) {
			back.held = !back.held;
			CHECK(!dsm_transport_hold(a.transport, 0, back.held), "hold");
		}
		ev_run(loop, EVRUN_NOWAIT);
		CHECK(!a.nr_ends && !b.nr_ends, "%s %s / %s %s",
		      dsm_end_name(a.end[0].reason), a.end[0].text,
		      dsm_end_name(b.end[0].reason), b.end[0].text);
	}
	patience_end();
	dsm_transport_counts(a.transport, 0, &counters);
	printf("%u waited at most, %llu stalls, %llu questions, %llu keys\n",
	       there.most_waiting, (unsigned long long)counters.stalls,
	       (unsigned long long)counters.questions,
	       (unsigned long long)counters.rekeys);
	CHECK(there.most_waiting > 100 && counters.stalls > 1000 &&
	      there.holds > 100, "there was no back-pressure");
	CHECK((rig_is_rdma() || counters.rekeys > 3) && counters.sent == many() &&
	      counters.received == many(), "counters");
	/* A record has a message at least, or a question or an answer. */
	CHECK(counters.rekeys <= (many() + 4 * counters.questions) / 500, "%llu new keys",
	      (unsigned long long)counters.rekeys);
	two_down(&a, &b);
}

/* The last credit is not offered; who has none waits; credits come back. */
static void credits(const void *argument)
{
	struct dsm_msg msg = message(7, DSM_GETS, 0);
	struct dsm_transport_counters counters;
	unsigned int i, rooms;
	struct host a, b;

	(void)argument;
	two_hosts(&a, &b);
	b.params.credits = 8;
	two_up(&a, &b);
	CHECK(a.rooms == 1, "%u rooms", a.rooms);
	CHECK(dsm_transport_room(a.transport, 0) == 7, "%u",
	      dsm_transport_room(a.transport, 0));
	CHECK(dsm_transport_room(b.transport, 1) == 15, "%u",
	      dsm_transport_room(b.transport, 1));
	CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	for (i = 0; i < 12; i++) {
		CHECK(dsm_transport_room(a.transport, 0) == (i < 7 ? 7 - i : 0),
		      "%u after %u", dsm_transport_room(a.transport, 0), i);
		CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	}
	run_pending();
	dsm_transport_counts(a.transport, 0, &counters);
	CHECK(counters.waiting == 4 && !counters.credits && counters.stalls == 4,
	      "%u wait, %u credits, %u stalls", counters.waiting,
	      counters.credits, (unsigned int)counters.stalls);
	CHECK(!b.messages && !b.nr_ends, "held");
	rooms = a.rooms;

	/* Questions are answered all the same, and time does no harm. */
	for (i = 0; i < 20; i++) {
		clock_ns += QUESTION;
		dsm_transport_tick(a.transport);
		dsm_transport_tick(b.transport);
		UNTIL(a.round_trips > i && b.round_trips > i);
	}
	CHECK(!b.messages && !a.nr_ends && !b.nr_ends, "%s",
	      dsm_end_name(a.end[0].reason));
	CHECK(!dsm_transport_hold(b.transport, 1, false), "go on");
	UNTIL(b.messages == 12 && a.rooms == rooms + 1);
	/* Less than half may stay untold until the next question. */
	UNTIL(dsm_transport_room(a.transport, 0) >= 4);
	two_down(&a, &b);
}

/* send() uses the room up, and there is some again before we have looked. */
static void room_again(const void *argument)
{
	struct dsm_msg msg = message(7, DSM_GETS, 0);
	struct host a, b;
	unsigned int rooms;

	(void)argument;
	two_hosts(&a, &b);
	b.params.credits = 8;
	two_up(&a, &b);
	rooms = a.rooms;
	while (dsm_transport_room(a.transport, 0))
		CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	CHECK(a.rooms == rooms, "from within send()");
	UNTIL(dsm_transport_room(a.transport, 0));
	CHECK(a.rooms == rooms + 1, "room() %u times", a.rooms - rooms);
	two_down(&a, &b);
}

static void full_queue(const void *argument)
{
	struct dsm_msg msg = message(7, DSM_GETS, 0);
	struct host a, b;
	unsigned int i;

	(void)argument;
	two_hosts(&a, &b);
	a.params.queue = 5;
	two_up(&a, &b);
	CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	for (i = 0; i < 16 + 5; i++)
		CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "%u", i);
	CHECK(dsm_transport_send(a.transport, 0, &msg, NULL) == -ENOBUFS, "more");
	CHECK(!a.nr_ends, "from within the call");
	CHECK(dsm_transport_send(a.transport, 0, &msg, NULL) == -ENOTCONN, "again");
	UNTIL(a.nr_ends && b.nr_ends);
	CHECK(a.end[0].reason == DSM_END_QUEUE && a.end[0].host == 0, "%s",
	      dsm_end_name(a.end[0].reason));
	CHECK(b.end[0].reason == DSM_END_CUT, "%s",
	      dsm_end_name(b.end[0].reason));
	two_down(&a, &b);
}

/* The ends. */

static void good_end(const void *argument)
{
	uint8_t page[DSM_PAGE_BYTES];
	struct dsm_msg msg = message(7, DSM_RDATA, 0);
	struct host a, b;
	unsigned int i;

	(void)argument;
	two_hosts(&a, &b);
	two_up(&a, &b);
	CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	memset(page, 1, sizeof(page));
	for (i = 0; i < 100; i++)
		CHECK(!dsm_transport_send(a.transport, 0, &msg, page), "send");
	CHECK(!dsm_transport_close(a.transport, 0), "close");
	CHECK(dsm_transport_close(a.transport, 0) == -ENOTCONN, "twice");
	CHECK(dsm_transport_send(a.transport, 0, &msg, page) == -ENOTCONN, "late");
	run_pending();
	CHECK(!a.nr_ends && !b.nr_ends && !b.messages, "too early");
	CHECK(!dsm_transport_hold(b.transport, 1, false), "go on");
	UNTIL(a.nr_ends && b.nr_ends);
	CHECK(b.messages == 100, "%u have come", b.messages);
	CHECK(a.end[0].reason == DSM_END_CLOSED && b.end[0].reason == DSM_END_CLOSED,
	      "%s %s / %s %s", dsm_end_name(a.end[0].reason), a.end[0].text,
	      dsm_end_name(b.end[0].reason), b.end[0].text);
	CHECK(a.nr_ends == 1 && b.nr_ends == 1 && ends_of(&a, 0) == 1, "once");

	/* And again, with the next epoch. */
	a.nr_ends = b.nr_ends = 0;
	CHECK(!dsm_transport_expect(b.transport, 1, 9) &&
	      !dsm_transport_open(a.transport, 0, 8), "open");
	UNTIL((a.ups == 2 && b.ups == 2) || a.nr_ends || b.nr_ends);
	CHECK(!a.nr_ends && !b.nr_ends, "%s %s / %s %s",
	      dsm_end_name(a.end[0].reason), a.end[0].text,
	      dsm_end_name(b.end[0].reason), b.end[0].text);
	CHECK(a.epoch == 9 && b.epoch == 9, "%u", a.epoch);
	/* The last few are held at the end. */
	CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	UNTIL(dsm_transport_room(a.transport, 0));
	msg.epoch = 9;
	CHECK(!dsm_transport_send(a.transport, 0, &msg, page), "send");
	CHECK(!dsm_transport_close(a.transport, 0), "close");
	run_pending();
	CHECK(b.messages == 100 && !b.nr_ends, "held");
	CHECK(!dsm_transport_hold(b.transport, 1, false), "go on");
	UNTIL(a.nr_ends && b.nr_ends);
	CHECK(b.messages == 101 && b.end[0].reason == DSM_END_CLOSED &&
	      a.end[0].reason == DSM_END_CLOSED, "%s",
	      dsm_end_name(b.end[0].reason));
	two_down(&a, &b);
}

static void close_in_vain(const void *argument)
{
	struct dsm_msg msg = message(7, DSM_GETS, 0);
	struct host a, b;
	unsigned int i;

	(void)argument;
	two_hosts(&a, &b);
	two_up(&a, &b);
	CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	for (i = 0; i < 20; i++)
		CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	CHECK(!dsm_transport_close(a.transport, 0), "close");
	run_pending();
	for (i = 0; i < 40 && !a.nr_ends; i++) {
		clock_ns += QUESTION / 2;
		dsm_transport_tick(a.transport);
		dsm_transport_tick(b.transport);
		UNTIL(a.nr_ends || (a.round_trips > i / 2 && b.round_trips > i / 2));
	}
	CHECK(a.end[0].reason == DSM_END_SLOW && i == 20, "%s after %u",
	      dsm_end_name(a.end[0].reason), i);
	UNTIL(b.nr_ends);
	CHECK(b.end[0].reason == DSM_END_CUT, "%s", dsm_end_name(b.end[0].reason));
	two_down(&a, &b);
}

static void peer_fails(const void *argument)
{
	struct dsm_msg msg = message(7, DSM_GETS, 0);
	struct host a, b;

	(void)argument;
	two_hosts(&a, &b);
	two_up(&a, &b);
	CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	CHECK(!dsm_transport_fail(a.transport, 0, 42), "fail");
	CHECK(dsm_transport_fail(a.transport, 0, 42) == -ENOTCONN, "twice");
	UNTIL(b.nr_ends);
	/* Over RDMA, FAIL may overtake what was sent just before. */
	CHECK((b.messages == 1 || rig_is_rdma()) &&
	      b.end[0].reason == DSM_END_FAILED &&
	      b.end[0].host == 1 && !strcmp(b.end[0].text, "reason 42 (?)"),
	      "%u messages, %s, %s", b.messages,
	      dsm_end_name(b.end[0].reason), b.end[0].text);
	run_pending();
	CHECK(!a.nr_ends && a.ups == 1, "an end() where it was asked for");
	two_down(&a, &b);
}

/* Whom it has lost: any number, of which only those of hosts are names. */
static void peer_lost_another(const void *argument)
{
	static const struct {
		uint8_t reason;
		const char *text;
	} table[] = {
		{ DSM_FAIL_LOST, "it has lost this host" },
		{ DSM_FAIL_LOST + 1, "it has lost host beta.b.example" },
		{ DSM_FAIL_LOST + 2, "it has lost host third" },
		{ DSM_FAIL_LOST + 3, "reason 131 (?)" },
		{ DSM_FAIL_LOST + 15, "reason 143 (?)" },
		{ DSM_FAIL_LOST + 16, "reason 144 (?)" },
		{ DSM_FAIL_LOST - 1, "reason 127 (?)" },
		{ 0xfe, "reason 254 (?)" },
	};
	struct host a, b;
	size_t i;

	(void)argument;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		two_hosts(&a, &b);
		b.params.peer[2].name = "third";
		two_up(&a, &b);
		CHECK(!dsm_transport_fail(a.transport, 0, table[i].reason), "fail");
		UNTIL(b.nr_ends);
		CHECK(b.end[0].reason == DSM_END_FAILED && !strcmp(b.end[0].text, table[i].text),
		      "%s, %s", dsm_end_name(b.end[0].reason), b.end[0].text);
		/* It may lose itself, or this host: of those there is nothing more to tell. */
		CHECK(b.says_lost.times == (table[i].reason == DSM_FAIL_LOST + 2), "%u times", b.says_lost.times);
		CHECK(!b.says_lost.times || (b.says_lost.by == 1 && b.says_lost.lost == 2), "%u has lost %u",
		      b.says_lost.by, b.says_lost.lost);
		two_down(&a, &b);
	}
}

/* FAIL does not wait behind what has credits and is not sent yet. */
#define BEHIND	200

static void fail_goes_first(const void *argument)
{
	static const uint8_t page[DSM_PAGE_BYTES];
	struct dsm_msg msg = message(7, DSM_RDATA, 0);
	struct dsm_transport_counters counters;
	struct host a, b;

	(void)argument;
	two_hosts(&a, &b);
	b.params.credits = DSM_CREDITS_MOST;
	host_start(&b);
	point_to(&a, 0, dsm_transport_port(b.transport));
	host_start(&a);
	CHECK(!dsm_transport_expect(b.transport, 1, 7) &&
	      !dsm_transport_open(a.transport, 0, 7), "open");
	UNTIL(a.ups);
	for (msg.gfn = 0; msg.gfn < BEHIND; msg.gfn++)
		CHECK(!dsm_transport_send(a.transport, 0, &msg, page), "send");
	CHECK(!dsm_transport_counts(a.transport, 0, &counters) &&
	      counters.waiting == BEHIND, "%u wait for a credit", counters.waiting);
	patience_begin("the first are sent");
	do {
		ev_run(loop, EVRUN_ONCE);
		dsm_transport_counts(a.transport, 0, &counters);
	} while (counters.waiting == BEHIND);
	patience_end();
	CHECK(counters.waiting > BEHIND / 4, "%u are left", counters.waiting);
	CHECK(!dsm_transport_fail(a.transport, 0, 42), "fail");
	UNTIL(b.nr_ends);
	CHECK(b.end[0].reason == DSM_END_FAILED && b.messages < BEHIND,
	      "%u messages, %s", b.messages, dsm_end_name(b.end[0].reason));
	two_down(&a, &b);
}

/* What was said of a connection is not said of the next one. */
static void next_connection(const void *argument)
{
	struct dsm_msg msg = message(7, DSM_GETS, 0);
	struct host a, b;

	(void)argument;
	two_hosts(&a, &b);
	two_up(&a, &b);
	CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	run_pending();
	CHECK(!dsm_transport_fail(a.transport, 0, 1), "fail");
	UNTIL(b.nr_ends);
	CHECK(!b.messages, "what was held");
	b.nr_ends = 0;
	b.ups = 0;
	connect_hosts(&a, &b);
	UNTIL(dsm_transport_room(a.transport, 0));
	msg.epoch = a.epoch;
	CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	run_pending();
	UNTIL(b.round_trips > 1);
	CHECK(b.messages == 1, "the next one is held, too");
	two_down(&a, &b);
}

/* A message of 32 bytes does not wait for the one before to be acknowledged. */
static void no_delay(const void *argument)
{
	struct sockaddr_storage address;
	unsigned int sockets = 0;
	socklen_t size;
	struct host a, b;
	int fd, on;

	(void)argument;
	two_hosts(&a, &b);
	two_up(&a, &b);
	for (fd = 0; fd < 256; fd++) {
		size = sizeof(address);
		if (getpeername(fd, (struct sockaddr *)&address, &size) ||
		    address.ss_family != AF_INET)
			continue;
		size = sizeof(on);
		CHECK(!getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size) && on,
		      "descriptor %d", fd);
		sockets++;
	}
	CHECK(sockets == 2, "%u connections", sockets);
	two_down(&a, &b);
}

static void nobody_listens(const void *argument)
{
	struct host a, b;

	(void)argument;
	two_hosts(&a, &b);
	host_start(&a);
	CHECK(!dsm_transport_open(a.transport, 0, 1), "port 1");
	CHECK(!a.nr_ends, "from within the call");
	UNTIL(a.nr_ends);
	CHECK(a.end[0].reason == DSM_END_UNREACHABLE && a.end[0].host == 0 &&
	      a.end[0].text[0], "%s", dsm_end_name(a.end[0].reason));
	CHECK(!dsm_transport_open(a.transport, 0, 1), "again");
	CHECK(!dsm_transport_close(a.transport, 0), "given up");
	run_pending();
	CHECK(a.nr_ends == 1, "an end that nobody waits for");
	host_stop(&a);
	rig_end();
}

static void open_again(struct host *h)
{
	if (h->nr_ends == 1)
		CHECK(!dsm_transport_open(h->transport, 0, 20), "from end()");
}

static void fail_on_message(struct host *h, const struct dsm_msg *msg,
			    const uint8_t *page)
{
	(void)page;
	if (msg->gfn == 3)
		CHECK(!dsm_transport_fail(h->transport, 1, 1), "from message()");
	CHECK(msg->gfn <= 3, "a message after fail()");
}

/* A page for a page, until one of them ends it amid what both have under way. */
static void page_for_page(struct host *h, const struct dsm_msg *msg, const uint8_t *page)
{
	bool ends = h->params.self == 1;
	struct dsm_msg next = message(7, DSM_RDATA, msg->gfn + 1);

	if (ends && msg->gfn > 40)
		dsm_transport_fail(h->transport, 0, 42);
	else
		dsm_transport_send(h->transport, ends ? 0 : 1, &next, page);
}

/*
 * Who fails has not read all that has come, so its system resets the connection.
 * The other one is writing at that moment, and hears why all the same.
 */
static void fail_is_heard(const void *argument)
{
	static const uint8_t page[DSM_PAGE_BYTES];
	struct dsm_msg msg = message(7, DSM_RDATA, 0);
	unsigned int round, i;
	struct host a, b;

	(void)argument;
	for (round = 0; round < 20; round++) {
		two_hosts(&a, &b);
		two_up(&a, &b);
		a.on_message = page_for_page;
		b.on_message = page_for_page;
		for (i = 0; i < 4; i++) {
			CHECK(!dsm_transport_send(a.transport, 0, &msg, page), "send");
			CHECK(!dsm_transport_send(b.transport, 1, &msg, page), "send");
		}
		UNTIL(b.nr_ends);
		CHECK(b.end[0].reason == DSM_END_FAILED, "round %u: %s %s", round,
		      dsm_end_name(b.end[0].reason), b.end[0].text);
		two_down(&a, &b);
	}
}

static void calls_from_callbacks(const void *argument)
{
	struct dsm_msg msg = message(7, DSM_GETS, 0);
	struct host a, b;

	(void)argument;
	two_hosts(&a, &b);
	two_up(&a, &b);
	a.on_end = open_again;
	b.on_message = fail_on_message;
	for (msg.gfn = 1; msg.gfn <= 6; msg.gfn++)
		CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	UNTIL(a.nr_ends);
	CHECK(b.messages == 3 && !b.nr_ends, "%u messages", b.messages);
	CHECK(!dsm_transport_expect(b.transport, 1, 11), "expect");
	UNTIL(a.ups == 2 || a.nr_ends == 2);
	/* Who was not expected yet was closed at the gate; else it is up. */
	CHECK(a.ups == 2 || a.end[1].reason == DSM_END_REFUSED, "%s",
	      dsm_end_name(a.end[1].reason));
	two_down(&a, &b);
}

/* Time. */

static void go_silent(struct stranger *s);
static bool get_up(struct stranger *s);
static void put_link(uint8_t *bytes, unsigned int kind, uint32_t number,
		     uint32_t grant);

static uint32_t session = 1;	/* the epoch of a stranger's connection */

static void silence(const void *argument)
{
	struct stranger s = { .script = go_silent };
	struct host b;
	unsigned int i;

	(void)argument;
	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, 1);
	UNTIL(b.ups && s.got >= 64);	/* HELLO and the first question */
	run_pending();
	for (i = 0; i < 10; i++) {
		clock_ns += DEADLINE / 10 - (i == 9);
		dsm_transport_tick(b.transport);
		run_pending();
		CHECK(!b.nr_ends, "after %u: %s", i, dsm_end_name(b.end[0].reason));
	}
	clock_ns++;
	dsm_transport_tick(b.transport);
	CHECK(b.nr_ends == 1 && b.end[0].reason == DSM_END_SILENT &&
	      b.end[0].host == 1, "%u ends, %s", b.nr_ends,
	      dsm_end_name(b.end[0].reason));
	stranger_join(&s);
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

/* The answer is here in time, and it is we who look too late. */

static atomic_uint answers;

static void answer_questions(struct stranger *s)
{
	uint8_t bytes[DSM_WIRE_BYTES];
	uint32_t number;

	CHECK(get_up(s), "up");
	do {
		memcpy(&number, bytes + 8, sizeof(number));
		put_link(bytes, DSM_LINK_ANSWER, answers ? number : 1, 8);
		if (!stranger_write(s, bytes, sizeof(bytes)))
			return;
		answers++;
	} while (stranger_read(s, bytes, sizeof(bytes)));
}

static void late_look(const void *argument)
{
	struct stranger s = { .script = answer_questions };
	unsigned int i;
	struct host b;

	(void)argument;
	rig_begin();
	answers = 0;
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, 1);
	UNTIL(b.ups && b.round_trips == 1);
	run_pending();
	clock_ns += QUESTION;
	dsm_transport_tick(b.transport);	/* the second question is out */
	/* Over loopback, what is written is in the other end's socket. */
	for (i = 0; i < 1000 * PATIENCE && answers < 2; i++)
		poll(NULL, 0, 1);
	CHECK(answers == 2, "%u answers", answers);
	clock_ns += DEADLINE;
	dsm_transport_tick(b.transport);
	CHECK(!b.nr_ends && b.round_trips == 2, "%s after %u answers",
	      dsm_end_name(b.end[0].reason), b.round_trips);
	host_stop(&b);
	stranger_join(&s);
	papers_free(&s.papers);
	rig_end();
}

static uint64_t received_bytes(const struct host *h, unsigned int host)
{
	struct dsm_transport_counters counters;

	CHECK(!dsm_transport_counts(h->transport, host, &counters), "counters");
	return counters.received_bytes;
}

/*
 * @a sends, closes, and it all is at @b, which holds it: the clock that is played
 * does not wait for an adapter.
 */
static void close_while_held(struct host *a, struct host *b, unsigned int messages)
{
	struct dsm_msg msg = message(7, DSM_GETS, 1);
	uint64_t before;
	unsigned int i;

	UNTIL(a->round_trips && b->round_trips);
	before = received_bytes(b, 1);
	CHECK(!dsm_transport_hold(b->transport, 1, true), "hold");
	for (i = 0; i < messages; i++)
		CHECK(!dsm_transport_send(a->transport, 0, &msg, NULL), "send");
	CHECK(!dsm_transport_close(a->transport, 0), "close");
	/* Over RDMA with END. */
	UNTIL(received_bytes(b, 1) == before + (messages + rig_is_rdma()) * DSM_WIRE_BYTES);
}

/* The peer says goodbye and answers nothing more; we have its last words. */
static void held_end(const void *argument)
{
	struct host a, b;
	unsigned int i;

	(void)argument;
	two_hosts(&a, &b);
	two_up(&a, &b);
	close_while_held(&a, &b, 3);
	for (i = 0; i < 39; i++) {
		run_pending();
		clock_ns += QUESTION / 4;
		dsm_transport_tick(b.transport);
		dsm_transport_tick(a.transport);
		CHECK(!a.nr_ends && !b.nr_ends, "after %u: %s %s", i,
		      dsm_end_name(a.end[0].reason), dsm_end_name(b.end[0].reason));
	}
	CHECK(!b.messages && !dsm_transport_hold(b.transport, 1, false), "go on");
	UNTIL(a.nr_ends && b.nr_ends);
	CHECK(b.messages == 3 && b.end[0].reason == DSM_END_CLOSED &&
	      a.end[0].reason == DSM_END_CLOSED, "%u messages, %s, %s", b.messages,
	      dsm_end_name(a.end[0].reason), dsm_end_name(b.end[0].reason));
	two_down(&a, &b);

	/* For so long that the peer has gone: what it has said stays said. */
	two_hosts(&a, &b);
	two_up(&a, &b);
	close_while_held(&a, &b, 1);
	for (i = 0; i < 41; i++) {
		run_pending();
		clock_ns += QUESTION / 4;
		dsm_transport_tick(b.transport);
		dsm_transport_tick(a.transport);
	}
	CHECK(a.nr_ends == 1 && a.end[0].reason == DSM_END_SLOW && !b.nr_ends, "%s",
	      dsm_end_name(a.end[0].reason));
	/* Our own time for closing begins now. */
	CHECK(!dsm_transport_close(b.transport, 1), "close");
	clock_ns += OPENING - 1;
	dsm_transport_tick(b.transport);
	run_pending();
	CHECK(!b.nr_ends, "%s", dsm_end_name(b.end[0].reason));
	CHECK(!dsm_transport_hold(b.transport, 1, false), "go on");
	UNTIL(b.nr_ends);
	CHECK(b.messages == 1 && b.end[0].reason == DSM_END_CLOSED, "%u, %s",
	      b.messages, dsm_end_name(b.end[0].reason));
	two_down(&a, &b);
}

/* A peer that takes nothing for a while: nothing is lost, nobody waits long. */

#define PAGES	1000

static atomic_int slow_step;

static void take_slowly(struct stranger *s)
{
	static uint8_t page[DSM_WIRE_BYTES + DSM_PAGE_BYTES];
	uint8_t bytes[DSM_WIRE_BYTES];
	unsigned int pages = 0;

	CHECK(get_up(s), "up");
	put_link(bytes, DSM_LINK_ANSWER, 1, PAGES);
	CHECK(stranger_write(s, bytes, sizeof(bytes)), "an answer");
	while (slow_step != 1)
		poll(NULL, 0, 1);
	while (pages < PAGES && stranger_read(s, bytes, sizeof(bytes))) {
		if (bytes[0] == DSM_LINK_MARK)
			continue;
		CHECK(stranger_read(s, page, DSM_PAGE_BYTES), "a page");
		CHECK(page[0] == (uint8_t)pages && bytes[16] == (uint8_t)pages,
		      "page %u", pages);
		pages++;
	}
	CHECK(pages == PAGES, "%u pages", pages);
	slow_step = 2;
	stranger_read_to_end(s);
}

static void full_socket(const void *argument)
{
	struct stranger s = { .script = take_slowly };
	struct dsm_msg msg = message(1, DSM_RDATA, 0);
	struct dsm_transport_counters counters;
	uint8_t page[DSM_PAGE_BYTES] = { 0 };
	uint64_t before, most = 0;
	struct host b;

	(void)argument;
	rig_begin();
	slow_step = 0;
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	b.params.queue = PAGES;
	stranger_meets(&s, &b, 1);
	/* All of them wait for a credit, which comes for all at once. */
	UNTIL(b.ups);
	for (msg.gfn = 0; msg.gfn < PAGES; msg.gfn++) {
		page[0] = (uint8_t)msg.gfn;
		CHECK(!dsm_transport_send(b.transport, 1, &msg, page), "send");
	}
	CHECK(!dsm_transport_counts(b.transport, 1, &counters), "counters");
	CHECK(counters.waiting == PAGES, "%u wait", counters.waiting);
	patience_begin("all sent");
	while (slow_step != 2) {
		before = counters.sent_bytes;
		ev_run(loop, EVRUN_ONCE);
		dsm_transport_counts(b.transport, 1, &counters);
		CHECK(!b.nr_ends, "%s", dsm_end_name(b.end[0].reason));
		if (counters.sent_bytes - before > most)
			most = counters.sent_bytes - before;
		/* The socket is full: nothing goes out any more. */
		if (!slow_step && counters.sent_bytes > 500000 &&
		    counters.sent_bytes == before)
			slow_step = 1;
		if (!slow_step && !counters.waiting)
			slow_step = 1;
	}
	patience_end();
	printf("%llu bytes at a time\n", (unsigned long long)most);
	CHECK(most <= 40 * 16384, "%llu bytes in one turn of the loop",
	      (unsigned long long)most);
	host_stop(&b);
	stranger_join(&s);
	papers_free(&s.papers);
	rig_end();
}

/* An answer that is on its way while the clock of the case runs on would be late. */
static bool all_answered(const struct host *host, unsigned int peer)
{
	struct dsm_transport_counters counters;

	dsm_transport_counts(host->transport, peer, &counters);
	return host->round_trips == counters.questions;
}

static void long_peace(const void *argument)
{
	struct dsm_transport_counters counters;
	struct host a, b;
	unsigned int i, wanted;

	(void)argument;
	two_hosts(&a, &b);
	two_up(&a, &b);
	for (i = 0; i < 200; i++) {
		clock_ns += QUESTION / 4;
		dsm_transport_tick(a.transport);
		clock_ns += 1000;
		run_pending();
		dsm_transport_tick(b.transport);
		UNTIL(b.round_trips >= i / 4 && a.round_trips >= i / 4 &&
		      all_answered(&a, 0) && all_answered(&b, 1));
	}
	dsm_transport_counts(a.transport, 0, &counters);
	CHECK(!a.nr_ends && !b.nr_ends, "an end");
	/* One each QUESTION, and the first ones in a quarter of it. */
	wanted = 200 / 4 + DSM_LINK_EARLY * 3 / 4;
	CHECK(counters.questions >= wanted - 5 && counters.questions <= wanted + 5,
	      "%llu questions", (unsigned long long)counters.questions);
	CHECK(a.last_round_trip == 1000, "%llu ns",
	      (unsigned long long)a.last_round_trip);
	two_down(&a, &b);
}

/* The network. */

struct three {
	struct host a, b;
	struct relay relay;
};

static void three_up(struct three *t)
{
	rig_begin();
	host_prepare(&t->a, 1);
	host_prepare(&t->b, 0);
	host_start(&t->b);
	host_start(&t->a);
}

static void through_relay(struct three *t)
{
	relay_start(&t->relay, dsm_transport_port(t->b.transport));
	point_to(&t->a, 0, t->relay.port);
	t->a.nr_ends = t->b.nr_ends = 0;
	t->b.messages = t->a.ups = t->b.ups = 0;
	t->a.round_trips = t->b.round_trips = 0;
	connect_hosts(&t->a, &t->b);
	/* The first question of each is answered: nothing is under way. */
	UNTIL(t->a.round_trips && t->b.round_trips);
}

static void three_down(struct three *t)
{
	host_stop(&t->a);
	host_stop(&t->b);
	rig_end();
}

/* Bytes that a message has on this network. */
static unsigned int wire_bytes(struct three *t, struct dsm_msg *msg,
			       const uint8_t *page)
{
	unsigned long long before;
	unsigned int bytes;

	through_relay(t);
	msg->epoch = t->a.epoch;
	before = t->relay.forward;
	CHECK(!dsm_transport_send(t->a.transport, 0, msg, page), "send");
	UNTIL(t->b.messages == 1);
	bytes = (unsigned int)(t->relay.forward - before);
	relay_stop(&t->relay);
	UNTIL(t->a.nr_ends && t->b.nr_ends);
	return bytes;
}

static void cut_at_each_byte(const void *argument)
{
	static const uint8_t page[DSM_PAGE_BYTES];
	bool with_page = argument != NULL;
	unsigned int bytes, at, step = with_page ? 17 : 1, cuts = 0;
	struct dsm_msg msg = message(7, with_page ? DSM_RDATA : DSM_GETS, 1);
	struct three t = { 0 };

	three_up(&t);
	bytes = wire_bytes(&t, &msg, with_page ? page : NULL);
	CHECK(bytes > 32 + (with_page ? 4096 : 0) && bytes < 4200, "%u", bytes);
	for (at = 0; at <= bytes; at = at < bytes && at + step > bytes ? bytes : at + step) {
		through_relay(&t);
		msg.epoch = t.a.epoch;
		t.relay.cut_at = t.relay.forward + at;
		CHECK(!dsm_transport_send(t.a.transport, 0, &msg,
					  with_page ? page : NULL), "send");
		UNTIL(t.b.nr_ends && t.a.nr_ends);
		CHECK(t.b.end[0].reason == DSM_END_CUT, "%u of %u: %s %s", at, bytes,
		      dsm_end_name(t.b.end[0].reason), t.b.end[0].text);
		CHECK(t.b.messages == (at == bytes), "%u of %u: %u messages", at,
		      bytes, t.b.messages);
		relay_stop(&t.relay);
		cuts++;
	}
	printf("%u bytes, %u cuts\n", bytes, cuts);
	CHECK(cuts > 40, "%u cuts", cuts);
	three_down(&t);
}

static void flipped_bits(const void *argument)
{
	static const uint8_t page[DSM_PAGE_BYTES];
	struct dsm_msg msg = message(7, DSM_RDATA, 1);
	struct three t = { 0 };
	unsigned int bytes, at, alerts = 0;

	(void)argument;
	three_up(&t);
	bytes = wire_bytes(&t, &msg, page);
	for (at = 0; at < bytes; at += at < 40 || at > bytes - 20 ? 1 : 131) {
		through_relay(&t);
		msg.epoch = t.a.epoch;
		t.relay.flip_at = t.relay.forward + at;
		CHECK(!dsm_transport_send(t.a.transport, 0, &msg, page), "send");
		/* A longer length waits for bytes that the end cuts off. */
		if (at >= 3 && at < 5) {
			UNTIL(t.relay.forward > t.relay.flip_at + bytes - at - 1);
			run_pending();
			if (!t.b.nr_ends)
				t.relay.cut_at = t.relay.forward;
		}
		UNTIL(t.b.nr_ends);
		CHECK(!t.b.messages, "byte %u: a changed message", at);
		CHECK(t.b.end[0].reason == DSM_END_NOT_TLS ||
		      ((at >= 3 && at < 5) && t.b.end[0].reason == DSM_END_CUT),
		      "byte %u: %s %s", at, dsm_end_name(t.b.end[0].reason),
		      t.b.end[0].text);
		UNTIL(t.a.nr_ends);
		/* Its alert is about bytes, not about who we are. */
		CHECK(t.a.end[0].reason == DSM_END_NOT_TLS ||
		      t.a.end[0].reason == DSM_END_CUT, "byte %u: %s %s", at,
		      dsm_end_name(t.a.end[0].reason), t.a.end[0].text);
		alerts += t.a.end[0].reason == DSM_END_NOT_TLS;
		relay_stop(&t.relay);
	}
	CHECK(alerts, "nobody has heard an alert");
	three_down(&t);
}

struct tape {
	const uint8_t *bytes;
	size_t size;
};

static void replay_tape(struct stranger *s)
{
	const struct tape *tape = s->argument;

	stranger_write(s, tape->bytes, tape->size);
	shutdown(s->fd, SHUT_WR);
	stranger_read_to_end(s);
}

static void replay(const void *argument)
{
	static uint8_t record[65536];
	struct dsm_msg msg = message(7, DSM_GETM, 0x77);
	struct three t = { 0 };
	struct tape tape = { record, 0 };
	struct stranger s = {
		.script = replay_tape, .argument = &tape, .tls_version = -1,
	};
	unsigned int i;

	(void)argument;
	three_up(&t);
	t.relay.record = record;
	t.relay.record_size = sizeof(record);
	through_relay(&t);
	for (i = 0; i < 10; i++)
		CHECK(!dsm_transport_send(t.a.transport, 0, &msg, NULL), "send");
	UNTIL(t.b.messages == 10);
	tape.size = t.relay.forward;
	relay_stop(&t.relay);
	UNTIL(t.a.nr_ends && t.b.nr_ends);
	CHECK(tape.size > 1000 && tape.size < sizeof(record), "a tape");

	t.b.nr_ends = 0;
	t.b.ups = 0;
	CHECK(!dsm_transport_expect(t.b.transport, 1, 8), "expect");
	s.port = dsm_transport_port(t.b.transport);
	stranger_start(&s);
	stranger_join(&s);
	UNTIL(t.b.nr_ends);
	CHECK(t.b.messages == 10 && !t.b.ups, "what was recorded is taken again");
	CHECK(t.b.end[0].host == DSM_NOBODY &&
	      t.b.end[0].reason == DSM_END_NOT_TLS, "%s",
	      dsm_end_name(t.b.end[0].reason));
	/* Whom it is waiting for may still come. */
	CHECK(!dsm_transport_close(t.b.transport, 1), "still expected");
	three_down(&t);
}

/* Within a connection: a record that comes twice. */
static void replay_record(const void *argument)
{
	static uint8_t record[65536];
	struct dsm_msg msg = message(7, DSM_GETM, 0x77);
	struct three t = { 0 };
	unsigned long long before;

	(void)argument;
	three_up(&t);
	t.relay.record = record;
	t.relay.record_size = sizeof(record);
	through_relay(&t);
	before = t.relay.forward;
	CHECK(!dsm_transport_send(t.a.transport, 0, &msg, NULL), "send");
	UNTIL(t.b.messages == 1);
	CHECK(before < t.relay.forward, "a record");
	t.relay.repeat_to = t.relay.forward;
	t.relay.repeat_from = before;
	t.relay.repeat = true;
	UNTIL(t.b.nr_ends);
	CHECK(t.b.messages == 1 && t.b.end[0].reason == DSM_END_NOT_TLS, "%u, %s",
	      t.b.messages, dsm_end_name(t.b.end[0].reason));
	relay_stop(&t.relay);
	three_down(&t);
}

/* A peer with the right papers that lies. */

static void put32(uint8_t *bytes, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

/* HELLO both ways, and its question. */
static bool get_up(struct stranger *s)
{
	struct dsm_hello hello = {
		.lowest = 1, .highest = 1, .host = 1, .nr_hosts = HOSTS,
		.epoch = session, .vm = "fifteen letters",
	};
	uint8_t bytes[DSM_WIRE_BYTES];

	if (!s->proved || !stranger_read(s, bytes, sizeof(bytes)))
		return false;
	dsm_wire_put_hello(&hello, bytes);
	return stranger_write(s, bytes, sizeof(bytes)) &&
	       stranger_read(s, bytes, sizeof(bytes)) &&
	       bytes[0] == DSM_LINK_MARK && bytes[1] == DSM_LINK_QUESTION;
}

static void go_silent(struct stranger *s)
{
	CHECK(get_up(s), "up");
	stranger_read_to_end(s);
}

/* 64 bytes, or a page, behind a head: not for who speaks an older version. */
static void messages_about_vcpus(const void *argument)
{
	struct stranger s = { .script = go_silent };
	struct dsm_transport_counters counters;
	struct dsm_msg msg = message(7, DSM_VCPU_EVENT, 0);
	uint8_t bytes[DSM_PAGE_BYTES];
	struct host a, b;

	(void)argument;
	two_hosts(&a, &b);
	two_up(&a, &b);
	CHECK(dsm_transport_version(a.transport, 0) == DSM_WIRE_HIGHEST &&
	      !dsm_transport_version(a.transport, 2), "the version");
	fill_page(bytes, 5);
	CHECK(dsm_transport_send(a.transport, 0, &msg, NULL) == -EINVAL, "nothing behind it");
	CHECK(!dsm_transport_send(a.transport, 0, &msg, bytes), "send");
	UNTIL(b.messages == 1);
	CHECK(b.last.type == DSM_VCPU_EVENT && !b.pages &&
	      !memcmp(b.page, bytes, DSM_VCPU_BYTES), "the same");
	fill_page(bytes, 6);
	msg = message(7, DSM_VCPU_POLICY, 3);
	CHECK(!dsm_transport_send(b.transport, 1, &msg, bytes), "a page");
	UNTIL(a.messages == 1);
	CHECK(a.pages == 1 && a.last.gfn == 3 && !memcmp(a.page, bytes, DSM_PAGE_BYTES), "the page");
	CHECK(!dsm_transport_counts(a.transport, 0, &counters) && counters.received_pages == 1 &&
	      !counters.sent_pages, "a's counts");
	CHECK(!dsm_transport_counts(b.transport, 1, &counters) && counters.sent_pages == 1 &&
	      !counters.received_pages, "b's counts");
	two_down(&a, &b);
	if (rig_is_rdma())
		return;	/* the older one speaks TLS only */

	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, session);
	UNTIL(b.ups);
	msg = message(b.epoch, DSM_VCPU_EVENT, 0);
	CHECK(dsm_transport_version(b.transport, 1) == 1 &&
	      dsm_transport_send(b.transport, 1, &msg, bytes) == -EPROTONOSUPPORT, "too new");
	msg = message(b.epoch, DSM_GETS, 1);
	CHECK(!dsm_transport_send(b.transport, 1, &msg, NULL) && !b.nr_ends, "pages as before");
	host_stop(&b);
	stranger_join(&s);
	papers_free(&s.papers);
	rig_end();
}

static void put_message(uint8_t *bytes, unsigned int type, uint64_t gfn)
{
	struct dsm_msg msg = message(session, type, gfn);

	dsm_wire_put(&msg, bytes);
}

static void put_link(uint8_t *bytes, unsigned int kind, uint32_t number,
		     uint32_t grant)
{
	memset(bytes, 0, DSM_WIRE_BYTES);
	bytes[0] = DSM_LINK_MARK;
	bytes[1] = (uint8_t)kind;
	put32(bytes + 4, session);
	put32(bytes + 8, number);
	put32(bytes + 16, grant);
}

/* Some frames, then the end; what byte at of the last one is. */
static const struct lie {
	const char *name;
	enum { MESSAGE, LINK } kind;
	unsigned int type, frames, at;
	uint8_t value;
	uint32_t number, grant;
	enum dsm_end reason;
	unsigned int messages;	/* that are taken */
} lies[] = {
	{ "the truth", MESSAGE, DSM_GETS, 5, 2, 0, 0, 0, DSM_END_CUT, 5 },
	{ "a huge length", MESSAGE, DSM_GETS, 2, 15, 0xff, 0, 0, DSM_END_FRAME, 1 },
	{ "a page where none is", MESSAGE, DSM_GETS, 2, 13, 0x10, 0, 0, DSM_END_FRAME, 1 },
	{ "no page where one is", MESSAGE, DSM_PUTM, 1, 13, 0, 0, 0, DSM_END_FRAME, 0 },
	{ "a page of 8192 bytes", MESSAGE, DSM_PUTM, 1, 13, 0x20, 0, 0, DSM_END_FRAME, 0 },
	{ "no such type", MESSAGE, DSM_GETS, 2, 1, 200, 0, 0, DSM_END_FRAME, 1 },
	{ "type 0", MESSAGE, DSM_GETS, 2, 1, 0, 0, 0, DSM_END_FRAME, 1 },
	{ "another version", MESSAGE, DSM_GETS, 2, 0, 2, 0, 0, DSM_END_FRAME, 1 },
	{ "of a later version", MESSAGE, DSM_VCPU_EVENT, 1, 2, 0, 0, 0, DSM_END_FRAME, 0 },
	{ "HELLO again", MESSAGE, DSM_GETS, 2, 0, 0, 0, 0, DSM_END_FRAME, 1 },
	{ "a reserved byte", MESSAGE, DSM_GETS, 2, 31, 1, 0, 0, DSM_END_FRAME, 1 },
	{ "another epoch", MESSAGE, DSM_GETS, 2, 4, 2, 0, 0, DSM_END_EPOCH, 1 },
	{ "epoch 0", MESSAGE, DSM_GETS, 1, 4, 0, 0, 0, DSM_END_EPOCH, 0 },
	{ "a message without a credit", MESSAGE, DSM_GETS, 17, 2, 0, 0, 0,
	  DSM_END_CREDITS, 16 },
	{ "no such kind", LINK, 4, 1, 2, 0, 0, 0, DSM_END_FRAME, 0 },
	{ "kind 0", LINK, 0, 1, 2, 0, 0, 0, DSM_END_FRAME, 0 },
	{ "an answer to another question", LINK, DSM_LINK_ANSWER, 1, 2, 0, 2, 8,
	  DSM_END_TURN, 0 },
	{ "an answer twice", LINK, DSM_LINK_ANSWER, 2, 2, 0, 1, 8, DSM_END_TURN, 0 },
	{ "too much credit", LINK, DSM_LINK_ANSWER, 1, 2, 0, 1, DSM_CREDITS_MOST + 1,
	  DSM_END_TURN, 0 },
	{ "credit taken back", LINK, DSM_LINK_QUESTION, 1, 2, 0, 1, ~0u,
	  DSM_END_TURN, 0 },
	{ "a reserved byte of a question", LINK, DSM_LINK_QUESTION, 1, 31, 1, 1, 8,
	  DSM_END_FRAME, 0 },
	{ "a question of another epoch", LINK, DSM_LINK_QUESTION, 1, 4, 9, 1, 8,
	  DSM_END_EPOCH, 0 },
	{ "two questions", LINK, DSM_LINK_QUESTION, 2, 2, 0, 1, 8, DSM_END_TURN, 0 },
	{ "FAIL", LINK, DSM_LINK_FAIL, 1, 3, 7, 0, 0, DSM_END_FAILED, 0 },
	{ "FAIL with more", LINK, DSM_LINK_FAIL, 1, 3, 7, 1, 0, DSM_END_FRAME, 0 },
};

static void lie(struct stranger *s)
{
	const struct lie *l = s->argument;
	uint8_t bytes[17 * DSM_WIRE_BYTES], *last = bytes;
	unsigned int i;

	CHECK(get_up(s) && l->frames && l->frames <= 17, "up");
	for (i = 0; i < l->frames; i++) {
		last = bytes + i * DSM_WIRE_BYTES;
		if (l->kind == LINK)
			put_link(last, l->type, l->number, l->grant);
		else
			put_message(last, l->type, i);
	}
	last[l->at] = l->value;
	/* One record: nothing is answered in between. */
	CHECK(stranger_write(s, bytes, l->frames * DSM_WIRE_BYTES), "write");
	shutdown(s->fd, SHUT_WR);
	stranger_read_to_end(s);
}

static void liar(const void *argument)
{
	const struct lie *l = argument;
	struct stranger s = { .script = lie, .argument = l };
	struct host b;

	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, 1);
	UNTIL(b.ups);
	if (l->reason == DSM_END_CREDITS)
		CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	UNTIL(b.nr_ends);
	stranger_join(&s);
	CHECK(b.end[0].reason == l->reason && b.end[0].host == 1, "'%s' %s",
	      dsm_end_name(b.end[0].reason), b.end[0].text);
	/* What was held went with its connection. */
	CHECK(b.messages == (l->reason == DSM_END_CREDITS ? 0 : l->messages),
	      "%u messages", b.messages);
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

/* close_notify by somebody who is not done. */

static void close_politely(struct stranger *s)
{
	const unsigned int *bytes = s->argument;
	uint8_t message_bytes[DSM_WIRE_BYTES + DSM_PAGE_BYTES] = { 0 };

	CHECK(get_up(s), "up");
	put_message(message_bytes, DSM_RDATA, 1);
	if (*bytes)
		CHECK(stranger_write(s, message_bytes, *bytes), "write");
	SSL_shutdown(s->ssl);
	stranger_read_to_end(s);
}

static void notify_within_a_message(const void *argument)
{
	static const unsigned int sizes[] = { 0, 1, 31, 32, 33, 4127, 4128 };
	struct stranger s = { 0 };
	struct host b;
	unsigned int i;
	bool good;

	(void)argument;
	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	host_start(&b);
	s.port = dsm_transport_port(b.transport);
	s.script = close_politely;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		good = !sizes[i] || sizes[i] == 4128;
		b.messages = b.nr_ends = 0;
		s.done = false;
		s.argument = &sizes[i];
		CHECK(!dsm_transport_expect(b.transport, 1, ++session), "expect");
		stranger_start(&s);
		stranger_join(&s);
		UNTIL(b.nr_ends);
		CHECK(b.end[0].reason == (good ? DSM_END_CLOSED : DSM_END_CUT),
		      "%u bytes: %s", sizes[i], dsm_end_name(b.end[0].reason));
		CHECK(b.messages == (sizes[i] == 4128), "%u bytes: %u messages",
		      sizes[i], b.messages);
	}
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

/* New keys whenever the peer wants, as often as it wants. */
static void change_keys(struct stranger *s)
{
	uint8_t bytes[DSM_WIRE_BYTES];
	unsigned int i;

	CHECK(get_up(s), "up");
	put_link(bytes, DSM_LINK_ANSWER, 1, 8);
	CHECK(stranger_write(s, bytes, sizeof(bytes)), "answer");
	for (i = 0; i < 200; i++) {
		CHECK(SSL_key_update(s->ssl, i % 2 ? SSL_KEY_UPDATE_REQUESTED :
				     SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
		      SSL_do_handshake(s->ssl) == 1, "key");
		if (i % 20)
			continue;
		put_message(bytes, DSM_GETS, i);
		CHECK(stranger_write(s, bytes, sizeof(bytes)), "write");
		put_link(bytes, DSM_LINK_QUESTION, i, 8);
		CHECK(stranger_write(s, bytes, sizeof(bytes)), "question");
		do
			CHECK(stranger_read(s, bytes, sizeof(bytes)), "answer");
		while (bytes[1] != DSM_LINK_ANSWER);
	}
	SSL_shutdown(s->ssl);
	stranger_read_to_end(s);
}

static void new_keys(const void *argument)
{
	struct stranger s = { .script = change_keys };
	struct host b;

	(void)argument;
	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, 1);
	stranger_join(&s);
	UNTIL(b.nr_ends);
	CHECK(b.messages == 10 && b.end[0].reason == DSM_END_CLOSED, "%u, %s %s",
	      b.messages, dsm_end_name(b.end[0].reason), b.end[0].text);
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

/* New keys in a row: what others have to say is not behind all of them. */
#define KEYS	100

static atomic_int key_step;

static void only_keys(struct stranger *s)
{
	uint8_t bytes[DSM_WIRE_BYTES];
	unsigned int i;
	int one = 1;

	/* All of them are in the other end's socket when they are written. */
	CHECK(!setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) &&
	      get_up(s), "up");
	while (key_step != 1)
		poll(NULL, 0, 1);
	for (i = 0; i < KEYS; i++)
		CHECK(SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
		      SSL_do_handshake(s->ssl) == 1, "key");
	put_message(bytes, DSM_GETS, 1);
	CHECK(stranger_write(s, bytes, sizeof(bytes)), "write");
	key_step = 2;
	stranger_read_to_end(s);
}

static void keys_take_turns(const void *argument)
{
	struct stranger s = { .script = only_keys };
	struct host b;
	unsigned int i;

	(void)argument;
	rig_begin();
	key_step = 0;
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, ++session);
	UNTIL(b.ups && s.got >= 64);
	run_pending();
	key_step = 1;
	for (i = 0; i < 1000 * PATIENCE && key_step != 2; i++)
		poll(NULL, 0, 1);
	CHECK(key_step == 2, "it has not written");
	for (i = 0; i < KEYS / 2; i++) {
		ev_run(loop, EVRUN_NOWAIT);
		CHECK(!b.messages, "all keys in %u turns of the loop", i + 1);
	}
	UNTIL(b.messages == 1);
	host_stop(&b);
	stranger_join(&s);
	papers_free(&s.papers);
	rig_end();
}

/* One record with more messages than are taken in a turn: none stays in TLS. */
#define IN_A_RECORD	500

static atomic_bool has_written;

static void write_record(struct stranger *s)
{
	static uint8_t bytes[IN_A_RECORD * DSM_WIRE_BYTES];
	unsigned int i;

	CHECK(get_up(s), "up");
	for (i = 0; i < IN_A_RECORD; i++)
		put_message(bytes + i * DSM_WIRE_BYTES, DSM_GETS, i);
	CHECK(stranger_write(s, bytes, sizeof(bytes)), "write");
	has_written = true;
	stranger_read_to_end(s);
}

static void full_record(const void *argument)
{
	struct stranger s = { .script = write_record };
	struct host b;

	(void)argument;
	rig_begin();
	has_written = false;
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	b.params.credits = DSM_CREDITS_MOST;
	stranger_meets(&s, &b, ++session);
	UNTIL(has_written);
	/* Nothing more comes: twenty turns, and no clock. */
	run_pending();
	CHECK(b.messages == IN_A_RECORD, "%u messages", b.messages);
	host_stop(&b);
	stranger_join(&s);
	papers_free(&s.papers);
	rig_end();
}

/* Frames with wrong bits, in pieces of any size. */
#define SESSIONS	150

struct noise {
	uint8_t bytes[24 * (DSM_WIRE_BYTES + DSM_PAGE_BYTES)];
	size_t size;
	uint64_t seed;
	unsigned int good;	/* messages before the first wrong bit */
};

static void make_noise(struct noise *n)
{
	unsigned int i, frames = 1 + dice_below(12), size;
	static const uint8_t types[] = { DSM_GETS, DSM_GETM, DSM_PUTM, DSM_RDATA };
	bool wrong = false;

	n->size = n->good = 0;
	for (i = 0; i < frames; i++) {
		uint8_t *frame = n->bytes + n->size;
		unsigned int type = types[dice_below(4)];

		put_message(frame, type, i);
		size = DSM_WIRE_BYTES;
		if (dsm_type_has_page(type)) {
			memset(frame + size, (int)i, DSM_PAGE_BYTES);
			size += DSM_PAGE_BYTES;
		}
		if (!dice_below(5)) {
			/* version, type, epoch, length, reserved: never right */
			static const uint8_t places[] = { 0, 5, 14, 15, 25, 31 };

			frame[places[dice_below(6)]] ^= (uint8_t)(1u << dice_below(7));
			wrong = true;
		}
		n->size += size;
		n->good += !wrong;
	}
	n->seed = dice();
}

static void make_pieces(struct stranger *s)
{
	const struct noise *n = s->argument;
	uint64_t state = n->seed;
	size_t at = 0, piece;

	CHECK(get_up(s), "up");
	while (at < n->size) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		piece = state >> 33 & 1 ? 1 + (state >> 40) % 40 :
			1 + (state >> 40) % 6000;
		piece = piece < n->size - at ? piece : n->size - at;
		if (!stranger_write(s, n->bytes + at, piece))
			return;	/* refused already */
		at += piece;
	}
	shutdown(s->fd, SHUT_WR);
	stranger_read_to_end(s);
}

static void fuzz(const void *argument)
{
	static struct noise n;
	struct stranger s = { .script = make_pieces, .argument = &n };
	unsigned int i, refused = 0;
	struct host b;

	(void)argument;
	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	host_start(&b);
	s.port = dsm_transport_port(b.transport);
	for (i = 0; i < SESSIONS; i++) {
		session++;
		make_noise(&n);
		b.messages = b.nr_ends = 0;
		s.done = false;
		CHECK(!dsm_transport_expect(b.transport, 1, session), "expect");
		stranger_start(&s);
		stranger_join(&s);
		UNTIL(b.nr_ends);
		CHECK(b.messages == n.good, "session %u: %u messages, %u were good",
		      i, b.messages, n.good);
		CHECK(b.end[0].reason == DSM_END_CUT ||
		      b.end[0].reason == DSM_END_FRAME ||
		      b.end[0].reason == DSM_END_EPOCH, "%s",
		      dsm_end_name(b.end[0].reason));
		refused += b.end[0].reason != DSM_END_CUT;
	}
	printf("%u of %u sessions refused\n", refused, SESSIONS);
	CHECK(refused > SESSIONS / 4 && refused < SESSIONS, "the dice are wrong");
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

#define NR(table)	(sizeof(table) / sizeof(table[0]))

/* A fabric that is trusted, but no device of it. */
static void no_device(const void *argument)
{
	struct host h, other;
	int rc;

	(void)argument;
	two_hosts(&h, &other);
	h.params.kind = DSM_TRANSPORT_RDMA;
	rc = dsm_transport_create(&h.params, &h.transport, h.text);
	CHECK(rc == -ENODEV || rc == -ENOENT, "%d: %s", rc, h.text);
	CHECK(strstr(h.text, "rdma link"), "%s", h.text);
	rig_end();
}

int main(int argc, char **argv)
{
	static const struct test_case any[] = {
		{ "messages both ways", both_ways, NULL },
		{ "clocks of both hosts", clocks, NULL },
		{ "messages about vCPUs", messages_about_vcpus, NULL },
		{ "calls that make no sense", calls_that_make_no_sense, NULL },
		{ "wrong parameters", wrong_parameters, NULL },
		{ "order under back-pressure", order, NULL },
		{ "credits", credits, NULL },
		{ "room again", room_again, NULL },
		{ "a full queue", full_queue, NULL },
		{ "a good end", good_end, NULL },
		{ "closing takes too long", close_in_vain, NULL },
		{ "FAIL", peer_fails, NULL },
		{ "FAIL: a host is lost", peer_lost_another, NULL },
		{ "nobody listens", nobody_listens, NULL },
		{ "calls from callbacks", calls_from_callbacks, NULL },
		{ "a long peace", long_peace, NULL },
		{ "an end that is held", held_end, NULL },
		{ "the next connection", next_connection, NULL },
	};
	static const struct test_case tcp_only[] = {
		{ "no RDMA device", no_device, NULL },
		{ "silence", silence, NULL },
		{ "an answer that we see too late", late_look, NULL },
		{ "a full socket", full_socket, NULL },
		{ "cut at each byte of a message", cut_at_each_byte, NULL },
		{ "cut at many bytes of a page", cut_at_each_byte, "page" },
		{ "bits flipped on the way", flipped_bits, NULL },
		{ "a session played again", replay, NULL },
		{ "a record played again", replay_record, NULL },
		{ "close_notify within a message", notify_within_a_message, NULL },
		{ "new keys", new_keys, NULL },
		{ "keys take turns", keys_take_turns, NULL },
		{ "more in a record than in a turn", full_record, NULL },
		{ "FAIL goes first", fail_goes_first, NULL },
		{ "FAIL is heard", fail_is_heard, NULL },
		{ "no delay", no_delay, NULL },
		{ "fuzz", fuzz, NULL },
	};
	static struct test_case cases[NR(any) + NR(tcp_only) + NR(lies)];
	static char names[NR(lies)][96];
	size_t i;

	if (rig_is_rdma())
		return run_cases(argc, argv, any, NR(any));
	memcpy(cases, any, sizeof(any));
	memcpy(cases + NR(any), tcp_only, sizeof(tcp_only));
	for (i = 0; i < NR(lies); i++) {
		snprintf(names[i], sizeof(names[i]), "a lie: %s", lies[i].name);
		cases[NR(any) + NR(tcp_only) + i] =
			(struct test_case){ names[i], liar, &lies[i] };
	}
	return run_cases(argc, argv, cases, NR(cases));
}
