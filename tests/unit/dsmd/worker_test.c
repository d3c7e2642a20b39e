// SPDX-License-Identifier: GPL-2.0
/*
 * Two and three workers in one process, each with a played hypervisor, joined by
 * TCP with TLS over loopback and in real time: what is read is what was written
 * last, hosts leave, are lost and fail.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "played_xen.h"
#include "rig.h"
/* link.h has a struct of this name, worker_internal.h an enum. */
#define dsm_link dsm_peer_link
#include "worker_internal.h"
#undef dsm_link

#define PAGES	12
#define VCPUS	2

struct node {
	struct played_xen xen;
	struct dsm_config config;
	struct dsm_description description;
	struct dsm_worker *worker;
	struct dsm_transport_params *transport;	/* the worker's */
	enum dsm_worker_state state;
	char why[DSM_ENGINE_TEXT];
	unsigned int number, port, left, logged;
	const char *wanted;		/* words that are waited for in the log */
	bool said;			/* and were there, */
	unsigned int times;		/* so often */
	ev_idle vcpus;
	struct {
		uint64_t gfn, rip;
		unsigned int word, want;
		bool set;
	} run[VCPUS];
};

static struct node node[HOSTS];
static unsigned int nr_nodes;
static bool quick;			/* with all that makes it quick */
static bool places;			/* vCPU 1 runs at host 1, whose slice is built */
static unsigned int question_ms = 1000;
static double patience;
static uint64_t last_written[PAGES][PLAYED_WORDS], written, checked;

static void on_log(void *context, int level, const char *text)
{
	struct node *n = context;

	CHECK(level >= 3 && level <= 6 && text[0], "level %d", level);
	n->logged++;
	if (n->wanted && strstr(text, n->wanted)) {
		n->said = true;
		n->times++;
	}
}

static void on_state(void *context, enum dsm_worker_state state, const char *text)
{
	struct node *n = context;

	n->state = state;
	if (state == DSM_WORKER_FAILED)
		snprintf(n->why, sizeof(n->why), "%s", text);
}

static void on_forgotten(void *context)
{
	(void)context;
}

static const struct dsm_worker_calls worker_calls = {
	.log = on_log, .state = on_state, .forgotten = on_forgotten,
};

/* Ports are those that are free; who listens was there before. */
static void adjust(void *context, struct dsm_transport_params *p)
{
	struct node *n = context;
	unsigned int i;

	n->transport = p;
	((struct sockaddr_in *)&p->address)->sin_port = 0;
	for (i = 0; i < nr_nodes; i++)
		if (p->peer[i].used)
			((struct sockaddr_in *)&p->peer[i].address)->sin_port =
				htons((uint16_t)(i < n->number && node[i].port ? node[i].port : 1));
}

static unsigned int home_of(uint64_t gfn)
{
	/* The last of three has no home: it can leave. */
	return (unsigned int)(gfn * 2 / PAGES);
}

#define TSC_APART	1000000000000000ull	/* of a host and the next */
static unsigned int without_tsc = UINT32_MAX;
static uint32_t error_us = 1000;

static void prepare(struct node *n, unsigned int number)
{
	struct papers papers = host_papers(number);
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(20000),
	};
	unsigned int i;
	uint64_t gfn;

	n->number = number;
	n->config = (struct dsm_config){
		.self = (uint8_t)number, .nr_hosts = (uint8_t)nr_nodes,
		.transport = DSM_TRANSPORT_TCP, .credits = 32, .queue = 1024,
		.strangers = 4, .opening_ms = 10000, .question_ms = question_ms,
		.deadline_ms = 60000, .rekey_records = 1 << 20,
		.clock_drift_ppm = 200, .clock_error_us = error_us,
	};
	snprintf(n->config.ca, DSM_CONFIG_PATH, "%s", rig_file("ca.pem"));
	snprintf(n->config.certificate, DSM_CONFIG_PATH, "%s%u.pem", rig_file(""), number);
	snprintf(n->config.key, DSM_CONFIG_PATH, "%s%u.key", rig_file(""), number);
	papers_write(&papers, n->config.certificate, n->config.key, 0600);
	papers_free(&papers);
	for (i = 0; i < nr_nodes; i++) {
		struct dsm_config_host *host = &n->config.host[i];

		host->used = true;
		snprintf(host->name, sizeof(host->name), "%s", host_names[i]);
		snprintf(host->certificate_names[0], DSM_CONFIG_NAME, "%s", host_names[i]);
		host->nr_names = 1;
		memcpy(&host->address, &address, sizeof(address));
	}
	n->description = (struct dsm_description){
		.name = "vm", .uuid = "fifteen letters", .number = 1, .domid = 1,
		.nr_vcpus = VCPUS, .frames = 64, .nr_ranges = 2,
		.range = { { 0, PAGES / 2, 0 }, { PAGES / 2, PAGES, 1 } },
		.lease_ns = 200000, .token_ns = 5000000, .retry_ns = 50000,
		.pin_ns = 20000000, .keepalive_ms = 10000,
		.prefetch = quick ? 8 : 0, .busy_wait_ns = quick ? 200000 : 0,
		.poll_ns = quick ? 100000 : 0,
	};
	played_init(&n->xen, PAGES, VCPUS, 4, 64);
	if (places) {
		n->description.build = number;
		n->description.nr_places = 1;
		n->description.place[0] = (struct dsm_place){ 1, 1, 1, true };
		n->description.where[1] = 1;
		n->description.places[1] = 1;
		n->xen.self = number;
		n->description.slow = 10;
		n->xen.slice = number;
		n->xen.nr_slices = nr_nodes;
		n->xen.elsewhere[0] = number != 0;
		n->xen.elsewhere[1] = number != 1;
		n->xen.time = (struct dsm_vcpu_msg){
			.number = 1ull << 60, .sipi = 3, .word = { 1234, 5678, 91011 },
		};
		if (number) {
			memset(&n->xen.time, 0, sizeof(n->xen.time));
			n->description.token_home = 0;
		} else {
			memset(n->xen.policy, 0xc0, sizeof(n->xen.policy));
		}
	}
	n->xen.tsc_offset = number * TSC_APART;
	if (number == without_tsc)
		n->xen.tsc_khz = 0;
	for (gfn = 0; gfn < PAGES; gfn++)
		n->xen.page[gfn].state = home_of(gfn) == number ?
					 DSM_XEN_STATE_M : DSM_XEN_STATE_I;
}

static void start(struct node *n)
{
	struct dsm_worker_params p = {
		.loop = loop, .config = &n->config, .description = &n->description,
		.xen = &n->xen.xen, .calls = &worker_calls, .context = n,
		.seed = dice(), .adjust = adjust, .patience = patience,
	};
	char text[DSM_ENGINE_TEXT];
	int rc = dsm_worker_create(&p, &n->worker, text);

	CHECK(!rc, "%d %s", rc, text);
	n->port = dsm_transport_port(dsm_worker_transport(n->worker));
}

static void try_instruction(struct node *n, unsigned int vcpu)
{
	uint64_t *at;

	if (n->xen.vcpu[vcpu].waits)
		return;
	if (!n->run[vcpu].set) {
		if (!n->left)
			return;
		n->left--;
		n->run[vcpu].set = true;
		n->run[vcpu].gfn = dice_below(PAGES);
		n->run[vcpu].word = dice_below(PLAYED_WORDS);
		n->run[vcpu].want = dice_below(2) ? DSM_XEN_WANT_S : DSM_XEN_WANT_M;
		n->run[vcpu].rip = dice();
	}
	if (played_use(&n->xen, vcpu, n->run[vcpu].gfn, n->run[vcpu].want,
		       n->run[vcpu].rip) == PLAYED_MISS)
		return;
	at = &n->xen.page[n->run[vcpu].gfn].word[n->run[vcpu].word];
	CHECK(*at == last_written[n->run[vcpu].gfn][n->run[vcpu].word], "an old word");
	checked++;
	if (n->run[vcpu].want == DSM_XEN_WANT_M)
		*at = last_written[n->run[vcpu].gfn][n->run[vcpu].word] = ++written;
	n->run[vcpu].set = false;
}

static void on_idle(struct ev_loop *l, ev_idle *idle, int events)
{
	struct node *n = idle->data;

	(void)l;
	(void)events;
	for (unsigned int i = 0; i < VCPUS; i++)
		try_instruction(n, i);
	if (n->xen.in_ring)
		dsm_worker_kick(n->worker);
}

static void begin(unsigned int hosts)
{
	rig_begin();
	memset(node, 0, sizeof(node));
	memset(last_written, 0, sizeof(last_written));
	nr_nodes = hosts;
	for (unsigned int i = 0; i < hosts; i++)
		prepare(&node[i], i);
	for (unsigned int i = 0; i < hosts; i++)
		start(&node[i]);
}

static bool all_in(enum dsm_worker_state state)
{
	for (unsigned int i = 0; i < nr_nodes; i++)
		if (node[i].state != state)
			return false;
	return true;
}

static void end(void)
{
	for (unsigned int i = 0; i < nr_nodes; i++)
		dsm_worker_destroy(node[i].worker);
	rig_end();
}

static bool done(void)
{
	for (unsigned int i = 0; i < nr_nodes; i++) {
		if (node[i].left || played_waits(&node[i].xen))
			return false;
		for (unsigned int k = 0; k < VCPUS; k++)
			if (node[i].run[k].set)
				return false;
	}
	return true;
}

static void play(unsigned int instructions)
{
	unsigned int i;

	for (i = 0; i < nr_nodes; i++) {
		node[i].left = instructions;
		ev_idle_init(&node[i].vcpus, on_idle);
		node[i].vcpus.data = &node[i];
		ev_idle_start(loop, &node[i].vcpus);
	}
	UNTIL(done());
	for (i = 0; i < nr_nodes; i++) {
		ev_idle_stop(loop, &node[i].vcpus);
		CHECK(node[i].state == DSM_WORKER_RUNNING, "host %u: %s", i, node[i].why);
	}
}

static void two_hosts(const void *argument)
{
	const struct dsm_stats *stats;
	char *text;

	quick = argument;
	begin(2);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	play(2000);
	CHECK(checked >= 4000, "%llu", (unsigned long long)checked);
	node[0].xen.told = (struct dsm_xen_waits){ .waits = 5, .wake_ns = 6 };
	stats = dsm_worker_stats(node[0].worker);
	CHECK(stats->xen && stats->xen->waits == 5 && stats->xen->wake_ns == 6, "what Xen says");
	node[0].xen.break_waits = -EINVAL;
	CHECK(!dsm_worker_stats(node[0].worker)->xen, "it does not");
	node[0].xen.break_waits = 0;
	CHECK(dsm_worker_stats(node[0].worker)->xen == stats->xen, "it does again");
	CHECK(stats->peer[1].up && stats->peer[1].transport.sent_pages > 100 &&
	      stats->read_fault.count > 100 && stats->write_fault.count > 100 &&
	      stats->engine->operations > 100, "statistics");
	text = dsm_stats_json(stats);
	CHECK(text && strstr(text, "\"frames_used\"") && strstr(text, "\"looks\""), "JSON");
	CHECK(!quick == !stats->poll.looks && !quick == !stats->poll.found &&
	      stats->poll.sleeps, "%llu looks, %llu found, %llu sleeps",
	      (unsigned long long)stats->poll.looks, (unsigned long long)stats->poll.found,
	      (unsigned long long)stats->poll.sleeps);
	free(text);
	CHECK(dsm_worker_leave(node[1].worker) == -EBUSY, "a home does not leave");
	end();
}

static void clocks(const void *argument)
{
	const struct dsm_stats_clock *clock, *back;
	uint64_t apart;

	(void)argument;
	quick = NULL;
	begin(2);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	play(2000);
	UNTIL(dsm_worker_stats(node[0].worker)->peer[1].clock.samples >= DSM_CLOCK_STEADY &&
	      dsm_worker_stats(node[1].worker)->peer[0].clock.samples >= DSM_CLOCK_STEADY);
	clock = &dsm_worker_stats(node[0].worker)->peer[1].clock;
	CHECK(clock->state == DSM_CLOCK_ALIGNED || clock->state == DSM_CLOCK_WIDE, "state %u",
	      clock->state);
	/* A tick is a ns. */
	apart = clock->offset - TSC_APART;
	CHECK(apart + clock->error_ns <= 2 * clock->error_ns, "%lld ns from the truth, %llu are said",
	      (long long)apart, (unsigned long long)clock->error_ns);
	CHECK(clock->khz == 1000000 && !clock->jumps && !clock->impossible, "counts");
	back = &dsm_worker_stats(node[1].worker)->peer[0].clock;
	apart = back->offset + TSC_APART;
	CHECK(apart + back->error_ns <= 2 * back->error_ns, "%lld ns, seen from there",
	      (long long)apart);
	end();

	/* One host has none: the VM runs all the same. */
	without_tsc = 1;
	begin(2);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	play(500);
	CHECK(dsm_worker_stats(node[0].worker)->peer[1].clock.state == DSM_CLOCK_NONE &&
	      dsm_worker_stats(node[1].worker)->peer[0].clock.state == DSM_CLOCK_NONE &&
	      !dsm_worker_stats(node[1].worker)->tsc_khz &&
	      dsm_worker_stats(node[0].worker)->tsc_khz == 1000000, "without");
	end();
	without_tsc = UINT32_MAX;
}

/* vCPUs on two hosts: the time and the CPU policy of the home are the other's, before it runs. */
static void vcpus_of_two_hosts(const void *argument)
{
	struct dsm_vcpu_msg event = { .type = DSM_VCPU_EVENT, .vcpu = 1, .flags = DSM_EVENT_INIT };
	const struct dsm_stats_clock *clock;
	uint64_t apart;

	(void)argument;
	places = true;
	question_ms = 20;
	begin(2);
	strcpy(node[1].xen.more_features, "0x7.0.ebx=0x100");
	node[1].wanted = "CPU features here that guests of this host don't have by default: CPUID 0x7.0.ebx=0x100";
	CHECK(node[0].xen.places == 1 && node[0].xen.place[1] == 1 && node[1].xen.places == 1 &&
	      node[1].xen.place[1] == 1, "placed, at both");
	CHECK(node[0].xen.time_is_set && !node[1].xen.time_is_set, "the home has its time");
	UNTIL(node[0].state == DSM_WORKER_RUNNING);
	CHECK(node[1].xen.started, "it can run before the other one can");
	UNTIL(all_in(DSM_WORKER_RUNNING));
	CHECK(node[1].xen.started && !node[0].xen.started, "the one that was built");
	CHECK(node[1].said, "what its operator may not have meant");
	node[1].said = false;
	CHECK(!memcmp(node[1].xen.policy, node[0].xen.policy, sizeof(node[0].xen.policy)), "the policy");
	CHECK(node[1].xen.time.flags == 10 && node[1].xen.time.sipi == 3 &&
	      !memcmp(node[1].xen.time.word, node[0].xen.time.word, sizeof(node[0].xen.time.word)), "the line");
	/* A tick is a ns: this TSC is ahead of the home's. */
	apart = node[1].xen.time.number - ((1ull << 60) - TSC_APART);
	clock = &dsm_worker_stats(node[1].worker)->peer[0].clock;
	CHECK(apart + 1000000 <= 2 * 1000000, "%lld ns from the truth, %llu are known",
	      (long long)apart, (unsigned long long)clock->error_ns);
	/* And then they are interrupted. */
	CHECK(played_says(&node[0].xen, &event), "a full ring");
	dsm_worker_kick(node[0].worker);
	UNTIL(node[1].xen.nr_log == 1);
	CHECK(node[1].xen.log[0].flags == DSM_EVENT_INIT, "INIT");
	CHECK(dsm_worker_leave(node[1].worker) == -EBUSY, "it can't leave");
	CHECK(node[1].state == DSM_WORKER_RUNNING, "and goes on");
	dsm_worker_destroy(node[1].worker);
	node[1].worker = NULL;
	UNTIL(node[0].state == DSM_WORKER_FAILED);
	CHECK(strstr(node[0].why, host_names[1]) && strstr(node[0].why, "vCPUs 1 ran there"), "%s",
	      node[0].why);
	end();
	places = false;
	question_ms = 1000;
}

static const struct dsm_worker *worker_of(unsigned int number)
{
	return node[number].worker;
}

static void want(unsigned int number, const char *words)
{
	node[number].wanted = words;
	node[number].said = false;
	node[number].times = 0;
}

/* Since the beginning no faster than clock_drift_ppm. */
static void jumped_no_more(uint64_t begun)
{
	uint64_t most = 200 * (dsm_worker_now(NULL) - begun) / 1000000;

	CHECK(node[0].xen.jumped <= most, "%llu ticks, and not %llu", (unsigned long long)node[0].xen.jumped,
	      (unsigned long long)most);
}

/* Nobody says what its TSC is before it is the guest's. */
static bool both_run(void)
{
	CHECK(!worker_of(0)->jumps.peer[1].has || node[1].xen.time_is_set, "it has no time yet");
	return all_in(DSM_WORKER_RUNNING);
}

/* Messages, without questions and answers. */
static uint64_t sent_to_the_home(void)
{
	struct dsm_transport_counters counters = { 0 };

	CHECK(!dsm_transport_counts(dsm_worker_transport(node[1].worker), 0, &counters), "counters");
	return counters.sent;
}

/* Clocks that go apart: the slice that is behind jumps, and both are told of. */
static void one_time_of_two_hosts(const void *argument)
{
	const struct dsm_stats *stats;
	uint64_t begun, sent;
	unsigned int before;

	(void)argument;
	places = true;
	question_ms = 20;
	begun = dsm_worker_now(NULL);
	begin(2);
	UNTIL(both_run());
	CHECK(worker_of(0)->jumps.has && worker_of(1)->jumps.has &&
	      worker_of(1)->jumps.offset == node[1].xen.time.number, "both have their time");
	/* A TSC is set: who is behind comes up slowly, and it is said. */
	want(0, "two times: there and here they are apart by");
	want(1, "two times: there and here they are apart by");
	before = node[1].xen.jumps;
	node[1].xen.tsc_offset += 1000000000;
	UNTIL(node[0].said && node[1].said);
	want(0, "the guest's time was behind that there and has jumped by");
	sent = sent_to_the_home();
	UNTIL(node[0].xen.jumps >= 3);
	CHECK(node[0].times <= 1 && (node[0].times || node[0].xen.jumps > 3), "that is said once");
	CHECK(node[1].times == 1, "and this");
	jumped_no_more(begun);
	CHECK(node[1].xen.jumps == before && sent_to_the_home() == sent, "who is ahead does not, and says nothing");
	CHECK(all_in(DSM_WORKER_RUNNING), "and goes on");
	stats = dsm_worker_stats(node[0].worker);
	CHECK(stats->time_jumps == node[0].xen.jumps && stats->time_jumped_ns == node[0].xen.jumped, "counts");
	node[0].worker->tsc_khz *= 2;
	CHECK(dsm_worker_stats(node[0].worker)->time_jumped_ns == (node[0].xen.jumped + 1) / 2, "ns");
	node[0].worker->tsc_khz /= 2;
	/* Who is behind says how far it has come, so it is known there; who is connected later hears it, too. */
	UNTIL(worker_of(1)->jumps.peer[0].offset == node[0].xen.time.number);
	CHECK(worker_of(0)->start.time.number == node[0].xen.time.number, "TIME");
	/* Xen refuses: nothing has happened, and it goes on. */
	node[0].xen.break_jump = -EINVAL;
	before = node[0].xen.jumps;
	UNTIL(node[0].xen.jumps > before);
	CHECK(dsm_worker_stats(node[0].worker)->time_jumps == before && all_in(DSM_WORKER_RUNNING), "refused");
	CHECK(worker_of(0)->start.time.number == node[0].xen.time.number, "TIME");
	node[0].xen.break_jump = 0;
	/* It is set back: one time again, as soon as that is known. */
	want(0, "the guest has one time again");
	node[1].xen.tsc_offset -= 1000000000;
	UNTIL(node[0].said);
	CHECK(worker_of(0)->peer[1].clock.agreeing == DSM_CLOCK_STEADY, "it is not known yet");
	end();
	places = false;
	question_ms = 1000;
}

/* The home jumps when it has said TIME: a slice that begins has the time of then. */
static void a_jump_before_the_start(const void *argument)
{
	uint64_t apart;

	(void)argument;
	places = true;
	question_ms = 20;
	begin(2);
	/* As if it had jumped behind TIME, and before the first answer. */
	node[0].worker->jumps.offset += 1000000000;
	UNTIL(all_in(DSM_WORKER_RUNNING));
	apart = node[1].xen.time.number - ((1ull << 60) + 1000000000 - TSC_APART);
	CHECK(apart + 1000000 <= 2 * 1000000, "%lld ns from the truth", (long long)apart);
	end();
	places = false;
	question_ms = 1000;
}

/* As soon as it begins to be believed node 1's TSC is set anew. */
static bool both_have_said_so(void)
{
	if (worker_of(0)->peer[1].clock.agreeing > 2)
		node[1].xen.tsc_offset += 50000000;
	return node[0].said && node[1].said;
}

/* Of clocks that always contradict each other nothing is known: nobody jumps, and that is said. */
static void clocks_that_are_not_believed(const void *argument)
{
	uint64_t offset;

	(void)argument;
	places = true;
	question_ms = 20;
	begin(2);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	UNTIL(worker_of(0)->jumps.peer[1].has && worker_of(0)->peer[1].clock.agreeing == DSM_CLOCK_STEADY);
	offset = node[1].xen.tsc_offset;
	want(0, "the guest may have two times");
	want(1, "the guest may have two times");
	UNTIL(both_have_said_so());
	CHECK(worker_of(0)->peer[1].clock.jumps >= 8 && worker_of(1)->peer[0].clock.jumps >= 8, "too soon");
	CHECK(all_in(DSM_WORKER_RUNNING), "and goes on");
	want(0, "the guest has one time again");
	node[1].xen.tsc_offset = offset;
	UNTIL(node[0].said);
	CHECK(worker_of(0)->peer[1].clock.agreeing == DSM_CLOCK_STEADY, "it is not known yet");
	end();
	places = false;
	question_ms = 1000;
}

/* Node 1 says its TSC, and then it answers; or it does not. */
static void hear(uint64_t offset, bool answers)
{
	struct dsm_vcpu_msg msg = { .type = DSM_VCPU_TSC, .number = offset };
	const struct dsm_msg head = { .type = DSM_VCPU_TSC };
	uint8_t bytes[DSM_VCPU_BYTES];

	dsm_vcpu_put(&msg, bytes);
	CHECK(dsm_drift_message(node[0].worker, 1, &head, bytes), "TSC");
	if (answers)
		dsm_drift_clock(node[0].worker, 1);
}

/* vCPUs go where time is known to be one, not where it is known not to be, and not before anything is known. */
static void what_is_known_of_a_time(const void *argument)
{
	struct dsm_clock wide, steady;
	char text[DSM_ENGINE_TEXT];
	struct dsm_worker *w;
	struct dsm_peer *peer;
	uint64_t offset;
	unsigned int i;

	(void)argument;
	places = true;
	question_ms = 20;
	begin(2);
	w = node[0].worker;
	peer = &w->peer[1];
	UNTIL(all_in(DSM_WORKER_RUNNING) && peer->time == DSM_TIME_ONE && peer->clock.agreeing == DSM_CLOCK_STEADY);
	CHECK(!dsm_drift_ask(w, 1, text), "one");
	CHECK(!dsm_drift_ask(w, 2, text), "one that does not say");
	offset = w->jumps.peer[1].offset;
	wide = steady = peer->clock;
	wide.now.least -= 5000000;
	wide.now.width += 10000000;
	/* Connected anew: it has to say it, and to answer, in any order. */
	dsm_drift_up(w, 1);
	CHECK(dsm_drift_ask(w, 1, text) == -EAGAIN, "nothing is known");
	dsm_drift_clock(w, 1);
	CHECK(dsm_drift_ask(w, 1, text) == -EAGAIN, "nothing was said");
	hear(offset, false);
	CHECK(!dsm_drift_ask(w, 1, text), "it has answered, and said it");
	dsm_drift_up(w, 1);
	hear(offset, false);
	CHECK(dsm_drift_ask(w, 1, text) == -EAGAIN, "it has not answered");
	dsm_drift_clock(w, 1);
	CHECK(!dsm_drift_ask(w, 1, text), "it has said it, and answered");
	/* Perhaps apart: of one of whom nothing bad was known, and of one who was apart. */
	dsm_drift_up(w, 1);
	peer->clock = wide;
	hear(offset, true);
	CHECK(!dsm_drift_ask(w, 1, text), "perhaps");
	peer->clock = steady;
	hear(offset + 2000000000, true);
	CHECK(dsm_drift_ask(w, 1, text) == -ERANGE &&
	      strstr(text, "the guest has two times: there and here they are apart by 199") &&
	      strstr(text, " ns; clock_error_us is 1000"), "%s", text);
	CHECK(dsm_worker_stats(w)->peer[1].clock.two_times, "and counted so");
	w->jumps.peer[1].offset = offset;
	peer->clock = wide;
	dsm_drift_clock(w, 1);
	CHECK(dsm_drift_ask(w, 1, text) == -ERANGE && strstr(text, "apart by 0 to "), "%s", text);
	peer->clock = steady;
	dsm_drift_clock(w, 1);
	CHECK(!dsm_drift_ask(w, 1, text) && !dsm_worker_stats(w)->peer[1].clock.two_times, "one again");
	/* Clocks that contradict each other, before it has said anything; not those of the connection before. */
	peer->clock.generation += 100;
	peer->clock.agreeing = 1;
	dsm_drift_up(w, 1);
	for (i = 0; i < 8; i++) {
		dsm_drift_clock(w, 1);
		CHECK(dsm_drift_ask(w, 1, text) == -EAGAIN, "%u", i);
		peer->clock.generation++;
	}
	dsm_drift_clock(w, 1);
	CHECK(dsm_drift_ask(w, 1, text) == -ERANGE && strstr(text, "may have two times: the clocks contradict"), "%s", text);
	peer->clock.agreeing = DSM_CLOCK_STEADY;
	dsm_drift_clock(w, 1);
	CHECK(dsm_drift_ask(w, 1, text) == -EAGAIN, "believed, and nothing was said");
	/* What jumps go by is this host's. */
	w->tsc_khz = 7;
	node[0].config.clock_drift_ppm = 9;
	dsm_drift_init(w);
	CHECK(w->jumps.khz == 7 && w->jumps.drift_ppm == 9, "its own");
	end();
	places = false;
	question_ms = 1000;
}

/* So many lines are about a clock, and no more, whatever it does. */
static void lines_about_clocks(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin(2);
	for (i = 0; i < 9; i++)
		CHECK(dsm_peers_clock_may_say(node[0].worker, &node[0].worker->peer[1]) == (i < 8), "line %u", i);
	end();
}

/* A clock that is not known so well as it has to be is waited for. */
static void a_clock_that_is_wide(const void *argument)
{
	struct dsm_clock *clock;

	(void)argument;
	places = true;
	question_ms = 20;
	error_us = 1;
	begin(2);
	error_us = 1000;
	clock = &node[1].worker->peer[0].clock;
	clock->params.error_ns = 1;
	UNTIL(clock->agreeing == DSM_CLOCK_STEADY && clock->samples > 2 * DSM_CLOCK_STEADY);
	CHECK(!node[1].xen.started && !node[1].xen.time_is_set, "not yet");
	clock->params.error_ns = 1000000;
	UNTIL(all_in(DSM_WORKER_RUNNING));
	CHECK(node[1].xen.started, "it is known");
	end();
	places = false;
	question_ms = 1000;
}

/* Who keeps up by answers asks often enough, whatever dsm.toml says; a VM without vCPUs elsewhere need not. */
static void questions_of_one_time(const void *argument)
{
	(void)argument;
	question_ms = 30000;
	for (places = false; ; places = true) {
		begin(2);
		CHECK(node[0].worker->transport_params.question_ns == (places ? 500000000ull : 30000000000ull) &&
		      node[0].worker->questions.repeat == (places ? .125 : 7.5), "%.3f s", node[0].worker->questions.repeat);
		end();
		if (places)
			break;
	}
	question_ms = 200;
	begin(2);
	CHECK(node[0].worker->transport_params.question_ns == 200000000, "more often is as it was");
	end();
	places = false;
	question_ms = 1000;
}

/* A message of node 1, as if its dsmd had sent it. */
static void send_tsc(uint64_t number, uint32_t vcpu)
{
	struct dsm_msg head = { .type = DSM_VCPU_TSC, .epoch = worker_of(1)->peer[0].epoch };
	struct dsm_vcpu_msg msg = { .type = DSM_VCPU_TSC, .number = number, .vcpu = vcpu };
	uint8_t bytes[DSM_VCPU_BYTES];

	dsm_vcpu_put(&msg, bytes);
	CHECK(!dsm_transport_send(dsm_worker_transport(node[1].worker), 0, &head, bytes), "sent");
}

/* The home says TIME again, as to one that is connected again, and less than it has said already. */
static void time_that_goes_back(void)
{
	struct dsm_msg head = { .type = DSM_VCPU_TIME };
	struct dsm_vcpu_msg time;
	uint8_t bytes[DSM_VCPU_BYTES];

	places = true;
	question_ms = 20;
	begin(2);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	head.epoch = worker_of(0)->peer[1].epoch;
	time = worker_of(0)->start.time;
	time.number--;
	dsm_vcpu_put(&time, bytes);
	node[1].worker->start.is_told = false;
	CHECK(!dsm_transport_send(dsm_worker_transport(node[0].worker), 1, &head, bytes), "sent");
	UNTIL(node[1].state == DSM_WORKER_FAILED);
	CHECK(strstr(node[1].why, "TIME: it goes back") && strstr(node[1].why, host_names[0]), "%s", node[1].why);
	end();
}

/* What a peer may not say of its time. */
static void lies_about_time(const void *argument)
{
	static const struct {
		bool places;
		uint64_t number;
		uint32_t vcpu;
		const char *words;
	} table[] = {
		{ true, 1, 0, "TSC: its time goes back" },
		{ true, 1ull << 61, 1, "TSC: a reserved byte is not 0" },
		{ false, 0, 0, "TSC: it has nothing to say here" },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		places = table[i].places;
		question_ms = 20;
		begin(2);
		UNTIL(all_in(DSM_WORKER_RUNNING));
		UNTIL(!places || worker_of(0)->jumps.peer[1].has);
		send_tsc(table[i].number, table[i].vcpu);
		UNTIL(node[0].state == DSM_WORKER_FAILED);
		CHECK(strstr(node[0].why, table[i].words) && strstr(node[0].why, host_names[1]), "%s", node[0].why);
		end();
	}
	time_that_goes_back();
	places = false;
	question_ms = 1000;
}

/* Whoever unpauses the home's domain too early loses nothing. */
static void interrupted_before_the_start(const void *argument)
{
	const struct dsm_vcpu_msg event = {
		.type = DSM_VCPU_EVENT, .vcpu = 1, .flags = DSM_EVENT_INIT | DSM_EVENT_SIPI, .sipi = 7,
	};

	(void)argument;
	places = true;
	question_ms = 20;
	begin(2);
	CHECK(played_says(&node[0].xen, &event), "a full ring");
	dsm_worker_kick(node[0].worker);
	UNTIL(node[1].state == DSM_WORKER_FAILED || all_in(DSM_WORKER_RUNNING));
	CHECK(node[1].state == DSM_WORKER_RUNNING, "%s", node[1].why);
	UNTIL(node[1].xen.nr_log == 1);
	CHECK(node[1].xen.log[0].sipi == 7 && node[1].xen.time_is_set, "it waited");
	end();
	places = false;
	question_ms = 1000;
}

/* What is in the way of it ends the VM before it begins, with a reason. */
static void vcpus_that_do_not_start(const void *argument)
{
	static const struct {
		const char *words;
		unsigned int without_tsc;
		int policy, time;
	} table[] = {
		{ "it has no TSC to compare, or we have none", 0, 0, 0 },
		{ "it has no TSC to compare, or we have none", 1, 0, 0 },
		{ "its CPU policy can't be that of this host: Invalid argument; no guest here can have these CPU features: "
		  "CPUID 0x7.0.ebx=0x400", UINT32_MAX, -EINVAL, 0 },
		{ "Xen does not take its time: Device or resource busy", UINT32_MAX, 0, -EBUSY },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		places = true;
		question_ms = 20;
		without_tsc = table[i].without_tsc;
		begin(2);
		node[1].xen.break_policy = table[i].policy;
		if (table[i].policy)
			strcpy(node[1].xen.more_features, "0x7.0.ebx=0x400");
		node[1].xen.break_time = table[i].time;
		UNTIL(all_in(DSM_WORKER_FAILED));
		CHECK(strstr(node[1].why, table[i].words) && strstr(node[1].why, host_names[0]), "%s",
		      node[1].why);
		CHECK(!node[1].xen.started, "it runs");
		end();
	}
	without_tsc = UINT32_MAX;
	places = false;
	question_ms = 1000;
}

/* Who is waited for is named, and one that never becomes ready is not waited for for ever. */
static void never_ready(const void *argument)
{
	unsigned int before;

	(void)argument;
	places = true;
	question_ms = 20;
	patience = 1.;
	rig_begin();
	memset(node, 0, sizeof(node));
	nr_nodes = 2;
	prepare(&node[0], 0);
	prepare(&node[1], 1);
	start(&node[0]);
	node[0].wanted = "the guest waits for its vCPUs, and it is not connected";
	before = node[0].logged;
	UNTIL(node[0].said);
	/* Not connected is no reason, however long: after 2, 4, 8 and 16 tenths of a second. */
	UNTIL(node[0].logged == before + 5);
	CHECK(node[0].state == DSM_WORKER_CONNECTING, "%s", node[0].why);
	node[0].wanted = "it is connected, and not ready yet";
	node[0].said = false;
	/* It never asks for the time, so it never knows how far its TSC is away. */
	node[1].config.question_ms = 50000;
	start(&node[1]);
	UNTIL(node[0].said);
	CHECK(node[0].state == DSM_WORKER_CONNECTING, "%s", node[0].why);
	UNTIL(all_in(DSM_WORKER_FAILED));
	CHECK(strstr(node[0].why, host_names[1]) &&
	      strstr(node[0].why, "connected, and after 1 s not ready for the guest's vCPUs"), "%s", node[0].why);
	end();
	patience = 0.;
	places = false;
	question_ms = 1000;
}

/* A queue in which what is to be said before the start has no room. */
static void a_short_queue(const void *argument)
{
	struct dsm_worker *worker;
	char text[DSM_ENGINE_TEXT];
	unsigned int i;

	(void)argument;
	places = true;
	rig_begin();
	memset(node, 0, sizeof(node));
	nr_nodes = 2;
	for (i = 0; i < 2; i++) {
		struct dsm_worker_params p = {
			.loop = loop, .config = &node[0].config, .description = &node[0].description,
			.xen = &node[0].xen.xen, .calls = &worker_calls, .context = &node[0], .adjust = adjust,
		};

		prepare(&node[0], 0);
		node[0].config.queue = (uint16_t)(15 + i);
		CHECK(dsm_worker_create(&p, &worker, text) == (i ? 0 : -EINVAL), "%s", text);
		CHECK(i || strstr(text, "\"queue\" of dsm.toml is 15: "), "%s", text);
	}
	dsm_worker_destroy(worker);
	rig_end();
	places = false;
}

/* What start.c must not be told; by the transport of an honest host. */
static void lies_before_the_start(const void *argument)
{
	static const struct {
		unsigned int from, type;
		const char *words;
	} table[] = {
		{ 1, DSM_VCPU_READY, "READY: nobody waits for it" },	/* a second one */
		{ 1, DSM_VCPU_TIME, "TIME: it has nothing to say here" },
		{ 1, DSM_VCPU_POLICY, "POLICY: it has nothing to say here" },
		{ 0, DSM_VCPU_READY, "READY: it has nothing to say here" },
		{ 0, DSM_VCPU_TIME, "TIME: " },				/* a second one */
		{ 0, DSM_VCPU_POLICY, "POLICY: not its turn" },
		{ 1, DSM_VCPU_TABLE, "TABLE: it has nothing to say here" },
		{ 0, DSM_VCPU_TABLE, "TABLE: not its turn" },
		{ 0, DSM_VCPU_TABLE, "TABLE: a reserved byte" },	/* of a vCPU that there is not */
	};
	static const uint8_t nothing[DSM_PAGE_BYTES], last[DSM_PAGE_BYTES] = { [DSM_PAGE_BYTES - 1] = 1 };
	unsigned int i;

	(void)argument;
	places = true;
	question_ms = 20;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct node *to = &node[!table[i].from];
		struct dsm_msg head = { .type = (uint8_t)table[i].type, .epoch = 1 };

		begin(2);
		UNTIL(all_in(DSM_WORKER_RUNNING));
		while (dsm_transport_send(dsm_worker_transport(node[table[i].from].worker), !table[i].from,
					  &head, strstr(table[i].words, "byte") ? last : nothing) == -EINVAL)
			CHECK(head.epoch++ < 100, "no epoch");
		UNTIL(to->state == DSM_WORKER_FAILED);
		CHECK(strstr(to->why, table[i].words) && strstr(to->why, host_names[table[i].from]) &&
		      strstr(to->why, "breaks the protocol"), "%s", to->why);
		end();
	}
	places = false;
	question_ms = 1000;
}

static void a_guest_leaves(const void *argument)
{
	(void)argument;
	begin(3);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	play(500);
	CHECK(!dsm_worker_leave(node[2].worker), "leave");
	UNTIL(node[2].state == DSM_WORKER_ENDED);
	CHECK(!dsm_engine_guests(dsm_worker_engine(node[2].worker)), "all is home");
	UNTIL(!dsm_worker_stats(node[0].worker)->peer[2].up &&
	      !dsm_worker_stats(node[1].worker)->peer[2].up);
	nr_nodes = 2;
	play(500);
	nr_nodes = 3;
	end();
}

static void a_host_is_lost(const void *argument)
{
	(void)argument;
	begin(3);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	play(200);
	dsm_worker_destroy(node[1].worker);
	node[1].worker = NULL;
	UNTIL(node[0].state == DSM_WORKER_FAILED && node[2].state == DSM_WORKER_FAILED);
	CHECK(strstr(node[0].why, "is lost (") && strstr(node[0].why, host_names[1]) &&
	      strstr(node[0].why, "of its own 6 pages"), "%s", node[0].why);
	CHECK(node[0].xen.crashes == 1 && node[2].xen.crashes == 1, "both domains crash");
	end();
}

static void one_fails(const void *argument)
{
	(void)argument;
	begin(2);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	dsm_engine_fail(dsm_worker_engine(node[1].worker), "because");
	UNTIL(all_in(DSM_WORKER_FAILED));
	CHECK(!strcmp(node[1].why, "because"), "%s", node[1].why);
	CHECK(strstr(node[0].why, "the peer says that the VM has failed") &&
	      strstr(node[0].why, "(broken)"), "%s", node[0].why);
	end();
}

/* Who comes after the VM has failed is told at once. */
static void one_has_failed(const void *argument)
{
	(void)argument;
	rig_begin();
	memset(node, 0, sizeof(node));
	nr_nodes = 2;
	prepare(&node[0], 0);
	prepare(&node[1], 1);
	start(&node[0]);
	dsm_engine_fail(dsm_worker_engine(node[0].worker), "before anybody came");
	CHECK(node[0].state == DSM_WORKER_FAILED, "%u", node[0].state);
	start(&node[1]);
	UNTIL(node[1].state == DSM_WORKER_FAILED);
	/* Its own first words may cross the end of the connection, and cut it off. */
	CHECK(strstr(node[1].why, "the peer says that the VM has failed") ||
	      strstr(node[1].why, "cut off"), "%s", node[1].why);
	CHECK(node[1].xen.crashes == 1, "its domain crashes");
	end();
}

/* A host that leaves, and has pages of one that is lost meanwhile. */
static void lost_while_leaving(const void *argument)
{
	uint64_t gfn;

	(void)argument;
	begin(3);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	play(500);
	for (gfn = 0; gfn < PAGES; gfn++)
		node[2].xen.page[gfn].pinned = true;
	for (gfn = 0; gfn < PAGES / 2; gfn++)
		UNTIL(played_use(&node[2].xen, NO_VCPU, gfn, DSM_XEN_WANT_S, 0) == PLAYED_DONE ||
		      (dsm_worker_kick(node[2].worker), false));
	CHECK(!dsm_worker_leave(node[2].worker), "leave");
	/* The one has nothing there that it needs, and so it goes; the other is lost. */
	dsm_worker_destroy(node[0].worker);
	node[0].worker = NULL;
	UNTIL(node[2].state == DSM_WORKER_FAILED);
	/* Or the third notices it before, and tells us. */
	CHECK(strstr(node[2].why, "is lost (") &&
	      (strstr(node[2].why, host_names[0]) ||
	       strstr(node[2].why, "the peer says that the VM has failed")), "%s",
	      node[2].why);
	end();
}

/* Who opens comes first, and tries again; the VM has not failed yet. */
static void nobody_listens(const void *argument)
{
	struct dsm_msg msg = { .type = DSM_GETS, .epoch = 1 };

	(void)argument;
	rig_begin();
	memset(node, 0, sizeof(node));
	nr_nodes = 2;
	prepare(&node[0], 0);
	prepare(&node[1], 1);
	start(&node[1]);
	UNTIL(node[1].logged >= 2);
	CHECK(node[1].state == DSM_WORKER_CONNECTING && !node[1].xen.crashes, "%s", node[1].why);
	/* It may try for days, and epochs that are far apart are refused: the first is 1. */
	start(&node[0]);
	((struct sockaddr_in *)&node[1].transport->peer[0].address)->sin_port =
		htons((uint16_t)node[0].port);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	CHECK(!dsm_transport_send(dsm_worker_transport(node[1].worker), 0, &msg, NULL),
	      "another epoch than 1");
	end();
}

/* Of worker_internal.h, whose dsm_link is not that of link.h. */
extern const struct dsm_transport_calls dsm_peers_calls;

static uint64_t played_ns;

static uint64_t played_now(void *context)
{
	(void)context;
	return played_ns;
}

/* False HELLOs of a host that is expected: each is no connection, and the log does not grow with them. */
static void attempts_without_end(const void *argument)
{
	struct dsm_transport_params params;
	unsigned int i, before;

	(void)argument;
	rig_begin();
	memset(node, 0, sizeof(node));
	nr_nodes = 2;
	prepare(&node[0], 0);
	start(&node[0]);
	params = *node[0].transport;
	node[0].transport->now = played_now;
	before = node[0].logged;
	for (i = 0; i < 1000; i++)
		dsm_peers_calls.end(node[0].worker, 1, DSM_END_HELLO, "no such message");
	CHECK(node[0].logged == before + 8, "%u lines", node[0].logged - before);
	CHECK(node[0].state == DSM_WORKER_CONNECTING, "it waits still");
	/* One more after ten seconds, and it says how many there were. */
	played_ns += 10000000000ull - 1;
	node[0].wanted = "no connection: no HELLO: no such message; and 993 more before";
	node[0].said = false;
	dsm_peers_calls.end(node[0].worker, 1, DSM_END_HELLO, "no such message");
	CHECK(!node[0].said, "too early");
	played_ns += 1;
	dsm_peers_calls.end(node[0].worker, 1, DSM_END_HELLO, "no such message");
	CHECK(node[0].said && node[0].logged == before + 9, "%u lines", node[0].logged - before);
	node[0].transport->now = params.now;
	/* And the honest one is let in. */
	prepare(&node[1], 1);
	start(&node[1]);
	UNTIL(all_in(DSM_WORKER_RUNNING));
	end();
}

static const struct test_case cases[] = {
	{ "worker: clocks", clocks, NULL },
	{ "workers: vCPUs of two hosts", vcpus_of_two_hosts, NULL },
	{ "workers: one time of two hosts", one_time_of_two_hosts, NULL },
	{ "workers: a jump before the start", a_jump_before_the_start, NULL },
	{ "workers: what is known of a time", what_is_known_of_a_time, NULL },
	{ "workers: lines about clocks", lines_about_clocks, NULL },
	{ "workers: a clock that is wide", a_clock_that_is_wide, NULL },
	{ "workers: questions of one time", questions_of_one_time, NULL },
	{ "workers: clocks that are not believed", clocks_that_are_not_believed, NULL },
	{ "workers: lies about time", lies_about_time, NULL },
	{ "workers: vCPUs that are interrupted before the start", interrupted_before_the_start, NULL },
	{ "workers: vCPUs that do not start", vcpus_that_do_not_start, NULL },
	{ "workers: never ready", never_ready, NULL },
	{ "workers: a short queue", a_short_queue, NULL },
	{ "workers: lies before the start", lies_before_the_start, NULL },
	{ "workers: two hosts", two_hosts, NULL },
	{ "workers: two quick hosts", two_hosts, &nr_nodes },
	{ "workers: a guest leaves", a_guest_leaves, NULL },
	{ "workers: a host is lost", a_host_is_lost, NULL },
	{ "workers: one fails", one_fails, NULL },
	{ "workers: one has failed", one_has_failed, NULL },
	{ "workers: lost while leaving", lost_while_leaving, NULL },
	{ "workers: nobody listens yet", nobody_listens, NULL },
	{ "workers: attempts without end", attempts_without_end, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
