// SPDX-License-Identifier: GPL-2.0
/*
 * Space-Saving.  Places with the same count are in one bucket, and buckets are in
 * the order of their counts: one more event is a step to the next bucket.
 */
#include <stdlib.h>
#include <string.h>

#include "profile.h"

#define PLACES	DSM_PROFILE_PLACES
#define BUCKETS	(PLACES + 1)	/* one more while a place goes from one to the next */
#define CHAINS	(2 * PLACES)
#define NONE	UINT16_MAX
_Static_assert(BUCKETS < NONE, "a place has 16 bits");

struct place {
	struct dsm_profile_page page;
	uint16_t bucket;
	uint16_t next, before;	/* of the bucket */
	uint16_t chain;		/* the next one with this hash */
};

struct bucket {
	uint64_t count;
	uint16_t first;		/* NONE: the bucket is free */
	uint16_t more, fewer;	/* the next ones */
};

struct dsm_profile {
	uint64_t seed, total;
	unsigned int used;	/* places */
	uint16_t most, least;	/* buckets */
	uint16_t free;		/* a bucket, and by `more` the next one */
	uint16_t chain[CHAINS];
	struct place place[PLACES];
	struct bucket bucket[BUCKETS];
};

struct dsm_profile *dsm_profile_create(uint64_t seed)
{
	struct dsm_profile *p = calloc(1, sizeof(*p));

	if (p) {
		p->seed = seed;
		dsm_profile_clear(p);
	}
	return p;
}

void dsm_profile_destroy(struct dsm_profile *p)
{
	free(p);
}

void dsm_profile_clear(struct dsm_profile *p)
{
	unsigned int i;

	p->total = 0;
	p->used = 0;
	p->most = p->least = NONE;
	p->free = 0;
	for (i = 0; i < BUCKETS; i++) {
		p->bucket[i].first = NONE;
		p->bucket[i].more = i + 1 < BUCKETS ? (uint16_t)(i + 1) : NONE;
	}
	for (i = 0; i < CHAINS; i++)
		p->chain[i] = NONE;
}

/* ---- Places by gfn ---- */

static uint16_t *chain_of(struct dsm_profile *p, uint64_t gfn)
{
	uint64_t hash = (gfn ^ p->seed) * 0x9e3779b97f4a7c15ull;

	hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9ull;
	return &p->chain[(hash >> 32) % CHAINS];
}

/* Return: where its number is, or would be: NONE is there. */
static uint16_t *find(struct dsm_profile *p, uint64_t gfn)
{
	uint16_t *at = chain_of(p, gfn);

	while (*at != NONE && p->place[*at].page.gfn != gfn)
		at = &p->place[*at].chain;
	return at;
}

/* ---- Buckets ---- */

static void leave_bucket(struct dsm_profile *p, uint16_t i)
{
	struct place *place = &p->place[i];
	struct bucket *b = &p->bucket[place->bucket];

	if (place->before != NONE)
		p->place[place->before].next = place->next;
	else
		b->first = place->next;
	if (place->next != NONE)
		p->place[place->next].before = place->before;
}

static void enter_bucket(struct dsm_profile *p, uint16_t i, uint16_t bucket)
{
	struct place *place = &p->place[i];
	struct bucket *b = &p->bucket[bucket];

	place->bucket = bucket;
	place->before = NONE;
	place->next = b->first;
	if (b->first != NONE)
		p->place[b->first].before = i;
	b->first = i;
}

/* Return: a bucket with that count, behind @fewer; NONE: it is the first one. */
static uint16_t make_bucket(struct dsm_profile *p, uint64_t count, uint16_t fewer)
{
	uint16_t more = fewer == NONE ? p->least : p->bucket[fewer].more, i;

	if (more != NONE && p->bucket[more].count == count)
		return more;
	i = p->free;
	p->free = p->bucket[i].more;
	p->bucket[i] = (struct bucket){ .count = count, .first = NONE, .more = more, .fewer = fewer };
	if (more == NONE)
		p->most = i;
	else
		p->bucket[more].fewer = i;
	if (fewer == NONE)
		p->least = i;
	else
		p->bucket[fewer].more = i;
	return i;
}

static void end_bucket(struct dsm_profile *p, uint16_t i)
{
	struct bucket *b = &p->bucket[i];

	if (b->more == NONE)
		p->most = b->fewer;
	else
		p->bucket[b->more].fewer = b->fewer;
	if (b->fewer == NONE)
		p->least = b->more;
	else
		p->bucket[b->fewer].more = b->more;
	b->more = p->free;
	p->free = i;
}

/* One more. */
static void step(struct dsm_profile *p, uint16_t i)
{
	uint16_t old = p->place[i].bucket;
	uint16_t next = make_bucket(p, p->bucket[old].count + 1, old);

	leave_bucket(p, i);
	enter_bucket(p, i, next);
	if (p->bucket[old].first == NONE)
		end_bucket(p, old);
}

/* ---- Events ---- */

/* Return: a place for a page that has none, with a count of at least 1. */
static uint16_t take_place(struct dsm_profile *p, uint64_t gfn)
{
	uint64_t error = 0;
	uint16_t i, *at;

	if (p->used < PLACES) {
		i = (uint16_t)p->used++;
		enter_bucket(p, i, make_bucket(p, 1, NONE));
	} else {
		i = p->bucket[p->least].first;
		error = p->bucket[p->least].count;
		*find(p, p->place[i].page.gfn) = p->place[i].chain;
		step(p, i);
	}
	p->place[i].page = (struct dsm_profile_page){ .gfn = gfn, .error = error };
	p->place[i].chain = NONE;
	at = find(p, gfn);
	*at = i;
	return i;
}

void dsm_profile_add(struct dsm_profile *p, uint64_t gfn,
		     enum dsm_profile_event event, unsigned int host)
{
	uint16_t i = *find(p, gfn);

	if (i == NONE)
		i = take_place(p, gfn);
	else
		step(p, i);
	p->total++;
	p->place[i].page.events[event]++;
	if (event == DSM_PROFILE_TAKEN)
		p->place[i].page.hosts |= (uint16_t)(1u << host);
}

uint64_t dsm_profile_total(const struct dsm_profile *p)
{
	return p->total;
}

uint64_t dsm_profile_least(const struct dsm_profile *p)
{
	return p->used < PLACES ? 0 : p->bucket[p->least].count;
}

unsigned int dsm_profile_top(const struct dsm_profile *p,
			     struct dsm_profile_page *pages, unsigned int most)
{
	unsigned int nr = 0;
	uint16_t b, i;

	for (b = p->most; b != NONE; b = p->bucket[b].fewer)
		for (i = p->bucket[b].first; i != NONE && nr < most; i = p->place[i].next) {
			pages[nr] = p->place[i].page;
			pages[nr++].count = p->bucket[b].count;
		}
	return nr;
}

const char *dsm_profile_broken_rule(const struct dsm_profile *p)
{
	uint64_t sum = 0, last = 0;
	unsigned int nr = 0, e;
	uint16_t b, i;

	for (b = p->least; b != NONE; b = p->bucket[b].more) {
		if (p->bucket[b].first == NONE || p->bucket[b].count <= last)
			return "buckets are in order, and none is empty";
		last = p->bucket[b].count;
		for (i = p->bucket[b].first; i != NONE; i = p->place[i].next, nr++) {
			const struct dsm_profile_page *page = &p->place[i].page;
			uint64_t exact = 0;

			for (e = 0; e < DSM_PROFILE_EVENTS; e++)
				exact += page->events[e];
			if (p->place[i].bucket != b || exact + page->error != last)
				return "what is exact and the error are the count";
			if (page->error > dsm_profile_least(p))
				return "no error is larger than the least count";
			sum += last;
		}
	}
	if (nr != p->used || sum != p->total)
		return "each event is in one count";
	return dsm_profile_least(p) > p->total / PLACES ? "the least count is N / m at most" : NULL;
}
