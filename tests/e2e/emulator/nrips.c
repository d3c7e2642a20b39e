/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nrips: the next RIP that #VMEXIT saves (AMD64 APM vol. 2, 15.7.1) and that
 * VMRUN takes for events that it injects (15.20).
 *
 * For an instruction intercept it is where the instruction ends, whatever its
 * prefixes, operands and mode are; for all others it is 0. The first line says
 * whether the CPU has the feature. One that has not leaves the field alone, and
 * pushes RIP for what is injected.
 *
 * Each instruction is a guest of its own: the assembler notes where it begins
 * and ends. Guests run in the program's own page tables, in 64-bit mode or, as
 * CODE32 says, in compatibility mode.
 *
 * Not asked: exceptions by INT3 and INTO, which QEMU takes for software
 * interrupts.
 *
 * One CPU, no locks. What the guests push is read after they have left.
 */
#include <stdint.h>

#include "svm.h"
#include "tap.h"

#define VECTOR_DE	0
#define VECTOR_BP	3
#define VECTOR_OF	4
#define VECTOR_BR	5
#define VECTOR_UD	6
#define VECTOR_GP	13
#define VECTOR_PF	14
#define VECTOR_SOFT	0x60
#define VECTORS		0x61

#define CODE64_ATTRIBUTES 0xa9b
#define CODE32_ATTRIBUTES 0xc9b
#define USER_CODE	0xafb	/* attributes at privilege level 3 */
#define USER_DATA	0xcf3
#define GATE		0x8e	/* attributes of an interrupt gate */

#define STALE		0x1234567	/* not a next RIP */
#define RETURN		0x7654321	/* where nothing is */
#define UNMAPPED	(1ull << 30)	/* start64.S maps what is below */
#define ERROR_IDT	2		/* in an error code: the gate did it */
/* Not of events (0x60 to 0x64), task switches and FERR. */
#define ALL_MISC1	0x9fffffe0u
#define ALL_MISC2	0xffffffffu

#define STRING(x)	STRING_(x)
#define STRING_(x)	#x

struct instruction {
	const char *what;
	uint64_t start;		/* where the guest begins */
	uint64_t begin, end;	/* of the instruction */
	uint64_t exit_code;
	uint64_t code_attributes;
};

struct gate {
	uint16_t offset_low, selector;
	uint8_t stack, attributes;
	uint16_t offset_middle;
	uint32_t offset_high, reserved;
};

static struct gate idt[VECTORS] __attribute__((aligned(16)));
static uint8_t guest_stack[4096] __attribute__((aligned(16)));
static uint8_t all_ones[3 * 4096] __attribute__((aligned(4096)));
static uint64_t scratch[64] __attribute__((aligned(4096), used));
static int has_nrips;

extern uint64_t gdt[];
extern const uint8_t gdt_end[];
extern const struct instruction instructions[], instructions_end[];

void handler(void);
void guest_ends(void);
void guest_loops(void);
void guest_divides(void);
void guest_faults(void);
void guest_is_undefined(void);

/*
 * One guest: what it does first, the instruction, and what it must not reach.
 * An instruction that needs RAX finds 0 there; what needs memory has scratch.
 */
#define GUEST(mode, attributes, exit, first, text)			\
	"	.text\n"						\
	"	." mode "\n"						\
	"770:	" first "\n"						\
	"771:	" text "\n"						\
	"772:	ud2\n"							\
	"	.code64\n"						\
	"	.section .rodata.what, \"a\"\n"				\
	"773:	.asciz	\"" mode ", " text "\"\n"			\
	"	.section .rodata.instructions, \"a\"\n"			\
	"	.quad	773b, 770b, 771b, 772b, " STRING(exit) ", "	\
			STRING(attributes) "\n"
#define GUEST64_AFTER(exit, first, text)				\
	GUEST("code64", CODE64_ATTRIBUTES, exit, first, text)
#define GUEST64(exit, text) GUEST64_AFTER(exit, "", text)
#define GUEST32(exit, text) GUEST("code32", CODE32_ATTRIBUTES, exit, "", text)

__asm__(
"	.section .rodata.instructions, \"a\"\n"
"	.balign	8\n"
"instructions:\n"
/* Control and debug registers; what else reads or writes CR0. */
GUEST64(EXIT_READ_CR0, "mov %cr0, %rax")
GUEST64(EXIT_READ_CR0 + 2, "mov %cr2, %rax")
GUEST64(EXIT_READ_CR0 + 3, "mov %cr3, %r9")
GUEST64(EXIT_READ_CR0 + 4, "mov %cr4, %rax")
GUEST64(EXIT_READ_CR0 + 8, "mov %cr8, %rax")
GUEST64(EXIT_WRITE_CR0, "mov %rax, %cr0")
GUEST64(EXIT_WRITE_CR0 + 3, "mov %r9, %cr3")
GUEST64(EXIT_WRITE_CR0 + 4, "mov %rax, %cr4")
GUEST64(EXIT_WRITE_CR0 + 8, "mov %rax, %cr8")
GUEST64(EXIT_READ_CR0, "smsw %ax")
GUEST64(EXIT_READ_CR0, "smsw scratch + 0x10(%rax)")
GUEST64(EXIT_WRITE_CR0, "lmsw %ax")
GUEST64(EXIT_WRITE_CR0, "lmsw scratch(, %rax, 4)")
GUEST64(EXIT_WRITE_CR0, "clts")
GUEST64(EXIT_READ_DR0, "mov %db0, %rax")
GUEST64(EXIT_READ_DR0 + 7, "mov %db7, %r8")
GUEST64(EXIT_WRITE_DR0, "mov %rax, %db0")
GUEST64(EXIT_WRITE_DR0 + 7, "mov %rax, %db7")
/* Descriptor tables, with all kinds of operands. */
GUEST64(EXIT_READ_IDTR, "sidt scratch")
GUEST64(EXIT_READ_IDTR, "sidt scratch(%rip)")
GUEST64(EXIT_READ_GDTR, "sgdt 0x12(%rax)")
GUEST64(EXIT_READ_GDTR, "sgdt scratch(%rax, %rax, 8)")
GUEST64(EXIT_READ_LDTR, "sldt %eax")
GUEST64(EXIT_READ_LDTR, "sldt %r8")
GUEST64(EXIT_READ_LDTR, "sldt scratch")
GUEST64(EXIT_READ_TR, "str %ax")
GUEST64(EXIT_READ_TR, "str scratch(%rip)")
GUEST64(EXIT_WRITE_IDTR, "lidt scratch")
GUEST64(EXIT_WRITE_IDTR, "lidt scratch(%r12, %r13, 2)")
GUEST64(EXIT_WRITE_GDTR, "lgdt scratch(%rip)")
GUEST64(EXIT_WRITE_GDTR, "lgdt %gs:scratch(%eax)")
GUEST64(EXIT_WRITE_LDTR, "lldt %ax")
GUEST64(EXIT_WRITE_LDTR, "lldt scratch")
GUEST64(EXIT_WRITE_TR, "ltr %ax")
GUEST64(EXIT_WRITE_TR, "ltr 0x70(%rax)")
/* Those without operands, and their prefixes. */
GUEST64(EXIT_RDTSC, "rdtsc")
GUEST64(EXIT_RDTSC, "rex.w rdtsc")
GUEST64(EXIT_RDTSCP, "rdtscp")
GUEST64(EXIT_RDTSCP, "rex.w rdtscp")
GUEST64(EXIT_RDPMC, "rdpmc")
GUEST64(EXIT_PUSHF, "pushfq")
GUEST64(EXIT_PUSHF, "pushfw")
GUEST64(EXIT_POPF, "popfq")
GUEST64(EXIT_POPF, "popfw")
GUEST64(EXIT_CPUID, "cpuid")
GUEST64(EXIT_CPUID, ".byte 0x2e, 0x3e, 0x0f, 0xa2")
GUEST64(EXIT_CPUID, ".byte 0x64, 0x67, 0x48, 0x0f, 0xa2")
GUEST64(EXIT_CPUID, ".fill 13, 1, 0x2e; .byte 0x0f, 0xa2")
GUEST64(EXIT_RSM, "rsm")
GUEST64(EXIT_IRET, "iretl")
GUEST64(EXIT_IRET, "iretq")
GUEST64(EXIT_SWINT, "int $0x60")
GUEST64(EXIT_SWINT, ".byte 0x2e, 0x48, 0xcd, 0x03")
GUEST64(EXIT_INVD, "invd")
GUEST64(EXIT_PAUSE, "pause")
GUEST64(EXIT_PAUSE, "rep; pause")
GUEST64(EXIT_HLT, "hlt")
GUEST64(EXIT_HLT, ".byte 0x26, 0x48, 0xf4")
GUEST64(EXIT_INVLPG, "invlpg (%rax)")
GUEST64(EXIT_INVLPG, "invlpg %fs:scratch(%rax, %rax, 4)")
GUEST64(EXIT_INVLPGA, "invlpga")
GUEST64(EXIT_ICEBP, "int1")
GUEST64(EXIT_WBINVD, "wbinvd")
GUEST64(EXIT_XSETBV, "xsetbv")
/* Ports and MSRs. */
GUEST64(EXIT_IOIO, "inb $0x60, %al")
GUEST64(EXIT_IOIO, "inw %dx, %ax")
GUEST64(EXIT_IOIO, "outl %eax, $0x60")
GUEST64(EXIT_IOIO, "outb %al, %dx")
GUEST64(EXIT_IOIO, "insb")
GUEST64(EXIT_IOIO, "rep; outsw")
GUEST64(EXIT_IOIO, "rep; addr32 insl")
GUEST64(EXIT_MSR, "rdmsr")
GUEST64(EXIT_MSR, "wrmsr")
GUEST64(EXIT_MSR, "rex.w wrmsr")
/* SVM itself. */
GUEST64(EXIT_VMRUN, "vmrun")
GUEST64(EXIT_VMRUN, "addr32 vmrun")
GUEST64(EXIT_VMMCALL, "vmmcall")
GUEST64(EXIT_VMMCALL, ".byte 0x2e, 0x0f, 0x01, 0xd9")
GUEST64(EXIT_VMLOAD, "vmload")
GUEST64(EXIT_VMSAVE, "vmsave")
GUEST64(EXIT_STGI, "stgi")
GUEST64(EXIT_CLGI, "clgi")
GUEST64(EXIT_SKINIT, "skinit")
/* Not the first of a block; in two pages; after a jump back. */
GUEST64_AFTER(EXIT_CPUID, "incl %ebx; testl %eax, %ebx; nop", "cpuid")
GUEST64_AFTER(EXIT_SWINT, "incl %ebx; testl %eax, %ebx; nop", "int $0x60")
GUEST64_AFTER(EXIT_MSR, ".balign 4096; .fill 4095, 1, 0x90", "rdmsr")
GUEST64_AFTER(EXIT_VMMCALL, ".balign 4096; .fill 4094, 1, 0x90", "vmmcall")
GUEST64_AFTER(EXIT_HLT, "movl $9, %ecx; 774: loop 774b", "rex.w hlt")
/* In compatibility mode. */
GUEST32(EXIT_CPUID, "cpuid")
GUEST32(EXIT_CPUID, ".byte 0x66, 0x67, 0x0f, 0xa2")
GUEST32(EXIT_READ_CR0, "mov %cr0, %ebx")
GUEST32(EXIT_WRITE_GDTR, "lgdt scratch(%eax)")
GUEST32(EXIT_WRITE_GDTR, "addr16 lgdt 0x1234(%bx, %si)")
GUEST32(EXIT_SWINT, "int $0x60")
GUEST32(EXIT_PUSHF, "pushfl")
GUEST32(EXIT_IOIO, "outl %eax, %dx")
GUEST32(EXIT_VMMCALL, "vmmcall")
GUEST32(EXIT_EXCEPTION + VECTOR_BR, "bound %eax, scratch + 8")
"	.section .rodata.instructions, \"a\"\n"
"instructions_end:\n"

"	.text\n"
"handler:\n"
"guest_ends:\n"
"	vmmcall\n"
"guest_loops:\n"
"	jmp	guest_loops\n"
"guest_divides:\n"
"	divl	scratch\n"
"guest_faults:\n"
"	movl	%eax, (%rax)\n"
"guest_is_undefined:\n"
"	ud2\n"
);

static uint64_t get_cr(unsigned int number)
{
	uint64_t value;

	switch (number) {
	case 0:
		__asm__ volatile("movq %%cr0, %0" : "=r"(value));
		break;
	case 3:
		__asm__ volatile("movq %%cr3, %0" : "=r"(value));
		break;
	default:
		__asm__ volatile("movq %%cr4, %0" : "=r"(value));
		break;
	}
	return value;
}

static void set_gate(unsigned int vector, uint8_t attributes)
{
	uint64_t offset = (uintptr_t)handler;

	idt[vector] = (struct gate){
		.offset_low = offset,
		.selector = CODE,
		.attributes = attributes,
		.offset_middle = offset >> 16,
		.offset_high = offset >> 32,
	};
}

static void prepare(uint64_t rip, uint16_t code_attributes)
{
	clear_vmcb(code_attributes);
	if (code_attributes == CODE32_ATTRIBUTES)
		vmcb.cs.selector = CODE32;
	vmcb.gdtr.limit = gdt_end - (const uint8_t *)gdt - 1;
	vmcb.gdtr.base = (uintptr_t)gdt;
	vmcb.idtr.limit = sizeof(idt) - 1;
	vmcb.idtr.base = (uintptr_t)idt;
	vmcb.cr0 = get_cr(0);
	vmcb.cr3 = get_cr(3);
	vmcb.cr4 = get_cr(4) | CR4_OSXSAVE;
	vmcb.rip = rip;
	vmcb.rsp = (uintptr_t)guest_stack + sizeof(guest_stack);
	vmcb.io_permissions = (uintptr_t)all_ones;
	vmcb.msr_permissions = (uintptr_t)all_ones;
	vmcb.next_rip = STALE;
}

/* One line: where the guest left, and the next RIP of that. */
static void check_exit(const char *what, uint64_t exit_code, uint64_t rip,
		       uint64_t next_rip)
{
	uint64_t wanted = has_nrips ? next_rip : STALE;
	int passed = vmcb.exit_code == exit_code && vmcb.rip == rip &&
		     vmcb.next_rip == wanted;

	if (!passed) {
		print("# exit code ");
		print_number(vmcb.exit_code);
		print(" instead of ");
		print_number(exit_code);
		print(", RIP ");
		print_number(vmcb.rip);
		print(" instead of ");
		print_number(rip);
		print(", next RIP ");
		print_number(vmcb.next_rip);
		print(" instead of ");
		print_number(wanted);
		print("\n");
	}
	print_result(passed);
	print(what);
	print("\n");
}

static void test_instructions(void)
{
	for (const struct instruction *i = instructions; i < instructions_end;
	     i++) {
		prepare(i->start, i->code_attributes);
		vmcb.cr_read = 0xffff;
		vmcb.cr_write = 0xffff;
		vmcb.dr_read = 0xffff;
		vmcb.dr_write = 0xffff;
		vmcb.misc1 = ALL_MISC1;
		vmcb.misc2 = ALL_MISC2;
		vmcb.exceptions = UINT32_MAX;
		/* BOUND: the limits are 1 and 1, and EAX is 0. */
		scratch[1] = 0x100000001;
		run();
		check_exit(i->what, i->exit_code, i->begin, i->end);
	}
}

static void test_selective_write(void)
{
	extern const uint8_t begin[] __asm__("selective_begin");
	extern const uint8_t end[] __asm__("selective_end");

	__asm__ volatile("jmp selective_end\n"
			 "selective_begin: movq %rax, %cr0\n"
			 "selective_end:");
	prepare((uintptr_t)begin, CODE64_ATTRIBUTES);
	vmcb.rax = get_cr(0) ^ CR0_WP;
	vmcb.misc1 = MISC1(EXIT_CR0_SEL);
	run();
	check_exit("selective, mov %rax, %cr0", EXIT_CR0_SEL, (uintptr_t)begin,
		   (uintptr_t)end);
}

/* What is no instruction intercept has no next RIP. */
static void test_events(void)
{
	static const struct {
		const char *what;
		unsigned int vector;
		void (*guest)(void);
	} faults[] = {
		{ "no instruction, #DE", VECTOR_DE, guest_divides },
		{ "no instruction, #UD", VECTOR_UD, guest_is_undefined },
		{ "no instruction, #PF", VECTOR_PF, guest_faults },
	};

	scratch[0] = 0;
	for (unsigned int i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		prepare((uintptr_t)faults[i].guest, CODE64_ATTRIBUTES);
		vmcb.rax = UNMAPPED;
		vmcb.exceptions = 1u << faults[i].vector;
		run();
		check_exit(faults[i].what, EXIT_EXCEPTION + faults[i].vector,
			   (uintptr_t)faults[i].guest, 0);
	}

	prepare((uintptr_t)guest_loops, CODE64_ATTRIBUTES);
	vmcb.misc1 = MISC1(EXIT_VINTR);
	vmcb.rflags = RFLAGS_FIXED | RFLAGS_IF;
	vmcb.v_irq = V_IRQ;
	vmcb.v_priority = V_IGN_TPR;
	vmcb.v_intr_masking = 1;
	vmcb.v_vector = VECTOR_SOFT;
	run();
	check_exit("no instruction, virtual interrupt", EXIT_VINTR,
		   (uintptr_t)guest_loops, 0);

	prepare((uintptr_t)guest_is_undefined, CODE64_ATTRIBUTES);
	vmcb.misc1 = MISC1(EXIT_SHUTDOWN);
	vmcb.idtr.limit = 0;
	run();
	check_exit("no instruction, shutdown", EXIT_SHUTDOWN,
		   (uintptr_t)guest_is_undefined, 0);

	prepare((uintptr_t)guest_ends, CODE64_ATTRIBUTES);
	vmcb.asid = 0;
	run();
	print_result(vmcb.exit_code == EXIT_INVALID &&
		     vmcb.next_rip == (has_nrips ? 0 : STALE));
	print("no instruction, invalid VMCB\n");
}

/* The handler leaves with the frame on its stack; RIP comes first. */
static void check_pushed(const char *what, unsigned int skip, uint64_t wanted)
{
	const uint64_t *frame = (const uint64_t *)vmcb.rsp + skip;

	print_result(vmcb.exit_code == EXIT_VMMCALL &&
		     vmcb.rip == (uintptr_t)handler && *frame == wanted);
	print(what);
	print("\n");
}

static void test_injection(void)
{
	uint64_t rip = (uintptr_t)guest_ends;

	set_gate(VECTOR_BP, GATE);
	set_gate(VECTOR_OF, GATE);
	set_gate(VECTOR_GP, GATE);
	set_gate(VECTOR_SOFT, GATE);

	prepare(rip, CODE64_ATTRIBUTES);
	vmcb.event_injection = INJECT_VALID | INJECT_SOFT | VECTOR_SOFT;
	vmcb.next_rip = RETURN;
	run();
	check_pushed("inject INTn", 0, has_nrips ? RETURN : rip);

	prepare(rip, CODE64_ATTRIBUTES);
	vmcb.event_injection = INJECT_VALID | INJECT_EXCEPTION | VECTOR_BP;
	vmcb.next_rip = RETURN;
	run();
	check_pushed("inject #BP", 0, has_nrips ? RETURN : rip);

	prepare(rip, CODE32_ATTRIBUTES);
	vmcb.event_injection = INJECT_VALID | INJECT_EXCEPTION | VECTOR_OF;
	vmcb.next_rip = RETURN;
	run();
	check_pushed("inject #OF", 0, has_nrips ? RETURN : rip);

	/* A fault and an interrupt come back to where the guest is. */
	prepare(rip, CODE64_ATTRIBUTES);
	vmcb.event_injection = INJECT_VALID | INJECT_EXCEPTION |
			       INJECT_HAS_CODE | VECTOR_GP;
	vmcb.next_rip = RETURN;
	run();
	check_pushed("inject #GP", 1, rip);

	prepare(rip, CODE64_ATTRIBUTES);
	vmcb.event_injection = INJECT_VALID | INJECT_INTR | VECTOR_SOFT;
	vmcb.next_rip = RETURN;
	run();
	check_pushed("inject an interrupt", 0, rip);
}

/* An instruction may not go through a gate that is not for its level. */
static void test_privilege(void)
{
	static const struct {
		const char *what;
		uint32_t injected;
		unsigned int vector;
	} cases[] = {
		{ "inject INTn at level 3", INJECT_SOFT, VECTOR_SOFT },
		{ "inject #BP at level 3", INJECT_EXCEPTION, VECTOR_BP },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		set_gate(cases[i].vector, GATE);
		prepare((uintptr_t)guest_ends, USER_CODE);
		vmcb.ss.attributes = USER_DATA;
		vmcb.cpl = 3;
		vmcb.exceptions = 1u << VECTOR_GP;
		vmcb.event_injection = INJECT_VALID | cases[i].injected |
				       cases[i].vector;
		run();
		print_result(vmcb.exit_code == EXIT_EXCEPTION + VECTOR_GP &&
			     vmcb.exit_info1 ==
			     cases[i].vector * 8 + ERROR_IDT);
		print(cases[i].what);
		print("\n");
	}
}

void main(void);

void main(void)
{
	has_nrips = !!(svm_features() & SVM_EDX_NRIPS);
	print(has_nrips ? "# nrips\n" : "# no nrips\n");
	for (unsigned int i = 0; i < sizeof(all_ones); i++)
		all_ones[i] = 0xff;
	enable_svm();
	test_instructions();
	test_selective_write();
	test_events();
	test_injection();
	test_privilege();
	finish();
}
