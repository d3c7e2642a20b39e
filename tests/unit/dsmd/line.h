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
	struct rdma_cm_id *id, *listener;
	struct ibv_qp *qp;
	bool by_hand;		/* rdmacm does not know its queue pair */
	bool keeps;		/* what it has received is not posted again */
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *receives, *sends;
	uint8_t *memory;	/* LINE_RECEIVES buffers, and LINE_SENDS */
	unsigned int next;	/* to send from */
};

/* To our own address and that port; then its queue pair has a number. */
void line_prepare(struct line *line, unsigned int port);

/*
 * The same with so many receives and no more; and nothing is done with the queue
 * pair but what is asked for below.
 */
void line_prepare_by_hand(struct line *line, unsigned int port,
			  unsigned int receives);

/* Return: the event that ends the attempt: ESTABLISHED, REJECTED ...; by hand:
 * CONNECT_RESPONSE, and then the host knows nothing of it yet. */
enum rdma_cm_event_type line_connect(struct line *line, const void *data,
				     size_t size);

/* By hand: it receives from now on, and can send.  Before, all that comes is lost. */
void line_ready(struct line *line);

/* By hand: tell the host that the answer has come (RTU). */
void line_establish(struct line *line);

/* By hand: so many receives more. */
void line_receives(struct line *line, unsigned int nr);

/*
 * The other end: listen, wait for a request, and answer it.
 * Return: the port; the number of the opener's queue pair; the event that follows.
 */
unsigned int line_listen(struct line *line);
uint32_t line_request(struct line *line);
enum rdma_cm_event_type line_accept(struct line *line, const void *data,
				    size_t size);

/* Two lines that are connected with each other. */
void line_pair(struct line *a, struct line *b);

/* Return: how the adapter says that it went. */
enum ibv_wc_status line_send(struct line *line, const void *bytes, size_t size);

/* The same for a write to the peer's memory. */
enum ibv_wc_status line_write(struct line *line, uint64_t address, uint32_t key);

/* The same for a write of nothing, which needs no key; and for words of SEND. */
enum ibv_wc_status line_write_nothing(struct line *line);
enum ibv_wc_status line_send_as(struct line *line, enum ibv_wr_opcode opcode,
				const void *bytes, size_t size, uint32_t key);

/* Post, and do not wait. */
void line_post(struct line *line, const void *bytes, size_t size);

/* Return: the size; -1 if nothing comes any more. */
int line_receive(struct line *line, void *bytes);

void line_close(struct line *line);

#endif
