// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols of a kernel's image, in the order of their addresses.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols.h"

#define PAGE		4096u
#define MAP		0xffffffff80000000ull	/* __START_KERNEL_map */
#define MAP_SIZE	(1ull << 30)		/* KERNEL_IMAGE_SIZE, without KASLR */
#define FILE_MOST	(1ull << 31)
#define SHOWN		3			/* names of a page */

struct symbol {
	uint64_t address;	/* physical */
	const char *name;	/* in the file's text */
};

struct dsm_symbols {
	char *file;
	size_t size;
	struct symbol *symbol;
	size_t nr, room;
	uint64_t text, end, init_begin, init_end;
};

/* Names that are nothing but the end of something: nobody is behind them. */
static const char *const ends[] = {
	"_etext", "__end_rodata", "__end_rodata_aligned", "__end_rodata_hpage_align", "_edata", "__bss_stop", "__brk_limit", "_end",
};

static bool is_end(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!strcmp(name, ends[i]))
			return true;
	return false;
}

/* Those that are not of the image are left out.  Return: is there memory? */
static bool add(struct dsm_symbols *s, uint64_t address, const char *name)
{
	struct symbol *more;

	if (address < MAP || address - MAP >= MAP_SIZE || !name[0])
		return true;
	if (s->nr == s->room) {
		s->room = s->room ? 2 * s->room : 4096;
		more = realloc(s->symbol, s->room * sizeof(*more));
		if (!more)
			return false;
		s->symbol = more;
	}
	s->symbol[s->nr++] = (struct symbol){ address - MAP, name };
	return true;
}

/* "ffffffff81000000 T _text" */
static bool read_map(struct dsm_symbols *s)
{
	char *line = s->file, *end, *name;
	uint64_t address;

	for (; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return false;
		*end = 0;
		errno = 0;
		address = strtoull(line, &name, 16);
		if (errno || name == line || strlen(name) < 4 || name[0] != ' ' || name[2] != ' ' ||
		    !add(s, address, name + 3))
			return false;
	}
	return true;
}

static bool is_within(const struct dsm_symbols *s, uint64_t at, uint64_t size)
{
	return at <= s->size && size <= s->size - at;
}

static bool read_table(struct dsm_symbols *s, const Elf64_Shdr *table, const Elf64_Shdr *names)
{
	Elf64_Sym symbol;
	uint64_t at;

	if (!is_within(s, table->sh_offset, table->sh_size) ||
	    !is_within(s, names->sh_offset, names->sh_size) || !names->sh_size ||
	    s->file[names->sh_offset + names->sh_size - 1])
		return false;
	for (at = 0; at + sizeof(symbol) <= table->sh_size; at += sizeof(symbol)) {
		memcpy(&symbol, s->file + table->sh_offset + at, sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) == STT_SECTION || symbol.st_shndx == SHN_UNDEF)
			continue;
		if (symbol.st_name >= names->sh_size ||
		    !add(s, symbol.st_value, s->file + names->sh_offset + symbol.st_name))
			return false;
	}
	return true;
}

static bool read_elf(struct dsm_symbols *s)
{
	Elf64_Ehdr head;
	Elf64_Shdr table, names;
	unsigned int i;

	if (s->size < sizeof(head))
		return false;
	memcpy(&head, s->file, sizeof(head));
	if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64 ||
	    head.e_shentsize != sizeof(table) ||
	    !is_within(s, head.e_shoff, (uint64_t)head.e_shnum * sizeof(table)))
		return false;
	for (i = 0; i < head.e_shnum; i++) {
		memcpy(&table, s->file + head.e_shoff + i * sizeof(table), sizeof(table));
		if (table.sh_type != SHT_SYMTAB)
			continue;
		if (table.sh_link >= head.e_shnum)
			return false;
		memcpy(&names, s->file + head.e_shoff + table.sh_link * sizeof(names), sizeof(names));
		return read_table(s, &table, &names);
	}
	return false;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static uint64_t address_of(const struct dsm_symbols *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (!strcmp(s->symbol[i].name, name))
			return s->symbol[i].address;
	return 0;
}

/* All of it, and a 0 behind it. */
static bool read_file(struct dsm_symbols *s, const char *path)
{
	FILE *file = fopen(path, "re");
	bool good = false;
	long size;

	if (!file)
		return false;
	if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0 && (uint64_t)size < FILE_MOST &&
	    !fseek(file, 0, SEEK_SET)) {
		s->size = (size_t)size;
		s->file = malloc(s->size + 1);
		good = s->file && fread(s->file, 1, s->size, file) == s->size;
		if (good)
			s->file[s->size] = 0;
	}
	if (!good && !errno)
		errno = EIO;
	fclose(file);
	return good;
}

struct dsm_symbols *dsm_symbols_read(const char *path, char text[DSM_SYMBOLS_TEXT])
{
	struct dsm_symbols *s = calloc(1, sizeof(*s));

	if (!s || !read_file(s, path)) {
		snprintf(text, DSM_SYMBOLS_TEXT, "%s: %s", path, strerror(errno));
		goto fail;
	}
	if (s->size >= SELFMAG && !memcmp(s->file, ELFMAG, SELFMAG) ? !read_elf(s) :
	    memchr(s->file, 0, s->size) || !read_map(s)) {
		snprintf(text, DSM_SYMBOLS_TEXT, "%s: neither a System.map nor a vmlinux with symbols", path);
		goto fail;
	}
	s->text = address_of(s, "_text");
	s->end = address_of(s, "_end");
	if (!s->text || s->end <= s->text) {
		snprintf(text, DSM_SYMBOLS_TEXT, "%s: no _text and _end of a kernel for x86-64", path);
		goto fail;
	}
	s->init_begin = address_of(s, "__init_begin");
	s->init_end = address_of(s, "__init_end");
	qsort(s->symbol, s->nr, sizeof(*s->symbol), by_address);
	return s;

fail:
	dsm_symbols_free(s);
	return NULL;
}

void dsm_symbols_free(struct dsm_symbols *s)
{
	if (!s)
		return;
	free(s->symbol);
	free(s->file);
	free(s);
}

/* Return: the first symbol at @address or behind it. */
static size_t first_at(const struct dsm_symbols *s, uint64_t address)
{
	size_t low = 0, high = s->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->symbol[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void dsm_symbols_name(const struct dsm_symbols *s, uint64_t gfn, char *name, size_t size)
{
	uint64_t begin = gfn * PAGE, end = begin + PAGE;
	size_t i, last, used = 0;
	unsigned int shown = 0;

	snprintf(name, size, "?");
	if (!s || gfn > MAP_SIZE / PAGE || begin >= s->end || end <= s->text ||
	    (begin < s->init_end && end > s->init_begin))
		return;
	i = first_at(s, begin);
	last = first_at(s, end);
	/* What begins before the page, and reaches into it for all that is known. */
	if ((i == last || s->symbol[i].address > begin) && i)
		i--;
	for (; i < last && used < size; i++) {
		if (is_end(s->symbol[i].name))
			continue;
		if (shown++ == SHOWN) {
			snprintf(name + used, size - used, " and %zu more", last - i);
			break;
		}
		used += (size_t)snprintf(name + used, size - used, "%s%s", shown > 1 ? ", " : "", s->symbol[i].name);
	}
}
