/* SPDX-License-Identifier: GPL-2.0 */
/*
 * huge_owner: a pool of huge pages on one NUMA node, all of them promised to a
 * mapping that nobody has touched yet.
 *
 * A page of the pool that is promised must be there when it is touched: if the
 * kernel does not find it, the owner gets SIGBUS.
 *
 * Usage: huge_owner NODE PAGES      1 to 64 pages of 2 MiB; needs root
 * Prints "promised N huge pages"; touches them on SIGUSR1 and prints "touched N
 * huge pages, WRONG wrong".  SIGTERM ends it, and the pool becomes empty.
 * Exit status: 0; 1 a page was wrong; 2 usage, or there is no such pool.
 *
 * Locking: none, one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE		(2UL << 20)
#define MAX_PAGES	64UL

static void die(const char *what)
{
	fprintf(stderr, "huge_owner: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* The size of the node's pool; what it is then. */
static unsigned long pool(unsigned long node, unsigned long pages)
{
	char path[120];
	FILE *file;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/node/node%lu/hugepages/hugepages-2048kB/nr_hugepages",
		 node);
	file = fopen(path, "w");
	if (!file)
		return 0;	/* the node has left */
	fprintf(file, "%lu", pages);
	fclose(file);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%lu", &pages) != 1)
		die(path);
	fclose(file);
	return pages;
}

int main(int argc, char **argv)
{
	unsigned long node, pages, i, wrong = 0;
	volatile unsigned char *memory;
	int number;
	sigset_t set;

	if (argc != 3) {
		fputs("usage: huge_owner NODE PAGES\n", stderr);
		return 2;
	}
	node = strtoul(argv[1], NULL, 10);
	pages = strtoul(argv[2], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!pages || pages > MAX_PAGES || pool(node, pages) != pages)
		die("no such pool");
	memory = mmap(NULL, pages * HUGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("promised %lu huge pages\n", pages);

	while (!sigwait(&set, &number) && number == SIGUSR1) {
		for (i = 0; i < pages; i++)
			memory[i * HUGE] = i + 1;
		for (i = 0; i < pages; i++)
			wrong += memory[i * HUGE] != i + 1;
		printf("touched %lu huge pages, %lu wrong\n", pages, wrong);
	}
	munmap((void *)memory, pages * HUGE);
	pool(node, 0);
	pool(0, 0);
	return wrong != 0;
}
