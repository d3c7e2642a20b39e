/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bit for each frame of a range, in parts that are allocated when a bit of
 * theirs is set for the first time, and stay: what a domain is told to have
 * costs nothing before it is used.  For mm/dsm.c only.
 *
 * Locking: a bit is read without a lock.  Who makes room, sets or clears one
 * has the caller's lock; room is there, and clear, before it can be found.
 */
#ifndef __ASM_X86_DSM_BITS_H__
#define __ASM_X86_DSM_BITS_H__

#include <xen/bitops.h>
#include <xen/mm.h>
#include <xen/vmap.h>
#include <xen/xmalloc.h>

/* Bits of a part, which is a page. */
#define DSM_BITS_PART (PAGE_SIZE * 8UL)

struct dsm_bits {
    unsigned long **parts;      /* NULL: all of them are clear */
    unsigned long nr_parts;
};

static inline int dsm_bits_init(struct dsm_bits *bits, unsigned long nr)
{
    unsigned long nr_parts = (nr + DSM_BITS_PART - 1) / DSM_BITS_PART;

    bits->parts = vzalloc(nr_parts * sizeof(*bits->parts));
    if ( !bits->parts )
        return -ENOMEM;
    bits->nr_parts = nr_parts;

    return 0;
}

static inline void dsm_bits_free(struct dsm_bits *bits)
{
    unsigned long i;

    for ( i = 0; i < bits->nr_parts; i++ )
        xfree(bits->parts[i]);
    vfree(bits->parts);
}

/* Room for a bit.  It may allocate: with no lock that interrupts take. */
static inline int dsm_bits_make_room(struct dsm_bits *bits, unsigned long nr)
{
    unsigned long **part = &bits->parts[nr / DSM_BITS_PART], *made;

    if ( *part )
        return 0;

    made = xzalloc_array(unsigned long, PAGE_SIZE / sizeof(**part));
    if ( !made )
        return -ENOMEM;

    smp_wmb();
    ACCESS_ONCE(*part) = made;

    return 0;
}

static inline bool dsm_bits_test(const struct dsm_bits *bits, unsigned long nr)
{
    const unsigned long *part = ACCESS_ONCE(bits->parts[nr / DSM_BITS_PART]);

    return part && test_bit(nr % DSM_BITS_PART, part);
}

/* There is room for it. */
static inline void dsm_bits_set(struct dsm_bits *bits, unsigned long nr)
{
    unsigned long *part = bits->parts[nr / DSM_BITS_PART];

    if ( part )
        set_bit(nr % DSM_BITS_PART, part);
    else
        ASSERT_UNREACHABLE();
}

static inline void dsm_bits_clear(struct dsm_bits *bits, unsigned long nr)
{
    unsigned long *part = bits->parts[nr / DSM_BITS_PART];

    if ( part )
        clear_bit(nr % DSM_BITS_PART, part);
}

/* The first one in [from, to) that is set, or to. */
static inline unsigned long dsm_bits_next(const struct dsm_bits *bits,
                                          unsigned long to, unsigned long from)
{
    while ( from < to )
    {
        unsigned long base = from - from % DSM_BITS_PART;
        unsigned long nr = min(to - base, DSM_BITS_PART);
        const unsigned long *part =
            ACCESS_ONCE(bits->parts[from / DSM_BITS_PART]);
        unsigned long found = part ? find_next_bit(part, nr, from - base) : nr;

        if ( found < nr )
            return base + found;
        from = base + nr;
    }

    return to;
}

#endif /* __ASM_X86_DSM_BITS_H__ */
