/* SPDX-License-Identifier: GPL-2.0 */
/* Folios, and what moves them, as evac.c asks for them; see evac_test.c. */
#ifndef FAKE_FOLIO_H
#define FAKE_FOLIO_H

struct address_space { int unused; };
struct mm_struct { struct task_struct *owner; };
struct folio_vma { struct mm_struct *vm_mm; };

struct folio {
	struct list_head lru;
	unsigned long pfn, pages;
	int references, mappings;
	struct address_space *mapping;
	struct folio_vma *vma;		/* who maps it */
	bool on_lru, hugetlb, movable, anon, swapcache, private, poisoned;
	bool poisoned_within;		/* a page of it, but the first */
	unsigned long goes_to;		/* pfn: it is another's before it is had */
	bool locked, writeback;
	/* Evacuation */
	unsigned int moved;		/* how often */
	long long busy_until;		/* ms: cannot be moved before */
};

struct folio *folio_at(unsigned long pfn);	/* NULL: none is there */
#define page_folio(page)	folio_at(page_to_pfn(page))
#define PageOffline(page)	page_is(page_to_pfn(page), 'o')
#define PageBuddy(page)		page_is(page_to_pfn(page), 'b')
bool page_is(unsigned long pfn, char what);
unsigned long free_pages_at(const struct page *page);
bool folio_try_get(struct folio *folio);
void folio_put(struct folio *folio);
#define folio_pfn(folio)	((folio)->pfn)
#define folio_nr_pages(folio)	((folio)->pages)
#define folio_size(folio)	((folio)->pages << PAGE_SHIFT)
#define folio_order(folio)	((unsigned int)__builtin_ctzl((folio)->pages))
#define folio_test_large(folio)	((folio)->pages > 1)
#define folio_test_hugetlb(folio)	((folio)->hugetlb)
#define folio_test_hwpoison(folio)	((folio)->poisoned)
#define folio_contain_hwpoisoned_page(folio)	((folio)->poisoned || (folio)->poisoned_within)
#define folio_test_lru(folio)	((folio)->on_lru)
#define __folio_test_movable(folio)	((folio)->movable)
#define folio_test_locked(folio)	((folio)->locked)
#define folio_test_writeback(folio)	((folio)->writeback)
#define folio_test_anon(folio)	((folio)->anon)
#define folio_test_swapcache(folio)	((folio)->swapcache)
#define folio_test_private(folio)	((folio)->private)
#define folio_mapping(folio)	((folio)->mapping)
#define folio_mapped(folio)	((folio)->mappings > 0)
#define folio_mapcount(folio)	((folio)->mappings)
#define folio_ref_count(folio)	((folio)->references)
#define folio_trylock(folio)	(!(folio)->locked && ((folio)->locked = true))
#define folio_unlock(folio)	((folio)->locked = false)

struct hstate { unsigned long free_huge_pages, resv_huge_pages; };
extern struct hstate the_pool;
#define folio_hstate(folio)	((void)(folio), &the_pool)
#define size_to_hstate(size)	((void)(size), &the_pool)

#define GFP_HIGHUSER_MOVABLE	1U
#define __GFP_RETRY_MAYFAIL	2U
#define __GFP_RECLAIM		4U
#define GFP_TRANSHUGE_LIGHT	8U
#define htlb_modify_alloc_mask(h, gfp)	(gfp)
struct folio *alloc_hugetlb_folio_nodemask(struct hstate *h, int nid,
					   nodemask_t *nodes, gfp_t gfp,
					   bool fallback);
struct folio *__folio_alloc(gfp_t gfp, unsigned int order, int nid,
			    nodemask_t *nodes);
#define MIGRATE_ASYNC		0
#define MR_MEMORY_HOTPLUG	1
typedef struct folio *new_folio_t(struct folio *folio, unsigned long private);
int migrate_pages(struct list_head *list, new_folio_t *get, void *put,
		  unsigned long private, int mode, int reason,
		  unsigned int *moved);
bool isolate_folio_to_list(struct folio *folio, struct list_head *list);
void putback_movable_pages(struct list_head *list);
#define list_empty(list)	((list)->next == (list))

unsigned long free_on(int nid);
#define sum_zone_node_page_state(nid, item)	free_on(nid)
int node_distance(int from, int to);
#define first_node(mask)	((int)next_bit((mask).bits, nr_node_ids, 0, true))

struct rmap_walk_control {
	bool (*rmap_one)(struct folio *folio, struct folio_vma *vma,
			 unsigned long address, void *arg);
	void *arg;
	void *anon_lock;
	bool try_lock;
};
void rmap_walk(struct folio *folio, struct rmap_walk_control *control);
#define folio_lock_anon_vma_read	NULL
#define vm_area_struct		folio_vma
#define rcu_dereference(pointer)	(pointer)
#define task_tgid_nr(task)	((task)->number)
#define get_task_comm(to, task)	snprintf(to, sizeof(to), "%s", (task)->name)

typedef struct { long counter; } atomic_long_t;
#define atomic_long_add(n, v)	((v)->counter += (n))
#define atomic_long_read(v)	((v)->counter)
#define atomic_long_set(v, n)	((v)->counter = (n))
#define atomic_set(v, n)	((v)->counter = (n))
#define atomic_inc_return(v)	(++(v)->counter)
struct workqueue_struct;
#define WQ_UNBOUND	0
#define alloc_workqueue(name, flags, max)	((struct workqueue_struct *)1)
#define num_online_cpus()	3U
#define INIT_WORK_ONSTACK(work, run)	((work)->function = (run))
#define queue_work(queue, work)	((void)(queue))
#define flush_work(work)	((work)->function(work))
#define destroy_work_on_stack(work)	((void)(work))
#define WB_REASON_VMSCAN	0
void wakeup_flusher_threads(int reason);
void sleep_for(unsigned int ms);
#define wait_event_freezable_timeout(queue, condition, ms)		\
	do { if (!(condition)) sleep_for(ms); } while (0)
void memalloc_nofs_restore(unsigned int flags);

#endif
