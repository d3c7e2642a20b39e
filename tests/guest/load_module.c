/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loads a module of the kernel, or takes it away:
 *
 *	load_module FILE.ko [PARAMETER=VALUE...]
 *	load_module -r NAME
 *
 * Returns when it is loaded, or gone.  Exit status: 0; 1 the kernel refuses; 2 usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char parameters[1024] = "", *name = argc > 1 ? argv[1] : NULL;
	long rc;

	if (!name) {
		fputs("Usage: load_module FILE.ko [PARAMETER=VALUE...], or -r NAME\n", stderr);
		return 2;
	}
	if (!strcmp(name, "-r") && argc == 3) {
		name = argv[2];
		rc = syscall(SYS_delete_module, name, O_NONBLOCK);
	} else {
		size_t used = 0;
		int file = open(name, O_RDONLY | O_CLOEXEC);

		for (int i = 2; i < argc; i++) {
			used += (size_t)snprintf(parameters + used, sizeof(parameters) - used, "%s ", argv[i]);
			if (used >= sizeof(parameters)) {
				fputs("load_module: too many parameters\n", stderr);
				return 2;
			}
		}
		rc = file < 0 ? -1 : syscall(SYS_finit_module, file, parameters, 0);
	}
	if (rc) {
		fprintf(stderr, "load_module: %s: %s\n", name, strerror(errno));
		return 1;
	}
	return 0;
}
