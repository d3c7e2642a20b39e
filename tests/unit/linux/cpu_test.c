// SPDX-License-Identifier: GPL-2.0
/*
 * The vCPUs of a node, and who asks before a suspend: cpu.c and pm.c as they
 * are, on a kernel that refuses what a case says.
 */
#include "case.h"
#include "elastic.h"

static struct elastic_node node = { .vnode = 1, .nid = 1, .cpus = { { 0x1c } } };
struct elastic_node *elastic_nodes = &node;
unsigned int elastic_nr_nodes = 1;
struct cpumask cpus_present = { { 3 } }, cpus_online = { { 3 } };
unsigned long preset_lpj, loops_per_jiffy = 99;

static struct device devices[8];
static unsigned long registered = 3;	/* CPUs that have a device */
static unsigned long stays;		/* CPUs that neither come nor go */
static unsigned long comes_back;	/* ... somebody brings back */
static int locked, cancel_after = -1;
static bool block_stays, node_there = true;
static char error[200];

void say(const char *format, ...) { }
void fail(const char *format, ...) { exit(1); }
int cpu_to_node(unsigned int cpu) { return 1; }

int elastic_node_error_too(struct elastic_node *unused, int err, const char *format,
			   ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, sizeof(error), format, args);
	va_end(args);
	return err;
}

int elastic_node_error(struct elastic_node *unused, int err, const char *format,
		       ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, sizeof(error), format, args);
	va_end(args);
	return err;
}

bool elastic_cancelled(void)
{
	CHECK(!locked, "somebody is asked under the lock");
	return !cancel_after--;
}

void lock_device_hotplug(void)
{
	CHECK(!locked++, "the lock is taken twice");
}

void unlock_device_hotplug(void)
{
	CHECK(locked-- == 1, "the lock is not held");
}

void set_cpu_present(unsigned int cpu, bool present)
{
	CHECK(locked, "without the lock");
	if (present)
		set_bit(cpu, cpus_present.bits);
	else
		clear_bit(cpu, cpus_present.bits);
}

struct device *get_cpu_device(unsigned int cpu)
{
	return test_bit(cpu, &registered) ? &devices[cpu] : NULL;
}

void xen_arch_register_cpu(unsigned int cpu)
{
	CHECK(!test_bit(cpu, &registered), "CPU %u is registered twice", cpu);
	set_bit(cpu, &registered);
}

void xen_arch_unregister_cpu(unsigned int cpu)
{
	CHECK(test_bit(cpu, &registered), "CPU %u has no device", cpu);
	CHECK(!cpu_online(cpu), "CPU %u is online", cpu);
	clear_bit(cpu, &registered);
}

int device_online(struct device *device)
{
	unsigned int cpu = device - devices;

	CHECK(locked, "without the lock");
	if (test_bit(cpu, &stays))
		return -EIO;
	if (cpu_online(cpu))
		return 1;
	set_bit(cpu, cpus_online.bits);
	return 0;
}

int device_offline(struct device *device)
{
	unsigned int cpu = device - devices;

	CHECK(locked, "without the lock");
	if (test_bit(cpu, &stays))
		return -EBUSY;
	if (!test_bit(cpu, &comes_back))
		clear_bit(cpu, cpus_online.bits);
	return 0;
}

bool node_online(int nid)
{
	return node_there;
}

void try_offline_node(int nid)
{
	CHECK(locked, "without the lock");
	node_there = block_stays || (cpus_present.bits[0] & node.cpus.bits[0]);
}

static void are(unsigned long online, unsigned long present)
{
	CHECK(cpus_online.bits[0] == online && cpus_present.bits[0] == present &&
	      registered == present && !locked,
	      "online %#lx, present %#lx, registered %#lx",
	      cpus_online.bits[0], cpus_present.bits[0], registered);
}

static void up_and_down(const void *argument)
{
	int round;

	elastic_cpu_init();
	CHECK(preset_lpj == 99, "each is measured");
	for (round = 0; round < 3; round++) {
		CHECK(!elastic_cpus_up(&node), "%s", error);
		are(0x1f, 0x1f);
		CHECK(!elastic_cpus_up(&node), "what is up is no error");
		CHECK(!elastic_cpus_down(&node), "%s", error);
		are(3, 0x1f);	/* a new target can bring them back */
		CHECK(!elastic_node_unplug(&node), "%s", node.reason);
		are(3, 3);
		CHECK(!node_there, "the node stays");
		node_there = true;
	}
}

/* The second of three does not come: the first goes, what was there stays. */
static void one_stays_down(const void *argument)
{
	stays = 8;
	CHECK(elastic_cpus_up(&node) == -EIO, "no error");
	CHECK(!strcmp(error, "vCPU 3 does not come up"), "'%s'", error);
	are(3, 3);
	stays = 0;
	node.cpus.bits[0] = 4;
	CHECK(!elastic_cpus_up(&node), "%s", error);
	node.cpus.bits[0] = 0x1c;
	stays = 0x10;
	CHECK(elastic_cpus_up(&node) == -EIO, "no error");
	are(7, 7);
}

static void one_stays_up(const void *argument)
{
	CHECK(!elastic_cpus_up(&node), "%s", error);
	stays = 8;
	CHECK(elastic_cpus_down(&node) == -EBUSY, "no error");
	CHECK(!strcmp(error, "vCPU 3 does not go down"), "'%s'", error);
	are(0x1b, 0x1f);
	stays = 0;
	CHECK(!elastic_cpus_up(&node), "the way back");
	are(0x1f, 0x1f);
}

static void called_off(const void *argument)
{
	CHECK(!elastic_cpus_up(&node), "%s", error);
	cancel_after = 2;
	CHECK(elastic_cpus_down(&node) == -ECANCELED, "it goes on");
	are(0x13, 0x1f);
}

static void node_is_held(const void *argument)
{
	CHECK(!elastic_cpus_up(&node), "%s", error);
	comes_back = 0x10;
	CHECK(elastic_node_unplug(&node) == -EBUSY, "no error");
	CHECK(!strcmp(node.reason, "vCPU 4 is online again"), "'%s'", node.reason);
	are(0x13, 0x13);
	comes_back = 0;
	block_stays = true;
	CHECK(elastic_node_unplug(&node) == -EBUSY, "no error");
	CHECK(strstr(node.reason, "memory block is on node 1"), "'%s'", node.reason);
	block_stays = false;
	CHECK(!elastic_node_unplug(&node), "'%s'", node.reason);
}

/* ---- Suspend ---- */

static struct platform_driver *the_driver;
static bool no_driver, no_device;

int platform_driver_register(struct platform_driver *driver)
{
	the_driver = no_driver ? NULL : driver;
	return no_driver ? -ENOMEM : 0;
}

void platform_driver_unregister(struct platform_driver *driver)
{
	the_driver = NULL;
}

struct platform_device *
platform_device_register_simple(const char *name, int id, void *resources,
				unsigned int count)
{
	CHECK(!strcmp(name, the_driver->driver.name), "no driver is for %s", name);
	return no_device ? ERR_PTR(-ENODEV) : (void *)&the_driver;
}

static void suspend(const void *argument)
{
	no_driver = true;
	CHECK(elastic_pm_init() == -ENOMEM, "no error");
	no_driver = false;
	no_device = true;
	CHECK(elastic_pm_init() == -ENODEV && !the_driver, "a driver is left");
	no_device = false;
	CHECK(!elastic_pm_init(), "an error");
	CHECK(the_driver->driver.suppress_bind_attrs, "anybody can unbind it");
	node.usable = true;
	CHECK(!the_driver->driver.pm->freeze(NULL), "nothing would be lost");
	node.nr_populated.counter = 1;
	CHECK(the_driver->driver.pm->freeze(NULL) == -EBUSY, "2 MiB are lost");
	node.usable = false;
	CHECK(!the_driver->driver.pm->freeze(NULL), "a node that is not ours");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "cpu: up and down", up_and_down },
		{ "cpu: one stays down", one_stays_down },
		{ "cpu: one stays up", one_stays_up },
		{ "cpu: called off", called_off },
		{ "cpu: the node is held", node_is_held },
		{ "pm: who asks before a suspend", suspend },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
