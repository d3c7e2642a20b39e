// SPDX-License-Identifier: GPL-2.0
/*
 * The node state machine: the legal transitions, written down here a second
 * time from the picture in docs/xenstore-paths.md, and every other pair of
 * state and event, which has to be refused with a name of its own.
 */
#include <errno.h>
#include <stdbool.h>

#include "case.h"
#include "state.h"

struct legal {
	int state, event, next;
};

#define LEGAL(s, e, n)	{ ELASTIC_##s, ELASTIC_EV_##e, ELASTIC_##n }

static const struct legal legal[] = {
	LEGAL(OFFLINE, GROW, GROWING),		/* attach */
	LEGAL(GROWING, DONE, ONLINE),
	LEGAL(GROWING, UNDONE, ONLINE),		/* a resize that failed */
	LEGAL(GROWING, DRAIN, DRAINING),	/* an attach that failed, or target 0 */
	LEGAL(ONLINE, GROW, GROWING),		/* resize up */
	LEGAL(ONLINE, SHRINK, ONLINE),		/* resize down */
	LEGAL(ONLINE, DONE, ONLINE),
	LEGAL(ONLINE, DRAIN, DRAINING),		/* detach */
	LEGAL(DRAINING, EMPTY, OFFLINE),
	LEGAL(DRAINING, STUCK, RESIDUAL),
	LEGAL(DRAINING, GROW, GROWING),		/* a detach that is called off */
	LEGAL(RESIDUAL, DRAIN, DRAINING),	/* once more */
	LEGAL(RESIDUAL, GROW, GROWING),		/* attach what is half there */
};

static const struct legal *find(int state, int event)
{
	size_t i;

	for (i = 0; i < sizeof(legal) / sizeof(legal[0]); i++)
		if (legal[i].state == state && legal[i].event == event)
			return &legal[i];
	return NULL;
}

static void one_transition(const void *argument)
{
	const int *pair = argument;
	const struct legal *l = find(pair[0], pair[1]);
	const char *why = NULL;
	int next = elastic_state_next(pair[0], pair[1], &why);

	if (l) {
		CHECK(next == l->next, "leads to %s, not to %s",
		      elastic_state_name(next), elastic_state_name(l->next));
		CHECK(!why, "a legal transition has the mistake '%s'", why);
		return;
	}
	CHECK(next == -EINVAL, "leads to %s", elastic_state_name(next));
	CHECK(why && *why, "the mistake has no name");
	CHECK(elastic_state_next(pair[0], pair[1], NULL) == -EINVAL,
	      "differs without a place for the name");
}

static void mistakes_differ(const void *argument)
{
	const char *names[ELASTIC_NR_STATES * ELASTIC_NR_EVENTS];
	int s, e, n = 0, i;
	const char *why;

	for (s = 0; s < ELASTIC_NR_STATES; s++) {
		for (e = 0; e < ELASTIC_NR_EVENTS; e++) {
			if (elastic_state_next(s, e, &why) >= 0)
				continue;
			for (i = 0; i < n; i++)
				CHECK(strcmp(names[i], why),
				      "'%s' names two mistakes", why);
			names[n++] = why;
		}
	}
	CHECK(n == ELASTIC_NR_STATES * ELASTIC_NR_EVENTS -
	      (int)(sizeof(legal) / sizeof(legal[0])), "%d mistakes", n);
}

static void out_of_range(const void *argument)
{
	static const int bad[][2] = {
		{ -1, 0 }, { 0, -1 }, { ELASTIC_NR_STATES, 0 },
		{ 0, ELASTIC_NR_EVENTS }, { 1 << 30, 1 << 30 },
		{ -(1 << 30), 0 },
	};
	const char *why;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why = NULL;
		CHECK(elastic_state_next(bad[i][0], bad[i][1], &why) == -EINVAL,
		      "%d, %d", bad[i][0], bad[i][1]);
		CHECK(why, "%d, %d has no name", bad[i][0], bad[i][1]);
	}
}

/* The names are part of the contract with the toolstack. */
static void names(const void *argument)
{
	static const char * const expected[] = {
		"offline", "growing", "online", "draining", "residual",
	};
	int s;

	for (s = 0; s < ELASTIC_NR_STATES; s++)
		CHECK(!strcmp(elastic_state_name(s), expected[s]), "%s",
		      elastic_state_name(s));
	CHECK(!strcmp(elastic_state_name(-1), "?"), "-1");
	CHECK(!strcmp(elastic_state_name(ELASTIC_NR_STATES), "?"), "end");
	CHECK(!strcmp(elastic_event_name(-1), "?"), "-1");
	CHECK(!strcmp(elastic_event_name(ELASTIC_NR_EVENTS), "?"), "end");
}

int main(int argc, char **argv)
{
	enum { PAIRS = ELASTIC_NR_STATES * ELASTIC_NR_EVENTS, MORE = 3 };
	static struct test_case cases[PAIRS + MORE];
	static char text[PAIRS][64];
	static int pairs[PAIRS][2];
	int i;

	for (i = 0; i < PAIRS; i++) {
		pairs[i][0] = i / ELASTIC_NR_EVENTS;
		pairs[i][1] = i % ELASTIC_NR_EVENTS;
		snprintf(text[i], sizeof(text[i]), "%s: %s is %s",
			 elastic_state_name(pairs[i][0]),
			 elastic_event_name(pairs[i][1]),
			 find(pairs[i][0], pairs[i][1]) ? "legal" : "refused");
		cases[i] = (struct test_case){ text[i], one_transition, pairs[i] };
	}
	cases[PAIRS] = (struct test_case){ "each mistake has a name of its own", mistakes_differ };
	cases[PAIRS + 1] = (struct test_case){ "states and events out of range", out_of_range };
	cases[PAIRS + 2] = (struct test_case){ "names of the contract", names };
	return run_cases(argc, argv, cases, PAIRS + MORE);
}
