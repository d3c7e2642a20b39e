# SPDX-License-Identifier: GPL-2.0
"""`make demo`: a guest gets a NUMA node and loses it again, while unmodified OpenMP programs run in it.

One host with two physical nodes; a guest with node 0 and elastic node 1. stream_check, a program of ours that checks
its own result, runs on the project's libgomp, put in its way by LD_LIBRARY_PATH; so does a program from Debian. The
operator attaches node 1, and later detaches it. What is seen meanwhile is judged by timeline.verdict() and written to
build/results/demo.json and demo.html.

Usage: python3 -m benchmarks.demo [--mib=N] [--rack=NAME | --use=NAME] [--config=FILE]
Exit status: 0 DEMO PASS, 1 DEMO FAIL, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks import debian_program
from benchmarks.arguments import existing, whole
from benchmarks.demo_page import demo_page
from benchmarks.demo_parts import FAILURES, judged, outcome, published
from benchmarks.program_output import StreamRun, parse_samples, parse_stream
from benchmarks.reference import reference_run
from benchmarks.results import RESULTS
from benchmarks.story import Story
from benchmarks.timeline import WINDOWS, Evidence, Reading, Timeline, metrics, verdict
from lab.clock import Clock
from lab.command import Done, checked
from lab.description import RackDescription
from lab.elastic_guest import LIBGOMP, PROGRAMS
from lab.errors import CommandFailedError
from lab.guest import Guest
from lab.guestview import GuestNode
from lab.host import Host
from lab.patience import wait_for
from lab.pipeline.paths import REPO
from lab.rack import Rack

VNODE = 1
HOME_CPUS, ALL_CPUS = 2, 4
STREAM, WATCH = "/tmp/stream_check.jsonl", "/tmp/numa_watch.jsonl"
WATCH_MS = 1000
# What a user of a NUMA machine sets: threads stay on their place. And threads that wait sleep instead of spinning, since
# there are more emulated processors than real ones.
SETTINGS = "OMP_PLACES=threads OMP_PROC_BIND=close OMP_WAIT_POLICY=passive"
# Each vCPU stays on its node's CPUs, so that what the meter calls local is local to the vnode, and an address for the lab.
PLACED = {"cpus": '["0-1", "0-1", "2-3", "2-3"]', "vif": '["mac=00:16:3e:4d:00:02,bridge=xenbr0"]'}
ITERATIONS_IN_WINDOW = 4  # how many iterations each window is to have at least
ASK_S = 1.0  # seconds between two questions to the guest: each costs it time
STEP_TIMEOUT = 90.0  # seconds for each thing that has to happen in the guest


class Demo:
    """One run of the demo on a guest that is up; `play()` does it all and fills `evidence` as far as it comes."""

    def __init__(self, host: Host, guest: Guest, mib: int, console: Console) -> None:
        self.host, self.guest, self.mib = host, guest, mib
        clock = Clock.compare(self.guest.guest)
        self.story = Story(console, clock.now)
        self.pid = 0
        self.windows: dict[str, tuple[float, float]] = {}
        self.readings: dict[str, Reading] = {}
        self.numactl: dict[str, dict[int, GuestNode]] = {}
        self.phases: dict[str, dict[str, float]] = {}
        self.seconds: dict[str, float] = {}
        self.teams: dict[str, Sequence[int]] = {}  # of the companion
        self.residual_kib = 0
        self.run: StreamRun | None = None
        self.wanted: StreamRun | None = None
        self.companion = debian_program.Companion(self.guest.guest)

    # --- what is seen -------------------------------------------------------------------------------------------------

    def stream(self) -> StreamRun:
        """What stream_check has printed so far."""
        return parse_stream(checked(self.guest.guest, f"cat {STREAM}"))

    def await_iterations(self, count: int, since: float, what: str) -> None:
        """Wait until `count` iterations have begun after `since` and ended."""

        def enough() -> bool:
            return sum(i.t - i.ms / 1e3 >= since for i in self.stream().iterations) >= count

        wait_for(f"{count} iterations {what}", STEP_TIMEOUT, enough, ASK_S)

    @contextmanager
    def metered(self, window: str) -> Iterator[None]:
        """Count the memory accesses of user programs while the body runs.

        The companion pauses: its threads are bound to no place, so that its accesses say nothing of where memory should be.
        """
        with self.companion.paused(), self.host.meter.running() as meter:
            begin, before = self.story.now(), meter.read()
            try:
                yield
            finally:
                counts = meter.read() - before
                remote = counts.remote()
                self.readings[window] = Reading(begin, self.story.now(), counts.total() - remote, remote)

    def look(self, window: str) -> None:
        """Note what numactl -H lists now."""
        nodes = self.guest.nodes()
        self.numactl[window] = nodes
        text = "; ".join(
            f"node {n.number}: CPUs {' '.join(map(str, n.cpus)) or 'none'}, {n.size_mib} MiB" for n in nodes.values()
        )
        self.story.tell(f"numactl -H: {text}", "guest")

    def show_vnodes(self) -> None:
        """`xl vnode-list`, typed and shown."""
        command = f"xl vnode-list {self.guest.name}"
        self.story.tell(command, "operator")
        self.story.output(checked(self.guest.dom0, command))

    # --- what is done -------------------------------------------------------------------------------------------------

    def start_program(self) -> None:
        """Start stream_check with our libgomp, and the observer beside it."""
        self.story.tell(f"{SETTINGS} LD_LIBRARY_PATH={LIBGOMP} stream_check --mib={self.mib}", "guest")
        checked(
            self.guest.guest,
            f"{SETTINGS} LD_LIBRARY_PATH={LIBGOMP} setsid {PROGRAMS}/stream_check --mib={self.mib} --iterations=0 "
            f">{STREAM} 2>/tmp/stream_check.err </dev/null &",
        )
        wait_for("stream_check starts", STEP_TIMEOUT, lambda: self.guest.guest(f"test -s {STREAM}", 30.0).status == 0)
        self.pid = self.stream().pid
        checked(self.guest.guest, f"setsid {PROGRAMS}/numa_watch {self.pid} {WATCH_MS} >{WATCH} 2>&1 </dev/null &")

    def operate(self, name: str) -> None:
        """Attach or detach, as the operator does; the time from command to exit is a result."""
        done: Done = self.guest.attach(VNODE) if name == "attach" else self.guest.detach(VNODE)
        if done.status != 0:
            raise CommandFailedError(f"xl vnode-{name}: exit status {done.status}: {done.text.strip()}")
        self.story.output(done.text)
        self.seconds[name] = done.seconds
        keys = self.guest.vnode(VNODE)
        self.phases[name] = keys.phases
        if name == "detach":
            self.residual_kib = keys.residual_kib
        split = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in keys.phases.items())
        self.story.tell(f"node {VNODE} {keys.state} after {done.seconds:.1f} s ({split})", "guest")

    def memory_on_vnode(self) -> bool:
        """Whether a fair part of the program's memory is on the new node."""
        resident = self.guest.resident(self.pid)
        return resident.get(VNODE, 0) * 3 >= sum(resident.values())

    def play(self) -> None:
        """The whole story. Raises one of FAILURES when something that has to happen does not."""
        tell = self.story.tell
        tell(f"guest {self.guest.name} is up: {HOME_CPUS} CPUs on node 0, elastic node {VNODE} absent")
        self.show_vnodes()
        self.companion.reference()
        self.start_program()
        self.companion.start()
        begin = self.story.now()
        self.await_iterations(1, begin, "before the attach")
        team = self.companion.await_team(HOME_CPUS, "before the attach")
        with self.metered("before"):
            self.await_iterations(ITERATIONS_IN_WINDOW, self.story.now(), "before the attach")
        self.look("before")
        self.teams["before"] = self.companion.teams()[team:]

        attach = tell(self.guest.command("vnode-attach", str(VNODE)), "operator")
        self.windows["before"] = (begin, attach)
        self.operate("attach")
        self.after_attach()

        detach = tell(self.guest.command("vnode-detach", str(VNODE)), "operator")
        self.windows["settled"] = (self.windows["attached"][1], detach)
        self.operate("detach")
        detached = self.story.now()
        self.windows["detached"] = (detached, detached)
        team = self.companion.await_team(HOME_CPUS, "after the detach")
        with self.metered("detached"):
            self.await_iterations(ITERATIONS_IN_WINDOW, detached, "after the detach")
        self.look("detached")
        self.teams["detached"] = self.companion.teams()[team:]
        self.windows["detached"] = (detached, self.story.now())
        self.show_vnodes()
        self.finish()

    def after_attach(self) -> None:
        """The windows attached and settled."""
        attached = self.story.now()
        self.windows["attached"] = (attached, attached)
        with self.metered("attached"):
            self.await_iterations(ITERATIONS_IN_WINDOW, attached, "after the attach")
        self.look("attached")
        seconds = wait_for(f"memory of the program on node {VNODE}", STEP_TIMEOUT, self.memory_on_vnode, ASK_S)
        settled = self.story.tell(f"the program's memory is on both nodes ({seconds:.1f} s later)", "guest")
        self.windows["attached"] = (attached, settled)
        self.show_vnodes()
        team = self.companion.await_team(ALL_CPUS, "after the attach")
        with self.metered("settled"):
            self.await_iterations(ITERATIONS_IN_WINDOW, self.story.now(), "settled")
        self.look("settled")
        self.teams["settled"] = self.companion.teams()[team:]

    def finish(self) -> None:
        """Stop the programs, and run the same without changes."""
        checked(self.guest.guest, f"kill -TERM {self.pid}")
        wait_for("stream_check prints its result", STEP_TIMEOUT, lambda: self.stream().checksum is not None)
        self.run = self.stream()
        self.story.tell(
            f"stream_check: {len(self.run.iterations)} iterations, checksum {self.run.checksum}, "
            f"{self.run.wrong_words} wrong words",
            "guest",
        )
        self.companion.finish()
        self.wanted = reference_run(self.guest, self.mib, len(self.run.iterations))
        self.story.tell(f"the same without changes, stock libgomp: checksum {self.wanted.checksum}")

    # --- what it amounts to -------------------------------------------------------------------------------------------

    def evidence(self) -> Evidence:
        """All that was seen, however far it came."""
        try:
            run = self.run or self.stream()
            samples = parse_samples(checked(self.guest.guest, f"cat {WATCH}"))
        except FAILURES:
            run, samples = self.run or StreamRun(0, self.mib, (), None, None), []
        timeline = Timeline(run.iterations, samples, self.story.marks, self.readings, self.windows)
        wanted = self.wanted or StreamRun(0, self.mib, (), None, None)
        return Evidence(
            VNODE,
            HOME_CPUS,
            ALL_CPUS,
            timeline,
            run,
            wanted,
            self.numactl,
            self.residual_kib,
            self.companion.programs(),
            self.phases,
            self.seconds,
            self.teams,
            debian_program.SECTIONS,
        )


def keep_raw(demo: Demo, directory: Path) -> None:
    """Copy what the programs printed into the log directory, as far as the guest still answers."""
    for path in (STREAM, WATCH, "/tmp/stream_check.err", f"{debian_program.DIRECTORY}/said"):
        with contextlib.suppress(*FAILURES):
            text = checked(demo.guest.guest, f"cat {path}")
            (directory / Path(path).name).write_text(text, encoding="utf-8")


def report(demo: Demo, failure: str | None, results: Path = RESULTS) -> str | None:
    """Write demo.json and demo.html, show the tables; returns the reason of a failure, or None."""
    evidence = demo.evidence()
    checks = judged(verdict(evidence), failure)
    demo.story.windows(evidence.timeline, WINDOWS, VNODE)
    page = partial(demo_page, evidence, checks)
    return published("demo", checks, metrics(evidence), page, story=demo.story, results=results)


@contextmanager
def rack_of(options: argparse.Namespace) -> Iterator[Rack]:
    """The rack to play on: booted for the demo, or one that runs already."""
    if options.use:
        with Rack.attach(options.use) as rack:
            yield rack
        return
    with Rack.boot(RackDescription.load(options.rack)) as rack:
        yield rack


def run(options: argparse.Namespace, console: Console) -> str | None:
    """Boot, play, judge. Returns the reason of a failure, or None."""
    began = time.monotonic()
    with rack_of(options) as rack:
        host = rack.host()
        guest = host.start_guest(options.config, PLACED)
        try:
            demo = Demo(host, guest, options.mib, console)
            demo.story.tell(f"rack {rack.description.name} and guest booted in {time.monotonic() - began:.1f} s")
            failure = None
            try:
                demo.play()
            except FAILURES as error:
                failure = str(error)
                console.print("[dim]guest's console, last lines:[/dim]", highlight=False)
                demo.story.output(guest.console_tail(30))
            reason = report(demo, failure)
            keep_raw(demo, rack.logs)
        finally:
            guest.destroy()
    console.print(f"  [dim]demo took {time.monotonic() - began:.0f} s[/dim]", highlight=False)
    return reason


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.demo", description="A NUMA node comes and goes under an OpenMP program."
    )
    parser.add_argument("--mib", type=whole(1), default=64, help="size of stream_check's arrays (%(default)s)")
    parser.add_argument("--rack", default="one-host", help="rack to boot (%(default)s)")
    parser.add_argument("--use", metavar="NAME", help="play on a rack that runs already instead")
    parser.add_argument(
        "--config", type=existing, default=REPO / "configs" / "guest2.cfg", help="guest to start (%(default)s)"
    )
    options = parser.parse_args(arguments)
    console = Console(soft_wrap=False)
    return outcome(console, lambda: run(options, console))


if __name__ == "__main__":
    sys.exit(main())
