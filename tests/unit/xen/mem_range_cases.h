/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the cases of one extent and of several have in common: the domain, and
 * how an extent is mapped before a call.
 */
#ifndef MEM_RANGE_CASES_H
#define MEM_RANGE_CASES_H

#include <xen/mem_range.h>
#include "fake.h"

extern bool *const fake_param;

#define EXTENT 512UL

static struct domain dom;

/* One entry of 4 KiB << order, whose frames have no other user than dom. */
static void map(unsigned long gfn, unsigned long mfn, unsigned int order)
{
    unsigned long i;

    for ( i = 0; i < (1UL << order); i++ )
    {
        fake.p2m[gfn + i] = (struct slot){ mfn + i, p2m_ram_rw, order };
        fake.frames[mfn + i] = (struct page_info){
            .count_info = PGC_allocated | 1, .owner = &dom };
        fake.m2p[mfn + i] = gfn + i + 1;
        fake.mapped[mfn + i] = true;
    }
    dom.tot_pages += 1U << order;
    fake.used += 1U << order;
}

/* Flushes of NPT have their counter, wherever they are done. */
static inline void check_flushes(void)
{
    if ( !fake.defer_flush && fake.perfc[PERFC_p2m_flushes] != fake.flushes )
        die("flushes %u, counted %u", fake.flushes,
            fake.perfc[PERFC_p2m_flushes]);
    fake.perfc[PERFC_p2m_flushes] = 0;
}

/* A process runs one case: the fake is as the loader left it, all zero. */
static void arrange_domain(void)
{
    dom = (struct domain){ .hvm = true, .hap = true, .dirty_cpumask = 5,
                           .p2m.domain = &dom };
    hap_p2m_init(&dom.p2m);
    fake.has_2mb = fake.has_1gb = true;
}

#endif
