// SPDX-License-Identifier: GPL-2.0
/* What the page allocator asks of nodes that leave: linux/draining_nodes.h. */
#include "case.h"
#include "fake_kernel.h"

#define CONFIG_XEN_ELASTIC_NUMA
#include "../../../linux-guest/overlay/include/linux/draining_nodes.h"

int draining_key;
nodemask_t draining_nodes;
static bool engine;

bool xen_elastic_never_waits(void) { return engine; }

static void zones(const void *argument)
{
	const struct zone first = { .node = 0 }, second = { .node = 1 };

	CHECK(!zone_is_draining(&first) && !zone_is_draining(&second), "none leaves");
	node_set(1, draining_nodes);
	CHECK(!zone_is_draining(&second), "the key is off");
	draining_key = 1;
	CHECK(!zone_is_draining(&first) && zone_is_draining(&second), "one leaves");
}

static void policies(const void *argument)
{
	nodemask_t first = { { 1 } }, both = { { 3 } }, second = { { 2 } };

	node_set(1, draining_nodes);
	CHECK(!nodes_are_draining(&second), "the key is off");
	draining_key = 1;
	CHECK(nodes_are_draining(&second), "it leaves");
	CHECK(!nodes_are_draining(&first) && !nodes_are_draining(&both),
	      "a node stays");
}

struct ask {
	const char *name;
	gfp_t gfp;
	bool engine, may;
};

static const struct ask asks[] = {
	{ "draining: a fault", __GFP_DIRECT_RECLAIM, false, true },
	{ "draining: an interrupt", 0, false, true },
	{ "draining: who gives up soon", __GFP_DIRECT_RECLAIM | __GFP_NORETRY,
	  false, true },
	{ "draining: this node and no other",
	  __GFP_THISNODE | __GFP_DIRECT_RECLAIM, false, true },
	{ "draining: a huge page here, or none",
	  __GFP_THISNODE | __GFP_DIRECT_RECLAIM | __GFP_NORETRY, false, false },
	{ "draining: the target of balancing", __GFP_THISNODE, false, false },
	{ "draining: the engine", __GFP_DIRECT_RECLAIM, true, false },
};

static void one(const void *argument)
{
	const struct ask *a = argument;

	engine = a->engine;
	CHECK(may_use_draining(a->gfp) == a->may, "%#x", a->gfp);
}

int main(int argc, char **argv)
{
	static struct test_case cases[ARRAY_SIZE(asks) + 2] = {
		{ "draining: zones", zones },
		{ "draining: policies", policies },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(asks); i++)
		cases[i + 2] = (struct test_case){ asks[i].name, one, &asks[i] };
	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
