/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bare: what the lab asks of QEMU's CPU, asked without a system in between.
 *
 * A multiboot program for one CPU, in 32-bit protected mode without paging.
 * It prints TAP lines to the first serial port, one for each promise of the
 * architecture that QEMU's own emulation breaks (lab/emulator/hooks), and ends
 * in a triple fault, for which QEMU exits (-no-reboot).
 *
 *   hook 0002: XSAVE, XSAVEOPT and XRSTOR raise #NM when CR0.TS is set
 *              (AMD64 APM vol. 4)
 *   hook 0003: an intercepted read of a control register leaves the guest, and
 *              no other one does (APM vol. 2, 15.8)
 *   hook 0004: an event that VMRUN injects is delivered once (APM vol. 2,
 *              15.20)
 *
 * Register and VMCB layouts: APM vol. 2, appendix B. Multiboot: its
 * specification, version 0.6.96.
 *
 * Locking: none, one CPU. The handlers run in the context of main() and of the
 * guest; what they count is volatile.
 */
#include <stddef.h>
#include <stdint.h>

#define COM1		0x3f8
#define LINE_STATUS	5	/* its register */
#define LINE_IDLE	0x20

#define MSR_EFER	0xc0000080
#define EFER_SVME	(1 << 12)
#define MSR_VM_HSAVE_PA	0xc0010117

#define CR0_TS		(1 << 3)
#define CR4_OSFXSR	(1 << 9)
#define CR4_OSXSAVE	(1 << 18)
#define XCR0_X87_SSE	3

#define VECTOR_NM	7
#define VECTOR_INJECTED	0x60
#define VECTOR_TIMER	0x68	/* a multiple of 8: IRQ 0 of PIC1 */
#define VECTORS		0x70

#define CODE		0x08	/* selectors */
#define DATA		0x10

#define PIC1		0x20	/* ports of the interrupt controllers */
#define PIC1_DATA	0x21
#define PIC2_DATA	0xa1
#define PIC_INIT	0x11	/* four words follow each other */
#define PIC_EOI		0x20
#define PIC_SLAVE_ON_2	4
#define PIC_8086	1
#define PIC_ALL		0xff	/* masked */
#define PIC_TIMER	0x01
#define PIT_DATA	0x40	/* ports of the timer */
#define PIT_COMMAND	0x43
#define PIT_PERIODIC	0x34	/* counter 0, both bytes, mode 2 */
#define PIT_TICKS	120	/* of 838 ns: 0.1 ms */

#define EXIT_READ_CR0	0
#define EXIT_VMMCALL	0x81
#define MISC2_VMRUN	1
#define MISC2_VMMCALL	2
#define INJECT_VALID	0x80000000u	/* type 0: external interrupt */
#define RFLAGS_FIXED	2
#define RFLAGS_IF	0x200

#define INJECTIONS	100
#define GUEST_LOOPS	200000	/* some timer ticks long */

#define STRING(x)	STRING_(x)
#define STRING_(x)	#x

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
	uint8_t reserved1[0x58 - 0x14];
	uint32_t asid;
	uint8_t tlb_control, reserved2[3];
	uint8_t v_tpr, v_irq, v_priority, v_intr_masking;
	uint8_t v_vector, reserved3[3];
	uint64_t interrupt_shadow;
	uint64_t exit_code, exit_info1, exit_info2, exit_int_info;
	uint8_t reserved4[0xa8 - 0x90];
	uint64_t event_injection;
	uint8_t reserved5[0x400 - 0xb0];
	struct segment es, cs, ss, ds, fs, gs, gdtr, ldtr, idtr, tr;
	uint8_t reserved6[0x4d0 - 0x4a0];
	uint64_t efer;
	uint8_t reserved7[0x548 - 0x4d8];
	uint64_t cr4, cr3, cr0, dr7, dr6, rflags, rip;
	uint8_t reserved8[0x5d8 - 0x580];
	uint64_t rsp;
	uint8_t reserved9[0x5f8 - 0x5e0];
	uint64_t rax;
	uint8_t reserved10[0x1000 - 0x600];
};

_Static_assert(offsetof(struct vmcb, asid) == 0x58, "VMCB");
_Static_assert(offsetof(struct vmcb, v_intr_masking) == 0x63, "VMCB");
_Static_assert(offsetof(struct vmcb, exit_code) == 0x70, "VMCB");
_Static_assert(offsetof(struct vmcb, event_injection) == 0xa8, "VMCB");
_Static_assert(offsetof(struct vmcb, tr) == 0x490, "VMCB");
_Static_assert(offsetof(struct vmcb, efer) == 0x4d0, "VMCB");
_Static_assert(offsetof(struct vmcb, cr4) == 0x548, "VMCB");
_Static_assert(offsetof(struct vmcb, rip) == 0x578, "VMCB");
_Static_assert(offsetof(struct vmcb, rsp) == 0x5d8, "VMCB");
_Static_assert(offsetof(struct vmcb, rax) == 0x5f8, "VMCB");
_Static_assert(sizeof(struct vmcb) == 0x1000, "VMCB");

static struct vmcb vmcb __attribute__((aligned(4096)));
static uint8_t host_save[4096] __attribute__((aligned(4096)));
static uint8_t fpu_area[4096] __attribute__((aligned(64)));
static uint8_t guest_stack[4096] __attribute__((aligned(16)));
static uint64_t idt[VECTORS] __attribute__((aligned(8)));
static uint64_t gdt[] __attribute__((aligned(8))) = {
	0,
	0x00cf9b000000ffff,	/* CODE: all of 4 GiB, 32-bit */
	0x00cf93000000ffff,	/* DATA */
};

static volatile unsigned int not_available, injected, ticks;
static unsigned int tests;

/* Entry points in assembly: the start, the handlers, the guests. */
void start(void);
void handle_nm(void);
void handle_injected(void);
void handle_timer(void);
void read_cr0(void);
void read_cr2(void);
void read_cr3(void);
void read_cr4(void);
void after_reads(void);
void guest_reads(void);
void guest_loops(void);

__asm__(
"	.section .multiboot, \"a\"\n"
"	.balign	4\n"
"	.long	0x1badb002, 0, -0x1badb002\n"
"	.text\n"
"	.globl	start\n"
"start:	movl	$stack_end, %esp\n"
"	call	main\n"
"	.bss\n"
"	.balign	16\n"
"	.skip	16384\n"
"stack_end:\n"
"	.text\n"
/* The instruction is executed again, with TS clear. */
"handle_nm:\n"
"	incl	not_available\n"
"	clts\n"
"	iret\n"
"handle_injected:\n"
"	incl	injected\n"
"	iret\n"
"handle_timer:\n"
"	pushl	%eax\n"
"	movb	$" STRING(PIC_EOI) ", %al\n"
"	outb	%al, $" STRING(PIC1) "\n"
"	incl	ticks\n"
"	popl	%eax\n"
"	iret\n"
"guest_reads:\n"
"read_cr0: movl	%cr0, %eax\n"
"read_cr2: movl	%cr2, %eax\n"
"read_cr3: movl	%cr3, %eax\n"
"read_cr4: movl	%cr4, %eax\n"
"after_reads:\n"
"	vmmcall\n"
"guest_loops:\n"
"	movl	$" STRING(GUEST_LOOPS) ", %ecx\n"
"1:	decl	%ecx\n"
"	jnz	1b\n"
"	vmmcall\n"
);

static void outb(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static uint8_t inb(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static void print(const char *text)
{
	for (; *text; text++) {
		while (!(inb(COM1 + LINE_STATUS) & LINE_IDLE))
			;
		outb(COM1, *text);
	}
}

static void print_number(uint32_t number)
{
	char digits[11], *next = digits + sizeof(digits) - 1;

	*next = 0;
	do {
		*--next = '0' + number % 10;
		number /= 10;
	} while (number);
	print(next);
}

/* One TAP line; `seen` and `wanted` are shown when they differ. */
static void check(const char *what, uint32_t seen, uint32_t wanted)
{
	print(seen == wanted ? "ok " : "not ok ");
	print_number(++tests);
	print(" - ");
	print(what);
	if (seen != wanted) {
		print(": ");
		print_number(seen);
		print(" instead of ");
		print_number(wanted);
	}
	print("\n");
}

static uint64_t rdmsr(uint32_t msr)
{
	uint64_t value;

	__asm__ volatile("rdmsr" : "=A"(value) : "c"(msr));
	return value;
}

static void wrmsr(uint32_t msr, uint64_t value)
{
	__asm__ volatile("wrmsr" : : "c"(msr), "A"(value));
}

static uint32_t get_cr0(void)
{
	uint32_t value;

	__asm__ volatile("movl %%cr0, %0" : "=r"(value));
	return value;
}

static void set_cr0(uint32_t value)
{
	__asm__ volatile("movl %0, %%cr0" : : "r"(value) : "memory");
}

static uint32_t get_cr4(void)
{
	uint32_t value;

	__asm__ volatile("movl %%cr4, %0" : "=r"(value));
	return value;
}

static void set_handler(unsigned int vector, void (*handler)(void))
{
	uint32_t address = (uint32_t)handler;

	/* A present 32-bit interrupt gate. */
	idt[vector] = (uint64_t)(address & 0xffff0000u) << 32 |
		      (uint64_t)0x8e00 << 32 | CODE << 16 |
		      (address & 0xffff);
}

static void load_tables(void)
{
	struct {
		uint16_t limit;
		uint32_t base;
	} __attribute__((packed)) gdtr = { sizeof(gdt) - 1, (uint32_t)gdt },
				  idtr = { sizeof(idt) - 1, (uint32_t)idt };

	set_handler(VECTOR_NM, handle_nm);
	set_handler(VECTOR_INJECTED, handle_injected);
	set_handler(VECTOR_TIMER, handle_timer);
	__asm__ volatile("lgdt %0\n\t"
			 "ljmp %2, $1f\n"
			 "1:	movl %3, %%eax\n\t"
			 "movl %%eax, %%ds\n\t"
			 "movl %%eax, %%es\n\t"
			 "movl %%eax, %%ss\n\t"
			 "lidt %1"
			 : : "m"(gdtr), "m"(idtr), "i"(CODE), "i"(DATA)
			 : "eax", "memory");
}

/* --- hook 0002 ----------------------------------------------------------- */

#define RAISES_NM(instruction) do {					\
	not_available = 0;						\
	set_cr0(get_cr0() | CR0_TS);					\
	__asm__ volatile(instruction " (%0)"				\
			 : : "r"(fpu_area), "a"(XCR0_X87_SSE), "d"(0)	\
			 : "memory");					\
	check(instruction " with CR0.TS raises #NM", not_available, 1);	\
	__asm__ volatile("clts");					\
} while (0)

static void test_fpu(void)
{
	uint32_t cr4 = get_cr4() | CR4_OSFXSR | CR4_OSXSAVE;

	__asm__ volatile("movl %0, %%cr4" : : "r"(cr4));
	__asm__ volatile("xsetbv" : : "c"(0), "a"(XCR0_X87_SSE), "d"(0));
	RAISES_NM("fxsave");
	RAISES_NM("fxrstor");
	RAISES_NM("xsave");
	RAISES_NM("xsaveopt");
	RAISES_NM("xrstor");
}

/* --- guests -------------------------------------------------------------- */

static void flat(struct segment *segment, uint16_t selector,
		 uint16_t attributes)
{
	segment->selector = selector;
	segment->attributes = attributes;
	segment->limit = 0xffffffff;
	segment->base = 0;
}

/* A guest in this program's own mode and memory, about to run `entry`. */
static void prepare(void (*entry)(void))
{
	uint8_t *byte = (uint8_t *)&vmcb;

	for (unsigned int i = 0; i < sizeof(vmcb); i++)
		byte[i] = 0;
	flat(&vmcb.cs, CODE, 0xc9b);
	flat(&vmcb.ds, DATA, 0xc93);
	flat(&vmcb.es, DATA, 0xc93);
	flat(&vmcb.ss, DATA, 0xc93);
	flat(&vmcb.fs, DATA, 0xc93);
	flat(&vmcb.gs, DATA, 0xc93);
	flat(&vmcb.tr, 0, 0x8b);
	flat(&vmcb.ldtr, 0, 0x82);
	vmcb.gdtr.limit = sizeof(gdt) - 1;
	vmcb.gdtr.base = (uint32_t)gdt;
	vmcb.idtr.limit = sizeof(idt) - 1;
	vmcb.idtr.base = (uint32_t)idt;
	vmcb.efer = rdmsr(MSR_EFER);
	vmcb.cr0 = get_cr0();
	vmcb.cr4 = get_cr4();
	vmcb.rflags = RFLAGS_FIXED;
	vmcb.rip = (uint32_t)entry;
	vmcb.rsp = (uint32_t)guest_stack + sizeof(guest_stack);
	vmcb.asid = 1;
	vmcb.misc2 = MISC2_VMRUN | MISC2_VMMCALL;
}

/* Runs it until something intercepted; returns the exit code. */
static uint32_t run(void)
{
	__asm__ volatile("pushl %%ebp\n\t"
			 "vmrun\n\t"
			 "popl %%ebp\n\t"
			 "stgi"
			 : : "a"(&vmcb)
			 : "ebx", "ecx", "edx", "esi", "edi", "memory", "cc");
	return vmcb.exit_code;
}

/* --- hook 0003 ----------------------------------------------------------- */

static void test_reads_of_control_registers(void)
{
	static const struct {
		unsigned int number;
		void (*at)(void);
		const char *what;
	} cases[] = {
		{ 0, read_cr0, "an intercepted read of CR0 leaves the guest" },
		{ 2, read_cr2, "an intercepted read of CR2 leaves the guest" },
		{ 3, read_cr3, "an intercepted read of CR3 leaves the guest" },
		{ 4, read_cr4, "an intercepted read of CR4 leaves the guest" },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		prepare(guest_reads);
		vmcb.cr_read = 1 << cases[i].number;
		check(cases[i].what, run(), EXIT_READ_CR0 + cases[i].number);
		check("and no read before it", vmcb.rip,
		      (uint32_t)cases[i].at);
	}
	/* Only that of CR0 is intercepted, and the guest begins behind it. */
	prepare(read_cr2);
	vmcb.cr_read = 1;
	check("other reads than that of CR0 do not", run(), EXIT_VMMCALL);
	check("each read was done", vmcb.rip, (uint32_t)after_reads);
}

/* --- hook 0004 ----------------------------------------------------------- */

/*
 * The timer's interrupt reaches the CPU while a guest runs to which an event
 * was injected; with interrupts off here and V_INTR_MASKING, it has to wait
 * until the guest has left, but QEMU's CPU stops for a look at it.
 */
static void test_injection(void)
{
	unsigned int wrong = 0, other_exits = 0;

	outb(PIC1, PIC_INIT);
	outb(PIC1_DATA, VECTOR_TIMER);
	outb(PIC1_DATA, PIC_SLAVE_ON_2);
	outb(PIC1_DATA, PIC_8086);
	outb(PIC1_DATA, (uint8_t)~PIC_TIMER);
	outb(PIC2_DATA, PIC_ALL);
	outb(PIT_COMMAND, PIT_PERIODIC);
	outb(PIT_DATA, PIT_TICKS & 0xff);
	outb(PIT_DATA, PIT_TICKS >> 8);
	for (unsigned int i = 0; i < INJECTIONS; i++) {
		prepare(guest_loops);
		vmcb.rflags = RFLAGS_FIXED | RFLAGS_IF;
		vmcb.v_intr_masking = 1;
		vmcb.event_injection = INJECT_VALID | VECTOR_INJECTED;
		injected = 0;
		if (run() != EXIT_VMMCALL)
			other_exits++;
		if (injected != 1)
			wrong++;
		/* What the timer asked for meanwhile. */
		__asm__ volatile("sti; hlt; cli");
	}
	outb(PIC1_DATA, PIC_ALL);
	check("the timer runs", ticks >= INJECTIONS, 1);
	check("a guest with an injected interrupt runs to its end",
	      other_exits, 0);
	check("each of the injected interrupts is delivered once", wrong, 0);
}

__attribute__((used)) static void main(void)
{
	static const struct {
		uint16_t limit;
		uint32_t base;
	} __attribute__((packed)) none;

	load_tables();
	test_fpu();
	wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME);
	wrmsr(MSR_VM_HSAVE_PA, (uint32_t)host_save);
	test_reads_of_control_registers();
	test_injection();
	print("1..");
	print_number(tests);
	print("\n");
	/* The end: no handler for the fault, and none for what that causes. */
	__asm__ volatile("lidt %0; int3" : : "m"(none));
}
