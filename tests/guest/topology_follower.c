/* SPDX-License-Identifier: GPL-2.0 */
/*
 * topology_follower: a program that sleeps until the topology changes, says
 * what it sees, and acknowledges when it is told to.
 *
 * Usage: topology_follower register|watch|epoll|running
 *	register: it promises to acknowledge, and does so on SIGUSR1
 *	watch: it only wants to know
 *	epoll: it only wants to know, and waits in epoll_wait() instead of poll()
 *	running: it promises to follow while it runs; SIGUSR2 makes it run all the
 *		time, which it says, or sleep again.  It looks at the page only
 *		while it runs
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
#include <sys/epoll.h>
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

/*
 * As poll() of both, by epoll_wait().  poll() of an epoll instance would ask the
 * device itself and be told; who asked epoll_wait() then would not be.
 */
static int poll_by_epoll(int epoll, struct pollfd *pfd)
{
	struct epoll_event events[2];
	int n = epoll_wait(epoll, events, 2, -1);

	pfd[0].revents = pfd[1].revents = 0;
	for (int i = 0; i < n; i++)
		pfd[events[i].data.u32].revents = events[i].events;
	return n;
}

static int make_epoll(const struct pollfd *pfd)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	for (unsigned int i = 0; epoll >= 0 && i < 2; i++) {
		struct epoll_event event = { .events = pfd[i].events };

		event.data.u32 = i;
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, pfd[i].fd, &event))
			die("epoll_ctl");
	}
	if (epoll < 0)
		die("epoll");
	return epoll;
}

int main(int argc, char **argv)
{
	const char *mode = argc == 2 ? argv[1] : "";
	bool registered = !strcmp(mode, "register");
	bool by_epoll = !strcmp(mode, "epoll");
	bool running = !strcmp(mode, "running"), spins = false;
	struct signalfd_siginfo info;
	unsigned long long version;
	struct pollfd pfd[2];
	unsigned int told = 0;
	sigset_t set;
	int device, epoll = -1;

	if (!registered && !by_epoll && !running && strcmp(mode, "watch")) {
		fputs("usage: topology_follower register|watch|epoll|running\n",
		      stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
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
	if (running && ioctl(device, XTOPO_REGISTER_RUNNING))
		die("XTOPO_REGISTER_RUNNING");
	version = show();

	pfd[0] = (struct pollfd){ .fd = signalfd(-1, &set, 0), .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = device, .events = POLLPRI };
	if (by_epoll)
		epoll = make_epoll(pfd);
	if (running)
		pfd[1].fd = -1;
	for (;;) {
		if ((by_epoll ? poll_by_epoll(epoll, pfd) :
				poll(pfd, 2, spins ? 0 : -1)) < 0)
			die("poll");
		if (spins && version != __atomic_load_n(&page->version,
							__ATOMIC_RELAXED))
			version = show();
		if (pfd[0].revents) {
			if (read(pfd[0].fd, &info, sizeof(info)) != sizeof(info))
				die("signalfd");
			if (info.ssi_signo == SIGTERM)
				break;
			if (info.ssi_signo == SIGUSR2) {
				spins = !spins;
				puts(spins ? "runs" : "sleeps");
				continue;
			}
			version = show();
			if (ioctl(device, XTOPO_ACK, (unsigned long)version))
				die("XTOPO_ACK");
			printf("acknowledged %llu\n", version);
			if (!running)
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
