// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/xen/topology: one read-only page that every program may map, poll() for
 * those that sleep, and the promise to acknowledge a change (the ABI is in
 * <xen/topology.h>).
 *
 * Locking: topo_mutex guards the page, the image that it was written from and
 * the registered files.  It is taken by the engine, by the refresh work and by
 * ioctls, and nothing of the driver is taken inside it.  Programs read the
 * page without any lock.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/kobject.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/numa_reset.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "elastic.h"
#include "page.h"

#define REFRESH_DELAY	(HZ / 20)	/* lets a row of changes be one */
#define LOOK_DELAY	(HZ / 50)	/* nobody says when a process sleeps */

/**
 * struct topo_file - one open file
 * @list: in registered, or empty
 * @registered: a removal waits for it
 * @running: the process to wait for only while it runs, or NULL: always
 * @acked: version that it has followed; first, the one at open()
 * @told: version that poll() has told a file of that is not registered
 */
struct topo_file {
	struct list_head list;
	bool registered;
	struct pid *running;
	u64 acked;
	u64 told;
};

static DEFINE_MUTEX(topo_mutex);
static struct xtopo_page *topo_page;	/* what programs map */
static struct xtopo_page image;		/* what it was written from */
static LIST_HEAD(registered);
static DECLARE_WAIT_QUEUE_HEAD(poll_wq);

static struct miscdevice topo_device;
static void refresh(struct work_struct *work);
static DECLARE_DELAYED_WORK(refresh_work, refresh);

static u64 current_version(void)
{
	return READ_ONCE(topo_page->version);
}

static void set_node_bits(u64 words[2], const nodemask_t *nodes)
{
	int nid;

	words[0] = 0;
	words[1] = 0;
	for_each_node_mask(nid, *nodes) {
		if (nid < XTOPO_MAX_NODES_MASK)
			words[nid / 64] |= 1ULL << (nid % 64);
	}
}

/* MiB on each node: what Xen has populated, or what Linux manages. */
static void fill_memory(struct xtopo_page *new)
{
	struct elastic_node *node;
	int nid;

	memset(new->node_mem_mb, 0, sizeof(new->node_mem_mb));
	for_each_node_state(nid, N_MEMORY) {
		if (nid < XTOPO_MAX_NODES)
			new->node_mem_mb[nid] = node_present_pages(nid) >>
						(20 - PAGE_SHIFT);
	}
	for_each_elastic_node(node) {
		if (node->nid < XTOPO_MAX_NODES)
			new->node_mem_mb[node->nid] =
				elastic_kib(elastic_populated(node)) >> 10;
	}
}

static void fill_cpus(struct xtopo_page *new, const nodemask_t *draining)
{
	unsigned int cpu;
	int nid;

	memset(new->cpus_usable, 0, sizeof(new->cpus_usable));
	memset(new->cpu_node, XTOPO_NO_NODE, sizeof(new->cpu_node));
	for_each_present_cpu(cpu) {
		nid = cpu_to_node(cpu);
		if (cpu < XTOPO_MAX_CPU_NODE && nid >= 0 && nid < XTOPO_NO_NODE)
			new->cpu_node[cpu] = nid;
		if (cpu < XTOPO_MAX_CPUS && cpu_online(cpu) &&
		    (nid < 0 || !node_isset(nid, *draining)))
			new->cpus_usable[cpu / 64] |= 1ULL << (cpu % 64);
	}
}

static void fill(struct xtopo_page *new, enum xtopo_phase phase)
{
	nodemask_t nodes, draining;

	elastic_draining_nodes(&draining);
	nodes_or(nodes, node_states[N_MEMORY], node_states[N_CPU]);
	nodes_and(draining, draining, nodes);

	new->phase = phase;
	new->nr_cpus_possible = nr_cpu_ids;
	new->nr_nodes_possible = nr_node_ids;
	new->reset_nr = NUMA_RESET_NR;
	set_node_bits(new->nodes_online, &nodes);
	set_node_bits(new->nodes_draining, &draining);
	fill_memory(new);
	fill_cpus(new, &draining);
}

static void tell_programs(void)
{
	static const char * const phases[] = {
		[XTOPO_STABLE]   = "PHASE=stable",
		[XTOPO_GROWING]  = "PHASE=growing",
		[XTOPO_DRAINING] = "PHASE=draining",
	};
	char version[40], phase[20];
	char *env[3];

	snprintf(version, sizeof(version), "VERSION=%llu", image.version);
	strscpy(phase, phases[image.phase]);
	env[0] = version;
	env[1] = phase;
	env[2] = NULL;
	kobject_uevent_env(&topo_device.this_device->kobj, KOBJ_CHANGE, env);
	wake_up_interruptible_all(&poll_wq);
}

/* Under topo_mutex. */
static void publish(enum xtopo_phase phase, bool bump)
{
	nodemask_t usable, draining;

	fill(&image, phase);
	image.version += bump;

	/* numa_reset(2) must not be behind what the page promises. */
	elastic_draining_nodes(&draining);
	nodes_andnot(usable, node_states[N_MEMORY], draining);
	numa_reset_set_topology(image.version, &usable);

	xtopo_page_publish(topo_page, &image);
	if (bump)
		tell_programs();
}

/**
 * elastic_topo_publish() - write what is true now into the page
 * @phase: the phase to show
 * @bump: it is a new version, which programs follow
 *
 * Context: may sleep.
 * Return: the version that the page has now.
 */
u64 elastic_topo_publish(enum xtopo_phase phase, bool bump)
{
	u64 version;

	mutex_lock(&topo_mutex);
	publish(phase, bump);
	version = image.version;
	mutex_unlock(&topo_mutex);
	return version;
}

/*
 * Somebody else has changed CPUs or memory: is there any news in it?  Not while
 * the engine works, which publishes what it does, and looks here when it has
 * ended.  Asked under the mutex: it publishes nothing before it is busy, so that
 * a phase of its own is never overwritten.
 */
static void refresh(struct work_struct *work)
{
	struct xtopo_page *new = kmalloc(sizeof(*new), GFP_KERNEL);

	if (!new)
		return;
	mutex_lock(&topo_mutex);
	if (!elastic_busy()) {
		*new = image;
		fill(new, XTOPO_STABLE);
		if (memcmp(new, &image, sizeof(image)))
			publish(XTOPO_STABLE, true);
	}
	mutex_unlock(&topo_mutex);
	kfree(new);
}

/**
 * elastic_topo_refresh() - look soon whether the page is still true
 *
 * Context: any.
 */
void elastic_topo_refresh(void)
{
	if (topo_page)
		queue_delayed_work(system_unbound_wq, &refresh_work,
				   REFRESH_DELAY);
}

static int cpu_changed(unsigned int cpu)
{
	elastic_topo_refresh();
	return 0;
}

/* No thread of the process runs or waits for a CPU, or there is none left. */
static bool sleeps(struct pid *pid)
{
	struct task_struct *process, *thread;
	bool runs = false;

	rcu_read_lock();
	process = pid_task(pid, PIDTYPE_TGID);
	if (process) {
		for_each_thread(process, thread) {
			runs = task_is_running(thread);
			if (runs)
				break;
		}
	}
	rcu_read_unlock();
	return !runs;
}

static void unregister(struct topo_file *tf)
{
	list_del_init(&tf->list);
	tf->registered = false;
	put_pid(tf->running);
	tf->running = NULL;
}

/* How many programs are waited for; it counts no further than @enough. */
static unsigned int missing_acks(u64 version, unsigned int enough)
{
	struct topo_file *tf;
	unsigned int missing = 0;

	mutex_lock(&topo_mutex);
	list_for_each_entry(tf, &registered, list) {
		missing += tf->acked < version &&
			   !(tf->running && sleeps(tf->running));
		if (missing == enough)
			break;
		cond_resched();
	}
	mutex_unlock(&topo_mutex);
	return missing;
}

/* Who follows only when it starts work has not started any: do not wait for it again. */
static void forget_silent(u64 version)
{
	struct topo_file *tf, *next;

	mutex_lock(&topo_mutex);
	list_for_each_entry_safe(tf, next, &registered, list) {
		if (tf->running && tf->acked < version)
			unregister(tf);
	}
	mutex_unlock(&topo_mutex);
}

/**
 * elastic_topo_wait_acks() - give registered programs time to follow
 * @version: what they are to acknowledge
 * @timeout_ms: the grace period
 *
 * Return: 0, also when the period is over: it is a courtesy; -ECANCELED: there
 *	is a new target.
 */
int elastic_topo_wait_acks(u64 version, unsigned int timeout_ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	long left;
	int rc = 0;

	add_wait_queue(&elastic_wq, &wait);
	for (;;) {
		if (!missing_acks(version, 1))
			break;
		if (elastic_cancelled()) {
			rc = -ECANCELED;
			break;
		}
		/* Once: a vCPU may be away for longer than that. */
		left = end - jiffies;
		if (left <= 0) {
			pr_info("version %llu: %u programs did not acknowledge within %u ms\n",
				version, missing_acks(version, UINT_MAX),
				timeout_ms);
			forget_silent(version);
			break;
		}
		wait_woken(&wait, TASK_IDLE,
			   min_t(long, left, LOOK_DELAY));
	}
	remove_wait_queue(&elastic_wq, &wait);
	return rc;
}

static int topo_open(struct inode *inode, struct file *file)
{
	struct topo_file *tf = kzalloc(sizeof(*tf), GFP_KERNEL_ACCOUNT);

	if (!tf)
		return -ENOMEM;
	INIT_LIST_HEAD(&tf->list);
	tf->acked = current_version();
	tf->told = tf->acked;
	file->private_data = tf;
	return nonseekable_open(inode, file);
}

static int topo_release(struct inode *inode, struct file *file)
{
	struct topo_file *tf = file->private_data;

	mutex_lock(&topo_mutex);
	unregister(tf);
	mutex_unlock(&topo_mutex);
	wake_up_all(&elastic_wq);
	kfree(tf);
	return 0;
}

static int topo_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma_pages(vma) != 1)
		return -EINVAL;
	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE);
	return vm_insert_page(vma, vma->vm_start, virt_to_page(topo_page));
}

static __poll_t topo_poll(struct file *file, poll_table *wait)
{
	struct topo_file *tf = file->private_data;
	u64 version;

	poll_wait(file, &poll_wq, wait);
	version = current_version();
	if (READ_ONCE(tf->registered))
		return READ_ONCE(tf->acked) != version ? EPOLLPRI : 0;

	/* It cannot acknowledge: once for each version, as /proc/mounts. */
	return xchg(&tf->told, version) != version ? EPOLLPRI : 0;
}

/* One such promise a process: each is a look at all of its threads. */
static bool runs_already(struct pid *pid)
{
	struct topo_file *tf;

	list_for_each_entry(tf, &registered, list) {
		if (tf->running == pid)
			return true;
	}
	return false;
}

static int topo_register(struct topo_file *tf, bool running)
{
	int rc = -EBUSY;

	mutex_lock(&topo_mutex);
	if (!tf->registered &&
	    !(running && runs_already(task_tgid(current)))) {
		tf->registered = true;
		if (running)
			tf->running = get_pid(task_tgid(current));
		list_add_tail(&tf->list, &registered);
		rc = 0;
	}
	mutex_unlock(&topo_mutex);
	return rc;
}

static int topo_ack(struct topo_file *tf, u64 version)
{
	int rc = 0;

	mutex_lock(&topo_mutex);
	if (!tf->registered)
		rc = -ENOTCONN;
	else if (version > image.version)
		rc = -EINVAL;
	else if (version > tf->acked)
		tf->acked = version;
	mutex_unlock(&topo_mutex);
	if (!rc)
		wake_up_all(&elastic_wq);
	return rc;
}

static long topo_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct topo_file *tf = file->private_data;

	switch (cmd) {
	case XTOPO_REGISTER:
		return topo_register(tf, false);
	case XTOPO_REGISTER_RUNNING:
		return topo_register(tf, true);
	case XTOPO_ACK:
		return topo_ack(tf, arg);
	case XTOPO_RESET:
		return numa_reset_ioctl((void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations topo_fops = {
	.owner		= THIS_MODULE,
	.open		= topo_open,
	.release	= topo_release,
	.mmap		= topo_mmap,
	.poll		= topo_poll,
	.unlocked_ioctl	= topo_ioctl,
};

/* Named as xen/evtchn is: devtmpfs makes a directory of it. */
static struct miscdevice topo_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "xen/topology",
	.fops	= &topo_fops,
	.mode	= 0444,
};

/**
 * elastic_topo_init() - make the page and the device
 *
 * They stay, also where the driver does not start after all: programs may have
 * mapped the page, and what it says stays true.
 *
 * Return: 0, -ENOMEM, or why the device cannot be.
 */
int elastic_topo_init(void)
{
	struct xtopo_page *page;
	int rc;

	BUILD_BUG_ON(PAGE_SIZE != XTOPO_PAGE_SIZE);
	BUILD_BUG_ON(MAX_NUMNODES > XTOPO_MAX_NODES_MASK);

	page = (struct xtopo_page *)get_zeroed_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	xtopo_page_init(page);
	xtopo_page_init(&image);
	topo_page = page;

	rc = misc_register(&topo_device);
	if (rc) {
		topo_page = NULL;
		free_page((unsigned long)page);
		return rc;
	}
	elastic_topo_publish(XTOPO_STABLE, true);

	rc = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN,
				       "xen/elastic-numa:online", cpu_changed,
				       cpu_changed);
	if (rc < 0)
		pr_warn("CPU changes by others will be missed: %d\n", rc);
	return 0;
}
