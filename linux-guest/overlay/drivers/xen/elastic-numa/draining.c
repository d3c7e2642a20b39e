// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that are being drained: the mask that the allocator and the driver look
 * at (<linux/draining_nodes.h>).
 *
 * Locking: the engine only writes; who reads takes the mask as it is.
 */
#include <linux/draining_nodes.h>
#include <linux/jump_label.h>
#include <linux/nodemask.h>

#include "elastic.h"

DEFINE_STATIC_KEY_FALSE(draining_key);
nodemask_t draining_nodes;

/* Nodes that programs and the allocator are to leave. */
void elastic_draining_nodes(nodemask_t *nodes)
{
	*nodes = draining_nodes;
}

/*
 * Policies and mems_allowed of tasks are not touched: a drain that is called
 * off has nothing to restore.
 */
void elastic_set_draining(struct elastic_node *node, bool draining)
{
	if (node->draining == draining)
		return;
	WRITE_ONCE(node->draining, draining);

	if (draining) {
		node_set(node->nid, draining_nodes);
		static_branch_inc(&draining_key);
	} else {
		node_clear(node->nid, draining_nodes);
		static_branch_dec(&draining_key);
	}
}
