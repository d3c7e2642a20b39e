# SPDX-License-Identifier: GPL-2.0
"""`make demo-dsm`: a guest gets a node whose memory is on another host, uses it, and loses it again, by xl alone.

Two hosts of the lab, with a dsmd-host each; `host=` in the guest's xl.cfg names the other one, and all its CPUs are at home.
memcheck, which compares each page that it touches with what it wrote there, runs on the node; then the operator detaches it,
and the program goes on at home. What is seen meanwhile is judged, and written to build/results/demo-dsm.json and
demo-dsm.html.

Usage: python3 -m benchmarks.dsm_demo [--use=RACK] [--transport=tcp|rdma]
Exit status: 0 DEMO PASS, 1 DEMO FAIL, 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
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
from benchmarks.page import code, num, number
from benchmarks.plots import remote_memory_plot
from benchmarks.results import RESULTS, Metric
from benchmarks.span_timeline import counts_of, fault_times
from benchmarks.story import Story
from benchmarks.timeline import Check, Mark
from lab.command import checked, run_in
from lab.description import RackDescription
from lab.elastic_guest import PROGRAMS
from lab.errors import CommandFailedError, LabError
from lab.far_guest import (
    GUEST,
    DsmSite,
    Shape,
    far_guest,
    kill_dsmd_host,
    left_nothing,
    made_ready,
    said,
    slices,
    state,
    status,
)
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled, wait_for
from lab.rack import Rack
from lab.span_guest import LIMITS as HOST_LIMITS

VNODE = 1
PROGRAM_MIB = 8
# Pages of the other host have a sixteenth of the node here, 8 MiB: not enough for the program and the node's page structures.
SHAPE = Shape(home_mib=384, node_mib=128)
# Stretches of the run, and how often it is looked at in each; 0: for as long as what happens then takes.
LOOKS = {"before": 3, "attach": 0, "filling": 0, "attached": 12, "detach": 0, "detached": 3}
PAUSE_S = 0.5  # between two looks at something that is under way: a look is work for the machine, too
HOME, OTHER = 0, 1

LIMITS = (
    "The hardware is emulated: QEMU (TCG) plays both hosts, a process beside them plays the network, and all of them share the "
    "processors of one machine. Xen, the kernels, the toolstack and dsmd are real. Times say how long this run took, not how "
    "fast a machine is; what was counted holds anywhere.",
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
    """All that a run has seen, as far as it came. `hosts`: their names, the home first."""

    transport: str = "tcp"
    hosts: tuple[str, str] = ("home", "other")
    windows: dict[str, list[Look]] = dataclasses.field(default_factory=lambda: {name: [] for name in LOOKS})
    operations: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    marks: list[Mark] = dataclasses.field(default_factory=list)
    shown: list[tuple[str, str]] = dataclasses.field(default_factory=list)  # what the operator typed, and was told
    node_mib: int = 0  # as the guest sees it after the attach
    attached: str = ""  # what xl vnode-attach says
    listed: dict[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)  # the vnode's host, by window
    state_after: str = ""  # of the vnode, after the detach
    slices_after: int | None = None  # of the guest, at the other host
    dsmd_after: bool | None = None  # is there one of the guest at the other host?
    memcheck: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    daemons: tuple[str, ...] = ()  # their states while the node is attached
    fault_ms: Mapping[str, float] = dataclasses.field(default_factory=dict)  # dsmd's median and p99, reads
    left_nothing: bool = False  # when the guest is gone, on both hosts

    def looks(self) -> list[Look]:
        """All of them, in order."""
        return [look for looks in self.windows.values() for look in looks]

    def rate(self, window: str, what: str) -> float | None:
        """Faults or messages a second in a window; None with fewer than two looks."""
        return per_second([(look.t, getattr(look, what)) for look in self.windows[window]])


def _told(seen: Evidence) -> list[Check]:
    """What xl has told the operator of the node and its host."""
    other, mib = seen.hosts[OTHER], SHAPE.node_mib
    there, after = seen.listed.get("attached", {}), seen.listed.get("detached", {})
    modified, shared, home, rate = (
        there.get(key) for key in ("pages_modified", "pages_shared", "pages_home", "faults_per_second")
    )
    says = next((line for line in seen.attached.splitlines() if line.startswith(f"vnode {VNODE}: ")), seen.attached)
    gone = (seen.slices_after, seen.dsmd_after, after.get("link")) == (0, False, "down")
    return [
        Check(
            f"xl vnode-attach: all of it is on host {other}",
            f" {mib} of {mib} MiB on host {other}," in says,
            says.strip() or "not seen",
        ),
        Check(
            f"xl vnode-list: vnode {VNODE} is on host {other}, and the link is up",
            (there.get("name"), there.get("link")) == (other, "up"),
            f"on host {there.get('name')}, link {there.get('link')}: {modified} pages modified, {shared} shared, {home} there; "
            f"{rate} faults/s"
            if there
            else "not seen",
        ),
        Check(
            f"after the detach {other} has nothing left",
            gone,
            f"{seen.slices_after} slices, {'a' if seen.dsmd_after else 'no'} dsmd of the guest, link {after.get('link')}"
            if after
            else "not seen",
        ),
    ]


def verdict(seen: Evidence) -> list[Check]:
    """What had to hold."""
    attached, detached = seen.windows["attached"], seen.windows["detached"]
    on_node = max((look.node_kib for look in attached), default=0)
    left = detached[-1].node_kib if detached else -1
    pages_left = detached[-1].pages_here if detached else -1
    served = attached[-1].faults - attached[0].faults if attached else 0
    bad, checks = seen.memcheck.get("bad_pages"), seen.memcheck.get("checks", 0)
    wanted = PROGRAM_MIB * 1024 * 9 // 10
    attach_says, link_is_up, other_is_empty = _told(seen)
    return [
        attach_says,
        Check(
            "the guest has the other host's memory as a node",
            seen.node_mib >= SHAPE.node_mib * 9 // 10,
            f"{seen.node_mib} MiB",
        ),
        link_is_up,
        Check("the program's memory is on it", on_node >= wanted, f"{on_node} KiB, at least {wanted}"),
        Check("its pages came over the network", served > 0, f"{served} faults served while it ran"),
        Check(
            "both dsmd run as they should",
            seen.daemons == ("running", "running"),
            ", ".join(seen.daemons) or "not seen",
        ),
        Check("after the detach nothing of it is there", left == 0, f"{left} KiB"),
        Check("the node is gone", seen.state_after == "offline", seen.state_after or "not seen"),
        other_is_empty,
        Check(
            f"after the detach {seen.hosts[HOME]} has no frame for pages of {seen.hosts[OTHER]}",
            pages_left == 0,
            f"{pages_left} in use",
        ),
        Check("no byte was wrong", bad == 0 and checks > 0, f"{bad} wrong of {checks} pages checked"),
        Check(
            "no host has anything left of the guest", seen.left_nothing, "nothing" if seen.left_nothing else "not seen"
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
    found += [Metric(f"demo_dsm.read_fault.{key}", ms * 1000, "us", "lower") for key, ms in seen.fault_ms.items()]
    return found


class DsmDemo:
    """One run; `run()` does it all and fills `seen` as far as it comes."""

    def __init__(self, site: DsmSite, transport: str, story: Story) -> None:
        self.site, self.story = site, story
        names = (site.home.description.name, site.other.description.name)
        self.seen = Evidence(transport, names, marks=story.marks)
        self.pid = 0

    # --- what is seen -------------------------------------------------------------------------------------------------

    def look(self, guest: Guest) -> Look:
        """Now. Raises LabError if the guest has failed, or nobody at home knows of it."""
        counts = counts_of(status(self.site.home))
        if not counts:
            raise LabError(f"no dsmd of {GUEST} answers at {self.seen.hosts[HOME]}: {state(self.site.home)}")
        resident = guest.resident(self.pid) if self.pid else {}
        return Look(
            self.story.now(), resident.get(0, 0), resident.get(1, 0), counts.faults, counts.messages, counts.here
        )

    def watch(self, window: str, guest: Guest) -> None:
        """Look as often as the window wants; each look takes a while, so that nothing else has to pass the time."""
        for _ in range(LOOKS[window]):
            self.seen.windows[window].append(self.look(guest))

    def during[T](self, window: str, guest: Guest, work: Callable[[], T]) -> T:
        """What `work` returns, or raises; looks while it is under way, one at the least."""
        return looking(work, lambda: self.seen.windows[window].append(self.look(guest)), PAUSE_S)

    def output(self, typed: str, text: str) -> None:
        """What the operator was told: on the terminal, and for the page."""
        self.story.output(text)
        self.seen.shown.append((typed, text))

    def show(self, command: str, host: Host | None = None) -> None:
        """A command of the operator's, typed at home or at another host, and shown. Raises CommandFailedError."""
        typed = f"at {host.description.name}: {command}" if host else command
        self.story.tell(typed, "operator")
        self.output(typed, checked(run_in(host or self.site.home), command))

    def list_node(self, window: str, guest: Guest) -> None:
        """`xl vnode-list`, shown and noted."""
        self.show(f"xl vnode-list {GUEST}")
        self.seen.listed[window] = guest.listed()[VNODE].get("host") or {}

    # --- what is done -------------------------------------------------------------------------------------------------

    def operate(self, guest: Guest, operation: str) -> str:
        """`xl vnode-OPERATION`; what it says. Raises CommandFailedError with what both hosts know."""
        typed = guest.command(f"vnode-{operation}", f"{VNODE}")
        begin = self.story.tell(typed, "operator")
        do = guest.attach if operation == "attach" else guest.detach
        done = self.during(operation, guest, lambda: do(VNODE, timeout=scaled(600)))
        self.seen.operations[operation] = (begin, self.story.now())
        self.output(typed, done.text)
        if done.status:
            raise CommandFailedError(f"{typed}: exit status {done.status}: {done.text.strip()}")
        return done.text

    def run_program(self, guest: Guest) -> None:
        """memcheck, as a job of the guest that prefers the node."""
        run = guest.guest
        command = f"numactl --preferred={VNODE} {PROGRAMS}/memcheck {PROGRAM_MIB} 1"
        self.pid = int(checked(run, f"({command} >/tmp/memcheck.out 2>&1 & echo $!) </dev/null"))
        self.story.tell(command, "guest")
        self.during(
            "filling",
            guest,
            lambda: wait_for(
                "memcheck has written all pages", 300, lambda: "ready" in run("cat /tmp/memcheck.out").out
            ),
        )

    def end_program(self, guest: Guest) -> None:
        """Its verdict."""
        run, pid = guest.guest, self.pid
        checked(run, f"kill {pid}")
        wait_for("memcheck ends", 120, lambda: run(f"kill -0 {pid}").status != 0)
        words = checked(run, "cat /tmp/memcheck.out").splitlines()
        self.seen.memcheck = json.loads(words[-1])
        self.story.tell(f"memcheck: {words[-1]}", "guest")

    def use_node(self, guest: Guest) -> None:
        """While it is attached: the program, and what an operator sees of it, on both hosts."""
        self.run_program(guest)
        self.watch("attached", guest)
        self.list_node("attached", guest)
        self.show(f"dsmctl status {GUEST}")
        self.show(f"dsmctl status {GUEST}", self.site.other)
        self.show("xl list", self.site.other)
        found = [status(host) for host in self.site.both]
        self.seen.daemons = tuple(str(each.get("state", "not there")) for each in found)
        self.seen.fault_ms = fault_times(found[HOME])

    def play(self, guest: Guest) -> None:
        """The whole story, but for the guest's begin and end. Raises one of FAILURES."""
        self.story.tell(f"guest {guest.name} is up, and has no memory of {self.seen.hosts[OTHER]}")
        self.list_node("before", guest)
        self.watch("before", guest)
        self.seen.attached = self.operate(guest, "attach")
        self.seen.node_mib = guest.nodes()[VNODE].size_mib
        self.story.tell(f"node {VNODE} has {self.seen.node_mib} MiB", "guest")
        self.use_node(guest)
        self.operate(guest, "detach")
        self.seen.state_after = guest.vnode(VNODE).state
        self.list_node("detached", guest)
        self.show("xl list", self.site.other)
        self.seen.slices_after = len(slices(self.site.other))
        self.seen.dsmd_after = status(self.site.other) != {}
        self.watch("detached", guest)
        self.end_program(guest)

    def run(self) -> None:
        """The guest from its begin to its end. Raises one of FAILURES."""
        other = self.seen.hosts[OTHER]
        self.show("dsmctl hosts")
        self.story.tell(f"cat {GUEST}.cfg", "operator")
        self.output(f"cat {GUEST}.cfg", SHAPE.xl_cfg(other).strip())
        self.story.tell(f"xl create {GUEST}.cfg", "operator")
        with far_guest(self.site.both, other, SHAPE) as guest:
            try:
                self.play(guest)
            except FAILURES:
                self.story.output(said(self.site.both))
                self.story.output(guest.console_tail(30))
                raise
            self.story.tell(f"xl destroy {GUEST}", "operator")
        left_nothing(self.site.both)
        self.seen.left_nothing = True


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
        "A Xen guest on one host gets a NUMA node whose memory is on another host, which xl.cfg names: "
        f"host={seen.hosts[OTHER]}. Linux in the guest sees an ordinary node; a page that a program touches there comes over "
        "the network, and goes back when its place is wanted. Then the operator detaches the node, and everything comes home."
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
    if seen.shown:
        page.heading("What the operator types, and is told")
    for typed, text in seen.shown:
        page.heading(code(typed), 3)
        page.listing(text.strip("\n"))
    what_happened(page, seen.marks)
    return page.html()


def report(seen: Evidence, failure: str | None, story: Story, results: Path = RESULTS) -> str | None:
    """Write demo-dsm.json and .html, show the checks; the reason of a failure, or None."""
    checks = judged(verdict(seen), failure)
    page = partial(demo_page, seen, checks)
    return published("demo-dsm", checks, metrics(seen), page, story=story, results=results)


def with_hosts(rack: Rack) -> Rack:
    """The rack, if it has two hosts and a network between them. Raises LabError."""
    names = [host.description.name for host in rack.hosts]
    if len(names) < 2 or not all(map(rack.description.wire, names[:2])):
        raise LabError(
            f"rack {rack.description.name} has no network between two hosts (hosts: {', '.join(names)}): "
            "take one as lab/racks/two-hosts.toml describes it"
        )
    return rack


def run(use: str | None, transport: str, console: Console) -> str | None:
    """Boot, play, judge. The reason of a failure, or None."""
    story = Story(console, time.monotonic)
    story.tell(f"two hosts, a dsmd-host on each, and {transport} between them")
    booted = Rack.attach(use) if use else Rack.boot(RackDescription.load("two-hosts"), meter=False)
    with booted as rack, tempfile.TemporaryDirectory(prefix="xenuma-dsm.") as scratch:
        for host in with_hosts(rack).hosts if use else ():
            kill_dsmd_host(host)
        demo = DsmDemo(made_ready(rack, Path(scratch), HOST_LIMITS, transport), transport, story)
        failure = None
        try:
            demo.run()
        except FAILURES as error:
            failure = str(error) or type(error).__name__
        return report(demo.seen, failure, story)


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.dsm_demo", description="A node of another host comes and goes."
    )
    parser.add_argument("--use", metavar="RACK", help="a rack that runs already, with two hosts")
    parser.add_argument("--transport", choices=round_trips.TRANSPORTS, default="tcp", help="(%(default)s)")
    options = parser.parse_args(arguments)
    console = Console(soft_wrap=False)
    return outcome(console, lambda: run(options.use, options.transport, console))


if __name__ == "__main__":
    sys.exit(main())
