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

int engine_do_call(struct dsm_engine *e, struct dsm_vcpu_msg *call)
{
	int rc = map_shared_info(e, call->word[3]);

	call->word[3] = 0;
	return rc ? rc : e->p.xen->calls->call(e->p.xen, call);
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
