# SPDX-License-Identifier: GPL-2.0
"""`make bench-span`: one Linux on two hosts, measured: one guest that goes to the other host and comes back, some times.

Each round: OpenMP programs and a key-value store at home alone, `xl vnode-attach`, the same on both hosts, what interrupts,
wake-ups and hypercalls cost, `xl vnode-detach`. Parts, each of which can fail without the others:
    kernels   OpenMP programs with n threads at home and with 2n on both hosts
    kv        span_kv: dsmd's switches off and on, locks packed and a page for each shard, in turn, there and back
    ownership a CPU of the other host writes pages for the first time: of its own node, and of home's
    calls     interrupts and wake-ups between CPUs of both hosts, and hypercalls at either

Result: build/results/span.json, written anew after each round; what an earlier run has left goes to build/results/earlier with
the first one. What could not be measured is not in it, but for why: span.part.PART, without a value. Times are those of the
hosts' clock, of an emulator that shares two real processors: ratios of one run and counts are figures (decision 0137).

Usage: python3 -m benchmarks.span [--use=RACK] [--cpus=N] [--rounds=N] [--programs=LIST] [--seconds=N] [PART...]
Exit status: 0; 1 if something could not be measured; 2 usage.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import span_figures
from benchmarks.arguments import one_of
from benchmarks.dsm import SWITCHES, show
from benchmarks.membench import parse
from benchmarks.program_output import parse_timed
from benchmarks.results import RESULTS, set_aside, write
from benchmarks.span_counts import AWAY, HOME, Counts, HostCounts, host_counts, line_of
from benchmarks.span_figures import KV_SETTINGS, OWNERS, CallsRun, KernelRun, KvRun, Operation, OwnershipRun, Seen
from benchmarks.span_output import parse_calls, parse_kv
from lab.command import checked, run_in
from lab.complaints import complaints
from lab.description import RackDescription
from lab.elastic_guest import PROGRAMS
from lab.errors import CommandFailedError, LabError, Malformed
from lab.far_guest import GUEST, far_guest, kill_dsmd_host, left_nothing, said, slices, status
from lab.guest import Guest
from lab.host import Host
from lab.rack import Rack
from lab.span_guest import (
    BOOT,
    PATIENCE,
    WAIT,
    SlowSite,
    SpanShape,
    around,
    keep_work_at_home,
    measured,
    slow_hosts,
)
from lab.spanning import STATS

VNODE = 1
PARTS = ("kernels", "kv", "ownership", "calls")
# The smallest classes. A parallel region with a thread on each host takes some 2 s of the hosts' clock, and so an iteration of
# CG, which has 77, minutes: it runs if it is asked for, as do RandomAccess and MG.
CLASS = "S"
KERNELS = ("npb_ep", "npb_is", "stream")
OTHERS = ("npb_cg", "npb_mg", "random_access")
KERNEL_S = 60.0  # of the hosts' clock, for a program; what it has done until then counts
KV_S = 12.0  # for a mix
OWNED_MIB = 2  # that are written first
FIRST_OPS, MOST_OPS = 30, 100000  # of a thread
LEAST_SHARE = 0.25  # of KV_S: a mix that takes so long says how many operations take KV_S
# Of the hosts' clock, for a run of the store, and of calls. What has not ended then has not been measured.
LIMIT_S = 180.0
LAYOUT = {"off": "packed", "switches": "packed", "layout": "paged", "on": "paged", "home": "packed"}
SWITCHED_ON = ("switches", "on")
# Calls of a run. Two sizes: what one more costs does not have the program's start and end in it.
ROUNDS = {"membarrier": (5, 25), "wake": (5, 25), "nothing": (3, 13), "version": (100,), "status": (10, 50)}
# Linux refuses all hypercalls of programs in a guest that is no other's device model: drivers/xen/privcmd.c.
UNRESTRICTED = "xen_privcmd.unrestricted=1"
PAUSE_S = 0.2  # of the hosts' clock: a thread sleeps again then
OUT, ERR = "/tmp/span.out", "/tmp/span.err"
OVER = 124  # of timeout(1)
FAILURES = (LabError, Malformed, TimeoutError, OSError, ValueError, ArithmeticError)
XL_PHASE = re.compile(r"([a-z][a-z-]*) (\d+\.\d+) s")


def xl_phases(text: str) -> dict[str, float]:
    """Seconds of each phase, from what `xl vnode-attach` or -detach has printed; none if it says none."""
    found = re.findall(r"\(((?:[a-z][a-z-]* \d+\.\d+ s(?:, )?)+)\)", text)
    return {name: float(seconds) for name, seconds in XL_PHASE.findall(found[-1] if found else "")}


def connected(found: Mapping[str, Any]) -> bool:
    """Whether a dsmd has another host, by its status."""
    return any(peer.get("up") for peer in found.get("peers", {}).values())


def counted_at(host: Host, domid: Callable[[], int], found: Mapping[str, Any] | None = None) -> HostCounts:
    """What one host has counted until now; nothing if it has no dsmd of the guest. Raises LabError, Malformed.

    Xen is asked while the hosts are connected: without the other one no vCPU waits for a page. `found`: its dsmd's status.
    """
    found = status(host) if found is None else found
    xen: Mapping[str, Any] = dict.fromkeys(("waits", "wait_ns", "trap_ns", "wake_ns"), 0)
    if connected(found):
        xen = json.loads(checked(run_in(host), f"{STATS} {domid()}"))
    return host_counts(found, xen)


def counted(site: SlowSite, domids: Sequence[Callable[[], int]]) -> Counts:
    """What both hosts have counted until now; of the other one nothing while they are not connected.

    Raises LabError, Malformed.
    """
    found = status(site.home)
    home = counted_at(site.home, domids[HOME], found)
    return Counts(home, counted_at(site.other, domids[AWAY]) if connected(found) else HostCounts())


class SpanBench:
    """One run with a guest that is up; `seen` is filled as far as it comes, `failed` says what did not."""

    def __init__(
        self,
        site: SlowSite,
        shape: SpanShape,
        parts: Sequence[str] = PARTS,
        rounds: int = 2,
        *,
        programs: Sequence[str] = KERNELS,
        seconds: float = KERNEL_S,
    ) -> None:
        self.site, self.parts, self.rounds = site, parts, rounds
        self.programs, self.seconds = programs, seconds
        self.shape = dataclasses.replace(shape, arguments=f"{shape.arguments} {UNRESTRICTED}".strip())
        self.seen = Seen(site.slow, shape.cpus)
        self.failed: list[str] = []
        self.ops = 0
        self.domids: dict[int, int] = {}  # by place; that of a slice is another one after each attach
        self.began = time.monotonic()

    # --- what is said -----------------------------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """A line for who waits."""
        print(f"span: {time.monotonic() - self.began:5.0f} s: {text}", flush=True)

    def miss(self, part: str, why: str) -> None:
        """Something was not measured."""
        self.failed.append(why)
        self.seen.missing.setdefault(part, []).append(why)
        print(f"span: {why}", file=sys.stderr, flush=True)

    def attempt(self, part: str, what: str, guest: Guest, work: Callable[[], object]) -> None:
        """Something that may fail without the rest. Raises LabError if the guest is no more."""
        try:
            work()
        except FAILURES as error:
            self.miss(part, f"{what}: {str(error) or type(error).__name__}")
            checked(guest.guest, "true", 300)

    # --- what is counted --------------------------------------------------------------------------------------------

    def domid(self, guest: Guest, place: int) -> int:
        """Of the guest at one host. Raises LabError."""
        if place not in self.domids:
            there = [guest.domid()] if place == HOME else slices(self.site.other)
            if len(there) != 1:
                raise LabError(f"{self.site.other.description.name} has {len(there)} slices of the guest, not one")
            self.domids[place] = there[0]
        return self.domids[place]

    def counted(self, guest: Guest) -> Counts:
        """What both hosts have counted until now. Raises LabError, Malformed."""
        return counted(self.site, [functools.partial(self.domid, guest, place) for place in (HOME, AWAY)])

    def counted_at_home(self, guest: Guest) -> HostCounts:
        """The same of the home, less what is known while the hosts are connected."""
        return counted_at(self.site.home, functools.partial(self.domid, guest, HOME)).without_wire()

    # --- a program in the guest -------------------------------------------------------------------------------------

    def ran(self, guest: Guest, command: str, limit: float, partly: bool = False) -> tuple[str, Counts, bool]:
        """(what it printed, what it has cost, was it cut off?) after `limit` seconds of the hosts' clock at most.

        It is ended in the guest, by the guest's clock. Raises CommandFailedError if it ends with anything else than 0, and,
        unless what it has done `partly` counts, if it is cut off.
        """
        before = self.counted(guest)
        line = (
            f"timeout {limit / self.site.slow:.3f} {command} >{OUT} 2>{ERR} </dev/null; "
            f"echo $?; tail -c 500 {ERR}; echo; echo ==; cat {OUT}"
        )
        text = checked(guest.guest, line, PATIENCE)
        after = self.counted(guest)
        head, found, printed = text.partition("\n==\n")
        ended, _, complaint = head.partition("\n")
        over = ended == str(OVER)
        if over and not partly:
            raise CommandFailedError(f"{command}: cut off after {limit:.0f} s; until then: {printed.strip()[-300:]!r}")
        if not found or (ended != "0" and not over):
            raise CommandFailedError(f"{command}: it ended with {ended!r}: {complaint.strip()}")
        return printed, after.since(before), over

    def cpus(self, both: bool) -> tuple[int, ...]:
        """Those that programs run on."""
        return (*self.shape.cpus_of(HOME), *(self.shape.cpus_of(AWAY) if both else ()))

    def kernel(self, guest: Guest, program: str, both: bool) -> None:
        """One run of an OpenMP program."""
        cpus = self.cpus(both)
        words = f"{around(cpus)} {PROGRAMS}/{program} --class={CLASS}"
        printed, counts, over = self.ran(guest, words, self.seconds, partly=True)
        run = parse_timed(printed)
        if not run.steps:
            raise Malformed(f"{program}: no iteration in {self.seconds:.0f} s")
        if run.wrong or (not over and not (run.outcome and run.outcome.verified)):
            raise Malformed(f"{program}: wrong results: {'; '.join(run.wrong) or 'it has not ended'}")
        if {step.threads for step in run.steps} != {len(cpus)}:
            raise Malformed(f"{program}: teams of {sorted({step.threads for step in run.steps})}, not of {len(cpus)}")
        ms = tuple(step.ms * self.site.slow for step in run.steps)
        self.seen.kernels.append(KernelRun(program, both, len(cpus), ms, counts, over))
        self.tell(
            f"{program}, {len(cpus)} threads: {len(ms)} iterations of {sum(ms) / len(ms):.1f} ms, "
            f"{counts.total('faults')} faults, {counts.total('messages')} messages{', cut off' if over else ''}"
        )

    # --- the key-value store ----------------------------------------------------------------------------------------

    def kv_run(self, guest: Guest, setting: str, both: bool, ops: int) -> KvRun:
        """One run of the store; `ops` of each thread."""
        cpus = ",".join(map(str, self.cpus(both)))
        words = f"{PROGRAMS}/span_kv --cpus={cpus} --ops={ops} --layout={LAYOUT[setting]}"
        printed, counts, _ = self.ran(guest, words, LIMIT_S)
        return KvRun(setting, parse_kv(printed), counts)

    def enough(self, guest: Guest) -> int:
        """Operations of a thread that take KV_S, as all is off: by a run that is not much shorter than that."""
        ops = FIRST_OPS
        while True:
            seconds = self.kv_run(guest, "off", True, ops).kv.ns["mix"] / 1e9 * self.site.slow
            if seconds >= KV_S * LEAST_SHARE or ops >= MOST_OPS:
                return min(max(round(ops * KV_S / seconds), FIRST_OPS), MOST_OPS)
            ops = min(round(ops * min(max(KV_S / 2 / seconds, 2), 10)), MOST_OPS)

    def switch(self, setting: str) -> None:
        """dsmd's switches on both hosts, while the guest runs. Raises CommandFailedError."""
        wanted = SWITCHES["on"] if setting in SWITCHED_ON else SWITCHES["off"]
        words = " ".join(f"{key}={wanted[key]}" for key in SWITCHES["off"])
        for host in self.site.both:
            checked(run_in(host), f"for each in {words}; do dsmctl set {GUEST} $each || exit 1; done")

    def keep_kv(self, run: KvRun) -> None:
        """One more that was measured."""
        self.seen.kv.append(run)
        rate = run.kv.per_second("mix", self.site.slow)
        self.tell(f"kv, {run.setting}: {rate:.1f} operations/s, {run.counts.total('faults')} faults")

    def kv_at_home(self, guest: Guest) -> None:
        """As many operations as on both hosts, or what is a moment as long as that is not known."""
        self.keep_kv(self.kv_run(guest, "home", False, self.ops or 1000))

    def kv(self, guest: Guest, back: bool) -> None:
        """All settings in turn, in the opposite order on the way back. A first run says how many operations."""
        self.switch("off")
        if not self.ops:
            self.ops = self.enough(guest)
            self.tell(f"kv: {self.ops} operations of each thread are some {KV_S:.0f} s")
        try:
            for setting in reversed(KV_SETTINGS) if back else KV_SETTINGS:
                self.switch(setting)
                self.keep_kv(self.kv_run(guest, setting, True, self.ops))
        finally:
            self.switch("off")

    # --- ownership by node ------------------------------------------------------------------------------------------

    def owned(self, guest: Guest, owner: str) -> None:
        """Memory of one node is mapped, populated and written by the first CPU of the other host; once, so that it is new."""
        node = VNODE if owner == "node" else 0
        cpus = [self.shape.cpus_of(place)[0] for place in (HOME, AWAY)]
        words = f"--node={node} --source-node=0 --cpus={cpus[AWAY]} --mib={OWNED_MIB} --rounds=1"
        line = f"taskset -c {','.join(map(str, cpus))} {PROGRAMS}/dsm_membench copy {words}"
        printed, counts, _ = self.ran(guest, line, LIMIT_S)
        (copy,) = parse(printed).copies
        run = OwnershipRun(owner, copy, counts)
        self.seen.ownership.append(run)
        self.tell(
            f"pages of {owner}: {run.page_us(self.site.slow):.0f} us and {counts.away.faults / run.pages():.2f} faults each"
        )

    def ownership(self, guest: Guest, back: bool) -> None:
        """Both, in the opposite order on the way back. A detach between two rounds takes all pages home."""
        for owner in reversed(OWNERS) if back else OWNERS:
            self.owned(guest, owner)

    # --- calls ------------------------------------------------------------------------------------------------------

    def call(self, guest: Guest, what: str, caller: int, rounds: int) -> None:
        """span_latency by the first CPU of the host `caller`, to the first one of the other."""
        cpus = [self.shape.cpus_of(place)[0] for place in (caller, 1 - caller)]
        named = cpus[:1] if what in ("version", "status") else cpus
        pause = round(PAUSE_S * 1e6 / self.site.slow)
        words = f"--what={what} --cpus={','.join(map(str, named))} --rounds={rounds} --us={pause}"
        printed, counts, _ = self.ran(guest, f"{PROGRAMS}/span_latency {words}", LIMIT_S)
        calls = parse_calls(printed, what)
        if len(calls.ns) != rounds or calls.cpus != tuple(named):
            raise Malformed(f"{what}: {len(calls.ns)} calls by CPUs {calls.cpus}, not {rounds} by {named}")
        run = CallsRun(calls, counts, pause * 1000 if what == "wake" else 0)
        self.seen.calls.append(run)
        us = run.total_ns() * self.site.slow / len(run.calls.ns) / 1000
        self.tell(f"{what}, {rounds} by a CPU of {self.site.both[caller].description.name}: {us:.0f} us")

    def calls(self, guest: Guest, back: bool) -> None:
        """All of them; the longer runs are the first ones on the way back."""
        for what, caller in (
            ("nothing", HOME), ("membarrier", HOME), ("membarrier", AWAY), ("wake", HOME),
            ("version", HOME), ("version", AWAY), ("status", HOME), ("status", AWAY),
        ):  # fmt: skip
            place = self.site.both[caller].description.name

            def work(what: str = what, caller: int = caller) -> None:
                for rounds in reversed(ROUNDS[what]) if back else ROUNDS[what]:
                    self.call(guest, what, caller, rounds)

            self.attempt("calls", f"{what} at {place}", guest, work)

    # --- all of it --------------------------------------------------------------------------------------------------

    def operate(self, guest: Guest, name: str) -> None:
        """`xl vnode-NAME`. Raises CommandFailedError with what all dsmds know."""
        self.domids.pop(AWAY, None)
        before = self.counted_at_home(guest)
        do = guest.attach if name == "attach" else guest.detach
        began = time.monotonic()
        done = do(VNODE, WAIT, timeout=PATIENCE)
        seconds = time.monotonic() - began
        if done.status:
            raise CommandFailedError(
                f"xl vnode-{name}: exit status {done.status}: {done.text.strip()}\n{said(self.site.both)}"
            )
        guests = {phase: took * self.site.slow for phase, took in guest.vnode(VNODE).phases.items()}
        home: HostCounts | None = None
        with contextlib.suppress(Malformed):  # another dsmd
            home = self.counted_at_home(guest).since(before)
        self.seen.operations.append(Operation(name, seconds, xl_phases(done.text), guests, home))
        self.tell(f"{name}: {seconds:.1f} s; {done.text.strip()}")

    def section(self, guest: Guest, both: bool, back: bool) -> None:
        """What is measured at home, or on both hosts."""
        where = "both hosts" if both else "home"
        if "kernels" in self.parts:
            for program in self.programs:
                what, work = f"{program} on {where}", functools.partial(self.kernel, guest, program, both)
                self.attempt("kernels", what, guest, work)
        if "kv" in self.parts:
            work = functools.partial(self.kv, guest, back) if both else functools.partial(self.kv_at_home, guest)
            self.attempt("kv", f"kv on {where}", guest, work)
        if both and "ownership" in self.parts:
            self.attempt("ownership", "ownership", guest, functools.partial(self.ownership, guest, back))
        if both and "calls" in self.parts:
            self.calls(guest, back)

    def play(self, guest: Guest, publish: Callable[[Seen], list[str]]) -> None:
        """All rounds. Raises one of FAILURES if the guest, or its way there or back, has failed."""
        keep_work_at_home(guest)
        for number in range(self.rounds):
            self.tell(f"round {number + 1} of {self.rounds}")
            self.section(guest, both=False, back=bool(number % 2))
            self.operate(guest, "attach")
            self.section(guest, both=True, back=bool(number % 2))
            self.attempt("connection", "connection", guest, lambda: self.seen.lines.append(line_of(status(self.site.home))))
            self.operate(guest, "detach")
            publish(self.seen)
        if wrong := complaints(checked(guest.guest, "dmesg", 300)):
            self.miss("guest", f"the guest's kernel complains: {'; '.join(wrong[:3])}")

    def run(self, publish: Callable[[Seen], list[str]]) -> None:
        """The guest from its begin to its end; what went wrong is in `failed`, and what there is is published."""
        try:
            with far_guest(self.site.both, self.site.other.description.name, self.shape, BOOT) as guest:
                self.tell("the guest is up")
                try:
                    self.play(guest, publish)
                except FAILURES:
                    print(said(self.site.both), guest.console_tail(30), sep="\n", file=sys.stderr)
                    raise
            left_nothing(self.site.both)
        except FAILURES as error:
            self.miss("guest", str(error) or type(error).__name__)
        self.failed += publish(self.seen)


class Publisher:
    """Writes span.json each time that it is called. What an earlier run has left is set aside with the first one."""

    def __init__(self, directory: Path = RESULTS) -> None:
        self.directory = directory
        self.begun = False

    def __call__(self, seen: Seen) -> list[str]:
        """All figures that there are. Returns why some are not."""
        found, problems = span_figures.metrics(seen)
        if seen.operations or seen.kernels or seen.kv or seen.calls:
            if not self.begun:
                set_aside(self.directory / "span.json")
            self.begun = True
            write("span", found, self.directory)
        return problems


def programs_of(text: str) -> tuple[str, ...]:
    """Those that are named. Raises ArgumentTypeError for one that there is not."""
    found = tuple(text.split(","))
    if wrong := [each for each in found if each not in (*KERNELS, *OTHERS)]:
        raise argparse.ArgumentTypeError(f"{', '.join(wrong)}: there are {', '.join((*KERNELS, *OTHERS))}")
    return found


def main(arguments: Sequence[str] = ()) -> int:
    """Boot, or use a rack that runs; measure, write build/results/span.json."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.span", description="One Linux on two hosts, measured.")
    parser.add_argument("--use", metavar="RACK", help="a rack that runs already, with two hosts")
    parser.add_argument("--cpus", type=int, choices=(1, 2), default=1, help="of the guest, at each host (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="ways there and back, 1 to 20 (%(default)s)")
    listed = ",".join(KERNELS)
    parser.add_argument("--programs", type=programs_of, default=KERNELS, metavar="LIST",
                        help=f"of the part kernels ({listed}); there are {', '.join(OTHERS)}, too")  # fmt: skip
    clock = "of the hosts' clock, for each, 1 to 3600 (%(default)s)"
    parser.add_argument("--seconds", type=float, default=KERNEL_S, help=clock)
    named = f"{', '.join(PARTS)}; all, if none is named"
    parser.add_argument("parts", nargs="*", type=one_of(PARTS), metavar="PART", help=named)
    options = parser.parse_args(arguments)
    if not 1 <= options.rounds <= 20:
        parser.error(f"--rounds={options.rounds}: want 1 to 20")
    if not 1 <= options.seconds <= 3600:
        parser.error(f"--seconds={options.seconds}: want 1 to 3600")
    failed: list[str] = []
    try:
        booted = Rack.attach(options.use) if options.use else Rack.boot(RackDescription.load("two-hosts"), meter=False)
        with booted as rack, tempfile.TemporaryDirectory(prefix="xenuma-span.") as scratch:
            for host in rack.hosts if options.use else ():
                kill_dsmd_host(host)
            site = slow_hosts(rack, Path(scratch))
            shape = measured(site, SpanShape(cpus=options.cpus))
            chosen = {"programs": options.programs, "seconds": options.seconds}
            bench = SpanBench(site, shape, options.parts or PARTS, options.rounds, **chosen)
            bench.run(Publisher())
            failed = bench.failed
            for metric in span_figures.metrics(bench.seen)[0]:
                show(metric)
    except FAILURES as error:
        failed.append(str(error) or type(error).__name__)
    for line in failed:
        print(f"span: not measured: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
