// SPDX-License-Identifier: GPL-2.0
/*
 * What an operation asks of xenstore, and how often it waits for an answer: the
 * engine, the operations and store.c as they are, on the simulated machine.  In the
 * lab each wait is 20 ms, whatever the operation is.
 *
 * And what the toolstack sees meanwhile: at each moment of each case libxl's own
 * parser reads the node's keys, and must not call them faulty.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"
#include "fake_xenstore.h"
#include "libxl_vnode_keys.h"

#define NODE	"vnuma/node/1/"
#define GUEST	"vnuma/guest/node/1/"

struct cpumask cpus_possible = { { 0x3f } };

static void set_u64(const char *path, u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", value);
	set(path, text);
}

/* What the toolstack does in one transaction. */
static void announce(u32 extents)
{
	machine.generation++;
	set_u64(NODE "target-kb", elastic_kib(extents));
	set_u64("vnuma/generation", machine.generation);
}

static void forget(void)
{
	asked[0] = '\0';
	nr_requests = nr_waits = 0;
}

/* One command, from the watch until the engine rests. */
static void command(u32 extents)
{
	announce(extents);
	forget();
	wake_engine();
	CHECK(!strcmp(get("vnuma/guest/done-generation"), get("vnuma/generation")), "%s", asked);
	CHECK(!strcmp(get("vnuma/guest/ack-generation"), get("vnuma/generation")), "%s", asked);
	CHECK(!machine.by_xenwatch, "the engine waits for xenwatch");
	CHECK(!machine.tick_at, "the ticker goes on");
	CHECK(!elastic_busy(), "the operation goes on");
}

static const char *said_of_node(const char *key)
{
	int i = find(path_of("vnuma/guest/node/1", key));

	return i < 0 ? NULL : keys[i].text;
}

static struct vnode_report report;

static void look_as_libxl_does(void)
{
	const struct vnode_raw raw = {
		.state = said_of_node("state"), .current_kb = said_of_node("current-kb"),
		.residual_kb = said_of_node("residual-kb"), .progress_kb = said_of_node("progress-kb"),
		.reason = said_of_node("reason"), .error = said_of_node("error"),
		.phases = said_of_node("phases"),
	};

	CHECK(vnode_parse_report(&raw, elastic_kib(4 * BLOCK_EXTENTS), &report), "faulty: %s, %s KiB: %s\n%s",
	      raw.state, raw.current_kb, report.fault, asked);
}

static void start(void)
{
	looks = look_as_libxl_does;
	set(NODE "elastic", "1");
	set(NODE "start", "100000000");
	set_u64(NODE "max-kb", elastic_kib(4 * BLOCK_EXTENTS));
	set(NODE "cpus", "2-3");
	boot(4);
}

static void is_asked(const char *expected, unsigned int requests, unsigned int waits)
{
	CHECK(!strcmp(asked, expected), "asked:\n%sand not\n%s", asked, expected);
	CHECK(nr_requests == requests && nr_waits == waits, "%u requests, %u waits", nr_requests, nr_waits);
}

/* Of a node with that much, in that state; the same for each operation. */
#define OUTCOME(state, kib, n)								\
	"start\n"									\
	"write state=" state ", write progress-kb=" kib ", write current-kb=" kib	\
	", write residual-kb=0, rm reason, rm error, write phases=..."			\
	", write done-generation=" n "\n"						\
	"commit\n"

/* All that is read before the first operation, and that there is a driver. */
static void first_boot(const void *argument)
{
	start();
	is_asked("read elastic\n"
		 "read start\n"
		 "read max-kb\n"
		 "read current-kb\n"
		 "write version=1\n", 5, 5);
}

static void attach(const void *argument)
{
	start();
	command(4 * BLOCK_EXTENTS);
	is_asked("read generation, read target-kb, read cpus, read generation\n"
		 "write ack-generation=1 (not waited for)\n"
		 "write residual-kb=0, write state=growing (not waited for)\n"
		 OUTCOME("online", "524288", "1"), 17, 4);
	CHECK(machine.refreshes == 1 && !node.nr_failed, "%u looks, %llu failed", machine.refreshes, node.nr_failed);
}

static void take(const void *argument)
{
	start();
	command(4 * BLOCK_EXTENTS);
	machine.drains = 0;
	command(4 * BLOCK_EXTENTS - 32);
	is_asked("read generation, read target-kb, read grace-ms, read generation\n"
		 "write ack-generation=2 (not waited for)\n"
		 OUTCOME("online", "458752", "2"), 15, 4);
	CHECK(!machine.drains, "all CPUs are woken");
}

static void give(const void *argument)
{
	start();
	command(4 * BLOCK_EXTENTS - 32);
	command(4 * BLOCK_EXTENTS);
	is_asked("read generation, read target-kb, read grace-ms, read generation\n"
		 "write ack-generation=2 (not waited for)\n"
		 "write residual-kb=0, write state=growing (not waited for)\n"
		 OUTCOME("online", "524288", "2"), 17, 4);
	CHECK(!machine.drains, "all CPUs are woken");
}

static void detach(const void *argument)
{
	start();
	command(4 * BLOCK_EXTENTS);
	command(0);
	is_asked("read generation, read target-kb, read grace-ms, read generation\n"
		 "write ack-generation=2 (not waited for)\n"
		 "write residual-kb=0, write state=draining (not waited for)\n"
		 OUTCOME("offline", "0", "2"), 17, 4);
	/* What evacuation does is not on this machine. */
	CHECK(!machine.drains, "all CPUs are woken, and there is room");
}

/* Pages on the lists of CPUs look as if they were in use: they decide nothing. */
static void detach_that_just_fits(const void *argument)
{
	start();
	command(4 * BLOCK_EXTENTS);
	machine.used = 1000;
	machine.home_free = 1200;
	machine.on_lists = 500;
	command(0);
	CHECK(!strcmp(get(GUEST "state"), "offline"), "%s", get(GUEST "error"));
	CHECK(machine.drains == 1, "emptied %u times", machine.drains);
	/* To the page, and without such lists. */
	command(4 * BLOCK_EXTENTS);
	machine.used = 1200;
	machine.drains = 0;
	command(0);
	CHECK(!strcmp(get(GUEST "state"), "offline") && !machine.drains, "%s, emptied %u times",
	      get(GUEST "error"), machine.drains);
}

static void detach_that_does_not_fit(const void *argument)
{
	start();
	command(4 * BLOCK_EXTENTS);
	machine.used = 1300;
	machine.home_free = 1200;
	machine.on_lists = 500;
	command(0);
	CHECK(!strcmp(get(GUEST "error"), "-12 need 5200 KiB, free elsewhere 4800 KiB"), "%s",
	      get(GUEST "error"));
	is_asked("read generation, read target-kb, read grace-ms, read generation\n"
		 "write ack-generation=2 (not waited for)\n"
		 "start\n"
		 "write state=online, write progress-kb=524288, write current-kb=524288"
		 ", write residual-kb=0, rm reason, write error=-12 need 5200 KiB, free elsewhere 4800 KiB"
		 ", write phases=..., write done-generation=2\n"
		 "commit\n", 15, 4);
	CHECK(node.nr_failed == 1, "%llu failed", node.nr_failed);
	/* The next success takes its words away. */
	machine.used = 1000;
	command(0);
	CHECK(!strcmp(get(GUEST "error"), "(none)"), "%s", get(GUEST "error"));
}

/* Of two commands that fail each has its own reason, which stays until one succeeds. */
static void another_reason(const void *argument)
{
	start();
	machine.room = 0;
	command(4 * BLOCK_EXTENTS);
	CHECK(strstr(get(GUEST "error"), "-12 Xen gave 0 of"), "%s", get(GUEST "error"));
	unreadable = "cpus";
	command(4 * BLOCK_EXTENTS);
	CHECK(!strcmp(get(GUEST "error"), "-5 vnuma/node/1/cpus cannot be read"), "%s", get(GUEST "error"));
	unreadable = "target-kb";
	command(4 * BLOCK_EXTENTS);
	CHECK(!strcmp(get(GUEST "error"), "-5 vnuma/node/1/target-kb cannot be read"), "%s", get(GUEST "error"));
	unreadable = NULL;
	command(0);
	CHECK(!strcmp(get(GUEST "error"), "-5 vnuma/node/1/target-kb cannot be read"), "%s", get(GUEST "error"));
	machine.room = 4 * BLOCK_EXTENTS;
	command(4 * BLOCK_EXTENTS);
	CHECK(!strcmp(get(GUEST "state"), "online") && find(GUEST "error") < 0, "%s", get(GUEST "error"));
}

/* What libxl makes of the answer. */
static enum vnode_outcome outcome(enum vnode_op_kind kind, u32 extents)
{
	look_as_libxl_does();
	return vnode_op_outcome(kind, elastic_kib(extents), &report);
}

static u32 last_word;

static void another_command(void)
{
	announce(last_word);
	fire_watch();
}

/* Refused as it is read, with nothing to undo; what is under way goes on to its end before it is answered. */
static void a_size_that_cannot_be_had(const void *argument)
{
	start();
	CHECK(!elastic_range_init(&node.range, START, 4 * BLOCK_BYTES, BLOCK_BYTES, 16 * ELASTIC_EXTENT_BYTES), "range");
	command(BLOCK_EXTENTS + 15);
	CHECK(outcome(VNODE_OP_ATTACH, BLOCK_EXTENTS + 15) == VNODE_OUTCOME_FAILED && report.error_nr == EDOM &&
	      report.state == VNODE_KEY_OFFLINE, "%s", report.error);
	command(0);
	CHECK(outcome(VNODE_OP_DETACH, 0) == VNODE_OUTCOME_DONE, "%s", report.error);
	command(BLOCK_EXTENTS + 16);
	CHECK(outcome(VNODE_OP_ATTACH, BLOCK_EXTENTS + 16) == VNODE_OUTCOME_DONE && !report.error[0], "%s", report.error);

	happens_at = 6;
	happens = another_command;
	last_word = 2 * BLOCK_EXTENTS + 1;
	command(3 * BLOCK_EXTENTS);
	CHECK(outcome(VNODE_OP_SET, 2 * BLOCK_EXTENTS + 1) == VNODE_OUTCOME_FAILED && report.error_nr == EDOM &&
	      report.state == VNODE_KEY_ONLINE && report.current_kb == elastic_kib(3 * BLOCK_EXTENTS), "%s", asked);
	command(BLOCK_EXTENTS + 16);
	CHECK(outcome(VNODE_OP_SET, BLOCK_EXTENTS + 16) == VNODE_OUTCOME_DONE && !report.error[0], "%s", report.error);
}

static void announced_again(void)
{
	machine.generation++;
	set_u64("vnuma/generation", machine.generation);
	fire_watch();
}

static u32 what_toolstack_sees;

/* As the toolstack looks at each moment: no residue that is larger than what there is (libxl calls it faulty). */
static void look_at_residue(void)
{
	what_toolstack_sees++;
	CHECK(atoi(get(GUEST "residual-kb")) <= atoi(get(GUEST "current-kb")) || in_transaction,
	      "%s KiB, a residue of %s KiB: %s", get(GUEST "current-kb"), get(GUEST "residual-kb"), asked);
	CHECK(!strcmp(get(GUEST "state"), "residual") || !atoi(get(GUEST "residual-kb")) || in_transaction,
	      "%s, a residue of %s KiB: %s", get(GUEST "state"), get(GUEST "residual-kb"), asked);
	happens_at = 1;
}

/* A residue that is drained again is none, and what of it stays is one at once, also if more is to do. */
static void drained_again(const void *argument)
{
	start();
	command(4 * BLOCK_EXTENTS);
	machine.stuck[0] = machine.stuck[1] = machine.stuck[2] = true;
	command(0);
	CHECK(!strcmp(get(GUEST "state"), "residual") && !strcmp(get(GUEST "residual-kb"), "6144"), "%s", asked);
	machine.stuck[1] = machine.stuck[2] = false;
	machine.offline_ms = 2000;	/* and the ticker tells how far it is */
	happens = look_at_residue;
	happens_at = 1;
	command(0);
	CHECK(strstr(asked, "write residual-kb=0, write state=draining (not"), "%s", asked);
	CHECK(what_toolstack_sees > 16, "%u looks", what_toolstack_sees);
	CHECK(!strcmp(get(GUEST "residual-kb"), "2048"), "%s", asked);
	happens_at = 7;		/* as it says that it is drained */
	happens = announced_again;
	command(0);
	CHECK(strstr(asked, "write current-kb=2048, write residual-kb=2048, write state=residual (not"),
	      "%s", asked);
}

/* What nobody waits for may be done late, but not after the end that is told. */
static void late_ones(const void *argument)
{
	start();
	late = true;
	command(4 * BLOCK_EXTENTS);
	CHECK(!strcmp(get(GUEST "state"), "online"), "%s", get(GUEST "state"));
	CHECK(settled == 1 && nr_waits == 4, "%u waits, %u for all", nr_waits, settled);
	command(0);
	CHECK(!strcmp(get(GUEST "state"), "offline"), "%s", get(GUEST "state"));
}

/* The same generation once more, as after xenstored or the guest has come back. */
static void nothing_new(const void *argument)
{
	start();
	command(4 * BLOCK_EXTENTS);
	forget();
	wake_engine();
	is_asked("read generation, read target-kb, read grace-ms, read generation\n", 4, 1);
}

/* Nobody keeps a copy of what was written: all of it is there after the next one. */
static void keys_that_have_gone(const void *argument)
{
	static const char *const names[] = {
		"state", "current-kb", "progress-kb", "residual-kb", "phases",
	};
	unsigned int i;

	start();
	command(4 * BLOCK_EXTENTS);
	looks = NULL;		/* what libxl sees then is not the driver's */
	for (i = 0; i < ARRAY_SIZE(names); i++)
		set(path_of("vnuma/guest/node/1", names[i]), NULL);
	set(GUEST "error", "garbage");
	set(GUEST "reason", "garbage");
	command(4 * BLOCK_EXTENTS - 32);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		CHECK(find(path_of("vnuma/guest/node/1", names[i])) >= 0, "%s", names[i]);
	CHECK(find(GUEST "error") < 0 && find(GUEST "reason") < 0, "garbage stays");
}

/* What the kernel before a kexec had: told at once, its memory before the state. */
static void after_a_kexec(const void *argument)
{
	set(GUEST "state", argument);
	set(GUEST "residual-kb", strcmp(argument, "residual") ? "0" : "4096");
	set(GUEST "current-kb", "4096");
	set(GUEST "error", "-5 of the kernel before");
	give_extents(0, 2);
	machine.refuses[1] = true;
	start();
	CHECK(strstr(asked, "write progress-kb=2048, write current-kb=2048, write residual-kb=2048, write state=residual (not"),
	      "%s", asked);
	machine.refuses[1] = false;
	command(4 * BLOCK_EXTENTS);
	CHECK(!strcmp(get(GUEST "state"), "online") && !strcmp(get(GUEST "current-kb"), "524288") &&
	      find(GUEST "error") < 0, "%s", asked);
	/* It has never been absent: they have not been asked for by the way. */
	CHECK(node.cpus.bits[0] == 0xc, "CPUs %#lx", node.cpus.bits[0]);
	CHECK(strstr(asked, "read target-kb, read cpus, read grace-ms, read generation"), "%s", asked);
}

/* ... all of which Xen has taken: between online with some and absent with none nobody sees another. */
static void after_a_kexec_without_a_rest(const void *argument)
{
	set(GUEST "state", argument);
	set(GUEST "residual-kb", strcmp(argument, "residual") ? "0" : "4096");
	set(GUEST "current-kb", "4096");
	give_extents(0, 2);
	start();
	CHECK(!strcmp(get(GUEST "state"), "offline") && !strcmp(get(GUEST "current-kb"), "0"), "%s", asked);
	CHECK(strstr(asked, "write state=draining (not waited for)\nwrite progress-kb=0, "), "%s", asked);
}

/* One that takes 1.2 s: its progress is told twice, a row each time. */
static void progress(const void *argument)
{
	start();
	machine.extent_ms = 5;
	command(4 * BLOCK_EXTENTS);
	CHECK(nr_requests == 17 + 2 * 2 && nr_waits == 4 + 2, "%u requests, %u waits:\n%s",
	      nr_requests, nr_waits, asked);
	CHECK(strstr(asked, "\nwrite progress-kb=") && strstr(asked, ", write current-kb="), "%s", asked);
}

/* What each phase has taken, the last one, too, and nothing of an operation before. */
static void phases(const void *argument)
{
	start();
	machine.extent_ms = 5;
	machine.publish_ms = 7;
	command(4 * BLOCK_EXTENTS);
	CHECK(!strcmp(get(GUEST "phases"), "populate=1280000,add=0,online=0,cpus=3000,notify=7000"), "%s",
	      get(GUEST "phases"));
	command(3 * BLOCK_EXTENTS);
	CHECK(!strcmp(get(GUEST "phases"),
		      "notify=7000,acks=0,cpus=0,evacuate=0,offline=5000,release=320000,node=0"), "%s",
	      get(GUEST "phases"));
	command(0);
	CHECK(!strcmp(get(GUEST "phases"),
		      "notify=14000,acks=0,cpus=0,evacuate=0,offline=15000,release=960000,node=0"), "%s",
	      get(GUEST "phases"));
}

/* Another operation is announced, for another node: no target of this one changes. */
static void news_meanwhile(const void *argument)
{
	start();
	happens_at = 7;		/* as it says that it grows */
	happens = announced_again;
	command(4 * BLOCK_EXTENTS);
	is_asked("read generation, read target-kb, read cpus, read generation\n"
		 "write ack-generation=1 (not waited for)\n"
		 "write residual-kb=0, write state=growing (not waited for)\n"
		 "read target-kb\n"
		 "write progress-kb=524288, write current-kb=524288, write residual-kb=0"
		 ", write state=online (not waited for)\n"
		 "read generation, read target-kb, read grace-ms, read generation\n"
		 "write ack-generation=2 (not waited for)\n"
		 OUTCOME("online", "524288", "2"), 27, 6);
}

/* Another operation is announced while the targets are read: they are read again. */
static void news_while_it_reads(const void *argument)
{
	start();
	happens_at = 2;
	happens = announced_again;
	command(4 * BLOCK_EXTENTS);
	CHECK(!strncmp(asked, "read generation, read target-kb, read cpus, read generation\n"
			      "read generation, read target-kb, read cpus, read generation\n"
			      "write ack-generation=2 (not waited for)\n", 160), "%s", asked);
}

/* ... or when they have been answered, before the engine has noted it. */
static void news_behind_it(const void *argument)
{
	start();
	on_the_way = announced_again;
	command(4 * BLOCK_EXTENTS);
	is_asked("read generation, read target-kb, read cpus, read generation\n"
		 "write ack-generation=1 (not waited for)\n"
		 "write residual-kb=0, write state=growing (not waited for)\n"
		 "read target-kb\n"
		 "write progress-kb=524288, write current-kb=524288, write residual-kb=0"
		 ", write state=online (not waited for)\n"
		 "read generation, read target-kb, read grace-ms, read generation\n"
		 "write ack-generation=2 (not waited for)\n"
		 OUTCOME("online", "524288", "2"), 27, 6);
}

/* ... or this one is to be another size: it is told how the first ended. */
static void called_off(void)
{
	machine.generation++;
	set_u64(NODE "target-kb", elastic_kib(2 * BLOCK_EXTENTS));
	set_u64("vnuma/generation", machine.generation);
	fire_watch();
}

static void another_target_meanwhile(const void *argument)
{
	start();
	command(4 * BLOCK_EXTENTS);
	happens_at = 7;		/* as it says that it is drained */
	happens = called_off;
	command(0);
	CHECK(!strcmp(get(GUEST "state"), "online") && !strcmp(get(GUEST "current-kb"), "262144"), "%s", asked);
	CHECK(strstr(asked, "write residual-kb=0, write state=draining (not waited for)\n"
			    "read target-kb\n"
			    "write residual-kb=0, write state=growing (not waited for)\n"
			    "write progress-kb=524288, write current-kb=524288, write residual-kb=0"
			    ", write state=online (not waited for)\n"
			    "read generation, "), "%s", asked);
	CHECK(!node.nr_failed, "%llu failed", node.nr_failed);
}

/* Exit code 0: it is carried out; 2: all was over before; 1: as of a case that fails. */
static void command_meanwhile(u32 before, u32 extents, u32 other, unsigned int at)
{
	start();
	machine.extent_ms = 5;	/* so that there is a ticker, too */
	if (before)
		command(before);
	last_word = other;
	happens = another_command;
	happens_at = at;
	announce(extents);
	forget();
	wake_engine();
	engine_goes_on();
	if (happens_at)
		exit(2);
	CHECK(!strcmp(get(GUEST "state"), other ? "online" : "offline") &&
	      strtoull(get(GUEST "current-kb"), NULL, 10) == elastic_kib(other), "%s, %s KiB:\n%s",
	      get(GUEST "state"), get(GUEST "current-kb"), asked);
	CHECK(!strcmp(get("vnuma/guest/done-generation"), get("vnuma/generation")) &&
	      !strcmp(get("vnuma/guest/ack-generation"), get("vnuma/generation")), "%s", asked);
	CHECK(find(GUEST "error") < 0 && !node.nr_failed && !machine.tick_at && !elastic_busy(), "%s", get(GUEST "error"));
	exit(0);
}

/* Another command at each request of one: the last word is carried out, and libxl never calls anything faulty. */
static void news_at_each_request(const void *argument)
{
	static const struct { u32 before, extents; } operations[] = {
		{ 0, 4 * BLOCK_EXTENTS }, { 4 * BLOCK_EXTENTS, 4 * BLOCK_EXTENTS - 32 },
		{ 4 * BLOCK_EXTENTS - 32, 4 * BLOCK_EXTENTS }, { 4 * BLOCK_EXTENTS, 0 },
	};
	static const u32 others[] = { 0, 2 * BLOCK_EXTENTS, 4 * BLOCK_EXTENTS - 32, 4 * BLOCK_EXTENTS };
	unsigned int i, n, at, tries = 0;
	int status;

	for (i = 0; i < ARRAY_SIZE(operations); i++) {
		for (n = 0; n < ARRAY_SIZE(others); n++) {
			for (at = 1, status = 0; !status; at++, tries++) {
				fflush(stdout);
				if (!fork())
					command_meanwhile(operations[i].before, operations[i].extents, others[n], at);
				wait(&status);
				CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 1, "%u to %u, at request %u %u",
				      operations[i].before, operations[i].extents, at, others[n]);
			}
		}
	}
	CHECK(tries > 200, "%u tries", tries);
}

/* A generation that cannot be read is looked for in vain in xenstore: the guest's log says it. */
static void unreadable_generation(const void *argument)
{
	start();
	forget();
	wake_engine();
	CHECK(!strstr(machine.log, "vnuma/generation"), "none is no error: %s", machine.log);
	announce(4 * BLOCK_EXTENTS);
	unreadable = "generation";
	forget();
	wake_engine();
	is_asked("read generation, read target-kb, read cpus, read generation\n", 4, 1);
	CHECK(strstr(machine.log, "vnuma/generation cannot be read: -5"), "%s", machine.log);
}

/* One by one, and the ticker tells of it: a residue is never more than what there is. */
static void strays_of_a_residue_leave(const void *argument)
{
	start();
	command(4 * BLOCK_EXTENTS);
	memset(&machine.refuses[100], true, 70);
	command(0);
	CHECK(!strcmp(get(GUEST "state"), "residual") && !strcmp(get(GUEST "residual-kb"), "143360"), "%s", asked);
	memset(machine.refuses, false, sizeof(machine.refuses));
	machine.extent_ms = 20;
	command(BLOCK_EXTENTS);
	CHECK(!strcmp(get(GUEST "state"), "online"), "%s", asked);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "requests: a boot", first_boot },
		{ "requests: what a residue loses as it is wanted again", strays_of_a_residue_leave },
		{ "requests: an attach", attach },
		{ "requests: a take", take },
		{ "requests: a give", give },
		{ "requests: a detach", detach },
		{ "requests: a detach that just fits", detach_that_just_fits },
		{ "requests: a detach that does not fit", detach_that_does_not_fit },
		{ "requests: another reason", another_reason },
		{ "requests: a size that cannot be had", a_size_that_cannot_be_had },
		{ "requests: late ones", late_ones },
		{ "requests: drained again", drained_again },
		{ "requests: nothing new", nothing_new },
		{ "requests: keys that have gone", keys_that_have_gone },
		{ "requests: after a kexec", after_a_kexec, "online" },
		{ "requests: a residue after a kexec", after_a_kexec, "residual" },
		{ "requests: after a kexec without a rest", after_a_kexec_without_a_rest, "online" },
		{ "requests: a residue after a kexec without a rest", after_a_kexec_without_a_rest, "residual" },
		{ "requests: progress", progress },
		{ "requests: phases", phases },
		{ "requests: news meanwhile", news_meanwhile },
		{ "requests: news while it reads", news_while_it_reads },
		{ "requests: news behind it", news_behind_it },
		{ "requests: another target meanwhile", another_target_meanwhile },
		{ "requests: news at each request", news_at_each_request },
		{ "requests: a generation that cannot be read", unreadable_generation },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
