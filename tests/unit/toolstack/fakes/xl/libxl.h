/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests of xl's commands: as much of libxl as they use. */
#ifndef LIBXL_H
#define LIBXL_H

#include <poll.h>

#include "../libxl_internal.h"

#define LIBXL_EVENTMASK_ALL (~0UL)

int libxl_event_check(libxl_ctx *ctx, libxl_event **ev, uint64_t mask,
                      void *pred, void *pred_user);
void libxl_event_free(libxl_ctx *ctx, libxl_event *ev);
int libxl_osevent_beforepoll(libxl_ctx *ctx, int *nfds, struct pollfd *fds,
                             int *timeout, struct timeval now);
void libxl_osevent_afterpoll(libxl_ctx *ctx, int nfds, const struct pollfd *fds,
                             struct timeval now);
int libxl_ao_abort(libxl_ctx *ctx, const libxl_asyncop_how *how);
const char *libxl_vnode_state_to_string(libxl_vnode_state state);
const char *libxl_vnode_op_to_string(libxl_vnode_op op);
void libxl_defbool_set(libxl_defbool *b, bool value);

#endif /* LIBXL_H */
