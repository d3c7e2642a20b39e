// SPDX-License-Identifier: GPL-2.0
/*
 * A hash of chains, blocks of entries, and a heap of times.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "overhead.h"
#include "table.h"

#define FIRST_BUCKETS	1024
#define IN_BLOCK	256

/* The heap has up to two places for each, and the hash one or two. */
_Static_assert(sizeof(struct dsm_entry) + 4 * sizeof(void *) <= DSM_PAGE_BOOKS, "overhead.h");

struct dsm_block {
	struct dsm_block *next;
	struct dsm_entry entry[IN_BLOCK];
};

static size_t hash(uint64_t gfn, size_t nr_buckets)
{
	return (size_t)(gfn * 0x9e3779b97f4a7c15u >> 32) & (nr_buckets - 1);
}

/* Room for every entry that there is, so that nothing later needs memory. */
static int grow_heap(struct dsm_table *table, size_t entries)
{
	struct dsm_entry **heap;

	if (entries + 1 <= table->heap_size)
		return 0;
	heap = realloc(table->heap, 2 * (entries + 1) * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	table->heap = heap;
	table->heap_size = 2 * (entries + 1);
	return 0;
}

static int add_block(struct dsm_table *table)
{
	struct dsm_block *block = calloc(1, sizeof(*block));
	size_t i;

	if (!block || grow_heap(table, table->nr + table->nr_free + IN_BLOCK)) {
		free(block);
		return -ENOMEM;
	}
	block->next = table->blocks;
	table->blocks = block;
	for (i = 0; i < IN_BLOCK; i++) {
		block->entry[i].next = table->free;
		table->free = &block->entry[i];
	}
	table->nr_free += IN_BLOCK;
	return 0;
}

/* Chains stay short; without memory they grow longer, and nothing else. */
static void grow_buckets(struct dsm_table *table)
{
	size_t i, nr = 2 * table->nr_buckets;
	struct dsm_entry **bucket = calloc(nr, sizeof(*bucket));
	struct dsm_entry *entry, *next;

	if (!bucket)
		return;
	for (i = 0; i < table->nr_buckets; i++) {
		for (entry = table->bucket[i]; entry; entry = next) {
			struct dsm_entry **to = &bucket[hash(entry->page.gfn, nr)];

			next = entry->next;
			entry->next = *to;
			*to = entry;
		}
	}
	free(table->bucket);
	table->bucket = bucket;
	table->nr_buckets = nr;
}

int dsm_table_init(struct dsm_table *table, uint8_t *buffers, size_t nr_buffers)
{
	size_t i;

	memset(table, 0, sizeof(*table));
	table->nr_buckets = FIRST_BUCKETS;
	table->bucket = calloc(FIRST_BUCKETS, sizeof(*table->bucket));
	table->buffers = calloc(nr_buffers ? nr_buffers : 1, sizeof(*table->buffers));
	if (!table->bucket || !table->buffers || add_block(table)) {
		dsm_table_exit(table);
		return -ENOMEM;
	}
	for (i = 0; i < nr_buffers; i++)
		table->buffers[i] = buffers + i * DSM_PAGE_BYTES;
	table->nr_buffers = nr_buffers;
	table->all_buffers = nr_buffers;
	return 0;
}

void dsm_table_exit(struct dsm_table *table)
{
	struct dsm_block *block;

	while ((block = table->blocks)) {
		table->blocks = block->next;
		free(block);
	}
	free(table->bucket);
	free(table->heap);
	free(table->buffers);
	memset(table, 0, sizeof(*table));
}

struct dsm_entry *dsm_table_find(const struct dsm_table *table, uint64_t gfn)
{
	struct dsm_entry *entry = table->bucket[hash(gfn, table->nr_buckets)];

	while (entry && entry->page.gfn != gfn)
		entry = entry->next;
	return entry;
}

struct dsm_entry *dsm_table_get(struct dsm_table *table, const struct dsm_vm *vm,
				uint64_t gfn)
{
	struct dsm_entry *entry = dsm_table_find(table, gfn);
	struct dsm_entry **bucket;
	struct dsm_page page;

	if (entry)
		return entry;
	if (dsm_page_init(&page, vm, gfn) || (!table->free && add_block(table)))
		return NULL;
	if (table->nr >= 2 * table->nr_buckets)
		grow_buckets(table);

	entry = table->free;
	table->free = entry->next;
	table->nr_free--;
	memset(entry, 0, sizeof(*entry));
	entry->page = page;
	entry->range = (uint8_t)dsm_vm_range(vm, gfn);
	entry->due = DSM_NEVER;
	entry->lease_due = DSM_NEVER;
	entry->lease_look = DSM_NEVER;
	entry->retry_due = DSM_NEVER;
	bucket = &table->bucket[hash(gfn, table->nr_buckets)];
	entry->next = *bucket;
	*bucket = entry;
	table->nr++;
	return entry;
}

void dsm_table_forget(struct dsm_table *table, struct dsm_entry *entry)
{
	struct dsm_entry **link =
		&table->bucket[hash(entry->page.gfn, table->nr_buckets)];

	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	entry->next = table->free;
	table->free = entry;
	table->nr_free++;
	table->nr--;
}

bool dsm_table_lend(struct dsm_table *table, struct dsm_entry *entry)
{
	if (!entry->buffer && table->nr_buffers)
		entry->buffer = table->buffers[--table->nr_buffers];
	return entry->buffer;
}

void dsm_table_take_back(struct dsm_table *table, struct dsm_entry *entry)
{
	if (!entry->buffer)
		return;
	table->buffers[table->nr_buffers++] = entry->buffer;
	entry->buffer = NULL;
}

static void put(struct dsm_table *table, size_t place, struct dsm_entry *entry)
{
	table->heap[place] = entry;
	entry->place = place;
}

static void sift_up(struct dsm_table *table, size_t place)
{
	struct dsm_entry *entry = table->heap[place];

	for (; place > 1 && table->heap[place / 2]->due > entry->due; place /= 2)
		put(table, place, table->heap[place / 2]);
	put(table, place, entry);
}

static void sift_down(struct dsm_table *table, size_t place)
{
	struct dsm_entry *entry = table->heap[place];
	size_t child;

	while ((child = 2 * place) <= table->nr_heap) {
		if (child < table->nr_heap &&
		    table->heap[child + 1]->due < table->heap[child]->due)
			child++;
		if (table->heap[child]->due >= entry->due)
			break;
		put(table, place, table->heap[child]);
		place = child;
	}
	put(table, place, entry);
}

static void take_out(struct dsm_table *table, struct dsm_entry *entry)
{
	size_t place = entry->place;
	struct dsm_entry *last = table->heap[table->nr_heap--];

	entry->place = 0;
	if (last == entry)
		return;
	put(table, place, last);
	sift_up(table, place);
	sift_down(table, last->place);
}

void dsm_table_reschedule(struct dsm_table *table, struct dsm_entry *entry)
{
	uint64_t due = entry->lease_look;

	if (entry->retry_due < due)
		due = entry->retry_due;
	if (due == entry->due)
		return;
	entry->due = due;
	if (due == DSM_NEVER) {
		take_out(table, entry);
		return;
	}
	if (!entry->place) {
		put(table, ++table->nr_heap, entry);
		sift_up(table, table->nr_heap);
		return;
	}
	sift_up(table, entry->place);
	sift_down(table, entry->place);
}

struct dsm_entry *dsm_table_first_due(const struct dsm_table *table)
{
	return table->nr_heap ? table->heap[1] : NULL;
}

struct dsm_entry *dsm_table_next(const struct dsm_table *table,
				 struct dsm_entry *before)
{
	size_t i = 0;

	if (before) {
		if (before->next)
			return before->next;
		i = hash(before->page.gfn, table->nr_buckets) + 1;
	}
	for (; i < table->nr_buckets; i++)
		if (table->bucket[i])
			return table->bucket[i];
	return NULL;
}
