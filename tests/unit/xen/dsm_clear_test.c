// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which writes overwrite a whole page with zeros.
 *
 * usage: dsm_clear_test --list | CASE
 */
#include "fake_hcall.h"
#include <asm/dsm.h>

#define CODE    0xffffffff81000000UL
#define DATA    0xffff888000123000UL
#define FRAME   0x123000UL

struct vcpu *current;
struct cpu_user_regs fake_regs;
unsigned int fake_mode, fake_cpl;
bool fake_event;

static struct vcpu vcpu;
static uint8_t code[3];
static bool unreadable;

int hvm_copy_from_guest_linear(void *buf, uint64_t addr, unsigned int size,
                               uint32_t pfec, void *pfinfo)
{
    if ( addr != CODE || size != sizeof(code) )
        die("reads %u bytes at %#lx", size, addr);
    memcpy(buf, code, size);

    return unreadable ? HVMTRANS_gfn_paged_out : HVMTRANS_okay;
}

#define WRITE   { .write_access = 1, .kind = npfec_kind_with_gla }
#define STOSB   { 0xf3, 0xaa, 0xc3 }
#define STOSD   { 0xf3, 0xab, 0xc3 }
#define STOSQ   { 0xf3, 0x48, 0xab }

/* What differs from a kernel's REP STOS of zeros, for one page. */
static const struct {
    const char *name;
    uint8_t code[3];
    unsigned long rcx, rax, rdi, rflags, gpa;
    struct npfec npfec;
    unsigned int mode, cpl;
    bool unreadable, event, clears;
} cases[] = {
    { "bytes", STOSB, 4096, .clears = true },
    { "double words", STOSD, 1024, .clears = true },
    { "quad words", STOSQ, 512, .clears = true },
    { "two pages", STOSQ, 1024, .clears = true },
    { "all of the address space", STOSQ, ~0UL, .clears = true },
    { "a byte too few", STOSB, 4095 },
    { "a double word too few", STOSD, 1023 },
    { "a quad word too few", STOSQ, 511 },
    { "none", STOSQ, 0 },
    { "from the middle", STOSQ, 512, .rdi = DATA + 8, .gpa = FRAME + 8 },
    { "another place of the frame", STOSQ, 512, .gpa = FRAME + 8 },
    { "from another place", STOSQ, 512, .rdi = DATA + 8 },
    { "not zeros", STOSQ, 512, .rax = 1 },
    { "not zeros, above", STOSQ, 512, .rax = 1UL << 63 },
    { "downwards", STOSQ, 512, .rflags = X86_EFLAGS_DF },
    { "one only", { 0x48, 0xab, 0xc3 }, 512 },
    { "another instruction", { 0xf3, 0xa4, 0xc3 }, 4096 },
    { "another prefix", { 0xf2, 0xaa, 0xc3 }, 4096 },
    { "another one with REX.W", { 0xf3, 0x48, 0xa5 }, 4096 },
    { "another REX", { 0xf3, 0x49, 0xab }, 4096 },
    { "a read", STOSQ, 512, .npfec = { .read_access = 1,
                                       .kind = npfec_kind_with_gla } },
    { "a fetch", STOSQ, 512, .npfec = { .write_access = 1, .insn_fetch = 1,
                                        .kind = npfec_kind_with_gla } },
    { "a table of the guest", STOSQ, 512,
      .npfec = { .write_access = 1, .kind = npfec_kind_in_gpt } },
    { "nobody knows what", STOSQ, 512,
      .npfec = { .write_access = 1, .kind = npfec_kind_unknown } },
    { "a program", STOSQ, 512, .cpl = 3 },
    { "32 bits", STOSD, 1024, .mode = X86_MODE_32BIT },
    { "the stack of an interrupt", STOSQ, 512, .event = true },
    { "code that is away", STOSQ, 512, .unreadable = true },
};

int main(int argc, char **argv)
{
    unsigned int i;

    current = &vcpu;
    for ( i = 0; argc == 2 && i < ARRAY_SIZE(cases); i++ )
    {
        struct npfec npfec = WRITE;

        if ( !strcmp(argv[1], "--list") )
        {
            puts(cases[i].name);
            continue;
        }
        if ( strcmp(argv[1], cases[i].name) )
            continue;
        if ( cases[i].npfec.write_access || cases[i].npfec.read_access )
            npfec = cases[i].npfec;
        memcpy(code, cases[i].code, sizeof(code));
        unreadable = cases[i].unreadable;
        fake_mode = cases[i].mode ?: X86_MODE_64BIT;
        fake_cpl = cases[i].cpl;
        fake_event = cases[i].event;
        fake_regs = (struct cpu_user_regs){
            .rip = CODE, .rax = cases[i].rax, .rcx = cases[i].rcx,
            .rdi = cases[i].rdi ?: DATA, .rflags = cases[i].rflags };
        if ( dsm_clears_page(cases[i].gpa ?: FRAME, npfec) != cases[i].clears )
            die("%s: %d is wrong", cases[i].name, !cases[i].clears);
        return 0;
    }

    return argc != 2 || strcmp(argv[1], "--list");
}
