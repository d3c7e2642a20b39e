/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the liar over RDMA (liar_rdma.c) asks the one that has the lies (liar.c).
 *
 * Context: as liar.c.
 */
#ifndef LIAR_H
#define LIAR_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

#define LIAR_FRAME	(DSM_WIRE_BYTES + DSM_PAGE_BYTES)	/* bytes of the longest */

struct session;

/* This dsmd's messages go over RDMA: through TLS there are HELLO, the binding and FAIL. */
extern bool liar_over_rdma;

/* The connection that has said HELLO last has a queue pair.  (Of two hosts: there is one.) */
struct session *liar_begin_rdma(void);

/*
 * dsmd says @frame, which is LIAR_FRAME bytes long here.
 * Return: how many frames there will ever have been when liar_next() has given the last one that
 * is said for it; 0: none is.
 */
uint64_t liar_say(struct session *s, uint8_t *frame);

/* The next frame to go out, LIAR_FRAME bytes at most.  Return: its size; 0: none. */
uint32_t liar_next(struct session *s, uint8_t *bytes);

/* A frame has come.  Return: false: dsmd does not get it. */
bool liar_hears(struct session *s, const uint8_t *frame);

#endif
