// SPDX-License-Identifier: GPL-2.0
/*
 * The target has no memory left, and there is no swap: pages stay where they
 * are, keep their content, and nobody is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nrtest.h"

#define LEN	(16UL << 20)
#define STEP	(1UL << 20)

static unsigned long free_kb(int nid)
{
	char path[64], text[512], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo",
		 nid);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		die("%s: %s", path, strerror(errno));
	close(fd);
	text[n] = '\0';
	at = strstr(text, "MemFree:");
	return at ? strtoul(at + strlen("MemFree:"), NULL, 10) : 0;
}

/* Take memory of @nid until new pages fall beside it; returns the bytes. */
static size_t fill_node(int nid, char *mem, size_t len)
{
	size_t at;

	bind_range(mem, len, MPOL_PREFERRED, 1UL << nid);
	for (at = 0; at < len; at += STEP) {
		fill_pattern(mem + at, STEP);
		if (pages_on(mem + at, STEP, nid) < STEP / PAGE)
			return at + STEP;
	}
	die("node %d cannot be filled, %lu KiB free", nid, free_kb(nid));
}

int main(void)
{
	unsigned long kills, oom, nodes;
	struct numa_reset_args res;
	size_t filled, moved, len = 1UL << 30;
	char *ballast, *mem;
	int err;

	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");
	mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	ballast = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		       MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ballast == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	madvise(ballast, len, MADV_NOHUGEPAGE);
	filled = fill_node(mem_node[1], ballast, len);
	kills = vmstat("oom_kill");
	printf("# %zu MiB of ballast, %lu KiB free on node %d\n", filled >> 20,
	       free_kb(mem_node[1]), mem_node[1]);

	err = reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	run_on_node(mem_node[1]);
	touch(mem, LEN);
	moved = pages_on(mem, LEN, mem_node[1]);
	ok(!err && moved < LEN / PAGE / 2,
	   "touched pages stay when the target is full", "%zu of %lu moved",
	   moved, LEN / PAGE);
	ok(!count_damaged(mem, LEN) && !count_damaged(ballast, filled),
	   "and everything keeps its content");

	nodes = 1UL << mem_node[0] | 1UL << mem_node[1];
	bind_range(mem, LEN, MPOL_INTERLEAVE, nodes);
	err = reset_range(mem, LEN, 0, NRST_POLICY, &res);
	ok(!err && res.failed > 0 && !count_damaged(mem, LEN) &&
	   !count_damaged(ballast, filled),
	   "what a full node cannot take is counted",
	   "error %d, moved %llu, failed %llu", err,
	   (unsigned long long)res.moved, (unsigned long long)res.failed);
	oom = vmstat("oom_kill") - kills;
	ok(!oom, "nobody is killed", "%lu", oom);

	/* When there is room again, the next reset moves them. */
	munmap(ballast, len);
	err = reset_range(mem, LEN, 0, NRST_POLICY, &res);
	moved = pages_on(mem, LEN, mem_node[1]);
	ok(!err && !res.failed && moved == LEN / PAGE / 2,
	   "with room, a second reset makes up for it", "%zu, failed %llu",
	   moved, (unsigned long long)res.failed);
	return tap_end();
}
