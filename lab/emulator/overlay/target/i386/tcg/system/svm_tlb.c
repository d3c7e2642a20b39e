/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The TLB of an SVM guest and of its host: see svm-tlb.h.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/cputlb.h"

#define HOST_IDXMAP     ((1 << MMU_PHYS_IDX) - 1)
#define GUEST_IDXMAP    (HOST_IDXMAP << MMU_GUEST_BIT)
#define NESTED_IDXMAP   (1 << MMU_NESTED_IDX)

QEMU_BUILD_BUG_ON(MMU_PHYS_IDX >= MMU_GUEST_BIT);
QEMU_BUILD_BUG_ON(MMU_PHYS_IDX + MMU_GUEST_BIT > NB_MMU_MODES);

static uint16_t idxmap_of(CPUX86State *env)
{
    return env->hflags & HF_GUEST_MASK ? GUEST_IDXMAP : HOST_IDXMAP;
}

void x86_tlb_flush(CPUX86State *env)
{
    if (!env->svm_tlb.switching) {
        tlb_flush_by_mmuidx(env_cpu(env), idxmap_of(env));
    }
}

void x86_tlb_flush_nonglobal(CPUX86State *env)
{
    if (!(env->cr[4] & CR4_PGE_MASK)) {
        x86_tlb_flush(env);
    } else if (!env->svm_tlb.switching) {
        tlb_flush_nonglobal_by_mmuidx(env_cpu(env), idxmap_of(env));
    }
}

void svm_tlb_leave_host(CPUX86State *env)
{
    env->svm_tlb.switching = true;
}

void svm_tlb_enter_host(CPUX86State *env)
{
    env->svm_tlb.switching = false;
}

/*
 * A VMRUN that has failed leaves CR3 and others of a guest that has not run with
 * them.
 */
void svm_tlb_leave_guest(CPUX86State *env)
{
    SVMTLB *tlb = &env->svm_tlb;

    if (tlb->switching) {
        tlb->asid = 0;
    }
    tlb->cr3 = env->cr[3];
    tlb->pg_mode = get_pg_mode(env);
    tlb->switching = true;
}

void svm_tlb_enter_guest(CPUX86State *env, uint32_t asid, uint8_t tlb_ctl)
{
    const SVMTLB tlb = {
        .asid = asid,
        .nested_pg_mode = env->nested_pg_mode,
        .nested_cr3 = env->nested_cr3,
        .cr3 = env->cr[3],
        .pg_mode = get_pg_mode(env),
    };
    const SVMTLB *last = &env->svm_tlb;

    if (tlb_ctl == TLB_CONTROL_FLUSH_ALL_ASID) {
        tlb_flush(env_cpu(env));
    } else if (tlb_ctl != TLB_CONTROL_DO_NOTHING ||
               tlb.asid != last->asid ||
               tlb.nested_pg_mode != last->nested_pg_mode ||
               tlb.nested_cr3 != last->nested_cr3 ||
               tlb.cr3 != last->cr3 || tlb.pg_mode != last->pg_mode) {
        tlb_flush_by_mmuidx(env_cpu(env), GUEST_IDXMAP | NESTED_IDXMAP);
    }
    env->svm_tlb = tlb;
}
