/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * How long each phase of an operation takes.  See the header.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libxl_vnode_phases.h"

void vnode_phases_begin(struct vnode_phases *p, uint64_t now_us)
{
    memset(p, 0, sizeof(*p));
    p->begun_us = now_us;
}

void vnode_phases_end(struct vnode_phases *p, const char *name,
                      uint64_t now_us)
{
    uint64_t us = now_us > p->begun_us ? now_us - p->begun_us : 0;
    size_t used = strlen(p->text), room = sizeof(p->text) - used;
    int len = snprintf(p->text + used, room, "%s%s=%"PRIu64, used ? "," : "",
                       name, us);

    if (len < 0 || (size_t)len >= room)
        p->text[used] = '\0';
    p->begun_us = now_us;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
