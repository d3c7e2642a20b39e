// SPDX-License-Identifier: GPL-2.0
/*
 * Credits, questions and answers of a connection.
 */
#include <string.h>

#include "link.h"

static void put32(uint8_t *bytes, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
	       (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void put64(uint8_t *bytes, uint64_t value)
{
	put32(bytes, (uint32_t)value);
	put32(bytes + 4, (uint32_t)(value >> 32));
}

static uint64_t get64(const uint8_t *bytes)
{
	return get32(bytes) | (uint64_t)get32(bytes + 4) << 32;
}

void dsm_link_init(struct dsm_link *link, uint32_t epoch, uint32_t credits,
		   uint64_t question_ns, uint64_t deadline_ns)
{
	*link = (struct dsm_link){
		.epoch = epoch,
		.version = DSM_WIRE_LOWEST,
		.credits = credits,
		.question_ns = question_ns,
		.deadline_ns = deadline_ns,
	};
}

void dsm_link_speak(struct dsm_link *link, unsigned int version, uint32_t khz)
{
	link->version = version;
	link->khz = version >= DSM_WIRE_CLOCK ? khz : 0;
}

int dsm_link_agree(const struct dsm_hello *ours, const struct dsm_hello *theirs,
		   unsigned int host, uint32_t *epoch)
{
	if (theirs->nr_hosts != ours->nr_hosts)
		return DSM_END_NR_HOSTS;
	if (theirs->host != host)
		return DSM_END_HOST;
	if (memcmp(theirs->vm, ours->vm, sizeof(ours->vm)))
		return DSM_END_VM;
	if (theirs->epoch - ours->epoch > DSM_LINK_EPOCHS &&
	    ours->epoch - theirs->epoch > DSM_LINK_EPOCHS)
		return DSM_END_EPOCH;
	*epoch = dsm_epoch_is_later(theirs->epoch, ours->epoch) ?
		 theirs->epoch : ours->epoch;
	return 0;
}

int dsm_link_hello_end(int error)
{
	switch (-error) {
	case DSM_E_VERSION:
		return DSM_END_VERSION;
	case DSM_E_EPOCH:
		return DSM_END_EPOCH;
	default:
		return DSM_END_HELLO;
	}
}

int dsm_link_received(struct dsm_link *link)
{
	if (link->received == link->granted)
		return DSM_END_CREDITS;
	link->received++;
	return 0;
}

static void put_frame(const struct dsm_link *link, uint8_t kind,
		      uint8_t bytes[DSM_WIRE_BYTES])
{
	memset(bytes, 0, DSM_WIRE_BYTES);
	bytes[0] = DSM_LINK_MARK;
	bytes[1] = kind;
	put32(bytes + 4, link->epoch);
}

/* With the newest grant. */
static void put_grant(struct dsm_link *link, uint32_t number, uint8_t *bytes)
{
	link->granted = link->consumed + link->credits;
	put32(bytes + 8, number);
	put32(bytes + 16, link->granted);
}

/* Our TSC, with an answer. */
static void put_clock(const struct dsm_link *link, uint64_t tsc, uint8_t *bytes)
{
	uint64_t held = tsc - link->theirs_tsc;

	if (!link->khz)
		return;
	put32(bytes + 12, held < UINT32_MAX ? (uint32_t)held : UINT32_MAX);
	put32(bytes + 20, link->khz);
	put64(bytes + 24, tsc);
}

/* Nothing was ever asked; half of the credits are to be told; or it is time. */
static bool wants_to_ask(const struct dsm_link *link, uint64_t now)
{
	uint32_t untold = link->consumed + link->credits - link->granted;
	uint64_t period = link->number < DSM_LINK_EARLY ? link->question_ns / 4 : link->question_ns;

	if (link->open)
		return false;
	return !link->number || untold >= link->credits / 2 || now - link->asked.ns >= period;
}

bool dsm_link_next(struct dsm_link *link, struct dsm_link_time now,
		   uint8_t bytes[DSM_WIRE_BYTES])
{
	if (link->owed) {
		link->owed = false;
		put_frame(link, DSM_LINK_ANSWER, bytes);
		put_grant(link, link->theirs, bytes);
		put_clock(link, now.tsc, bytes);
		return true;
	}
	if (wants_to_ask(link, now.ns)) {
		link->open = true;
		link->asked = now;
		if (!++link->number)
			link->number = 1;	/* 0: none was asked */
		put_frame(link, DSM_LINK_QUESTION, bytes);
		put_grant(link, link->number, bytes);
		return true;
	}
	return false;
}

void dsm_link_put_fail(const struct dsm_link *link, uint8_t reason,
		       uint8_t bytes[DSM_WIRE_BYTES])
{
	put_frame(link, DSM_LINK_FAIL, bytes);
	bytes[3] = reason;
}

void dsm_link_put_end(const struct dsm_link *link,
		      uint8_t bytes[DSM_WIRE_BYTES])
{
	put_frame(link, DSM_LINK_END, bytes);
}

bool dsm_link_is_end(const struct dsm_link *link,
		     const uint8_t bytes[DSM_WIRE_BYTES])
{
	uint8_t end[DSM_WIRE_BYTES];

	dsm_link_put_end(link, end);
	return !memcmp(bytes, end, sizeof(end));
}

/* Is it a clock, or none? */
static bool has_clock(const struct dsm_link *link, const uint8_t *bytes)
{
	uint32_t khz = get32(bytes + 20);

	if (bytes[1] == DSM_LINK_ANSWER && link->version >= DSM_WIRE_CLOCK && khz)
		return khz >= DSM_CLOCK_KHZ_LEAST && khz <= DSM_CLOCK_KHZ_MOST;
	return !get32(bytes + 12) && !khz && !get64(bytes + 24);
}

/* All bytes that have to be 0. */
static bool has_form(const struct dsm_link *link, const uint8_t *bytes)
{
	bool fail = bytes[1] == DSM_LINK_FAIL;

	if (bytes[0] != DSM_LINK_MARK || !bytes[1] || bytes[1] > DSM_LINK_FAIL ||
	    bytes[2] || (bytes[3] && !fail))
		return false;
	if (fail && (get32(bytes + 8) || get32(bytes + 16)))
		return false;
	return has_clock(link, bytes);
}

/* An answer to our question has come. */
static void get_answer(const struct dsm_link *link, const uint8_t *bytes,
		       struct dsm_link_time now, struct dsm_link_said *said)
{
	uint32_t khz = get32(bytes + 20);

	said->round_trip = now.ns > link->asked.ns ? now.ns - link->asked.ns : 1;
	if (!khz || !link->khz)
		return;
	said->clock = (struct dsm_clock_sample){
		.asked = link->asked.tsc,
		.answered = now.tsc,
		.received = get64(bytes + 24) - get32(bytes + 12),
		.replied = get64(bytes + 24),
		.khz = khz,
	};
}

int dsm_link_frame(struct dsm_link *link, const uint8_t bytes[DSM_WIRE_BYTES],
		   struct dsm_link_time now, struct dsm_link_said *said)
{
	uint32_t number = get32(bytes + 8), grant = get32(bytes + 16);

	*said = (struct dsm_link_said){ 0 };
	if (!has_form(link, bytes))
		return DSM_END_FRAME;
	if (get32(bytes + 4) != link->epoch)
		return DSM_END_EPOCH;
	if (bytes[1] == DSM_LINK_FAIL) {
		said->reason = bytes[3];
		return DSM_END_FAILED;
	}

	if (grant - link->limit > DSM_CREDITS_MOST ||
	    grant - link->sent > DSM_CREDITS_MOST)
		return DSM_END_TURN;
	if (bytes[1] == DSM_LINK_QUESTION) {
		if (link->owed)
			return DSM_END_TURN;
		link->owed = true;
		link->theirs = number;
		link->theirs_tsc = now.tsc;
	} else {
		if (!link->open || number != link->number)
			return DSM_END_TURN;
		link->open = false;
		get_answer(link, bytes, now, said);
	}
	link->limit = grant;
	return 0;
}

uint8_t dsm_link_ack_timeout(uint64_t question_ns, uint64_t deadline_ns)
{
	const uint64_t tries = 1 + DSM_LINK_RETRIES;
	uint64_t most = question_ns / tries + deadline_ns / tries;
	uint8_t power = 1;

	while (power < 31 && 4096ull << (power + 1) <= most)
		power++;
	return power;
}

int dsm_link_tick(const struct dsm_link *link, uint64_t now)
{
	/* The caller's time may be older than a question that was asked for somebody else. */
	if (link->open && now > link->asked.ns && now - link->asked.ns >= link->deadline_ns)
		return DSM_END_SILENT;
	return 0;
}
