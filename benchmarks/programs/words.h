/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Words of a command line: numbers, names, and lists of them, and the end of a
 * program whose user has made a mistake.
 */
#ifndef WORDS_H
#define WORDS_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Chooses those of @n names that are in @text, with commas between, and no other one. */
static inline void choose(const char *option, char *text, bool *chosen,
			  unsigned int n, const char *(*name)(unsigned int))
{
	char *rest = NULL;

	memset(chosen, 0, n * sizeof(*chosen));
	for (char *word = strtok_r(text, ",", &rest); word;
	     word = strtok_r(NULL, ",", &rest)) {
		unsigned int i = 0;

		while (i < n && strcmp(word, name(i)))
			i++;
		if (i == n)
			die("--%s=%s: there is no such one", option, word);
		chosen[i] = true;
	}
}

#endif
