/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tlb: how long translations of a guest with nested paging, and of its host,
 * live (AMD64 APM vol. 2, 5.5.3, 15.16 and 15.25.2).
 *
 * Each case maps a page to one frame, has it read, maps it to another one, does
 * something, and has it read again: which of the two frames is seen then?  KEPT
 * is what a CPU may do and this one does, so that a hypervisor or a guest that
 * forgets to flush is noticed.  NEW is what it has to do.
 *
 * The same is asked of what runs there: the emulator remembers translated code
 * by its linear address.
 *
 * Memory: host-physical and guest-physical addresses, and the program's linear
 * ones, are the same, but for the page at LONG_ADDRESS.  One CPU, no locks.
 */
#include <stdint.h>

#include "paging.h"
#include "svm.h"
#include "tap.h"

#define ALL		(PRESENT | WRITABLE | USER | A | D)

#define PAGE_FAULT	14
#define TLB_FLUSH_GUEST	3
#define TLB_FLUSH_GUEST_LOCAL 7

typedef uint8_t frame[PAGE] __attribute__((aligned(PAGE)));

static table other_nested4, other_nested3, other_nested2, other_nested1;
/* Of the guest: by level, and those of its code; other_walk is of another CR3. */
static table walk[5], other_walk[5], code3, code2;
static table host_walk[4];
static frame first, second, third, guest_stack;

void guest_read(void);
void guest_write(void);
void guest_invlpg(void);
void guest_invlpg_next(void);
void guest_cr3(void);
void guest_cr4(void);
void guest_cr0(void);
void guest_none(void);
void guest_cr0_write(void);
void guest_segment(void);
void guest_other_cr3(void);

/* RAX has the address of the page, and what is read there after it. */
__asm__(
"	.text\n"
"guest_read:\n"
"	movzbl	(%rax), %eax\n"
"	vmmcall\n"
"guest_write:\n"
"	movb	$0, 1(%rax)\n"
"	movzbl	(%rax), %eax\n"
"	vmmcall\n"
"guest_invlpg:\n"
"	invlpg	(%rax)\n"
"	movzbl	(%rax), %eax\n"
"	vmmcall\n"
"guest_invlpg_next:\n"
"	invlpg	0x1000(%rax)\n"
"	movzbl	(%rax), %eax\n"
"	vmmcall\n"
"guest_cr3:\n"
"	mov	%cr3, %rdx\n"
"	mov	%rdx, %cr3\n"
"	movzbl	(%rax), %eax\n"
"	vmmcall\n"
"guest_cr4:\n"
"	mov	%cr4, %rdx\n"
"	xor	$0x80, %rdx\n"		/* PGE */
"	mov	%rdx, %cr4\n"
"	movzbl	(%rax), %eax\n"
"	vmmcall\n"
"guest_cr0:\n"
"	mov	%cr0, %rdx\n"
"	xor	$0x10000, %rdx\n"	/* WP */
"	mov	%rdx, %cr0\n"
"	movzbl	(%rax), %eax\n"
"	vmmcall\n"
"guest_none:\n"
"	vmmcall\n"
"guest_cr0_write:\n"
"	mov	%cr0, %rdx\n"
"	xor	$0x10000, %rdx\n"	/* WP */
"	mov	%rdx, %cr0\n"
"	movb	$0, 1(%rax)\n"
"	vmmcall\n"
"guest_other_cr3:\n"
"	mov	%rax, %cr3\n"
"	mov	$0x8000000000, %rax\n"	/* LONG_ADDRESS */
"	movzbl	(%rax), %eax\n"
"	vmmcall\n"
"guest_segment:\n"
"	mov	$0x10, %ecx\n"
"	mov	%ecx, %ds\n"
"	vmmcall\n"
);

/* Other tables, that have the second frame where the first one is. */
static void build_other_nested(void)
{
	unsigned int of_first = address(first) / LARGE_2MB;

	other_nested4[0] = address(other_nested3) | ALL;
	other_nested3[0] = address(other_nested2) | ALL;
	for (unsigned int i = 0; i < NESTED_TABLES; i++)
		other_nested2[i] = nested2[i];
	for (unsigned int k = 0; k < ENTRIES; k++)
		other_nested1[k] = nested1[of_first][k];
	other_nested2[of_first] = address(other_nested1) | ALL;
	other_nested1[address(first) / PAGE % ENTRIES] = address(second) | ALL;
}

static void build_walk(table *of, const void *object)
{
	for (unsigned int i = 1; i <= 4; i++)
		clear(of[i]);
	of[4][0] = address(code3) | ALL;
	of[4][1] = address(of[3]) | ALL;
	of[3][0] = address(of[2]) | ALL;
	of[2][0] = address(of[1]) | ALL;
	of[1][0] = address(object) | ALL;
}

static void build_guest(void)
{
	code3[0] = address(code2) | ALL;
	for (unsigned int i = 0; i < NESTED_TABLES; i++)
		code2[i] = (uint64_t)i * LARGE_2MB | ALL | LARGE;
	build_walk(walk, first);
	build_walk(other_walk, second);
}

static void write_cr3(uint64_t cr3)
{
	__asm__ volatile("mov %0, %%cr3" : : "r"(cr3) : "memory");
}

static uint64_t read_cr3(void)
{
	uint64_t cr3;

	__asm__ volatile("mov %%cr3, %0" : "=r"(cr3));
	return cr3;
}

static void invlpg(uint64_t linear)
{
	__asm__ volatile("invlpg (%0)" : : "r"(linear) : "memory");
}

static void invlpga(uint64_t linear, uint32_t asid)
{
	__asm__ volatile("invlpga" : : "a"(linear), "c"(asid) : "memory");
}

/* The host has the third frame at the guest's address. */
static void build_host(void)
{
	uint64_t *top = (uint64_t *)(uintptr_t)read_cr3();

	for (unsigned int i = 1; i <= 3; i++)
		clear(host_walk[i]);
	host_walk[3][0] = address(host_walk[2]) | ALL;
	host_walk[2][0] = address(host_walk[1]) | ALL;
	host_walk[1][0] = address(third) | ALL;
	top[1] = address(host_walk[3]) | ALL;
	write_cr3(read_cr3());
}

static uint8_t host_read(void)
{
	return *(volatile uint8_t *)(uintptr_t)LONG_ADDRESS;
}

/* What a guest does next, with whatever of the last VMCB is not said here. */
static uint64_t guest(void (*code)(void))
{
	vmcb.rip = address((void *)(uintptr_t)code);
	vmcb.rsp = address(guest_stack) + PAGE;
	vmcb.rax = LONG_ADDRESS;
	vmcb.exit_code = EXIT_INVALID;
	run();
	vmcb.tlb_control = 0;
	return vmcb.rax;
}

/* A line only if what a case begins with is not so. */
static void must(int holds, const char *what)
{
	if (!holds)
		check(what, 0, 1);
}

/* All tables anew, nothing in a TLB, and a guest that has read the first frame. */
static void begin(void)
{
	build_nested(ALL);
	build_other_nested();
	build_guest();
	build_host();
	clear_vmcb(CODE64_ATTRIBUTES);
	vmcb.exceptions = 1u << PAGE_FAULT;
	vmcb.efer = EFER_SVME | EFER_LME | EFER_LMA;
	vmcb.cr0 = CR0_PG | CR0_WP | CR0_PE;
	vmcb.cr4 = CR4_PAE;
	vmcb.cr3 = address(walk[4]);
	vmcb.nested_control = NESTED_PAGING;
	vmcb.nested_cr3 = address(nested4);
	first[0] = 1;
	second[0] = 2;
	third[0] = 3;
	must(guest(guest_read) == 1 && vmcb.exit_code == EXIT_VMMCALL, "before: the guest reads the first frame");
	must(host_read() == 3, "before: the host reads the third frame");
}

/* --- what a hypervisor does between two VMRUNs --------------------------- */

static void nothing(void)
{
}

static void flush_all(void)
{
	vmcb.tlb_control = TLB_FLUSH_ALL;
}

static void flush_guest(void)
{
	vmcb.tlb_control = TLB_FLUSH_GUEST;
}

static void flush_guest_local(void)
{
	vmcb.tlb_control = TLB_FLUSH_GUEST_LOCAL;
}

static void other_asid(void)
{
	vmcb.asid = 2;
}

static void a_guest(void)
{
	guest(guest_none);
}

/* Of the first one nothing is left when it is asked for again. */
static void other_asid_meanwhile(void)
{
	vmcb.asid = 2;
	guest(guest_none);
	vmcb.asid = 1;
}

static void invlpga_page(void)
{
	invlpga(LONG_ADDRESS, 1);
}

static void host_flushes_its_own(void)
{
	write_cr3(read_cr3());
}

static void write_cr4(uint64_t cr4)
{
	__asm__ volatile("mov %0, %%cr4" : : "r"(cr4) : "memory");
}

static uint64_t read_cr4(void)
{
	uint64_t cr4;

	__asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
	return cr4;
}

/* With global pages, or without. */
static void host_toggles_pge(void)
{
	write_cr4(read_cr4() ^ CR4_PGE);
	write_cr4(read_cr4() ^ CR4_PGE);
}

static void host_flushes_page(void)
{
	invlpg(LONG_ADDRESS);
}

static void other_nested_tables_meanwhile(void)
{
	vmcb.nested_cr3 = address(other_nested4);
	guest(guest_none);
	vmcb.nested_cr3 = address(nested4);
}

static void without_nested_tables_meanwhile(void)
{
	vmcb.nested_control = 0;
	guest(guest_none);
	vmcb.nested_control = NESTED_PAGING;
}

static void other_cr3_meanwhile(void)
{
	vmcb.cr3 = address(other_walk[4]);
	guest(guest_none);
	vmcb.cr3 = address(walk[4]);
}

static void a_failed_vmrun(void)
{
	vmcb.cr3 = address(other_walk[4]);
	vmcb.efer = EFER_LME | EFER_LMA;	/* not SVME: seen when CR3 is loaded */
	guest(guest_none);
	must(vmcb.exit_code == EXIT_INVALID, "before: a VMRUN fails");
	vmcb.cr3 = address(walk[4]);
	vmcb.efer |= EFER_SVME;
}

#define KEPT	1
#define NEW	2

/* The guest's page goes from the first frame to the second in one of two tables. */
static const struct {
	const char *what;
	void (*between)(void);
	void (*code)(void);
	uint8_t of_guest, of_nested;	/* the frame that is seen, if that table has changed */
} guest_cases[] = {
	{ "nothing", nothing, guest_read, KEPT, KEPT },
	{ "TLB_CONTROL 1", flush_all, guest_read, NEW, NEW },
	{ "TLB_CONTROL 3", flush_guest, guest_read, NEW, NEW },
	{ "TLB_CONTROL 7", flush_guest_local, guest_read, NEW, NEW },
	{ "another ASID", other_asid, guest_read, NEW, NEW },
	{ "another ASID meanwhile", other_asid_meanwhile, guest_read, NEW, NEW },
	{ "INVLPGA", invlpga_page, guest_read, NEW, KEPT },
	{ "the host's CR3", host_flushes_its_own, guest_read, KEPT, KEPT },
	{ "other nested tables meanwhile", other_nested_tables_meanwhile, guest_read, NEW, NEW },
	{ "no nested tables meanwhile", without_nested_tables_meanwhile, guest_read, NEW, NEW },
	{ "another CR3 meanwhile", other_cr3_meanwhile, guest_read, NEW, NEW },
	{ "a VMRUN that fails", a_failed_vmrun, guest_read, NEW, NEW },
	{ "the guest's INVLPG", nothing, guest_invlpg, NEW, KEPT },
	{ "the guest's CR3", nothing, guest_cr3, NEW, KEPT },
	{ "the guest's CR4.PGE", nothing, guest_cr4, NEW, KEPT },
	{ "the guest's CR0.WP", nothing, guest_cr0, NEW, KEPT },
};

/* The host's page goes from the third frame to the first. */
static const struct {
	const char *what;
	void (*between)(void);
	void (*code)(void);
	uint8_t seen;
} host_cases[] = {
	{ "a guest that reads", nothing, guest_read, 3 },
	{ "TLB_CONTROL 3", flush_guest, guest_read, 3 },
	{ "another ASID", other_asid, guest_read, 3 },
	{ "the guest's CR3", nothing, guest_cr3, 3 },
	{ "the guest's INVLPG", nothing, guest_invlpg, 1 },
	{ "TLB_CONTROL 1", flush_all, guest_read, 1 },
	{ "its own CR3", host_flushes_its_own, guest_none, 1 },
};

static void check_frame(const char *which, const char *what, uint64_t seen, uint8_t wanted)
{
	print_result(seen == wanted && vmcb.exit_code == EXIT_VMMCALL);
	print(which);
	print(what);
	if (seen != wanted) {
		print(": frame ");
		print_number(seen);
		print(" instead of ");
		print_number(wanted);
	}
	print("\n");
}

static void test_guest(void)
{
	for (unsigned int i = 0; i < sizeof(guest_cases) / sizeof(*guest_cases); i++) {
		begin();
		walk[1][0] = address(second) | ALL;
		guest_cases[i].between();
		check_frame("guest's table, ", guest_cases[i].what, guest(guest_cases[i].code),
			    guest_cases[i].of_guest);
		check_frame("and the host has its own, ", guest_cases[i].what, host_read(), 3);

		begin();
		*nested_entry(first) = address(second) | ALL;
		guest_cases[i].between();
		check_frame("nested table, ", guest_cases[i].what, guest(guest_cases[i].code),
			    guest_cases[i].of_nested);
	}
}

static void test_host(void)
{
	for (unsigned int i = 0; i < sizeof(host_cases) / sizeof(*host_cases); i++) {
		begin();
		host_walk[1][0] = address(first) | ALL;
		host_cases[i].between();
		guest(host_cases[i].code);
		check_frame("host's table, ", host_cases[i].what, host_read(), host_cases[i].seen);
	}
	begin();
	host_walk[1][0] = address(first) | ALL;
	invlpg(LONG_ADDRESS);
	check_frame("host's table, ", "its own INVLPG", host_read(), 1);
	/* The guest's is gone, too, or it is not: the same linear address. */
	check_frame("guest's table, ", "the host's INVLPG", guest(guest_read), 1);
}

/* Another CR3, or other nested tables: nobody has to flush for that. */
static void test_others(void)
{
	begin();
	vmcb.cr3 = address(other_walk[4]);
	check_frame("another CR3: ", "its frame", guest(guest_read), 2);
	vmcb.cr3 = address(walk[4]);
	check_frame("the first CR3: ", "its frame", guest(guest_read), 1);
	/* One that fails has loaded it, and nothing of it has run. */
	a_failed_vmrun();
	vmcb.cr3 = address(other_walk[4]);
	check_frame("another CR3, after a VMRUN with it that failed: ", "its frame", guest(guest_read), 2);
	vmcb.cr3 = address(walk[4]);
	vmcb.nested_cr3 = address(other_nested4);
	check_frame("other nested tables: ", "their frame", guest(guest_read), 2);
	vmcb.nested_cr3 = address(nested4);
	vmcb.nested_control = 0;
	check_frame("no nested tables: ", "the guest's own", guest(guest_read), 1);
}

/* What may be done is looked up again when it is denied, and never kept for who has less. */
static void test_rights(void)
{
	begin();
	*nested_entry(first) &= ~(uint64_t)WRITABLE;
	flush_guest();
	guest(guest_write);
	check("nested table, read-only: exit", vmcb.exit_code, EXIT_NPF);
	*nested_entry(first) |= WRITABLE;
	guest(guest_write);
	check("nested table, writable again, no flush: exit", vmcb.exit_code, EXIT_VMMCALL);

	begin();
	*nested_entry(first) = 0;
	flush_guest();
	guest(guest_read);
	check("nested table, absent: exit", vmcb.exit_code, EXIT_NPF);
	*nested_entry(first) = address(first) | ALL;
	guest(guest_read);
	check("nested table, there again, no flush: exit", vmcb.exit_code, EXIT_VMMCALL);

	begin();
	walk[1][0] &= ~(uint64_t)WRITABLE;
	flush_guest();
	vmcb.cr0 &= ~(uint64_t)CR0_WP;
	guest(guest_write);
	check("read-only page, no CR0.WP: exit", vmcb.exit_code, EXIT_VMMCALL);
	vmcb.cr0 |= CR0_WP;
	guest(guest_write);
	check("read-only page, CR0.WP, no flush: exit", vmcb.exit_code, EXIT_EXCEPTION + PAGE_FAULT);
	walk[1][0] |= WRITABLE;
	guest(guest_write);
	check("writable page, no flush: exit", vmcb.exit_code, EXIT_VMMCALL);
}

/* INVLPG flushes all of a large page, whatever the nested tables have there. */
static void test_large(void)
{
	uint64_t base = address(first) & ~(LARGE_2MB - 1ull);
	uint64_t inside = address(first) & (LARGE_2MB - 1ull);

	begin();
	walk[2][0] = base | ALL | LARGE;
	flush_guest();
	vmcb.rip = address((void *)(uintptr_t)guest_read);
	vmcb.rax = LONG_ADDRESS + inside;
	run();
	vmcb.tlb_control = 0;
	check("large page: frame", vmcb.rax, 1);
	walk[2][0] = address(walk[1]) | ALL;
	walk[1][inside / PAGE] = address(second) | ALL;
	/* Of another of its small ones. */
	walk[1][0] = address(third) | ALL;
	check("large page, INVLPG of its begin: frame there", guest(guest_invlpg), 3);
	vmcb.rip = address((void *)(uintptr_t)guest_read);
	vmcb.rax = LONG_ADDRESS + inside;
	run();
	check("large page, INVLPG of its begin: frame elsewhere", vmcb.rax, 2);

	/* And no more than a small one, even if the nested tables have a large one there. */
	begin();
	nested2[address(first) / LARGE_2MB] = base | ALL | LARGE;
	flush_guest();
	check("small page in a nested large one: frame", guest(guest_read), 1);
	walk[1][0] = address(second) | ALL;
	check("small page in a nested large one, INVLPG of the next: frame", guest(guest_invlpg_next), KEPT);
	check("small page in a nested large one, INVLPG: frame", guest(guest_invlpg), NEW);
}

/*
 * A global page stays when CR3 changes.  Not always: the emulator's TLB grows and
 * shrinks, and is empty then.
 */
#define TRIES	20

static const struct {
	const char *what;
	void (*code)(void);
	uint32_t bits, cr4;
	uint8_t seen;
} guest_global_cases[] = {
	{ "CR3, global", guest_cr3, GLOBAL, CR4_PGE, KEPT },
	{ "CR3, not global", guest_cr3, 0, CR4_PGE, NEW },
	{ "CR3, global, no CR4.PGE", guest_cr3, GLOBAL, 0, NEW },
	{ "INVLPG, global", guest_invlpg, GLOBAL, CR4_PGE, NEW },
	{ "CR4.PGE off, global", guest_cr4, GLOBAL, CR4_PGE, NEW },
	{ "nothing, CR4.PGE, not global", guest_read, 0, CR4_PGE, KEPT },
};

static const struct {
	const char *what;
	void (*flush)(void);
	uint32_t bits, cr4;
	uint8_t seen;
} host_global_cases[] = {
	{ "CR3, global", host_flushes_its_own, GLOBAL, CR4_PGE, 3 },
	{ "CR3, not global", host_flushes_its_own, 0, CR4_PGE, 1 },
	{ "CR3, global, no CR4.PGE", host_flushes_its_own, GLOBAL, 0, 1 },
	{ "INVLPG, global", host_flushes_page, GLOBAL, CR4_PGE, 1 },
	{ "CR4.PGE, global", host_toggles_pge, GLOBAL, CR4_PGE, 1 },
	{ "a guest, CR4.PGE, not global", a_guest, 0, CR4_PGE, 3 },
};

static uint64_t guest_global(uint32_t bits, uint32_t cr4, void (*code)(void))
{
	begin();
	vmcb.cr4 |= cr4;
	walk[1][0] |= bits;
	flush_guest();
	must(guest(guest_read) == KEPT, "before: the guest reads the first frame");
	walk[1][0] = address(second) | ALL | bits;
	return guest(code);
}

static uint8_t host_global(uint32_t bits, uint32_t cr4, void (*flush)(void))
{
	begin();
	write_cr4(read_cr4() | cr4);
	host_walk[1][0] |= bits;
	invlpg(LONG_ADDRESS);
	must(host_read() == 3, "before: the host reads the third frame");
	host_walk[1][0] = address(first) | ALL | bits;
	flush();
	bits = host_read();
	write_cr4(read_cr4() & ~(uint64_t)CR4_PGE);
	return bits;
}

static void test_global(void)
{
	for (unsigned int i = 0; i < sizeof(guest_global_cases) / sizeof(*guest_global_cases); i++) {
		uint64_t seen = 0;

		for (unsigned int k = 0; k < TRIES && seen != KEPT; k++)
			seen = guest_global(guest_global_cases[i].bits, guest_global_cases[i].cr4,
					    guest_global_cases[i].code);
		check_frame("guest's ", guest_global_cases[i].what, seen, guest_global_cases[i].seen);
	}
	for (unsigned int i = 0; i < sizeof(host_global_cases) / sizeof(*host_global_cases); i++) {
		uint8_t seen = 0;

		for (unsigned int k = 0; k < TRIES && seen != 3; k++)
			seen = host_global(host_global_cases[i].bits, host_global_cases[i].cr4,
					   host_global_cases[i].flush);
		check_frame("host's ", host_global_cases[i].what, seen, host_global_cases[i].seen);
	}
}

/* A guest's CR3 with CR4.PGE is about its own small and large pages, not about nested ones nor the host's. */
static void test_global_others(void)
{
	uint64_t base = address(first) & ~(LARGE_2MB - 1ull);
	uint64_t inside = address(first) & (LARGE_2MB - 1ull);
	uint64_t of_nested = 0, of_host = 0, of_large = 0;

	for (unsigned int k = 0; k < TRIES && of_nested != KEPT; k++) {
		begin();
		vmcb.cr4 |= CR4_PGE;
		guest(guest_read);
		*nested_entry(first) = address(second) | ALL;
		of_nested = guest(guest_cr3);
	}
	check("nested table, guest's CR3, CR4.PGE: frame", of_nested, KEPT);
	for (unsigned int k = 0; k < TRIES && of_host != 3; k++) {
		begin();
		vmcb.cr4 |= CR4_PGE;
		host_walk[1][0] = address(first) | ALL;
		guest(guest_cr3);
		of_host = host_read();
	}
	check("host's table, guest's CR3, CR4.PGE: frame", of_host, 3);
	for (unsigned int k = 0; k < TRIES && of_large != KEPT; k++) {
		begin();
		vmcb.cr4 |= CR4_PGE;
		walk[2][0] = base | ALL | LARGE | GLOBAL;
		flush_guest();
		vmcb.rip = address((void *)(uintptr_t)guest_read);
		vmcb.rax = LONG_ADDRESS + inside;
		run();
		vmcb.tlb_control = 0;
		walk[2][0] = address(walk[1]) | ALL;
		walk[1][inside / PAGE] = address(second) | ALL;
		vmcb.rip = address((void *)(uintptr_t)guest_cr3);
		vmcb.rax = LONG_ADDRESS + inside;
		run();
		of_large = vmcb.rax;
	}
	check("large global page, guest's CR3: frame", of_large, KEPT);
}

/* What was read without CR4.PGE is not global afterwards, and without it nothing is. */
static void test_hypervisors_pge(void)
{
	for (unsigned int on = 0; on < 2; on++) {
		begin();
		vmcb.cr4 |= on ? 0 : CR4_PGE;
		walk[1][0] |= GLOBAL;
		flush_guest();
		guest(guest_read);
		vmcb.cr4 ^= CR4_PGE;
		walk[1][0] = address(second) | ALL | GLOBAL;
		check_frame("guest's CR3, global, ", on ? "CR4.PGE since it was read" : "no CR4.PGE since it was read",
			    guest(guest_cr3), NEW);
	}
}

/* Many pages, every other one global: none of the others is left, however large the TLB is then. */
static void test_many(void)
{
	unsigned int stale = 0, most = 0;

	begin();
	write_cr4(read_cr4() | CR4_PGE);
	for (unsigned int turn = 0; turn < TRIES; turn++) {
		const uint8_t *before = turn % 2 ? first : third, *after = turn % 2 ? third : first;
		volatile uint8_t *pages = (volatile uint8_t *)(uintptr_t)LONG_ADDRESS;
		unsigned int kept = 0;

		for (unsigned int i = 0; i < ENTRIES; i++)
			host_walk[1][i] = address(before) | ALL | (i % 2 ? GLOBAL : 0);
		host_toggles_pge();
		for (unsigned int i = 0; i < ENTRIES; i++)
			(void)pages[i * PAGE];
		for (unsigned int i = 0; i < ENTRIES; i++)
			host_walk[1][i] = address(after) | ALL | (i % 2 ? GLOBAL : 0);
		write_cr3(read_cr3());
		for (unsigned int i = 0; i < ENTRIES; i++)
			if (pages[i * PAGE] == *before) {
				stale += !(i % 2);
				kept += i % 2;
			}
		most = kept > most ? kept : most;
	}
	write_cr4(read_cr4() & ~(uint64_t)CR4_PGE);
	check("many pages, CR3: stale ones", stale, 0);
	check("many pages, CR3: most global ones of a turn are kept, once at least", most > ENTRIES / 4, 1);
}

/* --- code ------------------------------------------------------------------ */

static frame code_first, code_second, code_next_first, code_next_second;

/* Return: @number. */
static void write_function(uint8_t *at, uint32_t number)
{
	at[0] = 0xb8;	/* mov $number, %eax */
	for (unsigned int i = 0; i < 4; i++)
		at[1 + i] = number >> 8 * i;
	at[5] = 0xc3;	/* ret */
}

static uint32_t call(uint64_t at)
{
	uint32_t (*volatile function)(void) = (uint32_t (*)(void))(uintptr_t)at;

	return function();
}

static void other_asid_meanwhile_and_own_cr3(void)
{
	other_asid_meanwhile();
	write_cr3(read_cr3());
}

static const struct {
	const char *what;
	void (*flush)(void);
	uint32_t cr4;
} code_cases[] = {
	{ "INVLPG", host_flushes_page, 0 },
	{ "CR3", host_flushes_its_own, 0 },
	{ "CR3, with CR4.PGE", host_flushes_its_own, CR4_PGE },
	{ "CR4.PGE", host_toggles_pge, 0 },
	{ "CR3 after a guest", other_asid_meanwhile_and_own_cr3, 0 },
};

/* What runs is what is there, wherever that was called before. */
static void test_code(void)
{
	const unsigned int last = PAGE - 3;	/* two bytes of the number are in the next page */

	write_function(code_first, 1);
	write_function(code_second, 2);
	for (unsigned int i = 0; i < sizeof(code_cases) / sizeof(*code_cases); i++) {
		begin();
		write_cr4(read_cr4() | code_cases[i].cr4);
		host_walk[1][0] = address(code_first) | ALL;
		invlpg(LONG_ADDRESS);
		check("code: first", call(LONG_ADDRESS), 1);
		host_walk[1][0] = address(code_second) | ALL;
		code_cases[i].flush();
		print("# ");
		print(code_cases[i].what);
		print("\n");
		check("code, other page", call(LONG_ADDRESS), 2);
		host_walk[1][0] = address(code_first) | ALL;
		code_cases[i].flush();
		check("code, the page before", call(LONG_ADDRESS), 1);
		write_cr4(read_cr4() & ~(uint64_t)CR4_PGE);
	}

	/* A function in two pages, whose second one changes.  Bytes 2 and 3 of its number, and RET, are there. */
	code_first[last] = 0xb8;
	code_first[last + 1] = 0x11;
	code_first[last + 2] = 0x22;
	code_next_first[0] = 0x33;
	code_next_second[0] = 0x55;
	code_next_first[1] = code_next_second[1] = 0x44;
	code_next_first[2] = code_next_second[2] = 0xc3;
	for (unsigned int i = 1; i < sizeof(code_cases) / sizeof(*code_cases); i++) {
		begin();
		write_cr4(read_cr4() | code_cases[i].cr4);
		host_walk[1][0] = address(code_first) | ALL;
		host_walk[1][1] = address(code_next_first) | ALL;
		write_cr3(read_cr3());
		check("code in two pages: first", call(LONG_ADDRESS + last), 0x44332211);
		host_walk[1][1] = address(code_next_second) | ALL;
		code_cases[i].flush();
		print("# ");
		print(code_cases[i].what);
		print("\n");
		check("code in two pages, other second one", call(LONG_ADDRESS + last), 0x44552211);
		write_cr4(read_cr4() & ~(uint64_t)CR4_PGE);
	}

	/* A small page in a large one: INVLPG of any address of that is enough. */
	begin();
	host_walk[2][0] = (address(code_first) & ~(LARGE_2MB - 1ull)) | ALL | LARGE;
	write_cr3(read_cr3());
	check("code in a large page", call(LONG_ADDRESS + address(code_first) % LARGE_2MB), 1);
	clear(host_walk[1]);
	host_walk[1][address(code_first) / PAGE % ENTRIES] = address(code_second) | ALL;
	host_walk[2][0] = address(host_walk[1]) | ALL;
	invlpg(LONG_ADDRESS);
	check("code in small pages, after INVLPG of another one", call(LONG_ADDRESS + address(code_first) % LARGE_2MB), 2);
}

/*
 * System management mode sees other memory: the last MiB (TSEG) of 64 is there for it only.  A page table that it
 * has looked at is not for those who come after it.  Its handler is in RAM below 1 MiB, where SeaBIOS has put SMBASE.
 */
#define SMM_HANDLER	0xa8000u
#define TSEG_PAGE	0x3f01000u
#define KERNEL_GS	0x620	/* in a VMCB */
#define MSR_KERNEL_GS	0xc0000102
#define APM_CONTROL	0xb2
#define MCH_ESMRAMC	0x9e	/* of PCI device 0 */

extern const uint8_t smm_handler[], smm_handler_end[];
__asm__(
"	.pushsection .rodata\n"
"	.code16\n"
"smm_handler:\n"
"	mov	$0xc0000080, %ecx\n"
"	rdmsr\n"
"	or	$0x1000, %eax\n"		/* SVME */
"	wrmsr\n"
"	mov	%cr0, %eax\n"
"	or	$1, %eax\n"
"	mov	%eax, %cr0\n"
"	mov	$0x3f01000, %eax\n"
"	.byte	0x0f, 0x01, 0xda\n"	/* VMLOAD: reads by physical address, as a walk does */
"	rsm\n"
"smm_handler_end:\n"
"	.code64\n"
"	.popsection\n"
);

static inline void outl(uint16_t port, uint32_t value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

/* Printing lets the emulator's queued work run. */
static void write_esmramc(uint8_t value)
{
	outl(0xcf8, 0x80000000u | (MCH_ESMRAMC & ~3u));
	outb(0xcfc + MCH_ESMRAMC % 4, value);
	print("# TSEG\n");
}

static void test_smm(void)
{
	volatile uint8_t *handler = (volatile uint8_t *)(uintptr_t)SMM_HANDLER;
	volatile uint64_t *entries = (volatile uint64_t *)(uintptr_t)TSEG_PAGE;

	outl(0xcf8, 0x80000000u | 0x9c);
	outb(0xcfd, 0x4a);
	for (unsigned int i = 0; i < (uintptr_t)(smm_handler_end - smm_handler); i++)
		handler[i] = smm_handler[i];
	for (unsigned int i = 0; i < ENTRIES; i++)
		entries[i] = 0;
	for (unsigned int smi = 0; smi < 2; smi++) {
		begin();
		write_esmramc(0);
		entries[0] = address(first) | ALL;
		walk[2][0] = TSEG_PAGE | ALL;
		vmcb.nested_control = 0;
		flush_guest();
		check("a page table in what will be SMM's memory", guest(guest_read), 1);
		entries[KERNEL_GS / 8] = smi + 1;
		write_esmramc(1);
		if (smi) {
			/* First by who may not, so that SMM finds what is not its own. */
			guest(guest_read);
			outb(APM_CONTROL, 1);
			print("# SMI\n");
			check("what SMM has read", rdmsr(MSR_KERNEL_GS), smi + 1);
		}
		flush_guest();
		guest(guest_read);
		check(smi ? "a page table that SMM has read: exit" : "a page table in SMM's memory: exit", vmcb.exit_code,
		      EXIT_EXCEPTION + PAGE_FAULT);
	}
	write_esmramc(0);
}

/* What a guest does as its kernel, or as its user, is about its own page, with the rights of either. */
static void test_guests_indexes(void)
{
	const uint64_t data = 0x00cf93000000ffff;

	/* A global page stays, and what was allowed without CR0.WP does not. */
	begin();
	vmcb.cr4 |= CR4_PGE;
	vmcb.cr0 &= ~(uint64_t)CR0_WP;
	walk[1][0] = (address(first) | ALL | GLOBAL) & ~(uint64_t)WRITABLE;
	flush_guest();
	guest(guest_write);
	check("read-only global page, no CR0.WP: exit", vmcb.exit_code, EXIT_VMMCALL);
	guest(guest_cr0_write);
	check("read-only global page, CR0.WP set by the guest: exit", vmcb.exit_code, EXIT_EXCEPTION + PAGE_FAULT);

	/* What the guest has changed itself, and the hypervisor puts back. */
	begin();
	vmcb.rip = address((void *)(uintptr_t)guest_other_cr3);
	vmcb.rax = address(other_walk[4]);
	run();
	check("the guest's other CR3: its frame", vmcb.rax, 2);
	other_walk[1][0] = address(third) | ALL;
	check("the guest's other CR3, nothing: frame", guest(guest_read), 2);
	vmcb.rip = address((void *)(uintptr_t)guest_other_cr3);
	vmcb.rax = address(walk[4]);
	run();
	check("the guest's CR3 that it had: its frame", vmcb.rax, 1);
	vmcb.cr3 = address(other_walk[4]);
	check("CR3 that the guest has left, from the hypervisor: its frame", guest(guest_read), 3);
	begin();
	walk[1][0] &= ~(uint64_t)WRITABLE;
	flush_guest();
	guest(guest_cr0_write);
	check("read-only page, CR0.WP cleared by the guest: exit", vmcb.exit_code, EXIT_VMMCALL);
	vmcb.cr0 |= CR0_WP;
	guest(guest_write);
	check("read-only page, CR0.WP put back by the hypervisor: exit", vmcb.exit_code, EXIT_EXCEPTION + PAGE_FAULT);

	/* The guest's user. */
	begin();
	vmcb.cs.attributes |= 0x60;
	vmcb.ss.attributes |= 0x60;
	vmcb.cpl = 3;
	guest(guest_read);
	check("user's page, read by the user: exit", vmcb.exit_code, EXIT_VMMCALL);
	begin();
	walk[1][0] &= ~(uint64_t)USER;
	flush_guest();
	guest(guest_read);
	check("kernel's page, read by the kernel: exit", vmcb.exit_code, EXIT_VMMCALL);
	vmcb.cs.attributes |= 0x60;
	vmcb.ss.attributes |= 0x60;
	vmcb.cpl = 3;
	guest(guest_read);
	check("kernel's page, read by the user: exit", vmcb.exit_code, EXIT_EXCEPTION + PAGE_FAULT);

	/* SMAP: its kernel does not read what is its user's; without EFLAGS.AC it was let to. */
	begin();
	vmcb.cr4 |= 1u << 21;
	vmcb.rflags |= 1u << 18;
	guest(guest_read);
	check("user's page, read by the kernel, SMAP, AC: exit", vmcb.exit_code, EXIT_VMMCALL);
	vmcb.rflags &= ~(1ull << 18);
	walk[4][0] &= ~(uint64_t)USER;	/* but its code is its own */
	guest(guest_read);
	check("user's page, read by the kernel, SMAP: exit", vmcb.exit_code, EXIT_EXCEPTION + PAGE_FAULT);

	/* What the CPU reads by itself: a descriptor. The host has none there, and has read it. */
	begin();
	((uint64_t *)first)[2] = data;
	((uint64_t *)third)[2] = 0;
	vmcb.gdtr.base = LONG_ADDRESS;
	vmcb.gdtr.limit = PAGE - 1;
	vmcb.exceptions = ~0u;
	guest(guest_segment);
	check("guest's descriptor: exit", vmcb.exit_code, EXIT_VMMCALL);
	((uint64_t *)first)[2] = 0;
}

#define ROUNDS	1000	/* some ms */
#define CONFLICT (1ull << 34)	/* 2^22 pages: the same entry of the largest TLB */

static table conflict2, conflict1;

static volatile uint8_t *page_at(uint64_t linear)
{
	return (volatile uint8_t *)(uintptr_t)linear;
}

static void global_makes_way(uint64_t page)
{
	(void)*page_at(page);
	(void)*page_at(page + CONFLICT);
}

static void global_makes_way_and_goes(uint64_t page)
{
	global_makes_way(page);
	invlpg(page);
}

static void read_and_write(uint64_t page)
{
	volatile uint64_t *entry = &conflict1[page / PAGE % ENTRIES];

	*entry &= ~(uint64_t)D;
	(void)*page_at(page + CONFLICT);
	*page_at(page + CONFLICT) = 0;
}

static void take_turns(uint64_t page)
{
	for (unsigned int i = 0; i < 16; i++)
		global_makes_way(page);
}

static void makes_way_and_goes(uint64_t page)
{
	(void)*page_at(page + CONFLICT);
	(void)*page_at(page);
}

static void many_that_go(uint64_t page)
{
	for (unsigned int i = 0; i < 16; i++)
		(void)*page_at(page + CONFLICT + (i + 1) * PAGE);
}

static const struct {
	const char *what;
	void (*access)(uint64_t page);
} used_cases[] = {
	{ "one that makes way", global_makes_way },
	{ "one that makes way, and INVLPG of it", global_makes_way_and_goes },
	{ "one that is read, then written", read_and_write },
	{ "two that take turns", take_turns },
	{ "many that go", many_that_go },
	{ "one that makes way for a global one", makes_way_and_goes },
};

/*
 * How many entries are in use is known whatever has become of them: else the TLB is emptied, and grows, for nothing.
 * Rounds of an access to pages of one entry, or of one page in two ways, and a write of CR3; a global page stays.
 */
static void test_used(void)
{
	const unsigned int stays = 9, other = 5;
	unsigned int most = 0;
	volatile uint64_t *entry = &host_walk[1][stays];

	begin();
	host_walk[3][CONFLICT >> 30] = address(conflict2) | ALL;
	conflict2[0] = address(conflict1) | ALL;
	for (unsigned int i = 0; i < ENTRIES; i++)
		conflict1[i] = address(second) | ALL;
	host_walk[1][other] = address(second) | ALL | GLOBAL;
	write_cr4(read_cr4() | CR4_PGE);
	for (unsigned int i = 0; i < sizeof(used_cases) / sizeof(*used_cases); i++) {
		unsigned int fewest = ROUNDS;

		for (unsigned int try = 0; try < 3; try++) {
			unsigned int lost = 0;

			for (unsigned int round = 0; round < ROUNDS; round++) {
				*entry = address(third) | ALL | GLOBAL;
				if (!round || *page_at(LONG_ADDRESS + stays * PAGE) != 3)
					invlpg(LONG_ADDRESS + stays * PAGE);
				(void)*page_at(LONG_ADDRESS + stays * PAGE);
				*entry = address(first) | ALL | GLOBAL;
				used_cases[i].access(LONG_ADDRESS + other * PAGE);
				write_cr3(read_cr3());
				lost += *page_at(LONG_ADDRESS + stays * PAGE) != 3;
			}
			if (lost < fewest)
				fewest = lost;
		}
		/* When the emulator looks whether the size fits, each 100 ms. */
		print("# lost ");
		print_number(fewest);
		print("\n");
		print_result(fewest < 3);
		print("global page, many CR3, beside ");
		print(used_cases[i].what);
		print(": it stays\n");
	}
	/* However many others there are. */
	for (unsigned int n = 10; n < 2 * ENTRIES / 5; n++) {
		unsigned int lost = 0;

		for (unsigned int round = 0; round < 20; round++) {
			*entry = address(third) | ALL | GLOBAL;
			invlpg(LONG_ADDRESS + stays * PAGE);
			(void)*page_at(LONG_ADDRESS + stays * PAGE);
			*entry = address(first) | ALL | GLOBAL;
			for (unsigned int i = 1; i <= n; i++)
				(void)*page_at(LONG_ADDRESS + CONFLICT + (stays + i) * PAGE);
			write_cr3(read_cr3());
			lost += *page_at(LONG_ADDRESS + stays * PAGE) != 3;
		}
		most = lost > most ? lost : most;
	}
	print_result(most < 15);
	print("global page, CR3, beside 10 to 200 others: it stays\n");
	write_cr4(read_cr4() & ~(uint64_t)CR4_PGE);
}

/* Code that is written where it was run. */
static void test_changed_code(void)
{
	uint64_t itself = address(code_first);

	begin();
	write_function(code_first, 1);
	host_walk[1][0] = address(code_first) | ALL;
	host_walk[1][1] = address(code_first) | ALL;
	write_cr3(read_cr3());
	for (unsigned int i = 1; i < 4; i++) {
		write_function(code_first, i);
		check("changed code", call(LONG_ADDRESS), i);
		check("changed code, elsewhere", call(LONG_ADDRESS + PAGE), i);
		check("changed code, by its own address", call(itself), i);
		if (i == 2)
			write_cr3(read_cr3());
	}
}

static void write_guest_code(uint8_t *at, uint8_t number)
{
	const uint8_t code[] = { 0xb8, number, 0, 0, 0, 0x0f, 0x01, 0xd9 };	/* mov $number, %eax; vmmcall */

	for (unsigned int i = 0; i < sizeof(code); i++)
		at[16 + i] = code[i];
}

static uint64_t guest_at(uint64_t rip)
{
	return guest((void (*)(void))(uintptr_t)rip);
}

/* What hypervisors do, as above, of code that the guest runs. */
static void test_guest_code(void)
{
	for (unsigned int i = 0; i < sizeof(guest_cases) / sizeof(*guest_cases); i++) {
		if (guest_cases[i].code != guest_read)
			continue;
		begin();
		write_guest_code(first, 1);
		write_guest_code(second, 2);
		check("guest's code: first", guest_at(LONG_ADDRESS + 16), 1);
		walk[1][0] = address(second) | ALL;
		guest_cases[i].between();
		check_frame("guest's table, code, ", guest_cases[i].what, guest_at(LONG_ADDRESS + 16), guest_cases[i].of_guest);

		begin();
		check("guest's code: first", guest_at(LONG_ADDRESS + 16), 1);
		*nested_entry(first) = address(second) | ALL;
		guest_cases[i].between();
		check_frame("nested table, code, ", guest_cases[i].what, guest_at(LONG_ADDRESS + 16), guest_cases[i].of_nested);
	}
}

/* --- many pages without a flush ---------------------------------------------- */

#define PASSES	64
#define LONG_TIME (1ull << 29)	/* of the TSC: longer than the emulator's 100 ms, with less than 5 GHz */
#define SMALL_TLB 72	/* 64 entries, and 8 that made way last */

static uint64_t rdtsc(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static void map_all(const uint8_t *even, const uint8_t *odd)
{
	for (unsigned int i = 0; i < ENTRIES; i++)
		host_walk[1][i] = address(i % 2 ? odd : even) | ALL;
}

/* How many of the first pages are not there by the third frame, which their entries have. */
static unsigned int kept_of(unsigned int pages)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < pages; i++)
		kept += *page_at(LONG_ADDRESS + i * PAGE) != third[0];
	return kept;
}

/* The TLB is as small as it gets, and empty: it is seldom flushed, and hardly anything is in it then. */
static void have_a_small_tlb(void)
{
	map_all(first, second);
	for (unsigned int i = 0; i < 3; i++) {
		for (uint64_t since = rdtsc(); rdtsc() - since < LONG_TIME;)
			;
		host_toggles_pge();
	}
}

/* Of 100 pages it has no more than there are places. */
static void test_small(void)
{
	begin();
	have_a_small_tlb();
	(void)kept_of(100);
	map_all(third, third);
	check("many pages, a small TLB: few are kept", kept_of(100) <= SMALL_TLB, 1);
}

/* The pages of a table, in turn; of each its last byte and the first one of the next page, by one read. */
static unsigned int wrong_reads(unsigned int odd, unsigned int even)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < ENTRIES - 1; i++) {
		uint16_t seen = *(volatile uint16_t *)(uintptr_t)(LONG_ADDRESS + (i + 1) * PAGE - 1);

		wrong += seen != (i % 2 ? even << 8 | odd : odd << 8 | even);
	}
	return wrong;
}

/* Who runs for long without a flush has a TLB for what it uses, whatever size it had before. */
static void test_grown(void)
{
	unsigned int wrong = 0, kept, stale = 0;

	begin();
	first[PAGE - 1] = first[0];
	second[PAGE - 1] = second[0];
	have_a_small_tlb();
	for (unsigned int i = 0; i < PASSES; i++)
		wrong += wrong_reads(second[0], first[0]);
	check("many pages, a TLB that grows: wrong reads", wrong, 0);
	map_all(third, third);
	kept = kept_of(ENTRIES);
	print("# kept ");
	print_number(kept);
	print("\n");
	check("many pages, a TLB that was small: nearly all are kept", kept > ENTRIES - ENTRIES / 16, 1);
	for (unsigned int i = 0; i < ENTRIES; i++) {
		invlpg(LONG_ADDRESS + i * PAGE);
		stale += *page_at(LONG_ADDRESS + i * PAGE) != third[0];
	}
	check("many pages, a TLB that has grown, INVLPG of each: stale ones", stale, 0);
}

/*
 * Pages whose entries lie in the TLB while it grows: each has a place of 64 that no other page takes, and, of most, another
 * place each time.
 */
#define OLD_PAGES	8
#define OLD_PAGE(n)	((n) * 72 + 7)

/* Read pages of other places, of the first ones, until the TLB has places for all. */
static void grow_beside_old(unsigned int pages)
{
	for (unsigned int pass = 0; pass < PASSES; pass++)
		for (unsigned int i = 0; i < pages; i++)
			if (i % 8 != 7)
				(void)*page_at(LONG_ADDRESS + i * PAGE);
}

static unsigned int old_kept(unsigned int remainder)
{
	unsigned int kept = 0;

	for (unsigned int n = remainder; n < OLD_PAGES; n += 2)
		kept += *page_at(LONG_ADDRESS + OLD_PAGE(n) * PAGE) != third[0];
	return kept;
}

/* What a TLB has when it grows is there afterwards, and is what it was: of four and four pages, one may make way for code. */
static void test_what_a_grown_tlb_keeps(void)
{
	const uint8_t *const frames[] = { code_first, code_second, code_next_first, code_next_second };
	unsigned int most_global = 0, others = 0, unchanged = 0;

	/* Two each are of one frame, whose code is run by one of them, and then written by the other one. */
	begin();
	have_a_small_tlb();
	for (unsigned int n = 0; n < OLD_PAGES; n++) {
		host_walk[1][OLD_PAGE(n)] = address(frames[n / 2]) | ALL;
		invlpg(LONG_ADDRESS + OLD_PAGE(n) * PAGE);
	}
	for (unsigned int i = 1; i < 4; i++) {
		for (unsigned int n = 0; n < OLD_PAGES; n += 2) {
			write_function((uint8_t *)(uintptr_t)(LONG_ADDRESS + OLD_PAGE(n) * PAGE), i + n);
			unchanged += call(LONG_ADDRESS + OLD_PAGE(n + 1) * PAGE) != i + n;
		}
		if (i == 1)
			grow_beside_old(ENTRIES);
	}
	check("a TLB that grows: changed code that is not noticed", unchanged, 0);

	/* Until one turn took less than the emulator's 100 ms. */
	for (unsigned int turn = 0; turn < TRIES && most_global < 3; turn++) {
		unsigned int kept;

		begin();
		have_a_small_tlb();
		write_cr4(read_cr4() | CR4_PGE);
		for (unsigned int n = 0; n < OLD_PAGES; n++) {
			uint64_t bits = ALL | (n % 2 ? GLOBAL : 0);

			invlpg(LONG_ADDRESS + OLD_PAGE(n) * PAGE);
			host_walk[1][OLD_PAGE(n)] = address(first) | bits;
			(void)*page_at(LONG_ADDRESS + OLD_PAGE(n) * PAGE);
			host_walk[1][OLD_PAGE(n)] = address(third) | bits;
		}
		/* So many that it is not too full afterwards: a flush of CR3 alone would empty and double it. */
		grow_beside_old(ENTRIES * 5 / 8);
		if (turn == 0) {
			check("a TLB that has grown: most old ones are kept", old_kept(0) + old_kept(1) >= 6, 1);
			write_cr4(read_cr4() & ~(uint64_t)CR4_PGE);
			continue;
		}
		write_cr3(read_cr3());
		kept = old_kept(1);
		others += old_kept(0);
		most_global = kept > most_global ? kept : most_global;
		write_cr4(read_cr4() & ~(uint64_t)CR4_PGE);
	}
	check("a TLB that has grown, CR3: others than global ones", others, 0);
	check("a TLB that has grown, CR3: most global ones of a turn are kept, once at least", most_global >= 3, 1);
}

void main(void);

void main(void)
{
	enable_svm();
	test_guests_indexes();
	test_used();
	test_guest_code();
	test_changed_code();
	test_smm();
	test_guest();
	test_host();
	test_others();
	test_rights();
	test_large();
	test_global();
	test_global_others();
	test_hypervisors_pge();
	test_many();
	test_small();
	test_grown();
	test_what_a_grown_tlb_keeps();
	test_code();
	finish();
}
