/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Words of a command line: numbers and lists of them, and the end of a program
 * whose user has made a mistake.
 */
#ifndef WORDS_H
#define WORDS_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *format, ...)
{
	va_list list;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	exit(2);
}

/* With @rest, a comma may follow: *rest is behind it, or NULL. */
static long number_of(const char *option, const char *text, long low, long high,
		      const char **rest)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (end == text || errno || n < low || n > high ||
	    (*end && (!rest || *end != ',')))
		die("--%s=%s: want a number from %ld to %ld%s", option, text, low,
		    high, rest ? ", with a comma between two" : "");
	if (rest)
		*rest = *end ? end + 1 : NULL;
	return n;
}

/* A decimal number from @low to @high; the program ends if it is none. */
static inline long number(const char *option, const char *text, long low,
			  long high)
{
	return number_of(option, text, low, high, NULL);
}

/* 1 to @most of them, with commas between.  Return: how many. */
static inline unsigned int numbers(const char *option, const char *text,
				   long low, long high, long *found,
				   unsigned int most)
{
	unsigned int n = 0;

	while (text) {
		if (n == most)
			die("--%s: more than %u", option, most);
		found[n++] = number_of(option, text, low, high, &text);
	}
	return n;
}

#endif
