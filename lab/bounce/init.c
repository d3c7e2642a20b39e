/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only program of the guest whose pages bounce: it keeps some CPUs busy with
 * a loop that touches no memory, so that what bounces is the kernel's, and says
 * to the plugin when to count (magic.h). Itself it sleeps on CPU 0, which is
 * the home's.
 *
 * Linux hands on to init's environment what is said on its command line and
 * it does not know itself:
 *	bounce_cpus=1,2		the CPUs with loops
 *	bounce_loops=N		on each of them
 *	bounce_settle=S		seconds from the first bounce until they are counted
 *	bounce_seconds=S	in which they are counted
 *	bounce_turns=N		if it is there: so many times, this program here and one
 *				on the first of these CPUs hand a page to each other
 *				while pages are counted, for who tests the plugin
 *
 * It prints, when all is over: "@tick NS" (the period of a tick), "@seconds S",
 * then "@begin" and "@end", each followed by /proc/interrupts; "@done". What it
 * prints is in no figure: it is read before, and printed after.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <time.h>
#include <unistd.h>

#include "magic.h"

static void die(const char *what)
{
	printf("@failed %s: %s\n", what, strerror(errno));
	fflush(stdout);
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void start_loop(int cpu)
{
	int child = fork();

	if (child < 0)
		die("fork");
	if (child)
		return;
	bind_to(cpu);
	for (;;)
		__asm__ volatile ("");
}

/* Whose turn it is: even, CPU 0's. */
static volatile int *turn;

/*
 * The other one's word is looked at now and then only: QEMU tells of a write when
 * it is over, and who looks all the time sees it before the plugin has heard of it.
 */
static void take_turns(int mine, int turns)
{
	int i;

	while (turns--) {
		while (*turn % 2 != mine)
			for (i = 0; i < 5000; i++)
				__asm__ volatile ("");
		*turn = *turn + 1;
	}
}

static void start_turns(int cpu, int turns)
{
	int child;

	turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (turn == MAP_FAILED)
		die("mmap");
	*turn = 0;
	child = fork();
	if (child < 0)
		die("fork");
	if (child)
		return;
	bind_to(cpu);
	take_turns(1, turns);
	_exit(0);
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		errno = EINVAL;
		die(name);
	}
	return value;
}

static void read_interrupts(char *text, size_t size)
{
	int fd = open("/proc/interrupts", O_RDONLY);
	size_t length = 0;
	ssize_t got;

	if (fd < 0)
		die("/proc/interrupts");
	while (length < size - 1 && (got = read(fd, text + length, size - 1 - length)) > 0)
		length += got;
	text[length] = '\0';
	close(fd);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(void)
{
	static char begun[1 << 16], ended[1 << 16];
	struct timespec tick;
	double from, until;
	int loops, turns = getenv("bounce_turns") ? atoi(getenv("bounce_turns")) : 0;
	char *cpus, *word;

	if (mount("proc", "/proc", "proc", 0, NULL))
		die("/proc");
	bind_to(0);
	if (turns > 0)
		start_turns(atoi(setting("bounce_cpus")), turns);
	cpus = strdup(setting("bounce_cpus"));
	for (word = strtok(cpus, ","); word; word = strtok(NULL, ","))
		for (loops = atoi(setting("bounce_loops")); loops > 0; loops--)
			start_loop(atoi(word));
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	sleep(1);

	BOUNCE_SAY(BOUNCE_PLAY);
	sleep(atoi(setting("bounce_settle")));
	read_interrupts(begun, sizeof(begun));
	from = seconds_now();
	BOUNCE_SAY(BOUNCE_COUNT);
	take_turns(0, turns);
	sleep(atoi(setting("bounce_seconds")));
	BOUNCE_SAY(BOUNCE_END);
	until = seconds_now();
	read_interrupts(ended, sizeof(ended));

	printf("@tick %ld\n@seconds %.3f\n@begin\n%s@end\n%s@done\n", tick.tv_nsec, until - from, begun, ended);
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
