/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the two ends of a connection say besides messages: HELLO's agreement,
 * credits, keepalive, FAIL.  Plain functions of a state and the time: no I/O.
 *
 * A frame of the connection itself has 32 bytes, little-endian:
 *
 *	 0	1	DSM_LINK_MARK: no version of a message has this number
 *	 1	1	kind, enum dsm_link_kind
 *	 2	1	0
 *	 3	1	FAIL: reason; else 0
 *	 4	4	epoch of the connection
 *	 8	4	QUESTION: a number; ANSWER: that of the question; else 0
 *	12	4	ANSWER: see below; else 0
 *	16	4	QUESTION, ANSWER: the sender's grant; else 0
 *	20	12	ANSWER: see below; else 0
 *
 * From DSM_WIRE_CLOCK on an ANSWER tells the sender's TSC, or all of it is 0 if he
 * has none to tell:
 *
 *	12	4	ticks since the question was read, 2^32 - 1 if they are more
 *	20	4	its frequency, kHz: DSM_CLOCK_KHZ_LEAST .. _MOST
 *	24	8	when the answer was written
 *
 * A grant says how many messages the other end may have sent since the
 * beginning, modulo 2^32: those that were consumed, and one for each receive
 * buffer.  So a frame that repeats a grant does no harm.  Messages have no room
 * for one; it comes with questions and answers.
 *
 * Each end has one question open at most: the first at the beginning, then
 * whenever half of the credits have been used up without being told, and at
 * least every question_ns; the first DSM_LINK_EARLY ones four times as often, since
 * clocks are known after some answers (clock.h), and vCPUs wait for that.  So
 * three receive buffers more than the credits are enough for all frames of the
 * connection: a question, an answer, a FAIL or an END.  END says that nothing
 * follows, on a connection that has no such word of its own: RDMA.  Elsewhere it is no frame.
 */
#ifndef DSM_LINK_H
#define DSM_LINK_H

#include "transport.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_LINK_MARK	0xff
#define DSM_LINK_EPOCHS	65536	/* that two HELLOs may differ by: they are not to be
				 * used up by one that lies */
#define DSM_LINK_FRAMES	3	/* receive buffers besides the credits */
#define DSM_LINK_RETRIES	7	/* of an adapter that sends a lost frame again */
#define DSM_CLOCK_KHZ_LEAST	100000u		/* of a TSC: 100 MHz */
#define DSM_CLOCK_KHZ_MOST	20000000u	/* 20 GHz */

enum dsm_link_kind {
	DSM_LINK_QUESTION = 1,
	DSM_LINK_ANSWER,
	DSM_LINK_FAIL,
	DSM_LINK_END,		/* only where the network has none */
};

#define DSM_LINK_EARLY	12u	/* questions */

/* Now, by two clocks. */
struct dsm_link_time {
	uint64_t ns;		/* of the clock for time-outs */
	uint64_t tsc;		/* 0 if it can't be used */
};

/* What a frame has said besides its grant. */
struct dsm_link_said {
	uint64_t round_trip;	/* of the question that it answers, ns, at least 1; or 0 */
	struct dsm_clock_sample clock;	/* of that answer; khz 0: none */
	uint8_t reason;		/* of a FAIL */
};

struct dsm_link {
	uint32_t epoch;
	unsigned int version;	/* of the connection */
	uint32_t khz;		/* of our TSC; 0: not to be told */
	uint32_t credits;	/* receive buffers here */
	uint64_t question_ns, deadline_ns;
	/* sending */
	uint32_t sent;		/* messages */
	uint32_t limit;		/* the peer's grant */
	/* receiving */
	uint32_t received;	/* messages */
	uint32_t consumed;	/* messages whose buffer is free again */
	uint32_t granted;	/* what the peer was told */
	/* questions */
	uint32_t number;	/* of the last one */
	bool open;		/* it has not been answered */
	bool owed;		/* an answer, to the question with the number theirs */
	uint32_t theirs;
	uint64_t theirs_tsc;	/* ours, when that question was read */
	struct dsm_link_time asked;	/* when */
};

/** Begin: nothing sent, no credit, DSM_WIRE_LOWEST, no TSC. */
void dsm_link_init(struct dsm_link *link, uint32_t epoch, uint32_t credits,
		   uint64_t question_ns, uint64_t deadline_ns);

/** Then: the version that both ends agreed on, and our TSC's frequency or 0. */
void dsm_link_speak(struct dsm_link *link, unsigned int version, uint32_t khz);

/**
 * Is @theirs what the host @host may say to @ours?
 * Return: 0, and the connection's *epoch, the later one (modulo 2^32);
 * DSM_END_HOST, _NR_HOSTS, _VM, _EPOCH for two that are more than DSM_LINK_EPOCHS
 * apart.
 */
int dsm_link_agree(const struct dsm_hello *ours, const struct dsm_hello *theirs,
		   unsigned int host, uint32_t *epoch);

/** Return: DSM_END_HELLO, _VERSION or _EPOCH for what dsm_wire_get_hello() said. */
int dsm_link_hello_end(int error);

/** Return: how many messages may be sent now. */
static inline uint32_t dsm_link_credits(const struct dsm_link *link)
{
	return link->limit - link->sent;
}

/** Return: how many messages can be sent at once, if so many wait already. */
static inline uint32_t dsm_link_spare(const struct dsm_link *link, uint32_t waiting)
{
	uint32_t credits = dsm_link_credits(link);

	return credits > waiting ? credits - waiting : 0;
}

/** Return: how many requests; the last credit is for an answer. */
static inline uint32_t dsm_link_room(const struct dsm_link *link, uint32_t waiting)
{
	uint32_t spare = dsm_link_spare(link, waiting);

	return spare > 1 ? spare - 1 : 0;
}

/** A message goes out.  There has to be a credit. */
static inline void dsm_link_sent(struct dsm_link *link)
{
	link->sent++;
}

/** A message has come.  Return: 0; DSM_END_CREDITS if it had none. */
int dsm_link_received(struct dsm_link *link);

/** Its buffer is free. */
static inline void dsm_link_consumed(struct dsm_link *link)
{
	link->consumed++;
}

/**
 * Is there a frame to send?  Then it counts as sent.  An answer comes before a
 * question.
 * Return: true, and the frame.
 */
bool dsm_link_next(struct dsm_link *link, struct dsm_link_time now,
		   uint8_t bytes[DSM_WIRE_BYTES]);

/** A FAIL with @reason. */
void dsm_link_put_fail(const struct dsm_link *link, uint8_t reason,
		       uint8_t bytes[DSM_WIRE_BYTES]);

/** An END. */
void dsm_link_put_end(const struct dsm_link *link,
		      uint8_t bytes[DSM_WIRE_BYTES]);

/** Is it an END of this connection?  dsm_link_frame() takes none. */
bool dsm_link_is_end(const struct dsm_link *link,
		     const uint8_t bytes[DSM_WIRE_BYTES]);

/**
 * A frame has come.
 * @now: not before the frame had come.
 * @said: always set.
 * Return: 0; DSM_END_FRAME for bytes that are no frame; DSM_END_EPOCH;
 * DSM_END_TURN for a second question before the first was answered, an answer
 * to none, a grant that goes back or that no peer can give; DSM_END_FAILED.
 */
int dsm_link_frame(struct dsm_link *link, const uint8_t bytes[DSM_WIRE_BYTES],
		   struct dsm_link_time now, struct dsm_link_said *said);

/**
 * How long an adapter waits for an acknowledgement before it sends again: as long as
 * it may if that and all retries are to be over when a question that was asked as
 * late as possible after the loss has to be answered.
 * Return: the power of 2 by which to multiply 4.096 us, 1 .. 31; 0 is "for ever".
 */
uint8_t dsm_link_ack_timeout(uint64_t question_ns, uint64_t deadline_ns);

/** Return: 0; DSM_END_SILENT if the deadline of the question is over. */
int dsm_link_tick(const struct dsm_link *link, uint64_t now);

#ifdef __cplusplus
}
#endif

#endif
