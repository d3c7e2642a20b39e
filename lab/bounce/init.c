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
 *	bounce_shared=1		if it is there: these loops have one memory, as threads have
 *	bounce_settle=S		seconds from the first bounce until they are counted
 *	bounce_seconds=S	in which they are counted
 *	bounce_turns=N		if it is there: so many times, this program here and one
 *				on the first of these CPUs hand a page to each other
 *				while pages are counted, for who tests the plugin
 *	bounce_forks=N		if it is there: so many times a second a program of CPU 0's
 *				starts another one, while pages are counted
 *
 * It prints, when all is over: "@tick NS" (the period of a tick), "@seconds S",
 * then "@begin" and "@end", each followed by /proc/interrupts; "@done". What it
 * prints is in no figure: it is read before, and printed after.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "magic.h"

#define LOOPS "loops"	/* argv[0] of a program of these */

enum { MAX_CPUS = 64 };

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

static int loop(void *cpu)
{
	bind_to(atoi(cpu));
	for (;;)
		__asm__ volatile ("");
	return 0;
}

/* main() of a program of loops: one on each of these CPUs, the first one by itself. */
static int loops(char **cpus)
{
	enum { STACK = 1 << 14 };
	char **other;

	for (other = cpus + 1; *other; other++) {
		char *stack = malloc(STACK);

		if (!stack || clone(loop, stack + STACK, CLONE_VM | SIGCHLD, *other) < 0)
			die("clone");
	}
	return loop(*cpus);
}

/* As a shell starts it: what it has in memory, and its page tables, are of the CPU that it runs on. */
static void start_loops(char **cpus)
{
	int child = fork();

	if (child < 0)
		die("fork");
	if (child)
		return;
	bind_to(atoi(cpus[1]));
	execv("/proc/self/exe", cpus);
	die("exec");
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

static void fork_for(int seconds, int a_second)
{
	int left = seconds * a_second, child;

	while (left--) {
		child = fork();
		if (child < 0)
			die("fork");
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
		usleep(1000000 / a_second);
	}
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

static int setting_or_0(const char *name)
{
	return getenv(name) ? atoi(getenv(name)) : 0;
}

int main(int argc, char **argv)
{
	static char begun[1 << 16], ended[1 << 16];
	char *all[MAX_CPUS + 2] = { LOOPS }, *one[] = { LOOPS, NULL, NULL };
	int turns = setting_or_0("bounce_turns"), forks = setting_or_0("bounce_forks"), count, cpu;
	struct timespec tick;
	double from, until;
	char *cpus, *word;

	if (argc > 1 && !strcmp(argv[0], LOOPS))
		return loops(argv + 1);
	if (mount("proc", "/proc", "proc", 0, NULL))
		die("/proc");
	bind_to(0);
	if (turns > 0)
		start_turns(atoi(setting("bounce_cpus")), turns);
	cpus = strdup(setting("bounce_cpus"));
	for (cpu = 1, word = strtok(cpus, ","); word && cpu <= MAX_CPUS; word = strtok(NULL, ","))
		all[cpu++] = word;
	for (count = atoi(setting("bounce_loops")); count > 0; count--)
		if (setting_or_0("bounce_shared"))
			start_loops(all);
		else
			for (cpu = 1; all[cpu]; cpu++) {
				one[1] = all[cpu];
				start_loops(one);
			}
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	sleep(1);

	BOUNCE_SAY(BOUNCE_PLAY);
	sleep(atoi(setting("bounce_settle")));
	read_interrupts(begun, sizeof(begun));
	from = seconds_now();
	BOUNCE_SAY(BOUNCE_COUNT);
	take_turns(0, turns);
	if (forks > 0)
		fork_for(atoi(setting("bounce_seconds")), forks);
	else
		sleep(atoi(setting("bounce_seconds")));
	BOUNCE_SAY(BOUNCE_END);
	until = seconds_now();
	read_interrupts(ended, sizeof(ended));

	printf("@tick %ld\n@seconds %.3f\n@begin\n%s@end\n%s@done\n", tick.tv_nsec, until - from, begun, ended);
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
