// SPDX-License-Identifier: GPL-2.0
/*
 * A ring of lines between all threads and the one that writes, and the last state
 * beside it: a line may be lost when too many wait, the VM's state may not.
 */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "log.h"

#define LINES	256

struct line {
	enum dsm_log_level level;
	char text[DSM_LOG_LINE];
};

static struct {
	pthread_mutex_t lock;	/* of all below */
	pthread_cond_t more;
	struct line line[LINES];
	unsigned int first, nr;
	unsigned long lost;
	bool stated;		/* a state waits for publish() */
	char state[DSM_LOG_LINE];	/* the last one: nobody asks for those before */
	bool running, ending;
	/* not changed while the thread runs */
	pthread_t thread;
	const char *vm;
	bool to_syslog;
	void (*publish)(void *context, const char *state);
	void *context;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

static const char *level_name(enum dsm_log_level level)
{
	switch (level) {
	case DSM_LOG_ERROR:
		return "error";
	case DSM_LOG_WARNING:
		return "warning";
	case DSM_LOG_NOTICE:
		return "notice";
	case DSM_LOG_INFO:
		return "info";
	}
	return "?";
}

void dsm_log_quote(const char *text, char *quoted, unsigned int size)
{
	unsigned int at = 0;

	for (; *text && at + 2 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			quoted[at++] = '\\';
		quoted[at++] = c < ' ' || c == 0x7f ? ' ' : (char)c;
	}
	quoted[at] = 0;
}

static void write_line(const struct line *line)
{
	char quoted[2 * DSM_LOG_LINE];

	dsm_log_quote(line->text, quoted, sizeof(quoted));
	fprintf(stderr, "<%d>level=%s vm=%s msg=\"%s\"\n", line->level,
		level_name(line->level), queue.vm, quoted);
	if (queue.to_syslog)
		syslog(line->level, "level=%s vm=%s msg=\"%s\"",
		       level_name(line->level), queue.vm, quoted);
}

/* With the lock, which is let go meanwhile. */
static void publish_state(void)
{
	char state[DSM_LOG_LINE];

	memcpy(state, queue.state, sizeof(state));
	queue.stated = false;
	pthread_mutex_unlock(&queue.lock);
	if (queue.publish)
		queue.publish(queue.context, state);
	pthread_mutex_lock(&queue.lock);
}

/* With the lock, which is let go meanwhile.  What was lost is said when nothing waits. */
static void write_first(void)
{
	struct line line = { .level = DSM_LOG_WARNING };

	if (queue.nr) {
		line = queue.line[queue.first];
		queue.first = (queue.first + 1) % LINES;
		queue.nr--;
	} else {
		snprintf(line.text, sizeof(line.text), "%lu lines were lost", queue.lost);
		queue.lost = 0;
	}
	pthread_mutex_unlock(&queue.lock);
	write_line(&line);
	pthread_mutex_lock(&queue.lock);
}

static void write_all(void)
{
	while (queue.stated || queue.nr || queue.lost) {
		if (queue.stated)	/* before lines that were there: a terminal may be slow */
			publish_state();
		else
			write_first();
	}
}

static void *run(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&queue.lock);
	for (;;) {
		write_all();
		if (queue.ending)
			break;
		pthread_cond_wait(&queue.more, &queue.lock);
	}
	pthread_mutex_unlock(&queue.lock);
	return NULL;
}

int dsm_log_begin(const char *vm, bool to_syslog,
		  void (*publish)(void *context, const char *state), void *context)
{
	sigset_t all, before;
	int rc;

	queue.vm = vm;
	queue.to_syslog = to_syslog;
	queue.publish = publish;
	queue.context = context;
	queue.ending = false;
	if (to_syslog)
		openlog("dsmd", LOG_PID, LOG_DAEMON);
	/* Signals are the protocol thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&queue.thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	queue.running = !rc;
	return -rc;
}

void dsm_log(enum dsm_log_level level, const char *format, ...)
{
	struct line *line;
	va_list words;

	va_start(words, format);
	pthread_mutex_lock(&queue.lock);
	if (queue.nr == LINES) {
		queue.lost++;
	} else {
		line = &queue.line[(queue.first + queue.nr++) % LINES];
		line->level = level;
		vsnprintf(line->text, sizeof(line->text), format, words);
	}
	pthread_cond_signal(&queue.more);
	pthread_mutex_unlock(&queue.lock);
	va_end(words);
}

void dsm_log_state(const char *state)
{
	pthread_mutex_lock(&queue.lock);
	snprintf(queue.state, sizeof(queue.state), "%s", state);
	queue.stated = true;
	pthread_cond_signal(&queue.more);
	pthread_mutex_unlock(&queue.lock);
}

void dsm_log_end(void)
{
	if (!queue.running)
		return;
	pthread_mutex_lock(&queue.lock);
	queue.ending = true;
	pthread_cond_signal(&queue.more);
	pthread_mutex_unlock(&queue.lock);
	pthread_join(queue.thread, NULL);
	queue.running = false;
}
