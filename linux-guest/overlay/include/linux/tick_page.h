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
 * ever.  The page is a section of its own (include/asm-generic/vmlinux.lds.h), so
 * nothing else is on it, whatever else a configuration aligns to pages.
 *
 * Read by whoever runs; written with timekeeper_lock or jiffies_lock held.
 */
#ifndef _LINUX_TICK_PAGE_H
#define _LINUX_TICK_PAGE_H

#include <linux/compiler_attributes.h>

#define __tick_page __section(".data..tick_page")

#endif /* _LINUX_TICK_PAGE_H */
