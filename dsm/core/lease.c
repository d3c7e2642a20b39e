// SPDX-License-Identifier: GPL-2.0
/*
 * This host's own request, which is answered, and the lease that begins with
 * the answer.  At home the directory ends them, elsewhere the holder.
 */
#include "internal.h"

bool lease_holds(const struct step *s, unsigned int recall_flags)
{
	if (s->page->request)
		return false;
	if (s->page->lease == DSM_LEASE_TOKEN)
		return true;
	return s->page->lease == DSM_LEASE_ACTIVE &&
	       !(recall_flags & DSM_F_TOKEN);
}

void lease_begin(struct step *s, unsigned int request_flags)
{
	if (!s->vm->leases || !s->page->demand)
		return;
	s->page->lease = request_flags & DSM_F_TOKEN ? DSM_LEASE_TOKEN :
						       DSM_LEASE_ACTIVE;
}

void lease_broken(struct step *s)
{
	if (s->page->lease != DSM_LEASE_NONE)
		s->page->lost = true;
	s->page->lease = DSM_LEASE_NONE;
}

void answered(struct step *s)
{
	s->page->request = 0;
	s->page->request_flags = 0;
	s->page->demand = false;
	s->page->stopped = false;
	s->page->merged = false;
}
