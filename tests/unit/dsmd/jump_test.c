// SPDX-License-Identifier: GPL-2.0
/*
 * One time for a guest on several hosts: when one slice jumps, then hosts with clocks of
 * their own that are played for hours, some of which are stopped, set, or lie.
 *
 * A tick is a ns here: 1 GHz.
 */
#include <string.h>

#include "case.h"
#include "dice.h"
#include "jump.h"

#define KHZ	1000000u
#define US	1000ll
#define MS	(1000 * US)
#define S	(1000 * MS)
#define PPM	200u
#define HOSTS	3u

__extension__ typedef __int128 s128;

/* ---- One jump ---- */

/* A clock that is known: the peer's TSC is ours and @ahead, to the tick. */
static struct dsm_clock known(uint64_t ahead, uint64_t now)
{
	const struct dsm_clock_params params = {
		.khz = KHZ, .drift_ppm = PPM, .error_ns = 1000 * US,
	};
	struct dsm_clock clock;
	unsigned int i;

	dsm_clock_init(&clock, &params);
	for (i = 0; i < DSM_CLOCK_STEADY; i++) {
		const struct dsm_clock_sample s = {
			.asked = now, .answered = now, .received = now + ahead + 1,
			.replied = now + ahead + 1, .khz = KHZ,
		};

		dsm_clock_add(&clock, &s);
	}
	return clock;
}

static const struct {
	const char *name;
	int64_t ahead;			/* the peer's TSC, */
	uint64_t ours, theirs;		/* and both offsets */
	uint64_t passed;		/* since this slice has its time */
	uint64_t jump;
} ones[] = {
	{ "together", 0, 0, 0, 5 * S, 0 },
	{ "together, by offsets", -7000, 42, 7042, 5 * S, 0 },
	{ "behind", 100, 0, 0, 5 * S, 100 },
	{ "behind, by its offset", 0, 0, 100, 5 * S, 100 },
	{ "behind, round the corner", 0, -50ull, 50, 5 * S, 100 },
	{ "ahead", -100, 0, 0, 5 * S, 0 },
	{ "ahead, by our offset", 0, 100, 0, 5 * S, 0 },
	{ "soon", 100, 0, 0, S, 100 },
	{ "too soon", 100, 0, 0, S - 1, 0 },
	{ "more than there is credit for", 500 * US, 0, 0, 2 * S, 400 * US },
	{ "all the credit", 400 * US, 0, 0, 2 * S, 400 * US },
	{ "no more than a ms at once", 2 * MS, 0, 0, 3600 * S, MS },
	{ "after ages", 100, 0, 0, 1ull << 62, 100 },
	{ "half of all apart", INT64_MAX, 0, 0, 3600 * S, MS },
	{ "the other half", INT64_MIN + 2, 0, 0, 3600 * S, 0 },
};

static void one_jump(const void *argument)
{
	struct dsm_clock_offset applied = { 0 };
	struct dsm_clock clock;
	struct dsm_jumps j;
	uint64_t got;
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
		uint64_t begin = i & 1 ? -3ull * S : 7 * S, now = begin + ones[i].passed;

		clock = known((uint64_t)ones[i].ahead, now);
		dsm_jumps_init(&j, KHZ, PPM);
		CHECK(!dsm_jumps_heard(&j, 2, ones[i].theirs), "%s: first", ones[i].name);
		CHECK(!dsm_jumps_look(&j, 2, &clock, now) &&
		      !dsm_jumps_applied(&j, 2, &clock, &applied), "%s: no time here", ones[i].name);
		dsm_jumps_begin(&j, ones[i].ours, begin);
		CHECK(!dsm_jumps_look(&j, 1, &clock, now), "%s: nobody's", ones[i].name);
		got = dsm_jumps_look(&j, 2, &clock, now);
		CHECK(got == ones[i].jump, "%s: %llu", ones[i].name, (unsigned long long)got);
		CHECK(dsm_jumps_applied(&j, 2, &clock, &applied) &&
		      applied.offset == ones[i].ours - ones[i].theirs, "%s: where they would be",
		      ones[i].name);
		dsm_jumps_done(&j, now, got, true);
		CHECK(j.offset == ones[i].ours + got && j.ticks == got && j.jumps == 1, "%s: done",
		      ones[i].name);
		CHECK(!dsm_jumps_look(&j, 2, &clock, now + S - 1), "%s: again", ones[i].name);
	}
	/* What is not known for sure. */
	clock = known(100, 5 * S);
	dsm_jumps_init(&j, KHZ, PPM);
	dsm_jumps_begin(&j, 0, 0);
	dsm_jumps_heard(&j, 2, 0);
	clock.agreeing--;
	CHECK(!dsm_jumps_look(&j, 2, &clock, 5 * S), "too few answers");
	clock.agreeing++;
	CHECK(dsm_jumps_look(&j, 2, &clock, 5 * S) == 100, "one more");
	/* A TSC of 20 GHz. */
	dsm_jumps_init(&j, 20 * KHZ, PPM);
	dsm_jumps_begin(&j, 0, 0);
	dsm_jumps_heard(&j, 2, 0);
	clock = known(100, 20 * S - 1);
	CHECK(!dsm_jumps_look(&j, 2, &clock, 20 * S - 1), "20 GHz, too soon");
	clock = known(100, 20 * S);
	CHECK(dsm_jumps_look(&j, 2, &clock, 20 * S) == 100, "20 GHz, soon");
	clock = known(S, 3600 * S);
	CHECK(dsm_jumps_look(&j, 2, &clock, 3600 * S) == 20 * MS, "20 GHz, no more than a ms at once");
	clock = known(100, 5 * S);
	dsm_jumps_init(&j, KHZ, PPM);
	dsm_jumps_begin(&j, 0, 0);
	dsm_jumps_heard(&j, 0, 0);
	CHECK(dsm_jumps_look(&j, 0, &clock, 5 * S + 100000) == 100 - 20, "an answer that is old");
	/* Who is ahead by next to nothing takes no turn from one who is farther, unless that one has gone. */
	dsm_jumps_init(&j, KHZ, PPM);
	dsm_jumps_begin(&j, 0, 0);
	dsm_jumps_heard(&j, 0, 0);
	dsm_jumps_heard(&j, 1, 0);
	clock = known(10 * US, S / 2);
	CHECK(!dsm_jumps_look(&j, 1, &clock, S / 2), "too soon");
	clock = known(5 * US - 1, S);
	CHECK(!dsm_jumps_look(&j, 0, &clock, S), "another one's turn");
	clock = known(5 * US, S);
	CHECK(dsm_jumps_look(&j, 0, &clock, S) == 5 * US, "not much farther");
	clock = known(100, 2 * S);
	CHECK(!dsm_jumps_look(&j, 0, &clock, 2 * S - 1) && dsm_jumps_look(&j, 0, &clock, 2 * S) == 100, "it has gone");
	dsm_jumps_done(&j, 2 * S, 100, true);
	clock = known(200, 3 * S);
	CHECK(dsm_jumps_look(&j, 0, &clock, 3 * S) == 100, "and is not waited for any more");
	/* No TSC of our own. */
	j.khz = 0;
	CHECK(!dsm_jumps_look(&j, 0, &clock, 5 * S), "no TSC");
}

/* What is left of the credit stays, up to one jump; what Xen refuses is gone. */
static void credits(const void *argument)
{
	struct dsm_clock clock = known(10 * MS, 0);
	struct dsm_jumps j;

	(void)argument;
	dsm_jumps_init(&j, KHZ, PPM);
	dsm_jumps_begin(&j, 5, 0);
	dsm_jumps_heard(&j, 0, 5);
	clock = known(100, 2 * S);
	CHECK(dsm_jumps_look(&j, 0, &clock, 2 * S) == 100, "a small one");
	dsm_jumps_done(&j, 2 * S, 100, true);
	clock = known(10 * MS, 3 * S);
	CHECK(dsm_jumps_look(&j, 0, &clock, 3 * S) == 600 * US - 100, "the rest of it");
	/* Looking costs nothing, however often. */
	CHECK(dsm_jumps_look(&j, 0, &clock, 3 * S) == 600 * US - 100, "twice");
	dsm_jumps_done(&j, 3 * S, 600 * US - 100, false);
	CHECK(j.offset == 105 && j.jumps == 1 && j.ticks == 100, "Xen has refused");
	clock = known(10 * MS, 4 * S);
	CHECK(dsm_jumps_look(&j, 0, &clock, 4 * S) == 200 * US, "of one second");
	/* Our TSC, read on a CPU that is a tick behind. */
	CHECK(!dsm_jumps_look(&j, 0, &clock, 3 * S - 1), "before the last one");
	/* A peer that goes back lies, but for one that is connected anew. */
	CHECK(dsm_jumps_heard(&j, 0, 4) && j.peer[0].offset == 5, "back");
	CHECK(!dsm_jumps_heard(&j, 0, 5) && !dsm_jumps_heard(&j, 0, 6), "and on");
	CHECK(dsm_jumps_heard(&j, 0, -7ull), "back, round the corner");
	dsm_jumps_forget(&j, 0);
	CHECK(!dsm_jumps_look(&j, 0, &clock, 9 * S), "nobody");
	CHECK(!dsm_jumps_heard(&j, 0, 4), "another one");
}

/* ---- Hosts that are played ---- */

struct host {
	uint64_t tsc;
	int64_t ppb;			/* quicker than true time */
	s128 rest;
	bool stopped;			/* its dsmd does not run */
	enum { HONEST, FAR, QUICK, ANY, NEAR } lie;
	struct dsm_clock clock[HOSTS];
	struct dsm_jumps jumps;
	uint64_t said[HOSTS];		/* the offset that this one knows of each */
};

static struct {
	struct host host[HOSTS];
	uint64_t t;			/* true, ns */
	unsigned int way;		/* at most so long */
} world;

static void advance(uint64_t ns)
{
	unsigned int i;

	world.t += ns;
	for (i = 0; i < HOSTS; i++) {
		struct host *h = &world.host[i];
		s128 ticks;

		h->rest += (s128)ns * (1000000000 + h->ppb);
		ticks = h->rest / 1000000000;
		h->tsc += (uint64_t)ticks;
		h->rest -= ticks * 1000000000;
	}
}

static uint64_t guest(unsigned int i)
{
	return world.host[i].tsc + world.host[i].jumps.offset;
}

/* How far host i is ahead of host k, in truth. */
static int64_t ahead(unsigned int i, unsigned int k)
{
	return (int64_t)(guest(i) - guest(k));
}

static uint64_t tsc_as_told(const struct host *h)
{
	switch (h->lie) {
	case FAR:	/* always the same lie: seconds ahead */
		return h->tsc + 5 * S;
	case QUICK:	/* just as much as is believed */
		return h->tsc + world.t * 180 / 1000000;
	case ANY:
		return dice();
	case NEAR:	/* just before the first host, wherever that is */
		return guest(0) + world.way + 100 - h->jumps.offset;
	default:
		return h->tsc;
	}
}

/* Host i asks host k, and does what follows; whatever it does, it follows nobody too far. */
static void ask(unsigned int i, unsigned int k)
{
	struct host *us = &world.host[i], *them = &world.host[k];
	struct dsm_clock_sample s = { .asked = us->tsc, .khz = KHZ };
	uint64_t jump;
	bool late = !dice_below(4);

	if (us->stopped || them->stopped)
		return;
	/* There was no credit: it is said with another answer. */
	if (!late && them->lie != ANY)
		us->said[k] = them->jumps.offset;
	advance(dice_below(world.way));
	s.received = s.replied = tsc_as_told(them);
	advance(dice_below(world.way));
	s.answered = us->tsc;
	dsm_clock_add(&us->clock[k], &s);
	if (them->lie == ANY)
		us->said[k] += dice_below(1000000000);
	if (dsm_jumps_heard(&us->jumps, k, us->said[k]))
		CHECK(0, "%u goes back", k);
	advance(dice_below(20000));
	jump = dsm_jumps_look(&us->jumps, k, &us->clock[k], us->tsc);
	if (!jump)
		return;
	CHECK(jump <= MS, "%llu ticks", (unsigned long long)jump);
	dsm_jumps_done(&us->jumps, us->tsc, jump, true);
	CHECK(them->lie || ahead(i, k) <= 0, "%u is ahead of %u by %lld", i, k, (long long)ahead(i, k));
}

static void begin_world(const int64_t *ppb, unsigned int way)
{
	const struct dsm_clock_params params = {
		.khz = KHZ, .drift_ppm = PPM, .error_ns = 1000 * US,
	};
	unsigned int i, k;

	memset(&world, 0, sizeof(world));
	world.way = way;
	for (i = 0; i < HOSTS; i++) {
		struct host *h = &world.host[i];

		h->tsc = dice();
		h->ppb = ppb[i];
		dsm_jumps_init(&h->jumps, KHZ, PPM);
		/* Nearly together: that it is set is not known better. */
		dsm_jumps_begin(&h->jumps, 1000 * S - h->tsc + dice_below(way), h->tsc);
		for (k = 0; k < HOSTS; k++)
			dsm_clock_init(&h->clock[k], &params);
	}
	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < HOSTS; k++)
			world.host[i].said[k] = world.host[k].jumps.offset;
}

/* Each asks each, twice a second, for so long. */
static void play(uint64_t seconds)
{
	uint64_t end = world.t + seconds * (uint64_t)S;
	unsigned int i, k;

	while (world.t < end) {
		for (i = 0; i < HOSTS; i++)
			for (k = 0; k < HOSTS; k++)
				if (i != k)
					ask(i, k);
		advance((uint64_t)(400 * MS) + dice_below(100000000));
	}
}

/* The farthest that two are apart. */
static int64_t spread(void)
{
	int64_t most = 0;
	unsigned int i, k;

	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < HOSTS; k++)
			if (!world.host[i].lie && !world.host[k].lie && ahead(i, k) > most)
				most = ahead(i, k);
	return most;
}

/* Both ways, and what passes until the next jump. */
static int64_t bound(int64_t most_ppb)
{
	return 2 * (int64_t)world.way + most_ppb * 3 + 30 * US;
}

static const struct rates {
	const char *name;
	int64_t ppb[HOSTS];
	int64_t most;			/* that two are apart */
} rates[] = {
	{ "as quick as each other", { 0, 0, 0 }, 0 },
	{ "the first is quick", { 30000, 0, -20000 }, 50000 },
	{ "the last is quick", { -60000, 0, 90000 }, 150000 },
	{ "one is slow", { 0, -190000, 0 }, 190000 },
	{ "crystals", { 11000, 9000, 12000 }, 3000 },
};

/* For hours they are one, and no faster than the quickest. */
static void drift(const void *argument)
{
	const struct rates *r = argument;
	uint64_t first = 0, begin;
	unsigned int hour, i, minute;
	int64_t quickest = INT64_MIN;

	begin_world(r->ppb, 50000);
	for (i = 0; i < HOSTS; i++)
		if (r->ppb[i] > quickest)
			quickest = r->ppb[i];
	play(60);
	first = guest(0);
	begin = world.t;
	for (hour = 0; hour < 4; hour++)
		for (minute = 0; minute < 60; minute++) {
			play(60);
			CHECK(spread() <= bound(r->most), "%u:%02u: %lld apart", hour, minute,
			      (long long)spread());
		}
	for (i = 0; i < HOSTS; i++) {
		s128 right = (s128)(world.t - begin) * (1000000000 + quickest) / 1000000000;
		int64_t off = (int64_t)(guest(i) - first - (uint64_t)right);

		CHECK(off >= -2 * bound(r->most) && off <= 2 * bound(r->most), "host %u is off by %lld", i,
		      (long long)off);
		CHECK(r->ppb[i] != quickest || world.host[i].jumps.ticks <= 2 * 50000,
		      "the quickest follows nobody: %llu", (unsigned long long)world.host[i].jumps.ticks);
	}
}

/* By turns another one is the quickest: what was jumped is not taken back. */
static void by_turns(const void *argument)
{
	static const int64_t none[HOSTS];
	unsigned int round, i;

	(void)argument;
	begin_world(none, 50000);
	play(60);
	for (round = 0; round < 300; round++) {
		for (i = 0; i < HOSTS; i++)
			world.host[i].ppb = (int64_t)dice_below(180000) - 90000;
		play(20 + dice_below(60));
		CHECK(spread() <= bound(180000), "round %u: %lld apart", round, (long long)spread());
	}
}

/* Its dsmd does not run for minutes: it comes up by and by, and nobody waits for it. */
static void stopped(const void *argument)
{
	static const int64_t ppb[HOSTS] = { 0, 50000, -50000 };
	unsigned int who;

	(void)argument;
	for (who = 0; who < HOSTS; who++) {
		uint64_t jumps[HOSTS];
		unsigned int i;

		begin_world(ppb, 50000);
		play(60);
		world.host[who].stopped = true;
		play(300);
		for (i = 0; i < HOSTS; i++)
			jumps[i] = world.host[i].jumps.ticks;
		world.host[who].stopped = false;
		/* 30 ms at most, of which 100 us come back each second. */
		play(400);
		CHECK(spread() <= bound(100000), "host %u: %lld apart", who, (long long)spread());
		for (i = 0; i < HOSTS; i++)
			CHECK(world.host[i].jumps.ticks - jumps[i] <= 400ull * 200 * US + MS, "too fast");
	}
}

/* A TSC that is set: back, it is behind, and nobody else is touched; forward, they follow slowly. */
static void set(const void *argument)
{
	static const int64_t none[HOSTS];
	uint64_t before;

	(void)argument;
	begin_world(none, 50000);
	play(60);
	before = world.host[0].jumps.ticks;
	world.host[2].tsc -= 10 * S;
	play(100);
	CHECK(world.host[0].jumps.ticks - before <= 100 * US, "who is right follows");
	CHECK(world.host[2].jumps.ticks >= 90ull * 200 * US && world.host[2].jumps.ticks <= 101ull * 200 * US + MS,
	      "%llu", (unsigned long long)world.host[2].jumps.ticks);
	begin_world(none, 50000);
	play(60);
	before = world.host[2].jumps.ticks;
	world.host[2].tsc += 10 * S;
	play(100);
	CHECK(world.host[2].jumps.ticks == before && world.host[0].jumps.ticks >= 90ull * 200 * US &&
	      world.host[0].jumps.ticks <= 101ull * 200 * US + MS && ahead(0, 1) <= MS && ahead(1, 0) <= MS,
	      "%llu", (unsigned long long)world.host[0].jumps.ticks);
}

/* A liar makes time faster by clock_drift_ppm, and no more. */
static void liar(const void *argument)
{
	static const int64_t ppb[HOSTS] = { 0, 20000, 0 };
	unsigned int lie, i;

	(void)argument;
	for (lie = FAR; lie <= ANY; lie++) {
		begin_world(ppb, 50000);
		play(60);
		world.host[2].lie = lie;
		play(3600);
		for (i = 0; i < 2; i++)
			CHECK(world.host[i].jumps.ticks <= 3660ull * 201 * US + MS, "lie %u: host %u has jumped by %llu",
			      lie, i, (unsigned long long)world.host[i].jumps.ticks);
		CHECK(lie == ANY || world.host[0].jumps.ticks >= 3500ull * 170 * US, "lie %u is not believed: %llu",
		      lie, (unsigned long long)world.host[0].jumps.ticks);
		/* Of those who are honest one may be behind by what the other one's clock is quicker. */
		CHECK(spread() <= 3660ll * 20 * US + bound(20000), "lie %u: %lld apart", lie, (long long)spread());
	}
}

/* A liar that is ahead by next to nothing, and answers first: who is farther ahead is followed all the same. */
static void near_liar(const void *argument)
{
	static const int64_t ppb[HOSTS] = { 0, 0, 20000 };
	unsigned int minute;

	(void)argument;
	begin_world(ppb, 2000);
	play(60);
	world.host[1].lie = NEAR;
	for (minute = 0; minute < 60; minute++) {
		play(60);
		CHECK(spread() <= bound(20000), "minute %u: %lld apart", minute, (long long)spread());
	}
}

#define NR(table)	(sizeof(table) / sizeof(table[0]))

static const struct test_case first_cases[] = {
	{ "jump: one", one_jump, NULL },
	{ "jump: credits", credits, NULL },
	{ "jump: by turns", by_turns, NULL },
	{ "jump: stopped", stopped, NULL },
	{ "jump: a TSC is set", set, NULL },
	{ "jump: a liar", liar, NULL },
	{ "jump: a liar that is near", near_liar, NULL },
};

int main(int argc, char **argv)
{
	struct test_case cases[NR(first_cases) + NR(rates)];
	char names[NR(rates)][64];
	unsigned int i, n = NR(first_cases);

	dice_state = getenv("DSM_SEED") ? strtoull(getenv("DSM_SEED"), NULL, 0) : 1;
	memcpy(cases, first_cases, sizeof(first_cases));
	for (i = 0; i < NR(rates); i++, n++) {
		snprintf(names[i], sizeof(names[i]), "jump: hours: %s", rates[i].name);
		cases[n] = (struct test_case){ names[i], drift, &rates[i] };
	}
	return run_cases(argc, argv, cases, n);
}
