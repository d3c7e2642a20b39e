/* SPDX-License-Identifier: GPL-2.0 */
/*
 * span_latency: how long what CPUs of one guest say to each other takes, and what
 * they ask of Xen.
 *
 *   membarrier  the first CPU interrupts the second, which is busy in user space,
 *               and waits until it has had the interrupt: membarrier(2), private
 *               and expedited.  There and back: an IPI, and the pages of
 *               smp_call_function().  Before each they meet, so that it runs.
 *   wake        the first CPU wakes a thread that sleeps on the second, which
 *               wakes it in turn: futex(2).  Each way by itself, as the guest has
 *               one time on all CPUs.  A CPU that was idle gets an IPI.
 *   version     a hypercall that is done where it is made: xen_version.
 *   status      one that is done where its port is: EVTCHNOP_status of port 1,
 *               which is at home.  On a CPU of another host it is forwarded.
 *   nothing     the first CPU looks at its clock for so long (--us), and the
 *               second is busy: what happens without all this.  They meet once,
 *               before the first time.
 *
 * It says, as JSON, a line for each, with the ns of each call by
 * CLOCK_MONOTONIC:
 *
 *   {"event":"calls","what":"wake","cpus":[0,1],"slept":.., "ns":[..],
 *    "back_ns":[..]}
 *
 * slept and back_ns are of "wake": how many of both threads' waits began before
 * they were woken, and the ways back.  met_ns is of "membarrier": how long both
 * took to meet before each call, which is not within it.
 *
 * Exit status: 0, 1 a call has failed, 2 usage.
 *
 * Locking: none; whose turn it is says a number that both know.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "privcmd.h"
#include "words.h"

#define PAGE		4096
#define MAX_ROUNDS	10000

/* Each in a page of its own: who writes one takes no other away. */
static struct cell {
	uint32_t turn;
	uint64_t woken, waking, slept;
} __attribute__((aligned(PAGE))) first, second;
static struct { uint32_t asked; bool stop; } __attribute__((aligned(PAGE))) busy;
static struct { uint32_t asked; } __attribute__((aligned(PAGE))) answered;

static uint64_t out[MAX_ROUNDS], back[MAX_ROUNDS], met[MAX_ROUNDS];
static unsigned int rounds = 100;
static unsigned long us = 1000;
static long cpus[2];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void __attribute__((noreturn)) failed(const char *what)
{
	fprintf(stderr, "%s: %s: %m\n", program_invocation_short_name, what);
	exit(1);
}

static void bind_to(long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("CPU %ld: %m", cpu);
}

static void say_list(const char *key, const uint64_t *ns)
{
	unsigned int i;

	printf(",\"%s\":[", key);
	for (i = 0; i < rounds; i++)
		printf("%s%" PRIu64, i ? "," : "", ns[i]);
	printf("]");
}

static void say(const char *what, bool two, bool ways)
{
	printf("{\"event\":\"calls\",\"what\":\"%s\",\"cpus\":[%ld", what, cpus[0]);
	if (two)
		printf(",%ld", cpus[1]);
	printf("]");
	if (ways)
		printf(",\"slept\":%" PRIu64, first.slept + second.slept);
	say_list("ns", out);
	if (ways)
		say_list("back_ns", back);
	else if (*what == 'm')
		say_list("met_ns", met);
	printf("}\n");
	fflush(stdout);
}

/* ---- A CPU that is busy ---- */

static void *spin(void *unused)
{
	uint32_t asked;

	(void)unused;
	bind_to(cpus[1]);
	while (!__atomic_load_n(&busy.stop, __ATOMIC_RELAXED)) {
		asked = __atomic_load_n(&busy.asked, __ATOMIC_RELAXED);
		if (asked != answered.asked)
			__atomic_store_n(&answered.asked, asked, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * Until the other thread runs: who is not in user space is not interrupted, and
 * its CPU may have other work. Afterwards both have both pages at hand.
 */
static void meet(void)
{
	uint32_t asked = busy.asked + 1;

	__atomic_store_n(&busy.asked, asked, __ATOMIC_RELAXED);
	while (__atomic_load_n(&answered.asked, __ATOMIC_RELAXED) != asked)
		;
}

static void membarrier(int command)
{
	if (syscall(SYS_membarrier, command, 0, 0))
		failed("membarrier");
}

static void wait_us(void)
{
	uint64_t end = now_ns() + us * 1000;

	while (now_ns() < end)
		;
}

static void beside_a_busy_cpu(const char *what, bool interrupt)
{
	pthread_t thread;
	unsigned int i;

	if (interrupt)
		membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
	if (pthread_create(&thread, NULL, spin, NULL))
		die("no thread");
	/* The thread's start is in this one, and in no time that is said. */
	meet();
	for (i = 0; i < rounds; i++) {
		uint64_t asks = now_ns(), begin = asks;

		if (interrupt) {
			meet();
			begin = now_ns();
			met[i] = begin - asks;
			membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
		} else {
			wait_us();
		}
		out[i] = now_ns() - begin;
	}
	__atomic_store_n(&busy.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	say(what, true, false);
}

/* ---- Threads that wake each other ---- */

static void await(struct cell *own, uint32_t turn)
{
	while (__atomic_load_n(&own->turn, __ATOMIC_ACQUIRE) != turn) {
		long rc = syscall(SYS_futex, &own->turn, FUTEX_WAIT_PRIVATE,
				  turn - 1, NULL, NULL, 0);

		if (!rc)
			own->slept++;
		else if (errno != EAGAIN && errno != EINTR)
			failed("futex");
	}
	own->woken = now_ns();
}

static void wake(struct cell *own, struct cell *other, uint32_t turn)
{
	own->waking = now_ns();
	__atomic_store_n(&other->turn, turn, __ATOMIC_RELEASE);
	if (syscall(SYS_futex, &other->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) < 0)
		failed("futex");
}

static void *answer(void *unused)
{
	uint32_t turn;

	(void)unused;
	bind_to(cpus[1]);
	for (turn = 1; turn <= rounds; turn++) {
		await(&second, turn);
		wake(&second, &first, turn);
	}
	return NULL;
}

static void each_other(void)
{
	pthread_t thread;
	uint32_t turn;

	if (pthread_create(&thread, NULL, answer, NULL))
		die("no thread");
	for (turn = 1; turn <= rounds; turn++) {
		wake(&first, &second, turn);
		await(&first, turn);
		/* The other one has written both before this turn was ours. */
		out[turn - 1] = second.woken - first.waking;
		back[turn - 1] = first.woken - second.waking;
		/* It sleeps again, or nearly so. */
		wait_us();
	}
	pthread_join(thread, NULL);
	say("wake", true, true);
}

/* ---- Hypercalls ---- */

static void hypercalls(const char *what, bool status)
{
	int fd = open(PRIVCMD, O_RDWR | O_CLOEXEC);
	unsigned int i;

	if (fd < 0)
		failed(PRIVCMD);
	for (i = 0; i < rounds; i++) {
		struct evtchn_status port = { .dom = DOMID_SELF, .port = HOME_PORT };
		uint64_t begin = now_ns();
		long rc = status ?
			hypercall(fd, HYPERVISOR_EVENT_CHANNEL_OP,
				  EVTCHNOP_STATUS, &port) :
			hypercall(fd, HYPERVISOR_XEN_VERSION, XENVER_VERSION,
				  NULL);

		out[i] = now_ns() - begin;
		if (rc < 0)
			failed(what);
		if (status && port.status == EVTCHNSTAT_CLOSED) {
			fprintf(stderr, "%s: port %u is closed\n",
				program_invocation_short_name, HOME_PORT);
			exit(1);
		}
	}
	close(fd);
	say(what, false, false);
}

static void help(FILE *to)
{
	fprintf(to,
		"Usage: span_latency --what=X --cpus=N[,N] [--rounds=N] [--us=N]\n"
		"How long interrupts, wake-ups and hypercalls take.\n"
		"  --what=X     membarrier, wake, nothing: between two CPUs;\n"
		"               version, status: on one\n"
		"  --cpus=N,N   who calls, and the other one\n"
		"  --rounds=N   1 to %d (100)\n"
		"  --us=N       pause after a wake-up, and what nothing takes,\n"
		"               0 to 1000000 (1000)\n"
		"  --help       this text\n", MAX_ROUNDS);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "what", required_argument, NULL, 'w' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "us", required_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *what = "";
	unsigned int there = 0;
	bool one;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'w':
			what = optarg;
			break;
		case 'c':
			there = numbers("cpus", optarg, 0, CPU_SETSIZE - 1, cpus, 2);
			break;
		case 'r':
			rounds = number("rounds", optarg, 1, MAX_ROUNDS);
			break;
		case 'u':
			us = number("us", optarg, 0, 1000000);
			break;
		case 'h':
			help(stdout);
			return 0;
		default:
			help(stderr);
			return 2;
		}
	}
	one = !strcmp(what, "version") || !strcmp(what, "status");
	if (optind != argc || !there || there != (one ? 1 : 2)) {
		help(stderr);
		return 2;
	}

	bind_to(cpus[0]);
	memset(out, 0, sizeof(*out) * rounds);
	memset(back, 0, sizeof(*back) * rounds);
	memset(met, 0, sizeof(*met) * rounds);
	if (one)
		hypercalls(what, *what == 's');
	else if (!strcmp(what, "wake"))
		each_other();
	else if (!strcmp(what, "membarrier") || !strcmp(what, "nothing"))
		beside_a_busy_cpu(what, *what == 'm');
	else
		die("--what=%s: want membarrier, wake, nothing, version or status", what);
	return 0;
}
