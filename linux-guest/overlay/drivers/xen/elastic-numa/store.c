// SPDX-License-Identifier: GPL-2.0
/*
 * xenstore: what the toolstack asks, what the guest answers
 * (docs/xenstore-paths.md).
 *
 * Every key is untrusted: a number that is no number, a range that differs
 * from SRAT or a CPU that does not exist makes an error message and leaves
 * the node alone.
 *
 * Each way to xenstored and back is two wake-ups of CPUs that are idle: what is
 * asked or told at one time is one row (<xen/xenbus_batch.h>), and what needs no
 * answer is not waited for.  No copy is kept of what was written, so that a kernel
 * after a kexec, or a key that somebody else has changed, needs no rule.
 *
 * Locking: none of the driver's locks is held here, xenbus sleeps.  The
 * engine writes, the ticker writes progress-kb, and nobody else writes.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <xen/xenbus_batch.h>

#include "elastic.h"

#define ROOT		"vnuma"
#define GUEST		"vnuma/guest"
#define PATH_LEN	40

static void node_path(char path[PATH_LEN], const struct elastic_node *node)
{
	snprintf(path, PATH_LEN, ROOT "/node/%u", node->vnode);
}

static void guest_path(char path[PATH_LEN], const struct elastic_node *node)
{
	snprintf(path, PATH_LEN, GUEST "/node/%u", node->vnode);
}

/*
 * What an answer says; it is freed.  -ENOENT: no such key; -EINVAL, -ERANGE: not a
 * number; others: xenstore does not say it, which the log does.
 */
static int parse_u64(const char *dir, const char *key, char *text,
		     unsigned int base, u64 *value)
{
	int rc;

	if (IS_ERR(text)) {
		rc = PTR_ERR(text);
		if (rc != -ENOENT)
			pr_err_ratelimited("%s/%s cannot be read: %d\n", dir, key, rc);
		return rc;
	}
	rc = kstrtoull(text, base, value);
	if (rc)
		pr_err_ratelimited("%s/%s: '%.32s' is not a number\n",
				   dir, key, text);
	kfree(text);
	return rc;
}

static int read_u64(const char *dir, const char *key, unsigned int base,
		    u64 *value)
{
	return parse_u64(dir, key, xenbus_read(XBT_NIL, dir, key, NULL), base,
			 value);
}

int elastic_store_target(const struct elastic_node *node, u64 *kib)
{
	char dir[PATH_LEN];

	node_path(dir, node);
	return read_u64(dir, "target-kb", 10, kib);
}

/* Memory of the node that a kernel before this one has reported, KiB. */
u64 elastic_store_left_behind(const struct elastic_node *node)
{
	char dir[PATH_LEN];
	u64 kib;

	guest_path(dir, node);
	return read_u64(dir, "current-kb", 10, &kib) ? 0 : kib;
}

/*
 * What the toolstack says once, at creation, must be what SRAT says: memory
 * that Xen would put somewhere else than Linux expects it is worse than none.
 */
int elastic_store_node(struct elastic_node *node)
{
	u64 elastic, start, kib;
	char dir[PATH_LEN];
	int rc;

	node_path(dir, node);
	rc = read_u64(dir, "elastic", 10, &elastic);
	if (rc)
		return rc;
	if (elastic != 1)
		return -ENODEV;

	rc = read_u64(dir, "start", 16, &start);
	if (!rc)
		rc = read_u64(dir, "max-kb", 10, &kib);
	if (rc) {
		pr_err("%s: start or max-kb missing or wrong (%d)\n", dir, rc);
		return rc;
	}
	if (start != node->range.start ||
	    kib != elastic_kib(node->range.nr_extents)) {
		pr_err("%s: %llu KiB at %#llx, but SRAT says %llu KiB at %#llx\n",
		       dir, kib, start, elastic_kib(node->range.nr_extents),
		       node->range.start);
		return -EINVAL;
	}
	return 0;
}

/* A list of vCPUs of which none is the boot CPU's or another node's. */
static int parse_cpus(struct elastic_node *node, const char *dir,
		      const char *text)
{
	struct elastic_node *other;
	struct cpumask cpus;
	int rc;

	if (IS_ERR(text)) {
		if (PTR_ERR(text) != -ENOENT)
			return elastic_node_error(node, PTR_ERR(text),
						  "%s/cpus cannot be read", dir);
		cpumask_clear(&node->cpus);
		return 0;
	}
	rc = cpulist_parse(text, &cpus);
	if (!rc && (!cpumask_subset(&cpus, cpu_possible_mask) ||
		    cpumask_test_cpu(0, &cpus)))
		rc = -ERANGE;
	for_each_elastic_node(other) {
		if (other != node && cpumask_intersects(&cpus, &other->cpus))
			rc = -EEXIST;
	}
	if (rc)
		elastic_node_error(node, rc, "%s/cpus: '%.64s' is not a list of this node's vCPUs",
				   dir, text);
	else
		cpumask_copy(&node->cpus, &cpus);
	return rc;
}

/**
 * struct demand - what the toolstack's keys say of a node, as they are
 * @target: target-kb
 * @cpus: cpus, of a node that is absent, or of a residue that has none; those of one
 *	that is there do not change
 * @grace: grace-ms, of one that is there: of another one nothing is taken
 *
 * Each is a text, an ERR_PTR(), or NULL if it was not asked for.
 */
struct demand {
	char *target, *cpus, *grace;
};

static void ask(struct xenbus_batch *batch, const struct elastic_node *node,
		struct demand *demand)
{
	char dir[PATH_LEN];

	node_path(dir, node);
	xenbus_batch_read(batch, dir, "target-kb", &demand->target);
	/* What a kernel before a kexec has left: its CPUs have not been asked for yet. */
	if (node->state == ELASTIC_OFFLINE ||
	    (node->state == ELASTIC_RESIDUAL && cpumask_empty(&node->cpus)))
		xenbus_batch_read(batch, dir, "cpus", &demand->cpus);
	if (node->state != ELASTIC_OFFLINE)
		xenbus_batch_read(batch, dir, "grace-ms", &demand->grace);
}

static void free_text(char **text)
{
	if (!IS_ERR(*text))
		kfree(*text);
	*text = NULL;
}

static void forget(struct demand *demand)
{
	free_text(&demand->target);
	free_text(&demand->cpus);
	free_text(&demand->grace);
}

/* What is asked of the node now.  Nonsense leaves it as it is. */
static void heed(struct elastic_node *node, struct demand *demand)
{
	bool unread = IS_ERR(demand->target);
	char failed = node->error[0];
	char dir[PATH_LEN];
	u64 kib, ms;
	u32 target;
	int rc;

	node_path(dir, node);
	node->bad_target = true;
	/* What is wrong now is not why an operation before has failed. */
	node->error[0] = '\0';

	rc = parse_u64(dir, "target-kb", demand->target, 10, &kib);
	demand->target = NULL;
	if (!rc)
		rc = elastic_target_extents(&node->range, kib, &target);
	if (unread) {
		elastic_node_error(node, rc, "%s/target-kb cannot be read", dir);
		return;
	}
	if (rc == -EDOM) {
		elastic_node_error(node, rc,
				   "of %llu KiB the last block, of %llu, would have less than its %llu KiB of struct pages: ask for less, or more",
				   kib, elastic_block_bytes(&node->range) >> 10,
				   elastic_kib(node->range.memmap_extents));
		return;
	}
	if (rc) {
		elastic_node_error(node, rc, "%s/target-kb is no multiple of %llu in 0..%llu",
				   dir, ELASTIC_EXTENT_KIB,
				   elastic_kib(node->range.nr_extents));
		return;
	}
	if (demand->cpus && target && parse_cpus(node, dir, demand->cpus))
		return;

	node->grace_ms = ELASTIC_GRACE_MS;
	if (demand->grace &&
	    !parse_u64(dir, "grace-ms", demand->grace, 10, &ms))
		node->grace_ms = min_t(u64, ms, ELASTIC_GRACE_MAX_MS);
	demand->grace = NULL;

	node->target = target;
	node->bad_target = false;
	node->error[0] = failed;
}

/**
 * elastic_store_request() - read what is asked of a node
 * @node: a usable node
 *
 * Without memory for it, the node is as after nonsense.
 */
void elastic_store_request(struct elastic_node *node)
{
	struct demand demand = {};
	struct xenbus_batch batch;

	xenbus_batch_init(&batch);
	ask(&batch, node, &demand);
	xenbus_batch_run(&batch, XBT_NIL);
	heed(node, &demand);
	forget(&demand);
}

/**
 * elastic_store_requests() - read what is asked of all nodes
 * @generation: where to put the generation that it belongs to
 *
 * The toolstack writes both in one transaction; a generation that has not moved
 * while we read says that we have one operation's targets and no mixture.
 *
 * Return: 0; -EAGAIN: it has moved, nothing was changed; or why it cannot be read.
 */
int elastic_store_requests(u64 *generation)
{
	struct demand *demands, *demand;
	struct elastic_node *node;
	struct xenbus_batch batch;
	char *first, *last;
	u64 before;
	int rc;

	demands = kcalloc(elastic_nr_nodes, sizeof(*demands), GFP_KERNEL);
	if (!demands)
		return -ENOMEM;

	xenbus_batch_init(&batch);
	xenbus_batch_read(&batch, ROOT, "generation", &first);
	for_each_elastic_node(node) {
		if (node->usable)
			ask(&batch, node, &demands[node - elastic_nodes]);
	}
	xenbus_batch_read(&batch, ROOT, "generation", &last);
	xenbus_batch_run(&batch, XBT_NIL);

	rc = parse_u64(ROOT, "generation", first, 10, &before);
	if (rc)
		free_text(&last);
	else
		rc = parse_u64(ROOT, "generation", last, 10, generation);
	if (!rc && *generation != before)
		rc = -EAGAIN;
	for_each_elastic_node(node) {
		demand = &demands[node - elastic_nodes];
		if (!rc && node->usable)
			heed(node, demand);
		forget(demand);
	}
	kfree(demands);
	return rc;
}

static void put_u64(struct xenbus_batch *batch, const char *dir,
		    const char *key, u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", value);
	xenbus_batch_write(batch, dir, key, text);
}

/* An empty text is no key at all. */
static void put_or_remove(struct xenbus_batch *batch, const char *dir,
			  const char *key, const char *text)
{
	if (*text)
		xenbus_batch_write(batch, dir, key, text);
	else
		xenbus_batch_rm(batch, dir, key);
}

/* With what to do, if it is known: xenstore's quota and memory have other causes. */
static int told(int rc)
{
	if (rc == -EACCES)
		pr_err_once("cannot write below %s: %d; the toolstack must let the guest own it\n",
			    GUEST, rc);
	else if (rc && rc != -EAGAIN)
		pr_err_ratelimited("cannot write below %s: %d\n", GUEST, rc);
	return rc;
}

void elastic_store_hello(void)
{
	told(xenbus_write(XBT_NIL, GUEST, "version", "1"));
}

void elastic_store_goodbye(void)
{
	xenbus_rm(XBT_NIL, GUEST, "version");
}

/* What the operation does then does not wait for xenstore to have it. */
void elastic_store_ack(u64 generation)
{
	struct xenbus_batch batch;

	xenbus_batch_init(&batch);
	put_u64(&batch, GUEST, "ack-generation", generation);
	told(xenbus_batch_post(&batch));
}

static void put_progress(struct xenbus_batch *batch, const char *dir,
			 const struct elastic_node *node)
{
	u64 kib = elastic_kib(elastic_populated(node));

	put_u64(batch, dir, "progress-kb", kib);
	put_u64(batch, dir, "current-kb", kib);
}

/*
 * What a running operation moves towards its target.  It is waited for: while
 * xenstored does not answer, there is one at a time.
 */
void elastic_store_progress(const struct elastic_node *node)
{
	struct xenbus_batch batch;
	char dir[PATH_LEN];

	guest_path(dir, node);
	xenbus_batch_init(&batch);
	put_progress(&batch, dir, node);
	told(xenbus_batch_run(&batch, XBT_NIL));
}

/* Memory that should have left and could not; what is tried anew is no residue. */
static void put_residual(struct xenbus_batch *batch, const char *dir,
			 const struct elastic_node *node)
{
	put_u64(batch, dir, "residual-kb", node->state == ELASTIC_RESIDUAL ?
		elastic_kib(elastic_populated(node)) : 0);
}

static void put_state(struct xenbus_batch *batch, const char *dir,
		      const struct elastic_node *node)
{
	put_residual(batch, dir, node);
	xenbus_batch_write(batch, dir, "state",
			   elastic_state_name(node->state));
}

/* An operation begins or goes another way; what there is has not moved by that. */
void elastic_store_state(const struct elastic_node *node)
{
	struct xenbus_batch batch;
	char dir[PATH_LEN];

	guest_path(dir, node);
	xenbus_batch_init(&batch);
	put_state(&batch, dir, node);
	told(xenbus_batch_post(&batch));
}

/*
 * Where a node is, of which elastic_store_done() does not tell yet.  Its memory comes
 * before its state: online without memory, or absent with some, cannot be.
 */
void elastic_store_report(const struct elastic_node *node)
{
	struct xenbus_batch batch;
	char dir[PATH_LEN];

	guest_path(dir, node);
	xenbus_batch_init(&batch);
	put_progress(&batch, dir, node);
	put_state(&batch, dir, node);
	told(xenbus_batch_post(&batch));
}

static void put_phases(struct xenbus_batch *batch, const char *dir,
		       const struct elastic_node *node)
{
	static const u8 attach[] = {
		ELASTIC_PH_POPULATE, ELASTIC_PH_ADD, ELASTIC_PH_ONLINE,
		ELASTIC_PH_CPUS, ELASTIC_PH_NOTIFY,
	};
	static const u8 detach[] = {
		ELASTIC_PH_NOTIFY, ELASTIC_PH_ACKS, ELASTIC_PH_CPUS,
		ELASTIC_PH_EVACUATE, ELASTIC_PH_OFFLINE, ELASTIC_PH_RELEASE,
		ELASTIC_PH_NODE,
	};
	const u8 *order = node->detach ? detach : attach;
	unsigned int n = node->detach ? ARRAY_SIZE(detach) : ARRAY_SIZE(attach);
	char text[ELASTIC_NR_PHASES * 32];
	int len = 0;

	while (n--) {
		len += scnprintf(text + len, sizeof(text) - len, "%s%s=%llu",
				 len ? "," : "", elastic_phase_names[*order],
				 node->phase_us[*order]);
		order++;
	}
	xenbus_batch_write(batch, dir, "phases", text);
}

static void put_node(struct xenbus_batch *batch,
		     const struct elastic_node *node)
{
	char dir[PATH_LEN];

	guest_path(dir, node);
	xenbus_batch_write(batch, dir, "state",
			   elastic_state_name(node->state));
	put_progress(batch, dir, node);
	put_residual(batch, dir, node);
	put_or_remove(batch, dir, "reason", node->reason);
	put_or_remove(batch, dir, "error", node->error);
	put_phases(batch, dir, node);
}

/* All of an outcome, in a transaction that has begun. */
static int put_outcome(struct xenbus_transaction xbt, u64 generation)
{
	struct elastic_node *node;
	struct xenbus_batch batch;

	xenbus_batch_init(&batch);
	for_each_elastic_node(node) {
		if (node->usable)
			put_node(&batch, node);
	}
	put_u64(&batch, GUEST, "done-generation", generation);
	return told(xenbus_batch_run(&batch, xbt));
}

/*
 * All nodes' final keys and the generation that they answer, or nothing: whether
 * xenstored has them all is known before the transaction ends.  What was sent and
 * not waited for must have been done before it begins: xenstored promises no order.
 */
void elastic_store_done(u64 generation)
{
	struct elastic_node *node;
	struct xenbus_transaction xbt;
	int rc, tries = 0;

	xenbus_batch_settle();
	do {
		rc = xenbus_transaction_start(&xbt);
		if (rc)
			break;
		rc = put_outcome(xbt, generation);
		if (rc) {
			xenbus_transaction_end(xbt, 1);
			break;
		}
		rc = xenbus_transaction_end(xbt, 0);
	} while (rc == -EAGAIN && ++tries < 100);

	if (!rc)
		return;
	pr_err("generation %llu: outcome could not be reported: %d\n",
	       generation, rc);
	/* What the nodes are like is true all the same. */
	for_each_elastic_node(node) {
		if (node->usable)
			elastic_store_report(node);
	}
}
