/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of an elastic range: a range of guest physical addresses is
 * a row of memory blocks (128 MiB as a rule: what Linux can online), a block
 * is a row of extents (2 MiB: what Xen gives and takes as one superpage).
 *
 * The range that SRAT declares may end within a block.  The block is plugged
 * whole; its extents beyond the range are never populated.
 *
 * Pure: no locks, no I/O.  Compiled into the driver and into the unit test.
 */
#ifndef _XEN_ELASTIC_EXTENT_H
#define _XEN_ELASTIC_EXTENT_H

#include <linux/bits.h>
#include <linux/types.h>

#define ELASTIC_EXTENT_ORDER	9			/* of 4 KiB pages */
#define ELASTIC_EXTENT_PAGES	BIT(ELASTIC_EXTENT_ORDER)
#define ELASTIC_EXTENT_SHIFT	(ELASTIC_EXTENT_ORDER + 12)
#define ELASTIC_EXTENT_BYTES	BIT_ULL(ELASTIC_EXTENT_SHIFT)
#define ELASTIC_EXTENT_KIB	(ELASTIC_EXTENT_BYTES >> 10)
/* 4 TiB a node: a bitmap of 256 KiB, and counts that fit in 32 bits. */
#define ELASTIC_MAX_EXTENTS	(2 * 1024 * 1024U)

/**
 * struct elastic_range - the address range of one elastic node
 * @start: first guest physical address, bytes, aligned to a block
 * @nr_extents: extents that SRAT declares, 1..ELASTIC_MAX_EXTENTS
 * @nr_blocks: blocks that they need
 * @block_extents: extents of a block, a power of two
 * @memmap_extents: extents at the head of each block that hold the block's
 *	own struct pages, and so never leave before the block does; may be 0
 */
struct elastic_range {
	u64 start;
	u32 nr_extents;
	u32 nr_blocks;
	u32 block_extents;
	u32 memmap_extents;
};

/**
 * elastic_range_init() - check a range and compute its counts
 * @r: filled on success only
 * @start: first guest physical address, bytes
 * @size: bytes
 * @block_bytes: size of a memory block, a power of two of at least one extent
 * @memmap_bytes: bytes at the head of a block that hold its struct pages,
 *	less than @block_bytes; 0 when they are somewhere else
 *
 * Return: 0; -EINVAL: size 0, @start not aligned to a block, @size or
 *	@memmap_bytes not whole extents, or a block size that cannot be;
 *	-ERANGE: address overflow, or more than ELASTIC_MAX_EXTENTS.
 */
int elastic_range_init(struct elastic_range *r, u64 start, u64 size,
		       u64 block_bytes, u64 memmap_bytes);

/**
 * elastic_target_extents() - a target in KiB as extents
 * @r: the range
 * @kib: what the toolstack asks for, KiB
 * @extents: result, 0..nr_extents
 *
 * Return: 0; -EINVAL: not whole extents; -ERANGE: more than the range holds;
 *	-EDOM: the last block would have less than its struct pages.
 */
int elastic_target_extents(const struct elastic_range *r, u64 kib,
			   u32 *extents);

/**
 * elastic_find_extent() - the extent that a page frame belongs to
 * @r: the range
 * @pfn: guest page frame number
 * @extent: result; may be beyond nr_extents in the last block
 *
 * Return: whether the frame is in one of the blocks of the range.
 */
bool elastic_find_extent(const struct elastic_range *r, u64 pfn, u32 *extent);

/**
 * elastic_overlap() - whether two ranges share a block
 * @a: a range
 * @b: another
 *
 * Return: true when they do.
 */
bool elastic_overlap(const struct elastic_range *a,
		     const struct elastic_range *b);

/* Bytes of the blocks of @r: at least what SRAT declares. */
static inline u64 elastic_span(const struct elastic_range *r)
{
	return ((u64)r->nr_blocks * r->block_extents) << ELASTIC_EXTENT_SHIFT;
}

static inline u64 elastic_block_bytes(const struct elastic_range *r)
{
	return (u64)r->block_extents << ELASTIC_EXTENT_SHIFT;
}

static inline u64 elastic_block_start(const struct elastic_range *r, u32 block)
{
	return r->start + (u64)block * elastic_block_bytes(r);
}

static inline u64 elastic_extent_pfn(const struct elastic_range *r, u32 extent)
{
	return (r->start >> 12) + ((u64)extent << ELASTIC_EXTENT_ORDER);
}

static inline u32 elastic_extent_block(const struct elastic_range *r, u32 extent)
{
	return extent / r->block_extents;
}

static inline u32 elastic_block_first(const struct elastic_range *r, u32 block)
{
	return block * r->block_extents;
}

/* First extent of @block that can hold something else than struct pages. */
static inline u32 elastic_block_usable(const struct elastic_range *r, u32 block)
{
	return elastic_block_first(r, block) + r->memmap_extents;
}

/* One past the last extent of @block that may be populated. */
static inline u32 elastic_block_end(const struct elastic_range *r, u32 block)
{
	u32 end = elastic_block_first(r, block) + r->block_extents;

	return end < r->nr_extents ? end : r->nr_extents;
}

static inline bool elastic_extent_is_memmap(const struct elastic_range *r,
					    u32 extent)
{
	return extent % r->block_extents < r->memmap_extents;
}

static inline u64 elastic_kib(u32 extents)
{
	return (u64)extents * ELASTIC_EXTENT_KIB;
}

#endif /* _XEN_ELASTIC_EXTENT_H */
