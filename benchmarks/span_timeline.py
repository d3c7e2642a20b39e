# SPDX-License-Identifier: GPL-2.0
"""The timeline of one Linux on two hosts, and the verdict on it: plain data and plain functions, no lab.

Times are seconds of the machine that the lab runs on, which are those of the hosts, but for what the guest says: its clock is
`slow` times slower. Each stretch of the run has its name in WINDOWS.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.demo_parts import per_second
from benchmarks.program_output import StreamRun, parse_stream
from benchmarks.results import Metric
from benchmarks.timeline import Check, Mark, right_result
from lab.errors import LabError, Malformed
from lab.guestview import GuestNode, parse_numa_maps
from lab.span_guest import cpus_of_threads, where_question

WINDOWS = {
    "before": "at home, before the attach",
    "attach": "xl vnode-attach is under way",
    "growing": "until the team is on both hosts",
    "both": "on both hosts",
    "counted": "on both hosts, pages are counted",
    "detach": "xl vnode-detach is under way",
    "shrinking": "until the team is at home",
    "after": "at home again",
}
STEADY = ("before", "both", "after")  # stretches in which nothing changes, and the program is looked at
TEAMS = 3  # so many iterations in a row have the team that is waited for
MOVED = 3  # a third of the arrays, at least, on the new node: half of them is what moves
HOME, AWAY = 0, 1
PLACES = ("home", "away")


@dataclasses.dataclass(frozen=True)
class Counts:
    """Of the guest's dsmd at one host, since it began: faults, messages both ways; and now: pages of the other host that
    are here, and pages of this host that are elsewhere."""

    faults: int
    messages: int
    here: int
    elsewhere: int


def counts_of(status: Mapping[str, Any]) -> Counts | None:
    """From `dsmctl -j status`; None if there is no dsmd, or one that has not begun to work.

    Raises Malformed, LabError for a guest that has failed.
    """
    if status.get("state") == "failed":
        raise LabError(f"the guest has failed: {status.get('failure')}")
    if "engine" not in status:
        return None
    try:
        engine, peers = status["engine"], status["peers"].values()
        return Counts(
            int(status["read_faults"]) + int(status["write_faults"]),
            sum(int(peer["sent"]) + int(peer["received"]) for peer in peers),
            int(engine["frames_used"]),
            int(engine["elsewhere"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Malformed(f"dsmctl: {str(status)[:300]}") from error


@dataclasses.dataclass(frozen=True)
class Program:
    """The program at one time: threads that ran at home and away, the teams of its last iterations, how many these were, and
    its KiB on node 0 and node 1."""

    threads: tuple[int, int]
    teams: tuple[int, ...]
    iterations: int
    kib: tuple[int, int]

    def has_team(self, threads: int) -> bool:
        """Had the last iterations so many threads?"""
        return len(self.teams) == TEAMS and set(self.teams) == {threads}


CUT = "\n=====\n"


def program_question(pid: int, stream: str) -> str:
    """One command for all that program_of() wants: each question costs the guest pages."""
    cut = f"echo; echo {CUT.strip()}"
    said = f"head -n 1 {stream}; tail -n {TEAMS + 1} {stream}"
    return f"cat /proc/{pid}/numa_maps; {cut}; {where_question(pid)}; {cut}; {said}"


def program_of(text: str, home_cpus: Sequence[int]) -> Program:
    """From what program_question() prints. Raises Malformed, LabError if there is no such program."""
    parts = text.split(CUT)
    if len(parts) != 3:
        raise Malformed(f"{len(parts)} answers, not 3: {text[:300]!r}")
    kib, run = parse_numa_maps(parts[0]), parse_stream(parts[2])
    cpus = cpus_of_threads(parts[1].strip())
    if not cpus:
        raise LabError(f"the program has ended: {parts[2][-300:]!r}")
    at_home = sum(cpu in home_cpus for cpu in cpus)
    last = run.iterations[-TEAMS:]
    return Program(
        (at_home, len(cpus) - at_home),
        tuple(each.threads for each in last),
        last[-1].n if last else 0,
        (kib.get(0, 0), kib.get(1, 0)),
    )


@dataclasses.dataclass(frozen=True)
class Look:
    """What was seen at one time: dsmd's counters at either host, and the program, unless nobody asked the guest."""

    t: float
    hosts: tuple[Counts | None, Counts | None]
    program: Program | None = None


@dataclasses.dataclass(frozen=True)
class Page:
    """One that bounces, as a host sees it: its number, the kernel's name of it, and events, as dsmctl(8) has them."""

    gfn: int
    symbol: str
    reads: int
    writes: int
    taken: int
    per_second: float


def pages_of(text: str) -> list[Page]:
    """From `dsmctl -j top`. Raises Malformed."""
    try:
        rows = json.loads(text)["pages"]
        return [
            Page(
                int(row["gfn"]),
                str(row["symbol"]),
                int(row["reads"]),
                int(row["writes"]),
                int(row["taken"]),
                float(row["per_second"]),
            )
            for row in rows
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise Malformed(f"dsmctl top: {text[:300]!r}") from error


def fault_times(status: Mapping[str, Any]) -> Mapping[str, float]:
    """Median and p99 in ms of a fault that reads, by dsmd's clock, from its status. Raises Malformed."""
    try:
        read = status["read_fault"]
        return {"p50": int(read["median_ns"]) / 1e6, "p99": int(read["p99_ns"]) / 1e6}
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(f"dsmctl: {str(status)[:300]}") from error


@dataclasses.dataclass
class Evidence:
    """All that a run has seen, as far as it came. `cpus`: of each host; `hosts`: their names, the home first."""

    slow: int
    mib: int
    cpus: int = 1
    hosts: tuple[str, str] = ("home", "away")
    windows: dict[str, list[Look]] = dataclasses.field(default_factory=lambda: {name: [] for name in WINDOWS})
    operations: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    phases: dict[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)  # seconds of the guest's clock
    marks: list[Mark] = dataclasses.field(default_factory=list)
    numactl: dict[str, Mapping[int, GuestNode]] = dataclasses.field(default_factory=dict)  # by window
    listed: dict[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)  # vnode 1's host, by window
    pages: dict[str, Sequence[Page]] = dataclasses.field(default_factory=dict)  # that bounce, by host
    fault_ms: dict[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)  # by host
    state_after: str = ""  # of the vnode
    residual_kib: int | None = None
    slices_after: int | None = None  # of the guest, at the other host
    complaints: Sequence[str] | None = None  # of the guest's kernel
    run: StreamRun | None = None
    wanted: StreamRun | None = None
    left_nothing: bool = False

    def looks(self) -> list[Look]:
        """All of them, in order."""
        return [look for looks in self.windows.values() for look in looks]

    def programs(self, window: str) -> list[Program]:
        """What was seen of the program there."""
        return [look.program for look in self.windows[window] if look.program]

    def counted(self, host: int, what: str, window: str | None = None) -> list[tuple[float, int] | None]:
        """(second, count) of each look, None where there was no dsmd at that host."""
        found = []
        for look in self.looks() if window is None else self.windows[window]:
            counts = look.hosts[host]
            found.append((look.t, int(getattr(counts, what))) if counts else None)
        return found

    def rate(self, window: str, host: int, what: str) -> float | None:
        """Faults or messages a second of a host in a stretch."""
        return per_second([each for each in self.counted(host, what, window) if each])

    def iteration_ms(self, window: str) -> list[float]:
        """Times of the iterations that began and ended there, by the guest's clock."""
        seen = self.programs(window)
        if not self.run or len(seen) < 2:
            return []
        return [each.ms for each in self.run.iterations if seen[0].iterations < each.n <= seen[-1].iterations]

    def cpus_there(self, window: str) -> tuple[int, ...]:
        """CPUs that run at the other host, as xl lists them."""
        return tuple(self.listed.get(window, {}).get("cpus") or ())

    def clock(self) -> str:
        """Whose seconds the lab's are, in words."""
        return f"hosts' clock; the guest's is {self.slow} times slower"


def _where(seen: Evidence, window: str, away: int) -> list[Check]:
    """The team, and where its threads ran last."""
    threads = seen.cpus + away
    looks = seen.programs(window)
    teams = sorted({team for look in looks for team in look.teams})
    team = Check(
        f"{WINDOWS[window]}: the team has {threads} thread{'s'[: threads > 1]}",
        bool(looks) and teams == [threads],
        f"{', '.join(map(str, teams)) or 'none'} in {len(looks)} looks",
    )
    words = f"{seen.cpus} at {seen.hosts[HOME]}, {away} at {seen.hosts[AWAY]}"
    where = Check(
        f"{WINDOWS[window]}: threads are {words}",
        bool(looks) and looks[-1].threads[HOME] >= seen.cpus and looks[-1].threads[AWAY] == away,
        "{} and {}".format(*looks[-1].threads) if looks else "not seen",
    )
    return [team, where]


def _nodes(seen: Evidence, window: str, wanted: Mapping[int, tuple[int, ...]]) -> Check:
    nodes = seen.numactl.get(window, {})
    found = {node.number: node.cpus for node in nodes.values()}
    shown = "; ".join(f"node {number}: CPUs {' '.join(map(str, cpus)) or 'none'}" for number, cpus in found.items())
    what = "each host as a node with its CPUs" if len(wanted) > 1 else "one node"
    return Check(f"{WINDOWS[window]}: numactl -H lists {what}", found == wanted, shown or "not seen")


def verdict(seen: Evidence) -> list[Check]:
    """What had to hold."""
    home, away = tuple(range(seen.cpus)), tuple(range(seen.cpus, 2 * seen.cpus))
    at_home, on_both = {HOME: home}, {HOME: home, AWAY: away}
    there = seen.listed.get("both", {})
    both, after = seen.programs("both"), seen.programs("after")
    most = max((look.kib[AWAY] for look in both), default=0)
    left = after[-1].kib[AWAY] if after else None
    wanted_kib = seen.mib * 1024 // MOVED
    rates = [seen.rate(window, host, "faults") for window in ("both", "counted") for host in (HOME, AWAY)]
    served = [sum(rate or 0 for rate in rates[host::2]) for host in (HOME, AWAY)]
    wrong = seen.complaints
    run, wanted = (each or StreamRun(0, seen.mib, (), None, None) for each in (seen.run, seen.wanted))
    return [
        _nodes(seen, "before", at_home),
        *_where(seen, "before", 0),
        Check(
            f"xl vnode-list: the link is up, and vnode 1's CPUs run at {seen.hosts[AWAY]}",
            there.get("link") == "up" and seen.cpus_there("both") == away,
            f"link {there.get('link')}, CPUs {there.get('cpus')}" if there else "not seen",
        ),
        _nodes(seen, "both", on_both),
        *_where(seen, "both", seen.cpus),
        Check(
            "on both hosts: the program's memory has come to its thread there",
            most >= wanted_kib,
            f"{most} KiB on node 1, at least {wanted_kib}",
        ),
        Check(
            "on both hosts: pages go both ways",
            all(served),
            " and ".join(f"{rate:.3g}" for rate in served) + " faults/s",
        ),
        _nodes(seen, "after", at_home),
        *_where(seen, "after", 0),
        Check(
            "at home again: none of the program's memory is there",
            left == 0,
            "not seen" if left is None else f"{left} KiB",
        ),
        Check(
            f"the detach left nothing at {seen.hosts[AWAY]}",
            (seen.state_after, seen.residual_kib, seen.slices_after) == ("offline", 0, 0)
            and not seen.cpus_there("after"),
            f"node {seen.state_after or 'not seen'}, {seen.residual_kib} KiB residual, {seen.slices_after} slices, "
            f"CPUs {seen.cpus_there('after')}",
        ),
        *right_result(run, wanted),
        Check(
            "the guest's kernel complains of nothing",
            wrong == [],
            "not asked" if wrong is None else "; ".join(wrong[:3]) or "of nothing",
        ),
        Check(
            "no host has anything left of the guest", seen.left_nothing, "nothing" if seen.left_nothing else "not seen"
        ),
    ]


def metrics(seen: Evidence) -> list[Metric]:
    """What was measured; what was not is not there. Each time says whose clock it is by."""
    hosts, guest = f"by the {seen.clock()}", f"by the guest's clock, {seen.slow} times slower than the hosts'"
    slow: dict[str, float | str] = {"slow": float(seen.slow)}
    found = [
        Metric(
            "demo_span.slow", float(seen.slow), "x", note="the guest's clock is so many times slower than the hosts'"
        )
    ]
    for name, (begin, end) in seen.operations.items():
        found.append(Metric(f"demo_span.{name}.seconds", end - begin, "s", "lower", slow, note=hosts))
    for name, phases in seen.phases.items():
        for phase, seconds in phases.items():
            key = f"demo_span.{name}.{phase.replace('-', '_')}.guest_seconds"
            found.append(Metric(key, seconds, "s", "lower", slow, note=guest))
    for window in STEADY:
        if programs := seen.programs(window):
            found.append(Metric(f"demo_span.threads.{window}", float(sum(programs[-1].threads)), "1"))
        if times := seen.iteration_ms(window):
            median = statistics.median(times)
            beside = {**slow, "by_the_hosts": median * seen.slow}
            found.append(Metric(f"demo_span.iteration_ms.{window}", median, "ms", "lower", beside, times, guest))
        for host, place in enumerate(PLACES):
            for what in ("faults", "messages"):
                if (rate := seen.rate(window, host, what)) is not None:
                    key = f"demo_span.{what}_per_second.{place}.{window}"
                    found.append(Metric(key, rate, "1/s", baseline=slow, note=hosts))
    for name, times_of in seen.fault_ms.items():
        place = PLACES[seen.hosts.index(name)]
        found += [
            Metric(f"demo_span.read_fault_ms.{place}.{key}", ms, "ms", "lower", slow, note=hosts)
            for key, ms in times_of.items()
        ]
    return found
