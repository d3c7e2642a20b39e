/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The slice of a VM on this host: its domain, what it has of the guest's
 * memory, and its pool.  By libxenctrl only: no kernel, no devices, no toolstack.
 */
#ifndef DSM_SLICE_H
#define DSM_SLICE_H

#include <xenctrl.h>

#include "description.h"

/**
 * A domain that never runs: the vCPUs are there, since Xen wants them, and stay
 * down.  What has its home at host @self and is not detached is populated, with
 * the largest pages that fit.
 * @domid: of the new domain; the caller destroys it.
 * @text: what could not be done, with its numbers.
 * Return: 0; -errno, and then there is no domain.
 */
int dsm_slice_create(xc_interface *xch, const struct dsm_description *description,
		     unsigned int self, uint32_t *domid,
		     char text[DSM_ENGINE_TEXT]);

/**
 * Switch DSM on as slice @config->self, fill the pool, and make what has its
 * home elsewhere absent, if it is not detached.
 * @port: the event channel, for us to bind.
 * Return: 0; -errno.
 */
int dsm_slice_enable(xc_interface *xch, uint32_t domid,
		     const struct dsm_description *description,
		     const struct dsm_config *config, evtchn_port_t *port,
		     char text[DSM_ENGINE_TEXT]);

/**
 * Memory for frames from @first on, which are holes, in the largest pages that
 * fit and are free; and back to the host, up to @first + @nr.  A part at a time.
 * Return: how many frames; -errno.
 */
int64_t dsm_slice_fill(xc_interface *xch, uint32_t domid, uint64_t first, uint64_t nr);
int64_t dsm_slice_empty(xc_interface *xch, uint32_t domid, uint64_t first, uint64_t nr);

/** How many frames the domain may have, as dsm_slice_create() says at first.  Return: 0 or -errno. */
int dsm_slice_limit(xc_interface *xch, uint32_t domid, uint64_t frames);

/**
 * The CPU policy of a domain, as bytes, and back.  @bytes: at a multiple of 8, and
 * those of a peer may be anything.
 * @text: features that a guest here has only if Xen is told so, or, after an error, that it
 * can't have; "": none, or not known.
 * Return: 0; -E2BIG; -EINVAL; -ENOMEM; -errno.
 */
int dsm_slice_get_policy(xc_interface *xch, uint32_t domid, uint8_t *bytes, size_t size);
int dsm_slice_set_policy(xc_interface *xch, uint32_t domid, const uint8_t *bytes, size_t size,
			 char text[DSM_ENGINE_TEXT]);

/** Free memory of the host, and the domain's.  Return: 0 or -errno. */
int dsm_slice_memory(xc_interface *xch, uint32_t domid, struct dsm_xen_memory *memory);

#endif
