// SPDX-License-Identifier: GPL-2.0
/*
 * To look or to sleep: by a played clock, and with a real loop; and what can be
 * set while the VM runs.
 */
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "tune.h"

#define US	1000ull

static const struct {
	const char *name;
	uint64_t wait_us, poll_us;
	bool asking, came;
	unsigned int looks;		/* 10 us each, before it sleeps */
} lengths[] = {
	{ "off", 0, 0, true, true, 0 },
	{ "nothing came yet", 100, 100, true, false, 0 },
	{ "a requester", 100, 0, true, true, 10 },
	{ "a requester that has its answer", 100, 0, false, true, 0 },
	{ "a responder", 0, 200, false, true, 20 },
	{ "a responder that asks", 0, 200, true, true, 20 },
	{ "both, asking", 300, 200, true, true, 30 },
	{ "both, not asking", 300, 200, false, true, 20 },
};

static bool finds_nothing(void *context)
{
	(void)context;
	return false;
}

static void looks(const void *argument)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct dsm_poll poll;
	unsigned int i, n;
	uint64_t clock;

	(void)argument;
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		dsm_poll_init(&poll, loop, lengths[i].wait_us * US, lengths[i].poll_us * US,
			      finds_nothing, NULL);
		clock = 1000000;
		if (lengths[i].came)
			dsm_poll_event(&poll, clock);
		for (n = 0; n < 100; n++, clock += 10 * US) {
			dsm_poll_before_sleep(&poll, clock, lengths[i].asking);
			if (!ev_is_active(&poll.idle))
				break;
		}
		CHECK(n == lengths[i].looks && poll.counts.looks == n && poll.counts.sleeps == 1 &&
		      !poll.counts.found, "%s: %u looks", lengths[i].name, n);
		CHECK(dsm_poll_is_on(&poll) == (lengths[i].wait_us || lengths[i].poll_us), "on");
		/* It sleeps until something comes. */
		dsm_poll_before_sleep(&poll, clock + 1, lengths[i].asking);
		CHECK(!ev_is_active(&poll.idle), "%s: it wakes up by itself", lengths[i].name);
		dsm_poll_stop(&poll);
	}
	ev_loop_destroy(loop);
}

static struct dsm_poll looping;
static uint64_t ticks;
static unsigned int came, asked, at_look;

/* The look with that number finds something, as if it had come without a descriptor. */
static bool look_by_number(void *context)
{
	CHECK(context == &asked, "its context");
	if (++asked != at_look)
		return false;
	dsm_poll_event(&looping, ticks);
	return true;
}

static void on_prepare(struct ev_loop *loop, ev_prepare *prepare, int events)
{
	(void)loop;
	(void)prepare;
	(void)events;
	dsm_poll_before_sleep(&looping, ticks += 10 * US, false);
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	char byte;

	(void)loop;
	(void)events;
	CHECK(read(io->fd, &byte, 1) == 1, "a byte");
	came++;
	dsm_poll_event(&looping, ticks);
}

/* The loop itself: it does not wait while it looks, and sees what comes. */
static void loops(const void *argument)
{
	struct ev_loop *loop = ev_loop_new(0);
	ev_prepare prepare;
	ev_io io;
	int ends[2];
	unsigned int i;

	(void)argument;
	CHECK(!pipe(ends), "a pipe");
	alarm(20);
	ticks = 1000000;
	dsm_poll_init(&looping, loop, 0, 1000 * US, look_by_number, &asked);
	ev_prepare_init(&prepare, on_prepare);
	ev_prepare_start(loop, &prepare);
	ev_io_init(&io, on_readable, ends[0], EV_READ);
	ev_io_start(loop, &io);
	dsm_poll_event(&looping, ticks);
	/* 99 times without waiting: it would wait for ever. */
	for (i = 0; i < 50; i++)
		ev_run(loop, EVRUN_ONCE);
	CHECK(looping.counts.looks == 50 && !looping.counts.sleeps, "%llu looks",
	      (unsigned long long)looping.counts.looks);
	CHECK(write(ends[1], "a", 1) == 1, "a byte");
	ev_run(loop, EVRUN_ONCE);
	CHECK(came == 1 && looping.counts.found == 1, "found");
	/* It looks for as long again, and then would sleep. */
	for (i = 0; i < 99; i++)
		ev_run(loop, EVRUN_ONCE);
	CHECK(looping.counts.looks == 150 && !looping.counts.sleeps, "%llu looks",
	      (unsigned long long)looping.counts.looks);
	CHECK(write(ends[1], "b", 1) == 1, "a byte");
	ev_run(loop, EVRUN_ONCE);
	CHECK(came == 2 && looping.counts.found == 1 && looping.counts.sleeps == 1,
	      "%llu sleeps", (unsigned long long)looping.counts.sleeps);
	/* Between two turns it asks so often, and no more when something was there. */
	asked = 0;
	ev_run(loop, EVRUN_ONCE);
	CHECK(asked == DSM_POLL_LOOKS, "%u times", asked);
	at_look = DSM_POLL_LOOKS + 3;
	ev_run(loop, EVRUN_ONCE);
	CHECK(asked == at_look && looping.counts.found == 2, "%u times", asked);
	dsm_poll_stop(&looping);
	ev_prepare_stop(loop, &prepare);
	ev_io_stop(loop, &io);
	ev_loop_destroy(loop);
	close(ends[0]);
	close(ends[1]);
}

/* The engine is played, too: only these functions of it are needed. */
static unsigned int prefetch;
static bool clear_hint, class_u, profile;

void dsm_engine_set_profile(struct dsm_engine *engine, bool on)
{
	(void)engine;
	profile = on;
}

void dsm_engine_set_clear_hint(struct dsm_engine *engine, bool on)
{
	(void)engine;
	clear_hint = on;
}

void dsm_engine_set_class_u(struct dsm_engine *engine, bool on)
{
	(void)engine;
	class_u = on;
}

int dsm_engine_set_prefetch(struct dsm_engine *engine, unsigned int pages)
{
	(void)engine;
	prefetch = pages;
	return 0;
}

static void tune(const void *argument)
{
	static const struct {
		const char *word, *wrong;
		uint64_t wait_us, poll_us;
		unsigned int prefetch;
		bool clear_hint;
	} words[] = {
		{ "prefetch=32", NULL, 7, 8, 32, false },
		{ "prefetch=0", NULL, 7, 8, 0, false },
		{ "prefetch=64", NULL, 7, 8, 64, false },
		{ "prefetch=65", "prefetch: a number, 0 to 64", 7, 8, 9, false },
		{ "prefetch=", "prefetch: a number", 7, 8, 9, false },
		{ "prefetch=-1", "prefetch: a number", 7, 8, 9, false },
		{ "prefetch=1 ", "prefetch: a number", 7, 8, 9, false },
		{ "prefetch=99999999999999999999", "prefetch: a number", 7, 8, 9, false },
		{ "clear_hint=1", NULL, 7, 8, 9, true },
		{ "clear_hint=0", NULL, 7, 8, 9, false },
		{ "clear_hint=2", "clear_hint: a number, 0 to 1", 7, 8, 9, false },
		{ "class_u=2", "class_u: a number, 0 to 1", 7, 8, 9, false },
		{ "class_u=1", NULL, 7, 8, 9, false },
		{ "profile=2", "profile: a number, 0 to 1", 7, 8, 9, false },
		{ "busy_wait_us=50", NULL, 50, 8, 9, false },
		{ "busy_wait_us=100000", NULL, 100000, 8, 9, false },
		{ "busy_wait_us=100001", "busy_wait_us: a number, 0 to 100000", 7, 8, 9, false },
		{ "poll_us=0", NULL, 7, 0, 9, false },
		{ "poll_us=0x1", "poll_us: a number", 7, 8, 9, false },
		{ "poll_u=1", "want prefetch=N", 7, 8, 9, false },
		{ "poll_us", "want prefetch=N", 7, 8, 9, false },
		{ "=1", "want prefetch=N", 7, 8, 9, false },
		{ "", "want prefetch=N", 7, 8, 9, false },
	};
	struct dsm_poll poll;
	unsigned int i;
	char *text;
	bool set;

	(void)argument;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		poll = (struct dsm_poll){ .wait_ns = 7 * US, .poll_ns = 8 * US };
		prefetch = 9;
		clear_hint = !strcmp(words[i].word, "clear_hint=0");
		set = dsm_tune(NULL, &poll, words[i].word, &text);
		CHECK(set == !words[i].wrong && (set ? !text : text && strstr(text, words[i].wrong)),
		      "'%s': %s", words[i].word, text ? text : "set");
		CHECK(poll.wait_ns == words[i].wait_us * US && poll.poll_ns == words[i].poll_us * US &&
		      prefetch == words[i].prefetch && clear_hint == words[i].clear_hint, "'%s'", words[i].word);
		free(text);
	}
	CHECK(class_u, "class_u");
	CHECK(dsm_tune(NULL, &poll, "class_u=0", &text) && !class_u, "and off");
}

static void tune_profile(const void *argument)
{
	struct dsm_poll poll = { 0 };
	char *text;

	(void)argument;
	CHECK(dsm_tune(NULL, &poll, "profile=1", &text) && profile, "on");
	CHECK(dsm_tune(NULL, &poll, "profile=0", &text) && !profile, "off");
}

static const struct test_case cases[] = {
	{ "poll: how long", looks, NULL },
	{ "poll: the loop", loops, NULL },
	{ "poll: set", tune, NULL },
	{ "poll: set profile", tune_profile, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
