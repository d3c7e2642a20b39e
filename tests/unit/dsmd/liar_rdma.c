// SPDX-License-Identifier: GPL-2.0
/*
 * The liar (liar.c) over RDMA: this file stands between dsmd and its adapter.
 *
 * rdma_create_event_channel(), rdma_create_qp() and rdma_destroy_qp() are found before those of
 * librdmacm, which they call.  What posts and polls is no function of libibverbs but a pointer of the
 * adapter's: those are changed when the first queue pair is made.
 *
 * A SEND of dsmd is a frame.  What liar.c makes of it goes out from memory of our own, as so
 * many SENDs; dsmd is told that its own has arrived when the last of them has, or, if nothing goes out
 * for it, the next time that it asks.  Ours are at most as many at a time as dsmd may have there anyway,
 * so neither queue is overrun.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "liar.h"

#define LINES		4
#define SLOTS		64u		/* DSM_QP_SENDS */
#define OWED		128u		/* more than dsmd has SENDs */
#define RECEIVES	8192u
#define OURS		(1ull << 32)	/* of wr_id; dsmd's have 32 bits */
#define NUMBER		0x00ffffffu	/* DSM_QP_KIND: the rest */

static struct line {
	struct ibv_qp *qp;
	struct session *session;
	struct ibv_mr *mr;
	uint8_t (*memory)[LIAR_FRAME];		/* SLOTS */
	struct {
		bool busy, dsmds;	/* dsmd is told, too */
		uint64_t wr_id;
	} slot[SLOTS];
	uint64_t out;				/* frames that went out */
	struct {
		uint64_t at, wr_id;	/* `out` with the last frame for it */
	} owed[OWED];			/* SENDs of dsmd, in order */
	unsigned int first, nr;
	uint64_t unsaid[OWED];		/* wr_id of those for which nothing goes out */
	unsigned int nr_unsaid;
	const uint8_t *receive[RECEIVES];
} lines[LINES];

static struct rdma_event_channel *(*next_channel)(void);
static int (*next_create)(struct rdma_cm_id *, struct ibv_pd *, struct ibv_qp_init_attr *);
static void (*next_destroy)(struct rdma_cm_id *);
static struct ibv_context_ops next;	/* the adapter's */

static void find_next(void)
{
	if (next_create)
		return;
	*(void **)&next_channel = dlsym(RTLD_NEXT, "rdma_create_event_channel");
	*(void **)&next_create = dlsym(RTLD_NEXT, "rdma_create_qp");
	*(void **)&next_destroy = dlsym(RTLD_NEXT, "rdma_destroy_qp");
	if (!next_channel || !next_create || !next_destroy)
		abort();
}

static struct line *line_of(const struct ibv_qp *qp, const struct ibv_cq *cq)
{
	struct line *line;

	for (line = lines; line < lines + LINES; line++)
		if (line->qp && (line->qp == qp || line->qp->send_cq == cq))
			return line;
	return NULL;
}

static void post(struct line *line, unsigned int slot, uint32_t size)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)line->memory[slot], .length = size, .lkey = line->mr->lkey,
	};
	struct ibv_send_wr *bad, work = {
		.wr_id = OURS | slot, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};

	line->slot[slot].dsmds = line->nr && line->owed[line->first].at == line->out;
	if (line->slot[slot].dsmds) {
		line->slot[slot].wr_id = line->owed[line->first].wr_id;
		line->first = (line->first + 1) % OWED;
		line->nr--;
	}
	line->slot[slot].busy = !next.post_send(line->qp, &work, &bad);
}

/* As much as the adapter takes. */
static void send_more(struct line *line)
{
	unsigned int slot;
	uint32_t size;

	for (slot = 0; slot < SLOTS; slot++) {
		if (line->slot[slot].busy)
			continue;
		size = liar_next(line->session, line->memory[slot]);
		if (!size)
			return;
		line->out++;
		post(line, slot, size);
	}
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *work, struct ibv_send_wr **bad)
{
	struct line *line = line_of(qp, NULL);
	uint8_t frame[LIAR_FRAME] = { 0 };
	unsigned int last;
	uint64_t at;

	if (!line)
		return next.post_send(qp, work, bad);
	if (work->next || work->num_sge != 1 || work->sg_list->length > LIAR_FRAME ||
	    line->nr == OWED || line->nr_unsaid == OWED)
		abort();
	memcpy(frame, (void *)(uintptr_t)work->sg_list->addr, work->sg_list->length);
	at = liar_say(line->session, frame);
	if (at) {
		last = (line->first + line->nr++) % OWED;
		line->owed[last].at = at;
		line->owed[last].wr_id = work->wr_id;
		send_more(line);
	} else {
		line->unsaid[line->nr_unsaid++] = work->wr_id;
	}
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *work, struct ibv_recv_wr **bad)
{
	struct line *line = line_of(qp, NULL);

	if (line) {
		if ((work->wr_id & NUMBER) >= RECEIVES)
			abort();
		line->receive[work->wr_id & NUMBER] = (void *)(uintptr_t)work->sg_list->addr;
	}
	return next.post_recv(qp, work, bad);
}

/* One of ours.  Return: dsmd is told. */
static bool is_done(struct line *line, struct ibv_wc *wc)
{
	unsigned int slot = (unsigned int)(wc->wr_id & NUMBER);
	bool dsmds = line->slot[slot].dsmds;

	line->slot[slot].busy = false;
	wc->wr_id = line->slot[slot].wr_id;
	if (wc->status == IBV_WC_SUCCESS)
		send_more(line);
	return dsmds;
}

static int poll_cq(struct ibv_cq *cq, int nr, struct ibv_wc *wc)
{
	struct line *line = line_of(NULL, cq);
	int got;

	if (!line)
		return next.poll_cq(cq, nr, wc);
	if (line->nr_unsaid) {
		*wc = (struct ibv_wc){
			.wr_id = line->unsaid[--line->nr_unsaid], .status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND,
		};
		return 1;
	}
	while ((got = next.poll_cq(cq, 1, wc)) > 0) {
		if (wc->wr_id & OURS) {
			if (is_done(line, wc))
				break;
		} else if (wc->status != IBV_WC_SUCCESS || wc->byte_len < DSM_WIRE_BYTES ||
			   liar_hears(line->session, line->receive[wc->wr_id & NUMBER])) {
			break;
		}
	}
	return got;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	find_next();
	liar_over_rdma = true;
	return next_channel();
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *wanted)
{
	struct line *line = lines;
	int rc;

	find_next();
	rc = next_create(id, pd, wanted);
	if (rc)
		return rc;
	while (line->qp)
		if (++line == lines + LINES)
			abort();
	memset(line, 0, sizeof(*line));
	line->qp = id->qp;
	line->session = liar_begin_rdma();
	line->memory = calloc(SLOTS, LIAR_FRAME);
	line->mr = line->memory ? ibv_reg_mr(pd, line->memory, SLOTS * LIAR_FRAME, IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!line->mr)
		abort();
	if (id->verbs->ops.post_send != post_send) {
		next = id->verbs->ops;
		id->verbs->ops.post_send = post_send;
		id->verbs->ops.post_recv = post_recv;
		id->verbs->ops.poll_cq = poll_cq;
	}
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct line *line = line_of(id->qp, NULL);

	find_next();
	next_destroy(id);
	if (!line)
		return;
	ibv_dereg_mr(line->mr);
	free(line->memory);
	line->qp = NULL;
}
