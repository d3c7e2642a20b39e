/* SPDX-License-Identifier: GPL-2.0 */
/* What xenbus_batch.c asks of xenbus and of the kernel, and no other file here does. */
#ifndef FAKE_XENBUS_H
#define FAKE_XENBUS_H

struct kref { int references; };
#define kref_init(kref)		((kref)->references = 1)
#define kref_put(kref, release)						\
	do {								\
		if (!--(kref)->references)				\
			release(kref);					\
	} while (0)
struct kvec { void *iov_base; size_t iov_len; };
#define struct_size(at, member, count)	(sizeof(*(at)) + sizeof((at)->member[0]) * (count))
#define GFP_NOIO	1
#define __GFP_HIGH	2
#undef kzalloc
#define kzalloc(size, gfp)	allocate(size, gfp)
void *allocate(size_t size, unsigned int gfp);
#define kfree(pointer)	give_back(pointer)
void give_back(void *pointer);
#define wake_up(queue)	woken(queue)
void woken(struct wait_queue_head *queue);
#define atomic_dec_and_test(v)	(!--(v)->counter)
#define wait_event(queue, condition)					\
	do {								\
		while (!(condition))					\
			sleep_on(&(queue));				\
	} while (0)
void sleep_on(struct wait_queue_head *queue);

enum xsd_sockmsg_type { XS_READ = 2, XS_WRITE = 11, XS_RM = 13, XS_ERROR = 16 };
struct xsd_sockmsg { u32 type, req_id, tx_id, len; };
struct xb_req_data {
	struct list_head list;
	struct wait_queue_head wq;
	struct kref kref;
	struct xsd_sockmsg msg;
	enum xsd_sockmsg_type type;
	char *body;
	const struct kvec *vec;
	int num_vecs;
	bool user_req;
	void (*cb)(struct xb_req_data *req);
};
void xs_request_exit(struct xb_req_data *req);
void xs_free_req(struct kref *kref);
int xs_get_error(const char *text);
void xs_send(struct xb_req_data *req, struct xsd_sockmsg *msg);
void *xs_wait_for_reply(struct xb_req_data *req, struct xsd_sockmsg *msg);

#endif
