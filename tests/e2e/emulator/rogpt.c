/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rogpt: what a nested page walk does to the page tables of a guest, with and
 * without read-only guest page tables (AMD64 APM vol. 2, 15.25.5 and 15.25.6).
 *
 * A hypervisor as small as can be, in the manner of kvm-unit-tests: it runs a
 * guest of one instruction, for each kind of guest paging, each level of its
 * tables, each state of that table in the nested page table, each kind of
 * access and each state of the accessed and dirty bits in the entry. Without
 * ROGPT a walk writes: the table has to be writable, and becomes dirty in the
 * nested page table. With it, only a walk that has to set a bit does.
 *
 * The first line says whether the CPU has the feature. One that has not does
 * not look at the bit in the VMCB.
 *
 * Not asked: the third level of PAE paging, whose entries have no accessed bit
 * but in QEMU.
 *
 * Memory: host-physical, guest-physical and the program's linear addresses are
 * the same, and below NESTED_MEMORY. One CPU, no locks.
 */
#include <stdint.h>

#include "paging.h"
#include "svm.h"
#include "tap.h"

#define ALL		(PRESENT | WRITABLE | USER)	/* neither accessed nor dirty */

#define LARGE_4MB	0x400000u

#define NPF_PRESENT	(1 << 0)
#define NPF_WRITE	(1 << 1)
#define NPF_USER	(1 << 2)
#define NPF_WALK	(1ull << 33)

#define LEGACY_ADDRESS	(1ull << 30)
#define CODE32_ATTRIBUTES 0xc9b
#define BEFORE		0x5a	/* what the page has at WRITTEN */
#define AFTER		0xa5	/* what the guest writes */
#define WRITTEN		3
#define STALE		0x1234567	/* not a next RIP */

#define STRING(x)	STRING_(x)
#define STRING_(x)	#x

/* Of the guest: the tables of its page, by level, and those of its code. */
static table walk[5], code3, code2;
static uint8_t page[PAGE] __attribute__((aligned(PAGE)));
static uint8_t guest_stack[PAGE] __attribute__((aligned(16)));

void guest_read(void);
void guest_write(void);
void guest_fetch(void);

/*
 * These are the same bytes in 64-bit and 32-bit mode. RAX has the address of
 * the page, which begins with VMMCALL.
 */
__asm__(
"	.text\n"
"guest_read:\n"
"	.byte	0x8a, 0x18\n"			/* mov (%rax), %bl */
"	vmmcall\n"
"guest_write:\n"
"	.byte	0xc6, 0x40, " STRING(WRITTEN) ", " STRING(AFTER) "\n"
"	vmmcall\n"
"guest_fetch:\n"
"	.byte	0xff, 0xe0\n"			/* jmp *%rax */
);

/* A kind of guest paging. */
static const struct paging {
	const char *name;
	unsigned int top, leaf;	/* levels */
	unsigned int tested;	/* the highest level to test */
	uint32_t cr4;
	uint64_t efer;
	uint16_t code;
	uint64_t address;	/* of the page */
} pagings[] = {
	{ "4 levels", 4, 1, 4, CR4_PAE, EFER_LME | EFER_LMA, CODE64_ATTRIBUTES,
	  LONG_ADDRESS },
	{ "4 levels, 2 MiB", 4, 2, 4, CR4_PAE, EFER_LME | EFER_LMA,
	  CODE64_ATTRIBUTES, LONG_ADDRESS },
	{ "PAE", 3, 1, 2, CR4_PAE, 0, CODE32_ATTRIBUTES, LEGACY_ADDRESS },
	{ "2 levels", 2, 1, 2, CR4_PSE, 0, CODE32_ATTRIBUTES, LEGACY_ADDRESS },
};

enum nested { READ_ONLY, READ_WRITE, ABSENT };
enum access { READ, WRITE, FETCH };

/* The walk succeeds, or it faults with this error code. */
#define RUNS	0
#define WRITES	(NPF_USER | NPF_WRITE | NPF_PRESENT)
#define W_ABSENT (NPF_USER | NPF_WRITE)
#define R_ABSENT NPF_USER

static const struct walk_case {
	const char *what;
	enum nested nested;	/* the table, in the nested page table */
	enum access access;
	uint32_t bits;		/* A and D in the guest's entry, before */
	unsigned int off, on;	/* RUNS, or the error code of the fault */
	uint32_t after;		/* A and D in the guest's entry, if it runs */
	uint32_t dirty_off, dirty_on; /* the table, in the nested page table */
} cases[] = {
	{ "read-only, read, A", READ_ONLY, READ, A,
	  WRITES, RUNS, A, 0, 0 },
	{ "read-only, read, A D", READ_ONLY, READ, A | D,
	  WRITES, RUNS, A | D, 0, 0 },
	{ "read-only, write, A D", READ_ONLY, WRITE, A | D,
	  WRITES, RUNS, A | D, 0, 0 },
	{ "read-only, fetch, A", READ_ONLY, FETCH, A,
	  WRITES, RUNS, A, 0, 0 },
	{ "read-only, read, no A", READ_ONLY, READ, 0,
	  WRITES, WRITES, 0, 0, 0 },
	{ "read-only, write, no A", READ_ONLY, WRITE, 0,
	  WRITES, WRITES, 0, 0, 0 },
	{ "read-only, fetch, no A", READ_ONLY, FETCH, 0,
	  WRITES, WRITES, 0, 0, 0 },
	{ "read-only, write, A, no D", READ_ONLY, WRITE, A,
	  WRITES, WRITES, 0, 0, 0 },
	{ "writable, read, A", READ_WRITE, READ, A,
	  RUNS, RUNS, A, D, 0 },
	{ "writable, write, A D", READ_WRITE, WRITE, A | D,
	  RUNS, RUNS, A | D, D, 0 },
	{ "writable, fetch, A", READ_WRITE, FETCH, A,
	  RUNS, RUNS, A, D, 0 },
	{ "writable, read, no A", READ_WRITE, READ, 0,
	  RUNS, RUNS, A, D, D },
	{ "writable, fetch, no A", READ_WRITE, FETCH, 0,
	  RUNS, RUNS, A, D, D },
	{ "writable, write, no A", READ_WRITE, WRITE, 0,
	  RUNS, RUNS, A | D, D, D },
	{ "writable, write, A, no D", READ_WRITE, WRITE, A,
	  RUNS, RUNS, A | D, D, D },
	{ "absent, read, A", ABSENT, READ, A,
	  W_ABSENT, R_ABSENT, 0, 0, 0 },
	{ "absent, write, A D", ABSENT, WRITE, A | D,
	  W_ABSENT, R_ABSENT, 0, 0, 0 },
	{ "absent, fetch, no A", ABSENT, FETCH, 0,
	  W_ABSENT, R_ABSENT, 0, 0, 0 },
};

#define CASES	(sizeof(cases) / sizeof(*cases))
#define PAGINGS	(sizeof(pagings) / sizeof(*pagings))

static void print_hex(uint64_t number)
{
	char digits[17], *next = digits + sizeof(digits) - 1;

	*next = 0;
	do {
		*--next = "0123456789abcdef"[number & 15];
		number >>= 4;
	} while (number);
	print("0x");
	print(next);
}

/* Whether they are the same; if not, that is a comment for the next line. */
static int same(const char *what, uint64_t seen, uint64_t wanted)
{
	if (seen == wanted)
		return 1;
	print("# ");
	print(what);
	print(": ");
	print_hex(seen);
	print(" instead of ");
	print_hex(wanted);
	print("\n");
	return 0;
}

/*
 * The low half of the entry for the page at a level: present, accessed and
 * dirty bits are in that, whatever its size is.
 */
static uint32_t *guest_entry(const struct paging *paging, unsigned int level)
{
	unsigned int index = 0;

	if (paging->top == 2 && level == 2)
		return (uint32_t *)walk[2] + LEGACY_ADDRESS / LARGE_4MB;
	if (level == paging->top)
		index = 1;
	return (uint32_t *)&walk[level][index];
}

/* The one that is walked first, for the guest's code: it may share the table. */
static uint32_t *first_entry(const struct paging *paging, unsigned int level)
{
	if (level == paging->top)
		return (uint32_t *)walk[level];
	return guest_entry(paging, level);
}

/* All entries have their accessed and dirty bits. */
static void build_guest(const struct paging *paging)
{
	const uint32_t set = ALL | A | D;

	for (unsigned int i = 1; i <= 4; i++)
		clear(walk[i]);
	code3[0] = address(code2) | set;
	for (unsigned int i = 0; i < NESTED_TABLES; i++)
		code2[i] = (uint64_t)i * LARGE_2MB | set | LARGE;

	switch (paging->top) {
	case 4:
		walk[4][0] = address(code3) | set;
		break;
	case 3:
		walk[3][0] = address(code2) | PRESENT;
		break;
	case 2:
		*first_entry(paging, 2) = set | LARGE;
		((uint32_t *)walk[2])[1] = LARGE_4MB | set | LARGE;
		break;
	}
	for (unsigned int i = paging->top; i > paging->leaf; i--)
		*guest_entry(paging, i) = address(walk[i - 1]) |
					  (paging->top == 3 && i == 3 ?
					   PRESENT : set);
	if (paging->leaf == 2)
		*guest_entry(paging, 2) =
			(address(page) & ~(LARGE_2MB - 1ull)) | set | LARGE;
	else
		*guest_entry(paging, 1) = address(page) | set;
}

static uint64_t page_address(const struct paging *paging)
{
	return paging->address +
	       (paging->leaf == 2 ? address(page) % LARGE_2MB : 0);
}

static void prepare(const struct paging *paging, enum access access,
		    uint64_t nested_control)
{
	void (*const entries[])(void) = { guest_read, guest_write,
					  guest_fetch };

	clear_vmcb(paging->code);
	vmcb.efer = EFER_SVME | paging->efer;
	vmcb.cr0 = CR0_PG | CR0_WP | CR0_PE;
	vmcb.cr4 = paging->cr4;
	vmcb.cr3 = address(walk[paging->top]);
	vmcb.rip = (uintptr_t)entries[access];
	vmcb.rsp = address(guest_stack + sizeof(guest_stack));
	vmcb.rax = page_address(paging);
	vmcb.nested_control = NESTED_PAGING | nested_control;
	vmcb.nested_cr3 = address(nested4);
	vmcb.next_rip = STALE;
	page[0] = 0x0f;	/* vmmcall */
	page[1] = 0x01;
	page[2] = 0xd9;
	page[WRITTEN] = BEFORE;
}

/* One line for a case at a level; `bit` is ROGPT's in the VMCB. */
static void test(const struct paging *paging, unsigned int level,
		 const struct walk_case *walk_case, uint64_t bit, int reads)
{
	unsigned int code = reads ? walk_case->on : walk_case->off;
	uint32_t dirty = reads ? walk_case->dirty_on : walk_case->dirty_off;
	uint32_t has = level == paging->leaf ? A | D : A;
	uint32_t *entry = guest_entry(paging, level), *faulting = entry;
	uint64_t *nested = nested_entry(entry);
	int passed = 1;

	build_nested(ALL);
	build_guest(paging);
	*entry &= ~(A | D);
	*entry |= walk_case->bits & has;
	if (walk_case->nested == READ_ONLY)
		*nested &= ~(uint64_t)WRITABLE;
	else if (walk_case->nested == ABSENT)
		*nested = 0;
	/* To find its code, the guest walks the same table and another entry. */
	if (walk_case->nested == ABSENT || !reads)
		faulting = first_entry(paging, level);

	prepare(paging, walk_case->access, bit);
	run();
	if (code == RUNS) {
		passed &= same("exit code", vmcb.exit_code, EXIT_VMMCALL);
		passed &= same("A and D", *entry & has, walk_case->after & has);
		passed &= same("the page", page[WRITTEN],
			       walk_case->access == WRITE ? AFTER : BEFORE);
	} else {
		passed &= same("exit code", vmcb.exit_code, EXIT_NPF);
		passed &= same("EXITINFO1", vmcb.exit_info1, NPF_WALK | code);
		passed &= same("EXITINFO2", vmcb.exit_info2, address(faulting));
		passed &= same("A and D", *entry & has, walk_case->bits & has);
		passed &= same("the page", page[WRITTEN], BEFORE);
		passed &= same("next RIP", vmcb.next_rip,
			       svm_features() & SVM_EDX_NRIPS ? 0 : STALE);
	}
	passed &= same("D of the table", *nested & D, dirty);

	print_result(passed);
	print(bit ? "rogpt" : "no rogpt");
	print(", ");
	print(paging->name);
	print(", level ");
	print_number(level);
	print(" ");
	print(walk_case->what);
	print("\n");
}

/* At a level without one, a case about D is another one about A. */
static int applies(const struct paging *paging, unsigned int level,
		   const struct walk_case *walk_case)
{
	return level == paging->leaf || walk_case->access != WRITE ||
	       walk_case->bits != A;
}

/* What a guest may do lasts for one VMRUN. */
static void test_next_vmrun(int has_rogpt)
{
	const struct paging *paging = &pagings[0];
	uint64_t exits[3];

	build_nested(ALL);
	build_guest(paging);
	*nested_entry(walk[1]) &= ~(uint64_t)WRITABLE;
	for (unsigned int i = 0; i < 3; i++) {
		prepare(paging, READ, i == 1 ? 0 : NESTED_ROGPT);
		run();
		exits[i] = vmcb.exit_code;
	}
	check("rogpt, first VMRUN", exits[0],
	      has_rogpt ? EXIT_VMMCALL : EXIT_NPF);
	check("no rogpt, second VMRUN", exits[1], EXIT_NPF);
	check("rogpt, third VMRUN", exits[2],
	      has_rogpt ? EXIT_VMMCALL : EXIT_NPF);
}

void main(void);

void main(void)
{
	int has_rogpt = !!(svm_features() & SVM_EDX_ROGPT);

	print(has_rogpt ? "# rogpt\n" : "# no rogpt\n");
	enable_svm();
	for (unsigned int i = 0; i < PAGINGS; i++)
		for (unsigned int level = pagings[i].tested;
		     level >= pagings[i].leaf; level--)
			for (unsigned int k = 0; k < CASES; k++) {
				if (!applies(&pagings[i], level, &cases[k]))
					continue;
				test(&pagings[i], level, &cases[k], 0, 0);
				test(&pagings[i], level, &cases[k],
				     NESTED_ROGPT, has_rogpt);
			}
	test_next_vmrun(has_rogpt);
	finish();
}
