// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: one kernel thread that works towards the toolstack's targets.
 *
 * The watch on vnuma/generation only counts and wakes.  The engine reads the
 * targets, acknowledges the generation, carries out one node at a time and
 * reports.  Between two nodes it reads again if the watch has fired: one whose
 * event is still on its way is another round, so a merged watch does no harm.
 *
 * What runs while an operation does, and may call it off, is op.c's.
 *
 * Locking: none of its own.  The engine is the only thread that changes a node
 * (see elastic.h).
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/freezer.h>
#include <linux/init.h>
#include <linux/kthread.h>
#include <linux/reboot.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

#include <xen/xenbus.h>

#include "elastic.h"

static struct task_struct *engine;
static unsigned int looked;	/* watch events as the targets were read */

/*
 * In xenbus's thread that reads: the engine is woken from there, and not by way of
 * xenwatch, where it would wait for the work of other drivers.
 */
static bool generation_changed(struct xenbus_watch *watch, const char *path,
			       const char *token)
{
	elastic_watch_fires();
	return false;
}

/* All has been done above; xenbus asks for one. */
static void nothing_left(struct xenbus_watch *watch, const char *path,
			 const char *token)
{
}

static struct xenbus_watch generation_watch = {
	.node = "vnuma/generation",
	.will_handle = generation_changed,
	.callback = nothing_left,
};

static bool targets_may_have_changed(void)
{
	return elastic_watch_events() != looked;
}

/* The targets and the generation that they belong to. */
static int read_targets(u64 *generation)
{
	int rc;

	do {
		looked = elastic_watch_events();
		elastic_watch_is_seen();
		rc = elastic_store_requests(generation);
	} while (rc == -EAGAIN);
	return rc;
}

/* Growth first: what a shrinking node loses may need the room. */
static struct elastic_node *next_operand(u64 generation)
{
	struct elastic_node *node, *other = NULL;

	for_each_elastic_node(node) {
		if (!node->usable || node->settled == generation)
			continue;
		if (elastic_node_settled(node)) {
			node->settled = generation;
			continue;
		}
		if (node->target > elastic_populated(node))
			return node;
		other = node;
	}
	return other;
}

/* What failed is not tried again before somebody asks again. */
static void judge(struct elastic_node *node, u64 generation, int rc)
{
	node->settled = generation;
	if (!rc && !elastic_node_settled(node))
		elastic_node_error(node, -EIO, "has %llu KiB, not %llu KiB",
				   elastic_kib(elastic_populated(node)),
				   elastic_kib(node->target));
}

static void carry_out(void)
{
	static u64 done;
	struct elastic_node *node, *heard = NULL;
	bool again = true;
	u64 generation;
	u32 target;
	int rc = 0;

	for (;;) {
		if (again) {
			if (read_targets(&generation) || generation == done)
				return;
			elastic_store_ack(generation);
			/* It heard of it while it was at it, and that is its end. */
			if (heard && heard->target == target)
				judge(heard, generation, rc);
			heard = NULL;
		}
		node = next_operand(generation);
		if (!node)
			break;
		target = node->target;
		rc = elastic_node_operate(node);
		heard = rc != -ECANCELED && node->target != target ? node : NULL;
		target = node->target;
		if (rc != -ECANCELED)
			judge(node, generation, rc);
		/* If it was called off, they have. */
		again = targets_may_have_changed();
		/* How it ended is told when all have; that may be long. */
		if (again || next_operand(generation))
			elastic_store_report(node);
	}

	done = generation;
	elastic_store_done(generation);
}

static int elastic_engine(void *unused)
{
	/* Reclaim for what we move must not wait for a file system. */
	memalloc_nofs_save();
	set_freezable();
	allow_signal(SIGINT);

	while (!kthread_should_stop()) {
		wait_event_freezable(elastic_wq, targets_may_have_changed() ||
				     kthread_should_stop());
		flush_signals(current);
		/* Not if it is to stop, or was sent a signal by root. */
		if (targets_may_have_changed())
			carry_out();
	}
	return 0;
}

/* Also before a kexec: the next kernel finds in xenstore what it takes over. */
static int elastic_reboot(struct notifier_block *nb, unsigned long action,
			  void *data)
{
	elastic_store_goodbye();
	return NOTIFY_DONE;
}

static struct notifier_block reboot_nb = {
	.notifier_call = elastic_reboot,
	.priority = INT_MAX,	/* while xenstore still answers */
};

/*
 * A kernel that was here before and left by kexec could not give back memory
 * that it ran on.  What it had of a node goes to Xen first, since we know of
 * no memory there; the target then brings it again.
 */
static void elastic_take_over(struct elastic_node *node)
{
	u64 kib = elastic_store_left_behind(node);
	u32 taken;

	if (!kib)
		return;
	/* It was online: neither that without memory nor absent with some can be. */
	node->state = ELASTIC_DRAINING;
	elastic_store_state(node);
	taken = elastic_reclaim(node, kib / ELASTIC_EXTENT_KIB);
	pr_info("vnode %u: the kernel before left %llu KiB, %llu KiB went back to Xen\n",
		node->vnode, kib, elastic_kib(taken));
	node->state = elastic_populated(node) ? ELASTIC_RESIDUAL : ELASTIC_OFFLINE;
	elastic_store_report(node);
}

/* Which of SRAT's ranges does the toolstack know, and as the same? */
static unsigned int discover(void)
{
	struct elastic_node *node;
	unsigned int n = 0;
	int rc;

	for_each_elastic_node(node) {
		rc = elastic_store_node(node);
		if (!rc)
			rc = elastic_mem_init(node);
		if (rc) {
			pr_err("vnode %u: not usable (%d)\n", node->vnode, rc);
			continue;
		}
		node->usable = true;
		elastic_take_over(node);
		n++;
		pr_info("vnode %u is node %d: %llu MiB at %#llx, blocks of %llu MiB, %u MiB of memmap in each\n",
			node->vnode, node->nid,
			elastic_kib(node->range.nr_extents) >> 10,
			node->range.start,
			elastic_block_bytes(&node->range) >> 20,
			node->range.memmap_extents * 2);
	}
	return n;
}

static int elastic_start(void)
{
	int rc;

	if (!discover())
		return -ENODEV;

	rc = elastic_balloon_init();
	if (rc)
		return rc;
	rc = elastic_evac_init();
	if (rc)
		return rc;
	rc = elastic_topo_init();
	if (rc)
		return rc;
	rc = elastic_pm_init();
	if (rc)
		pr_warn("a suspend will not be refused: %d\n", rc);
	elastic_cpu_init();
	elastic_stats_init();

	engine = kthread_create(elastic_engine, NULL, "elastic-numa");
	if (IS_ERR(engine)) {
		rc = PTR_ERR(engine);
		engine = NULL;
		return rc;
	}
	elastic_store_hello();
	register_reboot_notifier(&reboot_nb);
	elastic_op_init(engine);
	wake_up_process(engine);

	/* Registration fires the watch once: that is the first look. */
	rc = register_xenbus_watch(&generation_watch);
	if (!rc)
		return 0;

	unregister_reboot_notifier(&reboot_nb);
	kthread_stop(engine);
	elastic_op_exit();
	elastic_store_goodbye();
	return rc;
}

static int elastic_xenstore_up(struct notifier_block *nb, unsigned long event,
			       void *data)
{
	int rc = elastic_start();

	if (rc == -ENODEV)
		pr_info("SRAT declares elastic nodes, xenstore offers none: idle\n");
	else if (rc)
		pr_err("cannot start: %d\n", rc);
	return NOTIFY_DONE;
}

static struct notifier_block xenstore_nb = {
	.notifier_call = elastic_xenstore_up,
};

static int __init elastic_init(void)
{
	if (elastic_nr_nodes)
		register_xenstore_notifier(&xenstore_nb);
	return 0;
}
late_initcall(elastic_init);
