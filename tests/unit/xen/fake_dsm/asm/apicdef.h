/* SPDX-License-Identifier: GPL-2.0-only */
/* The interrupt command register, as the processor has it. */
#ifndef FAKE_APICDEF_H
#define FAKE_APICDEF_H

#define APIC_VECTOR_MASK    0x000ff
#define APIC_DM_MASK        0x00700
#define APIC_DM_FIXED       0x00000
#define APIC_DM_LOWEST      0x00100
#define APIC_DM_SMI         0x00200
#define APIC_DM_REMRD       0x00300
#define APIC_DM_NMI         0x00400
#define APIC_DM_INIT        0x00500
#define APIC_DM_STARTUP     0x00600
#define APIC_INT_ASSERT     0x04000
#define APIC_INT_LEVELTRIG  0x08000

#endif
