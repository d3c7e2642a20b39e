/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Performance counters of p2m updates, of heap operations and of the removal
 * of whole superpages.  They count every path, so that two ways to do the same
 * thing can be compared by what they cost.
 *
 * This file is legitimately included multiple times, by xen/perfc_defn.h.
 */

/* Every store to an NPT or EPT entry, also to those of a table being built. */
PERFCOUNTER(p2m_entry_writes,       "p2m: entries written")
/* Requests, whether or not a CPU had to be interrupted for them. */
PERFCOUNTER(p2m_flushes,            "p2m: TLB flushes")

PERFCOUNTER(domheap_frees,          "domheap: calls to free")
PERFCOUNTER(domheap_frames_freed,   "domheap: frames freed")
PERFCOUNTER(heap_frames_dirtied,    "heap: frames freed to be scrubbed")
PERFCOUNTER(heap_frames_scrubbed,   "heap: frames scrubbed")
PERFCOUNTER(heap_frames_helped,     "heap: frames scrubbed by another CPU")
/* Only boot code and the Xen heap ask for that, and clear what they share. */
PERFCOUNTER(heap_frames_unscrubbed, "heap: frames allocated unscrubbed")

PERFCOUNTER(range_removed,          "guest_remove_range: extents removed")
PERFCOUNTER(range_batches,
            "guest_remove_range: several at once, with one flush")
PERFCOUNTER(range_busy_after,
            "guest_remove_range: removed, some frames still referenced")
/* Nothing was changed, and decrease_reservation() went page by page. */
PERFCOUNTER(range_refused_off,      "guest_remove_range: refused, switched off")
PERFCOUNTER(range_refused_extent,
            "guest_remove_range: refused, order or alignment")
PERFCOUNTER(range_refused_domain,
            "guest_remove_range: refused, state of the domain")
PERFCOUNTER(range_refused_type,
            "guest_remove_range: refused, not plain RAM")
PERFCOUNTER(range_refused_split,
            "guest_remove_range: refused, not one superpage")
PERFCOUNTER(range_refused_frame,    "guest_remove_range: refused, frame in use")
PERFCOUNTER(range_refused_p2m,
            "guest_remove_range: refused, p2m update failed")
