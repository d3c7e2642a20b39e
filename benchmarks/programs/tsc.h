/* SPDX-License-Identifier: GPL-2.0 */
/* How many ticks of the time stamp counter a microsecond of this machine's clock has. */
#ifndef TSC_H
#define TSC_H

#include <stdint.h>
#include <time.h>

#include <x86intrin.h>

/* Takes 20 ms of that clock.  Return: ticks. */
static inline uint64_t ticks_per_us(void)
{
	struct timespec begun, now;
	uint64_t tsc = __rdtsc(), ns;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		ns = (uint64_t)(now.tv_sec - begun.tv_sec) * 1000000000ull +
		     (uint64_t)now.tv_nsec - (uint64_t)begun.tv_nsec;
	} while (ns < 20000000);
	return (__rdtsc() - tsc) * 1000 / ns;
}

#endif
