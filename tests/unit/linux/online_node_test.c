// SPDX-License-Identifier: GPL-2.0
/*
 * Whether a node is brought online for a CPU that comes, and with which lock: hook 0315
 * (hook-0315-memory_hotplug-1.h; test_elastic_numa.py makes it).
 */
#include <linux/nodemask.h>

#include "case.h"

static bool online[2];
static unsigned int locked, unlocked, brought;

bool node_online(int nid)
{
	return online[nid];
}

static void mem_hotplug_begin(void)
{
	locked++;
}

static void mem_hotplug_done(void)
{
	unlocked++;
}

static int __try_online_node(int nid, bool set_node_online)
{
	CHECK(locked == unlocked + 1 && set_node_online, "without the lock");
	brought++;
	online[nid] = true;
	return 0;
}

static int try_online_node(int nid)
{
	int ret;

#include "hook-0315-memory_hotplug-1.h"
	mem_hotplug_begin();
	ret = __try_online_node(nid, true);
	mem_hotplug_done();
	return ret;
}

static void each_cpu(const void *argument)
{
	online[0] = true;
	CHECK(!try_online_node(0) && !locked && !brought, "a node that is there");
	CHECK(!try_online_node(1) && locked == 1 && brought == 1, "one that is not");
	CHECK(!try_online_node(1) && locked == 1 && brought == 1, "the next CPU of it");
	CHECK(unlocked == 1, "the lock is held");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "online node: each CPU", each_cpu },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
