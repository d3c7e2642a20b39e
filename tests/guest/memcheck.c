/* SPDX-License-Identifier: GPL-2.0 */
/*
 * memcheck: a load on memory that notices each word that is lost or changed.
 *
 * A few threads each own a part of one anonymous mapping.  A thread picks a
 * page at random, compares all of it with what it wrote there last, and
 * then writes the next generation of the page, or gives the page back with
 * MADV_DONTNEED and expects zeros.  Pages are thus written, moved and freed
 * while nodes come and go.
 *
 * Usage: memcheck MIB THREADS       MIB 1 to 65536, THREADS 1 to 64
 * It prints "ready" when all pages were written once, runs until SIGTERM,
 * checks every page a last time and prints
 *   {"checks":..,"bad_pages":..}
 * Exit status: 0 nothing was wrong; 1 a page was; 2 usage or no memory.
 *
 * Locking: none is needed, no page is shared; `stop` is an atomic flag.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE		4096UL
#define WORDS		(PAGE / sizeof(uint64_t))
#define MIB		(1024UL * 1024)
#define MAX_MIB		65536UL
#define MAX_THREADS	64UL
#define FREE_ONE_IN	16	/* how often a page is given back */

struct part {
	pthread_t thread;
	uint64_t *memory;	/* pages * WORDS */
	uint32_t *generation;	/* of each page; 0: given back, all zero */
	unsigned long pages, number;
	unsigned long checks, bad;
};

static atomic_bool stop;
static pthread_barrier_t written;

static uint64_t expected(const struct part *part, unsigned long page,
			 unsigned long word)
{
	uint64_t x = part->generation[page];

	if (x == 0)
		return 0;
	x = (x << 40) ^ (part->number << 32) ^ (page << 9) ^ word;
	return x * 0x9e3779b97f4a7c15ULL;
}

static void check(struct part *part, unsigned long page)
{
	const volatile uint64_t *p = part->memory + page * WORDS;

	part->checks++;
	for (unsigned long w = 0; w < WORDS; w++) {
		uint64_t want = expected(part, page, w), got = p[w];

		if (got == want)
			continue;
		fprintf(stderr,
			"memcheck: part %lu page %lu word %lu: %016llx, expected %016llx\n",
			part->number, page, w, (unsigned long long)got,
			(unsigned long long)want);
		part->bad++;
		return;
	}
}

static void write_page(struct part *part, unsigned long page)
{
	uint64_t *p = part->memory + page * WORDS;

	part->generation[page]++;
	for (unsigned long w = 0; w < WORDS; w++)
		p[w] = expected(part, page, w);
}

static void *run(void *arg)
{
	struct part *part = arg;
	uint64_t random = part->number * 2 + 1;

	for (unsigned long page = 0; page < part->pages; page++)
		write_page(part, page);
	pthread_barrier_wait(&written);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		unsigned long page;

		/* Knuth's MMIX generator; the high bits are the good ones */
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		page = (random >> 33) % part->pages;
		check(part, page);
		if ((random >> 24) % FREE_ONE_IN == 0) {
			madvise(part->memory + page * WORDS, PAGE, MADV_DONTNEED);
			part->generation[page] = 0;
		} else {
			write_page(part, page);
		}
	}
	for (unsigned long page = 0; page < part->pages; page++)
		check(part, page);
	return NULL;
}

static unsigned long number(const char *text, unsigned long high)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || n < 1 || n > high) {
		fprintf(stderr, "memcheck: \"%s\" is not from 1 to %lu\n", text,
			high);
		exit(2);
	}
	return n;
}

static void start(struct part *part, unsigned long number, uint64_t *memory,
		  unsigned long pages)
{
	part->number = number;
	part->pages = pages;
	part->memory = memory;
	part->generation = calloc(pages, sizeof(*part->generation));
	if (!part->generation ||
	    pthread_create(&part->thread, NULL, run, part)) {
		fprintf(stderr, "memcheck: cannot start thread %lu\n", number);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct part parts[MAX_THREADS];
	unsigned long mib, threads, pages, checks = 0, bad = 0;
	uint64_t *memory;
	sigset_t wanted;
	int sig;

	if (argc != 3) {
		fprintf(stderr, "Usage: memcheck MIB THREADS\n");
		return 2;
	}
	mib = number(argv[1], MAX_MIB);
	threads = number(argv[2], MAX_THREADS);
	pages = mib * MIB / PAGE / threads;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGINT);
	pthread_sigmask(SIG_BLOCK, &wanted, NULL);

	memory = mmap(NULL, pages * threads * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		perror("memcheck: mmap");
		return 2;
	}
	pthread_barrier_init(&written, NULL, threads + 1);
	for (unsigned long i = 0; i < threads; i++)
		start(&parts[i], i, memory + i * pages * WORDS, pages);
	pthread_barrier_wait(&written);
	printf("ready\n");
	fflush(stdout);

	sigwait(&wanted, &sig);
	atomic_store(&stop, true);
	for (unsigned long i = 0; i < threads; i++) {
		pthread_join(parts[i].thread, NULL);
		checks += parts[i].checks;
		bad += parts[i].bad;
	}
	printf("{\"checks\":%lu,\"bad_pages\":%lu}\n", checks, bad);
	return bad ? 1 : 0;
}
