// SPDX-License-Identifier: GPL-2.0
/*
 * The ranges of elastic nodes: found in SRAT, and reserved before anybody
 * else takes a free range of guest physical addresses (grant mappings, the
 * balloon).
 *
 * Locking: everything here runs once, early in boot, on one CPU.  After that
 * elastic_nodes, elastic_nr_nodes and the ranges never change.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/acpi.h>
#include <linux/crash_dump.h>
#include <linux/init.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/slab.h>

#include <xen/xen.h>

#include "elastic.h"

struct elastic_node *elastic_nodes;
unsigned int elastic_nr_nodes;

struct elastic_node *elastic_node_of_pfn(unsigned long pfn, u32 *extent)
{
	struct elastic_node *node;

	for_each_elastic_node(node) {
		if (elastic_find_extent(&node->range, pfn, extent))
			return node;
	}
	return NULL;
}

/* Keep the range for us; __add_memory() will find it free nonetheless. */
static int __init reserve(struct elastic_node *node)
{
	node->res = __request_mem_region(node->range.start,
					 elastic_span(&node->range),
					 "xen-elastic-numa",
					 IORESOURCE_SYSTEM_RAM |
					 IORESOURCE_EXCLUSIVE);
	if (!node->res)
		return -EBUSY;
	node->res->flags &= ~IORESOURCE_BUSY;
	return 0;
}

static int __init add_node(u32 pxm, u64 start, u64 size)
{
	struct elastic_node *node = &elastic_nodes[elastic_nr_nodes];
	u64 block = memory_block_size_bytes();
	u64 memmap = 0;
	unsigned int i;
	int rc;

	if (mhp_supports_memmap_on_memory())
		memmap = PHYS_PFN(block) * sizeof(struct page);

	node->vnode = pxm;
	node->nid = pxm_to_node(pxm);
	if (node->nid == NUMA_NO_NODE || !node_possible(node->nid))
		return -ENODEV;
	for (i = 0; i < elastic_nr_nodes; i++) {
		if (elastic_nodes[i].vnode == pxm)
			return -EEXIST;
	}
	rc = elastic_range_init(&node->range, start, size, block, memmap);
	/* A range of ours is not busy: another would find room within it. */
	for (i = 0; !rc && i < elastic_nr_nodes; i++) {
		if (elastic_overlap(&elastic_nodes[i].range, &node->range))
			rc = -EBUSY;
	}
	if (!rc)
		rc = reserve(node);
	if (rc)
		return rc;

	elastic_nr_nodes++;
	return 0;
}

static int __init parse_memory(union acpi_subtable_headers *header,
			       const unsigned long end)
{
	struct acpi_srat_mem_affinity *ma = (void *)header;
	const u32 wanted = ACPI_SRAT_MEM_ENABLED | ACPI_SRAT_MEM_HOT_PLUGGABLE;
	int rc;

	if (BAD_MADT_ENTRY(ma, end) || (ma->flags & wanted) != wanted)
		return 0;
	if (elastic_nr_nodes == MAX_NUMNODES)
		return 0;

	rc = add_node(ma->proximity_domain, ma->base_address, ma->length);
	if (rc) {
		memset(&elastic_nodes[elastic_nr_nodes], 0,
		       sizeof(*elastic_nodes));
		pr_err("vnode %u at %#llx, %llu KiB: cannot be used (%d): blocks are %lu KiB\n",
		       ma->proximity_domain, ma->base_address,
		       ma->length >> 10, rc, memory_block_size_bytes() >> 10);
	}
	return 0;
}

static bool any_hotpluggable __initdata;

static int __init look_at_memory(union acpi_subtable_headers *header,
				 const unsigned long end)
{
	struct acpi_srat_mem_affinity *ma = (void *)header;

	if (!BAD_MADT_ENTRY(ma, end) && (ma->flags & ACPI_SRAT_MEM_ENABLED) &&
	    (ma->flags & ACPI_SRAT_MEM_HOT_PLUGGABLE))
		any_hotpluggable = true;
	return 0;
}

static void __init parse_srat_memory(acpi_tbl_entry_handler handler)
{
	acpi_table_parse_entries(ACPI_SIG_SRAT, sizeof(struct acpi_table_srat),
				 ACPI_SRAT_TYPE_MEMORY_AFFINITY, handler, 0);
}

/* Before core_initcall: that is when grant tables take a range. */
static int __init elastic_range_reserve(void)
{
	if (!xen_pvh_domain() || xen_initial_domain() || acpi_disabled)
		return 0;
	/* The memory of a node is part of the dump, and not ours to change. */
	if (is_kdump_kernel())
		return 0;

	/* A guest without elastic nodes keeps every default. */
	parse_srat_memory(look_at_memory);
	if (!any_hotpluggable)
		return 0;

	elastic_nodes = kcalloc(MAX_NUMNODES, sizeof(*elastic_nodes),
				GFP_KERNEL);
	if (!elastic_nodes)
		return -ENOMEM;
	mhp_enable_memmap_on_memory();
	parse_srat_memory(parse_memory);
	if (elastic_nr_nodes)
		return 0;

	kfree(elastic_nodes);
	elastic_nodes = NULL;
	return 0;
}
early_initcall(elastic_range_reserve);
