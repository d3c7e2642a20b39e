/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Free memory at a place, see mm/take_free.c.
 */
#ifndef _LINUX_TAKE_FREE_H
#define _LINUX_TAKE_FREE_H

#include <linux/mm.h>
#include <linux/mmzone.h>

bool take_free_pages(struct page *page, unsigned int order);

/**
 * free_pages_at() - how many pages are free from this one on
 * @page: of an online section
 *
 * A look without locks: it may be over at any moment.
 *
 * Context: any.
 * Return: the pages of the free block that begins here; 0: none does.
 */
static inline unsigned long free_pages_at(const struct page *page)
{
	unsigned long order = READ_ONCE(page->private);

	if (!PageBuddy(page))
		return 0;
	/* Of a block that has gone since: any number. */
	return order <= MAX_PAGE_ORDER ? 1UL << order : 1;
}

#endif /* _LINUX_TAKE_FREE_H */
