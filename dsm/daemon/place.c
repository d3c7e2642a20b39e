// SPDX-License-Identifier: GPL-2.0
/*
 * "place" and "home": vCPUs that go to another host and come back, as somebody asks
 * at the home.  The engine does it (engine_place.c).
 *
 * Context: the protocol thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "worker_internal.h"

/* Return: a number below @most, and what follows it in *words; @most: there is none. */
static unsigned int read_number(const char **words, unsigned int most)
{
	const char *at = *words;
	unsigned int value = 0;

	if (*at < '0' || *at > '9')
		return most;
	for (; *at >= '0' && *at <= '9'; at++)
		value = value < most ? 10 * value + (unsigned int)(*at - '0') : most;
	*words = at;
	return value < most ? value : most;
}

/* "1,4-7".  Return: how many; 0: it is none, or not ascending. */
static unsigned int read_vcpus(const char *words, uint16_t vcpus[DSM_ENGINE_VCPUS])
{
	unsigned int nr = 0, first, last;

	for (;; words++) {
		first = last = read_number(&words, DSM_ENGINE_VCPUS);
		if (*words == '-') {
			words++;
			last = read_number(&words, DSM_ENGINE_VCPUS);
		}
		if (last == DSM_ENGINE_VCPUS || last < first || (nr && first <= vcpus[nr - 1]))
			return 0;
		for (; first <= last; first++)
			vcpus[nr++] = (uint16_t)first;
		if (*words != ',')
			return *words ? 0 : nr;
	}
}

static enum dsm_control_answer place(struct dsm_worker *w, unsigned int host,
				     const char *words, uint64_t client, char **text)
{
	uint16_t vcpus[DSM_ENGINE_VCPUS];
	unsigned int nr = read_vcpus(words, vcpus);
	char why[DSM_ENGINE_TEXT];
	int rc;

	if (!nr)
		return dsm_worker_error(text, "internal want: place HOST VCPUS, home VCPUS; vCPUs as 1,4-7");
	if (dsm_worker_has_vcpus(w, text))
		return DSM_CONTROL_ERROR;
	if (dsm_peers_leaving(w) != DSM_NOBODY)
		return dsm_peers_busy(w, text);
	rc = dsm_engine_place(w->engine, host, vcpus, nr, why);
	if (!rc)
		return DSM_CONTROL_OK;
	if (rc != -EINPROGRESS)
		return dsm_worker_error(text, "%s", why);
	w->placing = client;
	return DSM_CONTROL_LATER;
}

enum dsm_control_answer dsm_place_command(struct dsm_worker *w, const char *words,
					  uint64_t client, char **text)
{
	const char *space = strchr(words, ' ');
	char name[DSM_CONFIG_NAME];
	unsigned int host;

	if (!space || (size_t)(space - words) >= sizeof(name))
		return dsm_worker_error(text, "internal want: place HOST VCPUS");
	memcpy(name, words, (size_t)(space - words));
	name[space - words] = 0;
	host = dsm_peers_find(w, name, text);
	return host == DSM_NOBODY ? DSM_CONTROL_ERROR : place(w, host, space + 1, client, text);
}

enum dsm_control_answer dsm_place_home(struct dsm_worker *w, const char *words,
				       uint64_t client, char **text)
{
	return place(w, w->p.description->token_home, words, client, text);
}

void dsm_place_done(struct dsm_worker *w, const char *error)
{
	uint64_t client = w->placing;

	w->placing = 0;
	if (error)
		dsm_worker_say(w, 4, "place: %s", error);
	else
		dsm_worker_say(w, 5, "place: done");
	if (client && w->control)
		dsm_control_answer(w->control, client, error ? DSM_CONTROL_ERROR :
				   DSM_CONTROL_OK, error);
	if (!dsm_engine_failure(w->engine))
		dsm_start_tell(w);
}

static bool add_vcpu(const struct dsm_worker *w, unsigned int vcpu, unsigned int host,
		     struct json_object *list)
{
	struct json_object *o = json_object_new_object();

	if (!o || json_object_array_add(list, o))
		return false;
	return !json_object_object_add(o, "vcpu", json_object_new_uint64(vcpu)) &&
	       !json_object_object_add(o, "host", json_object_new_string(dsm_worker_name(w, host)));
}

bool dsm_place_state(const struct dsm_worker *w, struct json_object *all)
{
	const struct dsm_description *d = w->p.description;
	struct json_object *list;
	bool good;
	unsigned int i;

	if (!d->nr_places)
		return true;
	list = json_object_new_array();
	good = list && !json_object_object_add(all, "vcpus", list);
	if (!good)
		json_object_put(list);
	for (i = 0; good && i < d->nr_vcpus; i++)
		if (dsm_engine_where(w->engine, i) != d->token_home)
			good = add_vcpu(w, i, dsm_engine_where(w->engine, i), list);
	return good;
}
