# SPDX-License-Identifier: GPL-2.0
"""The demo's page, build/results/demo.html: what happened, in plots and tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.demo_parts import begun, what_had_to_hold, what_happened
from benchmarks.page import num, number
from benchmarks.plots import phases_plot, timeline_plot
from benchmarks.timeline import WINDOWS, Check, Evidence

WINDOW_TEXT = {
    "before": "before the attach",
    "attached": "right after the attach",
    "settled": "settled, before the detach",
    "detached": "after the detach",
}

LIMITS = (
    "The hardware is emulated: QEMU (TCG) plays a host with two NUMA nodes. The hypervisor, the kernels, the toolstack "
    "and the programs are real. An emulator's memory is flat, so a remote access costs no more than a local one here, "
    "and four emulated processors share the real ones: times say how long this run took, not how fast a machine is.",
    "What holds on any machine are the counts: threads, pages on each node, local and remote accesses. "
    "The accesses are counted by a QEMU plugin that sees the host-physical address behind each access of a user "
    "program, and samples them.",
)


def _window_rows(evidence: Evidence) -> list[Sequence[object]]:
    timeline = evidence.timeline
    rows: list[Sequence[object]] = []
    for window in WINDOWS:
        iterations = timeline.iterations_in(window)
        samples = timeline.samples_in(window)
        reading = timeline.readings.get(window)
        last = samples[-1] if samples else None
        rows.append(
            (
                WINDOW_TEXT[window],
                num(iterations[-1].threads if iterations else "–"),
                num(number(last.on("kib", 0) / 1024) if last else "–"),
                num(number(last.on("kib", evidence.vnode) / 1024) if last else "–"),
                num(number(reading.remote_pct) if reading else "–"),
                num(number(statistics.median(i.ms for i in iterations)) if iterations else "–"),
                num(len(iterations)),
            )
        )
    return rows


def demo_page(evidence: Evidence, checks: Sequence[Check], when: str, host: str) -> str:
    """The page as HTML. `when` and `host` say when and where it ran, in words."""
    page = begun("A NUMA node comes and goes", f"Xenuma demo · {when} · {host}", checks)
    page.text(
        "A Xen guest runs an unmodified OpenMP program on its node 0. The operator attaches a second NUMA node "
        "to the running guest, and later detaches it. The program is told nothing and does nothing: its OpenMP "
        "runtime notices the change at the next parallel region, takes up the new processors, and has its memory "
        "moved to them, and back."
    )
    page.note(*LIMITS)
    page.heading("Timeline")
    page.figure(
        timeline_plot(evidence.timeline),
        "Shaded: an operation under way, from the operator's command to its exit. Memory: pages of the program on each "
        "node, from /proc/PID/numa_maps. Threads: the processor each last ran on. Remote: share of the program's "
        "accesses to the other node's memory, counted in the marked spans, while fasttreeMP pauses.",
    )
    rows = _window_rows(evidence)
    page.table(
        [
            "window",
            num("threads"),
            num("MiB on node 0"),
            num(f"MiB on node {evidence.vnode}"),
            num("remote %"),
            num("iteration, ms (median)"),
            num("iterations"),
        ],
        rows,
    )
    operations = {f"vnode-{name}": phases for name, phases in evidence.phases.items() if phases}
    if operations:
        page.heading("Where the time of an operation goes")
        page.figure(phases_plot(operations, "phases"), "As the guest's driver measured it, phase by phase.")
    what_had_to_hold(page, checks)
    what_happened(page, evidence.timeline.marks)
    return page.html()
