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
const char *libxl_vnode_link_to_string(libxl_vnode_link link);
const char *libxl_vnode_op_to_string(libxl_vnode_op op);
void libxl_defbool_set(libxl_defbool *b, bool value);

typedef struct { uint32_t domid; bool dying; } libxl_dominfo;

typedef struct { uint32_t nr_nodes; } libxl_physinfo;

void libxl_physinfo_init(libxl_physinfo *info);
void libxl_physinfo_dispose(libxl_physinfo *info);
int libxl_get_physinfo(libxl_ctx *ctx, libxl_physinfo *info);
int libxl_get_online_cpus(libxl_ctx *ctx);
void libxl_vnode_info_init(libxl_vnode_info *info);
libxl_dominfo *libxl_list_domain(libxl_ctx *ctx, int *nr);
int libxl_domain_info(libxl_ctx *ctx, libxl_dominfo *info, uint32_t domid);
void libxl_dominfo_list_free(libxl_dominfo *list, int nr);
char *libxl_domid_to_name(libxl_ctx *ctx, uint32_t domid);

#endif /* LIBXL_H */
