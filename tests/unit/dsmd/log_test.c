// SPDX-License-Identifier: GPL-2.0
/*
 * dsmd's log: what becomes of lines and states while its thread is kept.
 */
#include <fcntl.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "log.h"

#define LINES	256	/* that may wait, log.c */

static struct {
	sem_t entered, go_on;	/* of the first call */
	unsigned int calls;
	char state[8][DSM_LOG_LINE];
	off_t written;		/* of the log, at the last call */
	int err;		/* what stderr was */
	FILE *log;		/* what it is */
} kept;

/* As xenstore that takes long, the first time. */
static void publish(void *context, const char *state)
{
	CHECK(context == &kept, "the context");
	CHECK(kept.calls < 8, "a state too many: %s", state);
	snprintf(kept.state[kept.calls], sizeof(kept.state[0]), "%s", state);
	kept.written = lseek(STDERR_FILENO, 0, SEEK_CUR);
	if (kept.calls++)
		return;
	sem_post(&kept.entered);
	sem_wait(&kept.go_on);
	CHECK(!strcmp(state, kept.state[0]), "it has changed meanwhile: %s", state);
}

static void keep_stderr(void)
{
	sem_init(&kept.entered, 0, 0);
	sem_init(&kept.go_on, 0, 0);
	kept.log = tmpfile();
	CHECK(kept.log, "a file");
	kept.err = dup(STDERR_FILENO);
	CHECK(kept.err >= 0 && dup2(fileno(kept.log), STDERR_FILENO) >= 0, "stderr");
}

/* The log's thread has a state, and stays there. */
static void begin(void)
{
	kept.calls = 0;
	keep_stderr();
	CHECK(!dsm_log_begin("web", false, publish, &kept), "the thread");
	dsm_log_state("connecting");
	sem_wait(&kept.entered);
}

static void end(void)
{
	sem_post(&kept.go_on);
	dsm_log_end();
	CHECK(dup2(kept.err, STDERR_FILENO) >= 0, "stderr");
	close(kept.err);
	rewind(kept.log);
}

static void log_lines(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		dsm_log(DSM_LOG_NOTICE, "line %u", i);
}

/* So many lines, in order, and then @lost, if any were. */
static void check_lines(unsigned int nr, const char *lost)
{
	char line[2 * DSM_LOG_LINE], wanted[64];
	unsigned int i;

	for (i = 0; i < nr; i++) {
		snprintf(wanted, sizeof(wanted), "<5>level=notice vm=web msg=\"line %u\"\n", i);
		CHECK(fgets(line, sizeof(line), kept.log) && !strcmp(line, wanted), "%u: %s", i, line);
	}
	CHECK(!fgets(line, sizeof(line), kept.log) == !lost, "the end: %s", line);
	CHECK(!lost || !strcmp(line, lost), "%s", line);
	CHECK(!lost || !fgets(line, sizeof(line), kept.log), "and then: %s", line);
	fclose(kept.log);
}

/*
 * More lines wait than there is room for, and then the VM fails: xenstore hears of
 * it, and before a terminal that may be slow.
 */
static void behind_lines(const void *argument)
{
	(void)argument;
	begin();
	log_lines(LINES + 44);
	dsm_log_state("failed: host beta is lost");
	end();
	CHECK(kept.calls == 2 && !strcmp(kept.state[0], "connecting") &&
	      !strcmp(kept.state[1], "failed: host beta is lost"), "%u: %s", kept.calls, kept.state[kept.calls - 1]);
	CHECK(!kept.written, "behind %ld bytes of lines", (long)kept.written);
	check_lines(LINES, "<4>level=warning vm=web msg=\"44 lines were lost\"\n");
}

/* Nobody asks for those in between; and no line is lost for a state. */
static void the_last(const void *argument)
{
	(void)argument;
	begin();
	dsm_log_state("running");
	log_lines(LINES);
	dsm_log_state("failed");
	end();
	CHECK(kept.calls == 2 && !strcmp(kept.state[1], "failed"), "%u: %s", kept.calls, kept.state[kept.calls - 1]);
	check_lines(LINES, NULL);
}

/* The queue is a ring: what is in it goes over its end.  And it can begin again. */
static void over_the_end(const void *argument)
{
	(void)argument;
	begin();
	log_lines(LINES - 3);
	end();
	check_lines(LINES - 3, NULL);
	begin();
	log_lines(LINES + 1);
	end();
	check_lines(LINES, "<4>level=warning vm=web msg=\"1 lines were lost\"\n");
	begin();
	log_lines(1);
	end();
	check_lines(1, NULL);
}

/* What waits is written, also if the thread has seen none of it when the end comes. */
static void at_once(const void *argument)
{
	unsigned int i;

	(void)argument;
	for (i = 0; i < 100; i++) {
		keep_stderr();
		CHECK(!dsm_log_begin("web", false, NULL, NULL), "the thread");
		dsm_log_state("ended");
		log_lines(2);
		end();
		check_lines(2, NULL);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "log: a state behind lines", behind_lines, NULL },
		{ "log: the last state", the_last, NULL },
		{ "log: over the end of the queue", over_the_end, NULL },
		{ "log: an end at once", at_once, NULL },
	};

	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
