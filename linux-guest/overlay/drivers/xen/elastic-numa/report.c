// SPDX-License-Identifier: GPL-2.0
/*
 * What is said of a node: why its operation failed, and the names of the phases.
 *
 * Locking: the engine only.
 */
#define pr_fmt(fmt) "xen-elastic-numa: " fmt

#include <linux/kernel.h>

#include "elastic.h"

const char * const elastic_phase_names[ELASTIC_NR_PHASES] = {
	[ELASTIC_PH_POPULATE] = "populate",
	[ELASTIC_PH_ADD]      = "add",
	[ELASTIC_PH_ONLINE]   = "online",
	[ELASTIC_PH_NOTIFY]   = "notify",
	[ELASTIC_PH_ACKS]     = "acks",
	[ELASTIC_PH_CPUS]     = "cpus",
	[ELASTIC_PH_EVACUATE] = "evacuate",
	[ELASTIC_PH_OFFLINE]  = "offline",
	[ELASTIC_PH_RELEASE]  = "release",
	[ELASTIC_PH_NODE]     = "node",
};

/**
 * elastic_node_error() - remember and print why an operation failed
 * @node: the node
 * @err: a negative errno
 * @fmt: what failed, with which numbers
 *
 * The first error of an operation stays: what follows it is clean-up.
 *
 * Return: @err
 */
int elastic_node_error(struct elastic_node *node, int err, const char *fmt,
		       ...)
{
	char text[ELASTIC_TEXT_LEN];
	va_list args;

	va_start(args, fmt);
	vscnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* Some of it may have come out of xenstore or from a program. */
	elastic_text_clean(text);

	pr_err("vnode %u: %d %s\n", node->vnode, err, text);
	if (!node->error[0])
		snprintf(node->error, sizeof(node->error), "%d %.180s", err,
			 text);
	return err;
}
