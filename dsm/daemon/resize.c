// SPDX-License-Identifier: GPL-2.0
/*
 * How much memory a vnode has: "node VNODE SIZE_KIB POOL_KIB", "leaving", and "state".
 *
 * One request says what is to be, for one vnode, and one is at work at a time.
 * advance() compares what is with what is to be and does one short step, from a
 * timer that is due at once, so that misses and messages come in between; or it
 * waits, and dsm_resize_run() looks again before the loop sleeps.  When something
 * fails, what was before is what is to be: the same steps undo it.
 *
 *   here, for a vnode of another host     at that host
 *   larger:  pool, AWAY, open             limit, memory for holes, open
 *   smaller: close, give all up,          close, wait until nobody has any of it,
 *            DROP_RANGE, pool             memory back to the host, limit
 *
 * The other host's memory is there before this host may ask for it, and goes when
 * this host has nothing of it any more: who asks both says so in that order.  "Here" is
 * the home of the VM, or a third host with vCPUs: its pool is as large as its description
 * says, whatever comes.
 *
 * "leaving VNODE SIZE_KIB", before a vnode gets less: the guest is about to empty
 * what is behind that.  A hint, which the next "node" ends.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "worker_internal.h"

#define PATIENCE	100.		/* s for all; libxl waits for 120 */
#define RANGE_STEP	32768u		/* frames in a step of AWAY and DROP_RANGE: 128 MiB */
#define POOL_STEP	4096u		/* frames that a pool grows by in a step: 16 MiB */
#define SIZE_UNIT	2048u		/* KiB */

enum progress {
	MORE,			/* another step */
	WAIT,			/* for something that wakes the loop */
	DONE,
	FAILED,			/* resize.error says why */
};

static bool is_here(const struct dsm_worker *w, const struct dsm_vnode *v)
{
	return v->home == w->p.config->self;
}

static double patience_of(const struct dsm_worker *w)
{
	return w->p.patience > 0. ? w->p.patience : PATIENCE;
}

static uint64_t kib(uint64_t frames)
{
	return frames * DSM_FRAME_KIB;
}

/* ---- Errors ---- */

__attribute__((format(printf, 2, 3)))
static enum progress fail(struct dsm_worker *w, const char *format, ...)
{
	va_list words;

	va_start(words, format);
	vsnprintf(w->resize.error, sizeof(w->resize.error), format, words);
	va_end(words);
	return FAILED;
}

static enum progress broken(struct dsm_worker *w, const char *what, int rc)
{
	const struct dsm_vnode *v = w->resize.vnode;

	return fail(w, "internal vnode %u: %s at gfn 0x%llx: %s", v->number, what,
		    (unsigned long long)(v->start + v->size), strerror(-rc));
}

/* The host, or the limit of the domain, has not enough for @frames more. */
static enum progress no_memory(struct dsm_worker *w, uint64_t frames)
{
	const struct dsm_vnode *v = w->resize.vnode;
	const char *host = dsm_worker_name(w, w->p.config->self);
	const char *word = is_here(w, v) ? "memory-there" : "memory-here";
	struct dsm_xen_memory m = { 0 };
	uint64_t need = kib(frames), room;
	int rc = w->p.xen->calls->memory(w->p.xen, &m);

	if (rc)
		return broken(w, "memory of the host", rc);
	room = m.limit > m.used ? m.limit - m.used : 0;
	if (need > room && !is_here(w, v))
		return fail(w, "%s vnode %u: the limit of the domain on %s leaves %llu KiB (it has %llu of %llu KiB), %llu KiB are needed, short by %llu KiB",
			    word, v->number, host, (unsigned long long)room,
			    (unsigned long long)m.used, (unsigned long long)m.limit,
			    (unsigned long long)need, (unsigned long long)(need - room));
	return fail(w, "%s vnode %u: host %s has %llu KiB of free memory, %llu KiB are needed, short by %llu KiB",
		    word, v->number, host,
		    (unsigned long long)m.free, (unsigned long long)need,
		    (unsigned long long)(need > m.free ? need - m.free : 0));
}

/*
 * Is there enough for @frames more?  Before anything is changed.  The limit of a slice
 * that was built here goes with what it has.
 */
static bool has_memory(struct dsm_worker *w, uint64_t frames)
{
	struct dsm_xen_memory m;

	return !frames || w->p.xen->calls->memory(w->p.xen, &m) ||
	       (kib(frames) <= m.free &&
		(is_here(w, w->resize.vnode) || m.used + kib(frames) <= m.limit));
}

/* ---- Steps ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Frames of one step, of @nr that are left. */
static uint64_t part_of(const struct dsm_worker *w, uint64_t nr, uint64_t step)
{
	return least(nr, w->p.step ? w->p.step : step);
}

static uint64_t all_pools(const struct dsm_worker *w)
{
	const struct dsm_vnode *v;
	uint64_t frames = w->p.description->frames;

	for (v = w->vnode; v < w->vnode + w->nr_vnodes; v++)
		frames += v->pool;
	return frames;
}

static void open_range(struct dsm_worker *w, uint64_t frames)
{
	struct dsm_vnode *v = w->resize.vnode;

	v->open = frames;
	dsm_engine_open_range(w->engine, v->range, frames);
}

static enum progress grow_pool(struct dsm_worker *w)
{
	struct dsm_vnode *v = w->resize.vnode;
	uint64_t nr = part_of(w, w->resize.pool - v->pool, POOL_STEP);
	int rc = w->p.xen->calls->pool_add(w->p.xen, (unsigned int)nr);

	if (rc == -ENOMEM)
		return no_memory(w, w->resize.pool - v->pool);
	if (rc)
		return broken(w, "frames for the pool", rc);
	v->pool += nr;
	dsm_engine_set_frames(w->engine, (unsigned int)all_pools(w));
	return MORE;
}

static enum progress shrink_pool(struct dsm_worker *w)
{
	struct dsm_vnode *v = w->resize.vnode;
	uint64_t all = all_pools(w), fewer = all - (v->pool - w->resize.pool);
	uint64_t nr = part_of(w, v->pool - w->resize.pool, POOL_STEP);
	int rc;

	if (dsm_engine_set_frames(w->engine, (unsigned int)fewer) > fewer)
		return WAIT;
	rc = w->p.xen->calls->pool_del(w->p.xen, (unsigned int)nr);
	if (rc)
		return broken(w, "frames of the pool", rc);
	v->pool -= nr;
	return MORE;
}

static enum progress grow_here(struct dsm_worker *w)
{
	struct dsm_vnode *v = w->resize.vnode;
	uint64_t nr = part_of(w, w->resize.size - v->size, RANGE_STEP);
	int rc;

	if (w->peer[v->home].link != DSM_LINK_UP)
		return fail(w, "unreachable vnode %u: host %s is not connected", v->number,
			    dsm_worker_name(w, v->home));
	rc = w->p.xen->calls->away(w->p.xen, v->start + v->size, nr);
	if (rc == -EEXIST)
		return fail(w, "in-use vnode %u: the guest has memory of this host between gfn 0x%llx and 0x%llx",
			    v->number, (unsigned long long)(v->start + v->size),
			    (unsigned long long)(v->start + v->size + nr));
	if (rc)
		return broken(w, "AWAY", rc);
	v->size += nr;
	return MORE;
}

static enum progress shrink_here(struct dsm_worker *w)
{
	struct dsm_vnode *v = w->resize.vnode;
	uint64_t nr = part_of(w, v->size - w->resize.size, RANGE_STEP);
	int rc = w->p.xen->calls->drop(w->p.xen, v->start + v->size - nr, nr);

	if (rc)
		return broken(w, "DROP_RANGE", rc);
	v->size -= nr;
	return MORE;
}

/*
 * Xen's limit is what is lent and no more: what should be refused, and is not, is
 * refused there.
 */
static enum progress set_limit(struct dsm_worker *w)
{
	const struct dsm_description *d = w->p.description;
	struct dsm_vnode *v;
	uint64_t frames = dsm_description_limit(d, w->p.config->self);
	int rc;

	for (v = w->vnode; v < w->vnode + w->nr_vnodes; v++)
		if (is_here(w, v))
			frames += v == w->resize.vnode ? w->resize.size : v->size;
	rc = w->p.xen->calls->limit(w->p.xen, frames);
	if (rc)
		return broken(w, "the limit of the domain", rc);
	w->resize.vnode->allowed = w->resize.size;
	return MORE;
}

static enum progress grow_there(struct dsm_worker *w)
{
	struct dsm_vnode *v = w->resize.vnode;
	uint64_t nr = w->resize.size - v->size;
	int64_t done = w->p.xen->calls->fill(w->p.xen, v->start + v->size, nr);

	if (done == -ENOMEM)
		return no_memory(w, nr);
	if (done <= 0 || (uint64_t)done > nr)
		return broken(w, "memory", done < 0 ? (int)done : -EIO);
	v->size += (uint64_t)done;
	return MORE;
}

static enum progress shrink_there(struct dsm_worker *w)
{
	struct dsm_vnode *v = w->resize.vnode;
	uint64_t nr = v->size - w->resize.size;
	int64_t done = w->p.xen->calls->empty(w->p.xen, v->start + w->resize.size, nr);

	if (done <= 0 || (uint64_t)done > nr)
		return broken(w, "memory back to the host", done < 0 ? (int)done : -EIO);
	v->size -= (uint64_t)done;
	return MORE;
}

/* Pages behind what is to stay are nobody's before they are taken away. */
static enum progress close_first(struct dsm_worker *w)
{
	struct dsm_vnode *v = w->resize.vnode;

	if (v->open > w->resize.size)
		open_range(w, w->resize.size);
	return dsm_engine_range(w->engine, v->range)->left ? WAIT : DONE;
}

static enum progress advance(struct dsm_worker *w)
{
	struct dsm_resize *r = &w->resize;
	struct dsm_vnode *v = r->vnode;
	bool here = is_here(w, v);

	if (v->pool < r->pool)
		return grow_pool(w);
	if (here && v->allowed < r->size)
		return set_limit(w);
	if (v->size < r->size)
		return here ? grow_there(w) : grow_here(w);
	if (v->size > r->size) {
		if (close_first(w) == WAIT)
			return WAIT;
		return here ? shrink_there(w) : shrink_here(w);
	}
	if (v->open != r->size)
		open_range(w, r->size);
	if (v->pool > r->pool)
		return shrink_pool(w);
	if (here && v->allowed > r->size)
		return set_limit(w);
	return DONE;
}

/* ---- One request ---- */

static void finish(struct dsm_worker *w, const char *error)
{
	struct dsm_resize *r = &w->resize;
	struct dsm_vnode *v = r->vnode;
	uint64_t client = r->client;
	unsigned int i;

	ev_timer_stop(w->p.loop, &r->step);
	ev_timer_stop(w->p.loop, &r->patience);
	r->vnode = NULL;
	if (!dsm_engine_failure(w->engine)) {
		dsm_engine_evacuate(w->engine, 0, 0);
		/* Pages that are no holes and have no memory: who misses them waits. */
		if (v->open == v->size)
			dsm_engine_range_done(w->engine, v->range);
		for (i = 0; i < w->p.config->nr_hosts; i++)
			if (i != w->p.config->self)
				dsm_peers_bind(w, i);
	}
	if (error)
		dsm_worker_say(w, 4, "node: %s", error);
	else
		dsm_worker_say(w, 5, "node: vnode %u of %s has %llu KiB, pool %llu KiB", v->number,
			       dsm_worker_name(w, v->home), (unsigned long long)kib(v->size),
			       (unsigned long long)kib(v->pool));
	if (w->control)
		dsm_control_answer(w->control, client, error ? DSM_CONTROL_ERROR :
				   DSM_CONTROL_OK, error);
}

static void undo(struct dsm_worker *w)
{
	struct dsm_resize *r = &w->resize;

	dsm_worker_say(w, 4, "node: %s; back to %llu KiB", r->error,
		       (unsigned long long)kib(r->old_size));
	r->undoing = true;
	r->size = r->old_size;
	r->pool = r->old_pool;
	dsm_engine_set_frames(w->engine, (unsigned int)all_pools(w));
	ev_timer_stop(w->p.loop, &r->patience);
	ev_timer_set(&r->patience, patience_of(w), 0.);
	ev_timer_start(w->p.loop, &r->patience);
	ev_timer_start(w->p.loop, &r->step);
}

static void say_progress(struct dsm_worker *w)
{
	struct dsm_resize *r = &w->resize;
	uint64_t all, done;
	unsigned int tenths;

	if (r->undoing)
		return;
	all = r->size > r->old_size ? r->size - r->old_size : r->old_size - r->size;
	done = r->vnode->size > r->old_size ? r->vnode->size - r->old_size :
	       r->old_size - r->vnode->size;
	tenths = all ? (unsigned int)(10 * done / all) : 0;
	if (tenths == r->tenths || tenths == 10)
		return;
	r->tenths = tenths;
	dsm_worker_say(w, 6, "node: vnode %u: %llu of %llu KiB", r->vnode->number,
		       (unsigned long long)kib(done), (unsigned long long)kib(all));
}

static void failed_once(struct dsm_worker *w, const char *first)
{
	char both[2 * DSM_ENGINE_TEXT];

	if (!w->resize.undoing) {
		undo(w);
		return;
	}
	/* Twice: what is there stays, and the next request goes on from it. */
	snprintf(both, sizeof(both), "%s; and it could not be undone: %s", first,
		 w->resize.error);
	finish(w, both);
}

static void on_step(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_worker *w = timer->data;
	struct dsm_resize *r = &w->resize;
	char first[DSM_ENGINE_TEXT];
	enum progress progress;

	(void)events;
	ev_timer_stop(loop, timer);
	memcpy(first, r->error, sizeof(first));
	progress = advance(w);
	/* The VM can have failed in it, and that was the answer. */
	if (!r->vnode)
		return;
	say_progress(w);
	switch (progress) {
	case MORE:
		ev_timer_start(loop, timer);
		break;
	case WAIT:
		break;
	case DONE:
		finish(w, r->undoing ? r->error : NULL);
		break;
	case FAILED:
		failed_once(w, first);
		break;
	}
}

static void on_patience(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_worker *w = timer->data;
	struct dsm_resize *r = &w->resize;
	char first[DSM_ENGINE_TEXT];
	unsigned int left;

	(void)loop;
	(void)events;
	memcpy(first, r->error, sizeof(first));
	left = dsm_engine_range(w->engine, r->vnode->range)->left;
	if (left)
		fail(w, "in-use vnode %u: %u pages behind %llu KiB are in use still, after %.0f s",
		     r->vnode->number, left, (unsigned long long)kib(r->size), patience_of(w));
	else
		fail(w, "internal vnode %u: not done after %.0f s: %llu of %llu KiB, a pool of %llu KiB",
		     r->vnode->number, patience_of(w), (unsigned long long)kib(r->vnode->size),
		     (unsigned long long)kib(r->size), (unsigned long long)kib(r->vnode->pool));
	failed_once(w, first);
}

/* What a step waited for may have come. */
void dsm_resize_run(struct dsm_worker *w)
{
	struct dsm_resize *r = &w->resize;

	if (!r->vnode || ev_is_active(&r->step))
		return;
	if (r->vnode->size > r->size &&
	    dsm_engine_range(w->engine, r->vnode->range)->left)
		return;
	if (r->vnode->size == r->size && r->vnode->pool > r->pool &&
	    dsm_engine_set_frames(w->engine, (unsigned int)(all_pools(w) -
			(r->vnode->pool - r->pool))) > all_pools(w) - (r->vnode->pool - r->pool))
		return;
	ev_timer_start(w->p.loop, &r->step);
}

void dsm_resize_fail(struct dsm_worker *w, const char *how, const char *text)
{
	char error[DSM_ENGINE_TEXT + 32];

	if (!w->resize.vnode)
		return;
	snprintf(error, sizeof(error), "internal the VM has %s: %s", how, text);
	finish(w, error);
}

/* ---- The command ---- */

/* Return: is there a number that long, and what follows it in *words? */
static bool read_number(const char **words, uint64_t *number)
{
	const char *at = *words;
	uint64_t value = 0;

	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (value > (INT64_MAX - 9) / 10)
			return false;
		value = 10 * value + (uint64_t)(*at - '0');
	}
	*number = value;
	*words = at;
	return true;
}

static struct dsm_vnode *find_vnode(struct dsm_worker *w, uint64_t number)
{
	struct dsm_vnode *v;

	for (v = w->vnode; v < w->vnode + w->nr_vnodes; v++)
		if (v->number == number)
			return v;
	return NULL;
}

/* Return: NULL, or what is wrong with the sizes; in @text. */
static const char *wrong_sizes(const struct dsm_worker *w, const struct dsm_vnode *v,
			       uint64_t size, uint64_t pool, char text[DSM_ENGINE_TEXT])
{
	uint64_t least_pool = kib((uint64_t)DSM_FRAMES_PER_VCPU *
				  w->p.description->nr_vcpus);
	bool at_home = w->p.config->self == w->p.description->token_home;

	if (size % SIZE_UNIT || size > kib(v->most))
		snprintf(text, DSM_ENGINE_TEXT, "sizes vnode %u: %llu KiB: it has 0 to %llu KiB, a multiple of %u",
			 v->number, (unsigned long long)size,
			 (unsigned long long)kib(v->most), SIZE_UNIT);
	else if (is_here(w, v))
		return NULL;
	else if (at_home && !size != !pool)
		snprintf(text, DSM_ENGINE_TEXT, "sizes vnode %u: %llu KiB with a pool of %llu KiB: both are 0, or none",
			 v->number, (unsigned long long)size, (unsigned long long)pool);
	else if (!at_home && pool)
		snprintf(text, DSM_ENGINE_TEXT, "sizes vnode %u: a pool of %llu KiB: the one of this host is that of its description",
			 v->number, (unsigned long long)pool);
	else if (pool && (pool % DSM_FRAME_KIB || pool < least_pool ||
			  pool / DSM_FRAME_KIB + all_pools(w) > UINT32_MAX))
		snprintf(text, DSM_ENGINE_TEXT, "sizes vnode %u: a pool of %llu KiB: want %llu KiB or more, %u pages for each of %u vCPUs",
			 v->number, (unsigned long long)pool, (unsigned long long)least_pool,
			 DSM_FRAMES_PER_VCPU, w->p.description->nr_vcpus);
	else if (pool && v->size && pool != kib(v->pool))
		snprintf(text, DSM_ENGINE_TEXT, "sizes vnode %u: a pool of %llu KiB, and it is attached with %llu KiB",
			 v->number, (unsigned long long)pool,
			 (unsigned long long)kib(v->pool));
	else
		return NULL;
	return text;
}

/* Is there nothing to do? */
static bool is_so(const struct dsm_worker *w, const struct dsm_vnode *v, uint64_t size,
		  uint64_t pool)
{
	return v->size == size && v->pool == pool && v->open == size &&
	       (!is_here(w, v) || v->allowed == size);
}

/* At home: is it the last one of a host where vCPUs run? */
static bool keeps_vcpus(const struct dsm_worker *w, const struct dsm_vnode *v)
{
	const struct dsm_vnode *other;

	if (w->p.config->self != w->p.description->token_home ||
	    !dsm_engine_runs_vcpus(w->engine, v->home))
		return false;
	for (other = w->vnode; other < w->vnode + w->nr_vnodes; other++)
		if (other != v && other->home == v->home && other->size)
			return false;
	return true;
}

enum dsm_control_answer dsm_resize_command(struct dsm_worker *w, const char *words,
					   uint64_t client, char **text)
{
	struct dsm_resize *r = &w->resize;
	uint64_t number, size, pool;
	char why[DSM_ENGINE_TEXT];
	struct dsm_vnode *v;

	if (!read_number(&words, &number) || *words++ != ' ' ||
	    !read_number(&words, &size) || *words++ != ' ' ||
	    !read_number(&words, &pool) || *words)
		return dsm_worker_error(text, "internal want: node VNODE SIZE_KIB POOL_KIB, three numbers");
	if (dsm_worker_ended(w, why))
		return dsm_worker_error(text, "%s", why);
	v = find_vnode(w, number);
	if (!v)
		return dsm_worker_error(text, "sizes vnode %llu has no memory that is attached while the VM runs",
					(unsigned long long)number);
	if (r->vnode)
		return dsm_worker_error(text, "busy vnode %u is on its way to %llu KiB",
					r->vnode->number, (unsigned long long)kib(r->size));
	if (wrong_sizes(w, v, size, pool, why))
		return dsm_worker_error(text, "%s", why);
	if (!size && keeps_vcpus(w, v))
		return dsm_worker_error(text, "in-use vnode %u: vCPUs run at host %s", v->number,
					dsm_worker_name(w, v->home));
	size /= DSM_FRAME_KIB;
	pool = is_here(w, v) ? 0 : pool / DSM_FRAME_KIB;
	/* Who asks again for what has a host leave goes on to that. */
	if (!is_so(w, v, size, pool) && dsm_peers_leaving(w) != DSM_NOBODY)
		return dsm_peers_busy(w, text);
	/* The guest has emptied it, or it has been called off. */
	dsm_engine_leaving(w->engine, 0, 0);
	if (is_so(w, v, size, pool))
		return DSM_CONTROL_OK;
	*r = (struct dsm_resize){
		.vnode = v, .client = client, .size = size, .pool = pool,
		.old_size = v->size, .old_pool = v->pool,
		.step = r->step, .patience = r->patience,
	};
	if ((is_here(w, v) && r->size > v->size && !has_memory(w, r->size - v->size)) ||
	    (r->pool > v->pool && !has_memory(w, r->pool - v->pool))) {
		no_memory(w, is_here(w, v) ? r->size - v->size : r->pool - v->pool);
		r->vnode = NULL;
		return dsm_worker_error(text, "%s", r->error);
	}
	if (!is_here(w, v) && r->size > v->size && w->peer[v->home].link != DSM_LINK_UP) {
		r->vnode = NULL;
		return dsm_worker_error(text, "unreachable vnode %u: host %s is not connected",
					v->number, dsm_worker_name(w, v->home));
	}
	/* Misses behind the end wait from now on. */
	open_range(w, least(v->open, r->size));
	ev_timer_set(&r->patience, patience_of(w), 0.);
	ev_timer_start(w->p.loop, &r->patience);
	ev_timer_start(w->p.loop, &r->step);
	return DSM_CONTROL_LATER;
}

/* The range of a vnode of another host, also of one that was there from the start. */
static int find_range(const struct dsm_worker *w, uint64_t number)
{
	const struct dsm_description *d = w->p.description;
	int found = -1;
	unsigned int i;

	for (i = 0; i < d->nr_ranges; i++) {
		if (d->vnode[i] != number || d->range[i].home == w->p.config->self)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

enum dsm_control_answer dsm_resize_leaving(struct dsm_worker *w, const char *words,
					   char **text)
{
	const struct dsm_range *range = NULL;
	uint64_t number, size, open;
	char why[DSM_ENGINE_TEXT];
	int i;

	if (!read_number(&words, &number) || *words++ != ' ' ||
	    !read_number(&words, &size) || *words)
		return dsm_worker_error(text, "internal want: leaving VNODE SIZE_KIB, two numbers");
	if (dsm_worker_ended(w, why))
		return dsm_worker_error(text, "%s", why);
	i = find_range(w, number);
	if (i >= 0)
		range = &w->p.description->range[i];
	if (!range || size > kib(range->end - range->start))
		return dsm_worker_error(text, "sizes vnode %llu: %llu KiB: no vnode of another host in one range, or it has less",
					(unsigned long long)number, (unsigned long long)size);
	open = dsm_engine_range(w->engine, (unsigned int)i)->open;
	size = least(size / DSM_FRAME_KIB, open);
	dsm_engine_leaving(w->engine, range->start + size, range->start + open);
	dsm_worker_say(w, 6, "node: of vnode %llu %llu KiB are about to leave",
		       (unsigned long long)number, (unsigned long long)kib(open - size));
	return DSM_CONTROL_OK;
}

/* ---- state ---- */

static void on_second(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_worker *w = timer->data;
	struct dsm_vnode *v;

	(void)loop;
	(void)events;
	for (v = w->vnode; v < w->vnode + w->nr_vnodes; v++) {
		uint64_t faults = dsm_engine_range(w->engine, v->range)->faults;

		v->faults_per_second = faults - v->faults;
		v->faults = faults;
	}
}

static const char *link_of(const struct dsm_worker *w, const struct dsm_vnode *v)
{
	unsigned int host = is_here(w, v) ? w->p.description->token_home : v->home;
	enum dsm_link link = w->peer[host].link;

	/* Nobody is connected with himself. */
	if (host == w->p.config->self)
		link = DSM_LINK_DOWN;
	/* The link is the vnode's: one that is not attached has none. */
	if (link == DSM_LINK_UP && !v->size && w->resize.vnode != v)
		link = DSM_LINK_DOWN;
	return dsm_link_name(link == DSM_LINK_UP && v->open < v->size ?
			     DSM_LINK_OPENING : link);
}

static bool add_vnode(const struct dsm_worker *w, const struct dsm_vnode *v,
		      struct json_object *list)
{
	const struct dsm_engine_range *range = dsm_engine_range(w->engine, v->range);
	/* At home what is not elsewhere is here in M, at others it is moved. */
	uint64_t away = is_here(w, v) ? range->moved : range->moved + range->shared;
	uint64_t rest = range->open > away ? range->open - away : 0;
	uint64_t modified = range->moved, shared = range->shared;
	struct json_object *o = json_object_new_object();

	if (!o || json_object_array_add(list, o))
		return false;
	if (is_here(w, v))
		modified = rest > shared ? rest - shared : 0;
	return !json_object_object_add(o, "vnode", json_object_new_uint64(v->number)) &&
	       !json_object_object_add(o, "link", json_object_new_string(link_of(w, v))) &&
	       !json_object_object_add(o, "size_kib", json_object_new_uint64(kib(v->size))) &&
	       !json_object_object_add(o, "pages_modified", json_object_new_uint64(modified)) &&
	       !json_object_object_add(o, "pages_shared", json_object_new_uint64(shared)) &&
	       !json_object_object_add(o, "pages_home", json_object_new_uint64(rest)) &&
	       !json_object_object_add(o, "faults_per_second",
				       json_object_new_uint64(v->faults_per_second)) &&
	       !json_object_object_add(o, "median_ns", json_object_new_uint64(
				       dsm_histogram_quantile(&range->fault, 500))) &&
	       !json_object_object_add(o, "p99_ns", json_object_new_uint64(
				       dsm_histogram_quantile(&range->fault, 990)));
}

bool dsm_resize_state(struct dsm_worker *w, char **text)
{
	struct json_object *all = json_object_new_object();
	struct json_object *list = json_object_new_array();
	const struct dsm_vnode *v;
	bool good;

	good = all && list && !json_object_object_add(all, "vnodes", list);
	if (!good)
		json_object_put(list);
	good = good && dsm_place_state(w, all) && dsm_pause_state(w, all);
	for (v = w->vnode; good && v < w->vnode + w->nr_vnodes; v++)
		good = add_vnode(w, v, list);
	good = good && asprintf(text, "%s\n", json_object_to_json_string_ext(all,
				JSON_C_TO_STRING_PLAIN)) >= 0;
	if (!good)
		*text = strdup("internal no memory");
	json_object_put(all);
	return good;
}

/* ---- Begin and end ---- */

void dsm_resize_init(struct dsm_worker *w)
{
	const struct dsm_description *d = w->p.description;
	unsigned int i;

	for (i = 0; i < d->nr_ranges; i++)
		if (d->detached[i])
			w->vnode[w->nr_vnodes++] = (struct dsm_vnode){
				.number = d->vnode[i], .range = i, .home = d->range[i].home,
				.start = d->range[i].start,
				.most = d->range[i].end - d->range[i].start,
			};
	ev_timer_init(&w->resize.step, on_step, 0., 0.);
	w->resize.step.data = w;
	ev_timer_init(&w->resize.patience, on_patience, 0., 0.);
	w->resize.patience.data = w;
	ev_timer_init(&w->second, on_second, 1., 1.);
	w->second.data = w;
	if (w->nr_vnodes)
		ev_timer_start(w->p.loop, &w->second);
}

void dsm_resize_end(struct dsm_worker *w)
{
	ev_timer_stop(w->p.loop, &w->resize.step);
	ev_timer_stop(w->p.loop, &w->resize.patience);
	ev_timer_stop(w->p.loop, &w->second);
}
