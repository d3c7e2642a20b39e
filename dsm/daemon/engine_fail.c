// SPDX-License-Identifier: GPL-2.0
/*
 * How a VM ends, and what an operator is told.  Any part may call it.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine_internal.h"

#define WARN_NS		(1000 * MS)	/* between two warnings of one kind */
#define FIRSTS		4u		/* of the pages that are lost, that are named */

void engine_end(struct dsm_engine *e, const char *text)
{
	e->has_failed = true;
	snprintf(e->failure, sizeof(e->failure), "%s", text);
	e->above->ended(e);
	e->p.calls->over(e->p.context, e->failure);
}

__attribute__((format(printf, 2, 3)))
void engine_fail(struct dsm_engine *e, const char *format, ...)
{
	va_list words;

	if (e->has_failed)
		return;
	e->has_failed = true;
	va_start(words, format);
	vsnprintf(e->failure, sizeof(e->failure), format, words);
	va_end(words);
	/* Whatever Xen refuses of a domain that is being destroyed. */
	if (e->p.xen->calls->has_ended(e->p.xen)) {
		engine_end(e, "its domain has ended");
		return;
	}
	if (e->p.xen->calls->crash(e->p.xen))
		e->p.calls->warn(e->p.context,
				 "Xen did not crash the domain; without keepalive it stops");
	e->above->ended(e);
	e->p.calls->failed(e->p.context, e->failure);
}

__attribute__((format(printf, 3, 4)))
void engine_warn(struct dsm_engine *e, enum warning kind,
		 const char *format, ...)
{
	char text[DSM_ENGINE_TEXT];
	uint64_t t = now(e);
	va_list words;

	if (e->warned[kind] && t - e->warned[kind] < WARN_NS)
		return;
	e->warned[kind] = t;
	va_start(words, format);
	vsnprintf(text, sizeof(text), format, words);
	va_end(words);
	e->p.calls->warn(e->p.context, text);
}

/* The lowest gfns of some. */
struct firsts {
	unsigned int nr;
	uint64_t gfn[FIRSTS];
};

static void note_first(struct firsts *f, uint64_t gfn)
{
	unsigned int i;

	for (i = f->nr; i && f->gfn[i - 1] > gfn; i--)
		if (i < FIRSTS)
			f->gfn[i] = f->gfn[i - 1];
	if (i == FIRSTS)
		return;
	f->gfn[i] = gfn;
	f->nr += f->nr < FIRSTS;
}

/* What the VM has lost with a host: CPUs that ran there, and what was only there of this host's. */
static void describe(const struct dsm_engine *e, unsigned int host, char *text, size_t size)
{
	const struct dsm_entry *entry;
	uint64_t modified = 0, kept = 0;
	char vcpus[DSM_ENGINE_TEXT / 4], gfns[DSM_ENGINE_TEXT / 4] = "";
	struct firsts firsts = { 0 };
	unsigned int i;
	int n = 0;

	for (entry = dsm_table_next(&e->table, NULL); entry;
	     entry = dsm_table_next(&e->table, (struct dsm_entry *)entry)) {
		kept += entry->page.home == host && entry->page.state != DSM_INVALID;
		if (!at_home(e, entry) || !dsm_page_only_at(&entry->page, host))
			continue;
		modified++;
		note_first(&firsts, entry->page.gfn);
	}
	for (i = 0; i < firsts.nr; i++)
		n += snprintf(gfns + n, sizeof(gfns) - (size_t)n, "%s0x%" PRIx64, i ? ", " : "", firsts.gfn[i]);
	engine_vcpus_of(e, host, vcpus, sizeof(vcpus));
	snprintf(text, size, "%s%s%s%" PRIu64 " pages of %s were modified there; of its own %"
		 PRIu64 " pages %" PRIu64 " are here%s%s%s%s",
		 vcpus[0] ? "vCPUs " : "", vcpus, vcpus[0] ? " ran there, " : "", modified,
		 name_of(e, e->vm.self), engine_open_at(e, host), kept,
		 modified ? "; of " : "", modified ? name_of(e, e->vm.self) : "",
		 modified ? "'s the first are gfns " : "", gfns);
}

void dsm_engine_peer_lost(struct dsm_engine *e, unsigned int host, unsigned int lost)
{
	if (host < e->vm.nr_hosts && lost < e->vm.nr_hosts && lost != host && lost != e->vm.self)
		e->says_lost[host] = (uint8_t)(lost + 1);
}

void engine_lose(struct dsm_engine *e, unsigned int host, const char *why)
{
	char of_it[DSM_ENGINE_TEXT], of_another[DSM_ENGINE_TEXT];
	unsigned int another = e->says_lost[host];

	if (!e->has_failed)
		e->lost = (uint8_t)host;
	describe(e, host, of_it, sizeof(of_it));
	if (!another) {
		engine_fail(e, "host %s is lost (%s): %s", name_of(e, host), why, of_it);
		return;
	}
	another--;
	describe(e, another, of_another, sizeof(of_another));
	engine_fail(e, "host %s is lost (%s): %s; host %s: %s", name_of(e, host), why, of_it,
		    name_of(e, another), of_another);
}
