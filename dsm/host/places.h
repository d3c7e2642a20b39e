/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vCPUs of a guest at other hosts: what such a host has to be, and "place" and
 * "home", by which they go there and come back.  The dsmds do that; they speak with
 * each other.
 *
 * Context: the process of a request, with the VM's lock (record_lock()).
 */
#ifndef HOST_PLACES_H
#define HOST_PLACES_H

#include "record.h"

/** "places" of "enable", behind its ranges.  Return: 0; -1. */
int places_take(struct host *host, struct json_object *request, struct record *record,
		struct answer *answer);

/**
 * Has each host, the home too, event channels for the vCPUs that have their place there?
 * A slice has its part of them by the number of hosts in dsm.toml (dsm_ports()).
 * Return: 0; -1.
 */
int places_check_ports(struct host *host, const struct record *record, struct answer *answer);

/** What "probe" says of this host for them. */
void places_tell(const struct host_facts *facts, struct answer *answer);

/**
 * Can the vCPUs run there that have their place there?
 * @there: what the other host has said to "probe".
 * Return: 0, also if there are none; -1.
 */
int places_compare(struct host *host, unsigned int peer, const struct record *record,
		   const struct host_facts *here, struct json_object *there,
		   struct answer *answer);

/** "place", or with @home "home". */
void guest_place(struct host *host, const struct record *record, bool home,
		 struct json_object *request, struct answer *answer);

#endif
