// SPDX-License-Identifier: GPL-2.0
/*
 * The arithmetic of ranges, blocks and extents: tables of cases, the edges
 * first.  Numbers come from firmware tables and from xenstore, so those that
 * cannot be are as important as those that can.
 */
#include <errno.h>
#include <stdint.h>

#include "case.h"
#include "extent.h"

#define MiB		(1ULL << 20)
#define GiB		(1ULL << 30)
#define BLOCK		(128 * MiB)

struct range_case {
	const char *name;
	uint64_t start, size, block, memmap;
	int rc;
	uint32_t extents, blocks, block_extents, memmap_extents;
};

static const struct range_case ranges[] = {
	{ "range: one block", 4 * GiB, BLOCK, BLOCK, 2 * MiB, 0, 64, 1, 64, 1 },
	{ "range: 512 MiB", 6 * GiB, 512 * MiB, BLOCK, 2 * MiB, 0, 256, 4, 64, 1 },
	{ "range: ends within a block", 4 * GiB, BLOCK + 2 * MiB, BLOCK, 2 * MiB, 0, 65, 2, 64, 1 },
	{ "range: less than a block", 4 * GiB, 2 * MiB, BLOCK, 2 * MiB, 0, 1, 1, 64, 1 },
	{ "range: memmap elsewhere", 4 * GiB, BLOCK, BLOCK, 0, 0, 64, 1, 64, 0 },
	{ "range: blocks of 2 GiB", 64 * GiB, 6 * GiB, 2 * GiB, 32 * MiB, 0, 3072, 3, 1024, 16 },
	{ "range: block is one extent", 4 * GiB, 8 * MiB, 2 * MiB, 0, 0, 4, 4, 1, 0 },
	{ "range: starts at 0", 0, BLOCK, BLOCK, 2 * MiB, 0, 64, 1, 64, 1 },
	{ "range: the largest", 4096 * GiB, 4096 * GiB, BLOCK, 2 * MiB, 0, 1 << 21, 1 << 15, 64, 1 },
	{ "range: ends at the last address", -BLOCK, BLOCK - 2 * MiB, BLOCK, 2 * MiB, -ERANGE },
	{ "range: ends one block below the last", -2 * BLOCK, BLOCK, BLOCK, 2 * MiB, 0, 64, 1, 64, 1 },
	{ "range: empty", 4 * GiB, 0, BLOCK, 2 * MiB, -EINVAL },
	{ "range: start within a block", 4 * GiB + 2 * MiB, BLOCK, BLOCK, 2 * MiB, -EINVAL },
	{ "range: size no whole extents", 4 * GiB, BLOCK + 4096, BLOCK, 2 * MiB, -EINVAL },
	{ "range: size below one extent", 4 * GiB, 4096, BLOCK, 2 * MiB, -EINVAL },
	{ "range: more than the largest", 4096 * GiB, 4096 * GiB + 2 * MiB, BLOCK, 2 * MiB, -ERANGE },
	{ "range: size near 2^64", 4 * GiB, -2 * MiB, BLOCK, 2 * MiB, -ERANGE },
	{ "range: end overflows", -BLOCK, 2 * BLOCK, BLOCK, 2 * MiB, -ERANGE },
	{ "range: end overflows by rounding up", -BLOCK, 2 * MiB, BLOCK, 2 * MiB, -ERANGE },
	{ "range: no block size", 4 * GiB, BLOCK, 0, 0, -EINVAL },
	{ "range: block no power of two", 4 * GiB, BLOCK, 96 * MiB, 2 * MiB, -EINVAL },
	{ "range: block below one extent", 4 * GiB, BLOCK, MiB, 0, -EINVAL },
	{ "range: block beyond the largest", 0, BLOCK, 1ULL << 63, 2 * MiB, -ERANGE },
	{ "range: memmap as large as the block", 4 * GiB, BLOCK, BLOCK, BLOCK, -EINVAL },
	{ "range: memmap no whole extents", 4 * GiB, BLOCK, BLOCK, MiB, -EINVAL },
};

static void one_range(const void *argument)
{
	const struct range_case *c = argument;
	struct elastic_range r = { .start = 0xdead };
	int rc = elastic_range_init(&r, c->start, c->size, c->block, c->memmap);

	CHECK(rc == c->rc, "%d, not %d", rc, c->rc);
	if (rc) {
		CHECK(r.start == 0xdead, "a refused range was written");
		return;
	}
	CHECK(r.start == c->start, "start %#llx", (unsigned long long)r.start);
	CHECK(r.nr_extents == c->extents, "%u extents", r.nr_extents);
	CHECK(r.nr_blocks == c->blocks, "%u blocks", r.nr_blocks);
	CHECK(r.block_extents == c->block_extents, "%u", r.block_extents);
	CHECK(r.memmap_extents == c->memmap_extents, "%u", r.memmap_extents);
	CHECK(elastic_span(&r) >= c->size, "span too small");
	CHECK(elastic_span(&r) - c->size < c->block, "span too large");
}

static struct elastic_range range(uint64_t start, uint64_t size)
{
	struct elastic_range r;
	int rc = elastic_range_init(&r, start, size, BLOCK, 2 * MiB);

	CHECK(!rc, "%d", rc);
	return r;
}

struct target_case {
	const char *name;
	uint64_t kib;
	int rc;
	uint32_t extents;
};

/* Of a range of 300 MiB: 150 extents. */
static const struct target_case targets[] = {
	{ "target: nothing", 0, 0, 0 },
	{ "target: one extent", 2048, 0, 1 },
	{ "target: one block", 131072, 0, 64 },
	{ "target: one block and one extent", 133120, 0, 65 },
	{ "target: everything", 307200, 0, 150 },
	{ "target: one extent too much", 309248, -ERANGE },
	{ "target: the rest of the last block", 393216, -ERANGE },
	{ "target: 1 KiB", 1, -EINVAL },
	{ "target: one page short of an extent", 2044, -EINVAL },
	{ "target: one page more than everything", 307204, -EINVAL },
	{ "target: extents that overflow 32 bits", 2048ULL << 32, -ERANGE },
	{ "target: extents that overflow 32 bits to one", (2048ULL << 32) + 2048, -ERANGE },
	{ "target: largest number", UINT64_MAX, -EINVAL },
	{ "target: largest whole number of extents", UINT64_MAX - 2047, -ERANGE },
};

static const struct target_case large_targets[] = {
	{ "target: less than struct pages", 30720, -EDOM },
	{ "target: struct pages alone", 32768, 0, 16 },
	{ "target: a large block and less than struct pages", 2097152 + 30720, -EDOM },
	{ "target: a large block and one extent", 2097152 + 2048, -EDOM },
	{ "target: a large block and struct pages", 2097152 + 32768, 0, 1040 },
	{ "target: a large block", 2097152, 0, 1024 },
	{ "target: nothing of large blocks", 0, 0, 0 },
};

static void one_target_of_large_blocks(const void *argument)
{
	const struct target_case *c = argument;
	struct elastic_range r;
	uint32_t extents = 4711;
	int rc;

	CHECK(!elastic_range_init(&r, 4 * GiB, 5 * GiB, 2 * GiB, 32 * MiB), "range");
	rc = elastic_target_extents(&r, c->kib, &extents);
	CHECK(rc == c->rc, "%d", rc);
	CHECK(extents == (rc ? 4711 : c->extents), "%u extents", extents);
}

static void one_target(const void *argument)
{
	const struct target_case *c = argument;
	struct elastic_range r = range(4 * GiB, 300 * MiB);
	uint32_t extents = 4711;
	int rc = elastic_target_extents(&r, c->kib, &extents);

	CHECK(rc == c->rc, "%d, not %d", rc, c->rc);
	CHECK(extents == (rc ? 4711 : c->extents), "%u extents", extents);
	if (!rc)
		CHECK(elastic_kib(extents) == c->kib, "%llu KiB",
		      (unsigned long long)elastic_kib(extents));
}

struct find_case {
	const char *name;
	uint64_t address;
	int found;
	uint32_t extent;
};

/* Of a range of 300 MiB at 4 GiB: three blocks, the last one in part. */
static const struct find_case finds[] = {
	{ "find: first page", 4 * GiB, 1, 0 },
	{ "find: last page of the first extent", 4 * GiB + 2 * MiB - 4096, 1, 0 },
	{ "find: first page of the second extent", 4 * GiB + 2 * MiB, 1, 1 },
	{ "find: last page of the first block", 4 * GiB + BLOCK - 4096, 1, 63 },
	{ "find: first page of the second block", 4 * GiB + BLOCK, 1, 64 },
	{ "find: last page that SRAT declares", 4 * GiB + 300 * MiB - 4096, 1, 149 },
	{ "find: beyond it, in the last block", 4 * GiB + 300 * MiB, 1, 150 },
	{ "find: last page of the last block", 4 * GiB + 3 * BLOCK - 4096, 1, 191 },
	{ "find: behind the last block", 4 * GiB + 3 * BLOCK, 0, 0 },
	{ "find: before the range", 4 * GiB - 4096, 0, 0 },
	{ "find: page 0", 0, 0, 0 },
	{ "find: last page of all", UINT64_MAX - 4095, 0, 0 },
};

static void one_find(const void *argument)
{
	const struct find_case *c = argument;
	struct elastic_range r = range(4 * GiB, 300 * MiB);
	uint32_t extent = 4711;
	bool found = elastic_find_extent(&r, c->address >> 12, &extent);

	CHECK(found == c->found, "%d", found);
	CHECK(extent == (found ? c->extent : 4711), "extent %u", extent);
	if (found)
		CHECK(elastic_extent_pfn(&r, extent) ==
		      (c->address & ~(2 * MiB - 1)) >> 12, "pfn");
}

struct overlap_case {
	const char *name;
	uint64_t a, a_size, b, b_size;
	int overlap;
};

static const struct overlap_case overlaps[] = {
	{ "overlap: apart", 4 * GiB, BLOCK, 6 * GiB, BLOCK, 0 },
	{ "overlap: neighbours", 4 * GiB, BLOCK, 4 * GiB + BLOCK, BLOCK, 0 },
	{ "overlap: the same", 4 * GiB, BLOCK, 4 * GiB, BLOCK, 1 },
	{ "overlap: one within the other", 4 * GiB, 4 * BLOCK, 4 * GiB + BLOCK, BLOCK, 1 },
	{ "overlap: last block shared", 4 * GiB, 2 * BLOCK, 4 * GiB + BLOCK, BLOCK, 1 },
	{ "overlap: only in the block that is not full", 4 * GiB, BLOCK + 2 * MiB, 4 * GiB + BLOCK, BLOCK, 1 },
};

static void one_overlap(const void *argument)
{
	const struct overlap_case *c = argument;
	struct elastic_range a = range(c->a, c->a_size);
	struct elastic_range b = range(c->b, c->b_size);

	CHECK(elastic_overlap(&a, &b) == c->overlap, "a, b");
	CHECK(elastic_overlap(&b, &a) == c->overlap, "b, a");
}

/* Every extent is in one block, and blocks tile the range. */
static void tiling(const void *argument)
{
	struct elastic_range r = range(4 * GiB, 300 * MiB);
	uint32_t block, extent, seen = 0, memmap = 0;

	for (block = 0; block < r.nr_blocks; block++) {
		CHECK(elastic_block_start(&r, block) ==
		      4 * GiB + block * BLOCK, "block %u", block);
		CHECK(elastic_block_usable(&r, block) ==
		      elastic_block_first(&r, block) + 1, "block %u", block);
		for (extent = elastic_block_first(&r, block);
		     extent < elastic_block_end(&r, block); extent++) {
			CHECK(extent == seen, "extent %u", extent);
			CHECK(elastic_extent_block(&r, extent) == block,
			      "extent %u", extent);
			memmap += elastic_extent_is_memmap(&r, extent);
			seen++;
		}
	}
	CHECK(seen == r.nr_extents, "%u", seen);
	CHECK(memmap == 3, "%u", memmap);
	CHECK(elastic_block_end(&r, 2) == 150, "%u", elastic_block_end(&r, 2));
	CHECK(elastic_block_bytes(&r) == BLOCK, "block size");
}

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

int main(int argc, char **argv)
{
	static struct test_case cases[COUNT(ranges) + COUNT(targets) +
				      COUNT(large_targets) + COUNT(finds) + COUNT(overlaps) + 1];
	size_t n = 0, i;

#define ADD(table, function)						\
	for (i = 0; i < COUNT(table); i++)				\
		cases[n++] = (struct test_case){ table[i].name, function, &table[i] }
	ADD(ranges, one_range);
	ADD(targets, one_target);
	ADD(large_targets, one_target_of_large_blocks);
	ADD(finds, one_find);
	ADD(overlaps, one_overlap);
	cases[n++] = (struct test_case){ "blocks tile the range", tiling };
	return run_cases(argc, argv, cases, n);
}
