// SPDX-License-Identifier: GPL-2.0
/*
 * xen_libxc.c and slice.c against Xen's libraries, which are played: a slice is
 * built of the largest pages that fit, switched on, filled; each call that fails
 * says which one with its numbers, and leaves no domain; the ring is read without
 * losing a miss, full or not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xenctrl.h>
#include <xenctrl_dsm.h>
#include <xenevtchn.h>
#include <xenforeignmemory.h>
#include <xenguest.h>
#include <xenstore.h>

#include "case.h"
#include "hypervisor.h"

#define NR(a)	(sizeof(a) / sizeof((a)[0]))
#define DOMID	9u
#define PORT	17u
#define ENTRIES	4u

struct fake_handle {
	int dummy;
};
struct fake_resource {
	int dummy;
};

static struct fake_handle handle;
static struct fake_resource resource;

static struct {
	const char *fail_at;		/* this call fails with fail_errno */
	int fail_errno;
	unsigned int refused;
	unsigned int domains, handles, mapped, events, flushes, unmasks;
	int pipe[2];
	struct xen_domctl_createdomain config;
	uint64_t kib, paging;
	unsigned int extents[32];	/* populated, by order */
	uint64_t populated, last_gfn, limit;	/* frames; more than limit fail */
	bool no_superpages;
	uint64_t away_first, away_nr, pool, dropped_first, dropped, merged;
	const char *fail_next;		/* after that one, so fails this */
	uint64_t given_back, lowest;	/* frames; the first of them */
	unsigned int slice, nr_slices, nr_ranges;
	unsigned int keepalive_ms, crashed, flags;
	uint8_t ring[2 * XC_PAGE_SIZE] __attribute__((aligned(4096)));
	struct xen_dsm_ring_entry behind[8];	/* what Xen had no room for */
	unsigned int nr_behind;
	unsigned int query_state;
	char published[128], name[128];
	/* vCPUs that run on several hosts */
	unsigned int shut, unpaused, paused, up, tsc_mode, placed_vcpu, placed_slice;
	uint64_t info_frame, info_mapped, tsc;
	xen_dsm_time_t time;
	xen_dsm_vcpu_event_t event;
	xen_dsm_ports_t ports;
	xen_dsm_call_t call, reply;
	xen_dsm_access_t access;
	xen_dsm_access_done_t accessed;
	uint32_t reply_vcpu;
	uint64_t cookie;
	uint32_t leaves, msrs;		/* of the policy */
	uint64_t policy_sum;
} xen;

static bool fails(const char *call)
{
	if (!xen.fail_at || strcmp(xen.fail_at, call))
		return false;
	errno = xen.fail_errno;
	if (xen.fail_next) {
		xen.fail_at = xen.fail_next;
		xen.fail_next = NULL;
	}
	return true;
}

#define ZERO_OR(call)	do { if (fails(#call)) return -1; } while (0)

xc_interface *xc_interface_open(void *logger, void *builder, unsigned int flags)
{
	(void)logger;
	(void)builder;
	(void)flags;
	if (fails("open"))
		return NULL;
	xen.handles++;
	return &handle;
}

int xc_interface_close(xc_interface *xch)
{
	(void)xch;
	xen.handles--;
	return 0;
}

int xc_domain_create(xc_interface *xch, uint32_t *domid, struct xen_domctl_createdomain *config)
{
	(void)xch;
	ZERO_OR(create);
	xen.config = *config;
	xen.domains++;
	*domid = DOMID;
	return 0;
}

int xc_domain_destroy(xc_interface *xch, uint32_t domid)
{
	(void)xch;
	CHECK(domid == DOMID && xen.domains, "destroyed: %u", domid);
	xen.domains--;
	return 0;
}

int xc_domain_shutdown(xc_interface *xch, uint32_t domid, int reason)
{
	(void)xch;
	CHECK(domid == DOMID, "domain %u", domid);
	ZERO_OR(shutdown);
	xen.crashed += reason == SHUTDOWN_crash;
	xen.shut = (unsigned int)reason;
	return 0;
}

int xc_domain_max_vcpus(xc_interface *xch, uint32_t domid, unsigned int max)
{
	(void)xch;
	ZERO_OR(max_vcpus);
	CHECK(domid == DOMID && max == 4, "%u", max);
	return 0;
}

int xc_domain_setmaxmem(xc_interface *xch, uint32_t domid, uint64_t kib)
{
	(void)xch;
	(void)domid;
	ZERO_OR(setmaxmem);
	xen.kib = kib;
	return 0;
}

int xc_set_paging_mempool_size(xc_interface *xch, uint32_t domid, uint64_t bytes)
{
	(void)xch;
	(void)domid;
	ZERO_OR(mempool);
	CHECK(!(bytes & ((1 << 20) - 1)), "whole MiB: %llu", (unsigned long long)bytes);
	xen.paging = bytes;
	return 0;
}

int xc_domain_populate_physmap(xc_interface *xch, uint32_t domid, unsigned long nr,
			       unsigned int order, unsigned int flags, xen_pfn_t *list)
{
	unsigned long i;

	(void)xch;
	(void)flags;
	ZERO_OR(populate);
	CHECK(domid == DOMID, "%u", domid);
	if (order && xen.no_superpages)
		return 0;
	for (i = 0; i < nr; i++) {
		CHECK(!(list[i] & ((1ul << order) - 1)), "gfn %lx of order %u", list[i], order);
		if (xen.populated + (1ull << order) > xen.limit)
			return (int)i;
		xen.extents[order]++;
		xen.populated += 1ull << order;
		xen.last_gfn = list[i] + (1ull << order) - 1;
	}
	return (int)nr;
}

int xc_domain_decrease_reservation(xc_interface *xch, uint32_t domid, unsigned long nr,
				   unsigned int order, xen_pfn_t *list)
{
	unsigned long i;

	(void)xch;
	ZERO_OR(decrease);
	CHECK(domid == DOMID && !order && nr, "%u", domid);
	for (i = 1; i < nr; i++)
		CHECK(list[i] == list[0] + i, "gfn %lx after %lx", list[i], list[i - 1]);
	if (xen.given_back + nr > xen.limit)
		return (int)(xen.limit - xen.given_back);
	xen.given_back += nr;
	xen.lowest = list[0];
	return (int)nr;
}

int xc_physinfo(xc_interface *xch, xc_physinfo_t *info)
{
	(void)xch;
	ZERO_OR(physinfo);
	*info = (xc_physinfo_t){ 1000, 24 };
	return 0;
}

int xc_domain_getinfo_single(xc_interface *xch, uint32_t domid, xc_domaininfo_t *info)
{
	(void)xch;
	ZERO_OR(getinfo);
	CHECK(domid == DOMID, "%u", domid);
	*info = (xc_domaininfo_t){ .tot_pages = 11, .max_pages = 500, .flags = xen.flags,
				   .shared_info_frame = xen.info_frame };
	return 0;
}

int xc_dsm_enable(xc_interface *xch, uint32_t domid, xen_dsm_range_t *ranges,
		  unsigned int nr_ranges, unsigned int slice, unsigned int nr_slices,
		  evtchn_port_t *port, unsigned int *refused)
{
	(void)xch;
	(void)domid;
	(void)ranges;
	*refused = xen.refused;
	ZERO_OR(enable);
	xen.nr_ranges = nr_ranges;
	xen.slice = slice;
	xen.nr_slices = nr_slices;
	*port = PORT;
	return 0;
}

const char *xc_dsm_refusal(unsigned int refused)
{
	return refused == 2 ? "the domain has run already" : "?";
}

int xc_dsm_page(xc_interface *xch, uint32_t domid, xen_dsm_page_op_t *ops, unsigned int nr)
{
	unsigned int i;

	(void)xch;
	CHECK(domid == DOMID && nr <= XEN_DSM_MAX_PAGE_OPS, "%u", nr);
	ZERO_OR(page);
	for (i = 0; i < nr; i++) {
		CHECK(!ops[i].flags && (!ops[i].wanted || ops[i].op == XEN_DSM_HOLE), "not zero");
		ops[i].rc = ops[i].op == XEN_DSM_QUERY ? 0 : -(int)ops[i].gfn;
		/* What came back for whom. */
		if (ops[i].op == XEN_DSM_HOLE && ops[i].wanted != (ops[i].gfn ? 3 : XEN_DSM_HOLE_FOREIGN))
			ops[i].rc = -ENXIO;
		ops[i].state = xen.query_state;
		ops[i].wanted = XEN_DSM_WANT_M;
		if (ops[i].buf.p)
			memset(ops[i].buf.p, (int)ops[i].op, XC_PAGE_SIZE);
	}
	return 0;
}

void xc_dsm_set_buffer(xen_dsm_page_op_t *op, void *page)
{
	op->buf.p = page;
}

void *xc_dsm_alloc_pages(xc_interface *xch, unsigned int nr)
{
	(void)xch;
	return calloc(nr, XC_PAGE_SIZE);
}

void xc_dsm_free_pages(xc_interface *xch, void *pages, unsigned int nr)
{
	(void)xch;
	(void)nr;
	free(pages);
}

static struct xen_dsm_ring *ring(void)
{
	return (struct xen_dsm_ring *)xen.ring;
}

static void xen_puts(struct xen_dsm_ring_entry entry)
{
	struct xen_dsm_ring_entry *at = (struct xen_dsm_ring_entry *)(xen.ring + XC_PAGE_SIZE);

	if (ring()->prod - ring()->cons >= ENTRIES) {
		ring()->full = 1;
		xen.behind[xen.nr_behind++] = entry;
		return;
	}
	at[ring()->prod++ % ENTRIES] = entry;
}

int xc_dsm_flush(xc_interface *xch, uint32_t domid)
{
	unsigned int i, nr = xen.nr_behind;

	(void)xch;
	(void)domid;
	ZERO_OR(flush);
	xen.flushes++;
	xen.nr_behind = 0;
	for (i = 0; i < nr; i++)
		xen_puts(xen.behind[i]);
	return 0;
}

int xc_dsm_keepalive(xc_interface *xch, uint32_t domid, unsigned int timeout_ms)
{
	(void)xch;
	(void)domid;
	ZERO_OR(keepalive);
	xen.keepalive_ms = timeout_ms;
	return 0;
}

int xc_dsm_stats(xc_interface *xch, uint32_t domid, xen_dsm_stats_t *stats)
{
	(void)xch;
	(void)domid;
	ZERO_OR(stats);
	memset(stats, 0xee, sizeof(*stats));
	stats->waits = 1;
	stats->wait_ns = 2;
	stats->traps = 3;
	stats->trap_ns = 4;
	stats->wakes = 5;
	stats->wake_ns = 6;
	return 0;
}

int xc_dsm_pool_add(xc_interface *xch, uint32_t domid, uint64_t nr, uint64_t *done)
{
	(void)xch;
	(void)domid;
	*done = fails("pool_add") ? 5 : nr;
	xen.pool += *done;
	return *done == nr ? 0 : -1;
}

int xc_dsm_pool_del(xc_interface *xch, uint32_t domid, uint64_t nr, uint64_t *done)
{
	(void)xch;
	(void)domid;
	*done = fails("pool_del") ? 2 : nr;
	xen.pool -= *done;
	return *done == nr ? 0 : -1;
}

int xc_dsm_away(xc_interface *xch, uint32_t domid, uint64_t first, uint64_t nr, uint64_t *done)
{
	(void)xch;
	(void)domid;
	*done = fails("away") ? 3 : nr;
	xen.away_first = first;
	xen.away_nr = nr;
	return *done == nr ? 0 : -1;
}

int xc_dsm_merge(xc_interface *xch, uint32_t domid, uint64_t first)
{
	(void)xch;
	(void)domid;
	ZERO_OR(merge);
	xen.merged = first;
	return 0;
}

int xc_dsm_drop_range(xc_interface *xch, uint32_t domid, uint64_t first, uint64_t nr, uint64_t *done)
{
	(void)xch;
	(void)domid;
	*done = fails("drop") ? 4 : nr;
	xen.dropped_first = first;
	xen.dropped = *done;
	return *done == nr ? 0 : -1;
}

/* ---- vCPUs ---- */

int xc_domain_unpause(xc_interface *xch, uint32_t domid)
{
	(void)xch;
	(void)domid;
	ZERO_OR(unpause);
	xen.unpaused++;
	return 0;
}

int xc_domain_pause(xc_interface *xch, uint32_t domid)
{
	(void)xch;
	CHECK(domid == DOMID, "%u", domid);
	ZERO_OR(pause);
	xen.paused++;
	return 0;
}

int xc_vcpu_getinfo(xc_interface *xch, uint32_t domid, uint32_t vcpu, xc_vcpuinfo_t *info)
{
	(void)xch;
	CHECK(domid == DOMID, "%u", domid);
	info->online = 1;
	ZERO_OR(vcpuinfo);
	info->online = vcpu == xen.up;
	return 0;
}

int xc_domain_set_tsc_info(xc_interface *xch, uint32_t domid, uint32_t mode, uint64_t ns,
			   uint32_t khz, uint32_t incarnation)
{
	(void)xch;
	CHECK(domid == DOMID && !ns && !khz && !incarnation, "zeros");
	ZERO_OR(tsc_info);
	xen.tsc_mode = mode;
	return 0;
}

int xc_dsm_place(xc_interface *xch, uint32_t domid, uint32_t vcpu, unsigned int slice, uint64_t *info)
{
	(void)xch;
	(void)domid;
	ZERO_OR(place);
	if (info)
		*info = 0x5000 * slice;
	xen.placed_vcpu = vcpu;
	xen.placed_slice = slice;
	return 0;
}

int xc_dsm_send(xc_interface *xch, uint32_t domid, const xen_dsm_vcpu_event_t *event)
{
	(void)xch;
	(void)domid;
	ZERO_OR(send);
	xen.event = *event;
	return 0;
}

int xc_dsm_send_ports(xc_interface *xch, uint32_t domid, const xen_dsm_ports_t *ports)
{
	(void)xch;
	(void)domid;
	ZERO_OR(send_ports);
	xen.ports = *ports;
	return 0;
}

int xc_dsm_call(xc_interface *xch, uint32_t domid, xen_dsm_call_t *call)
{
	(void)xch;
	(void)domid;
	ZERO_OR(call);
	xen.call = *call;
	call->rc = -17;
	call->arg[2] = 99;
	return 0;
}

int xc_dsm_reply(xc_interface *xch, uint32_t domid, uint32_t vcpu, uint64_t cookie,
		 const xen_dsm_call_t *call)
{
	(void)xch;
	(void)domid;
	ZERO_OR(reply);
	xen.reply_vcpu = vcpu;
	xen.cookie = cookie;
	xen.reply = *call;
	return 0;
}

int xc_dsm_do_access(xc_interface *xch, uint32_t domid, xen_dsm_access_t *access)
{
	(void)xch;
	(void)domid;
	ZERO_OR(access);
	xen.access = *access;
	access->old = 1234;
	access->in_use = 1;
	return 0;
}

int xc_dsm_access_done(xc_interface *xch, uint32_t domid, const xen_dsm_access_done_t *done)
{
	(void)xch;
	(void)domid;
	ZERO_OR(accessed);
	xen.accessed = *done;
	return 0;
}

int xc_dsm_shared_info(xc_interface *xch, uint32_t domid, uint64_t gfn)
{
	(void)xch;
	(void)domid;
	ZERO_OR(shared_info);
	xen.info_mapped = gfn;
	return 0;
}

int xc_dsm_get_tsc(xc_interface *xch, uint32_t domid, uint64_t *offset)
{
	(void)xch;
	(void)domid;
	ZERO_OR(get_tsc);
	*offset = 4711;
	return 0;
}

int xc_dsm_set_tsc(xc_interface *xch, uint32_t domid, uint64_t offset)
{
	(void)xch;
	(void)domid;
	ZERO_OR(set_tsc);
	xen.tsc = offset;
	return 0;
}

int xc_dsm_jump(xc_interface *xch, uint32_t domid, uint64_t ticks)
{
	(void)xch;
	(void)domid;
	ZERO_OR(jump);
	xen.tsc += ticks;
	return 0;
}

int xc_dsm_get_time(xc_interface *xch, uint32_t domid, xen_dsm_time_t *time)
{
	(void)xch;
	(void)domid;
	ZERO_OR(get_time);
	*time = (xen_dsm_time_t){ .tsc = 1, .ns = 2, .mul = 1000, .shift = -3, .slow = 1 };
	return 0;
}

int xc_dsm_set_time(xc_interface *xch, uint32_t domid, const xen_dsm_time_t *time)
{
	(void)xch;
	(void)domid;
	ZERO_OR(set_time);
	xen.time = *time;
	return 0;
}

struct xc_cpu_policy {
	unsigned int system;		/* of this host: XEN_SYSCTL_cpu_policy_*; 0: of a domain */
};

xc_cpu_policy_t *xc_cpu_policy_init(void)
{
	return fails("policy_init") ? NULL : calloc(1, sizeof(struct xc_cpu_policy));
}

void xc_cpu_policy_destroy(xc_cpu_policy_t *policy)
{
	free(policy);
}

int xc_cpu_policy_get_size(xc_interface *xch, uint32_t *nr_leaves, uint32_t *nr_msrs)
{
	(void)xch;
	ZERO_OR(policy_size);
	*nr_leaves = xen.leaves + 3;	/* most of them */
	*nr_msrs = xen.msrs + 1;
	return 0;
}

int xc_cpu_policy_get_system(xc_interface *xch, unsigned int policy_idx, xc_cpu_policy_t *policy)
{
	(void)xch;
	CHECK(policy_idx == XEN_SYSCTL_cpu_policy_hvm_default || policy_idx == XEN_SYSCTL_cpu_policy_hvm_max,
	      "%u", policy_idx);
	ZERO_OR(policy_system);
	policy->system = policy_idx;
	return 0;
}

int xc_cpu_policy_get_domain(xc_interface *xch, uint32_t domid, xc_cpu_policy_t *policy)
{
	(void)xch;
	(void)policy;
	CHECK(domid == DOMID, "%u", domid);
	ZERO_OR(policy_get);
	return 0;
}

int xc_cpu_policy_set_domain(xc_interface *xch, uint32_t domid, xc_cpu_policy_t *policy)
{
	(void)xch;
	(void)policy;
	CHECK(domid == DOMID, "%u", domid);
	ZERO_OR(policy_set);
	return 0;
}

int xc_cpu_policy_serialise(xc_interface *xch, const xc_cpu_policy_t *policy, xen_cpuid_leaf_t *leaves,
			    uint32_t *nr_leaves, xen_msr_entry_t *msrs, uint32_t *nr_msrs)
{
	uint32_t i;

	(void)xch;
	ZERO_OR(serialise);
	if (policy->system) {
		leaves[0] = (xen_cpuid_leaf_t){ 0x7, 0, 0, 0xf0, 0xff, 0 };
		if (policy->system == XEN_SYSCTL_cpu_policy_hvm_max)
			leaves[0].b |= 0x100;
		leaves[1] = (xen_cpuid_leaf_t){ 0x80000001, XEN_CPUID_NO_SUBLEAF, 0, 0, 0, 1 };
		*nr_leaves = 2;
		*nr_msrs = 0;
		return 0;
	}
	CHECK(*nr_leaves >= xen.leaves && *nr_msrs >= xen.msrs, "room");
	for (i = 0; i < xen.leaves; i++)
		leaves[i] = (xen_cpuid_leaf_t){ .leaf = i, .a = 7 };
	for (i = 0; i < xen.msrs; i++)
		msrs[i] = (xen_msr_entry_t){ .idx = i, .val = 1000 };
	*nr_leaves = xen.leaves;
	*nr_msrs = xen.msrs;
	return 0;
}

int xc_cpu_policy_update_cpuid(xc_interface *xch, xc_cpu_policy_t *policy,
			       const xen_cpuid_leaf_t *leaves, uint32_t nr)
{
	uint32_t i;

	(void)xch;
	(void)policy;
	ZERO_OR(update_cpuid);
	for (i = 0; i < nr; i++)
		xen.policy_sum += leaves[i].a;
	return 0;
}

int xc_cpu_policy_update_msrs(xc_interface *xch, xc_cpu_policy_t *policy,
			      const xen_msr_entry_t *msrs, uint32_t nr)
{
	uint32_t i;

	(void)xch;
	(void)policy;
	ZERO_OR(update_msrs);
	for (i = 0; i < nr; i++)
		xen.policy_sum += msrs[i].val;
	return 0;
}

xenevtchn_handle *xenevtchn_open(void *logger, unsigned int flags)
{
	(void)logger;
	(void)flags;
	if (fails("evtchn"))
		return NULL;
	xen.handles++;
	return &handle;
}

int xenevtchn_close(xenevtchn_handle *xce)
{
	(void)xce;
	xen.handles--;
	return 0;
}

int xenevtchn_fd(xenevtchn_handle *xce)
{
	(void)xce;
	return xen.pipe[0];
}

xenevtchn_port_or_error_t xenevtchn_bind_interdomain(xenevtchn_handle *xce, uint32_t domid, evtchn_port_t port)
{
	(void)xce;
	ZERO_OR(bind);
	CHECK(domid == DOMID && port == PORT, "port %u", port);
	return 40;
}

xenevtchn_port_or_error_t xenevtchn_pending(xenevtchn_handle *xce)
{
	char byte;

	(void)xce;
	CHECK(fcntl(xen.pipe[0], F_GETFL) & O_NONBLOCK, "it may sleep");
	if (read(xen.pipe[0], &byte, 1) == 1)
		return 40;
	return -1;	/* EAGAIN */
}

int xenevtchn_unmask(xenevtchn_handle *xce, evtchn_port_t port)
{
	(void)xce;
	CHECK(port == 40, "%u", port);
	xen.unmasks++;
	return 0;
}

xenforeignmemory_handle *xenforeignmemory_open(void *logger, unsigned int flags)
{
	(void)logger;
	(void)flags;
	xen.handles++;
	return &handle;
}

int xenforeignmemory_close(xenforeignmemory_handle *fmem)
{
	(void)fmem;
	xen.handles--;
	return 0;
}

int xenforeignmemory_resource_size(xenforeignmemory_handle *fmem, uint32_t domid, unsigned int type,
				   unsigned int id, size_t *size)
{
	(void)fmem;
	(void)domid;
	ZERO_OR(size);
	CHECK(type == XENMEM_resource_dsm_ring && !id, "%u", type);
	*size = sizeof(xen.ring);
	return 0;
}

xenforeignmemory_resource_handle *xenforeignmemory_map_resource(
	xenforeignmemory_handle *fmem, uint32_t domid, unsigned int type, unsigned int id,
	unsigned long frame, unsigned long nr, void **address, int prot, int flags)
{
	(void)fmem;
	(void)domid;
	(void)type;
	(void)id;
	(void)prot;
	(void)flags;
	if (fails("map"))
		return NULL;
	CHECK(!frame && nr == 2, "%lu", nr);
	xen.mapped++;
	*address = xen.ring;
	return &resource;
}

int xenforeignmemory_unmap_resource(xenforeignmemory_handle *fmem, xenforeignmemory_resource_handle *r)
{
	(void)fmem;
	CHECK(r == &resource, "another");
	xen.mapped--;
	return 0;
}

struct xs_handle *xs_open(unsigned long flags)
{
	(void)flags;
	return fails("xenstore") ? NULL : (struct xs_handle *)&handle;
}

void xs_close(struct xs_handle *xs)
{
	(void)xs;
}

bool xs_write(struct xs_handle *xs, uint32_t transaction, const char *path, const void *data, unsigned int size)
{
	(void)xs;
	CHECK(transaction == XBT_NULL, "a transaction");
	if (strstr(path, "/name"))
		snprintf(xen.name, sizeof(xen.name), "%s=%.*s", path, (int)size, (const char *)data);
	else
		snprintf(xen.published, sizeof(xen.published), "%s=%.*s", path, (int)size, (const char *)data);
	return true;
}

bool xs_rm(struct xs_handle *xs, uint32_t transaction, const char *path)
{
	(void)xs;
	CHECK(transaction == XBT_NULL && !strcmp(path, "/local/domain/9") && !xen.domains && xen.name[0],
	      "removed: %s, with the name '%s'", path, xen.name);
	xen.name[0] = 0;
	return true;
}

/* ---- The cases ---- */

static struct dsm_config config;
static struct dsm_description d;
static char text[DSM_ENGINE_TEXT];

static void begin(bool build)
{
	memset(&xen, 0, sizeof(xen));
	xen.limit = UINT64_MAX;
	ring()->nr = ENTRIES;
	CHECK(!pipe(xen.pipe), "a pipe");
	memset(&config, 0, sizeof(config));
	config.self = 1;
	config.nr_hosts = 2;
	strcpy(config.host[0].name, "alpha");
	strcpy(config.host[1].name, "beta");
	d = (struct dsm_description){
		.name = "vm", .uuid = "fifteen letters", .build = build,
		.domid = build ? 0 : DOMID, .nr_vcpus = 4, .frames = 128, .nr_ranges = 2,
		.range = { { 0, 0x1000, 0 }, { 0x40000 - 0x200 - 3, 0x80000 + 0x400 + 1, 1 } },
	};
}

static void end(struct dsm_xen *opened)
{
	if (opened)
		opened->calls->close(opened);
	CHECK(!xen.handles && !xen.mapped && !xen.domains && !xen.name[0],
	      "%u handles, %u maps, %u domains, '%s' left", xen.handles, xen.mapped, xen.domains, xen.name);
	close(xen.pipe[0]);
	close(xen.pipe[1]);
}

static void build(const void *argument)
{
	struct dsm_xen *opened;
	uint64_t frames = 0x40000 + 0x400 + 1 + 0x200 + 3;

	(void)argument;
	begin(true);
	opened = dsm_hypervisor_open(&d, &config, text);
	CHECK(opened, "%s", text);
	CHECK(xen.domains == 1 && xen.config.max_vcpus == 4 && xen.config.max_evtchn_port == 4095 &&
	      !memcmp(xen.config.handle, d.uuid, 16), "a domain");
	CHECK(xen.extents[18] == 1 && xen.extents[9] == 3 && xen.extents[0] == 3 + 1 &&
	      xen.populated == frames && xen.last_gfn == d.range[1].end - 1,
	      "%u of 1 GiB, %u of 2 MiB, %u pages; %llx of %llx frames", xen.extents[18], xen.extents[9],
	      xen.extents[0], (unsigned long long)xen.populated, (unsigned long long)frames);
	CHECK(xen.kib >= (frames + 128) * 4 && xen.kib < (frames + 1024) * 4, "%llu KiB",
	      (unsigned long long)xen.kib);
	CHECK(xen.paging >= (frames / 512 + 1280) * 4096, "%llu bytes", (unsigned long long)xen.paging);
	CHECK(xen.slice == 1 && xen.nr_slices == 2 && xen.nr_ranges == 2, "slice %u of %u", xen.slice,
	      xen.nr_slices);
	CHECK(!xen.away_first && xen.away_nr == 0x1000 && xen.pool == 128, "away and the pool");
	CHECK(!strcmp(xen.name, "/local/domain/9/name=vm-slice-alpha"), "'%s'", xen.name);
	end(opened);
	/* Without xenstore it has none. */
	begin(true);
	xen.fail_at = "xenstore";
	xen.fail_errno = EMFILE;
	opened = dsm_hypervisor_open(&d, &config, text);
	CHECK(opened && !xen.name[0], "%s, '%s'", text, xen.name);
	end(opened);
}

/* A domain that is there is not built, and not destroyed. */
static void take_over(const void *argument)
{
	struct dsm_xen *opened;

	(void)argument;
	begin(false);
	opened = dsm_hypervisor_open(&d, &config, text);
	CHECK(opened && !xen.domains && !xen.populated && xen.pool == 128, "%s", text);
	end(opened);
}

static void small_pages(const void *argument)
{
	struct dsm_xen *opened;

	(void)argument;
	begin(true);
	d.range[1] = (struct dsm_range){ 0x40000, 0x40000 + 0x300, 1 };
	xen.no_superpages = true;
	opened = dsm_hypervisor_open(&d, &config, text);
	CHECK(opened && xen.extents[0] == 0x300 && xen.last_gfn == 0x402ff, "%s", text);
	end(opened);
}

static const struct failure {
	const char *call;
	int error;
	const char *words;
} failures[] = {
	{ "open", EACCES, "no way to Xen: Permission denied" },
	{ "evtchn", ENOENT, "no way to Xen: No such file" },
	{ "create", ENOMEM, "a domain of 4 vCPUs: Cannot allocate memory" },
	{ "max_vcpus", EINVAL, "domain 9: 4 vCPUs: Invalid argument" },
	{ "setmaxmem", ENOMEM, "KiB: Cannot allocate memory" },
	{ "mempool", ENOMEM, "bytes for page tables: Cannot allocate memory" },
	{ "populate", ENOMEM, "domain 9: memory at gfn 0x3fdfd of 0x3fdfd to 0x80401: Cannot allocate memory" },
	{ "enable", EBUSY, "domain 9: DSM: Device or resource busy" },
	{ "away", EEXIST, "domain 9: gfn 0x3 of host alpha: File exists" },
	{ "pool_add", ENOMEM, "domain 9: 5 of 128 frames for the pool: Cannot allocate memory" },
	{ "size", EINVAL, "domain 9: size of the ring: Invalid argument" },
	{ "map", EFAULT, "domain 9: mapping the ring: Bad address" },
	{ "bind", EINVAL, "domain 9: event channel 17: Invalid argument" },
};

static void failing(const void *argument)
{
	const struct failure *f = argument;

	begin(true);
	xen.fail_at = f->call;
	xen.fail_errno = f->error;
	CHECK(!dsm_hypervisor_open(&d, &config, text), "it worked");
	CHECK(strstr(text, f->words), "'%s', want '%s'", text, f->words);
	end(NULL);
}

static void other_failures(const void *argument)
{
	(void)argument;
	begin(true);
	xen.fail_at = "enable";
	xen.fail_errno = EOPNOTSUPP;
	xen.refused = 2;
	CHECK(!dsm_hypervisor_open(&d, &config, text) &&
	      !strcmp(text, "domain 9: DSM: the domain has run already"), "%s", text);
	end(NULL);

	/* Memory that ends half-way. */
	begin(true);
	xen.limit = 0x40000 + 100;
	CHECK(!dsm_hypervisor_open(&d, &config, text) && strstr(text, "domain 9: memory at gfn 0x"),
	      "%s", text);
	end(NULL);

	/* A ring whose size makes no sense. */
	begin(true);
	ring()->nr = 3;
	CHECK(!dsm_hypervisor_open(&d, &config, text) && strstr(text, "a ring of 3 entries"), "%s", text);
	end(NULL);
	begin(true);
	ring()->nr = 128;
	CHECK(!dsm_hypervisor_open(&d, &config, text) && strstr(text, "a ring of 128 entries"), "%s", text);
	end(NULL);
}

static void read_ring(const void *argument)
{
	struct dsm_xen_entry misses[16];
	struct dsm_xen *opened;
	unsigned int i;
	int nr;

	(void)argument;
	begin(false);
	opened = dsm_hypervisor_open(&d, &config, text);
	CHECK(opened, "%s", text);
	CHECK(opened->calls->descriptor(opened) == xen.pipe[0], "a descriptor");
	CHECK(!opened->calls->misses(opened, misses, 16), "nothing");
	CHECK(!opened->calls->has_misses(opened), "nothing");
	/* It says that it has more, and has nothing itself. */
	ring()->full = 1;
	CHECK(opened->calls->has_misses(opened) && !opened->calls->misses(opened, misses, 16) &&
	      xen.flushes == 1 && !opened->calls->has_misses(opened), "behind the ring");
	xen.flushes = 0;
	/* Three times what the ring takes. */
	for (i = 0; i < 12; i++)
		xen_puts((struct xen_dsm_ring_entry){
			.type = XEN_DSM_PAGE_MISS, .want = XEN_DSM_WANT_M, .vcpu = i, .gfn = 100 + i,
			.rip = 7, .flags = i == 2 ? XEN_DSM_MISS_FOREIGN : i == 3 ? XEN_DSM_MISS_BY_XEN : 0,
		});
	CHECK(write(xen.pipe[1], "x", 1) == 1, "an event");
	nr = opened->calls->misses(opened, misses, 16);
	CHECK(nr == 12 && xen.unmasks == 1 && xen.flushes == 2, "%d misses, %u flushes", nr, xen.flushes);
	for (i = 0; i < 12; i++)
		CHECK(misses[i].miss.gfn == 100 + i && misses[i].miss.vcpu == i &&
		      misses[i].miss.rip == 7 && misses[i].miss.want == DSM_XEN_WANT_M &&
		      misses[i].miss.foreign == (i == 2) && misses[i].miss.by_xen == (i == 3) &&
		      !misses[i].vcpu.type, "miss %u", i);
	/* Fewer places than there are: the rest comes next. */
	for (i = 0; i < 3; i++)
		xen_puts((struct xen_dsm_ring_entry){ .type = XEN_DSM_PAGE_MISS, .want = 1, .gfn = i });
	CHECK(opened->calls->has_misses(opened) && opened->calls->misses(opened, misses, 2) == 2 &&
	      opened->calls->has_misses(opened) && opened->calls->misses(opened, misses, 2) == 1 &&
	      misses[0].miss.gfn == 2 && !opened->calls->has_misses(opened), "two and one");
	/* An entry of another kind makes no sense to the engine. */
	xen_puts((struct xen_dsm_ring_entry){ .type = 9, .want = 1 });
	CHECK(opened->calls->misses(opened, misses, 2) == 1 && !misses[0].miss.want &&
	      !misses[0].vcpu.type, "another kind");
	end(opened);
}

/* What the ring says of vCPUs, and the words of Xen for what is done for others. */
static void about_vcpus(const void *argument)
{
	struct dsm_xen_entry e[8];
	struct dsm_vcpu_msg m;
	struct dsm_xen *opened;
	uint64_t info = 0;
	bool in_use = false;

	(void)argument;
	begin(true);
	d.nr_places = 1;
	d.token_home = 0;
	opened = dsm_hypervisor_open(&d, &config, text);
	CHECK(opened && xen.tsc_mode == 2 && xen.slice == 1, "%s", text);
	xen_puts((struct xen_dsm_ring_entry){ .type = XEN_DSM_VCPU_EVENT, .want = 0x9a, .flags = 2,
					      .vcpu = 3, .vectors = { 1 << 16, 2, 3, 4 } });
	xen_puts((struct xen_dsm_ring_entry){ .type = XEN_DSM_PORT_EVENT, .want = 0, .gfn = 256,
					      .vectors = { 5, 6, 7, 8 } });
	xen_puts((struct xen_dsm_ring_entry){ .type = XEN_DSM_HCALL, .want = 0, .gfn = 77, .vcpu = 1,
					      .rip = 32 | 7ull << 32, .vectors = { 2, 10, 11, 12 } });
	xen_puts((struct xen_dsm_ring_entry){ .type = XEN_DSM_SHUTDOWN, .want = 3 });
	xen_puts((struct xen_dsm_ring_entry){ .type = XEN_DSM_ACTIVITY, .want = 1, .gfn = 9 });
	xen_puts((struct xen_dsm_ring_entry){ .type = XEN_DSM_ACCESS, .want = XEN_DSM_ACCESS_CMPXCHG, .vcpu = 2,
					      .flags = 0xff8 | 3 << 12, .gfn = 0x54fe, .vectors = { 88, 5, 6 } });
	xen_puts((struct xen_dsm_ring_entry){ .type = XEN_DSM_PAGE_MISS, .want = 1, .flags = XEN_DSM_MISS_OF_U });
	CHECK(opened->calls->misses(opened, e, 8) == 7, "seven");
	CHECK(!e[5].vcpu.host && !e[5].miss.of_u && e[6].miss.of_u && !e[6].vcpu.type, "a miss of U");
	m = e[5].vcpu;
	CHECK(m.type == DSM_VCPU_ACCESS && m.vcpu == 2 && m.number == 88 && m.flags == (DSM_ACCESS_CMPXCHG | 0x30) &&
	      m.word[0] == 0x54feff8 && m.word[1] == 5 && m.word[2] == 6, "ACCESS");
	CHECK(!opened->calls->access(opened, &m, &in_use) && xen.access.gfn == 0x54fe && xen.access.offset == 0xff8 &&
	      xen.access.width == 8 && xen.access.op == XEN_DSM_ACCESS_CMPXCHG && xen.access.old == 5 &&
	      xen.access.value == 6 && !xen.access.in_use && in_use && m.word[1] == 1234, "DO_ACCESS");
	m = (struct dsm_vcpu_msg){ .vcpu = 2, .flags = DSM_ACCESS_AGAIN, .number = 88, .word = { 7 } };
	CHECK(!opened->calls->accessed(opened, &m) && xen.accessed.vcpu == 2 && xen.accessed.cookie == 88 &&
	      xen.accessed.flags == XEN_DSM_ACCESS_AGAIN && xen.accessed.old == 7, "ACCESS_DONE");
	xen.fail_errno = ENODATA;
	xen.fail_at = "access";
	CHECK(opened->calls->access(opened, &m, &in_use) == -ENODATA, "its error");
	xen.fail_at = "accessed";
	CHECK(opened->calls->accessed(opened, &m) == -ENODATA, "its error");
	xen.fail_at = NULL;
	CHECK(e[4].vcpu.type == DSM_VCPU_IDLE && e[4].vcpu.flags == 1 && e[4].vcpu.number == 9, "ACTIVITY");
	m = e[0].vcpu;
	CHECK(m.type == DSM_VCPU_EVENT && m.vcpu == 3 && m.flags == 2 && m.sipi == 0x9a &&
	      m.word[0] == 1 << 16 && m.word[3] == 4, "EVENT");
	CHECK(!opened->calls->send_event(opened, &m) && xen.event.vcpu == 3 && xen.event.flags == 2 &&
	      xen.event.sipi == 0x9a && xen.event.vectors[3] == 4 && !xen.event.pad, "SEND");
	m = e[1].vcpu;
	CHECK(m.type == DSM_VCPU_PORTS && m.host == 0 && m.number == 256 && m.word[3] == 8, "PORTS");
	CHECK(!opened->calls->send_ports(opened, &m) && xen.ports.first == 256 &&
	      xen.ports.ports[0] == 5 && !xen.ports.pad, "SEND_PORTS");
	m = e[2].vcpu;
	CHECK(m.type == DSM_VCPU_CALL && m.host == 0 && m.vcpu == 1 && m.number == 77 && m.op == 32 &&
	      m.cmd == 7 && m.about == 2 && m.word[0] == 10 && m.word[2] == 12 && !m.word[3], "CALL");
	CHECK(!opened->calls->call(opened, &m) && xen.call.op == 32 && xen.call.cmd == 7 &&
	      xen.call.vcpu == 2 && !xen.call.rc && xen.call.arg[2] == 12, "CALL");
	CHECK(m.rc == -17 && m.word[0] == 10 && m.word[2] == 99, "its result");
	CHECK(!opened->calls->reply(opened, &m) && xen.reply_vcpu == 1 && xen.cookie == 77 &&
	      xen.reply.rc == -17 && xen.reply.arg[2] == 99, "REPLY");
	CHECK(e[3].vcpu.type == DSM_VCPU_SHUTDOWN && e[3].vcpu.flags == 3, "SHUTDOWN");
	CHECK(!opened->calls->shutdown(opened, 1) && xen.shut == 1 && !xen.crashed, "shut down");
	CHECK(!opened->calls->shared_info(opened, 55) && xen.info_mapped == 55, "SHARED_INFO");
	xen.info_frame = 66;
	CHECK(opened->calls->shared_info_at(opened) == 66, "where");
	xen.info_frame = ~0ull;
	CHECK(!opened->calls->shared_info_at(opened), "nowhere");
	CHECK(!opened->calls->place(opened, 3, 0, NULL) && xen.placed_vcpu == 3 && xen.placed_slice == 0, "PLACE");
	CHECK(!opened->calls->place(opened, 3, 1, &info) && xen.placed_slice == 1 && info == 0x5000, "where it was");
	xen.up = 3;
	CHECK(opened->calls->is_up(opened, 3) && !opened->calls->is_up(opened, 2), "up");
	CHECK(!opened->calls->pause(opened) && xen.paused == 1 && !opened->calls->unpause(opened) &&
	      xen.unpaused == 1, "pause");
	xen.fail_at = "vcpuinfo";
	xen.fail_errno = ESRCH;
	CHECK(!opened->calls->is_up(opened, 3), "nobody knows");
	xen.fail_at = "pause";
	CHECK(opened->calls->pause(opened) == -ESRCH, "its error");
	xen.fail_at = "unpause";
	CHECK(opened->calls->unpause(opened) == -ESRCH, "its error");
	xen.fail_at = "call";
	xen.fail_errno = EAGAIN;
	CHECK(opened->calls->call(opened, &m) == -EAGAIN, "its error");
	xen.fail_at = "reply";
	CHECK(opened->calls->reply(opened, &m) == -EAGAIN, "its error");
	end(opened);

	/* The home is slice 0, and this host has its number then. */
	begin(false);
	d.nr_places = 1;
	d.token_home = 1;
	opened = dsm_hypervisor_open(&d, &config, text);
	CHECK(opened && xen.slice == 0, "slice %u", xen.slice);
	CHECK(!opened->calls->place(opened, 2, 0, NULL) && xen.placed_slice == 1, "alpha is slice 1");
	xen_puts((struct xen_dsm_ring_entry){ .type = XEN_DSM_HCALL, .want = 1 });
	CHECK(opened->calls->misses(opened, e, 8) == 1 && e[0].vcpu.host == 0, "and back");
	end(opened);

	begin(true);
	d.nr_places = 1;
	xen.fail_at = "tsc_info";
	xen.fail_errno = EINVAL;
	CHECK(!dsm_hypervisor_open(&d, &config, text) &&
	      !strcmp(text, "domain 9: a TSC that is not emulated: Invalid argument"), "%s", text);
	end(NULL);
}

static void before_the_start(const void *argument)
{
	static uint8_t bytes[DSM_POLICY_PARTS * 4096] __attribute__((aligned(8)));
	static const char *const calls[] = {
		"get_tsc", "get_time", "set_time", "policy_size", "policy_get", "serialise",
	};
	static const char *const unknown[] = { "policy_size", "policy_system", "serialise" };
	xen_cpuid_leaf_t *leaf = (void *)(bytes + 8);
	struct dsm_vcpu_msg m = { .flags = 10 };
	char more[DSM_ENGINE_TEXT];
	struct dsm_xen *opened;
	unsigned int i;

	(void)argument;
	begin(false);
	opened = dsm_hypervisor_open(&d, &config, text);
	CHECK(!opened->calls->get_time(opened, &m), "time");
	CHECK(xen.time.mul == 100 && xen.time.slow == 10 && xen.time.tsc == 1, "the home has it");
	CHECK(m.number == 4711 && (int8_t)m.sipi == -3 && m.flags == 10 && m.word[0] == 1 &&
	      m.word[1] == 2 && m.word[2] == 100, "and says it");
	memset(&xen.time, 0, sizeof(xen.time));
	m.number = 42;
	CHECK(!opened->calls->set_time(opened, &m) && xen.tsc == 42 && xen.time.mul == 100 &&
	      xen.time.shift == -3 && xen.time.slow == 10 && xen.time.ns == 2 && !xen.time.pad[0], "there");
	CHECK(!opened->calls->start(opened) && xen.unpaused == 1, "it runs");
	CHECK(!opened->calls->jump(opened, 8) && xen.tsc == 50, "ahead");
	xen.fail_at = "jump";
	xen.fail_errno = EINVAL;
	CHECK(opened->calls->jump(opened, 8) == -EINVAL, "not ahead");
	xen.fail_at = NULL;

	xen.leaves = 100;
	xen.msrs = 2;
	CHECK(!opened->calls->get_policy(opened, bytes, sizeof(bytes)), "a policy");
	CHECK(!opened->calls->set_policy(opened, bytes, sizeof(bytes), more) && xen.policy_sum == 700 + 2000,
	      "%llu", (unsigned long long)xen.policy_sum);
	xen.leaves = 5000;
	CHECK(opened->calls->get_policy(opened, bytes, sizeof(bytes)) == -E2BIG, "too large");
	xen.leaves = 680;
	CHECK(opened->calls->get_policy(opened, bytes, sizeof(bytes)) == -E2BIG, "just too large");
	xen.leaves = 100;
	for (i = 0; i < NR(calls); i++) {
		xen.fail_at = calls[i];
		xen.fail_errno = EPERM;
		CHECK((i < 3 ? opened->calls->get_time(opened, &m) :
			       opened->calls->get_policy(opened, bytes, sizeof(bytes))) == -EPERM,
		      "%s", calls[i]);
	}
	xen.fail_at = "update_msrs";
	CHECK(opened->calls->set_policy(opened, bytes, sizeof(bytes), more) == -EPERM, "its error");
	xen.fail_at = NULL;
	/* Any bytes. */
	memset(bytes, 0xff, sizeof(bytes));
	CHECK(opened->calls->set_policy(opened, bytes, sizeof(bytes), more) == -EINVAL, "no policy");
	memset(bytes, 0, sizeof(bytes));
	((uint32_t *)(void *)bytes)[0] = 682;
	CHECK(!opened->calls->set_policy(opened, bytes, sizeof(bytes), more), "as many as fit");
	((uint32_t *)(void *)bytes)[1] = 1;
	CHECK(opened->calls->set_policy(opened, bytes, sizeof(bytes), more) == -EINVAL, "one more");
	/* What it may do that other guests here may not. */
	memset(bytes, 0, sizeof(bytes));
	((uint32_t *)(void *)bytes)[0] = 3;
	leaf[0] = (xen_cpuid_leaf_t){ 0x7, 0, ~0u, 0x1f0, 0xff, 0 };
	leaf[1] = (xen_cpuid_leaf_t){ 0x80000001, XEN_CPUID_NO_SUBLEAF, 0, 0, 2, 3 };
	leaf[2] = (xen_cpuid_leaf_t){ 0x2, XEN_CPUID_NO_SUBLEAF, ~0u, ~0u, ~0u, ~0u };
	CHECK(!opened->calls->set_policy(opened, bytes, sizeof(bytes), more), "a policy");
	CHECK(!strcmp(more, "0x7.0.ebx=0x100 (bmi2), 0x80000001.0.ecx=0x2 (cmp-legacy), 0x80000001.0.edx=0x2"), "'%s'", more);
	/* What no guest here can have is why it is none. */
	leaf[0].b |= 0x408;
	leaf[1].c = 0;
	leaf[1].d = 0;
	xen.fail_at = "policy_set";
	xen.fail_errno = EINVAL;
	CHECK(opened->calls->set_policy(opened, bytes, sizeof(bytes), more) == -EINVAL &&
	      !strcmp(more, "0x7.0.ebx=0x408 (bmi1 invpcid)"), "'%s'", more);
	xen.fail_at = NULL;
	leaf[0].b = 0xf0;
	CHECK(!opened->calls->set_policy(opened, bytes, sizeof(bytes), more) && !more[0], "'%s'", more);
	leaf[0].b = 0x1f0;
	for (i = 0; i < NR(unknown); i++) {
		xen.fail_at = unknown[i];
		CHECK(!opened->calls->set_policy(opened, bytes, sizeof(bytes), more) && !more[0],
		      "%s: '%s'", unknown[i], more);
	}
	xen.fail_at = NULL;
	end(opened);
}

static void operations(const void *argument)
{
	struct dsm_xen_op holes[3] = {
		{ .gfn = ENOENT, .type = DSM_XEN_HOLE, .vcpu = 3 },
		{ .gfn = 0, .type = DSM_XEN_HOLE, .vcpu = DSM_XEN_FOREIGN },
		{ .gfn = EBUSY, .type = DSM_XEN_WAKE, .vcpu = 3 },
	};
	struct dsm_xen_op ops[3] = {
		{ .gfn = EBUSY, .type = DSM_XEN_INVAL }, { .gfn = 0, .type = DSM_XEN_READ },
		{ .gfn = ENOENT, .type = DSM_XEN_DROP },
	};
	struct dsm_xen_waits waits;
	struct dsm_xen *opened;

	(void)argument;
	begin(false);
	opened = dsm_hypervisor_open(&d, &config, text);
	ops[1].buffer = opened->calls->alloc_pages(opened, 1);
	xen.query_state = XEN_DSM_STATE_S;
	CHECK(!opened->calls->page(opened, ops, 3) && ops[0].rc == -EBUSY && !ops[1].rc &&
	      ops[2].rc == -ENOENT && ops[1].state == DSM_XEN_STATE_S &&
	      ops[1].wanted == DSM_XEN_WANT_M &&
	      ops[1].buffer[4095] == DSM_XEN_READ, "results");
	CHECK(!opened->calls->page(opened, holes, 3) && holes[0].rc == -ENOENT && !holes[1].rc &&
	      holes[2].rc == -EBUSY, "%d, %d, %d", holes[0].rc, holes[1].rc, holes[2].rc);
	opened->calls->free_pages(opened, ops[1].buffer, 1);
	CHECK(opened->calls->populate(opened, 5) == -EEXIST, "no hole");
	xen.query_state = XEN_DSM_STATE_HOLE;
	CHECK(!opened->calls->populate(opened, 5) && xen.last_gfn == 5, "a hole");
	xen.limit = 0;
	CHECK(opened->calls->populate(opened, 5) == -ENOMEM, "no memory");
	CHECK(!opened->calls->keepalive(opened, 10000) && xen.keepalive_ms == 10000, "keepalive");
	CHECK(!opened->calls->waits(opened, &waits) && waits.waits == 1 && waits.wait_ns == 2 &&
	      waits.traps == 3 && waits.trap_ns == 4 && waits.wakes == 5 && waits.wake_ns == 6, "waits");
	CHECK(!opened->calls->pool_add(opened, 3) && xen.pool == 131, "pool");
	CHECK(!opened->calls->away(opened, 8, 1) && xen.away_first == 8, "away");
	CHECK(!opened->calls->drop(opened, 8, 1), "drop");
	CHECK(!opened->calls->merge(opened, 1024) && xen.merged == 1024, "merge");
	CHECK(!opened->calls->crash(opened) && xen.crashed == 1, "crash");
	CHECK(!opened->calls->has_ended(opened), "it is there");
	xen.flags = XEN_DOMINF_dying;
	CHECK(opened->calls->has_ended(opened) && !opened->calls->is_paused(opened), "it is being destroyed");
	xen.flags = 0;
	xen.fail_at = "page";
	xen.fail_errno = EINVAL;
	CHECK(opened->calls->has_ended(opened), "that goes on, and Xen's flag is not set yet");
	xen.fail_errno = ENODEV;
	CHECK(!opened->calls->has_ended(opened), "it has no DSM");
	xen.fail_at = NULL;
	xen.flags = XEN_DOMINF_paused;
	CHECK(!opened->calls->has_ended(opened) && opened->calls->is_paused(opened), "it is paused");
	xen.flags = 0;
	CHECK(!opened->calls->is_paused(opened), "it is not");
	xen.flags = XEN_DOMINF_paused;
	xen.fail_at = "getinfo";
	xen.fail_errno = ESRCH;
	CHECK(opened->calls->has_ended(opened), "it has been");
	xen.fail_errno = EIO;
	CHECK(!opened->calls->has_ended(opened) && !opened->calls->is_paused(opened), "Xen does not say");
	xen.fail_at = "page";
	xen.fail_errno = ESRCH;
	CHECK(opened->calls->page(opened, ops, 3) == -ESRCH, "page");
	xen.fail_at = "keepalive";
	CHECK(opened->calls->keepalive(opened, 1) == -ESRCH, "keepalive");
	xen.fail_at = NULL;
	dsm_hypervisor_publish(&d, "failed: because");
	CHECK(!strcmp(xen.published, "/tool/dsm/66696674-6565-6e20-6c65-747465727300/state=failed: because"),
	      "%s", xen.published);
	end(opened);
}

/* Nothing of a range that is detached is done at the start. */
static void detached(const void *argument)
{
	struct dsm_xen *opened;

	(void)argument;
	begin(true);
	d.detached[1] = true;
	d.elastic = true;
	opened = dsm_hypervisor_open(&d, &config, text);
	CHECK(opened && !xen.populated && xen.away_nr == 0x1000 && xen.pool == 128, "%s", text);
	CHECK(xen.kib == (128 + 256) * 4, "the limit is for what there is: %llu",
	      (unsigned long long)xen.kib);
	CHECK(!opened->calls->limit(opened, 5000) && xen.kib == 20000, "another limit: %llu",
	      (unsigned long long)xen.kib);
	xen.fail_at = "setmaxmem";
	xen.fail_errno = ESRCH;
	CHECK(opened->calls->limit(opened, 6000) == -ESRCH && xen.kib == 20000, "none");
	xen.fail_at = NULL;
	end(opened);

	begin(false);
	d.detached[0] = true;
	d.elastic = true;
	opened = dsm_hypervisor_open(&d, &config, text);
	CHECK(opened && !xen.away_nr, "%s", text);
	end(opened);
}

static void fill(const void *argument)
{
	struct dsm_xen_memory memory;
	struct dsm_xen *opened;
	uint64_t at, end_at = 0x80000 + 0x400;
	int64_t done;

	(void)argument;
	begin(false);
	opened = dsm_hypervisor_open(&d, &config, text);
	for (at = 0x40000 - 0x400; at < end_at; at += (uint64_t)done) {
		done = opened->calls->fill(opened, at, end_at - at);
		CHECK(done > 0 && (uint64_t)done <= end_at - at, "%lld at %llx",
		      (long long)done, (unsigned long long)at);
	}
	CHECK(xen.extents[18] == 1 && xen.extents[9] == 4 && !xen.extents[0] &&
	      xen.populated == 0x40800, "%u of 1 GiB, %u of 2 MiB, %u pages", xen.extents[18],
	      xen.extents[9], xen.extents[0]);
	xen.no_superpages = true;
	CHECK(opened->calls->fill(opened, 0x40000, 0x40000) == 512 && xen.extents[0] == 512, "small ones");
	xen.limit = xen.populated + 7;
	CHECK(opened->calls->fill(opened, 0x40000, 0x40000) == 7, "a part");
	CHECK(opened->calls->fill(opened, 0x40007, 0x40000) == -ENOMEM, "no more");
	xen.fail_at = "populate";
	xen.fail_errno = EPERM;
	CHECK(opened->calls->fill(opened, 0x40007, 0x40000) == -EPERM, "refused");

	xen.fail_at = NULL;
	xen.limit = UINT64_MAX;
	CHECK(opened->calls->empty(opened, 0x40000, 0x400) == 512 && xen.lowest == 0x40200, "from the end");
	CHECK(opened->calls->empty(opened, 0x40000, 7) == 7 && xen.given_back == 519, "the rest");
	xen.limit = xen.given_back + 3;
	CHECK(opened->calls->empty(opened, 0x40000, 7) == -EIO, "not all");
	xen.fail_at = "decrease";
	CHECK(opened->calls->empty(opened, 0x40000, 7) == -EPERM, "refused");

	xen.fail_at = NULL;
	CHECK(!opened->calls->memory(opened, &memory) && memory.free == 4096 && memory.used == 44 &&
	      memory.limit == 2000, "%llu", (unsigned long long)memory.free);
	xen.fail_at = "physinfo";
	CHECK(opened->calls->memory(opened, &memory) == -EPERM, "no answer");
	xen.fail_at = "getinfo";
	CHECK(opened->calls->memory(opened, &memory) == -EPERM, "no answer of the domain");
	end(opened);
}

/* All of them or none. */
static void all_or_none(const void *argument)
{
	struct dsm_xen *opened;

	(void)argument;
	begin(false);
	opened = dsm_hypervisor_open(&d, &config, text);
	xen.fail_errno = ENOMEM;
	xen.fail_at = "pool_add";
	CHECK(opened->calls->pool_add(opened, 20) == -ENOMEM && xen.pool == 128, "%llu frames",
	      (unsigned long long)xen.pool);
	xen.fail_at = "pool_add";
	xen.fail_next = "pool_del";
	CHECK(opened->calls->pool_add(opened, 20) == -ENOMEM && xen.pool == 131, "neither");
	xen.pool = 128;
	xen.fail_errno = EBUSY;
	xen.fail_at = "pool_del";
	CHECK(opened->calls->pool_del(opened, 20) == -EBUSY && xen.pool == 128, "%llu frames",
	      (unsigned long long)xen.pool);
	xen.fail_at = NULL;
	CHECK(!opened->calls->pool_del(opened, 20) && xen.pool == 108, "fewer");
	xen.fail_errno = EEXIST;
	xen.fail_at = "away";
	CHECK(opened->calls->away(opened, 0x500, 20) == -EEXIST && xen.dropped_first == 0x500 &&
	      xen.dropped == 3, "%llu dropped", (unsigned long long)xen.dropped);
	xen.fail_at = "drop";
	CHECK(opened->calls->drop(opened, 0x500, 20) == -EEXIST && xen.away_first == 0x500 &&
	      xen.away_nr == 4, "%llu are absent again", (unsigned long long)xen.away_nr);
	xen.fail_at = "drop";
	xen.fail_next = "away";
	CHECK(opened->calls->drop(opened, 0x500, 20) == -EEXIST && xen.away_nr == 4, "neither");
	xen.fail_at = NULL;
	CHECK(!opened->calls->drop(opened, 0x500, 20) && xen.dropped == 20, "all");
	xen.fail_errno = ENODATA;
	xen.fail_at = "merge";
	CHECK(opened->calls->merge(opened, 512) == -ENODATA, "merge");
	xen.fail_at = NULL;
	end(opened);
}

int main(int argc, char **argv)
{
	static struct test_case cases[NR(failures) + 11] = {
		{ "slice: built", build, NULL },
		{ "slice: a domain that is there", take_over, NULL },
		{ "slice: no superpages", small_pages, NULL },
		{ "slice: other failures", other_failures, NULL },
		{ "Xen: the ring", read_ring, NULL },
		{ "Xen: vCPUs of other hosts", about_vcpus, NULL },
		{ "Xen: before the start", before_the_start, NULL },
		{ "Xen: operations", operations, NULL },
		{ "slice: detached ranges", detached, NULL },
		{ "slice: memory and back", fill, NULL },
		{ "Xen: all of them or none", all_or_none, NULL },
	};
	static char names[NR(failures)][64];
	size_t i;

	for (i = 0; i < NR(failures); i++) {
		snprintf(names[i], sizeof(names[i]), "slice: %s fails", failures[i].call);
		cases[11 + i] = (struct test_case){ names[i], failing, &failures[i] };
	}
	return run_cases(argc, argv, cases, NR(cases));
}
