// SPDX-License-Identifier: GPL-2.0
/*
 * "follow": who has paused the machine's domain, or unpaused it, waits until all hosts
 * have done so.  The engine does it (engine_pause.c).
 *
 * Each who asks waits for what holds now, not for what he has done: who pauses while another
 * one unpauses is answered when all hosts do as the domain does.  Each has his own time: libxl
 * waits for a little longer, and who asks later must not have it wait.
 *
 * Context: the protocol thread.
 */
#include <errno.h>
#include <string.h>

#include <json-c/json.h>

#include "worker_internal.h"

#define PATIENCE	10.	/* s; libxl waits for 15 */

static void start_patience(struct dsm_worker *w)
{
	struct dsm_pause *p = &w->pause;
	uint64_t t = dsm_worker_now(w);

	ev_timer_stop(w->p.loop, &p->patience);
	if (!p->nr)
		return;
	ev_timer_set(&p->patience, p->client[0].until > t ? (double)(p->client[0].until - t) / 1e9 : 0., 0.);
	ev_timer_start(w->p.loop, &p->patience);
}

/* The first @nr who wait. */
static void answer(struct dsm_worker *w, unsigned int nr, enum dsm_control_answer how, const char *text)
{
	struct dsm_pause *p = &w->pause;
	unsigned int i;

	for (i = 0; i < nr && w->control; i++)
		dsm_control_answer(w->control, p->client[i].number, how, text);
	p->nr -= nr;
	memmove(p->client, p->client + nr, p->nr * sizeof(*p->client));
	start_patience(w);
}

static void on_patience(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_worker *w = timer->data;
	char text[DSM_ENGINE_TEXT] = "";
	int rc = dsm_engine_follows(w->engine, text);
	uint64_t t = dsm_worker_now(w);
	unsigned int nr = 0;

	(void)loop;
	(void)events;
	/* The last answer may have come in this turn: it is that of all. */
	while (nr < w->pause.nr && (!rc || w->pause.client[nr].until <= t))
		nr++;
	if (rc && nr)
		dsm_worker_say(w, 4, "follow: %s", text);
	answer(w, nr, rc ? DSM_CONTROL_ERROR : DSM_CONTROL_OK, rc ? text : NULL);
}

void dsm_pause_init(struct dsm_worker *w)
{
	ev_timer_init(&w->pause.patience, on_patience, 0., 0.);
	w->pause.patience.data = w;
}

void dsm_pause_end(struct dsm_worker *w)
{
	ev_timer_stop(w->p.loop, &w->pause.patience);
}

enum dsm_control_answer dsm_pause_follow(struct dsm_worker *w, uint64_t client, char **text)
{
	struct dsm_pause *p = &w->pause;

	if (dsm_worker_has_vcpus(w, text))
		return DSM_CONTROL_ERROR;
	if (p->nr == DSM_CONTROL_CLIENTS)
		return dsm_worker_error(text, "busy too many ask for it");
	p->client[p->nr].number = client;
	p->client[p->nr++].until = dsm_worker_now(w) +
				   (uint64_t)((w->p.patience > 0. ? w->p.patience : PATIENCE) * 1e9);
	if (p->nr == 1)
		start_patience(w);
	dsm_engine_follow(w->engine);
	return DSM_CONTROL_LATER;
}

void dsm_pause_run(struct dsm_worker *w)
{
	struct dsm_pause *p = &w->pause;
	bool is = dsm_engine_is_paused(w->engine);
	char why[DSM_ENGINE_TEXT] = "";
	int rc;

	if (is != p->said && !dsm_engine_failure(w->engine)) {
		p->said = is;
		dsm_worker_say(w, 6, is ? "the guest is paused" : "the guest is not paused any more");
	}
	if (!p->nr)
		return;
	if (dsm_worker_ended(w, why)) {
		answer(w, p->nr, DSM_CONTROL_ERROR, why);
		return;
	}
	rc = dsm_engine_follows(w->engine, why);
	if (rc != -EINPROGRESS)
		answer(w, p->nr, rc ? DSM_CONTROL_ERROR : DSM_CONTROL_OK, rc ? why : NULL);
}

bool dsm_pause_state(const struct dsm_worker *w, struct json_object *all)
{
	uint16_t hosts = dsm_engine_paused_hosts(w->engine);
	struct json_object *list;
	unsigned int i;
	bool good;

	if (!w->p.description->nr_places)
		return true;
	list = json_object_new_array();
	good = list && !json_object_object_add(all, "paused", list);
	if (!good)
		json_object_put(list);
	for (i = 0; good && i < w->p.config->nr_hosts; i++)
		if (hosts & 1u << i)
			good = !json_object_array_add(list, json_object_new_string(dsm_worker_name(w, i)));
	return good;
}
