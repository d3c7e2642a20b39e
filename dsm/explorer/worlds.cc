// SPDX-License-Identifier: GPL-2.0
/*
 * The table of worlds.  What a world leaves out, another one has; the sizes
 * say what one core explores in some minutes.
 */
#include "worlds.h"

static Features can(std::initializer_list<bool Features::*> features)
{
	Features may = {};

	for (bool Features::*feature : features)
		may.*feature = true;
	return may;
}

static Features with_deaths(Features may, bool home_dies)
{
	may.deaths = 1;
	may.home_dies = home_dies;
	return may;
}

static Features with_program(Features may, unsigned instructions,
			     unsigned losses)
{
	may.program = instructions;
	may.max_losses = losses;
	return may;
}

using F = Features;

static const std::vector<WorldSpec> worlds = {
	{ "2x1-small", "evictions", 2, 1, { 0 }, can({ &F::evict }) },
	{ "2x1-core", "misses that merge, evictions, pins", 2, 1, { 0 },
	  can({ &F::evict, &F::pins, &F::merge }) },
	{ "2x1", "all but leases and death", 2, 1, { 0 },
	  can({ &F::evict, &F::pins, &F::merge, &F::prefetch, &F::zero, &F::drop,
		&F::remote_drop }) },
	{ "2x1-split", "the same, and page operations take time", 2, 1, { 0 },
	  can({ &F::evict, &F::pins, &F::merge, &F::prefetch, &F::zero, &F::drop,
		&F::remote_drop, &F::split }) },
	{ "2x1-loose", "Xen records misses without a second look", 2, 1, { 0 },
	  can({ &F::evict, &F::pins, &F::merge, &F::loose }) },
	{ "2x1-private", "a page that can't leave its home", 2, 1, { 0 },
	  can({ &F::evict, &F::merge, &F::prefetch, &F::private_pages, &F::split }) },
	{ "2x1-broken", "page operations fail, or find no memory", 2, 1, { 0 },
	  can({ &F::drop, &F::remote_drop, &F::split, &F::no_memory, &F::broken }) },
	{ "2x1-holes", "holes, prefetches, and misses that merge", 2, 1, { 0 },
	  can({ &F::merge, &F::prefetch, &F::drop, &F::remote_drop }) },
	{ "2x1-leases", "leases", 2, 1, { 0 },
	  can({ &F::evict, &F::pins, &F::merge, &F::prefetch, &F::leases }) },
	{ "2x1-death-small", "one host dies, evictions", 2, 1, { 0 },
	  with_deaths(can({ &F::evict }), true) },
	{ "2x1-death-split", "one host dies, page operations take time", 2, 1, { 0 },
	  with_deaths(can({ &F::evict, &F::zero, &F::split }), true) },
	{ "2x1-death", "one host dies", 2, 1, { 0 },
	  with_deaths(can({ &F::evict, &F::pins, &F::merge, &F::zero, &F::drop,
			    &F::remote_drop, &F::split }), true) },
	{ "2x1-death-leases", "one host dies, leases", 2, 1, { 0 },
	  with_deaths(can({ &F::evict, &F::pins, &F::merge, &F::leases }), true) },
	{ "3x1-alone", "nothing but misses and writes", 3, 1, { 0 }, can({}) },
	{ "3x1-core", "evictions and pins", 3, 1, { 0 },
	  can({ &F::evict, &F::pins }) },
	{ "3x1-merge", "readers and writers that wait together", 3, 1, { 0 },
	  can({ &F::merge }) },
	{ "3x1-prefetch", "prefetch and evictions", 3, 1, { 0 },
	  can({ &F::evict, &F::prefetch }) },
	{ "3x1-zero", "pages that are zeroed", 3, 1, { 0 }, can({ &F::zero }) },
	{ "3x1-holes", "populate and drop, at home and elsewhere", 3, 1, { 0 },
	  can({ &F::drop, &F::remote_drop }) },
	{ "3x1-holes-evict", "populate and drop at home, evictions", 3, 1, { 0 },
	  can({ &F::evict, &F::drop }) },
	{ "3x1-death", "one host dies, evictions", 3, 1, { 0 },
	  with_deaths(can({ &F::evict }), true) },
	{ "3x1-death-pins", "one host dies, pins and holes", 3, 1, { 0 },
	  with_deaths(can({ &F::pins, &F::drop }), true) },
	{ "3x1-death-leases", "one host dies, leases", 3, 1, { 0 },
	  with_deaths(can({ &F::leases }), true) },
	{ "3x1-split", "page operations take time", 3, 1, { 0 },
	  can({ &F::evict, &F::split }) },
	{ "3x1-leases", "leases", 3, 1, { 0 }, can({ &F::evict, &F::leases }) },
	{ "4x1-alone", "nothing but misses and writes", 4, 1, { 0 }, can({}) },
	{ "2x2-alone", "two pages with one home", 2, 2, { 0, 0 }, can({}) },
	{ "2x2-cross", "two pages, each at home at one host", 2, 2, { 0, 1 },
	  can({}) },
	{ "2x2-program", "instructions of two pages, leases, the token", 2, 2,
	  { 0, 0 }, with_program(can({ &F::leases, &F::evict }), 2, 2) },
	{ "2x2-program-cross", "the same with two homes", 2, 2, { 0, 1 },
	  with_program(can({ &F::leases, &F::evict }), 2, 2) },
	{ "2x2-upgrades", "instructions that read both pages, then write them", 2, 2,
	  { 0, 0 },
	  with_program(can({ &F::leases, &F::reads_first }), 1, 1) },
	{ "2x2-upgrades-cross", "the same with two homes", 2, 2, { 0, 1 },
	  with_program(can({ &F::leases, &F::reads_first }), 1, 1) },
	{ "3x2-program", "the same for three hosts", 3, 2, { 0, 1 },
	  with_program(can({ &F::leases }), 1, 1) },
	{ "2x2-death-program", "instructions, the token, and one host dies", 2, 2,
	  { 0, 0 },
	  with_deaths(with_program(can({ &F::leases, &F::evict }), 2, 1), true) },
	{ "2x2-death-program-cross", "the same with two homes", 2, 2, { 0, 1 },
	  with_deaths(with_program(can({ &F::leases, &F::evict }), 2, 1), true) },
	{ "3x2-death-program", "the same for three hosts, without evictions", 3, 2,
	  { 0, 1 }, with_deaths(with_program(can({ &F::leases }), 1, 1), true) },
	{ "wrong-transport", "messages overtake: has to be refuted", 2, 1, { 0 },
	  can({ &F::evict, &F::reorder }) },
};

const std::vector<WorldSpec> &all_worlds()
{
	return worlds;
}

const WorldSpec *find_world(const std::string &name)
{
	for (const WorldSpec &spec : worlds)
		if (name == spec.name)
			return &spec;
	return nullptr;
}
