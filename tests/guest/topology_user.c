/* SPDX-License-Identifier: GPL-2.0 */
/*
 * topology_user: /dev/xen/topology as a program sees it, right use and wrong.
 *
 * Each case compares what a call returns with what <xen/topology.h> and
 * <linux/numa_reset.h> promise; the last one makes calls at random.  The
 * program's memory has a pattern in it, which no reset may change.
 *
 * Usage: topology_user [SEED]       prints TAP
 * Exit status: 0; 1 a case failed; 2 the device or memory could not be had.
 *
 * Locking: none, one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/numa_reset.h>
#include <xen/topology.h>

#define PAGE	4096UL
#define PAGES	1024UL
#define ROUNDS	2000

static unsigned int cases, failures;
static int device;
static const struct xtopo_page *page;
static uint64_t *memory;

static void die(const char *what)
{
	fprintf(stderr, "topology_user: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void expect(const char *what, long got, long want)
{
	cases++;
	if (got == want) {
		printf("ok %u - %s\n", cases, what);
		return;
	}
	failures++;
	printf("not ok %u - %s\n# %ld, expected %ld\n", cases, what, got, want);
}

/* What a call returned: 0 or more, or -errno. */
static long result(long rc)
{
	return rc < 0 ? -errno : rc;
}

static long call(unsigned long cmd, unsigned long arg)
{
	return result(ioctl(device, cmd, arg));
}

static long map(size_t length, int prot, off_t offset)
{
	void *p = mmap(NULL, length, prot, MAP_SHARED, device, offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, length);
	return 0;
}

static long reset(struct numa_reset_args *args)
{
	return call(XTOPO_RESET, (unsigned long)args);
}

static void fill(void)
{
	for (unsigned long i = 0; i < PAGES * PAGE / sizeof(*memory); i++)
		memory[i] = i * 0x9e3779b97f4a7c15ULL;
}

static long wrong(void)
{
	long n = 0;

	for (unsigned long i = 0; i < PAGES * PAGE / sizeof(*memory); i++)
		n += memory[i] != i * 0x9e3779b97f4a7c15ULL;
	return n;
}

static void mappings(void)
{
	void *shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, device, 0);

	if (shared == MAP_FAILED)
		die("mmap " XTOPO_DEVICE);
	page = shared;
	expect("the page has its magic", page->magic == XTOPO_MAGIC, 1);
	expect("there is a version", page->version > 0, 1);
	expect("numa_reset has a number", page->reset_nr > 0, 1);
	expect("mapping it to write", map(PAGE, PROT_READ | PROT_WRITE, 0), -EPERM);
	expect("making the mapping writable",
	       result(mprotect(shared, PAGE, PROT_READ | PROT_WRITE)), -EACCES);
	expect("mapping two pages", map(2 * PAGE, PROT_READ, 0), -EINVAL);
	expect("mapping the second page", map(PAGE, PROT_READ, PAGE), -EINVAL);
}

static void promises(void)
{
	struct pollfd pfd = { .fd = device, .events = POLLPRI };
	uint64_t version = page->version;

	expect("nothing to poll for", result(poll(&pfd, 1, 0)), 0);
	expect("acknowledging unregistered", call(XTOPO_ACK, version), -ENOTCONN);
	expect("registering", call(XTOPO_REGISTER, 0), 0);
	expect("registering again", call(XTOPO_REGISTER, 0), -EBUSY);
	expect("acknowledging what is", call(XTOPO_ACK, version), 0);
	expect("acknowledging it again", call(XTOPO_ACK, version), 0);
	expect("registering in the other way", call(XTOPO_REGISTER_RUNNING, 0),
	       -EBUSY);
	expect("acknowledging the future", call(XTOPO_ACK, version + 1), -EINVAL);
	expect("acknowledging nonsense", call(XTOPO_ACK, ~0UL), -EINVAL);
	expect("an unknown ioctl", call(_IO(XTOPO_IOC_TYPE, 99), 0), -ENOTTY);
}

/* One promise to follow while it runs is enough for a process. */
static void promises_while_running(void)
{
	int first = open(XTOPO_DEVICE, O_RDONLY | O_CLOEXEC);
	int second = open(XTOPO_DEVICE, O_RDONLY | O_CLOEXEC);

	if (first < 0 || second < 0)
		die(XTOPO_DEVICE);
	expect("following while it runs",
	       result(ioctl(first, XTOPO_REGISTER_RUNNING)), 0);
	expect("following so twice",
	       result(ioctl(second, XTOPO_REGISTER_RUNNING)), -EBUSY);
	expect("promising through another file",
	       result(ioctl(second, XTOPO_REGISTER)), 0);
	close(first);
	close(second);
	first = open(XTOPO_DEVICE, O_RDONLY | O_CLOEXEC);
	expect("following so again, when the first has been closed",
	       result(ioctl(first, XTOPO_REGISTER_RUNNING)), 0);
	close(first);
}

static void resets(void)
{
	struct numa_reset_args whole = {
		.start = (uintptr_t)memory, .len = PAGES * PAGE,
		.topo_version = page->version,
	};
	struct numa_reset_args stale = { .topo_version = page->version + 5 };
	struct numa_reset_args odd = { .start = 1, .len = PAGE };
	struct numa_reset_args granule = { .granule_shift = 30 };

	expect("resetting all, without arguments", reset(NULL), 0);
	expect("nothing was changed by it", wrong(), 0);
	expect("resetting a range", reset(&whole), 0);
	expect("its pages are marked", whole.marked > 0 && whole.marked <= PAGES, 1);
	expect("a touch leaves them as they were", wrong(), 0);
	expect("a version that is not", reset(&stale), -ESTALE);
	expect("an unaligned range", reset(&odd), -EINVAL);
	expect("a granule of a GiB", reset(&granule), -EINVAL);
	expect("arguments that are not there", call(XTOPO_RESET, 16), -EFAULT);
}

static uint64_t anything(void)
{
	uint64_t r = (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^
		     (uint64_t)random();

	switch (random() % 5) {
	case 0: return 0;
	case 1: return r % 64;
	case 2: return (uintptr_t)memory + r % (PAGES * PAGE);
	case 3: return ((uintptr_t)memory + r % (PAGES * PAGE)) & -PAGE;
	default: return r;
	}
}

/* The answers are anyone's guess; that the kernel and the data live is not. */
static void at_random(unsigned int seed)
{
	uint64_t version = page->version;

	srandom(seed);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct numa_reset_args args = {
			.start = anything(), .len = anything(),
			.topo_version = random() % 2 ? anything() : 0,
			.granule_shift = anything(), .maxnode = anything(),
			.nodes_ptr = anything(),
		};

		/* Not XTOPO_RESET: it writes its counts where it is told. */
		unsigned long other = random() % 7;

		other += other >= _IOC_NR(XTOPO_RESET);
		if (random() % 4)
			reset(&args);
		else
			call(_IO(XTOPO_IOC_TYPE, other), anything());
	}
	expect("calls at random change nothing", wrong(), 0);
	expect("and no version", page->version == version, 1);
}

int main(int argc, char **argv)
{
	unsigned int seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;

	device = open(XTOPO_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		die(XTOPO_DEVICE);
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	fill();

	printf("# seed %u\n", seed);
	mappings();
	promises();
	promises_while_running();
	resets();
	at_random(seed);
	printf("1..%u\n", cases);
	return failures != 0;
}
