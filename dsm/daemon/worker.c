// SPDX-License-Identifier: GPL-2.0
/*
 * What comes from the loop goes to the engine; before the loop sleeps, the
 * engine does what it has collected.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "tune.h"
#include "worker_internal.h"

/* ---- The engine ---- */

static void on_send(void *context, unsigned int host, const struct dsm_msg *msg,
		    const uint8_t *page)
{
	struct dsm_worker *w = context;

	char text[DSM_ENGINE_TEXT];

	/* A connection that can't take it ends, and that is heard of; but not if it does not know it. */
	if (dsm_transport_send(w->transport, host, msg, page) != -EPROTONOSUPPORT)
		return;
	snprintf(text, sizeof(text), "host %s: %s was to go there, which its version of the protocol does not have",
		 dsm_worker_name(w, host), dsm_type_name(msg->type));
	dsm_engine_fail(w->engine, text);
}

static unsigned int ask_room(void *context, unsigned int host)
{
	const struct dsm_worker *w = context;

	return dsm_transport_room(w->transport, host);
}

static void on_failed(void *context, const char *text)
{
	struct dsm_worker *w = context;
	unsigned int lost = dsm_engine_lost(w->engine);

	dsm_worker_say(w, 3, "the VM has failed: %s", text);
	dsm_resize_fail(w, "failed", text);
	/* Who hears it need not have lost that host: its reason names both. */
	dsm_peers_fail(w, lost < DSM_MAX_HOSTS ? (uint8_t)(DSM_FAIL_LOST + lost) : DSM_R_BROKEN, text);
	dsm_worker_enter(w, DSM_WORKER_FAILED, text);
}

static void on_over(void *context, const char *text)
{
	struct dsm_worker *w = context;

	dsm_worker_say(w, 5, "the VM has ended: %s", text);
	dsm_resize_fail(w, "ended", text);
	dsm_peers_fail(w, DSM_FAIL_OVER, text);
	dsm_worker_enter(w, DSM_WORKER_OVER, text);
}

static void on_warn(void *context, const char *text)
{
	dsm_worker_say(context, 4, "%s", text);
}

static void on_finished(void *context, uint64_t gfn, enum dsm_reason reason)
{
	dsm_worker_say(context, 6, "gfn 0x%llx: %s", (unsigned long long)gfn,
	    reason == DSM_R_NONE ? "done" : dsm_reason_name(reason));
}

static void on_placed(void *context, const char *error)
{
	dsm_place_done(context, error);
}

static int ask_time(void *context, unsigned int host, char text[DSM_ENGINE_TEXT])
{
	return dsm_drift_ask(context, host, text);
}

static const struct dsm_engine_calls engine_calls = {
	.now = dsm_worker_now, .send = on_send, .room = ask_room, .failed = on_failed, .over = on_over,
	.warn = on_warn, .finished = on_finished, .placed = on_placed,
	.has_our_time = ask_time,
};

/* ---- The loop ---- */

/* Everything that was here of others is home, and nothing is under way. */
static void go_on_leaving(struct dsm_worker *w)
{
	if (dsm_engine_guests(w->engine) || !dsm_engine_is_quiet(w->engine))
		return;
	if (!dsm_peers_close(w))
		dsm_worker_enter(w, DSM_WORKER_ENDED, "");
}

static void on_before_sleep(struct ev_loop *loop, ev_prepare *prepare, int events)
{
	struct dsm_worker *w = prepare->data;
	uint64_t next, t;

	(void)events;
	dsm_engine_run(w->engine);
	dsm_pause_run(w);
	if (w->state == DSM_WORKER_LEAVING)
		go_on_leaving(w);
	dsm_resize_run(w);
	dsm_peers_run(w);
	dsm_poll_before_sleep(&w->poll, dsm_poll_is_on(&w->poll) ? dsm_worker_now(NULL) : 0,
			      dsm_engine_is_asking(w->engine));
	next = dsm_engine_next(w->engine);
	/* It mostly is as it was, and clocks cost system calls. */
	if (next == w->due_at)
		return;
	w->due_at = next;
	ev_timer_stop(loop, &w->due);
	if (next == UINT64_MAX)
		return;
	t = dsm_worker_now(NULL);
	ev_now_update(loop);
	ev_timer_set(&w->due, next > t ? (double)(next - t) / (double)DSM_NS : 0., 0.);
	ev_timer_start(loop, &w->due);
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct dsm_worker *w = timer->data;

	(void)loop;
	(void)events;
	w->due_at = UINT64_MAX;
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
	dsm_worker_came(w);
	dsm_engine_misses(w->engine);
}

void dsm_worker_kick(struct dsm_worker *worker)
{
	dsm_worker_came(worker);
	dsm_engine_misses(worker->engine);
}

/* ---- What dsmctl asks ---- */

const struct dsm_stats *dsm_worker_stats(struct dsm_worker *w)
{
	struct dsm_stats *s = &w->stats;
	struct dsm_transport_counters none;
	unsigned int i;

	dsm_engine_get_counts(w->engine, &w->counts);
	s->host = dsm_worker_name(w, w->p.config->self);
	memcpy(s->vm, w->p.description->uuid, sizeof(s->vm));
	s->tsc_khz = w->tsc_khz;
	s->time_jumps = w->jumps.jumps;
	s->time_jumped_ns = w->tsc_khz ? dsm_clock_ns(w->tsc_khz, w->jumps.ticks) : 0;
	s->engine = &w->counts;
	s->poll = w->poll.counts;
	s->xen = w->p.xen->calls->waits(w->p.xen, &w->waits) ? NULL : &w->waits;
	s->certificate_expires = w->expiry.certificate;
	s->ca_expires = w->expiry.ca;
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
		peer->up = w->peer[i].link == DSM_LINK_UP;
		peer->name = dsm_worker_name(w, i);
		peer->round_trip = w->peer[i].round_trip;
		dsm_peers_clock_stats(w, &w->peer[i], &peer->clock);
		dsm_transport_counts(w->transport, i, &peer->transport);
	}
	return s;
}

/* Of whom "leave HOST" is at work: how much there is still. */
static void add_leaving(const struct dsm_worker *w, struct json_object *all)
{
	struct json_object *peers = json_object_object_get(all, "peers"), *one;
	unsigned int i;

	for (i = 0; i < w->p.config->nr_hosts; i++)
		if (w->peer[i].leaving && json_object_object_get_ex(peers, dsm_worker_name(w, i), &one))
			json_object_object_add(one, "leaves", json_object_new_uint64(
					       dsm_engine_shared_with(w->engine, i)));
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
			       json_object_new_string(dsm_worker_state_name(w->state)));
	json_object_object_add(all, "failure", failure ?
			       json_object_new_string(failure) : NULL);
	if (w->p.description->nr_places)
		json_object_object_add(all, "paused",
				       json_object_new_boolean(dsm_engine_is_paused(w->engine)));
	if (w->p.description->nr_places)
		json_object_object_add(all, "class_u",
				       json_object_new_boolean(dsm_engine_has_class_u(w->engine)));
	add_leaving(w, all);
	json_object_object_add(all, "seconds",
			       json_object_new_int64(time(NULL) - w->since));
	if (asprintf(text, "%s\n", json_object_to_json_string_ext(all,
				JSON_C_TO_STRING_PRETTY)) < 0)
		*text = NULL;
	json_object_put(all);
	return *text;
}

/* What is answered at once. */
static enum dsm_control_answer at_once(bool good)
{
	return good ? DSM_CONTROL_OK : DSM_CONTROL_ERROR;
}

static enum dsm_control_answer leave(struct dsm_worker *w, char **text)
{
	if (!dsm_worker_leave(w))
		return DSM_CONTROL_OK;
	return dsm_worker_error(text, w->state == DSM_WORKER_RUNNING ?
				"this host is the home of pages, or vCPUs run here" :
				"the VM is not running");
}

static enum dsm_control_answer top(struct dsm_worker *w, char **text)
{
	uint64_t ns;
	const struct dsm_profile *profile = dsm_engine_profile(w->engine, &ns);

	if (!profile)
		return dsm_worker_error(text, "pages are not counted: dsmctl set VM profile=1");
	*text = dsm_stats_profile_json(dsm_worker_stats(w), profile, ns);
	return at_once(*text);
}

static bool has_ended(const struct dsm_worker *w)
{
	return w->state == DSM_WORKER_FAILED || w->state == DSM_WORKER_OVER ||
	       w->state == DSM_WORKER_ENDED;
}

static enum dsm_control_answer fail(struct dsm_worker *w, const char *word, char **text)
{
	if (has_ended(w))
		return dsm_worker_error(text, "the VM has ended already");
	dsm_engine_fail(w->engine, word);
	return DSM_CONTROL_OK;
}

/* All pages: those of this host come, those of others go. */
static enum dsm_control_answer evacuate(struct dsm_worker *w, char **text)
{
	const struct dsm_description *d = w->p.description;

	if (w->state != DSM_WORKER_RUNNING)
		return dsm_worker_error(text, "the VM is not running");
	/* There is one evacuation at a time: a vnode that gets less needs it, and who leaves. */
	if (w->resize.vnode || dsm_peers_leaving(w) != DSM_NOBODY)
		return dsm_worker_error(text, "the memory of a vnode is being changed, or a host leaves");
	dsm_engine_evacuate(w->engine, d->range[0].start,
			    d->range[d->nr_ranges - 1].end);
	return DSM_CONTROL_OK;
}

static enum dsm_control_answer forget(struct dsm_worker *w, bool force, char **text)
{
	if (!has_ended(w) && !force)
		return dsm_worker_error(text, "the VM has not ended");
	/* At its home: nobody serves it any more.  Who asks may have destroyed it. */
	if (!has_ended(w) && !w->p.description->build)
		dsm_engine_fail(w->engine, "this host was told to forget it");
	w->p.calls->forgotten(w->p.context);
	return DSM_CONTROL_OK;
}

static enum dsm_control_answer on_command(void *context, const char *command,
					  const char *word, uint64_t client, char **text)
{
	struct dsm_worker *w = context;

	if (!strcmp(command, "status") && !word[0])
		return at_once(status(w, text));
	if (!strcmp(command, "metrics") && !word[0]) {
		*text = dsm_stats_node_exporter(dsm_worker_stats(w));
		return at_once(*text);
	}
	if (!strcmp(command, "top") && !word[0])
		return top(w, text);
	if (!strcmp(command, "state") && !word[0])
		return at_once(dsm_resize_state(w, text));
	if (!strcmp(command, "connect") && word[0])
		return dsm_peers_connect(w, word, client, text);
	if (!strcmp(command, "node") && word[0])
		return dsm_resize_command(w, word, client, text);
	if (!strcmp(command, "place") && word[0])
		return dsm_place_command(w, word, client, text);
	if (!strcmp(command, "home") && word[0])
		return dsm_place_home(w, word, client, text);
	if (!strcmp(command, "follow") && !word[0])
		return dsm_pause_follow(w, client, text);
	if (!strcmp(command, "leaving") && word[0])
		return dsm_resize_leaving(w, word, text);
	if (!strcmp(command, "leave"))
		return word[0] ? dsm_peers_leave(w, word, client, text) : leave(w, text);
	if (!strcmp(command, "set") && word[0])
		return at_once(dsm_tune(w->engine, &w->poll, word, text));
	if (!strcmp(command, "evacuate") && !word[0])
		return evacuate(w, text);
	if (!strcmp(command, "fail") && word[0])
		return fail(w, word, text);
	if (!strcmp(command, "forget") && (!word[0] || !strcmp(word, "force")))
		return forget(w, word[0], text);
	return dsm_worker_error(text, "no such command");
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
		if (d->range[i].home == w->p.config->self &&
		    dsm_engine_range(w->engine, i)->open)
			return -EBUSY;
	if (dsm_engine_runs_vcpus(w->engine, w->p.config->self) ||
	    dsm_engine_is_placing(w->engine))
		return -EBUSY;
	dsm_engine_drain(w->engine);
	dsm_worker_enter(w, DSM_WORKER_LEAVING, "");
	return 0;
}

static void on_expiry(void *context, const char *text)
{
	dsm_worker_say(context, 4, "%s; this guest goes on with the one that it began with", text);
}

/* Instead of sleeping. */
static bool look(void *context)
{
	struct dsm_worker *w = context;

	if (w->p.xen->calls->has_misses(w->p.xen)) {
		dsm_worker_kick(w);
		return true;
	}
	return dsm_transport_poll(w->transport);
}

static void watch(struct dsm_worker *w)
{
	double question = (double)w->transport_params.question_ns / (double)DSM_NS / 4.;
	int fd = w->p.xen->calls->descriptor(w->p.xen);

	dsm_poll_init(&w->poll, w->p.loop, w->p.description->busy_wait_ns,
		      w->p.description->poll_ns, look, w);
	ev_prepare_init(&w->before_sleep, on_before_sleep);
	w->before_sleep.data = w;
	ev_prepare_start(w->p.loop, &w->before_sleep);
	ev_timer_init(&w->due, on_due, 0., 0.);
	w->due_at = UINT64_MAX;
	w->due.data = w;
	ev_timer_init(&w->questions, on_questions, question, question);
	w->questions.data = w;
	ev_timer_start(w->p.loop, &w->questions);
	if (fd >= 0) {
		ev_io_init(&w->ring, on_ring, fd, EV_READ);
		w->ring.data = w;
		ev_io_start(w->p.loop, &w->ring);
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
	int rc;

	snprintf(text, DSM_ENGINE_TEXT, "no memory");
	if (!w)
		return -ENOMEM;
	w->p = *params;
	w->since = time(NULL);
	dsm_description_engine(params->description, params->config, &engine);
	w->transport_params = (struct dsm_transport_params){
		.loop = params->loop, .now = dsm_worker_now, .calls = &dsm_peers_calls,
		.context = w,
	};
	dsm_config_transport(params->config, &w->transport_params);
	dsm_description_transport(params->description, &w->transport_params);
	dsm_peers_clock_init(w);
	dsm_drift_init(w);
	if (params->adjust)
		params->adjust(params->context, &w->transport_params);
	rc = dsm_engine_create(&engine, &w->engine, text);
	if (!rc)
		rc = dsm_start_begin(w, text);
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
	dsm_expiry_begin(&w->expiry, &w->transport_params, params->loop, DSM_EXPIRY_PERIOD,
			 on_expiry, w);
	dsm_peers_init(w);
	*worker = w;
	w->state = DSM_WORKER_CONNECTING;
	params->calls->state(params->context, DSM_WORKER_CONNECTING, "");
	dsm_resize_init(w);
	dsm_pause_init(w);
	dsm_start_wait(w);
	dsm_peers_begin(w);
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
	if (!w)
		return;
	dsm_control_destroy(w->control);
	w->control = NULL;
	dsm_poll_stop(&w->poll);
	ev_prepare_stop(w->p.loop, &w->before_sleep);
	ev_timer_stop(w->p.loop, &w->due);
	ev_timer_stop(w->p.loop, &w->questions);
	ev_io_stop(w->p.loop, &w->ring);
	dsm_pause_end(w);
	dsm_resize_end(w);
	dsm_start_end(w);
	dsm_expiry_end(&w->expiry, w->p.loop);
	dsm_peers_end(w);
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
