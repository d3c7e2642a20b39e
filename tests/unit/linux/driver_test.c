// SPDX-License-Identifier: GPL-2.0
/*
 * The driver's operations on a simulated machine: node.c and mem.c as they are,
 * and below them a hypervisor that counts extents, memory blocks that may be
 * stuck, vCPUs, and a clock that moves only when something takes time.
 *
 * The machine checks what must hold at any moment: no extent is populated that
 * has memory, no block leaves Linux while pages are stuck in it.  The cases ask
 * how an operation ends when something goes wrong at each of its steps.
 */
#include "case.h"
#include "elastic.h"


#define BLOCK_EXTENTS	64U
#define BLOCK_BYTES	(BLOCK_EXTENTS * ELASTIC_EXTENT_BYTES)
#define START		(4ULL << 30)
#define MAX_BLOCKS	512U
#define TICK_MS		500	/* how often the ticker looks */
#define OFFLINE_MS	5	/* for a block that nothing keeps */

static struct {
	/* Xen */
	unsigned char has_memory[MAX_BLOCKS * BLOCK_EXTENTS];
	bool refuses[MAX_BLOCKS * BLOCK_EXTENTS];
	unsigned int memory;		/* extents */
	int room;			/* extents that it can still give */
	/* Linux */
	bool plugged[MAX_BLOCKS], online[MAX_BLOCKS], stuck[MAX_BLOCKS];
	struct memory_block blocks[MAX_BLOCKS];
	int hotplug_locked, cpusets;
	bool cpus_up, cpu_comes_back;
	/* What the engine's other files would know */
	long long clock;
	unsigned int timeout_ms;
	bool timed_out;
	int steps, cancel_at;		/* steps until there is a new target */
	u32 new_target;
	bool cancelled, oom_then, out_of_memory;
	int phase, published;
	char log[4096];
} machine;

static struct elastic_node node;
struct elastic_node *elastic_nodes = &node;
unsigned int elastic_nr_nodes = 1;
pg_data_t nodes[2] = { { { { .nid = 0 } } }, { { { .nid = 1 } } } };
nodemask_t cpuset_draining_nodes;
int mhp_default_online_type = MMOP_ONLINE_KERNEL;

void say(const char *format, ...)
{
	size_t used = strlen(machine.log);
	va_list args;

	va_start(args, format);
	vsnprintf(machine.log + used, sizeof(machine.log) - used, format, args);
	va_end(args);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	exit(1);
}

/* ---- Xen ---- */

long HYPERVISOR_memory_op(unsigned int command, void *argument)
{
	struct xen_memory_reservation *r = argument;
	unsigned long done, extent;

	for (done = 0; done < r->nr_extents; done++) {
		if (r->extent_order != ELASTIC_EXTENT_ORDER)
			return 0;	/* no single pages in this machine */
		extent = (r->extent_start[done] - (START >> 12)) >>
			 ELASTIC_EXTENT_ORDER;
		CHECK(extent < MAX_BLOCKS * BLOCK_EXTENTS, "extent %lu", extent);
		if (command == XENMEM_populate_physmap) {
			CHECK(!machine.has_memory[extent],
			      "extent %lu is populated twice", extent);
			if (!machine.room)
				break;
			machine.room--;
			machine.memory++;
			machine.has_memory[extent] = 1;
		} else {
			CHECK(!machine.online[extent / BLOCK_EXTENTS],
			      "extent %lu is given back while it is online",
			      extent);
			if (!machine.has_memory[extent] || machine.refuses[extent])
				break;
			machine.room++;
			machine.memory--;
			machine.has_memory[extent] = 0;
		}
	}
	return done;
}

/* ---- Linux ---- */

ktime_t ktime_get(void)
{
	return machine.clock;
}

void cpus_read_lock(void) { }
void cpus_read_unlock(void) { }
void cpuset_inc(void) { machine.cpusets++; }
void cpuset_dec(void) { machine.cpusets--; }

unsigned long zone_managed_pages(struct zone *zone)
{
	return zone->nid ? elastic_populated(&node) * ELASTIC_EXTENT_PAGES : 1UL << 30;
}

unsigned long zone_page_state(struct zone *zone, int item)
{
	return zone_managed_pages(zone) / 2;
}

unsigned long sum_zone_node_page_state(int nid, int item)
{
	return zone_page_state(&nodes[nid].node_zones[0], item);
}

unsigned long si_mem_available(void)
{
	return 1UL << 30;
}

void lock_device_hotplug(void)
{
	CHECK(!machine.hotplug_locked++, "device_hotplug_lock is taken twice");
}

void unlock_device_hotplug(void)
{
	CHECK(machine.hotplug_locked-- == 1, "device_hotplug_lock is not held");
}

static unsigned int block_at(u64 address)
{
	CHECK(address >= START && (address - START) % BLOCK_BYTES == 0,
	      "no block begins at %#llx", (unsigned long long)address);
	return (address - START) / BLOCK_BYTES;
}

struct memory_block *find_memory_block(unsigned long section)
{
	unsigned int block = block_at((u64)section << 12);

	return machine.plugged[block] ? &machine.blocks[block] : NULL;
}

int device_online(struct device *dev)
{
	unsigned int block = (struct memory_block *)dev - machine.blocks;

	CHECK(machine.hotplug_locked, "onlined without the lock");
	CHECK(machine.blocks[block].online_type == MMOP_ONLINE_MOVABLE,
	      "onlined as %d", machine.blocks[block].online_type);
	machine.online[block] = true;
	return 0;
}

/* offline_pages(): until a signal comes, which the ticker sends. */
int device_offline(struct device *dev)
{
	unsigned int block = (struct memory_block *)dev - machine.blocks;

	CHECK(machine.hotplug_locked, "offlined without the lock");
	machine.clock += OFFLINE_MS;
	if (machine.stuck[block]) {
		machine.clock += DIV_ROUND_UP(machine.timeout_ms + 1, TICK_MS) *
				 TICK_MS;
		machine.timed_out = true;
		return -EINTR;
	}
	machine.online[block] = false;
	return 0;
}

int add_memory_driver_managed(int group, u64 start, u64 size, const char *name,
			      int flags)
{
	unsigned int block = block_at(start);

	CHECK(machine.has_memory[block * BLOCK_EXTENTS],
	      "block %u: its struct pages have no memory", block);
	CHECK(flags & MHP_STAY_OFFLINE, "somebody else would online it");
	CHECK(mhp_default_online_type == MMOP_ONLINE_KERNEL,
	      "what is for all memory was changed");
	machine.plugged[block] = true;
	return 0;
}

int remove_memory(u64 start, u64 size)
{
	unsigned int block = block_at(start);

	if (machine.online[block])
		return -EBUSY;
	machine.plugged[block] = false;
	return 0;
}

int memory_group_register_dynamic(int nid, unsigned long pages)
{
	return 1;
}

/* ---- The driver's other files ---- */

/* A step: something that may take long has come to a point where it can end. */
static bool step(void)
{
	machine.steps++;
	if (machine.steps == machine.cancel_at && !machine.cancelled) {
		machine.cancelled = true;
		if (machine.oom_then) {
			machine.out_of_memory = true;
			elastic_stop_draining(&node);
			CHECK(!node_isset(node.nid, cpuset_draining_nodes),
			      "its memory is hidden still");
		}
	}
	return machine.cancelled;
}

bool elastic_cancelled(void) { return step(); }
bool elastic_cancel_pending(void) { return step(); }
bool elastic_out_of_memory(void) { return machine.out_of_memory; }

bool elastic_op_rearm(void)
{
	node.target = machine.new_target;
	machine.cancelled = false;
	return true;
}

void elastic_op_begin(struct elastic_node *unused, bool detach)
{
	node.detach = detach;
}

void elastic_op_end(void) { }
void elastic_phase(enum elastic_phase phase) { machine.phase = phase; }

void elastic_interruptible(unsigned int timeout_ms)
{
	machine.timeout_ms = timeout_ms;
	machine.timed_out = false;
}

int elastic_uninterruptible(void)
{
	return machine.timed_out ? -ETIMEDOUT : 0;
}

void elastic_store_state(const struct elastic_node *unused) { }

u64 elastic_topo_publish(enum xtopo_phase phase, bool bump)
{
	machine.published = phase;
	return 1;
}

int elastic_topo_wait_acks(u64 version, unsigned int timeout_ms)
{
	return step() ? -ECANCELED : 0;
}

int elastic_evacuate(struct elastic_node *unused)
{
	return step() ? -ECANCELED : 0;
}

void elastic_residue_reason(struct elastic_node *unused)
{
	snprintf(node.reason, sizeof(node.reason), "pages of the test");
}

bool elastic_block_in_use(const struct elastic_node *unused, u32 block)
{
	return machine.stuck[block];
}

int elastic_balloon_fill(struct elastic_node *unused, u32 count)
{
	return 0;
}

u32 elastic_balloon_take(struct elastic_node *unused, u32 block, u32 count,
			 bool persistent)
{
	return 0;
}

int elastic_cpus_up(struct elastic_node *unused)
{
	machine.cpus_up = true;
	return 0;
}

int elastic_cpus_down(struct elastic_node *unused)
{
	if (step())
		return -ECANCELED;
	machine.cpus_up = false;
	return 0;
}

int elastic_node_unplug(struct elastic_node *unused)
{
	if (!machine.cpu_comes_back)
		return 0;
	snprintf(node.reason, sizeof(node.reason), "vCPU 2 is online again");
	return -EBUSY;
}

/* ---- Cases ---- */

static void boot(unsigned int blocks)
{
	node.vnode = 1;
	node.nid = 1;
	node.usable = true;
	CHECK(!elastic_range_init(&node.range, START, blocks * BLOCK_BYTES,
				  BLOCK_BYTES, ELASTIC_EXTENT_BYTES), "range");
	CHECK(!elastic_mem_init(&node), "no memory for the test");
	machine.room = blocks * BLOCK_EXTENTS;
}

/* One request, as the engine carries it out. */
static int ask(u32 target)
{
	machine.cancelled = false;
	machine.out_of_memory = false;
	machine.steps = 0;
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
	unsigned int extent, n = 0;

	for (extent = 0; extent < MAX_BLOCKS * BLOCK_EXTENTS; extent++)
		n += machine.has_memory[extent];
	CHECK(n == machine.memory && n == elastic_populated(&node),
	      "Xen has given %u extents, the driver knows of %u", n,
	      elastic_populated(&node));
	CHECK(machine.cpusets == node.draining, "cpusets key: %d", machine.cpusets);
	CHECK(node_isset(node.nid, cpuset_draining_nodes) == node.draining,
	      "the allocator's mask");
	CHECK(machine.hotplug_locked == 0, "a lock is held");
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

static void detach_called_off(const void *argument)
{
	bool oom = argument;
	int steps, at, rc;
	u32 left;

	attach_all(4);
	steps = count_steps(0);
	CHECK(steps > 6, "%d steps", steps);
	machine.oom_then = oom;
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
		CHECK(rc == (oom ? -ENOMEM : -ECANCELED), "step %d: %d", at, rc);
		check_online(left);
		CHECK(!oom || !strncmp(node.error, "-12 ", 4), "'%s'",
		      node.error);
	}
}

static void growth_called_off(const void *argument)
{
	const u32 *new_target = argument;
	int steps, at, rc;

	boot(4);
	steps = count_steps(4 * BLOCK_EXTENTS);
	CHECK(steps > 12, "%d steps", steps);
	machine.new_target = *new_target;
	for (at = 1; at <= steps; at++) {
		machine.cancel_at = 0;
		CHECK(!ask(0), "%s", machine.log);
		check_gone();
		machine.cancel_at = at;
		rc = ask(4 * BLOCK_EXTENTS);
		check_books();
		if (!*new_target && rc) {
			CHECK(rc == -ECANCELED, "step %d: %d", at, rc);
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
	CHECK(elastic_populated(&node) == MAX_BLOCKS / 2 * BLOCK_EXTENTS,
	      "%u extents are left", elastic_populated(&node));
	memset(machine.stuck, false, sizeof(machine.stuck));
	CHECK(!ask(0), "%s", machine.log);
	check_gone();
}

static void one_stuck_block_is_waited_for(const void *argument)
{
	attach_all(4);
	machine.stuck[2] = true;
	CHECK(ask(0) == -EBUSY, "%s", machine.log);
	CHECK(elastic_populated(&node) == BLOCK_EXTENTS, "%u extents are left",
	      elastic_populated(&node));
	CHECK(machine.clock >= 10000, "given up after %lld ms", machine.clock);
	CHECK(strstr(node.error, "pages of the test"), "'%s'", node.error);
	CHECK(node.draining, "new pages may land beside the stuck ones");
	check_books();
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
	unsigned int extent;

	boot(4);
	for (extent = 0; extent < 100; extent++) {
		machine.has_memory[extent] = 1;
		machine.memory++;
		machine.room--;
	}
	CHECK(elastic_reclaim(&node) == 100, "%u extents are left", machine.memory);
	CHECK(!machine.memory, "%u extents are left", machine.memory);
	CHECK(!ask(4 * BLOCK_EXTENTS), "%s", machine.log);
	check_online(4 * BLOCK_EXTENTS);
}

int main(int argc, char **argv)
{
	static const u32 nothing, half = 2 * BLOCK_EXTENTS;
	static const bool no, yes = true;
	static const struct test_case cases[] = {
		{ "driver: attach and detach", there_and_back },
		{ "driver: a detach is called off at each step", detach_called_off },
		{ "driver: out of memory at each step of a detach",
		  detach_called_off, &yes },
		{ "driver: an attach is called off at each step",
		  growth_called_off, &nothing },
		{ "driver: another size at each step of an attach",
		  growth_called_off, &half },
		{ "driver: stuck blocks do not add up", stuck_blocks_do_not_add_up },
		{ "driver: one stuck block is waited for",
		  one_stuck_block_is_waited_for },
		{ "driver: a vCPU comes back as the node leaves", cpu_comes_back },
		{ "driver: extents that Xen refused leave later", refused_extents, &no },
		{ "driver: extents that Xen refused are used again",
		  refused_extents, &yes },
		{ "driver: an attach fails with an extent that Xen refused",
		  refused_and_no_room },
		{ "driver: memory of the kernel before a kexec",
		  memory_of_a_kernel_before },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
