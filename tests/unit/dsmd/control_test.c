// SPDX-License-Identifier: GPL-2.0
/*
 * The control socket: commands and their answers, and clients that send
 * anything, nothing, or do not read.
 */
#include <errno.h>
#include <stdatomic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <ev.h>

#include "case.h"
#include "control.h"
#include "dice.h"

#define LARGE	(3u << 20)

static struct ev_loop *loop;
static char folder[] = "/tmp/control_test.XXXXXX", path[64];
static struct dsm_control *control;
static unsigned int commands;
static char last[DSM_CONTROL_LINE];

static uint64_t asked_last;

static enum dsm_control_answer on_command(void *context, const char *command,
					  const char *word, uint64_t client, char **text)
{
	(void)context;
	CHECK(client > asked_last, "client %llu", (unsigned long long)client);
	asked_last = client;
	commands++;
	snprintf(last, sizeof(last), "%.500s|%.500s", command, word);
	if (!strcmp(command, "large")) {
		*text = malloc(LARGE + 1);
		memset(*text, 'x', LARGE);
		(*text)[LARGE] = 0;
		return DSM_CONTROL_OK;
	}
	if (!strcmp(command, "nothing"))
		return DSM_CONTROL_OK;
	if (!strcmp(command, "later"))
		return DSM_CONTROL_LATER;
	if (!strcmp(command, "now"))
		dsm_control_answer(control, client, DSM_CONTROL_OK, "at once\n");
	if (!strcmp(command, "now"))
		return DSM_CONTROL_LATER;
	*text = strdup(!strcmp(command, "good") ? "an\nanswer\n" : "no such thing");
	return !strcmp(command, "good") ? DSM_CONTROL_OK : DSM_CONTROL_ERROR;
}

static const struct dsm_control_calls calls = { .command = on_command };

static void begin(void)
{
	int rc;

	dice_begin();
	loop = ev_loop_new(EVFLAG_AUTO);
	CHECK(loop && mkdtemp(folder), "a place");
	snprintf(path, sizeof(path), "%s/vm.sock", folder);
	rc = dsm_control_create(loop, path, &calls, NULL, &control);
	CHECK(!rc, "%s", strerror(-rc));
	commands = 0;
	asked_last = 0;
}

static void end(void)
{
	dsm_control_destroy(control);
	CHECK(access(path, F_OK), "the socket is removed");
	rmdir(folder);
	memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
	ev_loop_destroy(loop);
}

/* A client that waits is a thread. */
struct asking {
	pthread_t thread;
	const char *command;
	char *answer;
	int rc;
	atomic_bool done;
};

static void *ask(void *argument)
{
	struct asking *a = argument;

	a->rc = dsm_control_ask(path, a->command, 60., &a->answer);
	a->done = true;
	return NULL;
}

static void run_until(atomic_bool *done)
{
	while (!*done) {
		ev_run(loop, EVRUN_NOWAIT);
		usleep(100);
	}
}

static struct asking asked(const char *command)
{
	struct asking a = { .command = command };

	CHECK(!pthread_create(&a.thread, NULL, ask, &a), "a thread");
	run_until(&a.done);
	pthread_join(a.thread, NULL);
	return a;
}

static void answers(const void *argument)
{
	struct asking a;
	struct stat st;

	(void)argument;
	begin();
	CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0600, "%o", st.st_mode);
	a = asked("good");
	CHECK(!a.rc && !strcmp(a.answer, "an\nanswer\n") && !strcmp(last, "good|"), "%d %s", a.rc, last);
	free(a.answer);
	a = asked("bad word and more");
	CHECK(a.rc == -EREMOTEIO && !strcmp(a.answer, "no such thing") &&
	      !strcmp(last, "bad|word and more"), "%d %s", a.rc, last);
	free(a.answer);
	a = asked("nothing");
	CHECK(!a.rc && !a.answer[0], "%d", a.rc);
	free(a.answer);
	a = asked("large");
	CHECK(!a.rc && strlen(a.answer) == LARGE, "%d", a.rc);
	free(a.answer);
	a = asked("two\nlines");
	CHECK(a.rc == -EINVAL && !a.answer, "%d", a.rc);
	end();
	CHECK(dsm_control_ask(path, "good", 1., &a.answer) == -ENOENT, "nobody");
}

static int connect_client(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(address.sun_path, path);
	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)),
	      "%s", strerror(errno));
	return fd;
}

static void run_a_little(void)
{
	for (unsigned int i = 0; i < 20; i++)
		ev_run(loop, EVRUN_NOWAIT);
}

static ssize_t read_some(int fd)
{
	char bytes[4096];

	return read(fd, bytes, sizeof(bytes));
}

static void bad_clients(const void *argument)
{
	char line[DSM_CONTROL_LINE + 1];
	int fd[DSM_CONTROL_CLIENTS + 1];
	unsigned int i;

	(void)argument;
	begin();
	/* No end of a line. */
	memset(line, 'a', sizeof(line));
	fd[0] = connect_client();
	CHECK(write(fd[0], line, DSM_CONTROL_LINE) == DSM_CONTROL_LINE, "write");
	run_a_little();
	CHECK(!commands && read_some(fd[0]) <= 0 && errno != EAGAIN &&
	      !dsm_control_clients(control), "a line that is too long");
	close(fd[0]);
	/* A 0 in it. */
	fd[0] = connect_client();
	CHECK(write(fd[0], "go\0od\n", 6) == 6, "write");
	run_a_little();
	CHECK(!commands && !dsm_control_clients(control), "a line with a 0");
	close(fd[0]);
	/* Half a line, and gone. */
	fd[0] = connect_client();
	CHECK(write(fd[0], "goo", 3) == 3, "write");
	run_a_little();
	close(fd[0]);
	run_a_little();
	CHECK(!commands && !dsm_control_clients(control), "half a line");
	/* Gone before the answer. */
	fd[0] = connect_client();
	CHECK(write(fd[0], "large\n", 6) == 6, "write");
	ev_run(loop, EVRUN_NOWAIT);
	close(fd[0]);
	run_a_little();
	CHECK(!dsm_control_clients(control), "gone before the answer");
	/* A crowd: those that fit are served, the next is turned away. */
	for (i = 0; i <= DSM_CONTROL_CLIENTS; i++) {
		fd[i] = connect_client();
		run_a_little();
	}
	CHECK(dsm_control_clients(control) == DSM_CONTROL_CLIENTS, "a crowd");
	errno = 0;
	CHECK(!read_some(fd[DSM_CONTROL_CLIENTS]), "one too many: %s", strerror(errno));
	commands = 0;
	CHECK(write(fd[3], "good\n", 5) == 5, "write");
	run_a_little();
	CHECK(commands == 1 && read_some(fd[3]) > 0, "one of the crowd");
	for (i = 0; i <= DSM_CONTROL_CLIENTS; i++)
		close(fd[i]);
	run_a_little();
	end();
}

static int client_that_says(const char *line)
{
	int fd = connect_client();

	CHECK(write(fd, line, strlen(line)) == (ssize_t)strlen(line), "write");
	run_a_little();
	return fd;
}

static void check_answer(int fd, const char *answer)
{
	char bytes[256];
	ssize_t n;

	run_a_little();
	n = read(fd, bytes, sizeof(bytes) - 1);
	CHECK(n >= 0, "%s", strerror(errno));
	bytes[n] = 0;
	CHECK(!strcmp(bytes, answer), "\"%s\" and not \"%s\"", bytes, answer);
	CHECK(!dsm_control_clients(control), "it has its answer, and stays");
	close(fd);
}

/* Who waits for an answer can go, or only write no more, or write too much. */
static void later(const void *argument)
{
	struct asking a = { .command = "later for a thread" };
	uint64_t first;
	int fd[2];

	(void)argument;
	begin();
	fd[0] = client_that_says("later\n");
	first = asked_last;
	fd[1] = client_that_says("later\n");
	CHECK(read_some(fd[0]) < 0 && errno == EAGAIN &&
	      dsm_control_clients(control) == 2, "no answer yet");
	CHECK(dsm_control_waits(control, first) && dsm_control_waits(control, asked_last) &&
	      !dsm_control_waits(control, asked_last + 1) && !dsm_control_waits(control, 0), "both wait");
	dsm_control_answer(control, asked_last, DSM_CONTROL_ERROR, "word and text");
	CHECK(dsm_control_waits(control, first) && !dsm_control_waits(control, asked_last), "one does");
	run_a_little();
	CHECK(dsm_control_clients(control) == 1, "the second is answered");
	dsm_control_answer(control, asked_last, DSM_CONTROL_OK, "again");
	dsm_control_answer(control, asked_last + 1, DSM_CONTROL_OK, "nobody");
	dsm_control_answer(control, 0, DSM_CONTROL_OK, "nobody");
	dsm_control_answer(control, first, DSM_CONTROL_OK, NULL);
	check_answer(fd[1], "error: word and text\n");
	check_answer(fd[0], "ok\n");
	check_answer(client_that_says("now\n"), "ok\nat once\n");

	close(client_that_says("later\n"));
	run_a_little();
	CHECK(!dsm_control_clients(control), "who is gone has no place");
	CHECK(!dsm_control_waits(control, asked_last), "nor waits");
	dsm_control_answer(control, asked_last, DSM_CONTROL_OK, "nobody hears it");

	fd[0] = client_that_says("later\n");
	CHECK(!shutdown(fd[0], SHUT_WR), "shutdown");
	run_a_little();
	CHECK(dsm_control_clients(control) == 1, "it only writes no more");
	dsm_control_answer(control, asked_last, DSM_CONTROL_OK, "said\n");
	check_answer(fd[0], "ok\nsaid\n");

	fd[0] = client_that_says("later\n");
	CHECK(write(fd[0], "x", 1) == 1, "write");
	run_a_little();
	CHECK(!dsm_control_clients(control), "more than one line");
	close(fd[0]);

	CHECK(!pthread_create(&a.thread, NULL, ask, &a), "a thread");
	first = asked_last;
	while (asked_last == first)
		ev_run(loop, EVRUN_NOWAIT);
	dsm_control_answer(control, asked_last, DSM_CONTROL_OK, "for a thread");
	run_until(&a.done);
	pthread_join(a.thread, NULL);
	CHECK(!a.rc && !strcmp(a.answer, "for a thread") &&
	      !strcmp(last, "later|for a thread"), "%d", a.rc);
	free(a.answer);

	/* The end of the socket is the end of who waits. */
	fd[0] = client_that_says("later\n");
	end();
	CHECK(!read_some(fd[0]), "the end");
	close(fd[0]);
}

static void fuzz(const void *argument)
{
	char line[64];
	unsigned int i, k;

	(void)argument;
	begin();
	for (i = 0; i < 500; i++) {
		int fd = connect_client();
		size_t size = 1 + dice_below(sizeof(line) - 1);

		for (k = 0; k < size; k++)
			line[k] = (char)(dice_below(8) ? dice_below(256) : '\n');
		CHECK(write(fd, line, size) == (ssize_t)size, "write");
		run_a_little();
		close(fd);
		run_a_little();
		CHECK(!dsm_control_clients(control), "it stays");
	}
	CHECK(commands > 50, "%u commands", commands);
	end();
}

static void places(const void *argument)
{
	struct dsm_control *other;
	char long_path[256];
	int fd;

	(void)argument;
	begin();
	CHECK(dsm_control_create(loop, path, &calls, NULL, &other) == -EADDRINUSE, "in use");
	memset(long_path, 'a', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = 0;
	CHECK(dsm_control_create(loop, long_path, &calls, NULL, &other) == -ENAMETOOLONG, "long");
	CHECK(dsm_control_create(loop, "/nowhere/at/all", &calls, NULL, &other) == -ENOENT, "nowhere");
	end();
	/* What a process that was killed has left. */
	CHECK(mkdtemp(folder), "a place");
	snprintf(path, sizeof(path), "%s/vm.sock", folder);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	{
		struct sockaddr_un address = { .sun_family = AF_UNIX };

		strcpy(address.sun_path, path);
		CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)), "bind");
	}
	close(fd);
	loop = ev_loop_new(EVFLAG_AUTO);
	CHECK(!dsm_control_create(loop, path, &calls, NULL, &control), "what was left is removed");
	end();
}

static const struct test_case cases[] = {
	{ "control: answers", answers, NULL },
	{ "control: bad clients", bad_clients, NULL },
	{ "control: answers that come later", later, NULL },
	{ "control: fuzz", fuzz, NULL },
	{ "control: places", places, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
