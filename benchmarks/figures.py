# SPDX-License-Identifier: GPL-2.0
"""Published figures, for orientation: what others measured, on real machines, and where they said so.

None of these was measured here. They stand next to our own figures so that a reader can tell a ratio that is good from
one that is not; times from an emulator cannot be compared with them at all.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Figure:
    """A published figure: what it is about, its value in words, its source, and which of our metrics it goes with."""

    topic: str
    value: str
    source: str
    metric: str = ""
    floor: float | None = None  # the value to reach or to stay below, where there is one number


HYPERALLOC = "HyperAlloc, EuroSys 2025, data set (Xeon Gold 6252, VM 20 -> 2 GiB)"
VIRTFLEX = "Virtflex (thesis and abstract)"
GIANTVM = "ETRI on GiantVM (abstract)"

FIGURES = (
    Figure(
        "Take memory, 2 MiB against 4 KiB balloon (KVM)",
        "136 against 0.95 GiB/s: 143 x",
        HYPERALLOC,
        "balloon.take.ratio",
        143,
    ),
    Figure(
        "Give memory, 2 MiB against 4 KiB balloon (KVM)",
        "326 against 2.34 GiB/s: 139 x",
        HYPERALLOC,
        "balloon.give.ratio",
        139,
    ),
    Figure("Take memory, virtio-mem", "34.5 GiB/s", HYPERALLOC),
    Figure("Take memory, HyperAlloc", "345 GiB/s", HYPERALLOC),
    Figure("Take memory, superpage balloon in Xen against stock", "30 x", VIRTFLEX, "balloon.take.ratio", 30),
    Figure(
        "Take memory, 2 MiB against stock Xen's 4 KiB, by slope",
        "goal: at least 150 x",
        "this project's goal",
        "balloon.take.ratio",
        150,
    ),
    Figure(
        "Give memory, 2 MiB against stock Xen's 4 KiB, by slope",
        "goal: at least 150 x",
        "this project's goal",
        "balloon.give.ratio",
        150,
    ),
    Figure(
        "p2m writes for each 2 MiB that stock Xen takes",
        "512",
        "Xen 4.20 source: one a 4 KiB page",
        "balloon.take.p2m_writes_per_2mib",
        512,
    ),
    Figure(
        "Flushes for each 2 MiB that stock Xen takes",
        "512",
        "Xen 4.20 source: one a 4 KiB page",
        "balloon.take.flushes_per_2mib",
        512,
    ),
    Figure(
        "Two nodes more: end-to-end overhead seen by a program", "7.27 %", VIRTFLEX, "overhead.add.mean_pct", 7.27
    ),
    Figure(
        "Two nodes fewer: end-to-end overhead seen by a program",
        "19.39 %",
        VIRTFLEX,
        "overhead.remove.mean_pct",
        19.39,
    ),
    Figure(
        "Two nodes more: overhead seen by a program",
        "goal: at most 3 %",
        "this project's goal",
        "overhead.add.mean_pct",
        3,
    ),
    Figure(
        "Two nodes fewer: overhead seen by a program",
        "goal: at most 8 %",
        "this project's goal",
        "overhead.remove.mean_pct",
        8,
    ),
    Figure(
        "Check for a change at a parallel region",
        "goal: at most 1 % of an empty region",
        "this project's goal",
        "parallel_region.overhead_pct",
        1,
    ),
    Figure(
        "Stock Xen and Linux take 384 MiB from a guest",
        "30 s, and give it back in 12 s",
        "this project's lab, before any change (an emulator's times)",
    ),
    Figure(
        "Move pages between nodes, move_pages, 1 GB",
        "3.55 GB/s in 4 KiB pages, 10.9 GB/s in 2 MiB pages",
        "S. Garg, RFC v4 of batch copying in page migration, linux-mm, March 2026; AMD Zen 3",
    ),
    Figure(
        "A fault of a page of another host against the raw round trip, both sleeping",
        "goal: at most 2.5 x",
        "this project's goal: four wake-ups against two",
        "dsm.fault.ratio_to_rtt",
        2.5,
    ),
    Figure(
        "The same over Soft-RoCE",
        "goal: at most 2.5 x",
        "this project's goal: four wake-ups against two",
        "dsm.rdma.fault.ratio_to_rtt",
        2.5,
    ),
    Figure(
        "The same over TCP, both ends polling in both",
        "goal: at most 2 x",
        "this project's goal",
        "dsm.polling.fault.ratio_to_rtt",
        2,
    ),
    Figure(
        "A page of another host against swap on a disk in its memory, reads by chance",
        "1 x: as quick",
        "what a user would do without DSM",
        "dsm.vs_swap.ratio",
        1,
    ),
    Figure(
        "Messages for a read fault, served by the page's home",
        "goal: 2",
        "this project's goal: a question and an answer",
        "dsm.messages_per_read_fault",
        2,
    ),
    Figure(
        "Random operations on a guest, after each of which all is looked at: what did not hold",
        "goal: nothing, in three seeds of 300",
        "this project's goal",
        "soak.violations",
        0,
    ),
    Figure("A fault served from another machine by userfaultfd and RAMCloud", "24.9 us", "published, real machines"),
    Figure("RDMA, 4 KiB one way", "2.25 us", "published, real machines"),
    Figure(
        "Memory benchmark (map, populate, memcpy), all optimisations against none",
        "4.74 x",
        GIANTVM,
        "dsm.membench.speedup",
        4.74,
    ),
)


def floor(metric: str) -> list[Figure]:
    """The published figures that go with one of our metrics."""
    return [figure for figure in FIGURES if figure.metric == metric]
