/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What arch/x86/mm/dsm.c calls, for one guest of 64 frames: a p2m, frames with
 * bytes, locks that know who holds them, vCPUs that are paused or run.
 *
 * What would be a disaster in the hypervisor (a lock out of order, a frame that
 * two entries map or that is copied before the flush, an unpause too many) ends
 * the test at once: die().
 */
#ifndef FAKE_DSM_H
#define FAKE_DSM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ERESTART
#define ERESTART 85
#endif

#define __XEN__ 1
#define die(...) \
    do { printf("# %s:%d: ", __FILE__, __LINE__); printf(__VA_ARGS__); \
         printf("\n"); exit(1); } while ( 0 )

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ACCESS_ONCE(x) (*(volatile typeof(x) *)&(x))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BUILD_BUG_ON(x) _Static_assert(!(x), #x)
#define ASSERT(x) do { if ( !(x) ) die("ASSERT(" #x ")"); } while ( 0 )
#define ASSERT_UNREACHABLE() die("unreachable")
#define cf_check
#define array_index_nospec(i, n) ((i) < (n) ? (i) : 0)
#define cmpxchg(p, o, n) __sync_val_compare_and_swap(p, (typeof(*(p)))(o), (typeof(*(p)))(n))
#define cmpxchgptr(p, o, n) cmpxchg(p, o, n)
#define smp_mb() __sync_synchronize()
#define smp_wmb() __sync_synchronize()
#define cpu_relax() ((void)0)
/* One MOV, which need not be aligned. */
#define fake_mov(p) \
    (((volatile struct __attribute__((packed)) { typeof(*(p)) v_; } *)(p))->v_)
#define read_atomic(p) fake_mov(p)
unsigned long __cmpxchg(volatile void *p, unsigned long old, unsigned long new,
                        int size);
#define write_atomic(p, v) ((void)(fake_mov(p) = (v)))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(t, a, b) min((t)(a), (t)(b))
#define max_t(t, a, b) max((t)(a), (t)(b))
#define flsl(x) (64 - __builtin_clzl(x))

typedef uint16_t domid_t;
typedef uint32_t evtchn_port_t;
typedef uint64_t xen_pfn_t;
typedef int64_t s_time_t;
#define uint64_aligned_t uint64_t
typedef uint8_t uint8;

/* Handles, of this process. */
#define DEFINE_XEN_GUEST_HANDLE(type) typedef struct { type *p; } handle_##type
typedef struct { uint8 *p; } handle_uint8;
#define XEN_GUEST_HANDLE_64(type) handle_##type
#define XEN_GUEST_HANDLE_PARAM(type) handle_##type
#define guest_handle_is_null(h) (!(h).p)
#define FAULTY ((void *)8192)
#define fake_copy(to, from, n, guest) \
    ((void *)(guest) == FAULTY ? (fake_fault(), 1) \
                              : (fake_may_copy(), memcpy(to, from, n), 0))
#define copy_from_guest(to, h, n) \
    fake_copy(to, (h).p, (n) * sizeof(*(h).p), (h).p)
#define copy_from_guest_offset(to, h, i, n) \
    fake_copy(to, (h).p + (i), (n) * sizeof(*(h).p), (h).p)
#define copy_to_guest(h, from, n) \
    fake_copy((h).p, from, (n) * sizeof(*(h).p), (h).p)
#define __copy_to_guest(h, from, n) copy_to_guest(h, from, n)
#define __copy_to_guest_offset(h, i, from, n) \
    fake_copy((h).p + (i), from, (n) * sizeof(*(h).p), (h).p)
void fake_may_copy(void);
void fake_fault(void);

/* Memory. */
#define PAGE_SIZE 4096UL
#define PAGE_SHIFT 12
#define PAGE_MASK (~(PAGE_SIZE - 1))
typedef uint64_t paddr_t;
enum { npfec_kind_unknown, npfec_kind_in_gpt, npfec_kind_with_gla };
struct npfec {
    unsigned int read_access:1, write_access:1, insn_fetch:1, present:1;
    unsigned int gla_valid:1, kind:2;
};
extern size_t fake_allocated;           /* bytes, ever, but of xzalloc() */
extern bool fake_no_memory;
static inline void *fake_zalloc(size_t size)
{
    fake_allocated += size;

    return fake_no_memory ? NULL : calloc(1, size);
}
#define xzalloc(type) ((type *)calloc(1, sizeof(type)))
#define xzalloc_array(type, n) ((type *)fake_zalloc((n) * sizeof(type)))
#define xmalloc(type) ((type *)malloc(sizeof(type)))
#define xfree free
#define vzalloc(n) fake_zalloc(n)
#define vfree free
#define BITS_TO_LONGS(n) (((n) + 63) / 64)
#define test_bit(n, p) ((p)[(n) / 64] >> ((n) % 64) & 1)
#define set_bit(n, p) ((void)((p)[(n) / 64] |= 1UL << ((n) % 64)))
#define clear_bit(n, p) ((void)((p)[(n) / 64] &= ~(1UL << ((n) % 64))))

static inline unsigned long find_next_bit(const unsigned long *p,
                                          unsigned long nr, unsigned long i)
{
    while ( i < nr && !test_bit(i, p) )
        i++;

    return i;
}

/* Frame numbers and frames. */
typedef struct { unsigned long n; } gfn_t;
typedef struct { unsigned long n; } mfn_t;
#define _gfn(x) ((gfn_t){ (x) })
#define _mfn(x) ((mfn_t){ (x) })
#define gfn_x(g) ((g).n)
#define mfn_x(m) ((m).n)
#define mfn_eq(a, b) ((a).n == (b).n)
#define INVALID_MFN _mfn(~0UL)
#define INVALID_M2P_ENTRY (~0UL)
static inline mfn_t mfn_add(mfn_t mfn, unsigned long i)
{
    return (mfn_t){ mfn.n + i };
}
#define PAGE_ORDER_4K 0
#define PAGE_ORDER_2M 3         /* 8 frames: the guest is small */
extern bool hap_has_2mb;
#define PGC_allocated (1UL << 63)
#define PGT_writable_page (1UL << 61)
#define PGT_pinned (1UL << 60)
#define PGT_non_coherent (1UL << 59)
#define PGT_count_mask ((1UL << 55) - 1)
#define MEMF_no_refcount 1
#define MEMF_no_owner 2
#define MEMF_exact_node 4
#define MEMF_node(n) ((n) << 8)
#define MAX_NUMNODES 64
typedef uint8_t nodeid_t;
#define mfn_to_nid(m) (mfn_x(m) < 128 ? 5U : 6U)

#define NR_GFNS 64UL
#define NR_MFNS 256UL
struct domain;
struct page_info {
    unsigned long count_info;
    union { struct { unsigned long type_info; } inuse; } u;
    struct domain *owner;
    bool special;
    unsigned long m2p;
    uint8_t bytes[PAGE_SIZE] __attribute__((aligned(4096)));
};
extern struct page_info frames[NR_MFNS];
#define mfn_valid(m) (mfn_x(m) < NR_MFNS)
#define mfn_to_page(m) (&frames[mfn_x(m)])
#define page_to_mfn(pg) _mfn((pg) - frames)
#define page_get_owner(pg) ((pg)->owner)
#define is_special_page(pg) ((pg)->special)
#define __map_domain_page(pg) ((void *)(pg)->bytes)
#define map_domain_page(m) ((void *)mfn_to_page(m)->bytes)
#define unmap_domain_page(p) ((void)(p))
#define clear_domain_page(m) memset(mfn_to_page(m)->bytes, 0, PAGE_SIZE)
#define set_gpfn_from_mfn(m, g) ((void)(frames[m].m2p = (g)))
#define get_gpfn_from_mfn(m) (frames[m].m2p)
bool get_page(struct page_info *pg, struct domain *d);
void put_page(struct page_info *pg);
void put_page_alloc_ref(struct page_info *pg);
void free_domheap_pages(struct page_info *pg, unsigned int order);
int assign_pages(struct page_info *pg, unsigned int nr, struct domain *d,
                 unsigned int flags);
unsigned long __attribute__((warn_unused_result))
domain_adjust_tot_pages(struct domain *d, long pages);
void copy_domain_page(mfn_t to, mfn_t from);
#define get_page_and_type(pg, d, t) get_page(pg, d)
#define put_page_and_type(pg) put_page(pg)
struct page_info *alloc_domheap_pages(struct domain *d, unsigned int order,
                                      unsigned int flags);
struct page_info *alloc_domheap_page(struct domain *d, unsigned int flags);
static inline unsigned int get_order_from_pages(unsigned long n)
{
    unsigned int order = 0;

    while ( (1UL << order) < n )
        order++;

    return order;
}
/* Frames are not contiguous here: Xen's own view of the ring is elsewhere. */
#define vmap_contig(m, n) calloc(n, PAGE_SIZE)
#define vunmap free

/* The p2m. */
typedef enum {
    p2m_ram_rw, p2m_invalid, p2m_mmio_dm, p2m_ram_paged, p2m_dsm_shared,
    p2m_map_foreign,
} p2m_type_t;
typedef enum { p2m_access_rwx, p2m_access_rx } p2m_access_t;
typedef unsigned int p2m_query_t;
#define P2M_ALLOC   (1u << 0)
#define P2M_UNSHARE (1u << 1)
struct p2m_domain {
    struct domain *domain;
    p2m_access_t default_access;
    unsigned int locked;
    bool need_flush, put_off_flush, fails;
    struct { long entry_count; } pod;
    struct { p2m_type_t t; unsigned long mfn; unsigned int order; } e[NR_GFNS];
    mfn_t (*get_entry)(struct p2m_domain *p2m, gfn_t gfn, p2m_type_t *t,
                       p2m_access_t *a, p2m_query_t q, unsigned int *order,
                       bool *sve);
};
#define p2m_is_hostp2m(p) true
#define p2m_locked_by_me(p) ((p)->locked)
void gfn_lock(struct p2m_domain *p2m, gfn_t gfn, unsigned int order);
void gfn_unlock(struct p2m_domain *p2m, gfn_t gfn, unsigned int order);
int p2m_set_entry(struct p2m_domain *p2m, gfn_t gfn, mfn_t mfn,
                  unsigned int order, p2m_type_t t, p2m_access_t a);
void p2m_tlb_flush_sync(struct p2m_domain *p2m);
mfn_t get_gfn_query_unlocked(struct domain *d, unsigned long gfn,
                             p2m_type_t *t);

/* Locks: rank 1 is the outer one of dsm.c, 3 the inner one; the p2m is 2. */
typedef struct { bool held; } spinlock_t;
void spin_lock_init(spinlock_t *l);
void spin_lock(spinlock_t *l);
void spin_unlock(spinlock_t *l);
typedef struct { bool held; } rwlock_t;
extern void (*when_locked)(const rwlock_t *l); /* a port's, to write */
void write_lock(rwlock_t *l);
#define write_unlock(l) ((void)((l)->held = false))
typedef struct { int n; unsigned int increments; } atomic_t;
#define nrspin_lock spin_lock
#define nrspin_unlock spin_unlock
void atomic_inc(atomic_t *a);
#define atomic_dec(a) ((void)(a)->n--)
int atomic_read(atomic_t *a);

/* Domains. */
struct dsm_domain;
#define DOMID_SELF 0x7ff0
/* shared_info is a frame of the hypervisor's. */
#define SHARED_MFN 250
struct shared_info { struct { unsigned long evtchn_mask[64]; } native; };
#define virt_to_mfn(p) ((p) == (void *)frames[SHARED_MFN].bytes ? SHARED_MFN \
                                                                : ~0UL)
#define _VPF_down 1
/* deadline: of the guest's TSC; left: ticks until then, when it was set. */
struct vlapic {
    struct { uint32_t icr; } init_sipi;
    uint64_t deadline, left;
};
typedef struct { uint8_t bytes[64]; } vcpu_info_t;
struct guest_area { struct page_info *pg; void *map; };
enum { RUNSTATE_running, RUNSTATE_runnable, RUNSTATE_blocked,
       RUNSTATE_offline };
struct timer { s_time_t expires; void (*fn)(void *); void *data; };
struct vcpu_runstate_info {
    int state;
    uint64_t state_entry_time, time[4];
};
struct vcpu {
    struct domain *domain;
    unsigned int vcpu_id;
    int paused;
    uint64_t runnable_ns, offline_ns; /* of all time until now; else it ran */
    unsigned int kicks;
    unsigned long pause_flags;
    struct timer singleshot_timer, poll_timer, periodic_timer;
    uint64_t tsc_offset;        /* as the CPU has it */
    bool is_initialised;
    struct vlapic vlapic;
    struct guest_area vcpu_info_area;
    struct {
        struct {
            uint64_t cache_tsc_offset;
            uint8_t evtchn_upcall_vector;
            struct hvm_vcpu_io {
                unsigned int mmio_insn_bytes;
                uint8_t mmio_insn[16];
            } hvm_io;
        } hvm;
    } arch;
};
#define NR_VCPUS 4
#define NR_PORTS 8
enum { ECS_FREE, ECS_RESERVED, ECS_UNBOUND, ECS_INTERDOMAIN, ECS_PIRQ, ECS_VIRQ,
       ECS_IPI };
struct evtchn {
    rwlock_t lock;
    unsigned char state, xen_consumer;
    unsigned short notify_vcpu_id;
    union {
        struct {
            evtchn_port_t remote_port;
            struct domain *remote_dom;
        } interdomain;
    } u;
};
struct domain {
    struct evtchn evtchn[NR_PORTS];
    rwlock_t event_lock;
    struct {
        struct dsm_domain *dsm;
        unsigned int incarnation;
        uint32_t emulation_flags;
        struct { bool dirty_vram; uint64_t tsc_scaling_ratio; } hvm;
        bool vtsc;
    } arch;
    unsigned int max_vcpus;
    domid_t domain_id;
    struct vcpu **vcpu;
    bool creation_finished, hardware, hvm, hap, pod, iommu, pdevs, log_dirty;
    bool altp2m, nested, paging, sharing, viridian, crashed, is_dying;
    bool is_shut_down;
    bool vm_event_monitor;
    int pauses, controller_pause_count;
    spinlock_t page_alloc_lock, domain_lock;
    long tot_pages;
    unsigned int shutdown_code;
    struct shared_info *shared_info;
    struct p2m_domain p2m;
};
#define p2m_get_hostp2m(d) (&(d)->p2m)
#define hvm_tsc_scaling_supported true
#define hvm_default_tsc_scaling_ratio 0
#define domain_vcpu(d, n) ((n) < (d)->max_vcpus ? (d)->vcpu[n] : NULL)
#define for_each_vcpu(d, v) \
    for ( unsigned int i_ = 0; \
          i_ < (d)->max_vcpus && ((v) = (d)->vcpu[i_], 1); i_++ )
#define is_hardware_domain(d) ((d)->hardware)
#define is_hvm_domain(d) ((d)->hvm)
#define hap_enabled(d) ((d)->hap)
#define p2m_pod_active(d) ((d)->pod)
#define is_iommu_enabled(d) ((d)->iommu)
#define has_arch_pdevs(d) ((d)->pdevs)
#define paging_mode_log_dirty(d) ((d)->log_dirty)
#define altp2m_active(d) ((d)->altp2m)
#define nestedhvm_enabled(d) ((d)->nested)
#define mem_paging_enabled(d) ((d)->paging)
#define mem_sharing_enabled(d) ((d)->sharing)
#define is_viridian_domain(d) ((d)->viridian)
#define vm_event_check_ring(ring) (ring)
#define X86_EMU_LAPIC (1u << 0)
#define X86_EMU_PIC   (1u << 5)
#define gfn_valid(d, g) (gfn_x(g) < (1UL << 36))
#define domain_crash(d) ((void)((d)->crashed = true))
extern struct vcpu *current;
#define smp_processor_id() 0
#define this_cpu(v) per_cpu_##v
#define DEFINE_PER_CPU(t, v) typeof(t) per_cpu_##v
struct cpu_user_regs {
    unsigned long rip, rsp, rax, rcx, rdx, rsi, rdi, rflags;
};
extern struct cpu_user_regs fake_regs;
#define guest_cpu_user_regs() (&fake_regs)
void vcpu_pause_nosync(struct vcpu *v);
void vcpu_unpause(struct vcpu *v);
void vcpu_runstate_get(const struct vcpu *v, struct vcpu_runstate_info *state);
#define vcpu_runnable(v) \
    (!((v)->paused || (v)->pause_flags || (v)->domain->pauses))
#define vcpu_kick(v) ((void)(v)->kicks++)
/* pauses is the sum; some of them are the control domain's. */
static inline void domain_pause_nosync(struct domain *d)
{
    d->pauses++;
}
void domain_pause(struct domain *d);
static inline void domain_unpause(struct domain *d)
{
    if ( --d->pauses < d->controller_pause_count )
        die("somebody else's pause is taken away");
}
static inline int domain_pause_by_systemcontroller_nosync(struct domain *d)
{
    d->controller_pause_count++;
    d->pauses++;
    return 0;
}
static inline int domain_unpause_by_systemcontroller(struct domain *d)
{
    if ( !d->controller_pause_count )
        return -EINVAL;
    d->controller_pause_count--;
    d->pauses--;
    return 0;
}
int rcu_lock_live_remote_domain_by_id(domid_t id, struct domain **d);
#define domain_lock(d) spin_lock(&(d)->domain_lock)
#define domain_unlock(d) spin_unlock(&(d)->domain_lock)
#define rspin_is_locked(l) ((l)->held)
#define rcu_unlock_domain(d) ((void)(d))
/* Who asks may be a device model of the domain, not the control domain. */
extern bool fake_device_model;
enum { XSM_PRIV, XSM_DM_PRIV };
#define xsm_dsm_op(how, d) \
    (fake_device_model && (how) == XSM_PRIV ? -EPERM : 0)
#define XENLOG_G_ERR
#define PRI_gfn "05lx"
#define printk(...) printf("# " __VA_ARGS__)
/* What was said last. */
__attribute__((weak)) char fake_said[160];
#define gprintk(level, ...) \
    (snprintf(fake_said, sizeof(fake_said), __VA_ARGS__), \
     printf("# %s", fake_said))

/* Pages that are mapped for good. */
#define gfn_to_gaddr(g) (gfn_x(g) << 12)
#define gaddr_to_gfn(a) _gfn((a) >> 12)
#define pfn_to_paddr(n) ((uint64_t)(n) << 12)
void vcpu_info_populate(void *map, struct vcpu *v);
int map_guest_area(struct vcpu *v, paddr_t addr, unsigned int size,
                   struct guest_area *area,
                   void (*populate)(void *dst, struct vcpu *v));
extern void (*when_mapped)(void); /* map_guest_area() has done it */
void vcpu_info_reset(struct vcpu *v);
void unmap_domain_page_global(const void *map);
#define port_is_valid(d, port) ((port) < NR_PORTS)
#define evtchn_from_port(d, port) (&(d)->evtchn[port])
void hvm_assert_evtchn_irq(struct vcpu *v);

/* Event channels: what was done is added to fake_events. */
struct evtchn_bind_ipi { uint32_t vcpu, port; };
struct evtchn_bind_virq { uint32_t virq, vcpu, port; };
struct evtchn_bind_vcpu { uint32_t port, vcpu; };
struct evtchn_send { uint32_t port; };
struct evtchn_unmask { uint32_t port; };
struct evtchn_close { uint32_t port; };
struct evtchn_status {
    domid_t dom;
    uint32_t port, status, vcpu;
    uint64_t u;
};
struct evtchn_alloc_unbound { domid_t dom, remote_dom; uint32_t port; };
struct evtchn_bind_interdomain {
    domid_t remote_dom;
    uint32_t remote_port, local_port;
};
extern char fake_events[256];
extern unsigned int fake_port;  /* that a bind allocates */
extern int fake_rc;
int evtchn_bind_ipi(struct domain *d, struct evtchn_bind_ipi *bind);
int evtchn_bind_virq(struct domain *d, struct evtchn_bind_virq *bind,
                     evtchn_port_t port);
int evtchn_unmask(struct domain *d, unsigned int port);
int evtchn_close(struct domain *d, int port, bool guest);
int evtchn_status(struct evtchn_status *status);
int evtchn_send(struct domain *d, unsigned int port);

/* Time, events, hypercalls. */
extern s_time_t fake_now;
#define NOW() (fake_now)
extern uint64_t fake_tsc;
extern unsigned long cpu_khz;
/* Of a vCPU that does not run, and which nobody starts meanwhile. */
void hvm_set_tsc_offset(struct vcpu *v, uint64_t offset, uint64_t at);
#define rdtsc_ordered() (fake_tsc)
#define XEN_PVCLOCK_TSC_STABLE_BIT (1 << 0)
struct vcpu_time_info {
    uint32_t version, pad0;
    uint64_t tsc_timestamp, system_time;
    uint32_t tsc_to_system_mul;
    int8_t tsc_shift;
    uint8_t flags, pad1[2];
};
struct time_scale { int shift; uint32_t mul_frac; };
void collect_time_info(const struct vcpu *v, struct vcpu_time_info *u);
static inline uint64_t scale_delta(uint64_t delta,
                                   const struct time_scale *scale)
{
    delta = scale->shift < 0 ? delta >> -scale->shift : delta << scale->shift;
    return (unsigned __int128)delta * scale->mul_frac >> 32;
}
#define MILLISECS(n) ((s_time_t)(n) * 1000000)
#define SECONDS(n)   MILLISECS((n) * 1000LL)
#define init_timer(t, f, d, cpu) \
    ((void)((t)->fn = (f), (t)->data = (d), (t)->expires = 0))
#define set_timer(t, when) ((void)((t)->expires = (when)))
#define stop_timer(t) ((void)((t)->expires = 0))
#define timer_is_active(t) ((t)->expires != 0)
#define kill_timer(t) ((void)((t)->expires = 0))
int alloc_unbound_xen_event_channel(struct domain *d, unsigned int vcpu,
                                    domid_t remote,
                                    void (*fn)(struct vcpu *, unsigned int));
#define free_xen_event_channel(d, port) ((void)0)
void notify_via_xen_event_channel(struct domain *d, int port);
extern bool fake_preempt;
#define hypercall_preempt_check() (fake_preempt)
#define __HYPERVISOR_memory_op 12
#define hypercall_create_continuation(op, fmt, cmd, arg) 4242

#endif /* FAKE_DSM_H */
