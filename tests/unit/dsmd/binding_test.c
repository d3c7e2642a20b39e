// SPDX-License-Identifier: GPL-2.0
/*
 * The proof that binds an RDMA connection to a TLS session: what it covers, and
 * that it is good for one request.  Two sessions over a pair of sockets; no
 * RDMA.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "binding.h"
#include "queue_pair.h"
#include "rig.h"

#define OPENER		1
#define ACCEPTOR	0
#define EPOCH		7
#define PORT		0xabcd

/* A TLS session, and both ends' part of its binding. */
struct bound {
	SSL_CTX *context[2];
	SSL *ssl[2];
	int fd[2];
	struct dsm_binding binding[2];	/* opener's, acceptor's */
	uint8_t frame[2][DSM_BINDING_FRAME];
};

static void shake_hands(SSL *a, SSL *b)
{
	unsigned int turns;

	for (turns = 0; turns < 100; turns++) {
		int done_a = SSL_do_handshake(a), done_b = SSL_do_handshake(b);

		if (done_a == 1 && done_b == 1)
			return;
	}
	CHECK(false, "no handshake");
}

static void bind_both(struct bound *t)
{
	struct papers papers = host_papers(1);
	unsigned int i;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, t->fd), "a pair");
	for (i = 0; i < 2; i++) {
		t->context[i] = SSL_CTX_new(TLS_method());
		CHECK(t->context[i] &&
		      SSL_CTX_set_min_proto_version(t->context[i], TLS1_3_VERSION) &&
		      SSL_CTX_use_certificate(t->context[i], papers.certificate) == 1 &&
		      SSL_CTX_use_PrivateKey(t->context[i], papers.key) == 1, "TLS");
		t->ssl[i] = SSL_new(t->context[i]);
		CHECK(t->ssl[i] && SSL_set_fd(t->ssl[i], t->fd[i]), "TLS");
	}
	SSL_set_connect_state(t->ssl[0]);
	SSL_set_accept_state(t->ssl[1]);
	shake_hands(t->ssl[0], t->ssl[1]);
	papers_free(&papers);

	CHECK(!dsm_binding_init(&t->binding[0], t->ssl[0], false, OPENER, ACCEPTOR,
				EPOCH, 0), "init");
	CHECK(!dsm_binding_init(&t->binding[1], t->ssl[1], true, ACCEPTOR, OPENER,
				EPOCH, PORT), "init");
	for (i = 0; i < 2; i++)
		dsm_binding_put(&t->binding[i], t->frame[i]);
	CHECK(!dsm_binding_get(&t->binding[1], t->frame[0]) &&
	      !dsm_binding_get(&t->binding[0], t->frame[1]), "each other's");
	CHECK(t->binding[0].port == PORT, "%u", t->binding[0].port);
}

static void unbind(struct bound *t)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		SSL_free(t->ssl[i]);
		SSL_CTX_free(t->context[i]);
		close(t->fd[i]);
	}
}

static struct dsm_binding_ends some_ends(void)
{
	struct dsm_binding_ends ends = { .opener_qp = 17, .acceptor_qp = 0x01020304 };
	unsigned int i;

	for (i = 0; i < 16; i++) {
		ends.opener_gid[i] = (uint8_t)(0x10 + i);
		ends.acceptor_gid[i] = (uint8_t)(0x80 + i);
	}
	return ends;
}

static void request_and_answer(const void *argument)
{
	uint8_t request[DSM_BINDING_PRIVATE], answer[DSM_BINDING_PRIVATE];
	struct dsm_binding_ends ends = some_ends();
	struct bound t;

	(void)argument;
	rig_begin();
	bind_both(&t);
	CHECK(!dsm_binding_prove(&t.binding[0], false, &ends, request), "prove");
	CHECK(dsm_binding_is_for(&t.binding[1], request, sizeof(request)), "for it");
	CHECK(dsm_binding_holds(&t.binding[1], false, &ends, request,
				sizeof(request)), "the request");
	CHECK(!dsm_binding_is_for(&t.binding[1], request, sizeof(request)) &&
	      !dsm_binding_holds(&t.binding[1], false, &ends, request,
				 sizeof(request)), "the same request again");
	CHECK(!dsm_binding_prove(&t.binding[1], true, &ends, answer), "prove");
	CHECK(memcmp(request, answer, sizeof(answer)), "the same for both");
	CHECK(!dsm_binding_holds(&t.binding[0], true, &ends, request,
				 sizeof(request)), "the request as the answer");
	CHECK(dsm_binding_holds(&t.binding[0], true, &ends, answer,
				sizeof(answer)), "the answer");
	CHECK(!dsm_binding_holds(&t.binding[0], true, &ends, answer,
				 sizeof(answer)), "the same answer again");
	/* The acceptor's queue pair is not known when the request is made. */
	unbind(&t);
	bind_both(&t);
	ends.acceptor_qp = 0;
	CHECK(!dsm_binding_prove(&t.binding[0], false, &ends, request), "prove");
	CHECK(!dsm_binding_holds(&t.binding[0], true, &ends, request,
				 sizeof(request)), "a request that comes back");
	ends.acceptor_qp = 99;
	CHECK(dsm_binding_holds(&t.binding[1], false, &ends, request,
				sizeof(request)), "the request");
	unbind(&t);
	rig_end();
}

/* Each bit of the private data, and of everything that it stands for. */
static void each_bit(const void *argument)
{
	bool answer = argument != NULL;
	uint8_t good[DSM_BINDING_PRIVATE], bytes[DSM_BINDING_PRIVATE];
	struct dsm_binding_ends right = some_ends(), ends;
	struct dsm_binding *prover, *judge, saved;
	unsigned int bit, refused = 0;
	struct bound t;

	rig_begin();
	bind_both(&t);
	prover = &t.binding[answer ? 1 : 0];
	judge = &t.binding[answer ? 0 : 1];
	CHECK(!dsm_binding_prove(prover, answer, &right, good), "prove");
	for (bit = 0; bit < 8 * sizeof(good); bit++, refused++) {
		memcpy(bytes, good, sizeof(good));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK(!dsm_binding_holds(judge, answer, &right, bytes,
					 sizeof(bytes)), "bit %u", bit);
	}
	for (bit = 0; bit < 8 * sizeof(ends); bit++) {
		ends = right;
		((uint8_t *)&ends)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* What a request can't know does not count. */
		if (!answer && ends.acceptor_qp != right.acceptor_qp)
			continue;
		CHECK(!dsm_binding_holds(judge, answer, &ends, good,
					 sizeof(good)), "end's bit %u", bit);
		refused++;
	}
	saved = *judge;
	for (bit = 0; bit < 8 * DSM_BINDING_NONCE; bit++, refused += 3) {
		uint8_t change = (uint8_t)(1u << bit % 8);

		judge->theirs[bit / 8] ^= change;
		CHECK(!dsm_binding_holds(judge, answer, &right, good,
					 sizeof(good)), "nonce");
		*judge = saved;
		judge->ours[bit / 8] ^= change;
		CHECK(!dsm_binding_holds(judge, answer, &right, good,
					 sizeof(good)), "our nonce");
		*judge = saved;
		judge->key[bit / 8] ^= change;
		CHECK(!dsm_binding_holds(judge, answer, &right, good,
					 sizeof(good)), "key");
		*judge = saved;
	}
	judge->opener++;
	CHECK(!dsm_binding_holds(judge, answer, &right, good, sizeof(good)), "host");
	*judge = saved;
	judge->acceptor++;
	CHECK(!dsm_binding_holds(judge, answer, &right, good, sizeof(good)), "host");
	*judge = saved;
	CHECK(!dsm_binding_holds(judge, answer, &right, good, sizeof(good) - 1),
	      "too short");
	CHECK(!dsm_binding_holds(judge, !answer, &right, good, sizeof(good)),
	      "the other role");
	/* Nothing of this has used it up. */
	CHECK(dsm_binding_holds(judge, answer, &right, good, sizeof(good)), "good");
	printf("%u refused\n", refused);
	CHECK(refused > 1000, "%u", refused);
	unbind(&t);
	rig_end();
}

static void other_session(const void *argument)
{
	uint8_t bytes[DSM_BINDING_PRIVATE];
	struct dsm_binding_ends ends = some_ends();
	struct bound one, two;

	(void)argument;
	rig_begin();
	bind_both(&one);
	bind_both(&two);
	CHECK(memcmp(one.binding[0].key, two.binding[0].key, DSM_BINDING_KEY),
	      "the same key");
	CHECK(!memcmp(one.binding[0].key, one.binding[1].key, DSM_BINDING_KEY),
	      "not the same key");
	CHECK(!dsm_binding_prove(&one.binding[0], false, &ends, bytes), "prove");
	CHECK(!dsm_binding_holds(&two.binding[1], false, &ends, bytes,
				 sizeof(bytes)), "of another session");
	/* Even if the session's name, the nonces and the hosts were the same. */
	memcpy(two.binding[1].session, one.binding[1].session, DSM_BINDING_NONCE);
	memcpy(two.binding[1].ours, one.binding[1].ours, DSM_BINDING_NONCE);
	memcpy(two.binding[1].theirs, one.binding[1].theirs, DSM_BINDING_NONCE);
	CHECK(!dsm_binding_holds(&two.binding[1], false, &ends, bytes,
				 sizeof(bytes)), "of another session");
	unbind(&one);
	unbind(&two);
	rig_end();
}

/* What is said through TLS, and does not make sense. */
static void frames(const void *argument)
{
	static const struct {
		unsigned int at;
		uint8_t value;
		bool opener;	/* of the opener's frame */
	} wrong[] = {
		{ 0, 0xfe, true }, { 1, 1, true }, { 1, DSM_BINDING_KIND + 1, true },
		{ 2, 1, true }, { 3, 1, true }, { 4, EPOCH + 1, true },
		{ 7, 1, true }, { 8, 1, true }, { 23, 0x80, true },
		{ 0, 0, false }, { 1, 3, false }, { 5, 1, false },
	};
	uint8_t bytes[DSM_BINDING_FRAME];
	struct bound t;
	unsigned int i;

	(void)argument;
	rig_begin();
	bind_both(&t);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(bytes, t.frame[wrong[i].opener ? 0 : 1], sizeof(bytes));
		bytes[wrong[i].at] = wrong[i].value;
		CHECK(dsm_binding_get(&t.binding[wrong[i].opener ? 1 : 0], bytes) ==
		      -EINVAL, "case %u", i);
	}
	/* Our own part, as a mirror would send it back. */
	CHECK(dsm_binding_get(&t.binding[0], t.frame[0]) == -EINVAL, "a mirror");
	CHECK(dsm_binding_get(&t.binding[1], t.frame[1]) == -EINVAL, "a mirror");
	memcpy(bytes, t.frame[1], sizeof(bytes));
	memset(bytes + 2, 0, 2);
	CHECK(dsm_binding_get(&t.binding[0], bytes) == -EINVAL, "no port");
	memcpy(bytes, t.frame[1], sizeof(bytes));
	memset(bytes + 8, 0, DSM_BINDING_NONCE);
	CHECK(dsm_binding_get(&t.binding[0], bytes) == -EINVAL, "no session");
	unbind(&t);
	rig_end();
}

static void before_theirs(const void *argument)
{
	static const uint8_t nothing[DSM_BINDING_KEY];
	uint8_t bytes[DSM_BINDING_PRIVATE] = { 0 };
	struct dsm_binding_ends ends = some_ends();
	struct dsm_binding fresh;
	struct bound t;

	(void)argument;
	rig_begin();
	bind_both(&t);
	CHECK(!dsm_binding_init(&fresh, t.ssl[1], true, ACCEPTOR, OPENER, EPOCH,
				PORT), "init");
	CHECK(!dsm_binding_prove(&fresh, false, &ends, bytes), "prove");
	CHECK(!dsm_binding_holds(&fresh, false, &ends, bytes, sizeof(bytes)),
	      "used before the other end has said anything");
	CHECK(!dsm_binding_prove(&t.binding[0], false, &ends, bytes) &&
	      dsm_binding_is_for(&t.binding[0], bytes, sizeof(bytes)), "prove");
	dsm_binding_clear(&t.binding[0]);
	CHECK(!dsm_binding_is_for(&t.binding[0], bytes, sizeof(bytes)), "cleared");
	CHECK(!memcmp(t.binding[0].key, nothing, sizeof(nothing)), "its key is there");
	unbind(&t);
	rig_end();
}

/* Whose fault: a receive that fails is what the peer has sent, but for the adapter's own errors. */
static void completions(const void *argument)
{
	static const struct {
		enum ibv_wc_status status;
		enum dsm_end receive, send;
	} table[] = {
		{ IBV_WC_LOC_LEN_ERR, DSM_END_FRAME, DSM_END_CUT },
		{ IBV_WC_LOC_PROT_ERR, DSM_END_FRAME, DSM_END_CUT },
		{ IBV_WC_REM_INV_REQ_ERR, DSM_END_FRAME, DSM_END_CUT },
		{ IBV_WC_WR_FLUSH_ERR, DSM_END_CUT, DSM_END_CUT },
		{ IBV_WC_RETRY_EXC_ERR, DSM_END_FRAME, DSM_END_CUT },
		{ IBV_WC_FATAL_ERR, DSM_END_LOCAL, DSM_END_LOCAL },
		{ IBV_WC_GENERAL_ERR, DSM_END_LOCAL, DSM_END_LOCAL },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		CHECK(dsm_qp_end(table[i].status, true) == table[i].receive &&
		      dsm_qp_end(table[i].status, false) == table[i].send, "status %u: %s, %s",
		      table[i].status, dsm_end_name(dsm_qp_end(table[i].status, true)),
		      dsm_end_name(dsm_qp_end(table[i].status, false)));
}

static void small_adapters(const void *argument)
{
	/* 68 sends; a region of 10 frames is 41920 bytes, so 45056. */
	static const struct {
		struct ibv_device_attr adapter;
		uint32_t receives;
		const char *words;
	} table[] = {
		{ { .max_qp_wr = 100, .max_cqe = 168, .max_mr_size = 45056 }, 100, "" },
		{ { .max_qp_wr = 68, .max_cqe = 69, .max_mr_size = 45056 }, 1, "" },
		{ { .max_qp_wr = 0 }, 100000, "" },
		{ { .max_qp_wr = 99 }, 100, "takes 99 messages at a time, 100 are needed: fewer \"credits\"" },
		{ { .max_qp_wr = 67 }, 1, "takes 67 messages at a time, 68 are needed" },
		{ { .max_cqe = 167 }, 100, "queues of 167 completions, 168 are needed" },
		{ { .max_mr_size = 45055 }, 1, "memory regions of 45055 bytes, 45056 are needed: fewer \"credits\" or" },
	};
	char text[DSM_TRANSPORT_TEXT];
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		text[0] = 0;
		CHECK(dsm_qp_fits(&table[i].adapter, table[i].receives, 10, text) == !table[i].words[0],
		      "%u: %s", i, text);
		CHECK(strstr(text, table[i].words), "%u: %s", i, text);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "binding: a request and its answer", request_and_answer, NULL },
		{ "binding: each bit of a request", each_bit, NULL },
		{ "binding: each bit of an answer", each_bit, "answer" },
		{ "binding: another session", other_session, NULL },
		{ "binding: frames that make no sense", frames, NULL },
		{ "binding: too early, too late", before_theirs, NULL },
		{ "queue pair: completions", completions, NULL },
		{ "queue pair: small adapters", small_adapters, NULL },
	};

	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
