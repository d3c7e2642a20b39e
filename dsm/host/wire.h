/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lines over sockets, each with an end by the clock: from the toolstack, to and
 * from other hosts (TLS, dsm_tls), and to the dsmd of a VM.
 *
 * Context: a process of its own for each request (host.h); waits, until `end`.
 */
#ifndef HOST_WIRE_H
#define HOST_WIRE_H

#include "host.h"

struct wire {
	int fd;				/* does not block; -1: none */
	SSL *ssl;			/* NULL: without */
	struct dsm_tls_who who;
	int64_t expires;		/* the peer's certificate (expiry.h); 0: not known */
	double end;			/* by wire_now() */
	int asker;			/* nobody waits when this socket has ended; 0: none */
	bool cut;			/* it ended without a word */
	char text[DSM_TRANSPORT_TEXT];	/* why it failed */
};

/** Return: s, monotonic. */
double wire_now(void);

/** "192.0.2.7, port 4000" */
void wire_address(const struct sockaddr_storage *address, char *text, size_t size);

/** An accepted socket, with the handshake.  Return: 0; -errno. */
int wire_accept(struct wire *wire, const struct host *host, int fd, double end);

/** To a UNIX socket.  Return: 0; -errno. */
int wire_unix(struct wire *wire, const char *path, double end);

/**
 * To another host's port, from our own address, with the handshake.  A host that
 * has no place just now cuts the connection: it is tried again.
 * Return: 0; -1: "no-dsmd-there" or "unreachable", *answer says so.
 */
int wire_connect(struct wire *wire, struct host *host, unsigned int peer, double end,
		 struct answer *answer);

/** Return: 0; -ETIMEDOUT; -errno. */
int wire_write(struct wire *wire, const char *bytes, size_t size);

/**
 * A line, without its new line.  Nothing may follow it.
 * Return: its length; -EMSGSIZE; -ETIMEDOUT; -ECONNRESET: the end came first.
 */
ssize_t wire_read_line(struct wire *wire, char *line, size_t size);

/** All up to the end.  Return: the length; as above. */
ssize_t wire_read_all(struct wire *wire, char *bytes, size_t size);

/** Takes one that was never opened, too (fd -1). */
void wire_close(struct wire *wire);

/* ---- Questions ---- */

/* One that is under way to another host. */
struct question {
	struct wire wire;
	unsigned int peer;
};

/** A line to another host; @words is put.  Return: 0; -1. */
int question_ask(struct question *question, struct host *host, unsigned int peer,
		 struct json_object *words, double seconds, struct answer *answer);
/** Its reply.  Return: 0; -1: an error, or none came. */
int question_reply(struct question *question, struct host *host, struct answer *answer);

/** Both.  */
int ask_host(struct host *host, unsigned int peer, struct json_object *words,
	     double seconds, struct answer *answer);

/** An object with version, op, and the UUID if there is one. */
struct json_object *question_words(const char *op, const char *uuid);

/**
 * A command to the dsmd of a VM.
 * @text: the answer, for free(); may be NULL.
 * Return: 0; -1: it refused, or did not answer; *answer says why.
 */
int ask_dsmd(struct host *host, const char *name, const char *command, double seconds,
	     char **text, struct answer *answer);

/** The same, until the host that has asked this one is gone: the dsmd goes on with it. */
int ask_dsmd_for_asker(struct host *host, const char *name, const char *command,
		       double seconds, struct answer *answer);

#endif
