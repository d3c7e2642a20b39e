// SPDX-License-Identifier: GPL-2.0
/*
 * The vCPUs of a node: registered and brought up after the first of its memory,
 * taken down before it, unregistered with the node.
 *
 * The toolstack writes cpu/N/availability only after an operation has ended,
 * so the watch of drivers/xen/cpu_hotplug.c finds everything done.
 *
 * Locking: device_hotplug_lock around every change of a CPU or node device.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/jiffies.h>
#include <linux/memory_hotplug.h>

#include <asm/xen/hypervisor.h>

#include "elastic.h"

/*
 * All vCPUs of a domain have one and the same clock.  Without this each one
 * that comes for the first time is measured, for a second or more.
 */
void elastic_cpu_init(void)
{
	if (!preset_lpj)
		preset_lpj = loops_per_jiffy;
}

static int cpu_up_one(struct elastic_node *node, unsigned int cpu)
{
	int rc;

	lock_device_hotplug();
	if (!cpu_present(cpu)) {
		xen_arch_register_cpu(cpu);
		set_cpu_present(cpu, true);
	}
	if (!get_cpu_device(cpu))
		rc = -ENODEV;
	else
		rc = device_online(get_cpu_device(cpu));
	unlock_device_hotplug();

	if (rc >= 0 && cpu_to_node(cpu) != node->nid)
		pr_warn("vnode %u: vCPU %u is on node %d, not %d\n",
			node->vnode, cpu, cpu_to_node(cpu), node->nid);
	return min(rc, 0);
}

/* Offline; the device stays, so that a new target can bring it back. */
static int cpu_down_one(unsigned int cpu)
{
	int rc = 0;

	lock_device_hotplug();
	if (cpu_online(cpu))
		rc = device_offline(get_cpu_device(cpu));
	unlock_device_hotplug();
	return min(rc, 0);
}

static void cpu_unplug_one(unsigned int cpu)
{
	lock_device_hotplug();
	if (!cpu_online(cpu) && cpu_present(cpu)) {
		if (get_cpu_device(cpu))
			xen_arch_unregister_cpu(cpu);
		set_cpu_present(cpu, false);
	}
	unlock_device_hotplug();
}

/**
 * elastic_cpus_up() - bring up the vCPUs of a node
 * @node: the node, with a block that is online
 *
 * Return: 0, or an error with those down again that this call brought up.
 */
int elastic_cpus_up(struct elastic_node *node)
{
	struct cpumask fresh = {};
	unsigned int cpu;
	int rc;

	for_each_cpu(cpu, &node->cpus) {
		if (cpu_online(cpu))
			continue;
		rc = cpu_up_one(node, cpu);
		if (rc) {
			elastic_node_error_too(node, rc,
					       "vCPU %u does not come up", cpu);
			goto undo;
		}
		cpumask_set_cpu(cpu, &fresh);
	}
	return 0;
undo:
	cpu_unplug_one(cpu);
	for_each_cpu(cpu, &fresh) {
		if (!cpu_down_one(cpu))
			cpu_unplug_one(cpu);
	}
	return rc;
}

/**
 * elastic_cpus_down() - take down the vCPUs of a node
 * @node: the node
 *
 * Return: 0; -ECANCELED: there is a new target; or why one of them stays.
 *	Those that went down first stay down: elastic_cpus_up() is the way
 *	back.
 */
int elastic_cpus_down(struct elastic_node *node)
{
	unsigned int cpu;
	int rc;

	for_each_cpu(cpu, &node->cpus) {
		if (elastic_cancelled())
			return -ECANCELED;
		rc = cpu_down_one(cpu);
		if (rc)
			return elastic_node_error(node, rc, "vCPU %u does not go down",
						  cpu);
	}
	return 0;
}

/**
 * elastic_node_unplug() - take vCPUs and the node itself out of the system
 * @node: a node without blocks
 *
 * Its vCPUs are down as a rule; one that somebody has brought back since is
 * taken down once more.
 *
 * Return: 0: the node is gone from sysfs; -EBUSY: something still holds it,
 *	which is in the node's reason.
 */
int elastic_node_unplug(struct elastic_node *node)
{
	unsigned int cpu;

	for_each_cpu(cpu, &node->cpus) {
		cpu_down_one(cpu);
		cpu_unplug_one(cpu);
	}

	lock_device_hotplug();
	if (node_online(node->nid))
		try_offline_node(node->nid);
	unlock_device_hotplug();

	if (!node_online(node->nid))
		return 0;
	cpu = cpumask_first_and(&node->cpus, cpu_online_mask);
	if (cpu < nr_cpu_ids)
		snprintf(node->reason, sizeof(node->reason),
			 "vCPU %u is online again", cpu);
	else
		snprintf(node->reason, sizeof(node->reason),
			 "another vCPU or memory block is on node %d",
			 node->nid);
	return -EBUSY;
}
