/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the rest of the kernel may ask of the elastic NUMA driver.
 *
 * Safe to call at any time, also where there is no such driver, on bare
 * metal, in dom0 and in a guest without elastic nodes.
 */
#ifndef _XEN_ELASTIC_NUMA_H
#define _XEN_ELASTIC_NUMA_H

#include <linux/types.h>

struct page;

#ifdef CONFIG_XEN_ELASTIC_NUMA

/**
 * xen_elastic_online_page() - online pages of an elastic node
 * @page: first page, as an online_page_callback gets it
 * @order: log2 of the number of pages
 *
 * Extents that Xen has populated go to the page allocator, the others stay
 * PageOffline.
 *
 * Context: within online_pages(), device_hotplug_lock and mem_hotplug_lock
 *	held.
 * Return: false when the page is of no elastic node: nothing was done.
 */
bool xen_elastic_online_page(struct page *page, unsigned int order);

/**
 * xen_elastic_never_waits() - whether the current task must not wait for pages
 *
 * The lock of a folio or its writeback may last for ever, as when a file
 * system's server has stopped.  The driver's thread tries again instead.
 *
 * Context: any.
 */
bool xen_elastic_never_waits(void);

/**
 * xen_elastic_reserve() - keep room on other nodes for page tables
 *
 * Adds to lowmem_reserve of the zones that elastic nodes need beside their own.
 *
 * Context: within setup_per_zone_lowmem_reserve().
 */
void xen_elastic_reserve(void);

#else /* !CONFIG_XEN_ELASTIC_NUMA */

static inline bool xen_elastic_online_page(struct page *page,
					   unsigned int order)
{
	return false;
}

static inline bool xen_elastic_never_waits(void)
{
	return false;
}

static inline void xen_elastic_reserve(void)
{
}

#endif /* CONFIG_XEN_ELASTIC_NUMA */

#endif /* _XEN_ELASTIC_NUMA_H */
