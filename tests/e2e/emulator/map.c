/* SPDX-License-Identifier: GPL-2.0 */
/*
 * map: does a CPU reach its devices while another one changes the memory map?
 *
 * A multiboot program for 16 CPUs, in 32-bit protected mode without paging. Two
 * run; the emulator tells the others of each change before it tells the last
 * one, which is the second that runs.
 *
 * The first CPU moves a device into the memory map and out of it, below the
 * local APIC, by the memory decode of a PCI function. The second one reads and
 * writes its APIC meanwhile, which stays where it is (lab/emulator/hooks, hook
 * 0014). It prints TAP lines like bare.c.
 *
 * From each change on the second CPU waits before its access, for times that
 * differ: it has to come between the change and the flush of its TLB. Who waits
 * for the emulator's lock of all devices has found his device already.
 *
 * Registers of the APIC: AMD64 APM vol. 2, chapter 16. PCI: PCI Local Bus
 * Specification 3.0, chapter 6; the SATA controller of a q35 is 00:1f.2.
 *
 * Locking: none. Each of the volatile words has one CPU that writes it.
 */
#include <stdint.h>

#include "start32.h"
#include "svm.h"
#include "tap.h"

#define CHANGES		4000
#define LONGEST_WAIT	0x3ffff	/* loops: longer than most changes take */
#define PATIENCE	2000000000u	/* loops */

#define LAST_CPU	15u	/* its APIC's number */
#define AP_START	0x8000	/* where the second CPU starts: a page */

#define APIC		0xfee00000u
#define APIC_VERSION	0x30
#define APIC_PRIORITY	0x80
#define APIC_SPURIOUS	0xf0
#define APIC_ICR	0x300
#define APIC_ICR_HIGH	0x310
#define SPURIOUS_ON	0x1ff	/* enabled, vector 0xff */
#define ICR_PENDING	(1 << 12)
#define ICR_INIT	0x4500
#define ICR_STARTUP	0x4600

#define PCI_ADDRESS	0xcf8	/* ports */
#define PCI_DATA	0xcfc
#define SATA		0x8000fa00u	/* 00:1f.2 */
#define PCI_ID		0
#define PCI_COMMAND	4
#define PCI_BAR5	0x24
#define COMMAND_MEMORY	2
#define SATA_AT		0xe0000000u	/* free, and below the APIC */

#define STRING(x)	STRING_(x)
#define STRING_(x)	#x

static uint64_t gdt[] __attribute__((aligned(8), used)) = {
	0,
	0x00cf9b000000ffff,	/* CODE: all of 4 GiB, 32-bit */
	0x00cf93000000ffff,	/* DATA */
};

/* Written by the second CPU. */
static volatile unsigned int running, answered, wrong_reads, wrong_writes;
/* Written by the first, before it changes the map. */
static volatile unsigned int turn;

extern const uint8_t ap_start[], ap_end[];

__asm__(
"	.bss\n"
"	.balign	16\n"
"	.skip	16384\n"
"ap_stack_end:\n"
/* Copied to AP_START. */
"	.text\n"
"	.code16\n"
"ap_start:\n"
"	cli\n"
"	movw	%cs, %ax\n"
"	movw	%ax, %ds\n"
"	lgdtl	ap_gdtr - ap_start\n"
"	movl	%cr0, %eax\n"
"	orl	$1, %eax\n"
"	movl	%eax, %cr0\n"
"	ljmpl	$" STRING(CODE) ", $ap_start32\n"
"ap_gdtr:\n"
"	.word	23\n"
"	.long	gdt\n"
"ap_end:\n"
"	.code32\n"
"ap_start32:\n"
"	movl	$" STRING(DATA) ", %eax\n"
"	movl	%eax, %ds\n"
"	movl	%eax, %es\n"
"	movl	%eax, %ss\n"
"	movl	$ap_stack_end, %esp\n"
"	call	second_cpu\n"
);

static void outw(uint16_t port, uint16_t value)
{
	__asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static void outl(uint16_t port, uint32_t value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static uint32_t inl(uint16_t port)
{
	uint32_t value;

	__asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static uint32_t apic_read(uint32_t offset)
{
	return *(volatile uint32_t *)(APIC + offset);
}

static void apic_write(uint32_t offset, uint32_t value)
{
	*(volatile uint32_t *)(APIC + offset) = value;
}

static void wait(unsigned int loops)
{
	while (loops--)
		__asm__ volatile("");
}

__attribute__((used, noreturn)) static void second_cpu(void)
{
	uint32_t version, random = 1, last = 0;

	apic_write(APIC_SPURIOUS, SPURIOUS_ON);
	version = apic_read(APIC_VERSION);
	for (running = 1; ; answered = last) {
		uint32_t priority;

		while (turn == last)
			__asm__ volatile("pause");
		last = turn;
		random = random * 1664525 + 1013904223;
		wait(random >> 12 & LONGEST_WAIT >> (random >> 9 & 7));
		if (last % 4 < 2) {
			wrong_reads += apic_read(APIC_VERSION) != version;
			continue;
		}
		priority = random >> 24 & 0xf0;
		apic_write(APIC_PRIORITY, priority);
		wrong_writes += apic_read(APIC_PRIORITY) != priority;
	}
}

static int comes(volatile unsigned int *word, unsigned int value)
{
	for (unsigned int i = 0; *word != value && i < PATIENCE; i++)
		__asm__ volatile("pause");
	return *word == value;
}

static void send(uint32_t command)
{
	apic_write(APIC_ICR_HIGH, LAST_CPU << 24);
	apic_write(APIC_ICR, command);
	while (apic_read(APIC_ICR) & ICR_PENDING)
		;
}

static void start_second_cpu(void)
{
	uint8_t *to = (uint8_t *)AP_START;

	for (const uint8_t *from = ap_start; from < ap_end; from++)
		*to++ = *from;
	apic_write(APIC_SPURIOUS, SPURIOUS_ON);
	send(ICR_INIT);
	wait(10000000);
	send(ICR_STARTUP | AP_START >> 12);
}

static void set_command(uint16_t command)
{
	outl(PCI_ADDRESS, SATA + PCI_COMMAND);
	turn++;
	outw(PCI_DATA, command);
}

__attribute__((used)) static void main(void)
{
	int answers = 1;

	outl(PCI_ADDRESS, SATA + PCI_ID);
	check("there is a SATA controller", inl(PCI_DATA) & 0xffff, 0x8086);
	outl(PCI_ADDRESS, SATA + PCI_COMMAND);
	outw(PCI_DATA, 0);
	outl(PCI_ADDRESS, SATA + PCI_BAR5);
	outl(PCI_DATA, SATA_AT);
	start_second_cpu();
	check("there is a second CPU", comes(&running, 1), 1);
	while (answers && turn < CHANGES && !wrong_reads && !wrong_writes) {
		set_command(turn & 1 ? 0 : COMMAND_MEMORY);
		answers = comes(&answered, turn);
	}
	print("# changes of the map: ");
	print_number(turn);
	print("\n");
	check("it has answered each time", answers, 1);
	check("each of its reads was one of the APIC", wrong_reads, 0);
	check("each of its writes reached the APIC", wrong_writes, 0);
	finish();
}
