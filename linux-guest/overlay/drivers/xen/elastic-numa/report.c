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

static void tell_error(struct elastic_node *node, int err, bool too,
		       const char *fmt, va_list args)
{
	char text[ELASTIC_TEXT_LEN], line[ELASTIC_TEXT_LEN];
	size_t first = strlen(node->error);
	int most = 180;

	vscnprintf(text, sizeof(text), fmt, args);
	/* Some of it may have come out of xenstore or from a program. */
	elastic_text_clean(text);

	pr_err("vnode %u: %d %s\n", node->vnode, err, text);
	if (first && (!too || strstr(node->error, text)))
		return;
	if (first)
		most = max(80, (int)(sizeof(node->error) - first) - 8);
	snprintf(line, sizeof(line), "%s%d %.*s", first ? "; " : "", err,
		 min(most, 180), text);
	/* For what follows the end of the first one makes room. */
	first = min(first, sizeof(node->error) - 1 - strlen(line));
	snprintf(node->error + first, sizeof(node->error) - first, "%s", line);
}

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
	va_list args;

	va_start(args, fmt);
	tell_error(node, err, false, fmt, args);
	va_end(args);
	return err;
}

/**
 * elastic_node_error_too() - the same of what makes the node another than it was
 * @node: the node
 * @err: a negative errno
 * @fmt: what failed, with which numbers
 *
 * Behind the first error, if there is one: that alone does not say it.
 *
 * Return: @err
 */
int elastic_node_error_too(struct elastic_node *node, int err, const char *fmt,
			   ...)
{
	va_list args;

	va_start(args, fmt);
	tell_error(node, err, true, fmt, args);
	va_end(args);
	return err;
}
