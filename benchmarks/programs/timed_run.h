/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program of the overhead's measurement: its class, its clock, what it says.
 *
 * Each of them computes something whose right result is known, in iterations
 * that take about the same time, and says as JSON, one object a line, flushed:
 *
 *   {"event":"start","program":"npb_cg","class":"S","pid":..,"bytes":..}
 *   {"event":"iteration","n":..,"t":..,"ms":..,"threads":..,"user_s":..,
 *    "system_s":..}
 *   {"event":"check","what":"zeta","got":"..","wanted":"..","right":true}
 *   {"event":"result","verified":true,"rounds":..,"iterations":..,
 *    "seconds":..,"user_s":..,"system_s":..,"user_ticks_s":..,
 *    "system_ticks_s":..,"gap_ms":..,"minor_faults":..,"major_faults":..,
 *    "bytes":..}
 *
 * t is CLOCK_MONOTONIC at the end of the iteration, in seconds; ms since the end
 * of the one before, with whatever held the program up in between; threads the
 * size of the team.  user_s and system_s are the CPU time of all its threads,
 * and the faults theirs, in the iterations until then, without preparation and
 * verification.  Their sum is by the scheduler's clock, and ticks part it.
 * user_ticks_s and system_ticks_s are the same by ticks alone, as /proc/stat
 * counts: without those that were missed, and without what a hypervisor stole.
 * gap_ms is the longest time between two marks: the ends of iterations, and of
 * equal steps within them.  bytes is the memory that the iterations touch.
 *
 * A round is the whole computation with its verification: --rounds=N makes a run
 * as long as one wants it, since an iteration's number is part of what is known.
 *
 * Exit status: 0 all results are right, 1 one is not, 2 usage or no memory.
 *
 * Locking: none.  The first thread calls all of this outside of parallel
 * regions, but timed_team(), which it calls in one.
 */
#ifndef TIMED_RUN_H
#define TIMED_RUN_H

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "words.h"

#define TIMED_ALIGN	(2UL << 20)	/* so that huge pages can be used */
#define TIMED_COLOURS	30
#define TIMED_COLOUR	(17UL << 12)	/* TIMED_COLOURS of them fit into TIMED_ALIGN */
#define MAX_ROUNDS	1000000

/*
 * This process's time by ticks, all and in user mode: Linux's CPUCLOCK_PROF and
 * CPUCLOCK_VIRT, of process 0.  libc has no names for them.
 */
#define TIMED_TICKS		((clockid_t)-8)
#define TIMED_USER_TICKS	((clockid_t)-7)

/* CPU time and faults of the process, or of some part of its life. */
struct timed_usage {
	double user_s, system_s;
	long minor, major;
};

/* The same by ticks, see TIMED_TICKS. */
struct timed_ticks {
	double user_s, system_s;
};

struct timed_run {
	const char *program;
	char class;
	unsigned long rounds;
	uint64_t bytes;

	int threads;			/* of the last team */
	unsigned long iterations;
	double began, marked, iterated;	/* this round, mark, iteration */
	double seconds, gap_s;
	struct timed_usage spent, before;
	struct timed_ticks ticked, ticks_before;
	bool wrong;
};

static inline double timed_clock(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		die("no clock %d: %s", clock, strerror(errno));
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static inline double timed_now(void)
{
	return timed_clock(CLOCK_MONOTONIC);
}

static inline struct timed_usage timed_usage(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (struct timed_usage){
		.user_s = r.ru_utime.tv_sec + r.ru_utime.tv_usec / 1e6,
		.system_s = r.ru_stime.tv_sec + r.ru_stime.tv_usec / 1e6,
		.minor = r.ru_minflt,
		.major = r.ru_majflt,
	};
}

/*
 * No tick in user mode comes in between: it would pass for one in the kernel.
 * A Linux that counts without ticks is never still, and what is missed is short.
 */
static inline struct timed_ticks timed_ticks(void)
{
	double user_s, all_s;
	int tries = 10;

	do {
		user_s = timed_clock(TIMED_USER_TICKS);
		all_s = timed_clock(TIMED_TICKS);
	} while (timed_clock(TIMED_USER_TICKS) != user_s && --tries);
	return (struct timed_ticks){
		.user_s = user_s,
		.system_s = all_s - user_s,
	};
}

static inline void timed_help(FILE *to, const struct timed_run *run,
			      const char *classes, const char *about)
{
	fprintf(to,
		"Usage: %s --class=X [--rounds=N]\n"
		"%s\n"
		"  --class=X   size of the problem: one of %s\n"
		"  --rounds=N  compute and verify it N times, 1 to %d (1)\n"
		"  --help      this text\n",
		run->program, about, classes, MAX_ROUNDS);
}

/* Reads the command line; the program ends if it makes no sense, or is --help. */
static inline void timed_options(struct timed_run *run, int argc, char **argv,
				 const char *program, const char *classes,
				 const char *about)
{
	static const struct option options[] = {
		{ "class", required_argument, NULL, 'c' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*run = (struct timed_run){ .program = program, .rounds = 1 };
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			if (strlen(optarg) != 1 || !strchr(classes, *optarg))
				die("--class=%s: want one of %s", optarg,
				    classes);
			run->class = *optarg;
			break;
		case 'r':
			run->rounds = number("rounds", optarg, 1, MAX_ROUNDS);
			break;
		case 'h':
			timed_help(stdout, run, classes, about);
			exit(0);
		default:
			timed_help(stderr, run, classes, about);
			exit(2);
		}
	}
	if (!run->class || optind != argc) {
		timed_help(stderr, run, classes, about);
		exit(2);
	}
}

/*
 * Memory for @count things of @size bytes, not touched yet.  timed_free() gives
 * it back.  Called by one thread at a time.
 *
 * Equal elements of two arrays are never at the same place of a direct-mapped
 * cache or TLB of 64 pages or more, wherever the arrays are: each begins some
 * pages later in its huge page than the one before.  Else arrays that are read
 * together would take each other's place as the thread stacks between them, and
 * so the team's first size, will have it.
 */
static inline void *timed_memory(size_t count, size_t size)
{
	static unsigned int nr;
	size_t colour = nr++ % TIMED_COLOURS * TIMED_COLOUR;
	void *p;

	if (__builtin_mul_overflow(count, size, &size) ||
	    __builtin_add_overflow(size, colour, &size) ||
	    posix_memalign(&p, TIMED_ALIGN, size))
		die("no memory for %zu things", count);
	return (char *)p + colour;
}

static inline void timed_free(void *p)
{
	free((void *)((uintptr_t)p & ~(TIMED_ALIGN - 1)));
}

/* The first line; the iterations will touch @bytes. */
static inline void timed_start(struct timed_run *run, uint64_t bytes)
{
	run->bytes = bytes;
	printf("{\"event\":\"start\",\"program\":\"%s\",\"class\":\"%c\","
	       "\"pid\":%d,\"bytes\":%" PRIu64 "}\n",
	       run->program, run->class, (int)getpid(), bytes);
	fflush(stdout);
}

/* In a parallel region, by all its threads: its size is that of the team. */
static inline void timed_team(struct timed_run *run)
{
	if (omp_get_thread_num() == 0)
		run->threads = omp_get_num_threads();
}

/* A round is prepared: its first iteration begins. */
static inline void timed_round(struct timed_run *run)
{
	run->ticks_before = timed_ticks();
	run->before = timed_usage();
	run->began = run->marked = run->iterated = timed_now();
}

/* A step has ended that takes as long as others: for the longest gap. */
static inline void timed_mark(struct timed_run *run)
{
	double t = timed_now();

	run->gap_s = fmax(run->gap_s, t - run->marked);
	run->marked = t;
}

/* An iteration has ended, and the next one begins. */
static inline void timed_iteration(struct timed_run *run)
{
	struct timed_usage now = timed_usage();
	double ms;

	timed_mark(run);
	ms = (run->marked - run->iterated) * 1e3;
	run->iterated = run->marked;
	run->iterations++;
	printf("{\"event\":\"iteration\",\"n\":%lu,\"t\":%.6f,\"ms\":%.3f,"
	       "\"threads\":%d,\"user_s\":%.6f,\"system_s\":%.6f}\n",
	       run->iterations, run->marked, ms, run->threads,
	       run->spent.user_s + now.user_s - run->before.user_s,
	       run->spent.system_s + now.system_s - run->before.system_s);
	fflush(stdout);
}

/* The last iteration of a round has ended; what follows is not timed. */
static inline void timed_rest(struct timed_run *run)
{
	struct timed_usage now = timed_usage();
	struct timed_ticks ticks = timed_ticks();

	run->spent.user_s += now.user_s - run->before.user_s;
	run->spent.system_s += now.system_s - run->before.system_s;
	run->spent.minor += now.minor - run->before.minor;
	run->spent.major += now.major - run->before.major;
	run->ticked.user_s += ticks.user_s - run->ticks_before.user_s;
	run->ticked.system_s += ticks.system_s - run->ticks_before.system_s;
	run->seconds += run->iterated - run->began;
}

/* Says whether something is as it should be, and keeps it in mind. */
static inline void timed_check(struct timed_run *run, const char *what,
			       double got, double wanted, bool right)
{
	printf("{\"event\":\"check\",\"what\":\"%s\",\"got\":\"%.13e\","
	       "\"wanted\":\"%.13e\",\"right\":%s}\n",
	       what, got, wanted, right ? "true" : "false");
	run->wrong |= !right;
}

/* The same of a number that may differ by @epsilon of itself; NaN does not pass. */
static inline void timed_check_near(struct timed_run *run, const char *what,
				    double got, double wanted, double epsilon)
{
	timed_check(run, what, got, wanted,
		    fabs((got - wanted) / wanted) <= epsilon);
}

/* The last line.  Return: the program's exit status. */
static inline int timed_result(const struct timed_run *run)
{
	printf("{\"event\":\"result\",\"verified\":%s,\"rounds\":%lu,"
	       "\"iterations\":%lu,\"seconds\":%.6f,\"user_s\":%.6f,"
	       "\"system_s\":%.6f,\"user_ticks_s\":%.6f,"
	       "\"system_ticks_s\":%.6f,\"gap_ms\":%.3f,"
	       "\"minor_faults\":%ld,\"major_faults\":%ld,"
	       "\"bytes\":%" PRIu64 "}\n",
	       run->wrong ? "false" : "true", run->rounds, run->iterations,
	       run->seconds, run->spent.user_s, run->spent.system_s,
	       run->ticked.user_s, run->ticked.system_s,
	       run->gap_s * 1e3, run->spent.minor, run->spent.major,
	       run->bytes);
	fflush(stdout);
	return run->wrong ? 1 : 0;
}

#endif
