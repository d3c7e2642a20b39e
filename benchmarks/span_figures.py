# SPDX-License-Identifier: GPL-2.0
"""Figures of one Linux on two hosts, from what was seen: plain data and plain functions, no lab (decision 0137).

Every time here is of the hosts' clock: what a guest says was multiplied by how much slower its clock is. Two hosts of the lab
share two real processors, so more CPUs make nothing quicker there: what counts are counts, and ratios of one run.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.membench import Copy
from benchmarks.results import Metric, from_runs
from benchmarks.span_counts import AWAY, HERE, HOME, PLACES, Counts, HostCounts, Line
from benchmarks.span_output import Calls, Kv
from lab.errors import Malformed

ETRI_KV = 1.23  # an in-memory key-value store, all off against all on; ETRI Journal 2024
# What of the key-value store is on: dsmd's switches, and shards that are pages. There and back, over the rounds.
KV_SETTINGS = ("off", "switches", "layout", "on")
# Whose pages a far CPU writes first: those of a node that its own host is home of, or those of the guest's first host.
OWNERS = ("node", "home")
LEAST_DONE = 0.5  # of calls that count as such: a CPU that runs something else at the moment need not be interrupted
NOT_KNOWN = "not known"
LEAST_FORWARDED = 0.9  # of calls: programs that end, too, make some
LIMITS = "the lab's hosts are emulated and share two real processors"
TIMES = ("s", "ms", "us", "1/s")


@dataclasses.dataclass(frozen=True)
class KernelRun:
    """One run of an OpenMP program, at home alone or on both hosts.

    `ms`: of each iteration; `counts`: of the whole program, with preparation and verification; `cut`: its time was over first.
    """

    program: str
    both: bool
    threads: int
    ms: tuple[float, ...]
    counts: Counts
    cut: bool = False


@dataclasses.dataclass(frozen=True)
class KvRun:
    """One run of the store; `setting` is one of KV_SETTINGS, or "home": one host."""

    setting: str
    kv: Kv
    counts: Counts


@dataclasses.dataclass(frozen=True)
class OwnershipRun:
    """Map, populate and memcpy by a CPU of the other host; `owner` is one of OWNERS."""

    owner: str
    copy: Copy
    counts: Counts

    def pages(self) -> int:
        """That were written first."""
        return self.copy.threads * self.copy.mib * 256

    def page_us(self, slow: int) -> float:
        """Of all three steps, by the hosts' clock."""
        return self.copy.total_ns * slow / self.pages() / 1000


@dataclasses.dataclass(frozen=True)
class CallsRun:
    """What a program measured of calls between CPUs, or to Xen; `pause_ns`: of the guest, after each."""

    calls: Calls
    counts: Counts
    pause_ns: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """What, and at which host's CPU it was called; places are numbered as PLACES are."""
        return self.calls.what, AWAY if self.calls.cpus[0] else HOME

    def total_ns(self) -> int:
        """Of all calls, and their ways back."""
        return sum(self.calls.ns) + sum(self.calls.back_ns)

    def whole_ns(self) -> int:
        """Of all calls, with what is between them: meetings, or pauses, of as long as was asked for."""
        return self.total_ns() + sum(self.calls.met_ns) + self.pause_ns * len(self.calls.ns)


@dataclasses.dataclass(frozen=True)
class Operation:
    """An attach or a detach: seconds of the whole command, of xl's phases and of the guest's. `home`: what it has
    counted meanwhile, if that is known."""

    name: str
    seconds: float
    xl: Mapping[str, float]
    guest: Mapping[str, float]
    home: HostCounts | None


@dataclasses.dataclass
class Seen:
    """All that a run has seen, as far as it came. `cpus`: of each host."""

    slow: int
    cpus: int = 1
    kernels: list[KernelRun] = dataclasses.field(default_factory=list)
    kv: list[KvRun] = dataclasses.field(default_factory=list)
    ownership: list[OwnershipRun] = dataclasses.field(default_factory=list)
    calls: list[CallsRun] = dataclasses.field(default_factory=list)
    operations: list[Operation] = dataclasses.field(default_factory=list)
    lines: list[Line] = dataclasses.field(default_factory=list)  # one for each time that the hosts were connected
    missing: dict[str, list[str]] = dataclasses.field(default_factory=dict)  # why, by part


def spread(metric: Metric) -> Metric:
    """The figure, with the least and the most of its runs beside it."""
    if not metric.runs:
        return metric
    beside = {"least": min(metric.runs), "most": max(metric.runs)}
    return dataclasses.replace(metric, baseline={**metric.baseline, **beside})


def ratio(metric: str, above: Sequence[float], below: Sequence[float], better: str, note: str) -> Metric:
    """Median over median; `runs`: each over each. Raises Malformed if a run is not above 0, or there is none."""
    if not above or not below or min((*above, *below)) <= 0:
        raise Malformed(f"{metric}: {list(above)} over {list(below)} is no ratio")
    each = [one / other for one in above for other in below]
    if min(each) < 1 < max(each):
        note += "; not known to be more than two runs of one setting differ"
    elif len(above) == 1 or len(below) == 1:
        note += "; of one run: by how much two of one setting differ is not known"
    beside = {"runs_above": float(len(above)), "runs_below": float(len(below))}
    return spread(Metric(metric, statistics.median(above) / statistics.median(below), "x", better, beside, each, note))


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that so much of all is not above. Raises Malformed for nothing."""
    if not values:
        raise Malformed("a quantile of nothing")
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def mean_costs(counts: Sequence[Counts], per: float, what: str) -> dict[str, float | str]:
    """Counts of all runs, for each of `per` in all."""
    whole = Counts()
    for each in counts:
        whole = whole.plus(each)
    return {f"{key}_per_{what}": number / per for key, number in whole.costs().items()}


# ---- OpenMP programs ----


def kernels(seen: Seen) -> Iterator[Metric]:
    """span.PROGRAM: times of an iteration on one host and on two, what the second one makes of it, and what it costs."""
    for program in dict.fromkeys(run.program for run in seen.kernels):
        times: dict[bool, list[float]] = {}
        for both in (False, True):
            runs = [run for run in seen.kernels if run.program == program and run.both == both]
            if not runs:
                continue
            times[both] = [statistics.median(run.ms) for run in runs]
            place, iterations = "both" if both else "home", sum(len(run.ms) for run in runs)
            cut = sum(run.cut for run in runs)
            note = f"median iteration of each run, {runs[0].threads} threads; {LIMITS}"
            note += f"; {cut} of {len(runs)} runs were cut off, and so not verified" if cut else "; all verified"
            figure = from_runs(f"span.{program}.{place}.ms", times[both], "ms", "lower", note)
            beside = mean_costs([run.counts for run in runs], iterations, "iteration")
            yield spread(dataclasses.replace(figure, baseline={**beside, "iterations": iterations / len(runs)}))
            if both:
                for what in ("faults", "messages", "bytes"):
                    each = [run.counts.total(what) / len(run.ms) for run in runs]
                    words = "of both hosts, whole program by its iterations: preparation is in it"
                    yield spread(from_runs(f"span.{program}.{what}_per_iteration", each, "1", "lower", words))
        if len(times) == 2:
            yield speedup(seen, program)


def speedup(seen: Seen, program: str) -> Metric:
    """What the second host makes of an iteration; of the same iterations, where a run was cut off."""
    runs = [run for run in seen.kernels if run.program == program]
    same = min(len(run.ms) for run in runs)
    home, away = ([statistics.median(run.ms[:same]) for run in runs if run.both == both] for both in (False, True))
    note = f"one host with {seen.cpus} CPUs over two with {2 * seen.cpus}: the first {same} iterations of each run; {LIMITS}"
    figure = ratio(f"span.{program}.speedup", home, away, "higher", note)
    return dataclasses.replace(figure, baseline={**figure.baseline, "iterations": float(same)})


# ---- The key-value store ----


def store(seen: Seen) -> Iterator[Metric]:
    """span.kv: operations a second by setting, and what switches, layout, and both make of it."""
    rates: dict[str, list[float]] = {}
    for setting in ("home", *KV_SETTINGS):
        runs = [run for run in seen.kv if run.setting == setting]
        if not runs:
            continue
        rates[setting] = [run.kv.per_second("mix", seen.slow) for run in runs]
        operations = sum(sum(run.kv.ops.values()) for run in runs)
        beside = mean_costs([run.counts for run in runs], operations, "operation")
        for key in ("p50_ns", "p99_ns"):
            values = [getattr(thread, key) / 1000 * seen.slow for run in runs for thread in run.kv.threads]
            beside[f"{key.removesuffix('_ns')}_us"] = statistics.median(values)
        beside["load_per_second"] = statistics.median(run.kv.per_second("load", seen.slow) for run in runs)
        beside["operations"] = statistics.median(run.kv.ops["mix"] for run in runs)
        note = (
            f"the mix, {len(runs[0].kv.threads)} threads; what an operation costs is of the whole program, "
            f"with its start and the load; {LIMITS}"
        )
        figure = from_runs(f"span.kv.{setting}.per_second", rates[setting], "1/s", "higher", note)
        yield spread(dataclasses.replace(figure, baseline=beside))
    for name, setting in (("switches", "switches"), ("layout", "layout"), ("speedup", "on")):
        if "off" in rates and setting in rates:
            words = {
                "switches": "prefetch, clear_hint and polling on against off, locks packed",
                "layout": "a shard a page with its lock against locks packed, switches off",
                "speedup": f"all on against all off, our own store; ETRI has published {ETRI_KV} for theirs",
            }[name]
            key = f"span.kv.{name}" if name == "speedup" else f"span.kv.{name}.speedup"
            yield ratio(key, rates[setting], rates["off"], "higher", words)


# ---- Ownership by node ----


def ownership(seen: Seen) -> Iterator[Metric]:
    """span.ownership: what it saves a CPU there that its node's pages are its host's from the start (decision 0143)."""
    times: dict[str, list[float]] = {}
    faults_of: dict[str, list[float]] = {}
    for owner in OWNERS:
        runs = [run for run in seen.ownership if run.owner == owner]
        if not runs:
            continue
        times[owner] = [run.page_us(seen.slow) for run in runs]
        faults_of[owner] = [run.counts.away.faults / run.pages() for run in runs]
        beside: dict[str, float | str] = {
            **mean_costs([run.counts for run in runs], sum(run.pages() for run in runs), "page"),
            **{
                f"{step}_us": statistics.median(
                    getattr(run.copy, f"{step}_ns") * seen.slow / run.pages() / 1000 for run in runs
                )
                for step in ("map", "populate", "memcpy")
            },
        }
        whose = "its own host is home of" if owner == "node" else "the first host is home of"
        note = f"map, populate and memcpy of a source at home, by a CPU of the other host, into memory that {whose}"
        figure = from_runs(f"span.ownership.{owner}.page_us", times[owner], "us", "lower", f"{note}; {LIMITS}")
        yield spread(dataclasses.replace(figure, baseline=beside))
    if len(times) == len(OWNERS):
        saved = [off - on for off in faults_of["home"] for on in faults_of["node"]]
        words = "faults of the other host for a page that is written first: pages of home less pages of its own node"
        yield spread(from_runs("span.ownership.saved_faults_per_page", saved, "1", "higher", words))
        note = "pages of the first host over pages of its own node: ownership initialised by node off against on"
        yield ratio("span.ownership.speedup", times["home"], times["node"], "higher", note)


# ---- Where time goes ----


def faults(seen: Seen) -> Iterator[Metric]:
    """span.fault.PLACE: what a vCPU of that host waits for a page, mean of each program's run, and its phases."""
    runs = [run.counts for run in seen.kernels if run.both] + [run.counts for run in seen.kv if run.setting == "off"]
    problems = []
    for place, name in enumerate(PLACES):
        here = [each.both[place] for each in runs if each.both[place].waits]
        if runs and not here:
            problems.append(f"span.fault.{name}: no vCPU there has waited for a page in {len(runs)} runs")
        if not here:
            continue
        whole, other = here[0], runs[0].both[1 - place]
        for more in here[1:]:
            whole = whole.plus(more)
        for each in runs[1:]:
            other = other.plus(each.both[1 - place])
        try:
            serve = other.mean_us("serve")
            phases = {f"{phase}_us": whole.mean_us(phase) - (serve if phase == "wire" else 0) for phase in HERE}
        except Malformed as error:
            problems.append(f"span.fault.{name}: {error}")
            continue
        dsmd_us = whole.fault_ns / max(whole.fault_waits, 1) / 1000
        xen_us = whole.wait_ns / whole.waits / 1000
        means = [each.wait_ns / each.waits / 1000 for each in here]
        figure = from_runs(
            f"span.fault.{name}.us", means, "us", "lower",
            "Xen's mean of each run, of OpenMP programs and of the store with all off; "
            "phases: means of all, by dsmd at both hosts; ring: Xen less dsmd; trap and wake: by Xen, beside its mean",
        )  # fmt: skip
        beside: dict[str, float | str] = {
            "trap_us": whole.trap_ns / whole.waits / 1000, "wake_us": whole.wake_ns / whole.waits / 1000,
            "ring_us": xen_us - dsmd_us, **phases, "serve_us": serve, "dsmd_mean_us": dsmd_us, "xen_mean_us": xen_us,
            "faults": float(whole.faults), "waits": float(whole.waits),
        }  # fmt: skip
        yield spread(dataclasses.replace(figure, baseline=beside))
        if seen.lines:
            round_trip = statistics.median(line.round_trip_us for line in seen.lines)
            ratios = [mean / round_trip for mean in means]
            note = "mean fault over the median round trip of dsmd's own questions, in the same run"
            yield spread(
                Metric(
                    f"span.fault.{name}.ratio_to_rtt",
                    statistics.median(ratios),
                    "x",
                    "lower",
                    {"round_trip_us": round_trip},
                    ratios,
                    note,
                )
            )
    if problems:
        raise Malformed("; ".join(problems))


def _of(seen: Seen, what: str, place: int) -> list[CallsRun]:
    return [run for run in seen.calls if run.key == (what, place)]


@dataclasses.dataclass(frozen=True)
class _Sums:
    """Of runs with as many calls each: means of a run."""

    calls: float
    seconds: tuple[float, ...]  # of each run by the hosts' clock, with what is between calls
    each: tuple[Counts, ...]

    @staticmethod
    def of(seen: Seen, runs: Sequence[CallsRun]) -> _Sums:
        """Of these."""
        number = sum(len(run.calls.ns) for run in runs)
        seconds = tuple(run.whole_ns() * seen.slow / 1e9 for run in runs)
        return _Sums(number / len(runs), seconds, tuple(run.counts for run in runs))

    def mean(self, of: Callable[[Counts], float]) -> float:
        """Of a run."""
        return statistics.mean(map(of, self.each))

    def differ(self, of: Callable[[Counts], float]) -> float:
        """By how much these runs do: nothing, for a single one."""
        return max(map(of, self.each)) - min(map(of, self.each))


def ends_of(seen: Seen, runs: Sequence[CallsRun]) -> tuple[_Sums, _Sums]:
    """The runs with the fewest calls and those with the most: what both cost alike, start and end, is in no difference of them.

    Raises Malformed if all have as many.
    """
    sizes = sorted({len(run.calls.ns) for run in runs})
    if len(sizes) < 2:
        raise Malformed(f"{runs[0].calls.what if runs else 'calls'}: one size of runs, {sizes}, makes no slope")
    few, many = (_Sums.of(seen, [run for run in runs if len(run.calls.ns) == size]) for size in (sizes[0], sizes[-1]))
    return few, many


def per_call(ends: tuple[_Sums, _Sums], of: Callable[[Counts], float]) -> float:
    """What one more call costs."""
    few, many = ends
    return (many.mean(of) - few.mean(of)) / (many.calls - few.calls)


def _differ(ends: tuple[_Sums, _Sums], of: Callable[[Counts], float]) -> float:
    """By how much runs of one size do, at most: what all calls more cost is known no better."""
    few, many = ends
    return max(few.differ(of), many.differ(of))


def cost_of(ends: tuple[_Sums, _Sums], of: Callable[[Counts], float]) -> float | str:
    """The same, unless runs of one size differ by more than that, or it is below zero."""
    few, many = ends
    return per_call(ends, of) if many.mean(of) - few.mean(of) >= _differ(ends, of) else NOT_KNOWN


def _waits_us(place: int) -> Callable[[Counts], int]:
    return lambda counts: counts.both[place].wait_ns // 1000


def _cost(key: str) -> Callable[[Counts], float]:
    return lambda counts: counts.costs()[key]


def _sent(place: int) -> Callable[[Counts], int]:
    return lambda counts: counts.both[place].interrupts + counts.both[place].events


def background_of(seen: Seen, of: Callable[[Counts], float], seconds: float) -> float | str:
    """The same of so long by the hosts' clock in which both CPUs are busy and nothing is called. Raises Malformed."""
    ends = ends_of(seen, _of(seen, "nothing", HOME))
    each = cost_of(ends, of)
    return each if isinstance(each, str) else each * seconds / seconds_of(ends)


def known(difference: float) -> float | str:
    """Of means that are no slope, and that can't be below zero."""
    return difference if difference >= 0 else NOT_KNOWN


def pages_of(seen: Seen, runs: Sequence[CallsRun], places: Mapping[str, int]) -> dict[str, float | str]:
    """How long one call more is, from its begin to that of the next, and what the vCPUs of each host wait for pages in it.

    By Xen, nothing taken off: what they wait for in as much time when nothing is called is beside it. While a call waits
    there is less of that, so it is no part of it. `places`: by name. Raises Malformed.
    """
    ends = ends_of(seen, runs)
    seconds = seconds_of(ends)
    number = sum(len(run.calls.ns) for run in runs)
    mean_us = sum(run.total_ns() for run in runs) * seen.slow / number / 1000
    found: dict[str, float | str] = {"mean_us": mean_us, "calls": float(number), "whole_us": seconds * 1e6}
    for name, place in places.items():
        found[f"pages_of_{name}_us"] = cost_of(ends, _waits_us(place))
        found[f"background_of_{name}_us"] = background_of(seen, _waits_us(place), seconds)
    return found | costs_of(ends)


def seconds_of(ends: tuple[_Sums, _Sums]) -> float:
    """Of one call more, by the hosts' clock. Raises Malformed, also if runs of one size differ by more than all more take."""
    few, many = ends
    less, more = statistics.mean(few.seconds), statistics.mean(many.seconds)
    apart = max(max(each.seconds) - min(each.seconds) for each in ends)
    if more - less <= 0 or more - less < apart:
        words = f"{few.calls:.0f} calls take {less:.3f} s, {many.calls:.0f} {more:.3f} s"
        raise Malformed(f"{words}, and runs of one size differ by {apart:.3f} s: no slope")
    return (more - less) / (many.calls - few.calls)


def rest_of(seen: Seen, split: Mapping[str, float | str]) -> float | str:
    """What is left of a call when its CPU waits for no page: the way of the interrupt, and what the other CPU waits for.

    With several CPUs a host Xen does not say which of them has waited.
    """
    pages = split["pages_of_caller_us"]
    if seen.cpus > 1 or isinstance(pages, str):
        return NOT_KNOWN
    return known(float(split["whole_us"]) - pages)


def delivery_of(runs: Sequence[CallsRun], sender: int) -> dict[str, float | str]:
    """The way of an interrupt from that host to the other one, means of all in these runs, also those of the background.

    `wire`: half of the way of the sender's faults, there and back with a page, less what the other host does meanwhile.
    A part that nothing was seen of is not known, and so is not the sum; nor is a wire below nothing, of which `asked_us` and
    `served_us` are.
    """
    whole = Counts()
    for run in runs:
        whole = whole.plus(run.counts)
    here, there = whole.both[sender], whole.both[1 - sender]
    parts = {"out_us": _mean_us(here, "ipi_out"), "wire_us": NOT_KNOWN, "in_us": _mean_us(there, "ipi_in")}
    wire, serve = _mean_us(here, "wire"), _mean_us(there, "serve")
    if not isinstance(wire, str) and not isinstance(serve, str):
        parts["wire_us"] = known((wire - serve) / 2)
    seen = [part for part in parts.values() if not isinstance(part, str)]
    delivery = sum(seen) if len(seen) == len(parts) else NOT_KNOWN
    counted = {
        "counted_out": here.phase_counts["ipi_out"], "counted_in": there.phase_counts["ipi_in"],
        "counted_asked": here.phase_counts["wire"], "counted_served": there.phase_counts["serve"],
    }  # fmt: skip
    beside = {"asked_us": wire, "served_us": serve, **{key: float(number) for key, number in counted.items()}}
    return {**parts, "delivery_us": delivery, **beside}


def _mean_us(host: HostCounts, phase: str) -> float | str:
    return host.mean_us(phase) if host.phase_counts[phase] else NOT_KNOWN


def costs_of(ends: tuple[_Sums, _Sums]) -> dict[str, float | str]:
    """Faults, messages, bytes and pages of one more call."""
    return {f"{key}_per_call": cost_of(ends, _cost(key)) for key in Counts().costs()}


def _samples_us(seen: Seen, runs: Sequence[CallsRun], back: bool = False) -> list[list[float]]:
    return [[ns * seen.slow / 1000 for ns in (run.calls.back_ns if back else run.calls.ns)] for run in runs]


def call_figure(
    metric: str, samples: Sequence[Sequence[float]], beside: Mapping[str, float | str], note: str
) -> Metric:
    """Median of all calls; `runs`: of each run of the program."""
    every = [us for run in samples for us in run]
    tail = {"p10_us": quantile(every, 0.1), "p99_us": quantile(every, 0.99)}
    runs = [statistics.median(run) for run in samples]
    return spread(Metric(metric, statistics.median(every), "us", "lower", {**beside, **tail}, runs, note))


DELIVERY = (
    "delivery: means of all interrupts and events that way, also those for devices, by dsmd at both ends: out, from Xen's ring "
    "until it is sent; in, from when it is read until Xen has it; wire: half of the way of that host's faults on pages of the "
    "other in these runs, there and back with a page, less what the other host does meanwhile, as the clocks of two hosts are "
    "not known better than that; neither before the ring nor until the CPU takes it"
)
BACKGROUND = (
    "background: what the same hosts' CPUs wait for in as much time when nothing is called and nobody meets: home's looks at "
    "its clock, the other one spins, whoever calls; not taken off"
)


def interrupts(seen: Seen) -> Iterator[Metric]:
    """span.ipi: an interrupt there and back from each host's CPU."""
    problems = []
    for caller, name in enumerate(PLACES):
        if runs := _of(seen, "membarrier", caller):
            note = (
                "membarrier(2): the other host's CPU is interrupted in user space, and who called knows it: there and back; "
                f"{DELIVERY}; whole: one call more, with both CPUs' meeting before it; "
                "pages: what all CPUs of a host wait for in it; rest, with a CPU a host: whole less pages of the caller, "
                "so with their traps and wake-ups, delivery and pages of the other one, which may be waited for at the same "
                f"time; {BACKGROUND}"
            )
            try:
                sent, least = sent_of(seen, runs, caller)
                split = pages_of(seen, runs, {"caller": caller, "other": 1 - caller})
            except Malformed as error:
                problems.append(f"span.ipi.{name}: {error}")
                continue
            if least < LEAST_DONE:
                words = f"at least {least:.2f} interrupts more for a call than in as much time without"
                problems.append(f"span.ipi.{name}: {words}")
                continue
            split |= {"rest_us": rest_of(seen, split), **delivery_of(runs, caller), **sent}
            yield call_figure(f"span.ipi.{name}.us", _samples_us(seen, runs), split, note)
    if problems:
        raise Malformed("; ".join(problems))


def sent_of(seen: Seen, runs: Sequence[CallsRun], sender: int) -> tuple[dict[str, float | str], float]:
    """(interrupts that the host has sent in one call more, and in as much time when nothing is called; the least of the former
    less the most of the latter, by what runs of one size differ by).

    That is the least that calls have sent: while one waits there is less of all else. Raises Malformed.
    """
    ends, none, of = ends_of(seen, runs), ends_of(seen, _of(seen, "nothing", HOME)), _sent(sender)
    seconds = seconds_of(ends)
    beside = {"sent_per_call": cost_of(ends, of), "background_sent": background_of(seen, of, seconds)}
    least = per_call(ends, of) - _differ(ends, of) / (ends[1].calls - ends[0].calls)
    most = per_call(none, of) + _differ(none, of) / (none[1].calls - none[0].calls)
    return beside, least - max(most * seconds / seconds_of(none), 0.0)


def wakes(seen: Seen) -> Iterator[Metric]:
    """span.wake: both ways."""
    runs = _of(seen, "wake", HOME)
    if not runs:
        return
    error = max((line.clock_error_us for line in seen.lines), default=None)
    beside = pages_of(seen, runs, {"home": HOME, "away": AWAY})
    slept = sum(run.calls.slept for run in runs) / sum(2 * len(run.calls.ns) for run in runs)
    beside["slept"] = slept
    beside["clock_error_us"] = NOT_KNOWN if error is None else error
    for sender, name in ((HOME, "to_away"), (AWAY, "to_home")):
        note = (
            f"futex(2): from before the wake-up until the thread that slept runs; {DELIVERY}; whole: one wake-up more, there "
            "and back, with the pause behind it, in which the thread goes to sleep again; pages: what all CPUs of a host wait "
            f"for in it, also at the same time, and while a thread sleeps, so there is no rest; {BACKGROUND}"
        )
        sent, least = sent_of(seen, runs, sender)
        each = {**sent, **delivery_of(runs, sender)}
        if least < LEAST_DONE:  # what was counted need not have woken anybody: a CPU that looks does not need it
            each |= dict.fromkeys(("out_us", "wire_us", "in_us", "delivery_us"), NOT_KNOWN)
        yield call_figure(f"span.wake.{name}.us", _samples_us(seen, runs, sender == AWAY), {**beside, **each}, note)


def hypercalls(seen: Seen) -> Iterator[Metric]:
    """span.hypercall: one that is done where it is made, at either host, and one that is forwarded to the home."""
    for what, place, name in (
        ("version", HOME, "home"), ("version", AWAY, "away"), ("status", HOME, "status_at_home"), ("status", AWAY, "forwarded"),
    ):  # fmt: skip
        runs = _of(seen, what, place)
        if not runs:
            continue
        beside: dict[str, float | str] = {"calls": float(sum(len(run.calls.ns) for run in runs))}
        if name == "forwarded":
            beside |= forwarded_of(seen, runs)
        words = "EVTCHNOP_status of a port at home" if what == "status" else "xen_version, done in each slice"
        yield call_figure(f"span.hypercall.{name}.us", _samples_us(seen, runs), beside, f"{words}; from user space, by privcmd")
    forwarded, local = (
        [us for run in _samples_us(seen, _of(seen, "status", place)) for us in run] for place in (AWAY, HOME)
    )
    if forwarded and local:
        more = statistics.median(forwarded) - statistics.median(local)
        yield Metric("span.hypercall.more_us", more, "us", "lower", note="forwarded less the same at home, medians")


def forwarded_of(seen: Seen, runs: Sequence[CallsRun]) -> dict[str, float | str]:
    """What one more call that is forwarded costs. Raises Malformed if it was not."""
    ends = ends_of(seen, runs)
    asked = per_call(ends, lambda counts: counts.away.calls)
    done = per_call(ends, lambda counts: counts.home.calls_done)
    if min(asked, done) < LEAST_FORWARDED:
        raise Malformed(f"span.hypercall.forwarded: {asked:.2f} of a call were forwarded, and {done:.2f} done")
    found: dict[str, float | str] = {"forwarded_per_call": asked, "done_at_home_per_call": done, **costs_of(ends)}
    if seen.lines:
        found["round_trip_us"] = statistics.median(line.round_trip_us for line in seen.lines)
    return found


# ---- A host that comes and goes ----


def operations(seen: Seen) -> Iterator[Metric]:
    """span.attach and span.detach: the whole command, and each phase by xl and by the guest."""
    for name in dict.fromkeys(each.name for each in seen.operations):
        runs = [each for each in seen.operations if each.name == name]
        whole = from_runs(
            f"span.{name}.seconds", [each.seconds for each in runs], "s", "lower", f"xl vnode-{name}; {LIMITS}"
        )
        there = [each.home for each in runs if each.home]
        beside: dict[str, float | str] = {
            f"{what}_of_home": statistics.median(getattr(each, what) for each in there)
            for what in ("faults", "calls_done")
            if there
        }
        yield spread(dataclasses.replace(whole, baseline=beside))
        for who in ("xl", "guest"):
            for phase in dict.fromkeys(phase for each in runs for phase in getattr(each, who)):
                seconds = [getattr(each, who)[phase] for each in runs if phase in getattr(each, who)]
                key = f"span.{name}.{who}.{phase.replace('-', '_')}.seconds"
                yield spread(from_runs(key, seconds, "s", "lower", f"a phase, as {who} tells it, by the hosts' clock"))


def connection(seen: Seen) -> Iterator[Metric]:
    """span.slow, and span.round_trip.us: dsmd's own questions."""
    yield Metric("span.slow", float(seen.slow), "x", note="the guest's clock is so many times slower than the hosts'")
    if seen.lines:
        note = "median of dsmd's own questions each time that the hosts were connected: its transport with TLS, no page"
        beside = {
            "questions": float(sum(line.questions for line in seen.lines)),
            "clock_error_us": max(line.clock_error_us for line in seen.lines),
        }
        figure = from_runs("span.round_trip.us", [line.round_trip_us for line in seen.lines], "us", "lower", note)
        yield spread(dataclasses.replace(figure, baseline=beside))


def with_limits(metric: Metric, seen: Seen) -> Metric:
    """A time, or a ratio of times, with what the lab makes of it beside it."""
    if metric.unit not in (*TIMES, "x") or metric.metric == "span.slow":
        return metric
    note = metric.note if LIMITS in metric.note else f"{metric.note}; {LIMITS}"
    if metric.unit in TIMES:
        note += f"; by the hosts' clock, of which the guest's is {seen.slow} times slower"
    return dataclasses.replace(metric, baseline={**metric.baseline, "slow": float(seen.slow)}, note=note)


def metrics(seen: Seen) -> tuple[list[Metric], list[str]]:
    """All figures that there are, with what is missing, span.part.PART; and why some are not, though there was something."""
    found: list[Metric] = []
    problems: list[str] = []
    for part in (connection, operations, kernels, store, ownership, faults, interrupts, wakes, hypercalls):
        try:
            for metric in part(seen):
                found.append(with_limits(metric, seen))
        except (Malformed, ArithmeticError) as error:
            problems.append(f"{part.__name__}: {error}")
    missing = {**seen.missing, **({"figures": problems} if problems else {})}
    found += [Metric(f"span.part.{part}", None, "1", note="; ".join(why)[:1000]) for part, why in missing.items()]
    return found, problems
