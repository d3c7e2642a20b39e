// SPDX-License-Identifier: GPL-2.0
/* What other nodes keep for an elastic one: reserve.c as it is. */
#include "case.h"
#include "elastic.h"

#define MIB	256UL		/* pages */
#define GIB	(1024 * MIB)

/* Two nodes that stay and an elastic one, of 512 MiB. */
static struct elastic_node node = { .usable = true, .nid = 2 };
struct elastic_node *elastic_nodes = &node;
unsigned int elastic_nr_nodes = 1;
struct zone all_zones[] = {
	{ .nid = 0, .for_kernel = true, .watermark_boost = 512,
	  .lowmem_reserve = { 5 } },
	{ .nid = 1, .for_kernel = true },
	{ .nid = 2, .watermark_boost = 512 },
};
unsigned int nr_zones = ARRAY_SIZE(all_zones);
static unsigned long on_lists;

void xen_elastic_reserve(void);
static bool online = true;

bool node_online(int nid) { return nid == 2 && online; }
unsigned long node_present_pages(int nid) { return 512 * MIB; }
unsigned long zone_managed_pages(struct zone *zone) { return zone->nid ? 128 * MIB : 384 * MIB; }
unsigned long zone_page_state(struct zone *zone, int item) { return 1000 - on_lists; }
void drain_all_pages(struct zone *zone) { on_lists = 0; }

struct share {
	const char *name;
	unsigned long elastic, home, zone, expected;
};

static const struct share shares[] = {
	{ "reserve: all of it in one zone", 512 * MIB, 512 * MIB, 512 * MIB, 2 * MIB },
	{ "reserve: by the size of the zones", 512 * MIB, 512 * MIB, 128 * MIB, MIB / 2 },
	{ "reserve: a large node, a small home", 512 * GIB, GIB, GIB, GIB / 4 },
	{ "reserve: terabytes", 16384 * GIB, 512 * GIB, 256 * GIB, 32 * GIB },
	{ "reserve: less than a page", 255, 512 * MIB, 512 * MIB, 0 },
	{ "reserve: an empty zone", 512 * MIB, 512 * MIB, 0, 0 },
	{ "reserve: no home", 512 * MIB, 0, 0, 0 },
};

static void one(const void *argument)
{
	const struct share *s = argument;
	unsigned long share = elastic_reserve(s->elastic, s->home, s->zone);

	CHECK(share == s->expected, "%lu pages, not %lu", share, s->expected);
}

static void zones(const void *argument)
{
	online = *(const bool *)argument;
	xen_elastic_reserve();
	CHECK(all_zones[0].lowmem_reserve[ZONE_MOVABLE] == (online ? 5 + MIB * 3 / 2 : 5) &&
	      all_zones[1].lowmem_reserve[ZONE_MOVABLE] == (online ? MIB / 2 : 0),
	      "%lu and %lu pages", all_zones[0].lowmem_reserve[ZONE_MOVABLE],
	      all_zones[1].lowmem_reserve[ZONE_MOVABLE]);
	CHECK(!all_zones[2].lowmem_reserve[ZONE_MOVABLE], "its own zone keeps some");
}

static void relief(const void *argument)
{
	on_lists = 30;
	CHECK(elastic_reserve_relief() == 2 * 30 + 512, "of lists and boosts");
	CHECK(!all_zones[0].watermark_boost, "it is still boosted");
	CHECK(all_zones[2].watermark_boost == 512, "movable memory is no relief");
	CHECK(!elastic_reserve_relief(), "there is nothing more");
}

int main(int argc, char **argv)
{
	static struct test_case cases[ARRAY_SIZE(shares) + 3];
	static const bool yes = true, no;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shares); i++)
		cases[i] = (struct test_case){ shares[i].name, one, &shares[i] };
	cases[i++] = (struct test_case){ "reserve: zones", zones, &yes };
	cases[i++] = (struct test_case){ "reserve: no node", zones, &no };
	cases[i] = (struct test_case){ "reserve: relief", relief };
	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
