// SPDX-License-Identifier: GPL-2.0
/*
 * An operator's pause is that of all slices: engines with a played hypervisor each.
 */
#include <errno.h>
#include <string.h>

#include "vcpu_rig.h"

/* The operator's, at the home.  others: as Xen counts. */
static void operator_says(bool pause)
{
	CHECK(pause || node[home].xen.others, "Xen refuses it");
	node[home].xen.others += pause ? 1u : UINT32_MAX;
}

/* Return: what dsm_engine_follows() says; its text is node[home].error. */
static int follows(void)
{
	char text[DSM_ENGINE_TEXT] = "";
	int rc = dsm_engine_follows(node[home].engine, text);

	CHECK(!rc == !text[0], "%d and '%s'", rc, text);
	snprintf(node[home].error, sizeof(node[home].error), "%s", text);
	return rc;
}

static void ask(void)
{
	dsm_engine_follow(node[home].engine);
	CHECK(follows() == -EINPROGRESS, "before it has looked");
}

/* All slices but the home's have one pause of ours, or none has. */
static void all_are(bool paused, const char *what)
{
	uint16_t hosts = 0;
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		CHECK(!node[i].failure[0], "%s: host %u: %s", what, i, node[i].failure);
		CHECK(node[i].xen.pauses == (i != home && paused), "%s: host %u has %u pauses", what, i,
		      node[i].xen.pauses);
		CHECK(dsm_engine_is_paused(node[i].engine) == paused, "%s: what host %u says", what, i);
		if (i != home && paused)
			hosts |= (uint16_t)(1u << i);
	}
	CHECK(dsm_engine_paused_hosts(node[home].engine) == hosts, "%s: %x have said so", what,
	      dsm_engine_paused_hosts(node[home].engine));
	CHECK(!follows(), "%s: %s", what, node[home].error);
}

static void begin_running(unsigned int of_vm)
{
	dice_begin();
	begin_at(of_vm);
	settle();
	pass(0);
	settle();
	all_are(false, "it runs");
}

static void both_ways(const void *argument)
{
	unsigned int of_vm, i;

	(void)argument;
	for (of_vm = 0; of_vm < HOSTS; of_vm++) {
		begin_running(of_vm);
		for (i = 0; i < 3; i++) {
			operator_says(true);
			ask();
			settle();
			all_are(true, "paused");
			ask();
			settle();
			all_are(true, "asked again");
			operator_says(false);
			ask();
			settle();
			all_are(false, "unpaused");
		}
		end();
	}
}

/* Nobody asks: an xl that was killed, another tool. */
static void unasked(const void *argument)
{
	(void)argument;
	begin_running(0);
	operator_says(true);
	settle();
	all_are(false, "it does not look all the time");
	pass(999 * MS);
	settle();
	all_are(false, "nor in this second");
	pass(MS);
	settle();
	all_are(true, "but then");
	operator_says(false);
	pass(99 * MS);
	settle();
	all_are(true, "not yet");
	pass(MS);
	settle();
	all_are(false, "more often while it is paused");
	CHECK(dsm_engine_next(node[0].engine) <= clock_ns + 1000 * MS &&
	      dsm_engine_next(node[0].engine) > clock_ns, "it wakes up for it");
	CHECK(dsm_engine_next(node[1].engine) > clock_ns + 1000 * MS, "the others don't");
	end();
}

static void twice(const void *argument)
{
	(void)argument;
	begin_running(0);
	operator_says(true);
	operator_says(true);
	ask();
	settle();
	all_are(true, "twice");
	operator_says(false);
	ask();
	settle();
	all_are(true, "Xen has one still");
	operator_says(false);
	ask();
	settle();
	all_are(false, "none");
	end();
}

/* One is slow: others are not waited with, and what holds when it answers is what is said. */
static void a_slow_host(const void *argument)
{
	(void)argument;
	begin_running(0);
	operator_says(true);
	ask();
	look(0);
	CHECK(follows() == -EINPROGRESS && !strncmp(node[0].error, "busy host beta has not said that the guest stands still", 50),
	      "%s", node[0].error);
	CHECK(deliver(0, 2) && deliver(2, 0), "the quick one");
	CHECK(dsm_engine_paused_hosts(node[0].engine) == 4 && node[2].xen.pauses == 1, "stands still");
	CHECK(follows() == -EINPROGRESS, "the slow one does not");
	/* To and fro: nothing is said to it before it answers. */
	operator_says(false);
	ask();
	look(0);
	CHECK(follows() == -EINPROGRESS && strstr(node[0].error, "goes on"), "%s", node[0].error);
	operator_says(true);
	ask();
	look(0);
	CHECK(in_channel[0][1] == 1 && in_channel[0][2] == 1, "%u, %u", in_channel[0][1], in_channel[0][2]);
	CHECK(deliver(0, 1) && deliver(1, 0), "the slow one");
	look(0);
	CHECK(!in_channel[0][1], "it does already what is to be");
	settle();
	all_are(true, "all");
	operator_says(false);
	ask();
	look(0);
	operator_says(true);
	ask();
	settle();
	all_are(true, "and again");
	end();
}

/* Nobody has started it: that is no pause. */
static void before_it_runs(const void *argument)
{
	(void)argument;
	dice_begin();
	begin_at(0);
	operator_says(true);
	settle();
	pass(5000 * MS);
	settle();
	all_are(false, "nobody has started it");
	operator_says(false);
	pass(1000 * MS);
	operator_says(true);
	pass(1000 * MS);
	settle();
	all_are(true, "it has run");
	end();
	/* Started, paused and asked for, faster than we look. */
	begin_at(0);
	operator_says(true);
	pass(0);
	operator_says(false);
	operator_says(true);
	ask();
	settle();
	all_are(true, "who asks has started it");
	end();
}

/* vCPUs are placed while it is paused, and it is paused while they are placed. */
static void and_places(const void *argument)
{
	const uint16_t vcpu = 1;
	char text[DSM_ENGINE_TEXT];
	unsigned int i;

	(void)argument;
	begin_placed(1, 1, 2);
	pass(0);
	settle();
	operator_says(true);
	ask();
	settle();
	all_are(true, "paused");
	CHECK(dsm_engine_place(node[0].engine, 1, &vcpu, 1, text) == -EINPROGRESS, "%s", text);
	look(0);
	CHECK(node[0].xen.pauses == 1, "by us");
	settle();
	CHECK(node[0].placed == 1 && !node[0].error[0] && dsm_engine_where(node[1].engine, 1) == 1, "there");
	all_are(true, "it goes on standing still");
	operator_says(false);
	ask();
	settle();
	all_are(false, "and goes on");
	/* In a round our own pause is not the operator's, and his waits until it ends. */
	node[0].placed = 0;
	CHECK(dsm_engine_place(node[0].engine, 0, &vcpu, 1, text) == -EINPROGRESS, "%s", text);
	look(0);
	for (i = 0; i < 3; i++)
		pass(500 * MS);
	CHECK(!dsm_engine_is_paused(node[0].engine), "it is ours");
	CHECK(dsm_engine_next(node[0].engine) > clock_ns, "it sleeps meanwhile");
	operator_says(true);
	ask();
	look(0);
	CHECK(follows() == -EINPROGRESS && !strcmp(node[0].error, "busy vCPUs are on their way"), "%s", node[0].error);
	settle();
	CHECK(node[0].placed == 1 && dsm_engine_where(node[1].engine, 1) == 0, "home: %s", node[0].error);
	all_are(true, "then");
	/* He unpauses in a round. */
	CHECK(dsm_engine_place(node[0].engine, 1, &vcpu, 1, text) == -EINPROGRESS, "%s", text);
	look(0);
	operator_says(false);
	settle();
	pass(100 * MS);
	settle();
	all_are(false, "it goes on");
	end();
}

/* A host without vCPUs goes, and comes back, while it is paused. */
static void hosts_that_go(const void *argument)
{
	unsigned int times;

	(void)argument;
	for (times = 0; times < 2; times++) {
		begin_placed(1, 1, 2);
		pass(0);
		settle();
		unbind(2);
		dsm_engine_open_range(node[0].engine, 2, 0);
		dsm_engine_range_done(node[0].engine, 2);
		dsm_engine_open_range(node[1].engine, 2, 0);
		dsm_engine_range_done(node[1].engine, 2);
		operator_says(true);
		ask();
		if (times)
			look(0);	/* it goes before it has had it */
		else
			settle();
		part(0, 2);
		part(1, 2);
		CHECK(!node[2].xen.pauses && !dsm_engine_is_paused(node[2].engine), "%u at host 2",
		      node[2].xen.pauses);
		settle();
		CHECK(!follows() && node[1].xen.pauses == 1, "the other one stands still: %s", node[0].error);
		CHECK(dsm_engine_paused_hosts(node[0].engine) == 2, "and says so");
		begin_alone(2);
		join(0, 2);
		join(1, 2);
		dsm_engine_takes_pause(node[0].engine, 2, true);
		settle();
		CHECK(!node[2].xen.pauses, "it is not ready");
		dsm_engine_ready(node[0].engine, 2, 0);
		settle();
		all_are(true, "it was told");
		operator_says(false);
		ask();
		settle();
		all_are(false, "goes on");
		end();
	}
	/* One that can't have vCPUs is not told. */
	begin_placed(1, 1, 2);
	pass(0);
	settle();
	unbind(2);
	dsm_engine_open_range(node[0].engine, 2, 0);
	dsm_engine_range_done(node[0].engine, 2);
	part(0, 2);
	join(0, 2);
	dsm_engine_ready(node[0].engine, 2, DSM_NOT_TSC);
	operator_says(true);
	ask();
	settle();
	CHECK(!follows() && node[1].xen.pauses == 1 && !node[2].xen.pauses, "%s", node[0].error);
	end();
}

/* vCPUs run there: the guest ends, paused or not. */
static void a_host_is_lost(const void *argument)
{
	(void)argument;
	begin_running(0);
	operator_says(true);
	ask();
	settle();
	dsm_engine_peer_down(node[0].engine, 1, false, "cut off");
	expect_failure(0, "host beta is lost (cut off): vCPUs 1 ran there");
	end();
}

/* The home does not fail the VM, however long it takes, and serves what is asked. */
static void for_long(const void *argument)
{
	unsigned int hours;

	(void)argument;
	answer_ns = 100 * MS;
	begin_running(0);
	operator_says(true);
	ask();
	look(0);
	/* Nobody answers. */
	for (hours = 0; hours < 24; hours++)
		pass(3600000 * MS);
	CHECK(follows() == -EINPROGRESS && !node[0].failure[0], "%s", node[0].failure);
	settle();
	all_are(true, "they have");
	for (hours = 0; hours < 24; hours++) {
		/* A page that a vCPU waited for when it was paused. */
		played_use(&node[1].xen, 1, hours % 10, DSM_XEN_WANT_M, 0x1000 + hours);
		look(1);
		settle();
		pass(MS);
		settle();
		CHECK(!played_waits(&node[1].xen) && node[1].xen.page[hours % 10].state == DSM_XEN_STATE_M,
		      "hour %u", hours);
		pass(3600000 * MS);
		settle();
		played_use(&node[0].xen, 0, hours % 10, DSM_XEN_WANT_M, 0x2000 + hours);
		look(0);
		settle();
		pass(MS);
		settle();
		CHECK(!played_waits(&node[0].xen), "back, hour %u", hours);
		all_are(true, "still");
	}
	operator_says(false);
	ask();
	settle();
	all_are(false, "goes on");
	end();
	answer_ns = 0;
}

/* A host that does not know of it. */
static void an_older_host(const void *argument)
{
	(void)argument;
	begin_running(0);
	dsm_engine_takes_pause(node[0].engine, 2, false);
	operator_says(true);
	ask();
	settle();
	CHECK(follows() == -EINVAL && !strncmp(node[0].error, "version host gamma: vCPUs run there", 35), "%s",
	      node[0].error);
	CHECK(!node[2].xen.pauses && !node[2].failure[0], "it was told");
	/* Who paused may have been killed before he asked. */
	pass(5000 * MS);
	settle();
	CHECK(node[0].warnings == 1 && !node[1].warnings, "the log says so: %u", node[0].warnings);
	operator_says(false);
	ask();
	settle();
	all_are(false, "nothing is needed of it");
	operator_says(true);
	pass(1000 * MS);
	settle();
	CHECK(node[0].warnings == 2, "and again: %u", node[0].warnings);
	end();
	/* It has no vCPU. */
	begin_placed(1, 1, 2);
	pass(0);
	dsm_engine_takes_pause(node[0].engine, 2, false);
	operator_says(true);
	ask();
	settle();
	CHECK(!follows() && node[1].xen.pauses == 1 && !node[2].xen.pauses, "%s", node[0].error);
	CHECK(!node[0].warnings, "nothing to say");
	end();
}

static void somebody_else(const void *argument)
{
	(void)argument;
	begin_running(0);
	operator_says(true);
	ask();
	settle();
	/* The slice there runs by the word of who is root there. */
	node[1].xen.pauses = 0;
	operator_says(false);
	ask();
	settle();
	all_are(false, "nothing more");
	CHECK(node[1].warnings == 1 && !node[2].warnings, "its log says so");
	/* Xen does not pause it. */
	node[1].xen.break_pause = -ENOMEM;
	operator_says(true);
	ask();
	settle();
	expect_failure(1, "Xen does not pause the guest: Cannot allocate memory");
	end();
}

/* A VM whose vCPUs are all at home, and have no places: nobody looks. */
static void no_places(const void *argument)
{
	struct dsm_engine_params p;
	struct dsm_engine *engine;
	char text[DSM_ENGINE_TEXT] = "";

	(void)argument;
	begin_running(0);
	p = params_of(&node[0]);
	p.where = p.places = NULL;
	CHECK(!dsm_engine_create(&p, &engine, text), "%s", text);
	dsm_engine_tick(engine);
	CHECK(dsm_engine_next(engine) == UINT64_MAX, "it sleeps");
	node[0].xen.others = 1;
	dsm_engine_follow(engine);
	dsm_engine_run(engine);
	CHECK(!dsm_engine_is_paused(engine) && !dsm_engine_follows(engine, text), "%s", text);
	dsm_engine_destroy(engine);
	end();
}

#define PAUSE(n) { .type = DSM_VCPU_PAUSE, .flags = n }
#define PAUSED(n) { .type = DSM_VCPU_PAUSED, .flags = n }

static void lies(const void *argument)
{
	static const struct {
		struct dsm_vcpu_msg msg;
		unsigned int from, to;
		bool paused;
		const char *words;
	} table[] = {
		{ PAUSE(1), 1, 0, false, "only the home says so" },
		{ PAUSE(1), 1, 2, false, "only the home says so" },
		{ PAUSE(0), 2, 1, true, "only the home says so" },
		{ PAUSE(0), 0, 1, false, "not in this state" },
		{ PAUSE(1), 0, 1, true, "not in this state" },
		{ PAUSE(2), 0, 1, false, "flags" },
		{ PAUSED(1), 1, 0, false, "nobody waits for" },
		{ PAUSED(1), 1, 0, true, "nobody waits for" },
		{ PAUSED(0), 2, 0, false, "nobody waits for" },
		{ PAUSED(0), 0, 1, false, "nobody waits for" },
		{ PAUSED(1), 2, 1, true, "nobody waits for" },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < NR(table); i++) {
		begin_running(0);
		if (table[i].paused) {
			operator_says(true);
			ask();
			settle();
		}
		lie(table[i].from, table[i].to, table[i].msg, table[i].words);
		end();
	}
	/* The wrong answer, and one too many. */
	begin_running(0);
	operator_says(true);
	ask();
	look(0);
	lie(1, 0, (struct dsm_vcpu_msg)PAUSED(0), "nobody waits for");
	end();
	begin_running(0);
	operator_says(true);
	ask();
	look(0);
	lie(1, 0, (struct dsm_vcpu_msg)PAUSED(1), NULL);
	lie(1, 0, (struct dsm_vcpu_msg)PAUSED(1), "nobody waits for");
	end();
	/* Before it is ready. */
	begin_running(0);
	dsm_engine_hold_vcpus(node[1].engine, true);
	lie(0, 1, (struct dsm_vcpu_msg)PAUSE(1), "not in this state");
	CHECK(!node[1].xen.pauses, "it was done");
	end();
}

/* Pauses, moves and messages in any order: at the end all do what Xen of the home does. */
static void chance(const void *argument)
{
	unsigned int n, paused = 0, moves = 0;
	char text[DSM_ENGINE_TEXT];

	(void)argument;
	begin_placed(1, 1, 2);
	pass(0);
	for (n = 0; n < 40000; n++) {
		uint16_t v = (uint16_t)(1 + dice_below(3));

		switch (dice_below(10)) {
		case 0:
			if (node[0].xen.others < 3)
				operator_says(true);
			break;
		case 1:
			if (node[0].xen.others)
				operator_says(false);
			break;
		case 2:
			dsm_engine_follow(node[0].engine);
			break;
		case 3:
			if (!dsm_engine_is_placing(node[0].engine))
				dsm_engine_place(node[0].engine, dice_below(2) ? 0 : places[v], &v, 1, text);
			break;
		case 4:
			pass(dice_below(50) * MS);
			break;
		case 5:
		case 6:
			look((unsigned int)dice_below(HOSTS));
			break;
		default:
			deliver((unsigned int)dice_below(HOSTS), (unsigned int)dice_below(HOSTS));
		}
		if (n % 100 != 99)
			continue;
		settle();
		pass(1000 * MS);
		settle();
		all_are(node[0].xen.others != 0, "round");
		paused += node[0].xen.others != 0;
		moves += node[0].xen.places;
		node[0].xen.places = 0;
	}
	CHECK(paused > 100 && paused < 380 && moves > 100, "%u rounds, %u moves", paused, moves);
	end();
}

static const struct test_case cases[] = {
	{ "pause: both ways", both_ways, NULL },
	{ "pause: unasked", unasked, NULL },
	{ "pause: twice", twice, NULL },
	{ "pause: a slow host", a_slow_host, NULL },
	{ "pause: before it runs", before_it_runs, NULL },
	{ "pause: and places", and_places, NULL },
	{ "pause: hosts that go", hosts_that_go, NULL },
	{ "pause: a host is lost", a_host_is_lost, NULL },
	{ "pause: for long", for_long, NULL },
	{ "pause: an older host", an_older_host, NULL },
	{ "pause: somebody else", somebody_else, NULL },
	{ "pause: no places", no_places, NULL },
	{ "pause: lies", lies, NULL },
	{ "pause: chance", chance, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
