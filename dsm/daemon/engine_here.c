// SPDX-License-Identifier: GPL-2.0
/*
 * What is done here for vCPUs, whoever wants it: calls of those that run elsewhere,
 * events to those that run here, and the table of where they run.
 *
 * Context: the engine's thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine_internal.h"

void engine_check_done(struct dsm_engine *e, const struct dsm_vcpu_msg *m, int rc)
{
	if (rc)
		engine_fail(e, "Xen does not do %s of vCPU %" PRIu32 ", 0x%" PRIx64 ": %s",
			    dsm_type_name(m->type), m->vcpu, m->number, strerror(-rc));
}

void engine_breach(struct dsm_engine *e, unsigned int from, const struct dsm_vcpu_msg *m,
		   const char *what)
{
	char why[DSM_ENGINE_TEXT / 2];

	snprintf(why, sizeof(why), "it breaks the protocol: %s of vCPU %" PRIu32 ", 0x%" PRIx64
		 ": %s", dsm_type_name(m->type), m->vcpu, m->number, what);
	engine_lose(e, from, why);
}

/*
 * Where the guest has its shared_info, if that is memory of the home; else 0.  It may
 * put it anywhere, and the other host would call it a breach of ours.
 */
uint64_t engine_own_shared_info(struct dsm_engine *e)
{
	uint64_t gfn;

	if (e->vm.self != e->vm.token_home)
		return 0;
	gfn = e->p.xen->calls->shared_info_at(e->p.xen);
	return dsm_vm_home(&e->vm, gfn) == e->vm.self ? gfn : 0;
}

/* Return: 0; -EAGAIN; what Xen says.  The guest has it once, and a peer may say anything. */
static int map_shared_info(struct dsm_engine *e, uint64_t gfn)
{
	unsigned int home = dsm_vm_home(&e->vm, gfn);
	int rc;

	if (!gfn || e->vcpus.shared)
		return 0;
	if (home == DSM_NOBODY || home == e->vm.self)
		return -EINVAL;
	rc = e->p.xen->calls->shared_info(e->p.xen, gfn);
	e->vcpus.shared = !rc || rc == -EEXIST;
	return rc == -EBUSY ? -EAGAIN : rc == -EEXIST ? 0 : rc;
}

static bool needs_frame(const struct dsm_vcpu_msg *call)
{
	return call->op == XEN_VCPU_OP && call->cmd == XEN_REGISTER_VCPU_INFO;
}

bool engine_call_needs(const struct dsm_engine *e, uint64_t gfn)
{
	const struct stop *s = &e->vcpus.stop;
	const struct carried *c;

	/* A PLACE: its vcpu_info. */
	if (s->placed && s->doing.word[1] / DSM_PAGE_BYTES == gfn)
		return true;
	if (!e->vcpus.nr_doing)
		return false;
	for (c = e->vcpus.carried; c < e->vcpus.carried + e->p.nr_vcpus; c++)
		if (c->is_doing && needs_frame(&c->doing) && c->doing.word[0] == gfn)
			return true;
	return false;
}

/*
 * A tool may have asked for the page that a call waits for, and Xen does not tell one from the
 * other.  What the home says now may be older than the call, which must not find what is not so.
 */
static void join_tool(struct dsm_engine *e, uint64_t gfn)
{
	struct dsm_event event = { .type = DSM_EV_MISS, .write = true };
	struct dsm_entry *entry = dsm_table_find(&e->table, gfn);
	int rc;

	/* What came in this turn, an INV say, may have an operation due. */
	if (entry && entry->page.operation) {
		engine_flush(e);
		if (e->has_failed)
			return;
		entry = dsm_table_find(&e->table, gfn);
	}
	if (!entry || !(entry->page.request || entry->page.wanted) || entry->page.stopped ||
	    entry->page.operation || entry->page.state == DSM_MODIFIED)
		return;
	rc = engine_step(e, entry, &event, NULL);
	if (rc)
		engine_fail(e, "a miss of gfn 0x%" PRIx64 " by a call: %s", gfn,
			    dsm_error_name((unsigned int)-rc));
}

int engine_do_call(struct dsm_engine *e, struct dsm_vcpu_msg *call)
{
	int rc = map_shared_info(e, call->word[3]);

	call->word[3] = 0;
	if (rc)
		return rc;
	rc = e->p.xen->calls->call(e->p.xen, call);
	if (rc == -EAGAIN && needs_frame(call))
		join_tool(e, call->word[0]);
	return rc;
}

void engine_send_here(struct dsm_engine *e, const struct dsm_vcpu_msg *m)
{
	engine_idle_sends(e);
	engine_check_done(e, m, e->p.xen->calls->send_event(e->p.xen, m));
}

void engine_set_where(struct dsm_engine *e, unsigned int vcpu, unsigned int host)
{
	uint8_t *where = &e->vcpus.where[vcpu];

	if (*where == host)
		return;
	e->vcpus.at[*where]--;
	if (!e->vcpus.at[host]++)
		engine_idle_forget(e, host);
	*where = (uint8_t)host;
}
