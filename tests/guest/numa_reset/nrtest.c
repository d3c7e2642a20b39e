// SPDX-License-Identifier: GPL-2.0
/* Shared by the self tests of numa_reset(2); see nrtest.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nrtest.h"

int nr_mem_nodes;
int mem_node[MAX_NODES];

static int node_cpu[MAX_NODES];		/* first CPU, -1: none */
static int nr_results;
static int nr_failures;

/* --- TAP ------------------------------------------------------------------ */

void tap_result(bool good, const char *name, const char *fmt, ...)
{
	char seen[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(seen, sizeof(seen), fmt, ap);
	va_end(ap);

	nr_results++;
	nr_failures += !good;
	printf("%s %d - %s%s%s%s\n", good ? "ok" : "not ok", nr_results, name,
	       *seen ? " (" : "", seen, *seen ? ")" : "");
	fflush(stdout);
}

int tap_end(void)
{
	printf("1..%d\n", nr_results);
	fflush(stdout);
	return nr_failures ? 1 : 0;
}

void die(const char *fmt, ...)
{
	va_list ap;

	printf("Bail out! ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	exit(2);
}

/* --- The machine ------------------------------------------------------------ */

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	if (n < 0)
		return false;
	text[n] = '\0';
	return true;
}

void machine_init(void)
{
	char path[64], text[256];
	int nid;

	for (nid = 0; nid < MAX_NODES; nid++) {
		unsigned long kb = 0;
		char *at;

		node_cpu[nid] = -1;
		snprintf(path, sizeof(path),
			 "/sys/devices/system/node/node%d/cpulist", nid);
		if (!read_text(path, text, sizeof(text)))
			continue;
		if (text[0] >= '0' && text[0] <= '9')
			node_cpu[nid] = atoi(text);

		snprintf(path, sizeof(path),
			 "/sys/devices/system/node/node%d/meminfo", nid);
		if (!read_text(path, text, sizeof(text)))
			continue;
		at = strstr(text, "MemTotal:");
		if (at)
			kb = strtoul(at + strlen("MemTotal:"), NULL, 10);
		if (kb)
			mem_node[nr_mem_nodes++] = nid;
	}
	if (nr_mem_nodes < 2)
		die("needs 2 nodes with memory, found %d", nr_mem_nodes);
}

int cpu_of_node(int nid)
{
	return nid >= 0 && nid < MAX_NODES ? node_cpu[nid] : -1;
}

int memoryless_node(void)
{
	int nid, i;

	for (nid = 0; nid < MAX_NODES; nid++) {
		for (i = 0; i < nr_mem_nodes && mem_node[i] != nid; i++)
			;
		if (i == nr_mem_nodes && node_cpu[nid] >= 0)
			return nid;
	}
	return -1;
}

void run_on_node(int nid)
{
	cpu_set_t cpus;

	if (cpu_of_node(nid) < 0)
		die("node %d has no CPU", nid);
	CPU_ZERO(&cpus);
	CPU_SET(cpu_of_node(nid), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("cannot run on node %d: %s", nid, strerror(errno));
}

/* --- Kernel ------------------------------------------------------------------ */

int numa_reset(int pidfd, struct numa_reset_args *args, size_t size,
	       unsigned int flags)
{
	return syscall(NR_NUMA_RESET, pidfd, args, size, flags) ? -errno : 0;
}

int reset_range(void *start, size_t len, unsigned int granule,
		unsigned int flags, struct numa_reset_args *result)
{
	struct numa_reset_args args = {
		.start = (uintptr_t)start,
		.len = len,
		.granule_shift = granule,
	};
	int err = numa_reset(-1, &args, sizeof(args), flags);

	if (result)
		*result = args;
	return err;
}

int set_policy(int mode, unsigned long nodes)
{
	/* The kernel takes one bit less than it is told. */
	return syscall(SYS_set_mempolicy, mode, &nodes, 8 * sizeof(nodes) + 1) ?
	       -errno : 0;
}

int bind_range(void *start, size_t len, int mode, unsigned long nodes)
{
	return syscall(SYS_mbind, start, len, mode, &nodes,
		       8 * sizeof(nodes) + 1, 0) ? -errno : 0;
}

unsigned long policy_nodes(void *addr, int *mode)
{
	unsigned long nodes[1024 / (8 * sizeof(unsigned long))] = { 0 };
	int ignored;

	if (syscall(SYS_get_mempolicy, mode ? mode : &ignored, nodes,
		    8 * sizeof(nodes), addr, addr ? MPOL_F_ADDR : 0))
		die("get_mempolicy: %s", strerror(errno));
	return nodes[0];
}

unsigned long vmstat(const char *name)
{
	static char text[16384];
	size_t len = strlen(name);
	char *at;

	if (!read_text("/proc/vmstat", text, sizeof(text)))
		die("no /proc/vmstat");
	for (at = text; (at = strstr(at, name)); at += len)
		if ((at == text || at[-1] == '\n') && at[len] == ' ')
			return strtoul(at + len, NULL, 10);
	die("no %s in /proc/vmstat", name);
}

void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("cannot write \"%s\" to %s: %s", text, path,
		    strerror(errno));
	close(fd);
}

/* --- Memory ------------------------------------------------------------------ */

char *memory_on(int nid, size_t len, enum page_kind kind)
{
	char *mem = mmap(NULL, len + HUGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *start;

	if (mem == MAP_FAILED)
		die("mmap of %zu bytes: %s", len, strerror(errno));
	start = (char *)(((uintptr_t)mem + HUGE - 1) & ~(HUGE - 1));
	if (start > mem)
		munmap(mem, start - mem);
	munmap(start + len, mem + HUGE - start);
	madvise(start, len, kind == HUGE_PAGES ? MADV_HUGEPAGE :
						 MADV_NOHUGEPAGE);
	run_on_node(nid);
	fill_pattern(start, len);
	return start;
}

static uint64_t pattern(const char *page)
{
	return ((uintptr_t)page >> 12) * 0x9e3779b97f4a7c15ULL;
}

void fill_pattern(char *mem, size_t len)
{
	size_t off;

	for (off = 0; off < len; off += PAGE) {
		*(uint64_t *)(mem + off) = pattern(mem + off);
		*(uint64_t *)(mem + off + PAGE - 8) = ~pattern(mem + off);
	}
}

size_t count_damaged(const char *mem, size_t len)
{
	size_t off, damaged = 0;

	for (off = 0; off < len; off += PAGE)
		damaged += *(uint64_t *)(mem + off) != pattern(mem + off) ||
			   *(uint64_t *)(mem + off + PAGE - 8) !=
				~pattern(mem + off);
	return damaged;
}

void touch(const char *mem, size_t len)
{
	size_t off;

	for (off = 0; off < len; off += PAGE)
		(void)*(volatile const char *)(mem + off);
}

void nodes_of(char *mem, size_t len, int *nodes)
{
	size_t n = len / PAGE, i;
	void **pages = malloc(n * sizeof(*pages));

	if (!pages)
		die("no memory for %zu addresses", n);
	for (i = 0; i < n; i++)
		pages[i] = mem + i * PAGE;
	if (syscall(SYS_move_pages, 0, n, pages, NULL, nodes, 0))
		die("move_pages: %s", strerror(errno));
	free(pages);
}

size_t pages_on(char *mem, size_t len, int nid)
{
	size_t n = len / PAGE, i, found = 0;
	int *nodes = malloc(n * sizeof(*nodes));

	if (!nodes)
		die("no memory for %zu nodes", n);
	nodes_of(mem, len, nodes);
	for (i = 0; i < n; i++)
		found += nodes[i] == nid;
	free(nodes);
	return found;
}
