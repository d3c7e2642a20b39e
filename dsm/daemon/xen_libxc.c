// SPDX-License-Identifier: GPL-2.0
/*
 * The real hypervisor: libxenctrl for what Xen does, an event channel and a
 * shared ring for what it says, xenstore for what the toolstack reads.
 *
 * The ring's indices are shared with Xen: what Xen wrote before prod is read
 * after it, and cons is written when an entry has been copied.  When Xen had no
 * room it set `full`: that is cleared, the ring is drained, and FLUSH puts the
 * rest there, in this order, so that nothing is left behind unseen.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xenctrl.h>
#include <xenctrl_dsm.h>
#include <xenevtchn.h>
#include <xenforeignmemory.h>
#include <xenstore.h>

#include "hypervisor.h"
#include "slice.h"
#include "tsc.h"
#include "xen_calls.h"

#define SAME(a, b)	_Static_assert((int)(a) == (int)(b), #a " is " #b)
SAME(DSM_XEN_INVAL, XEN_DSM_INVAL);
SAME(DSM_XEN_DOWNGRADE, XEN_DSM_DOWNGRADE);
SAME(DSM_XEN_READ, XEN_DSM_READ);
SAME(DSM_XEN_INSTALL_S, XEN_DSM_INSTALL_S);
SAME(DSM_XEN_INSTALL_M, XEN_DSM_INSTALL_M);
SAME(DSM_XEN_ZERO_M, XEN_DSM_ZERO_M);
SAME(DSM_XEN_UPGRADE, XEN_DSM_UPGRADE);
SAME(DSM_XEN_DROP, XEN_DSM_DROP);
SAME(DSM_XEN_WAKE, XEN_DSM_WAKE);
SAME(DSM_XEN_QUERY, XEN_DSM_QUERY);
SAME(DSM_XEN_UNCACHE, XEN_DSM_UNCACHE);
SAME(DSM_XEN_CACHE, XEN_DSM_CACHE);
SAME(DSM_XEN_HOLE, XEN_DSM_HOLE);
SAME(DSM_XEN_FOREIGN, XEN_DSM_HOLE_FOREIGN);
SAME(DSM_XEN_STATE_HOLE, XEN_DSM_STATE_HOLE);
SAME(DSM_XEN_STATE_I, XEN_DSM_STATE_I);
SAME(DSM_XEN_STATE_S, XEN_DSM_STATE_S);
SAME(DSM_XEN_STATE_M, XEN_DSM_STATE_M);
SAME(DSM_XEN_STATE_OTHER, XEN_DSM_STATE_OTHER);
SAME(DSM_XEN_STATE_U, XEN_DSM_STATE_U);
SAME(DSM_ACCESS_READ, XEN_DSM_ACCESS_READ);
SAME(DSM_ACCESS_WRITE, XEN_DSM_ACCESS_WRITE);
SAME(DSM_ACCESS_CMPXCHG, XEN_DSM_ACCESS_CMPXCHG);
SAME(DSM_ACCESS_AGAIN, XEN_DSM_ACCESS_AGAIN);
SAME(DSM_XEN_WANT_S, XEN_DSM_WANT_S);
SAME(DSM_XEN_WANT_M, XEN_DSM_WANT_M);
SAME(DSM_XEN_WANT_M_NODATA, XEN_DSM_WANT_M_NODATA);
SAME(DSM_XEN_MAX_OPS, XEN_DSM_MAX_PAGE_OPS);
SAME(DSM_DESCRIPTION_RANGES, XEN_DSM_MAX_RANGES);
SAME(DSM_EVENT_INIT, XEN_DSM_EVENT_INIT);
SAME(DSM_EVENT_SIPI, XEN_DSM_EVENT_SIPI);
SAME(DSM_EVENT_NMI, XEN_DSM_EVENT_NMI);
SAME(DSM_PORTS, XEN_DSM_PORTS);
SAME(DSM_MOST_SLOW, XEN_DSM_MAX_SLOW);

struct libxc {
	struct dsm_xen xen;
	xc_interface *xch;
	xenevtchn_handle *xce;
	xenforeignmemory_handle *fmem;
	xenforeignmemory_resource_handle *resource;
	volatile struct xen_dsm_ring *ring;
	const struct xen_dsm_ring_entry *entry;
	size_t ring_pages;
	uint32_t nr, cons;
	uint32_t domid;
	const struct dsm_description *description;
	bool built;		/* ours: destroyed with the process */
	xenevtchn_port_or_error_t port;
	xen_dsm_page_op_t op[DSM_XEN_MAX_OPS];
};

static struct libxc *of(struct dsm_xen *xen)
{
	return (struct libxc *)xen;
}

static int page(struct dsm_xen *xen, struct dsm_xen_op *ops, unsigned int nr)
{
	struct libxc *x = of(xen);
	unsigned int i;

	memset(x->op, 0, nr * sizeof(x->op[0]));
	for (i = 0; i < nr; i++) {
		x->op[i].gfn = ops[i].gfn;
		x->op[i].op = ops[i].type;
		x->op[i].wanted = ops[i].type == DSM_XEN_HOLE ? ops[i].vcpu : 0;
		if (ops[i].buffer)
			xc_dsm_set_buffer(&x->op[i], ops[i].buffer);
	}
	if (xc_dsm_page(x->xch, x->domid, x->op, nr))
		return -errno;
	for (i = 0; i < nr; i++) {
		ops[i].rc = x->op[i].rc;
		ops[i].state = (uint8_t)x->op[i].state;
		ops[i].wanted = (uint8_t)x->op[i].wanted;
	}
	return 0;
}

/* What an entry says of vCPUs; its type is 0 if it is another kind. */
static struct dsm_vcpu_msg about_vcpus(const struct libxc *x,
				       const struct xen_dsm_ring_entry *e)
{
	struct dsm_vcpu_msg m = { .type = 0 };

	switch (e->type) {
	case XEN_DSM_VCPU_EVENT:
		m.type = DSM_VCPU_EVENT;
		m.vcpu = e->vcpu;
		m.flags = (uint8_t)e->flags;
		m.sipi = e->want;
		memcpy(m.word, e->vectors, sizeof(m.word));
		break;
	case XEN_DSM_PORT_EVENT:
		m.type = DSM_VCPU_PORTS;
		m.host = dsm_description_host(x->description, e->want);
		m.number = e->gfn;
		memcpy(m.word, e->vectors, sizeof(m.word));
		break;
	case XEN_DSM_HCALL:
		m.type = DSM_VCPU_CALL;
		m.host = dsm_description_host(x->description, e->want);
		m.vcpu = e->vcpu;
		m.number = e->gfn;
		m.op = (uint32_t)e->rip;
		m.cmd = (uint32_t)(e->rip >> 32);
		m.about = (uint32_t)e->vectors[0];
		memcpy(m.word, e->vectors + 1, 3 * sizeof(m.word[0]));
		break;
	case XEN_DSM_ACCESS:
		m.type = DSM_VCPU_ACCESS;
		m.vcpu = e->vcpu;
		m.flags = (uint8_t)(e->want | e->flags >> 12 << 4);
		m.number = e->vectors[0];
		m.word[0] = e->gfn * DSM_PAGE_BYTES + e->flags % DSM_PAGE_BYTES;
		m.word[1] = e->vectors[1];
		m.word[2] = e->vectors[2];
		break;
	case XEN_DSM_SHUTDOWN:
		m.type = DSM_VCPU_SHUTDOWN;
		m.flags = e->want;
		break;
	case XEN_DSM_ACTIVITY:
		m.type = DSM_VCPU_IDLE;
		m.flags = e->want;
		m.number = e->gfn;
		break;
	}
	return m;
}

static unsigned int take(struct libxc *x, struct dsm_xen_entry *entries,
			 unsigned int most)
{
	uint32_t prod = __atomic_load_n(&x->ring->prod, __ATOMIC_ACQUIRE);
	unsigned int i;

	for (i = 0; i < most && x->cons != prod; i++) {
		const struct xen_dsm_ring_entry *e = &x->entry[x->cons & (x->nr - 1)];

		/* What nobody knows has want 0, which makes no sense to the engine. */
		entries[i] = (struct dsm_xen_entry){
			.miss = {
				.gfn = e->gfn, .rip = e->rip, .vcpu = e->vcpu,
				.want = e->type == XEN_DSM_PAGE_MISS ? e->want : 0,
				.foreign = e->flags & XEN_DSM_MISS_FOREIGN,
				.by_xen = e->flags & XEN_DSM_MISS_BY_XEN,
				.of_u = e->flags & XEN_DSM_MISS_OF_U,
			},
			.vcpu = about_vcpus(x, e),
		};
		x->cons++;
	}
	__atomic_store_n(&x->ring->cons, x->cons, __ATOMIC_RELEASE);
	return i;
}

static int misses(struct dsm_xen *xen, struct dsm_xen_entry *into, unsigned int most)
{
	struct libxc *x = of(xen);
	xenevtchn_port_or_error_t pending;
	unsigned int nr;

	/* The channel first: what comes after this look raises it again. */
	pending = xenevtchn_pending(x->xce);
	if (pending < 0 ? errno != EAGAIN :
	    xenevtchn_unmask(x->xce, (evtchn_port_t)pending))
		return -errno;
	nr = take(x, into, most);
	while (nr < most && __atomic_exchange_n(&x->ring->full, 0, __ATOMIC_ACQ_REL)) {
		nr += take(x, into + nr, most - nr);
		if (xc_dsm_flush(x->xch, x->domid))
			return -errno;
		nr += take(x, into + nr, most - nr);
	}
	return (int)nr;
}

static bool has_misses(struct dsm_xen *xen)
{
	const struct libxc *x = of(xen);

	return __atomic_load_n(&x->ring->prod, __ATOMIC_RELAXED) != x->cons ||
	       __atomic_load_n(&x->ring->full, __ATOMIC_RELAXED);
}

static int send_event(struct dsm_xen *xen, const struct dsm_vcpu_msg *m)
{
	xen_dsm_vcpu_event_t event = { .vcpu = m->vcpu, .flags = m->flags, .sipi = m->sipi };

	memcpy(event.vectors, m->word, sizeof(event.vectors));
	return xc_dsm_send(of(xen)->xch, of(xen)->domid, &event) ? -errno : 0;
}

static int send_ports(struct dsm_xen *xen, const struct dsm_vcpu_msg *m)
{
	xen_dsm_ports_t ports = { .first = (uint32_t)m->number };

	memcpy(ports.ports, m->word, sizeof(ports.ports));
	return xc_dsm_send_ports(of(xen)->xch, of(xen)->domid, &ports) ? -errno : 0;
}

static int call(struct dsm_xen *xen, struct dsm_vcpu_msg *m)
{
	xen_dsm_call_t what = { .op = m->op, .cmd = m->cmd, .vcpu = m->about };

	memcpy(what.arg, m->word, sizeof(what.arg));
	if (xc_dsm_call(of(xen)->xch, of(xen)->domid, &what))
		return -errno;
	m->rc = what.rc;
	memcpy(m->word, what.arg, sizeof(what.arg));
	return 0;
}

static int reply(struct dsm_xen *xen, const struct dsm_vcpu_msg *m)
{
	xen_dsm_call_t what = { .rc = m->rc };

	memcpy(what.arg, m->word, sizeof(what.arg));
	return xc_dsm_reply(of(xen)->xch, of(xen)->domid, m->vcpu, m->number, &what) ?
	       -errno : 0;
}

static int access_page(struct dsm_xen *xen, struct dsm_vcpu_msg *m, bool *in_use)
{
	xen_dsm_access_t access = {
		.gfn = m->word[0] / DSM_PAGE_BYTES,
		.offset = (uint16_t)(m->word[0] % DSM_PAGE_BYTES),
		.width = (uint8_t)DSM_ACCESS_WIDTH(m->flags),
		.op = m->flags & DSM_ACCESS_WHAT,
		.old = m->word[1], .value = m->word[2],
	};

	if (xc_dsm_do_access(of(xen)->xch, of(xen)->domid, &access))
		return -errno;
	m->word[1] = access.old;
	*in_use = access.in_use;
	return 0;
}

static int accessed(struct dsm_xen *xen, const struct dsm_vcpu_msg *m)
{
	const xen_dsm_access_done_t done = {
		.vcpu = m->vcpu, .flags = m->flags, .cookie = m->number, .old = m->word[0],
	};

	return xc_dsm_access_done(of(xen)->xch, of(xen)->domid, &done) ? -errno : 0;
}

static int shut_down(struct dsm_xen *xen, unsigned int code)
{
	return xc_domain_shutdown(of(xen)->xch, of(xen)->domid, (int)code) ? -errno : 0;
}

static int shared_info(struct dsm_xen *xen, uint64_t gfn)
{
	return xc_dsm_shared_info(of(xen)->xch, of(xen)->domid, gfn) ? -errno : 0;
}

static uint64_t shared_info_at(struct dsm_xen *xen)
{
	const struct dsm_description *d = of(xen)->description;
	xc_domaininfo_t info;

	if (xc_domain_getinfo_single(of(xen)->xch, of(xen)->domid, &info) ||
	    info.shared_info_frame >= d->range[d->nr_ranges - 1].end)
		return 0;
	return info.shared_info_frame;
}

static int place(struct dsm_xen *xen, unsigned int vcpu, unsigned int host, uint64_t *info)
{
	return xc_dsm_place(of(xen)->xch, of(xen)->domid, vcpu,
			    dsm_description_slice(of(xen)->description, host), info) ? -errno : 0;
}

static bool is_up(struct dsm_xen *xen, unsigned int vcpu)
{
	xc_vcpuinfo_t info;

	return !xc_vcpu_getinfo(of(xen)->xch, of(xen)->domid, vcpu, &info) && info.online;
}

static int pause_domain(struct dsm_xen *xen)
{
	return xc_domain_pause(of(xen)->xch, of(xen)->domid) ? -errno : 0;
}

/* Xen's own pauses, as that of keepalive, do not count. */
static bool is_paused(struct dsm_xen *xen)
{
	xc_domaininfo_t info;

	return !xc_domain_getinfo_single(of(xen)->xch, of(xen)->domid, &info) &&
	       info.flags & XEN_DOMINF_paused;
}

static int get_time(struct dsm_xen *xen, struct dsm_vcpu_msg *m)
{
	struct libxc *x = of(xen);
	xen_dsm_time_t line;
	uint64_t offset;

	if (xc_dsm_get_tsc(x->xch, x->domid, &offset) ||
	    xc_dsm_get_time(x->xch, x->domid, &line))
		return -errno;
	line.mul /= m->flags;
	line.slow = m->flags;
	if (xc_dsm_set_time(x->xch, x->domid, &line))
		return -errno;
	m->number = offset;
	m->sipi = (uint8_t)line.shift;
	m->word[0] = line.tsc;
	m->word[1] = line.ns;
	m->word[2] = line.mul;
	return 0;
}

static int set_time(struct dsm_xen *xen, const struct dsm_vcpu_msg *m)
{
	struct libxc *x = of(xen);
	const xen_dsm_time_t line = {
		.tsc = m->word[0], .ns = m->word[1], .mul = (uint32_t)m->word[2],
		.shift = (int8_t)m->sipi, .slow = m->flags,
	};

	if (xc_dsm_set_tsc(x->xch, x->domid, m->number) ||
	    xc_dsm_set_time(x->xch, x->domid, &line))
		return -errno;
	return 0;
}

static int jump(struct dsm_xen *xen, uint64_t ticks)
{
	return xc_dsm_jump(of(xen)->xch, of(xen)->domid, ticks) ? -errno : 0;
}

static int get_policy(struct dsm_xen *xen, uint8_t *bytes, unsigned int size)
{
	return dsm_slice_get_policy(of(xen)->xch, of(xen)->domid, bytes, size);
}

static int set_policy(struct dsm_xen *xen, const uint8_t *bytes, unsigned int size,
		      char text[DSM_ENGINE_TEXT])
{
	return dsm_slice_set_policy(of(xen)->xch, of(xen)->domid, bytes, size, text);
}

static int start(struct dsm_xen *xen)
{
	return xc_domain_unpause(of(xen)->xch, of(xen)->domid) ? -errno : 0;
}

static int populate(struct dsm_xen *xen, uint64_t gfn)
{
	struct libxc *x = of(xen);
	struct dsm_xen_op op = { .gfn = gfn, .type = DSM_XEN_QUERY };
	xen_pfn_t first = gfn;
	int rc = page(xen, &op, 1);

	if (rc)
		return rc;
	if (op.rc || op.state != DSM_XEN_STATE_HOLE)
		return op.rc ? op.rc : -EEXIST;
	rc = xc_domain_populate_physmap(x->xch, x->domid, 1, 0, 0, &first);
	if (rc == 1)
		return 0;
	return rc < 0 && errno != ENOMEM ? -errno : -ENOMEM;
}

/* What was done is undone: all of them or none. */
static int pool_add(struct dsm_xen *xen, unsigned int nr)
{
	struct libxc *x = of(xen);
	uint64_t done = 0, undone;
	int rc;

	if (!xc_dsm_pool_add(x->xch, x->domid, nr, &done))
		return 0;
	rc = errno ? -errno : -EIO;
	if (done && xc_dsm_pool_del(x->xch, x->domid, done, &undone))
		return -errno;
	return rc;
}

static int pool_del(struct dsm_xen *xen, unsigned int nr)
{
	struct libxc *x = of(xen);
	uint64_t done = 0, undone;
	int rc;

	if (!xc_dsm_pool_del(x->xch, x->domid, nr, &done))
		return 0;
	rc = errno ? -errno : -EIO;
	if (done && xc_dsm_pool_add(x->xch, x->domid, done, &undone))
		return -errno;
	return rc;
}

static int away(struct dsm_xen *xen, uint64_t first, uint64_t nr)
{
	struct libxc *x = of(xen);
	uint64_t done = 0, undone;
	int rc;

	if (!xc_dsm_away(x->xch, x->domid, first, nr, &done))
		return 0;
	rc = errno ? -errno : -EIO;
	if (done && xc_dsm_drop_range(x->xch, x->domid, first, done, &undone))
		return -errno;
	return rc;
}

static int drop(struct dsm_xen *xen, uint64_t first, uint64_t nr)
{
	struct libxc *x = of(xen);
	uint64_t done = 0, undone;
	int rc;

	if (!xc_dsm_drop_range(x->xch, x->domid, first, nr, &done))
		return 0;
	rc = errno ? -errno : -EIO;
	if (done && xc_dsm_away(x->xch, x->domid, first, done, &undone))
		return -errno;
	return rc;
}

static int merge(struct dsm_xen *xen, uint64_t first)
{
	return xc_dsm_merge(of(xen)->xch, of(xen)->domid, first) ? -errno : 0;
}

static int64_t fill(struct dsm_xen *xen, uint64_t first, uint64_t nr)
{
	return dsm_slice_fill(of(xen)->xch, of(xen)->domid, first, nr);
}

static int64_t empty(struct dsm_xen *xen, uint64_t first, uint64_t nr)
{
	return dsm_slice_empty(of(xen)->xch, of(xen)->domid, first, nr);
}

static int limit(struct dsm_xen *xen, uint64_t frames)
{
	return dsm_slice_limit(of(xen)->xch, of(xen)->domid, frames);
}

static int memory(struct dsm_xen *xen, struct dsm_xen_memory *into)
{
	return dsm_slice_memory(of(xen)->xch, of(xen)->domid, into);
}

static int waits(struct dsm_xen *xen, struct dsm_xen_waits *into)
{
	xen_dsm_stats_t stats;

	if (xc_dsm_stats(of(xen)->xch, of(xen)->domid, &stats))
		return -errno;
	*into = (struct dsm_xen_waits){
		.waits = stats.waits, .wait_ns = stats.wait_ns,
		.traps = stats.traps, .trap_ns = stats.trap_ns,
		.wakes = stats.wakes, .wake_ns = stats.wake_ns,
	};
	return 0;
}

static int keepalive(struct dsm_xen *xen, unsigned int ms)
{
	return xc_dsm_keepalive(of(xen)->xch, of(xen)->domid, ms) ? -errno : 0;
}

static bool has_ended(struct dsm_xen *xen)
{
	xc_domaininfo_t info;

	if (xc_domain_getinfo_single(of(xen)->xch, of(xen)->domid, &info))
		return errno == ESRCH;
	if (info.flags & XEN_DOMINF_dying)
		return true;
	/* Xen says so when all of it is gone; until then what concerns its pages is -EINVAL. */
	return xc_dsm_page(of(xen)->xch, of(xen)->domid, NULL, 0) && errno == EINVAL;
}

static int crash(struct dsm_xen *xen)
{
	return xc_domain_shutdown(of(xen)->xch, of(xen)->domid, SHUTDOWN_crash) ?
	       -errno : 0;
}

static void *alloc_pages(struct dsm_xen *xen, unsigned int nr)
{
	return xc_dsm_alloc_pages(of(xen)->xch, nr);
}

static void free_pages(struct dsm_xen *xen, void *pages, unsigned int nr)
{
	xc_dsm_free_pages(of(xen)->xch, pages, nr);
}

static int descriptor(struct dsm_xen *xen)
{
	return xenevtchn_fd(of(xen)->xce);
}

/*
 * What `xl list` shows for a slice: VM-slice-HOME.  No toolstack has made it, so
 * its name is all that xenstore has of it.
 */
static void name_slice(uint32_t domid, const struct dsm_description *d,
		       const struct dsm_config *config)
{
	char path[48], name[DSM_DESCRIPTION_NAME + DSM_CONFIG_NAME + 8];
	struct xs_handle *xs = xs_open(0);

	snprintf(path, sizeof(path), "/local/domain/%" PRIu32 "/name", domid);
	snprintf(name, sizeof(name), "%s-slice-%s", d->name, config->host[d->token_home].name);
	if (!xs || !xs_write(xs, XBT_NULL, path, name, (unsigned int)strlen(name)))
		fprintf(stderr, "<4>level=warning vm=%s msg=\"the name of domain %" PRIu32 ": %s\"\n",
			d->name, domid, strerror(errno));
	xs_close(xs);
}

static void forget_slice(uint32_t domid)
{
	struct xs_handle *xs = xs_open(0);
	char path[48];

	snprintf(path, sizeof(path), "/local/domain/%" PRIu32, domid);
	if (!xs || (!xs_rm(xs, XBT_NULL, path) && errno != ENOENT))
		fprintf(stderr, "<4>level=warning msg=\"%s: %s\"\n", path, strerror(errno));
	xs_close(xs);
}

static int tsc_khz(struct dsm_xen *xen, const char **text)
{
	struct dsm_tsc_leaves leaves;

	(void)xen;
	dsm_tsc_ask_xen(&leaves);
	return dsm_tsc_judge(&leaves, text);
}

static uint64_t tsc(struct dsm_xen *xen)
{
	(void)xen;
	return dsm_tsc_read();
}

/* A slice that was built here has no other owner. */
static void close_all(struct dsm_xen *xen)
{
	struct libxc *x = of(xen);

	if (x->resource)
		xenforeignmemory_unmap_resource(x->fmem, x->resource);
	if (x->built) {
		xc_domain_destroy(x->xch, x->domid);
		forget_slice(x->domid);
	}
	if (x->fmem)
		xenforeignmemory_close(x->fmem);
	if (x->xce)
		xenevtchn_close(x->xce);
	if (x->xch)
		xc_interface_close(x->xch);
	free(x);
}

static const struct dsm_xen_calls calls = {
	.page = page, .misses = misses, .has_misses = has_misses, .send_event = send_event, .send_ports = send_ports,
	.call = call, .reply = reply, .access = access_page, .accessed = accessed,
	.shutdown = shut_down, .shared_info = shared_info,
	.shared_info_at = shared_info_at, .place = place, .is_up = is_up, .pause = pause_domain,
	.unpause = start, .is_paused = is_paused, .get_time = get_time,
	.set_time = set_time, .jump = jump, .get_policy = get_policy, .set_policy = set_policy, .start = start,
	.populate = populate,
	.pool_add = pool_add, .pool_del = pool_del, .away = away, .drop = drop,
	.merge = merge,
	.fill = fill, .empty = empty, .limit = limit, .memory = memory,
	.waits = waits, .keepalive = keepalive, .has_ended = has_ended, .crash = crash, .alloc_pages = alloc_pages,
	.free_pages = free_pages, .descriptor = descriptor,
	.tsc_khz = tsc_khz, .tsc = tsc, .close = close_all,
};

static int map_ring(struct libxc *x, char *text)
{
	void *at = NULL;
	size_t size = 0;

	if (xenforeignmemory_resource_size(x->fmem, x->domid, XENMEM_resource_dsm_ring,
					   0, &size) || size < 2 * XC_PAGE_SIZE) {
		snprintf(text, DSM_ENGINE_TEXT, "domain %u: size of the ring: %s", x->domid,
			 strerror(errno));
		return -EIO;
	}
	x->ring_pages = size / XC_PAGE_SIZE;
	x->resource = xenforeignmemory_map_resource(x->fmem, x->domid,
			XENMEM_resource_dsm_ring, 0, 0, x->ring_pages, &at,
			PROT_READ | PROT_WRITE, 0);
	if (!x->resource) {
		snprintf(text, DSM_ENGINE_TEXT, "domain %u: mapping the ring: %s", x->domid,
			 strerror(errno));
		return -EIO;
	}
	x->ring = at;
	x->entry = (const void *)((const char *)at + XC_PAGE_SIZE);
	x->nr = x->ring->nr;
	x->cons = x->ring->cons;
	if (!x->nr || x->nr & (x->nr - 1) ||
	    x->nr > (x->ring_pages - 1) * XC_PAGE_SIZE / sizeof(*x->entry)) {
		snprintf(text, DSM_ENGINE_TEXT, "domain %u: a ring of %u entries in %zu pages",
			 x->domid, x->nr, x->ring_pages);
		return -EIO;
	}
	return 0;
}

static int open_handles(struct libxc *x, char *text)
{
	x->xch = xc_interface_open(NULL, NULL, 0);
	x->xce = xenevtchn_open(NULL, 0);
	x->fmem = xenforeignmemory_open(NULL, 0);
	/* To look is one system call then, not two. */
	if (x->xch && x->xce && x->fmem &&
	    !fcntl(xenevtchn_fd(x->xce), F_SETFL, O_NONBLOCK))
		return 0;
	snprintf(text, DSM_ENGINE_TEXT, "no way to Xen: %s", strerror(errno));
	return -EIO;
}

struct dsm_xen *dsm_hypervisor_open(const struct dsm_description *d,
				    const struct dsm_config *config,
				    char text[DSM_ENGINE_TEXT])
{
	struct libxc *x = calloc(1, sizeof(*x));
	evtchn_port_t port;

	if (!x) {
		snprintf(text, DSM_ENGINE_TEXT, "no memory");
		return NULL;
	}
	x->xen.calls = &calls;
	x->domid = d->domid;
	x->description = d;
	if (open_handles(x, text))
		goto fail;
	if (d->build) {
		if (dsm_slice_create(x->xch, d, config->self, &x->domid, text))
			goto fail;
		x->built = true;
		name_slice(x->domid, d, config);
	}
	if (dsm_slice_enable(x->xch, x->domid, d, config, &port, text) ||
	    map_ring(x, text))
		goto fail;
	x->port = xenevtchn_bind_interdomain(x->xce, x->domid, port);
	if (x->port < 0) {
		snprintf(text, DSM_ENGINE_TEXT, "domain %u: event channel %u: %s", x->domid,
			 port, strerror(errno));
		goto fail;
	}
	return &x->xen;

fail:
	close_all(&x->xen);
	return NULL;
}

void dsm_hypervisor_publish(const struct dsm_description *d, const char *state)
{
	struct xs_handle *xs = xs_open(0);
	char uuid[37], path[64];

	dsm_uuid_text(d->uuid, uuid);
	snprintf(path, sizeof(path), "/tool/dsm/%s/state", uuid);
	if (!xs || !xs_write(xs, XBT_NULL, path, state, (unsigned int)strlen(state)))
		fprintf(stderr, "<4>level=warning vm=%s msg=\"xenstore: %s\"\n", d->name,
			strerror(errno));
	xs_close(xs);
}
