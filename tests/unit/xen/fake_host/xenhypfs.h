/* SPDX-License-Identifier: GPL-2.0-only */
typedef struct fake_handle xenhypfs_handle;

xenhypfs_handle *xenhypfs_open(void *logger, unsigned int flags);
int xenhypfs_write(xenhypfs_handle *hypfs, const char *path, const char *value);
