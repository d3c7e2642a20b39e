/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Log lines, written by a thread of their own, so that the protocol thread never
 * waits for a disk, a terminal, syslog or xenstore.
 *
 * A line is "level=warning vm=NAME msg=\"...\"", to standard error with the
 * prefix that journald reads ("<4>"), and to syslog if that is wanted.  What
 * does not fit into the queue is counted, and the number is logged.  A state is no
 * line: the last one is always told, before lines that wait.
 *
 * Context: any thread; a lock is held while a line is copied, never while one
 * is written.
 */
#ifndef DSM_LOG_H
#define DSM_LOG_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_LOG_LINE	640	/* bytes of a line, with its 0; longer ones are cut */

enum dsm_log_level {	/* those of syslog */
	DSM_LOG_ERROR = 3,
	DSM_LOG_WARNING = 4,
	DSM_LOG_NOTICE = 5,
	DSM_LOG_INFO = 6,
};

/**
 * Begin.
 * @vm: its name.
 * @to_syslog: besides standard error.
 * @publish: called by the log's thread with the state that dsm_log_state() was
 * given, but for one that another has followed already; may block; may be NULL.
 * Return: 0 or -errno.
 */
int dsm_log_begin(const char *vm, bool to_syslog,
		  void (*publish)(void *context, const char *state), void *context);

void dsm_log(enum dsm_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** The VM's state has changed: for xenstore. */
void dsm_log_state(const char *state);

/** Write what is left, and end.  Nothing may be logged afterwards. */
void dsm_log_end(void);

/** @text as the inside of a quoted string: no quote, no control character. */
void dsm_log_quote(const char *text, char *quoted, unsigned int size);

#ifdef __cplusplus
}
#endif

#endif
