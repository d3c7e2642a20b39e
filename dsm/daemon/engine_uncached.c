// SPDX-License-Identifier: GPL-2.0
/*
 * Accesses to pages that can't leave their home.  Decision 0126.
 *
 * Something at the home refers to the page for as long as anybody can tell (it is no
 * plain memory, and private to the directory), or has done so for pin_ns.  What a vCPU
 * elsewhere does with it Xen's ring has as one access to memory that waits (ACCESS); it
 * goes to the home as a letter, and the home's Xen makes it at once; the answer
 * (ACCESSED) goes back, and to who waits.  So there is one of each for a vCPU at most,
 * and nothing waits in between but for a credit.
 *
 * What the home's Xen needs is that the page is homed there and in state M: then the
 * access is what a vCPU of the home could have done.  Of a page that has left, may
 * leave, or is a hole, it is refused with AGAIN: who waits asks for the page as for any
 * other then.
 *
 * When nobody but the guest has referred to it for pin_ns, at each access in that
 * time, the page is an ordinary one again.  Who has it as uncached hears of that with
 * its next access.  To the directory a page in use is an ordinary page all the time:
 * who asks for it, since it is needed for what is no access, has it when it is let go.
 *
 * Untrusted: what a peer says.  Of an ACCESS the vCPU, which runs there and waits for
 * no other one, the page, and by dsm_vcpu_get() the shape; of an ACCESSED that it was
 * asked for, and, by Xen, its width.
 *
 * Context: the engine's thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "engine_internal.h"

static uint64_t gfn_of(const struct dsm_vcpu_msg *m)
{
	return m->word[0] / DSM_PAGE_BYTES;
}

/* ---- Where it is wanted ---- */

bool engine_access_said(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	unsigned int home = dsm_vm_home(&e->vm, gfn_of(m));
	struct carried *c;

	if (!engine_runs_at(e, m->vcpu, e->vm.self) || home == DSM_NOBODY || home == e->vm.self)
		return false;
	c = &e->vcpus.carried[m->vcpu];
	if (c->accesses)
		return false;
	c->accesses = true;
	c->access_since = now(e);
	c->access.msg = *m;
	engine_post(e, &c->access, home);
	e->counts.accesses++;
	engine_count(e, gfn_of(m), DSM_PROFILE_ACCESS, home);
	return true;
}

int engine_accessed_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	struct carried *c = &e->vcpus.carried[m->vcpu];
	struct dsm_entry *entry;
	int rc;

	if (!engine_runs_at(e, m->vcpu, e->vm.self) || !c->accesses || c->access.queued ||
	    c->access.host != from || c->access.msg.number != m->number)
		return DSM_E_NOT_ASKED;
	c->accesses = false;
	TAILQ_REMOVE(&e->vcpus.away, c, away);
	dsm_histogram_add(&e->counts.access, now(e) - c->access_since);
	if (m->flags & DSM_ACCESS_AGAIN) {
		e->counts.accesses_again++;
		entry = dsm_table_find(&e->table, gfn_of(&c->access.msg));
		/* Before who waits looks again. */
		if (entry)
			engine_cache(e, entry);
		if (e->has_failed)
			return 0;
	}
	rc = e->p.xen->calls->accessed(e->p.xen, m);
	/* All else of it has been looked at. */
	if (rc == -EINVAL)
		return DSM_E_ACCESS;
	engine_check_done(e, m, rc);
	return 0;
}

/* ---- Where the page is ---- */

/* The entry may be gone after it. */
static void make_public(struct dsm_engine *e, struct dsm_entry *entry)
{
	uint64_t gfn = entry->page.gfn;
	int rc = engine_simple_step(e, gfn, DSM_EV_PUBLIC);

	if (rc)
		engine_fail(e, "gfn 0x%" PRIx64 " can't be an ordinary page again: %s", gfn,
			    dsm_error_name((unsigned int)-rc));
}

/* The entry may be gone after it. */
static void make_ordinary(struct dsm_engine *e, struct dsm_entry *entry)
{
	entry->special = false;
	entry->used_here = false;
	entry->free_since = 0;
	if (entry->page.dir.mode != DSM_MODE_PRIVATE)
		engine_settle(e, entry);
	else
		make_public(e, entry);
}

/* Never 0. */
static uint32_t in_ms(struct dsm_engine *e)
{
	return (uint32_t)(now(e) / MS) + 1;
}

/* It was found in use, or not, just now. */
static void look_at_use(struct dsm_engine *e, struct dsm_entry *entry, bool in_use)
{
	uint32_t ms = in_ms(e);

	if (in_use)
		entry->free_since = 0;
	else if (!entry->free_since)
		entry->free_since = ms;
	else if (ms - entry->free_since >= e->p.pin_ns / MS)
		make_ordinary(e, entry);
}

/* Return: it is made.  @old: what was there. */
static bool make(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m,
		 uint64_t *old)
{
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn_of(m));
	struct dsm_vcpu_msg access = *m;
	bool in_use = false;
	int rc;

	if (!entry || !(entry->used_here || entry->page.dir.mode == DSM_MODE_PRIVATE))
		return false;
	rc = e->p.xen->calls->access(e->p.xen, &access, &in_use);
	switch (rc) {
	case 0:
		/* A WRITE sees nothing. */
		*old = (m->flags & DSM_ACCESS_WHAT) == DSM_ACCESS_WRITE ? 0 : access.word[1];
		look_at_use(e, entry, in_use);
		return true;
	case -ENOENT:
		make_ordinary(e, entry);
		return false;
	case -EBUSY:
		return false;
	case -EPERM:
	case -ENODATA:	/* another type of page */
		engine_fail(e, "gfn 0x%" PRIx64 " is needed by vCPU %" PRIu32 " at host %s, and it is no memory that vCPUs of several hosts can have in common",
			    gfn_of(m), m->vcpu, name_of(e, from));
		return false;
	default:
		engine_check_done(e, m, rc);
		return false;
	}
}

int engine_access_got(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m)
{
	struct dsm_vcpu_msg answer = {
		.type = DSM_VCPU_ACCESSED, .vcpu = m->vcpu, .number = m->number,
	};
	struct carried *c = &e->vcpus.carried[m->vcpu];

	if (!engine_runs_at(e, m->vcpu, from))
		return DSM_E_VCPU;
	if (dsm_vm_home(&e->vm, gfn_of(m)) != e->vm.self)
		return DSM_E_HOME;
	if (c->accessed.queued)
		return DSM_E_SECOND;
	if (make(e, from, m, &answer.word[0]))
		e->counts.accesses_done++;
	else
		answer.flags = DSM_ACCESS_AGAIN;
	if (e->has_failed)
		return 0;
	c->accessed.msg = answer;
	engine_post(e, &c->accessed, from);
	return 0;
}

/*
 * It has to be ours alone.  What is in use and shared has copies elsewhere, which are
 * called back as if somebody here wrote to it; who asked does so again then.
 */
bool engine_keep_at_home(struct dsm_engine *e, struct dsm_entry *entry, bool may_ask)
{
	struct dsm_event event = { .type = DSM_EV_MISS, .write = true };
	unsigned int asker = entry->page.dir.now.host;
	uint64_t gfn = entry->page.gfn;
	bool was_used = entry->used_here;

	if (asker >= DSM_MAX_HOSTS || !(e->vm.used_at_home & dsm_bit(asker)) ||
	    !engine_runs_vcpus(e, asker) || engine_is_changing(e, gfn))
		return false;
	if (entry->page.state == DSM_SHARED && !may_ask)
		return false;
	if (entry->page.state != DSM_SHARED) {
		entry->used_here = true;
		entry->free_since = 0;
		if (!engine_simple_step(e, gfn, DSM_EV_STAYS))
			return true;
		/* Who asks to free it, say, changes nothing for who uses it. */
		entry->used_here = was_used;
		return false;
	}
	engine_simple_step(e, gfn, DSM_EV_PIN_TIMEOUT);
	entry = e->has_failed ? NULL : engine_entry(e, gfn);
	if (entry)
		engine_step(e, entry, &event, NULL);
	return true;
}

bool engine_make_private(struct dsm_engine *e, uint64_t gfn)
{
	return !engine_simple_step(e, gfn, DSM_EV_PRIVATE);
}

void engine_look_at_private(struct dsm_engine *e, uint64_t gfn)
{
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn);

	if (!entry || entry->page.dir.mode != DSM_MODE_PRIVATE || entry->page.dir.phase != DSM_IDLE)
		return;
	/* What others are about to do with it is done here until it has left: who asks hinders nobody. */
	entry->special = false;
	entry->used_here = e->vm.used_at_home != 0;
	make_public(e, entry);
}

/* ---- Whether ---- */

/* Who has not heard where vCPUs run, a host that only lends memory, can't check an access. */
void engine_settle_class_u(struct dsm_engine *e)
{
	e->vm.used_at_home = e->p.class_u && e->vcpus.carried ? e->take_access & e->vcpus.joined : 0;
}

void dsm_engine_takes_access(struct dsm_engine *e, unsigned int host, bool takes)
{
	if (takes)
		e->take_access |= dsm_bit(host);
	else
		e->take_access &= (uint16_t)~dsm_bit(host);
	engine_settle_class_u(e);
}

void dsm_engine_set_class_u(struct dsm_engine *e, bool on)
{
	e->p.class_u = on;
	engine_settle_class_u(e);
}

bool dsm_engine_has_class_u(const struct dsm_engine *e)
{
	return e->p.class_u;
}
