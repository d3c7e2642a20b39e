// SPDX-License-Identifier: GPL-2.0-only
/*
 * Instructions that use a page which stays on another host: what is asked for
 * there, once each; what waits; what is made where the page is.
 *
 * Slice 1 of two.  GFN 0 to 31 are memory, 32 to 47 are homed on slice 0, and
 * U, which is 40, and U + 1 are in state U.  A linear address is that of the
 * guest plus the base of its segment, 0 or that of gs.  An instruction is a
 * function of the emulator's operations.
 *
 * usage: dsm_uncached_test --list | CASE
 */
#include "slice.h"
#include "fake_emulate.h"
#undef cmpxchg

#define U       40UL
#define NEAR    5UL             /* a page that is here */
#define I_PAGE  34UL            /* one that is not, and can come */
#define GS_BASE 0x100000000UL
#define FS_BASE 4UL
#define at(page, offset) (((page) << PAGE_SHIFT) + (offset))

unsigned int fake_mode = X86_MODE_64BIT, fake_cpl;
bool fake_event;
static struct vcpu *daemon_vcpu;

/* ---- The emulator ---- */

#define RAX fake_regs.rax
#define RCX fake_regs.rcx

typedef int instruction_t(const struct x86_emulate_ops *ops,
                          struct x86_emulate_ctxt *ctxt);
static instruction_t *instruction;
static unsigned int softirqs, tries, writebacks, dumps, exceptions, user;
static unsigned long unmapped = ~0UL;   /* this page of linear addresses */
static unsigned long moved = ~0UL;      /* GFN U is this one there */
static unsigned long bad_address = ~0UL;
static unsigned long not_walked = ~0UL; /* the next walk finds no such page */
static void (*before_usual)(void);      /* once */
static unsigned long table = ~0UL;      /* GFN that has the table of U */
static unsigned int opcode;
static unsigned int fresh;              /* bytes that the first try has got */
static unsigned int length = 3;         /* of the instruction */
static enum hvm_access_type checked;    /* a segment, for that */
static uint32_t walked_with;            /* the last walk, and of what */
static unsigned long walked;

void raise_softirq(unsigned int nr)
{
    expect("softirq", nr, SCHEDULE_SOFTIRQ);
    softirqs++;
}

bool x86_insn_is_mem_access(const struct x86_emulate_state *state,
                            const struct x86_emulate_ctxt *ctxt)
{
    return true;
}

void hvm_emulate_init_once(struct hvm_emulate_ctxt *ctxt,
                           hvm_emulate_validate_t *validate,
                           struct cpu_user_regs *regs)
{
    memset(ctxt, 0, sizeof(*ctxt));
    expect("memory only", validate == x86_insn_is_mem_access, true);
    ctxt->ctxt.regs = regs;
}

/* Registers change when the instruction ends. */
int hvm_emulate_one_with(struct hvm_emulate_ctxt *ctxt,
                         const struct x86_emulate_ops *ops)
{
    static const uint8_t bytes[] = { 0x48, 0x87, 0xcc, 0x11, 0x22 };
    struct hvm_vcpu_io *io = &current->arch.hvm.hvm_io;
    struct cpu_user_regs regs = fake_regs;
    int rc;

    expect("current", current->domain == &dom, true);
    expect("the p2m", dom.p2m.locked, 0);
    tries++;
    if ( tries == 1 )
        fresh = io->mmio_insn_bytes;
    ctxt->ctxt.opcode = opcode;
    if ( tries > 1 && dsm_in_instruction(current) )
        expect("the same bytes", io->mmio_insn_bytes == length &&
               !memcmp(io->mmio_insn, bytes, length), true);
    ctxt->insn_buf_bytes = length;
    memcpy(ctxt->insn_buf, bytes, length);
    rc = instruction(ops, &ctxt->ctxt);
    io->mmio_insn_bytes = 0;
    if ( rc != X86EMUL_OKAY )
        fake_regs = regs;
    else
        fake_regs.rip += length;

    return rc;
}

void hvm_emulate_writeback(struct hvm_emulate_ctxt *ctxt)
{
    writebacks++;
}

void hvm_dump_emulation_state(const char *level, const char *prefix,
                              struct hvm_emulate_ctxt *ctxt, int rc)
{
    dumps++;
}

void hvm_inject_event(const struct x86_event *event)
{
    exceptions++;
}

struct segment_register *hvmemul_get_seg_reg(enum x86_segment seg,
                                             struct hvm_emulate_ctxt *ctxt)
{
    static struct segment_register flat, gs = { GS_BASE }, fs = { FS_BASE };

    if ( seg > x86_seg_tr )
        die("segment %u", seg);
    flat.dpl = user;

    return seg == x86_seg_gs ? &gs : seg == x86_seg_fs ? &fs : &flat;
}

bool hvm_virtual_to_linear_addr(enum x86_segment seg,
                                const struct segment_register *reg,
                                unsigned long offset, unsigned int bytes,
                                enum hvm_access_type type,
                                const struct segment_register *cs,
                                unsigned long *linear)
{
    *linear = reg->base + offset;
    checked = type;

    return offset != bad_address;
}

/*
 * A look-up of what is in a page, as all of Xen does it.  True: it is paged
 * out, and was asked for.
 */
static bool (*when_looked_up)(unsigned long gfn);  /* between the two */

static bool is_paged(unsigned long gfn, p2m_query_t q)
{
    p2m_type_t t = dom.p2m.e[gfn].t;

    dsm_p2m_fixup(&dom.p2m, _gfn(gfn), _mfn(dom.p2m.e[gfn].mfn), &t, q, NULL);
    if ( t != p2m_ram_paged )
        return false;
    if ( when_looked_up && when_looked_up(gfn) )
        when_looked_up = NULL;

    return true;
}

static bool is_missing(unsigned long gfn, p2m_query_t q)
{
    if ( !is_paged(gfn, q) )
        return false;
    dsm_populate(&dom, _gfn(gfn));

    return true;
}

/* As hap_p2m_ga_to_gfn() with its hook: the target is looked up as well. */
unsigned long paging_gva_to_gfn(struct vcpu *v, unsigned long va,
                                uint32_t *pfec)
{
    unsigned long gfn;

    walked_with = *pfec;
    walked = va;
    va &= GS_BASE - 1;
    if ( va >> PAGE_SHIFT == unmapped || va >> PAGE_SHIFT == not_walked )
    {
        not_walked = ~0UL;
        *pfec = 0;
        return gfn_x(INVALID_GFN);
    }

    gfn = va >> PAGE_SHIFT;
    if ( gfn == U && table != ~0UL && is_missing(table, P2M_ALLOC) )
    {
        *pfec = PFEC_page_paged;
        return gfn_x(INVALID_GFN);
    }
    if ( gfn == U && moved != ~0UL )
        gfn = moved;
    if ( is_paged(gfn, P2M_ALLOC) && !dsm_walk_ends(&dom, _gfn(gfn)) )
    {
        *pfec = PFEC_page_paged;
        dsm_populate(&dom, _gfn(gfn));
        return gfn_x(INVALID_GFN);
    }

    return gfn;
}

/* The usual operations, of what is here. */
static int usual(unsigned long offset, void *data, unsigned int bytes,
                 bool write)
{
    void (*before)(void) = before_usual;

    before_usual = NULL;
    if ( before )
        before();
    while ( bytes-- )
    {
        unsigned long gfn = offset >> PAGE_SHIFT;
        uint8_t *byte;

        if ( offset == bad_address || gfn == unmapped )
            return X86EMUL_EXCEPTION;
        if ( gfn == U && moved != ~0UL )
            gfn = moved;
        if ( is_missing(gfn, P2M_ALLOC | (write ? P2M_UNSHARE : 0)) )
            return X86EMUL_RETRY;
        if ( dom.p2m.e[gfn].t != p2m_ram_rw )
            die("GFN %#lx is used", gfn);
        byte = &frames[dom.p2m.e[gfn].mfn].bytes[offset & ~PAGE_MASK];
        if ( write )
            *byte = *(uint8_t *)data;
        else
            *(uint8_t *)data = *byte;
        offset++;
        data++;
    }

    return X86EMUL_OKAY;
}

static unsigned int usual_exchanges;

static int usual_read(enum x86_segment seg, unsigned long offset, void *p_data,
                      unsigned int bytes, struct x86_emulate_ctxt *ctxt)
{
    return usual(offset, p_data, bytes, false);
}

static int usual_write(enum x86_segment seg, unsigned long offset, void *p_data,
                       unsigned int bytes, struct x86_emulate_ctxt *ctxt)
{
    if ( seg == x86_seg_fs )
        offset += FS_BASE;

    return usual(offset, p_data, bytes, true);
}

static int usual_cmpxchg(enum x86_segment seg, unsigned long offset,
                         void *p_old, void *p_new, unsigned int bytes,
                         bool lock, struct x86_emulate_ctxt *ctxt)
{
    unsigned long was = 0;
    int rc;

    usual_exchanges++;
    rc = usual(offset, &was, bytes, false);
    if ( rc )
        return rc;
    if ( memcmp(&was, p_old, bytes) )
    {
        memcpy(p_old, &was, bytes);
        return X86EMUL_CMPXCHG_FAILED;
    }

    return usual(offset, p_new, bytes, true);
}

const struct x86_emulate_ops hvm_emulate_ops = {
    usual_read, usual_write, usual_cmpxchg, &usual_exchanges, &usual_exchanges,
    &usual_exchanges, &usual_exchanges, &usual_exchanges,
};

/* ---- Instructions ---- */

static unsigned int width;      /* of the next three, and where */
static unsigned long address;

static int load(const struct x86_emulate_ops *ops,
                struct x86_emulate_ctxt *ctxt)
{
    unsigned long value = 0;
    int rc = ops->read(x86_seg_ds, address, &value, width, ctxt);

    RAX = value;

    return rc;
}

static int store(const struct x86_emulate_ops *ops,
                 struct x86_emulate_ctxt *ctxt)
{
    return ops->write(x86_seg_ds, address, &RAX, width, ctxt);
}

/* LOCK XADD, as the emulator does it without rmw. */
static int xadd(const struct x86_emulate_ops *ops,
                struct x86_emulate_ctxt *ctxt)
{
    unsigned long old = 0, new;
    int rc;

    expect("no other way", ops->rmw || ops->rep_ins || ops->rep_outs ||
           ops->rep_movs || ops->rep_stos, false);
    rc = ops->read(x86_seg_ds, address, &old, width, ctxt);
    if ( rc )
        return rc;
    new = old + RCX;
    RCX = old;
    rc = ops->cmpxchg(x86_seg_ds, address, &old, &new, width, true, ctxt);

    return rc == X86EMUL_CMPXCHG_FAILED ? X86EMUL_RETRY : rc;
}

/* CMPXCHG: RAX is expected, RCX comes; what was there is in RAX. */
static int cmpxchg_insn(const struct x86_emulate_ops *ops,
                        struct x86_emulate_ctxt *ctxt)
{
    int rc = ops->cmpxchg(x86_seg_ds, address, &RAX, &RCX, width, true, ctxt);

    return rc == X86EMUL_CMPXCHG_FAILED ? X86EMUL_OKAY : rc;
}

/* From RSI to RDI, 8 bytes. */
static int movs(const struct x86_emulate_ops *ops,
                struct x86_emulate_ctxt *ctxt)
{
    unsigned long value;
    int rc = ops->read(x86_seg_ds, fake_regs.rsi, &value, 8, ctxt);

    return rc ?: ops->write(x86_seg_ds, fake_regs.rdi, &value, 8, ctxt);
}

/* Writes, and then reads elsewhere: no instruction of x86, but all that can go wrong. */
static int write_and_read(const struct x86_emulate_ops *ops,
                          struct x86_emulate_ctxt *ctxt)
{
    int rc = ops->write(x86_seg_ds, fake_regs.rdi, &RAX, 8, ctxt);

    return rc ?: ops->read(x86_seg_ds, fake_regs.rsi, &RCX, 8, ctxt);
}

static uint8_t wide[64];

static int wide_load(const struct x86_emulate_ops *ops,
                     struct x86_emulate_ctxt *ctxt)
{
    return ops->read(x86_seg_ds, address, wide, width, ctxt);
}

static int wide_store(const struct x86_emulate_ops *ops,
                      struct x86_emulate_ctxt *ctxt)
{
    return ops->write(x86_seg_ds, address, wide, width, ctxt);
}

static int wide_store_fs(const struct x86_emulate_ops *ops,
                         struct x86_emulate_ctxt *ctxt)
{
    return ops->write(x86_seg_fs, address - FS_BASE, wide, width, ctxt);
}

static unsigned int unknown_until;

static int unknown(const struct x86_emulate_ops *ops,
                   struct x86_emulate_ctxt *ctxt)
{
    unsigned long value;

    if ( unknown_until && tries <= unknown_until )
        return ops->read(x86_seg_ds, address, &value, 8, ctxt);

    return X86EMUL_UNHANDLEABLE;
}

static int fault(const struct x86_emulate_ops *ops,
                 struct x86_emulate_ctxt *ctxt)
{
    unsigned long value;
    int rc = ops->read(x86_seg_ds, address, &value, 8, ctxt);

    return rc ?: X86EMUL_EXCEPTION;
}

static int never(const struct x86_emulate_ops *ops,
                 struct x86_emulate_ctxt *ctxt)
{
    return X86EMUL_RETRY;
}

/* ---- The daemon ---- */

static int by_daemon(struct xen_dsm_op *op)
{
    struct vcpu *was = current;
    int rc;

    current = daemon_vcpu;
    rc = memop(op);
    current = was;

    return rc;
}

static int one(unsigned int what, uint64_t gfn)
{
    struct vcpu *was = current;
    int rc;

    current = daemon_vcpu;
    rc = page(what, gfn);
    current = was;

    return rc;
}

static int done(unsigned int vcpu, uint64_t cookie, unsigned int flags,
                uint64_t old)
{
    return by_daemon(&(struct xen_dsm_op){
        .cmd = XEN_DSM_ACCESS_DONE,
        .u.access_done = { vcpu, flags, cookie, old } });
}

static void begin(void)
{
    enable_slice(1, 2);
    daemon_vcpu = current;
    dom.vcpu[1]->pause_flags = 1UL << _VPF_down;
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("PLACE", memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_PLACE, .u.place = { .vcpu = 1, .slice = 1 } }), 0);
    domain_unpause_by_systemcontroller(&dom);
    dom.vcpu[1]->pause_flags = 0;
    expect("AWAY", memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_AWAY, .u.frames = { .first = 32, .nr = 16 } }), 0);
    spare_frames = 8;
    expect("frames", memop(&(struct xen_dsm_op){
        .cmd = XEN_DSM_POOL_ADD, .u.pool.nr = 4 }), 0);
    fake_no_memory = true;
    expect("no memory", one(XEN_DSM_UNCACHE, U), -ENOMEM);
    expect("needs none", one(XEN_DSM_CACHE, U), -EEXIST);
    fake_no_memory = false;
    expect("UNCACHE", one(XEN_DSM_UNCACHE, U), 0);
    expect("UNCACHE", one(XEN_DSM_UNCACHE, U + 1), 0);
    current = dom.vcpu[1];
    opcode = 0x89;
    when_looked_up = NULL;
    table = moved = unmapped = bad_address = ~0UL;
    usual_exchanges = exceptions = 0;
    fake_regs = (struct cpu_user_regs){ .rip = 0x1000, .rax = 1, .rcx = 2 };
}

#define DATA ((struct npfec){ .read_access = 1, .kind = npfec_kind_with_gla })

/* An instruction faults at an address; true: the page is in state U. */
static bool faults(instruction_t *insn, unsigned long where, unsigned int bytes)
{
    instruction = insn;
    address = where;
    width = bytes;
    tries = 0;

    return dsm_use_elsewhere(where, DATA);
}

/* The vCPU waits, and this is in the ring; its cookie. */
static uint64_t asked(unsigned int op, uint64_t gfn, unsigned int offset,
                      unsigned int bytes, uint64_t old, uint64_t value)
{
    struct xen_dsm_ring_entry e = next_entry();
    unsigned int log;

    for ( log = 0; 1U << log < bytes; log++ )
        ;
    expect("type", e.type, XEN_DSM_ACCESS);
    expect("op", e.want, op);
    expect("gfn", e.gfn, gfn);
    expect("offset and width", e.flags, offset | log << 12);
    expect("vCPU", e.vcpu, current->vcpu_id);
    expect("rip", e.rip, fake_regs.rip);
    expect("old", e.vectors[1], old);
    expect("value", e.vectors[2], value);
    expect("nothing else", e.vectors[3], 0);
    expect("no other entry", next_entry().type, 0);
    expect("paused", current->paused, 1);
    expect("in the instruction", dsm_in_instruction(current), true);

    return e.vectors[0];
}

#define READ    XEN_DSM_ACCESS_READ
#define WRITE   XEN_DSM_ACCESS_WRITE
#define CMPXCHG XEN_DSM_ACCESS_CMPXCHG

/* The answer comes, and the vCPU goes on. */
static bool goes_on(uint64_t cookie, uint64_t old)
{
    expect("DONE", done(current->vcpu_id, cookie, 0, old), 0);
    expect("unpaused", current->paused, 0);

    return dsm_resume(current);
}

static void is_over(unsigned long rip)
{
    expect("no instruction", dsm_in_instruction(current), false);
    expect("rip", fake_regs.rip, rip);
    expect("runs", current->paused, 0);
    expect("no entry", next_entry().type, 0);
}

/* ---- Cases: one access ---- */

static void loads(void)
{
    unsigned int bytes;

    begin();
    for ( bytes = 1; bytes <= 8; bytes *= 2 )
    {
        fake_regs.rip = 0x1000;
        notified = 0;
        expect("emulated", faults(load, at(U, 4096 - bytes), bytes), true);
        expect("told", notified, 1);
        expect("not done", RAX != 0xef, true);
        expect("done", goes_on(asked(READ, U, 4096 - bytes, bytes, 0, 0),
                               0x77), true);
        expect("value", RAX, 0x77);
        is_over(0x1003);
        RAX = 1;
    }
    expect("segments", writebacks, 4);
    expect("counted", DSM->stats.accesses, 4);
    /* Each has as many bytes as it has. */
    for ( length = 5; length; length-- )
    {
        fake_regs.rip = 0x1000;
        expect("emulated", faults(load, at(U, 0), 8), true);
        expect("done", goes_on(asked(READ, U, 0, 8, 0, 0), 0x77), true);
        is_over(0x1000 + length);
    }
    length = 3;
}

static void stores(void)
{
    begin();
    RAX = 0x1122334455667788;
    expect("emulated", faults(store, at(U, 0x10), 4), true);
    expect("done", goes_on(asked(WRITE, U, 0x10, 4, 0, 0x55667788), 0), true);
    is_over(0x1003);
    expect("emulated", faults(store, at(U + 1, 0x18), 8), true);
    expect("done", goes_on(asked(WRITE, U + 1, 0x18, 8, 0, RAX), 0), true);
    is_over(0x1006);
}

static void exchanges(void)
{
    uint64_t cookie;

    begin();
    expect("emulated", faults(cmpxchg_insn, at(U, 2), 2), true);
    expect("done", goes_on(asked(CMPXCHG, U, 2, 2, 1, 2), 1), true);
    expect("expected", RAX, 1);
    is_over(0x1003);
    /* Another value was there. */
    expect("emulated", faults(cmpxchg_insn, at(U, 2), 2), true);
    expect("done", goes_on(asked(CMPXCHG, U, 2, 2, 1, 2), 9), true);
    expect("what was there", RAX, 9);
    is_over(0x1006);

    /* No more bytes of a register than that are meant. */
    RAX = 0xaabbccdd00000001;
    RCX = 0xaabbccdd00000002;
    expect("emulated", faults(cmpxchg_insn, at(U, 4), 4), true);
    expect("done", goes_on(asked(CMPXCHG, U, 4, 4, 1, 2), 9), true);
    expect("what was there", RAX, 0xaabbccdd00000009);
    is_over(0x1009);
    fake_regs.rip = 0x1006;
    RCX = 2;

    /* XADD: a read, and an exchange with what was read. */
    expect("emulated", faults(xadd, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 40), false);
    expect("not yet", RCX, 2);
    cookie = asked(CMPXCHG, U, 8, 8, 40, 42);
    expect("done", goes_on(cookie, 40), true);
    expect("what was there", RCX, 40);
    is_over(0x1009);
    expect("three tries", tries, 3);

    /* Somebody was quicker: it begins anew, in the guest. */
    RCX = 2;
    expect("emulated", faults(xadd, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 40), false);
    expect("anew", goes_on(asked(CMPXCHG, U, 8, 8, 40, 42), 41), true);
    expect("nothing was done", RCX, 2);
    is_over(0x1009);
    expect("no hurry", softirqs, 0);
}

/* Aligned parts of what is more than one access. */
static void parts(void)
{
    static const struct { unsigned int offset, bytes, value; } want[] = {
        { 0xffd, 2, 0x0100 }, { 0xfff, 1, 0x02 } };
    unsigned int i;

    begin();
    for ( i = 0; i < 64; i++ )
        wide[i] = i;
    expect("emulated", faults(wide_store, at(U, 0xffd), 13), true);
    for ( i = 0; i < 2; i++ )
        expect("goes on", goes_on(asked(WRITE, U, want[i].offset,
                                        want[i].bytes, 0, want[i].value),
                                  0), false);
    expect("goes on", goes_on(asked(WRITE, U + 1, 0, 8, 0,
                                    0x0a09080706050403), 0), false);
    expect("done", goes_on(asked(WRITE, U + 1, 8, 2, 0, 0x0c0b), 0), true);
    is_over(0x1003);

    expect("emulated", faults(wide_load, at(U, 1), 16), true);
    expect("goes on", goes_on(asked(READ, U, 1, 4, 0, 0), 0xa4a3a2a1), false);
    expect("goes on", goes_on(asked(READ, U, 5, 2, 0, 0), 0xa6a5), false);
    expect("goes on", goes_on(asked(READ, U, 7, 1, 0, 0), 0xa7), false);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 0xafaeadacabaaa9a8),
           false);
    expect("done", goes_on(asked(READ, U, 16, 1, 0, 0), 0xb0), true);
    for ( i = 0; i < 16; i++ )
        expect("byte", wide[i], 0xa1 + i);
    is_over(0x1006);

    /* The most that there is. */
    faults(wide_load, at(U, 1), 64);
    while ( dsm_in_instruction(current) )
        goes_on(next_entry().vectors[0], 0);
    is_over(0x1009);
}

/* A segment's base, and who walks the guest's tables. */
static int load_table(const struct x86_emulate_ops *ops,
                      struct x86_emulate_ctxt *ctxt)
{
    return ops->read(x86_seg_sys, at(U, 0), &RAX, 8, ctxt);
}

static int load_gs(const struct x86_emulate_ops *ops,
                   struct x86_emulate_ctxt *ctxt)
{
    return ops->read(address ? x86_seg_gs : x86_seg_none, at(U, 0), &RAX, 8,
                     ctxt);
}

static void walks(void)
{
    begin();
    user = 3;
    expect("emulated", faults(load_gs, 1, 8), false);
    instruction = load_gs;
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect("as a program", walked_with, PFEC_page_present | PFEC_user_mode);
    expect("with its base", walked, GS_BASE + at(U, 0));
    goes_on(asked(READ, U, 0, 8, 0, 0), 3);
    user = 0;
    address = 0;
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect("as a kernel", walked_with, PFEC_page_present);
    expect("without", walked, at(U, 0));
    goes_on(asked(READ, U, 0, 8, 0, 0), 3);
    expect("emulated", faults(store, at(U, 0), 8), true);
    expect("to write", walked_with, PFEC_page_present | PFEC_write_access);
    expect("to write", checked, hvm_access_write);
    goes_on(asked(WRITE, U, 0, 8, 0, 3), 0);
    is_over(0x1009);
    expect("emulated", faults(cmpxchg_insn, at(U, 0), 8), true);
    expect("to write", walked_with, PFEC_page_present | PFEC_write_access);
    expect("to write", checked, hvm_access_write);
    goes_on(asked(CMPXCHG, U, 0, 8, 3, 2), 3);
    is_over(0x100c);
    expect("emulated", faults(load, at(U, 0), 8), true);
    expect("to read", checked, hvm_access_read);
    goes_on(asked(READ, U, 0, 8, 0, 0), 3);
    user = 3;
    expect("emulated", faults(load_table, at(U, 0), 8), true);
    expect("as the processor", walked_with,
           PFEC_page_present | PFEC_implicit);
    goes_on(asked(READ, U, 0, 8, 0, 0), 3);
    user = 0;
}

/* ---- Cases: with other pages ---- */

static void two_places(void)
{
    begin();
    /* From U to a page that is here, and back. */
    fake_regs.rsi = at(U, 8);
    fake_regs.rdi = at(NEAR, 16);
    expect("emulated", faults(movs, at(U, 8), 8), true);
    expect("done", goes_on(asked(READ, U, 8, 8, 0, 0), 0x1234), true);
    expect("written", *(uint64_t *)&frames[64 + NEAR].bytes[16], 0x1234);
    is_over(0x1003);
    fake_regs.rsi = at(NEAR, 16);
    fake_regs.rdi = at(U, 0);
    expect("emulated", faults(movs, at(U, 0), 8), true);
    expect("done", goes_on(asked(WRITE, U, 0, 8, 0, 0x1234), 0), true);
    is_over(0x1006);
    /* From U to U. */
    fake_regs.rsi = at(U, 8);
    expect("emulated", faults(movs, at(U, 0), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 7), false);
    expect("done", goes_on(asked(WRITE, U, 0, 8, 0, 7), 0), true);
    is_over(0x1009);
    /* Neither. */
    instruction = movs;
    fake_regs.rsi = fake_regs.rdi = at(NEAR, 0);
    expect("not in state U", dsm_use_elsewhere(at(NEAR, 0), DATA), false);
    address = at(NEAR, 0);
    instruction = xadd;
    width = 8;
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect("the usual one", usual_exchanges, 1);
    is_over(0x100c);
}

/* A page that has to come comes before the rest. */
static void page_missing(void)
{
    struct xen_dsm_ring_entry e;

    begin();
    fake_regs.rsi = at(U, 8);
    fake_regs.rdi = at(I_PAGE, 0);
    expect("emulated", faults(movs, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 0x1234), false);
    e = next_entry();
    expect("a miss", e.type, XEN_DSM_PAGE_MISS);
    expect("of the other page", e.gfn, I_PAGE);
    expect("an ordinary one", e.flags, 0);
    expect("paused", current->paused, 1);
    expect("no interrupt", dsm_in_instruction(current), true);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, I_PAGE), 0);
    expect("unpaused", current->paused, 0);
    expect("done", dsm_resume(current), true);
    expect("nothing is read twice", DSM->stats.accesses, 1);
    expect("written", *(uint64_t *)frames[dom.p2m.e[I_PAGE].mfn].bytes, 0x1234);
    is_over(0x1003);

    /* It has written before: it goes on whatever happens. */
    expect("INVAL", one(XEN_DSM_INVAL, I_PAGE), 0);
    fake_regs.rsi = at(I_PAGE, 0);
    fake_regs.rdi = at(U, 8);
    RAX = 99;
    expect("emulated", faults(write_and_read, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(WRITE, U, 8, 8, 0, 99), 0), false);
    expect("a miss", next_entry().type, XEN_DSM_PAGE_MISS);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, I_PAGE), 0);
    expect("done", dsm_resume(current), true);
    expect("written once", DSM->stats.accesses, 2);
    is_over(0x1006);
}

static int write_and_wait(const struct x86_emulate_ops *ops,
                          struct x86_emulate_ctxt *ctxt)
{
    int rc = ops->write(x86_seg_ds, address, &RAX, 8, ctxt);

    return rc ?: tries < 4 ? X86EMUL_RETRY : X86EMUL_OKAY;
}

static int exchange_and_wait(const struct x86_emulate_ops *ops,
                             struct x86_emulate_ctxt *ctxt)
{
    int rc = ops->cmpxchg(x86_seg_ds, address, &RAX, &RCX, 8, true, ctxt);

    return rc ?: tries < 4 ? X86EMUL_RETRY : X86EMUL_OKAY;
}

static int movs_and_wait(const struct x86_emulate_ops *ops,
                         struct x86_emulate_ctxt *ctxt)
{
    int rc = movs(ops, ctxt);

    return rc ?: tries < 5 ? X86EMUL_RETRY : X86EMUL_OKAY;
}

/* A try that comes to nothing, though nothing is waited for. */
static void tries_again(void)
{
    begin();
    expect("emulated", faults(write_and_wait, at(U, 8), 8), true);
    expect("again", goes_on(asked(WRITE, U, 8, 8, 0, 1), 0), false);
    expect("before the guest", softirqs, 1);
    expect("again", dsm_resume(current), false);
    expect("before the guest", softirqs, 2);
    expect("done", dsm_resume(current), true);
    expect("no more", softirqs, 2);
    expect("once", DSM->stats.accesses, 1);
    is_over(0x1003);
    expect("emulated", faults(exchange_and_wait, at(U, 8), 8), true);
    expect("again", goes_on(asked(CMPXCHG, U, 8, 8, 1, 2), 1), false);
    expect("before the guest", softirqs, 3);
    while ( !dsm_resume(current) )
        ;
    is_over(0x1006);
    /* Not only the first of them. */
    softirqs = 0;
    fake_regs.rsi = at(U, 8);
    fake_regs.rdi = at(U + 1, 0);
    expect("emulated", faults(movs_and_wait, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 6), false);
    expect("again", goes_on(asked(WRITE, U + 1, 0, 8, 0, 6), 0), false);
    expect("before the guest", softirqs, 1);
    while ( !dsm_resume(current) )
        ;
    is_over(0x1009);
    softirqs = 4;
    /* What has changed nothing need not. */
    writebacks = 0;
    expect("emulated", faults(never, at(U, 8), 8), true);
    expect("not hurried", softirqs, 4);
    expect("segments", writebacks, 1);
    is_over(0x1009);
}

/* A write that crosses into another page. */
static void crossing(void)
{
    unsigned int i;

    begin();
    for ( i = 0; i < 8; i++ )
        wide[i] = 0xb0 + i;
    /* GFN 39 comes, and is before U. */
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U - 1), 0);
    expect("emulated", faults(wide_store, at(U, 0) - 2, 4), false);
    instruction = wide_store;
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect("nothing yet",
           frames[dom.p2m.e[U - 1].mfn].bytes[4095] != 0xb1, true);
    expect("done", goes_on(asked(WRITE, U, 0, 2, 0, 0xb3b2), 0), true);
    expect("and the rest", frames[dom.p2m.e[U - 1].mfn].bytes[4095], 0xb1);
    expect("and the rest", frames[dom.p2m.e[U - 1].mfn].bytes[4094], 0xb0);
    is_over(0x1003);
    /* The other way round. */
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U + 2), 0);
    expect("emulated", faults(wide_store, at(U + 2, 0) - 1, 3), true);
    expect("done", goes_on(asked(WRITE, U + 1, 4095, 1, 0, 0xb0), 0), true);
    expect("and the rest", frames[dom.p2m.e[U + 2].mfn].bytes[0], 0xb1);
    expect("and the rest", frames[dom.p2m.e[U + 2].mfn].bytes[1], 0xb2);
    is_over(0x1006);
    /* The other page is not mapped: nothing is written. */
    unmapped = U + 2;
    exceptions = 0;
    expect("emulated", faults(wide_store, at(U + 2, 0) - 1, 3), true);
    expect("a fault", exceptions, 1);
    is_over(0x1006);
    unmapped = U - 1;
    address = at(U, 0) - 2;
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect("a fault", exceptions, 2);
    unmapped = ~0UL;
    is_over(0x1006);
    /* Two that are both here. */
    address = at(NEAR + 1, 0) - 2;
    width = 4;
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect("the first", frames[64 + NEAR].bytes[4095], 0xb1);
    expect("the second", frames[64 + NEAR + 1].bytes[0] == 0xb2 &&
           frames[64 + NEAR + 1].bytes[1] == 0xb3, true);
    is_over(0x1009);
}

/* The rest of it has to wait, and is not forgotten. */
static void crossing_waits(void)
{
    struct xen_dsm_ring_entry e;
    const uint8_t *bytes;
    unsigned int i;

    begin();
    for ( i = 0; i < 8; i++ )
        wide[i] = 0xb0 + i;
    /* A copy, which can be read only. */
    expect("INSTALL", one(XEN_DSM_INSTALL_S, U + 2), 0);
    bytes = frames[dom.p2m.e[U + 2].mfn].bytes;
    expect("emulated", faults(wide_store, at(U + 2, 0) - 1, 3), true);
    expect("goes on", goes_on(asked(WRITE, U + 1, 4095, 1, 0, 0xb0), 0), false);
    e = next_entry();
    expect("a miss", e.type, XEN_DSM_PAGE_MISS);
    expect("of the copy", e.gfn, U + 2);
    expect("to write", e.want, XEN_DSM_WANT_M);
    expect("nothing yet", bytes[0] != 0xb1, true);
    expect("UPGRADE", one(XEN_DSM_UPGRADE, U + 2), 0);
    expect("done", dsm_resume(current), true);
    expect("the rest", bytes[0] == 0xb1 && bytes[1] == 0xb2, true);
    expect("once", DSM->stats.accesses, 1);
    is_over(0x1003);

    /* What is read of a page that is here is read again. */
    fake_regs.rsi = at(U + 2, 0) - 4;
    fake_regs.rdi = at(U, 0);
    expect("emulated", faults(movs, at(U + 2, 0) - 4, 8), true);
    expect("goes on", goes_on(asked(READ, U + 1, 4092, 4, 0, 0), 7), false);
    expect("done", goes_on(asked(WRITE, U, 0, 8, 0, *(uint32_t *)bytes * (1UL << 32)
                                 | 7), 0), true);
    is_over(0x1006);

    /* Where a page ends its linear address says. */
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U - 1), 0);
    bytes = frames[dom.p2m.e[U - 1].mfn].bytes;
    instruction = wide_store_fs;
    address = at(U, 0) - 2;
    width = 4;
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect("done", goes_on(asked(WRITE, U, 0, 2, 0, 0xb3b2), 0), true);
    expect("the rest", bytes[4094] == 0xb0 && bytes[4095] == 0xb1, true);
    is_over(0x1009);

    /* An exchange that ends there is none with the next page. */
    usual_exchanges = 0;
    instruction = cmpxchg_insn;
    address = at(U, 0) - 8;
    width = 8;
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect("the usual one", usual_exchanges, 1);
    expect("nothing is asked for", next_entry().type, 0);
}

/* The walk finds a fault, which is over when the other page is written. */
static void fault_is_over(void)
{
    uint8_t *bytes;
    unsigned int i;

    begin();
    for ( i = 0; i < 8; i++ )
        wide[i] = 0xb0 + i;
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U + 2), 0);
    bytes = frames[dom.p2m.e[U + 2].mfn].bytes;
    not_walked = U + 2;
    softirqs = 0;
    expect("emulated", faults(wide_store, at(U + 2, 0) - 2, 4), true);
    expect("again", dsm_in_instruction(current), true);
    expect("before the guest", softirqs, 1);
    expect("written", bytes[0], 0xb2);
    bytes[0] = 0x55;
    expect("the rest", dsm_resume(current), false);
    expect("done", goes_on(asked(WRITE, U + 1, 4094, 2, 0, 0xb1b0), 0), true);
    expect("once", bytes[0], 0x55);
    is_over(0x1003);
}

/* ---- Cases: what ends an instruction ---- */

static void faulting(void)
{
    begin();
    exceptions = writebacks = 0;
    expect("emulated", faults(fault, at(U, 0), 8), true);
    expect("done", goes_on(asked(READ, U, 0, 8, 0, 0), 5), true);
    expect("a fault", exceptions, 1);
    expect("segments", writebacks, 1);
    is_over(0x1000);
    /* An address that is none. */
    bad_address = at(U, 0);
    expect("emulated", faults(load, at(U, 0), 8), true);
    expect("a fault", exceptions, 2);
    is_over(0x1000);
    expect("emulated", faults(cmpxchg_insn, at(U, 0), 8), true);
    expect("a fault", exceptions, 3);
    is_over(0x1000);
}

static void cancelled(void)
{
    uint64_t cookie;

    begin();
    expect("emulated", faults(xadd, at(U, 8), 8), true);
    cookie = asked(READ, U, 8, 8, 0, 0);
    /* INIT: the answer is thrown away, and ends the wait. */
    dsm_cancel_instruction(current);
    expect("waits", current->paused, 1);
    expect("no PLACE", dsm_is_accessing(DSM, 1), true);
    expect("DONE", done(1, cookie, 0, 7), 0);
    is_over(0x1000);
    expect("nothing to do", dsm_resume(current), true);
    expect("tried once", tries, 1);

    /* Between two. */
    fake_regs.rsi = at(U, 8);
    fake_regs.rdi = at(I_PAGE, 0);
    expect("emulated", faults(movs, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 7), false);
    dsm_cancel_instruction(current);
    expect("nothing is kept", DSM->vcpu[1].accesses.nr, 0);
    expect("a miss", next_entry().type, XEN_DSM_PAGE_MISS);
    expect("WAKE", one(XEN_DSM_WAKE, I_PAGE), 0);
    is_over(0x1000);
    /* Before an answer that is none. */
    fake_regs.rdi = at(U + 1, 0);
    expect("emulated", faults(movs, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 7), false);
    cookie = asked(WRITE, U + 1, 0, 8, 0, 7);
    dsm_cancel_instruction(current);
    expect("AGAIN", done(1, cookie, XEN_DSM_ACCESS_AGAIN, 0), 0);
    is_over(0x1000);
    /* The next one asks for itself. */
    expect("emulated", faults(load, at(U, 8), 8), true);
    expect("done", goes_on(asked(READ, U, 8, 8, 0, 0), 9), true);
    expect("value", RAX, 9);
}

/*
 * What a vCPU that runs does not hear: Linux sends each SIPI twice.  As
 * vlapic_init_sipi_one() does it, which ends the instruction in any case.
 */
static void hears(uint32_t icr)
{
    if ( !dsm_forward_icr(current, icr) )
        dsm_cancel_instruction(current);
}

static void not_heard(void)
{
    static const uint32_t icrs[] = {
        APIC_DM_STARTUP | 8, APIC_DM_INIT | APIC_INT_LEVELTRIG,
    };
    uint64_t cookie;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(icrs); i++ )
    {
        begin();
        current->is_initialised = true;
        RCX = 2;
        expect("emulated", faults(xadd, at(U, 8), 8), true);
        cookie = asked(READ, U, 8, 8, 0, 0);
        hears(icrs[i]);
        expect("goes on", goes_on(cookie, 7), false);
        cookie = asked(CMPXCHG, U, 8, 8, 7, 9);
        hears(icrs[i]);
        expect("done", goes_on(cookie, 7), true);
        expect("once", RCX, 7);
    }

    /* Who waits for a SIPI hears it, and an INIT everybody. */
    begin();
    current->is_initialised = false;
    expect("begins", dsm_forward_icr(current, APIC_DM_STARTUP | 8), false);
    current->is_initialised = true;
    expect("an INIT", dsm_forward_icr(current, APIC_DM_INIT), false);
    expect("with a level", dsm_forward_icr(current, APIC_DM_INIT |
                                           APIC_INT_LEVELTRIG |
                                           APIC_INT_ASSERT), false);
    expect("an NMI", dsm_forward_icr(current, APIC_DM_NMI), false);
    expect("a vector", dsm_forward_icr(current, APIC_DM_FIXED | 0x40), false);
}

/* An address out of memory, and a read from there. */
static int indirect(const struct x86_emulate_ops *ops,
                    struct x86_emulate_ctxt *ctxt)
{
    unsigned long there, value;
    int rc = ops->read(x86_seg_ds, fake_regs.rsi, &there, 8, ctxt);

    if ( !rc && there & 1 )
        return ops->write(x86_seg_ds, there - 1, &RAX, 8, ctxt);
    rc = rc ?: ops->read(x86_seg_ds, there, &value, width, ctxt);

    return rc ?: ops->write(x86_seg_ds, fake_regs.rdi, &value, 8, ctxt);
}

static int write_and_indirect(const struct x86_emulate_ops *ops,
                              struct x86_emulate_ctxt *ctxt)
{
    int rc = ops->write(x86_seg_ds, at(U, 24), &RAX, 8, ctxt);

    return rc ?: indirect(ops, ctxt);
}

static int exchange_and_read(const struct x86_emulate_ops *ops,
                             struct x86_emulate_ctxt *ctxt)
{
    unsigned long there;
    int rc = ops->read(x86_seg_ds, fake_regs.rsi, &there, 8, ctxt);

    rc = rc ?: ops->cmpxchg(x86_seg_ds, there, &RAX, &RCX, 8, true, ctxt);
    if ( rc == X86EMUL_CMPXCHG_FAILED )
        rc = X86EMUL_OKAY;

    return rc ?: ops->read(x86_seg_ds, fake_regs.rdi, &there, 8, ctxt);
}

static void changed(void)
{
    uint64_t *p = (uint64_t *)frames[64 + NEAR].bytes;
    static const struct { unsigned long there; unsigned int width; } other[] = {
        { at(U, 16), 8 }, { at(U, 0), 8 }, { at(U + 1, 8), 8 },
        { at(U, 8) + 1, 8 }, { at(U, 8), 4 } };
    unsigned int i;

    begin();
    fake_regs.rsi = at(U, 8);
    fake_regs.rdi = at(I_PAGE, 0);
    expect("emulated", faults(movs, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 7), false);
    expect("a miss", next_entry().type, XEN_DSM_PAGE_MISS);
    /* The guest's tables: what it has got it has got. */
    moved = U + 1;
    expect("INSTALL", one(XEN_DSM_INSTALL_M, I_PAGE), 0);
    expect("done", dsm_resume(current), true);
    expect("value", *(uint64_t *)frames[dom.p2m.e[I_PAGE].mfn].bytes, 7);
    is_over(0x1003);
    moved = ~0UL;

    /* An address: it begins anew, and reads from there. */
    for ( i = 0; i < ARRAY_SIZE(other); i++ )
    {
        expect("INVAL", one(XEN_DSM_INVAL, I_PAGE), 0);
        fake_regs.rip = 0x1000;
        fake_regs.rsi = at(NEAR, 0);
        *p = at(U, 8);
        expect("emulated", faults(indirect, at(U, 8), 8), true);
        expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 7), false);
        expect("a miss", next_entry().type, XEN_DSM_PAGE_MISS);
        *p = other[i].there;
        width = other[i].width;
        expect("INSTALL", one(XEN_DSM_INSTALL_M, I_PAGE), 0);
        expect("anew", dsm_resume(current), true);
        is_over(0x1000);
    }

    /* An exchange is at another address now. */
    expect("INVAL", one(XEN_DSM_INVAL, I_PAGE), 0);
    *p = at(U, 8);
    expect("emulated", faults(exchange_and_read, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(CMPXCHG, U, 8, 8, 1, 2), 9), false);
    expect("a miss", next_entry().type, XEN_DSM_PAGE_MISS);
    *p = at(U, 16);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, I_PAGE), 0);
    expect("anew", dsm_resume(current), true);
    is_over(0x1000);

    /* One that has written: it is not tried for ever. */
    expect("INVAL", one(XEN_DSM_INVAL, I_PAGE), 0);
    *p = at(U, 8);
    expect("emulated", faults(write_and_indirect, at(U, 24), 8), true);
    expect("goes on", goes_on(asked(WRITE, U, 24, 8, 0, 1), 0), false);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 7), false);
    expect("a miss", next_entry().type, XEN_DSM_PAGE_MISS);
    *p = at(U, 16);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, I_PAGE), 0);
    expect("anew", dsm_resume(current), true);
    is_over(0x1000);
}

static void again(void)
{
    uint64_t cookie;

    begin();
    expect("emulated", faults(load, at(U, 8), 8), true);
    cookie = asked(READ, U, 8, 8, 0, 0);
    /* It may leave its home now. */
    expect("CACHE", one(XEN_DSM_CACHE, U), 0);
    expect("CACHE does not wake", current->paused, 1);
    expect("DONE", done(1, cookie, XEN_DSM_ACCESS_AGAIN, 0), 0);
    expect("anew", dsm_resume(current), true);
    is_over(0x1000);
    expect("an ordinary miss", dsm_use_elsewhere(at(U, 8), DATA), false);
    dsm_populate(&dom, _gfn(U));
    expect("flags", next_entry().flags, 0);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U), 0);

    /* In the middle: what was read before is kept. */
    begin();
    fake_regs.rsi = at(U, 8);
    fake_regs.rdi = at(U + 1, 0);
    expect("emulated", faults(movs, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 6), false);
    cookie = asked(WRITE, U + 1, 0, 8, 0, 6);
    expect("CACHE", one(XEN_DSM_CACHE, U + 1), 0);
    expect("DONE", done(1, cookie, XEN_DSM_ACCESS_AGAIN, 0), 0);
    expect("goes on", dsm_resume(current), false);
    expect("a miss", next_entry().gfn, U + 1);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U + 1), 0);
    expect("done", dsm_resume(current), true);
    expect("read once", DSM->stats.accesses, 2);
    expect("written", *(uint64_t *)frames[dom.p2m.e[U + 1].mfn].bytes, 6);
    is_over(0x1003);
}

/* ---- Cases: what can't be done elsewhere ---- */

/* It asks for the page itself, and says that it is one in state U. */
static void expect_refused(const char *what)
{
    struct xen_dsm_ring_entry e = next_entry();

    expect(what, e.type, XEN_DSM_PAGE_MISS);
    expect(what, e.gfn, U);
    expect(what, e.flags, XEN_DSM_MISS_OF_U);
    expect("waits", current->paused, 1);
    expect("WAKE", one(XEN_DSM_WAKE, U), 0);
    is_over(0x1000);
}

static void refused(void)
{
    begin();
    instruction = load;
    address = at(U, 0);
    width = 8;
    expect("a table", dsm_use_elsewhere(at(U, 0), (struct npfec){
        .write_access = 1, .kind = npfec_kind_in_gpt }), true);
    expect_refused("a table");
    expect("nobody knows what", dsm_use_elsewhere(at(U, 0), (struct npfec){
        .write_access = 1 }), true);
    expect_refused("nobody knows what");
    expect("code", dsm_use_elsewhere(at(U, 0), (struct npfec){
        .insn_fetch = 1, .kind = npfec_kind_with_gla }), true);
    expect_refused("code");
    fake_event = true;
    expect("an interrupt", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect_refused("an interrupt");
    fake_event = false;
    fake_mode = X86_MODE_32BIT;
    expect("32 bits", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect_refused("32 bits");
    fake_mode = X86_MODE_64BIT;
    expect("nothing is tried", tries, 0);
    /* Who looked it up to write gets it to write. */
    is_paged(U, P2M_ALLOC | P2M_UNSHARE);
    expect("code", dsm_use_elsewhere(at(U, 0), (struct npfec){
        .insn_fetch = 1, .kind = npfec_kind_with_gla }), true);
    expect("to write", DSM->vcpu[1].want, XEN_DSM_WANT_M);
    expect_refused("to write");

    dumps = 0;
    expect("unknown", faults(unknown, at(U, 0), 8), true);
    expect("said", dumps, 1);
    expect_refused("unknown");

    expect("8 bytes", faults(cmpxchg_insn, at(U, 1), 8), true);
    expect_refused("8 bytes");
    expect("not in 8 bytes", faults(cmpxchg_insn, at(U, 6), 4), true);
    expect_refused("not in 8 bytes");
    expect("16 bytes", faults(cmpxchg_insn, at(U, 0), 16), true);
    expect_refused("16 bytes");
    instruction = cmpxchg_insn;
    address = at(U, 0) - 2;
    width = 4;
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U - 1), 0);
    expect("into it", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect_refused("into it");
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U + 1), 0);
    expect("out of it", faults(cmpxchg_insn, at(U + 1, 0) - 2, 4), true);
    expect_refused("out of it");
    expect("not the usual one", usual_exchanges, 0);

    /* The guest has changed it meanwhile. */
    unknown_until = 1;
    expect("emulated", faults(unknown, at(U, 0), 8), true);
    expect("asks for the page", goes_on(asked(READ, U, 0, 8, 0, 0), 0), true);
    expect_refused("changed");
}

/* What keeps in a register how far it is, and what makes too many accesses. */
static void unfit(void)
{
    static const unsigned int bad[] = {
        0xc8, 0x0f383190, 0x0f382193, 0x0f3821a0, 0x0f3821a3 };
    static const unsigned int good[] = {
        0xc9, 0x0f00c8, 0x0f38218f, 0x0f382194, 0x0f38219f, 0x0f3821a4,
        0x0f3a2190 };
    unsigned int i;

    begin();
    dumps = 0;
    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        opcode = bad[i];
        expect("refused", faults(load, at(U, 0), 8), true);
        expect("said", dumps, i + 1);
        expect_refused("unfit");
    }
    /* ENTER, whose accesses are stores. */
    opcode = bad[0];
    expect("refused", faults(store, at(U, 0), 8), true);
    expect("said", dumps--, i + 1);
    expect_refused("unfit");
    for ( i = 0; i < ARRAY_SIZE(good); i++ )
    {
        opcode = good[i];
        fake_regs.rip = 0x1000;
        expect("emulated", faults(load, at(U, 0), 8), true);
        expect("done", goes_on(asked(READ, U, 0, 8, 0, 0), 1), true);
    }
    expect("no more", dumps, i ? ARRAY_SIZE(bad) : 0);
}

/* FXSAVE and the like: the page is looked up, and nothing else happens. */
static int in_one_piece(const struct x86_emulate_ops *ops,
                        struct x86_emulate_ctxt *ctxt)
{
    return is_missing(address >> PAGE_SHIFT, P2M_ALLOC | P2M_UNSHARE)
           ? X86EMUL_RETRY : X86EMUL_OKAY;
}

/* 16 bytes of code are read ahead, and some are in U. */
static int read_ahead(const struct x86_emulate_ops *ops,
                      struct x86_emulate_ctxt *ctxt)
{
    if ( tries == 1 )
        is_missing(U + 1, P2M_ALLOC);

    return load(ops, ctxt);
}

/* They may be all that it meets: it is another one by now. */
static int only_read_ahead(const struct x86_emulate_ops *ops,
                           struct x86_emulate_ctxt *ctxt)
{
    is_missing(U + 1, P2M_ALLOC);

    return X86EMUL_OKAY;
}

static int exchange_ahead(const struct x86_emulate_ops *ops,
                          struct x86_emulate_ctxt *ctxt)
{
    if ( tries == 1 )
        is_missing(U + 1, P2M_ALLOC);

    return cmpxchg_insn(ops, ctxt);
}

/* MOVDIR64B and the like: one page is read, another one used in one piece. */
static int read_and_in_one_piece(const struct x86_emulate_ops *ops,
                                 struct x86_emulate_ctxt *ctxt)
{
    int rc = load(ops, ctxt);

    if ( rc == X86EMUL_OKAY && is_missing(U + 1, P2M_ALLOC | P2M_UNSHARE) )
        rc = X86EMUL_RETRY;

    return rc;
}

static void needed(void)
{
    struct xen_dsm_ring_entry e;

    begin();
    /* Behind an access, which is kept. */
    expect("emulated", faults(read_and_in_one_piece, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 5), false);
    e = next_entry();
    expect("the other page", e.gfn, U + 1);
    expect("the other page", e.flags, XEN_DSM_MISS_OF_U);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U + 1), 0);
    expect("done", dsm_resume(current), true);
    expect("read once", DSM->stats.accesses, 1);
    is_over(0x1003);

    begin();
    expect("emulated", faults(in_one_piece, at(U, 0), 8), true);
    expect_refused("in one piece");

    /* Another one, which needs nothing. */
    expect("emulated", faults(never, at(U, 0), 8), true);
    is_over(0x1000);

    expect("emulated", faults(read_ahead, at(U, 8), 8), true);
    expect("done", goes_on(asked(READ, U, 8, 8, 0, 0), 5), true);
    is_over(0x1003);
    expect("emulated", faults(exchange_ahead, at(U, 8), 8), true);
    expect("done", goes_on(asked(CMPXCHG, U, 8, 8, 5, 2), 5), true);
    is_over(0x1006);
    expect("emulated", faults(only_read_ahead, at(U, 8), 8), true);
    is_over(0x1009);
    fake_regs.rip = 0x1003;
    /* An ordinary page that is missing is all that is waited for. */
    expect("emulated", faults(read_ahead, at(I_PAGE, 8), 8), false);
    expect("emulated", dsm_use_elsewhere(at(U, 8), DATA), true);
    e = next_entry();
    expect("a miss", e.gfn, I_PAGE);
    expect("flags", e.flags, 0);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, I_PAGE), 0);
    is_over(0x1003);

    /* A table of the page, in state U. */
    table = U + 1;
    expect("emulated", faults(load, at(U, 0), 8), true);
    e = next_entry();
    expect("the table", e.gfn, U + 1);
    expect("the table", e.flags, XEN_DSM_MISS_OF_U);
    expect("WAKE", one(XEN_DSM_WAKE, U + 1), 0);
    /* One that is away. */
    table = I_PAGE;
    expect("INVAL", one(XEN_DSM_INVAL, I_PAGE), 0);
    expect("emulated", faults(load, at(U, 0), 8), true);
    e = next_entry();
    expect("the table", e.gfn, I_PAGE);
    expect("the table", e.flags, 0);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, I_PAGE), 0);
    is_over(0x1003);
}

/* ---- Cases: a page that becomes U, or leaves it, at any time ---- */

static bool uncache(unsigned long gfn)
{
    if ( gfn != I_PAGE )
        return false;
    expect("UNCACHE", one(XEN_DSM_UNCACHE, I_PAGE), 0);

    return true;
}

static void becomes_u(void)
{
    begin();
    /* Two vCPUs fault on it, and it becomes U for one of them. */
    is_paged(I_PAGE, P2M_ALLOC);
    expect("not U yet", dsm_use_elsewhere(at(I_PAGE, 0), DATA), false);
    uncache(I_PAGE);
    dsm_populate(&dom, _gfn(I_PAGE));
    is_over(0x1000);
    expect("now it is", faults(load, at(I_PAGE, 0), 8), true);
    expect("done", goes_on(asked(READ, I_PAGE, 0, 8, 0, 0), 1), true);
    is_over(0x1003);
    /* It was, and is again: what the fault saw is no refusal. */
    is_paged(I_PAGE, P2M_ALLOC);
    expect("CACHE", one(XEN_DSM_CACHE, I_PAGE), 0);
    expect("not U", dsm_use_elsewhere(at(I_PAGE, 0), DATA), false);
    uncache(I_PAGE);
    dsm_populate(&dom, _gfn(I_PAGE));
    is_over(0x1003);
    /* Who has seen U, which is over, misses an ordinary page. */
    is_paged(I_PAGE, P2M_ALLOC);
    expect("CACHE", one(XEN_DSM_CACHE, I_PAGE), 0);
    dsm_populate(&dom, _gfn(I_PAGE));
    expect("flags", next_entry().flags, 0);
    uncache(I_PAGE);
    /* Who does not emulate, and has seen U, needs it here. */
    expect("missing", is_missing(I_PAGE, P2M_ALLOC), true);
    expect("flags", next_entry().flags, XEN_DSM_MISS_OF_U);
    expect("CACHE", one(XEN_DSM_CACHE, I_PAGE), 0);
    /* It becomes so while somebody looks. */
    is_paged(I_PAGE, P2M_ALLOC);
    uncache(I_PAGE);
    dsm_populate(&dom, _gfn(I_PAGE));
    is_over(0x1003);
    expect("CACHE", one(XEN_DSM_CACHE, I_PAGE), 0);
    /* A hypercall that looks up without a hint. */
    dsm_populate(&dom, _gfn(I_PAGE));
    expect("flags", next_entry().flags, 0);
    uncache(I_PAGE);
    dsm_populate(&dom, _gfn(I_PAGE));
    expect("flags", next_entry().flags, XEN_DSM_MISS_OF_U);
    expect("CACHE", one(XEN_DSM_CACHE, I_PAGE), 0);

    /* While the emulator looks: it begins anew. */
    when_looked_up = uncache;
    expect("emulated", faults(load, at(I_PAGE, 0), 8), false);
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect("done", goes_on(asked(READ, I_PAGE, 0, 8, 0, 0), 1), true);
    is_over(0x1006);
}

/* Between the walk and the operation: it is looked at again. */
static void goes_and_stays(void)
{
    expect("INVAL", one(XEN_DSM_INVAL, I_PAGE), 0);
    expect("UNCACHE", one(XEN_DSM_UNCACHE, I_PAGE), 0);
}

static void becomes_u_late(void)
{
    instruction_t *insn[] = { load, store, cmpxchg_insn };
    unsigned int i;

    begin();
    for ( i = 0; i < ARRAY_SIZE(insn); i++ )
    {
        expect("INSTALL", one(XEN_DSM_INSTALL_M, I_PAGE), 0);
        expect("not U", faults(insn[i], at(I_PAGE, 0), 8), false);
        before_usual = goes_and_stays;
        expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
        expect("tried", tries, 1);
        is_over(0x1000);
    }
}

static void leaves_u(void)
{
    uint64_t cookie;

    /* Before the instruction has begun: other bytes may be there next time. */
    begin();
    expect("emulated", faults(load, at(U, 8), 8), true);
    cookie = asked(READ, U, 8, 8, 0, 0);
    expect("CACHE", one(XEN_DSM_CACHE, U), 0);
    expect("DONE", done(1, cookie, XEN_DSM_ACCESS_AGAIN, 0), 0);
    expect("anew", dsm_resume(current), true);
    is_over(0x1000);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U), 0);
    fake_regs.rip = 0x2000;
    expect("emulated", faults(store, at(U + 1, 8), 8), true);
    expect("fetched", fresh, 0);
    asked(WRITE, U + 1, 8, 8, 0, RAX);
}

/* A LOCKed one that is done, and its answer is here. */
static void leaves_u_locked(void)
{
    uint64_t cookie;

    begin();
    expect("emulated", faults(xadd, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 40), false);
    cookie = asked(CMPXCHG, U, 8, 8, 40, 42);
    expect("DONE", done(1, cookie, 0, 40), 0);
    expect("CACHE", one(XEN_DSM_CACHE, U), 0);
    expect("done", dsm_resume(current), true);
    expect("what was there", RCX, 40);
    is_over(0x1003);
}

/* The same, and the page has come. */
static void leaves_u_and_comes(void)
{
    uint64_t cookie;

    begin();
    expect("emulated", faults(xadd, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 40), false);
    cookie = asked(CMPXCHG, U, 8, 8, 40, 42);
    expect("DONE", done(1, cookie, 0, 40), 0);
    expect("CACHE", one(XEN_DSM_CACHE, U), 0);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U), 0);
    *(uint64_t *)&frames[dom.p2m.e[U].mfn].bytes[8] = 42;
    expect("done", dsm_resume(current), true);
    expect("what was there", RCX, 40);
    expect("not here", usual_exchanges, 0);
    is_over(0x1003);
}

static void leaves_u_stored(void)
{
    uint64_t cookie;

    begin();
    expect("emulated", faults(store, at(U, 8), 8), true);
    cookie = asked(WRITE, U, 8, 8, 0, 1);
    expect("DONE", done(1, cookie, 0, 0), 0);
    expect("CACHE", one(XEN_DSM_CACHE, U), 0);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U), 0);
    *(uint64_t *)&frames[dom.p2m.e[U].mfn].bytes[8] = 7;
    expect("done", dsm_resume(current), true);
    expect("another's", *(uint64_t *)&frames[dom.p2m.e[U].mfn].bytes[8], 7);
    is_over(0x1003);
}

/* An exchange that is left to do is done here. */
static void leaves_u_exchange(void)
{
    uint64_t cookie;

    begin();
    expect("emulated", faults(xadd, at(U, 8), 8), true);
    expect("goes on", goes_on(asked(READ, U, 8, 8, 0, 0), 40), false);
    cookie = asked(CMPXCHG, U, 8, 8, 40, 42);
    expect("CACHE", one(XEN_DSM_CACHE, U), 0);
    expect("DONE", done(1, cookie, XEN_DSM_ACCESS_AGAIN, 0), 0);
    expect("goes on", dsm_resume(current), false);
    expect("a miss", next_entry().flags, 0);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U), 0);
    *(uint64_t *)&frames[dom.p2m.e[U].mfn].bytes[8] = 40;
    expect("done", dsm_resume(current), true);
    expect("here", usual_exchanges, 1);
    expect("here", *(uint64_t *)&frames[dom.p2m.e[U].mfn].bytes[8], 42);
    is_over(0x1003);
}

static void leaves_u_between_parts(void)
{
    uint64_t cookie;
    uint8_t *bytes;
    unsigned int i;

    begin();
    for ( i = 0; i < 16; i++ )
        wide[i] = 0xb0 + i;
    expect("emulated", faults(wide_store, at(U, 2), 8), true);
    expect("goes on", goes_on(asked(WRITE, U, 2, 4, 0, 0xb3b2b1b0), 0), false);
    cookie = asked(WRITE, U, 6, 2, 0, 0xb5b4);
    expect("CACHE", one(XEN_DSM_CACHE, U), 0);
    expect("DONE", done(1, cookie, XEN_DSM_ACCESS_AGAIN, 0), 0);
    expect("goes on", dsm_resume(current), false);
    expect("a miss", next_entry().flags, 0);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U), 0);
    bytes = frames[dom.p2m.e[U].mfn].bytes;
    memset(bytes, 0x55, 16);
    expect("done", dsm_resume(current), true);
    expect("another's", bytes[2] == 0x55 && bytes[5] == 0x55, true);
    expect("the rest", bytes[6] == 0xb4 && bytes[9] == 0xb7, true);
    expect("not more", bytes[10], 0x55);
    is_over(0x1003);
}

/* Over two pages: the first has come, the second stays. */
static void leaves_u_first(void)
{
    uint64_t cookie;
    uint8_t *bytes;
    unsigned int i;

    begin();
    for ( i = 0; i < 16; i++ )
        wide[i] = 0xb0 + i;
    expect("emulated", faults(wide_store, at(U + 1, 0) - 4, 8), true);
    expect("goes on", goes_on(asked(WRITE, U, 0xffc, 4, 0, 0xb3b2b1b0), 0),
           false);
    cookie = asked(WRITE, U + 1, 0, 4, 0, 0xb7b6b5b4);
    expect("CACHE", one(XEN_DSM_CACHE, U), 0);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U), 0);
    bytes = frames[dom.p2m.e[U].mfn].bytes;
    memset(bytes + 0xff0, 0x55, 16);
    expect("done", goes_on(cookie, 0), true);
    expect("another's", bytes[0xffc], 0x55);
    is_over(0x1003);
}

/* A page that is here, then U, which comes between two parts. */
static void leaves_u_second(void)
{
    uint64_t cookie;
    uint8_t *bytes;
    unsigned int i;

    begin();
    for ( i = 0; i < 16; i++ )
        wide[i] = 0xb0 + i;
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U - 1), 0);
    expect("emulated", faults(wide_store, at(U, 0) - 2, 10), false);
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    goes_on(asked(WRITE, U, 0, 8, 0, 0xb9b8b7b6b5b4b3b2), 0);
    is_over(0x1003);
    expect("emulated", faults(wide_store, at(U, 0) - 2, 11), false);
    expect("emulated", dsm_use_elsewhere(at(U, 0), DATA), true);
    expect("goes on", goes_on(asked(WRITE, U, 0, 8, 0, 0xb9b8b7b6b5b4b3b2), 0),
           false);
    cookie = asked(WRITE, U, 8, 1, 0, 0xba);
    bytes = frames[dom.p2m.e[U - 1].mfn].bytes;
    bytes[4094] = 0x55;
    expect("CACHE", one(XEN_DSM_CACHE, U), 0);
    expect("DONE", done(1, cookie, XEN_DSM_ACCESS_AGAIN, 0), 0);
    expect("goes on", dsm_resume(current), false);
    expect("not before the other can be written", bytes[4094], 0x55);
    expect("a miss", next_entry().gfn, U);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U), 0);
    frames[dom.p2m.e[U].mfn].bytes[0] = 0x55;
    expect("done", dsm_resume(current), true);
    expect("the first", bytes[4094] == 0xb0 && bytes[4095] == 0xb1, true);
    bytes = frames[dom.p2m.e[U].mfn].bytes;
    expect("another's", bytes[0], 0x55);
    expect("the rest", bytes[8], 0xba);
    is_over(0x1006);
}

static int too_many(const struct x86_emulate_ops *ops,
                    struct x86_emulate_ctxt *ctxt)
{
    unsigned long value;
    unsigned int i;
    int rc = 0;

    for ( i = 0; i <= DSM_ACCESSES && !rc; i++ )
        rc = ops->read(x86_seg_ds, at(U, 8 * i), &value, 8, ctxt);

    return rc;
}

/* The list is full when the rest of the last one is made here. */
static int fill_and_write(const struct x86_emulate_ops *ops,
                          struct x86_emulate_ctxt *ctxt)
{
    unsigned long value;
    unsigned int i;
    int rc = 0;

    for ( i = 1; i < DSM_ACCESSES && !rc; i++ )
        rc = ops->read(x86_seg_ds, at(U, 8 * i), &value, 8, ctxt);

    return rc ?: ops->write(x86_seg_ds, at(U, 1024), wide, 16, ctxt);
}

static void full_list(void)
{
    struct dsm_vcpu *w;
    unsigned int i;

    begin();
    w = &DSM->vcpu[1];
    memset(wide, 0xab, sizeof(wide));
    expect("emulated", faults(fill_and_write, at(U, 0), 8), true);
    for ( i = 1; i < DSM_ACCESSES; i++ )
        expect("goes on", goes_on(next_entry().vectors[0], 0), false);
    expect("CACHE", one(XEN_DSM_CACHE, U), 0);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, U), 0);
    w->gfn = 0x5555;            /* behind the list */
    expect("done", goes_on(next_entry().vectors[0], 0), true);
    expect("the rest", frames[dom.p2m.e[U].mfn].bytes[1032], 0xab);
    expect("not more than there is", w->gfn, 0x5555);
    is_over(0x1003);
}

static void endless(void)
{
    unsigned int i;

    begin();
    expect("emulated", faults(too_many, at(U, 0), 8), true);
    for ( i = 0; i < DSM_ACCESSES; i++ )
        expect("goes on", goes_on(next_entry().vectors[0], 0),
               i == DSM_ACCESSES - 1);
    expect("a miss", next_entry().flags, XEN_DSM_MISS_OF_U);
    /* A domain that dies asks nobody. */
    begin();
    DSM->dead = true;
    expect("not in any state", faults(load, at(U, 0), 8), false);
    expect("not tried", tries, 0);
    DSM->dead = false;
    expect("emulated", faults(load, at(U, 0), 8), true);
    asked(READ, U, 0, 8, 0, 0);
    DSM->dead = true;
    expect("EIO", dsm_access_away(dom.vcpu[2], &(struct xen_dsm_access){
        .gfn = U, .width = 8, .op = READ }, 0, at(U, 0)), -EIO);
    expect("a ghost, and no more", dom.vcpu[2]->paused, 1);
}

/* ---- Cases: answers, the ring ---- */

static void answers(void)
{
    uint64_t cookie;

    begin();
    expect("emulated", faults(load, at(U, 8), 2), true);
    cookie = asked(READ, U, 8, 2, 0, 0);
    expect("another cookie", done(1, cookie + 1, 0, 7), -ESRCH);
    expect("another vCPU", done(2, cookie, 0, 7), -ESRCH);
    expect("no vCPU", done(NR_VCPUS, cookie, 0, 7), -ENOENT);
    expect("flags", done(1, cookie, 2, 7), -EINVAL);
    expect("too wide", done(1, cookie, 0, 0x10000), -EINVAL);
    expect("again, and a value", done(1, cookie, XEN_DSM_ACCESS_AGAIN, 7),
           -EINVAL);
    expect("waits", current->paused, 1);
    expect("done", goes_on(cookie, 0xffff), true);
    expect("value", RAX, 0xffff);
    expect("twice", done(1, cookie, 0, 7), -ESRCH);
    expect("emulated", faults(store, at(U, 8), 8), true);
    cookie = asked(WRITE, U, 8, 8, 0, 0xffff);
    expect("a WRITE sees nothing", done(1, cookie, 0, 1), -EINVAL);
    expect("done", goes_on(cookie, 0), true);
    expect("emulated", faults(load, at(U, 8), 8), true);
    expect("that of the last one", done(1, cookie, 0, 1), -ESRCH);
    expect("done", goes_on(asked(READ, U, 8, 8, 0, 0), ~0UL), true);
    expect("all bits", RAX, ~0UL);
}

static void ring_full(void)
{
    struct xen_dsm_ring_entry e;
    uint64_t cookie;

    begin();
    DSM->ring->cons = DSM->ring->prod - DSM->ring_nr;
    expect("emulated", faults(load, at(U, 8), 2), true);
    expect("full", DSM->ring->full, 1);
    expect("counted", DSM->stats.ring_full, 1);
    DSM->ring->cons = DSM->ring->prod;
    current = daemon_vcpu;
    notified = 0;
    expect("FLUSH", flush(0), 0);
    expect("told", notified, 1);
    current = dom.vcpu[1];
    cookie = asked(READ, U, 8, 2, 0, 0);
    current = daemon_vcpu;
    expect("FLUSH", flush(0), 0);
    expect("once", next_entry().type, 0);
    expect("ALL", flush(XEN_DSM_FLUSH_ALL), 0);
    current = dom.vcpu[1];
    do
        e = next_entry();
    while ( e.type == XEN_DSM_ACTIVITY );
    expect("the same", e.vectors[0], cookie);
    expect("done", goes_on(cookie, 5), true);
    current = daemon_vcpu;
    expect("ALL", flush(XEN_DSM_FLUSH_ALL), 0);
    current = dom.vcpu[1];
    while ( (e = next_entry()).type )
        expect("no access", e.type, XEN_DSM_ACTIVITY);

    /* The last vCPU, too. */
    dom.vcpu[NR_VCPUS - 1]->pause_flags = 1UL << _VPF_down;
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("PLACE", by_daemon(&(struct xen_dsm_op){
        .cmd = XEN_DSM_PLACE,
        .u.place = { .vcpu = NR_VCPUS - 1, .slice = 1 } }), 0);
    domain_unpause_by_systemcontroller(&dom);
    dom.vcpu[NR_VCPUS - 1]->pause_flags = 0;
    current = dom.vcpu[NR_VCPUS - 1];
    DSM->ring->cons = DSM->ring->prod - DSM->ring_nr;
    expect("emulated", faults(load, at(U, 8), 2), true);
    DSM->ring->cons = DSM->ring->prod;
    current = daemon_vcpu;
    expect("FLUSH", flush(0), 0);
    current = dom.vcpu[NR_VCPUS - 1];
    asked(READ, U, 8, 2, 0, 0);
}

static void placing(void)
{
    struct xen_dsm_op op = {
        .cmd = XEN_DSM_PLACE, .u.place = { .vcpu = 2, .slice = 1 } };
    uint64_t cookie;

    begin();
    dom.vcpu[2]->pause_flags = 1UL << _VPF_down;
    expect("emulated", faults(load, at(U, 8), 2), true);
    cookie = asked(READ, U, 8, 2, 0, 0);
    domain_pause_by_systemcontroller_nosync(&dom);
    expect("under way", by_daemon(&op), -EBUSY);
    expect("DONE", done(1, cookie, 0, 0), 0);
    expect("placed", by_daemon(&op), 0);

    /* The domain has ended in the middle of an instruction. */
    expect("in it", dsm_in_instruction(current), true);
    dom.is_shut_down = true;
    op.u.place = (struct xen_dsm_place){ .vcpu = 1 };
    expect("placed", by_daemon(&op), 0);
    expect("no list", dsm_in_instruction(current), false);
}

/* ---- Cases: the state ---- */

static void states(void)
{
    p2m_type_t t;

    begin();
    expect("UNCACHE", one(XEN_DSM_UNCACHE, U), -EEXIST);
    expect("CACHE", one(XEN_DSM_CACHE, I_PAGE), -EEXIST);
    expect("homed here", one(XEN_DSM_UNCACHE, NEAR), -EINVAL);
    expect("INVAL", one(XEN_DSM_INVAL, NEAR), 0);
    expect("homed here", one(XEN_DSM_UNCACHE, NEAR), -EINVAL);
    expect("CACHE", one(XEN_DSM_CACHE, NEAR), -EEXIST);
    expect("back", one(XEN_DSM_INSTALL_M, NEAR), 0);
    expect("CACHE", one(XEN_DSM_CACHE, NEAR), -EINVAL);
    expect("INVAL", one(XEN_DSM_INVAL, U), -EEXIST);
    expect("DOWNGRADE", one(XEN_DSM_DOWNGRADE, U), -EINVAL);
    expect("UPGRADE", one(XEN_DSM_UPGRADE, U), -EINVAL);
    expect("READ", one(XEN_DSM_READ, U), -EINVAL);

    /* Who looks it up waits, but another domain finds nothing. */
    t = p2m_mmio_dm;
    dsm_p2m_fixup(&dom.p2m, _gfn(U), INVALID_MFN, &t, P2M_ALLOC, NULL);
    expect("paged", t, p2m_ram_paged);
    current = daemon_vcpu;
    t = p2m_mmio_dm;
    dsm_p2m_fixup(&dom.p2m, _gfn(U), INVALID_MFN, &t, P2M_ALLOC, NULL);
    expect("a hole", t, p2m_mmio_dm);
    current = dom.vcpu[1];
    dom.p2m.locked++;
    expect("nothing over it", dsm_may_change(&dom.p2m, _gfn(U), 0), -EBUSY);
    dom.p2m.locked--;

    /* It comes after all, or becomes a hole: then U is over. */
    expect("INSTALL", one(XEN_DSM_INSTALL_S, U), 0);
    expect("S", dsm_is_uncached(&dom, _gfn(U)), false);
    expect("INVAL", one(XEN_DSM_INVAL, U), 0);
    expect("I", dsm_is_uncached(&dom, _gfn(U)), false);
    expect("UNCACHE", one(XEN_DSM_UNCACHE, U), 0);
    expect("DROP", one(XEN_DSM_DROP, U), 0);
    expect("a hole", one(XEN_DSM_UNCACHE, U), -ENOENT);
    expect("AWAY", by_daemon(&(struct xen_dsm_op){
        .cmd = XEN_DSM_AWAY, .u.frames = { .first = U, .nr = 1 } }), 0);
    expect("I", dsm_is_uncached(&dom, _gfn(U)), false);
    expect("DROP_RANGE", by_daemon(&(struct xen_dsm_op){
        .cmd = XEN_DSM_DROP_RANGE, .u.frames = { .first = U, .nr = 2 } }), 0);
    expect("all holes", one(XEN_DSM_CACHE, U + 1), -ENOENT);
    expect("outside", one(XEN_DSM_UNCACHE, 50), -ERANGE);

    /* Whoever waits for the page is woken. */
    dsm_populate(&dom, _gfn(I_PAGE));
    expect("waits", current->paused, 1);
    expect("UNCACHE", one(XEN_DSM_UNCACHE, I_PAGE), 0);
    expect("woken", current->paused, 0);
    dsm_populate(&dom, _gfn(I_PAGE));
    expect("CACHE", one(XEN_DSM_CACHE, I_PAGE), 0);
    expect("woken", current->paused, 0);
}

/* This slice's own shared_info may come where one in state U was. */
static void shared_info(void)
{
    begin();
    expect("SHARED_INFO", by_daemon(&(struct xen_dsm_op){
        .cmd = XEN_DSM_SHARED_INFO, .u.shared_info.gfn = U }), 0);
    expect("here", dsm_is_uncached(&dom, _gfn(U)), false);
}

/* ---- Cases: where it is made ---- */

static int make_one(struct xen_dsm_access *access)
{
    struct xen_dsm_op op = { .cmd = XEN_DSM_DO_ACCESS, .u.access = *access };
    int rc = by_daemon(&op);

    *access = op.u.access;

    return rc;
}

static void made(void)
{
    uint8_t *bytes = frames[64 + NEAR].bytes;
    unsigned int w, o;

    begin();
    for ( w = 1; w <= 8; w *= 2 )
    {
        uint64_t all = w < 8 ? (1UL << 8 * w) - 1 : ~0UL;
        struct xen_dsm_access a = {
            .gfn = NEAR, .offset = 4096 - 2 * w, .width = w, .op = WRITE,
            .value = 0x8877665544332211 & all };

        memset(bytes, 0xee, PAGE_SIZE);
        expect("WRITE", make_one(&a), 0);
        expect("not more", bytes[4096 - 2 * w - 1] == 0xee &&
               bytes[4096 - w] == 0xee, true);
        a = (struct xen_dsm_access){
            .gfn = NEAR, .offset = 4096 - 2 * w, .width = w, .op = READ };
        expect("READ", make_one(&a), 0);
        expect("value", a.old, 0x8877665544332211 & all);
        expect("nobody else", a.in_use, 0);
        a = (struct xen_dsm_access){
            .gfn = NEAR, .offset = 4096 - 2 * w, .width = w, .op = CMPXCHG,
            .old = 0x8877665544332211 & all, .value = 0x99 };
        expect("CMPXCHG", make_one(&a), 0);
        expect("was there", a.old, 0x8877665544332211 & all);
        a.in_use = 0;
        expect("CMPXCHG", make_one(&a), 0);
        expect("is there", a.old, 0x99);
        expect("stays", bytes[4096 - 2 * w], 0x99);
        expect("not more", bytes[4096 - w], 0xee);
    }
    expect("counted", DSM->stats.accesses_done, 16);

    /* Up to the end of the page, and not aligned. */
    for ( w = 1; w <= 8; w *= 2 )
        for ( o = 4096 - 8; o + w <= 4096; o++ )
        {
            uint64_t all = w < 8 ? (1UL << 8 * w) - 1 : ~0UL;
            struct xen_dsm_access a = {
                .gfn = NEAR, .offset = o, .width = w, .op = WRITE,
                .value = 0x8877665544332211 & all };

            memset(bytes, 0xee, PAGE_SIZE);
            expect("WRITE", make_one(&a), 0);
            expect("there", !memcmp(&bytes[o], &a.value, w), true);
            expect("not more", bytes[o - 1] == 0xee &&
                   (o + w == 4096 || bytes[o + w] == 0xee), true);
            a.op = READ;
            a.value = a.in_use = 0;
            expect("READ", make_one(&a), 0);
            expect("value", a.old, 0x8877665544332211 & all);
            a.op = CMPXCHG;
            a.value = 0x99;
            a.in_use = 0;
            expect("CMPXCHG", make_one(&a), 0);
            expect("was there", a.old, 0x8877665544332211 & all);
            expect("is there", bytes[o], 0x99);
        }
    expect("references", frames[64 + NEAR].count_info, PGC_allocated | 1);
}

static void in_use(void)
{
    struct xen_dsm_access a = { .gfn = NEAR, .width = 8, .op = READ };
    struct page_info *pg = &frames[64 + NEAR];

    begin();
    pg->count_info++;
    expect("READ", make_one(&a), 0);
    expect("a reference", a.in_use, 1);
    pg->count_info--;
    a = (struct xen_dsm_access){ .gfn = NEAR, .width = 8, .op = READ };
    pg->u.inuse.type_info = 1;
    expect("READ", make_one(&a), 0);
    expect("a type", a.in_use, 1);
    pg->u.inuse.type_info = 0;
    a = (struct xen_dsm_access){ .gfn = NEAR, .width = 8, .op = READ };
    pg->special = true;
    expect("READ", make_one(&a), 0);
    expect("a grant table", a.in_use, 1);
}

static void not_made(void)
{
    static const struct { struct xen_dsm_access a; int rc; } bad[] = {
        { { .gfn = NEAR, .width = 8 }, -EINVAL },
        { { .gfn = NEAR, .width = 8, .op = 4 }, -EINVAL },
        { { .gfn = NEAR, .width = 0, .op = READ }, -EINVAL },
        { { .gfn = NEAR, .width = 3, .op = READ }, -EINVAL },
        { { .gfn = NEAR, .width = 16, .op = READ }, -EINVAL },
        { { .gfn = NEAR, .width = 8, .op = READ, .offset = 4 }, -EINVAL },
        { { .gfn = NEAR, .width = 8, .op = READ, .offset = 1 }, -EINVAL },
        { { .gfn = NEAR, .width = 4, .op = CMPXCHG, .offset = 5 }, -EINVAL },
        { { .gfn = NEAR, .width = 2, .op = READ, .offset = 4095 }, -EINVAL },
        { { .gfn = NEAR, .width = 1, .op = READ, .offset = 4096 }, -EINVAL },
        { { .gfn = NEAR, .width = 8, .op = READ, .in_use = 1 }, -EINVAL },
        { { .gfn = NEAR, .width = 8, .op = READ, .old = 1 }, -EINVAL },
        { { .gfn = NEAR, .width = 8, .op = READ, .value = 1 }, -EINVAL },
        { { .gfn = NEAR, .width = 8, .op = WRITE, .old = 1 }, -EINVAL },
        { { .gfn = NEAR, .width = 2, .op = WRITE, .value = 1 << 16 }, -EINVAL },
        { { .gfn = NEAR, .width = 4, .op = CMPXCHG, .old = 1L << 32 }, -EINVAL },
        { { .gfn = NEAR, .width = 1, .op = CMPXCHG, .value = 256 }, -EINVAL },
        { { .gfn = 48, .width = 8, .op = READ }, -ERANGE },
        { { .gfn = U, .width = 8, .op = READ }, -EXDEV },
        { { .gfn = I_PAGE, .width = 8, .op = READ }, -EXDEV },
        { { .gfn = NEAR + 1, .width = 8, .op = READ }, -ENODATA },
        { { .gfn = NEAR + 2, .width = 8, .op = READ }, -ENODATA },
        { { .gfn = NEAR + 3, .width = 8, .op = READ }, -EPERM },
        { { .gfn = NEAR + 4, .width = 8, .op = READ }, -EPERM },
        { { .gfn = NEAR + 5, .width = 8, .op = READ }, -ENOENT },
        { { .gfn = NEAR + 6, .width = 8, .op = READ }, -EPERM },
        { { .gfn = NEAR + 7, .width = 8, .op = READ }, -EBUSY },
    };
    struct xen_dsm_access a;
    unsigned long references;
    unsigned int i;

    begin();
    references = frames[SHARED_MFN].count_info;
    expect("INVAL", one(XEN_DSM_INVAL, NEAR + 1), 0);
    expect("DOWNGRADE", one(XEN_DSM_DOWNGRADE, NEAR + 2), 0);
    dom.p2m.e[NEAR + 3].mfn = SHARED_MFN;
    frames[64 + NEAR + 4].owner = &dom0;
    dom.p2m.e[NEAR + 5].t = p2m_mmio_dm;
    dom.p2m.e[NEAR + 6].mfn = NR_MFNS;
    frames[64 + NEAR + 7].count_info = 0;
    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        a = bad[i].a;
        if ( make_one(&a) != bad[i].rc )
            die("row %u", i);
    }
    expect("nothing", DSM->stats.accesses_done, 0);
    expect("no reference", frames[SHARED_MFN].count_info, references);
    DSM->dead = true;
    a = (struct xen_dsm_access){ .gfn = NEAR, .width = 8, .op = READ };
    expect("dies", make_one(&a), -ESRCH);
}

/* Whose page has come: that it runs is known where it goes on. */
static void page_came(void)
{
    begin();
    fake_now = 100000;
    dsm_populate(&dom, _gfn(I_PAGE));
    expect("paused", current->paused, 1);
    expect("INSTALL", one(XEN_DSM_INSTALL_M, I_PAGE), 0);
    expect("it has not run yet", DSM->stats.wakes, 0);
    fake_now += 70;
    expect("enters the guest", dsm_resume(current), true);
    expect("wakes", DSM->stats.wakes, 1);
    expect("ns", DSM->stats.wake_ns, 70);
    fake_now += 70;
    expect("enters the guest", dsm_resume(current), true);
    expect("once", DSM->stats.wakes, 1);
    expect("no fault", DSM->stats.traps, 0);
}

static const struct test_case cases[] = {
    { "a page has come", page_came },
    { "loads", loads },
    { "stores", stores },
    { "exchanges", exchanges },
    { "parts", parts },
    { "walks", walks },
    { "two places", two_places },
    { "a page is missing", page_missing },
    { "needed", needed },
    { "unfit", unfit },
    { "becomes U", becomes_u },
    { "becomes U late", becomes_u_late },
    { "a fault is over", fault_is_over },
    { "leaves U", leaves_u },
    { "leaves U when exchanged", leaves_u_locked },
    { "leaves U when exchanged, and comes", leaves_u_and_comes },
    { "leaves U when stored", leaves_u_stored },
    { "leaves U before it is exchanged", leaves_u_exchange },
    { "leaves U between parts", leaves_u_between_parts },
    { "leaves U, the first of two", leaves_u_first },
    { "leaves U, the second of two", leaves_u_second },
    { "tries again", tries_again },
    { "two pages", crossing },
    { "two pages, and one has to wait", crossing_waits },
    { "a fault", faulting },
    { "an INIT", cancelled },
    { "a SIPI to who runs", not_heard },
    { "changed tables", changed },
    { "again", again },
    { "refused", refused },
    { "too many", endless },
    { "a full list", full_list },
    { "answers", answers },
    { "a full ring", ring_full },
    { "PLACE", placing },
    { "states", states },
    { "shared_info", shared_info },
    { "made", made },
    { "in use", in_use },
    { "not made", not_made },
};

int main(int argc, char **argv)
{
    return main_of(cases, ARRAY_SIZE(cases), argc, argv);
}
