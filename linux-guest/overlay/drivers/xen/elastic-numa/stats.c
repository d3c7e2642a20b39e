// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/elastic-numa/nodes: what the driver knows of each node,
 * for people.  Programs read /dev/xen/topology, toolstacks xenstore.
 *
 * Locking: none; a line may be a moment old.
 */
#include <linux/bitmap.h>
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "elastic.h"

static int nodes_show(struct seq_file *m, void *unused)
{
	struct elastic_node *node;
	int i;

	for_each_elastic_node(node) {
		if (!node->usable) {
			seq_printf(m, "vnode %u: not usable\n", node->vnode);
			continue;
		}
		seq_printf(m, "vnode %u: node %d, %s, %llu of %llu KiB, target %llu KiB, cpus %*pbl\n",
			   node->vnode, node->nid,
			   elastic_state_name(READ_ONCE(node->state)),
			   elastic_kib(elastic_populated(node)),
			   elastic_kib(node->range.nr_extents),
			   elastic_kib(READ_ONCE(node->target)),
			   cpumask_pr_args(&node->cpus));
		seq_printf(m, "  range %#llx, %u blocks of %u extents, %u of them memmap, plugged %*pbl\n",
			   node->range.start, node->range.nr_blocks,
			   node->range.block_extents,
			   node->range.memmap_extents,
			   (int)node->range.nr_blocks, node->present);
		seq_printf(m, "  attached %llu, detached %llu, failed %llu, extents in pieces %llu\n",
			   node->nr_attached, node->nr_detached,
			   node->nr_failed, node->nr_split);
		seq_printf(m, "  balloon: %llu extents were free, %llu were emptied, in pieces at Xen %u\n",
			   node->nr_taken_free, node->nr_taken_used,
			   bitmap_weight(node->torn, node->range.nr_extents));
		seq_puts(m, "  last operation, us:");
		for (i = 0; i < ELASTIC_NR_PHASES; i++)
			seq_printf(m, " %s=%llu", elastic_phase_names[i],
				   READ_ONCE(node->phase_us[i]));
		seq_putc(m, '\n');
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(nodes);

/* debugfs is for people: that it is not there is no error. */
void elastic_stats_init(void)
{
	struct dentry *dir = debugfs_create_dir("elastic-numa", NULL);

	debugfs_create_file("nodes", 0444, dir, NULL, &nodes_fops);
}
