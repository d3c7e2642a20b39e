// SPDX-License-Identifier: GPL-2.0
/*
 * What is counted in few places, against what is counted in many.
 */
#include <string.h>

#include "case.h"
#include "dice.h"
#include "profile.h"

#define PAGES	8192u
#define PLACES	DSM_PROFILE_PLACES

static uint64_t right[PAGES];
static struct dsm_profile_page top[PLACES + 1];

/* Some pages often, most of them seldom: in the mean 1 in 2^(k+1) is below 8 * 2^k. */
static uint64_t some_page(void)
{
	unsigned int most = 8;

	while (most < PAGES && dice_below(2))
		most *= 2;
	return dice_below(most);
}

/* Those of a stream that is not kind to it: each page once, and again. */
static uint64_t next_page(unsigned int kind, uint64_t i)
{
	switch (kind) {
	case 0:
		return some_page();
	case 1:
		return i % PAGES;
	case 2:
		/* As many as there are places, and one more. */
		return i % (PLACES + 1);
	default:
		return i % 3 ? some_page() : i % 5;
	}
}

static void check(const struct dsm_profile *p, uint64_t events)
{
	unsigned int nr = dsm_profile_top(p, top, PLACES + 1), i;
	static bool has_place[PAGES];
	const char *rule = dsm_profile_broken_rule(p);
	uint64_t least = dsm_profile_least(p);

	CHECK(!rule, "%s", rule);
	CHECK(dsm_profile_total(p) == events && least <= events / PLACES, "%llu of %llu",
	      (unsigned long long)least, (unsigned long long)events);
	memset(has_place, 0, sizeof(has_place));
	for (i = 0; i < nr; i++) {
		const struct dsm_profile_page *page = &top[i];
		uint64_t exact = page->events[0] + page->events[1] + page->events[2] + page->events[3];

		CHECK(page->gfn < PAGES && !has_place[page->gfn], "twice");
		has_place[page->gfn] = true;
		CHECK(!i || page->count <= page[-1].count, "most first");
		CHECK(exact + page->error == page->count && page->error <= least, "its error");
		CHECK(right[page->gfn] >= exact && right[page->gfn] <= page->count, "gfn %llu: %llu, %llu to %llu",
		      (unsigned long long)page->gfn, (unsigned long long)right[page->gfn],
		      (unsigned long long)exact, (unsigned long long)page->count);
	}
	for (i = 0; i < PAGES; i++)
		CHECK(has_place[i] || right[i] <= least, "gfn %u: %llu, and no place", i, (unsigned long long)right[i]);
}

static void bounds(const void *argument)
{
	struct dsm_profile *p = dsm_profile_create(77);
	unsigned int kind;
	uint64_t i;

	(void)argument;
	dice_begin();
	for (kind = 0; kind < 4; kind++) {
		dsm_profile_clear(p);
		memset(right, 0, sizeof(right));
		check(p, 0);
		for (i = 0; i < 100000; i++) {
			uint64_t gfn = next_page(kind, i);

			right[gfn]++;
			dsm_profile_add(p, gfn, dice_below(DSM_PROFILE_EVENTS), 3);
			if (i < 5000 ? i % 97 == 0 : i % 5003 == 0)
				check(p, i + 1);
		}
		check(p, i);
	}
	dsm_profile_destroy(p);
}

/* While there are places nothing is a guess. */
static void few(const void *argument)
{
	struct dsm_profile *p = dsm_profile_create(1);

	(void)argument;
	CHECK(!dsm_profile_top(p, top, 8) && !dsm_profile_least(p), "nothing");
	dsm_profile_add(p, 5, DSM_PROFILE_READ, 0);
	dsm_profile_add(p, UINT64_MAX, DSM_PROFILE_TAKEN, 15);
	dsm_profile_add(p, 5, DSM_PROFILE_WRITE, 0);
	dsm_profile_add(p, 5, DSM_PROFILE_TAKEN, 2);
	dsm_profile_add(p, 5, DSM_PROFILE_TAKEN, 0);
	CHECK(dsm_profile_top(p, top, 8) == 2 && !dsm_profile_least(p) && dsm_profile_total(p) == 5, "two");
	CHECK(top[0].gfn == 5 && top[0].count == 4 && !top[0].error && top[0].events[DSM_PROFILE_READ] == 1 &&
	      top[0].events[DSM_PROFILE_WRITE] == 1 && top[0].events[DSM_PROFILE_TAKEN] == 2 && top[0].hosts == 5,
	      "the first");
	CHECK(top[1].gfn == UINT64_MAX && top[1].count == 1 && top[1].hosts == 1u << 15, "the second");
	CHECK(dsm_profile_top(p, top, 1) == 1 && top[0].gfn == 5, "as many as are asked for");
	dsm_profile_clear(p);
	CHECK(!dsm_profile_top(p, top, 8) && !dsm_profile_total(p), "cleared");
	dsm_profile_destroy(p);
}

/* Who takes a place has nothing of who had it but its number. */
static void takes_place(const void *argument)
{
	struct dsm_profile *p = dsm_profile_create(9);
	unsigned int i;

	(void)argument;
	for (i = 0; i < PLACES; i++) {
		dsm_profile_add(p, i, DSM_PROFILE_TAKEN, 4);
		if (i)
			dsm_profile_add(p, i, DSM_PROFILE_WRITE, 0);
	}
	dsm_profile_add(p, 5000, DSM_PROFILE_READ, 0);
	dsm_profile_add(p, 5000, DSM_PROFILE_READ, 0);
	CHECK(dsm_profile_top(p, top, 1) == 1 && top[0].gfn == 5000 && top[0].count == 3 && top[0].error == 1 &&
	      top[0].events[DSM_PROFILE_READ] == 2 && !top[0].events[DSM_PROFILE_TAKEN] && !top[0].hosts, "it has");
	CHECK(dsm_profile_top(p, top, PLACES) == PLACES && dsm_profile_least(p) == 2, "all others");
	for (i = 0; i < PLACES; i++)
		CHECK(top[i].gfn, "gfn 0 had the fewest");
	dsm_profile_destroy(p);
}

static const struct test_case cases[] = {
	{ "profile: bounds", bounds, NULL },
	{ "profile: few pages", few, NULL },
	{ "profile: a place is taken", takes_place, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
