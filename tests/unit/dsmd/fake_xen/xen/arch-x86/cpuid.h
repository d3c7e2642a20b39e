/* SPDX-License-Identifier: GPL-2.0 */
/* As much of Xen's as dsmd uses. */
#ifndef FAKE_CPUID_H
#define FAKE_CPUID_H

#define XEN_CPUID_TSC_MODE_NEVER_EMULATE	2u

#endif
