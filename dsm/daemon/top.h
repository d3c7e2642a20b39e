/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dsmctl top: what a dsmd has counted by page, with names, and with rates over an
 * interval: the difference of two answers.
 */
#ifndef DSM_TOP_H
#define DSM_TOP_H

#include <json-c/json.h>

#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_TOP_ROWS	1024u

/**
 * @before: an earlier answer, or NULL: since it is counted.  @after: the answer.
 * @most: rows, those with the most events first.
 * Return: an object with "seconds", "events", "least", "pages"; NULL: an answer makes
 * no sense, or between them it was begun anew.
 */
struct json_object *dsm_top(struct json_object *before, struct json_object *after,
			    const struct dsm_symbols *symbols, unsigned int most);

/** As a table. */
void dsm_top_say(struct json_object *top);

#ifdef __cplusplus
}
#endif

#endif
