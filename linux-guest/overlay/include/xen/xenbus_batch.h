/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests to xenstore in a row: all are sent, and then the answers are waited
 * for, at once.  Where the way to xenstored and back takes longer than what is done
 * there, and it always does, a row takes as long as one request.
 *
 * Each xenstored does what is in a row in its order, and promises that to nobody:
 * who needs an order for good waits in between.  What others ask may come in
 * between, as it may without a row; a transaction keeps it out.
 */
#ifndef _XEN_XENBUS_BATCH_H
#define _XEN_XENBUS_BATCH_H

#include <linux/list.h>

#include <xen/xenbus.h>

/**
 * struct xenbus_batch - a row of requests that is being put together
 * @requests: in the order in which they are to be sent
 * @error: one of them could not be remembered: -ENOMEM
 */
struct xenbus_batch {
	struct list_head requests;
	int error;
};

void xenbus_batch_init(struct xenbus_batch *batch);
void xenbus_batch_read(struct xenbus_batch *batch, const char *dir,
		       const char *key, char **text);
void xenbus_batch_write(struct xenbus_batch *batch, const char *dir,
			const char *key, const char *text);
void xenbus_batch_rm(struct xenbus_batch *batch, const char *dir,
		     const char *key);
int xenbus_batch_run(struct xenbus_batch *batch, struct xenbus_transaction t);
int xenbus_batch_post(struct xenbus_batch *batch);
void xenbus_batch_settle(void);

#endif /* _XEN_XENBUS_BATCH_H */
