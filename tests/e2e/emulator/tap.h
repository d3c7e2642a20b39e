/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a program without a system needs to say how its checks went: TAP lines
 * on the first serial port, and an end that QEMU understands. For 32-bit and
 * 64-bit programs of one CPU; there are no locks.
 */
#ifndef TAP_H
#define TAP_H

#include <stdint.h>

#define COM1		0x3f8
#define LINE_STATUS	5	/* its register */
#define LINE_IDLE	0x20

static unsigned int tests;

static inline void outb(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint8_t inb(uint16_t port)
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

/* The head of a TAP line; what is checked, and an end of line, are to follow. */
static inline void print_result(int passed)
{
	print(passed ? "ok " : "not ok ");
	print_number(++tests);
	print(" - ");
}

/* One TAP line; `seen` and `wanted` are shown when they differ. */
static inline void check(const char *what, uint32_t seen, uint32_t wanted)
{
	print_result(seen == wanted);
	print(what);
	if (seen != wanted) {
		print(": ");
		print_number(seen);
		print(" instead of ");
		print_number(wanted);
	}
	print("\n");
}

/*
 * The plan, and a triple fault, for which QEMU exits (-no-reboot): there is no
 * handler for the breakpoint, and none for what that causes.
 */
static inline void finish(void)
{
	static const struct {
		uint16_t limit;
		unsigned long base;
	} __attribute__((packed)) none;

	print("1..");
	print_number(tests);
	print("\n");
	__asm__ volatile("lidt %0; int3" : : "m"(none));
}

#endif /* TAP_H */
