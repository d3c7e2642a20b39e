/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stream_check: a memory-bound OpenMP program that checks its own result.
 *
 * It is an ordinary program: C and OpenMP pragmas, linked with the system's
 * libgomp.  It knows nothing of NUMA, of Xen, or of nodes that come and go.
 *
 * Each iteration sweeps two arrays, a[i] += b[i], as STREAM's "add" does.  The
 * arithmetic is exact (64-bit, modulo 2^64), so after n iterations a[i] must be
 * first(i) + n * step(i): each word is compared with that at the end, and the
 * checksum does not depend on the number of threads or on their order.  Memory
 * that was lost, moved to the wrong place or changed on the way shows.
 *
 * Output, one JSON object a line, each flushed:
 *   {"event":"start","pid":..,"mib":..,"words":..}
 *   {"event":"iteration","n":..,"t":..,"ms":..,"threads":..,"sum":".."}
 *   {"event":"wrong","array":"a","index":..,"word":"..","wanted":".."}
 *   {"event":"result","iterations":..,"checksum":"..","wrong_words":..}
 * t is CLOCK_REALTIME in seconds at the end of the iteration; sums and words are
 * hex.  Of the wrong words the first SHOWN_WRONG of each array are listed.
 *
 * SIGTERM and SIGINT end the run after the iteration that is under way.
 * Exit status: 0 the result is right, 1 it is wrong, 2 usage or no memory.
 *
 * Locking: none.  One thread reads and prints, between parallel regions.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <omp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB			(1024UL * 1024)
#define MAX_MIB			(1024UL * 1024)		/* 1 TiB */
#define DEFAULT_MIB		64
#define DEFAULT_ITERATIONS	10
#define SHOWN_WRONG		8
#define PAGE_ALIGN		(2 * MIB)	/* so that huge pages can be used */

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* Mixes an index to a number whose bits all depend on all of the index. */
static inline uint64_t mix(uint64_t x)
{
	/* the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014) */
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static inline uint64_t first(uint64_t i)
{
	return i;
}

static inline uint64_t step(uint64_t i)
{
	return mix(i);
}

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* First touch is parallel: each thread's part starts out on its own node. */
static void fill(uint64_t *a, uint64_t *b, size_t words)
{
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < words; i++) {
		a[i] = first(i);
		b[i] = step(i);
	}
}

/* One iteration; returns the sum of a[] and the size of the team. */
static uint64_t sweep(uint64_t *restrict a, const uint64_t *restrict b,
		      size_t words, int *threads)
{
	uint64_t sum = 0;

#pragma omp parallel reduction(+ : sum)
	{
#pragma omp single nowait
		*threads = omp_get_num_threads();
#pragma omp for schedule(static)
		for (size_t i = 0; i < words; i++) {
			a[i] += b[i];
			sum += a[i];
		}
	}
	return sum;
}

/* Compares each word with its closed form; returns how many are wrong. */
static uint64_t verify(const uint64_t *a, const uint64_t *b, size_t words,
		       uint64_t iterations, uint64_t *checksum)
{
	uint64_t wrong = 0, sum = 0;

#pragma omp parallel for schedule(static) reduction(+ : wrong, sum)
	for (size_t i = 0; i < words; i++) {
		uint64_t s = step(i);

		wrong += b[i] != s || a[i] != first(i) + iterations * s;
		sum += mix(a[i] ^ (uint64_t)i);
	}
	*checksum = sum;
	return wrong;
}

/* Lists the first wrong words, for who has to find out what happened. */
static void show_wrong(const char *name, const uint64_t *array, size_t words,
		       uint64_t iterations)
{
	bool is_a = *name == 'a';
	int shown = 0;

	for (size_t i = 0; i < words && shown < SHOWN_WRONG; i++) {
		uint64_t wanted = is_a ? first(i) + iterations * step(i) : step(i);

		if (array[i] == wanted)
			continue;
		printf("{\"event\":\"wrong\",\"array\":\"%s\",\"index\":%zu,"
		       "\"word\":\"%016" PRIx64 "\",\"wanted\":\"%016" PRIx64
		       "\"}\n", name, i, array[i], wanted);
		shown++;
	}
}

static void usage(FILE *to, const char *name)
{
	fprintf(to,
		"Usage: %s [--mib=N] [--iterations=N]\n"
		"Sweep two arrays with OpenMP and check the result.\n"
		"  --mib=N         size of both arrays together, 1 to %lu (%d)\n"
		"  --iterations=N  0: until SIGTERM (%d)\n",
		name, MAX_MIB, DEFAULT_MIB, DEFAULT_ITERATIONS);
}

/* Parses a whole decimal number from 0 to max; exits with 2 if it is none. */
static unsigned long number(const char *what, const char *text,
			    unsigned long max)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || n > max) {
		fprintf(stderr,
			"stream_check: %s: \"%s\" is not a number from 0 to %lu\n",
			what, text, max);
		exit(2);
	}
	return n;
}

static uint64_t *array(size_t words)
{
	void *p;
	int err = posix_memalign(&p, PAGE_ALIGN, words * sizeof(uint64_t));

	if (err) {
		fprintf(stderr, "stream_check: no memory for %zu bytes: %s\n",
			words * sizeof(uint64_t), strerror(err));
		exit(2);
	}
	return p;
}

static uint64_t iterate(uint64_t *a, uint64_t *b, size_t words,
			unsigned long limit)
{
	uint64_t n = 0;

	while (!stop && (limit == 0 || n < limit)) {
		double began = now(CLOCK_MONOTONIC);
		int threads = 0;
		uint64_t sum = sweep(a, b, words, &threads);
		double ms = (now(CLOCK_MONOTONIC) - began) * 1e3;

		n++;
		printf("{\"event\":\"iteration\",\"n\":%" PRIu64
		       ",\"t\":%.3f,\"ms\":%.3f,\"threads\":%d,"
		       "\"sum\":\"%016" PRIx64 "\"}\n",
		       n, now(CLOCK_REALTIME), ms, threads, sum);
		fflush(stdout);
	}
	return n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "mib", required_argument, NULL, 'm' },
		{ "iterations", required_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned long mib = DEFAULT_MIB, limit = DEFAULT_ITERATIONS;
	struct sigaction action = { .sa_handler = on_signal };
	uint64_t *a, *b, done, wrong, checksum;
	size_t words;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			mib = number("--mib", optarg, MAX_MIB);
			break;
		case 'i':
			limit = number("--iterations", optarg, ULONG_MAX);
			break;
		case 'h':
			usage(stdout, argv[0]);
			return 0;
		default:
			usage(stderr, argv[0]);
			return 2;
		}
	}
	if (mib == 0 || optind != argc) {
		usage(stderr, argv[0]);
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);

	words = mib * MIB / 2 / sizeof(uint64_t);
	a = array(words);
	b = array(words);
	printf("{\"event\":\"start\",\"pid\":%d,\"mib\":%lu,\"words\":%zu}\n",
	       (int)getpid(), mib, words);
	fflush(stdout);

	fill(a, b, words);
	done = iterate(a, b, words, limit);
	wrong = verify(a, b, words, done, &checksum);
	if (wrong) {
		show_wrong("a", a, words, done);
		show_wrong("b", b, words, done);
	}
	printf("{\"event\":\"result\",\"iterations\":%" PRIu64
	       ",\"checksum\":\"%016" PRIx64 "\",\"wrong_words\":%" PRIu64
	       "}\n", done, checksum, wrong);
	fflush(stdout);
	free(a);
	free(b);
	return wrong ? 1 : 0;
}
