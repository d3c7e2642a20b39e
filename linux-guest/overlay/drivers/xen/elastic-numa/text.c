// SPDX-License-Identifier: GPL-2.0
/*
 * Texts for the toolstack, see text.h.
 *
 * Pure: no locks, no I/O.
 */
#include <linux/kernel.h>
#include <linux/sprintf.h>
#include <linux/types.h>

#include "text.h"

void elastic_text_clean(char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

void elastic_residue_text(const struct elastic_residue *residue,
			  char text[ELASTIC_TEXT_LEN])
{
	const struct {
		const char *what;
		unsigned long pages;
	} rest[] = {
		{ "locked", residue->locked },
		{ "under writeback", residue->writeback },
		{ "unmovable", residue->unmovable },
		{ "reserved huge", residue->reserved },
		{ "poisoned", residue->poisoned },
		{ "busy", residue->busy },
	};
	unsigned int i;
	int len = 0;

#define ADD(...)							\
	(len += scnprintf(text + len, ELASTIC_TEXT_LEN - len, __VA_ARGS__))
	text[0] = '\0';
	if (residue->pinned)
		ADD("pinned: %lu pages", residue->pinned);
	if (residue->pinned && residue->pid)
		ADD(", pid %d (%.*s)", residue->pid, ELASTIC_COMM_LEN - 1,
		    residue->comm);
	for (i = 0; i < ARRAY_SIZE(rest); i++) {
		if (rest[i].pages)
			ADD("%s%s: %lu pages", len ? "; " : "", rest[i].what,
			    rest[i].pages);
	}
	if (!len)
		ADD("nothing in use was found; try again");
#undef ADD
	elastic_text_clean(text);
}
