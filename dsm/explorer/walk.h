/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Long walks through worlds that are too large for exploration.
 */
#ifndef DSM_WALK_H
#define DSM_WALK_H

#include <cstdint>

/*
 * So many moves, each chosen by chance; every state is checked.  From time to
 * time the world's will rests, and what is owed has to lead to quiet.
 * Return: true if all was well.  The seed is printed, and leads to the same
 * walk again.
 */
bool walk(unsigned hosts, unsigned pages, uint64_t seed, uint64_t steps);

#endif
