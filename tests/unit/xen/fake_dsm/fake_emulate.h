/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What arch/x86/hvm/dsm_uncached.c needs beyond fake_hcall.h: the emulator of
 * instructions, as far as it calls back.
 */
#ifndef FAKE_EMULATE_H
#define FAKE_EMULATE_H

#include "fake_hcall.h"

#define PFEC_user_mode (1u << 2)
#define PFEC_implicit  (1u << 16)
#define container_of(p, type, member) \
    ((type *)((char *)(p) - offsetof(type, member)))
#define IS_ERR(p) ((unsigned long)(p) >= -4095UL)
#define SCHEDULE_SOFTIRQ 1
void raise_softirq(unsigned int nr);

#define X86EMUL_OKAY           0
#define X86EMUL_UNHANDLEABLE   1
#define X86EMUL_EXCEPTION      2
#define X86EMUL_RETRY          3
#define X86EMUL_UNRECOGNIZED   5
#define X86EMUL_CMPXCHG_FAILED 7

enum x86_segment { x86_seg_cs = 1, x86_seg_ss, x86_seg_ds, x86_seg_fs,
                   x86_seg_gs, x86_seg_tr, x86_seg_sys, x86_seg_none };
#define is_x86_system_segment(s) ((s) == x86_seg_tr || (s) == x86_seg_sys)
enum hvm_access_type { hvm_access_read, hvm_access_write };
struct segment_register { uint64_t base; unsigned int dpl; };
struct x86_emulate_state;
struct x86_event { int vector; };
struct x86_emulate_ctxt {
    struct cpu_user_regs *regs;
    unsigned int opcode;
    struct x86_event event;
};
#define X86EMUL_OPC_EXT_MASK 0xffff0000U
#define X86EMUL_OPC(ext, byte) ((uint8_t)(byte) | (ext) << 16)
struct x86_emulate_ops {
    int (*read)(enum x86_segment seg, unsigned long offset, void *p_data,
                unsigned int bytes, struct x86_emulate_ctxt *ctxt);
    int (*write)(enum x86_segment seg, unsigned long offset, void *p_data,
                 unsigned int bytes, struct x86_emulate_ctxt *ctxt);
    int (*cmpxchg)(enum x86_segment seg, unsigned long offset, void *p_old,
                   void *p_new, unsigned int bytes, bool lock,
                   struct x86_emulate_ctxt *ctxt);
    void *rmw, *rep_ins, *rep_outs, *rep_movs, *rep_stos;
};
typedef bool hvm_emulate_validate_t(const struct x86_emulate_state *state,
                                    const struct x86_emulate_ctxt *ctxt);
bool x86_insn_is_mem_access(const struct x86_emulate_state *state,
                            const struct x86_emulate_ctxt *ctxt);
struct hvm_emulate_ctxt {
    struct x86_emulate_ctxt ctxt;
    hvm_emulate_validate_t *validate;
    uint8_t insn_buf[16];
    unsigned int insn_buf_bytes;
};
extern const struct x86_emulate_ops hvm_emulate_ops;
void hvm_emulate_init_once(struct hvm_emulate_ctxt *ctxt,
                           hvm_emulate_validate_t *validate,
                           struct cpu_user_regs *regs);
int hvm_emulate_one_with(struct hvm_emulate_ctxt *ctxt,
                         const struct x86_emulate_ops *ops);
void hvm_emulate_writeback(struct hvm_emulate_ctxt *ctxt);
#define XENLOG_G_WARNING ""
void hvm_dump_emulation_state(const char *level, const char *prefix,
                              struct hvm_emulate_ctxt *ctxt, int rc);
void hvm_inject_event(const struct x86_event *event);
struct segment_register *hvmemul_get_seg_reg(enum x86_segment seg,
                                             struct hvm_emulate_ctxt *ctxt);
bool hvm_virtual_to_linear_addr(enum x86_segment seg,
                                const struct segment_register *reg,
                                unsigned long offset, unsigned int bytes,
                                enum hvm_access_type type,
                                const struct segment_register *cs,
                                unsigned long *linear);

#endif
