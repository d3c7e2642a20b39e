# SPDX-License-Identifier: GPL-2.0
"""The demo's timeline, and the verdict on it: plain data and plain functions, no lab.

All times are seconds of the guest's CLOCK_REALTIME. Four windows are looked at:

    before    the program runs on node 0, until the operator attaches node 1
    attached  right after the attach: the program takes up the new CPUs and its memory moves
    settled   the last seconds before the detach
    detached  after the detach, until the program is stopped
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from benchmarks.program_output import Iteration, Sample, StreamRun
from benchmarks.results import Metric
from lab.guestview import GuestNode

WINDOWS = ("before", "attached", "settled", "detached")
SETTLED_REMOTE_PCT = 3.0  # share of remote accesses that counts as "memory moved to the threads"; 0.5 is usual
MOVED_SHARE = 0.25  # share of the program's memory that must be on the new node
STRAY_KIB = 64  # the program's memory on a node that is gone: none, but for a sample under way


@dataclasses.dataclass(frozen=True)
class Mark:
    """Something that happened at time `t`: what the operator typed, or what the guest reported."""

    t: float
    text: str
    kind: str = "operator"  # operator, guest, lab


@dataclasses.dataclass(frozen=True)
class Reading:
    """What the NUMA meter counted from `t0` to `t1`: accesses of user programs to memory, local and remote."""

    t0: float
    t1: float
    local: int
    remote: int

    @property
    def remote_pct(self) -> float | None:
        """Share of remote accesses; None if nothing was counted."""
        total = self.local + self.remote
        return 100.0 * self.remote / total if total else None


@dataclasses.dataclass
class Timeline:
    """All that the demo saw. `windows` maps each name of WINDOWS to its begin and end."""

    iterations: Sequence[Iteration] = ()
    samples: Sequence[Sample] = ()
    marks: Sequence[Mark] = ()
    readings: Mapping[str, Reading] = dataclasses.field(default_factory=dict)
    windows: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)

    def iterations_in(self, window: str) -> list[Iteration]:
        """The iterations that began and ended in a window; none if there was no such window."""
        begin, end = self.windows.get(window, (0.0, 0.0))
        return [i for i in self.iterations if i.t - i.ms / 1e3 >= begin and i.t <= end]

    def samples_in(self, window: str) -> list[Sample]:
        """The samples taken in a window; none if there was no such window."""
        begin, end = self.windows.get(window, (0.0, 0.0))
        return [s for s in self.samples if begin <= s.t <= end]


@dataclasses.dataclass(frozen=True)
class Check:
    """One thing that must hold: what, whether it does, and the numbers that say so."""

    what: str
    ok: bool
    detail: str


@dataclasses.dataclass(frozen=True)
class Program:
    """A run of the second program, from Debian: its exit status, and its answer next to the reference's."""

    name: str
    status: int
    answer: str
    reference: str


@dataclasses.dataclass
class Evidence:
    """Everything the verdict is made of. `vnode` is the elastic node, `home_cpus`/`all_cpus` the sizes of the team.

    `numactl` holds the nodes that the guest listed in each window; `wanted` the reference run of stream_check with
    the same number of iterations; `residual_kib` what the guest said after the detach.
    """

    vnode: int
    home_cpus: int
    all_cpus: int
    timeline: Timeline
    run: StreamRun
    wanted: StreamRun
    numactl: Mapping[str, Mapping[int, GuestNode]]
    residual_kib: int
    programs: Sequence[Program] = ()
    phases: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    teams: Mapping[str, Sequence[int]] = dataclasses.field(default_factory=dict)  # of the second program, by window
    sections: Sequence[int] = ()  # numbers of its sections: with OMP_DYNAMIC, no team of theirs has more threads


def _threads(evidence: Evidence, window: str, want: int) -> Check:
    sizes = [i.threads for i in evidence.timeline.iterations_in(window)]
    what = f"{window}: the team has {want} threads"
    if not sizes:
        return Check(what, False, "no iteration ended in this window")
    return Check(what, all(size == want for size in sizes), f"{len(sizes)} iterations with {_span(sizes)} threads")


def _program_threads(evidence: Evidence, window: str, want: int) -> Check:
    """The second program's teams, from the one that it had when the window began, or soon after."""
    sizes = evidence.teams.get(window, ())
    what = f"{window}: the second program's team has {want} threads"
    if not sizes:
        return Check(what, False, "it said of none")
    legal = {want, *(min(want, number) for number in evidence.sections)}
    return Check(what, want in sizes and legal.issuperset(sizes), f"{_span(sizes)} threads")


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _moved_there(evidence: Evidence) -> Check:
    what = f"settled: at least {MOVED_SHARE:.0%} of the program's memory is on node {evidence.vnode}"
    samples = evidence.timeline.samples_in("settled")
    if not samples:
        return Check(what, False, "no sample was taken")
    there, total = samples[-1].on("kib", evidence.vnode), sum(samples[-1].kib)
    return Check(what, total > 0 and there >= MOVED_SHARE * total, f"{there // 1024} of {total // 1024} MiB")


def _moved_back(evidence: Evidence) -> Check:
    what = f"detached: none of the program's memory is on node {evidence.vnode}"
    samples = evidence.timeline.samples_in("detached")
    if not samples:
        return Check(what, False, "no sample was taken")
    there, total = samples[-1].on("kib", evidence.vnode), sum(samples[-1].kib)
    return Check(what, total > 0 and there <= STRAY_KIB, f"{there} KiB there, {total // 1024} MiB in all")


def _remote(evidence: Evidence) -> Check:
    what = f"settled: at most {SETTLED_REMOTE_PCT:.0f} % of the accesses are remote"
    reading = evidence.timeline.readings.get("settled")
    share = reading.remote_pct if reading else None
    if share is None:
        return Check(what, False, "the meter counted nothing")
    return Check(what, share <= SETTLED_REMOTE_PCT, f"{share:.1f} %")


def _listed(evidence: Evidence) -> list[Check]:
    node = evidence.vnode
    checks = []
    for window, want in (("before", False), ("settled", True), ("detached", False)):
        nodes = evidence.numactl.get(window, {})
        is_there = node in nodes
        what = f"{window}: numactl -H lists {'' if want else 'no '}node {node}"
        checks.append(Check(what, bool(nodes) and is_there == want, f"nodes {', '.join(map(str, nodes)) or 'unknown'}"))
    cpus = evidence.numactl.get("settled", {}).get(node)
    want_cpus = evidence.all_cpus - evidence.home_cpus
    checks.append(
        Check(
            f"settled: node {node} has {want_cpus} CPUs",
            cpus is not None and len(cpus.cpus) == want_cpus,
            f"CPUs {', '.join(map(str, cpus.cpus)) if cpus else 'none'}",
        )
    )
    return checks


def right_result(run: StreamRun, wanted: StreamRun) -> list[Check]:
    """What has to hold of a run of stream_check, next to one without changes."""
    count = len(run.iterations)
    return [
        Check(
            "stream_check ended and found each word of its arrays right",
            run.wrong_words == 0,
            f"{run.wrong_words} wrong words" if run.wrong_words is not None else "it did not print a result",
        ),
        Check(
            "its checksum is that of a run without changes",
            run.checksum is not None and run.checksum == wanted.checksum and count == len(wanted.iterations),
            f"{run.checksum} after {count} iterations, reference {wanted.checksum} after {len(wanted.iterations)}",
        ),
        Check(
            "so is the sum after each iteration",
            [i.sum for i in run.iterations] == [i.sum for i in wanted.iterations],
            f"{count} sums compared",
        ),
    ]


def _result(evidence: Evidence) -> list[Check]:
    checks = right_result(evidence.run, evidence.wanted)
    for program in evidence.programs:
        checks.append(
            Check(
                f"{program.name} ended well with the answer of a run without changes",
                program.status == 0 and bool(program.answer) and program.answer == program.reference,
                f"exit {program.status}, answer {program.answer or 'none'!s:.60}, "
                f"reference {program.reference or 'none'!s:.60}",
            )
        )
    return checks


def verdict(evidence: Evidence) -> list[Check]:
    """Each thing the demo has to show, in the order in which it happens. It passed if all are ok."""
    return [
        _threads(evidence, "before", evidence.home_cpus),
        _threads(evidence, "settled", evidence.all_cpus),
        _threads(evidence, "detached", evidence.home_cpus),
        _program_threads(evidence, "before", evidence.home_cpus),
        _program_threads(evidence, "settled", evidence.all_cpus),
        _program_threads(evidence, "detached", evidence.home_cpus),
        *_listed(evidence),
        _moved_there(evidence),
        _remote(evidence),
        _moved_back(evidence),
        Check("nothing of the node was left over", evidence.residual_kib == 0, f"{evidence.residual_kib} KiB residual"),
        *_result(evidence),
    ]


def _window_metrics(timeline: Timeline) -> list[Metric]:
    metrics = []
    for window in WINDOWS:
        iterations = timeline.iterations_in(window)
        if window != "settled":
            sizes = [float(i.threads) for i in iterations]
            metrics.append(
                Metric(
                    f"demo.threads.{window}",
                    sizes[-1] if sizes else None,
                    "1",
                    runs=sizes,
                    note="size of the team in the window's last iteration"
                    if sizes
                    else "no iteration ended in this window",
                )
            )
        reading = timeline.readings.get(window)
        share = reading.remote_pct if reading else None
        counts: dict[str, float | str] = {"local": reading.local, "remote": reading.remote} if reading else {}
        metrics.append(
            Metric(
                f"demo.remote_pct.{window}",
                share,
                "%",
                "lower",
                counts,
                note="" if share is not None else "the meter counted nothing",
            )
        )
        times = [i.ms for i in iterations]
        metrics.append(
            Metric(
                f"demo.iteration_ms.{window}",
                statistics.median(times) if times else None,
                "ms",
                "lower",
                runs=times,
                note="median; an emulator's time, on as many emulated as real processors or more"
                if times
                else "no iteration ended in this window",
            )
        )
    return metrics


def metrics(evidence: Evidence) -> list[Metric]:
    """The demo's figures, under the names that the project fixed for them."""
    found = _window_metrics(evidence.timeline)
    for operation in ("attach", "detach"):
        seconds = evidence.seconds.get(operation)
        found.append(
            Metric(
                f"{operation}.seconds",
                seconds,
                "s",
                "lower",
                note=f"xl vnode-{operation}, from start to exit" if seconds is not None else "did not end",
            )
        )
        found += [
            Metric(f"{operation}.{phase}.seconds", value, "s", "lower", note="as the guest's driver measured it")
            for phase, value in evidence.phases.get(operation, {}).items()
        ]
    found.append(Metric("detach.residual_kib", float(evidence.residual_kib), "KiB", "lower"))
    for node in (0, evidence.vnode):
        for window in WINDOWS:
            samples = evidence.timeline.samples_in(window)
            kib = [float(s.on("kib", node)) for s in samples]
            found.append(
                Metric(
                    f"demo.resident_kib.node{node}.{window}",
                    kib[-1] if kib else None,
                    "KiB",
                    runs=kib,
                    note="" if kib else "no sample",
                )
            )
    return found
