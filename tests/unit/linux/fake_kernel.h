/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much of the kernel as node.c and mem.c ask for, for one thread in user
 * space.  test_elastic_numa.py makes each header that they include out of this
 * file.  What is only declared here is driver_test.c's: the simulated machine.
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
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define min(a, b)	({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b)	({ __typeof__(a) _c = (a); __typeof__(b) _d = (b); _c > _d ? _c : _d; })
#define cond_resched()	do { } while (0)
void say(const char *format, ...) __printf(1, 2);
void fail(const char *format, ...) __printf(1, 2);
#define pr_info		say
#define pr_warn		say
#define pr_err		say
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

#define GFP_KERNEL	0
#define bitmap_zalloc(bits, gfp)	calloc((bits) / WORD_BITS + 1, sizeof(long))
#define bitmap_free(map)		free(map)

typedef struct { int counter; } atomic_t;
#define atomic_read(v)		((v)->counter)
#define atomic_add(n, v)	((v)->counter += (n))
#define atomic_sub(n, v)	((v)->counter -= (n))

/* CPUs and nodes: nothing here looks into a cpumask */
struct cpumask { unsigned long bits[1]; };
typedef struct { unsigned long bits[1]; } nodemask_t;
#define node_isset(node, mask)	test_bit(node, (mask).bits)
#define node_set(node, mask)	set_bit(node, (mask).bits)
#define node_clear(node, mask)	clear_bit(node, (mask).bits)
struct wait_queue_head;
struct resource;
void cpus_read_lock(void);
void cpus_read_unlock(void);
void cpuset_inc(void);
void cpuset_dec(void);
extern nodemask_t cpuset_draining_nodes;

/* Time: the machine's, which stands still unless something waits */
typedef long long ktime_t;	/* ms */
ktime_t ktime_get(void);
#define ktime_ms_delta(later, earlier)	((later) - (earlier))

/* Zones: node 0 has room, node 1 little in use */
#define PAGE_SHIFT	12
#define PHYS_PFN(address)	((address) >> PAGE_SHIFT)
#define ZONE_MOVABLE	0
#define MAX_NR_ZONES	1
enum { NR_FREE_PAGES, NR_ACTIVE_FILE, NR_INACTIVE_FILE };
struct zone { int nid; unsigned long lowmem_reserve[1]; };
typedef struct { struct zone node_zones[MAX_NR_ZONES]; } pg_data_t;
extern pg_data_t nodes[2];
#define NODE_DATA(nid)		(&nodes[nid])
#define populated_zone(zone)	true
#define high_wmark_pages(zone)	0UL
#define node_page_state(pgdat, item)	0UL
unsigned long zone_managed_pages(struct zone *zone);
unsigned long zone_page_state(struct zone *zone, int item);
unsigned long sum_zone_node_page_state(int nid, int item);
unsigned long si_mem_available(void);
#define N_MEMORY	0
#define for_each_node_state(nid, state)	for ((nid) = 0; (nid) < 2; (nid)++)
#define lru_add_drain_all()	do { } while (0)
#define drain_all_pages(zone)	do { } while (0)

/* Memory hotplug */
struct device { int unused; };
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

#endif
