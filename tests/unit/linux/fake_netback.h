/* SPDX-License-Identifier: GPL-2.0 */
/* As much of netback's common.h, and of what is below it, as eagain.c and its hooks ask for; see eagain_test.c. */
#ifndef FAKE_NETBACK_H
#define FAKE_NETBACK_H

#include "fake_kernel.h"

typedef __s16 s16;
typedef long long s64;
#define likely(x)		(x)
#define unlikely(x)		(x)
#define clamp_t(type, value, low, high)	clamp((type)(value), (type)(low), (type)(high))
#define module_param(name, type, mode)	unsigned int *const the_##name = &name
extern unsigned int *const the_page_wait_msecs;
#define MODULE_PARM_DESC(name, text)

/* Time in ns */
#define NSEC_PER_USEC		1000LL
#define USEC_PER_MSEC		1000LL
#define ns_to_ktime(ns)		((ktime_t)(ns))
#undef ktime_us_delta
#define ktime_us_delta(later, earlier)	(((later) - (earlier)) / NSEC_PER_USEC)
#define CLOCK_MONOTONIC		1
ktime_t ktime_get(void);
#undef jiffies
#define jiffies			((unsigned long)(ktime_get() / (1000 * NSEC_PER_USEC)))
enum hrtimer_mode { HRTIMER_MODE_REL_PINNED };
enum hrtimer_restart { HRTIMER_NORESTART };
struct hrtimer {
	enum hrtimer_restart (*function)(struct hrtimer *timer);
	bool runs;
	ktime_t end;
};
void hrtimer_init(struct hrtimer *timer, int clock, enum hrtimer_mode mode);
void hrtimer_start(struct hrtimer *timer, ktime_t in, enum hrtimer_mode mode);
void hrtimer_cancel(struct hrtimer *timer);

#define GNTST_okay		0
#define GNTST_general_error	(-1)
#define GNTST_bad_gntref	(-3)
#define GNTST_eagain		(-12)
#define GNTST_bad_page		(-9)
#define GNTTABOP_copy		5
#define GNTTABOP_map_grant_ref	0
struct gnttab_copy { int ref; s16 status; };
int HYPERVISOR_grant_table_op(unsigned int cmd, void *ops, unsigned int count);
struct gnttab_map_grant_ref { int ref; s16 status; };
struct page;
bool in_interrupt(void);
void msleep(unsigned int ms);
void usleep_range(unsigned long us, unsigned long most);
bool kthread_should_stop(void);
void gnttab_batch_copy(struct gnttab_copy *batch, unsigned int count);
int gnttab_map_refs(struct gnttab_map_grant_ref *ops, void *kops,
		    struct page **pages, unsigned int count);

struct napi_struct { bool scheduled; };
bool napi_complete_done(struct napi_struct *napi, int done);
void napi_schedule(struct napi_struct *napi);
#define netdev_err(device, ...)	say(__VA_ARGS__)
#define netdev_warn(device, ...)	say(__VA_ARGS__)
bool net_ratelimit(void);

/* Event channels */
#define NETBK_RX_EOI		0x01
#define NETBK_TX_EOI		0x02
#define NETBK_COMMON_EOI	0x04
int atomic_fetch_andnot(int bits, atomic_t *v);
void xen_irq_lateeoi(unsigned int irq, unsigned int flags);

#include "eagain.h"

#define MAX_PENDING_REQS	256
#define COPY_BATCH_SIZE		64
struct xenvif { void *dev; bool disabled; struct xenvif_round ctrl_round; };
struct xenvif_stats { unsigned long tx_page_waits, tx_page_wait_fails, rx_page_waits, rx_page_wait_fails; };
struct xenvif_copy_state { struct gnttab_copy op[COPY_BATCH_SIZE]; unsigned int num; };
struct xenvif_queue {
	struct xenvif *vif;
	struct napi_struct napi;
	struct gnttab_copy tx_copy_ops[2 * MAX_PENDING_REQS];
	struct gnttab_map_grant_ref tx_map_ops[MAX_PENDING_REQS];
	struct page *pages_to_map[MAX_PENDING_REQS];
	struct xenvif_eagain eagain;
	atomic_t eoi_pending;
	unsigned int tx_irq;
	struct xenvif_copy_state rx_copy;
	unsigned long last_rx_time;
	bool rate_limited;
	struct xenvif_stats stats;
};
int xenvif_tx_submit(struct xenvif_queue *queue);

#endif
