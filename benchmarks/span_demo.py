# SPDX-License-Identifier: GPL-2.0
"""`make demo-span`: one Linux on two hosts: `vnode-attach` brings the other's memory and CPUs, `vnode-detach` sends both home.

Two hosts of the lab, with a dsmd-host each, and a guest that is at home on the first. stream_check, an unmodified OpenMP
program that checks its own result, goes from threads on one host to threads on two, and back. What is seen meanwhile is judged
by span_timeline.verdict() and written to build/results/demo-span.json and demo-span.html. The guest's clock is slower than the
hosts' (lab/span_guest.py): each time that is shown says whose it is.

Usage: python3 -m benchmarks.span_demo [--cpus=N] [--mib=N] [--rack=NAME | --use=NAME]
Exit status: 0 DEMO PASS, 1 DEMO FAIL, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.arguments import whole
from benchmarks.demo_parts import FAILURES, judged, looking, outcome, published
from benchmarks.program_output import StreamRun, parse_stream
from benchmarks.reference import reference_run
from benchmarks.results import RESULTS
from benchmarks.span_page import demo_page, slowness
from benchmarks.span_timeline import (
    AWAY,
    HOME,
    Evidence,
    Look,
    Program,
    counts_of,
    fault_times,
    metrics,
    pages_of,
    program_of,
    program_question,
    verdict,
)
from benchmarks.story import Story
from lab.command import checked, run_in
from lab.complaints import complaints
from lab.description import RackDescription
from lab.errors import CommandFailedError
from lab.far_guest import GUEST, far_guest, kill_dsmd_host, left_nothing, said, slices, status
from lab.guest import Guest
from lab.guestview import parse_numactl
from lab.patience import wait_for
from lab.pipeline.paths import ARTIFACTS
from lab.rack import Rack
from lab.span_guest import (
    BOOT,
    PATIENCE,
    STREAM,
    WAIT,
    SlowSite,
    SpanShape,
    keep_work_at_home,
    measured,
    slow_hosts,
    start_stream,
    stream_command,
)

VNODE = 1
MIB = 2
ASK_S = 3.0  # seconds of the hosts between two questions to the guest: each costs it pages
ASKED_S = 300.0  # for an answer of the guest
LOOKS = 4  # at what does not change any more
COUNTED_LOOKS = 6  # at the hosts alone, while pages are counted
TOP = 12  # pages that bounce most
SYMBOLS = "/root/System.map"  # of the guest's kernel, in dom0


class SpanDemo:
    """One run; `play()` does it all with a guest that is up, and fills `seen` as far as it comes."""

    def __init__(self, site: SlowSite, shape: SpanShape, story: Story, mib: int = MIB) -> None:
        self.site, self.shape, self.story = site, shape, story
        names = (site.home.description.name, site.other.description.name)
        self.seen = Evidence(site.slow, mib, shape.cpus, names, marks=story.marks)
        self.pid = 0
        self.symbols = False

    # --- what is seen -------------------------------------------------------------------------------------------------

    def ask(self, guest: Guest) -> Program:
        """What the program does now. Raises CommandFailedError, Malformed."""
        text = checked(guest.guest, program_question(self.pid, STREAM), ASKED_S)
        return program_of(text, self.shape.cpus_of(HOME))

    def look(self, guest: Guest | None, patient: bool = False) -> Look:
        """Now; without a guest at the hosts alone. `patient`: the guest may be too busy to answer.

        Raises LabError if the guest has failed.
        """
        home, away = (counts_of(status(host)) for host in self.site.both)
        now, program = self.story.now(), None
        if guest:
            with contextlib.suppress(*([CommandFailedError] if patient else [])):
                program = self.ask(guest)
        return Look(now, (home, away), program)

    def watch(self, window: str, guest: Guest | None, looks: int) -> None:
        """Look so often, with pauses."""
        for number in range(looks):
            time.sleep(ASK_S if number else 0)
            self.seen.windows[window].append(self.look(guest))

    def during[T](self, window: str, guest: Guest, work: Callable[[], T]) -> T:
        """What `work` returns, or raises; looks while it is under way, one at the least."""
        return looking(work, lambda: self.seen.windows[window].append(self.look(guest, patient=True)), ASK_S)

    def stream(self, guest: Guest) -> StreamRun:
        """All that stream_check has printed so far."""
        return parse_stream(checked(guest.guest, f"cat {STREAM}", ASKED_S))

    def await_team(self, guest: Guest, threads: int, window: str | None = None) -> None:
        """Wait until its last iterations had so many threads. What is seen until then is of a stretch, or of none."""

        def so() -> bool:
            look = self.look(guest)
            if window:
                self.seen.windows[window].append(look)
            return bool(look.program and look.program.has_team(threads))

        seconds = wait_for(f"stream_check with {threads} threads", PATIENCE, so, ASK_S)
        self.story.tell(f"teams of {threads} ({seconds:.0f} s of the hosts' clock later)", "guest")

    def show(self, command: str) -> None:
        """A command of the operator's, typed and shown."""
        self.story.tell(command, "operator")
        self.story.output(checked(run_in(self.site.home), command))

    def look_at_nodes(self, guest: Guest, window: str) -> None:
        """numactl -H and xl vnode-list, shown and noted."""
        self.story.tell("numactl -H", "guest")
        text = checked(guest.guest, "numactl -H", ASKED_S)
        self.story.output(text)
        self.seen.numactl[window] = parse_numactl(text)
        self.show(f"xl vnode-list {GUEST}")
        self.seen.listed[window] = guest.listed()[VNODE].get("host") or {}

    def count_pages(self) -> None:
        """Which pages bounce, while nobody asks the guest."""
        for host in self.site.both:
            checked(run_in(host), f"dsmctl set {GUEST} profile=1")
        self.watch("counted", None, COUNTED_LOOKS)
        names = f"-s {SYMBOLS} " if self.symbols else ""
        for name, host in zip(self.seen.hosts, self.site.both, strict=True):
            command = f"dsmctl -n {TOP} {names}top {GUEST}"
            self.story.tell(f"at {name}: {command}", "operator")
            self.story.output(checked(run_in(host), command))
            self.seen.pages[name] = pages_of(checked(run_in(host), f"dsmctl -j -n {TOP} {names}top {GUEST}"))
            self.seen.fault_ms[name] = fault_times(status(host))
            checked(run_in(host), f"dsmctl set {GUEST} profile=0")

    # --- what is done -------------------------------------------------------------------------------------------------

    def begin_program(self, guest: Guest) -> None:
        """stream_check, as a user of the guest starts it."""
        cpus = (*self.shape.cpus_of(HOME), *self.shape.cpus_of(AWAY))
        self.story.tell(stream_command(cpus, self.seen.mib), "guest")
        start_stream(guest, cpus, self.seen.mib)
        wait_for("stream_check begins", ASKED_S, lambda: guest.guest(f"test -s {STREAM}", ASKED_S).status == 0, ASK_S)
        self.pid = self.stream(guest).pid

    def operate(self, guest: Guest, operation: str) -> None:
        """`xl vnode-OPERATION`. Raises CommandFailedError with what all dsmds know."""
        begin = self.story.tell(guest.command(f"vnode-{operation}", str(VNODE), WAIT), "operator")
        do = guest.attach if operation == "attach" else guest.detach
        done = self.during(operation, guest, lambda: do(VNODE, WAIT, timeout=PATIENCE))
        end = self.story.now()
        self.seen.operations[operation] = (begin, end)
        self.story.output(done.text)
        if done.status:
            raise CommandFailedError(f"xl vnode-{operation}: exit status {done.status}: {done.text.strip()}")
        keys = guest.vnode(VNODE)
        self.seen.phases[operation] = keys.phases
        if operation == "detach":
            self.seen.state_after, self.seen.residual_kib = keys.state, keys.residual_kib
            self.seen.slices_after = len(slices(self.site.other))
        split = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in keys.phases.items())
        self.story.tell(
            f"node {VNODE} {keys.state} after {end - begin:.1f} s of the hosts' clock; by the guest's, {self.seen.slow} times "
            f"slower: {split or 'no phases'} s",
            "guest",
        )

    def play(self, guest: Guest) -> None:
        """The whole story, but for the guest's begin and end. Raises one of FAILURES."""
        at_home = self.shape.cpus
        keep_work_at_home(guest)
        self.story.tell(f"guest {guest.name} is up: CPUs and memory of {self.seen.hosts[HOME]} alone")
        self.look_at_nodes(guest, "before")
        self.begin_program(guest)
        self.await_team(guest, at_home)
        self.watch("before", guest, LOOKS)
        self.operate(guest, "attach")
        self.await_team(guest, 2 * at_home, "growing")
        self.watch("both", guest, LOOKS)
        self.look_at_nodes(guest, "both")
        self.count_pages()
        self.operate(guest, "detach")
        self.await_team(guest, at_home, "shrinking")
        self.watch("after", guest, LOOKS)
        self.look_at_nodes(guest, "after")
        self.finish(guest)

    def finish(self, guest: Guest) -> None:
        """End the program, and run the same without changes."""
        checked(guest.guest, f"kill -TERM {self.pid}", ASKED_S)
        wait_for("stream_check ends", ASKED_S, lambda: self.stream(guest).checksum is not None, ASK_S)
        run = self.seen.run = self.stream(guest)
        self.story.tell(
            f"stream_check: {len(run.iterations)} iterations, checksum {run.checksum}, {run.wrong_words} wrong words",
            "guest",
        )
        self.seen.wanted = reference_run(guest, self.seen.mib, len(run.iterations))
        self.story.tell(
            f"the same without changes, on this machine with its own libgomp: checksum {self.seen.wanted.checksum}"
        )
        self.seen.complaints = complaints(checked(guest.guest, "dmesg", ASKED_S))

    def put_symbols(self, path: Path) -> None:
        """System.map of the guest's kernel, for dsmctl top; without it pages have no names."""
        self.symbols = path.is_file()
        for host in self.site.both if self.symbols else ():
            host.put(path, SYMBOLS)

    def run(self) -> None:
        """The guest from its begin to its end. Raises one of FAILURES."""
        other = self.seen.hosts[AWAY]
        self.put_symbols(ARTIFACTS / "linux" / "System.map")
        self.story.tell(f"xl create {GUEST}.cfg", "operator")
        self.story.output(self.shape.xl_cfg(other).strip())
        with far_guest(self.site.both, other, self.shape, BOOT) as guest:
            try:
                self.play(guest)
            except FAILURES:
                self.story.output(said(self.site.both))
                self.story.output(guest.console_tail(30))
                raise
            self.story.tell(f"xl destroy {GUEST}", "operator")
        left_nothing(self.site.both)
        self.seen.left_nothing = True


def report(seen: Evidence, failure: str | None, story: Story, results: Path = RESULTS) -> str | None:
    """Write demo-span.json and .html, show the checks; the reason of a failure, or None."""
    checks = judged(verdict(seen), failure)
    page = partial(demo_page, seen, checks)
    return published("demo-span", checks, metrics(seen), page, story=story, results=results)


def run(options: argparse.Namespace, console: Console) -> str | None:
    """Boot, play, judge. The reason of a failure, or None."""
    story = Story(console, time.monotonic)
    story.tell(f"rack {options.use or options.rack}: two hosts, a dsmd-host on each")
    booted = Rack.attach(options.use) if options.use else Rack.boot(RackDescription.load(options.rack), meter=False)
    with booted as rack, tempfile.TemporaryDirectory(prefix="xenuma-span.") as scratch:
        for host in rack.hosts if options.use else ():
            kill_dsmd_host(host)
        site = slow_hosts(rack, Path(scratch))
        demo = SpanDemo(site, measured(site, SpanShape(cpus=options.cpus)), story, options.mib)
        story.tell(slowness(demo.seen))
        failure = None
        try:
            demo.run()
        except FAILURES as error:
            failure = str(error) or type(error).__name__
        return report(demo.seen, failure, story)


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.span_demo", description="One Linux on two hosts, and back on one."
    )
    parser.add_argument("--cpus", type=int, choices=(1, 2), default=1, help="of the guest, at each host (%(default)s)")
    parser.add_argument("--mib", type=whole(1), default=MIB, help="size of stream_check's arrays (%(default)s)")
    parser.add_argument("--rack", default="two-hosts", help="rack to boot (%(default)s)")
    parser.add_argument("--use", metavar="NAME", help="play on a rack that runs already instead")
    options = parser.parse_args(arguments)
    console = Console(soft_wrap=False)
    return outcome(console, lambda: run(options, console))


if __name__ == "__main__":
    sys.exit(main())
