/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The elastic NUMA driver: what its files share.
 *
 * Elastic nodes are declared by SRAT as hot-pluggable ranges without memory.
 * One kernel thread, the engine (engine.c), works towards the targets that the
 * toolstack writes to xenstore; all that changes a node runs on it.
 *
 * A file calls only files on the floors below its own:
 *
 *   engine.c   the thread: targets, generations, start
 *   node.c   the operations: attach, detach, resize
 *   balloon.c   extents of online blocks
 *   mem.c, cpu.c, evac.c, topodev.c   what an operation does
 *   op.c   the operation under way: phase, cancel, time-out
 *   store.c, room.c, reserve.c, residue.c, stats.c, pm.c   what can be asked
 *   draining.c, range.c, report.c   the nodes, and what is said of one
 *   extent.c, state.c, text.c, page.c   pure
 *
 * Locking, outermost first:
 *
 *   device_hotplug_lock   around each step that onlines, offlines or balloons
 *   cpu and mem hotplug locks   taken by the kernel inside those steps
 *   topo_mutex (topodev.c)   the topology page and the registered files
 *   op_lock (op.c)   the operation under way; innermost
 *
 * What a struct elastic_node holds is changed by the engine only, and so is
 * read by the engine without a lock.  Some members are read by others:
 * @populated and @torn, by the memory notifier and the online callback, which
 * run under device_hotplug_lock: the engine changes the bits of a plugged block under
 * that lock only; and the counters and @goal, read with READ_ONCE() or atomically
 * by the ticker, the OOM notifier and debugfs, for which a value that is a moment
 * old will do.
 *
 * The mask of nodes that are being drained, draining_nodes, has no lock: its
 * bits change one by one, and who reads it takes it as it is.
 *
 * xenstore is only talked to with none of these locks held.
 */
#ifndef _XEN_ELASTIC_H
#define _XEN_ELASTIC_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/ioport.h>
#include <linux/nodemask.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <xen/topology.h>

#include "extent.h"
#include "state.h"
#include "text.h"

#define ELASTIC_GRACE_MS	2000	/* contract: default of grace-ms */
#define ELASTIC_GRACE_MAX_MS	600000

/* Phases of an operation, in the order in which a detach reports them. */
enum elastic_phase {
	ELASTIC_PH_POPULATE,	/* memory from Xen */
	ELASTIC_PH_ADD,		/* memory blocks, memmap */
	ELASTIC_PH_ONLINE,	/* pages to the allocator */
	ELASTIC_PH_NOTIFY,	/* topology page, mempolicies */
	ELASTIC_PH_ACKS,	/* registered programs */
	ELASTIC_PH_CPUS,	/* vCPUs up or down */
	ELASTIC_PH_EVACUATE,	/* pages to other nodes */
	ELASTIC_PH_OFFLINE,	/* pages from the allocator */
	ELASTIC_PH_RELEASE,	/* memory blocks gone, memory to Xen */
	ELASTIC_PH_NODE,	/* vCPUs and node out of sysfs */
	ELASTIC_NR_PHASES
};

/**
 * struct elastic_node - one elastic node
 * @vnode: number in xenstore and for Xen; proximity domain in SRAT
 * @nid: Linux node id
 * @range: its guest physical addresses
 * @res: their reservation in iomem_resource
 * @mgid: memory group of its blocks
 * @usable: the toolstack's keys agree with SRAT
 * @cpus: its vCPUs, by Linux number
 * @state: an &enum elastic_state
 * @target: extents that it should have
 * @goal: extents that the operation at work leads to: @target, or what is undone to
 * @bad_target: the toolstack's target was nonsense; leave the node alone
 * @populated: bit per extent: has memory, or a part.  Covers whole blocks.
 * @torn: bit per extent: has a part, which nobody uses, and counts nonetheless
 * @present: bit per block: plugged into Linux
 * @nr_populated: number of bits in @populated
 * @nr_split: extents that Xen could only give as single pages, so far
 * @nr_taken_free: extents that the balloon took as they lay, so far
 * @nr_taken_used: extents that had to be emptied for it, so far
 * @grace_ms: how long a removal waits for programs
 * @settled: newest generation whose outcome for this node is final
 * @draining: in the mask of the allocator and of the topology page
 * @cpus_up: its vCPUs have come, and have not been asked to leave since
 * @cpus_tried: the operation at work has asked them to come
 * @reason: why there is a residue, "" where there is none
 * @error: why the last operation failed, "" if it did not
 * @phase_us: time of each phase of the last operation
 * @detach: the last operation took memory away, as it began
 * @nr_attached: how often it came, with less than was asked for, too
 * @nr_detached: detaches that ended well
 * @nr_failed: operations that ended with an error
 */
struct elastic_node {
	u32 vnode;
	int nid;
	struct elastic_range range;
	struct resource *res;
	int mgid;
	bool usable;
	struct cpumask cpus;

	int state;
	u32 target;
	u32 goal;
	bool bad_target;
	unsigned long *populated;
	unsigned long *torn;
	unsigned long *present;
	atomic_t nr_populated;
	u64 nr_split;
	u64 nr_taken_free;
	u64 nr_taken_used;

	u32 grace_ms;
	u64 settled;
	bool draining;
	bool cpus_up;
	bool cpus_tried;
	char reason[ELASTIC_TEXT_LEN];
	char error[ELASTIC_TEXT_LEN];
	u64 phase_us[ELASTIC_NR_PHASES];
	bool detach;
	u64 nr_attached;
	u64 nr_detached;
	u64 nr_failed;
};

/* range.c: what SRAT declares, and the nodes of it */
extern struct elastic_node *elastic_nodes;
extern unsigned int elastic_nr_nodes;
struct elastic_node *elastic_node_of_pfn(unsigned long pfn, u32 *extent);

#define for_each_elastic_node(node)					\
	for ((node) = elastic_nodes;					\
	     (node) < elastic_nodes + elastic_nr_nodes; (node)++)

static inline u32 elastic_populated(const struct elastic_node *node)
{
	return atomic_read(&node->nr_populated);
}

/* Memory that can be used. */
static inline bool elastic_has_memory(const struct elastic_node *node,
				      u32 extent)
{
	return test_bit(extent, node->populated) &&
	       !test_bit(extent, node->torn);
}

/* node.c: attach, detach, resize */
bool elastic_node_settled(const struct elastic_node *node);
int elastic_node_operate(struct elastic_node *node);

/* balloon.c: extents of online blocks */
int elastic_balloon_init(void);
u32 elastic_balloon_holes(const struct elastic_node *node, u32 but);
int elastic_balloon_fill(struct elastic_node *node, u32 count);
u32 elastic_balloon_take(struct elastic_node *node, u32 block, u32 count,
			 bool persistent, unsigned int *budget_ms);

/* cpu.c: vCPUs of a node */
void elastic_cpu_init(void);
int elastic_cpus_up(struct elastic_node *node);
int elastic_cpus_down(struct elastic_node *node);
int elastic_node_unplug(struct elastic_node *node);

/* evac.c: pages off a node */
int elastic_evac_init(void);
int elastic_evacuate(struct elastic_node *node);

/* mem.c: memory of a node, by extent and by block */
int elastic_mem_init(struct elastic_node *node);
int elastic_populate(struct elastic_node *node, u32 first, u32 count);
int elastic_populate_some(struct elastic_node *node, u32 first, u32 count,
			  u32 *done);
u32 elastic_release(struct elastic_node *node, u32 first, u32 count);
u32 elastic_release_strays(struct elastic_node *node);
int elastic_mend(struct elastic_node *node, u32 extent);
u32 elastic_reclaim(struct elastic_node *node, u32 had);
int elastic_block_add(struct elastic_node *node, u32 block, u32 count);
unsigned int elastic_block_look(const struct elastic_node *node, u32 block);
int elastic_block_offline(struct elastic_node *node, u32 block,
			  unsigned int timeout_ms);
int elastic_block_remove(struct elastic_node *node, u32 block);
u32 elastic_block_populated(const struct elastic_node *node, u32 block);

/* topodev.c: /dev/xen/topology */
int elastic_topo_init(void);
u64 elastic_topo_publish(enum xtopo_phase phase, bool bump);
void elastic_topo_refresh(void);
int elastic_topo_wait_acks(u64 version, unsigned int timeout_ms);

/* op.c: the operation under way */
struct task_struct;
void elastic_op_init(struct task_struct *thread);
void elastic_op_exit(void);
void elastic_op_begin(struct elastic_node *node, bool detach);
void elastic_op_end(void);
void elastic_phase(enum elastic_phase phase);
bool elastic_cancelled(void);
bool elastic_cancel_pending(void);
bool elastic_out_of_memory(void);
bool elastic_op_rearm(void);
void elastic_watch_fires(void);
unsigned int elastic_watch_events(void);
bool elastic_watch_fired(void);
void elastic_watch_is_seen(void);
extern struct wait_queue_head elastic_wq;	/* woken by watches and acks */
void elastic_interruptible(unsigned int timeout_ms);
int elastic_uninterruptible(void);
bool elastic_busy(void);

/* stats.c: debugfs */
void elastic_stats_init(void);

/* pm.c: no suspend with elastic memory */
int elastic_pm_init(void);

/* room.c: what must find a place elsewhere, and what place there is */
unsigned long elastic_pages_to_move(int nid);
unsigned long elastic_room_elsewhere(int nid);
unsigned long elastic_isolated_pages(const struct elastic_node *node);
bool elastic_short_of_room(const struct elastic_node *node);
bool elastic_is_to_blame(const struct elastic_node *node);
bool elastic_no_room(const struct elastic_node *node);

/* reserve.c: room elsewhere for what an elastic node cannot hold */
unsigned long elastic_reserve(unsigned long elastic, unsigned long home,
			      unsigned long zone);
unsigned long elastic_reserve_relief(void);

/* residue.c: what keeps pages on a node */
void elastic_residue_reason(struct elastic_node *node);
bool elastic_block_in_use(const struct elastic_node *node, u32 block,
			  bool pool_stays);

/* store.c: xenstore */
int elastic_store_node(struct elastic_node *node);
int elastic_store_target(const struct elastic_node *node, u64 *kib);
u64 elastic_store_left_behind(const struct elastic_node *node);
void elastic_store_request(struct elastic_node *node);
int elastic_store_requests(u64 *generation);
void elastic_store_hello(void);
void elastic_store_goodbye(void);
void elastic_store_ack(u64 generation);
void elastic_store_progress(const struct elastic_node *node);
void elastic_store_state(const struct elastic_node *node);
void elastic_store_report(const struct elastic_node *node);
void elastic_store_done(u64 generation);

/* draining.c: nodes that programs and the allocator are to leave */
void elastic_draining_nodes(nodemask_t *nodes);
void elastic_set_draining(struct elastic_node *node, bool draining);

/* report.c: what is said of a node */
extern const char * const elastic_phase_names[ELASTIC_NR_PHASES];
__printf(3, 4)
int elastic_node_error(struct elastic_node *node, int err, const char *fmt,
		       ...);
__printf(3, 4)
int elastic_node_error_too(struct elastic_node *node, int err, const char *fmt,
			   ...);

#endif /* _XEN_ELASTIC_H */
