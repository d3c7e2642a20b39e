// SPDX-License-Identifier: GPL-2.0
/*
 * Ranges, blocks, extents and targets: the checked part of the arithmetic.
 *
 * Pure: no locks, no I/O.  Every number here may come from a firmware table
 * or from xenstore, so nothing is assumed to be sane.
 */
#include <linux/errno.h>
#include <linux/types.h>

#include "extent.h"

int elastic_range_init(struct elastic_range *r, u64 start, u64 size,
		       u64 block_bytes, u64 memmap_bytes)
{
	u64 extents, blocks, span;

	if (!block_bytes || (block_bytes & (block_bytes - 1)) ||
	    block_bytes < ELASTIC_EXTENT_BYTES)
		return -EINVAL;
	if (memmap_bytes >= block_bytes ||
	    (memmap_bytes & (ELASTIC_EXTENT_BYTES - 1)))
		return -EINVAL;
	if (!size || (size & (ELASTIC_EXTENT_BYTES - 1)) ||
	    (start & (block_bytes - 1)))
		return -EINVAL;

	extents = size >> ELASTIC_EXTENT_SHIFT;
	if (extents > ELASTIC_MAX_EXTENTS)
		return -ERANGE;
	/* Neither sum can wrap: @size is small now, a block is one term. */
	if (block_bytes > (u64)ELASTIC_MAX_EXTENTS << ELASTIC_EXTENT_SHIFT)
		return -ERANGE;
	blocks = (size + block_bytes - 1) / block_bytes;
	span = blocks * block_bytes;
	if (start + span < start)
		return -ERANGE;

	r->start = start;
	r->nr_extents = extents;
	r->nr_blocks = blocks;
	r->block_extents = block_bytes >> ELASTIC_EXTENT_SHIFT;
	r->memmap_extents = memmap_bytes >> ELASTIC_EXTENT_SHIFT;
	return 0;
}

int elastic_target_extents(const struct elastic_range *r, u64 kib,
			   u32 *extents)
{
	u64 n = kib / ELASTIC_EXTENT_KIB;
	u32 last;

	if (kib % ELASTIC_EXTENT_KIB)
		return -EINVAL;
	if (n > r->nr_extents)
		return -ERANGE;
	last = n % r->block_extents;
	if (last && last < r->memmap_extents)
		return -EDOM;
	*extents = n;
	return 0;
}

bool elastic_find_extent(const struct elastic_range *r, u64 pfn, u32 *extent)
{
	u64 first = r->start >> 12;
	u64 index;

	if (pfn < first)
		return false;
	index = (pfn - first) >> ELASTIC_EXTENT_ORDER;
	if (index >= (u64)r->nr_blocks * r->block_extents)
		return false;
	*extent = index;
	return true;
}

bool elastic_overlap(const struct elastic_range *a,
		     const struct elastic_range *b)
{
	u64 last_a = a->start + (elastic_span(a) - 1);
	u64 last_b = b->start + (elastic_span(b) - 1);

	return a->start <= last_b && b->start <= last_a;
}
