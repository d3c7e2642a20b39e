/* SPDX-License-Identifier: GPL-2.0 */
/* The first instructions of a program of 32 bits without a system, by Multiboot: a stack, and main(). */
#ifndef EMULATOR_START32_H
#define EMULATOR_START32_H

void start(void);

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
);

#endif
