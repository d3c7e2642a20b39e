/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One page for what each tick writes: the time, and the locks around it.
 *
 * In a guest that runs on several hosts a page moves as a whole.  The CPU that
 * keeps the time writes jiffies, the timekeeper and when the next tick is due,
 * and each other CPU reads them in its own ticks.  Spread over several pages,
 * together with what has nothing to do with ticks, that is a fault for each of
 * these pages in each tick of each host; on one page it is one.
 *
 * What began a cache line before still does, so CPUs of one host share it as
 * ever.  jiffies_64 comes first, by the order of objects in kernel/time, and
 * begins the page; what follows in other objects is aligned to a page by itself,
 * so nothing else is on it.
 *
 * Read by whoever runs; written with timekeeper_lock or jiffies_lock held.
 */
#ifndef _LINUX_TICK_PAGE_H
#define _LINUX_TICK_PAGE_H

#include <linux/compiler_attributes.h>

#define __tick_page __section(".data..page_aligned")

#endif /* _LINUX_TICK_PAGE_H */
