/* SPDX-License-Identifier: GPL-2.0 */
/*
 * topology_follower: a program that sleeps until the topology changes, says
 * what it sees, and acknowledges when it is told to.
 *
 * Usage: topology_follower register|watch
 *	register: it promises to acknowledge, and does so on SIGUSR1
 *	watch: it only wants to know
 * Prints "version N phase P" at once and each time that poll() raises POLLPRI
 * (P: stable, growing, draining), "acknowledged N", and "told N times" when
 * SIGTERM ends it.
 * Exit status: 0; 2 usage, or the device is not there.
 *
 * Locking: none, one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <xen/topology.h>

static const struct xtopo_page *page;

static void die(const char *what)
{
	fprintf(stderr, "topology_follower: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* Version and phase that belong together. */
static unsigned long long show(void)
{
	static const char * const phases[] = { "stable", "growing", "draining" };
	unsigned long long version;
	unsigned int seq, phase;

	do {
		while ((seq = __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE)) & 1)
			;
		version = __atomic_load_n(&page->version, __ATOMIC_RELAXED);
		phase = __atomic_load_n(&page->phase, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&page->seq, __ATOMIC_RELAXED) != seq);

	printf("version %llu phase %s\n", version,
	       phase < 3 ? phases[phase] : "?");
	return version;
}

int main(int argc, char **argv)
{
	bool registered = argc == 2 && !strcmp(argv[1], "register");
	struct signalfd_siginfo info;
	unsigned long long version;
	struct pollfd pfd[2];
	unsigned int told = 0;
	sigset_t set;
	int device;

	if (!registered && (argc != 2 || strcmp(argv[1], "watch"))) {
		fputs("usage: topology_follower register|watch\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);

	device = open(XTOPO_DEVICE, O_RDONLY | O_CLOEXEC);
	if (device < 0)
		die(XTOPO_DEVICE);
	page = mmap(NULL, XTOPO_PAGE_SIZE, PROT_READ, MAP_SHARED, device, 0);
	if (page == MAP_FAILED)
		die("mmap");
	if (registered && ioctl(device, XTOPO_REGISTER))
		die("XTOPO_REGISTER");
	version = show();

	pfd[0] = (struct pollfd){ .fd = signalfd(-1, &set, 0), .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = device, .events = POLLPRI };
	for (;;) {
		if (poll(pfd, 2, -1) < 0)
			die("poll");
		if (pfd[0].revents) {
			if (read(pfd[0].fd, &info, sizeof(info)) != sizeof(info))
				die("signalfd");
			if (info.ssi_signo == SIGTERM)
				break;
			version = show();
			if (ioctl(device, XTOPO_ACK, (unsigned long)version))
				die("XTOPO_ACK");
			printf("acknowledged %llu\n", version);
			pfd[1].fd = device;
		} else if (pfd[1].revents) {
			told++;
			version = show();
			/* Until it is acknowledged, poll() will say the same. */
			if (registered)
				pfd[1].fd = -1;
		}
	}
	printf("told %u times\n", told);
	return 0;
}
