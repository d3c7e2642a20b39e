/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fuse_stall: a file system that does not answer a read until it is told to,
 * and a reader that waits for it with page cache of one NUMA node.
 *
 * The kernel allocates the page, locks it and asks the server.  Until the
 * answer comes the page stays locked: who waits for its lock waits as long as
 * the server likes.
 *
 * Usage: fuse_stall NODE DIRECTORY
 * Mounts itself there, needs root.  Prints "stalled" when the read has come;
 * answers it on SIGUSR1 and prints "read N bytes, WRONG wrong".  SIGTERM ends
 * it, and with it the mount and the read.
 * Exit status: 0; 1 a wrong byte was read; 2 usage, or FUSE is not there.
 *
 * Locking: none; the server and the reader are two processes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/fuse.h>

#define PAGE		4096U
#define FILE_INODE	2
#define CONTENT		0x5a
#define MAX_READS	16
#define MAX_NODE	63UL
#define MPOL_BIND	2	/* <linux/mempolicy.h> */

static int fuse;

static struct pending {
	uint64_t unique;
	uint32_t size;
} reads[MAX_READS];
static unsigned int nr_reads;

static void die(const char *what)
{
	fprintf(stderr, "fuse_stall: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void reply(uint64_t unique, int error, const void *data, size_t size)
{
	struct fuse_out_header head = {
		.len = sizeof(head) + size, .error = error, .unique = unique,
	};
	struct iovec parts[] = {
		{ &head, sizeof(head) }, { (void *)data, size },
	};

	if (writev(fuse, parts, size ? 2 : 1) < 0 && errno != ENOENT)
		die("reply");
}

static struct fuse_attr attributes(uint64_t inode)
{
	struct fuse_attr attr = { .ino = inode, .nlink = 1, .blksize = PAGE };

	attr.mode = inode == FILE_INODE ? S_IFREG | 0444 : S_IFDIR | 0555;
	attr.size = inode == FILE_INODE ? PAGE : 0;
	return attr;
}

static void serve(const struct fuse_in_header *in, const void *body)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = PAGE, .max_write = PAGE,
	};
	struct fuse_entry_out entry = {
		.nodeid = FILE_INODE, .entry_valid = 3600, .attr_valid = 3600,
		.attr = attributes(FILE_INODE),
	};
	struct fuse_attr_out attr = {
		.attr_valid = 3600, .attr = attributes(in->nodeid),
	};
	struct fuse_open_out opened = { .fh = 1 };
	const struct fuse_read_in *wanted = body;

	switch (in->opcode) {
	case FUSE_INIT:
		reply(in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		reply(in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		reply(in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		reply(in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		if (nr_reads == MAX_READS)
			die("more reads than pages");
		reads[nr_reads++] = (struct pending){ in->unique, wanted->size };
		puts("stalled");
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		reply(in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;	/* no answer is wanted */
	default:
		reply(in->unique, -ENOSYS, NULL, 0);
	}
}

static void answer_reads(void)
{
	static char content[128 * 1024];

	memset(content, CONTENT, sizeof(content));
	while (nr_reads) {
		nr_reads--;
		reply(reads[nr_reads].unique, 0, content,
		      reads[nr_reads].size < PAGE ? reads[nr_reads].size : PAGE);
	}
}

/* Page cache comes from the nodes of the task's policy. */
static int reader(unsigned long node, const char *path)
{
	unsigned long mask = 1UL << node;
	unsigned char buffer[PAGE];
	ssize_t got, i;
	int wrong = 0, fd;

	if (syscall(SYS_set_mempolicy, MPOL_BIND, &mask, MAX_NODE + 2))
		die("set_mempolicy");
	fd = open(path, O_RDONLY);
	if (fd < 0)
		die(path);
	got = read(fd, buffer, sizeof(buffer));
	for (i = 0; i < got; i++)
		wrong += buffer[i] != CONTENT;
	printf("read %zd bytes, %d wrong\n", got, wrong);
	return wrong || got != PAGE;
}

int main(int argc, char **argv)
{
	static union {
		struct fuse_in_header head;
		char bytes[FUSE_MIN_READ_BUFFER + PAGE];
	} request;
	struct signalfd_siginfo info;
	struct pollfd pfd[2];
	char text[4200];
	int status = 0;
	sigset_t set;
	ssize_t got;
	pid_t child;

	if (argc != 3 || strtoul(argv[1], NULL, 10) > MAX_NODE) {
		fputs("usage: fuse_stall NODE DIRECTORY\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0)
		die("/dev/fuse");
	snprintf(text, sizeof(text),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (mount("fuse_stall", argv[2], "fuse", 0, text))
		die("mount");

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	snprintf(text, sizeof(text), "%s/file", argv[2]);
	child = fork();
	if (!child) {
		close(fuse);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		_exit(reader(strtoul(argv[1], NULL, 10), text));
	}

	pfd[0] = (struct pollfd){ .fd = signalfd(-1, &set, 0), .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = fuse, .events = POLLIN };
	for (;;) {
		if (poll(pfd, 2, -1) < 0)
			die("poll");
		if (pfd[0].revents) {
			if (read(pfd[0].fd, &info, sizeof(info)) != sizeof(info))
				die("signalfd");
			if (info.ssi_signo != SIGUSR1)
				break;
			answer_reads();
		} else if (pfd[1].revents) {
			got = read(fuse, &request, sizeof(request));
			if (got < (ssize_t)sizeof(request.head))
				die("/dev/fuse");
			serve(&request.head, &request.head + 1);
		}
	}
	umount2(argv[2], MNT_DETACH);
	close(fuse);	/* ends a read that still waits */
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
