/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hypervisor small enough to look at: one domain, one host p2m, a frame
 * table, an M2P, a heap that checks what it is given.  Every header of fake/
 * is this one, so that common/mem_range.c compiles unchanged in user space.
 *
 * Whatever would be a disaster in the hypervisor (a frame freed while it is
 * mapped, referenced, in a TLB, or twice) ends the test at once: die().  TLBs
 * have all that was mapped since the last flush.
 */
#ifndef FAKE_H
#define FAKE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define __read_mostly
#define cf_check
#define ACCESS_ONCE(x) (*(volatile typeof(x) *)&(x))
#define cmpxchg(p, o, n) __sync_val_compare_and_swap(p, (typeof(*(p)))(o), (typeof(*(p)))(n))
#define XENLOG_G_ERR "(XEN) "
#define printk(...) ((void)snprintf(fake.log, sizeof(fake.log), __VA_ARGS__))

#define die(...) \
    do { printf("# %s:%d: ", __FILE__, __LINE__); printf(__VA_ARGS__); \
         printf("\n"); exit(1); } while ( 0 )

/* Parameters: the test reaches the variable by this name. */
#define boolean_runtime_param(name, var) bool *const fake_param = &(var); \
    const char *const fake_param_name = (name)

/* Counters, by name. */
#define PERFCOUNTER(name, descr) PERFC_##name,
enum fake_perfc {
#include <xen/perfc_mem_range.h>
    NR_PERFC
};
#undef PERFCOUNTER
#define perfc_incr(name) (++fake.perfc[PERFC_##name])
#define perfc_add(name, nr) (fake.perfc[PERFC_##name] += (nr))

/* Frame numbers. */
typedef struct { unsigned long n; } gfn_t;
typedef struct { unsigned long n; } mfn_t;
#define _gfn(x) ((gfn_t){ (x) })
#define _mfn(x) ((mfn_t){ (x) })
#define gfn_x(g) ((g).n)
#define mfn_x(m) ((m).n)
#define mfn_eq(a, b) ((a).n == (b).n)
#define INVALID_MFN _mfn(~0UL)
#define INVALID_M2P_ENTRY (~0UL)
#define PAGE_ORDER_4K 0
#define PAGE_ORDER_2M 9
#define PAGE_ORDER_1G 18
#define min(a, b) ((a) < (b) ? (a) : (b))

/* A list in the guest's memory, of which the first `readable` can be read. */
typedef unsigned long xen_pfn_t;
typedef struct { xen_pfn_t *p; unsigned int readable; } guest_handle_xen_pfn_t;
#define XEN_GUEST_HANDLE(type) guest_handle_##type
#define __copy_from_guest_offset(to, list, from, nr) \
    (memcpy(to, (list).p + (from), \
            min(nr, (list).readable - (from)) * sizeof(xen_pfn_t)), \
     (from) + (nr) > (list).readable)

/* Frames: the real layout of flags in count_info and type_info. */
#define PG_mask(x, idx) ((unsigned long)(x) << (64 - (idx)))
#define PGC_allocated PG_mask(1, 1)
#define PGC_xen_heap PG_mask(1, 2)
#define PGC_extra PG_mask(1, 3)
#define PGC_broken PG_mask(1, 4)
#define PGC_state_offlining PG_mask(1, 6)
#define PGC_count_mask ((1UL << 58) - 1)
#define PGT_writable_page PG_mask(7, 3)
#define PGT_pinned PG_mask(1, 5)
#define PGT_non_coherent PG_mask(1, 9)
#define PGT_count_mask ((1UL << 55) - 1)

struct domain;
struct page_info {
    unsigned long count_info;
    union { struct { unsigned long type_info; } inuse; } u;
    struct domain *owner;
    bool free;
};

/* The p2m: one slot a gfn, the order says how large an entry it is part of. */
typedef enum {
    p2m_mmio_dm, p2m_ram_rw, p2m_invalid, p2m_ram_logdirty, p2m_ram_ro,
    p2m_mmio_direct, p2m_populate_on_demand, p2m_grant_map_rw,
    p2m_map_foreign, p2m_ram_shared, p2m_ram_paged, p2m_ram_broken,
    p2m_ioreq_server,
} p2m_type_t;
typedef enum { p2m_access_rwx, p2m_access_rx } p2m_access_t;
struct slot { unsigned long mfn; p2m_type_t type; unsigned int order; };
struct p2m_domain {
    struct domain *domain;
    p2m_access_t default_access;
    unsigned int locked;
    bool need_flush, put_off_flush;
    void (*tlb_flush)(struct p2m_domain *p2m);
    struct { long entry_count; } pod;
};
#define _PAGE_PRESENT 1u

struct domain {
    unsigned int tot_pages;
    int dirty_cpumask;
    bool hvm, hap, iommu, log_dirty, altp2m, is_dying, crashed, dsm, nested;
    struct p2m_domain p2m;
};

/*
 * What the tests set up and look at.  The domain has the `used` GFNs from GFN0
 * and the `used` MFNs from MFN0; whoever changes any other dies.  The arrays
 * are large, but pages that nobody touches cost nothing.
 */
#define GFN0    (1UL << 18)
#define MFN0    (2UL << 18)
#define NR_GFNS (GFN0 + (1UL << 18))
#define NR_MFNS (MFN0 + (1UL << 18))
enum set_entry_result {
    SET_OK, SET_FAILS_UNCHANGED, SET_FAILS_CHANGED,
    SET_FAILS_SPLIT,              /* unchanged, but for a table that has to be flushed */
    SET_FAILS_TYPE,               /* the same frames, of another type */
};
struct fake {
    unsigned int perfc[NR_PERFC];
    char log[200];
    bool has_2mb, has_1gb;
    bool defer_flush;             /* EPT: flushed by sync or by the last unlock */
    bool traced;
    unsigned long second_node;    /* the MFN where it begins; 0: there is none */
    unsigned long first_again;    /* and where it ends; 0: it does not */
    unsigned int urgent_from;     /* the question from which on something is urgent; 0: never */
    unsigned int fails_after;     /* set_entry is of the entries after these */
    unsigned int callers_lock;    /* p2m lock count that is the caller's own */
    enum set_entry_result set_entry;
    void (*while_unmapping)(void); /* another CPU, in the middle of step 3 */
    void (*after_unlock)(void);    /* another CPU, between steps 3 and 4 */
    void (*while_locking)(void);   /* another CPU, before the lock is ours */
    unsigned long used;
    unsigned int set_entries, flushes, heap_frees, mapcache_invalidations, asked;
    struct slot p2m[NR_GFNS];
    struct page_info frames[NR_MFNS];
    unsigned long m2p[NR_MFNS];    /* GFN + 1 */
    bool mapped[NR_MFNS];          /* by any p2m entry */
    bool stale[NR_MFNS];           /* not any more, but a TLB may have it */
};
extern struct fake fake;

#define hap_has_2mb (fake.has_2mb)
#define hap_has_1gb (fake.has_1gb)
#define is_hvm_domain(d) ((d)->hvm)
#define hap_enabled(d) ((d)->hap)
#define is_iommu_enabled(d) ((d)->iommu)
#define paging_mode_log_dirty(d) ((d)->log_dirty)
#define altp2m_active(d) ((d)->altp2m)
#define dsm_enabled(d) ((d)->dsm)
#define nestedhvm_enabled(d) ((d)->nested)
#define tb_init_done (fake.traced)
#define p2m_get_hostp2m(d) (&(d)->p2m)
#define domain_crash(d) ((d)->crashed = true)
#define mfn_valid(m) (mfn_x(m) < NR_MFNS)
#define mfn_to_page(m) (&fake.frames[mfn_x(m)])
#define page_to_mfn(pg) _mfn((unsigned long)((pg) - fake.frames))
#define page_get_owner(pg) ((pg)->owner)
#define page_to_nid(pg) \
    (fake.second_node && mfn_x(page_to_mfn(pg)) >= fake.second_node && \
     (!fake.first_again || mfn_x(page_to_mfn(pg)) < fake.first_again))

void hap_p2m_init(struct p2m_domain *p2m);
bool hypercall_preempt_check(void);
mfn_t get_gfn_type_access(struct p2m_domain *p2m, unsigned long gfn,
                          p2m_type_t *t, p2m_access_t *a, int q,
                          unsigned int *order);
mfn_t get_gfn_query_unlocked(struct domain *d, unsigned long gfn, p2m_type_t *t);
void put_gfn(struct domain *d, unsigned long gfn);
int p2m_set_entry(struct p2m_domain *p2m, gfn_t gfn, mfn_t mfn,
                  unsigned int order, p2m_type_t t, p2m_access_t a);
void p2m_tlb_flush_sync(struct p2m_domain *p2m);
void set_gpfn_from_mfn(unsigned long mfn, unsigned long pfn);
void ioreq_request_mapcache_invalidate(const struct domain *d);
void put_page(struct page_info *pg);
void put_page_alloc_ref(struct page_info *pg);
void free_domheap_pages(struct page_info *pg, unsigned int order);
#define free_domheap_page(pg) free_domheap_pages(pg, 0)

#endif /* FAKE_H */
