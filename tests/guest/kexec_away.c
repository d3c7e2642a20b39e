/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kexec_away: leaves this kernel by kexec, for code that halts.
 *
 * As far as Xen and the toolstack see it, a kexec is what the old kernel does:
 * it asks for a soft reset.  Which kernel would come next, they do not know.
 *
 * Usage: kexec_away
 * Exit status: 1 it could not leave; 2 usage.  After a success nobody is there
 * to be told.
 *
 * Locking: none, one thread.
 */
#define _GNU_SOURCE
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	4096UL
#define PLACE	(64UL << 20)	/* in the home node's memory */

static unsigned char code[PAGE] = {
	0xfa,			/* cli */
	0xf4,			/* hlt */
	0xeb, 0xfd,		/* jmp to the hlt */
};

int main(int argc, char **argv)
{
	struct kexec_segment segment = {
		.buf = code,
		.bufsz = sizeof(code),
		.mem = (void *)PLACE,
		.memsz = sizeof(code),
	};

	(void)argv;
	if (argc != 1) {
		fprintf(stderr, "usage: kexec_away\n");
		return 2;
	}
	if (syscall(SYS_kexec_load, PLACE, 1UL, &segment,
		    (unsigned long)KEXEC_ARCH_X86_64)) {
		perror("kexec_load");
		return 1;
	}
	sync();
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
		LINUX_REBOOT_CMD_KEXEC, NULL);
	perror("kexec");
	return 1;
}
