/* SPDX-License-Identifier: GPL-2.0 */
/*
 * span_kv: a key-value store in memory, and threads that get and put.
 *
 * A hash table of shards with a lock each, as such stores have it.  First the
 * threads put all keys, each its part, then each makes --ops operations on keys
 * by chance.  A thread's part is the keys of its part of the shards, so that their
 * memory is where it runs.
 *
 * With --layout=packed locks are beside each other, 64 in a page, and shards
 * follow each other without gaps; with --layout=paged a shard is one page, with
 * its lock in it.
 *
 * A value says of which key and of which version it is, in each word, and a put
 * makes the next version.  So it is noticed if a get finds words of two puts
 * (torn), a version older than one that its thread has seen (old), no such key
 * (missing), and, at the end, puts that have left no version (lost).
 *
 * It says, as JSON, one object a line:
 *
 *   {"event":"start","layout":"packed","threads":..,"keys":..,"bytes":..}
 *   {"event":"step","what":"load","ops":..,"ns":..}, the same of "mix"
 *   {"event":"thread","cpu":..,"gets":..,"puts":..,"p50_ns":..,"p99_ns":..}
 *   {"event":"result","gets":..,"puts":..,"torn":..,"old":..,"missing":..,
 *    "lost":..}
 *
 * ns are CLOCK_MONOTONIC's, from when all begin until all have ended; quantiles
 * those of an operation of the mix.
 *
 * Exit status: 0, 1 something is wrong, 2 usage or no memory.
 *
 * Locking: that of a shard, over its entries.  Who has one takes no other.
 */
#define _GNU_SOURCE

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "words.h"

#define PAGE		4096UL
#define CELL		64UL		/* of a lock, and of an entry */
#define SLOTS		63		/* a page, with its lock */
#define KEYS_A_SHARD	32
#define MAX_THREADS	16
#define MAX_KEYS	65536
#define MAX_OPS		1000000
#define WORDS		6		/* of a value */

struct entry {
	uint64_t key, version, value[WORDS];	/* version 0: nothing is there */
};

_Static_assert(sizeof(struct entry) == CELL, "an entry is a line");
_Static_assert(sizeof(pthread_mutex_t) <= CELL, "a lock is in a line");

enum fault { TORN, OLD, MISSING, NR_FAULTS };

static struct {
	char *locks, *slots;
	size_t lock_step, shard_step, shards, keys;
} store;

struct worker {
	pthread_t thread;
	unsigned int number, cpu;
	uint64_t seed;
	uint64_t *seen;		/* the latest version, by key */
	uint64_t *took;		/* ns, by operation */
	unsigned long gets, puts, faults[NR_FAULTS];
};

static unsigned long ops = 1000, puts_percent = 10, threads;
static pthread_barrier_t together;
static struct worker workers[MAX_THREADS];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* splitmix64: any two numbers give others. */
static uint64_t mixed(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static uint64_t word_of(uint64_t key, uint64_t version, unsigned int i)
{
	return mixed(mixed(key + 1) + version * WORDS + i);
}

static size_t shard_of(uint64_t key)
{
	return mixed(key) % store.shards;
}

static pthread_mutex_t *lock_of(size_t shard)
{
	return (void *)(store.locks + shard * store.lock_step);
}

/* Its entry, or a free one.  The shard's lock is held. */
static struct entry *entry_of(size_t shard, uint64_t key)
{
	struct entry *first = (void *)(store.slots + shard * store.shard_step);
	unsigned int i, at = mixed(~key) % SLOTS;

	for (i = 0; i < SLOTS; i++, at = (at + 1) % SLOTS)
		if (!first[at].version || first[at].key == key)
			return &first[at];
	die("a shard is full: fewer keys");
}

/* Whether this is what some put has written, no older than what @w has seen. */
static void look(struct worker *w, uint64_t key, const struct entry *found)
{
	unsigned int i;

	if (!found->version || found->key != key) {
		w->faults[MISSING]++;
		return;
	}
	for (i = 0; i < WORDS; i++)
		if (found->value[i] != word_of(key, found->version, i))
			break;
	w->faults[TORN] += i < WORDS;
	w->faults[OLD] += found->version < w->seen[key];
	w->seen[key] = found->version;
}

static void get(struct worker *w, uint64_t key)
{
	size_t shard = shard_of(key);
	struct entry copy;

	pthread_mutex_lock(lock_of(shard));
	copy = *entry_of(shard, key);
	pthread_mutex_unlock(lock_of(shard));
	look(w, key, &copy);
	w->gets++;
}

static void put(struct worker *w, uint64_t key)
{
	size_t shard = shard_of(key);
	struct entry *entry;
	unsigned int i;

	pthread_mutex_lock(lock_of(shard));
	entry = entry_of(shard, key);
	entry->key = key;
	entry->version++;
	for (i = 0; i < WORDS; i++)
		entry->value[i] = word_of(key, entry->version, i);
	w->seen[key] = entry->version;
	pthread_mutex_unlock(lock_of(shard));
	w->puts++;
}

static void load(struct worker *w)
{
	uint64_t key;

	for (key = 0; key < store.keys; key++)
		if (shard_of(key) * threads / store.shards == w->number)
			put(w, key);
}

static void mix(struct worker *w)
{
	unsigned long i;

	for (i = 0; i < ops; i++) {
		uint64_t dice = w->seed = mixed(w->seed), begin = now_ns();
		uint64_t key = (dice >> 8) % store.keys;

		if (dice % 128 * 100 < puts_percent * 128)
			put(w, key);
		else
			get(w, key);
		w->took[i] = now_ns() - begin;
	}
}

static void say_step(const char *what, unsigned long done, uint64_t ns)
{
	printf("{\"event\":\"step\",\"what\":\"%s\",\"ops\":%lu,\"ns\":%" PRIu64
	       "}\n", what, done, ns);
	fflush(stdout);
}

static void *memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("no memory for %zu bytes", size);
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

static void bind_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("CPU %u: %m", cpu);
}

/* Both steps, from when all are there until all are done; the first one says how long. */
static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t begin;

	bind_to(w->cpu);
	/* Each has its own memory where it runs. */
	w->seen = memory(store.keys * sizeof(*w->seen));
	w->took = memory(ops * sizeof(*w->took));
	memset(w->seen, 0, store.keys * sizeof(*w->seen));
	memset(w->took, 0, ops * sizeof(*w->took));

	pthread_barrier_wait(&together);
	begin = now_ns();
	load(w);
	pthread_barrier_wait(&together);
	if (!w->number)
		say_step("load", store.keys, now_ns() - begin);
	w->puts = 0;

	pthread_barrier_wait(&together);
	begin = now_ns();
	mix(w);
	pthread_barrier_wait(&together);
	if (!w->number)
		say_step("mix", ops * threads, now_ns() - begin);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void say_thread(struct worker *w)
{
	qsort(w->took, ops, sizeof(*w->took), compare);
	printf("{\"event\":\"thread\",\"cpu\":%u,\"gets\":%lu,\"puts\":%lu,"
	       "\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64 "}\n",
	       w->cpu, w->gets, w->puts, w->took[(ops - 1) / 2],
	       w->took[(ops - 1) * 99 / 100]);
}

/* All threads have ended.  Return: the exit status. */
static int result(void)
{
	unsigned long gets = 0, puts = 0, faults[NR_FAULTS] = { 0 };
	struct worker *w, *last = &workers[0];
	uint64_t key, versions = 0;
	unsigned int i;
	long lost;

	for (w = workers; w < workers + threads; w++) {
		say_thread(w);
		gets += w->gets;
		puts += w->puts;
	}
	for (key = 0; key < store.keys; key++) {
		struct entry *entry = entry_of(shard_of(key), key);

		look(last, key, entry);
		versions += entry->version;
	}
	for (w = workers; w < workers + threads; w++)
		for (i = 0; i < NR_FAULTS; i++)
			faults[i] += w->faults[i];
	lost = (long)(store.keys + puts) - (long)versions;
	printf("{\"event\":\"result\",\"gets\":%lu,\"puts\":%lu,\"torn\":%lu,"
	       "\"old\":%lu,\"missing\":%lu,\"lost\":%ld}\n",
	       gets, puts, faults[TORN], faults[OLD], faults[MISSING], lost);
	fflush(stdout);
	return lost || faults[TORN] || faults[OLD] || faults[MISSING];
}

static void help(FILE *to)
{
	fprintf(to,
		"Usage: span_kv --cpus=N,... [--ops=N] [--keys=N] [--puts=N]\n"
		"               [--layout=packed|paged] [--seed=N]\n"
		"A key-value store, and a thread on each CPU that gets and puts.\n"
		"  --cpus=N,...  a thread on each; a number may be there twice\n"
		"  --ops=N       of each thread, 1 to %d (1000)\n"
		"  --keys=N      64 to %d (2048)\n"
		"  --puts=N      of 100 operations, 0 to 100 (10)\n"
		"  --layout=X    locks beside each other, or a page for each shard\n"
		"  --seed=N      of what is chosen by chance (1)\n"
		"  --help        this text\n", MAX_OPS, MAX_KEYS);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "cpus", required_argument, NULL, 'c' },
		{ "ops", required_argument, NULL, 'o' },
		{ "keys", required_argument, NULL, 'k' },
		{ "puts", required_argument, NULL, 'p' },
		{ "layout", required_argument, NULL, 'l' },
		{ "seed", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	long cpus[MAX_THREADS], seed = 1;
	bool paged = false;
	size_t i, size;
	int c;

	store.keys = 2048;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			threads = numbers("cpus", optarg, 0, CPU_SETSIZE - 1,
					  cpus, MAX_THREADS);
			break;
		case 'o':
			ops = number("ops", optarg, 1, MAX_OPS);
			break;
		case 'k':
			store.keys = number("keys", optarg, 64, MAX_KEYS);
			break;
		case 'p':
			puts_percent = number("puts", optarg, 0, 100);
			break;
		case 'l':
			paged = !strcmp(optarg, "paged");
			if (!paged && strcmp(optarg, "packed"))
				die("--layout=%s: want packed or paged", optarg);
			break;
		case 's':
			seed = number("seed", optarg, 0, 1000000);
			break;
		case 'h':
			help(stdout);
			return 0;
		default:
			help(stderr);
			return 2;
		}
	}
	if (!threads || optind != argc) {
		help(stderr);
		return 2;
	}

	store.shards = (store.keys + KEYS_A_SHARD - 1) / KEYS_A_SHARD;
	store.lock_step = paged ? PAGE : CELL;
	store.shard_step = paged ? PAGE : SLOTS * CELL;
	size = store.shards * PAGE;
	store.locks = memory(size);
	store.slots = paged ? store.locks + CELL : memory(size);
	printf("{\"event\":\"start\",\"layout\":\"%s\",\"threads\":%lu,"
	       "\"keys\":%zu,\"bytes\":%zu}\n", paged ? "paged" : "packed",
	       threads, store.keys, store.shards * (SLOTS + 1) * CELL);
	fflush(stdout);
	for (i = 0; i < store.shards; i++)
		pthread_mutex_init(lock_of(i), NULL);
	if (pthread_barrier_init(&together, NULL, threads))
		die("no barrier");

	for (i = 0; i < threads; i++)
		workers[i] = (struct worker){
			.number = i,
			.cpu = cpus[i],
			.seed = mixed(seed * MAX_THREADS + i),
		};
	for (i = 1; i < threads; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("no thread");
	work(&workers[0]);
	for (i = 1; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	return result();
}
