/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From where a multiboot loader leaves a program (32-bit protected mode, no
 * paging; its specification, version 0.6.96) to main() in 64-bit mode, at
 * privilege level 0, interrupts off, with the first GiB mapped to itself.
 *
 * The descriptors are for the programs and their guests: CODE, DATA and
 * CODE32 of svm.h.
 */
#define CR0_PG		0x80000000
#define CR4_PAE		0x20
#define MSR_EFER	0xc0000080
#define EFER_LME	0x100
#define ENTRY_TABLE	0x7	/* present, writable, user */
#define ENTRY_2MB	0x87
#define CODE		0x08
#define DATA		0x10

	.section .multiboot, "a"
	.balign	4
	.long	0x1badb002, 0, -0x1badb002

	.text
	.code32
	.globl	start
start:	movl	$pdpt + ENTRY_TABLE, pml4
	movl	$directory + ENTRY_TABLE, pdpt
	xorl	%ecx, %ecx
1:	movl	%ecx, %eax
	shll	$21, %eax
	orl	$ENTRY_2MB, %eax
	movl	%eax, directory(, %ecx, 8)
	incl	%ecx
	cmpl	$512, %ecx
	jb	1b

	movl	$CR4_PAE, %eax
	movl	%eax, %cr4
	movl	$pml4, %eax
	movl	%eax, %cr3
	movl	$MSR_EFER, %ecx
	rdmsr
	orl	$EFER_LME, %eax
	wrmsr
	movl	%cr0, %eax
	orl	$CR0_PG, %eax
	movl	%eax, %cr0
	lgdt	gdtr
	ljmp	$CODE, $2f

	.code64
2:	movl	$DATA, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	movl	$stack_end, %esp
	call	main
3:	hlt
	jmp	3b

	.data
	.balign	8
	.globl	gdt, gdt_end
gdt:	.quad	0
	.quad	0x00af9b000000ffff	/* CODE: 64-bit */
	.quad	0x00cf93000000ffff	/* DATA */
	.quad	0x00cf9b000000ffff	/* CODE32: all of 4 GiB */
gdt_end:
gdtr:	.word	gdt_end - gdt - 1
	.long	gdt

	.bss
	.balign	4096
pml4:	.skip	4096
pdpt:	.skip	4096
directory:
	.skip	4096
	.skip	16384
stack_end:

	.section .note.GNU-stack, "", @progbits
