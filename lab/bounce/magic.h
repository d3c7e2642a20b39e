/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the guest's program says to the plugin: a no-op that no compiler makes.
 *
 *	nopl imm32(%rax,%rax,1)		with imm32 = 0x0d5342NN, NN: which word
 *
 * Any program of the guest can say it: the guest is ours, and runs nothing else.
 */
#ifndef BOUNCE_MAGIC_H
#define BOUNCE_MAGIC_H

enum {
	BOUNCE_PLAY = 1,	/* from here on pages go to and fro */
	BOUNCE_COUNT = 2,	/* and are counted from here on, from 0 */
	BOUNCE_END = 3,		/* until here; the plugin writes its file */
};

enum { BOUNCE_MAGIC_BYTES = 8, BOUNCE_MAGIC_WORD = 4 };	/* where NN is */

#define BOUNCE_SAY(word) __asm__ volatile (".byte 0x0f, 0x1f, 0x84, 0x00, %c0, 0x42, 0x53, 0x0d" : : "i" (word) : "memory")

#endif
