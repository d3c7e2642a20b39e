/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The states of an elastic node, and which event leads from which to which.
 *
 * Pure: no locks, no I/O, no clock.  Compiled into the driver and into the
 * unit test.  The picture is in docs/xenstore-paths.md.
 */
#ifndef _XEN_ELASTIC_STATE_H
#define _XEN_ELASTIC_STATE_H

enum elastic_state {
	ELASTIC_OFFLINE,	/* no memory, no CPU, node not in sysfs */
	ELASTIC_GROWING,	/* memory and CPUs are being added */
	ELASTIC_ONLINE,		/* in use; the balloon may work below */
	ELASTIC_DRAINING,	/* programs and memory are leaving */
	ELASTIC_RESIDUAL,	/* should have gone, some memory could not */
	ELASTIC_NR_STATES
};

enum elastic_event {
	ELASTIC_EV_GROW,	/* target above what is there, or a drain
				 * was called off
				 */
	ELASTIC_EV_SHRINK,	/* target below what is there, but not 0 */
	ELASTIC_EV_DRAIN,	/* target 0, or an attach has failed */
	ELASTIC_EV_DONE,	/* the target is reached, CPUs included, or
				 * what there is of the node stays
				 */
	ELASTIC_EV_UNDONE,	/* a resize failed; what it added is gone, if
				 * there was room for that
				 */
	ELASTIC_EV_EMPTY,	/* the last memory and CPU have left */
	ELASTIC_EV_STUCK,	/* some memory cannot leave */
	ELASTIC_NR_EVENTS
};

/**
 * elastic_state_next() - where an event leads
 * @state: an &enum elastic_state
 * @event: an &enum elastic_event
 * @why: where to put the name of the mistake when there is no such
 *	transition; NULL is allowed
 *
 * Context: any.
 * Return: the new state, or -EINVAL for a transition that does not exist, or
 *	for a state or event out of range.
 */
int elastic_state_next(int state, int event, const char **why);

/**
 * elastic_state_name() - the name that xenstore and debugfs show
 * @state: an &enum elastic_state
 *
 * Return: a static string; "?" for a state out of range.
 */
const char *elastic_state_name(int state);

/**
 * elastic_event_name() - the name of an event, for messages
 * @event: an &enum elastic_event
 *
 * Return: a static string; "?" for an event out of range.
 */
const char *elastic_event_name(int event);

#endif /* _XEN_ELASTIC_STATE_H */
