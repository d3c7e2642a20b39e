// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that wait for pages of their guest: netback's eagain.c as it is, below a
 * poll function, threads and a grant table that are played, with what hooks 0305 to
 * 0307 put into them (hook-HOOK-FILE-N.h, the Nth place in FILE; test_elastic_numa.py
 * makes them).  Pages come and go with the time; a packet of the guest is a header,
 * which is copied, and fragments, which are mapped; one for the guest is pages.
 */
#include "case.h"
#include "fake_netback.h"

#define PAGES		64
#define PACKETS		16
#define FRAGS		3
#define BUDGET		64
#define US		NSEC_PER_USEC
#define MS		(1000 * US)
#define NEVER		(1LL << 60)
#define BAD		(-1LL)

/* A page is here from, and until, and from again; BAD: it is no page. */
struct guest_page { ktime_t from, until, again; };
struct packet { int header, split, frags[FRAGS]; };	/* pages; 0: none */

static struct guest_page guest[PAGES];
static struct packet ring[PACKETS];
static int produced, consumed, in_batch[PACKETS], nr_batch;
static int mapped[PAGES], copies[PAGES], asked[PAGES];
static int handed_on[PACKETS], lost[PACKETS], order[PACKETS], nr_handed_on;
static int polls, hypercalls, words, slept, sleeps, events, eois, completes;
static bool disabled, map_fails, copy_fails, softirq, silent, kicks;
static ktime_t stops = NEVER, turns_rogue = NEVER, ctrl_ends = NEVER;
static ktime_t at = 5000 * MS, began, longest, first_wait, hypercall_takes;
static ktime_t waits[64];
static int nr_waits, kicked;
static char frames[MAX_PENDING_REQS], said[256];
static bool foreign[MAX_PENDING_REQS];
static struct xenvif vif;
static struct xenvif_queue queue = { .vif = &vif, .tx_irq = 17 };

static void disconnect_ctrl(void);

void say(const char *format, ...)
{
	va_list arguments;

	words++;
	va_start(arguments, format);
	vsnprintf(said, sizeof(said), format, arguments);
	va_end(arguments);
}

void fail(const char *format, ...) { exit(1); }
ktime_t ktime_get(void) { return at; }
bool net_ratelimit(void) { return !silent; }
bool in_interrupt(void) { CHECK(sleeps++ < 10000, "asks for ever"); return softirq; }

void msleep(unsigned int ms)
{
	CHECK(!softirq, "sleeps in a softirq");
	slept += ms;
	at += ms * MS;
}

/* Who ends a thread does so while it sleeps. */
void usleep_range(unsigned long us, unsigned long most)
{
	CHECK(!softirq, "sleeps in a softirq");
	CHECK(us >= 100 && us <= 1000 && most == us + 100, "%lu to %lu us", us, most);
	CHECK(sleeps++ < 10000, "asks for ever");
	if (nr_waits < ARRAY_SIZE(waits))
		waits[nr_waits++] = us * US;
	at += us * US;
	if (kicks && !(queue.eoi_pending.counter & NETBK_COMMON_EOI)) {
		queue.eoi_pending.counter |= NETBK_COMMON_EOI;
		kicked++;
	}
	vif.disabled = at >= turns_rogue;
	if (at >= ctrl_ends)
		disconnect_ctrl();
}

bool kthread_should_stop(void) { return at >= stops; }

int atomic_fetch_andnot(int bits, atomic_t *v)
{
	int old = v->counter;

	v->counter &= ~bits;
	return old;
}

void xen_irq_lateeoi(unsigned int irq, unsigned int flags)
{
	CHECK(irq == 17 && !flags, "of interrupt %u with %u", irq, flags);
	eois++;
}

void hrtimer_init(struct hrtimer *timer, int clock, enum hrtimer_mode mode)
{
	timer->runs = false;
}

void hrtimer_start(struct hrtimer *timer, ktime_t in, enum hrtimer_mode mode)
{
	CHECK(!disabled, "a timer that nobody will stop");
	CHECK(in >= 100 * US && in <= MS, "after %lld ns", in);
	timer->runs = true;
	timer->end = at + in;
	if (!first_wait)
		first_wait = in;
	if (nr_waits < ARRAY_SIZE(waits))
		waits[nr_waits++] = in;
	longest = max(longest, in);
}

void hrtimer_cancel(struct hrtimer *timer) { timer->runs = false; }
void napi_schedule(struct napi_struct *napi) { napi->scheduled = true; }

static s16 status_of(int ref)
{
	const struct guest_page *page = &guest[ref];

	asked[ref]++;
	if (page->from == BAD)
		return GNTST_bad_gntref;
	if (mapped[ref])
		return GNTST_okay;
	return (at >= page->from && at < page->until) || at >= page->again ?
		GNTST_okay : GNTST_eagain;
}

int HYPERVISOR_grant_table_op(unsigned int cmd, void *ops, unsigned int count)
{
	struct gnttab_copy *cop = ops;
	struct gnttab_map_grant_ref *mop = ops;
	unsigned int i;

	CHECK(count <= 2 * MAX_PENDING_REQS, "of %u", count);
	hypercalls++;
	at += hypercall_takes;
	if (cmd == GNTTABOP_map_grant_ref ? map_fails : copy_fails)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		if (cmd == GNTTABOP_copy) {
			CHECK(cop[i].status == GNTST_eagain, "page %d is copied twice", cop[i].ref);
			cop[i].status = status_of(cop[i].ref);
			copies[cop[i].ref] += !cop[i].status;
		} else {
			CHECK(mop[i].status == GNTST_eagain, "page %d is mapped twice", mop[i].ref);
			mop[i].status = status_of(mop[i].ref);
			mapped[mop[i].ref] += !mop[i].status;
		}
	}
	return 0;
}

/* As upstream's, with hook 0305 */
#define MAX_DELAY 256
static void gnttab_retry_eagain_gop(unsigned int cmd, void *gop, s16 *status)
{
	unsigned int delay = 1;

#include "hook-0305-grant-table-1.h"
	do {
		HYPERVISOR_grant_table_op(cmd, gop, 1);
		if (*status == GNTST_eagain)
			msleep(delay++);
	} while ((*status == GNTST_eagain) && (delay < MAX_DELAY));

	if (delay >= MAX_DELAY)
		*status = GNTST_bad_page;
}

void gnttab_batch_copy(struct gnttab_copy *batch, unsigned int count)
{
	struct gnttab_copy *op;

	HYPERVISOR_grant_table_op(GNTTABOP_copy, batch, count);
	for (op = batch; op < batch + count; op++)
		if (op->status == GNTST_eagain)
			gnttab_retry_eagain_gop(GNTTABOP_copy, op, &op->status);
}

int gnttab_map_refs(struct gnttab_map_grant_ref *map_ops, void *kops,
		    struct page **pages, unsigned int count)
{
	int i, ret;

	ret = HYPERVISOR_grant_table_op(GNTTABOP_map_grant_ref, map_ops, count);
	if (ret)
		return ret;

	for (i = 0; i < count; i++) {
		CHECK(pages[i] == (struct page *)&frames[map_ops - queue.tx_map_ops + i], "at another's place");
		switch (map_ops[i].status) {
		case GNTST_okay:
			foreign[(char *)pages[i] - frames] = true;
			break;
		case GNTST_eagain:
			gnttab_retry_eagain_gop(GNTTABOP_map_grant_ref, map_ops + i, &map_ops[i].status);
#include "hook-0305-grant-table-2.h"
			break;
		default:
			break;
		}
	}
	return 0;
}

/* As upstream's: an error of one takes the whole packet back, and unmaps the others. */
int xenvif_tx_submit(struct xenvif_queue *of)
{
	struct gnttab_copy *cop = of->tx_copy_ops;
	struct gnttab_map_grant_ref *mop = of->tx_map_ops;
	int i, n, good = 0;

	CHECK(!of->eagain.nr_cops, "it waits still");
	for (i = 0; i < nr_batch; i++) {
		struct packet *packet = &ring[in_batch[i]];
		int err = (cop++)->status;

		if (packet->split)
			err = (cop++)->status ?: err;
		for (n = 0; n < FRAGS && packet->frags[n]; n++, mop++) {
			err = mop->status ?: err;
			CHECK(foreign[mop - of->tx_map_ops] == !mop->status, "a page of the guest is known as such");
			foreign[mop - of->tx_map_ops] = false;
			mapped[mop->ref] -= !mop->status;
		}
		if (err) {
			lost[in_batch[i]]++;
			continue;
		}
		CHECK(!disabled, "handed on by a queue that ends");
		handed_on[in_batch[i]]++;
		order[nr_handed_on++] = in_batch[i];
		good++;
	}
	nr_batch = 0;
	return good;
}

static void build_gops(int budget, unsigned int *nr_cops, unsigned int *nr_mops)
{
	int n;

	for (; nr_batch < budget && consumed < produced; consumed++) {
		struct packet *packet = &ring[consumed];

		in_batch[nr_batch++] = consumed;
		queue.tx_copy_ops[(*nr_cops)++] = (struct gnttab_copy) { packet->header, GNTST_eagain };
		if (packet->split)
			queue.tx_copy_ops[(*nr_cops)++] = (struct gnttab_copy) { packet->split, GNTST_eagain };
		for (n = 0; n < FRAGS && packet->frags[n]; n++) {
			queue.pages_to_map[*nr_mops] = (struct page *)&frames[*nr_mops];
			queue.tx_map_ops[(*nr_mops)++] =
				(struct gnttab_map_grant_ref) { packet->frags[n], GNTST_eagain };
		}
	}
}

/* As upstream's, with hook 0306 */
static int tx_action(struct xenvif_queue *queue, int budget)
{
	unsigned int nr_cops = 0, nr_mops = 0;

#include "hook-0306-netback-2.h"
	build_gops(budget, &nr_cops, &nr_mops);
	if (!nr_cops)
		return 0;
	gnttab_batch_copy(queue->tx_copy_ops, nr_cops);
	if (nr_mops)
		gnttab_map_refs(queue->tx_map_ops, NULL, queue->pages_to_map, nr_mops);
#include "hook-0306-netback-3.h"
	return xenvif_tx_submit(queue);
}

static void xenvif_napi_schedule_or_enable_events(struct xenvif_queue *queue)
{
	events++;
	if (consumed < produced)
		napi_schedule(&queue->napi);
	else if (atomic_fetch_andnot(NETBK_TX_EOI | NETBK_COMMON_EOI, &queue->eoi_pending) &
		 (NETBK_TX_EOI | NETBK_COMMON_EOI))
		xen_irq_lateeoi(queue->tx_irq, 0);
}

bool napi_complete_done(struct napi_struct *napi, int done)
{
	completes++;
	return true;
}

static int xenvif_poll(struct xenvif_queue *queue, int budget)
{
	struct napi_struct *napi = &queue->napi;
	int work_done = tx_action(queue, budget);

	if (work_done < budget) {
		napi_complete_done(napi, work_done);
#include "hook-0306-interface-1.h"
			xenvif_napi_schedule_or_enable_events(queue);
	}
	return work_done;
}

/* NAPI: what is scheduled meanwhile is polled once more, and so is who has more than the budget. */
static int poll(int budget)
{
	int done;

	polls++;
	queue.napi.scheduled = false;
	softirq = true;
	done = xenvif_poll(&queue, budget);
	softirq = false;
	CHECK(done <= budget, "%d of %d", done, budget);
	if (budget && done == budget)
		queue.napi.scheduled = true;
	return done;
}

static void xenvif_down(struct xenvif_queue *queue)
{
	disabled = true;
#include "hook-0306-interface-2.h"
}

/*
 * The way to the guest: each of these packets is so many pages, from a first one on,
 * and as upstream's 64 of them are a round, and 64 copies a batch.
 */
#define RX_BATCH_SIZE 64
#define RX_PACKETS 200
static struct { int first, pages, done, lost; } for_guest[RX_PACKETS];
static int rx_produced, rx_consumed, rx_of[COPY_BATCH_SIZE], flushes, taken;
static s16 told[PAGES];

static void xenvif_rx_copy_flush(struct xenvif_queue *queue)
{
	unsigned int i;

	flushes++;
#include "hook-0307-rx-1.h"
	for (i = 0; i < queue->rx_copy.num; i++) {
		CHECK(queue->rx_copy.op[i].status != GNTST_eagain, "a guest knows nothing of that");
		told[queue->rx_copy.op[i].ref] = queue->rx_copy.op[i].status;
		if (queue->rx_copy.op[i].status)
			for_guest[rx_of[i]].lost++;
		else
			for_guest[rx_of[i]].done++;
	}
	queue->rx_copy.num = 0;
}

static void xenvif_rx_skb(struct xenvif_queue *queue)
{
	int i;

	queue->last_rx_time = jiffies;
	for (i = 0; i < for_guest[rx_consumed].pages; i++) {
		if (queue->rx_copy.num == COPY_BATCH_SIZE)
			xenvif_rx_copy_flush(queue);
		rx_of[queue->rx_copy.num] = rx_consumed;
		queue->rx_copy.op[queue->rx_copy.num++] =
			(struct gnttab_copy) { for_guest[rx_consumed].first + i, GNTST_eagain };
	}
	rx_consumed++;
	taken++;
}

#define xenvif_rx_ring_slots_available(queue)	true
#define skb_queue_empty(queue)			(rx_consumed == rx_produced)

static void xenvif_rx_action(struct xenvif_queue *queue)
{
	unsigned int work_done = 0;

	flushes = taken = 0;
#include "hook-0307-rx-2.h"
	while (xenvif_rx_ring_slots_available(queue) &&
	       !skb_queue_empty(&queue->rx_queue) &&
#include "hook-0307-rx-3.h"
	       work_done < RX_BATCH_SIZE) {
		xenvif_rx_skb(queue);
		work_done++;
	}
	xenvif_rx_copy_flush(queue);
}

/* What the control ring asks for, so many times: a key, or a mapping in two parts. */
static int ctrl_requests, ctrl_errors, ctrl_first, ctrl_pages;

static void set_hash_key(struct xenvif *vif)
{
	struct gnttab_copy copy_op = { ctrl_first, GNTST_eagain };

#include "hook-0307-hash-1.h"
	ctrl_errors += !!copy_op.status;
}

static void set_hash_mapping(struct xenvif *vif)
{
	struct gnttab_copy copy_op[2] = { { ctrl_first, GNTST_eagain }, { ctrl_first + 1, GNTST_eagain } };
	int nr = 2;

#include "hook-0307-hash-2.h"
	ctrl_errors += copy_op[0].status || copy_op[1].status;
}

static void xenvif_ctrl_irq_fn(struct xenvif *vif)
{
#include "hook-0307-netback-1.h"
	for (; ctrl_requests; ctrl_requests--)
		(ctrl_pages == 1 ? set_hash_key : set_hash_mapping)(vif);
}

static void connect_ctrl(struct xenvif *vif)
{
#include "hook-0307-interface-2.h"
}

static void disconnect_ctrl(void)
{
	struct xenvif *vif = queue.vif;

#include "hook-0307-interface-3.h"
}

static void xenvif_init_queue(struct xenvif_queue *queue)
{
#include "hook-0306-interface-4.h"
}

/* What there is to do, until a time; its end is where nothing is left. */
static void run_until(ktime_t end)
{
	while (at < end) {
		if (queue.napi.scheduled) {
			poll(BUDGET);
			continue;
		}
		if (!queue.eagain.timer.runs || queue.eagain.timer.end > end)
			break;
		at = queue.eagain.timer.end;
		queue.eagain.timer.runs = false;
		CHECK(queue.eagain.timer.function(&queue.eagain.timer) == HRTIMER_NORESTART, "restarts");
	}
	at = max(at, end);
}

static void start(void)
{
	int i;

	queue.eagain.nr_cops = 99;
	xenvif_init_queue(&queue);
	connect_ctrl(&vif);
	nr_waits = 0;
	for (i = 0; i < PAGES; i++)
		guest[i] = (struct guest_page) { 0, NEVER, NEVER };
	began = at;
}

static void away(int page, ktime_t until)
{
	guest[page].from = began + until;
}

static void send_packet(struct packet packet)
{
	ring[produced++] = packet;
}

static void all_handed_on(const char *which)
{
	int i;

	CHECK(nr_handed_on == produced, "%s: %d of %d packets", which, nr_handed_on, produced);
	for (i = 0; i < produced; i++)
		CHECK(order[i] == i && handed_on[i] == 1 && !lost[i], "%s: packet %d", which, i);
	for (i = 0; i < PAGES; i++)
		CHECK(!mapped[i], "%s: page %d is mapped", which, i);
	CHECK(!queue.eagain.nr_cops && !queue.stats.tx_page_wait_fails && !words, "%s", which);
}

static void here(const void *argument)
{
	start();
	send_packet((struct packet) { 1, 0, { 2, 3 } });
	send_packet((struct packet) { 4, 5 });
	CHECK(poll(BUDGET) == 2, "both");
	all_handed_on("here");
	CHECK(!first_wait && hypercalls == 2 && !queue.stats.tx_page_waits, "nothing waits");
}

/* Each page of three packets alone, and each two of them, for different times. */
static void each_page(const void *argument)
{
	int a, b, i;

	for (a = 1; a <= 9; a++) {
		for (b = 1; b <= 9; b++) {
			produced = consumed = nr_handed_on = 0;
			memset(handed_on, 0, sizeof(handed_on));
			memset(asked, 0, sizeof(asked));
			memset(copies, 0, sizeof(copies));
			queue.stats.tx_page_waits = 0;
			start();
			away(a, 700 * US);
			away(b, 40 * MS);
			send_packet((struct packet) { 1, 2, { 3 } });
			send_packet((struct packet) { 4 });
			send_packet((struct packet) { 5, 6, { 7, 8, 9 } });
			CHECK(poll(BUDGET) == 0, "nothing is handed on");
			run_until(began + 39 * MS);
			CHECK(!nr_handed_on, "before all are here");
			CHECK(a == b || asked[a] > 1, "asked again");
			run_until(began + 42 * MS);
			all_handed_on("each page");
			CHECK(queue.stats.tx_page_waits == 1, "it is one batch");
			for (i = 1; i <= 9; i++)
				CHECK((asked[i] == 1) == (i != a && i != b), "page %d: %d times", i, asked[i]);
			run_until(began + 50 * MS);
			CHECK(!queue.eagain.timer.runs && !queue.napi.scheduled, "at rest");
		}
	}
}

/* What is away is asked for in as few calls as it has runs. */
static void runs(const void *argument)
{
	int i;

	start();
	for (i = 0; i < 4; i++)
		send_packet((struct packet) { 1 + i, 0, { 11 + 3 * i, 12 + 3 * i, 13 + 3 * i } });
	for (i = 2; i <= 4; i++)
		away(i, 250 * US);
	away(11, 250 * US);
	away(12, 250 * US);
	away(22, 250 * US);
	poll(BUDGET);
	hypercalls = 0;
	at += 100 * US;
	poll(BUDGET);
	CHECK(hypercalls == 1 + 2, "%d calls", hypercalls);
	run_until(began + 2 * MS);
	all_handed_on("runs");
}

/* The page that comes for a moment is asked for in it, or the next time. */
static void comes_and_goes(const void *argument)
{
	start();
	guest[1] = (struct guest_page) { began + 10 * MS, began + 12 * MS, NEVER };
	guest[3] = (struct guest_page) { began + 10 * MS, began + 12 * MS, NEVER };
	guest[2] = (struct guest_page) { began + 100 * MS, began + 100 * MS + 1, began + 300 * MS };
	send_packet((struct packet) { 1, 0, { 2, 3 } });
	poll(BUDGET);
	run_until(began + 20 * MS);
	CHECK(copies[1] == 1 && mapped[3] == 1 && !nr_handed_on, "kept, copied and mapped");
	run_until(began + 302 * MS);
	all_handed_on("comes and goes");
}

static void never_comes(const void *argument)
{
	ktime_t waited = 0;
	int i;

	start();
	away(4, NEVER / 2);
	guest[5].from = BAD;
	send_packet((struct packet) { 1, 0, { 2 } });
	send_packet((struct packet) { 3, 0, { 6, 4, 7 } });
	send_packet((struct packet) { 5, 0, { 8 } });
	send_packet((struct packet) { 9 });
	poll(BUDGET);
	send_packet((struct packet) { 10 });
	napi_schedule(&queue.napi);
	run_until(began + 999 * MS);
	CHECK(!nr_handed_on && !lost[1] && consumed == 4, "it waits, and who comes later behind it");
	CHECK(asked[5] == 1, "no page");
	CHECK(polls > 900 && polls < 1100 && first_wait == 100 * US && longest == MS, "%d polls", polls);
	/* The first poll, and the one of who came later, are at the same time. */
	for (i = 1; i < ARRAY_SIZE(waits); i++) {
		CHECK(waits[i] == clamp(waited / 4 / US * US, 100 * US, MS), "wait %d: %lld ns", i, waits[i]);
		waited += waits[i];
	}
	run_until(began + 1002 * MS);
	CHECK(lost[1] == 1 && lost[2] == 1 && nr_handed_on == 3, "the others");
	CHECK(order[0] == 0 && order[1] == 3 && order[2] == 4, "in their order");
	CHECK(queue.stats.tx_page_waits == 1 && queue.stats.tx_page_wait_fails == 1 && words == 1, "it is said");
	CHECK(!mapped[2] && !mapped[6] && !mapped[7] && !mapped[8], "all are let go");
}

/* To the microsecond, and by the time before it is asked for. */
static void how_long(const void *argument)
{
	start();
	away(1, NEVER / 2);
	send_packet((struct packet) { 1 });
	poll(BUDGET);
	at = began + 1000 * MS - US;
	hypercall_takes = 2 * US;
	CHECK(poll(BUDGET) == 0 && !lost[0], "not yet");
	hypercall_takes = 0;
	at = began + 1000 * MS;
	poll(BUDGET);
	CHECK(lost[0] == 1 && words == 1 && strstr(said, " 1000 ms"), "%s", said);

	/* Who has said too much says no more, and counts it. */
	silent = true;
	send_packet((struct packet) { 1 });
	poll(BUDGET);
	at += 1000 * MS;
	poll(BUDGET);
	CHECK(lost[1] == 1 && words == 1 && queue.stats.tx_page_wait_fails == 2, "%d words", words);
}

/* page_wait_msecs, which may change while a batch waits */
static void settings(const void *argument)
{
	start();
	CHECK(*the_page_wait_msecs == 1000, "a second");

	*the_page_wait_msecs = 0;
	away(1, NEVER / 2);
	send_packet((struct packet) { 1 });
	send_packet((struct packet) { 2 });
	CHECK(poll(BUDGET) == 1 && lost[0] == 1 && handed_on[1] == 1, "0: not at all");
	CHECK(!queue.eagain.nr_cops && !queue.eagain.timer.runs && !queue.stats.tx_page_waits, "nothing waits");

	/* More ms than 32 bits have us */
	*the_page_wait_msecs = 5000000;
	send_packet((struct packet) { 1 });
	poll(BUDGET);
	at += 4999999 * MS;
	poll(BUDGET);
	CHECK(!lost[2] && queue.eagain.nr_cops, "long");

	*the_page_wait_msecs = 10;
	poll(BUDGET);
	CHECK(lost[2] == 1 && !queue.eagain.nr_cops, "less, while it waits");

	*the_page_wait_msecs = 1000;
	send_packet((struct packet) { 1 });
	poll(BUDGET);
	*the_page_wait_msecs = 0;
	poll(BUDGET);
	CHECK(lost[3] == 1 && !queue.eagain.nr_cops, "nothing, while it waits");
}

/* What is wrong for good does not wait, and keeps nobody. */
static void bad_pages(const void *argument)
{
	start();
	guest[1].from = guest[4].from = BAD;
	send_packet((struct packet) { 1, 0, { 2 } });
	send_packet((struct packet) { 3, 0, { 4 } });
	send_packet((struct packet) { 5 });
	CHECK(poll(BUDGET) == 1 && lost[0] == 1 && lost[1] == 1 && handed_on[2] == 1, "at once");
	CHECK(!first_wait && !queue.stats.tx_page_waits && !mapped[2], "nothing waits");
}

/* The arrays have more of an earlier batch behind this one. */
static void of_an_earlier_batch(const void *argument)
{
	int i;

	start();
	for (i = 1; i <= 8; i++)
		away(i, NEVER / 2);
	send_packet((struct packet) { 1, 2, { 3, 4 } });
	send_packet((struct packet) { 5, 6, { 7, 8 } });
	poll(BUDGET);
	run_until(began + 1002 * MS);
	CHECK(lost[0] == 1 && lost[1] == 1, "in vain");
	memset(asked, 0, sizeof(asked));
	began = at;
	away(11, 5 * MS);
	away(12, 5 * MS);
	away(13, 5 * MS);
	send_packet((struct packet) { 11, 12, { 13 } });
	poll(BUDGET);
	run_until(began + 7 * MS);
	CHECK(handed_on[2] == 1, "handed on");
	for (i = 1; i <= 8; i++)
		CHECK(!asked[i], "page %d of an earlier batch", i);
	CHECK(queue.stats.tx_page_waits == 2 && queue.stats.tx_page_wait_fails == 1, "one in vain");
}

/* The time is up: it is asked for once more before that. */
static void at_last(const void *argument)
{
	start();
	away(1, 1500 * MS);
	send_packet((struct packet) { 1 });
	poll(BUDGET);
	at = began + 2000 * MS;
	CHECK(poll(BUDGET) == 1, "here");
	all_handed_on("at last");
}

/* Whichever of the packets has a page that is away, all of them are lost. */
static void a_queue_ends(const void *argument)
{
	static const int page[] = { 4, 7, 8, 1, 10 };
	int i, n;

	start();
	xenvif_eagain_drop(&queue);
	CHECK(!nr_handed_on && !hypercalls, "nothing was there");
	for (n = 0; n < ARRAY_SIZE(page); n++) {
		start();
		away(page[n], NEVER / 2);
		send_packet((struct packet) { 1, 0, { 3, 4 } });
		send_packet((struct packet) { 5, 6, { 7 } });
		send_packet((struct packet) { 8, 0, { 10 } });
		poll(BUDGET);
		run_until(began + 5 * MS);
		hypercalls = 0;
		xenvif_down(&queue);
		CHECK(!queue.eagain.timer.runs && !queue.eagain.nr_cops, "the timer");
		CHECK(!hypercalls, "nothing is asked for");
		for (i = 0; i < 3; i++)
			CHECK(lost[3 * n + i] == 1, "packet %d", i);
		for (i = 0; i < PAGES; i++)
			CHECK(!mapped[i], "page %d is mapped", i);
		run_until(began + 10 * MS);
		CHECK(!nr_handed_on, "nothing is handed on");
		disabled = false;
	}

	/* Up again */
	send_packet((struct packet) { 20, 0, { 21 } });
	CHECK(poll(BUDGET) == 1 && handed_on[produced - 1] == 1, "as new");
	CHECK(!queue.stats.tx_page_wait_fails && !words, "who ends a queue knows");
}

static void budgets(const void *argument)
{
	start();
	away(2, 5 * MS);
	send_packet((struct packet) { 1 });
	send_packet((struct packet) { 2 });
	send_packet((struct packet) { 3 });
	poll(BUDGET);
	at += 6 * MS;
	hypercalls = completes = 0;
	CHECK(poll(0) == 0 && !nr_handed_on && !hypercalls, "nothing is received without a budget");
	CHECK(!completes, "and it is not the end of a poll");
	CHECK(poll(2) == 2 && !completes, "not more than is asked for");
	all_handed_on("budgets");
}

/* An interrupt for more of them polls before the timer does, which then has nothing to do. */
static void interrupts(const void *argument)
{
	start();
	away(1, 150 * US);
	send_packet((struct packet) { 1 });
	poll(BUDGET);
	at += 160 * US;
	send_packet((struct packet) { 2 });
	CHECK(poll(BUDGET) == 1 && queue.napi.scheduled, "then the next one");
	run_until(began + 5 * MS);
	all_handed_on("interrupts");
}

/* A guest is asked for more when nothing waits, neither for a page nor for credit. */
static void asked_for_more(const void *argument)
{
	start();
	queue.eoi_pending.counter = NETBK_TX_EOI | NETBK_RX_EOI;
	away(1, 5 * MS);
	send_packet((struct packet) { 1 });
	poll(BUDGET);
	CHECK(completes == 1 && !events, "not while it waits");
	run_until(began + 4 * MS);
	CHECK(!events && !eois, "nor when it is tried");
	queue.rate_limited = true;
	run_until(began + 7 * MS);
	CHECK(nr_handed_on == 1 && !events, "nor for credit");
	queue.rate_limited = false;
	poll(BUDGET);
	CHECK(events == 1 && eois == 1 && queue.eoi_pending.counter == NETBK_RX_EOI, "then");
	all_handed_on("asked for more");
}

/*
 * An event channel for both ways, which has an interrupt that nobody has ended.  The
 * guest must be heard when it has made room for what comes to it, though what it
 * sends waits.  It is no more often heard than the timer runs.
 */
static void one_event_channel(const void *argument)
{
	start();
	queue.eoi_pending.counter = NETBK_COMMON_EOI;
	away(1, 20 * MS);
	send_packet((struct packet) { 1 });
	poll(BUDGET);
	CHECK(!eois, "not at once");
	run_until(began + 2 * MS);
	CHECK(eois == 1 && !queue.eoi_pending.counter, "%d times", eois);
	queue.eoi_pending.counter = NETBK_COMMON_EOI;
	poll(BUDGET);
	poll(BUDGET);
	CHECK(eois == 1, "not by a try that the guest asked for");
	run_until(began + 4 * MS);
	CHECK(eois == 2 && !events, "%d times", eois);
	run_until(began + 22 * MS);
	all_handed_on("one event channel");
	CHECK(events == 1 && eois == 2, "%d times", eois);
}

static void no_memory(const void *argument)
{
	start();
	away(2, 5 * MS);
	send_packet((struct packet) { 1, 0, { 2 } });
	poll(BUDGET);
	map_fails = true;
	at += MS;
	CHECK(poll(BUDGET) == 0 && words == 1, "it is said");
	CHECK(strstr(said, "nr 1 ret -12"), "%s", said);
	silent = true;
	CHECK(poll(BUDGET) == 0 && words == 1, "not always");
	silent = map_fails = false;
	words = 0;
	run_until(began + 7 * MS);
	all_handed_on("no memory");
}

/* Others that can sleep, as a disk's thread does, have their page when the call is over. */
static void threads(const void *argument)
{
	struct gnttab_copy cop[3] = { { 1, GNTST_eagain }, { 2, GNTST_eagain }, { 3, GNTST_eagain } };
	struct gnttab_map_grant_ref *mop = queue.tx_map_ops;
	int i;

	start();
	away(2, 20 * MS);
	gnttab_batch_copy(cop, 3);
	CHECK(slept >= 20 && !cop[0].status && !cop[1].status && !cop[2].status, "%d ms", slept);
	for (i = 0; i < 3; i++) {
		mop[i] = (struct gnttab_map_grant_ref) { 11 + i, GNTST_eagain };
		queue.pages_to_map[i] = (struct page *)&frames[i];
	}
	away(11, 100 * MS);
	away(13, NEVER / 2);
	gnttab_map_refs(mop, NULL, queue.pages_to_map, 3);
	CHECK(foreign[0] && foreign[1], "here");
	CHECK(mop[2].status == GNTST_bad_page && slept > 255 * 128, "not for ever");

	/* Who can't has it as it is, and those behind it. */
	softirq = true;
	slept = 0;
	memset(foreign, 0, sizeof(foreign));
	hypercalls = 0;
	mop[0] = (struct gnttab_map_grant_ref) { 13, GNTST_eagain };
	mop[1] = (struct gnttab_map_grant_ref) { 14, GNTST_eagain };
	gnttab_map_refs(mop, NULL, queue.pages_to_map, 2);
	CHECK(mop[0].status == GNTST_eagain && !mop[1].status && foreign[1] && !foreign[0], "as they are");
	cop[0] = (struct gnttab_copy) { 13, GNTST_eagain };
	cop[1] = (struct gnttab_copy) { 15, GNTST_eagain };
	gnttab_batch_copy(cop, 2);
	CHECK(cop[0].status == GNTST_eagain && !cop[1].status, "as they are");
	CHECK(!slept && hypercalls == 2, "%d ms, %d calls", slept, hypercalls);
}

static void for_the_guest(int first, int pages)
{
	for_guest[rx_produced].first = first;
	for_guest[rx_produced++].pages = pages;
}

static void copy_of_a_copy(int page)
{
	CHECK(copies[page] == 1, "page %d is copied %d times", page, copies[page]);
}

/* All that is away is waited for at once, and as often as on the way out. */
static void to_the_guest(const void *argument)
{
	ktime_t waited = 0;
	int i;

	start();
	for (i = 0; i < 8; i++)
		for_the_guest(1 + 4 * i, 4);
	xenvif_rx_action(&queue);
	CHECK(hypercalls == 1 && at == began && flushes == 1 && taken == 8, "here");
	CHECK(!queue.stats.rx_page_waits && !queue.eagain.rx.waited, "nothing waits");

	memset(copies, 0, sizeof(copies));
	hypercalls = rx_consumed = rx_produced = 0;
	for (i = 0; i < 8; i++)
		for_the_guest(1 + 4 * i, 4);
	for (i = 2; i <= 32; i++)
		away(i, 30 * MS);
	away(7, 50 * MS);
	away(20, 50 * MS);
	xenvif_rx_action(&queue);
	CHECK(at >= began + 50 * MS && at < began + 52 * MS, "%lld us", (at - began) / US);
	for (i = 1; i <= 32; i++)
		copy_of_a_copy(i);
	CHECK(asked[1] == 2 && asked[6] < asked[7], "only what is away is asked for again");
	for (i = 0; i < nr_waits; i++) {
		CHECK(waits[i] == clamp(waited / 4 / US * US, 100 * US, MS), "wait %d: %lld ns", i, waits[i]);
		waited += waits[i];
	}
	for (i = 0; i < 8; i++)
		CHECK(!for_guest[i].lost && for_guest[i].done == 8, "packet %d", i);
	CHECK(queue.stats.rx_page_waits == 1 && !queue.stats.rx_page_wait_fails && !words, "it is counted");
	CHECK(!queue.stats.tx_page_waits, "for its own way");
}

/* The other host stands still: a round is as long as one wait, whatever it has. */
static void to_the_guest_in_vain(const void *argument)
{
	int i, round;

	start();
	for (i = 1; i <= 40; i++)
		away(i, NEVER / 2);
	guest[41].from = BAD;
	for (i = 0; i < 190; i++)
		for_the_guest(i < 187 ? 1 + i % 36 : 39, 5);
	for (round = 1; round <= 3; round++) {
		began = at;
		xenvif_rx_action(&queue);
		CHECK(at - began >= 1000 * MS && at - began <= 1002 * MS, "round %d: %lld ms", round, (at - began) / MS);
		CHECK(flushes == 2 && taken == 13, "%d batches of %d packets", flushes, taken);
		CHECK(queue.stats.rx_page_waits == round && queue.stats.rx_page_wait_fails == round, "round %d", round);
		CHECK(words == round && strstr(said, " 1000 ms"), "%s", said);
	}
	for (i = 0; i < rx_consumed; i++)
		CHECK(for_guest[i].lost == 5 && !for_guest[i].done, "packet %d", i);

	/* The others of a batch have what they are to have. */
	rx_consumed = rx_produced = 190;
	for_the_guest(50, 2);
	for_the_guest(40, 3);
	for_the_guest(52, 1);
	silent = true;
	xenvif_rx_action(&queue);
	CHECK(for_guest[190].done == 2 && for_guest[191].lost == 2 && for_guest[191].done == 1 &&
	      for_guest[192].done == 1 && asked[41] == 1, "as they are");
	CHECK(told[40] == GNTST_bad_page && told[41] == GNTST_bad_gntref && !told[42], "%d, %d, %d",
	      told[40], told[41], told[42]);
	CHECK(words == 3 && queue.stats.rx_page_wait_fails == 4, "not always said");
}

/* A round that has waited takes nothing more, so that old packets have their turn. */
static void to_the_guest_slowly(const void *argument)
{
	int i;

	start();
	away(3, 400 * MS);
	for (i = 0; i < 150; i++)
		for_the_guest(1, 5);
	xenvif_rx_action(&queue);
	CHECK(taken == 13 && flushes == 2 && at < began + 402 * MS, "%d packets", taken);
	for (i = 0; i < 13; i++)
		CHECK(for_guest[i].done == 5, "packet %d", i);
	CHECK(queue.stats.rx_page_waits == 1, "once");
	xenvif_rx_action(&queue);
	CHECK(taken == 64 && queue.stats.rx_page_waits == 1, "as ever");
}

/* A packet that ends in the next batch: that one has its own time, and is counted. */
static void to_the_guest_twice(const void *argument)
{
	int i;

	start();
	away(3, 400 * MS);
	away(24, 1200 * MS);
	for (i = 0; i < 12; i++)
		for_the_guest(1, 5);
	for_the_guest(20, 5);
	xenvif_rx_action(&queue);
	CHECK(flushes == 2 && at >= began + 1200 * MS && at < began + 1202 * MS, "%lld ms", (at - began) / MS);
	CHECK(for_guest[12].done == 5 && !words, "%d copies", for_guest[12].done);
	CHECK(queue.stats.rx_page_waits == 2 && !queue.stats.rx_page_wait_fails, "both");
}

/* What comes during the last wait is here. */
static void to_the_guest_at_last(const void *argument)
{
	start();
	*the_page_wait_msecs = 1;
	away(1, 1100 * US);
	for_the_guest(1, 1);
	xenvif_rx_action(&queue);
	CHECK(at > began + 1100 * US && at < began + 1300 * US, "%lld us", (at - began) / US);
	CHECK(for_guest[0].done == 1 && !queue.stats.rx_page_wait_fails && !words, "here");
	*the_page_wait_msecs = 1000;
}

/* A guest that was not told of its packets can't have made room: rx_stall_timeout_msecs begins when it was. */
static void to_the_guest_stalled(const void *argument)
{
	start();
	*the_page_wait_msecs = 9000;
	away(1, 7000 * MS);
	for_the_guest(1, 1);
	xenvif_rx_action(&queue);
	CHECK(at >= began + 7000 * MS && for_guest[0].done == 1, "%lld ms", (at - began) / MS);
	CHECK(jiffies - queue.last_rx_time <= 1, "%lu ms", jiffies - queue.last_rx_time);
	*the_page_wait_msecs = 1000;
}

/*
 * An event channel for both ways, which has an interrupt that nobody has ended: what
 * the guest sends must be heard while what comes to it waits, once for each wait.
 */
static void one_event_channel_to_the_guest(const void *argument)
{
	start();
	for_the_guest(1, 1);
	queue.eoi_pending.counter = NETBK_COMMON_EOI;
	xenvif_rx_action(&queue);
	CHECK(!eois && queue.eoi_pending.counter == NETBK_COMMON_EOI, "as ever, where nothing waits");

	kicks = true;
	away(1, 20 * MS);
	for_the_guest(1, 1);
	xenvif_rx_action(&queue);
	CHECK(at >= began + 20 * MS && nr_waits > 10, "%d waits", nr_waits);
	CHECK(eois == nr_waits && kicked == nr_waits, "%d of %d times", eois, nr_waits);
	CHECK(for_guest[1].done == 1, "here");

	/* Two channels, and the control ring, which has one of its own */
	start();
	kicks = false;
	eois = 0;
	away(1, 20 * MS);
	for_the_guest(1, 1);
	queue.eoi_pending.counter = NETBK_RX_EOI | NETBK_TX_EOI;
	xenvif_rx_action(&queue);
	CHECK(!eois && queue.eoi_pending.counter == (NETBK_RX_EOI | NETBK_TX_EOI), "%d times", eois);
	start();
	away(1, 20 * MS);
	queue.eoi_pending.counter = NETBK_COMMON_EOI;
	ctrl_first = ctrl_pages = ctrl_requests = 1;
	xenvif_ctrl_irq_fn(&vif);
	CHECK(at >= began + 20 * MS && !ctrl_errors && !eois, "%d times", eois);
}

/* Who ends the thread, or the vif, has it at once; who comes later waits as ever. */
static void to_the_guest_no_more(const void *argument)
{
	static ktime_t *const end[] = { &stops, &turns_rogue };
	int n;

	for (n = 0; n < ARRAY_SIZE(end); n++) {
		start();
		away(1, NEVER / 2);
		away(2, NEVER / 2);
		for_the_guest(1, 3);
		*end[n] = began + 20 * MS;
		xenvif_rx_action(&queue);
		CHECK(at >= began + 20 * MS && at <= began + 21 * MS, "end %d: %lld us", n, (at - began) / US);
		CHECK(for_guest[n].lost == 2 && for_guest[n].done == 1, "packet %d", n);
		began = at;
		*end[n] = NEVER;
		vif.disabled = false;
	}
	CHECK(queue.stats.rx_page_waits == 2 && !queue.stats.rx_page_wait_fails && !words, "who ends it knows");

	stops = at;
	for_the_guest(1, 3);
	xenvif_rx_action(&queue);
	CHECK(at == began && for_guest[2].lost == 2 && queue.stats.rx_page_waits == 2, "never begun");
	stops = NEVER;

	*the_page_wait_msecs = 0;
	for_the_guest(1, 3);
	xenvif_rx_action(&queue);
	CHECK(at == began && for_guest[3].lost == 2 && for_guest[3].done == 1, "0: not at all");
	CHECK(queue.stats.rx_page_waits == 2 && !queue.stats.rx_page_wait_fails && !words, "nor counted");
	*the_page_wait_msecs = 1000;

	copy_fails = true;
	for_the_guest(11, 3);
	xenvif_rx_action(&queue);
	CHECK(at == began && for_guest[4].lost == 3 && words == 1 && strstr(said, "nr 3 ret -12"), "%s", said);
	silent = true;
	for_the_guest(11, 3);
	xenvif_rx_action(&queue);
	CHECK(for_guest[5].lost == 3 && words == 1, "not always");
}

/* The control ring: each run of its interrupt waits in vain once, and none while it ends. */
static void control_ring(const void *argument)
{
	for (ctrl_pages = 1; ctrl_pages <= 2; ctrl_pages++) {
		start();
		ctrl_first = 10 * ctrl_pages;
		away(ctrl_first + ctrl_pages - 1, 30 * MS);
		ctrl_requests = 2;
		ctrl_errors = 0;
		xenvif_ctrl_irq_fn(&vif);
		CHECK(at >= began + 30 * MS && at < began + 32 * MS && !ctrl_errors, "%d pages come", ctrl_pages);

		guest[ctrl_first + ctrl_pages - 1].from = NEVER / 2;
		words = 0;
		began = at;
		ctrl_requests = 100;
		xenvif_ctrl_irq_fn(&vif);
		CHECK(at >= began + 1000 * MS && at <= began + 1002 * MS, "%lld ms", (at - began) / MS);
		CHECK(ctrl_errors == 100 && words == 1, "%d errors, said %d times", ctrl_errors, words);

		/* Again as before, in the next run */
		began = at;
		ctrl_requests = 1;
		xenvif_ctrl_irq_fn(&vif);
		CHECK(at >= began + 1000 * MS && ctrl_errors == 101, "in the next run");

		began = at;
		ctrl_requests = 100;
		ctrl_ends = began + 20 * MS;
		xenvif_ctrl_irq_fn(&vif);
		CHECK(at >= began + 20 * MS && at <= began + 21 * MS, "%lld us", (at - began) / US);
		ctrl_ends = NEVER;
		ctrl_requests = 1;
		began = at;
		xenvif_ctrl_irq_fn(&vif);
		CHECK(at == began && words == 2 && ctrl_errors == 202, "nor when it begins as it ends");
	}
	CHECK(!queue.stats.rx_page_waits && !queue.stats.tx_page_waits, "no packets");
}

/* What ethtool -S says is what it is called. */
static void counters(const void *argument)
{
	static const struct { char name[32]; u16 offset; } of[] = {
#include "hook-0306-interface-3.h"
#include "hook-0307-interface-1.h"
	};

	CHECK(ARRAY_SIZE(of) == 4, "four");
	CHECK(!strcmp(of[0].name, "tx_page_waits") &&
	      of[0].offset == offsetof(struct xenvif_stats, tx_page_waits), "waits");
	CHECK(!strcmp(of[1].name, "tx_page_wait_fails") &&
	      of[1].offset == offsetof(struct xenvif_stats, tx_page_wait_fails), "in vain");
	CHECK(!strcmp(of[2].name, "rx_page_waits") &&
	      of[2].offset == offsetof(struct xenvif_stats, rx_page_waits), "to it");
	CHECK(!strcmp(of[3].name, "rx_page_wait_fails") &&
	      of[3].offset == offsetof(struct xenvif_stats, rx_page_wait_fails), "to it, in vain");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "eagain: all is here", here },
		{ "eagain: each page, and each two", each_page },
		{ "eagain: runs", runs },
		{ "eagain: a page comes and goes", comes_and_goes },
		{ "eagain: a page never comes", never_comes },
		{ "eagain: how long", how_long },
		{ "eagain: settings", settings },
		{ "eagain: bad pages", bad_pages },
		{ "eagain: of an earlier batch", of_an_earlier_batch },
		{ "eagain: a page comes at last", at_last },
		{ "eagain: a queue ends", a_queue_ends },
		{ "eagain: budgets", budgets },
		{ "eagain: interrupts", interrupts },
		{ "eagain: asked for more", asked_for_more },
		{ "eagain: one event channel", one_event_channel },
		{ "eagain: no memory", no_memory },
		{ "eagain: threads", threads },
		{ "eagain: to the guest", to_the_guest },
		{ "eagain: to the guest, in vain", to_the_guest_in_vain },
		{ "eagain: to the guest, slowly", to_the_guest_slowly },
		{ "eagain: to the guest, no more", to_the_guest_no_more },
		{ "eagain: to the guest, twice", to_the_guest_twice },
		{ "eagain: to the guest, at last", to_the_guest_at_last },
		{ "eagain: to the guest, stalled", to_the_guest_stalled },
		{ "eagain: one event channel, to the guest", one_event_channel_to_the_guest },
		{ "eagain: control ring", control_ring },
		{ "eagain: counters", counters },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
