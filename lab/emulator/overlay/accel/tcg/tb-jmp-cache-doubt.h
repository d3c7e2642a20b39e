/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where blocks are is doubted after a flush of the TLB, and not forgotten: an
 * entry of the jump cache counts again once its block's page is seen to be at
 * that address still.
 *
 * An entry's block may be one that is no more (CF_INVALID): tb_lookup() compares
 * its cflags. When the memory of blocks is used anew (tb_flush) all is cleared.
 *
 * Context: the thread of the CPU, whose counts are only its own.
 */
#ifndef ACCEL_TCG_TB_JMP_CACHE_DOUBT_H
#define ACCEL_TCG_TB_JMP_CACHE_DOUBT_H

#include "exec/exec-all.h"
#include "tb-jmp-cache.h"

/* The CPU's TLB was flushed, or a part of it. */
static inline void tb_jmp_cache_doubt(CPUState *cpu)
{
    if (likely(cpu->tb_jmp_cache)) {
        cpu->tb_jmp_cache->flushes++;
    }
}

/* The block of entry @hash is at its address, now. */
static inline void tb_jmp_cache_trust(CPUJumpCache *jc, uint32_t hash)
{
    jc->array[hash].flushes = jc->flushes;
}

/*
 * Is @tb, of the entry @hash for @pc, what is there?  When in doubt that is what
 * tb_htable_lookup() would ask, after a search; as that, it may raise the
 * exception of a fetch from @pc, and not return.
 */
static inline bool tb_jmp_cache_is_right(CPUState *cpu, TranslationBlock *tb,
                                         vaddr pc, uint32_t hash)
{
    CPUArchState *env = cpu_env(cpu);
    CPUJumpCache *jc = cpu->tb_jmp_cache;
    tb_page_addr_t phys_pc;

    if (likely(jc->array[hash].flushes == jc->flushes)) {
        return true;
    }
    phys_pc = get_page_addr_code(env, pc);
    if (phys_pc == -1 || phys_pc != tb_page_addr0(tb)) {
        return false;
    }
    if (tb_page_addr1(tb) != -1 &&
        get_page_addr_code(env, TARGET_PAGE_ALIGN(pc)) != tb_page_addr1(tb)) {
        return false;
    }
    tb_jmp_cache_trust(jc, hash);
    return true;
}

#endif /* ACCEL_TCG_TB_JMP_CACHE_DOUBT_H */
