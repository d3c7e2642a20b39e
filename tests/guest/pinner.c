/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pinner: holds pages of one NUMA node so that they cannot be migrated.
 *
 * Long-term pins (io_uring, RDMA) move a page out of ZONE_MOVABLE before they
 * take it.  vmsplice(2) does not: the pages of the program's buffer sit in a
 * pipe, each with an extra reference for as long as nobody reads the pipe, and
 * migration of such a page fails each time.  That is what a short-lived pin
 * that never ends looks like to the kernel, and what a test of "residual"
 * needs.
 *
 * Usage: pinner NODE PAGES          1 to 4096 pages of 4 KiB
 * Prints "pinned PAGES pages on node NODE, pid PID" and waits for SIGTERM; then
 * it reads its pages back, and says "released, WRONG wrong".
 * Exit status: 0; 1 a page changed; 2 usage, or the pages could not be had.
 *
 * Locking: none, one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE		4096UL
#define MAX_PAGES	4096UL
#define MAX_NODE	63UL
#define PIPE_PAGES	16UL	/* a pipe's default capacity, in buffers */
#define MAX_PIPES	(MAX_PAGES / PIPE_PAGES)
#define MPOL_BIND	2	/* <linux/mempolicy.h> */
#define MPOL_F_NODE	(1 << 0)
#define MPOL_F_ADDR	(1 << 1)

static void die(const char *what)
{
	fprintf(stderr, "pinner: %s: %s\n", what, strerror(errno));
	exit(2);
}

static unsigned long number(const char *text, unsigned long low,
			    unsigned long high)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || n < low || n > high) {
		fprintf(stderr, "pinner: \"%s\" is not from %lu to %lu\n",
			text, low, high);
		exit(2);
	}
	return n;
}

static uint64_t pattern(unsigned long page)
{
	return 0x70696e6e65720000ULL + page;	/* "pinner" */
}

/* Maps pages on the node, writes each, and checks where each one landed. */
static char *pages_on(unsigned long node, unsigned long pages)
{
	unsigned long mask = 1UL << node;
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	madvise(p, pages * PAGE, MADV_NOHUGEPAGE);
	if (syscall(SYS_mbind, p, pages * PAGE, MPOL_BIND, &mask,
		    MAX_NODE + 2, 0))
		die("mbind");
	for (unsigned long i = 0; i < pages; i++) {
		int at = -1;

		*(volatile uint64_t *)(p + i * PAGE) = pattern(i);
		if (syscall(SYS_get_mempolicy, &at, NULL, 0, p + i * PAGE,
			    MPOL_F_NODE | MPOL_F_ADDR))
			die("get_mempolicy");
		if ((unsigned long)at != node) {
			fprintf(stderr, "pinner: page %lu is on node %d\n", i,
				at);
			exit(2);
		}
	}
	return p;
}

/* Puts the pages into pipes; the ends stay open until the process ends. */
static void hold(char *p, unsigned long pages)
{
	for (unsigned long i = 0; i < pages; i += PIPE_PAGES) {
		unsigned long n = pages - i < PIPE_PAGES ? pages - i : PIPE_PAGES;
		struct iovec part = { p + i * PAGE, n * PAGE };
		int end[2];

		if (pipe2(end, O_CLOEXEC | O_NONBLOCK))
			die("pipe");
		while (part.iov_len) {
			ssize_t got = vmsplice(end[1], &part, 1, 0);

			if (got <= 0)
				die("vmsplice");
			part.iov_base = (char *)part.iov_base + got;
			part.iov_len -= got;
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long node, pages, wrong = 0;
	sigset_t wanted;
	char *p;
	int sig;

	if (argc != 3) {
		fprintf(stderr, "Usage: pinner NODE PAGES\n");
		return 2;
	}
	node = number(argv[1], 0, MAX_NODE);
	pages = number(argv[2], 1, MAX_PAGES);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGINT);
	sigprocmask(SIG_BLOCK, &wanted, NULL);

	p = pages_on(node, pages);
	hold(p, pages);
	printf("pinned %lu pages on node %lu, pid %d\n", pages, node,
	       (int)getpid());
	fflush(stdout);

	sigwait(&wanted, &sig);
	for (unsigned long i = 0; i < pages; i++)
		wrong += *(volatile uint64_t *)(p + i * PAGE) != pattern(i);
	printf("released, %lu wrong\n", wrong);
	return wrong ? 1 : 0;
}
