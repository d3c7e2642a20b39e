// SPDX-License-Identifier: GPL-2.0
/*
 * Rows of two answers.
 *
 * A page that has lost its place between them, and got one again, has a larger error
 * than before: all that is exact of it then happened since.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top.h"

#define NAME	128

static const char *const events[] = { "reads", "writes", "taken", "accesses" };
#define EVENTS	(sizeof(events) / sizeof(events[0]))

struct row {
	uint64_t gfn, error, event[EVENTS];
	struct json_object *hosts;	/* the answer's */
};

struct answer {
	uint64_t ns, total, least;
	size_t nr;
	struct row row[DSM_TOP_ROWS];
};

static bool number(struct json_object *from, const char *key, uint64_t *value)
{
	struct json_object *found;

	if (!json_object_object_get_ex(from, key, &found) || !json_object_is_type(found, json_type_int))
		return false;
	*value = json_object_get_uint64(found);
	return true;
}

static bool read_row(struct json_object *from, struct row *row)
{
	unsigned int i;

	if (!number(from, "gfn", &row->gfn) || !number(from, "error", &row->error) ||
	    !json_object_object_get_ex(from, "hosts", &row->hosts) ||
	    !json_object_is_type(row->hosts, json_type_array))
		return false;
	for (i = 0; i < EVENTS; i++)
		if (!number(from, events[i], &row->event[i]))
			return false;
	return true;
}

static int by_gfn(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->gfn > y->gfn) - (x->gfn < y->gfn);
}

static bool read_answer(struct json_object *from, struct answer *answer)
{
	struct json_object *pages;
	size_t i;

	if (!number(from, "ns", &answer->ns) || !number(from, "events", &answer->total) ||
	    !number(from, "least", &answer->least) || !json_object_object_get_ex(from, "pages", &pages) ||
	    !json_object_is_type(pages, json_type_array) || json_object_array_length(pages) > DSM_TOP_ROWS)
		return false;
	answer->nr = json_object_array_length(pages);
	for (i = 0; i < answer->nr; i++)
		if (!read_row(json_object_array_get_idx(pages, i), &answer->row[i]))
			return false;
	qsort(answer->row, answer->nr, sizeof(answer->row[0]), by_gfn);
	return true;
}

/* @now becomes what happened since @then.  Return: can that be? */
static bool take_off(struct answer *now, const struct answer *then)
{
	const struct row *old;
	unsigned int e;
	size_t i;

	if (now->ns < then->ns || now->total < then->total)
		return false;
	now->ns -= then->ns;
	now->total -= then->total;
	for (i = 0; i < now->nr; i++) {
		old = bsearch(&now->row[i], then->row, then->nr, sizeof(then->row[0]), by_gfn);
		if (!old || old->error != now->row[i].error)
			continue;
		for (e = 0; e < EVENTS; e++) {
			if (now->row[i].event[e] < old->event[e])
				return false;
			now->row[i].event[e] -= old->event[e];
		}
	}
	return true;
}

static uint64_t sum(const struct row *row)
{
	uint64_t all = 0;
	unsigned int e;

	for (e = 0; e < EVENTS; e++)
		all += row->event[e];
	return all;
}

static int by_events(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return sum(x) == sum(y) ? by_gfn(a, b) : sum(x) < sum(y) ? 1 : -1;
}

static struct json_object *page_of(const struct row *row, const struct dsm_symbols *symbols, double seconds)
{
	struct json_object *page = json_object_new_object();
	char name[NAME];
	unsigned int e;

	dsm_symbols_name(symbols, row->gfn, name, sizeof(name));
	json_object_object_add(page, "gfn", json_object_new_uint64(row->gfn));
	json_object_object_add(page, "symbol", json_object_new_string(name));
	for (e = 0; e < EVENTS; e++)
		json_object_object_add(page, events[e], json_object_new_uint64(row->event[e]));
	json_object_object_add(page, "error", json_object_new_uint64(row->error));
	json_object_object_add(page, "per_second", json_object_new_double(seconds > 0. ? (double)sum(row) / seconds : 0.));
	json_object_object_add(page, "hosts", json_object_get(row->hosts));
	return page;
}

struct json_object *dsm_top(struct json_object *before, struct json_object *after,
			    const struct dsm_symbols *symbols, unsigned int most)
{
	static struct answer then, now;
	struct json_object *top, *pages;
	double seconds;
	size_t i;

	if (!read_answer(after, &now) || (before && (!read_answer(before, &then) || !take_off(&now, &then))))
		return NULL;
	seconds = (double)now.ns / 1e9;
	qsort(now.row, now.nr, sizeof(now.row[0]), by_events);
	top = json_object_new_object();
	pages = json_object_new_array();
	json_object_object_add(top, "seconds", json_object_new_double(seconds));
	json_object_object_add(top, "events", json_object_new_uint64(now.total));
	json_object_object_add(top, "least", json_object_new_uint64(now.least));
	for (i = 0; i < now.nr && i < most && sum(&now.row[i]); i++)
		json_object_array_add(pages, page_of(&now.row[i], symbols, seconds));
	json_object_object_add(top, "pages", pages);
	return top;
}

static struct json_object *get(struct json_object *from, const char *key)
{
	struct json_object *found = NULL;

	json_object_object_get_ex(from, key, &found);
	return found;
}

/* Names, with a comma between them. */
static void say_hosts(struct json_object *hosts)
{
	size_t i;

	for (i = 0; i < json_object_array_length(hosts); i++)
		printf("%s%s", i ? "," : " ", json_object_get_string(json_object_array_get_idx(hosts, i)));
	if (!i)
		printf(" -");
}

void dsm_top_say(struct json_object *top)
{
	struct json_object *pages = get(top, "pages"), *page;
	size_t i;

	printf("%" PRIu64 " events in %.1f s; a page that is not counted has had %" PRIu64 " at most\n",
	       json_object_get_uint64(get(top, "events")), json_object_get_double(get(top, "seconds")),
	       json_object_get_uint64(get(top, "least")));
	printf("%-10s %9s %9s %9s %9s %9s %9s  %-24s %s\n", "GFN", "READS", "WRITES", "TAKEN", "ACCESSES", "ERROR", "PER S",
	       "SYMBOL", "TAKEN BY");
	for (i = 0; i < json_object_array_length(pages); i++) {
		page = json_object_array_get_idx(pages, i);
		printf("0x%-8" PRIx64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9.1f  %-24s",
		       json_object_get_uint64(get(page, "gfn")), json_object_get_uint64(get(page, "reads")),
		       json_object_get_uint64(get(page, "writes")), json_object_get_uint64(get(page, "taken")),
		       json_object_get_uint64(get(page, "accesses")), json_object_get_uint64(get(page, "error")), json_object_get_double(get(page, "per_second")),
		       json_object_get_string(get(page, "symbol")));
		say_hosts(get(page, "hosts"));
		putchar('\n');
	}
}
