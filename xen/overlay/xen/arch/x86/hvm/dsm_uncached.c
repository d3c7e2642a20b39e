/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributed shared memory: instructions that use a page in state U.
 *
 * Such a page is in use at another host for as long as anybody can tell (a
 * grant table, the ring of a device), so it does not come here.  Instead the
 * instruction is emulated, and what it does with that page is done there
 * (hvm/dsm_access.c).  All else that it does, it does here, by the operations
 * that the emulator has for every instruction.
 *
 * Memory has three operations here: read, write, compare and exchange.  All
 * others are left away: then the emulator makes a LOCKed instruction, whatever
 * it computes, out of a read and an exchange that compares with what was read,
 * and begins anew if that has changed; and REP MOVS and REP STOS one element at
 * a time.  So whatever is atomic on one host is atomic here.  What a read finds
 * may have changed when its instruction ends, as on one host.
 *
 * An access of 1, 2, 4 or 8 bytes that is aligned is one access there.  Others,
 * of which x86 does not promise that they are one, are made in parts that are
 * aligned, from the lowest address on; of one that crosses into a page that is
 * not in state U, the part in state U first: it is not made twice.  A LOCKed
 * one that is not aligned, or has 16 bytes, is refused.
 *
 * Waiting.  The vCPU is paused.  It goes on in hvm_do_resume(), which emulates
 * the instruction once more before the guest is entered, as for a device that
 * is emulated elsewhere; until it has ended, no interrupt is taken for the vCPU
 * (dsm_in_instruction()).  It may wait for ordinary pages meanwhile.  If it has
 * changed nothing yet and need not wait, it is given up, and begins anew in the
 * guest.
 *
 * What can't be emulated asks for the page, as if it were in state I, and the
 * ring says that it was in state U.  Those are tables of the guest, code, the
 * frame of an interrupt that is delivered, code that is not of 64 bits, and
 * instructions that the emulator does not know, or does in one piece (FXSAVE).
 *
 * Context: the vCPU that faulted, or goes on, no locks held.
 */

#include <xen/mm.h>
#include <xen/sched.h>
#include <xen/softirq.h>

#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/hvm/emulate.h>
#include <asm/hvm/hvm.h>
#include <asm/hvm/support.h>
#include <asm/paging.h>

static struct hvm_emulate_ctxt *hvm_ctxt(struct x86_emulate_ctxt *ctxt)
{
    return container_of(ctxt, struct hvm_emulate_ctxt, ctxt);
}

/* False: it has none, and the usual operation says what is wrong. */
static bool find_linear(enum x86_segment seg, unsigned long offset,
                        unsigned int bytes, bool write,
                        struct x86_emulate_ctxt *ctxt, unsigned long *linear)
{
    struct segment_register *reg;

    if ( seg == x86_seg_none || seg == x86_seg_sys )
    {
        *linear = offset;
        return true;
    }

    reg = hvmemul_get_seg_reg(seg, hvm_ctxt(ctxt));
    if ( IS_ERR(reg) )
        return false;

    return hvm_virtual_to_linear_addr(
        seg, reg, offset, bytes, write ? hvm_access_write : hvm_access_read,
        hvmemul_get_seg_reg(x86_seg_cs, hvm_ctxt(ctxt)), linear);
}

/* In state U?  *gfn is INVALID_GFN if it is nowhere. */
static bool is_uncached(enum x86_segment seg, unsigned long linear, bool write,
                        struct x86_emulate_ctxt *ctxt, unsigned long *gfn)
{
    uint32_t pfec = PFEC_page_present;

    if ( write )
        pfec |= PFEC_write_access;
    if ( is_x86_system_segment(seg) )
        pfec |= PFEC_implicit;
    else if ( hvmemul_get_seg_reg(x86_seg_ss, hvm_ctxt(ctxt))->dpl == 3 )
        pfec |= PFEC_user_mode;

    *gfn = paging_gva_to_gfn(current, linear, &pfec);

    return *gfn != gfn_x(INVALID_GFN) &&
           dsm_is_uncached(current->domain, _gfn(*gfn));
}

static int make(const struct xen_dsm_access *access, uint64_t *seen)
{
    switch ( dsm_access_away(current, access, seen) )
    {
    case 0:
        return X86EMUL_OKAY;

    case -ERESTART:
        return X86EMUL_RETRY;

    default:
        return X86EMUL_UNHANDLEABLE;
    }
}

/* The most that can be one access. */
static unsigned int width_at(unsigned int offset, unsigned int bytes)
{
    unsigned int width = 8;

    while ( width > bytes || offset % width )
        width /= 2;

    return width;
}

/* Read or write a part that is in one page, which is in state U. */
static int use_part(unsigned long gfn, unsigned int offset, void *data,
                    unsigned int bytes, bool write)
{
    while ( bytes )
    {
        struct xen_dsm_access access = {
            .gfn = gfn,
            .offset = offset,
            .width = width_at(offset, bytes),
            .op = write ? XEN_DSM_ACCESS_WRITE : XEN_DSM_ACCESS_READ,
        };
        uint64_t seen;
        int rc;

        if ( write )
            memcpy(&access.value, data, access.width);
        rc = make(&access, &seen);
        if ( rc != X86EMUL_OKAY )
            return rc;
        if ( !write )
            memcpy(data, &seen, access.width);

        offset += access.width;
        data += access.width;
        bytes -= access.width;
    }

    return X86EMUL_OKAY;
}

static int usual(enum x86_segment seg, unsigned long offset, void *data,
                 unsigned int bytes, bool write, struct x86_emulate_ctxt *ctxt)
{
    return write ? hvm_emulate_ops.write(seg, offset, data, bytes, ctxt)
                 : hvm_emulate_ops.read(seg, offset, data, bytes, ctxt);
}

static int use(enum x86_segment seg, unsigned long offset, void *data,
               unsigned int bytes, bool write, struct x86_emulate_ctxt *ctxt)
{
    unsigned long linear, gfn[2];
    unsigned int in_page, first;
    bool uncached[2] = {};
    int rc;

    if ( !bytes || !find_linear(seg, offset, bytes, write, ctxt, &linear) )
        return usual(seg, offset, data, bytes, write, ctxt);

    in_page = linear & ~PAGE_MASK;
    first = min(bytes, (unsigned int)PAGE_SIZE - in_page);
    uncached[0] = is_uncached(seg, linear, write, ctxt, &gfn[0]);
    if ( bytes > first )
        uncached[1] = is_uncached(seg, linear + first, write, ctxt, &gfn[1]);

    if ( !uncached[0] && !uncached[1] )
        return usual(seg, offset, data, bytes, write, ctxt);

    if ( bytes == first )
        return use_part(gfn[0], in_page, data, bytes, write);

    /* A fault comes before anything is written.  If there is none any more: */
    if ( gfn[0] == gfn_x(INVALID_GFN) || gfn[1] == gfn_x(INVALID_GFN) )
    {
        rc = gfn[0] == gfn_x(INVALID_GFN)
             ? usual(seg, offset, data, first, write, ctxt)
             : usual(seg, offset + first, data + first, bytes - first, write,
                     ctxt);
        return rc == X86EMUL_OKAY ? X86EMUL_RETRY : rc;
    }

    if ( uncached[0] )
    {
        rc = use_part(gfn[0], in_page, data, first, write);
        if ( rc != X86EMUL_OKAY )
            return rc;
    }
    if ( uncached[1] )
    {
        rc = use_part(gfn[1], 0, data + first, bytes - first, write);
        if ( rc != X86EMUL_OKAY )
            return rc;
    }
    if ( !uncached[0] )
        return usual(seg, offset, data, first, write, ctxt);
    if ( !uncached[1] )
        return usual(seg, offset + first, data + first, bytes - first, write,
                     ctxt);

    return X86EMUL_OKAY;
}

static int cf_check uncached_read(enum x86_segment seg, unsigned long offset,
                                  void *p_data, unsigned int bytes,
                                  struct x86_emulate_ctxt *ctxt)
{
    return use(seg, offset, p_data, bytes, false, ctxt);
}

static int cf_check uncached_write(enum x86_segment seg, unsigned long offset,
                                   void *p_data, unsigned int bytes,
                                   struct x86_emulate_ctxt *ctxt)
{
    return use(seg, offset, p_data, bytes, true, ctxt);
}

static int cf_check uncached_cmpxchg(enum x86_segment seg, unsigned long offset,
                                     void *p_old, void *p_new,
                                     unsigned int bytes, bool lock,
                                     struct x86_emulate_ctxt *ctxt)
{
    struct xen_dsm_access access = { .op = XEN_DSM_ACCESS_CMPXCHG };
    unsigned long linear, gfn;
    uint64_t seen;
    int rc;

    if ( !find_linear(seg, offset, bytes, true, ctxt, &linear) ||
         (!is_uncached(seg, linear, true, ctxt, &gfn) &&
          !is_uncached(seg, linear + bytes - 1, true, ctxt, &gfn)) )
        return (hvm_emulate_ops.cmpxchg)(seg, offset, p_old, p_new, bytes,
                                         lock, ctxt);

    if ( bytes > sizeof(access.old) || linear % bytes )
    {
        gprintk(XENLOG_WARNING,
                "DSM: %u bytes at %#lx can't be exchanged on another host\n",
                bytes, linear);
        return X86EMUL_UNHANDLEABLE;
    }

    access.gfn = gfn;
    access.offset = linear & ~PAGE_MASK;
    access.width = bytes;
    memcpy(&access.old, p_old, bytes);
    memcpy(&access.value, p_new, bytes);

    rc = make(&access, &seen);
    if ( rc != X86EMUL_OKAY || seen == access.old )
        return rc;

    memcpy(p_old, &seen, bytes);

    return X86EMUL_CMPXCHG_FAILED;
}

/* One try.  False: the instruction can't be executed so. */
static bool emulate(struct vcpu *curr)
{
    struct dsm_vcpu *w = &curr->domain->arch.dsm->vcpu[curr->vcpu_id];
    struct dsm_accesses *a = &w->accesses;
    struct hvm_vcpu_io *hvio = &curr->arch.hvm.hvm_io;
    struct x86_emulate_ops ops = hvm_emulate_ops;
    struct hvm_emulate_ctxt ctxt;
    bool waits, works = true;
    int rc;

    BUILD_BUG_ON(sizeof(a->insn) != sizeof(ctxt.insn_buf));
    BUILD_BUG_ON(sizeof(a->insn) > sizeof(hvio->mmio_insn));

    ops.read = uncached_read;
    ops.write = uncached_write;
    ops.cmpxchg = uncached_cmpxchg;
    ops.rmw = NULL;
    ops.rep_ins = NULL;
    ops.rep_outs = NULL;
    ops.rep_movs = NULL;
    ops.rep_stos = NULL;

    a->at = 0;
    /* The instruction that it was, whatever is there now. */
    memcpy(hvio->mmio_insn, a->insn, a->insn_bytes);
    hvio->mmio_insn_bytes = a->insn_bytes;

    hvm_emulate_init_once(&ctxt, x86_insn_is_mem_access, guest_cpu_user_regs());
    rc = hvm_emulate_one_with(&ctxt, &ops);

    switch ( rc )
    {
    case X86EMUL_RETRY:
        waits = a->asked || ACCESS_ONCE(w->waiting);
        if ( !a->nr || !(waits || dsm_has_changed(curr)) )
            break;
        a->insn_bytes = ctxt.insn_buf_bytes;
        memcpy(a->insn, ctxt.insn_buf, a->insn_bytes);
        /* So that dsm_resume() comes before the guest. */
        if ( !waits )
            raise_softirq(SCHEDULE_SOFTIRQ);
        return true;

    case X86EMUL_OKAY:
        break;

    case X86EMUL_EXCEPTION:
        hvm_inject_event(&ctxt.ctxt.event);
        break;

    default:
        hvm_dump_emulation_state(XENLOG_G_WARNING, "DSM", &ctxt, rc);
        works = false;
        break;
    }

    dsm_end_accesses(curr);
    if ( works )
        hvm_emulate_writeback(&ctxt);

    return works;
}

bool dsm_use_elsewhere(paddr_t gpa, struct npfec npfec)
{
    struct vcpu *curr = current;
    gfn_t gfn = gaddr_to_gfn(gpa);
    const char *why = NULL;

    if ( !dsm_is_uncached(curr->domain, gfn) )
        return false;

    if ( npfec.kind != npfec_kind_with_gla )
        why = "a table of the guest";
    else if ( npfec.insn_fetch )
        why = "code";
    else if ( hvm_event_pending(curr) )
        why = "the frame of an interrupt";
    else if ( hvm_guest_x86_mode(curr) != X86_MODE_64BIT )
        why = "used by code that is not of 64 bits";

    if ( why )
    {
        gprintk(XENLOG_WARNING, "DSM: GFN %#"PRI_gfn" has to stay, and is %s\n",
                gfn_x(gfn), why);
        return false;
    }

    return emulate(curr);
}

bool dsm_resume(struct vcpu *v)
{
    struct dsm_accesses *a = &v->domain->arch.dsm->vcpu[v->vcpu_id].accesses;
    unsigned long gfn;

    if ( likely(!a->nr) )
        return true;

    /* Nobody runs a vCPU that waits; if so, not now. */
    if ( ACCESS_ONCE(a->asked) )
    {
        ASSERT_UNREACHABLE();
        raise_softirq(SCHEDULE_SOFTIRQ);
        return false;
    }

    gfn = a->done[0].what.gfn;
    if ( !emulate(v) )
        dsm_populate(v->domain, _gfn(gfn));

    return !a->nr;
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
