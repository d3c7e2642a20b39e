// SPDX-License-Identifier: GPL-2.0
/*
 * Process 1 of the machine that tests numa_reset(2): mounts what the tests
 * read, runs every program of /tests in order, says how each has ended, and
 * powers off.
 *
 * On the console:
 *	@begin NAME		... TAP ...		@end NAME STATUS
 *	@done			all programs have been run
 * STATUS is the exit code, or 128 + the signal.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void mount_all(void)
{
	static const struct {
		const char *type, *at;
	} mounts[] = {
		{ "devtmpfs", "/dev" },
		{ "proc", "/proc" },
		{ "sysfs", "/sys" },
		{ "debugfs", "/sys/kernel/debug" },
		{ "tmpfs", "/tmp" },
		{ "cgroup2", "/sys/fs/cgroup" },
	};
	size_t i;

	for (i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].at, 0755);
		if (mount(mounts[i].type, mounts[i].at, mounts[i].type, 0,
			  NULL) && errno != EBUSY)
			printf("# no %s: %s\n", mounts[i].type,
			       strerror(errno));
	}
}

static void run(const char *name)
{
	char path[300];
	int status = 0;
	pid_t pid;

	snprintf(path, sizeof(path), "/tests/%s", name);
	printf("@begin %s\n", name);
	fflush(stdout);

	pid = fork();
	if (!pid) {
		execl(path, name, NULL);
		printf("Bail out! exec: %s\n", strerror(errno));
		exit(127);
	}
	/* Orphans of a test come by as well. */
	while (waitpid(-1, &status, 0) != pid)
		;
	printf("@end %s %d\n", name, WIFEXITED(status) ? WEXITSTATUS(status) :
	       128 + WTERMSIG(status));
	fflush(stdout);
}

static int is_test(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(void)
{
	struct dirent **names;
	int n, i, fd;

	mount_all();
	fd = open("/dev/console", O_RDWR);
	if (fd >= 0) {
		dup2(fd, 0);
		dup2(fd, 1);
		dup2(fd, 2);
	}

	n = scandir("/tests", &names, is_test, alphasort);
	for (i = 0; i < n; i++)
		run(names[i]->d_name);

	printf("@done\n");
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);	/* QEMU runs with -no-reboot */
	return 1;
}
