/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dsm_starve: does everybody get on whose pages all others take away?  Each thread is on a CPU
 * of its own.  CPUs of a guest may be on several hosts, with pages that go back and forth
 * between them: an instruction ends only when all of its pages are there at once.
 *
 * Phases, of --ms each, and what threads do in one without a pause:
 *
 *	word   each adds to a word of its own, all of them in one page
 *	movs   MOVSQ from a word in two pages to one in two pages; six with its own bytes
 *	xadd   LOCK XADD of a word in two pages; four with its own bytes
 *	rep    REP MOVSB of 512 bytes, from two pages to two; six with its own bytes
 *
 * The instruction itself lies in two pages.  Of each host the first CPU makes it: those of one
 * host after the other, and in a last phase of all hosts at once.  All other CPUs write to all
 * of its pages, in turn, a word of their own in each.
 *
 * Output, one JSON object a line; times are those of the guest's clock:
 *   {"event":"thread","phase":..,"what":"movs","cpu":..,"host":..,"wide":true|false,"count":..,
 *    "waits":..,"longest_us":..}
 *	wide: makes the instruction; count: of instructions, or of words written; waits: of
 *	those that took --slow-us or longer
 *   {"event":"result","phases":..,"ms":..,"wrong":..}
 *	wrong: words that are not what was written, at the end of a phase
 * Exit status: 0; 1 something is wrong; 2 usage, no such CPU or node, no memory.
 *
 * Locking: pages are what threads fight for, each with words of its own but for what the
 * instruction writes.  All else that threads share is written by thread 0 while all others wait.
 */
#define _GNU_SOURCE
#include <cpuid.h>
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

#include <numa.h>
#include <numaif.h>

#include "tsc.h"
#include "turns.h"
#include "words.h"

#define PAGE		4096ul
#define MOST_THREADS	TURNS_THREADS
#define MOST_HOSTS	8
#define SLOTS		1024u	/* bytes into each page: the words of threads */
#define SLOT		64u
#define LONG		512u	/* bytes that REP MOVSB copies, half of them in each page */

enum page { CODE, CODE_2, FROM, FROM_2, TO, TO_2, WORD, PAGES };
enum what { WORDS, MOVS, XADD, REP, WHATS };

#define IN(page)	(1u << (page))
#define ALL_SIX		(IN(CODE) | IN(CODE_2) | IN(FROM) | IN(FROM_2) | IN(TO) | IN(TO_2))

/*
 * As a function of C: to, from, what is added, how many bytes; its first byte is the last one of
 * a page.  @before, @bytes: of its operands, in the first of their two pages, and in all.
 */
static const struct instruction {
	const char *name;
	uint8_t code[8];
	unsigned int pages, before, bytes;
} instructions[WHATS] = {
	[WORDS]	= { "word", { 0 }, IN(WORD), 0, 0 },
	[MOVS]	= { "movs", { 0x48, 0xa5, 0xc3 }, ALL_SIX, 4, 8 },
	/* lock xadd %rdx, (%rdi) */
	[XADD]	= { "xadd", { 0xf0, 0x48, 0x0f, 0xc1, 0x17, 0xc3 }, IN(CODE) | IN(CODE_2) | IN(TO) | IN(TO_2), 4, 8 },
	[REP]	= { "rep",  { 0xf3, 0xa4, 0xc3 }, ALL_SIX, LONG / 2, LONG },
};

typedef void (*code)(void *to, const void *from, uint64_t add, uint64_t bytes);

/* A page of its own each, so that they are where the thread is. */
struct thread {
	_Alignas(4096) unsigned int number;
	long cpu, host;
	bool first;		/* of its host */
	uint64_t written[PAGES], instructions, waits, longest;
};

struct options {
	bool what[WHATS];
	long cpus[MOST_THREADS], hosts[MOST_THREADS], node;
	unsigned int nr_cpus;
	uint64_t ms, slow_us;
};

/* Of the run: written by thread 0 while all others wait. */
static _Alignas(4096) struct run {
	enum what what;
	long by;		/* the host whose first CPU makes the instruction; MOST_HOSTS: each */
	uint64_t ticks;		/* in a microsecond */
	unsigned int phases;	/* that have been */
	uint64_t wrong;
	const struct options *options;
} run;

static struct thread *threads;
static uint8_t *pages;

static uint8_t *at(enum page page)
{
	return pages + page * PAGE;
}

static volatile uint64_t *slot(enum page page, unsigned int thread)
{
	return (volatile uint64_t *)(at(page) + SLOTS + thread * SLOT);
}

static void *to(const struct instruction *i)
{
	return at(TO_2) - i->before;
}

static void *from(const struct instruction *i)
{
	return at(FROM_2) - i->before;
}

static bool is_wide(const struct thread *thread)
{
	return run.what != WORDS && thread->first && (run.by == MOST_HOSTS || run.by == thread->host);
}

/* --- a phase -------------------------------------------------------------- */

static void took(struct thread *thread, uint64_t begun, uint64_t ended)
{
	uint64_t ticks = ended - begun;

	if (ticks > thread->longest)
		thread->longest = ticks;
	thread->waits += ticks >= run.options->slow_us * run.ticks;
}

static void make_instructions(struct thread *thread, uint64_t end)
{
	const struct instruction *i = &instructions[run.what];
	code make = (code)(uintptr_t)(at(CODE_2) - 1);
	uint64_t begun, ended;

	do {
		begun = __rdtsc();
		make(to(i), from(i), 1, i->bytes);
		ended = __rdtsc();
		thread->instructions++;
		took(thread, begun, ended);
	} while (ended < end);
}

/* Whoever begins with another page than all others takes that first. */
static void write_words(struct thread *thread, uint64_t end)
{
	unsigned int page = thread->number % PAGES;
	uint64_t begun, ended = 0;

	do {
		page = (page + 1) % PAGES;
		if (!(instructions[run.what].pages & IN(page)))
			continue;
		begun = __rdtsc();
		++*slot(page, thread->number);
		ended = __rdtsc();
		thread->written[page]++;
		took(thread, begun, ended);
	} while (ended < end);
}

static void turn_of(unsigned int number)
{
	struct thread *thread = &threads[number];
	unsigned int a, b, c, d;
	uint64_t end;

	/* Another CPU has written what is executed: that wants an instruction that serializes (SDM 3A, cross-modifying code). */
	__cpuid(0, a, b, c, d);
	end = __rdtsc() + run.options->ms * 1000 * run.ticks;
	if (is_wide(thread))
		make_instructions(thread, end);
	else
		write_words(thread, end);
}

/* --- phases --------------------------------------------------------------- */

static bool has_cpus(long host)
{
	for (unsigned int thread = 0; thread < run.options->nr_cpus; thread++)
		if (run.options->hosts[thread] == host)
			return true;
	return false;
}

/* By each host, then by all; words by all only. */
static bool is_phase(enum what what, long by)
{
	return run.options->what[what] && (by == MOST_HOSTS || (what != WORDS && has_cpus(by)));
}

/* Return: whether there is one. */
static bool next_phase(void)
{
	do {
		if (++run.by > MOST_HOSTS) {
			run.by = 0;
			if (++run.what == WHATS)
				return false;
		}
	} while (!is_phase(run.what, run.by));
	return true;
}

/* The next phase.  All others wait.  Return: whether there is one. */
static bool begin(void)
{
	const struct instruction *i;

	if (!next_phase())
		return false;
	i = &instructions[run.what];
	for (enum page page = CODE; page < PAGES; page++)
		for (unsigned int thread = 0; thread < run.options->nr_cpus; thread++)
			*slot(page, thread) = 0;
	memcpy(at(CODE_2) - 1, i->code, sizeof(i->code));
	memset(at(TO_2) - LONG / 2, 0, LONG);
	/* Other bytes in each phase, and none of them 0. */
	for (unsigned int byte = 0; byte < LONG; byte++)
		at(FROM_2)[(long)byte - (long)LONG / 2] = (uint8_t)(1 + (byte + run.phases) % 255);
	for (unsigned int thread = 0; thread < run.options->nr_cpus; thread++) {
		struct thread *t = &threads[thread];

		memset(t->written, 0, sizeof(t->written));
		t->instructions = t->waits = t->longest = 0;
	}
	return true;
}

/* All others wait.  Return: whether there is another phase. */
static bool look(void)
{
	const struct instruction *i = &instructions[run.what];
	uint64_t made = 0, found;

	for (unsigned int thread = 0; thread < run.options->nr_cpus; thread++) {
		const struct thread *t = &threads[thread];
		uint64_t written = 0;

		made += t->instructions;
		for (enum page page = CODE; page < PAGES; page++) {
			written += t->written[page];
			run.wrong += *slot(page, thread) != t->written[page];
		}
		printf("{\"event\":\"thread\",\"phase\":%u,\"what\":\"%s\",\"cpu\":%ld,\"host\":%ld,"
		       "\"wide\":%s,\"count\":%" PRIu64 ",\"waits\":%" PRIu64 ",\"longest_us\":%" PRIu64 "}\n",
		       run.phases, i->name, t->cpu, t->host, is_wide(t) ? "true" : "false",
		       is_wide(t) ? t->instructions : written, t->waits, t->longest / run.ticks);
	}
	fflush(stdout);
	memcpy(&found, to(i), sizeof(found));
	if (run.what == XADD)
		run.wrong += found != made;
	else if (run.what != WORDS)
		run.wrong += !!memcmp(to(i), from(i), i->bytes);
	run.phases++;
	return begin();
}

/* --- words ---------------------------------------------------------------- */

static void usage(FILE *out)
{
	fputs("Usage: dsm_starve [OPTION...]\n"
	      "CPUs that take each other's pages away, and instructions that need many of them; a JSON object a line.\n\n"
	      "  --what=NAME,...   word, movs, xadd, rep (default: all)\n"
	      "  --cpus=CPU,...    of the threads (default: 0,1)\n"
	      "  --hosts=HOST,...  of each of these CPUs, from 0 (default: one each)\n"
	      "  --node=NODE       where the pages are (default: anywhere)\n"
	      "  --ms=N            of each phase (default: 1000)\n"
	      "  --slow-us=N       what takes so long has waited for a page (default: 100)\n\n"
	      "Exit status: 0; 1 a word is wrong; 2 usage.\n", out);
}

static const char *what_name(unsigned int what)
{
	return instructions[what].name;
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{ "what", required_argument, NULL, 'w' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "hosts", required_argument, NULL, 'o' },
		{ "node", required_argument, NULL, 'n' },
		{ "ms", required_argument, NULL, 'm' },
		{ "slow-us", required_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned int nr_hosts = 0;
	int c;

	for (enum what what = WORDS; what < WHATS; what++)
		o->what[what] = true;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'w':
			choose("what", optarg, o->what, WHATS, what_name);
			break;
		case 'c':
			o->nr_cpus = numbers("cpus", optarg, 0, CPU_SETSIZE - 1, o->cpus, MOST_THREADS);
			break;
		case 'o':
			nr_hosts = numbers("hosts", optarg, 0, MOST_HOSTS - 1, o->hosts, MOST_THREADS);
			break;
		case 'n':
			o->node = number("node", optarg, 0, 63);
			break;
		case 'm':
			o->ms = (uint64_t)number("ms", optarg, 1, 10000000);
			break;
		case 'l':
			o->slow_us = (uint64_t)number("slow-us", optarg, 0, 10000000);
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
	if (!memchr(o->what, true, sizeof(o->what)))
		die("--what: names nothing");
	if (!nr_hosts && o->nr_cpus > MOST_HOSTS)
		die("--cpus has %u, and there are %d hosts at most: want --hosts", o->nr_cpus, MOST_HOSTS);
	for (unsigned int i = 0; !nr_hosts && i < o->nr_cpus; i++)
		o->hosts[i] = (long)i;
	if (nr_hosts && nr_hosts != o->nr_cpus)
		die("--hosts has %u, --cpus %u", nr_hosts, o->nr_cpus);
}

static void make_pages(long node)
{
	unsigned long mask = 1ul << (node & 63);

	pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		die("no memory");
	if (node >= 0 && mbind(pages, PAGES * PAGE, MPOL_BIND, &mask, 64, 0))
		die("memory of node %ld: %s", node, strerror(errno));
	memset(pages, 0, PAGES * PAGE);
}

int main(int argc, char **argv)
{
	struct options options = { .cpus = { 0, 1 }, .nr_cpus = 2, .node = -1, .ms = 1000, .slow_us = 100 };

	parse(&options, argc, argv);
	run.options = &options;
	make_pages(options.node);
	threads = aligned_alloc(PAGE, MOST_THREADS * sizeof(*threads));
	if (!threads)
		die("no memory");
	memset(threads, 0, MOST_THREADS * sizeof(*threads));
	run.ticks = ticks_per_us();
	for (unsigned int i = 0; i < options.nr_cpus; i++) {
		threads[i].number = i;
		threads[i].cpu = options.cpus[i];
		threads[i].host = options.hosts[i];
		threads[i].first = true;
		for (unsigned int other = 0; other < i; other++)
			threads[i].first &= options.hosts[other] != options.hosts[i];
	}
	/* Before the first one. */
	run.what = WORDS;
	run.by = -1;
	if (begin())
		take_turns(options.nr_cpus, options.cpus, turn_of, look);
	printf("{\"event\":\"result\",\"phases\":%u,\"ms\":%" PRIu64 ",\"wrong\":%" PRIu64 "}\n",
	       run.phases, options.ms, run.wrong);
	return run.wrong ? 1 : 0;
}
