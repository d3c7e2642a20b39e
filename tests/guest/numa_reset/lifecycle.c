// SPDX-License-Identifier: GPL-2.0
/*
 * Marks and processes that come and go: cancel, fork, exec, exit, all of them
 * also while another thread or process resets.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nrtest.h"

#define LEN	(2UL << 20)

static int pidfd_open(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

/* --- Cancel ------------------------------------------------------------------ */

static void cancel(enum page_kind kind, const char *name)
{
	char *mem = memory_on(mem_node[0], LEN, kind);
	struct numa_reset_args marked, unmarked;
	unsigned long faults;
	int err;

	reset_range(mem, LEN, 0, NRST_TOUCH, &marked);
	err = reset_range(mem, LEN, 0, NRST_CANCEL, &unmarked);
	run_on_node(mem_node[1]);
	faults = vmstat("numa_hint_faults");
	touch(mem, LEN);
	fill_pattern(mem, LEN);
	faults = vmstat("numa_hint_faults") - faults;
	ok(!err && marked.marked == LEN / PAGE &&
	   unmarked.marked == marked.marked && !faults &&
	   pages_on(mem, LEN, mem_node[0]) == LEN / PAGE &&
	   !count_damaged(mem, LEN), name,
	   "%llu marked, %llu unmarked, %lu faults",
	   (unsigned long long)marked.marked,
	   (unsigned long long)unmarked.marked, faults);
	munmap(mem, LEN);
}

static void mark_twice(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct numa_reset_args again;

	reset_range(mem, LEN, 0, NRST_TOUCH, NULL);
	reset_range(mem, LEN, 0, NRST_TOUCH, &again);
	ok(again.marked == 0, "what is marked is not marked again", "%llu",
	   (unsigned long long)again.marked);
	munmap(mem, LEN);
}

/* Protections of the user survive marks and their removal. */
static void protections(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	struct numa_reset_args none, some;
	int status;
	pid_t pid;

	mprotect(mem, LEN, PROT_NONE);
	reset_range(mem, LEN, 0, NRST_TOUCH, &none);
	mprotect(mem, LEN, PROT_READ);
	reset_range(mem, LEN, 0, NRST_TOUCH, &some);
	run_on_node(mem_node[1]);
	touch(mem, LEN);

	pid = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile char *)mem = 1;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ok(none.marked == 0 && some.marked == LEN / PAGE &&
	   WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV &&
	   !count_damaged(mem, LEN),
	   "unreadable memory is not marked, read-only memory stays so",
	   "%llu and %llu marked, status 0x%x",
	   (unsigned long long)none.marked, (unsigned long long)some.marked,
	   status);
	munmap(mem, LEN);
}

/* --- Fork ---------------------------------------------------------------------- */

/*
 * The child has copies of the marked entries, but is not under next touch: no
 * window goes with its touch, so that each of its pages takes a fault.
 */
static void fork_does_not_inherit(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	int status;
	pid_t pid;

	numa_reset(-1, NULL, 0, NRST_CANCEL);	/* of another granule */
	reset_range(mem, LEN, 21, NRST_TOUCH, NULL);
	pid = fork();
	if (!pid) {
		unsigned long faults = vmstat("numa_hint_faults");

		touch(mem, LEN);
		faults = vmstat("numa_hint_faults") - faults;
		_exit(faults != LEN / PAGE || count_damaged(mem, LEN));
	}
	waitpid(pid, &status, 0);
	ok(status == 0, "a child does not inherit next touch", "status 0x%x",
	   status);

	touch(mem, LEN);
	ok(!count_damaged(mem, LEN), "the parent goes on after a fork");
	munmap(mem, LEN);
}

static volatile bool stop;
static int reset_errors;

static void *reset_all_the_time(void *unused)
{
	(void)unused;
	while (!stop)
		reset_errors += numa_reset(-1, NULL, 0, NRST_TOUCH |
					   NRST_POLICY | NRST_FOLLOW) != 0;
	return NULL;
}

static void fork_during_reset(void)
{
	char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
	pthread_t thread;
	int i, bad = 0;

	stop = false;
	pthread_create(&thread, NULL, reset_all_the_time, NULL);
	for (i = 0; i < 60; i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			size_t damaged = count_damaged(mem, LEN);

			fill_pattern(mem, LEN);
			_exit(damaged || count_damaged(mem, LEN));
		}
		fill_pattern(mem, LEN);
		waitpid(pid, &status, 0);
		bad += status != 0;
	}
	stop = true;
	pthread_join(thread, NULL);
	ok(!bad && !reset_errors && !count_damaged(mem, LEN),
	   "fork during reset", "%d children bad, %d errors", bad,
	   reset_errors);
	munmap(mem, LEN);
}

/* --- Other processes -------------------------------------------------------------- */

/* A child with memory on the first node that waits for a line, then checks. */
static void reset_of_another(void)
{
	int go[2], report[2], pidfd, status;
	struct numa_reset_args args = { 0 };
	char ready;
	pid_t pid;
	int err;

	if (pipe(go) || pipe(report))
		die("pipe: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);

		if (write(report[1], "r", 1) != 1 || read(go[0], &ready, 1) != 1)
			_exit(100);
		run_on_node(mem_node[1]);
		touch(mem, LEN);
		_exit(pages_on(mem, LEN, mem_node[1]) != LEN / PAGE ||
		      count_damaged(mem, LEN));
	}
	if (read(report[0], &ready, 1) != 1)
		die("child gone");
	pidfd = pidfd_open(pid);
	err = numa_reset(pidfd, &args, sizeof(args), NRST_TOUCH);
	if (write(go[1], "g", 1) != 1)
		die("child gone");
	waitpid(pid, &status, 0);
	ok(!err && args.marked >= LEN / PAGE && !status,
	   "pages of another process follow its threads",
	   "error %d, %llu marked, status 0x%x", err,
	   (unsigned long long)args.marked, status);
	close(pidfd);
}

static void exit_during_reset(void)
{
	int i, unexpected = 0, gone = 0;

	for (i = 0; i < 40; i++) {
		pid_t pid = fork();
		int pidfd, err;

		if (!pid) {
			char *mem = memory_on(mem_node[0], LEN, SMALL_PAGES);
			int j;

			for (j = 0; j < i % 8; j++)
				touch(mem, LEN);
			if (i % 2)
				raise(SIGKILL);
			_exit(0);
		}
		pidfd = pidfd_open(pid);
		do {
			err = numa_reset(pidfd, NULL, 0,
					 NRST_TOUCH | NRST_POLICY);
		} while (!err);
		gone += err == -ESRCH;
		unexpected += err != -ESRCH;
		waitpid(pid, NULL, 0);
		close(pidfd);
	}
	ok(!unexpected && gone == 40, "exit during reset",
	   "%d as expected, %d not", gone, unexpected);
}

static void exec_during_reset(void)
{
	int pidfd, status, err, resets = 0, replaced = 0, unexpected = 0;
	pid_t pid = fork();

	if (!pid) {
		execl("/tests/lifecycle", "lifecycle", "exec", "12", NULL);
		_exit(127);
	}
	pidfd = pidfd_open(pid);
	/* -ESRCH: the memory that was under reset is no longer its own. */
	while (!waitpid(pid, &status, WNOHANG)) {
		err = numa_reset(pidfd, NULL, 0, NRST_TOUCH);
		resets++;
		replaced += err == -ESRCH;
		unexpected += err && err != -ESRCH;
	}
	ok(!unexpected && resets > replaced && status == 0,
	   "exec during reset", "%d resets, %d on memory given up, status 0x%x",
	   resets, replaced, status);
	close(pidfd);
}

/* As "lifecycle exec N": N more times itself. */
static int exec_again(int times)
{
	char text[16];

	if (!times)
		return 0;
	snprintf(text, sizeof(text), "%d", times - 1);
	execl("/tests/lifecycle", "lifecycle", "exec", text, NULL);
	return 127;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return exec_again(atoi(argv[2]));

	machine_init();
	write_file("/proc/sys/kernel/numa_balancing", "0");

	cancel(SMALL_PAGES, "cancel takes all marks from small pages");
	cancel(HUGE_PAGES, "cancel takes all marks from huge pages");
	mark_twice();
	protections();
	fork_does_not_inherit();
	fork_during_reset();
	reset_of_another();
	exit_during_reset();
	exec_during_reset();
	return tap_end();
}
