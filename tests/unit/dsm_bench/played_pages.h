/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages of a guest whose CPUs are on several hosts, and the time there, played: for
 * dsm_litmus, each of whose threads is a host then, or a CPU of one of PLAYED_HOSTS, by turns.
 * What one CPU of a host fetches is there for the others at the same time.
 *
 * Each thread has a clock, in ns, that only what it does moves: looking at it, waiting,
 * and a page that it does not have, which takes PLAYED_US, and is first kept as long by
 * who has it.  Of all threads the one whose clock is least goes on, so that the same words
 * do the same on any machine, whatever else runs there.  Hosts begin together.  A thread
 * that is no host has the clock of the machine until there was one, and then the latest.
 *
 * With PLAYED_TICK_US: so often each has something else to do, for PLAYED_BUSY_US; host 0
 * for twice as long.
 *
 * No page is taken away in fact, so what is read and written stays right.  With PLAYED_LATE_US
 * it is not meant to: who writes does not wait until others' copies have gone, which are read
 * for so long.
 *
 * Locking: played_lock, over everything but a thread's own number.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define PLAYED_PAGES	64
#define PLAYED_THREADS	16
#define PLAYED_TRANSFER	(PLAYED_US * 1000ull)
#define PLAYED_LOOK	20	/* ns: the least that anything takes */
#ifndef PLAYED_HOSTS
#define PLAYED_HOSTS	PLAYED_THREADS
#endif
#ifndef PLAYED_TICK_US
#define PLAYED_TICK_US	0
#define PLAYED_BUSY_US	0
#endif
#ifndef PLAYED_LATE_US
#define PLAYED_LATE_US	0
#endif

static struct played {
	uintptr_t page;
	unsigned int may_read;
	bool writable;
	uint64_t kept;		/* until then, by who has it */
	unsigned int reader, writer;	/* to whom it is on its way, */
	uint64_t comes;		/* the last of them at this time */
	unsigned int stale;	/* who has a copy still, */
	uint64_t gone;		/* until then */
} played[PLAYED_PAGES];
static struct { uint64_t clock, tick; bool runs; } played_host[PLAYED_THREADS];
static pthread_mutex_t played_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t played_turn = PTHREAD_COND_INITIALIZER;
static uint64_t played_last;	/* the latest time at which a host began or ended */
static _Thread_local unsigned int played_number = PLAYED_THREADS;

/* With the lock: until it is our turn. */
static inline void played_order(void)
{
	uint64_t *clock = &played_host[played_number].clock, *tick = &played_host[played_number].tick;
	unsigned int i;

	/* Not all at one time. */
	if (!*tick)
		*tick = *clock + (3 + 7 * played_number) * PLAYED_TICK_US * 100ull;
	for (; PLAYED_TICK_US && *clock >= *tick; *tick += PLAYED_TICK_US * 1000ull)
		*clock += PLAYED_BUSY_US * (played_number ? 1000ull : 2000ull);
	pthread_cond_broadcast(&played_turn);
	for (i = 0; i < PLAYED_THREADS; i++)
		while (played_host[i].runs && (played_host[i].clock < played_host[played_number].clock ||
		       (played_host[i].clock == played_host[played_number].clock && i < played_number))) {
			pthread_cond_wait(&played_turn, &played_lock);
			i = 0;
		}
}

static inline uint64_t played_now(void)
{
	struct timespec now;
	uint64_t clock;

	if (played_number == PLAYED_THREADS) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		return played_last ? played_last : (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
	}
	pthread_mutex_lock(&played_lock);
	played_host[played_number].clock += PLAYED_LOOK;
	played_order();
	clock = played_host[played_number].clock;
	pthread_mutex_unlock(&played_lock);
	return clock;
}

static inline void played_until(uint64_t time)
{
	pthread_mutex_lock(&played_lock);
	if (played_host[played_number].clock < time)
		played_host[played_number].clock = time;
	played_order();
	pthread_mutex_unlock(&played_lock);
}

/* Return: whether what is read there is what was there before. */
static inline bool played_page(const void *word, size_t size, bool write)
{
	uint64_t *clock = &played_host[played_number].clock;
	unsigned int own = 1u << played_number % PLAYED_HOSTS;
	bool stale = false;

	pthread_mutex_lock(&played_lock);
	for (uintptr_t page = (uintptr_t)word / 4096; page <= ((uintptr_t)word + size - 1) / 4096; page++) {
		struct played *found = played;

		while (found->page && found->page != page)
			if (++found == played + PLAYED_PAGES)
				abort();
		found->page = page;
		*clock += PLAYED_LOOK;
		played_order();
		if (!write && found->stale & own && *clock < found->gone) {
			stale = true;
			continue;
		}
		if (write ? found->may_read == own && found->writable : found->may_read & own)
			continue;
		/* Another CPU of this host waits for it. */
		if ((found->writer | (write ? 0 : found->reader)) & own && *clock < found->comes) {
			*clock = found->comes;
			played_order();
			page--;
			continue;
		}
		*clock = (*clock > found->kept ? *clock : found->kept) + PLAYED_TRANSFER;
		*(write ? &found->writer : &found->reader) |= own;
		found->comes = *clock;
		played_order();
		*(write ? &found->writer : &found->reader) &= ~own;
		if (write) {
			found->stale = found->may_read & ~own;
			found->gone = *clock + PLAYED_LATE_US * 1000ull;
		}
		found->may_read = write ? own : found->may_read | own;
		found->writable = write;
		found->kept = *clock + PLAYED_TRANSFER;
	}
	pthread_mutex_unlock(&played_lock);
	return stale;
}

/* A thread begins, as a host, when all @threads do, at one time. */
static inline void played_begins(unsigned int number, unsigned int threads)
{
	static unsigned int arrived, turn;
	uint64_t begins = played_now();
	unsigned int i, now;

	pthread_mutex_lock(&played_lock);
	played_number = number;
	if (played_last < begins)
		played_last = begins;
	now = turn;
	if (++arrived == threads) {
		arrived = 0;
		turn++;
		for (i = 0; i < threads; i++) {
			played_host[i].clock = played_last;
			played_host[i].runs = true;
		}
	}
	pthread_cond_broadcast(&played_turn);
	while (turn == now)
		pthread_cond_wait(&played_turn, &played_lock);
	pthread_mutex_unlock(&played_lock);
}

static inline void played_ends(void)
{
	pthread_mutex_lock(&played_lock);
	played_host[played_number].runs = false;
	if (played_last < played_host[played_number].clock)
		played_last = played_host[played_number].clock;
	pthread_cond_broadcast(&played_turn);
	pthread_mutex_unlock(&played_lock);
}
