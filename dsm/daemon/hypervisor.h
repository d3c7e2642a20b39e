/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the process gets its hypervisor from: xen_libxc.c, and in tests a played
 * one.
 */
#ifndef DSM_HYPERVISOR_H
#define DSM_HYPERVISOR_H

#include "description.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The slice of this VM on this host, with DSM switched on: the domain that the
 * description names, or a new one that is filled with what has its home here.
 * @config: says which host this is.
 * @text: what went wrong.
 * Return: NULL.
 */
struct dsm_xen *dsm_hypervisor_open(const struct dsm_description *description,
				    const struct dsm_config *config,
				    char text[DSM_ENGINE_TEXT]);

/** The VM's state, for the toolstack (docs/xenstore-paths.md).  May block: the log's thread. */
void dsm_hypervisor_publish(const struct dsm_description *description,
			    const char *state);

#ifdef __cplusplus
}
#endif

#endif
