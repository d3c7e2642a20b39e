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
 * An access of 1, 2, 4 or 8 bytes is one access there if it is within 8 bytes
 * that are aligned, which is what all CPUs promise.  Others are made in parts,
 * from the lowest address on: some CPUs do more at once (8 bytes that are not
 * aligned, in a cache line; 16 that are, with AVX).  Of one that crosses into a
 * page that is not in state U, the part in state U is made first.  A LOCKed one
 * that is not within 8 aligned bytes is refused.
 *
 * What has been made is not made again, whatever the state of its page has
 * become meanwhile (dsm_find_access()); only what is left is looked at.
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
 * instructions that the emulator does not know, or does in one piece (FXSAVE),
 * or from where it was (gathers).  While an instruction is emulated a page in
 * state U is only noted (dsm_populate()): the bytes of code that are read ahead
 * may not be needed.  Each case has a line in the log.
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

/* The most that can be one access. */
static unsigned int width_at(unsigned int offset, unsigned int bytes)
{
    unsigned int width = 8;

    while ( width > bytes || offset % 8 + width > 8 )
        width /= 2;

    return width;
}

static struct dsm_accesses *my_accesses(void)
{
    return &current->domain->arch.dsm->vcpu[current->vcpu_id].accesses;
}

/* What one call of the emulator does with memory that has an address. */
struct use {
    unsigned int call;          /* which one of this try */
    enum x86_segment seg;
    unsigned long offset;
    unsigned long linear;
    uint8_t *data;
    bool write;
    struct x86_emulate_ctxt *ctxt;
};

/* The part of it in one page: what is left to do, from .. to - 1. */
struct part {
    unsigned int begin, from, to;
    unsigned long gfn;          /* INVALID_GFN: it is nowhere */
    bool uncached;              /* in state U */
};

/* X86EMUL_RETRY: a table of the guest has to come first. */
static int walk(const struct use *use, unsigned long linear, unsigned long *gfn,
                bool *uncached)
{
    uint32_t pfec = PFEC_page_present;

    if ( use->write )
        pfec |= PFEC_write_access;
    if ( is_x86_system_segment(use->seg) )
        pfec |= PFEC_implicit;
    else if ( hvmemul_get_seg_reg(x86_seg_ss, hvm_ctxt(use->ctxt))->dpl == 3 )
        pfec |= PFEC_user_mode;

    *uncached = false;
    *gfn = paging_gva_to_gfn(current, linear, &pfec);
    if ( *gfn == gfn_x(INVALID_GFN) )
        return pfec & PFEC_page_paged ? X86EMUL_RETRY : X86EMUL_OKAY;

    *uncached = dsm_is_uncached(current->domain, _gfn(*gfn));

    return X86EMUL_OKAY;
}

/* An instruction of which the list of its accesses can't be kept. */
static bool is_unfit(const struct x86_emulate_ctxt *ctxt)
{
    switch ( ctxt->opcode & (X86EMUL_OPC_EXT_MASK | 0xff) )
    {
    case X86EMUL_OPC(0, 0xc8):                          /* ENTER: too many */
    /* A register says how far it has come: it does not begin anew. */
    case X86EMUL_OPC(0x0f38, 0x90) ... X86EMUL_OPC(0x0f38, 0x93): /* gather */
    case X86EMUL_OPC(0x0f38, 0xa0) ... X86EMUL_OPC(0x0f38, 0xa3): /* scatter */
        return true;
    }

    return false;
}

static int ask(const struct use *use, unsigned long linear,
               const struct xen_dsm_access *access)
{
    if ( is_unfit(use->ctxt) )
        return X86EMUL_UNHANDLEABLE;

    return dsm_access_away(current, access, use->call, linear) == -ERESTART
           ? X86EMUL_RETRY : X86EMUL_UNHANDLEABLE;
}

/* Take from the list what has been made. */
static void take(const struct use *use, struct part *part)
{
    const struct dsm_access *made;

    while ( part->from < part->to &&
            (made = dsm_find_access(current, use->call,
                                    use->linear + part->from)) != NULL )
    {
        if ( !use->write )
            memcpy(use->data + part->from, &made->seen, made->what.width);
        part->from += made->what.width;
    }
}

/* The next access to a page in state U. */
static int there(const struct use *use, const struct part *part)
{
    unsigned long linear = use->linear + part->from;
    struct xen_dsm_access access = {
        .gfn = part->gfn,
        .offset = linear & ~PAGE_MASK,
        .width = width_at(linear & ~PAGE_MASK, part->to - part->from),
        .op = use->write ? XEN_DSM_ACCESS_WRITE : XEN_DSM_ACCESS_READ,
    };

    if ( use->write )
        memcpy(&access.value, use->data + part->from, access.width);

    return ask(use, linear, &access);
}

/*
 * The usual operation, of bytes that are not in state U.  If they are so since:
 * it is not needed here, but looked at again.
 */
static int here(const struct use *use, unsigned int from, unsigned int to)
{
    int rc = use->write
             ? hvm_emulate_ops.write(use->seg, use->offset + from,
                                     use->data + from, to - from, use->ctxt)
             : hvm_emulate_ops.read(use->seg, use->offset + from,
                                    use->data + from, to - from, use->ctxt);

    my_accesses()->needed = gfn_x(INVALID_GFN);

    return rc;
}

/* The same, if the instruction is not done with it: once. */
static int here_first(const struct use *use, const struct part *part)
{
    int rc = here(use, part->from, part->to);

    if ( rc == X86EMUL_OKAY && use->write )
        dsm_access_here(current, use->call, use->linear + part->from,
                        part->to - part->from);

    return rc;
}

/*
 * All that is in the list, then what can only fault, then what is in state U,
 * then what is here.
 */
static int use_parts(const struct use *use, struct part *part, unsigned int nr)
{
    bool usual = true;
    unsigned int i;
    int rc;

    for ( i = 0; i < nr; i++ )
    {
        part[i].from = part[i].begin;
        take(use, &part[i]);
        if ( part[i].from < part[i].to )
        {
            rc = walk(use, use->linear + part[i].from, &part[i].gfn,
                      &part[i].uncached);
            if ( rc != X86EMUL_OKAY )
                return rc;
        }
        else
            part[i].uncached = false;
        if ( part[i].uncached || part[i].from > part[i].begin )
            usual = false;
    }

    if ( usual )
        return here(use, 0, part[nr - 1].to);

    /* A fault comes before anything is written.  If there is none any more: */
    for ( i = 0; i < nr; i++ )
        if ( part[i].from < part[i].to &&
             part[i].gfn == gfn_x(INVALID_GFN) )
        {
            rc = here_first(use, &part[i]);
            return rc == X86EMUL_OKAY ? X86EMUL_RETRY : rc;
        }

    for ( i = 0; i < nr; i++ )
        if ( part[i].uncached )
            return there(use, &part[i]);

    for ( i = 0; i < nr; i++ )
        if ( part[i].from < part[i].to )
        {
            rc = here_first(use, &part[i]);
            if ( rc != X86EMUL_OKAY )
                return rc;
        }

    return X86EMUL_OKAY;
}

static int read_or_write(enum x86_segment seg, unsigned long offset,
                         void *p_data, unsigned int bytes, bool write,
                         struct x86_emulate_ctxt *ctxt)
{
    struct dsm_accesses *a = my_accesses();
    struct use use = {
        .call = a->calls++,
        .seg = seg,
        .offset = offset,
        .data = p_data,
        .write = write,
        .ctxt = ctxt,
    };
    struct part part[2] = {};
    unsigned int in_page;

    /* What was read of code before need not be executed. */
    a->needed = gfn_x(INVALID_GFN);

    if ( !bytes || !find_linear(seg, offset, bytes, write, ctxt, &use.linear) )
        return here(&use, 0, bytes);

    if ( !dsm_access_fits(current, use.call, write ? XEN_DSM_ACCESS_WRITE
                                                   : XEN_DSM_ACCESS_READ,
                          use.linear, bytes) )
        return X86EMUL_RETRY;

    in_page = PAGE_SIZE - (use.linear & ~PAGE_MASK);
    part[0].to = min(bytes, in_page);
    part[1].begin = part[0].to;
    part[1].to = bytes;

    return use_parts(&use, part, bytes > in_page ? 2 : 1);
}

static int cf_check uncached_read(enum x86_segment seg, unsigned long offset,
                                  void *p_data, unsigned int bytes,
                                  struct x86_emulate_ctxt *ctxt)
{
    return read_or_write(seg, offset, p_data, bytes, false, ctxt);
}

static int cf_check uncached_write(enum x86_segment seg, unsigned long offset,
                                   void *p_data, unsigned int bytes,
                                   struct x86_emulate_ctxt *ctxt)
{
    return read_or_write(seg, offset, p_data, bytes, true, ctxt);
}

static int usual_cmpxchg(const struct use *use, void *p_old, void *p_new,
                         unsigned int bytes, bool lock)
{
    int rc = (hvm_emulate_ops.cmpxchg)(use->seg, use->offset, p_old, p_new,
                                       bytes, lock, use->ctxt);

    my_accesses()->needed = gfn_x(INVALID_GFN);

    return rc;
}

static int cf_check uncached_cmpxchg(enum x86_segment seg, unsigned long offset,
                                     void *p_old, void *p_new,
                                     unsigned int bytes, bool lock,
                                     struct x86_emulate_ctxt *ctxt)
{
    struct dsm_accesses *a = my_accesses();
    struct use use = {
        .call = a->calls++,
        .seg = seg,
        .offset = offset,
        .write = true,
        .ctxt = ctxt,
    };
    struct xen_dsm_access access = { .op = XEN_DSM_ACCESS_CMPXCHG };
    const struct dsm_access *made;
    unsigned long gfn, last;
    bool uncached, last_uncached;
    int rc;

    a->needed = gfn_x(INVALID_GFN);

    if ( !find_linear(seg, offset, bytes, true, ctxt, &use.linear) )
        return usual_cmpxchg(&use, p_old, p_new, bytes, lock);

    if ( !dsm_access_fits(current, use.call, access.op, use.linear, bytes) )
        return X86EMUL_RETRY;

    made = dsm_find_access(current, use.call, use.linear);
    if ( made )
    {
        if ( made->seen == made->what.old )
            return X86EMUL_OKAY;

        memcpy(p_old, &made->seen, made->what.width);

        return X86EMUL_CMPXCHG_FAILED;
    }

    rc = walk(&use, use.linear, &gfn, &uncached);
    if ( rc == X86EMUL_OKAY )
        rc = walk(&use, use.linear + bytes - 1, &last, &last_uncached);
    if ( rc != X86EMUL_OKAY )
        return rc;

    if ( !uncached && !last_uncached )
        return usual_cmpxchg(&use, p_old, p_new, bytes, lock);

    if ( use.linear % 8 + bytes > 8 )
    {
        gprintk(XENLOG_WARNING,
                "DSM: %u bytes at %#lx can't be exchanged on another host\n",
                bytes, use.linear);
        return X86EMUL_UNHANDLEABLE;
    }

    access.gfn = gfn;
    access.offset = use.linear & ~PAGE_MASK;
    access.width = bytes;
    memcpy(&access.old, p_old, bytes);
    memcpy(&access.value, p_new, bytes);

    return ask(&use, use.linear, &access);
}

/* One try. */
static void emulate(struct vcpu *curr)
{
    struct dsm_vcpu *w = &curr->domain->arch.dsm->vcpu[curr->vcpu_id];
    struct dsm_accesses *a = &w->accesses;
    struct hvm_vcpu_io *hvio = &curr->arch.hvm.hvm_io;
    struct x86_emulate_ops ops = hvm_emulate_ops;
    struct hvm_emulate_ctxt ctxt;
    bool waits;
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

    /* The instruction that it was, whatever is there now. */
    hvio->mmio_insn_bytes = a->nr ? a->insn_bytes : 0;
    memcpy(hvio->mmio_insn, a->insn, hvio->mmio_insn_bytes);

    a->calls = 0;
    a->needed = gfn_x(INVALID_GFN);
    a->trying = true;
    hvm_emulate_init_once(&ctxt, x86_insn_is_mem_access, guest_cpu_user_regs());
    rc = hvm_emulate_one_with(&ctxt, &ops);
    a->trying = false;

    switch ( rc )
    {
    case X86EMUL_RETRY:
        if ( a->needed != gfn_x(INVALID_GFN) )
        {
            gprintk(XENLOG_WARNING,
                    "DSM: GFN %#lx has to stay, and %#lx needs it here\n",
                    a->needed, guest_cpu_user_regs()->rip);
            dsm_populate_uncached(_gfn(a->needed));
        }
        waits = a->asked || ACCESS_ONCE(w->waiting);
        if ( !waits && !dsm_has_changed(curr) )
            break;
        a->insn_bytes = ctxt.insn_buf_bytes;
        memcpy(a->insn, ctxt.insn_buf, a->insn_bytes);
        /* So that dsm_resume() comes before the guest. */
        if ( !waits )
            raise_softirq(SCHEDULE_SOFTIRQ);
        return;

    case X86EMUL_OKAY:
        break;

    case X86EMUL_EXCEPTION:
        hvm_inject_event(&ctxt.ctxt.event);
        break;

    default:
        hvm_dump_emulation_state(XENLOG_G_WARNING, "DSM", &ctxt, rc);
        dsm_end_accesses(curr);
        dsm_populate_uncached(_gfn(a->gfn));
        return;
    }

    dsm_end_accesses(curr);
    hvm_emulate_writeback(&ctxt);
}

bool dsm_use_elsewhere(paddr_t gpa, struct npfec npfec)
{
    struct vcpu *curr = current;
    gfn_t gfn = gaddr_to_gfn(gpa);
    const char *why = NULL;

    /* What the fault saw may be over. */
    if ( !dsm_is_uncached(curr->domain, gfn) )
    {
        dsm_want_cached(gfn);
        return false;
    }

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
        dsm_populate_uncached(gfn);
    }
    else
    {
        curr->domain->arch.dsm->vcpu[curr->vcpu_id].accesses.gfn = gfn_x(gfn);
        emulate(curr);
    }

    return true;
}

bool dsm_resume(struct vcpu *v)
{
    struct dsm_vcpu *w = &v->domain->arch.dsm->vcpu[v->vcpu_id];
    struct dsm_accesses *a = &w->accesses;

    if ( unlikely(ACCESS_ONCE(w->waking)) )
        dsm_woken(v);

    if ( likely(!a->nr) )
        return true;

    /* Nobody runs a vCPU that waits; if so, not now. */
    if ( ACCESS_ONCE(a->asked) )
    {
        ASSERT_UNREACHABLE();
        raise_softirq(SCHEDULE_SOFTIRQ);
        return false;
    }

    emulate(v);

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
