/* SPDX-License-Identifier: GPL-2.0 */
/*
 * memory_test COUNT BYTES: the arrays that a program gets, one address a line;
 * each is written from end to end, and all are given back.
 */
#define _GNU_SOURCE

#include "timed_run.h"

int main(int argc, char **argv)
{
	size_t count = argc == 3 ? atoi(argv[1]) : 0, bytes;
	char **array = calloc(count + 1, sizeof(*array));

	if (!count || !array)
		return 2;
	bytes = strtoull(argv[2], NULL, 10);
	for (size_t n = 0; n < count; n++) {
		array[n] = timed_memory(bytes, 1);
		memset(array[n], n, bytes);
		printf("%" PRIuPTR "\n", (uintptr_t)array[n]);
	}
	for (size_t n = 0; n < count; n++) {
		for (size_t b = 0; b < bytes; b++)
			if (array[n][b] != (char)n)
				die("array %zu, byte %zu", n, b);
		timed_free(array[n]);
	}
	free(array);
	return 0;
}
