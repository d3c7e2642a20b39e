// SPDX-License-Identifier: GPL-2.0
/*
 * Suspend: refused while an elastic node has memory.
 *
 * What resumes, from a hibernation image or in another domain, finds the nodes
 * absent, as at boot: their memory would be gone.  The toolstack refuses to
 * save such a guest, but anybody in dom0 can write control/shutdown, and the
 * guest can hibernate itself.  Suspend to idle keeps all memory, and is fine.
 *
 * Locking: none; tasks and kernel threads are frozen when the question is put.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/err.h>
#include <linux/platform_device.h>
#include <linux/pm.h>

#include "elastic.h"

static int elastic_freeze(struct device *dev)
{
	struct elastic_node *node;

	for_each_elastic_node(node) {
		if (!node->usable || !elastic_populated(node))
			continue;
		pr_err("no suspend: vnode %u has %llu KiB, detach it first\n",
		       node->vnode, elastic_kib(elastic_populated(node)));
		return -EBUSY;
	}
	return 0;
}

/* Xen's suspend and hibernation begin with a freeze; suspend to idle does not. */
static const struct dev_pm_ops elastic_pm_ops = {
	.freeze = elastic_freeze,
};

static struct platform_driver elastic_driver = {
	.driver = {
		.name = "xen-elastic-numa",
		.pm = &elastic_pm_ops,
		.suppress_bind_attrs = true,
	},
};

/**
 * elastic_pm_init() - be asked before a suspend
 *
 * Return: 0, or why not.
 */
int elastic_pm_init(void)
{
	struct platform_device *device;
	int rc = platform_driver_register(&elastic_driver);

	if (rc)
		return rc;
	device = platform_device_register_simple("xen-elastic-numa",
						 PLATFORM_DEVID_NONE, NULL, 0);
	if (!IS_ERR(device))
		return 0;
	platform_driver_unregister(&elastic_driver);
	return PTR_ERR(device);
}
