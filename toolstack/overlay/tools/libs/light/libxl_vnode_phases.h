/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * How long each phase of an operation takes on the host's side.
 *
 * "prepare=2100,guest=3205000,settle=1800": what the toolstack does before it
 * tells the guest, the wait for the guest, what it does afterwards, in
 * microseconds.  With "undo" behind "guest" if the operation was taken back.
 * The guest's own report divides its part further.
 *
 * Pure functions: no I/O, no allocation, no locks.
 */
#ifndef LIBXL_VNODE_PHASES_H
#define LIBXL_VNODE_PHASES_H

#include <stdint.h>

struct vnode_phases {
    uint64_t begun_us;          /* when the phase under way began */
    char text[160];             /* those that have ended */
};

/* The first phase begins.  @now_us: of any clock that never goes back. */
void vnode_phases_begin(struct vnode_phases *p, uint64_t now_us);

/*
 * The phase under way ends, and the next one begins.  @name: lower case
 * letters.  One that does not fit any more is left out.
 */
void vnode_phases_end(struct vnode_phases *p, const char *name,
                      uint64_t now_us);

#endif /* LIBXL_VNODE_PHASES_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
