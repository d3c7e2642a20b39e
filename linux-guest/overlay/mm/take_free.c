// SPDX-License-Identifier: GPL-2.0
/*
 * Free memory at a place, taken from the page allocator as it lies.
 *
 * alloc_contig_range() isolates page blocks, has all CPUs give back what is on
 * their lists, moves what is in the way, and goes through the struct pages of
 * the range several times.  None of that is needed for pages that are one free
 * block of the buddy allocator, or a part of one.
 *
 * What else may be in the way is left to who calls: pages on the lists per CPU
 * are not free here, and a page block that is not MIGRATE_MOVABLE belongs to
 * somebody, to who isolates it for instance.
 *
 * Locking: zone->lock, with interrupts off.  Struct pages of the block of largest
 * order are read and written under it: who has them in slow memory looks before.
 */
#include <linux/align.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/page_owner.h>
#include <linux/take_free.h>

#include "internal.h"

/*
 * The free block that holds @page, and all of its 2^@order pages; NULL if they
 * are none.  Under zone->lock.  What is before @page, down to the largest block,
 * is in the same section.
 */
static struct page *free_block_of(struct page *page, unsigned int order)
{
	unsigned long pfn = page_to_pfn(page);
	struct page *head;

	for (; order <= MAX_PAGE_ORDER; order++) {
		head = pfn_to_page(ALIGN_DOWN(pfn, 1UL << order));
		if (PageBuddy(head))
			return buddy_order(head) >= order ? head : NULL;
	}
	return NULL;
}

/**
 * take_free_pages() - take 2^order pages if they are free
 * @page: the first, of an online section; its number is a multiple of 2^@order
 * @order: at most MAX_PAGE_ORDER
 *
 * Nothing is drained, moved or waited for, and the lowest watermark is kept.
 *
 * Context: may sleep, for the account of page owners.
 * Return: true: the pages are the caller's, without a reference, and but for
 *	their owner as the allocator left them; false: they are not all free, or
 *	nothing was changed for another reason.
 */
bool take_free_pages(struct page *page, unsigned int order)
{
	struct zone *zone = page_zone(page);
	struct page *head, *rest;
	unsigned long flags;
	unsigned int has;
	bool taken = false;

	spin_lock_irqsave(&zone->lock, flags);
	head = free_block_of(page, order);
	if (!head || get_pageblock_migratetype(head) != MIGRATE_MOVABLE)
		goto unlock;
	has = buddy_order(head);
	if (!__isolate_free_page(head, has))
		goto unlock;
	taken = true;
	/* Of a larger block the other half goes back, until none is left. */
	while (has > order) {
		rest = head + (1UL << --has);
		if (page >= rest)
			swap(head, rest);
		__putback_isolated_page(rest, has, MIGRATE_MOVABLE);
	}
unlock:
	spin_unlock_irqrestore(&zone->lock, flags);
	/* As for any allocation: who frees them has the last owner struck off. */
	if (taken)
		set_page_owner(page, order, GFP_KERNEL);
	return taken;
}
