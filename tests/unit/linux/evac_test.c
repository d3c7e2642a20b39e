// SPDX-License-Identifier: GPL-2.0
/*
 * Evacuation and what is said of a residue: evac.c and residue.c as they are, on
 * a node of some folios.  A folio moves when nobody holds it, and the clock
 * moves when the engine waits.
 */
#include "case.h"
#include "elastic.h"

#define START	(4ULL << 30)
#define MiB	(1UL << 20)
#define BASE	(START >> PAGE_SHIFT)
#define FOLIOS	64

static struct elastic_node node = { .vnode = 1, .nid = 1 };
struct elastic_node *elastic_nodes = &node;
unsigned int elastic_nr_nodes = 1;
nodemask_t node_states[2] = { { { 0xf } } };
static nodemask_t draining = { { 2 } };
struct wait_queue_head elastic_wq;
struct hstate the_pool;

static struct folio folios[FOLIOS];
static unsigned int used;
static unsigned long offline_from, offline_to, free_from, free_to, looks;
static long long clock_ms;
static unsigned int pauses[16], naps, flushes, nofs, walks;
static unsigned int room = 1 << 20, calls, cancel_at;
static nodemask_t last_nodes;
static int last_nid;
static gfp_t last_gfp;

void say(const char *format, ...) { }
void fail(const char *format, ...) { exit(1); }
void elastic_draining_nodes(nodemask_t *nodes) { *nodes = draining; }
bool elastic_cancel_pending(void) { return cancel_at && calls >= cancel_at; }
bool elastic_cancelled(void) { return elastic_cancel_pending(); }
bool elastic_watch_fired(void) { return false; }
unsigned long elastic_room_elsewhere(int nid) { return room; }
unsigned long free_on(int nid) { return nid * 1000; }
int node_distance(int from, int to) { return to == 3 ? 40 : 20; }
void wakeup_flusher_threads(int reason) { flushes++; }
unsigned int memalloc_nofs_save(void) { return nofs++; }
void memalloc_nofs_restore(unsigned int flags) { nofs = flags; }

void sleep_for(unsigned int ms)
{
	pauses[naps++] = ms;
	clock_ms += ms;
}

/* ---- Pages ---- */

static bool within(unsigned long pfn, unsigned long from, unsigned long to)
{
	return pfn >= from && pfn < to;
}

bool page_is(unsigned long pfn, char what)
{
	return what == 'o' ? within(pfn, offline_from, offline_to) :
			     within(pfn, free_from, free_to);
}

/* Blocks of the largest order. */
unsigned long free_pages_at(const struct page *page)
{
	unsigned long pfn = page_to_pfn(page);

	return page_is(pfn, 'b') ? min(1024 - pfn % 1024, free_to - pfn) : 0;
}

struct page *pfn_to_online_page(unsigned long pfn)
{
	looks++;
	return pfn_to_page(pfn);
}

/* What is nothing is a page of its own that nobody can get. */
struct folio *folio_at(unsigned long pfn)
{
	static struct folio nothing;
	unsigned int i;

	CHECK(within(pfn, BASE, BASE + (1UL << 30 >> PAGE_SHIFT)), "pfn %#lx", pfn);
	for (i = 0; i < used; i++) {
		if (within(pfn, folios[i].pfn, folios[i].pfn + folios[i].pages))
			return &folios[i];
	}
	nothing = (struct folio){ .pfn = pfn, .pages = 1 };
	return &nothing;
}

/* Before it is had it may have become a folio of another place. */
bool folio_try_get(struct folio *folio)
{
	if (folio->goes_to)
		folio->pfn = folio->goes_to;
	return folio->references && folio->references++;
}

void folio_put(struct folio *folio)
{
	CHECK(folio->references-- > 1, "a reference too many is dropped");
}

bool isolate_folio_to_list(struct folio *folio, struct list_head *list)
{
	if (!folio->on_lru && !folio->hugetlb && !folio->movable)
		return false;
	folio->on_lru = false;
	folio->references++;
	list_add_tail(&folio->lru, list);
	return true;
}

static void back(struct folio *folio)
{
	list_del_init(&folio->lru);
	folio->on_lru = true;
	folio->references--;
}

void putback_movable_pages(struct list_head *list)
{
	while (!list_empty(list))
		back(container_of(list->next, struct folio, lru));
}

struct folio *alloc_hugetlb_folio_nodemask(struct hstate *h, int nid,
					   nodemask_t *nodes, gfp_t gfp,
					   bool fallback)
{
	last_gfp = 99;
	return NULL;
}

struct folio *__folio_alloc(gfp_t gfp, unsigned int order, int nid,
			    nodemask_t *nodes)
{
	last_gfp = gfp;
	last_nid = nid;
	last_nodes = *nodes;
	return NULL;
}

int migrate_pages(struct list_head *list, new_folio_t *get, void *put,
		  unsigned long private, int mode, int reason,
		  unsigned int *moved)
{
	struct folio *folio, *next;
	int left = 0;

	CHECK(mode == MIGRATE_ASYNC, "it waits for folios");
	CHECK(nofs, "reclaim waits for a file system");
	calls++;
	list_for_each_entry_safe(folio, next, list, lru) {
		get(folio, private);
		if (folio->locked || folio->writeback ||
		    clock_ms < folio->busy_until) {
			left++;
			continue;
		}
		back(folio);
		folio->on_lru = false;
		folio->references = 0;
		folio->moved++;
		*moved += folio->pages;
	}
	return left;
}

void rmap_walk(struct folio *folio, struct rmap_walk_control *control)
{
	CHECK(folio->locked && control->try_lock, "it may wait");
	walks++;
	if (folio->vma)
		control->rmap_one(folio, folio->vma, 0, control->arg);
}

/* A folio of the node, at a page, in anonymous memory of one process. */
static struct folio *put(unsigned long at, unsigned long pages)
{
	struct folio *folio = &folios[used++];

	*folio = (struct folio){ .pfn = BASE + at, .pages = pages,
				 .references = 1, .mappings = 1,
				 .on_lru = true, .anon = true,
				 .mapping = (void *)folio };
	return folio;
}

static void boot(void)
{
	CHECK(!elastic_range_init(&node.range, START, 512 * MiB, 128 * MiB,
				  ELASTIC_EXTENT_BYTES), "range");
	node.populated = calloc(256 / 64, 8);
	node.torn = calloc(256 / 64, 8);
	bitmap_set(node.populated, 0, 256);
	CHECK(!elastic_evac_init(), "workqueue");
}

/* ---- Evacuation ---- */

static void all_move(const void *argument)
{
	unsigned int i;

	boot();
	put(600, 1);
	put(1024, 512);
	put(5000, 1);
	put(131071, 1);		/* the last one */
	offline_from = BASE + 7000;
	offline_to = BASE + 9000;
	put(8000, 1);		/* as the balloon has them */
	CHECK(!elastic_evacuate(&node), "called off");
	for (i = 0; i < 4; i++)
		CHECK(folios[i].moved == 1, "folio %u: %u", i, folios[i].moved);
	CHECK(!folios[4].moved, "a page of the balloon");
	CHECK(!naps && !flushes && !nofs, "%u pauses", naps);
	/* Nodes 0, 2 and 3: the most free memory for its distance is on 2. */
	CHECK(last_nodes.bits[0] == 0xd && last_nid == 2, "to %d of %#lx",
	      last_nid, last_nodes.bits[0]);
}

static void to_nodes_that_stay(const void *argument)
{
	boot();
	draining.bits[0] = 6;
	put(600, 1);
	CHECK(!elastic_evacuate(&node), "called off");
	CHECK(last_nodes.bits[0] == 9 && last_nid == 3, "to %d of %#lx", last_nid,
	      last_nodes.bits[0]);
}

/* A huge page is not worth reclaim: it is split. */
static void how_they_are_asked_for(const void *argument)
{
	boot();
	put(600, 1);
	elastic_evacuate(&node);
	CHECK(!(last_gfp & GFP_TRANSHUGE_LIGHT), "%#x", last_gfp);
	put(1024, 512);
	elastic_evacuate(&node);
	CHECK(last_gfp & GFP_TRANSHUGE_LIGHT && !(last_gfp & __GFP_RECLAIM), "%#x",
	      last_gfp);
	put(2048, 512)->hugetlb = true;
	elastic_evacuate(&node);
	CHECK(last_gfp == 99, "a huge page of a pool becomes another");
}

/* What holds nothing costs nothing: a node is as quick as what is in use of it. */
static void what_is_free(const void *argument)
{
	boot();
	bitmap_clear(node.populated, 128, 128);
	free_from = BASE + 1024;
	free_to = BASE + 65536;
	put(600, 1);
	put(100, 1);		/* where the struct pages are */
	CHECK(!elastic_evacuate(&node), "called off");
	CHECK(folios[0].moved == 1 && !folios[1].moved, "%u", folios[1].moved);
	/* The second extent, 63 blocks, and what they have after those of struct pages. */
	CHECK(looks <= 512 + 63 + 512, "%lu looks", looks);
	looks = 0;
	CHECK(!elastic_block_in_use(&node, 1, false) && looks <= 33, "%lu looks",
	      looks);
}

static void poisoned(const void *argument)
{
	struct folio *folio;

	boot();
	put(600, 1)->poisoned = true;
	folio = put(1024, 512);
	folio->poisoned_within = true;
	CHECK(!elastic_evacuate(&node), "called off");
	CHECK(!folios[0].moved && !folio->moved, "it is read when it moves");
	CHECK(folio->on_lru && folio->references == 1, "%d references", folio->references);
}

static void another_folio(const void *argument)
{
	struct folio *folio;

	boot();
	folio = put(600, 1);
	folio->goes_to = BASE + 100;	/* where nothing moves */
	CHECK(!elastic_evacuate(&node), "called off");
	CHECK(!folio->moved && folio->references == 1, "another one was moved");
}

static void later(const void *argument)
{
	struct folio *folio;

	boot();
	put(600, 1);
	folio = put(5000, 1);
	folio->busy_until = 700;
	CHECK(!elastic_evacuate(&node), "called off");
	CHECK(folios[0].moved == 1 && folio->moved == 1, "%u", folio->moved);
	CHECK(naps == 4 && pauses[0] == 50 && pauses[3] == 400 && flushes == 4,
	      "%u pauses, the first of %u ms", naps, pauses[0]);
}

static void never(const void *argument)
{
	struct folio *folio;

	boot();
	folio = put(5000, 1);
	folio->writeback = true;
	CHECK(!elastic_evacuate(&node), "called off");
	CHECK(!folio->moved && folio->on_lru && folio->references == 1,
	      "it is lost: %d references", folio->references);
	CHECK(naps == 6 && clock_ms == 3150 && calls == 9, "%lld ms, %u calls",
	      clock_ms, calls);
}

static void called_off(const void *argument)
{
	unsigned int i;

	boot();
	for (i = 0; i < 10; i++)
		put(i * 8192, 512);
	cancel_at = 4;
	CHECK(elastic_evacuate(&node) == -ECANCELED, "it goes on");
	CHECK(calls <= 5, "%u calls", calls);
	for (i = 0; i < 10; i++)
		CHECK(folios[i].moved + folios[i].on_lru == 1, "folio %u is lost", i);
}

/* What others need there is left to them; what was taken goes back. */
static void no_room(const void *argument)
{
	struct folio *folio;

	boot();
	folio = put(1024, 512);
	room = 512 * 8 - 1;
	CHECK(!elastic_evacuate(&node), "called off");
	CHECK(!folio->moved && folio->on_lru && !calls, "%u calls", calls);
	room = 512 * 8;
	CHECK(!elastic_evacuate(&node) && folio->moved, "there is room");
}

/* ---- What is left ---- */

static struct task_struct owner = {
	.number = 77, .name = "pinner", .group_leader = &owner
};
static struct mm_struct memory = { .owner = &owner };
static struct folio_vma mapping = { &memory };

static void of_each_kind(const void *argument)
{
	struct folio *folio;

	boot();
	put(600, 1)->references += 2;		/* pinned */
	put(601, 1)->locked = true;
	put(602, 1)->writeback = true;
	put(603, 1)->poisoned = true;
	folio = put(604, 1);			/* of the page cache, at rest */
	folio->anon = false;
	folio->references += 2;
	folio->private = true;
	folio = put(605, 1);			/* a kernel page */
	folio->on_lru = folio->anon = false;
	put(606, 1);				/* could have moved */
	put(100, 1);				/* where the struct pages are */
	elastic_residue_reason(&node);
	CHECK(strstr(node.reason, "pinned: 1 pages") &&
	      strstr(node.reason, "locked: 1 pages") &&
	      strstr(node.reason, "under writeback: 1 pages") &&
	      strstr(node.reason, "unmovable: 1 pages") &&
	      strstr(node.reason, "poisoned: 1 pages") &&
	      strstr(node.reason, "busy: 2 pages"), "'%s'", node.reason);
}

static void a_large_one_counts_once(const void *argument)
{
	boot();
	put(32768, 262144 / 4)->references += 2;
	elastic_residue_reason(&node);
	/* But for the extents of struct pages: of two blocks one each. */
	CHECK(strstr(node.reason, "pinned: 64512 pages"), "'%s'", node.reason);
	CHECK(elastic_block_in_use(&node, 1, false) && elastic_block_in_use(&node, 2, false) &&
	      !elastic_block_in_use(&node, 0, false) && !elastic_block_in_use(&node, 3, false),
	      "in which blocks");
}

static void reserved(const void *argument)
{
	struct folio *folio;

	boot();
	folio = put(1024, 512);
	folio->hugetlb = true;
	folio->references = 0;
	the_pool = (struct hstate){ 3, 2 };
	CHECK(!elastic_block_in_use(&node, 0, false), "a pool can do without it");
	CHECK(elastic_block_in_use(&node, 0, true) && !elastic_block_in_use(&node, 1, true),
	      "a pool that is to stay");
	the_pool = (struct hstate){ 2, 2 };
	CHECK(elastic_block_in_use(&node, 0, false), "it is promised");
	elastic_residue_reason(&node);
	CHECK(strstr(node.reason, "reserved huge: 512 pages"), "'%s'", node.reason);
}

static void whose(const void *argument)
{
	unsigned int i;

	boot();
	for (i = 0; i < 20; i++)
		put(600 + i, 1)->references += 2;
	elastic_residue_reason(&node);
	CHECK(walks == 8, "%u walks for pages of nobody", walks);
	CHECK(!strstr(node.reason, "pid"), "'%s'", node.reason);
	walks = 0;
	folios[3].vma = &mapping;
	elastic_residue_reason(&node);
	CHECK(walks == 4, "%u walks", walks);
	CHECK(strstr(node.reason, "pid 77 (pinner)"), "'%s'", node.reason);
	for (i = 0; i < 20; i++)
		CHECK(!folios[i].locked && folios[i].references == 3,
		      "folio %u: %d references", i, folios[i].references);
	/* The memory of a process that has gone has no owner. */
	memory.owner = NULL;
	elastic_residue_reason(&node);
	CHECK(!strstr(node.reason, "pid"), "'%s'", node.reason);
	walks = 0;
	CHECK(elastic_block_in_use(&node, 0, false) && !walks, "%u walks", walks);
}

static void nothing(const void *argument)
{
	boot();
	free_from = BASE;
	free_to = BASE + 131072;
	elastic_residue_reason(&node);
	CHECK(strstr(node.reason, "nothing in use was found"), "'%s'", node.reason);
	free_to = 0;
	put(600, 1);
	bitmap_clear(node.populated, 1, 1);
	CHECK(!elastic_block_in_use(&node, 0, false), "a page without memory");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "evac: all that can move", all_move },
		{ "evac: to nodes that stay", to_nodes_that_stay },
		{ "evac: how they are asked for", how_they_are_asked_for },
		{ "evac: what is free", what_is_free },
		{ "evac: what is poisoned", poisoned },
		{ "evac: another folio by now", another_folio },
		{ "evac: what moves later", later },
		{ "evac: what never moves", never },
		{ "evac: called off", called_off },
		{ "evac: no room", no_room },
		{ "residue: of each kind", of_each_kind },
		{ "residue: a large one counts once", a_large_one_counts_once },
		{ "residue: reserved huge pages", reserved },
		{ "residue: whose it is", whose },
		{ "residue: nothing", nothing },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
