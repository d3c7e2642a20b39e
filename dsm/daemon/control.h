/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A socket below /run/xenuma/dsmd at which dsmctl(8) asks a dsmd.
 *
 * A client sends one line, a command with its word, if it has one, after a
 * space; the answer is a line "ok" or "error: ..." and then the text of the
 * answer, up to the end of the connection.  Only root can open the socket;
 * nonetheless a client may send anything at any speed: its line is bounded, and
 * so are its time and the number of clients.  An answer may come later; who asked
 * may be gone by then, and what it asked for goes on.
 *
 * Context: the protocol thread.  Nothing blocks.
 */
#ifndef DSM_CONTROL_H
#define DSM_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_CONTROL_FOLDER	"/run/xenuma/dsmd"
#define DSM_CONTROL_LINE	1024	/* of a command, with its new line */
#define DSM_CONTROL_CLIENTS	8	/* more are turned away */
#define DSM_CONTROL_SECONDS	10.	/* for a command, and for its answer */
#define DSM_CONTROL_LATE	150.	/* s until an answer that comes later */

struct ev_loop;
struct dsm_control;

enum dsm_control_answer {
	DSM_CONTROL_OK,
	DSM_CONTROL_ERROR,
	DSM_CONTROL_LATER,	/* by dsm_control_answer() */
};

struct dsm_control_calls {
	/**
	 * A command.
	 * @word: what follows it, or "".
	 * @client: who asks, for an answer that comes later.  Not 0, and not the
	 * number of anybody before.
	 * @text: the answer, for free(); NULL: none.  If it is an error, what is wrong.
	 */
	enum dsm_control_answer (*command)(void *context, const char *command,
					   const char *word, uint64_t client,
					   char **text);
};

/**
 * Listen at the socket @path.  What another process left there is removed; if a
 * process listens there, -EADDRINUSE.
 * Return: 0; -errno.
 */
int dsm_control_create(struct ev_loop *loop, const char *path,
		       const struct dsm_control_calls *calls, void *context,
		       struct dsm_control **control);

/** Answers that are under way are cut; the socket is removed. */
void dsm_control_destroy(struct dsm_control *control);

/**
 * The answer to whom command() said DSM_CONTROL_LATER.  Nothing happens if the
 * client is gone, has been answered, or has never been.
 * @answer: OK or ERROR.  @text: or NULL.
 */
void dsm_control_answer(struct dsm_control *control, uint64_t client,
			enum dsm_control_answer answer, const char *text);

/** Return: it has not gone, nor been answered. */
bool dsm_control_waits(const struct dsm_control *control, uint64_t client);

/** Return: clients now. */
unsigned int dsm_control_clients(const struct dsm_control *control);

/**
 * For clients: ask the dsmd at @path, and wait for its answer.
 * @seconds: most between two parts of it; DSM_CONTROL_LATE and some more for a
 * command that is answered later.
 * @answer: its text, for free(), also of an error.
 * Return: 0; -EREMOTEIO: it said "error"; -EPROTO: it said something else; what
 * connect() and read() say; -ETIMEDOUT.
 */
int dsm_control_ask(const char *path, const char *command, double seconds,
		    char **answer);

/** The same for any line, of which all that comes is the answer: dsmd-host's socket. */
int dsm_control_ask_line(const char *path, const char *line, double seconds,
			 char **answer);

#ifdef __cplusplus
}
#endif

#endif
