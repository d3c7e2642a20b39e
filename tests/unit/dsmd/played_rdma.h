/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An RDMA adapter and its connection manager that are played: what rdma.c and
 * queue_pair.c call of librdmacm and libibverbs, between hosts of one process and one
 * thread.  A program that is linked with it needs no device.
 *
 * It keeps to the order of the real ones: who has the answer sends the RTU when it looks
 * at it; rdmacm sets access flags at each state; a SEND waits for a receive for ever; an
 * event of the completion channel comes once for each time that it was asked for; what an
 * identifier's device has made is gone before the identifier is.  What is not kept to
 * (a queue that is overrun, a buffer outside of its region, an event that is not
 * acknowledged) ends the case.
 */
#ifndef PLAYED_RDMA_H
#define PLAYED_RDMA_H

#include <stdbool.h>

#include <rdma/rdma_cma.h>

struct played_rdma {
	const char *fails;	/* the name of a call that fails; NULL: none */
	int error;		/* its errno */
	unsigned int after;	/* calls of that name that go well before */
	bool lose_rtu;		/* what says "established" to the acceptor */
	bool stand_still;	/* no SEND arrives; played_go_on() */
	bool silent;		/* what is completed is not told of: that event is late */
	bool answer_lies;	/* an acceptor's answer has a bit that is wrong */
	unsigned int requests, rejects, connects, accepts;
	unsigned int objects;	/* of a device, that were made, and not destroyed */
	unsigned int ids, events;	/* likewise; events that were not acknowledged */
	struct ibv_device_attr adapter;
};

extern struct played_rdma played;

/* No failure, no delay. */
void played_begin(void);

/* SENDs arrive again, those that wait first. */
void played_go_on(void);

/* 0: the queue pair that was made last, 1: the one before. */
struct ibv_qp *played_last_qp(unsigned int back);

/* What the host at the other end of @qp sends, whatever its transport thinks of it. */
void played_say(struct ibv_qp *qp, const void *bytes, uint32_t size);

/* The next completion of a SEND of @qp is this, and the queue pair is at its end. */
void played_break(struct ibv_qp *qp, enum ibv_wc_status status);

/* May the peer write, says the adapter? */
bool played_may_write(const struct ibv_qp *qp);

/* How many receives are posted. */
unsigned int played_receives(const struct ibv_qp *qp);

/* The power of two of its time-out. */
unsigned int played_ack_timeout(const struct ibv_qp *qp);

/* A stranger asks for a connection at @port from @from. */
void played_ask(uint16_t port, const struct sockaddr *from, const void *bytes, uint8_t size);

/* The connection manager tells the end of @qp of an event. */
void played_event(struct ibv_qp *qp, enum rdma_cm_event_type type, int status);

#endif
