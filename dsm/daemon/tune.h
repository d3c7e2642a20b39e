/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What can be set while the VM runs: dsmctl set.
 */
#ifndef DSM_TUNE_H
#define DSM_TUNE_H

#include "engine.h"
#include "polling.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @word: "KEY=NUMBER", with a key of the description: prefetch, clear_hint, class_u,
 * busy_wait_us, poll_us; or profile, which is none.
 * @text: what is wrong, for free(); NULL without memory.
 * Return: was it set?
 */
bool dsm_tune(struct dsm_engine *engine, struct dsm_poll *poll,
	      const char *word, char **text);

#ifdef __cplusplus
}
#endif

#endif
