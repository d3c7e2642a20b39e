// SPDX-License-Identifier: GPL-2.0
/*
 * The operations on a node: attach, detach, resize; their order of steps, and
 * what undoes each.
 *
 * Attach: the first block of memory, then the CPUs, then memory block by block,
 * then programs are told.  Some memory comes before the CPUs, or what they touch
 * first would land elsewhere.
 *
 * Detach: programs are told and may acknowledge, then the CPUs go, then pages
 * are moved away, then the blocks leave one by one, then the node.  Until the
 * last block has gone, a new target calls it all off, and so does a guest that
 * has grown until what is left on the node has no room elsewhere.
 *
 * Locking: the engine only.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/swap.h>

#include "elastic.h"

/* One attempt on a block: so long is the memory hotplug lock held. */
#define BLOCK_MS	10000U
/*
 * Longer by this for memory that is slow itself: what its pages take that are not
 * in anybody's way.  Times that one look at the block's struct pages takes, which
 * an attempt walks a few times, and writes.
 */
#define LOOKS		8U
#define LOOKS_MOST_MS	90000U
/* The last attempt, when no time is left. */
#define GLANCE_MS	250U
/* All attempts of a drain that fail, together; as many of a shrink. */
#define DRAIN_MS	30000U
/* The same for what is left of a node. */
#define SQUEEZE_MS	10000U

static void transition(struct elastic_node *node, enum elastic_event event)
{
	const char *mistake;
	int next = elastic_state_next(node->state, event, &mistake);

	if (WARN(next < 0, "xen-elastic-numa: vnode %u: %s in state %s: %s\n",
		 node->vnode, elastic_event_name(event),
		 elastic_state_name(node->state), mistake))
		return;
	if (next == node->state)
		return;
	node->state = next;
	/* Where it ends the engine tells, with all else of it. */
	if (next == ELASTIC_GROWING || next == ELASTIC_DRAINING)
		elastic_store_state(node);
}

bool elastic_node_settled(const struct elastic_node *node)
{
	if (node->bad_target)
		return true;
	if (node->target != elastic_populated(node))
		return false;
	/* They are tried again whenever somebody asks for something. */
	if (node->target && !node->cpus_up)
		return false;
	return node->state == (node->target ? ELASTIC_ONLINE : ELASTIC_OFFLINE);
}

static int check_room(struct elastic_node *node, unsigned long need,
		      unsigned long room)
{
	if (need <= room)
		return 0;
	return elastic_node_error_too(node, -ENOMEM,
				      "need %lu KiB, free elsewhere %lu KiB",
				      need << (PAGE_SHIFT - 10),
				      room << (PAGE_SHIFT - 10));
}

/*
 * Before anything is changed: can the rest of the guest hold the node?  What the
 * lists per CPU have looks as if it were in use: they are emptied, which is work for
 * all CPUs, if that decides.
 */
static int check_detach(struct elastic_node *node)
{
	if (elastic_pages_to_move(node->nid) <= elastic_room_elsewhere(node->nid))
		return 0;
	lru_add_drain_all();
	drain_all_pages(NULL);
	return check_room(node, elastic_pages_to_move(node->nid),
			  elastic_room_elsewhere(node->nid));
}

/*
 * One attempt to take a block out and give it back to Xen.  What it took, if it
 * fails, is subtracted from @budget_ms, but for what slow memory took; with none
 * left it still has a moment.
 */
static int drop_block(struct elastic_node *node, u32 block,
		      unsigned int *budget_ms)
{
	unsigned int spent, more;
	ktime_t began;
	int rc;

	elastic_phase(ELASTIC_PH_EVACUATE);
	more = min(LOOKS * elastic_block_look(node, block), LOOKS_MOST_MS);
	elastic_phase(ELASTIC_PH_OFFLINE);
	began = ktime_get();
	rc = elastic_block_offline(node, block,
				   clamp(*budget_ms, GLANCE_MS, BLOCK_MS) +
				   more);
	if (!rc)
		rc = elastic_block_remove(node, block);
	if (!rc)
		return 0;
	spent = ktime_ms_delta(ktime_get(), began);
	spent -= min(spent, more);
	*budget_ms -= min(*budget_ms, spent);
	return rc;
}

/*
 * A block that holds nothing but its own struct pages.  It stays if these are more
 * than has to leave, and others have no holes for the difference: there would be
 * less than @target.  Holes are in any block, and looked for only if that decides.
 */
static bool serves_nobody(const struct elastic_node *node, u32 block,
			  u32 target)
{
	u32 populated = elastic_block_populated(node, block);
	u32 left = elastic_populated(node) - populated;

	return test_bit(block, node->present) &&
	       populated <= node->range.memmap_extents &&
	       (left >= target ||
		left + elastic_balloon_holes(node, block) >= target);
}

static void drop_hollow_blocks(struct elastic_node *node, u32 target,
			       unsigned int *budget_ms)
{
	u32 block;

	for (block = node->range.nr_blocks; *budget_ms && block-- > 0; ) {
		if (elastic_cancel_pending())
			break;
		if (serves_nobody(node, block, target))
			drop_block(node, block, budget_ms);
	}
}

/*
 * A block that must go as a whole, and of which nothing is in use, leaves as it
 * is: the balloon would have to mark each of its pages, and all who look at the
 * block afterwards to pass them by.  A pool of huge pages is the administrator's:
 * the node stays, so its pages are moved, not given up.
 */
static bool drop_free_block(struct elastic_node *node, u32 block, u32 excess,
			    unsigned int *budget_ms)
{
	return *budget_ms && excess >= elastic_block_populated(node, block) &&
	       !elastic_block_in_use(node, block, true) &&
	       !drop_block(node, block, budget_ms);
}

/*
 * Less memory within the node, highest block first: blocks that are free leave;
 * of others the balloon takes extents, so that they become hollow and can leave.
 */
static int take_memory_to_target(struct elastic_node *node, u32 target)
{
	unsigned int budget = DRAIN_MS;
	u32 block, excess, usable;

	for (block = node->range.nr_blocks; block-- > 0; ) {
		if (elastic_populated(node) <= target || elastic_cancelled())
			break;
		if (!test_bit(block, node->present))
			continue;
		excess = elastic_populated(node) - target;
		if (drop_free_block(node, block, excess, &budget))
			continue;
		usable = elastic_block_populated(node, block) -
			 node->range.memmap_extents;
		elastic_phase(ELASTIC_PH_EVACUATE);
		elastic_balloon_take(node, block, min(excess, usable), true,
				     &budget);
		/* Its struct pages count, too. */
		if (excess >= usable)
			drop_hollow_blocks(node, target, &budget);
	}
	elastic_phase(ELASTIC_PH_EVACUATE);
	if (elastic_populated(node) < target)
		elastic_balloon_fill(node, target - elastic_populated(node));
	if (elastic_populated(node) == target)
		return 0;
	return elastic_cancelled() ? -ECANCELED : -EBUSY;
}

/* How many extents, from the block's first on, have room for @missing, or all. */
static u32 extents_for(const struct elastic_node *node, u32 block, u32 missing)
{
	u32 first = elastic_block_first(&node->range, block);
	u32 end = elastic_block_end(&node->range, block);
	u32 extent;

	for (extent = first; missing && extent < end; extent++)
		missing -= !test_bit(extent, node->populated);
	return extent - first;
}

/*
 * A block holds its struct pages at least.  Where less is missing, as the last
 * block is short or Xen keeps an extent, others give the difference first: the
 * domain may have no more than is asked for.
 */
static int have_struct_pages(struct elastic_node *node, u32 block, u32 *want)
{
	u32 first = elastic_block_first(&node->range, block);
	u32 memmap = node->range.memmap_extents, more = 0, extent;
	int rc;

	for (extent = *want; extent < memmap; extent++)
		more += !test_bit(first + extent, node->populated);
	rc = more ? take_memory_to_target(node, elastic_populated(node) - more) : 0;
	if (rc && rc != -ECANCELED)
		elastic_node_error(node, rc,
				   "the last %llu KiB do not hold the %llu KiB of struct pages of a block, and others cannot give the rest: ask for less, or more",
				   elastic_kib(*want), elastic_kib(memmap));
	*want = max(*want, memmap);
	return rc;
}

static bool has_blocks(const struct elastic_node *node)
{
	return !bitmap_empty(node->present, node->range.nr_blocks);
}

/* Once there is memory for them, and not when all of it is. */
static int bring_cpus_up(struct elastic_node *node)
{
	int rc;

	if (!has_blocks(node))
		return 0;
	elastic_phase(ELASTIC_PH_CPUS);
	rc = elastic_cpus_up(node);
	node->cpus_up = !rc;
	node->cpus_tried = true;
	return rc;
}

/*
 * New blocks, lowest address first, after what the balloon had taken.  Extents
 * that Xen does not take back count where they are.  The vCPUs come after the
 * first block: where one of them does not, the rest need not.
 */
static int add_memory_to_target(struct elastic_node *node, u32 target)
{
	u32 block, want;
	int rc;

	elastic_phase(ELASTIC_PH_POPULATE);
	rc = elastic_balloon_fill(node, target - elastic_populated(node));
	if (!rc)
		rc = bring_cpus_up(node);

	for (block = 0; !rc && block < node->range.nr_blocks; block++) {
		if (elastic_populated(node) >= target)
			break;
		if (test_bit(block, node->present))
			continue;
		if (elastic_cancelled())
			return -ECANCELED;
		want = extents_for(node, block, target - elastic_populated(node));
		rc = have_struct_pages(node, block, &want);
		if (!rc)
			rc = elastic_block_add(node, block, want);
		if (!rc)
			rc = bring_cpus_up(node);
	}
	if (!rc && elastic_populated(node) < target)
		rc = elastic_node_error(node, -EBUSY,
					"%u extents are in blocks that somebody took offline",
					target - elastic_populated(node));
	return rc;
}

/* Why an operation ended before its end. */
static int called_off(struct elastic_node *node)
{
	if (!elastic_out_of_memory())
		return -ECANCELED;
	return elastic_node_error_too(node, -ENOMEM,
				      "called off: the guest ran out of memory");
}

static void publish_stable(void)
{
	elastic_phase(ELASTIC_PH_NOTIFY);
	elastic_topo_publish(XTOPO_STABLE, true);
}

/* Why it has not become smaller as it was to, by @excess, or too small. */
static void say_not_taken(struct elastic_node *node, int rc, u32 target,
			  u32 excess)
{
	if (elastic_populated(node) < target) {
		elastic_node_error_too(node, rc,
				       "%llu KiB too much have left, and Xen has no memory to give them back",
				       elastic_kib(target - elastic_populated(node)));
		return;
	}
	elastic_residue_reason(node);
	elastic_node_error_too(node, rc,
			       "%llu KiB of %llu KiB could not be taken: %s",
			       elastic_kib(elastic_populated(node) - target),
			       elastic_kib(excess), node->reason);
	node->reason[0] = '\0';
}

/* All that there is of it is what Xen keeps: that is no node. */
static int kept_only(struct elastic_node *node)
{
	return elastic_node_error_too(node, -EBUSY,
				      "Xen does not take back %llu KiB, and more was not asked for",
				      elastic_kib(elastic_populated(node)));
}

static u32 excess_of(const struct elastic_node *node, u32 target)
{
	u32 populated = elastic_populated(node);

	return populated - min(populated, target);
}

/* Extents that Xen has refused to take, and whose blocks have gone. */
static u32 strays_of(const struct elastic_node *node)
{
	u32 block, nr = 0;

	for_each_clear_bit(block, node->present, node->range.nr_blocks)
		nr += elastic_block_populated(node, block);
	return nr;
}

static int check_take(struct elastic_node *node, u32 target)
{
	return check_room(node, excess_of(node, target) * ELASTIC_EXTENT_PAGES,
			  si_mem_available());
}

/* With what is to be said of it if it fails. */
static int take_memory(struct elastic_node *node, u32 target)
{
	u32 excess = excess_of(node, target);
	int rc = take_memory_to_target(node, target);

	if (rc == -ECANCELED)
		return rc;
	if (!has_blocks(node))
		return kept_only(node);
	if (rc)
		say_not_taken(node, rc, target, excess);
	return rc;
}

/* A growth that is to be less than there is by now: as a shrink. */
static int take_back(struct elastic_node *node, u32 target)
{
	return check_take(node, target) ?: take_memory(node, target);
}

static int grow_to_target(struct elastic_node *node)
{
	int rc;

	if (node->target < elastic_populated(node))
		rc = take_back(node, node->target);
	else
		rc = add_memory_to_target(node, node->target);
	if (!rc && !has_blocks(node))
		rc = kept_only(node);
	return rc ?: bring_cpus_up(node);
}

static int leave_residue(struct elastic_node *node, int rc);
static int drain_node(struct elastic_node *node, bool tell);

/* It is there, if need be with less or more than was asked for. */
static void there_is_a_node(struct elastic_node *node, bool known)
{
	transition(node, ELASTIC_EV_DONE);
	node->reason[0] = '\0';
	node->nr_attached += !known;
	publish_stable();
}

/*
 * A growth that was to be smaller by then, and could not: what there is stays, as
 * after a shrink, if it is in use.
 */
static bool can_stay(const struct elastic_node *node, bool known)
{
	return node->target && elastic_populated(node) > node->target &&
	       has_blocks(node) && (known || node->cpus_up);
}

/* What was there before stays, and the rest goes if it has room elsewhere. */
static void undo_growth(struct elastic_node *node, u32 before)
{
	WRITE_ONCE(node->goal, before);
	if (take_back(node, before) == -ECANCELED)
		called_off(node);
}

static int grow(struct elastic_node *node)
{
	bool known = node->state == ELASTIC_ONLINE;
	bool residual = node->state == ELASTIC_RESIDUAL;
	int rc, drained;
	u32 before;

	transition(node, ELASTIC_EV_GROW);
	elastic_topo_publish(XTOPO_GROWING, false);
	elastic_set_draining(node, false);
	/* Of a residue when it is none any more: its size is the residue's till then. */
	elastic_release_strays(node);
	before = elastic_populated(node);
	if (node->target >= before)
		node->detach = false;

	do {
		rc = grow_to_target(node);
		/* Another size is as good; no size at all is a drain. */
	} while (rc == -ECANCELED && !elastic_out_of_memory() &&
		 elastic_op_rearm() && node->target);
	if (rc == -ECANCELED)
		rc = called_off(node);

	if (!rc || can_stay(node, known)) {
		there_is_a_node(node, known);
		return rc;
	}
	if (residual && node->target && has_blocks(node) && !node->cpus_up &&
	    elastic_populated(node) <= before) {
		/* Nothing has come to it: it is what it was. */
		transition(node, ELASTIC_EV_DRAIN);
		elastic_set_draining(node, true);
		return leave_residue(node, rc);
	}
	if (known && node->target)
		undo_growth(node, before);
	if (!known || !node->target || !has_blocks(node)) {
		/* Programs that never heard of the node need not be told. */
		drained = drain_node(node, known);
		return node->target ? rc : drained;
	}
	transition(node, ELASTIC_EV_UNDONE);
	publish_stable();
	return rc;
}

static int shrink(struct elastic_node *node)
{
	int rc;

	/* Strays need no room, and go first, but not if the rest can not. */
	rc = check_take(node, node->target + strays_of(node));
	if (rc)
		return rc;
	elastic_release_strays(node);
	if (elastic_populated(node) < node->target)
		return grow(node);
	/* Of what Xen keeps of them others have to make up for. */
	rc = check_take(node, node->target);
	if (rc)
		return rc;

	transition(node, ELASTIC_EV_SHRINK);
	rc = take_memory(node, node->target);
	if (rc == -ECANCELED)
		rc = called_off(node);
	if (!has_blocks(node)) {
		drain_node(node, true);
		return rc;
	}
	publish_stable();
	return rc;
}

/*
 * Highest block first.  @budget_ms: how long attempts may last that fail, all
 * together; what they took is subtracted.  Once it is spent, blocks with pages
 * in use are not tried any more, and the first that fails all the same, for
 * what nobody sees, is the last: many that are stuck must not add up.
 *
 * Returns whether all blocks have gone.
 */
static bool remove_blocks(struct elastic_node *node, unsigned int *budget_ms)
{
	bool last, all = true;
	u32 block;

	for (block = node->range.nr_blocks; block-- > 0; ) {
		if (!test_bit(block, node->present))
			continue;
		if (elastic_cancelled())
			return false;
		last = !*budget_ms;
		if (last && elastic_block_in_use(node, block, false)) {
			all = false;
			continue;
		}
		if (!drop_block(node, block, budget_ms))
			continue;
		if (last)
			return false;
		all = false;
	}
	return all;
}

/*
 * What is left in blocks that cannot leave: give back all that is not stuck, and
 * then the blocks in which nothing was.  They had little time for that before,
 * if others had used it up.
 */
static void squeeze_residue(struct elastic_node *node)
{
	unsigned int budget = SQUEEZE_MS;
	u32 block;

	elastic_phase(ELASTIC_PH_EVACUATE);
	for (block = node->range.nr_blocks; block-- > 0; ) {
		if (elastic_cancelled())
			break;
		if (test_bit(block, node->present))
			elastic_balloon_take(node, block,
					     node->range.block_extents, false,
					     &budget);
	}
	drop_hollow_blocks(node, 0, &budget);
}

/*
 * Everything off the node, but for the node itself.  @tell: programs have been
 * told of the node, so they are told that it leaves.
 *
 * Returns 0 also when blocks are stuck; -ECANCELED when a new target came; or
 * what made the CPUs stay.
 */
static int empty_node(struct elastic_node *node, bool tell)
{
	unsigned int budget = DRAIN_MS;
	u64 version;
	int rc, try;

	elastic_phase(ELASTIC_PH_NOTIFY);
	elastic_set_draining(node, true);
	if (tell) {
		version = elastic_topo_publish(XTOPO_DRAINING, true);
		elastic_phase(ELASTIC_PH_ACKS);
		rc = elastic_topo_wait_acks(version, node->grace_ms);
		if (rc)
			return rc;
	}

	elastic_phase(ELASTIC_PH_CPUS);
	rc = elastic_cpus_down(node);
	if (rc)
		return rc;

	for (try = 0; try < 2; try++) {
		elastic_phase(ELASTIC_PH_EVACUATE);
		rc = elastic_evacuate(node);
		if (rc)
			return rc;
		if (remove_blocks(node, &budget))
			return 0;
		if (elastic_cancelled())
			return -ECANCELED;
	}
	return 0;
}

/*
 * A drain that is called off, or that its CPUs do not follow.  A vCPU that does not
 * come back is an error; a new target tries it again, whatever it is.
 */
static void stay(struct elastic_node *node, bool known)
{
	elastic_set_draining(node, false);
	transition(node, ELASTIC_EV_GROW);
	bring_cpus_up(node);
	there_is_a_node(node, known);
}

/* Memory that is stuck, or without any a node whose reason is known. */
static int leave_residue(struct elastic_node *node, int rc)
{
	if (has_blocks(node))
		elastic_residue_reason(node);
	elastic_node_error(node, rc, "%llu KiB cannot leave: %s",
			   elastic_kib(elastic_populated(node)), node->reason);
	transition(node, ELASTIC_EV_STUCK);
	publish_stable();
	return rc;
}

/* From GROWING (an attach failed), ONLINE or RESIDUAL to OFFLINE or RESIDUAL. */
static int drain_node(struct elastic_node *node, bool tell)
{
	bool known = tell && node->state != ELASTIC_RESIDUAL;
	u32 strays;
	int rc;

	transition(node, ELASTIC_EV_DRAIN);
	node->cpus_up = false;
	rc = empty_node(node, tell);
	/* Without memory there is nothing to stay with. */
	if (rc && has_blocks(node)) {
		if (rc == -ECANCELED)
			rc = called_off(node);
		stay(node, known);
		return rc;
	}
	if (has_blocks(node))
		squeeze_residue(node);
	if (has_blocks(node))
		return leave_residue(node, -EBUSY);

	elastic_phase(ELASTIC_PH_NODE);
	rc = elastic_node_unplug(node);
	/* Blocks have gone, but Xen or a CPU may still hold on. */
	strays = elastic_release_strays(node);
	if (strays)
		snprintf(node->reason, sizeof(node->reason),
			 "Xen does not take back %u extents", strays);
	if (rc || strays)
		return leave_residue(node, rc ?: -EBUSY);

	elastic_set_draining(node, false);
	node->reason[0] = '\0';
	node->nr_detached += tell;
	transition(node, ELASTIC_EV_EMPTY);
	publish_stable();
	return 0;
}

static int detach(struct elastic_node *node)
{
	int rc = check_detach(node);

	return rc ?: drain_node(node, true);
}

/**
 * elastic_node_operate() - one operation towards the node's target
 * @node: a usable node that is not settled
 *
 * Context: the engine.  Sleeps, for as long as it takes; what elastic_cancelled
 *	reports ends it early.
 * Return: 0: done, though another operation may be needed to reach the target;
 *	-ECANCELED: there is a new target; else why it failed, which is in
 *	node->error, too.
 */
int elastic_node_operate(struct elastic_node *node)
{
	bool missing = node->state == ELASTIC_ONLINE && !node->cpus_up;
	int rc, up = 0;

	node->error[0] = '\0';
	pr_info("vnode %u: %s, %llu KiB, target %llu KiB\n", node->vnode,
		elastic_state_name(node->state),
		elastic_kib(elastic_populated(node)),
		elastic_kib(node->target));

	node->cpus_tried = false;
	elastic_op_begin(node, node->target < elastic_populated(node));
	if (!node->target)
		rc = detach(node);
	else if (node->detach && node->state == ELASTIC_ONLINE)
		rc = shrink(node);
	else
		rc = grow(node);
	/* A detach before was called off without them; whatever this has come to. */
	if (missing && node->state == ELASTIC_ONLINE && !node->cpus_tried)
		up = bring_cpus_up(node);
	rc = rc ?: up;
	elastic_op_end();
	/* What others changed meanwhile may not be on the page. */
	elastic_topo_refresh();

	if (rc && rc != -ECANCELED)
		node->nr_failed++;
	pr_info("vnode %u: now %s, %llu KiB (%d)\n", node->vnode,
		elastic_state_name(node->state),
		elastic_kib(elastic_populated(node)), rc);
	return rc;
}
