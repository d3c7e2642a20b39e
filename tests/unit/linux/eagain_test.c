// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that wait for pages of their guest: netback's eagain.c as it is, below a
 * poll function and a grant table that are played.  Pages come and go with the
 * time; a packet is a header, which is copied, and fragments, which are mapped.
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
static int polls, hypercalls, words;
static bool disabled, map_fails;
static ktime_t at = 5000 * MS, began, longest, first_wait;
static char frames[MAX_PENDING_REQS];
static struct xenvif vif;
static struct xenvif_queue queue = { .vif = &vif };

void say(const char *format, ...) { words++; }
void fail(const char *format, ...) { exit(1); }
ktime_t ktime_get(void) { return at; }

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

void gnttab_batch_copy(struct gnttab_copy *batch, unsigned int count)
{
	unsigned int i;

	hypercalls++;
	for (i = 0; i < count; i++) {
		CHECK(batch[i].status == GNTST_eagain, "page %d is copied twice", batch[i].ref);
		batch[i].status = status_of(batch[i].ref);
		copies[batch[i].ref] += !batch[i].status;
	}
}

int gnttab_map_refs(struct gnttab_map_grant_ref *ops, void *kops,
		    struct page **pages, unsigned int count)
{
	unsigned int i;

	hypercalls++;
	if (map_fails)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		CHECK(ops[i].status == GNTST_eagain, "page %d is mapped twice", ops[i].ref);
		CHECK(pages[i] == (struct page *)&frames[ops - queue.tx_map_ops + i], "at another's place");
		ops[i].status = status_of(ops[i].ref);
		mapped[ops[i].ref] += !ops[i].status;
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

/* xenvif_tx_action() with its hooks */
static int tx_action(int budget)
{
	unsigned int nr_cops = 0, nr_mops = 0;

	if (queue.eagain.nr_cops) {
		if (!budget || xenvif_eagain_waits(&queue))
			return 0;
		return min(xenvif_tx_submit(&queue), budget);
	}
	build_gops(budget, &nr_cops, &nr_mops);
	if (!nr_cops)
		return 0;
	gnttab_batch_copy(queue.tx_copy_ops, nr_cops);
	if (nr_mops)
		gnttab_map_refs(queue.tx_map_ops, NULL, queue.pages_to_map, nr_mops);
	if (xenvif_eagain_keep(&queue, nr_cops, nr_mops))
		return 0;
	return xenvif_tx_submit(&queue);
}

/* xenvif_poll(): NAPI is not scheduled any more at its end, unless there is more. */
static int poll(int budget)
{
	int done;

	polls++;
	queue.napi.scheduled = false;
	done = tx_action(budget);
	if (done < budget && !queue.eagain.nr_cops && consumed < produced)
		napi_schedule(&queue.napi);
	return done;
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

	xenvif_eagain_init(&queue);
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
	run_until(began + 1002 * MS);
	CHECK(lost[1] == 1 && lost[2] == 1 && nr_handed_on == 3, "the others");
	CHECK(order[0] == 0 && order[1] == 3 && order[2] == 4, "in their order");
	CHECK(queue.stats.tx_page_wait_fails == 1 && words == 1, "it is said");
	CHECK(!mapped[2] && !mapped[6] && !mapped[7] && !mapped[8], "all are let go");
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

static void a_queue_ends(const void *argument)
{
	int i;

	start();
	xenvif_eagain_drop(&queue);
	CHECK(!nr_handed_on && !hypercalls, "nothing was there");
	for (i = 1; i <= 3; i++)
		away(i * 4, NEVER / 2);
	send_packet((struct packet) { 1, 2, { 3, 4 } });
	send_packet((struct packet) { 5, 6, { 7 } });
	send_packet((struct packet) { 8, 9, { 10 } });
	poll(BUDGET);
	run_until(began + 5 * MS);
	disabled = true;
	xenvif_eagain_drop(&queue);
	CHECK(!queue.eagain.timer.runs && !queue.eagain.nr_cops, "the timer");
	for (i = 0; i < 3; i++)
		CHECK(lost[i] == 1, "packet %d", i);
	for (i = 0; i < PAGES; i++)
		CHECK(!mapped[i], "page %d is mapped", i);
	run_until(began + 10 * MS);

	/* Up again */
	disabled = false;
	send_packet((struct packet) { 20, 0, { 21 } });
	CHECK(poll(BUDGET) == 1 && handed_on[3] == 1, "as new");
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
	hypercalls = 0;
	CHECK(poll(0) == 0 && !nr_handed_on && !hypercalls, "nothing is received without a budget");
	CHECK(poll(2) == 2, "not more than is asked for");
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

static void no_memory(const void *argument)
{
	start();
	away(2, 5 * MS);
	send_packet((struct packet) { 1, 0, { 2 } });
	poll(BUDGET);
	map_fails = true;
	at += MS;
	CHECK(poll(BUDGET) == 0 && words == 1, "it is said");
	map_fails = false;
	words = 0;
	run_until(began + 7 * MS);
	all_handed_on("no memory");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "eagain: all is here", here },
		{ "eagain: each page, and each two", each_page },
		{ "eagain: runs", runs },
		{ "eagain: a page comes and goes", comes_and_goes },
		{ "eagain: a page never comes", never_comes },
		{ "eagain: a page comes at last", at_last },
		{ "eagain: a queue ends", a_queue_ends },
		{ "eagain: budgets", budgets },
		{ "eagain: interrupts", interrupts },
		{ "eagain: no memory", no_memory },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
