// SPDX-License-Identifier: GPL-2.0
/*
 * One key and its number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune.h"

#define US	1000u

struct knob {
	const char *name;
	uint64_t most;
	void (*set)(struct dsm_engine *engine, struct dsm_poll *poll, uint64_t value);
};

static void set_prefetch(struct dsm_engine *engine, struct dsm_poll *poll,
			 uint64_t value)
{
	(void)poll;
	dsm_engine_set_prefetch(engine, (unsigned int)value);
}

static void set_clear_hint(struct dsm_engine *engine, struct dsm_poll *poll,
			   uint64_t value)
{
	(void)poll;
	dsm_engine_set_clear_hint(engine, value);
}

static void set_class_u(struct dsm_engine *engine, struct dsm_poll *poll,
			uint64_t value)
{
	(void)poll;
	dsm_engine_set_class_u(engine, value);
}

static void set_busy_wait(struct dsm_engine *engine, struct dsm_poll *poll,
			  uint64_t value)
{
	(void)engine;
	poll->wait_ns = value * US;
}

static void set_poll(struct dsm_engine *engine, struct dsm_poll *poll,
		     uint64_t value)
{
	(void)engine;
	poll->poll_ns = value * US;
}

static void set_profile(struct dsm_engine *engine, struct dsm_poll *poll,
			uint64_t value)
{
	(void)poll;
	dsm_engine_set_profile(engine, value);
}

static const struct knob knobs[] = {
	{ "prefetch", DSM_ENGINE_PREFETCH, set_prefetch },
	{ "clear_hint", 1, set_clear_hint },
	{ "class_u", 1, set_class_u },
	{ "busy_wait_us", DSM_POLL_MOST / US, set_busy_wait },
	{ "poll_us", DSM_POLL_MOST / US, set_poll },
	{ "profile", 1, set_profile },
};

/* Digits and nothing else, at most @most. */
static bool read_number(const char *text, uint64_t most, uint64_t *value)
{
	size_t length = strspn(text, "0123456789");

	if (!length || length > 12 || text[length])
		return false;
	*value = strtoull(text, NULL, 10);
	return *value <= most;
}

bool dsm_tune(struct dsm_engine *engine, struct dsm_poll *poll,
	      const char *word, char **text)
{
	const char *sign = strchr(word, '=');
	const struct knob *k;
	uint64_t value;

	*text = NULL;
	for (k = knobs; k < knobs + sizeof(knobs) / sizeof(knobs[0]); k++) {
		if (!sign || strlen(k->name) != (size_t)(sign - word) ||
		    memcmp(k->name, word, (size_t)(sign - word)))
			continue;
		if (read_number(sign + 1, k->most, &value)) {
			k->set(engine, poll, value);
			return true;
		}
		if (asprintf(text, "%s: a number, 0 to %" PRIu64, k->name, k->most) < 0)
			*text = NULL;
		return false;
	}
	*text = strdup("want prefetch=N, clear_hint=0 or 1, class_u=0 or 1, busy_wait_us=N, poll_us=N or profile=0 or 1");
	return false;
}
