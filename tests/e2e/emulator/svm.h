/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SVM as these programs use it: AMD64 APM vol. 2, chapter 15; the VMCB is in
 * its appendix B. For 32-bit and 64-bit programs of one CPU.
 */
#ifndef SVM_H
#define SVM_H

#include <stddef.h>
#include <stdint.h>

#define CPUID_SVM	0x8000000a
#define SVM_EDX_NRIPS	(1u << 3)
#define SVM_EDX_ROGPT	(1u << 21)

#define MSR_EFER	0xc0000080
#define EFER_LME	(1 << 8)
#define EFER_LMA	(1 << 10)
#define EFER_NXE	(1 << 11)
#define EFER_SVME	(1 << 12)
#define MSR_VM_HSAVE_PA	0xc0010117

#define CR0_PE		(1 << 0)
#define CR0_TS		(1 << 3)
#define CR0_WP		(1 << 16)
#define CR0_PG		(1u << 31)
#define CR4_PSE		(1 << 4)
#define CR4_PAE		(1 << 5)
#define CR4_PGE		(1 << 7)
#define CR4_OSFXSR	(1 << 9)
#define CR4_OSXSAVE	(1 << 18)

#define CODE		0x08	/* selectors of the programs */
#define DATA		0x10
#define CODE32		0x18	/* only of 64-bit programs */

#define EXIT_READ_CR0	0
#define EXIT_WRITE_CR0	0x10
#define EXIT_READ_DR0	0x20
#define EXIT_WRITE_DR0	0x30
#define EXIT_EXCEPTION	0x40
#define EXIT_VINTR	0x64
#define EXIT_CR0_SEL	0x65
#define EXIT_READ_IDTR	0x66
#define EXIT_READ_GDTR	0x67
#define EXIT_READ_LDTR	0x68
#define EXIT_READ_TR	0x69
#define EXIT_WRITE_IDTR	0x6a
#define EXIT_WRITE_GDTR	0x6b
#define EXIT_WRITE_LDTR	0x6c
#define EXIT_WRITE_TR	0x6d
#define EXIT_RDTSC	0x6e
#define EXIT_RDPMC	0x6f
#define EXIT_PUSHF	0x70
#define EXIT_POPF	0x71
#define EXIT_CPUID	0x72
#define EXIT_RSM	0x73
#define EXIT_IRET	0x74
#define EXIT_SWINT	0x75
#define EXIT_INVD	0x76
#define EXIT_PAUSE	0x77
#define EXIT_HLT	0x78
#define EXIT_INVLPG	0x79
#define EXIT_INVLPGA	0x7a
#define EXIT_IOIO	0x7b
#define EXIT_MSR	0x7c
#define EXIT_SHUTDOWN	0x7f
#define EXIT_VMRUN	0x80
#define EXIT_VMMCALL	0x81
#define EXIT_VMLOAD	0x82
#define EXIT_VMSAVE	0x83
#define EXIT_STGI	0x84
#define EXIT_CLGI	0x85
#define EXIT_SKINIT	0x86
#define EXIT_RDTSCP	0x87
#define EXIT_ICEBP	0x88
#define EXIT_WBINVD	0x89
#define EXIT_XSETBV	0x8d
#define EXIT_NPF	0x400
#define EXIT_INVALID	UINT64_MAX

#define MISC1(exit)	(1u << ((exit) - 0x60))	/* their intercepts */
#define MISC2(exit)	(1u << ((exit) - 0x80))
#define MISC2_VMRUN	MISC2(EXIT_VMRUN)
#define MISC2_VMMCALL	MISC2(EXIT_VMMCALL)

#define TLB_FLUSH_ALL	1
#define NESTED_PAGING	(1 << 0)
#define NESTED_ROGPT	(1 << 6)
#define V_IRQ		1
#define V_IGN_TPR	(1 << 4)	/* in the byte of the priority */

#define INJECT_VALID	0x80000000u
#define INJECT_INTR	(0 << 8)
#define INJECT_EXCEPTION (3 << 8)
#define INJECT_SOFT	(4 << 8)
#define INJECT_HAS_CODE	(1 << 11)

#define RFLAGS_FIXED	2
#define RFLAGS_IF	0x200

struct segment {
	uint16_t selector;
	uint16_t attributes;
	uint32_t limit;
	uint64_t base;
};

struct vmcb {
	uint16_t cr_read, cr_write;
	uint16_t dr_read, dr_write;
	uint32_t exceptions;
	uint32_t misc1, misc2;
	uint8_t reserved1[0x40 - 0x14];
	uint64_t io_permissions, msr_permissions;	/* physical addresses */
	uint64_t tsc_offset;
	uint32_t asid;
	uint8_t tlb_control, reserved2[3];
	uint8_t v_tpr, v_irq, v_priority, v_intr_masking;
	uint8_t v_vector, reserved3[3];
	uint64_t interrupt_shadow;
	uint64_t exit_code, exit_info1, exit_info2, exit_int_info;
	uint64_t nested_control;
	uint8_t reserved4[0xa8 - 0x98];
	uint64_t event_injection;
	uint64_t nested_cr3;
	uint64_t lbr_control;
	uint64_t clean;
	uint64_t next_rip;
	uint8_t reserved5[0x400 - 0xd0];
	struct segment es, cs, ss, ds, fs, gs, gdtr, ldtr, idtr, tr;
	uint8_t reserved6[0x4cb - 0x4a0];
	uint8_t cpl;
	uint8_t reserved7[4];
	uint64_t efer;
	uint8_t reserved8[0x548 - 0x4d8];
	uint64_t cr4, cr3, cr0, dr7, dr6, rflags, rip;
	uint8_t reserved9[0x5d8 - 0x580];
	uint64_t rsp;
	uint8_t reserved10[0x5f8 - 0x5e0];
	uint64_t rax;
	uint8_t reserved11[0x1000 - 0x600];
};

_Static_assert(offsetof(struct vmcb, io_permissions) == 0x40, "VMCB");
_Static_assert(offsetof(struct vmcb, asid) == 0x58, "VMCB");
_Static_assert(offsetof(struct vmcb, v_intr_masking) == 0x63, "VMCB");
_Static_assert(offsetof(struct vmcb, exit_code) == 0x70, "VMCB");
_Static_assert(offsetof(struct vmcb, nested_control) == 0x90, "VMCB");
_Static_assert(offsetof(struct vmcb, event_injection) == 0xa8, "VMCB");
_Static_assert(offsetof(struct vmcb, next_rip) == 0xc8, "VMCB");
_Static_assert(offsetof(struct vmcb, tr) == 0x490, "VMCB");
_Static_assert(offsetof(struct vmcb, cpl) == 0x4cb, "VMCB");
_Static_assert(offsetof(struct vmcb, efer) == 0x4d0, "VMCB");
_Static_assert(offsetof(struct vmcb, cr4) == 0x548, "VMCB");
_Static_assert(offsetof(struct vmcb, rip) == 0x578, "VMCB");
_Static_assert(offsetof(struct vmcb, rsp) == 0x5d8, "VMCB");
_Static_assert(offsetof(struct vmcb, rax) == 0x5f8, "VMCB");
_Static_assert(sizeof(struct vmcb) == 0x1000, "VMCB");

static struct vmcb vmcb __attribute__((aligned(4096)));
static uint8_t host_save[4096] __attribute__((aligned(4096)));

static inline uint64_t rdmsr(uint32_t msr)
{
	uint32_t low, high;

	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr));
	return (uint64_t)high << 32 | low;
}

static inline void wrmsr(uint32_t msr, uint64_t value)
{
	__asm__ volatile("wrmsr"
			 : : "c"(msr), "a"((uint32_t)value),
			     "d"((uint32_t)(value >> 32)));
}

/* EDX of CPUID Fn8000_000A: what this CPU's SVM can. */
static inline uint32_t svm_features(void)
{
	uint32_t eax = CPUID_SVM, ebx, ecx, edx;

	__asm__ volatile("cpuid"
			 : "+a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx));
	return edx;
}

static inline void enable_svm(void)
{
	wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME);
	wrmsr(MSR_VM_HSAVE_PA, (uintptr_t)host_save);
}

static inline void flat(struct segment *segment, uint16_t selector,
			uint16_t attributes)
{
	segment->selector = selector;
	segment->attributes = attributes;
	segment->limit = 0xffffffff;
	segment->base = 0;
}

/* An empty VMCB for a guest with flat segments and code of these attributes. */
static inline void clear_vmcb(uint16_t code_attributes)
{
	volatile uint8_t *byte = (volatile uint8_t *)&vmcb;

	for (unsigned int i = 0; i < sizeof(vmcb); i++)
		byte[i] = 0;
	flat(&vmcb.cs, CODE, code_attributes);
	flat(&vmcb.ds, DATA, 0xc93);
	flat(&vmcb.es, DATA, 0xc93);
	flat(&vmcb.ss, DATA, 0xc93);
	flat(&vmcb.fs, DATA, 0xc93);
	flat(&vmcb.gs, DATA, 0xc93);
	flat(&vmcb.tr, 0, 0x8b);
	flat(&vmcb.ldtr, 0, 0x82);
	vmcb.efer = rdmsr(MSR_EFER);
	vmcb.rflags = RFLAGS_FIXED;
	vmcb.asid = 1;
	vmcb.tlb_control = TLB_FLUSH_ALL;
	vmcb.misc2 = MISC2_VMRUN | MISC2_VMMCALL;
}

/*
 * Runs the guest until something intercepted. It begins with RAX as in the
 * VMCB; of its other registers only RSP is kept.
 */
static inline void run(void)
{
#ifdef __x86_64__
	__asm__ volatile("pushq %%rbp\n\t"
			 "vmrun\n\t"
			 "popq %%rbp\n\t"
			 "stgi"
			 : : "a"(&vmcb)
			 : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
			   "r11", "r12", "r13", "r14", "r15", "memory", "cc");
#else
	__asm__ volatile("pushl %%ebp\n\t"
			 "vmrun\n\t"
			 "popl %%ebp\n\t"
			 "stgi"
			 : : "a"(&vmcb)
			 : "ebx", "ecx", "edx", "esi", "edi", "memory", "cc");
#endif
}

#endif /* SVM_H */
