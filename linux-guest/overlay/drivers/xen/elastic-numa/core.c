// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: one kernel thread that works towards the toolstack's targets.
 *
 * The watch on vnuma/generation only counts and wakes.  The engine reads the
 * targets, acknowledges the generation, carries out one node at a time and
 * reports; then it looks again, so a missed or merged watch does no harm.
 *
 * While an operation runs, the ticker writes its progress twice a second and
 * interrupts an offlining that is not wanted any more.  One that takes too long
 * is interrupted by a timer of its own: the ticker waits for xenstore.
 *
 * A guest may grow during a drain until what is left on the node has no room
 * elsewhere.  Then the drain is called off: the engine looks between its steps,
 * the ticker during them, and the OOM notifier when it is urgent.
 *
 * Locking: op_lock guards the operation under way (@op) between the engine,
 * the ticker, the timer, the OOM notifier and the readers of elastic_busy(); it
 * is innermost and taken with softirqs off, for the timer.  The ticker never
 * holds it while it talks to xenstore.  The engine is the only thread that
 * changes a node (see elastic.h).
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/freezer.h>
#include <linux/init.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/oom.h>
#include <linux/reboot.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <xen/elastic-numa.h>
#include <xen/xenbus.h>

#include "elastic.h"

#define TICK	(HZ / 2)	/* contract: progress at least once a second */
#define OOM_HOLD	(20 * HZ)	/* longer than any attempt on a block */

static DEFINE_SPINLOCK(op_lock);
static struct {
	struct elastic_node *node;	/* NULL: no operation */
	u32 target;			/* extents it works towards */
	bool cancel;
	bool out_of_memory;		/* why it was cancelled: no room */
	bool interruptible;		/* a signal may be sent to the engine */
	bool interrupted;		/* it was sent */
	unsigned long deadline;		/* jiffies, while interruptible */
	bool held;			/* the OOM killer, since @held_since */
	unsigned long held_since;	/* jiffies */
	enum elastic_phase phase;
	ktime_t since;			/* when @phase began */
	unsigned int seen;		/* watch_count at the last look */
} op;

static struct task_struct *engine;
DECLARE_WAIT_QUEUE_HEAD(elastic_wq);
/* Counts watch events; never read for more than "has it moved". */
static atomic_t watch_count = ATOMIC_INIT(0);

static void tick(struct work_struct *work);
static DECLARE_DELAYED_WORK(ticker, tick);
static void time_is_up(struct timer_list *unused);
static DEFINE_TIMER(watchdog, time_is_up);

static void generation_changed(struct xenbus_watch *watch, const char *path,
			       const char *token)
{
	atomic_inc(&watch_count);
	wake_up_all(&elastic_wq);
}

static struct xenbus_watch generation_watch = {
	.node = "vnuma/generation",
	.callback = generation_changed,
};

bool elastic_busy(void)
{
	return READ_ONCE(op.node);
}

void elastic_op_begin(struct elastic_node *node, bool detach)
{
	memset(node->phase_us, 0, sizeof(node->phase_us));
	node->detach = detach;

	spin_lock_bh(&op_lock);
	op.target = node->target;
	op.cancel = false;
	op.out_of_memory = false;
	op.interruptible = false;
	op.held = false;
	op.phase = ELASTIC_NR_PHASES;
	op.since = ktime_get();
	WRITE_ONCE(op.node, node);
	spin_unlock_bh(&op_lock);

	queue_delayed_work(system_unbound_wq, &ticker, TICK);
}

void elastic_op_end(void)
{
	elastic_phase(ELASTIC_NR_PHASES);
	spin_lock_bh(&op_lock);
	WRITE_ONCE(op.node, NULL);
	spin_unlock_bh(&op_lock);
	cancel_delayed_work_sync(&ticker);
	/* What others changed meanwhile may not be on the page. */
	elastic_topo_refresh();
}

/* The time since the last call belongs to the phase that it began. */
void elastic_phase(enum elastic_phase phase)
{
	ktime_t now = ktime_get();

	if (op.phase < ELASTIC_NR_PHASES)
		op.node->phase_us[op.phase] += ktime_us_delta(now, op.since);
	op.phase = phase;
	op.since = now;
}

/* Has the toolstack changed its mind about the node at work? */
static bool look_for_new_target(struct elastic_node *node)
{
	u32 extents;
	u64 kib;

	if (elastic_store_target(node, &kib) ||
	    elastic_target_extents(&node->range, kib, &extents))
		return false;

	spin_lock_bh(&op_lock);
	if (op.node == node && extents != op.target)
		op.cancel = true;
	spin_unlock_bh(&op_lock);
	return READ_ONCE(op.cancel);
}

bool elastic_watch_fired(void)
{
	return atomic_read(&watch_count) != READ_ONCE(op.seen);
}

/* Under op_lock. */
static void interrupt_engine(void)
{
	if (!op.interruptible)
		return;
	op.interrupted = true;
	send_sig(SIGINT, engine, 1);
}

/* Under op_lock.  Returns false if it had been called off before. */
static bool call_off_for_memory(void)
{
	if (op.cancel)
		return false;
	op.out_of_memory = true;
	op.cancel = true;
	interrupt_engine();
	return true;
}

/*
 * Called by the engine between the steps of an operation.  True means: stop
 * where you are, the node has another target now, or the guest needs it.
 */
bool elastic_cancelled(void)
{
	try_to_freeze();
	if (!READ_ONCE(op.cancel) && elastic_watch_fired()) {
		WRITE_ONCE(op.seen, atomic_read(&watch_count));
		look_for_new_target(op.node);
	}
	if (!READ_ONCE(op.cancel) && elastic_no_room(op.node)) {
		spin_lock_bh(&op_lock);
		call_off_for_memory();
		spin_unlock_bh(&op_lock);
	}
	return READ_ONCE(op.cancel);
}

/* The same for where nobody may sleep for long: what the ticker has seen. */
bool elastic_cancel_pending(void)
{
	return READ_ONCE(op.cancel);
}

/* Whether the operation was called off because the guest needs the memory. */
bool elastic_out_of_memory(void)
{
	return READ_ONCE(op.out_of_memory);
}

/*
 * After a cancellation: take the new target as the one to work towards.
 * Always true, for use in conditions.
 */
bool elastic_op_rearm(void)
{
	struct elastic_node *node = op.node;

	elastic_store_request(node);
	spin_lock_bh(&op_lock);
	op.target = node->target;
	op.cancel = false;
	op.out_of_memory = false;
	spin_unlock_bh(&op_lock);
	return true;
}

/* From here on the engine may be in offline_pages(), which heeds signals. */
void elastic_interruptible(unsigned int timeout_ms)
{
	spin_lock_bh(&op_lock);
	op.interrupted = false;
	op.held = false;
	op.deadline = jiffies + msecs_to_jiffies(timeout_ms);
	op.interruptible = true;
	mod_timer(&watchdog, op.deadline);
	/* Called off since the engine looked: the ticker may hang in xenstore. */
	if (op.cancel)
		interrupt_engine();
	spin_unlock_bh(&op_lock);
}

/* Returns 0, -ECANCELED or -ETIMEDOUT: why a signal was sent, if one was. */
int elastic_uninterruptible(void)
{
	int rc = 0;

	spin_lock_bh(&op_lock);
	op.interruptible = false;
	if (op.interrupted)
		rc = op.cancel ? -ECANCELED : -ETIMEDOUT;
	spin_unlock_bh(&op_lock);
	flush_signals(current);
	return rc;
}

/* It may have been set for an attempt that has ended, and another begun. */
static void time_is_up(struct timer_list *unused)
{
	spin_lock(&op_lock);
	if (time_after_eq(jiffies, op.deadline))
		interrupt_engine();
	spin_unlock(&op_lock);
}

static void tick(struct work_struct *work)
{
	struct elastic_node *node = READ_ONCE(op.node);

	if (!node)
		return;

	elastic_store_progress(node);
	if (elastic_watch_fired())
		look_for_new_target(node);

	spin_lock_bh(&op_lock);
	if (op.cancel)
		interrupt_engine();
	else if (op.interruptible && elastic_short_of_room(node))
		call_off_for_memory();
	spin_unlock_bh(&op_lock);

	queue_delayed_work(system_unbound_wq, &ticker, TICK);
}

/*
 * Under op_lock.  Pages of a block that is isolated: it comes back, or it leaves
 * with the node, and who may use no other is then let to those that stay.  That
 * is so at the end of the attempt, when nothing is isolated any more.  Either
 * is near, unless the engine itself waits for memory: its allocations are NOFS,
 * and kill nobody.
 */
static unsigned long pages_to_wait_for(const struct elastic_node *node)
{
	unsigned long pages = elastic_isolated_pages(node);

	if (op.interruptible)
		pages = max(pages, 1UL);
	if (!pages) {
		op.held = false;
	} else if (!op.held) {
		op.held = true;
		op.held_since = jiffies;
	}
	return time_before(jiffies, op.held_since + OOM_HOLD) ? pages : 0;
}

/*
 * The allocator has found nothing and is about to kill.  If the operation is to
 * blame, it is called off.  Nobody is killed while a block is kept from the
 * allocator, for whatever reason: a program that is bound to the node finds
 * nothing there for that time only.  Our caller may hold any lock that sleeps,
 * so that the engine is not waited for here.
 */
static int elastic_oom(struct notifier_block *nb, unsigned long unused,
		       void *freed)
{
	struct elastic_node *node;
	unsigned long pages = 0;
	bool first = false;

	spin_lock_bh(&op_lock);
	node = op.node;
	if (node && elastic_is_to_blame(node))
		first = call_off_for_memory();
	if (node && current != engine)
		pages = pages_to_wait_for(node);
	spin_unlock_bh(&op_lock);

	if (first) {
		wake_up_all(&elastic_wq);
		pr_warn("vnode %u: out of memory: the operation is called off\n",
			node->vnode);
	}
	if (!pages)
		pages = elastic_reserve_relief();
	*(unsigned long *)freed += pages;
	return NOTIFY_OK;
}

static struct notifier_block oom_nb = {
	.notifier_call = elastic_oom,
};

bool xen_elastic_never_waits(void)
{
	return current == READ_ONCE(engine);
}

/*
 * The targets and the generation that they belong to.  The toolstack writes
 * them in one transaction; a generation that has not moved while we read says
 * that we have one operation's targets and no mixture.
 */
static int read_targets(u64 *generation)
{
	struct elastic_node *node;
	u64 before;
	int rc;

	do {
		WRITE_ONCE(op.seen, atomic_read(&watch_count));
		rc = elastic_store_generation(&before);
		if (rc)
			return rc;
		for_each_elastic_node(node) {
			if (node->usable)
				elastic_store_request(node);
		}
		rc = elastic_store_generation(generation);
		if (rc)
			return rc;
	} while (*generation != before);
	return 0;
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

static void carry_out(void)
{
	static u64 done;
	struct elastic_node *node;
	u64 generation;
	int rc;

	for (;;) {
		if (read_targets(&generation) || generation == done)
			return;
		elastic_store_ack(generation);

		node = next_operand(generation);
		if (!node)
			break;
		rc = elastic_node_operate(node);
		if (rc == -ECANCELED)
			continue;
		/* What failed is not tried again before somebody asks again. */
		node->settled = generation;
		if (!rc && !elastic_node_settled(node))
			elastic_node_error(node, -EIO, "has %llu KiB, not %llu KiB",
					   elastic_kib(elastic_populated(node)),
					   elastic_kib(node->target));
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
		/* Not elastic_watch_fired(): nobody else resets op.seen. */
		wait_event_freezable(elastic_wq, elastic_watch_fired() ||
				     kthread_should_stop());
		flush_signals(current);
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

	if (!kib)
		return;
	pr_info("vnode %u: the kernel before left %llu KiB, %llu KiB went back to Xen\n",
		node->vnode, kib, elastic_kib(elastic_reclaim(node)));
	elastic_store_state(node);
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
	register_oom_notifier(&oom_nb);
	wake_up_process(engine);

	/* Registration fires the watch once: that is the first look. */
	rc = register_xenbus_watch(&generation_watch);
	if (!rc)
		return 0;

	unregister_oom_notifier(&oom_nb);
	unregister_reboot_notifier(&reboot_nb);
	kthread_stop(engine);
	WRITE_ONCE(engine, NULL);
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
