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
};

const std::vector<WorldSpec> &all_worlds();
const WorldSpec *find_world(const std::string &name);

#endif
