/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dsm_membench: what memory costs that is not at hand: of another host (DSM),
 * or swapped out.
 *
 *	dsm_membench touch [--node=N] [--cpu=C] [--sizes=PAGES,...] [--flush=PAGES]
 *			   [--together=0|1] [--writes=0|1] [--pageout=FILE]
 *			   [--rounds=R] [--seed=S]
 *	dsm_membench copy [--node=N] [--source-node=N] [--cpus=C,...] [--mib=M]
 *			  [--rounds=R]
 *
 * touch: for each size, reads and writes so many pages, in order and in an order
 * by chance; --writes=0: reads only, once all is written.  Each page is touched once: all its words are compared with what
 * was written last, or written anew.  Before each pass --flush pages are read
 * that nobody measures, so that those of the pass are not at hand: there have to
 * be more than fit.  --pageout=FILE, memory.reclaim of the control group that this
 * runs in: before that the kernel is asked to swap those of the pass out, because
 * it keeps what was used often rather than what was used last, and then all of the
 * group; again until they are out.  --together=1: passes of all sizes follow one
 * reading of --flush pages, each over pages of its own, which are GAP apart: all of
 * them have to fit at once.  After a pass the same pages are read once more:
 * state "warm", if they fit.  The time of a pass is the sum over its pages; the
 * time of its single misses that of the first word of each page, by the TSC, whose
 * rate is taken from CLOCK_MONOTONIC over the same pass.
 *
 * copy: the memory benchmark of An et al. (ETRI Journal 2024): each thread, one
 * on each of --cpus, maps memory of its own, populates it and copies a source
 * into it that all share; each step begins when all have done the one before.
 *
 * --node -1, the default: no node is asked for.  Pages are 4 KiB: no huge ones.
 *
 * Output, one JSON object a line:
 *   {"event":"pass","round":..,"what":"read"|"write","order":"sequential"|"random",
 *    "state":"cold"|"warm","pages":..,"ns":..,"major":..,
 *    "first_ns":{"p10":..,"p50":..,"p90":..,"p99":..,"max":..},
 *    "buckets":[[ns,pages],..]}
 *	major: faults for which the guest's kernel had to read; a miss of DSM is none
 *	buckets: first words that took less than ns and not less than the bucket
 *	before; four to each power of two
 *   {"event":"copy","round":..,"threads":..,"mib":..,"map_ns":..,"populate_ns":..,
 *    "memcpy_ns":..}
 *   {"event":"result","checks":..,"bad_pages":..,"accesses":..,"access_ns":..}
 *	accesses: first words whose page may have been missed, those that nobody
 *	measures, too: when memory is first written, --flush, cold passes
 * Exit status: 0; 1 if a page had a wrong word; 2 usage, no such node or CPU, no
 * memory.
 *
 * Locking: the threads of copy share the source, which nobody writes then, and
 * meet at barriers; all else belongs to one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <numa.h>
#include <numaif.h>
#include <x86intrin.h>

#include "words.h"

#define PAGE		4096UL
#define WORDS		(PAGE / sizeof(uint64_t))
#define MIB		(1024UL * 1024)
#define MAX_PAGES	(1UL << 24)
#define MAX_SIZES	16
#define MAX_THREADS	64
#define MAX_ROUNDS	1000
#define GAP		32	/* pages between those of two sizes: more than are read ahead */
#define PAGE_OUTS	32	/* turns after which pages that stay are an error */
#define BUCKETS		160

struct options {
	long node, source_node;
	long cpus[MAX_THREADS], sizes[MAX_SIZES];
	unsigned int nr_cpus, nr_sizes;
	long flush, together, writes, rounds, mib, seed;
	const char *pageout;	/* NULL: no page is swapped out */
};

struct region {
	uint64_t *memory;
	uint32_t *generation;	/* of each page; what it has to contain */
	unsigned long pages;
	uint64_t salt;		/* so that no two regions have the same content */
};

static unsigned long checks, bad_pages;
/* All that may have missed; TSC ticks.  Of the one thread that touches. */
static unsigned long accesses;
static uint64_t access_ticks;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Knuth's MMIX generator; the high bits are the good ones. */
static uint64_t dice(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* --- memory -------------------------------------------------------------- */

/* Pages of @node; nothing is touched yet. */
static void *map_on(long node, size_t bytes)
{
	struct bitmask *nodes;
	void *memory;

	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("no %zu bytes: %s", bytes, strerror(errno));
	/* EINVAL: a kernel without huge pages. */
	if (madvise(memory, bytes, MADV_NOHUGEPAGE) && errno != EINVAL)
		die("madvise: %s", strerror(errno));
	if (node < 0)
		return memory;
	nodes = numa_allocate_nodemask();
	numa_bitmask_setbit(nodes, (unsigned int)node);
	if (mbind(memory, bytes, MPOL_BIND, nodes->maskp, nodes->size + 1, 0))
		die("node %ld: %s", node, strerror(errno));
	numa_free_nodemask(nodes);
	return memory;
}

static uint64_t content(const struct region *region, unsigned long page,
			unsigned long word)
{
	uint64_t x = region->salt ^ ((uint64_t)region->generation[page] << 40) ^
		     ((uint64_t)page << 9) ^ word;

	return x * 0x9e3779b97f4a7c15u;
}

/* Also for the first word, whose time is measured before. */
static void check_page(const struct region *region, unsigned long page)
{
	const volatile uint64_t *p = region->memory + page * WORDS;

	checks++;
	for (unsigned long w = 0; w < WORDS; w++) {
		uint64_t want = content(region, page, w), got = p[w];

		if (got == want)
			continue;
		fprintf(stderr,
			"dsm_membench: page %lu word %lu: %016" PRIx64 ", expected %016" PRIx64 "\n",
			page, w, got, want);
		bad_pages++;
		return;
	}
}

static void write_page(struct region *region, unsigned long page)
{
	volatile uint64_t *p = region->memory + page * WORDS;

	region->generation[page]++;
	for (unsigned long w = 0; w < WORDS; w++)
		p[w] = content(region, page, w);
}

/* TSC ticks that the first word of a page takes.  The fences: neither access begins early, nor ends late. */
static uint64_t first_word(volatile uint64_t *p, bool write)
{
	uint64_t ticks;

	_mm_mfence();
	_mm_lfence();
	ticks = __rdtsc();
	if (write)
		*p = 0;	/* all of it is written later */
	else
		(void)*p;
	_mm_mfence();
	_mm_lfence();
	return __rdtsc() - ticks;
}

/* The same; the page may be elsewhere. */
static uint64_t counted_word(const struct region *region, unsigned long page,
			     bool write)
{
	uint64_t ticks = first_word(region->memory + page * WORDS, write);

	accesses++;
	access_ticks += ticks;
	return ticks;
}

static void make_region(struct region *region, long node, unsigned long pages,
			uint64_t salt)
{
	region->pages = pages;
	region->salt = salt << 33;
	region->memory = pages ? map_on(node, pages * PAGE) : NULL;
	region->generation = calloc(pages ? pages : 1, sizeof(*region->generation));
	if (!region->generation)
		die("no memory for %lu generations", pages);
	for (unsigned long i = 0; i < pages; i++) {
		counted_word(region, i, true);
		write_page(region, i);
	}
}

static void free_region(struct region *region)
{
	if (region->memory)
		munmap(region->memory, region->pages * PAGE);
	free(region->generation);
}

/* --- touch ---------------------------------------------------------------- */

struct pass {
	long round;
	bool writes, random, warm;
	unsigned long begin, pages;
	uint64_t ns;
	unsigned long major;
	uint64_t *first;	/* TSC ticks, then ns, of the first word of each page */
};

/* The bucket of a time: four to each power of two, from 4 ns on. */
static unsigned int bucket_of(uint64_t ns)
{
	unsigned int log;

	if (ns < 4)
		return 0;
	log = 63 - (unsigned int)__builtin_clzll(ns);
	log = (log - 2) * 4 + (unsigned int)((ns >> (log - 2)) & 3);
	return log < BUCKETS - 1 ? log : BUCKETS - 1;
}

static uint64_t bucket_end(unsigned int bucket)
{
	return (uint64_t)(5 + bucket % 4) << (bucket / 4);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t quantile(const struct pass *pass, unsigned int percent)
{
	return pass->first[(pass->pages - 1) * percent / 100];
}

static void print_pass(struct pass *pass)
{
	unsigned long counted[BUCKETS] = { 0 };
	const char *comma = "";

	qsort(pass->first, pass->pages, sizeof(pass->first[0]), by_size);
	for (unsigned long i = 0; i < pass->pages; i++)
		counted[bucket_of(pass->first[i])]++;
	printf("{\"event\":\"pass\",\"round\":%ld,\"what\":\"%s\",\"order\":\"%s\",\"state\":\"%s\",\"pages\":%lu,\"ns\":%" PRIu64 ",\"major\":%lu",
	       pass->round, pass->writes ? "write" : "read",
	       pass->random ? "random" : "sequential",
	       pass->warm ? "warm" : "cold", pass->pages, pass->ns,
	       pass->major);
	printf(",\"first_ns\":{\"p10\":%" PRIu64 ",\"p50\":%" PRIu64 ",\"p90\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"max\":%" PRIu64 "},\"buckets\":[",
	       quantile(pass, 10), quantile(pass, 50), quantile(pass, 90),
	       quantile(pass, 99), quantile(pass, 100));
	for (unsigned int i = 0; i < BUCKETS; i++) {
		if (!counted[i])
			continue;
		printf("%s[%" PRIu64 ",%lu]", comma, bucket_end(i), counted[i]);
		comma = ",";
	}
	puts("]}");
	fflush(stdout);
}

static void shuffle(uint32_t *order, unsigned long pages, uint64_t *state)
{
	for (unsigned long i = pages; i > 1; i--) {
		unsigned long j = dice(state) % i;
		uint32_t kept = order[i - 1];

		order[i - 1] = order[j];
		order[j] = kept;
	}
}

static unsigned long major_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (unsigned long)usage.ru_majflt;
}

static void run_pass(struct region *region, const uint32_t *order,
		     struct pass *pass)
{
	uint64_t ticks, begun, tick_begun;
	unsigned long page;

	pass->major = major_faults();
	begun = now_ns();
	tick_begun = __rdtsc();
	for (unsigned long i = 0; i < pass->pages; i++) {
		page = pass->begin + order[i];
		pass->first[i] = pass->warm ? first_word(region->memory + page * WORDS, false) :
					      counted_word(region, page, pass->writes);
		if (pass->writes)
			write_page(region, page);
		else
			check_page(region, page);
	}
	ticks = __rdtsc() - tick_begun;
	pass->ns = now_ns() - begun;
	pass->major = major_faults() - pass->major;
	for (unsigned long i = 0; i < pass->pages; i++)
		pass->first[i] = (uint64_t)((double)pass->first[i] *
					    (double)pass->ns / (double)ticks);
}

static void flush(const struct region *region)
{
	for (unsigned long i = 0; i < region->pages; i++) {
		counted_word(region, i, false);
		check_page(region, i);
	}
}

/* Of its first pages: those that are in memory, on their way out, too (mincore(2) counts the swap cache). */
static unsigned long resident(const struct region *region, unsigned long pages)
{
	unsigned char *in = malloc(pages);
	unsigned long n = 0;

	if (!in || mincore(region->memory, pages * PAGE, in))
		die("mincore() of %lu pages: %s", pages, strerror(errno));
	for (unsigned long i = 0; i < pages; i++)
		n += in[i] & 1;
	free(in);
	return n;
}

/* Whatever can go, as well from the lists of single CPUs, where no page of a pass is found otherwise. */
static void reclaim(const char *path)
{
	static const char all[] = "1G";
	int file = open(path, O_WRONLY | O_CLOEXEC);

	/* EAGAIN: there was less than that. */
	if (file < 0 || (write(file, all, sizeof(all) - 1) < 0 && errno != EAGAIN))
		die("%s: %s", path, strerror(errno));
	close(file);
}

/*
 * Until hardly any of the pages is left in memory.  What the kernel is asked to
 * swap out stays until it is written, so it is asked again.  The others are read
 * last: they fill the memory that is at hand.
 */
static void page_out(const struct region *region, const struct region *others,
		     unsigned long pages, const char *path)
{
	unsigned long left;

	for (unsigned int turn = 0; turn < PAGE_OUTS; turn++) {
		if (madvise(region->memory, region->pages * PAGE, MADV_PAGEOUT))
			die("MADV_PAGEOUT: %s", strerror(errno));
		reclaim(path);
		flush(others);
		left = resident(region, pages);
		if (left <= pages / 8)
			return;
	}
	die("%lu of %lu pages are still in memory after they were to be swapped out %u times",
	    left, pages, PAGE_OUTS);
}

/* Of the pages of one size, when nothing of them is at hand; then once more, when all is. */
static void two_passes(struct region *measured, uint32_t *order,
		       struct pass *pass, uint64_t *state)
{
	bool writes = pass->writes;

	for (unsigned long page = 0; page < pass->pages; page++)
		order[page] = (uint32_t)page;
	if (pass->random)
		shuffle(order, pass->pages, state);
	pass->warm = false;
	run_pass(measured, order, pass);
	print_pass(pass);
	pass->writes = false;
	pass->warm = true;
	run_pass(measured, order, pass);
	print_pass(pass);
	pass->writes = writes;
}

/* All sizes after one flush, each over pages of its own. In each second round, or by an odd seed, the large ones come first. */
static void together_passes(const struct options *options, struct region *measured,
			    const struct region *others, uint32_t *order,
			    struct pass *pass, uint64_t *state)
{
	unsigned int n, i, j;

	flush(others);
	for (n = 0; n < options->nr_sizes; n++) {
		i = (pass->round + options->seed) & 1 ? options->nr_sizes - 1 - n : n;
		pass->pages = (unsigned long)options->sizes[i];
		pass->begin = 0;
		for (j = 0; j < i; j++)
			pass->begin += (unsigned long)options->sizes[j] + GAP;
		two_passes(measured, order, pass, state);
	}
}

static void touch(const struct options *options)
{
	unsigned long most = 0, all = 0;
	struct region measured, others;
	struct pass pass = { 0 };
	uint64_t state = (uint64_t)options->seed;
	uint64_t begun = now_ns(), tick_begun = __rdtsc();
	uint32_t *order;

	for (unsigned int i = 0; i < options->nr_sizes; i++) {
		all += (unsigned long)options->sizes[i] + (i ? GAP : 0);
		if ((unsigned long)options->sizes[i] > most)
			most = (unsigned long)options->sizes[i];
	}
	order = calloc(most, sizeof(*order));
	pass.first = calloc(most, sizeof(*pass.first));
	if (!order || !pass.first)
		die("no memory for the order of %lu pages", most);
	/* At hand from the start, so that nothing else is missed in a pass. */
	memset(order, 0xff, most * sizeof(*order));
	memset(pass.first, 0xff, most * sizeof(*pass.first));
	make_region(&measured, options->node, options->together ? all : most, 1);
	make_region(&others, options->node, (unsigned long)options->flush, 2);
	for (pass.round = 0; pass.round < options->rounds; pass.round++) {
		for (unsigned int i = 0; i < (options->together ? 1 : options->nr_sizes) * 4; i++) {
			pass.writes = i & 1;
			pass.random = i & 2;
			if (pass.writes && !options->writes)
				continue;
			if (options->together) {
				together_passes(options, &measured, &others, order, &pass, &state);
				continue;
			}
			pass.pages = (unsigned long)options->sizes[i / 4];
			if (options->pageout)
				page_out(&measured, &others, pass.pages, options->pageout);
			else
				flush(&others);
			two_passes(&measured, order, &pass, &state);
		}
	}
	access_ticks = (uint64_t)((double)access_ticks * (double)(now_ns() - begun) /
				  (double)(__rdtsc() - tick_begun));
	free_region(&others);
	free_region(&measured);
	free(pass.first);
	free(order);
}

/* --- copy ----------------------------------------------------------------- */

enum step { STEP_MAP, STEP_POPULATE, STEP_MEMCPY, STEPS };

struct copier {
	pthread_t thread;
	const struct options *options;
	const struct region *source;
	long cpu;
	uint64_t ended[STEPS];
	unsigned long bad;
};

static pthread_barrier_t together;
static uint64_t begun[STEPS];	/* written by one thread, read after a barrier */

static void pin(long cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("CPU %ld: %s", cpu, strerror(errno));
}

static void begin(enum step step)
{
	if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD)
		begun[step] = now_ns();
	pthread_barrier_wait(&together);
}

static void *copy_one(void *arg)
{
	struct copier *copier = arg;
	const struct region *source = copier->source;
	size_t bytes = source->pages * PAGE;
	uint8_t *target;

	pin(copier->cpu);
	begin(STEP_MAP);
	target = map_on(copier->options->node, bytes);
	copier->ended[STEP_MAP] = now_ns();
	begin(STEP_POPULATE);
	for (size_t i = 0; i < bytes; i += PAGE)
		((volatile uint8_t *)target)[i] = 1;
	copier->ended[STEP_POPULATE] = now_ns();
	begin(STEP_MEMCPY);
	memcpy(target, source->memory, bytes);
	copier->ended[STEP_MEMCPY] = now_ns();

	pthread_barrier_wait(&together);	/* nobody measures any more */
	for (unsigned long page = 0; page < source->pages; page++) {
		const uint64_t *p = (const uint64_t *)target + page * WORDS;
		bool wrong = false;

		for (unsigned long w = 0; w < WORDS; w++)
			wrong |= p[w] != content(source, page, w);
		copier->bad += wrong;
	}
	munmap(target, bytes);
	return NULL;
}

static void copy_round(const struct options *options,
		       const struct region *source, long round)
{
	struct copier copiers[MAX_THREADS] = { 0 };
	uint64_t longest[STEPS] = { 0 };
	unsigned int i, step;

	pthread_barrier_init(&together, NULL, options->nr_cpus);
	for (i = 0; i < options->nr_cpus; i++) {
		copiers[i].options = options;
		copiers[i].source = source;
		copiers[i].cpu = options->cpus[i];
		if (pthread_create(&copiers[i].thread, NULL, copy_one, &copiers[i]))
			die("cannot start thread %u", i);
	}
	for (i = 0; i < options->nr_cpus; i++) {
		pthread_join(copiers[i].thread, NULL);
		checks += source->pages;
		bad_pages += copiers[i].bad;
	}
	pthread_barrier_destroy(&together);
	for (i = 0; i < options->nr_cpus; i++)
		for (step = 0; step < STEPS; step++)
			if (copiers[i].ended[step] - begun[step] > longest[step])
				longest[step] = copiers[i].ended[step] - begun[step];
	printf("{\"event\":\"copy\",\"round\":%ld,\"threads\":%u,\"mib\":%ld,\"map_ns\":%" PRIu64 ",\"populate_ns\":%" PRIu64 ",\"memcpy_ns\":%" PRIu64 "}\n",
	       round, options->nr_cpus, options->mib, longest[STEP_MAP],
	       longest[STEP_POPULATE], longest[STEP_MEMCPY]);
	fflush(stdout);
}

static void copy(const struct options *options)
{
	struct region source;

	make_region(&source, options->source_node,
		    (unsigned long)options->mib * MIB / PAGE, 3);
	for (long round = 0; round < options->rounds; round++)
		copy_round(options, &source, round);
	free_region(&source);
}

/* --- options --------------------------------------------------------------- */

static bool takes(const char *word, const char *name, const char **value)
{
	size_t length = strlen(name);

	if (strncmp(word, "--", 2) || strncmp(word + 2, name, length) ||
	    word[2 + length] != '=')
		return false;
	*value = word + 3 + length;
	return true;
}

static void parse(struct options *o, bool copies, char **words)
{
	const char *value;

	for (; *words; words++) {
		if (takes(*words, "node", &value))
			o->node = number("node", value, -1, numa_max_node());
		else if (takes(*words, "rounds", &value))
			o->rounds = number("rounds", value, 1, MAX_ROUNDS);
		else if (copies && takes(*words, "source-node", &value))
			o->source_node = number("source-node", value, -1, numa_max_node());
		else if (copies && takes(*words, "cpus", &value))
			o->nr_cpus = numbers("cpus", value, 0, CPU_SETSIZE - 1, o->cpus, MAX_THREADS);
		else if (copies && takes(*words, "mib", &value))
			o->mib = number("mib", value, 1, (long)(MAX_PAGES / 256));
		else if (!copies && takes(*words, "cpu", &value))
			o->cpus[0] = number("cpu", value, 0, CPU_SETSIZE - 1);
		else if (!copies && takes(*words, "sizes", &value))
			o->nr_sizes = numbers("sizes", value, 1, (long)MAX_PAGES, o->sizes, MAX_SIZES);
		else if (!copies && takes(*words, "flush", &value))
			o->flush = number("flush", value, 0, (long)MAX_PAGES);
		else if (!copies && takes(*words, "together", &value))
			o->together = number("together", value, 0, 1);
		else if (!copies && takes(*words, "writes", &value))
			o->writes = number("writes", value, 0, 1);
		else if (!copies && takes(*words, "pageout", &value))
			o->pageout = value;
		else if (!copies && takes(*words, "seed", &value))
			o->seed = number("seed", value, 0, LONG_MAX);
		else
			die("%s: no such option", *words);
	}
}

int main(int argc, char **argv)
{
	struct options options = {
		.node = -1, .source_node = -1, .cpus = { -1 }, .nr_cpus = 1,
		.sizes = { 256 }, .nr_sizes = 1, .rounds = 1, .mib = 4,
		.seed = 1, .writes = 1,
	};
	bool copies;

	if (argc < 2 || (strcmp(argv[1], "touch") && strcmp(argv[1], "copy"))) {
		fputs("Usage: dsm_membench touch|copy [--OPTION=VALUE...]; see the source's first lines\n", stderr);
		return 2;
	}
	copies = !strcmp(argv[1], "copy");
	if (numa_available() < 0)
		die("this kernel has no NUMA");
	parse(&options, copies, argv + 2);
	if (options.together && options.pageout)
		die("--together=1 --pageout: pages are swapped out for one size at a time");
	if (copies) {
		copy(&options);
	} else {
		pin(options.cpus[0]);
		touch(&options);
	}
	printf("{\"event\":\"result\",\"checks\":%lu,\"bad_pages\":%lu,\"accesses\":%lu,\"access_ns\":%" PRIu64 "}\n",
	       checks, bad_pages, copies ? 0 : accesses, copies ? 0 : access_ticks);
	return bad_pages ? 1 : 0;
}
