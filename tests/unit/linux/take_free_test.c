// SPDX-License-Identifier: GPL-2.0
/*
 * Free memory at a place: mm/take_free.c as it is, on an allocator whose free
 * blocks are a table.  It checks what the page allocator asks for: the lock, and
 * blocks that are free, whole and of the right type.
 */
#include "case.h"
#include "fake_kernel.h"
#include <linux/take_free.h>

#define PAGES	8192UL

pg_data_t nodes[2];
struct page pages[PAGES];
static int owners[PAGES];		/* of each page, so far */
static signed char order_at[PAGES];	/* of the free block there, + 1; 0: none */
static int type = MIGRATE_MOVABLE;
static bool locked, without_locks, below_the_watermark;

void say(const char *format, ...) { }
void fail(const char *format, ...) { exit(1); }

int free_order(unsigned long pfn)
{
	CHECK(locked || without_locks, "looked at without the lock");
	CHECK(pfn < PAGES, "pfn %lu", pfn);
	return order_at[pfn] - 1;
}

int type_of_block(unsigned long pfn)
{
	CHECK(locked, "its type may change");
	return type;
}

void lock_zone(struct zone *zone, bool lock)
{
	CHECK(zone == &nodes[1].node_zones[0] && locked != lock, "the lock");
	locked = lock;
}

int __isolate_free_page(struct page *page, unsigned int order)
{
	CHECK(free_order(page_to_pfn(page)) == (int)order, "order %u", order);
	if (below_the_watermark)
		return 0;
	order_at[page_to_pfn(page)] = 0;
	return 1 << order;
}

void __putback_isolated_page(struct page *page, unsigned int order, int of)
{
	unsigned long pfn = page_to_pfn(page);

	CHECK(locked && of == type, "put back as type %d", of);
	CHECK(!(pfn & ((1UL << order) - 1)), "order %u at %lu", order, pfn);
	CHECK(!order_at[pfn], "put back twice");
	order_at[pfn] = order + 1;
}

/* Its account may need memory. */
void set_page_owner(struct page *page, unsigned int order, gfp_t gfp)
{
	unsigned long pfn = page_to_pfn(page), end = pfn + (1UL << order);

	CHECK(!locked && gfp == GFP_KERNEL, "under a lock");
	while (pfn < end)
		owners[pfn++]++;
}

static unsigned long all_free(void)
{
	unsigned long pfn, pages = 0;

	for (pfn = 0; pfn < PAGES; pfn++)
		pages += order_at[pfn] ? 1UL << (order_at[pfn] - 1) : 0;
	return pages;
}

static bool take(unsigned long pfn, unsigned int order)
{
	unsigned long at;
	bool taken;

	memset(owners, 0, sizeof(owners));
	taken = take_free_pages(pfn_to_page(pfn), order);
	CHECK(!locked, "the lock is kept");
	for (at = 0; at < PAGES; at++)
		CHECK(owners[at] == (taken && at >= pfn && at < pfn + (1UL << order)),
		      "page %lu has %d owners", at, owners[at]);
	return taken;
}

static void whole(const void *argument)
{
	order_at[512] = 9 + 1;
	CHECK(take(512, 9), "it is free");
	CHECK(!all_free(), "%lu pages", all_free());
	CHECK(!take(512, 9), "twice");
}

/* Each half of a larger block, and each piece of one of them: the rest stays free. */
static void part(const void *argument)
{
	unsigned long pfn, at;
	unsigned int order;

	for (order = 0; order < 10; order++) {
		for (pfn = 0; pfn < 1024; pfn += 1UL << order) {
			memset(order_at, 0, sizeof(order_at));
			order_at[2048] = 10 + 1;
			CHECK(take(2048 + pfn, order), "order %u at %lu", order, pfn);
			CHECK(all_free() == 1024 - (1UL << order), "%lu pages", all_free());
			for (at = 0; at < 1024; at++)
				CHECK(!order_at[2048 + at] || at + (1UL << (order_at[2048 + at] - 1)) <= pfn ||
				      at >= pfn + (1UL << order), "what was taken is free");
		}
	}
}

static void in_use(const void *argument)
{
	/* Free but for a page; the half before it; the half behind it; nothing. */
	order_at[1024] = 8 + 1;
	order_at[1280] = 7 + 1;
	CHECK(!take(1024, 9), "a part is in use");
	order_at[2048] = 9 + 1;
	CHECK(!take(2560, 9), "what is before it is free");
	order_at[4608] = 9 + 1;
	CHECK(!take(4096, 9), "what is behind it is free");
	CHECK(!take(7168, 9), "nothing is free");
	CHECK(all_free() == 256 + 128 + 512 + 512, "%lu pages", all_free());
}

static void of_others(const void *argument)
{
	order_at[512] = 9 + 1;
	type = MIGRATE_MOVABLE + 1;
	CHECK(!take(512, 9), "somebody has isolated it");
	type = MIGRATE_MOVABLE - 1;
	CHECK(!take(512, 9), "it is for what cannot be moved");
	type = MIGRATE_MOVABLE;
	below_the_watermark = true;
	CHECK(!take(512, 9), "the last pages");
	CHECK(all_free() == 512, "%lu pages", all_free());
	below_the_watermark = false;
	CHECK(take(512, 9), "it is free");
}

/* Without locks: the order may be that of a block that has gone since. */
static void look(const void *argument)
{
	without_locks = true;
	order_at[512] = 9 + 1;
	pages[512].private = 9;
	CHECK(free_pages_at(pfn_to_page(512)) == 512, "%lu pages", free_pages_at(pfn_to_page(512)));
	CHECK(!free_pages_at(pfn_to_page(513)), "no block begins there");
	pages[512].private = MAX_PAGE_ORDER;
	CHECK(free_pages_at(pfn_to_page(512)) == 1024, "the largest");
	pages[512].private = MAX_PAGE_ORDER + 1;
	CHECK(free_pages_at(pfn_to_page(512)) == 1, "no order");
	pages[512].private = ~0UL;
	CHECK(free_pages_at(pfn_to_page(512)) == 1, "no order");
	order_at[512] = 0;
	CHECK(!free_pages_at(pfn_to_page(512)), "it is in use");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "take: a block", whole },
		{ "take: a part of a block", part },
		{ "take: what is in use", in_use },
		{ "take: what is others'", of_others },
		{ "take: a look", look },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
