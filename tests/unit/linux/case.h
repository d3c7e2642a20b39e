/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A table of named cases and a main() for it: "--list" prints the names, a
 * name runs one, nothing runs all.  Exit code 0: the case holds.  pytest names each of them.
 */
#ifndef CASE_H
#define CASE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_case {
	const char *name;
	void (*run)(const void *argument);
	const void *argument;
};

#define CHECK(condition, ...) do {					\
	if (!(condition)) {						\
		printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);	\
		printf(__VA_ARGS__);					\
		printf("\n");						\
		exit(1);						\
	}								\
} while (0)

static inline int run_cases(int argc, char **argv,
			    const struct test_case *cases, size_t count)
{
	size_t i;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (i = 0; i < count; i++)
			puts(cases[i].name);
		return 0;
	}
	if (argc == 1) {
		for (i = 0; i < count; i++)
			cases[i].run(cases[i].argument);
		return 0;
	}
	for (i = 0; argc == 2 && i < count; i++) {
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].run(cases[i].argument);
			return 0;
		}
	}
	fprintf(stderr, "usage: %s [--list | CASE]\n", argv[0]);
	return 2;
}

#endif
