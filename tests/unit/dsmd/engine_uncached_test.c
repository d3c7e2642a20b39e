// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that can't leave their home: vCPUs elsewhere use them there.  Three engines with
 * a played hypervisor each; page 3 is at home at host 0.  When a page becomes one that
 * stays, what comes of each access, when it may leave again, and what a peer must not
 * say.
 */
#include <errno.h>
#include <string.h>

#include "vcpu_rig.h"

#define GFN	3u
#define AT	(GFN * DSM_PAGE_BYTES + 8ull)
#define WORD(host) (node[host].xen.page[GFN].word[1])

static void begin_uncached(void)
{
	class_u = true;
	begin();
}

/* A vCPU uses the page until it has it, or it stays elsewhere; time passes. */
static enum played_access use(unsigned int host, unsigned int vcpu, unsigned int gfn, unsigned int want)
{
	enum played_access got = PLAYED_MISS;
	unsigned int i;

	for (i = 0; i < 100 && got == PLAYED_MISS; i++) {
		if (!node[host].xen.vcpu[vcpu].waits)
			got = played_use(&node[host].xen, vcpu, gfn, want, 0x1000 + i);
		settle();
		pass(MS / 4);
		settle();
		if (node[host].failure[0])
			break;
	}
	return got;
}

/* One access, and its answer. */
static uint64_t makes(unsigned int host, unsigned int vcpu, unsigned int what, uint64_t old, uint64_t value)
{
	CHECK(played_access(&node[host].xen, vcpu, what, AT, old, value), "a full ring");
	settle();
	CHECK(!node[host].xen.accesses[vcpu].type, "it waits still");
	CHECK(!node[host].xen.accessed[vcpu].flags, "not made");
	return node[host].xen.accessed[vcpu].word[0];
}

static struct dsm_engine_counts counts_of(unsigned int host)
{
	struct dsm_engine_counts counts;

	dsm_engine_get_counts(node[host].engine, &counts);
	return counts;
}

static void nobody_fails(const char *what)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		const char *rule = dsm_engine_broken_rule(node[i].engine);

		CHECK(!node[i].failure[0], "%s: %s", what, node[i].failure);
		CHECK(!rule, "%s: %s", what, rule);
		CHECK(dsm_engine_is_quiet(node[i].engine), "%s: host %u", what, i);
	}
}

/* A grant table. */
static void special(const void *argument)
{
	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "for both");
	CHECK(node[0].xen.page[GFN].state == DSM_XEN_STATE_M, "and is at home");
	WORD(0) = 5;
	CHECK(makes(1, 1, DSM_ACCESS_READ, 0, 0) == 5, "what the home has written");
	CHECK(makes(1, 1, DSM_ACCESS_WRITE, 0, 6) == 0 && WORD(0) == 6, "a write");
	CHECK(makes(2, 2, DSM_ACCESS_CMPXCHG, 6, 7) == 6 && WORD(0) == 7, "an exchange");
	CHECK(makes(1, 1, DSM_ACCESS_CMPXCHG, 6, 8) == 7 && WORD(0) == 7, "one too late");
	CHECK(counts_of(1).accesses == 3 && counts_of(0).accesses_done == 4 && counts_of(1).uncached == 1 &&
	      !counts_of(1).accesses_again && counts_of(1).access.count == 3, "counts");
	/* The home's own CPU goes on with it. */
	CHECK(played_use(&node[0].xen, 0, GFN, DSM_XEN_WANT_M, 1) == PLAYED_DONE, "at home");
	/* And ever after. */
	pass(1000 * MS);
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "no plain memory");
	nobody_fails("special");
	end();
}

/* Who is asked is a host, whatever home the VM has. */
static void of_another_home(const void *argument)
{
	(void)argument;
	dice_begin();
	class_u = true;
	begin_at(1);
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 0, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	CHECK(makes(1, 3, DSM_ACCESS_WRITE, 0, 9) == 0 && WORD(0) == 9, "by another vCPU");
	nobody_fails("another home");
	end();
}

/* A page that a backend has mapped. */
static void in_use(const void *argument)
{
	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].pinned = true;
	played_use(&node[1].xen, 1, GFN, DSM_XEN_WANT_M, 1);
	settle();
	pass(MS);
	settle();
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_I, "not yet");
	/* It is let go in time. */
	node[0].xen.page[GFN].pinned = false;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "it comes");
	CHECK(use(0, 0, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "and goes");
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	CHECK(makes(1, 1, DSM_ACCESS_WRITE, 0, 4) == 0 && WORD(0) == 4, "a write");
	nobody_fails("in use");
	end();
}

/* Others have copies, which have to go first. */
static void shared(const void *argument)
{
	(void)argument;
	begin_uncached();
	WORD(0) = 77;
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_DONE, "a copy");
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_DONE, "another one");
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	CHECK(node[0].xen.page[GFN].state == DSM_XEN_STATE_M, "alone at home");
	CHECK(node[2].xen.page[GFN].state == DSM_XEN_STATE_I, "no copy");
	CHECK(makes(1, 1, DSM_ACCESS_CMPXCHG, 77, 78) == 77, "the bytes are there");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "for all");
	CHECK(makes(2, 2, DSM_ACCESS_READ, 0, 0) == 78, "the same for all");
	nobody_fails("shared");
	end();
}

/* Nobody refers to it any more. */
static void free_again(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	/* For a moment only. */
	node[0].xen.page[GFN].pinned = false;
	makes(1, 1, DSM_ACCESS_WRITE, 0, 1);
	pass(MS);
	makes(1, 1, DSM_ACCESS_WRITE, 0, 2);
	node[0].xen.page[GFN].pinned = true;
	pass(MS);
	makes(1, 1, DSM_ACCESS_WRITE, 0, 3);
	node[0].xen.page[GFN].pinned = false;
	for (i = 0; i < 2; i++) {
		makes(1, 1, DSM_ACCESS_WRITE, 0, 4 + i);
		pass(MS - 1);
	}
	makes(1, 1, DSM_ACCESS_WRITE, 0, 6);
	/* Now it is 2 ms since. */
	pass(2);
	makes(1, 1, DSM_ACCESS_WRITE, 0, 7);
	CHECK(WORD(0) == 7, "it is made still");
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_WRITE, AT, 0, 8), "room");
	settle();
	CHECK(node[1].xen.accessed[1].flags == DSM_ACCESS_AGAIN && WORD(0) == 7, "not any more");
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_I, "an ordinary page");
	CHECK(counts_of(1).accesses_again == 1, "counted");
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "it comes");
	CHECK(node[1].xen.page[GFN].word[1] == 7, "its bytes");
	/* Who has not heard of it. */
	node[1].xen.page[GFN].word[1] = 9;
	CHECK(played_access(&node[2].xen, 2, DSM_ACCESS_READ, AT, 0, 0), "room");
	settle();
	CHECK(node[2].xen.accessed[2].flags == DSM_ACCESS_AGAIN, "not any more");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_DONE, "it comes");
	CHECK(node[2].xen.page[GFN].word[1] == 9, "its bytes");
	nobody_fails("free again");
	end();
}

/* What can't be an access. */
static void needed(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	played_need(&node[1].xen, 1, GFN, 0xabc);
	settle();
	pass(0);
	settle();
	expect_failure(1, "gfn 0x3 is needed here by vCPU 1 at RIP 0xabc for what can't be done elsewhere");
	expect_failure(1, "and it can't leave alpha");
	end();

	/* It may leave by now. */
	begin_uncached();
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	node[0].xen.page[GFN].pinned = false;
	makes(1, 1, DSM_ACCESS_WRITE, 0, 1);
	pass(2 * MS);
	makes(1, 1, DSM_ACCESS_WRITE, 0, 2);
	played_need(&node[1].xen, 1, GFN, 0xabc);
	settle();
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_M && !node[1].xen.vcpu[1].waits, "it comes");
	/* And the next time that it stays is another one. */
	CHECK(use(0, 0, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "it goes");
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "it comes");
	CHECK(use(0, 0, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "it goes");
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	nobody_fails("needed");
	/* What is in use is let go of some day: until then who needs it waits. */
	for (i = 0; i < 40; i++) {
		if (node[1].xen.page[GFN].state == DSM_XEN_STATE_U && !node[1].xen.vcpu[1].waits)
			played_need(&node[1].xen, 1, GFN, 0xabc);
		settle();
		pass(MS / 4);
	}
	CHECK(!node[1].failure[0] && node[1].warnings && node[1].xen.page[GFN].state == DSM_XEN_STATE_U,
	      "it waits: %s", node[1].failure);
	node[0].xen.page[GFN].pinned = false;
	for (i = 0; i < 40 && node[1].xen.page[GFN].state == DSM_XEN_STATE_U; i++) {
		if (!node[1].xen.vcpu[1].waits)
			played_need(&node[1].xen, 1, GFN, 0xabc);
		settle();
		pass(MS / 4);
	}
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_M, "it comes");
	nobody_fails("needed");
	end();
}

/* What was missed before the page stayed is read after it. */
static void stale_miss(const void *argument)
{
	(void)argument;
	dice_begin();
	class_u = true;
	begin_at(1);
	node[0].xen.page[GFN].special = true;
	played_use(&node[1].xen, 0, GFN, DSM_XEN_WANT_S, 1);
	settle();
	pass(1);
	settle();
	/* The first answer was that it is in use. */
	CHECK(!node[1].xen.vcpu[0].waits, "woken");
	played_use(&node[1].xen, 0, GFN, DSM_XEN_WANT_S, 1);
	look(1);
	played_use(&node[1].xen, 3, GFN, DSM_XEN_WANT_M, 2);
	while (deliver(1, 0))
		look(0);
	while (deliver(0, 1))
		;
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_U && !node[1].xen.vcpu[3].waits, "both are woken");
	settle();
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_U && !in_channel[1][0], "nobody asks");
	nobody_fails("a miss of before");
	/* Xen has forgotten it: it is told again. */
	node[1].xen.page[GFN].state = DSM_XEN_STATE_I;
	CHECK(use(1, 3, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "again");
	nobody_fails("told again");
	end();
}

/* Without it all is as before. */
static void off(const void *argument)
{
	unsigned int way;

	(void)argument;
	for (way = 0; way < 3; way++) {
		class_u = way;
		begin();
		if (way == 1)
			dsm_engine_takes_access(node[1].engine, 0, false);
		if (way == 2)
			dsm_engine_set_class_u(node[1].engine, false);
		node[0].xen.page[GFN].special = true;
		use(1, 1, GFN, DSM_XEN_WANT_S);
		expect_failure(1, "gfn 0x3 is needed here by vCPU 1");
		expect_failure(1, "it can't leave alpha: it is in use there for ever");
		/* Who reads it can do something about it. */
		CHECK(!strstr(node[1].failure, "class_u of dsmd(8) is off at beta") == (way == 1), "%u: '%s'",
		      way, node[1].failure);
		end();
	}
	/* What is in use is waited for, then. */
	class_u = false;
	begin();
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_MISS, "it waits");
	CHECK(!node[1].failure[0], "%s", node[1].failure);
	dsm_engine_set_class_u(node[0].engine, true);
	dsm_engine_set_class_u(node[1].engine, true);
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "switched on");
	/* Off again: what stays is used as before. */
	dsm_engine_set_class_u(node[1].engine, false);
	CHECK(makes(1, 1, DSM_ACCESS_WRITE, 0, 5) == 0 && WORD(0) == 5, "a write");
	/* A host of before this would have no other way. */
	dsm_engine_takes_access(node[0].engine, 2, false);
	dsm_engine_set_class_u(node[2].engine, true);
	node[0].xen.page[4].pinned = true;
	CHECK(use(2, 2, 4, DSM_XEN_WANT_M) == PLAYED_MISS, "it waits");
	CHECK(!node[2].failure[0], "%s", node[2].failure);
	end();
}

/* The ring of a console, which dom0 has mapped: no buffer that is let go of some day. */
static void of_a_ring(const void *argument)
{
	unsigned int way;

	(void)argument;
	rings = true;
	begin_uncached();
	node[0].xen.page[GFN].pinned = true;
	WORD(0) = 5;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	CHECK(makes(1, 1, DSM_ACCESS_READ, 0, 0) == 5, "what the home has written");
	CHECK(makes(1, 1, DSM_ACCESS_WRITE, 0, 6) == 0 && WORD(0) == 6, "a write");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "for both");
	CHECK(makes(2, 2, DSM_ACCESS_CMPXCHG, 6, 7) == 6 && WORD(0) == 7, "an exchange");
	/* It is let go after all. */
	node[0].xen.page[GFN].pinned = false;
	makes(1, 1, DSM_ACCESS_WRITE, 0, 8);
	pass(2 * MS);
	makes(1, 1, DSM_ACCESS_WRITE, 0, 9);
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_READ, AT, 0, 0), "room");
	settle();
	CHECK(node[1].xen.accessed[1].flags == DSM_ACCESS_AGAIN, "not any more");
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_DONE && WORD(1) == 9, "it comes");
	/* One that nobody has mapped is a page as any other. */
	CHECK(use(1, 1, GFN + 1, DSM_XEN_WANT_M) == PLAYED_DONE, "it comes");
	CHECK(use(0, 0, GFN + 1, DSM_XEN_WANT_M) == PLAYED_DONE, "and goes");
	nobody_fails("of a ring");
	end();

	/* Others have copies of before it was mapped. */
	begin_uncached();
	WORD(0) = 77;
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_DONE, "a copy");
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	CHECK(makes(1, 1, DSM_ACCESS_CMPXCHG, 77, 78) == 77 && WORD(0) == 78, "an exchange");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "for both");
	nobody_fails("copies of a ring");
	end();

	/* Without class U who needs it would wait for ever: it is the end, and says why. */
	for (way = 0; way < 3; way++) {
		class_u = way;
		begin();
		if (way == 1)
			dsm_engine_takes_access(node[1].engine, 0, false);
		if (way == 2)
			dsm_engine_set_class_u(node[1].engine, false);
		/* For a moment only. */
		node[0].xen.page[GFN].pinned = true;
		played_use(&node[1].xen, 1, GFN, DSM_XEN_WANT_M, 1);
		settle();
		pass(MS);
		settle();
		node[0].xen.page[GFN].pinned = false;
		CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "it comes");
		CHECK(use(0, 0, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "and goes");
		nobody_fails("for a moment");
		node[0].xen.page[GFN].pinned = true;
		use(1, 1, GFN, DSM_XEN_WANT_M);
		expect_failure(1, "gfn 0x3 is needed here by vCPU 1");
		expect_failure(1, "it can't leave alpha: it is in use there for ever");
		end();
	}
	/* Of other memory it is no such thing. */
	class_u = false;
	begin();
	node[1].xen.page[15].pinned = true;
	CHECK(use(2, 2, 15, DSM_XEN_WANT_M) == PLAYED_MISS, "it waits");
	CHECK(!node[2].failure[0], "%s", node[2].failure);
	end();
	rings = false;
}

/* Two hosts ask for a ring all the time: there is never a moment in which nobody waits. */
static void ring_for_two(const void *argument)
{
	unsigned int way, i, tries;

	(void)argument;
	for (way = 0; way < 2; way++) {
		rings = way;
		begin_uncached();
		node[0].xen.page[GFN].pinned = way;
		node[0].xen.page[GFN].special = !way;
		for (tries = 0; tries < 40 && node[0].xen.made < 2; tries++) {
			for (i = 1; i < HOSTS; i++) {
				struct played_xen *x = &node[i].xen;

				if (!x->vcpu[i].waits && !x->accesses[i].type &&
				    played_use(x, i, GFN, DSM_XEN_WANT_M, 1) == PLAYED_ACCESS)
					played_access(x, i, DSM_ACCESS_WRITE, AT, 0, i);
				look(i);
				/* What one asks comes while the other one waits. */
				while (deliver(i, 0))
					;
			}
			pass(MS / 4);
			look(0);
			for (i = 1; i < HOSTS; i++)
				while (deliver(0, i))
					;
		}
		CHECK(node[0].xen.made >= 2, "no access: %u after %u", node[0].xen.made, tries);
		CHECK(!node[1].warnings && !node[2].warnings, "who asked heard that it is in use");
		CHECK(counts_of(0).pins == 1, "it is found in use once, for both: %llu", (unsigned long long)counts_of(0).pins);
		settle();
		nobody_fails("a ring for two");
		end();
	}
	rings = false;
}

/* What is on its way for LATE. */
#define LATE	(5 * MS)
static uint64_t sent_at[HOSTS][HOSTS][64];
static unsigned int sent_nr[HOSTS][HOSTS], came_nr[HOSTS][HOSTS];

static void deliver_late(void)
{
	unsigned int i, k;

	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < HOSTS; k++) {
			while (sent_nr[i][k] - came_nr[i][k] < in_channel[i][k])
				sent_at[i][k][sent_nr[i][k]++ % 64] = clock_ns;
			while (in_channel[i][k] && clock_ns - sent_at[i][k][came_nr[i][k] % 64] >= LATE) {
				came_nr[i][k]++;
				deliver(i, k);
			}
		}
}

/*
 * The link takes longer than pin_ns.  Who asks has the home try the page once more, and what
 * another host does with it meanwhile is made all the same: else each has the other ask again.
 */
static void two_slow_links(const void *argument)
{
	unsigned int way, after, i, t, made[HOSTS];

	(void)argument;
	for (way = 0; way < 2; way++)
		for (after = 0; after < 80; after++) {
			rings = way;
			begin_uncached();
			memset(sent_nr, 0, sizeof(sent_nr));
			memset(came_nr, 0, sizeof(came_nr));
			memset(made, 0, sizeof(made));
			node[0].xen.page[GFN].pinned = way;
			node[0].xen.page[GFN].special = !way;
			for (t = 0; t < 800; t++) {
				for (i = 1; i < HOSTS; i++) {
					struct played_xen *x = &node[i].xen;

					if (x->accessed[i].type && !(x->accessed[i].flags & DSM_ACCESS_AGAIN))
						made[i]++;
					x->accessed[i].type = 0;
					if ((i == 1 || t >= after) && !x->vcpu[i].waits && !x->accesses[i].type &&
					    played_use(x, i, GFN, DSM_XEN_WANT_M, 1) == PLAYED_ACCESS)
						played_access(x, i, DSM_ACCESS_WRITE, AT, 0, i);
					look(i);
				}
				deliver_late();
				pass(MS / 4);
				look(0);
			}
			/* 200 ms are 18 accesses, and what it takes until it is asked for no more. */
			CHECK(made[1] >= 14 && made[2] >= 12, "%u, %u: %u and %u accesses; again: %llu and %llu", way, after,
			      made[1], made[2], (unsigned long long)counts_of(1).accesses_again,
			      (unsigned long long)counts_of(2).accesses_again);
			end();
		}
	rings = false;
}

/* Another host would have it freed, which can't be: for who uses it here nothing changes. */
static void not_freed(const void *argument)
{
	unsigned int way;

	(void)argument;
	for (way = 0; way < 2; way++) {
		rings = way;
		begin_uncached();
		node[0].xen.page[GFN].pinned = true;
		CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
		pass(3 * MS);
		/* INVAL is refused, and so is what follows it. */
		node[0].xen.must_not_refuse = false;
		CHECK(!dsm_engine_drop(node[2].engine, GFN), "asked");
		settle();
		pass(3 * MS);
		settle();
		CHECK(!in_channel[0][2] && dsm_engine_is_quiet(node[0].engine), "answered");
		CHECK(makes(1, 1, DSM_ACCESS_WRITE, 0, 5) == 0 && WORD(0) == 5, "a write");
		nobody_fails("not freed");
		end();
	}
	rings = false;
}

/* The guest's grant table comes where others have copies of what was there. */
static void special_and_shared(const void *argument)
{
	(void)argument;
	begin_uncached();
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_DONE, "a copy");
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	CHECK(makes(1, 1, DSM_ACCESS_WRITE, 0, 5) == 0 && WORD(0) == 5, "a write");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "for both");
	nobody_fails("special and shared");
	end();
}

/* For whom the home tries once more whether a page can leave: who needs it, and has it not. */
static void tried_for(const void *argument)
{
	static const struct {
		unsigned int type, flags, tries;
	} asked[] = {
		{ DSM_GETS, 0, 1 }, { DSM_GETM, 0, 1 }, { DSM_GETM, DSM_F_NODATA, 1 }, { DSM_GETS, DSM_F_PREFETCH, 0 },
		{ DSM_GETM, DSM_F_PREFETCH, 0 }, { DSM_DROP, 0, 0 }, { DSM_POPULATE, 0, 0 },
	};
	unsigned int i, tries;

	(void)argument;
	for (i = 0; i < NR(asked); i++) {
		struct dsm_msg ask = { .type = (uint8_t)asked[i].type, .flags = (uint8_t)asked[i].flags, .epoch = 7, .gfn = GFN };

		begin_uncached();
		node[0].xen.page[GFN].special = true;
		CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
		pass(1000 * MS);
		tries = node[0].xen.refused[EPERM];
		dsm_engine_message(node[0].engine, 2, &ask, NULL);
		look(0);
		pass(0);
		CHECK(node[0].xen.refused[EPERM] == tries + asked[i].tries, "%u: %u", i, node[0].xen.refused[EPERM] - tries);
		CHECK(in_channel[0][2] == 1 && !node[0].failure[0], "%u: one answer: %s", i, node[0].failure);
		end();
	}
}

/* The guest gives the page back. */
static void a_hole(const void *argument)
{
	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	node[0].xen.page[GFN].state = DSM_XEN_STATE_HOLE;
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_READ, AT, 0, 0), "room");
	settle();
	CHECK(node[1].xen.accessed[1].flags == DSM_ACCESS_AGAIN, "not made");
	CHECK(!counts_of(0).pages, "and nothing special, at its home");
	played_use(&node[1].xen, 1, GFN, DSM_XEN_WANT_S, 1);
	settle();
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_I && node[1].xen.vcpu[1].at_hole, "a hole, in state %u",
	      node[1].xen.page[GFN].state);
	/* There is plain memory again, and the vCPU has gone on. */
	played_goes_on(&node[1].xen, 1);
	node[0].xen.page[GFN].special = false;
	node[0].xen.page[GFN].state = DSM_XEN_STATE_M;
	pass(100 * MS);
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "it comes");
	nobody_fails("a hole");
	end();
}

/* There was no memory, which a vCPU has not found yet when the home says that the page stays. */
static void after_a_hole(const void *argument)
{
	unsigned int i;

	(void)argument;
	dice_begin();
	class_u = true;
	begin_at(1);
	node[0].xen.page[GFN].state = DSM_XEN_STATE_HOLE;
	CHECK(played_use(&node[1].xen, 0, GFN, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "it asks");
	look(1);
	played_use(&node[1].xen, 3, GFN, DSM_XEN_WANT_S, 2);
	while (deliver(1, 0))
		look(0);
	while (deliver(0, 1))
		;
	CHECK(node[1].xen.vcpu[0].at_hole && node[1].xen.vcpu[3].waits, "a hole, for who has asked");
	/* Memory comes, and is in use at once; the other one's miss is read. */
	node[0].xen.page[GFN].state = DSM_XEN_STATE_M;
	node[0].xen.page[GFN].pinned = true;
	for (i = 0; i < 10; i++) {
		settle();
		pass(MS / 4);
	}
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_U, "in state %u: %s", node[1].xen.page[GFN].state,
	      node[1].failure);
	CHECK(!node[1].xen.vcpu[0].at_hole, "nobody finds a hole any more");
	settle();
	pass(100 * MS);
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_U, "and stays so");
	makes(1, 3, DSM_ACCESS_WRITE, 0, 5);
	nobody_fails("after a hole");
	end();
}

/* What Xen has made of the page meanwhile is no failure. */
static void not_uncached(const void *argument)
{
	static const unsigned int state[] = { DSM_XEN_STATE_I, DSM_XEN_STATE_HOLE };
	unsigned int i;

	(void)argument;
	for (i = 0; i < NR(state); i++) {
		begin_uncached();
		node[0].xen.page[GFN].pinned = true;
		CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
		CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_READ, AT, 0, 0), "room");
		node[0].xen.page[GFN].state = DSM_XEN_STATE_HOLE;
		node[1].xen.page[GFN].state = (uint8_t)state[i];
		settle();
		CHECK(node[1].xen.accessed[1].flags == DSM_ACCESS_AGAIN, "not made");
		CHECK(!counts_of(0).pages && !counts_of(1).pages, "nothing is known of it: %llu, %llu",
		      (unsigned long long)counts_of(0).pages, (unsigned long long)counts_of(1).pages);
		nobody_fails("Xen has ended it");
		end();
	}

	/* A hole that somebody needs for what is no access. */
	begin_uncached();
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	node[0].xen.page[GFN].pinned = false;
	node[0].xen.page[GFN].state = DSM_XEN_STATE_HOLE;
	played_need(&node[1].xen, 1, GFN, 0xabc);
	settle();
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_I && !node[1].xen.vcpu[1].waits &&
	      !node[1].xen.vcpu[1].at_hole, "it asks again, in state %u", node[1].xen.page[GFN].state);
	played_use(&node[1].xen, 1, GFN, DSM_XEN_WANT_M, 0xabc);
	settle();
	CHECK(node[1].xen.vcpu[1].at_hole, "then there is none");
	played_goes_on(&node[1].xen, 1);
	node[0].xen.page[GFN].state = DSM_XEN_STATE_M;
	pass(100 * MS);
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "it comes");
	nobody_fails("a hole that was needed");
	end();

	/* What is asked for is no access: nothing is told to use it there. */
	begin_uncached();
	node[0].xen.page[GFN].pinned = true;
	/* DROP after an INVAL that it refuses. */
	node[0].xen.must_not_refuse = false;
	CHECK(!dsm_engine_drop(node[1].engine, GFN), "asked");
	for (i = 0; i < 20; i++) {
		settle();
		pass(MS / 4);
	}
	lie(1, 0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_ACCESS, .vcpu = 1, .number = 1, .flags = 0x32,
					 .word = { AT, 0, 2 } }, NULL);
	CHECK(!node[0].xen.made, "not made");
	end();

	/* Nor of a page whose range closes. */
	begin_uncached();
	node[2].xen.page[25].pinned = true;
	dsm_engine_open_range(node[2].engine, 2, 3);
	CHECK(use(1, 1, 25, DSM_XEN_WANT_S) == PLAYED_MISS && node[1].xen.page[25].state == DSM_XEN_STATE_I, "it waits");
	end();
}

static void errors(const void *argument)
{
	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "for both");
	/* The guest gives it back just now. */
	node[0].xen.break_access = -EBUSY;
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_READ, AT, 0, 0), "room");
	settle();
	CHECK(node[1].xen.accessed[1].flags == DSM_ACCESS_AGAIN, "not made");
	node[0].xen.break_access = 0;
	/* For others it stays as it is. */
	makes(2, 2, DSM_ACCESS_WRITE, 0, 5);
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	node[0].xen.page[GFN].own = true;
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_READ, AT, 0, 0), "room");
	settle();
	expect_failure(0, "gfn 0x3 is needed by vCPU 1 at host beta, and it is no memory that vCPUs of several hosts");
	end();

	/* A page of another type is none either. */
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	node[0].xen.page[GFN].state = DSM_XEN_STATE_OTHER;
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_READ, AT, 0, 0), "room");
	settle();
	expect_failure(0, "gfn 0x3 is needed by vCPU 1 at host beta, and it is no memory that vCPUs of several hosts");
	end();

	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	node[0].xen.break_access = -EIO;
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_READ, AT, 0, 0), "room");
	settle();
	expect_failure(0, "Xen does not do ACCESS of vCPU 1");
	end();

	/* Nobody waits for it in Xen. */
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_READ, AT, 0, 0), "room");
	node[1].xen.accesses[1].type = 0;
	settle();
	expect_failure(1, "Xen does not do ACCESSED of vCPU 1");
	end();

	/* Xen's ring. */
	begin_uncached();
	says(1, (struct dsm_vcpu_msg){ .type = DSM_VCPU_ACCESS, .vcpu = 2, .flags = 0x31, .word = { AT } });
	expect_failure(1, "ACCESS of vCPU 2");
	end();
	begin_uncached();
	says(1, (struct dsm_vcpu_msg){ .type = DSM_VCPU_ACCESS, .vcpu = 1, .flags = 0x31,
				       .word = { 15 * DSM_PAGE_BYTES } });
	expect_failure(1, "ACCESS of vCPU 1");
	end();
	begin_uncached();
	says(1, (struct dsm_vcpu_msg){ .type = DSM_VCPU_ACCESS, .vcpu = 1, .flags = 0x31,
				       .word = { 99 * DSM_PAGE_BYTES } });
	expect_failure(1, "ACCESS of vCPU 1");
	end();
	begin_uncached();
	credits = 0;
	says(1, (struct dsm_vcpu_msg){ .type = DSM_VCPU_ACCESS, .vcpu = 1, .flags = 0x31, .word = { AT } });
	says(1, (struct dsm_vcpu_msg){ .type = DSM_VCPU_ACCESS, .vcpu = 1, .flags = 0x31, .word = { AT } });
	expect_failure(1, "ACCESS of vCPU 1");
	end();
}

static void slow_link(const void *argument)
{
	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	credits = 0;
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_WRITE, AT, 0, 5), "room");
	look(1);
	CHECK(!in_channel[1][0] && !dsm_engine_is_quiet(node[1].engine), "it waits for a credit");
	credits = 1;
	dsm_engine_room(node[1].engine, 0);
	CHECK(in_channel[1][0] == 1, "it goes");
	/* Its answer needs one, too. */
	credits = 0;
	deliver(1, 0);
	look(0);
	CHECK(WORD(0) == 5 && !in_channel[0][1] && !dsm_engine_is_quiet(node[0].engine), "made, and not answered");
	CHECK(!dsm_engine_is_quiet(node[1].engine), "and who made it waits");
	/* Nor may the same vCPU have another one. */
	lie(1, 0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_ACCESS, .vcpu = 1, .number = 9, .flags = 0x31,
					 .word = { AT } }, "a second request");
	end();
}

static void lies(const void *argument)
{
	static const struct {
		unsigned int from, to;
		struct dsm_vcpu_msg msg;
		const char *words;
	} told[] = {
		{ 1, 0, { .type = DSM_VCPU_ACCESS, .vcpu = 2, .flags = 0x31, .word = { AT } }, "no vCPU that is there" },
		{ 1, 0, { .type = DSM_VCPU_ACCESS, .vcpu = 99, .flags = 0x31, .word = { AT } }, "no vCPU that is there" },
		{ 1, 2, { .type = DSM_VCPU_ACCESS, .vcpu = 1, .flags = 0x31, .word = { AT } }, "home is another host" },
		{ 1, 0, { .type = DSM_VCPU_ACCESS, .vcpu = 1, .flags = 0x31, .word = { ~7ull } }, "home is another host" },
		{ 1, 0, { .type = DSM_VCPU_ACCESS, .vcpu = 1, .flags = 0x31, .word = { AT + 4 } }, "no instruction makes" },
		{ 1, 0, { .type = DSM_VCPU_ACCESS, .vcpu = 1, .flags = 0x34, .word = { AT } }, "flags" },
		{ 0, 1, { .type = DSM_VCPU_ACCESSED, .vcpu = 1, .number = 1 }, "nobody waits for" },
		{ 0, 1, { .type = DSM_VCPU_ACCESSED, .vcpu = 2, .number = 1 }, "nobody waits for" },
		{ 0, 1, { .type = DSM_VCPU_ACCESSED, .vcpu = 1, .flags = 1, .word = { 1 } }, "no instruction makes" },
	};
	struct dsm_vcpu_msg answer = { .type = DSM_VCPU_ACCESSED, .vcpu = 1 };
	unsigned int i, way;

	(void)argument;
	for (i = 0; i < NR(told); i++) {
		begin_uncached();
		lie(told[i].from, told[i].to, told[i].msg, told[i].words);
		end();
	}
	/* Answers to a question that was asked. */
	for (way = 0; way < 4; way++) {
		begin_uncached();
		node[0].xen.page[GFN].special = true;
		CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
		credits = way == 3 ? 0 : 16;
		CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_WRITE, AT, 0, 5), "room");
		look(1);
		answer.number = node[1].xen.accesses[1].number + (way == 1);
		answer.word[0] = way == 2;
		lie(way == 0 ? 2 : 0, 1, answer, way == 2 ? "no instruction makes" : "nobody waits for");
		end();
	}
	/* One that has been answered. */
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	makes(1, 1, DSM_ACCESS_WRITE, 0, 5);
	lie(0, 1, node[1].xen.accessed[1], "nobody waits for");
	end();
	/* It stays, says the home, to who has a copy of it; and unasked. */
	for (way = 0; way < 2; way++) {
		struct dsm_msg stay = { .type = DSM_NACK, .reason = DSM_R_STAYS, .epoch = 7, .txn = 1, .gfn = GFN };

		begin_uncached();
		CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_DONE, "a copy");
		if (!way)
			played_use(&node[1].xen, 1, GFN, DSM_XEN_WANT_M, 1);
		look(1);
		CHECK(next_type(1, 0) == (way ? 0 : DSM_GETM), "it asks");
		dsm_engine_message(node[1].engine, 0, &stay, NULL);
		expect_failure(1, "host alpha is lost (it breaks the protocol: NACK of gfn 0x3");
		end();
	}
	/* A page that is not one that stays: it is not made, and nobody fails. */
	begin_uncached();
	WORD(0) = 1;
	lie(1, 0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_ACCESS, .vcpu = 1, .number = 1, .flags = 0x32,
					 .word = { AT, 0, 2 } }, NULL);
	CHECK(WORD(0) == 1 && !node[0].xen.made, "not made");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "elsewhere");
	lie(1, 0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_ACCESS, .vcpu = 1, .number = 2, .flags = 0x32,
					 .word = { AT, 0, 2 } }, NULL);
	CHECK(!node[0].xen.made, "not made");
	end();
	/* Nor before all are ready. */
	begin_uncached();
	dsm_engine_hold_vcpus(node[0].engine, true);
	lie(1, 0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_ACCESS, .vcpu = 1, .flags = 0x31, .word = { AT } },
	    "not in this state");
	end();
}

/* The guest is to stand still while an access is away. */
static void while_it_stops(const void *argument)
{
	static const uint16_t one[] = { 1 }, two[] = { 2 };
	char text[DSM_ENGINE_TEXT];
	unsigned int i;

	(void)argument;
	class_u = true;
	begin_placed(1, 2, 0);
	CHECK(dsm_engine_place(node[0].engine, 1, one, 1, text) == -EINPROGRESS, "%s", text);
	settle();
	CHECK(node[0].placed == 1 && !node[0].error[0], "placed: %s", node[0].error);
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_WRITE, AT, 0, 5), "room");
	look(1);
	/* It is on its way; STOP comes to host 1 before its answer. */
	CHECK(dsm_engine_place(node[0].engine, 2, two, 1, text) == -EINPROGRESS, "%s", text);
	for (i = 0; i < 20; i++) {
		look(0);
		look(1);
		look(2);
		while (deliver(0, 1) || deliver(0, 2) || deliver(2, 0) || deliver(2, 1) || deliver(1, 2))
			;
	}
	CHECK(node[0].placed == 1 && node[1].xen.accesses[1].type, "it waits for it");
	/* All is quiet but for the answer, which has no credit. */
	credits = 0;
	for (i = 0; i < 100; i++) {
		look(i % HOSTS);
		deliver(i / 3 % HOSTS, i % HOSTS);
	}
	CHECK(node[0].placed == 1 && node[1].xen.accesses[1].type && WORD(0) == 5, "it waits for the answer: %s",
	      node[0].error);
	credits = 16;
	dsm_engine_room(node[0].engine, 1);
	settle();
	CHECK(!node[1].xen.accesses[1].type && WORD(0) == 5, "it is answered though the guest stands still");
	CHECK(node[0].placed == 2 && !node[0].error[0], "placed: %s", node[0].error);
	/* One that comes into the ring meanwhile waits, and goes then. */
	CHECK(makes(1, 1, DSM_ACCESS_READ, 0, 0) == 5, "afterwards");
	nobody_fails("stop");
	end();
}

/* It waits for room in the ring while the guest is to stand still. */
static void stops_with_a_full_ring(const void *argument)
{
	static const uint16_t one[] = { 1 }, two[] = { 2 };
	char text[DSM_ENGINE_TEXT];
	unsigned int i;

	(void)argument;
	class_u = true;
	begin_placed(1, 2, 0);
	CHECK(dsm_engine_place(node[0].engine, 1, one, 1, text) == -EINPROGRESS, "%s", text);
	settle();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	for (i = 0; i < 2 * PAGES && node[1].xen.in_ring < node[1].xen.ring_size; i++)
		played_use(&node[1].xen, NO_VCPU, i / 2, i % 2 ? DSM_XEN_WANT_M : DSM_XEN_WANT_S, 0);
	CHECK(!played_access(&node[1].xen, 1, DSM_ACCESS_WRITE, AT, 0, 5), "no room");
	CHECK(dsm_engine_place(node[0].engine, 2, two, 1, text) == -EINPROGRESS, "%s", text);
	settle();
	CHECK(node[0].placed == 2 && !node[0].error[0], "placed: %s", node[0].error);
	CHECK(!node[1].xen.accesses[1].type && WORD(0) == 5, "it was made before");
	for (i = 0; i < 20; i++) {
		pass(MS);
		settle();
	}
	nobody_fails("a full ring");
	end();
}

/* The parts of a word. */
static void widths(const void *argument)
{
	static const struct {
		unsigned int flags, at;
		uint64_t value, found, after;
	} made[] = {
		{ 0x02, 9, 0xab, 0, 0x112233445566ab88 },
		{ 0x11, 10, 0, 0x5566, 0x112233445566ab88 },
		{ 0x12, 14, 0xcdef, 0, 0xcdef33445566ab88 },
		{ 0x22, 8, 0x12345678, 0, 0xcdef334412345678 },
		{ 0x21, 12, 0, 0xcdef3344, 0xcdef334412345678 },
	};
	unsigned int i;

	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	WORD(0) = 0x1122334455667788;
	for (i = 0; i < NR(made); i++) {
		struct dsm_vcpu_msg m = {
			.type = DSM_VCPU_ACCESS, .vcpu = 1, .flags = (uint8_t)made[i].flags, .number = 100 + i,
			.word = { GFN * DSM_PAGE_BYTES + made[i].at, 0, made[i].value },
		};

		node[1].xen.accesses[1] = m;
		says(1, m);
		settle();
		CHECK(node[1].xen.accessed[1].number == 100 + i && !node[1].xen.accessed[1].flags, "%u: made", i);
		CHECK(node[1].xen.accessed[1].word[0] == made[i].found, "%u: found %llx", i,
		      (unsigned long long)node[1].xen.accessed[1].word[0]);
		CHECK(WORD(0) == made[i].after, "%u: %llx", i, (unsigned long long)WORD(0));
	}
	nobody_fails("widths");
	end();
}

/* What was no plain memory is, and nobody has used it meanwhile. */
static void plain_again(const void *argument)
{
	unsigned int tries, i;

	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "for both");
	node[0].xen.page[GFN].special = false;
	/* Code that is no access needs it, a moment later. */
	played_need(&node[1].xen, 1, GFN, 0xabc);
	settle();
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_M, "it comes: %s", node[1].failure);
	CHECK(played_access(&node[2].xen, 2, DSM_ACCESS_READ, AT, 0, 0), "room");
	settle();
	CHECK(node[2].xen.accessed[2].flags == DSM_ACCESS_AGAIN, "not there");
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_DONE, "it comes");
	nobody_fails("plain again");
	end();

	/* It is, and somebody has it for a moment: that is waited for, as of any page. */
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	node[0].xen.page[GFN].special = false;
	node[0].xen.page[GFN].pinned = true;
	pass(1000 * MS);
	played_use(&node[2].xen, 2, GFN, DSM_XEN_WANT_M, 1);
	settle();
	CHECK(node[2].xen.vcpu[2].waits && node[2].xen.page[GFN].state == DSM_XEN_STATE_I, "it waits");
	makes(1, 1, DSM_ACCESS_WRITE, 0, 5);
	node[0].xen.page[GFN].pinned = false;
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_M) == PLAYED_DONE && WORD(2) == 5, "it comes, with what was made meanwhile");
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_READ, AT, 0, 0), "room");
	settle();
	CHECK(node[1].xen.accessed[1].flags == DSM_ACCESS_AGAIN, "not there");
	nobody_fails("plain again, and in use");
	end();

	/* It is none still: Xen is asked for each who asks, however soon, and the VM ends then as before. */
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	tries = node[0].xen.refused[EPERM];
	CHECK(use(2, 2, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "for both");
	CHECK(node[0].xen.refused[EPERM] == tries + 1, "%u tries for both", node[0].xen.refused[EPERM] - tries);
	for (i = 0; i < 10 && !node[1].failure[0]; i++) {
		if (!node[1].xen.vcpu[1].waits)
			played_need(&node[1].xen, 1, GFN, 0xabc);
		settle();
		/* It may take longer to ask again. */
		pass(10 * MS);
	}
	CHECK(node[0].xen.refused[EPERM] == tries + 2, "once: %u", node[0].xen.refused[EPERM] - tries);
	expect_failure(1, "gfn 0x3 is needed here by vCPU 1 at RIP 0xabc for what can't be done elsewhere");
	end();
}

/* All add to one word, each with its own kind of access, and ask for it all the time. */
static void chance(const void *argument)
{
	unsigned int round, sum = 0, done[HOSTS] = { 0 };
	bool on = true;

	dice_begin();
	rings = argument;
	begin_uncached();
	credits = 2;
	node[0].xen.page[GFN].pinned = true;
	for (round = 0; round < 20000; round++) {
		unsigned int h = dice_below(HOSTS), v = h;
		struct played_xen *x = &node[h].xen;
		struct played_page *page = &x->page[GFN];

		if (!dice_below(2000))
			node[0].xen.page[GFN].pinned = on = !on;
		if (dice_below(3)) {
			unsigned int from = dice_below(HOSTS), to = dice_below(HOSTS);

			look(from);
			deliver(from, to);
			if (!dice_below(8))
				pass(MS / 16);
			continue;
		}
		if (x->vcpu[v].waits || x->accesses[v].type)
			continue;
		if (h && x->accessed[v].type) {
			const struct dsm_vcpu_msg *a = &x->accessed[v];

			/* The exchange of before: has it worked? */
			if (!(a->flags & DSM_ACCESS_AGAIN) && x->asks[v].number == a->word[0] && x->asks[v].op) {
				sum++;
				done[h]++;
			}
			x->asks[v].number = a->word[0];
			x->asks[v].op = 0;
			if (a->flags & DSM_ACCESS_AGAIN)
				x->asks[v].number = 0;
			x->accessed[v].type = 0;
		}
		switch (played_use(x, v, GFN, DSM_XEN_WANT_M, round)) {
		case PLAYED_DONE:
			page->word[1]++;
			sum++;
			done[h]++;
			break;
		case PLAYED_ACCESS:
			played_access(x, v, DSM_ACCESS_CMPXCHG, AT, x->asks[v].number, x->asks[v].number + 1);
			x->asks[v].op = 1;
			break;
		default:
			break;
		}
		x->asks[v].type = 0;
	}
	node[0].xen.page[GFN].pinned = false;
	credits = 16;
	for (round = 0; round < HOSTS; round++)
		for (unsigned int k = 0; k < HOSTS; k++)
			if (k != round)
				dsm_engine_room(node[round].engine, k);
	settle();
	for (round = 1; round < HOSTS; round++) {
		const struct dsm_vcpu_msg *a = &node[round].xen.accessed[round];

		if (a->type && !(a->flags & DSM_ACCESS_AGAIN) && node[round].xen.asks[round].op &&
		    node[round].xen.asks[round].number == a->word[0])
			sum++;
		node[round].xen.accessed[round].type = 0;
	}
	CHECK(use(0, 0, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "at home");
	CHECK(WORD(0) == sum, "%llu of %u", (unsigned long long)WORD(0), sum);
	CHECK(done[0] > 20 && done[1] > 20 && done[2] > 20 && node[0].xen.made > 100, "%u %u %u, %u made", done[0],
	      done[1], done[2], node[0].xen.made);
	/* Who has waited for the page gives it up in time. */
	for (round = 0; round < 40; round++) {
		pass(MS / 4);
		settle();
	}
	nobody_fails("chance");
	end();
	rings = false;
}

/*
 * Host 2 only lends memory: it has not heard where vCPUs run, and nobody has told it that
 * host 1 has any by now.
 */
static void lender(const void *argument)
{
	static const uint16_t one[] = { 1 };
	char text[DSM_ENGINE_TEXT];
	unsigned int i, way;

	(void)argument;
	for (way = 0; way < 2; way++) {
		class_u = true;
		begin_placed(1, 1, 1);
		unbind(2);
		part(0, 2);
		part(1, 2);
		begin_alone(2);
		for (i = 0; i < 2; i++) {
			CHECK(!dsm_engine_peer_up(node[i].engine, 2, 9), "up");
			CHECK(!dsm_engine_peer_up(node[2].engine, i, 9), "up");
			dsm_engine_takes_access(node[i].engine, 2, true);
			dsm_engine_takes_access(node[2].engine, i, true);
		}
		CHECK(dsm_engine_place(node[0].engine, 1, one, 1, text) == -EINPROGRESS, "%s", text);
		settle();
		CHECK(node[0].placed == 1 && !node[0].error[0], "placed: %s", node[0].error);
		node[2].xen.page[25].pinned = !way;
		node[2].xen.page[25].special = way;
		CHECK(use(1, 1, 25, DSM_XEN_WANT_M) == PLAYED_MISS, "it waits");
		CHECK(node[1].xen.page[25].state == DSM_XEN_STATE_I, "it is not used there");
		CHECK(!node[2].failure[0], "%s", node[2].failure);
		if (way) {
			expect_failure(1, "it can't leave gamma: it is in use there for ever");
		} else {
			node[2].xen.page[25].pinned = false;
			CHECK(use(1, 1, 25, DSM_XEN_WANT_M) == PLAYED_DONE, "it comes");
			nobody_fails("lender");
		}
		end();
	}
	/* It has joined, and no vCPU runs at who asks, for all that it knows: its page may be. */
	class_u = true;
	begin_placed(1, 2, 0);
	node[2].xen.page[25].pinned = true;
	for (i = 0; i < 20; i++) {
		played_use(&node[1].xen, NO_VCPU, 25, DSM_XEN_WANT_M, 0);
		settle();
		pass(MS / 4);
	}
	CHECK(node[1].xen.page[25].state == DSM_XEN_STATE_I, "a tool does not use it there");
	nobody_fails("no vCPU");
	end();
}

/* Xen has no memory to have a page used at its home. */
static void no_memory(const void *argument)
{
	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	node[1].xen.nomem_uncaches = 5;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "later: %s", node[1].failure);
	CHECK(!node[1].xen.nomem_uncaches && node[1].warnings == 1, "once: %u", node[1].warnings);
	CHECK(counts_of(1).uncached == 1, "counted");
	makes(1, 1, DSM_ACCESS_WRITE, 0, 5);
	nobody_fails("no memory");
	end();
}

/* Who is asked for an access and says nothing. */
static void silent(const void *argument)
{
	static const uint16_t one[] = { 1 };
	char text[DSM_ENGINE_TEXT];
	unsigned int queued;

	(void)argument;
	answer_ns = 1000 * MS;
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	/* One that has not gone is owed by nobody. */
	credits = 0;
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_READ, AT, 0, 0), "room");
	look(1);
	CHECK(!dsm_engine_is_asking(node[1].engine), "nobody is asked");
	pass(5000 * MS);
	CHECK(!node[1].failure[0], "%s", node[1].failure);
	credits = 16;
	dsm_engine_room(node[1].engine, 0);
	CHECK(next_type(1, 0) == DSM_VCPU_ACCESS, "it has gone");
	CHECK(dsm_engine_is_asking(node[1].engine), "an answer is waited for");
	lose_channel(1, 0);
	pass(1999 * MS);
	CHECK(!node[1].failure[0] && dsm_engine_next(node[1].engine) <= clock_ns + MS, "in time");
	/* And is not, then. */
	pass(MS);
	expect_failure(1, "host alpha is lost (it does not answer ACCESS of vCPU 1 to gfn 0x3 for 2000 ms)");
	end();
	/* Each has its own time, and an answer ends it. */
	begin_uncached();
	node[0].xen.page[GFN].special = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
	makes(1, 1, DSM_ACCESS_READ, 0, 0);
	CHECK(!dsm_engine_is_asking(node[1].engine), "answered");
	pass(5000 * MS);
	settle();
	CHECK(!node[1].failure[0], "%s", node[1].failure);
	end();
	answer_ns = 0;
	/* Who is asked and leaves does not leave. */
	begin_uncached();
	node[2].xen.page[25].pinned = true;
	CHECK(use(1, 1, 25, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	CHECK(!dsm_engine_shared_with(node[1].engine, 2), "nothing is under way");
	CHECK(!dsm_engine_shares_with(node[1].engine, 2), "nothing is under way");
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_WRITE, 25 * DSM_PAGE_BYTES, 0, 5), "room");
	look(1);
	CHECK(dsm_engine_shared_with(node[1].engine, 2) == 1, "an access is");
	CHECK(dsm_engine_shares_with(node[1].engine, 2), "an access is");
	CHECK(!dsm_engine_shared_with(node[1].engine, 0), "there");
	end();
	/* Nor before it has gone: its vCPU would wait for ever. */
	begin_uncached();
	node[2].xen.page[25].pinned = true;
	CHECK(use(1, 1, 25, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	credits = 0;
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_WRITE, 25 * DSM_PAGE_BYTES, 0, 5), "room");
	look(1);
	CHECK(!in_channel[1][2], "it waits for a credit");
	CHECK(dsm_engine_shared_with(node[1].engine, 2) == 1, "an access that waits is shared");
	CHECK(dsm_engine_shares_with(node[1].engine, 2), "an access that waits is shared");
	CHECK(!dsm_engine_shared_with(node[1].engine, 0), "there");
	credits = 16;
	dsm_engine_room(node[1].engine, 2);
	settle();
	CHECK(!dsm_engine_shared_with(node[1].engine, 2), "it is over");
	CHECK(!dsm_engine_shares_with(node[1].engine, 2), "it is over");
	end();
	for (queued = 0; queued < 2; queued++) {
		class_u = true;
		begin_placed(1, 2, 0);
		CHECK(dsm_engine_place(node[0].engine, 1, one, 1, text) == -EINPROGRESS, "%s", text);
		settle();
		node[2].xen.page[25].special = true;
		CHECK(use(1, 1, 25, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
		credits = queued ? 0 : 16;
		CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_WRITE, 25 * DSM_PAGE_BYTES, 0, 5), "room");
		look(1);
		dsm_engine_open_range(node[1].engine, 2, 0);
		dsm_engine_range_done(node[1].engine, 2);
		unbind(2);
		dsm_engine_peer_down(node[1].engine, 2, true, "it leaves");
		expect_failure(1, "host gamma is lost (it leaves)");
		credits = 16;
		end();
	}
}

/* The range of a page that stays is closed, and comes again. */
static void closing(const void *argument)
{
	unsigned int i, way;

	(void)argument;
	for (way = 0; way < 2; way++) {
		begin_uncached();
		node[2].xen.page[25].special = way == 0;
		node[2].xen.page[25].pinned = way == 1;
		CHECK(use(1, 1, 25, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
		/* The guest frees it. */
		node[2].xen.page[25].special = false;
		node[2].xen.page[25].pinned = false;
		for (i = 1; i < HOSTS; i++)
			dsm_engine_open_range(node[i].engine, 2, 3);
		for (i = 0; i < 20; i++) {
			pass(MS);
			settle();
		}
		CHECK(!dsm_engine_range(node[1].engine, 2)->left, "elsewhere");
		CHECK(!dsm_engine_range(node[2].engine, 2)->left, "at home");
		/* DROP_RANGE, and EMPTY. */
		node[1].xen.page[25].state = DSM_XEN_STATE_HOLE;
		node[2].xen.page[25].state = DSM_XEN_STATE_HOLE;
		for (i = 1; i < HOSTS; i++)
			dsm_engine_range_done(node[i].engine, 2);
		CHECK(!counts_of(1).pages && !counts_of(2).pages, "nothing is known of it: %llu, %llu",
		      (unsigned long long)counts_of(1).pages, (unsigned long long)counts_of(2).pages);
		/* Memory comes, and who does not know accesses asks. */
		node[1].xen.page[25].state = DSM_XEN_STATE_I;
		node[2].xen.page[25].state = DSM_XEN_STATE_M;
		for (i = 1; i < HOSTS; i++) {
			dsm_engine_set_class_u(node[i].engine, false);
			dsm_engine_open_range(node[i].engine, 2, 10);
			dsm_engine_range_done(node[i].engine, 2);
		}
		/* What is private to its home would end the VM. */
		played_use(&node[1].xen, 1, 25, DSM_XEN_WANT_M, 1);
		settle();
		CHECK(node[1].xen.page[25].state == DSM_XEN_STATE_M, "in state %u: %s", node[1].xen.page[25].state,
		      node[1].failure);
		nobody_fails("closed");
		end();
	}
	/* What is in front of the end goes on as it is. */
	begin_uncached();
	node[2].xen.page[21].special = true;
	CHECK(use(1, 1, 21, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	for (i = 1; i < HOSTS; i++) {
		dsm_engine_open_range(node[i].engine, 2, 3);
		dsm_engine_range_done(node[i].engine, 2);
	}
	CHECK(played_access(&node[1].xen, 1, DSM_ACCESS_WRITE, 21 * DSM_PAGE_BYTES, 0, 5), "room");
	settle();
	CHECK(node[2].xen.page[21].word[0] == 5, "used there");
	nobody_fails("not closed");
	end();
}

/* Class U is switched off, and somebody needs a page that is used at its home. */
static void off_meanwhile(const void *argument)
{
	(void)argument;
	begin_uncached();
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	node[0].xen.page[GFN].pinned = false;
	dsm_engine_set_class_u(node[1].engine, false);
	played_need(&node[1].xen, 1, GFN, 0xabc);
	look(1);
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_I && !node[1].xen.vcpu[1].waits, "it looks again");
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_DONE, "it comes");
	nobody_fails("off meanwhile");
	end();

	/* The home tells nobody, and who asks says so. */
	begin_uncached();
	dsm_engine_set_class_u(node[1].engine, false);
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_MISS, "it waits");
	CHECK(node[1].warnings, "in use for too long, there");
	end();
}

/* What a home has looked at once more, or found to be a hole, is forgotten when nothing is left of it. */
static void looked_at_and_forgotten(const void *argument)
{
	unsigned int i, k, is_on;

	(void)argument;
	/* In use, and nobody can use it there: an ordinary page. */
	begin();
	settle();
	node[0].xen.page[GFN].special = true;
	for (k = 0; k < 2; k++) {
		CHECK(played_use(&node[1].xen, NO_VCPU, GFN, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "look");
		for (i = 0; i < (k ? 100 : 4); i++) {
			settle();
			pass(MS / 10);
		}
		CHECK(node[1].xen.page[GFN].foreign_hole == !k, "%u: told", k);
		node[1].xen.page[GFN].foreign_hole = false;
		node[0].xen.page[GFN].special = false;
		node[0].xen.page[GFN].pinned = true;
	}
	CHECK(!counts_of(0).pages, "%u pages are known at its home", (unsigned int)counts_of(0).pages);
	end();

	for (is_on = 0; is_on < 2; is_on++) {
		if (is_on)
			begin_uncached();
		else
			begin();
		settle();
		node[0].xen.page[GFN].special = true;
		if (is_on)
			CHECK(use(1, 1, GFN, DSM_XEN_WANT_S) == PLAYED_ACCESS, "it stays");
		else
			CHECK(played_use(&node[1].xen, NO_VCPU, GFN, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "look");
		for (i = 0; i < 4; i++) {
			settle();
			pass(MS / 10);
		}
		CHECK(is_on || node[1].xen.page[GFN].foreign_hole, "%u: told", is_on);
		node[0].xen.page[GFN].special = false;
		CHECK(played_guest_frees(&node[0].xen, GFN), "%u: freed", is_on);
		played_use(&node[2].xen, 2, GFN, DSM_XEN_WANT_S, 1);
		for (i = 0; i < 4; i++) {
			settle();
			pass(MS / 10);
		}
		CHECK(node[2].xen.vcpu[2].at_hole, "%u: finds it: %s", is_on, node[2].failure);
		pass(1000 * MS);
		settle();
		CHECK(!counts_of(0).pages, "%u: %u pages are known at its home", is_on,
		      (unsigned int)counts_of(0).pages);
		end();
	}
}

/* A ring that is let go leaves for who needs it. */
static void ring_let_go(const void *argument)
{
	(void)argument;
	rings = true;
	begin_uncached();
	node[0].xen.page[GFN].pinned = true;
	CHECK(use(1, 1, GFN, DSM_XEN_WANT_M) == PLAYED_ACCESS, "it stays");
	node[0].xen.page[GFN].pinned = false;
	played_need(&node[1].xen, 1, GFN, 0xabc);
	settle();
	CHECK(node[1].xen.page[GFN].state == DSM_XEN_STATE_M, "it comes: %s", node[1].failure);
	end();
	rings = false;
}

static const struct test_case cases[] = {
	{ "uncached: a grant table", special, NULL },
	{ "uncached: another home", of_another_home, NULL },
	{ "uncached: in use", in_use, NULL },
	{ "uncached: copies", shared, NULL },
	{ "uncached: free again", free_again, NULL },
	{ "uncached: needed here", needed, NULL },
	{ "uncached: a miss of before", stale_miss, NULL },
	{ "uncached: off", off, NULL },
	{ "uncached: a ring", of_a_ring, NULL },
	{ "uncached: a hole", a_hole, NULL },
	{ "uncached: errors", errors, NULL },
	{ "uncached: a slow link", slow_link, NULL },
	{ "uncached: lies", lies, NULL },
	{ "uncached: while the guest stops", while_it_stops, NULL },
	{ "uncached: chance", chance, NULL },
	{ "uncached: chance, a ring", chance, "" },
	{ "uncached: a ring for two", ring_for_two, NULL },
	{ "uncached: two slow links", two_slow_links, NULL },
	{ "uncached: not freed", not_freed, NULL },
	{ "uncached: tried once more", tried_for, NULL },
	{ "uncached: no plain memory any more", special_and_shared, NULL },
	{ "uncached: a lender", lender, NULL },
	{ "uncached: no memory", no_memory, NULL },
	{ "uncached: no answer", silent, NULL },
	{ "uncached: a range that closes", closing, NULL },
	{ "uncached: off meanwhile", off_meanwhile, NULL },
	{ "uncached: looked at and forgotten", looked_at_and_forgotten, NULL },
	{ "uncached: a ring that is let go", ring_let_go, NULL },
	{ "uncached: stops with a full ring", stops_with_a_full_ring, NULL },
	{ "uncached: widths", widths, NULL },
	{ "uncached: plain again", plain_again, NULL },
	{ "uncached: ended in Xen", not_uncached, NULL },
	{ "uncached: after a hole", after_a_hole, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, NR(cases));
}
