// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "vcpu_rig.h"

struct parcel {
	struct dsm_msg msg;
	uint8_t bytes[DSM_PAGE_BYTES];
	STAILQ_ENTRY(parcel) link;
};
STAILQ_HEAD(channel, parcel);

struct node node[HOSTS];
unsigned int in_channel[HOSTS][HOSTS], credits, home, shutdowns_sent;
static unsigned int answers_without[HOSTS][HOSTS], letters_without[HOSTS][HOSTS];
uint64_t clock_ns, answer_ns, send_ns;
uint8_t where[VCPUS], places[VCPUS];
bool class_u, rings;
static struct channel channel[HOSTS][HOSTS];

static uint64_t on_now(void *context)
{
	(void)context;
	return clock_ns;
}

static void on_send(void *context, unsigned int host, const struct dsm_msg *msg,
		    const uint8_t *page)
{
	struct node *n = context;
	struct parcel *parcel = calloc(1, sizeof(*parcel));

	CHECK(host < HOSTS && host != n->number, "to %u", host);
	CHECK(!page == !dsm_type_bytes(msg->type), "%s", dsm_type_name(msg->type));
	/* Of letters one may go without for eight answers that did. */
	CHECK(!dsm_type_is_vcpu(msg->type) || msg->type == DSM_VCPU_SHUTDOWN ||
	      (msg->type >= DSM_VCPU_STOP && msg->type <= DSM_VCPU_GO) ||
	      msg->type == DSM_VCPU_PAUSE || msg->type == DSM_VCPU_PAUSED ||
	      in_channel[n->number][host] < credits ||
	      8 * ++letters_without[n->number][host] <= answers_without[n->number][host],
	      "%s without a credit", dsm_type_name(msg->type));
	shutdowns_sent += msg->type == DSM_VCPU_SHUTDOWN;
	parcel->msg = *msg;
	if (page)
		memcpy(parcel->bytes, page, dsm_type_bytes(msg->type));
	STAILQ_INSERT_TAIL(&channel[n->number][host], parcel, link);
	in_channel[n->number][host]++;
	clock_ns += send_ns;
	answers_without[n->number][host] += in_channel[n->number][host] >= credits &&
					    (msg->type == DSM_DATA_S || msg->type == DSM_DATA_M ||
					     msg->type == DSM_GRANT || msg->type == DSM_NACK ||
					     msg->type == DSM_RESULT);
}

static unsigned int on_room(void *context, unsigned int host)
{
	const struct node *n = context;
	unsigned int used = in_channel[n->number][host];

	return used < credits ? credits - used : 0;
}

static void on_failed(void *context, const char *text)
{
	struct node *n = context;

	CHECK(!n->failure[0], "failed twice");
	snprintf(n->failure, sizeof(n->failure), "%s", text);
}

static void on_over(void *context, const char *text)
{
	(void)context;
	CHECK(false, "%s", text);
}

static void on_warn(void *context, const char *text)
{
	struct node *n = context;

	CHECK(text[0], "without words");
	n->warnings++;
}

static void on_finished(void *context, uint64_t gfn, enum dsm_reason reason)
{
	(void)context;
	(void)gfn;
	(void)reason;
}

static void on_placed(void *context, const char *error)
{
	struct node *n = context;

	n->placed++;
	snprintf(n->error, sizeof(n->error), "%s", error ? error : "");
}

static int on_time(void *context, unsigned int host, char text[DSM_ENGINE_TEXT])
{
	const struct node *n = context;

	CHECK(host != n->number && n->number == home, "nobody asks for his own time, nor one that is not the home");
	if (n->time_there[host] == -ERANGE)
		snprintf(text, DSM_ENGINE_TEXT, "it is ahead by 7 ns");
	return n->time_there[host];
}

static const struct dsm_engine_calls calls = {
	.now = on_now, .send = on_send, .room = on_room, .failed = on_failed,
	.over = on_over, .warn = on_warn, .finished = on_finished, .placed = on_placed,
	.has_our_time = on_time,
};

struct dsm_engine_params params_of(struct node *n)
{
	return (struct dsm_engine_params){
		.self = (uint8_t)n->number, .nr_hosts = HOSTS, .token_home = (uint8_t)home,
		.name = { "alpha", "beta", "gamma" }, .nr_ranges = 3,
		.range = { { 0, 10, 0 }, { 10, 20, 1 }, { 20, 30, 2 } },
		.nr_vcpus = VCPUS, .frames = 32 * VCPUS, .token_ns = 5 * MS,
		.retry_ns = MS / 20, .pin_ns = 2 * MS, .where = where, .places = places,
		.answer_ns = answer_ns, .class_u = class_u, .rings = { rings },
		.xen = &n->xen.xen, .calls = &calls, .context = n,
	};
}

static void begin_with_table(void)
{
	char text[DSM_ENGINE_TEXT];
	unsigned int i, k, v;

	credits = 16;
	clock_ns = 1000 * MS;
	memset(node, 0, sizeof(node));
	for (i = 0; i < HOSTS; i++) {
		struct dsm_engine_params p;

		node[i].number = i;
		played_init(&node[i].xen, PAGES, VCPUS, 16, 32 * VCPUS);
		node[i].xen.slice = dsm_slice_number(home, i);
		node[i].xen.self = i;
		node[i].xen.started = true;
		node[i].xen.nr_slices = HOSTS;
		for (v = 0; v < VCPUS; v++)
			node[i].xen.elsewhere[v] = where[v] != i;
		for (k = 0; k < PAGES; k++)
			node[i].xen.page[k].state = k / 10 == i ? DSM_XEN_STATE_M :
								  DSM_XEN_STATE_I;
		for (k = 0; k < HOSTS; k++) {
			STAILQ_INIT(&channel[i][k]);
			in_channel[i][k] = 0;
			answers_without[i][k] = 0;
			letters_without[i][k] = 0;
		}
		p = params_of(&node[i]);
		CHECK(!dsm_engine_create(&p, &node[i].engine, text), "%s", text);
	}
	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < HOSTS; k++)
			if (i != k)
				CHECK(!dsm_engine_peer_up(node[i].engine, k, 7), "up");
	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < HOSTS; k++)
			if (i != k) {
				dsm_engine_takes_access(node[i].engine, k, true);
				dsm_engine_takes_pause(node[i].engine, k, true);
			}
	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < HOSTS; k++)
			if (i != k)
				dsm_engine_join(node[i].engine, k);
	for (i = 0; i < HOSTS; i++)
		if (i != home)
			dsm_engine_ready(node[home].engine, i, 0);
}

void begin_at(unsigned int of_vm)
{
	unsigned int v;

	home = of_vm;
	for (v = 0; v < VCPUS; v++)
		where[v] = places[v] = (uint8_t)((home + v) % HOSTS);
	begin_with_table();
}

void begin_placed(unsigned int one, unsigned int two, unsigned int three)
{
	dice_begin();
	home = 0;
	memset(where, 0, sizeof(where));
	places[0] = 0;
	places[1] = (uint8_t)one;
	places[2] = (uint8_t)two;
	places[3] = (uint8_t)three;
	begin_with_table();
}

static uint32_t epoch = 7;

void part(unsigned int a, unsigned int b)
{
	lose_channel(a, b);
	lose_channel(b, a);
	dsm_engine_peer_down(node[a].engine, b, false, "cut off");
	dsm_engine_peer_down(node[b].engine, a, false, "cut off");
}

void join(unsigned int a, unsigned int b)
{
	epoch++;
	CHECK(!dsm_engine_peer_up(node[a].engine, b, epoch) &&
	      !dsm_engine_peer_up(node[b].engine, a, epoch), "up again");
	dsm_engine_join(node[a].engine, b);
	dsm_engine_join(node[b].engine, a);
}

void unbind(unsigned int host)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		if (i == host)
			continue;
		dsm_engine_bind(node[i].engine, host, false);
		dsm_engine_bind(node[host].engine, i, false);
	}
}

void begin_at_home(unsigned int of_vm)
{
	unsigned int v;

	home = of_vm;
	for (v = 0; v < VCPUS; v++) {
		places[v] = (uint8_t)((home + v) % HOSTS);
		where[v] = (uint8_t)home;
	}
	begin_with_table();
}

void begin_alone(unsigned int host)
{
	struct dsm_engine_params p = params_of(&node[host]);
	char text[DSM_ENGINE_TEXT];

	dsm_engine_destroy(node[host].engine);
	CHECK(!dsm_engine_create(&p, &node[host].engine, text), "%s", text);
}

void begin_again(unsigned int host)
{
	unsigned int i;

	begin_alone(host);
	for (i = 0; i < HOSTS; i++)
		if (i != host)
			dsm_engine_peer_up(node[host].engine, i, 7);
}

void begin(void)
{
	dice_begin();
	begin_at(0);
}

static void drop(unsigned int from, unsigned int to)
{
	struct parcel *parcel = STAILQ_FIRST(&channel[from][to]);

	STAILQ_REMOVE_HEAD(&channel[from][to], link);
	in_channel[from][to]--;
	free(parcel);
}

void end(void)
{
	unsigned int i, k;

	for (i = 0; i < HOSTS; i++) {
		dsm_engine_destroy(node[i].engine);
		for (k = 0; k < HOSTS; k++)
			while (!STAILQ_EMPTY(&channel[i][k]))
				drop(i, k);
	}
}

unsigned int next_type(unsigned int from, unsigned int to)
{
	return STAILQ_EMPTY(&channel[from][to]) ? 0 : STAILQ_FIRST(&channel[from][to])->msg.type;
}

void lose_channel(unsigned int from, unsigned int to)
{
	while (!STAILQ_EMPTY(&channel[from][to]))
		drop(from, to);
}

bool deliver(unsigned int from, unsigned int to)
{
	struct parcel *parcel = STAILQ_FIRST(&channel[from][to]);
	bool was_full = in_channel[from][to] >= credits;
	struct dsm_msg msg;
	uint8_t bytes[DSM_PAGE_BYTES];

	if (!parcel)
		return false;
	msg = parcel->msg;
	memcpy(bytes, parcel->bytes, sizeof(bytes));
	drop(from, to);
	if (dsm_type_is_vcpu(msg.type))
		dsm_engine_vcpu_message(node[to].engine, from, &msg, bytes);
	else
		dsm_engine_message(node[to].engine, from, &msg,
				   dsm_type_has_page(msg.type) ? bytes : NULL);
	if (was_full)
		dsm_engine_room(node[from].engine, to);
	return true;
}

void pass(uint64_t ns)
{
	unsigned int i;

	clock_ns += ns;
	for (i = 0; i < HOSTS; i++)
		dsm_engine_tick(node[i].engine);
}

void look(unsigned int host)
{
	dsm_engine_misses(node[host].engine);
	dsm_engine_run(node[host].engine);
}

void settle(void)
{
	unsigned int i, k, quiet;

	for (quiet = 0; quiet < 3; quiet++)
		for (i = 0; i < HOSTS; i++) {
			look(i);
			for (k = 0; k < HOSTS; k++)
				while (deliver(i, k))
					quiet = 0;
		}
}

void says(unsigned int host, struct dsm_vcpu_msg msg)
{
	CHECK(played_says(&node[host].xen, &msg), "a full ring");
	look(host);
}

struct dsm_vcpu_msg event(unsigned int vcpu, unsigned int flags, unsigned int vector)
{
	struct dsm_vcpu_msg m = { .type = DSM_VCPU_EVENT, .vcpu = vcpu, .flags = (uint8_t)flags };

	if (flags & DSM_EVENT_SIPI)
		m.sipi = (uint8_t)vector;
	else if (vector)
		m.word[vector / 64] |= 1ull << vector % 64;
	return m;
}

struct dsm_vcpu_msg a_call(unsigned int vcpu, unsigned int host, unsigned int op,
				  unsigned int cmd, unsigned int about, uint64_t arg)
{
	return (struct dsm_vcpu_msg){
		.type = DSM_VCPU_CALL, .host = (uint8_t)host, .vcpu = vcpu, .op = op,
		.cmd = cmd, .about = about, .word = { arg },
	};
}

const struct dsm_vcpu_msg *logged(unsigned int host, unsigned int nr, unsigned int type)
{
	const struct dsm_vcpu_msg *m = &node[host].xen.log[nr];

	CHECK(node[host].xen.nr_log > nr && m->type == type, "host %u has done %u things; %u is %s",
	      host, node[host].xen.nr_log, nr, dsm_type_name(m->type));
	return m;
}

void expect_failure(unsigned int host, const char *words)
{
	CHECK(strstr(node[host].failure, words), "'%s', want '%s'", node[host].failure, words);
	CHECK(node[host].xen.crashes == 1, "it crashes");
}

void lie(unsigned int from, unsigned int to, struct dsm_vcpu_msg msg, const char *words)
{
	struct dsm_msg head = { .type = msg.type, .epoch = 7 };
	uint8_t bytes[DSM_VCPU_BYTES];

	dsm_vcpu_put(&msg, bytes);
	dsm_engine_vcpu_message(node[to].engine, from, &head, bytes);
	if (words)
		expect_failure(to, words);
	else
		CHECK(!node[to].failure[0], "%s", node[to].failure);
}

void active(unsigned int host, bool up, uint64_t sends)
{
	says(host, (struct dsm_vcpu_msg){ .type = DSM_VCPU_IDLE, .flags = up, .number = sends });
}

void is_shut(bool shut, const char *what)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		CHECK(node[i].xen.shut == shut, "%s: host %u", what, i);
		CHECK(!node[i].failure[0] && !node[i].xen.crashes, "%s: %s", what, node[i].failure);
	}
	if (shut)
		CHECK(logged(1, node[1].xen.nr_log - 1, DSM_VCPU_SHUTDOWN)->flags == 0, "a power-off");
}
