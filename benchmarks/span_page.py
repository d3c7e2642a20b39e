# SPDX-License-Identifier: GPL-2.0
"""The page of the demo of one Linux on two hosts, build/results/demo-span.html: what happened, in plots and tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.demo_parts import begun, what_had_to_hold, what_happened
from benchmarks.page import Cell, Markup, Page, code, num, number
from benchmarks.plots import phases_plot, spanning_plot
from benchmarks.span_timeline import AWAY, HOME, WINDOWS, Evidence, Look
from benchmarks.timeline import Check

LIMITS = (
    "The hardware is emulated: QEMU (TCG) plays both hosts, a process beside them plays the network, and all of them share the "
    "processors of one machine. Xen, the kernels, the toolstack and dsmd are real. Times say how long this run took, not how "
    "fast a machine is; what was counted holds anywhere.",
    "Without class U (docs/decisions/0126) what needs a device stays at home: CPUs of the other host are isolated (isolcpus=), "
    "and run the threads that are bound to them.",
)


def slowness(seen: Evidence) -> str:
    """What has to be known of each time."""
    return (
        f"The guest's clock is {seen.slow} times slower than the hosts': a page takes milliseconds here and tens of "
        "microseconds on hardware, but a tick comes every 10 ms of a guest's clock on both. Times are those of the hosts' "
        f"clock unless they say that they are the guest's; one second of the guest's is {seen.slow} of the hosts'."
    )


def _pair(first: float | None, second: float | None) -> str:
    return f"{number(first)} / {number(second)}"


def _row(seen: Evidence, window: str) -> Sequence[object]:
    programs = seen.programs(window)
    last = programs[-1] if programs else None
    times = seen.iteration_ms(window)
    looks = seen.windows[window]
    hosts = looks[-1].hosts if looks else (None, None)
    here, elsewhere = ([getattr(host, what) if host else None for host in hosts] for what in ("here", "elsewhere"))
    return (
        Cell(WINDOWS[window], "name"),
        num(_pair(*last.threads) if last else "–"),
        num(_pair(*(round(kib / 1024, 2) for kib in last.kib)) if last else "–"),
        num(_pair(*here)),
        num(_pair(*elsewhere)),
        *(num(_pair(*(seen.rate(window, host, what) for host in (HOME, AWAY)))) for what in ("faults", "messages")),
        num(number(statistics.median(times) if times else None)),
    )


def _plot(page: Page, seen: Evidence) -> None:
    looks = seen.looks()
    programs = [(look.t, look.program) for look in looks if look.program]

    def here(look: Look, host: int) -> float:
        counts = look.hosts[host]
        return float(counts.here) if counts else 0.0

    page.figure(
        spanning_plot(
            [(t, each.threads[HOME], each.threads[AWAY]) for t, each in programs],
            [(t, each.kib[HOME] / 1024, each.kib[AWAY] / 1024) for t, each in programs],
            {
                what: {name: seen.counted(host, what) for host, name in enumerate(seen.hosts)}
                for what in ("faults", "messages")
            },
            [(look.t, here(look, HOME), here(look, AWAY)) for look in looks],
            seen.operations,
            hosts=seen.hosts,
            clock=seen.clock(),
        ),
        "Shaded: an operation under way, from the operator's command to its exit. Seconds are of the "
        f"{seen.clock()}. Threads: where each of the program's ran last. Memory: pages of the program on the node of either "
        "host. Pages: those of the other host that are at this one. Faults: pages that dsmd of that host fetched for a CPU "
        "there. Messages: both ways, as that host counts them.",
    )


def _bouncing(page: Page, seen: Evidence) -> None:
    page.heading("Which pages bounce")
    page.text(
        "As dsmctl top of either host counts them while the program runs on both, and nobody asks the guest. A name is that of "
        "the kernel's image; ? is what the number of a page does not say: per-CPU areas, page structures, memory of programs. "
        f"Events a second are by the {seen.clock()}."
    )
    for host, pages in seen.pages.items():
        page.heading(f"At {host}", 3)
        page.table(
            [*map(num, ("page", "read misses", "write misses", "taken from here", "events/s")), "of the kernel"],
            [
                (
                    num(code(f"0x{each.gfn:x}")),
                    *map(num, (each.reads, each.writes, each.taken, number(each.per_second))),
                    each.symbol,
                )
                for each in pages
            ],
        )


def _nodes(page: Page, seen: Evidence) -> None:
    page.heading("What the guest sees: numactl -H")
    page.table(
        ["when", num("node"), "CPUs", num("MiB"), num("free MiB")],
        [
            (
                WINDOWS[window],
                num(node.number),
                " ".join(map(str, node.cpus)) or "none",
                num(node.size_mib),
                num(node.free_mib),
            )
            for window, nodes in seen.numactl.items()
            for node in nodes.values()
        ],
    )


def demo_page(seen: Evidence, checks: Sequence[Check], when: str, host: str) -> str:
    """The page as HTML. `when` and `host` say when and where it ran, in words."""
    subtitle = f"Xenuma demo · {when} · {host} · the guest's clock is {seen.slow} times slower"
    page = begun("One Linux on two machines", subtitle, checks)
    page.text(
        "A Xen guest runs an unmodified OpenMP program on one host. The operator attaches its node 1: xl brings memory and "
        "CPUs of another machine into the running Linux, and the program's OpenMP runtime takes them up at its next parallel "
        "region. Then the operator detaches the node: CPUs and pages go home, and the program goes on there."
    )
    page.note(slowness(seen), *LIMITS)
    if seen.looks():
        page.heading("Timeline")
        _plot(page, seen)
    page.text(
        f"Pairs are of {' / '.join(seen.hosts)}, at the end of each stretch: threads of the program, its memory, pages of the "
        "other host that are here, pages of this host that are elsewhere. "
        f"Faults and messages a second are by the {seen.clock()}."
    )
    page.table(
        [
            "stretch",
            *map(num, ("threads", "MiB", "pages here", "elsewhere", "faults/s", "messages/s")),
            num(Markup(f"iteration, guest's ms<br>({seen.slow} times slower)")),
        ],
        [_row(seen, window) for window in WINDOWS],
    )
    if any(seen.numactl.values()):
        _nodes(page, seen)
    if any(seen.pages.values()):
        _bouncing(page, seen)
    operations = {f"vnode-{name}": phases for name, phases in seen.phases.items() if phases}
    if operations:
        page.heading("Where the guest's time of an operation goes")
        clock = f"guest's clock, {seen.slow} times slower than the hosts'"
        page.figure(
            phases_plot(operations, "phases", clock=clock), f"As the guest's driver measured it, by the {clock}."
        )
    what_had_to_hold(page, checks)
    what_happened(page, seen.marks, f"second, {seen.clock()}")
    return page.html()
