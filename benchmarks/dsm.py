# SPDX-License-Identifier: GPL-2.0
"""Memory from another machine: what it costs, against the raw network and against what a user would do without it.

Two hosts of the lab. Parts, each of which can fail without the others, and is left out of the result then:
    rtt     round trips of dsmd's transport, without anything else: TCP with TLS, polling and sleeping; and of the kernels
    swap    a guest that swaps on a disk in the other host's memory, by nbd over TCP
    node    a guest whose node 1 is memory of the other host, by dsmd over TCP
    switches  such a guest, with and without what dsmd does to be quick
    detach  such a guest's node leaves, with and without dsmd streaming what the guest reads then
    rdma    `rtt` and `node` over Soft-RoCE

Result: build/results/dsm.json, written anew with each figure, so that who ends it early keeps what there is; what could not
be measured is not in it, and a part that was not measured to its end says so (dsm.part.PART, without a value). Figures of two
runs do not compare, so those of the run before are not kept in it: its file goes to build/results/earlier with the first
figure, and can be put back. Times are an emulator's, of machines that share two real processors and whose network is a process
beside them: only ratios of one run are figures.

Usage: python3 -m benchmarks.dsm [--use=RACK] [--pages=N] [--rounds=N] [PART...]
Exit status: 0; 1 if a part could not be measured; 2 usage.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import host_programs, membench, remote_swap, round_trips
from benchmarks.arguments import one_of
from benchmarks.dsm_faults import (
    Snapshot,
    below_user_space,
    copies,
    faults,
    idle,
    messages,
    messages_of_both,
    misses_per_page,
    sleepy,
    speedups,
)
from benchmarks.results import Growing, InvalidResult, Metric, from_runs
from lab import spanning
from lab.command import checked, run_in
from lab.description import RackDescription
from lab.elastic_guest import PROGRAMS
from lab.errors import CommandFailedError, LabError, Malformed
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled, wait_for
from lab.rack import Rack

HOME_MIB = 512
SWAP_MIB = 64
MEMBENCH_S = 900.0
# dsmd(8): pages asked for ahead; pages that are overwritten come without bytes; to look for messages for so long instead of
# sleeping.
SWITCHES: dict[str, dict[str, int]] = {
    "off": {"prefetch": 0, "clear_hint": 0, "busy_wait_us": 0, "poll_us": 0},
    "prefetch": {"prefetch": 16},
    "clear_hint": {"clear_hint": 1},
    "polling": {"busy_wait_us": 20000, "poll_us": 20000},
    "on": {"prefetch": 16, "clear_hint": 1, "busy_wait_us": 20000, "poll_us": 20000},
}
# What is measured when: there and back, so that what gets slower or quicker by and by counts for all, and each has two runs
# whose difference is seen.
TURNS = (*SWITCHES, *reversed(SWITCHES))
# Of these what is read is not measured: a hint that all of a page is overwritten is for who writes.
COPIES_ONLY = ("clear_hint",)
USED_MIB = 8  # by the program that is on the node when it is detached
# In the part that compares detaches, and says what a GiB in use costs more: two amounts in use make a slope.
FEW_MIB, MANY_MIB = 2, 6
# In an order in which what gets slower or quicker by and by counts for both.
DETACHES = (
    ("plain", FEW_MIB), ("streamed", FEW_MIB), ("plain", MANY_MIB),
    ("streamed", MANY_MIB), ("streamed", FEW_MIB), ("plain", FEW_MIB),
)  # fmt: skip
TRIPS = 50  # round trips of each kind, at a time in turn with faults
PATIENT = "--timeout=800"  # of xl, whose own is too short for a machine that has other things to do
# Of the figures' names: TCP is what every host has.
PREFIXES = {"tcp": "dsm", "rdma": "dsm.rdma"}
NODE_MIB = 128
KIB_A_PAGE, KIB_A_GIB = 4, 1 << 20
ON_NODE = 0.9  # of a program's memory, at the least: what is elsewhere is not moved by a detach
FAILURES = (LabError, Malformed, TimeoutError, OSError, ValueError, ArithmeticError)

SWAP_GUEST = f"""
name = "swapper"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5 clocksource=tsc tsc=nowatchdog"
memory = {HOME_MIB}
vcpus = 2
tsc_mode = "native"
vif = [ "mac=00:16:3e:4d:00:41,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
"""


@dataclasses.dataclass(frozen=True)
class Amount:
    """How much is measured.

    `pages`: memory at hand for pages that live elsewhere: DSM's pool, or the control group of what swaps.
    """

    pages: int = 512
    rounds: int = 3

    def sizes(self, *eighths: int) -> str:
        """Pages of passes, as so many eighths of the memory at hand."""
        return ",".join(str(self.pages * each // 8) for each in eighths)

    @property
    def passes(self) -> str:
        """Words for dsm_membench: of all sizes, which fit together, after more pages were read than there is memory at hand."""
        return f"touch --cpu=0 --together=1 --sizes={self.sizes(1, 2, 3)} --flush={self.pages * 5 // 4} --node=1"

    @property
    def swapped(self) -> str:
        """The same for who swaps, with as much memory at hand, and its own: more is read before each pass.

        What a read brings ahead may be of another size's pages, so each size has its own way out; two make a slope.
        """
        flush = (self.pages + remote_swap.OWN_PAGES) * 5 // 4
        return f"touch --cpu=0 --sizes={self.sizes(1, 3)} --flush={flush} --rounds={self.rounds}"

    @property
    def rounds_a_turn(self) -> int:
        """Of the switches, which have two turns each."""
        return (self.rounds + 1) // 2

    @property
    def copy(self) -> str:
        """Words for dsm_membench."""
        return f"copy --cpus=0,1 --mib=1 --rounds={self.rounds_a_turn} --node=1 --source-node=1"

    @property
    def shape(self) -> spanning.Shape:
        """A guest with so many frames for pages of the other host."""
        return spanning.Shape(home_mib=HOME_MIB, node_mib=NODE_MIB, frames=self.pages)


def touched(output: membench.Output, prefix: str, **baseline: float) -> Iterator[Metric]:
    """PREFIX.page.WHAT_ORDER_us: time of a page that is not at hand, of each round; and pages a second.

    Raises Malformed after all others for those whose time is none.
    """
    problems = []
    for what in membench.WHATS:
        for order in membench.ORDERS:
            cold = membench.chosen(output.passes, what=what, order=order, state="cold")
            runs = [ns / 1000 for ns in membench.ns_per_page(cold)]
            try:
                us = membench.positive_median(f"{prefix}: {what}s in {order} order, us for a page of each round", runs)
            except Malformed as error:
                problems.append(str(error))
                continue
            missing = statistics.median(membench.cost_of_missing(output, what, order)) / 1000
            first = statistics.median(each.first_ns["p50"] for each in cold) / 1000
            line = {"fixed_share": membench.fixed_share(cold), "bend": membench.bend(cold)}
            beside = {
                "less_when_at_hand_us": missing,
                "first_word_p50_us": first,
                "first_word_p99_us": statistics.median(each.first_ns["p99"] for each in cold) / 1000,
                "major_faults_per_page": sum(each.major for each in cold) / sum(each.pages for each in cold),
                **line,
                **baseline,
            }
            note = f"slope over {sorted({each.pages for each in cold})} pages{in_doubt(line)}"
            metric = from_runs(f"{prefix}.page.{what}_{order}_us", runs, "us", "lower", note)
            yield dataclasses.replace(metric, baseline=beside)
            if what == "read":
                # Of the median: to leave rounds out that took less than nothing would flatter.
                rates = [1e6 / each for each in runs if each > 0]
                about = f"reads; 1 / median time{in_doubt(line)}"
                yield Metric(f"{prefix}.pages_per_second.{order}", 1e6 / us, "1/s", "higher", {}, rates, about)
    if problems:
        raise Malformed("; ".join(problems))


def in_doubt(*baselines: Mapping[str, float | str]) -> str:
    """Of a note: what is to be said if a slope's passes, of which these say `fixed_share` and `bend`, are not on a line."""
    share, bent = (max(float(each.get(key, 0.0)) for each in baselines) for key in ("fixed_share", "bend"))
    wrong = membench.off_line(share, bent)
    return f"; in doubt: {wrong}" if wrong else ""


def run_membench(guest: Guest, words: str) -> membench.Output:
    """Run it in the guest. Raises CommandFailedError, also for a wrong byte; Malformed."""
    return membench.parse(checked(guest.guest, words, MEMBENCH_S))


# --- parts ----------------------------------------------------------------------------------------------------------------


def round_trips_of(rack: Rack, transport: str, amount: Amount) -> Iterator[Metric]:
    """dsm.rtt.TRANSPORT: with each way to wait."""
    for waiting in round_trips.WAITING:
        yield from round_trips.metrics([round_trips.measure(rack, transport, waiting, 100 * amount.rounds)])


def rtt(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    """Round trips over TCP with TLS, and of the kernels."""
    del found
    yield from round_trips_of(rack, "tcp", amount)
    yield round_trips.kernel_echo(rack, 100 * amount.rounds)


@contextlib.contextmanager
def guest_of(host: Host, config: str) -> Iterator[Guest]:
    """A guest that is gone afterwards."""
    guest = host.start_guest(config, timeout=scaled(240))
    try:
        yield guest
    finally:
        guest.destroy()


def swap(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    """dsm.swap.clusterN: what a page costs that is swapped out to the other host."""
    del found
    with (
        remote_swap.remote_disk(rack, SWAP_MIB),
        guest_of(rack.hosts[0], SWAP_GUEST) as guest,
        remote_swap.swapping(guest),
    ):
        for cluster in remote_swap.PAGE_CLUSTERS:
            before = remote_swap.swapped_in(guest)
            words = f"{amount.swapped} --pageout={remote_swap.RECLAIM}"
            output = run_membench(guest, remote_swap.limited(words, amount.pages, cluster))
            remote_swap.check_cold(output, cluster)
            read = remote_swap.swapped_in(guest) - before
            yield from touched(output, f"dsm.swap.cluster{cluster}", swapped_in_pages=read)


def figure_of(found: Sequence[Metric], name: str) -> Metric | None:
    """What was measured before in this run; None if it was not."""
    return next((metric for metric in found if metric.metric == name), None)


def value(found: Sequence[Metric], name: str) -> float | None:
    """Its value; None if it was not measured."""
    metric = figure_of(found, name)
    return metric.value if metric else None


@contextlib.contextmanager
def attached(rack: Rack, amount: Amount, transport: str) -> Iterator[tuple[spanning.Spanning, float]]:
    """A guest that has its node of the other host, and the seconds that `xl vnode-attach` took. Raises LabError."""
    with spanning.spanning(rack, amount.shape, transport) as there:
        began = time.monotonic()
        done = there.guest.attach(1, PATIENT, timeout=scaled(900))
        if done.status:
            raise CommandFailedError(f"xl vnode-attach: exit status {done.status}: {done.text}\n{there.said()}")
        yield there, time.monotonic() - began


class Trips:
    """Round trips in turn with faults, so that what is slower for a while is so for both.

    One that can't be measured takes no fault's figure: these are compared with the round trips of before, and check() says it.
    """

    def __init__(self, rack: Rack, transport: str, waiting: str, metric: str) -> None:
        self.found: list[float] = []  # medians, us
        self._problem: Exception | None = None
        self._measure = functools.partial(round_trips.measure, rack, transport, waiting, TRIPS)
        self._metric = metric
        self._before = f"dsm.rtt.{transport}.{waiting}.fault_us"

    def take(self) -> None:
        """Some round trips, now."""
        if self._problem:
            return
        try:
            self.found.append(self._measure().ns["fault"]["p50"] / 1000)
        except FAILURES as error:
            self._problem = error

    def metrics(self) -> list[Metric]:
        """What faults are to be compared with, if all could be measured."""
        if self._problem or not self.found:
            return []
        note = f"medians of {TRIPS}, before, between and after the rounds that are compared with it"
        return [from_runs(self._metric, self.found, "us", "lower", note)]

    @property
    def name(self) -> str:
        """Of the figure that faults are to be compared with."""
        return self._metric if self.metrics() else self._before

    def check(self) -> None:
        """Raises Malformed if they could not be measured."""
        if self._problem:
            raise Malformed(f"round trips in turn with faults: {self._problem}")


def added(runs: Sequence[tuple[Snapshot, membench.Output]]) -> tuple[Snapshot, membench.Output]:
    """Several runs as one."""
    return functools.reduce(lambda one, two: (one[0].plus(two[0]), one[1].plus(two[1])), runs)


def touch(there: spanning.Spanning, words: str) -> tuple[Snapshot, membench.Output]:
    """A run of dsm_membench, and what happened meanwhile. Raises CommandFailedError, Malformed."""
    before = Snapshot.take(there)
    output = run_membench(there.guest, f"{PROGRAMS}/dsm_membench {words}")
    return Snapshot.take(there).since(before), output


def _node(rack: Rack, found: Sequence[Metric], amount: Amount, transport: str) -> Iterator[Metric]:
    prefix = PREFIXES[transport]
    with attached(rack, amount, transport) as (there, took):
        yield Metric(f"{prefix}.attach.seconds", took, "s", "lower", {"mib": NODE_MIB})

        trips = Trips(rack, transport, "sleep", f"{prefix}.fault.round_trip_us")
        runs = []
        trips.take()
        for number in range(amount.rounds):
            runs.append(touch(there, f"{amount.passes} --rounds=1 --seed={number + 1}"))
            trips.take()
        counted, output = added(runs)
        membench.check_missed(output)
        yield from trips.metrics()
        known = [*found, *trips.metrics()]
        single = faults(counted, output, known, prefix, trips.name)
        yield from single
        yield from below_user_space(single[0], known, transport, prefix, trips.name)
        yield messages(counted, prefix)
        try:
            yield from touched(output, prefix)
            problem = None
        except Malformed as error:
            problem = error  # a page's time is none; a detach has its own

        seconds, moved = detach(there)
        yield Metric(
            f"{prefix}.detach.seconds", seconds, "s", "lower", {"mib": NODE_MIB, "mib_in_use": moved / 1024},
            note="xl vnode-detach of a node of which a program, which goes on, uses a part (mib_in_use); the guest moves that"
            " to node 0. Once; what a GiB costs: dsm.detach.plain.seconds_per_gib",
        )  # fmt: skip
    if problem:
        raise problem
    trips.check()


def optimised(
    there: spanning.Spanning, found: Sequence[Metric], amount: Amount, prefix: str, trips: Trips
) -> Iterator[Metric]:
    """What each switch is good for: on against off, alone and all together, in one run; all are off again afterwards."""
    off = SWITCHES["off"]
    reads: dict[str, list[tuple[Snapshot, membench.Output]]] = {}
    copied: dict[str, list[tuple[Snapshot, membench.Output]]] = {name: [] for name in SWITCHES}
    vain: dict[str, list[str]] = {}  # what a switch did not do, of reads and of copies
    for name in TURNS:
        switches = {**off, **SWITCHES[name]}
        if name not in COPIES_ONLY:
            # Round trips have both processors, as they have in the part `rtt`.
            if name == "polling":
                there.switch(off)
                trips.take()
            there.switch(switches)
            done = touch(there, f"{amount.passes} --writes=0 --rounds={amount.rounds_a_turn}")
            reads.setdefault(name, []).append(done)
            # Memory that is written at the beginning is overwritten as a whole, too: of reads the hint says nothing.
            read = {key: n for key, n in switches.items() if name == "off" or key != "clear_hint"}
            _look(vain, f"{name}, reads", read, done[0])
            if not switches["prefetch"]:
                membench.check_missed(done[1])
            if name == "polling":
                there.switch(off)
                trips.take()
        there.switch(switches)
        done = touch(there, amount.copy)
        copied[name].append(done)
        _look(vain, f"{name}, copies", switches, done[0])
        for what in ("reads", "copies"):
            if wrong := vain.get(f"off, {what}"):
                raise Malformed(f"switched off: {', '.join(wrong)}")
    there.switch(off)
    yield from trips.metrics()
    counted, output = added(reads["polling"])
    awake = sleepy(counted)
    problems = [f"switches '{name}': {', '.join(what)}" for name, what in vain.items()]
    known = [*found, *trips.metrics()]
    for figures in (
        lambda: copies(*added(copied["off"]), f"{prefix}.membench"),
        lambda: messages_of_both(added(reads["off"])[0], added(copied["off"])[0], f"{prefix}.switch.off"),
        lambda: speedups(
            {name: [each for _, each in runs] for name, runs in reads.items() if f"{name}, reads" not in vain},
            {name: [each.copies for _, each in runs] for name, runs in copied.items() if f"{name}, copies" not in vain},
            prefix,
            {name: misses_per_page(*added(runs)) for name, runs in copied.items()},
        ),
        # The same ratio as dsm.fault.ratio_to_rtt, with both ends polling in both.
        lambda: faults(counted, output, known, f"{prefix}.polling", trips.name) if "polling, reads" not in vain else (),
    ):
        try:
            for metric in figures():
                said = awake if ".polling." in metric.metric else ""
                yield dataclasses.replace(metric, note=metric.note + said)
        except Malformed as error:
            problems.append(str(error))
    if problems:
        raise Malformed("; ".join(problems))
    trips.check()


def _look(vain: dict[str, list[str]], name: str, switches: Mapping[str, int], counted: Snapshot) -> None:
    """Note what switches did not do in a run, or did though they are off."""
    if wrong := idle(switches, counted):
        vain[name] = wrong


def detach(there: spanning.Spanning, begin: Callable[[], None] | None = None, mib: int = USED_MIB) -> tuple[float, int]:
    """(seconds of `xl vnode-detach`, KiB that a program has on the node then). Raises LabError, TimeoutError, Malformed.

    `begin`: before it; the program is stopped then, and until the end. Malformed, too: less than nine tenths of the program's
    `mib` are on the node.
    """
    run = there.guest.guest
    inside = f"numactl --preferred=1 {PROGRAMS}/memcheck {mib} 1"
    pid = checked(run, f"({inside} >/tmp/memcheck.out 2>&1 & echo $!) </dev/null").strip()
    wait_for("memcheck has written all pages", 300, lambda: "ready" in run("cat /tmp/memcheck.out").out)
    moved = there.guest.resident(int(pid)).get(1, 0)
    if moved < mib * 1024 * ON_NODE:
        raise Malformed(f"a program of {mib} MiB has {moved} KiB on the node that is to be detached")
    if begin:
        checked(run, f"kill -STOP {pid}")
        begin()
    began = time.monotonic()
    done = there.guest.detach(1, PATIENT, timeout=scaled(900))
    seconds = time.monotonic() - began
    checked(run, f"kill -CONT {pid}")
    if done.status:
        raise CommandFailedError(f"xl vnode-detach: exit status {done.status}: {done.text}\n{there.said()}")
    checked(run, f"kill {pid}")
    wait_for("memcheck ends", 120, lambda: run(f"kill -0 {pid}").status != 0)
    said = checked(run, "cat /tmp/memcheck.out")
    if '"bad_pages":0}' not in said:
        raise Malformed(f"memcheck: {said[-300:]}")
    return seconds, moved


def counted_detach(there: spanning.Spanning, streams: bool, mib: int) -> tuple[float, int, Snapshot]:
    """The same as detach(), and what it costs; all pages are at their homes when it begins. Raises LabError, TimeoutError."""
    run = run_in(there.hosts[0])
    before: list[Snapshot] = []

    def begin() -> None:
        checked(run, f"dsmctl evacuate {spanning.NAME}")
        wait_for("all pages are at home", 300, lambda: not there.status()["engine"]["evacuating"])
        # Without: all of it stays, which takes back what was said before an earlier detach (dsmctl(8)).
        checked(run, f"dsmctl leaving {spanning.NAME} 1 {0 if streams else NODE_MIB * 1024}")
        before.append(Snapshot.take(there))

    seconds, moved = detach(there, begin, mib)
    return seconds, moved, Snapshot.take(there).since(before[0])


@dataclasses.dataclass(frozen=True)
class Detached:
    """One detach."""

    name: str  # with streams, or without
    mib: int  # that were to be in use
    kib: int  # that were
    seconds: float
    counted: Snapshot

    @property
    def pages(self) -> int:
        """In use."""
        return self.kib // KIB_A_PAGE


def _detach(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    done: list[Detached] = []
    problem: Exception | None = None
    try:
        with attached(rack, amount, "tcp") as (there, _):
            for turn, (name, mib) in enumerate(DETACHES):
                if turn:
                    again = there.guest.attach(1, PATIENT, timeout=scaled(900))
                    if again.status:
                        raise CommandFailedError(
                            f"xl vnode-attach: exit status {again.status}: {again.text}\n{there.said()}"
                        )
                seconds, kib, counted = counted_detach(there, name == "streamed", mib)
                if bool(counted.prefetches) != (name == "streamed"):
                    raise Malformed(f"a detach that is {name}: {counted.prefetches} pages were asked for ahead")
                done.append(Detached(name, mib, kib, seconds, counted))
    except FAILURES as error:
        problem = error  # what there is until then is kept
    slopes: dict[str, float] = {}
    for name in dict.fromkeys(each.name for each in done):
        try:
            yield from _detached([each for each in done if each.name == name], slopes)
        except Malformed as error:
            problem = problem or error
    if problem:
        raise problem
    few = {name: [each for each in done if (each.name, each.mib) == (name, FEW_MIB)] for name in slopes}
    plain, streamed = ([each.pages / each.seconds for each in few[name]] for name in ("plain", "streamed"))
    beside = {
        "plain_pages_per_second": statistics.median(plain), "streamed_pages_per_second": statistics.median(streamed),
        "least": min(streamed) / max(plain), "most": max(streamed) / min(plain),
        "stream_pages_per_second": value(found, "dsm.rtt.tcp.sleep.stream_pages_per_second") or 0.0,
    }  # fmt: skip
    yield Metric(
        "dsm.detach.speedup", statistics.median(streamed) / statistics.median(plain), "x", "higher", beside,
        note=f"streamed against plain, {FEW_MIB} MiB in use, there and back in one run, with all that a detach does besides;"
        " beside it the least and the most that any two of them say, and what the transport streams without anything else, 0:"
        " not measured",
    )  # fmt: skip
    yield Metric(
        "dsm.detach.page.speedup", slopes["plain"] / slopes["streamed"], "x", "higher",
        {f"{name}_us_per_page": 1e6 * slopes[name] for name in slopes},
        note="the same without what a detach does besides: of the slopes over what is in use",
    )  # fmt: skip


def _detached(done: Sequence[Detached], slopes: dict[str, float]) -> Iterator[Metric]:
    """Of detaches of one kind: time, and its slope over what was in use, for which `slopes` has the seconds for a page.

    Raises Malformed for a slope that is no time.
    """
    name = done[0].name
    for mib in dict.fromkeys(each.mib for each in done):
        some = [each for each in done if each.mib == mib]
        costs = {f"{key}_per_page": number / some[-1].pages for key, number in some[-1].counted.costs().items()}
        figure = from_runs(
            f"dsm.detach.{name}.{mib}_mib.seconds", [each.seconds for each in some], "s", "lower",
            "xl vnode-detach, all pages at home; what is in use moves to node 0; costs a page are those of the last run",
        )  # fmt: skip
        rate = statistics.median(each.pages / each.seconds for each in some)
        beside = {**costs, "mib": NODE_MIB, "mib_in_use": some[-1].kib / 1024, "pages_per_second": rate}
        yield dataclasses.replace(figure, baseline=beside)
    many = [each for each in done if each.mib == MANY_MIB]
    if not many or len(many) == len(done):
        return
    per_page, fixed = membench.slope((each.pages, each.seconds) for each in done)
    pairs = [membench.slope([(each.pages, each.seconds), (many[0].pages, many[0].seconds)])[0]
             for each in done if each.mib != MANY_MIB]  # fmt: skip
    slopes[name] = membench.positive_median(f"dsm.detach.{name}: seconds for a page, a slope", [per_page])
    a_gib = KIB_A_GIB // KIB_A_PAGE
    yield Metric(
        f"dsm.detach.{name}.seconds_per_gib", slopes[name] * a_gib, "s", "lower",
        {"fixed_seconds": fixed, "mib": NODE_MIB, "pages_few": done[0].pages, "pages_many": many[0].pages},
        [each * a_gib for each in pairs],
        note="what a GiB in use costs: the slope of xl vnode-detach's time over what is in use; fixed_seconds: with nothing",
    )  # fmt: skip


def node(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    """dsm.fault, dsm.page and more: a node of the other host over TCP with TLS."""
    return _node(rack, found, amount, "tcp")


def switches(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    """dsm.switch and dsm.membench: prefetch and polling against none of them."""
    trips = Trips(rack, "tcp", "poll", "dsm.polling.fault.round_trip_us")
    with attached(rack, amount, "tcp") as (there, _):
        yield from optimised(there, found, amount, "dsm", trips)


def rdma(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    """dsm.rtt.rdma and dsm.rdma: round trips and a node over Soft-RoCE."""
    spanning.with_rdma(rack)
    own = []
    for metric in round_trips_of(rack, "rdma", amount):
        own.append(metric)
        yield metric
    yield from _node(rack, [*found, *own], amount, "rdma")


Part = Callable[[Rack, Sequence[Metric], Amount], Iterator[Metric]]
PARTS: dict[str, Part] = {
    "rtt": rtt,
    "swap": swap,
    "node": node,
    "switches": switches,
    "detach": _detach,
    "rdma": rdma,
}


def compared(found: Sequence[Metric]) -> Iterator[Metric]:
    """dsm.vs_swap: swap's time for a page against DSM's, each measured in this run; with equal memory at hand.

    The ratio is to the page cluster with which swap is quicker. Above 1: DSM is quicker. DSM is as it comes, and for reads with
    all its switches on, too (dsm.vs_swap.on), where that was measured: swap's page cluster is a switch as well.

    Raises Malformed after all others for a time that is none.
    """
    problems = []
    for what in membench.WHATS:
        for order in membench.ORDERS:
            theirs = {
                f"swap_cluster{cluster}_us": metric
                for cluster in remote_swap.PAGE_CLUSTERS
                if (metric := figure_of(found, f"dsm.swap.cluster{cluster}.page.{what}_{order}_us"))
            }
            ours = {"dsm.vs_swap": f"dsm.page.{what}_{order}_us"}
            if what == "read":
                ours["dsm.vs_swap.on"] = f"dsm.switch.on.read_{order}.us"
            for prefix, name in ours.items():
                if (own := figure_of(found, name)) and theirs:
                    how = ", all switches on" if prefix.endswith(".on") else ""
                    note = f"{what}s in {order} order, equal memory at hand, swap by nbd over TCP without TLS{how}"
                    doubt = in_doubt(*(each.baseline for each in (own, *theirs.values())))
                    try:
                        us = {
                            key: membench.positive_median(each.metric, [] if each.value is None else [each.value])
                            for key, each in {"dsm_us": own, **theirs}.items()
                        }
                    except Malformed as error:
                        problems.append(str(error))
                        continue
                    ratio = min(us[key] for key in theirs) / us["dsm_us"]
                    figure = Metric(f"{prefix}.{what}_{order}.ratio", ratio, "x", "higher", us, note=note + doubt)
                    yield figure
                    if figure.metric == "dsm.vs_swap.read_random.ratio":
                        yield dataclasses.replace(figure, metric="dsm.vs_swap.ratio")
    if problems:
        raise Malformed("; ".join(problems))


def measure(rack: Rack, names: Sequence[str], amount: Amount, add: Callable[[Metric], Sequence[Metric]]) -> list[str]:
    """Run parts, one after the other; `add` is told each figure, and says what there is. Returns what failed, a line each.

    A figure that `add` refuses with InvalidResult is left out; the others are not.
    """
    found: Sequence[Metric] = []
    failed: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="xenuma-bench.") as scratch:
        folder = Path(scratch)
        host_programs.build(folder)
        round_trips.prepare(folder)
        host_programs.install(rack.hosts[:2], folder)

    def fail(name: str, error: Exception) -> None:
        failed.append((name, str(error)))
        print(f"dsm: {name}: {error}", file=sys.stderr, flush=True)

    def take(name: str, figures: Iterable[Metric]) -> None:
        nonlocal found
        try:
            for metric in figures:
                try:
                    found = add(metric)
                except InvalidResult as error:
                    fail(name, error)
        except FAILURES as error:
            fail(name, error)

    try:
        for name in names:
            print(f"dsm: {name}", flush=True)
            take(name, PARTS[name](rack, found, amount))
    finally:
        take("compared", compared(found))
        # So that who reads the figures sees which are not there; a run without any leaves the file of the run before.
        problems: dict[str, list[str]] = {}
        for name, error in failed:
            problems.setdefault(name, []).append(error)
        for name, errors in problems.items() if found else ():
            add(Metric(f"dsm.part.{name}", None, "1", note="; ".join(errors)[:1000]))
    return [f"{name}: {error}" for name, error in failed]


def show(metric: Metric) -> None:
    """A line for who waits."""
    beside = ", ".join(f"{key} {number:.4g}" for key, number in metric.baseline.items() if not isinstance(number, str))
    figure = "not measured" if metric.value is None else f"{metric.value:.5g} {metric.unit}"
    print(f"  {metric.metric} {figure}  {beside}", flush=True)


def main(arguments: Sequence[str] = ()) -> int:
    """Boot, or use a rack that runs; measure, write build/results/dsm.json."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.dsm", description="Memory from another machine, measured.")
    parser.add_argument("--use", metavar="RACK", help="a rack that runs already, with two hosts")
    parser.add_argument("--pages", type=int, default=Amount.pages, help="memory at hand, 96 to 4096 (%(default)s)")
    parser.add_argument("--rounds", type=int, default=Amount.rounds, help="of each measurement, 1 to 100 (%(default)s)")
    named = f"{', '.join(PARTS)}; all, if none is named"
    parser.add_argument("parts", nargs="*", type=one_of(PARTS), metavar="PART", help=named)
    options = parser.parse_args(arguments)
    if not 96 <= options.pages <= 4096 or not 1 <= options.rounds <= 100:
        parser.error(f"--pages={options.pages} --rounds={options.rounds}: want 96 to 4096, and 1 to 100")
    amount = Amount(options.pages, options.rounds)
    if len(set(options.parts)) < len(options.parts):
        parser.error(f"{' '.join(options.parts)}: each part once")
    failed: list[str] = []
    # What else the machine does: of the last five minutes, before the lab begins.
    result = Growing("dsm", host={"load_before": round(os.getloadavg()[1], 2)})

    def add(metric: Metric) -> Sequence[Metric]:
        there = result.add(metric)
        show(metric)
        return there

    try:
        booted = Rack.attach(options.use) if options.use else Rack.boot(RackDescription.load("two-hosts"), meter=False)
        with booted as rack:
            failed = measure(rack, options.parts or list(PARTS), amount, add)
    except FAILURES as error:
        failed.append(str(error))
        print(f"dsm: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
