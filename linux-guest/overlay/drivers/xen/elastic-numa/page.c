// SPDX-License-Identifier: GPL-2.0
/*
 * The writer of the topology page.
 *
 * Locking: the caller excludes other writers (topodev.c: topo_mutex).  The
 * readers are other processes; all that holds for them is the order of the
 * stores below, so each store is a single access that the compiler can
 * neither split, merge nor move across the barriers.
 */
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <asm/barrier.h>

#include "page.h"

/* What follows @seq is copied as 32-bit words. */
#define BODY_START	offsetof(struct xtopo_page, phase)
#define BODY_WORDS	((sizeof(struct xtopo_page) - BODY_START) / sizeof(u32))

void xtopo_page_init(struct xtopo_page *page)
{
	page->magic = XTOPO_MAGIC;
	page->abi = XTOPO_ABI;
}

void xtopo_page_publish(struct xtopo_page *page,
			const struct xtopo_page *image)
{
	const u32 *from = (const u32 *)((const char *)image + BODY_START);
	u32 *to = (u32 *)((char *)page + BODY_START);
	const size_t abi = (offsetof(struct xtopo_page, abi) - BODY_START) /
			   sizeof(u32);
	u32 seq = page->seq;
	size_t i;

	BUILD_BUG_ON(BODY_START % sizeof(u32));
	BUILD_BUG_ON((sizeof(struct xtopo_page) - BODY_START) % sizeof(u32));

	WRITE_ONCE(page->seq, seq + 1);
	/* No word of the body is stored before the odd @seq is. */
	smp_wmb();

	for (i = 0; i < BODY_WORDS; i++) {
		if (i != abi)
			WRITE_ONCE(to[i], from[i]);
	}

	/* The even @seq comes after the body, */
	smp_store_release(&page->seq, seq + 2);
	/* and @version after both. */
	smp_store_release(&page->version, image->version);
}
