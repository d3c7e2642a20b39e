// SPDX-License-Identifier: GPL-2.0
/*
 * Plays the topology driver for the self tests of numa_reset(2), on machines
 * where nothing else calls numa_reset_set_topology():
 *
 *	echo "VERSION NODELIST" > /sys/kernel/debug/numa_reset/topology
 *
 * announces that version, with those nodes usable, as "3 0-1,4".
 *
 * No state and no lock of its own.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/nodemask.h>
#include <linux/numa_reset.h>
#include <linux/string.h>
#include <linux/uaccess.h>

/* A version of 20 digits, a list of all nodes with commas. */
#define NRST_MAX_LINE	(24 + 4 * MAX_NUMNODES)

static ssize_t nrst_topology_write(struct file *file, const char __user *from,
				   size_t len, loff_t *pos)
{
	char line[NRST_MAX_LINE];
	nodemask_t usable;
	char *list = line;
	u64 version;
	int err;

	if (len >= sizeof(line))
		return -E2BIG;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = '\0';

	strsep(&list, " ");
	if (!list)
		return -EINVAL;
	err = kstrtou64(line, 10, &version);
	if (!err)
		err = nodelist_parse(strim(list), usable);
	if (err)
		return err;

	numa_reset_set_topology(version, &usable);
	return len;
}

static const struct file_operations nrst_topology_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= nrst_topology_write,
	.llseek	= noop_llseek,
};

static int __init nrst_selftest_init(void)
{
	struct dentry *dir = debugfs_create_dir("numa_reset", NULL);

	debugfs_create_file("topology", 0200, dir, NULL, &nrst_topology_fops);
	return 0;
}
late_initcall(nrst_selftest_init);
