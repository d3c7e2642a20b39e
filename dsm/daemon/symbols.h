/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a page of a guest's Linux holds, as far as its number says it.
 *
 * A PVH guest is loaded where its kernel was linked: what System.map has at
 * 0xffffffff80000000 + p is at the guest's physical address p, unless the kernel
 * was told to move (CONFIG_RANDOMIZE_BASE without nokaslr: then all names are
 * wrong, and nothing here can tell).
 *
 * Of all else the number says nothing: per-CPU areas, the page structures (vmemmap),
 * slabs, page tables and user memory are pages that the kernel has taken at run time,
 * and the direct map has each page once more.  Nor of the image's .init, which is
 * given back after the boot.  These are "?".
 */
#ifndef DSM_SYMBOLS_H
#define DSM_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_SYMBOLS_TEXT	256

struct dsm_symbols;

/**
 * @path: System.map, or vmlinux with its symbols.
 * @text: what is wrong.
 * Return: NULL if it can't be read, is neither, or has no _text and _end.
 */
struct dsm_symbols *dsm_symbols_read(const char *path, char text[DSM_SYMBOLS_TEXT]);
void dsm_symbols_free(struct dsm_symbols *symbols);

/**
 * The first names in the page, and how many more there are; or "?".
 * @symbols: may be NULL.
 */
void dsm_symbols_name(const struct dsm_symbols *symbols, uint64_t gfn,
		      char *name, size_t size);

#ifdef __cplusplus
}
#endif

#endif
