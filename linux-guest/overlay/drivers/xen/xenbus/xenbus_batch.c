// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to xenstore in a row (<xen/xenbus_batch.h>).
 *
 * Each is a request as any other, on the same ring and with its own answer; who
 * sends them does not wait in between.  The one sent last is waited for first: as
 * a rule all others have been answered then, and the waiter is woken once.
 *
 * Locking: none of its own.  xs_send() and xs_wait_for_reply() keep a suspend away
 * while a request is under way, also between those of a row.
 */
#define pr_fmt(fmt) "xenbus: " fmt

#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uio.h>
#include <linux/wait.h>

#include <xen/xenbus_batch.h>

#include "xenbus.h"

/**
 * struct batch_request - a request of a row
 * @req: what is sent; first, so that who frees it frees all
 * @row: in the batch
 * @text: of a read: where the answer is to be
 * @body: the path, and of a write the text
 */
struct batch_request {
	struct xb_req_data req;
	struct list_head row;
	struct kvec vec;
	char **text;
	char body[];
};

/* Requests that nobody waits for and that are not answered yet. */
static atomic_t under_way = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(none_under_way);

void xenbus_batch_init(struct xenbus_batch *batch)
{
	INIT_LIST_HEAD(&batch->requests);
	batch->error = 0;
}

static void add(struct xenbus_batch *batch, enum xsd_sockmsg_type type,
		const char *dir, const char *key, const char *value,
		char **text)
{
	size_t path = strlen(dir) + 1 + strlen(key) + 1;
	size_t length = path + strlen(value);
	struct batch_request *r;

	/* Until there is an answer. */
	if (text)
		*text = ERR_PTR(-ENOMEM);
	r = kzalloc(struct_size(r, body, length + 1), GFP_NOIO | __GFP_HIGH);
	if (!r) {
		batch->error = -ENOMEM;
		return;
	}
	snprintf(r->body, path, "%s/%s", dir, key);
	memcpy(r->body + path, value, length - path);
	r->vec.iov_base = r->body;
	r->vec.iov_len = length;
	r->text = text;
	r->req.vec = &r->vec;
	r->req.num_vecs = 1;
	r->req.msg.type = type;
	r->req.msg.len = length;
	kref_init(&r->req.kref);
	list_add_tail(&r->row, &batch->requests);
}

/**
 * xenbus_batch_read() - a read
 * @batch: to this row
 * @dir: its folder
 * @key: its name
 * @text: where the text is to be after xenbus_batch_run(): to be freed with
 *	kfree(), or an ERR_PTR()
 */
void xenbus_batch_read(struct xenbus_batch *batch, const char *dir,
		       const char *key, char **text)
{
	add(batch, XS_READ, dir, key, "", text);
}

/**
 * xenbus_batch_write() - a write
 * @batch: to this row
 * @dir: its folder
 * @key: its name
 * @text: what to write; it is copied
 */
void xenbus_batch_write(struct xenbus_batch *batch, const char *dir,
			const char *key, const char *text)
{
	add(batch, XS_WRITE, dir, key, text, NULL);
}

/**
 * xenbus_batch_rm() - a removal; that there is no such key is no error
 * @batch: to this row
 * @dir: its folder
 * @key: its name
 */
void xenbus_batch_rm(struct xenbus_batch *batch, const char *dir,
		     const char *key)
{
	add(batch, XS_RM, dir, key, "", NULL);
}

static void forget(struct xenbus_batch *batch)
{
	struct batch_request *r, *next;

	list_for_each_entry_safe(r, next, &batch->requests, row)
		kfree(r);
	INIT_LIST_HEAD(&batch->requests);
}

static void send(struct batch_request *r, struct xenbus_transaction t,
		 void (*answered)(struct xb_req_data *req))
{
	struct xsd_sockmsg msg = r->req.msg;

	msg.tx_id = t.id;
	r->req.cb = answered;
	xs_send(&r->req, &msg);
}

static void wake_waiter(struct xb_req_data *req)
{
	wake_up(&req->wq);
}

/* Of a key that is to go, it is no error that it is not there. */
static int error_of(enum xsd_sockmsg_type type, const char *body)
{
	int err = xs_get_error(body);

	return type == XS_RM && err == ENOENT ? 0 : -err;
}

/* Returns why it failed, if it is no read; of a read the text has it. */
static int wait_for_answer(struct batch_request *r)
{
	enum xsd_sockmsg_type type = r->req.type;
	char **text = r->text, *body;
	struct xsd_sockmsg msg;
	int rc = 0;

	body = xs_wait_for_reply(&r->req, &msg);
	/* It may be gone now. */
	if (IS_ERR(body)) {
		rc = PTR_ERR(body);
		body = NULL;
	} else if (msg.type != type) {
		rc = msg.type == XS_ERROR ? error_of(type, body) : -EINVAL;
	}
	if (text)
		*text = rc ? ERR_PTR(rc) : body;
	if (rc || !text)
		kfree(body);
	return text ? 0 : rc;
}

/**
 * xenbus_batch_run() - send a row and wait until all of it is answered
 * @batch: the row; empty afterwards
 * @t: the transaction that it belongs to, or XBT_NIL
 *
 * All are sent, also when one fails.
 *
 * Context: sleeps.
 * Return: 0, or why a write or a removal failed; -ENOMEM: nothing was sent, and
 *	each read has that as its answer.
 */
int xenbus_batch_run(struct xenbus_batch *batch, struct xenbus_transaction t)
{
	struct batch_request *r, *next;
	int rc = 0, err;

	if (batch->error) {
		forget(batch);
		return batch->error;
	}
	list_for_each_entry(r, &batch->requests, row)
		send(r, t, wake_waiter);
	list_for_each_entry_safe_reverse(r, next, &batch->requests, row) {
		err = wait_for_answer(r);
		rc = err ?: rc;
	}
	INIT_LIST_HEAD(&batch->requests);
	return rc;
}

/* In the thread that reads the answers: nobody waits for this one. */
static void nobody_waits(struct xb_req_data *req)
{
	int err;

	if (req->msg.type == XS_ERROR) {
		err = error_of(req->type, req->body);
		if (err)
			pr_warn_ratelimited("cannot write %s: %d\n",
					    (char *)req->vec->iov_base, err);
	}
	kfree(req->body);
	xs_request_exit(req);
	kref_put(&req->kref, xs_free_req);
	if (atomic_dec_and_test(&under_way))
		wake_up(&none_under_way);
}

/**
 * xenbus_batch_post() - send a row and do not wait for it
 * @batch: the row, without a read; empty afterwards
 *
 * A failure is told on the console only.  Who posts without ever waiting for
 * anything would fill the memory while xenstored does not answer, and who needs it
 * done before something else calls xenbus_batch_settle() in between.
 *
 * Context: sleeps, but not for xenstored.
 * Return: 0 or -ENOMEM: nothing was sent.
 */
int xenbus_batch_post(struct xenbus_batch *batch)
{
	struct batch_request *r, *next;

	if (batch->error) {
		forget(batch);
		return batch->error;
	}
	/* One that was sent may be gone. */
	list_for_each_entry_safe(r, next, &batch->requests, row) {
		atomic_inc(&under_way);
		send(r, XBT_NIL, nobody_waits);
	}
	INIT_LIST_HEAD(&batch->requests);
	return 0;
}

/**
 * xenbus_batch_settle() - wait until all that was posted is answered
 *
 * As a rule it is, if anything has been waited for since.
 *
 * Context: sleeps.
 */
void xenbus_batch_settle(void)
{
	wait_event(none_under_way, !atomic_read(&under_way));
}
