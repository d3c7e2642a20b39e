/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fxrstor: restores the FPU's state without end.
 *
 * In QEMU's emulation each FXRSTOR clears a flag of the machine's first CPU,
 * whichever CPU executes it; with QEMU's own code that loses guests that run on
 * the first CPU (docs/decisions/0005).
 *
 * Usage: fxrstor SECONDS		1 to 600
 * Exit status: 0; 2 usage.
 *
 * Locking: none, one thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BETWEEN_LOOKS	10000	/* at the clock */
#define MOST_SECONDS	600

static unsigned char state[512] __attribute__((aligned(16)));

int main(int argc, char **argv)
{
	long seconds = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
	struct timespec now, end;

	if (seconds < 1 || seconds > MOST_SECONDS) {
		fprintf(stderr, "usage: fxrstor SECONDS (1 to %d)\n",
			MOST_SECONDS);
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	__asm__ volatile("fxsave %0" : "=m"(state));
	do {
		for (int i = 0; i < BETWEEN_LOOKS; i++)
			__asm__ volatile("fxrstor %0" : : "m"(state));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec ||
		 (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	return 0;
}
