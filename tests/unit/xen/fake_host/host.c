/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A host with one domain of a few extents, for test-mem-range's own test.
 *
 * It has no block of 1 GiB.  Its clock runs 20 times faster.  FAKE_HOST says
 * what is wrong with it: "unmappable" refuses every mapping, "stale" gives a
 * frame to somebody else while it is mapped, "alone" lets nobody else remove.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <xenctrl.h>
#include <xenforeignmemory.h>
#include <xenhypfs.h>

#define FIRST (1UL << 20)
#define FRAMES 4096UL
#define EXTENT 512UL

enum { WRITES, FLUSHES, FREES, FREED, DIRTIED, REMOVED, BATCHES, BUSY_AFTER, OFF, BAD_EXTENT, DOMAIN, TYPE, SPLIT, FRAME, P2M, NR };
static const char *const names[NR] = {
    "p2m: entries written",
    "p2m: TLB flushes",
    "domheap: calls to free",
    "domheap: frames freed",
    "heap: frames freed to be scrubbed",
    "guest_remove_range: extents removed",
    "guest_remove_range: several at once, with one flush",
    "guest_remove_range: removed, some frames still referenced",
    "guest_remove_range: refused, switched off",
    "guest_remove_range: refused, order or alignment",
    "guest_remove_range: refused, state of the domain",
    "guest_remove_range: refused, not plain RAM",
    "guest_remove_range: refused, not one superpage",
    "guest_remove_range: refused, frame in use",
    "guest_remove_range: refused, p2m update failed",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t first_caller;
static unsigned int count[NR];
static bool present[FRAMES];
static unsigned int users[FRAMES];
static unsigned long *content[FRAMES];

static bool wrong(const char *what)
{
    const char *set = getenv("FAKE_HOST");

    return set && !strcmp(set, what);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    uint64_t ns;

    if (syscall(SYS_clock_gettime, clock, now))
        return -1;
    ns = (now->tv_sec * 1000000000ULL + now->tv_nsec) * 20;
    now->tv_sec = ns / 1000000000;
    now->tv_nsec = ns % 1000000000;
    return 0;
}

xc_interface *xc_interface_open(void *logger, void *dombuild, unsigned int flags)
{
    first_caller = pthread_self();
    return (void *)&lock;
}

int xc_perfc_query_number(xc_interface *xch, int *nr_desc, int *nr_val)
{
    *nr_desc = *nr_val = NR;
    return 0;
}

int xc_perfc_query(xc_interface *xch, xc_perfc_desc_t *desc, xc_perfc_val_t *val)
{
    for (int i = 0; i < NR; i++) {
        strcpy(desc[i].name, names[i]);
        desc[i].nr_vals = 1;
        val[i] = count[i];
    }
    return 0;
}

int xc_domain_create(xc_interface *xch, uint32_t *domid, struct xen_domctl_createdomain *config)
{
    *domid = 1;
    return 0;
}

int xc_domain_destroy(xc_interface *xch, uint32_t domid)
{
    memset(present, 0, sizeof(present));
    return 0;
}

int xc_domain_max_vcpus(xc_interface *xch, uint32_t domid, unsigned int max) { return 0; }
int xc_domain_setmaxmem(xc_interface *xch, uint32_t domid, uint64_t kb) { return 0; }
int xc_set_paging_mempool_size(xc_interface *xch, uint32_t domid, uint64_t size) { return 0; }

static unsigned long total(void)
{
    unsigned long nr = 0;

    for (unsigned long i = 0; i < FRAMES; i++)
        nr += present[i];
    return nr;
}

int xc_domain_getinfo_single(xc_interface *xch, uint32_t domid, xc_domaininfo_t *info)
{
    info->tot_pages = total();
    return 0;
}

int xc_physinfo(xc_interface *xch, xc_physinfo_t *info)
{
    info->free_pages = FRAMES - total();
    return 0;
}

int xc_domain_populate_physmap(xc_interface *xch, uint32_t domid, unsigned long nr, unsigned int order,
                               unsigned int flags, xen_pfn_t *list)
{
    unsigned long done, i;

    if (order > 9)
        return 0;
    pthread_mutex_lock(&lock);
    for (done = 0; done < nr && list[done] - FIRST < FRAMES; done++)
        for (i = 0; i < 1UL << order; i++)
            present[list[done] - FIRST + i] = true;
    pthread_mutex_unlock(&lock);
    return done;
}

/* The frame leaves the domain; its next owner overwrites it. */
static void leave(unsigned long i)
{
    present[i] = false;
    if (content[i] && (!users[i] || wrong("stale")))
        memset(content[i], 0, 4096);
}

static int decrease_one(unsigned long gfn, unsigned int order)
{
    unsigned long begin = gfn - FIRST, nr = 1UL << order, i, here = 0, used = 0;

    if (gfn < FIRST || begin + nr > FRAMES)
        return 0;
    if (wrong("alone") && !pthread_equal(pthread_self(), first_caller))
        return 0;
    for (i = begin; i < begin + nr; i++) {
        here += present[i];
        used += users[i] > 0;
    }
    if (order == 9)
        count[!here ? TYPE : here < nr ? SPLIT : used ? FRAME : REMOVED]++;
    for (i = begin; i < begin + nr && present[i]; i++)
        leave(i);
    return i == begin + nr;
}

int xc_domain_decrease_reservation(xc_interface *xch, uint32_t domid, unsigned long nr, unsigned int order,
                                   xen_pfn_t *list)
{
    unsigned long done = 0;

    pthread_mutex_lock(&lock);
    while (done < nr && decrease_one(list[done], order))
        done++;
    count[BATCHES] += order == 9 && nr > 1 && done;
    pthread_mutex_unlock(&lock);
    return done;
}

xenforeignmemory_handle *xenforeignmemory_open(void *logger, unsigned int flags) { return (void *)&lock; }

/* Of one frame only. */
void *xenforeignmemory_map(xenforeignmemory_handle *fmem, uint32_t domid, int prot, size_t pages,
                           const unsigned long *list, int *errors)
{
    unsigned long i = list[0] - FIRST;
    void *found = NULL;

    pthread_mutex_lock(&lock);
    if (pages == 1 && i < FRAMES && present[i] && !wrong("unmappable")) {
        if (!content[i])
            content[i] = calloc(1, 4096);
        users[i]++;
        found = content[i];
    }
    pthread_mutex_unlock(&lock);
    errno = ENOENT;
    return found;
}

int xenforeignmemory_unmap(xenforeignmemory_handle *fmem, void *addr, size_t pages)
{
    pthread_mutex_lock(&lock);
    for (unsigned long i = 0; i < FRAMES; i++)
        if (content[i] == addr)
            users[i]--;
    pthread_mutex_unlock(&lock);
    return 0;
}

xenhypfs_handle *xenhypfs_open(void *logger, unsigned int flags) { return (void *)&lock; }
int xenhypfs_write(xenhypfs_handle *hypfs, const char *path, const char *value) { return 0; }
