/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dsm_litmus: litmus tests of the memory model of x86 (TSO), each thread on a CPU
 * of its own.  CPUs of a guest may be on several hosts, with pages that go back
 * and forth between them: nothing may be seen that one machine would not show.
 *
 * Shapes, by the names of the literature (Alglave et al., "Herding Cats", TOPLAS
 * 2014; Sewell et al., "x86-TSO", CACM 2010).  x and y are 0 at first:
 *
 *	       thread 0      thread 1      2      3      the weak outcome
 *	sb     x=1 a=y       y=1 b=x                     a=0 b=0
 *	mp     x=1 y=1       a=y b=x                     a=1 b=0
 *	lb     a=x y=1       b=y x=1                     a=1 b=1
 *	corr   x=1           a=x b=x                     a=1 b=0
 *	iriw   x=1           y=1           a=x b=y  c=y d=x   a=1 b=0 c=1 d=0
 *	22w    x=1 y=2       y=1 x=2                     x=1 y=1 in the end
 *	r      x=1 y=1       y=2 a=x                     a=0, y=2 in the end
 *	s      x=2 y=1       a=y x=1                     a=1, x=2 in the end
 *
 * Variants: plain MOV; "fence": MFENCE between the two; "lock": stores are XCHG;
 * "split": stores are XCHG and loads LOCK XADD of eight bytes that lie in two
 * cache lines, and of one cell in 32 in two pages; "nt": stores are MOVNTI, with
 * SFENCE between.  (With a number of teams that 32 is no multiple of, no cell is in two pages.)
 * TSO allows the weak outcome of sb and r for plain and nt only,
 * and no other one.
 *
 * If there are CPUs enough, several teams of threads do the shape side by side, each in cells of
 * its own of the same pages: one page on its way is then on its way for a round of each team.
 *
 * x and y are in pages of their own, with 32 cells in each.  There are four of either; a
 * turn uses each cell once, a round of a team each, and a team's next round is in the next page.
 * Then all threads meet, thread 0 looks at what each has seen and sets them to 0.  Each turn stores
 * other values for 1 and 2, so that a copy of a page with what an older one has stored is noticed;
 * one of when all was 0 is what a round may see.  A round counts as overlapped if the times (TSC) of two threads on different hosts overlap
 * in it, and as raced if one of those took --slow-us or longer as well: with a guest on
 * several hosts that is an access that waited for a page.
 *
 * Whoever has the pages would do all rounds of a turn while another one waits in its first:
 * one round of a turn would race.  So
 * - each round has its time, twice what one takes that waits for a page, and a thread
 *   begins it within half of what one takes, by chance.  (With three times as much fewer are left
 *   out, but threads that wait for their time take CPUs from who brings the pages.)  That is
 *   litmus7's "timebase" (Alglave et al., "Litmus: Running Tests Against Hardware", TACAS 2011):
 *   only TSCs are compared, so no page is shared for it;
 * - before it, thread 0 and thread 1 of the first team each take one of its two pages, by a
 *   word that is no cell, so that none of them has both and all wait in the round.  If each took
 *   its own only, as many would race, and hardly anybody would read a copy that should have gone
 *   (a unit test has such ones): so it is the other's, too, and a copy.  (corr has one page only.
 *   Between its two loads, one behind the other, that would have to go: so what a round of it
 *   between two hosts can show is a page that becomes older, and not loads in the wrong order);
 * - who comes too late for a round, since it has waited or another one had its CPU, leaves it
 *   out and joins the others where they are.  A round that a thread has left out does not count.
 * In a round nothing is touched but its cells: what else belongs to a thread is fetched before.
 *
 * Output, one JSON object a line:
 *   {"event":"shape","shape":"sb","variant":"plain","rounds":..,"overlapped":..,
 *    "raced":..,"raced_slots":..,"weak":..,"weak_allowed":true|false,"impossible":..,
 *    "outcomes":{"a=0 b=1":..,..}}
 *	raced_slots: times that at least one team raced; all that do wait for the same pages
 *	impossible: a value that nobody has stored in this turn, half of one, a store that got lost
 *   {"event":"result","rounds":..,"forbidden":..}
 *	forbidden: impossible ones, and weak ones where TSO allows none
 * Exit status: 0; 1 something forbidden; 2 usage, no such CPU or node, no memory.
 *
 * Locking: cells are what is raced for.  All else that threads share is written by
 * one of them, between two barriers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <numa.h>
#include <numaif.h>
#include <x86intrin.h>

#include "tsc.h"
#include "turns.h"
#include "words.h"

#define PAGE		4096ul
#define CELLS		32u	/* of a page */
#define PAGES		4u	/* of x, and of y; and one more, for a cell in two pages */
#define MOST_CELLS	(PAGES * CELLS)
#define STRIDE		128u	/* two cache lines a cell */
#define SPLIT		60u	/* so many bytes into it: four in each line */
#define TAKEN		(PAGE - 64)	/* a word that is no cell: it takes a page */
#define MOST_THREADS	4u	/* of a team */
#define MOST_TEAMS	8u
#define MOST_CPUS	16u
#define MOST_REGISTERS	2u
#define VALUES		3u	/* 0, 1, 2 */
#define LEAD		2u	/* rounds: until all threads have heard that a turn begins */
#define MOST_CHANGE	4u	/* so many times less has a round if none of a turn has waited; more, if few have */
#define BOTH		0x0000000100000001ull	/* a value in each half */

enum shape { SB, MP, LB, CORR, IRIW, TWO_2W, R, S, SHAPES };
enum variant { PLAIN, FENCE, LOCK, SPLIT_LOCK, NT, VARIANTS };

static const char *const variant_names[VARIANTS] = {
	"plain", "fence", "lock", "split", "nt",
};

/* What can be in x and in y in the end: a bit for each value. */
struct ends { unsigned int x, y; };

static const struct description {
	const char *name;
	unsigned int threads;
	unsigned int registers[MOST_THREADS];	/* that a thread has loaded */
	bool x_decides, y_decides;	/* what is in it in the end belongs to the outcome */
	bool store_then_load;		/* a store buffer shows the weak outcome */
	struct ends ends;
	/* A bit for each thread: it waits for nothing if its page was taken, and the others if none was. */
	unsigned int at_once;
} shapes[SHAPES] = {
	[SB]	 = { "sb",   2, { 1, 1 },	false, false, true,  { 2, 2 } },
	[MP]	 = { "mp",   2, { 0, 2 },	false, false, false, { 2, 2 } },
	[LB]	 = { "lb",   2, { 1, 1 },	false, false, false, { 2, 2 } },
	[CORR]	 = { "corr", 2, { 0, 2 },	false, false, false, { 2, 1 }, 1 },
	[IRIW]	 = { "iriw", 4, { 0, 0, 2, 2 }, false, false, false, { 2, 2 } },
	[TWO_2W] = { "22w",  2, { 0, 0 },	true,  true,  false, { 6, 6 } },
	[R]	 = { "r",    2, { 0, 1 },	false, true,  true,  { 2, 6 } },
	[S]	 = { "s",    2, { 0, 1 },	true,  false, false, { 6, 2 } },
};

/* What a thread has seen in a round.  Written by it alone. */
struct seen {
	uint64_t begun, ended;	/* TSC; 0: this round was left out */
	uint64_t value[MOST_REGISTERS];
};

/* A page of its own each, so that they are where the thread is. */
struct thread {
	struct seen seen[MOST_CELLS];
	unsigned int number;	/* in its team */
	unsigned int team;
	uint64_t random;
} __attribute__((aligned(4096)));

struct tally {
	uint64_t rounds, overlapped, raced, raced_slots, weak, impossible;
	/* By register and end, in base VALUES: at most 4 registers, or 2 and 2 ends. */
	uint64_t outcomes[VALUES * VALUES * VALUES * VALUES];
};

struct options {
	bool shape[SHAPES], variant[VARIANTS];
	long cpus[MOST_CPUS], hosts[MOST_CPUS];
	unsigned int nr_cpus, teams;
	long nodes[2];		/* of x and y; -1: any */
	uint64_t rounds, raced, slow_us, seed;
};

/* Of the run: written by thread 0 while all others wait. */
static _Alignas(4096) struct run {
	enum shape shape;
	enum variant variant;
	uint8_t *x, *y;
	unsigned int teams;
	unsigned int slots;	/* of this turn: a round of each team, in a cell of x and one of y */
	uint64_t base;		/* this turn stores base + 1 for 1, and base + 2 for 2 */
	uint64_t wait;		/* ticks: so long does a round take that waits for a page */
	uint64_t period;	/* ticks: so long has each round */
	uint64_t begins;	/* TSC: the first round of this turn */
	uint64_t ticks;		/* of the TSC, in a microsecond */
	uint64_t slow;		/* ticks */
	const struct options *options;
	struct tally tally;
	unsigned int next;	/* the shape and variant after this one: SHAPES times VARIANTS */
	uint64_t all_rounds, all_forbidden;	/* of those before */
} run;

static struct thread *threads;	/* of the first team, of the second one, ... */

static unsigned int number_of_cpu(unsigned int team, unsigned int thread)
{
	return team * shapes[run.shape].threads + thread;
}

/* --- what is tested ------------------------------------------------------- */

static inline __attribute__((always_inline))
void store(const enum variant v, void *cell, uint64_t value)
{
	switch (v) {
	case PLAIN:
	case FENCE:
		asm volatile("movq %1, %0" : "=m" (*(uint64_t *)cell) : "r" (value) : "memory");
		break;
	case LOCK:
	case SPLIT_LOCK:
		/* Locked without a prefix. */
		asm volatile("xchgq %1, %0" : "+m" (*(uint64_t *)cell), "+r" (value) : : "memory");
		break;
	case NT:
		asm volatile("movnti %1, %0" : "=m" (*(uint64_t *)cell) : "r" (value) : "memory");
		break;
	case VARIANTS:
		break;
	}
}

static inline __attribute__((always_inline))
uint64_t load(const enum variant v, void *cell)
{
	uint64_t value = 0;

	if (v == SPLIT_LOCK)
		/* Only a locked access of two cache lines is one. */
		asm volatile("lock xaddq %1, %0" : "+m" (*(uint64_t *)cell), "+r" (value) : : "memory");
	else
		asm volatile("movq %1, %0" : "=r" (value) : "m" (*(uint64_t *)cell) : "memory");
	return value;
}

static inline __attribute__((always_inline)) void between(const enum variant v)
{
	if (v == FENCE)
		asm volatile("mfence" : : : "memory");
	else if (v == NT)
		asm volatile("sfence" : : : "memory");
}

/* One round of a thread.  @v is a constant where this is inlined. */
static inline __attribute__((always_inline))
void body(enum shape shape, unsigned int thread, const enum variant v, void *x,
	  void *y, uint64_t base, uint64_t *value)
{
	const uint64_t unit = v == SPLIT_LOCK ? BOTH : 1, one = (base + 1) * unit, two = one + unit;

	switch (shape * MOST_THREADS + thread) {
	case SB * MOST_THREADS + 0:
		store(v, x, one); between(v); value[0] = load(v, y);
		break;
	case SB * MOST_THREADS + 1:
		store(v, y, one); between(v); value[0] = load(v, x);
		break;
	case MP * MOST_THREADS + 0:
		store(v, x, one); between(v); store(v, y, one);
		break;
	case MP * MOST_THREADS + 1:
		value[0] = load(v, y); between(v); value[1] = load(v, x);
		break;
	case LB * MOST_THREADS + 0:
		value[0] = load(v, x); between(v); store(v, y, one);
		break;
	case LB * MOST_THREADS + 1:
		value[0] = load(v, y); between(v); store(v, x, one);
		break;
	case CORR * MOST_THREADS + 0:
	case IRIW * MOST_THREADS + 0:
		store(v, x, one);
		break;
	case CORR * MOST_THREADS + 1:
		value[0] = load(v, x); between(v); value[1] = load(v, x);
		break;
	case IRIW * MOST_THREADS + 1:
		store(v, y, one);
		break;
	case IRIW * MOST_THREADS + 2:
		value[0] = load(v, x); between(v); value[1] = load(v, y);
		break;
	case IRIW * MOST_THREADS + 3:
		value[0] = load(v, y); between(v); value[1] = load(v, x);
		break;
	case TWO_2W * MOST_THREADS + 0:
		store(v, x, one); between(v); store(v, y, two);
		break;
	case TWO_2W * MOST_THREADS + 1:
		store(v, y, one); between(v); store(v, x, two);
		break;
	case R * MOST_THREADS + 0:
		store(v, x, one); between(v); store(v, y, one);
		break;
	case R * MOST_THREADS + 1:
		store(v, y, two); between(v); value[0] = load(v, x);
		break;
	case S * MOST_THREADS + 0:
		store(v, x, two); between(v); store(v, y, one);
		break;
	case S * MOST_THREADS + 1:
		value[0] = load(v, y); between(v); store(v, x, one);
		break;
	}
	/* What is not temporal is in memory before the round is over. */
	if (v == NT)
		asm volatile("sfence" : : : "memory");
}

/* That of the next slot is in the next page; those of all teams in a slot are in one. */
static void *cell_of(uint8_t *pages, unsigned int slot, unsigned int team)
{
	uint8_t *page = pages + slot % PAGES * PAGE;
	unsigned int cell = slot / PAGES * run.teams + team;

	if (run.variant != SPLIT_LOCK)
		return page + cell * STRIDE;
	/* The last one is in two pages. */
	return page + (cell < CELLS - 1 ? cell * STRIDE + SPLIT : PAGE - 4);
}

static uint64_t next_random(uint64_t *state)
{
	/* xorshift64*, Vigna 2016. */
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

/* Until it is @time.  Not if that is further away than a turn: TSCs of two CPUs can differ. */
static void wait_until(uint64_t time)
{
	if (time - __rdtsc() > run.period * (MOST_CELLS + LEAD + 1))
		return;		/* or it is over */
	while ((int64_t)(time - __rdtsc()) > 0)
		_mm_pause();
}

/*
 * Is half of the round at @time over?  Not if that is longer ago than a turn, as above; nor without
 * --slow-us: no page is waited for then, and a CPU that others have would make most rounds late.
 */
static bool is_too_late(uint64_t time)
{
	uint64_t late = __rdtsc() - time;

	return run.slow && late >= run.period / 2 && late <= run.period * (MOST_CELLS + LEAD + 1);
}

static void take(uint8_t *page)
{
	volatile uint8_t *word = page + TAKEN;

	*word = 1;
}

static void copy(uint8_t *page)
{
	volatile uint8_t *word = page + TAKEN;

	(void)*word;
}

/*
 * Before rounds in the same pages, in this order: thread 0 takes x and thread 1 y; thread 0 y, and
 * thread 1 has a copy of x; thread 0 y and thread 1 x; as before that.  Of corr, which has x only:
 * thread 0 takes it, and nobody, by turns.
 */
static bool is_taken(unsigned int slot)
{
	return !shapes[run.shape].at_once || !(slot / PAGES % 2);
}

static void take_page(const struct thread *thread, unsigned int slot)
{
	unsigned int before = shapes[run.shape].at_once ? 0 : slot / PAGES % 4;
	uint8_t *page = ((thread->number == 1) != !!before ? run.y : run.x) + slot % PAGES * PAGE;

	if (!is_taken(slot) || thread->number > 1 || thread->team)
		return;
	if (thread->number == 1 && before % 2)
		copy(page);
	else
		take(page);
}

/* Those that have all that they need begin while the others wait for it. */
static uint64_t delay_of(struct thread *thread, unsigned int slot)
{
	uint64_t delay = next_random(&thread->random) % (run.wait / 2 + 1);
	unsigned int at_once = shapes[run.shape].at_once;

	return at_once && ((at_once >> thread->number) & 1) == is_taken(slot) ? delay + run.wait / 2 : delay;
}

static inline __attribute__((always_inline))
void rounds_of(struct thread *thread, const enum variant v)
{
	const uint64_t base = run.base;

	for (unsigned int slot = 0; slot < run.slots; slot++) {
		void *x = cell_of(run.x, slot, thread->team), *y = cell_of(run.y, slot, thread->team);
		uint64_t begun, ended, value[MOST_REGISTERS] = { 0 }, time = run.begins + slot * run.period;

		/* Each has the first one, so that every turn has a round. */
		if (slot && is_too_late(time))
			continue;
		take_page(thread, slot);
		wait_until(time + delay_of(thread, slot));
		begun = __rdtsc();
		body(run.shape, thread->number, v, x, y, base, value);
		ended = __rdtsc();
		/* Not sooner: thread 0 has read this page, and it may have to be fetched. */
		thread->seen[slot].begun = begun;
		thread->seen[slot].ended = ended;
		memcpy(thread->seen[slot].value, value, sizeof(value));
	}
}

static void turn_of(unsigned int number)
{
	struct thread *thread = &threads[number];

	if (number >= number_of_cpu(run.teams, 0))
		return;
	thread->number = number % shapes[run.shape].threads;
	thread->team = number / shapes[run.shape].threads;
	/* Its pages come now, and not in a round. */
	memset(thread->seen, 0, sizeof(thread->seen));
	switch (run.variant) {
	case PLAIN:	 rounds_of(thread, PLAIN); break;
	case FENCE:	 rounds_of(thread, FENCE); break;
	case LOCK:	 rounds_of(thread, LOCK); break;
	case SPLIT_LOCK: rounds_of(thread, SPLIT_LOCK); break;
	case NT:	 rounds_of(thread, NT); break;
	case VARIANTS:	 break;
	}
}

/* --- what came of it ------------------------------------------------------ */

/* Return: what was stored, 0 to 2; VALUES if nobody has stored that in this turn. */
static unsigned int value_of(uint64_t raw)
{
	if (run.variant == SPLIT_LOCK) {
		if (raw % BOTH)
			return VALUES;
		raw /= BOTH;
	}
	if (!raw)
		return 0;
	return raw <= run.base || raw - run.base >= VALUES ? VALUES : (unsigned int)(raw - run.base);
}

struct outcome {
	unsigned int value[MOST_THREADS][MOST_REGISTERS];
	unsigned int x, y;	/* in the end */
};

/* Return: its number; -1 if there is a value that nobody has stored, or a store got lost. */
static int outcome_of(unsigned int slot, unsigned int team, struct outcome *o)
{
	const struct description *shape = &shapes[run.shape];
	unsigned int number = 0;

	o->x = value_of(*(volatile uint64_t *)cell_of(run.x, slot, team));
	o->y = value_of(*(volatile uint64_t *)cell_of(run.y, slot, team));
	if (!((shape->ends.x >> o->x) & 1) || !((shape->ends.y >> o->y) & 1))
		return -1;
	for (unsigned int thread = 0; thread < shape->threads; thread++)
		for (unsigned int i = 0; i < shape->registers[thread]; i++) {
			unsigned int value = value_of(threads[number_of_cpu(team, thread)].seen[slot].value[i]);

			/* A 2 is in the end of a cell that nobody loads. */
			if (value > 1)
				return -1;
			o->value[thread][i] = value;
			number = number * VALUES + value;
		}
	if (shape->x_decides)
		number = number * VALUES + o->x;
	if (shape->y_decides)
		number = number * VALUES + o->y;
	return (int)number;
}

static bool is_weak(const struct outcome *o)
{
	switch (run.shape) {
	case SB:
		return !o->value[0][0] && !o->value[1][0];
	case MP:
	case CORR:
		return o->value[1][0] && !o->value[1][1];
	case LB:
		return o->value[0][0] && o->value[1][0];
	case IRIW:
		return o->value[2][0] && !o->value[2][1] && o->value[3][0] && !o->value[3][1];
	case TWO_2W:
		return o->x == 1 && o->y == 1;
	case R:
		return o->y == 2 && !o->value[1][0];
	case S:
		return o->value[1][0] && o->x == 2;
	case SHAPES:
		break;
	}
	return false;
}

static bool weak_is_allowed(enum shape shape, enum variant variant)
{
	return shapes[shape].store_then_load && (variant == PLAIN || variant == NT);
}

static void count_times(unsigned int slot, unsigned int team)
{
	unsigned int n = shapes[run.shape].threads;
	bool overlapped = false, raced = false;

	for (unsigned int a = 0; a < n; a++)
		for (unsigned int b = a + 1; b < n; b++) {
			unsigned int i = number_of_cpu(team, a), j = number_of_cpu(team, b);
			const struct seen *one = &threads[i].seen[slot], *two = &threads[j].seen[slot];

			if (run.options->hosts[i] == run.options->hosts[j] ||
			    one->begun > two->ended || two->begun > one->ended)
				continue;
			overlapped = true;
			if (one->ended - one->begun >= run.slow || two->ended - two->begun >= run.slow)
				raced = true;
		}
	run.tally.overlapped += overlapped;
	run.tally.raced += raced;
}

static int by_size(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, two = *(const uint64_t *)b;

	return (one > two) - (one < two);
}

/*
 * The median of rounds that have waited for a page, so what a thread has to do besides has no part
 * in it.  If none has, they have more time than they need.  If fewer have than there are threads, one
 * of them may have stood still, for no page: a turn would take hundreds of times as long as that.
 */
static void measure(void)
{
	static uint64_t waits[MOST_CPUS * MOST_CELLS];
	size_t n = 0;

	for (unsigned int cpu = 0; cpu < number_of_cpu(run.teams, 0); cpu++)
		for (unsigned int slot = 0; slot < run.slots; slot++) {
			const struct seen *seen = &threads[cpu].seen[slot];

			if (seen->begun && seen->ended - seen->begun >= run.slow)
				waits[n++] = seen->ended - seen->begun;
		}
	qsort(waits, n, sizeof(*waits), by_size);
	if (n >= number_of_cpu(run.teams, 0) || (n && waits[n / 2] / MOST_CHANGE <= run.wait))
		run.wait = waits[n / 2];
	else if (n)
		run.wait *= MOST_CHANGE;
	else if (run.wait / MOST_CHANGE >= run.ticks)
		run.wait /= MOST_CHANGE;
	run.period = 2 * run.wait + 1;
}

/*
 * The next turn: how many rounds, and when they begin.  Not many more than are wanted: as many
 * of them will race as of those before; at first half of them.
 */
static void plan(void)
{
	const struct options *options = run.options;
	const struct tally *tally = &run.tally;
	unsigned int most = CELLS / run.teams * PAGES;
	uint64_t left = options->rounds - tally->rounds, few = options->raced - tally->raced;

	few = tally->raced ? few * tally->rounds / tally->raced + 1 : 2 * few;
	if (options->raced && few < CELLS * run.teams / 2)
		few = CELLS * run.teams / 2;
	if (options->raced && few < left)
		left = few;
	left = (left + run.teams - 1) / run.teams;
	run.slots = left < most ? (unsigned int)left : most;
	run.base += VALUES - 1;
	run.begins = __rdtsc() + LEAD * run.period;
}

static bool is_left_out(unsigned int slot, unsigned int team)
{
	for (unsigned int thread = 0; thread < shapes[run.shape].threads; thread++)
		if (!threads[number_of_cpu(team, thread)].seen[slot].begun)
			return true;
	return false;
}

static void look_at(unsigned int slot, unsigned int team)
{
	struct outcome outcome = { 0 };
	int number;

	if (is_left_out(slot, team))
		return;
	number = outcome_of(slot, team, &outcome);
	run.tally.rounds++;
	if (number < 0) {
		run.tally.impossible++;
	} else {
		run.tally.outcomes[number]++;
		run.tally.weak += is_weak(&outcome);
	}
	count_times(slot, team);
}

/* --- a shape -------------------------------------------------------------- */

static void print_outcomes(void)
{
	const struct description *shape = &shapes[run.shape];
	const char *separator = "";
	char names[MOST_THREADS] = { 0 };
	unsigned int n = 0, total = 1;
	char letter = 'a';

	for (unsigned int thread = 0; thread < shape->threads; thread++)
		for (unsigned int i = 0; i < shape->registers[thread]; i++)
			names[n++] = letter++;
	if (shape->x_decides)
		names[n++] = 'x';
	if (shape->y_decides)
		names[n++] = 'y';
	for (unsigned int i = 0; i < n; i++)
		total *= VALUES;
	printf("\"outcomes\":{");
	for (unsigned int number = 0; number < total; number++) {
		unsigned int divisor = total;

		if (!run.tally.outcomes[number])
			continue;
		printf("%s\"", separator);
		for (unsigned int i = 0; i < n; i++) {
			divisor /= VALUES;
			printf("%s%c=%u", i ? " " : "", names[i], number / divisor % VALUES);
		}
		printf("\":%" PRIu64, run.tally.outcomes[number]);
		separator = ",";
	}
	printf("}");
}

static void print_shape(void)
{
	bool allowed = weak_is_allowed(run.shape, run.variant);

	printf("{\"event\":\"shape\",\"shape\":\"%s\",\"variant\":\"%s\",\"rounds\":%" PRIu64
	       ",\"overlapped\":%" PRIu64 ",\"raced\":%" PRIu64 ",\"raced_slots\":%" PRIu64
	       ",\"weak\":%" PRIu64 ",\"weak_allowed\":%s,\"impossible\":%" PRIu64 ",",
	       shapes[run.shape].name, variant_names[run.variant], run.tally.rounds, run.tally.overlapped,
	       run.tally.raced, run.tally.raced_slots, run.tally.weak, allowed ? "true" : "false", run.tally.impossible);
	print_outcomes();
	puts("}");
	fflush(stdout);
	run.all_rounds += run.tally.rounds;
	run.all_forbidden += run.tally.impossible + (allowed ? 0 : run.tally.weak);
}

static unsigned int teams_of(const struct options *options, enum shape shape)
{
	unsigned int teams = options->nr_cpus / shapes[shape].threads;

	return teams < options->teams ? teams : options->teams;
}

/* The next one that is asked for, from its first turn on.  Return: whether there is one. */
static bool begin_shape(void)
{
	const struct options *options = run.options;

	while (run.next < SHAPES * VARIANTS) {
		run.shape = run.next / VARIANTS;
		run.variant = run.next++ % VARIANTS;
		if (!options->shape[run.shape] || !options->variant[run.variant])
			continue;
		memset(&run.tally, 0, sizeof(run.tally));
		run.teams = teams_of(options, run.shape);
		plan();
		return true;
	}
	return false;
}

/* All others wait.  Return: whether there is another turn, of this shape or of the next one. */
static bool look(void)
{
	for (unsigned int slot = 0; slot < run.slots; slot++) {
		uint64_t before = run.tally.raced;

		for (unsigned int team = 0; team < run.teams; team++)
			look_at(slot, team);
		run.tally.raced_slots += run.tally.raced > before;
	}
	measure();
	memset(run.x, 0, (PAGES + 1) * PAGE);
	memset(run.y, 0, (PAGES + 1) * PAGE);
	if (run.tally.rounds < run.options->rounds &&
	    !(run.options->raced && run.tally.raced >= run.options->raced)) {
		plan();
		return true;
	}
	print_shape();
	return begin_shape();
}

/* --- words ---------------------------------------------------------------- */

static const char *shape_name(unsigned int i)
{
	return shapes[i].name;
}

static const char *variant_name(unsigned int i)
{
	return variant_names[i];
}

static void usage(FILE *out)
{
	fputs("Usage: dsm_litmus [OPTION...]\n"
	      "Litmus tests of x86-TSO, each thread on a CPU of its own; a JSON object a line.\n\n"
	      "  --shape=NAME,...    sb, mp, lb, corr, iriw, 22w, r, s (default: those that --cpus is enough for)\n"
	      "  --variant=NAME,...  plain, fence, lock, split, nt (default: all)\n"
	      "  --cpus=CPU,...      of the threads, in order (default: 0,1); iriw wants four; with twice as many\n"
	      "                      there are two teams, each in cells of its own of the same pages, and so on\n"
	      "  --teams=N           no more than so many (default: as many as there are CPUs for, up to 8)\n"
	      "  --hosts=HOST,...    of each of these CPUs (default: one each); only those of two hosts race\n"
	      "  --nodes=NODE,NODE   where x and y are (default: anywhere)\n"
	      "  --rounds=N          of each shape and variant, at most; T teams may do T - 1 more (default: 100000)\n"
	      "  --raced=N           so many that raced are enough (default: 0, all rounds)\n"
	      "  --slow-us=N         an access that takes so long has waited for a page (default: 0, any)\n"
	      "  --seed=N            of delays (default: 1)\n\n"
	      "Exit status: 0; 1 an outcome that TSO forbids; 2 usage, or there is no such CPU, node or memory.\n", out);
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{ "shape", required_argument, NULL, 's' },
		{ "variant", required_argument, NULL, 'v' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "hosts", required_argument, NULL, 'o' },
		{ "teams", required_argument, NULL, 't' },
		{ "nodes", required_argument, NULL, 'n' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "raced", required_argument, NULL, 'a' },
		{ "slow-us", required_argument, NULL, 'l' },
		{ "seed", required_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned int nr_hosts = 0;
	bool all = true;
	int c;

	for (unsigned int i = 0; i < VARIANTS; i++)
		o->variant[i] = true;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 's':
			choose("shape", optarg, o->shape, SHAPES, shape_name);
			all = false;
			break;
		case 'v':
			choose("variant", optarg, o->variant, VARIANTS, variant_name);
			break;
		case 'c':
			o->nr_cpus = numbers("cpus", optarg, 0, CPU_SETSIZE - 1, o->cpus, MOST_CPUS);
			break;
		case 'o':
			nr_hosts = numbers("hosts", optarg, 0, MOST_CPUS - 1, o->hosts, MOST_CPUS);
			break;
		case 't':
			o->teams = (unsigned int)number("teams", optarg, 1, MOST_TEAMS);
			break;
		case 'n':
			if (numbers("nodes", optarg, -1, numa_max_node(), o->nodes, 2) != 2)
				die("--nodes=%s: want two", optarg);
			break;
		case 'r':
			o->rounds = (uint64_t)number("rounds", optarg, 1, 1000000000);
			break;
		case 'a':
			o->raced = (uint64_t)number("raced", optarg, 0, 1000000000);
			break;
		case 'l':
			o->slow_us = (uint64_t)number("slow-us", optarg, 0, 10000000);
			break;
		case 'e':
			o->seed = (uint64_t)number("seed", optarg, 0, 1000000000);
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind < argc)
		die("%s: there are only options", argv[optind]);
	if (nr_hosts && nr_hosts != o->nr_cpus)
		die("--hosts has %u of them, --cpus %u", nr_hosts, o->nr_cpus);
	for (unsigned int i = 0; i < SHAPES; i++) {
		if (all)
			o->shape[i] = shapes[i].threads <= o->nr_cpus;
		else if (o->shape[i] && shapes[i].threads > o->nr_cpus)
			die("%s wants %u CPUs, --cpus has %u", shapes[i].name, shapes[i].threads, o->nr_cpus);
	}
	/* Or nothing would be forbidden, since nothing was looked at. */
	if (all && !memchr(o->shape, true, sizeof(o->shape)))
		die("--cpus has %u, a shape wants 2 or 4", o->nr_cpus);
	if (!memchr(o->shape, true, sizeof(o->shape)))
		die("--shape: names none");
	if (!memchr(o->variant, true, sizeof(o->variant)))
		die("--variant: names none");
}

/* In a row: a cell of "split" is in two of them. */
static uint8_t *pages_on(long node)
{
	uint8_t *pages = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long mask = 1ul << (node & 63);

	if (pages == MAP_FAILED)
		die("no memory");
	if (node >= 0 && (node > 63 || mbind(pages, (PAGES + 1) * PAGE, MPOL_BIND, &mask, 64, 0)))
		die("memory of node %ld: %s", node, strerror(errno));
	memset(pages, 0, (PAGES + 1) * PAGE);
	return pages;
}

int main(int argc, char **argv)
{
	struct options options = {
		.cpus = { 0, 1 }, .nr_cpus = 2, .teams = MOST_TEAMS, .nodes = { -1, -1 }, .rounds = 100000, .seed = 1,
	};
	unsigned int cpus = 0;

	for (unsigned int i = 0; i < MOST_CPUS; i++)
		options.hosts[i] = i;
	parse(&options, argc, argv);
	run.options = &options;
	run.x = pages_on(options.nodes[0]);
	run.y = pages_on(options.nodes[1]);
	threads = aligned_alloc(PAGE, MOST_CPUS * sizeof(*threads));
	if (!threads)
		die("no memory");
	memset(threads, 0, MOST_CPUS * sizeof(*threads));
	for (unsigned int i = 0; i < MOST_CPUS; i++)
		threads[i].random = (options.seed * MOST_CPUS + i + 1) * 0x9e3779b97f4a7c15ull;
	run.ticks = ticks_per_us();
	run.slow = options.slow_us * run.ticks;
	/* What was measured in one shape is a good guess for the next one. */
	run.wait = run.ticks;
	run.period = 2 * run.wait + 1;
	for (enum shape shape = 0; shape < SHAPES; shape++)
		if (options.shape[shape] && shapes[shape].threads * teams_of(&options, shape) > cpus)
			cpus = shapes[shape].threads * teams_of(&options, shape);
	/* Once for all: with CPUs on several hosts a thread's begin takes as long as hundreds of rounds. */
	if (begin_shape())
		take_turns(cpus, options.cpus, turn_of, look);
	printf("{\"event\":\"result\",\"rounds\":%" PRIu64 ",\"forbidden\":%" PRIu64 "}\n", run.all_rounds,
	       run.all_forbidden);
	return run.all_forbidden ? 1 : 0;
}
