// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/xen/topology: topodev.c as it is, with files and processes of the test,
 * and a clock that moves when somebody waits.
 */
#include "case.h"
#include "elastic.h"
#include "page.h"

static struct elastic_node node = { .vnode = 1, .nid = 1 };
struct elastic_node *elastic_nodes = &node;
unsigned int elastic_nr_nodes = 1;
struct cpumask cpus_possible = { { 0xf } }, cpus_present = { { 0xf } },
	       cpus_online = { { 0xf } };
nodemask_t node_states[2] = { { { 3 } }, { { 3 } } };
nodemask_t draining_nodes;
struct wait_queue_head elastic_wq;
void *system_unbound_wq;
struct task_struct *at_work;

static unsigned long clock_ms;
static unsigned int slow_ms;		/* each look at the clock takes so long */
static bool busy;
static struct miscdevice *device;
static struct delayed_work *refresh_work;
static int (*cpu_callback)(unsigned int cpu);
static unsigned int uevents;
static char last_uevent[80];
static u64 reset_version;
static nodemask_t reset_usable;
static struct mutex *topo_mutex;

/* What happens while somebody waits, at this time of the clock; 0: nothing. */
static unsigned long then;
static void (*happens)(void);
static bool cancelled;

void say(const char *format, ...) { }
void fail(const char *format, ...) { exit(1); }
bool elastic_busy(void) { return busy; }
bool elastic_cancelled(void) { return cancelled; }
void elastic_draining_nodes(nodemask_t *nodes) { *nodes = draining_nodes; }
int cpu_to_node(unsigned int cpu) { return cpu / 2; }
unsigned long node_present_pages(int nid) { return nid ? 77 : 300 << 8; }
long numa_reset_ioctl(void *args) { return (long)args; }

unsigned long now(void)
{
	clock_ms += slow_ms;
	return clock_ms;
}

void wait_woken(int *wait, unsigned int state, long timeout)
{
	CHECK(timeout > 0, "a timeout of %ld", timeout);
	CHECK(!topo_mutex || !topo_mutex->held, "it sleeps with the mutex");
	clock_ms += timeout;
	if (then && clock_ms >= then) {
		then = 0;
		happens();
	}
}

void mutex_lock(struct mutex *mutex)
{
	topo_mutex = mutex;
	CHECK(!mutex->held++, "the mutex is taken twice");
}

void mutex_unlock(struct mutex *mutex)
{
	CHECK(mutex->held-- == 1, "the mutex is not held");
}

void queue_delayed_work(void *queue, struct delayed_work *work,
			unsigned long delay)
{
	refresh_work = work;
}

int misc_register(struct miscdevice *misc)
{
	static struct device sysfs;

	device = misc;
	device->this_device = &sysfs;
	return 0;
}

void kobject_uevent_env(struct kobject *kobj, int action, char **env)
{
	uevents++;
	snprintf(last_uevent, sizeof(last_uevent), "%s %s", env[0], env[1]);
	CHECK(!env[2], "the list has no end");
}

int cpuhp_setup_state_nocalls(int state, const char *name,
			      int (*up)(unsigned int cpu),
			      int (*down)(unsigned int cpu))
{
	cpu_callback = up;
	return 0;
}

void numa_reset_set_topology(u64 version, const nodemask_t *usable)
{
	reset_version = version;
	reset_usable = *usable;
}

static void *mapped;

int vm_insert_page(struct vm_area_struct *vma, unsigned long address, void *page)
{
	CHECK(address == vma->vm_start, "%#lx", address);
	mapped = page;
	return 0;
}

/* The page of the test is what topodev.c has written last. */
static struct xtopo_page seen;

void xtopo_page_init(struct xtopo_page *page)
{
	memset(page, 0, sizeof(*page));
}

void xtopo_page_publish(struct xtopo_page *page,
			const struct xtopo_page *image)
{
	CHECK(topo_mutex->held, "two may write the page");
	CHECK(reset_version == image->version,
	      "numa_reset(2) refuses who has read the page");
	*page = seen = *image;
}

/* ---- Programs ---- */

struct program {
	struct task_struct threads[2];
	struct pid pid;
	struct file file;
};

static void start(struct program *p)
{
	unsigned int i;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < 2; i++) {
		p->threads[i].tgid = &p->pid;
		p->pid.threads[i] = &p->threads[i];
	}
	at_work = &p->threads[1];
	CHECK(!device->fops->open(NULL, &p->file), "open");
}

static long call(struct program *p, unsigned int command, u64 argument)
{
	at_work = &p->threads[1];
	return device->fops->unlocked_ioctl(&p->file, command, argument);
}

static void end(struct program *p)
{
	device->fops->release(NULL, &p->file);
	CHECK(!p->pid.references, "%d references are left", p->pid.references);
}

static bool polled(struct program *p)
{
	return device->fops->poll(&p->file, NULL) == EPOLLPRI;
}

static void boot(void)
{
	CHECK(!elastic_topo_init(), "no device");
}

static u64 announce_drain(void)
{
	busy = true;
	node_set(1, draining_nodes);
	return elastic_topo_publish(XTOPO_DRAINING, true);
}

static unsigned long waited(u64 version, unsigned int grace_ms, int expected)
{
	unsigned long began = clock_ms;
	int rc = elastic_topo_wait_acks(version, grace_ms);

	CHECK(rc == expected, "%d after %lu ms", rc, clock_ms - began);
	return clock_ms - began;
}

/* ---- The page ---- */

static void what_it_says(const void *argument)
{
	boot();
	CHECK(seen.version == 1 && seen.phase == XTOPO_STABLE, "version %llu",
	      (unsigned long long)seen.version);
	CHECK(seen.nodes_online[0] == 3 && !seen.nodes_draining[0], "nodes");
	CHECK(seen.cpus_usable[0] == 0xf, "CPUs %#llx",
	      (unsigned long long)seen.cpus_usable[0]);
	CHECK(seen.cpu_node[1] == 0 && seen.cpu_node[2] == 1 &&
	      seen.cpu_node[4] == XTOPO_NO_NODE, "nodes of CPUs");
	CHECK(seen.reset_nr == NUMA_RESET_NR, "%d", seen.reset_nr);
	/* What Xen has given, not what Linux makes of it. */
	node.nr_populated.counter = 10;
	announce_drain();
	CHECK(seen.node_mem_mb[0] == 300 && seen.node_mem_mb[1] == 20,
	      "%u and %u MiB", seen.node_mem_mb[0], seen.node_mem_mb[1]);
	CHECK(seen.version == 2 && seen.phase == XTOPO_DRAINING, "phase %u",
	      seen.phase);
	CHECK(seen.nodes_online[0] == 3 && seen.nodes_draining[0] == 2, "nodes");
	CHECK(seen.cpus_usable[0] == 3, "CPUs of a node that leaves");
	CHECK(reset_usable.bits[0] == 1, "memory may move to it");
	CHECK(!strcmp(last_uevent, "VERSION=2 PHASE=draining"), "'%s'",
	      last_uevent);
	/* A node that leaves and has left is none that leaves. */
	node_states[0].bits[0] = node_states[1].bits[0] = 1;
	elastic_topo_publish(XTOPO_STABLE, false);
	CHECK(seen.version == 2 && !seen.nodes_draining[0] && uevents == 2,
	      "%u uevents", uevents);
}

static void mapping(const void *argument)
{
	struct vm_area_struct vma = { 0, VM_MAYWRITE, 0x10000, 0x11000 };
	struct program p;

	boot();
	start(&p);
	CHECK(!device->fops->mmap(&p.file, &vma) && mapped, "it cannot be read");
	CHECK(!(vma.vm_flags & VM_MAYWRITE), "mprotect() makes it writable");
	vma.vm_flags = VM_WRITE;
	CHECK(device->fops->mmap(&p.file, &vma) == -EPERM, "it can be written");
	vma.vm_flags = 0;
	vma.vm_pgoff = 1;
	CHECK(device->fops->mmap(&p.file, &vma) == -EINVAL, "another page");
	vma.vm_pgoff = 0;
	vma.vm_end += PAGE_SIZE;
	CHECK(device->fops->mmap(&p.file, &vma) == -EINVAL, "two pages");
	end(&p);
}

/* ---- The promise ---- */

static void acknowledgements(const void *argument)
{
	struct program p;

	boot();
	start(&p);
	CHECK(call(&p, XTOPO_ACK, 1) == -ENOTCONN, "who promised nothing");
	CHECK(!call(&p, XTOPO_REGISTER, 0), "no promise");
	CHECK(call(&p, XTOPO_REGISTER, 0) == -EBUSY, "twice");
	CHECK(call(&p, XTOPO_REGISTER_RUNNING, 0) == -EBUSY, "in both ways");
	CHECK(call(&p, XTOPO_ACK, 2) == -EINVAL, "a version of the future");
	CHECK(call(&p, 99, 0) == -ENOTTY, "any ioctl");
	CHECK(!waited(1, 1000, 0), "it knows the version at open()");
	announce_drain();
	CHECK(waited(2, 1000, 0) >= 1000, "nobody waits for it");
	CHECK(!call(&p, XTOPO_ACK, 2), "an acknowledgement");
	CHECK(!waited(2, 1000, 0), "it is waited for");
	CHECK(!call(&p, XTOPO_ACK, 1) && !waited(2, 1000, 0),
	      "an older one takes it back");
	end(&p);
}

static struct program one, two;
static void one_acknowledges(void) { call(&one, XTOPO_ACK, 2); }
static void one_ends(void) { end(&one); }
static void one_sleeps(void) { one.threads[1].runs = false; }
static void one_exits(void) { one.pid.gone = true; }
static void somebody_cancels(void) { cancelled = true; }

struct wait_case {
	const char *name;
	void (*happens)(void);
	unsigned int command;
	bool other;			/* a second program is waited for, too */
	int rc;
	unsigned int least, most;	/* ms, of 1000 */
};

static const struct wait_case waits[] = {
	{ "topo: nothing happens", NULL, XTOPO_REGISTER, false, 0, 1000, 1020 },
	{ "topo: it acknowledges", one_acknowledges, XTOPO_REGISTER, false, 0,
	  400, 420 },
	{ "topo: it closes the file", one_ends, XTOPO_REGISTER, false, 0, 400, 420 },
	{ "topo: one of two acknowledges", one_acknowledges, XTOPO_REGISTER,
	  true, 0, 1000, 1020 },
	{ "topo: called off", somebody_cancels, XTOPO_REGISTER, false,
	  -ECANCELED, 400, 420 },
	{ "topo: who promised sleeps", one_sleeps, XTOPO_REGISTER, false, 0,
	  1000, 1020 },
	{ "topo: who runs goes on", NULL, XTOPO_REGISTER_RUNNING, false, 0,
	  1000, 1020 },
	{ "topo: who runs sleeps", one_sleeps, XTOPO_REGISTER_RUNNING, false, 0,
	  400, 420 },
	{ "topo: who runs exits", one_exits, XTOPO_REGISTER_RUNNING, false, 0,
	  400, 420 },
};

static void one_wait(const void *argument)
{
	const struct wait_case *c = argument;
	unsigned long took;

	boot();
	start(&one);
	one.threads[1].runs = true;
	CHECK(!call(&one, c->command, 0), "no promise");
	start(&two);
	if (c->other)
		CHECK(!call(&two, XTOPO_REGISTER, 0), "no promise");
	announce_drain();
	happens = c->happens;
	then = happens ? clock_ms + 400 : 0;
	took = waited(2, 1000, c->rc);
	CHECK(took >= c->least && took <= c->most, "%lu ms", took);
}

/* Who followed in vain is not waited for again; a promise without "if" stays. */
static void silence(const void *argument)
{
	boot();
	start(&one);
	one.threads[0].runs = true;
	CHECK(!call(&one, XTOPO_REGISTER_RUNNING, 0), "no promise");
	announce_drain();
	CHECK(waited(2, 1000, 0) >= 1000, "nobody waits for it");
	CHECK(!waited(2, 1000, 0), "it is waited for again");
	CHECK(!one.pid.references, "%d references", one.pid.references);
	CHECK(call(&one, XTOPO_ACK, 2) == -ENOTCONN, "the promise holds");
	CHECK(!call(&one, XTOPO_REGISTER, 0), "it cannot promise again");
	CHECK(waited(2, 1000, 0) >= 1000 && waited(2, 1000, 0) >= 1000,
	      "a plain promise has ended");
	end(&one);
}

/* A look at all threads of a process is made once, however many its files. */
static void once_a_process(const void *argument)
{
	struct file other;

	boot();
	start(&one);
	CHECK(!call(&one, XTOPO_REGISTER_RUNNING, 0), "no promise");
	CHECK(one.pid.references == 1, "%d references", one.pid.references);
	CHECK(!device->fops->open(NULL, &other), "open");
	CHECK(device->fops->unlocked_ioctl(&other, XTOPO_REGISTER_RUNNING, 0) ==
	      -EBUSY, "a second file");
	CHECK(!device->fops->unlocked_ioctl(&other, XTOPO_REGISTER, 0),
	      "a plain promise");
	device->fops->release(NULL, &other);
	start(&two);
	CHECK(!call(&two, XTOPO_REGISTER_RUNNING, 0), "another process");
	end(&one);
	end(&two);
}

/* The clock jumps between any two looks, as when the vCPU was away. */
static void clock_jumps(const void *argument)
{
	boot();
	start(&one);
	CHECK(!call(&one, XTOPO_REGISTER, 0), "no promise");
	announce_drain();
	for (slow_ms = 1; slow_ms < 200; slow_ms++)
		elastic_topo_wait_acks(2, 100);
}

/* ---- poll() ---- */

static void polling(const void *argument)
{
	boot();
	start(&one);
	start(&two);
	CHECK(!call(&one, XTOPO_REGISTER, 0), "no promise");
	CHECK(!polled(&one) && !polled(&two), "there is no news");
	announce_drain();
	CHECK(polled(&one) && polled(&one), "told until it acknowledges");
	CHECK(polled(&two) && !polled(&two), "told once");
	call(&one, XTOPO_ACK, 2);
	CHECK(!polled(&one), "it has acknowledged");
	elastic_topo_publish(XTOPO_STABLE, true);
	CHECK(polled(&one) && polled(&two) && !polled(&two), "the next version");
}

/* ---- What others change ---- */

static void refreshed(void)
{
	CHECK(refresh_work, "nobody looks");
	refresh_work->work.function(&refresh_work->work);
}

static void refreshing(const void *argument)
{
	boot();
	cpu_callback(3);
	refreshed();
	CHECK(seen.version == 1 && uevents == 1, "a version without news");
	cpus_online.bits[0] = 7;
	refreshed();
	CHECK(seen.version == 2 && seen.cpus_usable[0] == 7 && uevents == 2,
	      "CPUs %#llx", (unsigned long long)seen.cpus_usable[0]);
	announce_drain();
	cpus_online.bits[0] = 0xf;
	refreshed();
	CHECK(seen.version == 3 && seen.phase == XTOPO_DRAINING,
	      "a drain is overwritten: version %llu, phase %u",
	      (unsigned long long)seen.version, seen.phase);
	/* It has ended, and its mask has no node of those that are there. */
	busy = false;
	node_clear(1, draining_nodes);
	elastic_topo_publish(XTOPO_STABLE, true);
	refreshed();
	CHECK(seen.version == 4 && seen.cpus_usable[0] == 0xf, "version %llu",
	      (unsigned long long)seen.version);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "topo: what the page says", what_it_says },
		{ "topo: how it is mapped", mapping },
		{ "topo: acknowledgements", acknowledgements },
		{ "topo: silence", silence },
		{ "topo: once a process", once_a_process },
		{ "topo: the clock jumps", clock_jumps },
		{ "topo: poll", polling },
		{ "topo: what others change", refreshing },
	};
	static struct test_case all[ARRAY_SIZE(cases) + ARRAY_SIZE(waits)];
	unsigned int i, n = ARRAY_SIZE(cases);

	memcpy(all, cases, sizeof(cases));
	for (i = 0; i < ARRAY_SIZE(waits); i++)
		all[n++] = (struct test_case){ waits[i].name, one_wait, &waits[i] };
	return run_cases(argc, argv, all, n);
}
