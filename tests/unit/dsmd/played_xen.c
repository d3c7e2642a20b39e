// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "case.h"
#include "played_xen.h"

/* The dice of the program's own file, not those of this one: they are static. */
static uint64_t chance_state = 77;

static bool chance(unsigned int permille)
{
	chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
	return (chance_state >> 33) % 1000 < permille;
}

static struct played_xen *of(struct dsm_xen *xen)
{
	return (struct played_xen *)xen;
}

#define NO_GFN	UINT64_MAX

/* Where among the frames of which it is told, or PLAYED_HOLES. */
static unsigned int find_hole(const struct played_vcpu *v, uint64_t gfn)
{
	unsigned int i = 0;

	while (i < PLAYED_HOLES && (!v->at_hole || v->hole_gfn[i] != gfn))
		i++;
	return i;
}

static void end_hole(struct played_vcpu *v, uint64_t gfn)
{
	unsigned int i = find_hole(v, gfn);

	if (i == PLAYED_HOLES)
		return;
	v->hole_gfn[i] = NO_GFN;
	v->at_hole = false;
	for (i = 0; i < PLAYED_HOLES; i++)
		v->at_hole |= v->hole_gfn[i] != NO_GFN;
}

static void add_hole(struct played_vcpu *v)
{
	unsigned int i;

	for (i = 0; i < PLAYED_HOLES && (!v->at_hole || v->hole_rip != v->rip); i++)
		v->hole_gfn[i] = NO_GFN;
	v->at_hole = true;
	v->hole_rip = v->rip;
	v->hole_gfn[v->nr_holes++ % PLAYED_HOLES] = v->gfn;
}

/* Is its miss in the ring still? */
static bool is_unread(const struct played_xen *p, unsigned int vcpu)
{
	unsigned int i;

	for (i = 0; i < p->in_ring; i++)
		if (!p->ring[i].vcpu.type && !p->ring[i].miss.foreign && p->ring[i].miss.vcpu == vcpu)
			return true;
	return p->vcpu[vcpu].unsent;
}

static void wake(struct played_xen *p, uint64_t gfn)
{
	unsigned int i;

	p->wakes++;
	p->page[gfn].foreign_want = 0;
	p->page[gfn].foreign_hole = false;
	for (i = 0; i < p->nr_vcpus; i++) {
		end_hole(&p->vcpu[i], gfn);
		if (p->vcpu[i].waits && p->vcpu[i].gfn == gfn) {
			p->vcpu[i].waits = false;
			p->vcpu[i].unsent = false;
		}
	}
}

static int show_hole(struct played_xen *p, struct played_page *page, const struct dsm_xen_op *op)
{
	struct played_vcpu *v = &p->vcpu[op->vcpu < p->nr_vcpus ? op->vcpu : 0];

	if (op->vcpu != DSM_XEN_FOREIGN && op->vcpu >= p->nr_vcpus)
		return -EINVAL;
	if (page->state == DSM_XEN_STATE_HOLE)
		return -ENOENT;
	if (page->state != DSM_XEN_STATE_I && page->state != DSM_XEN_STATE_U)
		return -EINVAL;
	if (op->vcpu == DSM_XEN_FOREIGN) {
		/* The daemon has read the first miss that wanted as much, if not the last one. */
		if (page->foreign_want && page->foreign_first < p->nr_read) {
			page->foreign_want = 0;
			page->foreign_hole = true;
		}
	} else if (v->waits && v->gfn == op->gfn && !is_unread(p, op->vcpu)) {
		add_hole(v);
		v->waits = false;
	}
	return 0;
}

static uint8_t wanted(const struct played_xen *p, uint64_t gfn)
{
	uint8_t most = 0;
	unsigned int i;

	for (i = 0; i < p->nr_vcpus; i++)
		if (p->vcpu[i].waits && p->vcpu[i].gfn == gfn && p->vcpu[i].want > most)
			most = p->vcpu[i].want;
	return most;
}

static int take(struct played_xen *p, struct played_page *page,
		struct dsm_xen_op *op)
{
	bool inval = op->type == DSM_XEN_INVAL;

	switch (page->state) {
	case DSM_XEN_STATE_M:
		break;
	case DSM_XEN_STATE_S:
		if (!inval)
			return -EEXIST;
		break;
	case DSM_XEN_STATE_I:
	case DSM_XEN_STATE_U:
		return inval ? -EEXIST : -EINVAL;
	case DSM_XEN_STATE_HOLE:
		return -ENOENT;
	default:
		return -EPERM;
	}
	if (page->special)
		return -EPERM;
	if (page->pinned || chance(p->busy_permille))
		return -EBUSY;
	if (chance(p->nomem_permille))
		return -ENOMEM;
	if (op->buffer)
		memcpy(op->buffer, page->word, DSM_PAGE_BYTES);
	page->state = inval ? DSM_XEN_STATE_I : DSM_XEN_STATE_S;
	if (inval) {
		/* What is used after it was taken is seen. */
		memset(page->word, 0xa5, DSM_PAGE_BYTES);
		p->pool++;
	}
	return 0;
}

static int install(struct played_xen *p, struct played_page *page,
		   struct dsm_xen_op *op)
{
	if (op->type != DSM_XEN_ZERO_M && !op->buffer)
		return -EINVAL;
	if (page->state != DSM_XEN_STATE_I && page->state != DSM_XEN_STATE_U)
		return page->state == DSM_XEN_STATE_HOLE ? -ENOENT : -EEXIST;
	if (!p->pool)
		return -ENOSPC;
	p->pool--;
	if (op->type == DSM_XEN_ZERO_M)
		memset(page->word, 0, DSM_PAGE_BYTES);
	else
		memcpy(page->word, op->buffer, DSM_PAGE_BYTES);
	if (op->type == DSM_XEN_ZERO_M && p->on_zero)
		p->on_zero(p, op->gfn, wanted(p, op->gfn));
	page->state = op->type == DSM_XEN_INSTALL_S ? DSM_XEN_STATE_S :
						      DSM_XEN_STATE_M;
	wake(p, op->gfn);
	return 0;
}

static int page_op(struct played_xen *p, struct dsm_xen_op *op)
{
	struct played_page *page;

	if (op->gfn >= p->nr_pages)
		return -ERANGE;
	page = &p->page[op->gfn];
	switch (op->type) {
	case DSM_XEN_INVAL:
	case DSM_XEN_DOWNGRADE:
		return take(p, page, op);
	case DSM_XEN_READ:
		if (!op->buffer)
			return -EINVAL;
		if (page->state != DSM_XEN_STATE_S)
			return page->state == DSM_XEN_STATE_HOLE ? -ENOENT : -EINVAL;
		memcpy(op->buffer, page->word, DSM_PAGE_BYTES);
		return 0;
	case DSM_XEN_INSTALL_S:
	case DSM_XEN_INSTALL_M:
	case DSM_XEN_ZERO_M:
		return install(p, page, op);
	case DSM_XEN_UPGRADE:
		if (page->state == DSM_XEN_STATE_M)
			return -EEXIST;
		if (page->state != DSM_XEN_STATE_S)
			return page->state == DSM_XEN_STATE_HOLE ? -ENOENT : -EINVAL;
		page->state = DSM_XEN_STATE_M;
		wake(p, op->gfn);
		return 0;
	case DSM_XEN_DROP:
		if (page->state != DSM_XEN_STATE_I && page->state != DSM_XEN_STATE_U)
			return page->state == DSM_XEN_STATE_HOLE ? -EEXIST : -EINVAL;
		page->state = DSM_XEN_STATE_HOLE;
		if (p->pool && !page->elsewhere) {
			p->pool--;
			p->host_frames++;
		}
		wake(p, op->gfn);
		return 0;
	case DSM_XEN_UNCACHE:
		if (p->nomem_uncaches) {
			p->nomem_uncaches--;
			return -ENOMEM;
		}
		if (page->state != DSM_XEN_STATE_I)
			return page->state == DSM_XEN_STATE_U ? -EEXIST :
			       page->state == DSM_XEN_STATE_HOLE ? -ENOENT : -EINVAL;
		page->state = DSM_XEN_STATE_U;
		wake(p, op->gfn);
		return 0;
	case DSM_XEN_CACHE:
		if (page->state != DSM_XEN_STATE_U)
			return page->state == DSM_XEN_STATE_I ? -EEXIST :
			       page->state == DSM_XEN_STATE_HOLE ? -ENOENT : -EINVAL;
		page->state = DSM_XEN_STATE_I;
		wake(p, op->gfn);
		return 0;
	case DSM_XEN_HOLE:
		return show_hole(p, page, op);
	case DSM_XEN_WAKE:
		wake(p, op->gfn);
		return 0;
	case DSM_XEN_QUERY:
		op->wanted = wanted(p, op->gfn);
		return 0;
	}
	return -EINVAL;
}

static int played_page_ops(struct dsm_xen *xen, struct dsm_xen_op *ops,
			   unsigned int nr)
{
	struct played_xen *p = of(xen);
	unsigned int i;

	if (p->break_page)
		return p->break_page;
	CHECK(nr && nr <= DSM_XEN_MAX_OPS, "%u operations", nr);
	p->calls++;
	for (i = 0; i < nr; i++) {
		p->operations++;
		ops[i].rc = page_op(p, &ops[i]);
		if (ops[i].gfn < p->nr_pages)
			ops[i].state = p->page[ops[i].gfn].state;
		p->refused[-ops[i].rc]++;
		CHECK(!p->must_not_refuse || !ops[i].rc || ops[i].rc == -EBUSY ||
		      ops[i].rc == -ENOMEM || ops[i].rc == -ENOENT ||
		      ops[i].rc == -EPERM || ops[i].type == DSM_XEN_UNCACHE ||
		      ops[i].type == DSM_XEN_CACHE,
		      "operation %u of gfn %llu, now in state %u: %s", ops[i].type,
		      (unsigned long long)ops[i].gfn, ops[i].state,
		      strerror(-ops[i].rc));
	}
	return 0;
}

static bool ring_put(struct played_xen *p, const struct dsm_xen_miss *miss)
{
	if (p->in_ring == p->ring_size) {
		p->full = true;
		return false;
	}
	p->ring[p->in_ring++] = (struct dsm_xen_entry){ .miss = *miss };
	return true;
}

/* Another domain looks, long after it has looked before: it is told again what was read. */
static void foreign_looks(struct played_xen *p, uint64_t gfn, uint8_t want)
{
	struct played_page *page = &p->page[gfn];
	struct dsm_xen_miss miss = { .gfn = gfn, .want = want, .foreign = true };
	uint64_t entry = p->nr_read + p->in_ring;

	if (page->foreign_want >= want && page->foreign_last >= p->nr_read)
		return;
	if (miss.want < page->foreign_want)
		miss.want = page->foreign_want;
	if (!ring_put(p, &miss))
		return;
	if (page->foreign_want < want)
		page->foreign_first = entry;
	page->foreign_last = entry;
	page->foreign_want = miss.want;
}

static int played_misses(struct dsm_xen *xen, struct dsm_xen_entry *misses,
			 unsigned int most)
{
	struct played_xen *p = of(xen);
	unsigned int i, nr;

	if (p->break_misses)
		return p->break_misses;
	for (i = 0; p->endless && i < most; i++)
		misses[i] = (struct dsm_xen_entry){ .miss = { .want = DSM_XEN_WANT_S, .foreign = true } };
	/* Who reads it on and on would never see what else is to do. */
	if (p->endless)
		return p->endless_reads++ < 1000 ? (int)most : -ELOOP;
	nr = p->in_ring < most ? p->in_ring : most;
	memcpy(misses, p->ring, nr * sizeof(*misses));
	memmove(p->ring, p->ring + nr, (p->in_ring - nr) * sizeof(*misses));
	p->in_ring -= nr;
	p->nr_read += nr;
	if (!p->full)
		return (int)nr;
	p->full = false;
	for (i = 0; i < p->nr_vcpus; i++) {
		struct played_vcpu *v = &p->vcpu[i];
		struct dsm_xen_miss miss = {
			.gfn = v->gfn, .rip = v->rip, .vcpu = i, .want = v->want,
			.of_u = v->of_u,
		};

		if (v->waits && v->unsent)
			v->unsent = !ring_put(p, &miss);
		if (!p->access_unsent[i])
			continue;
		p->access_unsent[i] = !played_says(p, &p->accesses[i]);
		p->full |= p->access_unsent[i];
	}
	return (int)nr + played_misses(xen, misses + nr, most - nr);
}

static bool played_has_misses(struct dsm_xen *xen)
{
	const struct played_xen *p = of(xen);

	return p->in_ring || p->full || p->endless;
}

/* ---- vCPUs ---- */

bool played_says(struct played_xen *p, const struct dsm_vcpu_msg *msg)
{
	struct dsm_xen_entry entry = { .vcpu = *msg };

	if (p->in_ring == p->ring_size)
		return false;
	if (msg->type == DSM_VCPU_CALL) {
		CHECK(!p->asks[msg->vcpu].type, "a vCPU that waits calls");
		entry.vcpu.number = ++p->cookie;
		p->asks[msg->vcpu] = entry.vcpu;
	}
	p->ring[p->in_ring++] = entry;
	return true;
}

static void note(struct played_xen *p, const struct dsm_vcpu_msg *msg)
{
	p->log[p->nr_log++ % PLAYED_LOG] = *msg;
}

static int played_send_event(struct dsm_xen *xen, const struct dsm_vcpu_msg *m)
{
	struct played_xen *p = of(xen);

	if (p->break_send)
		return p->break_send;
	CHECK(m->vcpu < p->nr_vcpus && !p->elsewhere[m->vcpu], "vCPU %u", m->vcpu);
	p->has_begun |= m->flags & DSM_EVENT_SIPI;
	note(p, m);
	if (p->on_send)
		p->on_send();
	return 0;
}

static int played_send_ports(struct dsm_xen *xen, const struct dsm_vcpu_msg *m)
{
	struct played_xen *p = of(xen);

	if (p->break_send)
		return p->break_send;
	CHECK(dsm_port_slice((uint32_t)m->number, p->nr_slices) == p->slice, "ports from %llu",
	      (unsigned long long)m->number);
	note(p, m);
	if (p->on_send)
		p->on_send();
	return 0;
}

/* register_vcpu_info needs its page; bind_ipi allocates a port of this slice. */
static int played_call(struct dsm_xen *xen, struct dsm_vcpu_msg *m)
{
	struct played_xen *p = of(xen);

	p->call_tries++;
	if (p->break_call)
		return p->break_call;
	CHECK(!m->rc && !m->word[3], "not zero");
	if (m->op == 24 && p->page[m->word[0]].foreign_hole) {
		p->page[m->word[0]].foreign_hole = false;
		m->rc = -EINVAL;
		note(p, m);
		return 0;
	}
	if (m->op == 24 && p->page[m->word[0]].state != DSM_XEN_STATE_M) {
		if (!p->no_foreign)
			foreign_looks(p, m->word[0], DSM_XEN_WANT_M);
		return -EAGAIN;
	}
	if (m->op == 24 && p->info[m->about])
		m->rc = -EBUSY;
	else if (m->op == 24 && m->word[1])
		m->rc = -EINVAL;
	else if (m->op == 24) {
		p->page[m->word[0]].pinned = true;
		p->info[m->about] = DSM_PAGE_BYTES * m->word[0];
	}
	if (m->op == 32 && m->cmd == 7)
		m->word[0] |= (uint64_t)(4096 / 4 * p->slice + ++p->next_port) << 32;
	note(p, m);
	return 0;
}

static int played_reply(struct dsm_xen *xen, const struct dsm_vcpu_msg *m)
{
	struct played_xen *p = of(xen);
	const struct dsm_vcpu_msg *call = &p->asks[m->vcpu];

	if (p->break_reply)
		return p->break_reply;
	if (!call->type || call->number != m->number)
		return -ESRCH;
	if (!m->rc && call->op == 32 && call->cmd == 7 && (m->word[0] >> 42) == p->slice)
		return -EINVAL;
	p->asks[m->vcpu].type = 0;
	note(p, m);
	return 0;
}

static int played_make_access(struct dsm_xen *xen, struct dsm_vcpu_msg *m, bool *in_use)
{
	struct played_xen *p = of(xen);
	struct played_page *page = &p->page[m->word[0] / DSM_PAGE_BYTES];
	unsigned int width = DSM_ACCESS_WIDTH(m->flags);
	uint8_t *bytes = (uint8_t *)page->word + m->word[0] % DSM_PAGE_BYTES;
	uint64_t was = 0;

	if (p->break_access)
		return p->break_access;
	CHECK(!page->elsewhere, "not what is played");
	memcpy(&was, bytes, width);
	if (page->state != DSM_XEN_STATE_M)
		return page->state == DSM_XEN_STATE_HOLE ? -ENOENT : -ENODATA;
	if (page->own)
		return -EPERM;
	*in_use = page->pinned || page->special;
	p->made++;
	switch (m->flags & DSM_ACCESS_WHAT) {
	case DSM_ACCESS_WRITE:
		memcpy(bytes, &m->word[2], width);
		return 0;
	case DSM_ACCESS_CMPXCHG:
		if (was == m->word[1])
			memcpy(bytes, &m->word[2], width);
	}
	m->word[1] = was;
	return 0;
}

static int played_accessed(struct dsm_xen *xen, const struct dsm_vcpu_msg *m)
{
	struct played_xen *p = of(xen);
	struct dsm_vcpu_msg *access = &p->accesses[m->vcpu];

	if (!access->type || access->number != m->number)
		return -ESRCH;
	if (m->word[0] && (access->flags & DSM_ACCESS_WHAT) == DSM_ACCESS_WRITE)
		return -EINVAL;
	access->type = 0;
	p->accessed[m->vcpu] = *m;
	return 0;
}

/* Xen says so in the ring, whoever did it. */
static int played_shutdown(struct dsm_xen *xen, unsigned int code)
{
	struct played_xen *p = of(xen);
	struct dsm_vcpu_msg m = { .type = DSM_VCPU_SHUTDOWN, .flags = (uint8_t)code };

	if (p->break_shutdown)
		return p->break_shutdown;
	CHECK(!p->shut, "twice");
	p->shut = true;
	note(p, &m);
	CHECK(played_says(p, &m), "a full ring");
	return 0;
}

static int played_shared_info(struct dsm_xen *xen, uint64_t gfn)
{
	struct played_xen *p = of(xen);

	p->info_calls++;
	if (p->break_info)
		return p->break_info;
	if (!p->slice)
		return -EINVAL;
	if (p->info_gfn)
		return -EEXIST;
	if (p->page[gfn].state != DSM_XEN_STATE_I)
		return -EBUSY;
	p->info_gfn = gfn;
	return 0;
}

static uint64_t played_shared_info_at(struct dsm_xen *xen)
{
	CHECK(!of(xen)->slice, "only slice 0 knows");
	return of(xen)->info_gfn;
}

static int played_place(struct dsm_xen *xen, unsigned int vcpu, unsigned int host, uint64_t *info)
{
	struct played_xen *p = of(xen);
	unsigned int i;

	CHECK(vcpu && vcpu < p->nr_vcpus && (p->pauses || !p->started), "vCPU %u", vcpu);
	if (info)
		*info = 0;
	if (p->break_place)
		return p->break_place;
	if (p->busy_places) {
		p->busy_places--;
		return -EBUSY;
	}
	for (i = 0; i < p->nr_vcpus; i++)
		if (p->asks[i].type || p->accesses[i].type)
			return -EBUSY;
	if (p->up[vcpu] && !p->elsewhere[vcpu])
		return -EBUSY;
	if (host != p->self && p->info[vcpu] % DSM_PAGE_BYTES)
		return -EOPNOTSUPP;
	p->places++;
	p->place[vcpu] = (uint8_t)host;
	p->elsewhere[vcpu] = host != p->self;
	if (p->at_place.type)
		CHECK(played_says(p, &p->at_place), "a full ring");
	p->at_place.type = 0;
	if (!p->elsewhere[vcpu] || !p->info[vcpu])
		return 0;
	CHECK(info, "nobody wants to know where it was");
	*info = p->info[vcpu];
	p->page[p->info[vcpu] / DSM_PAGE_BYTES].pinned = false;
	p->info[vcpu] = 0;
	return 0;
}

static bool played_is_up(struct dsm_xen *xen, unsigned int vcpu)
{
	return of(xen)->up[vcpu];
}

static int played_pause(struct dsm_xen *xen)
{
	of(xen)->pauses += !of(xen)->break_pause;
	return of(xen)->break_pause;
}

static int played_unpause(struct dsm_xen *xen)
{
	if (!of(xen)->pauses)
		return -EINVAL;
	of(xen)->pauses--;
	return 0;
}

static bool played_is_paused(struct dsm_xen *xen)
{
	return of(xen)->pauses || of(xen)->others;
}

/* ---- Before the first start ---- */

static int played_get_time(struct dsm_xen *xen, struct dsm_vcpu_msg *time)
{
	struct played_xen *p = of(xen);
	uint8_t slow = time->flags;

	CHECK(!p->slice && !p->time_is_set, "only slice 0, once");
	p->time_is_set = true;
	p->time.type = DSM_VCPU_TIME;
	p->time.flags = slow;
	*time = p->time;
	return p->break_time;
}

static int played_set_time(struct dsm_xen *xen, const struct dsm_vcpu_msg *time)
{
	struct played_xen *p = of(xen);

	CHECK(p->slice && !p->time_is_set && p->policy_is_set && !p->started, "in another order");
	/* SET_TSC: a vCPU has its TSC. */
	if (p->has_begun)
		return -EBUSY;
	p->time_is_set = true;
	p->time = *time;
	return p->break_time;
}

/* A tick is a ns. */
static int played_jump(struct dsm_xen *xen, uint64_t ticks)
{
	struct played_xen *p = of(xen);

	CHECK(p->time_is_set && ticks && ticks <= 1000000, "%llu ticks", (unsigned long long)ticks);
	p->jumps++;
	if (p->break_jump)
		return p->break_jump;
	p->time.number += ticks;
	p->jumped += ticks;
	return 0;
}

static int played_get_policy(struct dsm_xen *xen, uint8_t *bytes, unsigned int size)
{
	struct played_xen *p = of(xen);

	memset(bytes, 0, size);
	memcpy(bytes, p->policy, sizeof(p->policy));
	bytes[size - 1] = 0x5a;
	return p->break_policy;
}

static int played_set_policy(struct dsm_xen *xen, const uint8_t *bytes, unsigned int size,
			     char *text)
{
	struct played_xen *p = of(xen);

	CHECK(!p->started && size == DSM_POLICY_PARTS * DSM_PAGE_BYTES && bytes[size - 1] == 0x5a,
	      "all of it");
	strcpy(text, p->more_features);
	memcpy(p->policy, bytes, sizeof(p->policy));
	p->policy_is_set = true;
	return p->break_policy;
}

static int played_start(struct dsm_xen *xen)
{
	CHECK(of(xen)->time_is_set, "before it has the time");
	of(xen)->started = true;
	return 0;
}

static int played_populate(struct dsm_xen *xen, uint64_t gfn)
{
	struct played_xen *p = of(xen);

	if (p->page[gfn].state != DSM_XEN_STATE_HOLE)
		return -EEXIST;
	return played_guest_populates(p, gfn) ? 0 : -ENOMEM;
}

static int played_pool_add(struct dsm_xen *xen, unsigned int nr)
{
	struct played_xen *p = of(xen);

	if (p->host_frames < nr)
		return -ENOMEM;
	p->host_frames -= nr;
	p->pool += nr;
	return 0;
}

static int played_pool_del(struct dsm_xen *xen, unsigned int nr)
{
	struct played_xen *p = of(xen);

	if (p->break_pool_del)
		return p->break_pool_del;
	if (p->pool < nr)
		return -EBUSY;
	p->pool -= nr;
	p->host_frames += nr;
	return 0;
}

static int played_away(struct dsm_xen *xen, uint64_t first, uint64_t nr)
{
	struct played_xen *p = of(xen);
	uint64_t i;

	if (p->break_away)
		return p->break_away;
	for (i = first; i < first + nr; i++)
		if (p->page[i].state != DSM_XEN_STATE_HOLE)
			return -EEXIST;
	for (i = first; i < first + nr; i++) {
		p->page[i].state = DSM_XEN_STATE_I;
		p->page[i].elsewhere = true;
	}
	return 0;
}

static int played_drop(struct dsm_xen *xen, uint64_t first, uint64_t nr)
{
	struct played_xen *p = of(xen);
	struct dsm_xen_op op = { .type = DSM_XEN_DROP };

	if (p->break_drop)
		return p->break_drop;
	for (op.gfn = first; op.gfn < first + nr; op.gfn++)
		if (p->page[op.gfn].state != DSM_XEN_STATE_I &&
		    p->page[op.gfn].state != DSM_XEN_STATE_HOLE)
			return -EBUSY;
	for (op.gfn = first; op.gfn < first + nr; op.gfn++) {
		page_op(p, &op);
		p->page[op.gfn].elsewhere = false;
	}
	return 0;
}

static int played_merge(struct dsm_xen *xen, uint64_t first)
{
	struct played_xen *p = of(xen);
	uint64_t i;

	p->merges++;
	if (p->break_merge)
		return p->break_merge;
	if (first % 512)
		return -EINVAL;
	for (i = first; i < first + 512; i++)
		if (p->page[i].state != DSM_XEN_STATE_M || p->page[i].elsewhere)
			return -ENODATA;
	for (i = first; i < first + 512; i++)
		if (p->page[i].pinned)
			return -EBUSY;
	p->merged = first;
	return 0;
}

/* A part at a time, as Xen does. */
static int64_t played_fill(struct dsm_xen *xen, uint64_t first, uint64_t nr)
{
	struct played_xen *p = of(xen);
	uint64_t i, part = p->part && p->part < nr ? p->part : nr;

	if (p->break_fill)
		return p->break_fill;
	for (i = 0; i < part; i++) {
		CHECK(!p->page[first + i].elsewhere, "it is homed elsewhere");
		if (!played_guest_populates(p, first + i))
			break;
	}
	return i ? (int64_t)i : -ENOMEM;
}

static int64_t played_empty(struct dsm_xen *xen, uint64_t first, uint64_t nr)
{
	struct played_xen *p = of(xen);
	uint64_t i, part = p->part && p->part < nr ? p->part : nr;

	if (p->break_empty)
		return p->break_empty;
	for (i = first + nr - part; i < first + nr; i++)
		CHECK(played_guest_frees(p, i), "gfn %llu is in state %u",
		      (unsigned long long)i, p->page[i].state);
	return (int64_t)part;
}

static int played_limit(struct dsm_xen *xen, uint64_t frames)
{
	if (of(xen)->break_limit)
		return of(xen)->break_limit;
	of(xen)->limit = frames;
	return 0;
}

static int played_memory(struct dsm_xen *xen, struct dsm_xen_memory *memory)
{
	const struct played_xen *p = of(xen);

	if (p->break_memory)
		return p->break_memory;
	*memory = (struct dsm_xen_memory){
		.free = 4 * (uint64_t)p->host_frames, .used = 1000,
		.limit = p->limit_kib ? p->limit_kib : 1 << 30,
	};
	return 0;
}

static int played_counts(struct dsm_xen *xen, struct dsm_xen_waits *waits)
{
	if (!of(xen)->break_waits)
		*waits = of(xen)->told;
	return of(xen)->break_waits;
}

static int played_keepalive(struct dsm_xen *xen, unsigned int ms)
{
	of(xen)->keepalives++;
	of(xen)->keepalive_ms = ms;
	return of(xen)->ended ? -EINVAL : of(xen)->break_keepalive;
}

static bool played_has_ended(struct dsm_xen *xen)
{
	return of(xen)->ended;
}

static int played_crash(struct dsm_xen *xen)
{
	of(xen)->crashes++;
	return 0;
}

static void *played_alloc(struct dsm_xen *xen, unsigned int nr)
{
	(void)xen;
	return calloc(nr, DSM_PAGE_BYTES);
}

static void played_free(struct dsm_xen *xen, void *pages, unsigned int nr)
{
	(void)xen;
	(void)nr;
	free(pages);
}

static int played_descriptor(struct dsm_xen *xen)
{
	(void)xen;
	return -1;
}

static int played_tsc_khz(struct dsm_xen *xen, const char **text)
{
	const struct played_xen *p = (const struct played_xen *)xen;

	*text = p->tsc_khz ? "" : "it is played without one";
	return p->tsc_khz ? (int)p->tsc_khz : -EOPNOTSUPP;
}

/* A tick is a ns, whatever its frequency is said to be. */
static uint64_t played_tsc(struct dsm_xen *xen)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec +
	       ((const struct played_xen *)xen)->tsc_offset;
}

static void played_close(struct dsm_xen *xen)
{
	(void)xen;
}

static const struct dsm_xen_calls calls = {
	.page = played_page_ops, .misses = played_misses, .has_misses = played_has_misses,
	.send_event = played_send_event, .send_ports = played_send_ports,
	.call = played_call, .reply = played_reply, .shutdown = played_shutdown,
	.access = played_make_access, .accessed = played_accessed,
	.shared_info = played_shared_info, .shared_info_at = played_shared_info_at,
	.place = played_place, .is_up = played_is_up, .pause = played_pause, .unpause = played_unpause,
	.is_paused = played_is_paused,
	.get_time = played_get_time, .set_time = played_set_time, .jump = played_jump,
	.get_policy = played_get_policy, .set_policy = played_set_policy, .start = played_start,
	.populate = played_populate, .pool_add = played_pool_add,
	.pool_del = played_pool_del, .away = played_away, .drop = played_drop,
	.merge = played_merge,
	.fill = played_fill, .empty = played_empty, .limit = played_limit, .memory = played_memory,
	.waits = played_counts, .keepalive = played_keepalive, .has_ended = played_has_ended, .crash = played_crash,
	.alloc_pages = played_alloc, .free_pages = played_free,
	.descriptor = played_descriptor, .tsc_khz = played_tsc_khz,
	.tsc = played_tsc, .close = played_close,
};

void played_init(struct played_xen *p, unsigned int nr_pages,
		 unsigned int nr_vcpus, unsigned int ring_size,
		 unsigned int pool)
{
	memset(p, 0, sizeof(*p));
	p->xen.calls = &calls;
	p->tsc_khz = 1000000;
	p->nr_pages = nr_pages;
	p->nr_vcpus = nr_vcpus;
	p->ring_size = ring_size;
	p->pool = pool;
	p->host_frames = 1000;
	p->must_not_refuse = true;
	memset(p->place, 0xff, sizeof(p->place));
}

enum played_access played_use(struct played_xen *p, unsigned int vcpu,
			      uint64_t gfn, unsigned int want, uint64_t rip)
{
	const struct played_page *page = &p->page[gfn];
	struct dsm_xen_miss miss = {
		.gfn = gfn, .rip = rip, .vcpu = vcpu, .want = (uint8_t)want,
	};
	struct played_vcpu *v;

	if (page->state == DSM_XEN_STATE_HOLE)
		return PLAYED_HOLE;
	if (vcpu != NO_VCPU && p->vcpu[vcpu].at_hole && p->vcpu[vcpu].hole_rip != rip)
		played_goes_on(p, vcpu);
	if (page->state == DSM_XEN_STATE_I || page->state == DSM_XEN_STATE_U) {
		if (vcpu != NO_VCPU && find_hole(&p->vcpu[vcpu], gfn) < PLAYED_HOLES)
			return PLAYED_HOLE;
		if (vcpu == NO_VCPU && page->foreign_hole) {
			p->page[gfn].foreign_hole = false;
			return PLAYED_HOLE;
		}
	}
	if (page->state == DSM_XEN_STATE_U)
		return vcpu == NO_VCPU ? PLAYED_HOLE : PLAYED_ACCESS;
	if (page->state == DSM_XEN_STATE_M ||
	    (page->state == DSM_XEN_STATE_S && want == DSM_XEN_WANT_S))
		return PLAYED_DONE;
	if (vcpu == NO_VCPU) {
		foreign_looks(p, gfn, (uint8_t)want);
		return PLAYED_MISS;
	}
	v = &p->vcpu[vcpu];
	CHECK(!v->waits, "a vCPU that waits runs");
	v->waits = true;
	v->of_u = false;
	v->gfn = gfn;
	v->rip = rip;
	v->want = (uint8_t)want;
	v->unsent = !ring_put(p, &miss);
	return PLAYED_MISS;
}

void played_goes_on(struct played_xen *p, unsigned int vcpu)
{
	p->vcpu[vcpu].at_hole = false;
}

bool played_access(struct played_xen *p, unsigned int vcpu, unsigned int what,
		   uint64_t address, uint64_t old, uint64_t value)
{
	struct dsm_vcpu_msg m = {
		.type = DSM_VCPU_ACCESS, .vcpu = vcpu, .flags = (uint8_t)(what | (what >> 4 ? 0 : 3 << 4)),
		.number = ++p->cookie, .word = { address, old, value },
	};

	CHECK(!p->accesses[vcpu].type && !p->vcpu[vcpu].waits, "a vCPU that waits runs");
	p->accesses[vcpu] = m;
	p->access_unsent[vcpu] = p->in_ring == p->ring_size;
	p->full |= p->access_unsent[vcpu];
	if (p->access_unsent[vcpu])
		return false;
	p->ring[p->in_ring++] = (struct dsm_xen_entry){ .vcpu = m };
	return true;
}

void played_need(struct played_xen *p, unsigned int vcpu, uint64_t gfn, uint64_t rip)
{
	struct dsm_xen_miss miss = {
		.gfn = gfn, .rip = rip, .vcpu = vcpu, .want = DSM_XEN_WANT_M, .of_u = true,
	};

	CHECK(p->page[gfn].state == DSM_XEN_STATE_U, "in state %u", p->page[gfn].state);
	p->vcpu[vcpu] = (struct played_vcpu){
		.waits = true, .gfn = gfn, .rip = rip, .want = DSM_XEN_WANT_M, .of_u = true,
	};
	p->vcpu[vcpu].unsent = !ring_put(p, &miss);
}

bool played_guest_frees(struct played_xen *p, uint64_t gfn)
{
	struct played_page *page = &p->page[gfn];

	if (page->state != DSM_XEN_STATE_M || page->pinned || page->special ||
	    page->elsewhere)
		return false;
	page->state = DSM_XEN_STATE_HOLE;
	memset(page->word, 0xff, DSM_PAGE_BYTES);
	p->host_frames++;
	p->populated--;
	return true;
}

bool played_guest_populates(struct played_xen *p, uint64_t gfn)
{
	struct played_page *page = &p->page[gfn];

	if (page->state != DSM_XEN_STATE_HOLE || !p->host_frames ||
	    (p->limit && p->populated >= (int64_t)p->limit))
		return false;
	p->populated++;
	p->host_frames--;
	page->state = DSM_XEN_STATE_M;
	memset(page->word, 0, DSM_PAGE_BYTES);
	return true;
}

bool played_waits(const struct played_xen *p)
{
	unsigned int i;

	for (i = 0; i < p->nr_vcpus; i++)
		if (p->vcpu[i].waits)
			return true;
	return false;
}
