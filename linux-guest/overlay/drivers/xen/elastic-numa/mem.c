// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of a node, by extent (Xen) and by memory block (Linux).
 *
 * Xen gives and takes extents of 2 MiB from the physical node that backs the
 * vnode.  The first extents of a block hold the block's struct pages, so that
 * nothing of a node is kept on another one.
 *
 * Xen takes an extent page by page where it cannot take it whole, and ends at
 * the first page that it refuses.  What it has by then is asked for, page by
 * page, and comes back, so that the extent is as before.  If there is no memory
 * for that, the extent is torn: it counts, nobody uses it, and it is mended or
 * given back in pieces later.
 *
 * Every step that fails undoes what it did: after an error the node has what
 * it had before.
 *
 * Locking: the engine only, and so is the frame list.  Blocks are onlined and
 * offlined under device_hotplug_lock.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/bitmap.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include <xen/home-op.h>
#include <xen/interface/hvm/hvm_op.h>
#include <xen/interface/memory.h>

#include "elastic.h"

/* Xen's public memory.h: what the address_bits field has held since 3.2. */
#define XENMEMF_NODE(n)		(((n) + 1) << 8)
#define XENMEMF_EXACT_NODE	BIT(17)
#define XENMEMF_VNODE		BIT(18)

static xen_pfn_t frames[ELASTIC_EXTENT_PAGES];

/*
 * Extents a hypercall: so much is done before anybody can call it off, or another
 * thread has the CPU; Xen lets only interrupts in between.  Where one takes long,
 * as with memory of another host, there are fewer in the next.
 */
#define BATCH			ARRAY_SIZE(frames)
#define CALL_MS			100
static unsigned int batch = BATCH;

static void set_batch(unsigned int count, unsigned int ms)
{
	if (ms > CALL_MS)
		batch = max(count * CALL_MS / ms, 1U);
	else
		batch = min(2 * batch, (unsigned int)BATCH);
}

/*
 * Frames of 2^order pages from @first on, @count of them.  Returns how many
 * were done, from the first on, or an error of Xen's when it did none.
 */
static long reservation(const struct elastic_node *node, unsigned int cmd,
			u64 first, unsigned int count, unsigned int order)
{
	struct xen_memory_reservation r = {
		.nr_extents = count,
		.extent_order = order,
		.domid = DOMID_SELF,
	};
	ktime_t began;
	unsigned int i;
	long rc;

	if (cmd == XENMEM_populate_physmap)
		r.address_bits = XENMEMF_NODE(node->vnode) |
				 XENMEMF_EXACT_NODE | XENMEMF_VNODE;
	for (i = 0; i < count; i++)
		frames[i] = first + ((u64)i << order);
	set_xen_guest_handle(r.extent_start, frames);
	began = ktime_get();
	rc = xen_home_memory_op(cmd, &r);
	if (order)
		set_batch(count, ktime_ms_delta(ktime_get(), began));
	cond_resched();
	return rc;
}

static void mark(struct elastic_node *node, u32 first, u32 count)
{
	bitmap_set(node->populated, first, count);
	atomic_add(count, &node->nr_populated);
}

static void unmark(struct elastic_node *node, u32 first, u32 count)
{
	bitmap_clear(node->populated, first, count);
	atomic_sub(count, &node->nr_populated);
}

/* Pages of an extent, by Xen's word: how many are there, and which. */
struct look {
	u64 pfn;
	DECLARE_BITMAP(there, ELASTIC_EXTENT_PAGES);
};

/* What is on another host at the moment is there, too. */
static long look_at_pages(void *data)
{
	struct look *look = data;
	struct xen_hvm_get_mem_type type = { .domid = DOMID_SELF };
	unsigned int page;
	int rc;

	bitmap_zero(look->there, ELASTIC_EXTENT_PAGES);
	for (page = 0; page < ELASTIC_EXTENT_PAGES; page++) {
		type.pfn = look->pfn + page;
		rc = HYPERVISOR_hvm_op(HVMOP_get_mem_type, &type);
		if (rc)
			return rc;
		if (type.mem_type != HVMMEM_mmio_dm)
			set_bit(page, look->there);
	}
	return bitmap_weight(look->there, ELASTIC_EXTENT_PAGES);
}

/* The memory map is the business of CPU 0.  Returns how many, or an error. */
static long look_at_extent(const struct elastic_node *node, u32 extent,
			   struct look *look)
{
	look->pfn = elastic_extent_pfn(&node->range, extent);
	return work_on_cpu(0, look_at_pages, look);
}

/* The pages that a torn extent does not have.  0: it is whole again. */
static int make_whole(struct elastic_node *node, u32 extent)
{
	struct look look;
	long rc = look_at_extent(node, extent, &look);
	unsigned int page;

	if (rc < 0)
		return rc;
	for_each_clear_bit(page, look.there, ELASTIC_EXTENT_PAGES) {
		rc = reservation(node, XENMEM_populate_physmap,
				 look.pfn + page, 1, 0);
		if (rc != 1)
			return rc ?: -ENOMEM;
	}
	node->nr_split++;
	clear_bit(extent, node->torn);
	return 0;
}

/**
 * elastic_mend() - get the pages that a torn extent does not have
 * @node: the node
 * @extent: a torn extent
 *
 * Return: 0: it has all, and is not torn any more; or an error: -ENOMEM, or
 *	Xen's.
 */
int elastic_mend(struct elastic_node *node, u32 extent)
{
	int rc = make_whole(node, extent);

	if (!rc)
		return 0;
	return elastic_node_error(node, rc,
				  "an extent of 2048 KiB is in pieces at pfn %#llx, and Xen gives no pages for it",
				  elastic_extent_pfn(&node->range, extent));
}

/* Returns whether Xen has all of a torn extent now. */
static bool release_pieces(struct elastic_node *node, u32 extent)
{
	struct look look;
	unsigned int page, kept = 0;

	if (look_at_extent(node, extent, &look) < 0)
		return false;
	for_each_set_bit(page, look.there, ELASTIC_EXTENT_PAGES)
		kept += reservation(node, XENMEM_decrease_reservation,
				    look.pfn + page, 1, 0) != 1;
	if (kept)
		return false;
	clear_bit(extent, node->torn);
	unmark(node, extent, 1);
	return true;
}

/*
 * Xen has refused an extent, at its first page or later.  Returns whether the
 * node has it still, or a part of it.
 */
static bool refused(struct elastic_node *node, u32 extent)
{
	struct look look;
	long nr = look_at_extent(node, extent, &look);

	if (nr < 0)
		pr_err("vnode %u: Xen keeps the extent at pfn %#llx, and does not say which of its pages are there (%ld)\n",
		       node->vnode, look.pfn, nr);
	else
		pr_err("vnode %u: Xen keeps the extent at pfn %#llx, %ld of its %lu pages are there\n",
		       node->vnode, look.pfn, nr, ELASTIC_EXTENT_PAGES);
	if (!nr) {
		unmark(node, extent, 1);
		return false;
	}
	if (nr != ELASTIC_EXTENT_PAGES) {
		set_bit(extent, node->torn);
		make_whole(node, extent);
	}
	return true;
}

/* One extent as single pages: the physical node has memory but in pieces. */
static int populate_split(struct elastic_node *node, u32 extent)
{
	u64 pfn = elastic_extent_pfn(&node->range, extent);
	long done, undone;

	done = reservation(node, XENMEM_populate_physmap, pfn,
			   ELASTIC_EXTENT_PAGES, 0);
	if (done == ELASTIC_EXTENT_PAGES) {
		node->nr_split++;
		return 0;
	}
	if (done <= 0)
		return done ?: -ENOMEM;
	undone = reservation(node, XENMEM_decrease_reservation, pfn, done, 0);
	if (undone != done) {
		pr_err("vnode %u: Xen took back %ld of %ld pages at pfn %#llx\n",
		       node->vnode, undone, done, pfn);
		set_bit(extent, node->torn);
		mark(node, extent, 1);
	}
	return -ENOMEM;
}

/* How many extents from @first on, and below @end, have no memory. */
static u32 run_of_holes(const struct elastic_node *node, u32 first, u32 end)
{
	u32 next = find_next_bit(node->populated, end, first);

	return min(next - first, batch);
}

/**
 * elastic_populate_some() - get memory for extents, as far as there is some
 * @node: the node
 * @first: first extent
 * @count: how many; those that Xen would not take back have theirs already
 * @done: how many have memory now, from the first on, also after an error
 *
 * Return: 0: all of them; or an error: -ECANCELED: there is a new target; -ENOMEM:
 *	the physical node has no more, or the toolstack allows no more; other
 *	errors are Xen's.
 */
int elastic_populate_some(struct elastic_node *node, u32 first, u32 count,
			  u32 *done)
{
	long got;
	u32 n;
	int rc;

	*done = 0;
	while (*done < count) {
		if (elastic_cancel_pending())
			return -ECANCELED;
		n = run_of_holes(node, first + *done, first + count);
		if (!n) {
			rc = test_bit(first + *done, node->torn) ?
			     elastic_mend(node, first + *done) : 0;
			if (rc)
				return rc;
			(*done)++;
			continue;
		}
		got = reservation(node, XENMEM_populate_physmap,
				  elastic_extent_pfn(&node->range, first + *done),
				  n, ELASTIC_EXTENT_ORDER);
		if (got > 0) {
			mark(node, first + *done, got);
			*done += got;
		}
		if (got == n)
			continue;
		rc = populate_split(node, first + *done);
		if (rc)
			return elastic_node_error(node, rc,
						  "Xen gave %u of %u extents of 2048 KiB: its node is short of memory, or maxmem too low",
						  *done, count);
		mark(node, first + *done, 1);
		(*done)++;
	}
	return 0;
}

/**
 * elastic_populate() - get memory for extents
 * @node: the node
 * @first: first extent
 * @count: how many; those that Xen would not take back have theirs already
 *
 * Return: 0, or an error of elastic_populate_some(), with none of them populated,
 *	but for those that Xen does not take back.
 */
int elastic_populate(struct elastic_node *node, u32 first, u32 count)
{
	u32 done;
	int rc = elastic_populate_some(node, first, count, &done);

	if (rc)
		elastic_release(node, first, done);
	return rc;
}

/**
 * elastic_release() - give the memory of extents back to Xen
 * @node: the node
 * @first: first extent; those that are not populated are skipped
 * @count: how many
 *
 * Xen scrubs what a live domain gives back.
 *
 * Return: how many extents Xen would not take; they stay populated, or torn.
 */
u32 elastic_release(struct elastic_node *node, u32 first, u32 count)
{
	u32 end = first + count, run, kept = 0;
	long rc;

	for (; first < end; first += run) {
		run = 1;
		if (!test_bit(first, node->populated))
			continue;
		if (test_bit(first, node->torn)) {
			kept += !release_pieces(node, first);
			continue;
		}
		while (first + run < end && run < batch &&
		       elastic_has_memory(node, first + run))
			run++;
		rc = reservation(node, XENMEM_decrease_reservation,
				 elastic_extent_pfn(&node->range, first), run,
				 ELASTIC_EXTENT_ORDER);
		if (rc > 0)
			unmark(node, first, rc);
		if (rc == run)
			continue;
		/* The one after those that Xen took is the one it refused. */
		run = max(rc, 0L) + 1;
		kept += refused(node, first + run - 1);
	}
	return kept;
}

/**
 * elastic_release_strays() - give back what Xen once refused to take
 * @node: the node
 *
 * An extent that Xen refused outlives its block; nobody uses it.
 *
 * Return: how many extents Xen still does not take.
 */
u32 elastic_release_strays(struct elastic_node *node)
{
	u32 block, kept = 0;

	for_each_clear_bit(block, node->present, node->range.nr_blocks)
		kept += elastic_release(node,
					elastic_block_first(&node->range, block),
					node->range.block_extents);
	return kept;
}

/**
 * elastic_reclaim() - give back memory that another kernel had of a node
 * @node: a node without blocks, of whose memory nothing is known
 * @had: extents that the other kernel had, whole or in part
 *
 * What Xen does not take is looked for page by page, and stays populated, or
 * torn: it must not be asked for again.  So does all of which Xen says nothing.
 *
 * Return: how many extents Xen took.
 */
u32 elastic_reclaim(struct elastic_node *node, u32 had)
{
	u32 extent, taken = 0, kept = 0;
	struct look look;
	long nr;

	for (extent = 0; extent < node->range.nr_extents; extent++) {
		if (reservation(node, XENMEM_decrease_reservation,
				elastic_extent_pfn(&node->range, extent), 1,
				ELASTIC_EXTENT_ORDER) == 1)
			taken++;
		else
			set_bit(extent, node->torn);	/* or nothing is there */
	}
	for_each_set_bit(extent, node->torn, node->range.nr_extents) {
		nr = taken + kept < had ? look_at_extent(node, extent, &look) : 0;
		if (!nr || nr == ELASTIC_EXTENT_PAGES)
			clear_bit(extent, node->torn);
		if (!nr)
			continue;
		mark(node, extent, 1);
		if (!elastic_release(node, extent, 1))
			taken++;
		else if (nr > 0)
			kept++;
	}
	return taken;
}

u32 elastic_block_populated(const struct elastic_node *node, u32 block)
{
	u32 extent = elastic_block_first(&node->range, block), n = 0;
	u32 end = elastic_block_end(&node->range, block);

	for_each_set_bit_from(extent, node->populated, end)
		n++;
	return n;
}

static struct memory_block *find_block(const struct elastic_node *node,
				       u32 block)
{
	u64 start = elastic_block_start(&node->range, block);

	return find_memory_block(pfn_to_section_nr(PHYS_PFN(start)));
}

/* The memory notifier sees to it that it can be ZONE_MOVABLE only. */
static int block_online(struct elastic_node *node, u32 block)
{
	struct memory_block *mem;
	int rc;

	lock_device_hotplug();
	mem = find_block(node, block);
	if (!mem) {
		rc = -ENODEV;
	} else {
		mem->online_type = MMOP_ONLINE_MOVABLE;
		rc = device_online(&mem->dev);
		put_device(&mem->dev);
	}
	unlock_device_hotplug();
	/* 1: udev was faster. */
	return min(rc, 0);
}

static int block_plug(struct elastic_node *node, u32 block)
{
	/* Whatever the policy for other memory is, this is onlined by us. */
	return add_memory_driver_managed(node->mgid,
					 elastic_block_start(&node->range, block),
					 elastic_block_bytes(&node->range),
					 "System RAM (xen-elastic-numa)",
					 MHP_MERGE_RESOURCE | MHP_NID_IS_MGID |
					 MHP_MEMMAP_ON_MEMORY |
					 MHP_STAY_OFFLINE);
}

/**
 * elastic_block_add() - plug a block and bring it online
 * @node: the node
 * @block: a block that is not present
 * @count: extents to populate, from the block's first on; at least its memmap
 *
 * Return: 0, or an error with the block absent and unpopulated, as before.
 */
int elastic_block_add(struct elastic_node *node, u32 block, u32 count)
{
	u32 first = elastic_block_first(&node->range, block);
	u64 start = elastic_block_start(&node->range, block);
	int rc;

	elastic_phase(ELASTIC_PH_POPULATE);
	rc = elastic_populate(node, first, count);
	if (rc)
		return rc;

	elastic_phase(ELASTIC_PH_ADD);
	rc = block_plug(node, block);
	if (rc) {
		elastic_node_error(node, rc, "block %u at %#llx cannot be added",
				   block, start);
		goto release;
	}

	elastic_phase(ELASTIC_PH_ONLINE);
	rc = block_online(node, block);
	if (rc) {
		elastic_node_error(node, rc, "block %u at %#llx cannot be onlined",
				   block, start);
		goto remove;
	}
	set_bit(block, node->present);
	return 0;

remove:
	if (remove_memory(start, elastic_block_bytes(&node->range))) {
		/* Somebody has onlined it all the same: then it is in use. */
		set_bit(block, node->present);
		return rc;
	}
release:
	elastic_release(node, first, count);
	return rc;
}

/**
 * elastic_block_look() - look once at all of a block's struct pages
 * @node: the node
 * @block: a block that is present
 *
 * They are in the block itself.  Where its memory is on another host, one that is
 * not at hand comes in milliseconds, and who walks the block waits for each.
 *
 * Context: the engine, without locks.  May sleep.
 * Return: how long it took, ms; of a part, if the operation was cancelled.
 */
unsigned int elastic_block_look(const struct elastic_node *node, u32 block)
{
	unsigned long pfn = PHYS_PFN(elastic_block_start(&node->range, block));
	unsigned long end = pfn + PHYS_PFN(elastic_block_bytes(&node->range));
	ktime_t began = ktime_get();

	for (; pfn < end; pfn += PAGE_SIZE / sizeof(struct page)) {
		if (elastic_cancel_pending() ||
		    page_to_nid(pfn_to_page(pfn)) != node->nid)
			break;
		cond_resched();
	}
	return ktime_ms_delta(ktime_get(), began);
}

/**
 * elastic_block_offline() - take a block from the page allocator
 * @node: the node
 * @block: a block that is present
 * @timeout_ms: how long pages may be in the way
 *
 * Return: 0: offline; -ETIMEDOUT, -ECANCELED: it took too long or is not
 *	wanted any more, the block is online; else what offline_pages() says.
 */
int elastic_block_offline(struct elastic_node *node, u32 block,
			  unsigned int timeout_ms)
{
	struct memory_block *mem;
	int rc, signalled;

	lock_device_hotplug();
	mem = find_block(node, block);
	if (!mem) {
		unlock_device_hotplug();
		return -ENODEV;
	}
	elastic_interruptible(timeout_ms);
	rc = device_offline(&mem->dev);
	signalled = elastic_uninterruptible();
	put_device(&mem->dev);
	unlock_device_hotplug();

	if (rc >= 0)
		return 0;	/* 1: it was offline already */
	return signalled ?: rc;
}

/**
 * elastic_block_remove() - remove an offline block and give its memory back
 * @node: the node
 * @block: a block that is present and offline
 *
 * Return: 0, also when Xen kept something: the counters know; or what
 *	remove_memory() says when somebody has onlined the block again.
 */
int elastic_block_remove(struct elastic_node *node, u32 block)
{
	int rc;

	elastic_phase(ELASTIC_PH_RELEASE);
	rc = remove_memory(elastic_block_start(&node->range, block),
			   elastic_block_bytes(&node->range));
	if (rc)
		return rc;
	clear_bit(block, node->present);
	elastic_release(node, elastic_block_first(&node->range, block),
			node->range.block_extents);
	return 0;
}

/**
 * elastic_mem_init() - what a node needs before its first block
 * @node: a node whose range is known
 *
 * Return: 0, -ENOMEM, or why its memory group cannot be.
 */
int elastic_mem_init(struct elastic_node *node)
{
	struct elastic_range *r = &node->range;

	node->populated = bitmap_zalloc(r->nr_blocks * r->block_extents,
					GFP_KERNEL);
	node->torn = bitmap_zalloc(r->nr_blocks * r->block_extents, GFP_KERNEL);
	node->present = bitmap_zalloc(r->nr_blocks, GFP_KERNEL);
	node->mgid = -ENOMEM;
	if (node->populated && node->torn && node->present)
		node->mgid = memory_group_register_dynamic(node->nid,
							   PHYS_PFN(elastic_block_bytes(r)));
	if (node->mgid >= 0)
		return 0;

	bitmap_free(node->populated);
	bitmap_free(node->torn);
	bitmap_free(node->present);
	node->populated = NULL;
	node->torn = NULL;
	node->present = NULL;
	return node->mgid;
}
