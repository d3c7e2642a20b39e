// SPDX-License-Identifier: GPL-2.0
/*
 * The topology that numa_reset(2) goes by: its version, and the nodes that
 * memory may move to, as the topology driver has announced them.
 *
 * Locking: nrst_topology_lock guards both; it nests in nothing.
 */
#include <linux/export.h>
#include <linux/nodemask.h>
#include <linux/spinlock.h>

#include "numa_reset.h"

static DEFINE_SPINLOCK(nrst_topology_lock);
static u64 nrst_topology_version;		/* 0: nobody counts */
static nodemask_t nrst_topology_usable = NODE_MASK_ALL;

/**
 * numa_reset_set_topology - the topology driver announces a version
 * @version: of the topology page; callers of numa_reset(2) that expect
 *	another one get -ESTALE from now on
 * @usable: nodes that memory may move to; those about to leave are not among
 *	them
 *
 * Context: process; may be called under any sleeping lock.
 */
void numa_reset_set_topology(u64 version, const nodemask_t *usable)
{
	spin_lock(&nrst_topology_lock);
	nrst_topology_version = version;
	nrst_topology_usable = *usable;
	spin_unlock(&nrst_topology_lock);
}
EXPORT_SYMBOL_GPL(numa_reset_set_topology);

bool nrst_version_is_current(u64 version)
{
	bool current_one;

	spin_lock(&nrst_topology_lock);
	current_one = version == nrst_topology_version;
	spin_unlock(&nrst_topology_lock);
	return current_one;
}

/*
 * The fault path asks, too, so no lock: each bit is the old or the new one,
 * and a page that moves to a node at the very moment at which it begins to
 * leave is evacuated with the others there.
 */
void nrst_usable_nodes(nodemask_t *nodes)
{
	nodes_and(*nodes, nrst_topology_usable, node_states[N_MEMORY]);
}
