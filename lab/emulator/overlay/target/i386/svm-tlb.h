/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translations of an SVM guest stay in the TLB from one VMRUN to the next, and
 * those of the host while the guest runs (AMD64 APM vol. 2, 15.16): a TLB of a
 * CPU that tags them with the ASID.
 *
 * There are two tags: host, and guest. Each has MMU indexes of its own (cpu.h:
 * MMU_GUEST_BIT), and those of the guest belong to one ASID at a time. Another
 * one, or the same with control registers or nested page tables that are not
 * those with which it left, has them flushed. So they are kept for whom the APM
 * says that they are, and for nobody else.
 *
 * Context: the thread of the CPU; only its own TLB is touched.
 */
#ifndef I386_SVM_TLB_H
#define I386_SVM_TLB_H

/* Whose translations those of the guest's indexes are. */
typedef struct SVMTLB {
    uint32_t asid;              /* 0: nobody's */
    uint32_t nested_pg_mode;
    uint64_t nested_cr3;
    uint64_t cr3;               /* at the last #VMEXIT */
    uint32_t pg_mode;           /* as well: what it was of CR0, CR4 and EFER */
    bool switching;             /* some registers are of the other side */
} SVMTLB;

#ifdef CONFIG_USER_ONLY
static inline void x86_tlb_flush(struct CPUArchState *env)
{
}

static inline void x86_tlb_flush_nonglobal(struct CPUArchState *env)
{
}
#else
/* A control register of who runs has changed. Nested translations stay. */
void x86_tlb_flush(struct CPUArchState *env);

/* CR3 has: those of global pages stay, too. */
void x86_tlb_flush_nonglobal(struct CPUArchState *env);

/*
 * VMRUN and #VMEXIT, from their begin on: registers that change are the other
 * side's, and flush nothing.
 */
void svm_tlb_leave_host(struct CPUArchState *env);
void svm_tlb_leave_guest(struct CPUArchState *env);

/*
 * All registers of the guest are there. @asid is not 0; a @tlb_ctl of 1 (TLB_CONTROL
 * of the VMCB) flushes the host's translations, too.
 */
void svm_tlb_enter_guest(struct CPUArchState *env, uint32_t asid,
                         uint8_t tlb_ctl);
void svm_tlb_enter_host(struct CPUArchState *env);
#endif

#endif /* I386_SVM_TLB_H */
