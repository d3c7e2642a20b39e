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
#include <stdint.h>

#include "start32.h"
#include "svm.h"
#include "tap.h"

#define XCR0_X87_SSE	3

#define VECTOR_NM	7
#define VECTOR_INJECTED	0x60
#define VECTOR_TIMER	0x68	/* a multiple of 8: IRQ 0 of PIC1 */
#define VECTORS		0x70

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

#define INJECTIONS	100
#define GUEST_LOOPS	200000	/* some timer ticks long */

#define STRING(x)	STRING_(x)
#define STRING_(x)	#x

static uint8_t fpu_area[4096] __attribute__((aligned(64)));
static uint8_t guest_stack[4096] __attribute__((aligned(16)));
static uint64_t idt[VECTORS] __attribute__((aligned(8)));
static uint64_t gdt[] __attribute__((aligned(8))) = {
	0,
	0x00cf9b000000ffff,	/* CODE: all of 4 GiB, 32-bit */
	0x00cf93000000ffff,	/* DATA */
};

static volatile unsigned int not_available, injected, ticks;

/* Entry points in assembly: the start, the handlers, the guests. */
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

/* A guest in this program's own mode and memory, about to run `entry`. */
static void prepare(void (*entry)(void))
{
	clear_vmcb(0xc9b);
	vmcb.gdtr.limit = sizeof(gdt) - 1;
	vmcb.gdtr.base = (uint32_t)gdt;
	vmcb.idtr.limit = sizeof(idt) - 1;
	vmcb.idtr.base = (uint32_t)idt;
	vmcb.cr0 = get_cr0();
	vmcb.cr4 = get_cr4();
	vmcb.rip = (uint32_t)entry;
	vmcb.rsp = (uint32_t)guest_stack + sizeof(guest_stack);
}

/* Returns the exit code. */
static uint32_t run_guest(void)
{
	run();
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
		check(cases[i].what, run_guest(), EXIT_READ_CR0 + cases[i].number);
		check("and no read before it", vmcb.rip,
		      (uint32_t)cases[i].at);
	}
	/* Only that of CR0 is intercepted, and the guest begins behind it. */
	prepare(read_cr2);
	vmcb.cr_read = 1;
	check("other reads than that of CR0 do not", run_guest(),
	      EXIT_VMMCALL);
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
		vmcb.event_injection = INJECT_VALID | INJECT_INTR |
				       VECTOR_INJECTED;
		injected = 0;
		if (run_guest() != EXIT_VMMCALL)
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
	load_tables();
	test_fpu();
	enable_svm();
	test_reads_of_control_registers();
	test_injection();
	finish();
}
