// SPDX-License-Identifier: GPL-2.0
/*
 * What kinds of memory a reset moves and what it leaves, as "What is not
 * moved" of numa_reset(2) says: each kind is marked and touched from the other
 * node, and re-interleaved onto it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "nrtest.h"

#define LEN	(1UL << 20)
#define PAGES	(LEN / PAGE)

/* What happened to the pages; all of them were on the first node before. */
struct outcome {
	int err;
	unsigned long long marked;
	unsigned long long moved;
	unsigned long long failed;
	size_t there;			/* on the other node afterwards */
};

/* Mark, and read from the other node. */
static struct outcome touched(char *mem, size_t len)
{
	struct numa_reset_args res;
	struct outcome seen = {
		.err = reset_range(mem, len, 0, NRST_TOUCH, &res),
	};

	seen.marked = res.marked;
	run_on_node(mem_node[1]);
	touch(mem, len);
	seen.there = pages_on(mem, len, mem_node[1]);
	return seen;
}

/* Let an interleave policy name the other node for each page. */
static struct outcome reinterleaved(char *mem, size_t len)
{
	struct numa_reset_args res;
	struct outcome seen;

	if (bind_range(mem, len, MPOL_INTERLEAVE, 1UL << mem_node[1]))
		die("mbind: %s", strerror(errno));
	seen.err = reset_range(mem, len, 0, NRST_POLICY, &res);
	seen.marked = res.marked;
	seen.moved = res.moved;
	seen.failed = res.failed;
	seen.there = pages_on(mem, len, mem_node[1]);
	return seen;
}

static bool all_moved_by_touch(const struct outcome *seen)
{
	return !seen->err && seen->marked == PAGES && seen->there == PAGES;
}

static bool all_moved_by_policy(const struct outcome *seen)
{
	return !seen->err && seen->moved == PAGES && !seen->failed &&
	       seen->there == PAGES;
}

/* Not even counted: these pages are none of the reset's. */
static bool left_alone(const struct outcome *seen)
{
	return !seen->err && !seen->marked && !seen->moved && !seen->failed &&
	       !seen->there;
}

#define SEEN	"error %d, %llu marked, %llu moved, %llu failed, %zu there"
#define SHOW(s)	(s).err, (s).marked, (s).moved, (s).failed, (s).there

/* --- Anonymous memory ------------------------------------------------------ */

/* LRU statistics after all CPUs have written theirs. */
static long isolated(const char *name)
{
	write_file("/proc/sys/vm/stat_refresh", "1");
	return vmstat(name);
}

static void lazily_freed(void)
{
	long anon = isolated("nr_isolated_anon");
	long file = isolated("nr_isolated_file");
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct outcome seen;

	madvise(mem, LEN, MADV_FREE);
	seen = reinterleaved(mem, LEN);
	ok(all_moved_by_policy(&seen) && !count_damaged(mem, LEN),
	   "MADV_FREE: policy moves it", SEEN, SHOW(seen));
	munmap(mem, LEN);

	mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	madvise(mem, LEN, MADV_FREE);
	seen = touched(mem, LEN);
	ok(all_moved_by_touch(&seen) && !count_damaged(mem, LEN),
	   "MADV_FREE: follows the toucher", SEEN, SHOW(seen));
	munmap(mem, LEN);

	anon = isolated("nr_isolated_anon") - anon;
	file = isolated("nr_isolated_file") - file;
	ok(!anon && !file, "MADV_FREE: as many isolated pages as before",
	   "anon %+ld, file %+ld", anon, file);
}

static void locked(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct outcome seen;

	if (mlock(mem, LEN))
		die("mlock: %s", strerror(errno));
	seen = touched(mem, LEN);
	ok(all_moved_by_touch(&seen) && !count_damaged(mem, LEN),
	   "mlock: follows the toucher", SEEN, SHOW(seen));
	munmap(mem, LEN);

	mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	if (mlock(mem, LEN))
		die("mlock: %s", strerror(errno));
	seen = reinterleaved(mem, LEN);
	ok(all_moved_by_policy(&seen) && !count_damaged(mem, LEN),
	   "mlock: policy moves it", SEEN, SHOW(seen));
	munmap(mem, LEN);
}

static void forked(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct outcome by_touch, by_policy;
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	by_touch = touched(mem, LEN);
	ok(left_alone(&by_touch), "fork: shared pages are not marked", SEEN,
	   SHOW(by_touch));
	by_policy = reinterleaved(mem, LEN);
	ok(left_alone(&by_policy), "fork: policy leaves shared pages", SEEN,
	   SHOW(by_policy));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	by_policy = reinterleaved(mem, LEN);
	ok(all_moved_by_policy(&by_policy) && !count_damaged(mem, LEN),
	   "fork: what is the parent's alone again moves", SEEN,
	   SHOW(by_policy));
	munmap(mem, LEN);
}

struct io_uring_params_head {
	uint32_t words[30];
};

/* Pins for as long as the descriptor is open. */
static int pin(char *mem, size_t len)
{
	struct io_uring_params_head params;
	struct iovec buffer = { mem, len };
	int fd;

	memset(&params, 0, sizeof(params));
	fd = syscall(SYS_io_uring_setup, 1, &params);
	if (fd < 0)
		die("io_uring_setup: %s", strerror(errno));
	if (syscall(SYS_io_uring_register, fd, 0, &buffer, 1))
		die("io_uring_register: %s", strerror(errno));
	return fd;
}

static void pinned(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct outcome seen;
	int fd = pin(mem, LEN);

	seen = touched(mem, LEN);
	ok(left_alone(&seen), "pinned: not marked", SEEN, SHOW(seen));
	seen = reinterleaved(mem, LEN);
	ok(!seen.err && !seen.moved && seen.failed == PAGES && !seen.there &&
	   !count_damaged(mem, LEN),
	   "pinned: policy counts it as failed", SEEN, SHOW(seen));
	close(fd);
	munmap(mem, LEN);
}

/* A huge page is no different. */
static void huge_page_left_alone(void)
{
	char *mem = memory_on(mem_node[0], HUGE, HUGE_PAGES);
	struct outcome seen;
	pid_t pid = fork();
	int fd;

	if (!pid) {
		pause();
		_exit(0);
	}
	seen = touched(mem, HUGE);
	ok(left_alone(&seen), "fork: a shared huge page is not marked", SEEN,
	   SHOW(seen));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	seen = touched(mem, HUGE);
	ok(!seen.err && seen.marked == HUGE / PAGE &&
	   seen.there == HUGE / PAGE && !count_damaged(mem, HUGE),
	   "fork: a huge page that is the parent's alone again moves", SEEN,
	   SHOW(seen));
	munmap(mem, HUGE);

	mem = memory_on(mem_node[0], HUGE, HUGE_PAGES);
	fd = pin(mem, HUGE);
	seen = touched(mem, HUGE);
	ok(left_alone(&seen) && !count_damaged(mem, HUGE),
	   "pinned: a huge page is not marked", SEEN, SHOW(seen));
	close(fd);
	munmap(mem, HUGE);
}

static void zero_page(void)
{
	char *mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct outcome seen;

	madvise(mem, LEN, MADV_NOHUGEPAGE);
	touch(mem, LEN);
	seen = touched(mem, LEN);
	ok(left_alone(&seen), "zero page: not marked", SEEN, SHOW(seen));
	seen = reinterleaved(mem, LEN);
	ok(left_alone(&seen), "zero page: policy leaves it", SEEN, SHOW(seen));
	munmap(mem, LEN);
}

/* --- KSM --------------------------------------------------------------------- */

#define KSM	"/sys/kernel/mm/ksm/"

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static unsigned long read_number(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long n;

	if (!file || fscanf(file, "%lu", &n) != 1)
		die("cannot read %s", path);
	fclose(file);
	return n;
}

/* All its pages alike, merged into one or, by the limit of sharers, few. */
static void ksm(void)
{
	size_t len = 64 * PAGE;
	char *mem = memory_on(mem_node[0], len, SMALL_PAGES);
	double end = seconds() + 120;
	struct outcome seen;

	memset(mem, 0x5a, len);
	if (madvise(mem, len, MADV_MERGEABLE))
		die("MADV_MERGEABLE: %s", strerror(errno));
	write_file(KSM "pages_to_scan", "10000");
	write_file(KSM "sleep_millisecs", "10");
	write_file(KSM "run", "1");
	/* There is no event for it. */
	while (read_number(KSM "pages_sharing") < len / PAGE - 1 &&
	       seconds() < end)
		usleep(10000);
	if (read_number(KSM "pages_sharing") < len / PAGE - 1)
		die("KSM has merged %lu of %lu pages",
		    read_number(KSM "pages_sharing"), len / PAGE);
	write_file(KSM "run", "0");

	seen = touched(mem, len);
	ok(left_alone(&seen), "KSM: not marked", SEEN, SHOW(seen));
	seen = reinterleaved(mem, len);
	ok(left_alone(&seen), "KSM: policy leaves it", SEEN, SHOW(seen));
	write_file(KSM "run", "2");
	munmap(mem, len);
}

/* --- Files, shared memory, huge pages ---------------------------------------- */

static void shared_memory(void)
{
	struct numa_reset_args res;
	struct outcome seen;
	size_t n;
	char *mem;
	int err;

	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	run_on_node(mem_node[0]);
	fill_pattern(mem, LEN);

	seen = touched(mem, LEN);
	ok(all_moved_by_touch(&seen) && !count_damaged(mem, LEN),
	   "shared memory: follows the toucher", SEEN, SHOW(seen));

	bind_range(mem, LEN, MPOL_INTERLEAVE, 1UL << mem_node[0]);
	err = reset_range(mem, LEN, 0, NRST_POLICY | NRST_FOLLOW, &res);
	n = pages_on(mem, LEN, mem_node[1]);
	ok(!err && !res.moved && !res.failed && n == PAGES &&
	   policy_nodes(mem, NULL) == 1UL << mem_node[0],
	   "shared memory: neither policy nor follow look at it",
	   "error %d, %llu moved, %zu still there", err,
	   (unsigned long long)res.moved, n);
	munmap(mem, LEN);
}

/* The machine's second disk is the file: its page cache can be migrated. */
static char *file_pages(int prot)
{
	int fd = open("/dev/vdb", O_RDWR | O_CLOEXEC);
	char *mem;

	if (fd < 0)
		die("/dev/vdb: %s", strerror(errno));
	run_on_node(mem_node[0]);
	fsync(fd);
	posix_fadvise(fd, 0, LEN, POSIX_FADV_DONTNEED);
	posix_fadvise(fd, 0, LEN, POSIX_FADV_RANDOM);
	mem = mmap(NULL, LEN, prot, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		die("mmap of /dev/vdb: %s", strerror(errno));
	close(fd);
	touch(mem, LEN);
	if (pages_on(mem, LEN, mem_node[0]) != PAGES)
		die("the file's pages are not on the first node");
	return mem;
}

static void files(void)
{
	char *mem = file_pages(PROT_READ | PROT_WRITE);
	struct outcome seen = touched(mem, LEN);

	ok(all_moved_by_touch(&seen), "clean page cache: follows the toucher",
	   SEEN, SHOW(seen));
	munmap(mem, LEN);

	mem = file_pages(PROT_READ | PROT_WRITE);
	seen = reinterleaved(mem, LEN);
	ok(left_alone(&seen), "page cache: policy leaves it", SEEN,
	   SHOW(seen));
	fill_pattern(mem, LEN);
	seen = touched(mem, LEN);
	ok(left_alone(&seen) && !count_damaged(mem, LEN),
	   "dirty page cache: not marked", SEEN, SHOW(seen));
	munmap(mem, LEN);

	mem = file_pages(PROT_READ);
	seen = touched(mem, LEN);
	ok(left_alone(&seen), "read-only mapping of a file: not marked", SEEN,
	   SHOW(seen));
	munmap(mem, LEN);
}

/* Of hugetlbfs, of which move_pages(2) says nothing. */
static int node_at(void *addr)
{
	int nid = -1;

	if (syscall(SYS_get_mempolicy, &nid, NULL, 0, addr,
		    MPOL_F_NODE | MPOL_F_ADDR))
		die("get_mempolicy: %s", strerror(errno));
	return nid;
}

static void hugetlb(void)
{
	struct numa_reset_args by_touch, by_policy;
	char path[96], *mem;
	int err, before, after;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/"
		 "hugepages/hugepages-2048kB/nr_hugepages", mem_node[0]);
	write_file(path, "1");
	mem = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (mem == MAP_FAILED)
		die("no page of hugetlbfs: %s", strerror(errno));
	run_on_node(mem_node[0]);
	fill_pattern(mem, HUGE);
	before = node_at(mem);

	err = reset_range(mem, HUGE, 0, NRST_TOUCH, &by_touch);
	run_on_node(mem_node[1]);
	touch(mem, HUGE);
	bind_range(mem, HUGE, MPOL_INTERLEAVE, 1UL << mem_node[1]);
	err |= reset_range(mem, HUGE, 0, NRST_POLICY, &by_policy);
	after = node_at(mem);
	ok(!err && !by_touch.marked && !by_policy.moved && !by_policy.failed &&
	   before == mem_node[0] && after == before &&
	   !count_damaged(mem, HUGE), "hugetlbfs: stays",
	   "error %d, %llu marked, %llu moved, node %d, %d before", err,
	   (unsigned long long)by_touch.marked,
	   (unsigned long long)by_policy.moved, after, before);
	munmap(mem, HUGE);
	write_file(path, "0");
}

/* --- Memory that is not there now ---------------------------------------------- */

#define PM_UFFD_WP	(1ULL << 57)
#define PM_SWAP		(1ULL << 62)
#define PM_PRESENT	(1ULL << 63)

/* Pages of which /proc/self/pagemap says so. */
static size_t count_pagemap(const char *mem, size_t len, uint64_t bit)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t i, found = 0;
	uint64_t entry;

	for (i = 0; i < len / PAGE; i++) {
		if (pread(fd, &entry, 8, ((uintptr_t)mem / PAGE + i) * 8) != 8)
			die("pagemap: %s", strerror(errno));
		found += !!(entry & bit);
	}
	close(fd);
	return found;
}

/* The machine's first disk. */
static void swap_on(void)
{
	static char header[PAGE];
	const uint32_t version = 1, last_page = 4095;
	int fd = open("/dev/vda", O_RDWR | O_CLOEXEC);

	memcpy(header + 1024, &version, 4);
	memcpy(header + 1028, &last_page, 4);
	memcpy(header + PAGE - 10, "SWAPSPACE2", 10);
	if (fd < 0 || pwrite(fd, header, PAGE, 0) != PAGE || fsync(fd))
		die("/dev/vda: %s", strerror(errno));
	close(fd);
	if (syscall(SYS_swapon, "/dev/vda", 0))
		die("swapon: %s", strerror(errno));
}

static void swapped(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct numa_reset_args res;
	size_t out, left;
	int err;

	swap_on();
	madvise(mem, LEN / 2, MADV_PAGEOUT);
	out = count_pagemap(mem, LEN, PM_SWAP);
	err = reset_range(mem, LEN, 0, NRST_TOUCH, &res);
	ok(!err && out > PAGES / 4 && res.marked == PAGES - out &&
	   count_pagemap(mem, LEN, PM_SWAP) == out,
	   "swap: only pages that are in memory are marked",
	   "error %d, %zu in swap, %llu marked", err, out,
	   (unsigned long long)res.marked);

	/* Half of the marked ones go to swap, too. */
	madvise(mem + LEN / 2, LEN / 4, MADV_PAGEOUT);
	run_on_node(mem_node[1]);
	left = count_pagemap(mem, LEN, PM_PRESENT);
	touch(mem, LEN);
	ok(left < PAGES - out && pages_on(mem, LEN, mem_node[1]) >= left &&
	   !count_damaged(mem, LEN),
	   "swap: the others follow the toucher, all keep their content",
	   "%zu were in memory, %zu are there", left,
	   pages_on(mem, LEN, mem_node[1]));
	munmap(mem, LEN);

	mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	madvise(mem, LEN / 2, MADV_PAGEOUT);
	out = count_pagemap(mem, LEN, PM_SWAP);
	bind_range(mem, LEN, MPOL_INTERLEAVE, 1UL << mem_node[1]);
	err = reset_range(mem, LEN, 0, NRST_POLICY, &res);
	ok(!err && out > PAGES / 4 && res.moved == PAGES - out &&
	   !res.failed && count_pagemap(mem, LEN, PM_SWAP) == out &&
	   !count_damaged(mem, LEN),
	   "swap: policy moves the pages that are in memory",
	   "error %d, %zu in swap, %llu moved, %llu failed", err, out,
	   (unsigned long long)res.moved, (unsigned long long)res.failed);
	munmap(mem, LEN);
	if (syscall(SYS_swapoff, "/dev/vda"))
		die("swapoff: %s", strerror(errno));
}

static int uffd_on(char *mem, size_t len, uint64_t mode)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)mem, len },
		.mode = mode,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (mode == UFFDIO_REGISTER_MODE_WP)
		api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &range))
		die("userfaultfd: %s", strerror(errno));
	return fd;
}

static bool has_event(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Nobody answers here: a fault on a missing page would hang the test. */
static void uffd_missing(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct numa_reset_args res;
	size_t there, missing;
	int fd, err;

	madvise(mem + LEN / 2, LEN / 2, MADV_DONTNEED);
	fd = uffd_on(mem, LEN, UFFDIO_REGISTER_MODE_MISSING);
	err = reset_range(mem, LEN, 0, NRST_TOUCH, &res);
	run_on_node(mem_node[1]);
	touch(mem, LEN / 2);
	there = pages_on(mem, LEN / 2, mem_node[1]);
	bind_range(mem, LEN, MPOL_INTERLEAVE, 1UL << mem_node[0]);
	err |= reset_range(mem, LEN, 0, NRST_POLICY, NULL);
	missing = PAGES - count_pagemap(mem, LEN, PM_PRESENT);
	ok(!err && res.marked == PAGES / 2 && there == PAGES / 2 &&
	   missing == PAGES / 2 && !has_event(fd) &&
	   pages_on(mem, LEN / 2, mem_node[0]) == PAGES / 2 &&
	   !count_damaged(mem, LEN / 2),
	   "userfaultfd: pages move, missing ones stay missing",
	   "error %d, %llu marked, %zu followed, %zu missing", err,
	   (unsigned long long)res.marked, there, missing);
	close(fd);
	munmap(mem, LEN);
}

static void *write_a_byte(void *at)
{
	*(volatile char *)at = 1;
	return NULL;
}

static void uffd_write_protected(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct uffdio_writeprotect wp = {
		.range = { (uintptr_t)mem, LEN },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int fd = uffd_on(mem, LEN, UFFDIO_REGISTER_MODE_WP);
	struct outcome seen;
	struct uffd_msg msg;
	pthread_t writer;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t after_touch, after_policy;
	bool told;

	if (ioctl(fd, UFFDIO_WRITEPROTECT, &wp))
		die("UFFDIO_WRITEPROTECT: %s", strerror(errno));
	seen = touched(mem, LEN);
	after_touch = count_pagemap(mem, LEN, PM_UFFD_WP);
	bind_range(mem, LEN, MPOL_INTERLEAVE, 1UL << mem_node[0]);
	reset_range(mem, LEN, 0, NRST_POLICY, NULL);
	after_policy = count_pagemap(mem, LEN, PM_UFFD_WP);
	ok(all_moved_by_touch(&seen) && after_touch == PAGES &&
	   after_policy == PAGES &&
	   pages_on(mem, LEN, mem_node[0]) == PAGES,
	   "userfaultfd: pages move and stay write-protected",
	   "%zu followed, protected %zu and %zu", seen.there, after_touch,
	   after_policy);

	/* A marked page, too, is not written behind its back. */
	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	pthread_create(&writer, NULL, write_a_byte, mem + 8);
	told = poll(&p, 1, 60000) == 1 &&
	       read(fd, &msg, sizeof(msg)) == sizeof(msg) &&
	       msg.event == UFFD_EVENT_PAGEFAULT &&
	       msg.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP &&
	       !mem[8];
	wp.mode = 0;
	if (ioctl(fd, UFFDIO_WRITEPROTECT, &wp))
		die("UFFDIO_WRITEPROTECT: %s", strerror(errno));
	pthread_join(writer, NULL);
	ok(told && mem[8] == 1,
	   "userfaultfd: the first write is reported and waits");
	close(fd);
	munmap(mem, LEN);
}

int main(void)
{
	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");

	hugetlb();
	lazily_freed();
	locked();
	forked();
	pinned();
	huge_page_left_alone();
	zero_page();
	shared_memory();
	files();
	uffd_missing();
	uffd_write_protected();
	swapped();
	ksm();
	return tap_end();
}
