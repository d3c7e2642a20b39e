// SPDX-License-Identifier: GPL-2.0
/*
 * The ranges of elastic nodes as SRAT declares them: range.c as it is, on
 * tables of a few entries, with a kernel that grants every region, since a
 * reserved one is not busy.
 */
#include "case.h"
#include "elastic.h"

#define GiB	(1ULL << 30)
#define MiB	(1ULL << 20)
#define BLOCK	(128 * MiB)
#define ELASTIC	(ACPI_SRAT_MEM_ENABLED | ACPI_SRAT_MEM_HOT_PLUGGABLE)

struct table_case {
	const char *name;
	struct acpi_srat_mem_affinity entries[3];
	unsigned int accepted;		/* bits: proximity domains */
};

static const struct table_case tables[] = {
	{ "srat: no elastic node", { { 0, ACPI_SRAT_MEM_ENABLED, 0, GiB } }, 0 },
	{ "srat: two nodes",
	  { { 1, ELASTIC, 4 * GiB, GiB }, { 2, ELASTIC, 6 * GiB, GiB } }, 6 },
	{ "srat: neighbours",
	  { { 1, ELASTIC, 4 * GiB, GiB }, { 2, ELASTIC, 5 * GiB, GiB } }, 6 },
	{ "srat: a node within another",
	  { { 1, ELASTIC, 4 * GiB, GiB },
	    { 2, ELASTIC, 4 * GiB + BLOCK, BLOCK } }, 2 },
	{ "srat: a node over the end of another",
	  { { 1, ELASTIC, 4 * GiB, GiB },
	    { 2, ELASTIC, 5 * GiB - BLOCK, GiB } }, 2 },
	{ "srat: a node in the block that another does not fill",
	  { { 1, ELASTIC, 4 * GiB, BLOCK + 2 * MiB },
	    { 2, ELASTIC, 4 * GiB + BLOCK, BLOCK } }, 2 },
	{ "srat: a third after one that is refused",
	  { { 1, ELASTIC, 4 * GiB, GiB }, { 2, ELASTIC, 4 * GiB, GiB },
	    { 3, ELASTIC, 6 * GiB, GiB } }, 10 },
	{ "srat: a domain twice",
	  { { 1, ELASTIC, 4 * GiB, GiB }, { 1, ELASTIC, 6 * GiB, GiB } }, 2 },
	{ "srat: not aligned to a block",
	  { { 1, ELASTIC, 4 * GiB + 2 * MiB, GiB } }, 0 },
	{ "srat: not enabled",
	  { { 1, ACPI_SRAT_MEM_HOT_PLUGGABLE, 4 * GiB, GiB } }, 0 },
};

static const struct table_case *table;

void say(const char *format, ...) { }
void fail(const char *format, ...) { exit(1); }
unsigned long memory_block_size_bytes(void) { return BLOCK; }
bool mhp_supports_memmap_on_memory(void) { return true; }

struct resource *__request_mem_region(u64 start, u64 size, const char *name,
				      int flags)
{
	struct resource *res = calloc(1, sizeof(*res));

	res->flags = flags | IORESOURCE_BUSY;
	return res;
}

int acpi_table_parse_entries(const char *name, unsigned long size, int type,
			     acpi_tbl_entry_handler handler, unsigned int max)
{
	const struct acpi_srat_mem_affinity *entry = table->entries;

	for (; entry < table->entries + 3 && entry->length; entry++)
		handler((union acpi_subtable_headers *)entry, 1);
	return 0;
}

static void one_table(const void *argument)
{
	struct elastic_node *node;
	unsigned int accepted = 0;

	table = argument;
	CHECK(!elastic_initcall(), "boot");
	for_each_elastic_node(node) {
		accepted |= 1U << node->vnode;
		CHECK(!(node->res->flags & IORESOURCE_BUSY),
		      "nobody could plug memory there");
	}
	CHECK(accepted == table->accepted, "%#x", accepted);
	CHECK(!elastic_nodes == !accepted, "memory is kept for no node");
}

int main(int argc, char **argv)
{
	static struct test_case cases[ARRAY_SIZE(tables)];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		cases[i] = (struct test_case){ tables[i].name, one_table,
					       &tables[i] };
	return run_cases(argc, argv, cases, ARRAY_SIZE(tables));
}
