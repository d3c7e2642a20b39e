// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to xenstore in a row: xenbus_batch.c as it is, above a xenbus that is
 * played: it has what is sent in a list, and answers all of it at one time.
 */
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <xen/xenbus_batch.h>

#include "case.h"
#include "xenbus.h"

#define MAX	8

/* What was sent, in its order, and how it is answered: NULL: as it should be. */
static struct xb_req_data *sent[MAX];
static const char *answers[MAX];
static unsigned int nr_sent, nr_waited, nr_exits, nr_allocated, nr_freed, wakes, nr_bodies;
static unsigned int fails_at;		/* the next but N - 1 allocation; 0: none */
static bool answered, shutdown, odd;
static bool at_once;			/* each is answered before who sends it goes on */
#define END	0x5a
static struct { char *at; size_t size; } pieces[32];
static unsigned int nr_pieces;
static u32 transaction;
static char said[200];
static struct xenbus_batch batch;

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

void fail(const char *format, ...) { exit(1); }

/* Who writes pages out may wait for xenstore. */
void *allocate(size_t size, unsigned int gfp)
{
	CHECK(gfp & GFP_NOIO, "waits for who may wait for it");
	if (fails_at && !--fails_at)
		return NULL;
	CHECK(nr_pieces < ARRAY_SIZE(pieces), "%u requests", nr_pieces);
	nr_allocated++;
	pieces[nr_pieces].size = size;
	pieces[nr_pieces].at = calloc(1, size + 1);
	pieces[nr_pieces].at[size] = END;
	return pieces[nr_pieces++].at;
}

/* Nobody has written behind its end. */
static void check_end(const void *pointer)
{
	unsigned int i;

	for (i = nr_pieces; i--; ) {
		if (pieces[i].at != pointer)
			continue;
		CHECK(pieces[i].at[pieces[i].size] == END, "longer than %zu bytes", pieces[i].size);
		pieces[i].at = NULL;
		return;
	}
}

/* An answer, or a request that was never sent. */
void give_back(void *pointer)
{
	if (!pointer)
		return;
	nr_bodies--;
	check_end(pointer);
	free(pointer);
}

/* What is read of it afterwards is nonsense. */
void xs_free_req(struct kref *kref)
{
	struct xb_req_data *req = container_of(kref, struct xb_req_data, kref);

	nr_freed++;
	check_end(req);
	memset(req, 0xa5, malloc_usable_size(req));
	free(req);
}

static void lost(int signal)
{
	static const char words[] = "read of a request that is gone\n";

	(void)!write(1, words, sizeof(words) - 1);
	_exit(1);
}

static struct wait_queue_head *last_woken;

void woken(struct wait_queue_head *queue)
{
	wakes++;
	last_woken = queue;
}

void xs_request_exit(struct xb_req_data *req) { nr_exits++; }

int xs_get_error(const char *text)
{
	return !strcmp(text, "ENOENT") ? ENOENT : !strcmp(text, "EACCES") ? EACCES : EINVAL;
}

/* The thread that reads the answers. */
static void answer(unsigned int i)
{
	struct xb_req_data *req = sent[i];

	if (answers[i] && strncmp(answers[i], "=", 1))
		req->msg.type = XS_ERROR;
	else if (odd)
		req->msg.type = XS_READ + 1;
	nr_bodies++;
	req->body = strdup(answers[i] ? answers[i] + (*answers[i] == '=') : "OK");
	req->cb(req);
	kref_put(&req->kref, xs_free_req);
}

static void answer_all(void)
{
	unsigned int i;

	answered = true;
	for (i = 0; i < nr_sent; i++)
		answer(i);
}

void xs_send(struct xb_req_data *req, struct xsd_sockmsg *msg)
{
	CHECK(!answered && nr_sent < MAX, "sent after an answer was waited for");
	CHECK(req->kref.references == 1 && !req->user_req && req->num_vecs == 1, "request %u", nr_sent);
	CHECK(req->vec->iov_len == msg->len, "%zu bytes, %u", req->vec->iov_len, msg->len);
	req->kref.references++;
	req->type = msg->type;
	req->msg = *msg;
	sent[nr_sent++] = req;
	transaction = msg->tx_id;
	if (at_once)
		answer(nr_sent - 1);
}

void *xs_wait_for_reply(struct xb_req_data *req, struct xsd_sockmsg *msg)
{
	char *body;

	CHECK(nr_waited || req == sent[nr_sent - 1], "woken for each answer");
	nr_waited++;
	if (!answered && !at_once)
		answer_all();
	body = req->body;
	if (shutdown) {
		kfree(body);
		body = ERR_PTR(-EIO);
	}
	xs_request_exit(req);
	*msg = req->msg;
	kref_put(&req->kref, xs_free_req);
	return body;
}

/* Who sleeps is woken by what the thread does, or never. */
void sleep_on(struct wait_queue_head *queue)
{
	CHECK(!answered, "it sleeps for ever");
	last_woken = NULL;
	answer_all();
	CHECK(last_woken == queue, "nobody wakes it");
}

/* @texts: answers that the caller has. */
static void is_over(unsigned int n, unsigned int texts)
{
	CHECK(nr_bodies == texts, "%u answers are left", nr_bodies);
	CHECK(nr_sent == n && nr_exits == n, "%u sent, %u ended", nr_sent, nr_exits);
	CHECK(nr_allocated == n && nr_freed == n, "%u requests, %u freed", nr_allocated, nr_freed);
	CHECK(batch.requests.next == &batch.requests, "the row is not empty");
}

static void holds(unsigned int n, const char *body, size_t length)
{
	CHECK(sent[n]->vec->iov_len == length && !memcmp(sent[n]->vec->iov_base, body, length),
	      "request %u: %.*s", n, (int)sent[n]->vec->iov_len, (char *)sent[n]->vec->iov_base);
}

/* What goes over the ring, and in which order. */
static void what_is_sent(const void *argument)
{
	char *text;

	xenbus_batch_init(&batch);
	xenbus_batch_write(&batch, "a", "b", "text");
	xenbus_batch_rm(&batch, "a/b", "c");
	xenbus_batch_write(&batch, "a", "empty", "");
	xenbus_batch_post(&batch);
	holds(0, "a/b\0text", 8);
	holds(1, "a/b/c", 6);
	holds(2, "a/empty", 8);
	CHECK(sent[0]->type == XS_WRITE && sent[1]->type == XS_RM && sent[2]->type == XS_WRITE, "types");
	CHECK(!sent[0]->msg.tx_id, "transaction %u", sent[0]->msg.tx_id);
	answer_all();
	is_over(3, 0);

	nr_sent = wakes = 0;
	answered = false;
	xenbus_batch_read(&batch, "a", "b", &text);
	CHECK(IS_ERR(text), "an answer before there is one");
	xenbus_batch_write(&batch, "c", "d", "1");
	xenbus_batch_run(&batch, (struct xenbus_transaction){ 77 });
	CHECK(transaction == 77, "transaction %u", transaction);
	CHECK(wakes == 2, "woken %u times", wakes);
	CHECK(!strcmp(text, "OK"), "%s", text);
}

/* Each answer is that of its own request. */
static void answers_of_all(const void *argument)
{
	char *text[4];

	xenbus_batch_init(&batch);
	xenbus_batch_read(&batch, "a", "0", &text[0]);
	xenbus_batch_read(&batch, "a", "1", &text[1]);
	xenbus_batch_write(&batch, "a", "2", "2");
	xenbus_batch_rm(&batch, "a", "3");
	xenbus_batch_read(&batch, "a", "4", &text[2]);
	answers[0] = "=zero";
	answers[1] = "ENOENT";
	answers[3] = "ENOENT";	/* it is to go, and not there */
	answers[4] = "=";
	CHECK(!xenbus_batch_run(&batch, XBT_NIL), "what failed is a read, which its text tells");
	CHECK(!strcmp(text[0], "zero") && !strcmp(text[2], "") && PTR_ERR(text[1]) == -ENOENT, "%s", text[0]);
	CHECK(wakes == 5 && nr_waited == 5, "%u answers, %u of them waited for", wakes, nr_waited);
	is_over(5, 2);
}

/* The first in the order in which they were sent. */
static void one_fails(const void *argument)
{
	xenbus_batch_init(&batch);
	xenbus_batch_write(&batch, "a", "0", "");
	xenbus_batch_write(&batch, "a", "1", "");
	xenbus_batch_rm(&batch, "a", "2");
	xenbus_batch_write(&batch, "a", "3", "");
	answers[1] = "ENOENT";	/* of a write it is an error */
	answers[2] = "EACCES";
	CHECK(xenbus_batch_run(&batch, XBT_NIL) == -ENOENT, "another error");
	is_over(4, 0);
}

static void odd_answers(const void *argument)
{
	char *text;

	odd = true;
	xenbus_batch_init(&batch);
	xenbus_batch_read(&batch, "a", "0", &text);
	xenbus_batch_write(&batch, "a", "1", "");
	CHECK(xenbus_batch_run(&batch, XBT_NIL) == -EINVAL && PTR_ERR(text) == -EINVAL, "an answer to something else");
	is_over(2, 0);
}

static void no_answer_any_more(const void *argument)
{
	char *text;

	shutdown = true;
	xenbus_batch_init(&batch);
	xenbus_batch_read(&batch, "a", "0", &text);
	xenbus_batch_write(&batch, "a", "1", "");
	CHECK(xenbus_batch_run(&batch, XBT_NIL) == -EIO && PTR_ERR(text) == -EIO, "the guest shuts down");
	is_over(2, 0);
}

static void not_waited_for(const void *argument)
{
	xenbus_batch_init(&batch);
	xenbus_batch_rm(&batch, "a", "0");
	xenbus_batch_write(&batch, "a", "1", "one");
	CHECK(!xenbus_batch_post(&batch) && !nr_waited && nr_sent == 2, "%u waited for", nr_waited);
	answers[0] = "ENOENT";
	answer_all();
	CHECK(!said[0] && wakes == 1, "'%s', %u answers woke", said, wakes);
	is_over(2, 0);

	nr_sent = 0;
	answered = false;
	xenbus_batch_write(&batch, "a", "1", "one");
	CHECK(!xenbus_batch_post(&batch), "post");
	answers[0] = "EACCES";
	answer_all();
	CHECK(!strcmp(said, "cannot write a/1: -13\n"), "'%s'", said);
	CHECK(nr_freed == 3 && nr_exits == 3, "%u freed", nr_freed);
}

/* ... until somebody needs all of it done: once, at the last answer. */
static void waited_for_later(const void *argument)
{
	xenbus_batch_settle();
	xenbus_batch_init(&batch);
	xenbus_batch_write(&batch, "a", "0", "zero");
	xenbus_batch_write(&batch, "a", "1", "one");
	CHECK(!xenbus_batch_post(&batch), "post");
	xenbus_batch_write(&batch, "a", "2", "two");
	CHECK(!xenbus_batch_post(&batch) && !answered, "post");
	answers[1] = "EACCES";
	xenbus_batch_settle();
	CHECK(answered && wakes == 1, "%u answers woke", wakes);
	is_over(3, 0);
	xenbus_batch_settle();
}

/* ... or nobody has to: each was answered, and is gone, before the next one was sent. */
static void answered_at_once(const void *argument)
{
	char *text[2];

	at_once = true;
	xenbus_batch_init(&batch);
	xenbus_batch_write(&batch, "a", "0", "zero");
	xenbus_batch_write(&batch, "a", "1", "one");
	xenbus_batch_rm(&batch, "a", "2");
	CHECK(!xenbus_batch_post(&batch), "post");
	CHECK(wakes == 3, "%u of 3 were the last", wakes);
	xenbus_batch_settle();
	is_over(3, 0);

	xenbus_batch_read(&batch, "a", "3", &text[0]);
	xenbus_batch_read(&batch, "a", "4", &text[1]);
	CHECK(!xenbus_batch_run(&batch, XBT_NIL), "run");
	CHECK(!strcmp(text[0], "OK") && !strcmp(text[1], "OK"), "%s, %s", text[0], text[1]);
	is_over(5, 2);
}

/* All or nothing. */
static void no_memory(const void *argument)
{
	char *text[2];
	unsigned int at;

	for (at = 1; at <= 3; at++) {
		nr_allocated = nr_bodies = 0;
		xenbus_batch_init(&batch);
		fails_at = at;
		xenbus_batch_read(&batch, "a", "0", &text[0]);
		xenbus_batch_write(&batch, "a", "1", "");
		xenbus_batch_read(&batch, "a", "2", &text[1]);
		CHECK(xenbus_batch_run(&batch, XBT_NIL) == -ENOMEM && !nr_sent, "%u sent", nr_sent);
		CHECK(PTR_ERR(text[0]) == -ENOMEM && PTR_ERR(text[1]) == -ENOMEM, "an answer");
		CHECK(batch.requests.next == &batch.requests, "the row is not empty");
		xenbus_batch_init(&batch);
		fails_at = 2;
		xenbus_batch_write(&batch, "a", "1", "");
		xenbus_batch_write(&batch, "a", "2", "");
		CHECK(xenbus_batch_post(&batch) == -ENOMEM && !nr_sent, "%u sent", nr_sent);
		CHECK(nr_allocated == 3 && nr_allocated + nr_bodies == 0, "%u requests are left", nr_allocated + nr_bodies);
	}
	/* The next one knows nothing of that. */
	xenbus_batch_init(&batch);
	xenbus_batch_write(&batch, "a", "1", "");
	CHECK(!xenbus_batch_run(&batch, XBT_NIL) && nr_sent == 1, "%u sent", nr_sent);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "batch: what is sent", what_is_sent },
		{ "batch: the answers", answers_of_all },
		{ "batch: one fails", one_fails },
		{ "batch: odd answers", odd_answers },
		{ "batch: no answer any more", no_answer_any_more },
		{ "batch: not waited for", not_waited_for },
		{ "batch: waited for later", waited_for_later },
		{ "batch: answered at once", answered_at_once },
		{ "batch: no memory", no_memory },
	};

	signal(SIGSEGV, lost);
	signal(SIGBUS, lost);
	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
