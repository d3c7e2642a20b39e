/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the self tests of numa_reset(2) share: the system calls that no libc
 * wraps, memory whose pages' nodes are known, counters of the kernel, TAP.
 *
 * A program prints one TAP line a check and "1..N" at its end.  Each line is
 * one named result of tests/guest/run_numa_reset.py.
 */
#ifndef NRTEST_H
#define NRTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/mempolicy.h>
#include <linux/numa_reset.h>

#define PAGE		4096UL
#define HUGE		(2UL << 20)
#define MAX_NODES	8

/* In the guest the number comes from the topology page, here from the table. */
#define NR_NUMA_RESET	600

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

/* --- TAP ------------------------------------------------------------------ */

/* Print one result.  @name has no line break; the rest says what was seen. */
#define ok(cond, name, ...) tap_result(!!(cond), name, "" __VA_ARGS__)
void tap_result(bool good, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Print the plan; the program's exit code. */
int tap_end(void);

/* The test cannot go on: print why and leave with a failure. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* --- The machine ------------------------------------------------------------ */

extern int nr_mem_nodes;		/* nodes with memory */
extern int mem_node[MAX_NODES];		/* their numbers, ascending */

/* Read the machine; first call of each program. */
void machine_init(void);

/* A CPU of node @nid, or -1. */
int cpu_of_node(int nid);

/* A node with CPUs and without memory, or -1. */
int memoryless_node(void);

/* Run the calling thread on node @nid only. */
void run_on_node(int nid);

/* --- Kernel ------------------------------------------------------------------ */

/* numa_reset(2): 0, or -errno. */
int numa_reset(int pidfd, struct numa_reset_args *args, size_t size,
	       unsigned int flags);

/* The same for the caller's range of memory; granule 0 is the default. */
int reset_range(void *start, size_t len, unsigned int granule,
		unsigned int flags, struct numa_reset_args *result);

int set_policy(int mode, unsigned long nodes);
int bind_range(void *start, size_t len, int mode, unsigned long nodes);

/* Node set of the policy of @addr, or with NULL of the calling thread. */
unsigned long policy_nodes(void *addr, int *mode);

/* One counter of /proc/vmstat. */
unsigned long vmstat(const char *name);

void write_file(const char *path, const char *text);

/* --- Memory ------------------------------------------------------------------ */

enum page_kind { SMALL_PAGES, HUGE_PAGES };

/*
 * @len bytes, aligned to 2 MiB, faulted in on node @nid under the default
 * policy; each page filled with a pattern of its own.  Leaves the caller on
 * that node.
 */
char *memory_on(int nid, size_t len, enum page_kind kind);

/* Write the pattern of each page / count the pages that have lost it. */
void fill_pattern(char *mem, size_t len);
size_t count_damaged(const char *mem, size_t len);

/* Read one byte of each page. */
void touch(const char *mem, size_t len);

/* The node of each page; -ENOENT and the like where there is none. */
void nodes_of(char *mem, size_t len, int *nodes);

/* How many pages are on @nid. */
size_t pages_on(char *mem, size_t len, int nid);

#endif /* NRTEST_H */
