// SPDX-License-Identifier: GPL-2.0
/*
 * mm/numa_reset_check.h in user space: every rule about the arguments of
 * numa_reset(2), and the window of a touch.
 *
 *	numa_reset_check_test --list	the names of the cases
 *	numa_reset_check_test NAME	one case; exit code 0: it holds
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "numa_reset_check.h"

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define PAGE		4096ULL
#define TASK_SIZE	((1ULL << 47) - PAGE)
#define TOP		(-PAGE)

/* Each check prints what differs, and returns whether it holds. */
static int same(const char *what, long long seen, long long expected)
{
	if (seen == expected)
		return 1;
	printf("%s: %lld (0x%llx), expected %lld (0x%llx)\n", what, seen, seen,
	       expected, expected);
	return 0;
}

/* --- Flags ------------------------------------------------------------------- */

/* By definition, not by the rules of the code: the seven that mean something. */
static int flags_all_combinations(void)
{
	static const unsigned int valid[] = {
		NRST_TOUCH,
		NRST_POLICY,
		NRST_TOUCH | NRST_POLICY,
		NRST_TOUCH | NRST_FOLLOW,
		NRST_POLICY | NRST_FOLLOW,
		NRST_TOUCH | NRST_POLICY | NRST_FOLLOW,
		NRST_CANCEL,
	};
	unsigned int flags;
	int good = 1;
	size_t i;

	for (flags = 0; flags < 1U << 12; flags++) {
		int expected = -EINVAL;

		for (i = 0; i < COUNT(valid); i++)
			if (flags == valid[i])
				expected = 0;
		good &= same("flags", nrst_check_flags(flags), expected);
	}
	for (i = 4; i < 32; i++)
		good &= same("high flag",
			     nrst_check_flags(NRST_TOUCH | 1U << i), -EINVAL);
	return good;
}

/* --- Range ---------------------------------------------------------------------- */

static const struct range_case {
	const char *name;
	uint64_t start, len;
	int expected;
	uint64_t first, end;
} range_cases[] = {
	{ "range_everything", 0, 0, 0, 0, TASK_SIZE },
	{ "range_one_page", PAGE, PAGE, 0, PAGE, 2 * PAGE },
	{ "range_from_zero", 0, PAGE, 0, 0, PAGE },
	{ "range_up_to_the_end", PAGE, TASK_SIZE - PAGE, 0, PAGE, TASK_SIZE },
	{ "range_all_by_length", 0, TASK_SIZE, 0, 0, TASK_SIZE },
	{ "range_last_page", TASK_SIZE - PAGE, PAGE, 0, TASK_SIZE - PAGE,
	  TASK_SIZE },
	{ "range_one_page_too_long", PAGE, TASK_SIZE, -EINVAL },
	{ "range_behind_the_end", TASK_SIZE, PAGE, -EINVAL },
	{ "range_start_without_length", PAGE, 0, -EINVAL },
	{ "range_start_unaligned", 1, PAGE, -EINVAL },
	{ "range_start_half_aligned", PAGE / 2, PAGE, -EINVAL },
	{ "range_length_unaligned", PAGE, PAGE + 1, -EINVAL },
	{ "range_wraps", PAGE, TOP, -EINVAL },
	{ "range_wraps_to_zero", TOP, PAGE, -EINVAL },
	{ "range_in_the_kernel", 0xffff888000000000, PAGE, -EINVAL },
	{ "range_longest", 0, TOP, -EINVAL },
};

static int check_range(const struct range_case *c)
{
	struct nrst_range range = { 1, 1 };
	int good = same("result", nrst_check_range(c->start, c->len, TASK_SIZE,
						   &range), c->expected);

	if (!c->expected) {
		good &= same("first", range.start, c->first);
		good &= same("end", range.end, c->end);
	}
	return good;
}

/* --- Granule, node set ------------------------------------------------------------ */

static int granule_all(void)
{
	int good = same("default", nrst_check_granule(0), 16);
	unsigned int shift;

	for (shift = 1; shift < 200; shift++)
		good &= same("shift", nrst_check_granule(shift),
			     shift >= 12 && shift <= 21 ? (int)shift : -EINVAL);
	good &= same("sign bit", nrst_check_granule(1U << 31), -EINVAL);
	good &= same("all bits", nrst_check_granule(~0U), -EINVAL);
	return good;
}

static const struct nodes_case {
	const char *name;
	uint64_t ptr;
	uint32_t maxnode;
	unsigned int flags;
	int expected;
} nodes_cases[] = {
	{ "nodes_none", 0, 0, NRST_POLICY, 0 },
	{ "nodes_none_with_cancel", 0, 0, NRST_CANCEL, 0 },
	{ "nodes_with_touch", 8, 64, NRST_TOUCH, 0 },
	{ "nodes_with_follow", 8, 1, NRST_POLICY | NRST_FOLLOW, 0 },
	{ "nodes_most", 8, 32768, NRST_TOUCH, 0 },
	{ "nodes_too_many", 8, 32769, NRST_TOUCH, -EINVAL },
	{ "nodes_far_too_many", 8, ~0U, NRST_TOUCH, -EINVAL },
	{ "nodes_without_bits", 8, 0, NRST_TOUCH, -EINVAL },
	{ "nodes_without_pointer", 0, 64, NRST_TOUCH, -EINVAL },
	{ "nodes_with_policy_alone", 8, 64, NRST_POLICY, -EINVAL },
	{ "nodes_with_cancel", 8, 64, NRST_CANCEL, -EINVAL },
};

static int check_nodes(const struct nodes_case *c)
{
	return same("result", nrst_check_nodes(c->ptr, c->maxnode, c->flags),
		    c->expected);
}

/* --- Window ------------------------------------------------------------------------- */

static const struct window_case {
	const char *name;
	uint64_t addr;
	unsigned int shift;
	uint64_t vm_start, vm_end;
	uint64_t start, end;
} window_cases[] = {
	{ "window_one_page", 0x12345000, 12, 0x12000000, 0x13000000,
	  0x12345000, 0x12346000 },
	{ "window_aligned", 0x12345000, 16, 0x12000000, 0x13000000,
	  0x12340000, 0x12350000 },
	{ "window_at_its_last_page", 0x1234f000, 16, 0x12000000, 0x13000000,
	  0x12340000, 0x12350000 },
	{ "window_cut_at_the_start", 0x12345000, 16, 0x12343000, 0x13000000,
	  0x12343000, 0x12350000 },
	{ "window_cut_at_the_end", 0x12345000, 16, 0x12000000, 0x12346000,
	  0x12340000, 0x12346000 },
	{ "window_larger_than_its_mapping", 0x12345000, 21, 0x12344000,
	  0x12347000, 0x12344000, 0x12347000 },
	{ "window_of_2_mib", 0x12345000, 21, 0, TASK_SIZE, 0x12200000,
	  0x12400000 },
	{ "window_ends_with_its_mapping", 0x1234f000, 16, 0x12000000,
	  0x12350000, 0x12340000, 0x12350000 },
	{ "window_at_address_0", 0, 21, 0, PAGE, 0, PAGE },
	{ "window_at_the_end_of_memory", TOP - PAGE, 21, TOP - 4 * PAGE, TOP,
	  TOP - 4 * PAGE, TOP },
};

static int check_window(const struct window_case *c)
{
	struct nrst_range window = nrst_window(c->addr, c->shift, c->vm_start,
					       c->vm_end);

	return same("start", window.start, c->start) &
	       same("end", window.end, c->end);
}

/* For all pages of a mapping that begins and ends anywhere. */
static int window_holds_its_page(void)
{
	uint64_t vm_start, vm_end, addr;
	unsigned int shift;
	int good = 1;

	for (shift = 12; shift <= 21; shift++)
		for (vm_start = 0; vm_start < 40; vm_start += 3)
			for (vm_end = vm_start + 1; vm_end < 90; vm_end += 7)
				for (addr = vm_start; addr < vm_end; addr++) {
					struct nrst_range w = nrst_window(addr * PAGE, shift, vm_start * PAGE,
									  vm_end * PAGE);

					good &= w.start <= addr * PAGE && addr * PAGE < w.end &&
						w.start >= vm_start * PAGE && w.end <= vm_end * PAGE &&
						w.start >> shift == (w.end - 1) >> shift;
				}
	return good;
}

/* --- The list ------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*holds)(void);
} plain_cases[] = {
	{ "flags_all_combinations", flags_all_combinations },
	{ "granule_all", granule_all },
	{ "window_holds_its_page", window_holds_its_page },
};

/* @name NULL: print all names.  -1: no such case. */
static int run(const char *name)
{
	size_t i;

#define EACH(table, call)						\
	for (i = 0; i < COUNT(table); i++) {				\
		if (!name)						\
			puts(table[i].name);				\
		else if (!strcmp(name, table[i].name))			\
			return call;					\
	}
	EACH(plain_cases, plain_cases[i].holds())
	EACH(range_cases, check_range(&range_cases[i]))
	EACH(nodes_cases, check_nodes(&nodes_cases[i]))
	EACH(window_cases, check_window(&window_cases[i]))
#undef EACH
	return name ? -1 : 1;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	return run(strcmp(argv[1], "--list") ? argv[1] : NULL) == 1 ? 0 : 1;
}
