// SPDX-License-Identifier: GPL-2.0
/*
 * A member that lies: a dsmd that is real but for what it writes to its peers.
 *
 * This file stands between dsmd and OpenSSL: its SSL_write(), SSL_read() and
 * SSL_get_error() are found before those of the library, which they call.  What goes
 * over RDMA goes through liar_rdma.c, which asks this file what to say.  Both are
 * linked into a dsmd (unit tests), or preloaded into the one of a host
 * (LD_PRELOAD; end to end).  So the liar has the papers of its host, has said
 * HELLO and does all that the protocol wants, until it is told to lie; nothing in
 * the product knows of it.
 *
 * LIAR_FILE names a file with the words "KIND SEED AFTER", or that is not there:
 * nothing is changed.  It is read again whenever another file has its name, so
 * write another one and rename it.  AFTER: so many frames that the kind could
 * spoil go out as they are.  "kinds" below are the lies.  Each is said on stderr,
 * "liar: KIND: ...", when it was told.
 *
 * A frame is 32 bytes, and so many as its length says: none, a page, or 64 about vCPUs
 * (wire.h); HELLO begins with 0, what the connection itself says with DSM_LINK_MARK (link.h).
 * What is to go out is kept here until the socket takes it; a frame that comes in
 * parts is changed as a whole.
 *
 * Context: the one thread of dsmd that has connections.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "liar.h"
#include "link.h"
#include "vcpu.h"

#define SESSIONS	4
#define FRAME_BYTES	LIAR_FRAME
#define OUT_BYTES	(4u << 20)	/* more than the largest flood */
#define REMEMBERED	64		/* frames of each way */
#define FLOOD		20000		/* requests, or questions */
#define CONNECTIONS	200
#define KEYS		2000

/* What a kind is for. */
enum frames {
	HELLO = 1 << 0,
	QUESTION = 1 << 1,
	ANSWER = 1 << 2,	/* of the connection */
	REQUEST = 1 << 3,	/* the rest are messages */
	RECALL = 1 << 4,
	REPLY = 1 << 5,		/* of who holds a page: RDATA, INV_ACK, BUSY_PIN */
	GIVEN = 1 << 6,		/* of a home, to who asked */
	WITH_PAGE = 1 << 7,	/* beside one of the others */
	LETTER = 1 << 8,	/* about vCPUs (vcpu.h) */
	MESSAGE = REQUEST | RECALL | REPLY | GIVEN,
	LINK = QUESTION | ANSWER,
	ANY = LINK | MESSAGE | LETTER,
};

struct parser {
	uint8_t bytes[FRAME_BYTES];
	uint32_t have;
};

struct memory {
	uint8_t frame[REMEMBERED][FRAME_BYTES];
	unsigned int nr;	/* ever */
};

bool liar_over_rdma;

static struct session {
	SSL *ssl;
	bool by_frames;		/* they go out one by one, over RDMA: each has its length before it */
	uint64_t put;		/* frames, ever */
	struct parser from, to;		/* the peer */
	struct memory heard, said;	/* messages */
	uint8_t *out;
	size_t first, last;
	uint32_t epoch, grant;
	uint8_t kept[FRAME_BYTES];	/* of the lie "late" */
	unsigned int since;		/* and "clocks" */
	bool granted, deaf, ended;
} sessions[SESSIONS];

struct kind {
	const char *name;
	unsigned int frames;
	/* Spoil @frame, which goes out afterwards.  Return: false: it does not. */
	bool (*lie)(struct session *s, uint8_t *frame);
	unsigned int at;	/* for change(): the byte */
	int by;			/* what is added to it; 0: something else */
	bool always;		/* not only once */
	unsigned int type;	/* of the frames; 0: any */
};

static struct {
	const struct kind *kind;
	struct stat file;
	bool known;		/* there was one */
	bool said;		/* that there was a frame to lie with */
	bool told;		/* and it has been, if it is to be so once */
	unsigned int after;
	uint64_t dice;
} lie;

static int (*next_write)(SSL *, const void *, int);
static int (*next_read)(SSL *, void *, int);
static int (*next_get_error)(const SSL *, int);

static uint64_t roll(void)
{
	uint64_t z = lie.dice += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint32_t get32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
	       (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void put32(uint8_t *bytes, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

/* By what the frame says; one that was spoiled is only ever put(). */
static uint32_t frame_bytes(const uint8_t *frame)
{
	uint32_t more = frame[0] == DSM_WIRE_VERSION ? get32(frame + 12) : 0;

	return DSM_WIRE_BYTES + (more < DSM_PAGE_BYTES ? more : DSM_PAGE_BYTES);
}

static unsigned int frames_of(const uint8_t *frame)
{
	unsigned int page = frame_bytes(frame) == FRAME_BYTES ? WITH_PAGE : 0;

	if (!frame[0])
		return HELLO;
	if (frame[0] == DSM_LINK_MARK)
		return frame[1] == DSM_LINK_QUESTION ? QUESTION :
		       frame[1] == DSM_LINK_ANSWER ? ANSWER : 0;
	if (dsm_type_is_vcpu(frame[1]))
		return LETTER;
	if (frame[1] >= DSM_TOKEN_REQ)
		return REQUEST | page;
	if (frame[1] >= DSM_DATA_S)
		return GIVEN | page;
	if (frame[1] >= DSM_RDATA)
		return REPLY | page;
	return (frame[1] >= DSM_RECALL_S ? RECALL : REQUEST) | page;
}

static void put(struct session *s, const void *bytes, size_t size)
{
	size_t before = s->by_frames ? 4 : 0;

	if (s->last + before + size > OUT_BYTES && s->first) {
		memmove(s->out, s->out + s->first, s->last - s->first);
		s->last -= s->first;
		s->first = 0;
	}
	if (s->last + before + size > OUT_BYTES)
		abort();
	if (before)
		put32(s->out + s->last, (uint32_t)size);
	memcpy(s->out + s->last + before, bytes, size);
	s->last += before + size;
	s->put++;
}

uint32_t liar_next(struct session *s, uint8_t *bytes)
{
	uint32_t size;

	if (s->first == s->last)
		return 0;
	size = get32(s->out + s->first);
	memcpy(bytes, s->out + s->first + 4, size);
	s->first += 4 + size;
	if (s->first == s->last)
		s->first = s->last = 0;
	return size;
}

static void remember(struct memory *memory, const uint8_t *frame)
{
	memcpy(memory->frame[memory->nr++ % REMEMBERED], frame, frame_bytes(frame));
}

/* One of those that are remembered; NULL: none. */
static const uint8_t *recall(const struct memory *memory)
{
	unsigned int nr = memory->nr < REMEMBERED ? memory->nr : REMEMBERED;

	return nr ? memory->frame[roll() % nr] : NULL;
}

/* The lies. */

static bool change(struct session *s, uint8_t *frame)
{
	(void)s;
	frame[lie.kind->at] = (uint8_t)(frame[lie.kind->at] + lie.kind->by);
	return true;
}

static bool garbage(struct session *s, uint8_t *frame)
{
	unsigned int i;

	(void)s;
	for (i = 0; i < DSM_WIRE_BYTES; i++)
		frame[i] = (uint8_t)roll();
	return true;
}

static bool bit(struct session *s, uint8_t *frame)
{
	unsigned int i = (unsigned int)(roll() % (8 * DSM_WIRE_BYTES));

	(void)s;
	frame[i / 8] ^= (uint8_t)(1u << i % 8);
	return true;
}

/* Of what it says: the head is as of any message. */
static bool letter_bit(struct session *s, uint8_t *frame)
{
	uint32_t more = frame_bytes(frame) - DSM_WIRE_BYTES;
	unsigned int i = more ? (unsigned int)(roll() % (8 * more)) : 0;

	(void)s;
	frame[more ? DSM_WIRE_BYTES + i / 8 : 2] ^= (uint8_t)(1u << i % 8);
	return true;
}

static bool wrong_page(struct session *s, uint8_t *frame)
{
	unsigned int i;

	(void)s;
	for (i = 0; i < DSM_PAGE_BYTES; i++)
		frame[DSM_WIRE_BYTES + i] ^= 0xff;
	return true;
}

static bool epoch(struct session *s, uint8_t *frame)
{
	put32(frame + 4, s->epoch + (uint32_t)lie.kind->by);
	return true;
}

static bool grant(struct session *s, uint8_t *frame)
{
	(void)s;
	put32(frame + 16, get32(frame + 16) + (uint32_t)lie.kind->by);
	return true;
}

/* The first one for ever. */
static bool no_grant(struct session *s, uint8_t *frame)
{
	if (!s->granted)
		s->grant = get32(frame + 16);
	s->granted = true;
	put32(frame + 16, s->grant);
	return true;
}

/* Its clock is set after each tenth answer: the ones between agree. */
static bool jump(struct session *s, uint8_t *frame)
{
	if (get32(frame + 20))
		put32(frame + 28, get32(frame + 28) + 256 * (s->since++ / 10));
	return true;
}

static bool twice(struct session *s, uint8_t *frame)
{
	put(s, frame, frame_bytes(frame));
	return true;
}

static bool drop(struct session *s, uint8_t *frame)
{
	(void)s;
	(void)frame;
	return false;
}

/* After seven others of its sort that were said after it. */
static bool late(struct session *s, uint8_t *frame)
{
	lie.told = false;
	if (!s->since++) {
		memcpy(s->kept, frame, frame_bytes(frame));
		return false;
	}
	if (s->since <= 8)
		return true;
	put(s, frame, frame_bytes(frame));
	put(s, s->kept, frame_bytes(s->kept));
	lie.told = true;
	s->since = 0;
	return false;
}

static bool replay(struct session *s, uint8_t *frame)
{
	const uint8_t *old = recall(&s->said);

	(void)frame;
	if (old)
		put(s, old, frame_bytes(old));
	return true;
}

static bool mirror(struct session *s, uint8_t *frame)
{
	const uint8_t *old = recall(&s->heard);

	(void)frame;
	if (old)
		put(s, old, frame_bytes(old));
	return true;
}

static bool is_to_home(unsigned int type)
{
	return type <= DSM_PUTS || (type >= DSM_RDATA && type <= DSM_BUSY_PIN);
}

/* A message about a page that has its home at the right end for @type. */
static const uint8_t *recall_for(struct session *s, unsigned int type)
{
	const uint8_t *frame = NULL;
	unsigned int tries;
	bool heard;

	for (tries = 0; tries < 16; tries++) {
		heard = roll() % 2;
		frame = recall(heard ? &s->heard : &s->said);
		if (frame && frame[1] < DSM_TOKEN_REQ &&
		    is_to_home(frame[1]) == (is_to_home(type) != heard))
			break;
	}
	return frame;
}

/*
 * A message that the wire has, of this connection, about a page that both have
 * spoken of, with a transaction that there was.  No bytes: who owns a page may say
 * what they are, and nobody can know better; so no DROP either.
 */
static void put_made_up(struct session *s, unsigned int type)
{
	const uint8_t *gfn = recall_for(s, type), *txn = recall_for(s, type);
	struct dsm_msg msg = { .type = (uint8_t)type, .epoch = s->epoch };
	uint8_t bytes[FRAME_BYTES] = { 0 };

	if (!gfn || !txn)
		return;
	if (type == DSM_NACK || type == DSM_RESULT)
		msg.reason = (uint8_t)(roll() % DSM_NR_REASONS);
	if (!(roll() % 4))
		msg.flags = (uint8_t)(1u << roll() % 4);
	msg.txn = get32(txn + 8) + (uint32_t)(roll() % 3) - 1;
	if (type >= DSM_TOKEN_REQ || type == DSM_GETS || type == DSM_GETM ||
	    type == DSM_PUTS)
		msg.txn = 0;
	msg.gfn = type >= DSM_TOKEN_REQ ? 0 :
		  get32(gfn + 16) | (uint64_t)get32(gfn + 20) << 32;
	dsm_wire_put(&msg, bytes);
	put(s, bytes, frame_bytes(bytes));
}

static bool made_up(struct session *s, uint8_t *frame)
{
	unsigned int type;

	(void)frame;
	if (roll() % 16)
		return true;
	do {
		type = 1 + (unsigned int)(roll() % (DSM_NR_TYPES - 1));
	} while (dsm_type_has_page(type) || type == DSM_DROP);
	put_made_up(s, type);
	return true;
}

/* `by` is the type. */
static bool made_up_type(struct session *s, uint8_t *frame)
{
	(void)frame;
	put_made_up(s, (unsigned int)lie.kind->by);
	return true;
}

/*
 * About a vCPU: such a message as the wire has, with fields of which each may be right, about a page
 * that both have spoken of.  `by` is the type.
 */
static bool made_up_letter(struct session *s, uint8_t *frame)
{
	struct dsm_msg head = { .type = (uint8_t)lie.kind->by, .epoch = s->epoch };
	struct dsm_vcpu_msg msg = { .type = (uint8_t)lie.kind->by };
	const uint8_t *of = recall(roll() % 2 ? &s->heard : &s->said);
	unsigned int log = (unsigned int)(roll() % 4), what = 1 + (unsigned int)(roll() % 3);
	uint8_t bytes[FRAME_BYTES] = { 0 };

	(void)frame;
	if (roll() % 16)
		return true;
	switch (head.type) {
	case DSM_VCPU_ACCESS:
		msg.flags = (uint8_t)(what | log << 4);
		msg.word[0] = (of ? get32(of + 16) : 0) * (uint64_t)DSM_PAGE_BYTES +
			      (roll() % (DSM_PAGE_BYTES >> log) << log);
		if (what == DSM_ACCESS_CMPXCHG)
			msg.word[1] = roll() >> (64 - (8u << log));
		if (what != DSM_ACCESS_READ)
			msg.word[2] = roll() >> (64 - (8u << log));
		break;
	case DSM_VCPU_ACCESSED:
		msg.flags = roll() % 2 ? DSM_ACCESS_AGAIN : 0;
		msg.word[0] = msg.flags ? 0 : roll() % 3;
		break;
	case DSM_VCPU_TSC:
		/* Often it goes on; else it is found out by the second one. */
		msg.number = roll() >> roll() % 64;
		break;
	default:
		msg.flags = roll() % 2 ? DSM_PAUSE_ON : 0;
	}
	if (head.type < DSM_VCPU_PAUSE) {
		msg.vcpu = (uint32_t)(roll() % 3);
		msg.number = roll() % 64;
	}
	dsm_wire_put(&head, bytes);
	dsm_vcpu_put(&msg, bytes + DSM_WIRE_BYTES);
	put(s, bytes, frame_bytes(bytes));
	return true;
}

/* What is given, or refused with any reason, can be used at its home, it says. */
static bool stays(struct session *s, uint8_t *frame)
{
	struct dsm_msg msg = {
		.type = DSM_NACK, .reason = DSM_R_STAYS, .epoch = s->epoch, .txn = get32(frame + 8),
		.gfn = get32(frame + 16) | (uint64_t)get32(frame + 20) << 32,
	};
	uint8_t bytes[FRAME_BYTES] = { 0 };

	dsm_wire_put(&msg, bytes);
	put(s, bytes, frame_bytes(bytes));
	return false;
}

static bool flood(struct session *s, uint8_t *frame)
{
	unsigned int i;

	for (i = 0; i < FLOOD; i++) {
		if (frame[0] == DSM_LINK_MARK)
			put(s, frame, DSM_WIRE_BYTES);
		else
			put_made_up(s, DSM_GETS);
	}
	return true;
}

static bool deaf(struct session *s, uint8_t *frame)
{
	(void)frame;
	s->deaf = true;
	return true;
}

static bool half(struct session *s, uint8_t *frame)
{
	put(s, frame, DSM_WIRE_BYTES / 2);
	s->ended = true;
	return false;
}

static bool keys(struct session *s, uint8_t *frame)
{
	unsigned int i;

	(void)frame;
	for (i = 0; i < KEYS; i++) {
		SSL_key_update(s->ssl, SSL_KEY_UPDATE_REQUESTED);
		if (SSL_do_handshake(s->ssl) != 1)
			break;
	}
	fprintf(stderr, "liar: %u keys\n", i);
	ERR_clear_error();
	return true;
}

/* From its own address, as a member may: nobody says who he is. */
static bool crowd(struct session *s, uint8_t *frame)
{
	struct sockaddr_storage own, other;
	socklen_t size = sizeof(own);
	unsigned int i, nr = 0;
	int fd;

	(void)frame;
	if (getsockname(SSL_get_fd(s->ssl), (void *)&own, &size) ||
	    getpeername(SSL_get_fd(s->ssl), (void *)&other, &size))
		return true;
	((struct sockaddr_in *)&own)->sin_port = 0;
	for (i = 0; i < CONNECTIONS; i++) {
		fd = socket(own.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !bind(fd, (void *)&own, size) &&
		    (!connect(fd, (void *)&other, size) || errno == EINPROGRESS))
			nr++;
	}
	fprintf(stderr, "liar: %u connections\n", nr);
	return true;
}

static bool hello_put(struct session *s, uint8_t *frame)
{
	(void)s;
	frame[lie.kind->at] = (uint8_t)lie.kind->by;
	return true;
}

static bool hello_epoch(struct session *s, uint8_t *frame)
{
	(void)s;
	put32(frame + 12, lie.kind->by ? get32(frame + 12) + (uint32_t)lie.kind->by : 0);
	return true;
}

static const struct kind kinds[] = {
	/* a message that is none, or not of this connection */
	{ "garbage", MESSAGE, .lie = garbage },
	{ "version", MESSAGE, .lie = change, .by = 1 },
	{ "type", MESSAGE, .lie = change, .at = 1, .by = 100 },
	{ "reason", MESSAGE, .lie = change, .at = 3, .by = 100 },
	{ "length", MESSAGE, .lie = change, .at = 12, .by = 1 },
	{ "reserved", MESSAGE, .lie = change, .at = 24, .by = 1 },
	{ "epoch-old", MESSAGE, .lie = epoch, .by = -1 },
	{ "epoch-ahead", MESSAGE, .lie = epoch, .by = 1000000 },
	/* one that says what can't be */
	{ "flags", MESSAGE, .lie = change, .at = 2, .by = 0x80 },
	{ "gfn", MESSAGE, .lie = change, .at = 22, .by = 1 },
	{ "page-number", MESSAGE, .lie = change, .at = 16, .by = 1 },
	{ "transaction", REPLY | GIVEN, .lie = change, .at = 8, .by = 1 },
	{ "bit", MESSAGE, .lie = bit },
	{ "twice", MESSAGE, .lie = twice },
	{ "answer-twice", REPLY | GIVEN, .lie = twice },
	{ "late", REPLY | GIVEN, .lie = late },
	{ "replay", MESSAGE, .lie = replay },
	{ "mirror", MESSAGE, .lie = mirror },
	{ "made-up", MESSAGE, .lie = made_up, .always = true },
	{ "put-not-shared", MESSAGE, .lie = made_up_type, .by = DSM_PUTS },
	{ "unasked-ack", MESSAGE, .lie = made_up_type, .by = DSM_INV_ACK },
	{ "unasked-grant", MESSAGE, .lie = made_up_type, .by = DSM_GRANT },
	{ "recall-of-nothing", MESSAGE, .lie = made_up_type, .by = DSM_RECALL_I },
	{ "token", MESSAGE, .lie = made_up_type, .by = DSM_TOKEN_GRANT },
	/* what nobody can know */
	{ "wrong-bytes", WITH_PAGE, .lie = wrong_page },
	/* about vCPUs */
	{ "letter-type", LETTER, .lie = change, .at = 1, .by = 100 },
	{ "letter-length", LETTER, .lie = change, .at = 12, .by = 1 },
	{ "letter-bit", LETTER, .lie = letter_bit },
	{ "letter-twice", LETTER, .lie = twice },
	{ "no-letters", LETTER, .lie = drop, .always = true },
	/* about pages that stay at home, and pauses */
	{ "access-bit", LETTER, .lie = letter_bit, .type = DSM_VCPU_ACCESS },
	{ "access-twice", LETTER, .lie = twice, .type = DSM_VCPU_ACCESS },
	{ "no-access", LETTER, .lie = drop, .always = true, .type = DSM_VCPU_ACCESS },
	{ "accessed-bit", LETTER, .lie = letter_bit, .type = DSM_VCPU_ACCESSED },
	{ "accessed-twice", LETTER, .lie = twice, .type = DSM_VCPU_ACCESSED },
	{ "no-accessed", LETTER, .lie = drop, .always = true, .type = DSM_VCPU_ACCESSED },
	{ "made-up-access", MESSAGE | LETTER, .lie = made_up_letter, .by = DSM_VCPU_ACCESS, .always = true },
	{ "made-up-accessed", MESSAGE | LETTER, .lie = made_up_letter, .by = DSM_VCPU_ACCESSED, .always = true },
	{ "made-up-pause", MESSAGE | LETTER, .lie = made_up_letter, .by = DSM_VCPU_PAUSE, .always = true },
	{ "made-up-paused", MESSAGE | LETTER, .lie = made_up_letter, .by = DSM_VCPU_PAUSED, .always = true },
	{ "made-up-tsc", MESSAGE | LETTER, .lie = made_up_letter, .by = DSM_VCPU_TSC, .always = true },
	{ "stays", GIVEN, .lie = stays },
	{ "stays-always", GIVEN, .lie = stays, .always = true },
	{ "refused-stays", GIVEN, .lie = stays, .always = true, .type = DSM_NACK },
	/* the connection's own words */
	{ "link-kind", LINK, .lie = change, .at = 1, .by = 100 },
	{ "link-epoch", LINK, .lie = epoch, .by = -1 },
	{ "answer-number", ANSWER, .lie = change, .at = 8, .by = 1 },
	{ "answers-twice", ANSWER, .lie = twice },
	{ "clock", ANSWER, .lie = change, .at = 23, .by = 0x40 },
	{ "clocks", ANSWER, .lie = jump, .always = true },
	{ "grant-back", LINK, .lie = grant, .by = -5000 },
	{ "grant-far", LINK, .lie = grant, .by = 1000000 },
	/* silence */
	{ "no-replies", REPLY, .lie = drop, .always = true },
	{ "no-gifts", GIVEN, .lie = drop, .always = true },
	{ "no-answers", ANSWER, .lie = drop, .always = true },
	{ "no-questions", QUESTION, .lie = drop, .always = true },
	{ "no-credit", LINK, .lie = no_grant, .always = true },
	{ "nothing", ANY, .lie = drop, .always = true },
	{ "deaf", MESSAGE, .lie = deaf },
	{ "half", MESSAGE, .lie = half },
	/* too much */
	{ "flood", MESSAGE, .lie = flood },
	{ "questions", QUESTION, .lie = flood },
	{ "keys", MESSAGE, .lie = keys },
	{ "crowd", MESSAGE, .lie = crowd },
	/* HELLO */
	{ "hello-none", HELLO, .lie = change, .at = 4, .by = 1 },
	{ "hello-lowest", HELLO, .lie = hello_put, .at = 2, .by = 200 },
	{ "hello-versions", HELLO, .lie = hello_put, .at = 2, .by = DSM_WIRE_HIGHEST + 1 },
	{ "hello-host", HELLO, .lie = hello_put, .at = 8 },
	{ "hello-hosts", HELLO, .lie = hello_put, .at = 9, .by = 16 },
	{ "hello-reserved", HELLO, .lie = hello_put, .at = 10, .by = 1 },
	{ "hello-vm", HELLO, .lie = change, .at = 16, .by = 1 },
	{ "hello-epoch-none", HELLO, .lie = hello_epoch },
	{ "hello-epoch-far", HELLO, .lie = hello_epoch, .by = 1 << 30 },
};

#define NR_KINDS	(sizeof(kinds) / sizeof(kinds[0]))

/* Has somebody told us to lie, or to be honest again? */
static void listen_to_file(void)
{
	const char *path = getenv("LIAR_FILE");
	char name[64] = "";
	unsigned long long seed = 0;
	struct stat st;
	unsigned int i;
	FILE *file;

	if (!path || stat(path, &st)) {
		lie.kind = NULL;
		lie.known = false;
		return;
	}
	if (lie.known && st.st_ino == lie.file.st_ino &&
	    st.st_mtim.tv_nsec == lie.file.st_mtim.tv_nsec &&
	    st.st_mtim.tv_sec == lie.file.st_mtim.tv_sec)
		return;
	lie.file = st;
	lie.known = true;
	lie.kind = NULL;
	lie.said = false;
	lie.told = false;
	lie.after = 0;
	file = fopen(path, "re");
	if (!file || fscanf(file, "%63s %llu %u", name, &seed, &lie.after) < 1)
		name[0] = 0;
	if (file)
		fclose(file);
	lie.dice = seed;
	for (i = 0; i < NR_KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			lie.kind = &kinds[i];
	fprintf(stderr, "liar: %s: %s\n", name, lie.kind ? "from now on" : "no such lie");
}

/* NULL: of none that has said HELLO. */
static struct session *session_of(const SSL *ssl)
{
	struct session *s;

	for (s = sessions; s < sessions + SESSIONS; s++)
		if (s->ssl == ssl)
			return s;
	return NULL;
}

static struct session *newest;

/* A connection begins, in the place of the oldest, or of one that had its address. */
static struct session *begin(SSL *ssl)
{
	static unsigned int next;
	struct session *s = session_of(ssl);
	uint8_t *out;

	if (!s)
		s = &sessions[next++ % SESSIONS];
	out = s->out ? s->out : malloc(OUT_BYTES);
	if (!out)
		abort();
	memset(s, 0, sizeof(*s));
	s->ssl = ssl;
	s->out = out;
	newest = s;
	return s;
}

struct session *liar_begin_rdma(void)
{
	if (!newest || newest->by_frames)
		abort();
	newest->by_frames = true;
	newest->put = 0;
	return newest;
}

/* Add bytes to a frame.  Return: how many; *whole: it has all. */
static size_t take(struct parser *parser, const uint8_t *bytes, size_t size, bool *whole)
{
	size_t want = parser->have < DSM_WIRE_BYTES ? DSM_WIRE_BYTES - parser->have :
		      frame_bytes(parser->bytes) - parser->have;

	if (want > size)
		want = size;
	memcpy(parser->bytes + parser->have, bytes, want);
	parser->have += (uint32_t)want;
	*whole = parser->have >= DSM_WIRE_BYTES &&
		 parser->have == frame_bytes(parser->bytes);
	return want;
}

static void hear(struct session *s, const uint8_t *bytes, size_t size)
{
	bool whole;

	while (size) {
		size_t taken = take(&s->from, bytes, size, &whole);

		bytes += taken;
		size -= taken;
		if (!whole)
			continue;
		s->from.have = 0;
		if (s->from.bytes[0] == DSM_WIRE_VERSION)
			remember(&s->heard, s->from.bytes);
	}
}

static void say(struct session *s, uint8_t *frame)
{
	unsigned int frames = frames_of(frame);
	uint32_t size = frame_bytes(frame);	/* before it is spoiled */
	uint8_t spoiled[FRAME_BYTES];
	bool goes = true;

	if (s->ended)
		return;
	if (frames != HELLO)
		s->epoch = get32(frame + 4);
	memcpy(spoiled, frame, size);
	if (lie.kind && !lie.told && frames & lie.kind->frames &&
	    (!lie.kind->type || frame[1] == lie.kind->type)) {
		if (lie.after) {
			lie.after--;
		} else {
			lie.told = !lie.kind->always;
			if (!lie.said)
				fprintf(stderr, "liar: %s: a frame of type %u\n",
					lie.kind->name, frame[1]);
			lie.said = true;
			goes = lie.kind->lie(s, spoiled);
		}
	}
	if (frames & MESSAGE)
		remember(&s->said, frame);
	if (goes)
		put(s, spoiled, size);
}

bool liar_hears(struct session *s, const uint8_t *frame)
{
	if (!s->deaf && frame[0] == DSM_WIRE_VERSION)
		remember(&s->heard, frame);
	return !s->deaf;
}

uint64_t liar_say(struct session *s, uint8_t *frame)
{
	uint64_t before = s->put;

	listen_to_file();
	say(s, frame);
	return s->put == before ? 0 : s->put;
}

/* Return: 1: all is out; 0: the socket takes no more; < 0: what SSL_write said. */
static int push(struct session *s)
{
	int n;

	while (s->first < s->last) {
		size_t size = s->last - s->first;

		n = next_write(s->ssl, s->out + s->first, size > 16384 ? 16384 : (int)size);
		if (n > 0) {
			s->first += (size_t)n;
			continue;
		}
		n = next_get_error(s->ssl, n);
		return n == SSL_ERROR_WANT_WRITE || n == SSL_ERROR_WANT_READ ? 0 : -1;
	}
	s->first = 0;
	s->last = 0;
	if (s->ended)
		SSL_shutdown(s->ssl);
	return 1;
}

static void find_next(void)
{
	if (next_write)
		return;
	*(void **)&next_write = dlsym(RTLD_NEXT, "SSL_write");
	*(void **)&next_read = dlsym(RTLD_NEXT, "SSL_read");
	*(void **)&next_get_error = dlsym(RTLD_NEXT, "SSL_get_error");
	if (!next_write || !next_read || !next_get_error)
		abort();
}

int SSL_write(SSL *ssl, const void *buffer, int size)
{
	const uint8_t *bytes = buffer;
	bool whole, hello = size == DSM_WIRE_BYTES && !bytes[0] && get32(bytes + 4) == DSM_WIRE_MAGIC;
	struct session *s;
	int left = size;

	find_next();
	listen_to_file();
	s = hello ? begin(ssl) : session_of(ssl);
	if (!s || s->by_frames)
		return next_write(ssl, buffer, size);
	if (push(s) <= 0)
		return -1;
	if (liar_over_rdma && !hello)	/* the binding */
		return next_write(ssl, buffer, size);
	while (left) {
		size_t taken = take(&s->to, bytes, (size_t)left, &whole);

		bytes += taken;
		left -= (int)taken;
		if (!whole)
			continue;
		s->to.have = 0;
		say(s, s->to.bytes);
	}
	return push(s) < 0 ? -1 : size;
}

int SSL_read(SSL *ssl, void *buffer, int size)
{
	struct session *s;
	int n;

	find_next();
	s = session_of(ssl);
	if (s && s->deaf) {
		usleep(1000);	/* the socket goes on saying that there is something */
		return -1;
	}
	if (s && !s->by_frames && push(s) < 0)
		ERR_clear_error();
	n = next_read(ssl, buffer, size);
	if (n > 0 && s && !liar_over_rdma)
		hear(s, buffer, (size_t)n);
	return n;
}

int SSL_get_error(const SSL *ssl, int result)
{
	const struct session *s = session_of(ssl);

	find_next();
	if (result < 0 && s && s->deaf)
		return SSL_ERROR_WANT_READ;
	return next_get_error(ssl, result);
}
