// SPDX-License-Identifier: GPL-2.0
/* The simulated machine, see machine.h. */
#include <setjmp.h>

#include "machine.h"

struct machine machine;
struct elastic_node node;
struct elastic_node *elastic_nodes = &node;
unsigned int elastic_nr_nodes = 1;
pg_data_t nodes[2] = { { { { .nid = 0 } } }, { { { .nid = 1 } } } };
int mhp_default_online_type = MMOP_ONLINE_KERNEL;
struct task_struct the_engine, *at_work = &the_engine;
void *system_unbound_wq;

void say(const char *format, ...)
{
	size_t used = strlen(machine.log);
	va_list args;

	/* The end is what a case that fails wants to show. */
	if (used > sizeof(machine.log) / 2) {
		used = 0;
		machine.log[0] = '\0';
	}
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

static bool fails(enum part part)
{
	return machine.fails[part] && !--machine.fails[part];
}

/* ---- Time, and who runs when it is over ---- */

static struct timer_list *the_timer;
static struct delayed_work *the_ticker;
static jmp_buf stalled;
static struct xenbus_watch *the_watch;
static int (*engine_thread)(void *data);
static int rounds;

ktime_t ktime_get(void)
{
	return machine.clock;
}

unsigned long now(void)
{
	return machine.clock;
}

void mod_timer(struct timer_list *timer, unsigned long at)
{
	the_timer = timer;
	machine.timer_at = at;
}

void queue_delayed_work(void *queue, struct delayed_work *work,
			unsigned long delay)
{
	the_ticker = work;
	machine.tick_at = machine.clock + delay;
}

static void run_ticker(void)
{
	if (!machine.tick_at)
		return;
	machine.tick_at = 0;
	/* It never comes back from a xenstore that does not answer. */
	if (!setjmp(stalled))
		the_ticker->work.function(&the_ticker->work);
}

void cancel_delayed_work_sync(struct delayed_work *work)
{
	if (machine.late_tick) {
		run_ticker();
		CHECK(!machine.tick_at, "the ticker goes on");
	}
	machine.tick_at = 0;
}

static void run_timer(void)
{
	machine.timer_at = 0;
	the_timer->function(the_timer);
}

static unsigned int wakes;

void woke(struct wait_queue_head *queue)
{
	wakes += queue == &elastic_wq;
}

void fire_watch(void)
{
	unsigned int before = wakes;

	if (!the_watch->will_handle || the_watch->will_handle(the_watch, NULL, NULL)) {
		machine.by_xenwatch++;
		the_watch->callback(the_watch, NULL, NULL);
	}
	CHECK(wakes != before, "the engine sleeps on");
}

static void new_target(void)
{
	machine.target = machine.new_target;
	machine.generation++;
	fire_watch();
	run_ticker();
}

void pass(unsigned int ms)
{
	long long end = machine.clock + ms;

	while (machine.clock < end) {
		machine.clock++;
		if (machine.timer_at && machine.clock >= machine.timer_at)
			run_timer();
		if (machine.tick_at && machine.clock >= machine.tick_at)
			run_ticker();
		if (machine.target_at && machine.clock >= machine.target_at) {
			machine.target_at = 0;
			new_target();
		}
	}
}

void resched(void)
{
	machine.unbroken = 0;
}

/* Without preemption nobody else runs meanwhile. */
static void work_on(unsigned int pages)
{
	machine.unbroken += pages;
	CHECK(machine.unbroken <= 2 * ELASTIC_EXTENT_PAGES, "%u pages at a stretch",
	      machine.unbroken);
}

void send_sig(int signal, struct task_struct *task, int private)
{
	CHECK(task == &the_engine, "a signal for somebody else");
	machine.signal = true;
}

void flush_signals(struct task_struct *task)
{
	machine.signal = false;
}

struct task_struct *kthread_create(int (*thread)(void *), void *data,
				   const char *name)
{
	engine_thread = thread;
	return &the_engine;
}

void kthread_stop(struct task_struct *task) { }
bool kthread_should_stop(void) { return rounds-- <= 0; }

unsigned int memalloc_nofs_save(void)
{
	machine.nofs = true;
	return 0;
}

void heeds(int signal)
{
	machine.heeds_sigint |= signal == SIGINT;
}

void heeds_freezer(void)
{
	machine.heeds_freezer = true;
}

void wake_engine(void)
{
	fire_watch();
	rounds = 1;	/* of a watch that has fired it does not ask */
	engine_thread(NULL);
}

void engine_goes_on(void)
{
	rounds = 1;
	engine_thread(NULL);
}

int register_xenbus_watch(struct xenbus_watch *watch)
{
	the_watch = watch;
	return machine.no_watch ? -EIO : 0;
}

void register_xenstore_notifier(struct notifier_block *nb)
{
	nb->notifier_call(nb, 0, NULL);
}

void register_oom_notifier(struct notifier_block *nb)
{
	machine.oom_notifier = nb;
}

void unregister_oom_notifier(struct notifier_block *nb)
{
	machine.oom_notifier = NULL;
}

unsigned long out_of_memory(void)
{
	unsigned long freed = 0;

	machine.oom_notifier->notifier_call(machine.oom_notifier, 0, &freed);
	return freed;
}

/*
 * A step: something that may take long has come to a point where it can end.
 * What the case wants to happen happens now.
 */
static void step(void)
{
	machine.steps++;
	if (machine.steps != machine.cancel_at || machine.happened)
		return;
	machine.happened = true;
	if (machine.grows_then) {
		machine.guest_is_full = true;
	} else if (machine.oom_then) {
		struct task_struct *before = at_work, other;

		machine.guest_is_full = !machine.oom_is_not_ours;
		at_work = &other;
		machine.freed = out_of_memory();
		at_work = before;
	} else {
		new_target();
	}
}

void try_to_freeze(void)
{
	step();
}

/* ---- Xen ---- */

static void give_page(unsigned long extent, unsigned int page)
{
	CHECK(!machine.there[extent][page], "page %u of extent %lu is populated twice", page, extent);
	machine.there[extent][page] = true;
	machine.memory += !machine.pages[extent]++;
	machine.has_memory[extent] = 1;
}

void give_extents(unsigned int first, unsigned int count)
{
	unsigned int page;

	for (; count--; first++) {
		for (page = 0; page < ELASTIC_EXTENT_PAGES; page++)
			give_page(first, page);
	}
}

void lose_pages(unsigned int extent, unsigned int first, unsigned int end)
{
	for (; first < end; first++)
		machine.there[extent][first] = false, machine.pages[extent]--;
	machine.has_memory[extent] = !!machine.pages[extent];
	machine.memory -= !machine.pages[extent];
}

static bool take_page(unsigned long extent, unsigned int page)
{
	if (!machine.there[extent][page] || machine.refuses[extent] ||
	    machine.refuses_page[extent] == page + 1)
		return false;
	machine.there[extent][page] = false;
	machine.has_memory[extent] = !!--machine.pages[extent];
	machine.memory -= !machine.pages[extent];
	return true;
}

/* Whole, or as far as it goes: Xen ends at the first page that it refuses. */
static bool take_extent(unsigned long extent)
{
	unsigned int page;

	for (page = 0; page < ELASTIC_EXTENT_PAGES; page++) {
		if (!take_page(extent, page))
			return false;
	}
	return true;
}

/* Single pages: where it has no others, and for an extent of which some are there. */
static bool one_page(unsigned int command, unsigned long extent, unsigned int page)
{
	if (command != XENMEM_populate_physmap)
		return take_page(extent, page);
	if (!(machine.in_pieces || machine.has_memory[extent]) || !machine.pages_left)
		return false;
	machine.pages_left -= machine.pages_left > 0;
	give_page(extent, page);
	return true;
}

/* On another host nobody knows better than that there is nothing. */
int HYPERVISOR_hvm_op(int command, void *argument)
{
	struct xen_hvm_get_mem_type *type = argument;
	unsigned long page = type->pfn - (START >> 12);

	CHECK(command == HVMOP_get_mem_type && page / ELASTIC_EXTENT_PAGES < MAX_EXTENTS, "page %#lx", page);
	if (machine.no_types)
		return -ENOSYS;
	type->mem_type = machine.there[page / ELASTIC_EXTENT_PAGES][page % ELASTIC_EXTENT_PAGES] &&
			 !machine.elsewhere ? page % 3 ? HVMMEM_ram_rw : HVMMEM_ram_ro : HVMMEM_mmio_dm;
	return 0;
}

long work_on_cpu(int cpu, long (*call)(void *), void *argument)
{
	bool elsewhere = machine.elsewhere;
	long rc;

	CHECK(cpu == 0, "CPU %d", cpu);
	machine.elsewhere = false;
	rc = call(argument);
	machine.elsewhere = elsewhere;
	return rc;
}

long HYPERVISOR_memory_op(unsigned int command, void *argument)
{
	struct xen_memory_reservation *r = argument;
	unsigned long done, extent;

	step();
	machine.hypercalls++;
	CHECK(r->nr_extents <= ELASTIC_EXTENT_PAGES, "%lu frames", r->nr_extents);
	if (machine.elsewhere)
		return -ENOSYS;
	if (command == XENMEM_populate_physmap) {
		/* But for pages of an extent of which Xen has kept some: it is mended at once. */
		CHECK(!machine.expedited || !r->extent_order, "grace periods are expedited while memory comes");
		machine.address_bits = r->address_bits;
	}
	for (done = 0; done < r->nr_extents; done++) {
		pass(machine.extent_ms);
		extent = (r->extent_start[done] - (START >> 12)) >>
			 ELASTIC_EXTENT_ORDER;
		CHECK(extent < MAX_EXTENTS, "extent %lu", extent);
		if (command != XENMEM_populate_physmap) {
			CHECK(!machine.online[extent / BLOCK_EXTENTS] ||
			      machine.in_balloon[extent],
			      "extent %lu is given back while it is online",
			      extent);
			CHECK(!machine.online[extent / BLOCK_EXTENTS] ||
			      machine.marked[extent] == ELASTIC_EXTENT_PAGES,
			      "extent %lu: %u pages are marked", extent, machine.marked[extent]);
			CHECK(!machine.frozen[extent], "%u pages of extent %lu have no reference",
			      machine.frozen[extent], extent);
		}
		if (r->extent_order != ELASTIC_EXTENT_ORDER) {
			CHECK(!r->extent_order, "order %u", r->extent_order);
			if (!one_page(command, extent, (r->extent_start[done] - (START >> 12)) %
						       ELASTIC_EXTENT_PAGES))
				break;
		} else if (command == XENMEM_populate_physmap) {
			CHECK(!machine.has_memory[extent],
			      "extent %lu is populated twice", extent);
			if (!machine.room || machine.in_pieces ||
			    fails(PART_POPULATE))
				break;
			machine.room--;
			give_extents(extent, 1);
		} else {
			if (!take_extent(extent))
				break;
			machine.room += !machine.others_take;
		}
	}
	return done;
}

/* ---- Linux ---- */

unsigned long zone_managed_pages(struct zone *zone)
{
	return zone->nid ? elastic_populated(&node) * ELASTIC_EXTENT_PAGES : 1UL << 30;
}

unsigned long zone_page_state(struct zone *zone, int item)
{
	unsigned long managed = zone_managed_pages(zone);

	if (zone->nid && machine.guest_is_full && !node.draining)
		return 0;
	if (zone->nid)
		return managed - (machine.used ?: managed / 2) - machine.on_lists;
	if (machine.guest_is_full)
		return machine.left_free;
	return machine.home_free ?: managed / 2;
}

unsigned long cached_pages(int nid)
{
	return nid ? machine.cache : machine.cache_elsewhere;
}

unsigned long si_mem_available(void)
{
	if (machine.guest_is_full)
		return machine.cache_elsewhere;
	return (machine.home_free ?: 1UL << 30) -
	       (nodes[1].node_zones[0].nr_isolate_pageblock << pageblock_order);
}

void rcu_expedite_gp(void)
{
	machine.expedited++;
}

void rcu_unexpedite_gp(void)
{
	CHECK(machine.expedited--, "grace periods are not expedited");
}

/* Where Linux waits for grace periods: an operation has them expedited. */
static void check_expedited(void)
{
	CHECK(machine.expedited == elastic_busy(), "grace periods are expedited %d times, %d operations",
	      machine.expedited, elastic_busy());
}

void lock_device_hotplug(void)
{
	CHECK(!machine.hotplug_locked++, "device_hotplug_lock is taken twice");
}

void unlock_device_hotplug(void)
{
	CHECK(machine.hotplug_locked-- == 1, "device_hotplug_lock is not held");
	CHECK(!machine.marking, "nobody may look at pages any more");
	machine.looks = 0;
}

static unsigned int block_at(u64 address)
{
	CHECK(address >= START && (address - START) % BLOCK_BYTES == 0,
	      "no block begins at %#llx", (unsigned long long)address);
	return (address - START) / BLOCK_BYTES;
}

static unsigned int extent_at(unsigned long pfn)
{
	return (pfn - (START >> 12)) >> ELASTIC_EXTENT_ORDER;
}

struct memory_block *find_memory_block(unsigned long section)
{
	unsigned int block = block_at((u64)section << 12);

	return machine.plugged[block] ? &machine.blocks[block] : NULL;
}

/* The pages of a block that has come online, to who has the callback for it. */
static void hand_over(unsigned int block)
{
	unsigned int extent = block * BLOCK_EXTENTS + node.range.memmap_extents, order;

	for (; extent < (block + 1) * BLOCK_EXTENTS; extent += 1 << order) {
		order = extent % 2 ? 0 : 1;
		machine.in_balloon[extent] = machine.in_balloon[extent + order] = true;
		machine.marked[extent] = machine.marked[extent + order] = ELASTIC_EXTENT_PAGES;
		CHECK(xen_elastic_online_page(pfn_to_page(elastic_extent_pfn(&node.range, extent)),
					      ELASTIC_EXTENT_ORDER + order), "not its own");
		resched();
	}
}

int device_online(struct device *dev)
{
	unsigned int block = (struct memory_block *)dev - machine.blocks;

	CHECK(machine.hotplug_locked, "onlined without the lock");
	check_expedited();
	step();
	CHECK(machine.blocks[block].online_type == MMOP_ONLINE_MOVABLE,
	      "onlined as %d", machine.blocks[block].online_type);
	if (fails(PART_ONLINE)) {
		machine.online[block] = machine.udev;
		if (machine.udev)
			hand_over(block);
		return -ENOMEM;
	}
	machine.online[block] = true;
	hand_over(block);
	return 0;
}

static bool is_stuck(unsigned int block)
{
	return machine.stuck[block] &&
	       (!machine.stuck_until || machine.clock < machine.stuck_until);
}

/* What the driver is told of a block; its struct pages are not meant. */
static int tell_memory(unsigned int block, unsigned long action)
{
	struct memory_notify mn = {
		.start_pfn = elastic_extent_pfn(&node.range, block * BLOCK_EXTENTS + node.range.memmap_extents),
		.nr_pages = (BLOCK_EXTENTS - node.range.memmap_extents) * ELASTIC_EXTENT_PAGES,
	};

	return machine.memory_notifier->notifier_call(machine.memory_notifier, action, &mn);
}

/* A page that is to be passed by has no reference; all others are as they were. */
static void check_references(unsigned int block, bool dropped)
{
	unsigned int extent = block * BLOCK_EXTENTS + node.range.memmap_extents;

	for (; extent < (block + 1) * BLOCK_EXTENTS; extent++) {
		int expected = dropped && machine.pages[extent] != ELASTIC_EXTENT_PAGES ?
			       -(int)ELASTIC_EXTENT_PAGES : 0;

		CHECK(machine.references[extent] == expected, "extent %u: %d", extent,
		      machine.references[extent]);
	}
}

/* offline_pages(): until it is done, or a signal comes. */
int device_offline(struct device *dev)
{
	unsigned int block = (struct memory_block *)dev - machine.blocks, extent;
	struct zone *zone = &nodes[1].node_zones[0];
	long long end = machine.clock + 3600000;

	CHECK(machine.hotplug_locked, "offlined without the lock");
	check_expedited();
	zone->nr_isolate_pageblock = BLOCK_EXTENTS - node.range.memmap_extents;
	tell_memory(block, MEM_GOING_OFFLINE);
	check_references(block, true);
	step();
	pass(machine.offline_ms);
	while (is_stuck(block) && !machine.signal) {
		CHECK(machine.clock < end, "block %u is tried for ever", block);
		pass(1);
	}
	zone->nr_isolate_pageblock = 0;
	if (machine.signal) {
		tell_memory(block, MEM_CANCEL_OFFLINE);
		check_references(block, false);
		return -EINTR;
	}
	machine.online[block] = false;
	for (extent = block * BLOCK_EXTENTS + node.range.memmap_extents; extent < (block + 1) * BLOCK_EXTENTS; extent++) {
		machine.managed -= machine.in_balloon[extent] ? 0 : ELASTIC_EXTENT_PAGES;
		machine.in_balloon[extent] = false;
		machine.marked[extent] = 0;
		machine.pool_lost += machine.pool[extent];
		machine.pool[extent] = false;
	}
	tell_memory(block, MEM_OFFLINE);
	memset(&machine.references[block * BLOCK_EXTENTS], 0,
	       BLOCK_EXTENTS * sizeof(machine.references[0]));
	return 0;
}

int add_memory_driver_managed(int group, u64 start, u64 size, const char *name,
			      int flags)
{
	unsigned int block = block_at(start), extent;

	check_expedited();
	for (extent = 0; extent < node.range.memmap_extents; extent++)
		CHECK(machine.pages[block * BLOCK_EXTENTS + extent] == ELASTIC_EXTENT_PAGES,
		      "block %u: its struct pages have no memory", block);
	CHECK(flags & MHP_STAY_OFFLINE, "somebody else would online it");
	CHECK(mhp_default_online_type == MMOP_ONLINE_KERNEL,
	      "what is for all memory was changed");
	machine.add_flags = flags;
	if (fails(PART_ADD))
		return -ENOMEM;
	machine.plugged[block] = true;
	return 0;
}

int remove_memory(u64 start, u64 size)
{
	unsigned int block = block_at(start);

	check_expedited();
	if (machine.online[block] || fails(PART_REMOVE))
		return -EBUSY;
	machine.lowest_first |= (int)block > machine.last_removed;
	machine.last_removed = block;
	machine.plugged[block] = false;
	return 0;
}

int memory_group_register_dynamic(int nid, unsigned long pages)
{
	return 1;
}

struct page *pfn_to_online_page(unsigned long pfn)
{
	return machine.online[extent_at(pfn) / BLOCK_EXTENTS] ?
	       pfn_to_page(pfn) : NULL;
}

/* The first to look at this page of the block's memmap. */
int page_to_nid(const struct page *page)
{
	CHECK(machine.plugged[extent_at(page_to_pfn(page)) / BLOCK_EXTENTS],
	      "looked at what is not there");
	CHECK(!machine.hotplug_locked, "looked while others wait");
	if (!machine.looks++ || machine.looked_at != extent_at(page_to_pfn(page)) / BLOCK_EXTENTS) {
		machine.looked_at = extent_at(page_to_pfn(page)) / BLOCK_EXTENTS;
		machine.looks = 1;
	}
	pass(machine.look_ms);
	return 1;
}

int register_memory_notifier(struct notifier_block *nb)
{
	machine.memory_notifier = nb;
	return 0;
}

void page_ref_add(struct page *page, int n)
{
	machine.references[extent_at(page_to_pfn(page))] += n;
}

void set_page_count(struct page *page, int n)
{
	CHECK(n == 1 && machine.frozen[extent_at(page_to_pfn(page))]-- > 0,
	      "a page has a reference more");
}

void page_offline_begin(void)
{
	CHECK(!machine.marking, "it would wait for itself");
	machine.marking = true;
}

void page_offline_end(void)
{
	machine.marking = false;
}

void __SetPageOffline(struct page *page)
{
	CHECK(machine.marking, "somebody may look at it");
	work_on(1);
	machine.marked[extent_at(page_to_pfn(page))]++;
}

void adjust_managed_page_count(struct page *page, long n)
{
	machine.managed += n;
}

/* They are nobody's to take: the block lies on them. */
static void check_no_struct_pages(unsigned int extent)
{
	CHECK(extent % BLOCK_EXTENTS >= node.range.memmap_extents,
	      "extent %u has struct pages", extent);
}

bool take_free_pages(struct page *page, unsigned int order)
{
	unsigned int extent = extent_at(page_to_pfn(page));

	check_no_struct_pages(extent);
	CHECK(machine.hotplug_locked, "taken without the lock");
	CHECK(order == ELASTIC_EXTENT_ORDER && machine.online[extent / BLOCK_EXTENTS],
	      "extent %u", extent);
	CHECK(elastic_has_memory(&node, extent), "extent %u is empty", extent);
	CHECK(machine.looked_at == extent / BLOCK_EXTENTS && machine.looks >= BLOCK_EXTENTS * 8,
	      "a fault under zone->lock");
	work_on(ELASTIC_EXTENT_PAGES);
	if (machine.busy[extent] || machine.in_use[extent] || machine.pool[extent])
		return false;
	machine.taken++;
	if (machine.target_at_take && !--machine.target_at_take)
		new_target();
	machine.in_balloon[extent] = true;
	machine.frozen[extent] = ELASTIC_EXTENT_PAGES;
	return true;
}

int alloc_contig_range(unsigned long pfn, unsigned long end, int type, int gfp)
{
	unsigned int extent, first = extent_at(pfn), last = extent_at(end - 1);

	CHECK(machine.hotplug_locked, "taken without the lock");
	CHECK(!machine.expedited, "grace periods are expedited while extents are taken");
	for (extent = first; extent <= last; extent++) {
		check_no_struct_pages(extent);
		CHECK(elastic_has_memory(&node, extent), "extent %u is empty", extent);
		if (machine.busy[extent]) {
			pass(machine.busy_ms);
			return -EBUSY;
		}
	}
	pass(CONTIG_MS);
	machine.moved += last - first + 1;
	for (extent = first; extent <= last; extent++) {
		machine.in_balloon[extent] = true;
		machine.pool[extent] = false;	/* there is another one now */
	}
	return 0;
}

void generic_online_page(struct page *page, unsigned int order)
{
	unsigned int extent = extent_at(page_to_pfn(page));

	CHECK(order == ELASTIC_EXTENT_ORDER && machine.online[extent / BLOCK_EXTENTS],
	      "extent %u", extent);
	CHECK(machine.pages[extent] == ELASTIC_EXTENT_PAGES, "extent %u has %u pages", extent,
	      machine.pages[extent]);
	CHECK(machine.in_balloon[extent], "extent %u is given twice", extent);
	CHECK(!machine.frozen[extent], "extent %u has no references", extent);
	work_on(ELASTIC_EXTENT_PAGES);
	machine.managed += ELASTIC_EXTENT_PAGES;
	machine.marked[extent] = 0;
	machine.in_balloon[extent] = false;
}

struct elastic_node *elastic_node_of_pfn(unsigned long pfn, u32 *extent)
{
	return elastic_find_extent(&node.range, pfn, extent) ? &node : NULL;
}

/* ---- xenstore: for who is linked without store.c ---- */

#define WEAK	__attribute__((weak))

WEAK int elastic_store_requests(u64 *generation)
{
	*generation = machine.generation;
	node.target = machine.target;
	return 0;
}

WEAK int elastic_store_target(const struct elastic_node *unused, u64 *kib)
{
	*kib = elastic_kib(machine.target);
	return 0;
}

WEAK void elastic_store_request(struct elastic_node *unused)
{
	node.target = machine.target;
	if (!machine.later_at)
		return;
	machine.cancel_at = machine.steps + machine.later_at;
	machine.new_target = machine.later_target;
	machine.later_at = 0;
	machine.happened = false;
}

WEAK void elastic_store_progress(const struct elastic_node *unused)
{
	if (machine.xenstore_stalls)
		longjmp(stalled, 1);
}

WEAK int elastic_store_node(struct elastic_node *unused) { return 0; }
WEAK u64 elastic_store_left_behind(const struct elastic_node *unused) { return machine.left_behind; }
WEAK void elastic_store_hello(void) { }
WEAK void elastic_store_goodbye(void) { }
WEAK void elastic_store_ack(u64 generation) { machine.acked++; }
WEAK void elastic_store_state(const struct elastic_node *unused) { }
WEAK void elastic_store_report(const struct elastic_node *unused) { }
WEAK void elastic_store_done(u64 generation) { }

/* ---- The driver's other files ---- */

u64 elastic_topo_publish(enum xtopo_phase phase, bool bump)
{
	CHECK(!machine.expedited, "grace periods are expedited while programs are told");
	pass(machine.publish_ms);
	machine.published = phase;
	machine.saw_growing |= phase == XTOPO_GROWING;
	machine.told_of_drain |= phase == XTOPO_DRAINING && bump;
	machine.versions += bump;
	return machine.versions;
}

int elastic_topo_wait_acks(u64 version, unsigned int timeout_ms)
{
	CHECK(!machine.expedited, "grace periods are expedited while programs are waited for");
	machine.wait_for = version;
	machine.grace_ms = timeout_ms;
	return elastic_cancelled() ? -ECANCELED : 0;
}

int elastic_evacuate(struct elastic_node *unused)
{
	CHECK(node_isset(node.nid, draining_nodes) && draining_key == 1,
	      "the allocator puts new pages there");
	CHECK(!machine.expedited, "grace periods are expedited while pages move");
	return elastic_cancelled() ? -ECANCELED : 0;
}

void elastic_residue_reason(struct elastic_node *unused)
{
	snprintf(node.reason, sizeof(node.reason), "pages of the test");
}

bool elastic_block_in_use(const struct elastic_node *unused, u32 block, bool pool_stays)
{
	unsigned int extent = block * BLOCK_EXTENTS;
	bool pages = false;

	for (; extent < (block + 1) * BLOCK_EXTENTS; extent++)
		pages |= machine.busy[extent] || machine.in_use[extent] ||
			 (pool_stays && machine.pool[extent]);
	return (is_stuck(block) || pages) && !machine.unseen;
}

int elastic_cpus_up(struct elastic_node *unused)
{
	check_expedited();
	CHECK(!bitmap_empty(node.present, node.range.nr_blocks), "its vCPUs have no memory");
	if (machine.cpu_stays_down || fails(PART_CPUS_UP))
		return elastic_node_error_too(&node, -EIO, "vCPU 2 stays down");
	if (!machine.cpus_up) {
		machine.cpus_with = elastic_populated(&node);
		pass(CPUS_MS);
	}
	machine.cpus_up = true;
	return 0;
}

int elastic_cpus_down(struct elastic_node *unused)
{
	check_expedited();
	if (elastic_cancelled())
		return -ECANCELED;
	if (fails(PART_CPUS_DOWN))
		return elastic_node_error(&node, -EBUSY, "vCPU 2 stays up");
	machine.cpus_up = false;
	return 0;
}

int elastic_node_unplug(struct elastic_node *unused)
{
	check_expedited();
	if (!machine.cpu_comes_back) {
		machine.cpus_up = false;
		return 0;
	}
	snprintf(node.reason, sizeof(node.reason), "vCPU 2 is online again");
	return -EBUSY;
}

void drain_all_pages(struct zone *zone) { machine.on_lists = 0; }
void drained(void) { machine.drains++; }
unsigned long elastic_reserve_relief(void) { return machine.relief; }
void elastic_topo_refresh(void) { machine.refreshes++; }
int elastic_topo_init(void) { return 0; }
int elastic_evac_init(void) { return 0; }
int elastic_pm_init(void) { return 0; }
void elastic_cpu_init(void) { }
void elastic_stats_init(void) { }

/* ---- Boot ---- */

void boot(unsigned int blocks)
{
	node.vnode = 1;
	node.nid = 1;
	node.mgid = 1;
	node.grace_ms = 1234;
	CHECK(!elastic_range_init(&node.range, START, blocks * BLOCK_BYTES,
				  BLOCK_BYTES, ELASTIC_EXTENT_BYTES), "range");
	machine.room = blocks * BLOCK_EXTENTS;
	machine.pages_left = -1;
	machine.last_removed = MAX_BLOCKS;
	machine.busy_ms = 20;
	machine.offline_ms = 5;
	elastic_initcall();
}
