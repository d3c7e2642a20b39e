// SPDX-License-Identifier: GPL-2.0
/*
 * What comes from the loop goes to the engine; before the loop sleeps, the
 * engine does what it has collected.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ev.h>
#include <json-c/json.h>

#include "tune.h"
#include "worker.h"

#define NS	1000000000ull

struct peer {
	struct dsm_worker *worker;
	unsigned int host;
	bool up, was_up, closing;
	uint32_t epoch;
	ev_timer again;
	struct dsm_histogram round_trip;
};

struct dsm_worker {
	struct dsm_worker_params p;
	struct dsm_engine *engine;
	struct dsm_transport_params transport_params;	/* it reads them there */
	struct dsm_transport *transport;
	struct dsm_control *control;
	enum dsm_worker_state state;
	struct peer peer[DSM_MAX_HOSTS];
	ev_io ring;
	ev_prepare before_sleep;
	ev_timer due, questions;
	struct dsm_poll poll;
	struct dsm_stats stats;
	struct dsm_engine_counts counts;
	time_t since;
};

static const char *const states[DSM_WORKER_STATES] = {
	[DSM_WORKER_CONNECTING] = "connecting",
	[DSM_WORKER_RUNNING] = "running",
	[DSM_WORKER_LEAVING] = "leaving",
	[DSM_WORKER_ENDED] = "ended",
	[DSM_WORKER_FAILED] = "failed",
};

const char *dsm_worker_state_name(unsigned int state)
{
	return state < DSM_WORKER_STATES ? states[state] : "?";
}

static uint64_t on_now(void *context)
{
	struct timespec t;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

__attribute__((format(printf, 3, 4)))
static void say(struct dsm_worker *w, int level, const char *format, ...)
{
	char text[DSM_ENGINE_TEXT];
	va_list words;

	va_start(words, format);
	vsnprintf(text, sizeof(text), format, words);
	va_end(words);
	w->p.calls->log(w->p.context, level, text);
}

static void enter(struct dsm_worker *w, enum dsm_worker_state state,
		  const char *text)
{
	if (w->state == state)
		return;
	w->state = state;
	w->p.calls->state(w->p.context, state, text);
}

static const char *name_of(const struct dsm_worker *w, unsigned int host)
{
	return host < w->p.config->nr_hosts ? w->p.config->host[host].name : "?";
}

/* ---- Connections ---- */

static void connect_to(struct dsm_worker *w, struct peer *peer)
{
	int rc;

	peer->epoch++;
	rc = w->p.config->self > peer->host ?
	     dsm_transport_open(w->transport, peer->host, peer->epoch) :
	     dsm_transport_expect(w->transport, peer->host, peer->epoch);
	if (rc)
		say(w, 4, "host %s: can't connect: %s", name_of(w, peer->host),
		    strerror(-rc));
}

static void on_again(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct peer *peer = timer->data;

	(void)events;
	ev_timer_stop(loop, timer);
	if (peer->worker->state == DSM_WORKER_CONNECTING)
		connect_to(peer->worker, peer);
}

static void on_up(void *context, unsigned int host, uint32_t epoch)
{
	struct dsm_worker *w = context;
	struct peer *peer = &w->peer[host];
	unsigned int i;

	peer->up = true;
	peer->was_up = true;
	peer->epoch = epoch;
	if (dsm_engine_peer_up(w->engine, host, epoch)) {
		say(w, 4, "host %s: connected again; who was lost or has left does not come back",
		    name_of(w, host));
		dsm_transport_close(w->transport, host);
		return;
	}
	say(w, 6, "host %s: connected", name_of(w, host));
	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (i != w->p.config->self && !w->peer[i].was_up)
			return;
	if (w->state == DSM_WORKER_CONNECTING)
		enter(w, DSM_WORKER_RUNNING, "");
}

/* More may follow soon, or be an answer. */
static void came(struct dsm_worker *w)
{
	if (dsm_poll_is_on(&w->poll))
		dsm_poll_event(&w->poll, on_now(NULL));
}

static void on_message(void *context, unsigned int host,
		       const struct dsm_msg *msg, const uint8_t *page)
{
	struct dsm_worker *w = context;

	came(w);
	dsm_engine_message(w->engine, host, msg, page);
}

static void on_room(void *context, unsigned int host)
{
	struct dsm_worker *w = context;

	dsm_engine_room(w->engine, host);
}

static void on_end(void *context, unsigned int host, enum dsm_end reason,
		   const char *text)
{
	struct dsm_worker *w = context;
	struct peer *peer;
	char why[DSM_ENGINE_TEXT];

	snprintf(why, sizeof(why), "%s%s%s", dsm_end_name(reason),
		 text[0] ? ": " : "", text);
	if (host == DSM_NOBODY) {
		say(w, 4, "a stranger was turned away: %s", why);
		return;
	}
	peer = &w->peer[host];
	if (!peer->was_up) {
		say(w, 5, "host %s: no connection: %s", name_of(w, host), why);
		if (w->state == DSM_WORKER_CONNECTING)
			ev_timer_again(w->p.loop, &peer->again);
		return;
	}
	say(w, reason == DSM_END_CLOSED ? 6 : 3, "host %s: %s",
	    name_of(w, host), why);
	peer->up = false;
	if (w->state == DSM_WORKER_LEAVING)
		return;
	dsm_engine_peer_down(w->engine, host, reason == DSM_END_CLOSED, why);
}

static void on_round_trip(void *context, unsigned int host, uint64_t ns)
{
	struct dsm_worker *w = context;

	dsm_histogram_add(&w->peer[host].round_trip, ns);
}

static const struct dsm_transport_calls transport_calls = {
	.up = on_up, .message = on_message, .room = on_room, .end = on_end,
	.round_trip = on_round_trip,
};

/* ---- The engine ---- */

static void on_send(void *context, unsigned int host, const struct dsm_msg *msg,
		    const uint8_t *page)
{
	struct dsm_worker *w = context;

	/* A connection that can't take it ends, and that is heard of. */
	dsm_transport_send(w->transport, host, msg, page);
}

static unsigned int ask_room(void *context, unsigned int host)
{
	const struct dsm_worker *w = context;

	return dsm_transport_room(w->transport, host);
}

static void on_failed(void *context, const char *text)
{
	struct dsm_worker *w = context;
	unsigned int i;

	say(w, 3, "the VM has failed: %s", text);
	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (w->peer[i].up) {
			w->peer[i].up = false;
			dsm_transport_fail(w->transport, i, DSM_R_BROKEN);
		}
	enter(w, DSM_WORKER_FAILED, text);
}

static void on_warn(void *context, const char *text)
{
	say(context, 4, "%s", text);
}

static void on_finished(void *context, uint64_t gfn, enum dsm_reason reason)
{
	say(context, 6, "gfn 0x%llx: %s", (unsigned long long)gfn,
	    reason == DSM_R_NONE ? "done" : dsm_reason_name(reason));
}

static const struct dsm_engine_calls engine_calls = {
	.now = on_now, .send = on_send, .room = ask_room, .failed = on_failed,
	.warn = on_warn, .finished = on_finished,
};

/* ---- The loop ---- */

/* Everything that was here of others is home, and nothing is under way. */
static void go_on_leaving(struct dsm_worker *w)
{
	unsigned int i, open = 0;

	if (dsm_engine_guests(w->engine) || !dsm_engine_is_quiet(w->engine))
		return;
	for (i = 0; i < w->p.config->nr_hosts; i++) {
		if (w->peer[i].up && !w->peer[i].closing) {
			w->peer[i].closing = true;
			dsm_transport_close(w->transport, i);
		}
		open += w->peer[i].up;
	}
	if (!open)
		enter(w, DSM_WORKER_ENDED, "");
}

static void on_before_sleep(struct ev_loop *loop, ev_prepare *prepare, int events)
{
	struct dsm_worker *w = prepare->data;
	uint64_t next, t;

	(void)events;
	dsm_engine_run(w->engine);
	if (w->state == DSM_WORKER_LEAVING)
		go_on_leaving(w);
	dsm_poll_before_sleep(&w->poll, dsm_poll_is_on(&w->poll) ? on_now(NULL) : 0,
			      dsm_engine_is_asking(w->engine));
	next = dsm_engine_next(w->engine);
	ev_timer_stop(loop, &w->due);
	if (next == UINT64_MAX)
		return;
	t = on_now(NULL);
	ev_now_update(loop);
	ev_timer_set(&w->due, next > t ? (double)(next - t) / (double)NS : 0., 0.);
	ev_timer_start(loop, &w->due);
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_worker *w = timer->data;

	(void)loop;
	(void)events;
	dsm_engine_tick(w->engine);
}

static void on_questions(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_worker *w = timer->data;

	(void)loop;
	(void)events;
	dsm_transport_tick(w->transport);
}

static void on_ring(struct ev_loop *loop, ev_io *io, int events)
{
	struct dsm_worker *w = io->data;

	(void)loop;
	(void)events;
	came(w);
	dsm_engine_misses(w->engine);
}

void dsm_worker_kick(struct dsm_worker *worker)
{
	came(worker);
	dsm_engine_misses(worker->engine);
}

/* ---- What dsmctl asks ---- */

const struct dsm_stats *dsm_worker_stats(struct dsm_worker *w)
{
	struct dsm_stats *s = &w->stats;
	struct dsm_transport_counters none;
	unsigned int i;

	dsm_engine_get_counts(w->engine, &w->counts);
	s->host = name_of(w, w->p.config->self);
	memcpy(s->vm, w->p.description->uuid, sizeof(s->vm));
	s->engine = &w->counts;
	s->poll = w->poll.counts;
	s->read_faults = w->counts.read_faults;
	s->write_faults = w->counts.write_faults;
	s->read_fault = w->counts.read_fault;
	s->write_fault = w->counts.write_fault;
	if (!dsm_transport_counts(w->transport, DSM_NOBODY, &none))
		memcpy(s->strangers, none.ends, sizeof(s->strangers));
	for (i = 0; i < w->p.config->nr_hosts; i++) {
		struct dsm_stats_peer *peer = &s->peer[i];

		peer->used = i != w->p.config->self;
		if (!peer->used)
			continue;
		peer->up = w->peer[i].up;
		peer->name = name_of(w, i);
		peer->round_trip = w->peer[i].round_trip;
		dsm_transport_counts(w->transport, i, &peer->transport);
	}
	return s;
}

/* The statistics, and what only this process knows. */
static bool status(struct dsm_worker *w, char **text)
{
	char *stats = dsm_stats_json(dsm_worker_stats(w));
	const char *failure = dsm_engine_failure(w->engine);
	struct json_object *all = stats ? json_tokener_parse(stats) : NULL;

	free(stats);
	if (!all)
		return false;
	json_object_object_add(all, "name",
			       json_object_new_string(w->p.description->name));
	json_object_object_add(all, "state",
			       json_object_new_string(states[w->state]));
	json_object_object_add(all, "failure", failure ?
			       json_object_new_string(failure) : NULL);
	json_object_object_add(all, "seconds",
			       json_object_new_int64(time(NULL) - w->since));
	if (asprintf(text, "%s\n", json_object_to_json_string_ext(all,
				JSON_C_TO_STRING_PRETTY)) < 0)
		*text = NULL;
	json_object_put(all);
	return *text;
}

/* All pages: those of this host come, those of others go. */
static int evacuate(struct dsm_worker *w)
{
	const struct dsm_description *d = w->p.description;

	if (w->state != DSM_WORKER_RUNNING)
		return -EBUSY;
	return dsm_engine_evacuate(w->engine, d->range[0].start,
				   d->range[d->nr_ranges - 1].end);
}

static bool on_command(void *context, const char *command, const char *word,
		       char **text)
{
	struct dsm_worker *w = context;

	if (!strcmp(command, "status") && !word[0])
		return status(w, text);
	if (!strcmp(command, "metrics") && !word[0]) {
		*text = dsm_stats_node_exporter(dsm_worker_stats(w));
		return *text;
	}
	if (!strcmp(command, "leave") && !word[0]) {
		if (!dsm_worker_leave(w))
			return true;
		*text = strdup(w->state == DSM_WORKER_RUNNING ?
			       "this host is the home of pages" :
			       "the VM is not running");
		return false;
	}
	if (!strcmp(command, "set") && word[0])
		return dsm_tune(w->engine, &w->poll, word, text);
	if (!strcmp(command, "evacuate") && !word[0]) {
		if (!evacuate(w))
			return true;
		*text = strdup("the VM is not running");
		return false;
	}
	if (!strcmp(command, "fail") && word[0]) {
		if (w->state == DSM_WORKER_FAILED || w->state == DSM_WORKER_ENDED) {
			*text = strdup("the VM has ended already");
			return false;
		}
		dsm_engine_fail(w->engine, word);
		return true;
	}
	if (!strcmp(command, "forget") && (!word[0] || !strcmp(word, "force"))) {
		if (w->state != DSM_WORKER_FAILED && w->state != DSM_WORKER_ENDED &&
		    !word[0]) {
			*text = strdup("the VM has not ended");
			return false;
		}
		w->p.calls->forgotten(w->p.context);
		return true;
	}
	*text = strdup("no such command");
	return false;
}

static const struct dsm_control_calls control_calls = { .command = on_command };

/* ---- Begin and end ---- */

int dsm_worker_leave(struct dsm_worker *w)
{
	const struct dsm_description *d = w->p.description;
	unsigned int i;

	if (w->state != DSM_WORKER_RUNNING)
		return -EBUSY;
	for (i = 0; i < d->nr_ranges; i++)
		if (d->range[i].home == w->p.config->self)
			return -EBUSY;
	dsm_engine_drain(w->engine);
	enter(w, DSM_WORKER_LEAVING, "");
	return 0;
}

static void watch(struct dsm_worker *w)
{
	double question = w->p.config->question_ms / 1000. / 4.;
	int fd = w->p.xen->calls->descriptor(w->p.xen);
	unsigned int i;

	dsm_poll_init(&w->poll, w->p.loop, w->p.description->busy_wait_ns,
		      w->p.description->poll_ns);
	ev_prepare_init(&w->before_sleep, on_before_sleep);
	w->before_sleep.data = w;
	ev_prepare_start(w->p.loop, &w->before_sleep);
	ev_timer_init(&w->due, on_due, 0., 0.);
	w->due.data = w;
	ev_timer_init(&w->questions, on_questions, question, question);
	w->questions.data = w;
	ev_timer_start(w->p.loop, &w->questions);
	if (fd >= 0) {
		ev_io_init(&w->ring, on_ring, fd, EV_READ);
		w->ring.data = w;
		ev_io_start(w->p.loop, &w->ring);
	}
	for (i = 0; i < w->p.config->nr_hosts; i++) {
		struct peer *peer = &w->peer[i];

		peer->worker = w;
		peer->host = i;
		ev_timer_init(&peer->again, on_again, 0., DSM_WORKER_AGAIN);
		peer->again.data = peer;
	}
}

int dsm_worker_create(const struct dsm_worker_params *params,
		      struct dsm_worker **worker, char text[DSM_ENGINE_TEXT])
{
	struct dsm_worker *w = calloc(1, sizeof(*w));
	struct dsm_engine_params engine = {
		.seed = params->seed, .xen = params->xen, .calls = &engine_calls,
		.context = w,
	};
	char why[DSM_TRANSPORT_TEXT] = "";
	unsigned int i;
	int rc;

	snprintf(text, DSM_ENGINE_TEXT, "no memory");
	if (!w)
		return -ENOMEM;
	w->p = *params;
	w->since = time(NULL);
	dsm_description_engine(params->description, params->config, &engine);
	w->transport_params = (struct dsm_transport_params){
		.loop = params->loop, .now = on_now, .calls = &transport_calls,
		.context = w,
	};
	dsm_config_transport(params->config, &w->transport_params);
	dsm_description_transport(params->description, &w->transport_params);
	if (params->adjust)
		params->adjust(params->context, &w->transport_params);
	rc = dsm_engine_create(&engine, &w->engine, text);
	if (rc)
		goto fail;
	rc = dsm_transport_create(&w->transport_params, &w->transport, why);
	if (rc) {
		snprintf(text, DSM_ENGINE_TEXT, "%s", why[0] ? why : strerror(-rc));
		goto fail;
	}
	if (params->socket) {
		rc = dsm_control_create(params->loop, params->socket,
					&control_calls, w, &w->control);
		if (rc) {
			snprintf(text, DSM_ENGINE_TEXT, "%s: %s", params->socket,
				 strerror(-rc));
			goto fail;
		}
	}
	text[0] = 0;
	watch(w);
	*worker = w;
	w->state = DSM_WORKER_CONNECTING;
	params->calls->state(params->context, DSM_WORKER_CONNECTING, "");
	if (params->config->nr_hosts == 1)
		enter(w, DSM_WORKER_RUNNING, "");
	for (i = 0; i < params->config->nr_hosts; i++)
		if (i != params->config->self)
			connect_to(w, &w->peer[i]);
	dsm_engine_tick(w->engine);
	return 0;

fail:
	if (w->transport)
		dsm_transport_destroy(w->transport);
	dsm_engine_destroy(w->engine);
	free(w);
	return rc;
}

void dsm_worker_destroy(struct dsm_worker *w)
{
	unsigned int i;

	if (!w)
		return;
	dsm_control_destroy(w->control);
	dsm_poll_stop(&w->poll);
	ev_prepare_stop(w->p.loop, &w->before_sleep);
	ev_timer_stop(w->p.loop, &w->due);
	ev_timer_stop(w->p.loop, &w->questions);
	ev_io_stop(w->p.loop, &w->ring);
	for (i = 0; i < w->p.config->nr_hosts; i++)
		ev_timer_stop(w->p.loop, &w->peer[i].again);
	dsm_transport_destroy(w->transport);
	dsm_engine_destroy(w->engine);
	free(w);
}

enum dsm_worker_state dsm_worker_get_state(const struct dsm_worker *worker)
{
	return worker->state;
}

struct dsm_engine *dsm_worker_engine(struct dsm_worker *worker)
{
	return worker->engine;
}

struct dsm_transport *dsm_worker_transport(struct dsm_worker *worker)
{
	return worker->transport;
}
