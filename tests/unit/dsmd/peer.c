// SPDX-License-Identifier: GPL-2.0
/*
 * One of two hosts with the transport between them, each in a process and on a
 * machine of its own, with a clock that is not played.
 *
 *	peer papers FOLDER
 *		make the certificates of both
 *	peer run FOLDER tcp|rdma HOST OWN-ADDRESS PEER-ADDRESS PORT MESSAGES
 *		HOST 1 opens, HOST 0 waits for it.  Each sends so many messages,
 *		every 16th with a page, and checks those of the other one; host 1
 *		then measures round trips of a page and closes.
 *	peer stay ...
 *		the same, but nobody closes: until it ends by itself
 *
 * It says on lines of their own: "up", "received N messages in order", "round
 * trip: median N us", "end: WORD", and exits with 0 if the end was the one that
 * was meant: closed, or, to stay, any other.  DEADLINE_MS: of a question.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#include "case.h"
#include "papers.h"
#include "protocol.h"
#include "transport.h"

#define HOSTS	2
#define EPOCH	3
#define ROUNDS	200
#define MS	1000000ull

static const char *const names[HOSTS] = { "alpha.a.example", "beta.b.example" };

static struct {
	struct dsm_transport_params params;
	struct dsm_transport *transport;
	ev_timer tick;
	unsigned int self, other, messages, sent, received, rounds;
	bool stays, up, ended, in_order_said;
	enum dsm_end end;
	uint64_t asked;
	double times[ROUNDS];
	char file[3][256];
} me;

static uint64_t now(void *context)
{
	struct timespec time;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void fill_page(uint8_t *page, uint64_t seed)
{
	unsigned int i;

	for (i = 0; i < DSM_PAGE_BYTES; i++)
		page[i] = (uint8_t)((seed * 0x9e3779b97f4a7c15u + i * 7919u) >> 24);
}

static void send_one(unsigned int type, uint64_t gfn, const uint8_t *page)
{
	struct dsm_msg msg = { .type = (uint8_t)type, .epoch = EPOCH, .gfn = gfn };

	CHECK(!dsm_transport_send(me.transport, me.other, &msg, page), "message %u",
	      (unsigned int)gfn);
}

static void send_some(void)
{
	uint8_t page[DSM_PAGE_BYTES];
	unsigned int room = dsm_transport_room(me.transport, me.other);

	for (; room && me.sent < me.messages; room--, me.sent++) {
		bool with_page = !(me.sent % 16);

		if (with_page)
			fill_page(page, me.sent);
		send_one(with_page ? DSM_RDATA : DSM_INV, me.sent,
			 with_page ? page : NULL);
	}
}

static void ask(void)
{
	static const uint8_t page[DSM_PAGE_BYTES];

	me.asked = now(NULL);
	send_one(DSM_DATA_M, me.rounds, page);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The other one has sent all, and host 1 has sent all that it has. */
static void next_step(void)
{
	if (me.received < me.messages || me.sent < me.messages)
		return;
	if (!me.in_order_said)
		printf("received %u messages in order\n", me.received);
	fflush(stdout);
	if (me.self == 1 && !me.in_order_said)
		ask();
	me.in_order_said = true;
}

static void got_answer(void)
{
	me.times[me.rounds++] = (double)(now(NULL) - me.asked) / 1e3;
	if (me.rounds < ROUNDS) {
		ask();
		return;
	}
	qsort(me.times, ROUNDS, sizeof(me.times[0]), by_size);
	printf("round trip: median %.1f us, 99 %% %.1f us\n",
	       me.times[ROUNDS / 2], me.times[ROUNDS * 99 / 100]);
	fflush(stdout);
	if (!me.stays)
		dsm_transport_close(me.transport, me.other);
}

static void on_message(void *context, unsigned int host,
		       const struct dsm_msg *msg, const uint8_t *page)
{
	uint8_t right[DSM_PAGE_BYTES];

	(void)context;
	CHECK(host == me.other, "host %u", host);
	if (msg->type == DSM_DATA_M) {
		send_one(DSM_DATA_S, msg->gfn, page);
		return;
	}
	if (msg->type == DSM_DATA_S) {
		CHECK(msg->gfn == me.rounds, "an answer to another question");
		got_answer();
		return;
	}
	CHECK(msg->gfn == me.received, "message %u after %u",
	      (unsigned int)msg->gfn, me.received);
	if (page) {
		fill_page(right, msg->gfn);
		CHECK(!memcmp(page, right, sizeof(right)), "page %u", me.received);
	}
	me.received++;
	next_step();
}

static void on_up(void *context, unsigned int host, uint32_t epoch)
{
	(void)context;
	(void)host;
	CHECK(epoch == EPOCH, "epoch %u", epoch);
	me.up = true;
	puts("up");
	fflush(stdout);
}

static void on_room(void *context, unsigned int host)
{
	(void)context;
	(void)host;
	send_some();
	next_step();
}

static void on_end(void *context, unsigned int host, enum dsm_end reason,
		   const char *text)
{
	(void)context;
	printf("%s: %s, %s\n", host == DSM_NOBODY ? "stranger" : "end",
	       dsm_end_word(reason), text);
	fflush(stdout);
	if (host == DSM_NOBODY)
		return;
	me.ended = true;
	me.end = reason;
	ev_break(me.params.loop, EVBREAK_ALL);
}

static void on_round_trip(void *context, unsigned int host, uint64_t ns,
			  const struct dsm_clock_sample *clock)
{
	(void)context;
	(void)host;
	(void)clock;
	(void)ns;
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

static void make_papers(const char *folder)
{
	struct wanted wanted = {
		.subject = "the site's CA", .from = -100, .to = 100, .ca = true,
	};
	struct papers ca = papers_make(&wanted, NULL), papers;
	char certificate[256], key[256], dns[64];
	unsigned int i;

	snprintf(certificate, sizeof(certificate), "%s/ca.pem", folder);
	papers_write(&ca, certificate, NULL, 0);
	for (i = 0; i < HOSTS; i++) {
		snprintf(dns, sizeof(dns), "DNS:%s", names[i]);
		wanted = (struct wanted){
			.names = dns, .usage = BOTH_ROLES, .subject = "host",
			.from = -100, .to = 100,
		};
		papers = papers_make(&wanted, &ca);
		snprintf(certificate, sizeof(certificate), "%s/%u.pem", folder, i);
		snprintf(key, sizeof(key), "%s/%u.key", folder, i);
		papers_write(&papers, certificate, key, 0600);
		papers_free(&papers);
	}
	papers_free(&ca);
}

static void set_address(struct sockaddr_storage *address, const char *text,
			const char *port)
{
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)),
	};

	CHECK(inet_pton(AF_INET, text, &four.sin_addr) == 1, "%s", text);
	memcpy(address, &four, sizeof(four));
}

static void prepare(char **words)
{
	const char *deadline = getenv("DEADLINE_MS");
	uint64_t ms = deadline ? strtoull(deadline, NULL, 10) : 20000;
	struct dsm_transport_params *p = &me.params;

	me.self = atoi(words[2]) == 1;
	me.other = 1 - me.self;
	me.messages = (unsigned int)atoi(words[6]);
	snprintf(me.file[0], sizeof(me.file[0]), "%s/ca.pem", words[0]);
	snprintf(me.file[1], sizeof(me.file[1]), "%s/%u.pem", words[0], me.self);
	snprintf(me.file[2], sizeof(me.file[2]), "%s/%u.key", words[0], me.self);
	*p = (struct dsm_transport_params){
		.loop = ev_default_loop(0),
		.kind = strcmp(words[1], "rdma") ? DSM_TRANSPORT_TCP :
						   DSM_TRANSPORT_RDMA,
		.trusted_fabric = true, .self = (uint8_t)me.self,
		.nr_hosts = HOSTS, .vm = "fifteen letters",
		.ca_file = me.file[0], .certificate_file = me.file[1],
		.key_file = me.file[2], .names = { names[me.self] },
		.credits = 64, .queue = 256, .strangers = 4,
		.opening_ns = 60000 * MS, .question_ns = ms / 4 * MS,
		.deadline_ns = ms * MS, .rekey_records = 1 << 20,
		.now = now, .calls = &calls,
	};
	set_address(&p->address, words[3], words[5]);
	p->peer[me.other].used = true;
	p->peer[me.other].names[0] = names[me.other];
	set_address(&p->peer[me.other].address, words[4], words[5]);
}

static int run(char **words)
{
	char text[DSM_TRANSPORT_TEXT];
	int rc;

	signal(SIGPIPE, SIG_IGN);
	prepare(words);
	rc = dsm_transport_create(&me.params, &me.transport, text);
	CHECK(!rc, "%d: %s", rc, text);
	ev_timer_init(&me.tick, on_tick, 0.1, 0.1);
	ev_timer_start(me.params.loop, &me.tick);
	if (me.self == 0) {
		rc = dsm_transport_expect(me.transport, me.other, EPOCH);
		puts("listening");
		fflush(stdout);
	} else {
		rc = dsm_transport_open(me.transport, me.other, EPOCH);
	}
	CHECK(!rc, "%d", rc);
	while (!me.ended)
		ev_run(me.params.loop, 0);
	dsm_transport_destroy(me.transport);
	return (me.end == DSM_END_CLOSED) == me.stays;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "papers")) {
		make_papers(argv[2]);
		return 0;
	}
	me.stays = argc == 9 && !strcmp(argv[1], "stay");
	if (argc == 9 && (me.stays || !strcmp(argv[1], "run")))
		return run(argv + 2);
	fprintf(stderr, "usage: %s papers FOLDER\n"
		"       %s run|stay FOLDER tcp|rdma HOST OWN-ADDRESS PEER-ADDRESS PORT MESSAGES\n",
		argv[0], argv[0]);
	return 2;
}
