/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The worlds that are explored, by name.
 */
#ifndef DSM_WORLDS_H
#define DSM_WORLDS_H

#include <string>
#include <vector>

#include "world.h"

struct WorldSpec {
	const char *name, *about;
	unsigned hosts, pages;
	uint8_t homes[4];
	Features features;

	/* The explorer has to find a violation in it. */
	bool is_wrong() const
	{
		return features.reorder || features.goes_on || features.late_stores ||
		       features.weak;
	}
};

const std::vector<WorldSpec> &all_worlds();

/*
 * By its name; or made of words: HOSTSxPAGES:WORD+WORD..., where a word is the
 * name of a feature, NAME=NUMBER for those that are numbers, or home1=HOST for
 * the second page.  Return: nullptr if there is no such thing.
 */
const WorldSpec *find_world(const std::string &name);

/*
 * Is each pair of features in a world that is explored?  Prints one line for
 * each: the two, and the worlds or why there is none, between tabs;
 * then how many sets of three are in a world.
 * Return: the number of pairs that are in no world and have no reason, or both.
 */
unsigned print_pairs();

#endif
