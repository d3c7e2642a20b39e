// SPDX-License-Identifier: GPL-2.0
/*
 * What is RDMA's own: who may connect, peers that lie below the messages or
 * beyond their credits, peers that die, and how long it takes.  Needs an RDMA
 * device with DSMD_ADDRESS; without DSMD_TRANSPORT=rdma there are no cases.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "binding.h"
#include "line.h"
#include "rig.h"

#define EPOCH	epoch

static uint32_t epoch = 1;	/* of the connection; a later one for the next */
#define VM	"fifteen letters"
#define ROUNDS	2000
#define NR(table)	(sizeof(table) / sizeof(table[0]))

/* A peer with the right papers that speaks for itself: host 1, to host 0. */
struct liar {
	struct stranger s;
	struct dsm_binding binding;
	struct line line;
	struct dsm_binding_ends ends;
	uint8_t private_data[DSM_BINDING_PRIVATE];
	const void *argument;
	struct host *host;	/* that it talks to */
	unsigned int refused;	/* requests */
	unsigned int receives;	/* that it posts, and it does the rest by hand; 0: many */
	atomic_int step;
};

/* HELLO and the binding, through TLS.  Then the port is known. */
static void get_bound(struct liar *l)
{
	struct dsm_hello hello = {
		.lowest = 1, .highest = 1, .host = 1, .nr_hosts = HOSTS,
		.epoch = EPOCH, .vm = VM,
	};
	uint8_t bytes[DSM_WIRE_BYTES], frame[DSM_BINDING_FRAME];

	CHECK(l->s.proved && stranger_read(&l->s, bytes, sizeof(bytes)), "HELLO");
	dsm_wire_put_hello(&hello, bytes);
	CHECK(stranger_write(&l->s, bytes, sizeof(bytes)), "HELLO");
	CHECK(!dsm_binding_init(&l->binding, l->s.ssl, false, 1, 0, EPOCH, 0),
	      "binding");
	dsm_binding_put(&l->binding, frame);
	CHECK(stranger_write(&l->s, frame, sizeof(frame)) &&
	      stranger_read(&l->s, frame, sizeof(frame)) &&
	      !dsm_binding_get(&l->binding, frame), "binding");
}

/* A queue pair, and what would prove that it is ours. */
static void get_ready(struct liar *l)
{
	const struct rdma_ib_addr *address;

	if (l->receives)
		line_prepare_by_hand(&l->line, l->binding.port, l->receives);
	else
		line_prepare(&l->line, l->binding.port);
	address = &l->line.id->route.addr.addr.ibaddr;
	memcpy(l->ends.opener_gid, address->sgid.raw, 16);
	memcpy(l->ends.acceptor_gid, address->dgid.raw, 16);
	l->ends.opener_qp = l->line.qp->qp_num;
	CHECK(!dsm_binding_prove(&l->binding, false, &l->ends, l->private_data),
	      "prove");
}

static void connect_line(struct liar *l)
{
	enum rdma_cm_event_type type;

	get_ready(l);
	type = line_connect(&l->line, l->private_data, sizeof(l->private_data));
	CHECK(type == (l->receives ? RDMA_CM_EVENT_CONNECT_RESPONSE :
				     RDMA_CM_EVENT_ESTABLISHED), "%s",
	      rdma_event_str(type));
}

/* Up, and the host's first question is here. */
static void get_up(struct liar *l)
{
	uint8_t bytes[LINE_BYTES];

	get_bound(l);
	connect_line(l);
	if (l->receives) {
		line_ready(&l->line);
		line_establish(&l->line);
	}
	CHECK(line_receive(&l->line, bytes) == DSM_WIRE_BYTES &&
	      bytes[0] == DSM_LINK_MARK && bytes[1] == DSM_LINK_QUESTION,
	      "a question");
}

/* The host's loop, or the peer that lies, is as far as that. */
static void wait_for_step(struct liar *l, int step)
{
	time_t end = time(NULL) + 300;

	while (l->step < step && time(NULL) < end)
		poll(NULL, 0, 1);
	CHECK(l->step >= step, "step %d", step);
}

/* A request that must be refused, whatever it says. */
static void be_refused(struct liar *l, const void *data, size_t size)
{
	enum rdma_cm_event_type type = line_connect(&l->line, data, size);

	CHECK(type == RDMA_CM_EVENT_REJECTED, "%s", rdma_event_str(type));
	line_close(&l->line);
	l->refused++;
}

static void begin(struct liar *l, struct host *b,
		  void (*script)(struct stranger *stranger))
{
	rig_begin();
	*l = (struct liar){ .s = { .script = script }, .host = b };
	l->s.argument = l;
	l->s.papers = host_papers(1);
	host_prepare(b, 0);
	host_start(b);
	l->s.port = dsm_transport_port(b->transport);
}

static void play(struct liar *l)
{
	l->s.done = false;
	/* Who came before and was wrong has left the expectation. */
	dsm_transport_close(l->host->transport, 1);
	epoch++;
	CHECK(!dsm_transport_expect(l->host->transport, 1, EPOCH), "expect");
	stranger_start(&l->s);
	stranger_join(&l->s);
}

static void end(struct liar *l)
{
	host_stop(l->host);
	papers_free(&l->s.papers);
	rig_end();
}

static struct liar *liar_of(struct stranger *s)
{
	union { const void *in; struct liar *out; } argument = { s->argument };

	return argument.out;
}

/* That were counted: end() is called for the first few only. */
static unsigned int strangers_of(const struct host *h, enum dsm_end reason)
{
	struct dsm_transport_counters counters;
	unsigned int i, nr = 0;

	for (i = 0; i < h->nr_ends; i++)
		nr += h->end[i].host == DSM_NOBODY && h->end[i].reason == reason;
	CHECK(!dsm_transport_counts(h->transport, DSM_NOBODY, &counters) &&
	      (counters.ends[reason] == nr || (nr >= 8 && counters.ends[reason] > nr)),
	      "%u counted, %u told", (unsigned int)counters.ends[reason], nr);
	return (unsigned int)counters.ends[reason];
}

/* The connection with the peer, and not only strangers. */
static bool has_ended(const struct host *h)
{
	return h->nr_ends && h->end[h->nr_ends - 1].host == 1;
}

/* Who may connect? */

static const char *const proofs[] = {
	"nothing", "zeros", "another HMAC", "another session", "too short",
	"the role of the acceptor", "another queue pair", "another address",
	"another key",
};

static void wrong_proof(struct liar *l, unsigned int which)
{
	struct dsm_binding binding = l->binding;
	size_t size = DSM_BINDING_PRIVATE;
	uint8_t *bytes = l->private_data;
	struct dsm_binding_ends ends;

	get_ready(l);
	ends = l->ends;
	switch (which) {
	case 0: size = 0; break;
	case 1: memset(bytes, 0, size); break;
	case 2: bytes[DSM_BINDING_PRIVATE - 1] ^= 1; break;
	case 3: bytes[0] ^= 1; break;
	case 4: size--; break;
	case 5: dsm_binding_prove(&binding, true, &ends, bytes); break;
	case 6:
		ends.opener_qp++;
		dsm_binding_prove(&binding, false, &ends, bytes);
		break;
	case 7:
		ends.opener_gid[15] ^= 1;
		dsm_binding_prove(&binding, false, &ends, bytes);
		break;
	default:
		binding.key[0] ^= 1;
		dsm_binding_prove(&binding, false, &ends, bytes);
	}
	be_refused(l, bytes, size);
}

static void prove_wrongly(struct stranger *s)
{
	struct liar *l = liar_of(s);
	uint8_t used[DSM_BINDING_PRIVATE], bytes[LINE_BYTES];
	struct line up;
	unsigned int i;

	get_bound(l);
	for (i = 0; i < NR(proofs); i++)
		wrong_proof(l, i);
	/* None of this has used the session up. */
	connect_line(l);
	up = l->line;
	memcpy(used, l->private_data, sizeof(used));
	CHECK(line_receive(&up, bytes) == DSM_WIRE_BYTES, "up");

	/* Once more, while it is up, and with a proof for the new queue pair. */
	get_ready(l);
	be_refused(l, used, sizeof(used));
	get_ready(l);
	be_refused(l, l->private_data, sizeof(l->private_data));
	memcpy(l->private_data, used, sizeof(used));
	line_close(&up);
}

static void replay_for_next_session(struct stranger *s)
{
	struct liar *l = liar_of(s);
	uint8_t used[DSM_BINDING_PRIVATE], bytes[LINE_BYTES];

	memcpy(used, l->private_data, sizeof(used));
	get_bound(l);
	get_ready(l);
	be_refused(l, used, sizeof(used));
	/* With the session's new name, and the old proof. */
	memcpy(used, l->binding.session, DSM_BINDING_NONCE);
	get_ready(l);
	be_refused(l, used, sizeof(used));
	connect_line(l);
	CHECK(line_receive(&l->line, bytes) == DSM_WIRE_BYTES, "up");
	line_close(&l->line);
}

static void proof(const void *argument)
{
	struct liar l;
	struct host b;

	(void)argument;
	begin(&l, &b, prove_wrongly);
	play(&l);
	UNTIL(has_ended(&b));
	CHECK(b.ups == 1 && l.refused == NR(proofs) + 2, "%u ups, %u refused",
	      b.ups, l.refused);
	CHECK(strangers_of(&b, DSM_END_BINDING) == l.refused, "%u",
	      strangers_of(&b, DSM_END_BINDING));
	CHECK(b.end[b.nr_ends - 1].host == 1 &&
	      b.end[b.nr_ends - 1].reason == DSM_END_CUT, "%s",
	      dsm_end_name(b.end[b.nr_ends - 1].reason));

	l.s.script = replay_for_next_session;
	b.nr_ends = 0;
	l.refused = 0;
	play(&l);
	UNTIL(has_ended(&b));
	CHECK(b.ups == 2 && l.refused == 2, "%u ups, %u refused", b.ups,
	      l.refused);
	end(&l);
}

static void come_from_elsewhere(struct stranger *s)
{
	struct liar *l = liar_of(s);
	struct sockaddr_in *four;
	unsigned int i;

	get_bound(l);
	/* Now nobody is at our address. */
	for (i = 1; i < HOSTS; i++) {
		four = (void *)&l->host->params.peer[i].address;
		four->sin_addr.s_addr ^= htonl(0x00ffff00);
	}
	get_ready(l);
	be_refused(l, NULL, 0);
}

static void stranger(const void *argument)
{
	struct liar l;
	struct host b;

	(void)argument;
	begin(&l, &b, come_from_elsewhere);
	play(&l);
	UNTIL(b.nr_ends == 2);
	CHECK(strangers_of(&b, DSM_END_STRANGER) == 1 && !b.ups, "%s",
	      dsm_end_name(b.end[0].reason));
	/* Whom it waited for has hung up before there was any RDMA. */
	CHECK(b.end[1].host == 1 && b.end[1].reason == DSM_END_CUT, "%s",
	      dsm_end_name(b.end[1].reason));
	end(&l);
}

/* What an acceptor may answer. */

static const char *const answers[] = {
	"the truth", "nothing", "zeros", "another HMAC", "the role of the opener",
	"another queue pair", "another address", "a refusal",
};

#define REFUSES		(NR(answers) - 1)

/* HELLO and the binding, through TLS, and a request. */
static void get_asked(struct liar *l)
{
	struct dsm_hello hello = {
		.lowest = 1, .highest = 1, .host = 0, .nr_hosts = HOSTS,
		.epoch = EPOCH, .vm = VM,
	};
	uint8_t bytes[DSM_WIRE_BYTES], frame[DSM_BINDING_FRAME];
	const struct rdma_ib_addr *address;
	uint16_t port = (uint16_t)line_listen(&l->line);

	dsm_wire_put_hello(&hello, bytes);
	CHECK(l->s.proved && stranger_write(&l->s, bytes, sizeof(bytes)) &&
	      stranger_read(&l->s, bytes, sizeof(bytes)), "HELLO");
	CHECK(!dsm_binding_init(&l->binding, l->s.ssl, true, 0, 1, EPOCH, port) &&
	      stranger_read(&l->s, frame, sizeof(frame)) &&
	      !dsm_binding_get(&l->binding, frame), "binding");
	dsm_binding_put(&l->binding, frame);
	CHECK(stranger_write(&l->s, frame, sizeof(frame)), "binding");
	l->ends.opener_qp = line_request(&l->line);
	address = &l->line.id->route.addr.addr.ibaddr;
	memcpy(l->ends.opener_gid, address->dgid.raw, 16);
	memcpy(l->ends.acceptor_gid, address->sgid.raw, 16);
	l->ends.acceptor_qp = l->line.qp->qp_num;
}

static void answer(struct stranger *s)
{
	struct liar *l = liar_of(s);
	unsigned int which = *(const unsigned int *)l->argument;
	uint8_t *bytes = l->private_data;
	size_t size = DSM_BINDING_PRIVATE;
	enum rdma_cm_event_type type;

	get_asked(l);
	l->ends.acceptor_qp += which == 5;
	l->ends.acceptor_gid[15] ^= which == 6;
	CHECK(!dsm_binding_prove(&l->binding, which != 4, &l->ends, bytes), "prove");
	switch (which) {
	case 1: size = 0; break;
	case 2: memset(bytes, 0, size); break;
	case 3: bytes[DSM_BINDING_PRIVATE - 1] ^= 1; break;
	default: break;
	}
	if (which == REFUSES) {
		CHECK(!rdma_reject(l->line.id, NULL, 0), "%s", strerror(errno));
		stranger_read_to_end(s);
		line_close(&l->line);
		return;
	}
	type = line_accept(&l->line, bytes, size);
	/* It is rdmacm that says so, before the opener has looked at the answer. */
	CHECK(type == RDMA_CM_EVENT_ESTABLISHED, "%s", rdma_event_str(type));
	if (!which) {
		wait_for_step(l, 1);
		CHECK(line_write_nothing(&l->line) != IBV_WC_SUCCESS, "it could write");
		SSL_shutdown(s->ssl);
	}
	stranger_read_to_end(s);
	line_close(&l->line);
}

static void answered(const void *argument)
{
	struct liar l = { .step = 0 };
	enum dsm_end right;
	unsigned int which;
	struct host a;

	(void)argument;
	rig_begin();
	host_prepare(&a, 1);
	l.s = (struct stranger){ .script = answer, .argument = &l };
	l.argument = &which;
	l.s.papers = host_papers(0);
	point_to(&a, 0, listen_at_any(&l.s.listen_fd));
	host_start(&a);
	for (which = 0; which < NR(answers); which++) {
		a.nr_ends = a.ups = 0;
		l.s.done = false;
		epoch++;
		stranger_start(&l.s);
		CHECK(!dsm_transport_open(a.transport, 0, EPOCH), "open");
		if (!which) {
			UNTIL(a.ups || a.nr_ends);
			l.step = 1;
		}
		UNTIL(a.nr_ends);
		stranger_join(&l.s);
		right = which == REFUSES ? DSM_END_REFUSED :
			which ? DSM_END_BINDING : DSM_END_CUT;
		CHECK(a.nr_ends == 1 && a.ups == !which && a.end[0].reason == right &&
		      (which != REFUSES || strstr(a.end[0].text, "REJECTED, reason 28")),
		      "%s: %u ups, %s %s", answers[which], a.ups,
		      dsm_end_name(a.end[0].reason), a.end[0].text);
	}
	host_stop(&a);
	close(l.s.listen_fd);
	papers_free(&l.s.papers);
	rig_end();
}

/* TLS, and no RDMA. */
static void only_tls(struct stranger *s)
{
	get_bound(liar_of(s));
	stranger_read_to_end(s);
}

static void no_rdma(const void *argument)
{
	struct liar l;
	struct host b;

	(void)argument;
	begin(&l, &b, only_tls);
	CHECK(!dsm_transport_expect(b.transport, 1, EPOCH), "expect");
	stranger_start(&l.s);
	UNTIL(l.s.got == DSM_WIRE_BYTES + DSM_BINDING_FRAME);
	run_pending();
	clock_ns += OPENING - 1;
	dsm_transport_tick(b.transport);
	CHECK(!b.nr_ends, "%s", dsm_end_name(b.end[0].reason));
	clock_ns++;
	dsm_transport_tick(b.transport);
	CHECK(b.nr_ends == 1 && b.end[0].reason == DSM_END_SLOW &&
	      b.end[0].host == 1, "%s", dsm_end_name(b.end[0].reason));
	stranger_join(&l.s);
	end(&l);
}

/* What is wrong below the messages, or beyond the credits. */

enum what {
	MESSAGE,	/* 32 bytes, or with a page */
	LINK,
	TLS,		/* through TLS */
	CLOSE_TLS,	/* with close_notify */
	HANG_UP,	/* RDMA, and TLS goes on */
	WRITE,		/* into the host's memory */
	WRITE_NOTHING,	/* there, which needs no key */
	WITH_WORD,	/* a message with immediate data */
	WITH_KEY,	/* a message that makes a key void */
};

static const struct lie {
	const char *name;
	struct {
		enum what what;
		unsigned int type, times;
		int size;	/* of the SEND; 0: what is right; -1: none */
	} say[3];
	enum dsm_end reason;
	unsigned int messages;	/* that are taken */
	bool held;
} lies[] = {
	{ "the truth", { { MESSAGE, DSM_GETS, 5, 0 }, { LINK, DSM_LINK_END, 1, 0 } },
	  DSM_END_CLOSED, 5, false },
	{ "a page", { { MESSAGE, DSM_RDATA, 2, 0 }, { LINK, DSM_LINK_END, 1, 0 } },
	  DSM_END_CLOSED, 2, false },
	{ "nothing", { { MESSAGE, DSM_GETS, 1, 0 }, { MESSAGE, DSM_GETS, 1, -1 } },
	  DSM_END_FRAME, 1, false },
	{ "31 bytes", { { MESSAGE, DSM_GETS, 1, 31 } }, DSM_END_FRAME, 0, false },
	{ "33 bytes", { { MESSAGE, DSM_GETS, 1, 33 } }, DSM_END_FRAME, 0, false },
	{ "a page where none is", { { MESSAGE, DSM_GETS, 1, 4128 } },
	  DSM_END_FRAME, 0, false },
	{ "no page where one is", { { MESSAGE, DSM_RDATA, 1, 32 } },
	  DSM_END_FRAME, 0, false },
	{ "a page less a byte", { { MESSAGE, DSM_RDATA, 1, 4127 } },
	  DSM_END_FRAME, 0, false },
	{ "a page and a byte", { { MESSAGE, DSM_RDATA, 1, 4129 } },
	  DSM_END_FRAME, 0, false },
	{ "two pages", { { MESSAGE, DSM_RDATA, 1, 8192 } }, DSM_END_FRAME, 0, false },
	{ "no such type", { { MESSAGE, 200, 1, 32 } }, DSM_END_FRAME, 0, false },
	{ "a long question", { { LINK, DSM_LINK_QUESTION, 1, 33 } },
	  DSM_END_FRAME, 0, false },
	{ "no such kind", { { LINK, 5, 1, 0 } }, DSM_END_FRAME, 0, false },
	{ "a binding where it has no place", { { LINK, DSM_BINDING_KIND, 1, 0 } },
	  DSM_END_FRAME, 0, false },
	{ "an answer twice", { { LINK, DSM_LINK_ANSWER, 2, 0 } }, DSM_END_TURN, 0,
	  false },
	{ "FAIL through RDMA", { { LINK, DSM_LINK_FAIL, 1, 0 } }, DSM_END_FAILED, 0,
	  false },
	{ "FAIL through TLS", { { TLS, DSM_LINK_FAIL, 1, 0 } }, DSM_END_FAILED, 0,
	  false },
	{ "a question through TLS", { { TLS, DSM_LINK_QUESTION, 1, 0 } },
	  DSM_END_FRAME, 0, false },
	{ "END through TLS", { { TLS, DSM_LINK_END, 1, 0 } }, DSM_END_FRAME, 0,
	  false },
	{ "close_notify without END",
	  { { MESSAGE, DSM_GETS, 3, 0 }, { CLOSE_TLS, 0, 1, 0 } }, DSM_END_CUT, 3,
	  false },
	{ "hangs up without END",
	  { { MESSAGE, DSM_GETS, 3, 0 }, { HANG_UP, 0, 1, 0 } }, DSM_END_CUT, 3,
	  false },
	{ "a message behind END",
	  { { LINK, DSM_LINK_END, 1, 0 }, { MESSAGE, DSM_GETS, 1, 0 } },
	  DSM_END_FRAME, 0, true },
	{ "END twice", { { MESSAGE, DSM_GETS, 1, 0 }, { LINK, DSM_LINK_END, 2, 0 } },
	  DSM_END_FRAME, 0, true },
	{ "a message without a credit", { { MESSAGE, DSM_GETS, 17, 0 } },
	  DSM_END_CREDITS, 0, true },
	{ "a flood of messages", { { MESSAGE, DSM_GETS, 60, 0 } },
	  DSM_END_CREDITS, 0, true },
	{ "a flood of pages", { { MESSAGE, DSM_RDATA, 60, 0 } },
	  DSM_END_CREDITS, 0, true },
	{ "all the credits", { { MESSAGE, DSM_RDATA, 16, 0 },
			       { LINK, DSM_LINK_FAIL, 1, 0 } },
	  DSM_END_FAILED, 0, true },
	{ "writes into memory",
	  { { MESSAGE, DSM_GETS, 2, 0 }, { WRITE, 0, 1, 0 } }, DSM_END_CUT, 2,
	  false },
	{ "writes nothing into memory",
	  { { MESSAGE, DSM_GETS, 2, 0 }, { WRITE_NOTHING, 0, 1, 0 } }, DSM_END_CUT,
	  2, false },
	{ "a message with a word beside it",
	  { { WITH_WORD, DSM_GETS, 1, 0 }, { LINK, DSM_LINK_END, 1, 0 } },
	  DSM_END_CLOSED, 1, false },
	{ "a message that makes a key void",
	  { { MESSAGE, DSM_GETS, 1, 0 }, { WITH_KEY, DSM_GETS, 1, 0 } },
	  DSM_END_FRAME, 1, false },
};

static void put32(uint8_t *bytes, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

static size_t put_frame(uint8_t *bytes, enum what what, unsigned int type,
			uint64_t gfn)
{
	struct dsm_msg msg = message(EPOCH, type, gfn);

	memset(bytes, 0, LINE_BYTES);
	if (what == MESSAGE || what == WITH_WORD || what == WITH_KEY) {
		/* A type that the wire does not know: in a message that it does. */
		if (type >= DSM_NR_TYPES)
			msg.type = DSM_GETS;
		dsm_wire_put(&msg, bytes);
		bytes[1] = (uint8_t)type;
		return dsm_type_has_page(type) ? DSM_WIRE_BYTES + DSM_PAGE_BYTES :
						 DSM_WIRE_BYTES;
	}
	bytes[0] = DSM_LINK_MARK;
	bytes[1] = (uint8_t)type;
	put32(bytes + 4, EPOCH);
	if (type == DSM_LINK_ANSWER || type == DSM_LINK_QUESTION) {
		put32(bytes + 8, 1);
		put32(bytes + 16, 8);
	}
	bytes[3] = type == DSM_LINK_FAIL ? 9 : 0;
	return DSM_WIRE_BYTES;
}

static void say(struct liar *l, enum what what, unsigned int type, int size,
		uint64_t gfn)
{
	uint8_t bytes[LINE_BYTES];
	size_t right = put_frame(bytes, what, type, gfn);

	switch (what) {
	case MESSAGE:
	case LINK:
		line_post(&l->line, bytes, !size ? right :
			  size < 0 ? 0 : (size_t)size);
		break;
	case TLS:
		CHECK(stranger_write(&l->s, bytes, DSM_WIRE_BYTES), "write");
		break;
	case CLOSE_TLS:
		SSL_shutdown(l->s.ssl);
		break;
	case HANG_UP:
		rdma_disconnect(l->line.id);
		break;
	case WRITE:
		CHECK(line_write(&l->line, (uintptr_t)l->line.memory,
				 l->line.mr->rkey ^ 0x100) != IBV_WC_SUCCESS,
		      "it could write");
		break;
	case WRITE_NOTHING:
		CHECK(line_write_nothing(&l->line) != IBV_WC_SUCCESS,
		      "it could write");
		break;
	case WITH_WORD:
		CHECK(line_send_as(&l->line, IBV_WR_SEND_WITH_IMM, bytes, right, 7) ==
		      IBV_WC_SUCCESS, "a word");
		break;
	case WITH_KEY:
		/* Soft-RoCE says "arrived", and that it has not at the other end. */
		line_send_as(&l->line, IBV_WR_SEND_WITH_INV, bytes, right,
			     l->line.mr->rkey ^ 0x100);
	}
}

/* The last completion of what was posted, however it went. */
static void wait_for_sends(struct liar *l, unsigned int posted)
{
	time_t end = time(NULL) + 20;
	struct ibv_wc wc;

	while (posted && time(NULL) < end)
		posted -= ibv_poll_cq(l->line.sends, 1, &wc) > 0;
}

static void lie(struct stranger *s)
{
	struct liar *l = liar_of(s);
	const struct lie *which = l->argument;
	unsigned int i, n, posted = 0, number = 0;
	uint8_t bytes[LINE_BYTES];

	get_up(l);
	for (i = 0; i < NR(which->say); i++) {
		for (n = which->say[i].times; n; n--) {
			if (which->say[i].what >= CLOSE_TLS) {
				wait_for_sends(l, posted);
				posted = 0;
			}
			say(l, which->say[i].what, which->say[i].type,
			    which->say[i].size, number++);
			posted += which->say[i].what <= LINK;
		}
	}
	/* An honest one waits for the host's END. */
	while (which->reason == DSM_END_CLOSED &&
	       line_receive(&l->line, bytes) > 0 && bytes[1] != DSM_LINK_END)
		;
	if (which->reason == DSM_END_CLOSED)
		CHECK(bytes[1] == DSM_LINK_END, "no END from the host");
	stranger_read_to_end(s);
	line_close(&l->line);
}


static bool loses_rdma(const struct lie *which)
{
	enum what last = which->say[1].what;

	return last == HANG_UP || last == WRITE || last == WRITE_NOTHING;
}

/* RDMA is lost, and TLS says nothing: it has the time of an opening. */
static void wait_for_tls(struct host *b)
{
	struct dsm_transport_counters counters = { .waiting = 1 };
	struct dsm_msg msg = message(EPOCH, DSM_GETS, 0);

	/* There is no credit: it waits as long as the connection is up. */
	CHECK(!dsm_transport_send(b->transport, 1, &msg, NULL), "send");
	UNTIL(!dsm_transport_counts(b->transport, 1, &counters) &&
	      !counters.waiting);
	CHECK(dsm_transport_send(b->transport, 1, &msg, NULL) == -ENOTCONN,
	      "lost");
	clock_ns += OPENING - 1;
	dsm_transport_tick(b->transport);
	run_pending();
	CHECK(!b->nr_ends, "too early: %s", dsm_end_name(b->end[0].reason));
	clock_ns++;
	dsm_transport_tick(b->transport);
}

static void lying(const void *argument)
{
	const struct lie *which = argument;
	struct liar l;
	struct host b;

	begin(&l, &b, lie);
	l.argument = which;
	CHECK(!dsm_transport_expect(b.transport, 1, EPOCH), "expect");
	stranger_start(&l.s);
	UNTIL(b.ups);
	if (which->held)
		CHECK(!dsm_transport_hold(b.transport, 1, true), "hold");
	if (loses_rdma(which))
		wait_for_tls(&b);
	UNTIL(b.nr_ends);
	stranger_join(&l.s);
	CHECK(b.nr_ends == 1 && b.end[0].reason == which->reason &&
	      b.end[0].host == 1, "'%s' %s", dsm_end_name(b.end[0].reason),
	      b.end[0].text);
	CHECK(b.messages == which->messages, "%u messages", b.messages);
	end(&l);
}

/* Frames that are lost, and peers that take nothing. */

static uint64_t real_clock(void *context)
{
	struct timespec now;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
}

#define SLOW_QUESTION	(2 * NS)
#define SLOW_DEADLINE	(12 * NS)

/*
 * Up for the host, whose first question finds no queue pair that receives: it is
 * lost, and nothing follows it.
 */
static void lose_a_frame(struct stranger *s)
{
	struct liar *l = liar_of(s);
	uint8_t bytes[LINE_BYTES];
	unsigned int i;

	get_bound(l);
	connect_line(l);
	line_establish(&l->line);
	wait_for_step(l, 1);
	poll(NULL, 0, 100);	/* the adapter has sent it */
	line_ready(&l->line);
	CHECK(line_receive(&l->line, bytes) == DSM_WIRE_BYTES &&
	      bytes[1] == DSM_LINK_QUESTION, "the question");
	l->step = 2;
	put_frame(bytes, LINK, DSM_LINK_ANSWER, 0);
	line_post(&l->line, bytes, DSM_WIRE_BYTES);
	for (i = 0; i < 3; i++)
		say(l, MESSAGE, DSM_GETS, 0, i);
	wait_for_sends(l, 4);
	l->step = 3;
	stranger_read_to_end(s);
	line_close(&l->line);
}

static void tick_always(struct host *b)
{
	ev_run(loop, EVRUN_ONCE);
	dsm_transport_tick(b->transport);
}

static void lost_frame(const void *argument)
{
	struct dsm_transport_counters counters = { 0 };
	uint64_t asked, took;
	struct liar l;
	struct host b;

	(void)argument;
	rig_begin();
	l = (struct liar){ .s = { .script = lose_a_frame }, .host = &b, .receives = 8 };
	l.s.argument = &l;
	l.s.papers = host_papers(1);
	host_prepare(&b, 0);
	b.params.now = real_clock;
	b.params.opening_ns = 600 * NS;
	b.params.question_ns = SLOW_QUESTION;
	b.params.deadline_ns = SLOW_DEADLINE;
	host_start(&b);
	l.s.port = dsm_transport_port(b.transport);
	CHECK(!dsm_transport_expect(b.transport, 1, EPOCH), "expect");
	stranger_start(&l.s);
	UNTIL(b.ups && !dsm_transport_counts(b.transport, 1, &counters) &&
	      counters.questions);
	asked = real_clock(NULL);
	l.step = 1;
	patience_begin("the question comes");
	while (l.step < 2 && !b.nr_ends)
		tick_always(&b);
	took = real_clock(NULL) - asked;
	printf("a lost frame comes after %u ms\n", (unsigned int)(took / 1000000));
	CHECK(l.step >= 2 && took < SLOW_DEADLINE / 2, "%u ms, %s",
	      (unsigned int)(took / 1000000), dsm_end_name(b.end[0].reason));
	while (l.step < 3 && !b.nr_ends)
		tick_always(&b);
	patience_end();
	UNTIL(b.messages == 3 || b.nr_ends);
	CHECK(b.messages == 3 && !b.nr_ends && b.round_trips == 1, "%u messages, %s %s",
	      b.messages, dsm_end_name(b.end[0].reason), b.end[0].text);
	CHECK(!dsm_transport_fail(b.transport, 1, 1), "fail");
	stranger_join(&l.s);
	end(&l);
}

/* The answer is here in time, and it is we who look too late. */
static void answer_twice(struct stranger *s)
{
	struct liar *l = liar_of(s);
	uint8_t bytes[LINE_BYTES];

	get_up(l);
	say(l, LINK, DSM_LINK_ANSWER, 0, 0);
	wait_for_sends(l, 1);
	CHECK(line_receive(&l->line, bytes) == DSM_WIRE_BYTES &&
	      bytes[1] == DSM_LINK_QUESTION, "the second question");
	put_frame(bytes, LINK, DSM_LINK_ANSWER, 0);
	bytes[8] = 2;
	line_post(&l->line, bytes, DSM_WIRE_BYTES);
	wait_for_sends(l, 1);
	l->step = 1;
	stranger_read_to_end(s);
	line_close(&l->line);
}

static void late_look(const void *argument)
{
	struct liar l;
	struct host b;

	(void)argument;
	begin(&l, &b, answer_twice);
	CHECK(!dsm_transport_expect(b.transport, 1, EPOCH), "expect");
	stranger_start(&l.s);
	UNTIL(b.round_trips == 1);
	run_pending();
	clock_ns += QUESTION;
	dsm_transport_tick(b.transport);
	wait_for_step(&l, 1);
	poll(NULL, 0, 100);	/* what has arrived is in the queue */
	clock_ns += DEADLINE;
	dsm_transport_tick(b.transport);
	CHECK(!b.nr_ends && b.round_trips == 2, "%s after %u answers",
	      dsm_end_name(b.end[0].reason), b.round_trips);
	CHECK(!dsm_transport_fail(b.transport, 1, 1), "fail");
	stranger_join(&l.s);
	end(&l);
}

/* END, from the host or from its peer, which has no receive for what comes then. */
static const struct taker {
	const char *name;
	bool peer_ends, host_ends;
	unsigned int messages;	/* of the host, that are under way */
	unsigned int receives;	/* of the peer, later */
} takers[] = {
	{ "the peer's END, and then it takes no message", true, false, 1, 0 },
	{ "the peer's END, and then it takes no END", true, false, 0, 0 },
	{ "our END, which is not taken", false, true, 0, 0 },
	{ "our END, and none of the peer's", false, true, 0, 4 },
	{ "both say END, and ours is not taken", true, true, 0, 0 },
};

static void take_nothing(struct stranger *s)
{
	struct liar *l = liar_of(s);
	const struct taker *which = l->argument;

	get_up(l);
	say(l, LINK, DSM_LINK_ANSWER, 0, 0);
	wait_for_sends(l, 1);
	wait_for_step(l, 1);
	if (which->peer_ends) {
		say(l, LINK, DSM_LINK_END, 0, 0);
		wait_for_sends(l, 1);
	}
	line_receives(&l->line, which->receives);
	l->step = 2;
	stranger_read_to_end(s);
	line_close(&l->line);
}

static void taker(const void *argument)
{
	struct dsm_msg msg = message(EPOCH, DSM_GETS, 0);
	const struct taker *which = argument;
	struct liar l;
	struct host b;
	unsigned int i;

	begin(&l, &b, take_nothing);
	l.argument = which;
	l.receives = 1;
	msg.epoch = EPOCH;
	CHECK(!dsm_transport_expect(b.transport, 1, EPOCH), "expect");
	stranger_start(&l.s);
	UNTIL(b.round_trips == 1 && dsm_transport_room(b.transport, 1));
	for (i = 0; i < which->messages; i++)
		CHECK(!dsm_transport_send(b.transport, 1, &msg, NULL), "send");
	if (which->host_ends)
		CHECK(!dsm_transport_close(b.transport, 1), "close");
	run_pending();
	l.step = 1;
	UNTIL(l.step == 2);
	for (i = 0; i < 5; i++)
		run_pending();
	/* Not before, not for another reason, and not never. */
	for (i = 0; i < 40; i++) {
		CHECK(!b.nr_ends, "after %u: %s %s", i, dsm_end_name(b.end[0].reason),
		      b.end[0].text);
		clock_ns += OPENING / 40;
		dsm_transport_tick(b.transport);
		run_pending();
	}
	CHECK(b.nr_ends == 1 && b.end[0].host == 1 &&
	      b.end[0].reason == DSM_END_SLOW, "%u ends, %s %s", b.nr_ends,
	      dsm_end_name(b.end[0].reason), b.end[0].text);
	stranger_join(&l.s);
	end(&l);
}

/* The opener has the answer and sends, but what says so (RTU) is lost. */
static void say_before_established(struct stranger *s)
{
	struct liar *l = liar_of(s);
	uint8_t bytes[LINE_BYTES];

	get_bound(l);
	connect_line(l);
	line_ready(&l->line);
	if (l->argument) {
		wait_for_step(l, 1);
		say(l, TLS, DSM_LINK_FAIL, 0, 0);
	} else {
		say(l, LINK, DSM_LINK_QUESTION, 0, 0);
		wait_for_sends(l, 1);
		l->step = 1;
		CHECK(line_receive(&l->line, bytes) == DSM_WIRE_BYTES &&
		      bytes[1] == DSM_LINK_ANSWER &&
		      line_receive(&l->line, bytes) == DSM_WIRE_BYTES &&
		      bytes[1] == DSM_LINK_QUESTION, "an answer, and a question");
		shutdown(s->fd, SHUT_WR);
	}
	stranger_read_to_end(s);
	line_close(&l->line);
}

static void no_rtu(const void *argument)
{
	struct liar l;
	struct host b;
	time_t late;

	begin(&l, &b, say_before_established);
	l.argument = argument;
	l.receives = 8;
	CHECK(!dsm_transport_expect(b.transport, 1, EPOCH), "expect");
	stranger_start(&l.s);
	if (argument)
		l.step = 1;
	UNTIL(l.step == 1);
	late = time(NULL) + 60;
	while (time(NULL) < late && !b.ups && !b.nr_ends) {
		ev_run(loop, EVRUN_NOWAIT);
		poll(NULL, 0, 1);
	}
	CHECK(b.ups == 1, "not up, %s", dsm_end_name(b.end[0].reason));
	UNTIL(b.nr_ends);
	CHECK(b.nr_ends == 1 && b.end[0].host == 1 &&
	      b.end[0].reason == (argument ? DSM_END_FAILED : DSM_END_CUT), "%s %s",
	      dsm_end_name(b.end[0].reason), b.end[0].text);
	stranger_join(&l.s);
	end(&l);
}

/* Through TLS it asks for keys, and reads none of the answers. */
static void ask_for_keys(struct stranger *s)
{
	int i, few = 4096, one = 1;

	get_up(liar_of(s));
	CHECK(!setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few)) &&
	      !setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "%s",
	      strerror(errno));
	liar_of(s)->step = 1;
	wait_for_step(liar_of(s), 2);
	for (i = 0; i < 1000000; i++)
		if (SSL_key_update(s->ssl, SSL_KEY_UPDATE_REQUESTED) != 1 ||
		    SSL_do_handshake(s->ssl) != 1)
			break;
	printf("%d keys\n", i);
	line_close(&liar_of(s)->line);
}

/* The host's end of TLS keeps little that it has to send. */
static void make_small(int not_this)
{
	struct sockaddr_storage address;
	int fd, few = 4096, found = 0;
	socklen_t size;

	for (fd = 0; fd < 256; fd++) {
		size = sizeof(address);
		if (fd == not_this || getpeername(fd, (struct sockaddr *)&address, &size))
			continue;
		CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)), "%s",
		      strerror(errno));
		found++;
	}
	CHECK(found == 1, "%d connections", found);
}

static void keys(const void *argument)
{
	struct liar l;
	struct host b;

	(void)argument;
	begin(&l, &b, ask_for_keys);
	CHECK(!dsm_transport_expect(b.transport, 1, EPOCH), "expect");
	stranger_start(&l.s);
	UNTIL(b.ups && l.step == 1);
	make_small(l.s.fd);
	l.step = 2;
	UNTIL(b.nr_ends);
	CHECK(b.end[0].host == 1 && b.end[0].reason == DSM_END_FRAME, "%s %s",
	      dsm_end_name(b.end[0].reason), b.end[0].text);
	stranger_join(&l.s);
	end(&l);
}

/* Peers that go: in a process of their own. */

struct child {
	pid_t pid;
	int port[2];	/* where the child shall connect to */
};

static void be_a_peer(struct child *child)
{
	struct dsm_msg msg = message(7, DSM_GETS, 0);
	unsigned int port = 0;
	struct host a;

	CHECK(read(child->port[0], &port, sizeof(port)) == sizeof(port), "a port");
	loop = ev_loop_new(EVFLAG_AUTO);
	host_prepare(&a, 1);
	point_to(&a, 0, port);
	host_start(&a);
	CHECK(!dsm_transport_open(a.transport, 0, 7), "open");
	for (;;) {
		ev_run(loop, EVRUN_ONCE);
		while (!a.nr_ends && dsm_transport_room(a.transport, 0))
			CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	}
}

/* Before anything else: what RDMA has is not for two processes. */
static void start_child(struct child *child)
{
	rig_begin();
	CHECK(!pipe(child->port), "a pipe");
	child->pid = fork();
	CHECK(child->pid >= 0, "a process");
	if (!child->pid)
		be_a_peer(child);
}

static void point_child(struct child *child, struct host *b)
{
	unsigned int port = dsm_transport_port(b->transport);

	CHECK(!dsm_transport_expect(b->transport, 1, 4), "expect");
	CHECK(write(child->port[1], &port, sizeof(port)) == sizeof(port), "port");
	UNTIL(b->messages > 100 || b->nr_ends);
	CHECK(!b->nr_ends, "%s %s", dsm_end_name(b->end[0].reason), b->end[0].text);
}

static void child_gone(struct child *child)
{
	int status;

	kill(child->pid, SIGKILL);
	CHECK(waitpid(child->pid, &status, 0) == child->pid &&
	      WIFSIGNALED(status), "status %x", status);
	close(child->port[0]);
	close(child->port[1]);
}

static void killed(const void *argument)
{
	struct child child;
	struct host b;

	(void)argument;
	start_child(&child);
	host_prepare(&b, 0);
	host_start(&b);
	point_child(&child, &b);
	child_gone(&child);
	UNTIL(b.nr_ends);
	CHECK(b.nr_ends == 1 && b.end[0].host == 1 &&
	      b.end[0].reason == DSM_END_CUT, "%s",
	      dsm_end_name(b.end[0].reason));
	/* And the next one is as good as the first. */
	CHECK(!dsm_transport_expect(b.transport, 1, 9), "expect");
	host_stop(&b);
	rig_end();
}

/* It stands still; its adapter goes on. */
static void stopped(const void *argument)
{
	struct dsm_msg msg = message(7, DSM_GETS, 0);
	unsigned int i, messages;
	struct child child;
	struct host b;

	(void)argument;
	start_child(&child);
	host_prepare(&b, 0);
	host_start(&b);
	point_child(&child, &b);
	kill(child.pid, SIGSTOP);
	while (dsm_transport_room(b.transport, 1))
		CHECK(!dsm_transport_send(b.transport, 1, &msg, NULL), "send");
	/* What it had sent still comes; then a question that it does not answer. */
	do {
		messages = b.messages;
		for (i = 0; i < 50; i++)
			run_pending();
	} while (messages != b.messages);
	for (i = 0; i < 9 && !b.nr_ends; i++) {
		clock_ns += QUESTION / 2;
		dsm_transport_tick(b.transport);
		run_pending();
	}
	CHECK(b.nr_ends == 1 && b.end[0].reason == DSM_END_SILENT, "%u, %s",
	      b.nr_ends, dsm_end_name(b.end[0].reason));
	child_gone(&child);
	run_pending();
	CHECK(b.nr_ends == 1, "another end");
	host_stop(&b);
	rig_end();
}

/* How long does it take? */

static double microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void say_times(const char *what, double *times)
{
	qsort(times, ROUNDS, sizeof(times[0]), by_size);
	printf("round trip, 4 KiB both ways, %s: median %.1f us, 99 %% %.1f us\n",
	       what, times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
}

static void pong(struct host *h, const struct dsm_msg *msg, const uint8_t *page)
{
	struct dsm_msg back = *msg;

	CHECK(!dsm_transport_send(h->transport, 1, &back, page), "send");
}

static void round_trip(const void *argument)
{
	static uint8_t bytes[LINE_BYTES], page[DSM_PAGE_BYTES];
	struct dsm_msg msg = message(7, DSM_RDATA, 0);
	static double times[ROUNDS];
	struct line x, y;
	struct host a, b;
	unsigned int i;
	double begun;

	(void)argument;
	rig_begin();
	line_pair(&x, &y);
	for (i = 0; i < ROUNDS; i++) {
		begun = microseconds();
		line_post(&x, bytes, 4096);
		CHECK(line_receive(&y, bytes) == 4096, "ping");
		line_post(&y, bytes, 4096);
		CHECK(line_receive(&x, bytes) == 4096, "pong");
		times[i] = microseconds() - begun;
		wait_for_sends(&(struct liar){ .line = x }, 1);
		wait_for_sends(&(struct liar){ .line = y }, 1);
	}
	say_times("plain SENDs", times);
	line_close(&x);
	line_close(&y);

	host_prepare(&a, 1);
	host_prepare(&b, 0);
	host_start(&b);
	host_start(&a);
	b.on_message = pong;
	connect_hosts(&a, &b);
	UNTIL(dsm_transport_room(a.transport, 0));
	for (i = 0; i < ROUNDS; i++) {
		begun = microseconds();
		CHECK(!dsm_transport_send(a.transport, 0, &msg, page), "send");
		while (a.messages == i) {
			dsm_transport_poll(b.transport);
			dsm_transport_poll(a.transport);
			CHECK(!a.nr_ends && !b.nr_ends &&
			      microseconds() - begun < 60e6, "it never comes");
		}
		times[i] = microseconds() - begun;
	}
	say_times("messages by polling", times);
	host_stop(&a);
	host_stop(&b);
	rig_end();
}

int main(int argc, char **argv)
{
	static const struct test_case others[] = {
		{ "a wrong proof, and one played again", proof, NULL },
		{ "a stranger", stranger, NULL },
		{ "a wrong answer", answered, NULL },
		{ "TLS and no RDMA", no_rdma, NULL },
		{ "a peer that is killed", killed, NULL },
		{ "a peer that stands still", stopped, NULL },
		{ "round trip", round_trip, NULL },
		{ "a lost frame", lost_frame, NULL },
		{ "an answer that we see too late", late_look, NULL },
		{ "RTU is lost", no_rtu, NULL },
		{ "FAIL before RTU", no_rtu, "FAIL" },
		{ "keys without end", keys, NULL },
	};
	static struct test_case cases[NR(others) + NR(lies) + NR(takers)];
	static char names[NR(lies) + NR(takers)][96];
	size_t i;

	memcpy(cases, others, sizeof(others));
	for (i = 0; i < NR(lies); i++) {
		snprintf(names[i], sizeof(names[i]), "a lie: %s", lies[i].name);
		cases[NR(others) + i] =
			(struct test_case){ names[i], lying, &lies[i] };
	}
	for (i = 0; i < NR(takers); i++) {
		char *name = names[NR(lies) + i];

		snprintf(name, sizeof(names[0]), "END: %s", takers[i].name);
		cases[NR(others) + NR(lies) + i] =
			(struct test_case){ name, taker, &takers[i] };
	}
	return run_cases(argc, argv, cases, rig_is_rdma() ? NR(cases) : 0);
}
