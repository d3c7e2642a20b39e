/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads, each on a CPU of its own, that take turns: in one, all do something at once; then all
 * wait, thread 0 looks at what came of it and says whether there is another one.
 *
 * They wait by a word in memory that they share, and not in the kernel: whose CPUs are on several
 * hosts fetch a page or two for it, and none of the kernel's.
 *
 * Locking: struct turns is written before its threads begin; then by who comes to a barrier, and
 * by thread 0 while all others wait.
 */
#ifndef TURNS_H
#define TURNS_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <x86intrin.h>

#include "words.h"

#define TURNS_THREADS	16u	/* at most */
#define TURNS_SPINS	4096u	/* before another one may have the CPU */

static struct turns {
	_Alignas(4096) _Atomic unsigned int arrived;
	_Atomic unsigned int turn;
	_Atomic bool ends;
	unsigned int threads;
	const long *cpus;
	void (*each)(unsigned int thread);
	bool (*look)(void);
} turns;

/*
 * Until all threads have come.  gcc 14 sees that this writes nothing but struct turns, forgets that
 * it is a barrier, and reads before it what thread 0 writes meanwhile: so it must not look into it.
 */
static __attribute__((noipa)) void meet(void)
{
	unsigned int turn = turns.turn;

	if (++turns.arrived == turns.threads) {
		turns.arrived = 0;
		turns.turn = turn + 1;
		return;
	}
	for (unsigned int i = 1; turns.turn == turn; i++) {
		_mm_pause();
		if (!(i % TURNS_SPINS))
			sched_yield();
	}
}

static void *turns_thread(void *argument)
{
	unsigned int thread = (unsigned int)(uintptr_t)argument;
	long cpu = turns.cpus[thread];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("CPU %ld: %s", cpu, strerror(errno));
	for (meet(); !turns.ends; meet()) {
		turns.each(thread);
		meet();
		if (!thread)
			turns.ends = !turns.look();
	}
	return NULL;
}

/*
 * So many threads, on these CPUs, take turns until @look returns false, once at least.  @each: what
 * a thread, of that number from 0, does in a turn.  The program ends if there is no such CPU.
 */
static inline void take_turns(unsigned int threads, const long *cpus, void (*each)(unsigned int thread),
			      bool (*look)(void))
{
	pthread_t ids[TURNS_THREADS];

	turns.threads = threads;
	turns.cpus = cpus;
	turns.each = each;
	turns.look = look;
	turns.ends = false;
	for (unsigned int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, turns_thread, (void *)(uintptr_t)i))
			die("thread %u can't be made", i);
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
}

#endif
