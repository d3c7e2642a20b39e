/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chance for tests.  The seed is DSM_SEED, or 1, and is said.
 */
#ifndef DICE_H
#define DICE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t dice_state;

static inline void dice_begin(void)
{
	const char *seed = getenv("DSM_SEED");

	dice_state = seed ? strtoull(seed, NULL, 0) : 1;
	printf("DSM_SEED=%llu\n", (unsigned long long)dice_state);
}

static inline uint64_t dice(void)
{
	uint64_t z = dice_state += 0x9e3779b97f4a7c15u;	/* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint32_t dice_below(uint32_t limit)
{
	return (uint32_t)((dice() >> 32) * limit >> 32);
}

#endif
