// SPDX-License-Identifier: GPL-2.0
/*
 * What state a worker is in, and what is said: below all its other parts.
 *
 * Context: the protocol thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "worker_internal.h"

static const char *const states[DSM_WORKER_STATES] = {
	[DSM_WORKER_CONNECTING] = "connecting",
	[DSM_WORKER_RUNNING] = "running",
	[DSM_WORKER_LEAVING] = "leaving",
	[DSM_WORKER_ENDED] = "ended",
	[DSM_WORKER_FAILED] = "failed",
	[DSM_WORKER_OVER] = "over",
};

const char *dsm_worker_state_name(unsigned int state)
{
	return state < DSM_WORKER_STATES ? states[state] : "?";
}

uint64_t dsm_worker_now(void *context)
{
	struct timespec t;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * DSM_NS + (uint64_t)t.tv_nsec;
}

void dsm_worker_say(struct dsm_worker *w, int level, const char *format, ...)
{
	char text[DSM_ENGINE_TEXT];
	va_list words;

	va_start(words, format);
	vsnprintf(text, sizeof(text), format, words);
	va_end(words);
	w->p.calls->log(w->p.context, level, text);
}

void dsm_worker_enter(struct dsm_worker *w, enum dsm_worker_state state,
		      const char *text)
{
	if (w->state == state)
		return;
	w->state = state;
	w->p.calls->state(w->p.context, state, text);
}

const char *dsm_worker_name(const struct dsm_worker *w, unsigned int host)
{
	return host < w->p.config->nr_hosts ? w->p.config->host[host].name : "?";
}

const char *dsm_worker_ended(const struct dsm_worker *w,
			     char text[DSM_ENGINE_TEXT])
{
	const char *failure = dsm_engine_failure(w->engine);

	if (failure)
		snprintf(text, DSM_ENGINE_TEXT, "internal the VM has %s: %.*s",
			 w->state == DSM_WORKER_OVER ? "ended" : "failed",
			 DSM_ENGINE_TEXT - 64, failure);
	else if (w->state == DSM_WORKER_LEAVING || w->state == DSM_WORKER_ENDED)
		snprintf(text, DSM_ENGINE_TEXT, "internal this host is %s",
			 dsm_worker_state_name(w->state));
	else
		return NULL;
	return text;
}

enum dsm_control_answer dsm_worker_error(char **text, const char *format, ...)
{
	va_list words;

	va_start(words, format);
	if (vasprintf(text, format, words) < 0)
		*text = NULL;
	va_end(words);
	return DSM_CONTROL_ERROR;
}

int dsm_worker_has_vcpus(const struct dsm_worker *w, char **text)
{
	unsigned int home = w->p.description->token_home;
	char why[DSM_ENGINE_TEXT];

	if (dsm_worker_ended(w, why))
		dsm_worker_error(text, "%s", why);
	else if (!w->p.description->nr_places)
		dsm_worker_error(text, "places this machine has none");
	else if (w->p.config->self != home)
		dsm_worker_error(text, "internal it is said at the machine's home, host %s",
				 dsm_worker_name(w, home));
	else
		return 0;
	return -EINVAL;
}

void dsm_worker_came(struct dsm_worker *w)
{
	if (dsm_poll_is_on(&w->poll))
		dsm_poll_event(&w->poll, dsm_worker_now(NULL));
}
