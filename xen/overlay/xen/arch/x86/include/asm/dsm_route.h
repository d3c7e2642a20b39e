/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In which slice is a hypercall done?  A table, and functions of it that have
 * no state and touch nothing.  See hvm/dsm_route.c.
 */
#ifndef __ASM_X86_DSM_ROUTE_H__
#define __ASM_X86_DSM_ROUTE_H__

#include <xen/types.h>

/* Whom a call concerns. */
enum dsm_concern {
    DSM_CONCERNS_NOBODY,        /* but who calls */
    DSM_CONCERNS_VCPU,          /* the vCPU that it names */
    DSM_CONCERNS_ALL,           /* all vCPUs of the guest, in all slices */
};

#define DSM_ANY_CMD (~0u)
/* dsm_rule.at: the vCPU is the second argument in a register. */
#define DSM_AT_REGISTER 0xff

struct dsm_rule {
    unsigned int op;            /* __HYPERVISOR_* */
    unsigned int cmd;           /* its sub-operation, or DSM_ANY_CMD */
    bool home_only;             /* -ENOSYS for who does not run in slice 0 */
    uint8_t concerns;           /* enum dsm_concern */
    uint8_t at;                 /* of VCPU: where the structure names it */
    /*
     * Of VCPU, if that vCPU runs in another slice: bytes of the structure which
     * go there, or 0: the call is refused with -ENOSYS.
     */
    uint8_t bytes;
};

enum dsm_way {
    DSM_RUN,                    /* here */
    DSM_FORWARD,                /* in the slice of the vCPU that it concerns */
    DSM_REFUSE,                 /* -ENOSYS */
};

/*
 * The rule of a call.  Never NULL: calls that nobody has thought of are slice
 * 0's, which knows how to refuse them.
 */
const struct dsm_rule *dsm_rule(unsigned long op, unsigned long cmd);

/*
 * The number of the vCPU that a call of this rule (VCPU) concerns: `reg` is
 * the second argument, `arg` the structure, which is not looked at if it is the
 * register.  The number may be that of no vCPU.
 */
unsigned int dsm_rule_vcpu(const struct dsm_rule *rule, unsigned long reg,
                           const void *arg);

/*
 * Where it is done.  here: the slice of who calls.  there: that of the vCPU
 * which the call concerns; without one, or if there is no such vCPU, the same
 * as here: then the call itself says so.  spread: vCPUs are in several slices.
 */
enum dsm_way dsm_route(const struct dsm_rule *rule, unsigned int here,
                       unsigned int there, bool spread);

#endif /* __ASM_X86_DSM_ROUTE_H__ */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
