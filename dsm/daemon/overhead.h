/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a slice needs besides its memory: dsmd makes it so (slice.c), and dsmd-host
 * looks whether there is room for it.
 */
#ifndef DSM_OVERHEAD_H
#define DSM_OVERHEAD_H

#include <stdint.h>

/**
 * Bytes for the page tables of a whole guest in 4 KiB pages, since misses scatter:
 * half a page for each MiB, and 1 MiB of slack for each vCPU and for the rest.
 * Whole MiB, which is what the hypervisor takes.
 * @frames: of all its ranges, at most 2^40.
 */
static inline uint64_t dsm_paging_bytes(uint64_t frames, unsigned int nr_vcpus)
{
	uint64_t pages = frames / 512 + 256 * (nr_vcpus + 1ull);

	return (pages * 4096 + (1 << 20) - 1) >> 20 << 20;
}

/*
 * Bytes of dom0 with which a dsmd knows a page: a struct dsm_entry, its places in the
 * heap and its part of the hash.  Of a host's own memory it knows those pages of which
 * another host has something.
 */
#define DSM_PAGE_BOOKS	320u

#endif
