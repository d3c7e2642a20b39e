/* SPDX-License-Identifier: GPL-2.0 */
/*
 * call: one system call, for a script where util-linux's mount and swapon are not.
 *
 *	call swapon DEVICE | swapoff DEVICE | cgroup2 FOLDER
 *
 * Exit status: 0; 1 the call failed; 2 usage.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/swap.h>

int main(int argc, char **argv)
{
	int rc;

	if (argc == 3 && !strcmp(argv[1], "swapon")) {
		rc = swapon(argv[2], 0);
	} else if (argc == 3 && !strcmp(argv[1], "swapoff")) {
		rc = swapoff(argv[2]);
	} else if (argc == 3 && !strcmp(argv[1], "cgroup2")) {
		rc = mount("none", argv[2], "cgroup2", 0, NULL);
	} else {
		fputs("usage: call swapon|swapoff DEVICE | cgroup2 FOLDER\n", stderr);
		return 2;
	}
	if (rc)
		perror(argv[1]);
	return rc ? 1 : 0;
}
