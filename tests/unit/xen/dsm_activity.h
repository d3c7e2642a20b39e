/* SPDX-License-Identifier: GPL-2.0-only */
/* What dsm_activity_guest.c asks of a slice. */
#ifndef DSM_ACTIVITY_H
#define DSM_ACTIVITY_H

#define VCPUS 4U
#define SLICE_OF(vcpu) ((vcpu) == 1 || (vcpu) == 2)

enum sends { SENDS_INIT, SENDS_SIPI, SENDS_NMI, SENDS_VECTOR, NR_SENDS };

void slice_begin(unsigned int k);
bool slice_is_up(unsigned int vcpu);
void slice_halts(unsigned int vcpu);
void slice_sends(unsigned int from, unsigned int to, enum sends what);
bool slice_has_tasklet(unsigned int vcpu);
void slice_tasklet(unsigned int vcpu);
bool slice_next(struct xen_dsm_ring_entry *e);
bool slice_is_full(void);
void slice_flush(bool all);
void slice_gets(const struct xen_dsm_ring_entry *e, bool at_once);

#endif
