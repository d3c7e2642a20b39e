// SPDX-License-Identifier: GPL-2.0
/*
 * xenstore as the driver reads and writes it: store.c as it is, over a table of
 * keys, in which anybody may have written anything.
 */
#include <malloc.h>

#include "case.h"
#include "elastic.h"
#include "fake_xenstore.h"

static struct elastic_node both[2] = {
	{ .vnode = 1, .nid = 1, .usable = true },
	{ .vnode = 2, .nid = 2 },
};
static struct elastic_node *const node = &both[0];
struct elastic_node *elastic_nodes = both;
unsigned int elastic_nr_nodes = 2;
struct cpumask cpus_possible = { { 0x3f } };
const char * const elastic_phase_names[ELASTIC_NR_PHASES] = {
	"populate", "add", "online", "notify", "acks", "cpus", "evacuate",
	"offline", "release", "node",
};

static char said[400];
static int why;		/* an operation has failed */

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

void fail(const char *format, ...) { exit(1); }

int elastic_node_error(struct elastic_node *unused, int err, const char *format,
		       ...)
{
	va_list args;

	va_start(args, format);
	why = err;
	snprintf(said, sizeof(said), "error: ");
	vsnprintf(said + strlen(said), sizeof(said) - strlen(said), format, args);
	va_end(args);
	return err;
}

static void boot(void)
{
	CHECK(!elastic_range_init(&node->range, 4ULL << 30, 1ULL << 30,
				  128ULL << 20, ELASTIC_EXTENT_BYTES), "range");
	both[1].cpus.bits[0] = 0x30;
	set("vnuma/node/1/elastic", "1");
	set("vnuma/node/1/start", "100000000");
	set("vnuma/node/1/max-kb", "1048576");
	set("vnuma/node/1/target-kb", "4096");
	set("vnuma/node/1/cpus", "2-3");
}

/* ---- What the toolstack says at creation ---- */

struct key_case {
	const char *name, *key, *text;
	int rc;
};

static const struct key_case at_creation[] = {
	{ "store: as SRAT says", "elastic", "1", 0 },
	{ "store: not elastic", "elastic", "0", -ENODEV },
	{ "store: elastic in another way", "elastic", "2", -ENODEV },
	{ "store: unknown", "elastic", NULL, -ENOENT },
	{ "store: elastic?", "elastic", "yes", -EINVAL },
	{ "store: start is hexadecimal", "start", "4294967296", -EINVAL },
	{ "store: another start", "start", "108000000", -EINVAL },
	{ "store: no start", "start", NULL, -ENOENT },
	{ "store: another size", "max-kb", "1048574", -EINVAL },
	{ "store: no number", "max-kb", "-1", -EINVAL },
	{ "store: too large a number", "max-kb", "99999999999999999999", -ERANGE },
};

static void one_creation(const void *argument)
{
	const struct key_case *c = argument;
	int rc;

	boot();
	set(path_of("vnuma/node/1", c->key), c->text);
	rc = elastic_store_node(node);
	CHECK(rc == c->rc, "%d: %s", rc, said);
}

/* ---- What it asks ---- */

static const struct key_case questions[] = {
	{ "ask: as it is", "grace-ms", NULL, 0 },
	{ "ask: nothing", "target-kb", "0", 0 },
	{ "ask: all", "target-kb", "1048576", 0 },
	{ "ask: more than all", "target-kb", "1050624", -ERANGE },
	{ "ask: half an extent", "target-kb", "1024", -EINVAL },
	{ "ask: no number", "target-kb", "4096 ", -EINVAL },
	{ "ask: no target", "target-kb", NULL, -ENOENT },
	{ "ask: no CPUs", "cpus", NULL, 0 },
	{ "ask: the boot CPU", "cpus", "0,2", -ERANGE },
	{ "ask: a CPU of another node", "cpus", "3-4", -EEXIST },
	{ "ask: a CPU that cannot be", "cpus", "6", -ERANGE },
	{ "ask: a CPU beyond all", "cpus", "4096", -ERANGE },
	{ "ask: CPUs in words", "cpus", "all", -EINVAL },
};

static void one_request(const void *argument)
{
	const struct key_case *c = argument;
	bool cpus = !strcmp(c->key, "cpus");

	boot();
	node->target = 77;
	node->cpus.bits[0] = 0x2;
	set(path_of("vnuma/node/1", c->key), c->text);
	elastic_store_request(node);
	CHECK(node->bad_target == (c->rc < 0) && why == c->rc, "%d: %s", why, said);
	if (c->rc) {
		CHECK(node->target == 77 && node->cpus.bits[0] == 0x2,
		      "%u extents, CPUs %#lx", node->target, node->cpus.bits[0]);
		return;
	}
	CHECK(node->target == atoi(get("vnuma/node/1/target-kb")) / 2048,
	      "%u extents", node->target);
	CHECK(node->cpus.bits[0] == (cpus ? 0 : node->target ? 0xc : 0x2),
	      "CPUs %#lx", node->cpus.bits[0]);
}

static void cpus_of_a_node_that_is_there(const void *argument)
{
	boot();
	elastic_store_request(node);
	node->state = ELASTIC_ONLINE;
	set("vnuma/node/1/cpus", "1");
	elastic_store_request(node);
	CHECK(!node->bad_target && node->cpus.bits[0] == 0xc, "CPUs %#lx",
	      node->cpus.bits[0]);
}

/* That they are not told is no CPUs, that xenstored cannot say them is no answer. */
static void cpus_that_cannot_be_read(const void *argument)
{
	boot();
	node->cpus.bits[0] = 0x2;
	unreadable = "cpus";
	elastic_store_request(node);
	CHECK(node->bad_target && node->cpus.bits[0] == 0x2, "CPUs %#lx", node->cpus.bits[0]);
	/* The toolstack must not hear of an operation that has failed for no reason. */
	CHECK(!strcmp(said, "error: vnuma/node/1/cpus cannot be read"), "'%s'", said);
	unreadable = NULL;
	elastic_store_request(node);
	CHECK(!node->bad_target && node->cpus.bits[0] == 0xc, "CPUs %#lx", node->cpus.bits[0]);
	/* Once more: they are its own. */
	elastic_store_request(node);
	CHECK(!node->bad_target && node->cpus.bits[0] == 0xc, "CPUs %#lx: %s", node->cpus.bits[0], said);
}

/* What xenstored does not say is no nonsense of the toolstack's. */
static void target_that_cannot_be_read(const void *argument)
{
	static const char unread[] = "error: vnuma/node/1/target-kb cannot be read";
	static const char nonsense[] = "error: vnuma/node/1/target-kb is no multiple of 2048 in 0..1048576";
	static const struct { const char *unreadable, *text, *says; } cases[] = {
		{ "target-kb", "4096", unread }, { NULL, NULL, unread },
		{ NULL, "1024", nonsense }, { NULL, "much", nonsense }, { NULL, "1050624", nonsense },
	};
	unsigned int i;

	boot();
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		unreadable = cases[i].unreadable;
		set("vnuma/node/1/target-kb", cases[i].text);
		elastic_store_request(node);
		CHECK(node->bad_target && !strcmp(said, cases[i].says), "%u: '%s'", i, said);
	}
}

/* A block of 2 GiB has 32 MiB of struct pages. */
static void less_than_struct_pages(const void *argument)
{
	boot();
	CHECK(!elastic_range_init(&node->range, 4ULL << 30, 8ULL << 30, 2ULL << 30,
				  16 * ELASTIC_EXTENT_BYTES), "range");
	set("vnuma/node/1/target-kb", "2099200");
	elastic_store_request(node);
	CHECK(node->bad_target && why == -EDOM, "%d", why);
	CHECK(!strcmp(said, "error: of 2099200 KiB the last block, of 2097152, would have less than its 32768 KiB of struct pages: ask for less, or more"),
	      "'%s'", said);
	set("vnuma/node/1/target-kb", "2129920");
	elastic_store_request(node);
	CHECK(!node->bad_target && node->target == 1040, "'%s'", said);
}

static void grace(const void *argument)
{
	static const struct { const char *text; unsigned int ms; } cases[] = {
		{ NULL, ELASTIC_GRACE_MS }, { "0", 0 }, { "123", 123 },
		{ "600001", 600000 }, { "4294967297", 600000 },
		{ "soon", ELASTIC_GRACE_MS },
	};
	unsigned int i;

	boot();
	/* Of a node that is absent nothing can be removed: it is not even asked for. */
	set("vnuma/node/1/grace-ms", "123");
	elastic_store_request(node);
	CHECK(!strstr(asked, "grace-ms") && node->grace_ms == ELASTIC_GRACE_MS, "%s", asked);
	node->state = ELASTIC_ONLINE;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		set("vnuma/node/1/grace-ms", cases[i].text);
		elastic_store_request(node);
		CHECK(node->grace_ms == cases[i].ms && !node->bad_target,
		      "'%s': %u ms", cases[i].text, node->grace_ms);
	}
}

/* Of all nodes in one row, and only what is ours. */
static void all_at_once(const void *argument)
{
	u64 generation = 0;
	size_t before = 0;
	unsigned int at;

	boot();
	set("vnuma/generation", "17");
	CHECK(!elastic_store_requests(&generation) && generation == 17, "%llu", generation);
	CHECK(node->target == 2 && node->cpus.bits[0] == 0xc, "%u extents", node->target);
	CHECK(!strcmp(asked, "read generation, read target-kb, read cpus, read generation\n"),
	      "%s", asked);
	set("vnuma/generation", "eight");
	/* The first has what the others use again. */
	for (at = 0; at < 10; at++) {
		CHECK(elastic_store_requests(&generation) == -EINVAL && generation == 17, "a generation in words");
		CHECK(!strcmp(said, "vnuma/generation: 'eight' is not a number\n"), "'%s'", said);
		before = at ? before : mallinfo2().uordblks;
	}
	CHECK(mallinfo2().uordblks == before, "%zu bytes are left", mallinfo2().uordblks - before);
	set("vnuma/generation", NULL);
	CHECK(elastic_store_requests(&generation) == -ENOENT && generation == 17, "none at all");
}

static void another_operation(void)
{
	set("vnuma/generation", "8");
	set("vnuma/node/1/target-kb", "0");
}

/* Another operation is announced in the midst of the row: nothing of it counts. */
static void mixture(const void *argument)
{
	u64 generation = 0;
	unsigned int at;

	for (at = 1; at <= 4; at++) {
		boot();
		node->target = 77;
		set("vnuma/generation", "7");
		happens_at = at;
		happens = another_operation;
		if (at == 1) {
			CHECK(!elastic_store_requests(&generation) && generation == 8 && !node->target,
			      "generation %llu, %u extents", generation, node->target);
			continue;
		}
		CHECK(elastic_store_requests(&generation) == -EAGAIN, "request %u", at);
		CHECK(node->target == 77 && !said[0], "%u extents: %s", node->target, said);
	}
}

/* Of a node that is not taken at its target the other texts are free, too. */
static void nothing_is_left(const void *argument)
{
	size_t before = 0;
	unsigned int at;

	boot();
	set("vnuma/node/1/target-kb", "1024");
	set("vnuma/node/1/grace-ms", "a text that is no number");
	/* The first two have what the others use again. */
	for (at = 0; at < 10; at++) {
		/* Of one that is absent its CPUs are asked for, of another one the grace period. */
		node->state = at % 2 ? ELASTIC_ONLINE : ELASTIC_OFFLINE;
		elastic_store_request(node);
		CHECK(node->bad_target, "half an extent");
		before = at > 1 ? before : mallinfo2().uordblks;
	}
	CHECK(mallinfo2().uordblks == before, "%zu bytes are left", mallinfo2().uordblks - before);
}

/* A node that is as it was, and not one that is asked for nothing. */
static void no_memory_for_it(const void *argument)
{
	u64 generation;

	boot();
	node->target = 77;
	set("vnuma/generation", "7");
	no_memory = true;
	elastic_store_request(node);
	CHECK(node->bad_target && node->target == 77, "%u extents", node->target);
	CHECK(elastic_store_requests(&generation) == -ENOMEM && node->target == 77,
	      "%u extents", node->target);
}

/* ---- What the guest answers ---- */

#define GUEST	"vnuma/guest/node/1/"

static void outcome(const void *argument)
{
	boot();
	node->state = ELASTIC_RESIDUAL;
	node->detach = true;
	node->nr_populated.counter = 3;
	strcpy(node->reason, "pinned");
	strcpy(node->error, "-16 cannot leave");
	node->phase_us[ELASTIC_PH_NODE] = 5;
	again = 2;
	elastic_store_done(9);
	CHECK(starts == 3 && !aborted, "%u transactions", starts);
	CHECK(!strcmp(get("vnuma/guest/done-generation"), "9"), "%s",
	      get("vnuma/guest/done-generation"));
	CHECK(!strcmp(get(GUEST "state"), "residual") &&
	      !strcmp(get(GUEST "current-kb"), "6144") &&
	      !strcmp(get(GUEST "progress-kb"), "6144") &&
	      !strcmp(get(GUEST "residual-kb"), "6144"), "the numbers");
	CHECK(!strcmp(get(GUEST "reason"), "pinned") &&
	      !strcmp(get(GUEST "error"), "-16 cannot leave"), "the texts");
	CHECK(!strcmp(get(GUEST "phases"),
		      "notify=0,acks=0,cpus=0,evacuate=0,offline=0,release=0,node=5"),
	      "%s", get(GUEST "phases"));
	CHECK(!strcmp(get("vnuma/guest/node/2/state"), "(none)"),
	      "a node that is not ours");

	node->state = ELASTIC_ONLINE;
	node->detach = false;
	node->reason[0] = node->error[0] = '\0';
	elastic_store_done(10);
	CHECK(!strcmp(get(GUEST "residual-kb"), "0"), "an online node is a residue");
	CHECK(!strcmp(get(GUEST "reason"), "(none)") &&
	      !strcmp(get(GUEST "error"), "(none)"), "old texts stay");
	CHECK(!strncmp(get(GUEST "phases"), "populate=0,add=0,", 17), "%s",
	      get(GUEST "phases"));
	CHECK(elastic_store_left_behind(node) == 6144, "the next kernel");
}

static void cannot_answer(const void *argument)
{
	boot();
	node->state = ELASTIC_GROWING;
	node->nr_populated.counter = 3;
	elastic_store_state(node);
	node->state = ELASTIC_ONLINE;
	refused = -EACCES;
	asked[0] = '\0';
	elastic_store_done(9);
	CHECK(aborted == 1 && !in_transaction, "a transaction is left open");
	CHECK(!strstr(asked, "commit"), "it is told in part: %s", asked);
	CHECK(strstr(said, "generation 9"), "'%s'", said);
	/* What it is like is told all the same; its memory comes first. */
	CHECK(strstr(asked, "abort\nwrite progress-kb=6144, write current-kb=6144, write residual-kb=0, write state=online (not"),
	      "%s", asked);
	refused = 0;
	again = 1000;
	starts = 0;
	elastic_store_done(10);
	CHECK(starts == 100, "%u transactions", starts);
	CHECK(strstr(said, "generation 10"), "'%s'", said);
}

/* As long as it can be: each phase a number of 64 bits. */
static void longest_phases(const void *argument)
{
	static const struct { bool detach; const char *text; } cases[] = {
		{ true, "notify=18446744073709551615,acks=18446744073709551615,cpus=18446744073709551615,"
			"evacuate=18446744073709551615,offline=18446744073709551615,"
			"release=18446744073709551615,node=18446744073709551615" },
		{ false, "populate=18446744073709551615,add=18446744073709551615,online=18446744073709551615,"
			 "cpus=18446744073709551615,notify=18446744073709551615" },
	};
	unsigned int i;

	boot();
	for (i = 0; i < ELASTIC_NR_PHASES; i++)
		node->phase_us[i] = UINT64_MAX;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		node->detach = cases[i].detach;
		elastic_store_done(9);
		CHECK(!strcmp(get(GUEST "phases"), cases[i].text), "%s", get(GUEST "phases"));
	}
}

/* Neither is tried again: only another's writes make a commit worth that. */
static void no_transaction(const void *argument)
{
	boot();
	node->state = ELASTIC_ONLINE;
	node->nr_populated.counter = 3;
	cannot_start = -EIO;
	elastic_store_done(9);
	CHECK(!starts && strstr(said, "generation 9: outcome could not be reported: -5"), "'%s'", said);
	CHECK(!strncmp(asked, "start\nwrite progress-kb=6144, ", 29), "%s", asked);
	CHECK(!strcmp(get("vnuma/guest/node/2/state"), "(none)"), "a node that is not ours");
	cannot_start = 0;
	cannot_end = -ENOSPC;
	elastic_store_done(10);
	CHECK(starts == 1 && strstr(said, "generation 10: outcome could not be reported: -28"), "%u, '%s'",
	      starts, said);
	CHECK(strstr(asked, "commit\nwrite progress-kb=6144, "), "%s", asked);
}

/* That a driver is there, until it stops. */
static void hello(const void *argument)
{
	elastic_store_hello();
	CHECK(!strcmp(get("vnuma/guest/version"), "1"), "%s", get("vnuma/guest/version"));
	elastic_store_goodbye();
	CHECK(!strcmp(get("vnuma/guest/version"), "(none)"), "%s", get("vnuma/guest/version"));
}

/* Who must let the guest own it is to be told so, and nobody else. */
static void why_it_cannot(const void *argument)
{
	static const struct { int rc; bool hint; } cases[] = {
		{ -EACCES, true }, { -ENOMEM, false }, { -ENOSPC, false }, { -E2BIG, false },
	};
	unsigned int i;

	boot();
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		no_memory = cases[i].rc == -ENOMEM;
		refused = cases[i].rc;
		said[0] = '\0';
		elastic_store_progress(node);
		CHECK(strstr(said, "cannot write below vnuma/guest: ") && strchr(said, '-') &&
		      atoi(strchr(said, '-')) == cases[i].rc, "'%s'", said);
		CHECK(!strstr(said, "toolstack must") == !cases[i].hint, "'%s'", said);
	}
	/* Not told at all: it is tried again. */
	no_memory = false;
	refused = -EAGAIN;
	said[0] = '\0';
	elastic_store_progress(node);
	CHECK(!said[0], "'%s'", said);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "store: CPUs of a node that is there",
		  cpus_of_a_node_that_is_there },
		{ "store: CPUs that cannot be read", cpus_that_cannot_be_read },
		{ "store: a target that cannot be read", target_that_cannot_be_read },
		{ "store: a block with less than its struct pages", less_than_struct_pages },
		{ "store: the grace period", grace },
		{ "store: hello and goodbye", hello },
		{ "store: all nodes in one row", all_at_once },
		{ "store: a mixture of two operations", mixture },
		{ "store: nothing is left of a question", nothing_is_left },
		{ "store: no memory to ask", no_memory_for_it },
		{ "store: the outcome", outcome },
		{ "store: an outcome that cannot be written", cannot_answer },
		{ "store: why it cannot be written", why_it_cannot },
		{ "store: the longest phases", longest_phases },
		{ "store: no transaction", no_transaction },
	};
	static struct test_case all[ARRAY_SIZE(cases) + ARRAY_SIZE(at_creation) +
				    ARRAY_SIZE(questions)];
	unsigned int i, n = ARRAY_SIZE(cases);

	memcpy(all, cases, sizeof(cases));
	for (i = 0; i < ARRAY_SIZE(at_creation); i++)
		all[n++] = (struct test_case){ at_creation[i].name, one_creation,
					       &at_creation[i] };
	for (i = 0; i < ARRAY_SIZE(questions); i++)
		all[n++] = (struct test_case){ questions[i].name, one_request,
					       &questions[i] };
	return run_cases(argc, argv, all, n);
}
