// SPDX-License-Identifier: GPL-2.0
/*
 * Connections over RDMA with an adapter that is played (played_rdma.h): what needs a call
 * that fails, an event that comes late or never, a loop that is asked at a certain moment,
 * or a count of what is left.  What an adapter really does: rdma_test.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "binding.h"
#include "played_rdma.h"
#include "queue_pair.h"
#include "rig.h"

#define VM		"fifteen letters"
#define NR(table)	(sizeof(table) / sizeof(table[0]))
#define MANY		3000u

static void prepare(struct host *h, unsigned int number)
{
	host_prepare(h, number);
	h->params.kind = DSM_TRANSPORT_RDMA;
}

/* Host 1, which opens, and host 0. */
static void begin_two(struct host *a, struct host *b)
{
	rig_begin();
	played_begin();
	prepare(a, 1);
	prepare(b, 0);
}

static void start_two(struct host *a, struct host *b)
{
	host_start(b);
	host_start(a);
	point_to(a, 0, dsm_transport_port(b->transport));
}

static void begin_up(struct host *a, struct host *b)
{
	begin_two(a, b);
	start_two(a, b);
	connect_hosts(a, b);
	run_pending();
}

static void end_two(struct host *a, struct host *b)
{
	host_stop(a);
	host_stop(b);
	CHECK(!played.objects && !played.ids && !played.events, "%u objects of the adapter, %u identifiers, %u events are left",
	      played.objects, played.ids, played.events);
	rig_end();
}

/* The opener's queue pair is made first. */
static struct ibv_qp *qp_of(const struct host *h)
{
	return played_last_qp(h->params.self ? 1 : 0);
}

static void check_end(const struct host *h, unsigned int host, enum dsm_end reason, const char *text)
{
	CHECK(h->nr_ends == 1 && h->end[0].host == host && h->end[0].reason == reason &&
	      strstr(h->end[0].text, text), "%u ends: host %u, %s: %s", h->nr_ends, h->end[0].host,
	      dsm_end_name(h->end[0].reason), h->end[0].text);
}

static struct dsm_transport_counters counters_of(const struct host *h, unsigned int host)
{
	struct dsm_transport_counters counters;

	CHECK(!dsm_transport_counts(h->transport, host, &counters), "counters");
	return counters;
}

/* ---- What goes well ---- */

static void send_to(struct host *h, unsigned int host, unsigned int type, uint64_t gfn)
{
	static const uint8_t page[DSM_PAGE_BYTES];
	struct dsm_msg msg = message(h->epoch, type, gfn);

	CHECK(!dsm_transport_send(h->transport, host, &msg, dsm_type_bytes(type) ? page : NULL), "send");
}

static void in_order(struct host *h, const struct dsm_msg *msg, const uint8_t *page)
{
	(void)page;
	CHECK(msg->gfn + 1 == h->messages, "message %u is %u", h->messages, (unsigned int)msg->gfn);
}

static void both_ways(const void *argument)
{
	struct dsm_transport_counters counters;
	unsigned int i, j, pages;
	struct host a, b;

	(void)argument;
	begin_two(&a, &b);
	a.params.credits = 5;
	b.params.credits = 200;
	a.params.queue = b.params.queue = 4096;
	start_two(&a, &b);
	connect_hosts(&a, &b);
	CHECK(!played_may_write(qp_of(&a)) && !played_may_write(qp_of(&b)), "the peer may write");
	CHECK(played_ack_timeout(qp_of(&a)) == dsm_link_ack_timeout(QUESTION, DEADLINE) &&
	      played_ack_timeout(qp_of(&b)) == dsm_link_ack_timeout(QUESTION, DEADLINE), "the time-out");
	a.on_message = b.on_message = in_order;
	for (i = 0; i < MANY; i++) {
		send_to(&a, 0, i % 3 ? DSM_GETS : DSM_RDATA, i);
		send_to(&b, 1, i % 2 ? DSM_GETS : DSM_RDATA, i);
	}
	pages = (MANY + 2) / 3;
	counters = counters_of(&b, 1);
	CHECK(counters.sent == MANY && counters.stalls && counters.waiting, "%u wait", counters.waiting);
	UNTIL(a.messages == MANY && b.messages == MANY);
	run_pending();
	counters = counters_of(&a, 0);
	CHECK(counters.sent == MANY && counters.received == MANY && counters.connections == 1 &&
	      counters.sent_pages == pages && counters.received_pages == MANY / 2 && !counters.waiting &&
	      counters.credits, "%u sent, %u received", (unsigned int)counters.sent, (unsigned int)counters.received);
	CHECK(counters.sent_bytes > MANY * 32ull + pages * 4096ull &&
	      counters.sent_bytes < MANY * 128ull + pages * 4096ull &&
	      counters.received_bytes > MANY * 32ull + MANY / 2 * 4096ull &&
	      counters.questions > 100, "%u bytes", (unsigned int)counters.sent_bytes);
	/* All receives are posted again. */
	for (j = 0; j < 2; j++)
		CHECK(played_receives(qp_of(j ? &a : &b)) == (j ? 5 : 200) + DSM_LINK_FRAMES, "%u receives",
		      played_receives(qp_of(j ? &a : &b)));
	CHECK(!dsm_transport_close(a.transport, 0), "close");
	UNTIL(a.nr_ends && b.nr_ends);
	check_end(&a, 0, DSM_END_CLOSED, "");
	check_end(&b, 1, DSM_END_CLOSED, "");
	CHECK(!played.objects, "%u objects are left", played.objects);
	/* And once more. */
	a.nr_ends = b.nr_ends = 0;
	connect_hosts(&a, &b);
	end_two(&a, &b);
}

/* Who looks again and again is told of all that there is, and not asked by the channel. */
static void by_polling(const void *argument)
{
	unsigned int i, got;
	struct host a, b;

	(void)argument;
	begin_up(&a, &b);
	a.epoch = b.epoch;
	for (i = 0; i < 10; i++)
		send_to(&a, 0, DSM_GETS, i);
	got = dsm_transport_poll(b.transport);
	CHECK(got == 10 && b.messages == 10, "%u", got);
	CHECK(!dsm_transport_poll(b.transport), "nothing");
	CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	send_to(&a, 0, DSM_GETS, 10);
	CHECK(!dsm_transport_poll(b.transport) && b.messages == 10, "held");
	CHECK(!dsm_transport_hold(b.transport, 1, false), "go on");
	CHECK(dsm_transport_poll(b.transport) == 1 && b.messages == 11, "not held");
	end_two(&a, &b);
}

/* More completions than one turn takes, and no event after them. */
static void many_at_once(const void *argument)
{
	struct host a, b;
	unsigned int i;

	(void)argument;
	begin_two(&a, &b);
	a.params.credits = b.params.credits = 1000;
	start_two(&a, &b);
	connect_hosts(&a, &b);
	UNTIL(dsm_transport_room(a.transport, 0) > 300 && dsm_transport_room(b.transport, 1) > 300);
	run_pending();
	for (i = 0; i < 64; i++)
		send_to(&b, 1, DSM_GETS, i);
	for (i = 0; i < 64; i++)
		send_to(&a, 0, DSM_GETS, i);
	UNTIL(a.messages == 64 && b.messages == 64);
	end_two(&a, &b);
}

/* ---- Calls that fail ---- */

static const struct failing {
	const char *call;
	unsigned int after;
	int error;
	bool opener;		/* whose end tells of it */
	enum dsm_end reason;
	const char *text;
} failing[] = {
	{ "rdma_create_id", 0, EMFILE, true, DSM_END_LOCAL, "rdma_create_id(): Too many open files" },
	{ "rdma_resolve_addr", 0, ENODEV, true, DSM_END_UNREACHABLE, "rdma_resolve_addr(): No such device" },
	{ "rdma_resolve_route", 0, ENODEV, true, DSM_END_UNREACHABLE, "rdma_resolve_route(): No such device" },
	{ "ibv_alloc_pd", 0, ENOMEM, true, DSM_END_LOCAL, "ibv_alloc_pd(): Cannot allocate memory" },
	{ "ibv_reg_mr", 0, ENOMEM, true, DSM_END_LOCAL, "ibv_reg_mr() of 1400832 bytes: Cannot allocate memory; may so much be locked (LimitMEMLOCK=)?" },
	{ "ibv_create_comp_channel", 0, EMFILE, true, DSM_END_LOCAL, "ibv_create_comp_channel(): Too many" },
	{ "ibv_create_cq", 0, ENOMEM, true, DSM_END_LOCAL, "ibv_create_cq() for 87 completions: Cannot" },
	{ "rdma_set_option", 0, ENOSYS, true, DSM_END_LOCAL, "rdma_set_option(): Function not" },
	{ "rdma_create_qp", 0, ENOMEM, true, DSM_END_LOCAL, "rdma_create_qp() with 68 SENDs and 19 receives: Cannot" },
	{ "ibv_post_recv", 18, ENOMEM, true, DSM_END_LOCAL, "ibv_post_recv(): Cannot allocate memory" },
	{ "rdma_connect", 0, EINVAL, true, DSM_END_LOCAL, "rdma_connect(): Invalid argument" },
	{ "ibv_alloc_pd", 1, ENOMEM, false, DSM_END_LOCAL, "ibv_alloc_pd(): Cannot allocate memory" },
	{ "ibv_reg_mr", 1, ENOMEM, false, DSM_END_LOCAL, "ibv_reg_mr() of 1400832 bytes: Cannot" },
	{ "ibv_create_comp_channel", 1, EMFILE, false, DSM_END_LOCAL, "ibv_create_comp_channel(): Too many" },
	{ "ibv_create_cq", 1, ENOMEM, false, DSM_END_LOCAL, "ibv_create_cq() for 87 completions: Cannot" },
	{ "rdma_create_qp", 1, ENOMEM, false, DSM_END_LOCAL, "rdma_create_qp() with 68 SENDs and 19 receives: Cannot" },
	{ "ibv_post_recv", 19, ENOMEM, false, DSM_END_LOCAL, "ibv_post_recv(): Cannot allocate memory" },
	{ "ibv_req_notify_cq", 0, EIO, false, DSM_END_LOCAL, "ibv_req_notify_cq(): Input/output error" },
	{ "rdma_accept", 0, EINVAL, false, DSM_END_LOCAL, "rdma_accept(): Invalid argument" },
	{ "ibv_modify_qp", 0, EINVAL, false, DSM_END_LOCAL, "ibv_modify_qp(): Invalid argument" },
	{ "ibv_modify_qp", 1, EINVAL, true, DSM_END_LOCAL, "ibv_modify_qp(): Invalid argument" },
	{ "ibv_req_notify_cq", 1, EIO, true, DSM_END_LOCAL, "ibv_req_notify_cq(): Input/output error" },
	{ "ibv_post_send", 0, ENOMEM, true, DSM_END_LOCAL, "ibv_post_send(): Cannot allocate memory" },
};

static void one_fails(const void *argument)
{
	const struct failing *which = argument;
	struct host a, b, *told;

	begin_two(&a, &b);
	start_two(&a, &b);
	played.fails = which->call;
	played.after = which->after;
	played.error = which->error;
	told = which->opener ? &a : &b;
	CHECK(!dsm_transport_expect(b.transport, 1, 7), "expect");
	CHECK(!dsm_transport_open(a.transport, 0, 7), "open");
	UNTIL(a.nr_ends && (b.nr_ends || !b.ups));
	run_pending();
	CHECK(!played.fails, "it was never called");
	check_end(told, which->opener ? 0 : 1, which->reason, which->text);
	CHECK(a.nr_ends == 1, "%u", a.nr_ends);
	/* Nothing is left of it, and the next one comes up. */
	CHECK(!played.objects, "%u objects are left", played.objects);
	a.nr_ends = b.nr_ends = a.ups = b.ups = 0;
	a.epoch = 8;
	dsm_transport_close(b.transport, 1);
	connect_hosts(&a, &b);
	end_two(&a, &b);
}

static const struct {
	const char *call;
	int error;
	const char *text;
} starts[] = {
	{ "rdma_create_event_channel", ENOENT, "rdma_create_event_channel(): No such file or directory; is there an RDMA device (rdma link)?" },
	{ "rdma_create_id", EMFILE, "rdma_create_id(): Too many open files" },
	{ "rdma_bind_addr", ENODEV, "rdma_bind_addr(): No such device; is there an RDMA device (rdma link)?" },
	{ "rdma_listen", EADDRINUSE, "rdma_listen(): Address already in use" },
};

static void no_start(const void *argument)
{
	struct host a, b;
	unsigned int i;
	int rc;

	(void)argument;
	begin_two(&a, &b);
	for (i = 0; i < NR(starts); i++) {
		played.fails = starts[i].call;
		played.error = starts[i].error;
		rc = dsm_transport_create(&a.params, &a.transport, a.text);
		CHECK(rc == -starts[i].error && !strcmp(a.text, starts[i].text), "%d: %s", rc, a.text);
	}
	played.adapter.max_qp_wr = 67;
	rc = dsm_transport_create(&a.params, &a.transport, a.text);
	CHECK(rc == -EOPNOTSUPP && strstr(a.text, "takes 67 messages at a time, 68 are needed"), "%d: %s", rc, a.text);
	/* Who can't be asked is not in the way. */
	played.fails = "ibv_query_device";
	played.error = EIO;
	host_start(&a);
	CHECK(!played.fails, "it was not asked");
	played.adapter.max_qp_wr = 68;
	host_start(&b);
	end_two(&a, &b);
}

/* ---- Between HELLO and up ---- */

/* It was agreed on, and has not come up: the same epoch is good once more. */
static void closed_while_bound(const void *argument)
{
	bool opener = argument != NULL;
	struct host a, b;

	begin_two(&a, &b);
	start_two(&a, &b);
	CHECK(!dsm_transport_expect(b.transport, 1, 7), "expect");
	CHECK(!dsm_transport_open(a.transport, 0, 7), "open");
	UNTIL(played.connects == 1);
	CHECK(!a.ups && !b.ups, "up");
	CHECK(!dsm_transport_close(opener ? a.transport : b.transport, opener ? 0 : 1), "close");
	if (opener) {
		UNTIL(b.nr_ends);
		run_pending();
		CHECK(!a.nr_ends, "an end of what was closed");
	} else {
		UNTIL(a.nr_ends);
		/* Its request is nobody's by now. */
		CHECK(!counters_of(&b, 1).ends[DSM_END_CUT] && !b.ups, "an end of what was closed");
		CHECK(!dsm_transport_expect(b.transport, 1, 7), "the same epoch");
	}
	CHECK(!played.objects, "%u objects are left", played.objects);
	a.nr_ends = b.nr_ends = 0;
	CHECK(!dsm_transport_open(a.transport, 0, 7), "the same epoch");
	UNTIL((a.ups && b.ups) || a.nr_ends);
	CHECK(!a.nr_ends, "%s", a.end[0].text);
	end_two(&a, &b);
}

/* rdmacm has said in time that it is up, and it is we who look too late. */
static void up_seen_late(const void *argument)
{
	bool opener = argument != NULL;
	struct host a, b, *late;

	begin_two(&a, &b);
	start_two(&a, &b);
	late = opener ? &a : &b;
	CHECK(!dsm_transport_expect(b.transport, 1, 7), "expect");
	CHECK(!dsm_transport_open(a.transport, 0, 7), "open");
	if (opener)
		UNTIL(played.accepts == 1);
	else
		UNTIL(a.ups == 1);
	CHECK(!late->ups, "it has looked already");
	clock_ns += OPENING;
	dsm_transport_tick(late->transport);
	CHECK(late->ups == 1 && !late->nr_ends, "%u ups, %s", late->ups, dsm_end_name(late->end[0].reason));
	UNTIL(a.ups && b.ups);
	end_two(&a, &b);
}

/* And nobody is waited for longer than that. */
static void never_up(const void *argument)
{
	struct host a, b;

	(void)argument;
	begin_two(&a, &b);
	played.lose_rtu = true;
	start_two(&a, &b);
	played.stand_still = true;
	CHECK(!dsm_transport_expect(b.transport, 1, 7), "expect");
	CHECK(!dsm_transport_open(a.transport, 0, 7), "open");
	UNTIL(a.ups == 1);
	run_pending();
	clock_ns += OPENING - 1;
	dsm_transport_tick(b.transport);
	CHECK(!b.ups && !b.nr_ends, "%s", dsm_end_name(b.end[0].reason));
	clock_ns++;
	dsm_transport_tick(b.transport);
	check_end(&b, 1, DSM_END_SLOW, "");
	end_two(&a, &b);
}

/* What says "established" is lost; what the opener says is as good. */
static void rtu_lost(const void *argument)
{
	struct host a, b;

	(void)argument;
	begin_two(&a, &b);
	played.lose_rtu = true;
	start_two(&a, &b);
	connect_hosts(&a, &b);
	a.epoch = 7;
	send_to(&a, 0, DSM_RDATA, 1);
	UNTIL(b.messages == 1);
	end_two(&a, &b);
}

static void answer_lies(const void *argument)
{
	struct host a, b;

	(void)argument;
	begin_two(&a, &b);
	played.answer_lies = true;
	start_two(&a, &b);
	CHECK(!dsm_transport_expect(b.transport, 1, 7), "expect");
	CHECK(!dsm_transport_open(a.transport, 0, 7), "open");
	UNTIL(a.nr_ends && b.nr_ends);
	check_end(&a, 0, DSM_END_BINDING, "the answer");
	CHECK(!a.ups, "up");
	played.answer_lies = false;
	a.nr_ends = b.nr_ends = 0;
	CHECK(!dsm_transport_open(a.transport, 0, 7), "the same epoch");
	UNTIL(a.ups && b.ups);
	end_two(&a, &b);
}

/* Requests of nobody, of any size, before, with and after the right one. */
static void requests(const void *argument)
{
	static const struct {
		const char *from;
		uint8_t size;
		enum dsm_end reason;
	} table[] = {
		{ "127.0.0.1", 0, DSM_END_BINDING }, { "127.0.0.1", 1, DSM_END_BINDING },
		{ "127.0.0.1", 47, DSM_END_BINDING }, { "127.0.0.1", 48, DSM_END_BINDING },
		{ "127.0.0.1", 56, DSM_END_BINDING }, { "192.0.2.7", 48, DSM_END_STRANGER },
	};
	struct sockaddr_in from = { .sin_family = AF_INET };
	uint8_t bytes[56];
	unsigned int i, round, binding = 0, strangers = 0;
	struct host a, b;
	uint16_t port;

	(void)argument;
	memset(bytes, 0xa5, sizeof(bytes));
	begin_two(&a, &b);
	start_two(&a, &b);
	CHECK(!dsm_transport_expect(b.transport, 1, 7), "expect");
	for (round = 0; round < 3; round++) {
		if (round == 1) {
			CHECK(!dsm_transport_open(a.transport, 0, 7), "open");
			UNTIL(played.connects);
		}
		for (i = 0; i < NR(table); i++) {
			CHECK(inet_pton(AF_INET, table[i].from, &from.sin_addr) == 1, "address");
			/* b listens first. */
			port = 40000;
			played_ask(port, (struct sockaddr *)&from, bytes, table[i].size);
			run_pending();
			binding += table[i].reason == DSM_END_BINDING;
			strangers += table[i].reason == DSM_END_STRANGER;
			CHECK(counters_of(&b, DSM_NOBODY).ends[DSM_END_BINDING] == binding &&
			      counters_of(&b, DSM_NOBODY).ends[DSM_END_STRANGER] == strangers &&
			      played.rejects == binding + strangers, "round %u, row %u", round, i);
		}
	}
	CHECK(a.ups == 1 && b.ups == 1 && !a.nr_ends, "%u, %u", a.ups, b.ups);
	for (i = 0; i < b.nr_ends; i++)
		CHECK(b.end[i].host == DSM_NOBODY && !strncmp(b.end[i].text, "from 1", 6), "%s", b.end[i].text);
	CHECK(b.nr_ends == 8, "%u lines", b.nr_ends);
	end_two(&a, &b);
}

/* What is said through TLS after HELLO. */

struct words {
	const char *name;
	enum { NOTHING_BOUND, A_FRAME, HALF, A_QUESTION, A_FAIL, HANG_UP } what;
	enum dsm_end reason;
};

static const struct words words[] = {
	{ "no binding", NOTHING_BOUND, DSM_END_FRAME },
	{ "half of a binding", HALF, DSM_END_CUT },
	{ "a question", A_QUESTION, DSM_END_FRAME },
	{ "FAIL", A_FAIL, DSM_END_FAILED },
	{ "the end", HANG_UP, DSM_END_CUT },
};

static void say_words(struct stranger *s)
{
	const struct words *which = s->argument;
	struct dsm_hello hello = {
		.lowest = 1, .highest = 1, .host = 1, .nr_hosts = HOSTS, .epoch = 7, .vm = VM,
	};
	uint8_t bytes[DSM_WIRE_BYTES], frame[DSM_BINDING_FRAME] = { 0 };
	struct dsm_binding binding;

	if (!s->proved || !stranger_read(s, bytes, sizeof(bytes)))
		return;
	dsm_wire_put_hello(&hello, bytes);
	CHECK(stranger_write(s, bytes, sizeof(bytes)), "HELLO");
	if (which->what > HALF) {
		CHECK(!dsm_binding_init(&binding, s->ssl, false, 1, 0, 7, 0), "binding");
		dsm_binding_put(&binding, frame);
	}
	CHECK(stranger_write(s, frame, which->what == HALF ? 20 : sizeof(frame)), "binding");
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = DSM_LINK_MARK;
	bytes[1] = which->what == A_FAIL ? DSM_LINK_FAIL : DSM_LINK_QUESTION;
	bytes[3] = which->what == A_FAIL;
	bytes[4] = 7;
	if (which->what == A_QUESTION || which->what == A_FAIL)
		CHECK(stranger_write(s, bytes, sizeof(bytes)), "a word");
	if (which->what != HALF && which->what != HANG_UP)
		stranger_read_to_end(s);
}

static void bound_by_words(const void *argument)
{
	const struct words *which = argument;
	struct stranger s = { .script = say_words, .argument = argument };
	struct host a, b;

	begin_two(&a, &b);
	start_two(&a, &b);
	s.papers = host_papers(1);
	s.port = dsm_transport_port(b.transport);
	CHECK(!dsm_transport_expect(b.transport, 1, 7), "expect");
	stranger_start(&s);
	UNTIL(b.nr_ends);
	check_end(&b, 1, which->reason, "");
	stranger_join(&s);
	CHECK(!b.ups, "up");
	/* The right one may still come. */
	b.nr_ends = 0;
	CHECK(!dsm_transport_open(a.transport, 0, 7), "open");
	UNTIL((a.ups && b.ups) || a.nr_ends);
	CHECK(!a.nr_ends, "%s %s", dsm_end_name(a.end[0].reason), a.end[0].text);
	papers_free(&s.papers);
	end_two(&a, &b);
}

/* A peer that proves itself, agrees, and never comes up costs a handshake each time. */
static void agreed_without_end(const void *argument)
{
	static const struct words never = { "", NOTHING_BOUND, DSM_END_FRAME };
	struct stranger s = { .script = say_words, .argument = &never };
	struct host a, b;
	unsigned int i;

	(void)argument;
	begin_two(&a, &b);
	start_two(&a, &b);
	s.papers = host_papers(1);
	s.port = dsm_transport_port(b.transport);
	CHECK(!dsm_transport_expect(b.transport, 1, 7), "expect");
	for (i = 0; i < 20; i++) {
		s.done = false;
		stranger_start(&s);
		stranger_join(&s);
	}
	CHECK(counters_of(&b, 1).ends[DSM_END_FRAME] == 16 &&
	      counters_of(&b, DSM_NOBODY).ends[DSM_END_OFTEN] == 4, "%u agreed, %u were too many",
	      (unsigned int)counters_of(&b, 1).ends[DSM_END_FRAME],
	      (unsigned int)counters_of(&b, DSM_NOBODY).ends[DSM_END_OFTEN]);
	/* In a while there is a place again. */
	clock_ns += NS;
	a.nr_ends = b.nr_ends = 0;
	CHECK(!dsm_transport_open(a.transport, 0, 7), "open");
	UNTIL((a.ups && b.ups) || a.nr_ends);
	CHECK(!a.nr_ends, "%s %s", dsm_end_name(a.end[0].reason), a.end[0].text);
	papers_free(&s.papers);
	end_two(&a, &b);
}

/* ---- The end ---- */

/* Both ENDs are here in time, and it is we who look too late. */
static void ends_seen_late(const void *argument)
{
	struct host a, b;

	(void)argument;
	begin_up(&a, &b);
	CHECK(!dsm_transport_close(a.transport, 0), "close");
	dsm_transport_poll(a.transport);
	dsm_transport_poll(b.transport);
	CHECK(!a.nr_ends && !b.nr_ends, "they have looked already");
	clock_ns += OPENING;
	dsm_transport_tick(a.transport);
	check_end(&a, 0, DSM_END_CLOSED, "");
	UNTIL(b.nr_ends);
	check_end(&b, 1, DSM_END_CLOSED, "");
	end_two(&a, &b);
}

static uint64_t running_clock(void *context)
{
	(void)context;
	return ++clock_ns;
}

/*
 * When the answer is overdue, RDMA is found to be lost: TLS says why.  A clock that goes on
 * between two looks must not make "since then" a time that is over.
 */
static void loss_seen_late(const void *argument)
{
	const uint8_t reason = DSM_FAIL_LOST + DSM_MAX_HOSTS;	/* no host has this number */
	struct host a, b;

	(void)argument;
	begin_two(&a, &b);
	a.params.now = running_clock;
	start_two(&a, &b);
	connect_hosts(&a, &b);
	run_pending();
	clock_ns += QUESTION;
	dsm_transport_tick(a.transport);
	CHECK(!dsm_transport_fail(b.transport, 1, reason), "fail");
	clock_ns += DEADLINE;
	dsm_transport_tick(a.transport);
	CHECK(!a.nr_ends, "%s %s", dsm_end_name(a.end[0].reason), a.end[0].text);
	UNTIL(a.nr_ends);
	check_end(&a, 0, DSM_END_FAILED, "reason 144");
	end_two(&a, &b);
}

static void close_then(struct host *h, const struct dsm_msg *msg, const uint8_t *page)
{
	(void)msg;
	(void)page;
	CHECK(!dsm_transport_close(h->transport, h->from), "close");
}

/* Likewise, when the message that comes has us close. */
static void closing_seen_late(const void *argument)
{
	struct host a, b;

	begin_two(&a, &b);
	if (argument)
		a.params.kind = b.params.kind = DSM_TRANSPORT_TCP;
	a.params.now = running_clock;
	start_two(&a, &b);
	connect_hosts(&a, &b);
	run_pending();
	a.on_message = close_then;
	played.stand_still = true;
	clock_ns += QUESTION;
	dsm_transport_tick(a.transport);
	send_to(&b, 1, DSM_GETS, 0);
	clock_ns += DEADLINE;
	played_go_on();
	dsm_transport_poll(b.transport);
	dsm_transport_tick(a.transport);
	CHECK(a.messages == 1 && !a.nr_ends, "%s", dsm_end_name(a.end[0].reason));
	UNTIL(a.nr_ends && b.nr_ends);
	check_end(&a, 0, DSM_END_CLOSED, "");
	check_end(&b, 1, DSM_END_CLOSED, "");
	end_two(&a, &b);
}

/* What is wrong here is said, and not what came after it. */
static void doomed_then_lost(const void *argument)
{
	struct dsm_msg msg = message(7, DSM_GETS, 0);
	struct host a, b;

	begin_two(&a, &b);
	a.params.queue = 1;
	start_two(&a, &b);
	connect_hosts(&a, &b);
	run_pending();
	CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	played.stand_still = true;
	while (!dsm_transport_send(a.transport, 0, &msg, NULL))
		;
	played_break(qp_of(&a), IBV_WC_RETRY_EXC_ERR);
	if (argument) {	/* and TLS says no more */
		host_stop(&b);
		UNTIL(a.nr_ends);
		host_start(&b);
	}
	UNTIL(a.nr_ends);
	check_end(&a, 0, DSM_END_QUEUE, dsm_type_name(DSM_GETS));
	end_two(&a, &b);
}

/* More completions wait than there are receives, and then comes the end. */
static void disconnected_behind(const void *argument)
{
	struct host a, b;
	unsigned int i;

	(void)argument;
	begin_two(&a, &b);
	a.params.credits = DSM_CREDITS_LEAST;
	b.params.credits = 200;
	start_two(&a, &b);
	connect_hosts(&a, &b);
	UNTIL(dsm_transport_room(a.transport, 0) > 64);
	run_pending();
	b.epoch = 7;
	a.epoch = 7;
	for (i = 0; i < 64; i++)
		send_to(&a, 0, DSM_GETS, i);
	send_to(&b, 1, DSM_GETS, 0);
	played_event(qp_of(&a), RDMA_CM_EVENT_DISCONNECTED, 0);
	ev_run(loop, EVRUN_NOWAIT);
	CHECK(a.messages == 1, "it is lost");
	clock_ns += OPENING;
	dsm_transport_tick(a.transport);
	check_end(&a, 0, DSM_END_CUT, "DISCONNECTED");
	end_two(&a, &b);
}

/* The TLS sessions that were opened to @port end, without a word. */
static void cut_tls(uint16_t port)
{
	struct sockaddr_in peer;
	socklen_t size;
	int fd, cut = 0;

	for (fd = 3; fd < 256; fd++) {
		size = sizeof(peer);
		if (!getpeername(fd, (struct sockaddr *)&peer, &size) && peer.sin_port == htons(port))
			cut += !shutdown(fd, SHUT_RDWR);
	}
	CHECK(cut == 1, "%d sessions", cut);
}

/* Messages have come, and their event has not when TLS ends. */
static void tls_ends_behind(const void *argument)
{
	struct host a, b;
	unsigned int i;

	(void)argument;
	begin_up(&a, &b);
	a.epoch = b.epoch = 7;
	played.silent = true;
	for (i = 0; i < 3; i++)
		send_to(&a, 0, DSM_GETS, i);
	ev_run(loop, EVRUN_NOWAIT);
	CHECK(!b.messages, "%u were told of", b.messages);
	cut_tls(dsm_transport_port(b.transport));
	UNTIL(b.nr_ends);
	CHECK(b.messages == 3, "%u of 3 messages", b.messages);
	check_end(&b, 1, DSM_END_CUT, "");
	end_two(&a, &b);
}

/* What rdmacm may tell of a connection that is up, and what becomes of it. */
static const struct told {
	enum rdma_cm_event_type type;
	int status;
	enum dsm_end reason;	/* 0: none */
	const char *text;
} told[] = {
	{ RDMA_CM_EVENT_DISCONNECTED, 0, DSM_END_CUT, "RDMA_CM_EVENT_DISCONNECTED" },
	{ RDMA_CM_EVENT_DEVICE_REMOVAL, 0, DSM_END_CUT, "RDMA_CM_EVENT_DEVICE_REMOVAL" },
	{ RDMA_CM_EVENT_REJECTED, 10, DSM_END_REFUSED, "RDMA_CM_EVENT_REJECTED, reason 10" },
	{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, DSM_END_UNREACHABLE, "UNREACHABLE: Connection timed out" },
	{ RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, DSM_END_UNREACHABLE, "CONNECT_ERROR: Invalid argument" },
	{ RDMA_CM_EVENT_ESTABLISHED, 0, 0, "" },
	{ RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, 0, "" },
	{ RDMA_CM_EVENT_ADDR_CHANGE, 0, 0, "" },
	{ RDMA_CM_EVENT_MULTICAST_ERROR, 0, 0, "" },
};

static void cm_tells(const void *argument)
{
	struct host a, b;
	unsigned int i;

	(void)argument;
	begin_two(&a, &b);
	start_two(&a, &b);
	for (i = 0; i < NR(told); i++) {
		a.nr_ends = b.nr_ends = 0;
		connect_hosts(&a, &b);
		run_pending();
		played_event(qp_of(&b), told[i].type, told[i].status);
		run_pending();
		/* TLS may say why, as long as an opening may take. */
		CHECK(!b.nr_ends, "row %u: %s", i, b.end[0].text);
		clock_ns += OPENING - 1;
		if (told[i].reason) {
			dsm_transport_tick(b.transport);
			CHECK(!b.nr_ends, "row %u: %s", i, b.end[0].text);
		}
		clock_ns++;
		if (!told[i].reason) {
			a.epoch = 7 + i;
			send_to(&a, 0, DSM_GETS, 0);
			run_pending();
			CHECK(b.messages, "row %u", i);
			CHECK(!dsm_transport_close(a.transport, 0), "close");
			UNTIL(a.nr_ends && b.nr_ends);
			continue;
		}
		dsm_transport_tick(b.transport);
		check_end(&b, 1, told[i].reason, told[i].text);
		UNTIL(a.nr_ends);
	}
	end_two(&a, &b);
}

/* What completions say. */
static const struct broken {
	enum ibv_wc_status status;
	enum dsm_end reason;
} broken[] = {
	{ IBV_WC_FATAL_ERR, DSM_END_LOCAL },
	{ IBV_WC_RETRY_EXC_ERR, DSM_END_CUT },
	{ IBV_WC_REM_OP_ERR, DSM_END_CUT },
};

static void completions_tell(const void *argument)
{
	struct host a, b;
	unsigned int i;

	(void)argument;
	begin_two(&a, &b);
	start_two(&a, &b);
	for (i = 0; i < NR(broken); i++) {
		a.nr_ends = b.nr_ends = 0;
		connect_hosts(&a, &b);
		run_pending();
		played_break(qp_of(&a), broken[i].status);
		run_pending();
		CHECK(a.nr_ends == (broken[i].reason == DSM_END_LOCAL), "row %u", i);
		clock_ns += OPENING;
		dsm_transport_tick(a.transport);
		check_end(&a, 0, broken[i].reason, ibv_wc_status_str(broken[i].status));
		UNTIL(b.nr_ends);
	}
	end_two(&a, &b);
}

/* ---- Peers that lie ---- */

static const struct lie {
	const char *name;
	struct {
		bool link;
		unsigned int type, times;
		uint32_t size;
		uint32_t epoch;	/* more than the right one */
	} say[2];
	enum dsm_end reason;
	unsigned int messages;
} lies[] = {
	{ "no byte", { { false, DSM_GETS, 1, 0, 0 } }, DSM_END_FRAME, 0 },
	{ "31 bytes", { { false, DSM_GETS, 1, 31, 0 } }, DSM_END_FRAME, 0 },
	{ "33 bytes", { { false, DSM_GETS, 1, 33, 0 } }, DSM_END_FRAME, 0 },
	{ "a page where none is", { { false, DSM_GETS, 1, 4128, 0 } }, DSM_END_FRAME, 0 },
	{ "no page where one is", { { false, DSM_RDATA, 1, 32, 0 } }, DSM_END_FRAME, 0 },
	{ "a page and a byte", { { false, DSM_RDATA, 1, 4129, 0 } }, DSM_END_FRAME, 0 },
	{ "no such type", { { false, 200, 1, 32, 0 } }, DSM_END_FRAME, 0 },
	{ "a long question", { { true, DSM_LINK_QUESTION, 1, 33, 0 } }, DSM_END_FRAME, 0 },
	{ "FAIL of another epoch", { { true, DSM_LINK_FAIL, 1, 32, 1 } }, DSM_END_EPOCH, 0 },
	{ "END of another epoch", { { true, DSM_LINK_END, 1, 32, 1 } }, DSM_END_FRAME, 0 },
	{ "another epoch", { { false, DSM_GETS, 1, 32, 1 } }, DSM_END_EPOCH, 0 },
	{ "more than the credits", { { false, DSM_GETS, 17, 32, 0 } }, DSM_END_CREDITS, 0 },
	{ "a message behind END", { { true, DSM_LINK_END, 1, 32, 0 }, { false, DSM_GETS, 1, 32, 0 } }, DSM_END_FRAME, 0 },
	{ "END twice", { { true, DSM_LINK_END, 2, 32, 0 } }, DSM_END_FRAME, 0 },
	{ "a question too many", { { true, DSM_LINK_QUESTION, 2, 32, 0 } }, DSM_END_TURN, 0 },
};

static void lying(const void *argument)
{
	const struct lie *which = argument;
	uint8_t bytes[sizeof(struct dsm_qp_frame) + 1] = { 0 };
	struct host a, b;
	unsigned int i, times;

	begin_up(&a, &b);
	if (which->reason == DSM_END_CREDITS)
		CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	for (i = 0; i < NR(which->say) && which->say[i].times; i++)
		for (times = 0; times < which->say[i].times; times++) {
			struct dsm_msg msg = message(7 + which->say[i].epoch, which->say[i].type, times);

			memset(bytes, 0, sizeof(bytes));
			if (!which->say[i].link) {
				dsm_wire_put(&msg, bytes);
			} else {
				bytes[0] = DSM_LINK_MARK;
				bytes[1] = (uint8_t)which->say[i].type;
				bytes[4] = (uint8_t)(7 + which->say[i].epoch);
				if (which->say[i].type == DSM_LINK_QUESTION)
					bytes[16] = 16;	/* a grant, as the first one */
			}
			played_say(qp_of(&a), bytes, which->say[i].size);
		}
	UNTIL(b.nr_ends);
	check_end(&b, 1, which->reason, "");
	CHECK(b.messages == which->messages, "%u messages", b.messages);
	UNTIL(a.nr_ends);
	end_two(&a, &b);
}

int main(int argc, char **argv)
{
	static const struct test_case others[] = {
		{ "rdma: both ways", both_ways, NULL },
		{ "rdma: by polling", by_polling, NULL },
		{ "rdma: more than a turn", many_at_once, NULL },
		{ "rdma: it does not start", no_start, NULL },
		{ "rdma: the opener closes before it is up", closed_while_bound, "opener" },
		{ "rdma: the acceptor closes before it is up", closed_while_bound, NULL },
		{ "rdma: the opener sees too late that it is up", up_seen_late, "opener" },
		{ "rdma: the acceptor sees too late that it is up", up_seen_late, NULL },
		{ "rdma: never up", never_up, NULL },
		{ "rdma: RTU is lost", rtu_lost, NULL },
		{ "rdma: an answer that lies", answer_lies, NULL },
		{ "rdma: requests of nobody", requests, NULL },
		{ "rdma: agreed without end", agreed_without_end, NULL },
		{ "rdma: both ENDs are seen too late", ends_seen_late, NULL },
		{ "rdma: a loss is seen too late", loss_seen_late, NULL },
		{ "rdma: a message that closes is seen too late", closing_seen_late, NULL },
		{ "tcp: a message that closes is seen too late", closing_seen_late, "TCP" },
		{ "rdma: doomed and then lost", doomed_then_lost, NULL },
		{ "rdma: doomed and then lost, and TLS", doomed_then_lost, "TLS" },
		{ "rdma: disconnected behind many completions", disconnected_behind, NULL },
		{ "rdma: TLS ends behind messages", tls_ends_behind, NULL },
		{ "rdma: what rdmacm tells", cm_tells, NULL },
		{ "rdma: what completions tell", completions_tell, NULL },
	};
	static struct test_case cases[NR(others) + NR(failing) + NR(words) + NR(lies)];
	static char names[NR(failing) + NR(words) + NR(lies)][96];
	unsigned int i, nr = 0;

	for (i = 0; i < NR(others); i++)
		cases[nr++] = others[i];
	for (i = 0; i < NR(failing); i++, nr++) {
		char *name = names[nr - NR(others)];

		snprintf(name, sizeof(names[0]), "rdma: a call that fails: %s, %s %u", failing[i].call,
			 failing[i].opener ? "opener" : "acceptor", failing[i].after);
		cases[nr] = (struct test_case){ name, one_fails, &failing[i] };
	}
	for (i = 0; i < NR(words); i++, nr++) {
		char *name = names[nr - NR(others)];

		snprintf(name, sizeof(names[0]), "rdma: after HELLO: %s", words[i].name);
		cases[nr] = (struct test_case){ name, bound_by_words, &words[i] };
	}
	for (i = 0; i < NR(lies); i++, nr++) {
		char *name = names[nr - NR(others)];

		snprintf(name, sizeof(names[0]), "rdma: a lie: %s", lies[i].name);
		cases[nr] = (struct test_case){ name, lying, &lies[i] };
	}
	return run_cases(argc, argv, cases, nr);
}
