/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prints the pseudorandom sequences of the programs, one number a line:
 *
 *   sequences_test npb SEED SKIP COUNT	what npb_random() makes of SEED, SKIP
 *					numbers left out: the state
 *   sequences_test hpcc SKIP COUNT	RandomAccess's, after SKIP numbers
 */
#define main random_access_main
#include "random_access.c"
#undef main
#include "npb_random.h"

int main(int argc, char **argv)
{
	bool npb = argc == 5 && !strcmp(argv[1], "npb");
	uint64_t skip, x;

	if (!npb && (argc != 4 || strcmp(argv[1], "hpcc")))
		return 2;
	skip = strtoull(argv[argc - 2], NULL, 10);
	x = npb ? npb_skip(strtoull(argv[2], NULL, 10), skip) : number_at(skip);
	for (int n = atoi(argv[argc - 1]); n; n--) {
		if (!npb)
			x = next(x);
		else if (npb_random(&x) != x * 0x1p-46)
			return 1;
		printf("%" PRIu64 "\n", x);
	}
	return 0;
}
