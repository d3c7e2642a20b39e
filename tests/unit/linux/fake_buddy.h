/* SPDX-License-Identifier: GPL-2.0 */
/* The page allocator's free blocks, as mm/take_free.c asks for them; see take_free_test.c. */
#ifndef FAKE_BUDDY_H
#define FAKE_BUDDY_H

#define MAX_PAGE_ORDER	10

int free_order(unsigned long pfn);	/* of the block that begins there; -1: none does */
int type_of_block(unsigned long pfn);
#define PageBuddy(page)		(free_order(page_to_pfn(page)) >= 0)
#define buddy_order(page)	((unsigned int)free_order(page_to_pfn(page)))
#define get_pageblock_migratetype(page)	type_of_block(page_to_pfn(page))
int __isolate_free_page(struct page *page, unsigned int order);
void __putback_isolated_page(struct page *page, unsigned int order, int type);
void set_page_owner(struct page *page, unsigned int order, gfp_t gfp);
void lock_zone(struct zone *zone, bool lock);
#define spin_lock_irqsave(at, flags)					\
	((flags) = 0, lock_zone(container_of(at, struct zone, lock), true))
#define spin_unlock_irqrestore(at, flags)				\
	((void)(flags), lock_zone(container_of(at, struct zone, lock), false))

#endif
