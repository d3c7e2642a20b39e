/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Litmus tests: small programs of two pages with registers, and which outcomes
 * a machine with one memory can have.
 *
 * x is the cell of the first page, y that of the second; both are 0 at first.
 * The names are those of the literature and of benchmarks/programs/dsm_litmus.c
 * (Alglave et al., "Herding Cats", TOPLAS 2014).
 */
#ifndef DSM_LITMUS_H
#define DSM_LITMUS_H

#include <cstdint>
#include <set>
#include <string>
#include <vector>

constexpr unsigned MAX_THREADS = 4, MAX_ACCESSES = 2;
constexpr uint8_t NO_VALUE = 3;		/* of bytes that nobody needs; no program writes it */

struct Access {
	uint8_t page, value;	/* value 0: it reads */
};

struct LitmusThread {
	unsigned length;
	Access access[MAX_ACCESSES];

	unsigned stores() const;
	const Access &store(unsigned n) const;	/* the n-th of them */
};

struct Shape {
	const char *name;
	unsigned pages;
	std::vector<LitmusThread> threads;
};

using Outcomes = std::set<std::string>;

const std::vector<Shape> &all_shapes();

/* In words: registers in the threads' order, then what x and y are in the end. */
std::string say_outcome(const Shape &shape, const uint8_t (&read)[MAX_THREADS][MAX_ACCESSES],
			const uint8_t *memory);

/* Of all ways in which the accesses can follow one another; with a store buffer for each thread. */
Outcomes possible_outcomes(const Shape &shape, bool buffers);

#endif
