// SPDX-License-Identifier: GPL-2.0
/*
 * Empty parallel regions, timed.
 *
 * usage: region COUNT
 *	run COUNT regions and exit: for an instruction counter
 * usage: region
 *	for each line "BATCHES COUNT" of the standard input run BATCHES times
 *	COUNT regions, after one batch that is not timed, and print the team
 *	size and the nanoseconds per region of each batch on one line
 *
 * XENUMA_PADDING, if set, moves stack and heap by its length: the heap before
 * libgomp allocates its first team.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void regions(long count)
{
	while (count-- > 0) {
#pragma omp parallel
		__asm__ volatile ("" : : : "memory");
	}
}

static int team(void)
{
	int n = 0;

#pragma omp parallel reduction(max: n)
	n = omp_get_num_threads();
	return n;
}

static double batch(long count)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	regions(count);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((end.tv_sec - begin.tv_sec) * 1e9 +
		(end.tv_nsec - begin.tv_nsec)) / count;
}

int main(int argc, char **argv)
{
	const char *padding = getenv("XENUMA_PADDING");
	void *volatile moved = padding ? strdup(padding) : NULL;
	long batches, count;

	(void)moved;
	if (argc > 1) {
		regions(atol(argv[1]));
		return 0;
	}
	while (scanf("%ld %ld", &batches, &count) == 2 && count > 0) {
		printf("%d", team());
		regions(count);
		while (batches-- > 0)
			printf(" %.1f", batch(count));
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
