/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much of the kernel as the driver's files ask for, for one thread in user
 * space.  test_elastic_numa.py makes each header that they include out of this
 * file.  What is only declared here is in machine.c, or in a file's own test.
 */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <asm/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

/* What the compiler and <linux/kernel.h> have */
#define __printf(text, first)	__attribute__((format(printf, text, first)))
#define READ_ONCE(x)		(x)
#define WRITE_ONCE(x, value)	((x) = (value))
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define ALIGN(n, to)		(((n) + (to) - 1) / (to) * (to))
#define ALIGN_DOWN(n, to)	((n) / (to) * (to))
#define IS_ALIGNED(n, to)	((n) % (to) == 0)
#define swap(a, b)							\
	do { __typeof__(a) _s = (a); (a) = (b); (b) = _s; } while (0)
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define min(a, b)	({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b)	({ __typeof__(a) _c = (a); __typeof__(b) _d = (b); _c > _d ? _c : _d; })
#define clamp(value, low, high)	min(max(value, low), high)
/* Who counts what is done without it has one. */
extern void resched(void) __attribute__((weak));
#define cond_resched()	(resched ? resched() : (void)0)
#define fallthrough	__attribute__((fallthrough))
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define container_of(pointer, type, member)				\
	((type *)((char *)(pointer) - offsetof(type, member)))
#define __init
#define IS_ENABLED(option)	0
void say(const char *format, ...) __printf(1, 2);
void fail(const char *format, ...) __printf(1, 2);
#define pr_info		say
#define pr_warn		say
#define pr_err		say
#define pr_warn_ratelimited	say
#define pr_err_ratelimited	say
#define pr_err_once		say
#define WARN(condition, ...) \
	({ bool _bad = (condition); if (_bad) fail(__VA_ARGS__); _bad; })
#include "fake/linux/sprintf.h"

/* Bits */
#define WORD_BITS	(8 * sizeof(unsigned long))

static inline bool test_bit(unsigned long bit, const unsigned long *map)
{
	return map[bit / WORD_BITS] >> (bit % WORD_BITS) & 1;
}

static inline void set_bit(unsigned long bit, unsigned long *map)
{
	map[bit / WORD_BITS] |= 1UL << (bit % WORD_BITS);
}

static inline void clear_bit(unsigned long bit, unsigned long *map)
{
	map[bit / WORD_BITS] &= ~(1UL << (bit % WORD_BITS));
}

static inline unsigned long next_bit(const unsigned long *map,
				     unsigned long size, unsigned long bit,
				     bool value)
{
	while (bit < size && test_bit(bit, map) != value)
		bit++;
	return bit < size ? bit : size;
}

#define find_next_bit(map, size, bit)	next_bit(map, size, bit, true)
#define find_next_zero_bit(map, size, bit)	next_bit(map, size, bit, false)
#define for_each_set_bit_from(bit, map, size)				\
	for ((bit) = next_bit(map, size, bit, true); (bit) < (size);	\
	     (bit) = next_bit(map, size, (bit) + 1, true))
#define for_each_set_bit(bit, map, size)				\
	for ((bit) = next_bit(map, size, 0, true); (bit) < (size);	\
	     (bit) = next_bit(map, size, (bit) + 1, true))
#define for_each_clear_bit(bit, map, size)				\
	for ((bit) = next_bit(map, size, 0, false); (bit) < (size);	\
	     (bit) = next_bit(map, size, (bit) + 1, false))

static inline void bitmap_set(unsigned long *map, unsigned int first,
			      unsigned int count)
{
	while (count--)
		set_bit(first++, map);
}

static inline void bitmap_clear(unsigned long *map, unsigned int first,
				unsigned int count)
{
	while (count--)
		clear_bit(first++, map);
}

static inline bool bitmap_empty(const unsigned long *map, unsigned int size)
{
	return next_bit(map, size, 0, true) == size;
}

#define DECLARE_BITMAP(name, bits)	unsigned long name[((bits) + WORD_BITS - 1) / WORD_BITS]
#define bitmap_zero(map, bits)		bitmap_clear(map, 0, bits)

static inline unsigned int bitmap_weight(const unsigned long *map, unsigned int size)
{
	unsigned int bit, n = 0;

	for_each_set_bit(bit, map, size)
		n++;
	return n;
}

#define GFP_KERNEL	0
typedef unsigned int gfp_t;
#define __GFP_THISNODE		0x100U
#define __GFP_NORETRY		0x200U
#define __GFP_DIRECT_RECLAIM	0x400U
#define __GFP_NOWARN	0
#define bitmap_zalloc(bits, gfp)	calloc((bits) / WORD_BITS + 1, sizeof(long))
#define bitmap_free(map)		free(map)

typedef struct { int counter; } atomic_t;
#define atomic_read(v)		((v)->counter)
#define atomic_add(n, v)	((v)->counter += (n))
#define atomic_sub(n, v)	((v)->counter -= (n))
#define atomic_inc(v)		((v)->counter++)
#define ATOMIC_INIT(n)		{ (n) }

/* CPUs and nodes: a word is enough for each */
#define nr_cpu_ids		8U
#define nr_node_ids		8U
struct cpumask { unsigned long bits[1]; };
extern struct cpumask cpus_possible, cpus_present, cpus_online;
#define cpu_possible_mask	(&cpus_possible)
#define cpu_online_mask		(&cpus_online)
#define cpu_present(cpu)	test_bit(cpu, cpus_present.bits)
#define cpu_online(cpu)		test_bit(cpu, cpus_online.bits)
#define for_each_cpu(cpu, mask)	for_each_set_bit(cpu, (mask)->bits, nr_cpu_ids)
#define for_each_present_cpu(cpu)	for_each_cpu(cpu, &cpus_present)
#define cpumask_set_cpu(cpu, mask)	set_bit(cpu, (mask)->bits)
#define cpumask_test_cpu(cpu, mask)	test_bit(cpu, (mask)->bits)
#define cpumask_clear(mask)	((mask)->bits[0] = 0)
#define cpumask_empty(mask)	(!(mask)->bits[0])
#define cpumask_copy(to, from)	((to)->bits[0] = (from)->bits[0])
#define cpumask_subset(a, b)	(!((a)->bits[0] & ~(b)->bits[0]))
#define cpumask_intersects(a, b)	(!!((a)->bits[0] & (b)->bits[0]))
#define cpumask_first_and(a, b)						\
	((a)->bits[0] & (b)->bits[0] ?					\
	 (unsigned int)__builtin_ctzl((a)->bits[0] & (b)->bits[0]) : nr_cpu_ids)
int cpu_to_node(unsigned int cpu);
void set_cpu_present(unsigned int cpu, bool present);
struct device *get_cpu_device(unsigned int cpu);
void xen_arch_register_cpu(unsigned int cpu);
void xen_arch_unregister_cpu(unsigned int cpu);
extern unsigned long preset_lpj, loops_per_jiffy;
bool node_online(int nid);
void try_offline_node(int nid);
typedef struct { unsigned long bits[1]; } nodemask_t;
#define NODE_MASK_NONE		{ { 0 } }
#define nodes_subset(a, b)	(!((a).bits[0] & ~(b).bits[0]))
#define nodes_or(to, a, b)	((to).bits[0] = (a).bits[0] | (b).bits[0])
#define nodes_and(to, a, b)	((to).bits[0] = (a).bits[0] & (b).bits[0])
#define nodes_andnot(to, a, b)	((to).bits[0] = (a).bits[0] & ~(b).bits[0])
#define for_each_node_mask(nid, mask)	for_each_set_bit(nid, (mask).bits, nr_node_ids)
extern nodemask_t node_states[2];
#define node_isset(node, mask)	test_bit(node, (mask).bits)
#define node_set(node, mask)	set_bit(node, (mask).bits)
#define node_clear(node, mask)	clear_bit(node, (mask).bits)
struct resource { unsigned long flags; };
extern int draining_key;
extern nodemask_t draining_nodes;
#define DEFINE_STATIC_KEY_FALSE(key)	int key
#define DECLARE_STATIC_KEY_FALSE(key)	extern int key
#define static_branch_unlikely(key)	(*(key) > 0)
#define static_branch_inc(key)	(++*(key))
#define static_branch_dec(key)	(--*(key))

/* Time: the machine's, which stands still unless something waits */
#define HZ		1000
typedef long long ktime_t;	/* ms */
ktime_t ktime_get(void);
unsigned long now(void);
#define jiffies			now()
#define msecs_to_jiffies(ms)	(ms)
#define time_before(a, b)	((long)((a) - (b)) < 0)
#define time_after_eq(a, b)	((long)((a) - (b)) >= 0)
#define ktime_ms_delta(later, earlier)	((later) - (earlier))
#define ktime_us_delta(later, earlier)	(((later) - (earlier)) * 1000)

/* One thread; timers and work run when the machine's time passes */
#define DEFINE_SPINLOCK(lock)		int lock __attribute__((unused))
#define spin_lock(lock)			((*(lock))++ ? fail("taken twice: " #lock) : (void)0)
#define spin_unlock(lock)		(--*(lock) ? fail("not held: " #lock) : (void)0)
#define spin_lock_bh(lock)		spin_lock(lock)
#define spin_unlock_bh(lock)		spin_unlock(lock)
struct wait_queue_head { int unused; };
#define DECLARE_WAIT_QUEUE_HEAD(name)	struct wait_queue_head name __attribute__((unused))
#define DEFINE_WAIT_FUNC(name, run)	int name
#define add_wait_queue(queue, wait)	((void)(wait))
#define remove_wait_queue(queue, wait)	((void)(wait))
#define TASK_IDLE		0
void wait_woken(int *wait, unsigned int state, long timeout);
#define wake_up_interruptible_all(queue)	do { } while (0)
struct mutex { int held; };
#define DEFINE_MUTEX(name)	struct mutex name
void mutex_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);
/* Who asks whether anybody was woken has one. */
extern void woke(struct wait_queue_head *queue) __attribute__((weak));
#define wake_up_all(queue)		(woke ? woke(queue) : (void)(queue))
#define wait_event_freezable(queue, condition)	((void)(condition))
struct timer_list { void (*function)(struct timer_list *timer); };
#define DEFINE_TIMER(name, run)		struct timer_list name = { run }
void mod_timer(struct timer_list *timer, unsigned long at);
struct work_struct { void (*function)(struct work_struct *work); };
struct delayed_work { struct work_struct work; };
#define DECLARE_DELAYED_WORK(name, run)	struct delayed_work name = { { run } }
extern void *system_unbound_wq;
void queue_delayed_work(void *queue, struct delayed_work *work,
			unsigned long delay);
void cancel_delayed_work_sync(struct delayed_work *work);

/* Tasks and signals */
struct task_struct;
extern struct task_struct the_engine, *at_work;
#define current		at_work
#define SIGINT		2
/* Who asks what its thread heeds has these. */
extern void heeds(int signal) __attribute__((weak));
#define allow_signal(signal)	(heeds ? heeds(signal) : (void)(signal))
void send_sig(int signal, struct task_struct *task, int private);
void flush_signals(struct task_struct *task);
struct task_struct *kthread_create(int (*thread)(void *), void *data,
				   const char *name);
void kthread_stop(struct task_struct *task);
bool kthread_should_stop(void);
extern void begins_to_run(struct task_struct *task) __attribute__((weak));
#define wake_up_process(task)	(begins_to_run ? begins_to_run(task) : (void)(task))
#define IS_ERR(pointer)		((unsigned long)(pointer) > -4096UL)
#define PTR_ERR(pointer)	((long)(pointer))
#define ERR_PTR(error)		((void *)(long)(error))
extern void heeds_freezer(void) __attribute__((weak));
#define set_freezable()		(heeds_freezer ? heeds_freezer() : (void)0)
void try_to_freeze(void);
unsigned int memalloc_nofs_save(void);

/* Lists */
struct list_head { struct list_head *next, *prev; };
#define LIST_HEAD(name)	struct list_head name = { &(name), &(name) }
#define INIT_LIST_HEAD(list)	((list)->next = (list)->prev = (list))

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	entry->prev = list->prev;
	entry->next = list;
	list->prev->next = entry;
	list->prev = entry;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
}

#define list_entry_of(link, entry, member)				\
	container_of(link, __typeof__(*(entry)), member)
#define list_for_each_entry(entry, list, member)			\
	for ((entry) = list_entry_of((list)->next, entry, member);	\
	     &(entry)->member != (list);				\
	     (entry) = list_entry_of((entry)->member.next, entry, member))
#define list_for_each_entry_safe_reverse(entry, before, list, member)	\
	for ((entry) = list_entry_of((list)->prev, entry, member),	\
	     (before) = list_entry_of((entry)->member.prev, entry, member); \
	     &(entry)->member != (list); (entry) = (before),		\
	     (before) = list_entry_of((before)->member.prev, entry, member))
#define list_for_each_entry_safe(entry, after, list, member)		\
	for ((entry) = list_entry_of((list)->next, entry, member),	\
	     (after) = list_entry_of((entry)->member.next, entry, member); \
	     &(entry)->member != (list); (entry) = (after),		\
	     (after) = list_entry_of((after)->member.next, entry, member))

/* Processes: one of a few threads, of which some run */
#define PIDTYPE_TGID		0
#define MAX_THREADS		4
struct pid {
	int references;
	bool gone;
	struct task_struct *threads[MAX_THREADS];
};
struct task_struct {
	struct pid *tgid;
	bool runs;
	int number;
	const char *name;
	struct task_struct *group_leader;
};
void rcu_expedite_gp(void);
void rcu_unexpedite_gp(void);
#define rcu_read_lock()		do { } while (0)
#define rcu_read_unlock()	do { } while (0)
#define pid_task(pid, type)	((pid)->gone ? NULL : (pid)->threads[0])
#define for_each_thread(process, thread)				\
	for (struct task_struct **_at = (process)->tgid->threads;	\
	     _at < (process)->tgid->threads + MAX_THREADS &&		\
	     ((thread) = *_at); _at++)
#define task_is_running(task)	((task)->runs)
#define task_tgid(task)		((task)->tgid)

static inline struct pid *get_pid(struct pid *pid)
{
	pid->references++;
	return pid;
}

static inline void put_pid(struct pid *pid)
{
	if (pid)
		pid->references--;
}

/* Devices */
#define __user
#define PAGE_SIZE	4096UL
#define THIS_MODULE	NULL
#define GFP_KERNEL_ACCOUNT	0
#define kmalloc(size, gfp)	malloc(size)
#define kzalloc(size, gfp)	calloc(1, size)
#define get_zeroed_page(gfp)	((unsigned long)aligned_alloc(PAGE_SIZE, PAGE_SIZE))
#define free_page(page)		free((void *)(page))
#define BUILD_BUG_ON(condition)	_Static_assert(!(condition), #condition)
#define strscpy(to, from)	snprintf(to, sizeof(to), "%s", from)
#define xchg(at, value)							\
	({ __typeof__(*(at)) _was = *(at); *(at) = (value); _was; })
struct inode { int unused; };
struct file { void *private_data; };
#define nonseekable_open(inode, file)	0
struct vm_area_struct { unsigned long vm_pgoff, vm_flags, vm_start, vm_end; };
#define VM_WRITE	2UL
#define VM_MAYWRITE	0x20UL
#define VM_DONTEXPAND	0x40000UL
#define VM_DONTDUMP	0x4000000UL
#define vma_pages(vma)	(((vma)->vm_end - (vma)->vm_start) / PAGE_SIZE)
#define vm_flags_mod(vma, set, clear)					\
	((vma)->vm_flags = ((vma)->vm_flags | (set)) & ~(clear))
#define virt_to_page(address)	((void *)(address))
int vm_insert_page(struct vm_area_struct *vma, unsigned long address, void *page);
typedef unsigned int __poll_t;
typedef int poll_table;
#define EPOLLPRI	2U
#define poll_wait(file, queue, wait)	do { } while (0)
struct file_operations {
	void *owner;
	int (*open)(struct inode *inode, struct file *file);
	int (*release)(struct inode *inode, struct file *file);
	int (*mmap)(struct file *file, struct vm_area_struct *vma);
	__poll_t (*poll)(struct file *file, poll_table *wait);
	long (*unlocked_ioctl)(struct file *file, unsigned int command,
			       unsigned long argument);
};
struct kobject { int unused; };
struct device { struct kobject kobj; };
#define MISC_DYNAMIC_MINOR	255
struct miscdevice {
	int minor;
	const char *name;
	const struct file_operations *fops;
	unsigned int mode;
	struct device *this_device;
};
int misc_register(struct miscdevice *device);
/* Suspend */
struct dev_pm_ops { int (*freeze)(struct device *device); };
struct device_driver {
	const char *name;
	const struct dev_pm_ops *pm;
	bool suppress_bind_attrs;
};
struct platform_driver { struct device_driver driver; };
struct platform_device;
#define PLATFORM_DEVID_NONE	(-1)
int platform_driver_register(struct platform_driver *driver);
void platform_driver_unregister(struct platform_driver *driver);
struct platform_device *
platform_device_register_simple(const char *name, int id, void *resources,
				unsigned int count);

#define KOBJ_CHANGE	0
void kobject_uevent_env(struct kobject *kobj, int action, char **env);
#define CPUHP_AP_ONLINE_DYN	0
int cpuhp_setup_state_nocalls(int state, const char *name,
			      int (*up)(unsigned int cpu),
			      int (*down)(unsigned int cpu));
#define NUMA_RESET_NR	600
void numa_reset_set_topology(u64 version, const nodemask_t *usable);
long numa_reset_ioctl(void *args);

/* Notifiers */
struct notifier_block {
	int (*notifier_call)(struct notifier_block *nb, unsigned long action,
			     void *data);
	int priority;
};
enum { NOTIFY_DONE, NOTIFY_OK, NOTIFY_BAD };
#define notifier_from_errno(rc)	(NOTIFY_BAD - (rc))
/* Who boots anew has one. */
extern void reboots(struct notifier_block *nb) __attribute__((weak));
#define register_reboot_notifier(nb)	(reboots ? reboots(nb) : (void)(nb))
#define unregister_reboot_notifier(nb)	(reboots ? reboots(NULL) : (void)(nb))
void register_oom_notifier(struct notifier_block *nb);
void unregister_oom_notifier(struct notifier_block *nb);
void register_xenstore_notifier(struct notifier_block *nb);
int elastic_initcall(void);
#define early_initcall(run)	late_initcall(run)
#define late_initcall(run)	int elastic_initcall(void) { return run(); }

#define NUMA_NO_NODE	(-1)
/* Zones: node 0 has room, node 1 little in use */
#define PAGE_SHIFT	12
#define PHYS_PFN(address)	((address) >> PAGE_SHIFT)
#define ZONE_MOVABLE	0
#define MAX_NR_ZONES	1
enum { NR_FREE_PAGES, NR_ACTIVE_FILE, NR_INACTIVE_FILE };
struct zone {
	int nid;
	unsigned long lowmem_reserve[1];
	unsigned long nr_isolate_pageblock;
	unsigned long watermark_boost;
	bool for_kernel;		/* not ZONE_MOVABLE */
	int node, lock;
};
#define pageblock_order		9
#define zone_to_nid(zone)	((zone)->node)
extern struct zone all_zones[];
extern unsigned int nr_zones;
#define for_each_populated_zone(zone)	\
	for ((zone) = all_zones; (zone) < all_zones + nr_zones; (zone)++)
#define spin_lock_irq(lock)	do { } while (0)
#define spin_unlock_irq(lock)	do { } while (0)
typedef struct { struct zone node_zones[MAX_NR_ZONES]; } pg_data_t;
extern pg_data_t nodes[2];
#define NODE_DATA(nid)		(&nodes[nid])
#define populated_zone(zone)	true
#define high_wmark_pages(zone)	0UL
#define node_page_state(pgdat, item)					\
	((item) == NR_INACTIVE_FILE ?					\
	 cached_pages((pgdat)->node_zones[0].nid) : 0UL)
unsigned long cached_pages(int nid);
unsigned long zone_managed_pages(struct zone *zone);
unsigned long zone_page_state(struct zone *zone, int item);
unsigned long si_mem_available(void);
enum { N_MEMORY, N_CPU };
unsigned long node_present_pages(int nid);
#define for_each_node_state(nid, state)	for ((nid) = 0; (nid) < 2; (nid)++)
/* Who counts what all CPUs have to do has one. */
extern void drained(void) __attribute__((weak));
#define lru_add_drain_all()	(drained ? drained() : (void)0)
void drain_all_pages(struct zone *zone);

/* Memory hotplug */
struct memory_block { struct device dev; int online_type; };
enum { MMOP_OFFLINE, MMOP_ONLINE, MMOP_ONLINE_KERNEL, MMOP_ONLINE_MOVABLE };
#define MHP_MERGE_RESOURCE	1
#define MHP_MEMMAP_ON_MEMORY	2
#define MHP_NID_IS_MGID		4
#define MHP_STAY_OFFLINE	16
#define pfn_to_section_nr(pfn)	(pfn)
extern int mhp_default_online_type;
void lock_device_hotplug(void);
void unlock_device_hotplug(void);
struct memory_block *find_memory_block(unsigned long section);
int device_online(struct device *dev);
int device_offline(struct device *dev);
#define put_device(dev)		do { } while (0)
int add_memory_driver_managed(int group, u64 start, u64 size, const char *name,
			      int flags);
int remove_memory(u64 start, u64 size);
int memory_group_register_dynamic(int nid, unsigned long pages);
struct memory_notify { unsigned long start_pfn, nr_pages; };
enum {
	MEM_GOING_ONLINE, MEM_ONLINE, MEM_GOING_OFFLINE, MEM_OFFLINE,
	MEM_CANCEL_OFFLINE
};
int register_memory_notifier(struct notifier_block *nb);
#define set_online_page_callback(run)	((void)(run), 0)

/* Pages: a pointer is a number, and only FAKE_BUDDY looks behind it */
struct page { unsigned long private; char unused[56]; };
#ifdef FAKE_BUDDY
extern struct page pages[];
#define FIRST_PAGE	pages
#else
#define FIRST_PAGE	((struct page *)0)
#endif
#define pfn_to_page(pfn)	(FIRST_PAGE + (pfn))
#define page_to_pfn(at)	((unsigned long)((at) - FIRST_PAGE))
#define page_zone(page)		((void)(page), &nodes[1].node_zones[0])
#define zone_idx(zone)		(ZONE_MOVABLE - (zone)->for_kernel)
void page_ref_add(struct page *page, int n);
void set_page_count(struct page *page, int n);
bool take_free_pages(struct page *page, unsigned int order);
void page_offline_begin(void);
void page_offline_end(void);
void __SetPageOffline(struct page *page);
void adjust_managed_page_count(struct page *page, long n);
#define MIGRATE_MOVABLE	1
struct page *pfn_to_online_page(unsigned long pfn);
int page_to_nid(const struct page *page);
#ifdef FAKE_FOLIOS
#include "fake_folio.h"
#endif
#ifdef FAKE_BUDDY
#include "fake_buddy.h"
#endif
#ifdef FAKE_XENBUS
#include "fake_xenbus.h"
#endif
int alloc_contig_range(unsigned long pfn, unsigned long end, int type, int gfp);
void generic_online_page(struct page *page, unsigned int order);
bool xen_elastic_online_page(struct page *page, unsigned int order);
bool xen_elastic_never_waits(void);

/* Boot: what SRAT and the kernel's parameters say */
#define MAX_NUMNODES	8
#define __initdata
#define node_possible(nid)	((nid) < MAX_NUMNODES)
#define pxm_to_node(pxm)	((int)(pxm))
#define acpi_disabled		false
#define xen_pvh_domain()	true
#define xen_initial_domain()	false
#define is_kdump_kernel()	false
unsigned long memory_block_size_bytes(void);
bool mhp_supports_memmap_on_memory(void);
#define mhp_enable_memmap_on_memory()	do { } while (0)
#define kcalloc(n, size, gfp)	calloc(n, size)
#ifndef kfree
#define kfree(pointer)		free(pointer)
#endif
#define IORESOURCE_SYSTEM_RAM	1
#define IORESOURCE_EXCLUSIVE	2
#define IORESOURCE_BUSY		4
struct resource *__request_mem_region(u64 start, u64 size, const char *name,
				      int flags);
union acpi_subtable_headers { int unused; };
struct acpi_srat_mem_affinity {
	u32 proximity_domain, flags;
	u64 base_address, length;
};
struct acpi_table_srat { int unused; };
#define ACPI_SRAT_MEM_ENABLED		1
#define ACPI_SRAT_MEM_HOT_PLUGGABLE	2
#define ACPI_SIG_SRAT			"SRAT"
#define ACPI_SRAT_TYPE_MEMORY_AFFINITY	1
#define BAD_MADT_ENTRY(entry, end)	(!(end))
typedef int (*acpi_tbl_entry_handler)(union acpi_subtable_headers *header,
				      const unsigned long end);
int acpi_table_parse_entries(const char *table, unsigned long size, int type,
			     acpi_tbl_entry_handler handler, unsigned int max);

/* Xen */
typedef unsigned long xen_pfn_t;
enum { XENMEM_populate_physmap, XENMEM_decrease_reservation };
#define DOMID_SELF	0x7ff0
struct xen_memory_reservation {
	xen_pfn_t *extent_start;
	unsigned long nr_extents;
	unsigned int extent_order, address_bits, domid;
};
#define set_xen_guest_handle(handle, value)	((handle) = (value))
long HYPERVISOR_memory_op(unsigned int command, void *argument);
#define HVMOP_get_mem_type	15
enum { HVMMEM_ram_rw, HVMMEM_ram_ro, HVMMEM_mmio_dm };
struct xen_hvm_get_mem_type { u16 domid, mem_type, pad[2]; u64 pfn; };
int HYPERVISOR_hvm_op(int command, void *argument);
long work_on_cpu(int cpu, long (*call)(void *), void *argument);
struct xenbus_transaction { unsigned int id; };
#define XBT_NIL		((struct xenbus_transaction){ 0 })
char *xenbus_read(struct xenbus_transaction t, const char *dir,
		  const char *key, unsigned int *length);
int xenbus_write(struct xenbus_transaction t, const char *dir, const char *key,
		 const char *text);
int xenbus_exists(struct xenbus_transaction t, const char *dir, const char *key);
int xenbus_rm(struct xenbus_transaction t, const char *dir, const char *key);
int xenbus_transaction_start(struct xenbus_transaction *t);
int xenbus_transaction_end(struct xenbus_transaction t, int abort);
int kstrtoull(const char *text, unsigned int base, u64 *value);
int cpulist_parse(const char *text, struct cpumask *cpus);
struct xenbus_watch {
	const char *node;
	bool (*will_handle)(struct xenbus_watch *watch, const char *path,
			    const char *token);
	void (*callback)(struct xenbus_watch *watch, const char *path,
			 const char *token);
};
int register_xenbus_watch(struct xenbus_watch *watch);

#endif
