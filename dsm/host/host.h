/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dsmd-host: the process of a host that starts and ends the dsmds of VMs, and
 * carries commands between hosts; dsmd-host(8), docs/decisions/0086.
 *
 * A request is a process.  The parent has an event loop (main.c) that accepts
 * connections, counts them, forks for each, and limits its time; it knows nothing
 * of a VM.  The child reads one line, does what it says from top to bottom with a
 * limit of time for each step, and undoes it from bottom to top; it replies, and
 * ends.  What has to be known of a VM is in files (record.h), so each process may
 * be killed at any point: who asks again finds what is there, and goes on.
 *
 * Locks, in this order, all of files: that of a VM (record_lock()), held by who
 * changes something for it; that of the numbers, held while a record is made.
 * Nobody asks another host while he has the second.  A home that asks another
 * host has the VM's lock at home; there the host takes its own.  No host asks the
 * home while it has a VM's lock but with "known", which takes none.
 *
 * Who is trusted.  At the UNIX socket: root.  At the port: hosts of dsm.toml by
 * their certificates, each for VMs of which it is the home: the home is who
 * reserved the VM's UUID here, and nobody reserves one that a domain here has.
 * Every field is checked nevertheless.
 *
 * Context: one thread in each process; in the parent libxenstore has one more,
 * which takes no lock of ours and is not in the children.
 */
#ifndef HOST_H
#define HOST_H

#include <json-c/json.h>

#include "description.h"
#include "expiry.h"
#include "tls.h"
#include "version.h"
#include "xen.h"

#define HOST_VERSION		DSM_HOST_VERSION
#define HOST_LINE		65536	/* of a request or a reply, with its new line */
#define HOST_TEXT		400	/* of an error */
#define HOST_WORD		20

/* s; libxl waits 30 for enable, 120 for node and 2 for state. */
#define HOST_REQUEST_S		5.	/* until the request is there */
#define HOST_JOB_S		118	/* for all of it; then the process ends */
#define HOST_ENABLE_S		25.	/* until the dsmd runs; then, or after a failure, a reply */
#define HOST_BEFORE_S		12.	/* enable: waiting for the end of the domain before */
#define HOST_NODE_S		110.
#define HOST_LEAVE_S		105.	/* a dsmd takes 103 at most */
#define HOST_PLACE_S		85.	/* of 90 */
#define HOST_HOME_S		55.	/* of 60 */
#define HOST_STATE_S		1.5
#define HOST_FOLLOW_S		12.	/* of 15 */
#define HOST_START_S		15.	/* until a dsmd runs */
#define HOST_BUSY_S		2.	/* waiting for another request of the VM */
#define HOST_ASK_S		8.	/* for what takes no time there */

/* What is known in each process of dsmd-host. */
struct host {
	const char *config_file, *folder, *socket, *dsmd;
	bool unlocked;			/* dsmds do not lock memory, for tests */
	struct dsm_config config;
	struct dsm_transport_params params;	/* of the own port */
	SSL_CTX *tls;
	struct dsm_expiry expiry;	/* of what tls has */
	const struct host_xen *xen;
	double end;			/* of the request, by wire_now(); 0: of each step */
	int asker;			/* the socket of another host that has asked; 0: none has */
	unsigned int turn;		/* where this sweep begins */
};

/** Return: s in which a dsmd of this configuration answers "connect", or "leave". */
double host_opening_s(const struct host *host, bool leaves);

/** Return: so many seconds, or fewer if the request ends before. */
double host_left(const struct host *host, double seconds);

/* A reply.  An error if word is not "". */
struct answer {
	char word[HOST_WORD];		/* of docs/dsm-control.md */
	char text[HOST_TEXT + 1];
	struct json_object *more;	/* keys besides version and ok; or NULL */
};

#define SAY_ERROR	3	/* as syslog(3) has them */
#define SAY_WARNING	4
#define SAY_NOTICE	5
/** A line of the log.  @vm: of whom, a name that can be a file's; NULL. */
__attribute__((format(printf, 3, 4)))
void host_say(int level, const char *vm, const char *format, ...);

/** Why Xen can't be used, by facts()'s -errno, for people. */
void host_why_not_xen(const struct host *host, int rc, char text[HOST_TEXT + 1]);

/** Say why not.  A reply that is an error already stays.  Return: -1. */
__attribute__((format(printf, 3, 4)))
int answer_error(struct answer *answer, const char *word, const char *format, ...);
/** An error of a text "WORD TEXT"; `internal` if there is no such word.  Return: -1. */
int answer_words(struct answer *answer, const char *words);
/** The error of another host as one of ours: it has a word of the contract.  Return: -1. */
int answer_pass(struct answer *answer, const struct answer *reply);
/** A key more. */
void answer_add(struct answer *answer, const char *key, struct json_object *value);
/** Return: the line, with its new line, for free(). */
char *answer_line(const struct answer *answer);
/** A reply of another host.  Return: 0; -1: it is an error, or none, and *answer says so. */
int answer_read(struct answer *answer, const char *line, const char *host);
void answer_free(struct answer *answer);

/**
 * A line as a JSON object.
 * Return: NULL, and *answer says why.
 */
struct json_object *read_line_json(const char *line, size_t size, struct answer *answer);

/* A key of a request.  Return: 0; -1: it is missing or wrong, and *answer says so. */
int read_number(struct json_object *from, const char *key, uint64_t least,
		uint64_t most, uint64_t *number, struct answer *answer);
/** A text of 1 to @most bytes, without controls; stays with @from. */
const char *read_text(struct json_object *from, const char *key, size_t most,
		      struct answer *answer);
int read_uuid(struct json_object *from, uint8_t uuid[16], char text[37],
	      struct answer *answer);

/* ---- What a host knows of itself and the others (host.c) ---- */

/** Return: the number of a host; DSM_NOBODY, and *answer says which there are. */
unsigned int host_find(const struct host *host, const char *name, struct answer *answer);
const char *host_name(const struct host *host, unsigned int number);
/** Return: 0; -1: no domain has this number and UUID, and *answer says so. */
int guest_check_domid(struct host *host, uint32_t domid, const uint8_t uuid[16],
		      struct answer *answer);

/* ---- What is asked (guest.c, peer.c, sweep.c) ---- */

/** A request at the UNIX socket. */
void guest_request(struct host *host, struct json_object *request, struct answer *answer);
/** A request of host @from. */
void peer_request(struct host *host, unsigned int from, struct json_object *request,
		  struct answer *answer);
/**
 * Remove what nobody needs any more: of domains that have ended, of homes that
 * know nothing of a VM, or are lost.
 */
void sweep(struct host *host);

#endif
