// SPDX-License-Identifier: GPL-2.0
/*
 * The node state machine: one table of states and events.
 *
 * Pure: no locks, no I/O, no clock.  Each cell is either the next state or
 * the name of the mistake that the event would be, so that a log line says
 * what went wrong and not only that something did.
 */
#include <linux/errno.h>
#include <linux/types.h>

#include "state.h"

struct transition {
	int next;		/* a state; meaningless when @mistake is set */
	const char *mistake;
};

#define TO(state)	{ .next = ELASTIC_##state }
#define ILLEGAL(text)	{ .next = -1, .mistake = text }

static const struct transition table[ELASTIC_NR_STATES][ELASTIC_NR_EVENTS] = {
	[ELASTIC_OFFLINE] = {
		[ELASTIC_EV_GROW]   = TO(GROWING),
		[ELASTIC_EV_SHRINK] = ILLEGAL("shrinks a node that is absent"),
		[ELASTIC_EV_DRAIN]  = ILLEGAL("drains a node that is absent"),
		[ELASTIC_EV_DONE]   = ILLEGAL("finishes what never began"),
		[ELASTIC_EV_UNDONE] = ILLEGAL("undoes what never began"),
		[ELASTIC_EV_EMPTY]  = ILLEGAL("empties a node that is absent"),
		[ELASTIC_EV_STUCK]  = ILLEGAL("memory stuck on an absent node"),
	},
	[ELASTIC_GROWING] = {
		[ELASTIC_EV_GROW]   = ILLEGAL("grows a node that is growing"),
		[ELASTIC_EV_SHRINK] = ILLEGAL("shrinks a node that is growing"),
		[ELASTIC_EV_DRAIN]  = TO(DRAINING),
		[ELASTIC_EV_DONE]   = TO(ONLINE),
		[ELASTIC_EV_UNDONE] = TO(ONLINE),
		[ELASTIC_EV_EMPTY]  = ILLEGAL("empties a node without a drain"),
		[ELASTIC_EV_STUCK]  = ILLEGAL("memory stuck without a drain"),
	},
	[ELASTIC_ONLINE] = {
		[ELASTIC_EV_GROW]   = TO(GROWING),
		[ELASTIC_EV_SHRINK] = TO(ONLINE),
		[ELASTIC_EV_DRAIN]  = TO(DRAINING),
		[ELASTIC_EV_DONE]   = TO(ONLINE),
		[ELASTIC_EV_UNDONE] = ILLEGAL("undoes what was finished"),
		[ELASTIC_EV_EMPTY]  = ILLEGAL("empties a node in use"),
		[ELASTIC_EV_STUCK]  = ILLEGAL("memory stuck on a node in use"),
	},
	[ELASTIC_DRAINING] = {
		[ELASTIC_EV_GROW]   = TO(GROWING),
		[ELASTIC_EV_SHRINK] = ILLEGAL("shrinks a node that is leaving"),
		[ELASTIC_EV_DRAIN]  = ILLEGAL("drains a node that is leaving"),
		[ELASTIC_EV_DONE]   = ILLEGAL("leaves without being empty"),
		[ELASTIC_EV_UNDONE] = ILLEGAL("undoes a drain without growing"),
		[ELASTIC_EV_EMPTY]  = TO(OFFLINE),
		[ELASTIC_EV_STUCK]  = TO(RESIDUAL),
	},
	[ELASTIC_RESIDUAL] = {
		[ELASTIC_EV_GROW]   = TO(GROWING),
		[ELASTIC_EV_SHRINK] = ILLEGAL("shrinks a residue"),
		[ELASTIC_EV_DRAIN]  = TO(DRAINING),
		[ELASTIC_EV_DONE]   = ILLEGAL("a residue is never finished"),
		[ELASTIC_EV_UNDONE] = ILLEGAL("undoes a residue"),
		[ELASTIC_EV_EMPTY]  = ILLEGAL("empties a residue without a drain"),
		[ELASTIC_EV_STUCK]  = ILLEGAL("a residue is stuck already"),
	},
};

int elastic_state_next(int state, int event, const char **why)
{
	const struct transition *t;

	if (state < 0 || state >= ELASTIC_NR_STATES ||
	    event < 0 || event >= ELASTIC_NR_EVENTS) {
		if (why)
			*why = "no such state or event";
		return -EINVAL;
	}

	t = &table[state][event];
	if (t->mistake) {
		if (why)
			*why = t->mistake;
		return -EINVAL;
	}
	return t->next;
}

const char *elastic_state_name(int state)
{
	static const char * const names[ELASTIC_NR_STATES] = {
		[ELASTIC_OFFLINE]  = "offline",
		[ELASTIC_GROWING]  = "growing",
		[ELASTIC_ONLINE]   = "online",
		[ELASTIC_DRAINING] = "draining",
		[ELASTIC_RESIDUAL] = "residual",
	};

	if (state < 0 || state >= ELASTIC_NR_STATES)
		return "?";
	return names[state];
}

const char *elastic_event_name(int event)
{
	static const char * const names[ELASTIC_NR_EVENTS] = {
		[ELASTIC_EV_GROW]   = "grow",
		[ELASTIC_EV_SHRINK] = "shrink",
		[ELASTIC_EV_DRAIN]  = "drain",
		[ELASTIC_EV_DONE]   = "done",
		[ELASTIC_EV_UNDONE] = "undone",
		[ELASTIC_EV_EMPTY]  = "empty",
		[ELASTIC_EV_STUCK]  = "stuck",
	};

	if (event < 0 || event >= ELASTIC_NR_EVENTS)
		return "?";
	return names[event];
}
