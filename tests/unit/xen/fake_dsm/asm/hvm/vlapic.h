/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FAKE_VLAPIC_H
#define FAKE_VLAPIC_H

#include "../../fake_dsm.h"

#define vcpu_vlapic(v) (&(v)->vlapic)
void vlapic_init_sipi_one(struct vcpu *target, uint32_t icr);
void vlapic_accept_irq(struct vcpu *v, uint32_t icr_low);
uint64_t vlapic_tdt_msr_get(struct vlapic *vlapic);
void vlapic_tdt_msr_set(struct vlapic *vlapic, uint64_t value);

#endif
