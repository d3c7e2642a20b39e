/* SPDX-License-Identifier: GPL-2.0 */
/* The CPU policy of a domain, as much as dsmd uses; xen_test.c plays it. */
#ifndef FAKE_XENGUEST_H
#define FAKE_XENGUEST_H

#include "xenctrl.h"

typedef struct {
	uint32_t leaf, subleaf, a, b, c, d;
} xen_cpuid_leaf_t;
typedef struct {
	uint32_t idx, flags;
	uint64_t val;
} xen_msr_entry_t;
typedef struct xc_cpu_policy xc_cpu_policy_t;

xc_cpu_policy_t *xc_cpu_policy_init(void);
void xc_cpu_policy_destroy(xc_cpu_policy_t *policy);
/* xen/sysctl.h and xen/arch-x86/xen.h */
#define XEN_SYSCTL_cpu_policy_hvm_max 3
#define XEN_SYSCTL_cpu_policy_hvm_default 5
#define XEN_CPUID_NO_SUBLEAF 0xffffffffu
int xc_cpu_policy_get_system(xc_interface *xch, unsigned int policy_idx, xc_cpu_policy_t *policy);
int xc_cpu_policy_get_domain(xc_interface *xch, uint32_t domid, xc_cpu_policy_t *policy);
int xc_cpu_policy_set_domain(xc_interface *xch, uint32_t domid, xc_cpu_policy_t *policy);
int xc_cpu_policy_serialise(xc_interface *xch, const xc_cpu_policy_t *policy, xen_cpuid_leaf_t *leaves,
			    uint32_t *nr_leaves, xen_msr_entry_t *msrs, uint32_t *nr_msrs);
int xc_cpu_policy_update_cpuid(xc_interface *xch, xc_cpu_policy_t *policy,
			       const xen_cpuid_leaf_t *leaves, uint32_t nr);
int xc_cpu_policy_update_msrs(xc_interface *xch, xc_cpu_policy_t *policy,
			      const xen_msr_entry_t *msrs, uint32_t nr);
int xc_cpu_policy_get_size(xc_interface *xch, uint32_t *nr_leaves, uint32_t *nr_msrs);

#endif
