/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ticks_test TIMES: three rounds of an iteration each, by played clocks.  In an
 * iteration, the program has 3 s in user mode and 2 s in the kernel by ticks;
 * between two, 100 and 50.  The first TIMES that a round reads the clocks, a
 * tick in user mode comes meanwhile, of 10 s.
 */
#define _GNU_SOURCE

#include <time.h>

static double user_s, system_s;
static int late;

static int played(clockid_t clock, struct timespec *ts)
{
	double s = 0;

	if (clock == -7) {
		s = user_s;
	} else if (clock == -8) {
		if (late-- > 0)
			user_s += 10;
		s = user_s + system_s;
	}
	ts->tv_sec = s;
	ts->tv_nsec = 0;
	return clock != -7 && clock != -8 && clock != CLOCK_MONOTONIC;
}

#define clock_gettime played
#include "timed_run.h"

int main(int argc, char **argv)
{
	struct timed_run run = {
		.program = "ticks_test",
		.class = 'S',
		.rounds = 3,
	};

	if (argc != 2)
		return 2;
	timed_start(&run, 1);
	for (unsigned long round = 0; round < run.rounds; round++) {
		late = atoi(argv[1]);
		timed_round(&run);
		user_s += 3;
		system_s += 2;
		timed_iteration(&run);
		timed_rest(&run);
		user_s += 100;
		system_s += 50;
	}
	return timed_result(&run);
}
