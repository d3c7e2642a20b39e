/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hypercalls about the guest's memory, from a CPU that may be on another host.
 *
 * A guest's CPUs can run on several hosts.  Its memory map is the business of one
 * of them, that of CPU 0, and Xen on another one says that there is no such call.
 */
#ifndef _XEN_HOME_OP_H
#define _XEN_HOME_OP_H

#include <linux/workqueue.h>

#include <asm/xen/hypercall.h>

struct xen_home_op {
	unsigned int cmd;
	void *argument;
};

static inline long xen_home_op_call(void *data)
{
	const struct xen_home_op *op = data;

	return HYPERVISOR_memory_op(op->cmd, op->argument);
}

/**
 * xen_home_memory_op() - HYPERVISOR_memory_op(), on CPU 0 if this one fails
 * @cmd: XENMEM_*
 * @argument: its structure
 *
 * Context: process context.  Sleeps if the first try fails.
 * Return: what Xen says.
 */
static inline long xen_home_memory_op(unsigned int cmd, void *argument)
{
	struct xen_home_op op = { cmd, argument };
	long rc = xen_home_op_call(&op);

	return rc < 0 ? work_on_cpu(0, xen_home_op_call, &op) : rc;
}

#endif /* _XEN_HOME_OP_H */
