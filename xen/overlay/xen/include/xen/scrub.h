/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scrubbing of one free buddy by several CPUs, see common/scrub.c.
 */
#ifndef XEN_SCRUB_H
#define XEN_SCRUB_H

#include <xen/numa.h>
#include <xen/types.h>

struct page_info;

/*
 * Scrub a buddy, with the help of other CPUs of the node where that is allowed
 * (scrub-cpus).  Ends early when its scrub_state is BUDDY_SCRUB_ABORT or when
 * this CPU has other work to do.
 *
 * node:    of the buddy, whose scrubber the caller is: the only one.
 * pg:      the buddy's head, in state BUDDY_SCRUBBING, which the caller has
 *          set and alone will take back.
 * order:   log2 of its frames.
 * cnt:     what this CPU has done since it began, in the caller's measure: a
 *          frame that is clean counts 1, one that it scrubs 100.
 * dirty:   out: how many frames are scrubbed now that were not, by whomever.
 * preempt: out: this CPU has other work to do.
 *
 * Returns the first frame that may still be dirty, 1 << order if none is.  No
 * other CPU is in the buddy any more then.
 *
 * Context: idle loop, interrupts enabled, no lock held.  Takes a lock below
 * all others, for a few instructions at a time.
 */
unsigned int scrub_buddy(nodeid_t node, struct page_info *pg,
                         unsigned int order, unsigned int *cnt,
                         unsigned int *dirty, bool *preempt);

/*
 * For a CPU whose node has a scrubber already: help it, until its buddy is
 * done or this CPU has other work to do.  Context: as above.
 *
 * Returns true if it did help: then it is worth looking once more.
 */
bool scrub_help(void);

/* page_alloc.c: clear a frame that is nobody's. */
void scrub_one_page(const struct page_info *pg);

#endif /* XEN_SCRUB_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
