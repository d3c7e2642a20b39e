/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The protocol thread of one VM: an engine, a transport, a hypervisor and a
 * control socket in one event loop.
 *
 * States.  CONNECTING: waits for all peers; a connection that can't be made is
 * tried again.  A VM whose memory comes and goes (description.h, `elastic`) waits
 * for nobody.  RUNNING: one that ends while something is attached is the end of
 * the VM, and is not made again.  LEAVING: this host gives back what it has of others, and
 * then says good-bye.  ENDED: it has.  FAILED: the VM can't go on; OVER: its domain
 * has been destroyed, here, or at its home, which says so.  After both the process
 * stays, so that dsmctl can say why, until it is told to forget the VM.
 *
 * Context: one thread.
 */
#ifndef DSM_WORKER_H
#define DSM_WORKER_H

#include "control.h"
#include "description.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_WORKER_AGAIN	1.	/* s until a connection is tried again */

enum dsm_worker_state {
	DSM_WORKER_CONNECTING,
	DSM_WORKER_RUNNING,
	DSM_WORKER_LEAVING,
	DSM_WORKER_ENDED,
	DSM_WORKER_FAILED,
	DSM_WORKER_OVER,
	DSM_WORKER_STATES
};

const char *dsm_worker_state_name(unsigned int state);

struct dsm_worker_calls {
	/** Something for the log.  @level: of syslog, 3 to 6. */
	void (*log)(void *context, int level, const char *text);
	/** A new state; @text: why, if it has failed or is over. */
	void (*state)(void *context, enum dsm_worker_state state, const char *text);
	/** Told to forget the VM: the process can end. */
	void (*forgotten)(void *context);
};

struct dsm_worker_params {
	struct ev_loop *loop;
	const struct dsm_config *config;		/* has to stay */
	const struct dsm_description *description;	/* has to stay */
	struct dsm_xen *xen;				/* the caller closes it */
	const char *socket;				/* path; NULL: none */
	const struct dsm_worker_calls *calls;
	void *context;
	uint64_t seed;
	/* For tests: instead of what the files say; NULL: nothing. */
	void (*adjust)(void *context, struct dsm_transport_params *params);
	unsigned int step;		/* frames at a time of a "node"; 0: as many as there are */
	double patience;		/* s for a "node", a "leave", and for a host to be ready for vCPUs */
};

struct dsm_worker;

/**
 * Begin, and connect.
 * @text: what went wrong.
 * Return: 0; what dsm_engine_create(), dsm_transport_create() and
 * dsm_control_create() say.
 */
int dsm_worker_create(const struct dsm_worker_params *params,
		      struct dsm_worker **worker, char text[DSM_ENGINE_TEXT]);

/** Not from within one of its calls. */
void dsm_worker_destroy(struct dsm_worker *worker);

enum dsm_worker_state dsm_worker_get_state(const struct dsm_worker *worker);
struct dsm_engine *dsm_worker_engine(struct dsm_worker *worker);
struct dsm_transport *dsm_worker_transport(struct dsm_worker *worker);

/** Give back what is here of others, and end.  Return: 0; -EBUSY: not in this state. */
int dsm_worker_leave(struct dsm_worker *worker);

/** The hypervisor may have something, though it has no descriptor. */
void dsm_worker_kick(struct dsm_worker *worker);

/** Statistics as they are now.  Valid until the next call. */
const struct dsm_stats *dsm_worker_stats(struct dsm_worker *worker);

#ifdef __cplusplus
}
#endif

#endif
