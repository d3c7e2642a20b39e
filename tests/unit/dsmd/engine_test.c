// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: hosts with a played hypervisor each, joined by channels that keep
 * the order of each pair and nothing else.  vCPUs run instructions that read
 * and write words of one to three pages at once; everything else is chance, by
 * the seed.  What is read is always what was written last, everything ends, and
 * in the end all is quiet and every page is at home.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/queue.h>

#include "case.h"
#include "dice.h"
#include "engine.h"
#include "played_xen.h"

#define HOSTS	4
#define NR(a)	(sizeof(a) / sizeof((a)[0]))
#define US	1000ull
#define MS	1000000ull

struct parcel {
	struct dsm_msg msg;
	uint8_t *page;
	STAILQ_ENTRY(parcel) link;
};
STAILQ_HEAD(channel, parcel);

/* What a world is made of. */
struct features {
	const char *name;
	unsigned int hosts, pages, vcpus, frames;
	unsigned int instructions;	/* of each vCPU */
	unsigned int wide;		/* most pages of an instruction */
	unsigned int busy_permille, nomem_permille, ring;
	bool pins, holes, foreign, nodata, no_leases, one_loop, all_at_first;
	unsigned int credits;		/* messages in a channel before room() is 0 */
	unsigned int sequential;	/* of 8 accesses, so many are of the next page */
	unsigned int prefetch;
	bool ahead;	/* of pages that will be written, too */
	bool evacuate, clear_hint;
	unsigned int looks;		/* frames that an evacuation looks at at a time */
	unsigned int answer_ms;		/* an answer comes in this time */
	unsigned int merge_ms;		/* 2 MiB are one page again then */
	uint16_t lenders;
};

struct instruction {
	uint64_t rip;
	unsigned int nr, left;
	struct {
		uint64_t gfn;
		uint64_t since;		/* the instant when it was made first; 0: it was not */
		unsigned int word, want;
	} access[3];
};

struct node {
	struct played_xen xen;
	struct dsm_engine *engine;
	unsigned int number;
	struct instruction run[PLAYED_VCPUS];
	uint64_t place[PLAYED_VCPUS];	/* of a vCPU that goes through the pages */
	char failure[DSM_ENGINE_TEXT];
	bool over;
	unsigned int warnings;
	unsigned int nr_finished;
	enum dsm_reason finished;
	uint64_t finished_gfn;
};

static struct features now_playing;
static struct node node[HOSTS];
static struct channel channel[HOSTS][HOSTS];
static unsigned int in_channel[HOSTS][HOSTS];
static unsigned int answers_without[HOSTS][HOSTS], requests_without[HOSTS][HOSTS];
static uint64_t clock_ns, written, checked;
static uint64_t last[PLAYED_PAGES][PLAYED_WORDS];
/* When a hole was populated last; a count of all that happened until now. */
static uint64_t populated[PLAYED_PAGES], instant;
static bool deaf[HOSTS];		/* what is sent there is lost */
static bool delivering;

static uint64_t on_now(void *context)
{
	(void)context;
	return clock_ns;
}

static void on_send(void *context, unsigned int host, const struct dsm_msg *msg,
		    const uint8_t *page)
{
	struct node *n = context;
	struct parcel *parcel = calloc(1, sizeof(*parcel));

	CHECK(host != n->number && host < now_playing.hosts, "to %u", host);
	CHECK(!page == !dsm_type_has_page(msg->type), "%s", dsm_type_name(msg->type));
	/* What waited for PUT_ACK has its frame, and is one message. */
	CHECK(msg->type > DSM_GETM || delivering ||
	      in_channel[n->number][host] < now_playing.credits ||
	      8 * ++requests_without[n->number][host] <= answers_without[n->number][host],
	      "a request without a credit");
	parcel->msg = *msg;
	if (page) {
		parcel->page = malloc(DSM_PAGE_BYTES);
		memcpy(parcel->page, page, DSM_PAGE_BYTES);
	}
	STAILQ_INSERT_TAIL(&channel[n->number][host], parcel, link);
	in_channel[n->number][host]++;
	/* One request for each eight of these. */
	answers_without[n->number][host] += in_channel[n->number][host] >= now_playing.credits &&
					    (msg->type == DSM_DATA_S || msg->type == DSM_DATA_M ||
					     msg->type == DSM_GRANT || msg->type == DSM_NACK ||
					     msg->type == DSM_RESULT);
	CHECK(in_channel[n->number][host] < 4096, "more than a queue takes");
}

static unsigned int on_room(void *context, unsigned int host)
{
	const struct node *n = context;
	unsigned int used = in_channel[n->number][host];

	return used < now_playing.credits ? now_playing.credits - used : 0;
}

static void on_failed(void *context, const char *text)
{
	struct node *n = context;

	CHECK(!n->failure[0], "failed twice");
	snprintf(n->failure, sizeof(n->failure), "%s", text);
}

static void on_over(void *context, const char *text)
{
	struct node *n = context;

	n->over = true;
	CHECK(text[0], "no text");
}

static void on_warn(void *context, const char *text)
{
	struct node *n = context;

	CHECK(text[0], "a warning without words");
	n->warnings++;
}

static void on_finished(void *context, uint64_t gfn, enum dsm_reason reason)
{
	struct node *n = context;

	n->nr_finished++;
	n->finished = reason;
	n->finished_gfn = gfn;
}

static const struct dsm_engine_calls calls = {
	.now = on_now, .send = on_send, .room = on_room, .failed = on_failed, .over = on_over,
	.warn = on_warn, .finished = on_finished,
};

static unsigned int home_of(uint64_t gfn)
{
	return (unsigned int)(gfn * now_playing.hosts / now_playing.pages);
}

static struct dsm_engine_params params_of(struct node *n)
{
	struct dsm_engine_params p = {
		.self = (uint8_t)n->number, .nr_hosts = (uint8_t)now_playing.hosts,
		.name = { "alpha", "beta", "gamma", "delta" },
		.nr_vcpus = now_playing.vcpus, .frames = now_playing.frames,
		.lease_ns = now_playing.no_leases ? 0 : 200 * US,
		.token_ns = 5 * MS, .retry_ns = 50 * US, .pin_ns = 2 * MS,
		.answer_ns = now_playing.answer_ms * MS,
		.prefetch = now_playing.prefetch, .clear_hint = now_playing.clear_hint,
		.looks = now_playing.looks,
		.keepalive_ms = 10000, .seed = dice(), .max_losses = 3,
		.merge_ns = now_playing.merge_ms * MS, .lenders = now_playing.lenders,
		.xen = &n->xen.xen, .calls = &calls, .context = n,
	};
	uint64_t gfn;

	for (gfn = 0; gfn < now_playing.pages; gfn++) {
		struct dsm_range *r = &p.range[home_of(gfn)];

		if (r->end)
			r->end++;
		else
			*r = (struct dsm_range){ gfn, gfn + 1, (uint8_t)home_of(gfn) };
	}
	p.nr_ranges = now_playing.hosts;
	return p;
}

/*
 * A page that was not here is zeros.  Either it was so everywhere, or who waits
 * for it overwrites it as a whole: that begins now, and goes on when he does.
 */
static void on_zero(struct played_xen *xen, uint64_t gfn, uint8_t wanted)
{
	unsigned int word;

	(void)xen;
	if (wanted == DSM_XEN_WANT_M_NODATA)
		memset(last[gfn], 0, DSM_PAGE_BYTES);
	for (word = 0; word < PLAYED_WORDS; word++)
		CHECK(!last[gfn][word], "the bytes of gfn %llu are lost: a vCPU waits with %u",
		      (unsigned long long)gfn, wanted);
}

static void world_begin(const struct features *features)
{
	char text[DSM_ENGINE_TEXT];
	struct dsm_engine_params p;
	unsigned int h, i;
	uint64_t gfn;

	now_playing = *features;
	clock_ns = 5 * MS;
	written = 0;
	memset(last, 0, sizeof(last));
	memset(node, 0, sizeof(node));
	memset(deaf, 0, sizeof(deaf));
	for (h = 0; h < features->hosts; h++) {
		struct node *n = &node[h];

		n->number = h;
		played_init(&n->xen, features->pages, features->vcpus,
			    features->ring ? features->ring : 8, features->frames);
		n->xen.on_zero = on_zero;
		n->xen.busy_permille = features->busy_permille;
		n->xen.nomem_permille = features->nomem_permille;
		for (gfn = 0; gfn < features->pages; gfn++) {
			n->xen.page[gfn].elsewhere = home_of(gfn) != h;
			n->xen.page[gfn].state = home_of(gfn) == h ?
				DSM_XEN_STATE_M : DSM_XEN_STATE_I;
		}
		for (i = 0; i < features->hosts; i++)
			STAILQ_INIT(&channel[h][i]);
		for (i = 0; i < features->vcpus; i++)
			n->run[i].left = features->all_at_first && h ?
					 0 : features->instructions;
		p = params_of(n);
		CHECK(!dsm_engine_create(&p, &n->engine, text), "%s", text);
		for (i = 0; i < features->hosts; i++)
			if (i != h)
				CHECK(!dsm_engine_peer_up(n->engine, i, 7), "up");
		for (i = 0; i < features->hosts; i++)
			dsm_engine_takes_ahead(n->engine, i, features->ahead);
	}
	memset(in_channel, 0, sizeof(in_channel));
	memset(answers_without, 0, sizeof(answers_without));
	memset(requests_without, 0, sizeof(requests_without));
}

static void drop_parcel(unsigned int from, unsigned int to)
{
	struct parcel *parcel = STAILQ_FIRST(&channel[from][to]);

	STAILQ_REMOVE_HEAD(&channel[from][to], link);
	in_channel[from][to]--;
	free(parcel->page);
	free(parcel);
}

static void world_end(void)
{
	unsigned int h, i;

	for (h = 0; h < now_playing.hosts; h++) {
		dsm_engine_destroy(node[h].engine);
		for (i = 0; i < now_playing.hosts; i++)
			while (!STAILQ_EMPTY(&channel[h][i]))
				drop_parcel(h, i);
	}
}

static bool deliver(unsigned int from, unsigned int to)
{
	struct parcel *parcel = STAILQ_FIRST(&channel[from][to]);

	if (!parcel)
		return false;
	delivering = true;
	if (!deaf[to])
		dsm_engine_message(node[to].engine, from, &parcel->msg, parcel->page);
	delivering = false;
	drop_parcel(from, to);
	return true;
}

/* Nobody has a page that another can write. */
static void check_states(void)
{
	unsigned int h, readers, writers;
	uint64_t gfn;

	for (gfn = 0; gfn < now_playing.pages; gfn++) {
		for (h = readers = writers = 0; h < now_playing.hosts; h++) {
			readers += node[h].xen.page[gfn].state == DSM_XEN_STATE_S;
			writers += node[h].xen.page[gfn].state == DSM_XEN_STATE_M;
		}
		CHECK(!writers || (writers == 1 && !readers),
		      "gfn %llu: %u writers, %u readers", (unsigned long long)gfn,
		      writers, readers);
	}
}

static void check_rules(void)
{
	unsigned int h;

	for (h = 0; h < now_playing.hosts; h++) {
		const char *rule = dsm_engine_broken_rule(node[h].engine);

		CHECK(!rule, "host %u: %s", h, rule);
		CHECK(!node[h].failure[0], "host %u failed: %s", h, node[h].failure);
	}
}

static void next_instruction(struct instruction *run, uint64_t *place)
{
	unsigned int i, j;

	if (!now_playing.one_loop || !run->rip)
		run->rip = 1000 + dice_below(1000000);
	run->nr = 1 + dice_below(now_playing.wide);
	for (i = 0; i < run->nr; i++) {
		run->access[i].gfn = dice_below(now_playing.pages);
		run->access[i].since = 0;
		if (!i && dice_below(8) < now_playing.sequential)
			run->access[i].gfn = (*place + 1) % now_playing.pages;
		if (!i)
			*place = run->access[i].gfn;
		run->access[i].word = dice_below(2) ? dice_below(PLAYED_WORDS) :
				      dice_below(2) * (PLAYED_WORDS - 1);
		run->access[i].want = dice_below(2) ? DSM_XEN_WANT_S : DSM_XEN_WANT_M;
		if (now_playing.nodata && !dice_below(4))
			run->access[i].want = DSM_XEN_WANT_M_NODATA;
		if (!i && now_playing.sequential && dice_below(4))
			run->access[i].want = DSM_XEN_WANT_S;
		for (j = 0; j < i; j++)
			if (run->access[j].gfn == run->access[i].gfn)
				run->access[i].want = run->access[j].want = DSM_XEN_WANT_M;
	}
}

/* There was no memory at its home since the access was made: not only before. */
static void check_hole(const struct node *n, uint64_t gfn, uint64_t since)
{
	CHECK(node[home_of(gfn)].xen.page[gfn].state == DSM_XEN_STATE_HOLE || populated[gfn] > since,
	      "host %u finds no memory at gfn %llu, where there is some since %llu; it looked at %llu first",
	      n->number, (unsigned long long)gfn, (unsigned long long)populated[gfn],
	      (unsigned long long)since);
}

/* A vCPU tries its instruction: it misses a page, or all of it happens. */
static void run_vcpu(struct node *n, unsigned int vcpu)
{
	struct instruction *run = &n->run[vcpu];
	bool hole = false;
	unsigned int i, j;

	if (n->xen.vcpu[vcpu].waits || !run->left)
		return;
	/* An interrupt, which does something else first. */
	if (now_playing.holes && !now_playing.nodata && !n->xen.vcpu[vcpu].at_hole && !dice_below(4))
		run->nr = 0;
	if (!run->nr)
		next_instruction(run, &n->place[vcpu]);
	for (i = 0; i < run->nr; i++) {
		for (j = 0; j < i && !run->access[i].since; j++)
			if (run->access[j].gfn == run->access[i].gfn)
				run->access[i].since = run->access[j].since;
		if (!run->access[i].since)
			run->access[i].since = ++instant;
		switch (played_use(&n->xen, vcpu, run->access[i].gfn,
				   run->access[i].want, run->rip)) {
		case PLAYED_MISS:
			return;
		case PLAYED_HOLE:
			check_hole(n, run->access[i].gfn, run->access[i].since);
			hole = true;
			break;
		case PLAYED_DONE:
			break;
		case PLAYED_ACCESS:
			CHECK(false, "no page stays at its home here");
		}
	}
	for (i = 0; i < run->nr && !hole; i++) {
		uint64_t gfn = run->access[i].gfn;
		unsigned int word = run->access[i].word;
		uint64_t *at = &n->xen.page[gfn].word[word];

		/* It zeroes the page, whatever was there. */
		if (run->access[i].want == DSM_XEN_WANT_M_NODATA) {
			memset(n->xen.page[gfn].word, 0, DSM_PAGE_BYTES);
			memset(last[gfn], 0, DSM_PAGE_BYTES);
			continue;
		}
		CHECK(*at == last[gfn][word],
		      "host %u reads %llx at gfn %llu, word %u; the last write was %llx",
		      n->number, (unsigned long long)*at, (unsigned long long)gfn,
		      word, (unsigned long long)last[gfn][word]);
		checked++;
		if (run->access[i].want != DSM_XEN_WANT_S)
			*at = last[gfn][word] = ++written << 8 | n->number;
	}
	played_goes_on(&n->xen, vcpu);
	run->nr = 0;
	run->left--;
}

/* What a guest does besides, and other domains, and pins. */
static void mischief(struct node *n)
{
	uint64_t gfn = dice_below(now_playing.pages);
	struct played_page *page = &n->xen.page[gfn];

	if (now_playing.pins && !dice_below(4))
		page->pinned = !page->pinned && !dice_below(8);
	if (now_playing.foreign && !dice_below(4))
		played_use(&n->xen, NO_VCPU, gfn,
			   DSM_XEN_WANT_S + dice_below(2), 0);
	if (now_playing.evacuate && !dice_below(16)) {
		uint64_t first = dice_below(now_playing.pages);

		CHECK(!dsm_engine_evacuate(n->engine, first, first +
					   dice_below((unsigned int)(now_playing.pages - first))),
		      "evacuate");
	}
	/* A hint that is wrong most of the time. */
	if (now_playing.prefetch && !dice_below(16)) {
		uint64_t first = dice_below(now_playing.pages);

		CHECK(!dsm_engine_leaving(n->engine, first, first +
					  dice_below((unsigned int)(now_playing.pages - first))),
		      "leaving");
	}
	if (now_playing.holes && !dice_below(8)) {
		if (played_guest_frees(&n->xen, gfn))
			memset(last[gfn], 0, sizeof(last[gfn]));
		else if (home_of(gfn) == n->number && played_guest_populates(&n->xen, gfn))
			populated[gfn] = ++instant;
	}
}

static void unpin_all(void)
{
	unsigned int h;
	uint64_t gfn;

	for (h = 0; h < now_playing.hosts; h++)
		for (gfn = 0; gfn < now_playing.pages; gfn++)
			node[h].xen.page[gfn].pinned = false;
}

static bool busy_vcpus(void)
{
	unsigned int h, i;

	for (h = 0; h < now_playing.hosts; h++)
		for (i = 0; i < now_playing.vcpus; i++)
			if (node[h].run[i].left)
				return true;
	return false;
}

static bool all_quiet(void)
{
	unsigned int h, i;

	for (h = 0; h < now_playing.hosts; h++) {
		if (deaf[h])
			continue;
		if (!dsm_engine_is_quiet(node[h].engine) ||
		    played_waits(&node[h].xen) || node[h].xen.in_ring)
			return false;
		for (i = 0; i < now_playing.hosts; i++)
			if (in_channel[h][i] && !deaf[i])
				return false;
	}
	return true;
}

/* Anything that can happen now. */
static void move(bool playing)
{
	struct node *n = &node[dice_below(now_playing.hosts)];
	unsigned int i;

	switch (dice_below(16)) {
	case 0:
		clock_ns += dice_below(300 * US);
		break;
	case 1:
		if (playing)
			mischief(n);
		break;
	case 2:
		for (i = 0; i < now_playing.hosts; i++)
			dsm_engine_room(n->engine, i);
		break;
	case 3:
	case 4:
		dsm_engine_misses(n->engine);
		break;
	case 5:
		dsm_engine_tick(n->engine);
		break;
	case 6:
	case 7:
	case 8:
		dsm_engine_run(n->engine);
		break;
	case 9:
	case 10:
		run_vcpu(n, dice_below(now_playing.vcpus));
		break;
	default:
		i = dice_below(now_playing.hosts);
		if (i != n->number)
			deliver(n->number, i);
	}
}

static void all_of_it(bool (*until)(void), const char *what)
{
	unsigned long moves = 0;

	while (!until()) {
		move(false);
		CHECK(moves++ < 4000000, "%s does not end", what);
	}
}

static bool drained(void)
{
	unsigned int h;

	for (h = 0; h < now_playing.hosts; h++)
		if (dsm_engine_guests(node[h].engine))
			return false;
	return all_quiet();
}

static bool evacuated(void)
{
	return !dsm_engine_is_evacuating(node[0].engine) && all_quiet();
}

/* All that is here, and all of this host, is at home. */
static void check_evacuated(unsigned int host)
{
	uint64_t gfn;

	for (gfn = 0; gfn < now_playing.pages; gfn++) {
		unsigned int state = node[host].xen.page[gfn].state;

		CHECK(home_of(gfn) == host ?
		      state == DSM_XEN_STATE_M || state == DSM_XEN_STATE_HOLE :
		      state == DSM_XEN_STATE_I || state == DSM_XEN_STATE_HOLE,
		      "gfn %llu is in state %u", (unsigned long long)gfn, state);
	}
	CHECK(!dsm_engine_guests(node[host].engine), "guests");
}

/* Nobody uses anything any more: every page goes home. */
static void go_home(void)
{
	unsigned int h, word;
	uint64_t gfn;

	if (now_playing.evacuate) {
		dsm_engine_evacuate(node[0].engine, 0, now_playing.pages);
		all_of_it(evacuated, "evacuation");
		check_evacuated(0);
	}
	for (h = 0; h < now_playing.hosts; h++)
		dsm_engine_drain(node[h].engine);
	all_of_it(drained, "going home");
	for (gfn = 0; gfn < now_playing.pages; gfn++) {
		struct played_page *page = &node[home_of(gfn)].xen.page[gfn];

		if (page->state == DSM_XEN_STATE_HOLE)
			continue;
		CHECK(page->state == DSM_XEN_STATE_M || page->state == DSM_XEN_STATE_S,
		      "gfn %llu is in state %u at home", (unsigned long long)gfn,
		      page->state);
		for (word = 0; word < PLAYED_WORDS; word++)
			CHECK(page->word[word] == last[gfn][word],
			      "gfn %llu came home with an old word %u",
			      (unsigned long long)gfn, word);
	}
}

static void world(const void *argument)
{
	struct features with = *(const struct features *)argument, *features = &with;
	struct dsm_engine_counts counts;
	unsigned long moves = 0;
	uint64_t prefetches = 0, cleared = 0;
	unsigned int h;

	/* Everybody answers, sooner or later. */
	with.answer_ms = 60000;
	dice_begin();
	world_begin(features);
	while (busy_vcpus()) {
		move(true);
		CHECK(moves < 40000000, "no end");
		if (!(++moves % 64)) {
			check_states();
			check_rules();
		}
	}
	unpin_all();
	for (h = 0; h < features->hosts; h++) {
		node[h].xen.busy_permille = 0;
		node[h].xen.nomem_permille = 0;
	}
	all_of_it(all_quiet, "rest");
	check_states();
	go_home();
	check_rules();
	for (h = 0; h < features->hosts; h++) {
		dsm_engine_get_counts(node[h].engine, &counts);
		CHECK(!counts.requests && !counts.waiting && !counts.frames_used &&
		      !counts.elsewhere, "host %u is not quiet", h);
		CHECK(counts.read_fault.count + counts.write_fault.count <=
		      counts.read_faults + counts.write_faults, "times of faults");
		printf("host %u: %llu read and %llu write faults, %llu of others, %llu+%llu evicted, "
		       "%llu retries, %llu pins, %llu leases over, %llu tokens, %llu waited for a frame, "
		       "%llu operations in %llu calls, %llu fetched before, %llu for good, %llu for nothing, "
		       "%llu refused, %llu evacuated\n", h,
		       (unsigned long long)counts.read_faults,
		       (unsigned long long)counts.write_faults,
		       (unsigned long long)counts.foreign_faults,
		       (unsigned long long)counts.evicted_shared,
		       (unsigned long long)counts.evicted_modified,
		       (unsigned long long)counts.retries,
		       (unsigned long long)counts.pins,
		       (unsigned long long)counts.leases_over,
		       (unsigned long long)counts.tokens,
		       (unsigned long long)counts.waited_frames,
		       (unsigned long long)counts.operations,
		       (unsigned long long)counts.batches,
		       (unsigned long long)counts.prefetches,
		       (unsigned long long)counts.prefetch_hits,
		       (unsigned long long)counts.prefetch_wasted,
		       (unsigned long long)counts.prefetch_refused,
		       (unsigned long long)counts.evacuated);
		CHECK(counts.prefetch_hits + counts.prefetch_wasted + counts.prefetch_refused <=
		      counts.prefetches, "host %u: prefetches", h);
		prefetches += counts.prefetches;
		cleared += counts.cleared;
	}
	CHECK(!features->clear_hint == !cleared, "%llu cleared", (unsigned long long)cleared);
	CHECK(!features->prefetch == !prefetches, "%llu prefetches",
	      (unsigned long long)prefetches);
	printf("%llu words checked in %lu moves\n", (unsigned long long)checked, moves);
	world_end();
}

static const struct features worlds[] = {
	{ .name = "two hosts", .hosts = 2, .pages = 8, .vcpus = 2, .frames = 64,
	  .instructions = 2000, .wide = 1, .credits = 64 },
	{ .name = "three hosts", .hosts = 3, .pages = 12, .vcpus = 2, .frames = 64,
	  .instructions = 1500, .wide = 1, .credits = 64 },
	{ .name = "wide instructions", .hosts = 2, .pages = 4, .vcpus = 1,
	  .frames = 32, .instructions = 1500, .wide = 3, .credits = 64 },
	{ .name = "wide instructions of three hosts", .hosts = 3, .pages = 3, .vcpus = 2,
	  .frames = 64, .instructions = 600, .wide = 3, .credits = 64 },
	{ .name = "a loop of one instruction", .hosts = 2, .pages = 4, .vcpus = 2,
	  .frames = 64, .instructions = 600, .wide = 3, .one_loop = true, .credits = 64 },
	{ .name = "few frames", .hosts = 2, .pages = 128, .vcpus = 1, .frames = 32,
	  .instructions = 6000, .wide = 2, .credits = 64 },
	{ .name = "pages in use", .hosts = 3, .pages = 9, .vcpus = 2, .frames = 64,
	  .instructions = 1500, .wide = 2, .busy_permille = 200, .nomem_permille = 20,
	  .pins = true, .credits = 64 },
	{ .name = "a full ring, few credits", .hosts = 3, .pages = 16, .vcpus = 4,
	  .frames = 128, .instructions = 1000, .wide = 2, .ring = 1, .foreign = true,
	  .credits = 2 },
	{ .name = "holes", .hosts = 3, .pages = 12, .vcpus = 2, .frames = 64,
	  .instructions = 2000, .wide = 2, .holes = true, .credits = 64 },
	{ .name = "pages that are zeroed", .hosts = 3, .pages = 8, .vcpus = 2,
	  .frames = 64, .instructions = 2000, .wide = 2, .nodata = true, .busy_permille = 50,
	  .foreign = true, .credits = 64 },
	{ .name = "no leases", .hosts = 2, .pages = 8, .vcpus = 2, .frames = 64,
	  .instructions = 2000, .wide = 1, .no_leases = true, .nodata = true, .credits = 64 },
	{ .name = "all vCPUs on one host", .hosts = 3, .pages = 96, .vcpus = 2,
	  .frames = 64, .instructions = 4000, .wide = 2, .all_at_first = true,
	  .credits = 64 },
	{ .name = "one page after the other", .hosts = 2, .pages = 256, .vcpus = 2, .frames = 64,
	  .instructions = 4000, .wide = 2, .sequential = 7, .credits = 64 },
	{ .name = "everything at once", .hosts = 4, .pages = 64, .vcpus = 1, .frames = 32,
	  .instructions = 150, .wide = 3, .busy_permille = 100, .nomem_permille = 10,
	  .pins = true, .holes = true, .foreign = true, .nodata = true, .ring = 2, .credits = 8 },
};

/* What makes it quick: all of it, or one. */
static const struct {
	const char *name;
	unsigned int prefetch;
	bool evacuate, clear_hint;
	unsigned int every;		/* of the worlds: each, or one of so many */
} sets[] = {
	{ "a quick world", 32, true, true, 1 },
	{ "a world with prefetch", 32, false, false, 4 },
	{ "a world with evacuations", 0, true, false, 4 },
	{ "a world with the clear hint", 0, false, true, 3 },
};

static struct features quick(const struct features *world, unsigned int set)
{
	struct features f = *world;

	f.prefetch = sets[set].prefetch;
	f.ahead = f.prefetch && sets[set].evacuate;
	f.evacuate = sets[set].evacuate;
	f.clear_hint = sets[set].clear_hint;
	f.nodata |= f.clear_hint;
	if (!f.sequential)
		f.sequential = 4;
	if (f.pages < 24)
		f.pages *= 3;
	if (f.credits < 24)
		f.credits += 16;
	return f;
}


/* ---- What ends a VM, and with which words ---- */

static const struct features calm = {
	.hosts = 3, .pages = 12, .vcpus = 2, .frames = 64, .wide = 1, .credits = 64,
};

static void settle_down(void)
{
	unsigned int h, i, rounds;

	for (rounds = 0; rounds < 20; rounds++) {
		for (h = 0; h < now_playing.hosts; h++) {
			dsm_engine_misses(node[h].engine);
			dsm_engine_run(node[h].engine);
			for (i = 0; i < now_playing.hosts; i++)
				while (i != h && deliver(h, i))
					;
		}
		clock_ns += 300 * US;
		for (h = 0; h < now_playing.hosts; h++)
			dsm_engine_tick(node[h].engine);
	}
}

static void use(unsigned int host, unsigned int vcpu, uint64_t gfn, unsigned int want)
{
	static uint64_t rip = 1;

	CHECK(played_use(&node[host].xen, vcpu, gfn, want, rip++) == PLAYED_MISS,
	      "no miss");
	settle_down();
}

static void expect_failure(unsigned int host, const char *words)
{
	const char *said = dsm_engine_failure(node[host].engine);

	CHECK(said && strstr(said, words), "'%s', want '%s'", said ? said : "", words);
	CHECK(!strcmp(said, node[host].failure), "said once: '%s'", node[host].failure);
	CHECK(node[host].xen.crashes == 1, "the domain crashes");
	CHECK(dsm_engine_next(node[host].engine) == UINT64_MAX, "nothing is due");
}

static void host_lost(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&calm);
	use(1, 0, 0, DSM_XEN_WANT_M);
	use(1, 0, 1, DSM_XEN_WANT_M);
	use(1, 0, 2, DSM_XEN_WANT_S);
	use(0, 0, 4, DSM_XEN_WANT_S);
	dsm_engine_peer_down(node[0].engine, 1, false, "a question was not answered in time");
	expect_failure(0, "host beta is lost (a question was not answered in time): 2 pages of alpha "
		       "were modified there; of its own 4 pages 1 are here; of alpha's the first are gfns 0x0, 0x1");
	/* Who is down already is not lost once more. */
	dsm_engine_peer_down(node[0].engine, 1, false, "again");
	world_end();
}

/* Who says that it has lost another one may be heard before that one's end: both are told of. */
static void another_is_lost(const void *argument)
{
	static const struct { unsigned int by, whom; } nobody[] = {
		{ 1, 0 }, { 1, 1 }, { 1, 3 }, { 1, UINT_MAX }, { 3, 2 }, { UINT_MAX, 2 }, { 2, 1 },
	};
	unsigned int i;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	use(1, 0, 0, DSM_XEN_WANT_M);
	use(2, 0, 1, DSM_XEN_WANT_M);
	use(2, 0, 2, DSM_XEN_WANT_M);
	use(0, 0, 8, DSM_XEN_WANT_S);
	dsm_engine_peer_lost(node[0].engine, 1, 2);
	dsm_engine_peer_down(node[0].engine, 1, false, "it has lost host gamma");
	expect_failure(0, "host beta is lost (it has lost host gamma): 1 pages of alpha were modified there; of its own "
		       "4 pages 0 are here; of alpha's the first are gfns 0x0; host gamma: 2 pages of alpha were "
		       "modified there; of its own 4 pages 1 are here; of alpha's the first are gfns 0x1, 0x2");
	CHECK(dsm_engine_lost(node[0].engine) == 1, "its connection is what ended");
	world_end();

	/* Itself, this host, no host; what no host or another one says. */
	for (i = 0; i < NR(nobody); i++) {
		dice_begin();
		world_begin(&calm);
		use(1, 0, 0, DSM_XEN_WANT_M);
		dsm_engine_peer_lost(node[0].engine, nobody[i].by, nobody[i].whom);
		dsm_engine_peer_down(node[0].engine, 1, false, "cut off");
		expect_failure(0, "host beta is lost (cut off): 1 pages of alpha");
		CHECK(!strstr(node[0].failure, "; host "), "%u: %s", i, node[0].failure);
		world_end();
	}
}

/* vCPU 0 there has a page, and loses it to its home before it has gone on. */
static void use_and_lose_by(unsigned int host, unsigned int vcpu, uint64_t gfn)
{
	unsigned int i;

	CHECK(played_use(&node[host].xen, vcpu, gfn, DSM_XEN_WANT_M, 4711) == PLAYED_MISS, "a miss");
	for (i = 0; i < 4; i++) {
		dsm_engine_misses(node[host].engine);
		dsm_engine_run(node[host].engine);
		deliver(host, 0);
		dsm_engine_run(node[0].engine);
		deliver(0, host);
		dsm_engine_run(node[host].engine);
	}
	clock_ns += 2 * MS;
	dsm_engine_tick(node[host].engine);
	played_use(&node[0].xen, host - 1, gfn, DSM_XEN_WANT_M, host);
	dsm_engine_misses(node[0].engine);
	dsm_engine_run(node[0].engine);
	for (i = 0; i < 3; i++) {
		deliver(0, host);
		dsm_engine_run(node[host].engine);
		deliver(host, 0);
		dsm_engine_run(node[0].engine);
	}
	CHECK(node[0].xen.page[gfn].state == DSM_XEN_STATE_M, "a loss of %u", host);
}

static void use_and_lose(unsigned int host, uint64_t gfn)
{
	use_and_lose_by(host, 0, gfn);
}

static const struct features strict = {
	.hosts = 3, .pages = 12, .vcpus = 2, .frames = 64, .wide = 1, .credits = 64,
	.answer_ms = 100,
};

/* All that is due on a host in the next @ms, as a loop would do it. */
static void pass(unsigned int host, unsigned int ms)
{
	uint64_t end = clock_ns + ms * MS, next;

	while ((next = dsm_engine_next(node[host].engine)) <= end) {
		clock_ns = next > clock_ns ? next : clock_ns;
		dsm_engine_tick(node[host].engine);
	}
	clock_ns = end;
}

/* Lives, says the transport, and does not answer. */
static void no_answer(const void *argument)
{
	struct dsm_msg put = { .type = DSM_PUTS, .epoch = 7, .gfn = 0 };

	(void)argument;
	dice_begin();
	/* A recall of a page that is modified there: the home waits. */
	world_begin(&strict);
	use(1, 0, 0, DSM_XEN_WANT_M);
	use(1, 0, 1, DSM_XEN_WANT_M);
	clock_ns += 30 * MS;
	settle_down();
	deaf[1] = true;
	played_use(&node[0].xen, 0, 0, DSM_XEN_WANT_S, 900);
	dsm_engine_misses(node[0].engine);
	dsm_engine_run(node[0].engine);
	pass(0, 99);
	CHECK(!dsm_engine_failure(node[0].engine), "too early: %s", node[0].failure);
	pass(0, 1);
	expect_failure(0, "host beta is lost (it does not answer a recall of gfn 0x0 for 100 ms): 2 pages "
		       "of alpha were modified there; of its own 4 pages 0 are here");
	world_end();

	/* Of two that have copies one answers: the other one has its time from there on. */
	world_begin(&strict);
	use(1, 0, 0, DSM_XEN_WANT_S);
	use(2, 0, 0, DSM_XEN_WANT_S);
	clock_ns += 30 * MS;
	settle_down();
	played_use(&node[0].xen, 0, 0, DSM_XEN_WANT_M, 901);
	dsm_engine_misses(node[0].engine);
	dsm_engine_run(node[0].engine);
	pass(0, 60);
	deliver(0, 1);
	dsm_engine_run(node[1].engine);
	CHECK(deliver(1, 0), "gamma stands still, beta answers");
	pass(0, 99);
	CHECK(!dsm_engine_failure(node[0].engine), "too early: %s", node[0].failure);
	pass(0, 1);
	expect_failure(0, "host gamma is lost (it does not answer a recall of gfn 0x0 for 100 ms): 0 pages");
	world_end();

	/* What is no answer does not help: a copy of another page is given up. */
	world_begin(&strict);
	use(1, 0, 0, DSM_XEN_WANT_M);
	use(1, 0, 1, DSM_XEN_WANT_S);
	clock_ns += 30 * MS;
	settle_down();
	deaf[1] = true;
	played_use(&node[0].xen, 0, 0, DSM_XEN_WANT_S, 902);
	dsm_engine_misses(node[0].engine);
	dsm_engine_run(node[0].engine);
	pass(0, 60);
	put.gfn = 1;
	dsm_engine_message(node[0].engine, 1, &put, NULL);
	put = (struct dsm_msg){ .type = DSM_GETS, .flags = DSM_F_PREFETCH, .epoch = 7, .gfn = 2 };
	dsm_engine_message(node[0].engine, 1, &put, NULL);
	dsm_engine_run(node[0].engine);
	pass(0, 40);
	expect_failure(0, "host beta is lost (it does not answer a recall of gfn 0x0 for 100 ms): 1 pages");
	world_end();
}

/* A home may be waiting itself: it has twice the time. */
static void no_answer_of_a_home(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&strict);
	deaf[0] = true;
	played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 903);
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	pass(1, 199);
	CHECK(!dsm_engine_failure(node[1].engine), "too early: %s", node[1].failure);
	pass(1, 1);
	expect_failure(1, "host alpha is lost (it does not answer GETS of gfn 0x0 for 200 ms): 0 pages of beta");
	world_end();

	world_begin(&strict);
	use(1, 0, 0, DSM_XEN_WANT_M);
	clock_ns += 30 * MS;
	settle_down();
	deaf[0] = true;
	dsm_engine_drain(node[1].engine);
	dsm_engine_run(node[1].engine);
	pass(1, 199);
	CHECK(!dsm_engine_failure(node[1].engine), "too early: %s", node[1].failure);
	pass(1, 1);
	expect_failure(1, "host alpha is lost (it does not answer PUTM of gfn 0x0 for 200 ms)");
	world_end();

	/* Without a limit, and with one and nothing asked. */
	world_begin(&calm);
	deaf[0] = true;
	played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 904);
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	pass(1, 100000);
	CHECK(!dsm_engine_failure(node[1].engine), "%s", node[1].failure);
	world_end();
	world_begin(&strict);
	use(1, 0, 0, DSM_XEN_WANT_M);
	pass(1, 100000);
	pass(0, 100000);
	CHECK(!dsm_engine_failure(node[0].engine) && !dsm_engine_failure(node[1].engine), "%s%s",
	      node[0].failure, node[1].failure);
	world_end();
}

/* Who has the token and never gives it back, while somebody waits for it; and who never gives it. */
static void no_answer_about_the_token(const void *argument)
{
	struct dsm_msg request = { .type = DSM_TOKEN_REQ, .epoch = 7 };
	struct features features = strict;
	struct dsm_engine_params p;
	char text[DSM_ENGINE_TEXT];
	unsigned int host;

	(void)argument;
	dice_begin();
	world_begin(&strict);
	dsm_engine_message(node[0].engine, 1, &request, NULL);
	pass(0, 1000);
	CHECK(!dsm_engine_failure(node[0].engine), "nobody else wants it: %s", node[0].failure);
	dsm_engine_message(node[0].engine, 2, &request, NULL);
	dsm_engine_run(node[0].engine);
	pass(0, 199);
	CHECK(!dsm_engine_failure(node[0].engine), "too early: %s", node[0].failure);
	pass(0, 1);
	expect_failure(0, "host beta is lost (it keeps the progress token for 200 ms): 0 pages");
	world_end();

	/* The second one has its time, too. */
	features.hosts = 4;
	world_begin(&features);
	dsm_engine_message(node[0].engine, 1, &request, NULL);
	dsm_engine_message(node[0].engine, 2, &request, NULL);
	dsm_engine_run(node[0].engine);
	pass(0, 150);
	dsm_engine_message(node[0].engine, 3, &request, NULL);
	request.type = DSM_TOKEN_FREE;
	dsm_engine_message(node[0].engine, 1, &request, NULL);
	dsm_engine_run(node[0].engine);
	pass(0, 199);
	CHECK(!dsm_engine_failure(node[0].engine), "too early: %s", node[0].failure);
	pass(0, 1);
	expect_failure(0, "host gamma is lost (it keeps the progress token for 200 ms): 0 pages");
	world_end();

	/* One more that wants it gives nobody more time. */
	world_begin(&features);
	request.type = DSM_TOKEN_REQ;
	for (host = 1; host < 4; host++) {
		dsm_engine_message(node[0].engine, host, &request, NULL);
		dsm_engine_run(node[0].engine);
		if (host == 2)
			pass(0, 150);
	}
	pass(0, 50);
	expect_failure(0, "host beta is lost (it keeps the progress token for 200 ms): 0 pages");
	world_end();

	/* Its home: the others may each have it before us. */
	world_begin(&strict);
	p = params_of(&node[1]);
	p.max_losses = 1;
	dsm_engine_destroy(node[1].engine);
	CHECK(!dsm_engine_create(&p, &node[1].engine, text), "%s", text);
	dsm_engine_peer_up(node[1].engine, 0, 7);
	dsm_engine_peer_up(node[1].engine, 2, 7);
	use_and_lose(1, 0);
	deaf[0] = true;
	played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_M, 4711);
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(STAILQ_FIRST(&channel[1][0])->msg.type == DSM_TOKEN_REQ, "it asks");
	pass(1, 599);
	CHECK(!dsm_engine_failure(node[1].engine), "too early: %s", node[1].failure);
	pass(1, 1);
	expect_failure(1, "host alpha is lost (it does not give the progress token for 600 ms): 0 pages of beta");
	world_end();
}

/* The quick question has the answer of the slow one. */
static void shares(void)
{
	unsigned int h, i;

	for (h = 0; h < 3; h++)
		for (i = 0; i < 3; i++)
			CHECK(h == i || dsm_engine_shares_with(node[h].engine, i) ==
			      !!dsm_engine_shared_with(node[h].engine, i), "%u with %u", h, i);
}

/* What of a range is where, and what a host shares with another. */
static void where_pages_are(const void *argument)
{
	const struct dsm_engine_range *range;
	struct dsm_engine_counts counts;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	use(1, 0, 0, DSM_XEN_WANT_M);
	use(1, 0, 1, DSM_XEN_WANT_M);
	use(2, 0, 2, DSM_XEN_WANT_S);
	use(0, 0, 5, DSM_XEN_WANT_M);
	range = dsm_engine_range(node[0].engine, 0);
	CHECK(range->open == 4 && range->moved == 2 && range->shared == 1, "%llu %u %u",
	      (unsigned long long)range->open, range->moved, range->shared);
	range = dsm_engine_range(node[0].engine, 1);
	CHECK(range->moved == 1 && !range->shared, "of beta: %u %u", range->moved, range->shared);
	range = dsm_engine_range(node[1].engine, 0);
	CHECK(range->moved == 2 && !range->shared, "at beta: %u %u", range->moved, range->shared);
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(counts.elsewhere == 2, "%llu elsewhere", (unsigned long long)counts.elsewhere);
	shares();
	CHECK(dsm_engine_shared_with(node[0].engine, 1) == 3 &&
	      dsm_engine_shared_with(node[0].engine, 2) == 1 &&
	      dsm_engine_shared_with(node[1].engine, 0) == 3, "shared");
	/* Asked for, and not there yet. */
	node[0].xen.page[3].pinned = true;
	played_use(&node[2].xen, 0, 3, DSM_XEN_WANT_M, 81);
	dsm_engine_misses(node[2].engine);
	dsm_engine_run(node[2].engine);
	CHECK(deliver(2, 0), "a request");
	CHECK(dsm_engine_shared_with(node[0].engine, 2) == 2, "%llu",
	      (unsigned long long)dsm_engine_shared_with(node[0].engine, 2));
	shares();
	node[0].xen.page[3].pinned = false;
	settle_down();
	/* One after the other comes home: what was found before is not there any more. */
	use(0, 0, 0, DSM_XEN_WANT_M);
	shares();
	use(0, 0, 1, DSM_XEN_WANT_M);
	shares();
	use(1, 0, 5, DSM_XEN_WANT_M);
	shares();
	use(0, 0, 2, DSM_XEN_WANT_M);
	use(0, 0, 3, DSM_XEN_WANT_M);
	shares();
	CHECK(!dsm_engine_shares_with(node[0].engine, 1) && !dsm_engine_shares_with(node[0].engine, 2),
	      "all is home");
	world_end();
}

/* A range that closes: who misses it waits for the end, and what is under way counts. */
static void range_closes(const void *argument)
{
	const struct dsm_engine_range *range;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	range = dsm_engine_range(node[1].engine, 0);
	use(1, 0, 0, DSM_XEN_WANT_M);
	use(1, 0, 2, DSM_XEN_WANT_M);
	use(1, 1, 3, DSM_XEN_WANT_M);
	CHECK(!range->left, "%u are open", range->left);
	node[1].xen.page[3].pinned = true;
	dsm_engine_open_range(node[1].engine, 0, 2);
	CHECK(range->left == 2, "%u behind the end", range->left);
	settle_down();
	clock_ns += 1500 * MS;
	settle_down();
	CHECK(range->left == 1 && node[0].xen.page[2].state == DSM_XEN_STATE_M,
	      "%u behind the end", range->left);
	/* Who misses a page there waits, until it is a hole; what is open comes. */
	CHECK(played_use(&node[1].xen, 0, 2, DSM_XEN_WANT_S, 91) == PLAYED_MISS, "a miss");
	settle_down();
	CHECK(node[1].xen.vcpu[0].waits, "it waits for the end");
	use(1, 1, 1, DSM_XEN_WANT_S);
	CHECK(!node[1].xen.vcpu[1].waits, "that is open still");
	/* It does not end; a second attempt finds what the first one left. */
	dsm_engine_evacuate(node[1].engine, 0, 0);
	node[1].xen.page[3].pinned = false;
	settle_down();
	CHECK(range->left == 1, "nobody evacuates");
	dsm_engine_open_range(node[1].engine, 0, 2);
	settle_down();
	clock_ns += 1500 * MS;
	settle_down();
	CHECK(!range->left && node[0].xen.page[3].state == DSM_XEN_STATE_M, "%u behind the end",
	      range->left);
	dsm_engine_range_done(node[1].engine, 0);
	settle_down();
	CHECK(!node[1].xen.vcpu[0].waits, "it waits for ever");
	/* At its home a vCPU has the page for as long as there is one. */
	dsm_engine_open_range(node[0].engine, 0, 0);
	dsm_engine_evacuate(node[0].engine, 0, 0);
	CHECK(played_use(&node[0].xen, 0, 0, DSM_XEN_WANT_S, 92) == PLAYED_MISS, "a miss");
	settle_down();
	CHECK(!node[0].xen.vcpu[0].waits, "the home waits for its own page");
	world_end();

	/* Of a hole that was shown nothing is known afterwards. */
	world_begin(&calm);
	range = dsm_engine_range(node[1].engine, 0);
	node[0].xen.page[2].state = DSM_XEN_STATE_HOLE;
	played_use(&node[1].xen, 0, 2, DSM_XEN_WANT_M, 93);
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	deliver(1, 0);
	dsm_engine_run(node[0].engine);
	deliver(0, 1);
	CHECK(node[1].xen.vcpu[0].at_hole && node[1].xen.page[2].state == DSM_XEN_STATE_I, "a hole is shown");
	dsm_engine_open_range(node[1].engine, 0, 0);
	CHECK(!range->left, "%u behind the end", range->left);
	world_end();
}

/* A host without a home of its own that has given all back may go. */
static void host_leaves(const void *argument)
{
	struct features features = calm;
	struct dsm_engine_params p;
	char text[DSM_ENGINE_TEXT];
	unsigned int h;

	(void)argument;
	dice_begin();
	features.pages = 12;
	world_begin(&features);
	for (h = 0; h < 3; h++) {
		p = params_of(&node[h]);
		p.range[0].end = 6;
		p.range[1] = (struct dsm_range){ 6, 12, 1 };
		p.nr_ranges = 2;
		dsm_engine_destroy(node[h].engine);
		CHECK(!dsm_engine_create(&p, &node[h].engine, text), "%s", text);
		dsm_engine_peer_up(node[h].engine, (h + 1) % 3, 9);
		dsm_engine_peer_up(node[h].engine, (h + 2) % 3, 9);
	}
	for (h = 0; h < 12; h++)
		for (unsigned int i = 0; i < 3; i++) {
			node[i].xen.page[h].elsewhere = (h < 6 ? 0u : 1u) != i;
			node[i].xen.page[h].state = (h < 6 ? 0u : 1u) == i ?
				DSM_XEN_STATE_M : DSM_XEN_STATE_I;
		}
	use(2, 0, 0, DSM_XEN_WANT_M);
	use(2, 1, 7, DSM_XEN_WANT_S);
	dsm_engine_drain(node[2].engine);
	settle_down();
	CHECK(!dsm_engine_guests(node[2].engine), "pages stay");
	dsm_engine_peer_lost(node[0].engine, 2, 1);
	dsm_engine_bind(node[0].engine, 2, false);
	dsm_engine_bind(node[2].engine, 0, false);
	dsm_engine_peer_down(node[0].engine, 2, true, "closed");
	dsm_engine_peer_down(node[1].engine, 2, true, "closed");
	CHECK(!dsm_engine_failure(node[0].engine) && !dsm_engine_failure(node[1].engine),
	      "the VM goes on");
	use(0, 0, 7, DSM_XEN_WANT_M);
	CHECK(node[0].xen.page[7].state == DSM_XEN_STATE_M, "and works");
	/* What it has said before it came back is forgotten. */
	dsm_engine_peer_down(node[2].engine, 0, true, "closed");
	CHECK(!dsm_engine_peer_up(node[0].engine, 2, 10) && !dsm_engine_peer_up(node[2].engine, 0, 10), "up");
	dsm_engine_bind(node[0].engine, 2, true);
	dsm_engine_peer_down(node[0].engine, 2, false, "cut off");
	expect_failure(0, "host gamma is lost (cut off): 0 pages of alpha");
	CHECK(!strstr(node[0].failure, "; host "), "%s", node[0].failure);
	world_end();
}

/* What a host that went has not given up is nobody's any more. */
static void host_leaves_copies(const void *argument)
{
	struct dsm_engine_params p;
	char text[DSM_ENGINE_TEXT];

	(void)argument;
	dice_begin();
	world_begin(&calm);
	p = params_of(&node[0]);
	p.nr_ranges = 2;
	dsm_engine_destroy(node[0].engine);
	CHECK(!dsm_engine_create(&p, &node[0].engine, text), "%s", text);
	dsm_engine_peer_up(node[0].engine, 1, 7);
	dsm_engine_peer_up(node[0].engine, 2, 7);
	use(2, 0, 0, DSM_XEN_WANT_S);
	dsm_engine_peer_down(node[0].engine, 2, true, "closed");
	deaf[2] = true;
	use(0, 0, 0, DSM_XEN_WANT_M);
	CHECK(node[0].xen.page[0].state == DSM_XEN_STATE_M && !node[0].xen.vcpu[0].waits,
	      "it waits for a host that is gone");
	world_end();
}

/* Who has lost too many pages says nothing of its next miss before it has the token. */
static void token_first(const void *argument)
{
	struct dsm_engine_params p;
	char text[DSM_ENGINE_TEXT];
	unsigned int i;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	p = params_of(&node[1]);
	p.max_losses = 1;
	dsm_engine_destroy(node[1].engine);
	CHECK(!dsm_engine_create(&p, &node[1].engine, text), "%s", text);
	dsm_engine_peer_up(node[1].engine, 0, 7);
	dsm_engine_peer_up(node[1].engine, 2, 7);
	for (i = 0; i < 2; i++) {
		CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_M, 4711) == PLAYED_MISS, "a miss");
		if (i)
			break;
		while (node[1].xen.page[0].state != DSM_XEN_STATE_M) {
			dsm_engine_misses(node[1].engine);
			dsm_engine_run(node[1].engine);
			deliver(1, 0);
			dsm_engine_run(node[0].engine);
			deliver(0, 1);
			dsm_engine_run(node[1].engine);
		}
		/* Its lease ends, and it goes, before an instruction was seen. */
		clock_ns += 2 * MS;
		dsm_engine_tick(node[1].engine);
		CHECK(played_use(&node[0].xen, 0, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "a miss");
		dsm_engine_misses(node[0].engine);
		dsm_engine_run(node[0].engine);
		while (deliver(0, 1))
			dsm_engine_run(node[1].engine);
		while (deliver(1, 0))
			dsm_engine_run(node[0].engine);
		CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_S, "a loss");
	}
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(in_channel[1][0] == 1 &&
	      STAILQ_FIRST(&channel[1][0])->msg.type == DSM_TOKEN_REQ, "%u messages, first %s",
	      in_channel[1][0], dsm_type_name(STAILQ_FIRST(&channel[1][0])->msg.type));
	settle_down();
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_M && !node[1].xen.vcpu[0].waits, "it comes");
	world_end();
}

/* Host 1 misses pages 0 and 1, with a credit for one of them: each part of the time takes its own. */
static void phases(const void *argument)
{
	struct features features = calm;
	struct dsm_engine_counts asks, serves;

	(void)argument;
	dice_begin();
	features.credits = 1;
	world_begin(&features);
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS &&
	      played_use(&node[1].xen, 1, 1, DSM_XEN_WANT_M, 2) == PLAYED_MISS, "misses");
	dsm_engine_misses(node[1].engine);
	clock_ns += 3 * US;
	dsm_engine_run(node[1].engine);
	clock_ns += 10 * US;
	CHECK(deliver(1, 0) && !deliver(1, 0), "one request");
	clock_ns += 20 * US;
	dsm_engine_run(node[0].engine);
	clock_ns += 40 * US;
	CHECK(deliver(0, 1), "no answer");
	clock_ns += 5 * US;
	dsm_engine_run(node[1].engine);
	CHECK(!node[1].xen.vcpu[0].waits && node[1].xen.vcpu[1].waits, "one waits");
	dsm_engine_get_counts(node[1].engine, &asks);
	dsm_engine_get_counts(node[0].engine, &serves);
	CHECK(serves.serve.count == 1 && serves.serve.sum == 20 * US, "serve: %llu in %llu ns",
	      (unsigned long long)serves.serve.count, (unsigned long long)serves.serve.sum);
	CHECK(asks.wire.count == 1 && asks.wire.sum == 70 * US, "wire: %llu in %llu ns",
	      (unsigned long long)asks.wire.count, (unsigned long long)asks.wire.sum);
	CHECK(asks.install.count == 1 && asks.install.sum == 5 * US, "install: %llu in %llu ns",
	      (unsigned long long)asks.install.count, (unsigned long long)asks.install.sum);
	CHECK(asks.read_fault.sum == 78 * US, "all: %llu ns", (unsigned long long)asks.read_fault.sum);
	/* The other one has waited for a credit. */
	CHECK(asks.queue.count == 2 && asks.queue.sum == 3 * US + 78 * US, "queue: %llu in %llu ns",
	      (unsigned long long)asks.queue.count, (unsigned long long)asks.queue.sum);
	CHECK(!asks.serve.count && !serves.wire.count && !serves.queue.count &&
	      !serves.install.count, "who asks and who serves");
	settle_down();
	dsm_engine_get_counts(node[1].engine, &asks);
	CHECK(asks.wire.count == 2 && asks.install.count == 2, "two faults");
	world_end();
}

/*
 * Two requests that are read in one turn, and two answers, with other work before each: that is
 * of the way of a message, and of nothing that is done with it.
 */
static void phases_of_a_turn(const void *argument)
{
	struct features features = calm;
	struct dsm_engine_counts asks, serves;

	(void)argument;
	dice_begin();
	features.credits = 16;
	world_begin(&features);
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS &&
	      played_use(&node[1].xen, 1, 1, DSM_XEN_WANT_M, 2) == PLAYED_MISS, "misses");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	clock_ns += 100 * US;
	CHECK(deliver(1, 0), "a request");
	clock_ns += 20 * US;
	CHECK(deliver(1, 0) && !deliver(1, 0), "two requests");
	clock_ns += 7 * US;
	dsm_engine_run(node[0].engine);
	dsm_engine_get_counts(node[0].engine, &serves);
	CHECK(serves.serve.count == 2 && serves.serve.sum == (27 + 7) * US, "serve: %llu in %llu ns",
	      (unsigned long long)serves.serve.count, (unsigned long long)serves.serve.sum);
	clock_ns += 40 * US;
	CHECK(deliver(0, 1), "an answer");
	clock_ns += 9 * US;
	CHECK(deliver(0, 1) && !deliver(0, 1), "two answers");
	clock_ns += 5 * US;
	dsm_engine_run(node[1].engine);
	dsm_engine_get_counts(node[1].engine, &asks);
	CHECK(asks.wire.count == 2 && asks.wire.sum == (167 + 176) * US, "wire: %llu in %llu ns",
	      (unsigned long long)asks.wire.count, (unsigned long long)asks.wire.sum);
	CHECK(asks.install.count == 2 && asks.install.sum == (14 + 5) * US, "install: %llu in %llu ns",
	      (unsigned long long)asks.install.count, (unsigned long long)asks.install.sum);
	CHECK(asks.read_fault.sum + asks.write_fault.sum == 2 * 181 * US, "all: %llu ns",
	      (unsigned long long)(asks.read_fault.sum + asks.write_fault.sum));
	/* What is there to be read is asked for again, to be written: from then on. */
	settle_down();
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_M, 3) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	clock_ns += 100 * US;
	CHECK(deliver(1, 0), "a request");
	clock_ns += 7 * US;
	settle_down();
	dsm_engine_get_counts(node[0].engine, &serves);
	dsm_engine_get_counts(node[1].engine, &asks);
	CHECK(serves.serve.count == 3 && serves.serve.sum == (34 + 7) * US, "serve again: %llu in %llu ns",
	      (unsigned long long)serves.serve.count, (unsigned long long)serves.serve.sum);
	CHECK(asks.wire.count == 3 && asks.wire.sum == (343 + 107) * US, "wire again: %llu in %llu ns",
	      (unsigned long long)asks.wire.count, (unsigned long long)asks.wire.sum);
	world_end();
}

/* Leases of pages that nobody asks for cost no wake-up each; somebody who asks waits no longer for that. */
static void leases_together(const void *argument)
{
	uint64_t woken, next;
	unsigned int i;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	dsm_engine_tick(node[1].engine);	/* a sign of life */
	for (i = 0; i < 2; i++) {
		CHECK(played_use(&node[1].xen, i, i, DSM_XEN_WANT_M, 1) == PLAYED_MISS, "a miss");
		dsm_engine_misses(node[1].engine);
		dsm_engine_run(node[1].engine);
		clock_ns += 30 * US;
		deliver(1, 0);
		dsm_engine_run(node[0].engine);
		deliver(0, 1);
		woken = clock_ns;
		dsm_engine_run(node[1].engine);
		CHECK(!node[1].xen.vcpu[i].waits, "it waits");
	}
	next = dsm_engine_next(node[1].engine);
	CHECK(next > woken + 300 * US && next <= woken + 33 * MS && !(next % (32 * MS)),
	      "%llu ns after the second page, at %llu", (unsigned long long)(next - woken),
	      (unsigned long long)next);
	/* Somebody asks within the time of the second: its end is waited for, and not longer. */
	for (i = 2; i-- > 0;) {
		CHECK(played_use(&node[0].xen, i, i, DSM_XEN_WANT_M, 1) == PLAYED_MISS, "a miss");
		dsm_engine_misses(node[0].engine);
		dsm_engine_run(node[0].engine);
		deliver(0, 1);
		dsm_engine_run(node[1].engine);
		if (!i)
			break;
		CHECK(node[1].xen.page[1].state == DSM_XEN_STATE_M, "leased");
		next = dsm_engine_next(node[1].engine);
		/* By dice, from a half to one and a half of what is configured. */
		CHECK(next >= woken + 100 * US && next <= woken + 300 * US,
		      "due %llu ns after it came", (unsigned long long)(next - woken));
		clock_ns = next;
		dsm_engine_tick(node[1].engine);
		dsm_engine_run(node[1].engine);
		CHECK(node[1].xen.page[1].state == DSM_XEN_STATE_I, "it went");
		clock_ns = woken + 300 * US;
	}
	/* The first one's lease was over, and nobody had looked. */
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_I, "it waits for a clock");
	settle_down();
	CHECK(!node[0].xen.vcpu[0].waits && !node[0].xen.vcpu[1].waits, "they wait");
	world_end();
}

/* So it is where the page has its home: who asks is in no recall there. */
static void lease_at_home(const void *argument)
{
	uint64_t woken, next;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	use(1, 0, 0, DSM_XEN_WANT_M);
	CHECK(played_use(&node[0].xen, 0, 0, DSM_XEN_WANT_M, 1) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[0].engine);
	dsm_engine_run(node[0].engine);
	deliver(0, 1);
	dsm_engine_run(node[1].engine);
	CHECK(deliver(1, 0), "its bytes");
	woken = clock_ns;
	dsm_engine_run(node[0].engine);
	CHECK(!node[0].xen.vcpu[0].waits, "it came");
	CHECK(played_use(&node[2].xen, 0, 0, DSM_XEN_WANT_M, 2) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[2].engine);
	dsm_engine_run(node[2].engine);
	CHECK(deliver(2, 0), "a request");
	dsm_engine_run(node[0].engine);
	CHECK(node[0].xen.page[0].state == DSM_XEN_STATE_M, "leased");
	next = dsm_engine_next(node[0].engine);
	CHECK(next >= woken + 100 * US && next <= woken + 300 * US,
	      "due %llu ns after it came", (unsigned long long)(next - woken));
	clock_ns = next;
	dsm_engine_tick(node[0].engine);
	CHECK(node[0].xen.page[0].state == DSM_XEN_STATE_I, "it went");
	settle_down();
	CHECK(node[2].xen.page[0].state == DSM_XEN_STATE_M, "to who asked");
	world_end();
}

/* A miss that was in the ring when a hole is shown may be later than what the home has said. */
static void page_in_a_hole(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&calm);
	CHECK(played_guest_frees(&node[0].xen, 0), "a hole");
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	deliver(1, 0);
	dsm_engine_run(node[0].engine);
	/* "There is none" is on its way; then there is, and another vCPU hears of it. */
	CHECK(played_guest_populates(&node[0].xen, 0), "memory");
	CHECK(played_use(&node[1].xen, 1, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "another");
	deliver(0, 1);
	dsm_engine_run(node[1].engine);
	CHECK(node[1].xen.vcpu[0].at_hole && !node[1].xen.vcpu[0].waits, "who asked finds none");
	CHECK(!node[1].xen.vcpu[1].at_hole && node[1].xen.vcpu[1].waits, "who asked later waits");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	while (deliver(1, 0)) {
		dsm_engine_run(node[0].engine);
		deliver(0, 1);
		dsm_engine_run(node[1].engine);
	}
	check_rules();
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_S, "it comes: %u", node[1].xen.page[0].state);
	CHECK(!node[1].xen.vcpu[0].at_hole, "for all");
	world_end();
}

/* Misses that wait in line, as there is no room for a request, were not asked for. */
static void hole_in_line(const void *argument)
{
	struct features features = calm;

	(void)argument;
	dice_begin();
	features.credits = 8;
	world_begin(&features);
	CHECK(played_guest_frees(&node[0].xen, 0), "a hole");
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	deliver(1, 0);
	dsm_engine_run(node[0].engine);
	CHECK(played_use(&node[1].xen, 1, 0, DSM_XEN_WANT_S, 2) == PLAYED_MISS, "another");
	played_use(&node[1].xen, NO_VCPU, 0, DSM_XEN_WANT_S, 0);
	/* It has been read, and nobody was told of it yet. */
	dsm_engine_misses(node[1].engine);
	deliver(0, 1);
	CHECK(node[1].xen.vcpu[0].at_hole, "who asked finds none");
	CHECK(!node[1].xen.vcpu[1].at_hole && node[1].xen.vcpu[1].waits, "who is in line waits");
	CHECK(!node[1].xen.page[0].foreign_hole, "and so does another domain");
	settle_down();
	CHECK(node[1].xen.vcpu[1].at_hole && !node[1].xen.vcpu[1].waits, "then he finds none, too");
	CHECK(node[1].xen.page[0].foreign_hole, "and another domain");
	check_rules();
	world_end();
}

/*
 * A home that takes longer to answer than Xen waits before it reports the miss of another
 * domain once more: that is no new miss, and who waits is told all the same.
 */
static void hole_of_a_slow_home(const void *argument)
{
	unsigned int want = argument ? DSM_XEN_WANT_M : DSM_XEN_WANT_S, i;
	struct dsm_engine_counts counts;

	dice_begin();
	world_begin(&calm);
	CHECK(played_guest_frees(&node[0].xen, 0), "a hole");
	/* A vCPU asks first; who comes while that is under way is told of what is asked next. */
	CHECK(played_use(&node[1].xen, 0, 0, want, 1) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	for (i = 0; i < 3; i++) {
		CHECK(node[1].xen.vcpu[0].waits && !node[1].xen.page[0].foreign_hole, "answer %u", i);
		if (i == 1)
			CHECK(played_use(&node[1].xen, 1, 0, want, 2) == PLAYED_MISS, "another");
		deliver(1, 0);
		dsm_engine_run(node[0].engine);
		/* "There is none" is on its way each time that it is reported again. */
		played_use(&node[1].xen, NO_VCPU, 0, want, 0);
		dsm_engine_misses(node[1].engine);
		dsm_engine_run(node[1].engine);
		deliver(0, 1);
		dsm_engine_run(node[1].engine);
	}
	for (i = 0; i < 2; i++)
		CHECK(node[1].xen.vcpu[i].at_hole && !node[1].xen.vcpu[i].waits, "vCPU %u finds none", i);
	CHECK(node[1].xen.page[0].foreign_hole, "nor does another domain");
	CHECK(!deliver(1, 0), "nothing is asked for");

	/* The next one asks anew, and so does who wants more. */
	CHECK(played_use(&node[1].xen, NO_VCPU, 0, DSM_XEN_WANT_S, 0) == PLAYED_HOLE, "it finds none");
	CHECK(played_guest_populates(&node[0].xen, 0), "memory");
	for (i = 0; i < 2; i++) {
		played_use(&node[1].xen, NO_VCPU, 0, i ? DSM_XEN_WANT_M : DSM_XEN_WANT_S, 0);
		dsm_engine_misses(node[1].engine);
		dsm_engine_run(node[1].engine);
	}
	settle_down();
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_S, "it comes: %u", node[1].xen.page[0].state);
	CHECK(played_use(&node[1].xen, NO_VCPU, 0, DSM_XEN_WANT_M, 0) == PLAYED_MISS, "to write");
	settle_down();
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_M, "it comes: %u", node[1].xen.page[0].state);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.foreign_faults == 6, "%llu misses", (unsigned long long)counts.foreign_faults);
	check_rules();
	world_end();
}

/*
 * Who was woken may take an interrupt before he comes to the page again, hear there that
 * there is memory, and miss it: what the home says then is about his first miss.
 */
static void hole_for_an_old_miss(const void *argument)
{
	struct dsm_xen *xen = &node[1].xen.xen;
	struct dsm_xen_op wake = { .type = DSM_XEN_WAKE };

	(void)argument;
	dice_begin();
	world_begin(&calm);
	CHECK(played_guest_frees(&node[0].xen, 0), "a hole");
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "a miss");
	CHECK(!xen->calls->page(xen, &wake, 1) && !node[1].xen.vcpu[0].waits, "it is woken");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	deliver(1, 0);
	dsm_engine_run(node[0].engine);
	CHECK(played_guest_populates(&node[0].xen, 0), "memory");
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 2) == PLAYED_MISS, "another miss");
	deliver(0, 1);
	dsm_engine_run(node[1].engine);
	CHECK(!node[1].xen.vcpu[0].at_hole && node[1].xen.vcpu[0].waits, "it finds no hole");
	settle_down();
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_S, "it comes: %u", node[1].xen.page[0].state);
	check_rules();
	world_end();
}

/* Host 1's vCPU misses page 0, and its home says that there is no memory. */
static void meet_hole(unsigned int vcpu, uint64_t rip)
{
	CHECK(played_use(&node[1].xen, vcpu, 0, DSM_XEN_WANT_S, rip) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	/* Who came second has it asked for once more. */
	while (deliver(1, 0)) {
		dsm_engine_run(node[0].engine);
		deliver(0, 1);
		dsm_engine_run(node[1].engine);
	}
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_I, "the page is asked for as before");
	CHECK(!node[1].xen.vcpu[vcpu].waits, "it runs");
	CHECK(played_use(&node[1].xen, vcpu, 0, DSM_XEN_WANT_S, rip) == PLAYED_HOLE, "a hole is shown");
}

/* A hole is for the access that asked: nobody else finds it, however long that takes. */
static void hole_for_one(const void *argument)
{
	struct dsm_engine_counts counts;
	unsigned int i;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	CHECK(played_guest_frees(&node[0].xen, 0), "a hole");
	CHECK(played_guest_frees(&node[home_of(3)].xen, 3), "a hole");
	/* It comes again and again, from the same place. */
	for (i = 0; i < 5; i++) {
		meet_hole(0, 4711);
		clock_ns += 1000 * MS;
		dsm_engine_tick(node[1].engine);
		CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 4711) == PLAYED_HOLE, "it has not run yet");
		played_goes_on(&node[1].xen, 0);
	}
	meet_hole(0, 4712);
	/* Its instruction needs another page, too. */
	CHECK(played_use(&node[1].xen, 0, 1, DSM_XEN_WANT_S, 4712) == PLAYED_MISS, "a miss");
	settle_down();
	CHECK(played_use(&node[1].xen, 0, 1, DSM_XEN_WANT_S, 4712) == PLAYED_DONE &&
	      played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 4712) == PLAYED_HOLE, "and finds its hole");
	/* And a third one, which has no memory, either. */
	CHECK(played_use(&node[1].xen, 0, 3, DSM_XEN_WANT_S, 4712) == PLAYED_MISS, "a miss");
	settle_down();
	CHECK(played_use(&node[1].xen, 0, 3, DSM_XEN_WANT_S, 4712) == PLAYED_HOLE &&
	      played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 4712) == PLAYED_HOLE, "and finds both");
	/* Two that wait together; one of them goes on. */
	CHECK(played_use(&node[1].xen, 1, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "a miss");
	meet_hole(0, 4713);
	CHECK(played_use(&node[1].xen, 0, 2, DSM_XEN_WANT_S, 4714) == PLAYED_MISS, "a miss");
	CHECK(played_use(&node[1].xen, 1, 0, DSM_XEN_WANT_S, 1) == PLAYED_HOLE, "the other one");
	settle_down();
	/* Another domain. */
	played_use(&node[1].xen, NO_VCPU, 0, DSM_XEN_WANT_S, 0);
	settle_down();
	CHECK(played_use(&node[1].xen, NO_VCPU, 0, DSM_XEN_WANT_S, 0) == PLAYED_HOLE, "it finds none");
	meet_hole(0, 4715);
	CHECK(!node[1].xen.page[0].foreign_hole, "once");
	/* One that waits for another page, whose home says so later. */
	CHECK(played_guest_frees(&node[2].xen, 9), "a hole");
	CHECK(played_use(&node[1].xen, 1, 9, DSM_XEN_WANT_S, 2) == PLAYED_MISS, "a miss");
	meet_hole(0, 4716);
	CHECK(node[1].xen.vcpu[1].waits, "it waits for another");
	settle_down();
	CHECK(played_use(&node[1].xen, 1, 9, DSM_XEN_WANT_S, 2) == PLAYED_HOLE, "and finds that there is none");
	CHECK(played_guest_populates(&node[0].xen, 0), "memory");
	use(1, 0, 0, DSM_XEN_WANT_M);
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_M, "it comes");
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.holes == 13, "%llu holes", (unsigned long long)counts.holes);
	CHECK(!node[1].failure[0], "%s", node[1].failure);
	check_rules();
	world_end();
}

/* Memory that comes after one access was told that there is none: all others find it. */
static void memory_after_a_hole(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&calm);
	CHECK(played_guest_frees(&node[0].xen, 0), "a hole");
	meet_hole(0, 4711);
	CHECK(played_guest_populates(&node[0].xen, 0), "memory");
	node[0].xen.page[0].word[0] = last[0][0] = 88;
	/* Who was not told: another vCPU, and this one's next instruction. */
	CHECK(played_use(&node[1].xen, 1, 0, DSM_XEN_WANT_S, 4711) == PLAYED_MISS, "another vCPU is told");
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 4712) == PLAYED_MISS, "another RIP finds a hole");
	settle_down();
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_S && node[1].xen.page[0].word[0] == 88,
	      "it comes: %u", node[1].xen.page[0].state);
	check_rules();
	world_end();
}

/* What Xen says to it: the page's range may have gone meanwhile; nothing else is expected. */
static void refused_hole(const void *argument)
{
	static const struct {
		uint8_t state;
		int refused;
		unsigned int times;	/* then the VM fails: nobody else is told */
		const char *failure;
	} t[] = {
		{ DSM_XEN_STATE_HOLE, ENOENT, 3, NULL },
		{ DSM_XEN_STATE_OTHER, EINVAL, 1, "Xen does not take gfn 0x0 as a hole: Invalid argument" },
	};
	struct dsm_engine_counts counts;
	unsigned int i;

	(void)argument;
	dice_begin();
	for (i = 0; i < NR(t); i++) {
		world_begin(&calm);
		node[1].xen.must_not_refuse = false;
		CHECK(played_guest_frees(&node[0].xen, 0), "a hole");
		CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "a miss");
		CHECK(played_use(&node[1].xen, 1, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "another");
		played_use(&node[1].xen, NO_VCPU, 0, DSM_XEN_WANT_S, 0);
		dsm_engine_misses(node[1].engine);
		dsm_engine_run(node[1].engine);
		deliver(1, 0);
		dsm_engine_run(node[0].engine);
		/* Who came later has it asked for once more. */
		deliver(0, 1);
		dsm_engine_run(node[1].engine);
		deliver(1, 0);
		dsm_engine_run(node[0].engine);
		node[1].xen.page[0].state = t[i].state;
		deliver(0, 1);
		dsm_engine_run(node[1].engine);
		dsm_engine_get_counts(node[1].engine, &counts);
		CHECK(!counts.holes, "nobody was told of one");
		CHECK(node[1].xen.refused[t[i].refused] == t[i].times, "%u refusals",
		      node[1].xen.refused[t[i].refused]);
		if (t[i].failure)
			expect_failure(1, t[i].failure);
		else
			CHECK(!node[1].failure[0], "%s", node[1].failure);
		world_end();
	}
}

/* Pages come home many at a time, each once, and the requests of others have room. */
static void evacuation(const void *argument)
{
	struct features features = calm;
	struct dsm_engine_counts counts;
	unsigned int rounds = 0, called, most = 0;
	uint64_t gfn;

	(void)argument;
	dice_begin();
	features.hosts = 2;
	features.pages = 320;
	features.frames = 200;
	features.credits = 200;
	world_begin(&features);
	for (gfn = 0; gfn < 150; gfn++) {
		use(1, 0, gfn, gfn % 3 ? DSM_XEN_WANT_M : DSM_XEN_WANT_S);
		if (gfn < 100)
			use(0, 0, 160 + gfn, gfn % 2 ? DSM_XEN_WANT_M : DSM_XEN_WANT_S);
	}
	/* Not more than there is. */
	CHECK(dsm_engine_evacuate(node[0].engine, 5, 4) == -EINVAL, "backwards");
	CHECK(!dsm_engine_is_evacuating(node[0].engine), "none");
	called = node[0].xen.calls;
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, 320), "begin");
	while (dsm_engine_is_evacuating(node[0].engine)) {
		dsm_engine_run(node[0].engine);
		dsm_engine_get_counts(node[0].engine, &counts);
		CHECK(counts.evacuating, "it says so");
		if (most < counts.requests)
			most = counts.requests;
		while (deliver(0, 1))
			;
		dsm_engine_run(node[1].engine);
		while (deliver(1, 0))
			;
		clock_ns += MS;
		dsm_engine_tick(node[0].engine);
		CHECK(rounds++ < 20, "it does not end");
	}
	/* 216 of these pages have an answer to wait for, 64 at a time; then the last pass. */
	CHECK(rounds >= 4 && rounds <= 8, "%u rounds", rounds);
	CHECK(most == 64, "%u at a time", most);
	check_evacuated(0);
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(counts.evacuated == 250 && !counts.evacuating, "%llu",
	      (unsigned long long)counts.evacuated);
	CHECK(node[0].xen.calls - called <= 2 * rounds + 4, "%u calls in %u rounds",
	      node[0].xen.calls - called, rounds);
	/* A part, the rest stays. */
	use(1, 0, 7, DSM_XEN_WANT_M);
	use(1, 0, 9, DSM_XEN_WANT_M);
	CHECK(!dsm_engine_evacuate(node[0].engine, 8, 20), "a part");
	settle_down();
	CHECK(node[0].xen.page[7].state == DSM_XEN_STATE_I && node[0].xen.page[9].state == DSM_XEN_STATE_M,
	      "that part");
	/* A page in use comes when it is not. */
	node[1].xen.page[7].pinned = true;
	CHECK(!dsm_engine_evacuate(node[0].engine, 7, 8), "in use");
	settle_down();
	CHECK(dsm_engine_is_evacuating(node[0].engine), "it waits");
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(counts.evacuated == 251, "%llu: one that did not come is counted",
	      (unsigned long long)counts.evacuated);
	node[1].xen.page[7].pinned = false;
	settle_down();
	CHECK(!dsm_engine_is_evacuating(node[0].engine) &&
	      node[0].xen.page[7].state == DSM_XEN_STATE_M, "it comes");
	/* One that is ended. */
	node[1].xen.page[7].pinned = true;
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, 320) &&
	      !dsm_engine_evacuate(node[0].engine, 0, 0) &&
	      !dsm_engine_is_evacuating(node[0].engine), "ended");
	check_rules();
	world_end();
}

/* One that takes the place of another, while as many pages are on their way as may be. */
static void evacuation_anew(const void *argument)
{
	struct features features = calm;
	struct dsm_engine_counts counts;
	uint64_t gfn;

	(void)argument;
	dice_begin();
	features.hosts = 2;
	features.pages = 320;
	features.frames = 200;
	features.credits = 200;
	world_begin(&features);
	for (gfn = 0; gfn < 100; gfn++)
		use(1, 0, gfn, DSM_XEN_WANT_M);
	clock_ns += 100 * MS;
	settle_down();
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, 100), "begin");
	dsm_engine_run(node[0].engine);
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(counts.requests == 64, "%u at a time", counts.requests);
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, 160), "another");
	dsm_engine_run(node[0].engine);
	settle_down();
	CHECK(!dsm_engine_is_evacuating(node[0].engine), "it does not end");
	check_evacuated(0);
	check_rules();
	world_end();
}

/* What the others have stays there, until it is looked for. */
static void evacuation_of_a_host(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&calm);
	use(1, 0, 0, DSM_XEN_WANT_M);
	use(2, 0, 1, DSM_XEN_WANT_M);
	use(1, 0, 2, DSM_XEN_WANT_S);
	use(2, 0, 2, DSM_XEN_WANT_S);
	use(2, 0, 3, DSM_XEN_WANT_S);
	clock_ns += 100 * MS;
	settle_down();
	CHECK(!dsm_engine_evacuate_of(node[0].engine, dsm_bit(1), 0, now_playing.pages), "begin");
	settle_down();
	CHECK(!dsm_engine_is_evacuating(node[0].engine), "it does not end");
	CHECK(node[0].xen.page[0].state == DSM_XEN_STATE_M && node[0].xen.page[2].state == DSM_XEN_STATE_M,
	      "what beta had is at home");
	CHECK(node[2].xen.page[1].state == DSM_XEN_STATE_M && node[2].xen.page[3].state == DSM_XEN_STATE_S,
	      "what gamma alone has is there");
	/* Of both, and a part. */
	use(1, 0, 0, DSM_XEN_WANT_M);
	CHECK(!dsm_engine_evacuate_of(node[0].engine, dsm_bit(1) | dsm_bit(2), 0, 2), "both");
	settle_down();
	CHECK(node[0].xen.page[0].state == DSM_XEN_STATE_M && node[0].xen.page[1].state == DSM_XEN_STATE_M &&
	      node[2].xen.page[3].state == DSM_XEN_STATE_S, "a part");
	/* From the other end. */
	use(1, 0, 0, DSM_XEN_WANT_S);
	use(1, 0, 8, DSM_XEN_WANT_S);
	CHECK(home_of(0) == 0 && home_of(8) == 2, "homes");
	clock_ns += 100 * MS;
	settle_down();
	CHECK(!dsm_engine_evacuate_of(node[1].engine, dsm_bit(0), 0, now_playing.pages), "begin");
	settle_down();
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_I && node[1].xen.page[8].state == DSM_XEN_STATE_S,
	      "gamma's is not looked for");
	/* Who has asked may have it soon: it is looked for then. */
	use(2, 0, 1, DSM_XEN_WANT_M);
	CHECK(played_use(&node[1].xen, 0, 1, DSM_XEN_WANT_M, 7000) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	while (deliver(1, 0))
		;
	CHECK(!dsm_engine_evacuate_of(node[0].engine, dsm_bit(1), 0, now_playing.pages), "begin");
	settle_down();
	settle_down();
	CHECK(node[0].xen.page[1].state == DSM_XEN_STATE_M && node[2].xen.page[3].state == DSM_XEN_STATE_S,
	      "what has come to beta is at home");
	/* All. */
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, now_playing.pages), "begin");
	settle_down();
	CHECK(node[0].xen.page[3].state == DSM_XEN_STATE_M, "all");
	check_evacuated(0);
	check_rules();
	world_end();
}

/* A large range is gone through in parts, of which the next one is due at once. */
static void evacuation_in_parts(const void *argument)
{
	struct features features = calm;
	unsigned int i;
	uint64_t gfn;

	(void)argument;
	dice_begin();
	features.hosts = 2;
	features.pages = 320;
	features.frames = 200;
	features.credits = 200;
	features.looks = 20;
	world_begin(&features);
	for (gfn = 30; gfn < 60; gfn++)
		use(1, 0, gfn, DSM_XEN_WANT_M);
	clock_ns += 100 * MS;
	settle_down();
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, 100), "begin");
	/* 0 to 19: nothing of it is elsewhere; then 10, 20 and none. */
	for (i = 0; i < 5; i++) {
		static const unsigned int asked[] = { 0, 10, 30, 30, 30 };

		CHECK(dsm_engine_next(node[0].engine) <= clock_ns, "it waits before part %u", i);
		dsm_engine_run(node[0].engine);
		CHECK(in_channel[0][1] == asked[i], "%u recalls after part %u", in_channel[0][1], i);
	}
	settle_down();
	CHECK(!dsm_engine_is_evacuating(node[0].engine), "it does not end");
	check_evacuated(0);
	check_rules();
	world_end();
}

static unsigned int merges(unsigned int host)
{
	struct dsm_engine_counts counts;

	dsm_engine_get_counts(node[host].engine, &counts);
	return (unsigned int)counts.merged;
}

/* What happens by time alone. */
static void wait_ms(unsigned int ms)
{
	for (; ms; ms--) {
		clock_ns += MS;
		dsm_engine_tick(node[0].engine);
		dsm_engine_run(node[0].engine);
	}
}

/* 2 MiB that are at home again are one page, when nothing else is to be done. */
static void superpages(const void *argument)
{
	struct features features = calm;
	struct dsm_engine_counts counts;

	(void)argument;
	dice_begin();
	features.hosts = 2;
	features.pages = 2048;
	features.frames = 200;
	features.credits = 200;
	features.merge_ms = 1000;
	world_begin(&features);
	/* What never left is as it was. */
	wait_ms(3000);
	CHECK(!node[0].xen.merges, "nothing has happened");
	use(1, 0, 3, DSM_XEN_WANT_M);
	use(1, 0, 511, DSM_XEN_WANT_S);
	use(1, 0, 600, DSM_XEN_WANT_M);
	wait_ms(3000);
	CHECK(!node[0].xen.merges, "it is elsewhere");
	use(0, 0, 3, DSM_XEN_WANT_M);
	wait_ms(3000);
	CHECK(!node[0].xen.merges, "a page of it is read elsewhere");
	use(0, 0, 511, DSM_XEN_WANT_M);
	wait_ms(990);
	CHECK(!node[0].xen.merges, "too early");
	wait_ms(20);
	CHECK(merges(0) == 1 && node[0].xen.merged == 0 && node[0].xen.merges == 1, "%u", merges(0));
	wait_ms(3000);
	CHECK(node[0].xen.merges == 1, "once");
	/* One that leaves again meanwhile begins anew. */
	use(0, 0, 600, DSM_XEN_WANT_M);
	wait_ms(900);
	use(1, 0, 700, DSM_XEN_WANT_M);
	wait_ms(900);
	use(0, 0, 700, DSM_XEN_WANT_M);
	wait_ms(980);
	CHECK(merges(0) == 1, "too early");
	wait_ms(40);
	CHECK(merges(0) == 2 && node[0].xen.merged == 512, "the other one");
	/* Not while somebody waits: of a page that does not come. */
	use(1, 0, 5, DSM_XEN_WANT_M);
	use(1, 0, 900, DSM_XEN_WANT_M);
	use(0, 0, 5, DSM_XEN_WANT_M);
	CHECK(played_use(&node[0].xen, 1, 900, DSM_XEN_WANT_M, 77) == PLAYED_MISS, "no miss");
	dsm_engine_misses(node[0].engine);
	wait_ms(3000);
	CHECK(merges(0) == 2, "there was something else to do");
	settle_down();
	wait_ms(3000);
	CHECK(merges(0) == 4, "%u", merges(0));
	/* In use: again, some times. */
	use(1, 0, 5, DSM_XEN_WANT_M);
	use(0, 0, 5, DSM_XEN_WANT_M);
	node[0].xen.page[9].pinned = true;
	wait_ms(1500);
	CHECK(node[0].xen.merges == 5, "%u", node[0].xen.merges);
	node[0].xen.page[9].pinned = false;
	wait_ms(1500);
	CHECK(merges(0) == 5, "again");
	use(1, 0, 5, DSM_XEN_WANT_M);
	use(0, 0, 5, DSM_XEN_WANT_M);
	node[0].xen.page[9].pinned = true;
	wait_ms(30000);
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(node[0].xen.merges == 6 + 8 && counts.merges_refused == 1, "%u tries, %llu",
	      node[0].xen.merges, (unsigned long long)counts.merges_refused);
	node[0].xen.page[9].pinned = false;
	/* No memory: not again. */
	node[0].xen.break_merge = -ENOMEM;
	use(1, 0, 5, DSM_XEN_WANT_M);
	use(0, 0, 5, DSM_XEN_WANT_M);
	wait_ms(30000);
	CHECK(node[0].xen.merges == 15, "%u", node[0].xen.merges);
	/* A Xen that does not know of it is not asked any more. */
	node[0].xen.break_merge = -EINVAL;
	use(1, 0, 5, DSM_XEN_WANT_M);
	use(0, 0, 5, DSM_XEN_WANT_M);
	wait_ms(3000);
	use(1, 0, 5, DSM_XEN_WANT_M);
	use(0, 0, 5, DSM_XEN_WANT_M);
	wait_ms(3000);
	CHECK(node[0].xen.merges == 16, "%u", node[0].xen.merges);
	/* The other host has none of it. */
	CHECK(!node[1].xen.merges, "pages of others");
	check_rules();
	world_end();
}

/* One after the other, after an evacuation, and not before others are done. */
static void superpages_in_turn(const void *argument)
{
	struct features features = calm;
	uint64_t gfn;

	(void)argument;
	dice_begin();
	features.hosts = 2;
	features.pages = 4 * 512;
	features.frames = 200;
	features.credits = 200;
	features.merge_ms = 100;
	world_begin(&features);
	for (gfn = 0; gfn < 1024; gfn += 16)
		use(1, 0, gfn, DSM_XEN_WANT_M);
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, 2048), "begin");
	settle_down();
	CHECK(!dsm_engine_is_evacuating(node[0].engine) && !merges(0), "at home");
	while (!merges(0))
		wait_ms(1);
	CHECK(dsm_engine_next(node[0].engine) == clock_ns + 10 * MS, "the next one");
	wait_ms(9);
	CHECK(merges(0) == 1, "not at once");
	wait_ms(1);
	CHECK(merges(0) == 2, "the next one");
	CHECK(dsm_engine_next(node[0].engine) > clock_ns + 10 * MS, "no more");
	/* Who has been at home for longer comes first, though others come home all the time. */
	use(1, 0, 5, DSM_XEN_WANT_M);
	use(1, 0, 600, DSM_XEN_WANT_M);
	use(0, 0, 5, DSM_XEN_WANT_M);
	wait_ms(60);
	use(0, 0, 600, DSM_XEN_WANT_M);
	wait_ms(45);
	CHECK(merges(0) == 3 && node[0].xen.merged == 0, "%u, %llu", merges(0),
	      (unsigned long long)node[0].xen.merged);
	wait_ms(100);
	CHECK(merges(0) == 4, "%u", merges(0));
	/* Not while a range comes home, though nothing moves. */
	use(0, 0, 1500, DSM_XEN_WANT_S);
	node[0].xen.page[1500].pinned = true;
	use(1, 0, 5, DSM_XEN_WANT_M);
	use(0, 0, 5, DSM_XEN_WANT_M);
	CHECK(!dsm_engine_evacuate(node[0].engine, 1024, 2048), "begin");
	wait_ms(300);
	CHECK(dsm_engine_is_evacuating(node[0].engine) && merges(0) == 4, "%u", merges(0));
	node[0].xen.page[1500].pinned = false;
	wait_ms(300);
	CHECK(!dsm_engine_is_evacuating(node[0].engine) && merges(0) == 5, "%u", merges(0));
	check_rules();
	world_end();

	/* A range that does not begin with 2 MiB: its first whole ones. */
	features.pages = 2000;
	world_begin(&features);
	use(0, 0, 1010, DSM_XEN_WANT_M);
	use(0, 0, 1030, DSM_XEN_WANT_M);
	use(1, 0, 1010, DSM_XEN_WANT_M);
	use(1, 0, 1030, DSM_XEN_WANT_M);
	/* wait_ms() is the first host's. */
	for (gfn = 0; gfn < 50; gfn++)
		settle_down();
	CHECK(node[1].xen.merges == 1 && node[1].xen.merged == 1024, "%u, %llu", node[1].xen.merges,
	      (unsigned long long)node[1].xen.merged);
	check_rules();
	world_end();
}

/* It leaves room to others, and does not look while it waits for answers. */
static void evacuation_among_others(const void *argument)
{
	struct features features = calm;
	struct dsm_engine_counts counts;
	unsigned int written_back = 0;
	struct parcel *parcel;
	uint64_t gfn;

	(void)argument;
	dice_begin();
	features.hosts = 2;
	features.pages = 800;
	features.frames = 200;
	features.credits = 400;
	world_begin(&features);
	for (gfn = 0; gfn < 100; gfn++)
		use(1, 0, gfn, DSM_XEN_WANT_M);
	pass(0, 100);
	pass(1, 100);
	settle_down();
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, 10), "a few");
	dsm_engine_run(node[0].engine);
	CHECK(in_channel[0][1] == 10, "%u recalls", in_channel[0][1]);
	CHECK(dsm_engine_next(node[0].engine) > clock_ns + 10 * MS, "it looks in vain");
	settle_down();
	CHECK(!dsm_engine_is_evacuating(node[0].engine), "it does not end");
	/* 120 requests of others: 8 are left. */
	for (gfn = 500; gfn < 620; gfn++)
		CHECK(!dsm_engine_drop(node[0].engine, gfn), "a request");
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, 100), "all");
	dsm_engine_run(node[0].engine);
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(counts.requests == DSM_ENGINE_REQUESTS / 2, "%u requests", counts.requests);
	settle_down();
	CHECK(!dsm_engine_is_evacuating(node[0].engine), "it does not end");
	world_end();

	/* Pages are given up for their frames already. */
	world_begin(&features);
	for (gfn = 0; gfn < 150; gfn++)
		use(1, 0, gfn, DSM_XEN_WANT_M);
	pass(0, 100);
	pass(1, 100);
	settle_down();
	dsm_engine_drain(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(!dsm_engine_evacuate(node[1].engine, 0, 150), "begin");
	dsm_engine_run(node[1].engine);
	STAILQ_FOREACH(parcel, &channel[1][0], link)
		written_back += parcel->msg.type == DSM_PUTM;
	CHECK(written_back == DSM_ENGINE_WRITEBACKS, "%u PUTM", written_back);
	settle_down();
	CHECK(!dsm_engine_guests(node[1].engine), "pages stay");
	check_rules();
	world_end();
}

/* A page that was asked for before, and comes here after the pass went by. */
static void evacuation_of_what_comes(const void *argument)
{
	struct features features = calm;

	(void)argument;
	dice_begin();
	features.hosts = 2;
	world_begin(&features);
	played_use(&node[1].xen, 0, 2, DSM_XEN_WANT_M, 71);
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(in_channel[1][0] == 1, "a request is out");
	CHECK(!dsm_engine_evacuate(node[1].engine, 0, 12), "begin");
	dsm_engine_run(node[1].engine);
	pass(1, 5);
	CHECK(dsm_engine_is_evacuating(node[1].engine), "it waits for it");
	settle_down();
	clock_ns += 100 * MS;
	settle_down();
	CHECK(!dsm_engine_is_evacuating(node[1].engine), "it does not end");
	check_evacuated(1);
	/* At home: somebody asks for a page of the range, and it is about to go. */
	node[0].xen.page[3].pinned = true;
	played_use(&node[1].xen, 0, 3, DSM_XEN_WANT_M, 72);
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(deliver(1, 0), "a request");
	dsm_engine_run(node[0].engine);
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, 6), "begin");
	dsm_engine_run(node[0].engine);
	pass(0, 1);
	CHECK(dsm_engine_is_evacuating(node[0].engine), "it goes only now");
	node[0].xen.page[3].pinned = false;
	settle_down();
	clock_ns += 100 * MS;
	settle_down();
	CHECK(!dsm_engine_is_evacuating(node[0].engine), "it does not end");
	CHECK(node[0].xen.page[3].state == DSM_XEN_STATE_M, "it is at home");
	check_rules();
	world_end();
}

/* PUTS has no answer: a link that stands still is not filled with them. */
static void evacuation_of_copies(const void *argument)
{
	struct features features = calm;
	unsigned int rounds = 0, most = 0;
	uint64_t gfn;

	(void)argument;
	dice_begin();
	features.hosts = 2;
	features.pages = 320;
	features.frames = 200;
	features.credits = 16;
	world_begin(&features);
	for (gfn = 160; gfn < 300; gfn++)
		use(0, 0, gfn, DSM_XEN_WANT_S);
	CHECK(!dsm_engine_evacuate(node[0].engine, 0, 320), "begin");
	while (dsm_engine_is_evacuating(node[0].engine)) {
		unsigned int i;

		for (i = 0; i < 10; i++) {
			clock_ns += MS;
			dsm_engine_tick(node[0].engine);
			dsm_engine_run(node[0].engine);
		}
		if (most < in_channel[0][1])
			most = in_channel[0][1];
		while (deliver(0, 1))
			;
		dsm_engine_run(node[1].engine);
		while (deliver(1, 0))
			;
		CHECK(rounds++ < 40, "it does not end");
	}
	CHECK(most == 16, "%u messages in a link for 16", most);
	check_evacuated(0);
	check_rules();
	world_end();
}

/* Host 1 touches these pages one after the other, each in peace.  Return: its misses. */
static uint64_t touch_pages(uint64_t first, uint64_t end, unsigned int want)
{
	struct dsm_engine_counts counts;
	uint64_t gfn, before;
	static uint64_t rip = 100;

	dsm_engine_get_counts(node[1].engine, &counts);
	before = counts.read_faults + counts.write_faults;
	for (gfn = first; gfn < end; gfn++)
		if (played_use(&node[1].xen, 0, gfn, want, rip++) == PLAYED_MISS)
			settle_down();
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(!played_waits(&node[1].xen), "it waits");
	return counts.read_faults + counts.write_faults - before;
}

static uint64_t read_pages(uint64_t first, uint64_t end)
{
	return touch_pages(first, end, DSM_XEN_WANT_S);
}

static uint64_t write_pages(uint64_t first, uint64_t end)
{
	return touch_pages(first, end, DSM_XEN_WANT_M);
}

static struct features readers(unsigned int frames, unsigned int prefetch)
{
	struct features features = calm;

	features.hosts = 2;
	features.pages = 240;
	features.vcpus = 1;
	features.frames = frames;
	features.prefetch = prefetch;
	return features;
}

/* Windows double up to the limit; all but one miss for each go. */
static void prefetch_reader(const void *argument)
{
	struct features features = readers(240, 32);
	struct dsm_engine_counts counts;
	uint64_t misses;

	(void)argument;
	dice_begin();
	world_begin(&features);
	/* 0; 1 brings 2 and 3; 4 brings 4 more, 9 brings 8, 18 16, 35 and 68 bring 32. */
	misses = read_pages(0, 101);
	CHECK(misses == 7, "%llu misses", (unsigned long long)misses);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == 2 + 4 + 8 + 16 + 32 + 32 && counts.prefetch_hits == 62 &&
	      !counts.prefetch_wasted && !counts.prefetch_refused, "%llu, %llu for good",
	      (unsigned long long)counts.prefetches, (unsigned long long)counts.prefetch_hits);
	/* The window ends where the home does. */
	misses = read_pages(101, 120);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(misses == 1 && counts.prefetches == 94 + 18, "%llu misses, %llu prefetches",
	      (unsigned long long)misses, (unsigned long long)counts.prefetches);
	/* Switched off, and too much. */
	CHECK(!dsm_engine_set_prefetch(node[1].engine, 0), "off");
	CHECK(dsm_engine_set_prefetch(node[1].engine, DSM_ENGINE_PREFETCH + 1) == -EINVAL, "too much");
	world_end();

	world_begin(&features);
	dsm_engine_set_prefetch(node[1].engine, 0);
	CHECK(read_pages(0, 40) == 40, "off is off");
	world_end();
}

/* A page of a window that is written is not one that came for nothing. */
static void prefetch_used(const void *argument)
{
	struct features features = readers(240, 2);
	struct dsm_engine_counts counts;

	(void)argument;
	dice_begin();
	world_begin(&features);
	read_pages(0, 2);
	use(1, 0, 2, DSM_XEN_WANT_M);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == 2 && counts.prefetch_hits == 1, "%llu, %llu",
	      (unsigned long long)counts.prefetches, (unsigned long long)counts.prefetch_hits);
	/* Its home takes the other one back: for nothing. */
	use(0, 0, 3, DSM_XEN_WANT_M);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetch_hits == 1 && counts.prefetch_wasted == 1, "%llu",
	      (unsigned long long)counts.prefetch_wasted);
	check_rules();
	world_end();
}

/* A tool that joins a prefetch is one all the same. */
static void prefetch_and_a_tool(const void *argument)
{
	struct features features = readers(240, 2);

	(void)argument;
	dice_begin();
	world_begin(&features);
	read_pages(0, 1);
	node[0].xen.page[2].special = true;
	CHECK(played_use(&node[1].xen, 0, 1, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "brings two more");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(in_channel[1][0] == 3, "%u requests", in_channel[1][0]);
	CHECK(played_use(&node[1].xen, NO_VCPU, 2, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "look");
	settle_down();
	CHECK(!node[1].failure[0] && node[1].xen.page[2].foreign_hole, "it finds none: %s", node[1].failure);
	world_end();
}

/* Who fetches for nothing fetches less. */
static void prefetch_wasted(const void *argument)
{
	struct features features = readers(240, 32);
	struct dsm_engine_counts counts;
	uint64_t before, gfn;

	(void)argument;
	dice_begin();
	world_begin(&features);
	read_pages(0, 36);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == 62, "%llu", (unsigned long long)counts.prefetches);
	/* 36 .. 67 are here, and go: 32, 16, 8, 4, 2. */
	for (gfn = 40; gfn < 60; gfn++)
		use(0, 0, gfn, DSM_XEN_WANT_M);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetch_wasted == 20, "%llu", (unsigned long long)counts.prefetch_wasted);
	before = counts.prefetches;
	read_pages(80, 82);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == before + 2, "%llu", (unsigned long long)counts.prefetches);
	/* Not doubled: the limit grows by two. */
	read_pages(82, 90);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == before + 2 + 4 + 6, "windows that were used: %llu",
	      (unsigned long long)(counts.prefetches - before));
	world_end();
}

/* What was learnt goes when it is switched off and on, and what is left over then says nothing. */
static void prefetch_switched(const void *argument)
{
	struct features features = readers(240, 32);
	struct dsm_engine_counts counts;
	uint64_t before, gfn;

	(void)argument;
	dice_begin();
	world_begin(&features);
	read_pages(0, 36);
	dsm_engine_set_prefetch(node[1].engine, 0);
	/* 36 .. 67 are here, and go. */
	for (gfn = 40; gfn < 60; gfn++)
		use(0, 0, gfn, DSM_XEN_WANT_M);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetch_wasted == 20, "%llu", (unsigned long long)counts.prefetch_wasted);
	dsm_engine_set_prefetch(node[1].engine, 32);
	before = counts.prefetches;
	read_pages(80, 90);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == before + 2 + 4 + 8, "windows are doubled: %llu",
	      (unsigned long long)(counts.prefetches - before));
	world_end();
}

/* A page of host 0 is missed for reading at host 1; its answer does not come yet. */
static void miss_only(unsigned int vcpu, uint64_t gfn)
{
	static uint64_t rip = 900000;

	CHECK(played_use(&node[1].xen, vcpu, gfn, DSM_XEN_WANT_S, rip++) == PLAYED_MISS, "no miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
}

/* How much is under way, and who has none. */
static void prefetch_bounds(const void *argument)
{
	struct features features = readers(400, 64);
	struct dsm_engine_counts counts;
	uint64_t gfn, before;

	(void)argument;
	dice_begin();
	features.pages = 800;
	features.vcpus = 2;
	features.credits = 400;
	/* Two windows of 64: one of them goes. */
	world_begin(&features);
	for (gfn = 0; gfn < 68; gfn++) {
		if (played_use(&node[1].xen, 1, 200 + gfn, DSM_XEN_WANT_S, 7 * gfn) == PLAYED_MISS)
			settle_down();
		read_pages(gfn, gfn + 1);
	}
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(!counts.requests, "%u requests", counts.requests);
	before = counts.prefetches;
	miss_only(0, 68);
	miss_only(1, 268);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.requests == 2 + 64 && counts.prefetches == before + 64, "%u requests",
	      counts.requests);
	settle_down();
	world_end();

	/* Half of the requests are for misses. */
	world_begin(&features);
	read_pages(0, 1);
	for (gfn = 200; gfn < 200 + DSM_ENGINE_REQUESTS / 2; gfn++)
		CHECK(!dsm_engine_drop(node[1].engine, gfn), "a request");
	miss_only(0, 1);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(!counts.prefetches, "%llu", (unsigned long long)counts.prefetches);
	settle_down();
	world_end();

	/* Who gives all back fetches nothing. */
	world_begin(&features);
	read_pages(0, 1);
	dsm_engine_drain(node[1].engine);
	miss_only(0, 1);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(!counts.prefetches, "%llu", (unsigned long long)counts.prefetches);
	settle_down();
	world_end();

	/* Behind the end there is no memory. */
	world_begin(&features);
	dsm_engine_open_range(node[1].engine, 0, 10);
	dsm_engine_range_done(node[1].engine, 0);
	read_pages(0, 10);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == 2 + 4, "%llu", (unsigned long long)counts.prefetches);
	check_rules();
	world_end();
}

/* Pages of a window that have gone again are missed: the stream goes on, and so do the others. */
static void prefetch_again(const void *argument)
{
	struct features features = readers(240, 32);

	(void)argument;
	dice_begin();
	world_begin(&features);
	read_pages(40, 41);
	read_pages(60, 61);
	read_pages(80, 81);
	read_pages(0, 2);
	/* The page that was missed last, too. */
	use(0, 0, 1, DSM_XEN_WANT_M);
	CHECK(read_pages(1, 2) == 1, "misses");
	use(0, 0, 2, DSM_XEN_WANT_M);
	use(0, 0, 3, DSM_XEN_WANT_M);
	CHECK(read_pages(2, 4) == 2, "misses");
	CHECK(read_pages(41, 42) == 1 && read_pages(61, 62) == 1, "misses");
	CHECK(node[1].xen.page[42].state == DSM_XEN_STATE_S &&
	      node[1].xen.page[62].state == DSM_XEN_STATE_S, "the others are known still");
	check_rules();
	world_end();
}

/* Of five sequences the one that nobody has gone on with for the longest time is forgotten. */
static void prefetch_streams(const void *argument)
{
	struct features features = readers(240, 32);

	(void)argument;
	dice_begin();
	world_begin(&features);
	read_pages(0, 1);
	read_pages(40, 41);
	read_pages(60, 61);
	read_pages(80, 81);
	read_pages(1, 5);
	read_pages(100, 101);
	CHECK(read_pages(5, 10) == 1 && node[1].xen.page[10].state == DSM_XEN_STATE_S, "the first goes on");
	read_pages(81, 82);
	read_pages(61, 62);
	read_pages(101, 102);
	CHECK(node[1].xen.page[82].state == DSM_XEN_STATE_S && node[1].xen.page[62].state == DSM_XEN_STATE_S &&
	      node[1].xen.page[102].state == DSM_XEN_STATE_S, "and these");
	read_pages(41, 42);
	CHECK(node[1].xen.page[42].state == DSM_XEN_STATE_I, "the second is not known any more");
	check_rules();
	world_end();
}

/* What one vCPU fetched for nothing is its own affair. */
static void prefetch_whose(const void *argument)
{
	struct features features = readers(400, 32);
	struct dsm_engine_counts counts;
	uint64_t gfn, before;

	(void)argument;
	dice_begin();
	features.pages = 800;
	features.vcpus = 2;
	features.credits = 400;
	world_begin(&features);
	read_pages(0, 36);
	for (gfn = 200; gfn < 236; gfn++)
		if (played_use(&node[1].xen, 1, gfn, DSM_XEN_WANT_S, 7 * gfn) == PLAYED_MISS)
			settle_down();
	for (gfn = 240; gfn < 260; gfn++)
		use(0, 0, gfn, DSM_XEN_WANT_M);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetch_wasted == 20, "%llu", (unsigned long long)counts.prefetch_wasted);
	before = counts.prefetches;
	CHECK(read_pages(36, 69) == 1, "misses");
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == before + 32, "%llu", (unsigned long long)(counts.prefetches - before));
	/* The last page before one's own: nothing is fetched of these. */
	before = counts.prefetches;
	read_pages(398, 400);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == before, "%llu", (unsigned long long)(counts.prefetches - before));
	check_rules();
	world_end();
}

/* A prefetch takes no frame that is not spare, and evicts nothing. */
static void prefetch_frames(const void *argument)
{
	struct features features = readers(32, 32);
	struct dsm_engine_counts counts;
	uint64_t gfn;

	(void)argument;
	dice_begin();
	world_begin(&features);
	/* One spare frame too few for the window of 2: none, and nothing goes for it. */
	for (gfn = 20; gfn < 74; gfn += 2)
		use(1, 0, gfn, DSM_XEN_WANT_M);
	read_pages(90, 92);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.frames_used <= 30, "%u frames", counts.frames_used);
	CHECK(counts.prefetches <= 1, "%llu prefetches", (unsigned long long)counts.prefetches);
	world_end();

	/* What was fetched and not used goes before what was missed, though that came first. */
	features.prefetch = 2;
	world_begin(&features);
	read_pages(0, 2);
	CHECK(node[1].xen.page[3].state == DSM_XEN_STATE_S, "fetched");
	for (gfn = 20; gfn < 76; gfn += 2)
		use(1, 0, gfn, DSM_XEN_WANT_S);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.evicted_shared == 2 && node[1].xen.page[2].state == DSM_XEN_STATE_I &&
	      node[1].xen.page[3].state == DSM_XEN_STATE_I && node[1].xen.page[0].state == DSM_XEN_STATE_S &&
	      node[1].xen.page[1].state == DSM_XEN_STATE_S, "%llu went", (unsigned long long)counts.evicted_shared);
	world_end();

	/* If all were missed since, some go all the same, and at once. */
	features.prefetch = 0;
	world_begin(&features);
	for (gfn = 20; gfn < 80; gfn += 2)
		use(1, 0, gfn, DSM_XEN_WANT_S);
	miss_only(0, 90);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.frames == 32 && counts.evicted_shared == 2, "%llu went", (unsigned long long)counts.evicted_shared);
	settle_down();
	world_end();
	features.prefetch = 32;

	/* Nor the last credits. */
	features.frames = 240;
	features.credits = 16;
	world_begin(&features);
	read_pages(0, 20);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(!counts.prefetches, "%llu", (unsigned long long)counts.prefetches);
	world_end();
}

/* A pool that is full, as it always is when more is read than fits. */
static void prefetch_full(const void *argument)
{
	struct features features = readers(64, 16);
	struct dsm_engine_counts counts;
	uint64_t gfn, before, misses;

	(void)argument;
	dice_begin();
	world_begin(&features);
	dsm_engine_set_prefetch(node[1].engine, 0);
	read_pages(0, 60);
	dsm_engine_set_prefetch(node[1].engine, 16);
	read_pages(60, 62);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(!counts.prefetches, "%llu: nothing was free", (unsigned long long)counts.prefetches);
	/* The next windows find what was made free for them. */
	misses = read_pages(62, 120);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches >= 40 && counts.prefetch_hits >= 36 && misses < 16,
	      "%llu prefetches, %llu used, %llu misses", (unsigned long long)counts.prefetches,
	      (unsigned long long)counts.prefetch_hits, (unsigned long long)misses);
	CHECK(counts.frames_used <= 60 - 8, "%u frames", counts.frames_used);
	/* By chance: nothing is asked for, and in the end no more is kept free than before. */
	before = counts.prefetches;
	for (gfn = 0; gfn < 238; gfn++)
		touch_pages(gfn * 50 % 119, gfn * 50 % 119 + 1, gfn < 119 ? DSM_XEN_WANT_M : DSM_XEN_WANT_S);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches <= before + 4, "%llu prefetches", (unsigned long long)(counts.prefetches - before));
	CHECK(counts.frames_used >= 59, "%u frames", counts.frames_used);
	check_rules();
	world_end();
}

/* Who writes pages one after the other has the next ones to write before it asks. */
static void prefetch_writer(const void *argument)
{
	struct features features = readers(240, 32);
	struct dsm_engine_counts counts;
	uint64_t misses, gfn;

	(void)argument;
	features.ahead = true;
	dice_begin();
	world_begin(&features);
	/* The same windows as a reader's. */
	misses = write_pages(0, 101);
	CHECK(misses == 7, "%llu misses", (unsigned long long)misses);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == 2 + 4 + 8 + 16 + 32 + 32 && counts.prefetch_hits == 62,
	      "%llu, %llu for good", (unsigned long long)counts.prefetches,
	      (unsigned long long)counts.prefetch_hits);
	CHECK(node[1].xen.page[100].state == DSM_XEN_STATE_M && node[0].xen.page[100].state == DSM_XEN_STATE_I,
	      "it can be written");
	check_rules();
	world_end();

	/* Read, and then written: two misses for each window. */
	world_begin(&features);
	for (misses = 0, gfn = 0; gfn < 60; gfn++)
		misses += read_pages(gfn, gfn + 1) + write_pages(gfn, gfn + 1);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(misses <= 14, "%llu misses, of 120", (unsigned long long)misses);
	/* Not written any more: no window but one comes to be written. */
	read_pages(60, 118);
	CHECK(node[1].xen.page[117].state == DSM_XEN_STATE_S, "a reader's");
	check_rules();
	world_end();

	/* A page that a third host reads is not taken from it. */
	features.hosts = 3;
	world_begin(&features);
	use(2, 0, 2, DSM_XEN_WANT_S);
	write_pages(0, 2);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == 2 && counts.prefetch_refused == 1, "%llu, %llu refused",
	      (unsigned long long)counts.prefetches, (unsigned long long)counts.prefetch_refused);
	CHECK(node[2].xen.page[2].state == DSM_XEN_STATE_S && node[1].xen.page[3].state == DSM_XEN_STATE_M,
	      "the other one came");
	check_rules();
	world_end();

	/* A host that does not know such requests is not asked; nor has it readers' pages for writers. */
	features.hosts = 2;
	features.ahead = false;
	world_begin(&features);
	CHECK(write_pages(0, 20) == 20, "none came");
	CHECK(read_pages(40, 50) == 4, "but readers' do");
	world_end();
}

/* What can't come is no reason to stop the VM, nor to show a hole. */
static void prefetch_refused(const void *argument)
{
	struct features features = readers(240, 8);
	struct dsm_engine_counts counts;

	(void)argument;
	dice_begin();
	world_begin(&features);
	node[0].xen.page[3].special = true;
	CHECK(played_guest_frees(&node[0].xen, 2), "a hole");
	read_pages(0, 2);
	settle_down();
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.prefetches == 2 && counts.prefetch_refused == 2 && !counts.holes,
	      "%llu refused, %llu holes", (unsigned long long)counts.prefetch_refused,
	      (unsigned long long)counts.holes);
	CHECK(!node[0].failure[0] && !node[1].failure[0], "%s%s", node[0].failure, node[1].failure);
	CHECK(node[1].xen.page[2].state == DSM_XEN_STATE_I, "no hole is shown");
	check_rules();
	world_end();
}

/* Host 1 reads these pages downwards, as Linux does that empties a node. */
static uint64_t read_down(uint64_t first, uint64_t last_one)
{
	uint64_t misses = 0, gfn;

	for (gfn = first + 1; gfn-- > last_one;)
		misses += read_pages(gfn, gfn + 1);
	return misses;
}

static void will_leave(uint64_t first, uint64_t end)
{
	CHECK(!dsm_engine_leaving(node[1].engine, first, end), "a hint");
	dsm_engine_run(node[1].engine);
}

static uint64_t prefetches(void)
{
	struct dsm_engine_counts counts;

	dsm_engine_get_counts(node[1].engine, &counts);
	return counts.prefetches;
}

/* A range that the guest empties: long windows, either way, for as long as that goes on. */
static void leaving(const void *argument)
{
	struct features features = readers(240, 0);
	struct dsm_engine_counts counts;
	uint64_t misses, before;

	(void)argument;
	dice_begin();
	world_begin(&features);
	CHECK(dsm_engine_leaving(node[1].engine, 5, 4) == -EINVAL, "backwards");
	will_leave(20, 119);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.leaving, "it says so");
	/* 110, 109 brings 8, 100 16, 83 32; nothing of it is before 20. */
	misses = read_down(110, 60);
	CHECK(misses == 4 && prefetches() == 8 + 16 + 32, "%llu misses, %llu prefetches",
	      (unsigned long long)misses, (unsigned long long)prefetches());
	misses = read_down(59, 20);
	CHECK(misses == 1 && prefetches() == 56 + 30, "%llu misses, %llu prefetches",
	      (unsigned long long)misses, (unsigned long long)prefetches());
	before = prefetches();
	/* Upwards, and not beyond the end. */
	misses = read_pages(111, 119);
	CHECK(misses == 2 && prefetches() == before + 6, "%llu misses, %llu prefetches",
	      (unsigned long long)misses, (unsigned long long)prefetches());
	/* Not elsewhere; there it is as it was. */
	world_end();

	world_begin(&features);
	will_leave(20, 119);
	CHECK(read_pages(0, 6) == 6 && !prefetches(), "elsewhere");
	dsm_engine_set_prefetch(node[1].engine, 2);
	CHECK(read_pages(6, 8) == 2 && prefetches() == 2, "elsewhere");
	world_end();

	/* Free pages behind a window are passed by; more of them are another stream. */
	world_begin(&features);
	will_leave(0, 120);
	read_pages(0, 2);
	CHECK(read_pages(10 + 8, 10 + 9) == 1 && prefetches() == 8 + 16, "a gap");
	CHECK(read_pages(35 + 9, 35 + 10) == 1 && prefetches() == 8 + 16, "a larger one");
	world_end();

	/* Other vCPUs go on with it. */
	features.vcpus = 2;
	world_begin(&features);
	will_leave(0, 120);
	read_pages(0, 1);
	use(1, 1, 1, DSM_XEN_WANT_S);
	CHECK(prefetches() == 8 && !read_pages(2, 10), "another vCPU");
	/* It is over, and a minute after the last miss, too. */
	before = prefetches();
	will_leave(0, 0);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(!counts.leaving, "it says so");
	CHECK(read_pages(20, 30) == 10 && prefetches() == before, "over");
	will_leave(0, 120);
	clock_ns += 50000 * MS;
	read_pages(40, 41);
	clock_ns += 50000 * MS;
	read_pages(41, 42);
	CHECK(prefetches() == before + 8, "it goes on");
	clock_ns += 61000 * MS;
	CHECK(read_pages(60, 70) == 10 && prefetches() == before + 8, "forgotten");
	check_rules();
	world_end();
}

/* Who waits within a window has read what is before: the window goes on from there. */
static void leaving_on_the_way(const void *argument)
{
	struct features features = readers(240, 0);
	struct dsm_engine_counts counts;
	unsigned int i;

	(void)argument;
	dice_begin();
	world_begin(&features);
	will_leave(0, 120);
	read_pages(0, 1);
	miss_only(0, 1);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.requests == 1 + 8, "%u requests", counts.requests);
	while (deliver(1, 0))
		;
	dsm_engine_run(node[0].engine);
	/* 1 to 4 come, and it reads 5. */
	for (i = 0; i < 4; i++)
		deliver(0, 1);
	dsm_engine_run(node[1].engine);
	miss_only(0, 5);
	dsm_engine_get_counts(node[1].engine, &counts);
	/* 5 to 9 of the first; the next has 16 behind 5. */
	CHECK(counts.requests == 5 + 12, "%u requests", counts.requests);
	settle_down();
	CHECK(!read_pages(5, 22) && read_pages(22, 23) == 1, "the next one");
	check_rules();
	world_end();

	/* A prefetch that is switched on does not: it knows nothing of what was read. */
	features.prefetch = 32;
	world_begin(&features);
	read_pages(0, 1);
	miss_only(0, 1);
	deliver(1, 0);
	dsm_engine_run(node[0].engine);
	deliver(0, 1);
	dsm_engine_run(node[1].engine);
	miss_only(0, 2);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.requests == 2, "%u requests", counts.requests);
	settle_down();
	check_rules();
	world_end();
}

/* What was read makes room for what comes; what was written stays. */
static void leaving_frames(const void *argument)
{
	struct features features = readers(64, 0);
	struct dsm_engine_counts counts;
	uint64_t misses, gfn;

	(void)argument;
	dice_begin();
	features.pages = 400;
	world_begin(&features);
	for (gfn = 180; gfn < 196; gfn++)
		use(1, 0, gfn, DSM_XEN_WANT_M);
	will_leave(0, 200);
	misses = read_pages(0, 2);
	use(1, 0, 5, DSM_XEN_WANT_M);
	misses += read_pages(2, 160);
	dsm_engine_get_counts(node[1].engine, &counts);
	/* 8, 16 and then what is free: a quarter of the frames. */
	CHECK(misses <= 12 && !counts.evicted_modified && counts.evicted_shared > 100,
	      "%llu misses, %llu and %llu evicted", (unsigned long long)misses,
	      (unsigned long long)counts.evicted_modified,
	      (unsigned long long)counts.evicted_shared);
	CHECK(!counts.waited_frames, "%llu waited", (unsigned long long)counts.waited_frames);
	/* So many are kept free only for that. */
	CHECK(counts.frames_used <= 64 - 4 - 16, "%u frames", counts.frames_used);
	will_leave(0, 0);
	read_pages(0, 60);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.frames_used > 64 - 4 - 16, "%u frames", counts.frames_used);
	check_rules();
	world_end();

	/* Of a large pool a window, not a quarter. */
	features.frames = 600;
	features.pages = 1600;
	features.credits = 400;
	world_begin(&features);
	will_leave(0, 800);
	read_pages(0, 760);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.frames_used > 600 - 37 - 64 - 16 && counts.frames_used <= 600 - 37 - 64 + 1, "%u frames",
	      counts.frames_used);
	check_rules();
	world_end();
	features.frames = 64;
	features.pages = 400;

	/* What was written is in use; and of what was not read before, the oldest goes. */
	world_begin(&features);
	for (gfn = 120; gfn < 160; gfn += 2)
		use(1, 0, gfn, DSM_XEN_WANT_S);
	will_leave(0, 200);
	read_pages(0, 2);
	for (gfn = 2; gfn < 10; gfn++)
		use(1, 0, gfn, DSM_XEN_WANT_M);
	read_pages(10, 11);
	for (gfn = 60; gfn < 90; gfn += 2)
		use(1, 0, gfn, DSM_XEN_WANT_S);
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.evicted_shared && !counts.evicted_modified, "%llu and %llu evicted",
	      (unsigned long long)counts.evicted_shared,
	      (unsigned long long)counts.evicted_modified);
	world_end();
}

/* Pages that it has read are not fetched again. */
static void leaving_once(const void *argument)
{
	struct features features = readers(240, 0);
	uint64_t gfn;

	(void)argument;
	dice_begin();
	world_begin(&features);
	will_leave(0, 120);
	read_down(31, 0);
	CHECK(prefetches() == 28, "%llu", (unsigned long long)prefetches());
	for (gfn = 0; gfn < 32; gfn++)
		use(0, 0, gfn, DSM_XEN_WANT_M);
	CHECK(read_down(63, 32) == 4, "misses");
	CHECK(prefetches() == 2 * 28, "%llu", (unsigned long long)prefetches());
	for (gfn = 0; gfn < 32; gfn++)
		CHECK(node[1].xen.page[gfn].state == DSM_XEN_STATE_I, "gfn %llu came again",
		      (unsigned long long)gfn);
	check_rules();
	world_end();
}

/* As Linux empties a node: batches of 512 upwards, each downwards, one page of 16 free. */
static void leaving_node(const void *argument)
{
	struct features features = readers(256, 0);
	struct dsm_engine_counts counts;
	uint64_t batch, gfn, misses = 0, pages = 0;

	(void)argument;
	dice_begin();
	features.pages = 2048;
	features.credits = 400;
	world_begin(&features);
	will_leave(0, 1024);
	for (batch = 0; batch < 1024; batch += 512)
		for (gfn = batch + 512; gfn-- > batch;) {
			if (!dice_below(16))
				continue;
			misses += read_pages(gfn, gfn + 1);
			pages++;
		}
	dsm_engine_get_counts(node[1].engine, &counts);
	printf("%llu misses of %llu pages, %llu fetched before, %llu evicted\n",
	       (unsigned long long)misses, (unsigned long long)pages,
	       (unsigned long long)counts.prefetches, (unsigned long long)counts.evicted_shared);
	CHECK(misses * 20 < pages, "%llu misses of %llu pages", (unsigned long long)misses,
	      (unsigned long long)pages);
	CHECK(counts.prefetches + misses < 1024 + 64 + 1, "%llu prefetches",
	      (unsigned long long)counts.prefetches);
	CHECK(!counts.waited_frames, "%llu waited", (unsigned long long)counts.waited_frames);
	check_rules();
	world_end();
}

/* Bytes that nobody will read do not travel; those that somebody may, do. */
static void clear_hint(const void *argument)
{
	struct features features = calm;
	struct played_page *page = &node[1].xen.page[3];
	struct dsm_engine_counts counts;
	unsigned int i;

	(void)argument;
	for (i = 0; i < 3; i++) {
		dice_begin();
		world_begin(&features);
		node[0].xen.page[3].word[9] = last[3][9] = 77;
		dsm_engine_set_clear_hint(node[1].engine, i);
		CHECK(played_use(&node[1].xen, 0, 3, DSM_XEN_WANT_M_NODATA, 1) == PLAYED_MISS, "miss");
		/* It went on and wants no page any more, or another byte of this one. */
		if (i == 2)
			node[1].xen.vcpu[0].want = DSM_XEN_WANT_M;
		settle_down();
		dsm_engine_get_counts(node[1].engine, &counts);
		CHECK(page->state == DSM_XEN_STATE_M && !node[1].xen.vcpu[0].waits, "it came");
		CHECK(page->word[9] == (i == 1 ? 0 : 77), "%u: %llu", i, (unsigned long long)page->word[9]);
		CHECK(counts.cleared == (i == 1) && counts.clears_late == (i == 2), "%u: %llu, %llu", i,
		      (unsigned long long)counts.cleared, (unsigned long long)counts.clears_late);
		check_rules();
		world_end();
	}
	/* Nobody waits: the page may have been here and gone again. */
	world_begin(&features);
	node[0].xen.page[3].word[9] = last[3][9] = 77;
	dsm_engine_set_clear_hint(node[1].engine, true);
	CHECK(played_use(&node[1].xen, 0, 3, DSM_XEN_WANT_M_NODATA, 1) == PLAYED_MISS, "a miss");
	node[1].xen.vcpu[0].waits = false;
	settle_down();
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(page->word[9] == 77 && counts.clears_late == 1, "%llu", (unsigned long long)page->word[9]);
	world_end();

	/* A question that has no answer. */
	world_begin(&features);
	dsm_engine_set_clear_hint(node[1].engine, true);
	CHECK(played_use(&node[1].xen, 0, 3, DSM_XEN_WANT_M_NODATA, 1) == PLAYED_MISS, "a miss");
	node[1].xen.break_page = -EPERM;
	settle_down();
	expect_failure(1, "a question about gfn 0x3: Operation not permitted");
	world_end();
}

static void expect_counted(unsigned int host, uint64_t reads, uint64_t writes, uint64_t taken, unsigned int hosts)
{
	struct dsm_profile_page page = { 0 };
	uint64_t ns;
	const struct dsm_profile *profile = dsm_engine_profile(node[host].engine, &ns);

	CHECK(profile && ns > 0 && dsm_profile_top(profile, &page, 1) == (reads + writes + taken > 0), "%u", host);
	CHECK(page.events[DSM_PROFILE_READ] == reads && page.events[DSM_PROFILE_WRITE] == writes &&
	      page.events[DSM_PROFILE_TAKEN] == taken && page.hosts == hosts && (!page.count || page.gfn == 3),
	      "host %u: %llu, %llu, %llu, 0x%x", host, (unsigned long long)page.events[0],
	      (unsigned long long)page.events[1], (unsigned long long)page.events[2], page.hosts);
}

/* A page of host 0 goes to host 1 and comes back: each host counts what it sees of that. */
static void counted_by_page(const void *argument)
{
	struct features features = calm;
	uint64_t ns;

	(void)argument;
	dice_begin();
	world_begin(&features);
	CHECK(!dsm_engine_profile(node[1].engine, &ns) && !ns, "nothing is counted at first");
	CHECK(played_use(&node[1].xen, 0, 3, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "a miss");
	settle_down();
	dsm_engine_set_profile(node[0].engine, true);
	dsm_engine_set_profile(node[1].engine, true);
	clock_ns += MS;
	settle_down();
	expect_counted(1, 0, 0, 0, 0);
	CHECK(played_use(&node[1].xen, 0, 3, DSM_XEN_WANT_M, 2) == PLAYED_MISS, "a miss");
	settle_down();
	expect_counted(0, 0, 0, 1, 2);
	expect_counted(1, 0, 1, 0, 0);
	CHECK(played_use(&node[0].xen, 0, 3, DSM_XEN_WANT_S, 3) == PLAYED_MISS, "a miss");
	settle_down();
	expect_counted(0, 1, 0, 1, 2);
	expect_counted(1, 0, 1, 1, 1);
	CHECK(played_use(&node[0].xen, 0, 3, DSM_XEN_WANT_M, 4) == PLAYED_MISS, "a miss");
	settle_down();
	expect_counted(0, 1, 1, 1, 2);
	expect_counted(1, 0, 1, 2, 1);
	dsm_engine_set_profile(node[1].engine, true);
	expect_counted(0, 1, 1, 1, 2);
	CHECK(played_use(&node[1].xen, 0, 3, DSM_XEN_WANT_S, 5) == PLAYED_MISS, "a miss");
	settle_down();
	expect_counted(0, 1, 1, 2, 2);
	expect_counted(1, 1, 0, 0, 0);
	dsm_engine_set_profile(node[1].engine, false);
	CHECK(!dsm_engine_profile(node[1].engine, &ns), "no more");
	world_end();
}

static void special_page(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&calm);
	node[0].xen.page[1].special = true;
	use(1, 0, 1, DSM_XEN_WANT_M);
	settle_down();
	settle_down();
	/* The miss was refused; the vCPU tried again. */
	if (!node[1].failure[0])
		use(1, 0, 1, DSM_XEN_WANT_M);
	expect_failure(1, "gfn 0x1 is needed here by vCPU 0 at RIP 0x");
	expect_failure(1, "and it can't leave alpha");
	CHECK(!strstr(node[1].failure, "class_u"), "no CPU is elsewhere: %s", node[1].failure);
	CHECK(node[0].warnings, "and the home's operator hears of it");
	world_end();
}

/* A tool that looks at one finds no memory, and is in nobody's way; a vCPU is. */
static void special_page_and_a_tool(const void *argument)
{
	unsigned int i;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	node[0].xen.page[1].special = true;
	for (i = 0; i < 3; i++) {
		CHECK(played_use(&node[1].xen, NO_VCPU, 1, i ? DSM_XEN_WANT_M : DSM_XEN_WANT_S, 0) == PLAYED_MISS,
		      "look %u", i);
		settle_down();
		CHECK(!node[1].failure[0], "look %u: %s", i, node[1].failure);
		CHECK(node[1].xen.page[1].foreign_hole, "look %u: it is told nothing", i);
		CHECK(played_use(&node[1].xen, NO_VCPU, 1, DSM_XEN_WANT_S, 0) == PLAYED_HOLE, "look %u: it finds none", i);
		settle_down();
	}
	use(1, 0, 1, DSM_XEN_WANT_M);
	settle_down();
	settle_down();
	if (!node[1].failure[0])
		use(1, 0, 1, DSM_XEN_WANT_M);
	expect_failure(1, "gfn 0x1 is needed here by vCPU 0 at RIP 0x");
	world_end();
}

static void shortly(void)
{
	unsigned int h, i, rounds;

	for (rounds = 0; rounds < 4; rounds++) {
		for (h = 0; h < now_playing.hosts; h++) {
			dsm_engine_misses(node[h].engine);
			dsm_engine_run(node[h].engine);
			for (i = 0; i < now_playing.hosts; i++)
				while (i != h && deliver(h, i))
					;
		}
		clock_ns += 100 * US;
		for (h = 0; h < now_playing.hosts; h++)
			dsm_engine_tick(node[h].engine);
	}
}

/*
 * It is plain memory a moment after a tool was told that it is not: a vCPU that touches
 * it then has it, as if no tool had looked.  So it is if the tool's answer is on its way.
 */
static void plain_after_a_tool(const void *argument)
{
	unsigned int late;

	(void)argument;
	for (late = 0; late < 2; late++) {
		dice_begin();
		world_begin(&calm);
		node[0].xen.page[1].special = true;
		CHECK(played_use(&node[1].xen, NO_VCPU, 1, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "look");
		if (late) {
			dsm_engine_misses(node[1].engine);
			dsm_engine_run(node[1].engine);
			CHECK(deliver(1, 0), "asked");
			dsm_engine_run(node[0].engine);
			dsm_engine_tick(node[0].engine);
		} else {
			shortly();
			CHECK(node[1].xen.page[1].foreign_hole, "it finds none");
		}
		node[0].xen.page[1].special = false;
		use(1, 0, 1, DSM_XEN_WANT_M);
		CHECK(!node[0].failure[0] && !node[1].failure[0], "%u: %s", late, node[1].failure);
		/* What the tool has asked for may come first. */
		if (node[1].xen.page[1].state != DSM_XEN_STATE_M)
			use(1, 0, 1, DSM_XEN_WANT_M);
		CHECK(node[1].xen.page[1].state == DSM_XEN_STATE_M, "%u: it comes", late);
		world_end();
	}
}

static void pinned_page(const void *argument)
{
	struct dsm_engine_counts counts;
	unsigned int i;
	uint64_t before;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	node[0].xen.page[1].pinned = true;
	use(1, 0, 1, DSM_XEN_WANT_M);
	for (i = 0; i < 4; i++)
		settle_down();
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(counts.pins && counts.retries > 2, "%llu pins, %llu retries",
	      (unsigned long long)counts.pins, (unsigned long long)counts.retries);
	CHECK(!node[1].xen.vcpu[0].waits, "the vCPU tries again");
	CHECK(!dsm_engine_failure(node[0].engine) && !dsm_engine_failure(node[1].engine), "goes on");
	CHECK(node[0].warnings && node[1].warnings, "its operator hears of it, and who waits for it");
	node[0].xen.page[1].pinned = false;
	use(1, 0, 1, DSM_XEN_WANT_M);
	CHECK(node[1].xen.page[1].state == DSM_XEN_STATE_M, "it comes");
	/* The other way round: a holder says so to the home. */
	node[1].xen.page[1].pinned = true;
	node[0].warnings = 0;
	use(0, 0, 1, DSM_XEN_WANT_M);
	for (i = 0; i < 4; i++)
		settle_down();
	CHECK(node[0].warnings && !dsm_engine_failure(node[0].engine), "the home's operator hears of it");
	/* Another time begins anew: 50 us after the first try, and twice as long each time, for 2 ms. */
	node[1].xen.page[1].pinned = false;
	use(0, 0, 1, DSM_XEN_WANT_S);
	node[1].xen.page[1].pinned = true;
	dsm_engine_get_counts(node[1].engine, &counts);
	before = counts.retries;
	CHECK(played_use(&node[0].xen, 0, 1, DSM_XEN_WANT_M, 77) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[0].engine);
	dsm_engine_run(node[0].engine);
	CHECK(deliver(0, 1), "it is to give its copy up");
	dsm_engine_run(node[1].engine);
	for (i = 0; i < 100 && !in_channel[1][0]; i++) {
		clock_ns = dsm_engine_next(node[1].engine);
		dsm_engine_tick(node[1].engine);
	}
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.retries > before + 3 && counts.retries < before + 9, "%llu retries",
	      (unsigned long long)(counts.retries - before));
	world_end();
}

static void drop_and_populate(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&calm);
	/* One that is at home. */
	CHECK(!dsm_engine_drop(node[1].engine, 3), "drop");
	settle_down();
	CHECK(node[1].nr_finished == 1 && node[1].finished == DSM_R_NONE &&
	      node[0].xen.page[3].state == DSM_XEN_STATE_HOLE, "%s",
	      dsm_reason_name(node[1].finished));
	node[1].nr_finished = 0;
	use(1, 0, 0, DSM_XEN_WANT_M);
	CHECK(!dsm_engine_drop(node[2].engine, 0), "drop");
	settle_down();
	CHECK(node[2].nr_finished == 1 && node[2].finished == DSM_R_NONE &&
	      !node[2].finished_gfn, "%s", dsm_reason_name(node[2].finished));
	CHECK(node[0].xen.page[0].state == DSM_XEN_STATE_HOLE &&
	      node[1].xen.page[0].state == DSM_XEN_STATE_I, "a hole");
	/* There is no memory: the access goes on without. */
	use(1, 0, 0, DSM_XEN_WANT_S);
	CHECK(!node[1].xen.vcpu[0].waits, "the vCPU goes on");
	CHECK(!dsm_engine_populate(node[1].engine, 0), "populate");
	settle_down();
	CHECK(node[1].nr_finished == 1 && node[1].finished == DSM_R_NONE, "%s",
	      dsm_reason_name(node[1].finished));
	CHECK(!dsm_engine_populate(node[1].engine, 0), "again");
	settle_down();
	CHECK(node[1].nr_finished == 2 && node[1].finished == DSM_R_EXISTS, "%s",
	      dsm_reason_name(node[1].finished));
	clock_ns += 20 * MS;
	settle_down();
	use(1, 0, 0, DSM_XEN_WANT_M);
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_M && !node[1].xen.page[0].word[9],
	      "zeroed memory");
	CHECK(dsm_engine_drop(node[1].engine, 999) == -EINVAL, "no such page");
	check_rules();
	/* One that is in use at home stays there, and so does its memory. */
	node[0].xen.page[1].pinned = true;
	node[0].xen.must_not_refuse = false;	/* INVAL, and then DROP of what is there still */
	CHECK(!dsm_engine_drop(node[1].engine, 1), "drop");
	settle_down();
	CHECK(node[1].nr_finished == 3 && node[1].finished == DSM_R_PIN &&
	      node[0].xen.page[1].state == DSM_XEN_STATE_M, "%s",
	      dsm_reason_name(node[1].finished));
	/* The home has no memory for a hole. */
	node[0].xen.host_frames = 0;
	CHECK(!dsm_engine_populate(node[1].engine, 3), "populate");
	settle_down();
	CHECK(node[1].nr_finished == 4 && node[1].finished == DSM_R_NOMEM, "%s",
	      dsm_reason_name(node[1].finished));
	check_rules();
	world_end();
}

/* A peer does not take memory that its home has not given the VM. */
static void populate_behind_the_end(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&calm);
	CHECK(played_guest_frees(&node[0].xen, 2) && played_guest_frees(&node[0].xen, 3), "holes");
	dsm_engine_open_range(node[0].engine, 0, 3);
	settle_down();
	CHECK(!dsm_engine_populate(node[1].engine, 3), "populate");
	settle_down();
	CHECK(node[1].nr_finished == 1 && node[1].finished == DSM_R_NOMEM &&
	      node[0].xen.page[3].state == DSM_XEN_STATE_HOLE, "%s",
	      dsm_reason_name(node[1].finished));
	CHECK(!dsm_engine_populate(node[1].engine, 2), "populate");
	settle_down();
	CHECK(node[1].nr_finished == 2 && node[1].finished == DSM_R_NONE &&
	      node[0].xen.page[2].state == DSM_XEN_STATE_M, "%s",
	      dsm_reason_name(node[1].finished));
	check_rules();
	world_end();
}

/* What is under way for others only is not quiet either. */
static void not_quiet(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&calm);
	use(1, 0, 0, DSM_XEN_WANT_M);
	use(2, 0, 1, DSM_XEN_WANT_M);
	CHECK(dsm_engine_is_quiet(node[0].engine), "quiet");
	CHECK(played_use(&node[2].xen, 0, 0, DSM_XEN_WANT_M, 2) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[2].engine);
	dsm_engine_run(node[2].engine);
	CHECK(deliver(2, 0), "a request");
	dsm_engine_run(node[0].engine);
	CHECK(!dsm_engine_is_quiet(node[0].engine), "a page of 1 is recalled for 2");
	/* What 2 is asked meanwhile is no answer to it. */
	CHECK(played_use(&node[0].xen, 0, 1, DSM_XEN_WANT_S, 3) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[0].engine);
	dsm_engine_run(node[0].engine);
	CHECK(deliver(0, 2), "a recall");
	dsm_engine_run(node[2].engine);
	CHECK(deliver(2, 0), "its answer");
	dsm_engine_run(node[0].engine);
	CHECK(!node[0].xen.vcpu[0].waits && !dsm_engine_is_quiet(node[0].engine), "2 waits still");
	settle_down();
	CHECK(dsm_engine_is_quiet(node[0].engine), "quiet again");
	/* What a host that is gone has asked for nobody waits for. */
	CHECK(node[2].xen.page[0].state == DSM_XEN_STATE_M, "2 has it");
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_M, 4) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(deliver(1, 0), "a request");
	dsm_engine_run(node[0].engine);
	dsm_engine_bind(node[0].engine, 1, false);
	deaf[1] = true;
	dsm_engine_peer_down(node[0].engine, 1, true, "");
	CHECK(!dsm_engine_failure(node[0].engine), "%s", node[0].failure);
	settle_down();
	CHECK(node[0].xen.page[0].state == DSM_XEN_STATE_M, "it came home instead");
	CHECK(dsm_engine_is_quiet(node[0].engine), "quiet without it");
	world_end();
}

/*
 * Somebody else's request is ahead of ours at the home: the vCPU is woken before
 * its page comes, and what is written meanwhile must not be zeros.
 */
static void clear_hint_in_a_queue(const void *argument)
{
	struct features features = calm;
	struct dsm_engine_counts counts;
	unsigned int i;

	(void)argument;
	dice_begin();
	features.hosts = 4;
	features.clear_hint = true;
	features.no_leases = true;
	world_begin(&features);
	use(1, 0, 0, DSM_XEN_WANT_M);
	node[1].xen.page[0].word[0] = last[0][0] = 1;
	/* 2 reads, 3 writes, then the home clears; 1 has not answered yet. */
	for (i = 2; i < 4; i++) {
		played_use(&node[i].xen, 0, 0, i == 2 ? DSM_XEN_WANT_S : DSM_XEN_WANT_M, 80 + i);
		dsm_engine_misses(node[i].engine);
		dsm_engine_run(node[i].engine);
		CHECK(deliver(i, 0), "a request of %u", i);
	}
	played_use(&node[0].xen, 0, 0, DSM_XEN_WANT_M_NODATA, 90);
	dsm_engine_misses(node[0].engine);
	dsm_engine_run(node[0].engine);
	CHECK(deliver(0, 1), "a recall");
	dsm_engine_run(node[1].engine);
	CHECK(deliver(1, 0), "its answer");
	dsm_engine_run(node[0].engine);
	CHECK(!node[0].xen.vcpu[0].waits, "it is woken, and does something else first");
	for (i = 0; i < 8 && node[3].xen.page[0].state != DSM_XEN_STATE_M; i++) {
		unsigned int h;

		for (h = 1; h < 4; h++) {
			while (node[3].xen.page[0].state != DSM_XEN_STATE_M && deliver(0, h))
				dsm_engine_run(node[h].engine);
			if (node[3].xen.page[0].state == DSM_XEN_STATE_M)
				break;
			while (deliver(h, 0))
				;
			dsm_engine_run(node[0].engine);
		}
	}
	CHECK(node[3].xen.page[0].state == DSM_XEN_STATE_M, "3 has it");
	node[3].xen.page[0].word[5] = last[0][5] = 77;
	settle_down();
	CHECK(node[0].xen.page[0].state == DSM_XEN_STATE_M &&
	      node[0].xen.page[0].word[5] == 77, "what 3 wrote is at home");
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(!counts.cleared && counts.clears_late == 1, "%llu, %llu",
	      (unsigned long long)counts.cleared, (unsigned long long)counts.clears_late);
	check_rules();
	world_end();
}

/* Host @host's vCPU has missed @gfn of the home: it comes, and time stands still. */
static void comes(unsigned int host, unsigned int vcpu, uint64_t gfn, uint64_t rip)
{
	unsigned int i;

	CHECK(played_use(&node[host].xen, vcpu, gfn, DSM_XEN_WANT_M, rip) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[host].engine);
	for (i = 0; i < 3; i++) {
		dsm_engine_run(node[host].engine);
		deliver(host, 0);
		dsm_engine_run(node[0].engine);
		deliver(0, host);
	}
	dsm_engine_run(node[host].engine);
	CHECK(!node[host].xen.vcpu[vcpu].waits, "it waits");
}

/* The home wants @gfn back, and has said so. */
static void is_recalled(unsigned int host, unsigned int vcpu, uint64_t gfn)
{
	CHECK(played_use(&node[0].xen, vcpu, gfn, DSM_XEN_WANT_M, 1) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[0].engine);
	dsm_engine_run(node[0].engine);
	CHECK(deliver(0, host), "a recall");
	dsm_engine_run(node[host].engine);
}

/* Who has lost pages keeps the next ones longer. */
static void leases_get_longer(const void *argument)
{
	struct dsm_engine_params p;
	char text[DSM_ENGINE_TEXT];
	uint64_t woken, next;
	unsigned int i;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	p = params_of(&node[1]);
	p.max_losses = 100;
	dsm_engine_destroy(node[1].engine);
	CHECK(!dsm_engine_create(&p, &node[1].engine, text), "%s", text);
	dsm_engine_peer_up(node[1].engine, 0, 7);
	dsm_engine_peer_up(node[1].engine, 2, 7);
	for (i = 0; i < 3; i++) {
		use_and_lose(1, 0);
		settle_down();
	}
	comes(1, 0, 0, 4711);
	woken = clock_ns;
	is_recalled(1, 1, 0);
	next = dsm_engine_next(node[1].engine);
	CHECK(next >= woken + 800 * US && next <= woken + 2400 * US, "due %llu ns after it came",
	      (unsigned long long)(next - woken));
	settle_down();
	/* With another instruction all is as at first. */
	comes(1, 0, 1, 4712);
	woken = clock_ns;
	is_recalled(1, 0, 1);
	next = dsm_engine_next(node[1].engine);
	CHECK(next >= woken + 100 * US && next <= woken + 300 * US, "due %llu ns after it came",
	      (unsigned long long)(next - woken));
	world_end();
}

/* Each vCPU ends its own leases. */
static void whose_lease(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&calm);
	comes(1, 1, 0, 1);
	comes(1, 0, 1, 1);
	is_recalled(1, 0, 0);
	is_recalled(1, 1, 1);
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_M &&
	      node[1].xen.page[1].state == DSM_XEN_STATE_M, "leased");
	CHECK(played_use(&node[1].xen, 1, 2, DSM_XEN_WANT_S, 2) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_I, "it has gone on");
	CHECK(node[1].xen.page[1].state == DSM_XEN_STATE_M, "the other one has not");
	settle_down();
	/* What it had is another's now. */
	comes(1, 1, 0, 3);
	clock_ns += 2 * MS;
	is_recalled(1, 0, 0);
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_I, "its lease was over");
	settle_down();
	comes(1, 0, 0, 4);
	is_recalled(1, 0, 0);
	CHECK(played_use(&node[1].xen, 1, 3, DSM_XEN_WANT_S, 5) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_M, "leased to the other one");
	settle_down();
	check_rules();
	world_end();
}

/* Who waits for a frame waits for a lease, and not for the next look at all of them. */
static void frames_of_leased_pages(const void *argument)
{
	struct features features = calm;
	uint64_t gfn, next;

	(void)argument;
	dice_begin();
	features.pages = 120;
	features.vcpus = 1;
	features.frames = 32;
	world_begin(&features);
	dsm_engine_tick(node[1].engine);	/* a sign of life */
	for (gfn = 0; gfn < 32; gfn++)
		comes(1, 0, gfn, 4711);
	CHECK(played_use(&node[1].xen, 0, gfn, DSM_XEN_WANT_M, 4711) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(node[1].xen.vcpu[0].waits, "for a frame");
	next = dsm_engine_next(node[1].engine);
	CHECK(next <= clock_ns + 300 * US, "due in %llu ns", (unsigned long long)(next - clock_ns));
	settle_down();
	CHECK(!node[1].xen.vcpu[0].waits, "it comes");
	check_rules();
	world_end();
}

/* Tools try again and again: a page is one place in line, whatever is wanted of it. */
static void tools_in_line(const void *argument)
{
	struct features features = calm;
	const struct parcel *parcel;
	unsigned int i;

	(void)argument;
	dice_begin();
	features.ring = 128;
	world_begin(&features);
	/* More than Xen would say of one page. */
	for (i = 0; i < 80; i++)
		node[1].xen.ring[node[1].xen.in_ring++] = (struct dsm_xen_entry){
			.miss = { .want = DSM_XEN_WANT_S, .foreign = true },
		};
	dsm_engine_misses(node[1].engine);
	CHECK(!node[1].xen.in_ring, "%u are left in the ring", node[1].xen.in_ring);
	played_use(&node[1].xen, NO_VCPU, 0, DSM_XEN_WANT_M, 0);
	played_use(&node[1].xen, NO_VCPU, 1, DSM_XEN_WANT_S, 0);
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(in_channel[1][0] == 2, "%u requests", in_channel[1][0]);
	parcel = STAILQ_FIRST(&channel[1][0]);
	CHECK(parcel->msg.type == DSM_GETM && !parcel->msg.gfn, "%s of gfn %llu",
	      dsm_type_name(parcel->msg.type), (unsigned long long)parcel->msg.gfn);
	settle_down();
	check_rules();
	world_end();
}

/* What was lost is a loss for a second, and then the page is forgotten. */
static void losses_are_forgotten(const void *argument)
{
	struct dsm_engine_counts counts;
	unsigned int i;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	use_and_lose(1, 0);
	for (i = 0; i < 2; i++) {
		dsm_engine_get_counts(node[1].engine, &counts);
		CHECK(counts.pages == !i, "%llu pages are known", (unsigned long long)counts.pages);
		clock_ns += 1100 * MS;
		dsm_engine_tick(node[1].engine);
	}
	check_rules();
	world_end();
}

/* A vCPU that has what it needs gives the token back in token_ns, not when others complain. */
static void token_that_is_not_needed(const void *argument)
{
	struct dsm_engine_params p;
	const struct parcel *parcel;
	char text[DSM_ENGINE_TEXT];
	unsigned int i;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	p = params_of(&node[1]);
	p.max_losses = 1;
	dsm_engine_destroy(node[1].engine);
	CHECK(!dsm_engine_create(&p, &node[1].engine, text), "%s", text);
	dsm_engine_peer_up(node[1].engine, 0, 7);
	dsm_engine_peer_up(node[1].engine, 2, 7);
	use_and_lose(1, 0);
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_M, 4711) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	parcel = STAILQ_FIRST(&channel[1][0]);
	CHECK(parcel && parcel->msg.type == DSM_TOKEN_REQ, "it asks");
	for (i = 0; i < 100 && node[1].xen.vcpu[0].waits; i++) {
		deliver(1, 0);
		dsm_engine_run(node[0].engine);
		deliver(0, 1);
		dsm_engine_run(node[1].engine);
		clock_ns += 10 * US;
		dsm_engine_tick(node[0].engine);
	}
	CHECK(!node[1].xen.vcpu[0].waits, "its page comes");
	while (deliver(1, 0))
		;
	clock_ns += 6 * MS;
	dsm_engine_tick(node[1].engine);
	parcel = STAILQ_FIRST(&channel[1][0]);
	CHECK(parcel && parcel->msg.type == DSM_TOKEN_FREE, "it goes on");
	check_rules();
	world_end();
}

/* Two vCPUs of a host want the token: the second one has it after the first one. */
static void token_for_two_vcpus(const void *argument)
{
	struct dsm_engine_params p;
	char text[DSM_ENGINE_TEXT];
	unsigned int i;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	p = params_of(&node[1]);
	p.max_losses = 1;
	dsm_engine_destroy(node[1].engine);
	CHECK(!dsm_engine_create(&p, &node[1].engine, text), "%s", text);
	dsm_engine_peer_up(node[1].engine, 0, 7);
	dsm_engine_peer_up(node[1].engine, 2, 7);
	for (i = 0; i < 2; i++)
		use_and_lose_by(1, i, i);
	for (i = 0; i < 2; i++)
		played_use(&node[1].xen, i, i, DSM_XEN_WANT_M, 4711);
	for (i = 0; i < 400 && (node[1].xen.vcpu[0].waits || node[1].xen.vcpu[1].waits); i++) {
		clock_ns += 100 * US;
		dsm_engine_misses(node[1].engine);
		dsm_engine_tick(node[1].engine);
		deliver(1, 0);
		dsm_engine_run(node[0].engine);
		deliver(0, 1);
		dsm_engine_run(node[1].engine);
	}
	CHECK(!node[1].xen.vcpu[0].waits && !node[1].xen.vcpu[1].waits, "the other one waits for the token for ever");
	check_rules();
	world_end();
}

/* A vCPU whose page does not come for long has the token only for a while. */
static void token_for_a_while(const void *argument)
{
	struct dsm_engine_params p;
	char text[DSM_ENGINE_TEXT];
	unsigned int i, host;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	for (host = 1; host < 3; host++) {
		p = params_of(&node[host]);
		p.max_losses = 1;
		dsm_engine_destroy(node[host].engine);
		CHECK(!dsm_engine_create(&p, &node[host].engine, text), "%s", text);
		for (i = 0; i < 3; i++)
			if (i != host)
				dsm_engine_peer_up(node[host].engine, i, 7);
	}
	for (host = 1; host < 3; host++)
		use_and_lose(host, host - 1);
	/* Now gfn 0 stays at home for ever, and host 1 has the token first. */
	node[0].xen.page[0].pinned = true;
	for (host = 1; host < 3; host++) {
		played_use(&node[host].xen, 0, host - 1, DSM_XEN_WANT_M, 4711);
		dsm_engine_misses(node[host].engine);
		dsm_engine_run(node[host].engine);
		CHECK(STAILQ_FIRST(&channel[host][0])->msg.type == DSM_TOKEN_REQ, "it asks");
		deliver(host, 0);
	}
	for (i = 0; i < 4000 && node[2].xen.vcpu[0].waits; i++) {
		clock_ns += 100 * US;
		for (host = 0; host < 3; host++) {
			dsm_engine_misses(node[host].engine);
			dsm_engine_tick(node[host].engine);
		}
		for (host = 1; host < 3; host++) {
			deliver(0, host);
			dsm_engine_run(node[host].engine);
			deliver(host, 0);
		}
		/* It misses again as soon as it is woken. */
		if (!node[1].xen.vcpu[0].waits &&
		    played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_M, 4711) == PLAYED_MISS)
			dsm_engine_misses(node[1].engine);
		if (i == 400)
			CHECK(node[2].xen.vcpu[0].waits, "the first one has had a while");
	}
	CHECK(!node[2].xen.vcpu[0].waits, "the other one waits for the token for ever");
	node[0].xen.page[0].pinned = false;
	for (i = 0; i < 40 && node[1].xen.page[0].state != DSM_XEN_STATE_M; i++) {
		clock_ns += 20 * MS;
		settle_down();
		if (!node[1].xen.vcpu[0].waits)
			played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_M, 4711);
	}
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_M, "and the first one its page");
	check_rules();
	world_end();
}

/* Without frames a miss waits until there is one, and the first in line is first. */
static void no_frames(const void *argument)
{
	struct features features = calm;
	struct dsm_engine_counts counts;
	uint64_t gfn;

	(void)argument;
	dice_begin();
	features.pages = 120;
	features.vcpus = 1;
	features.frames = 32;
	world_begin(&features);
	/* Pages in use can't be evicted. */
	for (gfn = 40; gfn < 72; gfn++) {
		node[0].xen.page[gfn].pinned = true;
		use(0, 0, gfn, DSM_XEN_WANT_S);
	}
	CHECK(dsm_engine_guests(node[0].engine) == 32, "%u", dsm_engine_guests(node[0].engine));
	use(0, 0, 100, DSM_XEN_WANT_S);
	CHECK(node[0].xen.vcpu[0].waits, "it waits for a frame");
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(counts.waited_frames && counts.waiting == 1 && counts.frames_used == 32,
	      "%llu %u %u", (unsigned long long)counts.waited_frames, counts.waiting,
	      counts.frames_used);
	node[0].xen.page[50].pinned = false;
	settle_down();
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(!node[0].xen.vcpu[0].waits && counts.read_fault.count == 33, "it had one");
	check_rules();
	world_end();
}

/* Xen refuses all for a domain that is being destroyed: that is no failure. */
static void destroyed(const void *argument)
{
	(void)argument;
	dice_begin();
	world_begin(&calm);
	node[0].xen.ended = true;
	dsm_engine_tick(node[0].engine);
	CHECK(node[0].over && !node[0].xen.crashes && !node[0].failure[0], "over");
	CHECK(!strcmp(dsm_engine_failure(node[0].engine), "its domain has ended"), "%s",
	      dsm_engine_failure(node[0].engine));
	dsm_engine_fail(node[0].engine, "later");
	dsm_engine_end(node[0].engine, "later");
	CHECK(!strcmp(dsm_engine_failure(node[0].engine), "its domain has ended"), "the first counts");
}

/* A page was in use as it was to give its frame away: it is tried again, though nothing else happens. */
static void frames_in_use(const void *argument)
{
	struct features features = calm;
	uint64_t gfn;

	(void)argument;
	dice_begin();
	features.hosts = 2;
	features.pages = 120;
	features.vcpus = 1;
	features.frames = 32;
	world_begin(&features);
	for (gfn = 60; gfn < 92; gfn++) {
		node[0].xen.page[gfn].pinned = true;
		use(0, 0, gfn, DSM_XEN_WANT_S);
	}
	pass(0, 100);
	settle_down();
	CHECK(played_use(&node[0].xen, 0, 100, DSM_XEN_WANT_S, 5000) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[0].engine);
	dsm_engine_run(node[0].engine);
	for (gfn = 60; gfn < 92; gfn++)
		node[0].xen.page[gfn].pinned = false;
	pass(0, 3);
	CHECK(in_channel[0][1] >= 2, "%u messages: nobody looked again", in_channel[0][1]);
	settle_down();
	CHECK(!node[0].xen.vcpu[0].waits, "it waits");
	/* And once there are frames nobody looks any more. */
	pass(0, 100);
	CHECK(dsm_engine_next(node[0].engine) > clock_ns + 100 * MS, "it looks for ever");
	check_rules();
	world_end();
}

/* What waits for a write-back to be answered is a request, too: its home counts them. */
static void requests_after_writebacks(const void *argument)
{
	struct features features = calm;
	struct dsm_engine_counts counts;
	unsigned int asked = 0;
	struct parcel *parcel;
	uint64_t gfn;

	(void)argument;
	dice_begin();
	features.hosts = 2;
	features.pages = 800;
	features.frames = 200;
	features.credits = 400;
	world_begin(&features);
	for (gfn = 0; gfn < 30; gfn++)
		use(1, 0, gfn, DSM_XEN_WANT_M);
	clock_ns += 100 * MS;
	settle_down();
	CHECK(!dsm_engine_evacuate(node[1].engine, 0, 30), "begin");
	dsm_engine_run(node[1].engine);
	CHECK(in_channel[1][0] == 30, "%u PUTM", in_channel[1][0]);
	/* Other domains want these pages. */
	for (gfn = 0; gfn < 30; gfn++) {
		CHECK(played_use(&node[1].xen, NO_VCPU, gfn, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "a miss");
		dsm_engine_misses(node[1].engine);
	}
	dsm_engine_run(node[1].engine);
	while (deliver(1, 0))
		;
	dsm_engine_run(node[0].engine);
	for (gfn = 40; gfn < 400 && !dsm_engine_drop(node[1].engine, gfn); gfn++)
		;
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.requests == DSM_ENGINE_REQUESTS, "%u requests", counts.requests);
	while (deliver(0, 1))
		;
	dsm_engine_run(node[1].engine);
	STAILQ_FOREACH(parcel, &channel[1][0], link)
		asked += parcel->msg.type <= DSM_POPULATE;
	CHECK(asked == DSM_ENGINE_REQUESTS, "%u requests are out", asked);
	settle_down();
	check_rules();
	world_end();
}

static void sign_of_life(const void *argument)
{
	unsigned int before;

	(void)argument;
	dice_begin();
	world_begin(&calm);
	dsm_engine_tick(node[0].engine);
	CHECK(node[0].xen.keepalives == 1 && node[0].xen.keepalive_ms == 10000, "at once");
	before = node[0].xen.keepalives;
	clock_ns += 2499 * MS;
	dsm_engine_tick(node[0].engine);
	CHECK(node[0].xen.keepalives == before, "too early");
	CHECK(dsm_engine_next(node[0].engine) == clock_ns + MS, "it is due then");
	clock_ns += MS;
	dsm_engine_tick(node[0].engine);
	CHECK(node[0].xen.keepalives == before + 1, "four times in its time");
	node[0].xen.break_keepalive = -ESRCH;
	clock_ns += 10000 * MS;
	dsm_engine_tick(node[0].engine);
	expect_failure(0, "sign of life: No such process");
	before = node[0].xen.keepalives;
	clock_ns += 10000 * MS;
	dsm_engine_tick(node[0].engine);
	CHECK(node[0].xen.keepalives == before, "a VM that has failed does not live");
	world_end();
}

static void xen_refuses(const void *argument)
{
	const struct dsm_xen_miss nonsense[] = {
		{ .gfn = 999, .want = DSM_XEN_WANT_S }, { .gfn = 0, .want = 0 },
		{ .gfn = 0, .want = 4 }, { .gfn = 0, .want = 1, .vcpu = 2 },
	};
	unsigned int i;

	(void)argument;
	dice_begin();
	for (i = 0; i < NR(nonsense); i++) {
		world_begin(&calm);
		node[0].xen.ring[0] = (struct dsm_xen_entry){ .miss = nonsense[i] };
		node[0].xen.in_ring = 1;
		dsm_engine_misses(node[0].engine);
		expect_failure(0, "Xen's ring: vCPU");
		world_end();
	}
	world_begin(&calm);
	node[0].xen.break_misses = -EIO;
	dsm_engine_misses(node[0].engine);
	expect_failure(0, "Xen's ring: Input/output error");
	world_end();

	world_begin(&calm);
	node[1].xen.break_page = -ESRCH;
	use(1, 0, 0, DSM_XEN_WANT_S);
	expect_failure(1, "Xen does not do page operations: No such process");
	world_end();

	world_begin(&calm);
	node[1].xen.must_not_refuse = false;
	node[1].xen.pool = 0;
	use(1, 0, 0, DSM_XEN_WANT_S);
	expect_failure(1, "Xen refuses INSTALL_S of gfn 0x0: No space left on device");
	world_end();
}

static void breaches(const void *argument)
{
	uint8_t page[DSM_PAGE_BYTES] = { 0 };
	static const struct {
		struct dsm_msg msg;
		bool page;
		const char *words;
	} table[] = {
		{ { .type = DSM_GETS, .epoch = 7, .gfn = 5 }, false, "home is another host" },
		{ { .type = DSM_GETS, .epoch = 8, .gfn = 0 }, false, "of another connection" },
		{ { .type = DSM_GETS, .epoch = 7, .gfn = 99 }, false, "no such page" },
		{ { .type = DSM_PUTM, .epoch = 7, .gfn = 0, .txn = 3 }, true, "than the owner" },
		{ { .type = DSM_PUTM, .epoch = 7, .gfn = 0, .txn = 3 }, false, "a length" },
		{ { .type = DSM_PUTS, .epoch = 7, .gfn = 0 }, false, "than a sharer" },
		{ { .type = DSM_RDATA, .epoch = 7, .gfn = 0, .txn = 1 }, true, "nobody waits for" },
		{ { .type = DSM_GRANT, .epoch = 7, .gfn = 4, .txn = 1 }, false, "nothing was requested" },
		{ { .type = DSM_RECALL_I, .epoch = 7, .gfn = 4, .txn = 1 }, false, "what is not here" },
		{ { .type = DSM_TOKEN_GRANT, .epoch = 7 }, false, "home is another host" },
		{ { .type = DSM_TOKEN_FREE, .epoch = 7 }, false, "the token is elsewhere" },
		{ { .type = 77, .epoch = 7 }, false, "no such message" },
	};
	char words[64];
	unsigned int i;

	(void)argument;
	dice_begin();
	for (i = 0; i < NR(table); i++) {
		world_begin(&calm);
		dsm_engine_message(node[0].engine, 1, &table[i].msg,
				   table[i].page ? page : NULL);
		snprintf(words, sizeof(words), "host beta is lost (it breaks the protocol: %s of gfn 0x%llx: ",
			 dsm_type_name(table[i].msg.type),
			 (unsigned long long)table[i].msg.gfn);
		expect_failure(0, words);
		expect_failure(0, table[i].words);
		world_end();
	}
}

/* A host that only lends memory sees what is its own, and asks for nothing. */
static void only_lends(const void *argument)
{
	static const uint8_t types[] = {
		DSM_GETS, DSM_GETM, DSM_DROP, DSM_POPULATE, DSM_TOKEN_REQ,
	};
	struct features features = calm;
	struct dsm_engine_counts counts;
	struct dsm_msg msg = { .epoch = 7 };
	unsigned int i;

	(void)argument;
	dice_begin();
	features.lenders = 1 << 1;
	for (i = 0; i < NR(types); i++) {
		world_begin(&features);
		use(0, 0, 4, DSM_XEN_WANT_M);
		CHECK(node[0].xen.page[4].state == DSM_XEN_STATE_M, "it lends");
		use(2, 0, 4, DSM_XEN_WANT_S);
		use(2, 0, 0, DSM_XEN_WANT_S);
		CHECK(node[2].xen.page[4].state == DSM_XEN_STATE_S &&
		      node[2].xen.page[0].state == DSM_XEN_STATE_S, "others ask");
		msg.type = types[i];
		dsm_engine_message(node[0].engine, 1, &msg, NULL);
		expect_failure(0, "host beta is lost (it breaks the protocol: ");
		expect_failure(0, "it only lends memory, and has nothing to ask for");
		world_end();
	}

	/* A tool there: its own pages, wherever they are; of others none, for a moment. */
	world_begin(&features);
	use(0, 0, 4, DSM_XEN_WANT_M);
	CHECK(played_use(&node[1].xen, NO_VCPU, 4, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "a miss");
	settle_down();
	CHECK(node[1].xen.page[4].state == DSM_XEN_STATE_S && !node[1].warnings, "it comes");
	CHECK(played_use(&node[1].xen, NO_VCPU, 0, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	dsm_engine_run(node[1].engine);
	CHECK(!in_channel[1][0] && node[1].warnings == 1, "nobody is asked");
	CHECK(played_use(&node[1].xen, NO_VCPU, 0, DSM_XEN_WANT_S, 0) == PLAYED_HOLE, "it finds no memory");
	CHECK(node[1].xen.page[0].state == DSM_XEN_STATE_I, "the page stays as it is");
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.foreign_faults == 2 && counts.holes == 1 && counts.pages == 1, "%llu, %llu, %llu",
	      (unsigned long long)counts.foreign_faults, (unsigned long long)counts.holes,
	      (unsigned long long)counts.pages);
	check_rules();
	/* No vCPU is there. */
	CHECK(played_use(&node[1].xen, 0, 0, DSM_XEN_WANT_S, 1) == PLAYED_MISS, "a miss");
	dsm_engine_misses(node[1].engine);
	expect_failure(1, "Xen's ring: vCPU 0 wants 1 of gfn 0x0, which makes no sense");
	world_end();
}

/* A peer that asks for ever more pages, none of which can be given. */
static void too_many_requests(const void *argument)
{
	struct dsm_engine_params p;
	struct dsm_msg msg = { .type = DSM_GETM, .epoch = 9 };
	char text[DSM_ENGINE_TEXT];

	(void)argument;
	dice_begin();
	world_begin(&calm);
	p = params_of(&node[0]);
	p.range[0].end = 4096;
	p.nr_ranges = 1;
	dsm_engine_destroy(node[0].engine);
	CHECK(!dsm_engine_create(&p, &node[0].engine, text), "%s", text);
	dsm_engine_peer_up(node[0].engine, 1, 9);
	dsm_engine_peer_up(node[0].engine, 2, 9);
	/* Host 1 has all; then host 2 asks for all, and host 1 says nothing. */
	node[0].xen.nr_pages = PLAYED_PAGES;
	for (msg.gfn = 0; msg.gfn < PLAYED_PAGES; msg.gfn++) {
		node[0].xen.page[msg.gfn].state = DSM_XEN_STATE_M;
		dsm_engine_message(node[0].engine, 1, &msg, NULL);
		dsm_engine_run(node[0].engine);
	}
	while (!STAILQ_EMPTY(&channel[0][1]))
		drop_parcel(0, 1);
	for (msg.gfn = 0; msg.gfn < DSM_ENGINE_REQUESTS; msg.gfn++)
		dsm_engine_message(node[0].engine, 2, &msg, NULL);
	CHECK(!dsm_engine_failure(node[0].engine), "%s", dsm_engine_failure(node[0].engine));
	dsm_engine_message(node[0].engine, 2, &msg, NULL);
	expect_failure(0, "more requests than a host may have open");
	world_end();
}

/* Messages by chance, with the right epoch: refused, or they do no harm here. */
static void any_messages(const void *argument)
{
	uint8_t page[DSM_PAGE_BYTES] = { 0 };
	unsigned int i, j, failures = 0;

	(void)argument;
	dice_begin();
	for (i = 0; i < 300; i++) {
		world_begin(&calm);
		use(1, 0, 0, DSM_XEN_WANT_M);
		use(0, 1, 5, DSM_XEN_WANT_S);
		node[0].xen.must_not_refuse = false;
		for (j = 0; j < 200 && !dsm_engine_failure(node[0].engine); j++) {
			struct dsm_msg msg = {
				.type = (uint8_t)dice_below(DSM_NR_TYPES + 1),
				.flags = (uint8_t)(dice_below(4) ? 0 : dice_below(16)),
				.reason = (uint8_t)(dice_below(2) ? 0 : dice_below(DSM_NR_REASONS)),
				.epoch = 7, .txn = dice_below(4), .gfn = dice_below(13),
			};

			dsm_engine_message(node[0].engine, 1 + dice_below(2), &msg,
					   dsm_type_has_page(msg.type) ? page : NULL);
			if (!dice_below(4))
				dsm_engine_run(node[0].engine);
			if (!dice_below(4)) {
				clock_ns += 100 * US;
				dsm_engine_tick(node[0].engine);
			}
			CHECK(dsm_engine_failure(node[0].engine) ||
			      !dsm_engine_broken_rule(node[0].engine), "%s",
			      dsm_engine_broken_rule(node[0].engine));
		}
		failures += dsm_engine_failure(node[0].engine) != NULL;
		world_end();
	}
	CHECK(failures > 250, "%u of 300 were found out", failures);
}

static void parameters(const void *argument)
{
	struct dsm_engine_params good, p;
	struct dsm_engine *engine;
	char text[DSM_ENGINE_TEXT];

	(void)argument;
	dice_begin();
	world_begin(&calm);
	good = params_of(&node[0]);
#define WRONG(change, words) do {					\
	p = good;							\
	change;								\
	CHECK(dsm_engine_create(&p, &engine, text) == -EINVAL, #change); \
	CHECK(strstr(text, words), "%s: '%s'", #change, text);		\
} while (0)
	WRONG(p.self = 3, "no such hosts");
	WRONG(p.nr_hosts = 17, "no such hosts");
	WRONG(p.token_home = 3, "no such hosts");
	WRONG(p.range[1].start = 0, "range 1");
	WRONG(p.range[1].home = 3, "range 1");
	WRONG(p.nr_ranges = 0, "0 ranges");
	WRONG(p.nr_vcpus = 0, "0 vCPUs");
	WRONG(p.nr_vcpus = DSM_ENGINE_VCPUS + 1, "513 vCPUs");
	WRONG(p.frames = 63, "63 frames in the pool: want 64");
	WRONG(p.token_ns = 0, "a time is 0");
	WRONG(p.retry_ns = 0, "a time is 0");
	WRONG(p.retry_ns = 2 * MS, "retry_ns above");
	WRONG(p.pin_ns = 0, "a time is 0");
	WRONG(p.answer_ns = 6 * MS, "an answer within 6 ms: want more than a page may be in use (2 ms) and leased (4 ms)");
	WRONG(p.answer_ns = 6800 * US, "an answer within 6 ms");
	WRONG(p.prefetch = DSM_ENGINE_PREFETCH + 1, "a window of 65 pages");
	/* With one home, nobody needs frames. */
	p = good;
	p.nr_ranges = 1;
	p.frames = 0;
	CHECK(!dsm_engine_create(&p, &engine, text), "%s", text);
	dsm_engine_destroy(engine);
	dsm_engine_destroy(NULL);
	world_end();
}

int main(int argc, char **argv)
{
	static const struct test_case others[] = {
		{ "a host is lost", host_lost, NULL },
		{ "a host that has lost another", another_is_lost, NULL },
		{ "a host that does not answer", no_answer, NULL },
		{ "a home that does not answer", no_answer_of_a_home, NULL },
		{ "a token that does not come back", no_answer_about_the_token, NULL },
		{ "where pages are", where_pages_are, NULL },
		{ "a range closes", range_closes, NULL },
		{ "a host leaves", host_leaves, NULL },
		{ "a host leaves copies", host_leaves_copies, NULL },
		{ "the token comes first", token_first, NULL },
		{ "the token is there for a while", token_for_a_while, NULL },
		{ "the token is for two vCPUs", token_for_two_vcpus, NULL },
		{ "where the time of a fault goes", phases, NULL },
		{ "where the time of faults of one turn goes", phases_of_a_turn, NULL },
		{ "leases end together", leases_together, NULL },
		{ "a lease at home", lease_at_home, NULL },
		{ "losses are forgotten", losses_are_forgotten, NULL },
		{ "a token that is not needed", token_that_is_not_needed, NULL },
		{ "not quiet", not_quiet, NULL },
		{ "leases get longer", leases_get_longer, NULL },
		{ "whose lease", whose_lease, NULL },
		{ "frames of leased pages", frames_of_leased_pages, NULL },
		{ "tools in line", tools_in_line, NULL },
		{ "a page comes while a hole is shown", page_in_a_hole, NULL },
		{ "a hole, and who waits in line", hole_in_line, NULL },
		{ "a hole that an old miss was answered by", hole_for_an_old_miss, NULL },
		{ "a hole of a home that is slow, to read", hole_of_a_slow_home, NULL },
		{ "a hole of a home that is slow, to write", hole_of_a_slow_home, "" },
		{ "a hole is for one access", hole_for_one, NULL },
		{ "memory after a hole", memory_after_a_hole, NULL },
		{ "a hole that Xen refuses", refused_hole, NULL },
		{ "evacuation", evacuation, NULL },
		{ "evacuation: copies", evacuation_of_copies, NULL },
		{ "evacuation: another one", evacuation_anew, NULL },
		{ "evacuation: in parts", evacuation_in_parts, NULL },
		{ "evacuation: what comes meanwhile", evacuation_of_what_comes, NULL },
		{ "evacuation: others", evacuation_among_others, NULL },
		{ "evacuation: of one host", evacuation_of_a_host, NULL },
		{ "superpages", superpages, NULL },
		{ "superpages in turn", superpages_in_turn, NULL },
		{ "prefetch: a reader", prefetch_reader, NULL },
		{ "prefetch: used", prefetch_used, NULL },
		{ "a prefetch, and a tool", prefetch_and_a_tool, NULL },
		{ "prefetch: for nothing", prefetch_wasted, NULL },
		{ "prefetch: off and on", prefetch_switched, NULL },
		{ "prefetch: frames and credits", prefetch_frames, NULL },
		{ "prefetch: a full pool", prefetch_full, NULL },
		{ "prefetch: who writes", prefetch_writer, NULL },
		{ "prefetch: refused", prefetch_refused, NULL },
		{ "prefetch: bounds", prefetch_bounds, NULL },
		{ "prefetch: a page that went again", prefetch_again, NULL },
		{ "prefetch: five streams", prefetch_streams, NULL },
		{ "prefetch: whose", prefetch_whose, NULL },
		{ "leaving", leaving, NULL },
		{ "leaving: on the way", leaving_on_the_way, NULL },
		{ "leaving: frames", leaving_frames, NULL },
		{ "leaving: once", leaving_once, NULL },
		{ "leaving: a node", leaving_node, NULL },
		{ "the clear hint", clear_hint, NULL },
		{ "what is counted by page", counted_by_page, NULL },
		{ "the clear hint behind others", clear_hint_in_a_queue, NULL },
		{ "a page that can't leave", special_page, NULL },
		{ "a page that can't leave, and a tool", special_page_and_a_tool, NULL },
		{ "plain memory after a tool has looked", plain_after_a_tool, NULL },
		{ "a page in use", pinned_page, NULL },
		{ "drop and populate", drop_and_populate, NULL },
		{ "populate behind the end", populate_behind_the_end, NULL },
		{ "no frames", no_frames, NULL },
		{ "frames of pages in use", frames_in_use, NULL },
		{ "requests after write-backs", requests_after_writebacks, NULL },
		{ "signs of life", sign_of_life, NULL },
	{ "a domain that is destroyed", destroyed, NULL },
		{ "Xen refuses", xen_refuses, NULL },
		{ "breaches", breaches, NULL },
		{ "a host that only lends", only_lends, NULL },
		{ "too many requests", too_many_requests, NULL },
		{ "any messages", any_messages, NULL },
		{ "parameters", parameters, NULL },
	};
	static struct test_case cases[(1 + NR(sets)) * NR(worlds) + NR(others)];
	static struct features quick_worlds[NR(sets)][NR(worlds)];
	static char names[(1 + NR(sets)) * NR(worlds)][96];
	size_t i, set, n = 0;

	for (i = 0; i < NR(worlds); i++, n++) {
		snprintf(names[n], sizeof(names[n]), "a world: %s", worlds[i].name);
		cases[n] = (struct test_case){ names[n], world, &worlds[i] };
	}
	for (set = 0; set < NR(sets); set++) {
		for (i = set; i < NR(worlds); i += sets[set].every, n++) {
			quick_worlds[set][i] = quick(&worlds[i], (unsigned int)set);
			snprintf(names[n], sizeof(names[n]), "%s: %s", sets[set].name,
				 worlds[i].name);
			cases[n] = (struct test_case){ names[n], world, &quick_worlds[set][i] };
		}
	}
	for (i = 0; i < NR(others); i++)
		cases[n++] = others[i];
	return run_cases(argc, argv, cases, n);
}
