// SPDX-License-Identifier: GPL-2.0
/*
 * The topology page under readers that take no lock.
 *
 * Every image carries one stamp in all its fields, so that a copy made of two
 * images is seen.  Readers are what <xen/topology.h> tells a program to do.
 * They run twice: after each single store of the writer, in every pair of
 * places where a reader may stop and go on (that finds a writer that is wrong
 * for certain), and as threads (that finds one whose order the compiler or
 * the processor may change).
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "case.h"
#include "page.h"

#define IMAGES		20000	/* for the threads, at least */
#define COPIES		100	/* for each of them, at least */
#define READERS		3

static struct xtopo_page page;
static void (*looker)(void);	/* runs after each store of the writer */

void after_store(void)
{
	if (looker)
		looker();
}

/* Image @stamp.  Every third keeps the version of its predecessor. */
static uint64_t version_of(uint64_t stamp)
{
	return 1 + stamp - (stamp + 2) / 3;
}

static void make(struct xtopo_page *image, uint64_t stamp)
{
	memset(image, 0xa5, sizeof(*image));	/* magic, abi, seq: ignored */
	image->version = version_of(stamp);
	image->phase = stamp;
	image->nr_cpus_possible = stamp;
	image->nr_nodes_possible = stamp;
	image->reset_nr = stamp;
	for (size_t i = 0; i < 2; i++)
		image->nodes_online[i] = image->nodes_draining[i] = stamp;
	for (size_t i = 0; i < 64; i++) {
		image->cpus_usable[i] = stamp << 32 | stamp;
		image->node_mem_mb[i] = stamp;
		image->node_bw[i] = stamp;
	}
	memset(image->cpu_node, stamp, sizeof(image->cpu_node));
}

/* One image and no mixture, and at least as new as version @atleast. */
static void check_copy(const struct xtopo_page *copy, uint64_t atleast)
{
	uint64_t stamp = copy->nodes_online[0];
	struct xtopo_page image;

	make(&image, stamp);
	image.magic = XTOPO_MAGIC;
	image.abi = XTOPO_ABI;
	image.seq = copy->seq;
	/* The version is stored last: the copy may have the one before. */
	CHECK(copy->version <= version_of(stamp), "version %llu from the future, stamp %llu",
	      (unsigned long long)copy->version, (unsigned long long)stamp);
	image.version = copy->version;
	CHECK(!memcmp(&image, copy, sizeof(image)), "torn, stamp %llu",
	      (unsigned long long)stamp);
	CHECK(version_of(stamp) >= atleast, "version %llu was seen, the page is of %llu",
	      (unsigned long long)atleast, (unsigned long long)version_of(stamp));
}

static void copy_words(void *to, size_t from_word, size_t to_word)
{
	const uint32_t *from = (const uint32_t *)&page;

	for (size_t i = from_word; i < to_word; i++)
		((uint32_t *)to)[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

#define WORDS	(sizeof(struct xtopo_page) / sizeof(uint32_t))

/* The reader of <xen/topology.h>; false: it would go round once more. */
static bool read_once(struct xtopo_page *copy)
{
	uint32_t seq = __atomic_load_n(&page.seq, __ATOMIC_ACQUIRE);

	if (seq & 1)
		return false;
	copy_words(copy, 0, WORDS);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&page.seq, __ATOMIC_RELAXED) == seq;
}

static void start(uint64_t stamp)
{
	struct xtopo_page image;

	memset(&page, 0, sizeof(page));
	xtopo_page_init(&page);
	make(&image, stamp);
	xtopo_page_publish(&page, &image);
}

static unsigned long looks, good;

static void look(void)
{
	uint64_t version = __atomic_load_n(&page.version, __ATOMIC_ACQUIRE);
	struct xtopo_page copy;

	looks++;
	if (!read_once(&copy))
		return;
	good++;
	check_copy(&copy, version);
}

/* A reader that is as fast as can be, after each store. */
static void between_stores(const void *argument)
{
	struct xtopo_page image;

	start(1);
	looker = look;
	for (uint64_t stamp = 2; stamp < 40; stamp++) {
		make(&image, stamp);
		looks = good = 0;
		xtopo_page_publish(&page, &image);
		CHECK(looks > WORDS / 2, "only %lu looks", looks);
		/* After the even seq, and after the version. */
		CHECK(good == 2, "%lu of %lu looks had a page", good, looks);
		check_copy(&page, version_of(stamp));
	}
	looker = NULL;
}

/* A reader that stops in the middle at one store and goes on at a later one. */
static struct {
	unsigned long store, stop, go_on;
	size_t split;
	uint32_t seq;
	bool reading;
	uint64_t version;
	struct xtopo_page copy;
} slow;

static void slow_look(void)
{
	slow.store++;
	if (slow.store == slow.stop) {
		slow.version = __atomic_load_n(&page.version, __ATOMIC_ACQUIRE);
		slow.seq = __atomic_load_n(&page.seq, __ATOMIC_ACQUIRE);
		slow.reading = !(slow.seq & 1);
		copy_words(&slow.copy, 0, slow.split);
	}
	if (slow.store == slow.go_on && slow.reading) {
		copy_words(&slow.copy, slow.split, WORDS);
		if (page.seq == slow.seq)
			check_copy(&slow.copy, slow.version);
		slow.reading = false;
	}
}

static unsigned long publish_two(void)
{
	struct xtopo_page image;

	start(1);
	slow.store = 0;
	slow.reading = false;
	looker = slow_look;
	for (uint64_t stamp = 2; stamp < 4; stamp++) {
		make(&image, stamp);
		xtopo_page_publish(&page, &image);
	}
	looker = NULL;
	return slow.store;
}

static void across_stores(const void *argument)
{
	static const size_t splits[] = { 4, 6, WORDS / 2, WORDS - 1 };
	unsigned long stores = publish_two();

	for (size_t s = 0; s < sizeof(splits) / sizeof(splits[0]); s++) {
		slow.split = splits[s];
		for (slow.stop = 1; slow.stop < stores; slow.stop += 17) {
			for (slow.go_on = slow.stop; slow.go_on <= stores;
			     slow.go_on += 13)
				publish_two();
		}
		/* The stores around an end are where a mistake would be. */
		for (slow.stop = stores / 2 - 4; slow.stop < stores / 2 + 4; slow.stop++) {
			for (slow.go_on = slow.stop; slow.go_on < stores / 2 + 8; slow.go_on++)
				publish_two();
			for (slow.go_on = stores - 3; slow.go_on <= stores; slow.go_on++)
				publish_two();
		}
	}
}

static bool finished;
static uint64_t copies[READERS];

static void *reader(void *argument)
{
	uint64_t version, before = 0, *mine = argument;
	struct xtopo_page copy;

	while (!__atomic_load_n(&finished, __ATOMIC_ACQUIRE)) {
		version = __atomic_load_n(&page.version, __ATOMIC_ACQUIRE);
		CHECK(version >= before, "version went back");
		before = version;
		if (!read_once(&copy))
			continue;
		check_copy(&copy, version);
		__atomic_fetch_add(mine, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* On a busy machine the writer may be done before a reader has begun. */
static bool all_have_copies(void)
{
	for (int i = 0; i < READERS; i++) {
		if (__atomic_load_n(&copies[i], __ATOMIC_RELAXED) < COPIES)
			return false;
	}
	return true;
}

static void threads(const void *argument)
{
	pthread_t thread[READERS];
	struct xtopo_page image;

	start(1);
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_create(&thread[i], NULL, reader, &copies[i]), "no thread");
	for (uint64_t stamp = 2; stamp < IMAGES || !all_have_copies(); stamp++) {
		make(&image, stamp);
		xtopo_page_publish(&page, &image);
	}
	__atomic_store_n(&finished, true, __ATOMIC_RELEASE);
	for (int i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
}

/* What does not change is not the image's business. */
static void constants(const void *argument)
{
	start(5);
	CHECK(page.magic == XTOPO_MAGIC, "magic");
	CHECK(page.abi == XTOPO_ABI, "abi %u", page.abi);
	CHECK(page.seq == 2, "seq %u", page.seq);
	CHECK(page.version == version_of(5), "version");
	CHECK(page.phase == 5, "phase");
	CHECK(page.cpu_node[2047] == 5, "last byte");
}

static const struct test_case cases[] = {
	{ "page: constants are kept", constants },
	{ "page: a reader between any two stores", between_stores },
	{ "page: a reader across any two stores", across_stores },
	{ "page: readers as threads", threads },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
