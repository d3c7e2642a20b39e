// SPDX-License-Identifier: GPL-2.0
/*
 * What all parts ask about an engine, below all of them: where vCPUs run, whether
 * anything is under way, who has the token.  Nothing is changed here.
 *
 * Context: the engine's thread.
 */
#include <stdio.h>

#include "engine_internal.h"

/* ---- Where vCPUs run ---- */

bool engine_runs_at(const struct dsm_engine *e, uint32_t vcpu, unsigned int host)
{
	return vcpu < e->p.nr_vcpus && e->vcpus.where[vcpu] == host;
}

unsigned int engine_host_of_port(const struct dsm_engine *e, uint32_t port)
{
	unsigned int slice = dsm_port_slice(port, e->vm.nr_hosts);

	return slice < e->vm.nr_hosts ? dsm_slice_number(e->vm.token_home, slice) :
					DSM_NOBODY;
}

bool engine_runs_vcpus(const struct dsm_engine *e, unsigned int host)
{
	return e->vcpus.carried && e->vcpus.at[host];
}

const char *engine_vcpus_of(const struct dsm_engine *e, unsigned int host,
			    char *text, size_t size)
{
	unsigned int first, last;
	size_t at = 0;

	text[0] = 0;
	if (!engine_runs_vcpus(e, host))
		return text;
	for (first = 0; first < e->p.nr_vcpus; first = last + 1) {
		last = first;
		if (e->vcpus.where[first] != host)
			continue;
		while (engine_runs_at(e, last + 1, host))
			last++;
		if (at < size)
			at += (size_t)snprintf(text + at, size - at, last > first ? "%s%u-%u" : "%s%u",
					       at ? ", " : "", first, last);
	}
	return text;
}

/* ---- What goes on ---- */

unsigned int engine_accesses_at(const struct dsm_engine *e, unsigned int host)
{
	const struct carried *c = e->vcpus.carried;
	unsigned int i, nr = 0;

	for (i = 0; c && i < e->p.nr_vcpus; i++)
		nr += c[i].accesses && c[i].access.host == host;
	return nr;
}

bool engine_vcpus_are_quiet(const struct dsm_engine *e)
{
	unsigned int i;

	if (e->vcpus.nr_letters || e->vcpus.nr_doing)
		return false;
	for (i = 0; e->vcpus.carried && i < e->p.nr_vcpus; i++)
		if (e->vcpus.carried[i].asks || e->vcpus.carried[i].accesses)
			return false;
	return true;
}

bool dsm_engine_is_quiet(const struct dsm_engine *e)
{
	unsigned int host, open = e->requests + e->writebacks + e->nr_waiting;

	for (host = 0; host < e->vm.nr_hosts; host++)
		open += e->peer_requests[host];
	return !open && !e->batch[e->current].nr_slots &&
	       !e->batch[e->current].nr_ops && engine_vcpus_are_quiet(e);
}

bool engine_has_token(const struct dsm_engine *e, const struct vcpu *v)
{
	return e->token_vcpu == v && e->token_due != DSM_NEVER;
}

bool engine_is_leaving(const struct dsm_engine *e, uint64_t t)
{
	return e->leaving.first != e->leaving.end && t < e->leaving.until;
}

unsigned int engine_prefetch_room(const struct dsm_engine *e)
{
	return e->room < e->p.prefetch ? e->room : e->p.prefetch;
}
