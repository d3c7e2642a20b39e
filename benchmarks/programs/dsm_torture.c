/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dsm_torture: all CPUs of a guest use the same few pages at once, in every way that
 * a program can; each operation knows what it has to find.  CPUs and pages may be on
 * several hosts: a write that is lost, torn or seen too late is noticed.
 *
 * The pages are one file in memory, mapped once for all threads, and once more for each
 * thread (its alias).  Who may write what, and what must hold:
 *
 *	counter	8 to 64 bits: aligned, across nothing, across two cache lines, across
 *		two pages.  All add 1, LOCKed.  Between two looks each value from the one
 *		at first on is found by exactly one addition, and the sum is right: none is
 *		lost, none is done twice, none is based on an old value.  An 8-bit one is
 *		not added to so often that it would be round.
 *	record	227 bytes across cache lines, behind a ticket lock in the page before.  Who
 *		has ticket n finds version n, and each byte as n has it.
 *	stretch	317 bytes in each page that one thread writes, next to those of others in
 *		the same cache lines, and 64 bytes across two pages.  It finds what it has
 *		written, byte by byte; so does thread 0 while all wait.
 *	cell	64 bits that one thread writes, with a number that grows and a sum: data in one
 *		page, then the same number as a flag in the next page.  Others read the flag,
 *		then the data: neither is ever older than what this reader has seen before,
 *		nor the data older than the flag.
 *	memory	of one thread alone: what it has written, and 0 after it was given back.
 *
 * Operations:
 *	read, write		a cell
 *	add, exchange		a counter, by LOCK XADD, LOCK CMPXCHG
 *	stretch, record		by bytes, words, 16 bytes, REP MOVSB, MOVNTI
 *	pipe, file, vector	system calls from a stretch, to another one
 *	drop, protect, remap	the alias: MADV_DONTNEED, mprotect, mmap; then a stretch by it
 *	pressure		memory of its own, given back with MADV_DONTNEED
 *	migrate			a page to another node (with --nodes)
 *	hypercall		Xen reads what it is asked from a stretch, and writes its answer
 *				there, as it did at the beginning (with --hypercalls)
 *
 * What a thread does, and with what, follows from the seed, its number and that of the
 * operation alone.  After 256 of each thread all meet, and thread 0 looks at what is there.
 *
 * Output, one JSON object a line:
 *   {"event":"wrong","operation":..,"thread":..,"number":..,"page":..,"what":..,
 *    "found":..,"expected":..}	of the first 32
 *   {"event":"operation","operation":..,"count":..,"slow":..,"wrong":..}
 *	slow: took --slow-us or longer, so it has waited for a page, or for who has the lock
 *   {"event":"result","turns":..,"operations":..,"wrong":..,"again":..}
 *	again: calls of Xen that were made once more, since a page was not mapped
 * Exit status: 0; 1 something was wrong; 2 usage, no such CPU or node, no memory.
 *
 * Locking: what the pages have is raced for, by the rules above.  What belongs to a thread
 * is its own, or thread 0's while all others wait.  The output has a mutex.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <numa.h>
#include <numaif.h>
#include <x86intrin.h>

#include "privcmd.h"
#include "tsc.h"
#include "turns.h"
#include "words.h"

#define PAGE		4096ul
#define MOST_PAGES	64u
#define MOST_THREADS	8u
#define TURN		256u	/* operations of a thread between two looks */
#define LINES		32u	/* about what is wrong */
#define LOCK_SPINS	64u	/* before another one may have the CPU: whose turn it is may have none */

/* Where what is, in a page. */
#define LOCK		384u	/* two words of 32 bits: the next ticket, and whose turn it is */
#define RECORD		413u
#define RECORD_SIZE	227u
#define DATA		704u	/* 64 bits of each thread */
#define FLAG		768u
#define STRETCHES	1024u
#define STRETCH_SIZE	317u
#define BORDER		(PAGE - 32)
#define BORDER_SIZE	64u
#define RANGES		3u	/* of a system call with vectors */

static const struct counter { unsigned int at, size; } counters[] = {
	{ 64, 1 }, { 66, 2 }, { 68, 4 }, { 72, 8 },	/* aligned */
	{ 81, 2 }, { 85, 4 }, { 97, 8 },		/* not */
	{ 191, 2 }, { 254, 4 }, { 316, 8 },		/* in two lines */
	{ PAGE - 1, 2 }, { PAGE - 2, 4 }, { PAGE - 4, 8 }, /* in two pages: one of them, in an even page */
};
#define COUNTERS	(sizeof(counters) / sizeof(*counters))
#define WITHIN		10u	/* of those are in one page */
#define WHOLE		3u	/* 64 bits */
_Static_assert(STRETCHES + MOST_THREADS * STRETCH_SIZE <= BORDER, "a page is full");

enum style { BYTES, QUADS, STRING, NONTEMPORAL, VECTOR, STYLES };

enum operation {
	READ, WRITE, ADD, EXCHANGE, STRETCH, RECORD_OP, PIPE, SOME_FILE, VECTORS, DROP, PROTECT, REMAP,
	PRESSURE, MIGRATE, HYPERCALL, OPERATIONS
};

struct added { uint64_t count, sum; };		/* of what it has found, mixed */

/* Written by it alone, and by thread 0 while it waits. */
struct thread {
	unsigned int number;
	int pipe[2], file;
	uint8_t *alias, *memory;
	enum operation operation;
	uint64_t operations, random;
	uint64_t count[OPERATIONS], slow[OPERATIONS], wrong[OPERATIONS];
	uint64_t again;					/* calls of Xen that were made once more */
	uint64_t written[MOST_PAGES];			/* number of its cell */
	uint64_t seen_data[MOST_PAGES][MOST_THREADS], seen_flag[MOST_PAGES][MOST_THREADS];
	struct added added[MOST_PAGES][COUNTERS];
	uint8_t stretch[MOST_PAGES][STRETCH_SIZE];	/* what has to be there */
	uint8_t border[MOST_PAGES][BORDER_SIZE];
} __attribute__((aligned(4096)));

struct options {
	long cpus[MOST_THREADS];
	unsigned int threads, nodes;
	long node[2];
	bool operation[OPERATIONS], hypercalls;
	uint64_t pages, operations, seconds, pressure, slow_us, stuck_s, seed;
};

/* Of the run: written by thread 0 while all others wait. */
static _Alignas(4096) struct run {
	const struct options *options;
	uint8_t *pages;
	int file;
	unsigned int chosen[OPERATIONS], nr_chosen;
	uint64_t slow;		/* ticks */
	uint64_t until;		/* ns; 0: no end */
	uint64_t turns;
	uint64_t begun[MOST_PAGES][COUNTERS];	/* what counters had at the last look */
} run;

static struct thread *threads;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static unsigned int lines;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* splitmix64, Steele et al. 2014. */
static uint64_t mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15ull;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static unsigned int below(struct thread *t, uint64_t n)
{
	t->random = mix(t->random);
	return (unsigned int)(t->random % n);
}

static const char *operation_name(unsigned int operation);
static void print_result(void);

static void wrong(struct thread *t, uint64_t page, const char *what, uint64_t found, uint64_t expected)
{
	pthread_mutex_lock(&output);
	t->wrong[t->operation]++;
	if (lines++ < LINES) {
		printf("{\"event\":\"wrong\",\"operation\":\"%s\",\"thread\":%u,\"number\":%" PRIu64
		       ",\"page\":%" PRIu64 ",\"what\":\"%s\",\"found\":%" PRIu64 ",\"expected\":%" PRIu64 "}\n",
		       operation_name(t->operation), t->number, t->operations, page, what, found, expected);
		fflush(stdout);
	}
	pthread_mutex_unlock(&output);
}

/* Whoever waits so long waits for ever: something was lost that it would have seen. */
static void stuck(struct thread *t, uint64_t page, uint64_t found, uint64_t expected)
{
	wrong(t, page, "stuck", found, expected);
	/* Nobody says anything after it. */
	pthread_mutex_lock(&output);
	print_result();
	_exit(1);
}

/* --- how bytes are moved ---------------------------------------------------- */

static void move(enum style style, void *to, const void *from, size_t size)
{
	uint8_t *d = to;
	const uint8_t *s = from;
	uint64_t word;
	__m128i wide;

	switch (style) {
	case STRING:
		asm volatile("rep movsb" : "+D" (d), "+S" (s), "+c" (size) : : "memory");
		return;
	case QUADS:
		for (; size >= 8; size -= 8, s += 8, d += 8)
			asm volatile("movq (%2), %0; movq %0, (%1)" : "=&r" (word) : "r" (d), "r" (s) : "memory");
		break;
	case NONTEMPORAL:
		for (; size >= 8; size -= 8, s += 8, d += 8)
			asm volatile("movq (%2), %0; movnti %0, (%1)" : "=&r" (word) : "r" (d), "r" (s) : "memory");
		asm volatile("sfence" : : : "memory");
		break;
	case VECTOR:
		for (; size >= 16; size -= 16, s += 16, d += 16)
			asm volatile("movups (%2), %0; movups %0, (%1)" : "=&x" (wide) : "r" (d), "r" (s) : "memory");
		break;
	case BYTES:
	case STYLES:
		break;
	}
	for (; size; size--, s++, d++)
		asm volatile("movb (%2), %b0; movb %b0, (%1)" : "=&q" (word) : "r" (d), "r" (s) : "memory");
}

/* Return: where @found differs first; @size if nowhere. */
static size_t difference(const uint8_t *found, const uint8_t *expected, size_t size)
{
	size_t i = 0;

	while (i < size && found[i] == expected[i])
		i++;
	return i;
}

/* --- cells -------------------------------------------------------------------- */

static uint64_t cell_value(unsigned int thread, uint64_t page, uint64_t number)
{
	return number << 24 | (mix(number ^ mix(page * MOST_THREADS + thread)) & 0xffffff);
}

static void *data_of(unsigned int thread, uint64_t page)
{
	return run.pages + page * PAGE + DATA + thread * 8;
}

static void *flag_of(unsigned int thread, uint64_t page)
{
	return run.pages + (page + 1) % run.options->pages * PAGE + FLAG + thread * 8;
}

static uint64_t load(const void *cell)
{
	uint64_t value;

	asm volatile("movq %1, %0" : "=r" (value) : "m" (*(const uint64_t *)cell) : "memory");
	return value;
}

static void store(void *cell, uint64_t value)
{
	asm volatile("movq %1, %0" : "=m" (*(uint64_t *)cell) : "r" (value) : "memory");
}

static void do_write(struct thread *t)
{
	uint64_t page = below(t, run.options->pages), number = ++t->written[page];

	if (load(data_of(t->number, page)) != cell_value(t->number, page, number - 1))
		wrong(t, page, "cell", load(data_of(t->number, page)), cell_value(t->number, page, number - 1));
	store(data_of(t->number, page), cell_value(t->number, page, number));
	store(flag_of(t->number, page), cell_value(t->number, page, number));
}

static void do_read(struct thread *t)
{
	uint64_t page = below(t, run.options->pages), flag, data;
	unsigned int writer = below(t, run.options->threads);
	uint64_t *seen_flag = &t->seen_flag[page][writer], *seen_data = &t->seen_data[page][writer];

	flag = load(flag_of(writer, page));
	data = load(data_of(writer, page));
	if (flag != cell_value(writer, page, flag >> 24))
		wrong(t, page, "torn flag", flag, cell_value(writer, page, flag >> 24));
	else if (flag >> 24 < *seen_flag)
		wrong(t, page, "old flag", flag >> 24, *seen_flag);
	else
		*seen_flag = flag >> 24;
	if (data != cell_value(writer, page, data >> 24))
		wrong(t, page, "torn data", data, cell_value(writer, page, data >> 24));
	else if (data >> 24 < *seen_data)
		wrong(t, page, "old data", data >> 24, *seen_data);
	else
		*seen_data = data >> 24;
	if (data >> 24 < flag >> 24)
		wrong(t, page, "order", data >> 24, flag >> 24);
}

/* --- counters ----------------------------------------------------------------- */

static uint64_t mask_of(unsigned int size)
{
	return size == 8 ? ~0ull : (1ull << size * 8) - 1;
}

/* Return: what was there. */
static uint64_t add(void *at, unsigned int size)
{
	uint64_t one = 1;

	switch (size) {
	case 1:
		asm volatile("lock xaddb %b0, %1" : "+q" (one), "+m" (*(uint8_t *)at) : : "memory");
		break;
	case 2:
		asm volatile("lock xaddw %w0, %1" : "+r" (one), "+m" (*(uint16_t *)at) : : "memory");
		break;
	case 4:
		asm volatile("lock xaddl %k0, %1" : "+r" (one), "+m" (*(uint32_t *)at) : : "memory");
		break;
	case 8:
		asm volatile("lock xaddq %q0, %1" : "+r" (one), "+m" (*(uint64_t *)at) : : "memory");
		break;
	}
	return one & mask_of(size);
}

/* Return: whether @expected was there, which is what was there now. */
static bool exchange(void *at, unsigned int size, uint64_t *expected)
{
	uint64_t next = *expected + 1, found = *expected;

	switch (size) {
	case 1:
		asm volatile("lock cmpxchgb %b2, %1" : "+a" (found), "+m" (*(uint8_t *)at) : "q" (next) : "memory", "cc");
		break;
	case 2:
		asm volatile("lock cmpxchgw %w2, %1" : "+a" (found), "+m" (*(uint16_t *)at) : "r" (next) : "memory", "cc");
		break;
	case 4:
		asm volatile("lock cmpxchgl %k2, %1" : "+a" (found), "+m" (*(uint32_t *)at) : "r" (next) : "memory", "cc");
		break;
	case 8:
		asm volatile("lock cmpxchgq %q2, %1" : "+a" (found), "+m" (*(uint64_t *)at) : "r" (next) : "memory", "cc");
		break;
	}
	found &= mask_of(size);
	next = *expected;
	*expected = found;
	return found == next;
}

static uint64_t counter_now(uint64_t page, unsigned int counter)
{
	uint64_t value = 0;

	memcpy(&value, run.pages + page * PAGE + counters[counter].at, counters[counter].size);
	return value;
}

/* Is there such a one?  At the border of an odd page a thread has 64 bytes. */
static bool counter_is(uint64_t page, unsigned int counter)
{
	return counter < WITHIN || (!(page % 2) && counter - WITHIN == page / 2 % (COUNTERS - WITHIN));
}

static uint8_t *choose_counter(struct thread *t, uint64_t *page, unsigned int *counter)
{
	*page = below(t, run.options->pages);
	*counter = below(t, WITHIN + 1);
	if (*counter == WITHIN)
		*counter = *page % 2 ? WHOLE : WITHIN + (unsigned int)(*page / 2 % (COUNTERS - WITHIN));
	if (t->added[*page][*counter].count >= mask_of(counters[*counter].size) / run.options->threads)
		*counter = WHOLE;
	return run.pages + *page * PAGE + counters[*counter].at;
}

static void was_added(struct thread *t, uint64_t page, unsigned int counter, uint64_t found)
{
	t->added[page][counter].count++;
	t->added[page][counter].sum += mix(found);
}

static void do_add(struct thread *t)
{
	uint64_t page;
	unsigned int counter;
	uint8_t *at = choose_counter(t, &page, &counter);

	was_added(t, page, counter, add(at, counters[counter].size));
}

static void do_exchange(struct thread *t)
{
	uint64_t page, expected, begun = 0;
	unsigned int counter;
	uint8_t *at = choose_counter(t, &page, &counter);

	expected = counter_now(page, counter);
	for (uint64_t i = 1; !exchange(at, counters[counter].size, &expected); i++)
		if (!(i % LOCK_SPINS)) {
			begun = begun ? begun : now_ns();
			if (now_ns() - begun > run.options->stuck_s * 1000000000ull)
				stuck(t, page, counter_now(page, counter), expected);
			sched_yield();
		}
	was_added(t, page, counter, expected);
}

/* All others wait. */
static void look_at_counter(struct thread *t, uint64_t page, unsigned int counter)
{
	uint64_t mask = mask_of(counters[counter].size), begun = run.begun[page][counter];
	uint64_t now = counter_now(page, counter), n = 0, found = 0, expected = 0;

	for (unsigned int i = 0; i < run.options->threads; i++) {
		struct added *added = &threads[i].added[page][counter];

		n += added->count;
		found += added->sum;
		memset(added, 0, sizeof(*added));
	}
	for (uint64_t i = 0; i < n; i++)
		expected += mix((begun + i) & mask);
	if (now != ((begun + n) & mask))
		wrong(t, page, "sum", now, (begun + n) & mask);
	else if (found != expected)
		wrong(t, page, "found twice", found, expected);
	run.begun[page][counter] = now;
}

/* --- stretches ---------------------------------------------------------------- */

/* A part of a stretch, and what has to be there. */
struct range {
	uint64_t page;
	size_t from, size;	/* of all pages */
	uint8_t *expected;
};

/* Whose is the border of an odd page and the next one? */
static unsigned int owner_of(uint64_t page)
{
	return (unsigned int)(page / 2 % run.options->threads);
}

static struct range choose_range(struct thread *t, size_t size)
{
	struct range r = { .page = below(t, run.options->pages) };
	size_t all = STRETCH_SIZE, skip;

	if (r.page % 2 && owner_of(r.page) == t->number && below(t, 4)) {
		all = BORDER_SIZE;
		r.from = r.page * PAGE + BORDER;
		r.expected = t->border[r.page];
	} else {
		r.from = r.page * PAGE + STRETCHES + t->number * STRETCH_SIZE;
		r.expected = t->stretch[r.page];
	}
	r.size = size && size < all ? size : 1 + below(t, all);
	skip = below(t, all - r.size + 1);
	r.from += skip;
	r.expected += skip;
	return r;
}

static void check_range(struct thread *t, const struct range *r, const uint8_t *pages, const char *what)
{
	uint8_t found[STRETCH_SIZE];
	size_t i;

	move(below(t, STYLES), found, pages + r->from, r->size);
	i = difference(found, r->expected, r->size);
	if (i == r->size)
		return;
	wrong(t, r->page, what, found[i], r->expected[i]);
	memcpy(r->expected, found, r->size);
}

static void write_range(struct thread *t, const struct range *r, uint8_t *pages)
{
	for (size_t i = 0; i < r->size; i++)
		r->expected[i] = (uint8_t)below(t, 256);
	move(below(t, STYLES), pages + r->from, r->expected, r->size);
}

static void do_stretch(struct thread *t)
{
	struct range r = choose_range(t, 0);

	check_range(t, &r, run.pages, "stretch");
	write_range(t, &r, run.pages);
}

/* All others wait. */
static void look_at_stretches(struct thread *t, struct thread *owner)
{
	for (uint64_t page = 0; page < run.options->pages; page++) {
		struct range r = {
			page, page * PAGE + STRETCHES + owner->number * STRETCH_SIZE, STRETCH_SIZE, owner->stretch[page],
		};

		check_range(t, &r, run.pages, "stretch, of another one");
		r = (struct range){ page, page * PAGE + BORDER, BORDER_SIZE, owner->border[page] };
		if (page % 2 && owner_of(page) == owner->number)
			check_range(t, &r, run.pages, "border, of another one");
	}
}

/* --- records ------------------------------------------------------------------ */

static void record_of(uint8_t *record, uint64_t page, uint64_t version)
{
	uint64_t random = mix(mix(version) ^ page);

	memcpy(record, &version, 8);
	for (size_t i = 8; i < RECORD_SIZE; i++) {
		if (!(i % 8))
			random = mix(random);
		record[i] = (uint8_t)(random >> i % 8 * 8);
	}
}

/* @ticket has it, or will have it. */
static void check_record(struct thread *t, uint64_t page, uint32_t ticket, enum style style)
{
	uint8_t found[RECORD_SIZE], expected[RECORD_SIZE];
	uint64_t version;
	size_t i;

	move(style, found, run.pages + page * PAGE + RECORD, RECORD_SIZE);
	memcpy(&version, found, 8);
	record_of(expected, page, ticket);
	i = difference(found, expected, RECORD_SIZE);
	if (i < 8)
		wrong(t, page, "version", version, ticket);
	else if (i < RECORD_SIZE)
		wrong(t, page, "record", found[i], expected[i]);
}

static void do_record(struct thread *t)
{
	uint64_t page = below(t, run.options->pages), begun = 0;
	uint8_t *lock = run.pages + (page + run.options->pages - 1) % run.options->pages * PAGE + LOCK;
	enum style reads = below(t, STYLES), writes = below(t, STYLES);
	uint8_t next[RECORD_SIZE];
	uint32_t ticket = 1, turn;

	asm volatile("lock xaddl %0, %1" : "+r" (ticket), "+m" (*(uint32_t *)lock) : : "memory");
	for (uint64_t i = 1;; i++) {
		asm volatile("movl %1, %0" : "=r" (turn) : "m" (*(uint32_t *)(lock + 4)) : "memory");
		if (turn == ticket)
			break;
		_mm_pause();
		if (!(i % LOCK_SPINS)) {
			begun = begun ? begun : now_ns();
			if (now_ns() - begun > run.options->stuck_s * 1000000000ull)
				stuck(t, page, turn, ticket);
			sched_yield();
		}
	}
	check_record(t, page, ticket, reads);
	record_of(next, page, ticket + 1u);
	move(writes, run.pages + page * PAGE + RECORD, next, RECORD_SIZE);
	asm volatile("movl %1, %0" : "=m" (*(uint32_t *)(lock + 4)) : "r" (ticket + 1) : "memory");
}

/* All others wait. */
static void look_at_record(struct thread *t, uint64_t page)
{
	uint8_t *lock = run.pages + (page + run.options->pages - 1) % run.options->pages * PAGE + LOCK;
	uint32_t words[2];

	memcpy(words, lock, sizeof(words));
	if (words[0] != words[1])
		wrong(t, page, "lock", words[1], words[0]);
	check_record(t, page, words[0], BYTES);
}

/* --- system calls ------------------------------------------------------------- */

static void moved(struct thread *t, uint64_t page, const char *what, ssize_t size, size_t expected)
{
	if (size < 0)
		die("%s: %s", what, strerror(errno));
	if ((size_t)size != expected)
		wrong(t, page, what, (uint64_t)size, expected);
}

/*
 * The bytes of ranges go into a pipe or a file; the ranges are overwritten; the bytes come back into
 * other ranges of the same sizes.
 */
static void through_kernel(struct thread *t, unsigned int n, bool pipe)
{
	uint8_t bytes[RANGES][STRETCH_SIZE];
	struct range from[RANGES], to;
	struct iovec out[RANGES], in[RANGES];
	off_t place = below(t, 4 * PAGE);
	size_t size = 0;

	for (unsigned int i = 0; i < n; i++) {
		/* Small ones: each of them has to fit into a border. */
		from[i] = choose_range(t, 1 + below(t, BORDER_SIZE - 1));
		out[i] = (struct iovec){ run.pages + from[i].from, from[i].size };
		memcpy(bytes[i], from[i].expected, from[i].size);
		size += from[i].size;
	}
	if (pipe)
		moved(t, from[0].page, "write", n > 1 ? writev(t->pipe[1], out, (int)n) :
		      write(t->pipe[1], out[0].iov_base, out[0].iov_len), size);
	else
		moved(t, from[0].page, "pwrite", n > 1 ? pwritev(t->file, out, (int)n, place) :
		      pwrite(t->file, out[0].iov_base, out[0].iov_len, place), size);
	for (unsigned int i = 0; i < n; i++)
		write_range(t, &from[i], run.pages);
	/* One range after the other: two of them may overlap, and then the last one counts. */
	for (unsigned int i = 0; i < n; i++) {
		to = choose_range(t, from[i].size);
		memcpy(to.expected, bytes[i], to.size);
		in[i] = (struct iovec){ run.pages + to.from, to.size };
		from[i] = to;
	}
	if (pipe)
		moved(t, from[0].page, "read", n > 1 ? readv(t->pipe[0], in, (int)n) :
		      read(t->pipe[0], in[0].iov_base, in[0].iov_len), size);
	else
		moved(t, from[0].page, "pread", n > 1 ? preadv(t->file, in, (int)n, place) :
		      pread(t->file, in[0].iov_base, in[0].iov_len, place), size);
	for (unsigned int i = 0; i < n; i++)
		check_range(t, &from[i], run.pages, "what came back");
}

static void do_pipe(struct thread *t)
{
	through_kernel(t, 1, true);
}

static void do_file(struct thread *t)
{
	through_kernel(t, 1, false);
}

static void do_vectors(struct thread *t)
{
	through_kernel(t, 2 + below(t, RANGES - 1), below(t, 2));
}

/* --- pages that go and come ----------------------------------------------------- */

static uint8_t *map(uint8_t *where)
{
	int fixed = where ? MAP_FIXED : 0;
	uint8_t *found = mmap(where, (run.options->pages + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | fixed,
			      run.file, 0);

	if (found == MAP_FAILED)
		die("the pages can't be mapped: %s", strerror(errno));
	return found;
}

static void use_alias(struct thread *t, const struct range *r)
{
	check_range(t, r, t->alias, "alias");
	write_range(t, r, t->alias);
	check_range(t, r, run.pages, "after alias");
}

static void do_drop(struct thread *t)
{
	struct range r = choose_range(t, 0);
	/* What others have mapped loses its page table entry, and nothing else. */
	uint8_t *pages = below(t, 2) ? t->alias : run.pages;

	if (madvise(pages + r.page * PAGE, 2 * PAGE, MADV_DONTNEED))
		die("MADV_DONTNEED: %s", strerror(errno));
	use_alias(t, &r);
}

static void do_protect(struct thread *t)
{
	struct range r = choose_range(t, 0);
	uint8_t *page = t->alias + r.page * PAGE;

	if (mprotect(page, 2 * PAGE, PROT_NONE) || mprotect(page, 2 * PAGE, PROT_READ))
		die("mprotect: %s", strerror(errno));
	check_range(t, &r, t->alias, "alias, read only");
	if (mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE))
		die("mprotect: %s", strerror(errno));
	use_alias(t, &r);
}

static void do_remap(struct thread *t)
{
	struct range r = choose_range(t, 0);

	map(t->alias);
	use_alias(t, &r);
}

static void do_pressure(struct thread *t)
{
	uint64_t key = mix(t->random), pages = 1 + below(t, run.options->pressure);

	for (uint64_t i = 0; i < pages; i++)
		for (uint64_t at = 0; at < PAGE; at += 8)
			store(t->memory + i * PAGE + at, mix(key ^ (i * PAGE + at)));
	for (uint64_t i = 0; i < pages; i++)
		for (uint64_t at = 0; at < PAGE; at += 8) {
			uint64_t expected = mix(key ^ (i * PAGE + at)), found = load(t->memory + i * PAGE + at);

			if (found != expected) {
				wrong(t, i, "own memory", found, expected);
				break;
			}
		}
	if (madvise(t->memory, pages * PAGE, MADV_DONTNEED))
		die("MADV_DONTNEED: %s", strerror(errno));
	for (uint64_t i = 0; i < pages; i++)
		for (uint64_t at = 0; at < PAGE; at += 8)
			if (load(t->memory + i * PAGE + at)) {
				wrong(t, i, "not zero", load(t->memory + i * PAGE + at), 0);
				break;
			}
	if (madvise(t->memory, pages * PAGE, MADV_DONTNEED))
		die("MADV_DONTNEED: %s", strerror(errno));
}

static void do_migrate(struct thread *t)
{
	struct range r = choose_range(t, 0);
	void *page = run.pages + r.page * PAGE;
	int node = (int)run.options->node[below(t, 2)], status = 0;

	/* It may be busy; then it stays. */
	if (move_pages(0, 1, &page, &node, &status, MPOL_MF_MOVE_ALL) < 0)
		die("move_pages: %s", strerror(errno));
	check_range(t, &r, run.pages, "migrated");
	write_range(t, &r, run.pages);
}

/* --- hypercalls -------------------------------------------------------------------- */

/*
 * Their answers are the same at any time and on any CPU; of the last one, a CPU of another host
 * asks the guest's home.  Each fits into a border.
 */
static const struct call {
	uint64_t op, command;
	size_t size;
	uint32_t asks[2];	/* its first words */
} calls[] = {
	{ HYPERVISOR_XEN_VERSION, XENVER_GUEST_HANDLE, 16, { 0, 0 } },
	{ HYPERVISOR_XEN_VERSION, XENVER_GET_FEATURES, 8, { 0, 0 } },	/* of the first word */
	{ HYPERVISOR_EVENT_CHANNEL_OP, EVTCHNOP_STATUS, sizeof(struct evtchn_status), { DOMID_SELF, HOME_PORT } },
};
#define CALLS		(sizeof(calls) / sizeof(*calls))
#define ANSWER		sizeof(struct evtchn_status)	/* of the largest one */

/* Written before there are threads. */
static uint8_t answers[CALLS][ANSWER];
static int privcmd = -1;

static void ask(const struct call *call, uint8_t *bytes)
{
	memset(bytes, 0, call->size);
	memcpy(bytes, call->asks, call->size < 8 ? call->size : 8);
}

static void first_answers(void)
{
	uint8_t asked[ANSWER];

	privcmd = open(PRIVCMD, O_RDWR | O_CLOEXEC);
	if (privcmd < 0)
		die("hypercall: %s: %s", PRIVCMD, strerror(errno));
	for (unsigned int i = 0; i < CALLS; i++) {
		ask(&calls[i], answers[i]);
		if (hypercall(privcmd, calls[i].op, calls[i].command, answers[i]) < 0)
			die("hypercall %u of Xen: %s%s", i, strerror(errno), errno != EPERM ? "" :
			    " (Linux' argument xen_privcmd.unrestricted=1 allows it to a guest's programs)");
		ask(&calls[i], asked);
		if (!memcmp(answers[i], asked, calls[i].size))
			die("hypercall %u of Xen: the answer is what it was asked: that one is lost could not be seen", i);
	}
}

static void do_hypercall(struct thread *t)
{
	unsigned int which = below(t, CALLS);
	const struct call *call = &calls[which];
	struct range r = choose_range(t, call->size);
	uint8_t *pages = below(t, 2) ? t->alias : run.pages;
	uint64_t begun = 0;

	for (;;) {
		ask(call, r.expected);
		/* This also maps the page, if somebody has dropped it: Xen does not. */
		move(below(t, STYLES), pages + r.from, r.expected, r.size);
		if (hypercall(privcmd, call->op, call->command, pages + r.from) >= 0)
			break;
		/* It was dropped or has migrated meanwhile; a part of the answer may be there. */
		begun = begun ? begun : now_ns();
		if (errno != EFAULT || now_ns() - begun > run.options->stuck_s * 1000000000ull) {
			wrong(t, r.page, "refused", (uint64_t)errno, 0);
			memcpy(r.expected, pages + r.from, r.size);
			return;
		}
		t->again++;
	}
	memcpy(r.expected, answers[which], r.size);
	check_range(t, &r, run.pages, "answer");
}

/* --- threads ---------------------------------------------------------------------- */

static const struct { const char *name; void (*run)(struct thread *t); } operations[OPERATIONS] = {
	[READ]	    = { "read", do_read },
	[WRITE]	    = { "write", do_write },
	[ADD]	    = { "add", do_add },
	[EXCHANGE]  = { "exchange", do_exchange },
	[STRETCH]   = { "stretch", do_stretch },
	[RECORD_OP] = { "record", do_record },
	[PIPE]	    = { "pipe", do_pipe },
	[SOME_FILE] = { "file", do_file },
	[VECTORS]   = { "vector", do_vectors },
	[DROP]	    = { "drop", do_drop },
	[PROTECT]   = { "protect", do_protect },
	[REMAP]	    = { "remap", do_remap },
	[PRESSURE]  = { "pressure", do_pressure },
	[MIGRATE]   = { "migrate", do_migrate },
	[HYPERCALL] = { "hypercall", do_hypercall },
};

static const char *operation_name(unsigned int operation)
{
	return operations[operation].name;
}

static void turn_of(unsigned int number)
{
	struct thread *t = &threads[number];

	for (unsigned int i = 0; i < TURN; i++) {
		uint64_t begun;

		/* Nothing that it has seen decides about what comes. */
		t->random = mix(mix(run.options->seed * MOST_THREADS + t->number) ^ ++t->operations);
		t->operation = run.chosen[below(t, run.nr_chosen)];
		begun = __rdtsc();
		operations[t->operation].run(t);
		t->count[t->operation]++;
		if (__rdtsc() - begun >= run.slow)
			t->slow[t->operation]++;
	}
}

/* All others wait.  Return: whether there is another turn. */
static bool look(void)
{
	const struct options *options = run.options;
	struct thread *t = &threads[0];

	run.turns++;
	for (uint64_t page = 0; page < options->pages; page++) {
		/* What is found then is counted there. */
		t->operation = ADD;
		for (unsigned int counter = 0; counter < COUNTERS; counter++)
			if (counter_is(page, counter))
				look_at_counter(t, page, counter);
		t->operation = RECORD_OP;
		look_at_record(t, page);
	}
	t->operation = STRETCH;
	for (unsigned int i = 0; i < options->threads; i++)
		look_at_stretches(t, &threads[i]);
	return run.turns * TURN < options->operations && (!run.until || now_ns() < run.until);
}

static void print_result(void)
{
	uint64_t all = 0, all_wrong = 0, again = 0;

	for (unsigned int o = 0; o < OPERATIONS; o++) {
		uint64_t count = 0, slow = 0, bad = 0;

		for (unsigned int i = 0; i < run.options->threads; i++) {
			count += threads[i].count[o];
			slow += threads[i].slow[o];
			bad += threads[i].wrong[o];
		}
		/* What a look has found counts as that of one that was perhaps not chosen. */
		if (run.options->operation[o] || bad)
			printf("{\"event\":\"operation\",\"operation\":\"%s\",\"count\":%" PRIu64 ",\"slow\":%" PRIu64
			       ",\"wrong\":%" PRIu64 "}\n", operations[o].name, count, slow, bad);
		all += count;
		all_wrong += bad;
	}
	for (unsigned int i = 0; i < run.options->threads; i++)
		again += threads[i].again;
	printf("{\"event\":\"result\",\"turns\":%" PRIu64 ",\"operations\":%" PRIu64 ",\"wrong\":%" PRIu64
	       ",\"again\":%" PRIu64 "}\n",
	       run.turns, all, all_wrong, again);
	fflush(stdout);
}

/* --- words ------------------------------------------------------------------------ */

static void usage(FILE *out)
{
	fputs("Usage: dsm_torture [OPTION...]\n"
	      "All CPUs use the same few pages at once, and know what they have to find; a JSON object a line.\n\n"
	      "  --cpus=CPU,...    a thread on each, 8 at most (default: 0,1)\n"
	      "  --pages=N         that they use, 2 to 64 (default: 8)\n"
	      "  --operations=N    of each thread, in turns of 256 (default: 102400)\n"
	      "  --seconds=N       no turn begins after that (default: 0, no limit)\n"
	      "  --only=NAME,...   read, write, add, exchange, stretch, record, pipe, file, vector, drop, protect,\n"
	      "                    remap, pressure, migrate, hypercall (default: all; the last two only with\n"
	      "                    --nodes and --hypercalls)\n"
	      "  --nodes=A,B       where pages go to (default: they stay)\n"
	      "  --hypercalls      Xen, too, by /dev/xen/privcmd\n"
	      "  --pressure=PAGES  of memory of a thread's own, at most (default: 64)\n"
	      "  --slow-us=N       an operation that takes so long has waited for a page (default: 1000)\n"
	      "  --stuck-s=N       who waits so long for a lock waits for ever (default: 300)\n"
	      "  --seed=N          of all that is done (default: 1)\n\n"
	      "Exit status: 0; 1 something was lost, torn or old; 2 usage.\n", out);
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{ "cpus", required_argument, NULL, 'c' },
		{ "pages", required_argument, NULL, 'p' },
		{ "operations", required_argument, NULL, 'o' },
		{ "seconds", required_argument, NULL, 's' },
		{ "only", required_argument, NULL, 'y' },
		{ "nodes", required_argument, NULL, 'n' },
		{ "hypercalls", no_argument, NULL, 'x' },
		{ "pressure", required_argument, NULL, 'r' },
		{ "slow-us", required_argument, NULL, 'l' },
		{ "stuck-s", required_argument, NULL, 't' },
		{ "seed", required_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool all = true;
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->threads = numbers("cpus", optarg, 0, CPU_SETSIZE - 1, o->cpus, MOST_THREADS);
			break;
		case 'p':
			o->pages = (uint64_t)number("pages", optarg, 2, MOST_PAGES);
			break;
		case 'o':
			o->operations = (uint64_t)number("operations", optarg, 1, 1000000000000);
			break;
		case 's':
			o->seconds = (uint64_t)number("seconds", optarg, 0, 1000000000);
			break;
		case 'y':
			choose("only", optarg, o->operation, OPERATIONS, operation_name);
			all = false;
			break;
		case 'n':
			o->nodes = numbers("nodes", optarg, 0, numa_max_node(), o->node, 2);
			if (o->nodes != 2)
				die("--nodes=%s: want two", optarg);
			break;
		case 'x':
			o->hypercalls = true;
			break;
		case 'r':
			o->pressure = (uint64_t)number("pressure", optarg, 1, 1 << 24);
			break;
		case 'l':
			o->slow_us = (uint64_t)number("slow-us", optarg, 0, 100000000);
			break;
		case 't':
			o->stuck_s = (uint64_t)number("stuck-s", optarg, 1, 1000000);
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
	if (all)
		for (unsigned int i = 0; i < OPERATIONS; i++)
			o->operation[i] = i == MIGRATE ? o->nodes : i != HYPERCALL || o->hypercalls;
	if (o->operation[MIGRATE] && !o->nodes)
		die("migrate wants --nodes");
	if (o->operation[HYPERCALL] && !o->hypercalls)
		die("hypercall wants --hypercalls");
}

static void set_up(const struct options *o)
{
	size_t size = o->threads * sizeof(*threads);

	for (unsigned int i = 0; i < OPERATIONS; i++)
		if (o->operation[i])
			run.chosen[run.nr_chosen++] = i;
	if (!run.nr_chosen)
		die("--only: no operation");
	run.options = o;
	run.file = memfd_create("pages", 0);
	if (run.file < 0 || ftruncate(run.file, (off_t)((o->pages + 1) * PAGE)))
		die("no memory for %" PRIu64 " pages: %s", o->pages, strerror(errno));
	run.pages = map(NULL);
	if (o->operation[HYPERCALL])
		first_answers();
	threads = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (threads == MAP_FAILED)
		die("no memory");
	for (uint64_t page = 0; page < o->pages; page++) {
		record_of(run.pages + page * PAGE + RECORD, page, 0);
		for (unsigned int i = 0; i < o->threads; i++) {
			store(data_of(i, page), cell_value(i, page, 0));
			store(flag_of(i, page), cell_value(i, page, 0));
		}
	}
	for (unsigned int i = 0; i < o->threads; i++) {
		struct thread *t = &threads[i];

		t->number = i;
		t->alias = map(NULL);
		t->memory = mmap(NULL, o->pressure * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		t->file = memfd_create("file", 0);
		if (t->memory == MAP_FAILED || t->file < 0 || pipe(t->pipe))
			die("thread %u: %s", i, strerror(errno));
	}
}

int main(int argc, char **argv)
{
	struct options options = {
		.cpus = { 0, 1 }, .threads = 2, .pages = 8, .operations = 102400, .pressure = 64, .slow_us = 1000,
		.stuck_s = 300, .seed = 1,
	};
	uint64_t bad = 0;

	parse(&options, argc, argv);
	set_up(&options);
	run.slow = ticks_per_us() * options.slow_us;
	if (options.seconds)
		run.until = now_ns() + options.seconds * 1000000000ull;
	take_turns(options.threads, options.cpus, turn_of, look);
	print_result();
	for (unsigned int i = 0; i < options.threads; i++)
		for (unsigned int o = 0; o < OPERATIONS; o++)
			bad += threads[i].wrong[o];
	return bad ? 1 : 0;
}
