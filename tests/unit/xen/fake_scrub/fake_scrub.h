/* SPDX-License-Identifier: GPL-2.0-only */
/* Of the hypervisor what common/scrub.c uses: CPUs are numbers of threads. */
#ifndef FAKE_SCRUB_H
#define FAKE_SCRUB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define __read_mostly
#define ACCESS_ONCE(x) (*(volatile __typeof__(x) *)&(x))
#define min(a, b) ((a) < (b) ? (a) : (b))

#define NR_CPUS 8U
#define MAX_NUMNODES 3
#define NUMA_NO_NODE 0xff
typedef unsigned char nodeid_t;

/* ---- CPUs ---- */

typedef struct { unsigned long bits; } cpumask_t;

extern __thread unsigned int this_cpu_number;
extern nodeid_t node_of[NR_CPUS];
extern cpumask_t cpus_of[MAX_NUMNODES];
extern bool online[NR_CPUS], pending[NR_CPUS];

#define smp_processor_id() this_cpu_number
#define cpu_to_node(cpu) node_of[cpu]
#define node_to_cpumask(node) cpus_of[node]
#define cpu_online(cpu) __atomic_load_n(&online[cpu], __ATOMIC_RELAXED)
#define softirq_pending(cpu) __atomic_load_n(&pending[cpu], __ATOMIC_RELAXED)
#define for_each_cpu(cpu, mask) \
    for ( (cpu) = 0; (cpu) < NR_CPUS; (cpu)++ ) \
        if ( (mask)->bits & 1UL << (cpu) )

static inline void cpumask_set_cpu(unsigned int cpu, cpumask_t *mask)
{
    __atomic_fetch_or(&mask->bits, 1UL << cpu, __ATOMIC_SEQ_CST);
}

static inline void cpumask_clear_cpu(unsigned int cpu, cpumask_t *mask)
{
    __atomic_fetch_and(&mask->bits, ~(1UL << cpu), __ATOMIC_SEQ_CST);
}

static inline bool cpumask_test_and_clear_cpu(unsigned int cpu, cpumask_t *mask)
{
    return __atomic_fetch_and(&mask->bits, ~(1UL << cpu), __ATOMIC_SEQ_CST) &
           1UL << cpu;
}

#define SCHEDULE_SOFTIRQ 1
void cpu_raise_softirq(unsigned int cpu, unsigned int nr);
void cpu_relax(void);

/* ---- locks: no other is taken while one is held ---- */

typedef struct { pthread_mutex_t mutex; } spinlock_t;
#define SPIN_LOCK_UNLOCKED { PTHREAD_MUTEX_INITIALIZER }

void spin_lock(spinlock_t *lock);
void spin_unlock(spinlock_t *lock);

/* ---- frames ---- */

#define _PGC_need_scrub 3
#define PGC_need_scrub (1UL << _PGC_need_scrub)
#define BUDDY_NOT_SCRUBBING 0
#define BUDDY_SCRUBBING 1
#define BUDDY_SCRUB_ABORT 2

struct page_info {
    unsigned long count_info;
    union {
        struct {
            unsigned int first_dirty;
            volatile int scrub_state;
        } free;
    } u;
};

#define test_bit(nr, word) (!!(*(word) & 1UL << (nr)))

/* ---- what can be asked and counted ---- */

#define integer_runtime_param(name, var) \
    void set_scrub_cpus(unsigned int cpus) { var = cpus; }
void set_scrub_cpus(unsigned int cpus);

extern unsigned int counted_helped;
#define perfc_add(counter, nr) \
    __atomic_fetch_add(&counted_helped, nr, __ATOMIC_RELAXED)

#endif
