# SPDX-License-Identifier: GPL-2.0
"""`make demo-dsm`: a guest gets a node whose memory is on another host, uses it, and loses it again.

Two hosts of the lab. memcheck, which compares each page that it touches with what it wrote there, runs on the node; then the
operator detaches it, and the program goes on at home. What is seen meanwhile is judged, and written to
build/results/demo-dsm.json and demo-dsm.html.

Usage: python3 -m benchmarks.dsm_demo [--use=RACK] [--transport=tcp|rdma]
Exit status: 0 DEMO PASS, 1 DEMO FAIL, 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import round_trips
from benchmarks.demo_parts import (
    FAILURES,
    begun,
    judged,
    looking,
    outcome,
    per_second,
    published,
    what_had_to_hold,
    what_happened,
)
from benchmarks.page import num, number
from benchmarks.plots import remote_memory_plot
from benchmarks.results import RESULTS, Metric
from benchmarks.story import Story
from benchmarks.timeline import Check, Mark
from lab import spanning
from lab.command import checked
from lab.description import RackDescription
from lab.elastic_guest import PROGRAMS
from lab.errors import CommandFailedError
from lab.patience import scaled, wait_for
from lab.rack import Rack

PROGRAM_MIB = 8
SHAPE = spanning.Shape()
# Stretches of the run, and how often it is looked at in each; 0: for as long as what happens then takes.
LOOKS = {"before": 3, "attach": 0, "filling": 0, "attached": 12, "detach": 0, "detached": 3}
PAUSE_S = 0.5  # between two looks at something that is under way: a look is work for the machine, too

LIMITS = (
    "The hardware is emulated: QEMU (TCG) plays both hosts, a process beside them plays the network, and all of them share the "
    "processors of one machine. Xen, the kernels, the toolstack and dsmd are real. Times say how long this run took, not how "
    "fast a machine is; what was counted holds anywhere.",
    "dsmd is begun by hand here, on both hosts and before the guest runs, as dsmd(8) describes it; with `host=` in xl.cfg the "
    "toolstack has dsmd-host do that.",
)


@dataclasses.dataclass(frozen=True)
class Look:
    """What was seen at one time: seconds, the program's KiB on each node, and dsmd's counters at home since it began."""

    t: float
    home_kib: int
    node_kib: int
    faults: int
    messages: int
    pages_here: int


@dataclasses.dataclass
class Evidence:
    """All that a run has seen, as far as it came."""

    transport: str = "tcp"
    windows: dict[str, list[Look]] = dataclasses.field(default_factory=lambda: {name: [] for name in LOOKS})
    operations: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    marks: list[Mark] = dataclasses.field(default_factory=list)
    node_mib: int = 0  # as the guest sees it after the attach
    state_after: str = ""  # of the vnode, after the detach
    memcheck: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    daemons: tuple[str, ...] = ()  # their states at the end
    fault_ns: Mapping[str, int] = dataclasses.field(default_factory=dict)  # dsmd's median and p99, reads

    def looks(self) -> list[Look]:
        """All of them, in order."""
        return [look for looks in self.windows.values() for look in looks]

    def rate(self, window: str, what: str) -> float | None:
        """Faults or messages a second in a window; None with fewer than two looks."""
        return per_second([(look.t, getattr(look, what)) for look in self.windows[window]])


def verdict(seen: Evidence) -> list[Check]:
    """What had to hold."""
    attached, detached = seen.windows["attached"], seen.windows["detached"]
    on_node = max((look.node_kib for look in attached), default=0)
    left = detached[-1].node_kib if detached else -1
    served = attached[-1].faults - attached[0].faults if attached else 0
    bad, checks = seen.memcheck.get("bad_pages"), seen.memcheck.get("checks", 0)
    wanted = PROGRAM_MIB * 1024 * 9 // 10
    return [
        Check(
            "the guest has the other host's memory as a node",
            seen.node_mib >= SHAPE.node_mib * 9 // 10,
            f"{seen.node_mib} MiB",
        ),
        Check("the program's memory is on it", on_node >= wanted, f"{on_node} KiB, at least {wanted}"),
        Check("its pages came over the network", served > 0, f"{served} faults served while it ran"),
        Check("after the detach nothing of it is there", left == 0, f"{left} KiB"),
        Check("the node is gone", seen.state_after == "offline", seen.state_after or "not seen"),
        Check("no byte was wrong", bad == 0 and checks > 0, f"{bad} wrong of {checks} pages checked"),
        Check(
            "both dsmd run as they should",
            seen.daemons == ("running", "running"),
            ", ".join(seen.daemons) or "not seen",
        ),
    ]


def metrics(seen: Evidence) -> list[Metric]:
    """What was measured; what was not is not there."""
    found = [
        Metric(f"demo_dsm.{name}.seconds", end - begin, "s", "lower") for name, (begin, end) in seen.operations.items()
    ]
    for what in ("faults", "messages"):
        rate = seen.rate("attached", what)
        if rate is not None:
            found.append(Metric(f"demo_dsm.{what}_per_second", rate, "1/s", note="while the program ran on the node"))
    found += [Metric(f"demo_dsm.read_fault.{key}", ns / 1000, "us", "lower") for key, ns in seen.fault_ns.items()]
    return found


class DsmDemo:
    """One run; `play()` does it all and fills `seen` as far as it comes."""

    def __init__(self, there: spanning.Spanning, transport: str, story: Story) -> None:
        self.there, self.story = there, story
        self.seen = Evidence(transport, marks=story.marks)
        self.pid = 0

    def look(self) -> Look:
        """Now."""
        status = self.there.status()
        resident = self.there.guest.resident(self.pid) if self.pid else {}
        peers = status["peers"].values()
        return Look(
            self.story.now(),
            resident.get(0, 0),
            resident.get(1, 0),
            int(status["read_faults"]) + int(status["write_faults"]),
            sum(int(peer["sent"]) + int(peer["received"]) for peer in peers),
            int(status["engine"]["frames_used"]),
        )

    def watch(self, window: str) -> None:
        """Look as often as the window wants; each look takes a while, so that nothing else has to pass the time."""
        for _ in range(LOOKS[window]):
            self.seen.windows[window].append(self.look())

    def during[T](self, window: str, work: Callable[[], T]) -> T:
        """What `work` returns, or raises; looks while it is under way, one at the least."""
        return looking(work, lambda: self.seen.windows[window].append(self.look()), PAUSE_S)

    def operate(self, operation: str) -> None:
        """`xl vnode-OPERATION`. Raises CommandFailedError with both dsmd's words."""
        guest = self.there.guest
        begin = self.story.tell(guest.command(f"vnode-{operation}", "1"), "operator")
        do = guest.attach if operation == "attach" else guest.detach
        done = self.during(operation, lambda: do(1, timeout=scaled(600)))
        self.seen.operations[operation] = (begin, self.story.now())
        self.story.output(done.text)
        if done.status:
            raise CommandFailedError(f"vnode-{operation}: exit status {done.status}: {done.text}\n{self.there.said()}")

    def run_program(self) -> None:
        """memcheck, as a job of the guest that prefers the node."""
        run = self.there.guest.guest
        command = f"numactl --preferred=1 {PROGRAMS}/memcheck {PROGRAM_MIB} 1"
        self.pid = int(checked(run, f"({command} >/tmp/memcheck.out 2>&1 & echo $!) </dev/null"))
        self.story.tell(command, "guest")
        self.during(
            "filling",
            lambda: wait_for(
                "memcheck has written all pages", 300, lambda: "ready" in run("cat /tmp/memcheck.out").out
            ),
        )

    def end_program(self) -> None:
        """Its verdict."""
        run, pid = self.there.guest.guest, self.pid
        checked(run, f"kill {pid}")
        wait_for("memcheck ends", 120, lambda: run(f"kill -0 {pid}").status != 0)
        said = checked(run, "cat /tmp/memcheck.out").splitlines()
        self.seen.memcheck = json.loads(said[-1])
        self.story.tell(f"memcheck: {said[-1]}", "guest")

    def play(self) -> None:
        """The whole story. Raises LabError, Malformed, TimeoutError."""
        guest = self.there.guest
        self.story.tell(f"xl vnode-list {guest.name}", "operator")
        self.story.output(checked(guest.dom0, f"xl vnode-list {guest.name}"))
        self.watch("before")
        self.operate("attach")
        self.seen.node_mib = guest.nodes()[1].size_mib
        self.story.tell(f"node 1 has {self.seen.node_mib} MiB", "guest")
        self.run_program()
        self.watch("attached")
        read = self.there.status()["read_fault"]
        self.seen.fault_ns = {"p50": int(read["median_ns"]), "p99": int(read["p99_ns"])}
        self.operate("detach")
        self.seen.state_after = guest.vnode(1).state
        self.watch("detached")
        self.end_program()
        self.seen.daemons = tuple(str(self.there.status(number)["state"]) for number in (0, 1))


def _row(seen: Evidence, window: str) -> Sequence[object]:
    looks = seen.windows[window]
    last = looks[-1] if looks else None
    rates = [seen.rate(window, what) for what in ("faults", "messages")]
    return (
        window,
        num(number(last.home_kib / 1024) if last else "–"),
        num(number(last.node_kib / 1024) if last else "–"),
        num(statistics.median(look.pages_here for look in looks) if looks else "–"),
        *(num("–" if rate is None else number(rate)) for rate in rates),
    )


def demo_page(seen: Evidence, checks: Sequence[Check], when: str, host: str) -> str:
    """The page as HTML."""
    page = begun("Memory from another machine", f"Xenuma demo · {when} · {host} · {seen.transport}", checks)
    page.text(
        "A Xen guest on one host gets a NUMA node whose memory is on another host. Linux in the guest sees an ordinary node; "
        "a page that a program touches there comes over the network, and goes back when its place is wanted. Then the "
        "operator detaches the node, and everything comes home."
    )
    page.note(*LIMITS)
    if seen.looks():
        page.heading("Timeline")
        page.figure(
            remote_memory_plot(
                [(look.t, look.home_kib / 1024, look.node_kib / 1024) for look in seen.looks()],
                [[(look.t, look.faults, look.messages) for look in looks] for looks in seen.windows.values()],
                seen.operations,
            ),
            "Shaded: an operation under way. Memory: pages of the program on each node of the guest. Faults: pages that dsmd "
            "at home fetched for a vCPU. Messages: both ways between the hosts.",
        )
    amounts = ("MiB on node 0", "MiB on node 1", "pages of the other host here", "faults/s", "messages/s")
    page.table(["window", *map(num, amounts)], [_row(seen, window) for window in LOOKS])
    what_had_to_hold(page, checks)
    what_happened(page, seen.marks)
    return page.html()


def report(seen: Evidence, failure: str | None, story: Story, results: Path = RESULTS) -> str | None:
    """Write demo-dsm.json and .html, show the checks; the reason of a failure, or None."""
    checks = judged(verdict(seen), failure)
    page = partial(demo_page, seen, checks)
    return published("demo-dsm", checks, metrics(seen), page, story=story, results=results)


def run(use: str | None, transport: str, console: Console) -> str | None:
    """Boot, play, judge. The reason of a failure, or None."""
    story = Story(console, time.monotonic)
    story.tell("two hosts boot")
    booted = Rack.attach(use) if use else Rack.boot(RackDescription.load("two-hosts"), meter=False)
    with booted as rack:
        if transport == "rdma":
            spanning.with_rdma(rack)
        with spanning.spanning(rack, SHAPE, transport) as there:
            story.tell("a guest runs on the first host, dsmd on both")
            demo = DsmDemo(there, transport, story)
            failure = None
            try:
                demo.play()
            except FAILURES as error:
                failure = str(error)
                story.output(there.guest.console_tail(30))
            return report(demo.seen, failure, story)


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(prog="demo-dsm", description="A node of another host comes and goes.")
    parser.add_argument("--use", metavar="RACK", help="a rack that runs already, with two hosts")
    parser.add_argument("--transport", choices=round_trips.TRANSPORTS, default="tcp", help="(%(default)s)")
    options = parser.parse_args(arguments)
    console = Console(soft_wrap=False)
    return outcome(console, lambda: run(options.use, options.transport, console))


if __name__ == "__main__":
    sys.exit(main())
