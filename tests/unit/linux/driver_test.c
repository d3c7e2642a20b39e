// SPDX-License-Identifier: GPL-2.0
/*
 * The driver's operations on a simulated machine (machine.h): engine.c, op.c,
 * node.c, mem.c and balloon.c as they are.  The cases ask how an operation ends
 * when something goes wrong at each of its steps.
 */
#include "machine.h"

/* One request, as the engine carries it out. */
static int ask(u32 target)
{
	machine.steps = 0;
	machine.happened = false;
	machine.guest_is_full = false;
	machine.target = target;
	node.target = target;
	return elastic_node_operate(&node);
}

static void attach_all(unsigned int blocks)
{
	boot(blocks);
	CHECK(!ask(blocks * BLOCK_EXTENTS), "%s", machine.log);
}

/* What Linux, Xen and the driver say of the node must be the same. */
static void check_books(void)
{
	unsigned int extent, n = 0, allocator = 0;

	for (extent = 0; extent < MAX_BLOCKS * BLOCK_EXTENTS; extent++) {
		n += machine.has_memory[extent];
		CHECK(extent >= node.range.nr_blocks * BLOCK_EXTENTS ||
		      (test_bit(extent, node.populated) == machine.has_memory[extent] &&
		       (machine.no_types ||
			test_bit(extent, node.torn) == (machine.pages[extent] % ELASTIC_EXTENT_PAGES != 0))),
		      "extent %u has %u pages", extent, machine.pages[extent]);
		if (!machine.online[extent / BLOCK_EXTENTS] ||
		    extent % BLOCK_EXTENTS < node.range.memmap_extents)
			continue;
		allocator += !machine.in_balloon[extent];
		CHECK(machine.marked[extent] == (machine.in_balloon[extent] ? ELASTIC_EXTENT_PAGES : 0),
		      "extent %u: %u pages are marked", extent, machine.marked[extent]);
		CHECK(!machine.frozen[extent], "extent %u has no references", extent);
	}
	CHECK(machine.managed == allocator * ELASTIC_EXTENT_PAGES, "%ld pages of %u extents",
	      machine.managed, allocator);
	CHECK(n == machine.memory && n == elastic_populated(&node),
	      "Xen has given %u extents, the driver knows of %u", n,
	      elastic_populated(&node));
	CHECK(draining_key == node.draining, "the allocator's key: %d",
	      draining_key);
	CHECK(node_isset(node.nid, draining_nodes) == node.draining,
	      "the allocator's mask");
	CHECK(machine.hotplug_locked == 0, "a lock is held");
	CHECK(machine.expedited == 0, "grace periods are expedited %d times", machine.expedited);
	CHECK(node.state != ELASTIC_GROWING && node.state != ELASTIC_DRAINING, "%s", elastic_state_name(node.state));
	CHECK(node.state == ELASTIC_RESIDUAL || !node.reason[0], "a reason for no residue: '%s'", node.reason);
	if (node.state != ELASTIC_ONLINE)
		return;
	CHECK(!bitmap_empty(node.present, node.range.nr_blocks), "online without a block");
	CHECK(machine.cpus_up || strstr(node.error, "vCPU 2 stays down"), "its CPUs are down: '%s'", node.error);
}

static void check_online(u32 extents)
{
	check_books();
	CHECK(node.state == ELASTIC_ONLINE, "%s", elastic_state_name(node.state));
	CHECK(elastic_populated(&node) == extents, "%u extents",
	      elastic_populated(&node));
	CHECK(machine.cpus_up, "its CPUs are down");
	CHECK(!node.draining, "it is being drained");
	CHECK(machine.published == XTOPO_STABLE, "programs were not told");
}

static void check_gone(void)
{
	check_books();
	CHECK(node.state == ELASTIC_OFFLINE, "%s", elastic_state_name(node.state));
	CHECK(!machine.memory, "%u extents are left", machine.memory);
	CHECK(!machine.cpus_up && !node.draining, "not all of it has gone");
}

static void there_and_back(const void *argument)
{
	int round;

	boot(4);
	for (round = 0; round < 3; round++) {
		CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
		check_online(4 * BLOCK_EXTENTS);
		CHECK(!ask(0), "%s", machine.log);
		check_gone();
	}
}

/* The number of steps of an operation that nobody interrupts. */
static int count_steps(u32 target)
{
	machine.cancel_at = 0;
	CHECK(!ask(target), "%s", machine.log);
	return machine.steps;
}

enum reason { NEW_TARGET, GUEST_GROWS, OOM, OOM_BESIDE_CACHE };

static void detach_called_off(const void *argument)
{
	const enum reason *reason = argument;
	int steps, at, rc, expected = *reason ? -ENOMEM : -ECANCELED;
	int called_off = 0;
	u32 left;

	attach_all(4);
	steps = count_steps(0);
	CHECK(steps > 6, "%d steps", steps);
	machine.grows_then = *reason == GUEST_GROWS;
	machine.oom_then = *reason == OOM || *reason == OOM_BESIDE_CACHE;
	/* What programs run from is cache, too; nobody drops the last of it. */
	if (*reason == OOM_BESIDE_CACHE)
		machine.cache_elsewhere = 1UL << 30;
	machine.new_target = 4 * BLOCK_EXTENTS;
	for (at = 1; at <= steps; at++) {
		machine.cancel_at = 0;
		CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
		check_online(4 * BLOCK_EXTENTS);
		machine.cancel_at = at;
		rc = ask(0);
		left = elastic_populated(&node);
		if (rc == 0) {
			check_gone();
			continue;
		}
		CHECK(rc == expected, "step %d: %d", at, rc);
		called_off++;
		check_online(left);
		CHECK(!*reason || !strcmp(node.error, "-12 called off: the guest ran out of memory"),
		      "'%s'", node.error);
	}
	CHECK(called_off > steps / 2, "%d of %d", called_off, steps);
}

/* Why one was called off is not why the next one is. */
static void detach_called_off_again(const void *argument)
{
	attach_all(4);
	machine.oom_then = true;
	machine.cancel_at = 3;
	CHECK(ask(0) == -ENOMEM, "%s", machine.log);
	machine.oom_then = false;
	machine.new_target = 4 * BLOCK_EXTENTS;
	CHECK(ask(0) == -ECANCELED && !node.error[0], "'%s'", node.error);
	check_online(elastic_populated(&node));
}

/* The allocator has found nothing, whatever cache counts as available. */
static void shrink_called_off(const void *argument)
{
	const u32 *blocks = argument;
	int steps, at, rc, called_off = 0;

	attach_all(*blocks);
	steps = count_steps(BLOCK_EXTENTS);
	CHECK(steps == 3 * (*blocks - 1), "%d steps", steps);
	machine.oom_then = true;
	machine.cache_elsewhere = 1UL << 30;
	machine.left_free = 1000;	/* not enough for who asks */
	for (at = 1; at <= steps; at++) {
		machine.cancel_at = 0;
		CHECK(!ask(*blocks * BLOCK_EXTENTS), "%s", machine.log);
		machine.cancel_at = at;
		rc = ask(BLOCK_EXTENTS);
		check_online(elastic_populated(&node));
		if (!rc)
			continue;
		CHECK(rc == -ENOMEM, "step %d: %d", at, rc);
		called_off++;
		CHECK(!strcmp(node.error, "-12 called off: the guest ran out of memory"),
		      "'%s'", node.error);
	}
	/* The last one is that of a block that has left: only Xen's part of it is to come. */
	CHECK(called_off == steps - 1, "%d of %d", called_off, steps);
}

/* Called off a moment before a block is tried: nobody waits for the ticker. */
static void called_off_before_an_attempt(const void *argument)
{
	attach_all(4);
	elastic_op_begin(&node, true);
	node.draining = machine.guest_is_full = true;
	at_work = NULL;
	out_of_memory();
	at_work = &the_engine;
	CHECK(!machine.signal, "a signal at the wrong moment");
	elastic_interruptible(10000);
	CHECK(machine.signal, "it goes on for 10 s");
	CHECK(elastic_uninterruptible() == -ECANCELED, "no reason for it");
	node.draining = false;
	elastic_op_end();
}

/* What the ticker sees while a block is tried: another target, or that the guest has grown. */
static void called_off_by_the_ticker(const void *argument)
{
	attach_all(4);
	elastic_op_begin(&node, true);
	elastic_interruptible(10000);
	machine.target = 1;
	fire_watch();
	pass(600);
	CHECK(machine.signal, "it goes on for 10 s");
	CHECK(elastic_uninterruptible() == -ECANCELED && !elastic_out_of_memory(), "another reason");
	elastic_op_end();

	machine.target = node.target;
	elastic_watch_is_seen();
	elastic_op_begin(&node, true);
	elastic_interruptible(10000);
	pass(600);
	CHECK(!machine.signal, "for no reason");
	node.draining = machine.guest_is_full = true;
	pass(600);
	CHECK(machine.signal, "it goes on for 10 s");
	CHECK(elastic_uninterruptible() == -ECANCELED && elastic_out_of_memory(), "another reason");
	node.draining = false;
	/* It has just begun, and finds no operation. */
	machine.late_tick = true;
	elastic_op_end();
}

/* Whatever block is being taken offline comes back, so nobody is killed yet. */
static void isolated_block_comes_back(const void *argument)
{
	int steps, at;
	unsigned long most = 0;

	attach_all(4);
	steps = count_steps(0);
	machine.oom_then = true;
	for (at = 1; at <= steps; at++) {
		machine.cancel_at = 0;
		CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
		machine.freed = 0;
		machine.cancel_at = at;
		ask(0);
		most = max(most, machine.freed);
	}
	CHECK(most == (BLOCK_EXTENTS - 1) * ELASTIC_EXTENT_PAGES, "%lu pages", most);
	CHECK(!out_of_memory(), "pages that nobody keeps");
}

/*
 * The guest has room, but not for who asks: as under MPOL_BIND.  The drain goes
 * on, and nobody is killed because the last block is isolated just then.
 */
static void oom_of_somebody_else(const void *argument)
{
	unsigned long most = 0;
	int steps, at;

	attach_all(4);
	steps = count_steps(0);
	machine.oom_then = machine.oom_is_not_ours = true;
	for (at = 1; at <= steps; at++) {
		machine.cancel_at = 0;
		CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
		machine.cancel_at = at;
		machine.freed = 0;
		CHECK(!ask(0), "step %d: %s", at, machine.log);
		check_gone();
		CHECK(!machine.freed || machine.freed == (BLOCK_EXTENTS - 1) * ELASTIC_EXTENT_PAGES,
		      "step %d: %lu pages", at, machine.freed);
		most = max(most, machine.freed);
	}
	CHECK(most, "who is bound to the node is killed");
	CHECK(!out_of_memory(), "pages that nobody keeps");
}

/* The engine does not come back: somebody has to be killed in the end. */
static void killer_is_held_for_a_while(const void *argument)
{
	attach_all(4);
	nodes[1].node_zones[0].nr_isolate_pageblock = 64;
	elastic_op_begin(&node, true);
	node.draining = machine.guest_is_full = true;
	elastic_interruptible(10000);
	at_work = NULL;
	CHECK(out_of_memory(), "it is not held at all");
	pass(15000);
	CHECK(out_of_memory(), "it is not held long enough");
	pass(6000);
	CHECK(!out_of_memory(), "it is held for ever");
	/* The next attempt is another one. */
	at_work = &the_engine;
	elastic_uninterruptible();
	elastic_interruptible(10000);
	at_work = NULL;
	CHECK(out_of_memory(), "it is not held again");
	at_work = &the_engine;
	elastic_uninterruptible();
	node.draining = false;
	elastic_op_end();
}

static void thread_is_not_stopped_by_its_own_oom(const void *argument)
{
	attach_all(4);
	nodes[1].node_zones[0].nr_isolate_pageblock = 64;
	elastic_op_begin(&node, true);
	node.draining = true;
	machine.guest_is_full = true;
	CHECK(!out_of_memory(), "it would wait for itself");
	CHECK(elastic_out_of_memory(), "the drain goes on");
	elastic_op_end();
}

/* Pages on the lists per CPU: nobody is killed for them, whatever is under way. */
static void relief(const void *argument)
{
	attach_all(4);
	CHECK(!out_of_memory(), "nothing can be had");
	machine.relief = 77;
	CHECK(out_of_memory() == 77, "they are not told of");
	machine.relief = 0;
	CHECK(!out_of_memory(), "nothing can be had any more");
}

static void growth_called_off(const void *argument)
{
	const u32 *new_target = argument;
	int steps, at, rc;

	boot(4);
	steps = count_steps(4 * BLOCK_EXTENTS);
	CHECK(steps > 10, "%d steps", steps);
	machine.new_target = *new_target;
	for (at = 1; at <= steps; at++) {
		machine.cancel_at = 0;
		CHECK(!ask(0), "%s", machine.log);
		check_gone();
		machine.cancel_at = at;
		rc = ask(4 * BLOCK_EXTENTS);
		check_books();
		if (!node.target) {
			CHECK(!rc && !*new_target, "step %d: %d", at, rc);
			check_gone();
		} else if (!rc && node.target == *new_target) {
			check_online(*new_target);
		}
		/* Whatever it was, the next request is met. */
		machine.cancel_at = 0;
		CHECK(!ask(4 * BLOCK_EXTENTS) || elastic_node_settled(&node),
		      "%s", machine.log);
		check_online(4 * BLOCK_EXTENTS);
	}
}

static void stuck_blocks_do_not_add_up(const void *argument)
{
	long long began;
	unsigned int i;
	int rc;

	attach_all(MAX_BLOCKS);
	memset(machine.stuck, true, sizeof(machine.stuck));
	began = machine.clock;
	rc = ask(0);
	CHECK(rc == -EBUSY, "%d", rc);
	CHECK(node.state == ELASTIC_RESIDUAL, "%s", elastic_state_name(node.state));
	CHECK(machine.clock - began < 45000, "%lld ms for %u blocks",
	      machine.clock - began, MAX_BLOCKS);
	check_books();

	/* What is not stuck any more leaves. */
	for (i = 0; i < MAX_BLOCKS; i += 2)
		machine.stuck[i] = false;
	rc = ask(0);
	CHECK(rc == -EBUSY, "%d", rc);
	/* Of the others, their struct pages. */
	CHECK(elastic_populated(&node) == MAX_BLOCKS / 2,
	      "%u extents are left", elastic_populated(&node));
	memset(machine.stuck, false, sizeof(machine.stuck));
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* A block that does not leave though nobody sees why costs a tick each. */
static void unseen_stuck_blocks_do_not_add_up(const void *argument)
{
	long long began;

	attach_all(MAX_BLOCKS);
	memset(machine.stuck, true, sizeof(machine.stuck));
	machine.unseen = true;
	began = machine.clock;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(machine.clock - began < 45000, "%lld ms for %u blocks",
	      machine.clock - began, MAX_BLOCKS);
	check_books();
	memset(machine.stuck, false, sizeof(machine.stuck));
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* The same of a node that stays: what fails has its time, however many they are. */
static void shrink_of_unseen_stuck_blocks(const void *argument)
{
	unsigned int extent;
	long long began;

	attach_all(MAX_BLOCKS);
	memset(machine.stuck, true, sizeof(machine.stuck));
	for (extent = 0; extent < MAX_EXTENTS; extent++)
		machine.busy[extent] = true;
	machine.unseen = true;
	began = machine.clock;
	CHECK(ask(BLOCK_EXTENTS) == -EBUSY, "%s", machine.log);
	CHECK(machine.clock - began < 45000, "%lld ms for %u blocks",
	      machine.clock - began, MAX_BLOCKS);
	check_online(MAX_BLOCKS * BLOCK_EXTENTS);
}

/* With no time left a block still gets a moment, in which it leaves. */
static void late_blocks_leave(const void *argument)
{
	unsigned int block;

	attach_all(16);
	for (block = 10; block < 14; block++)
		machine.stuck[block] = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(elastic_populated(&node) == 4, "%u extents are left",
	      elastic_populated(&node));
}

/*
 * Others have used up the time, and a machine that is slow offlines nothing in a
 * moment: blocks in which nothing is in use leave once they have been squeezed.
 */
static void hollow_blocks_leave(const void *argument)
{
	unsigned int block;

	attach_all(8);
	machine.offline_ms = 600;
	for (block = 5; block < 8; block++)
		machine.stuck[block] = machine.busy[block * BLOCK_EXTENTS + 9] = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	/* Of the others, their struct pages and what is stuck. */
	CHECK(elastic_populated(&node) == 6, "%u extents are left: %s",
	      elastic_populated(&node), machine.log);
	check_books();
}

/* What kept them is gone when all is squeezed: then the node leaves, too. */
static void hollow_node_leaves(const void *argument)
{
	attach_all(4);
	machine.stuck[1] = machine.stuck[2] = machine.stuck[3] = true;
	machine.stuck_until = machine.clock + 32000;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
	CHECK(!node.error[0] && !node.reason[0], "'%s'", node.error);
}

/*
 * The memory of another host: whoever walks the struct pages of a block waits for
 * each page of them, in nobody's way, so an attempt has longer.
 */
static void slow_memory_leaves(const void *argument)
{
	attach_all(4);
	machine.look_ms = 10;
	machine.offline_ms = 20000;	/* 512 pages of them, four times */
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* What slow memory takes is not the time of what is stuck: that has its three attempts. */
static void slow_memory_that_is_stuck(const void *argument)
{
	attach_all(4);
	machine.look_ms = 10;
	machine.stuck[3] = true;
	machine.stuck_until = machine.clock + 150000;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* Much slower than it can be: the limits hold. */
static void slow_memory_has_a_limit(const void *argument)
{
	attach_all(4);
	machine.look_ms = 100;
	machine.stuck[3] = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(elastic_populated(&node) == 1, "%u extents are left", elastic_populated(&node));
	CHECK(machine.clock > 100000 && machine.clock < 1200000, "%lld ms", machine.clock);
	check_books();
}

/* xenstored does not answer: the ticker hangs, the limit holds. */
static void xenstore_stalls(const void *argument)
{
	attach_all(4);
	machine.stuck[3] = true;
	machine.xenstore_stalls = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(machine.clock < 60000, "%lld ms", machine.clock);
	CHECK(elastic_populated(&node) == 1, "%u extents are left",
	      elastic_populated(&node));
	check_books();
}

/* Each extent keeps the balloon busy for a while; all of them are many. */
static void balloon_has_a_limit(const void *argument)
{
	long long began;
	int rc;

	attach_all(MAX_BLOCKS);
	memset(machine.busy, true, sizeof(machine.busy));
	began = machine.clock;
	rc = ask(BLOCK_EXTENTS);
	CHECK(rc == -EBUSY, "%d", rc);
	CHECK(machine.clock - began < 35000, "a shrink: %lld ms",
	      machine.clock - began);
	check_online(MAX_BLOCKS * BLOCK_EXTENTS);

	memset(machine.stuck, true, sizeof(machine.stuck));
	began = machine.clock;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(machine.clock - began < 60000, "what is left: %lld ms",
	      machine.clock - began);
	check_books();
}

/* What is left of a node is squeezed; a new target ends that at once. */
static void squeeze_is_called_off(const void *argument)
{
	int steps, at;

	attach_all(8);
	memset(machine.stuck, true, sizeof(machine.stuck));
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	steps = machine.steps;
	CHECK(elastic_populated(&node) == 8, "%u extents are left",
	      elastic_populated(&node));
	machine.new_target = 8 * BLOCK_EXTENTS;
	/* The last steps are the squeezing: a look and a call a block. */
	for (at = steps - 14; at <= steps; at++) {
		machine.cancel_at = 0;
		CHECK(!ask(8 * BLOCK_EXTENTS), "%s", machine.log);
		machine.cancel_at = at;
		CHECK(ask(0) == -EBUSY, "%s", machine.log);
		CHECK(machine.steps <= at + 2, "%d steps after the new target",
		      machine.steps - at);
		check_books();
	}
}

static void one_stuck_block_is_waited_for(const void *argument)
{
	attach_all(4);
	machine.stuck[2] = machine.busy[2 * BLOCK_EXTENTS + 5] = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	/* Its struct pages, and the extent that the pages are in. */
	CHECK(elastic_populated(&node) == 2, "%u extents are left",
	      elastic_populated(&node));
	CHECK(machine.clock >= 10000, "given up after %lld ms", machine.clock);
	CHECK(strstr(node.error, "pages of the test"), "'%s'", node.error);
	CHECK(node.draining, "new pages may land beside the stuck ones");
	check_books();
}

static void elsewhere(const void *argument)
{
	machine.elsewhere = true;
	attach_all(4);
	check_online(4 * BLOCK_EXTENTS);
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

static void cpu_comes_back(const void *argument)
{
	attach_all(4);
	machine.cpu_comes_back = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(node.state == ELASTIC_RESIDUAL, "%s", elastic_state_name(node.state));
	CHECK(!machine.memory, "%u extents are left", machine.memory);
	CHECK(!strcmp(node.reason, "vCPU 2 is online again"), "'%s'", node.reason);
	CHECK(strstr(node.error, "vCPU 2"), "'%s'", node.error);
	machine.cpu_comes_back = false;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
	CHECK(!node.reason[0], "'%s'", node.reason);
}

static void refused_extents(const void *argument)
{
	const bool *reattach = argument;

	attach_all(4);
	machine.refuses[5] = machine.refuses[70] = machine.refuses[250] = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(node.state == ELASTIC_RESIDUAL, "%s", elastic_state_name(node.state));
	CHECK(elastic_populated(&node) == 3, "%u extents", elastic_populated(&node));
	CHECK(!strcmp(node.reason, "Xen does not take back 3 extents"), "'%s'",
	      node.reason);
	check_books();

	machine.refuses[70] = false;
	if (*reattach) {
		/* The two that are there still are used, not asked for. */
		CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
		check_online(4 * BLOCK_EXTENTS);
	}
	machine.refuses[5] = machine.refuses[250] = false;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

static void refused_and_no_room(const void *argument)
{
	attach_all(4);
	machine.refuses[70] = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	machine.room = BLOCK_EXTENTS + 3;
	CHECK(ask(4 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	check_books();
	CHECK(elastic_populated(&node) == 1, "%u extents", elastic_populated(&node));
	machine.refuses[70] = false;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* Another kernel had the node; this one comes by kexec and knows of nothing. */
static void memory_of_a_kernel_before(const void *argument)
{
	give_extents(0, 100);
	machine.left_behind = elastic_kib(100);
	boot(4);
	CHECK(!machine.memory, "%u extents are left", machine.memory);
	CHECK(node.state == ELASTIC_OFFLINE, "%s", elastic_state_name(node.state));
	CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
	check_online(4 * BLOCK_EXTENTS);
}

/* ... and Xen keeps some of it, or has some of it already. */
static void memory_that_a_kernel_before_cannot_give_back(const void *argument)
{
	const bool *reattach = argument;

	give_extents(0, 100);
	machine.refuses[7] = true;
	machine.refuses_page[9] = 100 + 1;
	lose_pages(20, 0, 1);
	machine.left_behind = elastic_kib(100);
	boot(4);
	CHECK(node.state == ELASTIC_RESIDUAL, "%s", elastic_state_name(node.state));
	CHECK(strstr(machine.log, "left 204800 KiB, 200704 KiB went back"), "%s", machine.log);
	CHECK(elastic_populated(&node) == 2 && machine.pages[9] == 1, "%u extents, %u pages",
	      elastic_populated(&node), machine.pages[9]);
	check_books();
	if (*reattach) {
		CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
		check_online(4 * BLOCK_EXTENTS);
	}
	machine.refuses[7] = false;
	machine.refuses_page[9] = 0;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* ... and Xen does not say what it keeps: it may be any that it has not taken. */
static void memory_of_a_kernel_before_that_nobody_knows(const void *argument)
{
	give_extents(0, 100);
	machine.refuses[70] = true;
	machine.left_behind = elastic_kib(100);
	machine.no_types = true;
	boot(4);
	CHECK(node.state == ELASTIC_RESIDUAL, "%s", elastic_state_name(node.state));
	CHECK(test_bit(70, node.torn) && test_bit(200, node.torn) && !test_bit(69, node.populated),
	      "it can be asked for again");
	/* Whoever asks for page 70 twice is noticed by the machine. */
	CHECK(ask(4 * BLOCK_EXTENTS) == -ENOSYS, "%s", machine.log);
	machine.no_types = false;
	CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
	check_online(4 * BLOCK_EXTENTS);
	machine.refuses[70] = false;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* ---- Xen stops within an extent ---- */

/* At any page: what it has by then comes back, and the extent is used as before. */
static void torn_and_mended(const void *argument)
{
	static const unsigned int at[] = { 0, 1, 100, 510, 511 };
	unsigned int i;

	machine.elsewhere = *(const bool *)argument;
	attach_all(4);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		machine.refuses_page[240] = at[i] + 1;
		node.nr_split = 0;
		CHECK(!ask(256 - 30), "page %u: %s", at[i], machine.log);
		check_online(256 - 30);
		CHECK(machine.pages[240] == ELASTIC_EXTENT_PAGES && !machine.in_balloon[240],
		      "page %u: %u pages", at[i], machine.pages[240]);
		CHECK(!node.nr_split == !at[i], "page %u: %llu extents were in pieces", at[i],
		      (unsigned long long)node.nr_split);
		CHECK(!ask(256), "page %u: %s", at[i], machine.log);
		check_online(256);
	}
	machine.refuses_page[240] = 0;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* A part of it was not there; or all of it. */
static void torn_by_others(const void *argument)
{
	attach_all(4);
	lose_pages(240, 300, 310);
	lose_pages(241, 0, ELASTIC_EXTENT_PAGES);
	CHECK(!ask(256 - 30), "%s", machine.log);
	check_online(256 - 30);
	CHECK(node.nr_split == 1, "%llu extents were in pieces", (unsigned long long)node.nr_split);
	CHECK(!machine.pages[241] && machine.in_balloon[241], "%u pages", machine.pages[241]);
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

static void tear(int pages_left)
{
	attach_all(4);
	machine.refuses_page[240] = 100 + 1;
	machine.pages_left = pages_left;
	CHECK(!ask(256 - 30), "%s", machine.log);
	check_online(256 - 30);
	CHECK(machine.pages[240] == ELASTIC_EXTENT_PAGES - 100 + pages_left &&
	      machine.in_balloon[240], "%u pages", machine.pages[240]);
}

/* No memory for what Xen has: nobody uses the rest, until there is some. */
static void torn_for_a_while(const void *argument)
{
	static const int left[] = { 0, 99 };
	unsigned int i = *(const unsigned int *)argument;

	tear(left[i]);
	CHECK(ask(256 - 20) == -ENOMEM, "%s", machine.log);
	CHECK(strstr(node.error, "in pieces at pfn 0x11e000"), "'%s'", node.error);
	check_online(256 - 30);
	machine.pages_left = -1;
	CHECK(!ask(256 - 20), "%s", machine.log);
	check_online(256 - 20);
	CHECK(machine.pages[240] == ELASTIC_EXTENT_PAGES && !machine.in_balloon[240],
	      "%u pages", machine.pages[240]);
}

/* What is torn goes first, and before anything in use; as far as Xen takes it. */
static void torn_goes_first(const void *argument)
{
	unsigned int moved;

	tear(0);
	CHECK(!ask(256 - 32), "%s", machine.log);
	check_online(256 - 32);
	CHECK(machine.pages[240] == 1, "%u pages", machine.pages[240]);
	machine.refuses_page[240] = 0;
	memset(machine.in_use, true, sizeof(machine.in_use));
	moved = machine.moved;
	CHECK(!ask(256 - 33), "%s", machine.log);
	check_online(256 - 33);
	CHECK(!machine.pages[240] && machine.moved == moved, "%u pages, %u extents were moved",
	      machine.pages[240], machine.moved - moved);
}

/* Also where it is the first of its block. */
static void torn_at_the_begin(const void *argument)
{
	unsigned int moved;

	attach_all(4);
	machine.refuses_page[193] = 100 + 1;
	machine.pages_left = 0;
	CHECK(!ask(256 - 63), "%s", machine.log);
	check_online(256 - 63);
	CHECK(machine.pages[193] == ELASTIC_EXTENT_PAGES - 100, "%u pages", machine.pages[193]);
	machine.refuses_page[193] = 0;
	memset(machine.in_use, true, sizeof(machine.in_use));
	moved = machine.moved;
	CHECK(!ask(256 - 64), "%s", machine.log);
	check_online(256 - 64);
	CHECK(!machine.pages[193] && machine.moved == moved, "%u pages, %u extents were moved",
	      machine.pages[193], machine.moved - moved);
}

/* Once less is wanted what is still torn is not mended, and goes as it is. */
static void torn_and_called_off(const void *argument)
{
	unsigned long long before;

	attach_all(4);
	machine.refuses_page[230] = machine.refuses_page[240] = 100 + 1;
	machine.pages_left = 0;
	CHECK(!ask(256 - 30), "%s", machine.log);
	check_online(256 - 30);
	machine.refuses_page[230] = machine.refuses_page[240] = 0;
	machine.pages_left = -1;
	machine.cancel_at = 2;	/* at its first page */
	machine.new_target = 256 - 31;
	before = node.nr_taken_free;
	CHECK(!ask(256 - 20), "%s", machine.log);
	check_online(256 - 31);
	CHECK(machine.pages[230] == ELASTIC_EXTENT_PAGES && !machine.pages[240] &&
	      node.nr_taken_free == before, "%u and %u pages, %llu extents were free", machine.pages[230],
	      machine.pages[240], (unsigned long long)node.nr_taken_free - before);
	machine.cancel_at = 0;
	CHECK(!ask(256 - 20), "%s", machine.log);
	check_online(256 - 20);
}

/* Whoever moves what is before and behind it leaves it alone. */
static void torn_among_others(const void *argument)
{
	attach_all(4);
	machine.in_use[239] = machine.in_use[241] = true;
	machine.refuses_page[240] = 100 + 1;
	machine.pages_left = 0;
	CHECK(!ask(256 - 30), "%s", machine.log);
	check_online(256 - 30);
	memset(machine.in_use, true, sizeof(machine.in_use));
	CHECK(!ask(256 - 34), "%s", machine.log);
	check_online(256 - 34);
	CHECK(!machine.has_memory[239] && machine.pages[240] == 1 && !machine.has_memory[241] &&
	      machine.moved == 4, "%u pages, %u extents were moved", machine.pages[240], machine.moved);
}

/* Of two, one, and of free memory the rest; or none after the first if it is called off. */
static void torn_as_many_as_wanted(const void *argument)
{
	const bool *called_off = argument;
	unsigned long long before;

	attach_all(4);
	machine.refuses_page[230] = machine.refuses_page[240] = 100 + 1;
	machine.pages_left = 0;
	CHECK(!ask(256 - 30), "%s", machine.log);
	check_online(256 - 30);
	machine.refuses_page[230] = machine.refuses_page[240] = 0;
	machine.cancel_at = *called_off ? 2 : 0;	/* at its first page */
	machine.new_target = 256 - 30;
	CHECK(ask(256 - (*called_off ? 40 : 31)) == (*called_off ? -ECANCELED : 0), "%s", machine.log);
	check_online(256 - 31);
	CHECK(!machine.pages[230] && machine.pages[240] == ELASTIC_EXTENT_PAGES - 100, "%u and %u pages",
	      machine.pages[230], machine.pages[240]);
	machine.cancel_at = 0;
	before = node.nr_taken_free;
	CHECK(!ask(256 - 33), "%s", machine.log);
	check_online(256 - 33);
	CHECK(!machine.pages[240] && node.nr_taken_free == before + 1, "%u pages, %llu were free",
	      machine.pages[240], (unsigned long long)node.nr_taken_free - before);
}

static void torn_and_detached(const void *argument)
{
	machine.in_use[239] = machine.in_use[241] = true;
	tear(0);
	machine.refuses_page[240] = 0;
	machine.pages_left = -1;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
	CHECK(!node.nr_split, "it was mended first");
}

/* Somebody takes its block offline, and back: what is torn is not online by that. */
static void torn_and_onlined_again(const void *argument)
{
	struct memory_block *block = &machine.blocks[3];

	tear(0);
	lock_device_hotplug();
	CHECK(!device_offline(&block->dev), "it stays");
	block->online_type = MMOP_ONLINE_MOVABLE;
	CHECK(!device_online(&block->dev), "it stays offline");
	unlock_device_hotplug();
	CHECK(machine.in_balloon[240] && !machine.in_balloon[241 - 64], "in use");
	check_online(256 - 30);
}

/* Of a block that has left, of its struct pages, too. */
static void torn_stray(const void *argument)
{
	const unsigned int extent = *(const unsigned int *)argument;

	attach_all(4);
	machine.refuses_page[extent] = 100 + 1;
	machine.pages_left = 0;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(node.state == ELASTIC_RESIDUAL && elastic_populated(&node) == 1, "%s, %u extents",
	      elastic_state_name(node.state), elastic_populated(&node));
	CHECK(!strcmp(node.reason, "Xen does not take back 1 extents"), "'%s'", node.reason);
	CHECK(machine.pages[extent] == 1, "%u pages", machine.pages[extent]);
	check_books();
	CHECK(ask(256) == -ENOMEM, "%s", machine.log);
	CHECK(strstr(node.error, "in pieces"), "'%s'", node.error);
	CHECK(machine.pages[extent] == 1, "%u pages", machine.pages[extent]);
	check_books();
	machine.pages_left = -1;
	CHECK(!ask(256), "%s", machine.log);
	check_online(256);
	machine.refuses_page[extent] = 0;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* Xen does not say what is there: then nobody uses it. */
static void torn_for_all_we_know(const void *argument)
{
	attach_all(4);
	machine.no_types = true;
	machine.refuses_page[240] = 1;
	CHECK(!ask(256 - 30), "%s", machine.log);
	check_online(256 - 30);
	CHECK(machine.in_balloon[240], "handed out");
	CHECK(!ask(256 - 32), "%s", machine.log);
	check_online(256 - 32);
	CHECK(ask(256 - 31) == -ENOSYS, "%s", machine.log);
	machine.no_types = false;
	CHECK(!ask(256 - 20), "%s", machine.log);
	check_online(256 - 20);
	CHECK(!machine.in_balloon[240], "not used");
	machine.no_types = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(!strcmp(node.reason, "Xen does not take back 1 extents"), "'%s'", node.reason);
	machine.no_types = false;
	machine.refuses_page[240] = 0;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* Single pages that Xen gave, and does not take back. */
static void torn_as_it_comes(const void *argument)
{
	boot(2);
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	machine.in_pieces = true;
	machine.pages_left = ELASTIC_EXTENT_PAGES + 100;
	machine.refuses_page[65] = 50 + 1;
	CHECK(ask(2 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	/* What Xen has not taken back counts. */
	check_online(BLOCK_EXTENTS);
	CHECK(machine.pages[65] == 50 && !machine.pages[64], "%u and %u pages", machine.pages[65],
	      machine.pages[64]);
	machine.refuses_page[65] = 0;
	CHECK(!ask(BLOCK_EXTENTS - 1), "%s", machine.log);
	check_online(BLOCK_EXTENTS - 1);
	CHECK(!machine.pages[65] && machine.has_memory[BLOCK_EXTENTS - 2], "%u pages", machine.pages[65]);
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* ---- Is there room? ---- */

struct room_case {
	const char *name;
	unsigned long used, cache;		/* pages of the node */
	unsigned long free, cache_elsewhere;	/* pages of the other node */
	bool other_drains;
	int rc;
};

#define BLOCK_PAGES	(BLOCK_EXTENTS * ELASTIC_EXTENT_PAGES)

static const struct room_case rooms[] = {
	{ "room: just enough", BLOCK_PAGES, 0, BLOCK_PAGES },
	{ "room: a page too little", BLOCK_PAGES, 0, BLOCK_PAGES - 1,
	  .rc = -ENOMEM },
	{ "room: cache need not be moved", BLOCK_PAGES, BLOCK_PAGES - 5, 5 },
	{ "room: half of the cache elsewhere", BLOCK_PAGES, 0, 7,
	  2 * (BLOCK_PAGES - 7) },
	{ "room: less than half of it", BLOCK_PAGES, 0, 7,
	  2 * (BLOCK_PAGES - 8), .rc = -ENOMEM },
	{ "room: the other node leaves, too", 5, 0, BLOCK_PAGES,
	  .other_drains = true, .rc = -ENOMEM },
};

static void one_room(const void *argument)
{
	const struct room_case *c = argument;
	int versions, rc;

	attach_all(4);
	versions = machine.versions;
	machine.used = c->used;
	machine.cache = c->cache;
	machine.home_free = c->free;
	machine.cache_elsewhere = c->cache_elsewhere;
	if (c->other_drains)
		node_set(0, draining_nodes);
	rc = ask(0);
	if (c->other_drains)
		node_clear(0, draining_nodes);
	if (!c->rc) {
		/* As its blocks leave, the machine has less in use on it. */
		CHECK(rc == 0 || rc == -ENOMEM, "%d", rc);
		CHECK(machine.versions > versions, "'%s'", node.error);
		return;
	}
	CHECK(rc == c->rc, "%d", rc);
	CHECK(!strncmp(node.error, "-12 need ", 9), "'%s'", node.error);
	CHECK(machine.versions == versions, "programs were told of it");
	check_online(4 * BLOCK_EXTENTS);
}

/* ---- What programs and Xen are told ---- */

static void contract(const void *argument)
{
	attach_all(4);
	CHECK(machine.saw_growing, "nobody was told that it grows");
	CHECK(machine.address_bits == (2 << 8 | 1 << 17 | 1 << 18),
	      "memory of any node: %#x", machine.address_bits);
	CHECK(machine.add_flags == (MHP_MERGE_RESOURCE | MHP_NID_IS_MGID |
				    MHP_MEMMAP_ON_MEMORY | MHP_STAY_OFFLINE),
	      "%#x", machine.add_flags);
	CHECK(!ask(0), "%s", machine.log);
	CHECK(machine.told_of_drain, "nobody was told that it leaves");
	CHECK(machine.wait_for && machine.wait_for < machine.versions,
	      "waited for version %llu of %d",
	      (unsigned long long)machine.wait_for, machine.versions);
	CHECK(machine.grace_ms == 1234, "a grace of %u ms", machine.grace_ms);
	CHECK(!machine.lowest_first, "the highest block is not the first");
}

static void errors(const void *argument)
{
	attach_all(2);
	elastic_node_error(&node, -EIO, "%s", "\xe4\n");
	CHECK(!strcmp(node.error, "-5 ??"), "'%s'", node.error);
	elastic_node_error(&node, -EBUSY, "later");
	CHECK(!strcmp(node.error, "-5 ??"), "'%s'", node.error);
	elastic_node_error_too(&node, -ENOMEM, "as well");
	CHECK(!strcmp(node.error, "-5 ??; -12 as well"), "'%s'", node.error);
	/* However long the first one is, and both are one text. */
	memset(node.error, 'x', sizeof(node.error) - 1);
	elastic_node_error_too(&node, -ENOMEM, "as well");
	CHECK(!strcmp(node.error + sizeof(node.error) - 15, "x; -12 as well") && strlen(node.error) == 200,
	      "'%s'", node.error);
	CHECK(!ask(0), "%s", machine.log);
	CHECK(!node.error[0], "'%s'", node.error);
	node.target = 5;
	CHECK(!elastic_node_settled(&node), "it has no memory");
	node.bad_target = true;
	CHECK(elastic_node_settled(&node), "the target was nonsense");
}

static void time_limits(const void *argument)
{
	long long began;

	attach_all(4);
	machine.stuck[2] = machine.busy[2 * BLOCK_EXTENTS + 5] = true;
	began = machine.clock;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	began = machine.clock - began;
	CHECK(began > 20000 && began < 21000, "%lld ms for two attempts", began);
	elastic_op_begin(&node, true);
	elastic_interruptible(100);
	pass(200);
	CHECK(elastic_uninterruptible() == -ETIMEDOUT, "no reason for a signal");
	elastic_op_end();
}

/* ---- Something fails ---- */

struct failure {
	const char *name;
	enum part part;
	int at;
	const char *error;
};

static const struct failure failures[] = {
	{ "failure: Xen has no memory", PART_POPULATE, 170, "-12 Xen gave" },
	{ "failure: a block cannot be added", PART_ADD, 2, "-12 block 2" },
	{ "failure: a block cannot be onlined", PART_ONLINE, 2, "-12 block 2" },
	{ "failure: a vCPU stays down", PART_CPUS_UP, 1, "-5 vCPU 2" },
};

/* An absent node stays absent, one of two blocks stays one of two blocks. */
static void one_failure(const void *argument)
{
	const struct failure *f = argument;
	int versions;

	boot(4);
	machine.fails[f->part] = f->part == PART_CPUS_UP ? 1 : f->at + 1;
	CHECK(ask(4 * BLOCK_EXTENTS) < 0, "%s", machine.log);
	CHECK(strncmp(node.error, f->error, 4) == 0, "'%s'", node.error);
	check_books();
	CHECK(node.state == ELASTIC_OFFLINE && !machine.memory,
	      "%s, %u extents", elastic_state_name(node.state), machine.memory);
	CHECK(!machine.told_of_drain && !node.nr_attached, "programs never heard of it");
	memset(machine.fails, 0, sizeof(machine.fails));

	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	versions = machine.versions;
	machine.fails[f->part] = f->part == PART_POPULATE ? 70 :
				 f->part == PART_CPUS_UP ? 1 : 2;
	CHECK(ask(4 * BLOCK_EXTENTS) < 0, "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS);
	CHECK(!machine.plugged[2] && !machine.plugged[3], "a block is left");
	CHECK(elastic_block_populated(&node, 0) == BLOCK_EXTENTS &&
	      elastic_block_populated(&node, 1) == BLOCK_EXTENTS,
	      "the wrong memory was given back");
	CHECK(machine.versions > versions, "programs were not told");
	memset(machine.fails, 0, sizeof(machine.fails));
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* They start as the node has memory, the first of it or what has stayed. */
static void cpus_with_the_first_block(const void *argument)
{
	boot(4);
	CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
	check_online(4 * BLOCK_EXTENTS);
	CHECK(machine.cpus_with == BLOCK_EXTENTS, "%u extents", machine.cpus_with);
	CHECK(node.phase_us[ELASTIC_PH_CPUS] == CPUS_MS * 1000, "%llu us", (unsigned long long)node.phase_us[ELASTIC_PH_CPUS]);
	CHECK(node.nr_attached == 1, "%llu attaches", (unsigned long long)node.nr_attached);
	machine.busy[BLOCK_EXTENTS] = machine.stuck[1] = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(node.state == ELASTIC_RESIDUAL && !machine.cpus_up, "%s", elastic_state_name(node.state));
	CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
	check_online(4 * BLOCK_EXTENTS);
	CHECK(machine.cpus_with <= BLOCK_EXTENTS, "%u extents", machine.cpus_with);
	machine.busy[BLOCK_EXTENTS + 1] = true;
	CHECK(ask(0) == -EBUSY && !machine.cpus_up, "%s", machine.log);
	machine.busy[BLOCK_EXTENTS + 1] = false;
	CHECK(!ask(elastic_populated(&node) - 1), "%s", machine.log);
	CHECK(node.state == ELASTIC_ONLINE && machine.cpus_up, "less than what has stayed, without vCPUs");
}

/* Then the other blocks need not come. */
static void cpus_fail_before_memory(const void *argument)
{
	boot(4);
	machine.fails[PART_CPUS_UP] = 1;
	machine.fails[PART_ADD] = 9;
	CHECK(ask(4 * BLOCK_EXTENTS) == -EIO, "%s", machine.log);
	CHECK(!strcmp(node.error, "-5 vCPU 2 stays down"), "'%s'", node.error);
	CHECK(machine.fails[PART_ADD] == 8, "%d blocks came", 9 - machine.fails[PART_ADD]);
	check_gone();
}

/* A growth that is to be a smaller size by now takes what has room elsewhere, or nothing. */
static void smaller_without_room(const void *argument)
{
	const bool *known = argument;
	unsigned long long need;
	int at, met = 0, rc;

	boot(4);
	for (at = 1; at < 40; at++) {
		machine.home_free = machine.cancel_at = 0;
		if (*known || machine.memory)
			CHECK(!ask(*known ? 2 * BLOCK_EXTENTS : 0), "%s", machine.log);
		machine.told_of_drain = false;
		machine.home_free = 1;
		machine.cancel_at = at;
		machine.new_target = BLOCK_EXTENTS;
		rc = ask(4 * BLOCK_EXTENTS);
		CHECK(!machine.told_of_drain, "what nobody asked for is drained");
		if (rc != -ENOMEM)
			continue;
		met++;
		check_online(elastic_populated(&node));
		CHECK(elastic_populated(&node) > BLOCK_EXTENTS && elastic_populated(&node) % BLOCK_EXTENTS == 0,
		      "%u extents", elastic_populated(&node));
		CHECK(sscanf(node.error, "-12 need %llu KiB, free elsewhere 4 KiB", &need) == 1 &&
		      need == elastic_kib(elastic_populated(&node) - BLOCK_EXTENTS),
		      "'%s', %u extents", node.error, elastic_populated(&node));
	}
	CHECK(met > 2, "%d of its steps", met);
	machine.home_free = 0;
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	check_online(BLOCK_EXTENTS);
}

/* It is called off when the guest needs the memory, as any other. */
static void smaller_and_short_of_room(const void *argument)
{
	attach_all(2);
	CHECK(!elastic_short_of_room(&node), "nothing is to leave");
	machine.home_free = 1;
	node.goal = BLOCK_EXTENTS;
	CHECK(elastic_short_of_room(&node), "a block has room on a page");
	node.goal = 0;
	CHECK(!elastic_short_of_room(&node), "it is not drained yet");
}

/* An attach of which less is wanted, and which cannot be: programs may use it by now. */
static void smaller_and_stuck(const void *argument)
{
	int at, met = 0, rc;

	boot(4);
	for (at = 1; at < 40; at++) {
		machine.cancel_at = 0;
		memset(machine.busy, false, sizeof(machine.busy));
		if (machine.memory)
			CHECK(!ask(0), "%s", machine.log);
		machine.told_of_drain = false;
		node.nr_attached = 0;
		memset(machine.busy, true, 2 * BLOCK_EXTENTS);
		machine.cancel_at = at;
		machine.new_target = BLOCK_EXTENTS;
		rc = ask(4 * BLOCK_EXTENTS);
		CHECK(!machine.told_of_drain, "nobody asked for a drain");
		CHECK(node.state == ELASTIC_ONLINE && node.nr_attached == 1, "%s", elastic_state_name(node.state));
		check_online(elastic_populated(&node));
		met += rc == -EBUSY;
		CHECK(elastic_populated(&node) == (rc ? 2 * BLOCK_EXTENTS : node.target), "%u extents", elastic_populated(&node));
		CHECK(!rc || !strncmp(node.error, "-16 131072 KiB of", 17), "'%s'", node.error);
	}
	CHECK(met > 2, "%d of its steps", met);
}

/* A growth of what programs know, called off for good: they are told, and it goes. */
static void known_growth_is_called_off(const void *argument)
{
	int at;

	boot(4);
	for (at = 1; at < 5; at++) {
		machine.cancel_at = 0;
		CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
		machine.told_of_drain = false;
		machine.cancel_at = at;
		machine.new_target = 0;
		CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
		CHECK(machine.told_of_drain, "programs were not told");
		check_gone();
	}
}

/* The first block fails, and there is another target: no memory, so no vCPUs. */
static void another_target_without_memory(const void *argument)
{
	int at;

	for (at = 1; at < 5; at++) {
		boot(4);
		machine.fails[PART_POPULATE] = 1;
		machine.cancel_at = at;
		machine.new_target = 2 * BLOCK_EXTENTS;
		CHECK(ask(4 * BLOCK_EXTENTS) == -ENOMEM || at == 1, "%s", machine.log);
		if (at > 1)
			check_gone();
	}
}

/* All that there is of it is what Xen does not take back: that is no node. */
static void no_more_than_what_xen_keeps(const void *argument)
{
	attach_all(2);
	machine.refuses[70] = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(ask(1) == -EBUSY, "%s", machine.log);
	CHECK(node.state == ELASTIC_RESIDUAL && !machine.cpus_up, "%s", elastic_state_name(node.state));
	CHECK(!strcmp(node.error, "-16 Xen does not take back 2048 KiB, and more was not asked for"), "'%s'", node.error);

	/* Less than that is none, either. */
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	machine.refuses[71] = true;
	CHECK(ask(0) == -EBUSY && elastic_populated(&node) == 2, "%s", machine.log);
	CHECK(ask(1) == -EBUSY, "%s", machine.log);
	CHECK(node.state == ELASTIC_RESIDUAL && !machine.cpus_up, "%s", elastic_state_name(node.state));
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	check_online(BLOCK_EXTENTS);
}

/* So many extents, in blocks whose struct pages are some of them, as those of large guests. */
static void boot_with_extents(u32 extents, u32 memmap)
{
	boot(DIV_ROUND_UP(extents, BLOCK_EXTENTS));
	CHECK(!elastic_range_init(&node.range, START, extents * ELASTIC_EXTENT_BYTES, BLOCK_BYTES,
				  memmap * ELASTIC_EXTENT_BYTES), "range");
}

static void boot_with_memmap(unsigned int blocks, u32 memmap)
{
	boot_with_extents(blocks * BLOCK_EXTENTS, memmap);
}

/* ---- What an operation leaves when it can go neither on nor back ---- */

static void check_residue(u32 extents)
{
	check_books();
	CHECK(node.state == ELASTIC_RESIDUAL, "%s", elastic_state_name(node.state));
	CHECK(elastic_populated(&node) == extents, "%u extents", elastic_populated(&node));
	CHECK(!machine.cpus_up && node.draining && node.reason[0], "it is in use");
}

static void error_is(const char *error)
{
	CHECK(!strcmp(node.error, error), "'%s'", node.error);
}

/* A residue of as many extents, which are stuck, in block 1. */
static void leave_in_block_1(unsigned int extents)
{
	attach_all(4);
	machine.stuck[1] = true;
	memset(&machine.busy[BLOCK_EXTENTS + 1], true, extents - 1);
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	check_residue(extents);
}

static void nothing_is_stuck(void)
{
	memset(machine.stuck, false, sizeof(machine.stuck));
	memset(machine.busy, false, sizeof(machine.busy));
}

struct kept {
	u32 memmap;		/* extents of a block's struct pages */
	u32 kept;		/* extents that Xen keeps of the last block */
	u32 target;
};

/* The last block goes, and Xen keeps some; then no more is wanted than that, or less. */
static void shrink_to_what_xen_keeps(const void *argument)
{
	const struct kept *c = argument;

	boot_with_memmap(3, c->memmap);
	CHECK(!ask(3 * BLOCK_EXTENTS), "%s", machine.log);
	memset(&machine.refuses[2 * BLOCK_EXTENTS + c->memmap], true, c->kept);
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS);
	machine.told_of_drain = false;
	CHECK(ask(c->target) == -EBUSY, "%s", machine.log);
	check_residue(c->kept);
	CHECK(strstr(node.error, "Xen does not take back") && machine.told_of_drain, "'%s'", node.error);
	memset(machine.refuses, false, sizeof(machine.refuses));
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS);
}

/* The same of a growth that is to be so small by then. */
static void growth_to_what_xen_keeps(const void *argument)
{
	const u32 *target = argument;
	int at, met = 0;

	boot(4);
	for (at = 1; at < 7; at++) {
		memset(machine.refuses, false, sizeof(machine.refuses));
		CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
		machine.refuses[70] = machine.refuses[71] = true;
		machine.cancel_at = at;
		machine.new_target = *target;
		if (ask(4 * BLOCK_EXTENTS) == -EBUSY) {
			met++;
			check_residue(2);
			error_is("-16 Xen does not take back 4096 KiB, and more was not asked for");
		}
		machine.cancel_at = 0;
		memset(machine.refuses, false, sizeof(machine.refuses));
		CHECK(!ask(0), "%s", machine.log);
		check_gone();
	}
	CHECK(met > 2, "%d of its steps", met);
}

/* What there was before is as much as Xen keeps of what came: the undo must not stop there. */
static void undone_to_what_xen_keeps(const void *argument)
{
	boot(4);
	CHECK(!ask(2), "%s", machine.log);
	machine.refuses[70] = machine.refuses[71] = true;
	machine.fails[PART_ADD] = 2;
	CHECK(ask(4 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	check_residue(2);
	error_is("-12 block 2 at 0x110000000 cannot be added; "
		 "-16 Xen does not take back 4096 KiB, and more was not asked for");
	CHECK(machine.told_of_drain, "programs were not told");
}

/* A guest whose programs have filled what has come: it stays, and it is said why. */
static void undone_without_room(const void *argument)
{
	boot(4);
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	machine.fails[PART_ADD] = 3;
	machine.home_free = 1;
	CHECK(ask(4 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	check_online(3 * BLOCK_EXTENTS);
	error_is("-12 block 3 at 0x118000000 cannot be added; -12 need 262144 KiB, free elsewhere 4 KiB");
	CHECK(node.nr_failed == 1, "%llu have failed", (unsigned long long)node.nr_failed);
	machine.home_free = 0;
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	check_online(BLOCK_EXTENTS);
}

/* The same of what is stuck in it. */
static void undone_and_stuck(const void *argument)
{
	boot(4);
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	machine.fails[PART_ADD] = 3;
	memset(machine.busy, true, 2 * BLOCK_EXTENTS);
	CHECK(ask(4 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS);
	error_is("-12 block 3 at 0x118000000 cannot be added; "
		 "-16 131072 KiB of 262144 KiB could not be taken: pages of the test");
}

/* The guest needs the memory while it is taken back. */
static void undo_called_off(const void *argument)
{
	static const char why[] = "-12 block 3 at 0x118000000 cannot be added; "
				  "-12 called off: the guest ran out of memory";
	int steps, at, met = 0;

	boot(4);
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	machine.fails[PART_ADD] = 3;
	CHECK(ask(4 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	check_online(BLOCK_EXTENTS);
	steps = machine.steps;
	machine.oom_then = true;
	machine.cache_elsewhere = 1UL << 30;
	for (at = 1; at <= steps; at++) {
		machine.cancel_at = 0;
		CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
		machine.cancel_at = at;
		machine.fails[PART_ADD] = 3;
		CHECK(ask(4 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
		check_online(elastic_populated(&node));
		CHECK(elastic_populated(&node) == BLOCK_EXTENTS || !strcmp(node.error, why), "step %d: '%s'", at, node.error);
		met += elastic_populated(&node) > BLOCK_EXTENTS;
	}
	CHECK(met > 3, "%d of %d steps", met, steps);
}

/* An attach that is to be smaller takes memory back: it ends where the guest needs the rest. */
static void take_back_called_off(const void *argument)
{
	const enum reason *reason = argument;
	int at, rc, met = 0;

	boot(4);
	for (at = 1; at < 40; at++) {
		machine.extent_ms = machine.cancel_at = 0;
		if (machine.memory)
			CHECK(!ask(0), "%s", machine.log);
		machine.extent_ms = 1;
		machine.target_at = machine.clock + 100;
		machine.new_target = BLOCK_EXTENTS / 2;
		machine.oom_then = *reason == OOM;
		machine.grows_then = *reason == GUEST_GROWS;
		machine.cache_elsewhere = *reason == OOM ? 1UL << 30 : 0;
		machine.left_free = *reason == OOM ? 1000 : 0;
		machine.cancel_at = at;
		rc = ask(4 * BLOCK_EXTENTS);
		check_online(elastic_populated(&node));
		if (!rc)
			continue;
		CHECK(rc == -ENOMEM && elastic_populated(&node) > BLOCK_EXTENTS / 2, "step %d: %d", at, rc);
		met += !strcmp(node.error, "-12 called off: the guest ran out of memory");
	}
	CHECK(met > 1, "%d of its steps", met);
}

/* Nothing is taken from a guest by what only grows: it is not to blame. */
static void growth_is_not_to_blame(const void *argument)
{
	int steps, at;

	boot(4);
	steps = count_steps(4 * BLOCK_EXTENTS);
	machine.oom_then = true;
	for (at = 1; at <= steps; at++) {
		machine.cancel_at = 0;
		CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
		machine.cancel_at = at;
		CHECK(!ask(4 * BLOCK_EXTENTS), "step %d: %s", at, machine.log);
		check_online(4 * BLOCK_EXTENTS);
	}
}

/* Smaller, and larger again while that is on its way: that is no failure. */
static void larger_while_taken_back(const void *argument)
{
	int at, met = 0;

	boot(4);
	for (at = 1; at < 20; at++) {
		machine.extent_ms = machine.cancel_at = 0;
		if (machine.memory)
			CHECK(!ask(0), "%s", machine.log);
		machine.extent_ms = 1;
		machine.target_at = machine.clock + 100;
		machine.new_target = BLOCK_EXTENTS;
		machine.later_at = at;
		machine.later_target = 3 * BLOCK_EXTENTS;
		CHECK(!ask(4 * BLOCK_EXTENTS) && !node.error[0], "%d steps later: '%s'", at, node.error);
		check_online(node.target);
		met += node.target == 3 * BLOCK_EXTENTS;
	}
	CHECK(met > 1, "%d of its steps", met);
}

/* A vCPU stays up: so does the node, with all of its memory. */
static void cpus_stay_up(const void *argument)
{
	attach_all(4);
	machine.fails[PART_CPUS_DOWN] = 1;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	check_online(4 * BLOCK_EXTENTS);
	error_is("-16 vCPU 2 stays up");
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
	/* Or with what has come of an attach that failed. */
	machine.fails[PART_ADD] = 3;
	machine.fails[PART_CPUS_DOWN] = 1;
	CHECK(ask(4 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS);
	error_is("-12 block 2 at 0x110000000 cannot be added");
	CHECK(node.nr_attached == 2 && node.nr_detached == 1, "%llu have come, %llu have gone",
	      (unsigned long long)node.nr_attached, (unsigned long long)node.nr_detached);
	/* Without memory there is no node for it. */
	nothing_is_stuck();
	machine.cpu_comes_back = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	machine.fails[PART_CPUS_DOWN] = 1;
	CHECK(ask(0) == -EBUSY && node.state == ELASTIC_RESIDUAL, "%s", machine.log);
}

/* A detach is called off, and a vCPU does not come back: it is told behind the reason. */
static void cpus_do_not_come_back(const void *argument)
{
	int at, met = 0;

	attach_all(4);
	for (at = 2; at < 9; at++) {
		machine.cancel_at = 0;
		machine.cpu_stays_down = false;
		/* Whatever size is asked for, they are tried again. */
		CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
		check_online(4 * BLOCK_EXTENTS);
		CHECK(elastic_node_settled(&node), "it is as it should be");
		machine.oom_then = machine.cpu_stays_down = true;
		machine.cancel_at = at;
		if (ask(0) != -ENOMEM || machine.cpus_up)
			continue;
		met++;
		check_books();
		error_is("-12 called off: the guest ran out of memory; -5 vCPU 2 stays down");
	}
	CHECK(met > 3, "%d of its steps", met);
}

/* Another target calls it off: that is reached but for the vCPU, and has failed. */
static void another_size_without_cpus(const void *argument)
{
	const u32 *size = argument;

	boot(4);
	machine.generation = 1;
	machine.target = 4 * BLOCK_EXTENTS;
	wake_engine();
	machine.steps = 0;
	machine.cancel_at = 5;
	machine.new_target = *size;
	machine.cpu_stays_down = true;
	machine.generation++;
	machine.target = 0;
	wake_engine();
	check_books();
	CHECK(machine.happened && elastic_populated(&node) == *size, "%u extents", elastic_populated(&node));
	error_is("-5 vCPU 2 stays down");
	CHECK(node.nr_failed == 1 && !elastic_node_settled(&node), "%llu have failed", (unsigned long long)node.nr_failed);
	/* The same once more, when it can. */
	machine.cpu_stays_down = false;
	machine.generation++;
	wake_engine();
	check_online(*size);
	error_is("");
}

/* A node of two blocks, of which a detach was called off, and a vCPU did not come back. */
static void lose_a_cpu(void)
{
	attach_all(2);
	machine.oom_then = machine.cpu_stays_down = true;
	machine.cancel_at = 3;
	CHECK(ask(0) == -ENOMEM && !machine.cpus_up, "%s", machine.log);
	machine.cancel_at = 0;
}

/* What comes behind it is refused, or undone before they are tried: they are tried all the same, and told of. */
static void refused_without_cpus(const void *argument)
{
	lose_a_cpu();
	machine.home_free = 1;
	CHECK(ask(0) == -ENOMEM, "%s", machine.log);
	error_is("-12 need 131072 KiB, free elsewhere 4 KiB; -5 vCPU 2 stays down");
	CHECK(ask(BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	error_is("-12 need 131072 KiB, free elsewhere 4 KiB; -5 vCPU 2 stays down");
	check_books();
	machine.home_free = 0;
	/* Tried for the growth, and once it is undone, it is one error. */
	CHECK(ask(2 * BLOCK_EXTENTS) == -EIO, "%s", machine.log);
	error_is("-5 vCPU 2 stays down");
	check_books();
	machine.cpu_stays_down = false;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/* A residue whose vCPUs do not come, or that is larger than what is wanted. */
static void residue_without_cpus(const void *argument)
{
	const bool *stuck = argument;

	leave_in_block_1(3);
	if (!*stuck)
		nothing_is_stuck();
	machine.cpu_stays_down = true;
	CHECK(ask(2) == (*stuck ? -EBUSY : -EIO), "%s", machine.log);
	check_residue(*stuck ? 3 : 2);
	machine.cpu_stays_down = false;
	nothing_is_stuck();
	CHECK(!ask(*stuck ? 2 : 4), "%s", machine.log);
	check_online(*stuck ? 2 : 4);
}

/* What came to a residue has to go again. */
static void residue_with_more(const void *argument)
{
	leave_in_block_1(3);
	machine.cpu_stays_down = true;
	CHECK(ask(4 * BLOCK_EXTENTS) == -EIO, "%s", machine.log);
	check_residue(3);
	error_is("-5 vCPU 2 stays down");
}

/* A residue from which an attach can't take what is too much ends as one; told smaller later on it has come. */
static void residue_without_room(const void *argument)
{
	int versions;

	leave_in_block_1(60);
	machine.home_free = 1;
	versions = machine.versions;
	machine.told_of_drain = false;
	CHECK(ask(BLOCK_EXTENTS / 2) == -ENOMEM, "%s", machine.log);
	check_residue(60);
	error_is("-12 need 57344 KiB, free elsewhere 4 KiB");
	CHECK(!machine.told_of_drain && machine.versions == versions + 1, "programs were told of a drain");
	CHECK(node.nr_attached == 1, "%llu have come", (unsigned long long)node.nr_attached);

	machine.cancel_at = 6;
	machine.new_target = BLOCK_EXTENTS;
	CHECK(ask(4 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	check_online(elastic_populated(&node));
	CHECK(elastic_populated(&node) > BLOCK_EXTENTS && node.nr_attached == 2, "%u extents", elastic_populated(&node));
}

/* A residue that was to leave, and is wanted after all: there is none any more. */
static void residue_comes_back(const void *argument)
{
	leave_in_block_1(3);
	machine.cancel_at = 2;
	machine.new_target = 4 * BLOCK_EXTENTS;
	CHECK(ask(0) == -ECANCELED, "%s", machine.log);
	check_online(3);
	CHECK(node.nr_attached == 2, "%llu have come", (unsigned long long)node.nr_attached);
}

/* A known node of which a part could be taken is no failure of all: it stays with the rest. */
static void known_and_taken_in_part(const void *argument)
{
	boot(4);
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	memset(machine.busy, true, 100);
	machine.cancel_at = 3;
	machine.new_target = BLOCK_EXTENTS;
	CHECK(ask(4 * BLOCK_EXTENTS) == -EBUSY, "%s", machine.log);
	check_online(100);
	CHECK(node.nr_attached == 1, "%llu have come", (unsigned long long)node.nr_attached);
}

/* What comes counts once; what grows is there; programs hear of each once. */
static void counted_once(const void *argument)
{
	attach_all(4);
	CHECK(machine.versions == 1, "%d versions", machine.versions);
	CHECK(!ask(32) && !ask(256) && node.nr_attached == 1, "%llu have come", (unsigned long long)node.nr_attached);
	machine.busy[9] = machine.stuck[0] = true;
	CHECK(ask(0) == -EBUSY && node.reason[0], "%s", machine.log);
	CHECK(!ask(256), "%s", machine.log);
	check_online(256);
	CHECK(node.nr_attached == 2, "%llu have come", (unsigned long long)node.nr_attached);

	/* Called off for good, and wanted again while it leaves. */
	nothing_is_stuck();
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
	machine.cancel_at = 6;
	machine.new_target = 0;
	machine.later_at = 3;
	machine.later_target = 4 * BLOCK_EXTENTS;
	CHECK(ask(4 * BLOCK_EXTENTS) == -ECANCELED, "%s", machine.log);
	check_online(elastic_populated(&node));
	CHECK(node.nr_attached == 3, "%llu have come", (unsigned long long)node.nr_attached);
}

/* What Xen takes by now goes first: of what is wanted then, nothing has to be taken. */
static void strays_go_first(const void *argument)
{
	unsigned int extent;

	attach_all(4);
	memset(&machine.refuses[100], true, 70);
	CHECK(ask(0) == -EBUSY && elastic_populated(&node) == 70, "%s", machine.log);
	memset(machine.refuses, false, sizeof(machine.refuses));
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	check_online(BLOCK_EXTENTS);

	/* Of a node that is there, which then is to have more and not less. */
	CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
	memset(&machine.refuses[200], true, 20);
	CHECK(ask(2 * BLOCK_EXTENTS) == 0 && elastic_populated(&node) == 128, "%s", machine.log);
	CHECK(!ask(148), "%s", machine.log);
	check_online(148);
	memset(machine.refuses, false, sizeof(machine.refuses));
	CHECK(!ask(133), "%s", machine.log);
	check_online(133);

	/* Nor does it need room. */
	CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
	memset(&machine.refuses[200], true, 20);
	CHECK(!ask(3 * BLOCK_EXTENTS), "%s", machine.log);
	memset(machine.refuses, false, sizeof(machine.refuses));
	machine.home_free = 1;
	CHECK(!ask(3 * BLOCK_EXTENTS - 20), "%s", machine.log);
	check_online(3 * BLOCK_EXTENTS - 20);
	machine.home_free = 0;

	/* Before what is in use, which can stay. */
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
	CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
	machine.refuses[70] = machine.refuses[200] = true;
	machine.busy[9] = machine.stuck[0] = true;
	CHECK(ask(0) == -EBUSY && elastic_populated(&node) == 4, "%u extents", elastic_populated(&node));
	memset(machine.refuses, false, sizeof(machine.refuses));
	CHECK(!ask(3), "%s", machine.log);
	check_online(3);
	for (extent = BLOCK_EXTENTS; extent < 4 * BLOCK_EXTENTS; extent++)
		CHECK(!test_bit(extent, node.populated), "extent %u was taken for another", extent);
}

/* A residue that is wanted again while the guest is out of memory: that is no reason to call it off. */
static void out_of_memory_as_a_residue_grows(const void *argument)
{
	int at;

	attach_all(4);
	for (at = 1; at < 5; at++) {
		machine.refuses[200] = machine.refuses[140] = true;
		machine.stuck[0] = machine.busy[9] = true;
		CHECK(ask(0) == -EBUSY && node.state == ELASTIC_RESIDUAL, "%s", machine.log);
		memset(machine.refuses, false, sizeof(machine.refuses));
		nothing_is_stuck();
		machine.oom_then = true;
		machine.cancel_at = at;
		CHECK(!ask(4 * BLOCK_EXTENTS), "step %d: '%s'", at, node.error);
		check_online(4 * BLOCK_EXTENTS);
		machine.cancel_at = 0;
		machine.oom_then = false;
	}
}

/* With strays alone it has its new size: what else it lacks nobody asks for. */
static void strays_beside_a_torn_extent(const void *argument)
{
	attach_all(4);
	memset(&machine.refuses[200], true, 20);
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	machine.pages_left = 0;
	machine.refuses_page[80] = 100 + 1;
	memset(&machine.in_use[0], true, 80);
	memset(&machine.in_use[81], true, 2 * BLOCK_EXTENTS - 81);
	CHECK(!ask(2 * BLOCK_EXTENTS - 1), "%s", machine.log);
	CHECK(test_bit(80, node.torn), "it is not torn");
	memset(&machine.refuses[200], false, 20);
	CHECK(!ask(2 * BLOCK_EXTENTS - 21), "'%s'", node.error);
	check_online(2 * BLOCK_EXTENTS - 21);
}

/* What is refused has no effect; nor has a detach that is. */
static void refused_beside_strays(const void *argument)
{
	const u32 *target = argument;

	attach_all(4);
	memset(&machine.refuses[200], true, 20);
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	memset(machine.refuses, false, sizeof(machine.refuses));
	machine.home_free = 1;
	CHECK(ask(*target) == -ENOMEM, "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS);
	/* Xen kept them, so others would have to make up for them. */
	memset(&machine.refuses[200], true, 20);
	CHECK(ask(2 * BLOCK_EXTENTS - 20) == -ENOMEM, "%s", machine.log);
	CHECK(!strncmp(node.error, "-12 need 40960 KiB, ", 20), "'%s'", node.error);
	check_online(2 * BLOCK_EXTENTS);
}

/* A node that has lost a vCPU, which comes with the second try of one command, if there were one. */
static void tried_once_for_a_cpu(const void *argument)
{
	lose_a_cpu();
	machine.cpu_stays_down = false;
	machine.fails[PART_CPUS_UP] = 1;
	CHECK(ask(2 * BLOCK_EXTENTS) == -EIO, "%s", machine.log);
	CHECK(!machine.cpus_up && !elastic_node_settled(&node) && node.error[0],
	      "up %d, '%s'", machine.cpus_up, node.error);
	CHECK(!ask(2 * BLOCK_EXTENTS) && machine.cpus_up && !node.error[0], "'%s'", node.error);
}

/* They have gone, and nobody knows: an attempt that fails says that there are none. */
static void cpus_that_somebody_took(const void *argument)
{
	attach_all(2);
	machine.cpus_up = false;
	machine.cpu_stays_down = true;
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	CHECK(elastic_node_settled(&node), "whoever took them");
	CHECK(ask(2 * BLOCK_EXTENTS) == -EIO, "%s", machine.log);
	node.target = BLOCK_EXTENTS;
	CHECK(!elastic_node_settled(&node), "nobody asks for them");
}

/* A residue is nothing that vCPUs may run on, also of a node that had lost one. */
static void residue_of_a_node_without_cpus(const void *argument)
{
	lose_a_cpu();
	machine.cpu_stays_down = false;
	machine.stuck[0] = machine.busy[5] = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	check_residue(2);
}

/* Its vCPUs have come before it is known that there is no more memory: it is none any more. */
static void residue_that_gets_no_more(const void *argument)
{
	leave_in_block_1(BLOCK_EXTENTS);
	machine.room = 0;
	CHECK(ask(4 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	check_residue(BLOCK_EXTENTS);
	nothing_is_stuck();
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
	CHECK(node.nr_detached == 1, "%llu have gone", (unsigned long long)node.nr_detached);
}

/* What follows the first error has the room that this leaves, and a part of it at least. */
static void errors_have_room(const void *argument)
{
	attach_all(1);
	node.error[0] = '\0';
	elastic_node_error(&node, -ENOMEM, "block 3 at 0x118000000 cannot be added");
	elastic_node_error_too(&node, -EBUSY, "%llu KiB of %llu KiB could not be taken: %s",
			       10485760ULL, 20971520ULL, "pinned: 123456 pages, pid 31812 (postgres_worker)");
	CHECK(strstr(node.error, "(postgres_worker)"), "'%s'", node.error);
	elastic_node_error_too(&node, -EIO, "vCPU 2 does not come up");
	elastic_node_error_too(&node, -EIO, "vCPU 2 does not come up");
	CHECK(strstr(node.error, "; -5 vCPU 2 does not come up"), "'%s'", node.error);
	CHECK(!strstr(strstr(node.error, "vCPU 2") + 1, "vCPU 2"), "'%s'", node.error);
}

/* What an operation heard of on its way it has tried: the engine does not begin it anew. */
static void tried_once(const void *argument)
{
	const u32 *size = argument;
	long long began;

	boot(4);
	machine.generation = 1;
	machine.target = 4 * BLOCK_EXTENTS;
	machine.cancel_at = 6;
	machine.new_target = *size;
	machine.stuck[0] = true;
	memset(machine.busy, true, 2 * BLOCK_EXTENTS);
	began = machine.clock;
	wake_engine();
	CHECK(machine.happened && node.target == *size && !elastic_node_settled(&node), "%s", machine.log);
	CHECK(node.nr_failed == 1, "%llu have failed", (unsigned long long)node.nr_failed);
	CHECK(machine.clock - began < 22000, "%lld ms", machine.clock - began);
	CHECK(node.settled == machine.generation && strstr(node.error, "pages of the test"), "'%s'", node.error);
	/* Asked once more, it does. */
	nothing_is_stuck();
	machine.generation++;
	wake_engine();
	CHECK(elastic_node_settled(&node) && !node.error[0], "'%s'", node.error);
	check_books();
}

/* And a target that comes behind the one that it has heard of is another one. */
static void larger_behind_a_failure(const void *argument)
{
	boot(4);
	machine.generation = 1;
	machine.target = 4 * BLOCK_EXTENTS;
	machine.cancel_at = 6;
	machine.new_target = BLOCK_EXTENTS;
	/* It comes as programs are told of the end. */
	machine.later_at = 1000;
	machine.later_target = 3 * BLOCK_EXTENTS;
	machine.publish_ms = 1000;
	machine.target_at = 1500;
	machine.home_free = 1;
	wake_engine();
	CHECK(machine.target == 3 * BLOCK_EXTENTS, "%s", machine.log);
	check_online(3 * BLOCK_EXTENTS);
	CHECK(node.nr_failed == 1 && !node.error[0], "%llu have failed: '%s'", (unsigned long long)node.nr_failed, node.error);
}

/* Somebody else onlines what could not be: it is in use, and the node's. */
static void onlined_by_others(const void *argument)
{
	boot(2);
	machine.fails[PART_ONLINE] = 1;
	machine.udev = true;
	ask(BLOCK_EXTENTS);
	check_books();
}

static void memory_in_pieces(const void *argument)
{
	boot(2);
	machine.in_pieces = true;
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	check_online(BLOCK_EXTENTS);
	CHECK(node.nr_split == BLOCK_EXTENTS, "%llu extents are split",
	      (unsigned long long)node.nr_split);
	machine.pages_left = ELASTIC_EXTENT_PAGES + 100;
	CHECK(ask(2 * BLOCK_EXTENTS) == -ENOMEM, "%s", machine.log);
	check_online(BLOCK_EXTENTS);
	CHECK(!machine.pages[65], "%u pages", machine.pages[65]);
}

/* ---- Another size ---- */

static void resize(const void *argument)
{
	static const u32 sizes[] = { 200, 67, 130, 64, 256, 3, 256, 131 };
	unsigned int i, block, plugged;
	int versions;

	attach_all(4);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		versions = machine.versions;
		machine.published = -1;
		CHECK(!ask(sizes[i]), "%u extents: %s", sizes[i], machine.log);
		check_online(sizes[i]);
		CHECK(machine.versions > versions, "programs were not told");
		plugged = 0;
		for (block = 0; block < 4; block++) {
			plugged += machine.plugged[block];
			CHECK(!machine.plugged[block] ||
			      elastic_block_populated(&node, block) > 1,
			      "%u extents: block %u is hollow", sizes[i], block);
		}
		CHECK(plugged * BLOCK_EXTENTS >= sizes[i], "%u blocks", plugged);
	}
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

/*
 * Down through each size that can be asked for, and to some hundred others and
 * back: the way back is what an undo is.
 */
static void sizes_and_struct_pages(const void *argument)
{
	u32 memmap = *(const u32 *)argument, extents, last, seed = 1, before = 3 * BLOCK_EXTENTS;
	unsigned int i;

	boot_with_memmap(3, memmap);
	CHECK(!ask(before), "%s", machine.log);
	for (extents = 3 * BLOCK_EXTENTS; extents > 0; extents--) {
		if (elastic_target_extents(&node.range, elastic_kib(extents), &last))
			continue;
		CHECK(!ask(extents), "%u extents: %s", extents, machine.log);
		check_online(extents);
		CHECK(!node.error[0], "%u extents: '%s'", extents, node.error);
		before = extents;
	}
	CHECK(before == (memmap ?: 1), "%u extents", before);
	for (i = 0; i < 400; i++) {
		seed = seed * 1664525 + 1013904223;
		extents = (seed >> 8) % (3 * BLOCK_EXTENTS) + 1;
		/* Somebody has something there. */
		machine.in_use[(seed >> 4) % (3 * BLOCK_EXTENTS)] ^= true;
		if (elastic_target_extents(&node.range, elastic_kib(extents), &last))
			continue;
		CHECK(!ask(extents), "%u extents after %u: %s", extents, before, machine.log);
		check_online(extents);
		if (seed & 64)
			before = extents;
		CHECK(!ask(before), "back to %u extents: %s", before, machine.log);
		check_online(before);
	}
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

struct shape {
	u32 extents, memmap;
};

static u32 drawn(u32 *seed, u32 limit)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % limit;
}

/* What is in the way of this request: extents, of Linux or of Xen, and for some seconds a block. */
static void draw_what_stays(u32 *seed, u32 extents)
{
	machine.refuses[drawn(seed, extents)] = !drawn(seed, 3);
	if (!drawn(seed, 8))
		memset(machine.refuses, 0, sizeof(machine.refuses));
	machine.in_use[drawn(seed, extents)] ^= true;
	machine.busy[drawn(seed, extents)] = drawn(seed, 2);
	if (!drawn(seed, 8))
		memset(machine.busy, 0, sizeof(machine.busy));
	memset(machine.stuck, 0, sizeof(machine.stuck));
	if (drawn(seed, 4))
		return;
	machine.stuck[drawn(seed, 3)] = true;
	machine.stuck_until = machine.clock + 12000;
}

/*
 * If nothing stays each size is had.  Else a shrink ends between the two sizes, and whatever that leaves, a growth
 * finds a way, or no others to give.
 */
static void sizes_and_what_stays(const void *argument)
{
	const struct shape *shape = argument;
	u32 seed = shape->extents, target, before, after, extents;
	unsigned int i, shrinks = 0, growths = 0;

	boot_with_extents(shape->extents, shape->memmap);
	CHECK(!ask(shape->extents), "%s", machine.log);
	for (i = 0; i < 600; i++) {
		draw_what_stays(&seed, shape->extents);
		target = drawn(&seed, shape->extents) + 1;
		if (elastic_target_extents(&node.range, elastic_kib(target), &extents))
			continue;
		before = elastic_populated(&node);
		/* The domain may have no more than is asked for. */
		machine.room = target > before ? target - before : 0;
		if (!ask(target)) {
			check_online(target);
			shrinks += target < before;
			growths += target > before;
			continue;
		}
		check_books();
		after = elastic_populated(&node);
		CHECK(memchr(machine.busy, true, shape->extents) || memchr(machine.refuses, true, shape->extents),
		      "%u to %u: %s", before, target, machine.log);
		if (target > before)
			CHECK(strstr(node.error, "others cannot give the rest"), "%u to %u: %s", before, target, machine.log);
		else
			CHECK(after >= target && after <= before, "%u to %u: %u, %s", before, target, after, machine.log);
	}
	CHECK(shrinks > 20 && growths > 100, "%u shrinks, %u growths", shrinks, growths);
}

/* One that was in the way for a moment: then the one below need not go. */
static void hollow_block_leaves_late(const void *argument)
{
	attach_all(3);
	machine.stuck[2] = true;
	machine.in_use[2 * BLOCK_EXTENTS + 9] = machine.in_use[BLOCK_EXTENTS + 9] = true;
	machine.stuck_until = machine.clock + 12000;
	CHECK(!ask(BLOCK_EXTENTS + 1), "%s", machine.log);
	check_online(BLOCK_EXTENTS + 1);
	CHECK(!machine.plugged[2] && machine.plugged[1], "the one below has gone");
}

/* Block 0 has holes, since nothing above could be taken then. */
static void with_holes_below(void)
{
	unsigned int extent;

	boot_with_memmap(2, 16);
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	for (extent = BLOCK_EXTENTS + 16; extent < 2 * BLOCK_EXTENTS; extent++)
		machine.busy[extent] = true;
	CHECK(!ask(2 * BLOCK_EXTENTS - 8), "%s", machine.log);
	CHECK(elastic_block_populated(&node, 0) == BLOCK_EXTENTS - 8, "others were taken");
	for (extent = 0; extent < 2 * BLOCK_EXTENTS; extent++)
		machine.busy[extent] = extent < BLOCK_EXTENTS;
	machine.in_use[BLOCK_EXTENTS + 20] = true;
}

/* More leaves with its struct pages than has to, and others have room for that. */
static void hollow_block_for_holes(const void *argument)
{
	with_holes_below();
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	check_online(BLOCK_EXTENTS);
	CHECK(!machine.plugged[1], "it is hollow, and there");
}

/* Between its leaving and the holes somebody else has got what Xen had. */
static void nothing_for_holes(const void *argument)
{
	with_holes_below();
	machine.others_take = true;
	machine.room = 0;
	CHECK(ask(BLOCK_EXTENTS) == -EBUSY, "%s", machine.log);
	check_online(BLOCK_EXTENTS - 8);
	CHECK(strstr(node.error, "Xen gave 0 of 8 extents"), "'%s'", node.error);
	CHECK(strstr(machine.log, "-16 16384 KiB too much have left"), "%s", machine.log);
}

/* Also one without any extent, if struct pages are elsewhere, serves nobody. */
static void hollow_block_leaves(const void *argument)
{
	boot_with_memmap(2, *(const u32 *)argument);
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	machine.in_use[BLOCK_EXTENTS + 9] = true;
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	check_online(BLOCK_EXTENTS);
	CHECK(!machine.plugged[1], "it is hollow, and there");
}

/* Of two, the first that leaves is all that others have holes for. */
static void one_of_two_hollow_blocks(const void *argument)
{
	u32 target = BLOCK_EXTENTS + 2 * *(const u32 *)argument;

	boot_with_memmap(3, *(const u32 *)argument);
	CHECK(!ask(3 * BLOCK_EXTENTS), "%s", machine.log);
	machine.stuck[2] = true;
	machine.in_use[2 * BLOCK_EXTENTS + 20] = machine.in_use[BLOCK_EXTENTS + 20] = true;
	machine.stuck_until = machine.clock + 12000;
	CHECK(!ask(target), "%s", machine.log);
	check_online(target);
	CHECK(!machine.plugged[2] && machine.plugged[1], "both have gone");
}

/* The last block ends with the range, and has stayed when the one below it left. */
static void without_the_one_between(void)
{
	unsigned int extent;

	boot_with_extents(5 * BLOCK_EXTENTS / 2, 16);
	CHECK(!ask(5 * BLOCK_EXTENTS / 2), "%s", machine.log);
	for (extent = 2 * BLOCK_EXTENTS; extent < 5 * BLOCK_EXTENTS / 2; extent++)
		machine.busy[extent] = true;
	CHECK(!ask(3 * BLOCK_EXTENTS / 2), "%s", machine.log);
	check_online(3 * BLOCK_EXTENTS / 2);
	CHECK(!machine.plugged[1] && machine.plugged[2], "the one between is there");
	CHECK(!elastic_balloon_holes(&node, 1), "behind the end of the range");
	machine.room = 8;	/* no more than is asked for */
}

/* Less is missing than its struct pages are: others give the rest. */
static void between_two_blocks(const void *argument)
{
	without_the_one_between();
	CHECK(!ask(3 * BLOCK_EXTENTS / 2 + 8), "%s", machine.log);
	check_online(3 * BLOCK_EXTENTS / 2 + 8);
	CHECK(elastic_block_populated(&node, 1) == 16, "%u extents", elastic_block_populated(&node, 1));
	CHECK(!ask(3 * BLOCK_EXTENTS / 2), "%s", machine.log);
	check_online(3 * BLOCK_EXTENTS / 2);
}

/* What they have given comes back if it was in vain. */
static void between_two_blocks_in_vain(const void *argument)
{
	without_the_one_between();
	machine.fails[PART_ADD] = 1;
	CHECK(ask(3 * BLOCK_EXTENTS / 2 + 8) == -ENOMEM, "%s", machine.log);
	check_online(3 * BLOCK_EXTENTS / 2);
	CHECK(elastic_block_populated(&node, 0) == BLOCK_EXTENTS, "%u extents", elastic_block_populated(&node, 0));
}

static void nothing_for_struct_pages(const void *argument)
{
	static const char why[] = "-16 the last 16384 KiB do not hold the 32768 KiB of struct pages of a block, and others";
	unsigned int extent;

	without_the_one_between();
	for (extent = 0; extent < BLOCK_EXTENTS; extent++)
		machine.busy[extent] = extent != 20;
	CHECK(ask(3 * BLOCK_EXTENTS / 2 + 8) == -EBUSY, "%s", machine.log);
	check_online(3 * BLOCK_EXTENTS / 2);
	CHECK(!machine.plugged[1], "it has less than its struct pages");
	CHECK(!strncmp(node.error, why, strlen(why)), "'%s'", node.error);
}

/* An extent that Xen keeps of a block that has left counts, and is not in the new one. */
static void kept_beside_struct_pages(const void *argument)
{
	boot_with_memmap(3, 16);
	CHECK(!ask(3 * BLOCK_EXTENTS), "%s", machine.log);
	machine.refuses[2 * BLOCK_EXTENTS + 40] = true;
	machine.refuses[BLOCK_EXTENTS + 15] = *(const bool *)argument;
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	machine.room = 16;
	CHECK(!ask(BLOCK_EXTENTS + 16), "%s", machine.log);
	check_online(BLOCK_EXTENTS + 16);
	CHECK(elastic_block_populated(&node, 1) == 16, "%u extents", elastic_block_populated(&node, 1));
}

/* In the block that comes back, behind what that is to have, it counts nonetheless. */
static void kept_in_the_same_block(const void *argument)
{
	u32 kept = *(const u32 *)argument;

	attach_all(3);
	machine.refuses[BLOCK_EXTENTS + kept] = true;
	CHECK(!ask(BLOCK_EXTENTS), "%s", machine.log);
	machine.room = 8;
	CHECK(!ask(BLOCK_EXTENTS + 8), "%s", machine.log);
	check_online(BLOCK_EXTENTS + 8);
	CHECK(machine.plugged[1] && !machine.plugged[2], "another block");
	machine.refuses[BLOCK_EXTENTS + kept] = false;
	CHECK(!ask(BLOCK_EXTENTS) && !ask(0), "%s", machine.log);
	check_gone();
}

/* Another size comes while others give: that is no failure. */
static void another_size_for_struct_pages(const void *argument)
{
	without_the_one_between();
	machine.room = 16;
	machine.new_target = 3 * BLOCK_EXTENTS / 2 + 16;
	machine.target_at_take = 1;
	CHECK(!ask(3 * BLOCK_EXTENTS / 2 + 8), "%s", machine.log);
	check_online(3 * BLOCK_EXTENTS / 2 + 16);
	CHECK(!machine.target_at_take && !node.error[0], "'%s'", node.error);
}

/* A growth that is undone, after it was to be a smaller one: with what there was. */
static void hollow_by_what_is_undone(const void *argument)
{
	boot_with_memmap(3, 16);
	CHECK(!ask(2 * BLOCK_EXTENTS + 20), "%s", machine.log);
	machine.fails[PART_CPUS_UP] = 1;
	CHECK(ask(3 * BLOCK_EXTENTS) == -EIO, "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS + 20);
}

/* It is said why, as of a shrink; what was there before stays. */
static void smaller_than_can_be(const void *argument)
{
	boot(4);
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	memset(machine.busy, true, 2 * BLOCK_EXTENTS);
	machine.cancel_at = 3;
	machine.new_target = BLOCK_EXTENTS;
	CHECK(ask(4 * BLOCK_EXTENTS) == -EBUSY, "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS);
	CHECK(!strcmp(node.error, "-16 131072 KiB of 262144 KiB could not be taken: pages of the test"), "'%s'", node.error);
	CHECK(!node.reason[0], "it has no residue: '%s'", node.reason);
}

/* What is free is taken at once, and nothing is moved as long as there is some in the block. */
static void free_memory(const void *argument)
{
	unsigned int extent;
	long long began;

	attach_all(4);
	began = machine.clock;
	machine.in_use[193] = machine.in_use[250] = true;
	machine.hypercalls = 0;
	CHECK(!ask(256 - 20), "%s", machine.log);
	check_online(256 - 20);
	CHECK(!machine.moved && machine.clock == began, "%u extents were moved, %lld ms",
	      machine.moved, machine.clock - began);
	/* The highest, but for the one that is in use, which parts two runs. */
	CHECK(machine.hypercalls == 2, "%u calls of Xen", machine.hypercalls);
	for (extent = 192; extent < 256; extent++)
		CHECK(machine.has_memory[extent] == (extent < 235 || extent == 250),
		      "extent %u", extent);
	machine.hypercalls = 0;
	CHECK(!ask(256), "%s", machine.log);
	CHECK(machine.hypercalls == 2, "%u calls to fill two runs", machine.hypercalls);
	/* More are wanted than are free: one that is in use, too. */
	CHECK(!ask(256 - 62), "%s", machine.log);
	check_online(256 - 62);
	CHECK(machine.moved == 1 && !machine.has_memory[250] && machine.has_memory[193],
	      "%u extents were moved", machine.moved);
	CHECK(node.nr_taken_free == 20 + 61 && node.nr_taken_used == 1, "%llu, %llu",
	      (unsigned long long)node.nr_taken_free, (unsigned long long)node.nr_taken_used);
}

static void free_blocks(const void *argument)
{
	unsigned int extent;

	attach_all(4);
	machine.in_use[130] = true;
	machine.hypercalls = 0;
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS);
	CHECK(!machine.plugged[2] && !machine.plugged[3], "a block is hollow");
	for (extent = 3 * BLOCK_EXTENTS; extent < 4 * BLOCK_EXTENTS; extent++)
		CHECK(!machine.in_balloon[extent], "extent %u was marked in vain", extent);
	/* The last block as it is; of the other one what is free, what is not, the rest. */
	CHECK(machine.moved == 1 && machine.hypercalls == 5, "%u moved, %u calls",
	      machine.moved, machine.hypercalls);
}

/* A block that is isolated is available nowhere: it is what is being taken. */
static void all_that_is_available(const void *argument)
{
	attach_all(4);
	machine.home_free = 2 * BLOCK_PAGES;
	machine.offline_ms = 1200;
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS);
}

/* What Xen has is had, though it is not all. */
static void filled_in_part(const void *argument)
{
	attach_all(4);
	CHECK(!ask(256 - 20), "%s", machine.log);
	machine.room = 5;
	CHECK(elastic_balloon_fill(&node, 20) == -ENOMEM, "there was memory");
	check_online(256 - 15);
	CHECK(!machine.in_balloon[240] && machine.in_balloon[241], "not handed out");
	CHECK(strstr(node.error, "Xen gave 5 of 20 extents"), "'%s'", node.error);
	machine.room = 100;
	CHECK(!elastic_balloon_fill(&node, 10), "%s", node.error);
	check_online(256 - 5);
	CHECK(machine.has_memory[250] && !machine.has_memory[251], "another one");
}

/* What Xen does not take is the allocator's again. */
static void free_memory_that_is_kept(const void *argument)
{
	attach_all(4);
	machine.refuses[240] = true;
	CHECK(!ask(256 - 30), "%s", machine.log);
	check_online(256 - 30);
	CHECK(machine.has_memory[240] && !machine.in_balloon[240], "it is lost");
	CHECK(!machine.has_memory[225] && machine.has_memory[224], "another one");
	/* Another one has to be emptied for it, since less is free than was wanted. */
	CHECK(node.nr_taken_free == 29 && node.nr_taken_used == 1, "%llu, %llu",
	      (unsigned long long)node.nr_taken_free, (unsigned long long)node.nr_taken_used);
}

/* A node that stays keeps the pool; one that goes takes its part with it. */
static void pool_of_huge_pages(const void *argument)
{
	attach_all(4);
	machine.pool[200] = machine.pool[210] = true;
	CHECK(!ask(2 * BLOCK_EXTENTS), "%s", machine.log);
	check_online(2 * BLOCK_EXTENTS);
	CHECK(!machine.pool_lost && machine.moved == 2, "%u pages of the pool have gone, %u were moved",
	      machine.pool_lost, machine.moved);
	machine.pool[100] = true;
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
	CHECK(machine.pool_lost == 1, "%u pages", machine.pool_lost);
}

/* A new target while extents are being marked: Xen is not asked, nothing has gone. */
static void called_off_while_taking(const void *argument)
{
	attach_all(4);
	machine.target_at_take = 10;
	machine.new_target = 256;
	machine.hypercalls = 0;
	CHECK(ask(256 - 60) == -ECANCELED, "%s", machine.log);
	CHECK(!machine.hypercalls, "%u calls of Xen", machine.hypercalls);
	check_online(256);
	CHECK(machine.taken == 10 && !machine.in_balloon[250] && !node.nr_taken_free, "not all is back");
}

/* Memory that is slow: a call has no more extents than somebody can wait for. */
static void slow_calls(const void *argument)
{
	long long at;
	u32 done;

	boot(32);
	elastic_op_begin(&node, false);
	machine.extent_ms = 50;
	/* Behind the first call, from which it learns. */
	at = machine.target_at = 513 * 50;
	machine.new_target = 1;
	CHECK(elastic_populate_some(&node, 0, 32 * BLOCK_EXTENTS, &done) == -ECANCELED, "%u", done);
	CHECK(machine.clock - at <= 200 && done >= 512, "%lld ms later, %u extents", machine.clock - at, done);
	elastic_op_end();
	/* What was slow may be quick again. */
	machine.extent_ms = 0;
	machine.hypercalls = 0;
	CHECK(!elastic_release(&node, 0, done), "%u extents", machine.memory);
	CHECK(machine.hypercalls < 10, "%u calls", machine.hypercalls);
}

/* One extent takes longer than a call should: then it is one a call, and not none. */
static void very_slow_calls(const void *argument)
{
	boot(1);
	machine.extent_ms = 150;
	CHECK(!ask(BLOCK_EXTENTS) && !ask(0) && !ask(BLOCK_EXTENTS), "%s", machine.log);
	check_online(BLOCK_EXTENTS);
}

/* More extents than a call has frames, and a new target between two calls. */
static void many_extents(const void *argument)
{
	u32 done;

	boot(32);
	elastic_op_begin(&node, false);
	CHECK(!elastic_populate(&node, 0, 1025), "%s", machine.log);
	CHECK(machine.hypercalls == 3 && elastic_populated(&node) == 1025, "%u calls", machine.hypercalls);
	CHECK(!elastic_release(&node, 0, 1025) && machine.hypercalls == 6, "%u calls", machine.hypercalls);
	machine.cancel_at = machine.steps + 1;
	machine.new_target = 7;
	CHECK(elastic_populate_some(&node, 0, 1025, &done) == -ECANCELED && done == 512, "%u", done);
	CHECK(machine.hypercalls == 7, "%u calls", machine.hypercalls);
	elastic_op_end();
}

static void balloon_take_limits(const void *argument)
{
	unsigned int budget = 0, extent;
	long long began;

	attach_all(4);
	elastic_op_begin(&node, true);
	CHECK(!elastic_balloon_take(&node, 3, 5, true, &budget), "no time is left");
	/* Somebody took it offline: its pages are nobody's. */
	budget = 1000;
	machine.online[3] = false;
	CHECK(!elastic_balloon_take(&node, 3, 5, true, &budget), "it is offline");
	machine.online[3] = true;
	/* None is free, and no more are moved than asked for. */
	for (extent = 193; extent < 256; extent++)
		machine.in_use[extent] = true;
	CHECK(elastic_balloon_take(&node, 3, 5, true, &budget) == 5, "%u moved", machine.moved);
	CHECK(machine.moved == 5 && elastic_populated(&node) == 251, "%u moved", machine.moved);
	/* What is busy has several tries, as long as there is time. */
	memset(machine.busy, true, 64);
	budget = 50;
	began = machine.clock;
	CHECK(!elastic_balloon_take(&node, 0, 1, true, &budget) && !budget, "%u ms are left", budget);
	CHECK(machine.clock - began == 60, "%lld ms", machine.clock - began);
	elastic_op_end();
	CHECK(elastic_balloon_holes(&node, 0) == 5 && !elastic_balloon_holes(&node, 3), "others have holes");
	/* What is offline is not filled, either. */
	machine.online[3] = false;
	CHECK(!elastic_balloon_holes(&node, 0), "it is offline");
	CHECK(!elastic_balloon_fill(&node, 5) && elastic_populated(&node) == 251, "it is offline");
	machine.online[3] = true;
	check_online(251);
}

/* As memory hotplug tells of block 3. */
static int tell(unsigned long action)
{
	struct memory_notify mn = {
		.start_pfn = elastic_extent_pfn(&node.range, 3 * BLOCK_EXTENTS + 1),
		.nr_pages = (BLOCK_EXTENTS - 1) * ELASTIC_EXTENT_PAGES,
	};

	return machine.memory_notifier->notifier_call(machine.memory_notifier, action, &mn);
}

static void others_take_a_block_offline(const void *argument)
{
	attach_all(4);
	CHECK(!ask(256 - 20), "%s", machine.log);
	/* Somebody before us in the chain said no: we never heard of it. */
	CHECK(tell(MEM_CANCEL_OFFLINE) == NOTIFY_OK, "refused");
	CHECK(!machine.references[250], "%d references", machine.references[250]);
	CHECK(tell(MEM_GOING_OFFLINE) == NOTIFY_OK && machine.references[250] == -512, "%d references",
	      machine.references[250]);
	CHECK(tell(MEM_CANCEL_OFFLINE) == NOTIFY_OK && !machine.references[250], "%d references",
	      machine.references[250]);
	/* An attempt that ended long ago. */
	CHECK(!ask(192) && !ask(256) && !ask(256 - 20), "%s", machine.log);
	tell(MEM_CANCEL_OFFLINE);
	CHECK(!machine.references[250], "%d references", machine.references[250]);
	check_online(256 - 20);
}

static void movable_only(const void *argument)
{
	attach_all(4);
	CHECK(tell(MEM_GOING_ONLINE) == NOTIFY_OK, "refused");
	nodes[1].node_zones[0].for_kernel = true;
	CHECK(tell(MEM_GOING_ONLINE) == notifier_from_errno(-EPERM), "it would stay for ever");
	nodes[1].node_zones[0].for_kernel = false;
}

static void cannot_shrink(const void *argument)
{
	attach_all(2);
	memset(machine.busy, true, 64);
	machine.busy[100] = true;
	machine.home_free = 1;
	CHECK(ask(70) == -ENOMEM, "%s", machine.log);
	CHECK(!strncmp(node.error, "-12 need ", 9), "'%s'", node.error);
	machine.home_free = 0;
	CHECK(ask(64) == -EBUSY, "%s", machine.log);
	/* Extent 100 holds its block, whose struct pages stay with it. */
	check_online(66);
	CHECK(strstr(node.error, "pages of the test"), "'%s'", node.error);
	CHECK(!node.reason[0], "a reason for no residue");
}

/* ---- The engine ---- */

static void one_round(const void *argument)
{
	boot(4);
	machine.generation = 1;
	machine.target = 4 * BLOCK_EXTENTS;
	wake_engine();
	CHECK(machine.acked, "the target was not acknowledged");
	CHECK(machine.nofs, "reclaim may wait for a file system");
	CHECK(machine.heeds_sigint, "no attempt on a block can be ended");
	CHECK(machine.heeds_freezer, "it works on while the machine is suspended");
	check_online(4 * BLOCK_EXTENTS);
	/* A new target in the midst of a detach: the engine follows it. */
	machine.target = 0;
	machine.generation++;
	machine.steps = 0;
	machine.cancel_at = 9;
	machine.new_target = 2 * BLOCK_EXTENTS;
	wake_engine();
	CHECK(machine.happened, "nothing has happened");
	check_online(2 * BLOCK_EXTENTS);
	machine.target = 0;
	machine.generation++;
	wake_engine();
	check_gone();
}

/* The driver is not there then, but nothing that it has begun is used. */
static void start_fails(const void *argument)
{
	machine.no_watch = true;
	boot(1);
	CHECK(!machine.oom_notifier, "it would be asked for memory");
	CHECK(!xen_elastic_never_waits(), "a thread that is no more");
}

int main(int argc, char **argv)
{
	static const u32 nothing, half = 2 * BLOCK_EXTENTS, one = 1, two = 2, four = 4, sixteen = 16;
	static const struct shape whole = { 3 * BLOCK_EXTENTS, 1 }, large = { 3 * BLOCK_EXTENTS, 16 },
				  halved = { 5 * BLOCK_EXTENTS / 2, 16 };
	static const enum reason new_target = NEW_TARGET, grows = GUEST_GROWS,
				 oom = OOM, beside_cache = OOM_BESIDE_CACHE;
	static const struct kept all_kept = { 1, 2, 2 }, more_kept = { 1, 2, 1 }, large_kept = { 16, 20, 20 };
	static const u32 one_block = BLOCK_EXTENTS, whole_node = 4 * BLOCK_EXTENTS;
	static const bool no, yes = true;
	static const unsigned int numbers[] = { 0, 1, 70, 64 };
	static const struct test_case cases[] = {
		{ "driver: attach and detach", there_and_back },
		{ "driver: called off for another reason", detach_called_off_again },
		{ "driver: a detach is called off at each step",
		  detach_called_off, &new_target },
		{ "driver: the guest grows at each step of a detach",
		  detach_called_off, &grows },
		{ "driver: out of memory at each step of a detach",
		  detach_called_off, &oom },
		{ "driver: out of memory beside cache",
		  detach_called_off, &beside_cache },
		{ "driver: out of memory at each step of a shrink",
		  shrink_called_off, &four },
		{ "driver: out of memory as the only block leaves",
		  shrink_called_off, &two },
		{ "driver: called off before an attempt",
		  called_off_before_an_attempt },
		{ "driver: called off by the ticker", called_off_by_the_ticker },
		{ "driver: out of memory, and some can be had", relief },
		{ "driver: an isolated block comes back",
		  isolated_block_comes_back },
		{ "driver: out of memory for another reason",
		  oom_of_somebody_else },
		{ "driver: the killer is held for a while",
		  killer_is_held_for_a_while },
		{ "driver: the engine itself is out of memory",
		  thread_is_not_stopped_by_its_own_oom },
		{ "driver: an attach is called off at each step",
		  growth_called_off, &nothing },
		{ "driver: another size at each step of an attach",
		  growth_called_off, &half },
		{ "driver: stuck blocks do not add up", stuck_blocks_do_not_add_up },
		{ "driver: stuck blocks that nobody sees do not add up",
		  unseen_stuck_blocks_do_not_add_up },
		{ "driver: a shrink of blocks that nobody sees stuck",
		  shrink_of_unseen_stuck_blocks },
		{ "driver: late blocks leave", late_blocks_leave },
		{ "driver: hollow blocks leave", hollow_blocks_leave },
		{ "driver: a hollow node leaves", hollow_node_leaves },
		{ "driver: slow memory leaves", slow_memory_leaves },
		{ "driver: slow memory and one that is stuck", slow_memory_that_is_stuck },
		{ "driver: slow memory has a limit", slow_memory_has_a_limit },
		{ "driver: a xenstore that stalls", xenstore_stalls },
		{ "driver: the balloon has a limit", balloon_has_a_limit },
		{ "driver: squeezing is called off", squeeze_is_called_off },
		{ "driver: one stuck block is waited for",
		  one_stuck_block_is_waited_for },
		{ "driver: a vCPU comes back as the node leaves", cpu_comes_back },
		{ "driver: on a CPU of another host", elsewhere },
		{ "driver: extents that Xen refused leave later", refused_extents, &no },
		{ "driver: extents that Xen refused are used again",
		  refused_extents, &yes },
		{ "driver: an attach fails with an extent that Xen refused",
		  refused_and_no_room },
		{ "driver: what Xen keeps of the kernel before a kexec",
		  memory_that_a_kernel_before_cannot_give_back, &no },
		{ "driver: what Xen keeps of the kernel before, used again",
		  memory_that_a_kernel_before_cannot_give_back, &yes },
		{ "driver: what Xen does not say it keeps of the kernel before a kexec",
		  memory_of_a_kernel_before_that_nobody_knows },
		{ "torn: mended at once", torn_and_mended, &no },
		{ "torn: mended on a CPU of another host", torn_and_mended, &yes },
		{ "torn: among others", torn_among_others },
		{ "torn: as many as are wanted", torn_as_many_as_wanted, &no },
		{ "torn: as many as until it is called off", torn_as_many_as_wanted, &yes },
		{ "torn: by others", torn_by_others },
		{ "torn: not used until it is whole", torn_for_a_while, &numbers[0] },
		{ "torn: mended in part", torn_for_a_while, &numbers[1] },
		{ "torn: goes first", torn_goes_first },
		{ "torn: goes first, at the begin of its block", torn_at_the_begin },
		{ "torn: mended until it is called off", torn_and_called_off },
		{ "torn: leaves with its node", torn_and_detached },
		{ "torn: its block goes offline and online", torn_and_onlined_again },
		{ "torn: of a block that has left", torn_stray, &numbers[2] },
		{ "torn: struct pages", torn_stray, &numbers[3] },
		{ "torn: for all we know", torn_for_all_we_know },
		{ "torn: as it comes", torn_as_it_comes },
		{ "driver: memory of the kernel before a kexec",
		  memory_of_a_kernel_before },
		{ "driver: what programs and Xen are told", contract },
		{ "driver: errors", errors },
		{ "driver: time limits", time_limits },
		{ "driver: somebody else onlines a block", onlined_by_others },
		{ "attach: vCPUs come with the first block", cpus_with_the_first_block },
		{ "attach: a smaller one without room", smaller_without_room, &no },
		{ "growth: a smaller one without room", smaller_without_room, &yes },
		{ "growth: a smaller one that is short of room", smaller_and_short_of_room },
		{ "attach: a smaller one that is stuck", smaller_and_stuck },
		{ "growth: called off at each step", known_growth_is_called_off },
		{ "attach: another target, and no memory", another_target_without_memory },
		{ "attach: no more than what Xen keeps", no_more_than_what_xen_keeps },
		{ "failure: a vCPU stays down, and no more memory comes", cpus_fail_before_memory },
		{ "shrink: no more than what Xen keeps", shrink_to_what_xen_keeps, &all_kept },
		{ "shrink: less than what Xen keeps", shrink_to_what_xen_keeps, &more_kept },
		{ "shrink: no more than what Xen keeps, struct pages of 16 extents", shrink_to_what_xen_keeps, &large_kept },
		{ "growth: no more than what Xen keeps", growth_to_what_xen_keeps, &two },
		{ "growth: less than what Xen keeps", growth_to_what_xen_keeps, &one },
		{ "growth: undone to what Xen keeps", undone_to_what_xen_keeps },
		{ "growth: undone without room", undone_without_room },
		{ "growth: undone, and stuck", undone_and_stuck },
		{ "growth: out of memory at each step of its undo", undo_called_off },
		{ "attach: out of memory while it becomes smaller", take_back_called_off, &oom },
		{ "attach: the guest grows while it becomes smaller", take_back_called_off, &grows },
		{ "growth: out of memory for another reason", growth_is_not_to_blame },
		{ "attach: larger again while it becomes smaller", larger_while_taken_back },
		{ "detach: a vCPU stays up", cpus_stay_up },
		{ "detach: called off, and a vCPU stays down", cpus_do_not_come_back },
		{ "detach: another size, and a vCPU stays down", another_size_without_cpus, &half },
		{ "detach: not wanted any more, and a vCPU stays down", another_size_without_cpus, &whole_node },
		{ "detach: refused, and a vCPU stays down", refused_without_cpus },
		{ "residue: a vCPU stays down", residue_without_cpus, &no },
		{ "residue: a vCPU stays down, and it is stuck", residue_without_cpus, &yes },
		{ "residue: more than it was, and a vCPU stays down", residue_with_more },
		{ "residue: a smaller one without room", residue_without_room },
		{ "residue: it comes back", residue_comes_back },
		{ "growth: a smaller one, in part", known_and_taken_in_part },
		{ "attach: counted once", counted_once },
		{ "driver: what Xen takes by now goes first", strays_go_first },
		{ "residue: out of memory as it grows", out_of_memory_as_a_residue_grows },
		{ "residue: no more memory for it", residue_that_gets_no_more },
		{ "residue: of a node that had lost a vCPU", residue_of_a_node_without_cpus },
		{ "shrink: strays alone, beside a torn extent", strays_beside_a_torn_extent },
		{ "shrink: refused, beside strays", refused_beside_strays, &one_block },
		{ "detach: refused, beside strays", refused_beside_strays, &nothing },
		{ "growth: a vCPU is tried once", tried_once_for_a_cpu },
		{ "growth: vCPUs that somebody took", cpus_that_somebody_took },
		{ "driver: errors have room", errors_have_room },
		{ "attach: called off for good, and stuck", tried_once, &nothing },
		{ "attach: a smaller one, tried once", tried_once, &one_block },
		{ "attach: larger again behind one that failed", larger_behind_a_failure },
		{ "driver: memory in pieces", memory_in_pieces },
		{ "driver: other sizes", resize },
		{ "driver: a growth that is to be a smaller size than can be", smaller_than_can_be },
		{ "driver: free memory is taken as it lies", free_memory },
		{ "driver: free blocks leave as they are", free_blocks },
		{ "driver: sizes, and no struct pages", sizes_and_struct_pages, &nothing },
		{ "driver: sizes, and struct pages of 1 extent", sizes_and_struct_pages, &one },
		{ "driver: sizes, and struct pages of 2 extents", sizes_and_struct_pages, &two },
		{ "driver: sizes, and struct pages of 16 extents", sizes_and_struct_pages, &sixteen },
		{ "driver: sizes, and what stays, struct pages of 1 extent", sizes_and_what_stays, &whole },
		{ "driver: sizes, and what stays, struct pages of 16 extents", sizes_and_what_stays, &large },
		{ "driver: sizes, and what stays, half a block", sizes_and_what_stays, &halved },
		{ "driver: a hollow block, no struct pages", hollow_block_leaves, &nothing },
		{ "driver: a hollow block, struct pages of 16 extents", hollow_block_leaves, &sixteen },
		{ "driver: a hollow block, and holes", hollow_block_for_holes },
		{ "driver: a hollow block, and nothing for holes", nothing_for_holes },
		{ "driver: one of two hollow blocks", one_of_two_hollow_blocks, &one },
		{ "driver: one of two hollow blocks, struct pages of 16 extents", one_of_two_hollow_blocks, &sixteen },
		{ "driver: between two blocks", between_two_blocks },
		{ "driver: between two blocks, in vain", between_two_blocks_in_vain },
		{ "driver: between two blocks, and nothing for struct pages", nothing_for_struct_pages },
		{ "driver: between two blocks, and another size", another_size_for_struct_pages },
		{ "driver: what Xen keeps, and struct pages", kept_beside_struct_pages, &no },
		{ "driver: what Xen keeps of struct pages", kept_beside_struct_pages, &yes },
		{ "driver: what Xen keeps behind what comes", kept_in_the_same_block, &sixteen },
		{ "driver: what Xen keeps within what comes", kept_in_the_same_block, &two },
		{ "driver: a growth that is undone, and struct pages", hollow_by_what_is_undone },
		{ "driver: a hollow block leaves late", hollow_block_leaves_late },
		{ "driver: all that is available is taken", all_that_is_available },
		{ "driver: a node that is filled in part", filled_in_part },
		{ "driver: free memory that Xen keeps", free_memory_that_is_kept },
		{ "driver: a shrink that cannot be", cannot_shrink },
		{ "driver: a pool of huge pages", pool_of_huge_pages },
		{ "driver: called off while extents are taken", called_off_while_taking },
		{ "driver: slow calls", slow_calls },
		{ "driver: very slow calls", very_slow_calls },
		{ "driver: more extents than frames", many_extents },
		{ "driver: what the balloon may take", balloon_take_limits },
		{ "driver: others take a block offline", others_take_a_block_offline },
		{ "driver: for what can be moved only", movable_only },
		{ "driver: rounds of the engine", one_round },
		{ "driver: a start that fails", start_fails },
	};

	static struct test_case all[ARRAY_SIZE(cases) + ARRAY_SIZE(rooms) +
				    ARRAY_SIZE(failures)];
	unsigned int i, n = ARRAY_SIZE(cases);

	memcpy(all, cases, sizeof(cases));
	for (i = 0; i < ARRAY_SIZE(rooms); i++)
		all[n++] = (struct test_case){ rooms[i].name, one_room, &rooms[i] };
	for (i = 0; i < ARRAY_SIZE(failures); i++)
		all[n++] = (struct test_case){ failures[i].name, one_failure,
					       &failures[i] };
	return run_cases(argc, argv, all, n);
}
