// SPDX-License-Identifier: GPL-2.0
/*
 * The offset of another host's TSC: single answers by a table, then two clocks that
 * are played, with delays, drift, a host that is suspended and one that lies.
 *
 * A tick is a ns here: 1 GHz.
 */
#include <errno.h>
#include <string.h>

#include "case.h"
#include "clock.h"
#include "dice.h"
#include "tsc.h"

#define KHZ	1000000u
#define US	1000ull
#define MS	(1000 * US)
#define S	(1000 * MS)
#define PPM	200u

__extension__ typedef __int128 s128;

static const struct dsm_clock_params params = {
	.khz = KHZ, .drift_ppm = PPM, .error_ns = 100 * US,
};

/* ---- One answer, and two ---- */

/*
 * Asked at `asked`, answered after `took`; the peer's TSC when it came, and for how
 * long it was held.  The bounds have a tick more at each end, and what the drift
 * does meanwhile.
 */
static const struct {
	const char *name;
	uint64_t asked, took, received, held;
	enum dsm_clock_taken taken;
	uint64_t least, width;
} ones[] = {
	{ "no way takes time", 1000, 0, 5000, 0, DSM_CLOCK_TAKEN, 4000 - 1, 2 },
	{ "both ways unknown", 1000, 100, 5000, 0, DSM_CLOCK_TAKEN, 3900 - 2, 100 + 4 },
	{ "held for most of it", 1000, 100, 5000, 90, DSM_CLOCK_TAKEN, 3990 - 2, 10 + 4 },
	{ "held for all of it", 1000, 100, 5000, 100, DSM_CLOCK_TAKEN, 4000 - 2, 4 },
	{ "held by what drift allows", 1000, 100, 5000, 104, DSM_CLOCK_TAKEN, 4004 - 2, 0 },
	{ "held for longer than it took", 1000, 100, 5000, 105, DSM_CLOCK_IMPOSSIBLE, 0, 0 },
	{ "the peer is behind", 5000, 100, 1000, 0, DSM_CLOCK_TAKEN, -4100ull - 2, 100 + 4 },
	{ "ours wraps", -50ull, 100, 1000, 0, DSM_CLOCK_TAKEN, 950 - 2, 100 + 4 },
	{ "the peer's wraps", 1000, 100, -20ull, 40, DSM_CLOCK_TAKEN, -1080ull - 2, 60 + 4 },
	{ "half of all apart", 0, 100, 1ull << 63, 0, DSM_CLOCK_TAKEN, (1ull << 63) - 100 - 2, 104 },
	{ "a second, and its drift", 0, S, 0, 0, DSM_CLOCK_TAKEN, -S - 200 * US - 1, S + 400 * US + 2 },
	{ "ours goes back", 1000, -1ull, 5000, 0, DSM_CLOCK_IMPOSSIBLE, 0, 0 },
	{ "years", 0, 1ull << 60, 5000, 0, DSM_CLOCK_IMPOSSIBLE, 0, 0 },
	{ "the peer's goes back", 1000, 100, 5000, -1ull, DSM_CLOCK_IMPOSSIBLE, 0, 0 },
};

static struct dsm_clock_sample sample(uint64_t asked, uint64_t took, uint64_t received,
				      uint64_t held)
{
	return (struct dsm_clock_sample){
		.asked = asked, .answered = asked + took,
		.received = received, .replied = received + held, .khz = KHZ,
	};
}

static void one_answer(const void *argument)
{
	struct dsm_clock_offset offset;
	struct dsm_clock clock;
	enum dsm_clock_taken taken;
	struct dsm_clock_sample s;
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
		dsm_clock_init(&clock, &params);
		CHECK(dsm_clock_get(&clock, 0, &offset) == -ENODATA &&
		      dsm_clock_get_state(&clock, 0) == DSM_CLOCK_NONE, "nothing yet");
		s = sample(ones[i].asked, ones[i].took, ones[i].received, ones[i].held);
		taken = dsm_clock_add(&clock, &s);
		CHECK(taken == ones[i].taken && clock.samples == 1 &&
		      clock.impossible == (taken == DSM_CLOCK_IMPOSSIBLE), "%s: %d",
		      ones[i].name, (int)taken);
		CHECK(dsm_clock_get(&clock, 0, &offset) == -EAGAIN, "%s: believed", ones[i].name);
		if (taken != DSM_CLOCK_TAKEN)
			continue;
		CHECK(clock.now.least == ones[i].least && clock.now.width == ones[i].width &&
		      clock.now.at == ones[i].asked + ones[i].took, "%s: %lld, %llu wide", ones[i].name,
		      (long long)clock.now.least, (unsigned long long)clock.now.width);
	}
}

/*
 * A first answer says 1000 .. 1104 - 4 or so (see above), the second comes at the
 * same time, so drift has no part in it.
 */
static const struct {
	const char *name;
	int64_t by;		/* what the second one's offset is more */
	uint64_t took;
	enum dsm_clock_taken taken;
	int64_t least;		/* of both, and width */
	uint64_t width;
} twos[] = {
	{ "the same", 0, 100, DSM_CLOCK_TAKEN, 0, 104 },
	{ "narrower, at the lower end", 0, 0, DSM_CLOCK_TAKEN, 1, 2 },
	{ "narrower, at the upper end", 100, 0, DSM_CLOCK_TAKEN, 101, 2 },
	{ "wider on both sides", 0, 300, DSM_CLOCK_TAKEN, 0, 104 },
	{ "ahead, and overlaps", 60, 100, DSM_CLOCK_TAKEN, 60, 44 },
	{ "behind, and overlaps", -60, 100, DSM_CLOCK_TAKEN, 0, 44 },
	{ "ahead, touches", 104, 100, DSM_CLOCK_TAKEN, 104, 0 },
	{ "ahead, does not touch", 105, 100, DSM_CLOCK_JUMP, 105, 104 },
	{ "behind, touches", -104, 100, DSM_CLOCK_TAKEN, 0, 0 },
	{ "behind, does not touch", -105, 100, DSM_CLOCK_JUMP, -105, 104 },
	{ "far ahead", INT64_MAX - 500, 100, DSM_CLOCK_JUMP, INT64_MAX - 500, 104 },
	{ "far behind", INT64_MIN + 500, 100, DSM_CLOCK_JUMP, INT64_MIN + 500, 104 },
};

/* What people are told of answers that took so long, one after the other. */
static void told(const void *argument)
{
	static const struct {
		uint64_t took;
		bool misaligned;
	} steps[] = {
		{ 195 * US, false },	/* error_ns is 100 us, a half of it */
		{ 205 * US, true },
		{ 195 * US, true },
		{ 155 * US, true },
		{ 145 * US, false },
		{ 195 * US, false },
		{ 205 * US, true },
	};
	struct dsm_clock clock;
	bool was = false;
	unsigned int i, n;

	(void)argument;
	dsm_clock_init(&clock, &params);
	CHECK(!dsm_clock_is_misaligned(&clock, 0, false) && dsm_clock_is_misaligned(&clock, 0, true),
	      "without an answer it stays");
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		uint64_t now = 0;

		/* Of another connection each time: nothing is known from the one before. */
		dsm_clock_init(&clock, &params);
		for (n = 0; n < DSM_CLOCK_STEADY; n++) {
			struct dsm_clock_sample s = sample(now, steps[i].took, 5000 + now, 0);

			CHECK(dsm_clock_add(&clock, &s) == DSM_CLOCK_TAKEN, "step %u", i);
			now += steps[i].took;
		}
		was = dsm_clock_is_misaligned(&clock, now, was);
		CHECK(was == steps[i].misaligned, "step %u: %d", i, was);
	}
}

static void two_answers(const void *argument)
{
	enum dsm_clock_taken taken;
	struct dsm_clock_sample s;
	struct dsm_clock clock;
	uint64_t first;
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(twos) / sizeof(twos[0]); i++) {
		dsm_clock_init(&clock, &params);
		s = sample(5000, 100, 10000, 0);
		CHECK(dsm_clock_add(&clock, &s) == DSM_CLOCK_TAKEN, "the first");
		first = clock.now.least;
		/* Answered at the same time, so asked earlier or later. */
		s = sample(5100 - twos[i].took, twos[i].took, 10000 + (uint64_t)twos[i].by, 0);
		taken = dsm_clock_add(&clock, &s);
		CHECK(taken == twos[i].taken && clock.jumps == (taken == DSM_CLOCK_JUMP) &&
		      clock.generation == clock.jumps, "%s: %d", twos[i].name, (int)taken);
		CHECK((int64_t)(clock.now.least - first) == twos[i].least &&
		      clock.now.width == twos[i].width, "%s: %lld, %llu wide", twos[i].name,
		      (long long)(clock.now.least - first), (unsigned long long)clock.now.width);
		if (taken == DSM_CLOCK_JUMP)
			CHECK(clock.jump == (uint64_t)(twos[i].by < 0 ? -twos[i].by : twos[i].by) - 104,
			      "%s: %llu", twos[i].name, (unsigned long long)clock.jump);
	}
}

static void frequencies(const void *argument)
{
	static const struct {
		uint32_t ours, theirs;
		int result;
	} cases[] = {
		{ KHZ, KHZ, -EAGAIN }, { 0, KHZ, -ENODATA }, { KHZ, 0, -ENODATA },
		/* 200 ppm of drift, and what two measurements may be apart. */
		{ 1000000, 1000400, -EAGAIN }, { 1000000, 1000401, -EOPNOTSUPP },
		{ 1000400, 1000000, -EAGAIN }, { 1000401, 1000000, -EOPNOTSUPP },
		{ 1000000, 999600, -EAGAIN }, { 1000000, 999599, -EOPNOTSUPP },
		{ 2400000, 2600000, -EOPNOTSUPP }, { 20000000, 100000, -EOPNOTSUPP },
		{ KHZ, UINT32_MAX, -EOPNOTSUPP },
	};
	/* What jumps can't mend is refused, however much is allowed. */
	static const struct {
		uint32_t drift_ppm, most;
	} allowed[] = { { 1, 201 }, { 200, 400 }, { 1000, 1200 }, { 1001, 1200 }, { 10000, 1200 } };
	struct dsm_clock_params p = params;
	struct dsm_clock_offset offset;
	struct dsm_clock_sample s;
	struct dsm_clock clock;
	uint64_t least, most;
	unsigned int i;
	int rc;

	(void)argument;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		p.khz = cases[i].ours;
		dsm_clock_init(&clock, &p);
		s = sample(5000, 100, 10000, 0);
		s.khz = cases[i].theirs;
		CHECK((dsm_clock_add(&clock, &s) == DSM_CLOCK_TAKEN) ==
		      (cases[i].result == -EAGAIN), "%u: taken", i);
		rc = dsm_clock_get(&clock, 5100, &offset);
		CHECK(rc == cases[i].result, "%u: %d", i, rc);
		CHECK(dsm_clock_judge(&clock, 5100, &offset, &least, &most) != 0, "%u: judged", i);
	}
	p.khz = 1000000;
	for (i = 0; i < 2 * sizeof(allowed) / sizeof(allowed[0]); i++) {
		p.drift_ppm = allowed[i / 2].drift_ppm;
		dsm_clock_init(&clock, &p);
		s = sample(5000, 100, 10000, 0);
		s.khz = p.khz - allowed[i / 2].most - i % 2;
		CHECK((dsm_clock_add(&clock, &s) == DSM_CLOCK_TAKEN) == !(i % 2), "%u ppm are allowed, %u kHz", p.drift_ppm,
		      s.khz);
	}
	/* Another frequency than before is another clock. */
	dsm_clock_init(&clock, &params);
	s = sample(5000, 100, 10000, 0);
	dsm_clock_add(&clock, &s);
	s = sample(6000, 100, 50000, 0);
	s.khz++;
	CHECK(dsm_clock_add(&clock, &s) == DSM_CLOCK_TAKEN && clock.generation == 1 &&
	      clock.agreeing == 1, "another clock");
}

static void frames_of_time(const void *argument)
{
	(void)argument;
	CHECK(dsm_clock_ns(KHZ, 5) == 5, "1 GHz");
	CHECK(dsm_clock_ns(3000000, 3) == 1 && dsm_clock_ns(3000000, 4) == 2, "rounded up");
	CHECK(dsm_clock_ns(100000, 1ull << 63) == UINT64_MAX, "too many");
	CHECK(!strcmp(dsm_clock_state_name(DSM_CLOCK_ALIGNED), "aligned") &&
	      !strcmp(dsm_clock_state_name(DSM_NR_CLOCK_STATES), "?"), "names");
}

/* ---- Two clocks that are played ---- */

struct played_clock {
	uint64_t value;
	int64_t ppb;
	s128 rest;		/* of a tick, in 1e-9 */
};

static struct world {
	struct played_clock ours, theirs;
	struct dsm_clock clock;
	uint64_t least_way;	/* that a frame takes, ns */
	uint32_t jitter;	/* and more, at most */
	int64_t least_ppb, most_ppb;	/* of the relative drift, ever */
} world;

static void advance_one(struct played_clock *clock, uint64_t ns)
{
	clock->rest += (s128)ns * clock->ppb;
	clock->value += ns + (uint64_t)(int64_t)(clock->rest / 1000000000);
	clock->rest %= 1000000000;
}

static void advance(uint64_t ns)
{
	advance_one(&world.ours, ns);
	advance_one(&world.theirs, ns);
}

static uint64_t truth(void)
{
	return world.theirs.value - world.ours.value;
}

static void set_drift(int64_t ours, int64_t theirs)
{
	int64_t relative = theirs - ours;

	world.ours.ppb = ours;
	world.theirs.ppb = theirs;
	if (relative < world.least_ppb)
		world.least_ppb = relative;
	if (relative > world.most_ppb)
		world.most_ppb = relative;
}

static void begin_world(uint64_t ours, uint64_t theirs)
{
	memset(&world, 0, sizeof(world));
	world.ours.value = ours;
	world.theirs.value = theirs;
	world.least_way = 10 * US;
	world.jitter = 50000;
	world.least_ppb = INT64_MAX;
	world.most_ppb = INT64_MIN;
	set_drift(0, 0);
	dsm_clock_init(&world.clock, &params);
}

/* Mostly short, sometimes very long; each way for itself. */
static uint64_t way(void)
{
	uint64_t more = dice_below(world.jitter + 1);

	return world.least_way + (dice_below(20) ? more / 8 : more * 100);
}

static struct dsm_clock_sample ask(void)
{
	struct dsm_clock_sample s = { .asked = world.ours.value, .khz = KHZ };

	advance(way());
	s.received = world.theirs.value;
	advance(dice_below(30000));
	s.replied = world.theirs.value;
	advance(way());
	s.answered = world.ours.value;
	return s;
}

static enum dsm_clock_taken exchange(void)
{
	struct dsm_clock_sample s = ask();

	return dsm_clock_add(&world.clock, &s);
}

static void settle(void)
{
	unsigned int i;

	for (i = 0; i < DSM_CLOCK_STEADY; i++) {
		exchange();
		advance(MS);
	}
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0 ? b - a : a - b;
}

/* What is said holds the truth: now, and some time ago. */
static void holds(uint64_t now, uint64_t right, const char *when)
{
	struct dsm_clock_offset offset;
	uint64_t least, most;
	int rc = dsm_clock_get(&world.clock, now, &offset);

	CHECK(!rc || rc == -ERANGE, "%s: %d", when, rc);
	CHECK((rc == -ERANGE) == (offset.error > params.error_ns), "%s: good enough", when);
	CHECK(apart(offset.offset, right) <= offset.error, "%s: %llu from the truth, error %llu",
	      when, (unsigned long long)apart(offset.offset, right),
	      (unsigned long long)offset.error);
	/* What was applied, and is wrong by what we choose. */
	offset.offset += dice_below(400000) - 200000;
	rc = dsm_clock_judge(&world.clock, now, &offset, &least, &most);
	CHECK(rc == 0 || rc == -EDOM || rc == -ERANGE, "%s: judged %d", when, rc);
	CHECK(least <= apart(offset.offset, right) && apart(offset.offset, right) <= most,
	      "%s: %llu is not %llu .. %llu", when,
	      (unsigned long long)apart(offset.offset, right),
	      (unsigned long long)least, (unsigned long long)most);
	CHECK(rc == (most <= params.error_ns ? 0 : least > params.error_ns ? -ERANGE : -EDOM),
	      "%s: %d of %llu .. %llu", when, rc, (unsigned long long)least,
	      (unsigned long long)most);
}

static void drift_holds(void)
{
	struct dsm_clock_drift drift;

	dsm_clock_get_drift(&world.clock, &drift);
	/* Rates of ours and of true time differ by 1e-4; 1 ppm is enough. */
	CHECK(drift.least_ppb <= world.most_ppb + 1000 && drift.most_ppb >= world.least_ppb - 1000 &&
	      drift.least_ppb <= drift.most_ppb, "drift %lld .. %lld is not within %lld .. %lld",
	      (long long)drift.least_ppb, (long long)drift.most_ppb,
	      (long long)world.least_ppb, (long long)world.most_ppb);
	CHECK(drift.least_ppb >= -(int64_t)PPM * 1000 && drift.most_ppb <= (int64_t)PPM * 1000,
	      "more than is allowed");
}

/* Honest hosts, each with its drift, for hours: always true, never a jump. */
static void honest(const void *argument)
{
	uint64_t past, right;
	unsigned int round, i;
	enum dsm_clock_taken taken;

	(void)argument;
	for (round = 0; round < 60; round++) {
		begin_world(round & 1 ? dice() : -(uint64_t)dice_below(1000000000),
			    round & 2 ? dice() : -(uint64_t)dice_below(1000000000));
		world.jitter = dice_below(200000);
		settle();
		for (i = 0; i < 3000; i++) {
			if (!dice_below(100))
				set_drift((int64_t)dice_below(180000) - 90000,
					  (int64_t)dice_below(180000) - 90000);
			taken = exchange();
			CHECK(taken == DSM_CLOCK_TAKEN, "round %u, %u: %d", round, i, (int)taken);
			holds(world.ours.value, truth(), "at the answer");
			past = world.ours.value;
			right = truth();
			advance(dice_below(dice_below(10) ? 1000000000u : 4000000000u));
			holds(world.ours.value, truth(), "later");
			holds(past, right, "earlier");
			drift_holds();
		}
		CHECK(!world.clock.jumps && !world.clock.impossible &&
		      world.clock.samples == 3000 + DSM_CLOCK_STEADY, "counts");
	}
}

/* It is not only true but also narrow: as the best answer, and its age. */
static void narrow(const void *argument)
{
	struct dsm_clock_offset offset;
	struct dsm_clock_drift drift;
	struct dsm_clock_sample s;
	uint64_t age = 0;
	unsigned int i;

	(void)argument;
	begin_world(7, 1ull << 40);
	set_drift(-20000, 30000);
	settle();
	/* One quick answer: 20 us on the wire. */
	world.jitter = 0;
	s = ask();
	CHECK(dsm_clock_add(&world.clock, &s) == DSM_CLOCK_TAKEN, "taken");
	world.jitter = 400000;
	world.least_way = 300 * US;
	for (i = 0; i < 40; i++) {
		advance(S);
		age += S;
		exchange();
		CHECK(!dsm_clock_get(&world.clock, world.ours.value, &offset) || age > 300 * MS, "known");
		/* At worst half of what was on the wire, and 200 ppm of the age. */
		CHECK(i > 1 || offset.error <= 10 * US + (age + 100 * MS) / 5000 + 10,
		      "%llu after %u s", (unsigned long long)offset.error, i + 1);
	}
	/* And the drift, over minutes. */
	world.least_way = 10 * US;
	world.jitter = 1000;
	for (i = 0; i < 1000; i++) {
		advance(S);
		exchange();
	}
	dsm_clock_get_drift(&world.clock, &drift);
	CHECK(drift.span > (DSM_CLOCK_WINDOWS - 2) * DSM_CLOCK_WINDOW_S * S &&
	      drift.span < DSM_CLOCK_WINDOWS * DSM_CLOCK_WINDOW_S * S, "over %llu s",
	      (unsigned long long)(drift.span / S));
	CHECK(drift.least_ppb > 49000 && drift.least_ppb <= 50001 &&
	      drift.most_ppb >= 49999 && drift.most_ppb < 51000, "%lld .. %lld ppb",
	      (long long)drift.least_ppb, (long long)drift.most_ppb);
}

/* All on one way, nothing on the other: half of the round trip wrong, and no more. */
static void asymmetric(const void *argument)
{
	struct dsm_clock_offset offset;
	struct dsm_clock_sample s;
	unsigned int i;

	(void)argument;
	begin_world(1, 2);
	for (i = 0; i < 100; i++) {
		s = (struct dsm_clock_sample){ .asked = world.ours.value, .khz = KHZ };
		advance(100 * US);
		s.received = s.replied = world.theirs.value;
		s.answered = world.ours.value;
		CHECK(dsm_clock_add(&world.clock, &s) == DSM_CLOCK_TAKEN, "taken");
		advance(MS);
	}
	CHECK(!dsm_clock_get(&world.clock, world.ours.value, &offset), "known");
	CHECK(apart(offset.offset, truth()) <= offset.error && offset.error <= 50 * US + MS / 5000 + 30,
	      "%llu", (unsigned long long)offset.error);
	CHECK(apart(offset.offset, truth()) >= 49 * US, "the worst case");
}

/* What breaks the agreement, and how it goes on. */
static const struct breaks {
	const char *name;
	int64_t ours, theirs;	/* a step, ns */
	int64_t ppb;		/* or a drift */
	bool seen;
} breaks[] = {
	{ "nothing", 0, 0, 0, false },
	{ "ours is set forward", S, 0, 0, true },
	{ "ours is set back", -(int64_t)S, 0, 0, true },
	{ "the peer's is set forward", 0, S, 0, true },
	{ "the peer's is set back", 0, -(int64_t)S, 0, true },
	{ "less than can be seen", 0, 5000, 0, false },
	{ "the allowed drift", 0, 0, 199000, false },
	{ "more than the allowed drift", 0, 0, 300000, true },
	{ "and backwards", 0, 0, -300000, true },
};

static void broken(const void *argument)
{
	const struct breaks *b = argument;
	struct dsm_clock_offset before, offset;
	uint64_t least, most;
	unsigned int i, jumped = 0;

	begin_world(5, 1ull << 50);
	world.jitter = 10000;
	settle();
	CHECK(!dsm_clock_get(&world.clock, world.ours.value, &before), "known");
	world.ours.value += (uint64_t)b->ours;
	world.theirs.value += (uint64_t)b->theirs;
	set_drift(0, b->ppb);
	for (i = 0; i < 60 && !jumped; i++) {
		advance(S / 2);
		jumped = exchange() == DSM_CLOCK_JUMP;
	}
	CHECK(jumped == b->seen && world.clock.jumps == jumped, "%u jumps",
	      (unsigned int)world.clock.jumps);
	if (!jumped) {
		CHECK(dsm_clock_judge(&world.clock, world.ours.value, &before, &least, &most) != -ESTALE,
		      "what was applied is judged");
		return;
	}
	CHECK(dsm_clock_get_state(&world.clock, world.ours.value) == DSM_CLOCK_MEASURING,
	      "not believed at once");
	CHECK(dsm_clock_judge(&world.clock, world.ours.value, &before, &least, &most) == -ESTALE,
	      "what was applied says nothing any more");
	set_drift(0, 0);
	for (i = 0; i < DSM_CLOCK_STEADY; i++) {
		CHECK(dsm_clock_get(&world.clock, world.ours.value, &offset) == -EAGAIN ||
		      i == DSM_CLOCK_STEADY - 1, "after %u", i);
		exchange();
	}
	holds(world.ours.value, truth(), "afterwards");
	CHECK(dsm_clock_judge(&world.clock, world.ours.value, &before, &least, &most) == -ESTALE,
	      "nor later");
}

/* Suspended: its TSC stands still, or begins at 0, while the other one goes on. */
static void suspended(const void *argument)
{
	unsigned int whose;

	(void)argument;
	for (whose = 0; whose < 4; whose++) {
		begin_world(1000 * S, 77 * S);
		settle();
		if (whose & 1)
			advance_one(&world.ours, 3600 * S);
		else
			advance_one(&world.theirs, 3600 * S);
		if (whose & 2)
			*(whose & 1 ? &world.theirs.value : &world.ours.value) = 0;
		CHECK(exchange() == DSM_CLOCK_JUMP, "%u", whose);
		settle();
		holds(world.ours.value, truth(), "afterwards");
	}
	/* While a question is open. */
	begin_world(1000 * S, 77 * S);
	settle();
	{
		struct dsm_clock_sample s = ask();

		s.received += 10 * S;
		s.replied = s.received - 5 * S;
		CHECK(dsm_clock_add(&world.clock, &s) == DSM_CLOCK_IMPOSSIBLE &&
		      world.clock.impossible == 1, "while it was held");
		s = ask();
		s.answered = s.asked - S;
		CHECK(dsm_clock_add(&world.clock, &s) == DSM_CLOCK_IMPOSSIBLE, "ours went back");
	}
	holds(world.ours.value, truth(), "nothing of it stays");
}

/* A peer that says anything: nothing breaks, and it is hardly ever believed. */
static void liar(const void *argument)
{
	struct dsm_clock_offset offset;
	struct dsm_clock_drift drift;
	struct dsm_clock_sample s;
	unsigned int i, believed = 0;
	uint64_t least, most;

	(void)argument;
	begin_world(dice(), dice());
	for (i = 0; i < 200000; i++) {
		s = ask();
		s.replied = dice_below(3) ? dice() : s.replied + (uint64_t)dice_below(100000) - 50000;
		s.received = s.replied - (dice() >> (32 + dice_below(32)));
		if (!dice_below(1000))
			s.khz = (uint32_t)dice();
		dsm_clock_add(&world.clock, &s);
		believed += !dsm_clock_get(&world.clock, dice(), &offset);
		dsm_clock_judge(&world.clock, dice(), &offset, &least, &most);
		dsm_clock_get_drift(&world.clock, &drift);
		CHECK(drift.least_ppb >= -(int64_t)PPM * 1000 && drift.most_ppb <= (int64_t)PPM * 1000,
		      "drift");
		CHECK(world.clock.now.width < 1ull << 60, "width");
	}
	CHECK(believed < 10 && world.clock.jumps > 1000 && world.clock.impossible > 1000,
	      "%u believed", believed);
}

/* What can't be seen, as the manual says: the same lie each time. */
static void liar_with_a_plan(const void *argument)
{
	struct dsm_clock_offset offset;
	struct dsm_clock_sample s;
	unsigned int i;

	(void)argument;
	begin_world(3, 4);
	for (i = 0; i < 100; i++) {
		s = ask();
		s.received += 12345678;
		s.replied += 12345678;
		CHECK(dsm_clock_add(&world.clock, &s) == DSM_CLOCK_TAKEN, "taken");
		advance(MS);
	}
	CHECK(!dsm_clock_get(&world.clock, world.ours.value, &offset) &&
	      apart(offset.offset, truth() + 12345678) <= offset.error, "its lie");
}

/* Long without an answer: ever less is known, then nothing. */
static void silence(const void *argument)
{
	struct dsm_clock_offset offset;

	(void)argument;
	begin_world(3, 4);
	settle();
	CHECK(dsm_clock_get_state(&world.clock, world.ours.value) == DSM_CLOCK_ALIGNED, "now");
	CHECK(dsm_clock_get_state(&world.clock, world.ours.value + S) == DSM_CLOCK_WIDE, "a second");
	CHECK(dsm_clock_get(&world.clock, world.ours.value + S, &offset) == -ERANGE &&
	      offset.error >= 200 * US && offset.error <= 300 * US, "%llu", (unsigned long long)offset.error);
	CHECK(dsm_clock_get(&world.clock, world.ours.value + (1ull << 62), &offset) == -ERANGE &&
	      dsm_clock_get(&world.clock, world.ours.value - S, &offset) == -ERANGE, "ages");
	/* 2^63 ticks at 200 ppm are a width of 2^51: known, but not for much. */
	CHECK(offset.error < 1ull << 60, "width");
}

/* ---- This host's own ---- */

static void own_tsc(const void *argument)
{
	static const struct {
		struct dsm_tsc_leaves leaves;
		bool usable, told;
	} cases[] = {
		{ { 4, 2, 2400000, 0 }, true, false },
		{ { 6, 2, 2400000, 0 }, true, false },
		{ { 4, 0, 2400000, 0 }, true, true },		/* not reliable */
		{ { 4, 7, 2400000, 0 }, false, true },		/* emulated */
		{ { 4, 6, 2400000, 0 }, true, false },
		{ { 4, 2, 2400000, 8 }, false, true },		/* HVM */
		{ { 4, 2, 99999, 0 }, false, true }, { { 4, 2, 100000, 0 }, true, false },
		{ { 4, 2, 20000000, 0 }, true, false }, { { 4, 2, 20000001, 0 }, false, true },
		{ { 4, 2, UINT32_MAX, 0 }, false, true },
		{ { 3, 2, 2400000, 0 }, false, true }, { { 0, 0, 0, 0 }, false, true },
	};
	const char *text;
	uint64_t before;
	unsigned int i;
	int khz;

	(void)argument;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		khz = dsm_tsc_judge(&cases[i].leaves, &text);
		CHECK(khz == (cases[i].usable ? (int)cases[i].leaves.khz : -EOPNOTSUPP) &&
		      !!text[0] == cases[i].told, "%u: %d, %s", i, khz, text);
	}
	before = dsm_tsc_read();
	CHECK((int64_t)(dsm_tsc_read() - before) > 0, "it stands still");
}

static const struct test_case first_cases[] = {
	{ "clock: one answer", one_answer, NULL },
	{ "clock: two answers", two_answers, NULL },
	{ "clock: what is told", told, NULL },
	{ "clock: frequencies", frequencies, NULL },
	{ "clock: ns and names", frames_of_time, NULL },
	{ "clock: honest hosts", honest, NULL },
	{ "clock: narrow", narrow, NULL },
	{ "clock: asymmetric", asymmetric, NULL },
	{ "clock: suspended", suspended, NULL },
	{ "clock: a liar", liar, NULL },
	{ "clock: a liar with a plan", liar_with_a_plan, NULL },
	{ "clock: silence", silence, NULL },
	{ "clock: our own TSC", own_tsc, NULL },
};

#define NR(table)	(sizeof(table) / sizeof(table[0]))

int main(int argc, char **argv)
{
	struct test_case cases[NR(first_cases) + NR(breaks)];
	char names[NR(breaks)][64];
	unsigned int i, n = NR(first_cases);

	dice_state = getenv("DSM_SEED") ? strtoull(getenv("DSM_SEED"), NULL, 0) : 1;
	memcpy(cases, first_cases, sizeof(first_cases));
	for (i = 0; i < NR(breaks); i++, n++) {
		snprintf(names[i], sizeof(names[i]), "clock: a jump: %s", breaks[i].name);
		cases[n] = (struct test_case){ names[i], broken, &breaks[i] };
	}
	return run_cases(argc, argv, cases, n);
}
