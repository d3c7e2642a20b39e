/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Page tables of 64-bit programs and of their guests (AMD64 APM vol. 2, 5.3),
 * and nested ones for the first NESTED_MEMORY, with pages of 4 KiB. For programs
 * of one CPU, whose linear and physical addresses are the same.
 */
#ifndef PAGING_H
#define PAGING_H

#include <stdint.h>

#define PRESENT		0x01u
#define WRITABLE	0x02u
#define USER		0x04u
#define A		0x20u
#define D		0x40u
#define LARGE		0x80u
#define GLOBAL		0x100u

#define ENTRIES		512
#define PAGE		4096
#define LARGE_2MB	0x200000u
#define NESTED_TABLES	4	/* of 2 MiB */
#define NESTED_MEMORY	(NESTED_TABLES * (uint64_t)LARGE_2MB)

#define LONG_ADDRESS	(1ull << 39)	/* of a guest's page: the second top entry */
#define CODE64_ATTRIBUTES 0xa9b

typedef uint64_t table[ENTRIES] __attribute__((aligned(PAGE)));

static table nested4, nested3, nested2, nested1[NESTED_TABLES];

static inline uint64_t address(const void *object)
{
	return (uintptr_t)object;
}

static inline void clear(uint64_t *entries)
{
	for (unsigned int i = 0; i < ENTRIES; i++)
		entries[i] = 0;
}

static inline uint64_t *nested_entry(const void *object)
{
	uint64_t number = address(object) / PAGE;

	return &nested1[number / ENTRIES][number % ENTRIES];
}

/* All of the memory, each entry with these bits. */
static inline void build_nested(uint32_t bits)
{
	nested4[0] = address(nested3) | bits;
	nested3[0] = address(nested2) | bits;
	for (unsigned int i = 0; i < NESTED_TABLES; i++) {
		nested2[i] = address(nested1[i]) | bits;
		for (unsigned int k = 0; k < ENTRIES; k++)
			nested1[i][k] = ((uint64_t)i * ENTRIES + k) * PAGE |
					bits;
	}
}

#endif /* PAGING_H */
