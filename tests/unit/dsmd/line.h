/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One end of an RDMA connection without a transport, with calls that block: for
 * strangers, for peers that lie, and to measure with.
 */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#define LINE_RECEIVES	64
#define LINE_BYTES	8192	/* of a buffer */
#define LINE_SENDS	64	/* that may be under way */

struct line {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *receives, *sends;
	uint8_t *memory;	/* LINE_RECEIVES buffers, and LINE_SENDS */
	unsigned int next;	/* to send from */
};

/* To our own address and that port; then its queue pair has a number. */
void line_prepare(struct line *line, unsigned int port);

/* Return: the event that ends the attempt: ESTABLISHED, REJECTED ... */
enum rdma_cm_event_type line_connect(struct line *line, const void *data,
				     size_t size);

/* Two lines that are connected with each other. */
void line_pair(struct line *a, struct line *b);

/* Return: how the adapter says that it went. */
enum ibv_wc_status line_send(struct line *line, const void *bytes, size_t size);

/* The same for a write to the peer's memory. */
enum ibv_wc_status line_write(struct line *line, uint64_t address, uint32_t key);

/* Post, and do not wait. */
void line_post(struct line *line, const void *bytes, size_t size);

/* Return: the size; -1 if nothing comes any more. */
int line_receive(struct line *line, void *bytes);

void line_close(struct line *line);

#endif
