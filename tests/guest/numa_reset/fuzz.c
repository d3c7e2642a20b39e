// SPDX-License-Identifier: GPL-2.0
/*
 * Random arguments, half of them nearly right, while another thread writes:
 * only documented errors come back, and no byte of memory changes that the
 * call may not change.  The seed is printed; "fuzz SEED CALLS" repeats a run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nrtest.h"

#define LEN		(4UL << 20)
#define CALLS		6000
#define CANARY		0xa5

static uint64_t state;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t one_of(const uint64_t *values, size_t n)
{
	return values[rnd() % n];
}

static volatile bool stop;
static unsigned long lost;

/* Its own page of @mem each time: written and read back. */
static void *write_and_check(void *arg)
{
	volatile uint64_t *word = (volatile uint64_t *)((char *)arg + 512);
	uint64_t i = 0;

	while (!stop) {
		size_t at = i % (LEN / PAGE) * (PAGE / 8);

		word[at] = i;
		lost += word[at] != i;
		i++;
	}
	return NULL;
}

static uint64_t random_address(const char *mem)
{
	const uint64_t values[] = {
		0, 1, PAGE, (uintptr_t)mem, (uintptr_t)mem + rnd() % LEN,
		((uintptr_t)mem + rnd() % LEN) & -PAGE, 1ULL << 47,
		(1ULL << 47) - PAGE, 1ULL << 63, -PAGE, rnd(), rnd() & -PAGE,
	};

	return one_of(values, COUNT(values));
}

static uint64_t random_length(void)
{
	const uint64_t values[] = {
		0, 1, PAGE, HUGE, LEN, rnd() % LEN & -PAGE, 1ULL << 47,
		-PAGE, rnd(), rnd() % 4096 * PAGE,
	};

	return one_of(values, COUNT(values));
}

static void random_args(struct numa_reset_args *args, const char *mem,
			const unsigned long *nodes)
{
	const uint64_t shifts[] = { 0, 12, 16, 21, 11, 22, 63, rnd() };
	const uint64_t maxnodes[] = { 0, 1, 2, 63, 64, 65, 128, 32768, 32769,
				      rnd() };
	const uint64_t pointers[] = { 0, (uintptr_t)nodes, (uintptr_t)nodes + 3,
				      8, -8ULL, random_address(mem) };

	memset(args, 0, sizeof(*args));
	if (rnd() % 2) {
		args->start = random_address(mem);
		args->len = random_length();
	}
	if (rnd() % 2)
		args->granule_shift = one_of(shifts, COUNT(shifts));
	if (rnd() % 4 == 0) {
		args->nodes_ptr = one_of(pointers, COUNT(pointers));
		args->maxnode = one_of(maxnodes, COUNT(maxnodes));
	}
	if (rnd() % 8 == 0)
		args->topo_version = rnd();
	args->marked = rnd();
	args->ns = rnd();
}

static bool documented(int err)
{
	switch (err) {
	case 0:
	case -E2BIG:
	case -EBADF:
	case -EBUSY:
	case -EFAULT:
	case -EINVAL:
	case -ESTALE:
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 0x9e3779b9;
	long calls = argc > 2 ? atol(argv[2]) : CALLS, i, good = 0;
	struct {
		struct numa_reset_args args;
		unsigned char canary[64];
	} area;
	size_t j, trampled = 0;
	unsigned long nodes[2];
	pthread_t thread;
	char *mem, *scratch;
	int odd = 0;

	machine_init();
	state = seed | 1;
	printf("# seed 0x%llx, %ld calls\n", (unsigned long long)seed, calls);
	mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	scratch = memory_on(mem_node[0], LEN, SMALL_PAGES);
	pthread_create(&thread, NULL, write_and_check, mem);

	for (i = 0; i < calls; i++) {
		const uint64_t sizes[] = { sizeof(area.args), sizeof(area),
					   0, 71, 73, 4096, 4097, -1, rnd() };
		unsigned int flags = rnd() % 4 ? rnd() % 16 : rnd();
		size_t size = rnd() % 4 ? sizeof(area.args) :
					  one_of(sizes, COUNT(sizes));
		int pidfd = rnd() % 8 ? -1 : (int)rnd();
		int err;

		nodes[0] = rnd() % 2 ? rnd() % 4 : rnd();
		nodes[1] = rnd() % 4 ? 0 : rnd();
		random_args(&area.args, mem, nodes);
		memset(area.canary, CANARY, sizeof(area.canary));
		if (rnd() % 16 == 0)
			err = numa_reset(pidfd,
					 (void *)random_address(scratch),
					 size, flags & NRST_CANCEL);
		else
			err = numa_reset(pidfd, &area.args, size, flags);
		good += !err;
		if (!documented(err)) {
			odd++;
			printf("# call %ld: error %d, flags 0x%x, size %zu\n",
			       i, err, flags, size);
		}
		for (j = 0; j < sizeof(area.canary); j++)
			trampled += area.canary[j] != CANARY;
		if (rnd() % 64 == 0) {
			run_on_node(mem_node[rnd() % nr_mem_nodes]);
			touch(mem, LEN);
		}
	}

	stop = true;
	pthread_join(thread, NULL);
	ok(!odd, "only documented errors", "%d others", odd);
	ok(good > 0 && good < calls, "some calls succeed, some do not",
	   "%ld of %ld", good, calls);
	ok(!trampled, "nothing is written behind the structure");
	ok(!lost, "no write of another thread is lost", "%lu", lost);
	numa_reset(-1, NULL, 0, NRST_CANCEL);
	return tap_end();
}
