// SPDX-License-Identifier: GPL-2.0
/*
 * The operation under way: its phase, who calls it off, and its time-out.
 *
 * While it runs, the ticker writes its progress twice a second and interrupts
 * an offlining that is not wanted any more.  One that takes too long is
 * interrupted by a timer of its own: the ticker waits for xenstore.
 *
 * A guest may grow during a drain until what is left on the node has no room
 * elsewhere.  Then the drain is called off: the engine looks between its steps,
 * the ticker during them, and the OOM notifier when it is urgent.
 *
 * Each CPU and each block that comes or goes waits for grace periods of RCU,
 * which take some ticks each.  In these phases they are expedited, as they are
 * on the way to suspend; not while a node is evacuated, programs are waited for
 * or memory comes from Xen, where nobody waits for RCU, and which may take
 * minutes.  What is left in a block moves as it goes offline, so an attempt that
 * fails is expedited, too.
 *
 * Locking: op_lock guards the operation (@op) between the engine, the ticker,
 * the timer, the OOM notifier and the readers of elastic_busy(); it is innermost
 * and taken with softirqs off, for the timer.  The ticker never holds it while
 * it talks to xenstore.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/freezer.h>
#include <linux/ktime.h>
#include <linux/oom.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <xen/elastic-numa.h>

#include "elastic.h"

#define TICK	(HZ / 2)	/* contract: progress at least once a second */
#define OOM_HOLD	(20 * HZ)	/* longer than an attempt on a block, but for slow memory */

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

static struct task_struct *engine;	/* whose operations these are */
DECLARE_WAIT_QUEUE_HEAD(elastic_wq);
/* Counts watch events; never read for more than "has it moved". */
static atomic_t watch_count = ATOMIC_INIT(0);

static void tick(struct work_struct *work);
static DECLARE_DELAYED_WORK(ticker, tick);
static void time_is_up(struct timer_list *unused);
static DEFINE_TIMER(watchdog, time_is_up);

bool elastic_busy(void)
{
	return READ_ONCE(op.node);
}

void elastic_op_begin(struct elastic_node *node, bool detach)
{
	memset(node->phase_us, 0, sizeof(node->phase_us));
	node->detach = detach;
	WRITE_ONCE(node->goal, node->target);

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
}

/* Does Linux wait for grace periods in it? */
static bool waits_for_rcu(enum elastic_phase phase)
{
	return (BIT(ELASTIC_PH_ADD) | BIT(ELASTIC_PH_ONLINE) | BIT(ELASTIC_PH_CPUS) |
		BIT(ELASTIC_PH_OFFLINE) | BIT(ELASTIC_PH_RELEASE) |
		BIT(ELASTIC_PH_NODE)) & BIT(phase);
}

/* The time since the last call belongs to the phase that it began. */
void elastic_phase(enum elastic_phase phase)
{
	ktime_t now = ktime_get();

	if (waits_for_rcu(phase) && !waits_for_rcu(op.phase))
		rcu_expedite_gp();
	if (!waits_for_rcu(phase) && waits_for_rcu(op.phase))
		rcu_unexpedite_gp();
	if (op.phase < ELASTIC_NR_PHASES)
		op.node->phase_us[op.phase] += ktime_us_delta(now, op.since);
	op.phase = phase;
	op.since = now;
}

/* Has the toolstack changed its mind about the node at work?  Then it is called off. */
static void look_for_new_target(struct elastic_node *node)
{
	u32 extents;
	u64 kib;

	if (elastic_store_target(node, &kib) ||
	    elastic_target_extents(&node->range, kib, &extents))
		return;

	spin_lock_bh(&op_lock);
	if (op.node == node && extents != op.target)
		op.cancel = true;
	spin_unlock_bh(&op_lock);
}

/* Under a spinlock of xenbus's. */
void elastic_watch_fires(void)
{
	atomic_inc(&watch_count);
	wake_up_all(&elastic_wq);
}

/* How many there have been: what has come since somebody looked. */
unsigned int elastic_watch_events(void)
{
	return atomic_read(&watch_count);
}

bool elastic_watch_fired(void)
{
	return elastic_watch_events() != READ_ONCE(op.seen);
}

void elastic_watch_is_seen(void)
{
	WRITE_ONCE(op.seen, elastic_watch_events());
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
		elastic_watch_is_seen();
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
	WRITE_ONCE(node->goal, node->target);
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

/**
 * elastic_op_init() - whose operations these are
 * @thread: the engine, which does not run yet
 */
void elastic_op_init(struct task_struct *thread)
{
	WRITE_ONCE(engine, thread);
	register_oom_notifier(&oom_nb);
}

/* It never ran an operation, and goes. */
void elastic_op_exit(void)
{
	unregister_oom_notifier(&oom_nb);
	WRITE_ONCE(engine, NULL);
}
