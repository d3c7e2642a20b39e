// SPDX-License-Identifier: GPL-2.0
/*
 * xenstore: what the toolstack asks, what the guest answers
 * (docs/xenstore-paths.md).
 *
 * Every key is untrusted: a number that is no number, a range that differs
 * from SRAT or a CPU that does not exist makes an error message and leaves
 * the node alone.
 *
 * Locking: none of the driver's locks is held here, xenbus sleeps.  The
 * engine writes, the ticker writes progress-kb, and nobody else writes.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <xen/xenbus.h>

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

/* -ENOENT: no such key; -EINVAL, -ERANGE: not a number. */
static int read_u64(const char *dir, const char *key, unsigned int base,
		    u64 *value)
{
	char *text = xenbus_read(XBT_NIL, dir, key, NULL);
	int rc;

	if (IS_ERR(text))
		return PTR_ERR(text);
	rc = kstrtoull(text, base, value);
	if (rc)
		pr_err_ratelimited("%s/%s: '%.32s' is not a number\n",
				   dir, key, text);
	kfree(text);
	return rc;
}

int elastic_store_generation(u64 *generation)
{
	return read_u64(ROOT, "generation", 10, generation);
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
static int read_cpus(struct elastic_node *node, const char *dir)
{
	char *text = xenbus_read(XBT_NIL, dir, "cpus", NULL);
	struct elastic_node *other;
	struct cpumask cpus;
	int rc;

	if (IS_ERR(text)) {
		cpumask_clear(&node->cpus);
		return PTR_ERR(text) == -ENOENT ? 0 : PTR_ERR(text);
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
	kfree(text);
	return rc;
}

/* What is asked of the node now.  Nonsense leaves it as it is. */
void elastic_store_request(struct elastic_node *node)
{
	char dir[PATH_LEN];
	u64 kib, ms;
	u32 target;
	int rc;

	node_path(dir, node);
	node->bad_target = true;

	rc = elastic_store_target(node, &kib);
	if (!rc)
		rc = elastic_target_extents(&node->range, kib, &target);
	if (rc) {
		elastic_node_error(node, rc, "%s/target-kb is no multiple of %llu in 0..%llu",
				   dir, ELASTIC_EXTENT_KIB,
				   elastic_kib(node->range.nr_extents));
		return;
	}
	/* The CPUs of a node that is there do not change. */
	if (node->state == ELASTIC_OFFLINE && target && read_cpus(node, dir))
		return;

	node->grace_ms = ELASTIC_GRACE_MS;
	if (!read_u64(dir, "grace-ms", 10, &ms))
		node->grace_ms = min_t(u64, ms, ELASTIC_GRACE_MAX_MS);

	node->target = target;
	node->bad_target = false;
}

/*
 * Write errors: once, with what to do.  -EAGAIN belongs to a transaction that
 * must be repeated, and is no error.
 */
static int put(struct xenbus_transaction xbt, const char *dir, const char *key,
	       const char *text)
{
	int rc = xenbus_write(xbt, dir, key, text);

	if (rc && rc != -EAGAIN)
		pr_err_once("cannot write %s/%s: %d; the toolstack must let the guest own %s\n",
			    dir, key, rc, GUEST);
	return rc;
}

static int put_u64(struct xenbus_transaction xbt, const char *dir,
		   const char *key, u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", value);
	return put(xbt, dir, key, text);
}

/* An empty text is no key at all. */
static int put_or_remove(struct xenbus_transaction xbt, const char *dir,
			 const char *key, const char *text)
{
	if (*text)
		return put(xbt, dir, key, text);
	if (xenbus_exists(xbt, dir, key))
		return xenbus_rm(xbt, dir, key);
	return 0;
}

void elastic_store_hello(void)
{
	put(XBT_NIL, GUEST, "version", "1");
}

void elastic_store_goodbye(void)
{
	xenbus_rm(XBT_NIL, GUEST, "version");
}

void elastic_store_ack(u64 generation)
{
	put_u64(XBT_NIL, GUEST, "ack-generation", generation);
}

/* What a running operation moves towards its target. */
void elastic_store_progress(const struct elastic_node *node)
{
	u64 kib = elastic_kib(elastic_populated(node));
	char dir[PATH_LEN];

	guest_path(dir, node);
	put_u64(XBT_NIL, dir, "progress-kb", kib);
	put_u64(XBT_NIL, dir, "current-kb", kib);
}

void elastic_store_state(const struct elastic_node *node)
{
	char dir[PATH_LEN];

	guest_path(dir, node);
	put(XBT_NIL, dir, "state", elastic_state_name(node->state));
	elastic_store_progress(node);
}

static int put_phases(struct xenbus_transaction xbt, const char *dir,
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
	return put(xbt, dir, "phases", text);
}

static int put_node(struct xenbus_transaction xbt,
		    const struct elastic_node *node)
{
	u32 residue = node->state == ELASTIC_RESIDUAL ?
		      elastic_populated(node) : 0;
	u64 kib = elastic_kib(elastic_populated(node));
	char dir[PATH_LEN];
	int rc;

	guest_path(dir, node);
	rc = put(xbt, dir, "state", elastic_state_name(node->state));
	rc = rc ?: put_u64(xbt, dir, "current-kb", kib);
	rc = rc ?: put_u64(xbt, dir, "progress-kb", kib);
	rc = rc ?: put_u64(xbt, dir, "residual-kb", elastic_kib(residue));
	rc = rc ?: put_or_remove(xbt, dir, "reason", node->reason);
	rc = rc ?: put_or_remove(xbt, dir, "error", node->error);
	return rc ?: put_phases(xbt, dir, node);
}

/* All nodes' final keys and the generation that they answer, or nothing. */
void elastic_store_done(u64 generation)
{
	struct elastic_node *node;
	struct xenbus_transaction xbt;
	int rc, tries = 0;

	do {
		rc = xenbus_transaction_start(&xbt);
		if (rc)
			break;
		for_each_elastic_node(node) {
			if (node->usable)
				rc = rc ?: put_node(xbt, node);
		}
		rc = rc ?: put_u64(xbt, GUEST, "done-generation", generation);
		if (rc) {
			xenbus_transaction_end(xbt, 1);
			break;
		}
		rc = xenbus_transaction_end(xbt, 0);
	} while (rc == -EAGAIN && ++tries < 100);

	if (rc)
		pr_err("generation %llu: outcome could not be reported: %d\n",
		       generation, rc);
}
