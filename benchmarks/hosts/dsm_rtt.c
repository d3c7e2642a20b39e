/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dsm_rtt: the round trip that a fault of DSM is compared with: the daemon's own
 * transport between two hosts, and nothing else.
 *
 *	dsm_rtt FOLDER tcp|rdma NUMBER NAMES OWN-ADDRESS PEER-ADDRESS PORT poll|sleep ROUNDS
 *
 * FOLDER has ca.pem, NUMBER.pem and NUMBER.key.  NUMBER 0 waits for the other
 * one, answers, and ends with it; NUMBER 1 opens, asks and closes.  NAMES: the
 * names of host 0 and host 1 in their certificates, with a comma.
 *
 * Two kinds of round trips, ROUNDS of each, one at a time, after a tenth as many
 * that do not count:
 *	fault	a question without a page, the answer has one: a read fault
 *	page	a page both ways
 * and then ten times as many of the first kind, STREAM of them under way, that
 * are timed as one: pages that are streamed.
 * poll: the thread looks for what has come and does not sleep; sleep: it waits
 * in the event loop.  Both ends should be told the same.
 *
 * Output, one JSON object a line:
 *   {"event":"listening"}
 *   {"event":"round_trips","what":"fault"|"page","rounds":..,"ns":{"p10":..,
 *    "p50":..,"p90":..,"p99":..,"max":..}}
 *   {"event":"stream","pages":..,"ns":..}
 *   {"event":"end","reason":"closed","text":..}
 * Exit status: 0; 1 if the connection ended otherwise, or an answer was wrong;
 * 2 usage, or nothing to listen with.
 *
 * Context: one thread.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ev.h>

#include "protocol.h"
#include "relax.h"
#include "transport.h"

#define HOSTS		2
#define EPOCH		1
#define MS		1000000ull
#define TICK_S		0.1
#define MAX_ROUNDS	1000000
#define POLLS		256	/* between two looks at the event loop */
#define STREAM		32u	/* less than the credits */
#define STREAM_ROUNDS	10u

enum kind { FAULT, PAGE, KINDS };	/* and behind them: a stream */

static const char *const kind_names[KINDS] = { "fault", "page" };

static struct {
	struct dsm_transport_params params;
	struct dsm_transport *transport;
	unsigned int self, other;
	bool polls, ended;
	enum dsm_end end;
	/* of the one who asks */
	enum kind kind;
	unsigned int rounds, warm_up, done, sent;
	uint64_t asked, *ns;
	uint8_t page[DSM_PAGE_BYTES];
} me;

static void __attribute__((noreturn, format(printf, 2, 3)))
die(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("dsm_rtt: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	exit(status);
}

static uint64_t now(void *context)
{
	struct timespec time;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void send_one(enum dsm_type type, uint64_t gfn)
{
	struct dsm_msg msg = { .type = (uint8_t)type, .epoch = EPOCH, .gfn = gfn };
	int rc;

	/* Each page is another one: its first byte says which. */
	me.page[0] = (uint8_t)gfn;
	rc = dsm_transport_send(me.transport, me.other, &msg,
				dsm_type_has_page(type) ? me.page : NULL);
	if (rc)
		die(1, "message %" PRIu64 ": %s", gfn, strerror(-rc));
}

static void ask(void)
{
	me.asked = now(NULL);
	send_one(me.kind == FAULT ? DSM_GETS : DSM_RDATA, me.done);
}

/* Of pages that are streamed, as many as may be under way. */
static void ask_ahead(void)
{
	for (; me.sent < me.done + STREAM && me.sent < STREAM_ROUNDS * me.rounds; me.sent++)
		send_one(DSM_GETS, me.sent);
}

static void got_of_stream(void)
{
	if (++me.done < STREAM_ROUNDS * me.rounds) {
		ask_ahead();
		return;
	}
	printf("{\"event\":\"stream\",\"pages\":%u,\"ns\":%" PRIu64 "}\n", me.done,
	       now(NULL) - me.asked);
	fflush(stdout);
	dsm_transport_close(me.transport, me.other);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t quantile(unsigned int percent)
{
	return me.ns[(uint64_t)(me.rounds - 1) * percent / 100];
}

static void print_kind(void)
{
	qsort(me.ns, me.rounds, sizeof(me.ns[0]), by_size);
	printf("{\"event\":\"round_trips\",\"what\":\"%s\",\"rounds\":%u,\"ns\":{\"p10\":%" PRIu64 ",\"p50\":%" PRIu64 ",\"p90\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"max\":%" PRIu64 "}}\n",
	       kind_names[me.kind], me.rounds, quantile(10), quantile(50),
	       quantile(90), quantile(99), quantile(100));
	fflush(stdout);
}

static void got_answer(void)
{
	uint64_t ns = now(NULL) - me.asked;

	if (me.kind == KINDS) {
		got_of_stream();
		return;
	}
	if (me.done >= me.warm_up)
		me.ns[me.done - me.warm_up] = ns;
	if (++me.done < me.warm_up + me.rounds) {
		ask();
		return;
	}
	print_kind();
	me.done = 0;
	if (++me.kind < KINDS) {
		ask();
	} else {
		me.asked = now(NULL);
		ask_ahead();
	}
}

static void on_message(void *context, unsigned int host,
		       const struct dsm_msg *msg, const uint8_t *page)
{
	(void)context;
	(void)host;
	if (msg->type == DSM_GETS || msg->type == DSM_RDATA) {
		send_one(DSM_DATA_S, msg->gfn);
		return;
	}
	if (me.self == 0 || msg->type != DSM_DATA_S || msg->gfn != me.done ||
	    page[0] != (uint8_t)me.done)
		die(1, "message of type %u, number %" PRIu64 " to question %u",
		    msg->type, msg->gfn, me.done);
	got_answer();
}

static void on_up(void *context, unsigned int host, uint32_t epoch)
{
	(void)context;
	(void)host;
	(void)epoch;
	if (me.self == 1)
		ask();
}

static void on_room(void *context, unsigned int host)
{
	(void)context;
	(void)host;
}

static void on_end(void *context, unsigned int host, enum dsm_end reason,
		   const char *text)
{
	(void)context;
	if (host == DSM_NOBODY) {
		fprintf(stderr, "dsm_rtt: stranger: %s: %s\n",
			dsm_end_name(reason), text);
		return;
	}
	printf("{\"event\":\"end\",\"reason\":\"%s\"}\n", dsm_end_word(reason));
	fflush(stdout);
	if (reason != DSM_END_CLOSED)
		fprintf(stderr, "dsm_rtt: %s: %s\n", dsm_end_name(reason), text);
	me.ended = true;
	me.end = reason;
	ev_break(me.params.loop, EVBREAK_ALL);
}

static void on_round_trip(void *context, unsigned int host, uint64_t ns,
			  const struct dsm_clock_sample *clock)
{
	(void)context;
	(void)host;
	(void)ns;
	(void)clock;
}

static const struct dsm_transport_calls calls = {
	.up = on_up, .message = on_message, .room = on_room, .end = on_end,
	.round_trip = on_round_trip,
};

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)timer;
	(void)events;
	dsm_transport_tick(me.transport);
}

static void set_address(struct sockaddr_storage *address, const char *text,
			const char *port)
{
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)),
	};

	if (inet_pton(AF_INET, text, &four.sin_addr) != 1 || !four.sin_port)
		die(2, "%s port %s: no address", text, port);
	memcpy(address, &four, sizeof(four));
}

static void prepare(char **words)
{
	static char file[3][512], names[HOSTS][256];
	struct dsm_transport_params *p = &me.params;

	me.self = !strcmp(words[2], "1");
	me.other = 1 - me.self;
	me.polls = !strcmp(words[7], "poll");
	me.rounds = (unsigned int)strtoul(words[8], NULL, 10);
	if ((!me.self && strcmp(words[2], "0")) ||
	    (strcmp(words[1], "tcp") && strcmp(words[1], "rdma")) ||
	    (!me.polls && strcmp(words[7], "sleep")) || !me.rounds ||
	    me.rounds > MAX_ROUNDS ||
	    sscanf(words[3], "%255[^,],%255[^,]", names[0], names[1]) != HOSTS)
		die(2, "usage: see the source's first lines");
	me.warm_up = me.rounds / 10;
	me.ns = calloc(me.rounds, sizeof(me.ns[0]));
	if (!me.ns)
		die(2, "no memory for %u times", me.rounds);
	snprintf(file[0], sizeof(file[0]), "%s/ca.pem", words[0]);
	snprintf(file[1], sizeof(file[1]), "%s/%u.pem", words[0], me.self);
	snprintf(file[2], sizeof(file[2]), "%s/%u.key", words[0], me.self);
	*p = (struct dsm_transport_params){
		.loop = ev_default_loop(0),
		.kind = strcmp(words[1], "rdma") ? DSM_TRANSPORT_TCP :
						   DSM_TRANSPORT_RDMA,
		.trusted_fabric = true, .self = (uint8_t)me.self,
		.nr_hosts = HOSTS, .vm = "round trips",
		.ca_file = file[0], .certificate_file = file[1],
		.key_file = file[2], .names = { names[me.self] },
		.credits = 64, .queue = 256, .strangers = 4,
		.opening_ns = 60000 * MS, .question_ns = 5000 * MS,
		.deadline_ns = 20000 * MS, .rekey_records = 1 << 20,
		.now = now, .calls = &calls,
	};
	set_address(&p->address, words[4], words[6]);
	p->peer[me.other].used = true;
	p->peer[me.other].names[0] = names[me.other];
	set_address(&p->peer[me.other].address, words[5], words[6]);
}

int main(int argc, char **argv)
{
	char text[DSM_TRANSPORT_TEXT];
	unsigned int i;
	ev_timer tick;
	int rc;

	if (argc != 10)
		die(2, "usage: see the source's first lines");
	signal(SIGPIPE, SIG_IGN);
	prepare(argv + 1);
	rc = dsm_transport_create(&me.params, &me.transport, text);
	if (rc)
		die(2, "%s: %s", strerror(-rc), text);
	ev_timer_init(&tick, on_tick, TICK_S, TICK_S);
	ev_timer_start(me.params.loop, &tick);
	if (me.self) {
		rc = dsm_transport_open(me.transport, me.other, EPOCH);
	} else {
		rc = dsm_transport_expect(me.transport, me.other, EPOCH);
		puts("{\"event\":\"listening\"}");
		fflush(stdout);
	}
	if (rc)
		die(2, "%s", strerror(-rc));
	while (!me.ended) {
		if (!me.polls) {
			ev_run(me.params.loop, 0);
			continue;
		}
		for (i = 0; i < POLLS && !me.ended; i++)
			if (!dsm_transport_poll(me.transport))
				dsm_relax();
		ev_run(me.params.loop, EVRUN_NOWAIT);
	}
	dsm_transport_destroy(me.transport);
	free(me.ns);
	return me.end != DSM_END_CLOSED;
}
