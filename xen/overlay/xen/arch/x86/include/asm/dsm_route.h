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
    DSM_CONCERNS_PORT,          /* the event channel port that it names */
    DSM_CONCERNS_EVENT,         /* the same, and nobody waits for an answer */
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
    uint8_t at;                 /* where the structure names vCPU or port */
    /*
     * Of VCPU and PORT, if that is in another slice: bytes of the structure
     * which go there, or 0: the call is refused with -ENOSYS; and to where what
     * comes back reaches, from there on, or 0.
     */
    uint8_t bytes, back;
};

enum dsm_way {
    DSM_RUN,                    /* here */
    DSM_FORWARD,                /* in the slice of what it concerns */
    DSM_SEND,                   /* the same, and the answer is 0 */
    DSM_REFUSE,                 /* -ENOSYS */
};

/*
 * The rule of a call.  Never NULL: calls that nobody has thought of are slice
 * 0's, which knows how to refuse them.
 */
const struct dsm_rule *dsm_rule(unsigned long op, unsigned long cmd);

/*
 * The number of the vCPU or port that a call of this rule concerns: `reg` is
 * the second argument, `arg` the structure, which is not looked at if it is the
 * register.  The number may be that of no vCPU and no port.
 */
unsigned int dsm_rule_subject(const struct dsm_rule *rule, unsigned long reg,
                              const void *arg);

/*
 * Where it is done.  here: the slice of who calls.  there: that of the vCPU or
 * port which the call concerns; if there is none, or no such one, the same as
 * here: then the call itself says so.  spread: vCPUs are in several slices.
 */
enum dsm_way dsm_route(const struct dsm_rule *rule, unsigned int here,
                       unsigned int there, bool spread);

/* Event channel ports of each slice of so many. */
unsigned int dsm_ports(unsigned int nr_slices);

/* That of a port; if it is in none, nr_slices. */
unsigned int dsm_port_slice(unsigned int port, unsigned int nr_slices);

/*
 * May arg be what a slice has made of a call of this rule, which succeeded?  A
 * port that it has allocated is its own.
 */
bool dsm_may_say(const struct dsm_rule *rule, const void *arg,
                 unsigned int slice, unsigned int nr_slices);

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
