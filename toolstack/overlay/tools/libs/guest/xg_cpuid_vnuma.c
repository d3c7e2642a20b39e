/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * Give a new domain a CPUID policy that agrees with its vNUMA layout.
 *
 * Called once, after xc_cpuid_apply_policy() and before the domain runs; no
 * locking.  Which leaves matter depends on the vendor:
 *  - AMD, Hygon: 0x80000008 is where guests read the package from, and the
 *    last-level cache too.  Xen hides TOPOEXT and with it 0x8000001d/1e, and
 *    clears them again when it takes over a policy.
 *  - Intel and its likes: 4.  Xen clears the data of 0xb, so that guests fall
 *    back to 1 and 4.
 */
#include <errno.h>

#include "xg_private.h"
#include "xg_vnuma_topology.h"

#include <xen/asm/x86-vendors.h>

static void apply_leaf4(struct cpu_policy *p, unsigned int shift)
{
    uint32_t eax[ARRAY_SIZE(p->cache.raw)];
    unsigned int i, llc;

    for ( i = 0; i < ARRAY_SIZE(eax); i++ )
        eax[i] = p->cache.raw[i].a;

    llc = vnuma_leaf4_llc_level(eax, ARRAY_SIZE(eax));

    for ( i = 0; i < ARRAY_SIZE(eax) && p->cache.subleaf[i].type; i++ )
        p->cache.raw[i].a =
            vnuma_leaf4_eax(eax[i], shift, p->cache.subleaf[i].level == llc);
}

int xc_cpuid_apply_vnuma(xc_interface *xch, uint32_t domid,
                         const unsigned int *vcpu_to_vnode,
                         unsigned int nr_vcpus)
{
    unsigned int shift = vnuma_package_shift(vcpu_to_vnode, nr_vcpus);
    xc_cpu_policy_t *policy = xc_cpu_policy_init();
    struct cpu_policy *p;
    int rc;

    if ( !policy )
        return -ENOMEM;

    if ( xc_cpu_policy_get_domain(xch, domid, policy) )
    {
        rc = errno ? -errno : -EINVAL;
        PERROR("Failed to read d%u's CPUID policy", domid);
        goto out;
    }

    p = &policy->policy;
    p->basic.raw[1].b = vnuma_leaf1_ebx(p->basic.raw[1].b, shift);
    if ( p->x86_vendor & (X86_VENDOR_AMD | X86_VENDOR_HYGON) )
        p->extd.raw[8].c = vnuma_leaf80000008_ecx(p->extd.raw[8].c, shift);
    else
        apply_leaf4(p, shift);

    rc = xc_cpu_policy_set_domain(xch, domid, policy);
    if ( rc )
    {
        rc = errno ? -errno : -EINVAL;
        PERROR("Failed to set d%u's CPUID policy for its vNUMA layout", domid);
    }

 out:
    xc_cpu_policy_destroy(policy);

    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
