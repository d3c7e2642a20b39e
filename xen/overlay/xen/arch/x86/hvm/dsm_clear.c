/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A write that misses a page and will overwrite all of it: it does not need
 * the bytes that are on another host.
 *
 * The guest says nothing.  What its kernel does when it clears a page is one
 * instruction, REP STOS with zeros (Linux: clear_page_rep(), clear_page_erms(),
 * arch/x86/lib/clear_page_64.S), and when that faults at the first byte of a
 * page, its registers say whether it goes on to the last one.  So a miss costs
 * a copy of three bytes from the guest, and a guest that hits nothing.
 *
 * Between the zeroed page and the end of the instruction others see zeros
 * where the bytes of before should still be.  Who clears a page nobody else
 * uses does not notice.  That is what a kernel does; a program may do anything,
 * a signal may interrupt its memset() for ever: kernel mode only.
 *
 * An interrupt may come at that instruction, and it is its frame on the stack
 * that faults.  Then it is to be delivered once more.
 *
 * The instruction is read after it has faulted.  A guest that overwrites it
 * meanwhile gets a page of zeros: its own doing.
 *
 * Context: the vCPU that faulted, no locks held.
 */

#include <xen/mm.h>
#include <xen/sched.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/hvm/hvm.h>
#include <asm/hvm/support.h>
#include <asm/processor.h>

/* Bytes that one round of this instruction stores; 0: it is no REP STOS. */
static unsigned int rep_stos(const uint8_t *insn)
{
    if ( insn[0] != 0xf3 )
        return 0;
    if ( insn[1] == 0xaa )
        return 1;
    if ( insn[1] == 0xab )
        return 4;

    return insn[1] == 0x48 && insn[2] == 0xab ? 8 : 0;
}

bool dsm_clears_page(paddr_t gpa, struct npfec npfec)
{
    const struct cpu_user_regs *regs = guest_cpu_user_regs();
    struct vcpu *curr = current;
    uint8_t insn[3];
    unsigned int width;

    if ( !npfec.write_access || npfec.insn_fetch ||
         npfec.kind != npfec_kind_with_gla || ((gpa | regs->rdi) & ~PAGE_MASK) )
        return false;

    if ( regs->rax || (regs->rflags & X86_EFLAGS_DF) || hvm_get_cpl(curr) ||
         hvm_guest_x86_mode(curr) != X86_MODE_64BIT ||
         hvm_event_pending(curr) )
        return false;

    /* If the instruction is not here any more, the vCPU waits for it first. */
    if ( hvm_copy_from_guest_linear(insn, regs->rip, sizeof(insn), 0,
                                    NULL) != HVMTRANS_okay )
        return false;

    width = rep_stos(insn);

    return width && regs->rcx >= PAGE_SIZE / width;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
