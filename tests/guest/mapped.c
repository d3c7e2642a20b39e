/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mapped: memory in the ways in which programs have it, compared all the time.
 *
 * A region of MIB is written and read back, over and over, while nodes come and
 * go beneath it:
 *
 *   fork      a child has it copy on write, compares it, writes to half of it;
 *             the parent writes meanwhile, and neither sees the other's words
 *   lock      it is locked with mlock(2), unlocked in part and locked again
 *   share     it is a memfd, mapped twice here and once in a child; both write
 *             in turns, and each reads through its own mapping
 *   register  it is a buffer registered with io_uring, pinned for as long as
 *             that lives; its words go into a memfd and come back by it
 *
 * Usage: mapped KIND MIB            MIB 1 to 4096
 * Prints "ready" when all of it was written once, and a line with "expected"
 * for each page that was wrong (16 at most); on SIGTERM
 *   {"rounds":N,"wrong":N}
 * SIGUSR1 changes a word behind the program's back, for its own test.
 * Exit status: 0 nothing was wrong; 1 something was; 2 usage, or no memory;
 * 3 this kernel does not have it.
 *
 * Locking: none, one thread; parent and child of `share` take turns by pipes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096UL
#define WORDS		(PAGE / sizeof(uint64_t))
#define PAGES_OF_MIB	256UL
#define MAX_MIB		4096UL
#define LINES		16
#define OTHER		0x5555555555555555ULL	/* what a child writes is that */
#define CHUNK		(64 * PAGE)		/* of one request */

static volatile sig_atomic_t stop, spoil;
static unsigned long pages, rounds, wrong;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		spoil = 1;
	else
		stop = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "mapped: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t pattern(unsigned long page, unsigned long word, uint64_t key)
{
	uint64_t x = (key << 40) ^ (page << 9) ^ word;

	return x * 0x9e3779b97f4a7c15ULL;
}

static void write_page(uint64_t *region, unsigned long page, uint64_t key)
{
	for (unsigned long w = 0; w < WORDS; w++)
		region[page * WORDS + w] = pattern(page, w, key);
}

static void check_page(const uint64_t *region, unsigned long page, uint64_t key)
{
	const volatile uint64_t *p = region + page * WORDS;

	for (unsigned long w = 0; w < WORDS; w++) {
		uint64_t want = pattern(page, w, key), got = p[w];

		if (got == want)
			continue;
		if (wrong++ < LINES) {
			printf("mapped: page %lu word %lu: %016llx, expected %016llx\n",
			       page, w, (unsigned long long)got,
			       (unsigned long long)want);
			fflush(stdout);
		}
		return;
	}
}

static void write_all(uint64_t *region, uint64_t key)
{
	for (unsigned long page = 0; page < pages; page++)
		write_page(region, page, key);
}

static void check_all(const uint64_t *region, uint64_t key)
{
	for (unsigned long page = 0; page < pages; page++)
		check_page(region, page, key);
}

/* For the program's own test. */
static void spoil_if_asked(uint64_t *region)
{
	if (spoil) {
		spoil = 0;
		region[(pages / 2) * WORDS + 7] ^= 1;
	}
}

static void ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

static void *map(int flags, int fd)
{
	void *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static int file_of_memory(void)
{
	int fd = memfd_create("mapped", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, pages * PAGE))
		die("memfd");
	return fd;
}

/* Waits for a child and counts what it has found. */
static void await(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		wrong++;
}

/*---------- fork ----------*/

static void child_of_fork(uint64_t *region, uint64_t key)
{
	wrong = 0;
	check_all(region, key);
	for (unsigned long page = 0; page < pages; page += 2)
		write_page(region, page, key ^ OTHER);
	for (unsigned long page = 0; page < pages; page++)
		check_page(region, page, page % 2 ? key : key ^ OTHER);
	_exit(wrong ? 1 : 0);
}

static void run_fork(void)
{
	uint64_t *region = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);

	write_all(region, rounds);
	ready();
	while (!stop) {
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (!child)
			child_of_fork(region, rounds);
		for (unsigned long page = 0; page < pages; page += 3)
			write_page(region, page, rounds + 1);
		spoil_if_asked(region);
		await(child);
		for (unsigned long page = 0; page < pages; page++)
			check_page(region, page, page % 3 ? rounds : rounds + 1);
		write_all(region, ++rounds);
	}
	check_all(region, rounds);
}

/*---------- lock ----------*/

static void run_lock(void)
{
	uint64_t *region = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	size_t half = pages / 2 * PAGE;

	if (mlock(region, pages * PAGE))
		die("mlock");
	write_all(region, rounds);
	ready();
	while (!stop) {
		if (munlock(region, half))
			die("munlock");
		spoil_if_asked(region);
		check_all(region, rounds);
		if (mlock(region, half))
			die("mlock");
		write_all(region, ++rounds);
	}
	check_all(region, rounds);
}

/*---------- share ----------*/

static bool turn_comes(int fd)
{
	char c;
	ssize_t got;

	do
		got = read(fd, &c, 1);
	while (got < 0 && errno == EINTR);
	return got == 1;
}

static void give_turn(int fd)
{
	if (write(fd, "", 1) != 1)
		die("pipe");
}

/* Rounds are even when the parent writes, and odd when the child does. */
static void child_of_share(int fd, int in, int out)
{
	uint64_t *region = map(MAP_SHARED, fd);

	for (wrong = 0; turn_comes(in); rounds += 2) {
		check_all(region, rounds);
		write_all(region, rounds + 1);
		give_turn(out);
	}
	_exit(wrong ? 1 : 0);
}

static void run_share(void)
{
	int fd = file_of_memory(), there[2], back[2];
	uint64_t *writes = map(MAP_SHARED, fd), *reads = map(MAP_SHARED, fd);
	pid_t child;

	if (pipe(there) || pipe(back))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		close(there[1]);
		child_of_share(fd, there[0], back[1]);
	}
	close(there[0]);
	close(back[1]);
	write_all(writes, 0);
	ready();
	while (!stop) {
		give_turn(there[1]);
		if (!turn_comes(back[0]))
			break;
		spoil_if_asked(writes);
		check_all(reads, rounds + 1);
		rounds += 2;
		write_all(writes, rounds);
	}
	check_all(reads, rounds);
	close(there[1]);
	await(child);
}

/*---------- register ----------*/

struct ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
};

static void open_ring(struct ring *ring, void *buffer)
{
	struct io_uring_params p = { 0 };
	struct iovec whole = { buffer, pages * PAGE };
	size_t sq, cq;
	char *s, *c;

	ring->fd = syscall(SYS_io_uring_setup, 4, &p);
	if (ring->fd < 0) {
		fprintf(stderr, "mapped: io_uring: %s\n", strerror(errno));
		exit(3);
	}
	sq = p.sq_off.array + p.sq_entries * sizeof(unsigned int);
	cq = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	s = mmap(NULL, sq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		 ring->fd, IORING_OFF_SQ_RING);
	c = mmap(NULL, cq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		 ring->fd, IORING_OFF_CQ_RING);
	ring->sqe = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe),
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			 ring->fd, IORING_OFF_SQES);
	if (s == MAP_FAILED || c == MAP_FAILED || ring->sqe == MAP_FAILED)
		die("the ring");
	ring->sq_tail = (unsigned int *)(s + p.sq_off.tail);
	ring->sq_mask = (unsigned int *)(s + p.sq_off.ring_mask);
	ring->sq_array = (unsigned int *)(s + p.sq_off.array);
	ring->cq_head = (unsigned int *)(c + p.cq_off.head);
	ring->cq_tail = (unsigned int *)(c + p.cq_off.tail);
	ring->cq_mask = (unsigned int *)(c + p.cq_off.ring_mask);
	ring->cqe = (struct io_uring_cqe *)(c + p.cq_off.cqes);
	if (syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS,
		    &whole, 1)) {
		fprintf(stderr, "mapped: a registered buffer: %s\n",
			strerror(errno));
		exit(3);
	}
}

/* One request of a chunk, to its end. */
static void transfer(struct ring *ring, int opcode, int fd, char *buffer,
		     size_t offset)
{
	unsigned int tail = *ring->sq_tail, slot = tail & *ring->sq_mask, head;
	struct io_uring_sqe *sqe = &ring->sqe[slot];
	size_t left = pages * PAGE - offset;
	size_t length = left < CHUNK ? left : CHUNK;
	long entered;
	int result;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = opcode;
	sqe->fd = fd;
	sqe->addr = (uintptr_t)(buffer + offset);
	sqe->len = length;
	sqe->off = offset;
	ring->sq_array[slot] = slot;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	entered = syscall(SYS_io_uring_enter, ring->fd, 1, 0, 0, NULL, 0);
	if (entered != 1)
		die("io_uring_enter");

	head = *ring->cq_head;
	while (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
		entered = syscall(SYS_io_uring_enter, ring->fd, 0, 1,
				  IORING_ENTER_GETEVENTS, NULL, 0);
		if (entered < 0 && errno != EINTR)
			die("io_uring_enter");
	}
	result = ring->cqe[head & *ring->cq_mask].res;
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	if (result != (int)length) {
		errno = result < 0 ? -result : EIO;
		die("a transfer");
	}
}

static void transfer_all(struct ring *ring, int opcode, int fd, void *buffer)
{
	for (size_t offset = 0; offset < pages * PAGE; offset += CHUNK)
		transfer(ring, opcode, fd, buffer, offset);
}

static void run_register(void)
{
	uint64_t *region = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int fd = file_of_memory();
	uint64_t *file = map(MAP_SHARED, fd);
	struct ring ring;

	write_all(region, rounds);
	open_ring(&ring, region);
	ready();
	while (!stop) {
		spoil_if_asked(region);
		transfer_all(&ring, IORING_OP_WRITE_FIXED, fd, region);
		check_all(file, rounds);
		write_all(file, ++rounds);
		transfer_all(&ring, IORING_OP_READ_FIXED, fd, region);
		check_all(region, rounds);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{ "fork", run_fork },
	{ "lock", run_lock },
	{ "share", run_share },
	{ "register", run_register },
};

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal };
	char *end = "";
	unsigned long mib = argc == 3 ? strtoul(argv[2], &end, 10) : 0;

	if (argc == 3 && end != argv[2] && !*end && mib >= 1 && mib <= MAX_MIB) {
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (strcmp(argv[1], kinds[i].name))
				continue;
			pages = mib * PAGES_OF_MIB;
			sigaction(SIGTERM, &action, NULL);
			sigaction(SIGINT, &action, NULL);
			sigaction(SIGUSR1, &action, NULL);
			kinds[i].run();
			printf("{\"rounds\":%lu,\"wrong\":%lu}\n", rounds, wrong);
			return wrong ? 1 : 0;
		}
	}
	fprintf(stderr, "Usage: mapped fork|lock|share|register MIB\n");
	return 2;
}
