# SPDX-License-Identifier: GPL-2.0
"""A library that plays /dev/xen/privcmd for a program of the guest, by LD_PRELOAD: the numbers and structures are Xen's."""

from __future__ import annotations

import subprocess
from pathlib import Path

# Without flags: what Xen answers. STATUS: of port 1. STATUS_NS: what that takes. FAULTS: each third call finds a part of its
# argument's pages only, after the first three. WRONG: one of thirty answers is wrong, and how; 7: all are; 8: it is not there;
# 9: all of a port are, after the first.
SOURCE = r"""
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
struct call { uint64_t op, arg[5]; };
struct status { uint16_t dom; uint32_t port, status, vcpu, more[2]; };
static atomic_uint calls;
static int refuse(int error)
{
	errno = error;
	return -1;
}
int open(const char *path, int flags, ...)
{
	return WRONG == 8 || strcmp(path, "/dev/xen/privcmd") ? refuse(ENOENT) : 77;
}
int close(int fd)
{
	return fd == 77 ? 0 : (int)syscall(SYS_close, fd);
}
int ioctl(int fd, unsigned long request, ...)
{
	struct timespec takes = { .tv_nsec = STATUS_NS };
	unsigned int number = atomic_fetch_add(&calls, 1) + 1, answer[6], size;
	struct status status;
	struct call *call;
	uint8_t *to;
	va_list list;

	va_start(list, request);
	call = va_arg(list, struct call *);
	va_end(list);
	if (fd != 77 || request != 0x305000) {
		fprintf(stderr, "fd %d request %lx\n", fd, request);
		return refuse(ENOTTY);
	}
	if (WRONG == 7)			/* of a guest that may not */
		return refuse(EPERM);
	to = (uint8_t *)(uintptr_t)call->arg[1];
	if (call->op == 17 && call->arg[0] == 0)
		return 0x40014;
	if (call->op == 17 && call->arg[0] == 6) {
		memcpy(answer, to, size = 8);
		if (answer[0])
			return refuse(EINVAL);
		answer[1] = 0x2705;
	} else if (call->op == 17 && call->arg[0] == 8) {
		memcpy(answer, "sixteen bytes, 1", size = 16);
	} else if (call->op == 32 && call->arg[0] == 5) {
		memcpy(&status, to, size = sizeof(status));
		if (status.dom != 0x7ff0 || status.port != 1)
			return refuse(EINVAL);
		nanosleep(&takes, NULL);
		status.status = STATUS + (WRONG == 9 && number > 3);
		memcpy(answer, &status, size);
	} else {
		return refuse(EINVAL);
	}
	if (FAULTS && number > 3 && number % 3 == 0) {
		memcpy(to, answer, size / 2);
		return refuse(EFAULT);
	}
	if (number % 30 == 0) {
		if (WRONG == 1)		/* is lost */
			return 0;
		if (WRONG == 2)		/* is another's */
			answer[size / 4 - 1] ^= 1;
		if (WRONG == 3)		/* is torn */
			size -= 3;
		if (WRONG == 4)		/* goes too far */
			to[size] ^= 1;
		if (WRONG == 5)		/* "cannot" */
			return refuse(EPERM);
		if (WRONG == 6)		/* comes twice, the second one elsewhere */
			memcpy(to - 8, answer, 8);
	}
	memcpy(to, answer, size);
	return 0;
}
"""


def privcmd(folder: Path, status: int = 2, status_ns: int = 0, faults: bool = False, wrong: int = 0) -> str:
    """The library's path."""
    (folder / "privcmd.c").write_text(SOURCE, encoding="utf-8")
    library = folder / "privcmd.so"
    played = {"STATUS": status, "STATUS_NS": status_ns, "FAULTS": int(faults), "WRONG": wrong}
    flags = ["-D_GNU_SOURCE", *(f"-D{name}={value}" for name, value in played.items()), "-w", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, folder / "privcmd.c"], check=True)
    return str(library)
