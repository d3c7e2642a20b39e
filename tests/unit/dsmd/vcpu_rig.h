/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Engines with a played hypervisor each, whose vCPUs run on several hosts, joined by channels
 * that keep the order of each pair.
 */
#ifndef VCPU_RIG_H
#define VCPU_RIG_H

#include "case.h"
#include "dice.h"
#include "engine.h"
#include "played_xen.h"

#define HOSTS	3
#define VCPUS	4
#define PAGES	30
#define NR(a)	(sizeof(a) / sizeof((a)[0]))
#define US	1000ull
#define MS	1000000ull

#define BIND_IPI	32, 7
#define REGISTER	24, 10
#define UNMASK		32, 9

struct node {
	struct played_xen xen;
	struct dsm_engine *engine;
	unsigned int number, warnings, placed;
	char failure[DSM_ENGINE_TEXT];
	char error[DSM_ENGINE_TEXT];	/* of the last dsm_engine_place(); "" : none */
	int time_there[HOSTS];		/* of has_our_time() */
};

extern struct node node[HOSTS];
extern unsigned int in_channel[HOSTS][HOSTS], credits, home, shutdowns_sent;
extern uint64_t clock_ns, answer_ns;
extern uint64_t send_ns;	/* that it takes to send a message */
extern uint8_t where[VCPUS], places[VCPUS];
extern bool class_u;	/* of hosts that begin */
extern bool rings;	/* the pages of host 0 are some */

/** vCPU 0 at the home, the others in turn at the hosts behind it; all can have vCPUs. */
void begin_at(unsigned int of_vm);
/** All vCPUs at the home, and their places there. */
void begin_at_home(unsigned int of_vm);
/** vCPUs 1 to 3 have these places, and are at home, host 0. */
void begin_placed(unsigned int one, unsigned int two, unsigned int three);
/** Two hosts have no connection, or have one (again). */
void part(unsigned int a, unsigned int b);
void join(unsigned int a, unsigned int b);
/** Nobody has memory there, and no page of others is: it may be lost. */
void unbind(unsigned int host);
void begin(void);
void end(void);
/** The engine of a host, with the table as it is now. */
void begin_again(unsigned int host);
/** And without connections. */
void begin_alone(unsigned int host);
struct dsm_engine_params params_of(struct node *n);

/** One message; the type of the next, 0: none; what is on its way is lost. */
bool deliver(unsigned int from, unsigned int to);
unsigned int next_type(unsigned int from, unsigned int to);
void lose_channel(unsigned int from, unsigned int to);
void look(unsigned int host);
/** Time passes, and all look at the clock. */
void pass(uint64_t ns);
/** Until nothing happens, without time. */
void settle(void);

void says(unsigned int host, struct dsm_vcpu_msg msg);
struct dsm_vcpu_msg event(unsigned int vcpu, unsigned int flags, unsigned int vector);
struct dsm_vcpu_msg a_call(unsigned int vcpu, unsigned int host, unsigned int op,
			   unsigned int cmd, unsigned int about, uint64_t arg);
const struct dsm_vcpu_msg *logged(unsigned int host, unsigned int nr, unsigned int type);
void expect_failure(unsigned int host, const char *words);
/** A message that nobody honest has sent; @words: of the failure, NULL: none. */
void lie(unsigned int from, unsigned int to, struct dsm_vcpu_msg msg, const char *words);
/** Xen at a host: is a vCPU up that runs there, after so many SENDs? */
void active(unsigned int host, bool up, uint64_t sends);
void is_shut(bool shut, const char *what);

#endif
